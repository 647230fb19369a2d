/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: who is asked, what counts of the answers, and that one which misbehaves costs nothing but a line of report. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "kit.h"
#include "agent/hook.h"
#include "process_ended.h"
#include "program/proc.h"

/* ---- helpers ---- */

struct reports {
    char text[8192];
    size_t n;
};

static void on_report(void *arg, const char *hook, const char *what)
{
    struct reports *r = arg;
    size_t at = strlen(r->text);

    snprintf(r->text + at, sizeof(r->text) - at, "%s: %s\n", hook, what);
    r->n++;
}

struct fixture {
    struct reports reports;
    struct hooks *hooks;
    struct arena arena;
    struct hook_verdict verdict;
    char dir[256];
};

static int setup(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    f->hooks = hooks_new(20000, on_report, &f->reports);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hooks_free(f->hooks);
    arena_done(&f->arena);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static void load(struct fixture *f, const char *json)
{
    OK(hooks_load(f->hooks, str_from(json), &err));
}

/* A program hook at `event`, run by the shell. */
static void add_script(struct fixture *f, const char *name, const char *event, const char *script)
{
    AUTO(buf_done) struct buf json = BUF_INIT(1 << 20);
    struct json_out o = json_out_to(&json);

    json_out_begin(&o, '[');
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("name"), str_from(name));
    json_out_kstr(&o, STR("event"), str_from(event));
    json_out_kstr(&o, STR("command"), str_from(script));
    json_out_end(&o, '}');
    json_out_end(&o, ']');
    load(f, buf_cstr(&json));
}

static const struct hook_input bash_call = {.event = HOOK_PRE_TOOL_USE,
                                            .session_id = "s1",
                                            .turn = 3,
                                            .tool = {"bash", 4},
                                            .call_id = {"c1", 2},
                                            .args = {"{\"command\":\"ls\"}", 16}};

static void fire(struct fixture *f, const struct hook_input *input)
{
    hooks_fire(f->hooks, &f->arena, input, NULL, NULL, &f->verdict);
}

static void fire_at(struct fixture *f, enum hook_event event)
{
    struct hook_input input = bash_call;

    input.event = event;
    fire(f, &input);
}

static void assert_verdict(const struct fixture *f, enum hook_action action, const char *hook, const char *text)
{
    if (f->verdict.action != action)
        print_error("%s", f->reports.text);
    assert_string_equal(hook_action_name(f->verdict.action), hook_action_name(action));
    assert_int_equal(f->verdict.hook.len, strlen(hook));
    assert_memory_equal(f->verdict.hook.ptr, hook, strlen(hook));
    assert_int_equal(f->verdict.text.len, strlen(text));
    assert_memory_equal(f->verdict.text.ptr, text, strlen(text));
}

/* Nothing decided, and one line says why. */
static void assert_skipped(const struct fixture *f, const char *words)
{
    assert_verdict(f, HOOK_CONTINUE, "", "");
    assert_int_equal(f->reports.n, 1);
    if (!strstr(f->reports.text, words))
        fail_msg("'%s' is not in '%s'", words, f->reports.text);
}

/* ---- what a program sees and says ---- */

