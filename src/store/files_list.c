/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of sessions, those that recovery looks at, and looking after all of it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "store/files_store.h"

#define SUFFIX ".messages.jsonl"
#define IMPORT ".import-"

/* ---- ids ---- */

struct id {
    char id[TIDE_ID_SIZE];
    bool hidden;
};

struct ids {
    struct id *at;
    size_t n, cap;
};

/* The id of a log's name; foreign names are nobody's. */
static bool id_of(const char *name, char ret[TIDE_ID_SIZE], bool *ret_hidden)
{
    size_t len = strlen(name), end = sizeof SUFFIX - 1;

    *ret_hidden = strncmp(name, IMPORT, sizeof IMPORT - 1) == 0;
    if (*ret_hidden) {
        name += sizeof IMPORT - 1;
        len -= sizeof IMPORT - 1;
    }
    if (len <= end || strcmp(name + len - end, SUFFIX) != 0 || len - end >= TIDE_ID_SIZE)
        return false;
    memcpy(ret, name, len - end);
    ret[len - end] = 0;
    return str_is_id((struct str){ret, len - end});
}

/* A link is not followed, and what it stands for is missed by its name. */
static bool is_log(const char *name, enum env_kind kind, char ret[TIDE_ID_SIZE], bool *ret_hidden)
{
    return (kind == ENV_FILE || kind == ENV_LINK) && id_of(name, ret, ret_hidden);
}

/* A snapshot: its session may have no log. */
static bool card_of(const char *name, char ret[TIDE_ID_SIZE])
{
    size_t len = strlen(name);

    if (len <= 5 || strcmp(name + len - 5, ".json") != 0 || len - 5 >= TIDE_ID_SIZE)
        return false;
    memcpy(ret, name, len - 5);
    ret[len - 5] = 0;
    return str_is_id((struct str){ret, len - 5});
}

static enum tide_code take_id(void *arg, const char *name, enum env_kind kind)
{
    struct ids *ids = arg;
    char id[TIDE_ID_SIZE];
    bool hidden = false;

    if (!is_log(name, kind, id, &hidden) && (kind != ENV_FILE || !card_of(name, id)))
        return TIDE_OK;
    if (ids->n == ids->cap) {
        ids->cap = ids->cap ? 2 * ids->cap : 256;
        ids->at = mem_grow(ids->at, ids->cap * sizeof *ids->at);
    }
    memcpy(ids->at[ids->n].id, id, sizeof id);
    ids->at[ids->n++].hidden = hidden;
    return TIDE_OK;
}

static void ids_done(struct ids *ids)
{
    free(ids->at);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct id *)a)->id, ((const struct id *)b)->id);
}

static enum tide_code find_ids(struct files_store *s, struct ids *ids, struct tide_err *err)
{
    char dir[FILES_PATH];
    size_t n = 0;
    enum tide_code code;

    files_path(s, dir, "sessions", "", "");
    code = s->base.env->ops->list(s->base.env, dir, take_id, ids, err);
    if (!code && ids->n)
        qsort(ids->at, ids->n, sizeof *ids->at, by_name);
    for (size_t i = 0; i < ids->n; i++) /* of a log and its snapshot, one */
        if (!n || strcmp(ids->at[n - 1].id, ids->at[i].id) != 0)
            ids->at[n++] = ids->at[i];
        else
            ids->at[n - 1].hidden |= ids->at[i].hidden;
    ids->n = n;
    return code;
}

enum tide_code files_each_id(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err)
{
    AUTO(ids_done) struct ids ids = {0};
    enum tide_code code = find_ids(s, &ids, err);

    s->many = true;
    for (size_t i = 0; !code && i < ids.n; i++)
        code = fn(arg, ids.at[i].id, ids.at[i].hidden);
    s->many = false;
    return code ? code : names_settle(s, err);
}

enum tide_code files_resolve(struct store *store, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                             size_t *ret_n, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    AUTO(ids_done) struct ids ids = {0};
    enum tide_code code = find_ids(s, &ids, err);
    size_t n = 0;

    for (size_t i = 0; i < ids.n && n < max; i++)
        if (!ids.at[i].hidden && str_starts(str_from(ids.at[i].id), prefix))
            memcpy(ret_ids[n++], ids.at[i].id, TIDE_ID_SIZE);
    *ret_n = n;
    return code;
}

/* ---- lists ---- */

