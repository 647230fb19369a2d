/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that answers from a file: demos, tests and measurements need no account and no network. The file:
 *
 *   {"turns": [
 *      {"text": "I will look.",                                      what it says; may be absent
 *       "calls": [{"name": "bash", "args": {"command": "ls"}, "id": "c1"}],    args: an object, {} when absent; a string is
 *                                                                    taken as what a model wrote: no JSON is malformed.
 *                                                                    id: "call_TURN_NUMBER" when absent
 *       "usage": {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 0},    estimated from lengths when absent
 *       "stop": "end",                                               end, tools, length, refused; absent: by the calls
 *       "delay_ms": 0,                                               before the first character
 *       "chunk_ms": 0,                                               between words; 0: all at once
 *       "fail": [{"status": 429, "retry_after": 1, "message": "…"},    what becomes of attempt 0, 1, …; null: it works
 *                {"code": "connection", "after_text": "I wi"}],      after_text: is shown before it fails
 *       "comment": "for readers"}],
 *    "repeat": false}                                                true: past the last turn, from the first again
 *
 * It remembers nothing: the turn is the number of answers that the request holds, so that a conversation that was cut and
 * goes on gets the answer that is due. Its own rendering says that number first, where it is found without reading the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/provider_internal.h"
#include "env/env.h"

#define SCRIPT_MAX_BYTES ((size_t)64 << 20)
#define WAIT_PIECE_MS 50 /* idle is asked at least so often */

struct script {
    char *path;
    struct buf text;
    struct arena arena;
    const struct json **turns;
    int64_t n_turns;
    bool repeat;
};

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static enum tide_code read_all(int fd, const char *path, struct buf *out, struct tide_err *err)
{
    ssize_t n = 1;

    while (n > 0) {
        char *room = buf_reserve(out, 65536);

        if (!room)
            return tide_fail(err, TIDE_TOO_BIG, "script %s is over %zu MiB", path, SCRIPT_MAX_BYTES >> 20);
        n = read(fd, room, 65536);
        if (n < 0)
            return tide_fail_errno(err, errno, "read script %s", path);
        out->len += (size_t)n;
    }
    return TIDE_OK;
}

static enum tide_code load(const char *path, struct buf *out, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum tide_code code;

    if (fd < 0)
        return tide_fail_errno(err, errno, "open script %s", path);
    code = read_all(fd, path, out, err);
    close(fd);
    return code;
}

struct key_row {
    const char *name;
    enum json_type type;
};
static const struct key_row script_keys[] = {
    {"turns", JSON_ARRAY}, {"repeat", JSON_TRUE}, {"comment", JSON_STRING}, {NULL, 0}};
static const struct key_row turn_keys[] = {{"text", JSON_STRING}, {"calls", JSON_ARRAY},     {"usage", JSON_OBJECT},
                                           {"stop", JSON_STRING}, {"delay_ms", JSON_NUMBER}, {"chunk_ms", JSON_NUMBER},
                                           {"fail", JSON_ARRAY},  {"comment", JSON_STRING},  {NULL, 0}};
static const struct key_row call_keys[] = {{"name", JSON_STRING}, {"id", JSON_STRING}, {"args", JSON_NULL}, {NULL, 0}};
static const struct key_row usage_keys[] = {
    {"input_tokens", JSON_NUMBER}, {"output_tokens", JSON_NUMBER}, {"cached_tokens", JSON_NUMBER}, {NULL, 0}};
static const struct key_row fail_keys[] = {{"status", JSON_NUMBER},     {"retry_after", JSON_NUMBER},
                                           {"message", JSON_STRING},    {"code", JSON_STRING},
                                           {"after_text", JSON_STRING}, {NULL, 0}};
static const char *const type_names[] = {"null",     "true or false", "true or false", "a number",
                                         "a string", "an array",      "an object"};

static bool fits(enum json_type want, const struct json *v)
{
    int64_t n;

    if (want == JSON_NULL) /* of args: two are taken */
        return v->type == JSON_OBJECT || v->type == JSON_STRING;
    if (want == JSON_TRUE)
        return v->type == JSON_TRUE || v->type == JSON_FALSE;
    return v->type == want && (want != JSON_NUMBER || !json_int(v, &n) || n >= 0);
}

/* `where` says which object it is, for people. */
static enum tide_code check_keys(const struct json *object, const struct key_row *rows, const char *where,
                                 struct tide_err *err)
{
    if (object->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "%s is no object", where);
    for (const struct json *m = object->first; m; m = m->next) {
        const struct key_row *row = rows;

        while (row->name && !json_key_eq(m, str_from(row->name)))
            row++;
        if (!row->name)
            return tide_fail(err, TIDE_INVALID, "%s has an unknown key '%.*s'", where, STR_ARG(m->key));
        if (!fits(row->type, m))
            return tide_fail(err, TIDE_INVALID, "%s: '%s' must be %s", where, row->name,
                             row->type == JSON_NULL ? "an object or a string" : type_names[row->type]);
    }
    return TIDE_OK;
}

