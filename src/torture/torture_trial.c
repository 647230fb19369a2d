/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tortured session, seen from outside: a process runs it and dies, another continues, until it ends. What a killed process
 * left running becomes ours; the process that continues with the session has to end it, and what is still there then is counted. In a
 * person's place: a question is answered; of a node that must happen once and was cut, the ledger says whether it happened.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "program/tree.h"
#include "torture/torture_internal.h"

#define ROUNDS_MAX 200 /* processes of one session */
#define GRACE_MS 100   /* for programs to notice that their parent is gone */
#define HANG_MS 60000  /* and thirty times what the uninterrupted one took: it does not end any more */
#define OUTCOME_MAX ((size_t)256 << 20)

/* ---- one process ---- */

static pid_t start_trial(struct torture *t, const struct order *o, int *ret_fd, struct tide_err *err)
{
    pid_t parent = getpid(), pid;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0) {
        tide_fail_errno(err, errno, "make a pipe");
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0); /* Ctrl-C is for us */
        close(fds[0]);
        if (getppid() == parent)
            torture_child(t, o, fds[1]);
        _exit(3);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    if (pid < 0) {
        close(fds[0]);
        tide_fail_errno(err, errno, "start a process");
    }
    return pid;
}

static bool is_stopped(const struct torture *t)
{
    return t->want->stopped(t->want->arg);
}

/* Until it has ended. False: it took too long, or a person stopped us. */
static bool listen_to(const struct torture *t, int fd, int64_t until_ms, struct buf *text)
{
    struct pollfd p = {fd, POLLIN, 0};

    while (!is_stopped(t) && monotonic_ms() < until_ms) {
        char *room = buf_reserve(text, 65536);
        int n = poll(&p, 1, 100);
        ssize_t got = n > 0 && room ? read(fd, room, 65536) : 0;

        if (!room)
            return false;
        text->len += got > 0 ? (size_t)got : 0;
        if (n > 0 && (got == 0 || (got < 0 && errno != EINTR)))
            return true;
    }
    return false;
}

/* What it started dies with it, by the kernel; what those started becomes ours. Those that are still there after a moment. */
static void find_orphans(struct torture *t)
{
    int64_t until = monotonic_ms() + GRACE_MS;
    char path[64];
    FILE *f;

    for (tree_reap(0); !tree_is_empty() && monotonic_ms() < until; tree_reap(0))
        poll(NULL, 0, 2);
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    while (f && t->n_orphans < sizeof(t->orphans) / sizeof(t->orphans[0]) &&
           fscanf(f, "%d", &t->orphans[t->n_orphans]) == 1)
        t->n_orphans++;
    if (f)
        fclose(f);
}

static const char *text_of(struct arena *a, const struct json *v, const char *key)
{
    struct str s = json_get_text(a, v, str_from(key));

    return s.len ? arena_dup(a, s).ptr : NULL;
}

static void take_outcome(struct arena *a, const struct buf *text, struct outcome *ret)
{
    const struct json_limits deeper = {0, JSON_MAX_DEPTH + 16};
    struct json *v = NULL;

    if (json_parse(a, arena_dup(a, buf_view(text)), &deeper, &v, NULL, NULL)) {
        ret->code = TIDE_FAILED;
        ret->message = "its process ended without a report";
        return;
    }
    ret->code = (enum tide_code)json_get_int(v, STR("code"), TIDE_FAILED);
    ret->message = text_of(a, v, "message");
    ret->wait_name = text_of(a, v, "wait_name");
    ret->unsettled = json_get(v, STR("unsettled"));
    ret->memory = (struct json *)(uintptr_t)json_get(v, STR("memory"));
    ret->completed = (struct json *)(uintptr_t)json_get(v, STR("completed"));
}

