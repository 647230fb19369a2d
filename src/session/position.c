/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a graph is, folded from what it recorded: which nodes are to run, which run, what failed, and what the graphs inside
 * nodes remember. A node that is complete leaves nothing here but its visits, so that this stays as small as what is open.
 */
#include "base/invariant.h"
#include "base/timefmt.h"
#include "session/fold.h"
#include "session/value_places.h"

static void task_free(void *p)
{
    struct task *t = p;

    if (!t)
        return;
    free(t->branch);
    free(t->inputs);
    free(t);
}

static void scope_free(void *p)
{
    map_done(p, free);
    free(p);
}

void position_done(struct position *p)
{
    map_done(&p->ready, task_free);
    map_done(&p->active, task_free);
    map_done(&p->scopes, scope_free);
    map_done(&p->beneath, free);
    map_done(&p->writers, free);
    map_done(&p->troubles, free);
    map_done(&p->dropped, free);
    free(p->checkpoints);
    free(p->graph_digest);
    free(p->graph_dir);
    free(p->goal);
}

struct map *position_scope(struct content *c, struct str frame, bool make)
{
    struct map *scope = frame.len ? map_get(&c->position.scopes, frame) : &c->memory;

    if (!scope && make) {
        scope = mem_zero(sizeof *scope);
        map_put(&c->position.scopes, frame, scope);
    }
    return scope;
}

/* Only a shorter one: no frame is below itself, no matter who wrote the log. */
void position_set_beneath(struct position *p, struct str frame, struct str beneath)
{
    if (beneath.len && beneath.len < frame.len)
        map_set_text(&p->beneath, frame, beneath);
}

const char *position_value(const struct content *c, struct str frame, struct str key)
{
    for (;; frame = str_from(map_get(&c->position.beneath, frame))) {
        const struct map *scope = frame.len ? map_get(&c->position.scopes, frame) : &c->memory;
        const char *value = scope ? map_get(scope, key) : NULL;

        if (value || !map_get(&c->position.beneath, frame))
            return value;
        INVARIANT(strlen(map_get(&c->position.beneath, frame)) < frame.len); /* it ends */
    }
}

void position_part(struct content *c, struct str frame)
{
    struct map *own = position_scope(c, frame, true);
    struct str at = str_from(map_get(&c->position.beneath, frame));

    for (; at.len; at = str_from(map_get(&c->position.beneath, at))) {
        const struct map *scope = map_get(&c->position.scopes, at);

        for (struct map_entry *e = scope ? map_next(scope, NULL) : NULL; e; e = map_next(scope, e))
            if (!map_get(own, map_key(e))) {
                map_set_text(own, map_key(e), str_from(e->value));
                place_copy(c, at, frame, map_key(e));
            }
    }
    map_drop(&c->position.beneath, frame);
}

/* ---- branches ---- */

bool branch_is_within(struct str branch, struct str outer)
{
    return !outer.len || (str_starts(branch, outer) && (branch.len == outer.len || branch.ptr[outer.len] == '/'));
}

static struct str branch_common(struct str a, struct str b)
{
    while (!branch_is_within(b, a)) {
        while (a.len && a.ptr[a.len - 1] != '/')
            a.len--;
        a.len -= a.len > 0; /* the slash */
    }
    return a;
}

/* What stands before the last part of a name: "review#2" of "review#2/ask". */
static struct str frame_of(struct str node)
{
    char end = node.len && node.ptr[node.len - 1] == ']' ? '[' : '/';

    while (node.len && node.ptr[node.len - 1] != end)
        node.len--;
    node.len -= node.len > 0;
    return node;
}

/* Where branches have come together, what they set is no longer in conflict with anybody's of that graph. */
static void join_writers(struct position *p, struct str frame, struct str branch)
{
    for (struct map_entry *e = map_next(&p->writers, NULL); e; e = map_next(&p->writers, e)) {
        struct str writer = str_from(e->value);

        if (!str_starts(map_key(e), frame) || e->key[frame.len] != '\x1f')
            continue;
        if (writer.len == branch.len || !branch_is_within(writer, branch))
            continue;
        if (branch.len)
            map_set_text(&p->writers, map_key(e), branch);
        else
            map_drop(&p->writers, map_key(e));
    }
}

