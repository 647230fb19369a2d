/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes that commit for each other: one that is killed at each system call of its commit, with another's batch in it; one
 * that is killed while it waits; and many that are killed, stopped and continued at random. What was acknowledged is noted
 * in memory outside of the store, and must be there once.
 */
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <linux/ptrace.h>

#include "proc.h"

enum { CALLS_MAX = 600, STEP = SLOW_BUILD ? 7 : 1, LOOK_NS = 25000000 /* after it, a new queue is known to all */ };

struct place {
    char dir[256], url[300], mark[320];
};

static int set_up(void **state)
{
    struct place *p = fixture_new(sizeof *p);

    store_url_in(p->url, sizeof p->url, p->dir, "s");
    snprintf(p->mark, sizeof p->mark, "%s-mark", store_path(p->url));
    *state = p;
    return 0;
}

static tide_store *open_here(const struct place *p, unsigned flags)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = flags};
    tide_store *store = NULL;

    CHILD_MUST(tide_store_open(p->url, &opt, &store, &err));
    return store;
}

static enum tide_code say(tide_session *s, int number)
{
    struct tide_err err;
    char body[60];
    struct tide_new_event ev = {.kind = "message.user", .body = body};

    ev.body_len = (size_t)snprintf(body, sizeof body, "{\"content\":\"%d\"}", number);
    return tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err);
}

/* More than can be handed over: its process needs the lock itself. */
static enum tide_code say_much(tide_session *s)
{
    static char body[50000];
    struct tide_new_event ev = {.kind = "message.user", .body = body};
    struct tide_err err;

    ev.body_len = (size_t)snprintf(body, sizeof body, "{\"content\":\"%040000d\"}", 1);
    return tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err);
}

struct found {
    int n, last;
    bool ordered;
    unsigned char *seen; /* NULL: only counted */
};

static int look(void *arg, const struct tide_event *ev)
{
    struct found *f = arg;
    int number;

    if (strcmp(ev->kind, "message.user") != 0 || sscanf(ev->body, "{\"content\":\"%d\"}", &number) != 1)
        return 0;
    f->ordered &= number > f->last;
    f->last = number;
    f->n++;
    if (f->seen)
        f->seen[number]++;
    return 0;
}

static struct found read_all(const struct place *p, const char *id, unsigned char *seen)
{
    struct found f = {.last = -1, .ordered = true, .seen = seen};
    tide_store *store = open_here(p, TIDE_OPEN_READ_ONLY);
    tide_session *s = NULL;

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 0, 0, look, &f, &err));
    tide_session_close(s);
    tide_store_close(store);
    return f;
}

/* ---- killed at every system call ---- */

struct one {
    const struct place *p;
    char id[40];
};

/* Makes a session and holds it. Then 'a' appends a 1, 'm' much; the answer is the first letter of the code. */
static void obey(struct self *me)
{
    const struct one *one = me->arg;
    tide_store *store = open_here(one->p, TIDE_OPEN_CREATE);
    tide_session *s = NULL;
    char word;

    CHILD_MUST(tide_session_create(store, one->id, NULL, &s, &err));
    CHILD_MUST(say(s, 0));
    tell_char(me->out, 'r');
    while ((word = hear_char(me->in)) == 'a' || word == 'm')
        tell_char(me->out, tide_code_name(word == 'a' ? say(s, 1) : say_much(s))[0]);
    tide_session_close(s);
    tide_store_close(store);
}

static struct child begin(struct one *one, const struct place *p, const char *what, int n)
{
    struct child c;

    *one = (struct one){.p = p};
    snprintf(one->id, sizeof one->id, "%s-%d", what, n);
    c = child_start(obey, one, 0);
    assert_int_equal(hear_char(c.out), 'r');
    return c;
}

/* Until it sleeps on a word of shared memory. */
static void await_sleep(pid_t pid)
{
    char path[64], line[64];
    int64_t until = mono_ms() + 30000;

    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    for (long nr = -1; nr != SYS_futex;) {
        FILE *f = fopen(path, "r");

        if (f && fgets(line, sizeof line, f))
            nr = strtol(line, NULL, 10);
        if (f)
            fclose(f);
        assert_true(mono_ms() < until);
    }
}

/* Kills it at its n-th stop at a system call, at the beginning of one and at the end; false: it came to its answer. */
static bool kill_at(struct child *c, int n)
{
    int status = 0;

    if (ptrace(PTRACE_SEIZE, c->pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) != 0 ||
        ptrace(PTRACE_INTERRUPT, c->pid, NULL, NULL) != 0)
        fail_msg("ptrace: %s", strerror(errno));
    assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
    tell_char(c->in, 'a');
    for (int i = 0; i < n; i++) {
        struct pollfd answered = {c->out, POLLIN, 0};

        ptrace(PTRACE_SYSCALL, c->pid, NULL, NULL);
        assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
        if (poll(&answered, 1, 0) > 0) {
            ptrace(PTRACE_DETACH, c->pid, NULL, NULL);
            return false;
        }
    }
    child_kill(c);
    return true;
}

