/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds words in texts, in upper or lower case (of Latin, Greek and Cyrillic letters), without a locale. A word is found
 * where it is part of a text.
 */
#ifndef BASE_WORD_SEARCH_H
#define BASE_WORD_SEARCH_H

#include "base/buf.h"

#define SEARCH_WORDS 16 /* those behind are not looked for */

struct word_search {
    struct buf words; /* folded, one behind the other */
    struct {
        size_t at, len;
    } word[SEARCH_WORDS];
    size_t n;
    struct buf folded; /* of the text that was looked at last */
};

/* `text`: words, separated by blanks; NULL or blank: nothing is looked for, and everything is found. */
void word_search_init(struct word_search *w, const char *text);
void word_search_done(struct word_search *w);

/* Whether each word is part of one of these texts. */
bool word_search_finds(struct word_search *w, const struct str *texts, size_t n);
/* The same of a text beside JSON as it is written: escapes stand for their characters. */
bool word_search_finds_json(struct word_search *w, struct str text, struct str json);

#endif
