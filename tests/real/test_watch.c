/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a store: whoever commits, in a thread or in another process, wakes every watcher, once, and nobody asks again and
 * again meanwhile. Also when the committer is killed behind its commit, when the kernel tells nothing of files, when a watcher
 * never reads, and when the store is deleted.
 */
#include "command.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <linux/ptrace.h>

#include "env/sim.h"
#include "store/hub.h"

enum { WAIT_MS = 20000, QUIET_MS = 400, MANY = SLOW_BUILD ? 300 : 1000 };

struct place {
    char dir[256], url[300];
    tide_store *store;
    tide_session *session;
};

static tide_store *open_at(const char *url)
{
    tide_store *store = NULL;

    OK(tide_store_open(
        url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE}, &store,
        &err));
    return store;
}

static void set_up(struct place *p)
{
    memset(p, 0, sizeof *p);
    dir_make(p->dir);
    store_url_in(p->url, sizeof p->url, p->dir, "w");
    p->store = open_at(p->url);
    OK(tide_session_create(p->store, "one", NULL, &p->session, &err));
}

static void tear_down(struct place *p)
{
    tide_session_close(p->session);
    tide_store_close(p->store);
    dir_remove(p->dir);
}

static void append(tide_session *s)
{
    OK(tide_session_append(s, 0, &(struct tide_new_event){"message.user", "{\"content\":\"x\"}", 0}, 1, NULL, &err));
}

static tide_watch *watch(tide_store *store)
{
    tide_watch *w = NULL;

    OK(tide_watch_open(store, &w, &err));
    return w;
}

static bool is_woken(tide_watch *w, int timeout_ms)
{
    int changed = 0;

    OK(tide_watch_wait(w, timeout_ms, &changed, &err));
    return changed;
}

/* Nothing more comes: what is left of what happened before is taken. */
static void drain(tide_watch *w)
{
    while (is_woken(w, QUIET_MS))
        ;
}

