/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of env.h about names, listings, the identity of files and reserved space, each on the real machine and on the
 * simulated one. What power cuts and faults do to them: test_sim_rename.c, test_sim.c.
 */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "env/sim.h"
#include "real/disk.h"

struct machine {
    struct env *env;
    const struct env_ops *ops;
    struct sim *sim; /* NULL: the real one */
    char dir[64];
};

static int start_real(void **state)
{
    struct machine *m = mem_zero(sizeof *m);

    m->env = env_real();
    m->ops = m->env->ops;
    snprintf(m->dir, sizeof m->dir, "/tmp/tide-env-XXXXXX");
    *state = m;
    return mkdtemp(m->dir) ? 0 : -1;
}

static int start_sim(void **state)
{
    struct machine *m = mem_zero(sizeof *m);

    m->sim = sim_new(1);
    m->env = sim_proc_env(sim_proc_start(m->sim));
    m->ops = m->env->ops;
    snprintf(m->dir, sizeof m->dir, "/d");
    *state = m;
    return m->ops->mkdirs(m->env, m->dir, NULL) ? -1 : 0;
}

static int stop(void **state)
{
    struct machine *m = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", m->dir);
    int rc = m->sim ? 0 : system(command);
    sim_free(m->sim);
    free(m);
    return rc;
}

/* ---- Small steps -------------------------------------------------------------------------------------------- */

static const char *in_dir(const struct machine *m, const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", m->dir, name);
    return path;
}

static struct env_file *open_in(struct machine *m, const char *name, unsigned flags)
{
    struct env_file *f = NULL;

    assert_int_equal(m->ops->open(m->env, in_dir(m, name), flags, &f, NULL), TIDE_OK);
    return f;
}

static struct env_file *make(struct machine *m, const char *name, const char *text)
{
    struct env_file *f = open_in(m, name, ENV_WRITE | ENV_CREATE);

    assert_int_equal(m->ops->pwrite(f, text, strlen(text), 0, NULL), TIDE_OK);
    return f;
}

static void put_file(struct machine *m, const char *name, const char *text)
{
    m->ops->close(make(m, name, text));
}

static void check_text(struct machine *m, struct env_file *f, const char *want)
{
    char got[64] = "";
    size_t n = 0;

    assert_int_equal(m->ops->pread(f, got, sizeof got - 1, 0, &n, NULL), TIDE_OK);
    assert_int_equal(n, strlen(want));
    assert_string_equal(got, want);
}

static void check_named(struct machine *m, const char *name, const char *want)
{
    struct env_file *f = open_in(m, name, ENV_READ);

    check_text(m, f, want);
    m->ops->close(f);
}

static enum tide_code rename_in(struct machine *m, const char *from, const char *to)
{
    char source[256];
    struct tide_err err = {0};

    snprintf(source, sizeof source, "%s", in_dir(m, from));
    enum tide_code code = m->ops->rename(m->env, source, in_dir(m, to), &err);
    assert_int_equal(err.code, code);
    assert_true(!code || strstr(err.msg, from));
    return code;
}

static struct env_stat stat_in(struct machine *m, const char *name)
{
    struct env_stat st;

    assert_int_equal(m->ops->stat(m->env, in_dir(m, name), &st, NULL), TIDE_OK);
    return st;
}

static struct env_stat fstat_of(struct machine *m, struct env_file *f)
{
    struct env_stat st;

    assert_int_equal(m->ops->fstat(f, &st, NULL), TIDE_OK);
    return st;
}

