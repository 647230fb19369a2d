/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt over HTTP: headers, the stream of events into a reply, and whatever went wrong as a fault. Which trouble is
 * of which class stands in two tables, by status and by the names that providers give their errors; the classes decide
 * whether a retry can help, so a quota that ran out must not look like a limit of the minute.
 */
#include <stdio.h>

#include "agent/http.h"
#include "agent/provider_internal.h"

#define SAID_MAX 180 /* bytes of what the provider says that are shown */

/* ---- what the provider says ---------------------------------------------------------------------------------------- */

static struct str one_line(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, SAID_MAX + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.len && n < SAID_MAX; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c > 0x20 && c != 0x7f)
            out[n++] = (char)c;
        else if (n > 0 && out[n - 1] != ' ')
            out[n++] = ' ';
    }
    while (n > 0 && !str_is_utf8((struct str){out, n}, NULL) && n + 4 > SAID_MAX)
        n--; /* the cut fell into a character */
    out[n] = '\0';
    return (struct str){out, n};
}

static struct str text_at(struct arena *a, const struct json *object, struct str key)
{
    return one_line(a, json_get_text(a, object, key));
}

struct message_kept said_in(struct arena *a, const struct json *error)
{
    const struct json *inner = json_get(error, STR("error"));
    struct message_kept said;

    if (inner && inner->type == JSON_STRING)
        return (struct message_kept){.message = text_at(a, error, STR("error"))};
    inner = inner && inner->type == JSON_OBJECT ? inner : error;
    said = (struct message_kept){text_at(a, inner, STR("type")), text_at(a, inner, STR("code")),
                                 text_at(a, inner, STR("message"))};
    if (said.message.len == 0)
        said.message = text_at(a, error, STR("detail"));
    return said;
}

/* ---- classes ------------------------------------------------------------------------------------------------------- */

static const struct {
    int from, to;
    const char *code;
} status_rows[] = {
    {401, 401, "auth"},       {402, 402, "quota"},        {403, 403, "auth"},
    {408, 408, "timeout"},    {409, 409, "server_error"}, {425, 425, "server_error"},
    {429, 429, "rate_limit"}, {529, 529, "overloaded"},   {500, 599, "server_error"},
};

static const struct {
    const char *name, *code;
} name_rows[] = {
    {"overloaded_error", "overloaded"},
    {"rate_limit_error", "rate_limit"},
    {"rate_limit_exceeded", "rate_limit"},
    {"api_error", "server_error"},
    {"server_error", "server_error"},
    {"timeout_error", "timeout"},
    {"authentication_error", "auth"},
    {"permission_error", "auth"},
    {"invalid_api_key", "auth"},
    {"billing_error", "quota"},
    {"insufficient_quota", "quota"},
    {"billing_hard_limit_reached", "quota"},
    {"invalid_request_error", "bad_request"},
    {"not_found_error", "bad_request"},
    {"request_too_large", "bad_request"},
    {"context_length_exceeded", "bad_request"},
};

static const char *code_of_status(int status)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++) {
        if (status >= status_rows[i].from && status <= status_rows[i].to)
            return status_rows[i].code;
    }
    return "bad_request";
}

static const char *code_of_name(struct str name)
{
    for (size_t i = 0; i < sizeof name_rows / sizeof name_rows[0]; i++) {
        if (str_eq(name, str_from(name_rows[i].name)))
            return name_rows[i].code;
    }
    return NULL;
}

/* Addresses of billing pages stand in messages about rate limits too: a word after a slash does not count. */
static bool speaks_of_money(struct str message)
{
    static const char *const words[] = {"credit balance", "exceeded your current quota", "billing"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = strcasestr(message.ptr, words[i]);

        if (at && (at == message.ptr || at[-1] != '/'))
            return true;
    }
    return false;
}

static bool is_quota(int status, const struct message_kept *said)
{
    const char *type = code_of_name(said->type), *code = code_of_name(said->code);

    if ((type && strcmp(type, "quota") == 0) || (code && strcmp(code, "quota") == 0))
        return true;
    return (status == 400 || status == 403 || status == 429) && speaks_of_money(said->message);
}

void fault_said(struct model_fault *f, int http_status, const struct message_kept *said)
{
    const char *code = http_status ? code_of_status(http_status) : code_of_name(said->code);
    struct str name = said->type.len ? said->type : said->code;

    if (!http_status && !code)
        code = code_of_name(said->type);
    if (is_quota(http_status, said))
        code = "quota";
    code = code ? code : "server_error";
    if (http_status)
        fault_set(f, code, http_status, "status %d%s%.*s", http_status, said->message.len ? ": " : "",
                  STR_ARG(said->message));
    else
        fault_set(f, code, 0, "%.*s%s%.*s", STR_ARG(name),
                  name.len ? " in the answer: " : "error in the answer: ", STR_ARG(said->message));
}

/* ---- the stream ---------------------------------------------------------------------------------------------------- */

static enum tide_code on_event(void *arg, struct str name, struct str data)
{
    struct wire *w = arg;
    const struct json *event;

    (void)name; /* says no more than the data does */
    if (w->reply.whole)
        return TIDE_OK; /* what came in the same piece as the end, behind it, is no part of the answer */
    if (w->ops->last_word && str_eq(data, str_from(w->ops->last_word))) {
        w->reply.whole = w->reply.n_events > 0;
        return TIDE_OK;
    }
    event = reply_read(&w->reply, data);
    if (event)
        w->ops->event(&w->reply, event);
    return w->reply.fault.code[0] ? fault_tide_code(&w->reply.fault) : TIDE_OK;
}

