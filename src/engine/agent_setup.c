/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/agent_setup.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/hook.h"
#include "agent/permit.h"
#include "agent/provider.h"

static const char *keep_text(struct agent_setup *c, struct str s)
{
    return s.len ? arena_dup(&c->arena, s).ptr : NULL;
}

void agent_setup_offer(const struct agent_setup *c, const char *change, const char *fmt, ...)
{
    char line[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    c->tell(c->opt.arg, line, change);
}

/* ---- settings ---- */

/* [] for auto_approve_tools true is every tool. Rules of the settings come after, so that they win. */
static const char *permissions(struct agent_setup *c)
{
    struct str given = config_json(c->settings.config, "permissions"),
               approved = config_json(c->settings.config, "auto_approve_tools");
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&out);
    struct json *list = NULL;

    json_out_begin(&o, '[');
    if (c->want.yes || str_eq(approved, STR("true")))
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
    return keep_text(c, buf_view(&out));
}

/* The hooks of the settings, and those of the file that they name. */
static enum tide_code put_hooks(struct agent_setup *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf file = BUF_INIT((size_t)1 << 20), out = BUF_INIT((size_t)4 << 20);
    struct json_out o = json_out_to(&out);
    const struct json *more = NULL;
    struct json *list = NULL, *whole = NULL;

    if (config_text(c->settings.config, "hooks_file")) {
        if (settings_read(&c->settings, "hooks_file", &file, err))
            return err->code;
        if (json_parse(&c->arena, arena_dup(&c->arena, buf_view(&file)), NULL, &whole, NULL, err)) {
            tide_about(err, TIDE_SUBJECT_KEY, "hooks_file");
            return tide_wrap(err, "hooks_file: %.150s", config_text(c->settings.config, "hooks_file"));
        }
        more = whole->type == JSON_ARRAY ? whole : json_get(whole, STR("hooks"));
        if (!more || more->type != JSON_ARRAY) {
            tide_fail(err, TIDE_INVALID, "hooks_file: %.150s: must be a list of hooks, or {\"hooks\": [...]}",
                      config_text(c->settings.config, "hooks_file"));
            return tide_about(err, TIDE_SUBJECT_KEY, "hooks_file");
        }
    }
    json_out_begin(&o, '[');
    if (!json_parse(&c->arena, config_json(c->settings.config, "hooks"), NULL, &list, NULL, NULL))
        for (const struct json *h = list->first; h; h = h->next)
            json_out_raw(&o, json_source(h));
    for (const struct json *h = more ? more->first : NULL; h; h = h->next)
        json_out_raw(&o, json_source(h));
    json_out_end(&o, ']');
    c->opt.hooks = keep_text(c, buf_view(&out));
    return TIDE_OK;
}

static int64_t or_none(int64_t n)
{
    return n ? n : -1; /* what is 0 in the settings is "none", in the options "the default" */
}

static enum tide_code put_options(struct agent_setup *c, struct tide_err *err)
{
    const struct config *cfg = c->settings.config;
    const char *continues = config_text(cfg, "on_store_error");

    c->opt.size = sizeof c->opt;
    c->opt.system_prompt = config_text(cfg, "system_prompt");
    c->opt.max_turns = (int)(c->want.max_turns ? c->want.max_turns : config_int(cfg, "max_turns"));
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
    c->opt.retry_now = !c->want.keep_pause;
    c->opt.max_cost = config_number(cfg, "max_cost");
    c->opt.max_tokens = config_int(cfg, "max_tokens");
    c->opt.prices = keep_text(c, config_json(cfg, "prices"));
    c->opt.permissions = permissions(c);
    c->opt.no_tools = c->want.no_tools;
    c->opt.refresh_prompt = c->want.refresh_prompt;
    c->opt.on_store_error_continue =
        c->want.degrade_said ? c->want.degrade : continues && strcmp(continues, "continue") == 0;
    return put_hooks(c, err);
}

enum tide_code agent_setup_begin(struct agent_setup *c, const struct agent_want *want, struct tide_err *err)
{
    struct permits *p = NULL;

    c->want = *want;
    c->arena = (struct arena)ARENA_INIT;
    c->key = (struct buf)BUF_INIT(8192);
    /* Parsed here, so that rules are counted as they stand in the settings. */
    if (permits_parse(config_json(c->settings.config, "permissions"), &p, err))
        return err->code;
    permits_free(p);
    return put_options(c, err);
}

static void forget_key(struct agent_setup *c)
{
    if (c->key.ptr)
        explicit_bzero(c->key.ptr, c->key.cap);
    buf_clear(&c->key);
}

void agent_setup_done(struct agent_setup *c)
{
    forget_key(c);
    buf_done(&c->key);
    settings_done(&c->settings);
    arena_done(&c->arena);
}

/* ---- who answers ---- */

