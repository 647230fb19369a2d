/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the log to lanes. Each kind that is drawn has a row in a table; all others are counted. Times on the axis never go
 * back although clocks do: order is seq.
 */
#include "engine/timeline_lanes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/timefmt.h"
#include "base/yes_no.h"
#include "engine/session_words.h"

/* One step of the session, whatever the number of its attempts. */
struct tl_step_count {
    int64_t begun, done;
    bool again;   /* cut, and run again later */
    bool settled; /* cut, and found out later whether it had happened */
    enum tl_outcome last;
};

struct fact {
    struct timeline *t;
    struct tl_run *run;
    const struct tide_event *ev;
    const struct json *body;
};

/* ---- small things ---------------------------------------------------------------------------------------------------- */

static struct str text_of(const struct fact *f, const char *key)
{
    return json_get_text(&f->t->scratch, f->body, str_from(key));
}

/* A text as it is, anything else as JSON. */
static struct str shown(const struct fact *f, const struct json *v)
{
    if (!v || v->type == JSON_NULL)
        return STR("");
    return v->type == JSON_STRING ? json_text(&f->t->scratch, v) : json_source(v);
}

static struct str error_of(const struct fact *f)
{
    const struct json *error = json_get(f->body, STR("error"));
    const struct json *message = json_get(error, STR("message"));

    return shown(f, message ? message : error);
}

/* ---- words ----------------------------------------------------------------------------------------------------------- */

const char *tl_outcome_word(const struct tl_item *item)
{
    static const char *const words[][TL_OUTCOMES] = {
        [TL_STEP] = {"running", "ran", "failed", "unknown", "cut", "settled"},
        [TL_WAIT] = {"waits", "answered", "", "", "over", ""},
        [TL_SLEEP] = {"asleep", "slept", "", "", "over", ""},
        [TL_NODE] = {"running", "done", "failed", "unknown", "cut", ""},
    };

    return item->again && item->outcome == TL_RAN ? "ran anew" : words[item->type][item->outcome];
}

const char *tl_end_word(enum tl_end end)
{
    static const char *const words[] = {"running", "gone",      "waiting",    "completed",
                                        "failed",  "cancelled", "interrupted"};

    return words[end];
}

const char *const tl_mark_words[TL_MARK_KINDS] = {
    [TL_CHECKPOINT] = "checkpoints", [TL_TOKEN] = "tokens", [TL_RESUME] = "resumes", [TL_MESSAGE] = "messages",
    [TL_MODEL] = "model calls",      [TL_ERROR] = "errors", [TL_INPUT] = "inputs",   [TL_ROLLBACK] = "rollbacks",
};

/* ---- steps ------------------------------------------------------------------------------------------------------------- */

/* "chain/name/2" is the second use of the name; the first goes without a number. */
static void step_name(const struct fact *f, struct tl_item *item)
{
    struct str call = text_of(f, "call_id"), tool = text_of(f, "tool"), use;
    size_t at = call.len;
    int64_t n = 0;

    while (at > 0 && call.ptr[at - 1] != '/')
        at--;
    use = (struct str){call.ptr + at, call.len - at};
    CUT(item->name, tool.len ? tool : call);
    if (tool.len && at > tool.len && str_to_int64(use, &n) && n > 1)
        snprintf(item->name + strlen(item->name), sizeof(item->name) - strlen(item->name), "#%" PRId64, n);
}

static struct tl_step_count *count_of(const struct fact *f)
{
    struct str call = text_of(f, "call_id");
    struct tl_step_count *c = map_get(&f->t->steps, call);

    if (!c && f->t->steps.live < TL_STEPS) {
        c = mem_zero(sizeof(*c));
        map_put(&f->t->steps, call, c);
    }
    return c;
}

static struct tl_item *step_find(const struct fact *f)
{
    uint64_t call = str_hash(text_of(f, "call_id"));

    for (size_t i = f->run->n_items; i-- > 0;)
        if (f->run->items[i].type == TL_STEP && f->run->items[i].call == call)
            return &f->run->items[i];
    return NULL;
}

/* Of a node that must happen once the ledger has a step, "node:NAME#VISIT": it is drawn as the node that it is. */
static struct str node_of_step(const struct fact *f)
{
    struct str call = text_of(f, "call_id");

    return str_starts(call, STR("node:")) ? (struct str){call.ptr + 5, call.len - 5} : STR("");
}

static struct tl_item *node_find(const struct fact *f, struct str name_and_visit)
{
    uint64_t node = str_hash(name_and_visit);

