/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json: one table of keys with types, defaults and help; unknown keys are warned about with the nearest known one.
 * What a file does not say has its default. The layer order: default, file, environment (TIDEMARK_<KEY>), then options.
 */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum config_type { CONFIG_TEXT, CONFIG_INT, CONFIG_NUMBER, CONFIG_BOOL, CONFIG_WORD, CONFIG_JSON };

struct config_key {
    const char *name;
    enum config_type type;
    const char *fallback; /* JSON text of the default; NULL: not set */
    const char *words;    /* of CONFIG_WORD: the words, with spaces between; of CONFIG_JSON: the types it may have */
    int64_t min, max;     /* of CONFIG_INT; both 0: any that is not negative */
    const char *help;
};
extern const struct config_key config_keys[]; /* ended by a row without a name */

/* By name or alias (db_path is store); NULL when there is none. */
const struct config_key *config_key_find(const char *name);

/* TIDE_INVALID "unknown key '…'" with the nearest. */
enum tide_code config_key_unknown(const char *name, struct tide_err *err);

/* The variable that overrides the file; NULL for api_key, whose variable would be the secret itself. */
#define CONFIG_VARIABLE_SIZE 64
const char *config_variable(const struct config_key *key, char out[CONFIG_VARIABLE_SIZE]);

struct config;
typedef void config_warn_fn(void *arg, const char *line);

/* A missing file is an empty one. TIDE_INVALID names file, key and what it must be. Warnings: unknown keys. */
enum tide_code config_open(const char *path, config_warn_fn *warn, void *arg, struct config **ret_config,
                           struct tide_err *err) MUST_CHECK;

/* The same without stopping: every problem of the file and of the environment is reported; the rest of it is opened. */
struct config *config_check(const char *path, config_warn_fn *problem, void *arg);

void config_free(struct config *c);
static inline void config_freep(struct config **c)
{
    config_free(*c);
}

/* What counts now. Keys must be in the table. Texts live as long as the config; NULL: not set. */
const char *config_text(const struct config *c, const char *key);
int64_t config_int(const struct config *c, const char *key);
double config_number(const struct config *c, const char *key);
bool config_bool(const struct config *c, const char *key);
struct str config_json(const struct config *c, const char *key);    /* JSON text of any key; empty: not set */
const char *config_origin(const struct config *c, const char *key); /* "default", "file", "environment" */

/* Changes one key in the file: checked first, everything else in it kept, written whole or not at all (0600). value NULL removes it. */
enum tide_code config_set(const char *path, const char *key, const char *value, struct tide_err *err) MUST_CHECK;

/* The provider's key: from api_key ("env:NAME", "file:PATH", "keychain:NAME"), else the provider's usual variable. "" when none is. */
enum tide_code config_api_key(const struct config *c, const char *provider, struct buf *ret_key, struct tide_err *err)
    MUST_CHECK;

/* What such an api_key refers to. `dir`: with its slash, where a path that is relative begins. */
enum tide_code config_key_read(const char *ref, const char *dir, struct buf *ret_key, struct tide_err *err) MUST_CHECK;

#endif