static void read_text(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

static void doctor_says(const struct place *p, const char *words)
{
    char out[300], err_path[300], said[8000];

    snprintf(out, sizeof out, "%s/doctor", p->dir);
    snprintf(err_path, sizeof err_path, "%s/doctor.err", p->dir);
    (void)command_wait(
        command_start((const char *const[]){"tidemark", "--store", p->url, "doctor", NULL}, out, err_path));
    read_text(out, said, sizeof said);
    if (!strstr(said, words))
        fail_msg("'%s' is not in '%s'", words, said);
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

struct waiter {
    pthread_t thread;
    tide_watch *watch;
    sem_t *ready;
    int woken;
};

static void *wait_once(void *arg)
{
    struct waiter *w = arg;

    sem_post(w->ready);
    if (tide_watch_wait(w->watch, WAIT_MS, &w->woken, NULL))
        w->woken = -1;
    return NULL;
}

static void wake_threads(struct place *p, struct waiter *list, int n, tide_session *s)
{
    sem_t ready;

    (void)p;
    sem_init(&ready, 0, 0);
    for (int i = 0; i < n; i++) {
        list[i].ready = &ready;
        list[i].woken = 0;
        assert_int_equal(pthread_create(&list[i].thread, NULL, wait_once, &list[i]), 0);
    }
    for (int i = 0; i < n; i++)
        sem_wait(&ready);
    append(s);
    for (int i = 0; i < n; i++) {
        pthread_join(list[i].thread, NULL);
        if (list[i].woken != 1)
            fail_msg("waiter %d of %d was not woken: %d", i, n, list[i].woken);
    }
}

static void every_thread_that_waits_is_woken_by_one_commit(void **unused)
{
    struct waiter list[4];
    struct place p;

    (void)unused;
    set_up(&p);
    for (int i = 0; i < 4; i++)
        list[i].watch = watch(p.store);
    for (int round = 0; round < 50; round++) {
        wake_threads(&p, list, 4, p.session);
        for (int i = 0; i < 4; i++) /* what comes twice would hide what is lost in the next round */
            while (is_woken(list[i].watch, 0))
                ;
    }
    for (int i = 0; i < 4; i++)
        tide_watch_close(list[i].watch);
    tear_down(&p);
}

static void a_commit_wakes_a_watcher_once(void **unused)
{
    struct place p;
    tide_watch *w;

    (void)unused;
    set_up(&p);
    doctor_says(&p, "ok    watch      the kernel reports changes");
    append(p.session);
    w = watch(p.store);
    drain(w);
    for (int i = 0; i < 5; i++) {
        append(p.session);
        assert_true(is_woken(w, WAIT_MS));
        assert_false(is_woken(w, QUIET_MS));
    }
    tide_watch_close(w);
    tear_down(&p);
}

static void watchers_come_and_go(void **unused)
{
    struct place p;

    (void)unused;
    set_up(&p);
    for (int i = 0; i < 40; i++) {
        tide_watch *first = watch(p.store), *second;

        append(p.session);
        second = watch(p.store);
        assert_true(is_woken(first, WAIT_MS));
        tide_watch_close(first);
        while (is_woken(second, 0))
            ;
        append(p.session);
        assert_true(is_woken(second, WAIT_MS));
        tide_watch_close(second);
    }
    tear_down(&p);
}

static int inotify_instances(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char to[100];
        ssize_t len = readlinkat(dirfd(dir), e->d_name, to, sizeof to - 1);

        to[len > 0 ? len : 0] = 0;
        n += strcmp(to, "anon_inode:inotify") == 0;
    }
    closedir(dir);
    return n;
}

/* Those of a user are few, and a server has many stores open. */
static void a_process_has_one_inotify_instance_however_many_stores_it_watches(void **unused)
{
    enum { STORES = 5 };
    struct place *p = mem_array(STORES, sizeof *p);
    tide_store *again;
    tide_watch *w[STORES + 1];

    (void)unused;
    assert_int_equal(inotify_instances(), 0);
    for (int i = 0; i < STORES; i++) {
        set_up(&p[i]);
        w[i] = watch(p[i].store);
    }
    again = open_at(p[0].url); /* the same store once more: its files have one number there */
    w[STORES] = watch(again);
    assert_int_equal(inotify_instances(), 1);
    tide_watch_close(w[0]);
    for (int i = 1; i <= STORES; i++)
        drain(w[i]);
    for (int i = 0; i < STORES; i++) { /* each hears of its own store, and of no other */
        append(p[i].session);
        for (int k = 1; k <= STORES; k++)
            assert_int_equal(is_woken(w[k], k % STORES == i ? WAIT_MS : 0), k % STORES == i);
        drain(w[i ? i : STORES]);
    }
    for (int i = 1; i <= STORES; i++)
        tide_watch_close(w[i]);
    assert_int_equal(inotify_instances(), 0);
    tide_store_close(again);
    for (int i = 0; i < STORES; i++)
        tear_down(&p[i]);
    free(p);
}

/* As a backend would that hears of commits over a connection. */
static void a_store_that_is_no_file_tells_by_itself(void **unused)
{
    tide_session *s = NULL;
    struct place p;
    tide_store *here;
    tide_watch *w;

    (void)unused;
    set_up(&p);
    here = open_at(p.url);
    store_of(here)->watch.self[0] = 0;
    w = watch(here);
    append(p.session);
    assert_false(is_woken(w, QUIET_MS));
    hub_tell(store_of(here)->hub);
    assert_true(is_woken(w, WAIT_MS));
    hub_tell(store_of(here)->hub); /* nothing has changed since */
    assert_false(is_woken(w, QUIET_MS));
    tide_watch_close(w);
    OK(tide_session_open(here, "one", TIDE_SESSION_READ, &s, &err));
    tide_session_close(s);
    tide_store_close(here);
    tear_down(&p);
}

/* A counter, no queue: it costs the writer nothing, and one look takes it all. */
static void a_watcher_that_never_reads_holds_up_nobody(void **unused)
{
    tide_watch *deaf, *other;
    struct place p;

    (void)unused;
    set_up(&p);
    deaf = watch(p.store);
    other = watch(p.store);
    for (int i = 0; i < 300; i++)
        append(p.session);
    assert_true(is_woken(other, WAIT_MS));
    drain(other);
    assert_true(is_woken(deaf, 0));
    assert_false(is_woken(deaf, 0));
    tide_watch_close(deaf);
    tide_watch_close(other);
    tear_down(&p);
}

/* ---- processes ---------------------------------------------------------------------------------------------------- */

/* Appends once for every byte it hears, and answers when that was acknowledged. */
static int commit_when_told(const char *url)
{
    tide_store *store = NULL;
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE], c;

    CHILD_MUST(tide_store_open(url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = 0},
                               &store, &err));
    snprintf(id, sizeof id, "child%d", (int)getpid());
    CHILD_MUST(tide_session_create(store, id, NULL, &s, &err));
    tell_char(STDOUT_FILENO, 'r');
    while (read(STDIN_FILENO, &c, 1) == 1) {
        CHILD_MUST(tide_session_append(s, 0, &(struct tide_new_event){"message.user", "{\"content\":\"y\"}", 0}, 1,
                                       NULL, &err));
        tell_char(STDOUT_FILENO, 'a');
    }
    tide_session_close(s);
    tide_store_close(store);
    return 0;
}

