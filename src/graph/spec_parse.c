/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From JSON to a graph, by the table of keys. It does not stop at the first fault: each is reported with its place and
 * left at its default, so that one look shows everything there is to mend. What text can make us allocate is bounded
 * before: bytes, depth, counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/nearest.h"
#include "base/scan.h"
#include "graph/spec_internal.h"

#define JSON_DEPTH 96
#define HINT_WORDS 16

/* ---- problems ---- */

bool spec_is_name(struct str s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digits[] = "0123456789";

    for (size_t i = 0; i < s.len; i++)
        if (!memchr(letters, s.ptr[i], sizeof(letters) - 1) && !(i > 0 && memchr(digits, s.ptr[i], sizeof(digits) - 1)))
            return false;
    return s.len > 0;
}

static void put_path(struct buf *b, const struct spec_place *at)
{
    if (!at->up) {
        buf_add_str(b, str_from(at->path));
        return;
    }
    put_path(b, at->up);
    if (!at->key.ptr)
        buf_addf(b, "[%zu]", at->index);
    else if (spec_is_name(at->key))
        buf_addf(b, ".%.*s", STR_ARG(at->key));
    else
        buf_addf(b, "[\"%.*s\"]", STR_ARG(at->key));
}

static const char *place_path(struct arena *a, const struct spec_place *at)
{
    AUTO(buf_done) struct buf b = BUF_INIT(4096);

    put_path(&b, at);
    return arena_dup(a, buf_view(&b)).ptr;
}

/* What came out of the JSON may hold anything: one line without controls goes out. */
static const char *clean_text(struct arena *a, const char *text)
{
    char *copy = (char *)(uintptr_t)arena_dup(a, str_from(text)).ptr;

    clean_line(copy, strlen(copy));
    return copy;
}

/* One step of a path: ".edges" or "[3]"; a key that is no name ends the walk, and no edge lies behind one. */
static const struct json *step_into(const struct json *v, struct str step)
{
    const struct json *item = v->first;
    int64_t index;

    if (step.ptr[0] == '.')
        return json_get(v, (struct str){step.ptr + 1, step.len - 1});
    if (!str_to_int64((struct str){step.ptr + 1, step.len - 2}, &index))
        return NULL;
    while (item && index-- > 0)
        item = item->next;
    return item;
}

/* "edge 'a' → 'b': "; "" of one that has not both. */
static const char *edge_words(struct arena *a, const struct json *edge)
{
    struct str from = json_get_text(a, edge, STR("from")), to = json_get_text(a, edge, STR("to"));

    return from.len && to.len ? arena_printf(a, "edge '%.*s' → '%.*s': ", STR_ARG(from), STR_ARG(to)) : "";
}

/* Of the innermost edge at which a path leads past; "" where there is none. */
static const char *edge_at(struct spec_parser *p, const char *path)
{
    const char *at = strchr(path, '$'), *name = "";
    const struct json *v = p->document;
    bool edges = false;

    for (at = at ? at + 1 : ""; *at && v; at += 1 + strcspn(at + 1, ".[")) {
        v = step_into(v, (struct str){at, 1 + strcspn(at + 1, ".[")});
        name = v && edges ? edge_words(&p->spec->arena, v) : name;
        edges = strncmp(at, ".edges[", 7) == 0;
    }
    return name;
}

static void say_problem(struct spec_parser *p, enum spec_severity severity, const char *path, const char *hint,
                        const char *words)
{
    struct arena *a = &p->spec->arena;
    size_t *count = severity == SPEC_WARNING ? &p->spec->warnings : &p->spec->problems;
    const char *what = arena_printf(a, "%s%s", edge_at(p, path), words);
    struct problem problem = {severity == SPEC_WARNING, clean_text(a, path), clean_text(a, what), clean_text(a, hint)};

    if (severity == SPEC_PROBLEM && *count == 0)
        tide_fail(&p->first, TIDE_INVALID, "%.120s: %.300s", problem.path, problem.what);
    if ((*count)++ < SPEC_MAX_PROBLEMS && p->opt->problem)
        p->opt->problem(p->opt->arg, &problem);
}

