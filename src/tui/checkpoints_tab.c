/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of a session: what was complete there, and the actions on them. */
#include <stdio.h>

#include "base/timefmt.h"
#include "tui/app.h"
#include "tui/look.h"

static const struct tide_checkpoint *chosen(const struct app *app)
{
    const struct sheet *s = &app->session.sheets[TAB_CHECKPOINTS];
    const struct checkpoints_view *list = s->answer ? s->answer->view : NULL;
    int entry = s->scroll.at < (int)s->lines.n && s->lines.n ? s->lines.at[s->scroll.at].entry : -1;

    return list && entry >= 0 ? &list->at[entry] : NULL;
}

static void add_checkpoint(struct app *app, struct sheet *s, const struct tide_checkpoint *p, int entry)
{
    char age[AGE_SIZE];
    const char *where = p->node && p->next_node ? arena_printf(&s->lines.arena, "%s → %s", p->node, p->next_node)
                        : p->node               ? p->node
                        : p->turn               ? arena_printf(&s->lines.arena, "turn %lld", (long long)p->turn)
                                                : "";

    lines_add_one(&s->lines,
                  str_from(arena_printf(&s->lines.arena, "%8lld  %4s  %-15s  %s%s%s%s%s  %s", (long long)p->seq,
                                        look_age(age, p->ts_ms, app->now_ms), p->type_word ? p->type_word : "", where,
                                        p->description ? "  " : "", p->description ? p->description : "",
                                        p->is_clean ? "" : "  not clean",
                                        p->can_resume_from ? "" : "  something was open", p->id)),
                  &(struct line){.lead = p->rolled_back       ? "↶"
                                         : p->can_resume_from ? "◇"
                                                              : "○",
                                 .lead_ink = p->rolled_back       ? INK_WARN
                                             : p->can_resume_from ? INK_ACCENT
                                                                  : INK_DIM,
                                 .ink = p->rolled_back ? INK_DIM : INK_PLAIN,
                                 .indent = 2,
                                 .seq = p->seq,
                                 .entry = entry});
}

void checkpoints_lines(struct app *app, struct sheet *s, int columns)
{
    const struct checkpoints_view *list = s->answer->view;

    if (!list->n) {
        lines_add(&s->lines, STR("No checkpoints yet. Chats make one after each turn, graphs after each node."),
                  columns, 0, &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
        return;
    }
    for (size_t i = list->n; i-- > 0;) /* the newest first */
        add_checkpoint(app, s, &list->at[i], (int)i);
}

bool checkpoints_key(struct app *app, const struct key *k)
{
    const struct tide_checkpoint *p = chosen(app);
    const struct page_view *page = session_view(app);

    if (!p)
        return false;
    if (k->what == KEY_IS_ENTER)
        session_key(app, &(struct key){.what = KEY_IS_TEXT, .text = "i"});
    else if (key_is(k, 'R') && page)
        app_resume(app, &page->detail.row.info, p->id);
    else
        return false;
    return true;
}
