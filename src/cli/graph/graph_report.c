/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a graph ended. Standard output is what came of it: the values that its last nodes gave, or with JSON all of it; what
 * went wrong, what it waits for and how to continue stand on standard error, in the words of exec and chat.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "terminal/glyph.h"
#include "cli/graph/graph_view_internal.h"
#include "cli/next_command.h"
#include "cli/report.h"
#include "terminal/progress.h"
#include "engine/run_report.h"
#include "engine/session_next.h"

struct graph_ending {
    tide_session *session; /* that was given; result->session_id is the one that ran */
    const struct graph_view *view;
    const struct graph_face *face;
    struct tide_graph_result *result;
    enum tide_code code;
    int how; /* END_… */
};

/* What the session says of itself now. */
struct standing {
    struct arena arena;
    tide_session *session;
    const struct tide_session_info *info;
    const char *next; /* how to continue; NULL: nothing is offered */
};

/* ---- values for people ---- */

/* A text as it is, its further lines below the first; all else as JSON. */
static void put_value(struct out *out, struct arena *a, struct str key, const struct json *v)
{
    struct str text = v->type == JSON_STRING ? json_text(a, v) : json_source(v), line;
    bool many = memchr(text.ptr ? text.ptr : "", '\n', text.len) != NULL;

    outf(out, "%s", color_code(out, COLOR_BOLD));
    glyph_fit(&out->text, key, 200);
    outf(out, ":%s%s", color_code(out, COLOR_NONE), many ? "\n" : " ");
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);

        line = (struct str){text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        text = (struct str){line.ptr + line.len + (end != NULL), text.len - line.len - (end != NULL)};
        outf(out, "%s", many && line.len ? "  " : "");
        glyph_clean(&out->text, line);
        outf(out, "%s", text.len ? "\n" : "");
    }
    outf(out, "\n");
}

static void put_memory(struct out *out, const struct graph_ending *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *memory = NULL;
    bool any = false;

    if (json_parse(&a, (struct str){e->result->memory.ptr, e->result->memory.len}, NULL, &memory, NULL, NULL))
        return;
    for (const struct json *m = memory->first; m; m = m->next) {
        struct str key = json_key_text(&a, m);

        if (!graph_progress_gives(&e->view->progress, key))
            continue;
        put_value(out, &a, key, m);
        any = true;
    }
    for (const struct json *m = any ? NULL : memory->first; m; m = m->next)
        put_value(out, &a, json_key_text(&a, m), m);
}

/* ---- for programs ---- */

static void put_json(struct cli *cli, const struct graph_ending *e, const struct standing *s, const char *message)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct graph_report report;

    graph_report_fill(&report, &a, e->session, s->info, &e->view->progress, e->result, e->code, message);
    report.type = e->how == END_STREAM ? "result" : NULL;
    report.token = e->code == TIDE_WAITING && !e->face->token_fd ? e->result->token : NULL;
    out_shape(&cli->out, &shape_run, &report);
}

/* ---- parked ---- */

static enum tide_code end_waiting(struct cli *cli, const struct graph_ending *e, const struct standing *s,
                                  struct tide_err *err)
{
    struct program_end end = {.wait = {.deadline_ms = s->info->deadline_ms}};
    bool json = cli->out.json;
    enum tide_code code;

    snprintf(end.wait.name, sizeof(end.wait.name), "%s", s->info->wait_name ? s->info->wait_name : "");
    snprintf(end.wait.kind, sizeof(end.wait.kind), "%s", s->info->wait_word ? s->info->wait_word : "input");
    snprintf(end.wait.question, sizeof(end.wait.question), "%s", s->info->question ? s->info->question : "");
    snprintf(end.wait.token, sizeof(end.wait.token), "%s", e->result->token);
    if (e->how != END_TEXT) {
        put_json(cli, e, s, "");
        cli->exit_status = tide_code_exit(TIDE_WAITING);
        return e->face->token_fd ? write_fd(e->face->token_fd, "--token-fd", e->result->token, err) : TIDE_OK;
    }
    cli->out.json = false;
    code = report_wait(cli, e->result->session_id, &end, e->face->token_fd ? e->face->token_fd : -1, err);
    cli->out.json = json;
    return code;
}

/* ---- all of it ---- */