    for (size_t i = f->run->n_items; i-- > 0;)
        if (f->run->items[i].type == TL_NODE && f->run->items[i].call == node)
            return &f->run->items[i];
    return NULL;
}

static struct tl_item *step_add(const struct fact *f)
{
    struct tl_item *item = tl_item_add(f->t, f->run, TL_STEP, f->ev->ts_ms);

    item->call = str_hash(text_of(f, "call_id"));
    step_name(f, item);
    return item;
}

static void on_tool_started(const struct fact *f)
{
    struct str node = node_of_step(f), effect = text_of(f, "effect");
    struct tl_item *item = node.len ? node_find(f, node) : step_find(f);
    struct tl_step_count *c = count_of(f);

    if (!node.len) {
        if (!item || (item->outcome != TL_FAILED && item->outcome != TL_OPEN)) /* a retry continues with the same bar */
            item = step_add(f);
        item->outcome = TL_OPEN;
        item->end_ms = item->end_seq = 0;
        item->tries++;
        item->again = c && c->begun > item->tries - 1;
    }
    if (item)
        CUT(item->word, effect.len ? effect : STR("once"));
    if (c) {
        c->again |= c->settled || (c->begun > 0 && (c->last == TL_OPEN || c->last == TL_UNKNOWN));
        c->begun++;
        c->last = TL_OPEN;
    } else {
        f->t->sum.steps++;
        f->t->sum.not_compared++;
    }
}

static void step_ended(const struct fact *f, enum tl_outcome outcome)
{
    struct str node = node_of_step(f);
    struct tl_item *item = node.len ? node_find(f, node) : step_find(f);
    struct tl_step_count *c = count_of(f);

    if (!item || item->outcome != TL_OPEN) { /* begun in an earlier run, settled in this one */
        if (c && outcome != TL_UNKNOWN)
            c->settled |= c->begun > 0 && (c->last == TL_OPEN || c->last == TL_UNKNOWN);
        item = node.len ? NULL : step_add(f);
        outcome = outcome == TL_RAN ? TL_SETTLED : outcome;
    }
    if (c) {
        c->last = outcome;
        c->done += outcome == TL_RAN || outcome == TL_SETTLED;
    } else {
        f->t->sum.once += outcome == TL_RAN;
    }
    if (!item || (node.len && outcome != TL_UNKNOWN)) /* its node says how it ended */
        return;
    tl_item_end(f->t, item, outcome, f->ev->ts_ms);
    if (text_of(f, "settled").len)
        CUT(item->found, text_of(f, "settled"));
    CUT(item->note, outcome == TL_RAN ? STR("") : error_of(f));
    if (outcome == TL_RAN || outcome == TL_SETTLED)
        tl_kept_add(&f->t->done, item);
}

static void on_tool_completed(const struct fact *f)
{
    step_ended(f, TL_RAN);
}

static void on_tool_failed(const struct fact *f)
{
    step_ended(f, TL_FAILED);
}

