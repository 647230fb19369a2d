/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal's modes while a prompt is edited or an answer is drawn; always put back, whatever ends the process. */
#ifndef TERMINAL_LINE_TTY_H
#define TERMINAL_LINE_TTY_H

#include <stdbool.h>

/* One terminal at a time. */
bool tty_raw(int in, int out);  /* keys come as they are pressed; false: it is no terminal that can do so */
bool tty_hush(int in, int out); /* keys are not shown and wait as they are for tty_raw(); Ctrl-C is still a signal */
bool tty_quiet(int in);         /* keys are not shown, and belong to the next reader of the terminal */
void tty_restore(void);

/* A signal that ends things has been passed on to the earlier handler: time to leave. */
bool tty_ended(void);

bool tty_again(void); /* true: we were stopped, another program had the terminal; its modes are ours again */
void tty_suspend(int in, int out); /* Ctrl-Z: stops, and is raw again when it continues */

#endif
