/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/resume_request.h"

#include <stdio.h>

#include "base/json.h"
#include "base/yes_no.h"
#include "session/session.h"
#include "session/status.h"
#include "session/token.h"

enum { OF_PROGRAM = 1, OF_CHAT = 2, OF_GRAPH = 4 };

/* What an option means something to. Options that are not here are for all. */
static const struct resume_option {
    const char *name;
    unsigned of;
} options[] = {
    {"request-id", OF_PROGRAM},
    {"now", OF_PROGRAM},
    {"accept-change", OF_PROGRAM},
    {"retry", OF_PROGRAM | OF_GRAPH},
    {"happened", OF_PROGRAM | OF_GRAPH},
    {"checkpoint", OF_GRAPH},
    {"reuse-effects", OF_GRAPH},
    {"redo-effects", OF_GRAPH},
    {"provider", OF_CHAT | OF_GRAPH},
    {"model", OF_CHAT | OF_GRAPH},
    {"base-url", OF_CHAT | OF_GRAPH},
    {"script", OF_CHAT | OF_GRAPH},
    {"yes", OF_CHAT | OF_GRAPH},
    {"output", OF_CHAT | OF_GRAPH},
    {"keep-pause", OF_CHAT | OF_GRAPH},
    {"set", OF_GRAPH},
    {"graph", OF_GRAPH},
    {"map", OF_GRAPH},
    {"fallback", OF_GRAPH},
    {"parallel", OF_GRAPH},
    {"checkpoint-config", OF_GRAPH},
    {"no-input", OF_GRAPH},
    {"quiet", OF_GRAPH},
};

#define N_OPTIONS (sizeof options / sizeof options[0])

const char *resume_option_name(size_t i)
{
    return i < N_OPTIONS ? options[i].name : NULL;
}

static unsigned for_whom(const char *option)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, option) == 0)
            return options[i].of;
    return OF_PROGRAM | OF_CHAT | OF_GRAPH;
}

/* Adds which one it is to the failure that was made just before. */
static enum tide_code refuse_argument(const char *option, struct tide_err *err)
{
    char name[64];
    size_t n = 0;

    for (; option[n] && n + 1 < sizeof name; n++)
        name[n] = option[n] == '-' ? '_' : option[n];
    name[n] = '\0';
    tide_about(err, TIDE_SUBJECT_ARGUMENT, name);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, err ? err->detail.session_id : "", "\"%s\":false", name);
}

enum tide_session_kind session_kind_of(const tide_session *session)
{
    return session_kind(session->state);
}

enum tide_code resume_give_reason(const char *input, const char *reason, struct buf *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *answer = NULL;

    if (input && json_parse(&a, str_from(input), NULL, &answer, NULL, err))
        return tide_wrap(err, "the answer");
    if (!input) {
        tide_fail(err, TIDE_INVALID, "it goes with an answer, yes or no");
        tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"input\":null");
    } else if (!str_is_utf8(str_from(reason), NULL))
        tide_fail(err, TIDE_INVALID, "it is not valid UTF-8");
    else if (answer->type == JSON_OBJECT)
        tide_fail(err, TIDE_INVALID, "put it into the answer, as its member \"reason\"");
    else {
        yes_no_put_reason(ret, str_from(input), str_from(reason));
        if (!ret->failed)
            return TIDE_OK;
        tide_fail(err, TIDE_TOO_BIG, "it is too long");
    }
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "reason");
}

/* The same; without it helps only where anything can be resumed. */
static enum tide_code refuse_argument_of(tide_session *session, const char *option, struct tide_err *err)
{
    struct tide_err ignored;
    struct status st;

    refuse_argument(option, err);
    if (!err || session_derive_status(session, &st, &ignored) || st.is_resumable || st.status == TIDE_STATUS_WAITING)
        return TIDE_INVALID;
    err->hints[0].action = 0;
    return tide_hint(err, TIDE_ACTION_WHY, tide_session_id(session));
}

/* Any text answers other waits: there it would become part of the answer. */
static enum tide_code check_reason(tide_session *session, const struct resume_request *ask, struct tide_err *err)
{
    const struct run *r = &session->state->ledger.run;
    const char *kind = r->waiting && r->wait_kind ? r->wait_kind : "";