void wire_init(struct wire *w, const struct provider_ops *ops, const struct model_listener *listener)
{
    *w = (struct wire){.ops = ops, .sse = SSE_INIT};
    reply_init(&w->reply, listener);
    w->reply.lenient = ops->last_word != NULL; /* there are servers that leave it out */
}

bool wire_feed(struct wire *w, struct str bytes)
{
    enum tide_code code;

    if (w->reply.fault.code[0] || w->reply.whole)
        return false;
    code = sse_feed(&w->sse, bytes, on_event, w);
    if (code && !w->reply.fault.code[0])
        fault_set(&w->reply.fault, "malformed", 0, "an event of the answer is over %zu MiB", SSE_MAX_EVENT >> 20);
    return !code && !w->reply.whole;
}

void wire_done(struct wire *w)
{
    if (!w)
        return;
    sse_done(&w->sse);
    reply_done(&w->reply);
}

/* ---- one attempt --------------------------------------------------------------------------------------------------- */

static enum http_want on_data(void *arg, struct str piece)
{
    struct wire *w = arg;
    size_t before = w->reply.progress;

    if (wire_feed(w, piece))
        return w->reply.progress > before ? HTTP_MORE : HTTP_NOTHING;
    return w->reply.whole ? HTTP_ENOUGH : HTTP_STOP;
}

static bool on_idle(void *arg)
{
    const struct model_listener *l = ((struct wire *)arg)->reply.listener;

    return l->idle && l->idle(l->arg);
}

/* An answer with another status than 200: what its body says, as JSON or else as it stands. */
static void fault_of_status(struct model_fault *f, const struct http_result *result)
{
    struct arena a = ARENA_INIT;
    struct reply reader;
    const struct json *body;
    struct message_kept said;

    reply_init(&reader, NULL);
    body = reply_read(&reader, buf_view(&result->body));
    if (body)
        said = said_in(&a, body);
    else
        said = (struct message_kept){STR(""), STR(""), one_line(&a, reader.source)};
    if (result->status >= 300 && result->status < 400)
        fault_set(f, "bad_request", result->status, "status %d: moved to %s; set base_url to where it is now",
                  result->status, result->moved_to[0] ? result->moved_to : "elsewhere"),
            f->helps = true;
    else
        fault_said(f, result->status, &said);
    reply_done(&reader);
    arena_done(&a);
}

static const char *const end_codes[] = {
    [HTTP_CANCELLED] = "cancelled",   [HTTP_TIMEOUT] = "timeout",   [HTTP_STALLED] = "stalled",
    [HTTP_DEADLINE] = "call_timeout", [HTTP_BROKEN] = "connection", [HTTP_UNUSABLE] = "bad_request",
    [HTTP_TOO_BIG] = "malformed",     [HTTP_MISSING] = "missing"};

static bool settle_answer(struct wire *w, const struct http_result *result, struct model_answer *ret,
                          struct model_fault *f)
{
    f->retry_after_ms = result->retry_after_ms;
    if (result->status != 0 && result->status != 200 && result->end != HTTP_CANCELLED) {
        fault_of_status(f, result); /* also when its body broke off: the status has been said */
        return false;
    }
    if (result->end != HTTP_DONE) {
        fault_set(f, end_codes[result->end], result->status, "%s",
                  result->end == HTTP_TOO_BIG ? "the answer is over 64 MiB" : result->why);
        return false;
    }
    /* A 200 that is no event stream comes from something else than a model: a portal, a wrong path. */
    if (w->reply.n_events == 0 && result->type[0] && strncasecmp(result->type, "text/event-stream", 17) != 0) {
        fault_set(f, "bad_request", result->status, "answered with %s, not with a stream of events; check base_url",
                  result->type);
        f->helps = true;
        return false;
    }
    if (reply_finish(&w->reply, true, ret) == TIDE_OK)
        return true;
    *f = w->reply.fault;
    f->retry_after_ms = result->retry_after_ms;
    f->http_status = result->status;
    return false;
}

bool wire_call(struct provider *p, struct str body, int attempt, const struct model_listener *listener,
               struct model_answer *ret_answer, struct model_fault *f)
{
    const struct provider_ops *ops = p->ops;
    struct buf key_header = BUF_INIT(65536);
    const char *headers[5] = {"Content-Type: application/json", "Accept: text/event-stream"};
    struct http_call call = {.url = p->url,
                             .headers = headers,
                             .body = body,
                             .connect_ms = p->connect_ms,
                             .first_byte_ms = p->first_byte_ms,
                             .silence_ms = p->silence_ms,
                             .stall_ms = p->stall_ms,
                             .total_ms = p->total_ms,
                             .data = on_data,
                             .idle = on_idle};
    struct http_result result;
    struct wire w;
    bool ok;

    (void)attempt; /* not reported to the other side */
    if (ops->header)
        headers[2] = ops->header;
    if (p->key) {
        buf_add_str(&key_header, str_from(ops->key_header));
        buf_add_str(&key_header, str_from(p->key));
        headers[ops->header ? 3 : 2] = buf_cstr(&key_header);
    }
    wire_init(&w, ops, listener);
    call.arg = &w;
    http_post(p->http, &call, &result);
    ok = settle_answer(&w, &result, ret_answer, f);
    if (p->key)
        explicit_bzero(key_header.ptr, key_header.len);
    buf_done(&key_header);
    http_result_done(&result);
    wire_done(&w);
    return ok;
}
