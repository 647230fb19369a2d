/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the shell. It waits at its gate from prepare() on, so that its pid is on disk before it does anything. Its
 * output is kept as a beginning and an end, with what lies between counted and dropped: the first lines say what
 * happened, the last how it ended, and a program may print for ever.
 *
 * What it leaves running in its group is ended with it. One that made a session of its own (setsid) has left the group and
 * may stay, unless our process is killed; the pipe is not waited for, so it cannot keep us either.
 */
#include "agent/tool_list.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/hook_program.h"
#include "agent/tool_text.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "program/capture.h"
#include "program/run_socket.h"

#define TIMEOUT_MS 120000
#define TIMEOUT_MAX_MS ((int64_t)24 * 3600 * 1000)
#define NOTES_CHARS 240 /* room for our own words */
#define HALF_MAX ((size_t)4 << 20)
#define COMMAND_MAX ((size_t)128 << 10) /* the kernel's limit of one argument */

/* ---- before ---- */

/* The socket of a run that we are ourselves inside of: not a command's business. */
static bool is_private(const char *entry)
{
    static const char *const names[] = {RUN_SOCKET_ENV, STEP_ENV};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0 && entry[strlen(names[i])] == '=')
            return true;
    return false;
}

static char **environment(struct arena *a, const struct tool_work *w)
{
    const struct tool_place *p = w->place;
    char **open = program_environ(a, p->secret), *sets[4];
    size_t at = 0;

    for (size_t i = 0; open[i]; i++)
        if (!is_private(open[i]))
            open[at++] = open[i];
    open[at] = NULL;
    sets[0] = (char *)(uintptr_t)arena_printf(a, "TIDEMARK_SESSION_ID=%s", p->session_id ? p->session_id : "");
    sets[1] = (char *)(uintptr_t)arena_printf(a, "TIDEMARK_RUN_ID=%s", p->run_id ? p->run_id : "");
    sets[2] = (char *)(uintptr_t)arena_printf(a, "TIDEMARK_IDEMPOTENCY_KEY=%s", w->key ? w->key : "");
    sets[3] = NULL;
    return proc_env(a, open, sets);
}

static enum tide_code hold_shell(struct tool_work *w, struct arena *a, const char *command, struct tide_err *err)
{
    const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    char *argv[] = {(char *)(uintptr_t)(strrchr(shell, '/') + 1), (char *)(uintptr_t) "-c", (char *)(uintptr_t)command,
                    NULL};
    struct proc_spec spec = {
        .guard = w->place->guard, .path = shell, .argv = argv, .envp = environment(a, w), .cwd = w->place->cwd};
    enum tide_code code;
    int pair[2];

    spec.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (spec.in < 0)
        return tide_fail_errno(err, errno, "open /dev/null");
    if (pipe2(pair, O_CLOEXEC) != 0) {
        close(spec.in);
        return tide_fail_errno(err, errno, "make a pipe");
    }
    spec.out = spec.err = pair[1];
    code = proc_hold(&spec, &w->proc, err);
    close(spec.in);
    close(pair[1]);
    if (code)
        close(pair[0]);
    else
        w->out = pair[0];
    return code;
}

static enum tide_code prepare_bash(struct tool_work *w, struct tide_err *err)
{
    struct arena a = ARENA_INIT;
    struct str command = json_get_text(&a, w->args, STR("command"));
    enum tide_code code;

    if (command.len == 0)
        code = tide_fail(err, TIDE_INVALID, "bash: the command is empty");
    else if (memchr(command.ptr, '\0', command.len))
        code = tide_fail(err, TIDE_INVALID, "bash: the command has a NUL character in it");
    else if (command.len >= COMMAND_MAX)
        code = tide_fail(
            err, TIDE_INVALID,
            "bash: the command is longer than %zu bytes: write it to a file with the tool 'write' and run that",
            COMMAND_MAX - 1);
    else
        code = hold_shell(w, &a, arena_dup(&a, command).ptr, err);
    arena_done(&a);
    return code;
}

/* ---- while it runs ---- */

