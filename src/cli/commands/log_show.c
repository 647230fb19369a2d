/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark log show: events as JSON lines, of one session or of all, once or for as long as they come. Nothing is shown
 * twice or left out between two looks: the next look begins behind the last event that was seen, shown or not.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "remote/remote_log.h"
#include "terminal/progress.h"
#include "cli/trust_view.h"

#define PIECE ((size_t)64 << 10)
#define AGAIN_MS 100

static const struct opt options[] = {
    {.name = "from", .type = VALUE_INT, .value = "SEQ", .min = 1, .help = "from this event on"},
    {.name = "to", .type = VALUE_INT, .value = "SEQ", .min = 1, .help = "up to this event"},
    {.name = "last", .type = VALUE_INT, .value = "N", .min = 1, .help = "only the last N events"},
    {.name = "kind",
     .type = VALUE_TEXT,
     .value = "KIND",
     .help = "only events of this kind; message.* means all kinds that begin with message."},
    {.name = "follow", .letter = 'f', .help = "print new events as they are written, until interrupted"},
    {.name = "inherited", .help = "for a fork: also print the events that it shares with its parents"},
    {.name = "all", .help = "the events of all sessions, with \"pos\" and \"session_id\""},
    {.name = "after", .type = VALUE_INT, .value = "POS", .help = "with --all: only events after this position"},
    {.name = NULL},
};

struct show {
    struct cli *cli;
    tide_session *session; /* NULL: all */
    struct str kind;       /* empty: any */
    bool kind_prefix;
    unsigned flags;
    int64_t next, to; /* seq; of all sessions: next is the position to read behind */
    struct tide_err err;
};

/* The same JSON on a terminal; a pipe gets the bytes that are stored. */
static enum tide_code put_line(struct show *s, struct str json, struct tide_err *err)
{
    struct buf *text = &s->cli->out.text;

    if (s->cli->out.tty)
        trust_escape(text, json);
    else
        buf_add_str(text, json);
    buf_add_char(text, '\n');
    return text->len >= PIECE ? out_flush(&s->cli->out, err) : TIDE_OK;
}

static enum tide_code put_event(struct show *s, const struct tide_event *ev, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text json = {NULL, 0};
    struct buf *text = &s->cli->out.text;

    if (tide_event_write_json(ev, &json, err))
        return err->code;
    if (!s->session) { /* {"seq":…} becomes {"pos":…,"session_id":"…","seq":…} */
        buf_addf(text, "{\"pos\":%" PRId64 ",\"session_id\":", ev->pos);
        json_quote(text, str_from(ev->session_id));
        buf_add_char(text, ',');
    }
    return put_line(s, (struct str){json.ptr + !s->session, json.len - !s->session}, err);
}

static bool is_wanted(const struct show *s, struct str kind)
{
    return s->kind_prefix ? str_starts(kind, s->kind) : s->kind.len == 0 || str_eq(kind, s->kind);
}

static int on_event(void *arg, const struct tide_event *ev)
{
    struct show *s = arg;

    s->next = s->session ? ev->seq + 1 : ev->pos;
    if (is_wanted(s, str_from(ev->kind)) && put_event(s, ev, &s->err))
        return 1;
    return stop_signal != 0;
}

static enum tide_code read_new(struct show *s, struct tide_err *err)
{
    enum tide_code code, flushed;

    if (s->session)
        code = tide_session_read(s->session, s->flags, s->next, s->to, on_event, s, err);
    else
        code = tide_store_read(s->cli->store, s->next, 0, on_event, s, err);
    if (code == TIDE_INVALID) /* this kind of store has no such order */
        tide_about(err, TIDE_SUBJECT_ARGUMENT, "all");
    if (s->err.code)
        return tide_err_copy(err, &s->err);
    flushed = out_flush(&s->cli->out, code ? NULL : err); /* also what is whole before damage */
    return code ? code : flushed;
}

/* Ends when everything up to --to was shown, when it is interrupted, and when nobody reads any more. */
static enum tide_code follow_log(struct show *s, tide_watch *watch, struct tide_err *err)
{
    int changed = 0;

