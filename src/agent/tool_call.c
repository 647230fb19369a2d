/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tool calls, one after the other, in the order the model asked for them:
 *
 *   started before and cut?  once: nobody knows, which the model gets;  else it runs again with the same key
 *   not started:  hooks ─ permission ─ (a person's word, parked) ─ made ready ─ tool.started on disk ─ run ─ result
 *
 * What was asked about and allowed is bound to the very arguments: its id holds their digest. A result is recorded with the
 * end of its effect in one append, so that no call is ever left without one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "agent/agent.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/digest.h"
#include "base/yes_no.h"
#include "session/redact.h"

/* One call while it is dealt with. */
struct dealing {
    struct tide_agent *a;
    const struct model_call *call;
    struct str args;         /* as they are used: a hook may have changed them */
    struct str stored;       /* the same without secrets: what is reported and bound */
    const struct json *json; /* parsed */
    const struct tool *tool;
    int64_t turn;
    size_t index;
    char digest[17], key[33];
    bool hook_allows;
    struct str note; /* why a person allowed it: the model sees it with the result; empty: nothing was said */
};

/* ---- results ---- */

static struct json_out *open_result(struct dealing *c, struct str text, bool failed)
{
    struct json_out *o = agent_message(c->a, "message.tool", c->turn);

    if (c->note.len)
        text = str_from(
            arena_printf(&c->a->scratch, "%.*s\n\n[allowed by the user: %.*s]", STR_ARG(text), STR_ARG(c->note)));

    json_out_kstr(o, STR("tool_call_id"), c->call->id);
    json_out_kstr(o, STR("tool_name"), c->call->name);
    json_out_kstr(o, STR("content"), text);
    if (failed)
        json_out_kbool(o, STR("is_error"), true);
    return o;
}

static void put_result(struct dealing *c, struct str text, bool failed)
{
    open_result(c, text, failed);
    agent_close(c->a);
}

static void tell_call(struct dealing *c, enum tide_agent_what what, struct str text, bool failed, int64_t ms)
{
    agent_tell(c->a, &(struct tide_agent_event){
                         .what = what,
                         .turn = c->turn,
                         .text = text.ptr,
                         .text_len = text.len,
                         .tool = str_from(arena_dup(&c->a->scratch, c->call->name).ptr).ptr,
                         .call_id = arena_dup(&c->a->scratch, c->call->id).ptr,
                         .args = arena_dup(&c->a->scratch, c->stored).ptr,
                         .failed = failed,
                         .ms = ms,
                     });
}

/* A call that is not run: the model gets the reason. */
static void refuse_call(struct dealing *c, const char *why)
{
    log_write(TIDE_LOG_WARN, "tool call refused", log_text("session", c->a->id),
              log_text("tool", arena_dup(&c->a->scratch, c->call->name).ptr),
              log_text("call", arena_dup(&c->a->scratch, c->call->id).ptr));
    tell_call(c, TIDE_AGENT_TOOL, STR(""), false, 0);
    tell_call(c, TIDE_AGENT_TOOL_END, str_from(why), true, 0);
    put_result(c, str_from(why), true);
}

static struct json_out *open_effect(struct dealing *c, const char *kind)
{
    struct json_out *o = agent_open(c->a, kind, c->turn);

    json_out_kstr(o, STR("call_id"), c->call->id);
    json_out_kstr(o, STR("tool"), c->call->name);
    return o;
}

static const char unknown_text[] =
    "outcome unknown: this call was interrupted while it ran, and must not be repeated blindly. Find out whether it "
    "happened before you do anything like it again.";
static const char redacted_cut_text[] =
    "outcome unknown: this call was interrupted while it ran, and its arguments contained a secret that is not "
    "stored, so it is not run again from the log. Find out whether it happened, and ask the user before you do "
    "anything like it again.";
static const char redacted_text[] =
    "not run: the session was interrupted before this call began, and its arguments contained a secret that is not "
    "stored, so it is not run from the log. Ask the user whether it is still wanted.";
static const char lost_text[] =
    "outcome unknown: this call ran to its end, but its result was not stored, and it must not be repeated blindly. "
    "Find out what it did before you do anything like it again.";

/* ---- hooks around it ---- */

static void take_args(struct dealing *c, struct str args)
{
    struct json *json = NULL;

    c->args = c->stored = args;
    c->json = json_parse(&c->a->scratch, args, NULL, &json, NULL, NULL) ? NULL : json;
    redact_json(c->a->s->store, &c->a->scratch, &c->stored);
    digest_name(c->digest, c->stored);
}

static struct hook_input hook_input(const struct dealing *c, enum hook_event event)
{
    return (struct hook_input){.event = event,
                               .session_id = c->a->id,
                               .turn = c->turn,
                               .tool = c->call->name,
                               .call_id = c->call->id,
                               .args = c->args};
}

/* False: it was denied, and has its result. */
static bool ask_hooks(struct dealing *c)
{
    struct hook_input in = hook_input(c, HOOK_PRE_TOOL_USE);
    struct hook_verdict v;

    agent_hook(c->a, &in, &v);
    if (v.action == HOOK_DENY) {
        refuse_call(c, arena_printf(&c->a->scratch, "denied by hook '%.*s'%s%.*s", STR_ARG(v.hook),
                                    v.text.len ? ": " : "", STR_ARG(v.text)));
        return false;
    }
    c->hook_allows = v.action == HOOK_ALLOW;
    if (v.action == HOOK_MODIFY_ARGS) {
        take_args(c, v.text);
        log_write(TIDE_LOG_DEBUG, "tool arguments changed by a hook", log_text("session", c->a->id),
                  log_number("turn", c->turn), log_text("hook", arena_dup(&c->a->scratch, v.hook).ptr),
                  log_text("tool", arena_dup(&c->a->scratch, c->call->name).ptr),
                  log_text("args", arena_dup(&c->a->scratch, c->stored).ptr));
        agent_notice(c->a, "hook '%.*s' changed the arguments of %.*s", STR_ARG(v.hook), STR_ARG(c->call->name));
    }
    return true;
}

static void hooks_after(struct dealing *c, struct str text, bool failed)
{
    struct hook_input in = hook_input(c, failed ? HOOK_POST_TOOL_USE_FAILURE : HOOK_POST_TOOL_USE);
    struct hook_verdict v;

    *(failed ? &in.error : &in.result) = text;
    agent_hook(c->a, &in, &v);
    if (v.action == HOOK_STOP)
        agent_stop_by_hook(c->a, &v);
    else
        agent_note(c->a, &v, c->turn);
}

/* ---- permission ---- */

const char *agent_answer(struct tide_agent *a, enum tide_decision decision, struct tide_text *reason)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct str why = str_trim((struct str){reason->ptr ? reason->ptr : "", reason->len});
    struct str word = decision == TIDE_DECIDE_DENY ? STR("\"deny\"") : STR("\"allow\"");

    if (why.len && str_is_utf8(why, NULL))
        yes_no_put_reason(&out, word, why);
    else
        buf_add_str(&out, word);
    tide_text_done(reason);
    return arena_dup(&a->scratch, buf_view(&out)).ptr;
}

