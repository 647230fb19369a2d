/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole screen as a value: keys, answers and news go in, asks and acts come out, and it can be drawn at any size. Pure: no terminal, no
 * clock, no store, no thread. The pages are files of their own; what they share is here.
 *
 *   app_key(), app_take(), app_acted(), app_news()   what happened
 *   app_next_ask(), app_next_act()                   what is wanted now; each comes once
 *   app_draw()                                       what is seen
 */
#ifndef TUI_APP_H
#define TUI_APP_H

#include "tui/dialog.h"
#include "tui/source.h"
#include "tui/view.h"

enum place { PLACE_SESSIONS, PLACE_INBOX, PLACE_SESSION };
enum tab { TAB_TALK, TAB_TIMELINE, TAB_LOG, TAB_CHECKPOINTS, TAB_STATE, TAB_GRAPH, TABS };

/* What was asked for of a kind: one at a time, the newest wish counts. */
struct slot {
    bool wanted, busy;
    uint64_t number;
    int64_t next_ms; /* not asked again before */
};

struct list_page {
    struct answer *answer; /* NULL: none yet */
    struct scroll scroll;
    char chosen[TIDE_ID_SIZE];
    int status, kind; /* which of the filters */
    struct field search;
    bool searching;
    char task_id[TIDE_ID_SIZE];
    int64_t limit;
    int first_row, filter_row; /* where it was drawn */
    int filter_at[16];
};

struct inbox_page {
    struct answer *answer;
    struct scroll scroll;
    char chosen[TIDE_ID_SIZE];
    int first_row;
    int detail_from; /* line of the question that is on top */
};

/* A window of lines that were made from an answer. */
struct sheet {
    struct answer *answer;
    struct lines lines;
    struct scroll scroll;
    int columns; /* that they were made for; 0: to be made anew */
    struct tide_err err;
};

#define TALK_PARTS 64

struct session_tab {
    char id[TIDE_ID_SIZE];
    enum tab tab;
    enum place from;
    struct answer *page; /* the newest; of `parts` the last one is its talk */
    struct answer *parts[TALK_PARTS];
    int n_parts;
    bool gone;         /* it was deleted */
    int64_t runs_from; /* what began behind this event and has no result runs; 0: nothing does */
    struct tide_err err;
    struct sheet sheets[TABS];
    int64_t *open; /* seqs of entries that are unfolded */
    size_t n_open, cap_open;
    struct buf streamed;
    int64_t streamed_after; /* the last seq when it began */
    int64_t state_seq;      /* that is looked at; 0: now */
    int64_t log_seq, log_after;
    struct field log_kinds;
    bool filtering;
    int log_lands; /* where the cursor goes when the next events come: -1 first, 1 last, 0 stays */
    int first_row, tabs_row;
    int tab_at[TABS + 1];
};

struct reader {
    bool open;
    char title[200];
    struct sheet sheet;
    struct str json;
    struct arena arena;
};

struct app {
    const char *source_name;
    const char *const *starts; /* commands that start a session, ended by NULL; NULL: none */
    bool is_server, ascii, quit;
    int rows, cols;
    int64_t now_ms;
    enum place place;
    struct list_page list;
    struct inbox_page inbox;
    struct session_tab session;
    struct reader reader;
    struct dialog dialog;
    struct tide_next choices[DIALOG_BUTTONS]; /* of a dialog to resume: what its buttons do */
    char dialog_id[TIDE_ID_SIZE];
    uint64_t dialog_act; /* the act that it waits for */
    int64_t dialog_seq;
    int64_t dialog_last_seq; /* of its session when it was opened */
    bool dialog_approval;
    size_t dialog_base; /* lines of its text before what a resume would do */
    int dialog_check;   /* which button looks again; -1: none */
    bool help;
    struct scroll help_scroll;
    struct slot slots[ASK_KINDS];
    uint64_t numbers;
    struct act act; /* to be carried out */
    int acting;     /* under way */
    char notice[512];
    enum ink notice_ink;
    int64_t notice_until_ms;
    char lost[512]; /* why nothing is heard; "": all is well */
    int64_t lost_ms;
    char pasting; /* what comes is text */
};

void app_init(struct app *app, const char *source_name, bool is_server);
void app_done(struct app *app);
void app_size(struct app *app, int rows, int cols);
void app_open_session(struct app *app, const char *id);

