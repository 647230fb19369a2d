/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that answers from a file: demos, tests and measurements need no account and no network.
 *
 * It remembers nothing: the turn is the number of answers that were given so far, those that trimming left out among them,
 * so that a conversation that was cut and is resumed gets the answer that is due. Its own rendering says that number last, where
 * it is found without reading the rest.
 */
#include "agent/provider_script.h"

#include "agent/http.h"
#include "env/env.h"

#define WAIT_PIECE_MS 50 /* idle is asked at least so often */

/* ---- rendering ----------------------------------------------------------------------------------------------------- */

static void render_message(struct render *r, const struct model_message *m)
{
    struct json_out *o = &r->o;

    r->answers += m->role == TIDE_ROLE_ASSISTANT;
    json_out_begin(o, '{');
    json_out_kstr(o, STR("role"), str_from(tide_role_name(m->role)));
    if (m->role == TIDE_ROLE_TOOL)
        json_out_kstr(o, STR("call_id"), m->call_id);
    json_out_kstr(o, STR("text"), m->text);
    if (m->n_calls) {
        json_out_key(o, STR("calls"));
        json_out_begin(o, '[');
        for (size_t i = 0; i < m->n_calls; i++) {
            json_out_begin(o, '{');
            json_out_kstr(o, STR("id"), m->calls[i].id);
            json_out_kstr(o, STR("name"), m->calls[i].name);
            json_out_kraw(o, STR("args"), m->calls[i].args.len ? m->calls[i].args : STR("{}"));
            json_out_end(o, '}');
        }
        json_out_end(o, ']');
    }
    if (m->failed)
        json_out_kbool(o, STR("failed"), true);
    json_out_end(o, '}');
}

static void begin_request(const struct provider *p, const struct model_request *request, struct render *r)
{
    struct json_out *o = &r->o;

    (void)p;
    json_out_begin(o, '{');
    json_out_kstr(o, STR("part"), request->part);
    json_out_kstr(o, STR("model"), request->model);
    json_out_kint(o, STR("max_tokens"), request->max_tokens);
    json_out_kstr(o, STR("system"), request->system);
    json_out_kraw(o, STR("tools"), request->tools.len ? request->tools : STR("[]"));
    json_out_key(o, STR("messages"));
    json_out_begin(o, '[');
}

static void end_request(const struct model_request *request, struct render *r)
{
    json_out_end(&r->o, ']');
    json_out_kint(&r->o, STR("turn"), request->answers_left_out + r->answers);
    json_out_end(&r->o, '}');
}

/* ---- answering ----------------------------------------------------------------------------------------------------- */

/* What the request says first and last: whose it is (as JSON has it; empty: a chat's), and how many answers were given before. */
static bool read_ends(struct str body, int64_t *ret_turn, struct str *ret_part)
{
    static const struct str head = {"{\"part\":\"", 9};
    const char *name, *quote, *number;

    if (!str_starts(body, head) || body.ptr[body.len - 1] != '}')
        return false;
    name = body.ptr + head.len;
    quote = memchr(name, '"', body.len - head.len); /* names of nodes hold none */
    number = (const char *)memrchr(body.ptr, ':', body.len) + 1;
    if (!quote || !str_to_int64((struct str){number, (size_t)(body.ptr + body.len - 1 - number)}, ret_turn))
        return false;
    *ret_part = (struct str){name, (size_t)(quote - name)};
    return *ret_turn >= 0;
}

static const struct json *find_turn(const struct script *s, struct str body, int64_t *ret_turn, struct model_fault *f)
{
    const struct part *p;
    struct str part;

    if (!read_ends(body, ret_turn, &part)) {
        fault_set(f, "bad_request", 0, "the request is not one that this provider rendered");
        return NULL;
    }
    p = script_part(s, part);
    if (*ret_turn < p->n_turns || (s->repeat && p->n_turns))
        return p->turns[*ret_turn % p->n_turns];
    fault_set(f, "bad_request", 0,
              "%.100s has %lld turn%s%s%.*s, and turn %lld was asked for: add one, or \"repeat\": true", s->path,
              (long long)p->n_turns, p->n_turns == 1 ? "" : "s", part.len ? " for node " : "",
              (int)(part.len < 60 ? part.len : 60), part.ptr, (long long)*ret_turn + 1);
    return NULL;
}

/* False: given up, see *f. */
static bool wait_ms(const struct model_listener *l, int64_t ms, struct model_fault *f)
{
    struct env *env = env_real();

    for (;;) {
        int64_t piece = ms < WAIT_PIECE_MS ? ms : WAIT_PIECE_MS;

        if (l->idle && l->idle(l->arg)) {
            fault_set(f, "cancelled", 0, "cancelled");
            return false;
        }
        if (piece <= 0)
            return true;
        env->ops->sleep_ms(env, (int)piece);
        ms -= piece;
    }
}

