/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a tortured session. It does what `run` and `resume` do, with somebody looking on: at the store, every
 * append is counted on its way in and out; at the executor, every node's work. Where it is to die it sends itself
 * SIGKILL, so nothing of it is tidied up, as when the machine takes a process away. What it writes into the ledger is one
 * write() each and is there whatever happens next.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/agent_setup.h"
#include "graph/exec.h"
#include "torture/torture_internal.h"

static struct child {
    struct torture *t;
    const struct order *order;
    const struct store_ops *real;
    struct store_ops ops;
    struct probe probe;
    int ledger;
    int64_t appends;
    atomic_int_least64_t begun;
    atomic_bool dying; /* a node is to be cut, and its time has not come yet */
} me;

_Noreturn static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void write_line(struct buf *line)
{
    struct tide_err err;

    if (ledger_add(me.ledger, line, &err)) /* a verdict without it would be wrong */
        _exit(3);
}

/* ---- appends ---- */

static void put_kinds(struct json_out *o, const struct batch *list)
{
    AUTO(buf_done) struct buf kinds = BUF_INIT(512);

    for (const struct batch *b = list; b; b = b->next)
        for (size_t i = 0; i < b->n && kinds.len < 300; i++)
            buf_addf(&kinds, "%s%.*s", kinds.len ? ", " : "", STR_ARG(b->events[i].kind));
    json_out_kstr(o, STR("about"), kinds.len ? buf_view(&kinds) : STR("the lease"));
}

static void note_append(const struct batch *list)
{
    AUTO(buf_done) struct buf line = BUF_INIT(1 << 20);
    struct json_out o = json_out_to(&line);
    int64_t seq = 0;

    for (const struct batch *b = list; b; b = b->next)
        if (!b->code && b->last_seq > seq)
            seq = b->last_seq;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("at"), STR("append"));
    json_out_kint(&o, STR("seq"), seq);
    put_kinds(&o, list);
    json_out_end(&o, '}');
    write_line(&line);
}

static bool is_here(enum point_kind kind)
{
    return me.order->kill.kind == kind && me.order->kill.append == me.appends;
}

/* The group hands in one list at a time. */
static void commit_and_count(struct store *store, struct batch *list)
{
    me.appends++;
    if (is_here(POINT_BEFORE))
        die();
    me.real->commit(store, list);
    note_append(list);
    if (is_here(POINT_AFTER))
        die();
}

/* ---- nodes ---- */

/* What is stored nowhere is not stored here either. */
static void put_output(struct json_out *o, struct str json)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    json_out_key(o, STR("output"));
    json_out_begin(o, '{');
    if (!json_parse(&a, json, NULL, &v, NULL, NULL))
        for (const struct json *m = v->first; m; m = m->next)
            if (!texts_have(&me.t->spec->checkpoints.exclude_memory_keys, json_key_text(&a, m)))
                json_out_kraw(o, json_key_text(&a, m), json_source(m));
    json_out_end(o, '}');
}

static void note_node(const char *at, const struct probe_node *n, int64_t us)
{
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);
    bool once = n->node->type == SPEC_FUNCTION && n->node->effect == SPEC_ONCE;

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("at"), str_from(at));
    json_out_kstr(&o, STR("node"), str_from(n->name));
    json_out_kint(&o, STR("visit"), n->visit);
    json_out_kint(&o, STR("attempt"), n->attempt);
    json_out_kint(&o, STR("us"), us);
    json_out_kbool(&o, STR("once"), once);
    json_out_kbool(&o, STR("ok"), n->ok);
    if (once && n->output.len)
        put_output(&o, n->output);
    json_out_end(&o, '}');
    write_line(&line);
}

static bool is_cut(const struct probe_node *n, int64_t nth)
{
    const struct point *p = &me.order->kill;

    if (p->kind != POINT_INSIDE)
        return false;
    if (!p->node)
        return p->nth == nth;
    return strcmp(p->node, n->name) == 0 && p->visit == n->visit && p->attempt == n->attempt;
}

static void *die_later(void *us)
{
    const struct timespec ts = {*(const int64_t *)us / 1000000, *(const int64_t *)us % 1000000 * 1000};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    die();
}

