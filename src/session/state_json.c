/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state as JSON and back: what `tidemark state` prints is what snapshots hold. Order follows insertion, so that equal
 * histories give equal bytes however they were folded.
 */
#include "session/fold.h"
#include "session/value_places.h"

static const char *const run_ends[] = {"none", "open", "completed", "failed", "cancelled", "interrupted"};
static const char *const token_states[] = {"none", "active", "consumed", "revoked", "expired"};

/* What is stored leaves zeros out: there are many of them. */
static void put_int(struct json_out *o, struct str key, int64_t v, enum state_part part)
{
    if (v || part == STATE_ALL)
        json_out_kint(o, key, v);
}

static void put_texts(struct json_out *o, const char *name, const struct map *m)
{
    json_out_key(o, str_from(name));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e))
        json_out_kraw(o, map_key(e), str_from(e->value));
    json_out_end(o, '}');
}

void state_put_ints(struct json_out *o, const char *name, const struct map *m)
{
    json_out_key(o, str_from(name));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e))
        json_out_kint(o, map_key(e), *(int64_t *)e->value);
    json_out_end(o, '}');
}

static void put_conversations(struct json_out *o, const struct map *m)
{
    json_out_key(o, STR("conversations"));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        const struct message_range *t = e->value;

        json_out_key(o, map_key(e));
        json_out_begin(o, '{');
        json_out_kint(o, STR("visit"), t->visit);
        json_out_kint(o, STR("messages"), t->messages);
        json_out_kint(o, STR("first_seq"), t->first_seq);
        json_out_kint(o, STR("last_seq"), t->last_seq);
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
}

