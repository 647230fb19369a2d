/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names on a simulated disk: a flat list of paths. A created or removed name is seen by all at once and durable
 * when its directory is synced, not before: syncing a file says nothing about its name. After a power cut each
 * unsynced name is as before, as last seen, or (when one file took another's place) absent.
 */
#include "env/sim_disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sim_name {
    char *path;
    struct sim_file *now, *durable; /* what processes see, what the platter says; NULL: absent */
    bool is_dir;
};

static struct sim_name *find_name(const struct sim_disk *d, const char *path)
{
    for (size_t i = 0; i < d->len; i++)
        if (strcmp(d->names[i].path, path) == 0)
            return &d->names[i];
    return NULL;
}

static struct sim_name *add_name(struct sim_disk *d, const char *path)
{
    if (d->len == d->cap) {
        d->cap = d->cap ? d->cap * 2 : 8;
        d->names = mem_grow(d->names, d->cap * sizeof *d->names);
    }
    d->names[d->len] = (struct sim_name){.path = mem_dup(str_from(path))};
    return &d->names[d->len++];
}

static void set_file(struct sim_file **slot, struct sim_file *f)
{
    struct sim_file *old = *slot;

    *slot = f ? sim_file_ref(f) : NULL;
    sim_file_unref(old);
}

/* Names that are neither seen nor durable leave the list. */
static void drop_empty(struct sim_disk *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (n->now || n->durable || n->is_dir)
            d->names[kept++] = *n;
        else
            free(n->path);
    }
    d->len = kept;
}

struct sim_file *sim_disk_find(const struct sim_disk *d, const char *path)
{
    const struct sim_name *n = find_name(d, path);

    return n ? n->now : NULL;
}

struct sim_file *sim_disk_create(struct sim_disk *d, const char *path)
{
    struct sim_name *n = find_name(d, path);

    if (!n)
        n = add_name(d, path);
    assert(!n->now && !n->is_dir);
    n->now = sim_file_new();
    return n->now;
}

void sim_disk_unlink(struct sim_disk *d, const char *path)
{
    struct sim_name *n = find_name(d, path);

    if (n)
        set_file(&n->now, NULL);
    drop_empty(d);
}

/* ---- Directories -------------------------------------------------------------------------------------------- */

/* "/a/b/" and "/a/b" are the same directory; "" is ".". */
static struct str dir_view(const char *path)
{
    struct str s = str_from(path);

    while (s.len > 1 && s.ptr[s.len - 1] == '/')
        s.len--;
    return s.len ? s : STR(".");
}

static struct str parent_view(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return STR(".");
    return (struct str){path, slash == path ? 1 : (size_t)(slash - path)};
}

/* True when `path` lies somewhere below `dir`. */
static bool is_below(const char *path, struct str dir)
{
    return strncmp(path, dir.ptr, dir.len) == 0 && path[dir.len] == '/';
}

bool sim_disk_has_dir(const struct sim_disk *d, const char *path)
{
    struct str dir = dir_view(path);

    if (str_eq(dir, STR(".")) || str_eq(dir, STR("/")))
        return true;
    for (size_t i = 0; i < d->len; i++) {
        const struct sim_name *n = &d->names[i];
        if ((n->is_dir && str_eq(str_from(n->path), dir)) || ((n->now || n->is_dir) && is_below(n->path, dir)))
            return true;
    }
    return false;
}

void sim_disk_mkdir(struct sim_disk *d, const char *path)
{
    AUTO(mem_freep) char *dir = mem_dup(dir_view(path));

    if (!sim_disk_has_dir(d, dir))
        add_name(d, dir)->is_dir = true;
}

/*
 * SQLite syncs the directory of a journal, and with it the entries of everything there. Only those of the database's
 * journals ("x.db-wal", "x.db-journal") are taken here: whoever makes the database must sync its entry and not rely
 * on that. The journals go together, or a removed one could come back and undo what a later one holds.
 */
void sim_disk_sync_journals(struct sim_disk *d, const char *path)
{
    const char *dash = strrchr(path, '-');
    size_t stem = dash ? (size_t)(dash - path) + 1 : strlen(path) + 1;

    for (size_t i = 0; i < d->len; i++)
        if (strncmp(d->names[i].path, path, stem) == 0)
            set_file(&d->names[i].durable, d->names[i].now);
    drop_empty(d);
}

void sim_disk_sync_dir(struct sim_disk *d, const char *path)
{
    struct str dir = dir_view(path);

    for (size_t i = 0; i < d->len; i++)
        if (str_eq(parent_view(d->names[i].path), dir))
            set_file(&d->names[i].durable, d->names[i].now);
    drop_empty(d);
}

/* ---- The whole disk ----------------------------------------------------------------------------------------- */

static void settle_name(struct sim_name *n, struct sim_file *left)
{
    struct sim_file *held = left ? sim_file_ref(left) : NULL; /* it may be owned by the slot that is set first */

    set_file(&n->now, held);
    set_file(&n->durable, held);
    sim_file_unref(held);
}

void sim_disk_power_cut(struct sim_disk *d, uint64_t *rng)
{
    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (n->now != n->durable) {
            struct sim_file *ends[] = {n->now, n->durable, n->now && n->durable ? NULL : n->now};
            settle_name(n, ends[sim_next(rng) % 3]);
        }
        if (n->now)
            sim_file_power_cut(n->now, rng);
    }
    drop_empty(d);
}

void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from)
{
    for (size_t i = 0; i < from->len; i++) {
        const struct sim_name *n = &from->names[i];
        struct sim_name *c = add_name(to, n->path);
        c->is_dir = n->is_dir;
        c->now = n->now ? sim_file_copy(n->now) : NULL;
        if (n->durable == n->now)
            set_file(&c->durable, c->now);
        else
            c->durable = n->durable ? sim_file_copy(n->durable) : NULL;
    }
}

void sim_disk_done(struct sim_disk *d)
{
    for (size_t i = 0; i < d->len; i++) {
        sim_file_unref(d->names[i].now);
        sim_file_unref(d->names[i].durable);
        free(d->names[i].path);
    }
    free(d->names);
    *d = (struct sim_disk){0};
}
