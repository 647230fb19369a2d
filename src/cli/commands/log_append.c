/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark log append: one event from the arguments, or a stream of them from standard input.
 *
 * A stream: every line is an event of its own. Lines that are there together are queued together and so share a commit;
 * when no more can be read without waiting, or a bound is reached, all of them are waited for and acknowledged. A line that
 * is refused ends the stream: what stands before it is stored and acknowledged first, what stands behind it is not read.
 * An acknowledgement is written only after its event is durable.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/line_reader.h"
#include "engine/event_line.h"
#include "engine/shapes.h"
#include "engine/store_url.h"

#define FLIGHT_EVENTS 256
#define FLIGHT_BYTES ((size_t)4 << 20)
#define LINE_EXTRA 1024 /* a line may be longer than its record by the kind and some spaces */

static const struct opt options[] = {
    {.name = "kind", .type = VALUE_KIND, .value = "KIND", .help = "kind of the event, or of every line's event"},
    {.name = "data",
     .type = VALUE_DATA,
     .value = "JSON|@FILE",
     .help = "its fields: a JSON object, or a file that holds one (default: {})"},
    {.name = "sync",
     .type = VALUE_WORD,
     .words = "group each",
     .value = "HOW",
     .help = "with -: lines read together share a commit, or each has its own"},
    {.name = "expect",
     .type = VALUE_INT,
     .value = "SEQ",
     .help = "refuse (exit status 4) unless this is the last seq of the session"},
    {.name = "input",
     .help =
         "append as input of someone else, without the session's lease: queue.added, approval.given, cancel.requested, "
         "token events"},
    {.name = NULL},
};

static void print_seq(struct out *out, int64_t seq)
{
    out_shape(out, &shape_appended, &(struct command_result){.seq = seq});
}

/* ---- one event ---- */

static enum tide_code read_file(const char *path, struct buf *ret_bytes, struct tide_err *err)
{
    int bad = buf_read_file(ret_bytes, path);

    if (bad)
        return tide_fail_file(err, bad, "--data: read", path);
    if (!ret_bytes->failed)
        return TIDE_OK;
    tide_fail(err, TIDE_TOO_BIG, "--data: '%.200s' is longer than the %zu bytes an event may have", path,
              ret_bytes->max);
    return tide_about(err, TIDE_SUBJECT_FILE, path);
}

static enum tide_code append_event(struct cli *cli, struct str body, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct tide_new_event event = {args_text(&cli->args, "kind"), body.ptr, body.len};
    int64_t expect = args_int(&cli->args, "expect", -1), seq = 0;
    unsigned flags = TIDE_APPEND_RELEASE | (expect < 0 ? TIDE_APPEND_ANY : 0u);
    bool input = args_on(&cli->args, "input");

    if (cli_session_open(cli, 0, input ? TIDE_SESSION_READ : TIDE_SESSION_APPEND, &session, err))
        return err->code;
    if (input) {
        if (tide_session_input(cli->store, tide_session_id(session), expect, &event, 1, &seq, err))
            return err->code;
    } else if (expect >= 0 && expect != tide_session_last_seq(session)) {
        return tide_fail_session(err, TIDE_CONFLICT, tide_session_id(session),
                                 "is at %" PRId64 ", not at %" PRId64 ": read what is new, then try again",
                                 tide_session_last_seq(session), expect);
    } else if (tide_session_append(session, flags, &event, 1, &seq, err)) {
        return err->code;
    }
    print_seq(&cli->out, seq);
    return TIDE_OK;
}

static enum tide_code append_one(struct cli *cli, size_t max, struct tide_err *err)
{
    AUTO(buf_done) struct buf file = BUF_INIT(max);
    const char *data = args_text(&cli->args, "data");
    struct str body;

    if (!args_on(&cli->args, "kind"))
        return args_refuse(err, "kind", "--kind KIND is missing (or give - to read JSON lines)");
    if (args_on(&cli->args, "sync"))
        return args_refuse(err, "sync", "--sync goes with - (lines from standard input)");
    if (data && data[0] == '@' && read_file(data + 1, &file, err))
        return err->code;
    buf_cstr(&file);
    body = data && data[0] == '@' ? buf_view(&file) : str_from(data ? data : "{}");
    return event_text_check("--data", body, err) ? err->code : append_event(cli, body, err);
}

/* ---- a stream of lines ---- */

struct stream {
    struct cli *cli;
    tide_session *session;
    const char *kind; /* of every line; NULL: each says its own */
    bool each, input;
    struct line_reader lines;
    struct event_line text;
    size_t flying, flying_bytes; /* queued and not yet answered */
    int64_t bad_line;            /* the first that failed on its way to the disk; 0: none */
    enum tide_code bad_code;
};

static void on_completion(struct stream *s, const struct tide_completion *done)
{
    int64_t line = (int64_t)(intptr_t)done->user;

    s->flying--;
    if (!done->code) {
        print_seq(&s->cli->out, done->seq);
    } else if (!s->bad_line || line < s->bad_line) {
        s->bad_line = line;
        s->bad_code = done->code;
    }
}

/* Waits for everything that is queued; acknowledges as it becomes durable. */
static enum tide_code drain_acks(struct stream *s, struct tide_err *err)
{
    struct tide_completion done[FLIGHT_EVENTS];
    enum tide_code code = TIDE_OK;

