/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent in a process of its own, killed with SIGKILL: at each thing it tells, from inside the tools it runs, and at random
 * moments; then another goes on until the conversation is over. Its tools append to a file outside the store: each command
 * is there at most once, and it is there unless the model was told that nobody knows. A prompt of whose answer anything was
 * shown is in the log. Nothing is left running.
 */
#include "command.h"

enum { CALLBACKS_MAX = 80, ROUNDS_MAX = 40, PROMPTS = 2, RANDOM_TALKS = SLOW_BUILD ? 1 : 3 };

static const char *const prompts[PROMPTS] = {"first do this", "then do that"};
static const char *const words[] = {"a1", "a2", "a3", "b1"}; /* in the ledger, one of each call of bash */
enum { WORDS = sizeof words / sizeof words[0] };

#define BASH(id, command) "{\"id\":\"" id "\",\"name\":\"bash\",\"args\":{\"command\":\"" command "\"}}"
/* `more` is what the second command does behind its line in the ledger. */
#define WRITE "{\"id\":\"w\",\"name\":\"write\",\"args\":{\"path\":\"out.txt\",\"content\":\"x\"}}"
#define A1 BASH("a1", "echo a1 >> ledger")
#define A2(more) BASH("a2", "echo a2 >> ledger" more)
#define A3 BASH("a3", "sleep 0.01; echo a3 >> ledger; sleep 0.01")
#define B1 BASH("b1", "echo b1 >> ledger")
#define SCRIPT(more)                                                                                                   \
    "{\"turns\":[{\"text\":\"I will do it.\",\"chunk_ms\":1,\"calls\":[" A1                                            \
    "," A2(more) "," WRITE "]},"                                                                                       \
                 "{\"text\":\"One more.\",\"fail\":[{\"status\":503}],\"calls\":[" A3                                  \
                 "]},{\"text\":\"That was the first.\"},"                                                              \
                 "{\"calls\":[" B1 "]},{\"text\":\"And that was all.\"}]}"

struct place {
    char dir[256], store[300], work[300], script[300], ledger[330], mark[40];
    int kill_at; /* the callback in which the process kills itself; 0: in none */
    int said;    /* prompts of whose answers something was shown */
};

/* ---- the process that works -------------------------------------------------------------------------------------------- */

struct driver {
    struct self *me;
    const struct place *p;
    int prompt, callbacks;
};

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct driver *d = arg;

    if (e->what == TIDE_AGENT_WAIT) /* by the clock */
        return;
    if (e->what == TIDE_AGENT_TEXT)
        tell_char(d->me->out, (char)('0' + d->prompt));
    if (++d->callbacks == d->p->kill_at)
        kill(getpid(), SIGKILL);
}

static int count_prompt(void *arg, const struct tide_message *m)
{
    *(int *)arg += strcmp(m->role, "user") == 0;
    return 0;
}

static tide_session *open_session(tide_store *store)
{
    tide_session *s = NULL;

    if (tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, NULL) != TIDE_OK)
        CHILD_MUST(tide_session_create(store, "s", NULL, &s, &err));
    return s;
}

static void converse(tide_agent *a, struct driver *d)
{
    int said = 0;
    enum tide_code code;
    struct tide_err why = {TIDE_OK, ""};

    CHILD_MUST(tide_agent_history(a, count_prompt, &said, &err));
    d->prompt = said ? said - 1 : 0;
    code = tide_agent_resume(a, NULL, NULL, NULL, &why);
    if (code && code != TIDE_NOT_FOUND) {
        fprintf(stderr, "resume: %s\n", why.msg);
        _exit(CHILD_FAILED);
    }
    for (d->prompt = said; d->prompt < PROMPTS; d->prompt++)
        CHILD_MUST(tide_agent_run(a, prompts[d->prompt], NULL, &err));
}

