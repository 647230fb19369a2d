/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: an event that promises that the state as of here is complete and consistent. Saving costs that event; loading is the
 * state at its seq. checkpoint_find.c finds them, and takes them back.
 */
#include <inttypes.h>

#include "base/log.h"
#include "session/event_draft.h"
#include "session/session.h"
#include "session/usage_json.h"

enum tide_checkpoint_type checkpoint_type_of(const char *word)
{
    int type = tide_checkpoint_type_from(word);

    return type > 0 ? (enum tide_checkpoint_type)type : TIDE_CHECKPOINT_OTHER;
}

enum tide_code checkpoint_check_type(struct str type, struct tide_err *err)
{
    AUTO(mem_freep) char *word = mem_dup(type);

    if (checkpoint_type_of(word))
        return TIDE_OK;
    return tide_fail(
        err, TIDE_INVALID,
        "'%.*s' is not a checkpoint type: turn, node_start, node_complete, edge_transition, loop_iteration, "
        "safe_point, user_checkpoint",
        STR_ARG(type));
}

enum tide_code checkpoint_check(struct arena *a, const struct json *body, struct tide_err *err)
{
    if (!str_is_id(json_get_text(a, body, STR("checkpoint_id"))))
        return tide_fail(err, TIDE_INVALID, "checkpoint: 'checkpoint_id' must be 1 to 64 letters, digits, '_' or '-'");
    return checkpoint_check_type(json_get_text(a, body, STR("type")), err);
}

/* By type; TIDE_CHECKPOINT_OTHER: one of a later version. */
static const struct {
    const char *alone, *before, *behind; /* before and behind the name of the node; NULL: it is not named */
} says[] = {
    [TIDE_CHECKPOINT_OTHER] = {"checkpoint", NULL, NULL},
    [TIDE_CHECKPOINT_TURN] = {"after a turn", NULL, NULL},
    [TIDE_CHECKPOINT_NODE_START] = {"before a node", "before node ", ""},
    [TIDE_CHECKPOINT_NODE_COMPLETE] = {"a node completed", "node ", " completed"},
    [TIDE_CHECKPOINT_EDGE_TRANSITION] = {"between nodes", "after node ", ""},
    [TIDE_CHECKPOINT_LOOP_ITERATION] = {"after a turn", NULL, NULL},
    [TIDE_CHECKPOINT_SAFE_POINT] = {"safe point", "safe point after node ", ""},
    [TIDE_CHECKPOINT_USER] = {"made by hand", "made by hand at node ", ""},
};

const char *checkpoint_describe(char out[CHECKPOINT_SAYS], enum tide_checkpoint_type type, const char *node,
                                const char *next_node, int64_t turn)
{
    if (type == TIDE_CHECKPOINT_TURN || type == TIDE_CHECKPOINT_LOOP_ITERATION)
        snprintf(out, CHECKPOINT_SAYS, "after turn %" PRId64, turn);
    else if (type == TIDE_CHECKPOINT_EDGE_TRANSITION && node && next_node)
        snprintf(out, CHECKPOINT_SAYS, "from node %.100s to node %.100s", node, next_node);
    else if (node && says[type].before)
        snprintf(out, CHECKPOINT_SAYS, "%s%.100s%s", says[type].before, node, says[type].behind);
    else
        snprintf(out, CHECKPOINT_SAYS, "%s", says[type].alone);
    return out;
}

/* What the events before the checkpoint in the same append add to the state. */
struct ahead {
    int64_t failures, messages;
    struct tide_usage usage;
};

static struct ahead look_ahead(const struct draft *d)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct ahead sum = {0};
    struct json *body;

    for (size_t i = 0; d && i < d->n; i++) {
        const struct tide_new_event *ev = &d->events[i];

        sum.messages += str_starts(str_from(ev->kind), STR("message."));
        sum.failures += strcmp(ev->kind, "tool.failed") == 0 || strcmp(ev->kind, "tool.unknown") == 0;
        if (strcmp(ev->kind, "llm.usage") != 0 ||
            json_parse(&a, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL))
            continue;
        sum.usage.input_tokens += json_get_int(body, STR("input_tokens"), 0);
        sum.usage.output_tokens += json_get_int(body, STR("output_tokens"), 0);
    }
    return sum;
}