struct row {
    char id[TIDE_ID_SIZE];
    int64_t created_ms, number; /* of the file: what is made in one millisecond gets rising ones, as a rule */
};

static int newest_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? 1 : -1;
    return x->number < y->number ? 1 : -1;
}

struct rows {
    struct files_store *s;
    struct row *at;
    size_t n, cap;
    const char *forks_of;
};

/* Nothing was ever stored in it: what another program left of making one. */
static bool is_empty(const struct files_log *l)
{
    return l->h.last_seq < l->h.first_seq;
}

static enum tide_code take_row(void *arg, const char *id, bool hidden)
{
    struct rows *r = arg;
    struct files_log *l = log_of(r->s, str_from(id));
    struct tide_err err;
    enum tide_code code = hidden ? TIDE_OK : log_refresh(r->s, l, false, &err);

    if (hidden || l->hidden || (!code && (!l->exists || is_empty(l))) ||
        (r->forks_of && strcmp(l->h.parent_id, r->forks_of) != 0))
        return TIDE_OK;
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 256;
        r->at = mem_grow(r->at, r->cap * sizeof *r->at);
    }
    memcpy(r->at[r->n].id, id, strlen(id) + 1);
    r->at[r->n].created_ms = l->h.created_ms;
    r->at[r->n++].number = l->h.sid;
    return TIDE_OK;
}

static struct head head_of(const struct row *row)
{
    struct head h = {.first_seq = 1, .last_seq = 1, .created_ms = row->created_ms, .updated_ms = row->created_ms};

    memcpy(h.id, row->id, sizeof h.id);
    return h;
}

enum tide_code files_list(struct store *store, const struct head *forks_of, store_entry_fn *fn, void *arg,
                          struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct rows rows = {.s = s, .forks_of = forks_of ? forks_of->id : NULL};
    struct arena a = ARENA_INIT;
    enum tide_code code;
    bool stop = false;

    pthread_mutex_lock(&s->mu);
    code = files_each_id(s, take_row, &rows, err);
    pthread_mutex_unlock(&s->mu);
    if (rows.n)
        qsort(rows.at, rows.n, sizeof *rows.at, newest_first);
    for (size_t i = 0; !code && !stop && i < rows.n; i++) {
        struct store_entry entry = {.summary = {"", 0}};
        struct head h;

        code = files_head(store, str_from(rows.at[i].id), &h, err);
        if (code == TIDE_IO)
            break;
        if (code == TIDE_NOT_FOUND) { /* it went meanwhile */
            code = TIDE_OK;
            continue;
        }
        if (code) /* whoever reads it is told what is wrong; a list with gaps that nobody hears of is none */
            h = head_of(&rows.at[i]);
        code = TIDE_OK;
        entry.head = &h;
        arena_reset(&a);
        pthread_mutex_lock(&s->mu);
        entry.summary = cache_summary(s, log_of(s, str_from(rows.at[i].id)), &a);
        pthread_mutex_unlock(&s->mu);
        stop = fn(arg, &entry) != 0;
    }
    arena_done(&a);
    free(rows.at);
    return code;
}

/* ---- who waits or was left ---- */

static enum tide_code take_live(void *arg, const char *name, enum env_kind kind)
{
    struct ids *ids = arg;
    size_t len = strlen(name);
    char file[TIDE_ID_SIZE + 32];

    if (kind != ENV_FILE || len < 6 || strcmp(name + len - 5, ".json") != 0 || len - 5 >= TIDE_ID_SIZE)
        return TIDE_OK;
    snprintf(file, sizeof file, "%.*s" SUFFIX, (int)(len - 5), name);
    return take_id(ids, file, kind);
}

/* A clone has no such directory until something is written there. */
static enum tide_code live_ids(struct files_store *s, struct ids *ids, struct tide_err *err)
{
    char dir[FILES_PATH];
    enum tide_code code;

    files_path(s, dir, "live", "", "");
    code = s->base.env->ops->list(s->base.env, dir, take_live, ids, err);
    return code == TIDE_NOT_FOUND ? TIDE_OK : code;
}

struct waiting {
    struct head h;
    int64_t wake;
};

static int oldest_first(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    if (x->h.created_ms != y->h.created_ms)
        return x->h.created_ms < y->h.created_ms ? -1 : 1;
    return strcmp(x->h.id, y->h.id);
}

