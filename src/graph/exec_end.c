/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node is over: what it gave goes into the memory, the ways that leave it are chosen, and all of that is one piece of one
 * batch. Or it failed: it is tried again, a failure edge takes care of it, or the branch ends as the graph says.
 */
#include <inttypes.h>

#include "base/timefmt.h"
#include "graph/exec.h"
#include "session/retry.h"

static struct task *active(struct exec *x, const char *name)
{
    return map_get(&x->view->content.position.active, str_from(name));
}

/* ---- effects that must happen once are in the ledger too ---- */

static const char *call_id(struct exec *x, const char *name, int64_t visit)
{
    return arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit);
}

static struct json_out *open_effect(struct exec *x, const char *kind, const char *name, int64_t visit)
{
    struct json_out *o = exec_open(x, kind);

    json_out_kstr(o, STR("node"), str_from(name));
    json_out_kint(o, STR("visit"), visit);
    json_out_kstr(o, STR("call_id"), str_from(call_id(x, name, visit)));
    json_out_kstr(o, STR("tool"), str_from(name));
    return o;
}

static void put_effect_end(struct exec *x, const char *kind, const char *name, int64_t visit, const char *member,
                           struct str value)
{
    struct json_out *o = open_effect(x, kind, name, visit);

    json_out_kraw(o, str_from(member), value);
    exec_close(x);
}

static bool is_once(const struct job *j)
{
    return effect_is_once(j->x, &j->place, j->name, j->visit);
}

void end_effect_over(struct exec *x, const struct place *p, const char *name, int64_t visit, struct str output)
{
    if (!effect_is_once(x, p, name, visit))
        return;
    put_effect_end(x, "tool.completed", name, visit, "result", output);
    x->must_sync = x->must_hold = true;
}

static struct str error_json(struct exec *x, const char *code, const char *message)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    struct json_out o = json_out_to(&text);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("code"), str_from(code));
    json_out_kstr(&o, STR("message"), str_from(message));
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&text));
}

/* ---- complete ---- */

/* A stand-in for nodes whose end is not a worker's: routers, maps, graphs inside. */
static struct job shadow_name(struct exec *x, const struct place *p, const char *name)
{
    const struct task *t = active(x, name);

    return (struct job){.x = x,
                        .place = *p,
                        .name = (char *)(uintptr_t)name,
                        .branch =
                            t && t->branch ? (char *)(uintptr_t)arena_dup(&x->scratch, str_from(t->branch)).ptr : NULL,
                        .visit = t ? t->visit : 0,
                        .attempt = t ? t->attempt : 0,
                        .arena = ARENA_INIT};
}

static void put_values(struct job *j, struct values *v)
{
    struct json_out *o;

    if (!v->n)
        return;
    o = exec_open(j->x, "memory.set");
    json_out_kstr(o, STR("node"), str_from(j->name));
    json_out_kstr_opt(o, STR("frame"), j->place.frame);
    json_out_kstr_opt(o, STR("branch"), str_from(j->branch));
    json_out_kstr(o, STR("by"), STR("node"));
    json_out_kraw(o, STR("values"), buf_view(&v->json));
    exec_close(j->x);
    j->x->checkpoints_kept.changed += v->n;
}

static void put_completed(struct job *j, int64_t ms, bool deciding)
{
    struct json_out *o = exec_open_node(j->x, "node.completed", j->name, j->visit);

    json_out_kint(o, STR("ms"), ms);
    if (deciding)
        json_out_kbool(o, STR("deciding"), true);
    exec_close(j->x);
    exec_note(j->x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_END,
                                               .node = j->name,
                                               .type = spec_node_words[j->place.node->type],
                                               .visit = j->visit,
                                               .ms = ms});
}

/* Which way to continue is asked outside the lock: what it gave is kept until that is known. */
static void put_deciding(struct job *j, struct str output, int64_t ms)
{
    struct json_out *o = exec_open_node(j->x, "output.set", j->name, j->visit);

    json_out_key(o, STR("values"));
    json_out_begin(o, '{');
    json_out_kraw(o, STR("output"), output);
    json_out_end(o, '}');
    exec_close(j->x);
    put_completed(j, ms, true);
    checkpoint_after(j->x, &j->place, j->name, ms, NULL);
}

static void fail_job(struct job *j, const char *code, const char *message, bool again);

/*
 * It happened, and what it gave cannot be taken: that is kept, so that a resume can take it and never does it again. Gives
 * what to say about it.
 */
