/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/chat_session.h"

#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"
#include "engine/rollback.h"
#include "session/action.h"
#include "session/session.h"
#include "session/status.h"

#define TITLE_CHARS 60
#define LATEST_LOOKED_AT 200

void chat_leave(struct chat_session *c)
{
    tide_agent_free(TAKE(c->agent));
    tide_session_close(TAKE(c->session));
}

void chat_session_done(struct chat_session *c)
{
    chat_leave(c);
    agent_setup_done(&c->setup);
    arena_done(&c->prompt);
}

/* The directory, and what the project says there. */
static void read_project(struct chat_session *c)
{
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);
    const char *dir = session_stored(&c->setup.arena, c->session, NULL, "working_dir");

    c->project = (struct project_instructions){.text = NULL};
    c->working_dir = dir ? dir : arena_dup(&c->setup.arena, str_from(cwd)).ptr;
    if (config_bool(c->setup.settings.config, "project_instructions"))
        project_instructions_read(&c->setup.arena, c->working_dir, &c->project);
    c->setup.opt.instructions = c->project.text;
}

enum tide_code chat_agent(struct chat_session *c, struct tide_err *err)
{
    tide_agent_free(TAKE(c->agent));
    if (agent_setup_choose(&c->setup, c->session, err))
        return err->code;
    read_project(c);
    return tide_agent_new(c->session, &c->setup.opt, &c->agent, err);
}

static int look_at_one(void *arg, const struct tide_message *m)
{
    (void)arg;
    (void)m;
    return 1;
}

static const char *list_names(struct arena *a, const struct json *names)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);

    for (const struct json *n = names ? names->first : NULL; n; n = n->next)
        buf_addf(&out, "%s%.*s", out.len ? ", " : "", STR_ARG(json_text(a, n)));
    return out.len ? arena_dup(a, buf_view(&out)).ptr : NULL;
}

static void about_next(struct chat_session *c, struct arena *a, struct chat_about *ret)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);

    read_project(c);
    for (size_t i = c->project.n; i > 0; i--) /* as the prompt has them */
        if (!c->project.files[i - 1].refused)
            buf_addf(&out, "%s%s", out.len ? ", " : "", c->project.files[i - 1].name);
    *ret = (struct chat_about){.provider = c->setup.opt.provider,
                               .model = c->setup.opt.model ? c->setup.opt.model : "",
                               .working_dir = c->working_dir,
                               .instructions = out.len ? arena_dup(a, buf_view(&out)).ptr : NULL};
}

void chat_about(struct chat_session *c, struct arena *a, struct chat_about *ret)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *info = NULL;

    if (!c->agent) {
        about_next(c, a, ret);
        return;
    }
    *ret = (struct chat_about){"", "", "", NULL};
    if (tide_agent_read_history(c->agent, look_at_one, NULL, NULL) || tide_agent_get_info(c->agent, &text, NULL) ||
        json_parse(a, arena_dup(a, (struct str){text.ptr, text.len}), NULL, &info, NULL, NULL))
        return; /* the next process that continues it sees why */
    ret->provider = arena_dup(a, json_get_text(a, info, STR("provider"))).ptr;
    ret->model = arena_dup(a, json_get_text(a, info, STR("model"))).ptr;
    ret->working_dir = arena_dup(a, json_get_text(a, info, STR("working_dir"))).ptr;
    ret->instructions = list_names(a, json_get(info, STR("instructions")));
}

/* ---- sessions ---- */

/*
 * The directory, the title, and who is to answer, as the agent would record it with the first prompt: so a chat that is cut
 * before that is known to be one.
 */
static void put_fields(struct chat_session *c, const char *prompt, const char *dir, const struct session_fields *more,
                       struct buf *out)
{
    const struct tide_agent_options *opt = &c->setup.opt;
    const char *model = opt->model ? opt->model : strcmp(opt->provider, "script") == 0 ? "script" : NULL;
    struct str first_line = {prompt, strcspn(prompt, "\n")};
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), str_from(c->agent_name ? c->agent_name : "chat"));
    json_out_kstr_opt(&o, STR("title"), c->title ? str_from(c->title) : utf8_first(first_line, TITLE_CHARS));
    json_out_kstr_opt(&o, STR("working_dir"), str_from(dir));
    session_fields_put(&o, more);
    json_out_key(&o, STR("provider"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), str_from(opt->provider));
    json_out_kstr_opt(&o, STR("model"), str_from(model));
    json_out_kstr_opt(&o, STR("base_url"), str_from(opt->base_url));
    json_out_kstr_opt(&o, STR("script"), str_from(opt->script));
    json_out_end(&o, '}');
    json_out_end(&o, '}');
}

