/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which store the tests run on: SQLite, or the one that TIDEMARK_TEST_STORE names. A test asks here for the URL of its store; one
 * that speaks of what a store does not have by design asks for that, and is left out by name.
 */
#ifndef TESTS_STORE_KIND_H
#define TESTS_STORE_KIND_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The user's own key, where a test opens its store beneath the library: the same in every simulated process. */
#define TEST_KEY "a key for tests alone"

static const struct store_kind {
    const char *name, *scheme, *suffix;
    bool positions; /* one number for the events of all sessions: tide_store_read() works */
    bool one_file;  /* a SQLite database: SQL, write-ahead log, big values by content */
} store_kinds[] = {
    {"sqlite", "sqlite:", ".db", true, true},
    {"files", "files:", "", false, false},
};

/* A name that is none must not look like a run on the store that was meant. */
static inline const struct store_kind *store_kind(void)
{
    const char *name = getenv("TIDEMARK_TEST_STORE");

    for (size_t i = 0; i < sizeof store_kinds / sizeof store_kinds[0]; i++) {
        if (!name || !name[0] || strcmp(name, store_kinds[i].name) == 0)
            return &store_kinds[i];
    }
    fprintf(stderr, "TIDEMARK_TEST_STORE is '%s': give sqlite or files\n", name);
    exit(2);
}

static inline bool on_files(void)
{
    return !store_kind()->one_file;
}

/* Of the store `name` in the directory. */
static inline const char *store_url_in(char *out, size_t size, const char *dir, const char *name)
{
    const struct store_kind *kind = store_kind();

    snprintf(out, size, "%s%s/%s%s", kind->scheme, dir, name, kind->suffix);
    return out;
}

/* The path in a URL. */
static inline const char *store_path(const char *url)
{
    return strchr(url, ':') + 1;
}

#endif
