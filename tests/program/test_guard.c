/* SPDX-License-Identifier: Apache-2.0 */
/* Guards: trees of programs side by side in one process, each ended alone, and what becomes of them when somebody is killed. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "process_ended.h"
#include "kit.h"
#include "program/capture.h"
#include "program/guard.h"
#include "program/proc.h"

#define THREADS 4
#define ROUNDS (SLOW_BUILD ? 5 : 25)

static char *const no_sets[] = {NULL};

/* A child of a child in a session of its own, whose parent is gone; its pid is printed once it is there. */
#define FAR "(setsid sh -c 'sleep 1987 & echo $!' &)"

struct shell {
    struct proc proc;
    struct capture capture;
    struct arena arena;
};

static void shell_hold(struct shell *s, struct guard *g, const char *script)
{
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    struct proc_spec spec = {.guard = g, .path = "/bin/sh", .argv = argv, .err = -1};
    int pair[2];

    *s = (struct shell){.proc = PROC_INIT};
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    spec.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    spec.envp = proc_env(&s->arena, environ, no_sets);
    spec.out = pair[1];
    OK(proc_hold(&spec, &s->proc, &err));
    close(pair[1]);
    close(spec.in);
    capture_init(&s->capture, &s->proc, pair[0], 1000);
}

static void shell_done(struct shell *s)
{
    proc_drop(&s->proc);
    capture_done(&s->capture);
    arena_done(&s->arena);
}

/* One number that it prints. */
static pid_t read_pid(struct shell *s)
{
    char text[32] = "";
    size_t len = 0;

    for (int i = 0; i < 10000 && !memchr(text, '\n', len); i++) {
        ssize_t n = read(s->capture.out, text + len, 1);

        if (n > 0)
            len += (size_t)n;
        else
            poll(NULL, 0, 1);
    }
    return (pid_t)strtol(text, NULL, 10);
}

static void start(struct shell *s, struct guard *g, const char *script)
{
    shell_hold(s, g, script);
    OK(proc_go(&s->proc, NULL, &err));
}

static bool lives(pid_t pid)
{
    char state = state_of(pid);

    return pid > 0 && state && state != 'Z';
}

/* A guard that another thread makes has for a moment what we have closed: then the answer takes as long. */
static bool becomes_empty(struct guard *g)
{
    for (int i = 0; i < 10000 && !guard_is_empty(g); i++)
        poll(NULL, 0, 1);
    return guard_is_empty(g);
}

static void each_tree_is_ended_alone(void **state)
{
    struct guard one = GUARD_INIT, two = GUARD_INIT;
    struct shell a, b;
    pid_t far_a, far_b, of_b;

    (void)state;
    assert_true(guard_is_empty(&one)); /* nobody started anything */
    start(&a, &one, FAR "; exec sleep 1987");
    start(&b, &two, FAR "; exec sleep 1987");
    far_a = read_pid(&a);
    far_b = read_pid(&b);
    of_b = b.proc.pid;
    assert_true(lives(far_a) && lives(far_b));
    assert_int_equal(guard_signal(&one, 0), 2); /* its own alone */
    assert_false(guard_is_empty(&one));
    guard_end(&one);
    assert_false(lives(far_a)); /* at once: it has been waited for */
    assert_false(lives(a.proc.pid));
    assert_true(lives(far_b) && lives(of_b));
    assert_false(guard_is_empty(&two));

    proc_signal(&b.proc, SIGTERM);
    capture_run(&b.capture);
    assert_int_equal(capture_exit_status(b.capture.status), 128 + SIGTERM);
    assert_true(lives(far_b)); /* it left the program's group, not the tree */
    assert_false(guard_is_empty(&two));
    assert_int_equal(guard_signal(&two, SIGKILL), 1);
    assert_true(becomes_empty(&two));
    assert_false(lives(far_b));
    guard_end(&two);
    shell_done(&a);
    shell_done(&b);
}

static void what_left_its_group_may_stay(void **state)
{
    struct guard g = GUARD_INIT;
    struct shell s;
    pid_t far;

    (void)state;
    start(&s, &g, FAR "; read line </dev/null; exit 0");
    far = read_pid(&s);
    capture_run(&s.capture);
    guard_leave(&g);
    assert_int_equal(g.pid, 0);
    assert_true(lives(far));
    kill(far, SIGKILL);
    assert_true(is_gone(far));
    shell_done(&s);
    guard_leave(&g); /* there is none */
}

