/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/field.h"

#include <sodium.h>

void field_init(struct field *f)
{
    *f = (struct field){.secret = false};
    line_text_init(&f->text);
}

void field_done(struct field *f)
{
    if (f->text.text.ptr)
        sodium_memzero(f->text.text.ptr, f->text.text.cap);
    if (f->text.killed.ptr)
        sodium_memzero(f->text.killed.ptr, f->text.killed.cap);
    line_text_done(&f->text);
}

void field_set(struct field *f, const char *text)
{
    line_text_set(&f->text, str_from(text));
}

static const struct {
    enum key_what what;
    char control;
    void (*edit)(struct line_text *t);
} edits[] = {
    {KEY_IS_LEFT, 0, line_left},
    {KEY_IS_RIGHT, 0, line_right},
    {KEY_IS_HOME, 0, line_home},
    {KEY_IS_END, 0, line_last},
    {KEY_IS_ERASE, 0, line_erase_left},
    {KEY_IS_DELETE, 0, line_erase_right},
    {KEY_IS_CONTROL, 'a', line_home},
    {KEY_IS_CONTROL, 'e', line_last},
    {KEY_IS_CONTROL, 'b', line_left},
    {KEY_IS_CONTROL, 'f', line_right},
    {KEY_IS_CONTROL, 'd', line_erase_right},
    {KEY_IS_CONTROL, 'h', line_erase_left},
    {KEY_IS_CONTROL, 'k', line_kill_last},
    {KEY_IS_CONTROL, 'u', line_kill_home},
    {KEY_IS_CONTROL, 'w', line_kill_word_left},
    {KEY_IS_CONTROL, 'y', line_yank},
};

bool field_key(struct field *f, const struct key *k)
{
    if (k->what == KEY_IS_TEXT) {
        line_text_insert(&f->text, str_from(k->text));
        return true;
    }
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        if (edits[i].what == k->what && (!edits[i].control || edits[i].control == k->text[0])) {
            edits[i].edit(&f->text);
            return true;
        }
    return false;
}

/* Where the shown part begins: so that the cursor is in it. */
static size_t shown_from(const struct field *f, const struct canvas *c, int columns)
{
    struct str all = buf_view(&f->text.text);
    size_t from = 0;

    while (from < f->text.at && canvas_width(c, (struct str){all.ptr + from, f->text.at - from}) >= columns)
        do
            from++;
        while (from < f->text.at && ((unsigned char)all.ptr[from] & 0xc0) == 0x80);
    return from;
}

void field_draw(const struct field *f, struct canvas *c, int row, int col, int columns, bool cursor)
{
    struct str all = buf_view(&f->text.text);
    size_t from = shown_from(f, c, columns);
    int at = canvas_width(c, (struct str){all.ptr + from, f->text.at - from});

    canvas_blank(c, row, col, 1, columns);
    if (f->secret) {
        size_t n = 0;

        for (size_t i = 0; i < all.len; i++)
            n += ((unsigned char)all.ptr[i] & 0xc0) != 0x80;
        for (size_t i = 0; i < n && (int)i < columns; i++)
            canvas_text(c, row, col + (int)i, 1, "·", INK_PLAIN);
        at = (int)n < columns ? (int)n : columns - 1;
    } else {
        canvas_put(c, row, col, columns, (struct str){all.ptr + from, all.len - from}, INK_PLAIN);
    }
    if (cursor) {
        c->cursor_row = row;
        c->cursor_col = col + at;
    }
}
