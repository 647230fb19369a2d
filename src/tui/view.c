/* SPDX-License-Identifier: Apache-2.0 */
/* What is not there, or is of another type than was promised, is left out: what answers may be of another version. */
#include "tui/view.h"

#include "base/timefmt.h"

static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 64};

static const char *text_of(struct arena *a, const struct json *v, const char *name)
{
    const struct json *m = json_get(v, str_from(name));

    return m && m->type == JSON_STRING ? arena_dup(a, json_text(a, m)).ptr : NULL;
}

static const char *text_or(struct arena *a, const struct json *v, const char *name, const char *otherwise)
{
    const char *text = text_of(a, v, name);

    return text ? text : otherwise;
}

static struct str source_of(const struct json *v, const char *name)
{
    const struct json *m = json_get(v, str_from(name));

    return m && m->type != JSON_NULL ? json_source(m) : STR("");
}

static int64_t time_of(struct arena *a, const struct json *v, const char *name)
{
    int64_t ms = 0;
    const char *text = text_of(a, v, name);

    return text && time_parse(str_from(text), &ms) ? ms : 0;
}

static const struct json *list_of(const struct json *v, const char *name, size_t *ret_n)
{
    const struct json *m = json_get(v, str_from(name));

    *ret_n = m && m->type == JSON_ARRAY ? m->count : 0;
    return *ret_n ? m->first : NULL;
}

/* ---- sessions ---- */

static const struct question_view *take_question(struct arena *a, const struct json *v)
{
    struct question_view *q;

    if (!v || v->type != JSON_OBJECT)
        return NULL;
    q = arena_zero(a, sizeof *q);
    *q = (struct question_view){
        .text = text_or(a, v, "text", ""),
        .kind = text_or(a, v, "kind", ""),
        .name = text_or(a, v, "name", ""),
        .approval = json_get_bool(v, STR("approval"), false),
        .tool = text_of(a, v, "tool"),
        .args = source_of(v, "args"),
        .diff = text_of(a, v, "diff"),
        .working_dir = text_of(a, v, "working_dir"),
        .since_ms = time_of(a, v, "since"),
        .deadline_ms = time_of(a, v, "deadline_at"),
        .on_deadline = text_of(a, v, "on_deadline"),
        .otherwise = source_of(v, "default"),
    };
    return q;
}

static enum tide_code take_row(struct arena *a, const struct json *v, struct row_view *ret, struct tide_err *err)
{
    *ret = (struct row_view){.since_ms = 0};
    return shape_read(a, &shape_session, v, &ret->row, err);
}

static enum tide_code view_sessions(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct rows_view *rows = arena_zero(&answer->arena, sizeof *rows);
    const struct json *one = list_of(v, "sessions", &rows->n), *cursor = json_get(v, STR("next_cursor"));

    rows->at = arena_zero(&answer->arena, (rows->n + 1) * sizeof *rows->at);
    for (size_t i = 0; one; one = one->next, i++)
        if (take_row(&answer->arena, one, &rows->at[i], err))
            return err->code;
    rows->total = json_get_int(v, STR("total"), -1);
    rows->more = cursor && cursor->type == JSON_STRING;
    answer->view = rows;
    return TIDE_OK;
}

static enum tide_code view_inbox(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct rows_view *rows = arena_zero(&answer->arena, sizeof *rows);
    const struct json *one = list_of(v, "items", &rows->n);

    rows->at = arena_zero(&answer->arena, (rows->n + 1) * sizeof *rows->at);
    for (size_t i = 0; one; one = one->next, i++) {
        const struct json *session = json_get(one, STR("session"));

        if (!session || take_row(&answer->arena, session, &rows->at[i], err))
            return err->code ? err->code : tide_fail(err, TIDE_INVALID, "an item of the inbox has no session");
        rows->at[i].question = take_question(&answer->arena, json_get(one, STR("question")));
        rows->at[i].since_ms = time_of(&answer->arena, one, "since");
    }
    rows->total = json_get_int(v, STR("total"), (int64_t)rows->n);
    answer->view = rows;
    return TIDE_OK;
}

/* ---- one session ---- */

static enum tide_code take_entries(struct arena *a, const struct json *v, struct talk_view *ret, struct tide_err *err)
{
    const struct json *one = list_of(v, "entries", &ret->n);

    ret->at = arena_zero(a, (ret->n + 1) * sizeof *ret->at);
    ret->before = json_get_int(v, STR("entries_before"), 0);
    for (size_t i = 0; one; one = one->next, i++) {
        ret->at[i] = (struct transcript_entry){.name = "", .text = "", .args = "", .by = "", .node = ""};
        if (shape_read(a, &shape_transcript_entry, one, &ret->at[i], err))
            return err->code;
    }
    return TIDE_OK;
}