static void a_program_is_given_the_tagged_event(void **state)
{
    static const struct {
        enum hook_event event;
        const char *want;
    } rows[] = {
        {HOOK_AGENT_START, "{\"agent_start\":{\"task\":\"do it\"},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_TURN_START, "{\"turn_start\":{\"turn\":3},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_TURN_END, "{\"turn_end\":{\"turn\":3},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_PRE_TOOL_USE, "{\"pre_tool_use\":{\"tool_name\":\"bash\",\"args\":{\"command\":\"ls\"},\"tool_use_id\":"
                            "\"c1\"},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_POST_TOOL_USE, "{\"post_tool_use\":{\"tool_name\":\"bash\",\"args\":{\"command\":\"ls\"},\"tool_use_id\":"
                             "\"c1\",\"result\":\"a\\nb\"},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_POST_TOOL_USE_FAILURE,
         "{\"post_tool_use_failure\":{\"tool_name\":\"bash\",\"args\":{\"command\":\"ls\"},\"tool_use_id\":\"c1\","
         "\"error\":\"no\"},\"session_id\":\"s1\",\"turn\":3}\n"},
        {HOOK_AGENT_STOP, "{\"agent_stop\":{\"result\":\"a\\nb\"},\"session_id\":\"s1\",\"turn\":3}\n"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hook_input input = bash_call;
        char script[400], path[300], got[1024] = "";
        int fd;

        snprintf(path, sizeof path, "%s/seen-%zu", f->dir, i);
        snprintf(script, sizeof script, "cat >'%s'", path);
        add_script(f, "see", hook_event_name(rows[i].event), script);
        input.event = rows[i].event;
        input.task = STR("do it");
        input.result = STR("a\nb");
        input.error = STR("no");
        fire(f, &input);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, got, sizeof got - 1) > 0);
        close(fd);
        assert_string_equal(got, rows[i].want);
    }
    assert_int_equal(f->reports.n, 0);
}

static void a_program_may_answer(void **state)
{
    static const struct {
        const char *event, *says;
        enum hook_action action;
        const char *hook, *text;
    } rows[] = {
        {"pre_tool_use", "{\"action\":\"deny\",\"reason\":\"not today\"}", HOOK_DENY, "h", "not today"},
        {"pre_tool_use", "{\"action\":\"Deny\"}\n", HOOK_DENY, "h", "denied by the hook 'h'"},
        {"pre_tool_use", "{\"action\":\"modify_args\",\"args\":{\"command\": \"ls -l\",\"n\":1.50}}", HOOK_MODIFY_ARGS,
         "h", "{\"command\":\"ls -l\",\"n\":1.50}"},
        {"pre_tool_use", "{\"action\":\"allow\"}", HOOK_ALLOW, "h", ""},
        {"pre_tool_use", "{\"action\":\"continue\"}", HOOK_CONTINUE, "", ""},
        {"pre_tool_use", " \n", HOOK_CONTINUE, "", ""},
        {"PreToolUse", "{\"action\":\"deny\",\"reason\":\"\\u00e4\"}", HOOK_DENY, "h", "\xc3\xa4"},
        {"turn_start", "{\"action\":\"stop\",\"reason\":\"enough\"}", HOOK_STOP, "h", "enough"},
        {"TurnStart", "{\"action\":\"system_message\",\"message\":\"be brief\"}", HOOK_SYSTEM_MESSAGE, "h", "be brief"},
        {"turn_start", "{\"action\":\"append_context\",\"context\":\"it rains\"}", HOOK_APPEND_CONTEXT, "h",
         "it rains"},
        {"turn_start", "{\"action\":\"AppendContext\",\"text\":\"it rains\"}", HOOK_APPEND_CONTEXT, "h", "it rains"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;
        char script[400];

        setup((void **)&f);
        snprintf(script, sizeof script, "cat <<'END'\n%s\nEND", rows[i].says);
        add_script(f, "h", rows[i].event, script);
        fire_at(f, rows[i].event[0] == 'p' || rows[i].event[0] == 'P' ? HOOK_PRE_TOOL_USE : HOOK_TURN_START);
        assert_verdict(f, rows[i].action, rows[i].hook, rows[i].text);
        assert_int_equal(f->reports.n, 0);
        teardown((void **)&f);
    }
    (void)state;
}

static void arguments_of_a_megabyte_go_in_and_out(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_done) struct buf args = BUF_INIT(2 << 20);
    struct hook_input input = bash_call;

    buf_add_str(&args, STR("{\"command\":\""));
    for (int i = 0; i < 1 << 16; i++)
        buf_add_str(&args, STR("0123456789abcdef"));
    buf_add_str(&args, STR("\"}"));
    input.args = buf_view(&args);
    add_script(f, "h", "pre_tool_use",
               "sed 's/^{\"pre_tool_use\":{\"tool_name\":\"bash\",\"args\":/{\"action\":\"modify_args\",\"args\":/; "
               "s/,\"tool_use_id\".*/}/'");
    fire(f, &input);
    assert_int_equal(f->verdict.action, HOOK_MODIFY_ARGS);
    assert_int_equal(f->verdict.text.len, args.len);
    assert_memory_equal(f->verdict.text.ptr, args.ptr, args.len);
}

static void a_program_that_reads_nothing_still_answers(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"e\",\"event\":\"pre_tool_use\",\"command\":[\"printf\",\"%s\","
            "\"{\\\"action\\\":\\\"deny\\\",\\\"reason\\\":\\\"$HOME `x` '\\\"}\"]}]");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "e", "$HOME `x` '"); /* no word of an array is read by a shell */
}

/* ---- what goes wrong ---- */

static void a_program_that_misbehaves_is_reported_and_skipped(void **state)
{
    static const struct {
        const char *script, *says;
    } rows[] = {
        {"echo nonsense", "h: its answer is not JSON"},
        {"printf '{\"action\":\"deny\"} x'", "not JSON"},
        {"printf '\\000'", "not JSON"},
        {"echo '[]'", "must be an object with \"action\""},
        {"echo '{\"action\":7}'", "must be an object with \"action\""},
        {"echo '{\"action\":\"dance\"}'", "it answers 'dance': deny, modify_args, allow or continue"},
        {"echo '{\"action\":\"stop\"}'", "it answers 'stop' to pre_tool_use"},
        {"echo '{\"action\":\"modify_args\"}'", "modify_args needs \"args\", an object"},
        {"echo '{\"action\":\"modify_args\",\"args\":[]}'", "modify_args needs \"args\", an object"},
        {"echo '{\"action\":\"deny\",\"reason\":7}'", "\"reason\" must be a string"},
        {"echo; echo >&2; echo 'first line' >&2; echo second >&2; exit 3", "exit status 3: first line: skipped"},
        {"echo '{\"action\":\"deny\"}'; exit 1", "exit status 1: skipped"},
        {"kill -9 $$", "was killed by signal 9 (Killed)"},
        {"exec yes", "printed more than 4194304 bytes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;

        setup((void **)&f);
        add_script(f, "h", "pre_tool_use", rows[i].script);
        fire(f, &bash_call);
        assert_skipped(f, rows[i].says);
        teardown((void **)&f);
    }
    (void)state;
}

static void a_program_that_floods_its_standard_error_is_not_held_up(void **state)
{
    struct fixture *f = *state;

    add_script(f, "h", "pre_tool_use", "yes | head -c 1000000 >&2; echo '{\"action\":\"deny\",\"reason\":\"r\"}'");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "h", "r");
}

static void a_program_that_is_not_there_is_reported(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"gone\",\"event\":\"pre_tool_use\",\"command\":[\"/nowhere/hook\"]}]");
    fire(f, &bash_call);
    assert_skipped(f, "gone: /nowhere/hook: no such program");
}

