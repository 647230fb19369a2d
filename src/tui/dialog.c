/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buttons are always in view, then the fields; the text above them is scrolled where there is no room for all of it. A letter presses a
 * button only while no field has the focus, so that nothing that is typed decides anything.
 */
#include "tui/dialog.h"

#include <stdio.h>

#define WIDE 96

void dialog_open(struct dialog *d, int what, const char *title)
{
    dialog_close(d);
    d->what = what;
    snprintf(d->title, sizeof d->title, "%s", title);
}

void dialog_close(struct dialog *d)
{
    for (int i = 0; i < d->n_fields; i++)
        field_done(&d->fields[i].field);
    lines_done(&d->body);
    *d = (struct dialog){.what = 0};
}

struct field *dialog_field(struct dialog *d, const char *label, const char *hint)
{
    struct dialog_field *f = &d->fields[d->n_fields++];

    f->label = label;
    f->hint = hint;
    field_init(&f->field);
    return &f->field;
}

void dialog_button(struct dialog *d, const char *label, char letter)
{
    d->buttons[d->n_buttons++] = (struct dialog_button){label, letter};
}

struct str dialog_said(const struct dialog *d, int field)
{
    return str_trim(buf_view(&d->fields[field].field.text.text));
}

/* ---- keys ---- */

static int press_letter(const struct dialog *d, const struct key *k)
{
    for (int i = 0; i < d->n_buttons; i++)
        if (d->buttons[i].letter && (key_is(k, d->buttons[i].letter) || key_is(k, (char)(d->buttons[i].letter - 32))))
            return i;
    return DIALOG_STAYS;
}

static int click_dialog(struct dialog *d, const struct key *k)
{
    if (k->row == d->buttons_row)
        for (int i = 0; i < d->n_buttons; i++)
            if (k->col >= d->buttons_at[i] && k->col < d->buttons_at[i + 1]) {
                d->focus = d->n_fields + i;
                return i;
            }
    if (k->row >= d->fields_row && k->row < d->fields_row + d->n_fields && k->col > d->left &&
        k->col < d->left + d->width)
        d->focus = k->row - d->fields_row;
    return DIALOG_STAYS;
}

static int next_focus(struct dialog *d, int by)
{
    int n = d->n_fields + d->n_buttons;

    d->focus = n ? (d->focus + by + n) % n : 0;
    return DIALOG_STAYS;
}

int dialog_key(struct dialog *d, const struct key *k)
{
    bool in_field = d->focus < d->n_fields;

    if (k->what == KEY_IS_ESCAPE || key_is_control(k, 'c'))
        return DIALOG_CLOSED;
    if (d->busy)
        return DIALOG_STAYS;
    if (k->what == KEY_IS_CLICK || k->what == KEY_IS_DOUBLE_CLICK)
        return click_dialog(d, k);
    if (k->what == KEY_IS_TAB || (in_field && k->what == KEY_IS_DOWN))
        return next_focus(d, 1);
    if (k->what == KEY_IS_BACK_TAB || (in_field && k->what == KEY_IS_UP))
        return next_focus(d, -1);
    if (in_field && k->what == KEY_IS_ENTER)
        return next_focus(d, 1);
    if (in_field)
        return field_key(&d->fields[d->focus].field, k), DIALOG_STAYS;
    if (k->what == KEY_IS_ENTER || key_is(k, ' '))
        return d->focus - d->n_fields;
    if (k->what == KEY_IS_RIGHT || (k->what == KEY_IS_LEFT))
        return next_focus(d, k->what == KEY_IS_RIGHT ? 1 : -1);
    if (scroll_read_key(&d->scroll, k))
        return DIALOG_STAYS;
    return press_letter(d, k);
}

/* ---- drawing ---- */

int dialog_columns(int cols)
{
    int width = cols - 4 < WIDE ? cols - 4 : WIDE;

    return width > 8 ? width - 4 : 4;
}