void spec_say(struct spec_parser *p, enum spec_severity severity, const char *path, const char *hint, const char *fmt,
              ...)
{
    char what[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    say_problem(p, severity, path, hint, what);
}

void spec_say_at(struct spec_parser *p, const struct spec_place *at, const char *hint, const char *fmt, ...)
{
    char what[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    say_problem(p, SPEC_PROBLEM, place_path(&p->spec->arena, at), hint, what);
}

/* ---- names ---- */

static const char *next_word(void *arg)
{
    const char *const **at = arg;

    return **at ? *(*at)++ : NULL;
}

const char *spec_hint_of(struct spec_parser *p, struct str typed, const char *const *words)
{
    struct arena *a = &p->spec->arena;
    const char *const *at = words;
    const char *near = nearest(arena_dup(a, typed).ptr, next_word, &at);
    AUTO(buf_done) struct buf b = BUF_INIT(1024);

    if (near)
        return arena_printf(a, "did you mean '%s'?", near);
    buf_add_str(&b, STR("one of:"));
    for (at = words; *at && at - words < HINT_WORDS; at++) {
        const char *const *first = words;

        while (strcmp(*first, *at) != 0)
            first++;
        if (first == at) /* ids that stand twice are a problem of their own */
            buf_addf(&b, " %s", *at);
    }
    buf_add_str(&b, *at ? STR(" …") : STR(""));
    return arena_dup(a, buf_view(&b)).ptr;
}

/* Those that an object of this type may have. */
static const char *near_field(struct spec_parser *p, const struct spec_object *object, unsigned type_bit,
                              struct str typed)
{
    const char *words[64];
    size_t n = 0;

    for (const struct spec_field *f = object->fields; f->name && n + 1 < sizeof(words) / sizeof(words[0]); f++)
        if (!f->types || !type_bit || (f->types & type_bit))
            words[n++] = f->name;
    words[n] = NULL;
    return spec_hint_of(p, typed, words);
}

/* ---- objects ---- */

/* An object with nothing but its defaults: made once, then copied. */
static const void *template_of(struct spec_parser *p, const struct spec_object *object)
{
    struct arena *a = &p->spec->arena;
    char *bytes;

    for (size_t i = 0; i < p->n_templates; i++)
        if (p->templates[i].object == object)
            return p->templates[i].bytes;
    bytes = arena_zero(a, object->size);
    for (const struct spec_field *f = object->fields; f->name; f++) {
        struct json *v = NULL;

        if (f->type == FIELD_OBJECT)
            memcpy(bytes + f->offset, template_of(p, f->object), f->object->size);
        else if (f->fallback && !json_parse(a, str_from(f->fallback), NULL, &v, NULL, NULL))
            spec_set(p, f, v, &(struct spec_place){.path = "$"}, bytes + f->offset);
    }
    p->templates[p->n_templates++] = (struct spec_template){object, bytes};
    return bytes;
}

/* The bit of the node's type; 0: not a node, or of a type that is none. */
static unsigned type_bit_of(struct arena *a, const struct spec_object *object, const struct json *v)
{
    struct str word;

    if (object != &spec_node_object)
        return 0;
    word = json_get_text(a, v, STR("type"));
    for (size_t i = 0; spec_node_words[i]; i++)
        if (str_eq(word, str_from(spec_node_words[i])))
            return 1u << i;
    return 0;
}

static void complain_of_type(struct spec_parser *p, const struct spec_field *f, const struct spec_place *at)
{
    AUTO(buf_done) struct buf b = BUF_INIT(256);

    for (size_t i = 0; spec_node_words[i]; i++)
        if (f->types & (1u << i))
            buf_addf(&b, "%s%s", b.len ? ", " : "only nodes of this type have it: ", spec_node_words[i]);
    spec_say_at(p, at, buf_cstr(&b), "'%s' does not apply to a node of this type", f->name);
}

static void read_member(struct spec_parser *p, const struct spec_object *object, unsigned type_bit,
                        const struct json *member, const struct spec_place *at, char *into)
{
    struct str key = json_key_text(&p->spec->arena, member);
    const struct spec_field *f = object->fields;
    struct spec_place here = {.up = at, .key = key};

    while (f->name && !json_key_eq(member, str_from(f->name)))
        f++;
    if (!f->name)
        spec_say_at(p, &here, near_field(p, object, type_bit, key), "%s has no key '%.*s'", object->name,
                    (int)(key.len < 64 ? key.len : 64), key.ptr);
    else if (f->types && type_bit && !(f->types & type_bit))
        complain_of_type(p, f, &here);
    else
        spec_set(p, f, member, &here, into + f->offset);
}

void spec_read_object(struct spec_parser *p, const struct spec_object *object, const struct json *v,
                      const struct spec_place *at, void *into)
{
    unsigned type_bit;

    memcpy(into, template_of(p, object), object->size);
    if (object->path_offset) {
        const char *path = place_path(&p->spec->arena, at);

        memcpy((char *)into + object->path_offset, &path, sizeof(path));
    }
    if (v->type != JSON_OBJECT) {
        spec_say_at(p, at, "", "must be an object: %s", object->name);
        return;
    }
    type_bit = type_bit_of(&p->spec->arena, object, v);
    for (const struct json *member = v->first; member; member = member->next)
        read_member(p, object, type_bit, member, at, into);
    for (const struct spec_field *f = object->fields; f->name; f++) {
        /* A node inside a map has no id; a graph inside a graph needs no mark of its format. */
        bool own_id = object == &spec_node_object && f->type == FIELD_ID;
        bool needed = own_id ? p->maps == 0 : f->type != FIELD_ONE || p->nesting <= 1;

        if (f->required && needed && !json_get(v, str_from(f->name)))
            spec_say_at(p, at, f->help, "%s must have '%s'", object->name, f->name);
    }
}

struct spec_graph *spec_read_graph(struct spec_parser *p, const struct json *v, const struct spec_place *at)
{
    struct spec_graph *g = arena_zero(&p->spec->arena, sizeof(*g));
    unsigned maps = p->maps;

    if (++p->nesting > SPEC_MAX_NESTING) {
        spec_say_at(p, at, "nest them less deeply", "more than %d graphs inside each other", SPEC_MAX_NESTING);
        p->nesting--;
        return NULL;
    }
    p->maps = 0;
    spec_read_object(p, &spec_graph_object, v, at, g);
    g->json = v;
    g->max_steps_given = json_get(v, STR("max_steps")) && g->max_steps > 0;
    if (v->type == JSON_OBJECT) {
        spec_resolve(p, g);
        spec_check(p, g);
    }
    p->maps = maps;
    p->nesting--;
    return g;
}

/* ---- the whole ---- */

static void read_text(struct spec_parser *p, struct str text)
{
    struct json_limits limits = {SPEC_MAX_BYTES, JSON_DEPTH};
    struct spec_place top = {.path = "$"};
    struct tide_err err = {0};
    struct json *v = NULL;

    if (json_parse(&p->spec->arena, arena_dup(&p->spec->arena, text), &limits, &v, NULL, &err))
        spec_say(p, SPEC_PROBLEM, "$", "", "not JSON: %.300s", err.msg);
    else if (p->document = v,
             v->type != JSON_OBJECT || (!json_get(v, STR("tidemark_graph")) && !json_get(v, STR("entry")))) {
        spec_say(p, SPEC_PROBLEM, "$", "", "this is not a Tidemark graph: {\"tidemark_graph\":1, …}");
        tide_hint(&p->first, TIDE_ACTION_IMPORT_GRAPH, "");
    } else
        p->spec->graph = spec_read_graph(p, v, &top);
}

/* NULL: it is not there. */
static const char *absolute(struct arena *a, const char *dir)
{
    AUTO(mem_freep) char *path = realpath(dir[0] ? dir : ".", NULL);

    return arena_text(a, path);
}

static enum tide_code parse_graph(struct str text, const struct spec_options *opt, const struct spec_open_file *file,
                                  struct spec **ret_spec, struct tide_err *err)
{
    static const struct spec_options none;
    AUTO(buf_done) struct buf whole = BUF_INIT(SPEC_MAX_BYTES);
    AUTO(spec_freep) struct spec *s = mem_zero(sizeof(*s));
    struct spec_parser p = {.spec = s, .opt = opt ? opt : &none, .files = file};

    p.dir = p.opt->dir;
    s->dir = p.dir ? absolute(&s->arena, p.dir) : NULL;
    read_text(&p, text);
    if (s->problems == 0) {
        /* What is stored with a run must be read again: put together it is bounded like a file. */
        json_write(&whole, s->graph->json);
        if (whole.failed)
            spec_say(&p, SPEC_PROBLEM, "$", "", "with its subgraphs it has more than %zu bytes", SPEC_MAX_BYTES);
        s->json = arena_dup(&s->arena, buf_view(&whole));
        digest_of(s->digest, s->json);
    }
    if (s->problems == 1)
        return tide_err_copy(err, &p.first);
    if (s->problems > 1)
        return tide_fail(err, TIDE_INVALID, "%.400s (and %zu more)", p.first.msg, s->problems - 1);
    INVARIANT(s->graph && s->json.len);
    INVARIANT_COSTLY(spec_is_sound(s->graph));
    *ret_spec = TAKE(s);
    return TIDE_OK;
}

enum tide_code spec_parse(struct str text, const struct spec_options *opt, struct spec **ret_spec, struct tide_err *err)
{
    return parse_graph(text, opt, NULL, ret_spec, err);
}

void spec_free(struct spec *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_exprs; i++)
        expr_free(s->exprs[i]);
    free(s->exprs);
    arena_done(&s->arena);
    free(s);
}

/* ---- what a run changes ---- */

enum tide_code spec_change_checkpoints(struct spec *s, struct str json, struct spec_checkpoints *into,
                                       struct tide_err *err)
{
    static const struct spec_options none;
    struct spec_parser p = {.spec = s, .opt = &none};
    struct spec_place top = {.path = "checkpoints"};
    struct json *v = NULL;
    size_t before = s->problems;

    if (json_parse(&s->arena, arena_dup(&s->arena, json), NULL, &v, NULL, err))
        return tide_wrap(err, "checkpoints");
    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "checkpoints: it must be an object: {\"async_checkpoint\":false}");
    for (const struct json *m = v->first; m; m = m->next)
        read_member(&p, &spec_checkpoints_object, 0, m, &top, (char *)into);
    before = s->problems - before;
    s->problems -= before;
    return before ? tide_err_copy(err, &p.first) : TIDE_OK;
}

