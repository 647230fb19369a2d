/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/server_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/confined.h"
#include "engine/config_value.h"
#include "engine/settings.h"

#define ARGUMENTS_MAX 1000

/* ---- what it may be ---- */

static bool is_text(struct arena *a, const struct json *v)
{
    struct str text = v && v->type == JSON_STRING ? json_text(a, v) : (struct str){NULL, 0};

    return text.len && !memchr(text.ptr, '\0', text.len);
}

static bool is_texts(struct arena *a, const struct json *v)
{
    if (!v || v->type != JSON_ARRAY || v->count > ARGUMENTS_MAX)
        return false;
    for (const struct json *m = v->first; m; m = m->next)
        if (m->type != JSON_STRING || memchr(json_text(a, m).ptr, '\0', json_text(a, m).len))
            return false;
    return true;
}

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (i && c >= '0' && c <= '9')))
            return false;
    }
    return name.len > 0;
}

static bool is_env(struct arena *a, const struct json *v)
{
    if (!is_texts(a, v))
        return false;
    for (const struct json *m = v->first; m; m = m->next)
        if (!is_variable(json_text(a, m)))
            return false;
    return true;
}

static enum tide_code check_profile(struct arena *a, const struct json *profile, struct tide_err *err)
{
    const char *name = arena_dup(a, json_key_text(a, profile)).ptr;
    const struct json *argv = json_get(profile, STR("argv")), *env = json_get(profile, STR("env"));

    if (!str_is_id(str_from(name)))
        return tide_fail(err, TIDE_INVALID, "'%.64s' is not a name: 1 to 64 letters, digits, '_' or '-'", name);
    if (profile->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "'%s' must be an object: {\"argv\": [...], \"cwd\": \"...\"}", name);
    for (const struct json *m = profile->first; m; m = m->next)
        if (!json_key_eq(m, STR("argv")) && !json_key_eq(m, STR("cwd")) && !json_key_eq(m, STR("env")))
            return tide_fail(err, TIDE_INVALID, "'%s' may hold argv, cwd and env, not '%.40s'", name,
                             arena_dup(a, json_key_text(a, m)).ptr);
    if (!is_texts(a, argv) || !is_text(a, argv->first))
        return tide_fail(err, TIDE_INVALID, "'%s': argv must hold a program and its arguments", name);
    if (!is_text(a, json_get(profile, STR("cwd"))))
        return tide_fail(err, TIDE_INVALID, "'%s': cwd must be the directory in which it runs", name);
    if (env && !is_env(a, env))
        return tide_fail(err, TIDE_INVALID, "'%s': env must hold names of variables", name);
    return TIDE_OK;
}

enum tide_code server_settings_check_programs(struct arena *a, const struct json *v, struct tide_err *err)
{
    for (const struct json *m = v->first; m; m = m->next)
        if (check_profile(a, m, err))
            return err->code;
    return TIDE_OK;
}

enum tide_code server_settings_check_roots(struct arena *a, const struct json *v, struct tide_err *err)
{
    bool ok = is_texts(a, v);

    for (const struct json *m = ok ? v->first : NULL; m; m = m->next)
        ok &= json_text(a, m).len > 0;
    return ok ? TIDE_OK : tide_fail(err, TIDE_INVALID, "must hold directories: [\"~/work\"]");
}

/* ---- what it is ---- */

static const char *keep_path(struct server_settings *s, const struct settings *where, const struct json *v)
{
    AUTO(mem_freep) char *path = settings_path(where, arena_dup(&s->arena, json_text(&s->arena, v)).ptr);

    return arena_dup(&s->arena, str_from(path)).ptr;
}

static const char *const *take_roots(struct server_settings *s, const struct settings *where, const struct json *list)
{
    const char **roots = arena_zero(&s->arena, ((list ? list->count : 0) + 1) * sizeof *roots);
    size_t n = 0;

    for (const struct json *m = list ? list->first : NULL; m; m = m->next)
        roots[n++] = keep_path(s, where, m);
    return roots;
}

static void take_program(struct server_settings *s, const struct settings *where, const struct json *profile,
                         struct program_profile *ret)
{
    const struct json *argv = json_get(profile, STR("argv")), *env = json_get(profile, STR("env"));
    const char **texts = arena_zero(&s->arena, (argv->count + 1) * sizeof *texts);
    size_t n = 0;

    for (const struct json *m = argv->first; m; m = m->next)
        texts[n++] = arena_dup(&s->arena, json_text(&s->arena, m)).ptr;
    *ret = (struct program_profile){.name = arena_dup(&s->arena, json_key_text(&s->arena, profile)).ptr,
                                    .argv = texts,
                                    .cwd = keep_path(s, where, json_get(profile, STR("cwd")))};
    for (const struct json *m = env ? env->first : NULL; m; m = m->next)
        ret->env = arena_printf(&s->arena, "%s%s%.*s", ret->env ? ret->env : "", ret->env ? "," : "",
                                STR_ARG(json_text(&s->arena, m)));
}

