/* SPDX-License-Identifier: Apache-2.0 */
/* States against the model, and the store as a whole against the oracle. */
#include <inttypes.h>

#include "base/json.h"
#include "world.h"

/* ---- States --------------------------------------------------------------------------------------------------- */

enum { STATUS_MAX = 8000 };

/* The state without its status, which is of now. */
static struct str without_status(struct world *w, struct tide_text t)
{
    static const char mark[] = ",\"status\":{\"status\":";
    char *copy = (char *)arena_dup(&w->arena, (struct str){t.ptr, t.len}).ptr;
    size_t tail = t.len < STATUS_MAX ? t.len : STATUS_MAX;
    char *at = memmem(copy + t.len - tail, tail, mark, sizeof mark - 1);

    if (!at)
        return (struct str){copy, t.len};
    *at = '}';
    return (struct str){copy, (size_t)(at - copy) + 1};
}

static void check_number(struct world *w, const struct o_session *s, int64_t seq, const struct json *of,
                         const char *key, int64_t want)
{
    int64_t got = json_get_int(of, str_from(key), -1);

    if (got != want)
        wrong(w, "%s as of %" PRId64 ": %s is %" PRId64 ", the model says %" PRId64, s->id, seq, key, got, want);
}

static void compare(struct world *w, const struct o_session *s, int64_t seq, struct str state)
{
    struct model m;
    struct json *v;
    const struct json *content, *ledger, *memory;
    uint32_t set = 0;

    if (json_parse(&w->arena, state, NULL, &v, NULL, NULL)) {
        wrong(w, "%s as of %" PRId64 ": the state is not JSON", s->id, seq);
        return;
    }
    model_at(w, s, seq, &m);
    content = json_get(v, STR("content"));
    ledger = json_get(v, STR("ledger"));
    memory = json_get(content, STR("memory"));
    for (int k = 0; k < KEYS; k++) {
        char key[3] = {'k', (char)('0' + k), 0};
        const struct json *got = json_get(memory, str_from(key));

        set += m.memory[k].ptr != NULL;
        if (!m.memory[k].ptr != !got || (got && !str_eq(json_source(got), m.memory[k])))
            wrong(w, "%s as of %" PRId64 ": %s is %.*s, the model says %.40s", s->id, seq, key,
                  got ? (int)(json_source(got).len < 40 ? json_source(got).len : 40) : 4,
                  got ? json_source(got).ptr : "none", m.memory[k].ptr ? m.memory[k].ptr : "none");
    }
    if (!memory || memory->count != set)
        wrong(w, "%s as of %" PRId64 ": memory has strange keys", s->id, seq);
    check_number(w, s, seq, v, "seq", seq);
    check_number(w, s, seq, content, "messages", m.messages);
    check_number(w, s, seq, ledger, "events", m.events);
    check_number(w, s, seq, ledger, "rollbacks", m.rollbacks);
    check_number(w, s, seq, ledger, "input_tokens", m.input_tokens);
    check_number(w, s, seq, ledger, "calls", m.calls);
    check_number(w, s, seq, ledger, "checkpoint_events", m.mark_events);
}

static void check_kept(struct world *w, struct o_session *s, int64_t seq, uint64_t hash, bool keep)
{
    for (size_t i = 0; i < s->kept_n; i++) {
        if (s->kept[i].seq == seq) {
            if (s->kept[i].hash != hash)
                wrong(w, "%s: the state as of %" PRId64 " is not what it was", s->id, seq);
            return;
        }
    }
    if (!keep)
        return;
    size_t i = s->kept_n < MAX_KEPT ? s->kept_n++ : rnd(w, MAX_KEPT);
    s->kept[i].seq = seq;
    s->kept[i].hash = hash;
}

void check_state(struct world *w, tide_session *h, struct o_session *s, int64_t seq, bool keep)
{
    struct tide_err err = {0};
    struct tide_text t = {NULL, 0};
    struct str state;

    call_begin(w);
    if (tide_session_get_state(h, seq, &t, &err)) {
        if (!call_excused(w))
            wrong(w, "%s: no state as of %" PRId64 ": %s", s->id, seq, err.msg);
        return;
    }
    state = without_status(w, t);
    tide_text_done(&t);
    if (seq == 0)
        seq = tide_session_last_seq(h);
    if (seq > o_last(s)) {
        wrong(w, "%s: a state as of %" PRId64 ", past the end", s->id, seq);
        return;
    }
    compare(w, s, seq, state);
    check_kept(w, s, seq, str_hash(state), keep);
}

/* ---- The whole store ------------------------------------------------------------------------------------------ */

struct listing {
    struct world *w;
    bool listed[MAX_SESSIONS];
};

static int on_listed(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;

    for (size_t i = 0; i < l->w->session_count; i++) {
        if (strcmp(l->w->sessions[i].id, info->id) == 0 && l->w->sessions[i].presence != ABSENT) {
            l->listed[i] = true;
            return 0;
        }
    }
    wrong(l->w, "the list has session %s, which should not be there", info->id);
    return 1;
}

struct all {
    struct world *w;
    int64_t last;
    size_t count;
};

