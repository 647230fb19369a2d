/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"
#include "engine/tasks.h"

#define AT(member) SHAPE_AT(struct task_row, member)

const struct shape shape_task = {
    .name = "task",
    .help = "A task, as its sessions and what a person said of it make it.",
    .members =
        (const struct shape_member[]){
            {"task_id", SHAPE_TEXT, AT(task_id), 0, "its id"},
            {"title", SHAPE_TEXT, AT(title), SHAPE_NULLABLE, "what a person called it"},
            {"state", SHAPE_TEXT, AT(state), 0, "what a person set, else what follows from its sessions"},
            {"derived_state", SHAPE_TEXT, AT(derived), 0,
             "what follows from its sessions: RUNNING, WAITING_FOR_INPUT or ERROR if one is so, else as the one that "
             "changed last"},
            {"is_set", SHAPE_BOOL, AT(is_set), 0, "a person set the state"},
            {"sessions", SHAPE_INT, AT(sessions), 0, "how many sessions it has"},
            {"running", SHAPE_INT, AT(running), 0, "how many of them run"},
            {"waiting", SHAPE_INT, AT(waiting), 0, "how many of them wait for somebody"},
            {"session_id", SHAPE_TEXT, AT(session_id), SHAPE_NULLABLE | SHAPE_ID,
             "the session that holds what a person set"},
            {"seq", SHAPE_INT, AT(seq), 0, "its last event, for If-Match; 0: there is none"},
            {"created_at", SHAPE_TIME, AT(created_ms), SHAPE_NULLABLE, "when its first session was made"},
            {"updated_at", SHAPE_TIME, AT(updated_ms), SHAPE_NULLABLE, "when one of its sessions changed last"},
            {.name = NULL},
        },
};
#undef AT

const struct shape shape_tasks = {
    .name = "tasks",
    .help = "Tasks, the one that changed last first.",
    .members =
        (const struct shape_member[]){
            {"tasks", SHAPE_STREAM, SHAPE_AT(struct tasks_listed, tasks), 0, "those that were asked for",
             .of = &shape_task},
            {.name = NULL},
        },
};
