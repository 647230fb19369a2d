/* SPDX-License-Identifier: Apache-2.0 */
#include "base/image_type.h"

const char *image_type(struct str bytes)
{
    static const struct {
        const char *begin, *type;
    } rows[] = {
        {"\x89PNG\r\n\x1a\n", "image/png"},
        {"\xff\xd8\xff", "image/jpeg"},
        {"GIF87a", "image/gif"},
        {"GIF89a", "image/gif"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (str_starts(bytes, str_from(rows[i].begin)))
            return rows[i].type;
    if (str_starts(bytes, STR("RIFF")) && bytes.len >= 12 && memcmp(bytes.ptr + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}