static int hold(const struct place *p)
{
    int fd = open(p->mark, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    return fd;
}

/* It is asked to append, and stopped when it has written and not synced. With the lock, that is. */
static void stop_before_its_sync(struct child *c)
{
    struct __ptrace_syscall_info info = {0};
    int status = 0;

    assert_int_equal(ptrace(PTRACE_SEIZE, c->pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, c->pid, NULL, NULL), 0);
    assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
    tell_char(c->in, 'a');
    while (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_fdatasync) {
        ptrace(PTRACE_SYSCALL, c->pid, NULL, NULL);
        assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
        assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, c->pid, (void *)sizeof info, &info) > 0);
    }
}

/* The first of them hands over and is stopped; the second one commits for both, and is killed in that. */
static void who_commits_for_others_is_killed_at_every_system_call(void **state)
{
    const struct place *p = *state;
    int stored = 0, lost = 0;
    bool killed = true;

    if (!may_trace())
        skip();
    for (int n = 1; killed && n < CALLS_MAX; n += STEP) {
        struct one owner, leader;
        struct child a = begin(&owner, p, "owner", n), b = begin(&leader, p, "leader", n);
        struct found f;
        int lock = hold(p);

        tell_char(a.in, 'a');
        await_sleep(a.pid);
        kill(a.pid, SIGSTOP);
        spin_ns(LOOK_NS);
        close(lock);
        killed = kill_at(&b, n);
        f = read_all(p, owner.id, NULL);
        stored += killed && f.n == 2;
        lost += killed && f.n == 1;
        kill(a.pid, SIGCONT);
        assert_int_equal(hear_char(a.out), 'O'); /* whatever became of the other: it is there, once */
        f = read_all(p, owner.id, NULL);
        assert_true(f.n == 2 && f.ordered);
        f = read_all(p, leader.id, NULL);
        assert_true(f.n <= 2 && f.ordered && (killed || f.n == 2));
        child_kill(&a);
        if (!killed)
            child_kill(&b);
    }
    print_message("%d kills before what was handed over was stored, %d behind that\n", lost, stored);
    assert_true(!killed && lost > 0 && stored > 0);
}

/* It is killed while it asks; what it asked for may be stored or not, and others go on. */
static void who_hands_over_is_killed_at_every_system_call(void **state)
{
    const struct place *p = *state;
    int stored = 0, lost = 0;

    if (!may_trace())
        skip();
    for (int n = 1; n < 40; n += STEP) {
        struct one owner, leader;
        struct child a = begin(&owner, p, "owner", n), b = begin(&leader, p, "leader", n);
        struct found f;
        int lock = hold(p);

        assert_true(kill_at(&a, n)); /* it is not answered: the lock is held */
        close(lock);
        tell_char(b.in, 'a');
        assert_int_equal(hear_char(b.out), 'O');
        f = read_all(p, owner.id, NULL);
        assert_true(f.n <= 2 && f.ordered);
        stored += f.n == 2;
        lost += f.n == 1;
        f = read_all(p, leader.id, NULL);
        assert_true(f.n == 2 && f.ordered);
        child_kill(&b);
    }
    assert_true(lost > 0 && stored > 0);
}

/* Its owner is told after some time that nobody knows; the store goes on when the other does. */
static void who_is_stopped_while_it_commits_for_others_leaves_them_in_doubt(void **state)
{
    const struct place *p = *state;
    struct one owner, leader;
    struct child a = begin(&owner, p, "owner", 1), b = begin(&leader, p, "leader", 1);
    struct found f;
    int lock = hold(p);

    if (!may_trace())
        skip();
    tell_char(a.in, 'a');
    await_sleep(a.pid);
    kill(a.pid, SIGSTOP);
    spin_ns(LOOK_NS);
    close(lock);
    stop_before_its_sync(&b);
    kill(a.pid, SIGCONT);
    assert_int_equal(hear_char(a.out), 'U');
    f = read_all(p, owner.id, NULL);
    assert_int_equal(f.n, 1);
    ptrace(PTRACE_DETACH, b.pid, NULL, NULL);
    assert_int_equal(hear_char(b.out), 'O');
    f = read_all(p, owner.id, NULL);
    assert_int_equal(f.n, 2);
    tell_char(a.in, 'a');
    assert_int_equal(hear_char(a.out), 'O');
    f = read_all(p, owner.id, NULL);
    assert_int_equal(f.n, 3);
    child_kill(&a);
    child_kill(&b);
}

