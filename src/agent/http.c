/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client. libcurl is loaded by name at the first request and never before, because most commands need none and
 * would wait for it and its own libraries to be loaded. It runs without threads of ours: one loop that polls, asks whether
 * to give up, and keeps the time-outs itself, since libcurl has one for the whole only.
 *
 * The connection stays open between requests (the multi handle keeps it). A redirect is reported, not followed: it would
 * carry the key elsewhere.
 */
#include "agent/http.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "env/env.h"

#define POLL_MS 50   /* between two looks at the clock and at idle */
#define GRACE_MS 250 /* for the end of an answer that is whole */

/* ---- the library --------------------------------------------------------------------------------------------------- */

static struct {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    void (*easy_reset)(CURL *);
    void (*easy_cleanup)(CURL *);
    const char *(*easy_strerror)(CURLcode);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *running);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned n, int timeout_ms, int *ret_n);
    CURLMsg *(*multi_info_read)(CURLM *, int *left);
    CURLMcode (*multi_cleanup)(CURLM *);
    time_t (*getdate)(const char *, const time_t *unused);
} curl;

static const struct {
    const char *name;
    void **slot;
} symbols[] = {
#define SYMBOL(name)                                                                                                   \
    {                                                                                                                  \
        "curl_" #name, (void **)&curl.name                                                                             \
    }
    SYMBOL(global_init),    SYMBOL(easy_init),    SYMBOL(easy_setopt),      SYMBOL(easy_getinfo),
    SYMBOL(easy_reset),     SYMBOL(easy_cleanup), SYMBOL(easy_strerror),    SYMBOL(slist_append),
    SYMBOL(slist_free_all), SYMBOL(multi_init),   SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle),
    SYMBOL(multi_perform),  SYMBOL(multi_poll),   SYMBOL(multi_info_read),  SYMBOL(multi_cleanup),
    SYMBOL(getdate),
#undef SYMBOL
};

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

static enum tide_code load_symbols(void *library, struct tide_err *err)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        *symbols[i].slot = dlsym(library, symbols[i].name);
        if (!*symbols[i].slot)
            return tide_fail(err, TIDE_FAILED,
                             "libcurl has no %s: it is too old; install a newer Debian package libcurl4",
                             symbols[i].name);
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return tide_fail(err, TIDE_FAILED, "libcurl does not start: reinstall the Debian package libcurl4");
    return TIDE_OK;
}

enum tide_code http_load(const char *name, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    void *library;

    pthread_mutex_lock(&load_lock);
    if (!loaded) {
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            code = load_symbols(library, err);
        else
            code =
                tide_fail(err, TIDE_FAILED,
                          "%s cannot be loaded, so no model can be reached; install the Debian package libcurl4", name);
        loaded = !code;
    }
    pthread_mutex_unlock(&load_lock);
    return code;
}

/* ---- Retry-After --------------------------------------------------------------------------------------------------- */

static int64_t clamp_wait(int64_t ms)
{
    return ms < 0 ? 0 : ms > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : ms;
}

/* "2", "1.5"; -1: no number. */
static int64_t number_of(struct str value, int64_t unit_ms)
{
    int64_t whole = 0, part = 0, scale = unit_ms;
    size_t i = 0;

    for (; i < value.len && value.ptr[i] >= '0' && value.ptr[i] <= '9'; i++)
        whole = whole < RETRY_AFTER_MAX_MS ? whole * 10 + (value.ptr[i] - '0') : whole;
    if (i == 0)
        return -1;
    if (i < value.len && value.ptr[i] == '.') {
        for (i++; i < value.len && value.ptr[i] >= '0' && value.ptr[i] <= '9'; i++)
            part += (value.ptr[i] - '0') * (scale /= 10);
    }
    if (i < value.len)
        return -1;
    return clamp_wait(whole < RETRY_AFTER_MAX_MS / unit_ms ? whole * unit_ms + part : RETRY_AFTER_MAX_MS);
}

