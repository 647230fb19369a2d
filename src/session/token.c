/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minting and checking resume tokens. The state knows the token of the latest wait; for any other the log is asked, so that
 * one that was used or revoked long ago is distinguished from one that was never ours.
 */
#include "session/token.h"

#include "base/invariant.h"
#include "base/timefmt.h"
#include "session/settle.h"

#define SECRET_BYTES 32
#define SECRET_VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define SECRET_TEXT (sodium_base64_ENCODED_LEN(SECRET_BYTES, SECRET_VARIANT)) /* with NUL */

static void hash_secret(char out[TOKEN_HASH_SIZE], const unsigned char secret[SECRET_BYTES])
{
    unsigned char digest[DIGEST_SIZE];

    digest_of(digest, (struct str){(const char *)secret, SECRET_BYTES});
    hex_encode(out, digest, DIGEST_SIZE);
}

void token_make(struct store *store, struct token *t)
{
    unsigned char secret[SECRET_BYTES];
    char text[SECRET_TEXT];
    int len;

    store->env->ops->random(store->env, secret, sizeof secret);
    session_make_id(store, "rt", t->id);
    hash_secret(t->hash, secret);
    sodium_bin2base64(text, sizeof text, secret, sizeof secret, SECRET_VARIANT);
    len = snprintf(t->text, sizeof t->text, "%.40s.%s", t->id, text);
    INVARIANT(len < (int)sizeof t->text);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(text, sizeof text);
}

void token_forget(struct token *t)
{
    sodium_memzero(t, sizeof *t);
}

void token_minted(struct draft *d, const struct token *t, const char *run_id, const char *wait_kind, int64_t expires_ms)
{
    draft_open(d, "token.minted");
    draft_text(d, "token_id", t->id);
    draft_text(d, "run_id", run_id);
    draft_text(d, "wait_kind", wait_kind);
    draft_time(d, "expires_at", expires_ms);
    draft_text(d, "secret_hash", t->hash);
    draft_close(d);
}

void token_moved(struct draft *d, const char *kind, const struct run *r, const char *reason, const char *request_id)
{
    if (r->token != TOKEN_ACTIVE)
        return;
    draft_open(d, kind);
    draft_text(d, "token_id", r->token_id);
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "wait_kind", r->wait_kind);
    draft_text(d, "reason", reason);
    draft_text(d, "request_id", request_id);
    draft_close(d);
}

/* What the log says of one token. */
struct fate {
    struct str id;
    const char *request_id;
    bool minted;
    enum token_state state;
    char hash[TOKEN_HASH_SIZE];
    int64_t answered_seq; /* consumed by this request */
    struct arena arena;
};

static int look_at_event(void *arg, const struct event *ev)
{
    struct fate *f = arg;
    struct json *body;
    struct str hash;

    if (!str_starts(ev->kind, STR("token.")))
        return 0;
    arena_reset(&f->arena);
    if (json_parse(&f->arena, ev->body, NULL, &body, NULL, NULL) ||
        !str_eq(json_get_text(&f->arena, body, STR("token_id")), f->id))
        return 0;
    if (str_eq(ev->kind, STR("token.minted"))) {
        hash = json_get_text(&f->arena, body, STR("secret_hash"));
        f->minted = true;
        f->state = TOKEN_ACTIVE;
        snprintf(f->hash, sizeof f->hash, "%.*s", STR_ARG(hash));
    } else if (str_eq(ev->kind, STR("token.consumed"))) {
        f->state = TOKEN_CONSUMED;
        if (f->request_id && str_eq(json_get_text(&f->arena, body, STR("request_id")), str_from(f->request_id)))
            f->answered_seq = ev->seq + 1; /* run.resumed comes with it */
    } else {
        f->state = str_eq(ev->kind, STR("token.revoked")) ? TOKEN_REVOKED : TOKEN_EXPIRED;
    }
    return 0;
}

static enum tide_code find_fate(struct tide_session *s, struct fate *f, struct tide_err *err)
{
    const struct run *r = &s->state->ledger.run;
    enum tide_code code;

    if (r->token_id && str_eq(f->id, str_from(r->token_id)) && r->token != TOKEN_CONSUMED) {
        f->minted = r->token_hash != NULL;
        f->state = r->token;
        snprintf(f->hash, sizeof f->hash, "%s", r->token_hash ? r->token_hash : "");
        return TIDE_OK;
    }
    code = store_read(s->store, &s->head, s->head.first_seq, 0, look_at_event, f, err);
    arena_done(&f->arena);
    return code;
}

