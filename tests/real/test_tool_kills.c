/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent killed inside each of its file tools: at every system call that its thread makes between the end of the call before
 * and the start of the one behind, so before the start is written down, while the file or the tree is open, beside the rename,
 * and while the result is on its way to the disk. The kill comes from outside (ptrace stops the thread there), so each of
 * them is a real SIGKILL and none is missed. Another process then goes on: the conversation ends, what must happen once
 * has, every file is the old one or the new one whole at the moment of the kill, and nothing stays beside it.
 */
#include "conversation.h"

#include <ftw.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

enum { STEP = SLOW_BUILD ? 9 : 1, CALLS_MAX = 2000, NUMBERS = 1024, BIG = 20000 };

static const struct words words = {{"do it"}, {"a1", "b1"}};

#define OLD "one\ntwo needle\nthree\n"
#define EDITED "one\ntwo needles\nthree\n"

struct tool_case {
    const char *name, *args, *args_end; /* what is to be written stands between these */
    const char *result;                 /* is in what the model is told */
    const char *after;                  /* of notes.txt; NULL: as it was */
    int calls[4];                       /* system calls by which it is seen to work; 0 ends them */
};

static char big[BIG + 1]; /* what is written: its half would show */

static const struct tool_case cases[] = {
    {"read", "{\"path\":\"notes.txt\"}", NULL, "two needle", NULL, {SYS_openat2, SYS_read}},
    {"write",
     "{\"path\":\"notes.txt\",\"content\":\"",
     "\"}",
     "bytes written",
     big,
     {SYS_write, SYS_fchmod, SYS_fsync}},
    {"edit",
     "{\"path\":\"notes.txt\",\"old\":\"needle\",\"new\":\"needles\"}",
     NULL,
     "",
     EDITED,
     {SYS_openat2, SYS_read, SYS_write, SYS_fsync}},
    {"glob", "{\"pattern\":\"**/*.txt\"}", NULL, "tree/deep/leaf.txt", NULL, {SYS_openat2, SYS_getdents64}},
    {"grep", "{\"pattern\":\"need.e\"}", NULL, "notes.txt:2:two needle", NULL, {SYS_openat2, SYS_getdents64, SYS_read}},
};

/* ---- the process that is stopped at each system call ---- */

static void mark_window(struct driver *d, const struct tide_agent_event *e)
{
    (void)d;
    if (e->what == TIDE_AGENT_TOOL_END && strcmp(e->call_id, "a1") == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(CHILD_FAILED);
        raise(SIGSTOP);
    } else if (e->what == TIDE_AGENT_TOOL && strcmp(e->call_id, "b1") == 0) {
        raise(SIGSTOP);
    }
}

static int wait_stop(pid_t pid)
{
    int status = 0;

    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        fail_msg("the process ended with status %d where it should have stopped", status);
    return WSTOPSIG(status);
}

static bool enters(pid_t pid, bool seen[NUMBERS])
{
    struct __ptrace_syscall_info info = {0};

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0)
        fail_msg("PTRACE_GET_SYSCALL_INFO: %s", strerror(errno));
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    if (info.entry.nr < NUMBERS)
        seen[info.entry.nr] = true;
    return true;
}

/* Kills it as it enters the n-th system call of the window; false: the window has fewer, and it goes on untraced. */
static bool kill_at_call(pid_t pid, int n, bool seen[NUMBERS])
{
    int calls = 0, stop = wait_stop(pid), pass = 0;

    assert_int_equal(stop, SIGSTOP);
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)) != 0)
        fail_msg("PTRACE_SETOPTIONS: %s", strerror(errno));
    while (calls < CALLS_MAX) {
        ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)pass);
        stop = wait_stop(pid);
        pass = stop == (SIGTRAP | 0x80) || stop == SIGSTOP ? 0 : stop;
        if (stop == SIGSTOP) {
            ptrace(PTRACE_DETACH, pid, NULL, NULL);
            return false;
        }
        if (stop == (SIGTRAP | 0x80) && enters(pid, seen) && ++calls == n) {
            kill(pid, SIGKILL);
            return true;
        }
    }
    fail_msg("more than %d system calls", CALLS_MAX);
    return false;
}

/* ---- what must hold ---- */