/* The beginning, and a ring that holds the end. */
struct keep {
    const struct tool_work *work;
    struct buf head;
    char *ring;
    size_t half, ring_len, ring_at;
    uint64_t total;
};

static void keep_end(struct keep *k, const char *bytes, size_t n)
{
    if (!k->ring)
        k->ring = mem_alloc(k->half);
    if (n > k->half) {
        bytes += n - k->half;
        n = k->half;
    }
    while (n > 0) {
        size_t room = k->half - k->ring_at, part = n < room ? n : room;

        memcpy(k->ring + k->ring_at, bytes, part);
        k->ring_at = (k->ring_at + part) % k->half;
        k->ring_len = k->ring_len + part < k->half ? k->ring_len + part : k->half;
        bytes += part;
        n -= part;
    }
}

static void take_output(void *arg, const char *bytes, size_t n)
{
    struct keep *k = arg;
    size_t room = k->half - k->head.len, first = n < room ? n : room;

    k->total += n;
    buf_add(&k->head, bytes, first);
    if (n > first)
        keep_end(k, bytes + first, n - first);
}

static bool stop_bash(void *arg)
{
    return tool_stopped(((const struct keep *)arg)->work);
}

/* ---- after ---- */

/* The ring in order, as text. */
static struct buf ring_text(const struct keep *k, size_t max)
{
    struct buf end = BUF_INIT(max);
    size_t from = k->ring_len < k->half ? 0 : k->ring_at;

    if (k->ring_len) {
        buf_add(&end, k->ring + from, k->ring_len - from);
        buf_add(&end, k->ring, from);
    }
    return end;
}

static void add_mark(struct buf *text, uint64_t bytes)
{
    buf_add_str(text, STR("\n[… "));
    text_number(text, bytes);
    buf_add_str(text, STR(" bytes left out here …]\n"));
}

/* Whole text that is too long: its middle goes. */
static void cut_middle(struct buf *text, size_t max_chars)
{
    struct str all = buf_view(text);
    size_t head, tail;
    struct buf cut = BUF_INIT(text->max);

    if (utf8_chars(all) <= max_chars)
        return;
    head = text_head(all, max_chars / 2);
    tail = text_tail(all, max_chars / 2);
    buf_add(&cut, all.ptr, head);
    add_mark(&cut, all.len - head - tail);
    buf_add(&cut, all.ptr + all.len - tail, tail);
    buf_done(text);
    *text = cut;
}

/* Both ends of text whose middle is gone; a character that was cut in two goes as well. */
static void join_ends(struct keep *k, struct buf *end, size_t max_chars, struct tool_result *ret)
{
    size_t skip = 0, kept;
    struct str part;

    while (skip < 3 && skip < end->len && utf8_is_tail(end->ptr[skip]))
        skip++;
    for (int i = 0; i < 3 && k->head.len > 0 && utf8_is_tail(k->head.ptr[k->head.len - 1]); i++)
        k->head.len--;
    if (k->head.len > 0 && (unsigned char)k->head.ptr[k->head.len - 1] >= 0xc0)
        k->head.len--;
    end->len -= skip;
    if (skip)
        memmove(end->ptr, end->ptr + skip, end->len);
    k->head.max = end->max = ret->text.max;
    ret->replaced = text_clean(&k->head);
    ret->replaced |= text_clean(end);
    part = buf_view(&k->head);
    kept = text_head(part, max_chars / 2);
    kept -= secrets_cut_end(k->work->place->secrets, (struct str){part.ptr, kept});
    buf_add(&ret->text, part.ptr, kept);
    part = buf_view(end);
    skip = text_tail(part, max_chars / 2);
    skip -= secrets_cut_begin(k->work->place->secrets, (struct str){part.ptr + part.len - skip, skip});
    add_mark(&ret->text, k->total > kept + skip ? k->total - kept - skip : 0);
    buf_add(&ret->text, part.ptr + part.len - skip, skip);
}

