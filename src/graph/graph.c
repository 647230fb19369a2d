/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of graphs: a graph as a handle, callbacks, running it, continuing with it, stopping it. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "graph/exec.h"
#include "graph/resume.h"
#include "session/redact.h"
#include "session/action.h"

/* ---- a graph ---- */

struct hearing {
    tide_problem_fn *fn;
    void *arg;
};

static void on_problem(void *arg, const struct problem *p)
{
    const struct hearing *h = arg;

    if (h->fn && !p->warning)
        h->fn(h->arg, p->path, p->what);
}

tide_graph *graph_of(struct spec *spec)
{
    struct tide_graph *g = mem_zero(sizeof *g);

    g->spec = spec;
    hex_encode(g->digest, spec->digest, DIGEST_SIZE);
    return g;
}

enum tide_code tide_graph_parse(const char *json, size_t len, const char *dir, tide_problem_fn *problem, void *arg,
                                tide_graph **ret_graph, struct tide_err *err)
{
    struct hearing h = {problem, arg};
    const struct spec_options opt = {dir, on_problem, &h};
    struct spec *spec;

    ERR_LOCAL(err);
    if (spec_parse((struct str){json ? json : "", len}, &opt, &spec, err))
        return err->code;
    *ret_graph = graph_of(spec);
    return TIDE_OK;
}

void tide_graph_free(tide_graph *g)
{
    if (!g)
        return;
    spec_free(g->spec);
    map_done(&g->callbacks, free);
    free(g);
}

const char *tide_graph_id(const tide_graph *g)
{
    return g->spec->graph->id.ptr;
}

const char *tide_graph_digest(const tide_graph *g)
{
    return g->digest;
}

enum tide_code tide_graph_add_callback(tide_graph *g, const char *name, tide_node_fn *fn, void *arg,
                                       struct tide_err *err)
{
    struct callback *c;

    ERR_LOCAL(err);
    if (!name || !name[0] || !fn)
        return tide_fail(err, TIDE_INVALID, "a callback needs a name and a function");
    if (map_get(&g->callbacks, str_from(name)))
        return tide_fail(err, TIDE_EXISTS, "callback '%s' is registered already", name);
    c = mem_alloc(sizeof *c);
    *c = (struct callback){fn, arg};
    map_put(&g->callbacks, str_from(name), c);
    return TIDE_OK;
}

void tide_graph_stop(tide_graph *g)
{
    atomic_store(&g->stop, GRAPH_BY_PERSON);
}

void tide_graph_shutdown(tide_graph *g)
{
    int expected = GRAPH_GO_ON;

    atomic_compare_exchange_strong(&g->stop, &expected, GRAPH_BY_SHUTDOWN);
}

/* ---- the one that is stored ---- */

struct stored {
    const char *dir; /* where its programs are looked for */
    struct tide_graph *graph;
    struct tide_err *err;
    enum tide_code code;
};

static int take_graph(void *arg, const struct event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    const struct json_limits deeper = {0, JSON_MAX_DEPTH + 16};
    struct stored *s = arg;
    const struct json *v;
    struct json *body;
    struct spec *spec;

    s->code = json_parse(&a, ev->body, &deeper, &body, NULL, s->err);
    v = s->code ? NULL : json_get(body, STR("graph"));
    if (!v)
        return 1;
    json_write(&text, v);
    s->code = spec_parse(buf_view(&text), NULL, &spec, s->err);
    if (s->code)
        return 1;
    spec->dir = arena_text(&spec->arena, s->dir);
    s->graph = graph_of(spec);
    s->graph->redacted = redact_is_marked(body, buf_view(&text));
    return 1;
}

enum tide_code graph_read(struct store *store, const struct state *state, tide_graph **ret_graph, struct tide_err *err)
{
    const struct position *p = &state->content.position;
    struct stored got = {.dir = p->graph_dir, .err = err};
    struct head owner;
    enum tide_code code;

    if (!p->graph_seq)
        return tide_fail_session(err, TIDE_NOT_FOUND, state->session, "never ran a graph");
    code = store_head(store, str_from(p->graph_session), &owner, err); /* its own log may be damaged further on */
    code = code ? code : store_read(store, &owner, p->graph_seq, p->graph_seq, take_graph, &got, err);
    code = code ? code : got.code;
    if (!code && !got.graph)
        code = tide_fail(err, TIDE_NOT_FOUND, "the graph of session '%s' is not in its log", state->session);
    if (!code)
        *ret_graph = got.graph;
    return code;
}

struct loading {
    tide_session *s;
    tide_graph **ret_graph;
};

