/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a text file with their numbers. Only as much is read as is shown, and what goes before it; when there is more,
 * the last line says how to get it, so that a model need not guess.
 */
#include "agent/tool_list.h"

#include <unistd.h>

#include "agent/file_lines.h"
#include "agent/tool_text.h"
#include "base/mem.h"
#include "base/utf8.h"

#define LINES_USUAL 2000
#define LINE_CHARS 2000
#define NUMBER_CHARS 8
#define NOTES_CHARS 200
#define STOP_EVERY 4096

struct view {
    const struct tool_work *work;
    int64_t from, lines; /* asked for */
    int64_t shown;
    size_t chars, room;
    bool stopped, more;
};

static void add_line(struct view *v, const struct file_lines *l, struct str line, struct tool_result *ret)
{
    struct buf text = BUF_INIT(3 * FILE_LINE_MAX);
    struct str all;
    size_t keep;

    buf_add_str(&text, line);
    ret->replaced |= text_clean(&text);
    all = buf_view(&text);
    keep = text_head(all, LINE_CHARS);
    if (v->shown > 0 && v->chars + NUMBER_CHARS + utf8_chars((struct str){all.ptr, keep}) > v->room) {
        v->more = true;
        buf_done(&text);
        return;
    }
    buf_addf(&ret->text, "%6lld\t", (long long)l->number);
    buf_add(&ret->text, all.ptr, keep);
    if (keep < all.len || l->cut) {
        buf_add_str(&ret->text, STR(" [… "));
        text_number(&ret->text, all.len - keep + l->cut);
        buf_add_str(&ret->text, STR(" more bytes in this line]"));
    }
    buf_add_char(&ret->text, '\n');
    v->chars += NUMBER_CHARS + utf8_chars((struct str){all.ptr, keep});
    v->shown++;
    buf_done(&text);
}

/* Everything from the first line that is asked for to the last that fits. */
static void show_lines(struct view *v, struct file_lines *l, struct tool_result *ret)
{
    struct str line;

    while (!v->more && file_lines_next(l, &line)) {
        if (l->number % STOP_EVERY == 0 && tool_stopped(v->work)) {
            v->stopped = true;
            return;
        }
        if (l->number < v->from)
            continue;
        if (v->shown == v->lines)
            v->more = true;
        else
            add_line(v, l, line, ret);
    }
}

static void tell_rest(const struct view *v, const struct file_lines *l, const struct stat *st, struct tool_result *ret)
{
    if (v->stopped)
        tool_fail(ret, "stopped at line %lld", (long long)l->number);
    else if (l->errnum)
        tool_fail(ret, "reading stopped at line %lld: %s", (long long)l->number, strerror(l->errnum));
    else if (v->more)
        buf_addf(&ret->text, "[lines %lld to %lld of a file of %lld bytes; for more: offset %lld]\n",
                 (long long)v->from, (long long)(v->from + v->shown - 1), (long long)st->st_size,
                 (long long)(v->from + v->shown));
    else if (v->shown == 0 && l->number == 1)
        buf_add_str(&ret->text, STR("[the file is empty]\n"));
    else if (v->shown == 0)
        tool_fail(ret, "the file has only %lld lines: there is none at offset %lld", (long long)(l->number - 1),
                  (long long)v->from);
    else if (!l->closed)
        buf_add_str(&ret->text, STR("[the last line does not end with a newline]\n"));
}

static void read_file(const struct tool_work *w, int fd, const struct stat *st, struct str path,
                      struct tool_result *ret)
{
    struct view v = {.work = w,
                     .from = json_get_int(w->args, STR("offset"), 1),
                     .lines = json_get_int(w->args, STR("limit"), LINES_USUAL),
                     .room = tool_room(w)};
    struct file_lines l;

    v.from = v.from < 1 ? 1 : v.from;
    v.room = v.room > 2 * NOTES_CHARS ? v.room - NOTES_CHARS : v.room;
    file_lines_init(&l, fd);
    if (file_lines_binary(&l)) {
        tool_fail(ret, "'%.*s' is a binary file of %lld bytes: only text can be read", STR_ARG(path),
                  (long long)st->st_size);
    } else {
        show_lines(&v, &l, ret);
        tell_rest(&v, &l, st, ret);
    }
    file_lines_done(&l);
}

static void run_read(struct tool_work *w, struct tool_result *ret)
{
    struct arena a = ARENA_INIT;
    struct str path = json_get_text(&a, w->args, STR("path"));
    struct confined b = tool_beneath(w);
    struct tide_err err;
    struct stat st;
    int fd;

    if (confined_open(&b, path, CONFINED_FILE, &fd, &st, &err)) {
        tool_fail(ret, "%s", err.msg);
    } else {
        read_file(w, fd, &st, path, ret);
        close(fd);
    }
    arena_done(&a);
}

const struct tool tool_read = {
    .name = "read",
    .description =
        "Read a text file in the working directory. Each line comes with its number and a tab before it, which "
        "are not part of the file.",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"path\":{\"type\":\"string\",\"description\":\"the file\"},"
              "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"number of the first line, from 1\"},"
              "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"how many lines, 2000 unless said\"}},"
              "\"required\":[\"path\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_PURE,
    .subject = "path",
    .permission = TIDE_PERMISSION_ALLOW,
    .run = run_read,
};
