/* SPDX-License-Identifier: Apache-2.0 */
/* What a resume would do, as sentences: from where, what runs, what does not run again, and every obstacle. */
#include "tui/app.h"

#define NAMES_MAX 12

static void add_text(struct lines *l, const char *lead, enum ink lead_ink, enum ink ink, int columns, const char *text)
{
    lines_add(l, str_from(text), columns, 6,
              &(struct line){.lead = lead, .lead_ink = lead_ink, .ink = ink, .indent = 2, .entry = -1});
}

/* "a, b, c and 4 more": texts, or objects that have one of this name. */
static const char *names_of(struct arena *a, const struct json *list, const char *member, uint32_t *ret_n)
{
    const char *text = "";
    uint32_t n = 0;

    *ret_n = list && list->type == JSON_ARRAY ? list->count : 0;
    for (const struct json *one = *ret_n ? list->first : NULL; one && n < NAMES_MAX; one = one->next, n++) {
        struct str name = one->type == JSON_STRING ? json_text(a, one) : json_get_text(a, one, str_from(member));

        text = arena_printf(a, "%s%s%.*s", text, n ? ", " : "", STR_ARG(name));
    }
    return *ret_n > n ? arena_printf(a, "%s and %u more", text, *ret_n - n) : text;
}

static void say_names(struct lines *l, const struct json *v, const char *key, const char *member, const char *what,
                      int columns)
{
    uint32_t n;
    const char *names = names_of(&l->arena, json_get(v, str_from(key)), member, &n);

    if (n)
        add_text(l, NULL, INK_PLAIN, INK_PLAIN, columns, arena_printf(&l->arena, "%s: %s", what, names));
}

static void say_missing(struct lines *l, const struct json *v, int columns)
{
    const struct json *list = json_get(v, STR("missing_inputs"));

    for (const struct json *one = list ? list->first : NULL; one; one = one->next)
        add_text(l, "▲", INK_WARN, INK_PLAIN, columns,
                 arena_printf(
                     &l->arena, "'%.*s' needs '%.*s'%s", STR_ARG(json_get_text(&l->arena, one, STR("node"))),
                     STR_ARG(json_get_text(&l->arena, one, STR("key"))),
                     json_get_bool(one, STR("never_stored"), false) ? ", which is stored nowhere: give it again" : ""));
}

static void say_list(struct lines *l, const struct json *v, const char *key, const char *lead, enum ink ink,
                     int columns)
{
    const struct json *list = json_get(v, str_from(key));

    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct str text =
            one->type == JSON_STRING ? json_text(&l->arena, one) : json_get_text(&l->arena, one, STR("reason"));

        add_text(l, lead, ink, ink, columns, arena_dup(&l->arena, text).ptr);
    }
}

void plan_lines(struct lines *l, struct str json, int columns)
{
    const struct json *from;
    struct json *v = NULL;
    struct str checkpoint;

    if (json_parse(&l->arena, arena_dup(&l->arena, json), NULL, &v, NULL, NULL))
        return;
    from = json_get(v, STR("from"));
    checkpoint = json_get_text(&l->arena, from, STR("checkpoint"));
    add_text(l, "→", INK_ACCENT, INK_PLAIN, columns,
             checkpoint.len ? arena_printf(&l->arena, "from checkpoint %.*s, event %lld", STR_ARG(checkpoint),
                                           (long long)json_get_int(from, STR("seq"), 0))
                            : arena_printf(&l->arena, "from where it stands, event %lld",
                                           (long long)json_get_int(from, STR("seq"), 0)));
    say_names(l, v, "nodes_to_run", "node", "runs", columns);
    say_names(l, v, "complete", "node", "does not run again", columns);
    say_names(l, v, "happened", "node", "is taken as happened", columns);
    say_names(l, v, "overrides", "key", "is set first", columns);
    say_missing(l, v, columns);
    say_list(l, v, "refused", "✗", INK_BAD, columns);
    say_list(l, v, "warnings", "▲", INK_WARN, columns);
}

/* What a rollback would undo. */
void undone_lines(struct lines *l, struct str json, int columns)
{
    static const struct {
        const char *key, *one, *many;
    } counts[] = {{"messages", "message", "messages"},
                  {"tools", "call or step", "calls and steps"},
                  {"nodes", "node", "nodes"},
                  {"checkpoints", "checkpoint", "checkpoints"}};
    const struct json *undone;
    struct json *v = NULL;
    const char *text = "";
    const char *names;
    uint32_t n;

    if (json_parse(&l->arena, arena_dup(&l->arena, json), NULL, &v, NULL, NULL))
        return;
    undone = json_get(v, STR("undone"));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int64_t many = json_get_int(undone, str_from(counts[i].key), 0);

        if (many)
            text = arena_printf(&l->arena, "%s%s%lld %s", text, *text ? ", " : "", (long long)many,
                                many == 1 ? counts[i].one : counts[i].many);
    }
    add_text(l, "↶", INK_WARN, INK_PLAIN, columns,
             *text ? arena_printf(&l->arena, "undone: %s", text) : "there is nothing behind it that counts");
    names = names_of(&l->arena, json_get(undone, STR("once_effects")), "name", &n);
    if (n)
        add_text(l, "▲", INK_WARN, INK_PLAIN, columns,
                 arena_printf(&l->arena, "these happened, and stay so: %s", names));
}