static void a_file_without_the_right_is_reported(void **state)
{
    struct fixture *f = *state;
    char path[300], json[500];

    snprintf(path, sizeof path, "%s/plain", f->dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    snprintf(json, sizeof json, "[{\"name\":\"x\",\"event\":\"pre_tool_use\",\"command\":[\"%s\"]}]", path);
    load(f, json);
    fire(f, &bash_call);
    assert_skipped(f, "may not be executed");
}

/* The pid that a script wrote; waits for it. */
static pid_t pid_in(const char *path)
{
    char text[32];

    for (int i = 0; i < 10000; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

        if (fd >= 0)
            close(fd);
        if (n > 0 && text[n - 1] == '\n')
            return (pid_t)strtol(text, NULL, 10);
        poll(NULL, 0, 1);
    }
    fail_msg("no pid in %s", path);
    return 0;
}

static void hang_within(struct fixture *f, int timeout_ms)
{
    int64_t before = monotonic_ms();
    char json[700], words[80];

    f->reports = (struct reports){0};
    hooks_free(f->hooks);
    f->hooks = hooks_new(20000, on_report, &f->reports);
    snprintf(json, sizeof json,
             "[{\"name\":\"slow\",\"event\":\"pre_tool_use\",\"timeout_ms\":%d,\"command\":"
             "\"trap '' TERM; cd '%s'; sleep 600 & echo $! >pid; mv pid child; wait\"}]",
             timeout_ms, f->dir);
    load(f, json);
    fire(f, &bash_call);
    assert_true(monotonic_ms() - before < timeout_ms + 15000);
    snprintf(words, sizeof words, "slow: no answer within %d ms", timeout_ms);
    assert_skipped(f, words);
}

static void a_program_that_hangs_is_ended_with_its_children(void **state)
{
    struct fixture *f = *state;
    char child[300];

    snprintf(child, sizeof child, "%s/child", f->dir);
    for (int ms = 300; ms <= 30000 && access(child, F_OK) != 0; ms *= 10) /* a busy machine may not get so far */
        hang_within(f, ms);
    assert_true(is_gone(pid_in(child)));
}

static void what_a_program_leaves_behind_is_ended(void **state)
{
    struct fixture *f = *state;
    char script[600];

    snprintf(script, sizeof script, "sleep 600 & echo $! >'%s/child'; echo '{\"action\":\"deny\"}'", f->dir);
    add_script(f, "h", "pre_tool_use", script);
    fire(f, &bash_call);
    assert_int_equal(f->verdict.action, HOOK_DENY);
    snprintf(script, sizeof script, "%s/child", f->dir);
    assert_true(is_gone(pid_in(script)));
}

static bool stop_when_it_runs(void *arg)
{
    return access(arg, F_OK) == 0;
}

static void a_stop_ends_the_hook_and_asks_no_other(void **state)
{
    struct fixture *f = *state;
    char script[400], running[300], other[300];

    snprintf(running, sizeof running, "%s/running", f->dir);
    snprintf(other, sizeof other, "%s/other", f->dir);
    snprintf(script, sizeof script, ": >'%s'; exec sleep 600", running);
    add_script(f, "long", "pre_tool_use", script);
    snprintf(script, sizeof script, ": >'%s'", other);
    add_script(f, "next", "pre_tool_use", script);
    hooks_fire(f->hooks, &f->arena, &bash_call, stop_when_it_runs, running, &f->verdict);
    assert_skipped(f, "long: stopped before it had answered");
    assert_int_not_equal(access(other, F_OK), 0);
}

/* ---- who is asked ---- */

static void a_matcher_is_an_unanchored_pattern_on_the_tools_name(void **state)
{
    static const struct {
        const char *matcher, *tool;
        bool hit;
    } rows[] = {
        {"bash", "bash", true},
        {"as", "bash", true},
        {"^as", "bash", false},
        {"write|edit", "edit", true},
        {"write|edit", "bash", false},
        {"(?i)BASH", "bash", true},
        {"", "bash", true},
        {"^mcp__.*__get$", "mcp__a__get", true},
        {"ä", "t\xc3\xa4t", true},
        {"^$", "", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hook_input input = bash_call;
        struct fixture *f;
        char json[200];

        setup((void **)&f);
        snprintf(json, sizeof json,
                 "[{\"name\":\"h\",\"event\":\"pre_tool_use\",\"matcher\":\"%s\",\"action\":\"deny\"}]",
                 rows[i].matcher);
        load(f, json);
        input.tool = str_from(rows[i].tool);
        fire(f, &input);
        if ((f->verdict.action == HOOK_DENY) != rows[i].hit)
            fail_msg("'%s' and '%s'", rows[i].matcher, rows[i].tool);
        teardown((void **)&f);
    }
    (void)state;
}

static void a_bad_pattern_is_reported_with_its_position_and_left_out(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"bad\",\"event\":\"pre_tool_use\",\"matcher\":\"a(b\",\"action\":\"deny\"}]");
    assert_int_equal(hooks_count(f->hooks), 0);
    assert_non_null(strstr(f->reports.text, "bad: bad matcher 'a(b' at character 4: missing closing parenthesis"));
    hooks_add(f->hooks, "also", HOOK_PRE_TOOL_USE, "[", NULL, NULL);
    assert_int_equal(hooks_count(f->hooks), 0);
    assert_int_equal(f->reports.n, 2);
}

static void a_pattern_that_explodes_is_ended_and_reported(void **state)
{
    struct fixture *f = *state;
    struct hook_input input = bash_call;
    int64_t before = monotonic_ms();

    input.tool = STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    load(f, "[{\"name\":\"boom\",\"event\":\"pre_tool_use\",\"matcher\":\"^(a+)+$\",\"action\":\"deny\"}]");
    fire(f, &input);
    assert_skipped(f, "boom: matcher '^(a+)+$' cannot be matched");
    assert_true(monotonic_ms() - before < 10000);
}

static void exit_status_2_before_a_tool_denies_and_standard_error_is_the_reason(void **state)
{
    struct fixture *f = *state;

    add_script(f, "guard", "pre_tool_use", "echo 'not on a Friday' >&2; echo ' and never at night' >&2; exit 2");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "guard", "not on a Friday\n and never at night");
    assert_int_equal(f->reports.n, 0);
    load(f, "[{\"name\":\"silent\",\"event\":\"PreToolUse\",\"matcher\":\"^no\",\"command\":\"exit 2\"}]");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "guard", "not on a Friday\n and never at night");
}

