/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding checkpoints: by the store's index where it has all that the ledger knows of, else by reading the log; of a log that cannot be
 * read whole, what is readable. Deleting and pruning append checkpoint.deleted: the log itself never shrinks.
 */
#include "session/session.h"

/* One walk over checkpoint events from the newest back, leaving out the deleted. */
struct walk;
typedef int checkpoint_walk_fn(struct walk *, const struct tide_checkpoint *);
struct walk {
    struct tide_session *s;
    struct map deleted; /* ids */
    struct arena parse;
    checkpoint_walk_fn *each;
    void *arg;
    bool stopped;
};

bool session_in_content(const struct tide_session *s, int64_t seq)
{
    const struct content *c = &s->state->content;

    for (size_t i = c->span_count; i > 0; i--) {
        const struct span *sp = &c->spans[i - 1];

        if (seq >= sp->from && seq <= sp->to && strcmp(sp->session, s->head.id) == 0)
            return true;
    }
    return false;
}

static int note_deleted(void *arg, const struct event *ev)
{
    struct walk *w = arg;
    const struct json *ids;
    struct json *body;

    arena_reset(&w->parse);
    if (json_parse(&w->parse, ev->body, NULL, &body, NULL, NULL))
        return 0;
    ids = json_get(body, STR("checkpoint_ids"));
    for (const struct json *id = ids ? ids->first : NULL; id; id = id->next) {
        if (id->type == JSON_STRING)
            map_put(&w->deleted, json_text(&w->parse, id), w);
    }
    return 0;
}

static const char *text_or_null(struct walk *w, const struct json *body, const char *key)
{
    struct str text = json_get_text(&w->parse, body, str_from(key));

    return text.len ? arena_dup(&w->parse, text).ptr : NULL;
}

static int on_checkpoint(void *arg, const struct event *ev)
{
    struct walk *w = arg;
    struct tide_checkpoint c;
    struct json *body;
    char described[CHECKPOINT_SAYS];

    arena_reset(&w->parse);
    if (json_parse(&w->parse, ev->body, NULL, &body, NULL, NULL))
        return 0;
    c = (struct tide_checkpoint){
        .id = text_or_null(w, body, "checkpoint_id"),
        .type_word = text_or_null(w, body, "type"),
        .node = text_or_null(w, body, "node"),
        .next_node = text_or_null(w, body, "next_node"),
        .description = text_or_null(w, body, "description"),
        .seq = ev->seq,
        .ts_ms = ev->ts_ms,
        .turn = json_get_int(body, STR("turn"), 0),
        .is_clean = json_get_bool(body, STR("is_clean"), true),
        .can_resume_from = json_get_bool(body, STR("can_resume_from"), true),
        .rolled_back = !session_in_content(w->s, ev->seq),
    };
    c.type = checkpoint_type_of(c.type_word);
    if (!c.description) /* of an earlier version */
        c.description =
            arena_dup(&w->parse, str_from(checkpoint_describe(described, c.type, c.node, c.next_node, c.turn))).ptr;
    if (!c.id || map_get(&w->deleted, str_from(c.id)))
        return 0;
    w->stopped = w->each(w, &c) != 0;
    return w->stopped;
}

/* The index was damaged: take the slow way, over all events. */
struct gathered {
    struct walk *walk;
    struct event *list; /* checkpoints, oldest first */
    size_t n;
    struct arena arena;
};

static int gather_checkpoint(void *arg, const struct event *ev)
{
    struct gathered *g = arg;

    if (str_eq(ev->kind, STR("checkpoint.deleted")))
        return note_deleted(g->walk, ev);
    if (!str_eq(ev->kind, STR("checkpoint")))
        return 0;
    g->list = mem_grow(g->list, (g->n + 1) * sizeof *g->list);
    g->list[g->n] = *ev;
    g->list[g->n].kind = arena_dup(&g->arena, ev->kind);
    g->list[g->n++].body = arena_dup(&g->arena, ev->body);
    return 0;
}

static enum tide_code scan_all(struct walk *w, struct tide_err *err)
{
    struct gathered g = {.walk = w, .arena = ARENA_INIT};
    enum tide_code code = store_read(w->s->store, &w->s->head, 0, 0, gather_checkpoint, &g, err);

    for (size_t i = g.n; i > 0 && !code && !w->stopped; i--)
        on_checkpoint(w, &g.list[i - 1]);
    arena_done(&g.arena);
    free(g.list);
    return code;
}

/* ---- of a log that cannot be read whole ---- */

