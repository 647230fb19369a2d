/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a chain of runs has done, read from its log, so that the state stays small however many steps a program has. What a
 * rollback cut off does not count, but for effects that must happen once, unless somebody chose to have them again: those that
 * completed answer, and those that failed or were cut are left to a person.
 *
 * A program that runs again asks in the order of the log, so the log is read in that order, a block when it is needed: resuming
 * costs the same however long the chain is. What is final may be answered before the rest is read: a step that has completed, a
 * wait that was answered, a checkpoint. Nothing later in the log changes these, unless the session was rolled back or trusted:
 * then all is read at once. A block ends with a proof of origin, which covers what is before it; what has none is read to its
 * end, which was proved before.
 */
#include "base/timefmt.h"
#include "base/invariant.h"
#include "session/run.h"
#include "store/origin.h"

#define BLOCK_MIN 8 /* events */
#define BLOCK_MAX 1024

struct reading {
    struct tide_session *s;
    struct chain *chain;
    struct arena arena;
    size_t n;         /* events of this block so far */
    bool stopped;     /* behind a proof */
    bool cut;         /* the session was rolled back */
    int64_t keep_to;  /* effects before this rollback count though they were cut, … */
    struct cut *redo; /* … but for those that one of these cut off; malloc or NULL */
    size_t n_redo;
};

/* What a rollback cut off: behind `from`, before `to`, which is the rollback. */
struct cut {
    int64_t from, to;
};

void chain_done(struct chain *c)
{
    map_done(&c->steps, free);
    map_done(&c->waits, free);
    map_done(&c->checkpoints, free);
    free(c->wait_key);
    memset(c, 0, sizeof *c);
}

struct recorded *chain_recorded(struct map *m, struct str key)
{
    struct recorded *mark = map_get(m, key);

    if (!mark) {
        mark = mem_zero(sizeof *mark);
        map_put(m, key, mark);
    }
    return mark;
}

static int64_t time_in(struct reading *r, const struct json *body, const char *key)
{
    int64_t ms = 0;

    return time_parse(json_get_text(&r->arena, body, str_from(key)), &ms) ? ms : 0;
}

static void read_started(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str key = json_get_text(&r->arena, body, STR("call_id")),
               effect = json_get_text(&r->arena, body, STR("effect"));
    struct recorded *m = chain_recorded(&r->chain->steps, key);

    m->state = RECORDED_STARTED;
    m->seq = ev->seq;
    m->run = r->chain->run;
    m->attempt = (int)json_get_int(body, STR("attempt"), 0);
    m->once = !effect.len || str_eq(effect, STR("once"));
    snprintf(m->args, sizeof m->args, "%.*s", STR_ARG(json_get_text(&r->arena, body, STR("args_digest"))));
}

static void read_ended(struct reading *r, const struct event *ev, const struct json *body)
{
    struct recorded *m = map_get(&r->chain->steps, json_get_text(&r->arena, body, STR("call_id")));
    bool withdrawn = str_eq(ev->kind, STR("tool.withdrawn"));

    if (!m)
        return; /* its beginning was cut off */
    m->state = str_eq(ev->kind, STR("tool.completed"))             ? RECORDED_COMPLETED
               : withdrawn || str_eq(ev->kind, STR("tool.failed")) ? RECORDED_FAILED
                                                                   : RECORDED_UNKNOWN;
    m->seq = ev->seq;
    m->run = r->chain->run; /* which settled it, where it was cut */
    m->undone = withdrawn || (m->state == RECORDED_FAILED && json_get(body, STR("settled")));
    m->retry_at_ms = time_in(r, body, "retry_at");
}

static void read_waiting(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str key = json_get_text(&r->arena, body, STR("wait_key"));
    struct recorded *m;

    text_set(&r->chain->wait_key, key);
    if (!key.len)
        return;
    m = chain_recorded(&r->chain->waits, key);
    m->state = RECORDED_WAITING;
    m->seq = ev->seq;
    m->due_ms = time_in(r, body, "due_at");
}

static void read_resumed(struct reading *r, const struct event *ev, const struct json *body)
{
    struct chain *c = r->chain;
    struct recorded *m = c->wait_key ? map_get(&c->waits, str_from(c->wait_key)) : NULL;

    (void)body;
    if (m) {
        m->state = RECORDED_ANSWERED;
        m->seq = ev->seq;
    }
    text_set(&c->wait_key, STR(""));
}

/* What was answered elsewhere is void, whatever it is called there: an approval may have been given another name. */
static void read_trusted(struct reading *r, const struct event *ev, const struct json *body)
{
    (void)ev;
    (void)body;
    for (struct map_entry *e = map_next(&r->chain->waits, NULL); e; e = map_next(&r->chain->waits, e)) {
        struct recorded *m = e->value;

        m->state = RECORDED_WAITING;
    }
}

static void read_checkpoint(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str key = json_get_text(&r->arena, body, STR("key")),
               id = json_get_text(&r->arena, body, STR("checkpoint_id"));

    (void)ev;
    if (key.len)
        map_set_text(&r->chain->checkpoints, key, id);
}

static void read_run_ended(struct reading *r, const struct event *ev, const struct json *body)
{
    (void)ev;
    (void)body;
    text_set(&r->chain->wait_key, STR(""));
}

