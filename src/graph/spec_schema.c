/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema of a graph, written from the table that the parser reads, so that neither can know a key that the other does
 * not. It is what editors complete and check by; `tidemark graph check` sees more.
 */
#include "graph/spec_fields.h"

#define ID_PATTERN "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"
#define DURATION_PATTERN "^[0-9]{1,9}(ms|s|m|h|d)$"

static void put_ref(struct json_out *o, const char *name)
{
    AUTO(buf_done) struct buf ref = BUF_INIT(64);

    buf_addf(&ref, "#/$defs/%s", name);
    json_out_kstr(o, STR("$ref"), buf_view(&ref));
}

static const char *def_of(const struct spec_object *object)
{
    static const struct {
        const struct spec_object *object;
        const char *name;
    } names[] = {{&spec_graph_object, "graph"},   {&spec_node_object, "node"},
                 {&spec_edge_object, "edge"},     {&spec_route_object, "route"},
                 {&spec_budget_object, "budget"}, {&spec_checkpoints_object, "checkpoints"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].object == object)
            return names[i].name;
    return "";
}

static void put_type(struct json_out *o, const char *type)
{
    json_out_kstr(o, STR("type"), str_from(type));
}

static void put_words(struct json_out *o, const char *const *words)
{
    json_out_key(o, STR("enum"));
    json_out_begin(o, '[');
    for (; *words; words++) {
        json_out_str(o, str_from(*words));
        for (const struct spec_synonym *s = spec_synonyms; s->also; s++)
            if (strcmp(s->word, *words) == 0)
                json_out_str(o, str_from(s->also));
    }
    json_out_end(o, ']');
}

static void put_list(struct json_out *o, const struct spec_field *f)
{
    put_type(o, "array");
    if (f->max > 0)
        json_out_kint(o, STR("maxItems"), f->max);
    json_out_key(o, STR("items"));
    json_out_begin(o, '{');
    put_ref(o, def_of(f->object));
    if (f->object == &spec_node_object) /* one inside a map has none */
        json_out_kraw(o, STR("required"), STR("[\"id\"]"));
    json_out_end(o, '}');
}

static void put_value(struct json_out *o, const struct spec_field *f)
{
    static const struct {
        const char *type, *key, *value;
    } rows[FIELD_GRAPH + 1] = {
        [FIELD_ONE] = {NULL, "const", "1"},
        [FIELD_TEXT] = {.type = "string"},
        [FIELD_EXPR] = {.type = "string"},
        [FIELD_OVER] = {.type = "string"},
        [FIELD_BODY] = {.type = "string"},
        [FIELD_ID] = {"string", "pattern", "\"" ID_PATTERN "\""},
        [FIELD_DURATION] = {"string", "pattern", "\"" DURATION_PATTERN "\""},
        [FIELD_INT] = {.type = "integer"},
        [FIELD_NUMBER] = {"number", "minimum", "0"},
        [FIELD_BOOL] = {.type = "boolean"},
        [FIELD_KEYS] = {"array", "items", "{\"type\":\"string\"}"},
        [FIELD_TEXTS] = {"array", "items", "{\"type\":\"string\"}"},
        [FIELD_TOOLS] = {NULL, "anyOf",
                         "[{\"enum\":[\"all\",\"none\"]},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]"},
        [FIELD_EXPRS] = {"object", "additionalProperties", "{\"type\":\"string\"}"},
        [FIELD_RULES] = {.type = "object"},
        [FIELD_ENTRIES] = {"object", "additionalProperties", "{\"type\":\"string\",\"pattern\":\"" ID_PATTERN "\"}"},
        [FIELD_VALUES] = {.type = "object"},
        [FIELD_JSON] = {.type = NULL},
        [FIELD_NODE] = {NULL, "not", "{\"required\":[\"id\"]}"},
    };

    if (f->type == FIELD_OBJECT || f->type == FIELD_NODE || f->type == FIELD_GRAPH)
        put_ref(o, f->type == FIELD_OBJECT ? def_of(f->object) : f->type == FIELD_NODE ? "node" : "graph");
    if (rows[f->type].type)
        put_type(o, rows[f->type].type);
    if (rows[f->type].key)
        json_out_kraw(o, str_from(rows[f->type].key), str_from(rows[f->type].value));
    if (f->type == FIELD_KEYS)
        json_out_kbool(o, STR("uniqueItems"), true);
    if (f->type == FIELD_INT)
        json_out_kint(o, STR("minimum"), f->min);
    if (f->type == FIELD_INT && f->max < INT64_MAX)
        json_out_kint(o, STR("maximum"), f->max);
    if (f->type == FIELD_LIST)
        put_list(o, f);
    if (f->type == FIELD_WORD)
        put_words(o, f->words);
    if (f->type == FIELD_RULES) {
        json_out_key(o, STR("additionalProperties"));
        json_out_begin(o, '{');
        put_words(o, f->words);
        json_out_end(o, '}');
    }
}