struct salvage {
    struct gathered g;
    struct span *cuts; /* from: a rollback, to: where it went back to; in order */
    size_t n_cuts;
    int64_t seen;
};

static int salvage_one(void *arg, const struct event *ev)
{
    struct salvage *v = arg;
    struct json *body;

    v->seen = ev->seq;
    if (!str_eq(ev->kind, STR("session.rolled_back")))
        return gather_checkpoint(&v->g, ev);
    arena_reset(&v->g.walk->parse);
    if (json_parse(&v->g.walk->parse, ev->body, NULL, &body, NULL, NULL))
        return 0;
    v->cuts = mem_grow(v->cuts, (v->n_cuts + 1) * sizeof *v->cuts);
    v->cuts[v->n_cuts++] = (struct span){.from = ev->seq, .to = json_get_int(body, STR("to_seq"), ev->seq - 1)};
    return 0;
}

/* What still counts, as far as the rollbacks that can be read say. */
static void note_spans(struct content *c, const struct head *h, const struct salvage *v)
{
    int64_t end = h->last_seq;

    c->spans = mem_array(v->n_cuts + 1, sizeof *c->spans);
    for (size_t i = v->n_cuts + 1; i > 0; i--) {
        const struct span *cut = i > 1 ? &v->cuts[i - 2] : NULL;
        struct span *span = &c->spans[c->span_count];

        if (cut && cut->from > end)
            continue;
        *span = (struct span){.from = cut ? cut->from + 1 : h->first_seq, .to = end};
        snprintf(span->session, sizeof span->session, "%s", h->id);
        c->span_count++;
        end = cut && cut->to < cut->from ? cut->to : end;
    }
}

/* Passes over each event that cannot be read; *damage is the first. */
static enum tide_code read_around(struct store *store, const struct head *h, struct salvage *v, struct tide_err *damage,
                                  struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    for (int64_t from = h->first_seq; !code && from <= h->last_seq; from = v->seen + 1) {
        v->seen = from - 1;
        code = store_read(store, h, from, h->last_seq, salvage_one, v, err);
        if (code != TIDE_CORRUPT)
            break;
        if (!damage->code)
            *damage = *err;
        v->seen++;
        code = TIDE_OK;
    }
    return code;
}

static enum tide_code salvage_checkpoints(struct store *store, const char *id, checkpoint_walk_fn *each, void *arg,
                                          struct tide_err *damage, struct tide_err *err)
{
    AUTO(state_freep) struct state *state = NULL;
    struct tide_session s = {.store = store}; /* enough of one to be read */
    struct walk w = {.s = &s, .each = each, .arg = arg};
    struct salvage v = {.g = {.walk = &w, .arena = ARENA_INIT}};
    enum tide_code code = store_head(store, str_from(id), &s.head, err);

    code = code ? code : read_around(store, &s.head, &v, damage, err);
    if (!code) {
        s.state = state = state_new(str_from(id));
        note_spans(&state->content, &s.head, &v);
        for (size_t i = v.g.n; i > 0 && !w.stopped; i--)
            on_checkpoint(&w, &v.g.list[i - 1]);
    }
    free(v.cuts);
    free(v.g.list);
    arena_done(&v.g.arena);
    map_done(&w.deleted, NULL);
    arena_done(&w.parse);
    return code;
}

/* Calls `each` for every checkpoint, newest first. The ledger knows how many events the index must have. */
static enum tide_code run_walk(struct walk *w, struct tide_err *err)
{
    struct store *store = w->s->store;
    const struct head *h = &w->s->head;
    int64_t made = 0, deleted = 0;
    enum tide_code code = store_checkpoints(store, h, false, h->last_seq, NULL, NULL, &made, err);

    if (!code)
        code = store_checkpoints(store, h, true, h->last_seq, note_deleted, w, &deleted, err);
    if (!code && made + deleted != w->s->state->ledger.checkpoint_events)
        return scan_all(w, err);
    return code ? code : store_checkpoints(store, h, false, h->last_seq, on_checkpoint, w, NULL, err);
}

static enum tide_code walk_checkpoints(struct tide_session *s,
                                       int (*each)(struct walk *, const struct tide_checkpoint *), void *arg,
                                       struct tide_err *err)
{
    struct walk w = {.s = s, .each = each, .arg = arg};
    enum tide_code code = session_sync(s, err);

    code = code ? code : run_walk(&w, err);
    map_done(&w.deleted, NULL);
    arena_done(&w.parse);
    return code;
}

