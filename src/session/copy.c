/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one store into another, whatever kinds they are: which sessions, in which order, and what came of it. Parents come
 * before their forks. Each session stands by itself: one that is damaged, held or different there is reported and the
 * others continue; whatever stops the whole leaves sessions that are whole and visible, and at most one that nobody
 * sees.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "session/copy.h"

#define FEW 16 /* sessions, which are asked for one by one */

bool copy_tell(struct copier *c)
{
    if (c->opt->progress && c->opt->progress(c->opt->arg, &c->at))
        c->cancelled = true;
    return c->cancelled;
}

/* What concerns one session or the list is reported; the others are copied. */
void copy_problem(struct copier *c, const char *where, struct tide_err *err)
{
    if (c->opt->problem)
        c->opt->problem(c->opt->arg, where, err->msg);
    if (strcmp(err->detail.session_id, where) != 0)
        tide_wrap(err, "session '%s'", where);
    if (c->out.refused++ == 0)
        c->first = *err;
}

void copy_notice(struct copier *c, const char *id, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (!c->opt->notice)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->opt->notice(c->opt->arg, id, text);
}

/* ---- which ----------------------------------------------------------------------------------------------------------- */

static void add_plan(struct copier *c, const struct head *h)
{
    struct copy_plan *plan = mem_zero(sizeof *plan);

    memcpy(plan->id, h->id, sizeof plan->id);
    map_put(&c->plans, str_from(plan->id), plan);
    c->at.sessions_total++;
    c->at.events_total += (uint64_t)(h->last_seq - h->first_seq + 1);
}

/* The session and, before it, those it was forked from, as far as they are not in the plan. `asked` NULL: all are. */
static enum tide_code add_line(struct copier *c, const char *id, const struct map *asked, struct tide_err *err)
{
    AUTO(mem_freep) struct head *line = NULL;
    enum tide_code code = TIDE_OK;
    size_t n = 0;

    for (const char *next = id; !code && next[0] && !map_get(&c->plans, str_from(next)); next = line[n - 1].parent_id) {
        if (n > FORKS_DEEP)
            return tide_fail_session(err, TIDE_CORRUPT, id, "has more than %d parents", FORKS_DEEP);
        line = mem_grow(line, (n + 1) * sizeof *line);
        code = store_head(c->src, str_from(n ? line[n - 1].parent_id : id), &line[n], err);
        if (code == TIDE_NOT_FOUND && n && store_head(c->src, str_from(line[n - 1].id), &line[n], err) == code)
            return code;                 /* it was deleted meanwhile, and its parent then */
        if (code == TIDE_NOT_FOUND && n) /* nobody can delete one that has forks */
            return tide_fail_session(err, TIDE_CORRUPT, line[n - 1].id, "is a fork of '%s', which is not there",
                                     line[n - 1].parent_id);
        if (code)
            return n ? tide_wrap(err, "its parent '%s'", line[n - 1].parent_id) : code;
        n++;
    }
    for (size_t i = n; i-- > 0;) {
        add_plan(c, &line[i]);
        if (i > 0 && asked && !map_get(asked, str_from(line[i].id)))
            copy_notice(c, line[i].id, "is copied too: '%s' is a fork of it", line[i - 1].id);
    }
    return code;
}

struct listing {
    char (*ids)[TIDE_ID_SIZE];
    size_t n, cap;
};

static int add_listed(void *arg, const struct store_entry *entry)
{
    struct listing *l = arg;

    MEM_ROOM(l->ids, l->n, l->cap);
    memcpy(l->ids[l->n++], entry->head->id, TIDE_ID_SIZE);
    return 0;
}

/* Oldest first: lists there show them in the same order. */
static enum tide_code plan_all(struct copier *c, struct tide_err *err)
{
    struct listing l = {NULL, 0, 0};
    enum tide_code code = store_list(c->src, NULL, add_listed, &l, err);

    if (code == TIDE_CORRUPT) {
        copy_problem(c, "the list of sessions", err);
        code = TIDE_OK;
    }
    while (!code && l.n-- > 0) {
        enum tide_code one = add_line(c, l.ids[l.n], NULL, err);

        if (!one || one == TIDE_NOT_FOUND) /* deleted meanwhile */
            continue;
        c->unplanned++;
        copy_problem(c, l.ids[l.n], err);
    }
    free(l.ids);
    return code;
}

