/* SPDX-License-Identifier: Apache-2.0 */
/* The table of event kinds, and the check of a body against it. */
#include "session/kinds.h"

#include "session/fold.h"

#define FIELDS(...)                                                                                                    \
    (const struct field[])                                                                                             \
    {                                                                                                                  \
        __VA_ARGS__,                                                                                                   \
        {                                                                                                              \
            NULL, F_ANY, FIELD_OPTIONAL                                                                                \
        }                                                                                                              \
    }
#define NEED FIELD_REQUIRED
#define OPT FIELD_OPTIONAL
#define ONE FIELD_ONE_OF
#define WHERE                                                                                                          \
    {"turn", F_INT, OPT}, {"node", F_STRING, OPT}, {"visit", F_INT, OPT},                                              \
    {                                                                                                                  \
        "branch", F_STRING, OPT                                                                                        \
    }
#define MESSAGE(content, calls, call_id)                                                                               \
    FIELDS({"message_id", F_STRING, OPT}, WHERE, {"content", F_ANY, content}, {"tool_calls", F_CALLS, calls},          \
           {"tool_call_id", F_STRING, call_id}, {"tool_name", F_STRING, OPT}, {"images", F_ARRAY, OPT},                \
           {"image_data", F_OBJECT, OPT})
#define RUN_END                                                                                                        \
    FIELDS({"run_id", F_STRING, OPT}, {"reason", F_STRING, OPT}, {"by", F_STRING, OPT}, {"error", F_ANY, OPT},         \
           {"resumable", F_BOOL, OPT}, {"failed_at_node", F_STRING, OPT},                                              \
           {"resume_from_checkpoint_id", F_STRING, OPT}, {"changed_step", F_STRING, OPT}, {"notify", F_BOOL, OPT})
#define SESSION                                                                                                        \
    FIELDS({"agent", F_STRING, OPT}, {"agent_id", F_STRING, OPT}, {"task_id", F_STRING, OPT},                          \
           {"title", F_STRING, OPT}, {"working_dir", F_STRING, OPT}, {"provider", F_OBJECT, OPT},                      \
           {"metadata", F_OBJECT, OPT}, {"parent", F_OBJECT, OPT}, {"agent_profile_id", F_STRING, OPT},                \
           {"agent_execution_id", F_STRING, OPT}, {"executor_id", F_STRING, OPT}, {"worktree", F_OBJECT, OPT},         \
           {"created_at", F_STRING, OPT}, {"task_state", F_STRING, OPT}, {"by", F_STRING, OPT})
#define TOOL                                                                                                           \
    FIELDS(WHERE, {"call_id", F_STRING, NEED}, {"tool", F_STRING, OPT}, {"args_digest", F_STRING, OPT},                \
           {"effect", F_STRING, OPT}, {"key", F_STRING, OPT}, {"pid", F_INT, OPT}, {"pid_start", F_INT, OPT},          \
           {"attempt", F_INT, OPT}, {"retry_at", F_STRING, OPT}, {"result", F_ANY, OPT}, {"error", F_ANY, OPT},        \
           {"settled", F_STRING, OPT}, {"begun", F_BOOL, OPT})
#define TOKEN                                                                                                          \
    FIELDS({"token_id", F_STRING, NEED}, {"run_id", F_STRING, OPT}, {"wait_kind", F_STRING, OPT},                      \
           {"expires_at", F_STRING, OPT}, {"reason", F_STRING, OPT}, {"request_id", F_STRING, OPT},                    \
           {"secret_hash", F_STRING, OPT})
#define NOTIFY                                                                                                         \
    FIELDS({"notify_id", F_STRING, OPT}, {"of_seq", F_INT, NEED}, {"attempt", F_INT, OPT}, {"ms", F_INT, OPT},         \
           {"error", F_STRING, OPT}, {"retry_at", F_STRING, OPT})
#define PROCESS                                                                                                        \
    {"kernel_boot", F_STRING, OPT}, {"pid_ns", F_INT, OPT}, {"pid", F_INT, OPT},                                       \
    {                                                                                                                  \
        "pid_start", F_INT, OPT                                                                                        \
    }
