/* SPDX-License-Identifier: Apache-2.0 */
/* The real machine behind env.h, call by call, and what only other processes can show: locks, life and death. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/env.h"

static char dir[64];
static struct env *env;
static const struct env_ops *ops;

static const char *in_dir(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static int make_dir(void **state)
{
    (void)state;
    env = env_real();
    ops = env->ops;
    snprintf(dir, sizeof dir, "/tmp/tide-env-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static struct env_file *open_file(const char *path, unsigned flags)
{
    struct env_file *f = NULL;
    struct tide_err err = {0};

    if (ops->open(env, path, flags, &f, &err) != TIDE_OK)
        fail_msg("%s", err.msg);
    return f;
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static void written_bytes_are_read_back(void **state)
{
    struct env_file *f = open_file(in_dir("f"), ENV_WRITE | ENV_CREATE);
    char got[16] = "";
    size_t n = 99;

    (void)state;
    assert_int_equal(ops->pwrite(f, "hello", 5, 3, NULL), TIDE_OK);
    assert_int_equal(ops->sync(f, NULL), TIDE_OK);
    assert_int_equal(ops->pread(f, got, sizeof got, 3, &n, NULL), TIDE_OK);
    assert_int_equal(n, 5);
    assert_string_equal(got, "hello");
    assert_int_equal(ops->pread(f, got, sizeof got, 100, &n, NULL), TIDE_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ops->truncate(f, 4, NULL), TIDE_OK);
    assert_int_equal(ops->pread(f, got, sizeof got, 0, &n, NULL), TIDE_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(got, "\0\0\0h", 4);
    ops->close(f);
    ops->close(NULL);
}

static void a_file_without_the_right_to_write_is_not_written(void **state)
{
    struct env_file *f = open_file(in_dir("ro"), ENV_CREATE);

    (void)state;
    assert_int_not_equal(ops->pwrite(f, "x", 1, 0, NULL), TIDE_OK);
    ops->close(f);
}

static void open_tells_absent_and_existing_apart(void **state)
{
    struct env_file *f = NULL;
    struct tide_err err = {0};

    (void)state;
    assert_int_equal(ops->open(env, in_dir("absent"), ENV_WRITE, &f, &err), TIDE_NOT_FOUND);
    assert_string_equal(err.detail.name, in_dir("absent"));
    f = open_file(in_dir("once"), ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE);
    ops->close(f);
    assert_int_equal(ops->open(env, in_dir("once"), ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &f, NULL), TIDE_EXISTS);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    struct env_file *f = NULL;
    struct tide_err err = {0};

    (void)state;
    ops->close(open_file(in_dir("target"), ENV_WRITE | ENV_CREATE));
    assert_int_equal(symlink(in_dir("target"), in_dir("link")), 0);
    assert_int_equal(ops->open(env, in_dir("link"), ENV_WRITE | ENV_CREATE, &f, &err), TIDE_DENIED);
    assert_int_equal(err.hints[0].action, TIDE_ACTION_REPLACE_FILE);
    assert_int_equal(symlink(in_dir("nowhere"), in_dir("dangling")), 0);
    assert_int_equal(ops->open(env, in_dir("dangling"), ENV_WRITE | ENV_CREATE, &f, &err), TIDE_DENIED);
    assert_int_equal(access(in_dir("nowhere"), F_OK), -1);
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(ops->open(env, in_dir("fifo"), ENV_READ, &f, &err), TIDE_DENIED);
    assert_int_equal(ops->open(env, dir, ENV_READ, &f, &err), TIDE_DENIED);
}

static void stat_names_the_kind(void **state)
{
    struct env_stat st;

    (void)state;
    struct env_file *f = open_file(in_dir("kind"), ENV_WRITE | ENV_CREATE);
    assert_int_equal(ops->pwrite(f, "abc", 3, 0, NULL), TIDE_OK);
    ops->close(f);
    assert_int_equal(symlink("kind", in_dir("kind-link")), 0);
    assert_int_equal(ops->stat(env, in_dir("kind"), &st, NULL), TIDE_OK);
    assert_true(st.kind == ENV_FILE && st.size == 3 && st.mode == 0600);
    assert_int_equal(ops->stat(env, in_dir("kind-link"), &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_LINK);
    assert_int_equal(ops->stat(env, dir, &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_DIR);
    assert_int_equal(ops->stat(env, "/dev/null", &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_OTHER);
    assert_int_equal(ops->stat(env, in_dir("kind/below-a-file"), &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_ABSENT);
}

static void directories_are_made_with_their_parents(void **state)
{
    struct env_stat st;

    (void)state;
    assert_int_equal(ops->mkdirs(env, in_dir("a//b/c/"), NULL), TIDE_OK);
    assert_int_equal(ops->mkdirs(env, in_dir("a/b/c"), NULL), TIDE_OK);
    assert_int_equal(ops->stat(env, in_dir("a/b/c"), &st, NULL), TIDE_OK);
    assert_true(st.kind == ENV_DIR && st.mode == 0700);
    assert_int_equal(ops->sync_dir(env, in_dir("a/b"), NULL), TIDE_OK);
    assert_int_not_equal(ops->sync_dir(env, in_dir("a/x"), NULL), TIDE_OK);
    ops->close(open_file(in_dir("a/file"), ENV_WRITE | ENV_CREATE));
    assert_int_not_equal(ops->mkdirs(env, in_dir("a/file/d"), NULL), TIDE_OK);
    assert_int_not_equal(ops->mkdirs(env, in_dir("a/file"), NULL), TIDE_OK);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(ops->mkdirs(env, "rel/ative", NULL), TIDE_OK);
    assert_int_equal(ops->stat(env, in_dir("rel/ative"), &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_DIR);
    assert_int_equal(chdir("/"), 0);
}

/* ---- Syncs of directories: in the place of the C library's fsync --------------------------------------------- */

