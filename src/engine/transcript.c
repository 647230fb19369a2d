/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the log to entries. Rollbacks are read first, so that each entry can say whether it still counts: an event is part
 * of the content as of P if no rollback lies between, else if it was part of it at the point that the last rollback went
 * back to.
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

struct rollback {
    int64_t at, to;
};

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
    tide_session *session;
    const struct tide_session_info *info;
    const atomic_int *stop;
    transcript_fn *fn;
    void *arg;
    bool ended;
    struct arena scratch;
    struct rollback *rollbacks;
    size_t n_rollbacks, cap_rollbacks;
    struct forked forks[FORKS_MAX];
    size_t n_forks;
    struct map calls; /* id -> struct open_call * */
    int64_t wait_since;
    bool own; /* the fork point has been told */
};

struct told { /* an event that is being told */
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

/* ---- telling ------------------------------------------------------------------------------------------------------ */

/* Whether an event is part of the content as of the end. */
static bool counts(const struct reading *r, int64_t seq)
{
    int64_t as_of = INT64_MAX;

    for (size_t i = r->n_rollbacks; i-- > 0;) {
        const struct rollback *b = &r->rollbacks[i];

        if (b->at > as_of)
            continue; /* itself cut off by a later one */
        if (seq > b->at)
            break;
        as_of = b->to;
    }
    return seq <= as_of;
}

static void hand_out(struct reading *r, struct transcript_entry *e)
{
    const char **const texts[] = {&e->name, &e->text, &e->args, &e->by, &e->node};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    e->inherited = e->seq < r->info->first_seq && r->info->parent_id;
    e->cut = e->type != TRANSCRIPT_ROLLBACK && e->type != TRANSCRIPT_FORKED && !counts(r, e->seq);
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

static struct open_call *call_open(const struct told *f, struct str id, struct str name, struct str args)
{
    struct open_call *c = mem_zero(sizeof *c);

    c->name = mem_dup(name);
    c->args = mem_dup(args);
    c->node = mem_dup(str_from(node_of(f)));
    c->seq = f->ev->seq;
    c->ts_ms = f->ev->ts_ms;
    c->turn = json_get_int(f->body, STR("turn"), 0);
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

/* Those that have no result, in any order; each once. */
static void tell_open(struct reading *r, bool steps)
{
    for (struct map_entry *e = map_next(&r->calls, NULL); e; e = map_next(&r->calls, e)) {
        struct open_call *c = e->value;

        if (c->told || (steps && !c->step))
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
    struct open_call *c = map_remove(&f->r->calls, id);
    bool failed = json_get_bool(f->body, STR("is_error"), false);

    if (!c) /* of a log whose calls are not known */
        c = call_open(f, id, json_get_text(&f->r->scratch, f->body, STR("tool_name")), STR("")),
        map_remove(&f->r->calls, id);
    tell_call(f->r, c, f->ev->seq, f->ev->ts_ms,
              c->unknown ? TRANSCRIPT_UNKNOWN
              : failed   ? TRANSCRIPT_FAILED
                         : TRANSCRIPT_OK,
              content_of(f, "content"));
    call_free(c);
}

/* Steps of nodes are told as nodes, calls of a model by their message. */
static void on_tool_started(const struct told *f)
{
    struct str id = json_get_text(&f->r->scratch, f->body, STR("call_id"));
    const struct open_call *known = map_get(&f->r->calls, id);

    if (str_starts(id, STR("node:")) || json_get_int(f->body, STR("turn"), 0) || (known && !known->step))
        return;
    call_open(f, id, json_get_text(&f->r->scratch, f->body, STR("tool")), STR(""))->step = true;
}

static void on_tool_ended(const struct told *f)
{
    struct str id = json_get_text(&f->r->scratch, f->body, STR("call_id"));
    struct open_call *c = map_get(&f->r->calls, id);
    bool ok = strcmp(f->ev->kind, "tool.completed") == 0, unknown = strcmp(f->ev->kind, "tool.unknown") == 0;
    const struct json *result = json_get(f->body, STR("result"));
    const char *settled = text_of(f, "settled"), *text;

    if (c && !c->step)
        c->unknown = unknown; /* the message that follows says the rest */
    if (!c || !c->step)
        return;
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

    if (since == f->r->wait_since)
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

static int on_event(void *arg, const struct tide_event *ev)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct reading *r = arg;
    struct json *body = NULL;

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

static int find_rollback(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;
    struct json *body = NULL;

    if (strcmp(ev->kind, "session.rolled_back") != 0)
        return is_stopped(r);
    arena_reset(&r->scratch);
    if (json_parse(&r->scratch, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL))
        return is_stopped(r);
    MEM_ROOM(r->rollbacks, r->n_rollbacks, r->cap_rollbacks);
    r->rollbacks[r->n_rollbacks++] = (struct rollback){ev->seq, json_get_int(body, STR("to_seq"), 0)};
    return is_stopped(r);
}

static int take_fork(void *arg, const struct store_entry *entry)
{
    struct reading *r = arg;
    struct forked *f = &r->forks[r->n_forks++];

    snprintf(f->id, sizeof f->id, "%s", entry->head->id);
    f->at = entry->head->parent_seq;
    return r->n_forks == FORKS_MAX;
}

enum tide_code transcript_read(tide_session *session, const atomic_int *stop, transcript_fn *fn, void *arg,
                               struct tide_err *err)
{
    struct reading *r = mem_zero(sizeof *r);
    enum tide_code code = tide_session_get_info(session, &r->info, err);

    r->session = session;
    r->stop = stop;
    r->fn = fn;
    r->arg = arg;
    if (!code)
        code = store_list(session->store, &session->head, take_fork, r, err);
    if (!code)
        code = tide_session_read(session, TIDE_READ_INHERITED, 1, 0, find_rollback, r, err);
    if (!code)
        code = tide_session_read(session, TIDE_READ_INHERITED, 1, 0, on_event, r, err);
    if (!code && !is_stopped(r)) {
        tell_open(r, false);
        tell_forks(r, INT64_MAX);
    }
    if (!code && stop && *stop)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    map_done(&r->calls, call_free);
    free(r->rollbacks);
    arena_done(&r->scratch);
    free(r);
    return code;
}