static const char *keep_result(struct job *j, const struct json *output)
{
    struct exec *x = j->x;
    const struct task *t = active(x, j->name);
    struct str result = end_without_secrets(x, output);

    j->told = true;
    j->kept = result.len + EVENT_OVERHEAD < x->s->store->max_record_bytes / 2;
    if (!t || t->visit != j->visit || !t->happened)
        put_effect_end(x, "tool.completed", j->name, j->visit, "result", j->kept ? result : STR("null"));
    return j->kept ? " (it happened, and its result is kept)" : " (it happened, and its result is too big to be kept)";
}

/* It ran and gave `output`, which cannot be taken: `parsed`, NULL when it is no JSON. */
static void refuse_result(struct job *j, const char *code, const struct json *parsed, const struct tide_err *err)
{
    bool happened = is_once(j) && parsed && active(j->x, j->name);

    fail_job(j, code, arena_printf(&j->x->scratch, "%s%s", err->msg, happened ? keep_result(j, parsed) : ""), false);
}

static void complete_job(struct job *j, struct str output, int64_t ms)
{
    struct exec *x = j->x;
    struct values v = {.x = x, .p = &j->place, .task = active(x, j->name), .json = BUF_INIT(SIZE_MAX / 4)};
    struct json *parsed = NULL, *set = NULL;
    const char *next;
    struct tide_err err = {0};
    enum tide_code code = json_parse(&x->scratch, output, NULL, &parsed, NULL, &err);
    bool late = x->timed_out && spec_has_edge(j->place.graph, j->place.node, SPEC_TIMEOUT);
    bool deciding = !late && spec_has_edge(j->place.graph, j->place.node, SPEC_LLM);
    bool seen = ways_have_expressions(&j->place); /* a large output that nobody looks at is not gone through again */

    code = code ? code : values_take(&v, parsed, &err);
    code = code ? code : end_check_size(x, j->place.frame, v.bytes, &err);
    if (!code)
        output = seen || deciding || is_once(j) ? end_without_secrets(x, parsed) : STR("{}");
    if (!code && v.n && seen)
        code = json_parse(&x->scratch, arena_dup(&x->scratch, buf_view(&v.json)), NULL, &set, NULL, &err);
    if (!code && !deciding)
        code = end_choose(j, output, set, STR(""), false, &err);
    if (!code && j->place.node->type == SPEC_ROUTER && !j->n_ways)
        code = tide_fail(&err, TIDE_NOT_FOUND, "no route is true, and there is no `otherwise`");
    if (code) {
        refuse_result(j,
                      code == TIDE_CONFLICT  ? "conflict"
                      : code == TIDE_TOO_BIG ? "too_big"
                                             : "choice",
                      parsed, &err);
    } else {
        put_values(j, &v);
        if (!(v.task && v.task->happened))
            end_effect_over(x, &j->place, j->name, j->visit, output);
        exec_keep(x, j->place.node, ms);
        if (deciding) {
            put_deciding(j, output, ms);
        } else {
            put_completed(j, ms, false);
            next = ways_put(j);
            checkpoint_after(x, &j->place, j->name, ms, next);
        }
    }
    buf_done(&v.json);
}

void end_complete(struct exec *x, const struct place *p, const char *name, struct str output, int64_t ms)
{
    struct job j = shadow_name(x, p, name);
    struct json *parsed = NULL;
    struct tide_err err;

    if (!p->map)
        complete_job(&j, output, ms);
    else if (end_check_size(x, p->frame, output.len, &err))
        refuse_result(&j, "too_big", json_parse(&x->scratch, output, NULL, &parsed, NULL, NULL) ? NULL : parsed, &err);
    else
        inner_item_over(x, p, name, output, ms);
    free(j.ways);
    arena_done(&j.arena);
}

void end_missing(struct exec *x, const struct place *p, const char *name, struct str key)
{
    struct job j = shadow_name(x, p, name);

    j.unbegun = true;
    fail_job(&j, "missing_input", arena_printf(&x->scratch, "it needs '%.*s', which is not set", STR_ARG(key)), false);
    free(j.ways);
    arena_done(&j.arena);
}

static void end_decided(struct exec *x, struct job *j)
{
    const char *next = ways_put(j);

    INVARIANT(j->deciding);
    exec_open_node(x, "node.decided", j->name, j->visit);
    json_out_kstr_opt(&x->draft.out, STR("next_node"), str_from(next));
    exec_close(x);
}

/* ---- failed ---- */

static bool may_help(const char *code)
{
    static const char *const never[] = {"not_found", "secret", "conflict", "missing_input", "template", "choice",
                                        "lua",       "limit",  "auth",     "quota",         "unsettled"};

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (strcmp(never[i], code) == 0)
            return false;
    return true;
}

