/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a graph as it continues: a line an event, or the tree. What is known of its nodes is engine/graph_progress.h. Events come
 * on any thread, and an agent's may come beside another's: the caller that touches a view holds its lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "terminal/glyph.h"
#include "cli/graph/graph_view_internal.h"

#define EVERY_MS 90 /* between two drawings */

const char *view_tokens(char out[VIEW_TOKENS], int64_t tokens)
{
    if (tokens < 10000)
        snprintf(out, VIEW_TOKENS, "%" PRId64, tokens);
    else
        snprintf(out, VIEW_TOKENS, "%.1fk", (double)tokens / 1000);
    return out;
}

struct graph_view *graph_view_open(const tide_graph *graph, enum graph_show how, bool color)
{
    struct graph_view *v = mem_zero(sizeof(*v));

    v->how = how;
    v->color = color;
    graph_progress_init(&v->progress, graph);
    pthread_mutex_init(&v->lock, NULL);
    graph_order_make(&v->progress.arena, v->progress.outline, &v->order);
    return v;
}

void graph_view_before(struct graph_view *v, tide_session *session, int64_t seq)
{
    pthread_mutex_lock(&v->lock);
    graph_progress_before(&v->progress, session, seq);
    pthread_mutex_unlock(&v->lock);
}

/* ---- lines ---- */

void view_write(int fd, struct str text)
{
    fd_write(fd, text); /* nobody may be reading it: it is recorded all the same */
}

static void put_failed(struct buf *out, const struct tide_graph_event *e)
{
    char time[TIME_TAKEN_SIZE];

    buf_addf(out, "failed");
    if (e->attempts > 1 && (e->delay_ms >= 0 || e->attempt >= e->attempts))
        buf_addf(out, ", attempt %d of %d", e->attempt, e->attempts);
    else if (e->attempt > 1) /* the others do not come: it could not help */
        buf_addf(out, ", attempt %d", e->attempt);
    if (e->delay_ms >= 0)
        buf_addf(out, ", again in %s", time_taken(time, e->delay_ms));
    buf_addf(out, ": %s", e->text ? e->text : "");
}

static void put_agent(struct buf *out, const struct tide_agent_event *a)
{
    char time[TIME_TAKEN_SIZE];

    if (a->what == TIDE_AGENT_TOOL)
        buf_addf(out, "%s %.300s", a->tool, a->args);
    else if (a->what == TIDE_AGENT_RETRY)
        buf_addf(out, "attempt %d of %d in %s: %.*s", a->attempt, a->attempts, time_taken(time, a->delay_ms),
                 (int)a->text_len, a->text);
    else if (a->what == TIDE_AGENT_NOTICE)
        buf_addf(out, "%.*s", (int)a->text_len, a->text);
}

/* What is said of it behind its node's name; nothing when it is not worth a line. */
static void put_words(struct buf *out, const struct tide_graph_event *e, bool all)
{
    char time[TIME_TAKEN_SIZE];

    switch (e->what) {
    case TIDE_GRAPH_NODE_START:
        buf_addf(out, "starts");
        if (e->visit > 1)
            buf_addf(out, ", visit %" PRId64, e->visit);
        if (e->attempt > 1)
            buf_addf(out, ", attempt %d of %d", e->attempt, e->attempts);
        break;
    case TIDE_GRAPH_NODE_END:
        buf_addf(out, "done, %s", time_taken(time, e->ms));
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

    if (e->what == TIDE_GRAPH_NOTICE && !graph_progress_find(&v->progress, e->node)) {
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
    const struct progress_node *r;

    pthread_mutex_lock(&v->lock);
    v->paused = false;
    graph_progress_take(&v->progress, e);
    r = graph_progress_find(&v->progress, e->node);
    if (r && timed.what == TIDE_GRAPH_NODE_END && !timed.ms && !graph_progress_is_inside(e->node))
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

static void put_dropped(struct buf *out, const struct graph_view *v, enum tide_code code)
{
    const struct graph_progress *p = &v->progress;
    size_t n = 0, said = 0;

    for (size_t i = 0; i < p->outline->n_nodes; i++)
        n += progress_is_dropped(&p->nodes[i]);
    if (!n || (code != TIDE_OK && code != TIDE_WAITING))
        return;
    buf_addf(out, "; %zu node%s failed, the others continued", n, plural((int64_t)n));
    for (size_t i = 0; i < p->outline->n_nodes && said < 3; i++)
        if (progress_is_dropped(&p->nodes[i]))
            buf_addf(out, "%s%s", said++ ? ", " : ": ", p->nodes[i].node->id.ptr);
    if (n > said)
        buf_addf(out, " and %zu more", n - said);
}

static void sum_up(const struct graph_view *v, enum tide_code code)
{
    const struct graph_progress *p = &v->progress;
    AUTO(buf_done) struct buf line = BUF_INIT(1024);
    char text[TIME_TAKEN_SIZE], tokens[VIEW_TOKENS];

    buf_addf(&line, "%s: %" PRId64 " node%s",
             code == TIDE_OK          ? "completed"
             : code == TIDE_WAITING   ? "waiting"
             : code == TIDE_CANCELLED ? "stopped"
                                      : "failed",
             p->completed, plural(p->completed));
    if (p->retries)
        buf_addf(&line, ", %" PRId64 " retr%s", p->retries, p->retries == 1 ? "y" : "ies");
    if (p->edges_not_judged)
        buf_addf(&line, ", %" PRId64 " edge%s could not be judged", p->edges_not_judged, plural(p->edges_not_judged));
    buf_addf(&line, ", %" PRId64 " checkpoint%s, %s", p->checkpoints, plural(p->checkpoints),
             time_taken(text, monotonic_ms() - p->began_ms));
    if (p->tokens)
        buf_addf(&line, ", %s tokens", view_tokens(tokens, p->tokens));
    if (p->cost > 0)
        buf_addf(&line, ", %.4f", p->cost);
    put_dropped(&line, v, code);
    say_line(NULL, buf_view(&line));
}

void graph_view_pause(struct graph_view *v)
{
    pthread_mutex_lock(&v->lock);
    graph_progress_park(&v->progress);
    v->paused = true;
    if (v->how == GRAPH_SHOW_TREE)
        view_draw(v, true);
    pthread_mutex_unlock(&v->lock);
}

void view_finish(struct graph_view *v, enum tide_code code)
{
    if (v->ended || (!v->progress.events && code)) /* refused before anything began: there is nothing to show */
        return;
    v->ended = true;
    graph_progress_end(&v->progress, code);
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
    graph_progress_done(&v->progress);
    free(v);
}
