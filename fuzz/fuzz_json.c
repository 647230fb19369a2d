/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes into the JSON reader. What it takes must come out the same again: written, read and written once more, by
 * way of the indented form too; every string must decode, and quoting the decoded text must decode to the same.
 */
#include "base/json.h"
#include "base/scan.h"
#include "fuzz.h"

static void check_text(struct arena *a, struct str text)
{
    AUTO(buf_done) struct buf quoted = BUF_INIT(6 * text.len + 2);
    struct json *v;

    MUST(str_is_utf8(text, NULL));
    json_quote(&quoted, text);
    MUST(!quoted.failed);
    MUST(json_parse(a, buf_view(&quoted), NULL, &v, NULL, NULL) == TIDE_OK);
    MUST(v->type == JSON_STRING && str_eq(json_text(a, v), text));
}

static void check_value(struct arena *a, const struct json *v)
{
    int64_t ignored;
    uint32_t count = 0;

    if (v->type == JSON_STRING)
        check_text(a, json_text(a, v));
    json_int(v, &ignored);
    for (const struct json *item = v->first; item; item = item->next, count++) {
        struct str key = json_key_text(a, item);

        if (v->type == JSON_OBJECT) {
            check_text(a, key);
            MUST(json_key_eq(item, key));
        }
        check_value(a, item);
    }
    MUST(count == v->count);
}

/* Reads `text`, which must be valid, and writes it compactly. */
static void rewrite(struct arena *a, struct str text, struct buf *out)
{
    struct json *v;
    bool compact;

    MUST(json_parse(a, text, NULL, &v, &compact, NULL) == TIDE_OK);
    json_write(out, v);
    MUST(!out->failed && compact == str_eq(text, buf_view(out)));
}

static void check_error(const struct tide_err *err)
{
    char clean[sizeof(err->msg)];

    MUST(err->code == TIDE_INVALID && err->msg[0] && str_is_utf8(str_from(err->msg), NULL));
    memcpy(clean, err->msg, sizeof(clean));
    clean_line(clean, strlen(clean));
    MUST(strcmp(clean, err->msg) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf once = BUF_INIT(size), twice = BUF_INIT(size), pretty = BUF_INIT(400 * size + 1000);
    AUTO(buf_done) struct buf flat = BUF_INIT(size);
    struct str text = {(const char *)data, size};
    struct tide_err err = {0};
    struct json *v;

    if (json_parse(&a, text, NULL, &v, NULL, &err)) {
        check_error(&err);
        return 0;
    }
    check_value(&a, v);
    json_write_pretty(&pretty, v);
    MUST(!pretty.failed);
    rewrite(&a, text, &once);
    rewrite(&a, buf_view(&once), &twice);
    rewrite(&a, buf_view(&pretty), &flat);
    MUST(str_eq(buf_view(&once), buf_view(&twice)));
    MUST(str_eq(buf_view(&once), buf_view(&flat)));
    return 0;
}
