/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What counts of config.json: default, then file, then environment. Everything is checked when it is opened, so that
 * nothing that is asked for later can be wrong. A value of null, and an empty text, are the same as no value.
 */
#include "engine/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/config_value.h"

struct value {
    const struct json *json; /* NULL: not set */
    const char *text;        /* of a string its text, else its JSON */
    const char *origin;
};

struct config {
    struct arena arena;
    char *path;
    const char *dir;
    struct value *values; /* by the rows of the table */
};

/* Where problems go: the first is the error, or all are reported. */
struct sink {
    config_warn_fn *warn, *problem;
    void *arg;
};

/* ---- the file ---- */

enum tide_code config_file_read(struct arena *a, const char *path, struct json **ret_object, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX);
    int bad = buf_read_file(&text, path);
    struct str kept;

    if (bad && bad != ENOENT) /* a file that is not there is an empty one */
        return tide_fail_file(err, bad, "read", path);
    kept = str_is_blank(buf_view(&text)) ? STR("{}") : arena_dup(a, buf_view(&text));
    if (text.failed)
        tide_fail(err, TIDE_TOO_BIG, "%.150s: more than %zu bytes: not a config file", path, text.max);
    else if (json_parse(a, kept, NULL, ret_object, NULL, err))
        tide_wrap(err, "%.150s: not JSON", path);
    else if ((*ret_object)->type != JSON_OBJECT)
        tide_fail(err, TIDE_INVALID, "%.150s: must be a JSON object: {\"model\": \"…\"}", path);
    else
        return TIDE_OK;
    return tide_about(err, TIDE_SUBJECT_FILE, path);
}

/* ---- layers ---- */

static enum tide_code fault(struct sink *s, struct tide_err *err)
{
    if (!s->problem)
        return err->code;
    s->problem(s->arg, err->msg);
    return TIDE_OK;
}

static struct value *slot(const struct config *c, const struct config_key *key)
{
    return &c->values[key - config_keys];
}

static void put_value(struct config *c, const struct config_key *key, const struct json *v, const char *origin)
{
    struct str text = v->type == JSON_STRING ? json_text(&c->arena, v) : v->raw;

    if (v->type != JSON_NULL && (v->type != JSON_STRING || text.len > 0))
        *slot(c, key) = (struct value){v, arena_dup(&c->arena, text).ptr, origin};
}

static void put_defaults(struct config *c)
{
    for (const struct config_key *k = config_keys; k->name; k++) {
        struct json *v = NULL;

        slot(c, k)->origin = "default";
        if (!k->fallback)
            continue;
        if (json_parse(&c->arena, str_from(k->fallback), NULL, &v, NULL, NULL))
            abort(); /* the table is wrong, which a test finds first */
        put_value(c, k, v, "default");
    }
}

static enum tide_code put_member(struct config *c, const struct json *m, struct sink *s, struct tide_err *err)
{
    const char *name = arena_dup(&c->arena, json_key_text(&c->arena, m)).ptr;
    const struct config_key *key = config_key_find(name);

    if (!key) {
        config_key_unknown(name, err);
        tide_wrap(err, "%.120s", c->path);
        if (s->problem)
            return fault(s, err);
        if (s->warn)
            s->warn(s->arg, err->msg);
        return TIDE_OK;
    }
    if (m->type == JSON_NULL)
        return TIDE_OK;
    if (strcmp(slot(c, key)->origin, "file") == 0) {
        tide_fail(err, TIDE_INVALID, "%.120s: %s is given twice, by two names: keep one", c->path, key->name);
    } else if (config_value_check(&c->arena, key, m, err)) {
        tide_wrap(err, "%.100s: %s", c->path, name);
    } else {
        put_value(c, key, m, "file");
        return TIDE_OK;
    }
    tide_about(err, TIDE_SUBJECT_KEY, key->name);
    return fault(s, err);
}

static enum tide_code put_file(struct config *c, struct sink *s, struct tide_err *err)
{
    struct json *object = NULL;

    if (config_file_read(&c->arena, c->path, &object, err))
        return fault(s, err);
    for (const struct json *m = object->first; m; m = m->next)
        if (put_member(c, m, s, err))
            return err->code;
    return TIDE_OK;
}

static enum tide_code put_environment(struct config *c, struct sink *s, struct tide_err *err)
{
    for (const struct config_key *k = config_keys; k->name; k++) {
        char name[CONFIG_VARIABLE_SIZE];
        const char *text = config_variable(k, name) ? getenv(name) : NULL;
        struct json *v = NULL;

        if (!text || !*text)
            continue;
        if (!config_value_parse(&c->arena, k, text, &v, err)) {
            put_value(c, k, v, "environment");
            continue;
        }
        tide_wrap(err, "%s", name);
        tide_about(err, TIDE_SUBJECT_KEY, k->name);
        if (fault(s, err))
            return err->code;
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static struct config *new_config(const char *path)
{
    struct config *c = mem_zero(sizeof(*c));
    const char *slash = strrchr(path, '/');
    size_t n = 0;

    while (config_keys[n].name)
        n++;
    c->path = mem_dup(str_from(path));
    c->dir = arena_dup(&c->arena, slash ? (struct str){path, (size_t)(slash - path) + 1} : STR("./")).ptr;
    c->values = arena_zero(&c->arena, n * sizeof(*c->values));
    put_defaults(c);
    return c;
}

enum tide_code config_open(const char *path, config_warn_fn *warn, void *arg, struct config **ret_config,
                           struct tide_err *err)
{
    AUTO(config_freep) struct config *c = new_config(path);
    struct sink s = {.warn = warn, .arg = arg};

    ERR_LOCAL(err);
    if (put_file(c, &s, err) || put_environment(c, &s, err))
        return err->code;
    *ret_config = TAKE(c);
    return TIDE_OK;
}

struct config *config_check(const char *path, config_warn_fn *problem, void *arg)
{
    struct config *c = new_config(path);
    struct sink s = {.problem = problem, .arg = arg};
    struct tide_err err;

    (void)put_file(c, &s, &err); /* with a callback for problems, neither stops */
    (void)put_environment(c, &s, &err);
    return c;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    free(c->path);
    arena_done(&c->arena);
    free(c);
}

/* ---- what counts ---- */

static const struct value *get_value(const struct config *c, const char *key)
{
    const struct config_key *k = config_key_find(key);

    assert(k && "a key that is not in the table");
    if (!k)
        abort();
    return slot(c, k);
}

const char *config_text(const struct config *c, const char *key)
{
    return get_value(c, key)->text;
}

int64_t config_int(const struct config *c, const char *key)
{
    const struct value *v = get_value(c, key);
    int64_t n = 0;

    return v->json && json_int(v->json, &n) ? n : 0;
}

double config_number(const struct config *c, const char *key)
{
    const struct value *v = get_value(c, key);

    return v->json ? config_value_number(v->text) : 0;
}

bool config_bool(const struct config *c, const char *key)
{
    const struct value *v = get_value(c, key);

    return v->json && v->json->type == JSON_TRUE;
}

struct str config_json(const struct config *c, const char *key)
{
    const struct value *v = get_value(c, key);

    return v->json ? json_source(v->json) : STR("");
}

const char *config_origin(const struct config *c, const char *key)
{
    return get_value(c, key)->origin;
}

const char *config_dir(const struct config *c)
{
    return c->dir;
}
