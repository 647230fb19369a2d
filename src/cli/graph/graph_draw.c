/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a graph. Each node has a row; on the left run lanes, one for every way that is still open: a lane goes down from
 * a node to the one it leads to, a dotted one goes down from where a loop begins to the last node that goes back there.
 * Conditions stand as text below the node they leave, so that the drawing is complete even where lanes
 * must be left out for want of room.
 */
#include "cli/graph/graph_draw.h"

#include <stdio.h>

#include "cli/graph/graph_order.h"
#include "terminal/glyph.h"
#include "cli/timeline/timeline_text.h"

#define TEXT_MIN 44 /* columns that lanes leave to the text */
#define ID_MAX 26
#define TYPE 12

struct lane {
    size_t node; /* where it leads; of a dotted one: where it comes from; OUTLINE_NONE: free */
    bool back;
    size_t until; /* of a dotted one: the row of the last node that goes back */
};

/* One line in the making: which sides of a lane's cell a stroke leaves by. */
struct cell {
    bool up, down, left, right, through /* another's stroke passes behind this lane */;
};

struct draw {
    const struct graph_outline *g;
    struct out *out; /* NULL: only the width is wanted */
    struct graph_order order;
    struct lane *lanes;
    struct cell *cells;
    size_t n_lanes, cap, widest, shown;
    int columns, id;
};

/* ---- lanes ---- */

static size_t take_lane(struct draw *d, size_t from)
{
    size_t i = from;

    while (i < d->n_lanes && d->lanes[i].node != OUTLINE_NONE)
        i++;
    if (i >= d->n_lanes) {
        i = d->n_lanes++;
        d->widest = d->n_lanes > d->widest ? d->n_lanes : d->widest;
    }
    d->lanes[i] = (struct lane){OUTLINE_NONE, false, 0};
    return i;
}

static void drop_lane(struct draw *d, size_t i)
{
    d->lanes[i].node = OUTLINE_NONE;
    while (d->n_lanes > 0 && d->lanes[d->n_lanes - 1].node == OUTLINE_NONE)
        d->n_lanes--;
}

static size_t lane_to(const struct draw *d, size_t node)
{
    for (size_t i = 0; i < d->n_lanes; i++)
        if (d->lanes[i].node == node && !d->lanes[i].back)
            return i;
    return OUTLINE_NONE;
}

static size_t lane_back(const struct draw *d, size_t node)
{
    for (size_t i = 0; i < d->n_lanes; i++)
        if (d->lanes[i].node == node && d->lanes[i].back)
            return i;
    return OUTLINE_NONE;
}

/* ---- strokes ---- */

static void clear_cells(struct draw *d)
{
    memset(d->cells, 0, d->cap * sizeof(*d->cells));
    for (size_t i = 0; i < d->n_lanes; i++)
        d->cells[i].up = d->cells[i].down = d->lanes[i].node != OUTLINE_NONE;
}

/* From the middle of one lane to the middle of another; lanes between them are passed behind. */
static void stroke(struct draw *d, size_t from, size_t to)
{
    size_t a = from < to ? from : to, b = from < to ? to : from;

    d->cells[a].right = d->cells[b].left = true;
    for (size_t i = a + 1; i < b; i++) {
        if (!d->cells[i].left && !d->cells[i].right)
            d->cells[i].through = d->cells[i].up && d->cells[i].down;
        d->cells[i].left = d->cells[i].right = true;
    }
}

static const char *glyph_of(const struct draw *d, size_t i)
{
    static const char *const strokes[16] = {" ", "╵", "╷", "│", "╴", "╯", "╮", "┤",
                                            "╶", "╰", "╭", "├", "─", "┴", "┬", "┼"};
    const struct cell *c = &d->cells[i];
    unsigned sides = (unsigned)c->up | (unsigned)c->down << 1 | (unsigned)c->left << 2 | (unsigned)c->right << 3;

    if ((c->through || sides == 3) && i < d->n_lanes)
        return d->lanes[i].back ? "┊" : "│";
    return strokes[sides];
}

