/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps. Asking decides from what the chain has done; beginning makes the start durable before anything is done; ending
 * makes the result of one that must happen once durable before it replies. That of another is durable before anything
 * later of the session is: it goes to disk with the next append, in one sync, or a little later. What was begun and never ended
 * is settled by its effect:
 *
 *   recorded as     pure, idempotent          once
 *   completed       answers                   answers
 *   failed          done again (its retry_at  answers, unless a person allowed it (retry) or a probe found that it
 *                   is kept within a run)     had not happened
 *   started         done again, same key      probe, else unknown: not done
 *   unknown         done again, same key      probe, else unknown: not done, unless a person allowed it
 */
#include <inttypes.h>

#include "base/log.h"
#include "base/invariant.h"
#include "base/timefmt.h"
#include "session/action.h"
#include "session/redact.h"
#include "session/retry.h"
#include "session/run.h"

static enum tide_code check_spec(const struct tide_run *r, const struct tide_step_spec *spec, struct tide_err *err)
{
    if (run_name_check(r, "step", spec->name, err))
        return err->code;
    if (spec->effect > TIDE_EFFECT_PURE)
        return tide_fail_step(err, TIDE_INVALID, spec->name, ": %d is not an effect: use pure, idempotent or once",
                              (int)spec->effect);
    if (spec->within && (strlen(spec->within) != 32 || !str_is_id(str_from(spec->within))))
        return tide_fail_step(err, TIDE_INVALID, spec->name, ": it is within a step by that step's idempotency key");
    if (spec->retries < 0 || spec->retries > 1000)
        return tide_fail_step(err, TIDE_INVALID, spec->name, ": retries are 0 to 1000");
    if (spec->retries && spec->effect == TIDE_EFFECT_ONCE) {
        tide_fail_step(err, TIDE_INVALID, spec->name,
                       "must happen once, so it is not retried automatically: only idempotent and pure steps are");
        return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"effect\":\"idempotent\"");
    }
    return TIDE_OK;
}

static struct str args_of(const struct tide_step_spec *spec)
{
    return (struct str){spec->args ? spec->args : "", spec->args ? spec->args_len : 0};
}

/* A log from before that, or from a process that did not know the secret, has the digest of the arguments as they are. */
static bool same_args(const struct recorded *m, const struct attempt *a, const struct tide_step_spec *spec)
{
    char real[17];

    digest_name(real, args_of(spec));
    return strcmp(m->args, a->args) == 0 || strcmp(m->args, real) == 0;
}

void run_idempotency(char out[33], const struct tide_run *r, const char *key)
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;

    digest_begin(&d, NULL);
    digest_add_str(&d, str_from(r->s->head.id));
    digest_add_str(&d, str_from(key));
    digest_end(&d, digest);
    hex_encode(out, digest, 16);
}

static struct attempt *attempt_new(struct tide_run *r, const struct tide_step_spec *spec)
{
    AUTO(arena_done) struct arena known = ARENA_INIT;
    struct attempt *a = mem_zero(sizeof *a);

    if (spec->within)
        snprintf(a->within, sizeof a->within, "%s", spec->within);
    a->key = run_key(r, "step", a->within[0] ? a->within : NULL, spec->name);
    a->retries = spec->retries;
    a->effect = spec->effect;
    /* Without secrets: the process that has the log could try values until the digest is right. So another value of one is no
     * change. */
    digest_name(a->args, redact_text(r->s->store, &known, args_of(spec)));
    run_idempotency(a->idempotency, r, a->key);
    return a;
}

static void attempt_drop(struct tide_run *r, const char *name)
{
    struct attempt *a = map_remove(&r->active, str_from(name));

    if (a) {
        free(a->key);
        free(a);
    }
}

