/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a directory of a simulated disk. Its names are a flat list of paths, and a directory may be there only
 * because something lies below it. While a listing is under way names keep their places, so that one that is there all
 * the time is told once, whatever else comes and goes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "env/sim_disk.h"

/* The entry of `dir` that this name is or lies below; empty when it is elsewhere or nobody sees it. */
static struct str entry_of(const struct sim_name *n, struct str dir)
{
    const char *rest = NULL;

    if (!n->now && !n->is_dir)
        return (struct str){0};
    if (str_eq(dir, STR(".")))
        rest = n->path[0] == '/' ? NULL : n->path;
    else if (str_eq(dir, STR("/")))
        rest = n->path[0] == '/' ? n->path + 1 : NULL;
    else if (sim_is_below(n->path, dir))
        rest = n->path + dir.len + 1;
    return rest ? (struct str){rest, strcspn(rest, "/")} : (struct str){0};
}

static const struct sim_name *listed(const struct sim_disk *d, const struct sim_listing *l, size_t nth)
{
    return &d->names[(l->start + nth) % l->len];
}

/* A directory is an entry once, however many names lie below it. */
static bool told_before(const struct sim_disk *d, const struct sim_listing *l, struct str entry)
{
    for (size_t i = 0; i + 1 < l->seen; i++)
        if (str_eq(entry_of(listed(d, l, i), l->dir), entry))
            return true;
    return false;
}

/* In no order: begins anywhere. */
void sim_disk_list_begin(struct sim_disk *d, const char *path, uint64_t *rng, struct sim_listing *ret)
{
    *ret = (struct sim_listing){.dir = sim_dir_view(path), .len = d->len};
    ret->start = d->len ? sim_next(rng) % d->len : 0;
    d->listings++;
}

bool sim_disk_list_next(const struct sim_disk *d, struct sim_listing *l)
{
    while (l->seen < l->len) {
        const struct sim_name *n = listed(d, l, l->seen++);
        struct str entry = entry_of(n, l->dir);
        if (entry.len == 0)
            continue;
        l->is_dir = n->is_dir || entry.ptr[entry.len] == '/';
        if (l->is_dir && told_before(d, l, entry))
            continue;
        free(l->name);
        l->name = mem_dup(entry);
        return true;
    }
    return false;
}

void sim_disk_list_end(struct sim_disk *d, struct sim_listing *l)
{
    free(l->name);
    d->listings--;
    sim_disk_tidy(d);
}
