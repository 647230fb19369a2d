/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event in which the search finds nothing costs that search and nothing else. One in which it finds something is parsed
 * and written anew: texts, names of members and numbers without what they held. Left alone is what cannot be a payload: the
 * numbers, truth values and times that the kind itself declares.
 */
#include "session/redact.h"

#include <ctype.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "session/session.h"

/* ---- what is known ---- */

/* Words of the log beside the names in the table of kinds: members and values that folds look at. */
static const char *const words[] = {
    "_malformed",
    "accept_change",
    "anthropic",
    "approval",
    "approvals",
    "base_url",
    "cancelled",
    "completed",
    "deadline_passed",
    "decision",
    "degraded",
    "durability",
    "edge_transition",
    "entry_node",
    "exit_status",
    "function",
    "happened",
    "hook_stop",
    "human_input",
    "idempotent",
    "interrupted_startup",
    "interrupted_waiting",
    "invalid_utf8",
    "is_error",
    "last_seq",
    "llm_stream",
    "loop_iteration",
    "max_turns",
    "messages",
    "node_complete",
    "nodes_with_failures",
    "node_start",
    "otherwise",
    "output_base64",
    "output_too_big",
    "override",
    "process_exit",
    "process_restart",
    "program_changed",
    "program_digest",
    "program_stat",
    "recorded",
    "redacted",
    "replaced",
    "request_digest",
    "requested",
    "resumed_locally",
    "rollback",
    "safe_point",
    "script_digest",
    "session_id",
    "shutdown",
    "start_failed",
    "superseded",
    "system_digest",
    "tidemark_graph",
    "token_expired",
    "tools_digest",
    "total_retries",
    "user_checkpoint",
    "wait_timeout",
    "wants_answer",
};

static bool word_holds(const char *word, struct str value)
{
    return memmem(word, strlen(word), value.ptr, value.len) != NULL;
}

/* A value without which the log could not be read. */
static bool is_word_of_log(struct str value)
{
    bool is = kind_is_word(value);

    for (size_t i = 0; i < sizeof words / sizeof words[0] && !is; i++)
        is = word_holds(words[i], value);
    return is;
}

static int shown_len(struct str name)
{
    return (int)(name.len > 60 ? 60 : name.len);
}

static enum tide_code check_value(struct str name, struct str value, struct tide_err *err)
{
    if (value.len > SECRET_MAX || value.len < SECRET_MIN)
        return tide_fail(err, TIDE_INVALID, "'%.*s' cannot be hidden: a secret has %d to %d bytes, this one %zu",
                         shown_len(name), name.ptr, SECRET_MIN, SECRET_MAX, value.len);
    if (is_word_of_log(value))
        return tide_fail(err, TIDE_INVALID, "'%.*s' cannot be hidden: its value is part of a word of the log format",
                         shown_len(name), name.ptr);
    return TIDE_OK;
}

static enum tide_code refuse_more(struct str name, struct tide_err *err)
{
    return tide_fail(err, TIDE_TOO_BIG, "'%.*s' cannot be hidden: a store hides at most %d values at once",
                     shown_len(name), name.ptr, SECRETS_MAX);
}

enum tide_code redact_add(struct store *store, struct str name, struct str value, struct tide_err *err)
{
    enum tide_code code = check_value(name, value, err);

    if (code)
        return code;
    return secrets_add(store->secrets, name, value) ? TIDE_OK : refuse_more(name, err);
}

static void add_texts(struct store *store, struct arena *a, struct str name, const struct json *v)
{
    if (v->type == JSON_STRING)
        (void)!redact_add(store, name, json_text(a, v), NULL);
    for (const struct json *item = v->first; item; item = item->next)
        add_texts(store, a, name, item);
}

/* What cannot be hidden is passed over. */
static void add_json(struct store *store, struct str name, struct str json)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (json_parse(&a, json, NULL, &v, NULL, NULL) || v->type == JSON_NUMBER)
        (void)!redact_add(store, name, json, NULL);
    else
        add_texts(store, &a, name, v);
}

/* ---- for a while ---- */

/* What cannot be hidden by what it is is passed over; that there is no room for it is not. */
static enum tide_code hold_text(struct store *store, struct hidden_values *held, struct str name, struct str value,
                                struct tide_err *err)
{
    value = str_trim(value);
    for (size_t i = 0; i < held->n; i++)
        if (str_eq(held->at[i], value))
            return TIDE_OK;
    if (check_value(name, value, NULL))
        return TIDE_OK;
    if (!secrets_hold(store->secrets, name, value))
        return word_holds(SECRET_MARK ":]", value) ? TIDE_OK : refuse_more(name, err);
    MEM_ROOM(held->at, held->n, held->cap);
    held->at[held->n++] = (struct str){mem_dup(value), value.len};
    return TIDE_OK;
}

