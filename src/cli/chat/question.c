/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question at the terminal: all of the call that it is about, then one key. What was typed before it stood there is no
 * answer to it, and what is typed behind the answer is no answer to the next: in a chat both are kept for the next prompt.
 *
 * A key that more follows at once is the beginning of a word: it answers only when the whole word does. So what a program
 * sends or what was meant as text ("abort") is not taken by its first letter. What is pasted answers nothing.
 */
#include "cli/chat/question.h"

#include <strings.h>

#include "base/mem.h"
#include "cli/chat/chat_detail.h"
#include "terminal/output.h"
#include "engine/change_diff.h"

#define DETAIL_MAX ((size_t)64 << 20)
#define DIFF_MAX ((size_t)1 << 20)
#define WORD_MAX 4096

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

static enum line_result read_typed(const struct asker *k, const char *choices, struct buf *typed)
{
    enum line_result got;

    if (!line_edit_is_terminal(k->answers))
        return line_edit_read(k->answers, choices, typed);
    view_ask(k->view, choices);
    got = read_key(k->answers, typed);
    view_answered(k->view, buf_view(typed));
    return got;
}

static const char *choices_of(const struct asker *k, bool always)
{
    if (terminal_columns(k->out) < 70)
        return always ? "[y]es [a]lways [n]o [r]eason [l]ater? " : "[y]es [n]o [r]eason [l]ater? ";
    return always ? "[y]es, [a]lways this tool, [n]o, give a [r]eason, [l]ater? "
                  : "[y]es, [n]o, give a [r]eason, [l]ater? ";
}

enum tide_decision question_decide(const struct asker *k, const struct question *q, struct buf *reason)
{
    AUTO(buf_done) struct buf typed = BUF_INIT(WORD_MAX);
    const struct answer *a = NULL;

    if (k->next)
        line_edit_gather(k->next);
    while (!a && read_typed(k, choices_of(k, q->always), &typed) == LINE_OK) {
        a = find_answer(buf_view(&typed), q->always);
        if (a && a->reason) {
            if (typed.len == 1)
                line_edit_expect(k->answers, a->word + 1);
            (void)line_edit_read(k->answers, "reason: ", reason);
            a = NULL;
        }
    }
    if (k->next && a && typed.len == 1)
        line_edit_expect(k->next, a->word + 1);
    if (k->next)
        line_edit_pass_on(k->answers, k->next);
    return a ? a->decision : TIDE_DECIDE_LATER; /* when nothing is answered it stays asked */
}

/* The question is made for one line; here is room for all of the call. */
void question_show(const struct asker *k, const struct question *q)
{
    AUTO(buf_done) struct buf detail = BUF_INIT(DETAIL_MAX), diff = BUF_INIT(DIFF_MAX);
    AUTO(arena_done) struct arena a = ARENA_INIT;

    if (q->tool) {
        if (change_diff(q->working_dir, q->tool, q->args, &diff) && diff.failed)
            buf_done(&diff); /* lines without end: then the call itself is shown */
        chat_detail(&detail, q->tool, q->args, buf_view(&diff));
    }
    view_approval(k->view, q->tool ? arena_printf(&a, "allow %s?", q->tool) : q->text, buf_view(&detail));
}
