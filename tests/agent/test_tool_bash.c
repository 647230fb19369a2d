/* SPDX-License-Identifier: Apache-2.0 */
/* Commands with real processes: the gate, the environment, the end of whole groups, output without end. */
#include "agent/tool_kit.h"

#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/tool_text.h"
#include "base/utf8.h"
#include "process_ended.h"

static pid_t pid_in(const struct world *w, const char *name)
{
    char *text = get_file(w->cwd, name);
    pid_t pid = text ? (pid_t)strtol(text, NULL, 10) : 0;

    free(text);
    assert_true(pid > 1);
    return pid;
}

static void output_and_errors_come_together_in_order(void **state)
{
    struct call c;

    assert_string_equal(call_run(&c, *state, "bash", "{'command':'echo a; echo b >&2; echo c'}"), "a\nb\nc\n");
    assert_false(c.result.failed || c.result.unknown || c.result.replaced);
    call_done(&c);
    assert_string_equal(call_run(&c, *state, "bash", "{'command':'true'}"), "exit status 0, no output");
    call_done(&c);
}

static void a_status_that_is_not_zero_is_a_failure(void **state)
{
    struct call c;

    assert_string_equal(call_run(&c, *state, "bash", "{'command':'echo -n no; exit 3'}"), "no\nexit status 3");
    assert_true(c.result.failed && !c.result.unknown);
    call_done(&c);
    REFUSES(*state, "bash", "{'command':'kill -9 $$'}", "exit status 137 (killed by a signal)");
}

static void nothing_runs_before_it_is_told_to(void **state)
{
    struct world *w = *state;
    struct call c;
    pid_t pid;

    call_prepare(&c, w, "bash", "{'command':'touch ran'}");
    assert_int_equal(c.code, TIDE_OK);
    pid = c.work.proc.pid;
    assert_true(pid > 0);
    assert_int_equal(getpgid(pid), pid);
    assert_int_not_equal(faccessat(w->place.dir, "ran", F_OK, 0), 0);
    tool_drop(&c.work);
    assert_true(is_gone(pid));
    assert_int_not_equal(faccessat(w->place.dir, "ran", F_OK, 0), 0);
    call_done(&c); /* twice is once */
    WORKS(w, "bash", "{'command':'touch ran'}", "no output");
    assert_int_equal(faccessat(w->place.dir, "ran", F_OK, 0), 0);
}

static void the_environment_names_the_call_and_keeps_keys_back(void **state)
{
    struct world *w = *state;
    struct call c;
    char want[700];

    setenv("ANTHROPIC_API_KEY", "sk-a", 1);
    setenv("OPENAI_API_KEY", "sk-b", 1);
    setenv("TIDEMARK_API_KEY", "sk-c", 1);
    setenv("TIDEMARK_RUN", "door", 1);
    setenv("TIDEMARK_STEP", "step", 1);
    setenv("TIDEMARK_RUN_ID", "of another", 1);
    setenv("KEPT", "yes", 1);
    call_run(&c, w, "bash",
             "{'command':'echo [$ANTHROPIC_API_KEY$OPENAI_API_KEY$TIDEMARK_API_KEY$TIDEMARK_RUN$TIDEMARK_STEP] $KEPT "
             "$TIDEMARK_SESSION_ID $TIDEMARK_RUN_ID $TIDEMARK_IDEMPOTENCY_KEY; pwd; env | grep -c sk-'}");
    snprintf(want, sizeof want, "[] yes s1 run_1 key_1\n%s\n0\nexit status 1", w->cwd);
    assert_string_equal(buf_cstr(&c.result.text), want);
    call_done(&c);
    unsetenv("ANTHROPIC_API_KEY");
    unsetenv("OPENAI_API_KEY");
    unsetenv("TIDEMARK_API_KEY");
    unsetenv("TIDEMARK_RUN");
    unsetenv("TIDEMARK_STEP");
    unsetenv("TIDEMARK_RUN_ID");
    unsetenv("KEPT");
}

/* What waits at our own input is not for commands. */
static void there_is_no_input(void **state)
{
    int before = dup(STDIN_FILENO), pair[2];

    assert_int_equal(pipe(pair), 0);
    assert_int_equal(write(pair[1], "ours\n", 5), 5);
    assert_int_equal(dup2(pair[0], STDIN_FILENO), STDIN_FILENO);
    alarm(60);
    WORKS(*state, "bash", "{'command':'echo [$(cat)]'}", "[]");
    alarm(0);
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    close(before);
    close(pair[0]);
    close(pair[1]);
}

