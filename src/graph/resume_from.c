/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where a graph continues: where it stands, or a checkpoint. Checkpoints are found even where the log is damaged: those
 * before the damage can be read, and one of them is better than nothing, as long as it is said aloud.
 */
#include <inttypes.h>

#include "graph/resume.h"

/* ---- checkpoints, whatever state the log is in ---- */

struct mark_at {
    char id[TIDE_ID_SIZE];
    int64_t seq;
    bool can_resume;
};

struct found {
    struct mark_at *at; /* newest first */
    size_t n, cap;
    struct map deleted;
    struct arena arena;
};

static void found_done(struct found *f)
{
    free(f->at);
    map_done(&f->deleted, NULL);
    arena_done(&f->arena);
}

static int take_deleted(void *arg, const struct event *ev)
{
    struct found *f = arg;
    const struct json *ids;
    struct json *body;

    if (json_parse(&f->arena, arena_dup(&f->arena, ev->body), NULL, &body, NULL, NULL))
        return 0;
    ids = json_get(body, STR("checkpoint_ids"));
    for (const struct json *id = ids ? ids->first : NULL; id; id = id->next)
        if (id->type == JSON_STRING)
            map_put(&f->deleted, json_text(&f->arena, id), f);
    return 0;
}

static int take_mark(void *arg, const struct event *ev)
{
    struct found *f = arg;
    struct json *body;

    MEM_ROOM(f->at, f->n, f->cap);
    if (json_parse(&f->arena, arena_dup(&f->arena, ev->body), NULL, &body, NULL, NULL))
        return 0;
    snprintf(f->at[f->n].id, TIDE_ID_SIZE, "%.*s", STR_ARG(json_get_text(&f->arena, body, STR("checkpoint_id"))));
    f->at[f->n].seq = ev->seq;
    f->at[f->n].can_resume = json_get_bool(body, STR("can_resume_from"), true);
    if (!map_get(&f->deleted, str_from(f->at[f->n].id)))
        f->n++;
    return 0;
}

/* Passes over those that cannot be read: the walk ends at such a one and begins again below it. */
static enum tide_code find_marks(struct store *store, const struct head *h, int64_t to, struct found *f,
                                 struct tide_err *err)
{
    enum tide_code code = store_checkpoints(store, h, true, h->last_seq, take_deleted, f, NULL, err);

    if (code && code != TIDE_CORRUPT)
        return code;
    for (code = TIDE_CORRUPT; code == TIDE_CORRUPT && to >= h->first_seq; to--) {
        size_t before = f->n;

        code = store_checkpoints(store, h, false, to, take_mark, f, NULL, err);
        if (f->n > before)
            to = f->at[f->n - 1].seq;
    }
    return code == TIDE_CORRUPT ? TIDE_OK : code;
}

/* ---- the one that is asked for ---- */

static void take_asked(struct outlook *o, const struct tide_checkpoint *c)
{
    snprintf(o->checkpoint, sizeof o->checkpoint, "%s", c->id);
    o->seq = c->seq;
    if (c->rolled_back) {
        outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, NULL,
                       WORDS(o, "checkpoint '%s' was undone by a rollback", c->id));
        outlook_about_checkpoint(o, c->id);
        outlook_hint(o, TIDE_ACTION_ROLLBACK, arena_printf(&o->arena, "\"to\":%" PRId64, c->seq));
    } else if (!c->can_resume_from) {
        outlook_refuse(
            o, REFUSED_HERE, TIDE_INVALID, NULL,
            WORDS(o, "checkpoint '%s' cannot be resumed from: a branch or an effect was in progress", c->id));
        outlook_about_checkpoint(o, c->id);
        outlook_hint(o, TIDE_ACTION_LIST_CHECKPOINTS, "");
        outlook_repeat(o, "\"fallback\":true");
    }
}

static void refuse_damaged(struct outlook *o, const struct tide_err *why)
{
    outlook_refuse(o, REFUSED_HERE, TIDE_CORRUPT, NULL,
                   WORDS(o, "checkpoint '%s' is damaged: %s", o->checkpoint, why->msg));
    outlook_about_checkpoint(o, o->checkpoint);
    outlook_repeat(o, "\"fallback\":true");
}