/* It is parked. Asks the person who is present; TIDE_WAITING when nobody is, or later. */
static enum tide_code ask_here(struct tide_agent *a, const char *question, const struct model_call *call,
                               struct tide_err *err)
{
    struct tide_text reason = {NULL, 0};
    struct tide_approval ask = {.question = question, .token = a->token, .reason = &reason};
    struct tide_err waiting = *err;
    char token[TIDE_TOKEN_SIZE];
    enum tide_decision d;
    enum tide_code code;

    tide_run_close(TAKE(a->run));
    if (!a->opt.approve)
        return waiting.code;
    if (call) {
        ask.tool = arena_dup(&a->scratch, call->name).ptr;
        ask.args = arena_dup(&a->scratch, call->args).ptr;
    }
    d = a->opt.approve(a->opt.arg, &ask);
    if (d == TIDE_DECIDE_LATER) {
        tide_text_done(&reason);
        return tide_err_copy(err, &waiting);
    }
    if (d == TIDE_DECIDE_ALWAYS && call)
        map_put(&a->always, call->name, (void *)(uintptr_t) "");
    memcpy(token, a->token, sizeof(token));
    a->token[0] = '\0';
    /* Its token: by now another question may be the one that waits. */
    code = agent_go_on(a, agent_answer(a, d, &reason), token, err);
    if (code < TIDE_TOKEN_MALFORMED || code > TIDE_TOKEN_CONSUMED)
        return code;
    tide_fail(err, TIDE_CONFLICT, "this question has been answered elsewhere");
    return tide_hint(err, TIDE_ACTION_WHY, a->s->head.id);
}

