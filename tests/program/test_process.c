/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at the gate, their output, their ends, and what they leave behind: with real processes. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "process_ended.h"
#include "kit.h"
#include "program/capture.h"
#include "program/find.h"
#include "program/proc.h"
#include "program/relay.h"
#include "program/tree.h"

static char *const no_sets[] = {NULL};

/* ---- helpers ---- */

struct shell {
    struct proc proc;
    struct capture capture;
    struct arena arena;
};

/* `sh -c script` at its gate, output to us. */
static void shell_hold(struct shell *s, const char *script, size_t max_output)
{
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    struct proc_spec spec = {.path = "/bin/sh", .argv = argv, .err = -1};
    int pair[2];

    *s = (struct shell){.proc = PROC_INIT};
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    spec.envp = proc_env(&s->arena, environ, no_sets);
    spec.out = pair[1];
    OK(proc_hold(&spec, &s->proc, &err));
    close(pair[1]);
    capture_init(&s->capture, &s->proc, pair[0], max_output);
}

static void shell_done(struct shell *s)
{
    proc_drop(&s->proc);
    capture_done(&s->capture);
    arena_done(&s->arena);
}

static void shell_run(struct shell *s, const char *script, size_t max_output)
{
    shell_hold(s, script, max_output);
    OK(proc_go(&s->proc, NULL, &err));
    capture_run(&s->capture);
}

/* ---- the gate ---- */

static void nothing_runs_before_the_gate_opens(void **state)
{
    char dir[256], script[400], path[300];
    struct shell s;

    (void)state;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/ran", dir);
    snprintf(script, sizeof script, "touch %s", path);
    shell_hold(&s, script, 100);
    assert_true(s.proc.pid > 0);
    assert_true(s.proc.start > 0);
    assert_int_equal(s.proc.start, proc_start_time(s.proc.pid));
    assert_int_equal(getpgid(s.proc.pid), s.proc.pid);
    assert_int_not_equal(access(path, F_OK), 0);
    OK(proc_go(&s.proc, NULL, &err));
    capture_run(&s.capture);
    assert_int_equal(access(path, F_OK), 0);
    shell_done(&s);

    unlink(path);
    shell_hold(&s, script, 100);
    shell_done(&s); /* dropped at the gate */
    assert_int_not_equal(access(path, F_OK), 0);
    dir_remove(dir);
}

static void the_gates_messages_are_in_the_environment(void **state)
{
    static const char *const messages[PROC_SLOTS] = {"run_123", "7"};
    struct arena a = ARENA_INIT;
    char *one = arena_zero(&a, 16 + PROC_MESSAGE_MAX), *two = arena_zero(&a, 16 + PROC_MESSAGE_MAX);
    char *sets[] = {one, two, "OTHER=x", NULL};
    char *argv[] = {"sh", "-c", "printf '%s %s %s' \"$ONE\" \"$TWO\" \"$OTHER\"", NULL};
    struct proc_spec spec = {.path = "/bin/sh", .argv = argv, .err = -1};
    struct proc p = PROC_INIT;
    struct capture c;
    int pair[2];

    (void)state;
    setenv("OTHER", "before", 1);
    spec.slots[0] = one + snprintf(one, 16, "ONE=");
    spec.slots[1] = two + snprintf(two, 16, "TWO=");
    spec.envp = proc_env(&a, environ, sets);
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    spec.out = pair[1];
    OK(proc_hold(&spec, &p, &err));
    close(pair[1]);
    capture_init(&c, &p, pair[0], 100);
    OK(proc_go(&p, messages, &err));
    capture_run(&c);
    assert_string_equal(buf_cstr(&c.output), "run_123 7 x");
    capture_done(&c);
    arena_done(&a);
    unsetenv("OTHER");
}

static void a_start_that_fails_says_why_and_leaves_nothing(void **state)
{
    char *argv[] = {"nothing", NULL};
    struct proc_spec spec = {.path = "/nonexistent/nothing", .argv = argv, .envp = environ, .out = -1, .err = -1};
    struct proc p = PROC_INIT;
    pid_t pid;

    (void)state;
    OK(proc_hold(&spec, &p, &err));
    pid = p.pid;
    GIVES(TIDE_NOT_FOUND, proc_go(&p, NULL, &err));
    assert_int_equal(p.pid, 0);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    spec.path = "/bin/sh";
    spec.cwd = "/nonexistent";
    OK(proc_hold(&spec, &p, &err));
    GIVES(TIDE_NOT_FOUND, proc_go(&p, NULL, &err));
}

