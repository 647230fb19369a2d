/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent over a session: options with their defaults, provider and place as the session has them unless options say
 * otherwise, and the small things that all parts of the loop do.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/invariant.h"
#include "session/redact.h"
#include "session/usage_json.h"

#define LOOK_NS 100000000 /* between looks at what others want */

/* ---- reporting ---- */

/* The same as in the log: the caller that listens shows it, and may log it. */
static void hide_secrets(struct tide_agent *a, const char **text, size_t *len, struct buf *clean)
{
    if (!*text || !secrets_clean(a->s->store->secrets, (struct str){*text, *len}, clean))
        return;
    *len = clean->len;
    *text = buf_cstr(clean);
}

void agent_show(struct tide_agent *a, const struct tide_agent_event *event)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4), args = BUF_INIT(SIZE_MAX / 4);
    struct tide_agent_event told = *event;
    size_t args_len = event->args ? strlen(event->args) : 0;
    bool locked;

    if (!a->opt.event)
        return;
    hide_secrets(a, &told.text, &told.text_len, &text);
    hide_secrets(a, &told.args, &args_len, &args);
    locked = agent_hold(a); /* so that a caller with several agents gets one event at a time */
    a->opt.event(a->opt.arg, &told);
    agent_restore(a, locked);
}

void agent_tell(struct tide_agent *a, const struct tide_agent_event *event)
{
    agent_log_event(a, event);
    agent_show(a, event);
}

void agent_tell_text(struct tide_agent *a, struct str piece, bool last)
{
    AUTO(buf_done) struct buf shown = BUF_INIT(SIZE_MAX / 4);

    secret_stream_put(a->s->store->secrets, &a->stream, piece, last, &shown);
    if (shown.len)
        agent_tell(
            a, &(struct tide_agent_event){.what = TIDE_AGENT_TEXT, .text = buf_cstr(&shown), .text_len = shown.len});
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
    agent_notice(arg, "hook '%s': %s", hook, what);
}

/* What others want, as the store has it. */
static void look_for_cancel(struct tide_agent *a, int64_t now_ns)
{
    struct tide_err err = {0};
    unsigned signs = 0;
    enum tide_code code;

    if (!a->run || a->run->starting || a->s->owner.pending)
        return;
    a->looked_ns = now_ns;
    code = tide_run_look(a->run, &signs, &err);
    if (code && !session_is_trouble(code)) /* a failing store is reported by the next caller that needs it */
        a->broken = err;
    if (signs & TIDE_SIGN_CANCEL)
        atomic_store(&a->stop, STOP_BY_CANCEL);
}

bool agent_stopped(void *agent)
{
    struct tide_agent *a = agent;
    struct env *env = a->s->store->env;
    int64_t now = env->ops->mono_ns(env);

    if (a->nested && nested_stopped(a))
        return true;
    if (!a->broken.code && now - a->looked_ns >= LOOK_NS) {
        bool locked = agent_hold(a);

        look_for_cancel(a, now);
        agent_restore(a, locked);
    }
    return a->broken.code || atomic_load(&a->stop) != STOP_NOT;
}

/* ---- recording ---- */

/* Which conversation it is of, where there are several. */
static void put_whose(struct tide_agent *a, struct json_out *o)
{
    const struct conversation_owner *whose = &a->conversation.whose;

    if (!whose->node)
        return;
    json_out_kstr(o, STR("node"), str_from(whose->node));
    json_out_kint(o, STR("visit"), whose->visit);
    json_out_kstr_opt(o, STR("branch"), str_from(whose->branch));
    json_out_kstr_opt(o, STR("decides"), str_from(whose->decides));
}

struct json_out *agent_open(struct tide_agent *a, const char *kind, int64_t turn)
{
    struct json_out *o = draft_open(&a->draft, kind);

    INVARIANT(turn >= 0);
    if (turn)
        json_out_kint(o, STR("turn"), turn);
    put_whose(a, o);
    return o;
}