/* The lanes of a line; `mark` stands in lane `at`, and what comes to it from the right is the way of a loop. */
static void put_lanes(struct draw *d, size_t at, const char *mark)
{
    if (!d->out)
        return;
    outf(d->out, "  ");
    for (size_t i = 0; i < d->shown; i++) {
        bool here = i == at && mark, on = d->cells[i].right && i + 1 < d->shown;

        if (!here)
            outf(d->out, "%s", color_code(d->out, COLOR_DIM));
        outf(d->out, "%s", here ? mark : glyph_of(d, i));
        outf(d->out, "%s%s%s", color_code(d->out, COLOR_DIM),
             !on    ? " "
             : here ? "◂"
                    : "─",
             color_code(d->out, COLOR_NONE));
    }
    if (d->widest > d->shown) /* there are more: nodes in them stand in the last column */
        outf(d->out, "%s", mark && at >= d->shown ? mark : " ");
    outf(d->out, " ");
}

static int room(const struct draw *d)
{
    return d->columns - 3 - (d->widest > d->shown) - 2 * (int)d->shown;
}

static void end_line(struct draw *d)
{
    if (d->out)
        tl_end_line(d->out);
}

/* ---- text ---- */

static void put_node_text(struct draw *d, const struct outline_node *n)
{
    int left = room(d);

    if (!d->out)
        return;
    tl_put_colored(d->out, COLOR_BOLD, n->id.ptr, d->id);
    outf(d->out, "  ");
    tl_put_colored(d->out, COLOR_CYAN, n->type_word, TYPE);
    left -= d->id + 2 + TYPE;
    if (left > 8)
        tl_put_colored(d->out, COLOR_DIM, n->note, left);
}

/* "↺ plan  output.tries < 3" */
static void put_way(struct draw *d, const struct outline_way *arc, size_t lane)
{
    bool back = d->order.back[arc - d->g->ways];
    const char *label = arc->label;
    int left = room(d) - 4, used;

    put_lanes(d, lane, NULL);
    if (d->out) {
        outf(d->out, "  %s ", back ? "↺" : "→");
        used = out_fit(d->out, d->g->nodes[arc->to].id.ptr, left);
        if (label[0] && left - used > 6) {
            outf(d->out, "  ");
            tl_put_colored(d->out, COLOR_DIM, label, left - used - 2);
        }
    }
    end_line(d);
}

/* "→ lint, test, docs  at once", on as many lines as it takes */
static void put_fan_out(struct draw *d, const struct outline_node *n, size_t lane, size_t plain)
{
    int left = 0, all = room(d) - 4;

    for (size_t i = 0; i < n->n_ways; i++) {
        const struct outline_way *arc = &d->g->ways[n->first_way + i];
        struct str id = d->g->nodes[arc->to].id;
        int width = (int)id.len + (--plain > 0 ? 2 : 9);

        if (!arc->plain) {
            plain++;
            continue;
        }
        if (left < width || left == 0) {
            if (left > 0)
                end_line(d);
            put_lanes(d, lane, NULL);
            if (d->out)
                outf(d->out, "  %s ", left > 0 ? " " : "→");
            left = all;
        }
        if (d->out)
            outf(d->out, "%.*s%s", STR_ARG(id), plain > 0 ? ", " : "  at once");
        left = left > width ? left - width : 1;
    }
    end_line(d);
}

static void put_ways(struct draw *d, const struct outline_node *n, size_t lane)
{
    size_t plain = 0;

    for (size_t i = 0; i < n->n_ways; i++)
        plain += d->g->ways[n->first_way + i].plain;
    if (n->n_ways == 1 && plain == 1 && !d->order.back[n->first_way] && d->shown >= d->widest)
        return; /* its lane shows it */
    if (plain > 1)
        put_fan_out(d, n, lane, plain);
    for (size_t i = 0; i < n->n_ways; i++)
        if (plain <= 1 || !d->g->ways[n->first_way + i].plain)
            put_way(d, &d->g->ways[n->first_way + i], lane);
}

/* ---- one node ---- */

/* All lanes that lead here come together in the leftmost. */
static size_t gather_node(struct draw *d, size_t node)
{
    size_t at = lane_to(d, node), others = 0;

    if (at == OUTLINE_NONE) {
        at = take_lane(d, 0);
        d->lanes[at].node = node;
        return at;
    }
    clear_cells(d);
    for (size_t i = at + 1; i < d->n_lanes; i++)
        if (d->lanes[i].node == node && !d->lanes[i].back) {
            stroke(d, at, i);
            d->cells[i].down = false;
            others++;
        }
    if (others > 0) {
        put_lanes(d, OUTLINE_NONE, NULL);
        end_line(d);
    }
    for (size_t i = d->n_lanes; i-- > at + 1;)
        if (i < d->n_lanes && d->lanes[i].node == node && !d->lanes[i].back)
            drop_lane(d, i);
    return at;
}

