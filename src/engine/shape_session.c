/* SPDX-License-Identifier: Apache-2.0 */
/* Members are always there, null when not set, so that programs need not ask first. */
#include "engine/session_words.h"
#include "engine/shapes.h"
#include "session/session_file.h"

_Static_assert(offsetof(struct session_row, info) == 0, "what a session file has alike is taken from a row as it is");

static const struct tide_session_info *info_of(const void *data)
{
    return &((const struct session_row *)data)->info;
}

/* ---- what moves it ---- */

static void put_action(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_action_name(((const struct next_shown *)data)->next.action)));
}

static void put_arguments(struct json_out *o, const void *data)
{
    json_out_raw(o, str_from(((const struct next_shown *)data)->next.arguments));
}

#define WORD(name, number, text) text " "
#define AT(member) SHAPE_AT(struct next_shown, member)

const struct shape shape_next = {
    .members =
        (const struct shape_member[]){
            {"action", SHAPE_TEXT, AT(next.action), 0, "what is done", .words = TIDE_ACTIONS(WORD), .put = put_action},
            {"session_id", SHAPE_TEXT, AT(next.session_id), 0, "to which session"},
            {"arguments", SHAPE_MAP, AT(next.arguments), 0, "with what; null is for a person to fill in",
             .items = SHAPE_ANY, .put = put_arguments},
            {"command", SHAPE_TEXT, AT(command), SHAPE_NULLABLE, "the command that does it; null: it has no short one"},
            {.name = NULL},
        },
};
#undef AT

static void put_next(struct json_out *o, const void *data)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct session_row *row = data;

    json_out_begin(o, '[');
    for (const struct tide_next *n = row->info.next; n && n->action; n++)
        shape_put(o, &shape_next, &(struct next_shown){*n, row->command ? row->command(&a, n) : NULL});
    json_out_end(o, ']');
}

/* Its arguments as they stand there; what is not known here is left out. */
static bool take_next(struct arena *a, const struct json *v, void *data)
{
    struct tide_next *list = arena_zero(a, ((size_t)v->count + 1) * sizeof *list);
    struct session_row *row = data;
    size_t n = 0;

    if (v->type != JSON_ARRAY)
        return false;
    for (const struct json *one = v->first; one; one = one->next) {
        int action = tide_action_from(arena_dup(a, json_get_text(a, one, STR("action"))).ptr);
        const struct json *arguments = json_get(one, STR("arguments"));

        if (action <= 0)
            continue;
        list[n++] = (struct tide_next){
            .action = (enum tide_action)action,
            .kind = row->info.kind,
            .session_id = arena_dup(a, json_get_text(a, one, STR("session_id"))).ptr,
            .arguments = arena_dup(a, arguments ? json_source(arguments) : STR("{}")).ptr,
        };
    }
    row->info.next = list;
    return true;
}

/* ---- a row of a list ---- */

static bool has_kind(const void *data)
{
    return info_of(data)->kind != 0;
}

static void put_kind(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_session_kind_name(info_of(data)->kind)));
}

static void put_status(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_status_name(info_of(data)->status)));
}

static void put_outcome(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_outcome_name(info_of(data)->outcome)));
}

#define TAKE_WORD(member, from)                                                                                        \
    static bool take_##member(struct arena *a, const struct json *v, void *data)                                       \
    {                                                                                                                  \
        int word = v->type == JSON_STRING ? from(arena_dup(a, json_text(a, v)).ptr) : -1;                              \
                                                                                                                       \
        ((struct session_row *)data)->info.member = (__typeof__(((struct session_row *)data)->info.member))word;       \
        return word >= 0;                                                                                              \
    }
TAKE_WORD(kind, tide_session_kind_from)
TAKE_WORD(status, tide_status_from)
TAKE_WORD(outcome, tide_outcome_from)
TAKE_WORD(on_deadline, tide_on_deadline_from)
#undef TAKE_WORD

static void put_durability(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(session_durability(info_of(data))));
}

