/* SPDX-License-Identifier: Apache-2.0 */
/* The words come from the caller, file names among them: they are cleaned before they are shown. */
#include "terminal/line_complete.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "terminal/glyph.h"

#define SHOWN_MAX 60

void line_match_add(struct line_matches *m, struct str word)
{
    if (m->n < MATCHES_MAX && word.len > 0)
        m->words[m->n++] = mem_dup(word);
}

void line_matches_free(struct line_matches *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->words[i]);
    free(m);
}

size_t line_matches_common(const struct line_matches *m)
{
    size_t n = strlen(m->words[0]);

    for (size_t i = 1; i < m->n; i++)
        while (strncmp(m->words[0], m->words[i], n) != 0)
            n--;
    return utf8_clip(str_from(m->words[0]), n).len;
}

static int widest(const struct line_matches *m, size_t shown, int room)
{
    int most = 1;

    for (size_t i = 0; i < shown; i++) {
        AUTO(buf_done) struct buf scratch = BUF_INIT((size_t)1 << 16);
        int width = glyph_fit(&scratch, str_from(m->words[i]), room) + 2;

        most = width > most ? width : most;
    }
    return most;
}

void line_matches_list(const struct line_matches *m, int columns, struct buf *out)
{
    size_t shown = m->n < SHOWN_MAX ? m->n : SHOWN_MAX;
    int room = columns > 6 ? columns - 3 : 3, width = widest(m, shown, room);
    size_t across = (room + 2) / width > 0 ? (size_t)((room + 2) / width) : 1;

    for (size_t i = 0; i < shown; i++) {
        int used = glyph_fit(out, str_from(m->words[i]), room);
        bool last = i % across == across - 1 || i == shown - 1;

        buf_addf(out, "%*s", last ? 0 : width - used, "");
        buf_add_str(out, last ? STR("\r\n") : STR(""));
    }
    if (shown < m->n)
        buf_addf(out, "… and %zu more\r\n", m->n - shown);
}
