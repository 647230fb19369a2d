/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions transcript: a session as people read it: as text, or as a document for others. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/session_view.h"
#include "terminal/progress.h"
#include "terminal/wrap.h"
#include "engine/transcript.h"

#define COLUMNS_MIN 20
#define RESULT_LINES 3 /* of a result that are shown while it is folded */

static const struct opt options[] = {
    {.name = "format",
     .type = VALUE_WORD,
     .value = "FORMAT",
     .words = "text markdown html",
     .help = "text (the default), markdown, or html: one self-contained page without scripts"},
    {.name = "full", .help = "with text: the complete results of tools"},
    {.name = NULL},
};

struct printing {
    struct out *out;
    struct json_out *json;
    tide_session *session;
    bool full;
    size_t columns; /* 0: lines are not wrapped */
    enum tide_code code;
    struct tide_err *err;
};

/* Text of others: cleaned, wrapped, indented; at most so many lines (0: all). Returns how many were left out. */
static size_t put_lines(const struct printing *p, const char *text, const char *indent, size_t max)
{
    AUTO(buf_done) struct buf clean = BUF_INIT(SIZE_MAX / 4), lines = BUF_INIT(SIZE_MAX / 4);
    size_t n = 0, left = 0;
    struct str rest;

    glyph_clean(&clean, str_from(text));
    while (clean.len > 0 && clean.ptr[clean.len - 1] == '\n')
        clean.len--;
    if (p->columns)
        wrap_text(&lines, buf_view(&clean), (int)(p->columns - strlen(indent)));
    for (rest = p->columns ? buf_view(&lines) : buf_view(&clean); rest.len > 0;) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

        if (!max || n < max)
            outf(p->out, "%s%.*s\n", len ? indent : "", (int)len, rest.ptr);
        else
            left++;
        n++;
        len += end != NULL;
        rest = (struct str){rest.ptr + len, rest.len - len};
    }
    return left;
}

static void put_tool(const struct printing *p, const struct transcript_entry *e)
{
    static const char *const signs[] = {"", "✓", "✗", "?", "·", "", "", "", ""};
    static const enum color colors[] = {COLOR_NONE, COLOR_GREEN, COLOR_RED,  COLOR_YELLOW, COLOR_DIM,
                                        COLOR_NONE, COLOR_NONE,  COLOR_NONE, COLOR_NONE};
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    struct out *out = p->out;
    size_t left;
    int room = p->columns ? (int)p->columns : 1000;

    out_colored(out, colors[e->outcome], signs[e->outcome]);
    outf(out, " %s", color_code(out, COLOR_BOLD));
    room -= 3 + out_fit(out, e->name, room - 3);
    outf(out, "%s ", color_code(out, COLOR_NONE));
    transcript_args_line(&line, e->args, 400);
    room -= room > 1 ? out_fit(out, buf_cstr(&line), room - 1) : 0;
    if (e->outcome == TRANSCRIPT_UNKNOWN || e->outcome == TRANSCRIPT_CUT)
        outf(out, "%s%s", room > 18 ? "  " : "\n  ", e->outcome == TRANSCRIPT_CUT ? "no result" : "outcome unknown");
    if (e->cut)
        outf(out, "%s", room > 16 ? "  rolled back" : "\n  rolled back");
    outf(out, "\n%s", color_code(out, COLOR_DIM));
    left = put_lines(p, e->text, "  ", p->full ? 0 : RESULT_LINES);
    if (left)
        outf(out, "  … %zu more line%s\n", left, left == 1 ? "" : "s");
    outf(out, "%s", color_code(out, COLOR_NONE));
}

static void put_said(const struct printing *p, const struct transcript_entry *e)
{
    struct out *out = p->out;
    char when[TIME_PEOPLE_SIZE];
    size_t head;

    outf(out, "\n");
    head = out->text.len;
    outf(out, "%s%s%s", color_code(out, e->type == TRANSCRIPT_USER ? COLOR_CYAN : COLOR_BOLD),
         e->type == TRANSCRIPT_USER ? e->by[0] ? "Hook" : "User" : "Assistant", color_code(out, COLOR_NONE));
    outf(out, "%s", color_code(out, COLOR_DIM));
    if (e->node[0]) {
        outf(out, " · ");
        out_fit(out, e->node, 30);
    }
    outf(out, " · %s%s%s\n", time_people(when, e->ts_ms), e->cut ? ", rolled back" : "", color_code(out, COLOR_NONE));
    out_wrap(out, head);
    if (e->cut)
        outf(out, "%s", color_code(out, COLOR_DIM));
    put_lines(p, e->text, e->cut ? "┊ " : "", 0);
    if (e->cut)
        outf(out, "%s", color_code(out, COLOR_NONE));
}

