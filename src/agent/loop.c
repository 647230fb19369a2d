/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: a prompt is recorded with the start of its run; then turns, each one model call and the tools it asks for, a
 * checkpoint after each; then the end. Resuming enters the same loop: it looks only at the conversation, so that what is
 * still owed (an answer, a result) is done next, and nothing else.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/invariant.h"
#include "agent/nested.h"
#include "program/tree.h"
#include "session/status.h"

#define TRIES 8        /* at starting, when others append at the same moment */
#define START_EVENTS 3 /* most that a start or a resume writes up to its own event: the old run's token, its end */

int agent_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct tide_agent *a = arg;
    struct tide_agent_event notice = {.what = TIDE_AGENT_NOTICE,
                                      .delay_ms = why && !a->opt.on_store_error_continue ? -1 : 0};
    char line[700];

    (void)waited_ms;
    if (atomic_exchange(&a->in_trouble, why != NULL) != (why != NULL)) {
        notice.text_len =
            (size_t)snprintf(line, sizeof(line), "%s%s", why ? why->msg : "the store can be written again: continuing",
                             !why ? ""
                             : a->opt.on_store_error_continue
                                 ? ": pure work continues in memory until the store can be written (durability: "
                                   "degraded)"
                                 : ": paused until the store can be written");
        notice.text = line;
        notice.why = why;
        agent_show(a, &notice);
    }
    return atomic_load(&a->stop) != STOP_NOT;
}

static struct tide_run_options run_options(struct tide_agent *a)
{
    return (struct tide_run_options){.size = sizeof(struct tide_run_options),
                                     .flags = a->opt.on_store_error_continue ? TIDE_RUN_CONTINUE : 0u,
                                     .fields = "{\"loop\":\"agent\"}",
                                     .trouble = agent_trouble,
                                     .trouble_arg = a};
}

/* ---- the end ---- */

static enum tide_code end_run(struct tide_agent *a, const struct tide_run_result *result, struct tide_err *err)
{
    enum tide_code code = a->run || !a->draft.n ? TIDE_OK : agent_start(a, false, err); /* stopped before it began */

    if (!code && a->run)
        code = run_end_with(a->run, &a->draft, result, err);

    draft_reset(&a->draft);
    tide_run_close(TAKE(a->run));
    a->known_seq = code ? -1 : tide_session_last_seq(a->s);
    return code;
}

static enum tide_code fail_run(struct tide_agent *a, struct tide_err *err)
{
    struct tide_run_result result = {.size = sizeof result,
                                     .outcome = TIDE_OUTCOME_FAILED,
                                     .reason = a->fault.code,
                                     .error_code = a->fault.code,
                                     .fields = "{\"recorded\":\"llm.error\"}"}; /* the view of errors has it once */
    struct tide_err unrecorded;

    result.error_message = err->msg;
    if (end_run(a, &result, &unrecorded))
        return tide_wrap_after(err, "the end of the run could not be recorded: %s", unrecorded.msg);
    tide_wrap_after(err, "%s", fault_remedy(&a->fault, a->type));
    return tide_hint(err, TIDE_ACTION_PROMPT, a->s->head.id);
}

static enum tide_code fail_max_turns(struct tide_agent *a, struct tide_err *err)
{
    struct json_out *o = agent_open(a, "llm.error", agent_turn(a));

    json_out_kstr(o, STR("context"), STR("max_turns"));
    json_out_kstr(o, STR("code"), STR("max_turns"));
    json_out_kstr(o, STR("message"), str_from(arena_printf(&a->scratch, "%d model calls were made", a->turns)));
    agent_close(a);
    a->fault = (struct model_fault){.code = "max_turns"};
    tide_fail(err, TIDE_FAILED, "max_turns: %d model calls did not finish this", a->turns);
    if (a->nested)
        return TIDE_FAILED;
    struct tide_run_result result = {.size = sizeof result,
                                     .outcome = TIDE_OUTCOME_FAILED,
                                     .reason = "max_turns",
                                     .error_code = "max_turns",
                                     .error_message = err->msg,
                                     .fields = "{\"recorded\":\"llm.error\"}"};
    struct tide_err ignored;