#define GRAPH_RUN                                                                                                      \
    {"graph_dir", F_STRING, OPT}, {"entry", F_STRING, OPT},                                                            \
    {                                                                                                                  \
        "goal", F_STRING, OPT                                                                                          \
    }
#define NODE                                                                                                           \
    FIELDS({"node", F_STRING, NEED}, {"visit", F_INT, OPT}, {"branch", F_STRING, OPT}, {"attempt", F_INT, OPT},        \
           {"effect", F_STRING, OPT}, {"retry_at", F_STRING, OPT}, {"ms", F_INT, OPT}, {"handled", F_BOOL, OPT},       \
           {"dropped", F_BOOL, OPT}, {"deciding", F_BOOL, OPT}, {"happened", F_BOOL, OPT}, {"begun", F_BOOL, OPT},     \
           {"error", F_ANY, OPT})
#define EXECUTOR                                                                                                       \
    FIELDS({"executor_id", F_STRING, OPT}, {"runtime", F_STRING, OPT}, {"agentctl", F_ANY, OPT}, {"pid", F_INT, OPT},  \
           {"container_id", F_STRING, OPT}, {"error", F_ANY, OPT})

/* clang-format off */
static const struct kind kinds[] = {
    {"session.created", KIND_INTERNAL | KIND_INFO, SESSION, NULL, NULL},
    {"session.updated", KIND_INPUT | KIND_INFO, SESSION, NULL, NULL},
    {"session.trusted", KIND_INTERNAL, FIELDS({"up_to", F_INT, OPT}, {"by", F_STRING, OPT}, {"shown_digest", F_STRING, OPT}), ledger_trusted, NULL},
    {"session.rolled_back", KIND_INTERNAL | KIND_ROLLBACK, FIELDS({"to_seq", F_INT, NEED}, {"reason", F_STRING, OPT}, {"effects", F_STRING, OPT}),
     ledger_rolled_back, NULL},
    {"run.started", 0, FIELDS({"run_id", F_STRING, NEED}, {"boot_id", F_STRING, OPT}, {"resumed_from", F_OBJECT, OPT},
                              {"graph_digest", F_STRING, OPT}, {"loop", F_STRING, OPT}, {"argv", F_ARRAY, OPT}, {"cwd", F_STRING, OPT}, {"env", F_ARRAY, OPT},
                              {"graph", F_OBJECT, OPT}, GRAPH_RUN, PROCESS),
     ledger_run_started, content_run_started},
    {"run.completed", 0, RUN_END, ledger_run_ended, NULL},
    {"run.failed", KIND_FAILURE, RUN_END, ledger_run_ended, NULL},
    {"run.cancelled", 0, RUN_END, ledger_run_ended, NULL},
    {"run.interrupted", 0, RUN_END, ledger_run_ended, NULL},
    {"run.waiting", 0, FIELDS({"run_id", F_STRING, OPT}, {"wait_name", F_STRING, OPT}, {"wait_kind", F_STRING, NEED}, {"since_seq", F_INT, OPT},
                              {"resume_token_id", F_STRING, OPT}, {"deadline_at", F_STRING, OPT}, {"due_at", F_STRING, OPT}, {"question", F_STRING, OPT},
                              {"wait_key", F_STRING, OPT}, {"on_deadline", F_STRING, OPT}, {"default", F_ANY, OPT}, {"notify", F_BOOL, OPT}),
     ledger_run_waiting, NULL},
    {"run.resumed", 0, FIELDS({"run_id", F_STRING, OPT}, {"by", F_STRING, OPT}, {"request_id", F_STRING, OPT}, {"input", F_ANY, OPT},
                              {"boot_id", F_STRING, OPT}, {"graph_digest", F_STRING, OPT}, {"graph", F_OBJECT, OPT}, GRAPH_RUN, PROCESS),
     ledger_run_resumed, content_run_started},
    {"cancel.requested", KIND_INPUT, FIELDS({"by", F_STRING, OPT}, {"reason", F_STRING, OPT}), ledger_cancel, NULL},
    {"queue.added", KIND_INPUT | KIND_MOVES, FIELDS({"queue_id", F_STRING, NEED}, {"content", F_ANY, OPT}), ledger_queue_added, NULL},
    {"queue.taken", 0, FIELDS({"queue_id", F_STRING, NEED}), ledger_queue_taken, NULL},
    {"queue.withdrawn", KIND_INPUT, FIELDS({"queue_id", F_STRING, NEED}, {"by", F_STRING, OPT}), ledger_queue_taken, NULL},
    {"message.user", KIND_MESSAGE | KIND_TELLS, MESSAGE(NEED, OPT, OPT), ledger_turn, content_message},
    {"message.assistant", KIND_MESSAGE | KIND_TELLS, MESSAGE(ONE, ONE, OPT), ledger_turn, content_message},
    {"message.tool", KIND_MESSAGE | KIND_TELLS, MESSAGE(NEED, OPT, NEED), ledger_turn, content_message},
    {"llm.request", KIND_TELLS, FIELDS(WHERE, {"model", F_STRING, OPT}), ledger_turn, content_turn},
    {"llm.usage", KIND_TELLS, FIELDS(WHERE, {"input_tokens", F_INT, OPT}, {"output_tokens", F_INT, OPT}, {"cached_tokens", F_INT, OPT}, {"cost", F_NUMBER, OPT}),
     ledger_usage, NULL},
    {"llm.error", KIND_FAILURE | KIND_TELLS, FIELDS(WHERE, {"context", F_STRING, OPT}, {"attempt", F_INT, OPT}, {"code", F_ANY, OPT}, {"message", F_STRING, OPT},
                                       {"retry_at", F_STRING, OPT}), ledger_error, content_failure},
    {"context.trimmed", KIND_TELLS, FIELDS(WHERE, {"dropped", F_ARRAY, OPT}, {"reason", F_STRING, OPT}, {"summary", F_STRING, OPT}), NULL, NULL},
    {"tool.started", 0, TOOL, ledger_tool_started, NULL},
    {"tool.completed", 0, TOOL, ledger_tool_ended, NULL},
    {"tool.failed", KIND_FAILURE, TOOL, ledger_tool_ended, content_failure},
    {"tool.unknown", 0, TOOL, ledger_tool_ended, content_failure},
    {"tool.withdrawn", 0, TOOL, ledger_tool_withdrawn, content_tool_withdrawn},
    {"approval.requested", 0, FIELDS({"approval_id", F_STRING, NEED}, {"call_id", F_STRING, OPT}, {"tool", F_STRING, OPT}, {"args_digest", F_STRING, OPT}, {"question", F_STRING, OPT}),
     ledger_approval_requested, NULL},
    {"approval.given", KIND_INPUT | KIND_MOVES, FIELDS({"approval_id", F_STRING, NEED}, {"decision", F_STRING, OPT}, {"by", F_STRING, OPT}, {"reason", F_STRING, OPT}),
     ledger_approval_given, NULL},
    {"hook.fired", KIND_TELLS, FIELDS({"event", F_STRING, OPT}, {"hook", F_STRING, OPT}, {"decision", F_STRING, OPT}), NULL, NULL},
    {"memory.set", KIND_TELLS, FIELDS({"node", F_STRING, OPT}, {"values", F_OBJECT, NEED}, {"by", F_STRING, OPT}, {"frame", F_STRING, OPT}, {"branch", F_STRING, OPT}, {"beneath", F_STRING, OPT}),
     ledger_memory, content_memory_set},
    {"memory.deleted", KIND_TELLS, FIELDS({"node", F_STRING, OPT}, {"keys", F_ARRAY, NEED}, {"by", F_STRING, OPT}, {"frame", F_STRING, OPT}), ledger_memory, content_memory_deleted},
    {"output.set", KIND_TELLS, FIELDS({"node", F_STRING, OPT}, {"visit", F_INT, OPT}, {"values", F_OBJECT, NEED}, {"by", F_STRING, OPT}), NULL, content_output_set},
    {"node.started", 0, NODE, ledger_node_started, content_node_started},
    {"node.completed", 0, NODE, NULL, content_node_completed},
    {"node.failed", KIND_FAILURE, NODE, ledger_error, content_node_failed},
    {"node.decided", 0, NODE, NULL, content_node_decided},
    {"node.renamed", 0, FIELDS({"from", F_STRING, NEED}, {"to", F_STRING, NEED}, {"by", F_STRING, OPT}), NULL, content_node_renamed},
    {"graph.stored", 0, FIELDS({"digest", F_STRING, NEED}, {"graph", F_OBJECT, NEED}), NULL, NULL},
    {"edge.taken", 0, FIELDS({"from", F_STRING, OPT}, {"to", F_STRING, NEED}, {"edge", F_STRING, OPT}, {"branch", F_STRING, OPT}, {"values", F_OBJECT, OPT}),
     NULL, content_edge_taken},
    {"edge.refused", 0, FIELDS({"from", F_STRING, OPT}, {"to", F_STRING, OPT}, {"edge", F_STRING, OPT}, {"reason", F_STRING, OPT}), NULL, NULL},
    {"checkpoint", 0, FIELDS({"checkpoint_id", F_STRING, NEED}, {"type", F_STRING, NEED}, {"turn", F_INT, OPT}, {"node", F_STRING, OPT},
                             {"next_node", F_STRING, OPT}, {"execution_path", F_ARRAY, OPT}, {"metrics", F_OBJECT, OPT}, {"is_clean", F_BOOL, OPT},
                             {"can_resume_from", F_BOOL, OPT}, {"description", F_STRING, OPT}), ledger_checkpoint, content_checkpoint},
    {"checkpoint.deleted", 0, FIELDS({"checkpoint_ids", F_ARRAY, NEED}, {"reason", F_STRING, OPT}), ledger_checkpoint_deleted, content_checkpoint_deleted},
    {"token.minted", KIND_INPUT, TOKEN, ledger_token, NULL},
    {"token.consumed", KIND_INPUT, TOKEN, ledger_token, NULL},
    {"token.revoked", KIND_INPUT, TOKEN, ledger_token, NULL},
    {"token.expired", KIND_INPUT, TOKEN, ledger_token, NULL},
    {"notify.sent", KIND_INTERNAL, NOTIFY, ledger_notified, NULL},
    {"notify.failed", KIND_INTERNAL, NOTIFY, ledger_notified, NULL},
    {"status.derived", 0, FIELDS({"status", F_STRING, OPT}, {"reason", F_STRING, OPT}), NULL, NULL},
    {"executor.starting", 0, EXECUTOR, NULL, NULL},
    {"executor.ready", 0, EXECUTOR, NULL, NULL},
    {"executor.error", 0, EXECUTOR, NULL, NULL},
    {"executor.stopped", 0, EXECUTOR, NULL, NULL},
};
/* clang-format on */

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

