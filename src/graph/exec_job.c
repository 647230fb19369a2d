/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doing a node's work: programs, callbacks and Lua without the lock; agents with it, because they record what they do, and
 * they give it back while a model or a tool works. All that is needed is gathered when the job is made.
 */
#include <inttypes.h>

#include "graph/exec.h"

/* ---- making ---- */

static struct job *make_job(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    struct job *j = mem_zero(sizeof *j);

    *j = (struct job){.x = x,
                      .place = *p,
                      .name = mem_dup(str_from(name)),
                      .branch = t->branch ? mem_dup(str_from(t->branch)) : NULL,
                      .visit = t->visit,
                      .attempt = t->attempt,
                      .inputs = BUF_INIT(SIZE_MAX / 4),
                      .memory = BUF_INIT(SIZE_MAX / 4),
                      .result = NODE_WORK_RESULT_INIT,
                      .arena = ARENA_INIT};
    INVARIANT(str_starts(str_from(name), p->frame));
    j->place.frame.ptr = j->name; /* it is the beginning of the name */
    run_idempotency(j->key, x->run, arena_printf(&j->arena, "node:%s#%" PRId64, name, t->visit));
    return j;
}

void job_free(struct job *j)
{
    free(j->name);
    free(j->branch);
    free(j->ways);
    buf_done(&j->inputs);
    buf_done(&j->memory);
    node_work_result_done(&j->result);
    arena_done(&j->arena);
    free(j);
}

struct job *job_new(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    struct job *j = make_job(x, p, name, t);
    const struct expr *code = p->node->type == SPEC_LUA ? p->node->code.expr : NULL;
    struct sight sight = {.secrets = p->node->type == SPEC_FUNCTION, .code = code, .name = "inputs"};
    struct str missing;

    if (!place_inputs(x, &j->place, t, sight, &j->inputs, &missing)) {
        end_missing(x, p, name, missing);
        job_free(j);
        return NULL;
    }
    if (code)
        place_memory(x, j->place.frame, NULL, (struct sight){.code = code, .name = "memory"}, &j->memory);
    if (p->node->type == SPEC_EVENT_LOOP && run_sure(x->run, &x->err)) /* it looks at what its calls came to */
        exec_break(x, &x->err);
    return j;
}

/* What it gave was kept for this. */
struct job *job_new_decision(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    struct job *j = make_job(x, p, name, t);
    const struct map *outputs = map_get(&x->view->content.outputs, str_from(name));
    const char *output = outputs ? map_get(outputs, STR("output")) : NULL;

    if (run_sure(x->run, &x->err))
        exec_break(x, &x->err);
    j->deciding = true;
    j->output = arena_dup(&j->arena, str_from(output ? output : "{}"));
    return j;
}

/* ---- programs, callbacks, Lua ---- */

static struct node_work_secret *secrets_of(struct job *j, size_t *ret_n)
{
    const struct spec_texts *keys = &j->x->checkpoints.exclude_memory_keys;
    struct node_work_secret *at = arena_alloc(&j->arena, (keys->n + 1) * sizeof *at);

    for (size_t i = 0; i < keys->n; i++) {
        const char *value = map_get(&j->x->secrets, keys->at[i]);

        at[i] = (struct node_work_secret){keys->at[i], arena_dup(&j->arena, str_from(value))};
    }
    *ret_n = keys->n;
    return at;
}

static void run_body(struct job *j)
{
    struct exec *x = j->x;
    const struct spec_node *n = j->place.node;
    const struct callback *c = NULL;
    struct node_work b = {.node = n,
                          .name = j->name,
                          .inputs = {buf_cstr(&j->inputs), j->inputs.len},
                          .memory = buf_view(&j->memory),
                          .run_id = x->run->id,
                          .guard = &x->guard,
                          .key = j->key,
                          .dir = x->dir,
                          .program_dir = x->program_dir,
                          .visit = j->visit,
                          .attempt = j->attempt,
                          .stopped = exec_stopped,
                          .arg = j};

    if (n->type == SPEC_FUNCTION) {
        pthread_mutex_lock(&x->lock);
        b.session_id = arena_dup(&j->arena, str_from(x->s->head.id)).ptr; /* a look at the store writes it anew */
        b.secrets = secrets_of(j, &b.n_secrets);
        c = n->callback.len ? map_get(&x->g->callbacks, n->callback) : NULL;
        pthread_mutex_unlock(&x->lock);
    }
    b.fn = c ? c->fn : NULL;
    b.fn_arg = c ? c->arg : NULL;
    j->ok = node_work_run(&b, &j->result);
    j->unbegun = j->result.unbegun;
    INVARIANT(!j->ok ||
              (!j->unbegun && !j->result.unknown)); /* what has given its outputs began, and is known to have */
    secrets_clean_line(j->x->s->store->secrets, j->result.message, sizeof j->result.message);
}

/* ---- agents ---- */

static void nested_lock(void *arg)
{
    pthread_mutex_lock(&((struct job *)arg)->x->lock);
}

static void nested_unlock(void *arg)
{
    pthread_mutex_unlock(&((struct job *)arg)->x->lock);
}

static void on_agent(void *arg, const struct tide_agent_event *ev)
{
    struct job *j = arg;
    const struct tide_graph_options *opt = j->x->opt;

    if (opt->event)
        opt->event(opt->arg, &(struct tide_graph_event){.what = TIDE_GRAPH_AGENT,
                                                        .node = j->name,
                                                        .type = spec_node_words[j->place.node->type],
                                                        .visit = j->visit,
                                                        .agent = ev});
}

static struct tide_agent_options agent_options(struct job *j)
{
    const struct exec *x = j->x;
    const struct spec_node *n = j->place.node;
    struct tide_agent_options opt = *x->opt->agent;

