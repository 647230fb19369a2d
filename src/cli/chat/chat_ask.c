/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question at the terminal: all of the call that it is about, then one key. What was typed before it stood there is no
 * answer to it, and what is typed behind the answer is no answer to the next: both are kept for the next prompt.
 *
 * A key that more follows at once is the beginning of a word: it answers only when the whole word does. So what a program
 * sends or what was meant as text ("abort") is not taken by its first letter. What is pasted answers nothing.
 */
#include <strings.h>
#include <unistd.h>

#include "cli/chat/chat_detail.h"
#include "cli/chat/chat_screen.h"
#include "engine/change_diff.h"

#define REASON_MAX 4096
#define DIFF_MAX ((size_t)1 << 20)

static const struct answer {
    const char *word;
    enum tide_decision decision;
    bool reason; /* asks for it, and then again */
} answers[] = {{"yes", TIDE_DECIDE_ALLOW, false},
               {"always", TIDE_DECIDE_ALWAYS, false},
               {"no", TIDE_DECIDE_DENY, false},
               {"reason", TIDE_DECIDE_LATER, true},
               {"later", TIDE_DECIDE_LATER, false}};

/* The word or its letter and nothing else; NULL: it is none. */
static const struct answer *find_answer(struct str typed, bool always)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if ((typed.len == 1 || typed.len == strlen(answers[i].word)) &&
            strncasecmp(typed.ptr, answers[i].word, typed.len) == 0 &&
            (always || answers[i].decision != TIDE_DECIDE_ALWAYS))
            return &answers[i];
    return NULL;
}

/* One key, or what came with it at once. An Enter alone is nothing. */
static enum line_result read_key(struct line_edit *e, struct buf *typed)
{
    AUTO(buf_done) struct buf text = BUF_INIT(LINE_MAX_BYTES);
    enum line_command key;
    enum line_result got;

    buf_clear(typed);
    do {
        got = line_edit_key(e, &key, &text);
        if (got != LINE_OK || (key == KEY_SUSPEND && !typed->len))
            return got;
        if (!typed->len && (key == KEY_INTERRUPT || key == KEY_END))
            return key == KEY_END ? LINE_END : LINE_CANCELLED;
        if (key == KEY_TEXT)
            buf_add_str(typed, buf_view(&text));
    } while (!typed->len || (key == KEY_TEXT && line_edit_more(e)));
    return LINE_OK;
}

static enum line_result read_typed(struct screen *s, const char *choices, struct buf *typed)
{
    enum line_result got;

    if (!line_edit_is_terminal(s->answers))
        return line_edit_read(s->answers, choices, typed);
    view_ask(s->view, choices);
    got = read_key(s->answers, typed);
    view_answered(s->view, buf_view(typed));
    return got;
}

static const char *choices_of(bool always)
{
    if (terminal_columns(STDOUT_FILENO) < 70)
        return always ? "[y]es [a]lways [n]o [r]eason [l]ater? " : "[y]es [n]o [r]eason [l]ater? ";
    return always ? "[y]es, [a]lways this tool, [n]o, give a [r]eason, [l]ater? "
                  : "[y]es, [n]o, give a [r]eason, [l]ater? ";
}

static enum tide_decision ask_person(struct screen *s, bool always, struct buf *reason)
{
    AUTO(buf_done) struct buf typed = BUF_INIT(REASON_MAX);
    const struct answer *a = NULL;

    line_edit_gather(s->line);
    while (!a && read_typed(s, choices_of(always), &typed) == LINE_OK) {
        a = find_answer(buf_view(&typed), always);
        if (a && a->reason) {
            if (typed.len == 1)
                line_edit_expect(s->answers, a->word + 1);
            (void)line_edit_read(s->answers, "reason: ", reason);
            a = NULL;
        }
    }
    if (a && typed.len == 1)
        line_edit_expect(s->line, a->word + 1);
    line_edit_pass_on(s->answers, s->line);
    return a ? a->decision : TIDE_DECIDE_LATER; /* when nothing is answered it stays asked */
}

enum tide_decision screen_approve(void *arg, const struct tide_approval *a)
{
    AUTO(buf_done)
    struct buf detail = BUF_INIT((size_t)64 << 20), diff = BUF_INIT(DIFF_MAX), reason = BUF_INIT(REASON_MAX);
    struct screen *s = arg;
    enum tide_decision decision = agent_setup_yes(&s->chat.core.setup, a);
    const char *question = a->question ? a->question : "";

    view_busy(s->view, NULL);
    if (decision != TIDE_DECIDE_LATER)
        return decision;
    if (a->tool) { /* the question is made for one line; here is room for all of it */
        question = arena_printf(&s->scratch, "allow %s?", a->tool);
        if (change_diff(s->chat.core.working_dir, a->tool, a->args, &diff) && diff.failed)
            buf_done(&diff); /* lines without end: then the call itself is shown */
        chat_detail(&detail, a->tool, a->args, buf_view(&diff));
    }
    view_approval(s->view, question, buf_view(&detail));
    decision = ask_person(s, a->tool != NULL, &reason);
    line_edit_hush(s->line);
    if (decision != TIDE_DECIDE_LATER)
        view_busy(s->view, "thinking");
    if (reason.len)
        *a->reason = (struct tide_text){mem_dup(buf_view(&reason)), reason.len};
    return decision;
}