static void on_tool_unknown(const struct fact *f)
{
    step_ended(f, TL_UNKNOWN);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------ */

static struct str node_and_visit(const struct fact *f)
{
    return str_from(arena_printf(&f->t->scratch, "%.*s#%" PRId64, STR_ARG(text_of(f, "node")),
                                 json_get_int(f->body, STR("visit"), 1)));
}

static struct tl_item *node_add(const struct fact *f)
{
    struct tl_item *item = tl_item_add(f->t, f->run, TL_NODE, f->ev->ts_ms);

    item->call = str_hash(node_and_visit(f));
    CUT(item->name, json_get_int(f->body, STR("visit"), 1) > 1 ? node_and_visit(f) : text_of(f, "node"));
    CUT(item->word, STR("node"));
    return item;
}

static void on_node_started(const struct fact *f)
{
    struct tl_item *item = node_find(f, node_and_visit(f));

    if (!item || (item->outcome != TL_FAILED && item->outcome != TL_OPEN)) /* a retry continues with the same bar */
        item = node_add(f);
    item->outcome = TL_OPEN;
    item->end_ms = item->end_seq = 0;
    item->note[0] = '\0';
    item->tries++;
}

static void on_node_completed(const struct fact *f)
{
    struct tl_item *item = node_find(f, node_and_visit(f));

    if (!item || item->outcome != TL_OPEN) /* begun in an earlier run */
        item = node_add(f);
    tl_item_end(f->t, item, TL_RAN, f->ev->ts_ms);
    tl_kept_add(&f->t->done, item);
    f->t->sum.nodes++;
}

static void on_node_failed(const struct fact *f)
{
    struct tl_item *item = node_find(f, node_and_visit(f));

    if (!item || item->outcome != TL_OPEN)
        item = node_add(f);
    tl_item_end(f->t, item, TL_FAILED, f->ev->ts_ms);
    CUT(item->note, error_of(f));
    tl_mark_add(f->t, f->run, TL_ERROR);
}

/* It never began: nothing of it is drawn or counted. */
static void on_tool_withdrawn(const struct fact *f)
{
    struct tl_item *item = node_find(f, node_and_visit(f));
    struct tl_step_count *c = map_get(&f->t->steps, text_of(f, "call_id"));

    if (item && item->outcome == TL_OPEN && --item->tries == 0)
        tl_item_remove(f->run, item);
    if (c && --c->begun == 0)
        free(map_remove(&f->t->steps, text_of(f, "call_id")));
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

static void take_program(const struct fact *f, struct tl_run *run)
{
    const struct json *argv = json_get(f->body, STR("argv"));
    AUTO(buf_done) struct buf line = BUF_INIT(4096);

    for (const struct json *a = argv && argv->type == JSON_ARRAY ? argv->first : NULL; a && line.len < 256;
         a = a->next) {
        if (line.len)
            buf_add_char(&line, ' ');
        buf_add_str(&line, shown(f, a));
    }
    CUT(run->program, buf_view(&line));
}

static void run_end(struct timeline *t, struct tl_run *run, enum tl_end end, int64_t ts_ms)
{
    run->end = end;
    run->ended_ms = ts_ms;
    run->to = t->now;
    tl_run_cut(t, run, ts_ms);
}

static void on_run_started(const struct fact *f)
{
    struct timeline *t = f->t;
    struct tl_run *before = tl_run_last(t), *run;
    struct str from = json_get_text(&t->scratch, json_get(f->body, STR("resumed_from")), STR("run_id"));
    char before_id[TIDE_ID_SIZE] = "";
    int64_t number = before ? before->number : 0;

    if (before && before->number && before->end <= TL_RUN_WAITS) {
        t->sum.interruptions += before->end == TL_RUN_OPEN;
        run_end(t, before, TL_RUN_GONE, 0);
    }
    if (before)
        memcpy(before_id, before->run_id, sizeof(before_id));
    run = tl_run_add(t);
    run->number = number + 1;
    run->started_ms = f->ev->ts_ms;
    run->from = run->to = t->now;
    run->pid = json_get_int(f->body, STR("pid"), 0);
    CUT(run->run_id, text_of(f, "run_id"));
    CUT(run->from_id, from);
    take_program(f, run);
    if (from.len && strcmp(run->from_id, before_id) == 0) {
        run->from_number = number;
        run->kept = t->done;
    } else {
        memset(&t->done, 0, sizeof(t->done));
    }
    t->sum.runs++;
}

static bool about_this_run(const struct fact *f)
{
    struct str id = text_of(f, "run_id");

    return !id.len || !f->run->run_id[0] || str_eq(id, str_from(f->run->run_id));
}

static void on_run_ended(const struct fact *f)
{
    static const struct {
        const char *kind;
        enum tl_end end;
    } ends[] = {{"run.completed", TL_COMPLETED},
                {"run.failed", TL_RUN_FAILED},
                {"run.cancelled", TL_CANCELLED},
                {"run.interrupted", TL_INTERRUPTED}};

    if (!about_this_run(f))
        return;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strcmp(f->ev->kind, ends[i].kind) == 0)
            run_end(f->t, f->run, ends[i].end, f->ev->ts_ms);
    CUT(f->run->reason, text_of(f, "reason"));
    f->run->late = str_eq(text_of(f, "reason"), STR("process_restart"));
    CUT(f->run->error, error_of(f));
    f->t->sum.interruptions += f->run->end == TL_INTERRUPTED;
}

/* ---- waits ------------------------------------------------------------------------------------------------------------- */

static void on_run_waiting(const struct fact *f)
{
    int64_t since = json_get_int(f->body, STR("since_seq"), f->ev->seq);
    bool sleeps = text_of(f, "due_at").len > 0, same = since == f->t->wait_since;
    struct str name = text_of(f, "wait_name"), kind = text_of(f, "wait_kind");
    struct tl_item *item;

    if (!about_this_run(f))
        return;
    /* A new token makes the same wait begin once more: its time shows that. */
    f->t->wait_since = since;
    if (same && f->run->end == TL_RUN_WAITS && f->run->n_items && f->run->items[f->run->n_items - 1].outcome == TL_OPEN)
        return;
    item = tl_item_add(f->t, f->run, sleeps ? TL_SLEEP : TL_WAIT, f->ev->ts_ms);
    CUT(item->name, name.len ? name : kind);
    CUT(item->word, kind);
    CUT(item->note, sleeps ? STR("") : text_of(f, "question"));
    item->kept = f->t->done.n;
    f->run->end = TL_RUN_WAITS;
    f->t->sum.waits += !sleeps && !same;
    f->t->sum.sleeps += sleeps && !same;
}

static void note_answer(const struct fact *f, struct tl_item *item)
{
    struct str by = text_of(f, "by"), input = yes_no_shown(&f->t->scratch, json_get(f->body, STR("input")));
    char question[sizeof(item->note)];

    memcpy(question, item->note, sizeof(question));
    CUT(item->note, str_from(arena_printf(&f->t->scratch, "%s%s%.*s%s%.*s", question,
                                          input.len && question[0] ? " → " : "", STR_ARG(input),
                                          by.len ? (input.len || question[0] ? ", by " : "by ") : "", STR_ARG(by))));
}

static void on_run_resumed(const struct fact *f)
{
    if (!about_this_run(f))
        return;
    tl_mark_add(f->t, f->run, TL_RESUME);
    f->run->end = TL_RUN_OPEN;
    f->run->ended_ms = 0;
    for (size_t i = f->run->n_items; i-- > 0;) {
        struct tl_item *item = &f->run->items[i];

        if (item->type == TL_STEP || item->type == TL_NODE || item->outcome != TL_OPEN)
            continue;
        tl_item_end(f->t, item, TL_RAN, f->ev->ts_ms);
        if (item->type == TL_WAIT)
            note_answer(f, item);
        return;
    }
}

/* ---- marks ------------------------------------------------------------------------------------------------------------- */

static void on_checkpoint(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_CHECKPOINT);
    f->t->sum.checkpoints++;
}

