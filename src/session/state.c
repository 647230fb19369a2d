/* SPDX-License-Identifier: Apache-2.0 */
/* Putting the two folds together, event by event, and the small setters they share. */
#include "session/state.h"

#include "base/timefmt.h"
#include "session/fold.h"

void text_set(char **slot, struct str s)
{
    char *copy = s.len ? mem_dup(s) : NULL;

    free(*slot);
    *slot = copy;
}

void map_set_text(struct map *m, struct str key, struct str value)
{
    free(map_put(m, key, mem_dup(value)));
}

void map_set_int(struct map *m, struct str key, int64_t value)
{
    int64_t *slot = map_get(m, key);

    if (!slot) {
        slot = mem_alloc(sizeof *slot);
        map_put(m, key, slot);
    }
    *slot = value;
}

void map_drop(struct map *m, struct str key)
{
    free(map_remove(m, key));
}

struct state *state_new(struct str session)
{
    struct state *s = mem_zero(sizeof *s);

    snprintf(s->session, sizeof s->session, "%.*s", STR_ARG(session));
    memcpy(s->content.session, s->session, sizeof s->session);
    s->ledger.run.resumable = -1;
    return s;
}

void state_free(struct state *s)
{
    if (!s)
        return;
    map_done(&s->info.fields, free);
    content_done(&s->content);
    ledger_done(&s->ledger);
    free(s);
}

/* The content now reaches this seq: the last span grows, or a new one begins. */
static void extend_span(struct content *c, int64_t seq)
{
    struct span *last = c->span_count ? &c->spans[c->span_count - 1] : NULL;

    if (last && last->to == seq - 1 && strcmp(last->session, c->session) == 0) {
        last->to = seq;
        return;
    }
    c->spans = mem_grow(c->spans, (c->span_count + 1) * sizeof *c->spans);
    last = &c->spans[c->span_count++];
    memcpy(last->session, c->session, sizeof last->session);
    last->from = last->to = seq;
}

bool content_has(const struct content *c, int64_t seq)
{
    size_t low = 0, high = c->span_count; /* they are in order */

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c->spans[middle].to < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->span_count && c->spans[low].from <= seq;
}

enum { LEDGER = 1, CONTENT = 2 };

static bool has_info(const struct kind *k)
{
    return k->flags & KIND_INFO;
}

static void fold_fact(struct state *s, const struct kind *k, const struct fact *f, int parts)
{
    if (parts & LEDGER && has_info(k))
        info_apply(&s->info, f);
    if (parts & LEDGER && k->ledger)
        k->ledger(&s->ledger, f);
    if (parts & CONTENT && k->content)
        k->content(&s->content, f);
}

/* What every event does, whatever its kind. */
static void advance_state(struct state *s, const struct event *ev, const struct kind *k, int parts)
{
    if (parts & LEDGER) {
        s->ledger.events++;
        s->ledger.run.degraded += str_starts(ev->body, STR("{\"durability\":\"degraded\""));
        s->seq = ev->seq;
        s->ts_ms = ev->ts_ms;
    }
    if (parts & CONTENT && !(k && k->flags & KIND_ROLLBACK))
        extend_span(&s->content, ev->seq);
}

static void read_and_fold(struct state *s, const struct event *ev, struct arena *scratch, int parts)
{
    const struct kind *k = kind_find(ev->kind);
    struct json *body;

    advance_state(s, ev, k, parts);
    if (!k || !((parts & LEDGER && (k->ledger || has_info(k))) || (parts & CONTENT && k->content)))
        return;
    arena_reset(scratch);
    /* A body that is not right JSON cannot come out of a store: its digest is proved and it was checked going in. */
    if (!json_parse(scratch, ev->body, NULL, &body, NULL, NULL))
        fold_fact(s, k, &(struct fact){ev, body, scratch}, parts);
}

void state_apply(struct state *s, const struct event *ev, struct arena *scratch)
{
    read_and_fold(s, ev, scratch, LEDGER | CONTENT);
}

void state_apply_parsed(struct state *s, const struct event *ev, const struct kind *kind, const struct json *body,
                        struct arena *scratch)
{
    const struct fact f = {ev, body, scratch};

    advance_state(s, ev, kind, LEDGER | CONTENT);
    if (kind)
        fold_fact(s, kind, &f, LEDGER | CONTENT);
}

void state_apply_ledger(struct state *s, const struct event *ev, struct arena *scratch)
{
    read_and_fold(s, ev, scratch, LEDGER);
}

void state_apply_content(struct state *s, const struct event *ev, struct arena *scratch)
{
    read_and_fold(s, ev, scratch, CONTENT);
}

void state_take_content(struct state *s, struct state *from)
{
    content_done(&s->content);
    s->content = from->content;
    memset(&from->content, 0, sizeof from->content);
    memcpy(s->content.session, s->session, sizeof s->session);
}

void state_become_fork(struct state *s, struct str fork)
{
    struct ledger fresh = {.max_turn = s->content.turn};

    fresh.run.resumable = -1;
    for (struct map_entry *e = map_next(&s->ledger.effects, NULL); e; e = map_next(&s->ledger.effects, e))
        ((struct effect *)e->value)->unknown = true;
    fresh.effects = s->ledger.effects;
    memset(&s->ledger.effects, 0, sizeof s->ledger.effects);
    ledger_done(&s->ledger);
    s->ledger = fresh;
    snprintf(s->session, sizeof s->session, "%.*s", STR_ARG(fork));
    memcpy(s->content.session, s->session, sizeof s->session);
    s->content.checkpoint[0] = s->content.resume_checkpoint[0] = 0;
    s->content.checkpoint_seq = s->content.resume_checkpoint_seq = 0;
}

struct str info_text(struct arena *a, const struct info *info, struct str key)
{
    const char *raw = map_get(&info->fields, key);
    struct json *v;

    if (!raw || json_parse(a, str_from(raw), NULL, &v, NULL, NULL) || v->type != JSON_STRING)
        return STR("");
    return json_text(a, v);
}

int64_t info_created_ms(const struct info *info)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    int64_t ms = 0;

    return time_parse_any(info_text(&a, info, STR("created_at")), &ms) ? ms : 0;
}
