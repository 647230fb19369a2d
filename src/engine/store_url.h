/* SPDX-License-Identifier: Apache-2.0 */
/* Where the store is and what it is opened with: what is given, environment, config.json, the XDG base directories. */
#ifndef ENGINE_STORE_URL_H
#define ENGINE_STORE_URL_H

#include "base/buf.h"
#include "base/err.h"

#define STORE_KEY_MAX 64

/* Whether this is the store that is used where nothing names one: the user's own, in the XDG data directory. */
bool store_url_is_default(const char *url);

/* The URL, as the library takes it: the one that is given, TIDEMARK_STORE, `store` of the settings, the default one. */
enum tide_code store_url(const char *given, const char *config, struct buf *ret_url, struct tide_err *err) MUST_CHECK;

/* Refuses what cannot be meant as a store. */
enum tide_code store_url_check(const char *given, const char *from, struct tide_err *err) MUST_CHECK;

/* The same of a store that is named otherwise; `from` is what named it, for messages. */
enum tide_code store_url_given(const char *given, const char *from, struct buf *ret_url, struct tide_err *err)
    MUST_CHECK;

/* Whether it is a store of plain files. */
bool store_url_is_files(const char *url);

/* Length of "scheme:" at the start; 0 when it is a plain path. */
size_t store_url_scheme(const char *url);

/* The path of the file behind a URL that store_url() gave. */
const char *store_url_path(const char *url);

/*
 * The key of the digests: from the descriptor (-1: none is given), the file (NULL: the same) or the environment. *ret_len 0:
 * none was given.
 */
enum tide_code store_key(const char *key_file, int key_fd, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                         struct tide_err *err) MUST_CHECK;

/* The key that is in this file. */
enum tide_code store_key_file(const char *path, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                              struct tide_err *err) MUST_CHECK;

/* The limit of one record: $TIDEMARK_MAX_RECORD_BYTES or the library's own. */
enum tide_code store_max_record(size_t *ret_bytes, struct tide_err *err) MUST_CHECK;

#endif