const char *session_stored(struct arena *a, tide_session *session, const char *object, const char *member)
{
    AUTO(arena_done) struct arena own = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct json *v;
    struct json *state = NULL;
    struct str found;

    if (!session || tide_session_get_state(session, 0, &text, NULL) ||
        json_parse(&own, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL))
        return NULL;
    v = json_get(state, STR("session"));
    v = object ? json_get(v, str_from(object)) : v;
    found = json_get_text(&own, v, str_from(member));
    return found.len ? arena_dup(a, found).ptr : NULL;
}

/* The address comes from the session and from nowhere else: it may have been imported, and the key is not its business. */
static bool is_strange(struct agent_setup *c, const char *provider)
{
    AUTO(buf_done) struct buf change = BUF_INIT((size_t)1 << 20);
    const char *set = config_text(c->settings.config, "base_url");
    struct tide_err ignored;

    if (c->want.base_url || !c->opt.base_url || (set && strcmp(set, c->opt.base_url) == 0))
        return false;
    if (!config_api_key(c->settings.config, provider, &c->key, &ignored) && c->key.len) {
        (void)!tide_store_add_secret(c->store, "api_key", c->key.ptr, c->key.len, NULL);
        json_quote(&change, str_from(c->opt.base_url));
        agent_setup_offer(c, arena_printf(&c->arena, "{\"base_url\":%s}", buf_cstr(&change)),
                          "the key is not sent to %s, which only this session names", c->opt.base_url);
    }
    forget_key(c);
    return true;
}

static const char *const variables[] = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"};

/* The other provider, if its key is in the environment; NULL: it is not. */
static const char *other_provider(const char *provider)
{
    bool is_openai = strcmp(provider, "openai") == 0;
    const char *key = getenv(variables[!is_openai]);

    if (!key || !*key || strcmp(provider, "script") == 0)
        return NULL;
    return is_openai ? "anthropic" : "openai";
}

/* All that is missing at once: the person who sets the one should not be sent away again for the other. */
static enum tide_code check_complete(const char *provider, bool no_key, bool no_model, struct tide_err *err)
{
    bool is_openai = strcmp(provider, "openai") == 0;
    const char *other = no_key ? other_provider(provider) : NULL;

    if (!no_key && !no_model)
        return TIDE_OK;
    if (other)
        tide_fail(err, TIDE_INVALID, "no key for %s, and %s is set, which is %s's%s", provider, variables[!is_openai],
                  other, no_model ? "; no model either" : "");
    else if (no_key)
        tide_fail(err, TIDE_INVALID, "no key for %s (%s is not set)%s", provider, variables[is_openai],
                  no_model ? ", and no model" : "");
    else
        tide_fail(err, TIDE_INVALID, "no model is configured");
    if (other)
        tide_hint_with(err, TIDE_ACTION_SET_SETTING, "",
                       is_openai ? "\"key\":\"provider\",\"value\":\"anthropic\""
                                 : "\"key\":\"provider\",\"value\":\"openai\"");
    else if (no_key)
        tide_hint_with(err, TIDE_ACTION_SET_SETTING, "", "\"key\":\"api_key\",\"value\":\"file:PATH\"");
    if (no_model && !no_key)
        tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"model\":null");
    if (no_model)
        tide_hint_with(err, TIDE_ACTION_SET_SETTING, "", "\"key\":\"model\",\"value\":null");
    return tide_about(err, TIDE_SUBJECT_KEY, no_key ? "api_key" : "model");
}

static enum tide_code find_key(struct agent_setup *c, const char *provider, bool no_model, struct tide_err *err)
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
static const char *script_path(struct agent_setup *c, bool as_stored)
{
    const char *set = as_stored ? NULL : config_text(c->settings.config, "script"), *kept;
    AUTO(mem_freep)
    char *path = c->want.script ? mem_dup(str_from(c->want.script)) : set ? settings_path(&c->settings, set) : NULL;
    AUTO(mem_freep) char *real = path && path[0] != '/' ? realpath(path, NULL) : NULL;

    kept = real ? real : path;
    return arena_text(&c->arena, kept);
}

/* What was asked for, else what the session has, else what is set. */
enum tide_code agent_setup_choose(struct agent_setup *c, tide_session *session, struct tide_err *err)
{
    const struct config *cfg = c->settings.config;
    const char *type = session_stored(&c->arena, session, "provider", "type");
    const char *provider = c->want.provider ? c->want.provider
                           : c->want.script ? "script"
                           : type           ? type
                                            : config_text(cfg, "provider");
    bool as_stored = type && strcmp(type, provider) == 0;

    c->opt.provider = provider;
    c->opt.model = c->want.model ? c->want.model : as_stored ? NULL : config_text(cfg, "model");
    c->opt.base_url = c->want.base_url;
    if (!c->opt.base_url && (as_stored || !type))
        c->opt.base_url = session_stored(&c->arena, session, "provider", "base_url");
    if (!c->opt.base_url && !as_stored)
        c->opt.base_url = config_text(cfg, "base_url");
    c->opt.script = script_path(c, as_stored);
    return find_key(c, provider, !c->opt.model && !as_stored, err);
}

