/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of sessions, and those that recovery looks at. */
#include <stdio.h>

#include "store/files_store.h"

#define SUFFIX ".messages.jsonl"
#define IMPORT ".import-"
#define AHEAD 64 /* logs that are looked at together: their syncs go out side by side */

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

/* A snapshot, or a mark: its session may have no log. */
static bool session_file_of(const char *name, char ret[TIDE_ID_SIZE])
{
    size_t len = strlen(name);

    if (len <= 5 || (strcmp(name + len - 5, ".json") != 0 && strcmp(name + len - 5, ".mark") != 0) ||
        len - 5 >= TIDE_ID_SIZE)
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

    /* A link is not followed, and what it stands for is missed by its name. */
    if (!((kind == ENV_FILE || kind == ENV_LINK) && id_of(name, id, &hidden)) &&
        (kind != ENV_FILE || !session_file_of(name, id)))
        return TIDE_OK;
    MEM_ROOM(ids->at, ids->n, ids->cap);
    memcpy(ids->at[ids->n].id, id, sizeof id);
    ids->at[ids->n++].hidden = hidden;
    return TIDE_OK;
}

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
    if (code == TIDE_NOT_FOUND && s->base.read_only)
        code = TIDE_OK; /* a clone of a store without sessions: git keeps no empty directories */
    code = code ? code : live_ids(s, ids, err); /* one whose files are gone is missed */
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

/* With s->mu. Those that a commit of ours is at are left alone; none of them makes room for another meanwhile. */
static void look_ahead(struct files_store *s, const struct id *ids, size_t n)
{
    struct files_log *list[AHEAD] = {NULL};
    size_t k = 0;

    for (size_t i = 0; i < n && k < AHEAD; i++) {
        struct files_log *l = ids[i].hidden ? NULL : log_of(s, str_from(ids[i].id));

        if (!l || l->busy)
            continue;
        l->busy = true;
        list[k++] = l;
    }
    log_look_ahead(s, list, k);
    while (k > 0)
        list[--k]->busy = false;
}

static enum tide_code each_id(struct files_store *s, bool ahead, files_id_fn *fn, void *arg, struct tide_err *err)
{
    AUTO(ids_done) struct ids ids = {0};
    enum tide_code code = find_ids(s, &ids, err);

    s->many = true;
    for (size_t i = 0; !code && i < ids.n; i++) {
        if (ahead && i % AHEAD == 0)
            look_ahead(s, ids.at + i, ids.n - i < AHEAD ? ids.n - i : AHEAD);
        code = fn(arg, ids.at[i].id, ids.at[i].hidden);
    }
    s->many = false;
    return code ? code : names_settle(s, err);
}

enum tide_code files_each_id(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err)
{
    return each_id(s, false, fn, arg, err);
}

enum tide_code files_each_log(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err)
{
    return each_id(s, true, fn, arg, err);
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

static enum tide_code take_row(void *arg, const char *id, bool hidden)
{
    struct rows *r = arg;
    struct files_log *l = log_of(r->s, str_from(id));
    struct tide_err err;
    enum tide_code code = hidden ? TIDE_OK : log_refresh(r->s, l, false, &err);

    if (hidden || l->hidden || (!code && (!l->exists || log_is_empty(l))) ||
        (r->forks_of && strcmp(l->h.parent_id, r->forks_of) != 0))
        return TIDE_OK;
    MEM_ROOM(r->at, r->n, r->cap);
    memcpy(r->at[r->n].id, id, strlen(id) + 1);
    r->at[r->n].created_ms = l->h.created_ms;
    r->at[r->n++].number = (int64_t)l->ino;
    return TIDE_OK;
}

/* What is known of it beside its head. */
static void add_known(struct files_store *s, struct store_entry *entry, struct tide_err *damage, struct arena *a)
{
    struct files_log *l;

    pthread_mutex_lock(&s->mu);
    l = log_of(s, str_from(entry->head->id));
    if (!damage->code)
        *damage = l->damage;
    entry->damage = damage->code ? damage : NULL;
    entry->summary = cache_summary(s, l, a);
    pthread_mutex_unlock(&s->mu);
}

static enum tide_code look_no_further(void *arg, const char *name, enum env_kind kind)
{
    (void)name, (void)kind;
    *(bool *)arg = true;
    return TIDE_CANCELLED;
}

/* Who is at work stands in there: when all of it cannot be read, that is not the fault of any one session. */
static enum tide_code look_into_live(struct files_store *s, struct tide_err *err)
{
    char dir[FILES_PATH];
    bool some = false;
    enum tide_code code;