static void put_note(const struct printing *p, const struct transcript_entry *e)
{
    AUTO(buf_done) struct buf note = BUF_INIT(SIZE_MAX / 4);
    bool marks = e->type == TRANSCRIPT_ROLLBACK || e->type == TRANSCRIPT_FORK || e->type == TRANSCRIPT_FORKED;

    buf_addf(&note, "%s ", e->type == TRANSCRIPT_ROLLBACK ? "↶" : marks ? "⑂" : "—");
    transcript_note(&note, e);
    if (e->cut)
        buf_add_str(&note, STR(" (rolled back)"));
    outf(p->out, "%s%s", marks ? "\n" : "", color_code(p->out, marks ? COLOR_YELLOW : COLOR_DIM));
    put_lines(p, buf_cstr(&note), "", 0);
    outf(p->out, "%s", color_code(p->out, COLOR_NONE));
}

static int print_entry(void *arg, const struct transcript_entry *e)
{
    const struct printing *p = arg;

    if (e->type == TRANSCRIPT_TOOL)
        put_tool(p, e);
    else if (e->type == TRANSCRIPT_USER || e->type == TRANSCRIPT_ASSISTANT)
        put_said(p, e);
    else
        put_note(p, e);
    return 0;
}

static int put_json(void *arg, const struct transcript_entry *e)
{
    shape_put(((const struct printing *)arg)->json, &shape_transcript_entry, e);
    return 0;
}

static void write_entries(struct json_out *o, void *arg)
{
    struct printing *p = arg;

    p->json = o;
    p->code = transcript_read(p->session, &stop_signal, put_json, p, p->err);
}

static void print_head(const struct printing *p, const struct tide_session_info *info)
{
    struct out *out = p->out;
    char status[STATUS_SIZE];

    outf(out, "%s%s%s  ", color_code(out, COLOR_BOLD), info->id, color_code(out, COLOR_NONE));
    out_colored(out, session_color(info), session_status(status, info));
    outf(out, "\n");
    if (info->title)
        put_lines(p, info->title, "", 0);
}

static enum tide_code begin_printing(struct cli *cli, struct printing *p, const char *format, struct tide_err *err)
{
    int columns = cli->out.tty ? terminal_columns(STDOUT_FILENO) : 0;

    *p = (struct printing){.out = &cli->out,
                           .full = args_on(&cli->args, "full"),
                           .columns = columns ? (size_t)(columns < COLUMNS_MIN ? COLUMNS_MIN : columns) : 0,
                           .err = err};
    if (cli->out.json && format)
        return args_refuse(err, "format", "--json and --format: give one of them");
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const char *format = args_text(&cli->args, "format");
    const struct tide_session_info *info;
    struct printing p;

    if (begin_printing(cli, &p, format, err))
        return err->code;
    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    p.session = session;
    if (cli->out.json) {
        out_shape(
            &cli->out, &shape_transcript,
            &(struct transcript_shown){.session_id = info->id, .title = info->title, .entries = {write_entries, &p}});
        return p.code;
    }
    if (!format || strcmp(format, "text") == 0) {
        print_head(&p, info);
        return transcript_read(session, &stop_signal, print_entry, &p, err);
    }
    return transcript_write(session, strcmp(format, "html") == 0 ? TRANSCRIPT_HTML : TRANSCRIPT_MARKDOWN, &stop_signal,
                            &cli->out.text, err);
}

/* ---- of a server ---- */

static void ask_entries(struct cli *cli)
{
    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0), "transcript");
}

static enum tide_code each_entry(void *from, transcript_fn *fn, void *arg, struct tide_err *err)
{
    struct cli *cli = from;
    const struct json *v, *list;

    ask_entries(cli);
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err))
        return err->code;
    list = json_get(v, STR("entries"));
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct transcript_entry e = {.name = "", .text = "", .args = "", .by = "", .node = ""};

        if (remote_take(cli->remote, &shape_transcript_entry, one, &e, err))
            return err->code;
        if (fn(arg, &e))
            break;
    }
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    const char *format = args_text(&cli->args, "format");
    struct session_why why;
    struct printing p;

    if (begin_printing(cli, &p, format, err))
        return err->code;
    if (cli->out.json) {
        ask_entries(cli);
        return remote_pass(cli, REMOTE_SOON, err);
    }
    if (remote_why(cli, &why, err))
        return err->code;
    if (!format || strcmp(format, "text") == 0) {
        print_head(&p, &why.row.info);
        return each_entry(cli, print_entry, &p, err);
    }
    return transcript_write_entries(&why.row.info, each_entry, cli,
                                    strcmp(format, "html") == 0 ? TRANSCRIPT_HTML : TRANSCRIPT_MARKDOWN, &cli->out.text,
                                    err);
}

const struct command cmd_sessions_transcript = {
    .group = "sessions",
    .name = "transcript",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "print a session for reading: messages and actions, with tool calls folded",
    .more =
        "✓ succeeded, ✗ failed, ? outcome unknown, · no result; ↶ rolled back, ⑂ forked. What a rollback cut off is marked.",
};
