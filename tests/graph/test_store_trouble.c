/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trouble of the store that passes ends no run: every kind of trouble, once and for a minute, at every operation of the
 * disk from the making of its session to its end, under every kind of run. Each goes on by itself and comes to the same end as the
 * one that met none: the same events, nothing done twice. The disk is simulated; what is done outside is counted outside.
 */
#include "env/sim.h"
#include "graphs.h"
#include "sim/sim_store.h"

enum {
    LASTS_MS = 60000, /* longer than a lease */
    TOLD_MS = 11000,  /* and one second: what is tried again meanwhile */
    PLACES_MAX = 4000
};

struct bench {
    struct sim *sim;
    struct sim_proc *proc;
    tide_store *store;
    tide_session *s;
    char dir[256], chat[300], graph[300], ledger[300];
    /* of the trouble */
    int64_t fired_ms; /* 0: not yet */
    bool lasts;
    enum sim_fault next;   /* meets this as well, … */
    int next_at;           /* … at the n-th operation after the first pause */
    enum tide_code refuse; /* not 0: the commits from `refuse_at` on give this, until it is over */
    int64_t commits, refuse_at;
    bool fired;
    int passed; /* faults of the disk that are over */
    /* of a writer that was stopped: the lock it keeps from the commit `refuse_at` on until somebody is told */
    const char *lock_path;
    struct env_file *lock;
    int64_t locked_ms, told_ms; /* by the monotonic clock; 0: not yet */
    bool continues;             /* on_store_error */
    /* what happened */
    int degraded;         /* events that say so */
    int64_t run_degraded; /* as the session shows it of its latest run */
    int effects, notices_held, notices_over;
    struct tide_err err;
};

static struct bench *at_work; /* for the store's slots, which have no argument */
static const struct store_ops *plain_ops;

/* ---- trouble ---- */

static int64_t now_ms(struct bench *b)
{
    struct env *env = sim_proc_env(b->proc);

    return env_now_ms(env);
}

static bool is_over(struct bench *b)
{
    if (!b->fired_ms)
        b->fired_ms = now_ms(b);
    return !b->lasts || now_ms(b) - b->fired_ms >= LASTS_MS;
}

/* While it sleeps: after a minute all is well again. */
static void on_pause(void *arg, struct sim_proc *p)
{
    struct bench *b = arg;

    (void)p;
    if (sim_fault_fired(b->sim) && is_over(b)) {
        b->fired = true;
        b->passed++;
        sim_fault_at(b->sim, b->next, b->next ? (uint64_t)b->next_at : 1, false);
        b->next = SIM_NO_FAULT;
    }
}

static int64_t clock_ms(struct bench *b)
{
    struct env *env = sim_proc_env(b->proc);

    return env->ops->mono_ns(env) / 1000000;
}

static void stop_writer(struct bench *b)
{
    struct env *other = sim_proc_env(sim_proc_start(b->sim));

    OK(other->ops->open(other, b->lock_path, ENV_READ, &b->lock, &err));
    OK(other->ops->lock(b->lock, 0, &err));
    b->locked_ms = clock_ms(b);
    b->lock_path = NULL;
}

/* The first who is told lets it go on. */
static void hear_of_trouble(struct bench *b)
{
    struct env *env = sim_proc_env(b->proc);

    b->notices_held++;
    if (!b->lock)
        return;
    b->told_ms = clock_ms(b);
    env->ops->close(TAKE(b->lock));
}

static void refusing_commit(struct store *store, struct batch *list)
{
    struct bench *b = at_work;

    if (b->lock_path && ++b->commits >= b->refuse_at)
        stop_writer(b);
    if (!b->refuse || ++b->commits < b->refuse_at || (b->fired && is_over(b))) {
        plain_ops->commit(store, list);
        return;
    }
    b->fired = true;
    (void)is_over(b);
    for (struct batch *l = list; l; l = l->next)
        l->code = tide_fail(&l->err, b->refuse, "the store was told to refuse");
}