/* "[ yes ]": the letter that presses it stands out; where the label does not begin with it, it stands before. */
static int draw_button(struct canvas *c, int row, int col, int columns, const struct dialog_button *b)
{
    bool begins = b->letter && b->label[0] == b->letter;
    int at = col, end = col + columns;

    at += canvas_text(c, row, at, end - at, "[ ", INK_DIM);
    if (b->letter)
        at += canvas_put(c, row, at, end - at, (struct str){&b->letter, 1}, INK_ACCENT);
    if (b->letter && !begins)
        at += canvas_text(c, row, at, end - at, " ", INK_PLAIN);
    at += canvas_text(c, row, at, end - at, b->label + begins, INK_PLAIN);
    return at + canvas_text(c, row, at, end - at, " ]", INK_DIM) - col;
}

static void draw_buttons(struct dialog *d, struct canvas *c, int row)
{
    int col = d->left + 2;

    d->buttons_row = row;
    for (int i = 0; i < d->n_buttons; i++) {
        int from = col;

        d->buttons_at[i] = col;
        col += draw_button(c, row, col, d->left + d->width - 2 - col, &d->buttons[i]);
        if (d->focus == d->n_fields + i)
            canvas_choose(c, row, from, col - from);
        d->buttons_at[i + 1] = col;
        col++;
    }
}

static void draw_fields(struct dialog *d, struct canvas *c, int row, int columns)
{
    int label = 0;

    d->fields_row = row;
    for (int i = 0; i < d->n_fields; i++) {
        int width = canvas_width(c, str_from(d->fields[i].label));

        label = width > label ? width : label;
    }
    for (int i = 0; i < d->n_fields; i++) {
        const struct dialog_field *f = &d->fields[i];
        int at = d->left + 2 + label + 2, room = columns - label - 2;

        canvas_text(c, row + i, d->left + 2, label, f->label, d->focus == i ? INK_ACCENT : INK_PLAIN);
        canvas_text(c, row + i, at - 2, 1, d->focus == i ? "›" : " ", INK_ACCENT);
        field_draw(&f->field, c, row + i, at, room, d->focus == i && !d->busy);
        if (!f->field.text.text.len && f->hint)
            canvas_text(c, row + i, at, room, f->hint, INK_DIM);
    }
}

static void draw_body(struct dialog *d, struct canvas *c, int rows, int columns)
{
    scroll_fit(&d->scroll, (int)d->body.n, rows);
    lines_draw(&d->body, d->scroll.top, c, d->top + 1, d->left + 2, rows, columns);
    if ((int)d->body.n > d->scroll.top + rows)
        canvas_printf(c, d->top + rows, d->left + d->width - 14, 12, INK_DIM, "%8d more",
                      (int)d->body.n - d->scroll.top - rows);
}

void dialog_draw(struct dialog *d, struct canvas *c)
{
    int columns = dialog_columns(c->cols), below = d->n_fields + (d->error[0] ? 1 : 0) + 1, most = c->rows - 2;
    int rows = (int)d->body.n, row;

    rows = rows + below + 3 > most ? most - below - 3 : rows;
    rows = rows < 1 ? 1 : rows;
    d->width = columns + 4;
    d->height = rows + below + 3;
    d->top = c->rows > d->height ? (c->rows - d->height) / 2 : 0;
    d->left = (c->cols - d->width) / 2;
    canvas_frame(c, d->top, d->left, d->height, d->width, d->title);
    draw_body(d, c, rows, columns);
    row = d->top + 1 + rows + 1;
    draw_fields(d, c, row, columns);
    row += d->n_fields;
    if (d->error[0])
        canvas_text(c, row++, d->left + 2, columns, d->error, INK_BAD);
    if (d->busy)
        canvas_text(c, row, d->left + 2, columns, "one moment…", INK_DIM);
    else
        draw_buttons(d, c, row);
}
