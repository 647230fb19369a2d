/* SPDX-License-Identifier: Apache-2.0 */
/* What a value of the config must be: one check for the file, the environment and `config set`. */
#ifndef ENGINE_CONFIG_VALUE_H
#define ENGINE_CONFIG_VALUE_H

#include "engine/config.h"

#define CONFIG_FILE_MAX ((size_t)1 << 20)

/* TIDE_INVALID says what it must be; a secret that stands where none may is not repeated. */
enum tide_code config_value_check(struct arena *a, const struct config_key *key, const struct json *v,
                                  struct tide_err *err) MUST_CHECK;

/* A value as it is typed: text stands for itself, everything else is JSON. Checked. */
enum tide_code config_value_parse(struct arena *a, const struct config_key *key, const char *text,
                                  struct json **ret_value, struct tide_err *err) MUST_CHECK;

double config_value_number(const char *text);

/* The file as JSON, an object whose text is in the arena; one that is missing is an empty one. */
enum tide_code config_file_read(struct arena *a, const char *path, struct json **ret_object, struct tide_err *err)
    MUST_CHECK;

/* The directory of the config's file, for what is named relative to it. */
const char *config_dir(const struct config *c);

#endif