struct json_out *agent_message(struct tide_agent *a, const char *kind, int64_t turn)
{
    char id[TIDE_ID_SIZE];
    struct json_out *o = draft_open(&a->draft, kind);

    session_make_id(a->s->store, "msg", id);
    json_out_kstr(o, STR("message_id"), str_from(id));
    json_out_kint(o, STR("turn"), turn);
    put_whose(a, o);
    return o;
}

void agent_close(struct tide_agent *a)
{
    const struct tide_new_event *ev = &a->draft.events[a->draft.n];

    draft_close(&a->draft);
    redact_latest(a->s->store, &a->draft); /* the model is sent what is stored */
    conversation_apply(&a->conversation, str_from(ev->kind), (struct str){ev->body, ev->body_len});
}

enum tide_code agent_put(struct tide_agent *a, struct tide_err *err)
{
    INVARIANT(!a->nested || a->locked); /* the run is not its own */
    if (!a->run)
        return agent_start(a, true, err);
    return a->draft.n ? run_put(a->run, &a->draft, PUT_PURE, err) : TIDE_OK;
}

enum tide_code agent_append(struct tide_agent *a, bool pure, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    INVARIANT(!a->nested || a->locked);
    if (!a->run)
        return agent_start(a, false, err);
    if (a->draft.n)
        code = run_append(a->run, TIDE_APPEND_ANY, &a->draft, pure, err);
    draft_reset(&a->draft);
    return code;
}