/* The same, and its use does not count. */
static void attempt_undo(struct tide_run *r, const char *name)
{
    const struct attempt *a = map_get(&r->active, str_from(name));

    if (a)
        run_unuse(r, "step", a->within[0] ? a->within : NULL, name);
    attempt_drop(r, name);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static enum tide_code answer_stored(struct tide_run *r, const struct recorded *m, struct tide_step_answer *ret,
                                    struct tide_err *err)
{
    ret->state = TIDE_STEP_STORED;
    ret->failed = m->state == RECORDED_FAILED;
    ret->run = m->run > 0 ? m->run : 0;
    return run_read_member(r->s, m->seq, "result", &ret->result, err);
}

static void answer_run(struct attempt *a, const struct recorded *m, struct tide_step_answer *ret)
{
    a->number = m ? m->attempt + 1 : 0;
    ret->state = TIDE_STEP_RUN;
    ret->attempt = a->number;
}

/* tool.unknown, once: the process that reads the log sees that nobody knows. */
static enum tide_code say_unknown(struct tide_run *r, const struct attempt *a, const char *name, struct recorded *m,
                                  struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code = TIDE_OK;

    if (m->state == RECORDED_STARTED) {
        draft_open(&d, "tool.unknown");
        draft_text(&d, "call_id", a->key);
        draft_text(&d, "tool", name);
        draft_text(&d, "settled", "interrupted: outcome unknown");
        draft_close(&d);
        code = run_append(r, TIDE_APPEND_ANY, &d, false, err);
        draft_done(&d);
    }
    if (code)
        return code;
    m->state = RECORDED_UNKNOWN;
    tide_fail_step(err, TIDE_UNSETTLED, name,
                   ": outcome unknown: it must happen once, and was interrupted or timed out: find out whether it "
                   "happened");
    struct action again = {.action = TIDE_ACTION_RESUME, .kind = TIDE_KIND_PROGRAM};

    if (strlen(name) < sizeof again.retry) {
        snprintf(again.happened, sizeof again.happened, "%s", name);
        action_hint(err, r->s->head.id, &again);
        again.happened[0] = '\0';
        snprintf(again.retry, sizeof again.retry, "%s", name);
        action_hint(err, r->s->head.id, &again);
    }
    return err->code;
}

/* A person found out that it had happened. */
static enum tide_code say_happened(struct tide_run *r, struct attempt *a, const char *name, struct recorded *m,
                                   struct tide_step_answer *ret, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    draft_open(&d, "tool.completed");
    draft_text(&d, "call_id", a->key);
    draft_text(&d, "tool", name);
    json_out_kint(&d.out, STR("attempt"), m->attempt);
    draft_text(&d, "settled", "a person: it had happened");
    json_out_kraw(&d.out, STR("result"), STR("null"));
    draft_close(&d);
    code = run_append(r, TIDE_APPEND_ANY, &d, false, err);
    draft_done(&d);
    if (code)
        return code;
    a->number = m->attempt;
    m->state = RECORDED_COMPLETED;
    m->run = 0;
    m->seq = r->appended_seq;
    return answer_stored(r, m, ret, err);
}

static enum tide_code settle_cut(struct tide_run *r, const struct tide_step_spec *spec, struct attempt *a,
                                 struct recorded *m, struct tide_step_answer *ret, struct tide_err *err)
{
    if (m->once && map_get(&r->happened, str_from(spec->name)))
        return say_happened(r, a, spec->name, m, ret, err);
    if (!m->once || map_get(&r->retry, str_from(spec->name))) {
        answer_run(a, m, ret);
        return TIDE_OK;
    }
    if (spec->has_probe) {
        a->probing = true;
        a->number = m->attempt;
        ret->state = TIDE_STEP_PROBE;
        return TIDE_OK;
    }
    return say_unknown(r, a, spec->name, m, err);
}

static enum tide_code settle_failed(struct tide_run *r, const struct tide_step_spec *spec, struct attempt *a,
                                    struct recorded *m, struct tide_step_answer *ret, struct tide_err *err)
{
    int64_t left = m->retry_at_ms - env_now_ms(r->s->store->env);

    if (m->once && map_get(&r->happened, str_from(spec->name)))
        return say_happened(r, a, spec->name, m, ret, err);
    if (m->once && !m->undone && !map_get(&r->retry, str_from(spec->name)))
        return answer_stored(r, m, ret, err);
    if (left > 0 && left <= RETRY_CAP_MS) { /* further off than any pause: the clock went back */
        ret->state = TIDE_STEP_LATER;
        ret->retry_at_ms = m->retry_at_ms;
        ret->attempt = m->attempt + 1;
        return TIDE_OK;
    }
    answer_run(a, m, ret);
    if (!m->retry_at_ms && !m->undone) /* the attempts of an earlier run were used up */
        a->number = ret->attempt = 0;
    return TIDE_OK;
}

static enum tide_code decide_attempt(struct tide_run *r, const struct tide_step_spec *spec, struct attempt *a,
                                     struct tide_step_answer *ret, struct tide_err *err)
{
    struct recorded *m;

    if (chain_find(r->s, &r->done, &r->done.steps, str_from(a->key), &m, err))
        return err->code;
    memcpy(ret->key, a->idempotency, sizeof ret->key);
    if (m && !same_args(m, a, spec) && m->state != RECORDED_FAILED && !(r->flags & TIDE_RUN_ACCEPT_CHANGE)) {
        text_set(&r->changed_step, str_from(spec->name));
        tide_fail_step(err, TIDE_CHANGED, spec->name, "is recorded with other arguments: give it another name");
        return tide_hint_with(err, TIDE_ACTION_RESUME, r->s->head.id, "\"accept_change\":true");
    }
    if (!m) {
        answer_run(a, NULL, ret);
        return TIDE_OK;
    }
    switch (m->state) {
    case RECORDED_COMPLETED:
        INVARIANT(m->seq > 0); /* a use that ended in this run, and may not be on disk, is not asked for again */
        return answer_stored(r, m, ret, err);
    case RECORDED_FAILED:
        return settle_failed(r, spec, a, m, ret, err);
    default:
        return settle_cut(r, spec, a, m, ret, err);
    }
}

/* Whether the program once continued behind this use: then it counts, or the later ones would not be found. */
static bool has_next_use(struct tide_run *r, const struct attempt *a)
{
    const char *slash = strrchr(a->key, '/');
    struct buf next = BUF_INIT(512);
    int64_t n = 0;
    bool found;

    INVARIANT(slash && chain_is_read(&r->done)); /* what is not known to have completed was looked for to the end */
    str_to_int64(str_from(slash + 1), &n);
    INVARIANT(n > 0); /* uses count from 1 */
    buf_add(&next, a->key, (size_t)(slash + 1 - a->key));
    buf_add_int(&next, n + 1);
    found = map_get(&r->done.steps, buf_view(&next)) != NULL;
    buf_done(&next);
    return found;
}

enum tide_code tide_step_ask(tide_run *r, const struct tide_step_spec *given, struct tide_step_answer *ret,
                             struct tide_err *err)
{
    struct tide_step_spec own;
    const struct tide_step_spec *spec = &own;
    struct tide_step_answer answer = {.state = TIDE_STEP_RUN};
    struct attempt *a;
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_step_spec, given, err);
    code = code ? code : r->queue.doubt || r->unsure ? run_sure(r, err) : run_usable(r, err);
    code = code ? code : check_spec(r, spec, err);
    if (code)
        return code;
    if (map_get(&r->active, str_from(spec->name)))
        return tide_fail_step(err, TIDE_INVALID, spec->name,
                              "is already running: steps that run in parallel need different names");
    a = attempt_new(r, spec);
    map_put(&r->active, str_from(spec->name), a);
    code = decide_attempt(r, spec, a, &answer, err);
    if (!code && (answer.state == TIDE_STEP_RUN || answer.state == TIDE_STEP_PROBE)) {
        *ret = answer;
        return TIDE_OK;
    }
    if ((code && !(code == TIDE_UNSETTLED && has_next_use(r, a))) || answer.state == TIDE_STEP_LATER)
        attempt_undo(r, spec->name); /* it will be asked for again */
    else
        attempt_drop(r, spec->name);
    if (!code)
        *ret = answer;
    return code;
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

static enum tide_code find_active(struct tide_run *r, const char *name, struct attempt **ret, struct tide_err *err)
{
    enum tide_code code = run_usable(r, err);

    *ret = name ? map_get(&r->active, str_from(name)) : NULL;
    if (!code && !*ret)
        code = tide_fail_step(err, TIDE_INVALID, name ? name : "", "was not asked for");
    return code;
}

static struct recorded *note_state(struct tide_run *r, const struct attempt *a, enum recorded_state state)
{
    struct recorded *m = chain_recorded(&r->done.steps, str_from(a->key));

    INVARIANT(chain_is_read(&r->done)); /* nothing older is to be read over it */
    m->state = state;
    m->run = 0;
    m->seq = r->appended_seq;
    m->attempt = a->number;
    m->once = a->effect == TIDE_EFFECT_ONCE;
    m->undone = false;
    memcpy(m->args, a->args, sizeof m->args);
    return m;
}

enum tide_code tide_step_begin(tide_run *r, const char *name, int64_t pid, uint64_t pid_start, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct attempt *a;
    struct json_out *o;
    enum tide_code code;

    ERR_LOCAL(err);
    code = find_active(r, name, &a, err);
    if (!code && (a->begun || a->probing))
        code = tide_fail_step(err, TIDE_INVALID, name, "has begun already");
    if (code)
        return code;
    o = draft_open(&d, "tool.started");
    draft_text(&d, "call_id", a->key);
    draft_text(&d, "tool", name);
    draft_text(&d, "args_digest", a->args);
    draft_text(&d, "effect", tide_effect_name(a->effect));
    draft_text(&d, "key", a->idempotency);
    json_out_kint(o, STR("attempt"), a->number);
    if (pid) {
        json_out_kint(o, STR("pid"), pid);
        json_out_kint(o, STR("pid_start"), (int64_t)pid_start);
    }
    draft_close(&d);
    code = run_append(r, TIDE_APPEND_ANY, &d, a->effect == TIDE_EFFECT_PURE, err);
    draft_done(&d);
    if (code) {
        attempt_undo(r, name);
        return code;
    }
    a->begun = true;
    note_state(r, a, RECORDED_STARTED);
    log_write(TIDE_LOG_DEBUG, "step started", RUN_FIELDS(r), log_text("step", name),
              log_text("effect", tide_effect_name(a->effect)));
    return TIDE_OK;
}

static const struct outcome {
    enum tide_outcome outcome;
    const char *kind;
    enum recorded_state state;
} outcomes[] = {
    {TIDE_OUTCOME_COMPLETED, "tool.completed", RECORDED_COMPLETED},
    {TIDE_OUTCOME_FAILED, "tool.failed", RECORDED_FAILED},
    {TIDE_OUTCOME_UNKNOWN, "tool.unknown", RECORDED_UNKNOWN},
};

static int64_t retry_at(struct tide_run *r, const struct attempt *a, const struct tide_step_result *result)
{
    struct env *env = r->s->store->env;
    uint32_t random;

    if (a->number >= a->retries || result->no_retry || !retry_helps(str_from(result->error_code)))
        return 0;
    env->ops->random(env, &random, sizeof random);
    return env_now_ms(env) + retry_delay_ms(RETRY_BASE_MS_DEFAULT, a->number, random, -1);
}

static enum tide_code draft_outcome(const struct attempt *a, const char *name, const struct outcome *out,
                                    const struct tide_step_result *result, int64_t again_ms, struct draft *d,
                                    struct tide_err *err)
{
    struct json_out *o = draft_open(d, out->kind);
    enum tide_code code;

    draft_text(d, "call_id", a->key);
    draft_text(d, "tool", name);
    json_out_kint(o, STR("attempt"), a->number);
    code = draft_value(d, "result", result->result, err);
    draft_error(d, result->error_code, result->error_message);
    draft_time(d, "retry_at", again_ms);
    draft_close(d);
    return code;
}

enum tide_code tide_step_end(tide_run *r, const char *name, const struct tide_step_result *given,
                             struct tide_step_answer *ret, struct tide_err *err)
{
    struct tide_step_result own;
    const struct tide_step_result *result = &own;
    struct draft d = DRAFT_INIT;
    const struct outcome *out = NULL;
    struct attempt *a;
    struct recorded *m;
    int64_t again_ms;
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_step_result, given, err);
    code = code ? code : find_active(r, name, &a, err);
    for (size_t i = 0; !code && i < sizeof outcomes / sizeof outcomes[0]; i++) {
        if (outcomes[i].outcome == result->outcome)
            out = &outcomes[i];
    }
    if (!code && (!out || (!a->begun && out->state == RECORDED_COMPLETED)))
        code = out ? tide_fail_step(err, TIDE_INVALID, name, "has not begun")
                   : tide_fail(err, TIDE_INVALID, "a step ends completed, failed or unknown");
    if (code)
        return code;
    if (!a->begun) { /* nothing was done, nothing is written, and it may be asked for again */
        attempt_undo(r, name);
        if (ret)
            *ret = (struct tide_step_answer){.state = TIDE_STEP_STORED, .failed = 1};
        return TIDE_OK;
    }
    again_ms = out->state == RECORDED_FAILED ? retry_at(r, a, result) : 0;
    code = draft_outcome(a, name, out, result, again_ms, &d, err);
    if (!code && a->effect == TIDE_EFFECT_ONCE)
        code = run_append(r, TIDE_APPEND_ANY, &d, false, err);
    else if (!code)
        code = run_put(r, &d, PUT_LATER | (a->effect == TIDE_EFFECT_PURE ? PUT_PURE : 0), err);
    draft_done(&d);
    if (code)
        return code;
    INVARIANT(!again_ms || a->effect != TIDE_EFFECT_ONCE); /* only a person has that tried again */
    m = note_state(r, a, out->state);
    m->retry_at_ms = again_ms;
    if (r->queue.n)
        m->seq = 0; /* known when it is on disk */
    log_write(out->state == RECORDED_COMPLETED ? TIDE_LOG_DEBUG : TIDE_LOG_WARN, "step ended", RUN_FIELDS(r),
              log_text("step", name), log_text("outcome", tide_outcome_name(out->outcome)),
              log_text("error", result->error_code), log_text("again", again_ms ? "yes" : NULL));
    if (ret) {
        *ret = (struct tide_step_answer){.state = again_ms ? TIDE_STEP_LATER : TIDE_STEP_STORED,
                                         .attempt = again_ms ? a->number + 1 : a->number,
                                         .retry_at_ms = again_ms,
                                         .failed = out->state == RECORDED_FAILED};
        memcpy(ret->key, a->idempotency, sizeof ret->key);
    }
    if (again_ms)
        attempt_undo(r, name);
    else
        attempt_drop(r, name);
    return TIDE_OK;
}