static void take_programs(struct server_settings *s, const struct settings *where, const struct json *programs)
{
    struct program_profile *all = arena_zero(&s->arena, ((programs ? programs->count : 0) + 1) * sizeof *all);

    for (const struct json *m = programs ? programs->first : NULL; m; m = m->next)
        take_program(s, where, m, &all[s->n_programs++]);
    s->programs = all;
}

/* As it is now, in the file or the environment; NULL: it says nothing. */
static enum tide_code read_key(struct server_settings *s, const char *config, const char *key, const struct json **ret,
                               struct tide_err *err)
{
    AUTO(mem_freep) char *text = NULL;
    char from[SETTINGS_FROM_SIZE];
    struct json *v = NULL;

    *ret = NULL;
    if (settings_word(config, key, &text, from, err) || !text)
        return err->code;
    if (json_parse(&s->arena, arena_dup(&s->arena, str_from(text)), NULL, &v, NULL, err) ||
        config_value_check(&s->arena, config_key_find(key), v, err))
        return tide_wrap(err, "%s", from);
    *ret = v;
    return TIDE_OK;
}

enum tide_code server_settings_read(const char *config, struct server_settings *ret, struct tide_err *err)
{
    AUTO(settings_done) struct settings where = {0};
    struct server_settings s = {.arena = ARENA_INIT};
    const struct json *programs, *graphs, *directories;

    *err = (struct tide_err){.code = TIDE_OK};
    if (settings_find(config, &where, err) || read_key(&s, config, "server_programs", &programs, err) ||
        read_key(&s, config, "server_graph_roots", &graphs, err) ||
        read_key(&s, config, "server_working_roots", &directories, err)) {
        server_settings_done(&s);
        return err->code;
    }
    take_programs(&s, &where, programs);
    s.graph_roots = take_roots(&s, &where, graphs);
    s.working_roots = take_roots(&s, &where, directories);
    *ret = s;
    return TIDE_OK;
}

void server_settings_done(struct server_settings *s)
{
    arena_done(&s->arena);
}

enum tide_code server_settings_program(const struct server_settings *s, const char *name,
                                       const struct program_profile **ret, struct tide_err *err)
{
    for (size_t i = 0; i < s->n_programs; i++)
        if (strcmp(s->programs[i].name, name) == 0) {
            *ret = &s->programs[i];
            return TIDE_OK;
        }
    tide_fail(err, TIDE_DENIED, "no program '%.64s' is configured: server_programs in config.json names them", name);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "program");
}

/* ---- below a root ---- */

static enum tide_code open_in(struct server_settings *s, const char *root, const char *path, int kinds,
                              const char **ret_path, struct tide_err *err)
{
    struct confined place = {.cwd = root, .dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    char link[40], real[CONFINED_PATH_MAX];
    enum tide_code code;
    ssize_t n = -1;
    int fd = -1;

    if (place.dir < 0)
        return tide_fail_file(err, errno, "open the root", root);
    code = confined_open(&place, str_from(path), kinds, &fd, NULL, err);
    close(place.dir);
    if (code)
        return code;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof real);
    close(fd);
    if (n <= 0 || (size_t)n == sizeof real)
        return tide_fail(err, TIDE_INVALID, "the path is too long");
    *ret_path = arena_dup(&s->arena, (struct str){real, (size_t)n}).ptr;
    return str_is_utf8(str_from(*ret_path), NULL) ? TIDE_OK : tide_fail(err, TIDE_INVALID, "the path is not UTF-8");
}

/*
 * The first root in which it is. A whole path is denied by all roots but the one that it is in, which says more; what is relative and leads out
 * of one is denied, whatever it is in the others.
 */
static enum tide_code find_beneath(struct server_settings *s, const char *const *roots, const char *setting,
                                   const char *path, int kinds, const char *what, const char **ret_path,
                                   struct tide_err *err)
{
    struct tide_err first = {0};

    for (; *roots; roots++) {
        enum tide_code code = open_in(s, *roots, path, kinds, ret_path, err);

        if (!code)
            return TIDE_OK;
        if (!first.code || (first.code == TIDE_DENIED) == (path[0] == '/'))
            first = *err;
    }
    if (!first.code)
        tide_fail(&first, TIDE_DENIED, "no directory is configured: set %s in config.json", setting);
    else if (first.code == TIDE_DENIED)
        tide_fail(&first, TIDE_DENIED, "'%.120s' is not below %s in config.json", path, setting);
    else if (first.code == TIDE_NOT_FOUND)
        first.code = TIDE_INVALID; /* of the request: the address is there */
    tide_about(&first, TIDE_SUBJECT_ARGUMENT, what);
    return tide_err_copy(err, &first);
}

enum tide_code server_settings_graph(struct server_settings *s, const char *path, const char *what,
                                     const char **ret_path, struct tide_err *err)
{
    return find_beneath(s, s->graph_roots, "server_graph_roots", path, CONFINED_FILE, what, ret_path, err);
}

enum tide_code server_settings_directory(struct server_settings *s, const char *path, const char *what,
                                         const char **ret_path, struct tide_err *err)
{
    return find_beneath(s, s->working_roots, "server_working_roots", path ? path : ".", CONFINED_DIR, what, ret_path,
                        err);
}
