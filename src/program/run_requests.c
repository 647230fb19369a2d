/* SPDX-License-Identifier: Apache-2.0 */
#include "program/run_requests.h"

#include <stdio.h>

#include "base/invariant.h"
#include "program/result.h"
#include "session/redact.h"
#include "session/run.h"

/* ---- answers ---- */

static const char *text_of(struct request *r, const char *key)
{
    const struct json *v = json_get(r->json, str_from(key));

    return v && v->type == JSON_STRING ? arena_dup(&r->arena, json_text(&r->arena, v)).ptr : NULL;
}

/* The number of a word that was sent; false: it is not one, see the error. */
static bool word_of(struct request *r, const char *key, int (*from)(const char *word), int absent, int *ret)
{
    const char *word = text_of(r, key);

    *ret = word ? from(word) : absent;
    if (*ret < 0)
        tide_fail(&r->err, TIDE_INVALID, "'%.100s' is no known %s", word ? word : "", key);
    return *ret >= 0;
}

static void reply_blob(struct request *r, struct str blob)
{
    json_out_end(&r->o, '}');
    frame_put(&r->c->out, buf_view(&r->reply), blob);
}

static void send_reply(struct request *r)
{
    reply_blob(r, STR(""));
}

static void put_detail(struct json_out *o, const struct tide_detail *d)
{
    json_out_key(o, STR("detail"));
    json_out_begin(o, '{');
    json_out_kint(o, STR("subject"), d->subject);
    json_out_kstr(o, STR("session_id"), str_from(d->session_id));
    json_out_kstr(o, STR("name"), str_from(d->name));
    json_out_kint(o, STR("position"), d->position);
    json_out_end(o, '}');
}

