/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making sessions of every kind, and their runs. What can be refused is refused before there is a session; a run that does not begin
 * leaves none. What a request may start is in the settings (engine/server_settings.h): it names a profile, a path below a root, a
 * model, and values; never an address, a key, a hook, a permission or a command line.
 */
#include "engine/chat_session.h"
#include "engine/graph_file.h"
#include "engine/graph_run.h"
#include "engine/run_list.h"
#include "engine/session_words.h"
#include "engine/shapes.h"
#include "engine/startable.h"
#include "engine/stored_graphs.h"
#include "server/server.h"
#include "server/start.h"

#define RUNS_MAX 1000

static const struct field create_body[] = {
    {.name = "kind",
     .type = FIELD_WORD,
     .help = "what runs in it [log: events alone]; all but log need the scope run",
     .words = "log chat program graph"},
    {.name = "session_id", .type = FIELD_ID, .help = "its id [a new one]"},
    {.name = "title", .type = FIELD_TEXT, .help = "for people"},
    {.name = "agent", .type = FIELD_TEXT, .help = "of a log or a chat: the name of what runs in it"},
    {.name = "agent_id", .type = FIELD_TEXT, .help = "which agent of that name"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "the task that it works on"},
    {.name = "metadata", .type = FIELD_OBJECT, .help = "further data to store with it"},
    {.name = "prompt", .type = FIELD_TEXT, .help = "of a chat: the first message; on disk when the answer comes"},
    {.name = "model", .type = FIELD_TEXT, .help = "of a chat: the model [as configured]"},
    {.name = "working_dir",
     .type = FIELD_TEXT,
     .help = "of a chat or a graph: a directory below server_working_roots [the first of them]"},
    {.name = "program", .type = FIELD_ID, .help = "of a program: its name in server_programs; it is started"},
    {.name = "graph", .type = FIELD_TEXT, .help = "of a graph: its file, below server_graph_roots; it is started"},
    {.name = "graph_digest",
     .type = FIELD_TEXT,
     .help = "of a graph: the digest of one that was uploaded; needs the scope admin"},
    {.name = "set", .type = FIELD_OBJECT, .help = "of a program or a graph: values of its memory"},
    {.name = NULL},
};

/* ---- what was given ---- */

static struct session_fields fields_of(struct call *c)
{
    return (struct session_fields){call_text(c, "agent_id"), call_text(c, "task_id"), call_json(c, "metadata"),
                                   &c->request};
}

static enum tide_code refuse_field(struct tide_err *err, const char *name, const char *why)
{
    return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, name, "%s", why);
}

/* Of chats that nothing names but this. */
static enum tide_code check_agent(struct call *c, struct tide_err *err)
{
    const char *agent = call_text(c, "agent");
    static const char *const taken[] = {"chat", STORED_GRAPH_AGENT};

    for (size_t i = 0; agent && i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(agent, taken[i]) == 0)
            return refuse_field(err, "agent", "is a name that Tidemark itself gives: choose another");
    return TIDE_OK;
}

static enum tide_code find_directory(struct call *c, const char **ret, struct tide_err *err)
{
    AUTO(server_settings_done) struct server_settings s = {.arena = ARENA_INIT};
    const char *real;

    if (start_settings(c, &s, err) ||
        server_settings_directory(&s, call_text(c, "working_dir"), "working_dir", &real, err))
        return err->code;
    *ret = arena_dup(c->arena, str_from(real)).ptr;
    return TIDE_OK;
}

static void reply_made(struct call *c, tide_session *session)
{
    const char *id = arena_dup(c->arena, str_from(tide_session_id(session))).ptr;

    call_field(c, "Location", arena_printf(c->arena, API_ROOT "/sessions/%s", id));
    start_reply(c, id, NULL, NULL, tide_session_last_seq(session));
}

static enum tide_code start_made(struct call *c, struct order *order, struct tide_err *err)
{
    const char *id = arena_dup(c->arena, str_from(tide_session_id(c->session))).ptr;

