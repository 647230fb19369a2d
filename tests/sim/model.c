/* SPDX-License-Identifier: Apache-2.0 */
/* The second fold: small, slow, and written from the design alone. */
#include "world.h"

static void fold(struct model *m, const struct o_event *e)
{
    switch (e->meaning) {
    case M_MESSAGE:
        m->messages++;
        break;
    case M_SET:
        m->memory[e->key] = e->value;
        break;
    case M_DEL:
        m->memory[e->key] = (struct str){NULL, 0};
        break;
    default:
        break;
    }
}

/* The content as of seq: what it was where the newest rollback went back to, then what came after that rollback. */
static void content(const struct o_session *s, int64_t seq, struct model *m)
{
    int64_t from = s->first_seq;

    if (seq < s->first_seq) {
        if (s->parent)
            content(s->parent, seq, m);
        return;
    }
    for (int64_t at = seq; at >= s->first_seq; at--) {
        if (o_at(s, at)->meaning == M_ROLLBACK) {
            content(s, o_at(s, at)->number, m);
            from = at + 1;
            break;
        }
    }
    if (from == s->first_seq && s->parent)
        content(s->parent, s->parent_seq, m);
    for (int64_t at = from; at <= seq; at++)
        fold(m, o_at(s, at));
}

void model_at(struct world *w, const struct o_session *s, int64_t seq, struct model *ret)
{
    (void)w;
    memset(ret, 0, sizeof *ret);
    while (seq < s->first_seq)
        s = s->parent;
    content(s, seq, ret);
    for (int64_t at = s->first_seq; at <= seq; at++) {
        const struct o_event *e = o_at(s, at);

        ret->events++;
        ret->rollbacks += e->meaning == M_ROLLBACK;
        ret->calls += e->meaning == M_USAGE;
        ret->input_tokens += e->meaning == M_USAGE ? e->number : 0;
        ret->mark_events += e->meaning == M_MARK || e->meaning == M_MARKS_GONE;
    }
}
