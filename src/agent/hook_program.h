/* SPDX-License-Identifier: Apache-2.0 */
/* A small program that is asked something: text in, text out, within a time, nothing of it left behind. */
#ifndef AGENT_HOOK_PROGRAM_H
#define AGENT_HOOK_PROGRAM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define HOOK_OUTPUT_MAX ((size_t)4 << 20)

struct guard;

struct hook_program {
    char *const *argv; /* ends with NULL; the first is looked for as the shell does */
    struct str input;  /* all of its standard input */
    int64_t timeout_ms;
    bool (*stop)(void *arg); /* asked ten times a second; true ends it. May be NULL */
    void *arg;
    struct guard *guard; /* of the run; NULL: it is our child */
    const char *secret;  /* no variable of this value reaches it; NULL: none */
    /* What it said on standard error and its exit status, if it ended by itself; -1: it did not. Either may be NULL. */
    struct buf *complaint;
    int *exit_status;
};

/* The environment without the keys of providers: neither under their usual names nor, whatever the name, this one. */
char **program_environ(struct arena *a, const char *secret);

/*
 * Runs it to its end; what it printed is in *ret_output, which the caller has made with the room that it allows. An exit
 * status other than 0 is TIDE_FAILED and names it with the first line of its standard error; TIDE_BUSY: it took too long;
 * TIDE_CANCELLED: stopped; TIDE_TOO_BIG: it printed more than fits; TIDE_NOT_FOUND, TIDE_DENIED: there is none to be run.
 */
enum tide_code hook_program_run(const struct hook_program *p, struct buf *ret_output, struct tide_err *err) MUST_CHECK;

#endif
