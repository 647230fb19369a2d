/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run has begun when its event is on disk, not when a thread was started for it: whoever asked is answered by that event, which a
 * follower of the feed sees, or by the failure that came before it. An active run is freed by its own thread, when neither the
 * follower nor the scheduler looks at it any more.
 */
#include "server/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/resume.h"
#include "engine/settings.h"
#include "engine/shapes.h"
#include "engine/streamed_event.h"
#include "env/file_watch.h"

#define REQUEST_FD 4
#define TOKEN_FD 3
#define EXIT_NOT_STARTED 127
#define MAX_RESUMES 3
#define CHANGE_MS 1000

struct active {
    struct active *next, **before;
    struct runner *runner;
    int64_t handle; /* of the scheduler; 0: somebody asked */
    char id[TIDE_ID_SIZE];
    enum tide_session_kind kind;
    struct resume core;
    struct arena arena;
    const char *message;
    pthread_t thread;

    pthread_mutex_t mu; /* of what follows */
    int holders;        /* the thread, the follower */
    begun_fn *fn;       /* NULL: it was called, or nobody asked */
    void *arg;
    void *work; /* of a chat or a graph: what can be stopped now */
    bool stopping;
    pid_t pid;
    int64_t follower; /* its number */
};

struct runner {
    tide_store *store;
    struct feed *feed;
    struct runner_options opt;
    struct arena arena;

    pthread_mutex_t mu; /* of the list, and of what came of the scheduler's jobs */
    pthread_cond_t less;
    struct active *list;
    size_t n;
    int64_t last_handle;
    struct ended {
        int64_t handle;
        bool failed;
    } * ended;
    size_t n_ended, cap_ended;
    atomic_uint_fast64_t started, failed;
    atomic_uint_fast64_t interrupted[5]; /* by reason */

    pthread_t thread;
    bool running;
    atomic_bool stopping;
    int wake, stop; /* stop: readable once it stops */
    struct scheduler scheduler;
};

/* ---- whoever asked -------------------------------------------------------------------------------------------------- */

static void let_go(struct active *a)
{
    int left;

    pthread_mutex_lock(&a->mu);
    left = --a->holders;
    pthread_mutex_unlock(&a->mu);
    if (left)
        return;
    resume_done(&a->core);
    arena_done(&a->arena);
    pthread_mutex_destroy(&a->mu);
    free(a);
}

static void tell(struct active *a, const struct begun *begun, const struct tide_err *err)
{
    begun_fn *fn;

    pthread_mutex_lock(&a->mu);
    fn = a->fn;
    a->fn = NULL;
    pthread_mutex_unlock(&a->mu);
    if (fn)
        fn(a->arg, begun, err);
}

/* The first event of the run. False: nothing more is wanted. */
static bool on_item(void *arg, const struct feed_item *item)
{
    struct active *a = arg;

    if (item->what != FEED_EVENT)
        return true;
    tell(a, &(struct begun){item->kind, item->seq, item->json}, NULL);
    return false;
}

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

static void on_dropped(void *arg, const char *why)
{
    (void)why;
    let_go(arg);
}

/* From here on the run's events are seen. */
static enum tide_code watch_begin(struct active *a, int64_t last_seq, struct tide_err *err)
{
    static const char *const kinds[] = {"run.started", "run.resumed", "queue.added", NULL};
    const struct follow what = {.session_id = a->id, .after = last_seq, .kinds = kinds};
    const struct follower_face face = {a, on_item, has_room, on_dropped};
    struct follower *one;

    if (follower_new(a->runner->feed, &what, &face, &one, &a->follower, err))
        return err->code;
    a->holders++;
    follower_join(a->runner->feed, one);
    return TIDE_OK;
}

/* ---- chats and graphs: on the run's thread ---- */

static void publish(struct active *a, const struct streamed_event *event)
{
    AUTO(buf_done) struct buf json = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&json);

    shape_put(&o, &shape_event, event);
    feed_publish(a->runner->feed, FEED_TEXT, a->id, buf_view(&json));
}

static bool is_asked(struct active *a)
{
    bool asked;

    pthread_mutex_lock(&a->mu);
    asked = a->fn != NULL;
    pthread_mutex_unlock(&a->mu);
    return asked;
}

static void shut_down(struct active *a);