static const struct trouble {
    const char *name;
    enum sim_fault fault;
    enum tide_code refuse;
} troubles[] = {
    {"an I/O error", SIM_EIO, TIDE_OK},
    {"a full disk", SIM_ENOSPC, TIDE_OK},
    {"a short write", SIM_SHORT_WRITE, TIDE_OK},
    {"a failed sync", SIM_SYNC_FAILS, TIDE_OK},
    {"a failed read", SIM_READ_FAILS, TIDE_OK},
    {"a writer that was stopped", SIM_NO_FAULT, TIDE_BUSY},
    {"a disk that became read-only", SIM_NO_FAULT, TIDE_READ_ONLY},
};
enum { TROUBLES = sizeof troubles / sizeof troubles[0] };

/* ---- the kinds of runs ---- */

static void hear_text(struct bench *b, const char *text)
{
    if (strstr(text, " held "))
        hear_of_trouble(b);
    b->notices_over += strstr(text, "can be written again") != NULL;
}

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct bench *b = arg;

    if (why && !waited_ms)
        hear_of_trouble(b);
    b->notices_over += !why;
    return 0;
}

static enum tide_code do_it(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)key;
    (void)err;
    ((struct bench *)arg)->effects++;
    ret->ptr = strdup("\"done\"");
    ret->len = 6;
    return TIDE_OK;
}

static enum tide_code step(struct bench *b, tide_run *r, const char *name, enum tide_effect effect)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = name, .effect = effect};
    struct tide_text result = {NULL, 0};
    enum tide_code code = tide_run_step(r, &spec, do_it, b, &result, &b->err);

    tide_text_done(&result);
    return code;
}

static enum tide_code run_program(struct bench *b)
{
    const unsigned flags = b->continues ? TIDE_RUN_CONTINUE : 0;
    const struct tide_run_options
        begin = {.size = sizeof begin, .flags = flags, .trouble = on_trouble, .trouble_arg = b},
        opt = {.size = sizeof opt, .flags = flags, .trouble = on_trouble, .trouble_arg = b, .input = "\"yes\""};
    const struct tide_wait_options wait = {
        .size = sizeof wait, .name = "go", .kind = TIDE_WAIT_APPROVAL, .question = "go?"};
    char token[TIDE_TOKEN_SIZE], id[TIDE_ID_SIZE];
    struct tide_text text = {NULL, 0};
    tide_run *r = NULL;
    enum tide_code code = tide_run_start(b->s, &begin, &r, &b->err);

    code = code ? code : step(b, r, "think", TIDE_EFFECT_PURE);
    code = code ? code : step(b, r, "pay", TIDE_EFFECT_ONCE);
    code = code ? code : tide_run_set(r, "k", "1", &b->err);
    code = code ? code : tide_run_checkpoint(r, 0, NULL, id, &b->err);
    if (!code && (code = tide_run_wait(r, &wait, &text, token, &b->err)) == TIDE_WAITING) {
        tide_run_close(r);
        r = NULL;
        code = tide_run_resume(b->s, &opt, NULL, &r, &b->err);
        code = code ? code : step(b, r, "think", TIDE_EFFECT_PURE); /* done before: answered from the log */
        code = code ? code : step(b, r, "pay", TIDE_EFFECT_ONCE);
        code = code ? code : tide_run_wait(r, &wait, &text, token, &b->err);
    }
    tide_text_done(&text);
    code = code ? code : step(b, r, "ship", TIDE_EFFECT_IDEMPOTENT);
    code = code ? code
                : tide_run_end(r,
                               &(struct tide_run_result){.size = sizeof(struct tide_run_result),
                                                         .outcome = TIDE_OUTCOME_COMPLETED},
                               &b->err);
    tide_run_close(r);
    return code;
}

static void hear_agent(void *arg, const struct tide_agent_event *e)
{
    if (e->what == TIDE_AGENT_NOTICE)
        hear_text(arg, e->text);
}

static enum tide_decision allow(void *arg, const struct tide_approval *ask)
{
    (void)arg;
    (void)ask;
    return TIDE_DECIDE_ALLOW;
}

static enum tide_code use_tool(void *arg, const char *args, const char *key, struct tide_text *ret,
                               struct tide_err *err)
{
    (void)args;
    return do_it(arg, key, ret, err);
}