static bool is_retried(const struct job *j, const struct task *t, const char *code, bool again)
{
    const struct spec_node *n = j->place.node;
    bool named = !n->retry_on.n && may_help(code);

    if (is_once(j) || n->type == SPEC_SUBGRAPH || n->type == SPEC_MAP)
        return false; /* a person decides; what is inside has attempts of its own */
    return again && (named || texts_have(&n->retry_on, str_from(code))) && t->attempt < n->retries;
}

/* It must happen once, and failed before its work began: so nobody need be asked whether it happened. */
static void put_unbegun(struct job *j)
{
    if (j->unbegun && is_once(j))
        json_out_kbool(&j->x->draft.out, STR("begun"), false);
}

void end_put_failed(struct job *j, struct str error, int64_t retry_at, const char *how)
{
    struct json_out *o = exec_open_node(j->x, "node.failed", j->name, j->visit);
    char when[TIME_TEXT_SIZE];

    json_out_kint(o, STR("attempt"), j->attempt);
    json_out_kraw(o, STR("error"), error);
    if (retry_at) {
        time_format(when, retry_at);
        json_out_kstr(o, STR("retry_at"), str_from(when));
    }
    if (how)
        json_out_kbool(o, str_from(how), true);
    if (j->kept)
        json_out_kbool(o, STR("happened"), true);
    put_unbegun(j);
    exec_close(j->x);
}

static void tell_failed(struct job *j, const char *message, int64_t delay_ms)
{
    exec_note(j->x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_FAILED,
                                               .node = j->name,
                                               .type = spec_node_words[j->place.node->type],
                                               .visit = j->visit,
                                               .attempt = (int)j->attempt + 1,
                                               .attempts = (int)j->place.node->retries + 1,
                                               .delay_ms = delay_ms,
                                               .text = message});
}

static void try_again(struct job *j, struct str error, const char *message)
{
    struct exec *x = j->x;
    struct env *env = x->s->store->env;
    int64_t base = x->opt->agent->retry_base_delay_ms ? x->opt->agent->retry_base_delay_ms : RETRY_BASE_MS_DEFAULT;
    int64_t delay;
    uint32_t random;

    env->ops->random(env, &random, sizeof random);
    delay = retry_delay_ms(base, (int)j->attempt, random, -1);
    end_put_failed(j, error, env_now_ms(env) + (delay > 0 ? delay : 1), NULL);
    tell_failed(j, message, delay);
}

/* Nobody takes care of it. */
static void fail_branch(struct job *j, struct str error, const char *code, const char *message)
{
    struct exec *x = j->x;
    bool go_on = j->place.graph->branch_failure == SPEC_CONTINUE;

    end_put_failed(j, error, 0, go_on ? "dropped" : NULL);
    tell_failed(j, message, -1);
    if (go_on)
        exec_notice(x, j->name, "the branch of %s ends here; the others continue", j->name);
    else
        inner_failed(x, j->place.frame, j->name, code, message);
}

/* A failure edge takes care of it, or the branch ends. */
static void leave_failed(struct job *j, struct str error, const char *code, const char *message)
{
    struct tide_err err;

    free(TAKE(j->ways)); /* of a choice that came too late */
    j->n_ways = 0;
    if (end_choose(j, STR("{}"), NULL, error, false, &err))
        exec_notice(j->x, j->name, "%s", err.msg);
    if (!j->n_ways) {
        fail_branch(j, error, code, message);
        return;
    }
    end_put_failed(j, error, 0, "handled");
    tell_failed(j, message, -1);
    ways_put(j);
}

static void fail_job(struct job *j, const char *code, const char *message, bool again)
{
    struct exec *x = j->x;
    const struct task *t = active(x, j->name);
    struct str error = error_json(x, code, message);

    if (!t)
        return;
    if (is_once(j) && !j->told) {
        json_out_kraw(open_effect(x, "tool.failed", j->name, j->visit), STR("error"), error);
        put_unbegun(j);
        exec_close(x);
    }
    if (is_retried(j, t, code, again)) {
        try_again(j, error, message);
        return;
    }
    map_set_text(&x->reasons, str_from(j->name), str_from(message));
    if (j->place.map)
        inner_item_failed(j, error, message);
    else
        leave_failed(j, error, code, message);
}

void end_failed(struct exec *x, const struct place *p, const char *name, const char *code, const char *message,
                bool again)
{
    struct job j = shadow_name(x, p, name);

    fail_job(&j, code, message, again);
    free(j.ways);
    arena_done(&j.arena);
}

/* ---- what a worker brought ---- */

static void block_job(struct exec *x, struct job *j)
{
    struct blocked *b = mem_zero(sizeof *b), **at = &x->blocked;

    b->name = mem_dup(str_from(j->name));
    b->wait = j->wait;
    while (*at)
        at = &(*at)->next;
    *at = b;
}