/* Written before it is asked, in the log as well as in the wait: a reader of either knows what it is about. */
static enum tide_code put_asked(struct tide_agent *a, const char *approval_id, const char *question,
                                const struct model_call *call, const char *digest, struct tide_err *err)
{
    if (!map_get(&a->conversation.asked, str_from(approval_id))) {
        agent_open(a, "approval.requested", 0);
        draft_text(&a->draft, "approval_id", approval_id);
        if (call) {
            json_out_kstr(&a->draft.out, STR("call_id"), call->id);
            json_out_kstr(&a->draft.out, STR("tool"), call->name);
        }
        draft_text(&a->draft, "args_digest", digest);
        if (call)
            json_out_kraw(&a->draft.out, STR("args"), call->args);
        draft_text(&a->draft, "question", question);
        agent_close(a);
    }
    return agent_append(a, false, err);
}

void agent_put_given(struct tide_agent *a, const char *approval_id, bool allowed, struct str reason)
{
    agent_open(a, "approval.given", 0);
    draft_text(&a->draft, "approval_id", approval_id);
    draft_text(&a->draft, "decision", allowed ? "allow" : "deny");
    draft_text(&a->draft, "by", "person");
    if (reason.len)
        json_out_kstr(&a->draft.out, STR("reason"), reason);
    agent_close(a);
}

/* What is neither was refused when it was given; earlier versions took it as a no, and what was said as its reason. */
void agent_decision(struct tide_agent *a, struct str answer, bool *ret_allowed, struct str *ret_reason)
{
    struct json *json = NULL;

    *ret_allowed = false;
    *ret_reason = STR("");
    if (json_parse(&a->scratch, arena_dup(&a->scratch, answer), NULL, &json, NULL, NULL))
        return;
    *ret_allowed = yes_no_read(&a->scratch, json) == YES_NO_YES;
    *ret_reason =
        json->type == JSON_STRING ? json_text(&a->scratch, json) : json_get_text(&a->scratch, json, STR("reason"));
    if (json->type == JSON_STRING && yes_no_word(*ret_reason))
        *ret_reason = STR("");
}

/* Parks, or, nested, says what is to be parked for. */
static enum tide_code wait_for(struct tide_agent *a, const struct tide_wait_options *wait,
                               const struct model_call *call, struct tide_text *ret_answer, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    if (a->nested)
        return nested_answer(a, wait, ret_answer, err);
    while (!code && (code = tide_run_wait(a->run, wait, ret_answer, a->token, err)) == TIDE_WAITING)
        code = ask_here(a, wait->question, call, err);
    return code;
}

enum tide_code agent_approval(struct tide_agent *a, const char *name, const char *approval_id, const char *question,
                              const struct model_call *call, bool *ret_allowed, struct str *ret_reason,
                              struct tide_err *err)
{
    const char *shown = redact_text(a->s->store, &a->scratch, str_from(question)).ptr;
    const struct tide_wait_options wait = {
        .size = sizeof wait, .name = name, .kind = TIDE_WAIT_APPROVAL, .question = shown};
    const char *before = map_get(&a->conversation.decisions, str_from(approval_id));
    struct tide_text answer = {NULL, 0};
    char digest[17];
    enum tide_code code;

    if (before) { /* given in this conversation already */
        agent_decision(a, str_from(before), ret_allowed, ret_reason);
        return TIDE_OK;
    }
    digest_name(digest, call ? call->args : STR(""));
    code = put_asked(a, approval_id, shown, call, digest, err);
    code = code ? code : wait_for(a, &wait, call, &answer, err);
    if (code)
        return code;
    agent_decision(a, (struct str){answer.ptr, answer.len}, ret_allowed, ret_reason);
    tide_text_done(&answer);
    agent_put_given(a, approval_id, *ret_allowed, *ret_reason);
    return TIDE_OK;
}

/* What is too long for one line is whole in the log: a person who answers elsewhere sees where. */
static const char *question_of(struct dealing *c)
{
    AUTO(buf_done) struct buf summary = BUF_INIT(4096);

    tool_summary(&summary, c->call->name, c->json);
    if (memmem(summary.ptr, summary.len, "…", 3))
        return arena_printf(&c->a->scratch, "allow %.300s? (shortened: approval.requested in the log has all of it)",
                            buf_cstr(&summary));
    return arena_printf(&c->a->scratch, "allow %.300s?", buf_cstr(&summary));
}

