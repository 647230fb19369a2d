/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated file. `bytes` is the page cache: what every process sees. What a power cut would leave is kept as the
 * way back from there, so that a sync costs only what is dirty:
 *
 *   undo   for each sector changed since the last sync, the contents it had before each change, oldest first.
 *          The contents a sector may have after a power cut are any of those it has had since, as the kernel writes
 *          back when it likes, each sector by itself.
 *   sizes  the length before each change of length since the last sync. A power cut keeps the first m of them.
 *          A change that shortens the file takes its sectors along: kept, they are cut; not kept, they are not.
 *   mtime  a sync writes it only along with a new length, as fdatasync does; a power cut takes it back to there.
 *   stale  after a failed sync: sectors that are clean in the cache and older on the platter. Only a new write makes
 *          such a sector dirty again, or a length before it that is synced.
 *
 * Invariants: bytes[len..cap) is zero; cap is a multiple of the sector; latest[s] is 0 for a clean sector, else the
 * index + 1 of its newest undo record.
 */
#include "env/sim_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SECTOR = 512, FIRST_CAP = 8192 };

struct undo {
    uint32_t sector;
    uint32_t older;  /* index + 1 of the record before it of the same sector; 0: none */
    uint32_t resize; /* 0: a write; else it came with the resize-th change of length */
    unsigned char before[SECTOR];
};

struct stale {
    uint32_t sector;
    unsigned char platter[SECTOR];
};

struct sim_file {
    unsigned refs;
    unsigned char *bytes;
    size_t len, cap;
    size_t durable_len;
    bool len_stale; /* len is clean in the cache, durable_len on the platter */
    uint32_t *latest;
    struct undo *undo;
    size_t undo_len, undo_cap;
    size_t *sizes;
    size_t sizes_len, sizes_cap;
    struct stale *stale;
    size_t stale_len, stale_cap;
    uint64_t number;
    int64_t mtime_ns, durable_mtime_ns;
    size_t reserved; /* gone with a truncate and with a power cut: nobody promises more */
    struct sim_shm *shm;
    void *shared;
};

/* How much of the dirty data reaches the platter before the power goes. */
enum luck { LUCK_NONE, LUCK_ALL, LUCK_MOST, LUCK_HALF, LUCK_COUNT };

