/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resuming a graph, behind `tidemark resume` and `tidemark sessions resume`: what is missing is asked for at the terminal, and
 * with --dry-run it is only shown what would be done.
 */
#include <inttypes.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_view.h"
#include "cli/resume.h"
#include "engine/graph_resume.h"

/* ---- what it would do, for people ---- */

static const char *state_text(struct str state)
{
    static const char *const words[][2] = {{"running", "was cut"},
                                           {"retry", "is to be tried again"},
                                           {"deciding", "asks where to go on"},
                                           {"withdrawn", "never began"},
                                           {"failed", "failed"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_eq(state, str_from(words[i][0])))
            return words[i][1];
    return "ready";
}

static void show_texts(struct out *out, struct arena *a, const struct json *plan, const char *member, const char *name,
                       const char *more)
{
    const struct json *list = json_get(plan, str_from(member));

    for (const struct json *m = list ? list->first : NULL; m; m = m->next)
        out_field(out, name, arena_printf(a, "%.*s%s", STR_ARG(json_text(a, m)), more));
}

static void show_nodes(struct out *out, struct arena *a, const struct json *plan)
{
    const struct json *list = json_get(plan, STR("nodes_to_run"));

    show_texts(out, a, plan, "complete", "complete", "");
    show_texts(out, a, plan, "failed", "failed", " (the others went on)");
    for (const struct json *m = list ? list->first : NULL; m; m = m->next) {
        struct str node = json_get_text(a, m, STR("node")), state = json_get_text(a, m, STR("state"));

        if (json_get_bool(m, STR("from_log"), false))
            out_field(out, "answers", arena_printf(a, "%.*s (from the log)", STR_ARG(node)));
        else
            out_field(out, "runs", arena_printf(a, "%.*s (%s)", STR_ARG(node), state_text(state)));
    }
    show_texts(out, a, plan, "happened", "happened", " (as you say)");
}

static void show_plan(struct out *out, struct arena *a, const struct json *plan, const struct graph_refusal *refused)
{
    const struct json *from = json_get(plan, STR("from")), *sets = json_get(plan, STR("overrides"));
    struct str checkpoint = json_get_text(a, from, STR("checkpoint")), action = json_get_text(a, plan, STR("action"));
    int64_t seq = json_get_int(from, STR("seq"), 0);

    out_field(out, "session", arena_dup(a, json_get_text(a, plan, STR("session_id"))).ptr);
    out_field(out, "from",
              checkpoint.len ? arena_printf(a, "checkpoint %.*s, seq %" PRId64, STR_ARG(checkpoint), seq)
                             : arena_printf(a, "where it stands, seq %" PRId64, seq));
    out_field(out, "does",
              str_eq(action, STR("fork"))       ? "begins a fork there"
              : str_eq(action, STR("rollback")) ? "goes back there"
                                                : "goes on");
    show_nodes(out, a, plan);
    for (const struct json *m = sets ? sets->first : NULL; m; m = m->next) /* what they are set to may be a secret */
        out_field(out, "sets",
                  arena_printf(a, "%.*s%s", STR_ARG(json_get_text(a, m, STR("key"))),
                               json_get_bool(m, STR("never_stored"), false) ? " (never stored)" : ""));
    show_texts(out, a, plan, "warnings", "note", "");
    for (; refused->what; refused++) {
        const char *help = hints_text(a, refused->hints, sizeof(refused->hints) / sizeof(refused->hints[0]));

        out_field(out, "refused", arena_printf(a, "%s%s%s", refused->what, help ? ": " : "", help ? help : ""));
    }
}

static enum tide_code print(struct cli *cli, struct arena *a, struct str text, enum tide_code refused,
                            const struct graph_refusal *all, struct tide_err *err)
{
    struct json *plan = NULL;

    if (json_parse(a, text, NULL, &plan, NULL, err))
        return err->code;
    cli->exit_status = refused ? tide_code_exit(refused) : 0;
    if (!cli->out.json) {
        show_plan(&cli->out, a, plan, all);
        return TIDE_OK;
    }
    buf_add_str(&cli->out.text, text);
    out_json_end(&cli->out);
    return TIDE_OK;
}

enum tide_code plan_print(struct cli *cli, struct str plan, const struct tide_err *refused, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct graph_refusal all[] = {
        {.what = refused->code ? refused->msg : NULL, .hints = {refused->hints[0], refused->hints[1]}}, {.what = NULL}};

    return print(cli, &a, plan, refused->code, all, err);
}

/* ---- all of it ---- */

static void tell_line(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

/* What it waits for and what is stored nowhere is asked for: without it, it is refused. */
static enum tide_code look_at_plan(struct graph_resume *r, struct graph_again *g, struct buf *answer,
                                   struct tide_err *err)
{
    struct tide_graph_options *o = &g->run.want.opt;
    bool ask = !r->look && graph_may_ask(&g->run), asked = false;

    if (r->waits && ask && !o->input && !o->token && !o->message && !o->checkpoint && !o->fallback &&
        graph_ask(r->session, answer))
        o->input = buf_cstr(answer);
    if (!g->run.quiet && r->graph)
        graph_say_unread(r->graph, buf_view(&g->memory));
    if (graph_resume_look(r, err) || (ask && graph_ask_missing(r->missing, &g->memory, &asked, err)))
        return err->code;
    o->memory = g->memory.len ? buf_cstr(&g->memory) : NULL;
    return asked ? graph_resume_look(r, err) : TIDE_OK; /* who gives nothing is told what is missing */
}

enum tide_code graph_again(struct cli *cli, struct graph_again *g, tide_session *session, struct tide_err *err)
{
    AUTO(graph_resume_done) struct graph_resume r = GRAPH_RESUME_INIT;
    AUTO(buf_done) struct buf answer = BUF_INIT(INPUT_MAX);
    struct graph_want *w = &g->run.want;
    const struct resume *given = g->r;

    g->run.token_fd = given->token_out_fd > 0 ? given->token_out_fd : 0;
    g->run.no_input = given->ask.no_input;
    w->keep_pause = given->ask.keep_pause || given->ask.unattended;
    w->degrade_said = given->degrade_said;
    w->opt.memory = g->memory.len ? buf_cstr(&g->memory) : NULL;
    w->opt.on_store_error_continue = given->degrade;
    w->opt.token = given->ask.token;
    w->opt.input = given->ask.input;
    w->opt.retry = given->ask.retry;
    w->opt.happened = given->ask.happened;
    r.store = cli->store;
    r.id = given->ask.id;
    r.session = session;
    r.file = g->graph;
    r.want = w;
    r.look = g->dry_run;
    r.quiet = g->run.quiet;
    r.tell = tell_line;
    if (graph_resume_open(&r, err)) {
        char all[256];

        snprintf(all, sizeof(all), "`tidemark graph check %.150s` tells all", r.file ? r.file : "");
        return advise(err->code, r.file && err->code == TIDE_INVALID ? all : NULL, err);
    }
    if (look_at_plan(&r, g, &answer, err))
        return err->code;
    if (g->dry_run)
        return print(cli, &r.arena, buf_view(&r.plan), r.code, r.refused, err);
    if (graph_resume_decide(&r, err))
        return err->code;
    return graph_drive(cli, r.session, r.graph, &g->run, err);
}
