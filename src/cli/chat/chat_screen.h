/* SPDX-License-Identifier: Apache-2.0 */
/* A chat at a terminal, as its files share it: what is drawn and read, and what is typed behind a slash. */
#ifndef CLI_CHAT_CHAT_SCREEN_H
#define CLI_CHAT_CHAT_SCREEN_H

#include <signal.h>

#include "cli/chat/chat.h"
#include "cli/chat/chat_view.h"
#include "terminal/line_edit.h"

struct screen {
    struct chat chat;
    struct view *view;
    struct arena scratch;             /* of what is drawn for one prompt */
    struct line_edit *line, *answers; /* prompts with a history; answers to questions without */
    struct view_usage usage;          /* of the prompt that is being worked on */
    int64_t began_ms;
    volatile sig_atomic_t presses; /* of Ctrl-C while the agent works */
    atomic_int leave;
    bool listed; /* a command had something to list */
};

/* Draws the conversation so far. */
void screen_redraw(struct screen *s);

/* What failed, and what helps. */
void screen_error(struct screen *s, struct tide_err *err);

/* Continues with what was cut, if anything was; then says where it stands. */
void screen_go_on(struct screen *s);

/* A summary in place of what was said. */
void screen_compact(struct screen *s, const char *focus);

/* Other session, same screen. */
enum tide_code screen_switch(struct screen *s, const char *id, struct tide_err *err) MUST_CHECK;

/* ---- chat_ask.c: somebody's word on a call */
enum tide_decision screen_approve(void *arg, const struct tide_approval *a);

/* ---- chat_pick.c: a chat from the list; "" when none was chosen. TIDE_NOT_FOUND: there is none. It needs a terminal that can. */
bool screen_can_pick(const struct screen *s);
enum tide_code screen_pick(struct screen *s, char ret_id[TIDE_ID_SIZE], struct tide_err *err) MUST_CHECK;

/* ---- chat_commands.c */

/* A line that begins with a slash. */
void screen_command(struct screen *s, const char *line);

/* What could be typed behind the slash, and files behind an @. */
void screen_complete(void *arg, struct str before, struct str word, struct line_matches *m);

#endif
