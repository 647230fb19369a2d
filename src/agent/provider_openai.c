/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenAI chat-completions protocol, as OpenAI and many compatible servers speak it.
 *
 * Rendering keeps the order of keys. The limit of the answer has two names: OpenAI's own models take only the new one, most
 * compatible servers know only the old one.
 *
 * Reading: pieces of one choice; tool calls are identified by index, but some servers give every call the index 0 or
 * none: a new id begins a new call. finish_reason says why it stopped, a chunk of usage may follow, "[DONE]" ends it.
 * Reasoning is passed over.
 */
#include "agent/provider_internal.h"

/* ---- rendering ----------------------------------------------------------------------------------------------------- */

static void begin_message(struct json_out *o, struct str role)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("role"), role);
}

static void text_message(struct json_out *o, struct str role, struct str text)
{
    begin_message(o, role);
    json_out_kstr(o, STR("content"), text);
    json_out_end(o, '}');
}

static void put_call(struct json_out *o, const struct model_call *c)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("id"), c->id);
    json_out_kstr(o, STR("type"), STR("function"));
    json_out_key(o, STR("function"));
    json_out_begin(o, '{');
    name_member(o, c->name, 64);
    json_out_kstr(o, STR("arguments"), c->args.len ? c->args : STR("{}"));
    json_out_end(o, '}');
    json_out_end(o, '}');
}