    if (end_run(a, &result, &ignored))
        return tide_err_copy(err, &ignored);
    return tide_hint(err, TIDE_ACTION_PROMPT, a->s->head.id);
}

static enum tide_code end_stopped(struct tide_agent *a, struct tide_err *err)
{
    static const struct tide_run_result ends[] = {
        [STOP_NOT] = {.size = sizeof ends[0],
                      .outcome = TIDE_OUTCOME_INTERRUPTED,
                      .reason = "shutdown",
                      .fields = "{\"by\":\"person\"}"},
        [STOP_BY_PERSON] = {.size = sizeof ends[0],
                            .outcome = TIDE_OUTCOME_INTERRUPTED,
                            .reason = "shutdown",
                            .fields = "{\"by\":\"person\"}"},
        [STOP_BY_SHUTDOWN] = {.size = sizeof ends[0], .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown"},
        [STOP_BY_CANCEL] = {.size = sizeof ends[0], .outcome = TIDE_OUTCOME_CANCELLED, .reason = "requested"},
        [STOP_BY_HOOK] = {.size = sizeof ends[0], .outcome = TIDE_OUTCOME_CANCELLED, .reason = "hook_stop"},
    };
    struct tide_err why = *err, e;

    INVARIANT((size_t)atomic_load(&a->stop) < sizeof(ends) / sizeof(ends[0]));
    if (end_run(a, &ends[atomic_load(&a->stop)], &e))
        return tide_err_copy(err, &e);
    return tide_err_copy(err, &why);
}

/* Whatever ended the turns becomes the end of the run. */
static enum tide_code conclude_run(struct tide_agent *a, enum tide_code code, struct tide_text *ret_answer,
                                   struct tide_err *err)
{
    static const struct tide_run_result completed = {.size = sizeof completed, .outcome = TIDE_OUTCOME_COMPLETED};
    struct str answer;

    guard_leave(&a->guard);
    if (code == TIDE_OK && a->run)
        code = end_run(a, &completed, err);
    else if (code == TIDE_CANCELLED)
        code = end_stopped(a, err);
    else if (code == TIDE_FAILED && a->run && a->fault.code[0])
        code = fail_run(a, err);
    else if (code != TIDE_WAITING)
        a->known_seq = -1;
    draft_reset(&a->draft);
    tide_run_close(TAKE(a->run)); /* what is still open is interrupted: it can be resumed */
    session_be_quick(a->s);
    if (code)
        return code;
    INVARIANT(!conversation_open(&a->conversation)); /* every call has its result */
    answer = conversation_answer(&a->conversation);
    if (ret_answer)
        *ret_answer = (struct tide_text){mem_dup(answer), answer.len};
    return TIDE_OK;
}

/* ---- turns ---- */

static bool fire_hook(struct tide_agent *a, enum hook_event event, struct str text, bool asks)
{
    struct hook_input in = {.event = event, .session_id = a->id};
    struct hook_verdict v;

    if (event == HOOK_AGENT_START)
        in.task = text;
    else
        in.result = text;
    in.turn = event == HOOK_TURN_END || event == HOOK_AGENT_STOP ? a->conversation.answered_turn : agent_turn(a);
    agent_hook(a, &in, &v);
    if (v.action == HOOK_STOP) {
        if (event != HOOK_AGENT_STOP)
            agent_stop_by_hook(a, &v);
        return false;
    }
    agent_note(a, &v, asks ? -in.turn : in.turn);
    return true;
}

struct queued {
    struct tide_agent *a;
    struct str content;
};

static int take_content(void *arg, const struct event *ev)
{
    struct queued *q = arg;
    const struct json *v;
    struct json *body;

    if (json_parse(&q->a->scratch, arena_dup(&q->a->scratch, ev->body), NULL, &body, NULL, NULL))
        return 1;
    v = json_get(body, STR("content"));
    q->content = !v ? STR("") : v->type == JSON_STRING ? json_text(&q->a->scratch, v) : json_source(v);
    return 1;
}

/* What others said meanwhile is said to the model next. */
static enum tide_code take_queue(struct tide_agent *a, struct tide_err *err)
{
    const struct map *queue = &a->s->state->ledger.queue;
    enum tide_code code = TIDE_OK;