    if (!ask->has_reason || ask->ask_again || strcmp(kind, tide_wait_kind_name(TIDE_WAIT_APPROVAL)) == 0)
        return TIDE_OK;
    tide_fail_session(err, TIDE_INVALID, ask->id, "does not wait for an approval");
    return refuse_argument_of(session, "reason", err);
}

static enum tide_code refuse_option(tide_session *session, enum tide_session_kind kind, const char *option,
                                    struct tide_err *err)
{
    static const char *const whom[] = {[OF_PROGRAM] = "programs",
                                       [OF_CHAT] = "chats",
                                       [OF_GRAPH] = "graphs",
                                       [OF_PROGRAM | OF_GRAPH] = "programs and graphs",
                                       [OF_CHAT | OF_GRAPH] = "chats and graphs"};
    struct tide_text text = {NULL, 0};

    if (tide_session_get_program(session, &text, err) == TIDE_CORRUPT)
        return err->code; /* nobody knows what it runs */
    tide_text_done(&text);
    tide_fail_session(err, TIDE_INVALID, tide_session_id(session), "%s, and this is for %s",
                      kind == TIDE_KIND_GRAPH  ? "runs a graph"
                      : kind == TIDE_KIND_CHAT ? "is a chat"
                                               : "runs no graph",
                      whom[for_whom(option)]);
    return refuse_argument_of(session, option, err);
}

enum tide_code resume_check_token(tide_session *session, const char *token, struct tide_err *err)
{
    int64_t answered;
    enum tide_code code = session_sync(session, err);

    return code ? code
                : token_validate(session, str_from(token), NULL, env_now_ms(session->store->env), &answered, err);
}

enum tide_code resume_ask_again(tide_session *session, const struct resume_request *ask,
                                char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *answer = NULL;

    if (ask->token || ask->dry_run) {
        tide_fail(err, TIDE_INVALID,
                  ask->token ? "a question that is asked again gets a new token" : "a dry run asks nothing again");
        return refuse_argument(ask->token ? "token" : "dry-run", err);
    }
    if (ask->input && (json_parse(&a, str_from(ask->input), NULL, &answer, NULL, err) || yes_no_check(&a, answer, err)))
        return err->code;
    return tide_session_ask_again(session, ask->ask_again, ret_token, err);
}

enum tide_code resume_kind(tide_session *session, const struct resume_request *ask, enum tide_session_kind *ret_kind,
                           struct tide_err *err)
{
    unsigned of;

    *ret_kind = session ? session_kind_of(session) : TIDE_KIND_GRAPH;
    if (session && check_reason(session, ask, err))
        return err->code;
    of = *ret_kind == TIDE_KIND_GRAPH ? OF_GRAPH : *ret_kind == TIDE_KIND_CHAT ? OF_CHAT : OF_PROGRAM;
    for (const char *const *given = ask->given; given && *given; given++) {
        if (for_whom(*given) & of)
            continue;
        /* without a session: of a program, and only the log of a graph is continued with before its damage */
        return session ? refuse_option(session, *ret_kind, *given, err) : err->code;
    }
    return TIDE_OK;
}

enum tide_code send_kind(tide_session *session, enum tide_session_kind *ret_kind, struct tide_err *err)
{
    const struct tide_session_info *info;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    if (info->kind == TIDE_KIND_TASK)
        return tide_fail_session(err, TIDE_INVALID, info->id, "is a task: send to one of its sessions");
    *ret_kind = TIDE_KIND_PROGRAM;
    if (info->kind == TIDE_KIND_CHAT) /* one that somebody runs takes the message from its queue */
        *ret_kind = info->holder ? TIDE_KIND_LOG : TIDE_KIND_CHAT;
    if (info->kind == TIDE_KIND_GRAPH) /* a message is for what waits */
        *ret_kind = info->status == TIDE_STATUS_WAITING ? TIDE_KIND_GRAPH : TIDE_KIND_LOG;
    return TIDE_OK;
}
