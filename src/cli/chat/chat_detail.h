/* SPDX-License-Identifier: Apache-2.0 */
/* A call that somebody is asked about, as people read it and with nothing left out. */
#ifndef CLI_CHAT_CHAT_DETAIL_H
#define CLI_CHAT_CHAT_DETAIL_H

#include "base/buf.h"

/*
 * In lines; `args` is the JSON of the call. What a terminal would not show, or would act upon, stands there as a sign. `diff`: what
 * it changes in a file, in the place of its texts; empty: not known.
 */
void chat_detail(struct buf *out, const char *tool, const char *args, struct str diff);

#endif