static enum tide_code hold_texts(struct store *store, struct hidden_values *held, struct arena *a, struct str name,
                                 const struct json *v, struct tide_err *err)
{
    enum tide_code code = v->type == JSON_STRING ? hold_text(store, held, name, json_text(a, v), err) : TIDE_OK;

    for (const struct json *item = v->first; item && !code; item = item->next)
        code = hold_texts(store, held, a, name, item, err);
    return code;
}

enum tide_code redact_hold_json(struct store *store, struct hidden_values *held, struct str name, struct str json,
                                struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (json_parse(&a, json, NULL, &v, NULL, NULL) || v->type == JSON_NUMBER)
        return hold_text(store, held, name, json, err);
    return hold_texts(store, held, &a, name, v, err);
}

void redact_release(struct store *store, struct hidden_values *held)
{
    while (held->n) {
        struct str value = held->at[--held->n];

        secrets_release(store->secrets, value);
        explicit_bzero((char *)(uintptr_t)value.ptr, value.len);
        free((char *)(uintptr_t)value.ptr);
    }
    free(TAKE(held->at));
    held->cap = 0;
}

/* ---- the environment ---- */

static bool is_listed(const char *list, struct str name)
{
    while (list && *list) {
        size_t n = strcspn(list, ", ");

        if (str_eq((struct str){list, n}, name))
            return true;
        list += n + (list[n] != '\0');
    }
    return false;
}

static bool sounds_secret(struct str name)
{
    static const char *const parts[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
    char upper[256];
    size_t n = name.len < sizeof upper - 1 ? name.len : sizeof upper - 1;

    for (size_t i = 0; i < n; i++)
        upper[i] = (char)toupper((unsigned char)name.ptr[i]);
    upper[n] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(upper, parts[i]))
            return true;
    return false;
}

/* A person declared it, or it is a place where a secret may be. */
static bool is_no_secret(struct str name, const char *value)
{
    return is_listed(getenv("TIDEMARK_NOT_SECRET"), name) || (value[0] == '/' && access(value, F_OK) == 0);
}

void redact_add_environment(struct store *store, char *const *env)
{
    static const char *const own[] = {"TIDEMARK_IDEMPOTENCY_KEY", NULL}; /* each step gets its own; the log has it */

    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        struct str name = {*env, equals ? (size_t)(equals - *env) : 0};

        if (name.len && sounds_secret(name) && !str_eq(name, str_from(own[0])) && !is_no_secret(name, equals + 1))
            (void)!redact_add(store, name, str_from(equals + 1), NULL);
    }
}

void redact_add_variable(struct store *store, struct str name, const char *variable, bool json)
{
    const char *value = getenv(variable);

    if (!value || is_no_secret(str_from(variable), value))
        return;
    if (json)
        add_json(store, name, str_from(value));
    else
        (void)!redact_add(store, name, str_from(value), NULL);
}

/* ---- writing anew ---- */

struct writer {
    struct secrets *secrets;
    struct arena *a;
    struct buf *out;
    bool tight; /* nothing may become longer */
    bool found;
};

/* The text without secrets; the same when there are none. */
static struct str cleaned(struct writer *w, struct str text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(w->tight ? text.len : SIZE_MAX / 4);

    if (!secrets_clean(w->secrets, text, &out))
        return text;
    w->found = true;
    return arena_dup(w->a, buf_view(&out));
}

static bool is_taken(const struct json *object, struct str key)
{
    for (const struct json *m = object->first; m; m = m->next) {
        if (json_key_eq(m, key))
            return true;
    }
    return false;
}

/* Members whose names differ in the secret alone stay apart: the second is called "[redacted:NAME] 2". */
static void write_key(struct writer *w, const struct json *object, const struct json *member, size_t *n)
{
    struct str was = json_key_text(w->a, member), clean = cleaned(w, was), now = clean;

    if (clean.ptr == was.ptr) {
        buf_add_char(w->out, '"');
        buf_add_str(w->out, member->key);
        buf_add_char(w->out, '"');
        return;
    }
    while (++*n > 1 || is_taken(object, now)) {
        now = str_from(arena_printf(w->a, "%.*s %zu", STR_ARG(clean), *n));
        if (!is_taken(object, now))
            break;
    }
    json_quote(w->out, now);
}

static void write_value(struct writer *w, const struct json *v);

static void write_members(struct writer *w, const struct json *v)
{
    size_t renamed = 0;

    buf_add_char(w->out, v->type == JSON_OBJECT ? '{' : '[');
    for (const struct json *m = v->first; m; m = m->next) {
        if (m != v->first)
            buf_add_char(w->out, ',');
        if (v->type == JSON_OBJECT) {
            write_key(w, v, m, &renamed);
            buf_add_char(w->out, ':');
        }
        write_value(w, m);
    }
    buf_add_char(w->out, v->type == JSON_OBJECT ? '}' : ']');
}

