/* SPDX-License-Identifier: Apache-2.0 */
/* An error for programs: they branch on code, detail and hints; the message is for people. */
#include <stdio.h>

#include "engine/shapes.h"

/* ---- what it is about ---- */

static bool has_subject(const void *data)
{
    return ((const struct tide_detail *)data)->subject != 0;
}

static void put_subject(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_subject_name(((const struct tide_detail *)data)->subject)));
}

static bool has_position(const void *data)
{
    return ((const struct tide_detail *)data)->position != 0;
}

#define SUBJECT_WORD(name, number, text) text " "
#define AT(member) SHAPE_AT(struct tide_detail, member)

static const struct shape shape_detail = {
    .members =
        (const struct shape_member[]){
            {"subject", SHAPE_TEXT, AT(subject), SHAPE_NULLABLE, "what it is about",
             .words = TIDE_SUBJECTS(SUBJECT_WORD), .has = has_subject, .put = put_subject},
            {"session_id", SHAPE_CHARS, AT(session_id), SHAPE_NULLABLE, "of which session"},
            {"name", SHAPE_CHARS, AT(name), SHAPE_NULLABLE, "the name of the step, node, key, file or checkpoint"},
            {"position", SHAPE_INT, AT(position), SHAPE_NULLABLE, "of an event: its seq; in a file: the line",
             .has = has_position},
            {.name = NULL},
        },
};
#undef AT

/* ---- the error ---- */

static void put_code(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_code_name(((const struct error_shown *)data)->err.code)));
}

static void put_retry(struct json_out *o, const void *data)
{
    json_out_bool(o, tide_code_retry(((const struct error_shown *)data)->err.code));
}

static void put_hints(struct json_out *o, const void *data)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct error_shown *e = data;

    json_out_begin(o, '[');
    for (size_t i = 0; i < sizeof e->err.hints / sizeof e->err.hints[0]; i++) {
        const struct tide_hint *h = &e->err.hints[i];
        const struct tide_next next = {h->action, h->kind, h->session_id, h->arguments};

        if (h->action)
            shape_put(o, &shape_next, &(struct next_shown){next, e->command ? e->command(&a, &next) : NULL});
    }
    json_out_end(o, ']');
}

#define CODE_WORD(name, number, exit, http, retry, text) #name " "
#define AT(member) SHAPE_AT(struct error_shown, member)

const struct shape shape_error = {
    .name = "error",
    .help = "A command that failed, on standard error.",
    .members =
        (const struct shape_member[]){
            {"error", SHAPE_TEXT, AT(err.code), 0, "the code", .words = TIDE_CODES(CODE_WORD), .put = put_code},
            {"message", SHAPE_CHARS, AT(err.msg), 0, "for people"},
            {"retry", SHAPE_BOOL, AT(err.code), 0, "the same may succeed later", .put = put_retry},
            {"detail", SHAPE_OBJECT, AT(err.detail), 0, "what it is about", .of = &shape_detail},
            {"hints", SHAPE_LIST, AT(err.hints), 0, "what helps, the likelier one first", .of = &shape_next,
             .put = put_hints},
            {.name = NULL},
        },
};
#undef AT

#define AT(member) SHAPE_AT(struct notice_shown, member)

const struct shape shape_notice = {
    .name = "notice",
    .help = "What a command says while it works, on standard error.",
    .members = (const struct shape_member[]){{"notice", SHAPE_TEXT, AT(text), 0, "for people"}, {.name = NULL}},
};

/* ---- and back: what another process of ours says ---- */

static enum tide_code code_from(struct str name)
{
#define IF_CODE(code, number, exit, http, retry, text)                                                                 \
    if (str_eq(name, STR(#code)))                                                                                      \
        return TIDE_##code;
    TIDE_CODES(IF_CODE)
#undef IF_CODE
    return TIDE_FAILED;
}

static enum tide_subject subject_from(struct str name)
{
#define IF_SUBJECT(subject, number, text)                                                                              \
    if (str_eq(name, STR(text)))                                                                                       \
        return TIDE_SUBJECT_##subject;
    TIDE_SUBJECTS(IF_SUBJECT)
#undef IF_SUBJECT
    return 0;
}

static void take_hint(struct arena *a, const struct json *v, struct tide_hint *ret)
{
    int action = tide_action_from(arena_dup(a, json_get_text(a, v, STR("action"))).ptr);
    const struct json *arguments = json_get(v, STR("arguments"));

    if (action <= 0)
        return;
    ret->action = (enum tide_action)action;
    snprintf(ret->session_id, sizeof ret->session_id, "%.*s", STR_ARG(json_get_text(a, v, STR("session_id"))));
    snprintf(ret->arguments, sizeof ret->arguments, "%.*s", STR_ARG(arguments ? json_source(arguments) : STR("{}")));
}

enum tide_code error_from_json(struct str json, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *detail, *hint;
    struct json *v = NULL;

    if (json_parse(&a, json, NULL, &v, NULL, NULL))
        return TIDE_OK;
    tide_fail(err, code_from(json_get_text(&a, v, STR("error"))), "%.*s",
              STR_ARG(json_get_text(&a, v, STR("message"))));
    detail = json_get(v, STR("detail"));
    err->detail.subject = subject_from(json_get_text(&a, detail, STR("subject")));
    err->detail.position = json_get_int(detail, STR("position"), 0);
    snprintf(err->detail.name, sizeof err->detail.name, "%.*s", STR_ARG(json_get_text(&a, detail, STR("name"))));
    snprintf(err->detail.session_id, sizeof err->detail.session_id, "%.*s",
             STR_ARG(json_get_text(&a, detail, STR("session_id"))));
    hint = json_get(v, STR("hints"));
    hint = hint ? hint->first : NULL;
    for (size_t i = 0; hint && i < sizeof err->hints / sizeof err->hints[0]; i++, hint = hint->next)
        take_hint(&a, hint, &err->hints[i]);
    return err->code;
}