/* This program once more: a fork of one that has threads could not start any under the thread sanitizer. */
static void committer(struct self *me)
{
    const struct place *p = me->arg;

    dup2(me->in, STDIN_FILENO);
    dup2(me->out, STDOUT_FILENO);
    execl("/proc/self/exe", "test_watch", "--commit", p->url, NULL);
    _exit(CHILD_FAILED);
}

static void commit_elsewhere(const struct child *c)
{
    assert_int_equal(write(c->in, "x", 1), 1);
    assert_int_equal(hear_char(c->out), 'a');
}

static void end_child(struct child *c)
{
    int status;

    close(c->in);
    c->in = -1;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(c->out);
    assert_int_equal(status, 0);
}

static void a_commit_of_another_process_wakes_every_watcher_once(void **unused)
{
    static tide_watch *list[MANY];
    struct rlimit files = {4096, 4096};
    struct place p;
    struct child c;

    (void)unused;
    (void)!setrlimit(RLIMIT_NOFILE, &files);
    set_up(&p);
    c = child_start(committer, &p, 0);
    assert_int_equal(hear_char(c.out), 'r');
    for (int i = 0; i < MANY; i++)
        list[i] = watch(p.store);
    drain(list[0]);
    for (int i = 0; i < MANY; i++)
        while (is_woken(list[i], 0))
            ;
    for (int round = 0; round < 3; round++) {
        commit_elsewhere(&c);
        for (int i = 0; i < MANY; i++)
            assert_true(is_woken(list[i], WAIT_MS));
        assert_false(is_woken(list[0], QUIET_MS));
        for (int i = 0; i < MANY; i++)
            assert_false(is_woken(list[i], 0));
    }
    for (int i = 0; i < MANY; i++)
        tide_watch_close(list[i]);
    end_child(&c);
    tear_down(&p);
}

/* The side file of a store that was closed and copied is missing until somebody writes. */
static void a_copy_that_is_only_read_is_watched_too(void **unused)
{
    char command[900], url[400];
    tide_store *reader = NULL;
    struct place p, copy;
    struct child c;
    tide_watch *w;

    (void)unused;
    set_up(&p);
    tide_session_close(p.session);
    tide_store_close(p.store);
    store_url_in(url, sizeof url, p.dir, "copy");
    snprintf(command, sizeof command, "cp -r '%s' '%s' && rm -rf '%s/changes' '%s/lock'", store_path(p.url),
             store_path(url), store_path(url), store_path(url));
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
    OK(tide_store_open(
        url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_READ_ONLY},
        &reader, &err));
    w = watch(reader);
    snprintf(copy.url, sizeof copy.url, "%.290s", url);
    c = child_start(committer, &copy, 0);
    assert_int_equal(hear_char(c.out), 'r');
    assert_true(is_woken(w, WAIT_MS));
    drain(w);
    commit_elsewhere(&c);
    assert_true(is_woken(w, WAIT_MS));
    end_child(&c);
    tide_watch_close(w);
    tide_store_close(reader);
    dir_remove(p.dir);
}

/* ---- killed behind the commit --------------------------------------------------------------------------------------- */