static void refuse_unknown(struct outlook *o, const struct tide_err *why)
{
    struct found f = {.arena = ARENA_INIT};
    struct tide_err ignored;

    if (!store_checkpoints(o->s->store, &o->s->head, true, o->s->head.last_seq, take_deleted, &f, NULL, &ignored) &&
        map_get(&f.deleted, str_from(o->opt->checkpoint))) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_NOT_FOUND, NULL,
                       WORDS(o, "checkpoint '%s' was deleted", o->opt->checkpoint));
        outlook_hint(o, TIDE_ACTION_LIST_CHECKPOINTS, "");
    } else {
        outlook_refuse(o, REFUSED_FOR_GOOD, why->code, NULL, why->msg);
        memcpy(o->refused[o->n_refused - 1].hints, why->hints, sizeof why->hints);
    }
    outlook_about_checkpoint(o, o->opt->checkpoint);
    found_done(&f);
}

/* What has to be done before it can start there. */
static void choose_action(struct outlook *o)
{
    enum run_end end = o->s->state->ledger.run.end;

    o->fork = end == RUN_COMPLETED;
    o->rollback = !o->fork;
    o->anew = o->fork || end == RUN_NONE;
}

static enum tide_code load_then(struct outlook *o, struct tide_err *err)
{
    enum tide_code code;

    state_free(TAKE(o->own));
    o->then = NULL;
    code = session_state(o->s, o->seq, &o->own, &o->then, err);
    if (code)
        o->then = NULL;
    return code;
}

static enum tide_code from_checkpoint(struct outlook *o, struct tide_err *err)
{
    const struct tide_checkpoint *c;
    struct tide_err ignored;
    enum tide_code code = tide_checkpoint_load(o->s, o->opt->checkpoint, &c, err);

    if (!code)
        take_asked(o, c);
    choose_action(o);
    if (code == TIDE_CORRUPT) { /* its row cannot be read: where it is, the index knows */
        snprintf(o->checkpoint, sizeof o->checkpoint, "%s", o->opt->checkpoint);
        if (store_checkpoint_seq(o->s->store, &o->s->head, str_from(o->opt->checkpoint), &o->seq, &ignored))
            o->seq = 0;
        refuse_damaged(o, err);
    } else if (code == TIDE_NOT_FOUND || code == TIDE_AMBIGUOUS || code == TIDE_INVALID)
        refuse_unknown(o, err);
    else if (code)
        return code;
    if (code)
        return TIDE_OK;
    code = load_then(o, err);
    if (code == TIDE_CORRUPT)
        refuse_damaged(o, err);
    return code == TIDE_CORRUPT ? TIDE_OK : code;
}

/* ---- where it stands ---- */

static void from_head(struct outlook *o)
{
    const struct position *p = &o->s->state->content.position;
    enum run_end end = o->s->state->ledger.run.end;
    const char *id = o->s->head.id;

    o->then = o->s->state;
    o->anew = end == RUN_NONE || end == RUN_COMPLETED;
    if (!o->anew || p->ready.live || p->active.live)
        return;
    if (end == RUN_COMPLETED) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_WRONG_STATE, NULL,
                       WORDS(o, "session '%s' has completed: nothing is left to run", id));
        outlook_hint(o, TIDE_ACTION_LIST_CHECKPOINTS, "");
        outlook_repeat(o, "\"checkpoint\":null");
    } else {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_WRONG_STATE, NULL,
                       WORDS(o, "nothing has run in session '%s' yet", id));
        outlook_hint(o, TIDE_ACTION_START, "");
    }
}

enum tide_code outlook_from(struct outlook *o, struct tide_err *err)
{
    if (o->opt->checkpoint)
        return from_checkpoint(o, err);
    from_head(o);
    return TIDE_OK;
}

/* ---- another one ---- */

static enum tide_code try_mark(struct outlook *o, const struct mark_at *m, bool *ret_fits, struct tide_err *err)
{
    size_t n = o->n_refused, warnings = o->n_warnings;
    enum tide_code code;