/* *ret_run: it may run. Else it has its result, or the code says why not. */
static enum tide_code ask_permission(struct dealing *c, bool *ret_run, struct tide_err *err)
{
    struct model_call bound = {c->call->id, c->call->name, c->stored};
    enum tide_permission p = permits_ask(c->a->permits, c->tool, c->json);
    struct str reason = {"", 0}, rule = permits_rule(c->a->permits, c->tool, c->json);
    const char *id, *name;
    bool allowed = true;
    enum tide_code code;

    if (p == TIDE_PERMISSION_DENY) {
        *ret_run = false;
        refuse_call(c, arena_printf(&c->a->scratch, "denied by the permission rule %.*s", STR_ARG(rule)));
        return TIDE_OK;
    }
    *ret_run = true;
    if (p == TIDE_PERMISSION_ALLOW || c->hook_allows || map_get(&c->a->always, c->call->name))
        return TIDE_OK;
    id = arena_printf(&c->a->scratch, "%.*s.%.8s", STR_ARG(c->call->id), c->digest);
    name = arena_printf(&c->a->scratch, "approve %" PRId64 ".%zu %.8s", c->turn, c->index + 1, c->digest);
    code = agent_approval(c->a, name, id, question_of(c), &bound, &allowed, &reason, err);
    if (code)
        return code;
    *ret_run = allowed;
    c->note = allowed ? arena_dup(&c->a->scratch, reason) : STR("");
    if (!allowed)
        refuse_call(c, reason.len ? arena_printf(&c->a->scratch, "denied by the user: %.*s", STR_ARG(reason))
                                  : "denied by the user");
    return TIDE_OK;
}

/* ---- running ---- */

static void put_started(struct dealing *c, const struct proc *p, int attempt)
{
    struct json_out *o = open_effect(c, "tool.started");

    draft_text(&c->a->draft, "args_digest", c->digest);
    draft_text(&c->a->draft, "effect", tide_effect_name(c->tool->effect));
    draft_text(&c->a->draft, "key", c->key);
    json_out_kint(o, STR("attempt"), attempt);
    if (p->pid > 0) {
        json_out_kint(o, STR("pid"), p->pid);
        json_out_kint(o, STR("pid_start"), (int64_t)p->start);
    }
    agent_close(c->a);
}

/* One that ran to its end has happened, whatever it said; one that was ended half-way is known to be nothing else. */
static void put_ended(struct dealing *c, const struct tool_result *r)
{
    struct json_out *o = open_effect(c, r->unknown ? "tool.unknown" : "tool.completed");

    if (r->unknown)
        json_out_kstr(o, STR("settled"), STR("ended half-way"));
    json_out_kint(o, STR("bytes"), (int64_t)r->text.len);
    agent_close(c->a);
    o = open_result(c, buf_view(&r->text), r->failed);
    if (r->replaced)
        json_out_kbool(o, STR("replaced"), true);
    if (r->redacted)
        json_out_kbool(o, STR("redacted"), true);
    agent_close(c->a);
}

static enum tide_code run_tool(struct dealing *c, int attempt, struct tide_err *err)
{
    struct tool_work work = {.tool = c->tool, .place = &c->a->place, .args = c->json, .key = c->key, .out = -1};
    struct tool_result result = {.text = BUF_INIT(TOOL_RESULT_MAX)};
    struct tide_err bad = {0};
    int64_t began;
    enum tide_code code;

    work.proc = (struct proc)PROC_INIT;
    if (tool_prepare(&work, &bad)) {
        refuse_call(c, arena_printf(&c->a->scratch, "%s", bad.msg));
        tool_drop(&work);
        return TIDE_OK;
    }
    put_started(c, &work.proc, attempt);
    code = agent_append(c->a, c->tool->effect == TIDE_EFFECT_PURE, err);
    if (!code) {
        tell_call(c, TIDE_AGENT_TOOL, STR(""), false, 0);
        began = monotonic_ms();
        INVARIANT(!c->a->draft.n); /* its start is on disk, and all before it */
        agent_unlock(c->a);
        tool_run(&work, &result);
        agent_lock(c->a);
        put_ended(c, &result);
        tell_call(c, TIDE_AGENT_TOOL_END, buf_view(&result.text), result.failed, monotonic_ms() - began);
        hooks_after(c, redact_text(c->a->s->store, &c->a->scratch, buf_view(&result.text)), result.failed);
    }
    tool_drop(&work);
    tool_result_done(&result);
    return code;
}