/* Looks when it is woken, and only then. */
struct looker {
    pthread_t thread;
    tide_store *store;
    tide_watch *watch;
    char id[TIDE_ID_SIZE];
    _Atomic int64_t seen;
    atomic_bool stop;
};

static int64_t last_seq(tide_store *store, const char *id)
{
    tide_session *s = NULL;
    int64_t seq;

    OK(tide_session_open(store, id, TIDE_SESSION_LOG, &s, &err));
    seq = tide_session_last_seq(s);
    tide_session_close(s);
    return seq;
}

static void *look_when_woken(void *arg)
{
    struct looker *l = arg;
    int changed = 0;

    while (!l->stop)
        if (!tide_watch_wait(l->watch, 20, &changed, NULL) && changed)
            l->seen = last_seq(l->store, l->id);
    return NULL;
}

/* Where a committer is killed: behind so many stops at system calls, each at its beginning and at its end, and then so many
 * instructions. */
struct cut {
    long stops, instructions;
    bool synced; /* out: the last one was the end of a sync */
};

static void go_on(struct child *c, long how)
{
    int status;

    if (ptrace((enum __ptrace_request)how, c->pid, NULL, NULL) != 0 || waitpid(c->pid, &status, __WALL) != c->pid ||
        !WIFSTOPPED(status))
        fail_msg("the committer ended by itself");
}

/* False: its append was over before. */
static bool kill_committer(struct child *c, struct cut *cut)
{
    unsigned long long call = 0;
    int status;

    assert_int_equal(ptrace(PTRACE_SEIZE, c->pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, c->pid, NULL, NULL), 0);
    assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
    assert_int_equal(write(c->in, "x", 1), 1);
    for (long left = cut->stops; left > 0; left--) {
        struct __ptrace_syscall_info info = {0};
        char done;

        go_on(c, PTRACE_SYSCALL);
        ptrace(PTRACE_GET_SYSCALL_INFO, c->pid, (void *)sizeof info, &info);
        call = info.op == PTRACE_SYSCALL_INFO_ENTRY ? info.entry.nr : call;
        cut->synced = info.op == PTRACE_SYSCALL_INFO_EXIT && (call == SYS_fdatasync || call == SYS_fsync);
        if (hear(c->out, &done, 1, 0)) {
            child_kill(c);
            return false;
        }
    }
    for (long left = cut->instructions; left > 0; left--)
        go_on(c, PTRACE_SINGLESTEP);
    child_kill(c);
    return true;
}

static void kill_one(struct cut *cut, bool polls, bool *ret_killed, bool *ret_committed)
{
    struct looker l = {.seen = 0};
    struct place p;
    struct child c;
    int64_t before, end;

    set_up(&p);
    l.store = open_at(p.url);
    c = child_start(committer, &p, 0);
    assert_int_equal(hear_char(c.out), 'r');
    snprintf(l.id, sizeof l.id, "child%d", (int)c.pid);
    before = last_seq(p.store, l.id);
    l.watch = watch(l.store);
    assert_int_equal(tide_watch_polls(l.watch) != NULL, polls);
    assert_int_equal(pthread_create(&l.thread, NULL, look_when_woken, &l), 0);
    *ret_killed = kill_committer(&c, cut);
    end = mono_ms() + 1000;
    *ret_committed = last_seq(p.store, l.id) > before;
    while (*ret_committed && l.seen <= before && mono_ms() < end)
        spin_ns(100000);
    if (*ret_committed && l.seen <= before)
        fail_msg("killed at stop %ld and %ld instructions: nobody was woken", cut->stops, cut->instructions);
    l.stop = true;
    pthread_join(l.thread, NULL);
    tide_watch_close(l.watch);
    tide_store_close(l.store);
    tear_down(&p);
}

static void kill_everywhere(bool polls)
{
    struct rng r = {4711};
    int kills = 0, committed = 0;
    bool killed = true, there;

    for (struct cut cut = {.stops = 1}; killed; cut.stops++, cut.instructions = 0) {
        kill_one(&cut, polls, &killed, &there);
        kills += killed;
        committed += killed && there;
        for (int i = 0; killed && cut.synced && i < 12;
             i++, kills++) { /* the commit is a store to memory somewhere here */
            cut.instructions = rng_below(&r, 3000);
            kill_one(&cut, polls, &killed, &there);
            committed += there;
            cut.synced = true;
        }
    }
    print_message("%d kills, %d of them behind the commit\n", kills, committed);
    assert_true(committed > 0 && kills > committed);
}