    if (!queue->live || !a->run || a->run->starting)
        return TIDE_OK;
    for (struct map_entry *e = map_next(queue, NULL); e && !code && a->draft.n + 2 < DRAFT_EVENTS;
         e = map_next(queue, e)) {
        struct queued q = {a, STR("")};
        int64_t seq = *(int64_t *)e->value;

        code = session_read(a->s, &a->s->head, seq, seq, take_content, &q, err);
        if (code)
            break;
        agent_open(a, "queue.taken", 0);
        json_out_kstr(&a->draft.out, STR("queue_id"), map_key(e));
        agent_close(a);
        agent_message(a, "message.user", agent_turn(a));
        json_out_kstr(&a->draft.out, STR("content"), q.content);
        agent_close(a);
    }
    return code ? code : agent_put(a, err);
}

static void end_turn(struct tide_agent *a)
{
    const struct tide_new_checkpoint in = {.size = sizeof in, .type = TIDE_CHECKPOINT_TURN};
    char id[TIDE_ID_SIZE];

    fire_hook(a, HOOK_TURN_END, conversation_answer(&a->conversation), false);
    if (!a->nested)
        checkpoint_put(a->s, &a->draft, &in, id);
    else if (a->nested->turn_over)
        a->nested->turn_over(a->nested->arg, &a->draft, a->conversation.answered_turn);
}

/* Nothing more is to be asked of the model. */
static bool is_over(const struct tide_agent *a)
{
    return a->nested ? nested_is_over(a) : !conversation_is_owed(&a->conversation);
}

enum tide_code agent_fail_stopped(struct tide_agent *a, struct tide_err *err)
{
    if (a->broken.code)
        return tide_err_copy(err, &a->broken);
    return tide_fail(err, TIDE_CANCELLED, "%s",
                     atomic_load(&a->stop) == STOP_BY_HOOK && a->stop_text ? a->stop_text : "stopped");
}

/* Before a model call; TIDE_OK when it may be made. */
static enum tide_code may_ask(struct tide_agent *a, struct tide_err *err)
{
    enum tide_code code;

    if (a->turns >= a->opt.max_turns)
        return fail_max_turns(a, err);
    code = budget_check(a, err);
    if (code)
        return code;
    if (!a->conversation.requested) { /* else it continues after an interruption: the same request is sent again */
        budget_trim(a);
        fire_hook(a, HOOK_TURN_START, STR(""), false);
    }
    return agent_stopped(a) ? agent_fail_stopped(a, err) : TIDE_OK;
}

enum tide_code agent_work(struct tide_agent *a, struct tide_err *err)
{
    bool in_turn = conversation_open(&a->conversation) != NULL;
    enum tide_code code;

    for (;;) {
        code = agent_calls(a, err);
        if (code)
            return code;
        if (in_turn)
            end_turn(a);
        if (agent_stopped(a))
            return agent_fail_stopped(a, err);
        code = a->nested ? TIDE_OK
                         : take_queue(a, err); /* what others say is said to the graph, not to one of its parts */
        if (code)
            return code;
        if (is_over(a)) {
            if (!fire_hook(a, HOOK_AGENT_STOP, conversation_answer(&a->conversation), true) || is_over(a))
                return TIDE_OK;
        } else if (!conversation_is_owed(&a->conversation)) {
            nested_ask_on(a);
        }
        code = may_ask(a, err);
        if (!code)
            code = agent_ask(a, err);
        if (code)
            return code;
        a->turns++;
        in_turn = true;
    }
}

/* ---- starting, continuing ---- */

enum tide_code agent_read(struct tide_agent *a, struct tide_err *err)
{
    enum tide_code code = session_sync(a->s, err);

