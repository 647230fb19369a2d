/* SPDX-License-Identifier: Apache-2.0 */
/* A map from text to pointers that keeps insertion order: what is written from it is the same on every path. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/str.h"

struct map_entry {
    char *key; /* ours, NUL-terminated; NULL for a removed entry */
    size_t key_len;
    void *value;
};

struct map {
    struct map_entry *entries; /* in insertion order, removed ones left as holes */
    size_t len, cap, live;
    uint32_t *slots; /* open addressing: index + 1 into entries; 0 empty, UINT32_MAX removed */
    size_t slot_count;
};

void *map_get(const struct map *m, struct str key);                       /* NULL when absent */
struct map_entry *map_find(const struct map *m, struct str key);          /* the same, to walk on from */
void *map_put(struct map *m, struct str key, void *value);                /* the value replaced, or NULL */
void *map_remove(struct map *m, struct str key);                          /* the value removed, or NULL */
struct map_entry *map_next(const struct map *m, struct map_entry *after); /* NULL begins; NULL at the end */
void map_done(struct map *m, void (*free_value)(void *));                 /* free_value may be NULL */

static inline struct str map_key(const struct map_entry *e)
{
    return (struct str){e->key, e->key_len};
}

#endif
