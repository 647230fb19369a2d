/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that derives a status: a pure function of the state, the time, and whether the owner lives. */
#ifndef SESSION_STATUS_H
#define SESSION_STATUS_H

#include "session/state.h"

struct status {
    const char *status, *outcome, *reason; /* constant words, or texts of the state */
    bool is_resumable, needs_resume;
    char why[256];
};

void status_derive(struct status *ret, const struct state *state, bool owner_alive, int64_t now_ms);

/* True when `word` is one of a status or outcome, of Tidemark's words or those of graphs and task sessions. */
bool status_word_known(const char *word);
bool status_matches(const struct status *status, const char *word);

#endif