static struct {
    ino_t inos[16];
    int len;
    int die_at; /* the process is killed in the place of this one; 0: never */
} syncs;

int fsync(int fd)
{
    struct stat st;

    if (syncs.len + 1 == syncs.die_at)
        kill(getpid(), SIGKILL);
    if (syncs.len < 16 && fstat(fd, &st) == 0)
        syncs.inos[syncs.len++] = st.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static int syncs_of(const char *path)
{
    struct stat st;
    int n = 0;

    assert_int_equal(stat(path, &st), 0);
    for (int i = 0; i < syncs.len; i++)
        n += syncs.inos[i] == st.st_ino;
    return n;
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void make_until_killed(const char *path, int die_at)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        syncs.len = 0;
        syncs.die_at = die_at;
        (void)!ops->mkdirs(env, path, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_directory_whose_maker_was_killed_is_synced_by_its_finder(void **state)
{
    static const char *const parents[] = {"", "k", "k/l", "k/l/m"};

    (void)state;
    for (int n = 1; n <= 3; n++) {
        make_until_killed(in_dir("k/l/m"), n);
        assert_int_equal(access(in_dir(parents[n]), F_OK), 0);
        syncs.len = 0;
        assert_int_equal(ops->mkdirs(env, in_dir("k/l/m"), NULL), TIDE_OK);
        for (int i = 0; i < 3; i++) /* what the killed one had synced is not synced again */
            assert_int_equal(syncs_of(in_dir(parents[i])), i >= n - 1);
        for (int i = 3; i > 0; i--) {
            assert_int_equal(mode_of(in_dir(parents[i])), 0700);
            assert_int_equal(rmdir(in_dir(parents[i])), 0);
        }
    }
}

static void a_directory_that_is_durable_is_found_without_a_sync(void **state)
{
    static const unsigned modes[] = {0700, 0755, 01777, 02770};

    (void)state;
    assert_int_equal(ops->mkdirs(env, in_dir("found/below"), NULL), TIDE_OK);
    syncs.len = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(in_dir("found"), modes[i]), 0);
        assert_int_equal(ops->mkdirs(env, in_dir("found/below"), NULL), TIDE_OK);
        assert_int_equal(mode_of(in_dir("found")), modes[i]); /* others' modes are theirs */
    }
    assert_int_equal(syncs.len, 0);
}

static void unlink_takes_absent_files(void **state)
{
    (void)state;
    ops->close(open_file(in_dir("gone"), ENV_WRITE | ENV_CREATE));
    assert_int_equal(ops->unlink(env, in_dir("gone"), NULL), TIDE_OK);
    assert_int_equal(access(in_dir("gone"), F_OK), -1);
    assert_int_equal(ops->unlink(env, in_dir("gone"), NULL), TIDE_OK);
    assert_int_not_equal(ops->unlink(env, dir, NULL), TIDE_OK);
}

static void clock_and_randomness_move(void **state)
{
    unsigned char a[600] = {0}, b[600] = {0};
    int64_t mono = ops->mono_ns(env);

    (void)state;
    ops->random(env, a, sizeof a);
    ops->random(env, b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a + 500, b + 500, 100);
    assert_true(ops->mono_ns(env) > mono);
    assert_true(env_now_ms(env) > INT64_C(1600000000000));
    assert_true(env->threads && !env->sqlite_vfs);
}

/* ---- Locks -------------------------------------------------------------------------------------------------- */

static void wait_to_be_killed(void)
{
    for (;;)
        pause();
}

/* Runs `child` in another process, which then tells through a pipe that it is ready and goes on with `after`. */
static pid_t start_child(void (*child)(void), void (*after)(void))
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child();
        (void)!write(ready[1], "r", 1);
        after();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void child_takes_the_lock(void)
{
    struct env_file *f;

    if (ops->open(env, in_dir("lock"), ENV_WRITE, &f, NULL) || ops->lock(f, 0, NULL))
        _exit(1);
}

static void a_lock_goes_with_the_process_that_held_it(void **state)
{
    struct env_file *f = open_file(in_dir("lock"), ENV_WRITE | ENV_CREATE);
    struct tide_err err = {0};
    pid_t pid = start_child(child_takes_the_lock, wait_to_be_killed);

    (void)state;
    assert_int_equal(ops->lock(f, 0, &err), TIDE_BUSY);
    assert_non_null(strstr(err.msg, "lock"));
    int64_t before = ops->mono_ns(env);
    assert_int_equal(ops->lock(f, 30, &err), TIDE_BUSY);
    assert_true(ops->mono_ns(env) - before >= 30 * 1000000);
    kill(pid, SIGKILL);
    assert_int_equal(ops->lock(f, -1, NULL), TIDE_OK);
    waitpid(pid, NULL, 0);
    ops->close(f);
}

static void who_waits_for_a_lock_in_vain_is_told_who_has_it(void **state)
{
    static const struct {
        int signal;
        const char *help; /* what is asked of that process */
    } rows[] = {{0, "{"}, {SIGSTOP, "{\"continue\":true,"}};
    struct env_file *f = open_file(in_dir("lock"), ENV_WRITE | ENV_CREATE);
    struct tide_err err;
    char first[sizeof err.msg];
    pid_t pid = start_child(child_takes_the_lock, wait_to_be_killed);
    char want[64];
    int status;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].signal) {
            assert_int_equal(kill(pid, rows[i].signal), 0);
            assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        }
        assert_int_equal(ops->lock(f, 20, &err), TIDE_BUSY);
        assert_int_equal(err.hints[0].action, TIDE_ACTION_END_PROCESS);
        snprintf(want, sizeof want, "%s\"pid\":%d}", rows[i].help, (int)pid);
        assert_string_equal(err.hints[0].arguments, want);
        assert_non_null(strstr(err.msg, "since 20"));
        if (i && strncmp(strstr(err.msg, "since 20"), strstr(first, "since 20"), 30) != 0)
            fail_msg("'%s' after '%s': since when has changed", err.msg, first);
        memcpy(first, err.msg, sizeof first);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(ops->lock(f, 1000, &err), TIDE_OK);
    ops->close(f);
}

