/* SPDX-License-Identifier: Apache-2.0 */
/* The files below a directory in the order of their names, symbolic links never followed. */
#ifndef AGENT_WALK_H
#define AGENT_WALK_H

#include "base/str.h"

enum walk_answer { WALK_ON, WALK_STOP };

struct walk {
    bool hidden; /* names that begin with a dot as well */
    void *arg;
    bool (*enter)(void *arg, struct str path); /* whether to look into a directory; NULL: into all */
    /* One that is no directory. `dir` and `name` open it; `regular`: it is a regular file */
    enum walk_answer (*file)(void *arg, struct str path, int dir, const char *name, bool regular);
    void *stop_arg;
    bool (*stop)(void *arg); /* asked now and then; NULL: nobody asks */

    /* what came of it */
    bool stopped;   /* by `stop` */
    bool too_much;  /* there were more entries, or they were nested deeper, than is looked at */
    size_t unread;  /* directories that could not be opened */
    size_t entries; /* that were looked at */
};

/* `dir` is the open directory whose path, as it is shown, is `path` ("" for the top). Stays the caller's. */
void walk_run(struct walk *w, int dir, struct str path);

#endif