/* In a process that has a terminal; cmocka is not to be asked there. */
_Noreturn static void ask_at_the_terminal(const struct world *w)
{
    struct call c;
    bool here = open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0;

    call_prepare(&c, w, "bash", "{'command':'(exec 3</dev/tty) 2>/dev/null || echo none'}");
    if (!here || c.code)
        _exit(4);
    tool_run(&c.work, &c.result);
    _exit(str_eq(buf_view(&c.result.text), STR("none\n")) ? 0 : 3);
}

/* One that asks there fails at once, where it would be stopped until its time is out. */
static void there_is_no_terminal_to_ask_at(void **state)
{
    int terminal, status = -1;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);

    if (pid == 0)
        ask_at_the_terminal(*state);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* True when it had begun within that time: a busy machine may not get so far. */
static bool run_into_time_out(struct world *w, int seconds)
{
    struct call c;
    char args[400], words[100];
    bool begun;

    snprintf(
        args, sizeof args,
        "{'command':'trap : TERM; rm -f child; (trap : TERM; echo $BASHPID >child; while :; do sleep 1; done) & sleep 1000 & "
        "echo $! >grand; echo $$ >self; until [ -s child ]; do :; done; echo begun; while :; do wait; done',"
        "'timeout_ms':%d000}",
        seconds);
    snprintf(words, sizeof words, "timed out after %d s and was ended: how far it got is unknown", seconds);
    call_run(&c, w, "bash", args);
    HAS(buf_cstr(&c.result.text), words);
    assert_true(c.result.failed && c.result.unknown);
    begun = strstr(buf_cstr(&c.result.text), "begun\n") != NULL;
    call_done(&c);
    return begun;
}

/* One that does not listen to SIGTERM, and one that was left in the background, both go. */
static void a_time_out_ends_the_whole_group(void **state)
{
    struct world *w = *state;

    assert_true(run_into_time_out(w, 1) || run_into_time_out(w, 5) || run_into_time_out(w, 25));
    assert_true(is_gone(pid_in(w, "self")));
    assert_true(is_gone(pid_in(w, "child")));
    assert_true(is_gone(pid_in(w, "grand")));
}

static void the_place_has_a_time_out_of_its_own(void **state)
{
    struct world *w = *state;

    w->place.timeout_ms = 200;
    REFUSES(w, "bash", "{'command':'sleep 1000'}", "timed out after 0.2 s");
}

static void what_it_leaves_behind_is_ended(void **state)
{
    struct world *w = *state;
    struct call c;

    alarm(60); /* the pipe is held open: waiting for its end would be for ever */
    HAS(call_run(&c, w, "bash", "{'command':'sleep 1000 & echo $! >left; echo done'}"),
        "done\n1 process that it left running was ended");
    assert_false(c.result.failed);
    call_done(&c);
    assert_true(is_gone(pid_in(w, "left")));
    alarm(0);
}

/* It left the group: it is not ours to find, but it must not keep us. */
static void one_that_leaves_the_group_and_prints_for_ever_does_not_hold_us(void **state)
{
    struct world *w = *state;
    struct call c;

    alarm(60);
    call_run(
        &c, w, "bash",
        "{'command':'echo echo \\\\$\\\\$ \\\\>left\\\\; exec yes >it; setsid sh it & while [ ! -s left ]; do :; done'}");
    alarm(0);
    call_done(&c);
    assert_true(is_gone(pid_in(w, "left"))); /* of the pipe that nobody reads any more */
}

/* ---- being stopped ---- */

struct stopper {
    const struct world *w;
    int asked;
};

/* As soon as the command is under way. */
static bool when_begun(void *arg)
{
    struct stopper *s = arg;

    s->asked++;
    return faccessat(s->w->place.dir, "begun", F_OK, 0) == 0;
}

