/* SPDX-License-Identifier: Apache-2.0 */
/* --set of graphs. What is given may be a secret: no message shows a value. */
#include "cli/graph/graph_set.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "cli/args.h"
#include "cli/error_hints.h"
#include "engine/user_store.h"

#define SHOWN 60 /* bytes of a key in a message */

struct setting {
    struct str key;
    bool json; /* KEY:= */
    const char *value;
};

struct sets {
    struct json_out out;
    struct map seen;
    bool input_taken;
};

#define KEY_ARG(s) (int)((s)->key.len < SHOWN ? (s)->key.len : SHOWN), (s)->key.ptr

static enum tide_code split_setting(const char *given, struct setting *ret, struct tide_err *err)
{
    const char *eq = strchr(given, '=');

    if (!eq || eq == given || (eq == given + 1 && given[0] == ':'))
        return args_refuse(err, "set", "--set: give KEY=TEXT, KEY:=JSON, KEY=@FILE, KEY=- or KEY=$NAME, the key first");
    ret->json = eq[-1] == ':';
    ret->key = (struct str){given, (size_t)(eq - given) - ret->json};
    ret->value = eq + 1;
    return str_is_utf8(ret->key, NULL) ? TIDE_OK : args_refuse(err, "set", "--set: a key must be valid UTF-8");
}

/* ---- from elsewhere ---- */

static enum tide_code read_all(int fd, const struct setting *s, const char *from, struct buf *out, struct tide_err *err)
{
    int bad = buf_read_fd(out, fd);

    if (out->failed)
        return tide_fail(err, TIDE_TOO_BIG, "--set %.*s: %.150s holds more than %zu MiB", KEY_ARG(s), from,
                         GRAPH_SET_MAX >> 20);
    return bad ? tide_fail_errno(err, bad, "--set %.*s: read %.150s", KEY_ARG(s), from) : TIDE_OK;
}

static enum tide_code read_file(const struct setting *s, const char *path, struct buf *out, struct tide_err *err)
{
    int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    enum tide_code code;

    if (!*path)
        return args_refuse(err, "set", "--set %.*s: give the file after @, or KEY==TEXT for a text", KEY_ARG(s));
    if (fd < 0) {
        tide_fail_errno(err, errno, "--set %.*s: open '%.150s'", KEY_ARG(s), path);
        tide_about(err, TIDE_SUBJECT_FILE, path);
        return advise(err->code, "name a file that can be read, or give KEY==TEXT for a text that begins with @", err);
    }
    code = read_all(fd, s, path, out, err);
    close(fd);
    return code;
}

static enum tide_code read_input(struct sets *all, const struct setting *s, struct buf *out, struct tide_err *err)
{
    if (all->input_taken)
        return args_refuse(err, "set", "--set %.*s: standard input was taken by another --set", KEY_ARG(s));
    all->input_taken = true;
    return read_all(STDIN_FILENO, s, "standard input", out, err);
}

static bool is_variable(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

static enum tide_code read_variable(const struct setting *s, const char *name, struct buf *out, struct tide_err *err)
{
    const char *value;

    if (!is_variable(name))
        return args_refuse(
            err, "set", "--set %.*s: $ is followed by the name of a variable; a text that begins with it is KEY==TEXT",
            KEY_ARG(s));
    value = getenv(name);
    if (!value)
        return args_refuse(err, "set", "--set %.*s: the variable %.60s is not set", KEY_ARG(s), name);
    buf_add_str(out, str_from(value));
    return TIDE_OK;
}

/* What the value stands for. */
static enum tide_code resolve_value(struct sets *all, const struct setting *s, struct buf *out, struct tide_err *err)
{
    bool file = s->value[0] == '@', input = strcmp(s->value, "-") == 0;
    enum tide_code code;

    if (s->value[0] == '$')
        return read_variable(s, s->value + 1, out, err);
    if (!file && !input) {
        buf_add_str(out, str_from(s->value + (s->value[0] == '=' && !s->json)));
        return TIDE_OK;
    }
    code = file ? read_file(s, s->value + 1, out, err) : read_input(all, s, out, err);
    if (!code && out->len && out->ptr[out->len - 1] == '\n')
        out->len--;
    return code;
}

/* ---- one, all ---- */

static enum tide_code put_value(struct sets *all, const struct setting *s, struct str text, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    if (s->json && json_parse(&a, text, NULL, &v, NULL, NULL))
        return args_refuse(err, "set", "--set %.*s: the value after := is not JSON; a text is KEY=TEXT", KEY_ARG(s));
    if (!s->json && !str_is_utf8(text, NULL))
        return args_refuse(err, "set", "--set %.*s: a text must be valid UTF-8", KEY_ARG(s));
    json_out_key(&all->out, s->key);
    if (s->json)
        json_out_raw(&all->out, json_source(v));
    else
        json_out_str(&all->out, text);
    return TIDE_OK;
}

static enum tide_code take_setting(struct sets *all, const char *given, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(GRAPH_SET_MAX);
    struct setting s;

    if (split_setting(given, &s, err))
        return err->code;
    if (map_put(&all->seen, s.key, all))
        return args_refuse(err, "set", "--set %.*s: it is given twice", KEY_ARG(&s));
    if (resolve_value(all, &s, &text, err))
        return err->code;
    if (text.failed)
        return tide_fail(err, TIDE_TOO_BIG, "--set %.*s: more than %zu MiB", KEY_ARG(&s), GRAPH_SET_MAX >> 20);
    return put_value(all, &s, buf_view(&text), err);
}

enum tide_code graph_set_read(const char *const *sets, struct buf *ret_json, struct tide_err *err)
{
    struct sets all = {.out = json_out_to(ret_json)};
    enum tide_code code = TIDE_OK;

    json_out_begin(&all.out, '{');
    for (; sets && *sets && !code; sets++)
        code = take_setting(&all, *sets, err);
    json_out_end(&all.out, '}');
    map_done(&all.seen, NULL);
    buf_cstr(ret_json);
    return code;
}

void graph_set_hide(const char *const *sets, tide_store *store)
{
    struct setting s;

    for (; sets && *sets; sets++)
        if (!split_setting(*sets, &s, NULL) && s.value[0] == '$' && is_variable(s.value + 1))
            user_store_hide_variable(store, s.key, s.value + 1, s.json);
}

void graph_set_done(struct buf *json)
{
    if (json->ptr)
        explicit_bzero(json->ptr, json->len);
    buf_done(json);
}
