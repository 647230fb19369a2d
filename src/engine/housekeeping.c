/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/housekeeping.h"

#include <stdio.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "engine/session_words.h"
#include "engine/settings.h"
#include "engine/timeline_lanes.h"
#include "session/session.h"
#include "session/status.h"
#include "store/origin.h"

struct looking {
    struct store *store;
    const struct housekeeping_filter *filter;
    struct housekeeping *found;
    struct map parents; /* ids that another is forked from -> itself */
    int64_t now_ms;
};

void housekeeping_done(struct housekeeping *h)
{
    free(h->at);
    *h = (struct housekeeping){0};
}

static bool same(struct arena *a, const struct state *s, const char *key, const char *want)
{
    return str_eq(info_text(a, &s->info, str_from(key)), str_from(want));
}

/* Nobody waits for it, and nothing of it is left to be done or to be sent: what came from elsewhere sends nothing. */
static bool is_over(const struct looking *l, const struct head *h, const struct state *s, const struct status *st)
{
    return st->status == TIDE_STATUS_IDLE && !s->ledger.queued &&
           (!s->ledger.notify_from || !origin_is_ours(l->store, h));
}

/* Words of other vocabularies mean more than one of ours (`failed` of graphs is also what was interrupted): ours come first. */
static bool has_status(const struct status *st, const char *word)
{
    int status = tide_status_from(word), outcome = tide_outcome_from(word);
    bool ended = st->status == TIDE_STATUS_IDLE || st->outcome == TIDE_OUTCOME_INTERRUPTED;

    if (status <= 0 && outcome <= 0)
        return status_matches(st, word);
    return (int)st->status == status || (ended && (int)st->outcome == outcome);
}

static bool is_meant(const struct looking *l, struct arena *a, const struct head *h, const struct state *s,
                     const struct status *st)
{
    const struct housekeeping_filter *f = l->filter;

    return (f->status ? has_status(st, f->status) : s && is_over(l, h, s, st)) && (!f->kind || st->kind == f->kind) &&
           (!f->until_ms || (s && h->updated_ms < f->until_ms)) &&
           (!f->agent || (s && (same(a, s, "agent", f->agent) || same(a, s, "agent_id", f->agent)))) &&
           (!f->task_id || (s && same(a, s, "task_id", f->task_id)));
}

static int look_at_session(void *arg, const struct head *h, const struct state *s)
{
    struct looking *l = arg;
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct housekeeping_found *f;
    struct status st;

    if (h->parent_id[0])
        map_set_text(&l->parents, str_from(h->parent_id), str_from(h->parent_id));
    if (s)
        status_derive(&st, s, h->holder_alive, l->now_ms);
    else
        status_damaged(&st, "");
    if (!is_meant(l, &a, h, s, &st))
        return 0;
    MEM_ROOM(l->found->at, l->found->n, l->found->cap);
    f = &l->found->at[l->found->n++];
    *f = (struct housekeeping_found){.seq = s ? h->last_seq : 0, .updated_ms = s ? h->updated_ms : 0};
    snprintf(f->id, sizeof f->id, "%s", h->id);
    if (s)
        CUT(f->title, info_text(&a, &s->info, map_get(&s->info.fields, STR("title")) ? STR("title") : STR("agent")));
    session_status(f->status,
                   &(struct tide_session_info){.status = st.status, .outcome = st.outcome, .reason = st.reason});
    return 0;
}

enum tide_code housekeeping_find(tide_store *store, const struct housekeeping_filter *filter, struct housekeeping *ret,
                                 struct tide_err *err)
{
    struct looking l = {.store = store_of(store), .filter = filter, .found = ret};
    enum tide_code code;
    size_t kept = 0;

    if (filter->status && !status_word_known(filter->status))
        return tide_fail(err, TIDE_INVALID, "'%.60s' is not a status", filter->status);
    l.now_ms = env_now_ms(l.store->env);
    code = session_each(l.store, look_at_session, &l, err);
    for (size_t i = 0; i < ret->n; i++) /* all forks are known only now */
        if (!filter->keep_parents || !map_get(&l.parents, str_from(ret->at[i].id)))
            ret->at[kept++] = ret->at[i];
    ret->n = kept;
    map_done(&l.parents, free);
    return code;
}

enum tide_code housekeeping_delete(tide_store *store, struct housekeeping *h, struct tide_err *err)
{
    for (size_t i = 0; i < h->n; i++) {
        struct housekeeping_found *f = &h->at[i];
        enum tide_code code = session_delete_at(store_of(store), f->id, f->seq, err);

        /* of this session, not of the store: the others can still go */
        if (code && code != TIDE_CONFLICT && code != TIDE_HELD && code != TIDE_HAS_FORKS && code != TIDE_NOT_FOUND)
            return code;
        f->deleted = !code;
        if (code)
            f->kept = *err;
        else
            log_write(TIDE_LOG_INFO, "session deleted", log_text("session", f->id), log_text("status", f->status));
    }
    return TIDE_OK;
}

enum tide_code housekeeping_retention(const char *config, int64_t *ret_ms, struct tide_err *err)
{
    return settings_duration(config, "retention", 0, ret_ms, err);
}

enum tide_code housekeeping_expire(tide_store *store, int64_t retention_ms, bool dry_run, int64_t *ret_n,
                                   struct tide_err *err)
{
    const struct housekeeping_filter old = {.until_ms = env_now_ms(store_of(store)->env) - retention_ms,
                                            .keep_parents = true};
    struct housekeeping h = {0};
    enum tide_code code = housekeeping_find(store, &old, &h, err);

    if (!code && !dry_run)
        code = housekeeping_delete(store, &h, err);
    *ret_n = 0;
    for (size_t i = 0; i < h.n; i++)
        *ret_n += dry_run || h.at[i].deleted;
    housekeeping_done(&h);
    return code;
}

enum tide_code housekeeping_delete_at(tide_store *store, const char *id, int64_t seq, struct tide_err *err)
{
    return session_delete_at(store_of(store), id, seq, err);
}
