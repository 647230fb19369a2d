/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall clocks are set, and those of two machines differ: no lease is judged by them.
 *
 *   here            the kernel reports: it lives, or is dead (a zombie is, a reused pid has another start time)
 *   here, stopped;  the clock of the one kernel that both have: its last heartbeat is longer ago than its lease, or not.
 *   or hidden in    That clock stands still while the machine sleeps, as its processes do.
 *   a container
 *   another boot    dead, when the file system is of this machine alone: it ended with its kernel.
 *   anything else   another machine, perhaps: its heartbeat is watched. When it has not changed for as long as its lease
 *                   is, by our own clock, nobody is there. Until then it lives.
 */
#include "store/holder.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS 1000000

struct sighting {
    int64_t expires_ms, since_ms; /* the heartbeat, and since when it has been the same, by our clock */
};

void holders_init(struct holders *h, struct env *env)
{
    *h = (struct holders){.local = false};
    env->ops->self(env, &h->self);
    pthread_mutex_init(&h->mu, NULL);
}

void holders_done(struct holders *h)
{
    map_done(&h->seen, free);
    pthread_mutex_destroy(&h->mu);
}

static int64_t clock_ms(struct store *store)
{
    return store->env->ops->mono_ns(store->env) / NS_PER_MS;
}

void holder_beats(const struct holders *h, struct store *store, const char *boot_id, struct holder *ret)
{
    *ret = (struct holder){.proc = h->self,
                           .expires_ms = env_now_ms(store->env) + store->lease_ms,
                           .lease_ms = store->lease_ms,
                           .beat_ms = clock_ms(store)};
    snprintf(ret->boot_id, sizeof ret->boot_id, "%s", boot_id);
}

/* For how long we have seen the same heartbeat. */
static int64_t silent_ms(struct holders *h, const struct holder *who, int64_t now)
{
    struct sighting *seen;
    int64_t since;

    pthread_mutex_lock(&h->mu);
    seen = h->seen.live ? map_get(&h->seen, str_from(who->boot_id)) : NULL;
    if (!seen) {
        seen = mem_zero(sizeof *seen);
        seen->since_ms = now;
        seen->expires_ms = who->expires_ms;
        free(map_put(&h->seen, str_from(who->boot_id), seen));
    } else if (seen->expires_ms != who->expires_ms) {
        seen->since_ms = now;
        seen->expires_ms = who->expires_ms;
    }
    since = seen->since_ms;
    pthread_mutex_unlock(&h->mu);
    return now - since;
}

bool holder_alive(struct holders *h, struct store *store, const struct holder *who, char ret_who[160])
{
    enum env_life life = store->env->ops->life(store->env, &who->proc);
    bool same_kernel = h->self.kernel_boot[0] && strcmp(h->self.kernel_boot, who->proc.kernel_boot) == 0;
    bool clock_tells = same_kernel && who->beat_ms > 0 && who->beat_ms <= clock_ms(store);
    int64_t lease = who->lease_ms > 0 ? who->lease_ms : store->lease_ms, now = clock_ms(store), silent;

    snprintf(ret_who, 160, "process %" PRId64 " (%s)", who->proc.pid, who->boot_id);
    if (life == ENV_ALIVE || life == ENV_DEAD)
        return life == ENV_ALIVE; /* one that runs here is not silent because it is dead: the disk may be full */
    if (!same_kernel && h->self.kernel_boot[0] && who->proc.kernel_boot[0] && h->local)
        return false;
    silent = clock_tells ? now - who->beat_ms : silent_ms(h, who, now);
    snprintf(ret_who, 160, "process %" PRId64 "%s (%s, gone when silent for %" PRId64 " s%s)", who->proc.pid,
             life == ENV_STOPPED ? ", which is stopped"
             : same_kernel       ? " of another container"
                                 : " of another machine or container",
             who->boot_id, (lease - silent + 999) / 1000, clock_tells ? "" : " while it is watched");
    return silent <= lease;
}