const struct kind *kind_find(struct str name)
{
    /* First and last letter distinguish most: a linear search is fast enough. */
    for (size_t i = 0; i < KIND_COUNT && name.len; i++) {
        const char *k = kinds[i].name;

        if (k[0] == name.ptr[0] && strncmp(k, name.ptr, name.len) == 0 && k[name.len] == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool is_part(const char *name, struct str text)
{
    return memmem(name, strlen(name), text.ptr, text.len) != NULL;
}

bool kind_is_word(struct str text)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (is_part(kinds[i].name, text))
            return true;
        for (const struct field *f = kinds[i].fields; f->name; f++) {
            if (is_part(f->name, text))
                return true;
        }
    }
    return false;
}

bool kind_is_valid(struct str name)
{
    if (name.len == 0 || name.len > 64 || name.ptr[0] < 'a' || name.ptr[0] > 'z')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
            return false;
    }
    return true;
}

static bool is_text(const struct json *v)
{
    return v && v->type == JSON_STRING;
}

static bool are_calls(const struct json *v)
{
    for (const struct json *c = v->first; c; c = c->next)
        if (c->type != JSON_OBJECT || !is_text(json_get(c, STR("id"))) || !is_text(json_get(c, STR("name"))))
            return false;
    return v->type == JSON_ARRAY;
}

