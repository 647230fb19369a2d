/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a function or of a lua node. Whatever it is, it gives JSON or a failure with a code that retry_on can name
 * and one line for people. A secret may be in everything that comes from the node, so every such text is masked here, before
 * anybody above sees it.
 */
#include "graph/node_work.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/scan.h"
#include "graph/node_work_internal.h"

/* ---- failures ---- */

/* One line of valid text, whatever came in; a character that the end cut in two goes. */
static void tidy_text(char *text, bool cut)
{
    size_t len = strlen(text), bad;

    while (len > 0 && is_blank_char(text[len - 1]))
        text[--len] = '\0';
    while (!str_is_utf8(str_from(text), &bad))
        text[bad] = cut && len - bad < 4 ? '\0' : '?';
    clean_line(text, strlen(text));
}

bool node_work_is_code(struct str code)
{
    for (size_t i = 0; i < code.len; i++)
        if (!memchr("abcdefghijklmnopqrstuvwxyz0123456789_", code.ptr[i], 37))
            return false;
    return code.len > 0 && code.len < sizeof(((struct node_work_result *)0)->code);
}

bool node_work_fail(struct node_work_result *r, const char *code, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(r->message, sizeof(r->message), fmt, ap);
    va_end(ap);
    tidy_text(r->message, n >= (int)sizeof(r->message));
    snprintf(r->code, sizeof(r->code), "%s", node_work_is_code(str_from(code)) ? code : "failed");
    buf_clear(&r->output);
    return false;
}

bool node_work_fail_masked(const struct node_work *b, struct node_work_result *ret, const char *code, const char *fmt,
                           ...)
{
    AUTO(mem_freep) char *text = NULL;
    char word[sizeof(ret->code)];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0) {
        text = NULL;
        return node_work_fail(ret, code, "failed, and there is no memory to say why");
    }
    snprintf(word, sizeof(word), "%s", code);
    node_work_mask(text, strlen(text), b->secrets, b->n_secrets);
    node_work_mask(word, strlen(word), b->secrets, b->n_secrets);
    return node_work_fail(ret, word, "%s", text);
}

void node_work_result_done(struct node_work_result *r)
{
    if (r)
        buf_done(&r->output);
}

/* ---- what it does ---- */

/* Nobody can end a function of the embedder's from outside: timeout_ms is the callback's own to keep. */
static bool run_callback(const struct node_work *b, struct buf *ret_json, struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_node_call call = {.node = b->name,
                                  .inputs = b->inputs.len ? b->inputs.ptr : "{}",
                                  .key = b->key,
                                  .visit = b->visit,
                                  .attempt = b->attempt};
    struct tide_text text = {NULL, 0};
    struct tide_err err = {0};
    enum tide_code code;

    if (!b->fn) {
        ret->unbegun = true;
        return node_work_fail_masked(b, ret, "not_found",
                                     "no callback '%.*s' is registered: call tide_graph_add_callback() before",
                                     STR_ARG(b->node->callback));
    }
    code = b->fn(b->fn_arg, &call, &text, &err);
    if (!code)
        buf_add(ret_json, text.ptr ? text.ptr : "", text.ptr ? text.len : 0);
    tide_text_done(&text);
    if (code)
        return node_work_fail_masked(b, ret, "callback", "%s",
                                     err.msg[0] ? node_work_piece(&a, b, str_from(err.msg)) : tide_code_text(code));
    if (ret_json->failed)
        return node_work_fail(ret, "too_big", "returned more than %zu bytes", ret_json->max);
    return true;
}

/* Its time is bounded by the instructions it may take, its place by the memory: timeout_ms has nothing to add. */
static bool run_lua(const struct node_work *b, struct buf *ret_json, struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct expr_value values[] = {{"inputs", b->inputs.len ? b->inputs : STR("{}")},
                                  {"memory", b->memory.len ? b->memory : STR("{}")}};
    struct tide_err err = {0};
    enum tide_code code = expr_eval(b->node->code.expr, values, 2, NULL, ret_json, &err);

    if (code)
        return node_work_fail_masked(b, ret, code == TIDE_TOO_BIG ? "limit" : "lua", "%s",
                                     node_work_piece(&a, b, str_from(err.msg)));
    return true;
}

bool node_work_run(const struct node_work *b, struct node_work_result *ret)
{
    AUTO(buf_done) struct buf json = BUF_INIT(NODE_WORK_OUTPUT_MAX);
    bool given;

    buf_clear(&ret->output);
    ret->code[0] = ret->message[0] = '\0';
    ret->unknown = ret->unbegun = false;
    if (b->node->type == SPEC_LUA)
        given = run_lua(b, &json, ret);
    else if (b->node->type != SPEC_FUNCTION)
        given = node_work_fail(ret, "type", "a node of type %s does no work itself", spec_node_words[b->node->type]);
    else if (b->node->program.n > 0)
        given = node_work_program(b, &json, ret);
    else
        given = run_callback(b, &json, ret);
    return given && node_work_output(b, buf_view(&json), ret);
}
