/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to pointer, in insertion order. Entries lie in an array; slots of a power-of-two table hold index + 1 into it.
 * Every slot in use (live or removed) belongs to one entry of the array (live or hole), so `len` alone bounds the
 * load: when it passes three quarters the holes are squeezed out and the table is built anew. Removing never moves
 * entries: it is allowed while walking. Putting is not.
 */
#include "base/map.h"

#include <assert.h>

#include "base/mem.h"

#define SLOT_EMPTY 0u
#define SLOT_REMOVED UINT32_MAX
#define SLOTS_MIN 8

/* The slot of the key, or the empty slot where its probing ends. There is always one. */
static uint32_t *find_slot(const struct map *m, struct str key)
{
    size_t mask = m->slot_count - 1;

    for (size_t i = str_hash(key) & mask;; i = (i + 1) & mask) {
        uint32_t slot = m->slots[i];

        if (slot == SLOT_EMPTY || (slot != SLOT_REMOVED && str_eq(map_key(&m->entries[slot - 1]), key)))
            return &m->slots[i];
    }
}

static struct map_entry *entry_of(const struct map *m, const uint32_t *slot)
{
    return !slot || *slot == SLOT_EMPTY ? NULL : &m->entries[*slot - 1];
}

static uint32_t *find_entry(const struct map *m, struct str key)
{
    return m->live ? find_slot(m, key) : NULL; /* of nothing, not even a hash is needed */
}

static void rebuild_slots(struct map *m)
{
    size_t count = SLOTS_MIN, n = 0;

    while (count < 2 * (m->live + 1))
        count *= 2;
    for (size_t i = 0; i < m->len; i++)
        if (m->entries[i].key)
            m->entries[n++] = m->entries[i];
    m->len = n;
    free(m->slots);
    m->slots = mem_array(count, sizeof(*m->slots));
    m->slot_count = count;
    for (size_t i = 0; i < m->len; i++)
        *find_slot(m, map_key(&m->entries[i])) = (uint32_t)(i + 1);
}

static void append_entry(struct map *m, uint32_t *slot, struct str key, void *value)
{
    assert(m->live < UINT32_MAX / 4);
    if (4 * (m->len + 1) > 3 * m->slot_count) {
        rebuild_slots(m);
        slot = NULL;
    }
    if (m->len == m->cap) {
        m->cap = m->cap ? 2 * m->cap : SLOTS_MIN;
        m->entries = mem_grow(m->entries, m->cap * sizeof(*m->entries));
    }
    m->entries[m->len++] = (struct map_entry){mem_dup(key), key.len, value};
    m->live++;
    *(slot ? slot : find_slot(m, key)) = (uint32_t)m->len;
}

struct map_entry *map_find(const struct map *m, struct str key)
{
    return entry_of(m, find_entry(m, key));
}

void *map_get(const struct map *m, struct str key)
{
    const struct map_entry *e = map_find(m, key);

    return e ? e->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
    uint32_t *slot = find_entry(m, key);
    struct map_entry *e = entry_of(m, slot);
    void *old = e ? e->value : NULL;

    if (e)
        e->value = value;
    else
        append_entry(m, slot, key, value);
    return old;
}

void *map_remove(struct map *m, struct str key)
{
    uint32_t *slot = find_entry(m, key);
    struct map_entry *e = entry_of(m, slot);
    void *old = e ? e->value : NULL;

    if (!e)
        return NULL;
    *slot = SLOT_REMOVED;
    free(e->key);
    *e = (struct map_entry){NULL, 0, NULL};
    m->live--;
    return old;
}

struct map_entry *map_next(const struct map *m, struct map_entry *after)
{
    for (size_t i = after ? (size_t)(after - m->entries) + 1 : 0; i < m->len; i++)
        if (m->entries[i].key)
            return &m->entries[i];
    return NULL;
}

void map_done(struct map *m, void (*free_value)(void *))
{
    if (!m)
        return;
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        free(e->key);
        if (free_value)
            free_value(e->value);
    }
    free(m->entries);
    free(m->slots);
    *m = (struct map){0};
}
