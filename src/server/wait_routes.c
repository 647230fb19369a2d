/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for somebody: a new token for its wait, and the answer of a client that has the token and nothing else. That route needs no
 * token of this server: the one of the wait, in the body, is the right to give this one answer. The person who guesses is slowed down.
 */
#include "engine/resume.h"
#include "engine/shapes.h"
#include "server/run_routes.h"
#include "server/server.h"

/* ---- a new token ---- */

static const struct field token_body[] = {
    {.name = "deadline_ms", .type = FIELD_INT, .help = "a new deadline of the wait, as Unix time [as it was]"},
    {.name = "expires_ms", .type = FIELD_INT, .help = "when the token expires, as Unix time [with the deadline]"},
    {.name = NULL},
};

static void reply_token(struct call *c, tide_session *session, const char *token)
{
    struct command_result result = {.session_id = tide_session_id(session)};
    struct buf text = BUF_INIT(4096);
    struct json_out o = json_out_to(&text);

    shape_put(&o, &shape_token, &result); /* a repeated request is not shown it again */
    c->kept = arena_dup(c->arena, buf_view(&text));
    buf_done(&text);
    result.token = token;
    call_reply(c, &shape_token, &result);
}

static enum tide_code rotate_token(struct call *c, struct tide_err *err)
{
    tide_session *session = NULL;
    char token[TIDE_TOKEN_SIZE];

    if (call_change(c, &session, NULL, err) ||
        tide_token_rotate(session, call_int(c, "deadline_ms", 0), call_int(c, "expires_ms", 0), token, err))
        return err->code;
    reply_token(c, session, token);
    explicit_bzero(token, sizeof token);
    return TIDE_OK;
}

/* ---- the answer of a client that has the token ---- */

static const struct field answer_body[] = {
    {.name = "session_id", .type = FIELD_ID, .help = "the session that waits", .required = true},
    {.name = "token", .type = FIELD_TEXT, .help = "of the wait", .required = true},
    {.name = "input", .type = FIELD_ANY, .help = "the answer", .required = true},
    {.name = "reason", .type = FIELD_TEXT, .help = "why it was approved or denied: stored with the answer"},
    {.name = NULL},
};

/* A client that has no token learns nothing, not even whether there is such a session. */
static enum tide_code check_token(struct call *c, tide_session **ret, struct tide_err *err)
{
    enum tide_code code = call_session(c, TIDE_SESSION_READ, ret, err);

    code = code ? code : resume_check_token(*ret, call_text(c, "token"), err);
    if (code != TIDE_NOT_FOUND && code != TIDE_TOKEN_FOREIGN)
        return code;
    *err = (struct tide_err){0};
    return tide_fail(err, TIDE_TOKEN_FOREIGN, "this is not the token of a wait of this session");
}

static enum tide_code answer_wait(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    tide_session *session = NULL;
    const char *reason = call_text(c, "reason");
    struct order o = {.request = &c->request,
                      .token = call_text(c, "token"),
                      .input = arena_dup(c->arena, call_json(c, "input")).ptr,
                      .has_reason = reason != NULL};

    o.session_id = call_text(c, "session_id");
    c->params[0] = str_from(o.session_id);
    if (check_token(c, &session, err) == TIDE_TOKEN_FOREIGN &&
        !rate_take(c->server->guesses, str_from(c->http ? c->http->peer : c->caller.name))) {
        *err = (struct tide_err){0};
        (void)!tide_fail(err, TIDE_BUSY, "too many wrong tokens came from here: try again in a moment");
        call_fail_as(c, 429, err);
        return TIDE_OK;
    }
    if (err->code || (reason && resume_give_reason(o.input, reason, &answer, err)))
        return err->code;
    call_close_session(c);
    if (reason)
        o.input = buf_cstr(&answer);
    return runner_run(c->server->runner, &o, answer_begun, c, err);
}

const struct route wait_routes[] = {
    {HTTP_POST, "/sessions/{id}/token", "wait.rotate", SCOPE_ANSWER, rotate_token,
     "create a new token for a wait, shown once; a wait whose token expired is opened again", .body = token_body,
     .answer = &shape_token},
    {HTTP_POST, "/waits/answer", "wait.answer", SCOPE_NONE, answer_wait,
     "answer a wait with the token of the wait alone", .body = answer_body, .answer = &shape_accepted, .status = 202,
     .flags = ROUTE_OPEN},
    {.method = 0},
};