static bool is_stopped(const struct chat_session *c)
{
    return c->stopped && c->stopped(c->setup.opt.arg);
}

/* Before there is an agent: the same words as from one. */
static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    const struct chat_session *c = arg;
    char line[sizeof((struct tide_err *)NULL)->msg + 100];

    if (!why) {
        agent_setup_tell(&c->setup, "the store can be written again: continuing");
    } else if (!waited_ms) {
        snprintf(line, sizeof line, "%s: paused until the store can be written", why->msg);
        if (c->setup.tell_trouble)
            c->setup.tell_trouble(c->setup.opt.arg, line, why);
        else
            agent_setup_tell(&c->setup, "%s", line);
    }
    return is_stopped(c);
}

static enum tide_code unless_stopped(const struct chat_session *c, enum tide_code code, struct tide_err *err)
{
    if (session_is_trouble(code) && is_stopped(c))
        return tide_fail(err, TIDE_CANCELLED, "stopped before the chat began");
    return code;
}

/* One that is there; whether it is trusted is asked before anything is said of it, or looked for on its behalf. */
static enum tide_code take_session(struct chat_session *c, const char *id, tide_session **ret, struct tide_err *err)
{
    enum tide_code code = session_open_held(c->setup.store, id, on_trouble, c, ret, err);

    if (code)
        return unless_stopped(c, code, err);
    session_be_patient(*ret, on_trouble, c);
    code = tide_session_check_trust(*ret, err);
    session_be_quick(*ret);
    if (code)
        tide_session_close(TAKE(*ret));
    return unless_stopped(c, code, err);
}

/* Before the first event, whose title may hold it. */
static void hide_key(const struct chat_session *c)
{
    const char *key = c->setup.opt.api_key;

    if (key)
        (void)!tide_store_add_secret(c->setup.store, "api_key", key, strlen(key), NULL);
}

enum tide_code chat_create(struct chat_session *c, const struct chat_creation *what, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);

    if (agent_setup_check(&c->setup, NULL, err))
        return err->code;
    put_fields(c, "", what->working_dir, what->fields, &fields);
    hide_key(c);
    return tide_session_create(c->setup.store, what->id, buf_cstr(&fields), &c->session, err);
}

enum tide_code chat_new(struct chat_session *c, const char *prompt, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);

    if (agent_setup_check(&c->setup, c->session, err))
        return err->code;
    put_fields(c, prompt, cwd, NULL, &fields);
    hide_key(c);
    if (unless_stopped(c, session_create_held(c->setup.store, NULL, buf_cstr(&fields), on_trouble, c, &c->session, err),
                       err))
        return err->code;
    if (chat_agent(c, err)) { /* what is wrong with the settings leaves no session behind */
        char id[TIDE_ID_SIZE];
        struct tide_err ignored;

        snprintf(id, sizeof(id), "%s", tide_session_id(c->session));
        chat_leave(c);
        (void)!tide_session_delete(c->setup.store, id, &ignored);
        return err->code;
    }
    return TIDE_OK;
}

struct kept {
    const char *word, *argument, *before, *now;
};

static void say_kept(struct chat_session *c, const struct kept *all, size_t n)
{
    AUTO(buf_done) struct buf before = BUF_INIT(16384), now = BUF_INIT(16384), change = BUF_INIT(16384);
    struct json_out o = json_out_to(&change);

    json_out_begin(&o, '{');

    for (size_t i = 0; i < n; i++) {
        const struct kept *k = &all[i];

        if (!k->now || (k->before && strcmp(k->before, k->now) == 0))
            continue;
        buf_addf(&before, "%s%s %s", before.len ? ", " : "", k->word, k->before ? k->before : "of its provider");
        buf_addf(&now, "%s%s %s", now.len ? ", " : "", k->word, k->now);
        json_out_kstr(&o, str_from(k->argument), str_from(k->now));
    }
    json_out_end(&o, '}');
    if (now.len)
        agent_setup_offer(&c->setup, buf_cstr(&change), "this chat keeps its %s; configured now: %s", buf_cstr(&before),
                          buf_cstr(&now));
}