static void put_hints(struct json_out *o, const struct tide_err *err)
{
    json_out_key(o, STR("hints"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < sizeof err->hints / sizeof err->hints[0] && err->hints[i].action; i++) {
        const struct tide_hint *h = &err->hints[i];

        json_out_begin(o, '{');
        json_out_kint(o, STR("action"), h->action);
        json_out_kint(o, STR("kind"), h->kind);
        json_out_kstr(o, STR("session_id"), str_from(h->session_id));
        json_out_kraw(o, STR("arguments"), str_from(h->arguments));
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

static void reply_error(struct request *r)
{
    if (r->err.code == TIDE_FENCED) {
        r->s->lost = true;
        r->s->err = r->err;
    }
    tide_about_session(&r->err, r->s->run->s->head.id);
    json_out_kstr(&r->o, STR("error"), str_from(tide_code_name(r->err.code)));
    json_out_kstr(&r->o, STR("message"), str_from(r->err.msg));
    put_detail(&r->o, &r->err.detail);
    put_hints(&r->o, &r->err);
    send_reply(r);
}

void run_note_step(struct run_server *s, const char *name, bool failed)
{
    snprintf(s->failed_step, sizeof(s->failed_step), "%s", failed ? name : "");
}

void run_step_over(struct conn *c)
{
    c->step[0] = '\0';
    c->begun = false;
}

/* ---- steps ---- */

static void reply_stored(struct request *r, const struct tide_step_answer *answer)
{
    struct str output = {"", 0}, result = {answer->result.ptr, answer->result.len};
    int status = 0;

    if (result.ptr && result_read(&r->arena, result, &status, &output, &r->err)) {
        reply_error(r);
        return;
    }
    json_out_kint(&r->o, STR("exit"), status);
    json_out_kbool(&r->o, STR("failed"), answer->failed);
    json_out_kint(&r->o, STR("run"), answer->run);
    reply_blob(r, output);
}

static void reply_answer(struct request *r, struct tide_step_answer *answer)
{
    static const char *const states[] = {"run", "stored", "probe", "later"};

    if (answer->state == TIDE_STEP_STORED || answer->state == TIDE_STEP_LATER)
        run_step_over(r->c);
    json_out_kstr(&r->o, STR("state"), str_from(states[answer->state]));
    json_out_kstr(&r->o, STR("key"), str_from(answer->key));
    json_out_kint(&r->o, STR("attempt"), answer->attempt);
    json_out_kint(&r->o, STR("retry_at_ms"), answer->retry_at_ms);
    if (answer->state == TIDE_STEP_STORED)
        reply_stored(r, answer);
    else
        send_reply(r);
    tide_text_done(&answer->result);
}

/* The start is on disk before it is reported. */
static enum tide_code begin_step(struct request *r, int64_t pid)
{
    int64_t start = json_get_int(r->json, STR("pid_start"), 0);
    enum tide_code code = tide_step_begin(r->s->run, r->c->step, pid, (uint64_t)start, &r->err);

    r->c->begun = !code;
    r->c->group = (pid_t)pid;
    return code;
}

/* With the pid of a program that waits at its gate, a step that is to run begins at once: one message instead of two. */
static void op_step(struct request *r)
{
    const char *name = text_of(r, "name");
    struct tide_step_spec spec = {
        .size = sizeof spec,
        .name = name ? name : "",
        .args = r->blob.ptr,
        .args_len = r->blob.len,
        .retries = (int)json_get_int(r->json, STR("retries"), 0),
        .has_probe = json_get_bool(r->json, STR("has_probe"), false),
        .within = text_of(r, "within"),
    };
    int64_t pid = json_get_int(r->json, STR("pid"), 0);
    struct tide_step_answer answer = {0};
    int effect;

    if (word_of(r, "effect", tide_effect_from, TIDE_EFFECT_ONCE, &effect))
        spec.effect = (enum tide_effect)effect;
    if (effect < 0 || tide_step_ask(r->s->run, &spec, &answer, &r->err)) {
        run_note_step(r->s, spec.name, true);
        reply_error(r);
        return;
    }
    if (answer.state == TIDE_STEP_STORED)
        run_note_step(r->s, spec.name, answer.failed);
    snprintf(r->c->step, sizeof(r->c->step), "%s", spec.name);
    r->c->once = spec.effect == TIDE_EFFECT_ONCE;
    r->c->begun = false;
    if (answer.state == TIDE_STEP_RUN && pid && begin_step(r, pid)) {
        run_step_over(r->c); /* it is not under way any more */
        reply_error(r);
        return;
    }
    json_out_kbool(&r->o, STR("begun"), r->c->begun);
    reply_answer(r, &answer);
}

static void op_begin(struct request *r)
{
    if (!r->c->step[0])
        tide_fail(&r->err, TIDE_INVALID, "no step is running here");
    if (r->err.code || begin_step(r, json_get_int(r->json, STR("pid"), 0))) {
        run_step_over(r->c);
        reply_error(r);
        return;
    }
    send_reply(r);
}

/* Output that the store does not take as one record: the step is over all the same, and says what it lacks. */
static enum tide_code end_too_big(struct request *r, struct tide_step_answer *answer)
{
    struct tide_step_result result = {.size = sizeof result,
                                      .outcome = TIDE_OUTCOME_FAILED,
                                      .result = "{\"exit\":1,\"output\":\"\"}",
                                      .error_code = "output_too_big",
                                      .error_message = "its output is larger than one record of the store may be",
                                      .no_retry = 1};

    return tide_step_end(r->s->run, r->c->step, &result, answer, &r->err);
}

/* What it printed, without secrets. The bytes are looked at before they are written as JSON or base64. */
static struct str clean_output(struct request *r)
{
    return redact_text(r->s->run->s->store, &r->arena, r->blob);
}

static void op_end(struct request *r)
{
    struct str output = clean_output(r);
    AUTO(buf_done) struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    struct tide_step_result result = {
        .size = sizeof result,
        .error_code = text_of(r, "error_code"),
        .error_message = text_of(r, "error_message"),
        .no_retry = json_get_bool(r->json, STR("no_retry"), false),
    };
    struct tide_step_answer answer = {0};
    enum tide_code code;
    int outcome = tide_outcome_from(text_of(r, "outcome"));

    result.outcome = outcome > 0 ? (enum tide_outcome)outcome : TIDE_OUTCOME_NONE;
    result_write(&json, (int)json_get_int(r->json, STR("exit"), 0), output);
    if (output.ptr != r->blob.ptr && !json.failed) {
        json.len--;
        buf_add_str(&json, STR(",\"redacted\":true}"));
    }
    result.result = buf_cstr(&json);
    if (!r->c->step[0] || !result.outcome)
        code = tide_fail(&r->err, TIDE_INVALID, "no step is running here");
    else if (json.failed)
        code = TIDE_TOO_BIG;
    else
        code = tide_step_end(r->s->run, r->c->step, &result, &answer, &r->err);
    if (code == TIDE_TOO_BIG)
        code = end_too_big(r, &answer);
    if (code) {
        reply_error(r);
        return;
    }
    if (answer.state != TIDE_STEP_LATER)
        run_note_step(r->s, r->c->step, result.outcome != TIDE_OUTCOME_COMPLETED);
    run_step_over(r->c);
    if (output.ptr != r->blob.ptr &&
        answer.state == TIDE_STEP_STORED) { /* the caller that asked prints what is stored */
        json_out_kbool(&r->o, STR("redacted"), true);
        tide_text_done(&answer.result);
        answer.result = (struct tide_text){mem_dup(buf_view(&json)), json.len};
    }
    reply_answer(r, &answer);
}

static void op_settle(struct request *r)
{
    AUTO(buf_done) struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    struct tide_step_answer answer = {0};
    int happened = (int)json_get_int(r->json, STR("happened"), -1);
    enum tide_code code;

    result_write(&json, 0, clean_output(r));
    if (!r->c->step[0])
        code = tide_fail(&r->err, TIDE_INVALID, "no step is running here");
    else
        code =
            tide_step_settle(r->s->run, r->c->step, happened, happened == 1 ? buf_cstr(&json) : NULL, &answer, &r->err);
    if (code == TIDE_UNSETTLED) {
        run_note_step(r->s, r->c->step, true);
        run_step_over(r->c);
    }
    if (code)
        reply_error(r);
    else
        reply_answer(r, &answer);
}

/* ---- waits ---- */

static void parked(struct request *r, const char *name, bool is_sleep)
{
    struct park *p = &r->s->park;

    p->parked = r->s->closing = true;
    p->is_sleep = is_sleep;
    snprintf(p->name, sizeof(p->name), "%s", name);
}

static void op_wait(struct request *r)
{
    const char *name = text_of(r, "name"), *asked = text_of(r, "question"),
               *question = asked ? redact_text(r->s->run->s->store, &r->arena, str_from(asked)).ptr : NULL;
    struct park *p = &r->s->park;
    struct tide_wait_options opt = {.size = sizeof opt,
                                    .name = name ? name : "",
                                    .question = question,
                                    .deadline_ms = json_get_int(r->json, STR("deadline_ms"), 0),
                                    .expires_ms = json_get_int(r->json, STR("expires_ms"), 0)};
    const struct json *value = json_get(r->json, STR("default"));
    struct tide_text answer = {NULL, 0};
    enum tide_code code = TIDE_INVALID;
    int kind, on_deadline;

    if (value)
        opt.default_answer = arena_dup(&r->arena, json_source(value)).ptr;
    if (word_of(r, "kind", tide_wait_kind_from, TIDE_WAIT_NONE, &kind) &&
        word_of(r, "on_deadline", tide_on_deadline_from, TIDE_ON_DEADLINE_UNSET, &on_deadline)) {
        opt.kind = (enum tide_wait_kind)kind;
        opt.on_deadline = (enum tide_on_deadline)on_deadline;
        code = tide_run_wait(r->s->run, &opt, &answer, p->token, &r->err);
    }
    if (code == TIDE_WAITING) {
        parked(r, opt.name, false);
        snprintf(p->kind, sizeof(p->kind), "%s", tide_wait_kind_name(opt.kind));
        snprintf(p->question, sizeof(p->question), "%s", question ? question : "");
        p->deadline_ms = opt.deadline_ms;
    } else if (code) {
        reply_error(r);
    } else if (answer.len > FRAME_BLOB_MAX) {
        reply_error((tide_fail(&r->err, TIDE_TOO_BIG, "the answer to '%.100s' is too large to return", opt.name), r));
    } else {
        reply_blob(r, (struct str){answer.ptr, answer.len});
    }
    tide_text_done(&answer);
}

static void op_sleep(struct request *r)
{
    const char *name = text_of(r, "name");
    int64_t due = json_get_int(r->json, STR("due_ms"), 0);
    enum tide_code code = tide_run_sleep(r->s->run, name ? name : "", due, &due, &r->err);

    if (code == TIDE_WAITING) {
        parked(r, name ? name : "", true);
        r->s->park.due_ms = due;
    } else if (code) {
        reply_error(r);
    } else {
        send_reply(r);
    }
}

/* ---- memory and checkpoints ---- */

static void op_set(struct request *r)
{
    const char *key = text_of(r, "key");
    struct str value = arena_dup(&r->arena, r->blob);

    if (tide_run_set(r->s->run, key ? key : "", value.ptr, &r->err))
        reply_error(r);
    else
        send_reply(r);
}

static void op_get(struct request *r)
{
    const char *key = text_of(r, "key");
    struct tide_text value = {NULL, 0};

    if (tide_run_get(r->s->run, key ? key : "", &value, &r->err))
        reply_error(r);
    else if (value.len > FRAME_BLOB_MAX)
        reply_error((tide_fail(&r->err, TIDE_TOO_BIG, "'%.100s' is too large to return", key), r));
    else
        reply_blob(r, (struct str){value.ptr, value.len});
    tide_text_done(&value);
}

static void op_checkpoint(struct request *r)
{
    char id[TIDE_ID_SIZE];
    int type;

    if (!word_of(r, "type", tide_checkpoint_type_from, TIDE_CHECKPOINT_SAFE_POINT, &type) ||
        tide_run_checkpoint(r->s->run, (enum tide_checkpoint_type)type, text_of(r, "description"), id, &r->err)) {
        reply_error(r);
        return;
    }
    json_out_kstr(&r->o, STR("checkpoint_id"), str_from(id));
    send_reply(r);
}

/* ---- who is answered when ---- */

enum hold {
    HOLD_NEVER = 0,
    HOLD_CLOSING = 1, /* while the program is being ended */
    HOLD_WAITER = 2,  /* while a wait is about to park, unless it is inside a step */
    HOLD_STEPS = 4,   /* while steps are under way: what parks */
};

static const struct op {
    const char *name;
    void (*run)(struct request *r);
    unsigned hold;
} ops[] = {
    {"step", op_step, HOLD_CLOSING | HOLD_WAITER},
    {"begin", op_begin, HOLD_CLOSING},
    {"end", op_end, HOLD_NEVER},
    {"settle", op_settle, HOLD_NEVER},
    {"wait", op_wait, HOLD_CLOSING | HOLD_STEPS},
    {"sleep", op_sleep, HOLD_CLOSING | HOLD_STEPS},
    {"set", op_set, HOLD_CLOSING},
    {"get", op_get, HOLD_CLOSING},
    {"checkpoint", op_checkpoint, HOLD_CLOSING},
};

static bool must_hold(struct request *r, const struct op *op)
{
    struct run_server *s = r->s;
    bool nested = json_get_bool(r->json, STR("nested"), false);

    if (s->park.parked || s->lost || (s->closing && (op->hold & HOLD_CLOSING)))
        return true;
    if ((op->hold & HOLD_WAITER) && s->waiter && !nested)
        return true;
    if (!(op->hold & HOLD_STEPS) || nested)
        return false;
    if (s->waiter && s->waiter != r->c)
        return true;
    s->waiter = run_server_under_way(s) > 0 ? r->c : NULL;
    return s->waiter != NULL;
}

static void serve_request(struct request *r, const struct op *op)
{
    r->o = json_out_to(&r->reply);
    json_out_begin(&r->o, '{');
    if (!op) {
        tide_fail(&r->err, TIDE_INVALID, "a request that this version does not know");
        reply_error(r);
    } else if ((op->hold & HOLD_STEPS) && json_get_bool(r->json, STR("nested"), false)) {
        tide_fail(&r->err, TIDE_INVALID, "a step cannot wait: put the wait before or after the step");
        reply_error(r);
    } else {
        op->run(r);
    }
    INVARIANT(r->c->out.len > 0 || r->s->park.parked); /* the client is answered, or its run waits */
}

bool run_request_answer(struct request *r)
{
    struct str name = json_get_text(&r->arena, r->json, STR("op"));
    const struct op *op = NULL;

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) && !op; i++)
        op = str_eq(name, str_from(ops[i].name)) ? &ops[i] : NULL;
    if (op && must_hold(r, op))
        return false;
    serve_request(r, op);
    return true;
}