/* Whether it is to be looked at now; else *next may become its time. */
static enum tide_code judge(struct files_store *s, const char *id, int64_t until, int64_t *next, struct waiting *ret,
                            bool *ret_due, struct tide_err *err)
{
    struct files_lease lease;
    enum tide_code code;

    *ret_due = false;
    pthread_mutex_lock(&s->mu);
    code = lease_read(s, id, &lease, err);
    pthread_mutex_unlock(&s->mu);
    if (code || !lease.there || !lease.live || lease.hidden)
        return code;
    code = files_head(&s->base, str_from(id), &ret->h, err);
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK; /* it was being made when the power went */
    if (code)
        return code;
    ret->wake = lease.boot[0] ? 0 : lease.wake_ms;
    if (lease.boot[0])
        *ret_due = !ret->h.holder_alive;
    else if (lease.wake_ms <= until)
        *ret_due = true;
    else if (lease.wake_ms < *next)
        *next = lease.wake_ms;
    return TIDE_OK;
}

enum tide_code files_live(struct store *store, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                          struct tide_err *err)
{
    struct files_store *s = files_of(store);
    AUTO(ids_done) struct ids ids = {0};
    AUTO(mem_freep) struct waiting *list = NULL;
    struct tide_err damage = {TIDE_OK, ""};
    int64_t next = INT64_MAX;
    enum tide_code code;
    bool stop = false;
    size_t n = 0;

    code = live_ids(s, &ids, err);
    list = mem_array(ids.n + 1, sizeof *list);
    for (size_t i = 0; !code && i < ids.n; i++) {
        struct tide_err why;
        bool due;

        if (!judge(s, ids.at[i].id, until_ms, &next, &list[n], &due, &why))
            n += due;
        else if (!damage.code)
            damage = why;
    }
    if (n)
        qsort(list, n, sizeof *list, oldest_first);
    for (size_t i = 0; !code && !stop && i < n; i++)
        stop = fn(arg, &list[i].h, list[i].wake) != 0;
    *ret_next_ms = next == INT64_MAX ? 0 : next;
    return code || stop || !damage.code ? code : tide_err_copy(err, &damage);
}

/* ---- looking after it ---- */

struct figures {
    struct files_store *s;
    int64_t sessions, events, bytes, torn, unverified, live, held;
};

static enum tide_code add_figures(void *arg, const char *id, bool hidden)
{
    struct figures *f = arg;
    struct files_log *l = log_of(f->s, str_from(id));
    struct tide_err err;

    if (hidden || (!log_refresh(f->s, l, false, &err) && is_empty(l)) || !l->exists)
        return TIDE_OK;
    f->sessions++;
    f->events += l->h.last_seq - l->h.first_seq + 1;
    f->bytes += l->end;
    f->torn += l->torn && !l->damage.code;
    f->unverified += l->unverified;
    return TIDE_OK;
}

static void count_live(struct files_store *s, struct figures *f)
{
    AUTO(ids_done) struct ids ids = {0};
    struct files_lease lease;
    struct tide_err err;

    (void)!live_ids(s, &ids, &err);
    for (size_t i = 0; i < ids.n; i++)
        if (!lease_read(s, ids.at[i].id, &lease, &err)) {
            f->live += lease.live;
            f->held += lease.boot[0] != 0;
        }
}

enum tide_code files_info(struct store *store, struct buf *out, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct figures f = {.s = s};
    struct json_out o = json_out_to(out);
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = files_each_id(s, add_figures, &f, err);
    count_live(s, &f);
    pthread_mutex_unlock(&s->mu);
    if (code)
        return code;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("url"), str_from(store->url));
    json_out_kint(&o, STR("version"), FILES_VERSION);
    json_out_kint(&o, STR("sessions"), f.sessions);
    json_out_kint(&o, STR("events"), f.events);
    json_out_kint(&o, STR("log_bytes"), f.bytes);
    json_out_kint(&o, STR("torn_tails"), f.torn);
    json_out_kint(&o, STR("unverified_sessions"), f.unverified);
    json_out_kint(&o, STR("live_sessions"), f.live);
    json_out_kint(&o, STR("held_sessions"), f.held);
    json_out_kstr(&o, STR("sync"), STR("fdatasync before every acknowledgement"));
    json_out_kbool(&o, STR("keyed"), store->key.len > 0);
    json_out_end(&o, '}');
    return TIDE_OK;
}

