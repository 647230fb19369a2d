/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of each node, folded from the events of a run. Nodes of the graph itself have a row each; of what runs inside
 * them only the number is kept and the last name, so that a map over thousands of items stays one row. Events come on any
 * thread, and an agent's may come beside another's: whoever touches a view holds its lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "terminal/glyph.h"
#include "cli/graph/graph_view_internal.h"

#define EVERY_MS 90 /* between two drawings */

const char *view_time(char out[VIEW_TIME], int64_t ms)
{
    if (ms < 60000)
        snprintf(out, VIEW_TIME, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
    else if (ms < 3600000)
        snprintf(out, VIEW_TIME, "%" PRId64 "m %02" PRId64 "s", ms / 60000, ms / 1000 % 60);
    else
        snprintf(out, VIEW_TIME, "%" PRId64 "h %02" PRId64 "m", ms / 3600000, ms / 60000 % 60);
    return out;
}

const char *view_tokens(char out[VIEW_TIME], int64_t tokens)
{
    if (tokens < 10000)
        snprintf(out, VIEW_TIME, "%" PRId64, tokens);
    else
        snprintf(out, VIEW_TIME, "%.1fk", (double)tokens / 1000);
    return out;
}

struct graph_view *graph_view_open(const tide_graph *graph, enum graph_show how, bool color)
{
    struct graph_view *v = mem_zero(sizeof(*v));
    const struct graph_outline *g;

    *v = (struct graph_view){.how = how, .color = color, .arena = ARENA_INIT, .began_ms = monotonic_ms()};
    v->g = g = graph_outline(&v->arena, graph);
    pthread_mutex_init(&v->lock, NULL);
    graph_order_make(&v->arena, g, &v->order);
    v->rows = arena_zero(&v->arena, (g->n_nodes + 1) * sizeof(*v->rows));
    for (size_t i = 0; i < g->n_nodes; i++) {
        v->rows[i].node = &g->nodes[i];
        map_put(&v->index, g->nodes[i].id, &v->rows[i]);
    }
    return v;
}

/* The node of the graph itself in which this one stands: "review" of "review#2/ask". */
static struct view_row *row_of(const struct graph_view *v, const char *name)
{
    return name ? map_get(&v->index, (struct str){name, strcspn(name, "#")}) : NULL;
}

static bool is_inside(const char *name)
{
    return strchr(name, '#') != NULL;
}

/* Nodes of the graph that it runs. */
static int64_t inside_of(const struct outline_node *n)
{
    return n->type == NODE_SUBGRAPH && n->inside ? (int64_t)n->inside->n_nodes : 0;
}

/* ---- what was before ---- */

static void take_visits(struct graph_view *v, struct arena *a, const struct json *visits)
{
    for (const struct json *m = visits ? visits->first : NULL; m; m = m->next) {
        struct view_row *r = map_get(&v->index, json_key_text(a, m));

        if (!r || !json_int(m, &r->visit))
            continue;
        r->sign = SIGN_DONE;
        snprintf(r->note, sizeof(r->note), "before");
    }
}

static void take_tasks(struct graph_view *v, struct arena *a, const struct json *tasks)
{
    for (const struct json *m = tasks ? tasks->first : NULL; m; m = m->next) {
        struct str state = json_get_text(a, m, STR("state"));
        struct view_row *r = map_get(&v->index, json_key_text(a, m));

        if (!r)
            continue;
        r->sign = str_eq(state, STR("failed")) ? SIGN_FAILED : SIGN_WAITING;
        snprintf(r->note, sizeof(r->note), "%s",
                 str_eq(state, STR("failed"))    ? "failed before"
                 : str_eq(state, STR("running")) ? "was interrupted"
                                                 : "");
    }
}

static bool is_direct(struct str name, struct str frame)
{
    return name.len > frame.len && str_starts(name, frame) && strchr("/[", name.ptr[frame.len]) &&
           !memchr(name.ptr + frame.len, '#', name.len - frame.len);
}

/* How much of what is inside a node was complete: a map has a result for each, a graph has visits. */
static void take_inside(struct graph_view *v, struct arena *a, const struct json *scope, const struct json *content)
{
    struct str frame = json_key_text(a, scope);
    const struct json *items = json_get(scope, STR("items")), *visits = json_get(content, STR("visits")),
                      *active = json_get(json_get(content, STR("position")), STR("active"));
    size_t hash = frame.len;
    struct view_row *r;

    while (hash > 0 && frame.ptr[hash - 1] != '#')
        hash--;
    r = hash ? map_get(&v->index, (struct str){frame.ptr, hash - 1}) : NULL;
    if (!r || frame.ptr[frame.len - 1] == ']') /* the memory of a map's items */
        return;
    if (r->node->type == NODE_MAP) {
        r->inside = items ? (int64_t)items->count : 0;
        r->inside_done = (int64_t)scope->count - 1;
        return;
    }
    r->inside = inside_of(r->node);
    for (const struct json *m = visits ? visits->first : NULL; m; m = m->next)
        r->inside_done += is_direct(json_key_text(a, m), frame) && !json_get(active, json_key_text(a, m));
}

void graph_view_before(struct graph_view *v, tide_session *session, int64_t seq)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct json *content, *position, *scopes;
    struct json *state = NULL;

    if (tide_session_get_state(session, seq, &text, NULL) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL))
        return; /* it is told as it goes on */
    content = json_get(state, STR("content"));
    position = json_get(content, STR("position"));
    pthread_mutex_lock(&v->lock);
    take_visits(v, &a, json_get(content, STR("visits")));
    take_tasks(v, &a, json_get(position, STR("active")));
    take_tasks(v, &a, json_get(position, STR("ready")));
    scopes = json_get(position, STR("scopes"));
    for (const struct json *m = scopes ? scopes->first : NULL; m; m = m->next)
        take_inside(v, &a, m, content);
    pthread_mutex_unlock(&v->lock);
}

