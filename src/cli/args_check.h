/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value is what its row says: decided before anything is opened, so that bad input leaves no trace. */
#ifndef CLI_ARGS_CHECK_H
#define CLI_ARGS_CHECK_H

#include "cli/args.h"

/* `what` is how messages name it: "--limit", "ID". min, max and words as in struct opt. Sets *ret_value. */
enum tide_code args_check(const char *what, enum value_type type, const struct opt *opt, const char *text,
                          struct arg_value *ret_value, struct tide_err *err) MUST_CHECK;

#endif
