/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes to sign in with: each is good once, within a minute, for a token with the scopes that it was made for. They live in memory alone.
 * A code is what stands in the fragment of a URL, which no browser sends.
 */
#ifndef SERVER_SIGNIN_H
#define SERVER_SIGNIN_H

#include "server/access.h"

#define SIGNIN_CODE_SIZE 23                  /* 16 random bytes as base64, and NUL */
#define SIGNIN_CODE_MS 60000                 /* so long a code can be used, */
#define SIGNIN_TOKEN_MS (12 * 3600 * 1000LL) /* and the token that it becomes */
#define SIGNIN_CODES_MAX 16                  /* at once; who may do everything gets one all the same */
#define SIGNIN_CODES_EACH 4                  /* … of one caller, whose oldest one makes room */

struct signin;
struct signin *signin_new(void);
void signin_free(struct signin *s); /* takes NULL */

/* Times are of the monotonic clock. All from any thread. */

/* TIDE_BUSY: there are too many. */
enum tide_code signin_make(struct signin *s, const struct caller *by, unsigned scopes, int64_t now_ms,
                           char ret_code[SIGNIN_CODE_SIZE], struct tide_err *err) MUST_CHECK;

enum signin_verdict { SIGNIN_OK, SIGNIN_UNKNOWN, SIGNIN_OVER }; /* over: it was used, or its minute is */

/* Uses it: nobody else can. *ret_by allowed it, and for what (`scopes`). */
enum signin_verdict signin_use(struct signin *s, struct str code, int64_t now_ms, struct caller *ret_by,
                               unsigned *ret_scopes);
/* What it was used for failed: it can be used again. */
void signin_give_back(struct signin *s, struct str code);

#endif
