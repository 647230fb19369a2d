/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark graph diff: two versions of a graph, node by node, and with --against-live which of the sessions under way could
 * continue with the new one. What is said here is what `tidemark sessions resume --graph` would find.
 */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/graph/graph_draw.h"
#include "cli/next_command.h"
#include "terminal/glyph.h"
#include "engine/session_words.h"
#include "engine/graph_file.h"
#include "engine/graph_versions.h"
#include "engine/shapes.h"

#define FIRST_ONES 5 /* of each kind are named; --json has all */

/* ---- nodes ---- */

static void put_node(struct out *out, const struct graph_change *n, int columns)
{
    static const enum color colors[] = {[GRAPH_SAME] = COLOR_DIM,
                                        [GRAPH_COMPATIBLE] = COLOR_NONE,
                                        [GRAPH_BROKEN] = COLOR_RED,
                                        [GRAPH_REMOVED] = COLOR_RED,
                                        [GRAPH_ADDED] = COLOR_GREEN};
    int used;

    outf(out, "  %s%-10s%s  ", color_code(out, colors[n->kind]), n->word, color_code(out, COLOR_NONE));
    used = glyph_fit(&out->text, str_from(n->node), 200);
    if (n->kind != GRAPH_SAME && n->kind != GRAPH_ADDED) {
        outf(out, "%*s  ", used < columns ? columns - used : 0, "");
        out_value(out, n->why);
    }
    if (n->rename) {
        outf(out, "; it may be called ");
        out_value(out, n->rename);
        outf(out, " now: --map ");
        out_value(out, n->node);
        outf(out, "=");
        out_value(out, n->rename);
    }
    outf(out, "\n");
}

static void put_nodes(struct out *out, const struct graph_diff *d)
{
    size_t changed = 0;
    int columns = 0;

    for (size_t i = 0; i < d->n_changes; i++) {
        int used = text_columns(str_from(d->changes[i].node));

        changed += d->changes[i].kind != GRAPH_SAME;
        columns = used > columns && used <= 40 ? used : columns;
    }
    if (d->same) {
        outf(out, "the same: %zu nodes\n", d->n_changes);
        return;
    }
    for (size_t i = 0; i < d->n_changes; i++)
        put_node(out, &d->changes[i], columns);
    if (changed)
        outf(out, "%zu of %zu nodes differ\n", changed, d->n_changes);
    else
        outf(out, "every node is the same; what differs is the graph's own (entry, memory, checkpoints, …)\n");
}

/* ---- sessions ---- */

static void put_first(struct out *out, const struct graph_diff *d, enum running_fit fit)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    int64_t shown = 0;

    for (size_t i = 0; i < d->n_sessions && shown < FIRST_ONES; i++) {
        const struct running_session *s = &d->sessions[i];
        const char *help;

        if (s->fit != fit)
            continue;
        shown++;
        outf(out, "      %s  %s", s->id, status_word(s->status));
        if (s->title) {
            outf(out, "  ");
            glyph_fit(&out->text, str_from(s->title), 40);
        }
        help = s->arguments ? next_options(&a, &(struct tide_next){.action = TIDE_ACTION_REPEAT,
                                                                   .session_id = s->id,
                                                                   .arguments = s->arguments})
                            : s->why;
        if (help && help[0]) {
            outf(out, "  ");
            out_value(out, help);
        }
        outf(out, "\n");
    }
    if (d->fits[fit] > shown)
        outf(out, "      … and %" PRId64 " more: --json lists them\n", d->fits[fit] - shown);
}

static void put_live(struct out *out, const struct graph_diff *d)
{
    static const struct {
        const char *words;
        enum color color;
    } kinds[] = {[LIVE_SAME] = {"run this version already", COLOR_NONE},
                 [LIVE_COMPATIBLE] = {"can continue with it", COLOR_GREEN},
                 [LIVE_MAPPING] = {"can continue with a mapping of node names", COLOR_YELLOW},
                 [LIVE_STUCK] = {"cannot continue with it", COLOR_RED}};

    outf(out, "\n%zu unfinished session%s\n", d->n_sessions, d->n_sessions == 1 ? "" : "s");
    for (int i = 0; i < LIVE_FITS; i++) {
        if (!d->fits[i])
            continue;
        outf(out, "  %s%6" PRId64 "%s  %s\n", color_code(out, kinds[i].color), d->fits[i], color_code(out, COLOR_NONE),
             kinds[i].words);
        if (i == LIVE_MAPPING || i == LIVE_STUCK)
            put_first(out, d, (enum running_fit)i);
    }
}

/* ---- the command ---- */

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *old = NULL, *new = NULL;
    AUTO(graph_diff_done) struct graph_diff d = {.same = false};
    const char *before = args_operand(&cli->args, 0), *after = args_operand(&cli->args, 1);

    if (strcmp(before, "-") == 0 && strcmp(after, "-") == 0)
        return args_refuse(err, "new", "graph diff: standard input can be one of both");
    if (graph_open_file(before, &old, err) || graph_open_file(after, &new, err))
        return err->code;
    graph_diff(&d, old, new);
    if (args_on(&cli->args, "against-live") &&
        (cli_store_open(cli, NEED_READ, 0, err) || graph_diff_sessions(&d, cli->store, old, new, err)))
        return err->code;
    cli->exit_status = d.fits[LIVE_MAPPING] + d.fits[LIVE_STUCK] > 0;
    if (cli->out.json) {
        out_shape(&cli->out, &shape_graph_diff, &d);
        return TIDE_OK;
    }
    put_nodes(&cli->out, &d);
    if (d.live)
        put_live(&cli->out, &d);
    return TIDE_OK;
}

static const struct opt options[] = {
    {.name = "against-live",
     .help = "also report which unfinished sessions could continue with NEW, whatever version they run"},
    {.name = NULL},
};

const struct command cmd_graph_diff = {
    .group = "graph",
    .name = "diff",
    .run = run,
    .opens_store = true,
    .operands = {{"OLD", VALUE_FILE, 0}, {"NEW", VALUE_FILE, 0}},
    .options = options,
    .help = "compare two versions of a graph; with --against-live, check unfinished sessions against the new one",
    .more = "Exit status: 0; with --against-live, 1 if a session needs a mapping or cannot continue; 2 if a file is "
            "wrong.",
};
