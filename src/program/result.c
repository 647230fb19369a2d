/* SPDX-License-Identifier: Apache-2.0 */
/* Output to JSON and back, byte for byte. */
#include "program/result.h"

#include <sodium.h>

#define PREVIEW_WHOLE ((size_t)64 << 10) /* up to here "output" is all of it, though base64 has it as well */
#define PREVIEW_CUT ((size_t)16 << 10)

static void put_base64(struct buf *out, struct str s)
{
    size_t room = sodium_base64_encoded_len(s.len, sodium_base64_VARIANT_ORIGINAL);
    char *text = buf_reserve(out, room);

    if (!text)
        return;
    sodium_bin2base64(text, room, (const unsigned char *)s.ptr, s.len, sodium_base64_VARIANT_ORIGINAL);
    out->len += room - 1; /* without its NUL */
}

/* How long the text becomes in quotes, roughly: whether escapes would make it longer than base64. */
static bool escapes_heavily(struct str s)
{
    size_t extra = 0;

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        extra += c == '"' || c == '\\' || c == '\n' || c == '\t' ? 1 : c < 0x20 ? 5 : 0;
    }
    return s.len > PREVIEW_WHOLE && extra > s.len / 3;
}

void result_write(struct buf *ret_json, int exit_status, struct str output)
{
    struct json_out o = json_out_to(ret_json);
    bool valid = str_is_utf8(output, NULL), exact = valid && !escapes_heavily(output);
    struct str shown = exact || output.len <= PREVIEW_WHOLE ? output : (struct str){output.ptr, PREVIEW_CUT};

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("exit"), exit_status);
    json_out_kstr(&o, STR("output"), shown);
    if (!exact) {
        json_out_key(&o, STR("output_base64"));
        json_out_raw(&o, STR("\""));
        put_base64(ret_json, output);
        buf_add_char(ret_json, '"');
    }
    if (!valid)
        json_out_kbool(&o, STR("invalid_utf8"), true);
    json_out_end(&o, '}');
}

enum tide_code result_read(struct arena *a, struct str text, int *ret_exit, struct str *ret_output,
                           struct tide_err *err)
{
    struct json *json = NULL;
    const struct json *exact;
    struct str encoded;
    unsigned char *bytes;
    size_t room;

    if (json_parse(a, text, NULL, &json, NULL, err))
        return err->code;
    if (json->type == JSON_NULL) { /* somebody said that it happened: that is all there is */
        *ret_exit = 0;
        *ret_output = STR("");
        return TIDE_OK;
    }
    *ret_exit = (int)json_get_int(json, STR("exit"), 0);
    exact = json_get(json, STR("output_base64"));
    if (!exact || exact->type != JSON_STRING) {
        *ret_output = json_get(json, STR("output")) ? json_get_text(a, json, STR("output")) : text;
        return TIDE_OK;
    }
    encoded = json_text(a, exact);
    room = encoded.len / 4 * 3 + 3;
    bytes = arena_alloc(a, room);
    if (sodium_base642bin(bytes, room, encoded.ptr, encoded.len, NULL, &ret_output->len, NULL,
                          sodium_base64_VARIANT_ORIGINAL))
        return tide_fail(err, TIDE_CORRUPT, "the stored output is not base64");
    ret_output->ptr = (const char *)bytes;
    return TIDE_OK;
}