static void on_token(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_TOKEN);
}

static void on_message(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_MESSAGE);
}

static void on_model(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_MODEL);
}

static void on_error(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_ERROR);
}

/* Nodes behind it are cut off and may run again: nothing is said to be kept that may not be. */
static void on_rollback(const struct fact *f)
{
    if (f->t->sum.nodes)
        memset(&f->t->done, 0, sizeof(f->t->done));
    tl_mark_add(f->t, f->run, TL_ROLLBACK);
}

static void on_input(const struct fact *f)
{
    tl_mark_add(f->t, f->run, TL_INPUT);
}

static const struct drawn {
    const char *kind;
    void (*apply)(const struct fact *f);
    bool reads; /* looks into the body */
} kinds[] = {
    {"run.started", on_run_started, true},
    {"run.completed", on_run_ended, true},
    {"run.failed", on_run_ended, true},
    {"run.cancelled", on_run_ended, true},
    {"run.interrupted", on_run_ended, true},
    {"run.waiting", on_run_waiting, true},
    {"run.resumed", on_run_resumed, true},
    {"tool.started", on_tool_started, true},
    {"tool.completed", on_tool_completed, true},
    {"tool.failed", on_tool_failed, true},
    {"tool.unknown", on_tool_unknown, true},
    {"tool.withdrawn", on_tool_withdrawn, true},
    {"checkpoint", on_checkpoint, false},
    {"token.minted", on_token, false},
    {"token.consumed", on_token, false},
    {"token.revoked", on_token, false},
    {"token.expired", on_token, false},
    {"message.user", on_message, false},
    {"message.assistant", on_message, false},
    {"message.tool", on_message, false},
    {"llm.request", on_model, false},
    {"llm.error", on_error, false},
    {"node.failed", on_node_failed, true},
    {"queue.added", on_input, false},
    {"queue.withdrawn", on_input, false},
    {"cancel.requested", on_input, false},
    {"approval.given", on_input, false},
    {"node.started", on_node_started, true},
    {"node.completed", on_node_completed, true},
    {"session.rolled_back", on_rollback, false},
};

/* Known, and of no interest in a picture: everything that is neither here nor above is counted. */
static bool is_silent(const char *kind)
{
    static const char *const silent[] = {"session.",  "status.derived", "memory.",  "output.set", "queue.taken",
                                         "llm.",      "context.",       "hook.",    "edge.",      "node.",
                                         "executor.", "checkpoint.",    "approval."};

    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        if (str_starts(str_from(kind), str_from(silent[i])))
            return true;
    return false;
}

static bool is_stopped(const struct timeline *t)
{
    return t->stop && *t->stop;
}

