/* SPDX-License-Identifier: Apache-2.0 */
/* A chat at a terminal asks for a person's word on a call. */
#include <unistd.h>

#include "cli/chat/chat_screen.h"
#include "cli/chat/question.h"

#define REASON_MAX 4096

enum tide_decision screen_approve(void *arg, const struct tide_approval *a)
{
    AUTO(buf_done) struct buf reason = BUF_INIT(REASON_MAX);
    struct screen *s = arg;
    const struct asker k = {.view = s->view, .out = STDOUT_FILENO, .answers = s->answers, .next = s->line};
    const struct question q = {.text = a->question ? a->question : "",
                               .tool = a->tool,
                               .args = a->args,
                               .working_dir = s->chat.core.working_dir,
                               .always = a->tool != NULL};
    enum tide_decision decision = agent_setup_yes(&s->chat.core.setup, a);

    view_busy(s->view, NULL);
    if (decision != TIDE_DECIDE_LATER)
        return decision;
    question_show(&k, &q);
    decision = question_decide(&k, &q, &reason);
    line_edit_hush(s->line);
    if (decision != TIDE_DECIDE_LATER)
        view_busy(s->view, "thinking");
    if (reason.len)
        *a->reason = (struct tide_text){mem_dup(buf_view(&reason)), reason.len};
    return decision;
}