static enum tide_code try_load(void *loading, struct tide_err *err)
{
    const struct loading *l = loading;
    enum tide_code code = session_sync(l->s, err);

    return code ? code : graph_read(l->s->store, l->s->state, l->ret_graph, err);
}

enum tide_code tide_graph_load(tide_session *s, tide_graph **ret_graph, struct tide_err *err)
{
    struct loading l = {s, ret_graph};

    ERR_LOCAL(err);
    return s->patience.told ? session_hold(s, try_load, &l, err) : try_load(&l, err);
}

/* ---- values that are stored nowhere ---- */

bool exec_is_excluded(const struct exec *x, struct str key)
{
    return texts_have(&x->checkpoints.exclude_memory_keys, key);
}

enum tide_code exec_hide(struct exec *x, struct str key, struct str json, struct tide_err *err)
{
    map_set_text(&x->secrets, key, json);
    return redact_hold_json(x->s->store, &x->s->hidden, key, json, err);
}

static void exclude_key(struct exec *x, struct str key);

/* Only functions are given what is stored nowhere. */
static enum tide_code refuse_readers(const struct spec_graph *g, struct str key, struct tide_err *err)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            bool passes = n->type == SPEC_FUNCTION || n->type == SPEC_SUBGRAPH || n->type == SPEC_MAP;

            for (size_t k = 0; !passes && k < n->inputs.n; k++)
                if (str_eq(n->inputs.at[k], key)) {
                    tide_fail(err, TIDE_INVALID,
                              "memory: '%.*s' holds a known secret, and node '%.*s' needs it: only functions are "
                              "given secrets (if it is none, name its variable in TIDEMARK_NOT_SECRET)",
                              STR_ARG(key), STR_ARG(g->nodes.at[i].id));
                    return tide_about(err, TIDE_SUBJECT_KEY, n->inputs.at[k].ptr);
                }
            if (n->graph && refuse_readers(n->graph, key, err))
                return err->code;
        }
    return TIDE_OK;
}

enum tide_code exec_take_values(struct exec *x, struct str json, struct buf *ret_stored, struct tide_err *err)
{
    struct json_out o = json_out_to(ret_stored);
    struct json *v;

    if (json_parse(&x->scratch, json, NULL, &v, NULL, err))
        return tide_wrap(err, "memory");
    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "memory: it must be a JSON object");
    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next) {
        struct str key = json_key_text(&x->scratch, m), clean = json_source(m);

        if (redact_json(x->s->store, &x->scratch, &clean)) { /* not replaced, since nodes are to work with it */
            if (!exec_is_excluded(x, key) && refuse_readers(x->graph, key, err))
                return err->code;
            exclude_key(x, key);
        }
        if (!exec_is_excluded(x, key))
            json_out_kraw(&o, key, json_source(m));
        else if (exec_hide(x, key, json_source(m), err))
            return tide_wrap(err, "memory");
    }
    json_out_end(&o, '}');
    if (ret_stored->len > EXEC_MEMORY_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "memory: %zu bytes, more than %zu: keep big data in files", ret_stored->len,
                         EXEC_MEMORY_MAX);
    return TIDE_OK;
}

/* ---- running ---- */

static const char *working_dir(struct exec *x)
{
    struct str stored = info_text(&x->scratch, &x->s->state->info, STR("working_dir"));
    char here[PATH_MAX];

    if (x->opt->working_dir)
        return x->opt->working_dir;
    if (stored.len)
        return arena_dup(&x->g->spec->arena, stored).ptr;
    return getcwd(here, sizeof here) ? arena_dup(&x->g->spec->arena, str_from(here)).ptr : ".";
}

/* The state as it is, and where programs run. */
enum tide_code exec_open_view(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);

    state_encode(&text, x->s->state, STATE_ALL);
    x->dir = working_dir(x);
    x->program_dir = x->g->spec->dir;
    return state_decode(buf_view(&text), &x->view, err);
}

static enum tide_code check_callbacks(const struct tide_graph *g, const struct spec_graph *in, struct tide_err *err)
{
    for (size_t i = 0; i < in->nodes.n; i++) {
        const struct spec_node *n = &in->nodes.at[i];

        while (n->type == SPEC_MAP && n->node)
            n = n->node;
        if (n->type == SPEC_FUNCTION && n->callback.len && !map_get(&g->callbacks, n->callback))
            return tide_fail_node(err, TIDE_INVALID, in->nodes.at[i].id.ptr,
                                  "calls '%.*s', and no callback of this name is registered: "
                                  "tide_graph_add_callback(), or give it a program",
                                  STR_ARG(n->callback));
        if (n->type == SPEC_SUBGRAPH && n->graph && check_callbacks(g, n->graph, err))
            return err->code;
    }
    return TIDE_OK;
}

