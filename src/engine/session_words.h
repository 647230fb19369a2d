/* SPDX-License-Identifier: Apache-2.0 */
/* What is derived from the info of a session, in a word or two: the same in every shape and on every screen. */
#ifndef ENGINE_SESSION_WORDS_H
#define ENGINE_SESSION_WORDS_H

#include <stdbool.h>

#include "tidemark.h"

/* False: it is so damaged that nobody knows how many events it has. */
bool session_is_known(const struct tide_session_info *info);

/* degraded: something of its latest run waited in memory while the store could not be written; else full. */
const char *session_durability(const struct tide_session_info *info);

/* A reason in people's words; one that is not Tidemark's as it is. NULL for NULL. */
const char *reason_words(const char *reason);

/* What came of a cancel, in one word: "forced". */
const char *cancelled_word(enum tide_cancelled how);

/* A status in one word: "interrupted". */
const char *status_word(enum tide_status status);

#define STATUS_SIZE 80
/* The codes: "idle, failed". */
const char *session_codes(char buf[STATUS_SIZE], const struct tide_session_info *info);
/* For people: "failed", "interrupted (its process ended)", "waiting (approval)". */
const char *session_status(char buf[STATUS_SIZE], const struct tide_session_info *info);

#endif