static void bytes_that_are_no_text_in_a_reason_are_replaced(void **state)
{
    struct fixture *f = *state;

    add_script(f, "guard", "pre_tool_use", "printf 'no \\377 way' >&2; exit 2");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "guard", "no \xef\xbf\xbd way");
}

static void exit_status_2_elsewhere_is_a_failure(void **state)
{
    struct fixture *f = *state;

    add_script(f, "late", "post_tool_use", "exit 2");
    fire_at(f, HOOK_POST_TOOL_USE);
    assert_skipped(f, "exit status 2");
}

static void a_hook_that_fails_closed_denies_however_it_fails(void **state)
{
    static const struct {
        const char *json, *reason;
    } rows[] = {
        {"\"command\":\"exit 1\"", "this hook failed: exit status 1"},
        {"\"command\":\"kill -9 $$\"", "this hook failed: was killed by signal 9 (Killed)"},
        {"\"command\":\"echo nonsense\"", NULL},
        {"\"command\":[\"./no-such-hook\"]", NULL},
        {"\"command\":\"sleep 100\",\"timeout_ms\":50", "this hook failed: no answer within 50 ms: it was ended"},
        {"\"command\":\"true\",\"matcher\":\"(\"", NULL},
        {"\"command\":\"true\",\"action\":\"allow\"", NULL},
        {"\"command\":\"true\",\"timeout_ms\":\"soon\"", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;
        char json[400];

        hooks_free(f->hooks);
        memset(&f->reports, 0, sizeof f->reports);
        f->hooks = hooks_new(20000, on_report, &f->reports);
        snprintf(json, sizeof json, "[{\"name\":\"guard\",\"event\":\"pre_tool_use\",\"on_failure\":\"deny\",%s}]",
                 rows[i].json);
        load(f, json);
        fire(f, &bash_call);
        if (f->verdict.action != HOOK_DENY)
            fail_msg("%s: not denied", rows[i].json);
        assert_verdict(f, HOOK_DENY, "guard", rows[i].reason ? rows[i].reason : f->verdict.text.ptr);
        assert_true(f->verdict.text.len > 0);
        assert_int_equal(f->reports.n, 1);
    }
}

static void failing_closed_is_for_calls_alone_and_has_two_words(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"a\",\"event\":\"turn_end\",\"command\":\"true\",\"on_failure\":\"skip\"}]");
    assert_int_equal(f->reports.n, 0);
    load(f, "[{\"name\":\"b\",\"event\":\"pre_tool_use\",\"command\":\"true\",\"on_failure\":\"panic\"}]");
    assert_int_equal(f->reports.n, 1);
    fire(f, &bash_call); /* a guard whose word is misspelt is none that may be left out */
    assert_verdict(f, HOOK_DENY, "b", f->verdict.text.ptr);
    load(f, "[{\"name\":\"c\",\"event\":\"turn_end\",\"command\":\"true\",\"on_failure\":\"deny\"}]");
    assert_int_equal(f->reports.n, 2);
}