static void tell_output(struct keep *k, size_t max_chars, struct tool_result *ret)
{
    struct buf end = ring_text(k, ret->text.max);

    if (k->head.len + end.len < k->total) {
        join_ends(k, &end, max_chars, ret);
    } else {
        buf_add_str(&ret->text, buf_view(&k->head));
        buf_add_str(&ret->text, buf_view(&end));
        ret->replaced = text_clean(&ret->text);
        ret->redacted = tool_hide(k->work->place->secrets, &ret->text);
        cut_middle(&ret->text, max_chars);
    }
    buf_done(&end);
}

static void add_line(struct buf *text, struct str line)
{
    if (text->len && text->ptr[text->len - 1] != '\n')
        buf_add_char(text, '\n');
    buf_add_str(text, line);
}

static void tell_end(const struct capture *c, int64_t timeout_ms, struct tool_result *ret)
{
    struct buf line = BUF_INIT(NOTES_CHARS);

    ret->unknown = c->timed_out || c->stopped;
    ret->failed = ret->unknown || c->status != 0;
    if (c->stopped)
        buf_add_str(&line, STR("stopped before it ended: how far it got is unknown"));
    else if (c->timed_out)
        buf_addf(&line, "timed out after %g s and was ended: how far it got is unknown", (double)timeout_ms / 1000);
    else if (c->status != 0)
        buf_addf(&line, "exit status %d%s", capture_exit_status(c->status),
                 c->status & 0x7f ? " (killed by a signal)" : "");
    else if (ret->text.len == 0)
        buf_add_str(&line, STR("exit status 0, no output"));
    if (line.len)
        add_line(&ret->text, buf_view(&line));
    if (c->left_behind && !ret->unknown) {
        buf_clear(&line);
        buf_addf(&line, "%zu %s that it left running %s ended", c->left_behind,
                 c->left_behind == 1 ? "process" : "processes", c->left_behind == 1 ? "was" : "were");
        add_line(&ret->text, buf_view(&line));
    }
    buf_done(&line);
}

static void run_bash(struct tool_work *w, struct tool_result *ret)
{
    size_t room = tool_room(w), chars = room > 2 * NOTES_CHARS ? room - NOTES_CHARS : room;
    size_t half = room < HALF_MAX / 2 ? 2 * room + 1 : HALF_MAX; /* enough for its half of the characters */
    struct keep k = {.work = w, .half = half, .head = BUF_INIT(half)};
    struct capture c;
    struct tide_err err;

    if (tool_stopped(w)) {
        tool_drop(w);
        tool_fail(ret, "stopped before it was started: nothing was done");
        return;
    }
    if (proc_go(&w->proc, NULL, &err)) {
        tool_fail(ret, "bash %s", err.msg);
        return;
    }
    capture_init(&c, &w->proc, w->out, 1);
    w->out = -1; /* the capture's now */
    c.timeout_ms = json_get_int(w->args, STR("timeout_ms"), w->place->timeout_ms ? w->place->timeout_ms : TIMEOUT_MS);
    if (c.timeout_ms > TIMEOUT_MAX_MS)
        c.timeout_ms = TIMEOUT_MAX_MS;
    c.arg = &k;
    c.stop = w->place->stop ? stop_bash : NULL;
    c.take = take_output;
    capture_run(&c);
    tell_output(&k, chars, ret);
    tell_end(&c, c.timeout_ms, ret);
    capture_done(&c);
    buf_done(&k.head);
    free(k.ring);
}

const struct tool tool_bash = {
    .name = "bash",
    .description =
        "Run a shell command in the working directory. Standard input is empty and there is no terminal; output and "
        "errors come together, the middle left out when there is much. Processes that it leaves running are ended.",
    .schema =
        "{\"type\":\"object\",\"properties\":{"
        "\"command\":{\"type\":\"string\",\"description\":\"the command, as given to bash -c\"},"
        "\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"ended after this many milliseconds\"}},"
        "\"required\":[\"command\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_ONCE,
    .subject = "command",
    .permission = TIDE_PERMISSION_ASK,
    .prepare = prepare_bash,
    .run = run_bash,
};
