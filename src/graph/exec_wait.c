/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for people: what the log answers already, what is parked, and what it comes to when they have answered. */
#include <stdlib.h>

#include "graph/exec.h"
#include "base/yes_no.h"

static void blocked_free(struct blocked *b)
{
    free(b->name);
    free(b->question);
    free(b->default_answer);
    free(b);
}

void wait_drop(struct exec *x)
{
    struct blocked *b = x->blocked;

    INVARIANT(b);
    x->blocked = b->next;
    blocked_free(b);
}

/* What a person said becomes the output of a human_input node: under its first output; the reason of a yes or a no under the second. */
static struct str answer_output(struct exec *x, const struct spec_node *n, struct str answer)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&out);
    struct str key = n->outputs.n > 1 ? n->outputs.at[1] : STR("reason");
    struct json *v = NULL;
    const struct json *reason = NULL;
    bool yes = false;

    if (n->kind == SPEC_APPROVAL && !json_parse(&x->scratch, answer, NULL, &v, NULL, NULL)) {
        yes = yes_no_read(&x->scratch, v) == YES_NO_YES; /* what is neither was refused when it was given */
        reason = json_get(v, STR("reason"));
    }
    json_out_begin(&o, '{');
    json_out_kraw(&o, n->outputs.n ? n->outputs.at[0] : STR("answer"),
                  n->kind == SPEC_APPROVAL ? (yes ? STR("true") : STR("false")) : answer);
    if (n->kind == SPEC_APPROVAL && (reason || n->outputs.n > 1) &&
        !(n->outputs.n == 1 && str_eq(n->outputs.at[0], key)))
        json_out_kraw(&o, key, reason ? json_source(reason) : STR("null"));
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&out));
}

/* The first that is waited for: answered (then it continues), or parked. */
enum tide_code wait_ask(struct exec *x, struct tide_err *err)
{
    struct blocked *b = x->blocked;
    const struct tide_wait_options wait = {.size = sizeof wait,
                                           .name = b->wait.name,
                                           .kind = b->wait.kind,
                                           .question = b->question ? b->question : b->wait.question,
                                           .deadline_ms =
                                               b->deadline_ms ? env_now_ms(x->s->store->env) + b->deadline_ms : 0,
                                           .default_answer = b->default_answer};
    struct tide_text answer = {NULL, 0};
    struct place p;
    enum tide_code code;

    code = wait_answer(x->run, wait.name, &answer, err);
    if (code == TIDE_NOT_FOUND) {
        checkpoint_wait(x, b->name, wait.question);
        exec_commit(x, true);
        if (x->broken)
            return tide_err_copy(err, &x->err);
        code = tide_run_wait(x->run, &wait, &answer, x->token, err);
    }
    if (!code && b->human)
        code = wait_was_defaulted(x->run, wait.name, &x->timed_out, err);
    if (code)
        return code;
    if (!b->human || !place_find(x->graph, str_from(b->name), &p))
        tasks_leave(x, b->name); /* the agent asks the log again */
    else if (x->timed_out && !p.node->otherwise_answer)
        end_failed(x, &p, b->name, "deadline", "there was no answer before the deadline", false);
    else
        end_complete(x, &p, b->name,
                     answer_output(x, p.node, arena_dup(&x->scratch, (struct str){answer.ptr, answer.len})), 0);
    x->timed_out = false;
    x->fresh |= !b->human;
    tide_text_done(&answer);
    wait_drop(x);
    return TIDE_OK;
}

/* A node of a graph that failed or is over meanwhile waits for nobody; what it held up may continue. */
bool wait_drop_stale(struct exec *x)
{
    for (struct blocked **at = &x->blocked, *b; (b = *at); at = &b->next) {
        const struct task *t = map_get(&x->view->content.position.active, str_from(b->name));
        const char *visit = strrchr(b->wait.name, '#');

        if (t && !plan_is_held(x, str_from(b->name)) &&
            (!b->human || !visit || strtoll(visit + 1, NULL, 10) == t->visit))
            continue;
        *at = b->next;
        blocked_free(b);
        return true;
    }
    return false;
}

/* Whatever can be answered from the log is, before anybody is asked. */
bool wait_take_answer(struct exec *x)
{
    struct blocked **at = &x->blocked, *b;
    struct tide_text answer = {NULL, 0};
    struct tide_err err;

    for (; (b = *at); at = &b->next) {
        if (wait_answer(x->run, b->wait.name, &answer, &err))
            continue;
        tide_text_done(&answer);
        *at = b->next; /* to the front: it is next */
        b->next = x->blocked;
        x->blocked = b;
        return true;
    }
    return false;
}