    snprintf(o->checkpoint, sizeof o->checkpoint, "%s", m->id);
    o->seq = m->seq;
    o->n_missing = 0;
    choose_action(o);
    code = load_then(o, err);
    code = code ? code : outlook_judge(o, err);
    *ret_fits = !code && o->n_refused == n;
    o->n_refused = n;
    if (!*ret_fits)
        o->n_warnings = warnings;
    return code == TIDE_CORRUPT ? TIDE_OK : code;
}

enum tide_code outlook_fall_back(struct outlook *o, struct tide_err *err)
{
    int64_t to = o->opt->checkpoint && o->seq ? o->seq - 1 : o->s->head.last_seq;
    struct found f = {.arena = ARENA_INIT};
    bool fits = false;
    enum tide_code code = find_marks(o->s->store, &o->s->head, to, &f, err);

    INVARIANT(o->n_refused > 0); /* else nobody would look for another one */
    memcpy(o->wanted, o->checkpoint, sizeof o->wanted);
    for (size_t i = 0; i < f.n && !code && !fits; i++)
        if (f.at[i].can_resume && session_in_content(o->s, f.at[i].seq))
            code = try_mark(o, &f.at[i], &fits, err);
    found_done(&f);
    if (fits) {
        outlook_warn(o, arena_printf(&o->arena, "it cannot continue from %s%s (%s): using checkpoint %s, seq %" PRId64,
                                     o->wanted[0] ? "checkpoint " : "the current position", o->wanted,
                                     o->refused[0].what, o->checkpoint, o->seq));
        o->fell_back = true;
        o->n_refused = 0;
    } else if (!code)
        outlook_refuse(o, REFUSED_FOR_GOOD, o->refused[0].code, NULL,
                       WORDS(o, "no valid checkpoints found for session %s", o->s->head.id));
    return code;
}

/* ---- a session that cannot be opened ---- */

struct cuts {
    int64_t seq;
    bool cut;
    struct arena arena;
};

static int look_for_cut(void *arg, const struct event *ev)
{
    struct cuts *c = arg;
    struct json *body;

    if (!str_eq(ev->kind, STR("session.rolled_back")))
        return 0;
    arena_reset(&c->arena);
    if (!json_parse(&c->arena, ev->body, NULL, &body, NULL, NULL))
        c->cut |= json_get_int(body, STR("to_seq"), INT64_MAX) < c->seq;
    return c->cut;
}

/* What a read comes to when damage is expected: a disk that fails is none. */
static enum tide_code but_damage(enum tide_code code)
{
    return code == TIDE_CORRUPT ? TIDE_OK : code;
}

/* As far as the log can be read. */
static enum tide_code is_cut_off(struct store *store, const struct head *h, int64_t seq, bool *ret,
                                 struct tide_err *err)
{
    struct cuts c = {.seq = seq, .arena = ARENA_INIT};
    enum tide_code code = store_read(store, h, seq + 1, 0, look_for_cut, &c, err);

    arena_done(&c.arena);
    *ret = c.cut;
    return but_damage(code);
}

void resume_fork_fields(const struct state *then, struct buf *out)
{
    static const char *const names[] = {"agent", "agent_id", "task_id", "title", "working_dir", "provider", "metadata"};
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = map_get(&then->info.fields, str_from(names[i]));

        if (value)
            json_out_kraw(&o, str_from(names[i]), str_from(value));
    }
    json_out_end(&o, '}');
    buf_cstr(out);
}

static enum tide_code refuse_asked(const struct rescue *r, const char *checkpoint, struct tide_err *err)
{
    tide_fail(err, TIDE_CORRUPT, "checkpoint '%.64s' of session '%s' cannot be read: %.250s", checkpoint, r->session,
              r->damage.msg);
    tide_about(err, TIDE_SUBJECT_CHECKPOINT, checkpoint);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, r->session, "\"fallback\":true");
}

static int note_seq(void *seq, const struct event *ev)
{
    *(int64_t *)seq = ev->seq;
    return 0;
}

/* The newest whose state can be read. */
static enum tide_code choose_readable(struct store *store, const struct head *h, const struct found *f,
                                      const char *checkpoint, bool fallback, struct rescue *ret,
                                      struct state **ret_state, struct tide_err *err)
{
    size_t from = 0;

