/* SPDX-License-Identifier: Apache-2.0 */
/* What the log holds of a session's runs, for the process that continues with them: the program, its result, the steps of the chain. */
#include "session/run.h"
#include "session/status.h"

/* ---- the program and its result ---- */

static int take_body(void *arg, const struct event *ev)
{
    struct tide_text *text = arg;

    text->ptr = mem_dup(ev->body);
    text->len = ev->body.len;
    return 1;
}

enum tide_code tide_session_get_result(tide_session *s, struct tide_text *ret_json, struct tide_err *err)
{
    int64_t seq;

    ERR_LOCAL(err);
    if ((group_owes(&s->owner) || s->stale) && session_sync(s, err))
        return err->code;
    seq = s->state->ledger.run.end == RUN_OPEN ? 0 : s->state->ledger.run.ended_seq;
    if (!seq)
        return tide_fail_session(err, TIDE_NOT_FOUND, s->head.id, "has no run that has ended");
    return session_read(s, &s->head, seq, seq, take_body, ret_json, err);
}

/* With the command that moves it, as its status has it. */
static enum tide_code refuse_new(const struct tide_session *s, struct tide_err *err)
{
    struct status st;

    status_derive(&st, s->state, false, env_now_ms(s->store->env));
    tide_fail(err, TIDE_NOT_FOUND, "nothing has run in session '%s' yet", s->head.id);
    return st.next_count ? action_hint(err, s->head.id, &st.next[0]) : err->code;
}

enum tide_code tide_session_get_program(tide_session *s, struct tide_text *ret_json, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int64_t seq;

    ERR_LOCAL(err);
    if (group_owes(&s->owner) || s->stale)
        code = session_sync(s, err);
    if (code)
        return code;
    seq = s->state->ledger.program_seq;
    if (!seq && !s->state->ledger.runs)
        return refuse_new(s, err);
    if (!seq)
        return tide_fail_session(err, TIDE_NOT_FOUND, s->head.id,
                                 "has no recorded program: resume it with the program that created it");
    return session_read(s, &s->head, seq, seq, take_body, ret_json, err);
}

/* ---- steps: finished, and those that a person has to settle ---- */

static bool is_unsettled(const struct recorded *m)
{
    return m->once && m->state != RECORDED_COMPLETED;
}

/* A use of this name that must happen once and is not known to have. */
static bool needs_settling(const struct chain *c, const char *name)
{
    char part[160];

    snprintf(part, sizeof part, "/%s/", name);
    for (struct map_entry *e = map_next(&c->steps, NULL); e; e = map_next(&c->steps, e))
        if (is_unsettled(e->value) && strstr(e->key, part))
            return true;
    return false;
}

/* The name in "RUN/NAME/N" and "RUN/KEY OF THE STEP AROUND IT/NAME/N"; it may hold slashes. */
static struct str step_name(const char *key)
{
    const char *name = strchr(key, '/') + 1, *end = strrchr(key, '/'), *slash = strchr(name, '/');

    if (slash != end && slash - name == 32 && strspn(name, "0123456789abcdef") == 32)
        name = slash + 1;
    return (struct str){name, (size_t)(end - name)};
}

static bool is_finished(const struct recorded *m)
{
    return m->state == RECORDED_COMPLETED;
}

/* "'a', 'b' and 3 more"; how many there are. */
static size_t list_steps(const struct chain *c, bool (*wanted)(const struct recorded *m), struct buf *out)
{
    size_t n = 0;

    for (struct map_entry *e = map_next(&c->steps, NULL); e; e = map_next(&c->steps, e)) {
        if (!wanted(e->value) || strchr(e->key, '/') == strrchr(e->key, '/'))
            continue; /* another kind of run has other keys */
        if (++n <= 5)
            buf_addf(out, "%s'%.*s'", out->len ? ", " : "", STR_ARG(step_name(e->key)));
    }
    if (n > 5)
        buf_addf(out, " and %zu more", n - 5);
    return n;
}

static bool may_have_happened(const struct recorded *m)
{
    return m->once && (m->state == RECORDED_STARTED || m->state == RECORDED_UNKNOWN);
}

enum tide_code run_repeated_steps(struct tide_session *s, struct run_steps *ret_finished, struct run_steps *ret_open,
                                  struct tide_err *err)
{
    struct chain c = {0};
    enum tide_code code = chain_load(s, &c, err);

    if (!code) {
        ret_finished->n = list_steps(&c, is_finished, &ret_finished->names);
        ret_open->n = list_steps(&c, may_have_happened, &ret_open->names);
    }
    chain_done(&c);
    return code;
}

enum tide_code run_put_finished(struct tide_session *s, struct json_out *o, const char *member, struct tide_err *err)
{
    struct chain c = {0};
    enum tide_code code = chain_load(s, &c, err);

    json_out_key(o, str_from(member));
    json_out_begin(o, '[');
    for (struct map_entry *e = code ? NULL : map_next(&c.steps, NULL); e; e = map_next(&c.steps, e))
        if (is_finished(e->value) && strchr(e->key, '/') != strrchr(e->key, '/'))
            json_out_str(o, step_name(e->key));
    json_out_end(o, ']');
    chain_done(&c);
    return code;
}

enum tide_code run_open_steps(struct tide_session *s, struct arena *a, const struct run_open_step **ret, size_t *ret_n,
                              struct tide_err *err)
{
    struct chain c = {0};
    enum tide_code code = chain_load(s, &c, err);
    struct run_open_step *all = arena_zero(a, (c.steps.live + 1) * sizeof *all);
    size_t n = 0;

    for (struct map_entry *e = code ? NULL : map_next(&c.steps, NULL); e; e = map_next(&c.steps, e)) {
        bool known = !is_unsettled(e->value) || strchr(e->key, '/') == strrchr(e->key, '/');

        for (size_t i = 0; i < n && !known; i++)
            known = str_eq(step_name(e->key), str_from(all[i].name));
        if (!known)
            all[n++] = (struct run_open_step){.name = arena_dup(a, step_name(e->key)).ptr,
                                              .failed = ((struct recorded *)e->value)->state == RECORDED_FAILED};
    }
    chain_done(&c);
    if (code)
        return code;
    *ret = all;
    *ret_n = n;
    return TIDE_OK;
}

enum tide_code tide_step_find_unsettled(tide_session *s, const char *name, struct tide_err *err)
{
    AUTO(buf_done) struct buf open = BUF_INIT(4096);
    struct chain c = {0};
    enum tide_code code;

    ERR_LOCAL(err);
    code = chain_load(s, &c, err);
    if (!code && !needs_settling(&c, name)) {
        list_steps(&c, is_unsettled, &open); /* those that could have been meant */
        code = open.len ? tide_fail(err, TIDE_NOT_FOUND,
                                    "no step '%.60s' that must happen once has failed or was interrupted: these are "
                                    "open: %s",
                                    name, buf_cstr(&open))
                        : tide_fail(err, TIDE_NOT_FOUND,
                                    "no step '%.128s' that must happen once has failed or was "
                                    "interrupted",
                                    name);
        if (!open.len)
            tide_hint(err, TIDE_ACTION_SHOW_TIMELINE, s->head.id);
    }
    chain_done(&c);
    return code;
}