static void programs_that_are_not_there_are_named(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"a\",\"event\":\"turn_end\",\"command\":[\"./no-such-hook\"]},"
            "{\"name\":\"b\",\"event\":\"turn_end\",\"command\":\"./no-such-hook --strict\"},"
            "{\"name\":\"c\",\"event\":\"turn_end\",\"command\":\"if true; then ./no-such-hook; fi\"},"
            "{\"name\":\"d\",\"event\":\"turn_end\",\"command\":[\"sh\",\"-c\",\"true\"]}]");
    hooks_check_programs(f->hooks);
    assert_int_equal(f->reports.n, 2);
}

static void a_matcher_where_there_is_no_tool_is_reported_and_passed_over(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"m\",\"event\":\"turn_start\",\"matcher\":\"bash\",\"action\":\"stop\",\"reason\":\"r\"}]");
    assert_int_equal(f->reports.n, 1);
    fire_at(f, HOOK_TURN_START);
    assert_verdict(f, HOOK_STOP, "m", "r");
}

static void only_the_events_that_somebody_listens_to_are_wanted(void **state)
{
    struct fixture *f = *state;

    assert_false(hooks_wants(NULL, HOOK_TURN_END));
    load(f, "[{\"name\":\"m\",\"event\":\"turn_end\",\"action\":\"stop\"}]");
    for (int e = HOOK_AGENT_START; e <= HOOK_AGENT_STOP; e++)
        assert_int_equal(hooks_wants(f->hooks, (enum hook_event)e), e == HOOK_TURN_END);
}