static enum tide_code check_call(const struct json *call, int64_t turn, int64_t i, struct tide_err *err)
{
    const struct json *name;
    char where[64];

    snprintf(where, sizeof where, "turn %lld: call %lld", (long long)turn, (long long)i);
    if (check_keys(call, call_keys, where, err))
        return err->code;
    name = json_get(call, STR("name"));
    return name && name->raw.len ? TIDE_OK : tide_fail(err, TIDE_INVALID, "%s has no name", where);
}

static enum tide_code check_fail(const struct json *fail, int64_t turn, int64_t i, struct tide_err *err)
{
    int64_t status;
    char where[64];

    snprintf(where, sizeof where, "turn %lld: fail %lld", (long long)turn, (long long)i);
    if (fail->type == JSON_NULL)
        return TIDE_OK;
    if (check_keys(fail, fail_keys, where, err))
        return err->code;
    status = json_get_int(fail, STR("status"), 0);
    if (json_get(fail, STR("code")) || (status >= 300 && status <= 599))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "%s needs a status from 300 to 599 or a code", where);
}

typedef enum tide_code check_fn(const struct json *item, int64_t turn, int64_t i, struct tide_err *err);

static enum tide_code check_list(const struct json *list, int64_t turn, check_fn *check, struct tide_err *err)
{
    int64_t i = 1;

    for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
        if (check(item, turn, i++, err))
            return err->code;
    }
    return TIDE_OK;
}

static const struct {
    const char *name;
    enum model_stop stop;
} stops[] = {{"end", STOP_END}, {"tools", STOP_TOOLS}, {"length", STOP_LENGTH}, {"refused", STOP_REFUSED}};

static bool find_stop(struct str name, enum model_stop *ret)
{
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (str_eq(name, str_from(stops[i].name))) {
            *ret = stops[i].stop;
            return true;
        }
    }
    return false;
}

static enum tide_code check_turn(const struct json *t, int64_t turn, struct tide_err *err)
{
    const struct json *usage, *stop;
    enum model_stop unused;
    char where[40];

    snprintf(where, sizeof where, "turn %lld", (long long)turn);
    if (check_keys(t, turn_keys, where, err))
        return err->code;
    usage = json_get(t, STR("usage"));
    stop = json_get(t, STR("stop"));
    if (stop && !find_stop(stop->raw, &unused))
        return tide_fail(err, TIDE_INVALID, "%s: 'stop' must be end, tools, length or refused", where);
    snprintf(where, sizeof where, "turn %lld: usage", (long long)turn);
    if (usage && check_keys(usage, usage_keys, where, err))
        return err->code;
    return check_list(json_get(t, STR("calls")), turn, check_call, err)
               ? err->code
               : check_list(json_get(t, STR("fail")), turn, check_fail, err);
}

static enum tide_code take_turns(struct script *s, const struct json *root, struct tide_err *err)
{
    const struct json *turns;

    if (check_keys(root, script_keys, "it", err))
        return err->code;
    turns = json_get(root, STR("turns"));
    if (!turns || turns->count == 0)
        return tide_fail(err, TIDE_INVALID, "it has no turns");
    s->turns = arena_alloc(&s->arena, turns->count * sizeof *s->turns);
    for (const struct json *t = turns->first; t; t = t->next) {
        if (check_turn(t, s->n_turns + 1, err))
            return err->code;
        s->turns[s->n_turns++] = t;
    }
    s->repeat = json_get_bool(root, STR("repeat"), false);
    return TIDE_OK;
}

enum tide_code script_open(const char *path, struct script **ret_script, struct tide_err *err)
{
    struct json *root = NULL;
    struct script *s;

    ERR_LOCAL(err);
    if (!path || !*path)
        return tide_fail(err, TIDE_INVALID, "the script provider needs a file to answer from (config: script)");
    s = mem_zero(sizeof *s);
    s->path = mem_dup(str_from(path));
    s->text = (struct buf)BUF_INIT(SCRIPT_MAX_BYTES);
    if (load(path, &s->text, err))
        goto failed;
    if (json_parse(&s->arena, buf_view(&s->text), NULL, &root, NULL, err) || take_turns(s, root, err)) {
        tide_wrap(err, "script %s", path);
        goto failed;
    }
    *ret_script = s;
    return TIDE_OK;
failed:
    script_free(s);
    return err->code;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    arena_done(&s->arena);
    buf_done(&s->text);
    free(s->path);
    free(s);
}

/* ---- rendering ----------------------------------------------------------------------------------------------------- */

