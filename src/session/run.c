/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run appends, and what happens when the store cannot take it. By default the run is held at that point and goes on
 * by itself when the store is back. A run that was told to continue keeps pure work in a bounded buffer meanwhile, each
 * event flagged; the buffer goes to the store first, in order, as soon as it can. If another took the lease by then, it is
 * written to a file of its own and named: nothing of it is passed off as stored.
 */
#include "session/run.h"

#include <inttypes.h>

#define BACKLOG_BYTES (8 * 1024 * 1024) /* a fuller one holds the run, as if it had not been told to continue */
#define BACKLOG_EVENTS 10000
#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 2000

struct tide_run *run_new(struct tide_session *s, const struct tide_run_options *opt)
{
    struct tide_run *r = mem_zero(sizeof *r);

    r->s = s;
    r->flags = opt->flags;
    r->trouble = opt->trouble;
    r->trouble_arg = opt->trouble_arg;
    for (const char *const *name = opt->retry; name && *name; name++)
        map_set_text(&r->retry, str_from(*name), str_from(*name));
    for (const char *const *name = opt->happened; name && *name; name++)
        map_set_text(&r->happened, str_from(*name), str_from(*name));
    return r;
}

static void attempt_free(void *p)
{
    struct attempt *a = p;

    free(a->key);
    free(a);
}

static void backlog_clear(struct backlog *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free((char *)b->events[i].kind);
        free((char *)b->events[i].body);
    }
    b->n = b->bytes = 0;
    b->doubt = false;
}

void run_free(struct tide_run *r)
{
    chain_done(&r->done);
    map_done(&r->uses, free);
    map_done(&r->active, attempt_free);
    map_done(&r->retry, free);
    map_done(&r->happened, free);
    map_done(&r->overlay, free);
    backlog_clear(&r->backlog);
    free(r->backlog.events);
    run_queue_done(r);
    free(r);
}

const char *tide_run_id(const tide_run *r)
{
    return r->id;
}

int tide_run_is_degraded(const tide_run *r)
{
    return r->backlog.n > 0;
}

bool run_is_trouble(enum tide_code code)
{
    return code == TIDE_FULL || code == TIDE_IO || code == TIDE_UNKNOWN || code == TIDE_BUSY;
}

enum tide_code run_usable(struct tide_run *r, struct tide_err *err)
{
    if (r->s->fenced)
        return tide_fail(err, TIDE_FENCED,
                         "session '%s': the lease of this run was taken over, or the session was deleted: `tidemark "
                         "sessions show %s` tells",
                         r->s->head.id, r->s->head.id);
    if (r->over)
        return tide_fail(err, TIDE_INVALID, "run '%s' is over", r->id);
    if (!r->starting && !r->s->owner.pending &&
        !r->s->owner.epoch) /* an append must not take a lease that its caller gave away */
        return tide_fail(err, TIDE_FENCED, "session '%s': the lease of run '%s' was given back", r->s->head.id, r->id);
    return TIDE_OK;
}

/* ---- names and keys ---------------------------------------------------------------------------------------------- */

enum tide_code run_name_check(const char *what, const char *name, struct tide_err *err)
{
    struct str s = str_from(name);

    if (s.len == 0 || s.len > 128 || !str_is_utf8(s, NULL))
        return tide_fail(err, TIDE_INVALID, "the name of a %s has 1 to 128 bytes of UTF-8", what);
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return tide_fail(err, TIDE_INVALID, "the name of a %s has no control characters", what);
    }
    return TIDE_OK;
}

static int64_t *use_count(struct tide_run *r, const char *what, const char *within, const char *name)
{
    char key[256];
    struct str k = {key, (size_t)snprintf(key, sizeof key, "%s %s %s", what, within ? within : "", name)};

    if (!map_get(&r->uses, k))
        map_set_int(&r->uses, k, 0);
    return map_get(&r->uses, k);
}

char *run_key(struct tide_run *r, const char *what, const char *within, const char *name)
{
    struct buf key = BUF_INIT(512);

    buf_addf(&key, "%s%s%s/%s/%" PRId64, r->chain_id, within ? "/" : "", within ? within : "", name,
             ++*use_count(r, what, within, name));
    return buf_take(&key);
}