/* The store cannot be written. What runs pauses until it can; what has not begun is refused: whoever asked is told, and asks again. */
static void on_held(struct active *a)
{
    struct tide_err err = {0};

    if (!is_asked(a))
        return;
    (void)!tide_fail_session(&err, TIDE_BUSY, a->id,
                             "cannot be run: the store cannot be written, and nothing was begun; try again later");
    tell(a, NULL, &err);
    pthread_mutex_lock(&a->mu);
    shut_down(a);
    pthread_mutex_unlock(&a->mu);
}

static void on_agent_event(void *arg, const struct tide_agent_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_AGENT_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_agent(&event, e))
        publish(arg, &event);
}

static void on_graph_event(void *arg, const struct tide_graph_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_GRAPH_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_graph(&event, e))
        publish(arg, &event);
}

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct active *a = arg;

    if (why && is_asked(a)) {
        tell(a, NULL, why);
        return 1;
    }
    if (why && !waited_ms)
        log_write(TIDE_LOG_WARN, "the store cannot be written: the run pauses", log_text("session", a->id));
    return a->runner->stopping;
}

static bool is_stopped(void *arg)
{
    const struct active *a = arg;

    return a->runner->stopping;
}

static void on_tell(void *arg, const char *line, const char *change)
{
    const struct active *a = arg;

    (void)change;
    log_write(TIDE_LOG_INFO, line, log_text("session", a->id));
}

static enum tide_code open_setup(void *arg, struct agent_setup *setup, struct tide_err *err)
{
    struct active *a = arg;

    setup->tell = on_tell;
    setup->store = a->runner->store;
    setup->opt.arg = a;
    setup->opt.event = on_agent_event;
    return settings_open(a->runner->opt.config, NULL, NULL, &setup->settings, err);
}

/* With mu held. */
static void shut_down(struct active *a)
{
    a->stopping = true;
    if (a->work && a->kind == TIDE_KIND_GRAPH)
        tide_graph_shutdown(a->work);
    else if (a->work)
        tide_agent_shutdown(a->work);
}

static void set_work(struct active *a, void *work)
{
    pthread_mutex_lock(&a->mu);
    a->work = work;
    if (a->stopping && work)
        shut_down(a);
    pthread_mutex_unlock(&a->mu);
}

static void on_running(void *arg, bool runs)
{
    struct active *a = arg;

    if (a->core.kind == TIDE_KIND_CHAT)
        set_work(a, runs ? a->core.chat.agent : NULL);
}

static void on_graph_running(void *arg, bool runs)
{
    struct active *a = arg;

    set_work(a, runs ? a->core.run.graph : NULL);
}

static enum tide_code run_here(struct active *a, struct tide_err *err)
{
    struct resume *r = &a->core;

    r->face = (struct resume_face){.arg = a,
                                   .held = {.told = on_trouble, .stopped = is_stopped, .arg = a},
                                   .open_setup = open_setup,
                                   .running = on_running};
    r->chat.stopped = is_stopped;
    r->chat.setup.opt.arg = a;
    r->run.running = on_graph_running;
    r->run.arg = a;
    r->want.opt.event = on_graph_event;
    r->want.opt.arg = a;
    return a->message ? send_message(r, a->message, false, err) : resume_session(r, err);
}

/* ---- programs: in a process of their own ---- */

/* What is asked, for the process: not in its arguments, where others could read it. -1: it cannot be sent. */
static int send_request(const struct active *a, int *ret_theirs)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)32 << 20);
    const struct resume_request *ask = &a->core.ask;
    struct json_out o = json_out_to(&text);
    int ends[2], room;

    json_out_begin(&o, '{');
    json_out_kstr_opt(&o, STR("message"), str_from(a->message));
    json_out_kstr_opt(&o, STR("token"), str_from(ask->token));
    if (ask->input)
        json_out_kraw(&o, STR("input"), str_from(ask->input));
    json_out_end(&o, '}');
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    room = (int)text.len + 65536; /* so that nobody has to wait while nobody reads yet */
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (send(ends[0], text.ptr, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text.len ||
        shutdown(ends[0], SHUT_WR)) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    *ret_theirs = ends[1];
    return ends[0];
}

/* Why the process refused what was asked, as it says; TIDE_OK: it does not. */
static enum tide_code read_refusal(int fd, struct tide_err *err)
{
    char text[65536];
    ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT);

    return n > 0 ? error_from_json((struct str){text, (size_t)n}, err) : TIDE_OK;
}

