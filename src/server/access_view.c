/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access_view.h"

void access_view_of(struct access_view *ret, const struct caller *token, const char *secret)
{
    scopes_list(token->scopes, ret->scopes);
    ret->shown = (struct access_shown){.name = token->name,
                                       .scopes = ret->scopes,
                                       .created_ms = token->created_ms,
                                       .expires_ms = token->expires_ms,
                                       .expired = !caller_is_valid(token),
                                       .signed_in = token->signed_in,
                                       .token = secret};
}

static void add_view(void *arg, const struct caller *token)
{
    struct access_views *v = arg;

    MEM_ROOM(v->list, v->n, v->cap);
    v->list[v->n++] = *token;
}

enum tide_code access_views_read(struct access_views *ret, struct tide_err *err)
{
    *ret = (struct access_views){NULL, 0, 0};
    return access_list(add_view, ret, err);
}

void access_views_write(struct json_out *o, void *views)
{
    const struct access_views *v = views;

    for (size_t i = 0; i < v->n; i++) {
        struct access_view view;

        access_view_of(&view, &v->list[i], NULL);
        shape_put(o, &shape_access, &view.shown);
    }
}

void access_views_done(struct access_views *v)
{
    free(v->list);
}
