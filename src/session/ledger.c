/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in the world: runs, waits, tokens, effects, money. Folds every event of the session; a rollback undoes nothing here. */
#include "base/timefmt.h"
#include "base/utf8.h"
#include "base/yes_no.h"
#include "session/fold.h"
#include "session/redact.h"

static int64_t time_of(const struct fact *f, const char *key)
{
    int64_t ms = 0;

    return time_parse_any(text_of(f, key), &ms) ? ms : 0;
}

static void run_clear(struct run *r)
{
    char **texts[] = {&r->run_id,      &r->boot_id,       &r->kernel_boot,    &r->reason,
                      &r->error_code,  &r->error_message, &r->failed_at_node, &r->resume_from_checkpoint_id,
                      &r->wait_name,   &r->wait_kind,     &r->wait_key,       &r->question,
                      &r->token_id,    &r->token_hash,    &r->retry_error,    &r->default_answer,
                      &r->changed_step};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        text_set(texts[i], STR(""));
    memset(r, 0, sizeof *r);
    r->resumable = -1;
}

/* ---- an answer that was a no ---- */

static void denied_clear(struct denied *d)
{
    char **texts[] = {&d->name, &d->key, &d->question, &d->then};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        text_set(texts[i], STR(""));
    d->seq = 0;
}

/* Something comes after it that may depend on it. */
static void denied_then(struct ledger *l, const char *what, struct str name, const char *did)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct str shown = utf8_clip(name, 200);

    if (!l->denied.name || l->denied.then)
        return;
    buf_addf(&text, "%s%s%.*s%s%s", what, shown.len ? " '" : "", STR_ARG(shown), shown.len ? "' " : " ", did);
    text_set(&l->denied.then, buf_view(&text));
}

/* The wait that is open is answered. One without a key continues with what its default has answered. */
static void note_answer(struct ledger *l, const struct fact *f)
{
    const struct run *r = &l->run;
    bool approval = r->wait_kind && strcmp(r->wait_kind, tide_wait_kind_name(TIDE_WAIT_APPROVAL)) == 0;

    if (!r->waiting || !r->wait_key)
        return;
    if (!approval || yes_no_read(f->arena, json_get(f->body, STR("input"))) != YES_NO_NO) {
        denied_then(l, r->due_ms ? "sleep" : "question", str_from(r->wait_name),
                    r->due_ms ? "is over" : "was answered");
        return;
    }
    denied_clear(&l->denied);
    text_set(&l->denied.name, str_from(r->wait_name));
    text_set(&l->denied.key, str_from(r->wait_key));
    text_set(&l->denied.question, str_from(r->question));
    l->denied.seq = f->ev->seq;
}

void ledger_memory(struct ledger *l, const struct fact *f)
{
    if (!text_of(f, "node").len && !text_of(f, "by").len) /* a node's own outputs belong to its answer */
        denied_then(l, "the memory", STR(""), "was changed");
}

void ledger_node_started(struct ledger *l, const struct fact *f)
{
    denied_then(l, "node", text_of(f, "node"), "has begun");
}

static void effect_free(void *p)
{
    struct effect *e = p;

    free(e->tool);
    free(e->effect);
    free(e);
}

static void token_free(void *p)
{
    struct token_past *t = p;

    if (!t)
        return;
    free(t->run_id);
    free(t->wait_kind);
    free(t->hash);
    free(t);
}

struct token_past *ledger_add_token(struct ledger *l, struct str id)
{
    struct token_past *t = mem_zero(sizeof *t);

    token_free(map_put(&l->tokens, id, t));
    return t;
}

void ledger_done(struct ledger *l)
{
    run_clear(&l->run);
    denied_clear(&l->denied);
    free(TAKE(l->chain_id));
    free(TAKE(l->stuck));
    map_done(&l->effects, effect_free);
    map_done(&l->queue, free);
    map_done(&l->approvals, free);
    map_done(&l->tokens, token_free);
}

