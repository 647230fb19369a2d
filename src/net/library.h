/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are loaded by name when they are first needed, because most commands need none of them and would wait for them. */
#ifndef NET_LIBRARY_H
#define NET_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

struct library_symbol {
    const char *name;
    void **slot;
};

struct library {
    const char *name, *package,
        *what; /* "libmicrohttpd.so.12", the Debian package that brings it, what cannot be done without it */
    const struct library_symbol *symbols;
    size_t n;
    pthread_mutex_t mu;
    bool loaded;
};

#define LIBRARY_SYMBOL(table, prefix, name)                                                                            \
    {                                                                                                                  \
        prefix #name, (void **)&table.name                                                                             \
    }

/* TIDE_FAILED says which package brings it. What is loaded stays; a second call does nothing. */
enum tide_code library_load(struct library *l, struct tide_err *err) MUST_CHECK;

#endif