    if (!code && a->known_seq != a->s->head.last_seq)
        code = conversation_load(&a->conversation, a->s, err) ? err->code : undone_load(a, err);
    if (code)
        return code;
    a->known_seq = a->s->head.last_seq;
    a->known_messages = a->s->state->content.messages;
    a->known_run = a->s->state->ledger.run.active_seq;
    return TIDE_OK;
}

static void begin_run(struct tide_agent *a)
{
    a->broken = (struct tide_err){0};
    a->fault = (struct model_fault){.code = ""};
    a->turns = 0;
    a->fresh = false;
    a->stop_text = NULL;
    a->begun = false;
    a->token[0] = '\0';
    a->looked_ns = a->s->store->env->ops->mono_ns(a->s->store->env);
    arena_reset(&a->scratch);
    draft_reset(&a->draft);
    session_be_patient(a->s, agent_trouble, a); /* what it begins with is read, before there is a run */
}

enum tide_code agent_start(struct tide_agent *a, bool queued, struct tide_err *err)
{
    struct tide_run_options opt = run_options(a);
    enum tide_code code;

    INVARIANT(!a->run && !a->nested); /* a nested agent's run is begun by the caller it belongs to */
    opt.flags |= RUN_CONTINUES;       /* a prompt withdraws the question, not what was done before it */
    code = session_sync(a->s, err);
    if (!code && (a->s->state->content.messages != a->known_messages ||
                  a->s->state->ledger.run.active_seq != a->known_run)) /* the draft is about another conversation */
        code = tide_fail_session(err, TIDE_CONFLICT, a->s->head.id, "has changed meanwhile: try again");
    code = code ? code : run_start_with(a->s, &opt, &a->draft, queued, &a->run, err);
    draft_reset(&a->draft);
    if (code)
        return code;
    a->begun = true;
    a->place.run_id = a->run->id;
    agent_log_begin(a);
    return TIDE_OK;
}

/* One whose token was revoked or has expired is not: then continuing asks anew. */
static bool is_waiting(const struct tide_agent *a)
{
    struct status st;

    status_derive(&st, a->s->state, false, env_now_ms(a->s->store->env));
    return st.status == TIDE_STATUS_WAITING;
}

void agent_say(struct tide_agent *a, struct str text)
{
    agent_message(a, "message.user", agent_turn(a));
    json_out_kstr(&a->draft.out, STR("content"), text);
    agent_images_put(a, &a->draft.out);
    agent_close(a);
}

void agent_started(struct tide_agent *a, const char *task)
{
    fire_hook(a, HOOK_AGENT_START, str_from(task), false);
}

/* The prompt, into the same append as the start of the run and the first request: one sync, while the model works. */
static enum tide_code put_prompt(struct tide_agent *a, const char *prompt, struct tide_err *err)
{
    enum tide_code code;

    if (is_waiting(a))
        agent_notice(a, "not answered, and withdrawn by this prompt: %s",
                     a->s->state->ledger.run.question ? a->s->state->ledger.run.question : "what it waited for");
    agent_put_provider(a);
    code = agent_close_calls(a, err);
    if (code)
        return code;
    agent_say(a, str_from(prompt));
    return TIDE_OK;
}

enum tide_code tide_agent_run(tide_agent *a, const char *prompt, struct tide_text *ret_answer, struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    if (a->run)
        return tide_fail(err, TIDE_INVALID, "this agent is already running");
    if (str_is_blank(str_from(prompt))) /* providers refuse one of blanks */
        return tide_fail(err, TIDE_INVALID, "the prompt is empty");
    if (!str_is_utf8(str_from(prompt), NULL))
        return tide_fail(err, TIDE_INVALID, "the prompt is not valid UTF-8");
    atomic_store(&a->stop, STOP_NOT); /* once: what comes from now on counts, however often it is tried */
    for (int i = 0; i < TRIES; i++) {
        begin_run(a);
        code = agent_read(a, err);
        code = code ? code : put_prompt(a, prompt, err);
        if (!code) {
            agent_started(a, prompt);
            code = agent_work(a, err);
        }
        if (code != TIDE_CONFLICT || (a->begun && !(a->run && a->run->starting)))
            break;
        a->known_seq = -1; /* somebody came between: nothing of it was begun */
        tide_run_close(TAKE(a->run));
    }
    agent_images_drop(a);
    return conclude_run(a, code, ret_answer, err);
}

/* Whether there is something to summarise, and nothing that is owed: a call without a result would be lost. */
static enum tide_code check_compact(struct tide_agent *a, struct tide_err *err)
{
    const char *id = a->s->head.id;