static void prepare(struct place *p, const struct tool_case *c)
{
    char script[BIG + 1000], path[400];

    snprintf(script, sizeof script,
             "{\"turns\":[{\"calls\":[%s,{\"id\":\"t\",\"name\":\"%s\",\"args\":%s%s%s},%s]},%s]}",
             BASH("a1", "echo a1 >> ledger"), c->name, c->args, c->args_end ? big : "", c->args_end ? c->args_end : "",
             BASH("b1", "echo b1 >> ledger"), "{\"text\":\"That was all.\"}");
    place_init(p, &words, script);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/tree%s", p->work, i ? "/deep" : "");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/tree/deep/leaf.txt", p->work);
    write_text(path, "leaf\n");
    snprintf(path, sizeof path, "%s/notes.txt", p->work);
    write_text(path, OLD);
}

static bool notes_are(const struct place *p, const char *want)
{
    char path[400], got[BIG + 10];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/notes.txt", p->work);
    f = fopen(path, "r");
    assert_non_null(f);
    n = fread(got, 1, sizeof got, f);
    fclose(f);
    return n == strlen(want) && memcmp(got, want, n) == 0;
}

static int entries;

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    (void)st;
    (void)type;
    (void)at;
    entries++;
    return 0;
}

/* The directory itself, tree, deep, leaf.txt, notes.txt and the ledger. */
static void check_nothing_is_left_beside(const struct place *p)
{
    entries = 0;
    assert_int_equal(nftw(p->work, count_entry, 8, FTW_PHYS), 0);
    assert_int_equal(entries, 6);
}

struct told {
    int started, results, right;
    const char *result;
};

static int look_at_tool(void *arg, const struct tide_event *ev)
{
    struct told *t = arg;

    if (!strstr(ev->body, "call_id\":\"t\""))
        return 0;
    t->started += strcmp(ev->kind, "tool.started") == 0;
    t->results += strcmp(ev->kind, "message.tool") == 0;
    t->right += strcmp(ev->kind, "message.tool") == 0 && strstr(ev->body, t->result) && !strstr(ev->body, "is_error");
    return 0;
}

static void check_tool(const struct place *p, const struct tool_case *c, int n)
{
    struct told t = {.result = c->result};

    each_event(p, look_at_tool, &t);
    if (t.started < 1 || t.started > 2 || t.results != 1 || t.right != 1)
        fail_msg("%s, killed at call %d: %d starts, %d results, %d as it should be", c->name, n, t.started, t.results,
                 t.right);
    if (!notes_are(p, c->after ? c->after : OLD))
        fail_msg("%s, killed at call %d: the file is not what it should be", c->name, n);
    check_nothing_is_left_beside(p);
}

/* One conversation, killed at the n-th call; false: there is none. */
static bool kill_and_go_on(const struct tool_case *c, int n, bool seen[NUMBERS])
{
    struct place p;
    struct child child;
    bool killed;

    prepare(&p, c);
    p.on_event = mark_window;
    child = child_start(drive, &p, 1);
    killed = kill_at_call(child.pid, n, seen);
    assert_int_equal(was_killed(finish_child(&p, &child)), killed);
    if (!notes_are(&p, OLD) && !(c->after && notes_are(&p, c->after)))
        fail_msg("%s, killed at call %d: the file is neither the old nor the new one", c->name, n);
    p.on_event = NULL;
    if (killed) {
        check_shown(&p);
        assert_false(one_process(&p));
    }
    check_end(&p);
    check_tool(&p, c, n);
    dir_remove(p.dir);
    return killed;
}

static void killed_at_every_system_call_of(const struct tool_case *c)
{
    bool seen[NUMBERS] = {false};
    int n = 1;

    while (kill_and_go_on(c, n, seen))
        n += STEP;
    for (size_t i = 0; i < sizeof c->calls / sizeof c->calls[0] && c->calls[i]; i++)
        if (!seen[c->calls[i]])
            fail_msg("%s never made system call %d", c->name, c->calls[i]);
    assert_true(n > 1);
    print_message("%s: %d kills\n", c->name, (n - 1) / STEP);
}

static void killed_inside_each_file_tool_it_goes_on(void **state)
{
    (void)state;
    if (!may_trace())
        skip(); /* a sandbox without ptrace */
    memset(big, 'x', BIG);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        killed_at_every_system_call_of(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_inside_each_file_tool_it_goes_on)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
