/* SPDX-License-Identifier: Apache-2.0 */
/* From settings, options and what a session has stored to an agent. A new session is made with its first prompt, so that
 * looking around leaves nothing behind. */
#include "cli/chat/chat.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/permit.h"
#include "agent/provider.h"
#include "cli/graph/graph_view.h"
#include "cli/terminal/progress.h"
#include "cli/temporary.h"
#include "engine/store_url.h"
#include "program/recovery_thread.h"
#include "session/session.h"
#include "session/status.h"

#define TITLE_CHARS 60
#define LATEST_LOOKED_AT 200

/* ---- settings ---- */

static const char *keep(struct chat *c, struct str s)
{
    return s.len ? arena_dup(&c->arena, s).ptr : NULL;
}

void chat_tell(const struct chat *c, const char *fmt, ...)
{
    char line[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (c->tell)
        c->tell(c->opt.arg, line);
    else
        say("%s", line);
}

/* Here, so that rules are counted as they stand in the settings. */
static enum tide_code check_permissions(const struct chat *c, struct tide_err *err)
{
    struct permits *p = NULL;
    enum tide_code code = permits_parse(config_json(c->settings.config, "permissions"), &p, err);

    permits_free(p);
    return code;
}

/* [] for auto_approve_tools true is every tool. Rules of the settings come after, so that they win. */
static const char *permissions(struct chat *c)
{
    struct str given = config_json(c->settings.config, "permissions"),
               approved = config_json(c->settings.config, "auto_approve_tools");
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&out);
    struct json *list = NULL;

    json_out_begin(&o, '[');
    if (c->want->yes || str_eq(approved, STR("true")))
        json_out_raw(&o, STR("{\"tool\":\"*\",\"permission\":\"allow\"}"));
    if (!json_parse(&c->arena, approved, NULL, &list, NULL, NULL) && list->type == JSON_ARRAY)
        for (const struct json *t = list->first; t; t = t->next) {
            json_out_begin(&o, '{');
            json_out_kraw(&o, STR("tool"), json_source(t));
            json_out_kstr(&o, STR("permission"), STR("allow"));
            json_out_end(&o, '}');
        }
    if (!json_parse(&c->arena, given, NULL, &list, NULL, NULL) && list->type == JSON_ARRAY)
        for (const struct json *t = list->first; t; t = t->next)
            json_out_raw(&o, json_source(t));
    json_out_end(&o, ']');
    return keep(c, buf_view(&out));
}

/* The hooks of the settings, and those of the file that they name. */
static enum tide_code put_hooks(struct chat *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf file = BUF_INIT((size_t)1 << 20), out = BUF_INIT((size_t)4 << 20);
    struct json_out o = json_out_to(&out);
    const struct json *more = NULL;
    struct json *list = NULL, *whole = NULL;

    if (config_text(c->settings.config, "hooks_file")) {
        if (settings_read(&c->settings, "hooks_file", &file, err))
            return err->code;
        if (json_parse(&c->arena, arena_dup(&c->arena, buf_view(&file)), NULL, &whole, NULL, err))
            return tide_wrap(err, "hooks_file: %.150s", config_text(c->settings.config, "hooks_file"));
        more = whole->type == JSON_ARRAY ? whole : json_get(whole, STR("hooks"));
        if (!more || more->type != JSON_ARRAY)
            return tide_fail(err, TIDE_INVALID, "hooks_file: %.150s: must be a list of hooks, or {\"hooks\": [...]}",
                             config_text(c->settings.config, "hooks_file"));
    }
    json_out_begin(&o, '[');
    if (!json_parse(&c->arena, config_json(c->settings.config, "hooks"), NULL, &list, NULL, NULL))
        for (const struct json *h = list->first; h; h = h->next)
            json_out_raw(&o, json_source(h));
    for (const struct json *h = more ? more->first : NULL; h; h = h->next)
        json_out_raw(&o, json_source(h));
    json_out_end(&o, ']');
    c->opt.hooks = keep(c, buf_view(&out));
    return TIDE_OK;
}

