/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent costs beside the model and the disk: its own processor time a turn, how many syncs a turn waits for, the
 * memory of a chat among a hundred, and how soon a long conversation sends its next request. The script provider answers.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define CHATS 100
#define CHAT_TURNS 20
#define LONG_TURNS 2000
#define ROUNDS 5

/* Syncs, by who waits for them: the store calls this instead of the one of the C library. */
static atomic_long syncs_waited_for, syncs_in_all;
static pid_t waiter;

int fdatasync(int fd)
{
    atomic_fetch_add(&syncs_in_all, 1);
    if (gettid() == waiter)
        atomic_fetch_add(&syncs_waited_for, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

long syncs_so_far(void)
{
    return atomic_load(&syncs_in_all);
}

/* ---- agents ------------------------------------------------------------------------------------------------------ */

static enum tide_code nothing(void *arg, const char *args, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)args;
    (void)key;
    (void)err;
    ret->ptr = strdup("done");
    ret->len = 4;
    return TIDE_OK;
}

static const struct tide_tool tool = {.size = sizeof tool,
                                      .name = "work",
                                      .description = "does nothing",
                                      .schema = "{\"type\":\"object\"}",
                                      .fn = nothing};

static void write_script(const char *path, bool with_tool, int delay_ms)
{
    FILE *f = fopen(path, "w");

    must_sys(f != NULL, path);
    fprintf(f, "{\"turns\":[");
    if (with_tool)
        fprintf(f, "{\"text\":\"I will do it.\",\"calls\":[{\"name\":\"work\",\"args\":{}}],\"delay_ms\":%d},",
                delay_ms);
    fprintf(f, "{\"text\":\"It is done, and this is what came of it.\",\"delay_ms\":%d}],\"repeat\":true}", delay_ms);
    must_sys(fclose(f) == 0, path);
}

static tide_agent *agent_new(tide_session *s, const char *script, tide_agent_event_fn *event, void *arg)
{
    const struct tide_agent_options opt = {.size = sizeof opt,
                                           .provider = "script",
                                           .script = script,
                                           .max_turns = 1000000,
                                           .max_context_tokens = 1000000000,
                                           .no_tools = 1,
                                           .working_dir = "/",
                                           .event = event,
                                           .arg = arg};
    struct tide_err err;
    tide_agent *a = NULL;

    must(tide_agent_new(s, &opt, &a, &err), &err, "agent");
    must(tide_agent_add_tool(a, &tool, &err), &err, "tool");
    return a;
}

static void say(tide_agent *a)
{
    struct tide_err err;

    must(tide_agent_run(a, "do the next thing", NULL, &err), &err, "prompt");
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- processor time ------------------------------------------------------------------------------------------------ */

/* In memory, so that the disk is left out. Seconds of processor time a turn, of prompts from `from` on in each session. */
static double cpu_of_turn(const char *script, int sessions, int from, int prompts)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    char dir[] = "/dev/shm/tidemark-bench-XXXXXX", path[64], command[80];
    tide_store *store;
    struct tide_err err;
    double used = 0;

    must_sys(mkdtemp(dir) != NULL, dir);
    snprintf(path, sizeof path, "%s/agent.db", dir);
    must(tide_store_open(path, &opt, &store, &err), &err, "open");
    for (int i = 0; i < sessions; i++) {
        tide_session *s;
        tide_agent *a;
        double start;

        must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
        a = agent_new(s, script, NULL, NULL);
        for (int k = 1; k < from; k++)
            say(a);
        start = cpu_s();
        for (int k = 0; k < prompts; k++)
            say(a);
        used += cpu_s() - start;
        tide_agent_free(a);
        tide_session_close(s);
    }
    tide_store_close(store);
    snprintf(command, sizeof command, "rm -r %s", dir);
    must_sys(system(command) == 0, command);
    return used / (2.0 * sessions * prompts);
}

static void bench_cpu(const struct bench *b, const char *script)
{
    double took[ROUNDS];
    char measured[64];

    for (int i = 0; i < ROUNDS; i++)
        took[i] = cpu_of_turn(script, b->quick ? 2 : 30, 2, 10);
    snprintf(measured, sizeof measured, "%.0f us of processor time", median(took, ROUNDS) * 1e6);
    row("a turn of the agent, half of them with one tool", measured, "300 us; store in memory",
        median(took, ROUNDS) / 300e-6, "<=", 1);
}

/* The script provider sends nothing: what is measured is all but the sending of the request. */
static void bench_cpu_late(const struct bench *b, const char *script)
{
    double early[ROUNDS], late[ROUNDS], ratio[ROUNDS];
    char measured[80], beside[80];

    for (int i = 0; i < ROUNDS; i++) {
        early[i] = cpu_of_turn(script, b->quick ? 2 : 20, 8, 5); /* turns 15 to 24 */
        late[i] = cpu_of_turn(script, 1, b->quick ? 50 : LONG_TURNS / 2 - 50, b->quick ? 10 : 100);
        ratio[i] = late[i] / early[i];
    }
    snprintf(measured, sizeof measured, "%.0f us of processor time, without sending", median(late, ROUNDS) * 1e6);
    snprintf(beside, sizeof beside, "turn 20: %.0f us", median(early, ROUNDS) * 1e6);
    row("turn 2,000 of a conversation", measured, beside, median(ratio, ROUNDS), "<=", 1.5);
}

/* ---- syncs --------------------------------------------------------------------------------------------------------- */

static void bench_syncs(const struct bench *b, const char *what, const char *script, double bound)
{
    int n = b->quick ? 5 : 30;
    tide_store *store = store_new(b, "syncs");
    struct tide_err err;
    tide_session *s;
    tide_agent *a;
    char measured[64], beside[64];

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    a = agent_new(s, script, NULL, NULL);
    say(a);
    waiter = gettid();
    atomic_store(&syncs_waited_for, 0);
    atomic_store(&syncs_in_all, 0);
    for (int i = 0; i < n; i++)
        say(a);
    waiter = 0;
    snprintf(measured, sizeof measured, "%.2f waited for", (double)syncs_waited_for / n);
    snprintf(beside, sizeof beside, "%.2f in all, the rest while the model answers", (double)syncs_in_all / n);
    row(what, measured, beside, (double)syncs_waited_for / n, "<=", bound);
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(store);
}

/* ---- many at once ---------------------------------------------------------------------------------------------------- */

struct chat {
    tide_store *store;
    const char *script;
    pthread_t thread;
};

static void *chat_thread(void *arg)
{
    struct chat *c = arg;
    struct tide_err err;
    tide_session *s;
    tide_agent *a;

    must(tide_session_create(c->store, NULL, NULL, &s, &err), &err, "create");
    a = agent_new(s, c->script, NULL, NULL);
    for (int i = 0; i < CHAT_TURNS / 2; i++)
        say(a);
    tide_agent_free(a);
    tide_session_close(s);
    return NULL;
}

/* In a process of its own: what it holds at most, the time, and the processor time, into a pipe. */
static void many_child(const struct bench *b, const char *script, int out)
{
    struct chat chats[CHATS];
    tide_store *store = store_new(b, "many");
    double result[4], before = peak_bytes(), start = now_s(), cpu = cpu_s();

    for (int i = 0; i < CHATS; i++) {
        chats[i] = (struct chat){.store = store, .script = script};
        must_sys(pthread_create(&chats[i].thread, NULL, chat_thread, &chats[i]) == 0, "thread");
    }
    for (int i = 0; i < CHATS; i++)
        pthread_join(chats[i].thread, NULL);
    result[0] = peak_bytes() - before;
    result[1] = now_s() - start;
    result[2] = cpu_s() - cpu;
    result[3] = (double)atomic_load(&syncs_in_all);
    must_sys(write(out, result, sizeof result) == (ssize_t)sizeof result, "pipe");
    tide_store_close(store);
    _exit(0);
}

static void bench_many(const struct bench *b, const char *script)
{
    double result[4], turns = (double)CHATS * CHAT_TURNS, busy;
    char measured[80], beside[120];
    int pair[2], status;
    pid_t pid;

    must_sys(pipe(pair) == 0, "pipe");
    atomic_store(&syncs_in_all, 0);
    pid = fork();
    must_sys(pid >= 0, "fork");
    if (pid == 0)
        many_child(b, script, pair[1]);
    must_sys(waitpid(pid, &status, 0) == pid && status == 0, "child");
    must_sys(read(pair[0], result, sizeof result) == (ssize_t)sizeof result, "pipe");
    close(pair[0]);
    close(pair[1]);
    busy = result[2] / result[1] / (double)sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(measured, sizeof measured, "%.2f MiB a chat, %.0f turns/s", result[0] / CHATS / 1048576,
             turns / result[1]);
    snprintf(beside, sizeof beside, "1 MiB; limited by %s (processors %.0f %% busy, %.0f syncs/s)",
             busy > 0.8 ? "the processors" : "syncs", busy * 100, result[3] / result[1]);
    row("100 chats at once, 20 turns each", measured, beside, result[0] / CHATS / 1048576, "<=", 1);
}

/* ---- a long one -------------------------------------------------------------------------------------------------------- */

static void stamp(void *arg, const struct tide_agent_event *e)
{
    double *first = arg;

    if (e->what == TIDE_AGENT_TEXT && *first == 0)
        *first = now_s();
}

static void bench_long(const struct bench *b, const char *script)
{
    int turns = b->quick ? 100 : LONG_TURNS;
    double took[ROUNDS];
    tide_store *store = store_new(b, "long");
    struct tide_err err;
    tide_session *s;
    tide_agent *a;
    char measured[64];

    must(tide_session_create(store, "long", NULL, &s, &err), &err, "create");
    a = agent_new(s, script, NULL, NULL);
    for (int i = 0; i < turns / 2; i++)
        say(a);
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(store);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_s(), first = 0;

        store = store_again(b, "long");
        must(tide_session_open(store, "long", TIDE_SESSION_APPEND, &s, &err), &err, "open");
        a = agent_new(s, script, stamp, &first);
        say(a);
        took[i] = first - start;
        tide_agent_free(a);
        tide_session_close(s);
        tide_store_close(store);
    }
    snprintf(measured, sizeof measured, "%.1f ms", median(took, ROUNDS) * 1e3);
    row("2,000 turns: opened to the first request answered", measured, "50 ms, a sync among them",
        median(took, ROUNDS) / 50e-3, "<=", 1);
}

void bench_agent(const struct bench *b)
{
    char plain[300], with_tool[300], slow_plain[300], slow_tool[300];

    snprintf(plain, sizeof plain, "%s/plain.json", b->dir);
    snprintf(with_tool, sizeof with_tool, "%s/tool.json", b->dir);
    snprintf(slow_plain, sizeof slow_plain, "%s/slow-plain.json", b->dir);
    snprintf(slow_tool, sizeof slow_tool, "%s/slow-tool.json", b->dir);
    write_script(plain, false, 0);
    write_script(with_tool, true, 0);
    write_script(slow_plain, false, 20);
    write_script(slow_tool, true, 20);
    bench_cpu(b, with_tool);
    bench_cpu_late(b, with_tool);
    bench_syncs(b, "syncs of a plain turn", slow_plain, 1);
    bench_syncs(b, "syncs of a turn with one tool, and the turn that ends it", slow_tool, 2);
    bench_many(b, with_tool);
    bench_long(b, with_tool);
}
