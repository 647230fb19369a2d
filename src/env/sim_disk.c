/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names on a simulated disk: a flat list of paths. A created or removed name is seen by all at once and durable
 * when its directory is synced, not before: syncing a file says nothing about its name. After a power cut each
 * unsynced name is as before, as last seen, or (when one file took another's place) absent.
 *
 * A rename ties two names together, so what happened to them is kept in order (`changes`) until it is durable. The model
 * is a journal that takes each change (create, remove, rename) whole or not at all and promises no order but one: of
 * the changes to the same name, a later one does not survive without the earlier ones, and through a rename that holds
 * for both its names. So after a power cut
 *   - a rename is done (`to` is the new file, `from` is gone) or not (`to` is what it was, `from` the file): a file
 *     that had a durable name has one still, unless another was put in its place or it was removed;
 *   - a file made and renamed without a sync may be gone altogether, when its creation did not survive: then `to` is
 *     what it was;
 *   - changes to other names survive or not each for itself, also later ones without earlier ones.
 * Nothing here writes the contents of a file before its rename, as some file systems kindly do. A rename from one
 * directory to another is durable when both have been synced, or when a later change to one of its names is.
 *
 * A directory is a name as well, durable when its parent is synced. One that a power cut takes is gone with all that
 * lies below it, synced or not.
 */
#include "env/sim_disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sim_change {
    char *from;                  /* of a rename; NULL: `to` was made or removed */
    char *to;                    /* what changes */
    struct sim_file *file;       /* what it names from then on; NULL: nothing */
    bool from_synced, to_synced; /* its directory was */
    bool picked;                 /* scratch of the function that walks the list */
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
    MEM_ROOM(d->names, d->len, d->cap);
    d->names[d->len] = (struct sim_name){.path = mem_dup(str_from(path))};
    return &d->names[d->len++];
}

static void set_file(struct sim_file **slot, struct sim_file *f)
{
    struct sim_file *old = *slot;

    *slot = f ? sim_file_ref(f) : NULL;
    sim_file_unref(old);
}

/* ---- Changes of names that renames have tied together ------------------------------------------------------- */

static bool touches_path(const struct sim_change *c, const char *path)
{
    return strcmp(c->to, path) == 0 || (c->from && strcmp(c->from, path) == 0);
}

static bool share_a_name(const struct sim_change *a, const struct sim_change *b)
{
    return touches_path(a, b->to) || (b->from && touches_path(a, b->from));
}

static bool is_tied(const struct sim_disk *d, const char *path)
{
    for (size_t i = 0; i < d->changes_len; i++)
        if (touches_path(&d->changes[i], path))
            return true;
    return false;
}

static void add_change(struct sim_disk *d, const char *from, const char *to, struct sim_file *f)
{
    MEM_ROOM(d->changes, d->changes_len, d->changes_cap);
    d->changes[d->changes_len++] = (struct sim_change){
        .from = from ? mem_dup(str_from(from)) : NULL,
        .to = mem_dup(str_from(to)),
        .file = f ? sim_file_ref(f) : NULL,
        .from_synced = !from,
    };
}

/* From now on what happens to this name is kept in order. What had happened before is all that is known of it. */
static void tie_name(struct sim_disk *d, const struct sim_name *n)
{
    if (is_tied(d, n->path) || n->now == n->durable)
        return;
    if (n->durable && n->now)
        add_change(d, NULL, n->path, NULL);
    add_change(d, NULL, n->path, n->now);
}

static void change_done(struct sim_change *c)
{
    free(c->from);
    free(c->to);
    sim_file_unref(c->file);
}

static void write_picked(struct sim_disk *d)
{
    for (size_t i = 0; i < d->changes_len; i++) {
        const struct sim_change *c = &d->changes[i];
        if (c->picked && c->from)
            set_file(&find_name(d, c->from)->durable, NULL);
        if (c->picked)
            set_file(&find_name(d, c->to)->durable, c->file);
    }
}

static void forget_picked(struct sim_disk *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->changes_len; i++) {
        if (d->changes[i].picked)
            change_done(&d->changes[i]);
        else
            d->changes[kept++] = d->changes[i];
    }
    d->changes_len = kept;
}

static void forget_changes(struct sim_disk *d)
{
    for (size_t i = 0; i < d->changes_len; i++)
        change_done(&d->changes[i]);
    d->changes_len = 0;
}

/* ---- Files and their names ---------------------------------------------------------------------------------- */

