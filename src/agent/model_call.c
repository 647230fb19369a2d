/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model call. The request is recorded by the digests of its parts before it is sent, and goes to disk while the model
 * works; nothing of the answer is shown before that. A failed attempt is a row of its own, with the time of the next one,
 * so that a restart in the middle of a pause does not begin it anew.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "agent/agent.h"
#include "base/invariant.h"
#include "agent/http.h"
#include "base/digest.h"
#include "base/timefmt.h"
#include "base/utf8.h"
#include "session/redact.h"
#include "session/retry.h"
#include "session/usage_json.h"

#define SLEEP_PIECE_MS 50
#define TICK_MS 100

/* ---- what is sent ---- */

/* As it is stored: that is sent. */
static const char *clean_text(struct tide_agent *a, const char *text)
{
    return redact_text(a->s->store, &a->scratch, str_from(text)).ptr;
}

static const char *own_prompt(struct tide_agent *a)
{
    char now[TIME_TEXT_SIZE];

    if (a->opt.system_prompt)
        return clean_text(a, a->opt.system_prompt);
    time_format(now, env_now_ms(a->s->store->env));
    return clean_text(
        a, arena_printf(&a->scratch,
                        "You are an agent that works in the directory %s with the tools you are given. Look before you "
                        "change something, keep changes small, and say plainly what you did and what you could not do. "
                        "When a result says that the outcome of a call is unknown, find out before you do it again. "
                        "Today is %.10s.",
                        a->place.cwd, now));
}

/* *ret_instructions_at: where the project's instructions begin in it; 0: it has none. */
static struct str render_system(struct tide_agent *a, size_t *ret_instructions_at)
{
    const char *own = own_prompt(a);

    if (!a->opt.instructions)
        return str_from(own);
    *ret_instructions_at = strlen(own) + 2;
    return str_from(arena_printf(&a->scratch, "%s\n\n%s", own, clean_text(a, a->opt.instructions)));
}

/* What is stored is sent again, byte for byte; that something would be rendered differently now is only said. */
static void look_for_drift(struct tide_agent *a, struct str list)
{
    struct str own, instructions;

    if (a->drift_looked || !a->conversation.tools)
        return;
    a->drift_looked = true;
    own = conversation_system(&a->conversation, &instructions);
    if (!str_eq(list, str_from(a->conversation.tools)))
        agent_notice(a, "the tool list has changed since this conversation began: the stored one is sent "
                        "(refresh_prompt renders it again)");
    if (a->opt.system_prompt && !str_eq(own, str_from(clean_text(a, a->opt.system_prompt))))
        agent_notice(a, "the system prompt has changed since this conversation began: the stored one is sent "
                        "(refresh_prompt renders it again)");
    if (!a->nested && !str_eq(instructions, str_from(clean_text(a, a->opt.instructions ? a->opt.instructions : ""))))
        agent_notice(a, "the project's instructions have changed since this conversation began: the stored ones are "
                        "sent (refresh_prompt reads them again)");
}

size_t conversation_render(struct conversation *t, const struct provider *p, struct model_request *request,
                           struct str wish, struct arena *scratch, struct rendering *k, char digest[DIGEST_NAME_SIZE])
{
    size_t before, settled;

    if (!t->settled)
        k->settled = 0; /* what was sent before is not what begins this one */
    if (!provider_render_head(p, request, k))
        t->settled = 0;
    before = t->settled;
    request->messages = conversation_messages(t, scratch, wish, &request->n_messages, &settled);
    provider_render_rest(p, request, settled, k, digest);
    t->settled += settled;
    return before + request->n_messages;
}