    call_field(c, "Location", arena_printf(c->arena, API_ROOT "/sessions/%s", id));
    order->session_id = id;
    return start_run(c, order, START_MADE, err);
}

/* ---- by kind ---- */

static enum tide_code create_log(struct call *c, struct tide_err *err)
{
    static const char *const names[] = {"title", "agent", "agent_id", "task_id", "metadata"};
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&fields);

    json_out_begin(&o, '{');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct str value = call_json(c, names[i]);

        if (value.len)
            json_out_kraw(&o, str_from(names[i]), value);
    }
    cause_put(&o, &c->request);
    json_out_end(&o, '}');
    if (check_agent(c, err) || tide_session_create(c->server->store, call_new_id(c, call_text(c, "session_id")),
                                                   buf_cstr(&fields), &c->session, err))
        return err->code;
    reply_made(c, c->session);
    return TIDE_OK;
}

/* What is to be known of the settings besides is said when it runs. */
static void pass_over(void *arg, const char *line, const char *change)
{
    (void)arg;
    (void)line;
    (void)change;
}

static void chat_done(struct chat_session *chat)
{
    chat->session = NULL; /* the call has it */
    chat_session_done(chat);
}

static enum tide_code create_chat(struct call *c, struct tide_err *err)
{
    AUTO(chat_done) struct chat_session chat = {.agent_name = call_text(c, "agent"), .title = call_text(c, "title")};
    const struct session_fields fields = fields_of(c);
    const struct agent_want want = {.model = call_text(c, "model")};
    struct chat_creation what = {.id = call_new_id(c, call_text(c, "session_id")), .fields = &fields};
    struct order order = {.message = call_text(c, "prompt")};

    chat.setup.tell = pass_over;
    chat.setup.store = c->server->store;
    if (order.message && str_is_blank(str_from(order.message)))
        return refuse_field(err, "prompt", "is empty");
    if (check_agent(c, err) || find_directory(c, &what.working_dir, err) ||
        settings_open(c->server->opt.config, NULL, NULL, &chat.setup.settings, err) ||
        agent_setup_begin(&chat.setup, &want, err) || chat_create(&chat, &what, err))
        return err->code;
    c->session = chat.session;
    if (order.message)
        return start_made(c, &order, err);
    reply_made(c, c->session);
    return TIDE_OK;
}

static enum tide_code find_program(struct call *c, const char *name, struct program_order *ret, struct tide_err *err)
{
    AUTO(server_settings_done) struct server_settings s = {.arena = ARENA_INIT};
    const struct program_profile *p;
    const char **argv;
    size_t n = 0;

    if (start_settings(c, &s, err) || server_settings_program(&s, name, &p, err))
        return err->code;
    while (p->argv[n])
        n++;
    argv = arena_zero(c->arena, (n + 1) * sizeof *argv);
    for (size_t i = 0; i < n; i++)
        argv[i] = arena_dup(c->arena, str_from(p->argv[i])).ptr;
    *ret = (struct program_order){
        .argv = argv, .cwd = arena_dup(c->arena, str_from(p->cwd)).ptr, .env = arena_text(c->arena, p->env)};
    return TIDE_OK;
}

/* What the program reads with `tidemark get`. */
static enum tide_code set_memory(struct call *c, tide_session *session, struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT(ANSWER_MAX);
    struct str set = call_json(c, "set");
    struct json_out o = json_out_to(&body);
    struct cause by = {.by = ""}; /* the request is known by what begins */
    struct tide_new_event event;

    if (!set.len)
        return TIDE_OK;
    memcpy(by.by, c->request.by, sizeof by.by);
    json_out_begin(&o, '{');
    json_out_kraw(&o, STR("values"), set);
    cause_put(&o, &by);
    json_out_end(&o, '}');
    event = (struct tide_new_event){"memory.set", buf_cstr(&body), body.len};
    return tide_session_append(session, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, &event, 1, NULL, err);
}