void sim_disk_tidy(struct sim_disk *d)
{
    size_t kept = 0;

    if (d->listings)
        return;
    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (n->now || n->durable || n->is_dir || is_tied(d, n->path))
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

unsigned sim_disk_links(const struct sim_disk *d, const struct sim_file *f)
{
    unsigned n = 0;

    for (size_t i = 0; i < d->len; i++)
        n += d->names[i].now == f;
    return n;
}

struct sim_file *sim_disk_new_file(struct sim_disk *d, int64_t now_ns)
{
    return sim_file_new(++d->last_number, now_ns);
}

struct sim_file *sim_disk_create(struct sim_disk *d, const char *path, int64_t now_ns)
{
    struct sim_name *n = find_name(d, path);

    if (!n)
        n = add_name(d, path);
    assert(!n->now && !n->is_dir);
    n->now = sim_disk_new_file(d, now_ns);
    if (is_tied(d, path))
        add_change(d, NULL, path, n->now);
    return n->now;
}

void sim_disk_unlink(struct sim_disk *d, const char *path)
{
    struct sim_name *n = find_name(d, path);

    if (n) {
        set_file(&n->now, NULL);
        if (is_tied(d, path))
            add_change(d, NULL, path, NULL);
    }
    sim_disk_tidy(d);
}

void sim_disk_rename(struct sim_disk *d, const char *from, const char *to)
{
    if (strcmp(from, to) == 0)
        return;
    if (!find_name(d, to))
        add_name(d, to);
    struct sim_name *source = find_name(d, from), *target = find_name(d, to);
    assert(source->now && !target->is_dir);
    tie_name(d, source);
    tie_name(d, target);
    add_change(d, from, to, source->now);
    set_file(&target->now, source->now);
    set_file(&source->now, NULL);
}

/* ---- Directories -------------------------------------------------------------------------------------------- */

struct str sim_dir_view(const char *path)
{
    struct str s = str_from(path);

    while (s.len > 1 && s.ptr[s.len - 1] == '/')
        s.len--;
    return s.len ? s : STR(".");
}

struct str sim_parent_view(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return STR(".");
    return (struct str){path, slash == path ? 1 : (size_t)(slash - path)};
}

/* NULL: no such directory, or one that always was. */
static struct sim_name *find_dir(const struct sim_disk *d, struct str dir)
{
    for (size_t i = 0; i < d->len; i++)
        if (d->names[i].is_dir && str_eq(str_from(d->names[i].path), dir))
            return &d->names[i];
    return NULL;
}

static bool has_dir(const struct sim_disk *d, struct str dir)
{
    return str_eq(dir, STR(".")) || str_eq(dir, STR("/")) || find_dir(d, dir);
}

bool sim_disk_has_dir(const struct sim_disk *d, const char *path)
{
    return has_dir(d, sim_dir_view(path));
}

bool sim_disk_has_parent(const struct sim_disk *d, const char *path)
{
    return has_dir(d, sim_parent_view(path));
}

void sim_disk_mkdir(struct sim_disk *d, const char *path)
{
    struct sim_name *n = find_name(d, path);

    if (!n)
        n = add_name(d, path);
    assert(!n->now && !n->is_dir);
    n->is_dir = true;
}

bool sim_disk_is_settled(const struct sim_disk *d, const char *path)
{
    const struct sim_name *n = find_dir(d, sim_dir_view(path));

    return !n || n->is_settled;
}

void sim_disk_settle(struct sim_disk *d, const char *path)
{
    struct sim_name *n = find_dir(d, sim_dir_view(path));

    if (n)
        n->is_settled = true;
}

/* Which names a sync takes: those in `dir`, or, when that is empty, those that begin with `stem`. */
struct cover {
    struct str dir, stem;
};

static bool is_covered(struct cover cover, const char *path)
{
    if (cover.dir.len)
        return str_eq(sim_parent_view(path), cover.dir);
    return strncmp(path, cover.stem.ptr, cover.stem.len) == 0;
}

/* Picks what this sync makes durable: changes all of whose directories are synced now, and those they stand on. */
static void pick_covered(struct sim_disk *d, struct cover cover)
{
    for (size_t i = d->changes_len; i-- > 0;) {
        struct sim_change *c = &d->changes[i];
        c->from_synced |= c->from && is_covered(cover, c->from);
        c->to_synced |= is_covered(cover, c->to);
        c->picked = c->from_synced && c->to_synced;
        for (size_t later = i + 1; later < d->changes_len && !c->picked; later++)
            c->picked = d->changes[later].picked && share_a_name(c, &d->changes[later]);
    }
}

static void sync_covered(struct sim_disk *d, struct cover cover)
{
    pick_covered(d, cover);
    for (size_t i = 0; i < d->len; i++)
        if (is_covered(cover, d->names[i].path) && !is_tied(d, d->names[i].path))
            set_file(&d->names[i].durable, d->names[i].now);
    write_picked(d);
    forget_picked(d);
    sim_disk_tidy(d);
}

/*
 * SQLite syncs the directory of a journal, and with it the entries of everything there. Only those of the database's
 * journals ("x.db-wal", "x.db-journal") are taken here: the process that makes the database must sync its entry and not rely
 * on that. The journals go together, or a removed one could come back and undo what a later one holds.
 */
void sim_disk_sync_journals(struct sim_disk *d, const char *path)
{
    const char *dash = strrchr(path, '-');
    size_t stem = dash ? (size_t)(dash - path) + 1 : strlen(path) + 1;

    sync_covered(d, (struct cover){.stem = {path, stem}});
}

void sim_disk_sync_dir(struct sim_disk *d, const char *path)
{
    struct cover cover = {.dir = sim_dir_view(path)};

    for (size_t i = 0; i < d->len; i++)
        d->names[i].is_kept |= d->names[i].is_dir && is_covered(cover, d->names[i].path);
    sync_covered(d, cover);
}

/* ---- The whole disk ----------------------------------------------------------------------------------------- */

static void settle_name(struct sim_name *n, struct sim_file *left)
{
    struct sim_file *held = left ? sim_file_ref(left) : NULL; /* it may be owned by the slot that is set first */

    set_file(&n->now, held);
    set_file(&n->durable, held);
    sim_file_unref(held);
}

/* By luck a power cut leaves all changes, none, most or half of them. */
static bool write_survives(uint64_t luck, uint64_t *rng)
{
    switch (luck % 4) {
    case 0:
        return true;
    case 1:
        return false;
    case 2:
        return sim_next(rng) % 8 != 0;
    default:
        return sim_next(rng) % 2 != 0;
    }
}

static void settle_changes(struct sim_disk *d, uint64_t *rng)
{
    if (d->changes_len == 0)
        return; /* nothing is drawn: a run without renames goes as it always did */
    uint64_t luck = sim_next(rng);
    for (size_t i = 0; i < d->changes_len; i++) {
        struct sim_change *c = &d->changes[i];
        c->picked = write_survives(luck, rng);
        for (size_t before = 0; before < i && c->picked; before++)
            c->picked = d->changes[before].picked || !share_a_name(c, &d->changes[before]);
    }
    write_picked(d);
    for (size_t i = 0; i < d->len; i++)
        if (is_tied(d, d->names[i].path))
            settle_name(&d->names[i], d->names[i].durable);
    forget_changes(d);
}

static void lose_dir(struct sim_disk *d, struct sim_name *dir)
{
    size_t len = strlen(dir->path);

    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (n == dir || (strncmp(n->path, dir->path, len) == 0 && n->path[len] == '/')) {
            settle_name(n, NULL);
            n->is_dir = n->is_kept = n->is_settled = false;
        }
    }
}

