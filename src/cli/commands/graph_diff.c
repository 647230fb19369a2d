/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark graph diff: two versions of a graph, node by node, and with --against-live which of the sessions under way could
 * go on with the new one. What is said here is what `tidemark sessions resume --graph` would find.
 */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/graph/graph_draw.h"
#include "cli/terminal/glyph.h"
#include "engine/graph_versions.h"

#define FIRST_ONES 5 /* of each kind are named; --json has all */

struct diffing {
    struct cli *cli;
    tide_graph *old, *new;
    struct arena arena;
    const struct graph_change *changes;
    bool same;
    struct json_out json;
    int64_t n[LIVE_FITS];
    struct running_session first[LIVE_FITS][FIRST_ONES];
};

/* ---- nodes ---- */

static void put_node(struct diffing *d, const struct graph_change *n, int columns)
{
    static const enum color colors[] = {[GRAPH_SAME] = COLOR_DIM,
                                        [GRAPH_COMPATIBLE] = COLOR_NONE,
                                        [GRAPH_BROKEN] = COLOR_RED,
                                        [GRAPH_REMOVED] = COLOR_RED,
                                        [GRAPH_ADDED] = COLOR_GREEN};
    struct out *out = &d->cli->out;
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

static void put_nodes(struct diffing *d)
{
    struct out *out = &d->cli->out;
    size_t changed = 0, n = 0;
    int columns = 0;

    for (; d->changes[n].node; n++) {
        int used = text_columns(str_from(d->changes[n].node));

        changed += d->changes[n].kind != GRAPH_SAME;
        columns = used > columns && used <= 40 ? used : columns;
    }
    if (d->same) {
        outf(out, "the same: %zu nodes\n", n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        put_node(d, &d->changes[i], columns);
    if (changed)
        outf(out, "%zu of %zu nodes differ\n", changed, n);
    else
        outf(out, "every node is the same; what differs is the graph's own (entry, memory, checkpoints, …)\n");
}

static void put_node_json(struct diffing *d, const struct graph_change *n)
{
    struct json_out *o = &d->json;

    json_out_begin(o, '{');
    json_out_kstr(o, STR("node"), str_from(n->node));
    json_out_kstr(o, STR("change"), str_from(n->word));
    json_out_kstr_opt(o, STR("why"), str_from(n->why));
    json_out_kstr_opt(o, STR("rename"), str_from(n->rename));
    if (n->n_needs) {
        json_out_key(o, STR("needs"));
        json_out_begin(o, '[');
        for (size_t i = 0; i < n->n_needs; i++)
            json_out_str(o, n->needs[i]);
        json_out_end(o, ']');
    }
    json_out_end(o, '}');
}

/* ---- sessions ---- */

static void keep_first(struct diffing *d, const struct running_session *s)
{
    struct running_session *kept = &d->first[s->fit][d->n[s->fit]];
    const char **texts[] = {&kept->id, &kept->title, &kept->digest, &kept->node, &kept->why};

    if (d->n[s->fit] >= FIRST_ONES)
        return;
    *kept = *s;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = *texts[i] ? arena_dup(&d->arena, str_from(*texts[i])).ptr : NULL;
}

static int on_session(void *arg, const struct running_session *s)
{
    struct diffing *d = arg;
    struct json_out *o = &d->json;

    keep_first(d, s);
    d->n[s->fit]++;
    if (!d->cli->out.json)
        return 0;
    json_out_begin(o, '{');
    json_out_kstr(o, STR("session_id"), str_from(s->id));
    json_kopt(o, "title", s->title);
    json_out_kstr(o, STR("status"), str_from(tide_status_name(s->status)));
    json_out_kstr(o, STR("fit"), str_from(live_words[s->fit]));
    json_kopt(o, "node", s->node);
    json_out_kstr(o, s->fit == LIVE_MAPPING ? STR("map") : STR("why"), str_from(s->why));
    json_out_kstr(o, STR("graph_digest"), str_from(s->digest));
    json_out_end(o, '}');
    return 0;
}

static void put_first(struct diffing *d, enum running_fit fit)
{
    struct out *out = &d->cli->out;

    for (int64_t i = 0; i < d->n[fit] && i < FIRST_ONES; i++) {
        const struct running_session *s = &d->first[fit][i];

        outf(out, "      %s  %s", s->id, tide_status_name(s->status));
        if (s->title) {
            outf(out, "  ");
            glyph_fit(&out->text, str_from(s->title), 40);
        }
        outf(out, "%s", fit == LIVE_MAPPING ? "  --map " : s->why[0] ? "  " : "");
        out_value(out, s->why);
        outf(out, "\n");
    }
    if (d->n[fit] > FIRST_ONES)
        outf(out, "      … and %" PRId64 " more: --json lists them\n", d->n[fit] - FIRST_ONES);
}

static void put_live(struct diffing *d)
{
    static const struct {
        const char *words;
        enum color color;
    } kinds[] = {[LIVE_SAME] = {"run this version already", COLOR_NONE},
                 [LIVE_COMPATIBLE] = {"can go on with it", COLOR_GREEN},
                 [LIVE_MAPPING] = {"can go on when they are told what a node is called now", COLOR_YELLOW},
                 [LIVE_STUCK] = {"cannot go on with it", COLOR_RED}};
    struct out *out = &d->cli->out;
    int64_t all = 0;

    for (int i = 0; i < LIVE_FITS; i++)
        all += d->n[i];
    outf(out, "\n%" PRId64 " session%s under way\n", all, all == 1 ? "" : "s");
    for (int i = 0; i < LIVE_FITS; i++) {
        if (!d->n[i])
            continue;
        outf(out, "  %s%6" PRId64 "%s  %s\n", color_code(out, kinds[i].color), d->n[i], color_code(out, COLOR_NONE),
             kinds[i].words);
        if (i == LIVE_MAPPING || i == LIVE_STUCK)
            put_first(d, (enum running_fit)i);
    }
}

static enum tide_code look_at_live(struct diffing *d, struct tide_err *err)
{
    struct json_out *o = &d->json;

    if (d->cli->out.json) {
        json_out_key(o, STR("sessions"));
        json_out_begin(o, '[');
    }
    if (cli_store_open(d->cli, NEED_READ, 0, err) ||
        running_sessions_look(d->cli->store, d->new, d->old, on_session, d, err))
        return err->code;
    if (d->n[LIVE_MAPPING] + d->n[LIVE_STUCK] > 0)
        d->cli->exit_status = 1;
    if (!d->cli->out.json) {
        put_live(d);
        return TIDE_OK;
    }
    json_out_end(o, ']');
    json_out_key(o, STR("live"));
    json_out_begin(o, '{');
    for (int i = 0; i < LIVE_FITS; i++)
        json_out_kint(o, str_from(live_words[i]), d->n[i]);
    json_out_end(o, '}');
    return TIDE_OK;
}

/* ---- the command ---- */

static enum tide_code put_all(struct diffing *d, struct tide_err *err)
{
    struct json_out *o = &d->json;
    enum tide_code code = TIDE_OK;

    if (!d->cli->out.json) {
        put_nodes(d);
        return args_on(&d->cli->args, "against-live") ? look_at_live(d, err) : TIDE_OK;
    }
    json_out_begin(o, '{');
    json_out_kbool(o, STR("same"), d->same);
    json_out_key(o, STR("nodes"));
    json_out_begin(o, '[');
    for (const struct graph_change *n = d->changes; n->node; n++)
        put_node_json(d, n);
    json_out_end(o, ']');
    if (args_on(&d->cli->args, "against-live"))
        code = look_at_live(d, err);
    json_out_end(o, '}');
    out_json_end(&d->cli->out);
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct diffing d = {.cli = cli, .arena = ARENA_INIT, .json = out_json(&cli->out)};
    const char *old = args_operand(&cli->args, 0), *new = args_operand(&cli->args, 1);
    enum tide_code code = TIDE_OK;

    if (strcmp(old, "-") == 0 && strcmp(new, "-") == 0)
        code = tide_fail(err, TIDE_INVALID, "graph diff: standard input can be one of both");
    code = code ? code : graph_open_file(old, &d.old, err);
    code = code ? code : graph_open_file(new, &d.new, err);
    if (!code) {
        d.changes = graph_compare(&d.arena, d.old, d.new, &d.same);
        code = put_all(&d, err);
    }
    tide_graph_free(d.old);
    tide_graph_free(d.new);
    arena_done(&d.arena);
    return code;
}

static const struct opt options[] = {
    {.name = "against-live",
     .help = "also say which sessions under way could go on with NEW, whatever version they run"},
    {.name = NULL},
};

const struct command cmd_graph_diff = {
    .group = "graph",
    .name = "diff",
    .run = run,
    .operands = {{"OLD", VALUE_FILE, 0}, {"NEW", VALUE_FILE, 0}},
    .options = options,
    .help = "compare two versions of a graph, and the sessions under way with the new one",
    .more =
        "Exit status: 0; with --against-live 1 when a session needs a mapping or cannot go on; 2 when a file is wrong.",
};
