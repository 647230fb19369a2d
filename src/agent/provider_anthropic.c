/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Anthropic Messages protocol.
 *
 * Rendering keeps the order of keys and adds nothing that changes from call to call, so that the provider's cache of
 * prompts hits: the marks (cache_control) stand behind the system text and behind the last block of the last message. Roles
 * must take turns, so whatever the user's side says in a row (results of tools, then a prompt) is one message of several
 * blocks. Blocks without a visible character are refused there and left out here.
 *
 * Reading: an answer is a list of blocks, identified by index; message_stop ends it. Thinking is passed over.
 */
#include "agent/provider_internal.h"

#define DEFAULT_MAX_TOKENS 4096 /* the protocol demands one */
#define CACHE_MARK "\"cache_control\":{\"type\":\"ephemeral\"}"

/* ---- rendering ----------------------------------------------------------------------------------------------------- */

static void close_message(struct render *r)
{
    if (!r->side)
        return;
    json_out_end(&r->o, ']');
    json_out_end(&r->o, '}');
    r->side = NULL;
}

static void begin_block(struct render *r, const char *side, struct str type)
{
    if (!r->side || strcmp(r->side, side) != 0) {
        close_message(r);
        json_out_begin(&r->o, '{');
        json_out_kstr(&r->o, STR("role"), str_from(side));
        json_out_key(&r->o, STR("content"));
        json_out_begin(&r->o, '[');
        r->side = side;
    }
    json_out_begin(&r->o, '{');
    json_out_kstr(&r->o, STR("type"), type);
}

static void end_block(struct render *r)
{
    json_out_end(&r->o, '}');
    r->block_end = r->o.buf->len - 1;
}

static void text_block(struct render *r, const char *side, struct str text)
{
    if (str_is_blank(text))
        return;
    begin_block(r, side, STR("text"));
    json_out_kstr(&r->o, STR("text"), text);
    end_block(r);
}

