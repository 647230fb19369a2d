/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys do, and what the shapes mean. */
#include "tui/app.h"

static const struct {
    const char *keys, *text;
} rows[] = {
    {"", "Everywhere"},
    {"↑ ↓ PgUp PgDn g G", "move; also j and k, and the wheel"},
    {"tab", "switch lists; in a session the next view"},
    {"?", "this help"},
    {"esc", "go back; close what is open"},
    {"q  Q  ctrl-c", "quit; runs continue"},
    {"", "Actions on a session"},
    {"a", "answer its question: yes or no with a reason, or a text"},
    {"r", "resume: shows first what would happen; takes values and a checkpoint"},
    {"s", "send a message"},
    {"x", "cancel its run"},
    {"", "Sessions"},
    {"enter", "open it"},
    {"/", "search in id, title, agent, task and why"},
    {"f  F", "the next filter by status; the previous one"},
    {"K", "only one kind: chat, program, graph, log, task"},
    {"t", "only the task of this session"},
    {"", "A session"},
    {"1 … 6", "conversation, timeline, log, checkpoints, state, graph"},
    {"enter", "unfold a tool; read an event; the state at a checkpoint"},
    {"i", "the state as of the line at the cursor"},
    {"F", "fork at that line"},
    {"B", "roll back to that line"},
    {"R", "in the checkpoints: resume from this one"},
    {"/", "in the log: show only these kinds, as run.,message.user"},
    {"← →", "in the state: the previous event, the next one"},
    {"", "Shapes"},
    {"●", "running"},
    {"◆", "waits for a person"},
    {"⧗", "sleeps until a time"},
    {"▲", "interrupted: it can be resumed"},
    {"✗", "failed"},
    {"✓", "completed"},
    {"–", "cancelled"},
    {"○", "nothing has run"},
    {"■", "damaged"},
};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

void help_key(struct app *app, const struct key *k)
{
    if (k->what == KEY_IS_ESCAPE || key_is(k, 'q') || key_is(k, '?') || k->what == KEY_IS_ENTER)
        app->help = false;
    else
        scroll_read_key(&app->help_scroll, k);
}

void help_draw(struct app *app, struct canvas *c, int row, int rows_here)
{
    struct scroll *s = &app->help_scroll;
    int keys = c->cols >= 60 ? 20 : 8;

    scroll_fit(s, N_ROWS, rows_here);
    for (int i = 0; i < rows_here && s->top + i < N_ROWS; i++) {
        const char *what = rows[s->top + i].keys, *text = rows[s->top + i].text;

        if (!*what) {
            canvas_text(c, row + i, 1, c->cols - 2, text, INK_BOLD);
            continue;
        }
        canvas_text(c, row + i, 3, keys - 1, what, INK_ACCENT);
        canvas_text(c, row + i, 3 + keys, c->cols - keys - 4, text, INK_PLAIN);
    }
}
