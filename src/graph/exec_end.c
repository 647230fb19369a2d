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

static bool is_once(const struct spec_node *n)
{
    return n->effect == SPEC_ONCE && n->type == SPEC_FUNCTION;
}

static struct json_out *open_effect(struct exec *x, const char *kind, const char *name, int64_t visit)
{
    struct json_out *o = exec_open(x, kind);

    json_out_kstr(o, STR("node"), str_from(name));
    json_out_kint(o, STR("visit"), visit);
    json_out_kstr(o, STR("call_id"), str_from(arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit)));
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

/* ---- what it gave ---- */

struct values {
    struct exec *x;
    const struct place *p;
    const struct task *task;
    struct buf json; /* what is stored */
    int64_t n;
    size_t bytes;
};

static bool is_promised(const struct spec_node *n, struct str key)
{
    for (size_t i = 0; i < n->outputs.n; i++)
        if (str_eq(n->outputs.at[i], key))
            return true;
    return false;
}

/* Whether a branch that runs beside this one has set it. */
static bool is_beside(struct values *v, struct str key)
{
    const struct map *writers = &v->x->view->content.position.writers;
    const char *name = arena_printf(&v->x->scratch, "%.*s\x1f%.*s", STR_ARG(v->p->frame), STR_ARG(key));
    const char *writer = writers->live ? map_get(writers, str_from(name)) : NULL;
    struct str ours = str_from(v->task ? v->task->branch : NULL);

    return writer && !branch_is_within(ours, str_from(writer)) && !branch_is_within(str_from(writer), ours);
}

static enum tide_code resolve(struct values *v, struct str key, struct str now, struct str *ret, struct tide_err *err)
{
    const struct map *scope = position_scope(&v->x->view->content, v->p->frame, false);
    const struct spec_rule *rule = spec_conflict_rule(v->p->graph, key);
    const char *before = scope ? map_get(scope, key) : NULL;

    *ret = now;
    if (!before || !is_beside(v, key))
        return TIDE_OK;
    return choose_value(rule ? (enum spec_conflict)rule->rule : SPEC_CONFLICT_ERROR, key, str_from(before), now,
                        &v->x->scratch, ret, err);
}

static enum tide_code take_values(struct values *v, const struct json *output, struct tide_err *err)
{
    struct json_out o = json_out_to(&v->json);
    struct str key, value;

    json_out_begin(&o, '{');
    for (const struct json *m = output->first; m; m = m->next) {
        key = json_key_text(&v->x->scratch, m);
        if (!is_promised(v->p->node, key))
            continue;
        if (exec_is_excluded(v->x, key)) {
            map_set_text(&v->x->secrets, key, json_source(m));
            continue;
        }
        if (resolve(v, key, json_source(m), &value, err))
            return err->code;
        json_out_kraw(&o, key, value);
        v->bytes += key.len + value.len;
        v->n++;
    }
    json_out_end(&o, '}');
    return TIDE_OK;
}

/* What may be stored of it, and seen by conditions and models. */
struct str end_without_secrets(struct exec *x, const struct json *output)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    bool found = false;

    for (const struct json *m = output->type == JSON_OBJECT ? output->first : NULL; m && !found; m = m->next)
        found = exec_is_excluded(x, json_key_text(&x->scratch, m));
    if (!found)
        return json_source(output);
    json_out_begin(&o, '{');
    for (const struct json *m = output->first; m; m = m->next)
        if (!exec_is_excluded(x, json_key_text(&x->scratch, m)))
            json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&text));
}

static size_t bytes_of(const struct map *scope)
{
    size_t n = 0;

    for (struct map_entry *e = scope ? map_next(scope, NULL) : NULL; e; e = map_next(scope, e))
        n += e->key_len + strlen(e->value);
    return n;
}

/* All memories together, and only when what was set since the last count could have filled one. */
enum tide_code end_check_size(struct exec *x, struct str frame, size_t more, struct tide_err *err)
{
    struct content *c = &x->view->content;
    size_t before;

    x->bytes_set += more;
    if (x->bytes_known && x->bytes_counted + x->bytes_set <= EXEC_MEMORY_MAX)
        return TIDE_OK;
    before = bytes_of(position_scope(c, frame, false));
    if (before + more > EXEC_MEMORY_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "the memory would hold %zu bytes, more than %zu: keep big things in files",
                         before + more, EXEC_MEMORY_MAX);
    x->bytes_known = true;
    x->bytes_set = more;
    x->bytes_counted = bytes_of(&c->memory);
    for (struct map_entry *e = map_next(&c->position.scopes, NULL); e; e = map_next(&c->position.scopes, e))
        x->bytes_counted += bytes_of(e->value);
    return TIDE_OK;
}

/* ---- where it goes on ---- */

