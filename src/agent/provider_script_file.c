/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts are read and checked whole when they are opened: an error in the last turn is reported before the first is
 * played, with the turn and the key.
 */
#include "agent/provider_script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SCRIPT_MAX_BYTES ((size_t)64 << 20)

static enum tide_code load_script(const char *path, struct buf *out, struct tide_err *err)
{
    int bad = buf_read_file(out, path);

    if (bad) {
        tide_fail_file(err, bad, "read script", path);
        return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"script\":null");
    }
    return out->failed ? tide_fail(err, TIDE_TOO_BIG, "script %s is over %zu MiB", path, SCRIPT_MAX_BYTES >> 20)
                       : TIDE_OK;
}

struct key_row {
    const char *name;
    enum json_type type;
};
static const struct key_row script_keys[] = {
    {"turns", JSON_ARRAY}, {"repeat", JSON_TRUE}, {"nodes", JSON_OBJECT}, {"comment", JSON_STRING}, {NULL, 0}};
static const struct key_row turn_keys[] = {{"text", JSON_STRING}, {"calls", JSON_ARRAY},     {"usage", JSON_OBJECT},
                                           {"stop", JSON_STRING}, {"delay_ms", JSON_NUMBER}, {"chunk_ms", JSON_NUMBER},
                                           {"fail", JSON_ARRAY},  {"comment", JSON_STRING},  {NULL, 0}};
static const struct key_row call_keys[] = {{"name", JSON_STRING}, {"id", JSON_STRING}, {"args", JSON_NULL}, {NULL, 0}};
static const struct key_row usage_keys[] = {
    {"input_tokens", JSON_NUMBER}, {"output_tokens", JSON_NUMBER}, {"cached_tokens", JSON_NUMBER}, {NULL, 0}};
static const struct key_row fail_keys[] = {{"status", JSON_NUMBER},     {"retry_after", JSON_NUMBER},
                                           {"message", JSON_STRING},    {"code", JSON_STRING},
                                           {"after_text", JSON_STRING}, {NULL, 0}};
static const char *const type_names[] = {"null",     "true or false", "true or false", "a number",
                                         "a string", "an array",      "an object"};

static bool type_fits(enum json_type want, const struct json *v)
{
    int64_t n;

    if (want == JSON_NULL) /* of args: two are taken */
        return v->type == JSON_OBJECT || v->type == JSON_STRING;
    if (want == JSON_TRUE)
        return v->type == JSON_TRUE || v->type == JSON_FALSE;
    return v->type == want && (want != JSON_NUMBER || !json_int(v, &n) || n >= 0);
}

/* `where` says which object it is, for people. */
static enum tide_code check_keys(const struct json *object, const struct key_row *rows, const char *where,
                                 struct tide_err *err)
{
    if (object->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "%s is not an object", where);
    for (const struct json *m = object->first; m; m = m->next) {
        const struct key_row *row = rows;

        while (row->name && !json_key_eq(m, str_from(row->name)))
            row++;
        if (!row->name)
            return tide_fail(err, TIDE_INVALID, "%s has an unknown key '%.*s'", where, STR_ARG(m->key));
        if (!type_fits(row->type, m))
            return tide_fail(err, TIDE_INVALID, "%s: '%s' must be %s", where, row->name,
                             row->type == JSON_NULL ? "an object or a string" : type_names[row->type]);
    }
    return TIDE_OK;
}

static enum tide_code check_call(const struct json *call, int64_t turn, int64_t i, struct tide_err *err)
{
    const struct json *name;
    char where[64];

    snprintf(where, sizeof where, "turn %lld: call %lld", (long long)turn, (long long)i);
    if (check_keys(call, call_keys, where, err))
        return err->code;
    name = json_get(call, STR("name"));
    return name && name->raw.len ? TIDE_OK : tide_fail(err, TIDE_INVALID, "%s has no name", where);
}

static enum tide_code check_fail(const struct json *fail, int64_t turn, int64_t i, struct tide_err *err)
{
    int64_t status;
    char where[64];

    snprintf(where, sizeof where, "turn %lld: fail %lld", (long long)turn, (long long)i);
    if (fail->type == JSON_NULL)
        return TIDE_OK;
    if (check_keys(fail, fail_keys, where, err))
        return err->code;
    status = json_get_int(fail, STR("status"), 0);
    if (json_get(fail, STR("code")) || (status >= 300 && status <= 599))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "%s needs a status from 300 to 599 or a code", where);
}

typedef enum tide_code check_fn(const struct json *item, int64_t turn, int64_t i, struct tide_err *err);

static enum tide_code check_list(const struct json *list, int64_t turn, check_fn *check, struct tide_err *err)
{
    int64_t i = 1;

    for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
        if (check(item, turn, i++, err))
            return err->code;
    }
    return TIDE_OK;
}

static const struct {
    const char *name;
    enum model_stop stop;
} stops[] = {{"end", STOP_END}, {"tools", STOP_TOOLS}, {"length", STOP_LENGTH}, {"refused", STOP_REFUSED}};

