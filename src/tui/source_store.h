/* SPDX-License-Identifier: Apache-2.0 */
/* Screens on a store of this machine, without a server. */
#ifndef TUI_SOURCE_STORE_H
#define TUI_SOURCE_STORE_H

#include "tui/source.h"

struct source_store_options {
    tide_store *store;
    const char *url, *config, *key_file; /* for the processes that what runs gets; NULL: not given */
    bool read_only;                      /* nothing can be carried out */
};

/* The store must stay. */
struct source *source_store_new(const struct source_store_options *opt);

/* A server in its place; the texts must stay. */
enum tide_code source_server_new(const char *url, const char *pin, struct source **ret, struct tide_err *err)
    MUST_CHECK;

void source_free(struct source *s); /* takes NULL */

#endif
