/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is "what failed: why: what to do". Its last clause is advice when it holds a command or begins with a verb that
 * tells someone to do something; then nothing is added, so that no line says it twice.
 */
#include "cli/advice.h"

#include <string.h>

static bool is_advice(const char *clause)
{
    static const char *const verbs[] = {"free ", "give ", "import ",    "leave ", "look ", "make ",
                                        "open ", "put ",  "run ",       "save ",  "set ",  "try ",
                                        "use ",  "wait ", "read what ", "raise ", "name ", "remove "};

    /* "open 'x': Permission denied" says what failed, not what to do */
    if (strncmp(clause, "open '", 6) == 0 || strncmp(clause, "open store", 10) == 0)
        return false;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strncmp(clause, verbs[i], strlen(verbs[i])) == 0)
            return true;
    return strstr(clause, "`tidemark ") != NULL;
}

const char *advice_in(const char *msg)
{
    const char *clause = NULL;

    for (const char *p = msg; *p; p++) /* the longest tail that begins as advice does */
        if ((p[0] == ':' || p[0] == ';') && p[1] == ' ' && !clause && is_advice(p + 2))
            clause = p + 2;
    return clause;
}

const char *advice_for_store(enum tide_code code)
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
    default:
        return NULL;
    }
}

enum tide_code advise(enum tide_code code, const char *advice, struct tide_err *err)
{
    if (!code || !advice || advice_in(err->msg))
        return code;
    return tide_fail(err, code, "%s: %s", err->msg, advice);
}
