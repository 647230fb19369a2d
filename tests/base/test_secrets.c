/* SPDX-License-Identifier: Apache-2.0 */
/* Known values are found in every form that texts bring them in, and nothing else is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/needles.h"
#include "base/secrets.h"

#define KEY "sk-live/Zq9+\"x\xc3\xa9 7"
#define PLAIN_KEY "sk-live-4f9a8c21"

static struct secrets *two(void)
{
    struct secrets *s = secrets_new();

    assert_true(secrets_add(s, STR("API_KEY"), STR(PLAIN_KEY)));
    assert_true(secrets_add(s, STR("odd name"), STR(KEY)));
    return s;
}

static const char *clean(struct secrets *s, const char *text, struct buf *out)
{
    buf_clear(out);
    if (!secrets_clean(s, str_from(text), out))
        buf_add_str(out, str_from(text));
    return buf_cstr(out);
}

static void every_form_is_replaced_by_its_mark(void **state)
{
    static const struct {
        const char *name, *text, *want;
    } rows[] = {
        {"plain", "a " PLAIN_KEY " b", "a [redacted:API_KEY] b"},
        {"alone", PLAIN_KEY, "[redacted:API_KEY]"},
        {"twice", PLAIN_KEY PLAIN_KEY, "[redacted:API_KEY][redacted:API_KEY]"},
        {"odd characters", "<" KEY ">", "<[redacted:odd_name]>"},
        {"as JSON", "\"sk-live/Zq9+\\\"x\xc3\xa9 7\"", "\"[redacted:odd_name]\""},
        {"as JSON, slashes and letters escaped", "sk-live\\/Zq9+\\\"x\\u00e9 7", "[redacted:odd_name]"},
        {"every character as \\u", "\\u0073k-live-4f9\\u00618c21.", "[redacted:API_KEY]."},
        {"JSON in JSON", "{\\\"k\\\":\\\"sk-live/Zq9+\\\\\\\"x\\\\u00E9 7\\\"}",
         "{\\\"k\\\":\\\"[redacted:odd_name]\\\"}"},
        {"URL, upper case", "?k=sk-live%2FZq9%2B%22x%C3%A9%207&b", "?k=[redacted:odd_name]&b"},
        {"URL, lower case", "?k=sk-live%2fZq9%2b%22x%c3%a9%207&b", "?k=[redacted:odd_name]&b"},
        {"URL, needless", "%73%6b-live-4f9a8c21", "[redacted:API_KEY]"},
        {"form", "k=sk-live%2FZq9%2B%22x%C3%A9+7", "k=[redacted:odd_name]"},
        {"URL twice", "%2573k-live-4f9a8c21", "[redacted:API_KEY]"},
        {"URL in JSON", "\\\"%73k-live-4f9a8c21\\\"", "\\\"[redacted:API_KEY]\\\""},
        {"base64", "c2stbGl2ZS00ZjlhOGMyMQ==", "[redacted:API_KEY]=="},
        {"base64, one byte before it", "OnNrLWxpdmUtNGY5YThjMjE=", "O[redacted:API_KEY]="},
        {"base64, two bytes before it", "YTpzay1saXZlLTRmOWE4YzIx", "YT[redacted:API_KEY]"},
        {"base64 in lines", "ICAgICAgICAgICAgICBza\r\ny1saXZlLTRmOWE4YzIx", "ICAgICAgICAgICAgIC[redacted:API_KEY]"},
        {"at a line's end", "a=" PLAIN_KEY "\nb=2", "a=[redacted:API_KEY]\nb=2"},
        {"at a line's end, CR LF", PLAIN_KEY "\r\nb=2", "[redacted:API_KEY]\r\nb=2"},
        {"at a line's end, escaped", PLAIN_KEY "\\nb=2 %73k-live-4f9a8c21%0Ab",
         "[redacted:API_KEY]\\nb=2 [redacted:API_KEY]%0Ab"},
        {"at a line's beginning", "abcdefghijklmnopqrst\n" PLAIN_KEY "\n" PLAIN_KEY,
         "abcdefghijklmnopqrst\n[redacted:API_KEY]\n[redacted:API_KEY]"},
        {"an escape at its end", "\\u0073k-live-4f9a8c2\\u0031\nsecond %73k-live-4f9a8c2%31\nthird",
         "[redacted:API_KEY]\nsecond [redacted:API_KEY]\nthird"},
        {"base64 at a line's end", "YTpzay1saXZlLTRmOWE4YzIx\nYTpzay1saXZlLTRmOWE4YzIx\nline",
         "YT[redacted:API_KEY]\nYT[redacted:API_KEY]\nline"},
        {"not it", "sk-live-4f9a8c2 sk-live-4f9a8c20", "sk-live-4f9a8c2 sk-live-4f9a8c20"},
        {"escapes that are none", "100% \\q %zz \\u12 \\ud800 %", "100% \\q %zz \\u12 \\ud800 %"},
        {"nothing", "", ""},
    };
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    struct secrets *s = two();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *got = clean(s, rows[i].text, &out);

        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: %s became %s", rows[i].name, rows[i].text, got);
    }
    secrets_free(s);
}

static void base64_for_urls_is_found(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("K"), STR("\xfb\xff\xfe?~>key\xff")));
    assert_string_equal(clean(s, "x=-__-P34-a2V5_w", &out), "x=[redacted:K]");
    assert_string_equal(clean(s, "x=+//+P34+a2V5/w", &out), "x=[redacted:K]");
    secrets_free(s);
}

/* KEY with a character behind the first plane and a tag, as common writers of JSON put it, and that in base64. */
static void base64_of_json_is_found(void **state)
{
    static const struct {
        const char *name, *text, *want;
    } rows[] = {
        {"as JavaScript does, 6 before it", "eyJrIjoiYS9cImJcXDzDqVxu8J+UkT5cdTAwMDEmeiJ9", "eyJrIjoi[redacted:K]J9"},
        {"as JavaScript does, 7 before it",
         "eyJrayI6ImEvXCJiXFw8w6lcbvCflJE+XHUwMDAxJnoifQ==", "eyJrayI6I[redacted:K]ifQ=="},
        {"as JavaScript does, 8 before it",
         "eyJra2siOiJhL1wiYlxcPMOpXG7wn5SRPlx1MDAwMSZ6In0=", "eyJra2siOi[redacted:K]In0="},
        {"as Python does, 6 before it", "eyJrIjoiYS9cImJcXDxcdTAwZTlcblx1ZDgzZFx1ZGQxMT5cdTAwMDEmeiJ9",
         "eyJrIjoi[redacted:K]J9"},
        {"as Python does, 7 before it",
         "eyJrayI6ImEvXCJiXFw8XHUwMGU5XG5cdWQ4M2RcdWRkMTE+XHUwMDAxJnoifQ==", "eyJrayI6I[redacted:K]ifQ=="},
        {"as Python does, 8 before it",
         "eyJra2siOiJhL1wiYlxcPFx1MDBlOVxuXHVkODNkXHVkZDExPlx1MDAwMSZ6In0=", "eyJra2siOi[redacted:K]In0="},
        {"as PHP does, 6 before it",
         "eyJrIjoiYVwvXCJiXFw8XHUwMGU5XG5cdWQ4M2RcdWRkMTE+XHUwMDAxJnoifQ==", "eyJrIjoi[redacted:K]ifQ=="},
        {"as PHP does, 7 before it",
         "eyJrayI6ImFcL1wiYlxcPFx1MDBlOVxuXHVkODNkXHVkZDExPlx1MDAwMSZ6In0=", "eyJrayI6I[redacted:K]In0="},
        {"as PHP does, 8 before it", "eyJra2siOiJhXC9cImJcXDxcdTAwZTlcblx1ZDgzZFx1ZGQxMT5cdTAwMDEmeiJ9",
         "eyJra2siOi[redacted:K]J9"},
        {"with slashes, 6 before it", "eyJrIjoiYVwvXCJiXFw8w6lcbvCflJE+XHUwMDAxJnoifQ==", "eyJrIjoi[redacted:K]ifQ=="},
        {"with slashes, 7 before it", "eyJrayI6ImFcL1wiYlxcPMOpXG7wn5SRPlx1MDAwMSZ6In0=", "eyJrayI6I[redacted:K]In0="},
        {"with slashes, 8 before it", "eyJra2siOiJhXC9cImJcXDzDqVxu8J+UkT5cdTAwMDEmeiJ9", "eyJra2siOi[redacted:K]J9"},
        {"as Go does, 6 before it", "eyJrIjoiYS9cImJcXFx1MDAzY8OpXG7wn5SRXHUwMDNlXHUwMDAxXHUwMDI2eiJ9",
         "eyJrIjoi[redacted:K]J9"},
        {"as Go does, 7 before it",
         "eyJrayI6ImEvXCJiXFxcdTAwM2PDqVxu8J+UkVx1MDAzZVx1MDAwMVx1MDAyNnoifQ==", "eyJrayI6I[redacted:K]ifQ=="},
        {"as Go does, 8 before it",
         "eyJra2siOiJhL1wiYlxcXHUwMDNjw6lcbvCflJFcdTAwM2VcdTAwMDFcdTAwMjZ6In0=", "eyJra2siOi[redacted:K]In0="},
    };
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("K"), STR("a/\"b\\<é\n\U0001f511>\x01&z")));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *got = clean(s, rows[i].text, &out);

        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: %s became %s", rows[i].name, rows[i].text, got);
    }
    secrets_free(s);
}

