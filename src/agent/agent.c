/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent over a session: options with their defaults, provider and place as the session has them unless told otherwise,
 * the callbacks of an embedder (tools, hooks, events), and the small things that all parts of the loop do.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/hook_rows.h"

#define LOOK_NS 100000000 /* between looks at what others want */

/* ---- telling ---- */

void agent_tell(struct tide_agent *a, const struct tide_agent_event *event)
{
    if (a->opt.event)
        a->opt.event(a->opt.arg, event);
}

void agent_notice(struct tide_agent *a, const char *fmt, ...)
{
    char line[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    agent_tell(a, &(struct tide_agent_event){.what = TIDE_AGENT_NOTICE, .text = line, .text_len = strlen(line)});
}

static void on_hook_report(void *arg, const char *hook, const char *what)
{
    agent_notice(arg, "hook '%s' is passed over: %s", hook, what);
}

bool agent_stopped(void *agent)
{
    struct tide_agent *a = agent;
    struct env *env = a->s->store->env;
    int64_t now = env->ops->mono_ns(env);
    unsigned signs = 0;
    struct tide_err err = {TIDE_OK, ""};
    enum tide_code code;

    if (!a->broken.code && a->run && !a->run->starting && !a->s->owner.pending && now - a->looked_ns >= LOOK_NS) {
        a->looked_ns = now;
        code = tide_run_look(a->run, &signs, &err);
        if (code && !run_is_trouble(code)) /* trouble of the store is told by whoever needs it next */
            a->broken = err;
        if (signs & TIDE_SIGN_CANCEL)
            atomic_store(&a->stop, STOP_BY_CANCEL);
    }
    return a->broken.code || atomic_load(&a->stop) != STOP_NOT;
}

/* ---- recording ---- */

struct json_out *agent_open(struct tide_agent *a, const char *kind, int64_t turn)
{
    struct json_out *o = draft_open(&a->draft, kind);

    if (turn)
        json_out_kint(o, STR("turn"), turn);
    return o;
}

struct json_out *agent_message(struct tide_agent *a, const char *kind, int64_t turn)
{
    char id[TIDE_ID_SIZE];
    struct json_out *o = draft_open(&a->draft, kind);

    session_make_id(a->s->store, "msg", id);
    json_out_kstr(o, STR("message_id"), str_from(id));
    json_out_kint(o, STR("turn"), turn);
    return o;
}

void agent_close(struct tide_agent *a)
{
    const struct tide_new_event *ev = &a->draft.events[a->draft.n];

    draft_close(&a->draft);
    talk_apply(&a->talk, str_from(ev->kind), (struct str){ev->body, ev->body_len});
}

enum tide_code agent_put(struct tide_agent *a, struct tide_err *err)
{
    if (!a->run)
        return agent_start(a, true, err);
    return a->draft.n ? run_put(a->run, &a->draft, err) : TIDE_OK;
}

enum tide_code agent_append(struct tide_agent *a, bool pure, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    if (!a->run)
        return agent_start(a, false, err);
    if (a->draft.n)
        code = run_append(a->run, TIDE_APPEND_ANY, &a->draft, pure, err);
    draft_reset(&a->draft);
    return code;
}

int64_t agent_turn(const struct tide_agent *a)
{
    const struct talk *t = &a->talk;
    int64_t most = a->s->state->ledger.max_turn;

    if (t->seen_turn > t->answered_turn)
        return t->seen_turn;
    return (most > t->seen_turn ? most : t->seen_turn) + 1;
}

/* ---- hooks ---- */

static void put_fired(struct tide_agent *a, const struct hook_input *in, const struct hook_verdict *v)
{
    struct json_out *o = agent_open(a, "hook.fired", in->turn);

    json_out_kstr(o, STR("event"), str_from(hook_event_name(in->event)));
    json_out_kstr(o, STR("hook"), v->hook);
    json_out_kstr(o, STR("decision"), str_from(hook_action_name(v->action)));
    json_out_kstr_opt(o, STR("call_id"), in->call_id);
    if (v->action == HOOK_MODIFY_ARGS)
        json_out_kraw(o, STR("args"), v->text);
    agent_close(a);
}

void agent_hook(struct tide_agent *a, const struct hook_input *in, struct hook_verdict *ret)
{
    *ret = (struct hook_verdict){.action = HOOK_CONTINUE};
    if (!hooks_wants(a->hooks, in->event))
        return;
    hooks_fire(a->hooks, &a->scratch, in, agent_stopped, a, ret);
    if (ret->hook.len)
        put_fired(a, in, ret);
}

void agent_stop_by_hook(struct tide_agent *a, const struct hook_verdict *v)
{
    a->stop_text = arena_printf(&a->scratch, "stopped by hook '%.*s'%s%.*s", STR_ARG(v->hook), v->text.len ? ": " : "",
                                STR_ARG(v->text));
    atomic_store(&a->stop, STOP_BY_HOOK);
}

void agent_note(struct tide_agent *a, const struct hook_verdict *v, int64_t turn)
{
    bool asks = turn < 0;
    struct json_out *o;

    if ((v->action != HOOK_SYSTEM_MESSAGE && v->action != HOOK_APPEND_CONTEXT) || !v->text.len)
        return;
    o = agent_message(a, "message.user", asks ? -turn : turn);
    json_out_kstr(o, STR("hook"), v->hook);
    if (asks)
        json_out_kbool(o, STR("wants_answer"), true);
    json_out_kstr(o, STR("content"),
                  v->action == HOOK_SYSTEM_MESSAGE
                      ? str_from(arena_printf(&a->scratch, "[system] %.*s", STR_ARG(v->text)))
                      : v->text);
    agent_close(a);
}

struct own_hook {
    struct hook row; /* what answers are read by */
    tide_hook_fn *fn;
    void *arg;
};

static enum tide_code call_own_hook(void *arg, const struct hook_input *input, struct hook_verdict *ret,
                                    struct tide_err *err)
{
    static _Thread_local struct arena arena;
    struct own_hook *h = arg;
    struct buf json = BUF_INIT(SIZE_MAX / 4);
    struct tide_text answer = {NULL, 0};
    enum tide_code code;

    hook_input_render(&json, input);
    code = h->fn(h->arg, buf_cstr(&json), &answer, err);
    buf_done(&json);
    arena_reset(&arena);
    if (!code)
        code = hook_answer_parse(&arena, &h->row,
                                 arena_dup(&arena, (struct str){answer.ptr ? answer.ptr : "", answer.len}), ret, err);
    tide_text_done(&answer);
    return code;
}

enum tide_code tide_agent_add_hook(tide_agent *a, const char *name, const char *event, const char *matcher,
                                   tide_hook_fn *fn, void *arg, struct tide_err *err)
{
    struct own_hook *h = arena_zero(&a->arena, sizeof(*h));

    ERR_LOCAL(err);
    if (!name || !*name || !fn)
        return tide_fail(err, TIDE_INVALID, "a hook needs a name and a function");
    if (!event || !hook_event_parse(str_from(event), &h->row.event))
        return tide_fail(err, TIDE_INVALID, "'%s' is no event of a hook: pre_tool_use, turn_start, …",
                         event ? event : "");
    h->row.name = (char *)(uintptr_t)arena_dup(&a->arena, str_from(name)).ptr;
    h->fn = fn;
    h->arg = arg;
    hooks_add(a->hooks, name, h->row.event, matcher, call_own_hook, h);
    return TIDE_OK;
}

/* ---- tools ---- */

struct own_tool {
    struct tool base;
    struct own_tool *next;
    tide_tool_fn *fn;
    tide_probe_fn *probe;
    void *arg;
};

static enum tool_fate probe_own_tool(struct tool_work *w)
{
    const struct own_tool *t = (const struct own_tool *)(const void *)w->tool;
    struct buf args = BUF_INIT(SIZE_MAX / 4);
    int happened;

    json_write(&args, w->args);
    happened = t->probe(t->arg, buf_cstr(&args), w->key);
    buf_done(&args);
    return happened > 0 ? FATE_HAPPENED : happened == 0 ? FATE_DID_NOT : FATE_UNKNOWN;
}

static void run_own_tool(struct tool_work *w, struct tool_result *ret)
{
    const struct own_tool *t = (const struct own_tool *)(const void *)w->tool;
    struct buf args = BUF_INIT(SIZE_MAX / 4);
    struct tide_text result = {NULL, 0};
    struct tide_err err = {TIDE_OK, ""};

    json_write(&args, w->args);
    ret->failed = t->fn(t->arg, buf_cstr(&args), w->key, &result, &err) != TIDE_OK;
    if (ret->failed && !result.len)
        buf_add_str(&ret->text, str_from(err.msg));
    else
        buf_add(&ret->text, result.ptr ? result.ptr : "", result.len);
    tide_text_done(&result);
    buf_done(&args);
}

static enum tide_code check_tool(const struct tide_agent *a, const struct tide_tool *t, struct tide_err *err)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *schema = NULL;

    if (!t->name || !str_is_id(str_from(t->name)) || !t->fn)
        return tide_fail(err, TIDE_INVALID, "a tool needs a function and a name of letters, digits, '_' and '-'");
    if (agent_tool(a, str_from(t->name)))
        return tide_fail(err, TIDE_EXISTS, "there is a tool '%s' already", t->name);
    if (json_parse(&arena, str_from(t->schema ? t->schema : "{}"), NULL, &schema, NULL, err))
        return tide_wrap(err, "the schema of tool '%s'", t->name);
    if (t->effect && strcmp(t->effect, "pure") != 0 && strcmp(t->effect, "idempotent") != 0 &&
        strcmp(t->effect, "once") != 0)
        return tide_fail(err, TIDE_INVALID, "'%s' is not an effect: use pure, idempotent or once", t->effect);
    return TIDE_OK;
}

