/* SPDX-License-Identifier: Apache-2.0 */
/* What requests may start, as the settings have it: names and places, never an environment, a key or arguments. */
#ifndef ENGINE_STARTABLE_H
#define ENGINE_STARTABLE_H

#include "base/shape.h"
#include "engine/server_settings.h"

#define STARTABLE_GRAPHS 200

struct startable {
    struct server_settings settings; /* the arena of all of it */
    const char **graphs; /* files below the roots, relative to the first root in which they are; ended by NULL */
    size_t n_graphs;
    const char *provider, *model; /* of chats; model NULL: none is configured */
};

/* `config`: as of settings_find(). startable_done() it, unless this fails. */
enum tide_code startable_read(const char *config, struct startable *ret, struct tide_err *err) MUST_CHECK;
void startable_done(struct startable *s);

extern const struct shape shape_startable; /* struct startable */

#endif
