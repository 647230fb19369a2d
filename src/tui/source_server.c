/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server: each look is a request of the API, whose answer is passed on as it came. Each thread has a connection of its own. What broke is said,
 * and retried by the caller; the stream of what happens continues behind its last id.
 */
#include "tui/source_store.h"

#include <poll.h>
#include <stdio.h>

#include "remote/remote.h"
#include "tui/crew.h"

#define AGAIN_MS 250
#define AGAIN_MAX_MS 4000
#define LOOK_MS 2000 /* at a server whose store has no stream of all sessions */

struct source_server {
    struct source base;
    const char *url, *pin;
    struct remote *lanes[LANES];
};

static enum tide_code open_remote(struct source_server *s, const struct halt *halt, bool once, struct remote **ret,
                                  struct tide_err *err)
{
    return remote_open(
        &(struct remote_options){
            .url = s->url, .pin = s->pin, .stop = &halt->is, .stop_fd = halt->fd, .once = once, .whole_ids = true},
        ret, err);
}

/* ---- looking ---- */

static void param(struct remote *r, const char *name, const char *value)
{
    remote_param(r, name, value[0] ? value : NULL);
}

static void begin_sessions(struct remote *r, const struct ask *ask)
{
    remote_begin(r, "GET", "sessions");
    param(r, "status", ask->status);
    param(r, "kind", ask->kind);
    param(r, "task_id", ask->task_id);
    param(r, "text", ask->text);
    remote_param_int(r, "limit", ask->limit < 1000 ? ask->limit : 1000);
}

static void begin_log(struct remote *r, const struct ask *ask)
{
    remote_begin(r, "GET", "sessions", ask->id, "log");
    if (ask->after >= 0)
        remote_param_int(r, "after", ask->after);
    else
        remote_param_int(r, "before", ask->seq ? ask->seq : INT64_MAX);
    param(r, "kinds", ask->text);
    remote_param_int(r, "limit", ask->limit);
}

static void begin_ask(struct remote *r, const struct ask *ask)
{
    static const char *const parts[ASK_KINDS] = {
        [ASK_PAGE] = "page",         [ASK_TALK] = "transcript",
        [ASK_TIMELINE] = "timeline", [ASK_CHECKPOINTS] = "checkpoints",
        [ASK_STATE] = "state",       [ASK_GRAPH] = "graph",
    };

    if (ask->what == ASK_SESSIONS) {
        begin_sessions(r, ask);
    } else if (ask->what == ASK_INBOX) {
        remote_begin(r, "GET", "inbox");
        remote_param_int(r, "limit", ask->limit);
    } else if (ask->what == ASK_LOG) {
        begin_log(r, ask);
    } else if (ask->what == ASK_PLAN) {
        remote_begin(r, "POST", "sessions", ask->id, "resume");
        remote_body_flag(r, "dry_run", true);
        remote_body_text(r, "checkpoint", ask->how.checkpoint);
        if (ask->how.set)
            json_out_kraw(remote_body(r), STR("set"), str_from(ask->how.set));
    } else if (ask->what == ASK_UNDONE) {
        remote_begin(r, "POST", "sessions", ask->id, "rollback");
        remote_body_flag(r, "dry_run", true);
        json_out_kint(remote_body(r), STR("to"), ask->seq);
    } else {
        remote_begin(r, "GET", "sessions", ask->id, parts[ask->what]);
    }
    if (ask->what == ASK_PAGE || ask->what == ASK_TALK)
        remote_param_int(r, "limit", ask->limit);
    if (ask->what == ASK_TALK && ask->seq)
        remote_param_int(r, "before", ask->seq);
    if ((ask->what == ASK_STATE || ask->what == ASK_GRAPH) && ask->seq)
        remote_param_int(r, "at", ask->seq);
}

static enum tide_code get_answer(struct source *base, struct answer *answer, struct tide_err *err)
{
    struct source_server *s = (struct source_server *)base;
    struct remote **lane = &s->lanes[ask_lane(answer->ask.what)];
    const struct json *v;

    if (!*lane && open_remote(s, &base->halt, true, lane, err)) {
        remote_close(TAKE(*lane));
        return err->code;
    }
    begin_ask(*lane, &answer->ask);
    if (remote_ask_into(*lane, &answer->arena, REMOTE_SOON, &v, err)) {
        answer->lost = err->code == TIDE_IO || err->code == TIDE_BUSY;
        return err->code;
    }
    answer->json = remote_text(*lane);
    return TIDE_OK;
}

/* ---- following ---- */

struct following {
    struct source_server *s;
    struct remote *remote;
    news_fn *fn;
    void *arg;
    int64_t after;
    bool heard; /* the connection stands: something came by it */
};