int tl_event_add(void *arg, const struct tide_event *ev)
{
    struct timeline *t = arg;
    struct tl_run *run = tl_run_last(t);
    const struct drawn *d = NULL;
    struct fact f = {t, NULL, ev, NULL};
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct json *body = NULL;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !d; i++)
        d = strcmp(kinds[i].kind, ev->kind) == 0 ? &kinds[i] : NULL;
    t->now = ev->ts_ms > t->now ? ev->ts_ms : t->now;
    t->at = t->last_seq = ev->seq;
    t->first_seq = t->first_seq ? t->first_seq : ev->seq;
    tl_axis_add(t);
    t->sum.events++;
    if (run && run->end <= TL_RUN_WAITS && (!d || d->apply != on_run_started))
        run->last_seq = ev->seq;
    if (!d) {
        t->sum.other += !is_silent(ev->kind);
        return is_stopped(t);
    }
    arena_reset(&t->scratch);
    if (d->reads && json_parse(&t->scratch, (struct str){ev->body, ev->body_len}, &limits, &body, NULL, NULL))
        return is_stopped(t);
    f.body = body;
    f.run = d->apply == on_run_started ? NULL : tl_run_now(t, ev->ts_ms);
    d->apply(&f);
    if (f.run && f.run->end <= TL_RUN_WAITS)
        f.run->to = t->now;
    return is_stopped(t);
}

/* ---- all of it --------------------------------------------------------------------------------------------------------- */

void tl_begin(struct timeline *t, const struct tide_session_info *info)
{
    char status[STATUS_SIZE];

    memset(t, 0, sizeof(*t));
    CUT(t->id, str_from(info->id));
    CUT(t->title, str_from(info->title));
    CUT(t->codes, str_from(session_codes(status, info)));
    CUT(t->standing, str_from(session_status(status, info)));
    t->status = info->status;
    t->outcome = info->outcome;
    CUT(t->why, str_from(info->why));
    t->gone = info->status == TIDE_STATUS_INTERRUPTED_STARTUP && !info->run_ended_ms;
}

static void count_steps(struct timeline *t)
{
    struct tl_summary *s = &t->sum;

    for (const struct map_entry *e = map_next(&t->steps, NULL); e; e = map_next(&t->steps, (struct map_entry *)e)) {
        const struct tl_step_count *c = e->value;

        s->steps++;
        s->once += c->done == 1;
        s->repeated += c->done > 1;
        s->begun_again += c->again;
        s->settled += c->settled && !c->again && c->done > 0;
        s->failed += c->done == 0 && c->last == TL_FAILED;
        s->unknown += c->done == 0 && c->last == TL_UNKNOWN;
        s->open += c->done == 0 && c->last == TL_OPEN;
    }
}

/* Items still open in a run that is over, or whose process is gone, were cut; the count of steps says the same. */
static void close_last(struct timeline *t)
{
    struct tl_run *run = tl_run_last(t);

    if (run && run->number && run->end == TL_RUN_OPEN && t->gone) {
        run_end(t, run, TL_RUN_GONE, 0);
        t->sum.interruptions++; /* though nobody has written it down yet */
    }
    if (run && (run->end > TL_RUN_WAITS || run->end == TL_RUN_GONE)) {
        t->sum.cut = t->sum.open;
        t->sum.open = 0;
    }
}

void tl_end_all(struct timeline *t)
{
    count_steps(t);
    close_last(t);
}

enum tide_code timeline_fold(const struct tide_session_info *info, timeline_events_fn *each, void *from,
                             const atomic_int *stop, struct timeline *t, struct tide_err *err)
{
    enum tide_code code;

    tl_begin(t, info);
    t->stop = stop;
    code = each(from, tl_event_add, t, err);
    if (!code && is_stopped(t))
        return tide_fail(err, TIDE_CANCELLED, "stopped");
    tl_end_all(t);
    return code;
}

static enum tide_code each_of_log(void *session, tide_event_fn *fn, void *arg, struct tide_err *err)
{
    return tide_session_read(session, 0, tide_session_first_seq(session), 0, fn, arg, err);
}

enum tide_code timeline_read(tide_session *session, const atomic_int *stop, struct timeline *t, struct tide_err *err)
{
    const struct tide_session_info *info;

    memset(t, 0, sizeof(*t));
    return tide_session_get_info(session, &info, err) ? err->code
                                                      : timeline_fold(info, each_of_log, session, stop, t, err);
}

void timeline_done(struct timeline *t)
{
    for (size_t i = 0; i < t->n_runs; i++)
        tl_run_done(&t->runs[i]);
    free(t->runs);
    map_done(&t->steps, free);
    arena_done(&t->scratch);
    memset(t, 0, sizeof(*t));
}