static bool same_file(struct env_stat a, struct env_stat b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

/* ---- Rename ------------------------------------------------------------------------------------------------- */

static void rename_gives_the_file_another_name(void **state)
{
    struct machine *m = *state;
    struct env_file *f = make(m, "a", "new");

    assert_int_equal(rename_in(m, "a", "b"), TIDE_OK);
    assert_int_equal(m->ops->sync_dir(m->env, m->dir, NULL), TIDE_OK);
    assert_int_equal(stat_in(m, "a").kind, ENV_ABSENT);
    assert_true(same_file(fstat_of(m, f), stat_in(m, "b")));
    assert_int_equal(fstat_of(m, f).links, 1);
    assert_int_equal(m->ops->pwrite(f, "N", 1, 0, NULL), TIDE_OK);
    check_named(m, "b", "New");
    m->ops->close(f);
}

static void rename_takes_the_place_of_what_is_there(void **state)
{
    struct machine *m = *state;
    struct env_file *old = make(m, "b", "old");

    put_file(m, "a", "new");
    struct env_stat before = fstat_of(m, old);
    assert_true(same_file(before, stat_in(m, "b")));
    assert_int_equal(rename_in(m, "a", "b"), TIDE_OK);
    assert_int_equal(stat_in(m, "a").kind, ENV_ABSENT);
    check_named(m, "b", "new");
    check_text(m, old, "old"); /* whoever has it open keeps it, and can tell */
    assert_true(same_file(before, fstat_of(m, old)));
    assert_int_equal(fstat_of(m, old).links, 0);
    assert_false(same_file(before, stat_in(m, "b")));
    m->ops->close(old);
}

static void a_rename_that_is_refused_changes_nothing(void **state)
{
    struct machine *m = *state;

    put_file(m, "b", "old");
    assert_int_equal(rename_in(m, "absent", "b"), TIDE_NOT_FOUND);
    check_named(m, "b", "old");
    assert_int_equal(m->ops->mkdirs(m->env, in_dir(m, "dir"), NULL), TIDE_OK);
    assert_int_not_equal(rename_in(m, "b", "dir"), TIDE_OK);
    check_named(m, "b", "old");
    assert_int_equal(stat_in(m, "dir").kind, ENV_DIR);
    assert_int_equal(rename_in(m, "b", "b"), TIDE_OK);
    check_named(m, "b", "old");
}

static enum tide_code create_in(struct machine *m, const char *name)
{
    struct env_file *f = NULL;
    enum tide_code code = m->ops->open(m->env, in_dir(m, name), ENV_WRITE | ENV_CREATE, &f, NULL);

    m->ops->close(f);
    return code;
}

static void a_name_needs_the_directory_that_it_is_in(void **state)
{
    struct machine *m = *state;

    put_file(m, "file", "x");
    assert_int_equal(create_in(m, "absent/new"), TIDE_NOT_FOUND);
    assert_int_equal(create_in(m, "file/new"), TIDE_NOT_FOUND);
    assert_int_equal(rename_in(m, "file", "absent/new"), TIDE_NOT_FOUND);
    check_named(m, "file", "x");
    assert_int_equal(stat_in(m, "absent").kind, ENV_ABSENT);
    assert_int_equal(m->ops->mkdirs(m->env, in_dir(m, "absent"), NULL), TIDE_OK);
    assert_int_equal(create_in(m, "absent/new"), TIDE_OK);
    assert_int_equal(rename_in(m, "file", "absent/new"), TIDE_OK);
    check_named(m, "absent/new", "x");
}

static void a_lock_stays_with_its_file(void **state)
{
    struct machine *m = *state;
    struct env_file *held = make(m, "a", "x");

    assert_int_equal(m->ops->lock(held, 0, NULL), TIDE_OK);
    put_file(m, "c", "y");
    assert_int_equal(rename_in(m, "a", "b"), TIDE_OK);
    struct env_file *moved = open_in(m, "b", ENV_WRITE);
    assert_int_equal(m->ops->lock(moved, 0, NULL), TIDE_BUSY);
    assert_int_equal(rename_in(m, "c", "b"), TIDE_OK);
    struct env_file *other = open_in(m, "b", ENV_WRITE);
    assert_int_equal(m->ops->lock(other, 0, NULL), TIDE_OK);
    m->ops->close(held);
    m->ops->close(moved);
    m->ops->close(other);
}

static void rename_over_and_over(struct machine *m)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 2000; i++) {
        struct env_file *f = NULL;
        char from[256];
        snprintf(from, sizeof from, "%s", in_dir(m, "tmp"));
        if (m->ops->open(m->env, from, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &f, NULL) ||
            m->ops->pwrite(f, "whole", 5, 0, NULL))
            _exit(1);
        m->ops->close(f);
        if (m->ops->rename(m->env, from, in_dir(m, "b"), NULL))
            _exit(1);
    }
    _exit(0);
}

