/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model providers behind one table: anthropic, openai, script. A request is rendered by a pure function, so that the one
 * rebuilt after a crash has the same bytes; a call is one attempt, its text handed out as it comes.
 */
#ifndef AGENT_PROVIDER_H
#define AGENT_PROVIDER_H

#include "agent/model.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"

struct provider_config {
    const char *type;                              /* anthropic, openai, script */
    const char *base_url;                          /* NULL: the provider's own */
    const char *key;                               /* secret; NULL: none. Never logged, never in an error */
    const char *script;                            /* file that the script provider answers from */
    int64_t connect_ms, first_byte_ms, silence_ms; /* time-outs; 0: 10 s, 120 s, 60 s */
    int64_t stall_ms, total_ms;                    /* without progress, and in all; 0: 5 min, 30 min */
};

/* Why an attempt failed. The code is one that retry_helps() knows. */
struct model_fault {
    /* rate_limit overloaded timeout stalled call_timeout server_error connection malformed; auth quota bad_request cancelled */
    char code[32];
    int http_status;        /* 0: none was answered */
    bool helps;             /* the message says what to do */
    int64_t retry_after_ms; /* what the provider asked for; -1: nothing */
    char message[256];      /* one line, without the key */
};

/* What helps against it when it does not pass, for a provider of this type; "": nothing, or the message says it. */
const char *fault_remedy(const struct model_fault *f, const char *type);

/* Fails with its message; a refused key is about the setting `api_key`. */
enum tide_code fault_fail(const struct model_fault *f, enum tide_code code, struct tide_err *err);

/* Who listens while an answer comes in. Any may be NULL. */
struct model_listener {
    void *arg;
    void (*text)(void *arg, struct str piece); /* whole characters: a preview, nothing of it is stored yet */
    void (*thinking)(void *arg);               /* the model thinks; what it thinks is passed over */
    bool (*idle)(void *arg);                   /* at least ten times a second; true: give up (cancelled) */
};

struct provider;

enum tide_code provider_open(const struct provider_config *config, struct provider **ret_provider, struct tide_err *err)
    MUST_CHECK;
void provider_close(struct provider *p);
static inline void provider_closep(struct provider **p)
{
    provider_close(*p);
}

/* The body of the request. Pure: the same request gives the same bytes. */
void provider_render(const struct provider *p, const struct model_request *request, struct buf *out);

/* Where a rendering is, between two messages. */
struct render {
    struct json_out o;
    const char *side; /* whose message is open; NULL: none is */
    size_t block_end; /* of the last block: where its closing brace is; 0: there is none */
    int64_t answers;  /* of the assistant, so far */
};

/* The body of the latest request of a conversation, and what of it the next one begins with. */
struct rendering {
    struct buf body;
    size_t head, settled; /* bytes of it: before the messages; before those that may still change. 0: none are kept */
    struct render at;     /* where it was then */
    struct digest_state digest; /* of the settled bytes */
};

/*
 * The same bytes as provider_render(), in two calls: only what is new is rendered and digested. The first renders what comes
 * before the messages: false when that has changed, or nothing is kept: then the request begins anew, with its first message.
 * The second takes the messages behind the settled ones. Of these `n_settled` are settled now: they must be the beginning of
 * the next request as well.
 */
bool provider_render_head(const struct provider *p, const struct model_request *request, struct rendering *k);
void provider_render_rest(const struct provider *p, const struct model_request *request, size_t n_settled,
                          struct rendering *k, char digest[DIGEST_NAME_SIZE]);

/*
 * One attempt (from 0) at this body. TIDE_OK: the whole answer is there. Else *ret_fault says why, and err says it in one
 * line; nothing of *ret_answer is set.
 */
enum tide_code provider_call(struct provider *p, struct str body, int attempt, const struct model_listener *listener,
                             struct model_answer *ret_answer, struct model_fault *ret_fault, struct tide_err *err)
    MUST_CHECK;

#endif
