/* SPDX-License-Identifier: Apache-2.0 */
/* One line that shows what is in progress, and for how long. Drawn when the caller ticks; there is no thread. */
#ifndef TERMINAL_SPINNER_H
#define TERMINAL_SPINNER_H

#include <stdbool.h>
#include <stdint.h>

struct spinner {
    int fd;
    bool on, color; /* off: never draws */
    bool running;
    char label[256];
    int64_t since_ms, next_ms, now_ms; /* now: at the last tick */
    int frame, width;                  /* width: columns on the screen; 0: nothing is drawn */
};

/* Off when fd is no terminal, or one that cannot erase. */
void spinner_init(struct spinner *s, int fd, bool color);

/* The time starts anew, unless it runs with the same label already. `now_ms` of any clock that does not jump. */
void spinner_start(struct spinner *s, const char *label, int64_t now_ms);
void spinner_tick(struct spinner *s, int64_t now_ms); /* draws ten times a second at most */
void spinner_hide(struct spinner *s);                 /* before other output; it is back a moment later */
void spinner_stop(struct spinner *s);

const char *spinner_frame(int n); /* the n-th of its pictures, round and round */

#endif
