/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A durable program, killed everywhere: steps of all three effects in a loop and in parallel, memory, an approval, a
 * sleep, a checkpoint. Each step writes a line with its idempotency key into a file outside the store (the world) in the
 * middle of its work; the program writes what it got from each step into another.
 *
 * `tidemark exec` is killed right after the k-th event is in the log, for every k, and right after the m-th line is in the
 * world, for every m; then the program is driven on with recover and resume until it is completed, and killed on the way
 * at moments that follow from a seed. A `once` whose outcome is unknown is settled by a probe, or by a person who looks
 * into the world, undoes what happened and says --retry. Afterwards world, log and what the program got must agree.
 *
 * Needs $TIDE_BIN. TIDE_TORTURE_SECONDS: goes on with new seeds for so long. TIDE_SEED: the first seed.
 */
#include "program_log.h"

enum { ROUNDS_MAX = 60, KILLS_MORE = 2 };

static const char program_text[] =
    "#!/bin/sh\n"
    "work='l=\"$TIDEMARK_IDEMPOTENCY_KEY $1 $$\"; echo \"$l\" >>\"$TEST_WORLD\"; echo \"$l\"'\n"
    "do_step() { # LABEL NAME EFFECT PROBE\n"
    "    out=$(tidemark step \"$2\" --effect \"$3\" ${4:+--probe \"$4\"} -- sh -c \"$work\" work \"$1\") || exit\n"
    "    echo \"$1 $out\" >>\"$TEST_GOT\"\n"
    "}\n"
    "for i in 1 2; do\n"
    "    do_step \"look$i\" look pure\n"
    "    do_step \"put$i\" put idempotent\n"
    "    do_step \"pay$i\" pay once \"$TEST_PROBE\"\n"
    "    tidemark set \"turn=$i\" || exit\n"
    "done\n"
    "do_step left left once \"$TEST_PROBE\" &\n"
    "one=$!\n"
    "do_step right right idempotent &\n"
    "two=$!\n"
    "wait $one || exit\n"
    "wait $two || exit\n"
    "answer=$(tidemark wait ok --kind approval --question 'go on?') || exit\n"
    "echo \"answer $answer\" >>\"$TEST_GOT\"\n"
    "tidemark checkpoint half >/dev/null || exit\n"
    "tidemark sleep nap 20ms || exit\n"
    "turn=$(tidemark get turn) || exit\n"
    "echo \"turn $turn\" >>\"$TEST_GOT\"\n"
    "do_step last last once \"$TEST_PROBE\"\n";
static const char probe_text[] = "grep \"^$TIDEMARK_IDEMPOTENCY_KEY \" \"$TEST_WORLD\"";
static const char *const labels[] = {"look1", "put1", "pay1", "look2", "put2", "pay2", "left", "right", "last"};

/* When to kill: behind the n-th event or the n-th line of the world. */
struct trigger {
    enum { AT_EVENT, AT_LINE } what;
    int64_t n;
    int64_t delay_ns;
    bool all; /* not only the supervisor, but everything below it */
};

/* ---- killing ---- */

static void quiet(struct place *p)
{
    pid_t pid = outlives(p->mark);

    if (pid)
        fail_msg("%s: process %d lives on", p->id, (int)pid);
}

static bool is_time(struct place *p, const struct trigger *t)
{
    return t->what == AT_EVENT ? last_seq(p) >= t->n : count_lines(p->world, "") >= t->n;
}

/* Lets it run until the trigger and kills it; false when it had ended before. Its end is awaited in any case. */
static bool run_until(struct place *p, pid_t pid, const struct trigger *t, int *ret_status)
{
    int64_t end = mono_ms() + PATIENCE_MS;
    tide_watch *watch = NULL;
    int changed;
    bool killed;

    OK(tide_watch_open(p->store, &watch, &err));
    while (!has_ended(pid) && !is_time(p, t)) {
        if (mono_ms() > end)
            fail_msg("%s: neither its end nor event %lld came", p->id, (long long)t->n);
        if (t->what == AT_EVENT)
            OK(tide_watch_wait(watch, 5, &changed, &err));
    }
    tide_watch_close(watch);
    spin_ns(t->delay_ns);
    kill(pid, SIGKILL);
    for (pid_t other; t->all && (other = find_marked(p->mark));)
        kill(other, SIGKILL);
    waitpid(pid, ret_status, 0);
    killed = WIFSIGNALED(*ret_status) && WTERMSIG(*ret_status) == SIGKILL;
    p->kills += killed;
    quiet(p);
    return killed;
}

