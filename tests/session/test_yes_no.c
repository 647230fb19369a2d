/* SPDX-License-Identifier: Apache-2.0 */
/* A yes and a no are the same words wherever they are asked for, and what is neither decides nothing. */
#include "kit.h"

#include "base/yes_no.h"

static enum yes_no read_text(const char *json)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    assert_int_equal(TIDE_OK, json_parse(&a, str_from(json), NULL, &v, NULL, NULL));
    return yes_no_read(&a, v);
}

static const struct {
    const char *json;
    enum yes_no want;
} rows[] = {
    {"\"yes\"", YES_NO_YES},
    {"\"y\"", YES_NO_YES},
    {"\"true\"", YES_NO_YES},
    {"\"ok\"", YES_NO_YES},
    {"\"allow\"", YES_NO_YES},
    {"\"always\"", YES_NO_YES},
    {"\"approve\"", YES_NO_YES},
    {"\"approved\"", YES_NO_YES},
    {"\"no\"", YES_NO_NO},
    {"\"n\"", YES_NO_NO},
    {"\"false\"", YES_NO_NO},
    {"\"deny\"", YES_NO_NO},
    {"\"reject\"", YES_NO_NO},
    {"\"rejected\"", YES_NO_NO},
    {"\"YES\"", YES_NO_YES},
    {"\"Deny\"", YES_NO_NO},
    {"\" \\t yes \\r\\n\"", YES_NO_YES},
    {"\"\\nno \"", YES_NO_NO},
    {"\"\\u0079es\"", YES_NO_YES},
    {"true", YES_NO_YES},
    {"false", YES_NO_NO},
    {"{\"decision\":\"allow\"}", YES_NO_YES},
    {"{\"decision\":\" DENY \",\"reason\":\"yes\"}", YES_NO_NO},
    {"{\"decision\":true}", YES_NO_YES},
    {"{\"decision\":false}", YES_NO_NO},
    {"\"\"", YES_NO_NEITHER},
    {"\"   \"", YES_NO_NEITHER},
    {"\"yes please\"", YES_NO_NEITHER},
    {"\"ye\"", YES_NO_NEITHER},
    {"\"not in this directory\"", YES_NO_NEITHER},
    {"null", YES_NO_NEITHER},
    {"1", YES_NO_NEITHER},
    {"[\"yes\"]", YES_NO_NEITHER},
    {"{}", YES_NO_NEITHER},
    {"{\"reason\":\"yes\"}", YES_NO_NEITHER},
    {"{\"decision\":1}", YES_NO_NEITHER},
    {"{\"decision\":\"later\"}", YES_NO_NEITHER},
    {"{\"decision\":{\"decision\":\"yes\"}}", YES_NO_NEITHER},
};

static void an_answer_is_shown_with_its_reason_in_words(void **state)
{
    static const struct {
        const char *json, *want;
    } shown[] = {
        {"\"yes\"", "yes"},
        {"false", "false"},
        {"{\"decision\":\"no\",\"reason\":\"too early\"}", "no: too early"},
        {"{\"decision\":\"no\"}", "no"},
        {"{\"decision\":\"later\",\"reason\":\"why\"}", "{\"decision\":\"later\",\"reason\":\"why\"}"},
        {"{\"a\":1}", "{\"a\":1}"},
        {"null", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        struct json *v = NULL;
        struct str got;

        assert_int_equal(TIDE_OK, json_parse(&a, str_from(shown[i].json), NULL, &v, NULL, NULL));
        got = yes_no_shown(&a, v);
        assert_int_equal(got.len, strlen(shown[i].want));
        assert_memory_equal(got.ptr, shown[i].want, got.len);
    }
}

static void answers_are_a_yes_a_no_or_neither(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum yes_no got = read_text(rows[i].json);

        if (got != rows[i].want)
            fail_msg("%s: %d, not %d", rows[i].json, (int)got, (int)rows[i].want);
    }
}

static void no_answer_decides_nothing(void **state)
{
    (void)state;
    assert_int_equal(YES_NO_NEITHER, yes_no_read(NULL, NULL));
    assert_int_equal(YES_NO_NEITHER, yes_no_word(str_from(NULL)));
    assert_int_equal(YES_NO_NEITHER, yes_no_word((struct str){"yes", 4})); /* NUL is no space */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_a_yes_a_no_or_neither),
        cmocka_unit_test(no_answer_decides_nothing),
        cmocka_unit_test(an_answer_is_shown_with_its_reason_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
