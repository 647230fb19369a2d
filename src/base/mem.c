/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation and arenas. Out of memory ends the process with one line: the log makes a crash safe, and no caller has
 * to be written twice.
 *
 * An arena is a list of blocks; the head is the one being filled, and its size decides the next one's:
 *
 *     4 KiB, 8 KiB, … 1 MiB, 1 MiB, …
 *
 * A request that no block of 1 MiB can hold gets a block of its own behind the head, which therefore is never a giant:
 * it is the one that arena_reset keeps.
 */
#include "base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define BLOCK_MIN ((size_t)4 << 10)
#define BLOCK_MAX ((size_t)1 << 20)
#define EXIT_NO_MEMORY 70

struct arena_block {
    struct arena_block *prev;
    size_t size; /* of data */
    char data[];
};

static _Noreturn void out_of_memory(void)
{
    static const char line[] = "tidemark: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof(line) - 1);

    (void)ignored;
    _exit(EXIT_NO_MEMORY);
}

static void *or_die(void *p)
{
    if (!p)
        out_of_memory();
    return p;
}

void *mem_alloc(size_t n)
{
    return or_die(malloc(n ? n : 1));
}

void *mem_zero(size_t n)
{
    return or_die(calloc(1, n ? n : 1));
}

void *mem_grow(void *p, size_t n)
{
    return or_die(realloc(p, n ? n : 1));
}

void *mem_room(void *p, size_t *cap, size_t size)
{
    *cap = *cap ? 2 * *cap : 8;
    return mem_grow(p, *cap * size);
}

void *mem_array(size_t count, size_t size)
{
    size_t n;

    if (__builtin_mul_overflow(count, size, &n))
        out_of_memory();
    return mem_zero(n);
}

char *mem_dup(struct str s)
{
    char *copy = mem_alloc(s.len + 1);

    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

static struct arena_block *block_new(size_t size)
{
    size_t n;
    struct arena_block *block;

    if (__builtin_add_overflow(size, sizeof(*block), &n))
        out_of_memory();
    block = mem_alloc(n);
    block->prev = NULL;
    block->size = size;
    return block;
}

static void fill_head(struct arena *a)
{
    a->next = a->head->data;
    a->end = a->next + a->head->size;
}

static void push_head(struct arena *a, size_t need)
{
    size_t size = a->head ? 2 * (a->head->size + sizeof(struct arena_block)) : BLOCK_MIN;
    struct arena_block *block;

    while (size < BLOCK_MAX && size - sizeof(struct arena_block) < need)
        size *= 2;
    block = block_new((size < BLOCK_MAX ? size : BLOCK_MAX) - sizeof(struct arena_block));
    block->prev = a->head;
    a->head = block;
    fill_head(a);
}

void *arena_alloc_slow(struct arena *a, size_t n)
{
    bool giant = n > BLOCK_MAX - sizeof(struct arena_block);
    struct arena_block *block;

    if (!giant || !a->head)
        push_head(a, giant ? 0 : n);
    if (!giant)
        return arena_alloc(a, n);
    block = block_new(n);
    block->prev = a->head->prev;
    a->head->prev = block;
    a->used += n;
    return block->data;
}

void *arena_zero(struct arena *a, size_t n)
{
    return memset(arena_alloc(a, n ? n : 1), 0, n);
}

struct str arena_dup(struct arena *a, struct str s)
{
    char *copy = arena_alloc(a, s.len + 1);

    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

const char *arena_text(struct arena *a, const char *text)
{
    return text ? arena_dup(a, str_from(text)).ptr : NULL;
}

const char *arena_printf(struct arena *a, const char *fmt, ...)
{
    size_t room = (size_t)(a->end - a->next);
    char *at = a->next, *text; /* most texts fit into what is left of the block: they are written once */
    va_list args, again;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(at, room, fmt, args);
    va_end(args);
    text = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n < 0)
        text[0] = '\0';
    else if (text != at || (size_t)n >= room)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

static void free_blocks(struct arena_block *block)
{
    while (block) {
        struct arena_block *prev = block->prev;

        free(block);
        block = prev;
    }
}

void arena_reset(struct arena *a)
{
    a->used = 0;
    if (!a->head)
        return;
    free_blocks(a->head->prev);
    a->head->prev = NULL;
    fill_head(a);
}

void arena_done(struct arena *a)
{
    if (!a)
        return;
    free_blocks(a->head);
    *a = (struct arena)ARENA_INIT;
}

void mem_give_back(void)
{
    (void)malloc_trim(0);
}
