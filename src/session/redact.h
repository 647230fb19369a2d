/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known secrets at the one place that everything passes on its way into a store: event_check(). What is replaced there is
 * marked: the event has "redacted": true. The caller that keeps an event in memory before it is appended (a run, an agent, a graph)
 * calls the same beforehand, so that what is kept is what is stored.
 */
#ifndef SESSION_REDACT_H
#define SESSION_REDACT_H

#include "base/json.h"
#include "session/event_draft.h"
#include "session/kinds.h"
#include "store/store.h"

/*
 * Adds a value to what the store hides. TIDE_INVALID: too short or too long, or part of a word that the log is made of (the
 * name of an event or of a field, a status): the log could not be read without it. TIDE_TOO_BIG: there are too many.
 */
enum tide_code redact_add(struct store *store, struct str name, struct str value, struct tide_err *err) MUST_CHECK;

/*
 * Every text in a JSON value, and a number that is the value itself, of what one run alone was given: nobody else is to miss it when
 * that is over. What cannot be hidden is passed over. TIDE_TOO_BIG: there is no room for one, which would be stored then.
 */
struct hidden_values {
    struct str *at; /* malloc */
    size_t n, cap;
};
enum tide_code redact_hold_json(struct store *store, struct hidden_values *held, struct str name, struct str json,
                                struct tide_err *err) MUST_CHECK;
void redact_release(struct store *store, struct hidden_values *held);

/* The variables whose names hold KEY, TOKEN, SECRET or PASSWORD, but for those that TIDEMARK_NOT_SECRET names. */
void redact_add_environment(struct store *store, char *const *env);

/* One that was given to a run by its name, whatever that holds; but for those that TIDEMARK_NOT_SECRET names. `json`: every text in it. */
void redact_add_variable(struct store *store, struct str name, const char *variable, bool json);

/* True: *body held a secret, and is one without it now, in the arena. */
bool redact_event(struct store *store, struct arena *a, struct str kind, struct str *body);
void redact_draft(struct store *store, struct draft *d);
void redact_latest(struct store *store, struct draft *d);                 /* the last event of it alone */
bool redact_json(struct store *store, struct arena *a, struct str *json); /* one value, without a mark */

/* The text, or one in the arena without what it held. */
struct str redact_text(struct store *store, struct arena *a, struct str text);

/* Names that the log knows things by cannot be replaced: TIDE_INVALID when one holds a secret. */
enum tide_code redact_refuse_name(struct store *store, const char *what, const char *name, struct tide_err *err)
    MUST_CHECK;

/* A stored value with a mark, in an event with that flag: the original is not known any more. */
bool redact_is_marked(const struct json *event, struct str part);

#endif
