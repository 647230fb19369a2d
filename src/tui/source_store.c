/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store, through the engine. Reading opens a session, writes its shape and closes it: nothing is kept between two looks, so what somebody
 * else does to the store in between cannot confuse anything. What runs for a session gets a process of its own (server/program_process.h),
 * which outlives the screen.
 */
#include "tui/source_store.h"

#include <poll.h>
#include <unistd.h>

#include "engine/checkpoint_list.h"
#include "engine/graph_view.h"
#include "engine/inbox.h"
#include "engine/log_page.h"
#include "engine/rollback_preview.h"
#include "engine/session_next.h"
#include "engine/session_overview.h"
#include "engine/timeline.h"
#include "engine/transcript_page.h"
#include "server/program_process.h"
#include "tui/store_acts.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define PAGE_MAX ((size_t)16 << 20) /* of texts in it */
#define AGAIN_MS 500                /* a store that cannot be watched is looked at again so often */
#define AGAIN_MAX_MS 5000

struct source_store {
    struct source base;
    struct source_store_options opt;
};

/* One look: the shape that is written, and what of the wish cannot be given to the engine. */
struct look {
    struct source_store *s;
    const struct ask *ask;
    tide_session *session;
    struct json_out *o;
    struct arena *arena;
    struct tide_err *err;
    int64_t n;
    bool more;
    enum tide_code code; /* of what was written on the way */
};

/* Its whole id: one that begins so is another session. */
static enum tide_code open_session(struct look *l)
{
    if (tide_session_open(l->s->opt.store, l->ask->id, TIDE_SESSION_READ, &l->session, l->err))
        return l->err->code;
    return strcmp(tide_session_id(l->session), l->ask->id) == 0
               ? TIDE_OK
               : store_check_whole(l->s->opt.store, l->ask->id, l->err);
}

/* ---- lists ---- */

static int put_row(void *arg, const struct tide_session_info *info)
{
    struct look *l = arg;

    if (l->n == l->ask->limit) {
        l->more = true;
        return 1;
    }
    shape_put(l->o, &shape_session, &(struct session_row){*info, NULL});
    l->n++;
    return l->s->base.halt.is;
}

static enum tide_code get_sessions(struct look *l)
{
    const struct ask *ask = l->ask;
    int kind = ask->kind[0] ? tide_session_kind_from(ask->kind) : 0;
    const struct tide_list_filter filter = {.size = sizeof filter,
                                            .status = ask->status[0] ? ask->status : NULL,
                                            .task_id = ask->task_id[0] ? ask->task_id : NULL,
                                            .text = ask->text[0] ? ask->text : NULL,
                                            .kind = kind > 0 ? (enum tide_session_kind)kind : 0};
    enum tide_code code;

    json_out_begin(l->o, '{');
    json_out_key(l->o, STR("sessions"));
    json_out_begin(l->o, '[');
    code = session_list_next(l->s->opt.store, &filter, put_row, l, l->err);
    json_out_end(l->o, ']');
    if (l->more)
        json_out_kstr(l->o, STR("next_cursor"), STR("more"));
    json_out_end(l->o, '}');
    return code;
}

static void put_inbox(void *arg, const struct inbox *inbox)
{
    struct look *l = arg;

    shape_put(l->o, &shape_inbox, inbox);
}

static enum tide_code get_inbox(struct look *l)
{
    const struct inbox_request request = {.position = -1, .limit = l->ask->limit, .max_bytes = PAGE_MAX, .diff = true};

    return inbox_show(l->s->opt.store, &request, put_inbox, l, l->err);
}

/* ---- one session ---- */

static void put_overview(void *arg, const struct session_overview *overview)
{
    struct look *l = arg;

    shape_put(l->o, &shape_session_overview, overview);
    if (*overview->code)
        l->code = *overview->code;
}

static enum tide_code get_page(struct look *l)
{
    const struct overview_request request = {
        .position = -1, .limit = l->ask->limit, .max_bytes = PAGE_MAX, .no_task = true, .diff = true};

    if (open_session(l) || session_overview_show(l->s->opt.store, l->session, &request, put_overview, l, l->err))
        return l->err->code;
    return l->code;
}

static int put_entry(void *arg, const struct transcript_entry *e)
{
    const struct look *l = arg;

    shape_put(l->o, &shape_transcript_entry, e);
    return l->s->base.halt.is;
}