static void judge_end(struct arena *a, const struct order *o, int status, const struct buf *text, bool hung,
                      struct outcome *ret)
{
    ret->killed = !hung && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && o->kill.kind != POINT_NONE;
    if (ret->killed)
        return;
    ret->code = TIDE_FAILED;
    if (hung)
        ret->message = arena_printf(a, "it did not end in time, and was killed");
    else if (WIFSIGNALED(status))
        ret->message =
            arena_printf(a, "its process died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        take_outcome(a, text, ret);
}

enum tide_code torture_process(struct torture *t, struct arena *a, const struct order *o, struct outcome *ret,
                               struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(OUTCOME_MAX);
    int64_t until = monotonic_ms() + HANG_MS + t->base.us / 1000 * 30;
    int status = 0, fd = -1;
    pid_t pid = start_trial(t, o, &fd, err);
    bool ended;

    if (pid < 0)
        return err->code;
    ended = listen_to(t, fd, until, &text);
    close(fd);
    if (!ended)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *ret = (struct outcome){.left = 0};
    if (is_stopped(t))
        return tide_fail(err, TIDE_CANCELLED, "torture: stopped");
    judge_end(a, o, status, &text, !ended, ret);
    if (ret->killed) {
        find_orphans(t);
        return TIDE_OK;
    }
    tree_reap(0);
    for (size_t i = 0; i < t->n_orphans; i++) /* what a killed process left, and who resumed the session did not end */
        ret->left += kill(t->orphans[i], 0) == 0;
    t->n_orphans = 0;
    return TIDE_OK;
}

/* ---- in a person's place ---- */

static const char *answer_to(struct torture *t, const char *wait)
{
    const size_t *known = map_get(&t->asked, str_from(wait));
    size_t *nth;

    if (!known) {
        nth = arena_alloc(&t->arena, sizeof(*nth));
        *nth = t->asked.live + 1;
        map_put(&t->asked, str_from(wait), nth);
        known = nth;
    }
    return t->answers[*known <= t->n_answers ? *known - 1 : t->n_answers - 1];
}

static enum tide_code write_decision(const struct torture *t, const char *what, const struct effect_seen *f,
                                     const char *node, struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(1 << 16);
    struct json_out o = json_out_to(&line);
    int fd = open(t->ledger, O_WRONLY | O_APPEND | O_CLOEXEC);
    enum tide_code code;

    if (fd < 0)
        return tide_fail_errno(err, errno, "open '%s'", t->ledger);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("at"), str_from(what));
    json_out_kstr(&o, STR("node"), str_from(node));
    json_out_kint(&o, STR("visit"), f ? f->visit : 1);
    json_out_end(&o, '}');
    code = ledger_add(fd, &line, err);
    close(fd);
    return code;
}

/* Both objects as one: what is stored nowhere and has to be given again, and what a node gave. */
static const char *joined(struct arena *a, const char *secrets, struct str output)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    const struct str both[] = {str_from(secrets ? secrets : "{}"), output};
    struct json *v = NULL;

    json_out_begin(&o, '{');
    for (size_t i = 0; i < 2; i++)
        if (!json_parse(a, both[i], NULL, &v, NULL, NULL))
            for (const struct json *m = v->first; m; m = m->next)
                json_out_kraw(&o, json_key_text(a, m), json_source(m));
    json_out_end(&o, '}');
    return arena_dup(a, buf_view(&text)).ptr;
}

/* Did it happen? The ledger knows how far it came. */
static enum tide_code decide_one(struct torture *t, struct arena *a, const struct effects_seen *effects_seen,
                                 const char *node, struct trial *trial, struct order *o, const char ***at_retry,
                                 const char ***at_happened, struct tide_err *err)
{
    const struct effect_seen *last = effects_last(effects_seen, node);
    bool happened = last && last->kind == RECORD_END && last->ok;

    *(*(happened ? at_happened : at_retry))++ = node;
    /* Of a node of the graph itself: what it gave can be put into the memory in its place. */
    if (happened && last->output.len > 2 && !strpbrk(node, "/["))
        o->memory = joined(a, o->memory, last->output);
    *(happened ? &trial->happened : &trial->retried) += 1;
    trial->told = happened ? node : trial->told;
    return write_decision(t, happened ? "happened" : "retry", last, node, err);
}

static enum tide_code decide_answers(struct torture *t, struct arena *a, const struct json *nodes, struct trial *trial,
                                     struct order *o, struct tide_err *err)
{
    const char **retry = arena_zero(a, (nodes->count + 1) * sizeof(*retry)), **at_retry = retry;
    const char **happened = arena_zero(a, (nodes->count + 1) * sizeof(*happened)), **at_happened = happened;
    struct effects_seen effects_seen;
    enum tide_code code = effects_read(a, t->ledger, &effects_seen, err);

