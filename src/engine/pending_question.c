/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pending_question.h"

#include <string.h>

#include "base/json.h"

#define LOOKED_AT 10000 /* events behind which the call that is asked about is not looked for */

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

enum tide_code pending_question_read(tide_session *session, struct pending_question *ret, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct tide_err ignored;
    int64_t last, first;

    *ret = (struct pending_question){.arena = ARENA_INIT};
    if (tide_session_refresh(session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    ret->text = arena_dup(&ret->arena, str_from(info->question ? info->question : info->wait_name)).ptr;
    ret->working_dir = arena_dup(&ret->arena, str_from(info->working_dir ? info->working_dir : ".")).ptr;
    ret->approval = info->wait_kind == TIDE_WAIT_APPROVAL;
    ret->deadline_ms = info->deadline_ms;
    last = tide_session_last_seq(session);
    first = last > LOOKED_AT ? last - LOOKED_AT : tide_session_first_seq(session);
    if (ret->approval && tide_session_read(session, 0, first, last, take_call, ret, &ignored))
        ret->tool = NULL; /* the question says what it is about */
    return TIDE_OK;
}

void pending_question_done(struct pending_question *q)
{
    arena_done(&q->arena);
}