static int run_to_end(struct place *p, const char *const *words)
{
    int status = command_wait(command_start(words, p->out, p->err));

    quiet(p);
    if (!WIFEXITED(status))
        fail_msg("%s: %s %s: status %x", p->id, words[1], words[2] ? words[2] : "", (unsigned)status);
    return WEXITSTATUS(status);
}

/* ---- driving it on ---- */

struct seen {
    enum tide_status status;
    enum tide_outcome outcome;
    enum tide_wait_kind wait_kind;
    char reason[30];
};

static int see(void *arg, const struct tide_session_info *i)
{
    struct seen *s = arg;

    s->status = i->status;
    s->outcome = i->outcome;
    snprintf(s->reason, sizeof s->reason, "%s", i->reason ? i->reason : "");
    s->wait_kind = i->wait_kind;
    return 0;
}

static bool look(struct place *p, struct seen *ret)
{
    struct tide_err why = {0};
    tide_session *s = NULL;

    *ret = (struct seen){.status = 0};
    if (tide_session_open(p->store, p->id, TIDE_SESSION_READ, &s, &why))
        return false;
    OK(session_shown(s, see, ret, &err));
    tide_session_close(s);
    return true;
}

/* The status says what a kill makes of it, before and after recovery; recovery writes one event about it, once. */
static void recover(struct place *p)
{
    const char *const words[] = {"tidemark", "recover", NULL};
    struct log before, after;
    struct run *r, *now;
    struct seen seen;
    bool cut;

    if (!read_log(p, &before) || before.n_runs == 0)
        return;
    r = &before.runs[before.n_runs - 1];
    cut = !r->waits && r->ends == 0;
    look(p, &seen);
    if (cut && seen.status != TIDE_STATUS_INTERRUPTED_STARTUP)
        fail_msg("%s: %s after a kill", p->id, tide_status_name(seen.status));
    if (rng_below(&p->rng, 3) == 0) /* resume alone must do as well */
        return;
    assert_int_equal(run_to_end(p, words), 0);
    assert_int_equal(run_to_end(p, words), 0);
    read_log(p, &after);
    now = &after.runs[before.n_runs - 1];
    if (now->interrupted != (cut ? 1 : r->interrupted) || after.n_runs != before.n_runs)
        fail_msg("%s: %d run.interrupted of %s", p->id, now->interrupted, now->id);
    look(p, &seen);
    if (cut && (seen.status != TIDE_STATUS_INTERRUPTED_STARTUP || strcmp(seen.reason, "process_restart") != 0))
        fail_msg("%s: %s (%s) after recovery", p->id, tide_status_name(seen.status), seen.reason);
}

/* A person settles what nobody else can: --retry for each step that is not known to have happened, after a look. */
static int put_retries(struct place *p, const char **words, int n, struct log *l)
{
    for (int i = 0; i < l->n_calls; i++) {
        struct call *c = &l->calls[i];

        if (!c->unsettled || p->probe)
            continue;
        undo(p, c->key);
        words[n++] = "--retry";
        words[n++] = c->name;
    }
    return n;
}

/* With the right of the store's owner, or with a token. */
static int put_answer(struct place *p, const char **words, int n)
{
    const char *const rotate[] = {"tidemark", "token", "rotate", p->id, NULL};

    if (rng_below(&p->rng, 2) == 0) {
        FILE *f;

        assert_int_equal(run_to_end(p, rotate), 0);
        f = fopen(p->out, "r");
        if (!f || fscanf(f, "%159s", p->token) != 1)
            fail_msg("%s: no token", p->id);
        fclose(f);
        words[n++] = "--token";
        words[n++] = p->token;
    }
    words[n++] = "--input";
    words[n++] = "yes";
    return n;
}

/* The command that moves it; false when it is over. `plain`: one that supervises the program itself. */
static bool next_command(struct place *p, bool plain, const char *words[ARGV_MAX], struct log *log)
{
    struct seen seen;
    int n = 0;

    words[n++] = "tidemark";
    if (!look(p, &seen) || !read_log(p, log) || log->n_runs == 0) {
        words[n++] = "exec";
        words[n++] = "--session";
        words[n++] = p->id;
        words[n++] = "--";
        words[n++] = p->program;
    } else if (seen.status == TIDE_STATUS_WAITING && seen.wait_kind == TIDE_WAIT_TIMER && !plain &&
               rng_below(&p->rng, 2) == 0) {
        words[n++] = "recover";
        words[n++] = "--run-due";
    } else {
        words[n++] = "resume";
        words[n++] = p->id;
        if (seen.wait_kind == TIDE_WAIT_TIMER && seen.status == TIDE_STATUS_WAITING)
            words[n++] = "--now";
        else if (seen.status == TIDE_STATUS_WAITING)
            n = put_answer(p, words, n);
        else if (seen.outcome == TIDE_OUTCOME_FAILED)
            n = put_retries(p, words, n, log);
    }
    words[n] = NULL;
    return !(seen.status == TIDE_STATUS_IDLE && seen.outcome == TIDE_OUTCOME_COMPLETED);
}