static int64_t or_none(int64_t n)
{
    return n ? n : -1; /* what is 0 in the settings is "none", in the options "the default" */
}

static enum tide_code put_options(struct chat *c, struct tide_err *err)
{
    const struct config *cfg = c->settings.config;
    const char *continues = config_text(cfg, "on_store_error");

    c->opt.system_prompt = config_text(cfg, "system_prompt");
    c->opt.max_turns = (int)(c->want->max_turns ? c->want->max_turns : config_int(cfg, "max_turns"));
    c->opt.max_answer_tokens = config_int(cfg, "max_answer_tokens");
    c->opt.max_context_tokens = config_int(cfg, "max_context_tokens");
    c->opt.context_percent = (int)config_int(cfg, "context_trim_percent");
    c->opt.max_retries = (int)or_none(config_int(cfg, "max_retries"));
    c->opt.retry_base_delay_ms = config_int(cfg, "retry_base_delay_ms");
    c->opt.max_tool_result_chars = or_none(config_int(cfg, "max_tool_result_chars"));
    c->opt.tool_timeout_ms = config_int(cfg, "tool_timeout_ms");
    c->opt.hook_timeout_ms = config_int(cfg, "hook_timeout_ms");
    c->opt.connect_timeout_ms = config_int(cfg, "connect_timeout_ms");
    c->opt.first_byte_timeout_ms = config_int(cfg, "first_byte_timeout_ms");
    c->opt.silence_timeout_ms = config_int(cfg, "silence_timeout_ms");
    c->opt.stall_timeout_ms = config_int(cfg, "stall_timeout_ms");
    c->opt.call_timeout_ms = config_int(cfg, "call_timeout_ms");
    c->opt.max_retry_after_ms = config_int(cfg, "max_retry_after_ms");
    c->opt.retry_now = !c->want->keep_pause;
    c->opt.max_cost = config_number(cfg, "max_cost");
    c->opt.max_tokens = config_int(cfg, "max_tokens");
    c->opt.prices = keep(c, config_json(cfg, "prices"));
    c->opt.permissions = permissions(c);
    c->opt.no_tools = c->want->no_tools;
    c->opt.refresh_prompt = c->want->refresh_prompt;
    c->opt.on_store_error_continue =
        c->want->degrade_said ? c->want->degrade : continues && strcmp(continues, "continue") == 0;
    return put_hooks(c, err);
}

enum tide_code chat_init(struct chat *c, struct cli *cli, const struct chat_want *want, tide_agent_event_fn *event,
                         tide_approve_fn *approve, void *arg, struct tide_err *err)
{
    *c = (struct chat){.cli = cli, .want = want, .model = want->model, .arena = ARENA_INIT, .key = BUF_INIT(8192)};
    c->opt.event = event;
    c->opt.approve = approve;
    c->opt.arg = arg;
    if (cli_settings_open(cli, &c->settings, err) || cli_settings_log(cli, &c->settings, err) ||
        check_permissions(c, err))
        return err->code;
    return put_options(c, err);
}

void chat_leave(struct chat *c)
{
    tide_agent_free(TAKE(c->agent));
    tide_session_close(TAKE(c->session));
}

void chat_done(struct chat *c)
{
    chat_leave(c);
    recovery_thread_stop(TAKE(c->sweep));
    cli_store_close(c->cli);
    temporary_remove(c->temporary);
    explicit_bzero(c->key.ptr ? c->key.ptr : (char[1]){0}, c->key.ptr ? c->key.len : 1);
    buf_done(&c->key);
    settings_done(&c->settings);
    arena_done(&c->arena);
    arena_done(&c->prompt);
}

/* ---- the store ---- */

enum tide_code chat_store(struct chat *c, struct tide_err *err)
{
    const struct tide_store_options opt = {.flags = TIDE_OPEN_CREATE};
    bool is_new = !c->want->resume && !c->want->latest;
    int64_t sweep_ms = 0;