/* ---- frames ---- */

static bool is_inside(struct str name, struct str frame)
{
    return str_starts(name, frame) && (name.len == frame.len || strchr("/[#\x1f", name.ptr[frame.len]));
}

static void drop_inside(struct map *m, struct str frame, void (*free_value)(void *))
{
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        if (is_inside(map_key(e), frame))
            free_value(map_remove(m, map_key(e)));
    }
}

static const char *frame_name(struct arena *a, struct str node, int64_t visit)
{
    return arena_printf(a, "%.*s#%lld", STR_ARG(node), (long long)visit);
}

static void drop_scopes(struct content *c, struct arena *a, const char *frame)
{
    struct position *p = &c->position;
    const char *const names[] = {frame, arena_printf(a, "%s" ITEMS_FRAME, frame)};

    for (size_t i = 0; i < 2; i++) {
        scope_free(map_remove(&p->scopes, str_from(names[i])));
        place_drop_frame(c, str_from(names[i]));
        map_drop(&p->beneath, str_from(names[i]));
    }
}

/*
 * A node that is over takes along what the graph inside it had. Of a long map many are over and many have failed: what
 * began inside was first visited behind the node itself, and only that is walked over; maps that hold what is open alone
 * are small.
 */
static void drop_frame(struct content *c, struct str node, int64_t visit, struct arena *a)
{
    struct position *p = &c->position;
    struct str frame;

    if (!p->scopes.live)
        return;
    frame = str_from(frame_name(a, node, visit));
    if (!map_get(&p->scopes, frame)) /* nothing ran inside it */
        return;
    drop_scopes(c, a, frame.ptr);
    for (struct map_entry *e = map_find(&c->visits, node); e; e = map_next(&c->visits, e)) {
        struct str name = map_key(e);

        if (!is_inside(name, frame))
            continue;
        drop_scopes(c, a, frame_name(a, name, *(int64_t *)e->value));
        task_free(map_remove(&p->active, name));
        map_drop(&p->troubles, name);
        map_drop(&p->dropped, name);
        map_drop(&c->visits, name);
    }
    drop_inside(&p->ready, frame, task_free);
    drop_inside(&p->writers, frame, free);
    drop_inside(&c->conversations, frame, free);
    drop_inside(&c->outputs, frame, scope_free);
}

/* ---- events ---- */

void content_run_started(struct content *c, const struct fact *f)
{
    struct position *p = &c->position;
    struct str digest = text_of(f, "graph_digest");
    const struct json *checkpoints = json_get(f->body, STR("checkpoints"));

    if (!digest.len)
        return;
    if (json_get(f->body, STR("graph_dir")) || !p->graph_digest || !str_eq(digest, str_from(p->graph_digest)))
        text_set(&p->graph_dir, text_of(f, "graph_dir"));
    if (json_get(f->body, STR("goal")))
        text_set(&p->goal, text_of(f, "goal"));
    text_set(&p->graph_digest, digest);
    text_set(&p->checkpoints, checkpoints ? json_source(checkpoints) : STR(""));
    if (json_get(f->body, STR("graph"))) {
        memcpy(p->graph_session, c->session, sizeof p->graph_session);
        p->graph_seq = f->ev->seq;
    }
}

/* What several edges give to one target: each its members, the later ones win. */
static void add_inputs(struct task *t, const struct json *values, struct arena *a)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&out);
    struct json *before = NULL;

    if (!values || values->type != JSON_OBJECT || !values->first)
        return;
    if (t->inputs && json_parse(a, str_from(t->inputs), NULL, &before, NULL, NULL))
        before = NULL;
    json_out_begin(&o, '{');
    for (const struct json *m = before ? before->first : NULL; m; m = m->next) {
        if (!json_get(values, json_key_text(a, m)))
            json_out_kraw(&o, json_key_text(a, m), json_source(m));
    }
    for (const struct json *m = values->first; m; m = m->next)
        json_out_kraw(&o, json_key_text(a, m), json_source(m));
    json_out_end(&o, '}');
    text_set(&t->inputs, buf_view(&out));
}

