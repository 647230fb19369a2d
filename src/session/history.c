/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing what the past means without changing the past: rollback and fork. Both only say which spans of logs the content
 * is made of; no event is removed or copied.
 */
#include <inttypes.h>

#include "session/session_file.h"
#include "session/trust.h"

/* Finished effects that must happen once, among the events that a rollback would cut. */
struct finished {
    struct map once;  /* call_id -> tool: begun in the part that is cut, or open where it begins */
    struct map told;  /* call_id of those that are named */
    struct map begun; /* of these, begun in the part that is cut and not ended: nobody knows whether they happened */
    struct buf named;
    size_t n;
    struct arena parse;
};

static void name_effect(struct finished *f, const char *tool, struct str call)
{
    if (map_get(&f->told, call))
        return;
    map_put(&f->told, call, f);
    if (f->n++ < 3)
        buf_addf(&f->named, "%s%s (call %.*s)", f->n > 1 ? ", " : "", tool[0] ? tool : "a tool", STR_ARG(call));
}

static int look_for_effect(void *arg, const struct event *ev)
{
    struct finished *f = arg;
    struct json *body;
    struct str call, effect;
    const char *tool;

    if (!str_starts(ev->kind, STR("tool.")))
        return 0;
    arena_reset(&f->parse);
    if (json_parse(&f->parse, ev->body, NULL, &body, NULL, NULL))
        return 0;
    call = json_get_text(&f->parse, body, STR("call_id"));
    effect = json_get_text(&f->parse, body, STR("effect"));
    if (str_eq(ev->kind, STR("tool.started"))) {
        if (!effect.len || str_eq(effect, STR("once"))) {
            map_set_text(&f->once, call, json_get_text(&f->parse, body, STR("tool")));
            map_set_text(&f->begun, call, json_get_text(&f->parse, body, STR("tool")));
        }
        return 0;
    }
    map_drop(&f->begun, call);
    tool = map_get(&f->once, call);
    if (tool && !str_eq(ev->kind, STR("tool.failed")) && !str_eq(ev->kind, STR("tool.withdrawn")))
        name_effect(f, tool, call);
    return 0;
}

/* Those that were open at to_seq may have finished in what is cut. */
static enum tide_code open_effects(struct tide_session *s, int64_t to_seq, struct finished *f, struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    const struct state *then;
    enum tide_code code = session_state(s, to_seq, &own, &then, err);

    if (code)
        return code;
    for (struct map_entry *e = map_next(&then->ledger.effects, NULL); e; e = map_next(&then->ledger.effects, e)) {
        const struct effect *effect = e->value;

        if (str_eq(str_from(effect->effect), STR("once")))
            map_set_text(&f->once, map_key(e), str_from(effect->tool));
    }
    return TIDE_OK;
}

static enum tide_code refuse_effects(struct tide_session *s, int64_t to_seq, struct buf *ret_names,
                                     struct tide_err *err)
{
    struct finished f = {.named = BUF_INIT(200), .parse = ARENA_INIT};
    enum tide_code code = open_effects(s, to_seq, &f, err);

    if (!code) /* of a fork also what it shares with its parents */
        code = read_through(s->store, &s->head, to_seq + 1, s->head.last_seq, look_for_effect, &f, err);
    for (struct map_entry *e = map_next(&f.begun, NULL); e; e = map_next(&f.begun, e))
        name_effect(&f, e->value, map_key(e));
    if (!code && f.n && ret_names)
        buf_addf(ret_names, "%s%s", buf_cstr(&f.named), f.n > 3 ? ", …" : "");
    if (!code && f.n) {
        tide_fail(err, TIDE_EFFECTS, "rolling back to %" PRId64 " would undo what must happen once: %s%s", to_seq,
                  buf_cstr(&f.named), f.n > 3 ? ", …" : "");
        tide_hint_with(err, TIDE_ACTION_REPEAT, s->head.id, "\"reuse_effects\":true");
        code = tide_hint_with(err, TIDE_ACTION_REPEAT, s->head.id, "\"redo_effects\":true");
    }
    map_done(&f.once, free);
    map_done(&f.begun, free);
    map_done(&f.told, NULL);
    buf_done(&f.named);
    arena_done(&f.parse);
    return code;
}

enum tide_code rollback_check(struct tide_session *s, int64_t to_seq, unsigned flags, struct buf *ret_names,
                              struct tide_err *err)
{
    if (to_seq < 1 || to_seq > s->state->seq)
        return tide_fail(err, TIDE_INVALID, "cannot roll back to seq %" PRId64 ": session '%s' has 1 to %" PRId64,
                         to_seq, s->head.id, s->state->seq);
    if (to_seq < s->state->ledger.trusted_seq) {
        tide_fail_session(err, TIDE_UNTRUSTED, s->head.id,
                          "was trusted as it was at seq %" PRId64 ", not as it was at %" PRId64,
                          s->state->ledger.trusted_seq, to_seq);
        return tide_hint_with(err, TIDE_ACTION_FORK, s->head.id, "\"at\":%" PRId64, to_seq);
    }
    if (flags & TIDE_ROLLBACK_REUSE_EFFECTS && flags & TIDE_ROLLBACK_REDO_EFFECTS)
        return tide_fail(err, TIDE_INVALID, "finished effects are either reused or redone, not both");
    if (flags & (TIDE_ROLLBACK_REUSE_EFFECTS | TIDE_ROLLBACK_REDO_EFFECTS))
        return TIDE_OK;
    return refuse_effects(s, to_seq, ret_names, err);
}