void run_unuse(struct tide_run *r, const char *what, const char *within, const char *name)
{
    --*use_count(r, what, within, name);
}

/* ---- appending --------------------------------------------------------------------------------------------------- */

struct wanted {
    const struct tide_new_event *first;
    int64_t seq; /* 0: not found */
};

static int is_wanted(void *arg, const struct event *ev)
{
    struct wanted *w = arg;

    if (str_eq(ev->kind, str_from(w->first->kind)) &&
        str_eq(ev->body, (struct str){w->first->body, w->first->body_len}))
        w->seq = ev->seq;
    return w->seq != 0;
}

/* After an append of unknown outcome: where is it? Only we may append what a run does, so one like it is ours. */
static enum tide_code find_landed(struct tide_run *r, int64_t before, const struct tide_new_event *first,
                                  int64_t *ret_seq, struct tide_err *err)
{
    struct wanted w = {first, 0};
    enum tide_code code = session_sync(r->s, err);

    if (!code && r->s->head.last_seq > before)
        code = store_read(r->s->store, &r->s->head, before + 1, 0, is_wanted, &w, err);
    *ret_seq = w.seq;
    return code;
}

/* One append that may take several tries. */
struct trying {
    unsigned flags;
    const struct tide_new_event *events;
    size_t n;
    int64_t before; /* last seq when it began */
    bool unknown;   /* the outcome of the last try is not known: look before trying again */
};

static enum tide_code append_once(struct tide_run *r, struct trying *t, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int64_t first = 0;

    if (t->unknown)
        code = find_landed(r, t->before, t->events, &first, err);
    if (!code && first)
        r->appended_seq = first + (int64_t)t->n - 1;
    if (code || first)
        return code;
    if (t->unknown && !(t->flags & TIDE_APPEND_ANY) && r->s->head.last_seq != t->before) {
        t->unknown = false; /* it is not there, and others have come since: whoever decided must decide again */
        return tide_fail(err, TIDE_CONFLICT, "session '%s' has moved on", r->s->head.id);
    }
    code = session_append(r->s, t->flags, t->events, t->n, &r->appended_seq, err);
    t->unknown = code == TIDE_UNKNOWN;
    return code;
}

typedef enum tide_code try_fn(struct tide_run *r, void *arg, struct tide_err *err);

/* Tries until the store can, the caller gives up, or it fails for good. */
static enum tide_code hold(struct tide_run *r, try_fn *fn, void *arg, struct tide_err *err)
{
    struct env *env = r->s->store->env;
    int64_t waited = 0, pause = PAUSE_MIN_MS;
    enum tide_code code;

    while (run_is_trouble(code = fn(r, arg, err))) {
        if (r->trouble && r->trouble(r->trouble_arg, err, waited))
            return code;
        env->ops->sleep_ms(env, (int)pause);
        waited += pause;
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
    if (!code && waited && r->trouble)
        (void)r->trouble(r->trouble_arg, NULL, waited);
    return code;
}

static enum tide_code try_append(struct tide_run *r, void *trying, struct tide_err *err)
{
    return append_once(r, trying, err);
}

static enum tide_code append_held(struct tide_run *r, struct trying *t, struct tide_err *err)
{
    enum tide_code code = hold(r, try_append, t, err);