/* Renders the request into a->rendering and puts llm.request into the draft. */
static void make_request(struct tide_agent *a, int64_t turn, struct str wish)
{
    AUTO(buf_done) struct buf list = BUF_INIT(SIZE_MAX / 4);
    bool anew = !a->conversation.system || !a->conversation.tools || a->opt.refresh_prompt;
    struct model_request req = {.model = str_from(a->model), .max_tokens = a->opt.max_answer_tokens};
    struct json_out *o;
    struct str offered;
    size_t instructions_at = 0, n;
    char digest[DIGEST_NAME_SIZE], request_digest[DIGEST_NAME_SIZE];

    if (anew || !a->drift_looked)
        agent_render_tools(a, &list);
    offered = buf_view(&list);
    redact_json(a->s->store, &a->scratch, &offered);
    look_for_drift(a, offered);
    req.system = anew ? render_system(a, &instructions_at) : str_from(a->conversation.system);
    req.tools = anew ? offered : str_from(a->conversation.tools);
    req.answers_left_out = a->conversation.answers_left_out;
    if (a->nested)
        req.part = nested_part(a);
    n = conversation_render(&a->conversation, a->provider, &req, wish, &a->scratch, &a->rendering, request_digest);
    o = agent_open(a, "llm.request", turn);
    json_out_kstr(o, STR("provider"), str_from(a->type));
    json_out_kstr(o, STR("model"), req.model);
    digest_name(digest, req.system);
    json_out_kstr(o, STR("system_digest"), str_from(digest));
    digest_name(digest, req.tools);
    json_out_kstr(o, STR("tools_digest"), str_from(digest));
    json_out_kstr(o, STR("request_digest"), str_from(request_digest));
    json_out_kint(o, STR("messages"), (int64_t)n);
    if (wish.len)
        json_out_kstr(o, STR("purpose"), STR("compact"));
    if (anew) {
        json_out_kstr(o, STR("system"), req.system);
        if (instructions_at)
            json_out_kint(o, STR("instructions_at"), (int64_t)instructions_at);
        json_out_kraw(o, STR("tools"), req.tools);
    }
    agent_close(a);
    a->opt.refresh_prompt = 0;
}

/* ---- listening ---- */

/* The prompt, and whatever else is queued, before anything that came of it. */
static bool is_on_disk(struct tide_agent *a)
{
    struct tide_err err;

    if (!a->broken.code && run_flush(a->run, &err))
        a->broken = err;
    return !a->broken.code;
}

static void on_text(void *arg, struct str piece)
{
    struct tide_agent *a = arg;
    bool locked = agent_hold(a);

    if (is_on_disk(a)) {
        a->text_shown = true;
        agent_tell_text(a, piece, false);
    }
    agent_restore(a, locked);
}

static bool on_idle(void *arg)
{
    struct tide_agent *a = arg;
    bool locked = agent_hold(a),
         stop = !a->s->owner.pending && !is_on_disk(a); /* on its way: the model works meanwhile */

    if (!stop) {
        agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_WAIT});
        stop = agent_stopped(a);
    }
    agent_restore(a, locked);
    return stop;
}

/* ---- attempts ---- */

static enum tide_code wait_until(struct tide_agent *a, int64_t at_ms, struct tide_err *err)
{
    struct env *env = a->s->store->env;
    int64_t ticked = 0, longest = a->opt.max_retry_after_ms;
    bool stop = false;

    longest = longest > RETRY_CAP_MS ? longest : RETRY_CAP_MS; /* more is a clock that was set back */
    agent_unlock(a);
    for (int64_t left; !stop && (left = at_ms - env_now_ms(env)) > 0 && left <= longest;) {
        env->ops->sleep_ms(env, left < SLEEP_PIECE_MS ? (int)left : SLEEP_PIECE_MS);
        if (env_now_ms(env) - ticked >= TICK_MS) {
            ticked = env_now_ms(env);
            agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_WAIT});
        }
        stop = agent_stopped(a);
    }
    agent_lock(a);
    return stop ? agent_fail_stopped(a, err) : TIDE_OK;
}

/* What the provider asks for, up to the limit; a longer pause is said to be cut. Negative: it asks for nothing. */
static int64_t asked_pause(struct tide_agent *a)
{
    struct model_fault *f = &a->fault;
    size_t len, room;
    char note[128];

    if (f->retry_after_ms <= a->opt.max_retry_after_ms)
        return f->retry_after_ms;
    snprintf(note, sizeof(note),
             " (asks for a pause of %s%" PRId64 " s, capped to %" PRId64 " s by max_retry_after_ms)",
             f->retry_after_ms < RETRY_AFTER_MAX_MS ? "" : "more than ", f->retry_after_ms / 1000,
             a->opt.max_retry_after_ms / 1000);
    room = sizeof(f->message) - 1 - strlen(note);
    len = utf8_clip(str_from(f->message), room).len;
    snprintf(f->message + len, sizeof(f->message) - len, "%s", note);
    return a->opt.max_retry_after_ms;
}

/* The row of a failed attempt, on disk; *ret_at: when the next one is due, 0 when there is none. */
static enum tide_code record_fault(struct tide_agent *a, int64_t turn, int attempt, int64_t *ret_at,
                                   struct tide_err *err)
{
    struct env *env = a->s->store->env;
    bool again = retry_helps(str_from(a->fault.code)) && attempt < a->opt.max_retries;
    struct json_out *o;
    uint32_t random;