static enum tide_code run_chat(struct bench *b)
{
    const struct tide_agent_options opt = {.size = sizeof opt,
                                           .provider = "script",
                                           .script = b->chat,
                                           .working_dir = b->dir,
                                           .retry_base_delay_ms = 10,
                                           .on_store_error_continue = b->continues,
                                           .approve = allow,
                                           .event = hear_agent,
                                           .arg = b};
    const struct tide_tool pay = {.size = sizeof pay,
                                  .name = "pay",
                                  .description = "p",
                                  .effect = TIDE_EFFECT_ONCE,
                                  .fn = use_tool,
                                  .arg = b},
                           ask = {.size = sizeof ask,
                                  .name = "ship",
                                  .description = "s",
                                  .effect = TIDE_EFFECT_IDEMPOTENT,
                                  .permission = TIDE_PERMISSION_ASK,
                                  .fn = use_tool,
                                  .arg = b};
    tide_agent *a = NULL;
    enum tide_code code = tide_agent_new(b->s, &opt, &a, &b->err);

    code = code ? code : tide_agent_add_tool(a, &pay, &b->err);
    code = code ? code : tide_agent_add_tool(a, &ask, &b->err);
    code = code ? code : tide_agent_run(a, "first", NULL, &b->err);
    code = code ? code : tide_agent_run(a, "second", NULL, &b->err);
    tide_agent_free(a);
    return code;
}

static void hear_graph(void *arg, const struct tide_graph_event *e)
{
    if (e->what == TIDE_GRAPH_NOTICE)
        hear_text(arg, e->text);
}

static enum tide_code do_node(void *arg, const struct tide_node_call *call, struct tide_text *ret, struct tide_err *err)
{
    char text[64];

    (void)err;
    ((struct bench *)arg)->effects++;
    snprintf(text, sizeof text, "{\"%s\":1}", call->node);
    ret->ptr = strdup(text);
    ret->len = strlen(text);
    return TIDE_OK;
}

static enum tide_code execute(struct bench *b, const char *json)
{
    const struct tide_agent_options agent = {.size = sizeof agent,
                                             .provider = "script",
                                             .script = b->graph,
                                             .working_dir = b->dir,
                                             .retry_base_delay_ms = 10};
    const struct tide_graph_options opt = {
        .size = sizeof opt, .agent = &agent, .on_store_error_continue = b->continues, .event = hear_graph, .arg = b};
    struct tide_graph_result result = {0};
    tide_graph *g = NULL;
    enum tide_code code;

    OK(tide_graph_parse(json, strlen(json), NULL, NULL, NULL, &g, &err));
    OK(tide_graph_add_callback(g, "work", do_node, b, &err));
    code = tide_graph_run(b->s, g, &opt, &result, &b->err);
    tide_text_done(&result.memory);
    tide_graph_free(g);
    return code;
}

#define NODE(id, effect)                                                                                               \
    "{\"id\":\"" id "\",\"type\":\"function\",\"callback\":\"work\",\"effect\":\"" effect "\",\"outputs\":[\"" id "\"]}"
#define EDGE(from, to) "{\"from\":\"" from "\",\"to\":\"" to "\"}"
#define PLAIN(config)                                                                                                  \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\"" config                                                        \
    ",\"nodes\":[" NODE("a", "pure") "," NODE("b", "once") "," NODE("c", "idempotent") "," NODE(                       \
        "d", "pure") "],"                                                                                              \
                     "\"edges\":[" EDGE("a", "b") "," EDGE("a", "c") "," EDGE("b", "d") "," EDGE("c", "d") "]}"

static enum tide_code run_graph(struct bench *b)
{
    return execute(b, PLAIN(""));
}

static enum tide_code run_strict_graph(struct bench *b)
{
    return execute(b, PLAIN(",\"checkpoints\":{\"async_checkpoint\":false}"));
}

static enum tide_code run_graph_with_agent(struct bench *b)
{
    return execute(
        b, "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[" NODE(
               "a", "once") ",{\"id\":\"write\",\"type\":\"event_loop\",\"prompt\":\"write\",\"outputs\":[\"title\"]},"
                            "{\"id\":\"check\",\"type\":\"event_loop\",\"prompt\":\"check\",\"outputs\":[\"fine\"]}],"
                            "\"edges\":[" EDGE("a", "write") "," EDGE("write", "check") "]}");
}