void ledger_rolled_back(struct ledger *l, const struct fact *f)
{
    if (json_get_int(f->body, STR("to_seq"), 0) != l->denied.seq - 1) /* else it is on its way to be asked again */
        denied_clear(&l->denied);
    l->rollbacks++;
}

/* Which process stands behind the run from here on. */
static void run_process(struct run *r, const struct fact *f)
{
    r->active_seq = f->ev->seq;
    if (json_get(f->body, STR("boot_id")))
        text_set(&r->boot_id, text_of(f, "boot_id"));
    text_set(&r->kernel_boot, text_of(f, "kernel_boot"));
    r->pid_ns = json_get_int(f->body, STR("pid_ns"), 0);
    r->pid = json_get_int(f->body, STR("pid"), 0);
    r->pid_start = json_get_int(f->body, STR("pid_start"), 0);
}

void ledger_run_started(struct ledger *l, const struct fact *f)
{
    const struct json *from = json_get(f->body, STR("resumed_from"));
    struct str before = json_get_text(f->arena, from, STR("run_id"));
    bool continues = before.len && l->run.run_id && str_eq(before, str_from(l->run.run_id)) && l->chain_id;
    bool program = json_get(f->body, STR("argv")) != NULL;

    run_clear(&l->run);
    l->runs++;
    l->run.end = RUN_OPEN;
    l->run.started_seq = f->ev->seq;
    l->run.started_ms = f->ev->ts_ms;
    text_set(&l->run.run_id, text_of(f, "run_id"));
    run_process(&l->run, f);
    if (continues) {
        l->chain_resumes++;
    } else {
        denied_clear(&l->denied);
        text_set(&l->chain_id, text_of(f, "run_id"));
        l->chain_seq = f->ev->seq;
        l->chain_resumes = 0;
        l->chain_before = l->effects_completed;
        l->chain_first = l->runs;
        text_set(&l->stuck, STR(""));
        for (struct map_entry *e = map_next(&l->effects, NULL); e; e = map_next(&l->effects, e))
            ((struct effect *)e->value)->past = true;
    }
    if (program || json_get(f->body, STR("loop"))) {
        l->program_seq = f->ev->seq;
        l->program_kind = program                                    ? TIDE_KIND_PROGRAM
                          : str_eq(text_of(f, "loop"), STR("graph")) ? TIDE_KIND_GRAPH
                                                                     : TIDE_KIND_CHAT;
    }
    if (program && redact_is_marked(f->body, json_source(f->body)))
        l->hidden_seq = f->ev->seq;
}

static enum run_end end_of(struct str kind)
{
    if (str_eq(kind, STR("run.completed")))
        return RUN_COMPLETED;
    if (str_eq(kind, STR("run.failed")))
        return RUN_FAILED;
    return str_eq(kind, STR("run.cancelled")) ? RUN_CANCELLED : RUN_INTERRUPTED;
}

/* An event about an earlier run than the latest changes nothing of it. */
static bool about_latest(const struct ledger *l, const struct fact *f)
{
    struct str id = text_of(f, "run_id");

    return id.len == 0 || !l->run.run_id || str_eq(id, str_from(l->run.run_id));
}

/* The process that wrote this change of a run asked for a notification. */
static void notify_ask(struct ledger *l, const struct fact *f)
{
    if (!json_get_bool(f->body, STR("notify"), false))
        return;
    if (!l->notify_from)
        l->notify_from = f->ev->seq;
    l->notify_last = f->ev->seq;
}

/* Those up to this one are done with, sent or given up. */
static void notify_pass(struct ledger *l, int64_t seq)
{
    if (seq < l->notify_from)
        return;
    l->notify_from = seq < l->notify_last ? seq + 1 : 0;
    l->notify_last = l->notify_from ? l->notify_last : 0;
    l->notify_tries = l->notify_retry_ms = 0;
}

void ledger_notified(struct ledger *l, const struct fact *f)
{
    int64_t of = json_get_int(f->body, STR("of_seq"), 0), retry_ms = time_of(f, "retry_at");

    if (!l->notify_from)
        return;
    if (str_eq(f->ev->kind, STR("notify.sent")) || !retry_ms) {
        notify_pass(l, of);
        return;
    }
    l->notify_tries = json_get_int(f->body, STR("attempt"), 1);
    l->notify_retry_ms = retry_ms;
}

