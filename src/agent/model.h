/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to a model and what it answers, in no provider's words. */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H

#include "base/mem.h"
#include "tidemark.h"

/* One thing that the model asks for. `args` is JSON text, an object. */
struct model_call {
    struct str id, name, args;
};

/* `data`: base64. */
struct model_image {
    struct str type, data;
};

struct model_message {
    enum tide_role role;
    struct str text;                /* of a tool: its result */
    const struct model_call *calls; /* of the assistant */
    size_t n_calls;
    struct str call_id;               /* of a tool: whose result it is */
    bool failed;                      /* of a tool */
    const struct model_image *images; /* of the user */
    size_t n_images;
};

struct model_request {
    struct str model, system; /* system: empty when there is none */
    struct str tools;         /* JSON array of {"name","description","input_schema"}; "[]": none */
    int64_t max_tokens;       /* of the answer */
    const struct model_message *messages;
    size_t n_messages;
    /* What only the script provider looks at. */
    struct str part;          /* of a graph: which of its agents asks; empty: a chat */
    int64_t answers_left_out; /* by trimming: given, and not among the messages */
};

struct model_usage {
    int64_t input_tokens, output_tokens; /* input: all of it */
    int64_t cached_tokens;               /* of the input, how much came from the provider's cache */
};

enum model_stop { STOP_END, STOP_TOOLS, STOP_LENGTH, STOP_REFUSED };

struct model_answer {
    struct arena arena; /* holds all that follows */
    struct str text;
    struct model_call *calls; /* args are always a JSON object: what was no JSON is {"_malformed": "<the text>"} */
    size_t n_calls;
    enum model_stop stop;
    struct model_usage usage;
    bool replaced; /* bytes that were no valid Unicode became U+FFFD */
};

void model_answer_done(struct model_answer *a);

#endif