static const char *keep(struct tide_agent *a, const char *text, const char *otherwise)
{
    return text ? arena_dup(&a->arena, str_from(text)).ptr : otherwise;
}

enum tide_code tide_agent_add_tool(tide_agent *a, const struct tide_tool *t, struct tide_err *err)
{
    struct own_tool *own;

    ERR_LOCAL(err);
    if (check_tool(a, t, err))
        return err->code;
    own = arena_zero(&a->arena, sizeof(*own));
    own->base = (struct tool){.name = keep(a, t->name, ""),
                              .description = keep(a, t->description, ""),
                              .schema = keep(a, t->schema, "{\"type\":\"object\"}"),
                              .effect = keep(a, t->effect, "once"),
                              .subject = "",
                              .permission = keep(a, t->permission, "allow"),
                              .run = run_own_tool};
    own->base.fate = t->probe ? probe_own_tool : NULL;
    own->fn = t->fn;
    own->probe = t->probe;
    own->arg = t->arg;
    own->next = a->own_tools;
    a->own_tools = own;
    return TIDE_OK;
}

const struct tool *agent_tool(const struct tide_agent *a, struct str name)
{
    for (const struct own_tool *t = a->own_tools; t; t = t->next)
        if (str_eq(name, str_from(t->base.name)))
            return &t->base;
    return a->opt.no_tools ? NULL : tool_find(name);
}

