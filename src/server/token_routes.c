/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of this server. The file is what counts: what is changed here or by `tidemark access` holds from the next request on, and
 * streams of a token that is gone end within a second. The caller that asks has every scope, so a token never makes one that may do more.
 */
#include "base/clock.h"
#include "server/access_view.h"
#include "server/call.h"
#include "server/server.h"

static void reply_access(struct call *c, const struct caller *token, const char *secret)
{
    struct access_view view;
    struct buf text = BUF_INIT(4096);
    struct json_out o = json_out_to(&text);

    access_view_of(&view, token, NULL);
    shape_put(&o, &shape_access, &view.shown);
    c->kept = arena_dup(c->arena, buf_view(&text)); /* a repeated request is not shown the secret again */
    buf_done(&text);
    view.shown.token = secret;
    call_reply(c, &shape_access, &view.shown);
}

static enum tide_code list_tokens(struct call *c, struct tide_err *err)
{
    struct access_views views;
    enum tide_code code = access_views_read(&views, err);

    if (!code)
        call_reply(c, &shape_accesses, &(struct accesses_listed){{access_views_write, &views}});
    access_views_done(&views);
    return code;
}

static const struct field create_body[] = {
    {.name = "name", .type = FIELD_TEXT, .help = "the name in the log of events that it caused", .required = true},
    {.name = "scopes", .type = FIELD_TEXTS, .help = "what it may do: " SCOPE_WORDS, .required = true},
    {.name = "expires_ms", .type = FIELD_INT, .help = "when it expires, as Unix time [never]", .min = 1},
    {.name = NULL},
};

/* "read,answer" of a list: each is looked up by its word. */
static enum tide_code take_scopes(struct call *c, unsigned *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf words = BUF_INIT(4096);

    for (const char *const *w = call_texts(c, "scopes"); *w; w++)
        buf_addf(&words, "%s,", *w);
    *ret = scopes_from(buf_view(&words));
    return *ret && !words.failed
               ? TIDE_OK
               : tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "scopes", "must be of: " SCOPE_WORDS);
}

static enum tide_code create_token(struct call *c, struct tide_err *err)
{
    char secret[ACCESS_SECRET_SIZE];
    struct caller made;
    int64_t expires_ms = call_int(c, "expires_ms", 0);
    unsigned scopes;

    if (take_scopes(c, &scopes, err))
        return err->code;
    if (expires_ms && expires_ms <= wall_ms())
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "expires_ms", ": this time is over already");
    if (access_create(call_text(c, "name"), scopes, expires_ms, secret, &made, err))
        return err->code;
    reply_access(c, &made, secret);
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

static enum tide_code rotate_token(struct call *c, struct tide_err *err)
{
    char secret[ACCESS_SECRET_SIZE];
    struct caller made;

    if (access_rotate(c->params[0].ptr, secret, &made, err))
        return err->code;
    reply_access(c, &made, secret);
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

static enum tide_code revoke_token(struct call *c, struct tide_err *err)
{
    if (access_revoke(c->params[0].ptr, err))
        return err->code;
    call_reply_nothing(c);
    return TIDE_OK;
}

const struct route token_routes[] = {
    {HTTP_GET, "/tokens", "token.list", SCOPE_ADMIN, list_tokens, "list the tokens of this server",
     .answer = &shape_accesses},
    {HTTP_POST, "/tokens", "token.create", SCOPE_ADMIN, create_token, "create a token, which is shown once",
     .body = create_body, .answer = &shape_access, .status = 201},
    {HTTP_POST, "/tokens/{name}/rotate", "token.rotate", SCOPE_ADMIN, rotate_token,
     "replace a token; the old one is revoked at once", .answer = &shape_access},
    {HTTP_DELETE, "/tokens/{name}", "token.revoke", SCOPE_ADMIN, revoke_token, "revoke a token at once", .status = 204},
    {.method = 0},
};
