/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that a model answers with yes or no, so that a graph knows where to continue. It is a conversation of its own: the
 * same node may have talked before, and other questions may be asked of it. The digest of the question distinguishes
 * them, and finds an answer that is in the log.
 */
#include <string.h>

#include "agent/agent.h"
#include "agent/nested.h"
#include "base/digest.h"

static const char system_text[] =
    "You decide whether a process goes on in one direction. You are given a question and what is known. Answer with one "
    "JSON object and nothing else: {\"proceed\": true or false, \"reason\": \"one short sentence\"}";

/* ---- reading ---- */

/* {"proceed": true}, with whatever stands around it. */
static int read_object(struct arena *a, struct str text)
{
    const char *open = text.len ? memchr(text.ptr, '{', text.len) : NULL,
               *close = open ? memrchr(text.ptr, '}', text.len) : NULL;
    const struct json *proceed;
    struct json *json = NULL;

    if (!close || close < open ||
        json_parse(a, (struct str){open, (size_t)(close - open) + 1}, NULL, &json, NULL, NULL))
        return -1;
    proceed = json_get(json, STR("proceed"));
    return !proceed ? -1 : proceed->type == JSON_TRUE ? 1 : proceed->type == JSON_FALSE ? 0 : -1;
}

/* "yes", "No.", "Yes, because …"; "no idea" is neither. */
static int read_word(struct str text)
{
    static const struct {
        const char *word;
        int yes;
    } words[] = {{"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}};
    size_t at = 0;

    while (at < text.len && is_blank_char(text.ptr[at]))
        at++;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);

        if (text.len - at < n || strncasecmp(text.ptr + at, words[i].word, n) != 0)
            continue;
        if (text.len - at == n || strchr(",.;:!\n\r", text.ptr[at + n]))
            return words[i].yes;
    }
    return -1;
}

static int read_answer(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    int yes = read_object(&a, text);

    return yes >= 0 || (text.len && memchr(text.ptr, '{', text.len)) ? yes : read_word(text);
}

/* ---- asking ---- */

enum tide_code nested_decide(const struct nested_agent *nested, const char *question, const char *context, int *ret_yes,
                             struct tide_err *err)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    const char *text =
        context && *context ? arena_printf(&arena, "%s\n\nWhat is known:\n%s", question, context) : question;
    struct nested_agent alone = *nested;
    struct tide_agent_options opt =
        nested->opt ? *nested->opt : (struct tide_agent_options){.size = sizeof(struct tide_agent_options)};
    struct tide_agent *a = NULL;
    char digest[17];
    enum tide_code code;

    ERR_LOCAL(err);
    alone.n_outputs = alone.n_nullable = 0;
    opt.no_tools = 1;
    opt.hooks = NULL; /* nothing is done, and no turn of the node's work is made */
    opt.approve = NULL;
    opt.system_prompt = system_text;
    digest_name(digest, str_from(text));
    code = nested_enter(&alone, &opt, digest, &a, err);
    if (!code && !a->conversation.n)
        agent_say(a, str_from(text));
    if (!code && conversation_is_owed(&a->conversation))
        code = agent_ask(a, err);
    if (!code || code == TIDE_FAILED)
        code = a && agent_put(a, err) ? err->code : code;
    if (!code)
        *ret_yes = read_answer(conversation_answer(&a->conversation));
    nested_leave(a);
    return code;
}