static void exclude_key(struct exec *x, struct str key)
{
    struct spec_texts *keys = &x->checkpoints.exclude_memory_keys;
    struct str *more;

    if (exec_is_excluded(x, key))
        return;
    more = arena_alloc(&x->g->spec->arena, (keys->n + 1) * sizeof *more);
    if (keys->n)
        memcpy(more, keys->at, keys->n * sizeof *more);
    more[keys->n++] = arena_dup(&x->g->spec->arena, key);
    keys->at = more;
}

/* What a graph inside says of itself that it stores nowhere is stored nowhere. */
static void exclude_inner(struct exec *x, const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            const struct json *own = n->graph ? json_get(n->graph->json, STR("checkpoints")) : NULL;
            const struct spec_texts *keys = n->graph ? &n->graph->checkpoints.exclude_memory_keys : NULL;

            for (size_t k = 0; own && json_get(own, STR("exclude_memory_keys")) && k < keys->n; k++)
                exclude_key(x, keys->at[k]);
            if (n->graph)
                exclude_inner(x, n->graph);
        }
}

static enum tide_code refuse_stored(struct str key, struct tide_err *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "'%.*s' is never to be stored, and this graph stores it: let a function set it, or give it when "
                     "it runs",
                     STR_ARG(key));
}

/* `graph check` looks at what the graph itself excludes; a run may exclude more. */
static enum tide_code check_stored(const struct exec *x, const struct spec_graph *g, struct tide_err *err)
{
    for (const struct json *m = g->memory ? g->memory->first : NULL; m; m = m->next)
        if (exec_is_excluded(x, json_key_text(&x->g->spec->arena, m)))
            return refuse_stored(json_key_text(&x->g->spec->arena, m), err);
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            bool stores = n->type == SPEC_EVENT_LOOP || n->type == SPEC_HUMAN_INPUT || n->type == SPEC_MAP;

            for (size_t k = 0; stores && k < n->outputs.n; k++)
                if (exec_is_excluded(x, n->outputs.at[k]))
                    return refuse_stored(n->outputs.at[k], err);
            if (n->graph && check_stored(x, n->graph, err))
                return err->code;
        }
    for (size_t i = 0; i < g->edges.n; i++)
        for (size_t k = 0; k < g->edges.at[i].map.n; k++)
            if (exec_is_excluded(x, g->edges.at[i].map.at[k].key))
                return refuse_stored(g->edges.at[i].map.at[k].key, err);
    return TIDE_OK;
}

static enum tide_code take_checkpoints(struct exec *x, const char *said, struct tide_err *err)
{
    x->said = said;
    if (said && spec_change_checkpoints(x->g->spec, str_from(said), &x->checkpoints, err))
        return err->code;
    exclude_inner(x, x->graph);
    return check_stored(x, x->graph, err);
}

enum tide_code exec_inherit(struct exec *x, struct tide_err *err)
{
    const char *before = x->s->state->content.position.checkpoints;
    AUTO(buf_done) struct buf both = BUF_INIT((size_t)1 << 24);

    if (!before)
        return TIDE_OK;
    if (spec_merge_members(str_from(before), str_from(x->said ? x->said : "{}"), &both, err))
        return tide_wrap(err, "checkpoints");
    x->checkpoints = x->graph->checkpoints;
    return take_checkpoints(x, arena_dup(&x->g->spec->arena, buf_view(&both)).ptr, err);
}

enum tide_code graph_hide_memory(tide_store *store, struct hidden_values *held, tide_graph *g,
                                 const struct tide_graph_options *opt, struct tide_err *err)
{
    AUTO(mem_freep) struct exec *x = mem_zero(sizeof *x);
    struct json *v;

    *x = (struct exec){.g = g, .graph = g->spec->graph, .checkpoints = g->spec->graph->checkpoints};
    if (take_checkpoints(x, opt->checkpoints, err))
        return err->code;
    if (!opt->memory || json_parse(&g->spec->arena, str_from(opt->memory), NULL, &v, NULL, NULL))
        return TIDE_OK;
    for (const struct json *m = v->first; v->type == JSON_OBJECT && m; m = m->next) {
        struct str key = json_key_text(&g->spec->arena, m);

        if (exec_is_excluded(x, key) && redact_hold_json(store_of(store), held, key, json_source(m), err))
            return tide_wrap(err, "memory");
    }
    return TIDE_OK;
}

