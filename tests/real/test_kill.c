/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes, killed with SIGKILL at random moments. A worker appends (one by one, in batches, queued groups,
 * checkpoints, rollbacks, deletions) and tells its parent what was acknowledged, after it was; the parent kills it, keeps
 * what it heard, and lets a third process look: everything acknowledged is there, in order, once; beyond it at most what
 * was under way; never part of a batch.
 */
#include "proc.h"

enum { KILLS = SLOW_BUILD ? 30 : 220, ROUNDS_PER_SESSION = 22, MAX_EVENTS = 60000, LINE = 200 };

/* Each event names its batch, its place in it and the batch's size, so that parts can be told from wholes. */
struct ack {
    int64_t first, last; /* seqs that were acknowledged; 0: everything up to the flush */
    int64_t batch;       /* of the first; -1: an event of the library's own (checkpoint, rollback) */
};

struct place {
    char dir[256], path[300], id[TIDE_ID_SIZE];
    int64_t next_batch;
};

static struct place here;

/* What the parent knows: acknowledged seq -> batch. Beyond `acked` nothing is promised. */
struct known {
    int64_t acked;
    int64_t batch[MAX_EVENTS];
};

/* ---- The worker ------------------------------------------------------------------------------------------------- */

static void make_events(struct tide_new_event *events, char (*bodies)[LINE], int n, int64_t batch)
{
    for (int i = 0; i < n; i++) {
        snprintf(bodies[i], LINE, "{\"batch\":%lld,\"at\":%d,\"of\":%d,\"content\":\"%0*d\"}", (long long)batch, i, n,
                 1 + (int)(batch % 120), 0);
        events[i] = (struct tide_new_event){"message.user", bodies[i], 0};
    }
}

static void acknowledge(struct self *me, int64_t first, int64_t last, int64_t batch)
{
    struct ack a = {first, last, batch};

    tell(me->out, &a, sizeof a);
}

static void append_batch(struct self *me, tide_session *s, int64_t *batch)
{
    struct tide_new_event events[24];
    char bodies[24][LINE];
    int n = rng_below(&me->rng, 3) ? (int)rng_between(&me->rng, 1, 3) : (int)rng_between(&me->rng, 1, 24);
    int64_t last = 0;

    make_events(events, bodies, n, *batch);
    CHILD_MUST(tide_session_append(s, 0, events, (size_t)n, &last, &err));
    acknowledge(me, last - n + 1, last, (*batch)++);
}

static void append_group(struct self *me, tide_session *s, int64_t *batch)
{
    struct tide_new_event events[8];
    char bodies[8][LINE];
    int64_t first = *batch, seqs[30][2];
    int groups = (int)rng_between(&me->rng, 2, 30);

    for (int i = 0; i < groups; i++) {
        int n = (int)rng_between(&me->rng, 1, 8);

        make_events(events, bodies, n, *batch + i);
        seqs[i][0] = tide_session_last_seq(s) + 1;
        CHILD_MUST(tide_session_append_async(s, 0, events, (size_t)n, NULL, &err));
        seqs[i][1] = tide_session_last_seq(s);
    }
    CHILD_MUST(tide_session_flush(s, &err));
    for (int i = 0; i < groups; i++)
        acknowledge(me, seqs[i][0], seqs[i][1], first + i);
    *batch += groups;
}

static void work(struct self *me)
{
    struct place *p = me->arg;
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    int64_t batch = p->next_batch;
    tide_store *store = NULL;
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE];

    CHILD_MUST(tide_store_open(p->path, &opt, &store, &err));
    if (tide_session_open(store, p->id, TIDE_SESSION_APPEND, &s, NULL) != TIDE_OK) {
        CHILD_MUST(tide_session_create(store, p->id, NULL, &s, &err));
        acknowledge(me, 1, 1, -1);
    }
    for (;;) {
        int64_t dice = rng_below(&me->rng, 20), seq;

        if (dice < 9) {
            append_batch(me, s, &batch);
        } else if (dice < 13) {
            append_group(me, s, &batch);
        } else if (dice < 16) {
            CHILD_MUST(tide_checkpoint_save(
                s,
                &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN},
                id, &err));
            seq = tide_session_last_seq(s);
            acknowledge(me, seq, seq, -1);
        } else if (dice < 17) {
            CHILD_MUST(tide_session_rollback(s, rng_between(&me->rng, 1, tide_session_last_seq(s)), 0, NULL, &err));
            seq = tide_session_last_seq(s);
            acknowledge(me, seq, seq, -1);
        } else if (dice < 18) {
            tide_session *side = NULL;

            snprintf(id, sizeof id, "side%d-%lld", (int)getpid(), (long long)batch);
            CHILD_MUST(tide_session_create(store, id, NULL, &side, &err));
            tide_session_close(side);
            CHILD_MUST(tide_session_delete(store, id, &err));
        } else if (dice < 19) {
            CHILD_MUST(tide_store_compact(store, &err));
        } else {
            tide_session_close(s);
            CHILD_MUST(tide_session_open(store, p->id, TIDE_SESSION_APPEND, &s, &err));
        }
    }
}

/* ---- Who looks afterwards ------------------------------------------------------------------------------------------ */

struct looking {
    struct known *known;
    int64_t n, batch, at, of; /* the batch being read; of 0: none */
    int64_t highest;
    const char *wrong;
    struct arena arena;
};