    if (is_new && chat_check(c, err)) /* what is refused makes no store */
        return err->code;
    if (!c->want->no_store) {
        if (settings_sweep_interval(args_text(&c->cli->args, "config"), &sweep_ms, err))
            return err->code;
        if (cli_store_open(c->cli, is_new ? NEED_CREATE : NEED_WRITE, 0, err))
            return is_new ? tide_wrap(err, "chat: nothing can be kept (--no-store chats without)") : err->code;
        c->sweep = recovery_thread_start(c->cli->store, sweep_ms);
        return TIDE_OK;
    }
    if (temporary_make(&c->arena, "chat", &c->temporary, err))
        return tide_wrap(err, "a chat that is not kept");
    return tide_store_open(arena_printf(&c->arena, "%s/chat.db", c->temporary), &opt, &c->cli->store, err);
}

/* ---- the agent ---- */

/* A member of the session's provider, or of the session; NULL: it has none. */
static const char *stored(struct chat *c, tide_session *session, const char *object, const char *member)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct json *v;
    struct json *state = NULL;

    if (!session || tide_state(session, 0, &text, NULL) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL))
        return NULL;
    v = json_get(state, STR("session"));
    v = object ? json_get(v, str_from(object)) : v;
    return keep(c, json_get_text(&a, v, str_from(member)));
}

bool chat_made(tide_session *session)
{
    struct chat c = {.arena = ARENA_INIT};
    bool made = stored(&c, session, "provider", "type") && !graph_made(session) && !status_is_new_graph(session->state);

    arena_done(&c.arena);
    return made || status_is_new_chat(session->state);
}

/* The address comes from the session and from nowhere else: it may have been imported, and the key is not its business. */
static bool is_strange(struct chat *c, const char *provider)
{
    const char *set = config_text(c->settings.config, "base_url");
    struct tide_err ignored;

    if (c->want->base_url || !c->opt.base_url || (set && strcmp(set, c->opt.base_url) == 0))
        return false;
    if (!config_api_key(c->settings.config, provider, &c->key, &ignored) && c->key.len) {
        (void)!tide_store_add_secret(c->cli->store, "api_key", c->key.ptr, c->key.len, NULL);
        chat_tell(c, "the key is not sent to %s, which only this session names: --base-url %s sends it",
                  c->opt.base_url, c->opt.base_url);
    }
    explicit_bzero(c->key.ptr ? c->key.ptr : (char[1]){0}, c->key.len);
    buf_clear(&c->key);
    return true;
}

/* All that is missing at once: whoever sets the one should not be sent away again for the other. */
static enum tide_code check_complete(const char *provider, bool no_key, bool no_model, struct tide_err *err)
{
    const char *variable = strcmp(provider, "openai") == 0 ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY";

    if (no_key && no_model)
        return tide_fail(err, TIDE_INVALID,
                         "no key for %s, and no model: set %s or `tidemark config set api_key file:PATH`, and give "
                         "--model or `tidemark config set model NAME`",
                         provider, variable);
    if (no_key)
        return tide_fail(err, TIDE_INVALID,
                         "no key for %s: set %s, or say where it is: `tidemark config set api_key file:PATH`", provider,
                         variable);
    if (no_model)
        return tide_fail(err, TIDE_INVALID, "no model: give --model, or `tidemark config set model NAME`");
    return TIDE_OK;
}

static enum tide_code find_key(struct chat *c, const char *provider, bool no_model, struct tide_err *err)
{
    buf_clear(&c->key);
    c->opt.api_key = NULL;
    if (strcmp(provider, "script") == 0)
        return TIDE_OK;
    if (is_strange(c, provider))
        return check_complete(provider, false, no_model, err);
    if (config_api_key(c->settings.config, provider, &c->key, err))
        return err->code;
    c->opt.api_key = c->key.len ? buf_cstr(&c->key) : NULL;
    return check_complete(provider, !c->key.len && !c->opt.base_url, no_model, err);
}