/* Also what nobody would find: the process that held the guard is gone before it can do anything. */
static void a_killed_run_leaves_nothing_working(void **state)
{
    pid_t holder, pids[3];
    int tell[2];

    (void)state;
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    holder = fork();
    if (holder == 0) {
        struct guard g = GUARD_INIT;
        struct shell held, runs;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        shell_hold(&held, &g, "sleep 1987");
        start(&runs, &g, FAR "; trap '' TERM HUP; exec sleep 1987");
        pids[0] = held.proc.pid;
        pids[1] = runs.proc.pid;
        pids[2] = read_pid(&runs);
        if (write(tell[1], pids, sizeof pids) != (ssize_t)sizeof pids)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(tell[0], pids, sizeof pids), sizeof pids);
    assert_true(lives(pids[2]));
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(is_gone(pids[i]));
    close(tell[0]);
    close(tell[1]);
}

static void a_killed_guard_takes_its_programs_along_and_is_replaced(void **state)
{
    struct guard g = GUARD_INIT;
    struct shell s;
    pid_t pid;

    (void)state;
    start(&s, &g, "echo $$; exec sleep 1987");
    pid = read_pid(&s);
    kill(g.pid, SIGKILL);
    capture_run(&s.capture);
    assert_int_equal(capture_exit_status(s.capture.status), 128 + SIGKILL);
    assert_true(is_gone(pid));
    shell_done(&s);
    start(&s, &g, "exit 5");
    assert_true(g.lost);
    capture_run(&s.capture);
    assert_int_equal(capture_exit_status(s.capture.status), 5);
    shell_done(&s);
    kill(g.pid, SIGKILL);
    assert_true(is_gone(g.pid));
    assert_true(guard_is_empty(&g)); /* it cannot be asked */
    guard_end(&g);
}

