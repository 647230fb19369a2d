/* SPDX-License-Identifier: Apache-2.0 */
/* Looking after a store: what there is of it, whether that is whole, and whether anything stands there that is nobody's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "store/files_store.h"

#define NAMES_TOLD 8 /* of files that do not belong there: the rest is counted */

/* ---- figures ---- */

struct figures {
    struct files_store *s;
    int64_t sessions, events, bytes, torn, unverified, live, held;
};

static enum tide_code add_figures(void *arg, const char *id, bool hidden)
{
    struct figures *f = arg;
    struct files_log *l = log_of(f->s, str_from(id));
    struct tide_err err;

    if (hidden || (!log_refresh(f->s, l, false, &err) && log_is_empty(l)) || !l->exists)
        return TIDE_OK;
    f->sessions++;
    f->events += l->h.last_seq - l->h.first_seq + 1;
    f->bytes += l->end;
    f->torn += l->torn && !l->damage.code;
    f->unverified += l->unverified;
    return TIDE_OK;
}

static enum tide_code add_live(void *arg, const char *id, bool hidden)
{
    struct figures *f = arg;
    struct files_lease lease;
    struct tide_err err;

    (void)hidden;
    if (!lease_read(f->s, id, &lease, &err)) {
        f->live += lease.live;
        f->held += lease.boot[0] != 0;
    }
    return TIDE_OK;
}

