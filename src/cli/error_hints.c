/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What helps against an error, in words: the commands of its hints, else what its code says. A message is never looked into:
 * who knows what helps makes a hint, and of the codes below no message has advice of its own. Some count only when the error
 * is about a file: then the system refused it.
 */
#include "cli/error_hints.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/next_command.h"
#include "terminal/output.h"
#include "engine/shapes.h"

#define HINTS (sizeof(((struct tide_err *)NULL)->hints) / sizeof(struct tide_hint))

static const char *advice_by_code(struct arena *a, const struct tide_err *err, bool of_store)
{
    const char *check = arena_printf(a, "`%s store check` says more", own_command(a));
    const struct {
        enum tide_code code;
        enum { ANY, FILES, NO_FILES } about;
        const char *advice, *of_store;
    } rows[] = {
        {TIDE_FULL, ANY, "free some space, then try again", NULL},
        {TIDE_AMBIGUOUS, ANY, "give more of the id", NULL},
        {TIDE_DENIED, FILES, "give yourself permission, or name another place",
         "give yourself permission to write to the store and its directory, or name another with --store"},
        {TIDE_READ_ONLY, FILES, "make the place writable, or name another one",
         "make the place writable, or name another store with --store"},
        {TIDE_WRONG_KEY, ANY, NULL, "give the key it was made with (--key-file FILE), or none"},
        {TIDE_NOT_A_STORE, ANY, NULL, "give another path with --store"},
        {TIDE_TOO_NEW, ANY, NULL, "use a newer tidemark"},
        {TIDE_CORRUPT, NO_FILES, NULL, check},
        {TIDE_BUSY, ANY, NULL, "try again when the other process is done"},
        {TIDE_IO, FILES, NULL, "check the system log: the disk may be failing"},
        {TIDE_NOT_FOUND, FILES, NULL, "name a place that exists with --store"},
        {TIDE_INVALID, FILES, NULL, "name another place with --store"}, /* too long, or no file system takes it */
    };
    bool file = err->detail.subject == TIDE_SUBJECT_FILE;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].code == err->code && (rows[i].about == ANY || (rows[i].about == FILES) == file))
            return of_store && rows[i].of_store ? rows[i].of_store : rows[i].advice;
    return NULL;
}

/* Room for it is made at the end of the message, if need be. */
static void append_advice(struct tide_err *err, const char *advice)
{
    struct str end = utf8_clip(str_from(advice), sizeof(err->msg) - sizeof("…: "));
    struct str begin = utf8_clip(str_from(err->msg), sizeof(err->msg) - sizeof("…: ") - end.len);
    char text[sizeof(err->msg)];

    snprintf(text, sizeof(text), "%.*s%s: %.*s", STR_ARG(begin), err->msg[begin.len] ? "…" : "", STR_ARG(end));
    memcpy(err->msg, text, sizeof(text));
}

/* ---- typed hints ---- */

