/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server beside what it stands on: requests by wrk beside the HTTP library's bare answer, durable appends beside threads of the
 * library that wait for theirs, many readers, its start on a large store, and what it costs when nobody asks.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 5
#define READERS 5000
#define WRITERS 256
#define EVENTS_PER_S 1000

/* ---- a server of its own process ---- */

static void read_file(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n;

    must_sys(f != NULL, path);
    n = fread(out, 1, size - 1, f);
    fclose(f);
    out[n] = 0;
    out[strcspn(out, "\r\n")] = 0;
}

void serving_start(const struct bench *b, const char *name, struct serving *s)
{
    char store[512], path[PATH_MAX + 100], line[512] = "", whole[PATH_MAX];
    int err[2];
    double began = now_s();
    FILE *says;
    const char *port;

    snprintf(store, sizeof store, "%s/%s.db", b->dir, name);
    must_sys(realpath(b->dir, whole) != NULL, b->dir);
    snprintf(s->state, sizeof s->state, "%s/state", whole);
    must_sys(pipe(err) == 0 && (s->pid = fork()) >= 0, "fork");
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(err[1], 2);
        close(err[0]);
        setenv("XDG_STATE_HOME", s->state, 1);
        setenv("XDG_RUNTIME_DIR", s->state, 1);
        execl(b->tidemark, "tidemark", "--store", store, "serve", "--listen", "127.0.0.1:0", "--auto-resume", "off",
              (char *)NULL);
        _exit(127);
    }
    close(err[1]);
    says = fdopen(err[0], "r");
    while (fgets(line, sizeof line, says) && !strstr(line, "http://127.0.0.1:"))
        ;
    s->ready_ms = (now_s() - began) * 1000;
    port = strstr(line, "http://127.0.0.1:");
    must_sys(port != NULL, "tidemark serve");
    s->port = (int)strtol(port + strlen("http://127.0.0.1:"), NULL, 10);
    snprintf(path, sizeof path, "%s/tidemark/server.token", s->state);
    read_file(path, s->token, sizeof s->token);
    /* The pipe stays open: what the server says later must not end it. */
}

void serving_stop(struct serving *s)
{
    int status;

    kill(s->pid, SIGTERM);
    must_sys(waitpid(s->pid, &status, 0) == s->pid && status == 0, "the server's end");
}

/* The number in this line of a status in /proc. */
static double number_in(const char *path, const char *name)
{
    char line[200];
    double value = 0;
    FILE *f = fopen(path, "r");

    must_sys(f != NULL, path);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtod(line + strlen(name), NULL);
    fclose(f);
    return value;
}

static double resident_kib(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return number_in(path, "VmRSS:");
}

/* How often its threads have waited so far. */
static double waits_of(pid_t pid)
{
    char path[300];
    double sum = 0;
    struct dirent *e;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    dir = opendir(path);
    must_sys(dir != NULL, path);
    while ((e = readdir(dir)))
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "/proc/%d/task/%s/status", pid, e->d_name);
            sum += number_in(path, "voluntary_ctxt_switches:");
        }
    closedir(dir);
    return sum;
}

/* ---- requests by wrk ---- */

/* Requests a second; each connection sends what the script says. Every answer must be 2xx. */
static double wrk(const struct bench *b, const char *script, const char *token, int port, int connections,
                  double seconds)
{
    char path[400], command[1200], line[300];
    double rate = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/wrk.lua", b->dir);
    f = fopen(path, "w");
    must_sys(f != NULL, path);
    fputs(script, f);
    fclose(f);
    snprintf(command, sizeof command, "wrk -t1 -c%d -d%.0fs -s '%s' -H 'Authorization: Bearer %s' http://127.0.0.1:%d/",
             connections, seconds, path, token, port);
    f = popen(command, "r"); /* NOLINT(cert-env33-c): our own paths */
    must_sys(f != NULL, "popen");
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "Non-2xx") || strstr(line, "Socket errors"))
            fprintf(stderr, "bench: wrk: %s", line);
        if (strncmp(line, "Requests/sec:", 13) == 0)
            rate = strtod(line + 13, NULL);
    }
    must_sys(pclose(f) == 0 && rate > 0, "wrk");
    return rate;
}

static size_t bare_bytes;
static char *bare_body;