static enum tide_code get_talk(struct look *l)
{
    struct transcript_page page = {.before = l->ask->seq, .limit = l->ask->limit, .max_bytes = PAGE_MAX};
    enum tide_code code;

    if (open_session(l) || transcript_page_find(l->session, &page, l->err))
        return l->err->code;
    json_out_begin(l->o, '{');
    json_out_key(l->o, STR("entries"));
    json_out_begin(l->o, '[');
    code = transcript_page_read(l->session, &page, put_entry, l, l->err);
    json_out_end(l->o, ']');
    json_out_kint(l->o, STR("entries_before"), page.entries_before);
    json_out_end(l->o, '}');
    return code;
}

/* ---- its log, its state ---- */

static enum tide_code put_event(void *arg, const struct tide_event *ev, struct tide_err *err)
{
    const struct look *l = arg;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    if (tide_event_write_json(ev, &text, err))
        return err->code;
    json_out_raw(l->o, (struct str){text.ptr, text.len});
    return TIDE_OK;
}

/* Kinds that are separated by commas, as a list; NULL: all. */
static const char *const *kinds_of(struct look *l)
{
    const char *text = l->ask->text;
    const char **list = text[0] ? arena_zero(l->arena, (strlen(text) + 2) * sizeof *list) : NULL;
    size_t n = 0;

    for (; text[0]; text += strcspn(text, ", ") + (text[strcspn(text, ", ")] != '\0'))
        if (strcspn(text, ", "))
            list[n++] = arena_printf(l->arena, "%.*s", (int)strcspn(text, ", "), text);
    return list;
}

static enum tide_code get_log(struct look *l)
{
    struct log_page page = {.after = l->ask->after,
                            .before = l->ask->after >= 0 ? 0
                                      : l->ask->seq      ? l->ask->seq
                                                         : INT64_MAX,
                            .limit = l->ask->limit,
                            .max_bytes = PAGE_MAX,
                            .kinds = kinds_of(l)};
    enum tide_code code;

    page.after = page.after < 0 ? 0 : page.after;
    if (open_session(l))
        return l->err->code;
    json_out_begin(l->o, '{');
    json_out_key(l->o, STR("events"));
    json_out_begin(l->o, '[');
    code = log_page_read(l->session, &page, put_event, l, l->err);
    json_out_end(l->o, ']');
    json_out_kint(l->o, STR("first_seq"), page.first_seq);
    json_out_kint(l->o, STR("last_seq"), page.last_seq);
    json_out_end(l->o, '}');
    return code;
}

static enum tide_code get_checkpoints(struct look *l)
{
    const struct tide_checkpoint_filter filter = {.size = sizeof filter, .rolled_back = 1, .limit = l->ask->limit};
    struct checkpoint_list list = {.n = 0};
    enum tide_code code = store_check_whole(l->s->opt.store, l->ask->id, l->err);

    code = code ? code : checkpoint_list_read(l->s->opt.store, l->ask->id, &filter, &list, l->err);
    json_out_begin(l->o, '{');
    json_out_key(l->o, STR("checkpoints"));
    json_out_begin(l->o, '[');
    for (size_t i = 0; !code && i < list.n; i++)
        shape_put(l->o, &shape_checkpoint, &list.at[i]);
    json_out_end(l->o, ']');
    json_out_end(l->o, '}');
    checkpoint_list_done(&list);
    return code;
}

static enum tide_code get_state(struct look *l)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    if (open_session(l) || tide_session_get_state(l->session, l->ask->seq, &text, l->err))
        return l->err->code;
    json_out_raw(l->o, (struct str){text.ptr, text.len});
    return TIDE_OK;
}

static enum tide_code get_timeline(struct look *l)
{
    AUTO(timeline_done) struct timeline t = {.n_runs = 0};

    if (open_session(l) || timeline_read_part(l->session, 0, 0, &t, l->err))
        return l->err->code;
    shape_put(l->o, &shape_timeline, &t);
    return TIDE_OK;
}

static enum tide_code get_graph(struct look *l)
{
    struct graph_view *v;
    enum tide_code code = open_session(l);

    if (code)
        return code;
    v = mem_zero(sizeof *v);
    code = graph_view_read(l->session, l->ask->seq, v, l->err);
    if (!code)
        shape_put(l->o, &shape_graph_view, v);
    graph_view_done(v);
    free(v);
    return code;
}

