/* SPDX-License-Identifier: Apache-2.0 */
/* Output to JSON and back, byte for byte. */
#include "program/result.h"

#define PREVIEW_WHOLE ((size_t)64 << 10) /* up to here "output" is all of it, though base64 has it as well */
#define PREVIEW_CUT ((size_t)16 << 10)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(struct buf *out, struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    for (size_t i = 0; i < s.len; i += 3) {
        size_t left = s.len - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0u);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                        left > 2 ? digits[v & 63] : '='};

        buf_add(out, four, sizeof(four));
    }
}

static int digit_value(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Decodes what put_base64() wrote; false when it is anything else. `out` has room for 3/4 of it. */
static bool get_base64(struct str s, char *out, size_t *ret_len)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i += 4) {
        int pad = 0;
        unsigned v = 0;

        for (size_t k = 0; k < 4; k++) {
            int d = i + k < s.len ? digit_value(s.ptr[i + k]) : -1;
            bool is_pad = i + 4 == s.len && k >= 2 && s.ptr[i + k] == '=';

            if (d < 0 && !is_pad)
                return false;
            pad += is_pad;
            v = v << 6 | (is_pad ? 0u : (unsigned)d);
        }
        for (int k = 0; k < 3 - pad; k++)
            out[n++] = (char)(v >> (16 - 8 * k) & 255);
    }
    *ret_len = n;
    return true;
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
    char *bytes;

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
    bytes = arena_alloc(a, encoded.len / 4 * 3 + 3);
    if (!get_base64(encoded, bytes, &ret_output->len))
        return tide_fail(err, TIDE_CORRUPT, "the stored output is not base64");
    ret_output->ptr = bytes;
    return TIDE_OK;
}
