/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox of notifications, on the log. What is sent was asked for by an event of the log, and of a log that is this user's
 * own; the log never says what is called.
 */
#include "session/notify.h"

#include <inttypes.h>

#include "session/event_draft.h"
#include "session/load.h"
#include "store/origin.h"

static const struct {
    const char *kind, *word;
    unsigned transition;
} transitions[] = {
    {"run.waiting", "waiting", NOTIFY_WAITING},
    {"run.interrupted", "interrupted", NOTIFY_INTERRUPTED},
    {"run.failed", "failed", NOTIFY_FAILED},
    {"run.completed", "completed", NOTIFY_COMPLETED},
};
#define TRIES 50
#define TRANSITIONS (sizeof transitions / sizeof transitions[0])

unsigned notify_transition_of(struct str word)
{
    for (size_t i = 0; i < TRANSITIONS; i++)
        if (str_eq(word, str_from(transitions[i].word)))
            return transitions[i].transition;
    return 0;
}

/* A sleep waits for nobody, and a wait without a token has its answer in the same append. */
static bool waits_for_somebody(const struct json *body)
{
    return json_get(body, STR("resume_token_id")) && !json_get(body, STR("due_at"));
}

bool notify_wants(const struct store *store, struct str kind, const struct json *body)
{
    if (!store->notify.on || !str_starts(kind, STR("run.")) || json_get(body, STR("notify")))
        return false;
    for (size_t i = 0; i < TRANSITIONS; i++)
        if (store->notify.on & transitions[i].transition && str_eq(kind, str_from(transitions[i].kind)))
            return transitions[i].transition != NOTIFY_WAITING || waits_for_somebody(body);
    return false;
}

void notify_mark(struct buf *body)
{
    body->len--;
    buf_addf(body, "%s\"notify\":true}", body->len > 1 ? "," : "");
}

bool notify_is_due(const struct state *s, int64_t now_ms)
{
    return s->ledger.notify_from && s->ledger.notify_retry_ms <= now_ms;
}

void notify_tell(struct store *store)
{
    if (store->notify.due)
        store->notify.due(store->notify.arg);
}

/* ---- the next one ---- */

void notification_done(struct notification *n)
{
    arena_done(&n->arena);
}

static const char *text_in(struct arena *a, const struct json *body, const char *key)
{
    struct str text = json_get_text(a, body, str_from(key));

    return text.len ? arena_dup(a, text).ptr : NULL;
}

static int take_asked(void *arg, const struct event *ev)
{
    struct notification *n = arg;
    const struct json *error;
    struct json *body;

    for (size_t i = 0; i < TRANSITIONS; i++)
        if (str_eq(ev->kind, str_from(transitions[i].kind)))
            n->transition = transitions[i].word;
    if (!n->transition)
        return 0;
    arena_reset(&n->arena);
    if (json_parse(&n->arena, arena_dup(&n->arena, ev->body), NULL, &body, NULL, NULL) ||
        !json_get_bool(body, STR("notify"), false)) {
        n->transition = NULL;
        return 0;
    }
    error = json_get(body, STR("error"));
    n->seq = ev->seq;
    n->at_ms = ev->ts_ms;
    n->run_id = text_in(&n->arena, body, "run_id");
    n->reason = text_in(&n->arena, body, "reason");
    n->wait_kind = text_in(&n->arena, body, "wait_kind");
    n->question = text_in(&n->arena, body, "question");
    n->error =
        error && error->type == JSON_OBJECT ? text_in(&n->arena, error, "message") : text_in(&n->arena, body, "error");
    return 1;
}

enum tide_code notify_next(struct store *store, const char *session, struct notification *ret, struct tide_err *err)
{
    AUTO(state_freep) struct state *s = NULL;
    struct notification n = {.arena = ARENA_INIT};
    struct head h;
    enum tide_code code = store_head(store, str_from(session), &h, err);