/* What the command does about it: of an action with this argument, else of the action. NULL: nothing can be said. */
static const char *effect_of(struct arena *a, const struct tide_hint *h)
{
    static const struct {
        enum tide_action action;
        const char *argument, *effect;
    } rows[] = {
        {TIDE_ACTION_RESUME, "now", "ends the sleep"},
        {TIDE_ACTION_RESUME, "happened", "records that it did"},
        {TIDE_ACTION_RESUME, "retry", "runs it again"},
        {TIDE_ACTION_RESUME, "ask_again", "asks again"},
        {TIDE_ACTION_RESUME, "accept_change", "uses the recorded results"},
        {TIDE_ACTION_RESUME, "checkpoint", "starts from a checkpoint"},
        {TIDE_ACTION_RESUME, "without_answer", "continues without"},
        {TIDE_ACTION_ANSWER, "", "answers"},
        {TIDE_ACTION_START, "ensure", "continues it"},
        {TIDE_ACTION_START, "new_run", "starts a new run"},
        {TIDE_ACTION_START, "", "starts it"},
        {TIDE_ACTION_PROMPT, "text", "sends it a message"},
        {TIDE_ACTION_CANCEL, "", "ends it"},
        {TIDE_ACTION_ROTATE_TOKEN, "", "opens the wait again"},
        {TIDE_ACTION_TRUST, "", "shows what would run"},
        {TIDE_ACTION_TRUST_STORE, "", "shows them and trusts them"},
        {TIDE_ACTION_WHY, "", "explains its status"},
        {TIDE_ACTION_SHOW_LOG, "to", "shows what is intact before it"},
        {TIDE_ACTION_SHOW_LOG, "", "shows all of it"},
        {TIDE_ACTION_SHOW_TIMELINE, "", "shows what happened"},
        {TIDE_ACTION_DELETE, "", "removes what is left of it"},
        {TIDE_ACTION_FORK, "", "creates a fork there, to inspect"},
        {TIDE_ACTION_ROLLBACK, "", "restores it"},
        {TIDE_ACTION_LIST_SESSIONS, "", "shows what there is"},
        {TIDE_ACTION_LIST_SETTINGS, "", "shows what there is"},
        {TIDE_ACTION_CHECK_SETTINGS, "", "checks again"},
        {TIDE_ACTION_LIST_CHECKPOINTS, "", "lists its checkpoints"},
        {TIDE_ACTION_INIT_STORE, "upgrade", "upgrades it, and changes no session"},
        {TIDE_ACTION_INIT_STORE, "", "creates one"},
        {TIDE_ACTION_CHECK_STORE, "accept_loss", "continues without what is lost"},
        {TIDE_ACTION_CHECK_STORE, "rebuild", "rebuilds it"},
        {TIDE_ACTION_CHECK_STORE, "", "says more"},
        {TIDE_ACTION_END_PROCESS, "continue", "lets it continue"},
        {TIDE_ACTION_END_PROCESS, "", "ends it"},
        {TIDE_ACTION_RECOVER, "watch", "watches it"},
        {TIDE_ACTION_IMPORT_GRAPH, "", "converts it to a graph"},
        {TIDE_ACTION_GET_SETTING, "", "shows it"},
        {TIDE_ACTION_SET_SETTING, "", "sets it"},
        {TIDE_ACTION_REPEAT, "redo_effects", "allows it to happen again"},
        {TIDE_ACTION_REPEAT, "reuse_effects", "uses the recorded results"},
        {TIDE_ACTION_REPEAT, "fallback", "takes the newest checkpoint from which it can"},
        {TIDE_ACTION_REPEAT, "checkpoint", "starts from that checkpoint"},
        {TIDE_ACTION_REPEAT, "graph", "takes that version of the graph"},
        {TIDE_ACTION_REPEAT, "map", "gives its new name"},
        {TIDE_ACTION_REPEAT, "happened", "records that it did"},
        {TIDE_ACTION_REPEAT, "set", "sets it"},
        {TIDE_ACTION_REPEAT, "retry", "runs it again"},
        {TIDE_ACTION_REPEAT, "input", "answers"},
        {TIDE_ACTION_REPEAT, "dry_run", "lists all"},
        {TIDE_ACTION_REPEAT, "provider", "makes it one"},
        {TIDE_ACTION_REPEAT, "effect", "allows it"},
        {TIDE_ACTION_STORE_SECRET, "", "stores it there"},
    };
    struct json *args = NULL;

    if (json_parse(a, str_from(h->arguments), NULL, &args, NULL, NULL))
        return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].action == h->action && (!rows[i].argument[0] || json_get(args, str_from(rows[i].argument))))
            return rows[i].effect;
    return h->action == TIDE_ACTION_REPEAT ? NULL : "continues";
}

/* What to add to the command that was given, or to leave out of it. */
static const char *repeat_text(struct arena *a, const struct tide_hint *h, const char *options)
{
    struct json *args = NULL;
    const char *effect = effect_of(a, h);

    if (json_parse(a, str_from(h->arguments), NULL, &args, NULL, NULL))
        return NULL;
    if (args->first && args->first->type == JSON_FALSE)
        return arena_printf(a, "omit `%s`", options);
    return effect ? arena_printf(a, "`%s` %s", options, effect) : arena_printf(a, "give `%s`", options);
}