/* Directory, descriptors, environment, messages: as if it were our child, whatever became of these since the guard was made. */
static void a_program_begins_as_a_child_of_ours_would(void **state)
{
    static const char *const messages[PROC_SLOTS] = {"run_123", "7"};
    struct arena a = ARENA_INIT;
    char *one = arena_zero(&a, 16 + PROC_MESSAGE_MAX), *two = arena_zero(&a, 16 + PROC_MESSAGE_MAX);
    char *big = arena_zero(&a, 100001), dir[256], text[512] = "", want[400];
    char *sets[] = {one, big, two, NULL};
    char *argv[] = {"sh", "-c", "printf '%s %s %s ' \"$ONE\" \"$TWO\" \"${#BIG}\"; pwd; cat; kill -PIPE $$", NULL};
    struct guard g = GUARD_INIT;
    struct proc_spec spec = {.guard = &g, .path = "/bin/sh", .argv = argv, .err = -1};
    struct proc p = PROC_INIT;
    int in[2], out[2], before = dup(STDIN_FILENO), here = open(".", O_PATH | O_CLOEXEC), status = -1;
    struct shell s;
    size_t len = 0;

    (void)state;
    start(&s, &g, "exit 0"); /* the guard is there */
    capture_run(&s.capture);
    shell_done(&s);
    dir_make(dir);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(dup2(in[0], STDIN_FILENO), STDIN_FILENO); /* ours from now on */
    assert_int_equal(write(in[1], "said", 4), 4);
    close(in[1]);
    memcpy(big, "BIG=", 4);
    memset(big + 4, 'x', 99996);
    spec.slots[0] = one + snprintf(one, 16, "ONE=");
    spec.slots[1] = two + snprintf(two, 16, "TWO=");
    spec.envp = proc_env(&a, environ, sets);
    spec.out = out[1];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* its status is known all the same */
    OK(proc_hold(&spec, &p, &err));
    assert_int_equal(getpgid(p.pid), p.pid);
    assert_int_equal(p.start, proc_start_time(p.pid));
    close(out[1]);
    OK(proc_go(&p, messages, &err));
    for (ssize_t n; (n = read(out[0], text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)n;
    for (int i = 0; i < 10000 && !proc_reap(&p, &status); i++)
        poll(NULL, 0, 1);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    snprintf(want, sizeof want, "run_123 7 99996 %s\nsaid", dir);
    assert_string_equal(text, want);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGPIPE);
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    guard_end(&g);
    close(before);
    close(here);
    close(in[0]);
    close(out[0]);
    arena_done(&a);
    dir_remove(dir);
}

static void a_start_that_fails_says_why_and_leaves_nothing(void **state)
{
    char *argv[] = {"nothing", NULL};
    struct guard g = GUARD_INIT;
    struct proc_spec spec = {
        .guard = &g, .path = "/nonexistent/nothing", .argv = argv, .envp = environ, .out = -1, .err = -1};
    struct proc p = PROC_INIT;

    (void)state;
    OK(proc_hold(&spec, &p, &err));
    GIVES(TIDE_NOT_FOUND, proc_go(&p, NULL, &err));
    assert_int_equal(p.pid, 0);
    assert_true(becomes_empty(&g));
    OK(proc_hold(&spec, &p, &err));
    proc_drop(&p); /* at its gate */
    assert_true(becomes_empty(&g));
    guard_end(&g);
    guard_end(&g);
}

/* What is open in us is not open there: neither locks nor pipes are held by it. */
static void a_guard_holds_no_descriptor_of_ours(void **state)
{
    struct guard g = GUARD_INIT;
    struct shell s;
    char c;
    int pair[2];

    (void)state;
    assert_int_equal(pipe(pair), 0); /* NOLINT(android-cloexec-pipe) also one that is handed down */
    shell_hold(&s, &g, "exit 0");
    close(pair[1]);
    assert_int_equal(read(pair[0], &c, 1), 0);
    close(pair[0]);
    shell_done(&s);
    guard_end(&g);
}

/* Nor is anything held up by who has copies of ours. */
static void a_fork_of_ours_does_not_keep_a_guard(void **state)
{
    struct guard g = GUARD_INIT;
    struct shell s, longer;
    int64_t began;
    pid_t copy;

    (void)state;
    start(&s, &g, "read line; exit 3");
    start(&longer, &g, "exec sleep 1987");
    copy = fork();
    if (copy == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    capture_run(&s.capture);
    assert_int_equal(capture_exit_status(s.capture.status), 3);
    proc_drop(&longer.proc);
    assert_true(becomes_empty(&g));
    began = monotonic_ms();
    guard_end(&g);
    assert_in_range(monotonic_ms() - began, 0, 4000);
    kill(copy, SIGKILL);
    waitpid(copy, NULL, 0);
    shell_done(&s);
    shell_done(&longer);
}

struct worker {
    struct guard *shared;
    int failed;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct guard own = GUARD_INIT;

    for (int i = 0; i < ROUNDS; i++) {
        char script[64], want[32];
        struct shell s;

        snprintf(script, sizeof script, "echo %d; exit %d", i, i % 100);
        snprintf(want, sizeof want, "%d\n", i);
        start(&s, i % 2 ? w->shared : &own, script);
        capture_run(&s.capture);
        w->failed += capture_exit_status(s.capture.status) != i % 100 || strcmp(buf_cstr(&s.capture.output), want) != 0;
        w->failed += i % 2 == 0 && !becomes_empty(&own);
        shell_done(&s);
        if (i % 10 == 0)
            guard_end(&own);
    }
    guard_end(&own);
    return NULL;
}

static void threads_have_guards_of_their_own_and_share_one(void **state)
{
    struct guard shared = GUARD_INIT;
    struct worker w[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.shared = &shared};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(w[i].failed, 0);
    }
    assert_true(becomes_empty(&shared));
    guard_end(&shared);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child of ours is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tree_is_ended_alone),
        cmocka_unit_test(what_left_its_group_may_stay),
        cmocka_unit_test(a_killed_run_leaves_nothing_working),
        cmocka_unit_test(a_killed_guard_takes_its_programs_along_and_is_replaced),
        cmocka_unit_test(a_program_begins_as_a_child_of_ours_would),
        cmocka_unit_test(a_start_that_fails_says_why_and_leaves_nothing),
        cmocka_unit_test(a_guard_holds_no_descriptor_of_ours),
        cmocka_unit_test(a_fork_of_ours_does_not_keep_a_guard),
        cmocka_unit_test(threads_have_guards_of_their_own_and_share_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
