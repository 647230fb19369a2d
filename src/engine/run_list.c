/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run_list.h"

#include "base/json.h"

struct reading {
    struct run_list *list;
    const char *only;
    size_t limit;
};

static const char *keep_text(struct run_list *l, struct str text)
{
    return text.len ? arena_dup(&l->arena, text).ptr : NULL;
}

static struct run_row *find_row(struct run_list *l, struct str run_id)
{
    for (size_t i = l->n; i-- > 0;)
        if (str_eq(str_from(l->at[i].run_id), run_id))
            return &l->at[i];
    return NULL;
}

/* Of another program's log a run may have no id: then an end is of the latest. */
static struct run_row *run_of(struct run_list *l, struct str run_id)
{
    return run_id.len ? find_row(l, run_id) : l->n ? &l->at[l->n - 1] : NULL;
}

static void begin_row(struct reading *r, struct arena *a, const struct tide_event *e, const struct json *body)
{
    struct run_list *l = r->list;
    struct str id = json_get_text(a, body, STR("run_id"));

    if (r->only && !str_eq(id, str_from(r->only)))
        return;
    if (r->limit && l->n == r->limit)
        memmove(l->at, l->at + 1, --l->n * sizeof *l->at);
    MEM_ROOM(l->at, l->n, l->cap);
    l->at[l->n++] = (struct run_row){
        .run_id = arena_dup(&l->arena, id).ptr,
        .resumed_from = keep_text(l, json_get_text(a, json_get(body, STR("resumed_from")), STR("run_id"))),
        .status = tide_status_name(TIDE_STATUS_RUNNING),
        .first_seq = e->seq,
        .started_ms = e->ts_ms};
}

static void wait_for(struct run_list *l, struct run_row *row, struct arena *a, const struct json *body)
{
    row->status = tide_status_name(TIDE_STATUS_WAITING);
    row->reason = keep_text(l, json_get_text(a, body, STR("wait_kind")));
}

static void end_row(struct run_list *l, struct run_row *row, struct arena *a, const struct tide_event *e,
                    const struct json *body)
{
    row->status = tide_outcome_name((enum tide_outcome)tide_outcome_from(e->kind + strlen("run.")));
    row->last_seq = e->seq;
    row->ended_ms = e->ts_ms;
    row->reason = keep_text(l, json_get_text(a, body, STR("reason")));
    row->error = keep_text(l, json_get_text(a, json_get(body, STR("error")), STR("message")));
}

static int on_event(void *arg, const struct tide_event *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct reading *r = arg;
    struct run_row *row;
    struct json *body = NULL;

    if (strncmp(e->kind, "run.", 4) != 0 || json_parse(&a, (struct str){e->body, e->body_len}, NULL, &body, NULL, NULL))
        return 0;
    if (strcmp(e->kind, "run.started") == 0) {
        begin_row(r, &a, e, body);
        return 0;
    }
    row = run_of(r->list, json_get_text(&a, body, STR("run_id")));
    if (!row || (r->only && strcmp(row->run_id, r->only) != 0))
        return 0;
    if (strcmp(e->kind, "run.waiting") == 0)
        wait_for(r->list, row, &a, body);
    else if (strcmp(e->kind, "run.resumed") == 0)
        *row = (struct run_row){row->run_id,
                                row->resumed_from,
                                tide_status_name(TIDE_STATUS_RUNNING),
                                NULL,
                                NULL,
                                row->first_seq,
                                0,
                                row->started_ms,
                                0};
    else if (tide_outcome_from(e->kind + strlen("run.")) > 0)
        end_row(r->list, row, &a, e, body);
    return 0;
}

/* What is open in the log is as the session is; one that is not its latest was left behind. */
static void judge_open(struct run_list *l, const struct tide_session_info *info)
{
    for (size_t i = 0; i < l->n; i++) {
        struct run_row *row = &l->at[i];
        bool latest = info->run_id && strcmp(row->run_id, info->run_id) == 0;

        if (row->ended_ms)
            continue;
        if (!latest || info->outcome == TIDE_OUTCOME_INTERRUPTED) {
            row->status = tide_outcome_name(TIDE_OUTCOME_INTERRUPTED);
            row->reason = latest ? arena_dup(&l->arena, str_from(info->reason)).ptr : row->reason;
        }
    }
}

enum tide_code run_list_read(tide_session *session, const char *run_id, size_t limit, struct run_list *ret,
                             struct tide_err *err)
{
    struct reading r = {ret, run_id, limit};
    const struct tide_session_info *info;

    *ret = (struct run_list){.arena = ARENA_INIT};
    if (tide_session_read(session, 0, 1, 0, on_event, &r, err) || tide_session_get_info(session, &info, err))
        return err->code;
    judge_open(ret, info);
    return TIDE_OK;
}

void run_list_done(struct run_list *l)
{
    free(l->at);
    arena_done(&l->arena);
}