/* A chat keeps who answers. That others are set now is no reason to change it, but nothing to be silent about. */
static void tell_kept(struct chat_session *c, const char *type, const char *model)
{
    const struct config *cfg = c->setup.settings.config;
    const struct agent_want *w = &c->setup.want;
    const char *told = w->provider ? w->provider : w->script ? "script" : NULL, *set = config_text(cfg, "provider");
    const struct kept all[] = {
        {"provider", "provider", type, !told && strcmp(config_origin(cfg, "provider"), "default") != 0 ? set : NULL},
        {"model", "model", model, model && !c->setup.want.model ? config_text(cfg, "model") : NULL},
        {"server", "base_url", session_stored(&c->setup.arena, c->session, "provider", "base_url"),
         !w->base_url && strcmp(type, "script") != 0 ? config_text(cfg, "base_url") : NULL},
    };

    if (!told || strcmp(told, type) == 0) /* else nothing is kept */
        say_kept(c, all, sizeof(all) / sizeof(all[0]));
}

static enum tide_code refuse_other(const tide_session *session, struct tide_err *err)
{
    const char *id = session->head.id;
    struct status st;

    status_of_session(&st, session->store, session->state, session->head.holder_alive);
    tide_fail_session(err, TIDE_INVALID, id, "was not made by a chat");
    if (st.next_count)
        action_hint(err, id, &st.next[0]);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, id, "\"provider\":null");
}

enum tide_code chat_take(struct chat_session *c, tide_session *session, struct tide_err *err)
{
    const char *type, *model;

    chat_leave(c);
    c->session = session;
    c->resumed = true;
    type = session_stored(&c->setup.arena, session, "provider", "type");
    model = session_stored(&c->setup.arena, session, "provider", "model");
    if (!c->setup.want.provider && session_kind(session->state) != TIDE_KIND_CHAT)
        return refuse_other(session, err);
    if (type && c->setup.want.provider && strcmp(type, c->setup.want.provider) != 0)
        agent_setup_tell(&c->setup, "provider %s instead of %s, as told", c->setup.want.provider, type);
    if (model && c->setup.want.model && strcmp(model, c->setup.want.model) != 0)
        agent_setup_tell(&c->setup, "model %s instead of %s, as told", c->setup.want.model, model);
    if (type)
        tell_kept(c, type, model);
    if (!chat_agent(c, err))
        return TIDE_OK;
    chat_leave(c); /* a session without an agent is none that could be spoken to */
    return err->code;
}

/* ---- going back ---- */

/* The session is closed meanwhile: as long as we hold it, nobody else ends its run, and we are who would be asked to. */
static enum tide_code withdraw_prompt(struct chat_session *c, const char *reason, struct tide_err *err)
{
    enum tide_cancelled how;
    char id[TIDE_ID_SIZE];

    snprintf(id, sizeof(id), "%s", tide_session_id(c->session));
    chat_leave(c);
    if (tide_session_cancel(c->setup.store, id, "local", reason, 0, &how, err) ||
        tide_session_open(c->setup.store, id, TIDE_SESSION_APPEND, &c->session, err))
        return err->code;
    return chat_agent(c, err);
}

/* A question that was rolled back is not to be answered: it is withdrawn, or the run would wait for it for ever. */
enum tide_code chat_roll_back_to(struct chat_session *c, int64_t seq, unsigned flags, const char *reason,
                                 char **ret_withdrawn, struct tide_err *err)
{
    AUTO(mem_freep) char *question = NULL;

    if (rollback_to(c->session, seq, flags, reason, &question, err) || (question && withdraw_prompt(c, reason, err)))
        return err->code;
    *ret_withdrawn = TAKE(question);
    return TIDE_OK;
}

static enum tide_code go_back(struct chat_session *c, const char *from, unsigned flags, struct tide_err *err)
{
    AUTO(mem_freep) char *withdrawn = NULL;
    int64_t seq = 0;

    if (rollback_point(c->setup.store, c->session, from, &seq, err))
        return err->code;
    if (seq < 0)
        agent_setup_tell(&c->setup, "session %s has no checkpoint yet: everything is kept",
                         tide_session_id(c->session));
    if (seq < 0 || seq == tide_session_last_seq(c->session))
        return TIDE_OK;
    if (chat_roll_back_to(c, seq, flags, "a chat continues from there", &withdrawn, err))
        return err->code;
    if (withdrawn)
        agent_setup_tell(&c->setup, CHAT_WITHDRAWN, withdrawn);
    return TIDE_OK;
}

enum tide_code chat_open(struct chat_session *c, const char *id, const char *from, unsigned rollback,
                         struct tide_err *err)
{
    tide_session *session = NULL;

