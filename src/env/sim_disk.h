/* SPDX-License-Identifier: Apache-2.0 */
/* The names on a simulated disk and which of them are durable. Private to the simulator. */
#ifndef ENV_SIM_DISK_H
#define ENV_SIM_DISK_H

#include "base/str.h"
#include "env/sim_file.h"

struct sim_name {
    char *path;
    struct sim_file *now, *durable; /* what processes see, what the platter says; NULL: absent */
    bool is_dir;
    bool is_kept;    /* a directory that the platter has as well: its parent was synced */
    bool is_settled; /* a directory whose maker, or the process that found it, has synced its parent and said so */
};

struct sim_disk {
    struct sim_name *names;
    size_t len, cap;
    struct sim_change *changes; /* of names that renames have tied together, not yet durable, oldest first */
    size_t changes_len, changes_cap;
    uint64_t last_number; /* of a file; never given twice */
    unsigned listings;    /* under way: names stay where they are */
};

struct sim_file *sim_disk_find(const struct sim_disk *d, const char *path); /* borrowed; NULL: no such file */
bool sim_disk_has_dir(const struct sim_disk *d, const char *path);
bool sim_disk_has_parent(const struct sim_disk *d, const char *path);   /* the directory that it would be in */
struct sim_file *sim_disk_new_file(struct sim_disk *d, int64_t now_ns); /* without a name; the caller's */
struct sim_file *sim_disk_create(struct sim_disk *d, const char *path, int64_t now_ns); /* borrowed; the path is free */
unsigned sim_disk_links(const struct sim_disk *d, const struct sim_file *f);            /* names that it has */
void sim_disk_unlink(struct sim_disk *d, const char *path);
void sim_disk_rename(struct sim_disk *d, const char *from, const char *to); /* `from` is a file, `to` no directory */
void sim_disk_mkdir(struct sim_disk *d, const char *path);                  /* the path is free, its parent is there */
bool sim_disk_is_settled(const struct sim_disk *d, const char *path);       /* of a directory that is there */
void sim_disk_settle(struct sim_disk *d, const char *path);                 /* from now on that is so */
void sim_disk_sync_dir(struct sim_disk *d, const char *path);               /* all entries of that directory */
void sim_disk_sync_journals(struct sim_disk *d, const char *path);          /* of a journal and its siblings */
void sim_disk_sync_failed(struct sim_disk *d, const struct sim_file *but, uint64_t *rng);
void sim_disk_power_cut(struct sim_disk *d, uint64_t *rng);           /* nobody may have a file open */
void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from); /* `to` is all zero */
void sim_disk_done(struct sim_disk *d);

/* ---- Of use to the files of the disk ------------------------------------------------------------------------ */

void sim_disk_tidy(struct sim_disk *d);       /* drops names that nobody sees and no power cut brings back */
struct str sim_dir_view(const char *path);    /* "/a/b/" and "/a/b" are the same directory; "" is "." */
struct str sim_parent_view(const char *path); /* the directory that this name is in */

/* ---- sim_list.c --------------------------------------------------------------------------------------------- */

/* What is in a directory, entry by entry; names may come and go in between. */
struct sim_listing {
    struct str dir;
    size_t start, seen, len;
    char *name; /* of the entry; NULL: none yet */
    bool is_dir;
};
void sim_disk_list_begin(struct sim_disk *d, const char *path, uint64_t *rng, struct sim_listing *ret);
bool sim_disk_list_next(const struct sim_disk *d, struct sim_listing *l); /* false: that was all */
void sim_disk_list_end(struct sim_disk *d, struct sim_listing *l);

#endif