static bool is_offered(void *arg, const struct tool *t)
{
    const struct tide_agent *a = arg;

    return !a->opt.no_tools && permits_some(a->permits, t);
}

void agent_render_tools(struct tide_agent *a, struct buf *out)
{
    tools_render(out, is_offered, a);
    for (const struct own_tool *t = a->own_tools; t; t = t->next) {
        struct json_out o = json_out_to(out);

        out->len--; /* the bracket */
        if (out->len > 1)
            buf_add_char(out, ',');
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("name"), str_from(t->base.name));
        json_out_kstr(&o, STR("description"), str_from(t->base.description));
        json_out_kraw(&o, STR("input_schema"), str_from(t->base.schema));
        json_out_end(&o, '}');
        buf_add_char(out, ']');
    }
}

void agent_tool_names(const struct tide_agent *a, struct buf *out)
{
    for (const struct own_tool *t = a->own_tools; t; t = t->next)
        buf_addf(out, "%s%s", out->len ? ", " : "", t->base.name);
    for (size_t i = 0; tools[i] && !a->opt.no_tools; i++)
        buf_addf(out, "%s%s", out->len ? ", " : "", tools[i]->name);
    if (!out->len)
        buf_add_str(out, STR("none"));
}

/* ---- opening ---- */

static void set_defaults(struct tide_agent_options *o)
{
    const struct {
        int64_t *at, fallback;
    } rows[] = {
        {&o->max_answer_tokens, 8192},     {&o->max_context_tokens, 128000}, {&o->retry_base_delay_ms, 500},
        {&o->max_tool_result_chars, 8000}, {&o->tool_timeout_ms, 120000},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!*rows[i].at)
            *rows[i].at = rows[i].fallback;
    o->max_turns = o->max_turns ? o->max_turns : 50;
    o->max_retries = o->max_retries < 0 ? 0 : o->max_retries ? o->max_retries : 3;
    o->context_percent = o->context_percent ? o->context_percent : 80;
}