/* Whole, as it is stored: an option's is relative to where we are, the settings' to where they are. NULL: none. */
static const char *script_path(struct chat *c, bool as_stored)
{
    const char *set = as_stored ? NULL : config_text(c->settings.config, "script"), *kept;
    AUTO(mem_freep)
    char *path = c->want->script ? mem_dup(str_from(c->want->script)) : set ? settings_path(&c->settings, set) : NULL;
    AUTO(mem_freep) char *real = path && path[0] != '/' ? realpath(path, NULL) : NULL;

    kept = real ? real : path;
    return kept ? arena_dup(&c->arena, str_from(kept)).ptr : NULL;
}

/* What was asked for, else what the session has, else what is set. */
static enum tide_code choose(struct chat *c, struct tide_err *err)
{
    const struct config *cfg = c->settings.config;
    const char *type = stored(c, c->session, "provider", "type");
    const char *provider = c->want->provider ? c->want->provider
                           : c->want->script ? "script"
                           : type            ? type
                                             : config_text(cfg, "provider");
    bool as_stored = type && strcmp(type, provider) == 0;

    c->opt.provider = provider;
    c->opt.model = c->model ? c->model : as_stored ? NULL : config_text(cfg, "model");
    c->opt.base_url = c->want->base_url;
    if (!c->opt.base_url && (as_stored || !type))
        c->opt.base_url = stored(c, c->session, "provider", "base_url");
    if (!c->opt.base_url && !as_stored)
        c->opt.base_url = config_text(cfg, "base_url");
    c->opt.script = script_path(c, as_stored);
    return find_key(c, provider, !c->opt.model && !as_stored, err);
}

enum tide_code chat_check(struct chat *c, struct tide_err *err)
{
    struct provider *p = NULL;
    enum tide_code code = choose(c, err);

    if (!code)
        code = provider_open(
            &(struct provider_config){
                .type = c->opt.provider, .base_url = c->opt.base_url, .key = c->opt.api_key, .script = c->opt.script},
            &p, err);
    provider_close(p);
    return code;
}

enum tide_decision chat_yes(const struct chat *c, const struct tide_approval *ask)
{
    static const enum tide_decision words[] = {
        [PERMIT_ALLOW] = TIDE_DECIDE_ALLOW, [PERMIT_ASK] = TIDE_DECIDE_LATER, [PERMIT_DENY] = TIDE_DECIDE_DENY};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct tool *tool = ask->tool ? tool_find(str_from(ask->tool)) : NULL;
    enum tide_decision decision = TIDE_DECIDE_LATER;
    struct permits *p = NULL;
    struct json *args = NULL;

    if (c->want->yes && tool && !permits_parse(str_from(c->opt.permissions), &p, NULL) &&
        !json_parse(&a, str_from(ask->args), NULL, &args, NULL, NULL))
        decision = words[permits_ask(p, tool, args)];
    permits_free(p);
    return decision;
}

enum tide_code chat_agent(struct chat *c, struct tide_err *err)
{
    tide_agent_free(TAKE(c->agent));
    return choose(c, err) ? err->code : tide_agent_new(c->session, &c->opt, &c->agent, err);
}

/* ---- sessions ---- */

/* As the agent would record it with the first prompt: with it, a chat that is cut before that is known to be one. */
static void put_provider(const struct chat *c, struct json_out *o)
{
    const char *model = c->opt.model ? c->opt.model : strcmp(c->opt.provider, "script") == 0 ? "script" : NULL;

    json_out_key(o, STR("provider"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("type"), str_from(c->opt.provider));
    json_out_kstr_opt(o, STR("model"), str_from(model));
    json_out_kstr_opt(o, STR("base_url"), str_from(c->opt.base_url));
    json_out_kstr_opt(o, STR("script"), str_from(c->opt.script));
    json_out_end(o, '}');
}

/* The directory, the title, and who is to answer. */
static void put_fields(struct chat *c, const char *prompt, const char *dir, struct buf *out)
{
    struct json_out o = json_out_to(out);
    struct str title = {prompt, strcspn(prompt, "\n")};
    const char *agent = c->want->agent, *given = c->want->title;
    size_t chars = 0, at = 0;

    while (at < title.len && (chars < TITLE_CHARS || (title.ptr[at] & 0xc0) == 0x80))
        chars += (title.ptr[at++] & 0xc0) != 0x80;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), str_from(agent ? agent : "chat"));
    json_out_kstr_opt(&o, STR("title"), given ? str_from(given) : (struct str){title.ptr, at});
    json_out_kstr_opt(&o, STR("working_dir"), str_from(dir));
    put_provider(c, &o);
    json_out_end(&o, '}');
}

