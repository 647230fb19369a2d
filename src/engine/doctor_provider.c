/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's look at who would answer a chat: provider, model and key, and with --online an answer. */
#include "engine/agent_setup.h"
#include "engine/doctor_internal.h"

static void setup_done(struct agent_setup *s)
{
    agent_setup_done(s);
}

static void say_trouble(struct doctor *d, enum verdict verdict)
{
    const struct tide_next *next = DOCTOR_NEXT(TIDE_ACTION_LIST_SETTINGS, "", "{}");

    doctor_say_of(d, (struct doctor_about){.error = &d->err, .next = next}, verdict, "shows the settings", "%s",
                  d->err.msg);
}

static void pass_over(void *arg, const char *line)
{
    (void)arg;
    (void)line; /* the check of the settings has said it */
}

void doctor_provider(struct doctor *d)
{
    AUTO(setup_done) struct agent_setup s = {.arena = ARENA_INIT};
    const struct agent_want want = {.provider = NULL};
    bool online = d->opt->online;
    const char *model;

    if (settings_open(d->opt->config, pass_over, NULL, &s.settings, &d->err) || agent_setup_begin(&s, &want, &d->err)) {
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
        doctor_say_of(d, (struct doctor_about){.next = DOCTOR_NEXT(TIDE_ACTION_REPEAT, "", "{\"online\":true}")},
                      VERDICT_OK, "tests it", "%s, model %s; not tested", s.opt.provider, s.opt.model);
        return;
    }
    if (agent_setup_ask(&s, &d->err))
        say_trouble(d, VERDICT_FAIL);
    else
        doctor_say(d, VERDICT_OK, NULL, "%s answers with model %s", s.opt.provider, s.opt.model);
}