    env->ops->random(env, &random, sizeof(random));
    *ret_at = again ? env_now_ms(env) + retry_delay_ms(a->opt.retry_base_delay_ms, attempt, random, asked_pause(a)) : 0;
    o = agent_open(a, "llm.error", turn);
    draft_text(&a->draft, "context", "llm_stream");
    json_out_kint(o, STR("attempt"), attempt);
    draft_text(&a->draft, "code", a->fault.code);
    draft_text(&a->draft, "message", a->fault.message);
    draft_time(&a->draft, "retry_at", *ret_at);
    agent_close(a);
    return agent_append(a, true, err);
}

static void tell_retry(struct tide_agent *a, int attempt, int64_t at_ms)
{
    int64_t delay = at_ms - env_now_ms(a->s->store->env);

    agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_RETRY,
                                             .text = a->fault.message,
                                             .text_len = strlen(a->fault.message),
                                             .attempt = attempt + 2,
                                             .attempts = a->opt.max_retries + 1,
                                             .delay_ms = delay > 0 ? delay : 0});
}

/* Where an interrupted run was in its attempts; 0 when this is another turn, or a new run. */
static int first_attempt(struct tide_agent *a, int64_t turn, int64_t *ret_wait_ms)
{
    bool goes_on = a->fresh && a->conversation.error.turn == turn && a->conversation.error.retry_at_ms;

    a->fresh = false;
    *ret_wait_ms = goes_on && !a->opt.retry_now ? a->conversation.error.retry_at_ms : 0;
    return goes_on ? a->conversation.error.attempt + 1 : 0;
}

static enum tide_code attempts(struct tide_agent *a, int64_t turn, struct model_answer *ret, struct tide_err *err)
{
    const struct model_listener listener = {.arg = a, .text = on_text, .idle = on_idle};
    int64_t at = 0;
    int attempt = first_attempt(a, turn, &at);
    enum tide_code code;

    for (;; attempt++) {
        code = wait_until(a, at, err);
        if (code)
            return code;
        a->text_shown = false;
        buf_clear(&a->stream.held);
        INVARIANT(attempt >= 0 && !a->draft.n); /* what is asked is on its way to the disk */
        agent_unlock(a);
        code = provider_call(a->provider, buf_view(&a->rendering.body), attempt, &listener, ret, &a->fault, err);
        agent_lock(a);
        if (code)
            secrets_clean_line(a->s->store->secrets, a->fault.message, sizeof(a->fault.message));
        if (!code && is_on_disk(a))
            return TIDE_OK;
        if (!code)
            model_answer_done(ret);
        if (a->text_shown)
            agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_DISCARD});
        if (a->broken.code || strcmp(a->fault.code, "cancelled") == 0)
            return agent_fail_stopped(a, err);
        code = run_flush(a->run, err);
        code = code ? code : record_fault(a, turn, attempt, &at, err);
        if (code)
            return code;
        if (!at)
            return fault_fail(&a->fault, TIDE_FAILED, err);
        tell_retry(a, attempt, at);
    }
}

/* ---- the answer ---- */

static void put_answer(struct tide_agent *a, const struct model_answer *answer, int64_t turn)
{
    static const char *const stops[] = {"end", "tools", "length", "refused"};
    struct json_out *o = agent_message(a, "message.assistant", turn);

    json_out_kstr(o, STR("content"), answer->text);
    if (answer->n_calls) {
        json_out_key(o, STR("tool_calls"));
        json_out_begin(o, '[');
        for (size_t i = 0; i < answer->n_calls; i++) {
            const struct model_call *c = &answer->calls[i];
            /* An id of the provider's is a name in the log: one that holds a secret is as good as none. */
            struct str given = secrets_find(a->s->store->secrets, c->id) ? STR("") : c->id, stored = c->args;
            struct str id = conversation_fresh_id(&a->conversation, &a->scratch, given, turn, i);

            /* Arguments are stored without what they hold, and it is run with them as they are: by this process, now. */
            if (redact_json(a->s->store, &a->scratch, &stored))
                map_set_text(&a->real, id, c->args);
            json_out_begin(o, '{');
            json_out_kstr(o, STR("id"), id);
            json_out_kstr(o, STR("name"), c->name);
            json_out_kraw(o, STR("args"), c->args);
            json_out_end(o, '}');
        }
        json_out_end(o, ']');
    }
    json_out_kstr(o, STR("stop"), str_from(stops[answer->stop]));
    if (answer->replaced)
        json_out_kbool(o, STR("replaced"), true);
    agent_close(a);
}