static enum tide_code get_undone(struct look *l)
{
    AUTO(rollback_preview_done) struct rollback_preview preview = {.arena = ARENA_INIT};

    if (open_session(l) || rollback_preview_read(l->session, l->ask->seq, 0, &preview, l->err))
        return l->err->code;
    shape_put(l->o, &shape_rolled_back,
              &(struct command_result){.session_id = l->ask->id, .to_seq = l->ask->seq, .undone = &preview});
    return TIDE_OK;
}

static enum tide_code get_plan(struct look *l)
{
    return store_plan(l->s->opt.store, &l->s->opt, l->ask, l->o, l->err);
}

static enum tide_code (*const readers[ASK_KINDS])(struct look *l) = {
    [ASK_SESSIONS] = get_sessions, [ASK_INBOX] = get_inbox,
    [ASK_PAGE] = get_page,         [ASK_TALK] = get_talk,
    [ASK_TIMELINE] = get_timeline, [ASK_LOG] = get_log,
    [ASK_STATE] = get_state,       [ASK_CHECKPOINTS] = get_checkpoints,
    [ASK_GRAPH] = get_graph,       [ASK_PLAN] = get_plan,
    [ASK_UNDONE] = get_undone,
};

static bool is_trouble(enum tide_code code)
{
    return code == TIDE_IO || code == TIDE_BUSY || code == TIDE_UNKNOWN;
}

static enum tide_code get_answer(struct source *base, struct answer *answer, struct tide_err *err)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&out);
    struct look l = {
        .s = (struct source_store *)base, .ask = &answer->ask, .o = &o, .arena = &answer->arena, .err = err};
    enum tide_code code = readers[answer->ask.what](&l);

    if (!code && out.failed)
        code = tide_fail(err, TIDE_TOO_BIG, "this is too much for a screen");
    tide_session_close(l.session);
    if (!code)
        answer->json = arena_dup(&answer->arena, buf_view(&out));
    answer->lost = is_trouble(code);
    buf_done(&out);
    return code;
}

/* ---- following ---- */

/* Until it is stopped or the store is gone. */
static enum tide_code watch(struct source_store *s, tide_watch *watch, news_fn *fn, void *arg, struct tide_err *err)
{
    struct pollfd p[2] = {{.fd = s->base.halt.fd, .events = POLLIN}, {.fd = tide_watch_fd(watch), .events = POLLIN}};

    while (!s->base.halt.is) {
        int changed = 0;

        if (poll(p, 2, -1) < 0 || p[0].revents)
            continue;
        if (tide_watch_wait(watch, 0, &changed, err))
            return err->code;
        if (changed)
            fn(arg, &(struct news){.what = NEWS_CHANGED});
    }
    return TIDE_OK;
}

static void follow_sessions(struct source *base, news_fn *fn, void *arg)
{
    struct source_store *s = (struct source_store *)base;
    int pause = AGAIN_MS;

    while (!s->base.halt.is) {
        struct tide_err err = {0};
        tide_watch *w = NULL;

        if (!tide_watch_open(s->opt.store, &w, &err)) {
            fn(arg, &(struct news){.what = NEWS_BACK});
            pause = AGAIN_MS;
            (void)!watch(s, w, fn, arg, &err);
        }
        tide_watch_close(w);
        if (s->base.halt.is)
            return;
        fn(arg, &(struct news){.what = NEWS_LOST, .err = &err});
        if (halt_within(&s->base.halt, pause))
            return;
        pause = pause * 2 < AGAIN_MAX_MS ? pause * 2 : AGAIN_MAX_MS;
    }
}

/* ---- acting ---- */

static enum tide_code run_act(struct source *base, const struct act *what, struct acted *ret, struct tide_err *err)
{
    struct source_store *s = (struct source_store *)base;

    if (s->opt.read_only)
        return tide_fail(err, TIDE_READ_ONLY, "the store is open for reading alone");
    return store_act(s->opt.store, &s->opt, base->halt.fd, what, ret, err);
}

static void close_source(struct source *base)
{
    free(base);
}

static const struct source_ops ops = {get_answer, run_act, follow_sessions, NULL, close_source};

struct source *source_store_new(const struct source_store_options *opt)
{
    struct source_store *s = mem_zero(sizeof *s);

    s->base = (struct source){.ops = &ops, .name = opt->url};
    halt_init(&s->base.halt);
    s->opt = *opt;
    return &s->base;
}
