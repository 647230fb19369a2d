/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the log to entries. Whether an entry still counts the spans of the session's content say: what a rollback has cut off is in none
 * of them.
 */
#include "engine/transcript.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/yes_no.h"
#include "engine/session_words.h"
#include "session/session.h"
#include "store/store.h"

#define FORKS_MAX 256 /* that are named */

struct forked {
    char id[TIDE_ID_SIZE];
    int64_t at;
    bool told;
};

/* A call or a step that has begun. */
struct open_call {
    char *name, *args, *node;
    int64_t seq, ts_ms, turn;
    bool step, unknown, told;
};

struct reading {
    const struct tide_session_info *info;
    const atomic_int *stop;
    transcript_fn *fn;
    void *arg;
    struct transcript_window *window; /* NULL: all of it */
    int64_t last;                     /* of the log, as it was when the reading began */
    int64_t at;                       /* the event that is being written */
    bool ended;
    struct arena scratch;
    struct content content; /* its spans alone */
    struct forked forks[FORKS_MAX];
    size_t n_forks;
    struct map calls; /* id -> struct open_call * */
    int64_t wait_since;
    bool own; /* the fork point has been written */
};

struct told { /* an event that is being written */
    struct reading *r;
    const struct tide_event *ev;
    const struct json *body;
};

const char *transcript_type_word(enum transcript_type type)
{
    static const char *const words[TRANSCRIPT_TYPES] = {"user",   "assistant", "tool",     "node", "question",
                                                        "answer", "run",       "rollback", "fork", "forked"};

    return words[type];
}

const char *transcript_outcome_word(enum transcript_outcome outcome)
{
    static const char *const words[] = {"",        "ok",        "failed",    "unknown",    "no_result",
                                        "started", "continued", "cancelled", "interrupted"};

    return words[outcome];
}

/* ---- writing
 * ------------------------------------------------------------------------------------------------------ */

/* Whether an event is part of the content as of the end. What came since the reading began is. */
static bool is_content(const struct reading *r, int64_t seq)
{
    return seq > r->last || content_has(&r->content, seq);
}

static bool is_outside(const struct reading *r)
{
    return r->window && (r->at < r->window->from || r->at > r->window->to);
}

static void hand_out(struct reading *r, struct transcript_entry *e)
{
    const char **const texts[] = {&e->name, &e->text, &e->args, &e->by, &e->node};

    if (is_outside(r))
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    e->at_seq = r->at;
    e->inherited = e->seq < r->info->first_seq && r->info->parent_id;
    e->cut = e->type != TRANSCRIPT_ROLLBACK && e->type != TRANSCRIPT_FORKED && !is_content(r, e->seq);
    r->ended = r->ended || r->fn(r->arg, e) != 0;
}

static const char *text_of(const struct told *f, const char *key)
{
    return arena_dup(&f->r->scratch, json_get_text(&f->r->scratch, f->body, str_from(key))).ptr;
}

/* "node", or "node#2" of its second visit; "": of no graph. */
static const char *node_of(const struct told *f)
{
    int64_t visit = json_get_int(f->body, STR("visit"), 1);
    const char *node = text_of(f, "node");

    return *node && visit > 1 ? arena_printf(&f->r->scratch, "%s#%" PRId64, node, visit) : node;
}

static struct transcript_entry entry_of(const struct told *f, enum transcript_type type)
{
    return (struct transcript_entry){.type = type,
                                     .seq = f->ev->seq,
                                     .ts_ms = f->ev->ts_ms,
                                     .turn = json_get_int(f->body, STR("turn"), 0),
                                     .node = node_of(f)};
}

/* ---- content ------------------------------------------------------------------------------------------------------ */

