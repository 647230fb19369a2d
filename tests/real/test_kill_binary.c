/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command itself, killed: `tidemark log append ID -` reads lines and prints {"seq":N} for each event that is on disk.
 * It is killed with SIGKILL at a random moment, again and again; every line it acknowledged must be there, in order, once,
 * and of those it did not get to acknowledge at most a beginning. Needs $TIDE_BIN.
 */
#include "proc.h"

enum { KILLS = SLOW_BUILD ? 20 : 200, ROUNDS_PER_SESSION = 25, LINES = 3000 };

static const char *binary;

struct place {
    char dir[256], store[300], id[40];
    bool each; /* one commit per line */
    int64_t next;
};

static void run_append(struct self *me)
{
    struct place *p = me->arg;
    char url[310];

    snprintf(url, sizeof url, "%s", p->store);
    dup2(me->in, 0);
    dup2(me->out, 1);
    execl(binary, "tidemark", "log", "append", p->id, "-", "--kind", "test.line", "--store", url, "--sync",
          p->each ? "each" : "group", (char *)NULL);
    _exit(CHILD_FAILED);
}

static void run_new(struct self *me)
{
    struct place *p = me->arg;

    dup2(me->out, 1);
    execl(binary, "tidemark", "sessions", "new", "--id", p->id, "--store", p->store, (char *)NULL);
    _exit(CHILD_FAILED);
}

static void run_show(struct self *me)
{
    struct place *p = me->arg;

    dup2(me->out, 1);
    execl(binary, "tidemark", "log", "show", p->id, "--store", p->store, (char *)NULL);
    _exit(CHILD_FAILED);
}

/* Feeds lines without blocking and reads acknowledgements until enough came; the highest seq that was acknowledged. */
static int64_t feed(struct child *c, struct place *p, int64_t enough, int64_t acked, int64_t *sent)
{
    struct buf out = BUF_INIT(1 << 20), in = BUF_INIT(1 << 22);
    size_t written = 0;
    int64_t heard = 0;

    for (int64_t i = 0; i < LINES; i++)
        buf_addf(&out, "{\"n\":%lld,\"pad\":\"%0*d\"}\n", (long long)(p->next + i), (int)(1 + i % 90), 0);
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    while (heard < enough) {
        struct pollfd fds[2] = {{c->out, POLLIN, 0}, {c->in, POLLOUT, 0}};
        char chunk[4096];
        ssize_t n;

        if (poll(fds, written < out.len ? 2 : 1, 60000) <= 0)
            break;
        if (written < out.len && fds[1].revents & POLLOUT) {
            n = write(c->in, out.ptr + written, out.len - written < 2000 ? out.len - written : 2000);
            written += n > 0 ? (size_t)n : 0;
        }
        if (fds[0].revents) {
            n = read(c->out, chunk, sizeof chunk);
            if (n <= 0)
                break;
            for (ssize_t i = 0; i < n; i++)
                heard += chunk[i] == '\n';
            buf_add(&in, chunk, (size_t)n);
        }
    }
    *sent = LINES;
    kill(c->pid, SIGKILL);
    for (char chunk[4096];;) { /* what it still got to say */
        ssize_t n = read(c->out, chunk, sizeof chunk);

        if (n <= 0)
            break;
        buf_add(&in, chunk, (size_t)n);
    }
    for (const char *line = buf_cstr(&in); strchr(line, '\n'); line = strchr(line, '\n') + 1) {
        long long seq = 0;

        if (sscanf(line, "{\"seq\":%lld}", &seq) != 1 || seq != acked + 1)
            fail_msg("acknowledged out of order: %.40s after %lld", line, (long long)acked);
        acked = seq;
    }
    buf_done(&in);
    buf_done(&out);
    return acked;
}

/* All lines of the session: seq s holds number s - 2, for 1 is the session's own beginning. */
static int64_t show(struct place *p)
{
    struct child c = child_start(run_show, p, 0);
    FILE *f = fdopen(dup(c.out), "r");
    char line[400];
    int64_t seqs = 0;

    while (fgets(line, sizeof line, f)) {
        const char *number = strstr(line, "\"n\":");
        long long seq = 0;

        seqs++;
        if (sscanf(line, "{\"seq\":%lld,", &seq) != 1 || seq != seqs ||
            (seq > 1 && (!number || atoll(number + 4) != seq - 2)))
            fail_msg("line %lld is %s", (long long)seqs, line);
    }
    fclose(f);
    assert_int_equal(child_wait(&c), 0);
    return seqs;
}

static void the_command_keeps_what_it_acknowledged(void **unused)
{
    static struct place p;
    struct rng r = {815};
    int64_t acked = 0, total = 0;

    (void)unused;
    if (!binary || access(binary, X_OK) != 0) {
        print_message("TIDE_BIN is not set: skipped\n");
        skip();
    }
    dir_make(p.dir);
    store_url_in(p.store, sizeof p.store, p.dir, "b");
    for (int i = 0; i < KILLS; i++) {
        struct child c;
        int64_t there, sent = 0;

        if (i % ROUNDS_PER_SESSION == 0) {
            snprintf(p.id, sizeof p.id, "b%d", i / ROUNDS_PER_SESSION);
            c = child_start(run_new, &p, 0);
            assert_int_equal(child_wait(&c), 0);
            acked = 1;
        }
        p.each = rng_below(&r, 2);
        p.next = acked - 1;
        c = child_start(run_append, &p, 0);
        acked = feed(&c, &p, rng_below(&r, 3) ? rng_below(&r, 300) : 0, acked, &sent);
        child_wait(&c);
        there = show(&p);
        if (there < acked || there > p.next + 1 + sent)
            fail_msg("%s, round %d: %lld acknowledged, %lld there", p.id, i, (long long)acked, (long long)there);
        total += there - p.next - 1;
        acked = there;
    }
    print_message("%d kills, %lld events\n", KILLS, (long long)total);
    dir_remove(p.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_keeps_what_it_acknowledged),
    };

    binary = getenv("TIDE_BIN");
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
