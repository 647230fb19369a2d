/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads behind the screen: what is read, followed and carried out there never holds up a key. Results come in a mailbox whose
 * descriptor wakes the screen.
 */
#ifndef TUI_CREW_H
#define TUI_CREW_H

#include "tui/source.h"

struct crew;

enum mail_what { MAIL_ANSWER, MAIL_ACTED, MAIL_NEWS };

struct mail {
    enum mail_what what;
    struct answer *answer; /* the receiver's */
    struct acted acted;
    struct news news;
    char id[TIDE_ID_SIZE];
    struct tide_err err;
    char *text; /* the receiver's: free() */
    struct mail *next;
};

struct crew *crew_open(struct source *source, struct tide_err *err);
void crew_close(struct crew *w); /* stops the source and waits for all threads; takes NULL */

int crew_fd(const struct crew *w);      /* readable when there is mail */
struct mail *crew_mail(struct crew *w); /* NULL: no more now; mail_free() it */
void mail_free(struct mail *m);

void crew_ask(struct crew *w, const struct ask *ask);
void crew_act(struct crew *w, struct act *act); /* its owner now */

void crew_view(struct crew *c, const char *id); /* of the session that is on the screen; "": of none */

/* Which of the threads reads an ask: a source may keep something for each. */
#define LANES 3
int ask_lane(enum ask_what what);

#endif
