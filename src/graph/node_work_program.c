/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a node: inputs come in on standard input, what it prints is the output, its standard error is for people, of
 * whom one line sees the end of it when it fails.
 *
 * The program's end counts, not that of its output; what it leaves in its group is ended with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/node_work_internal.h"
#include "program/capture.h"
#include "program/run_socket.h"
#include "program/find.h"

#define TAIL 2048            /* bytes of standard error that are kept: the last ones */
#define PIPE_BYTES (1 << 20) /* asked for: standard error is read only now and then */
#define PIECE ((size_t)32 << 10)
#define PIECES_MAX 64 /* at a time: one that prints for ever must not keep us */

struct run {
    const struct node_work *b;
    struct arena arena;
    struct proc proc;
    int in, out, err; /* of the last two: read ends */
    struct buf *output;
    char tail[TAIL];
    size_t tail_len;
    bool too_big;
};

/* ---- starting ---- */

static char *set_variable(struct arena *a, const char *name, const char *value)
{
    return (char *)(uintptr_t)arena_printf(a, "%s=%s", name, value ? value : "");
}

static char *set_number(struct arena *a, const char *name, int64_t value)
{
    return (char *)(uintptr_t)arena_printf(a, "%s=%" PRId64, name, value);
}

static char **environment(struct arena *a, const struct node_work *b)
{
    char *sets[] = {set_variable(a, "TIDEMARK_SESSION_ID", b->session_id),
                    set_variable(a, "TIDEMARK_RUN_ID", b->run_id),
                    set_variable(a, "TIDEMARK_NODE", b->name),
                    set_number(a, "TIDEMARK_VISIT", b->visit),
                    set_number(a, "TIDEMARK_ATTEMPT", b->attempt),
                    set_variable(a, "TIDEMARK_IDEMPOTENCY_KEY", b->key),
                    NULL};
    char **all = proc_env(a, environ, sets);
    size_t at = 0;

    /* The socket of a run that we are in ourselves is not the node's: its steps would be recorded in another session. */
    for (size_t i = 0; all[i]; i++)
        if (strncmp(all[i], RUN_SOCKET_ENV "=", sizeof(RUN_SOCKET_ENV)) != 0 &&
            strncmp(all[i], STEP_ENV "=", sizeof(STEP_ENV)) != 0)
            all[at++] = all[i];
    all[at] = NULL;
    return all;
}

static enum tide_code hold_program(struct run *r, const char *path, const char *dir, struct tide_err *err)
{
    const struct spec_texts *program = &r->b->node->program;
    char **argv = arena_zero(&r->arena, (program->n + 1) * sizeof(*argv));
    struct proc_spec spec = {
        .guard = r->b->guard, .path = path, .argv = argv, .envp = environment(&r->arena, r->b), .cwd = dir};

    for (size_t i = 0; i < program->n; i++)
        argv[i] = (char *)(uintptr_t)program->at[i].ptr;
    spec.in = r->in;
    return proc_hold_piped(&spec, &r->proc, &r->out, &r->err, err);
}

/* A relative place would mean another one once the program is there. */
static enum tide_code find_place(const struct node_work *b, char **ret_dir, struct buf *ret_path, struct tide_err *err)
{
    const char *dir = b->dir && *b->dir ? b->dir : ".", *name = b->node->program.at[0].ptr, *in;
    enum tide_code code;

    *ret_dir = realpath(dir, NULL);
    if (!*ret_dir)
        return tide_fail_file(err, errno, "the directory", dir);
    in = b->program_dir ? b->program_dir : *ret_dir;
    code = program_find(name, in, ret_path, err);
    if (code != TIDE_NOT_FOUND || !*name || *name == '/')
        return code;
    if (strchr(name, '/')) /* it need not be the directory that people are in */
        tide_fail(err, TIDE_NOT_FOUND, "%.100s: no such program in %.150s%s", name, in,
                  b->program_dir ? " (the directory of the graph)" : "");
    else
        tide_fail(err, TIDE_NOT_FOUND, "%.100s: no such program in $PATH; the one in %.150s is ./%.100s", name, in,
                  name);
    return tide_about(err, TIDE_SUBJECT_FILE, name);
}

static bool is_stopped(const struct node_work *b)
{
    return b->stopped && b->stopped(b->arg);
}

static bool start_program(struct run *r, struct node_work_result *ret)
{
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);
    AUTO(mem_freep) char *dir = NULL;
    struct str inputs = r->b->inputs.len ? r->b->inputs : STR("{}");
    struct tide_err err = {0};

    ret->unbegun = find_place(r->b, &dir, &path, &err) || proc_input(inputs, STR("\n"), &r->in, &err) ||
                   hold_program(r, buf_cstr(&path), dir, &err);
    if (!ret->unbegun && is_stopped(r->b)) { /* while it was made ready */
        ret->unbegun = true;
        return node_work_fail(ret, "stopped", "it was not begun");
    }
    if (ret->unbegun || proc_go(&r->proc, NULL, &err)) {
        const char *code = err.code == TIDE_NOT_FOUND ? "not_found" : err.code == TIDE_DENIED ? "denied" : "start";
        bool named = err.detail.subject == TIDE_SUBJECT_FILE; /* it names what could not be found or opened */

        return node_work_fail_masked(r->b, ret, code, "%s%s%s", named ? "" : r->b->node->program.at[0].ptr,
                                     named ? "" : ": ", err.msg);
    }
    shut_fd(&r->in);
    fcntl(r->err, F_SETFL, O_NONBLOCK);
    fcntl(r->err, F_SETPIPE_SZ, PIPE_BYTES); /* where it is refused the pipe stays as it is */
    return true;
}

