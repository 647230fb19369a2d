/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emacs keys and those of the usual terminals, in one table. Sequences that are not in it are passed over whole, so that
 * a key nobody thought of does not leave letters in the text.
 */
#include "terminal/line_keys.h"

#include "base/utf8.h"

static const struct {
    const char *bytes;
    enum line_command command;
    void (*edit)(struct line_text *t);
} keys[] = {
    {"\001", KEY_EDIT, line_home},
    {"\002", KEY_EDIT, line_left},
    {"\003", KEY_INTERRUPT, NULL},
    {"\004", KEY_END, NULL},
    {"\005", KEY_EDIT, line_last},
    {"\006", KEY_EDIT, line_right},
    {"\007", KEY_ESCAPE, NULL},
    {"\b", KEY_EDIT, line_erase_left},
    {"\t", KEY_COMPLETE, NULL},
    {"\n", KEY_EDIT, line_new_line},
    {"\013", KEY_EDIT, line_kill_last},
    {"\014", KEY_CLEAR_SCREEN, NULL},
    {"\r", KEY_ENTER, NULL},
    {"\016", KEY_DOWN, NULL},
    {"\020", KEY_UP, NULL},
    {"\022", KEY_SEARCH, NULL},
    {"\024", KEY_EDIT, line_swap},
    {"\025", KEY_EDIT, line_kill_home},
    {"\027", KEY_EDIT, line_kill_word_left},
    {"\031", KEY_EDIT, line_yank},
    {"\032", KEY_SUSPEND, NULL},
    {"\177", KEY_EDIT, line_erase_left},
    {"\033\r", KEY_EDIT, line_new_line},
    {"\033\n", KEY_EDIT, line_new_line},
    {"\033[13;2u", KEY_EDIT, line_new_line},
    {"\033[13;3u", KEY_EDIT, line_new_line},
    {"\033[27;2;13~", KEY_EDIT, line_new_line},
    {"\033b", KEY_EDIT, line_word_left},
    {"\033f", KEY_EDIT, line_word_right},
    {"\033d", KEY_EDIT, line_kill_word_right},
    {"\033\177", KEY_EDIT, line_kill_word_left},
    {"\033\b", KEY_EDIT, line_kill_word_left},
    {"\033[A", KEY_UP, NULL},
    {"\033[B", KEY_DOWN, NULL},
    {"\033[C", KEY_EDIT, line_right},
    {"\033[D", KEY_EDIT, line_left},
    {"\033OA", KEY_UP, NULL},
    {"\033OB", KEY_DOWN, NULL},
    {"\033OC", KEY_EDIT, line_right},
    {"\033OD", KEY_EDIT, line_left},
    {"\033[1;5C", KEY_EDIT, line_word_right},
    {"\033[1;5D", KEY_EDIT, line_word_left},
    {"\033[1;3C", KEY_EDIT, line_word_right},
    {"\033[1;3D", KEY_EDIT, line_word_left},
    {"\033[H", KEY_EDIT, line_home},
    {"\033[F", KEY_EDIT, line_last},
    {"\033OH", KEY_EDIT, line_home},
    {"\033OF", KEY_EDIT, line_last},
    {"\033[1~", KEY_EDIT, line_home},
    {"\033[4~", KEY_EDIT, line_last},
    {"\033[7~", KEY_EDIT, line_home},
    {"\033[8~", KEY_EDIT, line_last},
    {"\033[3~", KEY_EDIT, line_erase_right},
    {"\033[3;5~", KEY_EDIT, line_kill_word_right},
    {"\033[200~", KEY_PASTE, NULL},
};

/* A sequence in the form of the standard: ESC [ parameters, one byte that ends it; ESC O and a byte; ESC and a byte. */
static size_t sequence_len(struct str s)
{
    size_t n = 2;

    if (s.len < 2)
        return 0;
    if (s.ptr[1] == 'O')
        return s.len > 2 ? 3 : 0;
    if (s.ptr[1] != '[')
        return 2;
    while (n < s.len && (unsigned char)s.ptr[n] >= 0x20 && (unsigned char)s.ptr[n] < 0x40)
        n++;
    return n < s.len ? n + 1 : 0;
}

static struct line_key look_up(struct str sequence)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (str_eq(sequence, str_from(keys[i].bytes)))
            return (struct line_key){keys[i].command, keys[i].edit, sequence.len};
    return (struct line_key){KEY_NONE, NULL, sequence.len};
}

struct line_key line_key_next(struct str bytes, bool last)
{
    unsigned char first = (unsigned char)bytes.ptr[0];
    size_t at = 0, n;
    uint32_t c;

    if (first == 033) {
        n = sequence_len(bytes);
        return n > 0 ? look_up((struct str){bytes.ptr, n})
                     : (struct line_key){bytes.len == 1 ? KEY_ESCAPE : KEY_NONE, NULL, last ? bytes.len : 0};
    }
    if (first < 0x20 || first == 0x7f)
        return look_up((struct str){bytes.ptr, 1});
    /* As many whole characters as stand here. */
    while (at < bytes.len && (n = utf8_next((struct str){bytes.ptr + at, bytes.len - at}, &c)) > 0 && c >= 0x20 &&
           c != 0x7f)
        at += n;
    return at > 0 ? (struct line_key){KEY_TEXT, NULL, at}
                  : (struct line_key){KEY_NONE, NULL, last || bytes.len >= 4 ? 1 : 0};
}
