/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: which config file, opened once, and the log as it and the options want it. */
#ifndef ENGINE_SETTINGS_H
#define ENGINE_SETTINGS_H

#include "engine/config.h"
#include "engine/findings.h"
#include "base/mem.h"

struct settings {
    char *path; /* of the file, whether there is one or not */
    bool named; /* by --config or TIDEMARK_CONFIG: then it must be there */
    struct config *config;
};

/*
 * Only which file: the one that was named (--config FILE; NULL: none; the same everywhere here), TIDEMARK_CONFIG, the XDG config
 * directory.
 */
enum tide_code settings_find(const char *file, struct settings *ret_settings, struct tide_err *err) MUST_CHECK;

/* Finds and opens it; A file that was named and is not there is TIDE_NOT_FOUND. */
enum tide_code settings_open(const char *file, config_warn_fn *warn, void *arg, struct settings *ret_settings,
                             struct tide_err *err) MUST_CHECK;
void settings_done(struct settings *s);

/*
 * What the file says of one key, for commands that need nothing else of it: only this key is looked at, and nothing is said
 * of the others. *ret_text: a text as it is, else JSON; NULL when it says nothing; the caller frees it. A path is as of settings_path(), its scheme kept.
 */
enum tide_code settings_one(const char *file, const char *key, char **ret_text, struct tide_err *err) MUST_CHECK;
enum tide_code settings_one_path(const char *file, const char *key, char **ret_path, struct tide_err *err) MUST_CHECK;

/* The same, unless TIDEMARK_<KEY> is set. ret_from: which of them said it, for messages. */
#define SETTINGS_FROM_SIZE 96
enum tide_code settings_word(const char *file, const char *key, char **ret_text, char ret_from[SETTINGS_FROM_SIZE],
                             struct tide_err *err) MUST_CHECK;

/* TIDEMARK_ON_STORE_ERROR or on_store_error: whether a run continues in memory. */
enum tide_code settings_on_store_error(const char *file, bool *ret_continue, struct tide_err *err) MUST_CHECK;

/*
 * How often a long-lived process recovers what others left: TIDEMARK_SWEEP_INTERVAL (a duration; 0s: never), sweep_interval of
 * config.json, or 30 s.
 */
enum tide_code settings_duration(const char *file, const char *key, int64_t otherwise_ms, int64_t *ret_ms,
                                 struct tide_err *err) MUST_CHECK; /* the same of any key that is a duration */
enum tide_code settings_sweep_interval(const char *file, int64_t *ret_ms, struct tide_err *err) MUST_CHECK;

/*
 * The key that api_key refers to, for the caller that hides it; nothing when there is none or it cannot be read. Not that of the
 * keychain: looking there may ask somebody to unlock it.
 */
void settings_key(const char *file, struct buf *ret_key);

/* A path of the config as people write it: "~/" is the home, and what is relative is beside the config file. The caller frees it. */
char *settings_path(const struct settings *s, const char *path);

/* The whole of a file that the config names, at most 1 MiB. */
enum tide_code settings_read(const struct settings *s, const char *key, struct buf *ret_text, struct tide_err *err)
    MUST_CHECK;

/*
 * Changes one key in the file, as config_set() does, after what only agents understand was looked at. And: everything that is
 * wrong with the settings, and the settings as far as they can be read; both are the caller's.
 */
enum tide_code settings_set(const char *file, const char *key, const char *value, struct tide_err *err) MUST_CHECK;
enum tide_code settings_check(const char *file, bool verbose, const char *format, struct settings *ret,
                              struct check_report *ret_report, struct tide_err *err) MUST_CHECK;

/*
 * The log as log_level, log_format (unless `format` is one) and log_file say. log_file is made (0600) and appended to. As text on
 * standard error it has no errors, and warnings with the rest: the command says them itself. _alone: of the file nothing else is looked at.
 */
enum tide_code settings_log_alone(const char *file, bool verbose, const char *format, int64_t (*now_ms)(void),
                                  struct tide_err *err) MUST_CHECK;
enum tide_code settings_log(const struct settings *s, bool verbose, const char *format, int64_t (*now_ms)(void),
                            struct tide_err *err) MUST_CHECK;

#endif