void ledger_run_ended(struct ledger *l, const struct fact *f)
{
    const struct json *error = json_get(f->body, STR("error"));
    struct run *r = &l->run;

    notify_ask(l, f);
    if (str_eq(f->ev->kind, STR("run.failed")))
        l->errors++;
    if (!about_latest(l, f))
        return;
    if (!r->run_id)
        text_set(&r->run_id, text_of(f, "run_id"));
    r->end = end_of(f->ev->kind);
    r->ended_seq = f->ev->seq;
    r->ended_ms = f->ev->ts_ms;
    text_set(&r->reason, text_of(f, "reason"));
    text_set(&r->failed_at_node, text_of(f, "failed_at_node"));
    text_set(&r->changed_step, text_of(f, "changed_step"));
    text_set(&r->resume_from_checkpoint_id, text_of(f, "resume_from_checkpoint_id"));
    if (error && error->type == JSON_STRING) {
        text_set(&r->error_message, json_text(f->arena, error));
    } else if (error) {
        text_set(&r->error_code, json_get_text(f->arena, error, STR("code")));
        text_set(&r->error_message, json_get_text(f->arena, error, STR("message")));
    }
    r->by_person = r->end == RUN_CANCELLED || str_eq(text_of(f, "by"), STR("person"));
    if (json_get(f->body, STR("resumable")))
        r->resumable = json_get_bool(f->body, STR("resumable"), true);
}

void ledger_run_waiting(struct ledger *l, const struct fact *f)
{
    struct run *r = &l->run;
    struct str token = text_of(f, "resume_token_id");
    const struct json *v = json_get(f->body, STR("default"));
    int on_deadline = tide_on_deadline_from(arena_dup(f->arena, text_of(f, "on_deadline")).ptr);

    notify_ask(l, f);
    if (!about_latest(l, f))
        return;
    if (r->end == RUN_NONE)
        r->end = RUN_OPEN;
    if (!r->run_id)
        text_set(&r->run_id, text_of(f, "run_id"));
    if (l->denied.key && str_eq(text_of(f, "wait_key"), str_from(l->denied.key))) /* asked again */
        denied_clear(&l->denied);
    r->waiting = true;
    text_set(&r->wait_name, text_of(f, "wait_name"));
    text_set(&r->wait_kind, text_of(f, "wait_kind"));
    text_set(&r->wait_key, text_of(f, "wait_key"));
    text_set(&r->question, text_of(f, "question"));
    text_set(&r->default_answer, v ? json_source(v) : STR(""));
    r->on_deadline = on_deadline > 0 ? (enum tide_on_deadline)on_deadline : TIDE_ON_DEADLINE_UNSET;
    r->since_seq = json_get_int(f->body, STR("since_seq"), f->ev->seq);
    r->since_ms = f->ev->ts_ms;
    r->deadline_ms = time_of(f, "deadline_at");
    r->due_ms = time_of(f, "due_at");
    if (!str_eq(token, str_from(r->token_id))) { /* the token may have been minted just before */
        text_set(&r->token_id, token);
        text_set(&r->token_hash, STR(""));
        r->token = TOKEN_NONE;
        r->token_expires_ms = 0;
    }
}

void ledger_run_resumed(struct ledger *l, const struct fact *f)
{
    struct run *r = &l->run;

    if (!about_latest(l, f))
        return;
    note_answer(l, f);
    r->end = RUN_OPEN;
    r->waiting = false;
    r->since_seq = r->since_ms = r->deadline_ms = r->due_ms = 0;
    r->on_deadline = TIDE_ON_DEADLINE_UNSET;
    text_set(&r->default_answer, STR(""));
    text_set(&r->wait_name, STR(""));
    text_set(&r->wait_kind, STR(""));
    text_set(&r->wait_key, STR(""));
    text_set(&r->question, STR(""));
    if (json_get(f->body, STR("boot_id"))) /* else it was answered at once: the same process continues */
        run_process(r, f);
    l->chain_resumes = 0;
}