static enum tide_code roll_back_once(struct tide_session *s, int64_t to_seq, unsigned flags, const char *reason,
                                     struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT(1 << 20);
    struct json_out o = json_out_to(&body);
    struct tide_new_event ev = {"session.rolled_back", NULL, 0};
    enum tide_code code = session_sync(s, err);

    code = code ? code : rollback_check(s, to_seq, flags, NULL, err);
    if (code)
        return code;
    json_out_begin(&o, '{');
    json_out_kint(&o, STR("to_seq"), to_seq);
    json_out_kstr_opt(&o, STR("reason"), str_from(reason));
    if (flags)
        json_out_kstr(&o, STR("effects"), flags & TIDE_ROLLBACK_REUSE_EFFECTS ? STR("reuse") : STR("redo"));
    json_out_end(&o, '}');
    ev.body = buf_cstr(&body);
    ev.body_len = body.len;
    return body.failed ? tide_fail(err, TIDE_TOO_BIG, "the reason is too long")
                       : session_append(s, 0, &ev, 1, NULL, err);
}

enum tide_code tide_session_rollback(tide_session *s, int64_t to_seq, unsigned flags, const char *reason,
                                     struct tide_err *err)
{
    struct tide_err later;
    enum tide_code code;

    ERR_LOCAL(err);
    do /* who comes between (the recovery of a run that was cut) makes it look again */
        code = roll_back_once(s, to_seq, flags, reason, err);
    while (code == TIDE_CONFLICT);
    if (!code)
        (void)!session_sync(s, &later); /* it is on disk: what cannot be read now is read when it is asked for */
    return code;
}

/* The fork's session.created: the caller's fields and where it comes from. */
static enum tide_code fork_fields(struct arena *a, const char *fields, const char *parent, int64_t seq, struct buf *out,
                                  struct tide_err *err)
{
    struct json_out o = json_out_to(out);
    struct json *given = NULL;
    enum tide_code code = fields ? json_parse(a, str_from(fields), NULL, &given, NULL, err) : TIDE_OK;

    if (code)
        return tide_wrap(err, "the fork's fields are not valid JSON");
    if (given && given->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "the fork's fields must be a JSON object");
    json_out_begin(&o, '{');
    for (const struct json *m = given ? given->first : NULL; m; m = m->next) {
        if (!json_key_eq(m, STR("parent")))
            json_out_kraw(&o, json_key_text(a, m), json_source(m));
    }
    json_out_key(&o, STR("parent"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(parent));
    json_out_kint(&o, STR("seq"), seq);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    return TIDE_OK;
}

/* A seq of the past that a fork shares belongs to the session that wrote it. */
static enum tide_code find_writer(struct store *store, int64_t seq, struct head *h, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    while (!code && seq < h->first_seq && h->parent_id[0]) {
        struct head parent;

        code = history_parent(store, h, &parent, err);
        *h = code ? *h : parent;
    }
    return code;
}

enum tide_code tide_session_fork(tide_store *store, const char *id, int64_t seq, const char *fork_id,
                                 const char *fields, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    struct store *s = store_of(store);
    struct buf body = BUF_INIT(s->max_record_bytes);
    struct tide_new_event created = {"session.created", NULL, 0};
    struct arena a = ARENA_INIT;
    char whole[TIDE_ID_SIZE], made[TIDE_ID_SIZE];
    struct head h;
    struct event ev;
    struct batch *b;
    bool ours = false;
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_resolve(s, str_from(id), whole, err);
    code = code ? code : store_head(s, str_from(whole), &h, err);
    if (!code && (seq < 0 || seq > h.last_seq))
        code = tide_fail(err, TIDE_INVALID, "cannot fork at seq %" PRId64 ": session '%s' has 1 to %" PRId64, seq,
                         whole, h.last_seq);
    seq = seq ? seq : h.last_seq;
    if (!code && fork_id && fork_id[0] && !str_is_id(str_from(fork_id)))
        code = tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-', not '-' first");
    code = code ? code : find_writer(s, seq, &h, err);
    code = code ? code : fork_depth_check(s, &h, err);
    code = code ? code : trust_reaches(s, &h, seq, &ours, err);
    code = code ? code : history_prove_own(s, &h, seq, err); /* the rest when something is written to the fork */
    code = code ? code : fork_fields(&a, fields, h.id, seq, &body, err);
    if (!code) {
        created.body = buf_cstr(&body);
        created.body_len = body.len;
        code = event_check(s, &a, &created, true, &ev, NULL, err);
    }
    if (!code) {
        if (fork_id && fork_id[0])
            snprintf(made, sizeof made, "%s", fork_id);
        else
            session_make_id(s, "sess", made);
        b = batch_new(str_from(made), BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE, &ev, 1, STR(""), STR(""));
        b->expect_seq = STORE_ANY_SEQ;
        memcpy(b->parent, h.id, sizeof b->parent);
        b->parent_seq = seq;
        b->flags |= ours ? BATCH_VOUCH : 0u; /* of what came from elsewhere a fork has come from there, too */
        code = store_write(s, b, NULL, err);
    }
    buf_done(&body);
    arena_done(&a);
    if (code)
        return tide_wrap(err, "fork");
    if (!h.parent_id[0]) /* of a fork of forks all of them would be read: its first write does it */
        session_file_renew(s, made);
    memcpy(ret_id, made, TIDE_ID_SIZE);
    return TIDE_OK;
}
