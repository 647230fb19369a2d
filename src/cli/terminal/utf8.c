/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding one character, and how wide it is: the ranges that matter in titles, not the whole of Unicode. */
#include "cli/terminal/utf8.h"

size_t utf8_next(struct str s, uint32_t *ret_char)
{
    unsigned char lead = s.len ? (unsigned char)s.ptr[0] : 0;
    size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t c = lead < 0x80 ? lead : lead & (0x7fu >> n);

    if (s.len < n || !str_is_utf8((struct str){s.ptr, n}, NULL))
        return 0;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s.ptr[i] & 0x3f);
    *ret_char = c;
    return n;
}

bool utf8_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
           c == 0x2028 || c == 0x2029;
}

bool utf8_is_joiner(uint32_t c)
{
    return c == 0x200c || c == 0x200d;
}

bool utf8_is_unseen(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0xad, 0xad},     {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},
        {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2060, 0x206f},
        {0x3164, 0x3164}, {0xfe00, 0xfe0d},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    bool unseen = utf8_is_control(c);

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && !unseen; i++)
        unseen = c >= ranges[i].from && c <= ranges[i].to;
    return unseen;
}

size_t utf8_width(uint32_t c)
{
    static const struct {
        uint32_t from, to;
        size_t width;
    } ranges[] = {
        {0x300, 0x36f, 0},     {0x200b, 0x200f, 0},   {0xfe00, 0xfe0f, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
        {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return ranges[i].width;
    return 1;
}
