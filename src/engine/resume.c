/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that can be refused is looked at before anything is written. A token is used by the library in the same append
 * that resumes the run: a program that is gone costs none. A message is on disk before anything is said of it.
 */
#include "engine/resume.h"

#include <stdio.h>

#include "base/json.h"
#include "engine/graph_file.h"
#include "engine/recovery_thread.h"
#include "engine/signed_request.h"
#include "session/run.h"
#include "session/settle.h"

#define ANSWER_MAX ((size_t)16 << 20)

/* What is asked for is signed by the caller that asks. */
static void sign(const struct resume *r, tide_session *session)
{
    if (r->ask.request && session)
        request_sign(session, r->ask.request);
}

static void tell_running(const struct resume *r, bool runs)
{
    if (r->face.running)
        r->face.running(r->face.arg, runs);
}

/* ---- what it would do ---- */

static void put_refusal(struct json_out *o, const struct tide_err *why)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("code"), str_from(tide_code_name(why->code)));
    json_out_key(o, STR("node"));
    json_out_null(o);
    json_out_kstr(o, STR("reason"), str_from(why->msg));
    json_out_key(o, STR("hints"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < sizeof why->hints / sizeof why->hints[0] && why->hints[i].action; i++) {
        json_out_begin(o, '{');
        json_out_kstr(o, STR("action"), str_from(tide_action_name(why->hints[i].action)));
        json_out_kstr(o, STR("session_id"), str_from(why->hints[i].session_id));
        json_out_kraw(o, STR("arguments"), str_from(why->hints[i].arguments));
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_end(o, '}');
}

static struct tide_run_options run_options(const struct resume_request *ask)
{
    return (struct tide_run_options){
        .size = sizeof(struct tide_run_options),
        .flags = (ask->now ? TIDE_RUN_NOW : 0u) | (ask->accept_change ? TIDE_RUN_ACCEPT_CHANGE : 0u),
        .token = ask->token,
        .request_id = ask->request_id,
        .by = ask->request && ask->request->by[0] ? ask->request->by : NULL,
        .input = ask->input,
        .retry = ask->retry,
        .happened = ask->happened,
    };
}

static bool is_named(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Steps at which the program would end: no obstacle to its start, and what a probe finds out nobody knows before. */
static enum tide_code note_open_steps(struct resume *r, const struct tide_run_options *opt, struct json_out *o,
                                      struct tide_err *err)
{
    const struct run_open_step *steps = NULL;
    struct graph_refusal *note;
    size_t n = 0;

    if (run_open_steps(r->session, &r->arena, &steps, &n, err))
        return err->code;
    r->notes = note = arena_zero(&r->arena, (n + 1) * sizeof *note);
    for (; n > 0; n--, steps++) {
        AUTO(buf_done) struct buf name = BUF_INIT(1 << 16);
        struct tide_err hints = {.code = TIDE_UNSETTLED};

        if (is_named(opt->retry, steps->name) || is_named(opt->happened, steps->name))
            continue;
        json_quote(&name, str_from(steps->name));
        tide_hint_with(&hints, TIDE_ACTION_REPEAT, "", "\"happened\":[{\"name\":%s}]", buf_cstr(&name));
        tide_hint_with(&hints, TIDE_ACTION_REPEAT, "", "\"retry\":[%s]", buf_cstr(&name));
        note->what = arena_printf(&r->arena, "step '%s' must happen once and %s", steps->name,
                                  steps->failed ? "failed: it is not run again"
                                                : "was interrupted: its outcome is unknown, and unless it has a probe "
                                                  "the run ends there");
        memcpy(note->hints, hints.hints, sizeof note->hints);
        json_out_str(o, str_from(note++->what));
    }
    return TIDE_OK;
}

/* Of a program or a chat; whether its program can be run is part of it. */
static enum tide_code plan_graph(struct resume *r, struct tide_err *err)
{
    static const char *const none[] = {"nodes_to_run", "happened", "failed", "missing_inputs", "overrides", "renames"};
    const struct tide_run_options opt = run_options(&r->ask);
    struct json_out o = json_out_to(&r->plan_text);
    struct tide_err *refused = &r->plan_error;
    enum tide_code code;

    if (r->kind != TIDE_KIND_CHAT && !program_run_from_log(&r->program, r->session, refused))
        (void)!program_run_check(&r->program, refused);
    if (!refused->code && r->kind != TIDE_KIND_CHAT)
        (void)!program_run_check_steps(r->session, &opt, refused);
    if (!refused->code)
        run_look_resume(r->session, &opt, refused);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(tide_session_id(r->session)));
    json_out_key(&o, STR("from"));
    json_out_begin(&o, '{');
    json_out_key(&o, STR("checkpoint"));
    json_out_null(&o);
    json_out_kint(&o, STR("seq"), tide_session_last_seq(r->session));
    json_out_key(&o, STR("instead_of"));
    json_out_null(&o);
    json_out_end(&o, '}');
    json_out_kstr(&o, STR("action"), STR("resume"));
    code = run_put_finished(r->session, &o, "complete", err);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        json_out_key(&o, str_from(none[i]));
        json_out_begin(&o, '[');
        json_out_end(&o, ']');
    }
    json_out_key(&o, STR("warnings"));
    json_out_begin(&o, '[');
    if (!code && r->kind != TIDE_KIND_CHAT)
        code = note_open_steps(r, &opt, &o, err);
    json_out_end(&o, ']');
    json_out_key(&o, STR("refused"));
    json_out_begin(&o, '[');
    if (refused->code)
        put_refusal(&o, refused);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    if (code)
        return code;
    r->plan_refused[0] = (struct graph_refusal){.what = refused->code ? refused->msg : NULL,
                                                .hints = {refused->hints[0], refused->hints[1]}};
    r->refused = r->plan_refused;
    r->refused_code = refused->code;
    r->plan = buf_view(&r->plan_text);
    r->result = RESUME_PLANNED;
    return TIDE_OK;
}

