/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a run of a session: started, resumed, or sent a message.
 *
 * Order: everything that can be refused is checked first; then the program is held at its gate, so that its pid is in the
 * record of the start; it runs only when that is on disk.
 */
#ifndef ENGINE_PROGRAM_RUN_H
#define ENGINE_PROGRAM_RUN_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* How it begins. */
enum program_begin {
    PROGRAM_START,  /* a new run; TIDE_UNFINISHED while there is one that can be continued */
    PROGRAM_ANEW,   /* a new run, whatever the last one left */
    PROGRAM_RESUME, /* the run of the session continues */
    PROGRAM_ENSURE, /* whichever is due; what has completed answers with its record: end.recorded */
    PROGRAM_SEND,   /* the run continues with opt's message, or a new one begins with it */
};

enum program_notice {
    PROGRAM_CHANGED,    /* its file is not the one that ran last: its name */
    PROGRAM_LEFTOVERS,  /* processes of a killed run were ended: how many */
    PROGRAM_SUPERSEDED, /* a run that waited is superseded, and its tokens, n, revoked */
    PROGRAM_AGAIN,      /* a new run begins in a session that has had one: how the last one ended */
    PROGRAM_REPEATS,    /* … and repeats finished steps: how many, and which */
    PROGRAM_DOUBTS,     /* … and steps that must happen once and may have happened: how many, and which */
};

/* What a run waits for. */
struct program_wait {
    bool is_sleep;
    char token[TIDE_TOKEN_SIZE];
    char name[132], kind[24], question[1024]; /* question "": none */
    int64_t deadline_ms, due_ms;              /* 0: none */
};

/* What came of it. */
struct program_end {
    char run_id[TIDE_ID_SIZE]; /* "": nothing ran */
    int exit_status;           /* of the program; 128 and the signal; 126, 127 when it cannot be run */
    bool not_run, waits, cancelled;
    bool recorded; /* nothing ran: it is what the session has, and so is record */
    bool hidden;   /* its command line held a secret: it is not run again from the log */
    size_t left_behind;
    int64_t degraded_events; /* that waited in memory while the store could not be written */
    char message[512];       /* what to say about it; "" when nothing */
    struct program_wait wait;
};

/* What is recorded of what it printed: the end of it, as text. */
struct program_record {
    struct buf out, err;
    int64_t out_bytes, err_bytes; /* how much it was in all */
};

struct program_run {
    enum program_begin begin;
    bool degrade;               /* when the store fails, it continues in memory; else it is held */
    const char *binary;         /* what `tidemark` means inside; NULL: as $PATH has it */
    int64_t sweep_ms;           /* between recoveries of what others left; 0: none */
    int signals;                /* a descriptor: the numbers of signals that stop it, as bytes; -1: none */
    bool (*stopped)(void *arg); /* asked before it begins; NULL: no */
    void (*notice)(void *arg, enum program_notice what, size_t n, const char *text);
    void (*trouble)(void *arg, const struct tide_err *why); /* the store fails; why NULL: no longer */
    void *arg;

    struct session_program *program; /* of program_run_…() below */
    struct program_end end;
    struct program_record record;
};

void program_run_done(struct program_run *r);

/* This program, where we are. `env`: names of variables that it needs, "A,B"; NULL: none. */
enum tide_code program_run_from_argv(struct program_run *r, const char *const *argv, size_t n, const char *env,
                                     struct tide_err *err) MUST_CHECK;

/* A new session for it, or the one that has this id; NULL: any. `title` NULL: the command. A failing store is waited for, and `held` is called. */
enum tide_code program_run_create(struct program_run *r, tide_store *store, const char *id, const char *title,
                                  tide_trouble_fn *held, tide_session **ret_session, struct tide_err *err) MUST_CHECK;

/* What the session ran last. TIDE_INVALID when that was no program. */
enum tide_code program_run_from_log(struct program_run *r, tide_session *session, struct tide_err *err) MUST_CHECK;

/* As configured: how often runs of others are recovered, and what a failing store does unless that was `said`. */
enum tide_code program_run_settings(struct program_run *r, const char *config, bool said, struct tide_err *err)
    MUST_CHECK;

/* That it can be run here: before program_run(), because nothing is written yet. An error, and end.not_run: not found, or no program. */
enum tide_code program_run_check(struct program_run *r, struct tide_err *err) MUST_CHECK;

/* The steps that a person settles with this resume are open, and each is settled one way. */
enum tide_code program_run_check_steps(tide_session *session, const struct tide_run_options *opt, struct tide_err *err)
    MUST_CHECK;

/* Values of its memory, a JSON object, for the run that begins next. Nothing is written where program_run() would refuse to begin one. */
enum tide_code program_run_set(const struct program_run *r, tide_session *session, struct str values, const char *by,
                               struct tide_err *err) MUST_CHECK;

/*
 * Begins it as r->begin says, and stays with it to its end. Of `opt`, fields and trouble are filled in here; ret_resumed, of
 * PROGRAM_RESUME alone, as of tide_run_resume(). PROGRAM_ENSURE needs no program_run_check(): what continues is checked here.
 */
enum tide_code program_run(struct program_run *r, tide_session *session, struct tide_run_options *opt,
                           struct tide_resumed *ret_resumed, struct tide_err *err) MUST_CHECK;

const char *program_run_name(const struct program_run *r); /* as it was called */

#endif
