/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nested is entered with the lock held. An agent is made for it from its options, takes the run without owning it, reads its
 * conversation and goes into the loop, which does what is still owed and nothing else: entering again after a cut, a failed
 * attempt or an answered wait continues. Whatever ends it is reported, and what it recorded is queued before it
 * returns.
 */
#include "agent/nested.h"

#include <stdio.h>

#include "agent/agent.h"
#include "base/digest.h"
#include "session/retry.h"

void nested_result_done(struct nested_result *r)
{
    buf_done(&r->outputs);
    buf_done(&r->answer);
}

/* ---- the tool of outputs ---- */

/* The loop records outputs itself: this is only what the model is offered. */
static enum tide_code never_called(void *arg, const char *args, const char *key, struct tide_text *ret,
                                   struct tide_err *err)
{
    (void)arg;
    (void)args;
    (void)key;
    (void)ret;
    return tide_fail(err, TIDE_INVALID, "outputs are recorded by the loop");
}

static void put_schema(struct buf *out, const struct nested_agent *nested)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), STR("object"));
    json_out_key(&o, STR("properties"));
    json_out_begin(&o, '{');
    json_out_key(&o, STR("key"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), STR("string"));
    json_out_key(&o, STR("enum"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < nested->n_outputs; i++)
        json_out_str(&o, nested->outputs[i]);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    json_out_key(&o, STR("value"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("description"), STR("any JSON value"));
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    json_out_kraw(&o, STR("required"), STR("[\"key\",\"value\"]"));
    json_out_end(&o, '}');
}

static void put_names(struct buf *out, const char *before, const struct str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%s%.*s", i ? ", " : before, STR_ARG(names[i]));
}

static enum tide_code offer_outputs(struct tide_agent *a, const struct nested_agent *nested, struct tide_err *err)
{
    AUTO(buf_done) struct buf schema = BUF_INIT(65536), text = BUF_INIT(65536);

    put_schema(&schema, nested);
    buf_add_str(&text, STR("Gives one result of your task. Call it once for each"));
    put_names(&text, ": ", nested->outputs, nested->n_outputs);
    put_names(&text, ". These may be left out: ", nested->nullable, nested->n_nullable);
    buf_add_str(&text, STR(". The task is over when all others are set."));
    const struct tide_tool tool = {.size = sizeof tool,
                                   .name = SET_OUTPUT,
                                   .description = buf_cstr(&text),
                                   .schema = buf_cstr(&schema),
                                   .effect = TIDE_EFFECT_PURE,
                                   .permission = TIDE_PERMISSION_ALLOW,
                                   .fn = never_called};

    return tide_agent_add_tool(a, &tool, err);
}

/* ---- coming and going ---- */

/* The session, the run and the lock stay with their owner. */
void nested_leave(struct tide_agent *a)
{
    if (!a)
        return;
    a->run = NULL;
    a->nested = NULL;
    tide_agent_free(a);
}

enum tide_code nested_enter(const struct nested_agent *nested, const struct tide_agent_options *opt,
                            const char *decides, struct tide_agent **ret, struct tide_err *err)
{
    struct tide_agent *a;
    enum tide_code code =
        run_sure(nested->run, err); /* what is queued first: a failure of it is the run's to deal with */

    code = code ? code : session_sync(nested->session, err);
    if (code)
        return code;
    code = tide_agent_new(nested->session, opt, ret, err);
    if (!code && nested->n_outputs)
        code = offer_outputs(*ret, nested, err);
    if (code && !session_is_trouble(code)) /* a key, a file, a setting: when it was put right, it can be tried again */
        err->code = code = TIDE_FAILED;
    if (code)
        return code;
    a = *ret;
    a->nested = nested;
    a->locked = true;
    a->run = nested->run;
    a->place.run_id = a->run->id;
    if (nested->guard) {
        a->place.guard = nested->guard;
        hooks_guard(a->hooks, nested->guard);
    }
    a->fresh = true; /* an attempt that was announced is still due */
    a->looked_ns = a->s->store->env->ops->mono_ns(a->s->store->env);
    a->conversation.whose = (struct conversation_owner){nested->node, nested->visit, nested->branch, decides};
    code = conversation_load(&a->conversation, a->s, err);
    for (size_t i = 0; !code && i < a->run->backlog.n; i++) { /* of a degraded run: behind what the store has */
        const struct tide_new_event *ev = &a->run->backlog.events[i];

        conversation_apply(&a->conversation, str_from(ev->kind), (struct str){ev->body, ev->body_len});
    }
    code = code ? code : undone_load(a, err);
    a->turns = a->conversation.answers; /* the limit is one of the visit: continuing does not double it */
    return code;
}

/* ---- the end ---- */

static void give_outputs(const struct tide_agent *a, struct buf *out)
{
    struct json_out o = json_out_to(out);

    buf_clear(out);
    json_out_begin(&o, '{');
    for (size_t i = 0; i < a->nested->n_outputs; i++) {
        const char *value = map_get(&a->conversation.outputs, a->nested->outputs[i]);

        if (value)
            json_out_kraw(&o, a->nested->outputs[i], str_from(value));
    }
    json_out_end(&o, '}');
}

static enum tide_code fail_as(struct nested_result *ret, const char *code, bool retry, struct tide_err *err)
{
    snprintf(ret->code, sizeof(ret->code), "%s", code);
    ret->retry = retry;
    err->code = TIDE_FAILED;
    return TIDE_FAILED;
}

/* What ended the loop, in the words of nested.h. A no to more budget ends it, and so does a hook: neither is a stop. */
static enum tide_code name_end(const struct tide_agent *a, enum tide_code code, struct nested_result *ret,
                               struct tide_err *err)
{
    int stop = atomic_load(&a->stop);

    if (code == TIDE_CANCELLED && stop == STOP_BY_HOOK)
        return fail_as(ret, "hook_stop", false, err);
    if (code == TIDE_CANCELLED && stop == STOP_NOT)
        return fail_as(ret, "budget", false, err);
    if (code == TIDE_FAILED && a->fault.code[0])
        tide_wrap_after(err, "%s", fault_remedy(&a->fault, a->type));
    if (code == TIDE_FAILED)
        return fail_as(ret, a->fault.code[0] ? a->fault.code : "failed",
                       strcmp(a->fault.code, "max_turns") != 0 && retry_helps(str_from(a->fault.code)), err);
    return code;
}

static enum tide_code conclude_nested(struct tide_agent *a, enum tide_code code, struct nested_result *ret,
                                      struct tide_err *err)
{
    struct tide_err e;

    code = name_end(a, code, ret, err);
    /* Else the run itself has failed: its caller gets the error. */
    if ((!code || code == TIDE_WAITING || code == TIDE_CANCELLED || code == TIDE_FAILED) && agent_put(a, &e))
        code = tide_err_copy(err, &e);
    give_outputs(a, &ret->outputs);
    buf_clear(&ret->answer);
    buf_add_str(&ret->answer, conversation_answer(&a->conversation));
    return code;
}

static enum tide_code begin_nested(struct tide_agent *a, struct tide_err *err)
{
    const char *prompt = a->nested->prompt ? a->nested->prompt : "";

    if (a->conversation.n)
        return TIDE_OK;
    if (str_is_blank(str_from(prompt)) || !str_is_utf8(str_from(prompt), NULL)) {
        snprintf(a->fault.code, sizeof(a->fault.code), "config");
        return tide_fail(err, TIDE_FAILED, "the prompt of node '%s' is empty or not valid UTF-8", a->nested->node);
    }
    agent_say(a, str_from(prompt));
    agent_started(a, prompt);
    return TIDE_OK;
}

enum tide_code nested_run(const struct nested_agent *nested, struct nested_result *ret, struct tide_err *err)
{
    struct tide_agent_options opt = *nested->opt;
    struct tide_agent *a = NULL;
    enum tide_code code;

    ERR_LOCAL(err);
    ret->code[0] = '\0';
    ret->retry = false;
    ret->wait = (struct nested_wait){.name = ""};
    opt.approve = NULL; /* it would be asked with the lock held, and nothing is parked yet */
    code = nested_enter(nested, &opt, NULL, &a, err);
    if (code == TIDE_FAILED)
        code = fail_as(ret, "config", false, err);
    if (!code) {
        a->wait = &ret->wait;
        code = begin_nested(a, err);
        code = code ? code : agent_work(a, err);
        code = conclude_nested(a, code, ret, err);
    }
    nested_leave(a);
    return code;
}