/* A text; of a list its texts, and the kind of what is none; else JSON. */
static void put_content(const struct told *f, struct buf *out, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        return;
    if (v->type == JSON_STRING) {
        buf_add_str(out, json_text(&f->r->scratch, v));
    } else if (v->type == JSON_ARRAY) {
        for (const struct json *part = v->first; part; part = part->next) {
            const struct json *text = part->type == JSON_STRING ? part : json_get(part, STR("text"));
            struct str kind = json_get_text(&f->r->scratch, part, STR("type"));

            if (out->len)
                buf_add_char(out, '\n');
            if (text && text->type == JSON_STRING)
                buf_add_str(out, json_text(&f->r->scratch, text));
            else
                buf_addf(out, "[%.*s]", STR_ARG(kind.len ? kind : STR("data")));
        }
    } else {
        buf_add_str(out, json_source(v));
    }
}

static const char *content_of(const struct told *f, const char *key)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);

    put_content(f, &text, json_get(f->body, str_from(key)));
    return arena_dup(&f->r->scratch, buf_view(&text)).ptr;
}

static const char *error_of(const struct told *f)
{
    const struct json *error = json_get(f->body, STR("error")), *message = json_get(error, STR("message"));
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);

    put_content(f, &text, message ? message : error);
    return arena_dup(&f->r->scratch, buf_view(&text)).ptr;
}

/* ---- calls and steps ---------------------------------------------------------------------------------------------- */

static void call_free(void *arg)
{
    struct open_call *c = arg;

    if (!c)
        return;
    free(c->name);
    free(c->args);
    free(c->node);
    free(c);
}

static struct open_call *call_new(const struct told *f, struct str name, struct str args)
{
    struct open_call *c = mem_zero(sizeof *c);

    c->name = mem_dup(name);
    c->args = mem_dup(args);
    c->node = mem_dup(str_from(node_of(f)));
    c->seq = f->ev->seq;
    c->ts_ms = f->ev->ts_ms;
    c->turn = json_get_int(f->body, STR("turn"), 0);
    return c;
}

static struct open_call *call_open(const struct told *f, struct str id, struct str name, struct str args)
{
    struct open_call *c = call_new(f, name, args);

    call_free(map_put(&f->r->calls, id, c));
    return c;
}

static void tell_call(struct reading *r, const struct open_call *c, int64_t seq, int64_t ts_ms,
                      enum transcript_outcome outcome, const char *text)
{
    struct transcript_entry e = {.type = TRANSCRIPT_TOOL,
                                 .outcome = outcome,
                                 .seq = seq,
                                 .ts_ms = ts_ms,
                                 .turn = c->turn,
                                 .name = c->name,
                                 .args = c->args,
                                 .node = c->node,
                                 .text = text};

    hand_out(r, &e);
}

/* It may begin before the part that shows its end, which then does not know it. */
static bool is_apart(const struct reading *r, const struct open_call *c)
{
    return r->window && r->at - c->seq > TRANSCRIPT_APART;
}

/* NULL: it is not known. */
static struct open_call *find_call(struct reading *r, struct str id)
{
    struct open_call *c = map_get(&r->calls, id);

    if (r->window && !c)
        r->window->misses |= r->window->read_from > 1;
    return c && is_apart(r, c) ? NULL : c;
}

/* Those that have no result, in any order; each once. */
static void tell_open(struct reading *r, bool steps)
{
    for (struct map_entry *e = map_next(&r->calls, NULL); e; e = map_next(&r->calls, e)) {
        struct open_call *c = e->value;

        if (c->told || (steps && (!c->step || is_apart(r, c))))
            continue;
        c->told = true;
        tell_call(r, c, c->seq, c->ts_ms, c->unknown ? TRANSCRIPT_UNKNOWN : TRANSCRIPT_CUT, "");
    }
}

static void on_user(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_USER);

    e.text = content_of(f, "content");
    e.by = text_of(f, "hook");
    hand_out(f->r, &e);
}

static void on_assistant(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_ASSISTANT);
    const struct json *calls = json_get(f->body, STR("tool_calls"));
    struct arena *a = &f->r->scratch;

    e.text = content_of(f, "content");
    if (e.text[0])
        hand_out(f->r, &e);
    for (const struct json *c = calls && calls->type == JSON_ARRAY ? calls->first : NULL; c; c = c->next) {
        const struct json *args = json_get(c, STR("args"));

        call_open(f, json_get_text(a, c, STR("id")), json_get_text(a, c, STR("name")),
                  args ? json_source(args) : STR(""));
    }
}