static int look(void *arg, const struct tide_event *ev)
{
    struct looking *l = arg;
    struct json *body;
    int64_t batch, at, of;

    l->n++;
    if (ev->seq != l->n)
        l->wrong = "a seq is missing or repeated";
    arena_reset(&l->arena);
    if (json_parse(&l->arena, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL))
        l->wrong = "a body is not JSON";
    batch = json_get_int(body, STR("batch"), -1);
    at = json_get_int(body, STR("at"), 0);
    of = json_get_int(body, STR("of"), 1);
    if (l->of && (batch != l->batch || at != l->at))
        l->wrong = "part of a batch";
    if (!l->of && batch >= 0 && at != 0)
        l->wrong = "a batch without its beginning";
    if (ev->seq <= l->known->acked && l->known->batch[ev->seq] != -2 && l->known->batch[ev->seq] != batch)
        l->wrong = "another event than was acknowledged";
    l->of = at + 1 < of ? of : 0;
    l->batch = batch;
    l->at = at + 1;
    if (batch > l->highest)
        l->highest = batch;
    return l->wrong != NULL;
}

static void examine(struct self *me)
{
    struct place *p = ((void **)me->arg)[0];
    struct looking l = {.known = ((void **)me->arg)[1], .highest = -1, .arena = ARENA_INIT};
    tide_store *store = NULL;
    tide_session *s = NULL;
    int64_t answer[2];

    CHILD_MUST(tide_store_open(
        p->path, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &store, &err));
    if (l.known->acked > 0 || tide_session_open(store, p->id, TIDE_SESSION_READ, &s, NULL) == TIDE_OK) {
        if (!s)
            CHILD_MUST(tide_session_open(store, p->id, TIDE_SESSION_READ, &s, &err));
        CHILD_MUST(tide_session_read(s, 0, 0, 0, look, &l, &err));
        CHILD_MUST(tide_session_verify(s, NULL, NULL, NULL, &err));
        if (l.of)
            l.wrong = "part of a batch at the end";
        if (l.n < l.known->acked)
            l.wrong = "an acknowledged event is missing";
        tide_session_close(s);
    }
    if (l.wrong) {
        fprintf(stderr, "%s: %s (at %lld, acknowledged %lld)\n", p->id, l.wrong, (long long)l.n,
                (long long)l.known->acked);
        _exit(CHILD_FAILED);
    }
    answer[0] = l.n;
    answer[1] = l.highest;
    tell(me->out, answer, sizeof answer);
    tide_store_close(store);
}

/* ---- The parent ------------------------------------------------------------------------------------------------------ */

static void remember(struct known *known, const struct ack *a)
{
    assert_int_equal(a->first, known->acked + 1); /* acknowledged in order, without a gap */
    assert_true(a->last < MAX_EVENTS);
    for (int64_t seq = a->first; seq <= a->last; seq++)
        known->batch[seq] = a->batch;
    known->acked = a->last;
}

/* What was there although nobody was told is there for good now. */
static void adopt(struct known *known, int64_t there, int64_t highest)
{
    for (int64_t seq = known->acked + 1; seq <= there; seq++)
        known->batch[seq] = -2;
    if (there > known->acked)
        known->acked = there;
    if (highest >= here.next_batch)
        here.next_batch = highest + 1;
}

static void look_after(struct known *known)
{
    void *args[2] = {&here, known};
    struct child c = child_start(examine, args, 0);
    int64_t answer[2] = {-1, -1};
    bool heard = hear(c.out, answer, sizeof answer, 120000);
    int status = child_wait(&c);

    assert_int_equal(status, 0);
    assert_true(heard);
    adopt(known, answer[0], answer[1]);
}

static void kill_once(struct known *known, struct rng *r)
{
    struct child c = child_start(work, &here, rng_next(r));
    int64_t patience = rng_below(r, 40);
    struct ack a;

    for (int64_t i = 0; i < patience && hear(c.out, &a, sizeof a, 60000); i++) {
        remember(known, &a);
        here.next_batch = a.batch >= here.next_batch ? a.batch + 1 : here.next_batch;
    }
    spin_ns(rng_below(r, 3000000));
    kill(c.pid, SIGKILL);
    while (hear(c.out, &a, sizeof a, 60000)) { /* what it still got to say */
        remember(known, &a);
        here.next_batch = a.batch >= here.next_batch ? a.batch + 1 : here.next_batch;
    }
    int status = child_wait(&c);
    if (!WIFSIGNALED(status))
        fail_msg("the worker ended by itself with %d", WEXITSTATUS(status));
}

static void what_was_acknowledged_survives_every_kill(void **unused)
{
    static struct known known;
    const char *seed = getenv("TIDEMARK_TEST_SEED");
    struct rng r = {seed ? strtoull(seed, NULL, 10) : 4711};

    (void)unused;
    dir_make(here.dir);
    store_url_in(here.path, sizeof here.path, here.dir, "k");
    for (int i = 0; i < KILLS; i++) {
        if (i % ROUNDS_PER_SESSION == 0) {
            memset(&known, 0, sizeof known);
            snprintf(here.id, sizeof here.id, "k%d", i / ROUNDS_PER_SESSION);
        }
        kill_once(&known, &r);
        look_after(&known);
    }
    print_message("%d kills, %lld batches\n", KILLS, (long long)here.next_batch);
    dir_remove(here.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_survives_every_kill),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
