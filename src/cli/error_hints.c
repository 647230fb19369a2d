/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is "what failed: why: what to do". Its last clause is advice when it holds a command or begins with a verb that
 * tells someone to do something; then nothing is added, so that no line says it twice.
 */
#include "cli/error_hints.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/next_command.h"

static bool is_advice(const char *clause)
{
    static const char *const openings[] = {"free ", "give ",     "import its", "leave ", "let it",  "look ", "make the",
                                           "name ", "open it",   "put ",       "raise ", "remove ", "save ", "set ",
                                           "try ",  "read what", "use ",       "wait ",  "close "};

    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++)
        if (strncmp(clause, openings[i], strlen(openings[i])) == 0)
            return true;
    return strstr(clause, "`tidemark ") != NULL;
}

const char *hint_in(const char *msg)
{
    const char *last = NULL;

    for (const char *p = msg; *p; p++)
        if ((p[0] == ':' || p[0] == ';') && p[1] == ' ' && is_advice(p + 2))
            last = p + 2;
    return last;
}

const char *hint_for(const struct tide_err *err)
{
    static const struct {
        enum tide_code code;
        const char *says, *advice; /* says: only of messages that hold it */
    } table[] = {
        {TIDE_FULL, "", "free some space, then try again"},
        {TIDE_AMBIGUOUS, "", "give more of the id"},
        {TIDE_DENIED, "not a regular file", "put the file itself there"},
        {TIDE_IO, "Is a directory", "put the file itself there"},
        {TIDE_DENIED, "", "give yourself the right to it, or name another place"},
        {TIDE_READ_ONLY, "", "make the place writable, or name another one"},
        {TIDE_NOT_FOUND, "no session '", "`tidemark sessions list` shows what there is"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == err->code && strstr(err->msg, table[i].says))
            return table[i].advice;
    return NULL;
}

const char *hint_for_store(enum tide_code code)
{
    switch (code) {
    case TIDE_WRONG_KEY:
        return "give the key it was made with: --key-file FILE";
    case TIDE_NOT_A_STORE:
        return "give another path with --store";
    case TIDE_TOO_NEW:
        return "use a newer tidemark";
    case TIDE_CORRUPT:
        return "`tidemark store check` says more";
    case TIDE_DENIED:
        return "give yourself the right to write the store and its directory, or name another with --store";
    case TIDE_READ_ONLY:
        return "make the place writable, or name another store with --store";
    case TIDE_FULL:
        return "free some space, then try again";
    case TIDE_BUSY:
        return "try again when the other process is done";
    case TIDE_IO:
        return "look into the system's log: the disk may be failing";
    case TIDE_NOT_FOUND:
        return "name a place that exists with --store";
    case TIDE_INVALID: /* a name that is too long, or that no file system takes */
        return "name another place with --store";
    default:
        return NULL;
    }
}

/* Room for it is made at the end of the message, if need be. */
static void append_advice(struct tide_err *err, const char *advice, const char *joint)
{
    struct str begin = utf8_clip(str_from(err->msg), sizeof(err->msg) - sizeof("…: ") - strlen(advice));
    char text[sizeof(err->msg)];

    snprintf(text, sizeof(text), "%.*s%s%s%s", STR_ARG(begin), err->msg[begin.len] ? "…" : "", joint, advice);
    memcpy(err->msg, text, sizeof(text));
}

/* ---- typed hints ---- */

/* What the command does about it: of an action with this argument, else of the action. */
static const char *effect_of(const struct tide_hint *h)
{
    static const struct {
        enum tide_action action;
        const char *argument, *effect;
    } rows[] = {
        {TIDE_ACTION_RESUME, "\"now\"", "ends the sleep"},
        {TIDE_ACTION_RESUME, "\"retry\"", "runs it again"},
        {TIDE_ACTION_RESUME, "\"accept_change\"", "takes what is recorded"},
        {TIDE_ACTION_RESUME, "\"without_answer\"", "goes on without"},
        {TIDE_ACTION_ANSWER, "", "answers"},
        {TIDE_ACTION_START, "\"anew\"", "runs it anew"},
        {TIDE_ACTION_START, "", "begins"},
        {TIDE_ACTION_PROMPT, "\"text\"", "says something to it"},
        {TIDE_ACTION_CANCEL, "", "ends it"},
        {TIDE_ACTION_ROTATE_TOKEN, "", "opens the wait again"},
        {TIDE_ACTION_TRUST, "", "shows what would run"},
        {TIDE_ACTION_TRUST_STORE, "", "shows them and makes them yours"},
        {TIDE_ACTION_WHY, "", "says where it stands"},
        {TIDE_ACTION_SHOW_LOG, "\"to\"", "shows what is whole before it"},
        {TIDE_ACTION_SHOW_LOG, "", "has all of it"},
        {TIDE_ACTION_SHOW_TIMELINE, "", "shows what did"},
        {TIDE_ACTION_DELETE, "", "removes what is left of it"},
        {TIDE_ACTION_FORK, "", "makes a fork there, to be looked at"},
        {TIDE_ACTION_ROLLBACK, "", "brings it back"},
        {TIDE_ACTION_LIST_SESSIONS, "", "shows what there is"},
        {TIDE_ACTION_LIST_SETTINGS, "", "shows what there is"},
        {TIDE_ACTION_LIST_CHECKPOINTS, "", "lists them"},
        {TIDE_ACTION_INIT_STORE, "\"upgrade\"", "upgrades it, and changes no session"},
        {TIDE_ACTION_INIT_STORE, "", "makes one"},
        {TIDE_ACTION_CHECK_STORE, "\"accept_loss\"", "goes on without what is lost"},
        {TIDE_ACTION_CHECK_STORE, "\"rebuild\"", "makes it anew"},
        {TIDE_ACTION_CHECK_STORE, "", "says more"},
        {TIDE_ACTION_IMPORT_GRAPH, "", "makes a graph of it"},
        {TIDE_ACTION_GET_SETTING, "", "shows it"},
        {TIDE_ACTION_SET_SETTING, "", "sets it"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].action == h->action && strstr(h->arguments, rows[i].argument))
            return rows[i].effect;
    return "goes on";
}

const char *hint_text(struct arena *a, const struct tide_hint *h)
{
    const struct tide_next next = {h->action, h->kind, h->session_id, h->arguments};
    const char *command = h->action ? next_command(a, &next) : NULL;

    return command ? arena_printf(a, "`%s` %s", command, effect_of(h)) : NULL;
}

const char *err_text(struct tide_err *err)
{
    struct arena a = ARENA_INIT;

    for (size_t i = 0; err->code && i < sizeof(err->hints) / sizeof(err->hints[0]); i++) {
        struct tide_hint *h = &err->hints[i];
        const char *text = hint_text(&a, h);

        if (text)
            append_advice(err, text, i ? ", " : ": ");
        h->action = 0;
    }
    arena_done(&a);
    return err->msg;
}

void err_advise(struct tide_err *err, const char *advice)
{
    for (size_t i = 0; i < sizeof(err->hints) / sizeof(err->hints[0]); i++)
        err->hints[i].action = 0;
    append_advice(err, advice, ": ");
}

enum tide_code advise(enum tide_code code, const char *advice, struct tide_err *err)
{
    if (!code || !advice || err->hints[0].action || hint_in(err->msg))
        return code;
    append_advice(err, advice, ": ");
    return code;
}