/* ---- in order ---- */

enum { WAITERS = 6, TURNS = SLOW_BUILD ? 2 : 5, PAIRS = WAITERS * (WAITERS - 1) / 2 };

struct served {
    int waiters[TURNS * WAITERS];
    int n;
};

static int note_served(void *arg, const struct tide_event *ev)
{
    struct served *all = arg;
    int waiter;

    if (strcmp(ev->kind, "message.user") == 0 && strcmp(ev->body, "{\"content\":\"0\"}") != 0 &&
        sscanf(ev->session_id, "waiter-%d", &waiter) == 1 && all->n < TURNS * WAITERS)
        all->waiters[all->n++] = waiter;
    return 0;
}

/* One that commits is stopped; others ask, the last that came first: all hand over, or all need the lock; then it goes on. */
static void let_them_wait(const struct place *p, int turn)
{
    struct one last, ones[WAITERS];
    struct child leader = begin(&last, p, "leader", 100 + turn), waiters[WAITERS];

    for (int i = WAITERS - 1; i >= 0; i--)
        waiters[i] = begin(&ones[i], p, "waiter", turn * WAITERS + i);
    spin_ns(LOOK_NS);
    stop_before_its_sync(&leader);
    for (int i = 0; i < WAITERS; i++) {
        tell_char(waiters[i].in, turn % 2 ? 'm' : 'a');
        await_sleep(waiters[i].pid);
    }
    ptrace(PTRACE_DETACH, leader.pid, NULL, NULL);
    assert_int_equal(hear_char(leader.out), 'O');
    child_kill(&leader);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(hear_char(waiters[i].out), 'O');
        child_kill(&waiters[i]);
    }
}

/*
 * Whoever tries the lock by itself, as all do from time to time, may come a little earlier. Without an order half of all pairs would
 * change places.
 */
static void waiters_are_served_in_the_order_in_which_they_asked(void **state)
{
    const struct place *p = *state;
    struct served all = {.n = 0};
    tide_store *store;
    int changed = 0;

    if (!may_trace())
        skip();
    for (int i = 0; i < TURNS; i++)
        let_them_wait(p, i);
    store = open_here(p, TIDE_OPEN_READ_ONLY);
    OK(tide_store_read(store, 0, 0, note_served, &all, &err));
    tide_store_close(store);
    assert_int_equal(all.n, TURNS * WAITERS);
    for (int i = 0; i < all.n; i++)
        for (int k = i + 1; k < all.n; k++)
            changed += all.waiters[i] > all.waiters[k];
    print_message("%d of %d pairs changed places\n", changed, TURNS * PAIRS);
    assert_true(changed * 8 <= TURNS * PAIRS);
}

/* ---- damage ---- */

static void spoil(const struct place *p, off_t from)
{
    unsigned char bytes[4096];
    struct rng r = {7};
    char path[320];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s-queue", store_path(p->url));
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    for (off_t at = from; at < st.st_size; at += (off_t)sizeof bytes) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)rng_next(&r);
        assert_int_equal(pwrite(fd, bytes, sizeof bytes, at), sizeof bytes);
    }
    close(fd);
}

/* What waits to be committed is overwritten: the areas alone (from 12288), the slots as well, all of it. */
static void a_damaged_queue_costs_no_event(void **state)
{
    static const off_t from[] = {12288, 4096, 0};
    const struct place *p = *state;

    for (int i = 0; i < 3; i++) {
        struct one owner, leader;
        struct child a = begin(&owner, p, "owner", i), b = begin(&leader, p, "leader", i);
        struct found f;
        int lock = hold(p);

        tell_char(a.in, 'a');
        await_sleep(a.pid);
        kill(a.pid, SIGSTOP);
        spin_ns(LOOK_NS);
        spoil(p, from[i]);
        close(lock);
        tell_char(b.in, 'a');
        assert_int_equal(hear_char(b.out), 'O');
        kill(a.pid, SIGCONT);
        assert_int_equal(hear_char(a.out), 'O');
        f = read_all(p, owner.id, NULL);
        assert_true(f.n == 2 && f.ordered);
        f = read_all(p, leader.id, NULL);
        assert_true(f.n == 2 && f.ordered);
        child_kill(&a);
        child_kill(&b);
    }
}

/* ---- at random ---- */

enum { MANY = 12, LIVES = 60, NUMBERS = 20000, MS = SLOW_BUILD ? 2500 : 5000 };
enum noted { NOTHING, ASKED, STORED, REFUSED };

struct ledger {
    bool over;
    unsigned char noted[MANY][LIVES][NUMBERS];
};

struct worker {
    const struct place *p;
    struct ledger *ledger;
    int number, life;
};