    if (code)
        return code;
    o->retry = retry;
    o->happened = happened;
    for (const struct json *n = nodes->first; n && !code; n = n->next)
        code =
            decide_one(t, a, &effects_seen, arena_dup(a, json_text(a, n)).ptr, trial, o, &at_retry, &at_happened, err);
    effects_done(&effects_seen);
    return code;
}

/* ---- one session ---- */

/* Where the next one dies, when it is to die again: anywhere in what is left. */
static struct point random_point(struct torture *t, int64_t appends)
{
    int64_t left = t->effects_seen.appends - appends;
    uint64_t r = torture_random(t);

    if (r % 2)
        return (struct point){.kind = r / 2 % 2 ? POINT_BEFORE : POINT_AFTER,
                              .append = appends + 1 + (int64_t)(torture_random(t) % (uint64_t)(left > 1 ? left : 1))};
    return (struct point){
        .kind = POINT_INSIDE,
        .nth = 1 + (int64_t)(r / 2 % 3),
        .after_us = (int64_t)(torture_random(t) % (uint64_t)(t->base.us / (int64_t)(t->n_points + 1) + 1000))};
}

static enum tide_code count_appends(const struct torture *t, struct arena *a, int64_t *ret, struct tide_err *err)
{
    struct effects_seen effects_seen;
    enum tide_code code = effects_read(a, t->ledger, &effects_seen, err);

    *ret = code ? 0 : effects_seen.appends;
    if (!code)
        effects_done(&effects_seen);
    return code;
}

/* What came of one process, and what the next one does. TIDE_OK and *ret_over: it has ended, well or not. */
static enum tide_code next_order(struct torture *t, struct arena *a, struct trial *trial, const struct outcome *got,
                                 struct order *o, bool *ret_over, struct tide_err *err)
{
    /* What has to be said again with every resume, and what this one is for. */
    *o = (struct order){
        .session_id = trial->session_id, .resume = true, .recover = true, .memory = t->secrets, .kill = o->kill};
    *ret_over = false;
    t->report.left += (int64_t)got->left;
    if (got->killed) {
        trial->reached = true;
        trial->kills++;
        o->kill.kind = POINT_NONE;
        if (count_appends(t, a, &o->appends, err))
            return err->code;
        if (trial->kills < t->want->kills)
            o->kill = random_point(t, o->appends);
        return TIDE_OK;
    }
    if (count_appends(t, a, &o->appends, err))
        return err->code;
    if (got->code == TIDE_WAITING && got->wait_name) {
        o->input = answer_to(t, got->wait_name);
        return TIDE_OK;
    }
    if (got->code == TIDE_UNSETTLED && got->unsettled && got->unsettled->count)
        return decide_answers(t, a, got->unsettled, trial, o, err);
    *ret_over = true;
    if (got->code)
        torture_fault(t, trial, FAULT_NOT_ENDED, got->message ? got->message : "", NULL, NULL);
    trial->memory = got->memory;
    trial->completed = got->completed;
    return TIDE_OK;
}

static enum tide_code play_trial(struct torture *t, struct arena *a, struct trial *trial, struct tide_err *err)
{
    struct order o = {.session_id = trial->session_id, .memory = t->memory, .kill = trial->point};
    struct outcome got;
    bool over = false;

    for (int i = 0; i < ROUNDS_MAX && !over; i++) {
        trial->resumes += i > 0;
        if (torture_process(t, a, &o, &got, err) || next_order(t, a, trial, &got, &o, &over, err))
            return err->code;
    }
    if (!over)
        torture_fault(t, trial, FAULT_NOT_ENDED,
                      arena_printf(a, "after %d processes it still runs or asks", ROUNDS_MAX), NULL, NULL);
    return TIDE_OK;
}

enum tide_code trial_run(struct torture *t, struct arena *a, const struct point *point, struct trial *ret,
                         struct tide_err *err)
{
    int64_t began = monotonic_ms();
    enum tide_code code;

    ret->point = *point;
    code = play_trial(t, a, ret, err);
    tree_reap(0);
    for (int i = 0; i < 1000 && !tree_is_empty(); i++) {
        tree_signal(getpid(), SIGKILL);
        poll(NULL, 0, 2);
        tree_reap(0);
    }
    if (!code)
        ret->us = (monotonic_ms() - began) * 1000;
    return code;
}
