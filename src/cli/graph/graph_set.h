/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values for the memory of a graph, as people give them with --set:
 *
 *   KEY=TEXT      a text                     KEY:=JSON    any JSON
 *   KEY=@FILE     what the file holds        KEY=-        what standard input holds; once
 *   KEY=$NAME     a variable of the environment
 *   KEY==TEXT     the text as it is, also one that begins with @, - or $
 *
 * Behind := the last three give JSON. A newline at the end of a file is not part of the text.
 */
#ifndef CLI_GRAPH_GRAPH_SET_H
#define CLI_GRAPH_GRAPH_SET_H

#include "base/json.h"

#define GRAPH_SET_MAX ((size_t)16 << 20)  /* bytes of one value */
#define GRAPH_SETS_MAX ((size_t)64 << 20) /* of all of them */

/* A list ended by NULL, as one JSON object. TIDE_INVALID names the one that is wrong, never its value. */
enum tide_code graph_set_read(const char *const *sets, struct buf *ret_json, struct tide_err *err) MUST_CHECK;

/* What KEY=$NAME gives is a secret from here on: the store has just been opened. */
void graph_set_hide(const char *const *sets, tide_store *store);

/* Wipes it: it may hold secrets. */
void graph_set_done(struct buf *json);

#endif
