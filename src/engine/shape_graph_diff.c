/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_versions.h"
#include "engine/shapes.h"
#include "engine/stored_graphs.h"

#define AT(member) SHAPE_AT(struct graph_change, member)

static bool has_needs(const void *change)
{
    return ((const struct graph_change *)change)->n_needs > 0;
}

static void put_needs(struct json_out *o, const void *change)
{
    const struct graph_change *c = change;

    json_out_begin(o, '[');
    for (size_t i = 0; i < c->n_needs; i++)
        json_out_str(o, c->needs[i]);
    json_out_end(o, ']');
}

static SHAPE(graph_change, "", {"node", SHAPE_TEXT, AT(node), 0, "the node"},
             {"change", SHAPE_TEXT, AT(word), 0, "how it differs", .words = "same compatible broken removed added"},
             {"why", SHAPE_TEXT, AT(why), SHAPE_OPTIONAL, "in words"},
             {"rename", SHAPE_TEXT, AT(rename), SHAPE_OPTIONAL, "what it may be called now"},
             {"needs", SHAPE_LIST, AT(needs), SHAPE_OPTIONAL, "inputs that it did not have before", .has = has_needs,
              .put = put_needs});
#undef AT

#define AT(member) SHAPE_AT(struct running_session, member)

static bool needs_map(const void *session)
{
    return ((const struct running_session *)session)->fit == LIVE_MAPPING;
}

static bool needs_no_map(const void *session)
{
    return !needs_map(session);
}

static void put_arguments(struct json_out *o, const void *session)
{
    json_out_raw(o, str_from(((const struct running_session *)session)->arguments));
}

static void put_status(struct json_out *o, const void *session)
{
    json_out_str(o, str_from(tide_status_name(((const struct running_session *)session)->status)));
}

static void put_fit(struct json_out *o, const void *session)
{
    json_out_str(o, str_from(live_words[((const struct running_session *)session)->fit]));
}

static SHAPE(running_session, "", {"session_id", SHAPE_TEXT, AT(id), 0, "the session"},
             {"title", SHAPE_TEXT, AT(title), SHAPE_NULLABLE, "its title"},
             {"status", SHAPE_TEXT, AT(status), 0, "its status", .put = put_status},
             {"fit", SHAPE_TEXT, AT(fit), 0, "whether it can continue with the new version",
              .words = "same compatible mapping stuck", .put = put_fit},
             {"node", SHAPE_TEXT, AT(node), SHAPE_NULLABLE, "the node that decides it"},
             {"arguments", SHAPE_MAP, AT(arguments), SHAPE_OPTIONAL, "of a resume with which it can", .has = needs_map,
              .items = SHAPE_ANY, .put = put_arguments},
             {"why", SHAPE_TEXT, AT(why), SHAPE_OPTIONAL, "in words; empty: as it is", .has = needs_no_map},
             {"graph_digest", SHAPE_TEXT, AT(digest), 0, "the version that it runs"});
#undef AT

#define AT(member) SHAPE_AT(struct graph_diff, member)

static SHAPE(fits, "", {"same", SHAPE_INT, AT(fits[LIVE_SAME]), 0, "that run this version already"},
             {"compatible", SHAPE_INT, AT(fits[LIVE_COMPATIBLE]), 0, "that can continue with it"},
             {"mapping", SHAPE_INT, AT(fits[LIVE_MAPPING]), 0, "with a mapping of node names"},
             {"stuck", SHAPE_INT, AT(fits[LIVE_STUCK]), 0, "that cannot continue with it"});

static bool is_live(const void *diff)
{
    return ((const struct graph_diff *)diff)->live;
}

SHAPE(graph_diff, "Two versions of a graph, and the unfinished sessions.",
      {"same", SHAPE_BOOL, AT(same), 0, "nothing differs"},
      {"nodes", SHAPE_ROWS, SHAPE_ROWS_AT(struct graph_diff, changes, n_changes), .help = "each node",
       .of = &shape_graph_change},
      {"sessions", SHAPE_ROWS, SHAPE_ROWS_AT(struct graph_diff, sessions, n_sessions), SHAPE_OPTIONAL,
       "unfinished sessions, if requested", .of = &shape_running_session, .has = is_live},
      {"live", SHAPE_OBJECT, .flags = SHAPE_OPTIONAL, .help = "how many of each", .of = &shape_fits, .has = is_live});
#undef AT

/* ---- those that are stored ---- */

#define AT(member) SHAPE_AT(struct stored_graph, member)

SHAPE(graph_stored, "A graph that was stored before anything runs it.",
      {"digest", SHAPE_TEXT, AT(digest), 0, "by which it is known"},
      {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session that holds it"});

SHAPE(stored_graph, "", {"digest", SHAPE_TEXT, AT(digest), 0, "by which it is known"},
      {"name", SHAPE_TEXT, AT(name), SHAPE_NULLABLE, "its name, or its id"},
      {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session that holds it"},
      {"created_at", SHAPE_TIME, AT(created_ms), 0, "when it was stored"});
#undef AT

SHAPE(stored_graphs, "Graphs that were stored before anything runs them, newest first.",
      {"graphs", SHAPE_STREAM, SHAPE_AT(struct graphs_listed, graphs), 0, "each of them", .of = &shape_stored_graph});