static void on_tool_message(const struct told *f)
{
    struct str id = json_get_text(&f->r->scratch, f->body, STR("tool_call_id"));
    struct open_call *c = find_call(f->r, id);
    bool failed = json_get_bool(f->body, STR("is_error"), false);

    if (c)
        map_remove(&f->r->calls, id);
    else /* of a log whose calls are not known */
        c = call_new(f, json_get_text(&f->r->scratch, f->body, STR("tool_name")), STR(""));
    tell_call(f->r, c, f->ev->seq, f->ev->ts_ms,
              c->unknown ? TRANSCRIPT_UNKNOWN
              : failed   ? TRANSCRIPT_FAILED
                         : TRANSCRIPT_OK,
              content_of(f, "content"));
    call_free(c);
}

/* Steps of nodes are shown as nodes, calls of a model by their message. */
static void on_tool_started(const struct told *f)
{
    struct str id = json_get_text(&f->r->scratch, f->body, STR("call_id"));
    const struct open_call *known = map_get(&f->r->calls, id);

    if (str_starts(id, STR("node:")) || json_get_int(f->body, STR("turn"), 0) || (known && !known->step))
        return;
    call_open(f, id, json_get_text(&f->r->scratch, f->body, STR("tool")), STR(""))->step = true;
}

static void tell_step(const struct told *f, const struct open_call *c)
{
    bool ok = strcmp(f->ev->kind, "tool.completed") == 0, unknown = strcmp(f->ev->kind, "tool.unknown") == 0;
    const struct json *result = json_get(f->body, STR("result"));
    const char *settled = text_of(f, "settled"), *text;

    text = arena_dup(&f->r->scratch, json_get_text(&f->r->scratch, result, STR("output"))).ptr;
    if (!ok)
        text = error_of(f);
    if (*settled)
        text = arena_printf(&f->r->scratch, "%s%s%s", settled, *text ? "\n" : "", text);
    tell_call(f->r, c, f->ev->seq, f->ev->ts_ms,
              ok        ? TRANSCRIPT_OK
              : unknown ? TRANSCRIPT_UNKNOWN
                        : TRANSCRIPT_FAILED,
              text);
}

/* Of a part, whose step began before it: its end says what it was. What has a turn is a call of a model. */
static void tell_unknown_step(const struct told *f, struct str id)
{
    struct open_call *c;

    if (!f->r->window || str_starts(id, STR("node:")) || json_get_int(f->body, STR("turn"), 0))
        return;
    c = call_new(f, json_get_text(&f->r->scratch, f->body, STR("tool")), STR(""));
    tell_step(f, c);
    call_free(c);
}

static void on_tool_ended(const struct told *f)
{
    struct str id = json_get_text(&f->r->scratch, f->body, STR("call_id"));
    struct open_call *c = find_call(f->r, id);
    bool unknown = strcmp(f->ev->kind, "tool.unknown") == 0;

    if (!c)
        tell_unknown_step(f, id);
    else if (!c->step)
        c->unknown = unknown; /* the message that follows says the rest */
    if (!c || !c->step)
        return;
    tell_step(f, c);
    if (json_get_text(&f->r->scratch, f->body, STR("retry_at")).len == 0 && !unknown)
        call_free(map_remove(&f->r->calls, id));
    else
        c->told = true; /* it may come again */
}

/* ---- nodes, waits, runs ------------------------------------------------------------------------------------------- */

static void on_node(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_NODE);
    bool failed = strcmp(f->ev->kind, "node.failed") == 0;

    e.name = e.node;
    e.outcome = failed                                       ? TRANSCRIPT_FAILED
                : strcmp(f->ev->kind, "node.completed") == 0 ? TRANSCRIPT_OK
                                                             : TRANSCRIPT_STARTED;
    e.text = failed ? error_of(f) : "";
    hand_out(f->r, &e);
}

