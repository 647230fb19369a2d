/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the connections of one machine share beside a database in WAL mode (the -shm file of a real one).
 * SQLite reads and writes it through plain pointers, without asking the VFS. A killed process must not: so each handle
 * has mappings of its own of one memory file, and dying turns them into private ones. What SQLite still scribbles while
 * it unwinds in a dead process is then seen by nobody, and what it left half-done stays half-done for the others.
 *
 * The memory goes with its last user, as a real -shm is emptied by the first connection that finds no other.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "env/sim_machine.h"

struct sim_shm {
    int fd;
    size_t bytes;
    unsigned users;
};

static int attach_region(struct sim_handle *h)
{
    struct sim_shm **slot = sim_file_shm(h->file);

    if (h->view.attached)
        return SQLITE_OK;
    if (!*slot) {
        int fd = memfd_create("tide-sim-shm", MFD_CLOEXEC);
        if (fd < 0)
            return SQLITE_IOERR_SHMOPEN;
        *slot = mem_zero(sizeof **slot);
        (*slot)->fd = fd;
    }
    (*slot)->users++;
    h->view.attached = true;
    return SQLITE_OK;
}

static void detach_region(struct sim_handle *h)
{
    struct sim_shm **slot;

    if (!h->view.attached)
        return;
    h->view.attached = false;
    h->view.shared = h->view.exclusive = 0;
    slot = sim_file_shm(h->file);
    if (--(*slot)->users > 0)
        return;
    close((*slot)->fd);
    free(*slot);
    *slot = NULL;
}

int sim_shm_map(struct sim_handle *h, int region, int bytes, int extend, void volatile **ret_map)
{
    size_t want = ((size_t)region + 1) * (size_t)bytes;
    struct sim_view *v = &h->view;

    *ret_map = NULL;
    if (h->proc->dead)
        return SQLITE_IOERR;
    if (attach_region(h) != SQLITE_OK)
        return SQLITE_IOERR_SHMOPEN;
    struct sim_shm *shm = *sim_file_shm(h->file);
    if (shm->bytes < want && !extend)
        return SQLITE_OK;
    if (shm->bytes < want && ftruncate(shm->fd, (off_t)want) != 0)
        return SQLITE_IOERR_SHMSIZE;
    if (shm->bytes < want)
        shm->bytes = want;
    v->region_bytes = (size_t)bytes;
    if (v->len <= (size_t)region) {
        v->maps = mem_grow(v->maps, ((size_t)region + 1) * sizeof *v->maps);
        memset(v->maps + v->len, 0, ((size_t)region + 1 - v->len) * sizeof *v->maps);
        v->len = (size_t)region + 1;
    }
    if (!v->maps[region]) {
        void *at =
            mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, (off_t)(want - (size_t)bytes));

        v->maps[region] = at == MAP_FAILED ? NULL : at;
    }
    *ret_map = v->maps[region];
    return v->maps[region] ? SQLITE_OK : SQLITE_IOERR_SHMMAP;
}

void sim_shm_abandon(struct sim_handle *h)
{
    const struct sim_view *v = &h->view;

    if (!v->attached)
        return;
    int fd = (*sim_file_shm(h->file))->fd;
    for (size_t i = 0; i < v->len; i++) {
        int how = MAP_PRIVATE | MAP_FIXED;
        off_t at = (off_t)(i * v->region_bytes);
        if (v->maps[i] && mmap(v->maps[i], v->region_bytes, PROT_READ | PROT_WRITE, how, fd, at) == MAP_FAILED)
            abort(); /* continuing would let the dead write into the memory of the living */
    }
    detach_region(h);
}

void sim_shm_unmap(struct sim_handle *h)
{
    struct sim_view *v = &h->view;

    for (size_t i = 0; i < v->len; i++)
        if (v->maps[i])
            munmap(v->maps[i], v->region_bytes);
    free(v->maps);
    v->maps = NULL;
    v->len = 0;
    detach_region(h);
}

/* ---- Locks -------------------------------------------------------------------------------------------------- */

static bool others_hold(const struct sim_handle *h, unsigned mask, bool shared_too)
{
    for (const struct sim_handle *o = h->proc->sim->handles; o; o = o->next)
        if (o != h && o->file == h->file && ((o->view.exclusive | (shared_too ? o->view.shared : 0)) & mask))
            return true;
    return false;
}

int sim_shm_lock(struct sim_handle *h, int offset, int n, int flags)
{
    unsigned mask = ((1u << n) - 1) << offset;

    if (h->proc->dead)
        return SQLITE_IOERR;
    if (flags & SQLITE_SHM_UNLOCK) {
        h->view.shared &= ~mask;
        h->view.exclusive &= ~mask;
        return SQLITE_OK;
    }
    if (others_hold(h, mask, flags & SQLITE_SHM_EXCLUSIVE))
        return SQLITE_BUSY;
    if (flags & SQLITE_SHM_EXCLUSIVE)
        h->view.exclusive |= mask;
    else
        h->view.shared |= mask;
    return SQLITE_OK;
}
