/* SPDX-License-Identifier: Apache-2.0 */
/* Which chat to continue with, chosen from a list: what changed last stands first. */
#include <stdio.h>
#include <unistd.h>

#include "cli/chat/chat_screen.h"
#include "cli/session_view.h"
#include "terminal/picker.h"

#define CHATS_MAX 500

struct chats {
    struct screen *s;
    struct arena arena;
    struct row {
        char id[TIDE_ID_SIZE];
        const char *text;
        int64_t updated_ms;
    } * rows;
    size_t n;
};

static int take_chat(void *arg, const struct tide_session_info *info)
{
    struct chats *c = arg;
    const char *here = c->s->chat.core.working_dir, *dir = info->working_dir ? info->working_dir : "";
    bool elsewhere = here && strcmp(here, dir) != 0;
    char ago[AGO_SIZE], status[STATUS_SIZE];
    struct row *r = &c->rows[c->n++];

    snprintf(r->id, sizeof(r->id), "%s", info->id);
    r->updated_ms = info->updated_ms;
    r->text = arena_printf(&c->arena, "%s · %s · %s%s%s", info->title && *info->title ? info->title : info->id,
                           session_status(status, info), time_ago(ago, info->updated_ms), elsewhere ? " · " : "",
                           elsewhere ? dir : "");
    return c->n == CHATS_MAX;
}

static int later_first(const void *a, const void *b)
{
    int64_t left = ((const struct row *)a)->updated_ms, right = ((const struct row *)b)->updated_ms;

    return left < right ? 1 : left > right ? -1 : 0;
}

bool screen_can_pick(const struct screen *s)
{
    return line_edit_is_terminal(s->answers);
}

enum tide_code screen_pick(struct screen *s, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    const struct tide_list_filter chats = {.size = sizeof chats, .kind = TIDE_KIND_CHAT};
    struct chats c = {.s = s, .arena = ARENA_INIT};
    enum tide_code code;
    const char **texts;
    size_t at;

    ret_id[0] = '\0';
    c.rows = arena_zero(&c.arena, CHATS_MAX * sizeof(*c.rows));
    code = tide_session_list(s->chat.cli->store, &chats, take_chat, &c, err);
    if (!code && !c.n)
        code = tide_fail(err, TIDE_NOT_FOUND, "there is no chat to resume");
    if (!code) {
        qsort(c.rows, c.n, sizeof(*c.rows), later_first);
        texts = arena_alloc(&c.arena, c.n * sizeof(*texts));
        for (size_t i = 0; i < c.n; i++)
            texts[i] = c.rows[i].text;
        view_notice(s->view, "which one? Up and Down, Enter; Escape exits");
        at = pick_row(s->answers, STDOUT_FILENO, s->chat.cli->out.color, texts, c.n);
        if (at < c.n)
            snprintf(ret_id, TIDE_ID_SIZE, "%s", c.rows[at].id);
        line_edit_pass_on(s->answers, s->line);
    }
    arena_done(&c.arena);
    return code;
}
