/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of all writing is that of the side file "-mark", and the process that has it commits. Those who find it taken meet in "-queue",
 * memory that the processes of one store share: each has a slot, in which it asks for the lock or hands its batches over. The process
 * that has the lock commits them with its own, in one transaction and with one sync, and answers; then it commits what has come
 * meanwhile, or names the next one, in the order in which they asked.
 *
 *    IDLE ─► FILLING ─► READY ──lock──► TAKEN ─► STORING ──COMMIT──► DONE ─► IDLE
 *                   └─► WANTS (the lock alone)
 *
 * The lock decides, this memory only hurries it. The process that waits tries the lock itself from time to time, so that one that died or was
 * stopped is in nobody's way for long; a process that cannot use this memory, or knows nothing of it, takes the lock as it comes.
 *
 * TAKEN, STORING and DONE are set under the lock alone. So the process that has the lock and finds TAKEN knows that the process which took
 * it is gone, and that nothing of it was stored: it may be taken again. STORING: it may be stored, or not; the places of its events
 * were put into the slot before, and its owner looks for the digest of the last one (settle_lost()). DONE comes behind the sync.
 * An owner that gives up on what was taken marks it ABANDONED: nobody takes it again.
 *
 *   0     magic, kernel boot, number of the file (a copy is another), pid namespace, founded, ticket, touched; next, used
 *   4096  a slot of 64 bytes for every process: who it is, what it asks for, the word that it sleeps on
 *   …     an area for every slot: sqlite_request.c
 */
#include <stdio.h>

#include "base/invariant.h"
#include "store/sqlite_db.h"

#define MAGIC 0x3165756575714554u /* "TEqueue1" */
#define SLOTS 128
#define AREA_BYTES (32 * 1024)
#define FIRST_MS 10      /* that one waits before it tries the lock itself; then longer */
#define SLOW_MS 100      /* at most */
#define AGAIN_MS 200     /* STORE_LOCK_MS, for one that was refused lately */
#define LOOK_MS 20       /* between two looks for a queue that others may have made */
#define ROUNDS 64        /* commits for others, until another process does it */
#define OTHERS_MS 600000 /* processes of another container that did nothing for so long are gone */

enum state { IDLE, FILLING, WANTS, READY, TAKEN, STORING, DONE, LOST, STATE = 15, NAMED = 16, ABANDONED = 32 };

struct slot {
    int64_t pid; /* 0: nobody's */
    uint64_t start_time, keys, ticket;
    int64_t boot;
    uint32_t word, outcome;
    uint64_t reserved[2];
};

struct shared {
    uint64_t magic, boot, file, pid_ns, founded, ticket;
    int64_t touched_ms;
    uint32_t next, used; /* next: the slot that is to take the lock, from 1; 0: the first that comes */
    char reserved[4096 - 64];
    struct slot slots[SLOTS];
    char areas[SLOTS][AREA_BYTES];
};

#define GET(at) __atomic_load_n((at), __ATOMIC_SEQ_CST)
#define SET(at, value) __atomic_store_n((at), (value), __ATOMIC_SEQ_CST)