/* A token that is minted anew makes the same wait begin once more. */
static void on_waiting(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_QUESTION);
    int64_t since = json_get_int(f->body, STR("since_seq"), f->ev->seq);

    if (since == f->r->wait_since || (f->r->window && since < f->ev->seq && since < f->r->window->read_from))
        return;
    f->r->wait_since = since;
    e.name = text_of(f, "wait_name");
    e.text = text_of(f, "question");
    e.by = text_of(f, "wait_kind");
    hand_out(f->r, &e);
}

static void on_resumed(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_ANSWER);

    e.text = arena_dup(&f->r->scratch, yes_no_shown(&f->r->scratch, json_get(f->body, STR("input")))).ptr;
    e.by = text_of(f, "by");
    hand_out(f->r, &e);
}

static void on_run_started(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_RUN);

    e.outcome = TRANSCRIPT_CONTINUED;
    if (json_get(f->body, STR("resumed_from")))
        hand_out(f->r, &e);
}

static void on_run_ended(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_RUN);
    const char *reason = text_of(f, "reason");

    if (f->r->window)
        f->r->window->misses |= f->r->window->read_from > 1;
    tell_open(f->r, true);
    e.outcome = strcmp(f->ev->kind, "run.failed") == 0      ? TRANSCRIPT_FAILED
                : strcmp(f->ev->kind, "run.cancelled") == 0 ? TRANSCRIPT_CANCELLED
                                                            : TRANSCRIPT_INTERRUPTED;
    e.text = error_of(f);
    if (!*e.text)
        e.text = reason_words(reason);
    hand_out(f->r, &e);
}

static void on_rollback(const struct told *f)
{
    struct transcript_entry e = entry_of(f, TRANSCRIPT_ROLLBACK);

    e.to_seq = json_get_int(f->body, STR("to_seq"), 0);
    e.text = text_of(f, "reason");
    hand_out(f->r, &e);
}

static const struct {
    const char *kind;
    void (*tell)(const struct told *f);
} kinds[] = {
    {"message.user", on_user},
    {"message.assistant", on_assistant},
    {"message.tool", on_tool_message},
    {"tool.started", on_tool_started},
    {"tool.completed", on_tool_ended},
    {"tool.failed", on_tool_ended},
    {"tool.unknown", on_tool_ended},
    {"node.started", on_node},
    {"node.completed", on_node},
    {"node.failed", on_node},
    {"run.waiting", on_waiting},
    {"run.resumed", on_resumed},
    {"run.started", on_run_started},
    {"run.failed", on_run_ended},
    {"run.cancelled", on_run_ended},
    {"run.interrupted", on_run_ended},
    {"session.rolled_back", on_rollback},
};

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static void tell_fork_point(struct reading *r, const struct tide_event *ev)
{
    struct transcript_entry e = {.type = TRANSCRIPT_FORK,
                                 .seq = ev->seq,
                                 .ts_ms = ev->ts_ms,
                                 .to_seq = r->info->parent_seq,
                                 .name = r->info->parent_id};

    r->own = true;
    if (r->info->parent_id)
        hand_out(r, &e);
}

/* Those that were forked off before this event; `seq` INT64_MAX: all that are left. */
static void tell_forks(struct reading *r, int64_t seq)
{
    for (size_t i = 0; i < r->n_forks; i++) {
        struct transcript_entry e = {.type = TRANSCRIPT_FORKED, .seq = r->forks[i].at, .name = r->forks[i].id};

        if (r->forks[i].told || r->forks[i].at >= seq)
            continue;
        r->forks[i].told = true;
        e.to_seq = e.seq;
        hand_out(r, &e);
    }
}

static bool is_stopped(const struct reading *r)
{
    return r->ended || (r->stop && *r->stop);
}

