/* SPDX-License-Identifier: Apache-2.0 */
/* One thing that is wrong with what people wrote, or that may be meant otherwise. */
#ifndef BASE_PROBLEM_H
#define BASE_PROBLEM_H

#include <stdbool.h>

struct problem {
    bool warning;
    const char *path; /* "$.nodes[2].outputs[0]" */
    const char *what;
    const char *hint; /* what to do; "" when that is clear */
};
typedef void problem_fn(void *arg, const struct problem *problem);

#endif
