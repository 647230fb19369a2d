/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AGENTS.md and CLAUDE.md: the instructions of a project for agents that work on it. Read from the working directory
 * and its parents up to the root of the repository; without a repository from the working directory alone.
 */
#ifndef ENGINE_PROJECT_INSTRUCTIONS_H
#define ENGINE_PROJECT_INSTRUCTIONS_H

#include "base/mem.h"

#define PROJECT_TEXT_MAX ((size_t)64 << 10) /* of all files together */

struct project_file {
    const char *name;    /* relative to the working directory: "AGENTS.md", "../AGENTS.md" */
    const char *refused; /* why it is not used; NULL: it is */
};

struct project_instructions {
    const char *text; /* for the system prompt: the repository's root first; NULL: there are none */
    struct project_file *files;
    size_t n;
};

/*
 * Takes regular files only, without a link that leads out of the repository, that belong to this user or root and that nobody
 * else may write to. A file that is there and is not taken is listed with the reason. All of it is in the arena.
 */
void project_instructions_read(struct arena *a, const char *working_dir, struct project_instructions *ret);

#endif
