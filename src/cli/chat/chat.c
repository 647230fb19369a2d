/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/chat.h"

#include "engine/temporary.h"
#include "terminal/progress.h"
#include "engine/recovery_thread.h"

bool chat_is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

enum tide_code chat_init(struct chat *c, struct cli *cli, const struct chat_want *want, struct tide_err *err)
{
    *c = (struct chat){.cli = cli, .want = want, .core = {.agent_name = want->agent, .title = want->title}};
    c->core.stopped = chat_is_stopped;
    if (cli_setup_open(cli, &c->core.setup, err))
        return err->code;
    return agent_setup_begin(&c->core.setup, &want->who, err);
}

void chat_done(struct chat *c)
{
    chat_leave(&c->core);
    recovery_thread_stop(TAKE(c->sweep));
    cli_store_close(c->cli);
    temporary_remove(c->temporary);
    chat_session_done(&c->core);
}

void chat_drop_hints(struct tide_err *err)
{
    for (size_t i = 0; i < sizeof err->hints / sizeof err->hints[0]; i++)
        if (err->hints[i].session_id[0])
            err->hints[i].action = 0;
}

enum tide_code chat_store(struct chat *c, struct tide_err *err)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    bool is_new = !c->want->resume && !c->want->latest && !c->want->pick;
    struct arena *arena = &c->core.setup.arena;
    int64_t sweep_ms = 0;

    if (is_new && agent_setup_check(&c->core.setup, NULL, err)) /* what is refused makes no store */
        return err->code;
    if (!c->want->no_store) {
        if (settings_sweep_interval(args_text(&c->cli->args, "config"), &sweep_ms, err))
            return err->code;
        if (cli_store_open_held(c->cli, is_new ? NEED_CREATE : NEED_WRITE, err))
            return is_new ? tide_wrap(err, "chat: the chat cannot be stored (--no-store chats without a store)")
                          : err->code;
        c->sweep = recovery_thread_start(c->cli->store, sweep_ms);
    } else if (temporary_make(arena, "chat", &c->temporary, err)) {
        return tide_wrap(err, "a chat that is not kept");
    } else if (tide_store_open(arena_printf(arena, "%s/chat.db", c->temporary), &opt, &c->cli->store, err)) {
        return err->code;
    }
    c->core.setup.store = c->cli->store;
    return TIDE_OK;
}

enum tide_code chat_resume(struct chat *c, struct tide_err *err)
{
    const struct chat_want *w = c->want;
    unsigned rollback = w->reuse_effects  ? TIDE_ROLLBACK_REUSE_EFFECTS
                        : w->redo_effects ? TIDE_ROLLBACK_REDO_EFFECTS
                                          : 0;

    return w->latest ? chat_open_latest(&c->core, err) : chat_open(&c->core, w->resume, w->from, rollback, err);
}
