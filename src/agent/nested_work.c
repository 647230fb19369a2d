/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is different in a nested agent. The session and the run are shared: they are touched with the lock held only, and a number of
 * a turn is given once, no matter who asks first. The loop ends when the outputs are there, not when the model stops talking. It
 * never parks: what it waits for it says, and the caller that drives the run parks for all.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/invariant.h"
#include "agent/nested.h"
#include "base/utf8.h"

/* ---- the lock ---- */

void agent_unlock(struct tide_agent *a)
{
    if (!a->nested || !a->locked)
        return;
    a->locked = false;
    if (a->nested->unlock)
        a->nested->unlock(a->nested->arg);
}

void agent_lock(struct tide_agent *a)
{
    if (!a->nested || a->locked)
        return;
    if (a->nested->lock)
        a->nested->lock(a->nested->arg);
    a->locked = true;
}

bool agent_hold(struct tide_agent *a)
{
    bool was_locked = a->locked;

    agent_lock(a);
    return was_locked;
}

void agent_restore(struct tide_agent *a, bool was_locked)
{
    if (!was_locked)
        agent_unlock(a);
}

bool nested_stopped(struct tide_agent *a)
{
    int expected = STOP_NOT;

    if (a->nested->stopped && a->nested->stopped(a->nested->arg))
        atomic_compare_exchange_strong(&a->stop, &expected, STOP_BY_SHUTDOWN);
    return atomic_load(&a->stop) != STOP_NOT;
}

/* ---- turns ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The log knows of a number only when something of its turn is recorded; until then the run remembers it. */
int64_t nested_turn(struct tide_agent *a)
{
    const struct state *state = a->s->state;
    int64_t most = larger(larger(state->ledger.max_turn, state->content.turn), a->run->given_turn);

    if (a->given_turn <= a->conversation.answered_turn)
        a->given_turn = a->run->given_turn = larger(most, a->conversation.seen_turn) + 1;
    INVARIANT(a->locked && a->given_turn <= a->run->given_turn); /* a number is given once, no matter who asks first */
    return a->given_turn;
}

struct str nested_part(struct tide_agent *a)
{
    const char *slash = strrchr(a->nested->node, '/'), *name = slash ? slash + 1 : a->nested->node;
    const char *mark = a->conversation.whose.decides ? "?" : "";

    if (strchr(name, '#')) /* of a map: the visit is in it */
        return str_from(arena_printf(&a->scratch, "%s%s", name, mark));
    return str_from(arena_printf(&a->scratch, "%s#%" PRId64 "%s", name, a->nested->visit, mark));
}

bool nested_offers(const struct tide_agent *a, const char *tool)
{
    const char *const *name = a->nested ? a->nested->tools : NULL;

    while (name && *name && strcmp(*name, tool) != 0)
        name++;
    return !name || *name;
}

/* ---- outputs ---- */

static bool is_among(struct str key, const struct str *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(key, list[i]))
            return true;
    return false;
}

static bool is_nullable(const struct nested_agent *nested, struct str key)
{
    return is_among(key, nested->nullable, nested->n_nullable);
}

static bool has_required(const struct nested_agent *nested)
{
    for (size_t i = 0; i < nested->n_outputs; i++)
        if (!is_nullable(nested, nested->outputs[i]))
            return true;
    return false;
}

/* The names of outputs that must be set and are not; how many. */
static size_t list_missing(const struct tide_agent *a, struct buf *out)
{
    const struct nested_agent *nested = a->nested;
    size_t n = 0;

    for (size_t i = 0; i < nested->n_outputs; i++) {
        if (is_nullable(nested, nested->outputs[i]) || map_get(&a->conversation.outputs, nested->outputs[i]))
            continue;
        buf_addf(out, "%s%.*s", n++ ? ", " : "", STR_ARG(nested->outputs[i]));
    }
    return n;
}

/* NULL: the arguments are good. */
static const char *wrong_with(struct tide_agent *a, struct str key, const struct json *value)
{
    AUTO(buf_done) struct buf names = BUF_INIT(8192);

    for (size_t i = 0; i < a->nested->n_outputs; i++)
        buf_addf(&names, "%s%.*s", i ? ", " : "", STR_ARG(a->nested->outputs[i]));
    if (!is_among(key, a->nested->outputs, a->nested->n_outputs))
        return arena_printf(&a->scratch, "there is no output '%.*s': the keys are %s",
                            (int)(key.len < 100 ? key.len : 100), key.ptr, buf_cstr(&names));
    if (!value)
        return arena_printf(&a->scratch, "the value of '%.*s' is missing: give one, of any type", STR_ARG(key));
    if (value->type == JSON_NULL && !is_nullable(a->nested, key))
        return arena_printf(&a->scratch, "'%.*s' must not be null", STR_ARG(key));
    return NULL;
}