static void put_assistant(struct json_out *o, const struct model_message *m)
{
    if (m->n_calls == 0) {
        text_message(o, STR("assistant"), m->text);
        return;
    }
    begin_message(o, STR("assistant"));
    json_out_key(o, STR("content"));
    if (m->text.len)
        json_out_str(o, m->text);
    else
        json_out_null(o);
    json_out_key(o, STR("tool_calls"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < m->n_calls; i++)
        put_call(o, &m->calls[i]);
    json_out_end(o, ']');
    json_out_end(o, '}');
}

static void user_with_images(struct json_out *o, const struct model_message *m)
{
    begin_message(o, STR("user"));
    json_out_key(o, STR("content"));
    json_out_begin(o, '[');
    json_out_begin(o, '{');
    json_out_kstr(o, STR("type"), STR("text"));
    json_out_kstr(o, STR("text"), m->text);
    json_out_end(o, '}');
    for (size_t i = 0; i < m->n_images; i++) {
        AUTO(buf_done) struct buf url = BUF_INIT(SIZE_MAX / 4);

        buf_addf(&url, "data:%.*s;base64,", STR_ARG(m->images[i].type));
        buf_add_str(&url, m->images[i].data);
        json_out_begin(o, '{');
        json_out_kstr(o, STR("type"), STR("image_url"));
        json_out_key(o, STR("image_url"));
        json_out_begin(o, '{');
        json_out_kstr(o, STR("url"), buf_view(&url));
        json_out_end(o, '}');
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_end(o, '}');
}

static void render_message(struct render *r, const struct model_message *m)
{
    struct json_out *o = &r->o;

    if (m->role == TIDE_ROLE_ASSISTANT) {
        put_assistant(o, m);
    } else if (m->role == TIDE_ROLE_TOOL) {
        begin_message(o, STR("tool"));
        json_out_kstr(o, STR("tool_call_id"), m->call_id);
        json_out_kstr(o, STR("content"), m->text);
        json_out_end(o, '}');
    } else if (m->n_images) {
        user_with_images(o, m);
    } else {
        text_message(o, STR("user"), m->text);
    }
}

/* A member of the tool under this protocol's name for it; left out when the tool has none. */
static void tool_member(struct json_out *o, const struct json *t, struct str key, struct str as)
{
    const struct json *v = json_get(t, key);

    if (v)
        json_out_kraw(o, as, json_source(v));
}

static void put_tools(struct json_out *o, struct str list)
{
    struct arena a = ARENA_INIT;
    struct json *json = NULL;

    if (list.len > 2 && !json_parse(&a, list, NULL, &json, NULL, NULL) && json->count > 0) {
        json_out_key(o, STR("tools"));
        json_out_begin(o, '[');
        for (const struct json *t = json->first; t; t = t->next) {
            json_out_begin(o, '{');
            json_out_kstr(o, STR("type"), STR("function"));
            json_out_key(o, STR("function"));
            json_out_begin(o, '{');
            tool_member(o, t, STR("name"), STR("name"));
            tool_member(o, t, STR("description"), STR("description"));
            tool_member(o, t, STR("input_schema"), STR("parameters"));
            json_out_end(o, '}');
            json_out_end(o, '}');
        }
        json_out_end(o, ']');
    }
    arena_done(&a);
}

static void begin_request(const struct provider *p, const struct model_request *request, struct render *r)
{
    struct json_out *o = &r->o;

    json_out_begin(o, '{');
    json_out_kstr(o, STR("model"), request->model);
    if (request->max_tokens > 0)
        json_out_kint(o, p->own_url ? STR("max_completion_tokens") : STR("max_tokens"), request->max_tokens);
    json_out_kbool(o, STR("stream"), true);
    json_out_kraw(o, STR("stream_options"), STR("{\"include_usage\":true}"));
    put_tools(o, request->tools);
    json_out_key(o, STR("messages"));
    json_out_begin(o, '[');
    if (request->system.len)
        text_message(o, STR("system"), request->system);
}

static void end_request(const struct model_request *request, struct render *r)
{
    (void)request;
    json_out_end(&r->o, ']');
    json_out_end(&r->o, '}');
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static void take_usage(struct reply *r, const struct json *usage)
{
    int64_t input = r->fresh_tokens + r->cached_tokens;

    reply_count(&input, usage, STR("prompt_tokens"));
    reply_count(&r->cached_tokens, json_get(usage, STR("prompt_tokens_details")), STR("cached_tokens"));
    if (r->cached_tokens > input)
        r->cached_tokens = input;
    r->fresh_tokens = input - r->cached_tokens;
    reply_count(&r->output_tokens, usage, STR("completion_tokens"));
}

/* The call that a piece belongs to. */
static struct reply_call *call_of(struct reply *r, const struct json *piece)
{
    struct str id = json_get_text(&r->scratch, piece, STR("id"));
    int64_t index = json_get_int(piece, STR("index"), -1);
    struct reply_call *c = index >= 0 ? reply_call_at(r, index) : r->n_calls ? &r->calls[r->n_calls - 1] : NULL;

    if (c && (id.len == 0 || c->id.buf.len == 0 || str_eq(buf_view(&c->id.buf), id)))
        return c;
    return reply_call_new(r, index >= 0 ? index : (int64_t)r->n_calls);
}

static void take_call(struct reply *r, const struct json *piece)
{
    const struct json *function = json_get(piece, STR("function")), *args = json_get(function, STR("arguments"));
    struct reply_call *c = call_of(r, piece);

    if (!c)
        return;
    if (c->id.buf.len == 0) /* some repeat id and name with every piece */
        pieces_add(r, &c->id, json_get(piece, STR("id")));
    if (c->name.buf.len == 0)
        pieces_add(r, &c->name, json_get(function, STR("name")));
    if (args && args->type == JSON_OBJECT) /* should be text, and with some servers is not */
        buf_add_str(&c->args.buf, args->raw);
    pieces_add(r, &c->args, args);
}

static bool has_text(const struct json *object, struct str key)
{
    const struct json *v = json_get(object, key);

    return v && v->type == JSON_STRING && v->raw.len > 0;
}

static void take_delta(struct reply *r, const struct json *delta)
{
    const struct json *calls = json_get(delta, STR("tool_calls"));

    if (has_text(delta, STR("reasoning_content")) || has_text(delta, STR("reasoning")) ||
        has_text(delta, STR("thinking")))
        reply_thinking(r);
    reply_text(r, json_get(delta, STR("content")));
    if (has_text(delta, STR("refusal"))) {
        reply_text(r, json_get(delta, STR("refusal")));
        r->stop = STOP_REFUSED;
    }
    for (const struct json *c = calls && calls->type == JSON_ARRAY ? calls->first : NULL; c; c = c->next)
        take_call(r, c);
}

static void on_event(struct reply *r, const struct json *event)
{
    static const struct stop_row stops[] = {
        {"tool_calls", STOP_TOOLS}, {"length", STOP_LENGTH}, {"content_filter", STOP_REFUSED}, {NULL, STOP_END}};
    const struct json *choices = json_get(event, STR("choices")), *error = json_get(event, STR("error"));

    if (error && error->type != JSON_NULL) {
        struct message_kept said = said_in(&r->scratch, event);

        fault_said(&r->fault, 0, &said);
        return;
    }
    for (const struct json *c = choices && choices->type == JSON_ARRAY ? choices->first : NULL; c; c = c->next) {
        if (json_get_int(c, STR("index"), 0) != 0)
            continue; /* one was asked for */
        take_delta(r, json_get(c, STR("delta")));
        reply_stop(r, json_get_text(&r->scratch, c, STR("finish_reason")), stops,
                   r->stop == STOP_REFUSED ? STOP_REFUSED : STOP_END);
    }
    take_usage(r, json_get(event, STR("usage")));
}

const struct provider_ops provider_openai = {
    .type = "openai",
    .begin = begin_request,
    .message = render_message,
    .end = end_request,
    .call = wire_call,
    .base_url = "https://api.openai.com/v1",
    .path = "/chat/completions",
    .key_header = "Authorization: Bearer ",
    .event = on_event,
    .last_word = "[DONE]",
};