static const char *hint_text(struct arena *a, const struct tide_hint *h)
{
    const struct tide_next next = {h->action, h->kind, h->session_id, h->arguments};
    const char *command = h->action ? next_command(a, &next) : NULL, *options = next_options(a, &next);

    if (h->action == TIDE_ACTION_REPLACE_FILE) /* which no command does */
        return "put the file itself there";
    if (options)
        return next_options_fit(a, &next) ? repeat_text(a, h, options) : NULL;
    return command ? arena_printf(a, "`%s` %s", command, effect_of(a, h)) : NULL;
}

const char *hints_text(struct arena *a, const struct tide_hint *hints, size_t n)
{
    const char *all = NULL;

    for (size_t i = 0; i < n; i++) {
        const char *one = hint_text(a, &hints[i]);

        all = all && one ? arena_printf(a, "%s, %s", all, one) : one ? one : all;
    }
    return all;
}

const char *offer_text(struct arena *a, const char *line, const char *change)
{
    const struct tide_next next = {TIDE_ACTION_REPEAT, 0, "", change ? change : "{}"};
    const char *options = change ? next_options(a, &next) : NULL;

    return options ? arena_printf(a, "%s (to change: %s)", line, options) : line;
}

static bool is_option(const char *option)
{
    bool found = options_have(global_options, option);

    for (const struct command *const *c = commands; *c && !found; c++)
        found = options_have((*c)->options, option);
    return found;
}

/* What is wrong with an argument is said of its option, once. */
static void name_argument(struct arena *a, struct tide_err *err)
{
    const char *option;

    if (err->detail.subject != TIDE_SUBJECT_ARGUMENT || !err->detail.name[0] || args_refused())
        return;
    option = argument_option(a, err->detail.name);
    err->detail.subject = 0;
    if (is_option(option + strlen("--")))
        tide_wrap(err, "%s", option);
}

const char *err_advice(struct arena *a, const struct tide_err *err, bool of_store)
{
    const char *text = hints_text(a, err->hints, HINTS);

    return text ? text : advice_by_code(a, err, of_store);
}

static const char *line_of(struct arena *a, struct tide_err *err, const char *advice)
{
    name_argument(a, err);
    return advice ? arena_printf(a, "%s: %s", err->msg, advice) : err->msg;
}

const char *err_line(struct arena *a, struct tide_err *err, bool of_store)
{
    return line_of(a, err, err_advice(a, err, of_store));
}

const char *err_text(struct arena *a, struct tide_err *err)
{
    return line_of(a, err, err->code ? hints_text(a, err->hints, HINTS) : NULL);
}

const char *trouble_text(struct arena *a, const char *line, const struct tide_err *why)
{
    const char *helps = why ? hints_text(a, why->hints, HINTS) : NULL;

    return helps ? arena_printf(a, "%s: %s", line, helps) : line;
}

void say_store_trouble(const struct tide_err *why, const char *then)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    say("%s", trouble_text(&a, arena_printf(&a, "%s: %s", why->msg, then), why));
}

void err_hint_next(struct tide_err *err, const struct tide_next *next)
{
    for (; next && next->action && !err->hints[HINTS - 1].action; next++) {
        size_t i = err->hints[0].action ? 1 : 0;

        tide_hint_with(err, next->action, next->session_id, "%.*s", (int)strlen(next->arguments) - 2,
                       next->arguments + 1);
        err->hints[i].kind = next->kind;
    }
}

void say_err(struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    say_clean(err_text(&a, err));
}

void err_advise(struct tide_err *err, const char *advice)
{
    for (size_t i = 0; i < HINTS; i++)
        err->hints[i].action = 0;
    append_advice(err, advice);
}

enum tide_code advise(enum tide_code code, const char *advice, struct tide_err *err)
{
    if (code && advice && !err->hints[0].action)
        append_advice(err, advice);
    return code;
}

void err_say_json(const struct tide_err *err)
{
    struct out out;

    out_init(&out);
    out_shape(&out, &shape_error, &(struct error_shown){*err, next_command});
    fwrite(out.text.ptr, 1, out.text.len, stderr);
    out_done(&out);
}