    r->unsure |= run_is_trouble(code) && t->unknown;
    return code;
}

/* ---- degraded ---------------------------------------------------------------------------------------------------- */

static bool has_room(const struct tide_run *r, const struct draft *d)
{
    size_t bytes = r->backlog.bytes;

    for (size_t i = 0; i < d->n; i++) {
        bytes += d->events[i].body_len + EVENT_OVERHEAD;
        if (d->events[i].body_len + EVENT_OVERHEAD > r->s->store->max_record_bytes)
            return false; /* it would never be taken, and hold all behind it */
    }
    return !r->backlog.doubt && bytes <= BACKLOG_BYTES && r->backlog.n + d->n <= BACKLOG_EVENTS;
}

static void backlog_add(struct tide_run *r, const struct draft *d)
{
    struct backlog *b = &r->backlog;

    for (size_t i = 0; i < d->n; i++) {
        const struct tide_new_event *ev = &d->events[i];
        struct buf body = BUF_INIT(SIZE_MAX / 4);

        if (b->n == b->cap) {
            b->cap = b->cap ? b->cap * 2 : 64;
            b->events = mem_grow(b->events, b->cap * sizeof *b->events);
        }
        buf_add_str(&body, STR("{\"durability\":\"degraded\""));
        if (ev->body_len > 2)
            buf_add_char(&body, ',');
        buf_add(&body, ev->body + 1, ev->body_len - 1);
        b->bytes += body.len + EVENT_OVERHEAD;
        b->events[b->n].kind = mem_dup(str_from(ev->kind));
        b->events[b->n].body_len = body.len;
        b->events[b->n++].body = buf_take(&body);
    }
}

/* Beside the file of the store, or in its directory. */
static void aside_name(const struct tide_run *r, struct buf *name)
{
    const struct store *store = r->s->store;
    const char *url = store->url, *scheme = store->ops->scheme;
    bool in_dir = strcmp(scheme, "files") == 0;
    size_t n = strlen(scheme);

    url += strncmp(url, scheme, n) == 0 && url[n] == ':' ? n + 1 : 0;
    buf_addf(name, "%s%caside-%s-%s.jsonl", url, in_dir ? '/' : '-', r->s->head.id, r->id);
}

/* The store is another's by now: what was not stored is kept in a file of its own, one event a line. */
static enum tide_code keep_aside(struct tide_run *r, struct tide_err *err)
{
    struct env *env = r->s->store->env;
    struct buf name = BUF_INIT(2048), text = BUF_INIT(SIZE_MAX / 4);
    struct env_file *file = NULL;
    struct tide_err why = {TIDE_OK, ""};
    enum tide_code code;

    aside_name(r, &name);
    for (size_t i = 0; i < r->backlog.n; i++) {
        const struct tide_new_event *ev = &r->backlog.events[i];

        buf_addf(&text, "{\"kind\":\"%s\",", ev->kind);
        buf_add(&text, ev->body + 1, ev->body_len - 1);
        buf_add_char(&text, '\n');
    }
    code = env->ops->open(env, buf_cstr(&name), ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, &why);
    if (!code) {
        code = env->ops->pwrite(file, text.ptr, text.len, 0, &why);
        code = code ? code : env->ops->sync(file, &why);
        env->ops->close(file);
    }
    tide_fail(err, TIDE_FENCED,
              code ? "%s; %zu events that were not stored are lost, they could not be kept aside: %s"
                   : "%s; %zu events that were not stored are kept in '%s'",
              err->msg, r->backlog.n, code ? why.msg : buf_cstr(&name));
    buf_done(&name);
    buf_done(&text);
    backlog_clear(&r->backlog);
    return TIDE_FENCED;
}

static void forget_degraded(struct tide_run *r)
{
    backlog_clear(&r->backlog);
    map_done(&r->overlay, free);
    memset(&r->overlay, 0, sizeof r->overlay);
}

/* The marks of what was in the buffer say where their events are now. */
static enum tide_code reread_marks(struct tide_run *r, struct tide_err *err)
{
    struct chain anew = {0};
    enum tide_code code = session_sync(r->s, err);

    code = code ? code : chain_load(r->s, &anew, err);
    if (code) {
        chain_done(&anew);
        return code;
    }
    chain_done(&r->done);
    r->done = anew;
    r->unsure = false;
    return TIDE_OK;
}

enum tide_code run_sure(struct tide_run *r, struct tide_err *err)
{
    enum tide_code code = run_usable(r, err);

    code = code ? code : run_flush(r, err);
    return code || !r->unsure || r->backlog.n ? code : reread_marks(r, err);
}

static enum tide_code backlog_flush(struct tide_run *r, bool held, struct tide_err *err)
{
    struct backlog *b = &r->backlog;
    struct trying t = {TIDE_APPEND_ANY, b->events, b->n, b->doubt ? b->before : tide_session_last_seq(r->s), b->doubt};
    enum tide_code code;

