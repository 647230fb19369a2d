/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the enums in tidemark.h, as the log, the JSON shapes and people have them. */
#include <string.h>

#include "tidemark.h"

struct word {
    int value;
    const char *text;
};

static const char *word_of(const struct word *words, int value)
{
    while (words->text && words->value != value)
        words++;
    return words->text ? words->text : "unknown";
}

static int value_of(const struct word *words, const char *text)
{
    while (words->text && (!text || strcmp(words->text, text) != 0))
        words++;
    return words->text ? words->value : -1;
}

#define WORD(name, number, text) {(number), (text)},
#define NAMES(type, table)                                                                                             \
    static const struct word type##_words[] = {table(WORD){0, NULL}};                                                  \
    const char *tide_##type##_name(enum tide_##type value)                                                             \
    {                                                                                                                  \
        return word_of(type##_words, (int)value);                                                                      \
    }
#define WORDS(type, table)                                                                                             \
    NAMES(type, table)                                                                                                 \
    int tide_##type##_from(const char *word)                                                                           \
    {                                                                                                                  \
        return value_of(type##_words, word);                                                                           \
    }

NAMES(subject, TIDE_SUBJECTS)
WORDS(action, TIDE_ACTIONS)
WORDS(session_kind, TIDE_SESSION_KINDS)
WORDS(status, TIDE_STATUSES)
WORDS(outcome, TIDE_OUTCOMES)
WORDS(effect, TIDE_EFFECT_KINDS)
WORDS(wait_kind, TIDE_WAIT_KINDS)
WORDS(on_deadline, TIDE_ON_DEADLINES)
WORDS(checkpoint_type, TIDE_CHECKPOINT_TYPES)
WORDS(recovered_action, TIDE_RECOVERED_ACTIONS)
WORDS(permission, TIDE_PERMISSIONS)
WORDS(role, TIDE_ROLES)
