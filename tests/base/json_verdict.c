/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells what our JSON reader makes of documents, for json_node.test.sh. Input: for each document its length in decimal,
 * a newline, its bytes. Output: for each document one line,
 *
 *     ok TAB compact (1 or 0) TAB the tree as json_write writes it TAB the tree with every string decoded and quoted anew
 *     no TAB message
 */
#include <stdio.h>

#include "base/json.h"

#define MAX_BYTES ((size_t)1 << 24)

static void requote(struct json_out *o, struct arena *a, const struct json *v)
{
    bool object = v->type == JSON_OBJECT;

    if (v->type == JSON_STRING)
        json_out_str(o, json_text(a, v));
    if (v->type < JSON_STRING)
        json_out_raw(o, json_source(v));
    if (v->type <= JSON_STRING)
        return;
    json_out_begin(o, object ? '{' : '[');
    for (const struct json *item = v->first; item; item = item->next) {
        if (object)
            json_out_key(o, json_key_text(a, item));
        requote(o, a, item);
    }
    json_out_end(o, object ? '}' : ']');
}

static void judge(struct arena *a, struct buf *out, struct str text)
{
    struct json_out again = json_out_to(out);
    struct tide_err err;
    struct json *v;
    bool compact;

    if (json_parse(a, text, NULL, &v, &compact, &err)) {
        buf_addf(out, "no\t%s\n", err.msg);
        return;
    }
    buf_addf(out, "ok\t%d\t", compact);
    json_write(out, v);
    buf_add_char(out, '\t');
    requote(&again, a, v);
    buf_add_char(out, '\n');
}

int main(void)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT(4 * MAX_BYTES);
    size_t n;

    while (scanf("%zu", &n) == 1 && getchar() == '\n' && n <= MAX_BYTES) {
        char *text = mem_alloc(n); /* exactly as long as the document: a sanitizer sees a look past its end */

        if (fread(text, 1, n, stdin) != n)
            return 1;
        judge(&a, &out, (struct str){text, n});
        fwrite(out.ptr, 1, out.len, stdout);
        free(text);
        buf_clear(&out);
        arena_reset(&a);
    }
    return feof(stdin) && !out.failed && fflush(stdout) == 0 ? 0 : 1;
}
