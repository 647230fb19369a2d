/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that derives a status: a pure function of the state, the time, and whether the owner lives. */
#ifndef SESSION_STATUS_H
#define SESSION_STATUS_H

#include "session/action.h"
#include "session/state.h"

#define STATUS_WHY 1024
#define STATUS_NEXT 6 /* actions at most */

struct status {
    enum tide_session_kind kind;
    enum tide_status status;
    enum tide_outcome outcome;
    const char *reason;                    /* a constant word, or a text of the state */
    const char *graph_status, *task_state; /* the same in the words of graphs and of task sessions */
    bool is_resumable, needs_resume;       /* a person may resume it; it stands still until somebody does */
    bool untrusted;                        /* … and trusts it first */
    char why[STATUS_WHY];                  /* one sentence */
    struct action next[STATUS_NEXT];       /* what moves it, the likeliest first */
    size_t next_count;
};

void status_derive(struct status *ret, const struct state *state, bool owner_alive, int64_t now_ms);

/* Who stands behind it. */
struct status_alive {
    bool owner;  /* the process that holds it */
    int64_t pid; /* a program of its last run that lives on, while nobody holds it: it cannot be resumed; 0: none */
    const char *step; /* which step it is of; NULL: of none */
};
void status_derive_alive(struct status *ret, const struct state *state, const struct status_alive *alive,
                         int64_t now_ms);

/* The same, and whether a program of its last run still lives: what `why` says and what a resume does are one truth. */
struct store;
struct tide_session;
void status_of_session(struct status *ret, struct store *store, const struct state *state, bool owner_alive);

/* Why a run was interrupted, in words; NULL: there are none for it. */
const char *status_reason_sentence(const char *reason);

/* How it stands, in a few words, for an error: "its last run failed". */
const char *status_in_short(const struct status *status);

/* The same as its handle has it, and whether it may move at all (session_list.c). */
enum tide_code session_derive_status(struct tide_session *s, struct status *ret, struct tide_err *err) MUST_CHECK;

/* What it ran last; of one that was begun, and killed before anything ran: what it was made for. The only place that decides it. */
enum tide_session_kind session_kind(const struct state *state);
bool status_is_new_graph(const struct state *state); /* made for a graph, and nothing has run */

/* Of one that came from elsewhere: nothing moves it before somebody trusts it. */
void status_untrusted(struct status *status);

/* Of a session whose log cannot be read. */
void status_damaged(struct status *ret, const char *why);

/* True when `word` is one of a status or outcome, of Tidemark's words or those of graphs and task sessions. */
bool status_word_known(const char *word);
bool status_matches(const struct status *status, const char *word);

#endif