static int on_any(void *arg, const struct tide_event *ev)
{
    struct all *a = arg;

    if (ev->pos <= a->last)
        wrong(a->w, "position %" PRId64 " comes after %" PRId64, ev->pos, a->last);
    a->last = ev->pos;
    a->count++;
    for (size_t i = 0; i < a->w->session_count; i++) {
        struct o_session *s = &a->w->sessions[i];

        if (strcmp(s->id, ev->session_id) == 0 && s->presence != ABSENT) {
            if (ev->seq < s->first_seq || ev->seq > o_last(s) || o_at(s, ev->seq)->pos != ev->pos)
                wrong(a->w, "position %" PRId64 " is %s seq %" PRId64 ", which is elsewhere", ev->pos, s->id, ev->seq);
            return a->w->failed;
        }
    }
    wrong(a->w, "position %" PRId64 " is an event of '%s', which is not there", ev->pos, ev->session_id);
    return 1;
}

static void check_order(struct world *w, tide_store *store)
{
    struct all a = {.w = w};
    struct tide_err err;
    size_t total = 0;

    for (size_t i = 0; i < w->session_count; i++)
        total += w->sessions[i].n;
    if (!store_kind()->positions)
        return;
    if (tide_store_read(store, 0, 0, on_any, &a, &err))
        wrong(w, "events of all sessions cannot be read: %s", err.msg);
    else if (a.count != total)
        wrong(w, "all sessions have %zu events, reading by position gives %zu", total, a.count);
}

struct inherited {
    struct world *w;
    const struct o_session *s;
    int64_t next;
};

static int on_inherited(void *arg, const struct tide_event *ev)
{
    struct inherited *in = arg;
    const struct o_session *of = in->s;

    while (ev->seq < of->first_seq && of->parent)
        of = of->parent;
    if (ev->seq != in->next++ || !same_event(o_at(of, ev->seq), ev->kind, (struct str){ev->body, ev->body_len}))
        wrong(in->w, "%s: what it inherits is wrong at seq %" PRId64, in->s->id, ev->seq);
    return in->w->failed;
}

static void check_one(struct world *w, tide_store *store, struct o_session *s, bool thorough)
{
    struct inherited in = {w, s, 1};
    struct tide_err err;
    tide_session *h;
    uint64_t n = 0;

    if (tide_session_open(store, s->id, TIDE_SESSION_READ, &h, &err)) {
        wrong(w, "%s cannot be opened: %s", s->id, err.msg);
        return;
    }
    check_state(w, h, s, 0, false);
    for (size_t i = 0; i < s->kept_n; i++)
        check_state(w, h, s, s->kept[i].seq, false);
    check_state(w, h, s, 1 + (int64_t)rnd(w, (uint64_t)o_last(s)), true);
    if (s->parent && tide_session_read(h, TIDE_READ_INHERITED, 0, 0, on_inherited, &in, &err))
        wrong(w, "%s: what it inherits cannot be read: %s", s->id, err.msg);
    if (s->parent && !w->failed && in.next != o_last(s) + 1)
        wrong(w, "%s: reading from its past ends at %" PRId64, s->id, in.next - 1);
    if (thorough && (tide_session_verify(h, NULL, NULL, &n, &err) || n != s->n))
        wrong(w, "%s does not verify: %s", s->id, n != s->n ? "wrong count" : err.msg);
    tide_session_close(h);
}

void check_all(struct world *w, tide_store *store, bool thorough)
{
    struct listing l = {.w = w};
    struct tide_err err;

    if (tide_session_list(store, NULL, on_listed, &l, &err) && !w->failed)
        wrong(w, "sessions cannot be listed: %s", err.msg);
    for (size_t i = 0; i < w->session_count && !w->failed; i++) {
        struct o_session *s = &w->sessions[i];

        if (s->presence != ABSENT)
            look(w, store, s, true);
        if (!w->failed && l.listed[i] != (s->presence == PRESENT))
            wrong(w, "%s is %slisted", s->id, l.listed[i] ? "" : "not ");
    }
    for (size_t i = 0; i < w->session_count && !w->failed; i++) {
        if (w->sessions[i].presence == PRESENT)
            check_one(w, store, &w->sessions[i], thorough);
    }
    if (!w->failed)
        check_order(w, store);
}

struct problems {
    struct world *w;
    bool torn;
};

/* What a cut left of a write stands there until the next one: nothing is wrong with that. */
static void on_problem(void *arg, const char *where, const char *what)
{
    struct problems *p = arg;

    if (strncmp(what, "its log ends in an incomplete", 29) == 0)
        p->torn = true;
    else
        wrong(p->w, "store check: %s: %s", where, what);
}

void check_rebuilt(struct world *w, tide_store *store)
{
    struct tide_err err;
    uint64_t before[MAX_SESSIONS] = {0};
    struct problems p = {w, false};

    for (int pass = 0; pass < 2 && !w->failed; pass++) {
        for (size_t i = 0; i < w->session_count; i++) {
            struct tide_text t;
            tide_session *h;
            uint64_t hash;

            if (w->sessions[i].presence != PRESENT)
                continue;
            if (tide_session_open(store, w->sessions[i].id, TIDE_SESSION_READ, &h, &err)) {
                wrong(w, "%s cannot be opened: %s", w->sessions[i].id, err.msg);
                return;
            }
            if (tide_session_get_state(h, 0, &t, &err)) {
                wrong(w, "%s has no state: %s", w->sessions[i].id, err.msg);
                tide_session_close(h);
                return;
            }
            hash = str_hash(without_status(w, t));
            tide_text_done(&t);
            tide_session_close(h);
            if (pass && hash != before[i])
                wrong(w, "%s: the state without caches is another", w->sessions[i].id);
            before[i] = hash;
        }
        if (pass == 0 && tide_store_check(store, TIDE_CHECK_REBUILD, NULL, on_problem, &p, &err) && !p.torn)
            wrong(w, "the store does not pass its check: %s", err.msg);
    }
    if (!w->failed)
        check_all(w, store, false);
}
