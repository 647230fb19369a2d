/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that ends the process when memory is out, arenas, and the cleanup attribute. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdlib.h>

#include "base/str.h"

void *mem_alloc(size_t n);                  /* never NULL */
void *mem_zero(size_t n);                   /* never NULL, all zero */
void *mem_grow(void *p, size_t n);          /* realloc, never NULL */
void *mem_array(size_t count, size_t size); /* zeroed, overflow checked */

/* Room for one more in an array of which `n` of `cap` are in use: it doubles. */
void *mem_room(void *p, size_t *cap, size_t size);
#define MEM_ROOM(array, n, cap) ((n) < (cap) ? (void)0 : (void)((array) = mem_room((array), &(cap), sizeof *(array))))
char *mem_dup(struct str s);           /* NUL-terminated copy */
static inline void mem_freep(void *pp) /* for AUTO */
{
    free(*(void **)pp);
}

#define AUTO(fn) __attribute__((cleanup(fn)))
#define TAKE(p)                                                                                                        \
    ({                                                                                                                 \
        __typeof__(p) taken_ = (p);                                                                                    \
        (p) = NULL;                                                                                                    \
        taken_;                                                                                                        \
    })

/* An arena hands out memory that is released all at once. */
struct arena_block;
struct arena {
    struct arena_block *head;
    char *next, *end;
    size_t used; /* bytes handed out since the last reset */
};

#define ARENA_INIT                                                                                                     \
    {                                                                                                                  \
        NULL, NULL, NULL, 0                                                                                            \
    }

void *arena_alloc_slow(struct arena *a, size_t n);
static inline void *arena_alloc(struct arena *a, size_t n) /* 8-aligned, not zeroed */
{
    n = (n + 7) & ~(size_t)7;
    if ((size_t)(a->end - a->next) < n)
        return arena_alloc_slow(a, n);
    void *p = a->next;
    a->next += n;
    a->used += n;
    return p;
}
void *arena_zero(struct arena *a, size_t n);
struct str arena_dup(struct arena *a, struct str s);       /* NUL-terminated behind the slice */
const char *arena_text(struct arena *a, const char *text); /* the same of a C string; NULL of NULL */
const char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_reset(struct arena *a); /* forgets everything, keeps one block */
void arena_done(struct arena *a);

/* After much was allocated and freed again: what the allocator still holds of it goes back to the system. */
void mem_give_back(void);

#endif