static bool type_fits(enum field_type type, const struct json *v)
{
    int64_t n;

    switch (type) {
    case F_ANY:
        return true;
    case F_STRING:
        return v->type == JSON_STRING || v->type == JSON_NULL;
    case F_INT:
        return json_int(v, &n) || v->type == JSON_NULL;
    case F_NUMBER:
        return v->type == JSON_NUMBER || v->type == JSON_NULL;
    case F_BOOL:
        return v->type == JSON_TRUE || v->type == JSON_FALSE || v->type == JSON_NULL;
    case F_OBJECT:
        return v->type == JSON_OBJECT || v->type == JSON_NULL;
    case F_ARRAY:
        return v->type == JSON_ARRAY || v->type == JSON_NULL;
    case F_CALLS:
        return v->type == JSON_NULL || are_calls(v);
    }
    return false;
}

static const char *const type_words[] = {
    "a value",       "a string",  "an integer", "a number",
    "true or false", "an object", "an array",   "an array of objects with \"id\" and \"name\""};

static inline bool is_named(const struct json *member, const char *name)
{
    return (member->key_escaped || (member->key.len && member->key.ptr[0] == name[0])) &&
           json_key_eq(member, str_from(name));
}

/* Members mostly come in the order of the table: each is looked for behind the one before it first. */
static const struct field *field_of(const struct kind *kind, const struct json *member, const struct field *before,
                                    uint64_t *seen)
{
    const struct field *f = before && before[1].name ? before + 1 : kind->fields;

    for (const struct field *start = f; f->name;) {
        uint64_t bit = (uint64_t)1 << (f - kind->fields);

        if (!(*seen & bit) && is_named(member, f->name)) {
            *seen |= bit;
            return f;
        }
        f = (f + 1)->name ? f + 1 : kind->fields;
        if (f == start)
            return NULL;
    }
    return NULL;
}

