/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits and sleeps. Parking is one append: the token, run.waiting, and the lease given back; after it nothing of the run is
 * left but the log. The answer comes by run.resumed; a program that is executed again finds it under the wait's key.
 * Also here: what a run remembers (set, get) and marks (checkpoint).
 */
#include <inttypes.h>

#include "base/log.h"
#include "base/invariant.h"
#include "base/timefmt.h"
#include "base/yes_no.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/token.h"

#define DEFAULT_MAX 4096 /* bytes of a default: it is part of the state, which stays small */

/* What happens at the deadline, checked; null in JSON is one, of an approval too: it was not given. */
static enum tide_code check_deadline(struct tide_wait_options *opt, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    if (!opt->on_deadline && opt->default_answer)
        opt->on_deadline = TIDE_ON_DEADLINE_DEFAULT;
    if (!opt->on_deadline)
        return TIDE_OK;
    if ((unsigned)opt->on_deadline > TIDE_ON_DEADLINE_FAIL)
        return tide_fail(err, TIDE_INVALID, "wait '%s': what happens at the deadline is interrupt, default or fail",
                         opt->name);
    if (!opt->deadline_ms)
        return tide_fail(err, TIDE_INVALID, "wait '%s': %s needs a deadline", opt->name,
                         opt->default_answer ? "a default" : "what happens at the deadline");
    if ((opt->on_deadline == TIDE_ON_DEADLINE_DEFAULT) != (opt->default_answer != NULL))
        return tide_fail(err, TIDE_INVALID, "wait '%s': '%s' at the deadline %s default answer: %s", opt->name,
                         tide_on_deadline_name(opt->on_deadline), opt->default_answer ? "takes no" : "needs a",
                         opt->default_answer ? "omit it" : "give one");
    if (opt->default_answer && strlen(opt->default_answer) > DEFAULT_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "wait '%s': a default has %d bytes at most", opt->name, DEFAULT_MAX);
    if (opt->default_answer && json_parse(&a, str_from(opt->default_answer), NULL, &v, NULL, err))
        return tide_wrap(err, "wait '%s': the default", opt->name);
    return v && opt->kind == TIDE_WAIT_APPROVAL && v->type != JSON_NULL ? yes_no_check(&a, v, err) : TIDE_OK;
}

/* Only of a wait that is still to come: the deadline of one that was answered may have passed since. */
static enum tide_code check_wait(struct tide_run *r, struct tide_wait_options *opt, struct tide_err *err)
{
    int64_t now = env_now_ms(r->s->store->env);

    if (opt->kind != TIDE_WAIT_INPUT && opt->kind != TIDE_WAIT_APPROVAL && opt->kind != TIDE_WAIT_TOOL_RESULT)
        return tide_fail(err, TIDE_INVALID, "'%s' is not something to wait for: use input, approval or tool_result",
                         tide_wait_kind_name(opt->kind));
    if (opt->question && !str_is_utf8(str_from(opt->question), NULL))
        return tide_fail(err, TIDE_INVALID, "the question is not valid UTF-8");
    if ((opt->deadline_ms && opt->deadline_ms <= now) || (opt->expires_ms && opt->expires_ms <= now))
        return tide_fail(err, TIDE_INVALID, "the %s of wait '%s' has passed: give one in the future",
                         opt->deadline_ms && opt->deadline_ms <= now ? "deadline" : "expiry of the token", opt->name);
    if (r->active.live)
        return tide_fail(err, TIDE_INVALID, "wait '%s': a step is running: end it first", opt->name);
    return check_deadline(opt, err);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

struct answer {
    const char *member;
    struct buf text;
    struct arena arena;
};

static int take_answer(void *arg, const struct event *ev)
{
    struct answer *a = arg;
    const struct json *v;
    struct json *body;

    if (json_parse(&a->arena, ev->body, NULL, &body, NULL, NULL))
        return 1;
    v = json_get(body, str_from(a->member));
    if (v)
        json_write(&a->text, v);
    return 1;
}

enum tide_code run_read_member(struct tide_session *s, int64_t seq, const char *member, struct tide_text *ret,
                               struct tide_err *err)
{
    struct answer a = {member, BUF_INIT(SIZE_MAX / 4), ARENA_INIT};
    enum tide_code code = seq > s->head.last_seq ? session_sync(s, err) : TIDE_OK;

    code = code ? code : session_read(s, &s->head, seq, seq, take_answer, &a, err);
    arena_done(&a.arena);
    if (code) {
        buf_done(&a.text);
        return code;
    }
    if (!a.text.len)
        buf_add_str(&a.text, STR("null"));
    ret->len = a.text.len;
    ret->ptr = buf_take(&a.text);
    return TIDE_OK;
}

enum tide_code wait_answer(struct tide_run *r, const char *name, struct tide_text *ret_answer, struct tide_err *err)
{
    AUTO(buf_done) struct buf key = BUF_INIT(512);
    const struct recorded *m;
    enum tide_code code = run_sure(r, err);

