/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/temporary.h"
#include "engine/graph_file.h"
#include "graph/exec.h"
#include "torture/torture_internal.h"

#define TEXT_MAX ((size_t)64 << 20)

/* xorshift64*: the same seed, the same places. */
uint64_t torture_random(struct torture *t)
{
    t->random ^= t->random >> 12;
    t->random ^= t->random << 25;
    t->random ^= t->random >> 27;
    return (t->random * UINT64_C(2685821657736338717)) >> 16;
}

void torture_fault(struct torture *t, const struct trial *trial, enum torture_fault_kind kind, const char *what,
                   const char *want, const char *got)
{
    struct torture_report *r = &t->report;
    struct torture_fault f;

    if (trial->told && (kind == FAULT_DIFFERS || kind == FAULT_NOT_ENDED)) {
        kind = FAULT_UNJUDGED;
        what = trial->told;
    }
    f = (struct torture_fault){.session_id = arena_text(&t->arena, trial->session_id),
                               .killed = point_text(&t->arena, &trial->point),
                               .want = arena_text(&t->arena, want),
                               .got = arena_text(&t->arena, got)};
    *(kind == FAULT_NOT_ENDED ? &f.why : kind == FAULT_DIFFERS ? &f.key : &f.node) = arena_text(&t->arena, what);
    MEM_ROOM(r->faults[kind].at, r->faults[kind].n, r->faults[kind].cap);
    r->faults[kind].at[r->faults[kind].n++] = f;
    r->right = r->right && kind == FAULT_UNJUDGED;
}

static size_t count_faults(const struct torture *t)
{
    size_t n = 0;

    for (int kind = 0; kind < FAULT_KINDS; kind++)
        n += t->report.faults[kind].n;
    return n;
}

/* ---- what is asked for ---- */

/* What is stored nowhere has to be said again whenever it continues. */
static void take_secrets(struct torture *t)
{
    AUTO(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    struct json_out o = json_out_to(&text);
    struct json *v = NULL;

    if (json_parse(&t->arena, str_from(t->memory), NULL, &v, NULL, NULL))
        return;
    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next)
        if (texts_have(&t->spec->checkpoints.exclude_memory_keys, json_key_text(&t->arena, m)))
            json_out_kraw(&o, json_key_text(&t->arena, m), json_source(m));
    json_out_end(&o, '}');
    t->secrets = text.len > 2 ? arena_dup(&t->arena, buf_view(&text)).ptr : NULL;
}

static void take_answers(struct torture *t)
{
    const char *const *texts = t->want->answers;
    size_t n = 0;

    while (texts[n])
        n++;
    t->n_answers = n ? n : 1;
    t->answers = arena_alloc(&t->arena, t->n_answers * sizeof(*t->answers));
    for (size_t i = 0; i < t->n_answers; i++) {
        AUTO(buf_done) struct buf json = BUF_INIT(TEXT_MAX);

        json_quote(&json, str_from(n ? texts[i] : "yes"));
        t->answers[i] = arena_dup(&t->arena, buf_view(&json)).ptr;
    }
}

/* ---- a place of its own ---- */

/* Programs get the session's id: no two tortures may use the same. */
static void name_trial(struct torture *t, struct trial *trial, const char *prefix, size_t n)
{
    snprintf(trial->session_id, sizeof(trial->session_id), "%s-%zu-%s", prefix, n, strrchr(t->dir, '-') + 1);
    t->ledger = arena_printf(&t->arena, "%s/%s.ledger", t->dir, trial->session_id);
}

/* ---- without harm ---- */

static void add_point(struct torture *t, struct point p)
{
    t->points = mem_grow(t->points, (t->n_points + 1) * sizeof(*t->points));
    t->points[t->n_points++] = p;
}

static int64_t end_of(const struct effects_seen *f, size_t begin)
{
    const struct effect_seen *b = &f->at[begin];

    for (size_t i = begin + 1; i < f->n; i++)
        if (f->at[i].kind == RECORD_END && strcmp(f->at[i].node, b->node) == 0 && f->at[i].visit == b->visit &&
            f->at[i].attempt == b->attempt)
            return f->at[i].us;
    return b->us;
}

/* In the order in which it comes to them. */
static void find_points(struct torture *t)
{
    int64_t append = 0;

    for (size_t i = 0; i < t->effects_seen.n; i++) {
        const struct effect_seen *f = &t->effects_seen.at[i];

        if (f->kind == RECORD_APPEND) {
            append++;
            add_point(t, (struct point){.kind = POINT_BEFORE, .append = append, .about = f->about});
            add_point(t, (struct point){.kind = POINT_AFTER, .append = append, .about = f->about});
        } else if (f->kind == RECORD_BEGIN) {
            add_point(t, (struct point){.kind = POINT_INSIDE,
                                        .node = f->node,
                                        .visit = f->visit,
                                        .attempt = f->attempt,
                                        .after_us = (end_of(&t->effects_seen, i) - f->us) / 2});
        }
    }
}

/* A graph that fails by itself proves nothing. */
static enum tide_code check_unharmed(const struct torture *t, struct tide_err *err)
{
    const char *file = t->want->file;

    if (!count_faults(t))
        return TIDE_OK;
    return tide_fail(err, TIDE_FAILED, "%.100s does not complete even without a kill: %.300s", file,
                     t->report.faults[FAULT_NOT_ENDED].at[0].why);
}

static enum tide_code run_unharmed(struct torture *t, struct tide_err *err)
{
    const struct point never = {.kind = POINT_NONE};
    struct trial second = {.kills = 0};

