/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every text here was written by somebody else, perhaps to deceive: values are shown as the JSON they are stored as, and
 * what would move the cursor, turn the direction of text or not be seen at all is spelled out.
 */
#include "cli/trust_view.h"

#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/yes_no.h"

#define NAME_COLUMNS 12

/* Also marks on other characters, blanks that are none, private ones: what a person is to judge is seen. */
static bool is_doubtful(uint32_t c)
{
    static const struct utf8_range ranges[] = {
        {0xa0, 0xa0},     {0x300, 0x36f},   {0x1680, 0x1680},   {0x2000, 0x200a},    {0x202f, 0x202f},
        {0x205f, 0x205f}, {0x20d0, 0x20ff}, {0x2800, 0x2800},   {0x3000, 0x3000},    {0xe000, 0xf8ff},
        {0xfe0e, 0xfe0f}, {0xfffc, 0xfffc}, {0x1d159, 0x1d159}, {0xe1000, 0x10ffff},
    };

    return utf8_is_unseen(c) || utf8_in(ranges, sizeof(ranges) / sizeof(ranges[0]), c);
}

void trust_escape(struct buf *out, struct str json)
{
    while (json.len > 0) {
        uint32_t c = 0xfffd;
        size_t n = utf8_next(json, &c);

        if (n == 0 || is_doubtful(c))
            glyph_escape(out, n ? c : 0xfffd);
        else
            buf_add(out, json.ptr, n);
        n = n ? n : 1;
        json = (struct str){json.ptr + n, json.len - n};
    }
}

/* ---- one line each ---- */

static void print_name(struct out *out, const char *name, int indent)
{
    outf(out, "%*s%s%-*s%s ", indent, "", color_code(out, COLOR_DIM), NAME_COLUMNS, name, color_code(out, COLOR_NONE));
}

static void print_value(struct out *out, const char *name, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        return;
    print_name(out, name, 2);
    trust_escape(&out->text, json_source(v));
    outf(out, "\n");
}

static void print_object(struct out *out, const char *name, const struct json *object)
{
    if (!object || object->type != JSON_OBJECT || !object->first)
        return;
    print_name(out, name, 2);
    for (const struct json *m = object->first; m; m = m->next) {
        trust_escape(&out->text, m->key);
        outf(out, " ");
        trust_escape(&out->text, json_source(m));
        outf(out, "%s", m->next ? ", " : "\n");
    }
}

static void print_each(struct out *out, const char *name, const struct json *array)
{
    for (const struct json *v = array ? array->first : NULL; v; v = v->next)
        print_value(out, name, v);
}

/* A graph, each of its nodes and edges in a line, as they are stored. */
static void print_graph(struct out *out, const char *name, const struct json *graph)
{
    static const struct {
        const char *member, *name;
    } lists[] = {{"nodes", "  node"}, {"edges", "  edge"}};

    if (!graph)
        return;
    print_name(out, name, 2);
    for (const struct json *m = graph->first; m; m = m->next)
        if (!json_key_eq(m, STR("nodes")) && !json_key_eq(m, STR("edges"))) {
            trust_escape(&out->text, m->key);
            outf(out, " ");
            trust_escape(&out->text, json_source(m));
            outf(out, "%s", m->next ? ", " : "");
        }
    outf(out, "\n");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        print_each(out, lists[i].name, json_get(graph, str_from(lists[i].member)));
}

void trust_print(struct out *out, struct str shown)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (json_parse(&a, shown, NULL, &v, NULL, NULL))
        return;
    outf(out, "session ");
    trust_escape(&out->text, json_get_text(&a, v, STR("session_id")));
    outf(out, json_get_bool(v, STR("trusted"), false) ? " is trusted; it runs:\n"
                                                      : " is not trusted; what of it would run, and with what:\n");
    print_value(out, "title", json_get(v, STR("title")));
    print_value(out, "directory", json_get(v, STR("working_dir")));
    print_object(out, "model", json_get(v, STR("provider")));
    print_value(out, "tools", json_get(v, STR("tools")));
    print_object(out, "program", json_get(v, STR("program")));
    print_graph(out, "graph", json_get(v, STR("graph")));
    print_graph(out, "stored graph", json_get(v, STR("stored_graph")));
    print_object(out, "memory", json_get(v, STR("memory")));
    print_object(out, "position", json_get(v, STR("position")));
    print_each(out, "call", json_get(v, STR("calls")));
    print_each(out, "message", json_get(v, STR("queued")));
}

/* ---- asking ---- */

enum tide_code trust_ask(struct cli *cli, const char *question, struct tide_err *err)
{
    char line[64];

    if (args_on(&cli->args, "yes"))
        return TIDE_OK;
    if (out_flush(&cli->out, err))
        return err->code;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return tide_fail(err, TIDE_UNTRUSTED,
                         "not trusted: there is no terminal to ask at; give --yes when you have read it");
    fprintf(stderr, "%s [y/N] ", question);
    if (!fgets(line, sizeof(line), stdin) || yes_no_word(str_from(line)) != YES_NO_YES)
        return tide_fail(err, TIDE_UNTRUSTED, "not trusted: nothing was changed");
    return TIDE_OK;
}
