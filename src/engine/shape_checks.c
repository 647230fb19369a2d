/* SPDX-License-Identifier: Apache-2.0 */
/* What was looked at and found wrong, or in order: stores, copies, sessions, settings, graphs. */
#include "engine/findings.h"
#include "engine/settings.h"
#include "engine/shapes.h"
#include "engine/verification.h"

#define AT(member) SHAPE_AT(struct finding, member)

static SHAPE(problem, "", {"where", SHAPE_TEXT, AT(where), 0, "what it is about"},
             {"what", SHAPE_TEXT, AT(what), 0, "what is wrong, or worth knowing"});

static SHAPE(graph_problem, "",
             {"severity", SHAPE_TEXT, AT(severity), 0, "whether it can be run so", .words = "problem warning"},
             {"path", SHAPE_TEXT, AT(where), 0, "the place in the graph"},
             {"what", SHAPE_TEXT, AT(what), 0, "what is wrong there"},
             {"hint", SHAPE_TEXT, AT(todo), 0, "what to do; empty when that is clear"});

static bool has_kind(const void *finding)
{
    return ((const struct finding *)finding)->kind != NULL;
}

static void put_kind(struct json_out *o, const void *finding)
{
    json_out_str(o, str_from(((const struct finding *)finding)->kind->name));
}

static void put_action(struct json_out *o, const struct finding *f, const struct tide_next *next)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    if (next->action)
        shape_put(o, &shape_next, &(struct next_shown){*next, f->command ? f->command(&a, next) : NULL});
}

/* What the error offers, then what the check does. */
static void put_next(struct json_out *o, const void *finding)
{
    const struct finding *f = finding;

    json_out_begin(o, '[');
    for (size_t i = 0; f->error && i < sizeof f->error->hints / sizeof f->error->hints[0]; i++) {
        const struct tide_hint *h = &f->error->hints[i];

        put_action(o, f, &(struct tide_next){h->action, h->kind, h->session_id, h->arguments});
    }
    for (const struct tide_next *n = f->next; n && n->action; n++)
        put_action(o, f, n);
    json_out_end(o, ']');
}

static SHAPE(doctor_check, "", {"name", SHAPE_TEXT, AT(where), 0, "what was checked"},
             {"status", SHAPE_TEXT, AT(severity), 0, "the result", .words = "ok warn fail"},
             {"detail", SHAPE_TEXT, AT(what), 0, "what was found"},
             {"todo", SHAPE_TEXT, AT(todo), SHAPE_NULLABLE, "what to do about it, or what the first of `next` does"},
             {"next", SHAPE_LIST, AT(next), 0, "what can be done, the likeliest first", .of = &shape_next,
              .put = put_next},
             {"kind", SHAPE_TEXT, AT(kind), SHAPE_NULLABLE, "which of the things that the check finds", .has = has_kind,
              .put = put_kind},
             {"about", SHAPE_TEXT, AT(about), SHAPE_NULLABLE, "the session or the file; null: all of it"},
             {"forgotten", SHAPE_BOOL, AT(forgotten), 0, "a person accepted it"});
#undef AT

#define AT(member) SHAPE_AT(struct check_report, member)
#define FOUND SHAPE_ROWS_AT(struct check_report, found.at, found.n)

SHAPE(store_check, "What is wrong with a store.",
      {"problems", SHAPE_ROWS, FOUND, .help = "each that was found", .of = &shape_problem},
      {"ok", SHAPE_BOOL, AT(ok), 0, "nothing is wrong"});

SHAPE(doctor, "Whether everything is in order.",
      {"checks", SHAPE_ROWS, FOUND, .help = "each that was made", .of = &shape_doctor_check},
      {"forgotten", SHAPE_INT, AT(forgotten), 0, "how many of them a person accepted"},
      {"ok", SHAPE_BOOL, AT(ok), 0, "none failed"});

static bool is_graph(const void *report)
{
    return ((const struct check_report *)report)->graph_id != NULL;
}

SHAPE(graph_check, "What is wrong with a graph.", {"file", SHAPE_TEXT, AT(file), 0, "the file"},
      {"problems", SHAPE_ROWS, FOUND, .help = "problems and warnings", .of = &shape_graph_problem},
      {"ok", SHAPE_BOOL, AT(ok), 0, "it can be run"},
      {"id", SHAPE_TEXT, AT(graph_id), SHAPE_OPTIONAL, "the id of the graph"},
      {"nodes", SHAPE_INT, AT(nodes), SHAPE_OPTIONAL, "how many nodes it has", .has = is_graph},
      {"edges", SHAPE_INT, AT(edges), SHAPE_OPTIONAL, "how many edges it has", .has = is_graph},
      {"digest", SHAPE_TEXT, AT(digest), SHAPE_OPTIONAL, "the digest that a run of it records"});