    if (!b->n)
        return TIDE_OK;
    b->tried_ms = env_now_ms(r->s->store->env);
    code = held ? TIDE_UNKNOWN : append_once(r, &t, err);
    if (held || t.unknown) /* what may be there must not be written twice: then it is waited for */
        code = append_held(r, &t, err);
    if (code == TIDE_FENCED || code == TIDE_HELD)
        return keep_aside(r, err);
    if (code) {
        b->doubt = t.unknown;
        b->before = t.before;
        return code;
    }
    forget_degraded(r);
    r->unsure = true;
    return reread_marks(r, err);
}

enum tide_code run_settle(struct tide_run *r, struct tide_err *err)
{
    return backlog_flush(r, true, err);
}

enum tide_code run_append_again(struct tide_run *r, int64_t before, const struct draft *d, struct tide_err *err)
{
    struct trying t = {TIDE_APPEND_ANY, d->events, d->n, before, true};

    return append_held(r, &t, err);
}

enum tide_code run_append(struct tide_run *r, unsigned flags, const struct draft *d, bool pure, struct tide_err *err)
{
    bool may_wait = pure && r->flags & TIDE_RUN_CONTINUE && has_room(r, d);
    int64_t now = env_now_ms(r->s->store->env);
    struct trying t = {flags, d->events, d->n, 0, false};
    enum tide_code code = run_flush(r, err); /* what was queued comes first */

    if (code)
        return code;
    if (r->backlog.n && may_wait && now - r->backlog.tried_ms < PAUSE_MAX_MS && now >= r->backlog.tried_ms) {
        backlog_add(r, d);
        return TIDE_OK;
    }
    code = backlog_flush(r, !may_wait, err);
    if (code && r->backlog.doubt)
        return code;
    t.before = tide_session_last_seq(r->s);
    if (!may_wait)
        return code ? code : append_held(r, &t, err);
    code = code ? code : append_once(r, &t, err);
    if (t.unknown)
        return append_held(r, &t, err);
    if (!run_is_trouble(code))
        return code;
    if (!r->backlog.n && r->trouble && r->trouble(r->trouble_arg, err, 0))
        return code;
    r->backlog.tried_ms = now;
    backlog_add(r, d);
    return TIDE_OK;
}

/* ---- looking, ending --------------------------------------------------------------------------------------------- */

static unsigned signs_of(const struct tide_run *r)
{
    const struct ledger *l = &r->s->state->ledger;

    return (l->cancel_seq > l->run.active_seq ? TIDE_SIGN_CANCEL : 0u) | (l->queue.live ? TIDE_SIGN_MESSAGE : 0u);
}

static bool is_lost(const struct tide_session *s)
{
    return s->fenced || s->head.epoch != s->owner.epoch;
}

enum tide_code tide_run_look(tide_run *r, unsigned *ret_signs, struct tide_err *err)
{
    struct store *store = r->s->store;
    int64_t version = 0;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_usable(r, err);
    code = code ? code : run_flush(r, err);
    if (code)
        return code;
    code = store->ops->change(store, &version, err);
    if (!code && version != r->seen_version) {
        code = session_sync(r->s, err);
        if (!code)
            r->seen_version = version;
        if (code == TIDE_NOT_FOUND || (!code && is_lost(r->s))) {
            r->s->fenced = true;
            return run_usable(r, err);
        }
    }
    *ret_signs = r->s->state ? signs_of(r) : 0;
    return code; /* who could not look must not act as if it had */
}

static const struct ending {
    const char *outcome, *kind, *status;
    enum run_end end;
} endings[] = {
    {"completed", "run.completed", NULL, RUN_COMPLETED},
    {"failed", "run.failed", NULL, RUN_FAILED},
    {"cancelled", "run.cancelled", NULL, RUN_CANCELLED},
    {"interrupted", "run.interrupted", "interrupted_startup", RUN_INTERRUPTED},
};

static enum tide_code draft_end(struct tide_run *r, const struct ending *e, const struct tide_run_result *result,
                                struct draft *d, struct tide_err *err)
{
    struct json_out *o = draft_open(d, e->kind);
    enum tide_code code;

