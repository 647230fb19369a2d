/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards, events are handed on as they are read. Backwards, the log is read in pieces from the end: of each what fits is noted by its
 * seq, and when there is enough, that is read once more and handed on in order.
 */
#include "engine/log_page.h"

#include "base/mem.h"
#include "base/word_search.h"

#define PIECE_FIRST 256 /* events */
#define GROWTH 4

struct noted {
    int64_t seq;
    size_t bytes;
};

struct reading {
    struct log_page *page;
    struct word_search words;
    log_page_fn *fn;
    void *arg;
    struct noted *at; /* of a piece, in order */
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

/* What a page of the noted ones has: the last, as many as may be. Returns how many are left away. */
static size_t take_last(const struct reading *r)
{
    size_t from = r->n, bytes = 0;

    while (from > 0 && (int64_t)(r->n - from) < r->page->limit) {
        bytes += r->at[from - 1].bytes;
        if (from < r->n && bytes > r->page->max_bytes)
            break;
        from--;
    }
    return from;
}

/* Those that follow each other are read together. */
static enum tide_code hand_noted(struct reading *r, tide_session *session, unsigned flags, size_t i)
{
    enum tide_code code = TIDE_OK;

    while (!code && !r->code && i < r->n) {
        size_t first = i;

        while (i + 1 < r->n && r->at[i + 1].seq == r->at[i].seq + 1)
            i++;
        code = tide_session_read(session, flags, r->at[first].seq, r->at[i].seq, hand_on, r, r->err);
        i++;
    }
    return code;
}

static enum tide_code read_back(struct reading *r, tide_session *session, unsigned flags, int64_t first)
{
    struct log_page *p = r->page;
    int64_t last = tide_session_last_seq(session), high = p->before - 1 < last ? p->before - 1 : last;
    int64_t piece = r->filtered ? PIECE_FIRST : p->limit, low = high + 1;
    enum tide_code code = TIDE_OK;
    size_t from;

    first = p->after + 1 > first ? p->after + 1 : first;
    p->last_seq = high > first - 1 ? high : first - 1;
    /* Each time all of it is read once more, and four times as much: the notes stay in order. */
    for (bool enough = high < first; !code && !enough; piece *= GROWTH) {
        piece = piece < LOG_LOOK_MAX ? piece : LOG_LOOK_MAX;
        low = high - first >= piece ? high - piece + 1 : first;
        r->n = 0;
        code = tide_session_read(session, flags, low, high, note, r, r->err);
        enough = !r->filtered || low == first || piece == LOG_LOOK_MAX || (int64_t)r->n >= p->limit;
    }
    from = take_last(r);
    if (from > 0)
        low = r->at[from].seq;
    p->first_seq = low > first ? low : 0;
    return code ? code : hand_noted(r, session, flags, from);
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