enum tide_code files_info(struct store *store, struct buf *out, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct figures f = {.s = s};
    struct json_out o = json_out_to(out);
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = files_each_log(s, add_figures, &f, err);
    code = code ? code : files_each_live(s, add_live, &f, err);
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

/* ---- whether it is whole ---- */

struct checking {
    struct files_store *s;
    struct store_check *check;
    int64_t odd; /* files that are no session's */
};

static void problem(struct store_check *check, const char *where, const char *what)
{
    store_check_name(check, where, TIDE_CORRUPT, what);
}

/* Still: the process that deletes a session takes them away before the log. */
static bool has_session_file(struct files_store *s, const char *id, const char *suffix)
{
    return files_is(s, "sessions", id, suffix, ENV_FILE);
}

/* For people: one line, whatever the name contains. */
static void note_odd(struct checking *c, const char *name, const char *suffix)
{
    char shown[TIDE_ID_SIZE + 40];

    if (c->odd++ >= NAMES_TOLD)
        return;
    snprintf(shown, sizeof shown, "%s%s", name, suffix);
    for (char *p = shown; *p; p++)
        *p = (unsigned char)*p < ' ' || *p == 127 ? '?' : *p;
    store_notice(&c->s->base, "sessions/%s is not a file of a session: it is ignored", shown);
}

static void torn_problem(struct checking *c, const struct files_log *l)
{
    char text[200];

    snprintf(text, sizeof text,
             "its log ends in an incomplete write, after event %" PRId64 ": the next append removes it and keeps it "
             "in a file",
             l->h.last_seq);
    problem(c->check, l->id, text);
}

static enum tide_code check_one(void *arg, const char *id, bool hidden)
{
    struct checking *c = arg;
    struct files_log *l = log_of(c->s, str_from(id));
    struct files_lease lease;
    struct tide_err err;
    enum tide_code code;
    int tries = 0;

    do {
        code = log_refresh(c->s, l, false, &err);
        code = code || hidden ? code : lease_read(c->s, id, &lease, &err);
    } while (store_retry(c->s->base.env, code, &tries));
    if (hidden)
        return TIDE_OK;
    if (code)
        store_check_name(c->check, id, code, err.msg);
    else if (l->unverified)
        store_notice(&c->s->base,
                     "session %s is unverified: its lines are another program's, without digests; the first write "
                     "gives them some",
                     id);
    if (!code && !l->exists && has_session_file(c->s, id, ".json") && !has_session_file(c->s, id, ".tokens.json"))
        note_odd(c, id, ".json"); /* of ours there are always two */
    else if (!code && !l->exists && has_session_file(c->s, id, ".json"))
        problem(c->check, id, "its log is gone: restore the file, or delete the rest of the session");
    else if (!code && l->exists && log_is_empty(l))
        problem(c->check, id, "its log has no event: it is not a session; delete the file");
    else if (!code && l->torn)
        torn_problem(c, l);
    return TIDE_OK;
}

/* What stands behind the id in the names of a session's files; those that are being written have another tail. */
static bool is_of_session(const char *name)
{
    static const struct {
        const char *begins;
        bool ends; /* nothing comes behind it */
    } tails[] = {
        {".messages.jsonl", true}, {".mark", true},   {".json", true},
        {".tokens.json", true},    {".torn-", false}, {".original", false},
    };
    size_t id = strcspn(name, ".");
    bool found = strstr(name, ".tmp-") != NULL;

    for (size_t i = 0; i < sizeof tails / sizeof tails[0] && !found; i++)
        found = strncmp(name + id, tails[i].begins, strlen(tails[i].begins)) == 0 &&
                (!tails[i].ends || !name[id + strlen(tails[i].begins)]);
    return found && id < TIDE_ID_SIZE && str_is_id((struct str){name, id});
}

/* What stands in the place of a log is listed as a session if something else shows that there is one: a link, or its
 * snapshot. */
static bool is_missed(struct files_store *s, const char *name, enum env_kind kind)
{
    char id[TIDE_ID_SIZE];
    size_t len = strcspn(name, ".");

    if (!is_of_session(name) || strcmp(name + len, ".messages.jsonl") != 0)
        return false;
    snprintf(id, sizeof id, "%.*s", (int)len, name);
    return kind == ENV_LINK || has_session_file(s, id, ".json");
}

/* The last of its files that is there: the process that deletes a session takes it away before the log. */
static bool is_left_alone(struct files_store *s, const char *name)
{
    size_t len = strcspn(name, ".");
    char id[TIDE_ID_SIZE], log[FILES_PATH];

    if (!is_of_session(name) || strcmp(name + len, ".tokens.json") != 0)
        return false;
    snprintf(id, sizeof id, "%.*s", (int)len, name);
    log_name(log, id, false);
    return !has_session_file(s, log, "") && !has_session_file(s, id, ".json") && !has_session_file(s, id, ".mark") &&
           has_session_file(s, name, "");
}

static enum tide_code check_name(void *arg, const char *name, enum env_kind kind)
{
    struct checking *c = arg;

    if (kind != ENV_FILE && !is_missed(c->s, name, kind))
        problem(c->check, name, "is not a file: it does not belong among the sessions, and is ignored");
    else if (kind == ENV_FILE && is_left_alone(c->s, name))
        problem(c->check, name, "is there, and nothing else of its session: restore the others, or delete it");
    else if (kind == ENV_FILE && !is_of_session(name) && name[0] != '.') /* a .gitkeep is nobody's business */
        note_odd(c, name, "");
    return TIDE_OK;
}

enum tide_code files_check(struct store *store, struct store_check *check, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct checking c = {.s = s, .check = check};
    char dir[FILES_PATH];
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    files_path(s, dir, "sessions", "", "");
    code = store->env->ops->list(store->env, dir, check_name, &c, err);
    if (code == TIDE_NOT_FOUND && store->read_only)
        code = TIDE_OK; /* files_each_id() says why */
    code = code ? code : files_each_log(s, check_one, &c, err);
    if (c.odd > NAMES_TOLD)
        store_notice(&s->base, "and so are %" PRId64 " more", c.odd - NAMES_TOLD);
    pthread_mutex_unlock(&s->mu);
    return code;
}

/* ---- mending it ---- */

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
enum tide_code files_settle(struct store *store, struct tide_err *err)
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
        code = code == TIDE_CORRUPT ? TIDE_OK : code; /* the caller that reads it gets the error */
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
    char path[FILES_PATH];
    enum tide_code code = TIDE_OK;

    if (!s->changes) { /* of a copy; the process that writes makes it */
        files_path(s, path, "", "changes", "");
        code = store->env->ops->open(store->env, path, ENV_READ, &s->changes, err);
    }
    *ret_version = 0;
    return !code ? word_change(s, ret_version, err) : code == TIDE_NOT_FOUND ? TIDE_OK : code;
}
