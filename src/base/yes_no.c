/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that mean yes and no. An agent's question, a node of a graph and `tidemark wait` ask the same person: what
 * approves in one of them must not be a refusal in another, so they are written down here alone.
 */
#include "base/yes_no.h"

#include <strings.h>

#include "base/utf8.h"

#define SAID_SHOWN 60 /* characters of an answer that is neither */

static const struct {
    const char *word;
    enum yes_no means;
} words[] = {{"yes", YES_NO_YES},   {"y", YES_NO_YES},      {"true", YES_NO_YES},    {"ok", YES_NO_YES},
             {"allow", YES_NO_YES}, {"always", YES_NO_YES}, {"approve", YES_NO_YES}, {"approved", YES_NO_YES},
             {"no", YES_NO_NO},     {"n", YES_NO_NO},       {"false", YES_NO_NO},    {"deny", YES_NO_NO},
             {"reject", YES_NO_NO}, {"rejected", YES_NO_NO}};

enum yes_no yes_no_word(struct str said)
{
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

enum tide_code yes_no_check(struct arena *a, const struct json *answer, struct tide_err *err)
{
    AUTO(buf_done) struct buf taken = BUF_INIT(1024);
    struct str said = !answer ? STR("null") : answer->type == JSON_STRING ? json_text(a, answer) : json_source(answer);

    if (yes_no_read(a, answer) != YES_NO_NEITHER)
        return TIDE_OK;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        buf_addf(&taken, "%s%s", !i ? "" : words[i].means != words[i - 1].means ? ", or " : ", ", words[i].word);
    said = utf8_first(said, SAID_SHOWN);
    return tide_fail(err, TIDE_INVALID, "'%.*s' is neither yes nor no: answer with %s", STR_ARG(said),
                     buf_cstr(&taken));
}

void yes_no_put_reason(struct buf *out, struct str answer, struct str reason)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kraw(&o, STR("decision"), answer);
    json_out_kstr(&o, STR("reason"), reason);
    json_out_end(&o, '}');
}

static struct str plain(struct arena *a, const struct json *v)
{
    return !v || v->type == JSON_NULL ? STR("") : v->type == JSON_STRING ? json_text(a, v) : json_source(v);
}

struct str yes_no_shown(struct arena *a, const struct json *answer)
{
    struct str decision, reason;

    if (yes_no_read(a, answer) == YES_NO_NEITHER || answer->type != JSON_OBJECT)
        return plain(a, answer);
    decision = plain(a, json_get(answer, STR("decision")));
    reason = plain(a, json_get(answer, STR("reason")));
    if (!reason.len)
        return decision;
    return str_from(arena_printf(a, "%.*s: %.*s", STR_ARG(decision), STR_ARG(reason)));
}
