/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that answer a question: hooks, and the one that opens the keychain.
 *
 * The group is killed before its leader is reaped: until then its number cannot be another's.
 */
#include "agent/hook_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program/find.h"
#include "program/proc.h"

#define COMPLAINT_MAX 512 /* of its standard error, unless the caller wants it: the first line is shown */
#define PIECE 16384
#define LOOK_MS 100 /* how often `stop` is asked */

struct run {
    const struct hook_program *program;
    struct proc proc;
    int input, out, err; /* of the last two: read ends */
    struct buf *output, *complaint;
    int status;
    bool too_big;
    enum tide_code ended; /* why we ended it; TIDE_OK: it ended by itself */
};

/* ---- starting ---- */

static bool holds_key(const char *entry, const char *secret)
{
    static const char *const names[] = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TIDEMARK_API_KEY"};
    const char *equals = strchr(entry, '=');

    for (size_t i = 0; equals && i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == (size_t)(equals - entry) && strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return equals && secret && *secret && strcmp(equals + 1, secret) == 0;
}

char **program_environ(struct arena *a, const char *secret)
{
    size_t n = 0, at = 0;
    char **kept;

    while (environ[n])
        n++;
    kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    for (size_t i = 0; i < n; i++)
        if (!holds_key(environ[i], secret))
            kept[at++] = environ[i];
    kept[at] = NULL;
    return kept;
}

static enum tide_code hold_program(struct run *r, const char *path, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct proc_spec spec = {.guard = r->program->guard,
                             .path = path,
                             .argv = r->program->argv,
                             .envp = program_environ(&a, r->program->secret),
                             .in = r->input};

    return proc_hold_piped(&spec, &r->proc, &r->out, &r->err, err);
}

static enum tide_code start_program(struct run *r, struct tide_err *err)
{
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);

    if (program_find(r->program->argv[0], ".", &path, err) || proc_input(r->program->input, STR(""), &r->input, err) ||
        hold_program(r, buf_cstr(&path), err) || proc_go(&r->proc, NULL, err))
        return err->code;
    fcntl(r->out, F_SETFL, O_NONBLOCK);
    fcntl(r->err, F_SETFL, O_NONBLOCK);
    return TIDE_OK;
}

/* ---- until it has ended ---- */

/* False when there is nothing to read now. What does not fit is read all the same, so that it is known. */
static bool take_output(struct run *r, int *fd, struct buf *into)
{
    char piece[PIECE];
    ssize_t n = *fd >= 0 ? read(*fd, piece, sizeof(piece)) : -1;
    size_t room = into->max - into->len;

    if (n > 0) {
        buf_add(into, piece, (size_t)n < room ? (size_t)n : room);
        r->too_big = r->too_big || (into == r->output && (size_t)n > room);
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        shut_fd(fd);
    return false;
}

static void end_it(struct run *r, enum tide_code why)
{
    if (!r->ended)
        r->ended = why;
    proc_signal(&r->proc, SIGKILL);
}

static void follow_program(struct run *r)
{
    int64_t end_at = monotonic_ms() + r->program->timeout_ms;

    while (r->proc.pid > 0) {
        struct pollfd p[] = {{.fd = proc_wait_fd(&r->proc), .events = POLLIN},
                             {.fd = r->out, .events = POLLIN},
                             {.fd = r->err, .events = POLLIN}};
        int64_t left = end_at - monotonic_ms();

        if (poll(p, 3, left < 0 ? 0 : left < LOOK_MS ? (int)left + 1 : LOOK_MS) < 0 && errno != EINTR)
            end_it(r, TIDE_FAILED);
        take_output(r, &r->out, r->output);
        take_output(r, &r->err, r->complaint);
        if (p[0].revents & POLLIN) {
            proc_signal(&r->proc, SIGKILL);
            proc_reap(&r->proc, &r->status);
        } else if (r->too_big) {
            end_it(r, TIDE_TOO_BIG);
        } else if (monotonic_ms() >= end_at) {
            end_it(r, TIDE_BUSY);
        } else if (r->program->stop && r->program->stop(r->program->arg)) {
            end_it(r, TIDE_CANCELLED);
        }
    }
    while (!r->too_big && take_output(r, &r->out, r->output))
        ;
    while (take_output(r, &r->err, r->complaint))
        ;
}

/* ---- what came of it ---- */

static struct str first_line(const struct buf *text)
{
    struct str s = buf_view(text);
    const char *end;

    while (s.len > 0 && (*s.ptr == '\n' || *s.ptr == '\r')) {
        s.ptr++;
        s.len--;
    }
    end = memchr(s.ptr, '\n', s.len);
    s.len = end ? (size_t)(end - s.ptr) : s.len;
    s.len = s.len < 120 ? s.len : 120;
    return s;
}

static enum tide_code program_verdict(const struct run *r, struct tide_err *err)
{
    struct str line = first_line(r->complaint);
    const char *colon = line.len ? ": " : "";

    if (r->ended == TIDE_CANCELLED)
        return tide_fail(err, TIDE_CANCELLED, "stopped before it had answered");
    if (r->ended == TIDE_BUSY)
        return tide_fail(err, TIDE_BUSY, "no answer within %lld ms: it was ended", (long long)r->program->timeout_ms);
    if (r->ended == TIDE_TOO_BIG || r->too_big)
        return tide_fail(err, TIDE_TOO_BIG, "printed more than %zu bytes: it was ended", r->output->max);
    if (r->ended)
        return tide_fail(err, TIDE_FAILED, "cannot be waited for: it was ended");
    if (WIFSIGNALED(r->status))
        return tide_fail(err, TIDE_FAILED, "was killed by signal %d (%s)%s%.*s", WTERMSIG(r->status),
                         strsignal(WTERMSIG(r->status)), colon, STR_ARG(line));
    if (WEXITSTATUS(r->status) != 0) /* 127: as shells say that they found no program */
        return tide_fail(err, WEXITSTATUS(r->status) == 127 ? TIDE_NOT_FOUND : TIDE_FAILED, "exit status %d%s%.*s",
                         WEXITSTATUS(r->status), colon, STR_ARG(line));
    return TIDE_OK;
}

enum tide_code hook_program_run(const struct hook_program *p, struct buf *ret_output, struct tide_err *err)
{
    AUTO(buf_done) struct buf complaint = BUF_INIT(COMPLAINT_MAX);
    struct run r = {.program = p,
                    .proc = PROC_INIT,
                    .input = -1,
                    .out = -1,
                    .err = -1,
                    .output = ret_output,
                    .complaint = p->complaint ? p->complaint : &complaint};
    enum tide_code code;

    ERR_LOCAL(err);
    code = start_program(&r, err);
    if (!code) {
        follow_program(&r);
        code = program_verdict(&r, err);
    }
    if (p->exit_status)
        *p->exit_status = r.proc.pid <= 0 && !r.ended && !r.too_big && WIFEXITED(r.status) ? WEXITSTATUS(r.status) : -1;
    proc_drop(&r.proc);
    shut_fd(&r.input);
    shut_fd(&r.out);
    shut_fd(&r.err);
    return code;
}
