/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run with `continue` keeps what changes nothing outside in a bounded buffer while the store cannot be written,
 * each event flagged; the buffer goes to the store first, in order, as soon as it can. If another took the lease by then, it is
 * written to a file of its own and named: nothing of it is passed off as stored. It is the same for what is appended and for
 * what was queued, and so for programs, agents and graphs.
 */
#include "base/log.h"
#include "base/invariant.h"
#include "session/run.h"

#define BACKLOG_BYTES (8 * 1024 * 1024) /* a fuller one holds the run, as without `continue` */
#define BACKLOG_EVENTS 10000
#define AGAIN_MS 2000 /* between tries to get rid of it */

int tide_run_is_degraded(const tide_run *r)
{
    return r->backlog.n > 0;
}

static void clear_backlog(struct backlog *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free((char *)b->events[i].kind);
        free((char *)b->events[i].body);
    }
    b->n = b->bytes = 0;
    b->doubt = false;
}

void degraded_done(struct tide_run *r)
{
    clear_backlog(&r->backlog);
    free(r->backlog.events);
}

/* ---- into memory ------------------------------------------------------------------------------------------------- */

bool degraded_may_take(const struct tide_run *r, const struct draft *d)
{
    size_t bytes = r->backlog.bytes;

    if (!(r->flags & TIDE_RUN_CONTINUE))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        bytes += d->events[i].body_len + EVENT_OVERHEAD;
        if (d->events[i].body_len + EVENT_OVERHEAD > r->s->store->max_record_bytes)
            return false; /* it would never be taken, and hold all behind it */
    }
    return !r->backlog.doubt && bytes <= BACKLOG_BYTES && r->backlog.n + d->n <= BACKLOG_EVENTS;
}

static void add_draft(struct tide_run *r, const struct draft *d)
{
    struct backlog *b = &r->backlog;

    for (size_t i = 0; i < d->n; i++) {
        const struct tide_new_event *ev = &d->events[i];
        struct buf body = BUF_INIT(SIZE_MAX / 4);

        INVARIANT(ev->body_len >= 2 && ev->body[0] == '{' && ev->body[ev->body_len - 1] == '}');
        MEM_ROOM(b->events, b->n, b->cap);
        buf_add_str(&body, STR("{\"durability\":\"degraded\""));
        if (ev->body_len > 2)
            buf_add_char(&body, ',');
        buf_add(&body, ev->body + 1, ev->body_len - 1);
        b->bytes += body.len + EVENT_OVERHEAD;
        b->events[b->n].kind = mem_dup(str_from(ev->kind));
        b->events[b->n].body_len = body.len;
        b->events[b->n++].body = buf_take(&body);
    }
    INVARIANT(b->n <= BACKLOG_EVENTS && !b->doubt);
}

enum tide_code degraded_take(struct tide_run *r, const struct draft *d, const struct tide_err *why,
                             struct tide_err *err)
{
    const struct patience *p = &r->s->patience;

    if (!r->backlog.n && p->told && p->told(p->arg, why, 0))
        return tide_err_copy(err, why);
    if (!r->backlog.n)
        log_write(TIDE_LOG_WARN, "continuing in memory until the store can be written", RUN_FIELDS(r),
                  log_text("code", tide_code_name(why->code)), log_text("why", why->msg));
    r->backlog.tried_ms = env_now_ms(r->s->store->env);
    add_draft(r, d);
    return TIDE_OK;
}

/* ---- out of memory ----------------------------------------------------------------------------------------------- */

/* The store is another's by now: what was not stored is kept in a file of its own, one event a line. */
static enum tide_code keep_aside(struct tide_run *r, struct tide_err *err)
{
    const struct store *store = r->s->store;
    struct env *env = store->env;
    struct buf name = BUF_INIT(2048), text = BUF_INIT(SIZE_MAX / 4);
    struct env_file *file = NULL;
    struct tide_err why = {0};
    enum tide_code code;

    INVARIANT(r->backlog.n > 0);
    /* Beside the file of the store, or in its directory. */
    buf_addf(&name, "%s%caside-%s-%s.jsonl", store->url + strlen(store->ops->scheme) + 1,
             store_can(store, STORE_DIRECTORY) ? '/' : '-', r->s->head.id, r->id);
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
              code ? "%s; %zu event%s not stored and could not be written to a file: %s"
                   : "%s; %zu event%s not stored, but kept in '%s'",
              err->msg, r->backlog.n, r->backlog.n == 1 ? " was" : "s were", code ? why.msg : buf_cstr(&name));
    buf_done(&name);
    buf_done(&text);
    clear_backlog(&r->backlog);
    return TIDE_FENCED;
}

/* The marks of what was in the buffer say where their events are now. */
static enum tide_code reread_marks(struct tide_run *r, struct tide_err *err)
{
    struct chain anew = {0};
    enum tide_code code;

    INVARIANT(!r->backlog.n); /* what waits in memory has no seq yet */
    code = session_sync(r->s, err);
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

static void forget_overlay(struct tide_run *r)
{
    const struct patience *p = &r->s->patience;

    log_write(TIDE_LOG_WARN, "the store can be written again", RUN_FIELDS(r));
    clear_backlog(&r->backlog);
    map_done(&r->overlay, free);
    memset(&r->overlay, 0, sizeof r->overlay);
    if (p->told)
        (void)p->told(p->arg, NULL, 0);
}

enum tide_code degraded_flush(struct tide_run *r, bool held, struct tide_err *err)
{
    struct backlog *b = &r->backlog;
    struct trying t = {.flags = TIDE_APPEND_ANY,
                       .events = b->events,
                       .n = b->n,
                       .before = b->doubt ? b->before : tide_session_last_seq(r->s),
                       .unknown = b->doubt};
    enum tide_code code;

    if (!b->n)
        return TIDE_OK;
    b->tried_ms = env_now_ms(r->s->store->env);
    code = held ? TIDE_UNKNOWN : run_try(r, &t, err);
    if (held || t.unknown) /* what may be there must not be written twice: then it is waited for */
        code = run_try_held(r, &t, err);
    if (code == TIDE_FENCED || code == TIDE_HELD)
        return keep_aside(r, err);
    if (code) {
        b->doubt = t.unknown;
        b->before = t.before;
        return code;
    }
    forget_overlay(r);
    r->unsure = true;
    return reread_marks(r, err);
}

enum tide_code run_settle(struct tide_run *r, struct tide_err *err)
{
    return degraded_flush(r, true, err);
}

enum tide_code degraded_append(struct tide_run *r, struct trying *t, const struct draft *d, struct tide_err *err)
{
    int64_t since = env_now_ms(r->s->store->env) - r->backlog.tried_ms;
    struct tide_err why = {0};
    enum tide_code code;

    if (r->backlog.n && since >= 0 && since < AGAIN_MS) {
        add_draft(r, d);
        return TIDE_OK;
    }
    code = degraded_flush(r, false, &why);
    if (code && r->backlog.doubt)
        return tide_err_copy(err, &why);
    t->before = tide_session_last_seq(r->s);
    code = code ? code : run_try(r, t, &why);
    if (t->unknown)
        return run_try_held(r, t, err);
    if (!code || !session_is_trouble(code))
        return code ? tide_err_copy(err, &why) : TIDE_OK;
    return degraded_take(r, d, &why, err);
}