/* ---- while it runs ---- */

static void keep_end(struct run *r, const char *bytes, size_t n)
{
    size_t old = n < TAIL ? TAIL - n : 0;

    if (n > TAIL) {
        bytes += n - TAIL;
        n = TAIL;
    }
    old = r->tail_len < old ? r->tail_len : old;
    memmove(r->tail, r->tail + r->tail_len - old, old);
    memcpy(r->tail + old, bytes, n);
    r->tail_len = old + n;
}

static void read_complaints(struct run *r)
{
    char piece[PIECE];

    for (int i = 0; i < PIECES_MAX && r->err >= 0; i++) {
        ssize_t n = read(r->err, piece, sizeof(piece));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            shut_fd(&r->err);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0)
            keep_end(r, piece, (size_t)n);
    }
}

static void take_output(void *arg, const char *bytes, size_t n)
{
    struct run *r = arg;
    size_t room = r->output->max - r->output->len;

    buf_add(r->output, bytes, n < room ? n : room);
    r->too_big = r->too_big || n > room;
}

static bool must_end(void *arg)
{
    struct run *r = arg;

    read_complaints(r);
    return r->too_big || is_stopped(r->b);
}

/* ---- what came of it ---- */

static bool fail_exit(const struct run *r, const char *code, const char *what, struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str line = str_trim(str_from(node_work_piece(&a, r->b, (struct str){r->tail, r->tail_len})));
    const char *end = line.len ? memrchr(line.ptr, '\n', line.len) : NULL;

    if (end) /* the last line that says something; it may have lost its beginning */
        line = (struct str){end + 1, (size_t)(line.ptr + line.len - end) - 1};
    return node_work_fail_masked(r->b, ret, code, "%s%s%.*s", what, line.len ? ": " : "", STR_ARG(line));
}

/* {"error": {"code": "…", "message": "…"}}: the program's own words. False: it printed none. */
static bool own_words(const struct run *r, struct arena *a, const char **ret_code, const char **ret_message)
{
    struct json *v = NULL;
    const struct json *error;
    struct str code, message;

    if (json_parse(a, buf_view(r->output), NULL, &v, NULL, NULL))
        return false;
    error = json_get(v, STR("error"));
    if (!error || (error->type != JSON_OBJECT && error->type != JSON_STRING))
        return false;
    code = json_get_text(a, error, STR("code"));
    message = error->type == JSON_STRING ? json_text(a, error) : json_get_text(a, error, STR("message"));
    *ret_code = node_work_is_code(code) ? arena_dup(a, code).ptr : "exit";
    *ret_message = message.len ? node_work_piece(a, r->b, message) : NULL;
    return true;
}

static bool fail_status(const struct run *r, int status, struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *code = "exit", *message = NULL;
    char what[80];

    if (WIFSIGNALED(status)) {
        snprintf(what, sizeof(what), "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        return fail_exit(r, "signal", what, ret);
    }
    snprintf(what, sizeof(what), "exit status %d", WEXITSTATUS(status));
    if (!own_words(r, &a, &code, &message) || !message)
        return fail_exit(r, code, what, ret);
    return node_work_fail_masked(r->b, ret, code, "%s", message);
}

static bool program_verdict(const struct run *r, const struct capture *c, struct node_work_result *ret)
{
    ret->unknown = c->timed_out || c->stopped;
    if (r->too_big)
        return node_work_fail(ret, "too_big", "printed more than %zu bytes: it was ended", r->output->max);
    if (c->stopped)
        return node_work_fail(ret, "stopped", "it was stopped: how far it got is unknown");
    if (c->timed_out)
        return node_work_fail(ret, "timeout", "not done within %" PRId64 " ms: it was ended, how far it got is unknown",
                              c->timeout_ms);
    return c->status == 0 ? true : fail_status(r, c->status, ret);
}

static bool follow_program(struct run *r, struct node_work_result *ret)
{
    struct capture c;
    bool ok;

    capture_init(&c, &r->proc, r->out, r->output->max);
    r->out = -1;
    c.timeout_ms = r->b->node->timeout_ms;
    c.arg = r;
    c.take = take_output;
    c.stop = must_end;
    capture_run(&c);
    read_complaints(r);
    ok = program_verdict(r, &c, ret);
    capture_done(&c);
    return ok;
}

bool node_work_program(const struct node_work *b, struct buf *ret_json, struct node_work_result *ret)
{
    struct run r = {.b = b, .proc = PROC_INIT, .in = -1, .out = -1, .err = -1, .output = ret_json};
    bool ok = start_program(&r, ret) && follow_program(&r, ret);

    proc_drop(&r.proc);
    shut_fd(&r.in);
    shut_fd(&r.out);
    shut_fd(&r.err);
    arena_done(&r.arena);
    return ok;
}