static void a_value_that_looks_escaped_is_found_as_it_is(void **state)
{
    static const char value[] = "a%41b\\n\\u0041c%2541";
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("K"), STR("a%41b\\n\\u0041c%2541")));
    assert_string_equal(clean(s, value, &out), "[redacted:K]");
    assert_string_equal(clean(s, "\\\"a%41b\\\\n\\\\u0041c%2541", &out), "\\\"[redacted:K]");
    secrets_free(s);
}

static void lines_of_a_value_are_found_by_themselves(void **state)
{
    static const char pem[] =
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("PEM"), str_from(pem)));
    assert_string_equal(clean(s, "head: AQEFAASCBKcwggSjAgEAAoIB", &out), "head: [redacted:PEM]");
    assert_string_equal(clean(s, "-----BEGIN KEY-----", &out), "-----BEGIN KEY-----");
    assert_string_equal(clean(s,
                              "\\n-----BEGIN KEY-----\\nMIIEvQIBADANBgkqhkiG9w0B\\nAQEFAASCBKcwggSjAgEAAoIB\\n-----END "
                              "KEY-----.",
                              &out),
                        "\\n[redacted:PEM].");
    secrets_free(s);
}

static void what_cannot_be_a_secret_is_refused(void **state)
{
    struct secrets *s = secrets_new();

    (void)state;
    assert_false(secrets_add(s, STR("K"), STR("seven77")));
    assert_false(secrets_add(s, STR("K"), STR("  seven77 \n")));
    assert_false(secrets_add(s, STR("K"), STR("redacted")));
    assert_false(secrets_find(s, STR("anything at all")));
    assert_false(secrets_find(NULL, STR("anything at all")));
    assert_true(secrets_add(s, STR("K"), STR("eight888")));
    assert_true(secrets_add(s, STR("K"), STR("eight888")));
    assert_true(secrets_find(s, STR("xeight888")));
    secrets_free(s);
    secrets_free(NULL);
}

