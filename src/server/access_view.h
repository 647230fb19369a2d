/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as programs see them: the same in commands and answers. */
#ifndef SERVER_ACCESS_VIEW_H
#define SERVER_ACCESS_VIEW_H

#include "engine/shapes.h"
#include "server/access.h"

struct access_view {
    struct access_shown shown;
    const char *scopes[6];
};

/* `secret` NULL: it is not shown. The view points to `token` and to it. */
void access_view_of(struct access_view *ret, const struct caller *token, const char *secret);

/* All of them; written to a stream of shape_accesses by access_view_write(). */
struct access_views {
    struct caller *list;
    size_t n, cap;
};
enum tide_code access_views_read(struct access_views *ret, struct tide_err *err) MUST_CHECK;
void access_views_write(struct json_out *o, void *views);
void access_views_done(struct access_views *v);

#endif
