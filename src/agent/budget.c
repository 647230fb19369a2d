/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a conversation costs and how large it gets. A budget that is used up parks the run with the reason; a person may
 * allow as much again. A context that grows too large loses its oldest turns, by an event of its own, so that a request
 * rebuilt later leaves out the same ones.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "agent/agent.h"

#include "base/invariant.h"

#define BYTES_PER_TOKEN 4
#define KEEP_PERCENT 60 /* of what is allowed: trimming a little each turn would spoil the provider's cache each turn */

static double number_in(struct arena *a, const struct json *o, const char *key)
{
    const struct json *v = json_get(o, str_from(key));

    return v && v->type == JSON_NUMBER ? strtod(arena_dup(a, v->raw).ptr, NULL) : 0;
}

enum tide_code prices_check(struct str json, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    if (json_parse(&a, json, NULL, &v, NULL, err))
        return tide_wrap(err, "prices");
    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "prices: must be an object of models");
    for (const struct json *m = v->first; m; m = m->next)
        if (m->type != JSON_OBJECT || !json_get(m, STR("input")) || !json_get(m, STR("output")))
            return tide_fail(
                err, TIDE_INVALID,
                "prices: '%.*s' must be {\"input\": N, \"output\": N, \"cached\": N}, each per million tokens",
                STR_ARG(m->key));
    return TIDE_OK;
}

double budget_cost(const struct tide_agent *a, const struct model_usage *u)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *v = NULL;

    if (!a->opt.prices || json_parse(&arena, str_from(a->opt.prices), NULL, &v, NULL, NULL))
        return -1;
    for (const struct json *m = v->first; m; m = m->next) {
        double in, cached;

        if (fnmatch(arena_dup(&arena, json_key_text(&arena, m)).ptr, a->model, 0) != 0)
            continue;
        in = number_in(&arena, m, "input");
        cached = json_get(m, STR("cached")) ? number_in(&arena, m, "cached") : in;
        return ((double)(u->input_tokens - u->cached_tokens) * in + (double)u->cached_tokens * cached +
                (double)u->output_tokens * number_in(&arena, m, "output")) /
               1e6;
    }
    return -1;
}

/* ---- budgets ---- */

/* One line that says what is used up; NULL: nothing is. */
static const char *used_up(struct tide_agent *a)
{
    const struct ledger *l = &a->s->state->ledger;
    double cost = (double)l->cost_nano / 1e9, more = (double)(1 + a->conversation.budgets);

    if (a->opt.max_cost > 0 && cost >= a->opt.max_cost * more)
        return arena_printf(&a->scratch, "the budget of %.4g is used up (%.4g so far): allow as much again?",
                            a->opt.max_cost * more, cost);
    if (a->opt.max_tokens > 0 &&
        l->input_tokens + l->output_tokens >= a->opt.max_tokens * (1 + a->conversation.budgets))
        return arena_printf(&a->scratch,
                            "the budget of %" PRId64 " tokens is used up (%" PRId64 " so far): allow as much again?",
                            a->opt.max_tokens * (1 + a->conversation.budgets), l->input_tokens + l->output_tokens);
    return NULL;
}

enum tide_code budget_check(struct tide_agent *a, struct tide_err *err)
{
    const char *question, *name;
    struct str reason;
    bool allowed = false, refused = false;
    enum tide_code code;

    if (a->opt.max_cost <= 0 && a->opt.max_tokens <= 0)
        return TIDE_OK;
    code = agent_put(a, err);                 /* what was just used counts */
    if (!code && a->run && a->run->backlog.n) /* also what waits in memory: a budget needs the store */
        code = run_settle(a->run, err);
    if (!code && a->nested)
        code = nested_budgets(a, &refused, err);
    question = code ? NULL : used_up(a);
    if (!question)
        return code;
    name = arena_printf(&a->scratch, "budget-%" PRId64, a->conversation.budget_answers + 1);
    if (!refused)
        code = agent_approval(a, name, name, question, NULL, &allowed, &reason, err);
    if (!code && !allowed)
        code = tide_fail(err, TIDE_CANCELLED, "%s: no", question);
    return code;
}

/* ---- the size of the context ---- */

static int64_t context_now(const struct conversation *t)
{
    size_t bytes = conversation_bytes(t), more = bytes > t->context_bytes ? bytes - t->context_bytes : 0;

    if (!t->context_tokens)
        return (int64_t)(bytes / BYTES_PER_TOKEN);
    return t->context_tokens + (int64_t)(more / BYTES_PER_TOKEN);
}

void budget_trim(struct tide_agent *a)
{
    int64_t limit = a->opt.max_context_tokens * a->opt.context_percent / 100, now = context_now(&a->conversation);
    size_t from, to, bytes = conversation_bytes(&a->conversation), keep;
    struct json_out *o;

    if (now <= limit)
        return;
    keep = (size_t)((double)bytes * ((double)limit * KEEP_PERCENT / 100) / (double)now);
    if (!conversation_trim(&a->conversation, keep, &from, &to))
        return;
    INVARIANT(from <= to && to < a->conversation.n - 1); /* what was said last stays */
    agent_notice(
        a, "the conversation has about %" PRId64 " tokens, %" PRId64 " are allowed: %zu older messages are dropped",
        now, limit, to - from + 1);
    o = agent_open(a, "context.trimmed", agent_turn(a));
    json_out_key(o, STR("dropped"));
    json_out_begin(o, '[');
    json_out_begin(o, '{');
    json_out_kstr(o, STR("from"), str_from(a->conversation.said[from]->id));
    json_out_kstr(o, STR("to"), str_from(a->conversation.said[to]->id));
    json_out_kint(o, STR("messages"), (int64_t)(to - from + 1));
    json_out_end(o, '}');
    json_out_end(o, ']');
    json_out_kstr(o, STR("reason"), STR("max_context_tokens"));
    agent_close(a);
}
