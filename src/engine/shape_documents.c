/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that the library hands out as text: their schemas alone. */
#include "engine/shapes.h"

const struct shape shape_log_event = {
    .name = "log_event",
    .help = "An event of the log; the fields of its kind follow (docs/FORMAT.md).",
    .open = true,
    .members =
        (const struct shape_member[]){
            {"pos", SHAPE_INT, .flags = SHAPE_OPTIONAL, .help = "of all sessions: its position in the store"},
            {"session_id", SHAPE_TEXT, .flags = SHAPE_OPTIONAL, .help = "of all sessions: which one"},
            {"seq", SHAPE_INT, .help = "its number in the session"},
            {"ts", SHAPE_TIME, .help = "when it was appended"},
            {"kind", SHAPE_TEXT, .help = "what happened"},
            {.name = NULL},
        },
};

SHAPE(state, "The fold of a session's log.", {"session_id", SHAPE_TEXT, .help = "the session"},
      {"seq", SHAPE_INT, .help = "as of this event"}, {"ts_ms", SHAPE_INT, .help = "when that was appended"},
      {"session", SHAPE_MAP, .help = "its description", .items = SHAPE_ANY},
      {"content", SHAPE_MAP, .help = "what the agent knows: a rollback cuts it, a fork inherits it",
       .items = SHAPE_ANY},
      {"ledger", SHAPE_MAP, .help = "what happened in the world: it stays", .items = SHAPE_ANY},
      {"status", SHAPE_MAP, .flags = SHAPE_OPTIONAL, .help = "its status now", .items = SHAPE_ANY});

const struct shape shape_store_info = {
    .name = "store_info",
    .help = "A store; the fields of its kind follow.",
    .open = true,
    .members =
        (const struct shape_member[]){
            {"url", SHAPE_TEXT, .help = "where it is"},
            {"sessions", SHAPE_INT, .help = "how many sessions it has"},
            {"events", SHAPE_INT, .help = "how many events"},
            {"live_sessions", SHAPE_INT, .help = "sessions held by a process, or waiting"},
            {"sync", SHAPE_TEXT, .help = "how it is written to disk"},
            {"keyed", SHAPE_BOOL, .help = "its digests have a key"},
            {.name = NULL},
        },
};

/* ---- a graph that would be resumed ---- */

/* NOLINTBEGIN(bugprone-macro-parentheses): these are members of an initializer */
#define TEXT(NAME, HELP)                                                                                               \
    {                                                                                                                  \
        NAME, SHAPE_TEXT, .help = HELP                                                                                 \
    }
#define TEXT_OR_NULL(NAME, HELP)                                                                                       \
    {                                                                                                                  \
        NAME, SHAPE_TEXT, .flags = SHAPE_NULLABLE, .help = HELP                                                        \
    }
#define YES(NAME, HELP)                                                                                                \
    {                                                                                                                  \
        NAME, SHAPE_BOOL, .help = HELP                                                                                 \
    }
#define LIST(NAME, OF, HELP)                                                                                           \
    {                                                                                                                  \
        NAME, SHAPE_LIST, .help = HELP, .of = OF                                                                       \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static SHAPE(plan_graph, "", TEXT("id", "its id"), TEXT("digest", "its digest"),
             YES("changed", "it is another version than the one that ran"));
static SHAPE(plan_from, "", TEXT_OR_NULL("checkpoint", "the checkpoint; null: the current position"),
             {"seq", SHAPE_INT, .help = "the event"},
             TEXT_OR_NULL("instead_of", "the checkpoint that was asked for and cannot be taken"));
static SHAPE(plan_node, "", TEXT("node", "the node"), TEXT("state", "its state"),
             {"visit", SHAPE_INT, .help = "of how many"}, {"attempt", SHAPE_INT, .help = "from 0"},
             {"from_log", SHAPE_BOOL, .flags = SHAPE_OPTIONAL, .help = "it is not run: its recorded result is used"});
static SHAPE(plan_missing, "", TEXT("node", "the node that needs it"), TEXT("key", "the key of the memory"),
             YES("never_stored", "it has to be given again"), YES("later", "not at once"));
static SHAPE(plan_override, "", TEXT("key", "the key of the memory"), YES("never_stored", "it is never stored"));
static SHAPE(plan_rename, "", TEXT("from", "the node as it was called"), TEXT("to", "as it is called now"));
static SHAPE(plan_next, "", TEXT("action", "what is done"), TEXT("session_id", "to which session"),
             {"arguments", SHAPE_MAP, .help = "with what", .items = SHAPE_ANY});
static SHAPE(plan_refusal, "", TEXT("code", "the code of the error"), TEXT_OR_NULL("node", "of which node"),
             TEXT("reason", "why"), LIST("hints", &shape_plan_next, "what helps, the likelier one first"));

SHAPE(plan, "What a resume would do, and all obstacles; nodes are those of a graph, else steps.",
      TEXT("session_id", "the session"),
      {"graph", SHAPE_OBJECT, .flags = SHAPE_OPTIONAL, .help = "missing: its log is damaged, or it runs none",
       .of = &shape_plan_graph},
      {"from", SHAPE_OBJECT, .help = "from where", .of = &shape_plan_from},
      {"action", SHAPE_TEXT, .help = "what would be done", .words = "resume rollback fork"},
      LIST("nodes_to_run", &shape_plan_node, "nodes that would run"),
      LIST("happened", NULL, "nodes that are taken as happened"),
      LIST("complete", NULL, "nodes that are not run again"),
      LIST("failed", NULL, "nodes that failed while the others continued"),
      LIST("missing_inputs", &shape_plan_missing, "inputs that are not set"),
      LIST("overrides", &shape_plan_override, "keys of the memory that are set first"),
      LIST("renames", &shape_plan_rename, "nodes that have other names now"),
      LIST("refused", &shape_plan_refusal, "obstacles"), LIST("warnings", NULL, "what is worth knowing"));
