/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The axis that all lanes share. Its length is not to scale: what lies between two moments takes room by the number of
 * digits of its duration, so that a sleep of hours leaves room for steps of milliseconds.
 */
#include "cli/timeline/timeline_axis.h"

#include <stdlib.h>

#define COVERED 4 /* times as much room for what something happens in, as for what nothing does */

static void axis_add(struct axis *a, size_t *cap, int64_t at)
{
    MEM_ROOM(a->at, a->n, *cap);
    a->at[a->n++] = at;
}

/* The first moment that is not before this one; `n` when there is none. */
static size_t axis_find(const struct axis *a, int64_t at)
{
    size_t low = 0, high = a->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (a->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void axis_collect(struct axis *a, const struct tl_run *run, size_t *cap)
{
    axis_add(a, cap, run->from);
    axis_add(a, cap, run->to);
    for (size_t i = 0; i < run->n_items; i++) {
        axis_add(a, cap, run->items[i].from);
        axis_add(a, cap, run->items[i].to);
    }
    for (int k = 0; k < TL_MARK_KINDS; k++)
        for (size_t i = 0; i < run->marks[k].n_at; i++)
            axis_add(a, cap, run->marks[k].at[i]);
}

/* The square of the number of its binary digits: 10 ms are 16, 1 s is 100, 3 h are 576. */
static int64_t gap_weight(int64_t ms)
{
    int64_t digits = ms <= 0 ? 0 : 64 - (int64_t)__builtin_clzll((uint64_t)ms);

    return digits * digits;
}

/* Of each gap, how many items span it: sums of what begins and ends at its moments. */
static void axis_cover(const struct axis *a, const struct timeline *t, int64_t *cover)
{
    for (size_t r = 0; r < t->n_runs; r++) {
        for (size_t i = 0; i < t->runs[r].n_items; i++) {
            cover[axis_find(a, t->runs[r].items[i].from)]++;
            cover[axis_find(a, t->runs[r].items[i].to)]--;
        }
    }
    for (size_t i = 1; i < a->n; i++)
        cover[i] += cover[i - 1];
}

void axis_init(struct axis *a, const struct timeline *t)
{
    size_t cap = 0, n = 0;
    int64_t *cover;

    for (size_t i = 0; i < t->n_runs; i++)
        axis_collect(a, &t->runs[i], &cap);
    qsort(a->at, a->n, sizeof(*a->at), by_time);
    for (size_t i = 0; i < a->n; i++)
        if (n == 0 || a->at[i] != a->at[n - 1])
            a->at[n++] = a->at[i];
    a->n = n;
    cover = mem_array(a->n, sizeof(*cover));
    axis_cover(a, t, cover);
    a->weight = mem_array(a->n, sizeof(*a->weight));
    for (size_t i = 1; i < a->n; i++) {
        a->whole += gap_weight(a->at[i] - a->at[i - 1]) * (cover[i - 1] > 0 ? COVERED : 1);
        a->weight[i] = a->whole;
    }
    free(cover);
}

int axis_column(const struct axis *a, int64_t at, int width)
{
    size_t i = axis_find(a, at);

    if (i == a->n)
        return width;
    return a->whole ? (int)(a->weight[i] * width / a->whole) : 0;
}

void axis_done(struct axis *a)
{
    free(a->at);
    free(a->weight);
    *a = (struct axis){NULL, NULL, 0, 0};
}