/* The model cannot be asked. What the node gave is kept, so nothing is recorded of it: a resume asks again, and only that. */
static void end_undecided(struct exec *x, struct job *j)
{
    tell_failed(j, j->err.msg, -1);
    x->halting = true;
    if (x->failed_node)
        return;
    x->failed_node = mem_dup(str_from(j->name));
    snprintf(x->failed_code, sizeof x->failed_code, "llm_decide");
    x->err = j->err;
    x->code = TIDE_FAILED;
}

/*
 * Its start is on disk, and it never began: nobody has to be asked whether it happened, and a resume begins it. Others than
 * those that must happen once run again anyway.
 */
void end_unbegun(struct exec *x, struct job *j)
{
    if (j->deciding || !is_once(j))
        return;
    open_effect(x, "tool.withdrawn", j->name, j->visit);
    exec_close(x);
    x->must_sync = x->must_hold = true;
}

/* It stays as begun. If nothing asked it to end, it has seen before us that the run is to be cancelled. */
static void end_cut(struct exec *x, struct job *j)
{
    if (j->unbegun)
        end_unbegun(x, j);
    if (j->code == TIDE_CANCELLED && !atomic_load(&j->halt))
        x->cancelled = x->halting = true;
}

/* The graph it was part of is over. What must happen once has come to something all the same, and the ledger says to what. */
static void end_late(struct exec *x, struct job *j)
{
    struct json *output = NULL;

    if (j->deciding || !is_once(j))
        return;
    if (j->unbegun)
        end_unbegun(x, j);
    else if (!j->code && j->ok && !json_parse(&x->scratch, buf_view(&j->result.output), NULL, &output, NULL, NULL))
        keep_result(j, output);
    else if (j->code || j->ok || j->result.unknown)
        put_effect_end(x, "tool.unknown", j->name, j->visit, "settled", STR("\"interrupted: outcome unknown\""));
    else
        put_effect_end(x, "tool.failed", j->name, j->visit, "error", error_json(x, j->result.code, j->result.message));
    x->must_sync = x->must_hold = true;
}

void end_job(struct exec *x, struct job *j)
{
    const struct task *t = active(x, j->name);
    int64_t ms = (exec_now_ns(x) - j->began_ns) / 1000000;

    checkpoint_tell_turn(j);
    if (!t || t->visit != j->visit)
        end_late(x, j);
    else if (j->code == TIDE_WAITING)
        block_job(x, j);
    else if (j->timed_out && (j->code == TIDE_CANCELLED || (!j->code && !j->ok)))
        end_failed(x, &j->place, j->name, "timeout",
                   arena_printf(&x->scratch, "not complete after %" PRId64 " ms", j->place.node->timeout_ms), true);
    else if (j->code == TIDE_CANCELLED || (!j->code && !j->ok && atomic_load(&j->halt)))
        end_cut(x, j);
    else if (j->code == TIDE_FAILED && j->deciding)
        end_undecided(x, j);
    else if (j->code)
        exec_break(x, &j->err);
    else if (j->deciding)
        end_decided(x, j);
    else if (j->ok)
        end_complete(x, &j->place, j->name, buf_view(&j->result.output), ms);
    else if (j->result.unknown && is_once(j))
        end_unsettled(x, j->name, j->result.message);
    else
        fail_job(j, j->result.code, j->result.message, !j->hopeless);
}

/* It must happen once, and was cut: nobody knows whether it happened. It stays as begun, and only a person continues. */
void end_unsettled(struct exec *x, const char *name, const char *message)
{
    const struct task *t = active(x, name);
    struct json_out *o = open_effect(x, "tool.unknown", name, t ? t->visit : 1);

    json_out_kstr(o, STR("settled"), STR("interrupted: outcome unknown"));
    exec_close(x);
    tide_fail_node(&x->err, TIDE_UNSETTLED, name, "must happen once and was interrupted%s%s", message[0] ? ": " : "",
                   message);
    x->code = TIDE_UNSETTLED;
    snprintf(x->failed_code, sizeof x->failed_code, "unsettled");
    free(x->failed_node);
    x->failed_node = mem_dup(str_from(name));
    x->halting = true;
}

/* Its start, for the ledger. */
void end_effect_started(struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    struct json_out *o;
    char key[33];

    if (!effect_is_once(x, p, name, visit))
        return;
    run_idempotency(key, x->run, call_id(x, name, visit));
    o = open_effect(x, "tool.started", name, visit);
    json_out_kstr(o, STR("effect"), STR("once"));
    json_out_kstr(o, STR("key"), str_from(key));
    exec_close(x);
}