/* Only async-signal-safe calls between fork and exec. It is in a session of its own: what ends this server does not reach it. */
static void become_command(const char *const *argv, int request, const sigset_t *mask)
{
    int null = open("/dev/null", O_RDWR);

    sigprocmask(SIG_SETMASK, mask, NULL);
    setsid();
    if (null < 0 || dup2(null, STDIN_FILENO) != STDIN_FILENO || dup2(STDERR_FILENO, STDOUT_FILENO) != STDOUT_FILENO)
        _exit(EXIT_NOT_STARTED);
    if (request == TOKEN_FD)
        request = dup(request);
    if (dup2(null, TOKEN_FD) != TOKEN_FD || dup2(request, REQUEST_FD) != REQUEST_FD)
        _exit(EXIT_NOT_STARTED);
    if (request == REQUEST_FD)
        fcntl(REQUEST_FD, F_SETFD, 0);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(EXIT_NOT_STARTED);
}

static size_t add_names(const char **argv, size_t n, size_t max, const char *option, const char **names)
{
    for (size_t i = 0; names && names[i] && n + 3 < max; i++) {
        argv[n++] = option;
        argv[n++] = names[i];
    }
    return n;
}

static pid_t start_process(struct active *a, int *ret_request)
{
    const struct runner_options *opt = &a->runner->opt;
    const struct resume_request *ask = &a->core.ask;
    const char *argv[128] = {"tidemark", "--store", opt->url, "resume", a->id, "--token-fd", "3", "--request-fd", "4"};
    sigset_t all, before, none;
    int theirs = -1;
    size_t n = 9;
    pid_t pid;

    if (opt->config) {
        argv[n++] = "--config";
        argv[n++] = opt->config;
    }
    if (opt->key_file) {
        argv[n++] = "--key-file";
        argv[n++] = opt->key_file;
    }
    if (ask->unattended)
        argv[n++] = "--unattended";
    if (ask->now)
        argv[n++] = "--now";
    if (ask->accept_change)
        argv[n++] = "--accept-change";
    n = add_names(argv, n, 120, "--retry", ask->retry);
    (void)add_names(argv, n, 124, "--happened", ask->happened);
    sigfillset(&all);
    sigemptyset(&none);
    *ret_request = send_request(a, &theirs);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid = *ret_request < 0 ? -1 : fork();
    if (pid == 0)
        become_command(argv, theirs, &none);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (theirs >= 0)
        close(theirs);
    return pid;
}

/* False: this server stops first. */
static bool await_process(struct runner *r, pid_t pid, int *ret_status)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = r->stop, .events = POLLIN}};
    bool ended;

    while (!p[0].revents && !p[1].revents && poll(p, 2, fd < 0 ? 100 : -1) < 0 && errno == EINTR)
        ;
    ended = fd < 0 || p[0].revents;
    if (ended)
        while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
            ;
    if (fd >= 0)
        close(fd);
    return ended;
}

static enum tide_code run_process(struct active *a, struct tide_err *err)
{
    int request = -1, status = 0;
    pid_t pid = start_process(a, &request);
    enum tide_code code = TIDE_OK;
    bool ended;

    if (pid < 0) {
        if (request >= 0)
            close(request);
        return tide_fail(err, TIDE_BUSY, "no process could be started: try again later");
    }
    pthread_mutex_lock(&a->mu);
    a->pid = pid;
    pthread_mutex_unlock(&a->mu);
    ended = await_process(a->runner, pid, &status); /* else it goes on without us */
    if (ended)
        code = read_refusal(request, err);
    close(request);
    if (code || !ended ||
        (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == tide_code_exit(TIDE_WAITING))))
        return code;
    return tide_fail_session(err, TIDE_FAILED, a->id, "its program failed: its status says why");
}

/* ---- the run's thread ---- */

static void note_end(struct runner *r, int64_t handle, bool failed)
{
    if (!handle)
        return;
    MEM_ROOM(r->ended, r->n_ended, r->cap_ended);
    r->ended[r->n_ended++] = (struct ended){handle, failed};
    wake_fd_signal(r->wake);
}

static void *run_active(void *arg)
{
    struct active *a = arg;
    struct runner *r = a->runner;
    struct tide_err err = {0};
    enum tide_code code = a->kind == TIDE_KIND_PROGRAM ? run_process(a, &err) : run_here(a, &err);
    bool failed = code && code != TIDE_WAITING && code != TIDE_CANCELLED && code != TIDE_NOT_FOUND;

    if (failed)
        log_write(TIDE_LOG_WARN, "a run ended badly", log_text("session", a->id), log_text("error", err.msg));
    if (code)
        tell(a, NULL, &err);
    else
        tell(a, &(struct begun){"", 0, STR("{}")}, NULL);
    pthread_mutex_lock(&r->mu);
    *a->before = a->next;
    if (a->next)
        a->next->before = a->before;
    r->n--;
    r->failed += failed;
    note_end(r, a->handle, failed);
    pthread_cond_broadcast(&r->less);
    pthread_mutex_unlock(&r->mu);
    pthread_detach(pthread_self());
    if (a->follower)
        follower_leave(r->feed, a->id, a->follower);
    let_go(a);
    return NULL;
}

