/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a chain of runs has done, read from its log when a run of it begins, so that the state stays small however many
 * steps a program has. What a rollback cut off does not count, but for effects that must happen once, unless somebody chose
 * to have them again: those that completed answer, and those that failed or were cut are left to a person.
 */
#include "base/timefmt.h"
#include "base/invariant.h"
#include "session/run.h"

struct reading {
    struct tide_session *s;
    struct chain *chain;
    struct arena arena;
    int64_t run;      /* number of the one that is being read */
    char *wait_key;   /* of the wait that is open; malloc or NULL */
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
    m->run = r->run;
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
    m->run = r->run; /* which settled it, where it was cut */
    m->undone = withdrawn || (m->state == RECORDED_FAILED && json_get(body, STR("settled")));
    m->retry_at_ms = time_in(r, body, "retry_at");
}

static void read_waiting(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str key = json_get_text(&r->arena, body, STR("wait_key"));
    struct recorded *m;

    text_set(&r->wait_key, key);
    if (!key.len)
        return;
    m = chain_recorded(&r->chain->waits, key);
    m->state = RECORDED_WAITING;
    m->seq = ev->seq;
    m->due_ms = time_in(r, body, "due_at");
}

static void read_resumed(struct reading *r, const struct event *ev, const struct json *body)
{
    struct recorded *m = r->wait_key ? map_get(&r->chain->waits, str_from(r->wait_key)) : NULL;

    (void)body;
    if (m) {
        m->state = RECORDED_ANSWERED;
        m->seq = ev->seq;
    }
    text_set(&r->wait_key, STR(""));
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
    text_set(&r->wait_key, STR(""));
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
static bool counts(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str effect = json_get_text(&r->arena, body, STR("effect"));
    const struct recorded *m;

    if (session_in_content(r->s, ev->seq))
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

    r->run += str_eq(ev->kind, STR("run.started"));
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (!str_eq(ev->kind, str_from(readers[i].kind)))
            continue;
        arena_reset(&r->arena);
        if (!json_parse(&r->arena, ev->body, NULL, &body, NULL, NULL) && counts(r, ev, body))
            readers[i].read(r, ev, body);
        break;
    }
    return 0;
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

enum tide_code chain_load(struct tide_session *s, struct chain *ret, struct tide_err *err)
{
    struct reading r = {.s = s, .chain = ret, .arena = ARENA_INIT};
    const struct ledger *l;
    enum tide_code code;

    INVARIANT(!ret->steps.live && !ret->waits.live && !ret->checkpoints.live);
    code = session_sync(s, err); /* the head must know of our own last append */
    if (code)
        return code;
    l = &s->state->ledger;
    if (!l->chain_seq)
        return TIDE_OK;
    r.run = l->chain_first ? l->chain_first - 1 : INT64_MIN; /* of an older snapshot: not known, never positive */
    if (l->rollbacks)
        code = session_read(s, &s->head, l->chain_seq, 0, find_choice, &r, err);
    code = code ? code : session_read(s, &s->head, l->chain_seq, 0, read_event, &r, err);
    free(r.wait_key);
    free(r.redo);
    arena_done(&r.arena);
    return code;
}
