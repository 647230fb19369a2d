/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a program's name means, looked at before anything is written down: as the shell finds it. */
#ifndef PROGRAM_FIND_H
#define PROGRAM_FIND_H

#include "base/buf.h"
#include "base/err.h"

#define PROGRAM_PATH_MAX 8192

/*
 * An absolute path, by $PATH or relative to `cwd` when the name has a slash. TIDE_NOT_FOUND: there is none; TIDE_DENIED: it
 * cannot be executed.
 */
enum tide_code program_find(const char *name, const char *cwd, struct buf *ret_path, struct tide_err *err) MUST_CHECK;
enum tide_code program_find_in(const char *dirs, const char *name, const char *cwd, struct buf *ret_path,
                               struct tide_err *err) MUST_CHECK; /* instead of $PATH */

const char *program_path(void); /* $PATH, or what is taken where it is not set */

/* The exit status that shells give for that: 127, 126. */
int program_find_exit(enum tide_code code);

/* BLAKE2b of the file in hex. */
#define PROGRAM_DIGEST_SIZE 65
#define PROGRAM_STAT_SIZE 160
/* A program as it was when it ran last, or is now; empty: not known. */
struct program_file {
    char digest[PROGRAM_DIGEST_SIZE]; /* of its bytes */
    char stat[PROGRAM_STAT_SIZE];     /* device, inode, size, times: while they are the same it is not read again */
};
/* Brings *f up to date. */
enum tide_code program_digest(const char *path, struct program_file *f, struct tide_err *err) MUST_CHECK;

#endif
