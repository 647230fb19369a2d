/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs, a chat with a tool and a graph in one process, on threads beside each other. Each has a program, and below it
 * one that made a session of its own and has lost its parent. They are ended one after the other, each in another way: what is
 * its own ends with it, and nothing of the others.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/program_run.h"
#include "kit.h"
#include "process_ended.h"
#include "store_kind.h"

#define WORK                                                                                                           \
    "#!/bin/sh\n"                                                                                                      \
    "echo $$ >$1.program\n"                                                                                            \
    "(setsid sh -c 'sleep 1987 & echo $! >$1.far' x \"$1\" &)\n"                                                       \
    "until [ -s $1.far ]; do sleep 0.01; done\n"                                                                       \
    ": >$1.ready\n"                                                                                                    \
    "exec sleep 1987\n"
#define SCRIPT                                                                                                         \
    "{\"turns\":[{\"calls\":[{\"id\":\"c\",\"name\":\"bash\",\"args\":{\"command\":\"exec ./work chat\"}}]},"          \
    "{\"text\":\"Done.\"}]}"
#define GRAPH                                                                                                          \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":["                                                   \
    "{\"id\":\"a\",\"type\":\"function\",\"program\":[\"./work\",\"graph\"]}]}"

static tide_store *store;
static tide_agent *agent;
static tide_graph *graph;

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- the runs: each on a thread, its code in the end ---- */

struct run {
    const char *name;
    void *(*work)(void *run);
    pthread_t thread;
    enum tide_code code;
    int exit_status;
    pid_t program, far;
};

static void notice(void *arg, enum program_notice what, size_t n, const char *program)
{
    (void)arg;
    (void)what;
    (void)n;
    (void)program;
}

static void *run_program(void *arg)
{
    struct run *r = arg;
    const char *const argv[] = {"./work", r->name};
    struct program_run p = {.signals = -1, .notice = notice};
    struct tide_run_options opt = {.size = sizeof opt};
    struct tide_err err = {0};
    tide_session *session = NULL;

    r->code = program_run_from_argv(&p, argv, 2, NULL, &err);
    r->code = r->code ? r->code : program_run_check(&p, &err);
    r->code = r->code ? r->code : program_run_create(&p, store, r->name, NULL, NULL, &session, &err);
    r->code = r->code ? r->code : program_run(&p, session, &opt, NULL, &err);
    r->exit_status = p.end.exit_status;
    program_run_done(&p);
    tide_session_close(session);
    return NULL;
}

static enum tide_decision allow(void *arg, const struct tide_approval *ask)
{
    (void)arg;
    (void)ask;
    return TIDE_DECIDE_ALLOW;
}

static void *run_chat(void *arg)
{
    struct tide_err err = {0};

    ((struct run *)arg)->code = tide_agent_run(agent, "go", NULL, &err);
    return NULL;
}

static void *run_graph(void *arg)
{
    struct run *r = arg;
    const struct tide_graph_options opt = {.size = sizeof opt};
    struct tide_err err = {0};
    tide_session *session = NULL;

    r->code = tide_session_create(store, r->name, NULL, &session, &err);
    r->code = r->code ? r->code : tide_graph_run(session, graph, &opt, NULL, &err);
    tide_session_close(session);
    return NULL;
}

/* ---- what is looked at ---- */

static bool lives(pid_t pid)
{
    char state = state_of(pid);

    return pid > 0 && state && state != 'Z';
}

static pid_t read_pid(const char *name, const char *what)
{
    char path[64];
    int pid = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s.%s", name, what);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%d", &pid) != 1) /* NOLINT(cert-err34-c) */
        pid = 0;
    fclose(f);
    return pid;
}

static void wait_until_ready(struct run *r)
{
    char path[64];

    snprintf(path, sizeof path, "%s.ready", r->name);
    for (int i = 0; i < 60000 && access(path, F_OK) != 0; i++)
        poll(NULL, 0, 1);
    r->program = read_pid(r->name, "program");
    r->far = read_pid(r->name, "far");
    assert_true(lives(r->program) && lives(r->far));
}

