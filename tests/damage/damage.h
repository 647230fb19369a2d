/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a store, and its files: for tidemark-damage. */
#ifndef DAMAGE_H
#define DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tidemark.h"

extern bool verbose;

struct damage_job {
    char dir[200]; /* of the store; beside it DIR-left and DIR-closed */
    char url[300];
    uint64_t seed, n, only; /* only: 0: all */
    bool writes;
};

bool damage_options(int argc, char **argv, struct damage_job *j);

void damage_seed(uint64_t seed, uint64_t number);
uint64_t damage_next(uint64_t below);
void damage_some(const char *dir, int n); /* damages, in files of this directory */
const char *damage_report(void);          /* which */

void dir_reset(const char *dir, const char *from); /* becomes a copy of the other */
void dirs_remove(const char *dir);                 /* with those beside it */

#endif