static void expect_status(struct place *p, const char *const *words, int status)
{
    char text[600] = "";
    FILE *f;

    if (status == 0 || status == tide_code_exit(TIDE_WAITING) ||
        (status == tide_code_exit(TIDE_UNSETTLED) && !p->probe))
        return;
    f = fopen(p->err, "r");
    if (f && fread(text, 1, sizeof text - 1, f) == 0)
        snprintf(text, sizeof text, "nothing");
    fail_msg("%s: %s %s ended with %d and said: %s", p->id, words[1], words[2] ? words[2] : "", status, text);
}

/* One command, with a kill at the trigger when there is one; true when that came before its end. */
static bool move(struct place *p, const char *const *words, const struct trigger *t)
{
    int status;

    if (!t) {
        expect_status(p, words, run_to_end(p, words));
        return false;
    }
    if (run_until(p, command_start(words, p->out, p->err), t, &status)) {
        recover(p);
        return true;
    }
    expect_status(p, words, WEXITSTATUS(status));
    return false;
}

/* From nothing to its completion, killed at the trigger and a few times more; true when the trigger came. */
static bool drive(struct place *p, const struct trigger *first)
{
    const char *words[ARGV_MAX];
    struct log log;
    int kills_left = (int)rng_below(&p->rng, KILLS_MORE + 1);
    bool was_first = false;

    for (int i = 0; next_command(p, !was_first, words, &log); i++) {
        struct trigger t = {AT_EVENT, log.last_seq + rng_between(&p->rng, 1, 9), rng_below(&p->rng, 2000000),
                            rng_below(&p->rng, 3) == 0};

        if (i == ROUNDS_MAX)
            fail_msg("%s: not completed after %d commands", p->id, i);
        if (!was_first)
            was_first = move(p, words, first);
        else
            move(p, words, kills_left-- > 0 ? &t : NULL);
    }
    return was_first;
}

/* ---- what must be true at the end ---- */

static void check_calls(struct place *p, struct log *l)
{
    if (l->n_calls != (int)(sizeof labels / sizeof labels[0]))
        fail_msg("%s: %d steps", p->id, l->n_calls);
    for (int i = 0; i < l->n_calls; i++) {
        const struct call *c = &l->calls[i];
        int64_t ran = count_key(p, c->key);

        if (c->completions != 1)
            fail_msg("%s: step %s is completed %d times", p->id, c->id, c->completions);
        if (ran < 1 || ran > (c->once ? 1 : c->started))
            fail_msg("%s: step %s began %d times and happened %lld times", p->id, c->id, c->started, (long long)ran);
    }
}

/* Whatever is in the world was in the log before. */
static void check_world(struct place *p, struct log *l)
{
    int64_t known = 0;

    for (int i = 0; i < l->n_calls; i++)
        known += count_key(p, l->calls[i].key);
    if (known != count_lines(p->world, ""))
        fail_msg("%s: the world has %lld lines of unknown steps", p->id,
                 (long long)(count_lines(p->world, "") - known));
}

/* Which step a line of the program's is about; behind all of them: none. */
static size_t label_of(const char *line)
{
    size_t i = 0;

    while (i < sizeof labels / sizeof labels[0] &&
           !(strncmp(line, labels[i], strlen(labels[i])) == 0 && line[strlen(labels[i])] == ' '))
        i++;
    return i;
}

/*
 * The program got the same bytes each time, and they are those of the log. The result of a step that may be done again is in the
 * log with what comes next: lost before that, it is the last that the program got, and it gets no later step's before this one's.
 */
static void check_got(struct place *p, struct log *l, size_t label)
{
    char line[300], want[340] = "";
    FILE *f = fopen(p->got, "r");
    bool lost = false, once = false;

    while (f && fgets(line, sizeof line, f)) {
        if (lost && label_of(line) > label)
            fail_msg("%s: what %s gave is not in the log, and the program got on to %s", p->id, labels[label], line);
        if (label_of(line) != label)
            continue;
        for (int i = 0; i < l->n_calls && !want[0]; i++) {
            if (strncmp(line + strlen(labels[label]) + 1, l->calls[i].key, strlen(l->calls[i].key)) == 0) {
                snprintf(want, sizeof want, "%s %s", labels[label], l->calls[i].output);
                once = l->calls[i].once;
            }
        }
        lost = strcmp(line, want) != 0;
        if (lost && once)
            fail_msg("%s: the program got '%s', the log has '%s'", p->id, line, want);
    }
    if (!want[0] || lost)
        fail_msg("%s: the program never got what %s gave", p->id, labels[label]);
    fclose(f);
}