/* How many events it was is not said. */
static bool take_durability(struct arena *a, const struct json *v, void *data)
{
    (void)a;
    ((struct session_row *)data)->info.degraded_events = str_eq(v->raw, STR("degraded"));
    return true;
}

static bool is_interrupted(const void *data)
{
    return info_of(data)->outcome == TIDE_OUTCOME_INTERRUPTED;
}

static void put_interrupted(struct json_out *o, const void *data)
{
    (void)data;
    json_out_str(o, STR("interrupted"));
}

static bool is_lost(const void *data)
{
    return is_interrupted(data) && !info_of(data)->is_resumable;
}

static void put_lost(struct json_out *o, const void *data)
{
    (void)data;
    json_out_str(o, STR("not_resumable"));
}

/* Of a damaged one that cannot be read nobody knows. */
static bool is_known(const void *data)
{
    return session_is_known(info_of(data));
}

static bool is_fork(const void *data)
{
    return info_of(data)->parent_id != NULL;
}

static bool has_deadline(const void *data)
{
    return info_of(data)->on_deadline != TIDE_ON_DEADLINE_UNSET;
}

static void put_on_deadline(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_on_deadline_name(info_of(data)->on_deadline)));
}

static bool has_default(const void *data)
{
    return info_of(data)->default_answer != NULL;
}

static void put_default(struct json_out *o, const void *data)
{
    json_out_raw(o, str_from(info_of(data)->default_answer));
}

static bool take_default(struct arena *a, const struct json *v, void *data)
{
    ((struct session_row *)data)->info.default_answer = arena_dup(a, json_source(v)).ptr;
    return true;
}

/* The word as the log has it, and what it means here. */
static bool take_wait_kind(struct arena *a, const struct json *v, void *data)
{
    struct tide_session_info *info = &((struct session_row *)data)->info;
    int kind;

    if (v->type != JSON_STRING)
        return false;
    info->wait_word = arena_dup(a, json_text(a, v)).ptr;
    kind = tide_wait_kind_from(info->wait_word);
    info->wait_kind = kind > 0 ? (enum tide_wait_kind)kind : TIDE_WAIT_OTHER;
    return true;
}

#define AT(member) SHAPE_AT(struct session_row, info.member)

static const struct shape shape_parent = {
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(parent_id), SHAPE_ID, "the session"},
            {"seq", SHAPE_INT, AT(parent_seq), 0, "up to which event the fork has its log"},
            {.name = NULL},
        },
};