static enum tide_code drop_made(struct call *c, const struct tide_err *err)
{
    const char *id = arena_dup(c->arena, str_from(tide_session_id(c->session))).ptr;
    struct tide_err ignored;

    call_close_session(c);
    (void)!tide_session_delete(c->server->store, id, &ignored);
    return err->code;
}

static enum tide_code create_program(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    const struct session_fields more = fields_of(c);
    const char *name = call_text(c, "program"), *title = call_text(c, "title");
    struct json_out o = json_out_to(&fields);
    struct program_order program;
    struct order order = {.program = &program};

    if (!name)
        return refuse_field(err, "program", "is missing in the body");
    if (find_program(c, name, &program, err))
        return err->code;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), str_from(name));
    json_out_kstr(&o, STR("title"), str_from(title ? title : name));
    json_out_kstr(&o, STR("working_dir"), str_from(program.cwd));
    session_fields_put(&o, &more);
    json_out_end(&o, '}');
    if (tide_session_create(c->server->store, call_new_id(c, call_text(c, "session_id")), buf_cstr(&fields),
                            &c->session, err))
        return err->code;
    return set_memory(c, c->session, err) ? drop_made(c, err) : start_made(c, &order, err);
}

/* The client gets the error of a store that cannot be written at once. */
static int give_up(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    (void)why;
    (void)waited_ms;
    return 1;
}

static enum tide_code make_graph_session(struct call *c, const char *digest, const struct session_fields *fields,
                                         struct graph_order *ret_graph, struct tide_err *err)
{
    const struct held quick = {.told = give_up};
    struct graph_want want = {.fields = fields, .opt = {.memory = call_text(c, "set")}};
    AUTO(graph_freep) tide_graph *graph = NULL;
    struct str set = call_json(c, "set");
    bool made = false;

    want.opt.memory = set.len ? arena_dup(c->arena, set).ptr : NULL;
    if (start_graph_named(c, digest, &graph, ret_graph, err))
        return err->code;
    if (!graph)
        return refuse_field(err, "graph", "is missing in the body");
    if (find_directory(c, &want.working_dir, err) || start_check_graph(c, graph, want.opt.memory, NULL, err) ||
        graph_session_open(c->server->store, call_new_id(c, call_text(c, "session_id")), call_text(c, "title"), graph,
                           &want, &quick, &c->session, &made, err))
        return err->code;
    return made ? TIDE_OK : tide_fail_session(err, TIDE_EXISTS, tide_session_id(c->session), "exists already");
}

static enum tide_code create_graph_from(struct call *c, const char *digest, struct tide_err *err)
{
    const struct session_fields fields = fields_of(c);
    struct graph_order graph;
    struct order order = {.graph = &graph, .memory = call_json(c, "set")};

    return make_graph_session(c, digest, &fields, &graph, err) ? err->code : start_made(c, &order, err);
}

static enum tide_code create_graph(struct call *c, struct tide_err *err)
{
    return create_graph_from(c, NULL, err);
}

/* Which fields mean something to which kind, besides those of all. */
static const struct creation {
    const char *kind, *fields;
    enum scope scope;
    enum tide_code (*create)(struct call *c, struct tide_err *err);
} creations[] = {
    {"log", "agent", SCOPE_WRITE, create_log},
    {"chat", "agent prompt model working_dir", SCOPE_RUN, create_chat},
    {"program", "program set", SCOPE_RUN, create_program},
    {"graph", "graph graph_digest working_dir set", SCOPE_RUN, create_graph},
};

static const struct creation *creation_of(struct call *c)
{
    const char *kind = call_text(c, "kind");

    for (size_t i = 0; kind && i < sizeof creations / sizeof creations[0]; i++)
        if (strcmp(creations[i].kind, kind) == 0)
            return &creations[i];
    return &creations[0];
}