static void a_name_that_holds_the_value_is_not_shown(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(100);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("MY_PASSWORD"), STR("PASSWORD")));
    assert_string_equal(clean(s, "x PASSWORD", &out), "x [redacted]");
    secrets_free(s);
}

static void marks_that_do_not_fit_become_asterisks(void **state)
{
    struct buf out = BUF_INIT(20);
    struct secrets *s = two();

    (void)state;
    assert_true(secrets_clean(s, STR(PLAIN_KEY "abcd"), &out));
    assert_string_equal(buf_cstr(&out), "********abcd");
    buf_done(&out);
    secrets_free(s);
}

static void overlapping_secrets_become_one_mark(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(1000);
    struct secrets *s = secrets_new();

    (void)state;
    assert_true(secrets_add(s, STR("A"), STR("abcdefghij")));
    assert_true(secrets_add(s, STR("B"), STR("ghijklmnop")));
    assert_true(secrets_add(s, STR("C"), STR("abcdefghijkl")));
    assert_string_equal(clean(s, "-abcdefghijklmnop-", &out), "-[redacted:C]-");
    secrets_free(s);
}

/* ---- pieces ---- */

static void a_stream_shows_no_secret_however_it_is_cut(void **state)
{
    static const char text[] =
        "say " PLAIN_KEY ", \\u0073k-live-4f9a8c21 %73k-live-4f9a8c21 and c2stbGl2ZS00ZjlhOGMyMQ== 100% done s";
    AUTO(buf_done) struct buf want = BUF_INIT(4096), got = BUF_INIT(4096);
    struct secrets *s = two();

    (void)state;
    clean(s, text, &want);
    for (size_t first = 0; first <= strlen(text); first++) {
        for (size_t step = 1; step <= 7; step += 3) {
            struct secret_stream stream = SECRET_STREAM_INIT;

            buf_clear(&got);
            secret_stream_put(s, &stream, (struct str){text, first}, false, &got);
            for (size_t at = first; at < strlen(text); at += step)
                secret_stream_put(s, &stream,
                                  (struct str){text + at, strlen(text) - at < step ? strlen(text) - at : step}, false,
                                  &got);
            secret_stream_put(s, &stream, STR(""), true, &got);
            assert_string_equal(buf_cstr(&got), buf_cstr(&want));
            buf_done(&stream.held);
        }
    }
    secrets_free(s);
}

