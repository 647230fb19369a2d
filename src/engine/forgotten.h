/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings of the doctor that a person has seen and accepts: they are not shown again until they change. The list is
 * doctor-forgotten.jsonl in the state directory, a line for each finding with the store, the check, what it is about and a
 * digest of how it stood.
 */
#ifndef ENGINE_FORGOTTEN_H
#define ENGINE_FORGOTTEN_H

#include "base/err.h"
#include "engine/findings.h"

/*
 * Findings are named "CHECK" (all that it found) or "CHECK:ABOUT". Only warnings can be forgotten, and failures that are
 * about one thing, a session say: not that the store does not open.
 */
size_t forgotten_count(const struct findings *f, const char *name);

/* Marks what is on the list, and counts again whether anything fails. */
enum tide_code forgotten_mark(const char *store, struct check_report *r, struct tide_err *err) MUST_CHECK;

/*
 * Forgets the findings of these names, or shows them again: all of them, or with an error none. On disk when it returns, and
 * marked. `whole`: everything was looked at, so what is on the list and was not found is over.
 */
struct forgotten_change {
    const char *const *names; /* ended by NULL */
    bool forget, whole;
};
enum tide_code forgotten_change(const char *store, const struct forgotten_change *change, struct check_report *r,
                                struct tide_err *err) MUST_CHECK;

/* Takes the marked ones out of the report. */
void forgotten_hide(struct check_report *r);

#endif