static bool is_there_whole(struct machine *m, const char *path)
{
    struct env_file *f = NULL;
    char got[5];
    size_t n = 0;

    if (m->ops->open(m->env, path, ENV_READ, &f, NULL))
        return false;
    enum tide_code code = m->ops->pread(f, got, sizeof got, 0, &n, NULL);
    m->ops->close(f);
    return !code && n == sizeof got && memcmp(got, "whole", n) == 0;
}

static void nobody_finds_a_replaced_name_absent_or_half(void **state)
{
    struct machine *m = *state;
    int status = 0;

    put_file(m, "b", "whole");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        rename_over_and_over(m);
    bool always = true;
    while (waitpid(pid, &status, WNOHANG) == 0) /* to its end, or it would continue in a directory that is removed */
        always &= is_there_whole(m, in_dir(m, "b"));
    assert_true(always);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- List --------------------------------------------------------------------------------------------------- */

struct told {
    struct machine *m;
    enum env_kind kinds[4]; /* of entries "0" to "3"; ENV_ABSENT: not told */
    unsigned calls;
    enum tide_code answer;
    bool unlinks;
};

static enum tide_code tell(void *arg, const char *name, enum env_kind kind)
{
    struct told *t = arg;
    int i = name[0] - '0';

    t->calls++;
    assert_true(i >= 0 && i < 4 && name[1] == '\0');
    assert_int_equal(t->kinds[i], ENV_ABSENT); /* never twice */
    t->kinds[i] = kind;
    if (t->unlinks)
        assert_int_equal(t->m->ops->unlink(t->m->env, in_dir(t->m, name), NULL), TIDE_OK);
    return t->answer;
}

static void list_tells_every_entry_once(void **state)
{
    struct machine *m = *state;
    struct told t = {.m = m};

    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_OK);
    assert_int_equal(t.calls, 0);
    put_file(m, "0", "");
    assert_int_equal(m->ops->mkdirs(m->env, in_dir(m, "1/2/3"), NULL), TIDE_OK);
    assert_int_equal(m->ops->mkdirs(m->env, in_dir(m, "2"), NULL), TIDE_OK);
    put_file(m, "1/a", "");
    put_file(m, "1/b", "");
    put_file(m, "gone", "");
    put_file(m, "x", "");
    assert_int_equal(m->ops->unlink(m->env, in_dir(m, "gone"), NULL), TIDE_OK);
    assert_int_equal(rename_in(m, "x", "3"), TIDE_OK);
    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_OK);
    assert_true(t.kinds[0] == ENV_FILE && t.kinds[1] == ENV_DIR && t.kinds[2] == ENV_DIR && t.kinds[3] == ENV_FILE);
    assert_int_equal(t.calls, 4);
}

static void list_tells_links_and_other_things_from_files(void **state)
{
    struct machine *m = *state;
    struct told t = {.m = m};

    put_file(m, "0", "");
    assert_int_equal(symlink("0", in_dir(m, "1")), 0);
    assert_int_equal(symlink("nowhere", in_dir(m, "2")), 0);
    assert_int_equal(mkfifo(in_dir(m, "3"), 0600), 0);
    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_OK);
    assert_true(t.kinds[0] == ENV_FILE && t.kinds[1] == ENV_LINK && t.kinds[2] == ENV_LINK && t.kinds[3] == ENV_OTHER);
}

static void list_says_when_there_is_no_directory(void **state)
{
    struct machine *m = *state;
    struct told t = {.m = m};
    struct tide_err err = {0};

    put_file(m, "file", "x");
    assert_int_equal(m->ops->list(m->env, in_dir(m, "absent"), tell, &t, &err), TIDE_NOT_FOUND);
    assert_non_null(strstr(err.detail.name, "absent"));
    assert_int_equal(m->ops->list(m->env, in_dir(m, "file"), tell, &t, &err), TIDE_NOT_FOUND);
    assert_int_equal(t.calls, 0);
}

static void list_ends_with_what_its_caller_says(void **state)
{
    struct machine *m = *state;
    struct told t = {.m = m, .answer = TIDE_CONFLICT};

    put_file(m, "0", "");
    put_file(m, "1", "");
    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_CONFLICT);
    assert_int_equal(t.calls, 1);
}

static void what_is_listed_may_be_removed_meanwhile(void **state)
{
    struct machine *m = *state;
    struct told t = {.m = m, .unlinks = true};

    for (int i = 0; i < 4; i++)
        put_file(m, (char[]){(char)('0' + i), '\0'}, "");
    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_OK);
    assert_int_equal(t.calls, 4);
    t = (struct told){.m = m};
    assert_int_equal(m->ops->list(m->env, m->dir, tell, &t, NULL), TIDE_OK);
    assert_int_equal(t.calls, 0);
}