enum tide_code agent_setup_check(struct agent_setup *c, tide_session *session, struct tide_err *err)
{
    struct provider *p = NULL;
    enum tide_code code = agent_setup_choose(c, session, err);

    if (!code)
        code = provider_open(
            &(struct provider_config){
                .type = c->opt.provider, .base_url = c->opt.base_url, .key = c->opt.api_key, .script = c->opt.script},
            &p, err);
    provider_close(p);
    return code;
}

bool agent_setup_asks_keychain(const struct agent_setup *c)
{
    const char *ref = config_text(c->settings.config, "api_key");

    return ref && strncmp(ref, "keychain:", strlen("keychain:")) == 0;
}

bool agent_setup_has_key(const struct agent_setup *c)
{
    AUTO(buf_done) struct buf key = BUF_INIT((size_t)64 << 10);
    struct tide_err ignored;
    bool there = agent_setup_asks_keychain(c) || other_provider(config_text(c->settings.config, "provider"));

    if (!there)
        there = config_api_key(c->settings.config, config_text(c->settings.config, "provider"), &key, &ignored) ||
                key.len > 0; /* one that cannot be read is configured as well */
    if (key.ptr)
        explicit_bzero(key.ptr, key.cap);
    return there;
}

enum tide_code agent_setup_ask(const struct agent_setup *c, struct tide_err *err)
{
    const struct provider_config config = {.type = c->opt.provider,
                                           .base_url = c->opt.base_url,
                                           .key = c->opt.api_key,
                                           .script = c->opt.script,
                                           .connect_ms = c->opt.connect_timeout_ms,
                                           .first_byte_ms = c->opt.first_byte_timeout_ms};
    const struct model_message hello = {.role = TIDE_ROLE_USER, .text = STR("Answer with one word: are you there?")};
    const struct model_request request = {.model = str_from(c->opt.model ? c->opt.model : ""),
                                          .system = STR(""),
                                          .tools = STR("[]"),
                                          .max_tokens = 16,
                                          .messages = &hello,
                                          .n_messages = 1};
    AUTO(provider_closep) struct provider *p = NULL;
    AUTO(buf_done) struct buf body = BUF_INIT((size_t)1 << 20);
    struct model_listener nobody = {.arg = NULL};
    struct model_answer answer = {.arena = ARENA_INIT};
    struct model_fault fault = {.code = ""};

    ERR_LOCAL(err);
    if (provider_open(&config, &p, err))
        return err->code;
    provider_render(p, &request, &body);
    if (!provider_call(p, buf_view(&body), 0, &nobody, &answer, &fault, err)) {
        model_answer_done(&answer);
        return TIDE_OK;
    }
    return tide_wrap_after(err, "%s", fault_remedy(&fault, c->opt.provider));
}

enum tide_decision agent_setup_yes(const struct agent_setup *c, const struct tide_approval *ask)
{
    static const enum tide_decision words[] = {[TIDE_PERMISSION_ALLOW] = TIDE_DECIDE_ALLOW,
                                               [TIDE_PERMISSION_ASK] = TIDE_DECIDE_LATER,
                                               [TIDE_PERMISSION_DENY] = TIDE_DECIDE_DENY};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct tool *tool = ask->tool ? tool_find(str_from(ask->tool)) : NULL;
    enum tide_decision decision = TIDE_DECIDE_LATER;
    struct permits *p = NULL;
    struct json *args = NULL;

    if (c->want.yes && tool && !permits_parse(str_from(c->opt.permissions), &p, NULL) &&
        !json_parse(&a, str_from(ask->args), NULL, &args, NULL, NULL))
        decision = words[permits_ask(p, tool, args)];
    permits_free(p);
    return decision;
}

/* ---- looking at it ---- */

enum tide_code agent_setup_tools(const struct agent_setup *s, agent_tool_fn *fn, void *arg, struct tide_err *err)
{
    struct permits *p = NULL;

    if (permits_parse(str_from(s->opt.permissions), &p, err))
        return err->code;
    for (size_t i = 0; tools[i]; i++)
        fn(arg, tools[i]->name, tide_permission_name(permits_ask(p, tools[i], NULL)), tools[i]->description);
    permits_free(p);
    return TIDE_OK;
}

enum tide_code agent_setup_hooks(const struct agent_setup *s, agent_hook_fn *fn, void *arg, struct tide_err *err)
{
    struct hooks *h = hooks_new(0, NULL, NULL);
    enum tide_code code = hooks_load(h, str_from(s->opt.hooks), err);

    hooks_list(h, fn, arg);
    hooks_free(h);
    return code;
}

void agent_call_text(struct buf *out, const char *tool, const char *args)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *json = NULL;

    if (json_parse(&a, str_from(args), NULL, &json, NULL, NULL))
        json = NULL;
    tool_summary(out, str_from(tool), json);
}