/* How it is continued with. */
static enum tide_code graph_hint(struct tide_err *err, const char *session, unsigned wants)
{
    const struct action resume = {.action = TIDE_ACTION_RESUME, .kind = TIDE_KIND_GRAPH, .wants = wants};

    return action_hint(err, session, &resume);
}

/* What a map says of its items counts for them, also where it is more than the graph has for branches. */
static int64_t widest(const struct spec_graph *g, int64_t most)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            most = n->type == SPEC_MAP && n->parallel > most ? n->parallel : most;
            most = n->graph ? widest(n->graph, most) : most;
        }
    return most;
}

enum tide_code exec_begin(struct exec *x, tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                          struct tide_err *err)
{
    int64_t branches = opt->threads > 0 ? opt->threads : g->spec->graph->parallel;
    int64_t capacity = opt->threads > 0 ? opt->threads : widest(g->spec->graph, branches);

    *x = (struct exec){.g = g, .graph = g->spec->graph, .s = s, .opt = opt, .draft = DRAFT_INIT};
    exec_init(x);
    x->checkpoints = x->graph->checkpoints;
    if (!s->store->env->threads && opt->threads <= 0) /* one worker: several only if an option asks for them */
        capacity = 1;
    x->capacity = capacity > 1024 ? 1024 : (int)capacity;
    x->branches = branches < x->capacity ? (int)branches : x->capacity;
    x->workers = mem_array((size_t)x->capacity, sizeof *x->workers);
    if (g->redacted) {
        tide_fail(err, TIDE_INVALID,
                  "the graph of session '%s' contained a secret, which is not stored: the stored graph is not run: "
                  "give the graph again",
                  s->head.id);
        return graph_hint(err, s->head.id, ACTION_GRAPH);
    }
    if (check_callbacks(g, x->graph, err))
        return err->code;
    return take_checkpoints(x, opt->checkpoints, err);
}

int exec_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct exec *x = arg;
    bool held = why && !x->opt->on_store_error_continue;
    char text[sizeof why->msg + 100];
    bool before = atomic_exchange(&x->in_trouble, why != NULL);

    (void)waited_ms;
    if (why)
        snprintf(text, sizeof text, "%s: %s", why->msg,
                 held ? "the run pauses and continues by itself when the store can be written"
                      : "pure work continues in memory until the store can be written (durability: degraded)");
    if (before != (why != NULL)) /* once, however many are held */
        exec_tell_now(x, why ? text : "the store can be written again: continuing", held, why);
    return atomic_load(&x->g->stop) != GRAPH_GO_ON;
}

struct tide_run_options exec_run_options(struct exec *x, const char *fields)
{
    return (struct tide_run_options){.size = sizeof(struct tide_run_options),
                                     .flags =
                                         RUN_READ_LATER | (x->opt->on_store_error_continue ? TIDE_RUN_CONTINUE : 0u),
                                     .fields = fields,
                                     .trouble = exec_trouble,
                                     .trouble_arg = x};
}

/* What the run says of itself: the graph by its digest, and all of it unless the session has it already. */
void exec_run_fields(const struct exec *x, struct buf *out)
{
    const char *known = x->s->state->content.position.graph_digest;
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("loop"), STR("graph"));
    json_out_kstr(&o, STR("graph_digest"), str_from(x->g->digest));
    if (!known || strcmp(known, x->g->digest) != 0)
        json_out_kraw(&o, STR("graph"), x->g->spec->json);
    json_out_kstr_opt(&o, STR("graph_dir"), str_from(x->g->spec->dir));
    json_out_kstr_opt(&o, STR("entry"), str_from(x->fresh ? NULL : x->opt->entry));
    if (x->goal || x->s->state->content.position.goal)
        json_out_kstr(&o, STR("goal"), str_from(x->goal));
    if (x->said)
        json_out_kraw(&o, STR("checkpoints"), str_from(x->said));
    json_out_end(&o, '}');
}

void exec_put_memory(struct exec *x, const char *by, const char *frame, struct str values)
{
    struct json_out *o = exec_open(x, "memory.set");

    json_out_kstr(o, STR("by"), str_from(by));
    json_out_kstr_opt(o, STR("frame"), str_from(frame));
    json_out_kraw(o, STR("values"), values);
    exec_close(x);
}

