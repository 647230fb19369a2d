/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a directory of a simulated disk. Its names are a flat list of paths. While a listing is under way names keep
 * their places, so that one that is there all the time is listed once, whatever else comes and goes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "env/sim_disk.h"

/* What this name is called in `dir`; NULL: it is elsewhere, or nobody sees it. */
static const char *name_in(const struct sim_name *n, struct str dir)
{
    const char *slash = strrchr(n->path, '/');

    if ((!n->now && !n->is_dir) || !str_eq(sim_parent_view(n->path), dir))
        return NULL;
    return slash ? slash + 1 : n->path;
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
        const struct sim_name *n = &d->names[(l->start + l->seen++) % l->len];
        const char *name = name_in(n, l->dir);
        if (!name)
            continue;
        free(l->name);
        l->name = mem_dup(str_from(name));
        l->is_dir = n->is_dir;
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