static void a_stream_holds_back_only_what_may_be_a_secret(void **state)
{
    struct secret_stream stream = SECRET_STREAM_INIT;
    AUTO(buf_done) struct buf got = BUF_INIT(4096);
    struct secrets *s = two();

    (void)state;
    secret_stream_put(s, &stream, STR("100% of the words so far, sk-l"), false, &got);
    assert_string_equal(buf_cstr(&got), "100% of the words so far, ");
    secret_stream_put(s, &stream, STR("ane "), false, &got);
    assert_string_equal(buf_cstr(&got), "100% of the words so far, sk-lane ");
    buf_done(&stream.held);
    secrets_free(s);
}

static void a_text_that_was_cut_keeps_no_half(void **state)
{
    char full[14] = "key=sk-live-4", room[40] = "key=sk-live-4";
    struct secrets *s = two();

    (void)state;
    assert_int_equal(secrets_cut_end(s, STR("the key sk-live-4f")), 10);
    assert_int_equal(secrets_cut_end(s, STR("the key sk-")), 0);
    assert_int_equal(secrets_cut_end(s, STR("the key")), 0);
    assert_int_equal(secrets_cut_begin(s, STR("4f9a8c21 is the end")), 8);
    assert_int_equal(secrets_cut_begin(s, STR("c21 is the end")), 0);
    assert_int_equal(secrets_cut_begin(s, STR("")), 0);
    secrets_clean_line(s, full, sizeof(full));
    assert_string_equal(full, "key=");
    secrets_clean_line(s, room, sizeof(room));
    assert_string_equal(room, "key=sk-live-4");
    secrets_free(s);
}

/* ---- against the plain way ---- */

static uint32_t seed = 1;

static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void searching_is_as_the_plain_way_has_it(void **state)
{
    char hay[400], words[12][20];
    struct str texts[12];

    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t n = 1 + pick(12), len = pick(sizeof(hay)), letters = 1 + pick(3), at = 0, which, from = 0;
        struct needles *m;

        for (size_t i = 0; i < n; i++) {
            texts[i] = (struct str){words[i], NEEDLE_MIN + pick(12)};
            for (size_t k = 0; k < texts[i].len; k++)
                words[i][k] = (char)('a' + pick((uint32_t)letters));
        }
        for (size_t k = 0; k < len; k++)
            hay[k] = (char)('a' + pick((uint32_t)letters));
        m = needles_new(texts, n);
        for (size_t want = 0; want < len; want++) {
            size_t longest = 0;

            for (size_t i = 0; i < n; i++)
                if (texts[i].len <= len - want && memcmp(hay + want, texts[i].ptr, texts[i].len) == 0 &&
                    texts[i].len > longest)
                    longest = texts[i].len;
            if (!longest)
                continue;
            assert_true(needles_find(m, (struct str){hay, len}, from, &at, &which));
            assert_int_equal(at, want);
            assert_int_equal(texts[which].len, longest);
            from = at + 1;
        }
        assert_false(needles_find(m, (struct str){hay, len}, from, &at, &which));
        needles_free(m);
    }
}

