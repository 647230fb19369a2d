/* SPDX-License-Identifier: Apache-2.0 */
/* What the program of `notify` gets on its standard input, and what is said of each that was sent. */
#include "engine/notify.h"
#include "session/notify.h"

#define AT(member) SHAPE_AT(struct notification_shown, member)

SHAPE(notification, "A change of a run, as the program of the setting `notify` gets it.",
      {"id", SHAPE_TEXT, AT(id), 0, "the same each time it is sent: use it to drop duplicates"},
      {"transition", SHAPE_TEXT, AT(transition), 0, "what became of the run", .words = NOTIFY_WORDS},
      {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
      {"seq", SHAPE_INT, AT(seq), 0, "the event that says so"},
      {"at", SHAPE_TIME, AT(at_ms), SHAPE_NULLABLE, "when that was written"},
      {"attempt", SHAPE_INT, AT(attempt), 0, "1, and one more after each failure"},
      {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_NULLABLE, "the run"},
      {"reason", SHAPE_TEXT, AT(reason), SHAPE_NULLABLE, "why, as a code"},
      {"error", SHAPE_TEXT, AT(error), SHAPE_NULLABLE, "of one that failed"},
      {"wait_kind", SHAPE_TEXT, AT(wait_kind), SHAPE_NULLABLE, "what it waits for"},
      {"question", SHAPE_TEXT, AT(question), SHAPE_NULLABLE, "what it asks"},
      {"session", SHAPE_OBJECT, AT(session), 0, "the session now", .of = &shape_session});
#undef AT

static bool has_failed(const void *outcome)
{
    return ((const struct notify_outcome *)outcome)->why != NULL;
}

static void put_outcome(struct json_out *o, const void *outcome)
{
    const struct notify_outcome *n = outcome;

    json_out_str(o, !n->why ? STR("sent") : n->retry_ms ? STR("failed") : STR("given_up"));
}

#define AT(member) SHAPE_AT(struct notify_outcome, member)

SHAPE(notified, "A notification that was sent, or could not be.", {"id", SHAPE_TEXT, AT(id), 0, "its id"},
      {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
      {"transition", SHAPE_TEXT, AT(transition), 0, "what became of the run", .words = NOTIFY_WORDS},
      {"seq", SHAPE_INT, AT(seq), 0, "the event that says so"},
      {"outcome", SHAPE_TEXT, AT(why), 0, "failed: it is tried again", .words = "sent failed given_up",
       .put = put_outcome},
      {"attempt", SHAPE_INT, AT(attempt), 0, "which try it was"},
      {"error", SHAPE_TEXT, AT(why), SHAPE_NULLABLE, "why it failed", .has = has_failed},
      {"retry_at", SHAPE_TIME, AT(retry_ms), SHAPE_NULLABLE, "when it is tried again"});