bool checkpoint_is_known(const struct state *state)
{
    const struct ledger *l = &state->ledger;

    return state->content.resume_checkpoint_seq == 0 || l->checkpoints == l->checkpoint_events ||
           (l->rollbacks == 0 && state->content.resume_checkpoint_seq > 0);
}

static int take_resumable(struct walk *w, const struct tide_checkpoint *c)
{
    if (c->rolled_back || !c->can_resume_from)
        return 0;
    snprintf(w->arg, TIDE_ID_SIZE, "%s", c->id);
    return 1;
}

enum tide_code checkpoint_to_resume(struct store *store, const struct head *head, struct state *state,
                                    char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    struct tide_session s = {.store = store, .head = *head, .state = state}; /* enough of one to be read */
    struct walk w = {.s = &s, .each = take_resumable, .arg = ret_id};
    enum tide_code code;

    memcpy(ret_id, state->content.resume_checkpoint, TIDE_ID_SIZE);
    if (checkpoint_is_known(state))
        return TIDE_OK;
    ret_id[0] = 0;
    code = run_walk(&w, err);
    map_done(&w.deleted, NULL);
    arena_done(&w.parse);
    return code;
}

/* The checkpoint at this seq, if there is one and it was not deleted after. */
static enum tide_code look_at(struct tide_session *s, int64_t seq,
                              int (*each)(struct walk *, const struct tide_checkpoint *), void *arg,
                              struct tide_err *err)
{
    struct walk w = {.s = s, .each = each, .arg = arg};
    struct gathered g = {.walk = &w, .arena = ARENA_INIT};
    enum tide_code code = store_read(s->store, &s->head, seq, seq, gather_checkpoint, &g, err);
    bool deleted =
        s->state->ledger.checkpoints != s->state->ledger.checkpoint_events; /* any: or a long look for none */

    if (!code && g.n && deleted)
        code = store_checkpoints(s->store, &s->head, true, s->head.last_seq, note_deleted, &w, NULL, err);
    if (!code && g.n)
        on_checkpoint(&w, &g.list[0]);
    arena_done(&g.arena);
    free(g.list);
    map_done(&w.deleted, NULL);
    arena_done(&w.parse);
    return code;
}

/* Checkpoints kept beyond the walk; their texts are in the arena. */
struct found {
    struct tide_checkpoint *list;
    size_t n;
    struct arena arena;
    const struct tide_checkpoint_filter *filter;
    struct str prefix; /* of the id that is looked for */
};

static struct tide_checkpoint copy_checkpoint(struct arena *a, const struct tide_checkpoint *c)
{
    struct tide_checkpoint copy = *c;
    const char **const texts[] = {&copy.id, &copy.type_word, &copy.node, &copy.next_node, &copy.description};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(a, *texts[i]);
    return copy;
}

static void keep_checkpoint(struct found *f, const struct tide_checkpoint *c)
{
    f->list = mem_grow(f->list, (f->n + 1) * sizeof *f->list);
    f->list[f->n++] = copy_checkpoint(&f->arena, c);
}

/* For the caller of the handle, until the next one. */
static void hand_out(struct tide_session *s, const struct tide_checkpoint *c, const struct tide_checkpoint **ret)
{
    arena_reset(&s->checkpoint_texts);
    s->checkpoint = s->checkpoint ? s->checkpoint : mem_zero(sizeof *s->checkpoint);
    *s->checkpoint = copy_checkpoint(&s->checkpoint_texts, c);
    *ret = s->checkpoint;
}

static void found_done(struct found *f)
{
    arena_done(&f->arena);
    free(f->list);
}

static int keep_matching(struct walk *w, const struct tide_checkpoint *c)
{
    struct found *f = w->arg;
    const struct tide_checkpoint_filter *filter = f->filter;

    if ((filter->type && filter->type != c->type) || (filter->clean_only && !c->is_clean) ||
        (c->rolled_back && !filter->rolled_back) || (filter->before_seq && c->seq >= filter->before_seq))
        return 0;
    keep_checkpoint(f, c);
    return filter->limit > 0 && (int64_t)f->n >= filter->limit;
}

