/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file that is replaced as a whole: a reader sees the old one or the new one, and a crash leaves one of them. Order:
 * lock its directory (of two that change it at once one change would be lost), read it, replace it.
 */
#ifndef ENGINE_REPLACE_FILE_H
#define ENGINE_REPLACE_FILE_H

#include "base/err.h"
#include "base/str.h"

/* The directories above the file; `path` is as it was afterwards. */
enum tide_code file_make_dirs(char *path, struct tide_err *err) MUST_CHECK;

/* Descriptor of the file's directory, locked until it is closed. */
enum tide_code file_lock_dir(const char *path, int *ret_dir, struct tide_err *err) MUST_CHECK;

/* Mode 0600. On disk when it returns. */
enum tide_code file_replace(const char *path, int dir, struct str text, struct tide_err *err) MUST_CHECK;

#endif
