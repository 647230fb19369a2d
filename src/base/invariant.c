/* SPDX-License-Identifier: Apache-2.0 */
#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void invariant_broken(const char *what, const char *file, int line)
{
    char text[300];
    int len = snprintf(text, sizeof text, "tidemark: bug: %s:%d: this must hold: %s\n", file, line, what);

    (void)!write(STDERR_FILENO, text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
    abort();
}