enum tide_code spec_merge_members(struct str below, struct str above, struct buf *out, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out o = json_out_to(out);
    struct json *under = NULL, *over = NULL;

    if (json_parse(&a, below, NULL, &under, NULL, err) || json_parse(&a, above, NULL, &over, NULL, err))
        return err->code;
    if (under->type != JSON_OBJECT || over->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "it must be an object: {\"async_checkpoint\":false}");
    json_out_begin(&o, '{');
    for (const struct json *m = under->first; m; m = m->next)
        if (!json_get(over, json_key_text(&a, m)))
            json_out_kraw(&o, json_key_text(&a, m), json_source(m));
    for (const struct json *m = over->first; m; m = m->next)
        json_out_kraw(&o, json_key_text(&a, m), json_source(m));
    json_out_end(&o, '}');
    return TIDE_OK;
}

/* ---- files ---- */

enum tide_code spec_read(const char *path, struct buf *ret_text, struct tide_err *err)
{
    int bad = strcmp(path, "-") == 0 ? buf_read_fd(ret_text, STDIN_FILENO) : buf_read_file(ret_text, path);

    if (ret_text->failed)
        tide_fail(err, TIDE_TOO_BIG, "%.200s: more than %zu bytes: too big for a graph", path, ret_text->max);
    else if (bad == EISDIR)
        tide_fail(err, TIDE_INVALID, "read %.200s: it is a directory: give the file of a graph", path);
    else if (bad == ENOENT)
        tide_fail(err, TIDE_NOT_FOUND, "read %.200s: there is no such file: give the path of the file of a graph",
                  path);
    else if (bad)
        tide_fail_errno(err, bad, "read %.200s", path);
    else
        return TIDE_OK;
    return tide_about(err, TIDE_SUBJECT_FILE, strcmp(path, "-") == 0 ? "" : path);
}

enum tide_code spec_parse_from(const char *path, struct str text, const struct spec_options *opt,
                               struct spec **ret_spec, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct spec_options with = opt ? *opt : (struct spec_options){0};
    const char *slash = strrchr(path, '/');
    struct spec_open_file file = {0};
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0)
        file = (struct spec_open_file){NULL, st.st_dev, st.st_ino};
    if (!with.dir)
        with.dir = slash ? arena_dup(&a, (struct str){path, (size_t)(slash - path) + 1}).ptr : "./";
    if (!parse_graph(text, &with, &file, ret_spec, err))
        return TIDE_OK;
    return tide_about(err, TIDE_SUBJECT_FILE, strcmp(path, "-") == 0 ? "" : path);
}