/* ---- settling what was cut ----------------------------------------------------------------------------------------- */

static enum tide_code draft_settled(const struct attempt *a, const char *name, int happened, const char *result,
                                    struct draft *d, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    draft_open(d, happened ? "tool.completed" : "tool.failed");
    draft_text(d, "call_id", a->key);
    draft_text(d, "tool", name);
    json_out_kint(&d->out, STR("attempt"), a->number);
    draft_text(d, "settled", happened ? "probe: it had happened" : "probe: it had not happened");
    if (happened)
        code = draft_value(d, "result", result, err);
    draft_close(d);
    return code;
}

enum tide_code tide_step_settle(tide_run *r, const char *name, int happened, const char *result,
                                struct tide_step_answer *ret, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct attempt *a;
    struct recorded *m;
    enum tide_code code;

    ERR_LOCAL(err);
    code = find_active(r, name, &a, err);
    if (!code && !a->probing)
        code = tide_fail_step(err, TIDE_INVALID, name, "needs no settling");
    if (code)
        return code;
    m = chain_recorded(&r->done.steps, str_from(a->key));
    *ret = (struct tide_step_answer){.state = TIDE_STEP_RUN};
    memcpy(ret->key, a->idempotency, sizeof ret->key);
    if (happened < 0) {
        code = say_unknown(r, a, name, m, err);
    } else {
        code = draft_settled(a, name, happened, result, &d, err);
        code = code ? code : run_append(r, TIDE_APPEND_ANY, &d, false, err);
    }
    draft_done(&d);
    if (!code && happened) {
        m = note_state(r, a, RECORDED_COMPLETED);
        code = answer_stored(r, m, ret, err);
    } else if (!code) {
        note_state(r, a, RECORDED_FAILED)->undone = true;
        a->probing = false;
        answer_run(a, m, ret);
        return TIDE_OK;
    }
    if (code)
        attempt_undo(r, name);
    else
        attempt_drop(r, name);
    return code;
}

