/* SPDX-License-Identifier: Apache-2.0 */
/* Permissions: which rule counts, and that text made to look allowed is not. */
#include "kit.h"
#include "agent/permit.h"

struct row {
    const char *tool, *subject;
    enum tide_permission want;
};

static enum tide_permission ask(const struct permits *p, const char *tool, const char *subject)
{
    const struct tool *t = tool_find(str_from(tool));
    struct buf text = BUF_INIT(10000);
    struct json_out o = json_out_to(&text);
    struct arena a = ARENA_INIT;
    struct json *args = NULL;
    enum tide_permission answer;

    json_out_begin(&o, '{');
    json_out_kstr(&o, str_from(t->subject), str_from(subject));
    json_out_end(&o, '}');
    OK(json_parse(&a, buf_view(&text), NULL, &args, NULL, &err));
    answer = permits_ask(p, t, args);
    arena_done(&a);
    buf_done(&text);
    return answer;
}

static struct permits *parse(const char *rules)
{
    struct permits *p = NULL;
    char *text = mem_dup(str_from(rules));

    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    OK(permits_parse(str_from(text), &p, &err));
    free(text);
    return p;
}

static void check(const char *rules, const struct row *rows, size_t n)
{
    struct permits *p = parse(rules);

    for (size_t i = 0; i < n; i++) {
        enum tide_permission got = ask(p, rows[i].tool, rows[i].subject);

        if (got != rows[i].want)
            print_error("%s: %s '%s': want %d, got %d\n", rules, rows[i].tool, rows[i].subject, (int)rows[i].want,
                        (int)got);
        assert_int_equal(got, rows[i].want);
    }
    permits_free(p);
}
#define CHECK(rules, rows) check(rules, rows, sizeof(rows) / sizeof((rows)[0]))

static void without_rules_the_tools_own_default_holds(void **state)
{
    static const struct row rows[] = {
        {"bash", "ls", TIDE_PERMISSION_ASK}, {"read", "a", TIDE_PERMISSION_ALLOW}, {"write", "a", TIDE_PERMISSION_ASK},
        {"edit", "a", TIDE_PERMISSION_ASK},  {"glob", "*", TIDE_PERMISSION_ALLOW}, {"grep", "x", TIDE_PERMISSION_ALLOW},
    };

    (void)state;
    CHECK("[]", rows);
    assert_int_equal(ask(NULL, "bash", "ls"), TIDE_PERMISSION_ASK);
    assert_int_equal(ask(NULL, "read", "a"), TIDE_PERMISSION_ALLOW);
}

static void the_last_rule_that_matches_wins(void **state)
{
    static const struct row rows[] = {
        {"bash", "git status", TIDE_PERMISSION_ALLOW}, {"bash", "git push -f", TIDE_PERMISSION_DENY},
        {"bash", "git push", TIDE_PERMISSION_DENY},    {"bash", "make", TIDE_PERMISSION_ASK},
        {"write", "a", TIDE_PERMISSION_DENY},          {"read", "a", TIDE_PERMISSION_DENY},
        {"read", "docs/a", TIDE_PERMISSION_ASK},
    };

    (void)state;
    CHECK(
        "[{'tool':'*','permission':'deny'},{'tool':'bash','permission':'ask'},"
        "{'tool':'bash','match':'git *','permission':'allow'},{'tool':'bash','match':'git push*','permission':'deny'},"
        "{'tool':'read','match':'docs/*','permission':'ask'}]",
        rows);
}