static enum tide_code view_talk(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct talk_view *talk = arena_zero(&answer->arena, sizeof *talk);

    answer->view = talk;
    return take_entries(&answer->arena, v, talk, err);
}

static enum tide_code view_page(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct page_view *page = arena_zero(&answer->arena, sizeof *page);
    const struct json *session = json_get(v, STR("session")), *one = list_of(v, "queue", &page->n_queue);

    answer->view = page;
    if (!session)
        return tide_fail(err, TIDE_INVALID, "the page has no session");
    page->queue = arena_zero(&answer->arena, (page->n_queue + 1) * sizeof *page->queue);
    for (size_t i = 0; one; one = one->next, i++)
        page->queue[i] = text_or(&answer->arena, one, "content", "…");
    page->question = take_question(&answer->arena, json_get(v, STR("question")));
    return shape_read(&answer->arena, &shape_session_detail, session, &page->detail, err)
               ? err->code
               : take_entries(&answer->arena, v, &page->talk, err);
}

/* ---- its log and its checkpoints ---- */

/* {"seq":…,"ts":…,"kind":…,fields…}: the fields alone. */
static struct str fields_of(struct arena *a, const struct json *v)
{
    struct buf body = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&body);
    struct str text;

    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next)
        if (!json_key_eq(m, STR("seq")) && !json_key_eq(m, STR("ts")) && !json_key_eq(m, STR("kind")))
            json_out_kraw(&o, json_key_text(a, m), json_source(m));
    json_out_end(&o, '}');
    text = arena_dup(a, buf_view(&body));
    buf_done(&body);
    return text;
}

static enum tide_code view_log(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct log_view *log = arena_zero(&answer->arena, sizeof *log);
    struct arena *a = &answer->arena;
    const struct json *one = list_of(v, "events", &log->n);

    (void)err;
    log->at = arena_zero(a, (log->n + 1) * sizeof *log->at);
    for (size_t i = 0; one; one = one->next, i++)
        log->at[i] = (struct event_view){.seq = json_get_int(one, STR("seq"), 0),
                                         .ts_ms = time_of(a, one, "ts"),
                                         .kind = text_or(a, one, "kind", ""),
                                         .json = fields_of(a, one)};
    log->first_seq = json_get_int(v, STR("first_seq"), 0);
    log->last_seq = json_get_int(v, STR("last_seq"), log->n ? log->at[log->n - 1].seq : 0);
    answer->view = log;
    return TIDE_OK;
}

static enum tide_code view_checkpoints(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct checkpoints_view *list = arena_zero(&answer->arena, sizeof *list);
    const struct json *one = list_of(v, "checkpoints", &list->n);

    list->at = arena_zero(&answer->arena, (list->n + 1) * sizeof *list->at);
    for (size_t i = 0; one; one = one->next, i++)
        if (shape_read(&answer->arena, &shape_checkpoint, one, &list->at[i], err))
            return err->code;
    answer->view = list;
    return TIDE_OK;
}

/* ---- its life ---- */

static const char *word_of_item(struct arena *a, const struct json *v)
{
    const char *effect = text_of(a, v, "effect");

    return effect ? effect : text_or(a, v, "kind", "");
}

static void take_item(struct arena *a, const struct json *v, struct timeline_view *t)
{
    struct item_view *item = &t->at[t->n++];

    *item = (struct item_view){
        .type = text_or(a, v, "type", ""),
        .name = text_or(a, v, "name", ""),
        .word = word_of_item(a, v),
        .outcome = text_or(a, v, "outcome", ""),
        .note = text_or(a, v, "note", ""),
        .seq = json_get_int(v, STR("seq"), 0),
        .start_ms = time_of(a, v, "started_at"),
        .end_ms = time_of(a, v, "ended_at"),
        .attempts = json_get_int(v, STR("attempts"), 1),
    };
}

static void take_points(struct arena *a, const struct json *v, struct item_view *run)
{
    const struct json *one = list_of(v, "points", &run->n_points);

    run->points = arena_zero(a, (run->n_points + 1) * sizeof *run->points);
    for (size_t i = 0; one; one = one->next, i++)
        run->points[i] =
            (struct point_view){text_or(a, one, "kind", ""), json_get_int(one, STR("seq"), 0), time_of(a, one, "at")};
}