/* From `now_ms` on: "120", "1.5" or an HTTP date, of the past 0; -1 for anything else. Needs libcurl loaded. */
static int64_t retry_after_ms(struct str value, int64_t now_ms)
{
    int64_t ms = number_of(value, 1000);
    char text[64];
    time_t when;

    if (ms >= 0 || value.len >= sizeof text)
        return ms;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    when = curl.getdate(text, NULL);
    return when < 0 ? -1 : clamp_wait((int64_t)when * 1000 - now_ms);
}

/* ---- one exchange -------------------------------------------------------------------------------------------------- */

struct http {
    CURLM *multi;
    CURL *easy;
};

struct exchange {
    const struct http_call *call;
    struct http_result *ret;
    CURL *easy;
    int64_t began_ms, connected_ms, heard_ms; /* 0: not yet; heard: the latest byte of the body */
    int64_t moved_ms;                         /* the latest piece that brought something of the answer; 0: none */
    int64_t enough_ms;                        /* 0: more is wanted */
    size_t n_bytes;
    bool stop; /* what comes is no good */
    char why[CURL_ERROR_SIZE];
};

static int64_t mono_ms(void)
{
    struct env *env = env_real();

    return env->ops->mono_ns(env) / 1000000 + 1; /* never 0, which means "not yet" */
}

static int status_of(CURL *easy)
{
    long status = 0;

    curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    struct str piece = {bytes, size * n};
    enum http_want want;
    size_t room;

    x->heard_ms = mono_ms();
    x->n_bytes += piece.len;
    if (x->n_bytes > HTTP_MAX_BYTES) {
        x->ret->end = HTTP_TOO_BIG;
        return 0;
    }
    if (status_of(x->easy) != 200) {
        room = x->ret->body.max - x->ret->body.len;
        buf_add(&x->ret->body, piece.ptr, piece.len < room ? piece.len : room);
        return piece.len;
    }
    want = x->enough_ms ? HTTP_MORE : x->call->data(x->call->arg, piece);
    if (want != HTTP_NOTHING)
        x->moved_ms = x->heard_ms;
    if (want == HTTP_ENOUGH)
        x->enough_ms = x->heard_ms;
    x->stop = want == HTTP_STOP;
    return x->stop ? 0 : piece.len;
}

static bool header_is(struct str line, const char *name, struct str *ret_value)
{
    size_t n = strlen(name);

    if (line.len <= n || strncasecmp(line.ptr, name, n) != 0 || line.ptr[n] != ':')
        return false;
    *ret_value = str_trim((struct str){line.ptr + n + 1, line.len - n - 1});
    return true;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    struct str line = {bytes, size * n}, value;

    if (str_starts(line, STR("HTTP/")))
        x->ret->retry_after_ms = -1;
    if (header_is(line, "retry-after-ms", &value))
        x->ret->retry_after_ms = number_of(value, 1);
    else if (header_is(line, "retry-after", &value) && x->ret->retry_after_ms < 0)
        x->ret->retry_after_ms = retry_after_ms(value, env_now_ms(env_real()));
    return line.len;
}

