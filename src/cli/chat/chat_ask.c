/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question at the terminal: all of the call that it is about, then one letter. What was typed before it stood there is no
 * answer to it, and what is typed behind the answer is no answer to the next: both are kept for the next prompt.
 */
#include <strings.h>
#include <unistd.h>

#include "cli/chat/chat_detail.h"
#include "cli/chat/chat_screen.h"

static const struct {
    const char *word;
    enum tide_decision decision;
} answers[] = {
    {"yes", TIDE_DECIDE_ALLOW}, {"always", TIDE_DECIDE_ALWAYS}, {"no", TIDE_DECIDE_DENY}, {"later", TIDE_DECIDE_LATER}};

/* The word or its letter and nothing else: "abort" is no "always". */
static bool read_answer(const char *line, bool always, enum tide_decision *ret)
{
    size_t len = strlen(line);

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if ((len == 1 || len == strlen(answers[i].word)) && strncasecmp(line, answers[i].word, len) == 0 &&
            (always || answers[i].decision != TIDE_DECIDE_ALWAYS)) {
            *ret = answers[i].decision;
            return true;
        }
    return false;
}

static enum tide_decision ask(struct screen *s, bool always)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    enum tide_decision decision = TIDE_DECIDE_LATER; /* when nothing is answered it stays asked */
    const char *prompt = always ? "[y]es, [a]lways this tool, [n]o, [l]ater? " : "[y]es, [n]o, [l]ater? ";

    if (always && terminal_columns(STDOUT_FILENO) < 60)
        prompt = "[y]es [a]lways [n]o [l]ater? ";
    line_edit_gather(s->line);
    while (line_edit_read(s->answers, prompt, &line) == LINE_OK && !read_answer(buf_cstr(&line), always, &decision))
        ;
    line_edit_pass_on(s->answers, s->line);
    return decision;
}

enum tide_decision screen_approve(void *arg, const struct tide_approval *a)
{
    AUTO(buf_done) struct buf detail = BUF_INIT((size_t)64 << 20);
    struct screen *s = arg;
    enum tide_decision decision = agent_setup_yes(&s->chat.core.setup, a);
    const char *question = a->question ? a->question : "";

    view_busy(s->view, NULL);
    if (decision != TIDE_DECIDE_LATER)
        return decision;
    if (a->tool) { /* the question is made for one line; here is room for all of it */
        question = arena_printf(&s->scratch, "allow %s?", a->tool);
        chat_detail(&detail, a->tool, a->args);
    }
    view_approval(s->view, question, buf_view(&detail));
    decision = ask(s, a->tool != NULL);
    line_edit_hush(s->line);
    if (decision != TIDE_DECIDE_LATER)
        view_busy(s->view, "thinking");
    return decision;
}
