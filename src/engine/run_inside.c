/* SPDX-License-Identifier: Apache-2.0 */
/* What is one request and its answer; step_inside.c has the one that is more. */
#include "engine/run_inside.h"

#include <stdio.h>

#include "program/run_client.h"

static void linkp(struct run_client *l)
{
    run_client_close(l);
}

static enum tide_code call_run(struct run_client *l, const char *op, struct str blob, struct reply *ret,
                               struct tide_err *err)
{
    return run_client_call(l, blob, ret, err) ? tide_wrap(err, "%s", op) : TIDE_OK;
}

static enum tide_code begin_call(struct run_client *l, const char *op, struct tide_err *err)
{
    enum tide_code code = run_client_open(l, op, err);

    if (!code)
        run_client_begin(l, op);
    return code;
}

enum tide_code inside_set(struct str key, struct str value, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct reply reply;

    if (begin_call(&l, "set", err))
        return err->code;
    json_out_kstr(&l.o, STR("key"), key);
    return call_run(&l, "set", value, &reply, err);
}

enum tide_code inside_get(const char *key, struct buf *ret_value, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct reply reply;

    if (begin_call(&l, "get", err))
        return err->code;
    json_out_kstr(&l.o, STR("key"), str_from(key));
    if (call_run(&l, "get", STR(""), &reply, err))
        return err->code;
    buf_add_str(ret_value, reply.blob);
    return TIDE_OK;
}

enum tide_code inside_checkpoint(const char *type, const char *description, char ret_id[TIDE_ID_SIZE],
                                 struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct reply reply;

    if (begin_call(&l, "checkpoint", err))
        return err->code;
    json_out_kstr(&l.o, STR("type"), str_from(type));
    if (description)
        json_out_kstr(&l.o, STR("description"), str_from(description));
    if (call_run(&l, "checkpoint", STR(""), &reply, err))
        return err->code;
    snprintf(ret_id, TIDE_ID_SIZE, "%.*s", STR_ARG(json_get_text(&l.arena, reply.json, STR("checkpoint_id"))));
    return TIDE_OK;
}

enum tide_code inside_wait(const struct inside_wait *w, struct buf *ret_answer, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct reply reply;

    if (begin_call(&l, "wait", err))
        return err->code;
    json_out_kstr(&l.o, STR("name"), str_from(w->name));
    json_out_kbool(&l.o, STR("nested"), run_client_is_nested());
    json_out_kstr(&l.o, STR("kind"), str_from(w->kind));
    if (w->question)
        json_out_kstr(&l.o, STR("question"), str_from(w->question));
    json_out_kint(&l.o, STR("deadline_ms"), w->deadline_ms);
    json_out_kint(&l.o, STR("expires_ms"), w->expires_ms);
    if (w->on_deadline)
        json_out_kstr(&l.o, STR("on_deadline"), str_from(w->on_deadline));
    if (w->default_answer)
        json_out_kraw(&l.o, STR("default"), str_from(w->default_answer));
    if (call_run(&l, "wait", STR(""), &reply, err))
        return err->code;
    buf_add_str(ret_answer, reply.blob);
    return TIDE_OK;
}

enum tide_code inside_sleep(const char *name, int64_t due_ms, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct reply reply;

    if (begin_call(&l, "sleep", err))
        return err->code;
    json_out_kstr(&l.o, STR("name"), str_from(name));
    json_out_kbool(&l.o, STR("nested"), run_client_is_nested());
    json_out_kint(&l.o, STR("due_ms"), due_ms);
    return call_run(&l, "sleep", STR(""), &reply, err);
}