/* ---- beginning ---- */

static const char *dup_text(struct arena *a, const char *text)
{
    return text ? arena_dup(a, str_from(text)).ptr : NULL;
}

static const char **dup_list(struct arena *a, const char *const *list)
{
    const char **copy;
    size_t n = 0;

    if (!list)
        return NULL;
    while (list[n])
        n++;
    copy = arena_zero(a, (n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = dup_text(a, list[i]);
    return copy;
}

static void take_order(struct active *a, const struct order *o)
{
    struct resume_request *ask = &a->core.ask;
    struct arena *m = &a->arena;

    *ask = (struct resume_request){.id = a->id,
                                   .token = dup_text(m, o->token),
                                   .input = dup_text(m, o->input),
                                   .has_reason = o->has_reason,
                                   .ask_again = dup_text(m, o->ask_again),
                                   .request_id = dup_text(m, o->request_id),
                                   .retry = dup_list(m, o->retry),
                                   .happened = dup_list(m, o->happened),
                                   .now = o->now,
                                   .accept_change = o->accept_change,
                                   .graph = {.checkpoint = dup_text(m, o->checkpoint),
                                             .fallback = o->fallback,
                                             .rollback = (o->reuse_effects ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                                         (o->redo_effects ? TIDE_ROLLBACK_REDO_EFFECTS : 0u)}};
    a->message = dup_text(m, o->message);
    buf_add_str(&a->core.memory, o->memory);
}

/* What it is, and how far it is. */
static enum tide_code look_at(struct active *a, int64_t *ret_seq, struct tide_err *err)
{
    const struct tide_session_info *info;
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(a->runner->store, a->id, TIDE_SESSION_READ, &session, err);

    code = code ? code : tide_session_get_info(session, &info, err);
    if (!code) {
        a->kind = info->kind;
        *ret_seq = info->last_seq;
    }
    tide_session_close(session);
    return code;
}

static struct active *active_new(struct runner *r, const char *id)
{
    struct active *a = mem_zero(sizeof *a);

    a->core = (struct resume)RESUME_INIT;
    a->runner = r;
    a->holders = 1;
    a->core.store = r->store;
    a->core.config = r->opt.config;
    snprintf(a->id, sizeof a->id, "%s", id);
    pthread_mutex_init(&a->mu, NULL);
    return a;
}

/* It has its place before it begins, so that no more than may run at once. */
static enum tide_code take_place(struct runner *r, struct active *a, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    pthread_mutex_lock(&r->mu);
    if (r->stopping)
        code = tide_fail(err, TIDE_BUSY, "the server stops: ask again when it is back");
    else if (r->n >= (size_t)r->opt.max_active)
        code = tide_fail(err, TIDE_BUSY, "%d sessions run already, as many as may: try again later", r->opt.max_active);
    for (struct active *other = r->list; !code && other; other = other->next)
        if (strcmp(other->id, a->id) == 0)
            code = tide_fail_session(err, TIDE_HELD, a->id, "is run by this server already");
    if (!code) {
        a->next = r->list;
        a->before = &r->list;
        if (a->next)
            a->next->before = &a->next;
        r->list = a;
        r->n++;
        r->started++;
    }
    pthread_mutex_unlock(&r->mu);
    return code;
}

static void leave_place(struct runner *r, struct active *a)
{
    pthread_mutex_lock(&r->mu);
    *a->before = a->next;
    if (a->next)
        a->next->before = a->before;
    r->n--;
    pthread_mutex_unlock(&r->mu);
}

static enum tide_code begin(struct active *a, struct tide_err *err)
{
    struct runner *r = a->runner;
    enum tide_code code = take_place(r, a, err);

    if (code)
        return code;
    if (!thread_start(&a->thread, run_active, a)) {
        leave_place(r, a);
        return tide_fail(err, TIDE_BUSY, "no thread could be started: try again later");
    }
    return TIDE_OK;
}

enum tide_code runner_run(struct runner *r, const struct order *order, begun_fn *fn, void *arg, struct tide_err *err)
{
    struct active *a = active_new(r, order->session_id);
    int64_t seq = 0;
    enum tide_code code;

    take_order(a, order);
    code = look_at(a, &seq, err);
    a->fn = fn;
    a->arg = arg;
    code = code ? code : watch_begin(a, seq, err);
    if (!code) {
        code = begin(a, err);
        if (code) { /* the follower is told to go, and must not answer */
            pthread_mutex_lock(&a->mu);
            a->fn = NULL;
            pthread_mutex_unlock(&a->mu);
            follower_leave(r->feed, a->id, a->follower);
        }
    }
    if (code)
        let_go(a);
    return code;
}

bool runner_runs(struct runner *r, const char *session_id)
{
    bool runs = false;

    pthread_mutex_lock(&r->mu);
    for (struct active *a = r->list; a; a = a->next)
        runs |= strcmp(a->id, session_id) == 0;
    pthread_mutex_unlock(&r->mu);
    return runs;
}

/* ---- what is due ---- */

static bool scheduler_stopped(void *arg)
{
    const struct runner *r = arg;

    return r->stopping;
}

static void count_interruption(struct runner *r, const struct tide_recovered *what)
{
    static const char *const reasons[] = {INTERRUPTION_REASONS};
    size_t i = 0, last = sizeof reasons / sizeof reasons[0] - 1;

    if (what->action != TIDE_RECOVERED_INTERRUPTED && what->action != TIDE_RECOVERED_TIMED_OUT)
        return;
    while (i < last && strcmp(reasons[i], what->reason) != 0)
        i++;
    r->interrupted[i]++;
}

static void scheduler_found(void *arg, const struct tide_recovered *what, bool resumes)
{
    count_interruption(arg, what);
    log_write(TIDE_LOG_INFO, resumes ? "session is due" : "session was looked at",
              log_text("session", what->session_id), log_text("action", tide_recovered_action_name(what->action)));
}

static bool start_job(void *arg, struct scheduler_job *job)
{
    struct runner *r = arg;
    struct active *a = active_new(r, job->id);
    struct tide_err err;
    int64_t seq;

    a->core.ask = (struct resume_request){.id = a->id, .unattended = true};
    pthread_mutex_lock(&r->mu);
    a->handle = ++r->last_handle;
    pthread_mutex_unlock(&r->mu);
    job->handle = a->handle;
    if (look_at(a, &seq, &err) || begin(a, &err)) {
        job->handle = 0;
        let_go(a);
        return false;
    }
    return true;
}

static enum job_state look_at_job(void *arg, const struct scheduler_job *job, int *ret_status)
{
    struct runner *r = arg;
    enum job_state state = JOB_RUNS;

    *ret_status = 0;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_ended && state == JOB_RUNS; i++)
        if (r->ended[i].handle == job->handle) {
            state = r->ended[i].failed ? JOB_FAILED : JOB_ENDED;
            r->ended[i] = r->ended[--r->n_ended];
        }
    pthread_mutex_unlock(&r->mu);
    return state;
}

static void job_ended(void *arg, const struct scheduler_job *job, int status, bool last)
{
    (void)arg;
    (void)status;
    if (last)
        log_write(TIDE_LOG_ERROR, "session is not resumed again here", log_text("session", job->id));
}

static void stop_job(void *arg, const struct scheduler_job *job)
{
    (void)arg;
    (void)job; /* runner_stop() asks all */
}

static int64_t wall_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

static int64_t monotonic_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

/* Until the next pass: by the clock, or because the store has changed and the last pass was a while ago. */
static void wait_for_work(struct runner *r, tide_watch *watch, int64_t began_ms)
{
    struct pollfd p[2] = {{.fd = tide_watch_fd(watch), .events = POLLIN}, {.fd = r->wake, .events = POLLIN}};
    bool changed = false;
    struct tide_err err;
    int64_t left;
    int is;

    while (!r->stopping &&
           (left = scheduler_time_left(&r->scheduler, began_ms, r->opt.interval_ms, wall_now_ms())) > 0) {
        int64_t soonest = began_ms + CHANGE_MS - monotonic_now_ms(); /* it may be changing all the time */

        if (changed && soonest <= 0)
            return;
        p[0].fd = changed ? -1 : tide_watch_fd(watch);
        p[0].revents = p[1].revents = 0;
        (void)!poll(p, 2, (int)(changed && soonest < left ? soonest : left < 1000000 ? left : 1000000));
        if (p[1].revents)
            (void)wake_fd_wait(r->wake, 0);
        scheduler_step(&r->scheduler);
        changed |= p[0].revents && (tide_watch_wait(watch, 0, &is, &err) || is);
    }
}

static void *run_scheduler(void *arg)
{
    struct runner *r = arg;
    tide_watch *watch = NULL;
    struct tide_err err;

    if (tide_watch_open(r->store, &watch, &err)) {
        log_write(TIDE_LOG_ERROR, "the store cannot be watched", log_text("error", err.msg));
        return NULL;
    }
    while (!r->stopping) {
        int64_t began_ms = monotonic_now_ms();
        enum tide_code code = scheduler_pass(&r->scheduler, &err);

        if (code && code != TIDE_CORRUPT)
            log_write(TIDE_LOG_WARN, "the store cannot be looked at", log_text("error", err.msg));
        scheduler_step(&r->scheduler);
        wait_for_work(r, watch, began_ms);
    }
    tide_watch_close(watch);
    return NULL;
}

/* ---- the runner ---- */

struct runner *runner_new(tide_store *store, struct feed *feed, const struct runner_options *opt)
{
    struct runner *r = mem_zero(sizeof *r);
    pthread_condattr_t attr;

    r->store = store;
    r->feed = feed;
    r->opt = *opt;
    r->opt.url = dup_text(&r->arena, opt->url);
    r->opt.config = dup_text(&r->arena, opt->config);
    r->opt.key_file = dup_text(&r->arena, opt->key_file);
    r->wake = r->stop = -1;
    pthread_mutex_init(&r->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->less, &attr);
    pthread_condattr_destroy(&attr);
    r->scheduler = (struct scheduler){.store = store,
                                      .run_due = true,
                                      .automatic = opt->automatic,
                                      .max_at_once = opt->max_active,
                                      .max_resumes = MAX_RESUMES,
                                      .stopped = scheduler_stopped,
                                      .found = scheduler_found,
                                      .start = start_job,
                                      .look = look_at_job,
                                      .ended = job_ended,
                                      .stop = stop_job,
                                      .arg = r};
    return r;
}

static int count_found(void *arg, const struct tide_recovered *what)
{
    count_interruption(arg, what);
    return 0;
}

enum tide_code runner_sweep(struct runner *r, struct tide_err *err)
{
    enum tide_code code = tide_store_recover(r->store, 0, count_found, r, NULL, err);

    return code == TIDE_CORRUPT ? TIDE_OK : code; /* one damaged is in nobody's way */
}

enum tide_code runner_start(struct runner *r, struct tide_err *err)
{
    if (wake_fd_open(&r->wake, err) || wake_fd_open(&r->stop, err))
        return err->code;
    r->running = thread_start(&r->thread, run_scheduler, r);
    return r->running ? TIDE_OK : tide_fail(err, TIDE_BUSY, "no thread could be started");
}

/* Programs go on by themselves: only chats and graphs are asked. */
static void ask_to_park(struct runner *r)
{
    for (struct active *a = r->list; a; a = a->next) {
        pthread_mutex_lock(&a->mu);
        shut_down(a);
        pthread_mutex_unlock(&a->mu);
    }
}

void runner_stop(struct runner *r, int64_t deadline_ms)
{
    struct timespec until;

    r->stopping = true;
    if (r->running) {
        wake_fd_signal(r->wake);
        wake_fd_signal(r->stop);
    }
    if (r->running)
        pthread_join(r->thread, NULL);
    r->running = false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += deadline_ms % 1000 * 1000000;
    until.tv_sec += deadline_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&r->mu);
    ask_to_park(r);
    while (r->n && pthread_cond_timedwait(&r->less, &r->mu, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&r->mu);
}

void runner_count(struct runner *r, struct runner_counts *ret)
{
    pthread_mutex_lock(&r->mu);
    *ret = (struct runner_counts){r->n, r->scheduler.n - r->scheduler.running, r->started, r->failed, {0}};
    for (size_t i = 0; i < sizeof r->interrupted / sizeof r->interrupted[0]; i++)
        ret->interrupted[i] = r->interrupted[i];
    pthread_mutex_unlock(&r->mu);
}

void runner_free(struct runner *r)
{
    if (!r || r->n) /* what did not park in time is ended with the process */
        return;
    scheduler_done(&r->scheduler);
    if (r->wake >= 0)
        close(r->wake);
    if (r->stop >= 0)
        close(r->stop);
    free(r->ended);
    pthread_cond_destroy(&r->less);
    pthread_mutex_destroy(&r->mu);
    arena_done(&r->arena);
    free(r);
}