    name_trial(t, &t->base, "unharmed", 1);
    if (trial_run(t, &t->arena, &never, &t->base, err) || check_unharmed(t, err) ||
        effects_read(&t->arena, t->ledger, &t->effects_seen, err))
        return err->code;
    name_trial(t, &second, "unharmed", 2);
    if (trial_run(t, &t->arena, &never, &second, err) || check_unharmed(t, err))
        return err->code;
    torture_compare(t, &second, true);
    find_points(t);
    return TIDE_OK;
}

/* ---- with harm ---- */

static enum tide_code judge_trial(struct torture *t, struct trial *trial, struct arena *a, struct tide_err *err)
{
    struct torture_report *r = &t->report;
    size_t faults = count_faults(t);
    struct effects_seen effects_seen;

    if (effects_read(a, t->ledger, &effects_seen, err))
        return err->code;
    torture_judge(t, trial, &effects_seen);
    effects_done(&effects_seen);
    if (trial->completed) /* it came to its end */
        torture_compare(t, trial, false);
    r->tried++;
    r->reached += trial->reached;
    r->kills += trial->kills;
    r->resumes += trial->resumes;
    r->ran_again += trial->ran_again;
    r->happened += trial->happened;
    r->retried += trial->retried;
    *(trial->point.kind == POINT_BEFORE  ? &r->before_append
      : trial->point.kind == POINT_AFTER ? &r->after_append
                                         : &r->inside_node) += 1;
    if (count_faults(t) == faults && !t->want->keep)
        unlink(t->ledger);
    return TIDE_OK;
}

static enum tide_code harm_all(struct torture *t, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    size_t n = t->n_points;

    /* As many as are wanted, to the front: of as many equal parts one each, whichever. */
    t->wanted = t->wanted < n ? t->wanted : n;
    for (size_t i = 0; i < t->wanted; i++) {
        size_t from = i * n / t->wanted, to = (i + 1) * n / t->wanted;

        t->points[i] = t->points[from + torture_random(t) % (to - from)];
    }
    for (size_t i = 0; i < t->wanted && !code; i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        struct trial trial = {.kills = 0};

        name_trial(t, &trial, "killed", i + 1);
        code = trial_run(t, &a, &t->points[i], &trial, err) ? err->code : judge_trial(t, &trial, &a, err);
        if (t->want->progress(t->want->arg, i + 1, t->wanted) && !code)
            code = tide_fail(err, TIDE_CANCELLED, "torture: stopped");
    }
    return code;
}

/* ---- all of it ---- */

enum tide_code torture_new(const struct torture_want *want, struct torture **ret, struct tide_err *err)
{
    struct torture *t = mem_zero(sizeof(*t));

    t->want = want;
    if (graph_file_read(want->file, NULL, NULL, NULL, &t->graph, err)) {
        torture_free(t);
        return tide_wrap(err, "%.150s", want->file);
    }
    t->spec = t->graph->spec->graph;
    *ret = t;
    return TIDE_OK;
}

tide_graph *torture_graph(struct torture *t)
{
    return t->graph;
}

static void take_report(struct torture *t, int64_t began_ms)
{
    struct torture_report *r = &t->report;

    r->file = t->want->file;
    r->store_kind = t->want->files ? "files" : "sqlite";
    r->dir = t->dir;
    r->store = t->want->keep || !r->right ? t->store : NULL;
    r->ms = monotonic_ms() - began_ms;
    r->uninterrupted_us = t->base.us;
    r->nodes = t->base.completed ? t->base.completed->count : 0;
    r->appends = t->effects_seen.appends;
    r->found = (int64_t)t->n_points;
    r->unsteady = arena_zero(&t->arena, (t->unsteady.live + 1) * sizeof(*r->unsteady));
    for (struct map_entry *e = map_next(&t->unsteady, NULL); e; e = map_next(&t->unsteady, e))
        r->unsteady[r->n_unsteady++] = (struct torture_unsteady){e->key, e->value};
}

enum tide_code torture_run(struct torture *t, const char *memory, const struct torture_report **ret_report,
                           struct tide_err *err)
{
    int64_t began_ms = monotonic_ms();
    uint32_t random = 1;

    t->wanted = t->want->points;
    t->report.right = true;
    t->memory = memory;
    if (memory)
        take_secrets(t);
    if (temporary_make(&t->arena, "torture", &t->dir, err))
        return err->code;
    t->store = arena_printf(&t->arena, t->want->files ? "files:%s/store" : "sqlite:%s/torture.db", t->dir);
    take_answers(t);
    (void)!getrandom(&random, sizeof(random), 0);
    t->report.seed = t->want->seed >= 0 ? t->want->seed : random % 1000000;
    t->random = (uint64_t)t->report.seed * UINT64_C(0x9E3779B97F4A7C15) + 1; /* never zero for a seed that fits */
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what killed children leave behind becomes ours, and is found */
    if (run_unharmed(t, err) || harm_all(t, err))
        return err->code;
    take_report(t, began_ms);
    *ret_report = &t->report;
    return TIDE_OK;
}

void torture_free(struct torture *t)
{
    if (!t)
        return;
    if (!t->report.store)
        temporary_remove(t->dir);
    tide_graph_free(t->graph);
    effects_done(&t->effects_seen);
    map_done(&t->asked, NULL);
    map_done(&t->unsteady, NULL);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        free(t->report.faults[kind].at);
    free(t->points);
    arena_done(&t->arena);
    free(t);
}