static void check_end(struct place *p)
{
    tide_session *s = NULL;
    struct log log;

    read_log(p, &log);
    check_calls(p, &log);
    check_world(p, &log);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        check_got(p, &log, i);
    if (count_lines(p->got, "answer yes\n") != count_lines(p->got, "answer") ||
        count_lines(p->got, "turn 2\n") != count_lines(p->got, "turn"))
        fail_msg("%s: an answer or a value that nobody gave", p->id);
    for (int i = 0; i < log.n_runs; i++)
        if (log.runs[i].ends != 1)
            fail_msg("%s: run %s has %d ends", p->id, log.runs[i].id, log.runs[i].ends);
    assert_int_equal(log.naps, 1);
    OK(tide_session_open(p->store, p->id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
}

/* ---- scenarios ---- */

static bool scenario(struct place *p, const struct trigger *t, bool probe, uint64_t seed)
{
    static int n;
    bool killed;

    p->probe = probe;
    p->rng = (struct rng){seed};
    snprintf(p->id, sizeof p->id, "s%d-%s%lld%s", n++, t->what == AT_EVENT ? "event" : "line", (long long)t->n,
             probe ? "-probe" : "");
    snprintf(p->mark, sizeof p->mark, "%s-%d", p->id, (int)getpid());
    setenv(MARK, p->mark, 1);
    setenv("TEST_PROBE", probe ? probe_text : "", 1);
    unlink(p->world);
    unlink(p->got);
    killed = drive(p, t);
    check_end(p);
    return killed;
}

/* Behind every event and every line of the world, until there are no more. */
static int everywhere(struct place *p, uint64_t seed, bool both)
{
    int n = 0;

    for (int what = AT_EVENT; what <= AT_LINE; what++) {
        bool killed = true;

        for (int64_t k = 1; killed && k < 100; k++) {
            struct rng r = {seed * 1000 + (uint64_t)k};
            struct trigger t = {what, k, rng_below(&r, 2) ? rng_below(&r, 2000000) : 0, false};
            bool probe = (k + (int64_t)seed) % 2;

            killed = scenario(p, &t, probe, rng_next(&r));
            if (both)
                killed |= scenario(p, &t, !probe, rng_next(&r));
            n += both ? 2 : 1;
        }
    }
    return n;
}

static void place_make(struct place *p)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    FILE *f;

    dir_make(p->dir);
    store_url_in(p->store_path, sizeof p->store_path, p->dir, "s");
    snprintf(p->program, sizeof p->program, "%s/program", p->dir);
    snprintf(p->world, sizeof p->world, "%s/world", p->dir);
    snprintf(p->got, sizeof p->got, "%s/got", p->dir);
    snprintf(p->out, sizeof p->out, "%s/out", p->dir);
    snprintf(p->err, sizeof p->err, "%s/err", p->dir);
    f = fopen(p->program, "w");
    fputs(program_text, f);
    fclose(f);
    chmod(p->program, 0700);
    setenv("TIDEMARK_STORE", p->store_path, 1);
    setenv("TEST_WORLD", p->world, 1);
    setenv("TEST_GOT", p->got, 1);
    OK(tide_store_open(p->store_path, &opt, &p->store, &err));
    tide_store_close(p->store);
    opt.flags = TIDE_OPEN_READ_ONLY;
    OK(tide_store_open(p->store_path, &opt, &p->store, &err));
}

static struct place p;

static void a_program_killed_anywhere_keeps_its_promises(void **unused)
{
    const char *seconds = getenv("TIDE_TORTURE_SECONDS"), *first = getenv("TIDE_SEED");
    int64_t end = mono_ms() + (seconds ? strtoll(seconds, NULL, 10) * 1000 : 0);
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    int n = 0;

    (void)unused;
    if (!command_init()) {
        print_message("TIDE_BIN is not set: skipped\n");
        skip();
    }
    place_make(&p);
    do {
        print_message("TIDE_SEED=%llu\n", (unsigned long long)seed);
        n += everywhere(&p, seed++, !SLOW_BUILD);
    } while (mono_ms() < end);
    print_message("%d programs, %lld kills\n", n, (long long)p.kills);
    tide_store_close(p.store);
}

static int tear_down(void **unused)
{
    (void)unused;
    if (p.dir[0])
        dir_remove(p.dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_killed_anywhere_keeps_its_promises),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
