/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "server/certificate.h"

#define UNIX "unix:"
#define HTTP "http://"
#define HTTPS "https://"
#define PIN "sha256//"

static enum tide_code refuse_url(const char *text, const char *why, struct tide_err *err)
{
    tide_fail(err, TIDE_INVALID, "'%.120s' is not the address of a server: %s", text, why);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "server");
}

#define refuse_pin(err, ...) (tide_fail(err, TIDE_INVALID, __VA_ARGS__), tide_about(err, TIDE_SUBJECT_ARGUMENT, "pin"))

static bool is_loopback(const char *host)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

static bool is_host(struct str host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:", host.ptr[i]))
            return false;
    return host.len > 0 && host.len < 256;
}

static bool is_port(struct str port)
{
    int64_t n;

    return port.len && port.ptr[0] != '-' && str_to_int64(port, &n) && n > 0 && n < 65536;
}

/* "HOST:PORT", "[::1]:PORT", without the port too. */
static enum tide_code split_url(struct arena *a, struct str at, struct remote_url *u, struct tide_err *err)
{
    const char *close = at.len && at.ptr[0] == '[' ? memchr(at.ptr, ']', at.len) : NULL;
    const char *colon = close ? close + 1 : memchr(at.ptr, ':', at.len);
    size_t n = colon ? (size_t)(colon - at.ptr) : at.len;
    struct str host = close ? (struct str){at.ptr + 1, n - 2} : (struct str){at.ptr, n};
    struct str port = n < at.len ? (struct str){at.ptr + n + 1, at.len - n - 1} : u->tls ? STR("443") : STR("80");

    if (!is_host(host) || (!close && memchr(host.ptr, ':', host.len)) || (n < at.len && at.ptr[n] != ':') ||
        !is_port(port))
        return refuse_url(
            u->text, "give " HTTPS "HOST:PORT, " HTTP "127.0.0.1:PORT or " UNIX "PATH, without a path behind it", err);
    u->host = arena_dup(a, host).ptr;
    u->port = arena_dup(a, port).ptr;
    u->is_loopback = is_loopback(u->host);
    if (u->tls || u->is_loopback)
        return TIDE_OK;
    tide_fail(err, TIDE_DENIED,
              "'%.120s' is another machine, and others on the network could read the token and the answers: use " HTTPS,
              u->text);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "server");
}

static bool is_pin(const char *pin)
{
    size_t n = strspn(pin + strlen(PIN), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");

    return strlen(pin) == TLS_PIN_SIZE - 1 && n == 43 && pin[TLS_PIN_SIZE - 2] == '=';
}

static enum tide_code take_pin(struct arena *a, const char *given, struct remote_url *u, struct tide_err *err)
{
    const char *env = getenv("TIDEMARK_SERVER_PIN"), *pin = given ? given : env && env[0] ? env : NULL;
    char own[TLS_PIN_SIZE];

    if (given && !u->tls)
        return refuse_pin(err, "a pin goes with a server that is named " HTTPS);
    if (!u->tls)
        return TIDE_OK;
    if (!pin && u->is_loopback && certificate_own_pin(own))
        pin = arena_dup(a, str_from(own)).ptr;
    if (pin && (!str_starts(str_from(pin), STR(PIN)) || !is_pin(pin)))
        return refuse_pin(err, "'%.60s' is not a pin: it is " PIN " and 44 characters, as the server prints it", pin);
    u->pin = pin;
    return TIDE_OK;
}

enum tide_code remote_url_read(struct arena *a, const char *text, const char *pin, struct remote_url *ret,
                               struct tide_err *err)
{
    struct str s = str_from(text);

    *ret = (struct remote_url){.text = text, .host = "localhost", .port = "80"};
    if (str_starts(s, STR(UNIX))) {
        if (!text[strlen(UNIX)])
            return refuse_url(text, "give the path of its socket: " UNIX "PATH", err);
        ret->unix_path = text + strlen(UNIX);
        return take_pin(a, pin, ret, err);
    }
    ret->tls = str_starts(s, STR(HTTPS));
    if (!ret->tls && !str_starts(s, STR(HTTP)))
        return refuse_url(text, "give " HTTPS "HOST:PORT, " HTTP "127.0.0.1:PORT or " UNIX "PATH", err);
    s.ptr += ret->tls ? strlen(HTTPS) : strlen(HTTP);
    s.len -= ret->tls ? strlen(HTTPS) : strlen(HTTP);
    if (s.len && s.ptr[s.len - 1] == '/')
        s.len--;
    return split_url(a, s, ret, err) ? err->code : take_pin(a, pin, ret, err);
}