static void write_metrics(struct json_out *o, const struct state *s, const struct ahead *more)
{
    struct tide_usage usage = usage_of(&s->ledger);

    usage.input_tokens += more->usage.input_tokens;
    usage.output_tokens += more->usage.output_tokens;
    json_out_key(o, STR("metrics"));
    json_out_begin(o, '{');
    json_out_kint(o, STR("failures"), s->content.failures + more->failures);
    json_out_kint(o, STR("messages"), s->content.messages + more->messages);
    usage_put(o, &usage, 0);
    if (s->ledger.run.degraded)
        json_out_kint(o, STR("degraded_events"), s->ledger.run.degraded);
    json_out_end(o, '}');
}

static void write_checkpoint(struct buf *out, const struct state *s, const struct tide_new_checkpoint *in,
                             const char *key, const struct draft *before, const char *id)
{
    const char *node = in->node ? in->node : s->content.node;
    const char *next = in->next_node ? in->next_node : s->content.next_node;
    struct json_out o = json_out_to(out);
    struct ahead more = look_ahead(before);
    char described[CHECKPOINT_SAYS];

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("checkpoint_id"), str_from(id));
    json_out_kstr(&o, STR("type"), str_from(tide_checkpoint_type_name(in->type)));
    if (s->content.turn)
        json_out_kint(&o, STR("turn"), s->content.turn);
    json_out_kstr_opt(&o, STR("node"), str_from(node));
    json_out_kstr_opt(&o, STR("next_node"), str_from(next));
    json_out_kbool(&o, STR("is_clean"), s->content.failures + more.failures == 0);
    json_out_kbool(&o, STR("can_resume_from"), before || !ledger_has_open_effect(&s->ledger));
    json_out_kstr(&o, STR("description"),
                  str_from(in->description ? in->description
                                           : checkpoint_describe(described, in->type, node, next, s->content.turn)));
    json_out_kstr_opt(&o, STR("key"), str_from(key));
    write_metrics(&o, s, &more);
    json_out_end(&o, '}');
}

void checkpoint_put(struct tide_session *s, struct draft *d, const struct tide_new_checkpoint *in,
                    char ret_id[TIDE_ID_SIZE])
{
    struct buf body = BUF_INIT(1 << 20);

    session_make_id(s->store, "ckpt", ret_id);
    write_checkpoint(&body, s->state, in, NULL, d, ret_id);
    draft_add(d, "checkpoint", buf_view(&body));
    buf_done(&body);
}

enum tide_code checkpoint_draft(struct tide_session *s, const struct tide_new_checkpoint *in, const char *key,
                                struct buf *ret_body, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    enum tide_code code = checkpoint_check_type(str_from(tide_checkpoint_type_name(in->type)), err);

    if (!code && (group_owes(&s->owner) || s->stale))
        code = session_sync(s, err);
    if (code)
        return code;
    session_make_id(s->store, "ckpt", ret_id);
    write_checkpoint(ret_body, s->state, in, key, NULL, ret_id);
    return ret_body->failed ? tide_fail(err, TIDE_TOO_BIG, "the checkpoint's description is too long") : TIDE_OK;
}

/* Its caller may continue without it: then this is all that is ever said of it. */
void checkpoint_log_failed(const struct tide_session *s, enum tide_checkpoint_type type, const struct tide_err *err)
{
    log_write(TIDE_LOG_WARN, "checkpoint failed", log_text("store", s->store->url), log_text("session", s->head.id),
              log_text("type", tide_checkpoint_type_name(type)), log_text("code", tide_code_name(err->code)),
              log_text("why", err->msg));
}

enum tide_code tide_checkpoint_save(tide_session *s, const struct tide_new_checkpoint *given, char ret_id[TIDE_ID_SIZE],
                                    struct tide_err *err)
{
    struct tide_new_checkpoint own;
    struct buf body = BUF_INIT(1 << 20);
    struct tide_new_event ev = {"checkpoint", NULL, 0};
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_new_checkpoint, given, err);
    code = code ? code : checkpoint_draft(s, &own, NULL, &body, id, err);
    if (!code) {
        ev.body = buf_cstr(&body);
        ev.body_len = body.len;
        code = session_append(s, own.append_flags, &ev, 1, NULL, err);
    }
    buf_done(&body);
    if (code) {
        checkpoint_log_failed(s, own.type, err);
        return code;
    }
    log_write(TIDE_LOG_DEBUG, "checkpoint", log_text("store", s->store->url), log_text("session", s->head.id),
              log_text("id", id), log_text("type", tide_checkpoint_type_name(own.type)));
    memcpy(ret_id, id, sizeof id);
    return TIDE_OK;
}
