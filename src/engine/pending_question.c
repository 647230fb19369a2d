/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pending_question.h"

#include <string.h>

#include "base/json.h"
#include "engine/change_diff.h"
#include "session/session.h"

#define LOOKED_AT 64 /* approvals that were not given, of which the newest that asks the same is the one */
#define DIFF_MAX ((size_t)1 << 20)

bool session_asks(const struct tide_session_info *info)
{
    return (info->status == TIDE_STATUS_WAITING || info->status == TIDE_STATUS_INTERRUPTED_WAITING) &&
           info->wait_kind && info->wait_kind != TIDE_WAIT_TIMER;
}

static int take_call(void *arg, const struct tide_event *ev)
{
    struct pending_question *q = arg;
    const struct json *args;
    struct json *body = NULL;
    struct str tool;

    if (strcmp(ev->kind, "approval.requested") != 0 ||
        json_parse(&q->arena, arena_dup(&q->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL) ||
        !str_eq(json_get_text(&q->arena, body, STR("question")), str_from(q->text)))
        return 0;
    args = json_get(body, STR("args"));
    tool = args ? json_get_text(&q->arena, body, STR("tool")) : STR("");
    q->args = args ? arena_dup(&q->arena, json_source(args)).ptr : NULL;
    q->tool = tool.len ? arena_dup(&q->arena, tool).ptr : NULL;
    return 0;
}

/* Each is looked up where the ledger says that it is; a later one wins. */
static void find_call(tide_session *session, struct pending_question *q)
{
    const struct map *asked = &session->state->ledger.approvals;
    int64_t seqs[LOOKED_AT];
    size_t n = 0, skip = asked->live > LOOKED_AT ? asked->live - LOOKED_AT : 0;
    struct tide_err ignored;

    for (struct map_entry *e = map_next(asked, NULL); e && n < LOOKED_AT; e = map_next(asked, e)) {
        if (skip > 0)
            skip--;
        else
            seqs[n++] = *(const int64_t *)e->value;
    }
    for (size_t i = 0; i < n; i++)
        if (tide_session_read(session, 0, seqs[i], seqs[i], take_call, q, &ignored))
            q->tool = q->args = NULL; /* the question says what it is about */
}

enum tide_code pending_question_read(tide_session *session, struct pending_question *ret, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct arena *a = &ret->arena;

    *ret = (struct pending_question){.arena = ARENA_INIT};
    if (tide_session_refresh(session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    ret->text = arena_dup(a, str_from(info->question ? info->question : info->wait_name)).ptr;
    ret->kind = arena_text(a, info->wait_word);
    ret->name = arena_text(a, info->wait_name);
    ret->working_dir = arena_dup(a, str_from(info->working_dir ? info->working_dir : ".")).ptr;
    ret->has_working_dir = info->working_dir != NULL;
    ret->default_answer = arena_text(a, info->default_answer);
    ret->approval = info->wait_kind == TIDE_WAIT_APPROVAL;
    ret->trusted = info->trusted;
    ret->since_ms = info->wait_since_ms;
    ret->deadline_ms = info->deadline_ms;
    ret->on_deadline = info->on_deadline;
    if (ret->approval)
        find_call(session, ret);
    return TIDE_OK;
}

void pending_question_add_diff(struct pending_question *q)
{
    AUTO(buf_done) struct buf out = BUF_INIT(DIFF_MAX);

    if (q->trusted && q->has_working_dir && q->tool && q->args && change_diff(q->working_dir, q->tool, q->args, &out) &&
        !out.failed)
        q->diff = arena_dup(&q->arena, buf_view(&out)).ptr;
}

void pending_question_done(struct pending_question *q)
{
    arena_done(&q->arena);
}

/* ---- as JSON ---- */

static bool has_args(const void *data)
{
    return ((const struct pending_question *)data)->args != NULL;
}

static void put_args(struct json_out *o, const void *data)
{
    json_out_raw(o, str_from(((const struct pending_question *)data)->args));
}

static bool has_default(const void *data)
{
    return ((const struct pending_question *)data)->default_answer != NULL;
}

static void put_default(struct json_out *o, const void *data)
{
    json_out_raw(o, str_from(((const struct pending_question *)data)->default_answer));
}

static bool has_working_dir(const void *data)
{
    return ((const struct pending_question *)data)->has_working_dir;
}

static bool has_on_deadline(const void *data)
{
    return ((const struct pending_question *)data)->on_deadline != TIDE_ON_DEADLINE_UNSET;
}

static void put_on_deadline(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tide_on_deadline_name(((const struct pending_question *)data)->on_deadline)));
}

#define AT(member) SHAPE_AT(struct pending_question, member)

const struct shape shape_question = {
    .members =
        (const struct shape_member[]){
            {"text", SHAPE_TEXT, AT(text), 0, "what is asked; where it is not said, the name of the wait"},
            {"kind", SHAPE_TEXT, AT(kind), 0, "what is waited for"},
            {"name", SHAPE_TEXT, AT(name), SHAPE_NULLABLE, "of the wait"},
            {"approval", SHAPE_BOOL, AT(approval), 0, "it is answered with yes or no"},
            {"tool", SHAPE_TEXT, AT(tool), SHAPE_NULLABLE, "of the call that is to be approved"},
            {"args", SHAPE_ANY, AT(args), SHAPE_NULLABLE, "its arguments", .has = has_args, .put = put_args},
            {"diff", SHAPE_TEXT, AT(diff), SHAPE_NULLABLE,
             "what the call would change in a file as it is now, as hunks of a unified diff; only for who may answer"},
            {"working_dir", SHAPE_TEXT, AT(working_dir), SHAPE_NULLABLE, "where the call would work",
             .has = has_working_dir},
            {"since", SHAPE_TIME, AT(since_ms), SHAPE_NULLABLE, "when it was asked"},
            {"deadline_at", SHAPE_TIME, AT(deadline_ms), SHAPE_NULLABLE, "until when it can be answered"},
            {"default", SHAPE_ANY, AT(default_answer), SHAPE_NULLABLE, "the answer that it gives itself then",
             .has = has_default, .put = put_default},
            {"on_deadline", SHAPE_TEXT, AT(on_deadline), SHAPE_NULLABLE, "what happens then",
             .words = "interrupt default fail", .has = has_on_deadline, .put = put_on_deadline},
            {.name = NULL},
        },
};