static void write_value(struct writer *w, const struct json *v)
{
    struct str was, now;

    if (v->type == JSON_OBJECT || v->type == JSON_ARRAY) {
        write_members(w, v);
        return;
    }
    was = v->type == JSON_STRING ? json_text(w->a, v) : v->raw;
    now = v->type == JSON_STRING || v->type == JSON_NUMBER ? cleaned(w, was) : was;
    if (now.ptr == was.ptr)
        json_write(w->out, v);
    else
        json_quote(w->out, now);
}

/* What the kind declares to be no payload. */
static bool is_fixed(struct arena *a, const struct kind *kind, const struct json *member)
{
    struct str key = json_key_text(a, member);
    int64_t at;

    if (str_eq(key, STR("parent")))
        return true;
    for (size_t i = 0; kind && kind->fields[i].name; i++) {
        const struct field *f = &kind->fields[i];

        if (!str_eq(key, str_from(f->name)))
            continue;
        return f->type == F_INT || f->type == F_NUMBER || f->type == F_BOOL ||
               (f->type == F_STRING && member->type == JSON_STRING && time_parse(json_text(a, member), &at));
    }
    return false;
}

static void write_event(struct writer *w, const struct kind *kind, const struct json *body)
{
    size_t renamed = 0;
    bool first = true;

    buf_add_char(w->out, '{');
    for (const struct json *m = body->first; m; m = m->next) {
        if (json_key_eq(m, STR("redacted")))
            continue;
        if (!first)
            buf_add_char(w->out, ',');
        first = false;
        write_key(w, body, m, &renamed);
        buf_add_char(w->out, ':');
        if (is_fixed(w->a, kind, m))
            json_write(w->out, m);
        else
            write_value(w, m);
    }
    buf_add_str(w->out, first ? STR("\"redacted\":true}") : STR(",\"redacted\":true}"));
}

typedef void write_fn(struct writer *w, const struct kind *kind, const struct json *v);

static void write_plain(struct writer *w, const struct kind *kind, const struct json *v)
{
    (void)kind;
    write_value(w, v);
}

static bool rewrite_body(struct store *store, struct arena *a, const struct kind *kind, write_fn *fn, bool tight,
                         struct str *text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct writer w = {store->secrets, a, &out, tight, false};
    struct json *v;

    if (json_parse(a, *text, NULL, &v, NULL, NULL) || (fn == write_event && v->type != JSON_OBJECT))
        return false; /* the caller that checks it says what is wrong with it */
    fn(&w, kind, v);
    if (!w.found)
        return false;
    if (!tight && out.len > store->max_record_bytes)
        return rewrite_body(store, a, kind, fn, true, text);
    *text = arena_dup(a, buf_view(&out));
    return true;
}

bool redact_event(struct store *store, struct arena *a, struct str kind, struct str *body)
{
    return secrets_find(store->secrets, *body) && rewrite_body(store, a, kind_find(kind), write_event, false, body);
}

bool redact_json(struct store *store, struct arena *a, struct str *json)
{
    return secrets_find(store->secrets, *json) && rewrite_body(store, a, NULL, write_plain, false, json);
}

static void redact_one(struct store *store, struct draft *d, size_t i)
{
    struct str body = {d->events[i].body, d->events[i].body_len};

    if (redact_event(store, &d->arena, str_from(d->events[i].kind), &body))
        d->events[i] = (struct tide_new_event){d->events[i].kind, body.ptr, body.len};
}

void redact_draft(struct store *store, struct draft *d)
{
    for (size_t i = 0; i < d->n; i++)
        redact_one(store, d, i);
}

void redact_latest(struct store *store, struct draft *d)
{
    redact_one(store, d, d->n - 1);
}

struct str redact_text(struct store *store, struct arena *a, struct str text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);

    return secrets_clean(store->secrets, text, &out) ? arena_dup(a, buf_view(&out)) : text;
}

enum tide_code redact_refuse_name(struct store *store, const char *what, const char *name, struct tide_err *err)
{
    AUTO(buf_done) struct buf shown = BUF_INIT(1024);

    if (!secrets_clean(store->secrets, str_from(name), &shown))
        return TIDE_OK;
    return tide_fail(
        err, TIDE_INVALID,
        "the name of a %s holds a secret, and would be in the log: '%.100s': give it another name (if it is "
        "no secret, name the variable in TIDEMARK_NOT_SECRET)",
        what, buf_cstr(&shown));
}

bool redact_is_marked(const struct json *event, struct str part)
{
    return json_get_bool(event, STR("redacted"), false) &&
           (memmem(part.ptr, part.len, SECRET_MARK, strlen(SECRET_MARK)) || memmem(part.ptr, part.len, "********", 8));
}

enum tide_code tide_store_add_secret(tide_store *store, const char *name, const void *value, size_t len,
                                     struct tide_err *err)
{
    ERR_LOCAL(err);
    if (!name || !value)
        return tide_fail(err, TIDE_INVALID, "a secret has a name and a value");
    return redact_add(store_of(store), str_from(name), (struct str){value, len}, err);
}