/* ---- a program ---- */

/* What the session ran last is in r->program. */
static enum tide_code run_program(struct resume *r, enum program_begin begin, struct tide_run_options *opt,
                                  struct tide_err *err)
{
    struct program_run *p = &r->program;
    enum tide_code code;

    p->begin = begin;
    p->degrade = r->ask.who.degrade;
    if (program_run_settings(p, r->config, r->ask.who.degrade_said, err) || program_run_check(p, err))
        return err->code;
    r->result = RESUME_RAN;
    tell_running(r, true);
    code = program_run(p, r->session, opt, &r->resumed, err);
    tell_running(r, false);
    return code;
}

static enum tide_code resume_program(struct resume *r, struct tide_err *err)
{
    struct tide_run_options opt = run_options(&r->ask);
    /* it waits for input, and a message is queued: that is its answer */
    bool delivers = !r->ask.input && !r->ask.token && settle_delivers(r->session->state);

    return program_run_from_log(&r->program, r->session, err)
               ? err->code
               : run_program(r, delivers ? PROGRAM_SEND : PROGRAM_RESUME, &opt, err);
}

/* ---- a chat ---- */

/* Continues, with a prompt or without one. The session is opened anew: by the chat, which holds it. */
static enum tide_code run_chat(struct resume *r, const char *text, struct tide_err *err)
{
    struct chat_session *c = &r->chat;
    struct agent_want who = r->ask.who;
    struct recovery_thread *sweep;
    const char *prompt = text;
    int64_t sweep_ms = 0;
    enum tide_code code;

