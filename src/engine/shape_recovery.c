/* SPDX-License-Identifier: Apache-2.0 */
/* What recovery says, a line each: what it found, what it resume and how that ended, and a summary at the end. */
#include "engine/shapes.h"

#define WORD(name, number, text) text " "
#define AT(member) SHAPE_AT(struct recovery_line, member)

static bool has_next(const void *line)
{
    int64_t next_ms = ((const struct recovery_line *)line)->recovery.next_ms;

    return next_ms > 0 && next_ms < INT64_MAX;
}

static SHAPE(recovery_summary, "", {"looked_at", SHAPE_INT, AT(recovery.looked_at), 0, "sessions that run or wait"},
             {"interrupted", SHAPE_INT, AT(recovery.interrupted), 0, "whose process is gone"},
             {"timed_out", SHAPE_INT, AT(recovery.timed_out), 0, "whose deadline has passed"},
             {"tokens_expired", SHAPE_INT, AT(recovery.tokens_expired), 0, "whose token has expired"},
             {"due", SHAPE_INT, AT(recovery.due), 0, "whose sleep is over, or that its default has answered"},
             {"resumed", SHAPE_INT, AT(resumed), 0, "that were resumed"},
             {"failed", SHAPE_INT, AT(failed), 0, "of these"},
             {"deleted", SHAPE_INT, AT(expired), 0, "kept for the time of `retention`; or would be deleted"},
             {"dry_run", SHAPE_BOOL, AT(dry_run), 0, "nothing was written"},
             {"next_at", SHAPE_TIME, AT(recovery.next_ms), SHAPE_NULLABLE, "when there is something to do next",
              .has = has_next});

static void put_action(struct json_out *o, const void *line)
{
    json_out_str(o, str_from(tide_recovered_action_name(((const struct recovery_line *)line)->found.action)));
}

static int variant_of(const void *line)
{
    return ((const struct recovery_line *)line)->type;
}

static bool has_status(const void *line)
{
    return ((const struct recovery_line *)line)->exit_status >= 0;
}

#define FOUND .only = 1u << RECOVERY_FOUND
#define JOB .only = 1u << RECOVERY_JOB

const struct shape shape_recovery = {
    .name = "recovery",
    .help = "What recovery found, the result of a session that it resumed, or the summary.",
    .variants = (const char *const[]){"found", "job", "summary", NULL},
    .variant = variant_of,
    .members =
        (const struct shape_member[]){
            {"action", SHAPE_TEXT, AT(found.action), 0, "what was recorded, or can be done",
             .words = TIDE_RECOVERED_ACTIONS(WORD), .put = put_action, FOUND},
            {"session_id", SHAPE_TEXT, AT(found.session_id), 0, "the session", FOUND},
            {"reason", SHAPE_TEXT, AT(found.reason), SHAPE_NULLABLE, "why, as a code", FOUND},
            {"why", SHAPE_TEXT, AT(found.why), SHAPE_NULLABLE, "why, in a sentence", FOUND},
            {"resumes", SHAPE_INT, AT(found.resumes), 0, "how often it was resumed without progress", FOUND},
            {"has_program", SHAPE_BOOL, AT(found.has_program), 0, "it can be run from its log", FOUND},
            {"by_person", SHAPE_BOOL, AT(found.by_person), 0, "a person stopped it: it is not resumed automatically",
             FOUND},
            {"trusted", SHAPE_BOOL, AT(found.trusted), 0, "else nothing of it runs", FOUND},
            {"goes_on", SHAPE_BOOL, AT(goes_on), 0, "it is resumed", FOUND},
            {"dry_run", SHAPE_BOOL, AT(dry_run), 0, "nothing was written", FOUND},
            {"action", SHAPE_TEXT, AT(action), 0, "what its process did", .words = "resumed ended", JOB},
            {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session", JOB},
            {"pid", SHAPE_INT, AT(pid), 0, "its process", JOB},
            {"exit_status", SHAPE_INT, AT(exit_status), SHAPE_OPTIONAL, "of one that ended", .has = has_status, JOB},
            {"how", SHAPE_TEXT, AT(how), 0, "in words", JOB},
            {"summary", SHAPE_OBJECT, .help = "of all", .of = &shape_recovery_summary, .only = 1u << RECOVERY_SUMMARY},
            {.name = NULL},
        },
};

const struct shape shape_recovery_report = {
    .name = "recovery_report",
    .help = "All that recovery found, and the summary.",
    .members =
        (const struct shape_member[]){
            {"found", SHAPE_STREAM, SHAPE_AT(struct recovery_report, found), 0, "a session each",
             .of = &shape_recovery},
            {"summary", SHAPE_OBJECT, SHAPE_AT(struct recovery_report, summary), 0, "of all",
             .of = &shape_recovery_summary},
            {.name = NULL},
        },
};