static void keep_options(struct tide_agent *a, const struct tide_agent_options *opt)
{
    const char **texts[] = {&a->opt.provider, &a->opt.model,         &a->opt.base_url,    &a->opt.api_key,
                            &a->opt.script,   &a->opt.system_prompt, &a->opt.working_dir, &a->opt.permissions,
                            &a->opt.hooks,    &a->opt.prices};

    a->opt = *opt;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = keep(a, *texts[i], NULL);
    set_defaults(&a->opt);
}

/* A member of the session's provider, in the arena; NULL: it has none. */
static const char *stored(struct tide_agent *a, struct arena *arena, const char *key)
{
    const char *text = map_get(&a->s->state->info.fields, STR("provider"));
    struct json *json = NULL;
    struct str value;

    if (!text || json_parse(arena, arena_dup(arena, str_from(text)), NULL, &json, NULL, NULL))
        return NULL;
    value = json_get_text(arena, json, str_from(key));
    return value.len ? arena_dup(arena, value).ptr : NULL;
}

static enum tide_code choose_provider(struct tide_agent *a, struct tide_err *err)
{
    const char *type = stored(a, &a->arena, "type"), *same;

    a->type = a->opt.provider ? a->opt.provider : type ? type : "anthropic";
    same = type && strcmp(type, a->type) == 0 ? type : NULL; /* the rest of what is stored belongs to it */
    a->model = a->opt.model ? a->opt.model : same ? stored(a, &a->arena, "model") : NULL;
    if (!a->opt.base_url && same)
        a->opt.base_url = stored(a, &a->arena, "base_url");
    if (!a->opt.script && same)
        a->opt.script = stored(a, &a->arena, "script");
    if (!a->model && strcmp(a->type, "script") == 0)
        a->model = "script";
    if (!a->model)
        return tide_fail(err, TIDE_INVALID, "no model: give --model, or `tidemark config set model NAME`");
    const struct provider_config config = {.type = a->type,
                                           .base_url = a->opt.base_url,
                                           .key = a->opt.api_key,
                                           .script = a->opt.script,
                                           .connect_ms = a->opt.connect_timeout_ms,
                                           .first_byte_ms = a->opt.first_byte_timeout_ms,
                                           .silence_ms = a->opt.silence_timeout_ms};

    return provider_open(&config, &a->provider, err);
}