    tide_session_close(TAKE(r->session));
    who.keep_pause |= r->ask.unattended;
    if (r->face.open_setup(r->face.arg, &c->setup, err) || agent_setup_begin(&c->setup, &who, err) ||
        (text && r->face.expand_prompt && r->face.expand_prompt(r->face.arg, text, &prompt, err)) ||
        settings_sweep_interval(r->config, &sweep_ms, err))
        return err->code;
    c->setup.store = r->store;
    sweep = recovery_thread_start(r->store, sweep_ms);
    code = chat_open(c, r->ask.id, NULL, 0, err);
    if (!code) {
        sign(r, c->session);
        chat_tell_refused(c);
        r->result = RESUME_RAN;
        tell_running(r, true);
        code = chat_go(c, prompt, r->ask.input, r->ask.token, &r->prompt_refused, &r->chat_answer, err);
        tell_running(r, false);
    }
    recovery_thread_stop(sweep);
    return code;
}

/* ---- a graph ---- */

/* What it waits for and what is stored nowhere is asked for: without it, it is refused. */
static enum tide_code look_at_graph(struct resume *r, struct buf *answer, struct tide_err *err)
{
    const struct resume_face *f = &r->face;
    struct graph_resume *g = &r->graph;
    struct tide_graph_options *o = &r->want.opt;
    bool asked = false;
    enum tide_code code;

    if (g->waits && f->answer && !g->look && !o->input && !o->token && !o->message && !o->checkpoint && !o->fallback) {
        if (f->answer(f->arg, g->session, answer))
            o->input = buf_cstr(answer);
        else if ((code = graph_lapse(r->store, g->session, err)) && code != TIDE_WAITING)
            return code;
    }
    if (f->unread && g->graph)
        graph_find_unread(g->graph, buf_view(&r->memory), f->unread, f->arg);
    if (graph_resume_look(g, err) ||
        (f->ask_missing && !g->look && f->ask_missing(f->arg, g->missing, &r->memory, &asked, err)))
        return err->code;
    o->memory = r->memory.len ? buf_cstr(&r->memory) : NULL;
    return asked ? graph_resume_look(g, err) : TIDE_OK; /* without an input the error names what is missing */
}

static void tell_line(void *arg, const char *line)
{
    const struct resume_face *f = arg;

    if (f->tell)
        f->tell(f->arg, line);
}

static void take_wants(struct resume *r)
{
    const struct resume_request *ask = &r->ask;
    struct graph_want *w = &r->want;

    w->opt.memory = r->memory.len ? buf_cstr(&r->memory) : NULL;
    w->opt.checkpoints = ask->graph.checkpoints;
    w->opt.threads = ask->graph.threads;
    w->opt.checkpoint = ask->graph.checkpoint;
    w->opt.renames = ask->graph.renames;
    w->opt.rollback = ask->graph.rollback;
    w->opt.fallback = ask->graph.fallback;
    w->opt.token = ask->token;
    w->opt.input = ask->input;
    w->opt.by = ask->request && ask->request->by[0] ? ask->request->by : NULL;
    w->opt.retry = ask->retry;
    w->opt.happened = ask->happened;
    w->who = ask->who;
    w->who.keep_pause |= ask->unattended;
}

static enum tide_code run_graph(struct resume *r, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    struct graph_resume *g = &r->graph;
    enum tide_code code;

    take_wants(r);
    g->store = r->store;
    g->id = r->ask.id;
    g->session = r->session;
    g->file = r->ask.graph_file;
    g->want = &r->want;
    g->look = r->ask.dry_run;
    g->quiet = r->quiet;
    g->tell = tell_line;
    g->arg = &r->face;
    if (graph_resume_open(g, err)) {
        r->graph_refused = g->file && err->code == TIDE_INVALID;
        return err->code;
    }
    if (look_at_graph(r, &answer, err))
        return err->code;
    if (g->look) {
        r->plan = buf_view(&g->plan);
        r->refused = g->refused;
        r->refused_code = g->code;
        r->result = RESUME_PLANNED;
        return TIDE_OK;
    }
    if (graph_resume_decide(g, err))
        return err->code;
    r->run.graph = g->graph;
    r->run.session = g->session;
    r->run.want = &r->want;
    if (r->face.open_setup(r->face.arg, &r->run.setup, err))
        return err->code;
    r->run.setup.store = r->store;
    code = graph_run(&r->run, r->config, &r->graph_result, err);
    if (r->run.began)
        r->result = RESUME_RAN;
    return code;
}