static const struct {
    const char *kind;
    enum token_state state;
} token_moves[] = {
    {"token.minted", TOKEN_ACTIVE},
    {"token.consumed", TOKEN_CONSUMED},
    {"token.revoked", TOKEN_REVOKED},
    {"token.expired", TOKEN_EXPIRED},
};

static enum token_state state_after(struct str kind)
{
    size_t i = 0;

    while (!str_eq(kind, str_from(token_moves[i].kind)))
        i++;
    return token_moves[i].state;
}

void ledger_token(struct ledger *l, const struct fact *f)
{
    struct str id = text_of(f, "token_id");
    enum token_state state = state_after(f->ev->kind);
    struct token_past *past = map_get(&l->tokens, id);
    struct run *r = &l->run;

    if (state == TOKEN_ACTIVE) {
        past = ledger_add_token(l, id);
        text_set(&past->run_id, text_of(f, "run_id"));
        text_set(&past->wait_kind, text_of(f, "wait_kind"));
        text_set(&past->hash, text_of(f, "secret_hash"));
        past->expires_ms = time_of(f, "expires_at");
        text_set(&r->token_id, id);
        text_set(&r->token_hash, text_of(f, "secret_hash"));
        r->token_expires_ms = past->expires_ms;
    }
    if (past)
        past->state = state;
    if (str_eq(id, str_from(r->token_id)))
        r->token = state;
}

void ledger_trusted(struct ledger *l, const struct fact *f)
{
    l->trusted_seq = f->ev->seq;
    notify_pass(l, f->ev->seq); /* what came from elsewhere asks for nothing here */
    denied_clear(&l->denied);
}

void ledger_cancel(struct ledger *l, const struct fact *f)
{
    l->cancel_seq = f->ev->seq;
}

void ledger_queue_added(struct ledger *l, const struct fact *f)
{
    map_set_int(&l->queue, text_of(f, "queue_id"), f->ev->seq);
    l->queued = (int64_t)l->queue.live;
}

void ledger_queue_taken(struct ledger *l, const struct fact *f)
{
    map_drop(&l->queue, text_of(f, "queue_id"));
    l->queued = (int64_t)l->queue.live;
}

void ledger_approval_requested(struct ledger *l, const struct fact *f)
{
    map_set_int(&l->approvals, text_of(f, "approval_id"), f->ev->seq);
}

void ledger_approval_given(struct ledger *l, const struct fact *f)
{
    map_drop(&l->approvals, text_of(f, "approval_id"));
}

void ledger_turn(struct ledger *l, const struct fact *f)
{
    int64_t turn = json_get_int(f->body, STR("turn"), 0);

    if (str_eq(f->ev->kind, STR("message.assistant")))
        denied_then(l, "the model", STR(""), "has answered");
    else if (str_eq(f->ev->kind, STR("message.user")))
        denied_then(l, "a prompt", STR(""), "was sent");
    if (turn > l->max_turn)
        l->max_turn = turn;
}

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* A JSON number as billionths, exact up to nine decimals, the rest cut; 0 when it does not fit. */
static int64_t nano_of(const struct json *v)
{
    const char *p, *end;
    int64_t n = 0;
    int decimals = -1, exponent = 0, power = 0;
    bool negative;

    if (!v || v->type != JSON_NUMBER)
        return 0;
    p = v->raw.ptr;
    end = p + v->raw.len;
    negative = *p == '-';
    for (p += negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            decimals = 0;
        } else if (n <= (INT64_MAX - 9) / 10) {
            n = n * 10 + (*p - '0');
            decimals += decimals >= 0;
        } else if (decimals < 0) {
            exponent++; /* more digits than fit: the last ones are cut */
        }
    }
    if (p < end) {
        bool minus = p[1] == '-';

        for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end && power < 100; p++)
            power = power * 10 + (*p - '0');
        exponent += minus ? -power : power;
    }
    exponent += 9 - (decimals > 0 ? decimals : 0);
    for (; exponent > 0 && n; exponent--) {
        if (n > INT64_MAX / 10)
            return 0;
        n *= 10;
    }
    for (; exponent < 0 && n; exponent++)
        n /= 10;
    return negative ? -n : n;
}

