/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph that runs, as people and programs see it. Behind `tidemark run`, `tidemark resume` and `tidemark sessions resume`:
 *
 *   graph_plan.c         what a resume would do
 *   graph_run.c          while it runs: signals, what is shown meanwhile
 *   graph_ask.c          what it waits for, asked at the terminal
 *   graph_missing.c      what is stored nowhere, asked for there
 *   graph_report.c       what is printed at the end: memory, question and token, what to do next
 *   graph_view.c         one line an event
 *   graph_view_draw.c    the tree on a terminal, redrawn in place
 *   graph_view_json.c    what happens as JSON lines
 */
#ifndef CLI_GRAPH_GRAPH_VIEW_H
#define CLI_GRAPH_GRAPH_VIEW_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "engine/graph_inputs.h"
#include "engine/graph_run.h"

/* ---- showing ---- */

enum graph_show {
    GRAPH_SHOW_NOTHING,
    GRAPH_SHOW_TREE,  /* redrawn in place: only on a terminal */
    GRAPH_SHOW_LINES, /* a line of text for what nodes and agents do, on standard error */
    GRAPH_SHOW_ALL,   /* also for edges and checkpoints */
    GRAPH_SHOW_JSON,  /* a JSON object an event, on standard output */
};

struct graph_view;

/* The graph must outlive it. The tree goes to standard error, so that standard output is the result alone. */
struct graph_view *graph_view_open(const tide_graph *graph, enum graph_show how, bool color);

/* What the session did before, up to `seq` (0: all of it): its nodes are shown as they stand. */
void graph_view_before(struct graph_view *v, tide_session *session, int64_t seq);

/* Any thread. */
void graph_view_event(struct graph_view *v, const struct tide_graph_event *event);
void graph_view_say(struct graph_view *v, const char *line); /* beside the tree, or as a line of its own */
void graph_view_pause(struct graph_view *v); /* others write now: the tree stays as it is, the next stands below */

/* The last drawing, and a line that sums up: nodes, retries, checkpoints, time, cost. Takes NULL. */
void graph_view_close(struct graph_view *v, enum tide_code how_it_ended);

/* ---- running ---- */

struct graph_face {
    const char *output; /* text, json, stream-json; NULL: text, or json with --json */
    bool quiet;         /* nothing but the result and what went wrong */
    int token_fd;       /* for the token of a wait; 0: it is shown */
    bool no_input;      /* nobody is asked at the terminal */
};

/* Whether it could be run here, asked before there is a session. */
enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *want, struct tide_err *err)
    MUST_CHECK;

/*
 * Refuses a run that would fail half-way for an input that nobody sets. One that is never stored is asked for at the
 * terminal and put into `memory` (a JSON object or nothing); want->opt.memory is set to it. `session`: whose memory counts as
 * well; NULL: none. Says which keys of it nobody reads.
 */
enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *session, const struct graph_face *f,
                           struct graph_want *want, struct buf *memory, struct tide_err *err) MUST_CHECK;

/* One that is run: shown as it happens, stopped by signals, its questions asked at the terminal. */
struct graph_driving {
    struct cli *cli;
    const struct graph_face *face;
    struct graph_run *run;
    struct graph_view *view;
    enum { END_TEXT, END_JSON, END_STREAM } how;
    atomic_bool announced, told, held; /* which session it is; that it is being stopped; that it is held */
};

/* Fills in the callbacks of `run`; `want` is that of `run`. */
void graph_drive(struct graph_driving *d, struct cli *cli, const struct graph_face *f, struct graph_want *want,
                 struct graph_run *run);

/*
 * Prints what came of it, which ended with `code`, and sets cli->exit_status: 0 completed, 1 failed, 7 waits, 10 unsettled, 128
 * and the signal when it was stopped. TIDE_OK also then, as it has been said; an error is one that came before anything ran.
 */
enum tide_code graph_end(struct graph_driving *d, enum tide_code code, struct tide_graph_result *result,
                         struct tide_err *err) MUST_CHECK;

/* ---- asking ---- */

bool graph_may_ask(const struct graph_face *f); /* somebody sits at the terminal */
bool graph_has_color(const struct cli *cli);    /* what is drawn there, on standard error */

/* Asks what the session waits for; *ret_answer is JSON. False: nobody answered, or not before its deadline. */
bool graph_ask(const struct cli *cli, tide_session *session, struct buf *ret_answer);

/* Asks without echo for what is never stored, and adds it to `memory` (a JSON object or nothing). */
enum tide_code graph_ask_missing(const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                 struct tide_err *err) MUST_CHECK;

/* A graph_unread_fn: says which key nobody reads, and what was meant. */
void graph_say_unread(void *arg, const char *key, const char *near);

/* ---- resuming ---- */

/* What a resume would do, and what stands in the way. */
struct resume;
enum tide_code plan_print(struct cli *cli, const struct resume *r, struct tide_err *err) MUST_CHECK;

#endif
