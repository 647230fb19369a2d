/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark graph diff: two versions of a graph, node by node, and with --against-live which of the sessions under way could
 * go on with the new one. What is said here is what `tidemark sessions resume --graph` would find.
 */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/terminal/glyph.h"
#include "graph/running_sessions.h"

#define FIRST_ONES 5 /* of each kind are named; --json has all */

struct diffing {
    struct cli *cli;
    struct spec *old, *new;
    struct arena arena;
    struct spec_diff diff;
    struct json_out json;
    int64_t n[LIVE_FITS];
    struct running_session first[LIVE_FITS][FIRST_ONES];
};

/* ---- nodes ---- */

static struct str node_id(const struct spec_diff_node *d)
{
    return d->before ? d->before->id : d->after->id;
}

static const char *rename_of(const struct diffing *d, const struct spec_diff_node *n)
{
    return n->change == SPEC_REMOVED && n->rename != SPEC_NONE ? d->new->graph->nodes.at[n->rename].id.ptr : NULL;
}

static void put_node(struct diffing *d, const struct spec_diff_node *n, int columns)
{
    static const enum color colors[] = {[SPEC_SAME] = COLOR_DIM,
                                        [SPEC_COMPATIBLE] = COLOR_NONE,
                                        [SPEC_BROKEN] = COLOR_RED,
                                        [SPEC_REMOVED] = COLOR_RED,
                                        [SPEC_ADDED] = COLOR_GREEN};
    struct out *out = &d->cli->out;
    const char *rename = rename_of(d, n);
    int used;

    outf(out, "  %s%-10s%s  ", color_code(out, colors[n->change]), spec_change_words[n->change],
         color_code(out, COLOR_NONE));
    used = glyph_fit(&out->text, node_id(n), 200);
    if (n->change != SPEC_SAME && n->change != SPEC_ADDED) {
        outf(out, "%*s  ", used < columns ? columns - used : 0, "");
        out_value(out, n->why);
    }
    if (rename) {
        outf(out, "; it may be called ");
        out_value(out, rename);
        outf(out, " now: --map ");
        out_value(out, n->before->id.ptr);
        outf(out, "=");
        out_value(out, rename);
    }
    outf(out, "\n");
}

static void put_nodes(struct diffing *d)
{
    struct out *out = &d->cli->out;
    size_t changed = 0;
    int columns = 0;

    for (size_t i = 0; i < d->diff.n; i++) {
        int used = text_columns(node_id(&d->diff.nodes[i]));

        changed += d->diff.nodes[i].change != SPEC_SAME;
        columns = used > columns && used <= 40 ? used : columns;
    }
    if (d->diff.same) {
        outf(out, "the same: %zu nodes\n", d->diff.n);
        return;
    }
    for (size_t i = 0; i < d->diff.n; i++)
        put_node(d, &d->diff.nodes[i], columns);
    if (changed)
        outf(out, "%zu of %zu nodes differ\n", changed, d->diff.n);
    else
        outf(out, "every node is the same; what differs is the graph's own (entry, memory, checkpoints, …)\n");
}

static void put_node_json(struct diffing *d, const struct spec_diff_node *n)
{
    struct json_out *o = &d->json;

    json_out_begin(o, '{');
    json_out_kstr(o, STR("node"), node_id(n));
    json_out_kstr(o, STR("change"), str_from(spec_change_words[n->change]));
    json_out_kstr_opt(o, STR("why"), str_from(n->why));
    json_out_kstr_opt(o, STR("rename"), str_from(rename_of(d, n)));
    if (n->needs.n) {
        json_out_key(o, STR("needs"));
        json_out_begin(o, '[');
        for (size_t i = 0; i < n->needs.n; i++)
            json_out_str(o, n->needs.at[i]);
        json_out_end(o, ']');
    }
    json_out_end(o, '}');
}

/* ---- sessions ---- */

static void keep_first(struct diffing *d, const struct running_session *s)
{
    struct running_session *kept = &d->first[s->fit][d->n[s->fit]];
    const char **texts[] = {&kept->id, &kept->title, &kept->status, &kept->digest, &kept->node, &kept->why};

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
    json_out_kstr(o, STR("status"), str_from(s->status));
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

        outf(out, "      %s  %s", s->id, s->status);
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
        running_sessions_look(d->cli->store, d->new, d->old->graph->id, on_session, d, err))
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

static enum tide_code load(const char *file, struct spec **ret, struct tide_err *err)
{
    struct tide_err why = {0};

    if (!spec_load(file, NULL, ret, &why))
        return TIDE_OK;
    if (why.code != TIDE_INVALID)
        return tide_err_copy(err, &why);
    return tide_fail(err, TIDE_INVALID, "%.300s: `tidemark graph check %.120s` shows everything", why.msg, file);
}

static enum tide_code put_all(struct diffing *d, struct tide_err *err)
{
    struct json_out *o = &d->json;
    enum tide_code code = TIDE_OK;

    if (!d->cli->out.json) {
        put_nodes(d);
        return args_on(&d->cli->args, "against-live") ? look_at_live(d, err) : TIDE_OK;
    }
    json_out_begin(o, '{');
    json_out_kbool(o, STR("same"), d->diff.same);
    json_out_key(o, STR("nodes"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < d->diff.n; i++)
        put_node_json(d, &d->diff.nodes[i]);
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
    code = code ? code : load(old, &d.old, err);
    code = code ? code : load(new, &d.new, err);
    if (!code) {
        spec_compare(&d.arena, d.old->graph, d.new->graph, &d.diff);
        code = put_all(&d, err);
    }
    spec_free(d.old);
    spec_free(d.new);
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