static enum MHD_Result bare_answer(void *arg, struct MHD_Connection *c, const char *path, const char *method,
                                   const char *version, const char *bytes, size_t *n, void **context)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(bare_bytes, bare_body, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result ok;

    (void)arg, (void)path, (void)method, (void)version, (void)bytes, (void)n, (void)context;
    MHD_add_response_header(r, "Content-Type", "application/json");
    ok = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return ok;
}

/* In a process of its own, as ours is. */
static pid_t serve_bare(size_t bytes, int *ret_port)
{
    int ready[2], port = 0;
    pid_t pid = -1;

    must_sys(pipe(ready) == 0 && (pid = fork()) >= 0, "fork");
    if (pid == 0) {
        struct MHD_Daemon *d;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bare_bytes = bytes;
        bare_body = malloc(bytes);
        must_sys(bare_body != NULL, "malloc");
        memset(bare_body, 'x', bytes);
        d = MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, bare_answer, NULL, MHD_OPTION_SOCK_ADDR,
            &(struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, MHD_OPTION_END);
        must_sys(d != NULL, "MHD_start_daemon");
        port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
        must_sys(write(ready[1], &port, sizeof port) == sizeof port, "write");
        for (;;)
            pause();
    }
    must_sys(read(ready[0], &port, sizeof port) == sizeof port, "the bare server");
    close(ready[0]);
    close(ready[1]);
    *ret_port = port;
    return pid;
}

/* The length of the body of one answer. */
static size_t answer_bytes(const struct serving *s, const char *path)
{
    char command[600], line[64] = "";
    FILE *f;

    snprintf(command, sizeof command, "curl -s -H 'Authorization: Bearer %s' http://127.0.0.1:%d%s | wc -c", s->token,
             s->port, path);
    f = popen(command, "r"); /* NOLINT(cert-env33-c): our own paths */
    must_sys(f && fgets(line, sizeof line, f), "curl");
    pclose(f);
    return (size_t)strtol(line, NULL, 10);
}

