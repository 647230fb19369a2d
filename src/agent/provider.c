/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of providers and what holds for all of them: a configuration is checked before anything is opened, a fault is
 * one line that names the provider, and the key is in no line whatever the other side repeats.
 */
#include "agent/provider.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/http.h"
#include "agent/provider_internal.h"
#include "base/invariant.h"

#define CONNECT_MS 10000
#define FIRST_BYTE_MS 120000
#define SILENCE_MS 60000
#define STALL_MS 300000
#define TOTAL_MS 1800000

static const struct provider_ops *const providers[] = {&provider_anthropic, &provider_openai, &provider_script};

/* ---- faults -------------------------------------------------------------------------------------------------------- */

/* Which of our codes a fault is, and what helps when the attempts at it are used up. */
static const struct {
    const char *code;
    enum tide_code tide;
    const char *remedy;
} fault_rows[] = {
    {"rate_limit", TIDE_BUSY, "wait a while"},
    {"overloaded", TIDE_BUSY, "wait a while"},
    {"timeout", TIDE_BUSY, "check the network and the provider's status"},
    {"stalled", TIDE_BUSY, "check the network and the provider's status"},
    {"call_timeout", TIDE_BUSY, "check the network and the provider's status"},
    {"server_error", TIDE_BUSY, "check the provider's status"},
    {"connection", TIDE_IO, "check the network and base_url"},
    {"malformed", TIDE_IO, "check base_url and the provider's status"},
    {"auth", TIDE_DENIED, "check the provider's key"},
    {"quota", TIDE_DENIED, "the account has no credit left: top it up, or use another provider or model"},
    {"cancelled", TIDE_CANCELLED, ""},
    {"bad_request", TIDE_FAILED, "the provider refuses this request"},
};

static size_t fault_row(const char *code)
{
    size_t i = 0, n = sizeof fault_rows / sizeof fault_rows[0];

    while (i < n && strcmp(fault_rows[i].code, code) != 0)
        i++;
    return i;
}

enum tide_code fault_tide_code(const struct model_fault *f)
{
    size_t row = fault_row(f->code);

    return row < sizeof fault_rows / sizeof fault_rows[0] ? fault_rows[row].tide : TIDE_FAILED;
}

const char *fault_remedy(const struct model_fault *f, const char *type)
{
    size_t row = fault_row(f->code);

    if (f->helps || strcmp(type, "script") == 0) /* it says so itself */
        return strcmp(f->code, "auth") == 0 ? "check the provider's key" : "";
    if (f->http_status == 404)
        return "check the name of the model and base_url";
    return row < sizeof fault_rows / sizeof fault_rows[0] ? fault_rows[row].remedy : "";
}

void fault_set(struct model_fault *f, const char *code, int http_status, const char *fmt, ...)
{
    va_list args;

    snprintf(f->code, sizeof f->code, "%s", code);
    f->http_status = http_status;
    va_start(args, fmt);
    vsnprintf(f->message, sizeof f->message, fmt, args);
    va_end(args);
}

/* Where the message was cut inside the key, its beginning stands at the end. */
static void hide_beginning(char *message, const char *key, size_t key_len)
{
    size_t len = strlen(message);

    for (size_t n = len < key_len ? len : key_len; n >= 3; n--) {
        if (memcmp(message + len - n, key, n) == 0) {
            memcpy(message + len - n, "***", 3);
            message[len - n + 3] = '\0';
            return;
        }
    }
}

/* The other side may repeat what it was sent. Stars are never longer than what they hide. */
static void hide_key(char *message, const char *key)
{
    size_t n = key ? strlen(key) : 0;
    char *at = message;

    if (n < 3)
        return;
    while ((at = strstr(at, key))) {
        memcpy(at, "***", 3);
        memmove(at + 3, at + n, strlen(at + n) + 1);
        at += 3;
    }
    hide_beginning(message, key, n);
}

enum tide_code fault_fail(const struct model_fault *f, enum tide_code code, struct tide_err *err)
{
    tide_fail(err, code, "%s", f->message);
    return strcmp(f->code, "auth") == 0 ? tide_about(err, TIDE_SUBJECT_KEY, "api_key") : code;
}

/* Completes a fault: the provider's name before it, one clean line in both places. */
static enum tide_code report_fault(const struct provider *p, struct model_fault *f, struct tide_err *err)
{
    struct tide_err line = {0};

    hide_key(f->message, p->key);
    tide_fail(&line, fault_tide_code(f), "%s: %s", p->ops->type, f->message);
    memcpy(f->message, line.msg, sizeof f->message);
    return fault_fail(f, line.code, err);
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/* Neither may bring a line of its own into a header. */
static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= 0x20 || (unsigned char)*text >= 0x7f)
            return false;
    }
    return true;
}

static bool is_url(const char *url)
{
    struct str s = str_from(url);

    return (str_starts(s, STR("http://")) && s.len > 7) || (str_starts(s, STR("https://")) && s.len > 8);
}

/* The address of requests. People write the base with and without the version and a slash: all are meant. */
static enum tide_code make_url(struct provider *p, const char *base, struct tide_err *err)
{
    const char *path = p->ops->path;
    struct buf url = BUF_INIT(4096);
    size_t n;

    p->own_url = !base;
    base = base ? base : p->ops->base_url;
    if (!is_url(base) || !is_printable(base) || strlen(base) > 2048)
        return tide_fail(err, TIDE_INVALID, "base_url '%s' is not an http:// or https:// address", base);
    n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    if (n > 3 && memcmp(base + n - 3, "/v1", 3) == 0 && str_starts(str_from(path), STR("/v1/")))
        path += 3;
    buf_add(&url, base, n);
    buf_add_str(&url, str_from(path));
    p->url = buf_take(&url);
    return TIDE_OK;
}