void content_edge_taken(struct content *c, const struct fact *f)
{
    struct str to = text_of(f, "to"), branch = text_of(f, "branch");
    struct task *t = map_get(&c->position.ready, to);

    text_set(&c->next_node, to);
    if (!t) {
        t = mem_zero(sizeof *t);
        t->seq = f->ev->seq;
        text_set(&t->branch, branch);
        map_put(&c->position.ready, to, t);
    } else {
        struct str both = branch_common(branch, str_from(t->branch));

        text_set(&t->branch, arena_dup(f->arena, both));
    }
    add_inputs(t, json_get(f->body, STR("values")), f->arena);
}

/* It was ready, or it is tried again; what plain appends record about others only counts its visits. */
void content_node_started(struct content *c, const struct fact *f)
{
    struct position *p = &c->position;
    struct str node = text_of(f, "node");
    int64_t *seen = map_get(&c->visits, node);
    int64_t visit = json_get_int(f->body, STR("visit"), (seen ? *seen : 0) + 1);
    struct task *t = map_get(&p->active, node);

    map_set_int(&c->visits, node, visit);
    map_drop(&p->dropped, node);
    text_set(&c->node, node);
    text_set(&c->next_node, STR(""));
    if (!t || t->visit != visit) {
        task_free(map_remove(&p->active, node));
        t = map_remove(&p->ready, node);
        t = t ? t : mem_zero(sizeof *t);
        t->seq = t->seq ? t->seq : f->ev->seq;
        map_put(&p->active, node, t);
        p->steps++;
        text_set(&t->branch, text_of(f, "branch"));
        join_writers(p, frame_of(node), str_from(t->branch));
    }
    t->state = TASK_RUNNING;
    t->visit = visit;
    t->attempt = json_get_int(f->body, STR("attempt"), 0);
    t->retry_at_ms = 0;
    t->happened = t->unbegun = false;
}

/* It was started and never began: the person who resumes begins it, in the same visit and the same attempt. */
void content_tool_withdrawn(struct content *c, const struct fact *f)
{
    struct task *t = map_get(&c->position.active, text_of(f, "node"));

    if (t && t->visit == json_get_int(f->body, STR("visit"), t->visit))
        t->state = TASK_WITHDRAWN;
}

static void node_over(struct content *c, const struct fact *f, struct str node)
{
    struct task *t = map_remove(&c->position.active, node);

    if (t)
        drop_frame(c, node, t->visit, f->arena);
    task_free(t);
}

/* `deciding`: its work is done, which way it continues is not known yet; node.decided is its end then. */
void content_node_completed(struct content *c, const struct fact *f)
{
    struct str node = text_of(f, "node");
    struct task *t = map_get(&c->position.active, node);

    text_set(&c->node, node);
    if (t && json_get_bool(f->body, STR("deciding"), false))
        t->state = TASK_DECIDING;
    else
        node_over(c, f, node);
}

void content_node_decided(struct content *c, const struct fact *f)
{
    node_over(c, f, text_of(f, "node"));
}

/* Tried again later, failed for good and kept so that a resume finds it, or taken care of: then it is over. */
void content_node_failed(struct content *c, const struct fact *f)
{
    struct str node = text_of(f, "node"), retry_at = text_of(f, "retry_at");
    struct position *p = &c->position;
    struct task *t = map_get(&p->active, node);
    int64_t *troubles = map_get(&p->troubles, node);

    text_set(&c->node, node);
    c->failures++;
    map_set_int(&p->troubles, node, (troubles ? *troubles : 0) + 1);
    p->retries += retry_at.len > 0;
    if (!t)
        return;
    if (json_get_bool(f->body, STR("dropped"), false))
        map_set_int(&p->dropped, node, t->visit);
    t->attempt = json_get_int(f->body, STR("attempt"), t->attempt);
    t->happened = json_get_bool(f->body, STR("happened"), false);
    t->unbegun = !json_get_bool(f->body, STR("begun"), true);
    t->retry_at_ms = 0;
    if (retry_at.len && time_parse(retry_at, &t->retry_at_ms))
        t->state = TASK_RETRY;
    else if (json_get_bool(f->body, STR("handled"), false) || json_get_bool(f->body, STR("dropped"), false))
        node_over(c, f, node);
    else
        t->state = TASK_FAILED;
}