static void what_is_held_is_looked_for_until_it_is_released(void **state)
{
    struct secrets *s = secrets_new();
    struct buf out = BUF_INIT(1 << 20);

    (void)state;
    assert_true(secrets_hold(s, STR("ONE"), STR("first-value-1")));
    assert_true(secrets_hold(s, STR("TWO"), STR("second-value-2")));
    assert_true(secrets_hold(s, STR("OTHER"), STR("first-value-1")));
    assert_true(secrets_add(s, STR("STAYS"), STR("second-value-2")));
    assert_string_equal(clean(s, "first-value-1 second-value-2", &out), "[redacted:ONE] [redacted:TWO]");
    secrets_release(s, STR("first-value-1"));
    assert_string_equal(clean(s, "first-value-1 second-value-2", &out), "[redacted:ONE] [redacted:TWO]");
    secrets_release(s, STR("first-value-1"));
    secrets_release(s, STR("second-value-2"));
    assert_string_equal(clean(s, "first-value-1 second-value-2", &out), "first-value-1 [redacted:TWO]");
    assert_false(secrets_find(s, STR("first-value-1")));
    buf_done(&out);
    secrets_free(s);
}

/* More than may be looked for at once, one after the other: each is, and none is left when all are gone. */
static void a_release_makes_room(void **state)
{
    struct secrets *s = secrets_new();
    char value[40];

    (void)state;
    for (int i = 0; i < SECRETS_MAX; i++) {
        snprintf(value, sizeof value, "value-number-%d-of-many", i);
        assert_true(secrets_hold(s, STR("N"), str_from(value)));
    }
    assert_false(secrets_hold(s, STR("N"), STR("one more than may be")));
    secrets_release(s, STR("value-number-7-of-many"));
    assert_true(secrets_hold(s, STR("N"), STR("one more than may be")));
    assert_true(secrets_find(s, STR("a one more than may be b")));
    assert_false(secrets_find(s, STR("a value-number-7-of-many b")));
    for (int i = 0; i < SECRETS_MAX; i++) {
        snprintf(value, sizeof value, "value-number-%d-of-many", i);
        if (i != 7)
            secrets_release(s, str_from(value));
    }
    secrets_release(s, STR("one more than may be"));
    assert_false(secrets_find(s, STR("value-number-1-of-many, one more than may be")));
    secrets_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_replaced_by_its_mark),
        cmocka_unit_test(base64_for_urls_is_found),
        cmocka_unit_test(base64_of_json_is_found),
        cmocka_unit_test(a_value_that_looks_escaped_is_found_as_it_is),
        cmocka_unit_test(lines_of_a_value_are_found_by_themselves),
        cmocka_unit_test(what_cannot_be_a_secret_is_refused),
        cmocka_unit_test(a_name_that_holds_the_value_is_not_shown),
        cmocka_unit_test(marks_that_do_not_fit_become_asterisks),
        cmocka_unit_test(overlapping_secrets_become_one_mark),
        cmocka_unit_test(a_stream_shows_no_secret_however_it_is_cut),
        cmocka_unit_test(a_stream_holds_back_only_what_may_be_a_secret),
        cmocka_unit_test(a_text_that_was_cut_keeps_no_half),
        cmocka_unit_test(searching_is_as_the_plain_way_has_it),
        cmocka_unit_test(what_is_held_is_looked_for_until_it_is_released),
        cmocka_unit_test(a_release_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
