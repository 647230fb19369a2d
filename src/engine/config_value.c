/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One check per type, and further ones for the few keys that are more than their type. Messages say what a value must be
 * and show what it is; where a secret may have been written by mistake they show nothing.
 */
#include "engine/config_value.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "engine/server_settings.h"
#include "graph/spec.h"
#include "session/notify.h"

#define SHOWN 40 /* as much of a bad value as is shown */

/* ---- by type ---- */

static bool is_word(const char *words, struct str text)
{
    for (const char *w = words; text.len > 0 && *w;) {
        size_t n = strcspn(w, " ");

        if (str_eq((struct str){w, n}, text))
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static bool is_text(struct arena *a, const struct json *v)
{
    struct str text = v->type == JSON_STRING ? json_text(a, v) : (struct str){NULL, 0};

    return text.ptr && !memchr(text.ptr, '\0', text.len);
}

static bool in_range(const struct config_key *key, const struct json *v)
{
    int64_t n;

    return json_int(v, &n) && n >= key->min && (key->max == 0 || n <= key->max);
}

/* The point of JSON is a point in every locale. */
double config_value_number(const char *text)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double n = plain ? strtod_l(text, NULL, plain) : 0;

    if (plain)
        freelocale(plain);
    return n;
}

static bool is_amount(struct arena *a, const struct json *v)
{
    return v->type == JSON_NUMBER && v->raw.ptr[0] != '-' && isfinite(config_value_number(arena_dup(a, v->raw).ptr));
}

static bool is_of_types(const struct config_key *key, const struct json *v)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "false", [JSON_TRUE] = "true",    [JSON_NUMBER] = "number",
        [JSON_STRING] = "string", [JSON_ARRAY] = "array", [JSON_OBJECT] = "object"};

    return is_word(key->words, str_from(names[v->type]));
}

static bool value_fits(struct arena *a, const struct config_key *key, const struct json *v)
{
    switch (key->type) {
    case CONFIG_TEXT:
        return is_text(a, v);
    case CONFIG_INT:
        return in_range(key, v);
    case CONFIG_NUMBER:
        return is_amount(a, v);
    case CONFIG_BOOL:
        return v->type == JSON_TRUE || v->type == JSON_FALSE;
    case CONFIG_WORD:
        return v->type == JSON_STRING && is_word(key->words, json_text(a, v));
    case CONFIG_JSON:
        return is_of_types(key, v);
    }
    return false;
}

static const char *describe_key(struct arena *a, const struct config_key *key)
{
    switch (key->type) {
    case CONFIG_TEXT:
        return "a string";
    case CONFIG_INT:
        if (key->max == 0)
            return "a whole number, at least 0";
        return arena_printf(a, "a whole number from %" PRId64 " to %" PRId64, key->min, key->max);
    case CONFIG_NUMBER:
        return "a number, at least 0";
    case CONFIG_BOOL:
        return "true or false";
    case CONFIG_WORD:
        return arena_printf(a, "one of: %s", key->words);
    case CONFIG_JSON:
        return arena_printf(a, strchr(key->words, ' ') ? "JSON, one of: %s" : "a JSON %s", key->words);
    }
    return "?";
}

static enum tide_code misfit(struct arena *a, const struct config_key *key, struct str shown, struct tide_err *err)
{
    if (strcmp(key->name, "api_key") == 0)
        return tide_fail(err, TIDE_INVALID, "must be a string: env:NAME, file:PATH or keychain:NAME");
    if (!shown.len)
        return tide_fail(err, TIDE_INVALID, "must be %s, and is empty", describe_key(a, key));
    return tide_fail(err, TIDE_INVALID, "must be %s, not %.*s%s", describe_key(a, key),
                     (int)(shown.len < SHOWN ? shown.len : SHOWN), shown.ptr, shown.len < SHOWN ? "" : "…");
}

/* ---- by key ---- */

static enum tide_code check_api_key(struct arena *a, const struct json *v, struct tide_err *err)
{
    static const char *const forms[] = {"env:", "file:", "keychain:"};
    struct str text = json_text(a, v);

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (str_starts(text, str_from(forms[i])) && text.len > strlen(forms[i]))
            return TIDE_OK;
    return tide_fail(err, TIDE_INVALID,
                     "must be env:NAME, file:PATH or keychain:NAME: a key itself does not belong in a file that people "
                     "share, copy and back up: put it into a variable or a file of mode 600 and name that");
}

static enum tide_code check_base_url(struct arena *a, const struct json *v, struct tide_err *err)
{
    struct str text = json_text(a, v);
    size_t from = str_starts(text, STR("https://")) ? 8 : str_starts(text, STR("http://")) ? 7 : 0;
    const char *host = text.ptr + from, *slash = memchr(host, '/', text.len - from);
    size_t host_len = slash ? (size_t)(slash - host) : text.len - from;

    if (memchr(text.ptr, '@', from + host_len)) /* not repeated: a password may stand there */
        return tide_fail(err, TIDE_INVALID, "must not hold a name or password: the key is named by api_key");
    if (!from || host_len == 0)
        return tide_fail(err, TIDE_INVALID, "must begin with https:// or http:// and a host");
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f)
            return tide_fail(err, TIDE_INVALID, "must not hold spaces or control characters");
    return TIDE_OK;
}

