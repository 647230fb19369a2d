/* SPDX-License-Identifier: Apache-2.0 */
/* What commands did that have little to say. */
#include "engine/shapes.h"

const struct shape shape_created = {
    .name = "created",
    .help = "A session that was made or imported.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct session_made, session_id), 0, "its id"},
            {.name = NULL},
        },
};

static const struct shape shape_fork_parent = {
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct session_forked, parent_id), 0, "the session"},
            {"seq", SHAPE_INT, SHAPE_AT(struct session_forked, parent_seq), 0, "up to which event"},
            {.name = NULL},
        },
};

const struct shape shape_forked = {
    .name = "forked",
    .help = "A fork that was made.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct session_forked, session_id), 0, "its id"},
            {"parent", SHAPE_OBJECT, .help = "what it was made from", .of = &shape_fork_parent},
            {.name = NULL},
        },
};

const struct shape shape_rolled_back = {
    .name = "rolled_back",
    .help = "A session that was rolled back.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct session_rolled_back, session_id), 0, "the session"},
            {"to_seq", SHAPE_INT, SHAPE_AT(struct session_rolled_back, to_seq), 0, "the event to which it went back"},
            {"seq", SHAPE_INT, SHAPE_AT(struct session_rolled_back, seq), 0, "where its log ends now"},
            {.name = NULL},
        },
};

const struct shape shape_deleted = {
    .name = "deleted",
    .help = "A session that was deleted.",
    .members =
        (const struct shape_member[]){
            {"deleted", SHAPE_TEXT, SHAPE_AT(struct session_deleted, id), 0, "its id"},
            {.name = NULL},
        },
};

const struct shape shape_saved = {
    .name = "saved",
    .help = "A checkpoint that was made.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct checkpoint_saved, session_id), 0, "the session"},
            {"checkpoint_id", SHAPE_TEXT, SHAPE_AT(struct checkpoint_saved, checkpoint_id), 0, "its id"},
            {"seq", SHAPE_INT, SHAPE_AT(struct checkpoint_saved, seq), 0, "its event"},
            {.name = NULL},
        },
};

const struct shape shape_marked = {
    .name = "marked",
    .help = "A checkpoint that a program made of its own run.",
    .members =
        (const struct shape_member[]){
            {"checkpoint_id", SHAPE_TEXT, SHAPE_AT(struct checkpoint_marked, checkpoint_id), 0, "its id"},
            {.name = NULL},
        },
};

const struct shape shape_pruned = {
    .name = "pruned",
    .help = "Checkpoints that were deleted.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, SHAPE_AT(struct checkpoints_pruned, session_id), 0, "the session"},
            {"deleted", SHAPE_INT, SHAPE_AT(struct checkpoints_pruned, deleted), 0, "how many"},
            {.name = NULL},
        },
};

const struct shape shape_appended = {
    .name = "appended",
    .help = "An event that was appended.",
    .members =
        (const struct shape_member[]){
            {"seq", SHAPE_INT, SHAPE_AT(struct event_appended, seq), 0, "where it stands in the log"},
            {.name = NULL},
        },
};

const struct shape shape_store = {
    .name = "store",
    .help = "A store that was made, or was there.",
    .members =
        (const struct shape_member[]){
            {"url", SHAPE_STR, SHAPE_AT(struct store_made, url), 0, "where it is"},
            {"sessions", SHAPE_INT, SHAPE_AT(struct store_made, sessions), 0, "how many sessions it has"},
            {.name = NULL},
        },
};

const struct shape shape_compacted = {
    .name = "compacted",
    .help = "A store whose write-ahead log was moved into its main file.",
    .members =
        (const struct shape_member[]){
            {"wal_bytes_before", SHAPE_INT, SHAPE_AT(struct store_compacted, wal_bytes_before), 0,
             "the size of the write-ahead log before"},
            {"wal_bytes", SHAPE_INT, SHAPE_AT(struct store_compacted, wal_bytes), 0, "and after"},
            {.name = NULL},
        },
};