const struct shape shape_session = {
    .name = "session",
    .help = "A session and its status, as in lists.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(id), SHAPE_ID, "its id"},
            {"kind", SHAPE_TEXT, AT(kind), SHAPE_NULLABLE, "what it is; null: damaged", .words = SHAPE_KINDS,
             .has = has_kind, .put = put_kind, .take = take_kind},
            {"title", SHAPE_TEXT, AT(title), SHAPE_NULLABLE, "its title"},
            {"agent", SHAPE_TEXT, AT(agent), SHAPE_NULLABLE, "the name of the agent, or the id of the graph"},
            {"agent_id", SHAPE_TEXT, AT(agent_id), SHAPE_NULLABLE, "the id of the agent"},
            {"task_id", SHAPE_TEXT, AT(task_id), SHAPE_NULLABLE, "the task it is for"},
            {"status", SHAPE_TEXT, AT(status), 0, "its status", .words = TIDE_STATUSES(WORD), .put = put_status,
             .take = take_status},
            {"outcome", SHAPE_TEXT, AT(outcome), 0, "how its latest run ended; none: it has not, or there was none",
             .words = "none completed failed cancelled interrupted", .put = put_outcome, .take = take_outcome},
            {"reason", SHAPE_TEXT, AT(reason), SHAPE_NULLABLE, "why, as a code"},
            {"why", SHAPE_TEXT, AT(why), 0, "why, in a sentence for people"},
            {"durability", SHAPE_TEXT, AT(degraded_events), 0,
             "degraded: something of its latest run waited in memory while the store could not be written",
             .words = "full degraded", .put = put_durability, .take = take_durability},
            {"next", SHAPE_LIST, AT(next), 0, "what moves it, the likeliest first", .of = &shape_next, .put = put_next,
             .take = take_next},
            {"graph_status", SHAPE_TEXT, AT(graph_status), SHAPE_NULLABLE, "its status in the words of graphs"},
            {"graph_error", SHAPE_TEXT, AT(outcome), SHAPE_NULLABLE, "the error that goes with it",
             .words = "interrupted", .has = is_interrupted, .put = put_interrupted},
            {"task_state", SHAPE_TEXT, AT(task_state), SHAPE_NULLABLE, "its status in the words of task sessions"},
            {"task_error", SHAPE_TEXT, AT(outcome), SHAPE_NULLABLE, "the error that goes with it",
             .words = "not_resumable", .has = is_lost, .put = put_lost},
            {"holder", SHAPE_TEXT, AT(holder), SHAPE_NULLABLE, "the process that may append now"},
            {"is_resumable", SHAPE_BOOL, AT(is_resumable), 0, "a person may resume it"},
            {"needs_resume", SHAPE_BOOL, AT(needs_resume), 0, "it does not continue until it is resumed"},
            {"queued_messages", SHAPE_INT, AT(queued_messages), 0, "messages that no run has taken yet"},
            {"trusted", SHAPE_BOOL, AT(trusted), 0, "it began here or was trusted; else nothing of it runs"},
            {"", SHAPE_MEMBERS, .of = &shape_session_times},
            {"first_seq", SHAPE_INT, AT(first_seq), SHAPE_NULLABLE, "its first event", .has = is_known},
            {"last_seq", SHAPE_INT, AT(last_seq), SHAPE_NULLABLE, "its last event", .has = is_known},
            {"parent", SHAPE_OBJECT, .flags = SHAPE_NULLABLE, .help = "of a fork: what it was made from",
             .of = &shape_parent, .has = is_fork},
            {"usage", SHAPE_OBJECT, AT(usage), 0, "what models were asked, over its whole log", .of = &shape_usage},
            {"error", SHAPE_TEXT, AT(error_message), SHAPE_NULLABLE, "of its latest run"},
            {"failed_at_node", SHAPE_TEXT, AT(failed_at_node), SHAPE_NULLABLE,
             "the node at which its graph failed or was interrupted"},
            {"resume_from_checkpoint_id", SHAPE_TEXT, AT(resume_from_checkpoint_id), SHAPE_NULLABLE,
             "the newest checkpoint that it can be resumed from"},
            {.name = NULL},
        },
};

const struct shape shape_sessions = {
    .name = "sessions",
    .help = "Sessions, newest first.",
    .members =
        (const struct shape_member[]){
            {"sessions", SHAPE_STREAM, SHAPE_AT(struct sessions_listed, sessions), 0, "those that were asked for",
             .of = &shape_session},
            {.name = NULL},
        },
};

const struct shape shape_ids = {
    .name = "ids",
    .help = "Ids of sessions or checkpoints.",
    .members =
        (const struct shape_member[]){
            {"ids", SHAPE_STREAM, SHAPE_AT(struct ids_listed, ids), 0, "those that were asked for"},
            {.name = NULL},
        },
};

/* ---- all that is known of one ---- */

/* What it waits for, or was parked for when it was interrupted; every wait has a kind. */
static bool has_wait(const void *data)
{
    return info_of(data)->wait_kind && (!info_of(data)->outcome || is_interrupted(data));
}

/* Logs of others may have runs without an id. */
static bool has_run(const void *data)
{
    const struct tide_session_info *info = info_of(data);

    return info->run_id || info->wait_kind || info->run_ended_ms;
}