static void put_spans(struct json_out *o, const struct content *c)
{
    json_out_key(o, STR("spans"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < c->span_count; i++) {
        json_out_begin(o, '{');
        json_out_kstr(o, STR("session"), str_from(c->spans[i].session));
        json_out_kint(o, STR("from"), c->spans[i].from);
        json_out_kint(o, STR("to"), c->spans[i].to);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

static void put_content(struct json_out *o, const struct content *c, enum state_part part, const struct map *weights)
{
    json_out_key(o, STR("content"));
    json_out_begin(o, '{');
    put_int(o, STR("turn"), c->turn, part);
    put_int(o, STR("messages"), c->messages, part);
    put_int(o, STR("failures"), c->failures, part);
    json_out_kstr_opt(o, STR("node"), str_from(c->node));
    json_out_kstr_opt(o, STR("next_node"), str_from(c->next_node));
    json_out_kstr_opt(o, STR("checkpoint_id"), str_from(c->checkpoint));
    put_int(o, STR("checkpoint_seq"), c->checkpoint_seq, part);
    json_out_kstr_opt(o, STR("resume_checkpoint_id"), str_from(c->resume_checkpoint));
    put_int(o, STR("resume_checkpoint_seq"), c->resume_checkpoint_seq, part);
    if (part != STATE_SUMMARY) {
        json_out_key(o, STR("memory"));
        place_put_values(o, c, STR(""), &c->memory, weights);
        if (weights)
            places_encode(o, c, weights);
        json_out_key(o, STR("outputs"));
        json_out_begin(o, '{');
        for (struct map_entry *e = map_next(&c->outputs, NULL); e; e = map_next(&c->outputs, e))
            put_texts(o, e->key, e->value);
        json_out_end(o, '}');
        state_put_ints(o, "visits", &c->visits);
        put_conversations(o, &c->conversations);
        put_spans(o, c);
    }
    position_encode(o, c, part, weights);
    json_out_end(o, '}');
}

static void put_run(struct json_out *o, const struct run *r, enum state_part part)
{
    json_out_key(o, STR("run"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("end"), str_from(run_ends[r->end]));
    json_out_kstr_opt(o, STR("run_id"), str_from(r->run_id));
    json_out_kstr_opt(o, STR("boot_id"), str_from(r->boot_id));
    json_out_kstr_opt(o, STR("kernel_boot"), str_from(r->kernel_boot));
    put_int(o, STR("started_seq"), r->started_seq, part);
    put_int(o, STR("started_ms"), r->started_ms, part);
    put_int(o, STR("ended_seq"), r->ended_seq, part);
    put_int(o, STR("ended_ms"), r->ended_ms, part);
    json_out_kstr_opt(o, STR("reason"), str_from(r->reason));
    json_out_kstr_opt(o, STR("error_code"), str_from(r->error_code));
    json_out_kstr_opt(o, STR("error_message"), str_from(r->error_message));
    json_out_kstr_opt(o, STR("failed_at_node"), str_from(r->failed_at_node));
    json_out_kstr_opt(o, STR("resume_from_checkpoint_id"), str_from(r->resume_from_checkpoint_id));
    json_out_kstr_opt(o, STR("changed_step"), str_from(r->changed_step));
    if (r->resumable >= 0)
        json_out_kbool(o, STR("resumable"), r->resumable);
    json_out_kbool(o, STR("waiting"), r->waiting);
    if (r->by_person)
        json_out_kbool(o, STR("by_person"), true);
    json_out_kstr_opt(o, STR("wait_name"), str_from(r->wait_name));
    json_out_kstr_opt(o, STR("wait_kind"), str_from(r->wait_kind));
    json_out_kstr_opt(o, STR("wait_key"), str_from(r->wait_key));
    json_out_kstr_opt(o, STR("question"), str_from(r->question));
    put_int(o, STR("since_seq"), r->since_seq, part);
    put_int(o, STR("since_ms"), r->since_ms, part);
    put_int(o, STR("deadline_ms"), r->deadline_ms, part);
    put_int(o, STR("due_ms"), r->due_ms, part);
    if (r->on_deadline)
        json_out_kstr(o, STR("on_deadline"), str_from(tide_on_deadline_name(r->on_deadline)));
    json_out_kstr_opt(o, STR("default_answer"), str_from(r->default_answer));
    json_out_kstr_opt(o, STR("token_id"), str_from(r->token_id));
    json_out_kstr(o, STR("token"), str_from(token_states[r->token]));
    put_int(o, STR("token_expires_ms"), r->token_expires_ms, part);
    json_out_kstr_opt(o, STR("token_hash"), str_from(r->token_hash));
    json_out_kstr_opt(o, STR("retry_error"), str_from(r->retry_error));
    put_int(o, STR("retry_ms"), r->retry_ms, part);
    put_int(o, STR("pid_ns"), r->pid_ns, part);
    put_int(o, STR("pid"), r->pid, part);
    put_int(o, STR("pid_start"), r->pid_start, part);
    put_int(o, STR("active_seq"), r->active_seq, part);
    if (r->degraded)
        json_out_kint(o, STR("degraded"), r->degraded);
    json_out_end(o, '}');
}

static void put_effects(struct json_out *o, const struct map *m)
{
    json_out_key(o, STR("effects"));
    json_out_begin(o, '{');
    for (struct map_entry *it = map_next(m, NULL); it; it = map_next(m, it)) {
        const struct effect *e = it->value;

        json_out_key(o, map_key(it));
        json_out_begin(o, '{');
        json_out_kstr_opt(o, STR("tool"), str_from(e->tool));
        json_out_kstr_opt(o, STR("effect"), str_from(e->effect));
        json_out_kint(o, STR("seq"), e->seq);
        json_out_kint(o, STR("turn"), e->turn);
        put_int(o, STR("pid"), e->pid, STATE_SNAPSHOT);
        put_int(o, STR("pid_start"), e->pid_start, STATE_SNAPSHOT);
        json_out_kbool(o, STR("unknown"), e->unknown);
        if (e->past)
            json_out_kbool(o, STR("past"), true);
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
}

static void put_tokens(struct json_out *o, const struct map *m)
{
    json_out_key(o, STR("tokens"));
    json_out_begin(o, '{');
    for (struct map_entry *it = map_next(m, NULL); it; it = map_next(m, it)) {
        const struct token_past *t = it->value;

        json_out_key(o, map_key(it));
        json_out_begin(o, '{');
        json_out_kstr_opt(o, STR("run_id"), str_from(t->run_id));
        json_out_kstr_opt(o, STR("wait_kind"), str_from(t->wait_kind));
        json_out_kstr(o, STR("state"), str_from(token_states[t->state]));
        put_int(o, STR("expires_ms"), t->expires_ms, STATE_SNAPSHOT);
        json_out_kstr_opt(o, STR("hash"), str_from(t->hash));
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
}

/* Every plain number of the ledger: one table for writing and reading. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {
#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct ledger, name)                                                                           \
    }
    NUMBER(events),
    NUMBER(runs),
    NUMBER(max_turn),
    NUMBER(effects_completed),
    NUMBER(effects_failed),
    NUMBER(effects_unknown),
    NUMBER(input_tokens),
    NUMBER(output_tokens),
    NUMBER(cached_tokens),
    NUMBER(calls),
    NUMBER(cost_nano),
    NUMBER(errors),
    NUMBER(rollbacks),
    NUMBER(checkpoints),
    NUMBER(checkpoint_events),
    NUMBER(cancel_seq),
    NUMBER(chain_seq),
    NUMBER(program_seq),
    NUMBER(program_kind),
    NUMBER(hidden_seq),
    NUMBER(chain_resumes),
    NUMBER(chain_before),
    NUMBER(chain_first),
    NUMBER(trusted_seq),
    NUMBER(queued),
    NUMBER(notify_from),
    NUMBER(notify_last),
    NUMBER(notify_tries),
    NUMBER(notify_retry_ms),
#undef NUMBER
};

static void put_denied(struct json_out *o, const struct denied *d)
{
    if (!d->name)
        return;
    json_out_key(o, STR("denied"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(d->name));
    json_out_kstr_opt(o, STR("key"), str_from(d->key));
    json_out_kstr_opt(o, STR("question"), str_from(d->question));
    json_out_kint(o, STR("seq"), d->seq);
    json_out_kstr_opt(o, STR("then"), str_from(d->then));
    json_out_end(o, '}');
}

static void get_denied(struct arena *a, struct denied *d, const struct json *v)
{
    text_set(&d->name, json_get_text(a, v, STR("name")));
    text_set(&d->key, json_get_text(a, v, STR("key")));
    text_set(&d->question, json_get_text(a, v, STR("question")));
    text_set(&d->then, json_get_text(a, v, STR("then")));
    d->seq = json_get_int(v, STR("seq"), 0);
}

static void put_ledger(struct json_out *o, const struct ledger *l, enum state_part part)
{
    json_out_key(o, STR("ledger"));
    json_out_begin(o, '{');
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_int(o, str_from(numbers[i].name), *(const int64_t *)((const char *)l + numbers[i].at), part);
    json_out_kstr_opt(o, STR("chain_id"), str_from(l->chain_id));
    json_out_kstr_opt(o, STR("stuck"), str_from(l->stuck));
    if (part == STATE_ALL || l->run.end != RUN_NONE)
        put_run(o, &l->run, part);
    put_denied(o, &l->denied);
    if (part != STATE_SUMMARY) {
        put_effects(o, &l->effects);
        state_put_ints(o, "queue", &l->queue);
        state_put_ints(o, "approvals", &l->approvals);
        put_tokens(o, &l->tokens);
    }
    json_out_end(o, '}');
}

void state_encode(struct buf *out, const struct state *s, enum state_part part)
{
    struct json_out o = json_out_to(out);
    struct map weights = {0};

    if (part == STATE_SNAPSHOT)
        places_weigh(&s->content, &weights);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(s->session));
    json_out_kint(&o, STR("seq"), s->seq);
    json_out_kint(&o, STR("ts_ms"), s->ts_ms);
    put_texts(&o, "session", &s->info.fields);
    put_content(&o, &s->content, part, weights.live ? &weights : NULL);
    put_ledger(&o, &s->ledger, part);
    json_out_end(&o, '}');
    map_done(&weights, free);
}

static void get_texts(struct arena *a, struct map *m, const struct json *object)
{
    for (const struct json *v = object ? object->first : NULL; v; v = v->next)
        map_set_text(m, json_key_text(a, v), json_source(v));
}

void state_get_ints(struct arena *a, struct map *m, const struct json *object)
{
    for (const struct json *v = object ? object->first : NULL; v; v = v->next) {
        int64_t n;

        if (json_int(v, &n))
            map_set_int(m, json_key_text(a, v), n);
    }
}

static int name_index(const char *const *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(str_from(names[i]), name))
            return (int)i;
    }
    return 0;
}

static void get_id(char out[TIDE_ID_SIZE], struct arena *a, const struct json *object, const char *key)
{
    snprintf(out, TIDE_ID_SIZE, "%.*s", STR_ARG(json_get_text(a, object, str_from(key))));
}

static void get_spans(struct arena *a, struct content *c, const struct json *spans)
{
    if (!spans || spans->type != JSON_ARRAY)
        return;
    c->spans = mem_array(spans->count ? spans->count : 1, sizeof *c->spans);
    for (const struct json *v = spans->first; v; v = v->next) {
        struct span *s = &c->spans[c->span_count++];

        get_id(s->session, a, v, "session");
        s->from = json_get_int(v, STR("from"), 0);
        s->to = json_get_int(v, STR("to"), 0);
    }
}

static void get_conversations(struct arena *a, struct map *m, const struct json *object)
{
    for (const struct json *v = object ? object->first : NULL; v; v = v->next) {
        struct message_range *t = mem_zero(sizeof *t);

        t->visit = json_get_int(v, STR("visit"), 0);
        t->messages = json_get_int(v, STR("messages"), 0);
        t->first_seq = json_get_int(v, STR("first_seq"), 0);
        t->last_seq = json_get_int(v, STR("last_seq"), 0);
        map_put(m, json_key_text(a, v), t);
    }
}

static void get_content(struct arena *a, struct content *c, const struct json *v)
{
    const struct json *outputs = json_get(v, STR("outputs"));

    c->turn = json_get_int(v, STR("turn"), 0);
    c->messages = json_get_int(v, STR("messages"), 0);
    c->failures = json_get_int(v, STR("failures"), 0);
    text_set(&c->node, json_get_text(a, v, STR("node")));
    text_set(&c->next_node, json_get_text(a, v, STR("next_node")));
    get_id(c->checkpoint, a, v, "checkpoint_id");
    c->checkpoint_seq = json_get_int(v, STR("checkpoint_seq"), 0);
    get_id(c->resume_checkpoint, a, v, "resume_checkpoint_id");
    c->resume_checkpoint_seq = json_get_int(v, STR("resume_checkpoint_seq"), 0);
    get_texts(a, &c->memory, json_get(v, STR("memory")));
    for (const struct json *n = outputs ? outputs->first : NULL; n; n = n->next) {
        struct map *m = mem_zero(sizeof *m);

        get_texts(a, m, n);
        map_put(&c->outputs, json_key_text(a, n), m);
    }
    state_get_ints(a, &c->visits, json_get(v, STR("visits")));
    get_conversations(a, &c->conversations, json_get(v, STR("conversations")));
    get_spans(a, c, json_get(v, STR("spans")));
    position_decode(a, &c->position, json_get(v, STR("position")));
    places_decode(a, c, json_get(v, STR("places")));
}

static enum token_state token_state_of(struct arena *a, const struct json *v, const char *key)
{
    return (enum token_state)name_index(token_states, sizeof token_states / sizeof token_states[0],
                                        json_get_text(a, v, str_from(key)));
}

static void get_run(struct arena *a, struct run *r, const struct json *v)
{
    const struct {
        char **slot;
        const char *key;
    } texts[] = {
        {&r->run_id, "run_id"},
        {&r->boot_id, "boot_id"},
        {&r->kernel_boot, "kernel_boot"},
        {&r->reason, "reason"},
        {&r->error_code, "error_code"},
        {&r->error_message, "error_message"},
        {&r->failed_at_node, "failed_at_node"},
        {&r->resume_from_checkpoint_id, "resume_from_checkpoint_id"},
        {&r->changed_step, "changed_step"},
        {&r->wait_name, "wait_name"},
        {&r->wait_kind, "wait_kind"},
        {&r->wait_key, "wait_key"},
        {&r->question, "question"},
        {&r->token_id, "token_id"},
        {&r->token_hash, "token_hash"},
        {&r->retry_error, "retry_error"},
        {&r->default_answer, "default_answer"},
    };
    int on_deadline;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        text_set(texts[i].slot, json_get_text(a, v, str_from(texts[i].key)));
    on_deadline = tide_on_deadline_from(arena_dup(a, json_get_text(a, v, STR("on_deadline"))).ptr);
    r->on_deadline = on_deadline > 0 ? (enum tide_on_deadline)on_deadline : TIDE_ON_DEADLINE_UNSET;
    r->end = (enum run_end)name_index(run_ends, sizeof run_ends / sizeof run_ends[0], json_get_text(a, v, STR("end")));
    r->token = token_state_of(a, v, "token");
    r->started_seq = json_get_int(v, STR("started_seq"), 0);
    r->started_ms = json_get_int(v, STR("started_ms"), 0);
    r->ended_seq = json_get_int(v, STR("ended_seq"), 0);
    r->ended_ms = json_get_int(v, STR("ended_ms"), 0);
    r->resumable = json_get(v, STR("resumable")) ? json_get_bool(v, STR("resumable"), true) : -1;
    r->waiting = json_get_bool(v, STR("waiting"), false);
    r->retry_ms = json_get_int(v, STR("retry_ms"), 0);
    r->degraded = json_get_int(v, STR("degraded"), 0);
    r->by_person = json_get_bool(v, STR("by_person"), false);
    r->since_seq = json_get_int(v, STR("since_seq"), 0);
    r->since_ms = json_get_int(v, STR("since_ms"), 0);
    r->deadline_ms = json_get_int(v, STR("deadline_ms"), 0);
    r->due_ms = json_get_int(v, STR("due_ms"), 0);
    r->token_expires_ms = json_get_int(v, STR("token_expires_ms"), 0);
    r->pid_ns = json_get_int(v, STR("pid_ns"), 0);
    r->pid = json_get_int(v, STR("pid"), 0);
    r->pid_start = json_get_int(v, STR("pid_start"), 0);
    r->active_seq = json_get_int(v, STR("active_seq"), 0);
}

static void get_tokens(struct arena *a, struct ledger *l, const struct json *tokens)
{
    for (const struct json *m = tokens ? tokens->first : NULL; m; m = m->next) {
        struct token_past *t = ledger_add_token(l, json_key_text(a, m));

        text_set(&t->run_id, json_get_text(a, m, STR("run_id")));
        text_set(&t->wait_kind, json_get_text(a, m, STR("wait_kind")));
        text_set(&t->hash, json_get_text(a, m, STR("hash")));
        t->state = token_state_of(a, m, "state");
        t->expires_ms = json_get_int(m, STR("expires_ms"), 0);
    }
}

static void get_ledger(struct arena *a, struct ledger *l, const struct json *v)
{
    const struct json *effects = json_get(v, STR("effects"));

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *(int64_t *)((char *)l + numbers[i].at) = json_get_int(v, str_from(numbers[i].name), 0);
    text_set(&l->chain_id, json_get_text(a, v, STR("chain_id")));
    text_set(&l->stuck, json_get_text(a, v, STR("stuck")));
    get_run(a, &l->run, json_get(v, STR("run")));
    get_denied(a, &l->denied, json_get(v, STR("denied")));
    for (const struct json *m = effects ? effects->first : NULL; m; m = m->next) {
        struct effect *e = mem_zero(sizeof *e);

        text_set(&e->tool, json_get_text(a, m, STR("tool")));
        text_set(&e->effect, json_get_text(a, m, STR("effect")));
        e->seq = json_get_int(m, STR("seq"), 0);
        e->turn = json_get_int(m, STR("turn"), 0);
        e->pid = json_get_int(m, STR("pid"), 0);
        e->pid_start = json_get_int(m, STR("pid_start"), 0);
        e->unknown = json_get_bool(m, STR("unknown"), false);
        e->past = json_get_bool(m, STR("past"), false);
        map_put(&l->effects, json_key_text(a, m), e);
    }
    state_get_ints(a, &l->queue, json_get(v, STR("queue")));
    if (l->queue.live) /* of an earlier version, without the number */
        l->queued = (int64_t)l->queue.live;
    state_get_ints(a, &l->approvals, json_get(v, STR("approvals")));
    get_tokens(a, l, json_get(v, STR("tokens")));
}

/* Earlier versions kept the seq of the latest run of an agent instead. */
static enum tide_session_kind kind_before(const struct state *s, int64_t loop_seq)
{
    if (loop_seq == s->ledger.program_seq)
        return TIDE_KIND_CHAT;
    return s->content.position.graph_digest && !loop_seq ? TIDE_KIND_GRAPH : TIDE_KIND_PROGRAM;
}

/* A whole state of an earlier version, which kept the latest token alone: the log has the others. */
static bool lacks_tokens(const struct json *v)
{
    return json_get(json_get(v, STR("content")), STR("memory")) && !json_get(json_get(v, STR("ledger")), STR("tokens"));
}

enum tide_code state_decode(struct str json, struct state **ret_state, struct tide_err *err)
{
    struct arena a = ARENA_INIT;
    struct json *v;
    struct state *s;
    const struct json_limits deeper = {0, JSON_MAX_DEPTH + 16}; /* events as deep as may be, inside ours */
    enum tide_code code = json_parse(&a, json, &deeper, &v, NULL, err);

    if (!code && lacks_tokens(v))
        code = tide_fail(err, TIDE_INVALID, "a state of an earlier version");
    if (!code) {
        s = state_new(json_get_text(&a, v, STR("session_id")));
        s->seq = json_get_int(v, STR("seq"), 0);
        s->ts_ms = json_get_int(v, STR("ts_ms"), 0);
        get_texts(&a, &s->info.fields, json_get(v, STR("session")));
        get_content(&a, &s->content, json_get(v, STR("content")));
        get_ledger(&a, &s->ledger, json_get(v, STR("ledger")));
        if (s->ledger.program_seq && !s->ledger.program_kind)
            s->ledger.program_kind = kind_before(s, json_get_int(json_get(v, STR("ledger")), STR("loop_seq"), 0));
        *ret_state = s;
    }
    arena_done(&a);
    return code;
}
