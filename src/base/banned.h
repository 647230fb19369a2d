/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that have no place here; included on every compile line. buf, str and timefmt do what they did. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H
#ifndef __cplusplus
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#undef sprintf /* macros of a fortified libc, to some compilers */
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atof gmtime localtime gets
#endif
#endif