static void an_allowed_command_brings_no_other_with_it(void **state)
{
    static const struct row rows[] = {
        {"bash", "git log", TIDE_PERMISSION_ALLOW},
        {"bash", "  git log  ", TIDE_PERMISSION_ALLOW},
        {"bash", "git log -p --stat='a b' \"x\" $HOME", TIDE_PERMISSION_ALLOW},
        {"bash", "git", TIDE_PERMISSION_ASK},
        {"bash", "gitk x", TIDE_PERMISSION_ASK},
        {"bash", "git x; rm -rf /", TIDE_PERMISSION_ASK},
        {"bash", "git x && rm -rf /", TIDE_PERMISSION_ASK},
        {"bash", "git x & rm -rf /", TIDE_PERMISSION_ASK},
        {"bash", "git x | sh", TIDE_PERMISSION_ASK},
        {"bash", "git x\nrm -rf /", TIDE_PERMISSION_ASK},
        {"bash", "git `rm -rf /`", TIDE_PERMISSION_ASK},
        {"bash", "git $(rm -rf /)", TIDE_PERMISSION_ASK},
        {"bash", "git \"$(rm -rf /)\"", TIDE_PERMISSION_ASK},
        {"bash", "git <(rm -rf /)", TIDE_PERMISSION_ASK},
        {"bash", "git log > /etc/passwd", TIDE_PERMISSION_ASK},
        {"bash", "git log < x", TIDE_PERMISSION_ASK},
        {"bash", "(git log)", TIDE_PERMISSION_ASK},
        {"bash", "make 2>&1 | tail -n 5", TIDE_PERMISSION_ALLOW}, /* in the rule's own text */
        {"bash", "make 2>&1 | tail -n 5; rm x", TIDE_PERMISSION_ASK},
        {"bash", "make x; y 2>&1 | tail -n 5", TIDE_PERMISSION_ASK},
    };

    (void)state;
    CHECK("[{'tool':'bash','match':'git *','permission':'allow'},"
          "{'tool':'bash','match':'make* 2>&1 | tail*','permission':'allow'}]",
          rows);
}

static void a_denied_command_is_found_in_any_part(void **state)
{
    static const struct row rows[] = {
        {"bash", "rm x", TIDE_PERMISSION_DENY},         {"bash", "ls; rm x", TIDE_PERMISSION_DENY},
        {"bash", "ls&&rm x", TIDE_PERMISSION_DENY},     {"bash", "echo $(rm x)", TIDE_PERMISSION_DENY},
        {"bash", "echo `rm x`", TIDE_PERMISSION_DENY},  {"bash", "ls\nrm x\n", TIDE_PERMISSION_DENY},
        {"bash", "rm \t x", TIDE_PERMISSION_DENY},      {"bash", "if true; then rm x; fi", TIDE_PERMISSION_DENY},
        {"bash", "A=1 B=2 rm x", TIDE_PERMISSION_DENY}, {"bash", "{ rm x; }", TIDE_PERMISSION_DENY},
        {"bash", "! time rm x", TIDE_PERMISSION_DENY},  {"bash", "ls | sudo x", TIDE_PERMISSION_DENY},
        {"bash", "rmdir x", TIDE_PERMISSION_ALLOW},     {"bash", "echo rm x", TIDE_PERMISSION_ALLOW},
        {"bash", "ls; x", TIDE_PERMISSION_ALLOW},
    };

    (void)state;
    CHECK("[{'tool':'bash','permission':'allow'},{'tool':'bash','match':'rm *','permission':'deny'},"
          "{'tool':'bash','match':'* sudo *','permission':'deny'}]",
          (rows));
}

static void an_ask_is_found_in_any_part_as_well(void **state)
{
    static const struct row rows[] = {{"bash", "cd x; git push", TIDE_PERMISSION_ASK},
                                      {"bash", "cd x", TIDE_PERMISSION_ALLOW}};

    (void)state;
    CHECK("[{'tool':'bash','permission':'allow'},{'tool':'bash','match':'git push','permission':'ask'}]", rows);
}