static const struct shape shape_wait = {
    .members =
        (const struct shape_member[]){
            {"kind", SHAPE_TEXT, AT(wait_word), 0, "what is waited for", .take = take_wait_kind},
            {"name", SHAPE_TEXT, AT(wait_name), SHAPE_NULLABLE, "its name"},
            {"question", SHAPE_TEXT, AT(question), SHAPE_NULLABLE, "what is asked"},
            {"", SHAPE_MEMBERS, .of = &shape_session_wait},
            {"on_deadline", SHAPE_TEXT, AT(on_deadline), SHAPE_NULLABLE, "what happens then",
             .words = "interrupt default fail", .has = has_deadline, .put = put_on_deadline, .take = take_on_deadline},
            {"default", SHAPE_ANY, AT(default_answer), SHAPE_NULLABLE, "the answer that it gives itself then",
             .has = has_default, .put = put_default, .take = take_default},
            {"due_at", SHAPE_TIME, AT(due_ms), SHAPE_NULLABLE, "when a sleep is over"},
            {.name = NULL},
        },
};

static const struct shape shape_latest_run = {
    .members =
        (const struct shape_member[]){
            {"", SHAPE_MEMBERS, .of = &shape_session_run},
            {"wait", SHAPE_OBJECT, .flags = SHAPE_NULLABLE, .help = "what it waits for", .of = &shape_wait,
             .has = has_wait},
            {.name = NULL},
        },
};

#undef AT

#define AT(member) SHAPE_AT(struct session_detail, member)

const struct shape shape_session_detail = {
    .name = "session_detail",
    .help = "A session with its totals, its latest run and what it waits for.",
    .members =
        (const struct shape_member[]){
            {"id", SHAPE_TEXT, AT(row.info.id), SHAPE_ID, "its id"},
            {"", SHAPE_MEMBERS, AT(row), 0, "", .of = &shape_session},
            {"working_dir", SHAPE_ANY, AT(working_dir), SHAPE_NULLABLE, "where its programs and tools work"},
            {"provider", SHAPE_ANY, AT(provider), SHAPE_NULLABLE, "the provider and model of its agent"},
            {"metadata", SHAPE_ANY, AT(metadata), SHAPE_NULLABLE, "what it was made with"},
            {"checkpoints_enabled", SHAPE_BOOL, AT(checkpoints_enabled), 0, "it can have checkpoints"},
            {"total_checkpoints", SHAPE_INT, AT(total_checkpoints), 0, "how many it has"},
            {"run", SHAPE_OBJECT, AT(row), SHAPE_NULLABLE, "its latest run", .of = &shape_latest_run, .has = has_run},
            {"recovery", SHAPE_OBJECT, AT(row.info), 0, "what recovery knows of it", .of = &shape_session_recovery},
            {.name = NULL},
        },
};
#undef AT

const struct shape shape_why = {
    .name = "why",
    .help = "The status of a session, why, since when, and what moves it.",
    .members =
        (const struct shape_member[]){
            {"", SHAPE_MEMBERS, SHAPE_AT(struct session_why, row), 0, "", .of = &shape_session},
            {"since", SHAPE_TIME, SHAPE_AT(struct session_why, since_ms), 0, "since when it has this status"},
            {.name = NULL},
        },
};

/* ---- its part of what others ask of a task's session ---- */

static bool has_resume_reason(const void *data)
{
    return info_of(data)->needs_resume;
}

#define AT(member) SHAPE_AT(struct session_row, info.member)

const struct shape shape_session_status = {
    .name = "session_status",
    .help = "The status of one session of a task, as task.session.status answers it.",
    .members =
        (const struct shape_member[]){
            {"state", SHAPE_TEXT, AT(task_state), 0, "its state in the words of task sessions"},
            {"resume_reason", SHAPE_TEXT, AT(reason), SHAPE_NULLABLE, "why it needs a resume; null: it needs none",
             .has = has_resume_reason},
            {"error_message", SHAPE_TEXT, AT(error_message), SHAPE_NULLABLE, "of its latest run"},
            {"", SHAPE_MEMBERS, SHAPE_AT(struct session_row, info), 0, "", .of = &shape_session},
            {.name = NULL},
        },
};
#undef AT