static void on_begin(void *arg, const struct probe_node *n)
{
    const int64_t *us = &me.order->kill.after_us;
    pthread_t thread;

    (void)arg;
    note_node("begin", n, clock_us(CLOCK_MONOTONIC));
    if (!is_cut(n, atomic_fetch_add(&me.begun, 1) + 1))
        return;
    if (*us < 500 || pthread_create(&thread, NULL, die_later, (void *)(uintptr_t)us) != 0)
        die();
    atomic_store(&me.dying, true);
}

/* One that was faster than it was before ends here, done and not recorded. */
static void on_end(void *arg, const struct probe_node *n)
{
    (void)arg;
    note_node("end", n, clock_us(CLOCK_MONOTONIC));
    if (atomic_load(&me.dying) && (!me.order->kill.node || strcmp(me.order->kill.node, n->name) == 0))
        die();
}

/* ---- doing it ---- */

static void look_on(tide_store *store)
{
    struct store *s = store_of(store);

    me.real = s->ops;
    me.ops = *s->ops;
    me.ops.commit = commit_and_count;
    s->ops = &me.ops;
}

/* --script answers for every node, whatever the graph says. */
static void use_script(const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];

        while (n->type == SPEC_MAP && n->node)
            n = n->node;
        n->provider = STR("");
        if (n->graph)
            use_script(n->graph);
    }
}

static enum tide_code open_session(tide_store *store, tide_session **ret, struct tide_err *err)
{
    enum tide_code code;

    if (!me.order->resume) {
        code = tide_session_create(store, me.order->session_id, "{\"agent\":\"torture\"}", ret, err);
        look_on(store);
        return code;
    }
    look_on(store);
    code = me.order->recover ? tide_store_recover(store, 0, NULL, NULL, NULL, err) : TIDE_OK;
    return code ? code : tide_session_open(store, me.order->session_id, TIDE_SESSION_APPEND, ret, err);
}

/* One that was killed before it had recorded anything is begun, not continued with. */
static enum tide_code run_graph(tide_session *s, const struct tide_agent_options *agent, struct tide_graph_result *ret,
                                struct tide_err *err)
{
    const struct order *o = me.order;
    struct tide_graph_options opt = {.size = sizeof opt,
                                     .agent = agent,
                                     .memory = o->memory,
                                     .input = o->input,
                                     .retry = o->retry,
                                     .happened = o->happened};
    tide_graph *g = NULL;
    enum tide_code code = o->resume ? tide_graph_load(s, &g, err) : TIDE_NOT_FOUND;

    if (code && code != TIDE_NOT_FOUND)
        return code;
    if (me.t->want->script)
        use_script((g ? g : me.t->graph)->spec->graph);
    graph_watch(g ? g : me.t->graph, &me.probe);
    if (code)
        opt.memory = me.t->memory;
    code = code ? tide_graph_run(s, me.t->graph, &opt, ret, err) : tide_graph_resume(s, g, &opt, ret, err);
    tide_graph_free(g);
    return code;
}

/* Killed when everything was recorded: it is complete, and there is nothing to do. */
static void take_memory(const tide_session *s, struct tide_graph_result *ret)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    const struct map *memory = &s->state->content.memory;

    json_out_begin(&o, '{');
    for (struct map_entry *e = map_next(memory, NULL); e; e = map_next(memory, e))
        json_out_kraw(&o, map_key(e), str_from(e->value));
    json_out_end(&o, '}');
    ret->memory.len = text.len;
    ret->memory.ptr = buf_take(&text);
}

static enum tide_code go_on_with(tide_session *s, const struct tide_agent_options *agent, struct tide_graph_result *ret,
                                 struct tide_err *err)
{
    const struct tide_session_info *info = NULL;

    if (me.order->resume && tide_session_get_info(s, &info, err))
        return err->code;
    if (info && info->outcome == TIDE_OUTCOME_COMPLETED) {
        take_memory(s, ret);
        return TIDE_OK;
    }
    if (info && info->wait_name && info->status == TIDE_STATUS_WAITING && !me.order->input)
        return tide_fail(err, TIDE_WAITING, "it waits");
    return run_graph(s, agent, ret, err);
}

/* ---- what there is to say ---- */

