/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the server: what a request may start, and where (server_programs, server_graph_roots, server_working_roots). A request names a program by its profile,
 * and a graph or a directory below a root; command lines, addresses and keys are of the settings alone.
 */
#ifndef ENGINE_SERVER_SETTINGS_H
#define ENGINE_SERVER_SETTINGS_H

#include "base/err.h"
#include "base/json.h"

struct program_profile {
    const char *name;
    const char *const *argv; /* ended by NULL */
    const char *cwd;
    const char *env; /* names of variables that it needs, "A,B"; NULL: none */
};

struct server_settings {
    struct arena arena;
    const struct program_profile *programs;
    size_t n_programs;
    const char *const *graph_roots, *const *working_roots; /* ended by NULL */
};

/* As they are now. `config`: as of settings_find(). */
enum tide_code server_settings_read(const char *config, struct server_settings *ret, struct tide_err *err) MUST_CHECK;
void server_settings_done(struct server_settings *s);

/* TIDE_DENIED: there is none of this name. */
enum tide_code server_settings_program(const struct server_settings *s, const char *name,
                                       const struct program_profile **ret, struct tide_err *err) MUST_CHECK;

/*
 * A file or a directory below one of the roots, by its own path or by one relative to a root; *ret_path is its real path, in the arena. The
 * kernel resolves it (openat2): nothing leads out of a root. TIDE_DENIED: it is below none. `what`: the argument of the request.
 */
enum tide_code server_settings_graph(struct server_settings *s, const char *path, const char *what,
                                     const char **ret_path, struct tide_err *err) MUST_CHECK;
/* NULL: the first root itself. */
enum tide_code server_settings_directory(struct server_settings *s, const char *path, const char *what,
                                         const char **ret_path, struct tide_err *err) MUST_CHECK;

/* Of values of the three settings. */
enum tide_code server_settings_check_programs(struct arena *a, const struct json *v, struct tide_err *err) MUST_CHECK;
enum tide_code server_settings_check_roots(struct arena *a, const struct json *v, struct tide_err *err) MUST_CHECK;

#endif