void agent_put_provider(struct tide_agent *a)
{
    const char *type = stored(a, &a->scratch, "type"), *model = stored(a, &a->scratch, "model");
    struct json_out *o;

    if (type && model && strcmp(type, a->type) == 0 && strcmp(model, a->model) == 0)
        return;
    o = agent_open(a, "session.updated", 0);
    json_out_key(o, STR("provider"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("type"), str_from(a->type));
    json_out_kstr(o, STR("model"), str_from(a->model));
    json_out_kstr_opt(o, STR("base_url"), str_from(a->opt.base_url));
    json_out_kstr_opt(o, STR("script"), str_from(a->opt.script));
    json_out_end(o, '}');
    agent_close(a);
}

/* Whoever watches is told that a tool works. */
static bool tool_stopped(void *agent)
{
    agent_tell(agent, &(struct tide_agent_event){.what = TIDE_AGENT_WAIT});
    return agent_stopped(agent);
}

static enum tide_code open_place(struct tide_agent *a, struct tide_err *err)
{
    struct str dir = info_text(&a->arena, &a->s->state->info, STR("working_dir"));
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0), *real = NULL;

    if (!a->opt.working_dir)
        a->opt.working_dir = dir.len ? arena_dup(&a->arena, dir).ptr : keep(a, cwd, "/");
    real = realpath(a->opt.working_dir, NULL);
    a->place = (struct tool_place){.cwd = keep(a, real, a->opt.working_dir),
                                   .dir = open(real ? real : "", O_PATH | O_DIRECTORY | O_CLOEXEC),
                                   .session_id = a->s->head.id,
                                   .run_id = "",
                                   .timeout_ms = a->opt.tool_timeout_ms,
                                   .max_result_chars =
                                       a->opt.max_tool_result_chars < 0 ? 0 : (size_t)a->opt.max_tool_result_chars,
                                   .secret = a->opt.api_key,
                                   .arg = a,
                                   .stop = tool_stopped};
    if (a->place.dir < 0)
        return tide_fail_errno(err, errno,
                               "the directory that this agent works in, '%s' (make it again, or begin anew elsewhere)",
                               a->opt.working_dir);
    return TIDE_OK;
}

static enum tide_code open_parts(struct tide_agent *a, struct tide_err *err)
{
    enum tide_code code = session_sync(a->s, err);

    code = code ? code : choose_provider(a, err);
    code = code ? code : open_place(a, err);
    if (!code && a->opt.permissions)
        code = permits_parse(str_from(a->opt.permissions), &a->permits, err);
    if (!code && a->opt.prices)
        code = prices_check(str_from(a->opt.prices), err);
    if (!code && a->opt.max_cost > 0 && budget_cost(a, &(struct model_usage){0}) < 0)
        code =
            tide_fail(err, TIDE_INVALID,
                      "max_cost is set, but prices says nothing of model '%.100s', so nothing would hold it: add its "
                      "price, or use max_tokens",
                      a->model);
    a->hooks = hooks_new(a->opt.hook_timeout_ms, on_hook_report, a);
    hooks_hide(a->hooks, a->opt.api_key);
    if (!code && a->opt.hooks)
        code = hooks_load(a->hooks, str_from(a->opt.hooks), err);
    return code;
}

enum tide_code tide_agent_new(tide_session *s, const struct tide_agent_options *opt, tide_agent **ret_agent,
                              struct tide_err *err)
{
    static const struct tide_agent_options none;
    struct tide_agent *a;

    ERR_LOCAL(err);
    if (!(s->flags & TIDE_SESSION_APPEND))
        return tide_fail(err, TIDE_READ_ONLY, "an agent needs a session that was opened for appending");
    a = mem_zero(sizeof(*a));
    a->s = s;
    a->place.dir = -1;
    a->known_seq = -1;
    a->draft = (struct draft)DRAFT_INIT;
    a->body = (struct buf)BUF_INIT(SIZE_MAX / 4);
    keep_options(a, opt ? opt : &none);
    if (open_parts(a, err)) {
        tide_agent_free(a);
        return err->code;
    }
    *ret_agent = a;
    return TIDE_OK;
}

void tide_agent_free(tide_agent *a)
{
    if (!a)
        return;
    tide_run_close(a->run);
    provider_close(a->provider);
    hooks_free(a->hooks);
    permits_free(a->permits);
    if (a->place.dir >= 0)
        close(a->place.dir);
    map_done(&a->always, NULL);
    talk_done(&a->talk);
    past_done(&a->past);
    draft_done(&a->draft);
    buf_done(&a->body);
    arena_done(&a->scratch);
    if (a->opt.api_key)
        explicit_bzero((char *)(uintptr_t)a->opt.api_key, strlen(a->opt.api_key));
    arena_done(&a->arena);
    free(a);
}

