/* SPDX-License-Identifier: Apache-2.0 */
/* What commands did that have little to say: several shapes over one struct. */
#include "engine/message_queue.h"
#include "engine/rollback_preview.h"
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct command_result, member)
#define SESSION_ID(HELP)                                                                                               \
    {                                                                                                                  \
        "session_id", SHAPE_TEXT, AT(session_id), SHAPE_ID, HELP                                                       \
    }
#define CHECKPOINT_ID                                                                                                  \
    {                                                                                                                  \
        "checkpoint_id", SHAPE_TEXT, AT(checkpoint_id), 0, "its id"                                                    \
    }
#define SEQ(HELP)                                                                                                      \
    {                                                                                                                  \
        "seq", SHAPE_INT, AT(seq), 0, HELP                                                                             \
    }

SHAPE(created, "A session that was made or imported.", SESSION_ID("its id"));
SHAPE(resolved, "The session that the beginning of an id stands for.", SESSION_ID("its id"));

static SHAPE(fork_parent, "", {"session_id", SHAPE_TEXT, AT(parent_id), SHAPE_ID, "the session"},
             SEQ("up to which event"));

SHAPE(started, "A session that was made, or whose run was started.", SESSION_ID("its id"),
      {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_NULLABLE, "the run that has begun; null: none, or it is not known"},
      {"queue_id", SHAPE_TEXT, AT(queue_id), SHAPE_NULLABLE, "the message that is queued; null: none"},
      SEQ("its latest event that this call saw"));

SHAPE(forked, "A fork that was made.", SESSION_ID("its id"),
      {"parent", SHAPE_OBJECT, .help = "what it was made from", .of = &shape_fork_parent});

static bool has_undone(const void *data)
{
    return ((const struct command_result *)data)->undone != NULL;
}

static void put_undone(struct json_out *o, const void *data)
{
    shape_put(o, &shape_rollback_preview, ((const struct command_result *)data)->undone);
}

SHAPE(rolled_back, "A session that was rolled back.", SESSION_ID("the session"),
      {"to_seq", SHAPE_INT, AT(to_seq), 0, "the event to which it went back"}, SEQ("where its log ends now"),
      {"undone", SHAPE_OBJECT, AT(undone), SHAPE_OPTIONAL, "of a dry run, which changes nothing: what it would undo",
       .of = &shape_rollback_preview, .has = has_undone, .put = put_undone});

SHAPE(deleted, "A session that was deleted.", {"deleted", SHAPE_TEXT, AT(session_id), 0, "its id"});

SHAPE(saved, "A checkpoint that was made.", SESSION_ID("the session"), CHECKPOINT_ID, SEQ("its event"));

SHAPE(marked, "A checkpoint that a program made of its own run.", CHECKPOINT_ID);

SHAPE(pruned, "Checkpoints that were deleted.", SESSION_ID("the session"),
      {"deleted", SHAPE_INT, AT(n), 0, "how many"});

SHAPE(appended, "An event that was appended.", SEQ("its position in the log"));

SHAPE(queued, "A message that was queued for the process that runs the session.", SESSION_ID("the session"),
      {"queue_id", SHAPE_TEXT, AT(queue_id), 0, "the id of the message"}, SEQ("its event"));

SHAPE(accepted, "What a request has set going.", SESSION_ID("the session"),
      {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_OPTIONAL, "the run that continues or started"},
      {"queue_id", SHAPE_TEXT, AT(queue_id), SHAPE_OPTIONAL, "the message, where it was queued"},
      {"seq", SHAPE_INT, AT(seq), SHAPE_OPTIONAL, "the event that says so"},
      {"status", SHAPE_TEXT, AT(word), SHAPE_OPTIONAL, "of the session, for who waited until it parked or ended"},
      {"token", SHAPE_TEXT, AT(token), SHAPE_OPTIONAL, "of what it waits for, shown only here"});

SHAPE(cancelled, "A session whose run was to end.", SESSION_ID("the session"),
      {"cancelled", SHAPE_TEXT, AT(word), 0,
       "how: there was nothing to end, it was ended, its process has ended it, or it lost the right to write",
       .words = "nothing done answered forced"});