    while (checkpoint && from < f->n && !str_starts(str_from(f->at[from].id), str_from(checkpoint)))
        from++;
    for (size_t i = from == f->n && fallback ? 0 : from; i < f->n; i++) {
        const struct mark_at *m = &f->at[i];
        enum tide_code code;
        bool cut;

        if (is_cut_off(store, h, m->seq, &cut, err))
            return err->code;
        code = m->can_resume && !cut ? state_load(store, h, m->seq, ret_state, NULL, err) : TIDE_CORRUPT;
        if (but_damage(code))
            return code;
        if (!code) {
            memcpy(ret->checkpoint, m->id, sizeof ret->checkpoint);
            ret->seq = m->seq;
            return TIDE_OK;
        }
        if (checkpoint && !fallback)
            return refuse_asked(ret, checkpoint, err);
    }
    if (checkpoint && !fallback)
        return refuse_asked(ret, checkpoint, err);
    tide_fail(err, TIDE_CORRUPT, "no valid checkpoints found for session %s: %.300s", h->id, ret->damage.msg);
    return tide_about_session(err, h->id);
}

/* As far as the log can be read; what is behind the damage nobody knows. */
static enum tide_code name_again(struct store *store, const struct head *h, struct rescue *r, struct tide_err *err)
{
    struct kept *k = NULL;
    enum tide_code code = but_damage(kept_load(store, h, &k, err));
    size_t len = 0;

    for (struct map_entry *e = map_next(&k->past.effects, NULL); e; e = map_next(&k->past.effects, e)) {
        const struct kept_effect *f = e->value;

        if (f->past.from > r->seq && len + strlen(f->name) + 3 < sizeof r->again)
            len += (size_t)snprintf(r->again + len, sizeof r->again - len, "%s%s", len ? ", " : "", f->name);
    }
    kept_free(k);
    return code;
}

static enum tide_code refuse_again(const struct rescue *r, struct tide_err *err)
{
    tide_fail_session(err, TIDE_EFFECTS, r->session,
                      "is damaged, and in a fork at checkpoint '%s' this would happen again, and must happen once: %s",
                      r->checkpoint, r->again);
    if (err)
        err->hints[0] = rescue_hint(r);
    return TIDE_EFFECTS;
}

void rescue_done(struct rescue *r)
{
    state_free(TAKE(r->then));
}

enum tide_code graph_rescue(tide_store *store, const char *id, const char *checkpoint, bool fallback, bool redo,
                            bool look, struct rescue *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    struct found f = {.arena = ARENA_INIT};
    tide_session *whole = NULL;
    struct head h;
    int64_t to = 0;
    enum tide_code code;

    *ret = (struct rescue){0};
    code = session_resolve(store_of(store), str_from(id), ret->session, err);
    code = code ? code : store_head(store_of(store), str_from(ret->session), &h, err);
    if (!code && !tide_session_open(store, ret->session, TIDE_SESSION_APPEND, &whole, &ret->damage)) {
        tide_session_close(whole);
        code = tide_fail_session(err, TIDE_INVALID, ret->session, "is not damaged");
    }
    if (!code && but_damage(ret->damage.code))
        code = tide_err_copy(err, &ret->damage);
    if (!code && h.held && h.holder_alive)
        code = tide_fail_session(err, TIDE_HELD, h.id, "is held by %s: wait for it to end", h.holder);
    if (!code) { /* the last event before the damage: a fork must be loadable from the logs before it alone */
        to = h.first_seq - 1;
        code = but_damage(store_read(store_of(store), &h, h.first_seq, h.last_seq, note_seq, &to, err));
    }
    code = code ? code : find_marks(store_of(store), &h, to, &f, err);
    code = code ? code : choose_readable(store_of(store), &h, &f, checkpoint, fallback, ret, &ret->then, err);
    if (!code && !ret->then->content.position.graph_seq)
        code = tide_err_copy(err, &ret->damage);
    if (!code && !redo)
        code = name_again(store_of(store), &h, ret, err);
    if (!code && !look && ret->again[0])
        code = refuse_again(ret, err);
    if (!code && !look) {
        resume_fork_fields(ret->then, &fields);
        code = tide_session_fork(store, ret->session, ret->seq, NULL, buf_cstr(&fields), ret->fork, err);
    }
    found_done(&f);
    return code;
}