static void put_settled(struct dealing *c, const char *kind, const char *how)
{
    struct json_out *o = open_effect(c, kind);

    json_out_kstr(o, STR("settled"), str_from(how));
    agent_close(c->a);
}

static void settle_as(struct dealing *c, const char *text, bool failed)
{
    tell_call(c, TIDE_AGENT_TOOL, STR(""), false, 0);
    tell_call(c, TIDE_AGENT_TOOL_END, str_from(text), failed, 0);
    put_result(c, str_from(text), failed);
}

/* Whether it happened, as far as the tool can find out by looking; what it left ready is taken away. */
static enum tool_fate look_at_permission(struct dealing *c)
{
    struct tool_work work = {.tool = c->tool, .place = &c->a->place, .args = c->json, .key = c->key, .out = -1};
    enum tool_fate fate;

    if (!c->json)
        return FATE_UNKNOWN;
    work.proc = (struct proc)PROC_INIT;
    agent_unlock(c->a);
    fate = tool_fate(&work);
    tool_drop(&work);
    agent_lock(c->a);
    return fate;
}

/* Started, and there is no result. Whatever runs again does so with the arguments it was started with. */
static enum tide_code settle_call(struct dealing *c, const struct recorded *m, struct tide_err *err)
{
    enum tool_fate fate = FATE_DID_NOT;

    take_args(c, arena_dup(&c->a->scratch, conversation_args(&c->a->conversation, c->call)));
    if (strcmp(c->digest, m->args) != 0)
        take_args(c, c->call->args);
    if (m->seq < c->a->s->state->ledger.trusted_seq)
        fate = FATE_UNKNOWN; /* begun elsewhere: that it was allowed there, and what it is, the log alone says */
    else if (m->once)
        fate = m->state == RECORDED_COMPLETED ? FATE_UNKNOWN : look_at_permission(c);
    if (fate == FATE_DID_NOT)
        return run_tool(c, m->attempt + 1, err);
    if (fate == FATE_HAPPENED) {
        put_settled(c, "tool.completed", "probe: it had happened");
        settle_as(c, "done: this call was interrupted before it could answer, but its work is done", false);
        return TIDE_OK;
    }
    if (m->state == RECORDED_STARTED)
        put_settled(c, "tool.unknown", "interrupted: outcome unknown");
    settle_as(c, m->state == RECORDED_COMPLETED ? lost_text : unknown_text, true);
    return TIDE_OK;
}

/* It touches nothing outside: the value and the result for the model, in one append, are all there is to record. */
static void take_output(struct dealing *c)
{
    AUTO(buf_done) struct buf text = BUF_INIT(TOOL_RESULT_MAX);
    bool failed;

    tell_call(c, TIDE_AGENT_TOOL, STR(""), false, 0);
    failed = !nested_output(c->a, c->json, &text);
    tell_call(c, TIDE_AGENT_TOOL_END, buf_view(&text), failed, 0);
    put_result(c, buf_view(&text), failed);
    hooks_after(c, buf_view(&text), failed);
}

/* It happened in a part that was rolled back, by whom it was decided that it does not happen again. */
static bool answer_from_past(struct dealing *c)
{
    struct undone_result past;
    struct json_out *o;

    if (c->tool->effect != TIDE_EFFECT_ONCE || !undone_take(c->a, c->call, c->digest, &past))
        return false;
    if (!past.known)
        past = (struct undone_result){past.call_id, str_from(unknown_text), true, false};
    tell_call(c, TIDE_AGENT_TOOL, STR(""), false, 0);
    tell_call(c, TIDE_AGENT_TOOL_END, past.text, past.failed, 0);
    o = open_result(c, past.text, past.failed);
    json_out_kstr(o, STR("reused"), past.call_id);
    agent_close(c->a);
    return true;
}

/* Its arguments held a secret, and nobody has them any more: it is not run with what is stored of them. */
static bool answer_redacted(struct dealing *c, const struct recorded *m)
{
    if (!map_get(&c->a->conversation.redacted, c->call->id) || map_get(&c->a->real, c->call->id))
        return false;
    agent_notice(c->a,
                 "%.*s was interrupted, and its arguments contained a secret that is not stored: it is not run "
                 "from the log",
                 STR_ARG(c->call->name));
    if (m && m->state == RECORDED_STARTED)
        put_settled(c, "tool.unknown", "redacted: its arguments are not stored as they were");
    settle_as(c, m ? redacted_cut_text : redacted_text, true);
    return true;
}

