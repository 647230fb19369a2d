/* SPDX-License-Identifier: Apache-2.0 */
/* What moves a session, as requests of this API. */
#ifndef SERVER_LINKS_H
#define SERVER_LINKS_H

#include "base/mem.h"
#include "tidemark.h"

/* "POST /api/v1/sessions/ID/resume {…}", in the arena; NULL: there is no such request. A next_command_fn. */
const char *link_of(struct arena *a, const struct tide_next *next);

#endif
