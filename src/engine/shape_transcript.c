/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"
#include "engine/transcript.h"

static void put_type(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(transcript_type_word(((const struct transcript_entry *)data)->type)));
}

static bool has_outcome(const void *data)
{
    return ((const struct transcript_entry *)data)->outcome != TRANSCRIPT_NONE;
}

static void put_outcome(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(transcript_outcome_word(((const struct transcript_entry *)data)->outcome)));
}

/* Which of the words it is, by the function that names them. */
static bool take_type(struct arena *a, const struct json *v, void *data)
{
    struct transcript_entry *e = data;

    (void)a;
    for (e->type = 0; e->type < TRANSCRIPT_TYPES; e->type++)
        if (v->type == JSON_STRING && str_eq(v->raw, str_from(transcript_type_word(e->type))))
            return true;
    return false;
}

static bool take_outcome(struct arena *a, const struct json *v, void *data)
{
    struct transcript_entry *e = data;

    (void)a;
    for (e->outcome = TRANSCRIPT_OK; e->outcome <= TRANSCRIPT_INTERRUPTED; e->outcome++)
        if (v->type == JSON_STRING && str_eq(v->raw, str_from(transcript_outcome_word(e->outcome))))
            return true;
    return false;
}

static bool take_args(struct arena *a, const struct json *v, void *data)
{
    ((struct transcript_entry *)data)->args = arena_dup(a, json_source(v)).ptr;
    return true;
}

#define OPTIONAL_TEXT(member)                                                                                          \
    static bool has_##member(const void *data)                                                                         \
    {                                                                                                                  \
        return ((const struct transcript_entry *)data)->member[0] != '\0';                                             \
    }
OPTIONAL_TEXT(name)
OPTIONAL_TEXT(by)
OPTIONAL_TEXT(node)
OPTIONAL_TEXT(args)

static void put_args(struct json_out *o, const void *data)
{
    json_out_raw(o, str_from(((const struct transcript_entry *)data)->args));
}

static bool has_to(const void *data)
{
    return ((const struct transcript_entry *)data)->to_seq > 0;
}

#define AT(member) SHAPE_AT(struct transcript_entry, member)

const struct shape shape_transcript_entry = {
    .members =
        (const struct shape_member[]){
            {"type", SHAPE_TEXT, AT(type), 0, "what it is",
             .words = "user assistant tool node question answer run rollback fork forked", .put = put_type,
             .take = take_type},
            {"seq", SHAPE_INT, AT(seq), 0, "its event"},
            {"ts", SHAPE_TIME, AT(ts_ms), SHAPE_NULLABLE, "when"},
            {"turn", SHAPE_INT, AT(turn), 0, "the turn of the conversation; 0: none"},
            {"node", SHAPE_TEXT, AT(node), SHAPE_NULLABLE, "the node of a graph", .has = has_node},
            {"name", SHAPE_TEXT, AT(name), SHAPE_NULLABLE, "of the tool, step, node, wait or session", .has = has_name},
            {"args", SHAPE_ANY, AT(args), SHAPE_NULLABLE, "of a tool", .has = has_args, .put = put_args,
             .take = take_args},
            {"outcome", SHAPE_TEXT, AT(outcome), SHAPE_NULLABLE, "what became of it",
             .words = "ok failed unknown no_result started continued cancelled interrupted", .has = has_outcome,
             .put = put_outcome, .take = take_outcome},
            {"text", SHAPE_TEXT, AT(text), 0, "what was said, a result, a question, an error"},
            {"by", SHAPE_TEXT, AT(by), SHAPE_NULLABLE, "who answered; what is waited for; which hook", .has = has_by},
            {"to_seq", SHAPE_INT, AT(to_seq), SHAPE_NULLABLE, "the event that was rolled back to, or forked at",
             .has = has_to},
            {"inherited", SHAPE_BOOL, AT(inherited), 0, "it is in the parent of this fork"},
            {"rolled_back", SHAPE_BOOL, AT(cut), 0, "a rollback has undone it"},
            {.name = NULL},
        },
};
#undef AT

static bool has_before(const void *data)
{
    return ((const struct transcript_shown *)data)->entries_before > 0;
}

static bool has_after(const void *data)
{
    return ((const struct transcript_shown *)data)->entries_after > 0;
}

#define AT(member) SHAPE_AT(struct transcript_shown, member)

const struct shape shape_transcript = {
    .name = "transcript",
    .help = "A session as people read it.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(session_id), SHAPE_ID, "the session"},
            {"title", SHAPE_TEXT, AT(title), SHAPE_NULLABLE, "its title"},
            {"entries", SHAPE_STREAM, AT(entries), 0, "in the order of the log", .of = &shape_transcript_entry},
            {"entries_before", SHAPE_INT, AT(entries_before), SHAPE_NULLABLE,
             "of a page: `before` of the one before it; null: there is none", .has = has_before},
            {"entries_after", SHAPE_INT, AT(entries_after), SHAPE_NULLABLE,
             "of a page: `after` of the one behind it; null: there is none yet", .has = has_after},
            {.name = NULL},
        },
};
