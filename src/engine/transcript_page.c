/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Found by trying: a few events are read and their entries counted, then more, until there are enough. Each try reads eight times as many as
 * the one before it, so all of them read little more than the last one alone.
 */
#include "engine/transcript_page.h"

#include "base/mem.h"

#define TRY_FIRST 64 /* events at least */
#define TRY_PER_ENTRY 4
#define GROWTH 8

struct counted {
    int64_t at_seq;
    size_t bytes;
};

struct counting {
    struct counted *at;
    size_t n, cap;
};

static int count_entry(void *arg, const struct transcript_entry *e)
{
    struct counting *c = arg;

    MEM_ROOM(c->at, c->n, c->cap);
    c->at[c->n++] = (struct counted){e->at_seq, strlen(e->text) + strlen(e->args)};
    return 0;
}

/* Entries of the window: from the first, or back from the last, as many as the page may have. Returns how many. */
static size_t take_entries(const struct transcript_page *p, const struct counting *c, bool back)
{
    size_t n = 0, bytes = 0;

    while (n < c->n && (int64_t)n < p->limit) {
        bytes += c->at[back ? c->n - 1 - n : n].bytes;
        if (n && bytes > p->max_bytes)
            break;
        n++;
    }
    return n;
}

/* Of one event all entries or none. */
static void cut_window(struct transcript_window *w, const struct counting *c, size_t n, bool back)
{
    if (n < c->n && back)
        w->from = c->at[c->n - n].at_seq;
    else if (n < c->n)
        w->to = c->at[n].at_seq > c->at[n - 1].at_seq ? c->at[n].at_seq - 1 : c->at[n].at_seq;
}

/* What has no result is looked for behind it as well, or it would be counted twice. */
static enum tide_code try_window(tide_session *session, struct transcript_page *p, int64_t last, struct counting *c,
                                 struct tide_err *err)
{
    struct transcript_window *w = &p->window;

    c->n = 0;
    w->read_from = w->from;
    w->read_to = w->to + TRANSCRIPT_APART < last ? w->to + TRANSCRIPT_APART : last;
    return transcript_read_window(session, w, count_entry, c, err);
}

/* What is to be read for these entries alone; where calls began before what was read, as far back as they are looked for. */
static void narrow(struct transcript_window *w, const struct counting *c)
{
    int64_t first = w->to + 1;

    for (size_t i = 0; i < c->n && first > w->to; i++)
        if (c->at[i].at_seq >= w->from)
            first = c->at[i].at_seq;
    w->read_from = !w->misses ? w->read_from : first > TRANSCRIPT_APART ? first - TRANSCRIPT_APART : 1;
    w->empty = first > w->to;
}

enum tide_code transcript_page_find(tide_session *session, struct transcript_page *p, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct counting c = {0};
    int64_t low = p->after + 1, high, size = p->limit * TRY_PER_ENTRY, last;
    bool back = !p->forward, enough = false;
    enum tide_code code = tide_session_get_info(session, &info, err);

    if (code)
        return code;
    last = info->last_seq;
    high = p->before && p->before - 1 < last ? p->before - 1 : last;
    size = size < TRY_FIRST ? TRY_FIRST : size;
    p->window = (struct transcript_window){.from = low, .to = high};
    for (; !code && !enough && low <= high; size *= GROWTH) {
        size = size < TRANSCRIPT_LOOK_MAX ? size : TRANSCRIPT_LOOK_MAX;
        p->window.from = back && high - low >= size ? high - size + 1 : low;
        p->window.to = !back && high - low >= size ? low + size - 1 : high;
        code = try_window(session, p, last, &c, err);
        enough =
            (p->window.from == low && p->window.to == high) || size == TRANSCRIPT_LOOK_MAX || (int64_t)c.n >= p->limit;
    }
    if (!code && low <= high) {
        cut_window(&p->window, &c, take_entries(p, &c, back), back);
        narrow(&p->window, &c);
    }
    p->entries_before = !code && p->window.from > 1 ? p->window.from : 0;
    p->entries_after = !code && p->window.to < last ? p->window.to : 0;
    free(c.at);
    return code;
}

enum tide_code transcript_page_read(tide_session *session, struct transcript_page *p, transcript_fn *fn, void *arg,
                                    struct tide_err *err)
{
    return p->window.from <= p->window.to && !p->window.empty
               ? transcript_read_window(session, &p->window, fn, arg, err)
               : TIDE_OK;
}