static void bench_reads(const struct bench *b, int sessions)
{
    struct serving s;
    double ours[ROUNDS], bare[ROUNDS], ratio[ROUNDS], seconds = b->quick ? 1 : 2;
    int rounds = b->quick ? 1 : ROUNDS, bare_port;
    char script[400], measured[64], beside[64];
    tide_store *store = store_new(b, "served");
    pid_t pid;

    fill_store(store, sessions);
    tide_store_close(store);
    serving_start(b, "served", &s);
    pid = serve_bare(answer_bytes(&s, "/api/v1/sessions/s000001"), &bare_port);
    snprintf(script, sizeof script,
             "math.randomseed(7)\nrequest = function() return wrk.format('GET', "
             "string.format('/api/v1/sessions/s%%06d', math.random(0, %d))) end\n",
             sessions - 1);
    for (int i = 0; i < rounds; i++) {
        bare[i] = wrk(b, "", "x", bare_port, 64, seconds);
        ours[i] = wrk(b, script, s.token, s.port, 64, seconds);
        ratio[i] = ours[i] / bare[i];
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    serving_stop(&s);
    snprintf(measured, sizeof measured, "%.0f requests/s", median(ours, (size_t)rounds));
    snprintf(beside, sizeof beside, "the HTTP library's bare answer: %.0f/s", median(bare, (size_t)rounds));
    row("server: GET of a session, 64 connections, 10,000 sessions", measured, beside, median(ratio, (size_t)rounds),
        ">=", 0.4);
}

/* ---- durable appends ---- */

struct appending {
    tide_store *store;
    const char *dir;
    int number;
    double until;
    int64_t n;
};

static void *append_alone(void *arg)
{
    const struct tide_new_event event = {"memory.set", "{\"values\":{\"n\":1}}", 0};
    struct appending *a = arg;
    tide_session *s = NULL;
    struct tide_err err;
    char id[32];

    snprintf(id, sizeof id, "s%06d", a->number);
    must(tide_session_open(a->store, id, TIDE_SESSION_APPEND, &s, &err), &err, "open");
    for (; now_s() < a->until; a->n++)
        must(tide_session_append(s, TIDE_APPEND_RELEASE, &event, 1, NULL, &err), &err, "append");
    tide_session_close(s);
    return NULL;
}

/* Events a second by threads of the library. */
static double append_by_threads(const struct bench *b, double seconds)
{
    static struct appending a[WRITERS];
    pthread_t threads[WRITERS];
    tide_store *store = store_again(b, "served");
    double began = now_s();
    int64_t n = 0;

    for (int i = 0; i < WRITERS; i++) {
        a[i] = (struct appending){store, b->dir, i, began + seconds, 0};
        must_sys(pthread_create(&threads[i], NULL, append_alone, &a[i]) == 0, "thread");
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        n += a[i].n;
    }
    seconds = now_s() - began;
    tide_store_close(store);
    return (double)n / seconds;
}

static void bench_writes(const struct bench *b)
{
    /* Each connection asks one after another; each request is of the next session, so that as many as connections are written to. */
    static const char script[] =
        "wrk.headers['Content-Type'] = 'application/json'\nlocal n = 0\n"
        "request = function() n = (n + 1) % 256; return wrk.format('POST', "
        "string.format('/api/v1/sessions/s%06d/events', n), nil, '{\"kind\":\"memory.set\",\"data\":{\"values\":{\"n\":1}}}') end\n";
    double ours[ROUNDS], threads[ROUNDS], ratio[ROUNDS], seconds = b->quick ? 1 : 2;
    int rounds = b->quick ? 1 : ROUNDS;
    char measured[64], beside[64];

    for (int i = 0; i < rounds; i++) {
        struct serving s;

        threads[i] = append_by_threads(b, seconds);
        serving_start(b, "served", &s);
        ours[i] = wrk(b, script, s.token, s.port, WRITERS, seconds);
        serving_stop(&s);
        ratio[i] = ours[i] / threads[i];
    }
    snprintf(measured, sizeof measured, "%.0f events/s", median(ours, (size_t)rounds));
    snprintf(beside, sizeof beside, "256 threads of the library: %.0f/s", median(threads, (size_t)rounds));
    row("server: durable POST of an event, 256 connections", measured, beside, median(ratio, (size_t)rounds),
        ">=", 0.5);
}

/* ---- readers ---- */

static int follow(const struct serving *s, int number)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n;
    char text[500];

    must_sys(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    n = snprintf(text, sizeof text,
                 "GET /api/v1/sessions/s%06d/events?kinds=memory.set HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                 "Authorization: Bearer %s\r\n\r\n",
                 number, s->port, s->token);
    must_sys(write(fd, text, (size_t)n) == n, "write");
    n = (int)read(fd, text, sizeof text - 1); /* the head: it follows, or soon will */
    must_sys(n > 12 && memcmp(text, "HTTP/1.1 200", 12) == 0, "a stream of events");
    return fd;
}

static double latency_p99_ms(tide_store *store, int group, int readers, int events)
{
    double *sent = calloc((size_t)readers, sizeof *sent), *took = malloc((size_t)events * sizeof *took), next = now_s();
    const struct tide_new_event event = {"memory.set", "{\"values\":{\"n\":1}}", 0};
    unsigned seed = 5;
    int n = 0, written = 0;
    double p99;

    must_sys(sent && took, "malloc");
    while (n < events) {
        struct epoll_event got[64];
        int k;

        if (written < events && now_s() >= next) {
            int which = rand_r(&seed) % readers;
            tide_session *s = NULL;
            struct tide_err err;
            char id[32];

            if (!sent[which]) { /* its last one has come */
                snprintf(id, sizeof id, "s%06d", which);
                must(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err), &err, "open");
                must(tide_session_append(s, TIDE_APPEND_RELEASE, &event, 1, NULL, &err), &err, "append");
                sent[which] = now_s();
                tide_session_close(s);
                written++;
            }
            next += 1.0 / EVENTS_PER_S;
        }
        k = epoll_wait(group, got, 64, written < events && now_s() >= next ? 0 : 1);
        must_sys(k > 0 || written < events || now_s() < next + 10, "an event did not come");
        for (int i = 0; i < k; i++) {
            char text[4096];
            int which = (int)got[i].data.u64 & 0xffff, fd = (int)(got[i].data.u64 >> 16);
            ssize_t len = read(fd, text, sizeof text - 1);

            must_sys(len > 0, "a stream was cut");
            text[len] = 0;
            if (strstr(text, "memory.set") && sent[which]) {
                took[n++] = (now_s() - sent[which]) * 1000;
                sent[which] = 0;
            }
        }
    }
    (void)median(took, (size_t)events); /* sorted */
    p99 = took[(size_t)(events * 99 / 100)];
    free(sent);
    free(took);
    return p99;
}