/* Something of the window has no result yet. */
static bool has_pending(const struct reading *r)
{
    for (struct map_entry *e = map_next(&r->calls, NULL); e; e = map_next(&r->calls, e)) {
        const struct open_call *c = e->value;

        if (!c->told && c->seq >= r->window->from && c->seq <= r->window->to)
            return true;
    }
    return false;
}

static int on_event(void *arg, const struct tide_event *ev)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct reading *r = arg;
    struct json *body = NULL;

    if (r->window && ev->seq > r->window->to && !has_pending(r))
        return 1;
    r->at = ev->seq;
    if (r->window)
        r->window->looked_at++;
    tell_forks(r, ev->seq);
    if (!r->own && ev->seq >= r->info->first_seq)
        tell_fork_point(r, ev);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !is_stopped(r); i++) {
        if (strcmp(kinds[i].kind, ev->kind) != 0)
            continue;
        arena_reset(&r->scratch);
        if (!json_parse(&r->scratch, (struct str){ev->body, ev->body_len}, &limits, &body, NULL, NULL))
            kinds[i].tell(&(struct told){r, ev, body});
        break;
    }
    return is_stopped(r);
}

static int take_fork(void *arg, const struct store_entry *entry)
{
    struct reading *r = arg;
    struct forked *f = &r->forks[r->n_forks++];

    snprintf(f->id, sizeof f->id, "%s", entry->head->id);
    f->at = entry->head->parent_seq;
    f->told = r->window && f->at + 1 < r->window->read_from;
    return r->n_forks == FORKS_MAX;
}

/* What began in the window and has no result: later entries do not show it. */
static void tell_rest(struct reading *r)
{
    if (!r->window) {
        tell_open(r, false);
        tell_forks(r, INT64_MAX);
        return;
    }
    r->at = r->window->to;
    for (struct map_entry *e = map_next(&r->calls, NULL); e; e = map_next(&r->calls, e)) {
        struct open_call *c = e->value;

        c->told |= c->seq < r->window->from || c->seq > r->window->to;
    }
    tell_open(r, false);
    if (r->window->to >= r->last)
        tell_forks(r, INT64_MAX);
}

/* A copy: the callback may read the session. */
static void take_spans(struct reading *r, const tide_session *session)
{
    const struct content *c = &session->state->content;

    r->last = session->state->seq;
    r->content.span_count = c->span_count;
    r->content.spans = mem_array(c->span_count + 1, sizeof *c->spans);
    if (c->span_count)
        memcpy(r->content.spans, c->spans, c->span_count * sizeof *c->spans);
}

static enum tide_code read_entries(struct reading *r, tide_session *session, struct tide_err *err)
{
    const struct transcript_window *w = r->window;
    enum tide_code code = tide_session_get_info(session, &r->info, err);

    if (code)
        return code;
    take_spans(r, session);
    r->own = w && w->read_from > r->info->first_seq;
    code = store_list(session->store, &session->head, take_fork, r, err);
    if (!code)
        code =
            tide_session_read(session, TIDE_READ_INHERITED, w ? w->read_from : 1, w ? w->read_to : 0, on_event, r, err);
    if (!code && !is_stopped(r))
        tell_rest(r);
    if (!code && r->stop && *r->stop)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    map_done(&r->calls, call_free);
    free(r->content.spans);
    arena_done(&r->scratch);
    return code;
}

enum tide_code transcript_read(tide_session *session, const atomic_int *stop, transcript_fn *fn, void *arg,
                               struct tide_err *err)
{
    AUTO(mem_freep) struct reading *r = mem_zero(sizeof *r);

    r->stop = stop;
    r->fn = fn;
    r->arg = arg;
    return read_entries(r, session, err);
}

enum tide_code transcript_read_window(tide_session *session, struct transcript_window *window, transcript_fn *fn,
                                      void *arg, struct tide_err *err)
{
    AUTO(mem_freep) struct reading *r = mem_zero(sizeof *r);

    window->looked_at = 0;
    window->misses = false;
    r->window = window;
    r->fn = fn;
    r->arg = arg;
    return read_entries(r, session, err);
}