static void drive(struct self *me)
{
    const struct tide_store_options how = {.flags = TIDE_OPEN_CREATE};
    const struct place *p = me->arg;
    struct driver d = {me, p, 0, 0};
    const struct tide_agent_options opt = {.provider = "script",
                                           .script = p->script,
                                           .working_dir = p->work,
                                           .permissions = "[{\"tool\":\"*\",\"permission\":\"allow\"}]",
                                           .retry_base_delay_ms = 1,
                                           .event = on_event,
                                           .arg = &d};
    tide_store *store = NULL;
    tide_session *s;
    tide_agent *a = NULL;

    setenv(MARK, p->mark, 1);
    CHILD_MUST(tide_store_open(p->store, &how, &store, &err));
    s = open_session(store);
    CHILD_MUST(tide_agent_new(s, &opt, &a, &err));
    converse(a, &d);
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(store);
}

/* ---- what must hold ------------------------------------------------------------------------------------------------------ */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void place_init(struct place *p, const char *script)
{
    static int number;

    *p = (struct place){.kill_at = 0};
    dir_make(p->dir);
    snprintf(p->store, sizeof p->store, "%s/s.db", p->dir);
    snprintf(p->work, sizeof p->work, "%s/work", p->dir);
    snprintf(p->ledger, sizeof p->ledger, "%s/ledger", p->work);
    snprintf(p->script, sizeof p->script, "%s/script.json", p->dir);
    snprintf(p->mark, sizeof p->mark, "kills-%d-%d", (int)getpid(), ++number);
    assert_int_equal(mkdir(p->work, 0700), 0);
    write_text(p->script, script);
}

static int in_ledger(const struct place *p, const char *word)
{
    FILE *f = fopen(p->ledger, "r");
    char line[100];
    int n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == '\n';
    if (f)
        fclose(f);
    return n;
}

struct findings {
    int prompts[PROMPTS], started[WORDS], results[WORDS], unknown[WORDS], completed;
};

static int look_at(void *arg, const struct tide_event *ev)
{
    struct findings *f = arg;
    char want[60];

    for (int i = 0; i < PROMPTS; i++)
        f->prompts[i] += strcmp(ev->kind, "message.user") == 0 && strstr(ev->body, prompts[i]);
    for (int i = 0; i < WORDS; i++) {
        snprintf(want, sizeof want, "call_id\":\"%s\"", words[i]);
        if (!strstr(ev->body, want))
            continue;
        f->started[i] += strcmp(ev->kind, "tool.started") == 0;
        f->results[i] += strcmp(ev->kind, "message.tool") == 0;
        f->unknown[i] |= strcmp(ev->kind, "message.tool") == 0 && strstr(ev->body, "outcome unknown");
    }
    f->completed += strcmp(ev->kind, "run.completed") == 0;
    return 0;
}

static struct findings look(const struct place *p)
{
    const struct tide_store_options how = {.flags = TIDE_OPEN_CREATE};
    struct findings f = {{0}, {0}, {0}, {0}, 0};
    tide_store *store = NULL;
    tide_session *s = NULL;

    OK(tide_store_open(p->store, &how, &store, &err));
    if (tide_session_open(store, "s", 0, &s, NULL) == TIDE_OK) {
        OK(tide_verify(s, NULL, NULL, NULL, &err));
        OK(tide_read(s, 0, 1, 0, look_at, &f, &err));
    }
    tide_session_close(s);
    tide_store_close(store);
    return f;
}

/* After any death: what was shown is there. */
static void check_shown(const struct place *p)
{
    struct findings f = look(p);

    for (int i = 0; i < p->said; i++)
        if (f.prompts[i] != 1)
            fail_msg("prompt %d was answered and is in the log %d times", i + 1, f.prompts[i]);
}

static void check_end(const struct place *p)
{
    struct findings f = look(p);

    for (int i = 0; i < PROMPTS; i++)
        assert_int_equal(f.prompts[i], 1);
    for (int i = 0; i < WORDS; i++) {
        int done = in_ledger(p, words[i]);

        if (f.started[i] > 1 || f.results[i] != 1 || done > 1 || done < !f.unknown[i])
            fail_msg("%s: %d starts, %d results%s, done %d times", words[i], f.started[i], f.results[i],
                     f.unknown[i] ? ", unknown" : "", done);
    }
    assert_true(f.completed >= 1);
    assert_int_equal(in_ledger(p, "late"), 0);
    assert_int_equal(outlives(p->mark), 0);
}