static void take_lane(struct arena *a, const struct json *v, struct timeline_view *t)
{
    int64_t number = json_get_int(v, STR("number"), 0), kept = json_get_int(v, STR("kept"), 0);
    const char *program = text_or(a, v, "program", ""), *reason = text_of(a, v, "reason"),
               *error = text_of(a, v, "error");
    const struct json *items = json_get(v, STR("items"));

    t->at[t->n++] = (struct item_view){
        .is_run = true,
        .type = "run",
        .name = number ? arena_printf(a, "run %lld%s%s", (long long)number, *program ? "  " : "", program)
                       : "before the first run",
        .word = "",
        .outcome = text_or(a, v, "outcome", ""),
        .note = error    ? error
                : reason ? reason
                : kept   ? arena_printf(a, "%lld finished before: not run again", (long long)kept)
                         : "",
        .seq = json_get_int(v, STR("first_seq"), 0),
        .start_ms = time_of(a, v, "started_at"),
        .end_ms = time_of(a, v, "ended_at"),
    };
    take_points(a, v, &t->at[t->n - 1]);
    for (const struct json *one = items ? items->first : NULL; one; one = one->next)
        take_item(a, one, t);
    t->omitted += json_get_int(v, STR("omitted_items"), 0);
}

static enum tide_code view_timeline(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct timeline_view *t = arena_zero(&answer->arena, sizeof *t);
    size_t n, room = 0;
    const struct json *lanes = list_of(v, "runs", &n);

    (void)err;
    for (const struct json *one = lanes; one; one = one->next) {
        const struct json *items = json_get(one, STR("items"));

        room += 1 + (items ? items->count : 0);
    }
    t->at = arena_zero(&answer->arena, (room + 1) * sizeof *t->at);
    for (; lanes; lanes = lanes->next)
        take_lane(&answer->arena, lanes, t);
    for (size_t i = 0; i < t->n; i++) {
        int64_t end = t->at[i].end_ms ? t->at[i].end_ms : t->at[i].start_ms;

        if (t->at[i].start_ms && (!t->from_ms || t->at[i].start_ms < t->from_ms))
            t->from_ms = t->at[i].start_ms;
        t->to_ms = end > t->to_ms ? end : t->to_ms;
    }
    t->partial = json_get_bool(v, STR("partial"), false);
    answer->view = t;
    return TIDE_OK;
}

/* ---- its graph ---- */

static const char *next_of(struct arena *a, const struct json *v, const char *id)
{
    const struct json *edges = json_get(v, STR("edges"));
    const char *next = "";

    for (const struct json *one = edges ? edges->first : NULL; one; one = one->next)
        if (str_eq(json_get_text(a, one, STR("from")), str_from(id)))
            next = arena_printf(a, "%s%s%s%s", next, *next ? ", " : "", text_or(a, one, "to", ""),
                                json_get_int(one, STR("taken"), 0) ? "" : "?");
    return next;
}

static enum tide_code view_graph(struct answer *answer, const struct json *v, struct tide_err *err)
{
    struct nodes_view *g = arena_zero(&answer->arena, sizeof *g);
    struct arena *a = &answer->arena;
    size_t n;
    const struct json *one = list_of(v, "nodes", &g->n), *step = list_of(v, "path", &n);

    (void)err;
    g->at = arena_zero(a, (g->n + 1) * sizeof *g->at);
    for (size_t i = 0; one; one = one->next, i++) {
        struct node_view *node = &g->at[i];

        *node = (struct node_view){.id = text_or(a, one, "id", ""),
                                   .state = text_or(a, one, "state", "none"),
                                   .error = text_or(a, one, "error", ""),
                                   .visits = json_get_int(one, STR("visits"), 0),
                                   .attempts = json_get_int(one, STR("attempts"), 0),
                                   .ms = json_get_int(one, STR("ms"), 0),
                                   .seq = json_get_int(one, STR("seq"), 0),
                                   .started_ms = time_of(a, one, "started_at")};
        node->next = next_of(a, v, node->id);
    }
    for (g->path = ""; step; step = step->next)
        g->path = arena_printf(a, "%s%s%s", g->path, *g->path ? " → " : "", text_or(a, step, "node", ""));
    answer->view = g;
    return TIDE_OK;
}

/* ---- all of them ---- */

static enum tide_code (*const makers[ASK_KINDS])(struct answer *, const struct json *, struct tide_err *) = {
    [ASK_SESSIONS] = view_sessions,
    [ASK_INBOX] = view_inbox,
    [ASK_PAGE] = view_page,
    [ASK_TALK] = view_talk,
    [ASK_TIMELINE] = view_timeline,
    [ASK_LOG] = view_log,
    [ASK_CHECKPOINTS] = view_checkpoints,
    [ASK_GRAPH] = view_graph,
};

enum tide_code view_make(struct answer *answer, struct tide_err *err)
{
    struct json *v = NULL;

    if (!makers[answer->ask.what])
        return TIDE_OK;
    if (!json_parse(&answer->arena, answer->json, &limits, &v, NULL, err) && !makers[answer->ask.what](answer, v, err))
        return TIDE_OK;
    err->code = TIDE_IO;
    return tide_wrap(err, "the answer is of another version");
}
