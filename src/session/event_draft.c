/* SPDX-License-Identifier: Apache-2.0 */
/* Writing events: bodies are built in one buffer and kept in the draft's arena until the append has been made. */
#include "session/event_draft.h"

#include "base/invariant.h"
#include "base/timefmt.h"

/* Room for one more. */
static struct tide_new_event *slot(struct draft *d)
{
    if (d->n == d->cap) {
        d->cap = d->cap ? d->cap * 2 : DRAFT_EVENTS;
        d->events = mem_grow(d->events, d->cap * sizeof *d->events);
    }
    return &d->events[d->n];
}

struct json_out *draft_open(struct draft *d, const char *kind)
{
    slot(d)->kind = kind;
    buf_clear(&d->text);
    d->out = json_out_to(&d->text);
    json_out_begin(&d->out, '{');
    return &d->out;
}

void draft_close(struct draft *d)
{
    struct str body;

    INVARIANT(d->n < d->cap); /* it was opened */
    json_out_end(&d->out, '}');
    INVARIANT(!d->text.failed);
    body = arena_dup(&d->arena, buf_view(&d->text));
    d->events[d->n].body = body.ptr;
    d->events[d->n].body_len = body.len;
    d->n++;
}

void draft_add(struct draft *d, const char *kind, struct str body)
{
    struct str copy = arena_dup(&d->arena, body);

    draft_take(d, &(struct tide_new_event){kind, copy.ptr, copy.len});
}

void draft_take(struct draft *d, const struct tide_new_event *ev)
{
    *slot(d) = *ev;
    d->n++;
}

void draft_done(struct draft *d)
{
    buf_done(&d->text);
    arena_done(&d->arena);
    free(TAKE(d->events));
    d->n = d->cap = 0;
}

void draft_reset(struct draft *d)
{
    d->n = 0;
    arena_reset(&d->arena);
}

void draft_text(struct draft *d, const char *key, const char *text)
{
    json_out_kstr_opt(&d->out, str_from(key), str_from(text));
}

void draft_error(struct draft *d, const char *code, const char *message)
{
    if (!code && !message)
        return;
    json_out_key(&d->out, STR("error"));
    json_out_begin(&d->out, '{');
    draft_text(d, "code", code);
    draft_text(d, "message", message);
    json_out_end(&d->out, '}');
}

void draft_time(struct draft *d, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];

    if (!unix_ms)
        return;
    time_format(text, unix_ms);
    draft_text(d, key, text);
}

/* As it will be stored, to the byte: the process that looks for the event afterwards compares. */
static struct str compact_value(struct draft *d, const struct json *v)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct str copy;

    json_write(&out, v);
    copy = arena_dup(&d->arena, buf_view(&out));
    buf_done(&out);
    return copy;
}

static bool is_among(const struct json *member, const char *const *names)
{
    for (; names && *names; names++) {
        if (json_key_eq(member, str_from(*names)))
            return true;
    }
    return false;
}

enum tide_code draft_members(struct draft *d, const char *object, const char *const *except, struct tide_err *err)
{
    struct json *v;

    if (!object)
        return TIDE_OK;
    if (json_parse(&d->arena, str_from(object), NULL, &v, NULL, err))
        return tide_wrap(err, "the fields of the run are not valid JSON");
    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "the fields of the run must be a JSON object");
    for (const struct json *m = v->first; m; m = m->next) {
        if (!is_among(m, except))
            json_out_kraw(&d->out, json_key_text(&d->arena, m), compact_value(d, m));
    }
    return TIDE_OK;
}

enum tide_code draft_value(struct draft *d, const char *key, const char *json, struct tide_err *err)
{
    struct json *v;

    if (json && json_parse(&d->arena, str_from(json), NULL, &v, NULL, err))
        return tide_wrap(err, "'%s' is not valid JSON", key);
    json_out_kraw(&d->out, str_from(key), json ? compact_value(d, v) : STR("null"));
    return TIDE_OK;
}