/* ---- all in one call ----------------------------------------------------------------------------------------------- */

static enum tide_code do_step(struct tide_run *r, const struct tide_step_spec *spec, tide_step_fn *fn, void *arg,
                              struct tide_step_answer *answer, struct tide_text *ret_result, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_err why = {0};
    struct tide_step_result result = {.size = sizeof result, .outcome = TIDE_OUTCOME_COMPLETED};
    struct str text;
    char key[33];
    enum tide_code code = tide_step_begin(r, spec->name, 0, 0, err), done;

    if (code)
        return code;
    memcpy(key, answer->key, sizeof key);
    done = fn(arg, key, ret_result, &why);
    text = (struct str){ret_result->ptr ? ret_result->ptr : "", ret_result->ptr ? ret_result->len : 0};
    if (redact_json(r->s->store, &a, &text)) { /* the caller gets what it would get from the log */
        tide_text_done(ret_result);
        *ret_result = (struct tide_text){mem_dup(text), text.len};
    }
    result.result = ret_result->ptr;
    if (done) {
        result = (struct tide_step_result){.size = sizeof result,
                                           .outcome = TIDE_OUTCOME_FAILED,
                                           .result = ret_result->ptr,
                                           .error_code = tide_code_name(done),
                                           .error_message = why.msg};
    }
    code = tide_step_end(r, spec->name, &result, answer, err);
    if (code == TIDE_INVALID || code == TIDE_TOO_BIG) { /* done, and its result cannot be kept: that is said */
        snprintf(why.msg, sizeof why.msg, "its result cannot be recorded: %.400s", err->msg);
        done = code;
        result = (struct tide_step_result){.size = sizeof result,
                                           .outcome = TIDE_OUTCOME_FAILED,
                                           .error_code = tide_code_name(done),
                                           .error_message = why.msg,
                                           .no_retry = 1};
        code = tide_step_end(r, spec->name, &result, answer, err);
    }
    if (!code && done && answer->state != TIDE_STEP_LATER)
        code = tide_fail_step(err, TIDE_FAILED, spec->name, "failed: %s", why.msg);
    if (code || done)
        tide_text_done(ret_result);
    return code;
}

