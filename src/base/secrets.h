/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that must not be written anywhere, and texts without them. What is known is found plain, escaped as JSON and as URLs
 * are (any character, several times over), and in base64 at any of its three alignments, lines broken or not; in its place
 * stands "[redacted:NAME]". Threads may add and clean at the same time.
 */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include "base/buf.h"

#define SECRET_MIN 8            /* bytes: shorter values would be found everywhere */
#define SECRET_MAX (64 * 1024)  /* bytes of one value */
#define SECRETS_MAX 4096        /* values of one set */
#define SECRET_MARK "[redacted" /* what every mark begins with */

struct secrets;

struct secrets *secrets_new(void);
void secrets_free(struct secrets *s); /* wipes them */

/*
 * Adds a value, without white space at its ends; of one with several lines every line of 16 bytes and more is looked for by
 * itself too. The name is what stands in its place: letters, digits and "_.-" of it, 40 at most. False: too short, too long,
 * too many, or part of the mark itself.
 */
bool secrets_add(struct secrets *s, struct str name, struct str value);

/* The same until it is released as often as it was held: for one of many runs, whose values nobody else is to miss. */
bool secrets_hold(struct secrets *s, struct str name, struct str value);
void secrets_release(struct secrets *s, struct str value);

/* Whether any is in the text. A set that is NULL or empty knows none. */
bool secrets_find(struct secrets *s, struct str text);

/* True: some were, and *ret has the text without them. Where the marks would be too long for *ret, asterisks stand for them. */
bool secrets_clean(struct secrets *s, struct str text, struct buf *ret);

/* The same for a NUL-terminated text in place, cut to its room; one that fills it was cut before, and loses half a secret. */
void secrets_clean_line(struct secrets *s, char *text, size_t size);

/*
 * Of a text that was cut: how many bytes at its end may be the beginning of a secret; at its beginning, the end of one. Less
 * than four say nothing.
 */
size_t secrets_cut_end(struct secrets *s, struct str text);
size_t secrets_cut_begin(struct secrets *s, struct str text);

/*
 * Text that comes in pieces: what may be the beginning of a secret is held back until it is known. Gives what can be shown
 * now; `last`: nothing comes behind it, all is given.
 */
struct secret_stream {
    struct buf held;
};
#define SECRET_STREAM_INIT                                                                                             \
    {                                                                                                                  \
        BUF_INIT(SIZE_MAX / 4)                                                                                         \
    }
void secret_stream_put(struct secrets *s, struct secret_stream *stream, struct str piece, bool last, struct buf *ret);

#endif