int64_t agent_turn(struct tide_agent *a)
{
    const struct conversation *t = &a->conversation;
    int64_t most = a->s->state->ledger.max_turn;

    if (t->seen_turn > t->answered_turn)
        return t->seen_turn;
    if (a->nested)
        return nested_turn(a);
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
    agent_unlock(a);
    hooks_fire(a->hooks, &a->scratch, in, agent_stopped, a, ret);
    agent_lock(a);
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

/* ---- opening ---- */

const char *agent_keep(struct tide_agent *a, const char *text, const char *otherwise)
{
    return text ? arena_dup(&a->arena, str_from(text)).ptr : otherwise;
}

static void set_defaults(struct tide_agent_options *o)
{
    const struct {
        int64_t *at, fallback;
    } rows[] = {
        {&o->max_answer_tokens, 8192},     {&o->max_context_tokens, 128000}, {&o->retry_base_delay_ms, 500},
        {&o->max_tool_result_chars, 8000}, {&o->tool_timeout_ms, 120000},    {&o->max_retry_after_ms, 900000},
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
                            &a->opt.hooks,    &a->opt.prices,        &a->opt.instructions};

    a->opt = *opt;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = agent_keep(a, *texts[i], NULL);
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
    if (!a->model) {
        tide_fail(err, TIDE_INVALID, "no model");
        tide_about(err, TIDE_SUBJECT_KEY, "model");
        tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"model\":null");
        return tide_hint_with(err, TIDE_ACTION_SET_SETTING, "", "\"key\":\"model\",\"value\":null");
    }
    const struct provider_config config = {.type = a->type,
                                           .base_url = a->opt.base_url,
                                           .key = a->opt.api_key,
                                           .script = a->opt.script,
                                           .connect_ms = a->opt.connect_timeout_ms,
                                           .first_byte_ms = a->opt.first_byte_timeout_ms,
                                           .silence_ms = a->opt.silence_timeout_ms,
                                           .stall_ms = a->opt.stall_timeout_ms,
                                           .total_ms = a->opt.call_timeout_ms};

    if (provider_open(&config, &a->provider, err))
        return err->code;
    if (a->opt.api_key || a->opt.base_url || strcmp(a->type, "script") == 0)
        return TIDE_OK;
    /* A provider's own address takes nothing without a key: better said here than by its refusal. */
    tide_fail(err, TIDE_INVALID, "no key for %s: set %s", a->type,
              strcmp(a->type, "openai") == 0 ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY");
    tide_about(err, TIDE_SUBJECT_KEY, "api_key");
    return tide_hint_with(err, TIDE_ACTION_SET_SETTING, "", "\"key\":\"api_key\",\"value\":\"file:PATH\"");
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

/* Reports to the caller that a tool is at work. */
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
        a->opt.working_dir = dir.len ? arena_dup(&a->arena, dir).ptr : agent_keep(a, cwd, "/");
    real = realpath(a->opt.working_dir, NULL);
    a->place = (struct tool_place){.guard = &a->guard,
                                   .cwd = agent_keep(a, real, a->opt.working_dir),
                                   .dir = open(real ? real : "", O_PATH | O_DIRECTORY | O_CLOEXEC),
                                   .session_id = a->id,
                                   .run_id = "",
                                   .timeout_ms = a->opt.tool_timeout_ms,
                                   .max_result_chars =
                                       a->opt.max_tool_result_chars < 0 ? 0 : (size_t)a->opt.max_tool_result_chars,
                                   .secret = a->opt.api_key,
                                   .secrets = a->s->store->secrets,
                                   .arg = a,
                                   .stop = tool_stopped};
    if (a->place.dir < 0)
        return tide_fail_errno(err, errno,
                               "the directory that this agent works in, '%s' (create it again, or start elsewhere)",
                               a->opt.working_dir);
    return TIDE_OK;
}

/* In a graph the caller that runs it gets the event. */
static enum tide_code read_session(struct tide_agent *a, struct tide_err *err)
{
    bool mine = !a->s->patience.on;
    enum tide_code code;

    if (mine)
        session_be_patient(a->s, agent_trouble, a);
    code = session_sync(a->s, err);
    code =
        code ? code : tide_session_check_trust(a->s, err); /* before its directory, its server or a hook is touched */
    if (mine)
        session_be_quick(a->s);
    return code;
}

static enum tide_code open_parts(struct tide_agent *a, struct tide_err *err)
{
    enum tide_code code = read_session(a, err);

    code = code ? code : choose_provider(a, err);
    code = code ? code : open_place(a, err);
    if (!code && a->opt.permissions)
        code = permits_parse(str_from(a->opt.permissions), &a->permits, err);
    if (!code && a->opt.prices)
        code = prices_check(str_from(a->opt.prices), err);
    if (!code && a->opt.max_cost > 0 && budget_cost(a, &(struct model_usage){0}) < 0)
        code = tide_fail(err, TIDE_INVALID,
                         "max_cost is set, but prices has no entry for model '%.100s', so it cannot be enforced: add "
                         "its price, or use max_tokens",
                         a->model);
    a->hooks = hooks_new(a->opt.hook_timeout_ms, on_hook_report, a);
    hooks_hide(a->hooks, a->opt.api_key);
    hooks_guard(a->hooks, &a->guard);
    if (a->opt.api_key)
        (void)!redact_add(a->s->store, STR("api_key"), str_from(a->opt.api_key), NULL);
    if (!code && a->opt.hooks)
        code = hooks_load(a->hooks, str_from(a->opt.hooks), err);
    return code;
}

enum tide_code tide_agent_new(tide_session *s, const struct tide_agent_options *opt, tide_agent **ret_agent,
                              struct tide_err *err)
{
    struct tide_agent_options own;
    struct tide_agent *a;

    ERR_LOCAL(err);
    if (SIZED_READ(&own, tide_agent_options, opt, err))
        return err->code;
    if (!(s->flags & TIDE_SESSION_APPEND))
        return tide_fail(err, TIDE_READ_ONLY, "an agent needs a session that was opened for appending");
    a = mem_zero(sizeof(*a));
    a->s = s;
    a->id = agent_keep(a, s->head.id, "");
    a->guard = (struct guard)GUARD_INIT;
    a->place.dir = -1;
    a->known_seq = -1;
    a->draft = (struct draft)DRAFT_INIT;
    a->rendering.body = (struct buf)BUF_INIT(SIZE_MAX / 4);
    a->stream = (struct secret_stream)SECRET_STREAM_INIT;
    keep_options(a, &own);
    if (open_parts(a, err)) {
        tide_agent_free(a);
        return err->code;
    }
    *ret_agent = a;
    return TIDE_OK;
}

static void wipe_text(void *text)
{
    explicit_bzero(text, strlen(text));
    free(text);
}

void tide_agent_free(tide_agent *a)
{
    if (!a)
        return;
    guard_leave(&a->guard);
    tide_run_close(a->run);
    agent_images_drop(a);
    provider_close(a->provider);
    hooks_free(a->hooks);
    permits_free(a->permits);
    if (a->place.dir >= 0)
        close(a->place.dir);
    map_done(&a->always, NULL);
    map_done(&a->real, wipe_text);
    buf_done(&a->stream.held);
    conversation_done(&a->conversation);
    past_effects_done(&a->past);
    draft_done(&a->draft);
    buf_done(&a->rendering.body);
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

static int hand_out(const struct message_kept *s, tide_message_fn *fn, void *arg)
{
    struct buf calls = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&calls);
    struct tide_message m = {.role = s->m.role,
                             .text = s->m.text.ptr,
                             .text_len = s->m.text.len,
                             .turn = s->turn,
                             .from_hook = s->from_hook,
                             .call_id = s->m.call_id.len ? s->m.call_id.ptr : NULL,
                             .failed = s->m.failed,
                             .is_summary = s->summary};
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

enum tide_code tide_agent_read_history(tide_agent *a, tide_message_fn *fn, void *arg, struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    code = a->run ? TIDE_OK : agent_read(a, err);
    for (size_t i = 0; !code && i < a->conversation.n; i++)
        if (hand_out(a->conversation.said[i], fn, arg))
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

struct listing {
    const struct tide_agent *a;
    struct json_out *out;
};

static void list_tool(void *arg, const struct tool *t)
{
    const struct listing *l = arg;
    struct json_out *o = l->out;

    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(t->name));
    json_out_kstr(o, STR("effect"), str_from(tide_effect_name(t->effect)));
    json_out_kstr(o, STR("permission"), str_from(tide_permission_name(permits_ask(l->a->permits, t, NULL))));
    json_out_kstr(o, STR("description"), str_from(t->description));
    json_out_end(o, '}');
}

/* The files that the project's instructions are from: as they were rendered, or would be. */
static void list_instructions(const struct tide_agent *a, struct json_out *o)
{
    static const char begin[] = "\n<instructions path=\"";
    struct str text = str_from(a->opt.instructions);

    if (a->conversation.system)
        (void)conversation_system(&a->conversation, &text);
    json_out_key(o, STR("instructions"));
    json_out_begin(o, '[');
    for (const char *at; text.len && (at = memmem(text.ptr, text.len, begin, sizeof(begin) - 1));) {
        const char *name = at + sizeof(begin) - 1, *end;

        text = (struct str){name, text.len - (size_t)(name - text.ptr)};
        end = memchr(name, '"', text.len);
        json_out_str(o, (struct str){name, end ? (size_t)(end - name) : 0});
    }
    json_out_end(o, ']');
}

enum tide_code tide_agent_get_info(tide_agent *a, struct tide_text *ret_json, struct tide_err *err)
{
    const struct ledger *l = &a->s->state->ledger;
    const struct tide_usage usage = usage_of(l);
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&out);

    (void)err;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(a->s->head.id));
    json_out_kstr(&o, STR("provider"), str_from(a->type));
    json_out_kstr(&o, STR("model"), str_from(a->model));
    json_out_kstr(&o, STR("working_dir"), str_from(a->place.cwd));
    list_instructions(a, &o);
    json_out_kint(&o, STR("turns"), l->max_turn);
    json_out_kint(&o, STR("messages"), (int64_t)a->conversation.n);
    json_out_kint(&o, STR("context_tokens"), a->conversation.context_tokens);
    json_out_kint(&o, STR("max_context_tokens"), a->opt.max_context_tokens);
    usage_put(&o, &usage, USAGE_CACHED | USAGE_COST);
    json_out_key(&o, STR("tools"));
    json_out_begin(&o, '[');
    agent_each_tool(a, list_tool, &(struct listing){a, &o});
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
