/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/usage_series.h"

#include <stdlib.h>
#include <string.h>

#include "engine/shapes.h"
#include "session/session.h"
#include "session/usage_json.h"

struct reading {
    struct usage_series *s;
    struct state *sums; /* the ledger of answers so far */
    struct arena scratch;
};

static void add_point(struct usage_series *s, int64_t seq, int64_t ts_ms, struct tide_usage usage)
{
    MEM_ROOM(s->at, s->n, s->cap);
    s->at[s->n++] = (struct usage_point){seq, ts_ms, usage};
}

/* Folded as everywhere, so that the sums are the same. */
static int on_event(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;
    const struct event one = {
        .seq = ev->seq, .ts_ms = ev->ts_ms, .kind = str_from(ev->kind), .body = {ev->body, ev->body_len}};

    if (strcmp(ev->kind, "llm.usage") != 0)
        return 0;
    state_apply_ledger(r->sums, &one, &r->scratch);
    add_point(r->s, ev->seq, ev->ts_ms, usage_of(&r->sums->ledger));
    return 0;
}

static enum tide_code read_answers(tide_session *session, size_t points, struct usage_series *s, struct tide_err *err)
{
    struct reading r = {.s = s, .sums = state_new(str_from(tide_session_id(session)))};
    enum tide_code code = tide_session_read(session, 0, 0, 0, on_event, &r, err);
    size_t n = 0;

    if (s->n > points) { /* some of them, and the last */
        for (size_t i = 1; i <= points; i++)
            s->at[n++] = s->at[i * s->n / points - 1];
        s->n = n;
    }
    state_free(r.sums);
    arena_done(&r.scratch);
    return code;
}

static enum tide_code ask_states(tide_session *session, size_t points, struct usage_series *s, struct tide_err *err)
{
    int64_t first = tide_session_first_seq(session), last = tide_session_last_seq(session), n = (int64_t)points;
    struct tide_usage before = {0};
    enum tide_code code = TIDE_OK;

    for (int64_t i = 1; !code && i <= n; i++) {
        AUTO(state_freep) struct state *own = NULL;
        int64_t seq = first - 1 + (last - first + 1) / n * i + (last - first + 1) % n * i / n;
        const struct state *state;
        struct tide_usage usage;

        code = seq < first ? TIDE_OK : session_state(session, seq, &own, &state, err);
        if (code || seq < first)
            continue;
        usage = usage_of(&state->ledger);
        if (memcmp(&usage, &before, sizeof usage) != 0) /* where nothing was spent the line is flat */
            add_point(s, state->seq, state->ts_ms, usage);
        before = usage;
    }
    return code;
}

enum tide_code usage_series_read(tide_session *session, size_t points, struct usage_series *s, struct tide_err *err)
{
    *s = (struct usage_series){.at = NULL};
    if (tide_session_get_usage(session, 0, &s->total, err))
        return err->code;
    return tide_session_last_seq(session) - tide_session_first_seq(session) < USAGE_SHORT
               ? read_answers(session, points, s, err)
               : ask_states(session, points, s, err);
}

void usage_series_done(struct usage_series *s)
{
    free(s->at);
}

/* ---- as JSON ---- */

static const struct shape shape_point = {
    .members =
        (const struct shape_member[]){
            {"seq", SHAPE_INT, SHAPE_AT(struct usage_point, seq), 0, "as of this event"},
            {"ts", SHAPE_TIME, SHAPE_AT(struct usage_point, ts_ms), SHAPE_NULLABLE, "when"},
            {"", SHAPE_MEMBERS, SHAPE_AT(struct usage_point, usage), 0, "", .of = &shape_usage},
            {.name = NULL},
        },
};

SHAPE(usage_series, "What a session has spent over time.",
      {"points", SHAPE_ROWS, SHAPE_ROWS_AT(struct usage_series, at, n), 0,
       "sums up to some events, in order; between two of them nothing is known, behind the last nothing was spent",
       .of = &shape_point},
      {"total", SHAPE_OBJECT, SHAPE_AT(struct usage_series, total), 0, "all of it", .of = &shape_usage});