static void on_problem(void *arg, const struct spec_edge *edge, const char *path, const char *what)
{
    struct job *j = arg;
    struct exec *x = j->x;
    size_t len = strlen(path);
    struct json_out *o = exec_open(x, "edge.refused");

    json_out_kstr(o, STR("from"), str_from(j->name));
    if (edge) {
        json_out_kstr(o, STR("to"), edge->to);
        json_out_kstr_opt(o, STR("edge"), edge->id);
    }
    json_out_kstr(o, STR("reason"), str_from(what));
    exec_close(x);
    if (edge && len > 5 && strcmp(path + len - 5, ".when") == 0)
        exec_notice(x, j->name, "edge %s → %.*s not taken: %s (%s)", j->name, STR_ARG(edge->to), what, path);
    else
        exec_notice(x, j->name, "%s: %s", path, what);
}

/* A node that was entered as often as it may be. */
static bool is_closed(void *arg, size_t to)
{
    struct job *j = arg;
    const struct content *c = &j->x->view->content;
    const struct spec_node *n = &j->place.graph->nodes.at[to];
    const char *name = place_beside(&j->x->scratch, j->place.frame, n->id);
    const int64_t *visits = map_get(&c->visits, str_from(name));
    struct json_out *o;

    if (!n->max_visits || (visits ? *visits : 0) < n->max_visits || map_get(&c->position.ready, str_from(name)))
        return false; /* one that is to be entered is entered once, however many come to it */
    o = exec_open(j->x, "edge.refused");
    json_out_kstr(o, STR("from"), str_from(j->name));
    json_out_kstr(o, STR("to"), str_from(name));
    json_out_kstr(o, STR("reason"), STR("max_visits"));
    exec_close(j->x);
    exec_notice(j->x, j->name, "%s was entered as often as it may be (max_visits %" PRId64 ")", name, n->max_visits);
    return true;
}

static enum tide_code ask_model(void *arg, const struct spec_edge *edge, int *ret_yes, struct tide_err *err)
{
    struct job *j = arg;

    return job_decide(j, edge, ret_yes, err);
}

static struct str result_json(struct exec *x, const char *name, int64_t visit, int64_t attempt, struct str error)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    struct json_out o = json_out_to(&text);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("status"), error.len ? STR("failure") : STR("success"));
    json_out_kbool(&o, STR("success"), !error.len);
    json_out_kstr(&o, STR("node"), str_from(name));
    json_out_kint(&o, STR("visit"), visit);
    json_out_kint(&o, STR("attempt"), attempt);
    if (error.len)
        json_out_kraw(&o, STR("error"), error);
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&text));
}

/* Only then is all of the memory written out for them. */
static bool has_expressions(const struct spec_graph *g, const struct spec_node *n)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (g->edges.at[n->first_edge + i].when.expr || g->edges.at[n->first_edge + i].map.n)
            return true;
    return n->routes.n > 0;
}

/* `values`: what the node sets, seen by conditions as if it were in the memory already. */
enum tide_code end_choose(struct job *j, struct str output, const struct json *values, struct str error, bool ask,
                          struct tide_err *err)
{
    struct exec *x = j->x;
    AUTO(buf_done) struct buf memory = BUF_INIT(SIZE_MAX / 4);
    struct choose c = {.graph = j->place.graph,
                       .node = j->place.node,
                       .failed = error.len > 0,
                       .output = output,
                       .decide = ask ? ask_model : NULL,
                       .problem = on_problem,
                       .closed = is_closed,
                       .arg = j,
                       .arena = &j->arena};

    if (!j->place.node->n_arcs || j->place.map)
        return TIDE_OK;
    if (has_expressions(j->place.graph, j->place.node)) {
        place_memory(x, j->place.frame, values, false, &memory);
        c.memory = buf_view(&memory);
        c.result = arena_dup(&j->arena, result_json(x, j->name, j->visit, j->attempt, error)); /* beyond the lock */
    }
    return choose_ways(&c, &j->ways, &j->n_ways, err);
}

static void put_way(struct job *j, const struct choice *way, size_t i)
{
    struct exec *x = j->x;
    const struct spec_node *to = &j->place.graph->nodes.at[way->to];
    const char *target = place_beside(&x->scratch, j->place.frame, to->id);
    struct str local = place_local(str_from(j->name));
    struct json_out *o = exec_open(x, "edge.taken");

    json_out_kstr(o, STR("from"), str_from(j->name));
    json_out_kstr(o, STR("to"), str_from(target));
    if (way->edge)
        json_out_kstr_opt(o, STR("edge"), way->edge->id);
    if (j->n_ways > 1)
        json_out_kstr(o, STR("branch"),
                      str_from(arena_printf(&x->scratch, "%s%s%.*s#%" PRId64 ":%zu", j->branch ? j->branch : "",
                                            j->branch && j->branch[0] ? "/" : "", STR_ARG(local), j->visit, i)));
    else
        json_out_kstr_opt(o, STR("branch"), str_from(j->branch));
    if (way->values.len)
        json_out_kraw(o, STR("values"), way->values);
    exec_close(x);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_EDGE, .node = j->name, .to = target});
}