static void put_lines(struct json_out *o, const void *report)
{
    const struct findings *f = &((const struct check_report *)report)->found;

    json_out_begin(o, '[');
    for (size_t i = 0; i < f->n; i++)
        json_out_str(o, str_from(f->at[i].what));
    json_out_end(o, ']');
}

SHAPE(settings_check, "What is wrong with the settings.", {"file", SHAPE_TEXT, AT(file), 0, "the file"},
      {"problems", SHAPE_LIST, AT(found), 0, "each in a sentence", .put = put_lines},
      {"ok", SHAPE_BOOL, AT(ok), 0, "nothing is wrong"});
#undef AT

#define AT(member) SHAPE_AT(struct copy_report, member)

SHAPE(store_copy, "What was copied from one store into another.",
      {"sessions", SHAPE_INT, AT(result.sessions), 0, "asked for, parents included"},
      {"copied", SHAPE_INT, AT(result.copied), 0, "that are new there"},
      {"continued", SHAPE_INT, AT(result.continued), 0, "of which a beginning was there"},
      {"same", SHAPE_INT, AT(result.same), 0, "that were there already"},
      {"refused", SHAPE_INT, AT(result.refused), 0, "that are among the problems"},
      {"events", SHAPE_INT, AT(result.events), 0, "stored"}, {"bytes", SHAPE_INT, AT(result.bytes), 0, "of these"},
      {"problems", SHAPE_ROWS, SHAPE_ROWS_AT(struct copy_report, problems.at, problems.n),
       .help = "sessions that were not copied", .of = &shape_problem},
      {"notices", SHAPE_ROWS, SHAPE_ROWS_AT(struct copy_report, notices.at, notices.n), .help = "what happened besides",
       .of = &shape_problem},
      {"ok", SHAPE_BOOL, AT(ok), 0, "all of it is there"});
#undef AT

/* ---- sessions ---- */

static bool is_whole(const void *session)
{
    return ((const struct verified_session *)session)->ok;
}

static bool is_unverified(const void *session)
{
    return ((const struct verified_session *)session)->unverified;
}

#define AT(member) SHAPE_AT(struct verified_session, member)

static SHAPE(verified, "", {"session_id", SHAPE_TEXT, AT(session_id), SHAPE_ID, "the session"},
             {"ok", SHAPE_BOOL, AT(ok), 0, "it is intact"},
             {"events", SHAPE_INT, AT(events), SHAPE_OPTIONAL, "that were read", .has = is_whole},
             {"unverified", SHAPE_BOOL, AT(unverified), SHAPE_OPTIONAL, "another program's lines, without digests",
              .has = is_unverified},
             {"error", SHAPE_TEXT, AT(error), SHAPE_NULLABLE, "what is damaged"});
#undef AT

#define AT(member) SHAPE_AT(struct verification, member)

SHAPE(verification, "Sessions that were read from end to end.",
      {"sessions", SHAPE_ROWS, SHAPE_ROWS_AT(struct verification, sessions, n), .help = "each of them",
       .of = &shape_verified},
      {"ok", SHAPE_BOOL, AT(ok), 0, "all are intact"}, {"events", SHAPE_INT, AT(events), 0, "that were read"});
#undef AT

/* ---- settings ---- */

struct setting {
    const char *key, *origin, *type, *help;
    struct str value, fallback;
};

#define AT(member) SHAPE_AT(struct setting, member)

static SHAPE(setting, "", {"key", SHAPE_TEXT, AT(key), 0, "its name"},
             {"value", SHAPE_ANY, AT(value), SHAPE_NULLABLE, "what counts now; null: not set"},
             {"origin", SHAPE_TEXT, AT(origin), 0, "where that is from", .words = "default file environment"},
             {"default", SHAPE_ANY, AT(fallback), SHAPE_NULLABLE, "what counts when nothing is set"},
             {"type", SHAPE_TEXT, AT(type), 0, "what it takes", .words = "text int number bool word json"},
             {"help", SHAPE_TEXT, AT(help), 0, "what it is"});
#undef AT

static void put_settings(struct json_out *o, const void *data)
{
    static const char *const types[] = {"text", "int", "number", "bool", "word", "json"};
    const struct config *c = ((const struct settings *)data)->config;

    json_out_begin(o, '[');
    for (const struct config_key *k = config_keys; k->name; k++) {
        const struct setting row = {.key = k->name,
                                    .origin = config_origin(c, k->name),
                                    .type = types[k->type],
                                    .help = k->help,
                                    .value = config_json(c, k->name),
                                    .fallback = str_from(k->fallback)};

        shape_put(o, &shape_setting, &row);
    }
    json_out_end(o, ']');
}

#define AT(member) SHAPE_AT(struct settings, member)

SHAPE(settings, "The settings and where each comes from.",
      {"file", SHAPE_TEXT, AT(path), 0, "the file, whether there is one or not"},
      {"keys", SHAPE_LIST, AT(config), 0, "every key", .of = &shape_setting, .put = put_settings});
