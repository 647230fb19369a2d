/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/store_acts.h"

#include <stdio.h>

#include "engine/resume.h"
#include "engine/rollback.h"
#include "server/program_process.h"

static void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

enum tide_code store_check_whole(tide_store *store, const char *id, struct tide_err *err)
{
    char whole[TIDE_ID_SIZE];

    if (tide_session_resolve(store, id, whole, err))
        return err->code;
    return strcmp(whole, id) == 0 ? TIDE_OK : tide_fail_session(err, TIDE_NOT_FOUND, id, "is not there any more");
}

/* Names that are separated by commas, ended by NULL; NULL: none. In the arena. */
static const char **split_names(struct arena *a, const char *names)
{
    const char **list = names ? arena_zero(a, (strlen(names) + 2) * sizeof *list) : NULL;
    size_t n = 0;

    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        list[n++] = arena_printf(a, "%.*s", (int)strcspn(at, ","), at);
    return list;
}

/* It runs in a process of its own, which says why when it refuses. */
static enum tide_code run_command(const struct source_store_options *opt, int stop, const struct act *act,
                                  struct acted *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf answer = BUF_INIT((size_t)8 << 20);
    struct resume_request ask = {.input = act->input,
                                 .ask_again = act->ask_again,
                                 .retry = split_names(&a, act->retry),
                                 .happened = split_names(&a, act->happened),
                                 .now = act->now,
                                 .accept_change = act->accept_change,
                                 .graph = {.checkpoint = act->checkpoint}};
    const struct runner_options where = {.url = opt->url, .config = opt->config, .key_file = opt->key_file};
    char token[TIDE_TOKEN_SIZE] = "";
    const struct program_process p = {.session_id = act->id,
                                      .runner = &where,
                                      .ask = &ask,
                                      .message = act->message,
                                      .memory = str_from(act->set),
                                      .token = token,
                                      .stop = stop};
    enum tide_code code;

    if (act->reason && act->input) {
        if (resume_give_reason(act->input, act->reason, &answer, err))
            return err->code;
        ask.input = buf_cstr(&answer);
    }
    code = program_process_run(&p, err);
    explicit_bzero(token, sizeof token);
    if (!code)
        snprintf(ret->said, sizeof ret->said, "%s has run", act->id);
    return code;
}

static enum tide_code roll_back(tide_store *store, const struct act *act, struct acted *ret, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(mem_freep) char *question = NULL;

    if (tide_session_open(store, act->id, TIDE_SESSION_APPEND, &session, err) ||
        rollback_to(session, act->seq, 0, act->reason, &question, err))
        return err->code;
    snprintf(ret->said, sizeof ret->said, "rolled back to event %lld", (long long)act->seq);
    return TIDE_OK;
}

static enum tide_code cancel_session(tide_store *store, const struct act *act, struct acted *ret, struct tide_err *err)
{
    enum tide_cancelled how;

    if (tide_session_cancel(store, act->id, "local", act->reason, 0, &how, err))
        return err->code;
    snprintf(ret->said, sizeof ret->said, how == TIDE_CANCEL_NOTHING ? "%s had nothing to cancel" : "%s was cancelled",
             act->id);
    return TIDE_OK;
}

enum tide_code store_act(tide_store *store, const struct source_store_options *opt, int stop, const struct act *act,
                         struct acted *ret, struct tide_err *err)
{
    if (store_check_whole(store, act->id, err))
        return err->code;
    switch (act->what) {
    case ACT_ANSWER:
    case ACT_RESUME:
    case ACT_SEND:
        return run_command(opt, stop, act, ret, err);
    case ACT_CANCEL:
        return cancel_session(store, act, ret, err);
    case ACT_FORK:
        snprintf(ret->said, sizeof ret->said, "forked off %s", act->id);
        return tide_session_fork(store, act->id, act->seq, NULL, NULL, ret->new_id, err);
    case ACT_ROLLBACK:
        return roll_back(store, act, ret, err);
    case ACT_NOTHING:
        break;
    }
    return TIDE_OK;
}

enum tide_code store_plan(tide_store *store, const struct source_store_options *opt, const struct ask *ask,
                          struct json_out *o, struct tide_err *err)
{
    AUTO(resume_done) struct resume r = RESUME_INIT;
    enum tide_code code;

    if (store_check_whole(store, ask->id, err))
        return err->code;
    r.store = store;
    r.config = opt->config;
    r.quiet = true;
    r.ask = (struct resume_request){.id = ask->id, .dry_run = true, .graph = {.checkpoint = ask->how.checkpoint}};
    if (ask->how.set)
        buf_add_str(&r.memory, str_from(ask->how.set));
    code = resume_session(&r, err);
    if (code || !r.plan.len)
        return code ? code : tide_fail(err, TIDE_NOT_FOUND, "nothing is known of what a resume would do");
    json_out_raw(o, r.plan);
    return TIDE_OK;
}