static void session_name(char out[40], int number, int life)
{
    snprintf(out, 40, "worker-%d-%d", number, life);
}

static void work(struct self *me)
{
    struct worker *w = me->arg;
    unsigned char *noted = w->ledger->noted[w->number][w->life];
    tide_store *store = open_here(w->p, TIDE_OPEN_CREATE);
    tide_session *s = NULL;
    char id[40];

    session_name(id, w->number, w->life);
    CHILD_MUST(tide_session_create(store, id, NULL, &s, &err));
    tell_char(me->out, 'r');
    for (int i = 1; i < NUMBERS && !__atomic_load_n(&w->ledger->over, __ATOMIC_SEQ_CST); i++) {
        enum tide_code code;
        struct tide_err err;

        noted[i] = ASKED;
        code = say(s, i);
        if (code == TIDE_OK)
            noted[i] = STORED;
        else if (code != TIDE_UNKNOWN)
            noted[i] = REFUSED;
        if (code && tide_session_refresh(s, &err))
            break;
    }
    tide_session_close(s);
    tide_store_close(store);
}

struct crowd {
    struct worker workers[MANY];
    struct child children[MANY];
    bool stopped[MANY];
};

static void start_worker(struct crowd *c, int i)
{
    c->children[i] = child_start(work, &c->workers[i], 0);
    assert_int_equal(hear_char(c->children[i].out), 'r');
    c->stopped[i] = false;
}

static void disturb(struct crowd *c, struct rng *r)
{
    int i = (int)rng_below(r, MANY);

    if (c->stopped[i] || rng_below(r, 3) > 0) {
        kill(c->children[i].pid, c->stopped[i] ? SIGCONT : SIGSTOP);
        c->stopped[i] = !c->stopped[i];
    } else if (c->workers[i].life + 1 < LIVES) {
        child_kill(&c->children[i]);
        c->workers[i].life++;
        for (int k = 0; k < MANY; k++) { /* a new one must get through: nobody may be stopped with the lock */
            kill(c->children[k].pid, SIGCONT);
            c->stopped[k] = false;
        }
        start_worker(c, i);
    }
}

static void check_worker(const struct place *p, const struct ledger *l, int number, int life, int *ret_stored)
{
    unsigned char seen[NUMBERS] = {0};
    const unsigned char *noted = l->noted[number][life];
    struct found f;
    char id[40];

    session_name(id, number, life);
    f = read_all(p, id, seen);
    assert_true(f.ordered);
    for (int i = 0; i < NUMBERS; i++) {
        if ((noted[i] == STORED && seen[i] != 1) || (noted[i] == REFUSED && seen[i]) || seen[i] > 1 ||
            (noted[i] == NOTHING && seen[i]))
            fail_msg("session %s, %d: noted %d, there %d times", id, i, noted[i], seen[i]);
        *ret_stored += noted[i] == STORED;
    }
}

static void many_processes_are_killed_and_stopped(void **state)
{
    const struct place *p = *state;
    struct ledger *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct crowd c = {0};
    struct rng r = {(uint64_t)mono_ms()};
    int64_t until = mono_ms() + MS;
    int stored = 0, kills = 0;

    assert_true(l != MAP_FAILED);
    print_message("seed %llu\n", (unsigned long long)r.s);
    for (int i = 0; i < MANY; i++) {
        c.workers[i] = (struct worker){p, l, i, 0};
        start_worker(&c, i);
    }
    while (mono_ms() < until) {
        spin_ns(rng_between(&r, 100000, 20000000));
        disturb(&c, &r);
    }
    __atomic_store_n(&l->over, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MANY; i++)
        kill(c.children[i].pid, SIGCONT);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(child_wait(&c.children[i]), 0);
        kills += c.workers[i].life;
        for (int life = 0; life <= c.workers[i].life; life++)
            check_worker(p, l, i, life, &stored);
    }
    print_message("%d acknowledged, %d kills\n", stored, kills);
    assert_true(stored > 500 && kills > 10);
    munmap(l, sizeof *l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_commits_for_others_is_killed_at_every_system_call, set_up, fixture_remove),
        cmocka_unit_test_setup_teardown(who_hands_over_is_killed_at_every_system_call, set_up, fixture_remove),
        cmocka_unit_test_setup_teardown(who_is_stopped_while_it_commits_for_others_leaves_them_in_doubt, set_up,
                                        fixture_remove),
        cmocka_unit_test_setup_teardown(a_damaged_queue_costs_no_event, set_up, fixture_remove),
        cmocka_unit_test_setup_teardown(waiters_are_served_in_the_order_in_which_they_asked, set_up, fixture_remove),
        cmocka_unit_test_setup_teardown(many_processes_are_killed_and_stopped, set_up, fixture_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
