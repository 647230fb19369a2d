/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that mean yes and no. An agent's question, a node of a graph and `tidemark wait` ask the same person: what
 * approves in one of them must not be a refusal in another, so they are written down here alone.
 */
#include "session/yes_no.h"

#include <ctype.h>
#include <strings.h>

enum decision decision_word(struct str said)
{
    static const struct {
        const char *word;
        enum decision means;
    } words[] = {{"yes", DECISION_YES},     {"y", DECISION_YES},        {"true", DECISION_YES},
                 {"ok", DECISION_YES},      {"allow", DECISION_YES},    {"always", DECISION_YES},
                 {"approve", DECISION_YES}, {"approved", DECISION_YES}, {"no", DECISION_NO},
                 {"n", DECISION_NO},        {"false", DECISION_NO},     {"deny", DECISION_NO},
                 {"reject", DECISION_NO},   {"rejected", DECISION_NO}};

    while (said.len && isspace((unsigned char)said.ptr[said.len - 1]))
        said.len--;
    for (; said.len && isspace((unsigned char)*said.ptr); said.len--)
        said.ptr++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (said.len == strlen(words[i].word) && strncasecmp(said.ptr, words[i].word, said.len) == 0)
            return words[i].means;
    return DECISION_NONE;
}

enum decision decision_read(struct arena *a, const struct json *answer)
{
    const struct json *v = answer && answer->type == JSON_OBJECT ? json_get(answer, STR("decision")) : answer;

    if (v && v->type == JSON_STRING)
        return decision_word(json_text(a, v));
    return !v                      ? DECISION_NONE
           : v->type == JSON_TRUE  ? DECISION_YES
           : v->type == JSON_FALSE ? DECISION_NO
                                   : DECISION_NONE;
}