static void a_path_is_denied_however_it_is_written(void **state)
{
    static const struct row rows[] = {
        {"read", ".env", TIDE_PERMISSION_DENY},          {"read", "./.env", TIDE_PERMISSION_DENY},
        {"read", ".//.env", TIDE_PERMISSION_DENY},       {"read", "a/../.env", TIDE_PERMISSION_DENY},
        {"read", "/home/x/.env", TIDE_PERMISSION_DENY},  {"read", "keys/a/b", TIDE_PERMISSION_DENY},
        {"read", "/w/keys/a", TIDE_PERMISSION_DENY},     {"read", ".environment", TIDE_PERMISSION_ALLOW},
        {"read", "a/.env", TIDE_PERMISSION_ALLOW},       {"write", "docs/a", TIDE_PERMISSION_ALLOW},
        {"write", "docs/../src/a", TIDE_PERMISSION_ASK}, {"write", "x/../docs/a", TIDE_PERMISSION_ASK},
        {"write", "./docs/a", TIDE_PERMISSION_ALLOW},    {"write", "/docs/a", TIDE_PERMISSION_ASK},
    };

    (void)state;
    CHECK("[{'tool':'read','match':'.env','permission':'deny'},{'tool':'read','match':'keys/*','permission':'deny'},"
          "{'tool':'write','match':'docs/*','permission':'allow'}]",
          rows);
}

static void a_search_is_denied_by_where_it_looks(void **state)
{
    static const char *const args[] = {"{\"pattern\":\"x\",\"path\":\"./keys/a\"}",
                                       "{\"pattern\":\"x\",\"path\":\"src\"}", "{\"pattern\":\"x\"}"};
    static const enum tide_permission want[] = {TIDE_PERMISSION_DENY, TIDE_PERMISSION_ALLOW, TIDE_PERMISSION_ALLOW};
    struct permits *p = parse("[{'tool':'*','match':'keys/*','permission':'deny'}]");

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct arena a = ARENA_INIT;
        struct json *v = NULL;

        OK(json_parse(&a, str_from(args[i]), NULL, &v, NULL, &err));
        assert_int_equal(permits_ask(p, tool_find(STR("grep")), v), want[i]);
        arena_done(&a);
    }
    permits_free(p);
}

static void stars_and_question_marks_match(void **state)
{
    static const struct row rows[] = {
        {"read", "abc", TIDE_PERMISSION_DENY},    {"read", "axxbyyc", TIDE_PERMISSION_DENY},
        {"read", "abcb", TIDE_PERMISSION_ALLOW},  {"read", "t1.c", TIDE_PERMISSION_DENY},
        {"read", "t12.c", TIDE_PERMISSION_ALLOW}, {"read", "tä.c", TIDE_PERMISSION_DENY},
        {"read", "t.c", TIDE_PERMISSION_ALLOW},
    };

    (void)state;
    CHECK("[{'tool':'re*','match':'a*b*c','permission':'deny'},{'tool':'read','match':'t?.c','permission':'deny'}]",
          rows);
}

/* A pattern that takes for ever would hold the agent. */
static void no_pattern_takes_long(void **state)
{
    struct permits *p = parse("[{'tool':'read','match':'*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b','permission':'deny'}]");
    char text[4001];

    (void)state;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    alarm(30);
    assert_int_equal(ask(p, "read", text), TIDE_PERMISSION_ALLOW);
    alarm(0);
    permits_free(p);
}

