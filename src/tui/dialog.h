/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to the person in front of the screen: what it is about, fields to fill in, buttons. Pure: the caller that
 * opened it reads the fields when a button was pressed.
 */
#ifndef TUI_DIALOG_H
#define TUI_DIALOG_H

#include "tui/field.h"
#include "tui/lines.h"
#include "tui/scroll.h"

#define DIALOG_FIELDS 4
#define DIALOG_BUTTONS 5

struct dialog_field {
    const char *label, *hint; /* hint: shown while it is empty; may be NULL */
    struct field field;
};

struct dialog_button {
    const char *label;
    char letter; /* presses it while no field has the focus; 0: none */
};

struct dialog {
    int what; /* the opener's; 0: there is none */
    char title[120];
    struct lines body;
    int body_columns;
    struct scroll scroll;
    struct dialog_field fields[DIALOG_FIELDS];
    int n_fields;
    struct dialog_button buttons[DIALOG_BUTTONS];
    int n_buttons;
    int focus; /* a field, then the buttons */
    char error[512];
    bool busy;                    /* what was pressed is being done */
    int top, left, height, width; /* where it was drawn */
    int buttons_at[DIALOG_BUTTONS + 1], buttons_row, fields_row;
};

#define DIALOG_STAYS (-1)
#define DIALOG_CLOSED (-2)

void dialog_open(struct dialog *d, int what, const char *title);
void dialog_close(struct dialog *d);
struct field *dialog_field(struct dialog *d, const char *label, const char *hint);
void dialog_button(struct dialog *d, const char *label, char letter);

/* The text of a field, trimmed. */
struct str dialog_said(const struct dialog *d, int field);

/* The number of the button that was pressed, or one of the above. */
int dialog_key(struct dialog *d, const struct key *k);

/* Its width for text, on a canvas so wide: the body is made for it. */
int dialog_columns(int cols);
void dialog_draw(struct dialog *d, struct canvas *c);

#endif