static void a_lock_excludes_other_handles_of_the_same_process(void **state)
{
    struct env_file *a = open_file(in_dir("lock"), ENV_WRITE | ENV_CREATE), *b = open_file(in_dir("lock"), ENV_WRITE);

    (void)state;
    assert_int_equal(ops->lock(a, 0, NULL), TIDE_OK);
    assert_int_equal(ops->lock(b, 0, NULL), TIDE_BUSY);
    ops->unlock(a);
    assert_int_equal(ops->lock(b, 0, NULL), TIDE_OK);
    assert_int_equal(ops->lock(a, 0, NULL), TIDE_BUSY);
    ops->close(b);
    assert_int_equal(ops->lock(a, 0, NULL), TIDE_OK);
    ops->close(a);
}

/* ---- Life and death ----------------------------------------------------------------------------------------- */

static void child_tells_who_it_is(void)
{
    struct env_proc self;
    struct env_file *f;

    prctl(PR_SET_NAME, "a) b (c Z 1"); /* a name that a careless parser trips over */
    ops->self(env, &self);
    if (ops->open(env, in_dir("self"), ENV_WRITE | ENV_CREATE, &f, NULL) || ops->pwrite(f, &self, sizeof self, 0, NULL))
        _exit(1);
}

static pid_t start_known_child(void (*after)(void), struct env_proc *ret)
{
    pid_t pid = start_child(child_tells_who_it_is, after);
    struct env_file *f = open_file(in_dir("self"), ENV_READ);
    size_t n;

    assert_int_equal(ops->pread(f, ret, sizeof *ret, 0, &n, NULL), TIDE_OK);
    assert_int_equal(n, sizeof *ret);
    ops->close(f);
    assert_int_equal(ret->pid, pid);
    return pid;
}