enum tide_code tide_checkpoint_list(tide_session *s, const struct tide_checkpoint_filter *filter,
                                    tide_checkpoint_fn *fn, void *arg, struct tide_err *err)
{
    struct tide_checkpoint_filter own;
    struct found f = {.arena = ARENA_INIT, .filter = &own};
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_checkpoint_filter, filter, err);
    if (!code && own.type)
        code = checkpoint_check_type(str_from(tide_checkpoint_type_name(own.type)), err);
    code = code ? code : walk_checkpoints(s, keep_matching, &f, err);
    for (size_t i = f.n; i > 0 && !code; i--) {
        if (fn(arg, &f.list[i - 1]))
            break;
    }
    found_done(&f);
    return code;
}

enum tide_code checkpoint_list_around(struct store *store, const char *id, const struct tide_checkpoint_filter *filter,
                                      tide_checkpoint_fn *fn, void *arg, struct tide_err *ret_damage,
                                      struct tide_err *err)
{
    struct found f = {.arena = ARENA_INIT, .filter = filter};
    enum tide_code code = salvage_checkpoints(store, id, keep_matching, &f, ret_damage, err);

    for (size_t i = f.n; i > 0 && !code; i--) {
        if (fn(arg, &f.list[i - 1]))
            break;
    }
    found_done(&f);
    return code;
}

enum tide_code tide_checkpoint_load_latest(tide_session *s, const struct tide_checkpoint **ret, struct tide_err *err)
{
    const struct tide_checkpoint_filter one = {.size = sizeof one, .limit = 1};
    struct found f = {.arena = ARENA_INIT, .filter = &one};
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_sync(s, err);
    if (!code && s->state->content.checkpoint_seq > 0)
        code = look_at(s, s->state->content.checkpoint_seq, keep_matching, &f, err);
    else if (!code && s->state->content.checkpoint_seq < 0) /* the latest was deleted: the one before it is */
        code = walk_checkpoints(s, keep_matching, &f, err);
    if (!code && !f.n)
        code = tide_fail(err, TIDE_NOT_FOUND, "no valid checkpoints found for session %s", s->head.id);
    if (!code)
        hand_out(s, &f.list[0], ret);
    found_done(&f);
    return code;
}

static int keep_prefixed(struct walk *w, const struct tide_checkpoint *c)
{
    struct found *f = w->arg;

    if (!str_starts(str_from(c->id), f->prefix))
        return 0;
    keep_checkpoint(f, c);
    return strlen(c->id) == f->prefix.len; /* the whole id: no need to look further */
}

static enum tide_code find_one(struct tide_session *s, const char *id, struct found *f, struct tide_err *err)
{
    int64_t seq = 0;
    enum tide_code code;

    f->prefix = str_from(id);
    if (!str_is_id(f->prefix))
        return tide_fail(err, TIDE_INVALID, "not a checkpoint id: 1 to 64 letters, digits, '_' or '-'");
    code = session_sync(s, err);
    if (!code) /* a whole id is found at once; a prefix, or one the index has lost, by looking at all */
        code = store_checkpoint_seq(s->store, &s->head, f->prefix, &seq, err);
    if (!code && seq >= s->head.first_seq)
        code = look_at(s, seq, keep_prefixed, f, err);
    if (!code && !f->n)
        code = walk_checkpoints(s, keep_prefixed, f, err);
    if (code)
        return code;
    if (!f->n) {
        tide_fail(err, TIDE_NOT_FOUND, "no checkpoint '%s' in session '%s'", id, s->head.id);
        tide_about(err, TIDE_SUBJECT_CHECKPOINT, id);
        return tide_hint(err, TIDE_ACTION_LIST_CHECKPOINTS, s->head.id);
    }
    if (f->n > 1 && strlen(f->list[f->n - 1].id) != f->prefix.len)
        return tide_fail(err, TIDE_AMBIGUOUS, "'%s' fits %zu checkpoints: %s, %s%s", id, f->n, f->list[0].id,
                         f->list[1].id, f->n > 2 ? ", …" : "");
    return TIDE_OK;
}

/* Of the past that a fork shares: the parents' checkpoints up to where it began. `err` says that it has none of its own. */
static enum tide_code load_inherited(struct tide_session *s, const char *id, const struct tide_checkpoint **ret,
                                     struct tide_err *err)
{
    const struct tide_checkpoint *c = NULL;
    struct tide_err why;
    tide_session *parent;
    struct head h;
    enum tide_code code;

