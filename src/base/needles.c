/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wu and Manber's search. A window as long as the shortest text moves over what is searched. Its last three bytes give
 * how far it can move at once: so far that no text could begin in between.
 *
 *   shift[hash of three bytes]  0: they end the beginning of some text, which is then compared; else the bytes to move
 *   first[hash], next[text]     the texts whose beginning ends with three bytes of this hash
 */
#include "base/needles.h"

#include <endian.h>

#include "base/mem.h"

#define BLOCK 3
#define HASH_BITS 14
#define WINDOW_MAX 64 /* what a shift can say */
#define NONE UINT32_MAX

struct needles {
    const struct str *texts;
    size_t n, window;
    uint8_t shift[1 << HASH_BITS];
    uint32_t first[1 << HASH_BITS];
    uint32_t next[];
};

/* Of the three bytes that end at `end`; the one before them must be there. */
static inline uint32_t hash_at(const char *end)
{
    uint32_t word;

    memcpy(&word, end - 4, sizeof(word));
    return (le32toh(word) >> 8) * 2654435761u >> (32 - HASH_BITS);
}

static void add_needle(struct needles *m, uint32_t i)
{
    const char *text = m->texts[i].ptr;
    uint32_t last = hash_at(text + m->window);

    for (size_t end = BLOCK + 1; end <= m->window; end++) {
        uint8_t *shift = &m->shift[hash_at(text + end)];

        if (*shift > m->window - end)
            *shift = (uint8_t)(m->window - end);
    }
    m->next[i] = m->first[last];
    m->first[last] = i;
}

struct needles *needles_new(const struct str *texts, size_t n)
{
    struct needles *m = mem_alloc(sizeof(*m) + n * sizeof(m->next[0]));

    m->texts = texts;
    m->n = n;
    m->window = WINDOW_MAX;
    for (size_t i = 0; i < n; i++)
        m->window = texts[i].len < m->window ? texts[i].len : m->window;
    /* The first three bytes of a window are never hashed (there is none before them): one byte less than possible. */
    memset(m->shift, (int)(m->window - BLOCK), sizeof(m->shift));
    for (size_t i = 0; i < sizeof(m->first) / sizeof(m->first[0]); i++)
        m->first[i] = NONE;
    for (uint32_t i = 0; i < n; i++)
        add_needle(m, i);
    return m;
}

void needles_free(struct needles *m)
{
    free(m);
}

/* The longest text that begins here; NONE. */
static uint32_t longest_at(const struct needles *m, uint32_t i, const char *at, size_t left)
{
    uint32_t best = NONE;

    for (; i != NONE; i = m->next[i]) {
        const struct str *t = &m->texts[i];

        if (t->len <= left && (best == NONE || t->len > m->texts[best].len) && memcmp(at, t->ptr, t->len) == 0)
            best = i;
    }
    return best;
}

bool needles_find(const struct needles *m, struct str in, size_t from, size_t *ret_at, size_t *ret_which)
{
    for (size_t end = from + m->window; m->n && end <= in.len;) {
        uint32_t hash = hash_at(in.ptr + end), found;

        if (m->shift[hash]) {
            end += m->shift[hash];
            continue;
        }
        found = longest_at(m, m->first[hash], in.ptr + end - m->window, in.len - (end - m->window));
        if (found != NONE) {
            *ret_at = end - m->window;
            *ret_which = found;
            return true;
        }
        end++;
    }
    return false;
}
