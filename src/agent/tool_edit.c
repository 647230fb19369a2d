/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One text in a file replaced by another.
 *
 * Its effect is `once`. Run again after it happened it would fail, or worse, happen twice (old "a", new "aa"). But a cut
 * edit can be settled, because it is made in two steps:
 *
 *   prepare   a file named after the key is made beside it, and is on disk    before the start is written down
 *   run       the new content goes into that file, which then takes the name  the rename consumes it
 *   drop      what is left of it goes                                         after the outcome is written down
 *
 * So of a started edit whose end nobody saw: the file beside it is there: it did not happen; it is not: it did. The
 * content must agree, else somebody else has written too, and that is not known.
 */
#include "agent/tool_list.h"

#include <errno.h>
#include <unistd.h>

#include "agent/tool_text.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)16 << 20)
#define CONTEXT_LINES 2
#define SHOWN_LINES 40
#define LINE_CHARS 300

struct edit {
    struct arena arena;
    struct confined beneath;
    struct str path, old, new;
    bool all;
};

static void edit_init(struct edit *e, const struct tool_work *w)
{
    *e = (struct edit){.arena = ARENA_INIT, .beneath = tool_beneath(w)};
    e->path = arena_dup(&e->arena, json_get_text(&e->arena, w->args, STR("path"))); /* with its NUL: it is printed */
    e->old = json_get_text(&e->arena, w->args, STR("old"));
    e->new = json_get_text(&e->arena, w->args, STR("new"));
    e->all = json_get_bool(w->args, STR("replace_all"), false);
}

static void edit_done(struct edit *e)
{
    arena_done(&e->arena);
}

static enum tide_code load_file(const struct edit *e, struct buf *ret_text, struct tide_err *err)
{
    struct stat st;
    int fd, bad;

    if (confined_open(&e->beneath, e->path, CONFINED_FILE, &fd, &st, err))
        return err->code;
    bad = buf_read_fd(ret_text, fd);
    close(fd);
    if (bad)
        return tide_fail_errno(err, bad, "read '%.*s'", STR_ARG(e->path));
    if (ret_text->failed)
        return tide_fail(err, TIDE_TOO_BIG, "'%.120s' is bigger than %zu MiB: edit it with a command", e->path.ptr,
                         FILE_MAX >> 20);
    return TIDE_OK;
}

static const char *next_match(struct str text, size_t from, struct str what)
{
    return what.len && from <= text.len ? memmem(text.ptr + from, text.len - from, what.ptr, what.len) : NULL;
}

static size_t count_matches(struct str text, struct str what)
{
    size_t n = 0;

    for (const char *at = next_match(text, 0, what); at;
         at = next_match(text, (size_t)(at - text.ptr) + what.len, what))
        n++;
    return n;
}

/* ---- the result: the lines that changed, as they are now ---- */

static size_t line_of(struct str text, size_t at)
{
    size_t n = 1;

    for (size_t i = 0; i < at && i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

static void show_change(struct buf *out, struct str text, size_t from, size_t to)
{
    size_t first = line_of(text, from), last = first + line_of((struct str){text.ptr + from, to - from}, to - from) - 1;
    size_t number = 1, shown = 0;

    first = first > CONTEXT_LINES ? first - CONTEXT_LINES : 1;
    last += CONTEXT_LINES;
    for (size_t at = 0; at < text.len && number <= last && shown < SHOWN_LINES; number++) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - (text.ptr + at)) : text.len - at;

        if (number >= first) {
            buf_addf(out, "%6zu\t", number);
            text_line(out, (struct str){text.ptr + at, len}, LINE_CHARS);
            buf_add_char(out, '\n');
            shown++;
        }
        at += len + 1;
    }
    if (shown == SHOWN_LINES && number <= last)
        buf_add_str(out, STR("[…]\n"));
}

/* ---- doing it ---- */

static void replace_text(struct buf *out, struct str text, const struct edit *e, size_t *ret_first)
{
    size_t from = 0;

    for (const char *at = next_match(text, 0, e->old); at; at = next_match(text, from, e->old)) {
        buf_add(out, text.ptr + from, (size_t)(at - (text.ptr + from)));
        if (*ret_first == SIZE_MAX)
            *ret_first = out->len;
        buf_add_str(out, e->new);
        from = (size_t)(at - text.ptr) + e->old.len;
    }
    buf_add(out, text.ptr + from, text.len - from);
}

static enum tide_code check_edit(const struct edit *e, struct str text, size_t *ret_count, struct tide_err *err)
{
    size_t n = count_matches(text, e->old);
    bool blanks = n == 0 && memchr(text.ptr, '\r', text.len) && memchr(e->old.ptr, '\n', e->old.len);

