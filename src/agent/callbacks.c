/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools and hooks of the caller that embeds the agent: C functions that stand in the place of a built-in tool or of a hook's program.
 * They get and give JSON as those do, so the loop knows no difference. An embedder's tool comes before a built-in one where
 * tools are named, and behind them in what the model is given.
 */
#include "agent/agent.h"
#include "agent/hook_rows.h"

/* ---- hooks ---- */

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
        return tide_fail(err, TIDE_INVALID, "'%s' is not an event of a hook: pre_tool_use, turn_start, …",
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

/* The row is the first member of what holds it. */
static const struct own_tool *own_of(const struct tool_work *w)
{
    return (const struct own_tool *)(const void *)w->tool;
}

static enum tool_fate probe_own_tool(struct tool_work *w)
{
    const struct own_tool *t = own_of(w);
    struct buf args = BUF_INIT(SIZE_MAX / 4);
    int happened;

    json_write(&args, w->args);
    happened = t->probe(t->arg, buf_cstr(&args), w->key);
    buf_done(&args);
    return happened > 0 ? FATE_HAPPENED : happened == 0 ? FATE_DID_NOT : FATE_UNKNOWN;
}

static void run_own_tool(struct tool_work *w, struct tool_result *ret)
{
    const struct own_tool *t = own_of(w);
    struct buf args = BUF_INIT(SIZE_MAX / 4);
    struct tide_text result = {NULL, 0};
    struct tide_err err = {0};

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
    if (t->effect > TIDE_EFFECT_PURE)
        return tide_fail(err, TIDE_INVALID, "tool '%s': %d is not an effect: use pure, idempotent or once", t->name,
                         (int)t->effect);
    if (t->permission > TIDE_PERMISSION_DENY)
        return tide_fail(err, TIDE_INVALID, "tool '%s': %d is not a permission: use allow, ask or deny", t->name,
                         (int)t->permission);
    return TIDE_OK;
}

enum tide_code tide_agent_add_tool(tide_agent *a, const struct tide_tool *given, struct tide_err *err)
{
    struct tide_tool copy;
    const struct tide_tool *t = &copy;
    struct own_tool *own;

    ERR_LOCAL(err);
    if (SIZED_READ(&copy, tide_tool, given, err) || check_tool(a, t, err))
        return err->code;
    own = arena_zero(&a->arena, sizeof(*own));
    *own = (struct own_tool){.fn = t->fn, .probe = t->probe, .arg = t->arg, .next = a->own_tools};
    own->base = (struct tool){.name = agent_keep(a, t->name, ""),
                              .description = agent_keep(a, t->description, ""),
                              .schema = agent_keep(a, t->schema, "{\"type\":\"object\"}"),
                              .effect = t->effect,
                              .subject = "",
                              .permission = t->permission,
                              .run = run_own_tool,
                              .fate = t->probe ? probe_own_tool : NULL};
    a->own_tools = own;
    return TIDE_OK;
}

static bool has_builtin(const struct tide_agent *a, const struct tool *t)
{
    return !a->opt.no_tools && nested_offers(a, t->name);
}

const struct tool *agent_tool(const struct tide_agent *a, struct str name)
{
    for (const struct own_tool *t = a->own_tools; t; t = t->next)
        if (str_eq(name, str_from(t->base.name)))
            return &t->base;
    for (size_t i = 0; tools[i]; i++)
        if (str_eq(name, str_from(tools[i]->name)) && has_builtin(a, tools[i]))
            return tools[i];
    return NULL;
}

static bool is_offered(void *arg, const struct tool *t)
{
    const struct tide_agent *a = arg;

    return has_builtin(a, t) && permits_some(a->permits, t);
}

void agent_render_tools(struct tide_agent *a, struct buf *out)
{
    tools_render(out, is_offered, a);
    for (const struct own_tool *t = a->own_tools; t; t = t->next) {
        struct json_out o = json_out_to(out);

        out->len--; /* the bracket */
        if (out->len > 1)
            buf_add_char(out, ',');
        tool_render(&o, &t->base);
        buf_add_char(out, ']');
    }
}

void agent_each_tool(const struct tide_agent *a, void (*fn)(void *arg, const struct tool *t), void *arg)
{
    for (const struct own_tool *t = a->own_tools; t; t = t->next)
        fn(arg, &t->base);
    for (size_t i = 0; tools[i]; i++)
        if (has_builtin(a, tools[i]))
            fn(arg, tools[i]);
}

static void add_name(void *arg, const struct tool *t)
{
    struct buf *out = arg;

    buf_addf(out, "%s%s", out->len ? ", " : "", t->name);
}

void agent_tool_names(const struct tide_agent *a, struct buf *out)
{
    agent_each_tool(a, add_name, out);
    if (!out->len)
        buf_add_str(out, STR("none"));
}
