/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine and its lives: a process opens the store, runs the graph or goes on with it, and dies somewhere, or does not.
 * What callbacks do is written into books that no crash reaches; the next life compares them with the log.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"

enum { LIVES = 120 };

static void say(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->verbose)
        return;
    va_start(ap, fmt);
    printf("# %6llu life %d: ", (unsigned long long)sim_op_count(w->sim), w->life);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

void world_wrong(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->failed)
        return;
    w->failed = true;
    va_start(ap, fmt);
    printf("# WRONG: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

/* The disk failed, and nothing can be said of what did not reach it. */
static bool is_trouble(struct world *w, enum tide_code code)
{
    bool io = code == TIDE_IO || code == TIDE_FULL || code == TIDE_UNKNOWN || code == TIDE_BUSY;

    return sim_proc_dead(w->proc) || (io && sim_fault_fired(w->sim));
}

/* ---- what happens outside ---- */

static void effect_free(void *p)
{
    free(((struct effect *)p)->gave);
    free(p);
}

static struct effect *effect_of(struct world *w, struct str visit)
{
    struct effect *d = map_get(&w->effects, visit);

    if (!d) {
        d = mem_zero(sizeof *d);
        map_put(&w->effects, visit, d);
    }
    return d;
}

static void check_call(struct world *w, const struct spec_node *n, const struct effect *d, struct str visit,
                       int64_t attempt)
{
    if (d->acked)
        world_wrong(w, "%.*s is called though it was told that it is complete", STR_ARG(visit));
    if (n->effect == SPEC_ONCE && d->done)
        world_wrong(w, "%.*s must happen once and happens again", STR_ARG(visit));
    if (d->calls && d->life == w->life && d->attempt == attempt)
        world_wrong(w, "%.*s is called twice in one life, attempt %" PRId64, STR_ARG(visit), attempt);
}

/* Dies, or is asked to stop, before or behind what it does. */
static bool disturb(struct world *w)
{
    if (w->calm || w->crashes <= 0 || !rnd_chance(&w->rnd, 4))
        return false;
    if (rnd_chance(&w->rnd, 30)) {
        say(w, "stopped");
        w->stopping = true;
        (rnd_chance(&w->rnd, 50) ? tide_graph_stop : tide_graph_shutdown)(w->graph);
        return false;
    }
    w->crashes--;
    say(w, "killed in a node");
    sim_proc_kill(w->proc);
    return true;
}

static enum tide_code work(void *arg, const struct tide_node_call *call, struct tide_text *ret, struct tide_err *err)
{
    struct world *w = arg;
    struct buf visit = BUF_INIT(1 << 16), out = BUF_INIT(1 << 20);
    int number = behaviour_number(str_from(call->node));
    const struct behaviour *h = &w->plan->behaviours[number];
    struct effect *d;
    bool fails;

    if (sim_proc_dead(w->proc) || disturb(w))
        return tide_fail(err, TIDE_IO, "it is dead");
    buf_addf(&visit, "%s#%" PRId64, call->node, call->visit);
    d = effect_of(w, buf_view(&visit));
    say(w, "call %s attempt %" PRId64, buf_cstr(&visit), call->attempt);
    check_call(w, h->node, d, buf_view(&visit), call->attempt);
    if (rnd_chance(&w->rnd, 30))
        sim_advance(w->sim, (int64_t)rnd_below(&w->rnd, 90)); /* work takes time: what is gathered is handed over */
    fails = behaviour_fails(w->plan, w->mended, str_from(call->node), call->attempt);
    w->broke[number] |= fails && h->hard;
    d->calls++;
    d->done += !fails;
    d->life = w->life;
    d->attempt = call->attempt;
    buf_done(&visit);
    if (fails)
        return tide_fail(err, TIDE_FAILED, "as it is made");
    behaviour_output(h->node, str_from(call->node), call->visit, str_from(call->inputs), &out);
    buf_cstr(&out);
    free(d->gave);
    d->gave = mem_dup(buf_view(&out));
    disturb(w);
    ret->len = out.len;
    ret->ptr = buf_take(&out);
    return TIDE_OK;
}

/* What is told counts: from here on it must be there. */
static void hear(void *arg, const struct tide_graph_event *ev)
{
    struct world *w = arg;
    char visit[512];
    struct record acks = {w->acks};

    if (sim_proc_dead(w->proc)) {
        tide_graph_shutdown(w->graph);
        return;
    }
    snprintf(visit, sizeof visit, "%s#%" PRId64, ev->node ? ev->node : "", ev->visit);
    if (ev->what == TIDE_GRAPH_NODE_END) {
        record_add(&acks, str_from(visit), 1);
        w->acks = acks.at;
        effect_of(w, str_from(visit))->acked = true;
        say(w, "told: %s is complete", visit);
    } else if (ev->what == TIDE_GRAPH_NODE_FAILED) {
        say(w, "told: %s failed: %s", visit, ev->text);
    } else if (ev->what == TIDE_GRAPH_NODE_START) {
        say(w, "told: %s begins", visit);
    } else if (ev->what == TIDE_GRAPH_NOTICE || ev->what == TIDE_GRAPH_EDGE) {
        say(w, "told: %s %s%s", ev->node ? ev->node : "", ev->to ? "to " : "", ev->to ? ev->to : ev->text);
    }
}

/* ---- the log against the books ---- */

static int show_event(void *arg, const struct tide_event *ev)
{
    (void)arg;
    printf("#    %3lld %s %.*s\n", (long long)ev->seq, ev->kind, 160, ev->body);
    return 0;
}

static bool look_at_log(struct world *w, tide_session *s, struct log_fold *t)
{
    struct tide_err err;

    if (log_fold_read(s, t, &err)) {
        if (!is_trouble(w, err.code))
            world_wrong(w, "the log cannot be read: %s", err.msg);
        return false;
    }
    if (t->wrong[0])
        world_wrong(w, "%s", t->wrong);
    judge_acks(w, t);
    judge_effects(w, t);
    if (w->failed && w->verbose)
        (void)!tide_session_read(s, 0, 1, 0, show_event, NULL,
                                 &err); /* the whole log, for whoever looks for the reason */
    return !w->failed;
}

/* ---- going on ---- */

/* Effects that were cut, answered by who knows: the books. */
struct answers {
    struct arena arena;
    const char *happened[NODES + 1], *retry[NODES + 1];
    size_t n_happened, n_retry;
    struct buf input;
};

static void settle(struct world *w, const struct log_fold *t, struct answers *a)
{
    for (struct map_entry *e = map_next(&t->effects, NULL); e && a->n_happened + a->n_retry < NODES;
         e = map_next(&t->effects, e)) {
        const struct effect *d = effect_of(w, str_from(e->value));

        if (d->done)
            a->happened[a->n_happened++] = arena_printf(&a->arena, "%s=%s", e->key, d->gave);
        else
            a->retry[a->n_retry++] = e->key;
    }
}

static enum tide_code go_on(struct world *w, tide_session *s, const struct log_fold *t, struct tide_graph_result *ret,
                            struct tide_err *err)
{
    static const struct tide_agent_options quick = {.size = sizeof quick, .retry_base_delay_ms = 1};
    struct answers a = {.arena = ARENA_INIT, .input = BUF_INIT(1 << 16)};
    struct tide_graph_options opt = {.size = sizeof opt, .agent = &quick, .event = hear, .arg = w};
    enum tide_code code;
    bool plain = w->life % 3 == 0; /* nobody says anything about what was cut: it must ask */

    if (w->plan->order == FREE) /* several are begun in one batch, and those that are begun last may never be */
        opt.threads = 1 + w->life % 4;
    if (t->effects.live && !plain) {
        settle(w, t, &a);
        opt.happened = a.n_happened ? a.happened : NULL;
        opt.retry = a.n_retry ? a.retry : NULL;
    }
    if (t->waiting) {
        struct str node = {t->wait_name.ptr, t->wait_name.len};

        while (node.len && node.ptr[node.len - 1] != '#')
            node.len--;
        node.len -= node.len > 0;
        behaviour_answer(w->plan->behaviours[behaviour_number(node)].node, t->wait_name, &a.input);
        opt.input = buf_cstr(&a.input);
        say(w, "answer %.*s: %s", STR_ARG(t->wait_name), opt.input);
    }
    code = t->started ? tide_graph_resume(s, w->graph, &opt, ret, err) : tide_graph_run(s, w->graph, &opt, ret, err);
    arena_done(&a.arena);
    buf_done(&a.input);
    return code;
}

static bool mend(struct world *w)
{
    bool any = false;

    for (int i = 0; i < NODES; i++) {
        any |= w->broke[i] && !w->mended[i];
        w->mended[i] |= w->broke[i];
    }
    return any;
}

static void judge(struct world *w, const struct log_fold *t, enum tide_code code, const struct tide_err *err)
{
    say(w, "%s%s%s", tide_code_name(code), code ? ": " : "", code ? err->msg : "");
    if (code == TIDE_OK || code == TIDE_WAITING)
        return;
    if (code == TIDE_FAILED) {
        w->final_failure = !mend(w);
    } else if (code == TIDE_UNSETTLED) {
        if (!t->effects.live)
            world_wrong(w, "nothing that must happen once was cut: %s", err->msg);
    } else if (code == TIDE_HELD && w->died) {
        sim_advance(w->sim, LEASE_MS + 1000); /* whether the one who had it is dead cannot be told after a power cut */
    } else if (code == TIDE_CANCELLED) {
        if (!w->stopping)
            world_wrong(w, "nobody stopped it: %s", err->msg);
    } else if (!is_trouble(w, code)) {
        world_wrong(w, "%s: %s", tide_code_name(code), err->msg);
    }
}

static void take_end(struct world *w, tide_session *s)
{
    struct tide_err err;
    struct log_fold t;

    if (tide_session_verify(s, NULL, NULL, NULL, &err) && !is_trouble(w, err.code))
        world_wrong(w, "the log is not whole: %s", err.msg);
    if (look_at_log(w, s, &t)) {
        w->end = t.end;
        w->end.failed = !t.completed;
        t.end = (struct end){0};
        w->done = true;
    }
    log_fold_done(&t);
}

/* The graph as the session has it, in place of the one that was given. */
static void use_stored(struct world *w, tide_session *s)
{
    struct tide_err err;
    tide_graph *g = NULL;

    if (tide_graph_load(s, &g, &err)) {
        if (!is_trouble(w, err.code))
            world_wrong(w, "the graph is not stored: %s", err.msg);
        return;
    }
    if (strcmp(tide_graph_digest(g), tide_graph_digest(w->graph)) != 0)
        world_wrong(w, "another graph is stored");
    tide_graph_free(w->graph);
    w->graph = g;
    if (tide_graph_add_callback(g, "work", work, w, &err))
        world_wrong(w, "%s", err.msg);
}

static void live(struct world *w, tide_store *store)
{
    struct tide_graph_result result = {0};
    struct tide_err err = {0};
    tide_session *s = NULL;
    struct log_fold t = {0};
    enum tide_code code;

    if (tide_session_open(store, SESSION, TIDE_SESSION_APPEND, &s, &err)) {
        if (!is_trouble(w, err.code))
            world_wrong(w, "the session cannot be opened: %s", err.msg);
        return;
    }
    if (look_at_log(w, s, &t)) {
        if (t.completed || (w->final_failure && t.over)) {
            take_end(w, s);
        } else {
            w->stopping = false;
            if (t.started && rnd_chance(&w->rnd, 20))
                use_stored(w, s);
            code = go_on(w, s, &t, &result, &err);
            if (!sim_proc_dead(w->proc))
                judge(w, &t, code, &err);
            if (code == TIDE_OK && !sim_proc_dead(w->proc))
                judge_result(w, &result);
        }
    }
    log_fold_done(&t);
    tide_text_done(&result.memory);
    tide_session_close(s);
}

/* ---- lives ---- */

static tide_store *open_store(struct sim_proc *p, struct tide_err *err)
{
    return sim_store_open(p, LEASE_MS, err);
}

static void arm(struct world *w, const struct crash *c)
{
    static const uint64_t spans[] = {8, 40, 200, 1000};
    static const enum sim_fault faults[] = {SIM_KILL,        SIM_KILL,       SIM_KILL,      SIM_POWER_CUT,
                                            SIM_POWER_CUT,   SIM_POWER_CUT,  SIM_EIO,       SIM_ENOSPC,
                                            SIM_SHORT_WRITE, SIM_SYNC_FAILS, SIM_READ_FAILS};

    if (c->how == CRASH_AT) { /* in whichever life it is */
        if (w->life == 1)
            sim_fault_at(w->sim, c->fault, c->at, false);
        return;
    }
    sim_fault_at(w->sim, SIM_NO_FAULT, 0, false);
    if (c->how == CRASH_RANDOM && w->crashes > 0 && rnd_chance(&w->rnd, 80)) {
        enum sim_fault fault = faults[rnd_below(&w->rnd, sizeof faults / sizeof faults[0])];
        uint64_t n = 1 + rnd_below(&w->rnd, spans[rnd_below(&w->rnd, 4)]);

        w->crashes--;
        sim_fault_at(w->sim, fault, n, false);
        say(w, "fault %d at operation %llu from here", (int)fault, (unsigned long long)n);
    }
}

static void bury(struct world *w)
{
    say(w, "dead");
    w->died = true;
    if (!w->calm && rnd_chance(&w->rnd, 30))
        sim_power_cut(w->sim);
    sim_advance(w->sim, rnd_chance(&w->rnd, 50) ? 0 : LEASE_MS + 1000);
}

static void one_life(struct world *w, const struct crash *c)
{
    struct tide_err err = {0};
    tide_store *store;

    w->life++;
    w->proc = sim_proc_start(w->sim);
    arm(w, c);
    store = open_store(w->proc, &err);
    if (store)
        live(w, store);
    else if (!is_trouble(w, err.code))
        world_wrong(w, "the store cannot be opened: %s", err.msg);
    tide_store_close(store);
    w->disturbed |= sim_proc_dead(w->proc) || sim_fault_fired(w->sim) || w->stopping;
    if (w->stopping && sim_fault_fired(w->sim))
        w->given_up = w->life;
    if (sim_proc_dead(w->proc))
        bury(w);
    else
        sim_proc_kill(w->proc);
}

/* ---- all of it ---- */

static bool make_graph(struct world *w)
{
    struct tide_err err;

    if (!tide_graph_parse(buf_cstr(&w->plan->json), w->plan->json.len, NULL, NULL, NULL, &w->graph, &err) &&
        !tide_graph_add_callback(w->graph, "work", work, w, &err))
        return true;
    world_wrong(w, "the graph cannot be made: %s", err.msg);
    return false;
}

bool world_run(struct plan *p, const struct spec *spec, uint64_t seed, const struct sim_image *image,
               const struct crash *crash, bool verbose, const struct end *want, uint64_t *ret_ops)
{
    struct world w = {
        .plan = p, .spec = spec, .verbose = verbose, .want = want, .rnd = {seed * 0x9e3779b97f4a7c15 + 11}};
    bool ok;

    w.sim = sim_new_from(seed, image);
    w.calm = crash->how != CRASH_RANDOM;
    w.crashes = crash->how == CRASH_RANDOM ? (int)rnd_below(&w.rnd, 7) : 0;
    if (make_graph(&w))
        while (!w.done && !w.failed && w.life < LIVES)
            one_life(&w, crash);
    if (!w.done && !w.failed)
        world_wrong(&w, "it does not come to its end");
    if (!w.failed)
        judge_end(&w, want);
    ok = !w.failed;
    if (ret_ops)
        *ret_ops = sim_op_count(w.sim);
    tide_graph_free(w.graph);
    end_done(&w.end);
    map_done(&w.effects, effect_free);
    map_done(&w.acks, free);
    sim_free(w.sim);
    return ok;
}

struct sim_image *world_image(void)
{
    struct sim *sim = sim_new(1);
    struct tide_err err = {0};
    struct sim_image *image;
    tide_session *s = NULL;
    tide_store *store = open_store(sim_proc_start(sim), &err);

    if (!store || tide_session_create(store, SESSION, NULL, &s, &err)) {
        printf("# no session on an empty disk: %s\n", err.msg);
        exit(1);
    }
    tide_session_close(s);
    tide_store_close(store);
    sim_store_trim(sim);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}
