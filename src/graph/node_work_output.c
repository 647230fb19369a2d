/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is what came out what the node promised? Only what is declared continues, so that a program may print more than the graph
 * wants; what is declared and not there is a failure of this node and not of a later one that misses it.
 */
#include "graph/node_work_internal.h"

#define SHOWN 60         /* bytes of an output that is no JSON */
#define SHOWN_FROM 16384 /* that are looked at for secrets before they are cut to this */
#define NAMES_MAX 160    /* bytes of keys in a message */

static const char *const type_words[] = {"null", "false", "true", "a number", "a text", "a list", "an object"};

/* ---- what came ---- */

/* What it printed may hold a secret that nobody knows yet. */
static bool gives_secret(const struct node_work *b)
{
    for (size_t i = 0; i < b->n_secrets; i++)
        for (size_t k = 0; k < b->node->outputs.n; k++)
            if (str_eq(b->secrets[i].key, b->node->outputs.at[k]))
                return true;
    return false;
}

static bool fail_json(const struct node_work *b, struct str text, const struct tide_err *err,
                      struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str head = {text.ptr, text.len < SHOWN_FROM ? text.len : SHOWN_FROM};
    const char *why = node_work_piece(&a, b, str_from(err->msg)), *shown = node_work_piece(&a, b, head);

    if (gives_secret(b))
        return node_work_fail_masked(
            b, ret, err->code == TIDE_TOO_BIG ? "too_big" : "bad_output",
            "its output is not one JSON value; it is not shown, because a secret may be in it");
    return node_work_fail_masked(b, ret, err->code == TIDE_TOO_BIG ? "too_big" : "bad_output",
                                 "its output is not one JSON value: %s; it begins: %.*s%s", why, SHOWN, shown,
                                 text.len > SHOWN ? " …" : "");
}

/* ---- the object ---- */

/* The brackets around them are the caller's. */
static void put_member(struct buf *out, struct str key, const struct json *v)
{
    if (out->len > 1)
        buf_add_char(out, ',');
    json_quote(out, key);
    buf_add_char(out, ':');
    json_write(out, v);
}

static void add_name(struct buf *names, struct str key)
{
    buf_addf(names, "%s%.*s", names->len ? ", " : "", STR_ARG(key));
}

/* One that failed and ended well all the same: {"error": {"message": "…"}} says more than what is missing. */
static const char *own_words(const struct node_work *b, struct arena *a, const struct json *v)
{
    const struct json *error = v->type == JSON_OBJECT ? json_get(v, STR("error")) : NULL;
    struct str words = {"", 0};

    if (error && error->type == JSON_STRING)
        words = json_text(a, error);
    else if (error && error->type == JSON_OBJECT)
        words = json_get_text(a, error, STR("message"));
    return words.len && !gives_secret(b) ? node_work_piece(a, b, words) : NULL;
}

static bool fail_missing(const struct node_work *b, struct arena *a, const struct json *v, struct buf *missing,
                         struct node_work_result *ret)
{
    AUTO(buf_done) struct buf given = BUF_INIT(NAMES_MAX);
    const char *words = own_words(b, a, v);

    if (words)
        return node_work_fail_masked(b, ret, "missing_output", "no value for: %s%s; it returned an error: %s",
                                     buf_cstr(missing), missing->failed ? ", …" : "", words);
    for (const struct json *m = v->first; m && !given.failed; m = m->next)
        add_name(&given, json_key_text(a, m));
    if (given.len == 0)
        buf_add_str(&given, STR("nothing"));
    return node_work_fail_masked(
        b, ret, "missing_output", "no value for: %s%s; it returned: %s%s (nullable_outputs may stay unset)",
        buf_cstr(missing), missing->failed ? ", …" : "", buf_cstr(&given), given.failed ? ", …" : "");
}

/* Those that are declared, in their order. */
static bool put_declared(const struct node_work *b, struct arena *a, const struct json *v, struct node_work_result *ret)
{
    AUTO(buf_done) struct buf missing = BUF_INIT(NAMES_MAX);
    const struct spec_node *n = b->node;

    buf_add_char(&ret->output, '{');
    for (size_t i = 0; i < n->outputs.n; i++) {
        const struct json *m = json_get(v, n->outputs.at[i]);

        if ((!m || m->type == JSON_NULL) && !texts_have(&n->nullable_outputs, n->outputs.at[i]))
            add_name(&missing, n->outputs.at[i]);
        else if (m)
            put_member(&ret->output, n->outputs.at[i], m);
    }
    buf_add_char(&ret->output, '}');
    return missing.len == 0 && !missing.failed ? true : fail_missing(b, a, v, &missing, ret);
}

static bool put_lone(const struct node_work *b, struct arena *a, const struct json *v, struct node_work_result *ret)
{
    const struct spec_node *n = b->node;
    AUTO(buf_done) struct buf names = BUF_INIT(NAMES_MAX);

    if (v->type == JSON_NULL)
        return put_declared(b, a, v, ret);
    if (n->outputs.n <= 1) {
        buf_add_char(&ret->output, '{');
        put_member(&ret->output, n->outputs.n ? n->outputs.at[0] : STR("result"), v);
        buf_add_char(&ret->output, '}');
        return true;
    }
    for (size_t i = 0; i < n->outputs.n; i++)
        add_name(&names, n->outputs.at[i]);
    return node_work_fail_masked(b, ret, "bad_output", "returned %s: expected an object with its outputs: %s%s",
                                 type_words[v->type], buf_cstr(&names), names.failed ? ", …" : "");
}

/* What was made, looked at again: members that are not kept may hold what they like. */
static bool check_secrets(const struct node_work *b, struct arena *a, struct node_work_result *ret)
{
    const char *secret = "", *where = "";
    struct tide_err err = {0};
    struct json *v = NULL;

    if (b->n_secrets == 0)
        return true;
    if (json_parse(a, buf_view(&ret->output), NULL, &v, NULL, &err))
        return fail_json(b, buf_view(&ret->output), &err, ret);
    if (!node_work_leaks(a, b, v, &secret, &where))
        return true;
    return node_work_fail_masked(
        b, ret, "secret", "its output '%s' holds the value of '%s', which is never stored: omit it from the output",
        where, secret);
}

bool node_work_output(const struct node_work *b, struct str json, struct node_work_result *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_limits limits = {NODE_WORK_OUTPUT_MAX, 0};
    struct tide_err err = {0};
    struct json *v = NULL;
    struct str text = str_is_blank(json) ? STR("{}") : json;
    bool ok = true;

    buf_clear(&ret->output);
    if (json_parse(&a, text, &limits, &v, NULL, &err))
        return fail_json(b, str_trim(json), &err, ret);
    if (v->type != JSON_OBJECT)
        ok = put_lone(b, &a, v, ret);
    else if (b->node->outputs.n > 0)
        ok = put_declared(b, &a, v, ret);
    else
        json_write(&ret->output, v);
    if (!ok)
        return false;
    if (ret->output.failed)
        return node_work_fail(ret, "too_big", "returned more than %zu bytes", ret->output.max);
    return check_secrets(b, &a, ret);
}
