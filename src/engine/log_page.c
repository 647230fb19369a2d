/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards, events are handed on as they are read. Backwards, the log is read in pieces from the end, each in order: what fits is noted by
 * its seq, the newest first, and when there is enough, that is read once more and handed on in order.
 */
#include "engine/log_page.h"

#include "base/mem.h"
#include "base/word_search.h"

#define PIECE_FIRST 256 /* events; each piece is twice the one behind it */
#define PIECE_MAX 4096

struct noted {
    int64_t seq;
    size_t bytes;
};

struct reading {
    struct log_page *page;
    struct word_search words;
    log_page_fn *fn;
    void *arg;
    struct noted *at; /* the newest first */
    size_t n, cap;
    int64_t looked_at, handed;
    size_t bytes;
    bool filtered;
    enum tide_code code;
    struct tide_err *err;
};

static bool is_of_kind(const char *const *kinds, const char *kind)
{
    for (; kinds && *kinds; kinds++) {
        size_t len = strlen(*kinds);

        if (len && (*kinds)[len - 1] == '.' ? strncmp(*kinds, kind, len) == 0 : strcmp(*kinds, kind) == 0)
            return true;
    }
    return false;
}

static bool fits(struct reading *r, const struct tide_event *ev)
{
    return (!r->page->kinds || is_of_kind(r->page->kinds, ev->kind)) &&
           word_search_finds_json(&r->words, str_from(ev->kind), (struct str){ev->body, ev->body_len});
}

static int hand_on(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;

    r->code = r->fn(r->arg, ev, r->err);
    return r->code != TIDE_OK;
}

/* ---- forwards ---- */

static int look_on(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;
    struct log_page *p = r->page;

    if (r->handed == p->limit || (r->handed && r->bytes > p->max_bytes) ||
        (r->filtered && r->looked_at == LOG_LOOK_MAX))
        return 1;
    r->looked_at++;
    if (fits(r, ev)) {
        r->handed++;
        r->bytes += ev->body_len;
        if (hand_on(r, ev))
            return 1;
    }
    p->last_seq = ev->seq;
    return 0;
}

static enum tide_code read_on(struct reading *r, tide_session *session, unsigned flags, int64_t first)
{
    struct log_page *p = r->page;

    p->first_seq = p->after >= first ? p->after + 1 : 0;
    p->last_seq = p->after;
    if (p->after == INT64_MAX)
        return TIDE_OK;
    return tide_session_read(session, flags, p->after + 1, p->to, look_on, r, r->err);
}

/* ---- backwards ---- */

static int note(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;

    r->looked_at++;
    if (fits(r, ev)) {
        MEM_ROOM(r->at, r->n, r->cap);
        r->at[r->n++] = (struct noted){ev->seq, ev->body_len};
    }
    return 0;
}

/* Of a piece, in order, to the newest first. */
static void turn_round(struct noted *at, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct noted one = at[i];

        at[i] = at[n - 1 - i];
        at[n - 1 - i] = one;
    }
}

/* How many of the noted ones a page has. */
static size_t count_last(const struct reading *r)
{
    size_t n = 0, bytes = 0;

    while (n < r->n && (int64_t)n < r->page->limit) {
        bytes += r->at[n].bytes;
        if (n && bytes > r->page->max_bytes)
            break;
        n++;
    }
    return n;
}

/* The first n noted ones, the oldest first. Those that follow each other are read together. */
static enum tide_code hand_noted(struct reading *r, tide_session *session, unsigned flags, size_t n)
{
    enum tide_code code = TIDE_OK;

    while (!code && !r->code && n > 0) {
        int64_t first = r->at[--n].seq, last = first;

        for (; n > 0 && r->at[n - 1].seq == last + 1; n--)
            last++;
        code = tide_session_read(session, flags, first, last, hand_on, r, r->err);
    }
    return code;
}

static enum tide_code read_back(struct reading *r, tide_session *session, unsigned flags, int64_t first)
{
    struct log_page *p = r->page;
    int64_t last = tide_session_last_seq(session), high = p->before - 1 < last ? p->before - 1 : last, low = high + 1;
    int64_t piece = r->filtered ? PIECE_FIRST : p->limit;
    enum tide_code code = TIDE_OK;
    size_t n;

    first = p->after + 1 > first ? p->after + 1 : first;
    p->last_seq = high > first - 1 ? high : first - 1;
    while (!code && low > first && (int64_t)r->n < p->limit && r->looked_at < LOG_LOOK_MAX) {
        size_t before = r->n;
        int64_t left = LOG_LOOK_MAX - r->looked_at, size = piece < left ? piece : left;

        high = low - 1;
        low = high - first >= size ? high - size + 1 : first;
        code = tide_session_read(session, flags, low, high, note, r, r->err);
        turn_round(r->at + before, r->n - before);
        piece = piece * 2 < PIECE_MAX ? piece * 2 : PIECE_MAX;
    }
    n = count_last(r);
    if (n < r->n)
        low = r->at[n - 1].seq;
    p->first_seq = low > first ? low : 0;
    return code ? code : hand_noted(r, session, flags, n);
}

enum tide_code log_page_read(tide_session *session, struct log_page *page, log_page_fn *fn, void *arg,
                             struct tide_err *err)
{
    struct reading r = {.page = page, .fn = fn, .arg = arg, .err = err};
    unsigned flags = page->inherited ? TIDE_READ_INHERITED : 0;
    int64_t first = page->inherited ? 1 : tide_session_first_seq(session);
    enum tide_code code;

    page->first_seq = page->last_seq = 0;
    word_search_init(&r.words, page->text);
    r.filtered = page->kinds || r.words.n;
    code = page->before ? read_back(&r, session, flags, first) : read_on(&r, session, flags, first);
    word_search_done(&r.words);
    free(r.at);
    return code ? code : r.code;
}