    code = code ? code : run_name_check(r, "wait", name, err);
    if (code)
        return code;
    buf_addf(&key, "%s/%s/1", r->chain_id, name);
    code = chain_find(r->s, &r->done, &r->done.waits, buf_view(&key), &m, err);
    if (code)
        return code;
    if (!m || m->state != RECORDED_ANSWERED)
        return tide_fail(err, TIDE_NOT_FOUND, "wait '%s' has no answer yet", name);
    return run_read_member(r->s, m->seq, "input", ret_answer, err);
}

enum tide_code wait_was_defaulted(struct tide_run *r, const char *name, bool *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf key = BUF_INIT(512);
    struct tide_text by = {NULL, 0};
    const struct recorded *m;
    enum tide_code code;

    *ret = false;
    buf_addf(&key, "%s/%s/1", r->chain_id, name);
    code = chain_find(r->s, &r->done, &r->done.waits, buf_view(&key), &m, err);
    if (code || !m || m->state != RECORDED_ANSWERED)
        return code;
    code = run_read_member(r->s, m->seq, "by", &by, err);
    *ret = !code && strcmp(by.ptr, "\"" SETTLED_BY "\"") == 0;
    tide_text_done(&by);
    return code;
}

/* Parked, nothing of it is left but the log. */
static bool is_all_stored(const struct tide_run *r)
{
    return !r->active.live && !r->queue.n && !r->backlog.n;
}

void wait_draft_deadline(struct draft *d, enum tide_on_deadline on_deadline, const char *default_answer)
{
    if (on_deadline)
        draft_text(d, "on_deadline", tide_on_deadline_name(on_deadline));
    if (default_answer)
        json_out_kraw(&d->out, STR("default"), str_from(default_answer));
}

/* ---- parking ----------------------------------------------------------------------------------------------------- */

static void draft_waiting(struct tide_run *r, struct draft *d, const struct tide_wait_options *opt, const char *key,
                          const char *token_id, int64_t due_ms)
{
    draft_open(d, "run.waiting");
    draft_text(d, "run_id", r->id);
    draft_text(d, "wait_name", opt->name);
    draft_text(d, "wait_kind", tide_wait_kind_name(opt->kind));
    draft_text(d, "wait_key", key);
    draft_text(d, "resume_token_id", token_id);
    draft_time(d, "deadline_at", opt->deadline_ms);
    draft_time(d, "due_at", due_ms);
    draft_text(d, "question", opt->question);
    wait_draft_deadline(d, opt->on_deadline, opt->default_answer);
    draft_close(d);
}

static void draft_resumed(struct tide_run *r, struct draft *d, const char *by, const struct tide_text *input)
{
    struct json_out *o = draft_open(d, "run.resumed");

    draft_text(d, "run_id", r->id);
    draft_text(d, "by", by);
    if (input)
        json_out_kraw(o, STR("input"), (struct str){input->ptr, input->len});
    draft_close(d);
}

static void note_wait(struct tide_run *r, const char *key, enum recorded_state state, int64_t due_ms)
{
    struct recorded *m = chain_recorded(&r->done.waits, str_from(key));

    INVARIANT(chain_is_read(&r->done)); /* nothing older is to be read over it */
    m->state = state;
    m->seq = r->appended_seq;
    m->due_ms = due_ms;
}

/* A message that waits in the queue answers at once: asked, answered and taken in one append. */
static enum tide_code take_message(struct tide_run *r, const struct tide_wait_options *opt, const char *key,
                                   struct tide_text *ret_answer, struct tide_err *err)
{
    struct map_entry *first = map_next(&r->s->state->ledger.queue, NULL);
    AUTO(mem_freep) char *id = mem_dup(map_key(first)); /* reading may bring the state up to date, and take it away */
    struct tide_text message = {NULL, 0};
    struct draft d = DRAFT_INIT;
    enum tide_code code = run_read_member(r->s, *(int64_t *)first->value, "content", &message, err);

