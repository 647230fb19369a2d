/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signing in: the process that has a token, or is the server's own user, gets a code; the process that has the code gets a token of its own, once. A page
 * gets the code in the fragment of its address, which is sent to nobody. Nothing secret is in a URL that is sent, or stored: an answer
 * that is repeated is without it.
 */
#include "base/clock.h"
#include "engine/store_url.h"
#include "server/access_view.h"
#include "server/call.h"
#include "server/server.h"

/* ---- a code ---- */

static const struct field codes_body[] = {
    {.name = "scopes",
     .type = FIELD_TEXT,
     .help = "scopes of the new token, separated by commas: some of those of the token in use [all of them]"},
    {.name = NULL},
};

static enum tide_code take_scopes(struct call *c, unsigned *ret, struct tide_err *err)
{
    const char *given = call_text(c, "scopes");

    *ret = given ? scopes_from(str_from(given)) : c->caller.scopes;
    if (!*ret)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "scopes", "must be of: " SCOPE_WORDS);
    if (*ret & ~c->caller.scopes)
        return tide_fail_of(err, TIDE_DENIED, TIDE_SUBJECT_ARGUMENT, "scopes",
                            "must be some of what this token may do");
    return TIDE_OK;
}

static void reply_code(struct call *c, const char *code)
{
    const char *page = server_console_url(c->server, c->arena);
    struct signin_code_shown shown = {.expires_ms = wall_ms() + SIGNIN_CODE_MS};
    struct buf text = BUF_INIT(4096);
    struct json_out o = json_out_to(&text);

    shape_put(&o, &shape_signin_code, &shown);
    c->kept = arena_dup(c->arena, buf_view(&text));
    buf_done(&text);
    shown.code = code;
    shown.url = page ? arena_printf(c->arena, "%s#code=%s", page, code) : NULL;
    call_reply(c, &shape_signin_code, &shown);
}

static enum tide_code make_code(struct call *c, struct tide_err *err)
{
    char code[SIGNIN_CODE_SIZE];
    unsigned scopes;

    if (take_scopes(c, &scopes, err))
        return err->code;
    if (signin_make(c->server->signin, &c->caller, scopes, monotonic_ms(), code, err)) {
        call_fail_as(c, 429, err);
        return TIDE_OK;
    }
    reply_code(c, code);
    explicit_bzero(code, sizeof code);
    return TIDE_OK;
}

/* ---- a token for it ---- */

static const struct field signin_body[] = {
    {.name = "code", .type = FIELD_TEXT, .help = "the code, as it was shown", .required = true},
    {.name = "name",
     .type = FIELD_TEXT,
     .help = "of the token: the name in the log of events that it caused [console-XXXX]"},
    {.name = NULL},
};

static void refuse_code(struct call *c, enum signin_verdict verdict)
{
    struct str who = c->http ? str_from(c->http->peer) : str_from(c->caller.name);
    struct tide_err err = {0};
    int status = verdict == SIGNIN_OVER ? 410 : 401;

    if (status == 401 && !rate_take(c->server->guesses, who))
        status = 429;
    (void)!tide_fail(&err, status == 429 ? TIDE_BUSY : TIDE_DENIED, "%s",
                     status == 429   ? "too many wrong codes came from this address: try again in a moment"
                     : status == 410 ? "this code was used already, or is older than a minute: ask for another one"
                                     : "this code is none of this server: ask for another one");
    if (status == 401)
        call_field(c, "WWW-Authenticate", "Bearer");
    call_fail_as(c, status, &err);
}

static void reply_token(struct call *c, const struct caller *token, const char *secret)
{
    struct access_view view;
    struct buf text = BUF_INIT(4096);
    struct json_out o = json_out_to(&text);

    access_view_of(&view, token, NULL);
    shape_put(&o, &shape_access, &view.shown);
    c->kept = arena_dup(c->arena, buf_view(&text));
    buf_done(&text);
    view.shown.token = secret;
    call_reply(c, &shape_access, &view.shown);
}

static enum tide_code sign_in(struct call *c, struct tide_err *err)
{
    struct signin *s = c->server->signin;
    struct str code = str_from(call_text(c, "code"));
    char secret[ACCESS_SECRET_SIZE];
    enum signin_verdict verdict;
    struct caller by, made;
    unsigned scopes = 0;

    verdict = signin_use(s, code, monotonic_ms(), &by, &scopes);
    if (verdict != SIGNIN_OK) {
        refuse_code(c, verdict);
        return TIDE_OK;
    }
    if (access_sign_in(&by, call_text(c, "name"), scopes, wall_ms() + SIGNIN_TOKEN_MS, secret, &made, err)) {
        signin_give_back(s, code);
        return err->code;
    }
    reply_token(c, &made, secret);
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

/* ---- the caller that asks ---- */

/* The token that commands of this user have is not a page's to end. */
static enum tide_code is_own_token(struct call *c, bool *ret, struct tide_err *err)
{
    char secret[ACCESS_SECRET_SIZE];
    struct caller own;
    enum tide_code code = access_read_own(secret, err);

    *ret = !code && secret[0] && access_check(c->server->access, str_from(secret), &own) &&
           strcmp(own.id, c->caller.id) == 0;
    explicit_bzero(secret, sizeof secret);
    return code;
}

static enum tide_code show_me(struct call *c, struct tide_err *err)
{
    const char *url = c->server->opt.runs.url, *words[6];
    bool is_own = false, is_local = !c->caller.id[0];
    struct me_shown me = {.name = c->caller.name,
                          .scopes = words,
                          .expires_ms = c->caller.expires_ms,
                          .is_local = is_local,
                          .version = tide_version(),
                          .store = {.url = url, .kind = store_url_is_files(url) ? "files" : "sqlite"}};

    if (!is_local && is_own_token(c, &is_own, err))
        return err->code;
    scopes_list(c->caller.scopes, words);
    me.revocable = !is_local && !is_own;
    call_reply(c, &shape_me, &me);
    return TIDE_OK;
}

static enum tide_code end_me(struct call *c, struct tide_err *err)
{
    bool is_own = false;

    if (!c->caller.id[0])
        return tide_fail(err, TIDE_DENIED, "on the unix socket there is no token that could end");
    if (is_own_token(c, &is_own, err))
        return err->code;
    if (is_own)
        return tide_fail(err, TIDE_DENIED,
                         "this token is the one of commands of the server's own user, and is ended by them alone");
    if (access_revoke_id(c->caller.id, err) && err->code != TIDE_NOT_FOUND) /* it has ended meanwhile */
        return err->code;
    call_reply_nothing(c);
    return TIDE_OK;
}

const struct route signin_routes[] = {
    {HTTP_POST, "/signin", "signin.use", SCOPE_NONE, sign_in, "sign in with a code: creates a token, shown once",
     .body = signin_body, .answer = &shape_access, .status = 201, .flags = ROUTE_OPEN},
    {HTTP_POST, "/signin/codes", "signin.code", SCOPE_READ, make_code,
     "create a code to sign in with, once, within a minute", .body = codes_body, .answer = &shape_signin_code,
     .status = 201},
    {HTTP_GET, "/me", "me.get", SCOPE_READ, show_me, "show the token in use, and the server", .answer = &shape_me},
    {HTTP_DELETE, "/me", "me.end", SCOPE_READ, end_me,
     "revoke the token in use, and tokens that were created with its codes", .status = 204},
    {.method = 0},
};