/* A program that a tool starts must not inherit the connection. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)arg;
    (void)purpose;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void set_options(struct exchange *x, struct curl_slist *headers)
{
    const struct http_call *call = x->call;
    CURL *e = x->easy;

    curl.easy_setopt(e, CURLOPT_URL, call->url);
    curl.easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl.easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    curl.easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    curl.easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
    curl.easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_ms);
    curl.easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl.easy_setopt(e, CURLOPT_USERAGENT, "tidemark/" TIDE_VERSION);
    curl.easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(e, CURLOPT_POST, 1L);
    curl.easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
    curl.easy_setopt(e, CURLOPT_POSTFIELDS, call->body.ptr);
    curl.easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(e, CURLOPT_WRITEDATA, x);
    curl.easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(e, CURLOPT_HEADERDATA, x);
    curl.easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static bool timed_out(struct exchange *x, enum http_end end, int64_t since_ms, int64_t limit_ms, const char *what)
{
    if (mono_ms() - since_ms < limit_ms)
        return false;
    x->ret->end = end;
    snprintf(x->ret->why, sizeof x->ret->why, "%s %g s", what, (double)limit_ms / 1000);
    return true;
}

static const char no_connection[] = "no connection within";

static bool is_late(struct exchange *x)
{
    curl_off_t connected = 0;

    if (!x->connected_ms) {
        curl.easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
        if (connected > 0)
            x->connected_ms = mono_ms();
    }
    if (timed_out(x, HTTP_DEADLINE, x->began_ms, x->call->total_ms, "the answer is not complete after"))
        return true;
    if (!x->connected_ms)
        return timed_out(x, HTTP_TIMEOUT, x->began_ms, x->call->connect_ms, no_connection);
    if (!x->heard_ms)
        return timed_out(x, HTTP_TIMEOUT, x->connected_ms, x->call->first_byte_ms, "no answer within");
    return timed_out(x, HTTP_TIMEOUT, x->heard_ms, x->call->silence_ms, "the answer paused for") ||
           timed_out(x, HTTP_STALLED, x->moved_ms ? x->moved_ms : x->connected_ms, x->call->stall_ms,
                     "the answer stalled: nothing but pings or pieces for");
}

static bool given_up(struct exchange *x)
{
    if (!x->call->idle || !x->call->idle(x->call->arg))
        return false;
    x->ret->end = HTTP_CANCELLED;
    snprintf(x->ret->why, sizeof x->ret->why, "cancelled");
    return true;
}

static enum http_end end_of(CURLcode code)
{
    static const CURLcode for_good[] = {
        CURLE_URL_MALFORMAT,      CURLE_UNSUPPORTED_PROTOCOL, CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,      CURLE_NOT_BUILT_IN};

    for (size_t i = 0; i < sizeof for_good / sizeof for_good[0]; i++) {
        if (code == for_good[i])
            return HTTP_UNUSABLE;
    }
    return HTTP_BROKEN;
}

/* In our words where somebody can do something about it, with who was called; else libcurl's. */
static void say_why(struct exchange *x, CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *words; /* %s is the server */
    } rows[] = {
        {CURLE_COULDNT_RESOLVE_HOST, "the name of the server %s cannot be resolved"},
        {CURLE_COULDNT_RESOLVE_PROXY, "the name of the proxy on the way to %s cannot be resolved"},
        {CURLE_COULDNT_CONNECT, "no connection to %s"},
        {CURLE_SSL_CONNECT_ERROR, "no TLS connection to %s (does it speak https?)"},
        {CURLE_PEER_FAILED_VERIFICATION, "the certificate of %s cannot be verified"},
        {CURLE_GOT_NOTHING, "%s closed the connection without an answer"},
        {CURLE_SEND_ERROR, "the connection to %s broke while the request was sent"},
        {CURLE_RECV_ERROR, "the connection to %s broke while the answer came"},
        {CURLE_PARTIAL_FILE, "the connection to %s broke while the answer came"},
        {CURLE_URL_MALFORMAT, "%s is not the address of a server"},
    };
    const char *at = strstr(x->call->url, "://"), *words = NULL;
    char server[128];
    long number = 0;

    at = at ? at + 3 : x->call->url;
    snprintf(server, sizeof server, "%.*s", (int)strcspn(at, "/?#"), at);
    at = strrchr(server, '@'); /* a user and a password are nobody's business */
    memmove(server, at ? at + 1 : server, strlen(at ? at + 1 : server) + 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            words = rows[i].words;
    if (!words) {
        snprintf(x->ret->why, sizeof x->ret->why, "%.*s", (int)sizeof x->ret->why - 1,
                 x->why[0] ? x->why : curl.easy_strerror(code));
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(x->ret->why, sizeof x->ret->why, words, server);
#pragma GCC diagnostic pop
    if (code == CURLE_COULDNT_CONNECT && !curl.easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &number) && number > 0)
        snprintf(x->ret->why + strlen(x->ret->why), sizeof x->ret->why - strlen(x->ret->why), ": %s",
                 strerrordesc_np((int)number));
}