    *ret_count = n;
    if (n == 0)
        return tide_fail(err, TIDE_NOT_FOUND, "the old text is not in '%.120s'%s: read the file and give it exactly",
                         e->path.ptr, blanks ? " (its lines end with \\r\\n)" : "");
    if (n > 1 && !e->all)
        return tide_fail(err, TIDE_AMBIGUOUS,
                         "the old text is in '%.120s' %zu times: give more of the lines around it, or replace_all",
                         e->path.ptr, n);
    return TIDE_OK;
}

static enum tide_code apply_edit(const struct edit *e, const char *key, struct buf *text, struct buf *out,
                                 struct tool_result *ret, struct tide_err *err)
{
    size_t n = 0, first = SIZE_MAX;

    if (load_file(e, text, err) || check_edit(e, buf_view(text), &n, err))
        return err->code;
    replace_text(out, buf_view(text), e, &first);
    if (out->failed)
        return tide_fail(err, TIDE_TOO_BIG, "'%.120s' would become bigger than %zu MiB", e->path.ptr,
                         2 * FILE_MAX >> 20);
    if (confined_replace(&e->beneath, e->path, CONFINED_KEEP, key, buf_view(out), err))
        return err->code;
    buf_addf(&ret->text, "'%.*s' changed in %zu %s%s:\n", STR_ARG(e->path), n, n == 1 ? "place" : "places",
             n == 1 ? "" : ", the first");
    show_change(&ret->text, buf_view(out), first, first + e->new.len);
    return TIDE_OK;
}

static void run_edit(struct tool_work *w, struct tool_result *ret)
{
    struct buf text = BUF_INIT(FILE_MAX), out = BUF_INIT(2 * FILE_MAX);
    AUTO(edit_done) struct edit e;
    struct tide_err err;

    edit_init(&e, w);
    if (apply_edit(&e, w->key, &text, &out, ret, &err))
        tool_fail(ret, "%s", err.msg);
    buf_done(&text);
    buf_done(&out);
}

static enum tide_code preview(struct tool_work *w, struct buf *ret_before, struct buf *ret_after, struct tide_err *err)
{
    AUTO(edit_done) struct edit e;
    size_t n = 0, first = SIZE_MAX;

    edit_init(&e, w);
    if (load_file(&e, ret_before, err) || check_edit(&e, buf_view(ret_before), &n, err))
        return err->code;
    replace_text(ret_after, buf_view(ret_before), &e, &first);
    return ret_after->failed ? tide_fail(err, TIDE_TOO_BIG, "'%.120s' would become too big", e.path.ptr) : TIDE_OK;
}

static enum tide_code prepare_edit(struct tool_work *w, struct tide_err *err)
{
    AUTO(edit_done) struct edit e;

    edit_init(&e, w);
    if (e.old.len == 0)
        return tide_fail(err, TIDE_INVALID, "edit: the old text is empty: a new file is made with 'write'");
    if (str_eq(e.old, e.new))
        return tide_fail(err, TIDE_INVALID, "edit: the old and the new text are the same");
    return confined_mark(&e.beneath, e.path, w->key, err) ? (err->code = TIDE_INVALID) : TIDE_OK;
}

/* The mark is also gone when it failed. After one that was made the new text is there, the old one only as part of it. */
static bool is_done(const struct edit *e, struct str text)
{
    if (!next_match(e->new, 0, e->old) && count_matches(text, e->old) > 0)
        return false;
    return e->new.len == 0 || count_matches(text, e->new) > 0;
}

static enum tool_fate fate(struct tool_work *w)
{
    struct buf text = BUF_INIT(FILE_MAX);
    AUTO(edit_done) struct edit e;
    enum tool_fate fate = FATE_UNKNOWN;
    struct tide_err err;
    bool there = false;

    edit_init(&e, w);
    if (confined_marked(&e.beneath, e.path, w->key, &there, &err) == TIDE_OK) {
        if (there)
            fate = FATE_DID_NOT;
        else if (!load_file(&e, &text, &err) && is_done(&e, buf_view(&text)))
            fate = FATE_HAPPENED;
    }
    buf_done(&text);
    return fate;
}

static void drop_edit(struct tool_work *w)
{
    AUTO(edit_done) struct edit e;

    edit_init(&e, w);
    confined_unmark(&e.beneath, e.path, w->key);
}

const struct tool tool_edit = {
    .name = "edit",
    .description =
        "Replace a text in a file of the working directory by another. The old text must be given exactly, with "
        "its white space, and be there once, unless replace_all is true.",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"path\":{\"type\":\"string\",\"description\":\"the file\"},"
              "\"old\":{\"type\":\"string\",\"description\":\"the text that is there now\"},"
              "\"new\":{\"type\":\"string\",\"description\":\"what shall be there instead\"},"
              "\"replace_all\":{\"type\":\"boolean\",\"description\":\"every one of them, however many\"}},"
              "\"required\":[\"path\",\"old\",\"new\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_ONCE,
    .subject = "path",
    .permission = TIDE_PERMISSION_ASK,
    .prepare = prepare_edit,
    .run = run_edit,
    .fate = fate,
    .drop = drop_edit,
    .preview = preview,
};