const char *tide_agent_token(const tide_agent *a)
{
    return a->token;
}

/* ---- what is known of it ---- */

static int hand_out(const struct said *s, tide_message_fn *fn, void *arg)
{
    static const char *const roles[] = {"user", "assistant", "tool"};
    struct buf calls = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&calls);
    struct tide_message m = {.role = roles[s->m.role],
                             .text = s->m.text.ptr,
                             .text_len = s->m.text.len,
                             .turn = s->turn,
                             .from_hook = s->from_hook,
                             .call_id = s->m.call_id.len ? s->m.call_id.ptr : NULL,
                             .failed = s->m.failed};
    int stop;

    json_out_begin(&o, '[');
    for (size_t i = 0; i < s->m.n_calls; i++) {
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("id"), s->m.calls[i].id);
        json_out_kstr(&o, STR("name"), s->m.calls[i].name);
        json_out_kraw(&o, STR("args"), s->m.calls[i].args);
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    m.calls = s->m.n_calls ? buf_cstr(&calls) : NULL;
    stop = fn(arg, &m);
    buf_done(&calls);
    return stop;
}

enum tide_code tide_agent_history(tide_agent *a, tide_message_fn *fn, void *arg, struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    code = a->run ? TIDE_OK : agent_read(a, err);
    for (size_t i = 0; !code && i < a->talk.n; i++)
        if (hand_out(a->talk.said[i], fn, arg))
            return TIDE_OK;
    return code;
}

static void list_hook(void *arg, const char *name, const char *event, const char *matcher, const char *what)
{
    struct json_out *o = arg;

    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(name));
    json_out_kstr(o, STR("event"), str_from(event));
    json_out_kstr_opt(o, STR("matcher"), str_from(matcher));
    json_out_kstr_opt(o, STR("what"), str_from(what));
    json_out_end(o, '}');
}

static void list_tool(struct tide_agent *a, struct json_out *o, const struct tool *t)
{
    static const char *const words[] = {"allow", "ask", "deny"};

    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(t->name));
    json_out_kstr(o, STR("effect"), str_from(t->effect));
    json_out_kstr(o, STR("permission"), str_from(words[permits_ask(a->permits, t, NULL)]));
    json_out_kstr(o, STR("description"), str_from(t->description));
    json_out_end(o, '}');
}

enum tide_code tide_agent_info(tide_agent *a, struct tide_text *ret_json, struct tide_err *err)
{
    const struct ledger *l = &a->s->state->ledger;
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&out);

    ERR_LOCAL(err);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(a->s->head.id));
    json_out_kstr(&o, STR("provider"), str_from(a->type));
    json_out_kstr(&o, STR("model"), str_from(a->model));
    json_out_kstr(&o, STR("working_dir"), str_from(a->place.cwd));
    json_out_kint(&o, STR("turns"), l->max_turn);
    json_out_kint(&o, STR("messages"), (int64_t)a->talk.n);
    json_out_kint(&o, STR("context_tokens"), a->talk.context_tokens);
    json_out_kint(&o, STR("max_context_tokens"), a->opt.max_context_tokens);
    json_out_kint(&o, STR("input_tokens"), l->input_tokens);
    json_out_kint(&o, STR("output_tokens"), l->output_tokens);
    json_out_kint(&o, STR("cached_tokens"), l->cached_tokens);
    json_out_kraw(&o, STR("cost"), str_from(arena_printf(&a->scratch, "%.9f", (double)l->cost_nano / 1e9)));
    json_out_key(&o, STR("tools"));
    json_out_begin(&o, '[');
    for (const struct own_tool *t = a->own_tools; t; t = t->next)
        list_tool(a, &o, &t->base);
    for (size_t i = 0; tools[i] && !a->opt.no_tools; i++)
        list_tool(a, &o, tools[i]);
    json_out_end(&o, ']');
    json_out_key(&o, STR("hooks"));
    json_out_begin(&o, '[');
    hooks_list(a->hooks, list_hook, &o);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    ret_json->len = out.len;
    ret_json->ptr = buf_take(&out);
    return TIDE_OK;
}