static bool speak_text(const struct model_listener *l, struct str text, int64_t chunk_ms, struct model_fault *f)
{
    while (text.len > 0) {
        const char *space = chunk_ms > 0 ? memchr(text.ptr, ' ', text.len) : NULL;
        size_t n = space ? (size_t)(space - text.ptr) + 1 : text.len;

        if (l->text)
            l->text(l->arg, (struct str){text.ptr, n});
        text = (struct str){text.ptr + n, text.len - n};
        if (text.len > 0 && !wait_ms(l, chunk_ms, f))
            return false;
    }
    return true;
}

static const struct json *fail_of(const struct json *turn, int attempt)
{
    const struct json *list = json_get(turn, STR("fail")), *fail = list ? list->first : NULL;

    for (int i = 0; fail && i < attempt; i++)
        fail = fail->next;
    return fail && fail->type == JSON_OBJECT ? fail : NULL;
}

static void take_fault(const struct json *fail, const struct model_listener *l, struct model_fault *f)
{
    const struct json *after = json_get(fail, STR("retry_after"));
    struct arena a = ARENA_INIT;
    struct str text = json_get_text(&a, fail, STR("after_text")), code = json_get_text(&a, fail, STR("code"));
    struct message_kept said = {.message = arena_dup(&a, json_get_text(&a, fail, STR("message")))};
    int status = (int)json_get_int(fail, STR("status"), 0);

    if (said.message.len == 0)
        said.message = STR("the script says so");
    if (!speak_text(l, text, 0, f)) {
        arena_done(&a);
        return;
    }
    if (code.len)
        fault_set(f, arena_dup(&a, code).ptr, status, "%.*s", STR_ARG(said.message));
    else
        fault_said(f, status, &said);
    if (after) {
        double ms = strtod(arena_dup(&a, after->raw).ptr, NULL) * 1000;

        f->retry_after_ms = ms < (double)RETRY_AFTER_MAX_MS ? (int64_t)ms : RETRY_AFTER_MAX_MS;
    }
    arena_done(&a);
}

static void take_calls(struct model_answer *a, const struct json *calls, int64_t turn)
{
    if (!calls || calls->count == 0)
        return;
    a->calls = arena_zero(&a->arena, calls->count * sizeof *a->calls);
    for (const struct json *c = calls->first; c; c = c->next) {
        struct model_call *call = &a->calls[a->n_calls++];
        const struct json *args = json_get(c, STR("args"));

        call->id = json_get_text(&a->arena, c, STR("id"));
        if (call->id.len == 0)
            call->id = str_from(arena_printf(&a->arena, "call_%lld_%zu", (long long)turn + 1, a->n_calls));
        else
            call->id = arena_dup(&a->arena, call->id);
        call->name = arena_dup(&a->arena, json_get_text(&a->arena, c, STR("name")));
        call->args = model_args(&a->arena,
                                !args                       ? STR("{}")
                                : args->type == JSON_STRING ? json_text(&a->arena, args)
                                                            : args->raw,
                                &a->replaced);
    }
}

/* About four bytes make a token. */
static void take_usage(struct model_answer *a, const struct json *usage, size_t body_len)
{
    size_t said = a->text.len;

    for (size_t i = 0; i < a->n_calls; i++)
        said += a->calls[i].name.len + a->calls[i].args.len;
    a->usage = (struct model_usage){(int64_t)(body_len + 3) / 4, (int64_t)(said + 3) / 4, 0};
    reply_count(&a->usage.input_tokens, usage, STR("input_tokens"));
    reply_count(&a->usage.output_tokens, usage, STR("output_tokens"));
    reply_count(&a->usage.cached_tokens, usage, STR("cached_tokens"));
}

static void take_answer(struct model_answer *a, const struct json *turn, int64_t number, size_t body_len)
{
    const struct json *stop = json_get(turn, STR("stop"));

    *a = (struct model_answer){.arena = ARENA_INIT};
    a->text = arena_dup(&a->arena, json_get_text(&a->arena, turn, STR("text")));
    take_calls(a, json_get(turn, STR("calls")), number);
    take_usage(a, json_get(turn, STR("usage")), body_len);
    a->stop = a->n_calls ? STOP_TOOLS : STOP_END;
    if (stop)
        script_stop(stop->raw, &a->stop);
}

static bool call_script(struct provider *p, struct str body, int attempt, const struct model_listener *l,
                        struct model_answer *ret_answer, struct model_fault *f)
{
    int64_t number = 0;
    const struct json *turn = find_turn(p->script, body, &number, f), *fail;
    struct model_answer a;

    if (!turn || !wait_ms(l, json_get_int(turn, STR("delay_ms"), 0), f))
        return false;
    fail = fail_of(turn, attempt);
    if (fail) {
        take_fault(fail, l, f);
        return false;
    }
    take_answer(&a, turn, number, body.len);
    if (!speak_text(l, a.text, json_get_int(turn, STR("chunk_ms"), 0), f)) {
        model_answer_done(&a);
        return false;
    }
    *ret_answer = a;
    return true;
}

const struct provider_ops provider_script = {
    .type = "script", .begin = begin_request, .message = render_message, .end = end_request, .call = call_script};