void ledger_usage(struct ledger *l, const struct fact *f)
{
    ledger_turn(l, f);
    l->calls++;
    l->input_tokens = add_clamped(l->input_tokens, json_get_int(f->body, STR("input_tokens"), 0));
    l->output_tokens = add_clamped(l->output_tokens, json_get_int(f->body, STR("output_tokens"), 0));
    l->cached_tokens = add_clamped(l->cached_tokens, json_get_int(f->body, STR("cached_tokens"), 0));
    l->cost_nano = add_clamped(l->cost_nano, nano_of(json_get(f->body, STR("cost"))));
}

void ledger_error(struct ledger *l, const struct fact *f)
{
    ledger_turn(l, f);
    l->errors++;
    l->run.retry_ms = time_of(f, "retry_at");
    text_set(&l->run.retry_error, l->run.retry_ms ? text_of(f, "message") : STR(""));
}

void ledger_tool_started(struct ledger *l, const struct fact *f)
{
    struct effect *e = mem_zero(sizeof *e), *old;
    struct str effect = text_of(f, "effect");

    ledger_turn(l, f);
    denied_then(l, "step", text_of(f, "tool"), "has begun");
    text_set(&e->tool, text_of(f, "tool"));
    text_set(&e->effect, effect.len ? effect : STR("once"));
    e->seq = f->ev->seq;
    e->turn = json_get_int(f->body, STR("turn"), 0);
    e->pid = json_get_int(f->body, STR("pid"), 0);
    e->pid_start = json_get_int(f->body, STR("pid_start"), 0);
    old = map_put(&l->effects, text_of(f, "call_id"), e);
    if (old)
        effect_free(old);
}

/* Which step keeps the chain from continuing by itself. */
static void note_stuck(struct ledger *l, const struct fact *f, const struct effect *e)
{
    struct str tool = text_of(f, "tool");

    if (str_eq(f->ev->kind, STR("tool.completed"))) {
        if (str_eq(tool, str_from(l->stuck)))
            text_set(&l->stuck, STR(""));
    } else if (e && str_eq(str_from(e->effect), STR("once")) && json_get_bool(f->body, STR("begun"), true)) {
        text_set(&l->stuck, tool);
    }
}

void ledger_tool_ended(struct ledger *l, const struct fact *f)
{
    struct effect *e = map_remove(&l->effects, text_of(f, "call_id"));

    note_stuck(l, f, e);
    if (e)
        effect_free(e);
    if (str_eq(f->ev->kind, STR("tool.completed"))) {
        l->effects_completed++;
        l->chain_resumes = 0;
    } else if (str_eq(f->ev->kind, STR("tool.failed"))) {
        l->effects_failed++;
        l->errors++;
    } else {
        l->effects_unknown++;
    }
}

/* Its effect never began: there is nothing to settle. */
void ledger_tool_withdrawn(struct ledger *l, const struct fact *f)
{
    struct effect *e = map_remove(&l->effects, text_of(f, "call_id"));

    if (e)
        effect_free(e);
}

void ledger_checkpoint(struct ledger *l, const struct fact *f)
{
    (void)f;
    l->checkpoints++;
    l->checkpoint_events++;
}

void ledger_checkpoint_deleted(struct ledger *l, const struct fact *f)
{
    const struct json *ids = json_get(f->body, STR("checkpoint_ids"));

    l->checkpoint_events++;
    if (ids && ids->type == JSON_ARRAY)
        l->checkpoints -= ids->count;
}

bool ledger_has_open_effect(const struct ledger *l)
{
    for (struct map_entry *e = map_next(&l->effects, NULL); e; e = map_next(&l->effects, e)) {
        if (!((const struct effect *)e->value)->past)
            return true;
    }
    return false;
}
