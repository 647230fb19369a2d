/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that follows from the log as of a moment. The arrows go from event to event. */
#include <stdio.h>

#include "tui/app.h"

void state_lines(struct app *app, struct sheet *s, int columns)
{
    int64_t seq = app->session.state_seq, last = session_view(app)->detail.row.info.last_seq;
    const char *title =
        seq ? arena_printf(&s->lines.arena, "as of event %lld of %lld   ← → one event, g now", (long long)seq,
                           (long long)last)
            : arena_printf(&s->lines.arena, "now, after event %lld   ← one event back", (long long)last);

    lines_add_one(&s->lines, str_from(title), &(struct line){.ink = INK_ACCENT, .entry = -1});
    lines_add_json(&s->lines, s->answer->json, columns, &(struct line){.entry = -1, .seq = seq});
}

bool state_key(struct app *app, const struct key *k)
{
    struct session_tab *s = &app->session;
    const struct tide_session_info *info = &session_view(app)->detail.row.info;
    int64_t seq = s->state_seq ? s->state_seq : info->last_seq;

    if (k->what == KEY_IS_LEFT && seq > info->first_seq)
        s->state_seq = seq - 1;
    else if (k->what == KEY_IS_RIGHT && s->state_seq)
        s->state_seq = seq + 1 < info->last_seq ? seq + 1 : 0;
    else if (key_is(k, 'g') && s->state_seq)
        s->state_seq = 0;
    else
        return false;
    app_want(app, ASK_STATE);
    return true;
}