    draft_text(d, "run_id", r->id);
    draft_text(d, "reason", result->reason);
    if (result->error_code || result->error_message) {
        json_out_key(o, STR("error"));
        json_out_begin(o, '{');
        draft_text(d, "code", result->error_code);
        draft_text(d, "message", result->error_message);
        json_out_end(o, '}');
    }
    if (e->status || strcmp(e->outcome, "failed") == 0)
        json_out_kbool(o, STR("resumable"), !result->not_resumable);
    code = draft_members(d, result->fields, NULL, err);
    draft_close(d);
    if (e->status) {
        draft_open(d, "status.derived");
        draft_text(d, "status", e->status);
        draft_text(d, "reason", result->reason);
        draft_close(d);
    }
    return code;
}

static enum tide_code try_sync(struct tide_run *r, void *unused, struct tide_err *err)
{
    (void)unused;
    return session_sync(r->s, err);
}

/* How this run has ended in the log; NULL: it has not. */
static const struct ending *ended_as(const struct tide_run *r)
{
    const struct run *run = &r->s->state->ledger.run;

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].end == run->end && run->run_id && strcmp(run->run_id, r->id) == 0)
            return &endings[i];
    }
    return NULL;
}

/* The lease of a run whose end is stored: still ours, or given back with that end. If it fails now, it goes with the session. */
static void give_back(struct tide_session *s)
{
    if (s->head.held && s->head.epoch == s->owner.epoch) {
        (void)!session_append(s, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, NULL, 0, NULL, NULL);
    } else {
        s->owner.epoch = 0;
        s->acquiring = false;
    }
}

/*
 * An end that was given up with its outcome not known may be there: the same one again finds it and writes nothing, another
 * one is too late.
 */
static enum tide_code end_again(struct tide_run *r, const struct ending *e, struct tide_err *err)
{
    enum tide_code code = run_flush(r, err); /* it tells what failed of the queue; a sync would swallow it */
    const struct ending *was;

    code = code ? code : hold(r, try_sync, NULL, err);
    was = code ? NULL : ended_as(r);
    if (!was || (was != e && r->s->head.epoch != r->s->owner.epoch))
        return code; /* of one that another ended, the append finds that its lease is lost */
    r->over = true;
    give_back(r->s);
    return was == e ? TIDE_OK : tide_fail(err, TIDE_CONFLICT, "it has ended already, as %s", was->outcome);
}

enum tide_code run_end_with(struct tide_run *r, struct draft *d, const struct tide_run_result *result,
                            struct tide_err *err)
{
    const struct ending *e = NULL;
    enum tide_code code = run_usable(r, err);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (result->outcome && strcmp(endings[i].outcome, result->outcome) == 0)
            e = &endings[i];
    }
    if (!code && !e)
        code = tide_fail(err, TIDE_INVALID, "a run ends completed, failed, cancelled or interrupted");
    if (!code && r->unsure)
        code = end_again(r, e, err);
    if (!code && !r->over) {
        code = draft_end(r, e, result, d, err);
        code = code ? code : run_append(r, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, d, false, err);
        if (!code)
            r->over = true;
    }
    return code ? tide_wrap(err, "end run '%s'", r->id) : TIDE_OK;
}

enum tide_code tide_run_end(tide_run *r, const struct tide_run_result *result, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_end_with(r, &d, result, err);
    draft_done(&d);
    return code;
}

static int give_up(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    (void)why;
    (void)waited_ms;
    return 1;
}

/* Its end, or its wait, was given up with its outcome not known, and is there after all. What cannot be told is left alone. */
static bool has_stopped(struct tide_run *r)
{
    struct tide_err err;
    const struct run *run;

    if (!r->unsure)
        return false;
    if (session_sync(r->s, &err))
        return true;
    run = &r->s->state->ledger.run;
    return run->end != RUN_OPEN || run->waiting;
}

void tide_run_close(tide_run *r)
{
    static const struct tide_run_result shutdown = {.outcome = "interrupted", .reason = "shutdown"};

    if (!r)
        return;
    r->trouble = give_up;
    if (!r->over && !r->s->fenced && !has_stopped(r)) {
        struct draft d = DRAFT_INIT;

        /* One try: closing does not wait for a store in trouble; recovery will write it down then. */
        if (!draft_end(r, &endings[3], &shutdown, &d, NULL) && !backlog_flush(r, false, &(struct tide_err){0}))
            (void)!session_append(r->s, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, d.events, d.n, NULL, NULL);
        draft_done(&d);
    }
    run_free(r);
}