struct crowd {
    unsigned char *seen;
    size_t len, told, most_bytes;
};

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static enum tide_code count_one(void *arg, const char *name, enum env_kind kind)
{
    struct crowd *c = arg;
    size_t i = strtoul(name + 1, NULL, 10);

    assert_true(name[0] == 'f' && kind == ENV_FILE && i < c->len);
    assert_false(c->seen[i]++);
    if (c->told++ % 1000 == 0 && bytes_in_use() > c->most_bytes)
        c->most_bytes = bytes_in_use();
    return TIDE_OK;
}

static void a_crowded_directory_is_listed_in_little_memory(void **state)
{
    struct machine *m = *state;
    struct crowd c = {.len = m->sim ? 3000 : 20000}; /* the simulator looks for each name from the first one on */
    char name[32];

    c.seen = mem_zero(c.len);
    for (size_t i = 0; i < c.len; i++) {
        snprintf(name, sizeof name, "f%zu", i);
        m->ops->close(open_in(m, name, ENV_WRITE | ENV_CREATE));
    }
    size_t before = bytes_in_use();
    assert_int_equal(m->ops->list(m->env, m->dir, count_one, &c, NULL), TIDE_OK);
    assert_int_equal(c.told, c.len);
    assert_true(c.most_bytes < before + 128 * 1024);
    free(c.seen);
}

/* ---- Identity ----------------------------------------------------------------------------------------------- */

static void fstat_and_stat_tell_the_same(void **state)
{
    struct machine *m = *state;
    struct env_file *f = make(m, "f", "abc");
    struct env_stat a = fstat_of(m, f), b = stat_in(m, "f");

    assert_true(a.kind == ENV_FILE && a.size == 3 && a.mode == 0600 && a.links == 1 && a.ino != 0);
    assert_true(b.kind == ENV_FILE && b.size == 3 && b.mode == 0600 && b.links == 1);
    assert_true(same_file(a, b) && a.mtime_ns == b.mtime_ns);
    put_file(m, "g", "");
    assert_false(same_file(a, stat_in(m, "g")));
    m->ops->close(f);
}

static void a_reader_can_tell_that_its_file_is_gone(void **state)
{
    struct machine *m = *state;
    struct env_file *f = make(m, "f", "abc");
    struct env_stat was = fstat_of(m, f);

    assert_int_equal(m->ops->unlink(m->env, in_dir(m, "f"), NULL), TIDE_OK);
    assert_int_equal(fstat_of(m, f).links, 0);
    put_file(m, "f", "abc");
    assert_false(same_file(was, stat_in(m, "f")));
    assert_true(same_file(was, fstat_of(m, f)));
    assert_int_equal(fstat_of(m, f).links, 0);
    check_text(m, f, "abc");
    m->ops->close(f);
}

/* The kernel's clock for files ticks coarsely and lies a little behind. */
static void mtime_is_the_time_of_the_last_write(void **state)
{
    struct machine *m = *state;
    int64_t before = env_now_ms(m->env) - 1000;
    struct env_file *f = make(m, "f", "abc");
    struct env_stat st = fstat_of(m, f);

    assert_true(st.mtime_ns / 1000000 >= before && st.mtime_ns / 1000000 <= env_now_ms(m->env));
    if (m->sim)
        sim_advance(m->sim, 5000);
    check_text(m, f, "abc");
    assert_int_equal(m->ops->sync(f, NULL), TIDE_OK);
    assert_int_equal(fstat_of(m, f).mtime_ns, st.mtime_ns);
    assert_int_equal(m->ops->truncate(f, 1, NULL), TIDE_OK);
    assert_true(fstat_of(m, f).mtime_ns >= st.mtime_ns + (m->sim ? 5000 * INT64_C(1000000) : 0));
    m->ops->close(f);
}

/* ---- Reserved space ----------------------------------------------------------------------------------------- */