static void bench_readers(const struct bench *b)
{
    int readers = b->quick ? 200 : READERS, events = b->quick ? 300 : 5000, group = epoll_create1(EPOLL_CLOEXEC);
    struct rlimit files = {20000, 20000};
    char measured[64];
    struct serving s;
    tide_store *store;
    double before, each, p99;

    setrlimit(RLIMIT_NOFILE, &files);
    serving_start(b, "served", &s);
    before = resident_kib(s.pid);
    for (int i = 0; i < readers; i++) {
        int fd = follow(&s, i);
        struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)fd << 16 | (unsigned)i};

        must_sys(epoll_ctl(group, EPOLL_CTL_ADD, fd, &e) == 0, "epoll");
    }
    each = (resident_kib(s.pid) - before) / readers;
    store = store_again(b, "served");
    p99 = latency_p99_ms(store, group, readers, events);
    tide_store_close(store);
    serving_stop(&s);
    close(group);
    snprintf(measured, sizeof measured, "%.1f KiB each", each);
    row("server: 5,000 readers of events, memory", measured, "16 KiB", each / 16, "<=", 1);
    snprintf(measured, sizeof measured, "%.2f ms", p99);
    row("the same, append returned elsewhere to event read, 1,000 events/s, p99", measured, "20 ms", p99 / 20, "<=", 1);
}

/* ---- start and rest ---- */

void make_waiting(tide_store *store, int n)
{
    for (int i = 0; i < n; i++) {
        struct tide_wait_options w = {.size = sizeof w, .name = "later", .kind = TIDE_WAIT_APPROVAL, .question = "go?"};
        tide_session *s = NULL;
        tide_run *run = NULL;
        struct tide_text answer = {NULL, 0};
        char id[32], token[TIDE_TOKEN_SIZE];
        struct tide_err err;

        snprintf(id, sizeof id, "live%05d", i);
        must(tide_session_create(store, id, NULL, &s, &err), &err, "create");
        must(tide_run_start(s, NULL, &run, &err), &err, "start");
        must_sys(tide_run_wait(run, &w, &answer, token, &err) == TIDE_WAITING, "wait");
        tide_run_close(run);
        tide_session_close(s);
    }
}

/* The server of the last round is left. `cut`: runs whose process was killed before each start, which it has to record. */
static void bench_starts(const struct bench *b, const char *what, int cut, struct serving *ret)
{
    double ready[ROUNDS], limit_ms = 300 + 8000 / raw_sync_rate(b, false, 0.3);
    char measured[64], beside[64];

    for (int i = 0; i < ROUNDS; i++) {
        if (i)
            serving_stop(ret);
        if (cut)
            interrupt_runs(b, "many_served", i, cut);
        serving_start(b, "many_served", ret);
        ready[i] = ret->ready_ms;
    }
    snprintf(measured, sizeof measured, "%.0f ms", median(ready, ROUNDS));
    snprintf(beside, sizeof beside, "300 ms and 8 syncs: %.1f ms", limit_ms);
    row(what, measured, beside, median(ready, ROUNDS) / limit_ms, "<=", 1);
}

static void bench_rest(const struct bench *b)
{
    int sessions = b->quick ? 2000 : 100000, live = b->quick ? 50 : 1000;
    tide_store *store = store_new(b, "many_served");
    struct serving s;
    char measured[64];
    double rss, woken;

    fill_store(store, sessions);
    make_waiting(store, live);
    tide_store_close(store);
    bench_starts(b, "server: start to ready, 100,000 sessions, 1,000 of them waiting", 0, &s);
    sleep(1);
    woken = waits_of(s.pid);
    sleep(b->quick ? 2 : 10);
    woken = waits_of(s.pid) - woken;
    rss = resident_kib(s.pid) / 1024;
    serving_stop(&s);
    snprintf(measured, sizeof measured, "%.1f MiB", rss);
    row("server at rest: memory", measured, "16 MiB", rss / 16, "<=", 1);
    snprintf(measured, sizeof measured, "%.0f in ten seconds", woken);
    row("server at rest: wake-ups of all its threads", measured, "5", woken / 5, "<=", 1);
    bench_starts(b, "server: start to ready, the same and each time 1,000 that ran when their process was killed", live,
                 &s);
    serving_stop(&s);
}

void bench_server(const struct bench *b)
{
    bench_reads(b, b->quick ? 1000 : 10000);
    bench_writes(b);
    bench_readers(b);
    bench_rest(b);
}