/* Ids of other providers may have characters that this one refuses. */
static void id_member(struct render *r, struct str key, struct str id)
{
    char clean[256];
    size_t n = id.len < sizeof clean ? id.len : sizeof clean;

    for (size_t i = 0; i < n; i++) {
        char c = id.ptr[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';

        clean[i] = fine ? c : '_';
    }
    json_out_kstr(&r->o, key, (struct str){clean, n});
}

static void put_assistant(struct render *r, const struct model_message *m)
{
    text_block(r, "assistant", m->text);
    for (size_t i = 0; i < m->n_calls; i++) {
        begin_block(r, "assistant", STR("tool_use"));
        id_member(r, STR("id"), m->calls[i].id);
        name_member(&r->o, m->calls[i].name, 128);
        json_out_kraw(&r->o, STR("input"), m->calls[i].args.len ? m->calls[i].args : STR("{}"));
        end_block(r);
    }
}

static void tool_result(struct render *r, const struct model_message *m)
{
    begin_block(r, "user", STR("tool_result"));
    id_member(r, STR("tool_use_id"), m->call_id);
    json_out_kstr(&r->o, STR("content"), m->text);
    if (m->failed)
        json_out_kbool(&r->o, STR("is_error"), true);
    end_block(r);
}

static void image_block(struct render *r, const struct model_image *image)
{
    begin_block(r, "user", STR("image"));
    json_out_key(&r->o, STR("source"));
    json_out_begin(&r->o, '{');
    json_out_kstr(&r->o, STR("type"), STR("base64"));
    json_out_kstr(&r->o, STR("media_type"), image->type);
    json_out_kstr(&r->o, STR("data"), image->data);
    json_out_end(&r->o, '}');
    end_block(r);
}

static void render_message(struct render *r, const struct model_message *m)
{
    if (m->role == TIDE_ROLE_ASSISTANT)
        put_assistant(r, m);
    else if (m->role == TIDE_ROLE_TOOL)
        tool_result(r, m);
    else {
        for (size_t i = 0; i < m->n_images; i++)
            image_block(r, &m->images[i]);
        text_block(r, "user", m->text);
    }
}

static void system_text(struct json_out *o, struct str text)
{
    if (str_is_blank(text))
        return;
    json_out_key(o, STR("system"));
    json_out_begin(o, '[');
    json_out_begin(o, '{');
    json_out_kstr(o, STR("type"), STR("text"));
    json_out_kstr(o, STR("text"), text);
    json_out_kraw(o, STR("cache_control"), STR("{\"type\":\"ephemeral\"}"));
    json_out_end(o, '}');
    json_out_end(o, ']');
}

static void begin_request(const struct provider *p, const struct model_request *request, struct render *r)
{
    struct json_out *o = &r->o;

    (void)p;
    json_out_begin(o, '{');
    json_out_kstr(o, STR("model"), request->model);
    json_out_kint(o, STR("max_tokens"), request->max_tokens > 0 ? request->max_tokens : DEFAULT_MAX_TOKENS);
    json_out_kbool(o, STR("stream"), true);
    system_text(o, request->system);
    if (request->tools.len > 2) /* "[]": none */
        json_out_kraw(o, STR("tools"), request->tools);
    json_out_key(o, STR("messages"));
    json_out_begin(o, '[');
}

static void end_request(const struct model_request *request, struct render *r)
{
    struct buf *out = r->o.buf;

    (void)request;
    close_message(r);
    if (r->block_end && !out->failed) { /* what follows the last block are three brackets, which are written again */
        out->len = r->block_end;
        buf_add_str(out, STR("," CACHE_MARK "}]}"));
    }
    json_out_end(&r->o, ']');
    json_out_end(&r->o, '}');
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static void take_usage(struct reply *r, const struct json *usage)
{
    reply_count(&r->fresh_tokens, usage, STR("input_tokens"));
    reply_count(&r->stored_tokens, usage, STR("cache_creation_input_tokens"));
    reply_count(&r->cached_tokens, usage, STR("cache_read_input_tokens"));
    reply_count(&r->output_tokens, usage, STR("output_tokens"));
}

static void on_message_start(struct reply *r, const struct json *event)
{
    take_usage(r, json_get(json_get(event, STR("message")), STR("usage")));
}

/* Compatible servers may send the whole input at once here, where others begin with an empty one. */
static void start_call(struct reply *r, const struct json *event, const struct json *block)
{
    struct reply_call *c = reply_call_new(r, json_get_int(event, STR("index"), 0));
    const struct json *input = json_get(block, STR("input"));

    if (!c)
        return;
    pieces_add(r, &c->id, json_get(block, STR("id")));
    pieces_add(r, &c->name, json_get(block, STR("name")));
    c->given = input && input->type == JSON_OBJECT && input->count > 0;
    if (c->given)
        buf_add_str(&c->args.buf, input->raw);
}

static void on_block_start(struct reply *r, const struct json *event)
{
    const struct json *block = json_get(event, STR("content_block"));
    struct str type = json_get_text(&r->scratch, block, STR("type"));

    r->progress++; /* also a kind of block that we pass over */
    if (str_eq(type, STR("tool_use")))
        start_call(r, event, block);
    else if (str_eq(type, STR("text")))
        reply_text(r, json_get(block, STR("text")));
    else if (str_eq(type, STR("thinking")) || str_eq(type, STR("redacted_thinking")))
        reply_thinking(r);
}

static void on_block_delta(struct reply *r, const struct json *event)
{
    const struct json *delta = json_get(event, STR("delta"));
    struct str type = json_get_text(&r->scratch, delta, STR("type"));
    struct reply_call *c;

    r->progress++;
    if (str_eq(type, STR("text_delta"))) {
        reply_text(r, json_get(delta, STR("text")));
    } else if (str_eq(type, STR("thinking_delta"))) {
        reply_thinking(r);
    } else if (str_eq(type, STR("input_json_delta"))) {
        c = reply_call_at(r, json_get_int(event, STR("index"), 0)); /* NULL: of a kind of block that we pass over */
        if (c && !c->given)
            pieces_add(r, &c->args, json_get(delta, STR("partial_json")));
    }
}

static void on_message_delta(struct reply *r, const struct json *event)
{
    static const struct stop_row stops[] = {
        {"tool_use", STOP_TOOLS},
        {"max_tokens", STOP_LENGTH},
        {"model_context_window_exceeded", STOP_LENGTH},
        {"refusal", STOP_REFUSED},
        {NULL, STOP_END}, /* end_turn, stop_sequence, pause_turn, and what is yet to be invented */
    };
    struct str reason = json_get_text(&r->scratch, json_get(event, STR("delta")), STR("stop_reason"));

    take_usage(r, json_get(event, STR("usage")));
    reply_stop(r, reason, stops, STOP_END);
}

static void on_message_stop(struct reply *r, const struct json *event)
{
    (void)event;
    r->whole = true;
}

static void on_error(struct reply *r, const struct json *event)
{
    struct message_kept said = said_in(&r->scratch, event);

    fault_said(&r->fault, 0, &said);
}

static void on_event(struct reply *r, const struct json *event)
{
    static const struct {
        const char *type;
        void (*fn)(struct reply *r, const struct json *event);
    } rows[] = {
        {"message_start", on_message_start},     {"content_block_start", on_block_start},
        {"content_block_delta", on_block_delta}, {"message_delta", on_message_delta},
        {"message_stop", on_message_stop},       {"error", on_error},
    };
    struct str type = json_get_text(&r->scratch, event, STR("type"));

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (str_eq(type, str_from(rows[i].type))) {
            rows[i].fn(r, event);
            return;
        }
    }
    /* ping, content_block_stop, and kinds of later versions: the protocol asks to pass over what one does not know */
}

const struct provider_ops provider_anthropic = {
    .type = "anthropic",
    .begin = begin_request,
    .message = render_message,
    .end = end_request,
    .call = wire_call,
    .base_url = "https://api.anthropic.com",
    .path = "/v1/messages",
    .key_header = "x-api-key: ",
    .header = "anthropic-version: 2023-06-01",
    .event = on_event,
};
