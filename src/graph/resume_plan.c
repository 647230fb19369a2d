/* SPDX-License-Identifier: Apache-2.0 */
/* An outlook as JSON: what `tidemark sessions resume --dry-run` and embedders see. */
#include "graph/resume.h"

static void put_text(struct json_out *o, const char *key, const char *text)
{
    json_out_key(o, str_from(key));
    if (text && text[0])
        json_out_str(o, str_from(text));
    else
        json_out_null(o);
}

static void begin_list(struct json_out *o, const char *key)
{
    json_out_key(o, str_from(key));
    json_out_begin(o, '[');
}

static void put_from(struct json_out *out, const char *checkpoint, int64_t seq, const char *wanted)
{
    json_out_key(out, STR("from"));
    json_out_begin(out, '{');
    put_text(out, "checkpoint", checkpoint);
    json_out_kint(out, STR("seq"), seq);
    put_text(out, "instead_of", wanted);
    json_out_end(out, '}');
}

static const char *const state_words[] = {"ready", "running", "retry", "failed", "deciding", "withdrawn"};

/* It must happen once, and did: before what is rolled back, or what it gave could not be taken then. */
static bool answers_from_log(const struct outlook *o, const char *name, const struct task *t)
{
    const int64_t *visits = map_get(&o->x->view->content.visits, str_from(name));

    if (t->state == TASK_FAILED)
        return t->happened && !outlook_is_named(o->opt->retry, name);
    return t->state == TASK_READY && !o->fork && kept_done(o->kept, name, (visits ? *visits : 0) + 1);
}

static void put_tasks(struct json_out *out, const struct outlook *o, const struct map *tasks)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct task *t = e->value;

        if (o && outlook_is_named(o->opt->happened, e->key))
            continue;
        json_out_begin(out, '{');
        json_out_kstr(out, STR("node"), map_key(e));
        json_out_kstr(out, STR("state"), str_from(state_words[t->state]));
        json_out_kint(out, STR("visit"), t->visit);
        json_out_kint(out, STR("attempt"), t->attempt);
        if (o && answers_from_log(o, e->key, t))
            json_out_kbool(out, STR("from_log"), true);
        json_out_end(out, '}');
    }
}

static void put_nodes(struct json_out *out, const struct outlook *o, const struct content *c)
{
    const struct position *p = &c->position;

    begin_list(out, "nodes_to_run");
    put_tasks(out, o, &p->active);
    put_tasks(out, o, &p->ready);
    json_out_end(out, ']');
    begin_list(out, "happened"); /* as somebody says */
    for (const char *const *n = o ? o->opt->happened : NULL; n && *n; n++)
        if (map_get(&p->active, str_from(*n)) || map_get(&p->ready, str_from(*n)))
            json_out_str(out, str_from(*n));
    json_out_end(out, ']');
    begin_list(out, "complete");
    for (struct map_entry *e = map_next(&c->visits, NULL); e; e = map_next(&c->visits, e))
        if (!map_get(&p->active, map_key(e)) && !map_get(&p->ready, map_key(e)) && !map_get(&p->dropped, map_key(e)))
            json_out_str(out, map_key(e));
    json_out_end(out, ']');
    begin_list(out, "failed");
    for (struct map_entry *e = map_next(&p->dropped, NULL); e; e = map_next(&p->dropped, e))
        json_out_str(out, map_key(e));
    json_out_end(out, ']');
}