/* The same node in a newer graph; a name that is taken is refused before this is recorded. */
void content_node_renamed(struct content *c, const struct fact *f)
{
    struct map *const maps[] = {&c->position.ready,   &c->position.active, &c->position.troubles,
                                &c->position.dropped, &c->visits,          &c->conversations,
                                &c->outputs};
    struct str from = text_of(f, "from"), to = text_of(f, "to");

    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        void *value = map_get(maps[i], to) ? NULL : map_remove(maps[i], from);

        if (value)
            map_put(maps[i], to, value);
    }
    if (str_eq(str_from(c->node), from))
        text_set(&c->node, to);
    if (str_eq(str_from(c->next_node), from))
        text_set(&c->next_node, to);
}

/* ---- as JSON ---- */

static const char *const state_words[] = {"ready", "running", "retry", "failed", "deciding", "withdrawn"};

static void put_number(struct json_out *o, const char *key, int64_t v)
{
    if (v)
        json_out_kint(o, str_from(key), v);
}

static void put_tasks(struct json_out *o, const char *name, const struct map *m, enum state_part part)
{
    json_out_key(o, str_from(name));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        const struct task *t = e->value;

        json_out_key(o, map_key(e));
        json_out_begin(o, '{');
        json_out_kstr(o, STR("state"), str_from(state_words[t->state]));
        put_number(o, "visit", t->visit);
        put_number(o, "attempt", t->attempt);
        put_number(o, "seq", t->seq);
        put_number(o, "retry_at_ms", t->retry_at_ms);
        if (t->happened)
            json_out_kbool(o, STR("happened"), true);
        if (t->unbegun)
            json_out_kbool(o, STR("unbegun"), true);
        json_out_kstr_opt(o, STR("branch"), str_from(t->branch));
        if (t->inputs && part != STATE_SUMMARY)
            json_out_kraw(o, STR("inputs"), str_from(t->inputs));
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
}

static void put_texts(struct json_out *o, const char *name, const struct map *m)
{
    json_out_key(o, str_from(name));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e))
        json_out_kstr(o, map_key(e), str_from(e->value));
    json_out_end(o, '}');
}

static void put_inner(struct json_out *o, const struct content *c, const struct map *weights)
{
    const struct position *p = &c->position;

    json_out_key(o, STR("scopes"));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(&p->scopes, NULL); e; e = map_next(&p->scopes, e)) {
        json_out_key(o, map_key(e));
        place_put_values(o, c, map_key(e), e->value, weights);
    }
    json_out_end(o, '}');
    if (p->beneath.live)
        put_texts(o, "beneath", &p->beneath);
    put_texts(o, "writers", &p->writers);
    state_put_ints(o, "troubles", &p->troubles);
}

void position_encode(struct json_out *o, const struct content *c, enum state_part part, const struct map *weights)
{
    const struct position *p = &c->position;
    bool inner = part != STATE_SUMMARY && (p->scopes.live || p->writers.live || p->troubles.live);

    if (!p->graph_digest && !p->steps && !p->retries && !p->ready.live && !inner)
        return;
    json_out_key(o, STR("position"));
    json_out_begin(o, '{');
    put_tasks(o, "ready", &p->ready, part);
    put_tasks(o, "active", &p->active, part);
    if (part != STATE_SUMMARY)
        put_inner(o, c, weights);
    if (p->dropped.live)
        state_put_ints(o, "dropped", &p->dropped);
    put_number(o, "steps", p->steps);
    put_number(o, "retries", p->retries);
    if (p->checkpoints && part != STATE_SUMMARY)
        json_out_kraw(o, STR("checkpoints"), str_from(p->checkpoints));
    json_out_kstr_opt(o, STR("graph_digest"), str_from(p->graph_digest));
    json_out_kstr_opt(o, STR("graph_dir"), str_from(p->graph_dir));
    json_out_kstr_opt(o, STR("goal"), str_from(p->goal));
    json_out_kstr_opt(o, STR("graph_session"), str_from(p->graph_session));
    put_number(o, "graph_seq", p->graph_seq);
    json_out_end(o, '}');
}