    files_path(s, dir, "live", "", "");
    code = s->base.env->ops->list(s->base.env, dir, look_no_further, &some, err);
    return some || code == TIDE_NOT_FOUND ? TIDE_OK : code; /* a clone has none */
}

/* Of many sessions some had to make room for others since they were looked at. */
static void look_again(struct files_store *s, const struct rows *rows, size_t from)
{
    struct id ids[AHEAD] = {0};
    size_t n = 0;

    for (; n < AHEAD && from + n < rows->n; n++)
        memcpy(ids[n].id, rows->at[from + n].id, TIDE_ID_SIZE);
    pthread_mutex_lock(&s->mu);
    look_ahead(s, ids, n);
    pthread_mutex_unlock(&s->mu);
}

static size_t begin_with(const struct rows *rows, struct str id)
{
    size_t i = 0;

    while (i < rows->n && !str_eq(str_from(rows->at[i].id), id))
        i++;
    return i < rows->n ? i : 0;
}

enum tide_code files_list(struct store *store, const struct head *forks_of, struct str from, store_entry_fn *fn,
                          void *arg, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct rows rows = {.s = s, .forks_of = forks_of ? forks_of->id : NULL};
    struct arena a = ARENA_INIT;
    enum tide_code code;
    bool stop = false;

    pthread_mutex_lock(&s->mu);
    code = look_into_live(s, err);
    code = code ? code : files_each_log(s, take_row, &rows, err);
    pthread_mutex_unlock(&s->mu);
    if (rows.n)
        qsort(rows.at, rows.n, sizeof *rows.at, newest_first);
    for (size_t i = from.len ? begin_with(&rows, from) : 0; !code && !stop && i < rows.n; i++) {
        struct tide_err damage = {0};
        struct store_entry entry = {.summary = {"", 0}};
        struct head h;

        if (rows.n > LOGS_MAX && i % AHEAD == 0)
            look_again(s, &rows, i);
        code = files_head(store, str_from(rows.at[i].id), &h, err);
        if (code == TIDE_IO || code == TIDE_BUSY) /* that is no damage */
            break;
        if (code == TIDE_NOT_FOUND) { /* it went meanwhile */
            code = TIDE_OK;
            continue;
        }
        if (code) { /* a list must not have gaps that are not reported */
            h = (struct head){.first_seq = 1,
                              .last_seq = 1,
                              .created_ms = rows.at[i].created_ms,
                              .updated_ms = rows.at[i].created_ms};
            memcpy(h.id, rows.at[i].id, sizeof h.id);
            damage = *err;
        }
        code = TIDE_OK;
        entry.head = &h;
        arena_reset(&a);
        add_known(s, &entry, &damage, &a);
        stop = fn(arg, &entry) != 0;
    }
    arena_done(&a);
    free(rows.at);
    return code;
}

/* ---- who waits or was left ---- */

enum tide_code files_each_live(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err)
{
    AUTO(ids_done) struct ids ids = {0};
    enum tide_code code = live_ids(s, &ids, err);

    for (size_t i = 0; !code && i < ids.n; i++)
        code = fn(arg, ids.at[i].id, false);
    return code;
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
static enum tide_code judge_entry(struct files_store *s, const char *id, int64_t until, int64_t *next,
                                  struct waiting *ret, bool *ret_due, struct tide_err *err)
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

/* ---- other programs' sessions, which live/ does not have ---- */

struct names {
    struct ids ids;  /* those that may be a session */
    struct ids ours; /* those that have a mark: only ours have */
};

static enum tide_code take_name(void *arg, const char *name, enum env_kind kind)
{
    struct names *n = arg;
    size_t len = strlen(name);

