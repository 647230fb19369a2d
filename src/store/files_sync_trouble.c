/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a store report to each other about their syncs, in shared memory: the beginning of `changes`.
 *
 * A disk that fails one sync may have lost what it had been given of other files, and a later sync of those says "ok". So a write
 * counts as stored when its own sync went well and no sync of anybody failed since the write began. Each process therefore says
 * that it begins a sync before it writes, and how many have ended; a failure is counted before its sync is said to have ended.
 * A process whose sync went well waits for those that were under way by then; when one failed, or its process died in it, the same
 * bytes are written once more, in place, and synced: reading them back would prove nothing, because the page cache answers.
 *
 * One that does not end (its process is stopped, its disk hangs) is not waited for beyond LATE_MS. It can fail only once, and
 * spoil one write by that: the bytes are written and synced once more for each such sync.
 *
 *   0   change: another number after every commit, for those who watch
 *   8   the kernel's boot: what an earlier one left means nothing, because the page cache went with it
 *   16  failures   24  slots in use   32  written with a call after every commit, so that inotify reports it
 *   64  a slot of 64 bytes for every process that writes: who it is, syncs begun and ended, whether it is committing
 */
#include <stddef.h>
#include <stdio.h>

#include "store/files_store.h"

#define SLOTS 1023
#define LATE_MS 100       /* that another's sync is waited for */
#define ELSEWHERE_MS 5000 /* the same, where it is not known whether that process lives; then it counts as dead */

struct slot {
    int64_t pid; /* 0: nobody's */
    uint64_t start_time, pid_ns, begun, ended, committing, reserved[2];
};

struct word {
    int64_t change;
    uint64_t boot, failures, used, told, reserved[3];
    struct slot slots[SLOTS];
};

