/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both texts begin and end with is left out; between, the longest common subsequence of lines decides, found by the
 * usual table. Where that table would be too big, the middle counts as replaced: the diff is right, only not the shortest.
 */
#include "base/line_diff.h"

#include <stdint.h>

#include "base/mem.h"

#define CONTEXT ((size_t)3)
#define TABLE_MAX ((size_t)4 << 20) /* cells */

struct lines {
    struct str *at;
    size_t n;
};

struct edits {
    struct lines before, after;
    bool *gone, *come; /* per line: it is not in the other text */
};

/* Each with its line end, so that a last line without one differs from one with it. */
static struct lines split_lines(struct str text)
{
    size_t n = 0, cap = 0;
    struct str *at = NULL;

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) + 1 : text.len;

        MEM_ROOM(at, n, cap);
        at[n++] = (struct str){text.ptr, len};
        text = (struct str){text.ptr + len, text.len - len};
    }
    return (struct lines){at, n};
}

/* Marks lines of [from, a_end) and [from, b_end). */
static void mark_changed(struct edits *e, size_t from, size_t a_end, size_t b_end)
{
    size_t n = a_end - from, m = b_end - from, i = 0, j = 0;
    bool table = (n + 1) <= TABLE_MAX / (m + 1);
    uint32_t *best = table ? mem_array((n + 1) * (m + 1), sizeof(*best)) : NULL;

#define BEST(x, y) best[(x) * (m + 1) + (y)]
    for (size_t x = n; table && x-- > 0;)
        for (size_t y = m; y-- > 0;)
            BEST(x, y) = str_eq(e->before.at[from + x], e->after.at[from + y]) ? BEST(x + 1, y + 1) + 1
                         : BEST(x + 1, y) >= BEST(x, y + 1)                    ? BEST(x + 1, y)
                                                                               : BEST(x, y + 1);
    while (i < n || j < m) {
        if (table && i < n && j < m && str_eq(e->before.at[from + i], e->after.at[from + j])) {
            i++;
            j++;
        } else if (i < n && (!table || j == m || BEST(i + 1, j) >= BEST(i, j + 1))) {
            e->gone[from + i++] = true;
        } else {
            e->come[from + j++] = true;
        }
    }
#undef BEST
    free(best);
}

struct printing {
    struct buf *out;
    size_t left, missing;
};

static void put_line(struct printing *p, char mark, struct str line)
{
    bool ended = line.len && line.ptr[line.len - 1] == '\n';

    if (!p->left) {
        p->missing++;
        return;
    }
    p->left--;
    buf_add_char(p->out, mark);
    buf_add_str(p->out, line);
    if (!ended)
        buf_add_str(p->out, STR("\n\\ No newline at end of file\n"));
}

/* One hunk from before[i], after[j] on: up to where more than twice the context is equal. */
static void put_hunk(struct printing *p, const struct edits *e, size_t *at_i, size_t *at_j)
{
    size_t back = *at_i < CONTEXT ? *at_i : CONTEXT, i = *at_i - back, j = *at_j - back;
    size_t end_i = *at_i, end_j = *at_j, x = *at_i, y = *at_j, equal = 0;

    while ((x < e->before.n || y < e->after.n) && equal <= 2 * CONTEXT) {
        if (x < e->before.n && e->gone[x]) {
            x++;
            equal = 0;
        } else if (y < e->after.n && e->come[y]) {
            y++;
            equal = 0;
        } else {
            x++;
            y++;
            equal++;
        }
        if (equal == 0) {
            end_i = x;
            end_j = y;
        }
    }
    x = e->before.n - end_i < CONTEXT ? e->before.n - end_i : CONTEXT;
    end_i += x;
    end_j += x;
    if (p->left) {
        buf_addf(p->out, "@@ -%zu,%zu +%zu,%zu @@\n", end_i > i ? i + 1 : i, end_i - i, end_j > j ? j + 1 : j,
                 end_j - j);
        p->left--;
    }
    while (i < end_i || j < end_j) {
        if (i < end_i && e->gone[i]) {
            put_line(p, '-', e->before.at[i++]);
        } else if (j < end_j && e->come[j]) {
            put_line(p, '+', e->after.at[j++]);
        } else {
            put_line(p, ' ', e->before.at[i++]);
            j++;
        }
    }
    *at_i = end_i;
    *at_j = end_j;
}

void line_diff(struct buf *out, struct str before, struct str after, size_t max_lines)
{
    struct edits e = {.before = split_lines(before), .after = split_lines(after)};
    struct printing p = {out, max_lines, 0};
    size_t from = 0, a_end = e.before.n, b_end = e.after.n, i = 0, j = 0;

    e.gone = mem_array(e.before.n + 1, sizeof(bool));
    e.come = mem_array(e.after.n + 1, sizeof(bool));
    while (from < a_end && from < b_end && str_eq(e.before.at[from], e.after.at[from]))
        from++;
    while (a_end > from && b_end > from && str_eq(e.before.at[a_end - 1], e.after.at[b_end - 1])) {
        a_end--;
        b_end--;
    }
    mark_changed(&e, from, a_end, b_end);
    while (i < e.before.n || j < e.after.n) {
        if ((i < e.before.n && e.gone[i]) || (j < e.after.n && e.come[j])) {
            put_hunk(&p, &e, &i, &j);
        } else {
            i++;
            j++;
        }
    }
    if (p.missing)
        buf_addf(out, "… %zu more lines are not shown\n", p.missing);
    free(e.gone);
    free(e.come);
    free(e.before.at);
    free(e.after.at);
}