/* ---- folding ---- */

static void set_note(struct view_row *r, const char *text)
{
    if (r)
        snprintf(r->note, sizeof(r->note), "%s", text ? text : "");
}

/* A node or item inside: "ask" of "review#2/ask", "[3]" of "pages#1[3]". */
static const char *local_name(const char *name)
{
    const char *slash = strrchr(name, '/'), *item = strrchr(name, '[');

    return slash && (!item || slash > item) ? slash + 1 : item ? item : name;
}

static void on_start(struct view_row *r, const struct tide_graph_event *e)
{
    if (is_inside(e->node)) {
        if (r->sign != SIGN_RUNNING) /* begun before this run */
            r->began_ms = monotonic_ms();
        r->sign = SIGN_RUNNING;
        r->inside = e->items > r->inside ? e->items : r->inside;
        set_note(r, r->node->type == NODE_MAP ? "" : local_name(e->node));
        return;
    }
    r->sign = r->node->type == NODE_HUMAN_INPUT ? SIGN_PARKED : SIGN_RUNNING;
    r->visit = e->visit;
    r->attempt = e->attempt;
    r->attempts = e->attempts;
    r->began_ms = monotonic_ms();
    r->inside = inside_of(r->node);
    r->inside_done = 0;
    set_note(r, r->sign == SIGN_PARKED ? "waits for an answer" : "");
}

static void on_end(struct graph_view *v, struct view_row *r, const struct tide_graph_event *e)
{
    if (is_inside(e->node)) {
        bool direct = strcspn(strchr(e->node, '#') + 1, "#") == strlen(strchr(e->node, '#') + 1);

        r->inside_done += direct; /* what is inside that again is part of it */
        return;
    }
    v->nodes++;
    r->sign = SIGN_DONE;
    r->ms = e->ms > 0 || !r->began_ms ? e->ms : monotonic_ms() - r->began_ms;
    r->inside_done = r->inside_done > r->inside || !r->inside ? r->inside_done : r->inside;
    set_note(r, "");
    v->last_done = r;
}

