/* SPDX-License-Identifier: Apache-2.0 */
/* The names on a simulated disk and which of them are durable. Private to the simulator. */
#ifndef ENV_SIM_DISK_H
#define ENV_SIM_DISK_H

#include "env/sim_file.h"

struct sim_disk {
    struct sim_name *names;
    size_t len, cap;
};

struct sim_file *sim_disk_find(const struct sim_disk *d, const char *path); /* borrowed; NULL: no such file */
bool sim_disk_has_dir(const struct sim_disk *d, const char *path);          /* made, or the parent of something */
struct sim_file *sim_disk_create(struct sim_disk *d, const char *path);     /* empty, borrowed; the path must be free */
void sim_disk_unlink(struct sim_disk *d, const char *path);
void sim_disk_mkdir(struct sim_disk *d, const char *path);            /* durable at once */
void sim_disk_sync_dir(struct sim_disk *d, const char *path);         /* all entries of that directory */
void sim_disk_sync_journals(struct sim_disk *d, const char *path);    /* of a journal and its siblings */
void sim_disk_power_cut(struct sim_disk *d, uint64_t *rng);           /* nobody may have a file open */
void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from); /* `to` is all zero */
void sim_disk_done(struct sim_disk *d);

#endif