/* What the fold of a chain does with each kind. */
static const struct {
    const char *kind;
    void (*read)(struct reading *, const struct event *, const struct json *);
} readers[] = {
    {"tool.started", read_started},    {"tool.completed", read_ended},  {"tool.failed", read_ended},
    {"tool.unknown", read_ended},      {"tool.withdrawn", read_ended},  {"run.waiting", read_waiting},
    {"run.resumed", read_resumed},     {"checkpoint", read_checkpoint}, {"run.interrupted", read_run_ended},
    {"run.cancelled", read_run_ended}, {"run.failed", read_run_ended},  {"session.trusted", read_trusted},
};

/* One that an earlier rollback kept is not meant by a later one that did not reach as far back. */
static bool is_redone(const struct reading *r, int64_t seq)
{
    bool is = false;

    for (size_t i = 0; i < r->n_redo && !is; i++)
        is = seq > r->redo[i].from && seq < r->redo[i].to;
    return is;
}

/* A cut event counts only as part of an effect that must not be done twice. */
static bool event_counts(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str effect = json_get_text(&r->arena, body, STR("effect"));
    const struct recorded *m;

    if (!r->cut || session_in_content(r->s, ev->seq))
        return true;
    if (!str_starts(ev->kind, STR("tool.")) || ev->seq >= r->keep_to || is_redone(r, ev->seq))
        return false;
    m = map_get(&r->chain->steps, json_get_text(&r->arena, body, STR("call_id")));
    return str_eq(ev->kind, STR("tool.started")) ? !effect.len || str_eq(effect, STR("once")) : m && m->once;
}

static int read_event(void *arg, const struct event *ev)
{
    struct reading *r = arg;
    struct json *body;

    r->chain->next = ev->seq + 1;
    r->chain->run += str_eq(ev->kind, STR("run.started"));
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (!str_eq(ev->kind, str_from(readers[i].kind)))
            continue;
        arena_reset(&r->arena);
        if (!json_parse(&r->arena, ev->body, NULL, &body, NULL, NULL) && event_counts(r, ev, body))
            readers[i].read(r, ev, body);
        break;
    }
    r->stopped = ++r->n >= r->chain->block &&
                 origin_holds(&ev->proof, &r->s->store->origin, str_from(r->s->head.id), ev->seq, ev->digest);
    return r->stopped;
}

static int find_choice(void *arg, const struct event *ev)
{
    struct reading *r = arg;
    struct json *body;

    if (!str_eq(ev->kind, STR("session.rolled_back")))
        return 0;
    arena_reset(&r->arena);
    if (json_parse(&r->arena, ev->body, NULL, &body, NULL, NULL))
        return 0;
    INVARIANT(ev->seq > r->keep_to);
    if (str_eq(json_get_text(&r->arena, body, STR("effects")), STR("redo"))) {
        r->redo = mem_grow(r->redo, (r->n_redo + 1) * sizeof *r->redo);
        r->redo[r->n_redo++] = (struct cut){json_get_int(body, STR("to_seq"), 0), ev->seq};
    }
    r->keep_to = ev->seq; /* one that says nothing cut off none that completed, but maybe some that failed */
    return 0;
}

/* The rest at once is read right behind a look at the state; what comes later is of the log as it was then. */
static enum tide_code read_block(struct tide_session *s, struct chain *c, struct tide_err *err)
{
    bool all = c->block == SIZE_MAX;
    struct reading r = {.s = s, .chain = c, .arena = ARENA_INIT, .cut = all && s->state->ledger.rollbacks};
    enum tide_code code = TIDE_OK;

    if (r.cut)
        code = session_read(s, &s->head, c->next, 0, find_choice, &r, err);
    code = code ? code : session_read(s, &s->head, c->next, c->stop - 1, read_event, &r, err);
    free(r.redo);
    arena_done(&r.arena);
    if (!code && !r.stopped)
        c->next = c->stop;
    if (!all && c->block <= BLOCK_MAX / 2)
        c->block *= 2;
    return code;
}

static enum tide_code read_rest(struct tide_session *s, struct chain *c, struct tide_err *err)
{
    c->block = SIZE_MAX;
    return chain_is_read(c) ? TIDE_OK : read_block(s, c, err);
}

enum tide_code chain_open(struct tide_session *s, struct chain *ret, struct tide_err *err)
{
    const struct ledger *l;

    INVARIANT(!ret->steps.live && !ret->waits.live && !ret->checkpoints.live);
    if (session_sync(s, err)) /* the head must know of our own last append */
        return err->code;
    l = &s->state->ledger;
    if (!l->chain_seq)
        return TIDE_OK;
    ret->next = l->chain_seq;
    ret->stop = s->head.last_seq + 1;
    ret->run = l->chain_first ? l->chain_first - 1 : INT64_MIN; /* of an older snapshot: not known, never positive */
    ret->block = BLOCK_MIN;
    return l->rollbacks || l->trusted_seq > l->chain_seq ? read_rest(s, ret, err) : TIDE_OK;
}

enum tide_code chain_load(struct tide_session *s, struct chain *ret, struct tide_err *err)
{
    enum tide_code code = chain_open(s, ret, err);

    return code ? code : read_rest(s, ret, err);
}

/* Nothing later in the log changes it. */
static bool is_final(const struct chain *c, const struct map *m, const void *found)
{
    const struct recorded *r = found;

    return found && (m == &c->checkpoints || r->state == RECORDED_COMPLETED || r->state == RECORDED_ANSWERED);
}

enum tide_code chain_find(struct tide_session *s, struct chain *c, const struct map *m, struct str key, void *ret_found,
                          struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    void *found = map_get(m, key);

    while (!code && !chain_is_read(c) && !is_final(c, m, found)) {
        code = read_block(s, c, err);
        found = map_get(m, key);
    }
    memcpy(ret_found, &found, sizeof found);
    return code;
}