static enum tide_code open_http(struct provider *p, const struct provider_config *c, struct tide_err *err)
{
    if (c->key && !is_printable(c->key))
        return tide_fail(
            err, TIDE_INVALID,
            "the API key holds a character that no key has (a line end or a space?); check where it is from");
    p->key = c->key && *c->key ? mem_dup(str_from(c->key)) : NULL;
    p->connect_ms = c->connect_ms > 0 ? c->connect_ms : CONNECT_MS;
    p->first_byte_ms = c->first_byte_ms > 0 ? c->first_byte_ms : FIRST_BYTE_MS;
    p->silence_ms = c->silence_ms > 0 ? c->silence_ms : SILENCE_MS;
    p->stall_ms = c->stall_ms > 0 ? c->stall_ms : STALL_MS;
    p->total_ms = c->total_ms > 0 ? c->total_ms : TOTAL_MS;
    p->http = http_new();
    return make_url(p, c->base_url && *c->base_url ? c->base_url : NULL, err);
}

enum tide_code provider_open(const struct provider_config *config, struct provider **ret_provider, struct tide_err *err)
{
    AUTO(provider_closep) struct provider *p = NULL;
    const struct provider_ops *ops = NULL;
    enum tide_code code;

    for (size_t i = 0; config->type && i < sizeof providers / sizeof providers[0]; i++) {
        if (strcmp(providers[i]->type, config->type) == 0)
            ops = providers[i];
    }
    if (!ops)
        return tide_fail(err, TIDE_INVALID, "there is no provider '%s' (anthropic, openai, script)",
                         config->type ? config->type : "");
    p = mem_zero(sizeof *p);
    p->ops = ops;
    code = ops->event ? open_http(p, config, err) : script_open(config->script, &p->script, err);
    if (code)
        return code;
    *ret_provider = TAKE(p);
    return TIDE_OK;
}

void provider_close(struct provider *p)
{
    if (!p)
        return;
    http_free(p->http);
    script_free(p->script);
    if (p->key)
        explicit_bzero(p->key, strlen(p->key));
    free(p->key);
    free(p->url);
    free(p);
}

/* ---- rendering ----------------------------------------------------------------------------------------------------- */

void name_member(struct json_out *o, struct str name, size_t max)
{
    char clean[128];
    size_t n = name.len < max ? name.len : max;

    for (size_t i = 0; i < n; i++) {
        char c = name.ptr[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';

        clean[i] = fine ? c : '_';
    }
    json_out_kstr(o, STR("name"), (struct str){clean, n});
}

/* ---- calling ------------------------------------------------------------------------------------------------------- */

void provider_render(const struct provider *p, const struct model_request *request, struct buf *out)
{
    struct render r = {.o = json_out_to(out)};

    p->ops->begin(p, request, &r);
    for (size_t i = 0; i < request->n_messages; i++)
        p->ops->message(&r, &request->messages[i]);
    p->ops->end(request, &r);
}

bool provider_render_head(const struct provider *p, const struct model_request *request, struct rendering *k)
{
    AUTO(buf_done) struct buf head = BUF_INIT(k->body.max);
    struct render r = {.o = json_out_to(&head)};

    p->ops->begin(p, request, &r);
    if (k->settled && k->head == head.len && !k->body.failed && memcmp(k->body.ptr, head.ptr, head.len) == 0) {
        k->body.len = k->settled;
        return true;
    }
    buf_clear(&k->body);
    buf_add_str(&k->body, buf_view(&head));
    k->head = k->settled = head.len;
    k->at = r;
    digest_begin(&k->digest, NULL);
    digest_add(&k->digest, head.ptr, head.len);
    return false;
}

/* What was rendered up to here begins the next request, too. */
static void settle_rendering(struct rendering *k, const struct render *r)
{
    digest_add(&k->digest, k->body.ptr + k->settled, k->body.len - k->settled);
    k->settled = k->body.len;
    k->at = *r;
}

void provider_render_rest(const struct provider *p, const struct model_request *request, size_t n_settled,
                          struct rendering *k, char digest[DIGEST_NAME_SIZE])
{
    struct render r = k->at;
    struct digest_state d;

    INVARIANT(n_settled <= request->n_messages && k->body.len == k->settled);
    r.o.buf = &k->body;
    for (size_t i = 0; i < request->n_messages; i++) {
        if (i == n_settled)
            settle_rendering(k, &r);
        p->ops->message(&r, &request->messages[i]);
    }
    p->ops->end(request, &r);
    if (r.block_end && r.block_end < k->settled) { /* nothing was said behind it, so that its last block was marked */
        k->settled = 0;
        digest_begin(&k->digest, NULL);
    }
    d = k->digest;
    digest_add(&d, k->body.ptr + k->settled, k->body.len - k->settled);
    digest_end_name(&d, digest);
}

enum tide_code provider_call(struct provider *p, struct str body, int attempt, const struct model_listener *listener,
                             struct model_answer *ret_answer, struct model_fault *ret_fault, struct tide_err *err)
{
    static const struct model_listener nobody;
    struct model_fault fault = {.retry_after_ms = -1};
    enum tide_code code;

    if (p->ops->call(p, body, attempt, listener ? listener : &nobody, ret_answer, &fault))
        return TIDE_OK;
    code = report_fault(p, &fault, err);
    if (ret_fault)
        *ret_fault = fault;
    return code;
}