    code = code ? code : state_load(store, &h, h.last_seq, &s, NULL, err);
    if (!code && (!notify_is_due(s, env_now_ms(store->env)) || !origin_is_ours(store, &h)))
        code = tide_fail_session(err, TIDE_NOT_FOUND, session, "has no notification that is due");
    code = code ? code : read_through(store, &h, s->ledger.notify_from, s->ledger.notify_last, take_asked, &n, err);
    if (!code && !n.transition)
        code = tide_fail_session(err, TIDE_CORRUPT, session, "asks for a notification that its log does not have");
    if (code) {
        arena_done(&n.arena);
        return code;
    }
    n.attempt = s->ledger.notify_tries + 1;
    snprintf(n.session, sizeof n.session, "%s", h.id);
    snprintf(n.id, sizeof n.id, "%s:%" PRId64, h.id, n.seq);
    *ret = n;
    return TIDE_OK;
}

/* ---- what became of it ---- */

static void draft_outcome(struct draft *d, const struct notification *n, int64_t took_ms, const char *why,
                          int64_t retry_ms)
{
    struct json_out *o = draft_open(d, why ? "notify.failed" : "notify.sent");

    draft_text(d, "notify_id", n->id);
    json_out_kint(o, STR("of_seq"), n->seq);
    json_out_kint(o, STR("attempt"), n->attempt);
    json_out_kint(o, STR("ms"), took_ms);
    draft_text(d, "error", why);
    draft_time(d, "retry_at", retry_ms);
    draft_close(d);
}

/* While a run holds the session it is an input: the run reads it with its next append. */
static enum tide_code record_once(struct store *store, const char *session, const struct draft *d, struct tide_err *err)
{
    AUTO(state_freep) struct state *s = NULL;
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct batch *b = NULL;
    struct event ev;
    struct head h;
    enum tide_code code = store_head(store, str_from(session), &h, err);

    if (!code && h.held && h.holder_alive) {
        code = event_check(store, &a, d->events, true, &ev, NULL, err);
        if (!code) {
            b = batch_new(str_from(h.id), BATCH_INPUT, &ev, 1, STR(""), STR(""));
            b->expect_seq = h.last_seq;
        }
    } else if (!code) {
        code = state_load(store, &h, h.last_seq, &s, NULL, err);
        code = code ? code : history_prove(store, &h, h.last_seq, err);
        code = code ? code : recovery_batch(store, &h, s, d, &b, err);
    }
    return code ? code : store_write(store, b, NULL, err);
}

enum tide_code notify_record(struct store *store, const struct notification *n, int64_t took_ms, const char *why,
                             int64_t retry_ms, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code = TIDE_CONFLICT;

    draft_outcome(&d, n, took_ms, why, retry_ms);
    for (int i = 0; i < TRIES && (code == TIDE_CONFLICT || code == TIDE_HELD); i++)
        code =
            record_once(store, n->session, &d, err); /* again: somebody appended, or began or ended a run, in between */
    draft_done(&d);
    return code == TIDE_NOT_FOUND ? TIDE_OK : code;
}

/* ---- whose ---- */

static int take_live(void *arg, const struct store_entry *entry, int64_t wake_ms)
{
    struct notify_list *list = arg;

    (void)wake_ms;
    MEM_ROOM(list->ids, list->n, list->cap);
    memcpy(list->ids[list->n++], entry->head->id, sizeof entry->head->id);
    return 0;
}

enum tide_code notify_find(struct store *store, struct notify_list *ret, struct tide_err *err)
{
    struct notify_list list = {NULL, 0, 0};
    int64_t next_ms;
    enum tide_code code = store_live(store, env_now_ms(store->env), take_live, &list, &next_ms, err);

    if (code && code != TIDE_CORRUPT) { /* one damaged is in nobody else's way: recovery names it */
        free(list.ids);
        return code;
    }
    *ret = list;
    return TIDE_OK;
}
