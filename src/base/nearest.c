/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped name may have meant: the nearest by insertions, deletions, replacements and swaps of neighbours. */
#include "base/nearest.h"

#include <string.h>

#define NAME_MAX_LEN 32

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];

    for (size_t i = 0; i <= a_len; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= b_len; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            d[i][j] = min2(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), min2(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min2(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a_len][b_len];
}

/* 0 is the best: what is typed begins the name; else 1 + distance, or `no` when too far to be meant. */
static size_t score_of(const char *typed, const char *name, size_t no)
{
    size_t typed_len = strlen(typed), name_len = strlen(name), d;

    if (typed_len > NAME_MAX_LEN || name_len > NAME_MAX_LEN)
        return no;
    if (typed_len >= 2 && strncmp(name, typed, typed_len) == 0)
        return 0;
    d = distance(typed, typed_len, name, name_len);
    return d <= (name_len > 4 ? 2 : 1) ? d + 1 : no;
}

const char *nearest(const char *typed, const char *(*next)(void *arg), void *arg)
{
    const char *best = NULL;
    size_t best_score = NAME_MAX_LEN * 2;

    for (const char *name; (name = next(arg));) {
        size_t s = score_of(typed, name, NAME_MAX_LEN * 2);

        if (s < best_score) {
            best_score = s;
            best = name;
        }
    }
    return best;
}
