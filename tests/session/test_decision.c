/* SPDX-License-Identifier: Apache-2.0 */
/* A yes and a no are the same words wherever they are asked for, and what is neither decides nothing. */
#include "kit.h"

#include "session/yes_no.h"

static enum decision read_text(const char *json)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    assert_int_equal(TIDE_OK, json_parse(&a, str_from(json), NULL, &v, NULL, NULL));
    return decision_read(&a, v);
}

static const struct {
    const char *json;
    enum decision want;
} rows[] = {
    {"\"yes\"", DECISION_YES},
    {"\"y\"", DECISION_YES},
    {"\"true\"", DECISION_YES},
    {"\"ok\"", DECISION_YES},
    {"\"allow\"", DECISION_YES},
    {"\"always\"", DECISION_YES},
    {"\"approve\"", DECISION_YES},
    {"\"approved\"", DECISION_YES},
    {"\"no\"", DECISION_NO},
    {"\"n\"", DECISION_NO},
    {"\"false\"", DECISION_NO},
    {"\"deny\"", DECISION_NO},
    {"\"reject\"", DECISION_NO},
    {"\"rejected\"", DECISION_NO},
    {"\"YES\"", DECISION_YES},
    {"\"Deny\"", DECISION_NO},
    {"\" \\t yes \\r\\n\"", DECISION_YES},
    {"\"\\nno \"", DECISION_NO},
    {"\"\\u0079es\"", DECISION_YES},
    {"true", DECISION_YES},
    {"false", DECISION_NO},
    {"{\"decision\":\"allow\"}", DECISION_YES},
    {"{\"decision\":\" DENY \",\"reason\":\"yes\"}", DECISION_NO},
    {"{\"decision\":true}", DECISION_YES},
    {"{\"decision\":false}", DECISION_NO},
    {"\"\"", DECISION_NONE},
    {"\"   \"", DECISION_NONE},
    {"\"yes please\"", DECISION_NONE},
    {"\"ye\"", DECISION_NONE},
    {"\"not in this directory\"", DECISION_NONE},
    {"null", DECISION_NONE},
    {"1", DECISION_NONE},
    {"[\"yes\"]", DECISION_NONE},
    {"{}", DECISION_NONE},
    {"{\"reason\":\"yes\"}", DECISION_NONE},
    {"{\"decision\":1}", DECISION_NONE},
    {"{\"decision\":\"later\"}", DECISION_NONE},
    {"{\"decision\":{\"decision\":\"yes\"}}", DECISION_NONE},
};

static void answers_are_a_yes_a_no_or_neither(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum decision got = read_text(rows[i].json);

        if (got != rows[i].want)
            fail_msg("%s: %d, not %d", rows[i].json, (int)got, (int)rows[i].want);
    }
}

static void no_answer_decides_nothing(void **state)
{
    (void)state;
    assert_int_equal(DECISION_NONE, decision_read(NULL, NULL));
    assert_int_equal(DECISION_NONE, decision_word(str_from(NULL)));
    assert_int_equal(DECISION_NONE, decision_word((struct str){"yes", 4})); /* NUL is no space */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_a_yes_a_no_or_neither),
        cmocka_unit_test(no_answer_decides_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