static void say_back(struct following *f)
{
    if (!f->heard)
        f->fn(f->arg, &(struct news){.what = NEWS_BACK});
    f->heard = true;
}

static int on_event(void *arg, int64_t id, struct str name, struct str data)
{
    struct following *f = arg;

    say_back(f);
    if (id)
        f->after = id;
    if (data.len && !str_eq(name, STR("status")))
        f->fn(f->arg, &(struct news){.what = NEWS_CHANGED});
    return f->s->base.halt.is;
}

/* Where the stream begins: what is committed now. A look at the store's position also shows that the server is there. */
static enum tide_code find_position(struct following *f, struct tide_err *err)
{
    const struct json *v;

    remote_begin(f->remote, "GET", "store");
    if (remote_ask_page(f->remote, REMOTE_SOON, &v, err))
        return err->code;
    if (f->after < 0)
        f->after = json_get_int(v, STR("last_position"), 0);
    return TIDE_OK;
}

/* A store of plain files has no stream of all sessions. */
static enum tide_code look_now_and_then(struct following *f, struct tide_err *err)
{
    while (!find_position(f, err)) {
        say_back(f);
        f->fn(f->arg, &(struct news){.what = NEWS_CHANGED});
        if (halt_within(&f->s->base.halt, LOOK_MS))
            return TIDE_CANCELLED;
    }
    return err->code;
}

static enum tide_code follow_once(struct following *f, struct tide_err *err)
{
    enum tide_code code;

    if (!f->remote && open_remote(f->s, &f->s->base.halt, true, &f->remote, err))
        return err->code;
    if (find_position(f, err))
        return err->code;
    say_back(f);
    f->fn(f->arg, &(struct news){.what = NEWS_CHANGED});
    remote_begin(f->remote, "GET", "events");
    remote_param_int(f->remote, "after", f->after);
    code = remote_follow(f->remote, on_event, f, err);
    if (code == TIDE_INVALID) {
        *err = (struct tide_err){0};
        return look_now_and_then(f, err);
    }
    return code ? code : tide_fail(err, TIDE_IO, "the server has closed the connection");
}

static void follow_sessions(struct source *base, news_fn *fn, void *arg)
{
    struct following f = {.s = (struct source_server *)base, .fn = fn, .arg = arg, .after = -1};
    int pause = AGAIN_MS;

    while (!base->halt.is) {
        struct tide_err err = {0};

        (void)!follow_once(&f, &err);
        if (base->halt.is)
            break;
        pause = f.heard ? AGAIN_MS : pause * 2 < AGAIN_MAX_MS ? pause * 2 : AGAIN_MAX_MS;
        f.heard = false;
        fn(arg, &(struct news){.what = NEWS_LOST, .err = &err});
        if (halt_within(&base->halt, pause))
            break;
    }
    remote_close(f.remote);
}

/* ---- one session ---- */

struct looking {
    const char *id;
    const struct halt *halt;
    news_fn *fn;
    void *arg;
    int64_t after;
    bool heard, gone;
};

/* {"type":"text","text":…} */
static void take_text(const struct looking *l, struct str data)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    struct str text;

    if (json_parse(&a, data, NULL, &v, NULL, NULL))
        return;
    text = json_get_text(&a, v, STR("text"));
    if (str_eq(json_get_text(&a, v, STR("type")), STR("text")) && text.len)
        l->fn(l->arg, &(struct news){.what = NEWS_TEXT, .id = l->id, .text = text});
}

static int on_session_event(void *arg, int64_t id, struct str name, struct str data)
{
    struct looking *l = arg;

    l->heard = true;
    l->gone = str_eq(name, STR("gone"));
    if (id)
        l->after = id;
    if (str_eq(name, STR("text")))
        take_text(l, data);
    else if (data.len && !str_eq(name, STR("status")))
        l->fn(l->arg, &(struct news){.what = NEWS_CHANGED});
    return l->halt->is;
}

/* What broke is said by who follows all of it; here it is only begun again, behind the last event. */
static void look_at(struct source *base, const char *id, struct halt *halt, news_fn *fn, void *arg)
{
    struct looking l = {.id = id, .halt = halt, .fn = fn, .arg = arg, .after = -1};
    struct tide_err err = {0};
    struct remote *r = NULL;
    int pause = AGAIN_MS;

    while (!halt->is && !l.gone && (r || !open_remote((struct source_server *)base, halt, true, &r, &err))) {
        l.heard = false;
        remote_begin(r, "GET", "sessions", id, "events");
        if (l.after >= 0)
            remote_param_int(r, "after", l.after);
        err = (struct tide_err){0};
        if (remote_follow(r, on_session_event, &l, &err) == TIDE_NOT_FOUND)
            break;
        pause = l.heard ? AGAIN_MS : pause * 2 < AGAIN_MAX_MS ? pause * 2 : AGAIN_MAX_MS;
        if (halt_within(halt, pause))
            break;
    }
    remote_close(r);
}