static int put_completed(void *arg, const struct tide_event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out *o = arg;
    struct json *v = NULL;

    if (strcmp(ev->kind, "node.completed") != 0 ||
        json_parse(&a, (struct str){ev->body, ev->body_len}, NULL, &v, NULL, NULL))
        return 0;
    json_out_begin(o, '[');
    json_out_str(o, json_get_text(&a, v, STR("node")));
    json_out_int(o, json_get_int(v, STR("visit"), 0));
    json_out_int(o, ev->seq);
    json_out_end(o, ']');
    return 0;
}

/* Nodes that must happen once and were cut: a person has to know. */
static void put_unsettled(struct json_out *o, const tide_session *s)
{
    const struct map *active = &s->state->content.position.active;
    struct place p;

    json_out_key(o, STR("unsettled"));
    json_out_begin(o, '[');
    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *t = e->value;

        if ((t->state == TASK_RUNNING || t->state == TASK_FAILED) && place_find(me.t->spec, map_key(e), &p) &&
            p.node->type == SPEC_FUNCTION && p.node->effect == SPEC_ONCE)
            json_out_str(o, map_key(e));
    }
    json_out_end(o, ']');
}

static enum tide_code put_end(struct json_out *o, tide_session *s, enum tide_code code, struct tide_err *err)
{
    const struct tide_session_info *info;

    if (!code) {
        json_out_key(o, STR("completed"));
        json_out_begin(o, '[');
        code = tide_session_read(s, 0, 0, 0, put_completed, o, err);
        json_out_end(o, ']');
    } else if (s) {
        if (!tide_session_get_info(s, &info, NULL))
            json_out_kstr_opt(o, STR("wait_name"), str_from(info->wait_name));
        if (code == TIDE_UNSETTLED)
            put_unsettled(o, s);
    }
    return code;
}

static void pass_over(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static void pass_over_notice(void *arg, const char *line, const char *change)
{
    (void)change;
    pass_over(arg, line);
}

static enum tide_code run_child(struct json_out *o, struct tide_err *err)
{
    struct tide_store_options options = {.size = sizeof options, .flags = TIDE_OPEN_CREATE};
    struct tide_graph_result result = {.token = ""};
    const char *provider = me.t->want->script ? NULL : me.t->spec->provider.ptr;
    const struct agent_want want = {.provider = provider && *provider ? provider : NULL,
                                    .script = me.t->want->script,
                                    .yes = me.t->want->yes,
                                    .keep_pause = true};
    struct agent_setup setup = {.tell = pass_over_notice};
    tide_session *s = NULL;
    tide_store *store = NULL;
    struct tide_err ignored;
    const struct torture_want *w = me.t->want;
    enum tide_code code = settings_open(w->config, pass_over, NULL, &setup.settings, err);

    code = code ? code : settings_log(&setup.settings, w->verbose, w->log_format, wall_ms, err);
    code = code ? code : agent_setup_begin(&setup, &want, err);
    if (!code)
        (void)!agent_setup_check(
            &setup, NULL, &ignored); /* a graph without agents needs no model; one with them was looked at before */
    code = code ? code : tide_store_open(me.t->store, &options, &store, err);
    code = code ? code : open_session(store, &s, err);
    code = code ? code : go_on_with(s, &setup.opt, &result, err);
    if (result.memory.len)
        json_out_kraw(o, STR("memory"), (struct str){result.memory.ptr, result.memory.len});
    code = put_end(o, s, code, err);
    tide_session_close(s);
    tide_store_close(store);
    return code;
}

void torture_child(struct torture *t, const struct order *order, int fd)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    struct tide_err err = {0};
    enum tide_code code;
    int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
        _exit(3);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    me.t = t;
    me.order = order;
    me.appends = order->appends;
    me.probe = (struct probe){on_begin, on_end, NULL};
    me.ledger = open(t->ledger, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    json_out_begin(&o, '{');
    code = me.ledger < 0 ? tide_fail_errno(&err, errno, "open '%s'", t->ledger) : run_child(&o, &err);
    json_out_kint(&o, STR("code"), code);
    json_out_kstr(&o, STR("message"), str_from(err.msg));
    json_out_end(&o, '}');
    fd_write(fd, buf_view(&text));
    _exit(0);
}