    if (!code) {
        draft_waiting(r, &d, opt, key, NULL, 0);
        draft_resumed(r, &d, "queue", &message);
        draft_open(&d, "queue.taken");
        draft_text(&d, "queue_id", id);
        draft_close(&d);
        code = run_append(r, 0, &d, false, err);
    }
    draft_done(&d);
    if (code) {
        tide_text_done(&message);
        return code;
    }
    r->appended_seq--; /* run.resumed holds the answer */
    note_wait(r, key, RECORDED_ANSWERED, 0);
    *ret_answer = message;
    return TIDE_OK;
}

static enum tide_code park_run(struct tide_run *r, const struct tide_wait_options *opt, const char *key,
                               char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct token token;
    enum tide_code code;

    token_make(r->s->store, &token);
    token_minted(&d, &token, r->id, tide_wait_kind_name(opt->kind),
                 opt->expires_ms ? opt->expires_ms : opt->deadline_ms);
    draft_waiting(r, &d, opt, key, token.id, 0);
    code = run_append(r, TIDE_APPEND_RELEASE, &d, false, err);
    draft_done(&d);
    if (!code) {
        INVARIANT(is_all_stored(r));
        r->over = true;
        log_write(TIDE_LOG_INFO, "run waits", RUN_FIELDS(r), log_text("for", tide_wait_kind_name(opt->kind)),
                  log_text("name", opt->name));
        memcpy(ret_token, token.text, sizeof token.text);
        code = tide_fail(err, TIDE_WAITING, "it waits for %s%s%s", tide_wait_kind_name(opt->kind),
                         opt->question ? ": " : "", opt->question ? opt->question : "");
    }
    token_forget(&token);
    return code;
}

enum tide_code tide_run_wait(tide_run *r, const struct tide_wait_options *given, struct tide_text *ret_answer,
                             char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err)
{
    AUTO(mem_freep) char *key = NULL;
    struct tide_wait_options own;
    struct tide_wait_options *opt = &own;
    const struct recorded *m;
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_wait_options, given, err);
    code = code ? code : run_sure(r, err);
    code = code ? code : run_name_check(r, "wait", opt->name, err);
    if (code)
        return code;
    key = run_key(r, "wait", NULL, opt->name);
    code = chain_find(r->s, &r->done, &r->done.waits, str_from(key), &m, err);
    if (code || (m && m->state == RECORDED_ANSWERED)) {
        code = code ? code : run_read_member(r->s, m->seq, "input", ret_answer, err);
        if (code)
            run_unuse(r, "wait", NULL, opt->name);
        return code;
    }
    code = check_wait(r, opt, err);
    code = code ? code : run_settle(r, err);
    do { /* a message may come in between: then it is the answer */
        if (code == TIDE_CONFLICT || (!code && r->s->stale))
            code = session_sync(r->s, err);
        if (!code && opt->kind == TIDE_WAIT_INPUT && r->s->state->ledger.queue.live)
            code = take_message(r, opt, key, ret_answer, err);
        else if (!code)
            code = park_run(r, opt, key, ret_token, err);
    } while (code == TIDE_CONFLICT);
    if (code && code != TIDE_WAITING)
        run_unuse(r, "wait", NULL, opt->name);
    return code;
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

/* Due already: the sleep is recorded as begun and over, so that it stays so. */
static enum tide_code sleep_over(struct tide_run *r, const struct tide_wait_options *opt, const char *key,
                                 int64_t due_ms, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    draft_waiting(r, &d, opt, key, NULL, due_ms);
    draft_resumed(r, &d, "clock", NULL);
    code = run_append(r, TIDE_APPEND_ANY, &d, false, err);
    draft_done(&d);
    if (!code)
        note_wait(r, key, RECORDED_ANSWERED, due_ms);
    return code;
}

static enum tide_code sleep_park(struct tide_run *r, const struct tide_wait_options *opt, const char *key,
                                 int64_t due_ms, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    char when[TIME_TEXT_SIZE], people[TIME_PEOPLE_SIZE];
    enum tide_code code;

    draft_waiting(r, &d, opt, key, NULL, due_ms);
    code = run_append(r, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, &d, false, err);
    draft_done(&d);
    if (code)
        return code;
    INVARIANT(is_all_stored(r));
    r->over = true;
    time_format(when, due_ms);
    log_write(TIDE_LOG_INFO, "run sleeps", RUN_FIELDS(r), log_text("until", when));
    return tide_fail(err, TIDE_WAITING, "it sleeps until %s", time_people(people, due_ms));
}

enum tide_code tide_run_sleep(tide_run *r, const char *name, int64_t due_ms, int64_t *ret_due_ms, struct tide_err *err)
{
    const struct tide_wait_options opt = {.size = sizeof opt, .name = name, .kind = TIDE_WAIT_TIMER};
    AUTO(mem_freep) char *key = NULL;
    const struct recorded *m;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_sure(r, err);
    code = code ? code : run_name_check(r, "sleep", name, err);
    if (!code && r->active.live)
        code = tide_fail(err, TIDE_INVALID, "sleep '%s': a step is running: end it first", name);
    if (code)
        return code;
    key = run_key(r, "wait", NULL, name);
    code = chain_find(r->s, &r->done, &r->done.waits, str_from(key), &m, err);
    if (code)
        run_unuse(r, "wait", NULL, name);
    if (code || (m && m->state == RECORDED_ANSWERED))
        return code;
    if (m && m->due_ms) /* it was begun in an earlier run: due then, not anew */
        due_ms = m->due_ms;
    if (ret_due_ms)
        *ret_due_ms = due_ms;
    code = due_ms <= env_now_ms(r->s->store->env) ? sleep_over(r, &opt, key, due_ms, err)
                                                  : sleep_park(r, &opt, key, due_ms, err);
    if (code && code != TIDE_WAITING)
        run_unuse(r, "wait", NULL, name);
    return code;
}

/* ---- memory and marks ---------------------------------------------------------------------------------------------- */

static const char *memory_of(struct tide_run *r, const char *key)
{
    const char *value = map_get(&r->overlay, str_from(key));

    return value ? value : map_get(&r->s->state->content.memory, str_from(key));
}

enum tide_code tide_run_set(tide_run *r, const char *key, const char *value, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct json_out *o;
    const char *now;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_usable(r, err);
    if (!code && (!key || !key[0] || strlen(key) > 256 || !str_is_utf8(str_from(key), NULL)))
        code = tide_fail(err, TIDE_INVALID, "a key has 1 to 256 bytes of UTF-8");
    if (!code && r->s->stale)
        code = session_sync(r->s, err);
    if (code)
        return code;
    o = draft_open(&d, "memory.set");
    json_out_key(o, STR("values"));
    json_out_begin(o, '{');
    code = draft_value(&d, key, value, err);
    json_out_end(o, '}');
    draft_close(&d);
    now = code ? NULL : memory_of(r, key);
    if (!code && !(now && value && strcmp(now, value) == 0))
        code = run_append(r, TIDE_APPEND_ANY, &d, true, err);
    if (!code && r->backlog.n)
        map_set_text(&r->overlay, str_from(key), str_from(value ? value : "null"));
    draft_done(&d);
    return code;
}

enum tide_code tide_run_get(tide_run *r, const char *key, struct tide_text *ret_value, struct tide_err *err)
{
    const char *value;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_usable(r, err);
    if (!code && r->s->stale)
        code = session_sync(r->s, err);
    if (code)
        return code;
    value = memory_of(r, key ? key : "");
    if (!value) {
        tide_fail(err, TIDE_NOT_FOUND, "'%s' is not set in session '%s'", key ? key : "", r->s->head.id);
        tide_about(err, TIDE_SUBJECT_KEY, key);
        return tide_about_session(err, r->s->head.id);
    }
    ret_value->len = strlen(value);
    ret_value->ptr = mem_dup(str_from(value));
    return TIDE_OK;
}

enum tide_code tide_run_checkpoint(tide_run *r, enum tide_checkpoint_type type, const char *description,
                                   char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    const struct tide_new_checkpoint in = {
        .size = sizeof in, .type = type ? type : TIDE_CHECKPOINT_SAFE_POINT, .description = description};
    AUTO(mem_freep) char *key = NULL;
    struct draft d = DRAFT_INIT;
    struct buf body = BUF_INIT(1 << 20);
    char id[TIDE_ID_SIZE];
    const char *before;
    enum tide_code code;

    ERR_LOCAL(err);
    code = run_sure(r, err);
    code = code ? code : run_settle(r, err);
    if (code)
        return code;
    key = run_key(r, "checkpoint", NULL, tide_checkpoint_type_name(in.type));
    code = chain_find(r->s, &r->done, &r->done.checkpoints, str_from(key), &before, err);
    if (code) {
        run_unuse(r, "checkpoint", NULL, tide_checkpoint_type_name(in.type));
        return code;
    }
    if (before) {
        snprintf(ret_id, TIDE_ID_SIZE, "%s", before);
        return TIDE_OK;
    }
    code = checkpoint_draft(r->s, &in, key, &body, id, err);
    if (!code) {
        draft_take(&d, &(struct tide_new_event){"checkpoint", buf_cstr(&body), body.len});
        code = run_append(r, TIDE_APPEND_ANY, &d, false, err);
    }
    if (!code) {
        log_write(TIDE_LOG_DEBUG, "checkpoint", RUN_FIELDS(r), log_text("id", id),
                  log_text("type", tide_checkpoint_type_name(in.type)));
        map_set_text(&r->done.checkpoints, str_from(key), str_from(id));
        memcpy(ret_id, id, sizeof id);
    } else {
        checkpoint_log_failed(r->s, in.type, err);
        run_unuse(r, "checkpoint", NULL, tide_checkpoint_type_name(in.type));
    }
    buf_done(&body);
    draft_done(&d);
    return code;
}