static void put_part(struct json_out *o, const struct spec_part *part)
{
    const char *const names[] = {part->first, part->second};

    json_out_begin(o, '{');
    json_out_key(o, part->rule == PART_ONE ? STR("oneOf") : STR("anyOf"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < 2 && names[i]; i++) {
        json_out_begin(o, '{');
        json_out_key(o, STR("required"));
        json_out_begin(o, '[');
        json_out_str(o, str_from(names[i]));
        json_out_end(o, ']');
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_end(o, '}');
}

/* A node of this type has none of the keys of others, and what it must have. */
static void put_then(struct json_out *o, unsigned type)
{
    json_out_key(o, STR("properties"));
    json_out_begin(o, '{');
    for (const struct spec_field *f = spec_node_object.fields; f->name; f++)
        if (f->types && !(f->types & (1u << type)))
            json_out_kbool(o, str_from(f->name), false);
    json_out_end(o, '}');
    json_out_key(o, STR("allOf"));
    json_out_begin(o, '[');
    for (const struct spec_part *part = spec_parts; part->first; part++)
        if (part->type == type)
            put_part(o, part);
    json_out_end(o, ']');
}

static void put_types(struct json_out *o)
{
    json_out_key(o, STR("allOf"));
    json_out_begin(o, '[');
    for (unsigned type = 0; spec_node_words[type]; type++) {
        json_out_begin(o, '{');
        json_out_key(o, STR("if"));
        json_out_begin(o, '{');
        json_out_key(o, STR("properties"));
        json_out_begin(o, '{');
        json_out_key(o, STR("type"));
        json_out_begin(o, '{');
        json_out_kstr(o, STR("const"), str_from(spec_node_words[type]));
        json_out_end(o, '}');
        json_out_end(o, '}');
        json_out_end(o, '}');
        json_out_key(o, STR("then"));
        json_out_begin(o, '{');
        put_then(o, type);
        json_out_end(o, '}');
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

static void put_object(struct json_out *o, const struct spec_object *object)
{
    json_out_key(o, str_from(def_of(object)));
    json_out_begin(o, '{');
    put_type(o, "object");
    json_out_key(o, STR("properties"));
    json_out_begin(o, '{');
    for (const struct spec_field *f = object->fields; f->name; f++) {
        json_out_key(o, str_from(f->name));
        json_out_begin(o, '{');
        put_value(o, f);
        if (f->fallback)
            json_out_kraw(o, STR("default"), str_from(f->fallback));
        json_out_kstr(o, STR("description"), str_from(f->help));
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
    /* The parser asks for the id of a node and for the mark of the format by where they stand: so do the references. */
    json_out_key(o, STR("required"));
    json_out_begin(o, '[');
    for (const struct spec_field *f = object->fields; f->name; f++)
        if (f->required && f->type != FIELD_ONE && !(object == &spec_node_object && f->type == FIELD_ID))
            json_out_str(o, str_from(f->name));
    json_out_end(o, ']');
    json_out_kbool(o, STR("additionalProperties"), false);
    if (object == &spec_node_object)
        put_types(o);
    json_out_end(o, '}');
}

void spec_schema(struct buf *out)
{
    static const struct spec_object *const objects[] = {&spec_graph_object,  &spec_node_object,
                                                        &spec_edge_object,   &spec_route_object,
                                                        &spec_budget_object, &spec_checkpoints_object};
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("$schema"), STR("https://json-schema.org/draft/2020-12/schema"));
    json_out_kstr(&o, STR("title"), STR("A graph of Tidemark"));
    put_ref(&o, "graph");
    json_out_kraw(&o, STR("required"), STR("[\"tidemark_graph\"]"));
    json_out_key(&o, STR("$defs"));
    json_out_begin(&o, '{');
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
        put_object(&o, objects[i]);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
}
