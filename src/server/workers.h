/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for what takes time: requests that read or write the store. The queue has a bound: one more is refused, not kept waiting. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct workers;

struct workers *workers_new(size_t threads, size_t queue_max);
/* False: the queue is full, or no thread could be started. */
bool workers_post(struct workers *w, void (*fn)(void *arg), void *arg);
size_t workers_queued(struct workers *w);
void workers_stop(struct workers *w); /* finishes what is queued, and takes nothing more; takes NULL */
void workers_free(struct workers *w); /* after that; takes NULL */

#endif