    if (is_waiting(a) || conversation_open(&a->conversation) || conversation_is_owed(&a->conversation)) {
        tide_fail_session(err, TIDE_CONFLICT, id, "has a prompt without an answer: resume it, or send another prompt");
        return tide_hint(err, TIDE_ACTION_RESUME, id);
    }
    if (!a->conversation.n || (a->conversation.n == 1 && a->conversation.said[0]->summary))
        return tide_fail_session(err, TIDE_NOT_FOUND, id, "has nothing to summarise");
    return TIDE_OK;
}

enum tide_code tide_agent_compact(tide_agent *a, const char *focus, struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    if (a->run)
        return tide_fail(err, TIDE_INVALID, "this agent is already running");
    if (focus && !str_is_utf8(str_from(focus), NULL))
        return tide_fail(err, TIDE_INVALID, "the focus is not valid UTF-8");
    atomic_store(&a->stop, STOP_NOT);
    begin_run(a);
    code = agent_read(a, err);
    code = code ? code : check_compact(a, err);
    if (code) {
        session_be_quick(a->s);
        return code;
    }
    agent_put_provider(a);
    code = budget_check(a, err);
    code = code ? code : agent_summarise(a, focus, err);
    return conclude_run(a, code, NULL, err);
}

enum tide_code agent_go_on(struct tide_agent *a, const char *input, const char *token, struct tide_err *err)
{
    struct tide_run_options opt = run_options(a);
    const char *before = a->s->state->ledger.run.run_id;
    char old[TIDE_ID_SIZE];
    enum tide_code code;

    snprintf(old, sizeof(old), "%s", before ? before : "");
    opt.input = input;
    opt.token = token;
    code = tide_run_resume(a->s, &opt, NULL, &a->run, err);
    if (code)
        return code;
    a->begun = true;
    a->place.run_id = a->run->id;
    agent_log_begin(a);
    if (old[0])
        tree_end_run(old); /* what a killed process of it left behind */
    return TIDE_OK;
}

static const char *wait_now(struct tide_agent *a)
{
    const struct run *r = &a->s->state->ledger.run;

    return arena_printf(&a->scratch, "%s %" PRId64, r->wait_key ? r->wait_key : "", r->since_seq);
}

/* A token for the very wait that was answered: while a person thought, another may have answered, and it may wait anew. */
static enum tide_code bind_answer(struct tide_agent *a, const char *wait, const char **ret_token, struct tide_err *err)
{
    enum tide_code code = session_sync(a->s, err);

    if (!code && strcmp(wait, wait_now(a)) == 0)
        code = tide_token_rotate(a->s, 0, 0, a->token, err);
    if (code)
        return code;
    if (strcmp(wait, wait_now(a)) != 0) {
        tide_fail(err, TIDE_CONFLICT, "this question has been answered meanwhile");
        return tide_hint(err, TIDE_ACTION_WHY, a->s->head.id);
    }
    *ret_token = arena_dup(&a->scratch, str_from(a->token)).ptr;
    a->token[0] = '\0';
    a->begun = true;
    return TIDE_OK;
}

/* A wait that nobody answered yet: a person who is present may. */
static enum tide_code answer_here(struct tide_agent *a, const char **ret_input, const char **ret_token,
                                  struct tide_err *err)
{
    const struct run *r = &a->s->state->ledger.run;
    const struct message_kept *open = conversation_open(&a->conversation);
    struct tide_text reason = {NULL, 0};
    struct tide_approval ask = {.question = arena_dup(&a->scratch, str_from(r->question)).ptr, .reason = &reason};
    const char *wait = wait_now(a);
    enum tide_decision d;