static bool is_listed(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ')
        if (strcspn(w, " ") == n && memcmp(w, word, n) == 0)
            return true;
    return false;
}

static enum tide_code create_session(struct call *c, struct tide_err *err)
{
    const struct creation *how = creation_of(c);

    for (const struct field *f = create_body + 1; f->name; f++)
        if (call_json(c, f->name).len && !is_listed("session_id title agent_id task_id metadata", f->name) &&
            !is_listed(how->fields, f->name))
            return refuse_field(err, f->name,
                                arena_printf(c->arena, "does not apply to a session of kind %s", how->kind));
    return need_scope(c, how->scope, err) ? err->code : how->create(c, err);
}

/* ---- runs of one that is there ---- */

static const struct field run_body[] = {
    {.name = "prompt", .type = FIELD_TEXT, .help = "of a chat: the message that it answers"},
    {.name = "program", .type = FIELD_ID, .help = "of a program: its name in server_programs [the session's agent]"},
    {.name = "new_run", .type = FIELD_BOOL, .help = "of a program: also when the last run is unfinished"},
    {.name = "graph", .type = FIELD_TEXT, .help = "of a graph: its file, below server_graph_roots"},
    {.name = "graph_digest",
     .type = FIELD_TEXT,
     .help = "of a graph: the digest of one that was uploaded; needs the scope admin"},
    {.name = "set", .type = FIELD_OBJECT, .help = "of a program or a graph: values of its memory"},
    {.name = NULL},
};

static enum tide_code run_chat(struct call *c, const struct tide_session_info *info, struct tide_err *err)
{
    struct order order = {.session_id = info->id, .message = call_text(c, "prompt")};

    if (!order.message || str_is_blank(str_from(order.message)))
        return refuse_field(err, "prompt", "is missing: a chat answers a message");
    return start_run(c, &order, START_THERE, err);
}

static enum tide_code run_program(struct call *c, const struct tide_session_info *info, struct tide_err *err)
{
    const char *name = call_text(c, "program");
    struct program_order program;
    struct order order = {.session_id = info->id, .program = &program};

    name = name ? name : info->agent;
    if (!name)
        return refuse_field(err, "program", "is missing: the session does not say which of server_programs it runs");
    if (find_program(c, name, &program, err))
        return err->code;
    program.anew = call_on(c, "new_run");
    program.set = call_json(c, "set"); /* only if it begins */
    return start_run(c, &order, START_THERE, err);
}

static enum tide_code run_graph(struct call *c, const struct tide_session_info *info, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *graph = NULL;
    struct graph_order order_of_graph;
    struct str set = call_json(c, "set");
    struct order order = {.session_id = info->id, .graph = &order_of_graph, .memory = set};

    if (start_graph_named(c, NULL, &graph, &order_of_graph, err))
        return err->code;
    if (!graph)
        return refuse_field(err, "graph", "is missing: POST …/resume continues what the session runs already");
    if (start_check_graph(c, graph, set.len ? arena_dup(c->arena, set).ptr : NULL, c->session, err))
        return err->code;
    return start_run(c, &order, START_THERE, err);
}

/* Which fields mean something to a run of this kind. */
static enum tide_code check_run_fields(struct call *c, enum tide_session_kind kind, const char *fields,
                                       struct tide_err *err)
{
    for (const struct field *f = run_body; f->name; f++)
        if (call_json(c, f->name).len && !is_listed(fields, f->name))
            return refuse_field(
                err, f->name,
                arena_printf(c->arena, "means nothing to a session of kind %s", tide_session_kind_name(kind)));
    return TIDE_OK;
}

/* By what the session is; one in which nothing ran yet becomes what is asked for. */
static enum tide_code start_session(struct call *c, struct tide_err *err)
{
    const struct tide_session_info *info;
    tide_session *session;
    bool is_new;

