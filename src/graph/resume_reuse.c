/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects whose result is in the log and that do not happen again: of a part that was rolled back by somebody who decided so,
 * and of nodes that failed because what they gave could not be taken.
 */
#include <inttypes.h>

#include "graph/resume.h"

struct result {
    struct arena *arena;
    struct str json;
};

static int take_result(void *arg, const struct event *ev)
{
    struct result *r = arg;
    struct json *body;
    const struct json *v;

    if (!json_parse(r->arena, arena_dup(r->arena, ev->body), NULL, &body, NULL, NULL) &&
        (v = json_get(body, STR("result"))))
        r->json = json_source(v);
    return 1;
}

/* The chain holds what was cut only when it is to be reused, and a visit of the content never begins twice. */
static const struct mark *find_kept(struct exec *x, const char *call, struct tide_err *err)
{
    const struct mark *m;

    if (run_sure(x->run, err)) /* it may not have read the chain yet */
        return NULL;
    m = map_get(&x->run->done.steps, str_from(call));
    return m && m->state == MARK_COMPLETED ? m : NULL;
}

bool reuse_result(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *when)
{
    struct tide_err err = {TIDE_OK, ""};
    struct result r = {&x->scratch, STR("{}")};
    const struct mark *m = find_kept(x, arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit), &err);

    if (m && !store_read(x->s->store, &x->s->head, m->seq, m->seq, take_result, &r, &err)) {
        exec_notice(x, name, "node '%s' happened before %s: what it gave then is used", name, when);
        end_complete(x, p, name, r.json, 0);
    }
    if (err.code) /* rather than do it twice */
        exec_break(x, &err);
    return m || err.code;
}

bool reuse_effect(struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    return p->node->type == SPEC_FUNCTION && p->node->effect == SPEC_ONCE && x->s->state->ledger.rollbacks &&
           reuse_result(x, p, name, visit, "the rollback");
}
