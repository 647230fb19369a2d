/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated file: its page cache and what a power cut would leave of it. Private to the simulator. */
#ifndef ENV_SIM_FILE_H
#define ENV_SIM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_shm;
struct sim_file;

uint64_t sim_next(uint64_t *rng); /* splitmix64 */

/* Files are shared by their names and by the processes that have them open. */
struct sim_file *sim_file_new(uint64_t number, int64_t now_ns); /* empty, one reference */
struct sim_file *sim_file_copy(const struct sim_file *f);       /* with the same number */
struct sim_file *sim_file_ref(struct sim_file *f);
void sim_file_unref(struct sim_file *f);

size_t sim_file_len(const struct sim_file *f);
unsigned char *sim_file_cache(struct sim_file *f); /* valid until the next write or truncate */
struct sim_shm **sim_file_shm(struct sim_file *f); /* the slot for the memory SQLite shares beside it */
uint64_t sim_file_number(const struct sim_file *f);
int64_t sim_file_mtime_ns(const struct sim_file *f);
size_t sim_file_reserved(const struct sim_file *f); /* writes up to here find their space */

size_t sim_file_read(const struct sim_file *f, void *out, size_t n, size_t at); /* bytes read: less at the end */
void sim_file_write(struct sim_file *f, const void *bytes, size_t n, size_t at);
void sim_file_truncate(struct sim_file *f, size_t len);  /* may also lengthen it with zeros */
void sim_file_touch(struct sim_file *f, int64_t now_ns); /* its contents change now */
void *sim_file_shared(struct sim_file *f, size_t bytes); /* memory of all who have it open; no page cache of its own */
void sim_file_reserve(struct sim_file *f, size_t size);
void sim_file_sync(struct sim_file *f);
void sim_file_sync_failed(struct sim_file *f, uint64_t *rng);
void sim_file_power_cut(struct sim_file *f, uint64_t *rng);

#endif
