/* SPDX-License-Identifier: Apache-2.0 */
/* What a request must say to become a WebSocket, and which protocols it offers. */
#include <sodium.h>
#include <strings.h>

#include "net/websocket.h"

/* One of a list that commas separate, without regard to case. */
static struct str next_word(struct str *rest)
{
    const char *comma = memchr(rest->ptr, ',', rest->len);
    struct str word = {rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len};
    size_t n = word.len + (comma != NULL);

    *rest = (struct str){rest->ptr + n, rest->len - n};
    return str_trim(word);
}

static bool has_word(struct str list, const char *word)
{
    while (list.len) {
        struct str w = next_word(&list);

        if (w.len == strlen(word) && strncasecmp(w.ptr, word, w.len) == 0)
            return true;
    }
    return false;
}

const char *websocket_refuses(const struct http_request *q, int *ret_status)
{
    struct str key = http_field(q, "Sec-WebSocket-Key"), version = http_field(q, "Sec-WebSocket-Version");
    unsigned char bytes[18];
    size_t n = 0;

    *ret_status = 400;
    if (q->method != HTTP_GET)
        return "a WebSocket begins with GET";
    if (!has_word(http_field(q, "Connection"), "upgrade") || !has_word(http_field(q, "Upgrade"), "websocket")) {
        *ret_status = 426;
        return "this address is for WebSockets only: ask for the upgrade";
    }
    if (!str_eq(version, STR("13"))) {
        *ret_status = 426;
        return "WebSocket version 13 is spoken here";
    }
    if (sodium_base642bin(bytes, sizeof bytes, key.ptr ? key.ptr : "", key.len, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) ||
        n != 16)
        return "Sec-WebSocket-Key is not a key of 16 bytes";
    return NULL;
}

bool websocket_offers(const struct http_request *q, const char *protocol)
{
    for (struct str list = http_field(q, "Sec-WebSocket-Protocol"); list.len;)
        if (str_eq(next_word(&list), str_from(protocol)))
            return true;
    return false;
}

struct str websocket_offered(const struct http_request *q, const char *prefix)
{
    for (struct str list = http_field(q, "Sec-WebSocket-Protocol"); list.len;) {
        struct str w = next_word(&list);

        if (str_starts(w, str_from(prefix)))
            return (struct str){w.ptr + strlen(prefix), w.len - strlen(prefix)};
    }
    return (struct str){NULL, 0};
}