    if (n->model.len)
        opt.model = n->model.ptr;
    if (n->provider.len && (!opt.provider || !str_eq(n->provider, str_from(opt.provider)))) {
        opt.provider = n->provider.ptr;
        opt.api_key = opt.base_url = NULL; /* they are of the other one: nobody else gets that key */
    }
    if (n->max_turns)
        opt.max_turns = (int)n->max_turns;
    if (x->graph->budget.max_cost > 0)
        opt.max_cost = x->graph->budget.max_cost;
    if (x->graph->budget.max_tokens)
        opt.max_tokens = x->graph->budget.max_tokens;
    opt.no_tools |= n->type == SPEC_EVENT_LOOP && n->tools.mode == SPEC_TOOLS_NONE;
    opt.working_dir = x->dir;
    opt.approve = NULL;
    opt.event = on_agent;
    opt.arg = j;
    return opt;
}

static struct nested_agent nested_of(struct job *j, const struct tide_agent_options *opt, const char *node)
{
    const struct spec_node *n = j->place.node;

    return (struct nested_agent){.session = j->x->s,
                                 .run = j->x->run,
                                 .guard = &j->x->guard,
                                 .node = node,
                                 .visit = j->visit,
                                 .branch = j->branch ? j->branch : "",
                                 .opt = opt,
                                 .outputs = n->outputs.at,
                                 .nullable = n->nullable_outputs.at,
                                 .n_outputs = n->outputs.n,
                                 .n_nullable = n->nullable_outputs.n,
                                 .lock = nested_lock,
                                 .unlock = nested_unlock,
                                 .stopped = exec_stopped,
                                 .turn_over = checkpoint_turn,
                                 .arg = j};
}

static const char *const *tool_names(struct job *j)
{
    const struct spec_texts *names = &j->place.node->tools.names;
    const char **at = arena_alloc(&j->arena, (names->n + 1) * sizeof *at);

    if (j->place.node->tools.mode == SPEC_TOOLS_ALL)
        return NULL;
    for (size_t i = 0; i < names->n; i++)
        at[i] = names->at[i].ptr;
    at[names->n] = NULL;
    return at;
}

static bool render_text(struct job *j, struct str text, const struct json *values, const char **ret)
{
    AUTO(buf_done) struct buf out = BUF_INIT(NODE_WORK_OUTPUT_MAX);
    struct tide_err err;

    if (placeholders_fill(text, values, &out, &err))
        return node_work_fail(&j->result, "template", "%s", err.msg);
    *ret = arena_dup(&j->arena, buf_view(&out)).ptr;
    return true;
}

/* What it set, or, where it promised nothing, what it said. */
static void take_outputs(struct job *j, const struct nested_result *r)
{
    struct json_out o = json_out_to(&j->result.output);

    j->ok = true;
    if (j->place.node->outputs.n) {
        buf_add_str(&j->result.output, buf_view(&r->outputs));
        return;
    }
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("answer"), buf_view(&r->answer));
    json_out_end(&o, '}');
}

static void run_agent(struct job *j)
{
    struct tide_agent_options opt = agent_options(j);
    struct nested_agent nested = nested_of(j, &opt, j->name);
    struct nested_result result = NESTED_RESULT_INIT;
    const struct spec_node *n = j->place.node;
    struct json *values;

    nested.tools = tool_names(j);
    if (place_text_values(j->x, &j->place, &j->arena, buf_view(&j->inputs), &values, &j->err) ||
        !render_text(j, n->prompt.len ? n->prompt : STR("Do your task."), values, &nested.prompt) ||
        (n->system_prompt.len && !render_text(j, n->system_prompt, values, &opt.system_prompt)))
        return; /* the result says why */
    pthread_mutex_lock(&j->x->lock);
    j->code = nested_run(&nested, &result, &j->err);
    pthread_mutex_unlock(&j->x->lock);
    j->wait = result.wait;
    if (!j->code)
        take_outputs(j, &result);
    if (j->code == TIDE_FAILED) {
        j->code = TIDE_OK;
        j->hopeless = !result.retry;
        node_work_fail(&j->result, result.code[0] ? result.code : "agent", "%s", j->err.msg);
    }
    nested_result_done(&result);
}

/* ---- where to continue ---- */

enum tide_code job_decide(void *job, const struct spec_edge *edge, int *ret_yes, struct tide_err *err)
{
    struct job *j = job;
    struct tide_agent_options opt = agent_options(j);
    const char *node = arena_printf(&j->arena, "%s>%.*s", j->name, STR_ARG(edge->to));
    struct nested_agent nested = nested_of(j, &opt, node);
    const char *context = arena_printf(&j->arena, "Node %s is complete. It gave: %.*s", j->name,
                                       (int)(j->output.len > 20000 ? 20000 : j->output.len), j->output.ptr);

    nested.outputs = NULL;
    nested.n_outputs = 0;
    return nested_decide(&nested, arena_dup(&j->arena, edge->question).ptr, context, ret_yes, err);
}

static void run_decision(struct job *j)
{
    pthread_mutex_lock(&j->x->lock);
    j->code = end_choose(j, j->output, NULL, STR(""), true, &j->err);
    j->ok = !j->code;
    pthread_mutex_unlock(&j->x->lock);
    if (j->code == TIDE_FAILED)
        tide_wrap(&j->err, "node '%s': the next edge could not be decided", j->name);
}

void job_run(struct job *j)
{
    probe_begin(j);
    if (j->deciding)
        run_decision(j);
    else if (j->place.node->type == SPEC_EVENT_LOOP)
        run_agent(j);
    else
        run_body(j);
    probe_end(j);
}