/* ---- acting ---- */

static void put_names(struct remote *r, const char *name, const char *names)
{
    struct json_out *o;

    if (!names)
        return;
    o = remote_body(r);
    json_out_key(o, str_from(name));
    json_out_begin(o, '[');
    for (; names; names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL)
        json_out_str(o, (struct str){names, strcspn(names, ",")});
    json_out_end(o, ']');
}

static void begin_resume(struct remote *r, const struct act *act)
{
    remote_begin(r, "POST", "sessions", act->id, act->what == ACT_ANSWER ? "answer" : "resume");
    if (act->input)
        json_out_kraw(remote_body(r), STR("input"), str_from(act->input));
    remote_body_text(r, "reason", act->reason);
    remote_body_text(r, "checkpoint", act->checkpoint);
    remote_body_text(r, "ask_again", act->ask_again);
    remote_body_flag(r, "now", act->now);
    remote_body_flag(r, "accept_change", act->accept_change);
    if (act->set)
        json_out_kraw(remote_body(r), STR("set"), str_from(act->set));
    put_names(r, "retry", act->retry);
    put_names(r, "happened", act->happened);
}

static void begin_act(struct remote *r, const struct act *act)
{
    switch (act->what) {
    case ACT_ANSWER:
    case ACT_RESUME:
        begin_resume(r, act);
        break;
    case ACT_SEND:
        remote_begin(r, "POST", "sessions", act->id, "messages");
        remote_body_text(r, "content", act->message);
        break;
    case ACT_CANCEL:
        remote_begin(r, "POST", "sessions", act->id, "cancel");
        remote_body_text(r, "reason", act->reason);
        break;
    case ACT_FORK:
        remote_begin(r, "POST", "sessions", act->id, "fork");
        json_out_kint(remote_body(r), STR("at"), act->seq);
        break;
    case ACT_ROLLBACK:
        remote_begin(r, "POST", "sessions", act->id, "rollback");
        json_out_kint(remote_body(r), STR("to"), act->seq);
        remote_body_text(r, "reason", act->reason);
        break;
    case ACT_NOTHING:
        break;
    }
}

static enum tide_code run_act(struct source *base, const struct act *what, struct acted *ret, struct tide_err *err)
{
    static const char *const said[] = {
        [ACT_ANSWER] = "answered",  [ACT_RESUME] = "resumed", [ACT_SEND] = "sent",
        [ACT_CANCEL] = "cancelled", [ACT_FORK] = "forked",    [ACT_ROLLBACK] = "rolled back",
    };
    struct remote *r = NULL;
    const struct json *v = NULL;
    enum tide_code code = open_remote((struct source_server *)base, &base->halt, false, &r, err);

    if (!code) {
        begin_act(r, what);
        code = remote_ask(r, REMOTE_SOON, &v, err);
    }
    if (!code && what->what == ACT_FORK)
        snprintf(ret->new_id, sizeof ret->new_id, "%.*s",
                 STR_ARG(json_get_text(remote_arena(r), v, STR("session_id"))));
    if (!code)
        snprintf(ret->said, sizeof ret->said, "%s: %s", what->id, said[what->what]);
    remote_close(r);
    return code;
}

static void close_source(struct source *base)
{
    struct source_server *s = (struct source_server *)base;

    for (int i = 0; i < LANES; i++)
        remote_close(s->lanes[i]);
    free(s);
}

static const struct source_ops ops = {get_answer, run_act, follow_sessions, look_at, close_source};

enum tide_code source_server_new(const char *url, const char *pin, struct source **ret, struct tide_err *err)
{
    struct source_server *s = mem_zero(sizeof *s);
    struct remote *probe = NULL;
    const struct json *v;
    enum tide_code code;

    s->base = (struct source){.ops = &ops, .name = url, .is_server = true};
    halt_init(&s->base.halt);
    s->url = url;
    s->pin = pin;
    code = open_remote(s, &s->base.halt, true, &probe, err); /* that nobody is there is said before there is a screen */
    if (!code) {
        remote_begin(probe, "GET", "store");
        code = remote_ask(probe, REMOTE_SOON, &v, err);
    }
    remote_close(probe);
    if (code)
        source_free(&s->base);
    else
        *ret = &s->base;
    return code;
}