static void a_committer_that_is_killed_behind_its_commit_wakes_the_others(void **unused)
{
    (void)unused;
    kill_everywhere(false);
}

/* ---- where the kernel tells nothing ---------------------------------------------------------------------------------- */

static bool put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return ok;
}

static void watch_by_polling(tide_store *store, const struct place *p, const char *why)
{
    tide_watch *first = watch(store), *second = watch(store);
    struct child c = child_start(committer, (void *)(uintptr_t)p, 0);

    assert_int_equal(hear_char(c.out), 'r');
    assert_non_null(tide_watch_polls(first));
    assert_non_null(strstr(tide_watch_polls(first), why));
    drain(first);
    drain(second);
    commit_elsewhere(&c);
    assert_true(is_woken(first, WAIT_MS));
    assert_true(is_woken(second, WAIT_MS));
    assert_false(is_woken(first, QUIET_MS));
    append(p->session);
    assert_true(is_woken(first, WAIT_MS));
    end_child(&c);
    tide_watch_close(first);
    tide_watch_close(second);
}

enum { NOT_HERE = 77 };

/* Its user may have no inotify instance at all: as if they were used up. */
static void poll_without_instances(struct self *me)
{
    struct place p;

    (void)me;
    if (unshare(CLONE_NEWUSER) != 0 || !put_text("/proc/sys/user/max_inotify_instances", "0"))
        _exit(NOT_HERE);
    set_up(&p);
    watch_by_polling(p.store, &p, "instances of this user are used up");
    doctor_says(&p, "warn  watch      the store is polled: the inotify instances of this user are used up");
    tear_down(&p);
    kill_everywhere(true);
}

static void without_inotify_instances_the_store_is_polled(void **unused)
{
    struct child c = child_start(poll_without_instances, NULL, 0);
    int status = child_wait(&c);

    (void)unused;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
        skip();
    assert_int_equal(status, 0);
}

static bool is_shared(struct env *e, const char *path)
{
    (void)e;
    (void)path;
    return false;
}

static void on_a_file_system_of_other_machines_the_store_is_polled(void **unused)
{
    struct env_ops ops = *env_real()->ops;
    struct env env = *env_real();
    struct store *store = NULL;
    struct place p;

    (void)unused;
    ops.is_local = is_shared;
    env.ops = &ops;
    set_up(&p);
    OK(store_open(p.url,
                  &(struct tide_store_options){.size = sizeof(struct tide_store_options),
                                               .origin_key = TEST_KEY,
                                               .origin_key_len = strlen(TEST_KEY)},
                  &env, &store, &err));
    watch_by_polling((tide_store *)(void *)store, &p, "other machines");
    store_close(store);
    tear_down(&p);
}

/* ---- in the simulator ------------------------------------------------------------------------------------------------- */

static tide_store *open_simulated(struct sim *sim)
{
    const char *url = on_files() ? "files:/store" : "/store.db";
    struct store *s = NULL;

    OK(store_open(url,
                  &(struct tide_store_options){.size = sizeof(struct tide_store_options),
                                               .flags = TIDE_OPEN_CREATE,
                                               .origin_key = TEST_KEY,
                                               .origin_key_len = strlen(TEST_KEY)},
                  sim_proc_env(sim_proc_start(sim)), &s, &err));
    return (tide_store *)(void *)s;
}

static void in_the_simulator_a_wake_is_a_look(void **unused)
{
    struct sim *sim = sim_new(7);
    tide_store *here = open_simulated(sim), *there = open_simulated(sim);
    tide_watch *first = watch(here), *second = watch(here);
    tide_session *s = NULL;

    (void)unused;
    OK(tide_session_create(there, "one", NULL, &s, &err));
    assert_true(is_woken(first, 0));
    assert_true(is_woken(second, 0));
    assert_false(is_woken(first, 0));
    append(s);
    assert_true(is_woken(second, -1));
    assert_true(is_woken(first, -1));
    assert_false(is_woken(second, 100));
    tide_watch_close(first);
    tide_watch_close(second);
    tide_session_close(s);
    tide_store_close(there);
    tide_store_close(here);
    sim_free(sim);
}