static void a_tool_that_never_runs_is_not_told_of(void **state)
{
    static const struct {
        const char *rules;
        bool bash, read;
    } rows[] = {
        {"[]", true, true},
        {"[{'tool':'bash','permission':'deny'}]", false, true},
        {"[{'tool':'bash','match':'*','permission':'deny'}]", false, true},
        {"[{'tool':'bash','match':'rm *','permission':'deny'}]", true, true},
        {"[{'tool':'*','permission':'deny'},{'tool':'bash','match':'git *','permission':'allow'}]", true, false},
        {"[{'tool':'bash','match':'git *','permission':'allow'},{'tool':'*','permission':'deny'}]", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct permits *p = parse(rows[i].rules);

        assert_int_equal(permits_some(p, tool_find(STR("bash"))), rows[i].bash);
        assert_int_equal(permits_some(p, tool_find(STR("read"))), rows[i].read);
        permits_free(p);
    }
    assert_true(permits_some(NULL, tool_find(STR("bash"))));
}

static void what_is_wrong_with_a_rule_is_said_with_its_number(void **state)
{
    static const struct {
        const char *rules, *words;
    } rows[] = {
        {"{}", "permission rules must be an array of objects"},
        {"[", "permission rules: "},
        {"[1]", "permission rule 1 must be an object"},
        {"[{\"tool\":\"a\",\"permission\":\"ask\"},{\"permission\":\"ask\"}]", "permission rule 2 names no tool"},
        {"[{\"tool\":\"a\"}]", "permission rule 1: 'permission' must be allow, ask or deny, not ''"},
        {"[{\"tool\":\"a\",\"permission\":\"maybe\"}]", "must be allow, ask or deny, not 'maybe'"},
        {"[{\"tool\":\"a\",\"permission\":\"ask\",\"match\":\"\"}]", "permission rule 1: 'match' is empty"},
        {"[{\"tool\":\"a\",\"permission\":\"ask\",\"match\":[]}]", "permission rule 1: 'match' must be a string"},
        {"[{\"tool\":\"a\",\"permission\":\"ask\",\"mtach\":\"x\"}]", "permission rule 1 has no key 'mtach'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct permits *p = NULL;

        SAYS(TIDE_INVALID, rows[i].words, permits_parse(str_from(rows[i].rules), &p, &err));
        assert_null(p);
    }
    permits_free(NULL);
}

static void the_rule_that_decided_is_named(void **state)
{
    struct permits *p = parse("[{'tool':'*','permission':'ask'},{'tool':'b*','permission':'deny'}]");

    (void)state;
    assert_true(
        str_eq(permits_rule(p, tool_find(STR("bash")), NULL), STR("{\"tool\":\"b*\",\"permission\":\"deny\"}")));
    assert_true(str_eq(permits_rule(p, tool_find(STR("read")), NULL), STR("{\"tool\":\"*\",\"permission\":\"ask\"}")));
    assert_int_equal(permits_rule(NULL, tool_find(STR("read")), NULL).len, 0);
    permits_free(p);
}

static void a_rule_for_no_tool_is_noticed_when_looked_for(void **state)
{
    static const struct {
        const char *rules, *says;
    } rows[] = {
        {"[{'tool':'bash','permission':'ask'},{'tool':'*re*','permission':'ask'}]", NULL},
        {"[{'tool':'bash','permission':'ask'},{'tool':'raed','permission':'ask'}]",
         "permission rule 2: there is no tool 'raed': did you mean 'read'?"},
        {"[{'tool':'zzzzzz*','permission':'ask'}]", "permission rule 1: there is no tool 'zzzzzz*': "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct permits *p = parse(rows[i].rules);
        struct tide_err err = {0};

        assert_int_equal(permits_check_tools(p, &err), rows[i].says ? TIDE_INVALID : TIDE_OK);
        assert_true(!rows[i].says || strncmp(err.msg, rows[i].says, strlen(rows[i].says)) == 0);
        permits_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_the_tools_own_default_holds),
        cmocka_unit_test(the_last_rule_that_matches_wins),
        cmocka_unit_test(an_allowed_command_brings_no_other_with_it),
        cmocka_unit_test(a_denied_command_is_found_in_any_part),
        cmocka_unit_test(an_ask_is_found_in_any_part_as_well),
        cmocka_unit_test(a_path_is_denied_however_it_is_written),
        cmocka_unit_test(a_search_is_denied_by_where_it_looks),
        cmocka_unit_test(stars_and_question_marks_match),
        cmocka_unit_test(no_pattern_takes_long),
        cmocka_unit_test(a_tool_that_never_runs_is_not_told_of),
        cmocka_unit_test(what_is_wrong_with_a_rule_is_said_with_its_number),
        cmocka_unit_test(the_rule_that_decided_is_named),
        cmocka_unit_test(a_rule_for_no_tool_is_noticed_when_looked_for),
    };

    return cmocka_run_group_tests_name("permit", tests, NULL, NULL);
}