static void reserving_changes_neither_size_nor_contents(void **state)
{
    struct machine *m = *state;
    struct env_file *f = make(m, "f", "abc");

    assert_int_equal(m->ops->allocate(f, 1 << 20, NULL), TIDE_OK);
    assert_int_equal(fstat_of(m, f).size, 3);
    check_text(m, f, "abc");
    assert_int_equal(m->ops->allocate(f, 0, NULL), TIDE_OK);
    assert_int_equal(m->ops->allocate(f, 1, NULL), TIDE_OK); /* less than there is */
    assert_int_equal(m->ops->pwrite(f, "def", 3, 3, NULL), TIDE_OK);
    assert_int_equal(fstat_of(m, f).size, 6);
    check_text(m, f, "abcdef");
    m->ops->close(f);
}

enum { RESERVED = 1 << 20, NO_DISK = 77 };

/* The code to exit with: 0 when each law was kept, else the number of the first that was not. */
static int fill_the_disk(struct machine *m)
{
    static char bytes[RESERVED];
    struct env_file *f = open_in(m, "f", ENV_WRITE | ENV_CREATE);

    if (m->ops->allocate(f, RESERVED, NULL) != TIDE_OK)
        return 1;
    disk_fill(in_dir(m, "fill"));
    if (m->ops->pwrite(f, bytes, sizeof bytes, 0, NULL) != TIDE_OK)
        return 2;
    if (m->ops->pwrite(f, bytes, sizeof bytes, RESERVED, NULL) != TIDE_FULL)
        return 3;
    if (m->ops->allocate(f, 3 * RESERVED, NULL) != TIDE_FULL)
        return 4;
    return 0;
}

/* On a disk of its own, in another process, which says what the function does. */
static void check_on_a_small_disk(struct machine *m, int (*laws)(struct machine *))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(disk_make(m->dir) ? laws(m) : NO_DISK);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_DISK)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void what_is_reserved_is_there_on_a_full_disk(void **state)
{
    check_on_a_small_disk(*state, fill_the_disk);
}

/* ---- A full disk -------------------------------------------------------------------------------------------- */

static bool is_absent(struct machine *m, const char *name)
{
    struct env_stat st;

    return m->ops->stat(m->env, in_dir(m, name), &st, NULL) == TIDE_OK && st.kind == ENV_ABSENT;
}

/* 0, or the number of the first law that was not kept. The disk has room for no other file. */
static int add_names(struct machine *m)
{
    if (create_in(m, "new") != TIDE_FULL || !is_absent(m, "new"))
        return 1;
    if (m->ops->mkdirs(m->env, in_dir(m, "dir/below"), NULL) != TIDE_FULL || !is_absent(m, "dir"))
        return 2;
    if (m->ops->mkdirs(m->env, in_dir(m, "there"), NULL) != TIDE_OK || create_in(m, "a") != TIDE_OK)
        return 3;
    if (rename_in(m, "a", "b") != TIDE_OK || !is_absent(m, "a"))
        return 4;
    return 0;
}

static int use_up_the_names(struct machine *m)
{
    if (m->ops->mkdirs(m->env, in_dir(m, "there"), NULL) || create_in(m, "a") || create_in(m, "b"))
        return 5;
    if (m->sim)
        sim_fault_at(m->sim, SIM_ENOSPC, 1, true);
    else if (mount(NULL, m->dir, NULL, MS_REMOUNT, "nr_inodes=4") != 0) /* the root, and the three above */
        return NO_DISK;
    return add_names(m);
}

static void a_full_disk_takes_no_new_name(void **state)
{
    struct machine *m = *state;

    if (m->sim)
        assert_int_equal(use_up_the_names(m), 0);
    else
        check_on_a_small_disk(m, use_up_the_names);
}

static void more_than_a_disk_can_hold_is_not_reserved(void **state)
{
    struct machine *m = *state;
    struct env_file *f = make(m, "f", "abc");

    assert_int_equal(m->ops->allocate(f, INT64_C(1) << 60, NULL), TIDE_FULL);
    check_text(m, f, "abc");
    m->ops->close(f);
}

#define ON_REAL(test)                                                                                                  \
    {                                                                                                                  \
        .name = "real: " #test, .test_func = test, .setup_func = start_real, .teardown_func = stop                     \
    }
#define ON_SIM(test)                                                                                                   \
    {                                                                                                                  \
        .name = "sim: " #test, .test_func = test, .setup_func = start_sim, .teardown_func = stop                       \
    }
