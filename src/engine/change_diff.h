/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool call would change, for the person who is asked about it. */
#ifndef ENGINE_CHANGE_DIFF_H
#define ENGINE_CHANGE_DIFF_H

#include "base/buf.h"

/*
 * Appends the hunks of a unified diff between the file as it is and as the call would leave it, bounded. False: this tool changes
 * no file, the call would fail, or the file is no text. Bytes are as in the files: the caller that shows it makes controls visible.
 */
bool change_diff(const char *working_dir, const char *tool, const char *args, struct buf *out);

#endif