enum tide_code start_graph(struct resume *r, struct str json, const char *dir, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *graph = NULL;
    enum tide_code code;

    r->kind = TIDE_KIND_GRAPH;
    take_wants(r);
    if (graph_text_read(json, dir, NULL, NULL, &graph, err) ||
        held_open(&r->face.held, r->store, r->ask.id, &r->session, err) || tide_session_check_trust(r->session, err) ||
        r->face.open_setup(r->face.arg, &r->run.setup, err))
        return err->code;
    sign(r, r->session);
    r->run.graph = graph;
    r->run.session = r->session;
    r->run.want = &r->want;
    r->run.setup.store = r->store;
    code = graph_run(&r->run, r->config, &r->graph_result, err);
    if (r->run.began)
        r->result = RESUME_RAN;
    r->run.graph = NULL;
    return code;
}

/* ---- all of it ---- */

enum tide_code resume_session(struct resume *r, struct tide_err *err)
{
    enum tide_code code = held_open(&r->face.held, r->store, r->ask.id, &r->session, err);

    if (code && code != TIDE_CORRUPT) /* a dry run sees the same damage */
        return code;
    if (resume_kind(r->session, &r->ask, &r->kind, err))
        return err->code;
    sign(r, r->session);
    if (r->ask.ask_again && r->session) {
        if (resume_ask_again(r->session, &r->ask, r->token, err))
            return err->code;
        r->result = r->ask.input ? RESUME_NOTHING : RESUME_ASKED; /* else it is answered as well */
        if (r->result)
            return TIDE_OK;
    }
    if (r->kind == TIDE_KIND_GRAPH)
        return run_graph(r, err);
    if (r->ask.dry_run)
        return plan_graph(r, err);
    return r->kind == TIDE_KIND_CHAT ? run_chat(r, NULL, err) : resume_program(r, err);
}

static void put_queued(struct buf *body, const char *queue_id, struct str content, const struct cause *request)
{
    struct json_out o = json_out_to(body);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("queue_id"), str_from(queue_id));
    json_out_kraw(&o, STR("content"), content);
    if (request)
        cause_put(&o, request);
    json_out_end(&o, '}');
}

enum tide_code refuse_moved(const char *session, int64_t at, int64_t expected, struct tide_err *err)
{
    return tide_fail_session(err, TIDE_CONFLICT, session, "is at %lld, not at %lld: read what is new, then try again",
                             (long long)at, (long long)expected);
}

/*
 * With the lease, for a moment: so it is found among the sessions that recovery looks at. Somebody who has it takes it. TIDE_CONFLICT:
 * something came in between, and there may be more in the queue now.
 */
static enum tide_code queue_once(tide_store *store, const char *session, const struct tide_new_event *ev,
                                 const struct queue_limits *limits, int64_t *ret_seq, struct tide_err *err)
{
    const int64_t max = limits->max, expect = limits->expect_seq;
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, session, TIDE_SESSION_APPEND | TIDE_SESSION_WHOLE, &s, err);

    code = code ? code : tide_session_check_trust(s, err);
    if (!code && expect && tide_session_last_seq(s) != expect)
        code = refuse_moved(session, tide_session_last_seq(s), expect, err);
    if (!code && max && (int64_t)s->state->ledger.queue.live >= max)
        code =
            tide_fail_session(err, TIDE_BUSY, session,
                              "has %lld messages that no run has taken: wait for one, or withdraw one", (long long)max);
    code = code ? code : tide_session_append(s, TIDE_APPEND_RELEASE, ev, 1, ret_seq, err);
    if (code == TIDE_HELD || code == TIDE_FENCED)
        code = tide_session_input(store, session, max || expect ? tide_session_last_seq(s) : -1, ev, 1, ret_seq, err);
    tide_session_close(s);
    return code;
}

