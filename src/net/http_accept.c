/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is not understood counts as not said: then the client gets the bytes as they are. */
#include "net/http_accept.h"

#include <strings.h>

static bool is_word(struct str a, const char *word)
{
    return a.len == strlen(word) && strncasecmp(a.ptr, word, a.len) == 0;
}

/* "q=0", "q=0.000" */
static bool is_refused(struct str parameter)
{
    if (parameter.len < 3 || strncasecmp(parameter.ptr, "q=", 2) != 0)
        return false;
    for (size_t i = 2; i < parameter.len; i++)
        if (parameter.ptr[i] != '0' && parameter.ptr[i] != '.')
            return false;
    return true;
}

/* The bytes up to `c`, which are taken from *rest together with it. */
static struct str take_until(struct str *rest, char c)
{
    const char *at = memchr(rest->ptr, c, rest->len);
    struct str taken = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};
    size_t n = taken.len + (at != NULL);

    *rest = (struct str){rest->ptr + n, rest->len - n};
    return str_trim(taken);
}

bool http_takes_gzip(struct str accept)
{
    bool any = false;

    while (accept.len) {
        struct str item = take_until(&accept, ','), name = take_until(&item, ';');
        bool ok = !is_refused(str_trim(item));

        if (is_word(name, "gzip"))
            return ok;
        any |= ok && is_word(name, "*");
    }
    return any;
}

bool http_tag_is_known(struct str tags, const char *etag)
{
    while (tags.len) {
        struct str tag = take_until(&tags, ',');

        if (str_starts(tag, STR("W/")))
            tag = (struct str){tag.ptr + 2, tag.len - 2};
        if (str_eq(tag, STR("*")) || str_eq(tag, str_from(etag)))
            return true;
    }
    return false;
}