/* What the process tells until it ends. */
static int finish_child(struct place *p, struct child *c)
{
    char what;

    while (hear(c->out, &what, 1, PATIENCE_MS))
        if (what - '0' >= p->said)
            p->said = what - '0' + 1;
    return child_wait(c);
}

static bool was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* One process; true when it was killed, false when it came to the end. */
static bool one_process(struct place *p)
{
    struct child c = child_start(drive, p, 1);
    int status = finish_child(p, &c);

    if (!was_killed(status) && status != 0)
        fail_msg("a process ended with status %d", status);
    if (was_killed(status))
        check_shown(p);
    return was_killed(status);
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------- */

static void killed_at_each_thing_it_tells_it_goes_on(void **state)
{
    int n = 0;
    bool killed = true;

    (void)state;
    while (killed && ++n < CALLBACKS_MAX) {
        struct place p;

        place_init(&p, SCRIPT(""));
        p.kill_at = n;
        killed = one_process(&p);
        p.kill_at = 0;
        assert_false(killed && one_process(&p));
        check_end(&p);
        dir_remove(p.dir);
    }
    assert_in_range(n, 10, CALLBACKS_MAX - 1);
    print_message("%d kills\n", n - 1);
}

static void killed_again_while_it_goes_on_it_still_ends(void **state)
{
    struct place p;
    int n = 0;

    (void)state;
    place_init(&p, SCRIPT(""));
    for (p.kill_at = 3; n < ROUNDS_MAX && one_process(&p); n++) /* each gets a little further than the one before */
        p.kill_at += n % 2;
    assert_in_range(n, 2, ROUNDS_MAX - 1);
    check_end(&p);
    dir_remove(p.dir);
    print_message("%d kills\n", n);
}

static void a_tool_that_kills_its_agent_runs_once(void **state)
{
    static const char *const scripts[] = {
        SCRIPT("; kill -9 $PPID"),
        SCRIPT("; (sleep 30; echo late >> ledger) & kill -9 $PPID; wait"), /* a child lives on: ended by who goes on */
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct place p;
        struct findings f;

        place_init(&p, scripts[i]);
        assert_true(one_process(&p));
        if (i == 1)
            assert_int_not_equal(find_marked(p.mark), 0);
        assert_false(one_process(&p));
        assert_int_equal(find_marked(p.mark), 0);
        f = look(&p);
        assert_int_equal(f.unknown[1], 1); /* a2 */
        assert_int_equal(in_ledger(&p, "a2"), 1);
        check_end(&p);
        dir_remove(p.dir);
    }
}

static void killed_at_random_moments_it_comes_to_its_end(void **state)
{
    struct rng rng = {20261115};
    int kills = 0;

    (void)state;
    for (int talk = 0; talk < RANDOM_TALKS; talk++) {
        struct place p;
        bool killed = true;

        place_init(&p, SCRIPT("; sleep 0.005"));
        for (int i = 0; i < ROUNDS_MAX && killed; i++) {
            struct child c = child_start(drive, &p, 1);

            spin_ns(rng_between(&rng, 1000000, 8000000 + 4000000 * (int64_t)i));
            kill(c.pid, SIGKILL);
            killed = was_killed(finish_child(&p, &c));
            check_shown(&p);
            kills += killed;
        }
        if (killed)
            assert_false(one_process(&p));
        check_end(&p);
        dir_remove(p.dir);
    }
    print_message("%d kills\n", kills);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_thing_it_tells_it_goes_on),
        cmocka_unit_test(killed_again_while_it_goes_on_it_still_ends),
        cmocka_unit_test(a_tool_that_kills_its_agent_runs_once),
        cmocka_unit_test(killed_at_random_moments_it_comes_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