/* What libcurl says at the end. An answer that was whole stays so, however the connection went. */
static void settle_exchange(struct exchange *x, CURLcode code)
{
    if (code == CURLE_OK || x->enough_ms || x->stop || x->ret->end == HTTP_TOO_BIG)
        return;
    if (code == CURLE_OPERATION_TIMEDOUT && !x->connected_ms) {
        timed_out(x, HTTP_TIMEOUT, 0, x->call->connect_ms, no_connection);
        return;
    }
    x->ret->end = end_of(code);
    say_why(x, code);
}

static void run_exchange(CURLM *multi, struct exchange *x)
{
    int running = 1, left;
    CURLMsg *msg;

    while (!curl.multi_perform(multi, &running) && running) {
        if (x->enough_ms && mono_ms() - x->enough_ms >= GRACE_MS)
            return;
        if (!x->enough_ms && (given_up(x) || is_late(x)))
            return;
        curl.multi_poll(multi, NULL, 0, POLL_MS, NULL);
    }
    msg = curl.multi_info_read(multi, &left);
    settle_exchange(x, msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_RECV_ERROR);
}

/* What came from the other side, cut to size. */
static void copy_info(CURL *easy, CURLINFO info, char *out, size_t size)
{
    const char *text = NULL;

    curl.easy_getinfo(easy, info, &text);
    snprintf(out, size, "%.*s", (int)size - 1, text ? text : "");
}

static bool make_handles(struct http *h, struct http_result *ret)
{
    struct tide_err err = {0};

    if (!h->multi && !http_load("libcurl.so.4", &err))
        h->multi = curl.multi_init();
    if (h->multi && !h->easy)
        h->easy = curl.easy_init();
    if (h->easy)
        return true;
    ret->end = HTTP_MISSING;
    snprintf(ret->why, sizeof ret->why, "%.*s", (int)sizeof ret->why - 1,
             err.code ? err.msg : "libcurl gives no handle");
    return false;
}

void http_post(struct http *h, const struct http_call *call, struct http_result *ret)
{
    struct exchange x = {.call = call, .ret = ret};
    struct curl_slist *headers;

    *ret = (struct http_result){.end = HTTP_DONE, .retry_after_ms = -1, .body = BUF_INIT(HTTP_ERROR_BYTES)};
    if (!make_handles(h, ret))
        return;
    x.easy = h->easy;
    x.began_ms = mono_ms();
    headers = curl.slist_append(NULL, "Expect:"); /* no round trip before the body */
    for (size_t i = 0; call->headers[i]; i++)
        headers = curl.slist_append(headers, call->headers[i]);
    set_options(&x, headers);
    curl.multi_add_handle(h->multi, h->easy);
    run_exchange(h->multi, &x);
    ret->status = status_of(h->easy);
    copy_info(h->easy, CURLINFO_CONTENT_TYPE, ret->type, sizeof ret->type);
    copy_info(h->easy, CURLINFO_REDIRECT_URL, ret->moved_to, sizeof ret->moved_to);
    ret->moved_to[strcspn(ret->moved_to, "?#")] = '\0'; /* what was asked is nobody's business */
    curl.multi_remove_handle(h->multi, h->easy);
    curl.easy_reset(h->easy); /* it points at x, the headers and the body */
    curl.slist_free_all(headers);
}

void http_result_done(struct http_result *r)
{
    if (r)
        buf_done(&r->body);
}

struct http *http_new(void)
{
    return mem_zero(sizeof(struct http));
}

void http_free(struct http *h)
{
    if (!h)
        return;
    if (h->easy)
        curl.easy_cleanup(h->easy);
    if (h->multi)
        curl.multi_cleanup(h->multi);
    free(h);
}
