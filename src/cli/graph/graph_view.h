/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph that runs, as people and programs see it. Behind `tidemark run`, `tidemark resume` and `tidemark sessions resume`:
 *
 *   graph_resume.c       resuming one: what is missing is asked for, what would be done is shown
 *   graph_run.c          runs it: settings, signals, what is shown meanwhile
 *   graph_ask.c          what it waits for and what is stored nowhere, asked at the terminal
 *   graph_report.c       what is printed at the end: memory, question and token, what to do next
 *   graph_view.c         what is known of each node, from the events; one line an event
 *   graph_view_draw.c    the tree on a terminal, redrawn in place
 *   graph_view_json.c    what happens as JSON lines
 */
#ifndef CLI_GRAPH_GRAPH_VIEW_H
#define CLI_GRAPH_GRAPH_VIEW_H

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
    struct graph_want want; /* event and arg are filled in by graph_drive() */
    const char *output;     /* text, json, stream-json; NULL: text, or json with --json */
    bool quiet;             /* nothing but the result and what went wrong */
    int token_fd;           /* for the token of a wait; 0: it is shown */
    bool no_input;          /* nobody is asked at the terminal */
};

/* Whether it could be run here, asked before there is a session; a resume is looked at by graph_drive() alone. */
enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *want, struct tide_err *err)
    MUST_CHECK;

/*
 * Refuses a run that would fail half-way for an input that nobody sets. One that is never stored is asked for at the
 * terminal and put into `memory` (a JSON object or nothing); want.opt.memory is set to it. `session`: whose memory counts as
 * well; NULL: none. Says which keys of it nobody reads.
 */
enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *session, struct graph_face *f,
                           struct buf *memory, struct tide_err *err) MUST_CHECK;

/*
 * Runs it to its end, shows it meanwhile, asks at the terminal what it waits for, prints what came of it and sets
 * cli->exit_status: 0 completed, 1 failed, 7 waits, 10 unsettled, 128 and the signal when it was stopped. TIDE_OK also then, as it has been said; an error is one that came
 * before anything ran.
 */
enum tide_code graph_drive(struct cli *cli, tide_session *session, tide_graph *graph, struct graph_face *f,
                           struct tide_err *err) MUST_CHECK;

/* ---- asking ---- */

bool graph_may_ask(const struct graph_face *f); /* somebody sits at the terminal */

/* Asks what the session waits for; *ret_answer is JSON. False: nobody answered, it stays parked. */
bool graph_ask(tide_session *session, struct buf *ret_answer);

/* Asks without echo for what is never stored, and adds it to `memory` (a JSON object or nothing). */
enum tide_code graph_ask_missing(const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                 struct tide_err *err) MUST_CHECK;

/* Says which keys of `memory` nobody reads, and what was meant. */
void graph_say_unread(const tide_graph *graph, struct str memory);

/* ---- resuming ---- */

struct resume;

struct graph_again {
    const struct resume *r;
    struct graph_face run; /* what of it stands in `r` is taken from there */
    const char *graph;     /* file of another one; NULL: the one that is stored */
    struct buf memory;     /* values, a JSON object or nothing; what is asked for is added. The caller's */
    bool dry_run;
};

/* What a resume would do, JSON as of tide_graph_make_plan(); a code in `refused`: what stands in the way. */
enum tide_code plan_print(struct cli *cli, struct str plan, const struct tide_err *refused, struct tide_err *err)
    MUST_CHECK;

/* `session` NULL: its log cannot be read to its end, and a fork goes on instead; it is said aloud. */
enum tide_code graph_again(struct cli *cli, struct graph_again *again, tide_session *session, struct tide_err *err)
    MUST_CHECK;

#endif
