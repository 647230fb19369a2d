/* SPDX-License-Identifier: Apache-2.0 */
#include "base/word_search.h"
#include "kit.h"

static bool finds(const char *words, const char *text)
{
    const struct str texts[] = {str_from(text), STR("another")};
    struct word_search w;
    bool found;

    word_search_init(&w, words);
    found = word_search_finds(&w, texts, 2);
    word_search_done(&w);
    return found;
}

static bool finds_json(const char *words, const char *kind, const char *json)
{
    struct word_search w;
    bool found;

    word_search_init(&w, words);
    found = word_search_finds_json(&w, str_from(kind), str_from(json));
    word_search_done(&w);
    return found;
}

static void each_word_is_part_of_a_text(void **state)
{
    static const struct {
        const char *words, *text;
        bool want;
    } rows[] = {
        {"", "anything", true},
        {"  \t", "", true},
        {"tide", "Tides", true},
        {"TIDE", "tides", true},
        {"tide moon", "The MOON pulls the tides", true},
        {"tide moon", "The moon", false},
        {"the tide", "thetide", true},
        {"tideanother", "tide", false}, /* not across two texts */
        {"other moon", "moon", true},   /* but in either */
        {"über", "ÜBER ALLES", true},
        {"ÜBER", "Überall", true},
        {"οδός", "ΟΔΌΣ", false}, /* letters with accents stay as they are */
        {"νυξ", "ΝΥΞ", true},
        {"приливы", "ПРИЛИВЫ И ОТЛИВЫ", true},
        {"ЁЛКА", "ёлка", true},
        {"žluť", "ŽLUŤ", true},
        {"a\xff", "a", true}, /* what is no UTF-8 is nothing */
        {"×", "÷", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (finds(rows[i].words, rows[i].text) != rows[i].want)
            fail_msg("'%s' in '%s'", rows[i].words, rows[i].text);
}

static void escapes_of_json_are_their_characters(void **state)
{
    (void)state;
    assert_true(finds_json("\xc3\xbc"
                           "ber",
                           "note", "{\"t\":\"\\u00dcber\"}"));
    assert_true(finds_json("say \"hi\"", "note", "{\"t\":\"say \\\"HI\\\"\"}"));
    assert_true(finds_json("a/b", "note", "{\"t\":\"a\\/b\"}"));
    assert_true(finds_json("one two", "note", "{\"t\":\"one\\ntwo\"}"));
    assert_false(finds_json("ntwo", "note", "{\"t\":\"one\\ntwo\"}"));
    assert_true(finds_json("\xf0\x9f\x8c\x8a", "note", "{\"t\":\"\\ud83c\\udf0a\"}"));
    assert_true(finds_json("message.user moon", "message.user", "{\"t\":\"Moon\"}"));
    assert_false(finds_json("moon", "note", "{\"t\":\"\\u\"}"));
    assert_false(finds_json("moon", "note", "{\"t\":\"\\"));
}

static void words_have_a_bound(void **state)
{
    (void)state;
    assert_true(finds("a a a a a a a a a a a a a a a a nowhere", "a")); /* the seventeenth is not looked for */
    assert_false(finds("a a a a a a a a a a a a a a a nowhere", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_part_of_a_text),
        cmocka_unit_test(escapes_of_json_are_their_characters),
        cmocka_unit_test(words_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
