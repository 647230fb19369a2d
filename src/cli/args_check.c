/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One check per type of value. Messages say which value, what is wrong with it and what it may be; values are cut so that
 * a long one does not push the reason out of the line.
 */
#include "cli/args_check.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/number.h"
#include "base/timefmt.h"
#include "terminal/output.h"
#include "engine/event_line.h"

#define SHOWN "%.60s" /* as much of a bad value as is shown */

static enum tide_code check_int(const char *what, const struct opt *opt, const char *text, struct arg_value *ret,
                                struct tide_err *err)
{
    return number_check(what, text, opt ? opt->min : 0, opt ? opt->max : 0, &ret->number, err);
}

static enum tide_code check_utf8(const char *what, const char *text, struct tide_err *err)
{
    size_t at = 0;

    if (str_is_utf8(str_from(text), &at))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "%s: not valid UTF-8 at byte %zu: give it as UTF-8 text", what, at + 1);
}

static enum tide_code check_id(const char *what, const char *kind, const char *text, struct tide_err *err)
{
    if (str_is_id(str_from(text)))
        return TIDE_OK;
    if (strlen(text) >= TIDE_ID_SIZE)
        return tide_fail(err, TIDE_INVALID, "%s: '%.20s…' is not %s: %zu characters long, at most %d", what, text, kind,
                         strlen(text), TIDE_ID_SIZE - 1);
    return tide_fail(err, TIDE_INVALID,
                     "%s: '" SHOWN "' is not %s: 1 to 64 letters, digits, '_' or '-', the first not '-'", what, text,
                     kind);
}

/* As the library has it: 1 to 64 of [a-z0-9_.], beginning with a letter. */
static enum tide_code check_object(const char *what, const char *text, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *json;

    if (json_parse(&a, str_from(text), NULL, &json, NULL, err))
        return tide_wrap(err, "%s", what);
    if (json->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "%s: must be a JSON object, such as '{\"key\":\"value\"}'", what);
    return TIDE_OK;
}

static enum tide_code check_word(const char *what, const char *words, const char *text, struct tide_err *err)
{
    size_t len = strlen(text);

    for (const char *w = words; len > 0 && *w;) {
        size_t n = strcspn(w, " ");

        if (n == len && memcmp(w, text, n) == 0)
            return TIDE_OK;
        w += n + (w[n] == ' ');
    }
    return tide_fail(err, TIDE_INVALID, "%s: '" SHOWN "' is not one of: %s", what, text, words);
}

static bool parse_time(const char *text, int64_t *ret_ms)
{
    char whole[TIME_TEXT_SIZE];
    size_t n = strlen(text);

    if (time_parse(str_from(text), ret_ms))
        return true;
    if (n != TIME_TEXT_SIZE - 5 || text[n - 1] != 'Z')
        return false;
    snprintf(whole, sizeof(whole), "%.*s.000Z", (int)n - 1, text);
    return time_parse(str_from(whole), ret_ms);
}

static enum tide_code check_when(const char *what, const char *text, struct arg_value *ret, struct tide_err *err)
{
    if (parse_time(text, &ret->number))
        return TIDE_OK;
    if (*text && duration_parse(text, &ret->number)) {
        ret->number += wall_ms();
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID,
                     "%s: '" SHOWN "' is neither a duration from now nor a time: give 3h, 2d or 2026-02-21T10:00:00Z",
                     what, text);
}

static enum tide_code check_since(const char *what, const char *text, struct arg_value *ret, struct tide_err *err)
{
    int64_t ago_ms;

    if (parse_time(text, &ret->number))
        return TIDE_OK;
    if (*text && duration_parse(text, &ago_ms)) {
        ret->number = wall_ms() - ago_ms;
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID,
                     "%s: '" SHOWN "' is neither a duration nor a time: give 3h, 2d or 2026-02-21T10:00:00Z", what,
                     text);
}

static enum tide_code check_size(const char *what, const struct opt *opt, const char *text, struct arg_value *ret,
                                 struct tide_err *err)
{
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits, *at = *unit ? strchr("KMG", *unit) : NULL;
    bool known = !*unit || (at && (!unit[1] || strcmp(unit + 1, "iB") == 0));
    int shift = !at ? 0 : *at == 'K' ? 10 : *at == 'M' ? 20 : 30;

    if (!known || !str_to_int64((struct str){text, digits}, &ret->number))
        return tide_fail(err, TIDE_INVALID, "%s: '" SHOWN "' is not a size: give bytes, or 500K, 16M", what, text);
    if (ret->number > opt->max >> shift)
        return tide_fail(err, TIDE_INVALID, "%s: " SHOWN " is too big: at most %" PRId64 "M", what, text,
                         opt->max >> 20);
    if (ret->number << shift < opt->min)
        return tide_fail(err, TIDE_INVALID, "%s: " SHOWN " is too small: at least %" PRId64 " bytes", what, text,
                         opt->min);
    ret->number <<= shift;
    return TIDE_OK;
}

enum tide_code args_check(const char *what, enum value_type type, const struct opt *opt, const char *text,
                          struct arg_value *ret_value, struct tide_err *err)
{
    *ret_value = (struct arg_value){.given = true, .text = text};
    switch (type) {
    case VALUE_INT:
        return check_int(what, opt, text, ret_value, err);
    case VALUE_WORD:
        return check_word(what, opt->words, text, err);
    case VALUE_SHELL:
        return check_word(what, "bash zsh fish", text, err);
    case VALUE_ID:
        return check_id(what, "an id", text, err);
    case VALUE_SESSION:
        return check_id(what, "a session id", text, err);
    case VALUE_CHECKPOINT:
        return check_id(what, "a checkpoint id", text, err);
    case VALUE_POSITION:
        /* Digits are a seq; anything else must be able to be a checkpoint's id. */
        return number_is(text) ? check_int(what, &(const struct opt){.min = 1}, text, ret_value, err)
                               : check_id(what, "a seq or a checkpoint id", text, err);
    case VALUE_OBJECT:
        return check_object(what, text, err);
    case VALUE_KIND:
        return check_utf8(what, text, err) ? err->code : event_kind_check(what, str_from(text), err);
    case VALUE_STDIN:
        if (strcmp(text, "-") == 0)
            break;
        return tide_fail(err, TIDE_INVALID, "unexpected '" SHOWN "': only - (standard input) is allowed there", text);
    case VALUE_TEXT:
    case VALUE_DATA:
    case VALUE_COMMAND:
    case VALUE_SCHEMA:
    case VALUE_SETTING:
        return check_utf8(what, text, err);
    case VALUE_DURATION:
        return duration_check(what, text, &ret_value->number, err);
    case VALUE_SINCE:
        return check_since(what, text, ret_value, err);
    case VALUE_WHEN:
        return check_when(what, text, ret_value, err);
    case VALUE_SIZE:
        return check_size(what, opt, text, ret_value, err);
    case VALUE_PROGRAM:
    case VALUE_NONE:
    case VALUE_FILE:
    case VALUE_DIR:
        break;
    }
    return TIDE_OK;
}