/* ---- a store that goes away ------------------------------------------------------------------------------------------- */

static enum tide_code wait_for_end(tide_watch *w, int64_t ms, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int changed;

    for (int64_t end = mono_ms() + ms; !code && mono_ms() < end;)
        code = tide_watch_wait(w, 100, &changed, err);
    return code;
}

static void a_store_that_is_deleted_is_told_to_its_watchers(void **unused)
{
    char away[400], command[900];
    tide_watch *w, *late;
    struct place p;

    (void)unused;
    set_up(&p);
    append(p.session);
    w = watch(p.store);
    drain(w);
    snprintf(away, sizeof away, "%s.away", store_path(p.url));
    assert_int_equal(rename(store_path(p.url), away), 0);
    ABOUT(TIDE_IO, TIDE_SUBJECT_FILE, store_path(p.url), wait_for_end(w, 2000, &err));
    late = watch(p.store);
    ABOUT(TIDE_IO, TIDE_SUBJECT_FILE, store_path(p.url), wait_for_end(late, 2000, &err));
    assert_int_equal(rename(away, store_path(p.url)), 0);
    for (int64_t end = mono_ms() + 2000; mono_ms() < end && wait_for_end(w, 1, NULL);)
        ;
    OK(wait_for_end(w, 500, &err));
    append(p.session);
    drain(w);
    tide_watch_close(late);
    snprintf(command, sizeof command, "rm -rf '%s'*", store_path(p.url));
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
    ABOUT(TIDE_IO, TIDE_SUBJECT_FILE, store_path(p.url), wait_for_end(w, 2000, &err));
    tide_watch_close(w);
    tear_down(&p);
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

/* How often the threads of a process were given a processor: one that was not has made no system call. */
static int64_t times_run(pid_t pid)
{
    char path[600];
    struct dirent *entry;
    int64_t sum = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        long long ran, waited, times = 0;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/task/%.32s/schedstat", (int)pid, entry->d_name);
        if (entry->d_name[0] == '.' || !(f = fopen(path, "re")))
            continue;
        if (fscanf(f, "%lld %lld %lld", &ran, &waited, &times) == 3) /* NOLINT(cert-err34-c) */
            sum += times;
        fclose(f);
    }
    closedir(dir);
    return sum;
}

static int64_t file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void await_size(const char *path, int64_t more_than)
{
    for (int64_t end = mono_ms() + WAIT_MS; file_size(path) <= more_than;) {
        if (mono_ms() > end)
            fail_msg("nothing more in %s", path);
        short_pause();
    }
}

#ifdef __SANITIZE_THREAD__
enum { OTHERS_RUN = 1 }; /* the sanitizer has a thread of its own in every process, which runs ten times a second */
#else
enum { OTHERS_RUN = 0 };
#endif

/* Once it has come to rest it does not run at all. */
static int64_t sleeps(pid_t pid, int rest_ms, int idle_ms)
{
    int64_t end = mono_ms() + WAIT_MS, before = -1;

    if (OTHERS_RUN)
        return times_run(pid);
    while (before != times_run(pid) && mono_ms() < end) {
        before = times_run(pid);
        poll(NULL, 0, rest_ms);
    }
    before = times_run(pid);
    assert_true(before > 0);
    poll(NULL, 0, idle_ms); /* NOLINT: this is the time in which nothing may happen */
    assert_int_equal(times_run(pid), before);
    return before;
}