/* The row of the last node that goes back to this one; OUTLINE_NONE: none but itself. */
static size_t last_return(const struct draw *d, size_t node)
{
    size_t last = OUTLINE_NONE;

    for (size_t i = 0; i < d->g->n_ways; i++) {
        size_t row = d->order.row[d->g->ways[i].from];

        if (d->g->ways[i].to == node && d->order.back[i] && d->g->ways[i].from != node &&
            (last == OUTLINE_NONE || row > last))
            last = row;
    }
    return last;
}

static const struct {
    const char *mark, *means;
} marks[NODE_TYPES] = {[NODE_EVENT_LOOP] = {"●", "an agent"},
                       [NODE_FUNCTION] = {"■", "a program"},
                       [NODE_ROUTER] = {"◆", "chooses the way"},
                       [NODE_HUMAN_INPUT] = {"◉", "asks a person"},
                       [NODE_LUA] = {"▲", "Lua code"},
                       [NODE_SUBGRAPH] = {"▣", "a graph, drawn below"},
                       [NODE_MAP] = {"▤", "runs once for each item"}};

static void put_node(struct draw *d, const struct outline_node *n, size_t lane)
{
    size_t last = last_return(d, n->index), loop;

    clear_cells(d);
    if (last != OUTLINE_NONE) {
        loop = take_lane(d, lane + 1);
        d->lanes[loop] = (struct lane){n->index, true, last};
        d->cells[loop] = (struct cell){.down = true};
        stroke(d, lane, loop);
    }
    put_lanes(d, lane, marks[n->type].mark);
    put_node_text(d, n);
    end_line(d);
}

/* Strokes to the dotted lanes of the nodes that it goes back to. */
static void close_loops(struct draw *d, const struct outline_node *n, size_t lane, bool goes_on)
{
    size_t row = d->order.row[n->index];

    for (size_t i = 0; i < n->n_ways; i++) {
        size_t at = lane_back(d, d->g->ways[n->first_way + i].to);

        if (!d->order.back[n->first_way + i] || at == OUTLINE_NONE || d->g->ways[n->first_way + i].to == n->index)
            continue;
        clear_cells(d);
        d->cells[lane].up = true;
        d->cells[lane].down = goes_on;
        stroke(d, lane, at);
        d->cells[at].down = d->lanes[at].until > row;
        put_lanes(d, OUTLINE_NONE, NULL);
        end_line(d);
        if (d->lanes[at].until <= row)
            drop_lane(d, at);
    }
}

/* Where its ways down go: the first stays in the lane, others join a lane that goes there already or get one. */
static void open_ways(struct draw *d, const struct outline_node *n, size_t lane)
{
    size_t targets = 0;

    clear_cells(d);
    d->lanes[lane].node = OUTLINE_NONE;
    d->cells[lane] = (struct cell){.up = true};
    for (size_t i = 0; i < n->n_ways; i++) {
        size_t to = d->g->ways[n->first_way + i].to, at = lane_to(d, to);

        if (d->order.back[n->first_way + i] || at == lane)
            continue;
        if (at == OUTLINE_NONE) {
            at = d->lanes[lane].node == OUTLINE_NONE ? lane : take_lane(d, lane + 1);
            d->lanes[at].node = to;
            d->cells[at].down = true;
        }
        if (at != lane) {
            stroke(d, lane, at);
            targets++;
        }
    }
    if (targets > 0) {
        put_lanes(d, OUTLINE_NONE, NULL);
        end_line(d);
    }
    if (d->lanes[lane].node == OUTLINE_NONE)
        drop_lane(d, lane);
}

static void draw_row(struct draw *d, size_t row)
{
    const struct outline_node *n = &d->g->nodes[d->order.nodes[row]];
    size_t lane = gather_node(d, n->index);
    bool down = false, back = false;

    for (size_t i = 0; i < n->n_ways; i++) {
        down = down || !d->order.back[n->first_way + i];
        back = back || (d->order.back[n->first_way + i] && d->g->ways[n->first_way + i].to != n->index);
    }
    put_node(d, n, lane);
    clear_cells(d);
    d->cells[lane].up = d->cells[lane].down = down || back;
    put_ways(d, n, lane);
    close_loops(d, n, lane, down);
    open_ways(d, n, lane);
}