static void render_message(struct json_out *o, const struct model_message *m)
{
    static const char *const roles[] = {"user", "assistant", "tool"};

    json_out_begin(o, '{');
    json_out_kstr(o, STR("role"), str_from(roles[m->role]));
    if (m->role == ROLE_TOOL)
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

static int64_t count_answers(const struct model_request *request)
{
    int64_t n = 0;

    for (size_t i = 0; i < request->n_messages; i++)
        n += request->messages[i].role == ROLE_ASSISTANT;
    return n;
}

static void render(const struct provider *p, const struct model_request *request, struct buf *out)
{
    struct json_out o = json_out_to(out);

    (void)p;
    json_out_begin(&o, '{');
    json_out_kint(&o, STR("turn"), count_answers(request));
    json_out_kstr(&o, STR("model"), request->model);
    json_out_kint(&o, STR("max_tokens"), request->max_tokens);
    json_out_kstr(&o, STR("system"), request->system);
    json_out_kraw(&o, STR("tools"), request->tools.len ? request->tools : STR("[]"));
    json_out_key(&o, STR("messages"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < request->n_messages; i++)
        render_message(&o, &request->messages[i]);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
}

/* ---- answering ----------------------------------------------------------------------------------------------------- */

static bool turn_of(struct str body, int64_t *ret_turn)
{
    static const struct str head = {"{\"turn\":", 8};
    const char *comma;

    if (!str_starts(body, head))
        return false;
    comma = memchr(body.ptr + head.len, ',', body.len - head.len);
    return comma && str_to_int64((struct str){body.ptr + head.len, (size_t)(comma - body.ptr) - head.len}, ret_turn) &&
           *ret_turn >= 0;
}

static const struct json *find_turn(const struct script *s, struct str body, int64_t *ret_turn, struct model_fault *f)
{
    if (!turn_of(body, ret_turn)) {
        fault_set(f, "bad_request", 0, "the request is not one that this provider rendered");
        return NULL;
    }
    if (*ret_turn < s->n_turns || s->repeat)
        return s->turns[*ret_turn % s->n_turns];
    fault_set(f, "bad_request", 0, "%.100s has %lld turns, and turn %lld was asked for; add one, or \"repeat\": true",
              s->path, (long long)s->n_turns, (long long)*ret_turn + 1);
    return NULL;
}

/* False: given up, *f says so. */
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

static size_t word_len(struct str s)
{
    const char *space = memchr(s.ptr, ' ', s.len);

    return space ? (size_t)(space - s.ptr) + 1 : s.len;
}

static bool speak(const struct model_listener *l, struct str text, int64_t chunk_ms, struct model_fault *f)
{
    while (text.len > 0) {
        size_t n = chunk_ms > 0 ? word_len(text) : text.len;

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
    struct said said = {.message = arena_dup(&a, json_get_text(&a, fail, STR("message")))};
    int status = (int)json_get_int(fail, STR("status"), 0);

    if (said.message.len == 0)
        said.message = STR("the script says so");
    if (!speak(l, text, 0, f)) {
        arena_done(&a);
        return;
    }
    if (code.len)
        fault_set(f, arena_dup(&a, code).ptr, status, "%.*s", STR_ARG(said.message));
    else
        fault_said(f, status, &said);
    if (after)
        f->retry_after_ms = (int64_t)(strtod(arena_dup(&a, after->raw).ptr, NULL) * 1000);
    arena_done(&a);
}

static struct str args_of(struct model_answer *a, const struct json *args)
{
    struct str text = !args ? STR("{}") : args->type == JSON_STRING ? json_text(&a->arena, args) : args->raw;

    return model_args(&a->arena, text, &a->replaced);
}

static void take_calls(struct model_answer *a, const struct json *calls, int64_t turn)
{
    if (!calls || calls->count == 0)
        return;
    a->calls = arena_zero(&a->arena, calls->count * sizeof *a->calls);
    for (const struct json *c = calls->first; c; c = c->next) {
        struct model_call *call = &a->calls[a->n_calls++];

        call->id = json_get_text(&a->arena, c, STR("id"));
        if (call->id.len == 0)
            call->id = str_from(arena_printf(&a->arena, "call_%lld_%zu", (long long)turn + 1, a->n_calls));
        else
            call->id = arena_dup(&a->arena, call->id);
        call->name = arena_dup(&a->arena, json_get_text(&a->arena, c, STR("name")));
        call->args = args_of(a, json_get(c, STR("args")));
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
        find_stop(stop->raw, &a->stop);
}

static bool call(struct provider *p, struct str body, int attempt, const struct model_listener *l,
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
    if (!speak(l, a.text, json_get_int(turn, STR("chunk_ms"), 0), f)) {
        model_answer_done(&a);
        return false;
    }
    *ret_answer = a;
    return true;
}

const struct provider_ops provider_script = {.type = "script", .render = render, .call = call};