    for (size_t i = 0; open && i < open->m.n_calls && !ask.tool; i++)
        if (!conversation_has_result(&a->conversation, open, open->m.calls[i].id)) {
            ask.tool = open->m.calls[i].name.ptr;
            ask.args = conversation_args(&a->conversation, &open->m.calls[i]).ptr;
        }
    if (str_starts(str_from(r->wait_name), STR("budget")))
        ask.tool = ask.args = NULL;
    d = a->opt.approve ? a->opt.approve(a->opt.arg, &ask) : TIDE_DECIDE_LATER;
    if (d == TIDE_DECIDE_LATER) {
        tide_text_done(&reason);
        return tide_fail(err, TIDE_WAITING, "it waits for an approval: %s", ask.question);
    }
    if (d == TIDE_DECIDE_ALWAYS && ask.tool)
        map_put(&a->always, str_from(ask.tool), (void *)(uintptr_t) "");
    *ret_input = agent_answer(a, d, &reason);
    return bind_answer(a, wait, ret_token, err);
}

static enum tide_code take_up(struct tide_agent *a, const char *input, const char *token, struct tide_err *err)
{
    const struct run *r;
    enum tide_code code = TIDE_OK;

    if (!input && !token && is_waiting(a))
        code = answer_here(a, &input, &token, err);
    if (code)
        return code;
    r = &a->s->state->ledger.run;
    if (token || (r->end != RUN_NONE && r->end != RUN_COMPLETED)) { /* what is wrong with a token is said by its name */
        a->fresh = r->end == RUN_INTERRUPTED || r->end == RUN_OPEN;
        return agent_go_on(a, input, token, err);
    }
    if (input) {
        tide_fail_session(err, TIDE_WRONG_STATE, a->s->head.id, "does not wait for an answer");
        return tide_hint_with(err, TIDE_ACTION_REPEAT, a->s->head.id, "\"input\":false");
    }
    if (!conversation_is_owed(&a->conversation) && !conversation_open(&a->conversation) &&
        !a->s->state->ledger.queue.live) {
        tide_fail(err, TIDE_NOT_FOUND, "nothing is left to do in session '%s'", a->s->head.id);
        return tide_hint_with(err, TIDE_ACTION_PROMPT, a->s->head.id, "\"text\":null");
    }
    agent_put_provider(a);
    return agent_start(a, false, err);
}

enum tide_code tide_agent_resume(tide_agent *a, const char *input, const char *token, struct tide_text *ret_answer,
                                 struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    if (a->run)
        return tide_fail(err, TIDE_INVALID, "this agent is already running");
    atomic_store(&a->stop, STOP_NOT); /* once, as above */
    for (int i = 0; i < TRIES; i++) {
        begin_run(a);
        code = agent_read(a, err);
        code = code ? code : take_up(a, input, token, err);
        if (code != TIDE_CONFLICT || a->begun || a->opt.approve)
            break;
    }
    /* Another may have continued with it, and ended, between our look and our start: more than what a start writes is there. */
    if (!code && a->s->state->ledger.run.active_seq - a->known_seq > START_EVENTS)
        code = conversation_load(&a->conversation, a->s, err);
    if (code && !a->run) {
        session_be_quick(a->s);
        return code;
    }
    code = code ? code : agent_work(a, err);
    return conclude_run(a, code, ret_answer, err);
}

static void stop_by(tide_agent *a, int who)
{
    int expected = STOP_NOT;

    atomic_compare_exchange_strong(&a->stop, &expected, who);
}

void tide_agent_stop(tide_agent *a)
{
    stop_by(a, STOP_BY_PERSON);
}

void tide_agent_shutdown(tide_agent *a)
{
    stop_by(a, STOP_BY_SHUTDOWN);
}