/* All that are asked for must be there before anything is done. */
static enum tide_code plan_ids(struct copier *c, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    struct map asked = {0};
    char id[TIDE_ID_SIZE];

    for (size_t i = 0; c->opt->ids[i] && !code; i++) {
        code = session_resolve(c->src, str_from(c->opt->ids[i]), id, err);
        if (!code)
            map_put(&asked, str_from(id), c);
    }
    for (struct map_entry *e = map_next(&asked, NULL); e && !code; e = map_next(&asked, e))
        code = add_line(c, e->key, &asked, err);
    map_done(&asked, NULL);
    return code;
}

static int add_there(void *arg, const struct store_entry *entry)
{
    map_put(arg, str_from(entry->head->id), arg);
    return 0;
}

/* A session that somebody makes there meanwhile is refused as such, and then looked at. A damaged list: each is asked for. */
static void list_there(struct copier *c)
{
    struct tide_err err;

    c->there_known = c->plans.live > FEW && !store_list(c->dst, NULL, add_there, &c->there, &err);
}

/* ---- in order -------------------------------------------------------------------------------------------------------- */

static enum tide_code copy_pass(struct copier *c, enum copy_turn turn, struct tide_err *err)
{
    enum tide_code code = TIDE_OK, last;
    struct tide_err later;

    for (struct map_entry *e = map_next(&c->plans, NULL); e && !code; e = map_next(&c->plans, e)) {
        struct copy_plan *plan = e->value;

        if (plan->turn == turn)
            code = copy_session(c, plan, err);
    }
    last = copy_flush(c, code ? &later : err); /* also when it stops: they are read already */
    return code ? code : last;
}

static enum tide_code copy_all(struct copier *c, struct tide_err *err)
{
    enum tide_code code = c->opt->ids ? plan_ids(c, err) : plan_all(c, err);

    if (!code && !c->same_key)
        copy_notice(c, "keys",
                    "the stores have different keys: seqs, times, epochs, kinds and bodies are kept and "
                    "compared, the digests are new");
    if (!code)
        list_there(c);
    code = code ? code : copy_pass(c, COPY_TO_DO, err);
    c->last_chance = true;
    return code ? code : copy_pass(c, COPY_LATER, err);
}

static enum tide_code check_stores(const struct copier *c, struct tide_err *err)
{
    if (c->src == c->dst || strcmp(c->src->url, c->dst->url) == 0)
        return tide_fail(err, TIDE_INVALID, "both are the same store: name another one to copy into");
    if (c->dst->read_only)
        return tide_fail(err, TIDE_READ_ONLY, "the store to copy into was opened for reading only");
    return TIDE_OK;
}

enum tide_code tide_store_copy(tide_store *src, tide_store *dst, const struct tide_copy_options *opt,
                               struct tide_copy_result *ret_result, struct tide_err *err)
{
    struct tide_copy_options own;
    struct copier *c;
    enum tide_code code;

    ERR_LOCAL(err);
    if (SIZED_READ(&own, tide_copy_options, opt, err))
        return err->code;
    c = mem_zero(sizeof *c);
    c->src = store_of(src);
    c->dst = store_of(dst);
    c->opt = &own;
    c->same_key =
        c->src->key.len == c->dst->key.len && sodium_memcmp(c->src->key.bytes, c->dst->key.bytes, c->src->key.len) == 0;
    c->piece.events = mem_array(COPY_PIECE_EVENTS, sizeof *c->piece.events);
    code = check_stores(c, err);
    code = code ? code : copy_all(c, err);
    c->out.sessions = c->plans.live + c->unplanned;
    if (!code && c->out.refused) {
        tide_err_copy(err, &c->first);
        code = tide_wrap(err, "%" PRIu64 " of %" PRIu64 " session%s not copied", c->out.refused, c->out.sessions,
                         c->out.sessions == 1 ? "" : "s");
    }
    if (ret_result)
        *ret_result = c->out;
    free(c->piece.events);
    arena_done(&c->piece.arena);
    map_done(&c->plans, free);
    map_done(&c->there, NULL);
    free(c);
    return code ? tide_wrap(err, "copy") : TIDE_OK;
}