static bool is_reserved(const struct json *member)
{
    static const char *const reserved[] = {"seq", "ts", "kind", "tidemark"};

    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (is_named(member, reserved[i]))
            return true;
    }
    return false;
}

static bool has_value(const struct field *f, const struct json *body)
{
    const struct json *v = json_get(body, str_from(f->name));

    return v && v->type != JSON_NULL;
}

static enum tide_code fail_missing(const struct kind *kind, const struct field *f, const struct json *body,
                                   struct tide_err *err)
{
    if (json_get(body, str_from(f->name)))
        tide_fail(err, TIDE_INVALID, "%s: '%s' must be %s, not null", kind->name, f->name, type_words[f->type]);
    else
        tide_fail(err, TIDE_INVALID, "%s: '%s' is missing: it needs %s", kind->name, f->name, type_words[f->type]);
    return tide_about(err, TIDE_SUBJECT_FIELD, f->name);
}

static enum tide_code check_missing(const struct kind *kind, const struct json *body, struct tide_err *err)
{
    const struct field *first = NULL; /* of those of which one is needed */
    bool one = false;

    for (const struct field *f = kind->fields; f->name; f++) {
        if (f->need == FIELD_REQUIRED && !has_value(f, body))
            return fail_missing(kind, f, body, err);
        if (f->need == FIELD_ONE_OF) {
            first = first ? first : f;
            one |= has_value(f, body);
        }
    }
    return first && !one ? fail_missing(kind, first, body, err) : TIDE_OK;
}

enum tide_code kind_check(const struct kind *kind, struct str name, const struct json *body, struct tide_err *err)
{
    const struct field *f = NULL;
    uint64_t seen = 0;

    if (body->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "%.*s: the data must be a JSON object", STR_ARG(name));
    for (const struct json *m = body->first; m; m = m->next) {
        if (is_reserved(m))
            return tide_fail(err, TIDE_INVALID, "%.*s: '%.*s' is set by Tidemark: omit it from the data", STR_ARG(name),
                             STR_ARG(m->key));
        f = kind ? field_of(kind, m, f, &seen) : NULL;
        if (f && !type_fits(f->type, m)) {
            tide_fail(err, TIDE_INVALID, "%.*s: '%s' must be %s", STR_ARG(name), f->name, type_words[f->type]);
            return tide_about(err, TIDE_SUBJECT_FIELD, f->name);
        }
    }
    return kind ? check_missing(kind, body, err) : TIDE_OK;
}
