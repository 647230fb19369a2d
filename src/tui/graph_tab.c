/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a graph, how each of them stands, and the way that was taken. */
#include <stdio.h>

#include "base/timefmt.h"
#include "terminal/glyph.h"
#include "tui/app.h"
#include "tui/look.h"

static void add_node(struct sheet *s, const struct node_view *n, int name)
{
    struct look look = look_of_outcome(n->state);
    AUTO(buf_done) struct buf text = BUF_INIT(65536);
    char took[TIME_TAKEN_SIZE];

    name_fit(&text, str_from(n->id), name);
    for (int used = text_columns(buf_view(&text)); used < name; used++)
        buf_add_char(&text, ' ');
    buf_addf(&text, "  %-9s %7s", strcmp(n->state, "none") == 0 ? "" : n->state,
             n->ms > 0 ? time_taken(took, n->ms) : "");
    if (n->visits > 1)
        buf_addf(&text, "  %lld visits", (long long)n->visits);
    if (n->attempts > 1)
        buf_addf(&text, "  %lld attempts", (long long)n->attempts);
    if (*n->next)
        buf_addf(&text, "  → %s", n->next);
    if (*n->error)
        buf_addf(&text, "  %s", n->error);
    lines_add_one(&s->lines, buf_view(&text),
                  &(struct line){.lead = look.shape,
                                 .lead_ink = look.ink,
                                 .indent = 2,
                                 .seq = n->seq,
                                 .entry = -1,
                                 .ink = strcmp(n->state, "none") == 0 ? INK_DIM : INK_PLAIN});
}

void graph_lines(struct app *app, struct sheet *s, int columns)
{
    const struct nodes_view *g = s->answer->view;
    int name = columns >= 60 ? 24 : 14;

    if (app->session.state_seq)
        lines_add_one(&s->lines,
                      str_from(arena_printf(&s->lines.arena, "as of event %lld", (long long)app->session.state_seq)),
                      &(struct line){.ink = INK_ACCENT, .entry = -1});
    for (size_t i = 0; i < g->n; i++)
        add_node(s, &g->at[i], name);
    if (*g->path) {
        lines_add_one(&s->lines, STR(""), &(struct line){.entry = -1});
        lines_add(&s->lines, str_from(g->path), columns, 40, &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
    }
}