    if (take_session(c, id, &session, err) || chat_take(c, session, err))
        return err->code;
    return from ? go_back(c, from, rollback, err) : TIDE_OK;
}

struct latest {
    char ids[LATEST_LOOKED_AT][TIDE_ID_SIZE];
    size_t n;
};

static int take_id(void *arg, const struct tide_session_info *info)
{
    struct latest *l = arg;

    snprintf(l->ids[l->n++], TIDE_ID_SIZE, "%s", info->id);
    return l->n == LATEST_LOOKED_AT;
}

static bool is_here(struct chat_session *c, const char *id, const char *cwd)
{
    tide_session *s = NULL;
    struct tide_err err;
    const char *dir;
    bool here;

    if (tide_session_open(c->setup.store, id, TIDE_SESSION_READ, &s, &err)) {
        if (err.code == TIDE_CORRUPT)
            agent_setup_tell(&c->setup, "ignored: %s", err.msg); /* it may be the one that is meant */
        return false;
    }
    dir = session_stored(&c->setup.arena, s, NULL, "working_dir");
    here = dir && cwd && strcmp(dir, cwd) == 0 && session_kind(s->state) == TIDE_KIND_CHAT;
    tide_session_close(s);
    return here;
}

enum tide_code chat_open_latest(struct chat_session *c, struct tide_err *err)
{
    const struct tide_list_filter filter = {.size = sizeof filter, .limit = LATEST_LOOKED_AT};
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);
    AUTO(mem_freep) struct latest *l = mem_zero(sizeof(*l));

    if (tide_session_list(c->setup.store, &filter, take_id, l, err))
        return err->code;
    for (size_t i = 0; i < l->n; i++)
        if (is_here(c, l->ids[i], cwd))
            return chat_open(c, l->ids[i], NULL, 0, err);
    tide_fail(err, TIDE_NOT_FOUND, "no chat was begun in this directory");
    tide_about(err, TIDE_SUBJECT_ARGUMENT, "continue");
    tide_hint(err, TIDE_ACTION_START, "");
    err->hints[0].kind = TIDE_KIND_CHAT;
    return err->code;
}

/* ---- what is to be done ---- */

void chat_tell_refused(const struct chat_session *c)
{
    for (size_t i = 0; i < c->project.n; i++)
        if (c->project.files[i].refused)
            agent_setup_tell(&c->setup, CHAT_FILE_REFUSED, c->project.files[i].name, c->project.files[i].refused);
}

bool chat_was_stopped(struct chat_session *c)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *state = NULL;

    return !tide_session_get_state(c->session, 0, &text, NULL) &&
           !json_parse(&a, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL) &&
           json_get_bool(json_get(json_get(state, STR("ledger")), STR("run")), STR("by_person"), false);
}

bool chat_needs_resume(struct chat_session *c)
{
    const struct tide_session_info *info;

    return !tide_session_refresh(c->session, NULL) && !tide_session_get_info(c->session, &info, NULL) &&
           info->needs_resume && !chat_was_stopped(c);
}

bool chat_can_go_on(struct chat_session *c)
{
    const struct tide_session_info *info;

    return !tide_session_refresh(c->session, NULL) && !tide_session_get_info(c->session, &info, NULL) &&
           (info->status != TIDE_STATUS_IDLE || info->outcome == TIDE_OUTCOME_FAILED);
}

enum tide_code chat_say(struct chat_session *c, const char *prompt, struct tide_text *ret_answer, struct tide_err *err)
{
    for (size_t i = 0; i < c->n_images; i++)
        if (tide_agent_attach(c->agent, c->images[i].name, c->images[i].bytes.ptr, c->images[i].bytes.len, err))
            return err->code;
    return tide_agent_run(c->agent, prompt, ret_answer, err);
}

enum tide_code chat_go(struct chat_session *c, const char *prompt, const char *input, const char *token,
                       bool *ret_refused, struct tide_text *ret_answer, struct tide_err *err)
{
    enum tide_code code;

    *ret_refused = false;
    if (!prompt)
        return tide_agent_resume(c->agent, input, token, ret_answer, err);
    if (chat_needs_resume(c)) { /* what was cut comes first */
        code = tide_agent_resume(c->agent, NULL, NULL, NULL, err);
        *ret_refused = code && code != TIDE_NOT_FOUND;
        if (*ret_refused)
            return code;
    }
    return chat_say(c, prompt, ret_answer, err);
}