static void settle_dirs(struct sim_disk *d, uint64_t *rng)
{
    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (!n->is_dir || n->is_kept)
            continue;
        n->is_kept = sim_next(rng) % 2;
        if (!n->is_kept)
            lose_dir(d, n);
    }
}

/* A disk that fails one sync may have lost what it was given of other files before: every other time it has, of each. */
void sim_disk_sync_failed(struct sim_disk *d, const struct sim_file *but, uint64_t *rng)
{
    for (size_t i = 0; i < d->len; i++)
        if (d->names[i].now && d->names[i].now != but && sim_next(rng) % 2)
            sim_file_sync_failed(d->names[i].now, rng);
}

void sim_disk_power_cut(struct sim_disk *d, uint64_t *rng)
{
    settle_changes(d, rng);
    for (size_t i = 0; i < d->len; i++) {
        struct sim_name *n = &d->names[i];
        if (n->now != n->durable) {
            struct sim_file *ends[] = {n->now, n->durable, n->now && n->durable ? NULL : n->now};
            settle_name(n, ends[sim_next(rng) % 3]);
        }
        if (n->now)
            sim_file_power_cut(n->now, rng);
    }
    settle_dirs(d, rng);
    sim_disk_tidy(d);
}

/* Files are identified by their numbers, which their copies keep. */
static struct sim_file *find_copy(const struct sim_disk *to, const struct sim_file *f)
{
    for (size_t i = 0; i < to->len; i++) {
        struct sim_file *both[] = {to->names[i].now, to->names[i].durable};
        for (int k = 0; k < 2; k++)
            if (both[k] && sim_file_number(both[k]) == sim_file_number(f))
                return both[k];
    }
    for (size_t i = 0; i < to->changes_len; i++)
        if (to->changes[i].file && sim_file_number(to->changes[i].file) == sim_file_number(f))
            return to->changes[i].file;
    return NULL;
}

/* Several names and changes may share a file, and then their copies do. The caller's reference. */
static struct sim_file *copy_once(const struct sim_disk *to, const struct sim_file *f)
{
    struct sim_file *c = f ? find_copy(to, f) : NULL;

    return c ? sim_file_ref(c) : f ? sim_file_copy(f) : NULL;
}

void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from)
{
    to->last_number = from->last_number;
    for (size_t i = 0; i < from->len; i++) {
        const struct sim_name *n = &from->names[i];
        struct sim_name *c = add_name(to, n->path);
        c->is_dir = n->is_dir;
        c->is_kept = n->is_kept;
        c->is_settled = n->is_settled;
        c->now = copy_once(to, n->now);
        c->durable = copy_once(to, n->durable);
    }
    for (size_t i = 0; i < from->changes_len; i++) {
        const struct sim_change *n = &from->changes[i];
        struct sim_file *f = copy_once(to, n->file);
        add_change(to, n->from, n->to, f);
        to->changes[i].from_synced = n->from_synced;
        to->changes[i].to_synced = n->to_synced;
        sim_file_unref(f);
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
    forget_changes(d);
    free(d->changes);
    *d = (struct sim_disk){0};
}