static void this_process_is_alive(void **state)
{
    struct env_proc self;

    (void)state;
    ops->self(env, &self);
    assert_int_equal(self.pid, getpid());
    assert_true(strlen(self.kernel_boot) == 36 && self.pid_ns != 0 && self.start_time != 0);
    assert_int_equal(ops->life(env, &self), ENV_ALIVE);
}

static void a_killed_child_is_dead_before_and_after_it_is_reaped(void **state)
{
    struct env_proc who;
    pid_t pid = start_known_child(wait_to_be_killed, &who);
    siginfo_t info;

    (void)state;
    assert_int_equal(ops->life(env, &who), ENV_ALIVE);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* it is a zombie from here */
    assert_int_equal(ops->life(env, &who), ENV_DEAD);
    waitpid(pid, NULL, 0);
    assert_int_equal(ops->life(env, &who), ENV_DEAD);
}

static void what_cannot_be_compared_is_elsewhere(void **state)
{
    struct env_proc self, who;

    (void)state;
    ops->self(env, &self);
    who = self;
    who.start_time++;
    assert_int_equal(ops->life(env, &who), ENV_DEAD); /* the pid was used again */
    who = self;
    who.kernel_boot[0] ^= 1;
    assert_int_equal(ops->life(env, &who), ENV_ELSEWHERE);
    who = self;
    who.pid_ns++;
    assert_int_equal(ops->life(env, &who), ENV_ELSEWHERE);
    who = self;
    who.pid = INT64_MAX;
    assert_int_equal(ops->life(env, &who), ENV_DEAD);
}

static void *thread_waits(void *arg)
{
    wait_to_be_killed();
    return arg;
}

static void end_the_first_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_waits, NULL) != 0)
        _exit(1);
    pthread_exit(NULL);
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (char line[256]; fgets(line, sizeof line, f);)
        if (sscanf(line, "State: %c", &state) == 1)
            break;
    fclose(f);
    return state;
}

static void only_the_last_thread_ends_a_process(void **state)
{
    struct env_proc who;
    pid_t pid = start_known_child(end_the_first_thread, &who);

    (void)state;
    while (state_of(pid) != 'Z')
        assert_int_equal(ops->life(env, &who), ENV_ALIVE);
    assert_int_equal(ops->life(env, &who), ENV_ALIVE);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(ops->life(env, &who), ENV_DEAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_bytes_are_read_back),
        cmocka_unit_test(a_file_without_the_right_to_write_is_not_written),
        cmocka_unit_test(open_tells_absent_and_existing_apart),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(stat_names_the_kind),
        cmocka_unit_test(directories_are_made_with_their_parents),
        cmocka_unit_test(a_directory_whose_maker_was_killed_is_synced_by_its_finder),
        cmocka_unit_test(a_directory_that_is_durable_is_found_without_a_sync),
        cmocka_unit_test(unlink_takes_absent_files),
        cmocka_unit_test(clock_and_randomness_move),
        cmocka_unit_test(a_lock_goes_with_the_process_that_held_it),
        cmocka_unit_test(who_waits_for_a_lock_in_vain_is_told_who_has_it),
        cmocka_unit_test(a_lock_excludes_other_handles_of_the_same_process),
        cmocka_unit_test(this_process_is_alive),
        cmocka_unit_test(a_killed_child_is_dead_before_and_after_it_is_reaped),
        cmocka_unit_test(what_cannot_be_compared_is_elsewhere),
        cmocka_unit_test(only_the_last_thread_ends_a_process),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
