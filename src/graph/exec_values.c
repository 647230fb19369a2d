/* SPDX-License-Identifier: Apache-2.0 */
/* What a node gave: which of it was promised, which is stored nowhere, what counts where branches set the same key. */
#include "graph/exec.h"
#include "session/redact.h"

/* Whether a branch that runs beside this one has set it. */
static bool is_beside(struct values *v, struct str key)
{
    const struct map *writers = &v->x->view->content.position.writers;
    struct str ours = str_from(v->task ? v->task->branch : NULL);
    const char *name, *writer;

    if (!writers->live)
        return false;
    name = arena_printf(&v->x->scratch, "%.*s\x1f%.*s", STR_ARG(v->p->frame), STR_ARG(key));
    writer = map_get(writers, str_from(name));

    return writer && !branch_is_within(ours, str_from(writer)) && !branch_is_within(str_from(writer), ours);
}

static enum tide_code resolve_key(struct values *v, struct str key, struct str now, struct str *ret,
                                  struct tide_err *err)
{
    const struct map *scope = position_scope(&v->x->view->content, v->p->frame, false);
    const struct spec_rule *rule = spec_conflict_rule(v->p->graph, key);
    const char *before = scope ? map_get(scope, key) : NULL;

    *ret = now;
    if (!before || !is_beside(v, key))
        return TIDE_OK;
    return memory_merge_value(rule ? (enum spec_conflict)rule->rule : SPEC_CONFLICT_ERROR, key, str_from(before), now,
                              &v->x->scratch, ret, err);
}

enum tide_code values_take(struct values *v, const struct json *output, struct tide_err *err)
{
    struct json_out o = json_out_to(&v->json);
    struct str key, value;

    json_out_begin(&o, '{');
    for (const struct json *m = output->first; m; m = m->next) {
        key = json_key_text(&v->x->scratch, m);
        if (!texts_have(&v->p->node->outputs, key))
            continue;
        if (exec_is_excluded(v->x, key)) {
            if (exec_hide(v->x, key, json_source(m), err))
                return err->code;
            continue;
        }
        if (resolve_key(v, key, json_source(m), &value, err))
            return err->code;
        json_out_kraw(&o, key, value);
        v->bytes += key.len + value.len;
        v->n++;
    }
    json_out_end(&o, '}');
    return TIDE_OK;
}

/* What may be stored of it, and seen by conditions and models. */
struct str end_without_secrets(struct exec *x, const struct json *output)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    struct str rest;
    bool found = false;

    for (const struct json *m = output->type == JSON_OBJECT ? output->first : NULL; m && !found; m = m->next)
        found = exec_is_excluded(x, json_key_text(&x->scratch, m));
    if (!found) {
        struct str whole = json_source(output);

        redact_json(x->s->store, &x->scratch, &whole);
        return whole;
    }
    json_out_begin(&o, '{');
    for (const struct json *m = output->first; m; m = m->next)
        if (!exec_is_excluded(x, json_key_text(&x->scratch, m)))
            json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    json_out_end(&o, '}');
    rest = arena_dup(&x->scratch, buf_view(&text));
    redact_json(x->s->store, &x->scratch, &rest);
    return rest;
}

static size_t bytes_of(const struct map *scope)
{
    size_t n = 0;

    for (struct map_entry *e = scope ? map_next(scope, NULL) : NULL; e; e = map_next(scope, e))
        n += e->key_len + strlen(e->value);
    return n;
}

/* All memories together, and only when what was set since the last count could have filled one. */
enum tide_code end_check_size(struct exec *x, struct str frame, size_t more, struct tide_err *err)
{
    struct content *c = &x->view->content;
    size_t before;

    x->bytes_set += more;
    if (x->bytes_known && x->bytes_counted + x->bytes_set <= EXEC_MEMORY_MAX)
        return TIDE_OK;
    before = bytes_of(position_scope(c, frame, false));
    if (before + more > EXEC_MEMORY_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "the memory would hold %zu bytes, more than %zu: keep big data in files",
                         before + more, EXEC_MEMORY_MAX);
    x->bytes_known = true;
    x->bytes_set = more;
    x->bytes_counted = bytes_of(&c->memory);
    for (struct map_entry *e = map_next(&c->position.scopes, NULL); e; e = map_next(&c->position.scopes, e))
        x->bytes_counted += bytes_of(e->value);
    return TIDE_OK;
}