static const char *put_ways(struct job *j)
{
    for (size_t i = 0; i < j->n_ways; i++)
        put_way(j, &j->ways[i], i);
    for (size_t i = 0; i < j->n_ways; i++) /* behind all of them: from between two the others would be lost */
        marks_edge(j->x, j->name,
                   place_beside(&j->x->scratch, j->place.frame, j->place.graph->nodes.at[j->ways[i].to].id));
    return j->n_ways ? place_beside(&j->x->scratch, j->place.frame, j->place.graph->nodes.at[j->ways[0].to].id) : NULL;
}

/* ---- complete ---- */

/* A stand-in for nodes whose end is not a worker's: routers, maps, graphs inside. */
static struct job shadow(struct exec *x, const struct place *p, const char *name)
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

static bool asks_model(const struct spec_graph *g, const struct spec_node *n)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (g->edges.at[n->first_edge + i].on == SPEC_LLM)
            return true;
    return false;
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
    j->x->marks.changed += v->n;
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

/* Which way to go on is asked outside the lock: what it gave is kept until that is known. */
static void put_deciding(struct job *j, struct str output, int64_t ms)
{
    struct json_out *o = exec_open_node(j->x, "output.set", j->name, j->visit);

    json_out_key(o, STR("values"));
    json_out_begin(o, '{');
    json_out_kraw(o, STR("output"), output);
    json_out_end(o, '}');
    exec_close(j->x);
    put_completed(j, ms, true);
    marks_after(j->x, &j->place, j->name, ms, NULL);
}

static void complete(struct job *j, struct str output, int64_t ms)
{
    struct exec *x = j->x;
    struct values v = {.x = x, .p = &j->place, .task = active(x, j->name), .json = BUF_INIT(SIZE_MAX / 4)};
    struct json *parsed = NULL, *set = NULL;
    const char *next;
    struct tide_err err = {TIDE_OK, ""};
    enum tide_code code = json_parse(&x->scratch, output, NULL, &parsed, NULL, &err);
    bool deciding = asks_model(j->place.graph, j->place.node);

    code = code ? code : take_values(&v, parsed, &err);
    code = code ? code : end_check_size(x, j->place.frame, v.bytes, &err);
    output = code ? output : end_without_secrets(x, parsed);
    if (!code && v.n)
        code = json_parse(&x->scratch, arena_dup(&x->scratch, buf_view(&v.json)), NULL, &set, NULL, &err);
    if (!code && !deciding)
        code = end_choose(j, output, set, STR(""), false, &err);
    if (!code && j->place.node->type == SPEC_ROUTER && !j->n_ways)
        code = tide_fail(&err, TIDE_NOT_FOUND, "no route holds, and there is no `otherwise`");
    if (code) {
        end_failed(x, &j->place, j->name,
                   code == TIDE_CONFLICT  ? "conflict"
                   : code == TIDE_TOO_BIG ? "too_big"
                                          : "choice",
                   err.msg, false);
    } else {
        put_values(j, &v);
        if (is_once(j->place.node))
            put_effect_end(x, "tool.completed", j->name, j->visit, "result", output);
        exec_keep(x, j->place.node, ms);
        if (deciding) {
            put_deciding(j, output, ms);
        } else {
            put_completed(j, ms, false);
            next = put_ways(j);
            marks_after(x, &j->place, j->name, ms, next);
        }
    }
    buf_done(&v.json);
}

void end_complete(struct exec *x, const struct place *p, const char *name, struct str output, int64_t ms)
{
    struct job j = shadow(x, p, name);

    if (p->map)
        inner_item_over(x, p, name, output, ms);
    else
        complete(&j, output, ms);
    free(j.ways);
    arena_done(&j.arena);
}

void end_decided(struct exec *x, struct job *j)
{
    const char *next = put_ways(j);

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

static bool is_retried(const struct spec_node *n, const struct task *t, const char *code, bool again)
{
    bool named = !n->retry_on.n && may_help(code);

    if (is_once(n) || n->type == SPEC_SUBGRAPH || n->type == SPEC_MAP)
        return false; /* a person decides; what is inside has attempts of its own */
    for (size_t i = 0; i < n->retry_on.n; i++)
        named |= str_eq(n->retry_on.at[i], str_from(code));
    return again && named && t->attempt < n->retries;
}

static void put_failed(struct job *j, struct str error, int64_t retry_at, const char *how)
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
    int64_t base = x->opt->agent && x->opt->agent->retry_base_delay_ms ? x->opt->agent->retry_base_delay_ms
                                                                       : RETRY_BASE_MS_DEFAULT;
    int64_t delay;
    uint32_t random;

    env->ops->random(env, &random, sizeof random);
    delay = retry_delay_ms(base, (int)j->attempt, random, -1);
    put_failed(j, error, env_now_ms(env) + (delay > 0 ? delay : 1), NULL);
    tell_failed(j, message, delay);
}