struct checking {
    struct files_store *s;
    struct store_check *check;
};

static void problem(struct store_check *check, const char *where, const char *what)
{
    check->problems++;
    if (check->problem)
        check->problem(check->arg, where, what);
}

/* Still: whoever deletes a session takes it away before the log. */
static bool has_card(struct files_store *s, const char *id)
{
    char path[FILES_PATH];
    struct env_stat st;

    files_path(s, path, "sessions", id, ".json");
    return !s->base.env->ops->stat(s->base.env, path, &st, NULL) && st.kind == ENV_FILE;
}

static enum tide_code check_one(void *arg, const char *id, bool hidden)
{
    struct checking *c = arg;
    struct files_log *l = log_of(c->s, str_from(id));
    struct files_lease lease;
    struct tide_err err;
    enum tide_code code = log_refresh(c->s, l, false, &err);

    if (hidden)
        return TIDE_OK;
    code = code ? code : lease_read(c->s, id, &lease, &err);
    if (code)
        problem(c->check, id, err.msg);
    else if (l->unverified)
        files_notice(c->s,
                     "session %s is unverified: its lines are another program's, without digests; the first write "
                     "gives them some",
                     id);
    if (!code && !l->exists && has_card(c->s, id))
        problem(c->check, id, "its log is gone: put the file back, or delete what else there is of it");
    else if (!code && l->exists && is_empty(l))
        problem(c->check, id, "its log holds no event: it is no session; delete the file");
    else if (!code && l->lost[0])
        problem(c->check, id, l->lost);
    else if (!code && l->torn)
        problem(c->check, id,
                "its log ends in what a cut left of a write: the next append cuts it off and keeps it aside");
    return TIDE_OK;
}

static enum tide_code check_name(void *arg, const char *name, enum env_kind kind)
{
    struct checking *c = arg;
    char id[TIDE_ID_SIZE];
    bool hidden;

    if (is_log(name, kind, id, &hidden) && !hidden)
        return TIDE_OK; /* looked at with the sessions */
    if (kind == ENV_LINK || kind == ENV_DIR || kind == ENV_OTHER)
        problem(c->check, name, "is not a file: it does not belong among the sessions, and is passed over");
    return TIDE_OK;
}

enum tide_code files_check(struct store *store, struct store_check *check, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct checking c = {s, check};
    char dir[FILES_PATH];
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    files_path(s, dir, "sessions", "", "");
    code = store->env->ops->list(store->env, dir, check_name, &c, err);
    code = code ? code : files_each_id(s, check_one, &c, err);
    pthread_mutex_unlock(&s->mu);
    return code;
}

static enum tide_code forget_one(void *arg, const char *id, bool hidden)
{
    struct files_store *s = arg;
    struct files_log *l = log_of(s, str_from(id));
    struct files_lease lease = l->lease;
    struct env_file *file = TAKE(l->lease_file);

    (void)hidden;
    cache_drop(s, id);
    log_forget(s, l);
    l->lease = lease; /* that is no cache */
    l->lease_file = file;
    return TIDE_OK;
}

enum tide_code files_rebuild(struct store *store, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = files_each_id(s, forget_one, s, err);
    pthread_mutex_unlock(&s->mu);
    return code;
}

/* A failed sync is settled here: what stands in such a log is written again and synced, and then it counts. */
enum tide_code files_compact(struct store *store, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    const struct env_ops *ops = store->env->ops;
    enum tide_code code = TIDE_OK;

    pthread_mutex_lock(&s->mu);
    for (struct map_entry *e = map_next(&s->logs, NULL); e && !code; e = map_next(&s->logs, e)) {
        struct files_log *l = e->value;

        if (!l->suspect || !l->file || l->busy)
            continue;
        code = ops->lock(l->file, 1000, err);
        if (code)
            break;
        code = log_refresh(s, l, true, err);
        code = code == TIDE_CORRUPT ? TIDE_OK : code; /* whoever reads it is told */
        if (l->file)
            ops->unlock(l->file);
    }
    if (!code)
        store->unsettled = false;
    pthread_mutex_unlock(&s->mu);
    return code;
}

enum tide_code files_change(struct store *store, int64_t *ret_version, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    size_t got = 0;

    *ret_version = 0;
    return s->changes ? store->env->ops->pread(s->changes, ret_version, sizeof *ret_version, 0, &got, err) : TIDE_OK;
}