#define ON_BOTH(test) ON_REAL(test), ON_SIM(test)

/* ---- Shared memory ------------------------------------------------------------------------------------------ */

static void who_opens_a_file_shares_its_memory(void **state)
{
    struct machine *m = *state;
    struct env_file *one = NULL, *other = NULL;
    struct tide_err why;
    char path[96];
    unsigned char *a, *b;

    snprintf(path, sizeof path, "%s/shared", m->dir);
    assert_int_equal(m->ops->open(m->env, path, ENV_WRITE | ENV_CREATE, &one, &why), TIDE_OK);
    assert_int_equal(m->ops->open(m->env, path, ENV_WRITE, &other, &why), TIDE_OK);
    a = m->ops->share(one, 8192, &why);
    b = m->ops->share(other, 8192, &why);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a[0] | a[8191], 0);
    a[0] = 7;
    b[8191] = 8;
    assert_int_equal(b[0], 7);
    assert_int_equal(a[8191], 8);
    assert_ptr_equal(m->ops->share(one, 8192, &why), a);
    m->ops->close(one);
    assert_int_equal(b[0], 7);
    m->ops->close(other);
}

/* By system calls at first, then through memory; whoever has it open otherwise reads it at once. */
static void a_word_that_is_put_is_read_by_all(void **state)
{
    struct machine *m = *state;
    struct env_file *one = NULL, *other = NULL;
    char path[96], word[9], text[25] = "";
    struct tide_err why;
    size_t got = 0;

    snprintf(path, sizeof path, "%s/words", m->dir);
    assert_int_equal(m->ops->open(m->env, path, ENV_WRITE | ENV_CREATE, &one, &why), TIDE_OK);
    assert_int_equal(m->ops->open(m->env, path, ENV_WRITE, &other, &why), TIDE_OK);
    assert_int_equal(m->ops->pwrite(one, "before--now-----after---", 24, 0, &why), TIDE_OK);
    for (int i = 0; i < 30; i++) {
        snprintf(word, sizeof word, "word %03d", i);
        assert_int_equal(m->ops->put_word(one, word, 8, &why), TIDE_OK);
        assert_int_equal(m->ops->pread(other, text, sizeof text, 0, &got, &why), TIDE_OK);
        assert_int_equal(got, 24);
        assert_memory_equal(text, "before--", 8);
        assert_memory_equal(text + 8, word, 8);
        assert_memory_equal(text + 16, "after---", 8);
    }
    assert_int_equal(m->ops->pwrite(other, "x", 1, 8, &why), TIDE_OK);
    assert_int_equal(m->ops->put_word(one, "the end.", 16, &why), TIDE_OK);
    assert_int_equal(m->ops->pread(one, text, 24, 0, &got, &why), TIDE_OK);
    assert_memory_equal(text, "before--xord 029the end.", 24);
    m->ops->close(one);
    m->ops->close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_word_that_is_put_is_read_by_all),
        ON_BOTH(who_opens_a_file_shares_its_memory),
        ON_BOTH(rename_gives_the_file_another_name),
        ON_BOTH(rename_takes_the_place_of_what_is_there),
        ON_BOTH(a_rename_that_is_refused_changes_nothing),
        ON_BOTH(a_name_needs_the_directory_that_it_is_in),
        ON_BOTH(a_lock_stays_with_its_file),
        ON_REAL(nobody_finds_a_replaced_name_absent_or_half),
        ON_BOTH(list_tells_every_entry_once),
        ON_REAL(list_tells_links_and_other_things_from_files),
        ON_BOTH(list_says_when_there_is_no_directory),
        ON_BOTH(list_ends_with_what_its_caller_says),
        ON_BOTH(what_is_listed_may_be_removed_meanwhile),
        ON_BOTH(a_crowded_directory_is_listed_in_little_memory),
        ON_BOTH(fstat_and_stat_tell_the_same),
        ON_BOTH(a_reader_can_tell_that_its_file_is_gone),
        ON_BOTH(mtime_is_the_time_of_the_last_write),
        ON_BOTH(reserving_changes_neither_size_nor_contents),
        ON_REAL(what_is_reserved_is_there_on_a_full_disk),
        ON_REAL(more_than_a_disk_can_hold_is_not_reserved),
        ON_BOTH(a_full_disk_takes_no_new_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