    while (!(s->to && s->next > s->to) && await_change(watch)) {
        if (tide_watch_wait(watch, 0, &changed, err) ||
            (changed && ((s->session && tide_session_refresh(s->session, err)) || read_new(s, err))))
            return err->code;
    }
    return TIDE_OK;
}

static enum tide_code check_options(const struct args *args, struct tide_err *err)
{
    static const char *const of_one[] = {"from", "to", "last", "inherited"};
    int64_t to = args_int(args, "to", 0);

    if (args_on(args, "all") == (args->n_operands > 0))
        return args_refuse(err, "id", "log show: give the ID of one session, or --all for every session");
    for (size_t i = 0; args_on(args, "all") && i < sizeof(of_one) / sizeof(of_one[0]); i++)
        if (args_on(args, of_one[i]))
            return args_refuse(err, of_one[i], "log show: --%s does not go with --all", of_one[i]);
    if (args_on(args, "after") && !args_on(args, "all"))
        return args_refuse(err, "after", "log show: --after goes with --all: of one session, give --from");
    if (args_on(args, "last") && args_on(args, "from"))
        return args_refuse(err, "last", "log show: --last and --from: give one of them");
    if (to && args_int(args, "from", 1) > to)
        return args_refuse(err, "from", "log show: --from %" PRId64 " is after --to %" PRId64,
                           args_int(args, "from", 1), to);
    return TIDE_OK;
}

static void choose_range(struct show *s, int64_t first, int64_t end)
{
    const struct args *args = &s->cli->args;
    int64_t last = args_int(args, "last", 0);

    s->to = args_int(args, "to", 0);
    end = s->to && s->to < end ? s->to : end;
    s->next = args_int(args, "from", 1);
    if (last > 0 && last < end)
        s->next = end - last + 1;
    if (args_on(args, "inherited"))
        s->flags = TIDE_READ_INHERITED;
    else if (s->next < first)
        s->next = first;
}

static void choose_kind(struct show *s)
{
    s->kind = str_from(args_text(&s->cli->args, "kind"));
    s->kind_prefix = s->kind.len > 0 && s->kind.ptr[s->kind.len - 1] == '*';
    s->kind.len -= s->kind_prefix;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(watch_closep) tide_watch *watch = NULL;
    struct show s = {.cli = cli};
    enum tide_code code = check_options(&cli->args, err);

    if (!code && args_on(&cli->args, "follow"))
        code =
            tide_watch_open(cli->store, &watch, err); /* before the session is opened: what it does not see wakes us */
    if (!code && !args_on(&cli->args, "all"))
        code = cli_session_open(cli, 0, TIDE_SESSION_LOG, &session, err);
    if (code)
        return code;
    s.session = session;
    s.next = args_int(&cli->args, "after", 0);
    if (session)
        choose_range(&s, tide_session_first_seq(session), tide_session_last_seq(session));
    choose_kind(&s);
    code = read_new(&s, err);
    if (!code && watch)
        return follow_log(&s, watch, err);
    if (!code && stop_signal)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    return code;
}

/* ---- of a server ---- */

static enum tide_code put_remote(struct show *s, const struct json *event, struct tide_err *err)
{
    struct arena *a = remote_arena(s->cli->remote);

    s->next = json_get_int(event, STR("seq"), s->next) + 1;
    return is_wanted(s, json_get_text(a, event, STR("kind"))) ? put_line(s, json_source(event), err) : TIDE_OK;
}

static enum tide_code read_remote(struct show *s, const char *id, struct tide_err *err)
{
    struct remote_log log = {
        .session_id = id, .after = s->next - 1, .to = s->to, .inherited = s->flags & TIDE_READ_INHERITED};
    const struct json *events;

    while (!remote_log_page(s->cli->remote, &log, &events, err) && events)
        for (const struct json *one = events->first; one; one = one->next)
            if (put_remote(s, one, err))
                return err->code;
    return err->code ? err->code : out_flush(&s->cli->out, err);
}

/* What has an id is an event; a name without an event says that there are no more. */
static int on_streamed(void *arg, int64_t id, struct str name, struct str data)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct show *s = arg;
    struct json *event = NULL;

    if (str_eq(name, STR("reset")) || str_eq(name, STR("gone")))
        return tide_fail_session(&s->err, TIDE_NOT_FOUND, args_operand(&s->cli->args, 0), "was deleted");
    if (name.len || !data.len || id < s->next || json_parse(&a, data, NULL, &event, NULL, NULL))
        return 0;
    return put_remote(s, event, &s->err) || out_flush(&s->cli->out, &s->err) || (s->to && s->next > s->to);
}

