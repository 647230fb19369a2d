/* SPDX-License-Identifier: Apache-2.0 */
/* What is carried out on a store: through the engine, and what runs in a process of its own. */
#ifndef TUI_STORE_ACTS_H
#define TUI_STORE_ACTS_H

#include "base/json.h"
#include "tui/source_store.h"

/* `stop`: readable once nobody waits any more for what runs; it continues. */
enum tide_code store_act(tide_store *store, const struct source_store_options *opt, int stop, const struct act *act,
                         struct acted *ret, struct tide_err *err) MUST_CHECK;

/* TIDE_NOT_FOUND: there is no session of this whole id; the library would take a prefix of another one's. */
enum tide_code store_check_whole(tide_store *store, const char *id, struct tide_err *err) MUST_CHECK;

/* What a resume would do, as JSON; nothing is written. */
enum tide_code store_plan(tide_store *store, const struct source_store_options *opt, const struct ask *ask,
                          struct json_out *o, struct tide_err *err) MUST_CHECK;

#endif