static bool swap_word(uint32_t *word, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* From one state to another, whatever flags are set beside it. */
static bool move_state(uint32_t *word, uint32_t from, uint32_t to)
{
    uint32_t now = GET(word);

    while ((now & STATE) == from)
        if (__atomic_compare_exchange_n(word, &now, (now & ~(uint32_t)STATE) | to, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return true;
    return false;
}

static int64_t clock_ms(struct sqlite_store *s)
{
    return s->base.env->ops->mono_ns(s->base.env) / 1000000;
}

/* Asked for anew wherever a process may have died in between (in simulation it stores into nothing from then on). */
static struct shared *shared_of(struct sqlite_store *s)
{
    return s->queue.file ? s->base.env->ops->share(s->queue.file, sizeof(struct shared), NULL) : NULL;
}

static struct slot *slot_of(struct sqlite_store *s)
{
    return &shared_of(s)->slots[s->queue.slot];
}

static unsigned used_slots(const struct shared *q)
{
    uint32_t used = GET(&q->used);

    return used < SLOTS ? used : SLOTS;
}

void queue_init(struct queue *q)
{
    *q = (struct queue){.slot = -1};
}

/* ---- a slot ---- */

static uint64_t number_of(const void *bytes, size_t n)
{
    static const unsigned char key[SHORT_KEY_SIZE] = "queue";

    return (uint64_t)digest_short(key, bytes, n) | 1;
}

static uint64_t boot_of(const struct sqlite_store *s)
{
    return number_of(s->holders.self.kernel_boot, strlen(s->holders.self.kernel_boot));
}

/* Only who has the same keys, and writes the same, commits for another. */
static uint64_t keys_of(const struct sqlite_store *s)
{
    unsigned char digests[2][DIGEST_SIZE];
    struct digest_state d;

    for (int i = 0; i < 2; i++) {
        digest_begin(&d, i ? &s->base.origin.user : &s->base.key);
        digest_add_str(&d, STR("keys of a queue"));
        digest_add_int(&d, SQLITE_SCHEMA_VERSION);
        digest_end(&d, digests[i]);
    }
    return number_of(digests, sizeof digests);
}

static bool is_dead(struct sqlite_store *s, const struct slot *slot)
{
    struct env_proc p = s->holders.self;

    p.pid = GET(&slot->pid);
    p.start_time = GET(&slot->start_time);
    return s->base.env->ops->life(s->base.env, &p) == ENV_DEAD;
}

/*
 * Nobody's, or that of a process that is gone, and nobody is at what it asked for: it is ours from here on, unless the process that has the
 * lock takes what is asked for there at this very moment.
 */
static bool take_over(struct sqlite_store *s, struct slot *slot)
{
    uint32_t word = GET(&slot->word), state = word & STATE;

    return (!GET(&slot->pid) || (state != TAKEN && state != STORING && is_dead(s, slot))) &&
           swap_word(&slot->word, word, FILLING);
}

/* Whether those who use this memory live where we do; else it is made anew, when nobody can be using it. With the lock of the file. */
static bool found(struct sqlite_store *s, struct shared *q)
{
    int64_t now = clock_ms(s), touched = GET(&q->touched_ms);
    struct env_stat st;
    bool ours;

    if (s->base.env->ops->fstat(s->queue.file, &st, NULL))
        return false;
    ours = GET(&q->magic) && GET(&q->boot) == boot_of(s) && GET(&q->file) == st.ino;
    if (GET(&q->magic) && GET(&q->magic) != MAGIC)
        return false; /* of another version */
    if (ours && GET(&q->pid_ns) == s->holders.self.pid_ns)
        return true;
    if (ours && touched <= now && touched > now - OTHERS_MS)
        return false; /* of another container */
    SET(&q->magic, 0);
    memset(q->slots, 0, sizeof q->slots);
    SET(&q->used, 0);
    SET(&q->next, 0);
    SET(&q->boot, boot_of(s));
    SET(&q->file, st.ino);
    SET(&q->pid_ns, s->holders.self.pid_ns);
    __atomic_add_fetch(&q->founded, 1, __ATOMIC_SEQ_CST);
    SET(&q->touched_ms, now);
    SET(&q->magic, MAGIC);
    return true;
}

/* With the lock of the file. */
static void claim_slot(struct sqlite_store *s, struct shared *q)
{
    unsigned i = 0;
    struct slot *slot;

    if (!found(s, q))
        return;
    while (i < used_slots(q) && !take_over(s, &q->slots[i]))
        i++;
    if (i == SLOTS)
        return;
    slot = &q->slots[i];
    SET(&slot->start_time, s->holders.self.start_time);
    SET(&slot->keys, keys_of(s));
    SET(&slot->pid, s->holders.self.pid);
    SET(&slot->word, IDLE);
    if (i >= used_slots(q))
        SET(&q->used, i + 1);
    s->queue.slot = (int)i;
    s->queue.joined = GET(&q->founded);
}

static bool has_slot(struct sqlite_store *s)
{
    struct shared *q = shared_of(s);

    if (!q || s->queue.slot < 0)
        return false;
    if (GET(&q->magic) == MAGIC && GET(&q->founded) == s->queue.joined &&
        GET(&q->slots[s->queue.slot].pid) == s->holders.self.pid)
        return true;
    s->queue.slot = -1; /* made anew by others: we were taken for gone */
    return false;
}

/* Finds or makes the memory and a slot in it. `create`: others are here, so there is to be one. */
static bool join_queue(struct sqlite_store *s, bool create)
{
    const struct env_ops *ops = s->base.env->ops;
    int64_t now = clock_ms(s);
    char path[1100];

    if (has_slot(s))
        return true;
    if (s->queue.off || !s->holders.local || (!create && now < s->queue.looked_ms + LOOK_MS && s->queue.looked_ms))
        return false;
    s->queue.looked_ms = now;
    if (db_path(s, "-queue", path, NULL) ||
        (!s->queue.file &&
         ops->open(s->base.env, path, create ? ENV_WRITE | ENV_CREATE : ENV_WRITE, &s->queue.file, NULL)))
        return false;
    if (!shared_of(s)) {
        s->queue.off = true;
        ops->close(TAKE(s->queue.file));
        return false;
    }
    if (ops->lock(s->queue.file, 0, NULL))
        return false;
    claim_slot(s, shared_of(s));
    ops->unlock(s->queue.file);
    return s->queue.slot >= 0;
}

/* ---- the lock ---- */

/* Another was named, who is on its way. */
static bool must_wait(struct sqlite_store *s)
{
    uint32_t next = has_slot(s) ? GET(&shared_of(s)->next) : 0;

    return next && next != (uint32_t)s->queue.slot + 1;
}

static enum tide_code try_lock(struct sqlite_store *s, int timeout_ms, struct tide_err *err)
{
    enum tide_code code = s->base.env->ops->lock(s->mark, timeout_ms, err);

    if (!code && has_slot(s)) {
        SET(&shared_of(s)->next, 0);
        SET(&shared_of(s)->touched_ms, clock_ms(s));
    }
    return code;
}

bool queue_try(struct sqlite_store *s)
{
    return s->mark && !must_wait(s) && try_lock(s, 0, NULL) == TIDE_OK;
}

/* Puts down what is asked for. What was abandoned is over once it is answered. False: another still has it. */
static bool put_request(struct sqlite_store *s, const struct batch *list)
{
    struct shared *q = shared_of(s);
    struct slot *me = slot_of(s);
    uint32_t state = GET(&me->word) & STATE;

    if (state == TAKEN || state == STORING)
        return false;
    SET(&me->word, FILLING);
    SET(&me->boot, s->boot);
    SET(&me->ticket, __atomic_add_fetch(&q->ticket, 1, __ATOMIC_SEQ_CST));
    state = WANTS;
    if (list && !s->queue.alone &&
        request_put(list, s->boot != 0, (uint32_t)me->ticket, q->areas[s->queue.slot], AREA_BYTES))
        state = READY;
    SET(&me->word, state);
    return true;
}

static void forget_answers(struct batch *list)
{
    for (struct batch *b = list; b; b = b->next)
        b->answered = false;
}

static enum tide_code fail_unknown(struct sqlite_store *s, struct batch *list, const char *why, struct tide_err *err)
{
    forget_answers(list);
    s->broken = true;
    s->base.unsettled = true;
    return tide_fail(err, TIDE_UNKNOWN, "%s; it is unknown whether the events are stored", why);
}

/* What is ours of those that another process has committed. */
static void accept_answers(struct sqlite_store *s, struct batch *list, bool *ret_answered)
{
    *ret_answered = true;
    for (struct batch *b = list; b; b = b->next) {
        if (!b->answered) {
            *ret_answered = false;
            continue;
        }
        s->moved = true;
        if (b->owner && !(b->flags & BATCH_INPUT))
            b->owner->epoch = b->flags & BATCH_RELEASE ? 0 : b->epoch;
        if (!(b->flags & BATCH_INPUT))
            orphan_drop(&s->orphans, b->session);
    }
}

/* Whether the last event of those that were taken is there. */
static int look_for(struct sqlite_store *s, const struct batch *list, bool *ret_there)
{
    unsigned char digest[DIGEST_SIZE] = {0};
    const struct batch *b = list;
    struct whead *w;
    int rc;

    while (b && !b->answered)
        b = b->next;
    *ret_there = false;
    rc = b ? db_run(&s->w, ST_BEGIN_WRITE) : SQLITE_OK;
    rc = rc || !b ? rc : heads_freshen(s);
    if (rc || !b)
        return rc;
    w = whead_load(s, str_from(b->session), &rc);
    if (!rc && (!w->exists || w->damaged))
        rc = SQLITE_CORRUPT; /* deleted since, perhaps: nobody knows */
    if (!rc && w->h.last_seq >= b->last_seq)
        rc = event_locate(&s->w, w, b->last_seq, &(int64_t){0}, digest);
    *ret_there = !rc && w->h.last_seq >= b->last_seq && memcmp(digest, b->events[b->n - 1].digest, DIGEST_SIZE) == 0;
    db_run(&s->w, ST_ROLLBACK);
    return rc;
}

/*
 * We have the lock, and the process that was storing ours is gone: it is there or not. What the page cache shows of it may not be
 * on disk, so the log is written anew first, as after any commit that was cut off.
 */
static enum tide_code settle_lost(struct sqlite_store *s, struct batch *list, bool *ret_answered, struct tide_err *err)
{
    bool known = request_results_get(list, shared_of(s)->areas[s->queue.slot], AREA_BYTES), there = false;
    struct tide_err why;

    SET(&slot_of(s)->word, IDLE);
    queue_unlock(s);
    s->broken = true;
    known = known && !db_ready(s, &why) && !queue_lock(s, NULL, ret_answered, &why);
    if (!known || look_for(s, list, &there)) {
        if (known)
            queue_unlock(s);
        return fail_unknown(s, list, "the process that stored the events has ended", err);
    }
    if (!there)
        forget_answers(list);
    accept_answers(s, list, ret_answered);
    if (*ret_answered)
        queue_unlock(s);
    return TIDE_OK;
}

static enum tide_code receive_answers(struct sqlite_store *s, struct batch *list, bool *ret_answered,
                                      struct tide_err *err)
{
    uint32_t outcome = GET(&slot_of(s)->outcome);
    bool known =
        outcome != QUEUE_NOT_STORED && request_results_get(list, shared_of(s)->areas[s->queue.slot], AREA_BYTES);

    SET(&slot_of(s)->word, IDLE);
    if (outcome == QUEUE_UNKNOWN || (outcome == QUEUE_STORED && !known))
        return fail_unknown(s, list, "the disk failed while the events were being stored", err);
    accept_answers(s, list, ret_answered);
    s->queue.alone = !*ret_answered; /* this process itself tries what was refused, and returns the error */
    return *ret_answered ? TIDE_OK : queue_lock(s, NULL, &(bool){false}, err);
}

/* The lock is ours. Was something done with what we asked for? */
static enum tide_code got_lock(struct sqlite_store *s, struct batch *list, bool *ret_answered, struct tide_err *err)
{
    uint32_t state = GET(&slot_of(s)->word) & STATE;

    if (list && (state == STORING || state == LOST))
        return settle_lost(s, list, ret_answered, err);
    if (list && state == DONE) {
        queue_unlock(s);
        return receive_answers(s, list, ret_answered, err);
    }
    SET(&slot_of(s)->word, IDLE);
    return TIDE_OK;
}

/* The lock cannot be had. What another has taken of ours may still be stored. */
static enum tide_code give_up(struct sqlite_store *s, struct batch *list, enum tide_code code, bool *ret_answered,
                              struct tide_err *err)
{
    uint32_t *word = &slot_of(s)->word, now = GET(word);

    while ((now & STATE) != DONE) {
        bool taken = (now & STATE) == TAKEN || (now & STATE) == STORING;

        if (!__atomic_compare_exchange_n(word, &now, taken ? now | ABANDONED : IDLE, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        if (!taken)
            return code;
        if ((now & STATE) == STORING)
            (void)request_results_get(list, shared_of(s)->areas[s->queue.slot], AREA_BYTES);
        forget_answers(list);
        s->broken = true;
        s->base.unsettled = true;
        err->code = TIDE_UNKNOWN;
        return tide_wrap(err, "another process has taken the events, and it is unknown whether they are stored");
    }
    return receive_answers(s, list, ret_answered, err);
}

static enum tide_code wait_in_line(struct sqlite_store *s, struct batch *list, int patience_ms, bool *ret_answered,
                                   struct tide_err *err)
{
    int64_t deadline = clock_ms(s) + patience_ms, try_ms = 0;
    int pause = FIRST_MS;

    for (;;) {
        int64_t now = clock_ms(s);
        uint32_t word = GET(&slot_of(s)->word);
        enum tide_code code;

        if (list && (word & STATE) == DONE)
            return receive_answers(s, list, ret_answered, err);
        if (word & NAMED || (now >= try_ms && (try_ms || !must_wait(s))) || now >= deadline) {
            swap_word(&slot_of(s)->word, word, word & ~(uint32_t)NAMED);
            code = try_lock(s, now >= deadline, err);
            if (!code)
                return got_lock(s, list, ret_answered, err);
            if (code != TIDE_BUSY || now >= deadline)
                return give_up(s, list, code, ret_answered, err);
            pause = try_ms && pause * 2 < SLOW_MS ? pause * 2 : pause;
            word = GET(&slot_of(s)->word);
            if (word & NAMED || (word & STATE) == DONE)
                continue;
        }
        if (now >= try_ms)
            try_ms = now + pause;
        s->base.env->ops->wait_word(s->base.env, &slot_of(s)->word, word, (int)(try_ms - now));
    }
}

enum tide_code queue_lock(struct sqlite_store *s, struct batch *list, bool *ret_answered, struct tide_err *err)
{
    bool again = s->refused_ms && clock_ms(s) - s->refused_ms < STORE_LOCK_MS;
    enum tide_code code = mark_open(s, true, err);

    *ret_answered = false;
    if (code)
        return code;
    if (!must_wait(s) && (code = try_lock(s, 0, err)) != TIDE_BUSY) {
        s->refused_ms = 0;
        return code;
    }
    if (!join_queue(s, true) || !put_request(s, list))
        return store_lock(&s->base, s->mark, &s->refused_ms, err);
    code = wait_in_line(s, list, again ? AGAIN_MS : STORE_LOCK_MS, ret_answered, err);
    s->refused_ms = code == TIDE_BUSY ? clock_ms(s) : 0;
    return code;
}

/* ---- what others have handed over; with the lock ---- */

struct asked {
    uint64_t ticket;
    unsigned slot;
};

static int by_ticket(const void *a, const void *b)
{
    uint64_t x = ((const struct asked *)a)->ticket, y = ((const struct asked *)b)->ticket;

    return (x > y) - (x < y);
}

static void wake_later(struct sqlite_store *s, unsigned slot)
{
    s->queue.wake[slot / 64] |= (uint64_t)1 << slot % 64;
}

/* Whether it can be taken. What a process left that died with the lock is put right. */
static bool is_asked(struct sqlite_store *s, struct slot *slot, unsigned i)
{
    uint32_t word = GET(&slot->word);

    if ((word & STATE) == TAKEN && word & ABANDONED) /* nothing of it was stored, and its owner knows */
        move_state(&slot->word, TAKEN, IDLE);
    else if ((word & STATE) == STORING && move_state(&slot->word, STORING, LOST))
        wake_later(s, i);
    return ((word & STATE) == READY || ((word & STATE) == TAKEN && !(word & ABANDONED))) &&
           GET(&slot->keys) == GET(&slot_of(s)->keys);
}

static void finish_request(struct sqlite_store *s, unsigned slot, enum queue_outcome outcome)
{
    struct slot *at = &shared_of(s)->slots[slot];

    SET(&at->outcome, outcome);
    if (!move_state(&at->word, TAKEN, DONE))
        move_state(&at->word, STORING, DONE);
    wake_later(s, slot);
}

/* NULL: it is not valid, and its owner must do it itself. */
static struct request *take_request(struct sqlite_store *s, struct shared *q, unsigned slot)
{
    struct request *r = request_get(&s->queue.arena, q->areas[slot], AREA_BYTES);

    for (const struct batch *b = r ? r->list : NULL; r && b; b = b->next)
        if (!(b->flags & BATCH_INPUT) && !GET(&q->slots[slot].boot))
            r = NULL;
    if (!r) {
        finish_request(s, slot, QUEUE_NOT_STORED);
        return NULL;
    }
    r->slot = slot;
    r->boot = GET(&q->slots[slot].boot);
    return r;
}

void queue_take(struct sqlite_store *s)
{
    struct asked asked[SLOTS];
    struct request **tail = &s->queue.taken;
    struct shared *q;
    size_t n = 0;

    INVARIANT(!s->queue.taken);
    if (!join_queue(s, false))
        return;
    q = shared_of(s);
    SET(&slot_of(s)->word, IDLE);
    if (s->queue.alone)
        return;
    for (unsigned i = 0; i < used_slots(q); i++)
        if (i != (unsigned)s->queue.slot && is_asked(s, &q->slots[i], i))
            asked[n++] = (struct asked){GET(&q->slots[i].ticket), i};
    qsort(asked, n, sizeof asked[0], by_ticket);
    for (size_t i = 0; i < n; i++) {
        uint32_t *word = &q->slots[asked[i].slot].word;

        if ((move_state(word, READY, TAKEN) || (GET(word) & STATE) == TAKEN) &&
            (*tail = take_request(s, q, asked[i].slot)))
            tail = &(*tail)->next;
    }
}

void queue_storing(struct sqlite_store *s)
{
    struct shared *q = s->queue.taken ? shared_of(s) : NULL;

    for (const struct request *r = s->queue.taken; r; r = r->next) {
        request_results_put(r, q->areas[r->slot], AREA_BYTES);
        move_state(&q->slots[r->slot].word, TAKEN, STORING);
    }
}

void queue_answer(struct sqlite_store *s, enum queue_outcome outcome)
{
    for (const struct request *r = s->queue.taken; r; r = r->next)
        finish_request(s, r->slot, outcome);
    s->queue.taken = NULL;
    arena_reset(&s->queue.arena);
}

/* ---- who is next ---- */

/* The one that has waited longest, of those who want the lock itself, or of all. -1: nobody. */
static int longest(struct sqlite_store *s, bool all)
{
    struct shared *q = shared_of(s);
    uint64_t ticket = UINT64_MAX;
    int found = -1;

    for (unsigned i = 0; i < used_slots(q); i++) {
        struct slot *slot = &q->slots[i];
        uint32_t state = GET(&slot->word) & STATE;
        bool asks = state == WANTS || (state == READY && (all || GET(&slot->keys) != GET(&slot_of(s)->keys)));

        if (asks && GET(&slot->ticket) < ticket) {
            ticket = GET(&slot->ticket);
            found = (int)i;
        }
    }
    return found;
}

/*
 * The slot to be woken. A process that has a thread for it (one that ever held a lease has) continues by itself for a while: it knows
 * the heads of sessions, and has pages in memory.
 */
static int name_next(struct sqlite_store *s)
{
    struct shared *q = shared_of(s);
    int next = longest(s, false);

    if (next < 0 && (next = longest(s, true)) >= 0 && s->base.env->threads && s->boot && s->queue.rounds++ < ROUNDS) {
        s->base.serve = true;
        SET(&q->next, (uint32_t)s->queue.slot + 1);
        return -1;
    }
    s->queue.rounds = 0;
    SET(&q->next, (uint32_t)(next + 1));
    return next;
}

static void wake_slot(struct sqlite_store *s, int slot, bool named)
{
    uint32_t *word = &shared_of(s)->slots[slot].word, now = GET(word);

    if (named && (((now & STATE) != READY && (now & STATE) != WANTS) || !swap_word(word, now, now | NAMED)))
        return;
    s->base.env->ops->wake_word(s->base.env, word);
}

static void wake_answered(struct sqlite_store *s)
{
    for (int i = 0; i < 2; i++)
        for (; s->queue.wake[i]; s->queue.wake[i] &= s->queue.wake[i] - 1)
            wake_slot(s, i * 64 + __builtin_ctzll(s->queue.wake[i]), false);
}

void queue_unlock(struct sqlite_store *s)
{
    bool member = has_slot(s);
    int next = member ? name_next(s) : -1;

    s->base.env->ops->unlock(s->mark);
    if (!member || !has_slot(s))
        return;
    if (next < 0 && !s->base.serve) /* one that came while the lock was still held */
        next = longest(s, true);
    if (next >= 0)
        wake_slot(s, next, true);
    wake_answered(s);
}

void queue_done(struct sqlite_store *s)
{
    if (has_slot(s)) {
        struct slot *me = slot_of(s);
        uint32_t state = GET(&me->word) & STATE;
        int next;

        s->base.serve = false;
        if (GET(&shared_of(s)->next) == (uint32_t)s->queue.slot + 1) {
            SET(&shared_of(s)->next, 0);
            next = longest(s, true);
            if (next >= 0)
                wake_slot(s, next, true);
        }
        if (state != TAKEN && state != STORING) { /* else it is free when this process has ended */
            SET(&me->word, IDLE);
            SET(&me->pid, 0);
        }
    }
    if (s->queue.file)
        s->base.env->ops->close(TAKE(s->queue.file));
    arena_done(&s->queue.arena);
}
