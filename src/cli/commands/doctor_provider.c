/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's look at who would answer a chat: provider, model and key, and with --online an answer. */
#include "cli/commands/doctor.h"
#include "cli/error_hints.h"
#include "cli/next_command.h"
#include "engine/agent_setup.h"

static void setup_done(struct agent_setup *s)
{
    agent_setup_done(s);
}

static void say_trouble(struct doctor *d, enum verdict verdict)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *todo = err_advice(&a, &d->err, false);

    doctor_say(d, verdict, todo ? todo : arena_printf(&a, "`%s config list` shows the settings", own_command(&a)), "%s",
               d->err.msg);
}

void doctor_provider(struct doctor *d)
{
    AUTO(setup_done) struct agent_setup s = {.arena = ARENA_INIT};
    const struct agent_want want = {.provider = NULL};
    bool online = args_on(&d->cli->args, "online");
    const char *model;

    if (cli_settings_open(d->cli, &s.settings, &d->err) || agent_setup_begin(&s, &want, &d->err)) {
        say_trouble(d, VERDICT_FAIL);
        return;
    }
    model = config_text(s.settings.config, "model");
    if (!online && !model && !agent_setup_has_key(&s)) {
        doctor_say(d, VERDICT_OK, NULL, "no model and no key are configured; programs and scripts need none");
        return;
    }
    if (!online && agent_setup_asks_keychain(&s)) { /* looking there may ask somebody to unlock it */
        doctor_say(d, VERDICT_OK, NULL, "%s, model %s, the key in the keychain",
                   config_text(s.settings.config, "provider"), model ? model : "not set");
        return;
    }
    if (agent_setup_check(&s, NULL, &d->err)) {
        say_trouble(d, online ? VERDICT_FAIL : VERDICT_WARN);
        return;
    }
    if (!online) {
        doctor_say(d, VERDICT_OK, NULL, "%s, model %s; not tested (--online tests it)", s.opt.provider, s.opt.model);
        return;
    }
    if (agent_setup_ask(&s, &d->err))
        say_trouble(d, VERDICT_FAIL);
    else
        doctor_say(d, VERDICT_OK, NULL, "%s answers with model %s", s.opt.provider, s.opt.model);
}