enum tide_code send_queue(tide_store *store, const char *session, struct str content, const struct cause *request,
                          const struct queue_limits *limits, char ret_queue_id[QUEUE_ID_SIZE], int64_t *ret_seq,
                          struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT(content.len + 4096);
    struct tide_new_event ev;
    enum tide_code code;
    char id[TIDE_ID_SIZE];

    session_make_id(store_of(store), "q", id);
    snprintf(ret_queue_id, QUEUE_ID_SIZE, "%.*s", QUEUE_ID_SIZE - 1, id);
    put_queued(&body, ret_queue_id, content, request);
    ev = (struct tide_new_event){"queue.added", buf_cstr(&body), body.len};
    do
        code = queue_once(store, session, &ev, limits, ret_seq, err);
    while (code == TIDE_CONFLICT && !limits->expect_seq);
    return code;
}

static enum tide_code queue_message(struct resume *r, struct tide_err *err)
{
    const struct queue_limits limits = {.max = r->ask.queue_max};

    if (send_queue(r->store, tide_session_id(r->session), buf_view(&r->content), r->ask.request, &limits, r->queue_id,
                   &r->seq, err))
        return err->code;
    r->result = RESUME_QUEUED;
    return TIDE_OK;
}

/* It is queued where there is no program, or somebody runs it. */
static enum tide_code send_to_program(struct resume *r, struct tide_err *err)
{
    struct tide_run_options opt = {.size = sizeof opt, .message = buf_cstr(&r->content)};
    enum tide_code code = program_run_from_log(&r->program, r->session, err);

    if (code)
        return code == TIDE_WRONG_STATE ? queue_message(r, err) : code;
    code = run_program(r, PROGRAM_SEND, &opt, err);
    return code == TIDE_HELD ? queue_message(r, err) : code;
}

enum tide_code send_message(struct resume *r, const char *text, bool only_queue, struct tide_err *err)
{
    r->kind = TIDE_KIND_LOG;
    if (tide_session_open(r->store, r->ask.id, only_queue ? TIDE_SESSION_READ : TIDE_SESSION_APPEND, &r->session, err))
        return err->code;
    if (str_is_blank(str_from(text)))
        return tide_fail(err, TIDE_INVALID, "the message is empty");
    json_quote(&r->content, str_from(text));
    sign(r, r->session);
    if (!only_queue && send_kind(r->session, &r->kind, err))
        return err->code;
    if (r->kind == TIDE_KIND_CHAT)
        return run_chat(r, text, err);
    if (r->kind == TIDE_KIND_GRAPH) { /* the one that waits continues with it */
        r->want.opt.message = buf_cstr(&r->content);
        return run_graph(r, err);
    }
    return r->kind == TIDE_KIND_PROGRAM ? send_to_program(r, err) : queue_message(r, err);
}

const char *resume_token(const struct resume *r)
{
    if (r->result == RESUME_ASKED)
        return r->token;
    if (r->kind == TIDE_KIND_GRAPH)
        return r->graph_result.token;
    return r->kind == TIDE_KIND_CHAT && r->chat.agent ? tide_agent_token(r->chat.agent) : "";
}

void resume_done(struct resume *r)
{
    tide_text_done(&r->chat_answer);
    tide_text_done(&r->graph_result.memory);
    graph_run_done(&r->run);
    graph_resume_done(&r->graph);
    chat_session_done(&r->chat);
    program_run_done(&r->program);
    tide_session_close(TAKE(r->session));
    if (r->memory.ptr)
        explicit_bzero(r->memory.ptr, r->memory.len);
    buf_done(&r->memory);
    buf_done(&r->plan_text);
    buf_done(&r->content);
    arena_done(&r->arena);
}
