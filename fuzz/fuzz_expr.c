/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a condition in Python (first byte p), an expression (e) or a body (anything else) over the same values. What is
 * translated must compile; what gives a value must give JSON, the same each time; what fails must say so in one line of text.
 */
#include "fuzz.h"
#include "graph/expr.h"

#define OUTPUT "{\"n\":3,\"s\":\"Some, Text\",\"l\":[1,null,2.5],\"d\":{\"b\":null,\"a\":[]},\"t\":true}"
#define MEMORY "{\"done\":false,\"a\":[3,1,2],\"name\":\"n\\u00e9e\"}"

static const struct expr_value values[] = {
    {"output", {OUTPUT, sizeof OUTPUT - 1}},
    {"memory", {MEMORY, sizeof MEMORY - 1}},
};

static void check_error(enum tide_code code, const struct tide_err *err)
{
    struct str msg = str_from(err->msg);

    MUST(code == TIDE_INVALID || code == TIDE_FAILED || code == TIDE_TOO_BIG);
    MUST(msg.len > 0 && !memchr(msg.ptr, '\n', msg.len) && str_is_utf8(msg, NULL));
}

static enum tide_code evaluate(const struct expr *e, struct buf *out)
{
    static const struct expr_limits limits = {20000, 1 << 20};
    struct tide_err err = {0};
    struct arena a = ARENA_INIT;
    struct json *v = NULL;
    enum tide_code code = expr_eval(e, values, 2, &limits, out, &err);

    if (code)
        check_error(code, &err);
    else
        MUST(json_parse(&a, buf_view(out), NULL, &v, NULL, NULL) == TIDE_OK);
    arena_done(&a);
    return code;
}

static enum tide_code compile(char kind, struct str text, struct expr **ret_expr, struct tide_err *err)
{
    struct buf lua = BUF_INIT(1 << 22);
    enum tide_code code;

    if (kind != 'p')
        return kind == 'e' ? expr_compile(text, ret_expr, err) : expr_compile_body(text, ret_expr, err);
    code = expr_from_python(text, true, &lua, err);
    if (!code)
        MUST(expr_compile(buf_view(&lua), ret_expr, err) == TIDE_OK);
    buf_done(&lua);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = BUF_INIT(1 << 22), again = BUF_INIT(1 << 22);
    struct tide_err err = {0};
    struct expr *e = NULL;
    enum tide_code code;

    if (size == 0 || size > 20000)
        return 0;
    code = compile((char)data[0], (struct str){(const char *)data + 1, size - 1}, &e, &err);
    if (code) {
        check_error(code, &err);
        return 0;
    }
    if (evaluate(e, &once) == TIDE_OK && evaluate(e, &again) == TIDE_OK)
        MUST(str_eq(buf_view(&once), buf_view(&again)));
    expr_free(e);
    buf_done(&once);
    buf_done(&again);
    return 0;
}