static void refuse_unknown(struct dealing *c)
{
    AUTO(buf_done) struct buf names = BUF_INIT(4096);

    agent_tool_names(c->a, &names);
    refuse_call(c, arena_printf(&c->a->scratch, "there is no tool '%.*s': there are %s",
                                (int)(c->call->name.len > 100 ? 100 : c->call->name.len), c->call->name.ptr,
                                buf_cstr(&names)));
}

static enum tide_code deal_with_call(struct dealing *c, struct tide_err *err)
{
    struct tide_run *run = c->a->run;
    const struct recorded *m;
    const char *real =
        map_get(&c->a->real, c->call->id); /* as the model gave them, where this process has them still */
    bool go_on = true;
    enum tide_code code = chain_find(c->a->s, &run->done, &run->done.steps, c->call->id, &m, err);

    if (code)
        return code;
    INVARIANT(!conversation_has_result(&c->a->conversation, conversation_open(&c->a->conversation), c->call->id));
    c->tool = agent_tool(c->a, c->call->name);
    take_args(c, real ? str_from(real) : c->call->args);
    run_idempotency(c->key, c->a->run, arena_dup(&c->a->scratch, c->call->id).ptr);
    if (!c->tool) {
        refuse_unknown(c);
        return TIDE_OK;
    }
    if (c->json && json_get(c->json, STR("_malformed"))) {
        refuse_call(c, "the arguments are not valid JSON: give one object");
        return TIDE_OK;
    }
    if (answer_from_past(c))
        return TIDE_OK;
    if (!m && map_get(&c->a->conversation.inherited, c->call->id)) {
        /* Begun in what a fork took over: the run of the fork has no mark of it, and it is as unknown as it was there. */
        settle_as(c, unknown_text, true);
        return TIDE_OK;
    }
    if (answer_redacted(c, m))
        return TIDE_OK;
    if (m && (m->state == RECORDED_STARTED || m->state == RECORDED_UNKNOWN || m->state == RECORDED_COMPLETED))
        return settle_call(c, m, err);
    if (!ask_hooks(c))
        return TIDE_OK;
    if (answer_from_past(c)) /* with the arguments that a hook put in place */
        return TIDE_OK;
    if (agent_stopped(c->a)) /* a hook that was ended with it has not said what it would have */
        return agent_fail_stopped(c->a, err);
    if (c->a->nested && str_eq(c->call->name, STR(SET_OUTPUT))) {
        take_output(c);
        return TIDE_OK;
    }
    code = ask_permission(c, &go_on, err);
    if (code || !go_on)
        return code;
    return agent_stopped(c->a) ? agent_fail_stopped(c->a, err) : run_tool(c, 0, err);
}

enum tide_code agent_calls(struct tide_agent *a, struct tide_err *err)
{
    const struct message_kept *open = conversation_open(&a->conversation);
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; open && i < open->m.n_calls && !code; i++) {
        struct dealing c = {.a = a, .call = &open->m.calls[i], .turn = open->turn, .index = i};

        if (conversation_has_result(&a->conversation, open, c.call->id))
            continue;
        if (agent_stopped(a))
            return agent_fail_stopped(a, err);
        if (a->draft.n > DRAFT_EVENTS / 2)
            code = agent_put(a, err);
        code = code ? code : deal_with_call(&c, err);
    }
    return code;
}

enum tide_code agent_close_calls(struct tide_agent *a, struct tide_err *err)
{
    const struct message_kept *open = conversation_open(&a->conversation);
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; open && i < open->m.n_calls && !code; i++) {
        struct dealing c = {.a = a, .call = &open->m.calls[i], .turn = open->turn, .index = i};
        bool begun = map_get(&a->s->state->ledger.effects, c.call->id) != NULL;

        if (conversation_has_result(&a->conversation, open, c.call->id))
            continue;
        if (a->draft.n > DRAFT_EVENTS / 3) /* the prompt and the first request must find room behind them */
            code = agent_append(a, false, err);
        put_result(&c,
                   str_from(begun
                                ? unknown_text
                                : "not run: the user stopped this turn, or did not allow it, and sent another prompt"),
                   true);
    }
    return code;
}