SHAPE(token, "A new token for what a session waits for.", SESSION_ID("the session"),
      {"token", SHAPE_TEXT, AT(token), SHAPE_OPTIONAL, "shown only here; missing: it was written to a descriptor"});

SHAPE(resumed, "A resume that this request had done before.", SESSION_ID("the session"),
      {"run_id", SHAPE_TEXT, AT(run_id), 0, "the run that it began"}, SEQ("its event"),
      {"repeated", SHAPE_BOOL, AT(yes), 0, "true: nothing was done now"});

SHAPE(access_revoked, "A token for the API of the server that was revoked.",
      {"revoked", SHAPE_TEXT, AT(word), 0, "its name"});

SHAPE(version, "The version of Tidemark.", {"version", SHAPE_TEXT, AT(word), 0, "its number"});

SHAPE(store, "A store that was made, or was there.", {"url", SHAPE_TEXT, AT(word), 0, "where it is"},
      {"sessions", SHAPE_INT, AT(n), 0, "how many sessions it has"});

SHAPE(compacted, "A store whose write-ahead log was moved into its main file.",
      {"wal_bytes_before", SHAPE_INT, AT(before), 0, "the size of the write-ahead log before"},
      {"wal_bytes", SHAPE_INT, AT(n), 0, "and after"});

SHAPE(store_trusted, "Sessions of a store that were not trusted.",
      {"untrusted", SHAPE_INT, AT(n), 0, "how many are not trusted now"},
      {"trusted_now", SHAPE_INT, AT(before), 0, "how many were trusted by this"});
#undef AT

#define AT(member) SHAPE_AT(struct queued_message, member)

SHAPE(queued_message, "A message that no run has taken yet.", {"queue_id", SHAPE_TEXT, AT(queue_id), 0, "its id"},
      {"seq", SHAPE_INT, AT(seq), 0, "its event"}, {"ts", SHAPE_TIME, AT(ts_ms), 0, "when it was sent"},
      {"content", SHAPE_STR, AT(content), 0, "what it says"});
#undef AT

#define AT(member) SHAPE_AT(struct trust_report, member)

SHAPE(trust, "What a session would run, and whether it may.",
      {"trusted_now", SHAPE_BOOL, AT(trusted_now), 0, "it was trusted by this"},
      {"would_run", SHAPE_ANY, AT(would_run), 0, "programs, servers, tools, memory; invisible characters are escaped"});

static bool is_kept(const void *data)
{
    return ((const struct housekeeping_found *)data)->kept.code != TIDE_OK;
}

static void put_kept(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(((const struct housekeeping_found *)data)->kept.msg));
}

static const struct shape shape_deletion_row = {
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_CHARS, SHAPE_AT(struct housekeeping_found, id), 0, "its id"},
            {"title", SHAPE_CHARS, SHAPE_AT(struct housekeeping_found, title), SHAPE_NULLABLE, "its title"},
            {"updated_at", SHAPE_TIME, SHAPE_AT(struct housekeeping_found, updated_ms), SHAPE_NULLABLE,
             "its last change"},
            {"deleted", SHAPE_BOOL, SHAPE_AT(struct housekeeping_found, deleted), 0, "it is gone"},
            {"kept", SHAPE_TEXT, SHAPE_AT(struct housekeeping_found, kept), SHAPE_NULLABLE, "why it was kept",
             .has = is_kept, .put = put_kept},
            {.name = NULL},
        },
};

const struct shape shape_deletion = {
    .name = "deletion",
    .help = "Sessions that filters meant, and what became of them.",
    .members =
        (const struct shape_member[]){
            {"dry_run", SHAPE_BOOL, SHAPE_AT(struct deletion_report, dry_run), 0, "nothing was deleted, only shown"},
            {"deleted", SHAPE_INT, SHAPE_AT(struct deletion_report, deleted), 0, "how many are gone"},
            {"sessions", SHAPE_ROWS, SHAPE_ROWS_AT(struct deletion_report, found, n), 0, "those that were meant",
             .of = &shape_deletion_row},
            {.name = NULL},
        },
};