static void put_output(struct tide_agent *a, struct str key, const struct json *value)
{
    AUTO(buf_done) struct buf json = BUF_INIT(SIZE_MAX / 4);
    struct json_out *o = agent_open(a, "output.set", 0);

    json_write(&json, value);
    json_out_key(o, STR("values"));
    json_out_begin(o, '{');
    json_out_kraw(o, key, buf_view(&json));
    json_out_end(o, '}');
    json_out_kstr(o, STR("by"), STR("node"));
    agent_close(a);
}

bool nested_output(struct tide_agent *a, const struct json *args, struct buf *text)
{
    AUTO(buf_done) struct buf missing = BUF_INIT(8192);
    struct str key = json_get_text(&a->scratch, args, STR("key"));
    const struct json *value = json_get(args, STR("value"));
    const char *wrong = wrong_with(a, key, value);

    if (wrong) {
        buf_add_str(text, str_from(wrong));
        return false;
    }
    put_output(a, key, value);
    buf_addf(text, "'%.*s' is set", STR_ARG(key));
    if (list_missing(a, &missing))
        buf_addf(text, "; still to be set: %s", buf_cstr(&missing));
    return true;
}

bool nested_is_over(const struct tide_agent *a)
{
    AUTO(buf_done) struct buf names = BUF_INIT(8192);

    if (!has_required(a->nested))
        return !conversation_is_owed(&a->conversation);
    return !list_missing(a, &names) && !conversation_is_urged(&a->conversation);
}

void nested_ask_on(struct tide_agent *a)
{
    AUTO(buf_done) struct buf names = BUF_INIT(8192);
    struct json_out *o;

    list_missing(a, &names);
    o = agent_message(a, "message.user", agent_turn(a));
    json_out_kstr(o, STR("by"), STR("loop"));
    json_out_kstr(o, STR("content"),
                  str_from(arena_printf(&a->scratch,
                                        "This is not done yet: set what is missing with the tool " SET_OUTPUT
                                        ", one call for each: %s",
                                        buf_cstr(&names))));
    agent_close(a);
}

/* ---- waits ---- */

/* Cut on a character's border: what is asked must be valid text. */
static void copy_text(char *out, size_t size, const char *text)
{
    struct str s = utf8_clip(str_from(text), size - 1);

    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
}

enum tide_code nested_answer(struct tide_agent *a, const struct tide_wait_options *wait, struct tide_text *ret_answer,
                             struct tide_err *err)
{
    enum tide_code code;

    INVARIANT(a->locked);
    code = wait_answer(a->run, wait->name, ret_answer, err);
    if (code != TIDE_NOT_FOUND)
        return code;
    a->wait->kind = wait->kind;
    copy_text(a->wait->name, sizeof(a->wait->name), wait->name);
    copy_text(a->wait->question, sizeof(a->wait->question), wait->question);
    return tide_fail(err, TIDE_WAITING, "it waits for %s: %s", tide_wait_kind_name(wait->kind), wait->question);
}

enum tide_code nested_budgets(struct tide_agent *a, bool *ret_refused, struct tide_err *err)
{
    int64_t answers = 0, allowances = 0;
    struct tide_text answer = {NULL, 0};
    enum tide_code code;

    for (;;) {
        const char *name = arena_printf(&a->scratch, "budget-%" PRId64, answers + 1);
        struct str reason;
        bool allowed;

        code = wait_answer(a->run, name, &answer, err);
        if (code)
            break;
        agent_decision(a, (struct str){answer.ptr, answer.len}, &allowed, &reason);
        tide_text_done(&answer);
        answers++;
        allowances += allowed;
        *ret_refused = false;
        if (map_get(&a->conversation.asked, str_from(name)) && !map_get(&a->conversation.decisions, str_from(name))) {
            agent_put_given(a, name, allowed,
                            reason); /* what this nested asked is answered, also when another asked the same */
            *ret_refused = !allowed;
        }
    }
    a->conversation.budget_answers = answers;
    a->conversation.budgets = allowances;
    return code == TIDE_NOT_FOUND ? TIDE_OK : code;
}