    if (len > 5 && strcmp(name + len - 5, ".mark") == 0)
        return take_id(&n->ours, name, kind);
    return take_id(&n->ids, name, kind);
}

static bool is_among(const struct ids *ids, const char *id)
{
    struct id key = {.hidden = false};

    snprintf(key.id, sizeof key.id, "%s", id);
    return ids->n && bsearch(&key, ids->at, ids->n, sizeof key, by_name);
}

/* Those whose run is open. What cannot be read is named by the process that looks at it. */
static bool is_left(struct files_store *s, const char *id, struct waiting *ret)
{
    struct files_log *l;
    struct tide_err err;
    bool open = false;

    pthread_mutex_lock(&s->mu);
    l = log_of(s, str_from(id));
    if (log_refresh(s, l, false, &err) || !l->exists || l->hidden || !l->unverified || l->damage.code ||
        foreign_has_open_run(s, l, &open, &err))
        open = false;
    pthread_mutex_unlock(&s->mu);
    ret->wake = 0;
    return open && !files_head(&s->base, str_from(id), &ret->h, &err);
}

/* Adds them to the list. `live` is sorted. */
static enum tide_code find_left(struct files_store *s, const struct ids *live, struct waiting **list, size_t *n,
                                struct tide_err *err)
{
    struct names names = {0};
    const char *last = "";
    char dir[FILES_PATH];
    enum tide_code code;

    files_path(s, dir, "sessions", "", "");
    code = s->base.env->ops->list(s->base.env, dir, take_name, &names, err);
    if (code == TIDE_NOT_FOUND)
        code = TIDE_OK;
    if (names.ids.n)
        qsort(names.ids.at, names.ids.n, sizeof *names.ids.at, by_name);
    if (names.ours.n)
        qsort(names.ours.at, names.ours.n, sizeof *names.ours.at, by_name);
    for (size_t i = 0; !code && i < names.ids.n; i++) {
        const char *id = names.ids.at[i].id;

        if (strcmp(id, last) == 0 || is_among(&names.ours, id) || is_among(live, id))
            continue;
        last = id;
        *list = mem_grow(*list, (*n + 1) * sizeof **list);
        *n += is_left(s, id, &(*list)[*n]);
    }
    ids_done(&names.ids);
    ids_done(&names.ours);
    return code;
}

enum tide_code files_live(struct store *store, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                          struct tide_err *err)
{
    struct files_store *s = files_of(store);
    AUTO(ids_done) struct ids ids = {0};
    AUTO(mem_freep) struct waiting *list = NULL;
    struct arena a = ARENA_INIT;
    struct tide_err damage = {0};
    int64_t next = INT64_MAX;
    enum tide_code code;
    bool stop = false;
    size_t n = 0;

    code = live_ids(s, &ids, err);
    list = mem_array(ids.n + 1, sizeof *list);
    for (size_t i = 0; !code && i < ids.n; i++) {
        struct tide_err why;
        bool due;

        if (!judge_entry(s, ids.at[i].id, until_ms, &next, &list[n], &due, &why))
            n += due;
        else if (!damage.code)
            damage = why;
    }
    if (!code && ids.n)
        qsort(ids.at, ids.n, sizeof *ids.at, by_name);
    code = code ? code : find_left(s, &ids, &list, &n, err);
    if (n)
        qsort(list, n, sizeof *list, oldest_first);
    for (size_t i = 0; !code && !stop && i < n; i++) {
        struct store_entry entry = {.head = &list[i].h};
        struct tide_err known = {0};

        arena_reset(&a);
        add_known(s, &entry, &known, &a);
        stop = fn(arg, &entry, list[i].wake) != 0;
    }
    arena_done(&a);
    *ret_next_ms = next == INT64_MAX ? 0 : next;
    return code || stop || !damage.code ? code : tide_err_copy(err, &damage);
}