static void on_failed(struct graph_view *v, struct view_row *r, const struct tide_graph_event *e)
{
    v->retries += e->delay_ms >= 0;
    v->failures++;
    set_note(r, e->text);
    if (is_inside(e->node))
        return;
    r->sign = e->delay_ms >= 0 ? SIGN_RETRY : SIGN_FAILED;
    r->handled = false;
    r->retry_at_ms = monotonic_ms() + e->delay_ms;
    r->ms = r->began_ms ? monotonic_ms() - r->began_ms : 0;
}

static void on_agent(struct graph_view *v, struct view_row *r, const struct tide_agent_event *a)
{
    char line[256], time[VIEW_TIME];

    if (r->sign == SIGN_PARKED) /* it was asked about, and goes on */
        r->sign = SIGN_RUNNING;
    switch (a->what) {
    case TIDE_AGENT_USAGE:
        r->tokens += a->input_tokens + a->output_tokens;
        r->cost += a->cost;
        v->tokens += a->input_tokens + a->output_tokens;
        v->cost += a->cost;
        break;
    case TIDE_AGENT_TOOL:
        snprintf(line, sizeof(line), "%.40s %.200s", a->tool, a->args);
        set_note(r, line);
        break;
    case TIDE_AGENT_RETRY:
        snprintf(line, sizeof(line), "again in %s: %.*s", view_time(time, a->delay_ms),
                 (int)(a->text_len < 200 ? a->text_len : 200), a->text);
        set_note(r, line);
        break;
    case TIDE_AGENT_NOTICE:
        snprintf(line, sizeof(line), "%.*s", (int)(a->text_len < 250 ? a->text_len : 250), a->text);
        set_note(r, line);
        break;
    default:
        break;
    }
}

static void fold_event(struct graph_view *v, const struct tide_graph_event *e)
{
    struct view_row *r = row_of(v, e->node);

    v->checkpoints += e->what == TIDE_GRAPH_CHECKPOINT;
    v->unjudged += e->what == TIDE_GRAPH_NOTICE && e->to; /* a condition that erred has no event of its own */
    if (!r)
        return;
    if (e->what == TIDE_GRAPH_NODE_START)
        on_start(r, e);
    else if (e->what == TIDE_GRAPH_NODE_END)
        on_end(v, r, e);
    else if (e->what == TIDE_GRAPH_NODE_FAILED)
        on_failed(v, r, e);
    else if (e->what == TIDE_GRAPH_EDGE)
        r->handled |= !is_inside(e->node);
    else if (e->what == TIDE_GRAPH_AGENT)
        on_agent(v, r, e->agent);
    else if (e->what == TIDE_GRAPH_NOTICE)
        set_note(r, e->text);
}

/* ---- lines ---- */

void view_write(int fd, struct str text)
{
    fd_write(fd, text); /* nobody may be reading it: it is recorded all the same */
}

static void put_failed(struct buf *out, const struct tide_graph_event *e)
{
    char time[VIEW_TIME];

    buf_addf(out, "failed");
    if (e->attempts > 1 && (e->delay_ms >= 0 || e->attempt >= e->attempts))
        buf_addf(out, ", attempt %d of %d", e->attempt, e->attempts);
    else if (e->attempt > 1) /* the others do not come: it could not help */
        buf_addf(out, ", attempt %d", e->attempt);
    if (e->delay_ms >= 0)
        buf_addf(out, ", again in %s", view_time(time, e->delay_ms));
    buf_addf(out, ": %s", e->text ? e->text : "");
}

