/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a parked graph waits for, asked at the terminal as a chat asks it (chat/question.h). The question stays in the store
 * while a person thinks: whoever answers nothing, or goes away, leaves it parked, and it can be answered from anywhere. At
 * its deadline it goes away by itself.
 */
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "base/yes_no.h"
#include "cli/chat/question.h"
#include "cli/graph/graph_view.h"
#include "terminal/progress.h"

#define REASON_MAX 4096
#define LOOKED_AT 10000 /* events behind which the call that is asked about is not looked for */

struct asked {
    struct arena arena;
    struct question q;
    bool approval;
    int64_t deadline_ms; /* 0: none */
};

static int take_call(void *arg, const struct tide_event *ev)
{
    struct asked *w = arg;
    const struct json *args;
    struct json *body = NULL;

    if (strcmp(ev->kind, "approval.requested") != 0 ||
        json_parse(&w->arena, arena_dup(&w->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL) ||
        !str_eq(json_get_text(&w->arena, body, STR("question")), str_from(w->q.text)))
        return 0;
    args = json_get(body, STR("args"));
    w->q.args = args ? arena_dup(&w->arena, json_source(args)).ptr : NULL;
    w->q.tool = args ? arena_dup(&w->arena, json_get_text(&w->arena, body, STR("tool"))).ptr : NULL;
    return 0;
}

static bool find_question(tide_session *session, struct asked *w)
{
    const struct tide_session_info *info;
    struct tide_err ignored;
    int64_t last, first;

    if (tide_session_refresh(session, &ignored) || tide_session_get_info(session, &info, &ignored))
        return false;
    w->q.text = arena_dup(&w->arena, str_from(info->question ? info->question : info->wait_name)).ptr;
    w->q.working_dir = arena_dup(&w->arena, str_from(info->working_dir ? info->working_dir : ".")).ptr;
    w->approval = info->wait_kind == TIDE_WAIT_APPROVAL;
    w->deadline_ms = info->deadline_ms;
    last = tide_session_last_seq(session);
    first = last > LOOKED_AT ? last - LOOKED_AT : tide_session_first_seq(session);
    if (w->approval && tide_session_read(session, 0, first, last, take_call, w, &ignored))
        w->q.tool = NULL; /* the question says what it is about */
    if (w->q.tool && !w->q.tool[0])
        w->q.tool = NULL;
    return true;
}

static bool ask_approval(const struct asker *k, const struct asked *w, struct buf *ret)
{
    AUTO(buf_done) struct buf reason = BUF_INIT(REASON_MAX);
    enum tide_decision decision = question_decide(k, &w->q, &reason);
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

static void show_question(const struct asker *k, const struct asked *w)
{
    char until[TIME_PEOPLE_SIZE], line[TIME_PEOPLE_SIZE + 16];

    question_show(k, &w->q);
    snprintf(line, sizeof(line), "until %s", time_people(until, w->deadline_ms));
    if (w->deadline_ms)
        view_notice(k->view, line);
}

bool graph_ask(const struct cli *cli, tide_session *session, struct buf *ret_answer)
{
    bool color = graph_has_color(cli);
    const struct view_config look = {
        .out = STDERR_FILENO, .err = STDERR_FILENO, .tty = true, .color = color, .dumb = !terminal_is_capable()};
    struct asker k = {.view = view_new(&look), .out = STDERR_FILENO};
    struct asked w = {.arena = ARENA_INIT};
    bool answered = false;

    tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed before the question stood there is no answer to it */
    k.answers = line_edit_new(&(struct line_config){
        .in = STDIN_FILENO, .out = STDERR_FILENO, .color = color, .wake_fd = -1, .stop = &stop_signal});
    if (find_question(session, &w)) {
        show_question(&k, &w);
        line_edit_until(k.answers, w.deadline_ms);
        answered = w.approval ? ask_approval(&k, &w, ret_answer) : ask_text(&k, ret_answer);
    }
    line_edit_free(k.answers);
    view_free(k.view);
    arena_done(&w.arena);
    return answered;
}

bool graph_may_ask(const struct graph_face *f)
{
    return !f->no_input && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}