/* ---- what counts ---- */

static void the_strongest_answer_counts_and_of_equals_the_first(void **state)
{
    static const struct {
        enum hook_event event;
        const char *actions[3], *winner;
    } rows[] = {
        {HOOK_PRE_TOOL_USE, {"allow", "deny", "deny"}, "1"},
        {HOOK_PRE_TOOL_USE, {"allow", "allow", NULL}, "0"},
        {HOOK_PRE_TOOL_USE, {"log", "allow", NULL}, "1"},
        {HOOK_PRE_TOOL_USE, {"log", "log", NULL}, "0"},
        {HOOK_TURN_START, {"append_context", "system_message", "stop"}, "2"},
        {HOOK_TURN_START, {"append_context", "system_message", "append_context"}, "1"},
        {HOOK_TURN_START, {"stop", "stop", "system_message"}, "0"},
        {HOOK_AGENT_STOP, {"continue", "append_context", NULL}, "1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;

        setup((void **)&f);
        for (int k = 0; k < 3 && rows[i].actions[k]; k++) {
            char json[200];

            snprintf(json, sizeof json, "[{\"name\":\"%d\",\"event\":\"%s\",\"action\":\"%s\",\"text\":\"t\"}]", k,
                     hook_event_name(rows[i].event), rows[i].actions[k]);
            load(f, json);
        }
        fire_at(f, rows[i].event);
        if (!str_eq(f->verdict.hook, str_from(rows[i].winner)))
            fail_msg("row %zu: '%.*s' won", i, STR_ARG(f->verdict.hook));
        assert_int_equal(f->reports.n, 0);
        teardown((void **)&f);
    }
    (void)state;
}

static void changed_arguments_lose_to_a_denial_and_win_over_leave(void **state)
{
    struct fixture *f = *state;

    add_script(f, "change", "pre_tool_use", "echo '{\"action\":\"modify_args\",\"args\":{}}'");
    load(f, "[{\"name\":\"leave\",\"event\":\"pre_tool_use\",\"action\":\"allow\"}]");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_MODIFY_ARGS, "change", "{}");
    load(f, "[{\"name\":\"no\",\"event\":\"pre_tool_use\",\"action\":\"deny\",\"reason\":\"r\"}]");
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "no", "r");
}

static void all_are_asked_and_each_sees_the_original(void **state)
{
    struct fixture *f = *state;
    char script[400], path[300], got[512] = "";
    int fd;

    load(f, "[{\"name\":\"no\",\"event\":\"pre_tool_use\",\"action\":\"deny\"}]");
    add_script(f, "change", "pre_tool_use", "echo '{\"action\":\"modify_args\",\"args\":{}}'");
    snprintf(path, sizeof path, "%s/seen", f->dir);
    snprintf(script, sizeof script, "cat >'%s'", path);
    add_script(f, "see", "pre_tool_use", script);
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "no", "denied by the hook 'no'");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, got, sizeof got - 1) > 0);
    close(fd);
    assert_non_null(strstr(got, "\"args\":{\"command\":\"ls\"}"));
}

/* ---- hooks in C ---- */

struct script {
    enum tide_code code;
    struct hook_verdict verdict;
    int asked;
};

static enum tide_code scripted(void *arg, const struct hook_input *input, struct hook_verdict *ret,
                               struct tide_err *err)
{
    struct script *s = arg;

    s->asked++;
    assert_non_null(input->session_id);
    *ret = s->verdict;
    return s->code ? tide_fail(err, s->code, "cannot tell") : TIDE_OK;
}