static enum tide_code follow_remote(struct show *s, const char *id, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    while (!code && !s->err.code && !(s->to && s->next > s->to)) {
        remote_begin(s->cli->remote, "GET", "sessions", id, "events");
        remote_param_int(s->cli->remote, "after", s->next - 1);
        code = remote_follow(s->cli->remote, on_streamed, s, err);
        if (!code && !s->err.code)
            (void)poll(NULL, 0, AGAIN_MS); /* the server has stopped: it may come back */
    }
    if (code == TIDE_CANCELLED && stop_signal && !s->cli->out.closed)
        return TIDE_OK; /* as it is followed on a store */
    return code ? code : s->err.code ? tide_err_copy(err, &s->err) : TIDE_OK;
}

/* ---- of all its sessions ---- */

/* {"session_id":…,"seq":…} becomes {"pos":…,"session_id":"…","seq":…} */
static enum tide_code put_of_all(struct show *s, int64_t pos, struct str data, struct tide_err *err)
{
    buf_addf(&s->cli->out.text, "{\"pos\":%" PRId64 ",", pos);
    return put_line(s, (struct str){data.ptr + 1, data.len - 1}, err);
}

static int on_streamed_of_all(void *arg, int64_t id, struct str name, struct str data)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct show *s = arg;
    struct json *event = NULL;

    if (str_eq(name, STR("reset")))
        return tide_fail(&s->err, TIDE_NOT_FOUND, "the store has no event at position %" PRId64 " any more", s->next);
    if (name.len || id <= s->next)
        return 0;
    s->next = id;
    if (data.len && !json_parse(&a, data, NULL, &event, NULL, NULL) &&
        is_wanted(s, json_get_text(&a, event, STR("kind"))) && put_of_all(s, id, data, &s->err))
        return 1;
    return out_flush(&s->cli->out, &s->err) || (s->to && s->next >= s->to);
}

/* Up to where the store ends now, or for as long as events come. */
static enum tide_code show_all_remote(struct show *s, struct tide_err *err)
{
    bool follow = args_on(&s->cli->args, "follow");
    enum tide_code code = TIDE_OK;
    const struct json *info;

    remote_begin(s->cli->remote, "GET", "store");
    if (remote_ask(s->cli->remote, REMOTE_SOON, &info, err))
        return err->code;
    s->to = follow ? 0 : json_get_int(info, STR("last_position"), 0);
    s->next = args_int(&s->cli->args, "after", 0);
    if (!follow && json_get(info, STR("last_position")) && s->next >= s->to)
        return TIDE_OK;
    do {
        remote_begin(s->cli->remote, "GET", "events");
        remote_param_int(s->cli->remote, "after", s->next);
        code = remote_follow(s->cli->remote, on_streamed_of_all, s, err);
        if (!code && !s->err.code && (follow || s->next < s->to))
            (void)poll(NULL, 0, AGAIN_MS);
    } while (!code && !s->err.code && (follow || s->next < s->to));
    if (code == TIDE_CANCELLED && stop_signal && !s->cli->out.closed && follow)
        return TIDE_OK;
    return code ? code : s->err.code ? tide_err_copy(err, &s->err) : TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct show s = {.cli = cli};
    struct session_why why;

    if (check_options(&cli->args, err))
        return err->code;
    if (args_on(&cli->args, "all")) {
        choose_kind(&s);
        return show_all_remote(&s, err);
    }
    if (remote_why(cli, &why, err))
        return err->code;
    choose_range(&s, why.row.info.first_seq, why.row.info.last_seq);
    choose_kind(&s);
    if (read_remote(&s, why.row.info.id, err))
        return err->code;
    return args_on(&cli->args, "follow") ? follow_remote(&s, why.row.info.id, err) : TIDE_OK;
}

const struct command cmd_log_show = {
    .group = "log",
    .name = "show",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, OPERAND_OPTIONAL}},
    .options = options,
    .help = "print events as JSON lines",
};
