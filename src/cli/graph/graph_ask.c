/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a parked graph waits for, asked at the terminal as a chat asks it (chat/question.h). The question stays in the store
 * while a person thinks: the person who answers nothing, or goes away, leaves it parked, and it can be answered from anywhere. At
 * its deadline it goes away by itself.
 */
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "base/yes_no.h"
#include "cli/chat/question.h"
#include "cli/graph/graph_view.h"
#include "engine/pending_question.h"
#include "terminal/progress.h"

#define REASON_MAX 4096

static bool ask_approval(const struct asker *k, const struct question *q, struct buf *ret)
{
    AUTO(buf_done) struct buf reason = BUF_INIT(REASON_MAX);
    enum tide_decision decision = question_decide(k, q, &reason);
    struct str word = decision == TIDE_DECIDE_DENY ? STR("\"no\"") : STR("\"yes\"");

    if (decision == TIDE_DECIDE_LATER)
        return false;
    if (reason.len)
        yes_no_put_reason(ret, word, buf_view(&reason));
    else
        buf_add_str(ret, word);
    return true;
}

static bool ask_text(const struct asker *k, struct buf *ret)
{
    AUTO(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
    struct str text;

    do {
        if (line_edit_read(k->answers, "answer (empty leaves it waiting): ", &line) != LINE_OK)
            return false;
        text = str_trim(buf_view(&line));
    } while (!str_is_utf8(text, NULL));
    json_quote(ret, text);
    return text.len > 0;
}

static void show_question(const struct asker *k, const struct question *q, int64_t deadline_ms)
{
    char until[TIME_PEOPLE_SIZE], line[TIME_PEOPLE_SIZE + 16];

    question_show(k, q);
    snprintf(line, sizeof(line), "until %s", time_people(until, deadline_ms));
    if (deadline_ms)
        view_notice(k->view, line);
}

bool graph_ask(const struct cli *cli, tide_session *session, struct buf *ret_answer)
{
    bool color = graph_has_color(cli);
    const struct view_config look = {
        .out = STDERR_FILENO, .err = STDERR_FILENO, .tty = true, .color = color, .dumb = !terminal_is_capable()};
    struct asker k = {.view = view_new(&look), .out = STDERR_FILENO};
    struct pending_question pending;
    struct tide_err ignored;
    bool answered = false;

    tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed before the question stood there is no answer to it */
    k.answers = line_edit_new(&(struct line_config){
        .in = STDIN_FILENO, .out = STDERR_FILENO, .color = color, .wake_fd = -1, .stop = &stop_signal});
    if (!pending_question_read(session, &pending, &ignored)) {
        const struct question q = {
            .text = pending.text, .tool = pending.tool, .args = pending.args, .working_dir = pending.working_dir};

        show_question(&k, &q, pending.deadline_ms);
        line_edit_until(k.answers, pending.deadline_ms);
        answered = pending.approval ? ask_approval(&k, &q, ret_answer) : ask_text(&k, ret_answer);
    }
    pending_question_done(&pending);
    line_edit_free(k.answers);
    view_free(k.view);
    return answered;
}

bool graph_may_ask(const struct graph_face *f)
{
    return !f->no_input && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}