static void put_agent(struct buf *out, const struct tide_agent_event *a)
{
    char time[VIEW_TIME];

    if (a->what == TIDE_AGENT_TOOL)
        buf_addf(out, "%s %.300s", a->tool, a->args);
    else if (a->what == TIDE_AGENT_RETRY)
        buf_addf(out, "attempt %d of %d in %s: %.*s", a->attempt, a->attempts, view_time(time, a->delay_ms),
                 (int)a->text_len, a->text);
    else if (a->what == TIDE_AGENT_NOTICE)
        buf_addf(out, "%.*s", (int)a->text_len, a->text);
}

/* What is said of it behind its node's name; nothing when it is not worth a line. */
static void put_words(struct buf *out, const struct tide_graph_event *e, bool all)
{
    char time[VIEW_TIME];

    switch (e->what) {
    case TIDE_GRAPH_NODE_START:
        buf_addf(out, "starts");
        if (e->visit > 1)
            buf_addf(out, ", visit %" PRId64, e->visit);
        if (e->attempt > 1)
            buf_addf(out, ", attempt %d of %d", e->attempt, e->attempts);
        break;
    case TIDE_GRAPH_NODE_END:
        buf_addf(out, "done, %s", view_time(time, e->ms));
        break;
    case TIDE_GRAPH_NODE_FAILED:
        put_failed(out, e);
        break;
    case TIDE_GRAPH_EDGE:
        if (all)
            buf_addf(out, "leads to %s", e->to);
        break;
    case TIDE_GRAPH_CHECKPOINT:
        if (all)
            buf_addf(out, "checkpoint %s, %s", e->checkpoint_id, tide_checkpoint_type_name(e->checkpoint_type));
        break;
    case TIDE_GRAPH_NOTICE:
        buf_addf(out, "%s", e->text);
        break;
    case TIDE_GRAPH_AGENT:
        put_agent(out, e->agent);
        break;
    case TIDE_GRAPH_TICK:
        break;
    }
}

static void say_line(const char *node, struct str words)
{
    AUTO(buf_done) struct buf line = BUF_INIT(8192);
    char name[200];

    if (node) {
        snprintf(name, sizeof(name), "%s: ", node);
        glyph_fit(&line, str_from(name), sizeof(name));
    }
    glyph_fit(&line, words, 2000);
    buf_add_char(&line, '\n');
    say_lines(buf_view(&line));
}

/* ---- from outside ---- */

/* What nobody's row would show stands above the tree. */
static void show_event(struct graph_view *v, const struct tide_graph_event *e)
{
    int64_t now = monotonic_ms();

    if (e->what == TIDE_GRAPH_NOTICE && !row_of(v, e->node)) {
        view_erase(v);
        say_line(e->node, str_from(e->text));
        v->drawn_ms = 0;
    }
    if (now - v->drawn_ms < EVERY_MS)
        return;
    v->drawn_ms = now;
    view_draw(v, false);
}

void graph_view_event(struct graph_view *v, const struct tide_graph_event *e)
{
    AUTO(buf_done) struct buf words = BUF_INIT(65536);
    struct tide_graph_event timed = *e;
    const struct view_row *r;

    pthread_mutex_lock(&v->lock);
    v->events++;
    v->paused = false;
    fold_event(v, e);
    r = row_of(v, e->node);
    if (r && timed.what == TIDE_GRAPH_NODE_END && !timed.ms && !is_inside(e->node))
        timed.ms = r->ms; /* a node that holds others does nothing itself */
    e = &timed;
    if (v->how == GRAPH_SHOW_TREE)
        show_event(v, e);
    else if (v->how == GRAPH_SHOW_JSON)
        view_stream(e);
    else if (v->how != GRAPH_SHOW_NOTHING)
        put_words(&words, e, v->how == GRAPH_SHOW_ALL);
    if (words.len)
        say_line(e->node, buf_view(&words));
    pthread_mutex_unlock(&v->lock);
}

