/* SPDX-License-Identifier: Apache-2.0 */
/* Reads prompts: on a terminal with an editor for text of several lines, else line by line. */
#ifndef TERMINAL_LINE_EDIT_H
#define TERMINAL_LINE_EDIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "terminal/line_keys.h"

enum line_result {
    LINE_OK,        /* a prompt, perhaps of many lines */
    LINE_CANCELLED, /* Ctrl-C, and there was nothing to clear */
    LINE_END,       /* Ctrl-D on an empty line, or the end of the input */
    LINE_STOPPED,   /* a signal came, or `wake` or `stop` said so; what was typed is there again at the next read */
    LINE_LATE,      /* the time of line_edit_until() has come */
};

/* What could stand in the place of the word before the cursor. */
struct line_matches;
void line_match_add(struct line_matches *m, struct str word);

/* `before`: all text before the cursor; `word`: what of it stands behind the last blank. */
typedef void line_complete_fn(void *arg, struct str before, struct str word, struct line_matches *m);

struct line_config {
    int in, out;
    bool color;
    const char *history; /* file; NULL: none is kept. Its folder must be there */
    void *arg;
    line_complete_fn *complete; /* for Tab; may be NULL */
    int wake_fd;                /* -1: none. Readable: the line is taken away, wake called, the line drawn again */
    bool (*wake)(void *arg);    /* must make wake_fd unreadable; true: stop reading */
    const atomic_int *stop;     /* set by a handler, maybe before it reads: stop reading. May be NULL */
};

struct line_edit;

struct line_edit *line_edit_new(const struct line_config *config);
void line_edit_free(struct line_edit *e);
bool line_edit_is_terminal(const struct line_edit *e); /* prompts are edited, not only read */

/* Reads one prompt into ret_text (cleared first). `prompt` is one line of ours. */
enum line_result line_edit_read(struct line_edit *e, const char *prompt, struct buf *ret_text);

/*
 * One key, on a terminal, with nothing drawn; KEY_TEXT and KEY_PASTE have their text. LINE_END: no more keys come.
 * line_edit_more(): whether something follows at once, as it does when text is pasted or sent by a program.
 */
enum line_result line_edit_key(struct line_edit *e, enum line_command *ret_command, struct buf *ret_text);
bool line_edit_more(struct line_edit *e);

/* This text, when it is what comes next, is dropped: the rest of a word whose first letter was enough. An Enter alone as well. */
void line_edit_expect(struct line_edit *e, const char *rest);

/* At this time (Unix milliseconds; 0: never) reading ends with LINE_LATE. */
void line_edit_until(struct line_edit *e, int64_t at_ms);

/* What the next read begins with. */
void line_edit_prefill(struct line_edit *e, struct str text);

/*
 * Behind a prompt, and after line_edit_hush(), keys are not shown (they would stand in the answer) but kept for the next
 * read. An Enter among them sends what stands before it; after line_edit_hold() it does not: the text stands there to be
 * looked at.
 */
void line_edit_hush(struct line_edit *e);
void line_edit_gather(struct line_edit *e); /* what was typed so far is for e, and for no other that reads meanwhile */
void line_edit_hold(struct line_edit *e);
void line_edit_pass_on(struct line_edit *from, struct line_edit *to); /* what the one has not used up */

#endif