bool script_stop(struct str name, enum model_stop *ret)
{
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (str_eq(name, str_from(stops[i].name))) {
            *ret = stops[i].stop;
            return true;
        }
    }
    return false;
}

static enum tide_code check_turn(const struct json *t, int64_t turn, struct tide_err *err)
{
    const struct json *usage, *stop;
    enum model_stop unused;
    char where[40];

    snprintf(where, sizeof where, "turn %lld", (long long)turn);
    if (check_keys(t, turn_keys, where, err))
        return err->code;
    usage = json_get(t, STR("usage"));
    stop = json_get(t, STR("stop"));
    if (stop && !script_stop(stop->raw, &unused))
        return tide_fail(err, TIDE_INVALID, "%s: 'stop' must be end, tools, length or refused", where);
    snprintf(where, sizeof where, "turn %lld: usage", (long long)turn);
    if (usage && check_keys(usage, usage_keys, where, err))
        return err->code;
    return check_list(json_get(t, STR("calls")), turn, check_call, err)
               ? err->code
               : check_list(json_get(t, STR("fail")), turn, check_fail, err);
}

static enum tide_code take_turns(struct script *s, struct part *p, const struct json *turns, struct tide_err *err)
{
    if (turns->type != JSON_ARRAY || turns->count == 0)
        return tide_fail(err, TIDE_INVALID, "it has no turns");
    p->turns = arena_alloc(&s->arena, turns->count * sizeof *p->turns);
    for (const struct json *t = turns->first; t; t = t->next) {
        if (check_turn(t, p->n_turns + 1, err))
            return err->code;
        p->turns[p->n_turns++] = t;
    }
    return TIDE_OK;
}

static enum tide_code take_script(struct script *s, const struct json *root, struct tide_err *err)
{
    const struct json *turns, *nodes;

    if (check_keys(root, script_keys, "it", err))
        return err->code;
    turns = json_get(root, STR("turns"));
    nodes = json_get(root, STR("nodes"));
    s->repeat = json_get_bool(root, STR("repeat"), false);
    s->parts = arena_zero(&s->arena, (1 + (nodes ? nodes->count : 0)) * sizeof *s->parts);
    s->n_parts = 1;
    if (!turns && !(nodes && nodes->count))
        return tide_fail(err, TIDE_INVALID, "it has no turns");
    if (turns && take_turns(s, &s->parts[0], turns, err))
        return err->code;
    for (const struct json *n = nodes ? nodes->first : NULL; n; n = n->next) {
        struct part *p = &s->parts[s->n_parts++];

        p->name = json_key_text(&s->arena, n);
        if (take_turns(s, p, n, err))
            return tide_wrap(err, "node '%.60s'", arena_dup(&s->arena, p->name).ptr);
    }
    return TIDE_OK;
}

enum tide_code script_open(const char *path, struct script **ret_script, struct tide_err *err)
{
    struct json *root = NULL;
    struct script *s;

    ERR_LOCAL(err);
    if (!path || !*path)
        return tide_fail(err, TIDE_INVALID, "the script provider needs a file to answer from (config: script)");
    s = mem_zero(sizeof *s);
    s->path = mem_dup(str_from(path));
    s->text = (struct buf)BUF_INIT(SCRIPT_MAX_BYTES);
    if (load_script(path, &s->text, err))
        goto failed;
    if (json_parse(&s->arena, buf_view(&s->text), NULL, &root, NULL, err) || take_script(s, root, err)) {
        tide_about(err, TIDE_SUBJECT_FILE, path);
        tide_wrap(err, "script %s", path);
        goto failed;
    }
    *ret_script = s;
    return TIDE_OK;
failed:
    script_free(s);
    return err->code;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    arena_done(&s->arena);
    buf_done(&s->text);
    free(s->path);
    free(s);
}

/* ---- looking up ---- */

static const struct part *part_named(const struct script *s, struct str name)
{
    for (size_t i = 1; i < s->n_parts; i++) {
        if (str_eq(s->parts[i].name, name))
            return &s->parts[i];
    }
    return NULL;
}

/* The name as far as `mark`; that it is a decision stays said. */
static const struct part *part_until(const struct script *s, struct str name, char mark)
{
    const char *at = name.len ? memchr(name.ptr, mark, name.len) : NULL;
    bool decides = name.len && name.ptr[name.len - 1] == '?';
    char plain[256];

    if (!at)
        return NULL;
    snprintf(plain, sizeof plain, "%.*s%s", (int)(at - name.ptr), name.ptr, decides ? "?" : "");
    return part_named(s, str_from(plain));
}

const struct part *script_part(const struct script *s, struct str name)
{
    const struct part *p = part_named(s, name);

    p = p ? p : part_until(s, name, '#');
    p = p ? p : part_until(s, name, '>');
    return p ? p : &s->parts[0];
}