void graph_view_say(struct graph_view *v, const char *line)
{
    pthread_mutex_lock(&v->lock);
    if (v->how == GRAPH_SHOW_TREE)
        view_erase(v);
    say_line("tidemark", str_from(line));
    if (v->how == GRAPH_SHOW_TREE)
        view_draw(v, false);
    pthread_mutex_unlock(&v->lock);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Of a run that did not fail: nobody took care of these, and it went on without them. */
bool view_is_dropped(const struct graph_view *v, size_t node)
{
    return v->rows[node].sign == SIGN_FAILED && !v->rows[node].handled;
}

static void put_dropped(struct buf *out, const struct graph_view *v, enum tide_code code)
{
    size_t n = 0, said = 0;

    for (size_t i = 0; i < v->g->n_nodes; i++)
        n += view_is_dropped(v, i);
    if (!n || (code != TIDE_OK && code != TIDE_WAITING))
        return;
    buf_addf(out, "; %zu node%s failed, the others continued", n, plural((int64_t)n));
    for (size_t i = 0; i < v->g->n_nodes && said < 3; i++)
        if (view_is_dropped(v, i))
            buf_addf(out, "%s%s", said++ ? ", " : ": ", v->rows[i].node->id.ptr);
    if (n > said)
        buf_addf(out, " and %zu more", n - said);
}

static void sum_up(const struct graph_view *v, enum tide_code code)
{
    AUTO(buf_done) struct buf line = BUF_INIT(1024);
    char text[VIEW_TIME];

    buf_addf(&line, "%s: %" PRId64 " node%s",
             code == TIDE_OK          ? "completed"
             : code == TIDE_WAITING   ? "waiting"
             : code == TIDE_CANCELLED ? "stopped"
                                      : "failed",
             v->nodes, plural(v->nodes));
    if (v->retries)
        buf_addf(&line, ", %" PRId64 " retr%s", v->retries, v->retries == 1 ? "y" : "ies");
    if (v->unjudged)
        buf_addf(&line, ", %" PRId64 " edge%s could not be judged", v->unjudged, plural(v->unjudged));
    buf_addf(&line, ", %" PRId64 " checkpoint%s, %s", v->checkpoints, plural(v->checkpoints),
             view_time(text, monotonic_ms() - v->began_ms));
    if (v->tokens)
        buf_addf(&line, ", %s tokens", view_tokens(text, v->tokens));
    if (v->cost > 0)
        buf_addf(&line, ", %.4f", v->cost);
    put_dropped(&line, v, code);
    say_line(NULL, buf_view(&line));
}

static void settle_view(struct graph_view *v)
{
    for (size_t i = 0; i < v->g->n_nodes; i++)
        if (v->rows[i].sign == SIGN_RUNNING || v->rows[i].sign == SIGN_RETRY) /* others failed, or it was stopped */
            v->rows[i].sign = SIGN_PARKED;
}

void graph_view_pause(struct graph_view *v)
{
    pthread_mutex_lock(&v->lock);
    settle_view(v);
    v->paused = true;
    if (v->how == GRAPH_SHOW_TREE)
        view_draw(v, true);
    pthread_mutex_unlock(&v->lock);
}

void view_finish(struct graph_view *v, enum tide_code code)
{
    if (v->ended || (!v->events && code)) /* refused before anything began: there is nothing to show */
        return;
    v->ended = true;
    settle_view(v);
    for (size_t i = 0; code == TIDE_OK && i < v->g->n_nodes; i++)
        if (v->rows[i].sign == SIGN_WAITING) { /* it is complete: this is on a way that was not taken */
            v->rows[i].sign = SIGN_NOT_TAKEN;
            set_note(&v->rows[i], "not taken");
        }
    if (v->how == GRAPH_SHOW_TREE && !v->paused)
        view_draw(v, true);
    if (v->how != GRAPH_SHOW_NOTHING && v->how != GRAPH_SHOW_JSON)
        sum_up(v, code);
}

void graph_view_close(struct graph_view *v, enum tide_code code)
{
    if (!v)
        return;
    view_finish(v, code);
    pthread_mutex_destroy(&v->lock);
    map_done(&v->index, NULL);
    arena_done(&v->arena);
    free(v);
}