    while (s->flying > 0) {
        size_t n = tide_store_reap(s->cli->store, done, FLIGHT_EVENTS, -1);

        for (size_t i = 0; i < n; i++)
            on_completion(s, &done[i]);
        if (!code)
            code = out_flush(&s->cli->out, err);
    }
    s->flying_bytes = 0;
    if (code || !s->bad_line)
        return code;
    if (tide_session_flush(s->session, err) == TIDE_OK && tide_session_refresh(s->session, err) == TIDE_OK)
        tide_fail(err, s->bad_code, "%s", tide_code_text(s->bad_code));
    if (err->code == TIDE_NOT_FOUND)
        tide_fail_session(err, TIDE_NOT_FOUND, tide_session_id(s->session), "is gone: it was deleted meanwhile");
    return tide_wrap(err, "line %" PRId64, s->bad_line);
}

/* Which line it is, for people and for programs; what is known to be about something else stays so. */
static enum tide_code wrap_line(struct tide_err *err, int64_t number)
{
    enum tide_subject of = err->detail.subject;

    if (!of || of == TIDE_SUBJECT_FIELD)
        tide_about_position(err, of ? of : TIDE_SUBJECT_FILE, number);
    return tide_wrap(err, "line %" PRId64, number);
}

static enum tide_code send_line(struct stream *s, struct str line, struct tide_err *err)
{
    struct tide_new_event event;
    int64_t seq = 0;
    enum tide_code code = event_line_read(&s->text, line, s->kind, &event, err);

    if (!code && s->input) {
        code = tide_session_input(s->cli->store, tide_session_id(s->session), -1, &event, 1, &seq, err);
        if (!code)
            print_seq(&s->cli->out, seq);
        code = code ? code : out_flush(&s->cli->out, err);
    } else if (!code)
        code =
            tide_session_append_async(s->session, TIDE_APPEND_ANY, &event, 1, (void *)(intptr_t)s->lines.number, err);
    if (code)
        return s->cli->out.closed ? code : wrap_line(err, s->lines.number);
    s->flying += !s->input;
    s->flying_bytes += line.len;
    if (s->each || s->flying >= FLIGHT_EVENTS || s->flying_bytes >= FLIGHT_BYTES)
        return drain_acks(s, err);
    return TIDE_OK;
}

/* One step: a line is sent, or what flies is waited for. *ret_more false at the end. */
static enum tide_code step_stream(struct stream *s, bool *ret_more, struct tide_err *err)
{
    struct str line;

    switch (line_reader_next(&s->lines, s->flying == 0, &line, err)) {
    case LINE_HERE:
        return str_is_blank(line) ? TIDE_OK : send_line(s, line, err);
    case LINE_LATER:
        return drain_acks(s, err);
    case LINE_END:
        *ret_more = false;
        return TIDE_OK;
    case LINE_STOPPED:
        return tide_fail(err, TIDE_CANCELLED, "stopped");
    case LINE_FAILED:
        break;
    }
    return err->code;
}

static enum tide_code pump_stream(struct stream *s, struct tide_err *err)
{
    struct tide_err late = {0};
    enum tide_code code = TIDE_OK;
    bool more = true;

    while (!code && more)
        code = step_stream(s, &more, err);
    /* What stands before the bad line is answered first; should it fail as well, it failed first. */
    if (drain_acks(s, &late))
        return tide_err_copy(err, &late);
    return code;
}

static enum tide_code append_stream(struct cli *cli, size_t max, struct tide_err *err)
{
    const char *sync = args_text(&cli->args, "sync");
    struct stream s = {
        .cli = cli,
        .kind = args_text(&cli->args, "kind"),
        .each = sync && strcmp(sync, "each") == 0,
        .input = args_on(&cli->args, "input"),
        .text = {ARENA_INIT, BUF_INIT(2 * max + LINE_EXTRA)},
    };
    enum tide_code code;

    if (args_on(&cli->args, "data") || args_on(&cli->args, "expect"))
        return args_refuse(err, args_on(&cli->args, "data") ? "data" : "expect",
                           "--%s does not go with - (lines from standard input)",
                           args_on(&cli->args, "data") ? "data" : "expect");
    /* The lease before the first line: a conflict with another writer is reported at once, not at the first line. */
    if (cli_session_open(cli, 0, s.input ? TIDE_SESSION_READ : TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s.session,
                         err))
        return err->code;
    line_reader_init(&s.lines, STDIN_FILENO, max + LINE_EXTRA);
    code = pump_stream(&s, err);
    line_reader_done(&s.lines);
    tide_session_close(s.session);
    event_line_done(&s.text);
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    size_t max = 0;
    enum tide_code code = store_max_record(&max, err);

    if (!code)
        code = args_operand(&cli->args, 1) ? append_stream(cli, max, err) : append_one(cli, max, err);
    return code && !cli->out.closed ? tide_wrap(err, "log append") : code;
}

const struct command cmd_log_append = {
    .group = "log",
    .name = "append",
    .run = run,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}, {"-", VALUE_STDIN, OPERAND_OPTIONAL}},
    .options = options,
    .help = "append events; print {\"seq\":N} for each one once it is on disk",
    .more = "With - it reads JSON lines from standard input: objects with \"kind\", or only fields if --kind is "
            "given:\n"
            "  {\"kind\":\"message.user\",\"turn\":1,\"content\":\"hello\"}\n"
            "  {\"kind\":\"message.tool\",\"turn\":1,\"tool_call_id\":\"c1\",\"content\":\"done\"}\n"
            "  {\"kind\":\"memory.set\",\"values\":{\"branch\":\"main\"}}\n"
            "The log sets \"seq\" and \"ts\". tidemark-events(7) lists the kinds and the fields that each needs.\n"
            "The command ends at the first refused line; earlier lines are stored and acknowledged. It holds the\n"
            "session's lease from its start to its end, even before the first line (not with --input).",
};