/* As options have it: one or more numbers with a unit each, or 0. */
static enum tide_code check_duration(struct arena *a, const struct json *v, struct tide_err *err)
{
    static const char units[] = "ms s m h d w";
    const char *text = arena_dup(a, json_text(a, v)).ptr, *p = text;
    bool ok = strcmp(text, "0") != 0;

    while (ok && *p) {
        size_t digits = strspn(p, "0123456789"), letters = strspn(p + digits, "mshdw");

        ok = digits > 0 && digits < 10 && is_word(units, (struct str){p + digits, letters});
        p += digits + letters;
    }
    return ok || strcmp(text, "0") == 0
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID, "must be a duration such as 500ms, 90s, 15m or 3h, not '%.*s'", SHOWN,
                           text);
}

static enum tide_code check_names(struct arena *a, const struct json *v, struct tide_err *err)
{
    for (const struct json *m = v->first; m; m = m->next)
        if (!is_text(a, m))
            return tide_fail(err, TIDE_INVALID, "must hold names of tools: [\"read\", \"grep\"]");
    return TIDE_OK;
}

/* No shell: what the shell would split is split here. */
static enum tide_code check_program(struct arena *a, const struct json *v, struct tide_err *err)
{
    for (const struct json *m = v->first; m; m = m->next)
        if (!is_text(a, m) || (m == v->first && !json_text(a, m).len))
            return tide_fail(err, TIDE_INVALID, "must hold a program and its arguments: [\"/usr/bin/notify\", \"-q\"]");
    return TIDE_OK;
}

static enum tide_code check_changes(struct arena *a, const struct json *v, struct tide_err *err)
{
    for (const struct json *m = v->first; m; m = m->next)
        if (m->type != JSON_STRING || !notify_transition_of(json_text(a, m)))
            return tide_fail(err, TIDE_INVALID, "may hold: " NOTIFY_WORDS);
    return TIDE_OK;
}

static enum tide_code check_price(struct arena *a, const struct json *price, struct tide_err *err)
{
    struct str model = json_key_text(a, price);
    int n = (int)(model.len < SHOWN ? model.len : SHOWN);

    if (price->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "'%.*s' must be an object: {\"input\": 3, \"output\": 15, \"cached\": 0.3}",
                         n, model.ptr);
    for (const struct json *m = price->first; m; m = m->next)
        if (!is_word("input output cached", json_key_text(a, m)) || !is_amount(a, m))
            return tide_fail(err, TIDE_INVALID, "'%.*s' may hold input, output and cached: numbers, at least 0", n,
                             model.ptr);
    return TIDE_OK;
}

static enum tide_code check_prices(struct arena *a, const struct json *v, struct tide_err *err)
{
    for (const struct json *m = v->first; m; m = m->next)
        if (check_price(a, m, err))
            return err->code;
    return TIDE_OK;
}

/* As a graph is read. */
static enum tide_code check_checkpoints(struct arena *a, const struct json *v, struct tide_err *err)
{
    struct spec nothing = {.arena = ARENA_INIT};
    struct spec_checkpoints ignored = {0};
    enum tide_code code = spec_change_checkpoints(&nothing, json_source(v), &ignored, err);

    (void)a;
    arena_done(&nothing.arena);
    return code;
}

static const struct {
    const char *key;
    enum tide_code (*check)(struct arena *a, const struct json *v, struct tide_err *err);
} further[] = {
    {"api_key", check_api_key},
    {"base_url", check_base_url},
    {"sweep_interval", check_duration},
    {"auto_approve_tools", check_names},
    {"prices", check_prices},
    {"checkpoints", check_checkpoints},
    {"notify", check_program},
    {"notify_on", check_changes},
    {"retention", check_duration},
    {"server_programs", server_settings_check_programs},
    {"server_graph_roots", server_settings_check_roots},
    {"server_working_roots", server_settings_check_roots},
};

enum tide_code config_value_check(struct arena *a, const struct config_key *key, const struct json *v,
                                  struct tide_err *err)
{
    bool empty = key->type == CONFIG_TEXT && v->type == JSON_STRING && v->raw.len == 0;

    if (!value_fits(a, key, v))
        return misfit(a, key, json_source(v), err);
    for (size_t i = 0; i < sizeof(further) / sizeof(further[0]) && !empty;
         i++) /* an empty text is one that is not set */
        if (strcmp(further[i].key, key->name) == 0)
            return further[i].check(a, v, err);
    return TIDE_OK;
}

/* ---- as it is typed ---- */

enum tide_code config_value_parse(struct arena *a, const struct config_key *key, const char *text,
                                  struct json **ret_value, struct tide_err *err)
{
    bool plain = key->type == CONFIG_TEXT || key->type == CONFIG_WORD;
    AUTO(buf_done) struct buf quoted = BUF_INIT(CONFIG_FILE_MAX);
    struct str json;

    if (!str_is_utf8(str_from(text), NULL))
        return tide_fail(err, TIDE_INVALID, "must be valid UTF-8");
    if (plain)
        json_quote(&quoted, str_from(text));
    json = arena_dup(a, plain ? buf_view(&quoted) : str_from(text));
    if (quoted.failed)
        return tide_fail(err, TIDE_TOO_BIG, "has more than %zu bytes", CONFIG_FILE_MAX);
    if (json_parse(a, json, NULL, ret_value, NULL, err))
        return key->type == CONFIG_JSON ? tide_wrap(err, "not JSON") : misfit(a, key, str_from(text), err);
    return config_value_check(a, key, *ret_value, err);
}
