/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, numbers and escapes stay as they were written: only the kind is taken out. */
#include "engine/event_line.h"

#include "base/json.h"
#include "session/kinds.h"

void event_line_done(struct event_line *s)
{
    arena_done(&s->arena);
    buf_done(&s->body);
}

/* Editors of some systems put it before a text; JSON has no place for it. `what` is how the message names the text. */
enum tide_code event_text_check(const char *what, struct str text, struct tide_err *err)
{
    if (!str_starts(text, STR("\xef\xbb\xbf")))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID,
                     "%s begins with a byte order mark (UTF-8 BOM), which is not JSON: save it without one", what);
}

enum tide_code event_kind_check(const char *what, struct str kind, struct tide_err *err)
{
    if (kind_is_valid(kind))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID,
                     "%s: '%.*s' is not an event kind: give 1 to 64 lower-case letters, digits, '_' and '.', the "
                     "first a letter, such as message.user",
                     what, (int)(kind.len < 60 ? kind.len : 60), kind.ptr);
}

static enum tide_code ask_for_kind(const char *what, struct tide_err *err)
{
    tide_fail(err, TIDE_INVALID, "%s: give every line one, or one for all", what);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"kind\":null");
}

/* Splits {"kind":K,fields…} into the kind and {fields…}. */
static enum tide_code split_kind(struct event_line *s, const struct json *line, struct str *ret_kind,
                                 struct tide_err *err)
{
    const struct json *kind = NULL;

    buf_add_char(&s->body, '{');
    for (const struct json *m = line->first; m; m = m->next) {
        if (json_key_eq(m, STR("seq")) || json_key_eq(m, STR("ts")))
            return tide_fail(err, TIDE_INVALID, "has '%.*s': the log sets number and time of events: omit it",
                             STR_ARG(json_key_text(&s->arena, m)));
        if (json_key_eq(m, STR("kind"))) {
            kind = m;
            continue;
        }
        /* As it stands in the source: the writer would normalise the escapes of its key. */
        buf_addf(&s->body, "%s\"%.*s\":", s->body.len > 1 ? "," : "", STR_ARG(m->key));
        buf_add_str(&s->body, json_source(m));
    }
    buf_add_char(&s->body, '}');
    if (!kind || kind->type != JSON_STRING)
        return ask_for_kind(kind ? "\"kind\" is not a string" : "no \"kind\"", err);
    *ret_kind = arena_dup(&s->arena, json_text(&s->arena, kind));
    if (memchr(ret_kind->ptr, '\0', ret_kind->len))
        return tide_fail(err, TIDE_INVALID, "\"kind\" holds a NUL character");
    return event_kind_check("\"kind\"", *ret_kind, err);
}

enum tide_code event_line_read(struct event_line *s, struct str line, const char *given,
                               struct tide_new_event *ret_event, struct tide_err *err)
{
    struct json *json = NULL;
    struct str kind = {0};

    arena_reset(&s->arena);
    buf_clear(&s->body);
    if (event_text_check("it", line, err))
        return err->code;
    if (json_parse_line(&s->arena, line, &json, err))
        return err->code;
    if (json->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "not a JSON object");
    if (given && json_get(json, STR("kind"))) {
        tide_fail(err, TIDE_INVALID, "has its own \"kind\", but '%s' is given for all lines: omit one of them", given);
        return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"kind\":false");
    }
    if (given) {
        *ret_event = (struct tide_new_event){given, line.ptr, line.len};
        return TIDE_OK;
    }
    if (split_kind(s, json, &kind, err))
        return err->code;
    *ret_event = (struct tide_new_event){kind.ptr, buf_cstr(&s->body), s->body.len};
    return TIDE_OK;
}