static void a_recovery_that_watches_sleeps_until_something_is_committed_or_due(void **unused)
{
    char out[300], err_path[300];
    int64_t before, end = mono_ms() + WAIT_MS;
    struct place p;
    int status;
    pid_t pid;

    (void)unused;
    set_up(&p);
    snprintf(out, sizeof out, "%s/out", p.dir);
    snprintf(err_path, sizeof err_path, "%s/err", p.dir);
    pid = command_start((const char *const[]){"tidemark", "--store", p.url, "recover", "--watch", "--run-due",
                                              "--interval", "10m", NULL},
                        out, err_path);
    short_pause();
    tide_session_close(p.session);
    tide_store_close(p.store);
    before = sleeps(pid, 1500, SLOW_BUILD ? 1000 : 3000); /* it looks once a second while the store changes */
    p.store = open_at(p.url);
    OK(tide_session_open(p.store, "one", TIDE_SESSION_APPEND, &p.session, &err));
    append(p.session);
    while (times_run(pid) == before && mono_ms() < end)
        short_pause();
    assert_int_not_equal(times_run(pid), before);
    assert_int_equal(kill(pid, SIGTERM), 0);
    status = command_wait(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    tear_down(&p);
}

static void followers_sleep_while_nothing_happens_and_end_with_their_store(void **unused)
{
    static const char *const ways[][3] = {{"log", "show", "one"}, {"sessions", "timeline", "one"}};
    enum { WAYS = sizeof ways / sizeof ways[0] };
    char out[WAYS][300], err_path[300], said[1000], command[900];
    struct place p;
    int64_t size[WAYS];
    int status;
    pid_t pid[WAYS];

    (void)unused;
    set_up(&p);
    snprintf(err_path, sizeof err_path, "%s/err", p.dir);
    for (int i = 0; i < WAYS; i++) {
        snprintf(out[i], sizeof out[i], "%s/out%d", p.dir, i);
        pid[i] = command_start(
            (const char *const[]){"tidemark", "--store", p.url, ways[i][0], ways[i][1], ways[i][2], "--follow", NULL},
            out[i], err_path);
        await_size(out[i], 0);
        size[i] = file_size(out[i]);
    }
    append(p.session);
    for (int i = 0; i < WAYS; i++)
        await_size(out[i], size[i]);
    tide_session_close(p.session); /* nor does anybody beat */
    tide_store_close(p.store);
    for (int i = 0; i < WAYS; i++) { /* one has rested longer than the other then */
        sleeps(pid[i], QUIET_MS, SLOW_BUILD ? 2000 : 10000);
        size[i] = file_size(out[i]);
    }
    p.store = open_at(p.url);
    OK(tide_session_open(p.store, "one", TIDE_SESSION_APPEND, &p.session, &err));
    append(p.session);
    for (int i = 0; i < WAYS; i++)
        await_size(out[i], size[i]);
    snprintf(command, sizeof command, "rm -rf '%s'*", store_path(p.url));
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
    for (int i = 0; i < WAYS; i++) {
        status = command_wait(pid[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 6);
    }
    read_text(err_path, said, sizeof said);
    assert_non_null(strstr(said, "was deleted, moved away or replaced"));
    tear_down(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_that_waits_is_woken_by_one_commit),
        cmocka_unit_test(a_commit_wakes_a_watcher_once),
        cmocka_unit_test(watchers_come_and_go),
        cmocka_unit_test(a_process_has_one_inotify_instance_however_many_stores_it_watches),
        cmocka_unit_test(a_store_that_is_no_file_tells_by_itself),
        cmocka_unit_test(a_watcher_that_never_reads_holds_up_nobody),
        cmocka_unit_test(a_commit_of_another_process_wakes_every_watcher_once),
        cmocka_unit_test(a_copy_that_is_only_read_is_watched_too),
        cmocka_unit_test(a_committer_that_is_killed_behind_its_commit_wakes_the_others),
        cmocka_unit_test(without_inotify_instances_the_store_is_polled),
        cmocka_unit_test(on_a_file_system_of_other_machines_the_store_is_polled),
        cmocka_unit_test(in_the_simulator_a_wake_is_a_look),
        cmocka_unit_test(a_store_that_is_deleted_is_told_to_its_watchers),
        cmocka_unit_test(a_recovery_that_watches_sleeps_until_something_is_committed_or_due),
        cmocka_unit_test(followers_sleep_while_nothing_happens_and_end_with_their_store),
    };

    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "--commit") == 0)
        return commit_when_told(argv[2]);
    if (!command_init())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
