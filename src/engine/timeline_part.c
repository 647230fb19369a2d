/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a timeline begins in the middle of something: the state as of there says what. The events with which that began are folded first,
 * wherever they lie, so that lanes and bars begin when they did; then they are forgotten as figures.
 */
#include "engine/timeline_lanes.h"

#include <inttypes.h>
#include <stdio.h>

#include "session/session.h"

struct seeding {
    struct timeline *t;
    tide_session *session;
    const struct state *state;
    struct tide_err *err;
};

static enum tide_code fold_event(const struct seeding *s, int64_t seq)
{
    return seq < tide_session_first_seq(s->session)
               ? TIDE_OK
               : tide_session_read(s->session, 0, seq, seq, tl_event_add, s->t, s->err);
}

static enum tide_code seed_steps(const struct seeding *s)
{
    const struct map *effects = &s->state->ledger.effects;
    enum tide_code code = TIDE_OK;
    int n = 0;

    for (struct map_entry *e = map_next(effects, NULL); e && !code && n < TL_ITEMS; e = map_next(effects, e)) {
        const struct effect *effect = e->value;

        if (effect->past || effect->unknown)
            continue;
        code = fold_event(s, effect->seq);
        n++;
    }
    return code;
}

/* Which event started them the state does not say: when they began is not known. */
static void seed_nodes(const struct seeding *s, struct tl_run *run)
{
    const struct map *active = &s->state->content.position.active;

    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *task = e->value;
        struct tl_item *item;
        char name[256];

        if (task->state != TASK_RUNNING && task->state != TASK_RETRY)
            continue;
        s->t->at = task->seq;
        item = tl_item_add(s->t, run, TL_NODE, 0);
        snprintf(name, sizeof name, "%s#%" PRId64, e->key, task->visit);
        item->call = str_hash(str_from(name));
        item->tries = (int)task->attempt + 1;
        item->outcome = task->state == TASK_RETRY ? TL_FAILED : TL_OPEN;
        CUT(item->name, task->visit > 1 ? str_from(name) : map_key(e));
        CUT(item->word, STR("node"));
    }
}

static enum tide_code seed_run(const struct seeding *s)
{
    const struct ledger *l = &s->state->ledger;
    enum tide_code code = TIDE_OK;
    struct tl_run *run;

    if (!l->run.started_seq || (code = fold_event(s, l->run.started_seq)) != TIDE_OK)
        return code;
    run = tl_run_last(s->t);
    if (!run)
        return TIDE_OK;
    run->number = l->runs > 0 ? l->runs : run->number;
    seed_nodes(s, run);
    code = seed_steps(s);
    if (!code && l->run.end == RUN_OPEN && l->run.waiting)
        code = fold_event(s, l->run.since_seq);
    else if (!code && l->run.end > RUN_OPEN)
        code = fold_event(s, l->run.ended_seq);
    return code;
}

static enum tide_code seed(struct timeline *t, tide_session *session, int64_t seq, struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    struct seeding s = {.t = t, .session = session, .err = err};
    enum tide_code code = session_state(session, seq, &own, &s.state, err);

    code = code ? code : seed_run(&s);
    if (code)
        return code;
    t->now = s.state->ts_ms > t->now ? s.state->ts_ms : t->now;
    memset(&t->sum, 0, sizeof t->sum);
    t->first_seq = t->last_seq = 0;
    t->n_axis = 0;
    t->axis_stride = 0;
    return TIDE_OK;
}

enum tide_code timeline_read_part(tide_session *session, int64_t from, int64_t to, struct timeline *t,
                                  struct tide_err *err)
{
    const struct tide_session_info *info;
    int64_t first = tide_session_first_seq(session), last = tide_session_last_seq(session);
    int64_t low = from > first ? from : first, high = to && to < last ? to : last;
    enum tide_code code = TIDE_OK;

    memset(t, 0, sizeof *t);
    if (tide_session_get_info(session, &info, err))
        return err->code;
    tl_begin(t, info);
    if (from && !to && high - low >= TL_WINDOW)
        high = low + TL_WINDOW - 1;
    if (high - low >= TL_WINDOW)
        low = high - TL_WINDOW + 1;
    t->partial = low > first || high < last;
    t->gone &= high == last;
    if (low > last)
        return TIDE_OK;
    if (low > first)
        code = seed(t, session, low - 1, err);
    if (!code && low <= high)
        code = tide_session_read(session, 0, low, high, tl_event_add, t, err);
    tl_end_all(t);
    return code;
}
