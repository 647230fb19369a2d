/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes to standard output. It is gathered and written when the command has succeeded, so that a failing one prints
 * nothing; commands that stream write as they go. Text for people is free of control characters, whatever it came from.
 */
#ifndef TERMINAL_OUTPUT_H
#define TERMINAL_OUTPUT_H

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/number.h"
#include "base/shape.h"
#include "terminal/glyph.h"
#include "engine/findings.h"

enum color { COLOR_NONE, COLOR_BOLD, COLOR_DIM, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_BLUE, COLOR_CYAN };

struct out {
    bool json;
    bool tty; /* standard output is a terminal */
    bool color;
    bool closed; /* the reader has gone away */
    bool data;   /* JSON is in it: its lines stay as they are, on a terminal too */
    struct buf text;
};

void out_init(struct out *out);
void out_done(struct out *out);

/* Colours by the word of --color (NULL: auto). */
void out_set_color(struct out *out, const char *when);

/* Writes what was gathered. A reader that has gone away sets `closed` and is TIDE_CANCELLED. */
enum tide_code out_flush(struct out *out, struct tide_err *err) MUST_CHECK;

/* Text as it is: ours. Values that came from elsewhere go through out_value. */
void outf(struct out *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_value(struct out *out, const char *text);           /* cleaned; NULL is nothing */
int out_fit(struct out *out, const char *text, int columns); /* what fits, "…" where it was cut; the columns used */
void out_colored(struct out *out, enum color color, const char *text);
void out_field(struct out *out, const char *name, const char *value); /* "name        value"; nothing for NULL */
void out_field_command(struct out *out, const char *name, const char *command); /* in one piece, on any terminal */
void say_lines(struct str lines); /* on standard error; long ones broken at words on a terminal */
void say_as_json(bool json);      /* --json: what is said below is JSON, one object per line */
void say_clean(const char *text); /* "tidemark: text" on standard error, cleaned */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* the same */
const char *color_code(const struct out *out, enum color color);      /* "" without colours */

/* JSON: one document, one line. */
void out_json_end(struct out *out);
void out_shape(struct out *out, const struct shape *shape, const void *data); /* all of it */
void out_json_value(struct out *out, struct str json);                        /* a text as text unless --json; a line */
void out_findings(struct out *out, const struct findings *f, enum color color); /* a line each */

/* "3 minutes ago" */
#define AGO_SIZE 32
const char *time_ago(char buf[AGO_SIZE], int64_t unix_ms);

/* Columns on a terminal. */
int terminal_columns(int fd);   /* 80 when it is not known */
bool terminal_is_capable(void); /* by TERM: escape sequences mean something to it */

#endif