static bool is_stopped(const struct chat *c)
{
    return c->stopped ? c->stopped(c->opt.arg) : stop_signal != 0;
}

/* Before there is an agent: the same words as from one. */
static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    const struct chat *c = arg;

    if (!why)
        chat_tell(c, "the store can be written again: going on");
    else if (!waited_ms)
        chat_tell(c, "%s: held until the store can be written", why->msg);
    return is_stopped(c);
}

static enum tide_code unless_stopped(const struct chat *c, enum tide_code code, struct tide_err *err)
{
    if (session_is_trouble(code) && is_stopped(c))
        return tide_fail(err, TIDE_CANCELLED, "stopped before the chat began");
    return code;
}

static enum tide_code make_session(struct chat *c, const char *fields, struct tide_err *err)
{
    return unless_stopped(c, session_create_held(c->cli->store, NULL, fields, on_trouble, c, &c->session, err), err);
}

/* One that is there; whether it is trusted is asked before anything is said of it, or looked for on its behalf. */
static enum tide_code take_session(struct chat *c, const char *id, tide_session **ret, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    enum tide_code code = session_open_held(c->cli->store, id, on_trouble, c, &session, err);

    if (code)
        return unless_stopped(c, cli_advise_session(code, err), err);
    session_be_patient(session, on_trouble, c);
    code = tide_session_check_trust(session, err);
    session_be_quick(session);
    if (code)
        return unless_stopped(c, code, err);
    *ret = TAKE(session);
    return TIDE_OK;
}

enum tide_code chat_new(struct chat *c, const char *prompt, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);

    if (chat_check(c, err))
        return err->code;
    put_fields(c, prompt, cwd, &fields);
    if (c->opt.api_key) /* before the first event, whose title may hold it */
        (void)!tide_store_add_secret(c->cli->store, "api_key", c->opt.api_key, strlen(c->opt.api_key), NULL);
    if (make_session(c, buf_cstr(&fields), err))
        return err->code;
    if (chat_agent(c, err)) { /* what is wrong with the settings leaves no session behind */
        char id[TIDE_ID_SIZE];
        struct tide_err ignored;

        snprintf(id, sizeof(id), "%s", tide_session_id(c->session));
        chat_leave(c);
        (void)!tide_session_delete(c->cli->store, id, &ignored);
        return err->code;
    }
    return TIDE_OK;
}

struct kept {
    const char *word, *option, *before, *now;
};

static void say_kept(struct chat *c, const struct kept *all, size_t n)
{
    AUTO(buf_done) struct buf before = BUF_INIT(16384), now = BUF_INIT(16384), options = BUF_INIT(16384);

    for (size_t i = 0; i < n; i++) {
        const struct kept *k = &all[i];

        if (!k->now || (k->before && strcmp(k->before, k->now) == 0))
            continue;
        buf_addf(&before, "%s%s %s", before.len ? ", " : "", k->word, k->before ? k->before : "of its provider");
        buf_addf(&now, "%s%s %s", now.len ? ", " : "", k->word, k->now);
        buf_addf(&options, " --%s %s", k->option, k->now);
    }
    if (now.len)
        chat_tell(c, "this chat keeps its %s; configured now: %s. To change: tidemark chat --resume %s%s",
                  buf_cstr(&before), buf_cstr(&now), tide_session_id(c->session), buf_cstr(&options));
}