static void a_script_without_an_interpreter_line_is_run_by_the_shell(void **state)
{
    char dir[256], path[300];
    char *argv[] = {"plain", "word", NULL};
    struct proc_spec spec = {.argv = argv, .envp = environ, .err = -1};
    struct proc p = PROC_INIT;
    struct capture c;
    int pair[2];
    FILE *f;

    (void)state;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/plain", dir);
    f = fopen(path, "we");
    fputs("echo \"$1\"\n", f);
    fclose(f);
    chmod(path, 0755);
    spec.path = path;
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    spec.out = pair[1];
    OK(proc_hold(&spec, &p, &err));
    close(pair[1]);
    capture_init(&c, &p, pair[0], 100);
    OK(proc_go(&p, NULL, &err));
    capture_run(&c);
    assert_string_equal(buf_cstr(&c.output), "word\n");
    capture_done(&c);
    dir_remove(dir);
}

/* The one who holds it dies: so does what is held, and what runs. */
static void a_program_dies_with_its_holder(void **state)
{
    int tell[2];
    pid_t holder, pids[2];

    (void)state;
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    holder = fork();
    if (holder == 0) {
        struct shell held, runs;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        shell_hold(&held, "sleep 1000", 10);
        shell_hold(&runs, "exec sleep 1000", 10);
        if (proc_go(&runs.proc, NULL, NULL))
            _exit(1);
        pids[0] = held.proc.pid;
        pids[1] = runs.proc.pid;
        if (write(tell[1], pids, sizeof pids) != (ssize_t)sizeof pids)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(tell[0], pids, sizeof pids), sizeof pids);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    assert_true(is_gone(pids[0]));
    assert_true(is_gone(pids[1]));
    close(tell[0]);
    close(tell[1]);
}

/* With no set-up of signals: an embedder must not die of it. */
static void a_program_that_was_killed_at_its_gate_is_an_error(void **state)
{
    struct tide_err err = {0};
    struct shell s;
    siginfo_t info;

    (void)state;
    shell_hold(&s, "echo never", 100);
    kill(s.proc.pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)s.proc.pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(proc_go(&s.proc, NULL, &err) != TIDE_OK);
    shell_done(&s);
}

static void what_we_ignore_the_program_does_not(void **state)
{
    struct shell s;

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    shell_run(&s, "kill -PIPE $$; echo alive", 100);
    signal(SIGPIPE, SIG_DFL);
    assert_true(WIFSIGNALED(s.capture.status));
    assert_int_equal(WTERMSIG(s.capture.status), SIGPIPE);
    shell_done(&s);
}

/* ---- to the end ---- */