    if (!s->head.parent_id[0])
        return err->code;
    code = history_parent(s->store, &s->head, &h, &why);
    code = code
               ? code
               : tide_session_open((tide_store *)(void *)s->store, s->head.parent_id, TIDE_SESSION_READ, &parent, &why);
    if (code)
        return code == TIDE_NOT_FOUND ? err->code : tide_err_copy(err, &why);
    code = tide_checkpoint_load(parent, id, &c, &why);
    if (code && code != TIDE_NOT_FOUND) /* what cannot be looked at is not missing */
        tide_err_copy(err, &why);
    if (!code && c->seq <= s->head.parent_seq) {
        hand_out(s, c, ret);
        err->code = TIDE_OK;
    }
    tide_session_close(parent);
    return err->code;
}

enum tide_code tide_checkpoint_load(tide_session *s, const char *id, const struct tide_checkpoint **ret,
                                    struct tide_err *err)
{
    struct found f = {.arena = ARENA_INIT};
    enum tide_code code;

    ERR_LOCAL(err);
    code = find_one(s, id ? id : "", &f, err);
    if (!code)
        hand_out(s, &f.list[f.n - 1], ret);
    found_done(&f);
    return code == TIDE_NOT_FOUND ? load_inherited(s, id, ret, err) : code;
}

static enum tide_code append_deleted(struct tide_session *s, const char *const *ids, size_t n, const char *reason,
                                     struct tide_err *err)
{
    struct buf body = BUF_INIT(s->store->max_record_bytes);
    struct json_out o = json_out_to(&body);
    struct tide_new_event ev = {"checkpoint.deleted", NULL, 0};
    enum tide_code code;

    json_out_begin(&o, '{');
    json_out_key(&o, STR("checkpoint_ids"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < n; i++)
        json_out_str(&o, str_from(ids[i]));
    json_out_end(&o, ']');
    json_out_kstr(&o, STR("reason"), str_from(reason));
    json_out_end(&o, '}');
    ev.body = buf_cstr(&body);
    ev.body_len = body.len;
    code = session_append(s, 0, &ev, 1, NULL, err);
    buf_done(&body);
    return code;
}

enum tide_code tide_checkpoint_delete(tide_session *s, const char *const *ids, size_t n, struct tide_err *err)
{
    AUTO(mem_freep) const char **whole = mem_array(n ? n : 1, sizeof *whole);
    struct found all = {.arena = ARENA_INIT};
    enum tide_code code = TIDE_OK;

    ERR_LOCAL(err);
    for (size_t i = 0; i < n && !code; i++) {
        struct found f = {.arena = ARENA_INIT};

        code = find_one(s, ids[i], &f, err);
        if (!code)
            whole[i] = arena_dup(&all.arena, str_from(f.list[f.n - 1].id)).ptr;
        for (size_t j = 0; j < i && !code; j++) {
            if (strcmp(whole[j], whole[i]) == 0)
                code = tide_fail(err, TIDE_INVALID, "checkpoint '%s' is named twice", whole[i]);
        }
        found_done(&f);
    }
    if (!code && n)
        code = append_deleted(s, whole, n, "deleted", err);
    found_done(&all);
    return code;
}

/* Which ones go: of those that may stay, all but the newest `keep`. */
struct pruning {
    struct found f;
    int64_t keep, kept;
    bool clean_only;
};

static int choose_checkpoint(struct walk *w, const struct tide_checkpoint *c)
{
    struct pruning *p = w->arg;

    if (c->rolled_back)
        return 0; /* not listed, and undoing the rollback may want it */
    if ((c->is_clean || !p->clean_only) && p->kept < p->keep)
        p->kept++;
    else
        keep_checkpoint(&p->f, c);
    return 0;
}

enum tide_code tide_checkpoint_prune(tide_session *s, int64_t keep_n, unsigned flags, int64_t *ret_deleted,
                                     struct tide_err *err)
{
    struct pruning p = {.f = {.arena = ARENA_INIT}, .keep = keep_n, .clean_only = flags & TIDE_PRUNE_KEEP_CLEAN_ONLY};
    AUTO(mem_freep) const char **ids = NULL;
    enum tide_code code;

    ERR_LOCAL(err);
    if (keep_n < 0)
        return tide_fail(err, TIDE_INVALID, "how many checkpoints to keep must be 0 or more");
    code = walk_checkpoints(s, choose_checkpoint, &p, err);
    if (!code && p.f.n) {
        ids = mem_array(p.f.n, sizeof *ids);
        for (size_t i = 0; i < p.f.n; i++)
            ids[i] = p.f.list[i].id;
        code = append_deleted(s, ids, p.f.n, "pruned", err);
    }
    if (!code && ret_deleted)
        *ret_deleted = (int64_t)p.f.n;
    found_done(&p.f);
    return code;
}