/* The oldest of those whose names begin so; those that work before those that are to be tried again, or failed. */
static const struct map_entry *oldest(const struct map *m, struct str beginning)
{
    const struct map_entry *found = NULL;

    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        const struct task *t = e->value, *best = found ? found->value : NULL;
        bool works = t->state == TASK_RUNNING || t->state == TASK_DECIDING;
        bool best_works = best && (best->state == TASK_RUNNING || best->state == TASK_DECIDING);

        if (str_starts(map_key(e), beginning) &&
            (!best || works > best_works || (works == best_works && t->seq < best->seq)))
            found = e;
    }
    return found;
}

const char *position_under_way(const struct position *p)
{
    const struct map_entry *at = oldest(&p->active, STR("")), *inside = at;

    while (inside) { /* a node with a graph or items inside is as far as they are */
        AUTO(buf_done) struct buf frame = BUF_INIT(SIZE_MAX / 4);

        at = inside;
        buf_addf(&frame, "%s#", at->key);
        inside = oldest(&p->active, buf_view(&frame));
    }
    at = at ? at : oldest(&p->ready, STR(""));
    return at ? at->key : NULL;
}

static void get_tasks(struct arena *a, struct map *m, const struct json *object)
{
    for (const struct json *v = object ? object->first : NULL; v; v = v->next) {
        struct task *t = mem_zero(sizeof *t);
        const struct json *inputs = json_get(v, STR("inputs"));
        struct str state = json_get_text(a, v, STR("state"));

        for (int i = 0; i <= TASK_WITHDRAWN; i++) {
            if (str_eq(state, str_from(state_words[i])))
                t->state = (enum task_state)i;
        }
        t->visit = json_get_int(v, STR("visit"), 0);
        t->attempt = json_get_int(v, STR("attempt"), 0);
        t->seq = json_get_int(v, STR("seq"), 0);
        t->retry_at_ms = json_get_int(v, STR("retry_at_ms"), 0);
        t->happened = json_get_bool(v, STR("happened"), false);
        t->unbegun = json_get_bool(v, STR("unbegun"), false);
        text_set(&t->branch, json_get_text(a, v, STR("branch")));
        text_set(&t->inputs, inputs ? json_source(inputs) : STR(""));
        task_free(map_put(m, json_key_text(a, v), t));
    }
}

void position_decode(struct arena *a, struct position *p, const struct json *v)
{
    const struct json *scopes = json_get(v, STR("scopes")), *beneath = json_get(v, STR("beneath")),
                      *writers = json_get(v, STR("writers")), *checkpoints = json_get(v, STR("checkpoints"));

    get_tasks(a, &p->ready, json_get(v, STR("ready")));
    get_tasks(a, &p->active, json_get(v, STR("active")));
    for (const struct json *s = scopes ? scopes->first : NULL; s; s = s->next) {
        struct map *scope = mem_zero(sizeof *scope);
        struct str frame = json_key_text(a, s);

        position_set_beneath(p, frame, json_get_text(a, beneath, frame));

        for (const struct json *m = s->first; m; m = m->next)
            map_set_text(scope, json_key_text(a, m), json_source(m));
        map_put(&p->scopes, frame, scope);
    }
    for (const struct json *w = writers ? writers->first : NULL; w; w = w->next)
        map_set_text(&p->writers, json_key_text(a, w), w->type == JSON_STRING ? json_text(a, w) : STR(""));
    state_get_ints(a, &p->troubles, json_get(v, STR("troubles")));
    state_get_ints(a, &p->dropped, json_get(v, STR("dropped")));
    p->steps = json_get_int(v, STR("steps"), 0);
    p->retries = json_get_int(v, STR("retries"), 0);
    text_set(&p->checkpoints, checkpoints ? json_source(checkpoints) : STR(""));
    text_set(&p->graph_digest, json_get_text(a, v, STR("graph_digest")));
    text_set(&p->graph_dir, json_get_text(a, v, STR("graph_dir")));
    text_set(&p->goal, json_get_text(a, v, STR("goal")));
    snprintf(p->graph_session, sizeof p->graph_session, "%.*s", STR_ARG(json_get_text(a, v, STR("graph_session"))));
    p->graph_seq = json_get_int(v, STR("graph_seq"), 0);
}