static void put_missing(struct json_out *out, const struct outlook *o)
{
    begin_list(out, "missing_inputs");
    for (size_t i = 0; i < o->n_missing; i++) {
        json_out_begin(out, '{');
        json_out_kstr(out, STR("node"), str_from(o->missing[i].node));
        json_out_kstr(out, STR("key"), str_from(o->missing[i].key));
        json_out_kbool(out, STR("never_stored"), o->missing[i].secret);
        json_out_kbool(out, STR("later"), o->missing[i].later);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

/* Which keys, not what they are set to: some of it is stored nowhere. */
static void put_overrides(struct json_out *out, const struct outlook *o)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    begin_list(out, "overrides");
    if (o->opt->memory && !json_parse(&a, str_from(o->opt->memory), NULL, &v, NULL, NULL))
        for (const struct json *m = v->type == JSON_OBJECT ? v->first : NULL; m; m = m->next) {
            json_out_begin(out, '{');
            json_out_kstr(out, STR("key"), json_key_text(&a, m));
            json_out_kbool(out, STR("never_stored"), exec_is_excluded(o->x, json_key_text(&a, m)));
            json_out_end(out, '}');
        }
    json_out_end(out, ']');
    begin_list(out, "renames");
    for (const char *const *r = o->opt->renames; r && r[0] && r[1]; r += 2) {
        json_out_begin(out, '{');
        json_out_kstr(out, STR("from"), str_from(r[0]));
        json_out_kstr(out, STR("to"), str_from(r[1]));
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void put_hints(struct json_out *out, const struct tide_hint *hints, size_t n)
{
    begin_list(out, "hints");
    for (size_t i = 0; i < n && hints[i].action; i++) {
        json_out_begin(out, '{');
        json_out_kstr(out, STR("action"), str_from(tide_action_name(hints[i].action)));
        json_out_kstr(out, STR("session_id"), str_from(hints[i].session_id));
        json_out_kraw(out, STR("arguments"), str_from(hints[i].arguments));
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void put_refused(struct json_out *out, const struct outlook *o)
{
    begin_list(out, "refused");
    for (size_t i = 0; i < o->n_refused; i++) {
        const struct refusal *r = &o->refused[i];

        json_out_begin(out, '{');
        json_out_kstr(out, STR("code"), str_from(tide_code_name(r->code)));
        put_text(out, "node", r->node);
        json_out_kstr(out, STR("reason"), str_from(r->what));
        put_hints(out, r->hints, sizeof r->hints / sizeof r->hints[0]);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
    begin_list(out, "warnings");
    for (size_t i = 0; i < o->n_warnings; i++)
        json_out_str(out, str_from(o->warnings[i]));
    json_out_end(out, ']');
}

void outlook_json(const struct outlook *o, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    const struct state *view = o->x->view ? o->x->view : o->s->state;
    const char *before = o->s->state->content.position.graph_digest;

    json_out_begin(&out, '{');
    json_out_kstr(&out, STR("session_id"), str_from(o->s->head.id));
    json_out_key(&out, STR("graph"));
    json_out_begin(&out, '{');
    json_out_kstr(&out, STR("id"), o->x->graph->id);
    json_out_kstr(&out, STR("digest"), str_from(o->x->g->digest));
    json_out_kbool(&out, STR("changed"), before && strcmp(before, o->x->g->digest) != 0);
    json_out_end(&out, '}');
    put_from(&out, o->checkpoint, o->checkpoint[0] ? o->seq : o->s->state->seq, o->fell_back ? o->wanted : NULL);
    json_out_kstr(&out, STR("action"), o->fork ? STR("fork") : o->rollback ? STR("rollback") : STR("resume"));
    put_nodes(&out, o, &view->content);
    put_missing(&out, o);
    put_overrides(&out, o);
    put_refused(&out, o);
    json_out_end(&out, '}');
}

const char *rescue_refusal(struct arena *a, const struct rescue *r)
{
    return r->again[0] ? arena_printf(a, "this would happen again, and must happen once: %s", r->again) : NULL;
}

struct tide_hint rescue_hint(const struct rescue *r)
{
    struct tide_err err = {.code = TIDE_EFFECTS};

    tide_hint_with(&err, TIDE_ACTION_REPEAT, r->session, "\"fallback\":true,\"redo_effects\":true");
    return err.hints[0];
}

void rescue_json(const struct rescue *r, struct buf *buf)
{
    static const char *const none[] = {"missing_inputs", "overrides", "renames"};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out out = json_out_to(buf);

    json_out_begin(&out, '{');
    json_out_kstr(&out, STR("session_id"), str_from(r->session));
    put_from(&out, r->checkpoint, r->seq, NULL);
    json_out_kstr(&out, STR("action"), STR("fork"));
    put_nodes(&out, NULL, &r->then->content);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        begin_list(&out, none[i]);
        json_out_end(&out, ']');
    }
    begin_list(&out, "refused");
    if (r->again[0]) {
        json_out_begin(&out, '{');
        json_out_kstr(&out, STR("code"), str_from(tide_code_name(TIDE_EFFECTS)));
        put_text(&out, "node", NULL);
        put_text(&out, "reason", rescue_refusal(&a, r));
        put_hints(&out, (struct tide_hint[]){rescue_hint(r)}, 1);
        json_out_end(&out, '}');
    }
    json_out_end(&out, ']');
    begin_list(&out, "warnings");
    json_out_str(&out, str_from(r->damage.msg));
    json_out_end(&out, ']');
    json_out_end(&out, '}');
}