void app_key(struct app *app, const struct key *k);
void app_take(struct app *app, struct answer *answer); /* its owner now */
void app_acted(struct app *app, const struct acted *acted);
void app_news(struct app *app, const struct news *news);
void app_tick(struct app *app, int64_t now_ms);

bool app_next_ask(struct app *app, struct ask *ret); /* false: there is nothing to ask now */
bool app_next_act(struct app *app, struct act *ret); /* the caller's */
int64_t app_wakes_ms(const struct app *app);         /* when there is something to do without a key; 0: not by itself */

const char *app_viewed(const struct app *app); /* the session that is on the screen; "": none */

void app_draw(struct app *app, struct canvas *c);

/* ---- what the pages share ---- */

void app_want(struct app *app, enum ask_what what);
void app_want_soon(struct app *app, enum ask_what what); /* not more often than a person can see */
void app_say(struct app *app, enum ink ink, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A session as it is now: what was asked for in a dialog has begun when its log has gone on. */
void app_seen(struct app *app, const struct tide_session_info *info);
bool app_asks_person(const struct tide_session_info *info);

/* Opens the dialog for it. `info` and `question` (may be NULL) are of the session. */
void app_answer(struct app *app, const struct tide_session_info *info, const struct question_view *question);
void app_resume(struct app *app, const struct tide_session_info *info, const char *checkpoint);
void app_send(struct app *app, const struct tide_session_info *info);
void app_cancel(struct app *app, const struct tide_session_info *info);
void app_fork(struct app *app, const char *id, int64_t seq);
void app_roll_back(struct app *app, const char *id, int64_t seq);
bool app_act_key(struct app *app, const struct key *k, const struct tide_session_info *info,
                 const struct question_view *question); /* a r s x */
void app_dialog_key(struct app *app, const struct key *k);
void app_question_lines(struct lines *l, const struct question_view *q, int columns, int64_t now_ms);

void app_plan(struct app *app, struct answer *answer); /* what a resume would do; its owner */
void app_plan_ask(struct app *app, struct ask *ask);
void plan_lines(struct lines *l, struct str json, int columns);
void undone_lines(struct lines *l, struct str json, int columns);

const struct tide_session_info *list_chosen(const struct app *app); /* NULL: none */
const struct tide_session_info *inbox_chosen(const struct app *app);

void app_read(struct app *app, const char *title, struct str json); /* shows it as a text to read */

void list_key(struct app *app, const struct key *k);
void list_take(struct app *app, struct answer *answer);
void list_ask(struct app *app, struct ask *ask);
void list_draw(struct app *app, struct canvas *c, int row, int rows);

void inbox_key(struct app *app, const struct key *k);
void inbox_take(struct app *app, struct answer *answer);
void inbox_draw(struct app *app, struct canvas *c, int row, int rows);
int64_t inbox_total(const struct app *app);                                        /* -1: not known */
const struct question_view *inbox_question(const struct app *app, const char *id); /* NULL: it is not there */

void session_open(struct app *app, const char *id);
void session_close(struct app *app);
void session_key(struct app *app, const struct key *k);
void session_take(struct app *app, struct answer *answer);
void session_ask(struct app *app, struct ask *ask);
void session_changed(struct app *app);
void session_draw(struct app *app, struct canvas *c, int row, int rows);
void session_text(struct app *app, struct str text);
const struct page_view *session_view(const struct app *app); /* NULL: not there yet */

/* Its tabs. */
void sheet_done(struct sheet *s);
void talk_take(struct app *app, struct answer *answer);
void talk_lines(struct app *app, struct sheet *s, int columns);
int64_t talk_before(const struct app *app); /* where what is older ends; 0: there is nothing */
bool talk_key(struct app *app, const struct key *k);
void timeline_lines(struct app *app, struct sheet *s, int columns);
void log_lines(struct app *app, struct sheet *s, int columns);
bool log_key(struct app *app, const struct key *k);
void checkpoints_lines(struct app *app, struct sheet *s, int columns);
bool checkpoints_key(struct app *app, const struct key *k);
void state_lines(struct app *app, struct sheet *s, int columns);
bool state_key(struct app *app, const struct key *k);
void graph_lines(struct app *app, struct sheet *s, int columns);

void help_key(struct app *app, const struct key *k);
void help_draw(struct app *app, struct canvas *c, int row, int rows);

#endif