static void put_usage(struct tide_agent *a, const struct model_usage *u, int64_t turn)
{
    double cost = budget_cost(a, u);
    const struct tide_usage usage = {.input_tokens = u->input_tokens,
                                     .output_tokens = u->output_tokens,
                                     .cached_tokens = u->cached_tokens,
                                     .cost_nano = cost > 0 ? llround(cost * 1e9) : 0};
    struct json_out *o = agent_open(a, "llm.usage", turn);

    json_out_kstr(o, STR("model"), str_from(a->model));
    usage_put(o, &usage, USAGE_CACHED | (cost >= 0 ? USAGE_COST : 0)); /* no price is known: no cost */
    agent_close(a);
    agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_USAGE,
                                             .turn = turn,
                                             .input_tokens = u->input_tokens,
                                             .output_tokens = u->output_tokens,
                                             .cached_tokens = u->cached_tokens,
                                             .cost = cost > 0 ? cost : 0});
}

enum tide_code agent_ask(struct tide_agent *a, struct tide_err *err)
{
    struct model_answer answer = {.arena = ARENA_INIT};
    int64_t turn = agent_turn(a);
    enum tide_code code;

    arena_reset(&a->scratch);
    make_request(a, turn, STR(""));
    code = agent_put(a, err);
    code = code ? code : attempts(a, turn, &answer, err);
    if (code)
        return code;
    put_answer(a, &answer, turn);
    put_usage(a, &answer.usage, turn);
    agent_tell_text(a, STR(""), true);
    if (answer.text.len)
        agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_TEXT_END, .turn = turn});
    model_answer_done(&answer);
    return TIDE_OK;
}

/* ---- a summary ---- */

static const char compact_wish[] =
    "Summarise this conversation for yourself: you will go on with your summary in place of it. Keep what was asked for, "
    "what was decided and why, what was done (files, commands, results), what is still open, and every name and number "
    "that will be needed. Answer with the summary alone, and call no tool.";

static const char compact_head[] = "[Summary of the conversation so far; what was said itself is left out here]\n\n";

/* An answer that is no summary, as an attempt that failed: the conversation stays as it is. */
static enum tide_code refuse_summary(struct tide_agent *a, int64_t turn, const char *why, struct tide_err *err)
{
    a->fault = (struct model_fault){.code = "malformed", .retry_after_ms = -1};
    snprintf(a->fault.message, sizeof(a->fault.message), "%s", why);
    agent_open(a, "llm.error", turn);
    draft_text(&a->draft, "context", "compact");
    draft_text(&a->draft, "code", a->fault.code);
    draft_text(&a->draft, "message", why);
    agent_close(a);
    return tide_fail(err, TIDE_FAILED, "%s", why);
}

/* One event takes away what was said and puts the summary there: a process that is killed has one or the other. */
static void put_summary(struct tide_agent *a, int64_t turn, struct str summary)
{
    const struct tide_new_checkpoint in = {.size = sizeof in, .type = TIDE_CHECKPOINT_TURN};
    struct json_out *o = agent_message(a, "context.trimmed", turn);
    char id[TIDE_ID_SIZE];

    json_out_key(o, STR("dropped"));
    json_out_begin(o, '[');
    json_out_begin(o, '{');
    json_out_kstr(o, STR("from"), str_from(a->conversation.said[0]->id));
    json_out_kstr(o, STR("to"), str_from(a->conversation.said[a->conversation.n - 1]->id));
    json_out_kint(o, STR("messages"), (int64_t)a->conversation.n);
    json_out_end(o, '}');
    json_out_end(o, ']');
    json_out_kstr(o, STR("reason"), STR("compact"));
    json_out_kstr(o, STR("summary"), str_from(arena_printf(&a->scratch, "%s%.*s", compact_head, STR_ARG(summary))));
    agent_close(a);
    checkpoint_put(a->s, &a->draft, &in, id);
}

enum tide_code agent_summarise(struct tide_agent *a, const char *focus, struct tide_err *err)
{
    struct model_answer answer = {.arena = ARENA_INIT};
    int64_t turn = agent_turn(a);
    enum tide_code code;

    make_request(a, turn,
                 str_from(focus && *focus ? arena_printf(&a->scratch, "%s\n\nAbove all: %s", compact_wish, focus)
                                          : compact_wish));
    code = agent_put(a, err);
    code = code ? code : attempts(a, turn, &answer, err);
    if (code)
        return code;
    put_usage(a, &answer.usage, turn);
    agent_tell_text(a, STR(""), true);
    agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_TEXT_END, .turn = turn});
    if (answer.stop == STOP_LENGTH)
        code = refuse_summary(a, turn, "the summary was cut off (max_answer_tokens): nothing is dropped", err);
    else if (answer.stop == STOP_REFUSED || str_is_blank(answer.text))
        code = refuse_summary(a, turn, "the model gave no summary: nothing is dropped", err);
    else
        put_summary(a, turn, str_trim(answer.text));
    model_answer_done(&answer);
    return code;
}
