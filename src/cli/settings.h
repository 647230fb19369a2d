/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a command: which config file, opened once, and the log as it and the options want it. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "agent/config.h"
#include "cli/cli.h"

struct settings {
    char *path; /* of the file, whether there is one or not */
    bool named; /* by --config or TIDEMARK_CONFIG: then it must be there */
    struct config *config;
};

/* Only which file: --config FILE, TIDEMARK_CONFIG, the XDG config directory. */
enum tide_code settings_find(const struct cli *cli, struct settings *ret_settings, struct tide_err *err) MUST_CHECK;

/* Finds and opens it; warnings go to standard error. A file that was named and is not there is TIDE_NOT_FOUND. */
enum tide_code settings_open(const struct cli *cli, struct settings *ret_settings, struct tide_err *err) MUST_CHECK;
void settings_done(struct settings *s);

/*
 * What the file says of one key, for commands that need nothing else of it: only this key is looked at, and nothing is said
 * of the others. *ret_text: NULL when it says nothing; the caller frees it. A path is as of settings_path(), its scheme kept.
 */
enum tide_code settings_one(const struct cli *cli, const char *key, char **ret_text, struct tide_err *err) MUST_CHECK;
enum tide_code settings_one_path(const struct cli *cli, const char *key, char **ret_path, struct tide_err *err)
    MUST_CHECK;

/*
 * The key that api_key refers to, for whoever hides it; nothing when there is none or it cannot be read. Not that of the
 * keychain: looking there may ask somebody to unlock it.
 */
void settings_key(const struct cli *cli, struct buf *ret_key);

/* A path of the config as people write it: "~/" is the home, and what is relative is beside the config file. The caller frees it. */
char *settings_path(const struct settings *s, const char *path);

/* The whole of a file that the config names, at most 1 MiB. */
enum tide_code settings_read(const struct settings *s, const char *key, struct buf *ret_text, struct tide_err *err)
    MUST_CHECK;

/* The log as log_level, log_format, log_file, --verbose and --log-format say. log_file is made (0600) and appended to. */
enum tide_code settings_log(const struct cli *cli, const struct settings *s, struct tide_err *err) MUST_CHECK;

#endif