static bool has_argument(struct arena *a, const struct tide_next *next, const char *name)
{
    struct json *args = NULL;

    return !json_parse(a, str_from(next->arguments), NULL, &args, NULL, NULL) && json_get(args, str_from(name));
}

static int take_next(void *arg, const struct tide_session_info *info)
{
    struct standing *s = arg;
    struct arena *a = &s->arena;
    const struct tide_next *next = info->next;
    const char *const *offered = next ? next_commands(a, next) : NULL;

    if (!next || next->action != TIDE_ACTION_RESUME || !offered[0])
        return 0;
    if (has_argument(a, next, "happened") || has_argument(a, next, "retry")) /* a person finds out first */
        s->next = arena_printf(a, "find out whether it happened, then `%s`%s%s%s", offered[0],
                               offered[1] ? " or `" : "", offered[1] ? offered[1] : "", offered[1] ? "`" : "");
    else
        s->next =
            arena_printf(a, "%s`%s` continues",
                         session_withholds_graph(s->session) ? "its graph contained a secret, which is not stored: "
                         : has_argument(a, next, "graph")    ? "correct the graph, then "
                                                             : "",
                         offered[0]);
    return 0;
}

static int take_hints(void *err, const struct tide_session_info *info)
{
    err_hint_next(err, info->next);
    return 0;
}

/* One line: what, and the command that continues. */
static void say_failed(const struct cli *cli, const struct graph_ending *e, struct standing *s, struct tide_err *err)
{
    struct tide_err ignored;

    s->session = e->session;
    (void)!session_show_next(e->session, cli->out.json ? take_hints : take_next, cli->out.json ? (void *)err : s,
                             &ignored);
    if (cli->out.json)
        err_say_json(err);
    else
        say("%s: %s", err->msg,
            s->next ? s->next
                    : arena_printf(&s->arena, "`%s why %s` shows how to continue", own_command(&s->arena),
                                   e->result->session_id));
}

static enum tide_code conclude_graph(struct cli *cli, const struct graph_ending *e, struct standing *s,
                                     struct tide_err *err)
{
    if (e->code == TIDE_WAITING)
        return end_waiting(cli, e, s, err);
    /* The store, the lease, a setting: nothing is known to have ended. */
    if (e->code && e->code != TIDE_FAILED && e->code != TIDE_UNSETTLED && e->code != TIDE_CANCELLED)
        return s->info->run_id && !err->hints[0].action ? tide_hint(err, TIDE_ACTION_WHY, e->result->session_id)
                                                        : e->code;
    if (e->how != END_TEXT)
        put_json(cli, e, s, err->msg);
    else if (!e->code)
        put_memory(&cli->out, e);
    if (e->code)
        say_failed(cli, e, s, err);
    cli->exit_status = e->code == TIDE_CANCELLED && stop_signal ? 128 + stop_signal : tide_code_exit(e->code);
    return TIDE_OK;
}

static enum tide_code report_graph(struct cli *cli, const struct graph_ending *e, struct tide_err *err)
{
    AUTO(session_closep) tide_session *fork = NULL;
    const char *id = e->result->session_id;
    struct standing s = {.arena = ARENA_INIT};
    struct graph_ending of = *e;
    const struct tide_session_info unknown = {.id = id};
    struct tide_err ignored;
    enum tide_code code;

    if (id[0] && strcmp(id, tide_session_id(e->session)) != 0 &&
        !tide_session_open(cli->store, id, TIDE_SESSION_READ, &fork, &ignored))
        of.session = fork; /* it began at a checkpoint of one that is complete */
    if (tide_session_get_info(of.session, &s.info, &ignored))
        s.info = &unknown;
    report_durability(s.info->degraded_events);
    code = conclude_graph(cli, &of, &s, err);
    arena_done(&s.arena);
    return code;
}

enum tide_code graph_end(struct graph_driving *d, enum tide_code ended, struct tide_graph_result *result,
                         struct tide_err *err)
{
    const struct graph_ending e = {
        .session = d->run->session, .view = d->view, .face = d->face, .result = result, .code = ended, .how = d->how};
    enum tide_code code;

    if (!d->view)
        return ended;
    view_finish(d->view, ended);
    code = report_graph(d->cli, &e, err);
    graph_view_close(TAKE(d->view), ended);
    return code;
}