static void ends_are_told_as_a_shell_tells_them(void **state)
{
    static const struct {
        const char *script, *output;
        int status;
    } rows[] = {
        {"echo hello; exit 0", "hello\n", 0},
        {"printf x; exit 7", "x", 7},
        {"exec >&-; exit 3", "", 3}, /* output closed early is just its end */
        {"kill -KILL $$", "", 128 + 9},
        {"exec >&-; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; exit 4", "", 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct shell s;

        shell_run(&s, rows[i].script, 100);
        assert_int_equal(capture_exit_status(s.capture.status), rows[i].status);
        assert_string_equal(buf_cstr(&s.capture.output), rows[i].output);
        shell_done(&s);
    }
}

static void output_beyond_the_bound_is_counted_and_thrown_away(void **state)
{
    struct shell s;

    (void)state;
    shell_run(&s, "head -c 3000000 /dev/zero; exit 5", 1000);
    assert_int_equal(capture_exit_status(s.capture.status), 5); /* it ran to its end */
    assert_int_equal(s.capture.bytes, 3000000);
    assert_int_equal(s.capture.output.len, 1000);
    shell_done(&s);
    shell_run(&s, "printf 12345", 5);
    assert_int_equal(s.capture.bytes, 5); /* exactly the bound is not beyond it */
    assert_int_equal(s.capture.output.len, 5);
    shell_done(&s);
}

/* Into its time limit, behind its first line: on a busy machine a short limit is over before it gets there. */
static void shell_run_into_limit(struct shell *s, const char *script)
{
    static const int64_t limits_ms[] = {100, 1000, 10000};
    size_t i = 0;

    do {
        if (i > 0)
            shell_done(s);
        shell_hold(s, script, 100);
        s->capture.timeout_ms = limits_ms[i];
        OK(proc_go(&s->proc, NULL, &err));
        capture_run(&s->capture);
        assert_true(s->capture.timed_out);
    } while (!strchr(buf_cstr(&s->capture.output), '\n') && ++i < sizeof limits_ms / sizeof limits_ms[0]);
}

static void a_time_limit_ends_it_and_what_it_started(void **state)
{
    struct shell s;
    int64_t began = monotonic_ms();
    pid_t inner;

    (void)state;
    shell_run_into_limit(&s, "sleep 1000 & echo $!; wait");
    assert_true(monotonic_ms() - began >= 100);
    inner = (pid_t)strtol(buf_cstr(&s.capture.output), NULL, 10);
    assert_true(inner > 0 && is_gone(inner));
    shell_done(&s);
}

static void one_that_does_not_listen_is_killed(void **state)
{
    struct shell s;

    (void)state;
    shell_run_into_limit(&s, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_true(WIFSIGNALED(s.capture.status));
    assert_int_equal(WTERMSIG(s.capture.status), SIGKILL);
    shell_done(&s);
}

static void children_left_behind_are_ended_and_do_not_hold_us_up(void **state)
{
    struct shell s;
    char *end;
    pid_t a, b;

    (void)state;
    shell_run(&s, "sleep 1000 & echo $!; sleep 1001 & echo $!; exit 6", 100);
    assert_int_equal(capture_exit_status(s.capture.status), 6);
    assert_int_equal(s.capture.left_behind, 2);
    a = (pid_t)strtol(buf_cstr(&s.capture.output), &end, 10);
    b = (pid_t)strtol(end, NULL, 10);
    assert_true(is_gone(a));
    assert_true(is_gone(b));
    shell_done(&s);
}

static void a_broken_link_kills_the_program(void **state)
{
    struct shell s;
    int pair[2];

    (void)state;
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    shell_hold(&s, "sleep 1000", 100);
    s.capture.link = pair[0];
    OK(proc_go(&s.proc, NULL, &err));
    close(pair[1]);
    capture_run(&s.capture);
    assert_true(s.capture.broken);
    assert_int_equal(WTERMSIG(s.capture.status), SIGKILL);
    close(pair[0]);
    shell_done(&s);
}

static void a_signal_to_us_reaches_the_program(void **state)
{
    unsigned char number = SIGTERM;
    struct shell s;
    int signals[2];

    (void)state;
    shell_hold(&s, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done", 100);
    assert_int_equal(pipe2(signals, O_CLOEXEC | O_NONBLOCK), 0);
    s.capture.signals = signals[0];
    OK(proc_go(&s.proc, NULL, &err));
    for (int i = 0; i < 3000 && s.capture.output.len == 0; i++) { /* the trap is set when it says so */
        char c;

        if (read(s.capture.out, &c, 1) == 1)
            buf_add_char(&s.capture.output, c);
        else
            poll(NULL, 0, 1);
    }
    assert_int_equal(write(signals[1], &number, 1), 1);
    capture_run(&s.capture);
    assert_int_equal(s.capture.stop_signal, SIGTERM);
    assert_int_equal(capture_exit_status(s.capture.status), 9);
    close(signals[0]);
    close(signals[1]);
    shell_done(&s);
}

/* ---- the tree ---- */

static void what_leaves_its_group_is_found_all_the_same(void **state)
{
    char dir[256];
    int status = -1;
    pid_t holder;

    (void)state;
    dir_make(dir);
    holder = fork();
    if (holder == 0) { /* adopting cannot be undone: in a process of its own */
        struct shell s;
        char script[700];
        pid_t far;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        snprintf(script, sizeof script, "setsid sh -c ': >%s/up; exec sleep 1000' & until [ -e %s/up ]; do :; done",
                 dir, dir);
        shell_run(&s, script, 100);
        for (int i = 0; i < 3000 && tree_signal(getpid(), 0) == 0; i++)
            poll(NULL, 0, 1);
        if (tree_signal(getpid(), 0) != 1)
            _exit(2);
        tree_signal(getpid(), SIGKILL);
        for (int i = 0; i < 3000 && tree_signal(getpid(), 0) > 0; i++)
            poll(NULL, 0, 1);
        if (tree_is_empty()) /* it is dead and ours, so it may have left us others since the walk */
            _exit(4);
        tree_reap(0);
        far = waitpid(-1, NULL, WNOHANG);
        _exit(far == -1 && tree_signal(getpid(), 0) == 0 && tree_is_empty() ? 0 : 3);
    }
    waitpid(holder, &status, 0);
    dir_remove(dir);
    assert_int_equal(status, 0);
}

static void *stay(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void one_whose_first_thread_has_ended_lives_and_is_found(void **state)
{
    pthread_t thread;
    size_t found, of_group;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        if (pthread_create(&thread, NULL, stay, NULL) == 0)
            pthread_exit(NULL);
        _exit(2);
    }
    for (int i = 0; i < 10000 && state_of(pid) != 'Z'; i++)
        poll(NULL, 0, 1);
    of_group = tree_group_size(pid);
    found = tree_signal(getpid(), SIGKILL);
    kill(pid, SIGKILL); /* also where it was not found */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(of_group, 1);
    assert_int_equal(found, 1);
}

/* In the middle of an exec a process shows no environment: this one is there often. */
static void one_that_changes_its_program_all_the_time_is_found(void **state)
{
    char *argv[] = {"sh", "-c", "exec sh -c \"$0\" \"$0\"", "exec sh -c \"$0\" \"$0\"", NULL};

    (void)state;
    for (int i = 0; i < (SLOW_BUILD ? 20 : 100); i++) {
        char byte, run_id[32];
        size_t found;
        int held[2];
        pid_t pid;

        snprintf(run_id, sizeof run_id, "exec_%d_%d", (int)getpid(), i);
        assert_int_equal(pipe2(held, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) { /* one between: our own children are left alone */
            setenv("TIDEMARK_RUN_ID", run_id, 1);
            if (fork() == 0)
                execv("/bin/sh", argv);
            _exit(0);
        }
        close(held[1]);
        waitpid(pid, NULL, 0);
        assert_int_equal(read(held[0], &byte, 1), 0); /* the first exec */
        close(held[0]);
        found = tree_end_run(run_id);
        for (int k = 0; k < 100 && !found && !tree_end_run(run_id); k++) /* that the test leaves nothing behind */
            poll(NULL, 0, 1);
        assert_int_equal(found, 1);
    }
}

static void start_times_name_a_process(void **state)
{
    (void)state;
    assert_true(proc_start_time(getpid()) > 0);
    assert_int_equal(proc_start_time(0x7ffffff0), 0);
}

/* Who ignores SIGCHLD, or waits for all children, takes the end of a program away: it is over all the same. */
static void a_status_that_somebody_else_took_is_a_failure_and_no_wait_without_end(void **state)
{
    struct shell s;

    (void)state;
    signal(SIGCHLD, SIG_IGN);
    shell_run(&s, "exit 0", 100);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(s.proc.pid, 0);
    assert_int_equal(capture_exit_status(s.capture.status), 255);
    shell_done(&s);
}

/* ---- finding ---- */

static void programs_are_found_as_a_shell_finds_them(void **state)
{
    char dir[256], path[600], command[500];
    const char *old = getenv("PATH");
    AUTO(mem_freep) char *before = mem_dup(str_from(old));
    struct buf got = BUF_INIT(PROGRAM_PATH_MAX);

    (void)state;
    dir_make(dir);
    snprintf(
        command, sizeof command,
        "cd %s && mkdir d other && echo : >run && chmod 755 run && echo : >plain && chmod 644 plain && cp run other/it",
        dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    OK(program_find("./run", dir, &got, &err));
    snprintf(path, sizeof path, "%s/./run", dir);
    assert_string_equal(buf_cstr(&got), path);
    ABOUT(TIDE_NOT_FOUND, TIDE_SUBJECT_FILE, "./nothing", program_find("./nothing", dir, &got, &err));
    ABOUT(TIDE_DENIED, TIDE_SUBJECT_FILE, "./plain", program_find("./plain", dir, &got, &err));
    ABOUT(TIDE_DENIED, TIDE_SUBJECT_FILE, "./d", program_find("./d", dir, &got, &err));
    GIVES(TIDE_NOT_FOUND, program_find("", dir, &got, &err));
    snprintf(path, sizeof path, "%s/d:%s/other", dir, dir);
    setenv("PATH", path, 1);
    OK(program_find("it", dir, &got, &err));
    snprintf(path, sizeof path, "%s/other/it", dir);
    assert_string_equal(buf_cstr(&got), path);
    GIVES(TIDE_NOT_FOUND, program_find("run", dir, &got, &err));
    setenv("PATH", "", 1); /* an empty entry is where we are */
    OK(program_find("run", dir, &got, &err));
    setenv("PATH", before, 1);
    assert_int_equal(program_find_exit(TIDE_NOT_FOUND), 127);
    assert_int_equal(program_find_exit(TIDE_DENIED), 126);
    buf_done(&got);
    dir_remove(dir);
}

/* ---- output on its way ---- */

static void output_is_passed_on_and_its_end_kept(void **state)
{
    struct buf text = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    struct relay r;
    char piece[5000];
    int to[2];

    (void)state;
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    OK(relay_open(&r, to[1], &err));
    for (int i = 0; i < 10; i++) {
        memset(piece, 'a' + i, sizeof piece);
        assert_int_equal(write(r.child_end, piece, sizeof piece), sizeof piece);
        for (int k = 0; k < 10; k++) {
            struct pollfd p = relay_wants(&r);

            if (poll(&p, 1, 0) > 0)
                relay_move(&r, p.revents);
        }
        buf_reserve(&got, sizeof piece);
        got.len += (size_t)read(to[0], got.ptr + got.len, sizeof piece);
    }
    relay_close_child_end(&r);
    relay_drain(&r);
    assert_int_equal(r.bytes, 50000);
    assert_int_equal(got.len, 50000);
    relay_tail(&r, &text);
    assert_int_equal(text.len, RELAY_TAIL);
    assert_memory_equal(text.ptr, got.ptr + got.len - RELAY_TAIL, RELAY_TAIL);
    relay_done(&r);
    close(to[0]);
    close(to[1]);
    buf_done(&text);
    buf_done(&got);
}

static void a_reader_that_is_gone_ends_the_programs_pipe(void **state)
{
    struct relay r;
    int to[2];

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    OK(relay_open(&r, to[1], &err));
    close(to[0]);
    assert_int_equal(write(r.child_end, "x", 1), 1);
    for (int i = 0; i < 4; i++) {
        struct pollfd p = relay_wants(&r);

        if (poll(&p, 1, 0) > 0)
            relay_move(&r, p.revents);
    }
    assert_true(r.reader_gone);
    assert_int_equal(write(r.child_end, "x", 1), -1); /* EPIPE: what it would get without us */
    relay_done(&r);
    close(to[1]);
    signal(SIGPIPE, SIG_DFL);
}

static void a_terminal_that_is_held_does_not_hold_us(void **state)
{
    struct relay r;
    char piece[8192];
    int terminal, held;

    (void)state;
    memset(piece, '\n', sizeof piece); /* each is two characters there: room for one is none */
    assert_int_equal(openpty(&terminal, &held, NULL, NULL, NULL), 0);
    OK(relay_open(&r, held, &err));
    fcntl(r.child_end, F_SETFL, O_NONBLOCK);
    alarm(30); /* ends the test when a write blocks */
    for (int i = 0; i < 1000; i++) {
        struct pollfd p = relay_wants(&r);

        (void)!write(r.child_end, piece, sizeof piece);
        if (poll(&p, 1, 0) > 0)
            relay_move(&r, p.revents);
    }
    alarm(0);
    assert_false(r.reader_gone);
    assert_true(r.piece_at < r.piece_len); /* the rest is kept for when it is let go */
    assert_true(read(terminal, piece, sizeof piece) > 0);
    relay_done(&r);
    close(held);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_runs_before_the_gate_opens),
        cmocka_unit_test(the_gates_messages_are_in_the_environment),
        cmocka_unit_test(a_start_that_fails_says_why_and_leaves_nothing),
        cmocka_unit_test(a_program_that_was_killed_at_its_gate_is_an_error),
        cmocka_unit_test(a_script_without_an_interpreter_line_is_run_by_the_shell),
        cmocka_unit_test(a_program_dies_with_its_holder),
        cmocka_unit_test(what_we_ignore_the_program_does_not),
        cmocka_unit_test(ends_are_told_as_a_shell_tells_them),
        cmocka_unit_test(output_beyond_the_bound_is_counted_and_thrown_away),
        cmocka_unit_test(a_time_limit_ends_it_and_what_it_started),
        cmocka_unit_test(one_that_does_not_listen_is_killed),
        cmocka_unit_test(children_left_behind_are_ended_and_do_not_hold_us_up),
        cmocka_unit_test(a_broken_link_kills_the_program),
        cmocka_unit_test(a_signal_to_us_reaches_the_program),
        cmocka_unit_test(what_leaves_its_group_is_found_all_the_same),
        cmocka_unit_test(one_whose_first_thread_has_ended_lives_and_is_found),
        cmocka_unit_test(one_that_changes_its_program_all_the_time_is_found),
        cmocka_unit_test(start_times_name_a_process),
        cmocka_unit_test(a_status_that_somebody_else_took_is_a_failure_and_no_wait_without_end),
        cmocka_unit_test(programs_are_found_as_a_shell_finds_them),
        cmocka_unit_test(output_is_passed_on_and_its_end_kept),
        cmocka_unit_test(a_reader_that_is_gone_ends_the_programs_pipe),
        cmocka_unit_test(a_terminal_that_is_held_does_not_hold_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
