/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that mean yes and no. An agent's question, a node of a graph and `tidemark wait` ask the same person: what
 * approves in one of them must not be a refusal in another, so they are written down here alone.
 */
#include "base/yes_no.h"

#include <strings.h>

enum yes_no yes_no_word(struct str said)
{
    static const struct {
        const char *word;
        enum yes_no means;
    } words[] = {{"yes", YES_NO_YES},   {"y", YES_NO_YES},      {"true", YES_NO_YES},    {"ok", YES_NO_YES},
                 {"allow", YES_NO_YES}, {"always", YES_NO_YES}, {"approve", YES_NO_YES}, {"approved", YES_NO_YES},
                 {"no", YES_NO_NO},     {"n", YES_NO_NO},       {"false", YES_NO_NO},    {"deny", YES_NO_NO},
                 {"reject", YES_NO_NO}, {"rejected", YES_NO_NO}};

    said = str_trim(said);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (said.len == strlen(words[i].word) && strncasecmp(said.ptr, words[i].word, said.len) == 0)
            return words[i].means;
    return YES_NO_NEITHER;
}

enum yes_no yes_no_read(struct arena *a, const struct json *answer)
{
    const struct json *v = answer && answer->type == JSON_OBJECT ? json_get(answer, STR("decision")) : answer;

    if (v && v->type == JSON_STRING)
        return yes_no_word(json_text(a, v));
    return !v ? YES_NO_NEITHER : v->type == JSON_TRUE ? YES_NO_YES : v->type == JSON_FALSE ? YES_NO_NO : YES_NO_NEITHER;
}
