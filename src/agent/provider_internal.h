/* SPDX-License-Identifier: Apache-2.0 */
/* What the providers share: an answer that grows piece by piece, faults, and the table row of a provider. */
#ifndef AGENT_PROVIDER_INTERNAL_H
#define AGENT_PROVIDER_INTERNAL_H

#include "agent/provider.h"
#include "agent/sse.h"
#include "base/json.h"

#define REPLY_MAX_BYTES ((size_t)64 << 20) /* of one answer, on the wire and in memory */
#define REPLY_MAX_CALLS 512
#define ARGS_MAX_DEPTH 64 /* they go into events and requests, which nest further */

/* Text that comes in pieces. A server that cuts by UTF-16 units may send the halves of one character apart. */
struct pieces {
    struct buf buf;
    int32_t high; /* the first half of a character whose second has not come yet; 0: none */
};

struct reply_call {
    struct pieces id, name, args;
    int64_t index;
    bool given; /* args were there from the start: pieces of them that still come say the same again */
};

struct reply {
    const struct model_listener *listener;
    struct pieces text;
    struct reply_call *calls;
    size_t n_calls, cap_calls;
    enum model_stop stop;
    bool stopped; /* why it stopped has been said */
    bool whole;   /* the stream has said that nothing more comes */
    bool lenient; /* a reason and a proper end of the stream are as good as its last word */
    bool replaced;
    int64_t fresh_tokens, stored_tokens, cached_tokens, output_tokens; /* input: fresh + stored + cached */
    size_t n_events;
    size_t progress;          /* pieces of the answer so far: pings and empty events add none */
    struct model_fault fault; /* code "": none so far */

    struct arena scratch; /* of one event */
    struct buf bytes, halves;
    struct str source, read; /* the event before and after halves of characters were replaced: as long as each other */
};

void reply_init(struct reply *r, const struct model_listener *listener);
void reply_done(struct reply *r);

/* Parses one event; NULL and a fault when it is no JSON object. The tree lives until the next event. */
const struct json *reply_read(struct reply *r, struct str data);

/* `string` may be NULL or of another type: then nothing is added. */
void pieces_add(struct reply *r, struct pieces *p, const struct json *string);
void reply_text(struct reply *r, const struct json *string);
void reply_thinking(struct reply *r);
struct reply_call *reply_call_new(struct reply *r, int64_t index); /* NULL and a fault when there are too many */
struct reply_call *reply_call_at(struct reply *r, int64_t index);  /* the latest of this index; NULL: none */

/* The provider's words for why it stopped; the last row has none. An empty reason says nothing. */
struct stop_row {
    const char *reason;
    enum model_stop stop;
};
void reply_stop(struct reply *r, struct str reason, const struct stop_row *rows, enum model_stop otherwise);

void reply_count(int64_t *count, const struct json *usage, struct str key); /* takes it when it is there */

/* `args` is what the model wrote: what is no JSON object becomes {"_malformed": "<the text>"}. *replaced may be set. */
struct str model_args(struct arena *a, struct str args, bool *replaced);

/* The answer, when it is whole; else a fault. clean: the stream ended as streams do. */
enum tide_code reply_finish(struct reply *r, bool clean, struct model_answer *ret);

/* ---- faults -------------------------------------------------------------------------------------------------------- */

void fault_set(struct model_fault *f, const char *code, int http_status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
enum tide_code fault_tide_code(const struct model_fault *f);

/* What the provider says in an error body or event, and under which name. In the arena, one line, bounded. */
struct message_kept {
    struct str type, code, message;
};
struct message_kept said_in(struct arena *a, const struct json *error);

/* The fault that a status and what was said with it amount to (status 0: an error inside the stream). */
void fault_said(struct model_fault *f, int http_status, const struct message_kept *said);

/* ---- providers --------------------------------------------------------------------------------------------------- */

struct script;

struct provider {
    const struct provider_ops *ops;
    char *url, *key; /* url: with its path; key: NULL: none */
    bool own_url;    /* the provider's own, not a compatible one */
    int64_t connect_ms, first_byte_ms, silence_ms, stall_ms, total_ms;
    struct http *http;     /* made at the first call */
    struct script *script; /* of the script provider */
};

struct provider_ops {
    const char *type;
    /* A request: up to its list of messages, one of them, and what comes behind them. */
    void (*begin)(const struct provider *p, const struct model_request *request, struct render *r);
    void (*message)(struct render *r, const struct model_message *m);
    void (*end)(const struct model_request *request, struct render *r);
    /* Sets *ret_answer and gives true, or sets *f. */
    bool (*call)(struct provider *p, struct str body, int attempt, const struct model_listener *listener,
                 struct model_answer *ret_answer, struct model_fault *f);
    /* Of those that are spoken to over HTTP: where, with which headers, and what an event means. */
    const char *base_url, *path;
    const char *key_header; /* what stands before the key */
    const char *header;     /* one more; NULL: none */
    void (*event)(struct reply *r, const struct json *event);
    const char *last_word; /* data that is no JSON and says that all has been sent; NULL: an event says so */
};

/* "name" of a call that a model made: one that no tool has would be refused by the caller that gets it back. max: at most 128. */
void name_member(struct json_out *o, struct str name, size_t max);

extern const struct provider_ops provider_anthropic, provider_openai, provider_script;

enum tide_code script_open(const char *path, struct script **ret_script, struct tide_err *err) MUST_CHECK;
void script_free(struct script *s);

/* An answer on its way in, for those that stream events. */
struct wire {
    const struct provider_ops *ops;
    struct sse sse;
    struct reply reply;
};
void wire_init(struct wire *w, const struct provider_ops *ops, const struct model_listener *listener);
bool wire_feed(struct wire *w, struct str bytes); /* false: over, because it is whole or has a fault */
void wire_done(struct wire *w);
bool wire_call(struct provider *p, struct str body, int attempt, const struct model_listener *listener,
               struct model_answer *ret_answer, struct model_fault *f);

#endif