/* ---- the whole ---- */

static void draw_rows(struct draw *d)
{
    d->n_lanes = 0;
    for (size_t row = 0; row < d->g->n_nodes; row++)
        draw_row(d, row);
}

static void put_heading(struct out *out, const struct graph_outline *g, const char *within, int columns)
{
    out_colored(out, COLOR_BOLD, g->id.ptr);
    if (within)
        outf(out, " in %s", within);
    outf(out, "  %zu node%s, %zu edge%s", g->n_nodes, g->n_nodes == 1 ? "" : "s", g->n_ways, g->n_ways == 1 ? "" : "s");
    tl_end_line(out);
    if (g->description.len) {
        tl_put_colored(out, COLOR_DIM, g->description.ptr, columns);
        tl_end_line(out);
    }
    outf(out, "\n");
}

static void draw_graph(struct arena *a, struct out *out, const struct graph_outline *g, const char *within, int columns)
{
    struct draw d = {.g = g, .columns = columns, .cap = g->n_ways + 2 * g->n_nodes + 2};
    size_t most = columns > TEXT_MIN + 10 ? (size_t)(columns - TEXT_MIN) / 2 : 5;

    graph_order_make(a, g, &d.order);
    d.lanes = arena_zero(a, d.cap * sizeof(*d.lanes));
    d.cells = arena_zero(a, d.cap * sizeof(*d.cells));
    draw_rows(&d);
    d.shown = d.widest < most ? d.widest : most;
    d.out = out;
    for (size_t i = 0; i < g->n_nodes; i++)
        d.id = (int)g->nodes[i].id.len > d.id ? (int)g->nodes[i].id.len : d.id;
    d.id = d.id < ID_MAX ? d.id : ID_MAX;
    put_heading(out, g, within, columns);
    draw_rows(&d);
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].inside) {
            outf(out, "\n");
            draw_graph(a, out, g->nodes[i].inside, g->nodes[i].id.ptr, columns);
        }
}

/* ---- the legend ---- */

enum { WAY_CHOSEN = NODE_TYPES, WAY_AT_ONCE, WAY_BACK, LEGEND_SIZE };

static void note_used(struct arena *a, const struct graph_outline *g, bool used[LEGEND_SIZE])
{
    struct graph_order order;

    graph_order_make(a, g, &order);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct outline_node *n = &g->nodes[i];
        size_t plain = 0;

        used[n->type] = true;
        for (size_t k = n->first_way; k < n->first_way + n->n_ways; k++) {
            plain += g->ways[k].plain;
            used[WAY_BACK] |= order.back[k];
            used[WAY_CHOSEN] |= !g->ways[k].plain;
        }
        used[WAY_AT_ONCE] |= plain > 1;
        if (n->inside)
            note_used(a, n->inside, used);
    }
}

/* What is used of it, as many as fit in a line. */
static void put_legend(struct arena *a, struct out *out, const struct graph_outline *g, int columns)
{
    static const char *const ways[] = {"→ X  CONDITION: to X if it holds (the first of them)",
                                       "→ X, Y  at once: to all of them, in parallel", "↺ X, ┊: back to X, a loop"};
    bool used[LEGEND_SIZE] = {false};
    int left = columns;

    note_used(a, g, used);
    outf(out, "\n");
    for (int i = 0; i < LEGEND_SIZE; i++) {
        const char *text =
            i < NODE_TYPES ? arena_printf(a, "%s %s", marks[i].mark, marks[i].means) : ways[i - NODE_TYPES];
        int width = text_columns(str_from(text));

        if (!used[i])
            continue;
        if (left < columns && left < width + 2) {
            tl_end_line(out);
            left = columns;
        }
        outf(out, "  ");
        tl_put_colored(out, COLOR_DIM, text, width < columns - 2 ? width : columns - 2);
        left -= width + 2;
    }
    tl_end_line(out);
}

void graph_draw(struct out *out, const tide_graph *graph, int columns)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    draw_graph(&a, out, graph_outline(&a, graph), NULL, columns);
    put_legend(&a, out, graph_outline(&a, graph), columns);
}