enum tide_code graph_entry(const struct spec_graph *g, const char *name, struct str *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf names = BUF_INIT(150);
    const struct spec_entry *e = name ? spec_entry_point(g, str_from(name)) : NULL;

    *ret = e ? e->to : g->entry;
    if (e || !name)
        return TIDE_OK;
    for (size_t i = 0; i < g->entry_points.n; i++)
        buf_addf(&names, "%s%.*s", i ? ", " : "", STR_ARG(g->entry_points.at[i].name));
    tide_fail(err, TIDE_INVALID, "the graph has no entry point '%.60s': %s%s", name,
              names.len ? "it has " : "it begins at its entry alone", buf_cstr(&names));
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "entry");
}

/* What the memory begins with, and the way to the entry. */
static enum tide_code put_start(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf own = BUF_INIT(SIZE_MAX / 4), given = BUF_INIT(SIZE_MAX / 4);
    struct str entry;

    if (graph_entry(x->graph, x->opt->entry, &entry, err))
        return err->code;

    if (x->graph->memory && exec_take_values(x, json_source(x->graph->memory), &own, err))
        return err->code;
    if (x->opt->memory && exec_take_values(x, str_from(x->opt->memory), &given, err))
        return err->code;
    if (own.len > 2)
        exec_put_memory(x, "graph", NULL, buf_view(&own));
    if (given.len > 2)
        exec_put_memory(x, "override", NULL, buf_view(&given));
    exec_open(x, "edge.taken");
    json_out_kstr(&x->draft.out, STR("to"), entry);
    exec_close(x);
    return TIDE_OK;
}

static enum tide_code start_exec(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    const struct position *p;
    struct tide_run_options opt;
    enum tide_code code;

    session_be_patient(x->s, exec_trouble, x); /* what it begins with is read, before there is a run */
    code = tide_session_check_trust(x->s, err);
    code = code ? code : session_sync(x->s, err);
    if (code)
        return code;
    p = &x->s->state->content.position;
    if (p->ready.live || p->active.live) { /* of one that is over the position starts anew, and the memory stays */
        tide_fail_session(err, TIDE_EXISTS, x->s->head.id, "is in the middle of a graph");
        return graph_hint(err, x->s->head.id, 0);
    }
    if (x->s->state->ledger.rollbacks) { /* to before its graph began, perhaps */
        if (kept_load(x->s->store, &x->s->head, &x->kept, err))
            return err->code;
        kept_resolve(x->kept, x->graph, NULL);
    }
    code = exec_open_view(x, err);
    if (code)
        return code;
    x->goal = x->opt->goal;
    exec_run_fields(x, &fields);
    opt = exec_run_options(x, buf_cstr(&fields));
    code = put_start(x, err);
    code = code ? code : run_start_with(x->s, &opt, &x->draft, false, &x->run, err);
    draft_reset(&x->draft);
    return code;
}

void exec_finish(struct exec *x, struct tide_graph_result *ret)
{
    AUTO(buf_done) struct buf memory = BUF_INIT(SIZE_MAX / 4);

    if (ret) {
        if (x->view)
            place_memory(x, STR(""), NULL, (struct sight){0}, &memory);
        else
            buf_add_str(&memory, STR("{}"));
        buf_cstr(&memory);
        ret->memory.len = memory.len;
        ret->memory.ptr = buf_take(&memory);
        memcpy(ret->token, x->token, sizeof ret->token);
        snprintf(ret->session_id, sizeof ret->session_id, "%s", x->s->head.id);
    }
    tide_run_close(TAKE(x->run));
    session_be_quick(x->s);
    atomic_store(&x->g->stop,
                 GRAPH_GO_ON); /* it has done its work; one that comes before the next run counts for that */
    exec_done(x);
}

/* The run is open: does the rest. */
enum tide_code exec_go(struct exec *x, struct tide_err *err)
{
    x->looked_ns = x->ticked_ns = x->told_ns = exec_now_ns(x);
    return exec_run(x, err);
}

enum tide_code graph_options_read(struct graph_options *ret, const struct tide_graph_options *given,
                                  struct tide_err *err)
{
    if (SIZED_READ(&ret->opt, tide_graph_options, given, err) ||
        SIZED_READ(&ret->agent, tide_agent_options, ret->opt.agent, err))
        return err->code;
    ret->opt.agent = &ret->agent;
    return TIDE_OK;
}

enum tide_code tide_graph_run(tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                              struct tide_graph_result *ret, struct tide_err *err)
{
    AUTO(mem_freep) struct exec *x = mem_zero(sizeof *x);
    struct graph_options own;
    enum tide_code code;

    ERR_LOCAL(err);
    if (graph_options_read(&own, opt, err))
        return err->code;
    code = exec_begin(x, s, g, &own.opt, err);
    code = code ? code : start_exec(x, err);
    code = code ? code : exec_go(x, err);
    exec_finish(x, ret);
    return code;
}