static void functions_stand_in_the_same_order(void **state)
{
    struct fixture *f = *state;
    struct script first = {.verdict = {.action = HOOK_DENY, .text = STR("first")}}, last = first;

    last.verdict.text = STR("last");
    hooks_add(f->hooks, "first", HOOK_PRE_TOOL_USE, "ba", scripted, &first);
    load(f, "[{\"name\":\"json\",\"event\":\"pre_tool_use\",\"action\":\"deny\"}]");
    hooks_add(f->hooks, "last", HOOK_PRE_TOOL_USE, NULL, scripted, &last);
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "first", "first");
    assert_int_equal(first.asked + last.asked, 2);
}

static void a_function_is_believed_no_more_than_a_program(void **state)
{
    static const struct {
        struct script script;
        const char *says;
    } rows[] = {
        {{.code = TIDE_FAILED}, "c: cannot tell: skipped"},
        {{.verdict = {.action = HOOK_STOP}}, "it answers 'stop' to pre_tool_use"},
        {{.verdict = {.action = HOOK_MODIFY_ARGS, .text = {"{", 1}}}, "its arguments are not JSON"},
        {{.verdict = {.action = HOOK_MODIFY_ARGS, .text = {"7", 1}}}, "its arguments are not an object"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script = rows[i].script;
        struct fixture *f;

        setup((void **)&f);
        hooks_add(f->hooks, "c", HOOK_PRE_TOOL_USE, NULL, scripted, &script);
        fire(f, &bash_call);
        assert_skipped(f, rows[i].says);
        teardown((void **)&f);
    }
    (void)state;
}

/* ---- loading ---- */

static void what_is_wrong_with_one_hook_costs_only_that_one(void **state)
{
    static const struct {
        const char *row, *says;
    } rows[] = {
        {"7", "#1: not an object"},
        {"{\"name\":7}", "#1: \"name\" must be a string"},
        {"{\"name\":\"a\"}", "a: \"event\" is missing"},
        {"{\"name\":\"a\",\"event\":\"lunch\",\"action\":\"deny\"}", "a: \"event\" is 'lunch': one of agent_start"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\"}", "give either \"command\" or \"action\""},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"action\":\"deny\",\"command\":\"x\"}", "not both"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"action\":\"stop\"}", "'stop' is not possible at pre_tool_use"},
        {"{\"name\":\"a\",\"event\":\"turn_end\",\"action\":\"deny\"}", "'deny' is not possible at turn_end"},
        {"{\"name\":\"a\",\"event\":\"turn_end\",\"action\":\"dance\"}", "\"action\" is 'dance'"},
        {"{\"name\":\"a\",\"event\":\"turn_end\",\"action\":\"system_message\"}", "system_message needs \"message\""},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"command\":[]}", "\"command\" names no program"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"command\":[7]}", "\"command\" must hold strings only"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"command\":{}}", "\"command\" must be a list"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"command\":\"x\",\"timeout_ms\":0}", "\"timeout_ms\" must be"},
        {"{\"name\":\"a\",\"event\":\"pre_tool_use\",\"command\":[\"a\\u0000b\"]}", "strings only"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;
        char json[400];

        setup((void **)&f);
        snprintf(json, sizeof json, "[%s,{\"name\":\"good\",\"event\":\"turn_end\",\"action\":\"log\"}]", rows[i].row);
        load(f, json);
        assert_int_equal(hooks_count(f->hooks), 1);
        assert_int_equal(f->reports.n, 1);
        if (!strstr(f->reports.text, rows[i].says) || !strstr(f->reports.text, ": ignored"))
            fail_msg("'%s' is not in '%s'", rows[i].says, f->reports.text);
        teardown((void **)&f);
    }
    (void)state;
}

static void a_misspelt_member_is_reported(void **state)
{
    struct fixture *f = *state;

    load(f, "[{\"name\":\"a\",\"event\":\"pre_tool_use\",\"mathcer\":\"x\",\"action\":\"log\"}]");
    assert_int_equal(hooks_count(f->hooks), 1);
    assert_non_null(strstr(f->reports.text, "a: unknown member 'mathcer', did you mean 'matcher'?"));
}