static uint64_t get_word(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static void set_word(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

static int64_t pid_of(const struct slot *slot)
{
    return __atomic_load_n(&slot->pid, __ATOMIC_SEQ_CST);
}

static void set_pid(struct slot *slot, int64_t pid)
{
    __atomic_store_n(&slot->pid, pid, __ATOMIC_SEQ_CST);
}

static void add_one(uint64_t *at)
{
    __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);
}

/* NULL: there is none, or no room for it. */
static struct word *word_of(struct files_store *s, struct tide_err *err)
{
    if (s->changes)
        return s->base.env->ops->share(s->changes, sizeof(struct word), err);
    tide_fail(err, TIDE_IO, "'%s/changes' is not there", s->dir);
    return NULL;
}

static uint64_t boot_number(const struct files_store *s)
{
    unsigned char digest[DIGEST_SIZE];
    uint64_t n;

    digest_of(digest, str_from(s->holders.self.kernel_boot));
    memcpy(&n, digest, sizeof n);
    return n | 1;
}

/* ---- slots ---- */

static bool is_dead(struct files_store *s, const struct slot *slot, bool *ret_elsewhere)
{
    struct env_proc p = {
        .pid_ns = get_word(&slot->pid_ns), .pid = pid_of(slot), .start_time = get_word(&slot->start_time)};
    enum env_life life;

    snprintf(p.kernel_boot, sizeof p.kernel_boot, "%s", s->holders.self.kernel_boot);
    life = s->base.env->ops->life(s->base.env, &p);
    *ret_elsewhere = life == ENV_ELSEWHERE;
    return life == ENV_DEAD;
}

/* Its process died in a sync: that may have failed. */
static void write_off(struct word *w, struct slot *slot)
{
    add_one(&w->failures);
    set_word(&slot->ended, get_word(&slot->begun));
}

/* The slots of processes that are gone are used again. With the lock of the file. */
static struct slot *free_slot(struct files_store *s, struct word *w)
{
    bool elsewhere;

    for (uint64_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &w->slots[i];

        if (i < get_word(&w->used) && pid_of(slot) && !is_dead(s, slot, &elsewhere))
            continue;
        if (i < get_word(&w->used) && pid_of(slot) && get_word(&slot->begun) != get_word(&slot->ended))
            write_off(w, slot);
        return slot;
    }
    return NULL;
}

static enum tide_code claim_locked(struct files_store *s, struct word *w, struct tide_err *err)
{
    struct slot *slot;

    if (get_word(&w->boot) != boot_number(s) || get_word(&w->used) > SLOTS) {
        memset(w->slots, 0, sizeof w->slots);
        set_word(&w->used, 0);
        add_one(&w->failures);
        set_word(&w->boot, boot_number(s));
    }
    slot = free_slot(s, w);
    if (!slot)
        return tide_fail(err, TIDE_BUSY, "%d processes write to '%s' already: try again later", SLOTS, s->dir);
    set_word(&slot->start_time, s->holders.self.start_time);
    set_word(&slot->pid_ns, s->holders.self.pid_ns);
    set_word(&slot->ended, get_word(&slot->begun));
    set_word(&slot->committing, 0);
    set_pid(slot, s->holders.self.pid);
    s->slot = (int)(slot - w->slots);
    if ((uint64_t)s->slot >= get_word(&w->used))
        set_word(&w->used, (uint64_t)s->slot + 1);
    return TIDE_OK;
}

static enum tide_code claim_slot(struct files_store *s, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct word *w = word_of(s, err);
    enum tide_code code = TIDE_OK;

    if (!w)
        return err->code;
    pthread_mutex_lock(&s->slot_mu);
    if (s->slot < 0) {
        code = ops->lock(s->changes, STORE_LOCK_MS, err);
        code = code ? code : claim_locked(s, w, err);
        ops->unlock(s->changes);
    }
    pthread_mutex_unlock(&s->slot_mu);
    return code;
}

void word_leave(struct files_store *s)
{
    struct word *w = s->slot >= 0 ? word_of(s, NULL) : NULL;

    if (w) {
        set_word(&w->slots[s->slot].committing, 0);
        set_pid(&w->slots[s->slot], 0);
    }
    s->slot = -1;
}

void word_committing(struct files_store *s, bool is)
{
    struct word *w = s->slot >= 0 ? word_of(s, NULL) : NULL;

    if (w)
        set_word(&w->slots[s->slot].committing, is);
}

void word_changed(struct files_store *s, int64_t change)
{
    struct word *w = word_of(s, NULL);

    if (!w)
        return;
    __atomic_store_n(&w->change, change, __ATOMIC_SEQ_CST);
    if (s->base.env->threads) /* else nobody waits */
        (void)!s->base.env->ops->pwrite(s->changes, &change, sizeof change, offsetof(struct word, told), NULL);
}

/* Processes that died in a commit may not have reported it: each of them counts once. Where their death is not known,
 * they count again every second. */
static int64_t version_of(struct files_store *s, const struct word *w)
{
    uint64_t version = (uint64_t)__atomic_load_n(&w->change, __ATOMIC_SEQ_CST), used = get_word(&w->used);
    bool elsewhere = false;

    if (get_word(&w->boot) != boot_number(s))
        return (int64_t)version;
    for (uint64_t i = 0; i < used && i < SLOTS; i++) {
        const struct slot *slot = &w->slots[i];

        if (!pid_of(slot) || !get_word(&slot->committing))
            continue;
        if (is_dead(s, slot, &elsewhere))
            version += (uint64_t)pid_of(slot) * 0x9e3779b97f4a7c15u ^ get_word(&slot->start_time);
        else if (elsewhere)
            version += (uint64_t)(s->base.env->ops->mono_ns(s->base.env) / 1000000000) << 32;
    }
    return (int64_t)version;
}

enum tide_code word_change(struct files_store *s, int64_t *ret_version, struct tide_err *err)
{
    AUTO(mem_freep) struct word *copy = NULL;
    const struct word *w = NULL;
    size_t got = 0;

    *ret_version = 0;
    if (!s->base.read_only) {
        w = word_of(s, NULL);
    } else if (s->changes) { /* it may be shorter, which mapped memory would not show */
        w = copy = mem_zero(sizeof *copy);
        if (s->base.env->ops->pread(s->changes, copy, sizeof *copy, 0, &got, err))
            return err->code;
    }
    if (w)
        *ret_version = version_of(s, w);
    return TIDE_OK;
}

/* ---- syncs ---- */

enum tide_code word_begin(struct files_store *s, struct word_at *ret, struct tide_err *err)
{
    struct word *w;

    if (s->slot < 0 && claim_slot(s, err))
        return tide_wrap(err, "nothing was stored");
    w = word_of(s, err);
    *ret = (struct word_at){.failures = get_word(&w->failures)};
    add_one(&w->slots[s->slot].begun);
    return TIDE_OK;
}

void word_end(struct files_store *s, bool failed)
{
    struct word *w = word_of(s, NULL);

    if (failed)
        add_one(&w->failures);
    add_one(&w->slots[s->slot].ended);
}

/* Whether the syncs that were under way in there have ended; one that nobody can end is settled. */
static bool await_word(struct files_store *s, struct word *w, struct slot *slot)
{
    uint64_t begun = get_word(&slot->begun);
    bool elsewhere = false;

    for (int ms = 0; pid_of(slot) && get_word(&slot->ended) < begun; ms++) {
        if (is_dead(s, slot, &elsewhere) || (elsewhere && ms >= ELSEWHERE_MS)) {
            write_off(w, slot);
            return true;
        }
        if (!elsewhere && ms >= LATE_MS)
            return false;
        s->base.env->ops->sleep_ms(s->base.env, 1);
    }
    return true;
}

bool word_holds(struct files_store *s, struct word_at *at)
{
    struct word *w = word_of(s, NULL);
    uint64_t used = get_word(&w->used), late = 0, failures;

    for (uint64_t i = 0; i < used && i < SLOTS; i++)
        if (get_word(&w->slots[i].begun) != get_word(&w->slots[i].ended))
            late += !await_word(s, w, &w->slots[i]);
    failures = get_word(&w->failures);
    if (failures == at->failures && at->again >= late)
        return true;
    at->again++;
    at->failures = failures;
    return false;
}

enum tide_code word_again(struct files_store *s, const struct word_at *at, struct tide_err *err)
{
    if (at->again >= WORD_TRIES)
        return tide_fail(err, TIDE_IO, "syncs of other processes in '%s' fail repeatedly: the disk is failing", s->dir);
    add_one(&word_of(s, NULL)->slots[s->slot].begun);
    return TIDE_OK;
}

enum tide_code word_guard(struct files_store *s, files_write_fn *fn, void *arg, struct tide_err *err)
{
    struct word_at at;
    enum tide_code code = word_begin(s, &at, err);

    while (!code) {
        code = fn(s, arg, at.again > 0, err);
        word_end(s, code == TIDE_IO);
        if (code || word_holds(s, &at))
            break;
        code = word_again(s, &at, err);
    }
    return code;
}