/* A chat keeps who answers. That others are set now is no reason to change it, but nothing to be silent about. */
static void tell_kept(struct chat *c, const char *type, const char *model)
{
    const struct config *cfg = c->settings.config;
    const struct chat_want *w = c->want;
    const char *told = w->provider ? w->provider : w->script ? "script" : NULL, *set = config_text(cfg, "provider");
    const struct kept all[] = {
        {"provider", "provider", type, !told && strcmp(config_origin(cfg, "provider"), "default") != 0 ? set : NULL},
        {"model", "model", model, model && !c->model ? config_text(cfg, "model") : NULL},
        {"server", "base-url", stored(c, c->session, "provider", "base_url"),
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
    tide_fail(err, TIDE_INVALID, "session '%s' was not made by a chat (--provider makes it one)", id);
    return st.next_count ? action_hint(err, id, &st.next[0]) : err->code;
}

enum tide_code chat_take(struct chat *c, tide_session *session, struct tide_err *err)
{
    const char *type, *model;

    chat_leave(c);
    c->session = session;
    c->resumed = true;
    type = stored(c, session, "provider", "type");
    model = stored(c, session, "provider", "model");
    if (!c->want->provider && !chat_made(session))
        return refuse_other(session, err);
    if (type && c->want->provider && strcmp(type, c->want->provider) != 0)
        chat_tell(c, "provider %s instead of %s, as told", c->want->provider, type);
    if (model && c->model && strcmp(model, c->model) != 0)
        chat_tell(c, "model %s instead of %s, as told", c->model, model);
    if (type)
        tell_kept(c, type, model);
    if (!chat_agent(c, err))
        return TIDE_OK;
    chat_leave(c); /* a session without an agent is none that could be spoken to */
    return err->code;
}

enum tide_code chat_open(struct chat *c, const char *id, const char *from, struct tide_err *err)
{
    tide_session *session = NULL;

    if (take_session(c, id, &session, err) || chat_take(c, session, err))
        return err->code;
    return from ? chat_roll_back(c, from, err) : TIDE_OK;
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

static bool is_here(struct chat *c, const char *id, const char *cwd)
{
    tide_session *s = NULL;
    struct tide_err err;
    const char *dir;
    bool here;

    if (tide_session_open(c->cli->store, id, TIDE_SESSION_READ, &s, &err)) {
        if (err.code == TIDE_CORRUPT)
            say("passed over: %s", err.msg); /* it may be the one that is meant */
        return false;
    }
    dir = stored(c, s, NULL, "working_dir");
    here = dir && cwd && strcmp(dir, cwd) == 0 && chat_made(s);
    tide_session_close(s);
    return here;
}

enum tide_code chat_open_latest(struct chat *c, struct tide_err *err)
{
    const struct tide_list_filter filter = {.limit = LATEST_LOOKED_AT};
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);
    AUTO(mem_freep) struct latest *l = mem_zero(sizeof(*l));

    if (tide_session_list(c->cli->store, &filter, take_id, l, err))
        return err->code;
    for (size_t i = 0; i < l->n; i++)
        if (is_here(c, l->ids[i], cwd))
            return chat_open(c, l->ids[i], NULL, err);
    return tide_fail(err, TIDE_NOT_FOUND,
                     "--continue: no chat was begun in this directory: `tidemark chat` begins one");
}

/* ---- what is to be done ---- */

static int take_needs(void *arg, const struct tide_session_info *info)
{
    *(bool *)arg = info->needs_resume;
    return 0;
}

bool chat_was_stopped(struct chat *c)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *state = NULL;

    return !tide_state(c->session, 0, &text, NULL) &&
           !json_parse(&a, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL) &&
           json_get_bool(json_get(json_get(state, STR("ledger")), STR("run")), STR("by_person"), false);
}

bool chat_needs_resume(struct chat *c)
{
    bool needs = false;

    return !tide_session_refresh(c->session, NULL) && !tide_session_show(c->session, take_needs, &needs, NULL) &&
           needs && !chat_was_stopped(c);
}
