/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a directory: the kernel resolves every path (openat2, RESOLVE_BENEATH), so that no "..", no symbolic link
 * and no race leads out. Only regular files and directories are opened; nothing here waits for a FIFO or a device.
 */
#ifndef AGENT_CONFINED_H
#define AGENT_CONFINED_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* The directory: its name, for absolute paths that are inside, and a descriptor of it. */
struct confined {
    const char *cwd;
    int dir;
};

#define CONFINED_PATH_MAX 4096

/* The path relative to the directory ("." for itself), NUL-terminated. TIDE_INVALID, TIDE_DENIED say what is wrong with it. */
enum tide_code confined_relative(const struct confined *b, struct str path, struct buf *ret_path, struct tide_err *err)
    MUST_CHECK;

enum confined_kind { CONFINED_FILE = 1, CONFINED_DIR = 2 };

/* Opens an existing file or directory to be read. `kinds`: which may be. *ret_stat may be NULL. */
enum tide_code confined_open(const struct confined *b, struct str path, int kinds, int *ret_fd, struct stat *ret_stat,
                             struct tide_err *err) MUST_CHECK;

/*
 * The directory that holds what `path` names and its name there, symbolic links inside followed; what is named need not
 * exist. CONFINED_MAKE makes the directories that are missing.
 */
enum confined_missing { CONFINED_KEEP, CONFINED_MAKE };
enum tide_code confined_parent(const struct confined *b, struct str path, enum confined_missing missing, int *ret_dir,
                               struct buf *ret_name, struct tide_err *err) MUST_CHECK;

/*
 * A file replaced whole or not at all: written beside it, on disk before it takes the name. `key` names the file beside
 * it, so that a second try finds what the first left. An existing file keeps its mode and, where we may, its owner.
 * One that failed may leave the file beside it: confined_unmark() takes it away.
 */
enum tide_code confined_replace(const struct confined *b, struct str path, enum confined_missing missing,
                                const char *key, struct str content, struct tide_err *err) MUST_CHECK;

/*
 * The file beside it, made ahead: while it is there the replacement under this key has not happened, and one that was
 * marked and is not there has. TIDE_OK of confined_marked: *ret_there is known.
 */
enum tide_code confined_mark(const struct confined *b, struct str path, const char *key, struct tide_err *err)
    MUST_CHECK;
enum tide_code confined_marked(const struct confined *b, struct str path, const char *key, bool *ret_there,
                               struct tide_err *err) MUST_CHECK;
void confined_unmark(const struct confined *b, struct str path, const char *key);

#endif