uint64_t sim_next(uint64_t *rng)
{
    uint64_t z = *rng += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

struct sim_file *sim_file_new(uint64_t number, int64_t now_ns)
{
    struct sim_file *f = mem_zero(sizeof *f);

    f->refs = 1;
    f->number = number;
    f->mtime_ns = f->durable_mtime_ns = now_ns;
    return f;
}

struct sim_file *sim_file_ref(struct sim_file *f)
{
    f->refs++;
    return f;
}

void sim_file_unref(struct sim_file *f)
{
    if (!f || --f->refs > 0)
        return;
    assert(!f->shm);
    free(f->bytes);
    free(f->latest);
    free(f->undo);
    free(f->sizes);
    free(f->stale);
    free(f->shared);
    free(f);
}

size_t sim_file_len(const struct sim_file *f)
{
    return f->len;
}

unsigned char *sim_file_cache(struct sim_file *f)
{
    return f->bytes;
}

struct sim_shm **sim_file_shm(struct sim_file *f)
{
    return &f->shm;
}

uint64_t sim_file_number(const struct sim_file *f)
{
    return f->number;
}

int64_t sim_file_mtime_ns(const struct sim_file *f)
{
    return f->mtime_ns;
}

void sim_file_touch(struct sim_file *f, int64_t now_ns)
{
    f->mtime_ns = now_ns;
}

size_t sim_file_reserved(const struct sim_file *f)
{
    return f->reserved;
}

void sim_file_reserve(struct sim_file *f, size_t size)
{
    if (size > f->reserved)
        f->reserved = size;
}

void *sim_file_shared(struct sim_file *f, size_t bytes)
{
    f->shared = f->shared ? f->shared : mem_zero(bytes);
    return f->shared;
}

/* ---- Reading and writing ------------------------------------------------------------------------------------ */

/* Room for one more element in a growing array. */
static void *room(void *array, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return array;
    *cap = *cap ? *cap * 2 : 16;
    return mem_grow(array, *cap * size);
}

static void reserve_bytes(struct sim_file *f, size_t len)
{
    size_t cap = f->cap ? f->cap : FIRST_CAP;

    if (len <= f->cap)
        return;
    while (cap < len)
        cap *= 2;
    f->bytes = mem_grow(f->bytes, cap);
    memset(f->bytes + f->cap, 0, cap - f->cap);
    f->latest = mem_grow(f->latest, cap / SECTOR * sizeof *f->latest);
    memset(f->latest + f->cap / SECTOR, 0, (cap - f->cap) / SECTOR * sizeof *f->latest);
    f->cap = cap;
}

/* What the platter holds of a clean sector. A stale one is no longer stale: it is about to be dirty. */
static void take_platter(struct sim_file *f, uint32_t sector, unsigned char *out)
{
    memcpy(out, f->bytes + (size_t)sector * SECTOR, SECTOR);
    for (size_t i = 0; i < f->stale_len; i++) {
        if (f->stale[i].sector == sector) {
            memcpy(out, f->stale[i].platter, SECTOR);
            f->stale[i] = f->stale[--f->stale_len];
            return;
        }
    }
}

static void remember_write(struct sim_file *f, size_t first, size_t end, uint32_t resize)
{
    for (size_t s = first / SECTOR; s * SECTOR < end; s++) {
        f->undo = room(f->undo, f->undo_len, &f->undo_cap, sizeof *f->undo);
        struct undo *u = &f->undo[f->undo_len++];
        u->sector = (uint32_t)s;
        u->older = f->latest[s];
        u->resize = resize;
        if (u->older)
            memcpy(u->before, f->bytes + s * SECTOR, SECTOR);
        else
            take_platter(f, u->sector, u->before);
        f->latest[s] = (uint32_t)f->undo_len;
    }
}

static void resize_file(struct sim_file *f, size_t len)
{
    f->sizes = room(f->sizes, f->sizes_len, &f->sizes_cap, sizeof *f->sizes);
    f->sizes[f->sizes_len++] = f->len_stale ? f->durable_len : f->len;
    f->len_stale = false;
    f->len = len;
}

size_t sim_file_read(const struct sim_file *f, void *out, size_t n, size_t at)
{
    size_t got = at >= f->len ? 0 : f->len - at < n ? f->len - at : n;

    if (got)
        memcpy(out, f->bytes + at, got);
    return got;
}

void sim_file_write(struct sim_file *f, const void *bytes, size_t n, size_t at)
{
    if (n == 0)
        return;
    reserve_bytes(f, at + n);
    remember_write(f, at, at + n, 0);
    if (at + n > f->len || (f->len_stale && at + n > f->durable_len))
        resize_file(f, at + n > f->len ? at + n : f->len);
    memcpy(f->bytes + at, bytes, n);
}

void sim_file_truncate(struct sim_file *f, size_t len)
{
    f->reserved = 0;
    if (len == f->len)
        return;
    reserve_bytes(f, len);
    if (len < f->len) {
        remember_write(f, len, f->len, (uint32_t)f->sizes_len + 1);
        memset(f->bytes + len, 0, f->len - len);
    }
    resize_file(f, len);
}

/* ---- What reaches the platter ------------------------------------------------------------------------------- */

static void forget_writes(struct sim_file *f)
{
    for (size_t i = 0; i < f->undo_len; i++)
        f->latest[f->undo[i].sector] = 0;
    f->undo_len = 0;
    f->sizes_len = 0;
}

void sim_file_sync(struct sim_file *f)
{
    if (f->sizes_len)
        f->durable_mtime_ns = f->mtime_ns;
    forget_writes(f);
    if (f->len_stale)
        return;
    f->durable_len = f->len;
    /* With a length that is on the platter the blocks behind it are given back: what they held is not seen again. */
    for (size_t i = f->stale_len; i > 0; i--)
        if ((size_t)f->stale[i - 1].sector * SECTOR >= f->len)
            f->stale[i - 1] = f->stale[--f->stale_len];
}

static size_t pick_number(enum luck luck, size_t low, size_t high, uint64_t *rng)
{
    switch (luck) {
    case LUCK_NONE:
        return low;
    case LUCK_ALL:
        return high;
    case LUCK_MOST:
        if (sim_next(rng) % 8)
            return high;
        break;
    default:
        break;
    }
    return low + sim_next(rng) % (high - low + 1);
}

/*
 * The contents of a dirty sector that survive when the first `kept` changes of length do; NULL: the newest. Contents 0
 * is the oldest, record i leads from contents i-1 to contents i. A cut that is kept bounds the choice from below, one
 * that is not from above.
 */
static const unsigned char *survivor(const struct sim_file *f, uint32_t sector, size_t kept, enum luck luck,
                                     uint64_t *rng)
{
    size_t count = 0, low = 0, high, i = 0;

    for (uint32_t at = f->latest[sector]; at; at = f->undo[at - 1].older)
        count++;
    high = count;
    for (uint32_t at = f->latest[sector]; at; at = f->undo[at - 1].older, i++) {
        const struct undo *u = &f->undo[at - 1];
        if (u->resize > kept)
            high = count - i - 1;
        else if (u->resize && low == 0)
            low = count - i;
    }
    size_t choice = pick_number(luck, low, high, rng);
    if (choice == count)
        return NULL;
    uint32_t at = f->latest[sector];
    for (i = count; i > choice + 1; i--)
        at = f->undo[at - 1].older;
    return f->undo[at - 1].before;
}

/* The writeback breaks off: what the platter has older than the cache is noted in `stale` and durable_len. */
void sim_file_sync_failed(struct sim_file *f, uint64_t *rng)
{
    enum luck luck = (enum luck)(sim_next(rng) % LUCK_COUNT);
    size_t kept = pick_number(luck, 0, f->sizes_len, rng);
    size_t platter_len = kept < f->sizes_len ? f->sizes[kept] : f->sizes_len ? f->len : f->durable_len;

    for (size_t i = 0; i < f->undo_len; i++) {
        uint32_t sector = f->undo[i].sector;
        const unsigned char *platter = f->latest[sector] ? survivor(f, sector, kept, luck, rng) : NULL;
        if (platter) {
            f->stale = room(f->stale, f->stale_len, &f->stale_cap, sizeof *f->stale);
            f->stale[f->stale_len].sector = sector;
            memcpy(f->stale[f->stale_len++].platter, platter, SECTOR);
        }
        f->latest[sector] = 0;
    }
    forget_writes(f);
    f->durable_len = platter_len;
    f->len_stale = f->durable_len != f->len;
}

/* The writeback breaks off as above, then the cache is gone: what is read next is the platter. */
void sim_file_power_cut(struct sim_file *f, uint64_t *rng)
{
    sim_file_sync_failed(f, rng);
    for (size_t i = 0; i < f->stale_len; i++)
        memcpy(f->bytes + (size_t)f->stale[i].sector * SECTOR, f->stale[i].platter, SECTOR);
    f->stale_len = 0;
    f->len = f->durable_len;
    f->len_stale = false;
    f->mtime_ns = f->durable_mtime_ns;
    f->reserved = 0;
    if (f->cap > f->len)
        memset(f->bytes + f->len, 0, f->cap - f->len);
}

static void *copy_array(const void *array, size_t len, size_t size)
{
    return len ? memcpy(mem_alloc(len * size), array, len * size) : NULL;
}

struct sim_file *sim_file_copy(const struct sim_file *f)
{
    struct sim_file *c = mem_alloc(sizeof *c);

    *c = *f;
    c->refs = 1;
    c->shm = NULL;
    c->shared = NULL;
    c->bytes = copy_array(f->bytes, f->cap, 1);
    c->latest = copy_array(f->latest, f->cap / SECTOR, sizeof *f->latest);
    c->undo = copy_array(f->undo, c->undo_cap = f->undo_len, sizeof *f->undo);
    c->sizes = copy_array(f->sizes, c->sizes_cap = f->sizes_len, sizeof *f->sizes);
    c->stale = copy_array(f->stale, c->stale_cap = f->stale_len, sizeof *f->stale);
    return c;
}