static void a_hooks_file_is_read_and_nothing_else(void **state)
{
    struct fixture *f = *state;

    load(f, "{\"hooks\":[{\"name\":\"a\",\"event\":\"PreToolUse\",\"action\":\"deny\",\"reason\":\"r\"}]}");
    assert_int_equal(hooks_count(f->hooks), 1);
    SAYS(TIDE_INVALID, "must be a list of hooks", hooks_load(f->hooks, STR("{}"), &err));
    SAYS(TIDE_INVALID, "must be a list of hooks", hooks_load(f->hooks, STR("7"), &err));
    SAYS(TIDE_INVALID, "hooks: line 1", hooks_load(f->hooks, STR("[{]"), &err));
    fire(f, &bash_call);
    assert_verdict(f, HOOK_DENY, "a", "r");
}

static void on_line(void *arg, const char *name, const char *event, const char *matcher, const char *what)
{
    char *text = arg;
    size_t at = strlen(text);

    snprintf(text + at, 1024 - at, "%s|%s|%s|%s\n", name, event, matcher, what);
}

static void the_list_says_what_each_does(void **state)
{
    struct fixture *f = *state;
    char text[1024] = "";

    load(f, "[{\"name\":\"a\",\"event\":\"PreToolUse\",\"matcher\":\"bash\",\"action\":\"deny\",\"reason\":\"r\"},"
            "{\"name\":\"b\",\"event\":\"turn_end\",\"command\":[\"notify\",\"x y\"]},"
            "{\"event\":\"turn_end\",\"action\":\"log\"}]");
    hooks_add(f->hooks, "c", HOOK_AGENT_STOP, NULL, scripted, NULL);
    hooks_list(f->hooks, on_line, text);
    assert_string_equal(text, "a|pre_tool_use|bash|deny: r\nb|turn_end||runs notify x y\n#3|turn_end||log\n"
                              "c|agent_stop||a function\n");
}

#define HOOK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOOK_TEST(a_program_is_given_the_tagged_event),
        HOOK_TEST(a_program_may_answer),
        HOOK_TEST(arguments_of_a_megabyte_go_in_and_out),
        HOOK_TEST(a_program_that_reads_nothing_still_answers),
        HOOK_TEST(a_program_that_misbehaves_is_reported_and_skipped),
        HOOK_TEST(a_program_that_floods_its_standard_error_is_not_held_up),
        HOOK_TEST(a_program_that_is_not_there_is_reported),
        HOOK_TEST(a_file_without_the_right_is_reported),
        HOOK_TEST(a_program_that_hangs_is_ended_with_its_children),
        HOOK_TEST(what_a_program_leaves_behind_is_ended),
        HOOK_TEST(a_stop_ends_the_hook_and_asks_no_other),
        HOOK_TEST(a_matcher_is_an_unanchored_pattern_on_the_tools_name),
        HOOK_TEST(a_bad_pattern_is_reported_with_its_position_and_left_out),
        HOOK_TEST(a_pattern_that_explodes_is_ended_and_reported),
        HOOK_TEST(exit_status_2_before_a_tool_denies_and_standard_error_is_the_reason),
        HOOK_TEST(bytes_that_are_no_text_in_a_reason_are_replaced),
        HOOK_TEST(exit_status_2_elsewhere_is_a_failure),
        HOOK_TEST(a_hook_that_fails_closed_denies_however_it_fails),
        HOOK_TEST(failing_closed_is_for_calls_alone_and_has_two_words),
        HOOK_TEST(programs_that_are_not_there_are_named),
        HOOK_TEST(a_matcher_where_there_is_no_tool_is_reported_and_passed_over),
        HOOK_TEST(only_the_events_that_somebody_listens_to_are_wanted),
        HOOK_TEST(the_strongest_answer_counts_and_of_equals_the_first),
        HOOK_TEST(changed_arguments_lose_to_a_denial_and_win_over_leave),
        HOOK_TEST(all_are_asked_and_each_sees_the_original),
        HOOK_TEST(functions_stand_in_the_same_order),
        HOOK_TEST(a_function_is_believed_no_more_than_a_program),
        HOOK_TEST(what_is_wrong_with_one_hook_costs_only_that_one),
        HOOK_TEST(a_misspelt_member_is_reported),
        HOOK_TEST(a_hooks_file_is_read_and_nothing_else),
        HOOK_TEST(the_list_says_what_each_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
