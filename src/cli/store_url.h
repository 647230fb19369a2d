/* SPDX-License-Identifier: Apache-2.0 */
/* Where the store is and what it is opened with: options, environment, config.json, the XDG base directories. */
#ifndef CLI_STORE_URL_H
#define CLI_STORE_URL_H

#include "base/buf.h"
#include "cli/cli.h"

#define STORE_KEY_MAX 64

/* The URL, as the library takes it. */
/* Whether this is the store that is used where nothing names one: the user's own, in the XDG data directory. */
bool store_url_is_default(const char *url);

enum tide_code store_url(const struct cli *cli, struct buf *ret_url, struct tide_err *err) MUST_CHECK;

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

/* The key of the digests; *ret_len 0: none was given. */
enum tide_code store_key(const struct args *args, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                         struct tide_err *err) MUST_CHECK;

/* The key that is in this file. */
enum tide_code store_key_file(const char *path, const char *from, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                              struct tide_err *err) MUST_CHECK;

/* The limit of one record: $TIDEMARK_MAX_RECORD_BYTES or the library's own. */
enum tide_code store_max_record(size_t *ret_bytes, struct tide_err *err) MUST_CHECK;

/*
 * How often a long-lived process recovers what others left: $TIDEMARK_SWEEP_INTERVAL (a duration; 0s: never), sweep_interval
 * of config.json, or 30 s.
 */
enum tide_code store_sweep_interval(const struct cli *cli, int64_t *ret_ms, struct tide_err *err) MUST_CHECK;

#endif
