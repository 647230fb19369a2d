/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a timeline and what lies in them, each within its bound: what goes beyond is counted, never stored. */
#include "engine/timeline_lanes.h"

#include "base/utf8.h"

#include <stdio.h>

void tl_text_cut(char *out, size_t size, struct str s)
{
    struct str shown = s.len < size ? s : utf8_clip(s, size - sizeof("…"));

    snprintf(out, size, "%.*s%s", STR_ARG(shown), shown.len < s.len ? "…" : "");
}

void tl_run_done(struct tl_run *run)
{
    free(run->items);
}

void tl_axis_add(struct timeline *t)
{
    t->axis_stride = t->axis_stride ? t->axis_stride : 1;
    if ((t->at - t->first_seq) % t->axis_stride != 0)
        return;
    if (t->n_axis == TL_AXIS) { /* half of them say as much */
        for (size_t i = 0; i < TL_AXIS / 2; i++)
            t->axis[i] = t->axis[2 * i];
        t->n_axis = TL_AXIS / 2;
        t->axis_stride *= 2;
        if ((t->at - t->first_seq) % t->axis_stride != 0)
            return;
    }
    t->axis[t->n_axis].seq = t->at;
    t->axis[t->n_axis++].ms = t->now;
}

struct tl_run *tl_run_add(struct timeline *t)
{
    struct tl_run *run;

    if (!t->runs)
        t->runs = mem_array(TL_RUNS, sizeof(*t->runs));
    if (t->n_runs == TL_RUNS) {
        tl_run_done(&t->runs[TL_RUNS_FIRST]);
        memmove(&t->runs[TL_RUNS_FIRST], &t->runs[TL_RUNS_FIRST + 1], (TL_RUNS - TL_RUNS_FIRST - 1) * sizeof(*t->runs));
        t->n_runs--;
        t->omitted_runs++;
    }
    run = &t->runs[t->n_runs++];
    memset(run, 0, sizeof(*run));
    run->first_seq = run->last_seq = t->at;
    return run;
}

struct tl_run *tl_run_last(struct timeline *t)
{
    return t->n_runs ? &t->runs[t->n_runs - 1] : NULL;
}

struct tl_run *tl_run_now(struct timeline *t, int64_t ts_ms)
{
    struct tl_run *run = tl_run_last(t);

    if (run)
        return run;
    run = tl_run_add(t);
    run->started_ms = ts_ms;
    run->from = t->now;
    return run;
}

void tl_item_remove(struct tl_run *run, struct tl_item *item)
{
    size_t behind = run->n_items - (size_t)(item - run->items) - 1;

    memmove(item, item + 1, behind * sizeof(*item));
    run->n_items--;
}

/* Of too many items one from the middle goes: the oldest that is finished behind the first ones. */
static void item_drop(struct tl_run *run)
{
    size_t i = TL_ITEMS_FIRST;

    while (i < TL_ITEMS - 1 && run->items[i].outcome == TL_OPEN)
        i++;
    run->omitted[run->items[i].outcome]++;
    tl_item_remove(run, &run->items[i]);
}

struct tl_item *tl_item_add(const struct timeline *t, struct tl_run *run, enum tl_type type, int64_t ts_ms)
{
    struct tl_item *item;

    if (!run->items)
        run->items = mem_array(TL_ITEMS, sizeof(*run->items));
    if (run->n_items == TL_ITEMS)
        item_drop(run);
    item = &run->items[run->n_items++];
    *item = (struct tl_item){.type = type, .seq = t->at, .start_ms = ts_ms, .from = t->now, .to = t->now};
    return item;
}

void tl_item_end(const struct timeline *t, struct tl_item *item, enum tl_outcome outcome, int64_t ts_ms)
{
    item->outcome = outcome;
    item->end_ms = ts_ms;
    item->end_seq = t->at;
    item->to = t->now;
}

void tl_run_cut(struct timeline *t, struct tl_run *run, int64_t ts_ms)
{
    for (size_t i = 0; i < run->n_items; i++)
        if (run->items[i].outcome == TL_OPEN)
            tl_item_end(t, &run->items[i], TL_CUT, ts_ms);
}

void tl_mark_add(const struct timeline *t, struct tl_run *run, enum tl_mark kind)
{
    struct tl_marks *m = &run->marks[kind];

    m->stride = m->stride ? m->stride : 1;
    if (m->n++ % m->stride != 0)
        return;
    if (m->n_at == TL_MARKS) { /* half of them say as much */
        for (size_t i = 0; i < TL_MARKS / 2; i++)
            m->at[i] = m->at[2 * i], m->seq[i] = m->seq[2 * i];
        m->n_at = TL_MARKS / 2;
        m->stride *= 2;
    }
    m->seq[m->n_at] = t->at;
    m->at[m->n_at++] = t->now;
}

void tl_kept_add(struct tl_kept *k, const struct tl_item *item)
{
    size_t len = strlen(item->name) + 1;

    k->n++;
    if (k->n_places < TL_KEPT) {
        k->from[k->n_places] = item->from;
        k->to[k->n_places++] = item->to;
    }
    if (k->names_len + len <= sizeof(k->names)) {
        memcpy(k->names + k->names_len, item->name, len);
        k->names_len += len;
        k->n_names++;
    }
}