enum tide_code tide_run_step(tide_run *r, const struct tide_step_spec *spec, tide_step_fn *fn, void *arg,
                             struct tide_text *ret_result, struct tide_err *err)
{
    struct env *env = r->s->store->env;
    struct tide_step_answer answer = {.state = TIDE_STEP_LATER};
    struct tide_text result = {NULL, 0};
    enum tide_code code = TIDE_OK;

    ERR_LOCAL(err);
    while (!code && answer.state == TIDE_STEP_LATER) {
        for (int64_t left; (left = answer.retry_at_ms - env_now_ms(env)) > 0 && left <= RETRY_CAP_MS;)
            env->ops->sleep_ms(env, left < 1000 ? (int)left : 1000);
        code = tide_step_ask(r, spec, &answer, err);
        if (!code && answer.state == TIDE_STEP_PROBE) /* nobody here can find out */
            code = tide_step_settle(r, spec->name, -1, NULL, &answer, err);
        if (!code && answer.state == TIDE_STEP_RUN)
            code = do_step(r, spec, fn, arg, &answer, &result, err);
        else if (!code && answer.state == TIDE_STEP_STORED)
            result = answer.result;
    }
    if (!code && answer.state == TIDE_STEP_STORED && answer.failed)
        code = tide_fail_step(err, TIDE_FAILED, spec->name,
                              "failed in an earlier run and must happen once: it is not run again");
    if (!code && ret_result)
        *ret_result = result;
    else
        tide_text_done(&result);
    return code;
}
