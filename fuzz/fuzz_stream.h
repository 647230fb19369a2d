/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the streamed answer of a provider, at once and byte by byte: both give the same answer or a fault of the same
 * class. An answer is whole: valid text, calls with names, ids of their own and arguments that are a JSON object; the text
 * that was shown on the way is its beginning.
 */
#ifndef FUZZ_FUZZ_STREAM_H
#define FUZZ_FUZZ_STREAM_H

#include "agent/provider_internal.h"
#include "fuzz.h"

static void hear(void *arg, struct str piece)
{
    MUST(piece.len > 0 && str_is_utf8(piece, NULL));
    buf_add_str(arg, piece);
}

static void check_call(const struct model_answer *a, size_t i)
{
    static const struct json_limits limits = {.max_depth = ARGS_MAX_DEPTH};
    struct arena arena = ARENA_INIT;
    struct json *json = NULL;
    bool compact = false;

    MUST(a->calls[i].name.len > 0 && str_is_utf8(a->calls[i].name, NULL));
    MUST(a->calls[i].id.len > 0 && str_is_utf8(a->calls[i].id, NULL));
    for (size_t k = 0; k < i; k++)
        MUST(!str_eq(a->calls[k].id, a->calls[i].id));
    MUST(json_parse(&arena, a->calls[i].args, &limits, &json, &compact, NULL) == TIDE_OK);
    MUST(json->type == JSON_OBJECT && compact);
    arena_done(&arena);
}

static void check_answer(const struct model_answer *a, const struct buf *heard)
{
    MUST(str_is_utf8(a->text, NULL) && str_starts(a->text, buf_view(heard)));
    MUST(a->usage.input_tokens >= a->usage.cached_tokens && a->usage.output_tokens >= 0);
    MUST((a->stop != STOP_TOOLS || a->n_calls > 0) && (a->stop != STOP_END || a->n_calls == 0));
    for (size_t i = 0; i < a->n_calls; i++)
        check_call(a, i);
}

static enum tide_code read_in(const struct provider_ops *ops, struct str bytes, size_t step, struct model_answer *ret,
                              struct model_fault *f)
{
    struct buf heard = BUF_INIT(1 << 24);
    const struct model_listener listener = {.arg = &heard, .text = hear};
    enum tide_code code;
    struct wire w;

    wire_init(&w, ops, &listener);
    for (size_t at = 0; at < bytes.len; at += step) {
        if (!wire_feed(&w, (struct str){bytes.ptr + at, bytes.len - at < step ? bytes.len - at : step}))
            break;
    }
    code = reply_finish(&w.reply, true, ret);
    MUST((code == TIDE_OK) == (w.reply.fault.code[0] == '\0'));
    if (!code)
        check_answer(ret, &heard);
    *f = w.reply.fault;
    wire_done(&w);
    buf_done(&heard);
    return code;
}

static void check_stream(const struct provider_ops *ops, struct str bytes)
{
    struct model_answer a, b;
    struct model_fault fa, fb;
    enum tide_code one = read_in(ops, bytes, bytes.len + 1, &a, &fa), other = read_in(ops, bytes, 1, &b, &fb);

    MUST(one == other && strcmp(fa.code, fb.code) == 0 && strcmp(fa.message, fb.message) == 0);
    if (one)
        return;
    MUST(str_eq(a.text, b.text) && a.n_calls == b.n_calls && a.stop == b.stop && a.replaced == b.replaced);
    for (size_t i = 0; i < a.n_calls; i++)
        MUST(str_eq(a.calls[i].args, b.calls[i].args) && str_eq(a.calls[i].id, b.calls[i].id));
    model_answer_done(&a);
    model_answer_done(&b);
}

#endif
