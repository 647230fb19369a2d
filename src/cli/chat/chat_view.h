/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a chat draws. It knows nothing of agents: it is called for what happened, in that order. Texts may come from
 * anywhere; what must not reach a terminal does not. On a terminal all of it is one stream; without one the answers go
 * to standard output, byte for byte, and everything else to standard error.
 */
#ifndef CLI_CHAT_CHAT_VIEW_H
#define CLI_CHAT_CHAT_VIEW_H

#include "base/buf.h"

struct view_config {
    int out, err;
    bool tty;   /* out is a terminal */
    bool color; /* out takes colours */
    bool dumb;  /* out takes no escape sequences at all */
    bool quiet; /* only answers, questions and errors */
};

struct view;

struct view *view_new(const struct view_config *config);
void view_free(struct view *v);

void view_user(struct view *v, struct str text);    /* a prompt of before, when a history is drawn again */
void view_summary(struct view *v, struct str text); /* the same, of what stands for the messages before it */
void view_typed(struct view *v);                    /* a prompt has just been typed: it stands there already */

/*
 * The answer, in pieces. view_text_discard: the attempt these pieces came from has failed; of the next one's text what is
 * on the screen already is not shown again, and when it turns out to be another text, that is said and it is shown whole.
 */
void view_text(struct view *v, struct str piece);
void view_text_discard(struct view *v);
void view_text_end(struct view *v);

/* While it waits: a line that goes away by itself. Tick ten times a second. */
void view_busy(struct view *v, const char *label); /* "thinking"; NULL: no longer */
void view_tick(struct view *v);

enum view_outcome { VIEW_DONE, VIEW_FAILED, VIEW_REFUSED, VIEW_STOPPED, VIEW_UNKNOWN };

/* A tool: `summary` is one line ("bash ls -l"). Its result is drawn as its first line and how many more there are. */
void view_tool_start(struct view *v, const char *summary);
void view_tool_end(struct view *v, const char *summary, enum view_outcome outcome, int64_t ms, struct str result);

void view_retry(struct view *v, const char *text); /* "attempt 2 of 4 in 1.0 s: rate limited" */
void view_notice(struct view *v, const char *text);
void view_warning(struct view *v, const char *text);
void view_error(struct view *v, const char *text);
void view_heading(struct view *v, const char *const *parts); /* ended by NULL; broken only between them */
void view_command(struct view *v, const char *command, const char *effect); /* to be pasted: in one piece */
void view_item(struct view *v, const char *head,
               const char *text); /* of a list: the text is indented behind its head */

/* All of the detail, its blanks too; lines that begin with + or - in colours. The caller reads the answer. */
/* Behind a question: what can be answered, and what was; the answer is of this window's user. */
void view_ask(struct view *v, const char *choices);
void view_answered(struct view *v, struct str answer);

void view_approval(struct view *v, const char *question, struct str detail);

struct view_usage {
    int64_t input_tokens, cached_tokens, output_tokens;
    double cost;                  /* below 0: not known */
    int64_t context, context_max; /* tokens; max 0: not known */
    int64_t ms;                   /* below 0: not known */
};
void view_usage(struct view *v, const struct view_usage *u);

int view_unwritten(const struct view *v); /* why something could not be written, an errno; 0: all was */

void view_clear(struct view *v); /* the screen, for another session's history */

#endif