static const struct kind_of_run {
    const char *name;
    enum tide_code (*run)(struct bench *);
    int effects;
} kinds[] = {
    {"a program", run_program, 3},
    {"a chat", run_chat, 2},
    {"a graph", run_graph, 4},
    {"a graph that waits for each checkpoint", run_strict_graph, 4},
    {"a graph with agent nodes", run_graph_with_agent, 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char chat_script[] =
    "{\"turns\":[{\"text\":\"I pay.\",\"calls\":[{\"name\":\"pay\"}]},"
    "{\"fail\":[{\"status\":503}],\"text\":\"And ship.\",\"calls\":[{\"name\":\"ship\"}]},{\"text\":\"Done.\"},"
    "{\"text\":\"Well.\",\"calls\":[{\"name\":\"glob\",\"args\":{\"pattern\":\"none*\"}}]},{\"text\":\"That is all.\"}]}";
static const char graph_script[] =
    "{\"nodes\":{\"write\":[{\"calls\":[{\"name\":\"glob\",\"args\":{\"pattern\":\"none*\"}}]},"
    "{\"text\":\"T.\",\"calls\":[{\"name\":\"set_output\",\"args\":{\"key\":\"title\",\"value\":\"T\"}}]},{\"text\":\"ok\"}],"
    "\"check\":[{\"text\":\"F.\",\"calls\":[{\"name\":\"set_output\",\"args\":{\"key\":\"fine\",\"value\":true}}]},"
    "{\"text\":\"ok\"}]}}";

/* ---- one run ---- */

/* What comes before the run, of whoever begins one at once. */
typedef enum tide_code before_fn(struct bench *b);

static enum tide_code create(struct bench *b)
{
    return session_create_held(b->store, "s", NULL, on_trouble, b, &b->s, &b->err);
}

static enum tide_code take(struct bench *b)
{
    return session_open_held(b->store, "s", on_trouble, b, &b->s, &b->err);
}

static enum tide_code take_and_change(struct bench *b)
{
    const struct tide_new_event other = {.kind = "session.updated", .body = "{\"provider\":{\"type\":\"script\"}}"};
    enum tide_code code = take(b);

    return code ? code : session_append_held(b->s, &other, on_trouble, b, &b->err);
}

static void put_file(char path[300], const char *dir, const char *name, const char *text)
{
    FILE *f;

    snprintf(path, 300, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

struct kinds_seen {
    struct buf kinds; /* of all events, in order */
    int sessions;
    bool status;
    int degraded;
    int64_t run_degraded;
};

static int note_kind(void *arg, const struct tide_event *ev)
{
    struct kinds_seen *t = arg;

    buf_addf(&t->kinds, "%s ", ev->kind);
    t->degraded += strstr(ev->body, "\"durability\":\"degraded\"") != NULL;
    return 0;
}

static int note_status(void *arg, const struct tide_session_info *info)
{
    struct kinds_seen *t = arg;

    t->run_degraded = info->degraded_events;
    t->status = info->status == TIDE_STATUS_IDLE && info->outcome == TIDE_OUTCOME_COMPLETED;
    return 0;
}

static int count_session(void *arg, const struct tide_session_info *info)
{
    struct kinds_seen *t = arg;

    (void)info;
    t->sessions++;
    return 0;
}

/* What the log has of it when a fresh process looks. */
static char *tell(struct bench *b)
{
    struct kinds_seen t = {.kinds = BUF_INIT(1 << 20)};
    tide_store *store = sim_store_open(sim_proc_start(b->sim), 0, NULL);
    tide_session *s = NULL;

    assert_non_null(store);
    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    OK(tide_session_read(s, 0, 1, 0, note_kind, &t, &err));
    OK(session_shown(s, note_status, &t, &err));
    OK(tide_session_list(store, NULL, count_session, &t, &err));
    tide_session_close(s);
    tide_store_close(store);
    b->degraded = t.degraded;
    b->run_degraded = t.run_degraded;
    if (t.sessions != 1)
        buf_addf(&t.kinds, "%d SESSIONS", t.sessions);
    if (!t.status)
        buf_add_str(&t.kinds, STR("NOT COMPLETED"));
    buf_add_char(&t.kinds, '\0');
    return buf_take(&t.kinds);
}

static void open_store(struct bench *b, const struct sim_image *image)
{
    static struct store_ops ops;

    b->sim = sim_new_from(2, image); /* another seed than that of the image: or their processes would have one name */
    b->proc = sim_proc_start(b->sim);
    b->store = sim_store_open(b->proc, 0, &b->err);
    assert_non_null(b->store);
    plain_ops = store_of(b->store)->ops;
    ops = *plain_ops;
    ops.commit = refusing_commit;
    store_of(b->store)->ops = &ops;
    at_work = b;
    b->s = NULL;
    b->passed = 0;
    b->lock_path = NULL;
    b->locked_ms = b->told_ms = 0;
    b->fired_ms = b->commits = b->effects = b->notices_held = b->notices_over = 0;
    b->fired = b->lasts = false;
    b->next = SIM_NO_FAULT;
    b->refuse = TIDE_OK;
    b->err = (struct tide_err){0};
}

static void open_bench(struct bench *b, const struct sim_image *image)
{
    open_store(b, image);
    OK(tide_session_open(b->store, "s", TIDE_SESSION_APPEND, &b->s, &err));
}

static void close_bench(struct bench *b)
{
    sim_on_pause(b->sim, NULL, NULL);
    sim_fault_at(b->sim, SIM_NO_FAULT, 1, false);
    tide_session_close(b->s);
    tide_store_close(b->store);
}

static void set_trouble(struct bench *b, const struct trouble *t, bool lasts, int place)
{
    b->lasts = lasts;
    b->refuse = t->refuse;
    b->refuse_at = place;
    sim_on_pause(b->sim, on_pause, b);
    if (t->fault)
        sim_fault_at(b->sim, t->fault, (uint64_t)place, lasts);
}

static bool has_met(const struct bench *b)
{
    return b->fired || sim_fault_fired(b->sim);
}

/* False: it had no such place any more. `before`: the places are those of what comes before the run. */
static bool meets(struct bench *b, const struct sim_image *image, before_fn *before, const struct kind_of_run *k,
                  const struct trouble *t, bool lasts, int place, const char *want)
{
    enum tide_code code = TIDE_OK;
    bool met;
    char *got;

    if (before)
        open_store(b, image);
    else
        open_bench(b, image);
    set_trouble(b, t, lasts, place);
    if (before) {
        code = before(b);
        met = has_met(b);
        sim_fault_at(b->sim, SIM_NO_FAULT, 1, false);
        b->refuse = TIDE_OK;
    }
    code = code ? code : k->run(b);
    met = before ? met : has_met(b);
    close_bench(b);
    got = tell(b);
    if (code || strcmp(got, want) != 0 || b->effects != k->effects)
        fail_msg("%s, %s%s, place %d: %s %s, %d effects\n%s\nnot\n%s", k->name, t->name, lasts ? " for a minute" : "",
                 place, tide_code_name(code), b->err.msg, b->effects, got, want);
    free(got);
    sim_free(b->sim);
    return met;
}

/* A disk with a store, and an empty session in it. */
static struct sim_image *prepare(struct bench *b, bool with_session)
{
    struct sim *sim = sim_new(1);
    tide_store *store = sim_store_open(sim_proc_start(sim), 0, NULL);
    struct sim_image *image;

    assert_non_null(store);
    OK(tide_session_create(store, "s", NULL, &b->s, &err));
    tide_session_close(b->s);
    if (!with_session)
        OK(tide_session_delete(store, "s", &err));
    tide_store_close(store);
    sim_store_trim(sim);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}

/* What a run of this kind leaves without trouble. */
static char *golden(struct bench *b, const struct sim_image *image, before_fn *before, const struct kind_of_run *k)
{
    enum tide_code code;
    char *want;

    open_store(b, image);
    code = before(b);
    code = code ? code : k->run(b);
    expect_code(TIDE_OK, code, &b->err, k->name, __FILE__, __LINE__);
    assert_int_equal(b->effects, k->effects);
    close_bench(b);
    want = tell(b);
    assert_null(strstr(want, "NOT COMPLETED"));
    sim_free(b->sim);
    return want;
}

static void open_files(struct bench *b)
{
    dir_make(b->dir);
    put_file(b->chat, b->dir, "chat.json", chat_script);
    put_file(b->graph, b->dir, "graph.json", graph_script);
}

/* Whoever makes a session may have nothing to read, and whoever opens one does nothing but that. */
static bool is_met(const struct trouble *t, before_fn *before)
{
    return before == take ? t->fault == SIM_READ_FAILS : t->fault != SIM_READ_FAILS;
}

/* Every trouble, once and for a minute, at every place that a run of this kind has, or the making of its session. */
static int try_all(struct bench *b, const struct sim_image *image, before_fn *before, const struct kind_of_run *k,
                   const char *want)
{
    int tried = 0;

    for (size_t t = 0; t < TROUBLES; t++)
        for (int lasts = 0; lasts < 2; lasts++) {
            int place = 1;

            while (meets(b, image, before, k, &troubles[t], lasts, place, want) && place < PLACES_MAX)
                place += SLOW_BUILD ? (before ? 5 : 11) : 1;
            if (place == 1 && is_met(&troubles[t], before))
                fail_msg("%s: %s met nothing", k->name, troubles[t].name);
            tried += place;
            print_message("# %s%s, %s%s: %d places\n", before ? "the session of " : "", k->name, troubles[t].name,
                          lasts ? " for a minute" : "", place - 1);
        }
    return tried;
}

static void every_trouble_at_every_place_under_every_kind_of_run_passes(void **state)
{
    struct bench b = {0};
    struct sim_image *image, *empty;
    int tried = 0;

    (void)state;
    open_files(&b);
    image = prepare(&b, true);
    empty = prepare(&b, false);
    for (size_t k = 0; k < KINDS; k++) {
        char *want = golden(&b, image, take, &kinds[k]);

        tried += try_all(&b, empty, create, &kinds[k], want);
        tried += try_all(&b, image, NULL, &kinds[k], want);
        free(want);
    }
    print_message("# %d runs\n", tried);
    sim_image_free(empty);
    sim_image_free(image);
    dir_remove(b.dir);
}

/* Of a session that is there: it is opened, and told of another provider first. */
static void what_comes_before_a_run_of_a_session_that_is_there_is_held(void **state)
{
    struct bench b = {0};
    struct sim_image *image;
    char *want;

    (void)state;
    open_files(&b);
    image = prepare(&b, true);
    want = golden(&b, image, take, &kinds[0]);
    try_all(&b, image, take, &kinds[0], want);
    free(want);
    want = golden(&b, image, take_and_change, &kinds[0]);
    assert_non_null(strstr(want, "session.updated"));
    try_all(&b, image, take_and_change, &kinds[0], want);
    free(want);
    sim_image_free(image);
    dir_remove(b.dir);
}

static bool makes_after_two(struct bench *b, const struct sim_image *empty, enum sim_fault fault, int place, int next,
                            bool *ret_met_next, const char *want)
{
    bool met, again;
    enum tide_code code;
    char *got;

    open_store(b, empty);
    sim_on_pause(b->sim, on_pause, b);
    sim_fault_at(b->sim, fault, (uint64_t)place, false);
    b->next = fault;
    b->next_at = next;
    code = create(b);
    met = b->passed > 0 || sim_fault_fired(b->sim);
    again = b->passed + sim_fault_fired(b->sim) > 1;
    sim_fault_at(b->sim, SIM_NO_FAULT, 1, false);
    code = code ? code : run_program(b);
    close_bench(b);
    got = tell(b);
    if (code || strcmp(got, want) != 0 || b->effects != kinds[0].effects)
        fail_msg("places %d and %d: %s %s, %d effects\n%s\nnot\n%s", place, next, tide_code_name(code), b->err.msg,
                 b->effects, got, want);
    free(got);
    sim_free(b->sim);
    *ret_met_next = again;
    return met;
}

/* It fails, may be there or not, and fails again while that is found out, or while its lease is taken. */
static void one_session_is_made_when_trouble_comes_twice(void **state)
{
    static const enum sim_fault faults[] = {SIM_EIO, SIM_SYNC_FAILS, SIM_ENOSPC};
    struct bench b = {0};
    struct sim_image *image, *empty;
    char *want;
    int tried = 0;

    (void)state;
    open_files(&b);
    image = prepare(&b, true);
    empty = prepare(&b, false);
    want = golden(&b, image, take, &kinds[0]);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        bool met = true, again = true;

        for (int place = 1; met; place += SLOW_BUILD ? 3 : 1, again = true)
            for (int next = 1; met && again; next += SLOW_BUILD ? 5 : 1, tried++)
                met = makes_after_two(&b, empty, faults[i], place, next, &again, want);
    }
    print_message("# %d runs\n", tried);
    free(want);
    sim_image_free(empty);
    sim_image_free(image);
    dir_remove(b.dir);
}

/* False: it has no such commit any more. */
static bool hears(struct bench *b, const struct sim_image *image, bool creates, const char *lock,
                  const struct kind_of_run *k, int place, const char *want)
{
    enum tide_code code = TIDE_OK;
    bool met;
    char *got;

    open_store(b, image);
    if (!creates)
        OK(tide_session_open(b->store, "s", TIDE_SESSION_APPEND, &b->s, &err));
    b->lock_path = lock;
    b->refuse_at = place;
    code = creates ? create(b) : TIDE_OK;
    met = b->locked_ms != 0;
    if (creates)
        b->lock_path = NULL;
    code = code ? code : k->run(b);
    met |= b->locked_ms != 0;
    b->lock_path = NULL;
    close_bench(b);
    got = tell(b);
    if (code || strcmp(got, want) != 0 || b->effects != k->effects)
        fail_msg("%s, a writer stopped before commit %d: %s %s, %d effects\n%s\nnot\n%s", k->name, place,
                 tide_code_name(code), b->err.msg, b->effects, got, want);
    if (met && (!b->told_ms || b->told_ms - b->locked_ms < STORE_LOCK_MS || b->told_ms - b->locked_ms > TOLD_MS))
        fail_msg("%s, a writer stopped before commit %d: told after %lld ms", k->name, place,
                 b->told_ms ? (long long)(b->told_ms - b->locked_ms) : -1LL);
    free(got);
    sim_free(b->sim);
    return met;
}

/* By the clock of the simulated machine, at every commit of every kind of run. */
static void who_waits_for_a_stopped_writer_hears_of_it_after_ten_seconds(void **state)
{
    const char *mark = STORE_PATH "-mark", *log = on_files() ? STORE_DIR "/t/sessions/s.messages.jsonl" : mark,
               *directory = on_files() ? STORE_DIR "/t/lock" : mark;
    struct bench b = {0};
    struct sim_image *image, *empty;

    (void)state;
    open_files(&b);
    image = prepare(&b, true);
    empty = prepare(&b, false);
    for (size_t k = 0; k < KINDS; k++) {
        char *want = golden(&b, image, take, &kinds[k]);
        int place = 1;

        assert_true(hears(&b, empty, true, directory, &kinds[k], 1, want));
        while (hears(&b, image, false, log, &kinds[k], place, want))
            place++;
        print_message("# %s: %d commits\n", kinds[k].name, place - 1);
        assert_true(place > 2);
        free(want);
    }
    sim_image_free(empty);
    sim_image_free(image);
    dir_remove(b.dir);
}

/* What was done meanwhile says so, wherever it is shown; what touches the world waits for the store all the same. */
static void a_run_that_continues_does_what_it_can_in_memory_and_says_so(void **state)
{
    static const struct trouble full = {"a full disk", SIM_NO_FAULT, TIDE_FULL};
    struct bench b = {.continues = true};
    struct sim_image *image;

    (void)state;
    open_files(&b);
    image = prepare(&b, true);
    for (size_t k = 0; k < KINDS; k++) {
        char *want = golden(&b, image, take, &kinds[k]);
        int place = 1, most = 0;

        assert_int_equal(b.degraded, 0);
        assert_int_equal(b.run_degraded, 0);
        for (; meets(&b, image, NULL, &kinds[k], &full, true, place, want); place++) {
            most = b.degraded > most ? b.degraded : most;
            if (b.run_degraded > b.degraded || (k != 1 && b.run_degraded != b.degraded)) /* a chat has two runs */
                fail_msg("%s, place %d: %lld events are shown as degraded, %d are", kinds[k].name, place,
                         (long long)b.run_degraded, b.degraded);
        }
        if (most < 2)
            fail_msg("%s: nothing was done in memory", kinds[k].name);
        print_message("# %s: up to %d events in memory\n", kinds[k].name, most);
        free(want);
    }
    sim_image_free(image);
    dir_remove(b.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_a_stopped_writer_hears_of_it_after_ten_seconds),
        cmocka_unit_test(a_run_that_continues_does_what_it_can_in_memory_and_says_so),
        cmocka_unit_test(what_comes_before_a_run_of_a_session_that_is_there_is_held),
        cmocka_unit_test(one_session_is_made_when_trouble_comes_twice),
        cmocka_unit_test(every_trouble_at_every_place_under_every_kind_of_run_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
