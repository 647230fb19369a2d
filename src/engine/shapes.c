/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

#include "session/session_file.h"

const struct shape *const shapes[] = {
    &shape_session,
    &shape_session_detail,
    &shape_sessions,
    &shape_why,
    &shape_ids,
    &shape_checkpoint,
    &shape_checkpoints,
    &shape_inspection,
    &shape_timeline,
    &shape_transcript,
    &shape_event,
    &shape_usage,
    &shape_chat,
    &shape_run,
    &shape_parked,
    &shape_created,
    &shape_forked,
    &shape_rolled_back,
    &shape_deleted,
    &shape_deletion,
    &shape_saved,
    &shape_marked,
    &shape_pruned,
    &shape_appended,
    &shape_queued,
    &shape_queued_message,
    &shape_cancelled,
    &shape_token,
    &shape_resumed,
    &shape_accepted,
    &shape_access,
    &shape_accesses,
    &shape_access_revoked,
    &shape_signin_code,
    &shape_recovery,
    &shape_recovery_report,
    &shape_notification,
    &shape_notified,
    &shape_verification,
    &shape_trust,
    &shape_store_trusted,
    &shape_store,
    &shape_store_info,
    &shape_store_check,
    &shape_store_copy,
    &shape_compacted,
    &shape_settings,
    &shape_settings_check,
    &shape_graph_check,
    &shape_graph_diff,
    &shape_plan,
    &shape_version,
    &shape_doctor,
    &shape_torture,
    &shape_log_event,
    &shape_state,
    &shape_session_file,
    &shape_tokens_file,
    &shape_error,
    &shape_notice,
    &shape_task,
    &shape_tasks,
    NULL,
};

const struct shape *shape_find(const char *name)
{
    for (const struct shape *const *s = shapes; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}