static void others_live(const struct run *runs, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++)
        assert_true(lives(runs[i].program) && lives(runs[i].far));
}

enum { CANCELLED, CHAT, THE_GRAPH, LAST, N_RUNS };

static void end_cancelled(void)
{
    enum tide_cancelled how;

    OK(tide_session_cancel(store, "one", "test", NULL, 60000, &how, &err));
}

static void several_runs_of_one_process_are_ended_each_alone(void **state)
{
    struct run runs[] = {{.name = "one", .work = run_program},
                         {.name = "chat", .work = run_chat},
                         {.name = "graph", .work = run_graph},
                         {.name = "two", .work = run_program}};
    struct tide_agent_options opt = {
        .size = sizeof opt, .provider = "script", .script = "script.json", .approve = allow};
    const struct tide_store_options create = {.size = sizeof create, .flags = TIDE_OPEN_CREATE};
    tide_session *session = NULL;
    char dir[256], url[300];
    struct sigaction now[32];

    (void)state;
    dir_make(dir);
    assert_int_equal(chdir(dir), 0);
    write_file("work", WORK);
    assert_int_equal(chmod("work", 0755), 0);
    write_file("script.json", SCRIPT);
    snprintf(url, sizeof url, "%s%s/s%s", store_kind()->scheme, dir, store_kind()->suffix);
    OK(tide_store_open(url, &create, &store, &err));
    OK(tide_session_create(store, "chat", NULL, &session, &err));
    OK(tide_agent_new(session, &opt, &agent, &err));
    OK(tide_graph_parse(GRAPH, sizeof GRAPH - 1, NULL, NULL, NULL, &graph, &err));
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &now[i]);
    for (size_t i = 0; i < N_RUNS; i++)
        assert_int_equal(pthread_create(&runs[i].thread, NULL, runs[i].work, &runs[i]), 0);
    for (size_t i = 0; i < N_RUNS; i++)
        wait_until_ready(&runs[i]);
    for (int i = 1; i < 32; i++) { /* signals of the process are not touched, nor who gets its orphans */
        struct sigaction then;
        int subreaper = -1;

        sigaction(i, NULL, &then);
        assert_ptr_equal(then.sa_handler, now[i].sa_handler);
        prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
        assert_int_equal(subreaper, 0);
    }

    end_cancelled();
    pthread_join(runs[CANCELLED].thread, NULL);
    assert_int_equal(runs[CANCELLED].code, TIDE_OK);
    assert_false(lives(runs[CANCELLED].program) || lives(runs[CANCELLED].far)); /* before the run was over */
    others_live(runs, CHAT, N_RUNS);

    tide_agent_stop(agent);
    pthread_join(runs[CHAT].thread, NULL);
    assert_int_equal(runs[CHAT].code, TIDE_CANCELLED);
    assert_false(lives(runs[CHAT].program));
    assert_true(lives(runs[CHAT].far)); /* it left the group of the command: it may stay */
    others_live(runs, THE_GRAPH, N_RUNS);

    tide_graph_stop(graph);
    pthread_join(runs[THE_GRAPH].thread, NULL);
    assert_int_equal(runs[THE_GRAPH].code, TIDE_CANCELLED);
    assert_false(lives(runs[THE_GRAPH].program));
    others_live(runs, LAST, N_RUNS);

    kill(runs[LAST].program, SIGTERM);
    pthread_join(runs[LAST].thread, NULL);
    assert_int_equal(runs[LAST].exit_status, 128 + SIGTERM);
    assert_false(lives(runs[LAST].far));

    kill(runs[CHAT].far, SIGKILL);
    kill(runs[THE_GRAPH].far, SIGKILL);
    tide_agent_free(agent);
    tide_graph_free(graph);
    tide_session_close(session);
    tide_store_close(store);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no guard is left */
    assert_int_equal(chdir("/"), 0);
    dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_runs_of_one_process_are_ended_each_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
