/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that somebody is asked about: the command, the text, what goes and what comes, not the JSON that holds them. Who
 * answers decides by what is read here, so nothing of the call is left out, each line begins with what kind of line it is
 * (a text cannot look like another part of the call), and characters that are not seen are made visible.
 *
 *   bash   $ make clean          write  path: a.c       edit   path: a.c
 *          > make                       + int a;               - int a;
 *                                                              + int b;
 *
 * Where the diff of the file is known it stands in the place of the texts: @@, blank, - and + begin its lines.
 */
#include "cli/chat/chat_detail.h"

#include "base/json.h"
#include "terminal/glyph.h"

/* Members of known tools: before their first line and before the others. The rest, and all of others, stand by name. */
static const struct part {
    const char *tool, *member, *first, *next;
} parts[] = {
    {"bash", "command", "$ ", "> "},  {"write", "path", "path: ", "| "}, {"write", "content", "+ ", "+ "},
    {"edit", "path", "path: ", "| "}, {"edit", "old", "- ", "- "},       {"edit", "new", "+ ", "+ "},
};

static bool is_unseen(struct str shown)
{
    return shown.len == 0 || str_eq(shown, STR("\xe2\x80\x8c")) || str_eq(shown, STR("\xe2\x80\x8d"));
}

/* One line: controls as their pictures, what has no width as the replacement character. */
static void put_line(struct buf *out, const char *before, struct str line)
{
    buf_add_str(out, str_from(before));
    while (line.len > 0) {
        struct glyph g = glyph_next(line, true);

        buf_add_str(out, is_unseen(g.show) ? STR("\xef\xbf\xbd") : g.show);
        line = (struct str){line.ptr + g.len, line.len - g.len};
    }
    buf_add_char(out, '\n');
}

static void put_text(struct buf *out, const char *first, const char *next, struct str text)
{
    for (const char *before = first; text.len > 0; before = next) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len;

        put_line(out, before, (struct str){text.ptr, n});
        n += end != NULL;
        text = (struct str){text.ptr + n, text.len - n};
    }
}

static const struct part *part_of(const char *tool, const struct json *member)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(parts[i].tool, tool) == 0 && json_key_eq(member, str_from(parts[i].member)))
            return member->type == JSON_STRING && member->raw.len ? &parts[i] : NULL;
    return NULL;
}

static void put_member(struct buf *out, struct arena *a, const struct json *m)
{
    AUTO(buf_done) struct buf name = BUF_INIT(SIZE_MAX / 4);
    bool text = m->type == JSON_STRING && m->raw.len > 0;

    put_line(&name, "", json_key_text(a, m));
    name.len--;
    buf_add_str(&name, STR(": "));
    put_text(out, buf_cstr(&name), "| ", text ? json_text(a, m) : json_source(m));
}

/* Texts that the diff stands for. */
static bool is_in_diff(const char *tool, const struct json *m)
{
    const struct part *p = part_of(tool, m);

    return p && (strcmp(p->first, "+ ") == 0 || strcmp(p->first, "- ") == 0);
}

void chat_detail(struct buf *out, const char *tool, const char *args, struct str diff)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *json = NULL;

    if (json_parse(&a, str_from(args), NULL, &json, NULL, NULL) || json->type != JSON_OBJECT) {
        put_text(out, "", "| ", str_from(args));
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (const struct json *m = json->first; m; m = m->next)
            if (part_of(tool, m) == &parts[i] && !(diff.len && is_in_diff(tool, m)))
                put_text(out, parts[i].first, parts[i].next, json_text(&a, m));
    put_text(out, "", "", diff);
    for (const struct json *m = json->first; m; m = m->next)
        if (!part_of(tool, m))
            put_member(out, &a, m);
}