    if (call_session(c, TIDE_SESSION_APPEND, &session, err) || tide_session_check_trust(session, err) ||
        tide_session_get_info(session, &info, err))
        return err->code;
    is_new = info->kind == TIDE_KIND_LOG && !info->run_id;
    if (info->kind == TIDE_KIND_CHAT)
        return check_run_fields(c, info->kind, "prompt", err) ? err->code : run_chat(c, info, err);
    if (info->kind == TIDE_KIND_PROGRAM || (is_new && call_text(c, "program")))
        return check_run_fields(c, info->kind, "program new_run set", err) ? err->code : run_program(c, info, err);
    if (info->kind == TIDE_KIND_GRAPH || (is_new && (call_text(c, "graph") || call_text(c, "graph_digest"))))
        return check_run_fields(c, info->kind, "graph graph_digest set", err) ? err->code : run_graph(c, info, err);
    return tide_fail_session(
        err, TIDE_INVALID, info->id,
        "is of kind %s: name a program or a graph that it has not run yet, or make another session",
        tide_session_kind_name(info->kind));
}

static const struct field runs_query[] = {
    {.name = "limit", .type = FIELD_INT, .help = "at most this number, the newest", .min = 1, .max = RUNS_MAX},
    {.name = NULL},
};

static enum tide_code list_runs(struct call *c, struct tide_err *err)
{
    AUTO(run_list_done) struct run_list list = {.at = NULL};
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err) ||
        run_list_read(session, NULL, (size_t)call_int(c, "limit", RUNS_MAX), &list, err))
        return err->code;
    call_reply(c, &shape_runs, &list);
    return TIDE_OK;
}

static enum tide_code find_run(struct call *c, struct run_list *list, struct tide_err *err)
{
    const char *run_id = c->params[1].ptr;
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || run_list_read(session, run_id, 0, list, err))
        return err->code;
    return list->n ? TIDE_OK : tide_fail_session(err, TIDE_NOT_FOUND, c->params[0].ptr, "has no run '%.64s'", run_id);
}

static enum tide_code show_run(struct call *c, struct tide_err *err)
{
    AUTO(run_list_done) struct run_list list = {.at = NULL};

    if (find_run(c, &list, err))
        return err->code;
    call_reply(c, &shape_run_row, &list.at[0]);
    return TIDE_OK;
}

static const struct field cancel_body[] = {
    {.name = "reason", .type = FIELD_TEXT, .help = "for the log"},
    {.name = NULL},
};

/* This one and no other: one that began meanwhile continues. */
static enum tide_code cancel_run(struct call *c, struct tide_err *err)
{
    AUTO(run_list_done) struct run_list list = {.at = NULL};
    const struct tide_session_info *info;
    enum tide_cancelled how;

    if (find_run(c, &list, err) || tide_session_get_info(c->session, &info, err))
        return err->code;
    if (list.at[0].ended_ms || !info->run_id || strcmp(info->run_id, list.at[0].run_id) != 0)
        return tide_fail_session(err, TIDE_CONFLICT, c->params[0].ptr, "has ended this run already");
    call_close_session(c);
    if (request_cancel(c->server->store, c->params[0].ptr, &c->request, call_text(c, "reason"), 0, &how, err))
        return err->code;
    call_reply(c, &shape_cancelled,
               &(struct command_result){.session_id = c->params[0].ptr, .word = cancelled_word(how)});
    return TIDE_OK;
}

/* ---- what it says of itself ---- */

static const struct field update_body[] = {
    {.name = "title", .type = FIELD_TEXT, .help = "for people"},
    {.name = "agent", .type = FIELD_TEXT, .help = "the name of what runs in it"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "the task that it works on"},
    {.name = "metadata", .type = FIELD_OBJECT, .help = "replaces the metadata that is stored with it"},
    {.name = NULL},
};