/* Nobody takes care of it. */
static void fail_branch(struct job *j, struct str error, const char *code, const char *message)
{
    struct exec *x = j->x;
    bool go_on = j->place.graph->branch_failure == SPEC_CONTINUE;

    put_failed(j, error, 0, go_on ? "dropped" : NULL);
    tell_failed(j, message, -1);
    if (go_on)
        exec_notice(x, j->name, "the branch of %s ends here; the others go on", j->name);
    else
        inner_failed(x, j->place.frame, j->name, code, message);
}

void end_failed(struct exec *x, const struct place *p, const char *name, const char *code, const char *message,
                bool again)
{
    struct job j = shadow(x, p, name);
    struct task *t = active(x, name);
    struct str error = error_json(x, code, message);
    struct tide_err err;

    if (!t)
        return;
    if (is_once(p->node))
        put_effect_end(x, "tool.failed", name, j.visit, "error", error);
    if (is_retried(p->node, t, code, again)) {
        try_again(&j, error, message);
    } else if (p->map) {
        map_set_text(&x->reasons, str_from(name), str_from(message));
        inner_item_failed(x, p, name, error, message);
    } else {
        map_set_text(&x->reasons, str_from(name), str_from(message));
        if (end_choose(&j, STR("{}"), NULL, error, false, &err))
            exec_notice(x, name, "%s", err.msg);
        if (j.n_ways) {
            put_failed(&j, error, 0, "handled");
            tell_failed(&j, message, -1);
            put_ways(&j);
        } else {
            fail_branch(&j, error, code, message);
        }
    }
    free(j.ways);
    arena_done(&j.arena);
}

/* ---- what a worker brought ---- */

static void block(struct exec *x, struct job *j)
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

void end_job(struct exec *x, struct job *j)
{
    const struct task *t = active(x, j->name);
    int64_t ms = (exec_now_ns(x) - j->began_ns) / 1000000;

    if (!t || t->visit != j->visit) /* the graph it was part of is over */
        return;
    if (j->code == TIDE_WAITING)
        block(x, j);
    else if (j->timed_out && (j->code == TIDE_CANCELLED || (!j->code && !j->ok)))
        end_failed(x, &j->place, j->name, "timeout",
                   arena_printf(&x->scratch, "not complete after %" PRId64 " ms", j->place.node->timeout_ms), true);
    else if (j->code == TIDE_CANCELLED || (!j->code && !j->ok && atomic_load(&j->halt)))
        return; /* cut: it stays as begun */
    else if (j->code == TIDE_FAILED && j->deciding)
        end_undecided(x, j);
    else if (j->code)
        exec_break(x, &j->err);
    else if (j->deciding)
        end_decided(x, j);
    else if (j->ok)
        end_complete(x, &j->place, j->name, buf_view(&j->result.output), ms);
    else if (j->result.unknown && is_once(j->place.node))
        end_unsettled(x, j->name, j->result.message);
    else
        end_failed(x, &j->place, j->name, j->result.code, j->result.message, !j->hopeless);
}

/* It must happen once, and was cut: nobody knows whether it happened. It stays as begun, and only a person goes on. */
void end_unsettled(struct exec *x, const char *name, const char *message)
{
    const struct task *t = active(x, name);
    struct json_out *o = open_effect(x, "tool.unknown", name, t ? t->visit : 1);

    json_out_kstr(o, STR("settled"), STR("cut: nobody knows whether it happened"));
    exec_close(x);
    tide_fail(
        &x->err, TIDE_UNSETTLED,
        "node '%s' must happen once and was cut%s%s: find out whether it happened, then `tidemark sessions resume "
        "%s --happened %s` or `--retry %s`",
        name, message[0] ? ": " : "", message, x->s->head.id, name, name);
    x->code = TIDE_UNSETTLED;
    snprintf(x->failed_code, sizeof x->failed_code, "unsettled");
    free(x->failed_node);
    x->failed_node = mem_dup(str_from(name));
    x->halting = true;
}

/* Its start, for the ledger. */
void end_effect_started(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *key)
{
    struct json_out *o;

    if (!is_once(p->node))
        return;
    o = open_effect(x, "tool.started", name, visit);
    json_out_kstr(o, STR("effect"), STR("once"));
    json_out_kstr(o, STR("key"), str_from(key));
    exec_close(x);
}
