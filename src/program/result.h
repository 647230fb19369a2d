/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step's result as the log keeps it: {"exit":N,"output":"text"}. Output that is not valid UTF-8, or that escapes would
 * blow up, is kept exactly as "output_base64", and "output" is what a person can read of it.
 */
#ifndef PROGRAM_RESULT_H
#define PROGRAM_RESULT_H

#include "base/json.h"

#define RESULT_MAX_BYTES ((size_t)160 << 20) /* of the JSON while it is being written */

void result_write(struct buf *ret_json, int exit_status, struct str output);

/* The bytes and the status again. A result that was not made by a step (through the C call) is its own output, as JSON. */
enum tide_code result_read(struct arena *a, struct str json, int *ret_exit, struct str *ret_output,
                           struct tide_err *err) MUST_CHECK;

#endif