/* An input: the process that runs the session continues. */
static enum tide_code update_session(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&body);
    struct tide_new_event event;
    tide_session *session;
    int64_t expected, seq;
    bool is_empty;

    json_out_begin(&o, '{');
    for (const struct field *f = update_body; f->name; f++)
        if (call_json(c, f->name).len)
            json_out_kraw(&o, str_from(f->name), call_json(c, f->name));
    is_empty = body.len == 1;
    cause_put(&o, &c->request);
    json_out_end(&o, '}');
    if (is_empty)
        return tide_fail(err, TIDE_INVALID, "nothing is to be changed: give title, agent, task_id or metadata");
    if (check_agent(c, err) || call_expected_seq(c, &expected, err) ||
        call_session(c, TIDE_SESSION_READ, &session, err) || tide_session_check_trust(session, err))
        return err->code;
    event = (struct tide_new_event){"session.updated", buf_cstr(&body), body.len};
    if (tide_session_input(c->server->store, c->params[0].ptr, expected, &event, 1, &seq, err))
        return err->code;
    call_field(c, "ETag", arena_printf(c->arena, "\"%lld\"", (long long)seq));
    call_reply(c, &shape_appended, &(struct command_result){.seq = seq});
    return TIDE_OK;
}

/* ---- a graph that was uploaded ---- */

static enum tide_code run_stored(struct call *c, struct tide_err *err)
{
    return create_graph_from(c, c->params[0].ptr, err);
}

static const struct field run_stored_body[] = {
    {.name = "session_id", .type = FIELD_ID, .help = "the id of its session [a new one]"},
    {.name = "title", .type = FIELD_TEXT, .help = "for people"},
    {.name = "agent_id", .type = FIELD_TEXT, .help = "which agent"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "the task that it works on"},
    {.name = "metadata", .type = FIELD_OBJECT, .help = "further data to store with it"},
    {.name = "working_dir", .type = FIELD_TEXT, .help = "a directory below server_working_roots [the first of them]"},
    {.name = "set", .type = FIELD_OBJECT, .help = "values of its memory"},
    {.name = NULL},
};

#define ONE "/sessions/{id}"
/* ---- what can be made ---- */

static enum tide_code show_startable(struct call *c, struct tide_err *err)
{
    struct startable s;

    if (startable_read(c->server->opt.config, &s, err))
        return err->code;
    call_reply(c, &shape_startable, &s);
    startable_done(&s);
    return TIDE_OK;
}

const struct route create_routes[] = {
    {HTTP_POST, "/sessions", "session.create", SCOPE_WRITE, create_session,
     "create a session, and start what the request names; the answer comes when it is on disk", .body = create_body,
     .answer = &shape_started, .status = 201},
    {HTTP_PATCH, ONE, "session.update", SCOPE_WRITE, update_session,
     "change the title, agent, task or metadata of a session", .body = update_body, .answer = &shape_appended},
    {HTTP_POST, ONE "/runs", "run.start", SCOPE_RUN, start_session, "start the next run of a session", .body = run_body,
     .answer = &shape_started, .status = 202},
    {HTTP_GET, ONE "/runs", "run.list", SCOPE_READ, list_runs, "list the runs of a session, oldest first", runs_query,
     .answer = &shape_runs},
    {HTTP_GET, ONE "/runs/{run}", "run.get", SCOPE_READ, show_run, "show a run of a session", .answer = &shape_run_row},
    {HTTP_POST, ONE "/runs/{run}/cancel", "run.cancel", SCOPE_WRITE, cancel_run, "cancel this run, if it is the latest",
     .body = cancel_body, .answer = &shape_cancelled},
    {HTTP_POST, "/graphs/{digest}/run", "graph.run", SCOPE_ADMIN, run_stored, "run a graph that was uploaded",
     .body = run_stored_body, .answer = &shape_started, .status = 201},
    {HTTP_GET, "/startable", "store.startable", SCOPE_READ, show_startable, "list what requests may start",
     .answer = &shape_startable},
    {.method = 0},
};
