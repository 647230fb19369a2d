/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns, regular expressions and globs alike, by PCRE2 with limits: no pattern and no text can take for ever. */
#ifndef AGENT_MATCH_H
#define AGENT_MATCH_H

#include "base/err.h"
#include "base/str.h"

struct match;

enum match_flags { MATCH_IGNORE_CASE = 1 };

/* A regular expression. TIDE_INVALID says what is wrong and at which character. */
enum tide_code match_regex(struct str pattern, int flags, struct match **ret_match, struct tide_err *err) MUST_CHECK;

/* A glob over paths: *, ?, [a-z], {a,b}, and ** for any number of directories. Matches whole paths. */
enum tide_code match_glob(struct str pattern, struct match **ret_match, struct tide_err *err) MUST_CHECK;

void match_free(struct match *m);
static inline void match_freep(struct match **m)
{
    match_free(*m);
}

enum match_answer {
    MATCH_NO,
    MATCH_YES,
    MATCH_MORE, /* of match_could(): not this, but what continues from it may */
    MATCH_HARD, /* the limits were reached */
};

/* *ret_at (may be NULL): where it begins. */
enum match_answer match_find(struct match *m, struct str text, size_t *ret_at);

/* Whether a path that begins with `text` can match. */
enum match_answer match_could(struct match *m, struct str text);

#endif