static void a_stop_ends_it_quickly(void **state)
{
    struct world *w = *state;
    struct stopper s = {.w = w};
    struct call c;
    int64_t begun = monotonic_ms();

    w->place.stop = when_begun;
    w->place.arg = &s;
    call_run(&c, w, "bash", "{'command':'sleep 1000 & echo $! >child; touch begun; wait'}");
    HAS(buf_cstr(&c.result.text), "stopped before it ended");
    assert_true(c.result.failed && c.result.unknown);
    assert_true(monotonic_ms() - begun < 20000); /* not the 120 s of the time-out */
    assert_true(s.asked > 1);
    call_done(&c);
    assert_true(is_gone(pid_in(w, "child")));
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void one_that_is_stopped_before_it_starts_has_done_nothing(void **state)
{
    struct world *w = *state;
    struct call c;

    w->place.stop = always;
    call_run(&c, w, "bash", "{'command':'touch ran'}");
    HAS(buf_cstr(&c.result.text), "nothing was done");
    assert_true(c.result.failed && !c.result.unknown);
    call_done(&c);
    assert_int_not_equal(faccessat(w->place.dir, "ran", F_OK, 0), 0);
}

/* ---- output ---- */

static long peak_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void output_without_end_is_kept_at_both_ends(void **state)
{
    struct world *w = *state;
    struct call c;
    long before = peak_kib();

    w->place.max_result_chars = 30000;
    call_run(&c, w, "bash", "{'command':'echo first; yes abcdefghi | head -c 104857600; echo last; exit 2'}");
    struct str text = buf_view(&c.result.text);

    assert_true(str_starts(text, STR("first\nabcdefghi\n")));
    HAS(buf_cstr(&c.result.text), "\nlast\nexit status 2");
    HAS(buf_cstr(&c.result.text), "[… 104,8");
    assert_true(utf8_chars(text) <= 30000 && utf8_chars(text) > 29000);
    assert_true(peak_kib() - before < 20 * 1024);
    call_done(&c);

    w->place.max_result_chars = 0;
    call_run(&c, w, "bash", "{'command':'yes abcdefghi | head -c 104857600; echo last'}");
    HAS(buf_cstr(&c.result.text) + c.result.text.len - 10, "last\n");
    assert_true(c.result.text.len <= TOOL_RESULT_MAX && c.result.text.len > 1 << 20);
    assert_true(peak_kib() - before < (SLOW_BUILD ? 200 : 60) * 1024);
    call_done(&c);
}

static void the_middle_goes_at_a_characters_border(void **state)
{
    struct world *w = *state;

    for (size_t max = 990; max < 1010; max++)
        for (int shift = 0; shift < 3; shift++) {
            char args[300];
            struct call c;

            w->place.max_result_chars = max;
            snprintf(args, sizeof args, "{'command':'printf %%%ds; for i in {1..%d}; do printf \xe2\x82\xac; done'}",
                     shift, max % 2 ? 1200 : 20000);
            call_run(&c, w, "bash", args);
            assert_false(c.result.replaced || c.result.failed);
            assert_true(utf8_chars(buf_view(&c.result.text)) <= max);
            HAS(buf_cstr(&c.result.text), "\xac\n[… ");
            HAS(buf_cstr(&c.result.text), " bytes left out here …]\n\xe2\x82\xac");
            call_done(&c);
        }
}

static void bytes_that_are_no_text_are_replaced_and_flagged(void **state)
{
    struct call c;

    assert_string_equal(call_run(&c, *state, "bash", "{'command':'printf a\\\\\\\\377b\\\\\\\\000c'}"), "a\xef\xbf\xbd"
                                                                                                        "b\xef\xbf\xbd"
                                                                                                        "c");
    assert_true(c.result.replaced);
    call_done(&c);
    alarm(120);
    call_run(&c, *state, "bash", "{'command':'head -c 20000000 /dev/urandom'}");
    assert_true(c.result.replaced);
    assert_true(c.result.text.len <= TOOL_RESULT_MAX);
    call_done(&c);
    alarm(0);
}

static void a_tiny_limit_is_kept(void **state)
{
    struct world *w = *state;
    struct call c;

    w->place.max_result_chars = 10;
    call_run(&c, w, "bash", "{'command':'seq 1000'}");
    HAS(buf_cstr(&c.result.text), "more characters]");
    assert_true(c.result.text.len < 60);
    call_done(&c);
}

static void a_working_directory_that_is_gone_is_told(void **state)
{
    struct world *w = *state;

    w->place.cwd = "/nonexistent/nowhere";
    REFUSES(w, "bash", "{'command':'true'}", "cannot be started");
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(output_without_end_is_kept_at_both_ends),
        T(output_and_errors_come_together_in_order),
        T(a_status_that_is_not_zero_is_a_failure),
        T(nothing_runs_before_it_is_told_to),
        T(the_environment_names_the_call_and_keeps_keys_back),
        T(there_is_no_input),
        T(there_is_no_terminal_to_ask_at),
        T(a_time_out_ends_the_whole_group),
        T(the_place_has_a_time_out_of_its_own),
        T(what_it_leaves_behind_is_ended),
        T(one_that_leaves_the_group_and_prints_for_ever_does_not_hold_us),
        T(a_stop_ends_it_quickly),
        T(one_that_is_stopped_before_it_starts_has_done_nothing),
        T(the_middle_goes_at_a_characters_border),
        T(bytes_that_are_no_text_are_replaced_and_flagged),
        T(a_tiny_limit_is_kept),
        T(a_working_directory_that_is_gone_is_told),
    };

    return cmocka_run_group_tests_name("tool_bash", tests, NULL, NULL);
}
