/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that are to go on, each in a process of its own: this same program as `tidemark resume ID`. At most so many at
 * once; the others wait in line. One that could not go on is tried again later, and less and less often.
 */
#ifndef CLI_RECOVER_JOBS_H
#define CLI_RECOVER_JOBS_H

#include <sys/types.h>

#include "base/map.h"
#include "cli/cli.h"

struct job {
    char id[TIDE_ID_SIZE];
    pid_t pid; /* 0: waits in line */
};

struct jobs {
    struct cli *cli;
    struct buf url;
    int max_at_once, max_failures;
    struct job *list;
    size_t n, cap, running;
    struct map failed; /* id -> struct job_failures * */
    int64_t started, ended_well, ended_badly;
};

enum tide_code jobs_init(struct jobs *j, struct cli *cli, int max_at_once, int max_failures, struct tide_err *err)
    MUST_CHECK;
void jobs_done(struct jobs *j);

/* Puts a session in line; one that is there already, or that failed a moment ago, is left alone. */
void jobs_add(struct jobs *j, const char *id);

/*
 * All that are to go on now: of others that failed here it is forgotten. Somebody else was faster, as a rule, and may be gone when
 * they are due once more.
 */
void jobs_keep_failed(struct jobs *j, char (*ids)[TIDE_ID_SIZE], size_t n);

/* Takes in what has ended, says so, and starts as many as may run. */
void jobs_step(struct jobs *j);

/* Until all have ended; once a signal has come they are told to stop, and those in line are let go. */
void jobs_finish(struct jobs *j);

#endif
