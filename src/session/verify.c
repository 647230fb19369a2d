/* SPDX-License-Identifier: Apache-2.0 */
/* Proving: one session's chain from its first event to its head, or the whole store. Reading checks; this reads all. */
#include <inttypes.h>

#include "session/session_file.h"
#include "session/session.h"

struct verifying {
    uint64_t done, total;
    tide_progress_fn *progress;
    void *arg;
    bool cancelled;
};

static int count_event(void *arg, const struct event *ev)
{
    struct verifying *v = arg;

    (void)ev;
    v->done++;
    if (v->progress && v->done % 1024 == 0)
        v->cancelled = v->progress(v->arg, v->done, v->total) != 0;
    return v->cancelled;
}

static enum tide_code verify_head(struct store *store, const struct head *h, struct verifying *v, struct tide_err *err)
{
    uint64_t before = v->done;
    struct head parent;
    /* a fork's chain begins with its parent's digest at the fork point */
    enum tide_code code = h->parent_id[0] ? history_parent(store, h, &parent, err) : TIDE_OK;

    code = code ? code : store_read(store, h, 0, 0, count_event, v, err);
    if (code)
        return code;
    if (v->cancelled)
        return tide_fail(err, TIDE_CANCELLED, "stopped");
    if (v->done - before != (uint64_t)(h->last_seq - h->first_seq + 1))
        return tide_fail_session(err, TIDE_CORRUPT, h->id,
                                 "has %" PRIu64 " event%s, not the %" PRId64 " it should have", v->done - before,
                                 v->done - before == 1 ? "" : "s", h->last_seq - h->first_seq + 1);
    return TIDE_OK;
}

/* What a fork shares with those above it, each up to where the next one left it. */
static enum tide_code verify_past(struct store *store, const struct head *head, struct verifying *v,
                                  struct tide_err *err)
{
    struct head at = *head, parent;
    enum tide_code code = TIDE_OK;

    for (int64_t to = at.parent_seq; at.parent_id[0] && !code && !v->cancelled; at = parent) {
        to = at.parent_seq < to ? at.parent_seq : to;
        code = history_parent(store, &at, &parent, err);
        if (!code && to >= parent.first_seq) {
            v->total += (uint64_t)(to - parent.first_seq + 1);
            code = store_read(store, &parent, 0, to, count_event, v, err);
        }
    }
    return code;
}

enum tide_code session_verify_own(tide_session *s, tide_progress_fn *progress, void *arg, uint64_t *ret_events,
                                  struct tide_err *err)
{
    struct verifying v = {.progress = progress, .arg = arg};
    enum tide_code code = store_head(s->store, str_from(s->head.id), &s->head, err);

    if (code)
        return code;
    v.total = (uint64_t)(s->head.last_seq - s->head.first_seq + 1);
    code = verify_head(s->store, &s->head, &v, err);
    if (!code && progress)
        progress(arg, v.done, v.total);
    if (!code && ret_events)
        *ret_events = v.done;
    return code;
}

enum tide_code tide_session_verify(tide_session *s, tide_progress_fn *progress, void *arg, uint64_t *ret_events,
                                   struct tide_err *err)
{
    struct verifying past = {.progress = progress, .arg = arg};
    enum tide_code code;

    ERR_LOCAL(err);
    code = verify_past(s->store, &s->head, &past, err);
    if (!code && past.cancelled)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    return code ? code : session_verify_own(s, progress, arg, ret_events, err);
}

/* Between the caller and the store: which sessions the store has named already. */
struct naming {
    tide_progress_fn *progress;
    tide_problem_fn *problem;
    void *arg;
    struct map named; /* where -> anything */
};

static int pass_progress(void *arg, uint64_t done, uint64_t total)
{
    const struct naming *n = arg;

    return n->progress(n->arg, done, total);
}

static void note_problem(void *arg, const char *where, const char *what)
{
    struct naming *n = arg;

    map_put(&n->named, str_from(where), n);
    if (n->problem)
        n->problem(n->arg, where, what);
}

struct checking {
    struct store *store;
    struct store_check *check;
    const struct map *named; /* by the store: not once more */
    struct verifying v;
    bool counting;
};

static int check_session(void *arg, const struct store_entry *entry)
{
    struct checking *c = arg;
    struct tide_err err;
    enum tide_code code;

    if (c->counting) {
        c->v.total += (uint64_t)(entry->head->last_seq - entry->head->first_seq + 1);
        return 0;
    }
    code = verify_head(c->store, entry->head, &c->v, &err);
    if (code && !c->v.cancelled && !map_get(c->named, str_from(entry->head->id)))
        store_check_name(c->check, entry->head->id, code, err.msg);
    return c->v.cancelled;
}

/* All that can be listed; what cannot is a problem unless one was named. */
static enum tide_code each_session(struct checking *c, struct tide_err *err)
{
    enum tide_code code = store_list(c->store, NULL, check_session, c, err);

    return code == TIDE_CORRUPT && c->check->problems ? TIDE_OK : code;
}

static enum tide_code check_chains(struct store *store, struct store_check *check, const struct map *named,
                                   struct tide_err *err)
{
    struct checking c = {
        .store = store, .check = check, .named = named, .v = {.progress = check->progress, .arg = check->arg}};
    enum tide_code code;

    c.counting = true;
    code = each_session(&c, err);
    c.counting = false;
    if (!code)
        code = each_session(&c, err);
    if (!code && c.v.cancelled)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    if (!code && check->progress)
        check->progress(check->arg, c.v.done, c.v.total);
    return code;
}

enum tide_code tide_store_check(tide_store *store, unsigned flags, tide_progress_fn *progress, tide_problem_fn *problem,
                                void *arg, struct tide_err *err)
{
    struct store *s = store_of(store);
    struct naming n = {.progress = progress, .problem = problem, .arg = arg};
    struct store_check check = {.progress = progress ? pass_progress : NULL, .problem = note_problem, .arg = &n};
    enum tide_code code = TIDE_OK;

    ERR_LOCAL(err);
    if (flags & TIDE_CHECK_REBUILD)
        code = store_rebuild(s, err);
    if (!code && flags & TIDE_CHECK_REBUILD)
        code = session_file_renew_all(s, err);
    if (!code)
        code = store_check(s, &check, err);
    if (!code)
        code = check_chains(s, &check, &n.named, err);
    map_done(&n.named, NULL);
    if (!code && check.problems) {
        code =
            tide_fail(err, TIDE_CORRUPT, "%" PRIu64 " problem%s found", check.problems, check.problems == 1 ? "" : "s");
        if (check.can_rebuild && !(flags & TIDE_CHECK_REBUILD))
            tide_hint_with(err, TIDE_ACTION_CHECK_STORE, "", "\"rebuild\":true");
    } else if (!code && check.unread)
        code = tide_fail(err, TIDE_IO,
                         "no damage was found, but %" PRIu64 " part%s could not be read: check the disk, then check "
                         "again",
                         check.unread, check.unread == 1 ? "" : "s");
    return code;
}
