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
static enum tide_code find_kept(struct exec *x, const char *call, const struct mark **ret, struct tide_err *err)
{
    enum tide_code code = run_sure(x->run, err); /* it may not have read the chain yet */
    const struct mark *m = code ? NULL : map_get(&x->run->done.steps, str_from(call));

    *ret = m && m->state == MARK_COMPLETED ? m : NULL;
    return code;
}

bool reuse_result(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *when)
{
    struct result r = {&x->scratch, STR("{}")};
    const struct mark *m;
    struct tide_err err;
    enum tide_code code = find_kept(x, arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit), &m, &err);

    if (!code && m)
        code = store_read(x->s->store, &x->s->head, m->seq, m->seq, take_result, &r, &err);
    if (!code && m) {
        exec_notice(x, name, "node '%s' happened before %s: what it gave then is used", name, when);
        end_complete(x, p, name, r.json, 0);
    }
    if (code) /* rather than do it twice */
        exec_break(x, &err);
    return m || code;
}

bool reuse_effect(struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    return p->node->type == SPEC_FUNCTION && p->node->effect == SPEC_ONCE && x->s->state->ledger.rollbacks &&
           reuse_result(x, p, name, visit, "the rollback");
}
