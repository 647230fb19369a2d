/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resume tokens: "rt_<id>.<secret>". The secret has 256 bits, is shown once and never stored; the log holds its hash. What
 * became of a token is what the log says: minted, then consumed, revoked or expired.
 */
#ifndef SESSION_TOKEN_H
#define SESSION_TOKEN_H

#include "session/event_draft.h"
#include "session/session.h"

#define TOKEN_HASH_SIZE 65 /* hex and NUL */

struct token {
    char id[TIDE_ID_SIZE];
    char hash[TOKEN_HASH_SIZE];
    char text[TIDE_TOKEN_SIZE]; /* with the secret */
};

void token_make(struct store *store, struct token *ret_token);
void token_forget(struct token *token); /* wipes it */

/* token.minted, for a wait of this kind; a wait of run_id. */
void token_minted(struct draft *d, const struct token *token, const char *run_id, const char *wait_kind,
                  int64_t expires_ms);
/* token.consumed, revoked, expired; nothing unless the run's token is active. */
void token_moved(struct draft *d, const char *kind, const struct run *run, const char *reason, const char *request_id);

/*
 * May the bearer of `text` answer the wait of this session, now? TIDE_TOKEN_MALFORMED, _FOREIGN, _CONSUMED, _REVOKED,
 * _EXPIRED. When it was consumed by this very request, TIDE_OK and *ret_answered_seq is where (else 0).
 */
enum tide_code token_validate(struct tide_session *s, struct str text, const char *request_id, int64_t now_ms,
                              int64_t *ret_answered_seq, struct tide_err *err) MUST_CHECK;

#endif
