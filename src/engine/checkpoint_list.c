/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session whose log is damaged has checkpoints all the same. They are listed as far as they can be read, and what cannot be
 * is handed along: a face shows both.
 */
#include "engine/checkpoint_list.h"

#include "session/session.h"

static int add_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    struct checkpoint_list *l = arg;
    struct tide_checkpoint *to;
    const char **texts[5];

    MEM_ROOM(l->at, l->n, l->cap);
    to = &l->at[l->n++];
    *to = *c;
    texts[0] = &to->id;
    texts[1] = &to->type_word;
    texts[2] = &to->node;
    texts[3] = &to->next_node;
    texts[4] = &to->description;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(&l->arena, *texts[i]);
    return 0;
}

static int count_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    struct checkpoint_list *l = arg;

    l->latest = arena_dup(&l->arena, str_from(c->id)).ptr;
    l->total++;
    return 0;
}

static enum tide_code read_whole(tide_store *store, const char *id, const struct tide_checkpoint_filter *filter,
                                 struct checkpoint_list *l, struct tide_err *err)
{
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, id, TIDE_SESSION_READ, &s, err);

    code = code ? code : tide_checkpoint_list(s, filter, add_checkpoint, l, err);
    code = code ? code : tide_checkpoint_list(s, NULL, count_checkpoint, l, err);
    tide_session_close(s);
    return code;
}

enum tide_code checkpoint_list_read(tide_store *store, const char *id, const struct tide_checkpoint_filter *filter,
                                    struct checkpoint_list *ret, struct tide_err *err)
{
    static const struct tide_checkpoint_filter all = {.size = sizeof all};
    enum tide_code code;

    *ret = (struct checkpoint_list){.arena = ARENA_INIT};
    if (session_resolve(store_of(store), str_from(id), ret->session_id, err))
        return err->code;
    code = read_whole(store, ret->session_id, filter, ret, err);
    if (code != TIDE_CORRUPT)
        return code;
    ret->n = 0;
    ret->total = 0;
    ret->latest = NULL;
    ret->damage = *err;
    if (checkpoint_list_around(store_of(store), ret->session_id, filter, add_checkpoint, ret, &ret->damage, err) ||
        checkpoint_list_around(store_of(store), ret->session_id, &all, count_checkpoint, ret, &ret->damage, err))
        return err->code;
    return TIDE_OK;
}

void checkpoint_list_done(struct checkpoint_list *l)
{
    free(l->at);
    arena_done(&l->arena);
}