static enum tide_code split_token(struct str text, struct str *ret_id, unsigned char secret[SECRET_BYTES],
                                  struct tide_err *err)
{
    const char *dot = text.len ? memchr(text.ptr, '.', text.len) : NULL;
    size_t n = 0, rest = dot ? (size_t)(text.ptr + text.len - dot - 1) : 0;

    if (!str_starts(text, STR("rt_")) || !dot || rest != SECRET_TEXT - 1 ||
        sodium_base642bin(secret, SECRET_BYTES, dot + 1, rest, NULL, &n, NULL, SECRET_VARIANT) || n != SECRET_BYTES)
        return tide_fail(err, TIDE_TOKEN_MALFORMED,
                         "this is not a resume token: it has the form rt_<id>.<secret>: give it as it was shown");
    *ret_id = (struct str){text.ptr, (size_t)(dot - text.ptr)};
    if (!str_is_id(*ret_id))
        return tide_fail(err, TIDE_TOKEN_MALFORMED, "this is not a resume token: its id is not one");
    return TIDE_OK;
}

/* It cannot be used any more: a new one can be minted while there is something to answer. */
static enum tide_code refuse_token(struct tide_session *s, enum tide_code code, const char *why, struct tide_err *err)
{
    const struct run *r = &s->state->ledger.run;
    enum tide_on_deadline past = settle_deadline(r, env_now_ms(s->store->env));
    bool open = r->waiting && !r->due_ms && (r->end == RUN_OPEN || r->end == RUN_INTERRUPTED) &&
                past != TIDE_ON_DEADLINE_DEFAULT && past != TIDE_ON_DEADLINE_FAIL;

    tide_fail(err, code, "%s%s", why, open ? "" : ": there is nothing to answer any more");
    return open ? tide_hint(err, TIDE_ACTION_ROTATE_TOKEN, s->head.id) : code;
}

static enum tide_code token_verdict(struct tide_session *s, const struct fate *f, int64_t now_ms, struct tide_err *err)
{
    const struct run *r = &s->state->ledger.run;

    if (f->state == TOKEN_CONSUMED)
        return tide_fail(err, TIDE_TOKEN_CONSUMED, "the token was used already: it works once");
    if (f->state == TOKEN_REVOKED)
        return refuse_token(s, TIDE_TOKEN_REVOKED, "the token was revoked", err);
    if (f->state == TOKEN_EXPIRED || (r->token_expires_ms && r->token_expires_ms <= now_ms))
        return refuse_token(s, TIDE_TOKEN_EXPIRED, "the token has expired", err);
    if (r->deadline_ms && r->deadline_ms <= now_ms)
        return refuse_token(s, TIDE_TOKEN_EXPIRED, "the token has expired, the deadline of the wait has passed", err);
    if (r->end != RUN_OPEN || !r->waiting)
        return refuse_token(s, TIDE_TOKEN_REVOKED, "the wait it was for has ended", err);
    return TIDE_OK;
}

static enum tide_code check_token(struct tide_session *s, struct str text, const char *request_id, int64_t now_ms,
                                  int64_t *ret_answered_seq, struct tide_err *err)
{
    unsigned char secret[SECRET_BYTES];
    char hash[TOKEN_HASH_SIZE];
    struct fate f = {.request_id = request_id, .arena = ARENA_INIT};
    enum tide_code code = split_token(text, &f.id, secret, err);

    *ret_answered_seq = 0;
    if (code)
        return code;
    hash_secret(hash, secret);
    sodium_memzero(secret, sizeof secret);
    code = find_fate(s, &f, err);
    if (code)
        return code;
    if (!f.minted || sodium_memcmp(hash, f.hash, TOKEN_HASH_SIZE - 1) != 0)
        return tide_fail(err, TIDE_TOKEN_FOREIGN, "the token is not one of session '%s': it belongs to something else",
                         s->head.id);
    *ret_answered_seq = f.answered_seq;
    return f.answered_seq ? TIDE_OK : token_verdict(s, &f, now_ms, err);
}

enum tide_code token_validate(struct tide_session *s, struct str text, const char *request_id, int64_t now_ms,
                              int64_t *ret_answered_seq, struct tide_err *err)
{
    if (check_token(s, text, request_id, now_ms, ret_answered_seq, err))
        return tide_about_session(err, s->head.id);
    return TIDE_OK;
}
