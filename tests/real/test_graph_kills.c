/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph, killed everywhere: functions of both effects, a fan-out, a map, a graph inside, a loop, an attempt that fails, a
 * question. Each program writes into a file outside the store (the world) that it has begun and, later, that its deed is
 * done. `tidemark run` is killed right after the k-th event is in the log, for every k, and right after the m-th line is in
 * the world, for every m; then it is driven on with recover and resume until it is complete, and killed on the way at
 * moments that follow from a seed. Of a `once` that was cut a person looks into the world, and says --happened or --retry.
 * At the end world, log and memory must agree: what is complete never begins again, what must happen once happened once.
 *
 * Needs $TIDE_BIN. TIDE_TORTURE_SECONDS: goes on with new seeds for so long. TIDE_SEED: the first seed.
 */
#include "command.h"
#include "session/session.h"

enum { ROUNDS_MAX = 60, KILLS_MORE = 2, NODES_MAX = 32 };

static const char work_text[] = "#!/bin/sh\n"
                                "# NAME OUTPUT\n"
                                "echo \"$TIDEMARK_NODE begin $TIDEMARK_IDEMPOTENCY_KEY\" >>\"$TEST_WORLD\"\n"
                                "[ \"$1\" != flaky ] || [ \"$TIDEMARK_ATTEMPT\" -gt 0 ] || exit 1\n"
                                "read -r input\n"
                                "echo \"$TIDEMARK_NODE done $TIDEMARK_IDEMPOTENCY_KEY\" >>\"$TEST_WORLD\"\n"
                                "echo \"$2\"\n";

#define WORK(id, more, output)                                                                                         \
    "{\"id\":\"" id "\",\"type\":\"function\"" more ",\"outputs\":[\"" id "\"],\"program\":[\"./work\",\"" id          \
    "\",\"{\\\"" id "\\\":" output "}\"]}"
#define EDGE(from, to) "{\"from\":\"" from "\",\"to\":\"" to "\"}"

static const char graph_text[] =
    "{\"tidemark_graph\":1,\"id\":\"kills\",\"entry\":\"start\",\"memory\":{\"items\":[1,2,3],\"n\":0},\"nodes\":[" WORK("start", "", "1") "," WORK("left", "", "2") "," WORK(
        "pay", ",\"effect\":\"once\"",
        "7") ","
             "{\"id\":\"pages\",\"type\":\"map\",\"over\":\"memory.items\",\"as\":\"item\",\"outputs\":[\"pages\"],\"parallel\":2,"
             "\"node\":{\"type\":\"function\",\"inputs\":[\"item\"],\"outputs\":[\"page\"],\"program\":[\"./work\",\"page\",\"5\"]}},"
             "{\"id\":\"inside\",\"type\":\"subgraph\",\"outputs\":[\"deep\"],\"graph\":{\"tidemark_graph\":1,\"id\":\"in\","
             "\"entry\":\"one\",\"nodes\":[{\"id\":\"one\",\"type\":\"function\",\"effect\":\"once\",\"program\":[\"./work\",\"one\",\"{}\"]},"
             "{\"id\":\"two\",\"type\":\"lua\",\"code\":\"return {deep = 10}\",\"outputs\":[\"deep\"]}],\"edges\":[" EDGE("one", "two") "]}}," WORK(
                 "flaky", ",\"retries\":2",
                 "3") ","
                      "{\"id\":\"turn\",\"type\":\"lua\",\"code\":\"return {n = memory.n + 1}\",\"outputs\":[\"n\"],\"max_visits\":5},"
                      "{\"id\":\"ask\",\"type\":\"human_input\",\"question\":\"go on?\",\"outputs\":[\"answer\"]}," WORK("last", ",\"effect\":\"once\"", "9") "],\"edges\":[" EDGE(
                          "start",
                          "left") "," EDGE("start",
                                           "pay") "," EDGE("start",
                                                           "pages") "," EDGE("left",
                                                                             "inside") "," EDGE("inside",
                                                                                                "flaky") "," EDGE("pay",
                                                                                                                  "flaky") "," EDGE("pages",
                                                                                                                                    "flaky") "," EDGE("flaky",
                                                                                                                                                      "turn") ","
                                                                                                                                                              "{\"from\":\"turn\",\"to\":\"turn\",\"when\":\"memory.n < 3\",\"priority\":1},"
                                                                                                                                                              "{\"from\":\"turn\",\"to\":\"ask\",\"when\":\"memory.n >= 3\"}," EDGE(
                                                                                                                                                                  "ask",
                                                                                                                                                                  "last") "]}";

static const struct {
    const char *name;
    bool works, once; /* works: a program */
    int visits;
    const char *output; /* of a once, as --set has it */
} nodes[] = {
    {"start", true, false, 1, NULL},       {"left", true, false, 1, NULL},
    {"pay", true, true, 1, "pay:=7"},      {"pages", false, false, 1, NULL},
    {"pages#1[0]", true, false, 1, NULL},  {"pages#1[1]", true, false, 1, NULL},
    {"pages#1[2]", true, false, 1, NULL},  {"inside", false, false, 1, NULL},
    {"inside#1/one", true, true, 1, NULL}, {"inside#1/two", false, false, 1, NULL},
    {"flaky", true, false, 1, NULL},       {"turn", false, false, 3, NULL},
    {"ask", false, false, 1, NULL},        {"last", true, true, 1, "last:=9"},
};
#define NODES (sizeof nodes / sizeof nodes[0])

static const struct {
    const char *key, *value;
} memory[] = {{"start", "1"}, {"left", "2"}, {"pay", "7"},          {"deep", "10"},  {"flaky", "3"},
              {"n", "3"},     {"last", "9"}, {"answer", "\"yes\""}, {"pages", NULL}, {"items", "[1,2,3]"}};

static struct place {
    char dir[256], store_path[300], graph[300], world[300], out[300], err[300];
    tide_store *store;
    char id[40], mark[80];
    struct rng rng;
    int64_t kills;
} p;

/* When to kill: behind the n-th event or the n-th line of the world. */
struct trigger {
    enum { AT_EVENT, AT_LINE } what;
    int64_t n, delay_ns;
};

/* ---- the log ---- */

struct seen {
    int started[NODES], completed[NODES], after[NODES]; /* after: begun though it was complete, in one visit */
    int64_t begun_visit[NODES], complete_visit[NODES];
    bool open[NODES]; /* the last thing known is that it began */
    int runs, ends;
    enum tide_status status;
    enum tide_outcome outcome;
    int64_t last_seq;
};

static size_t node_of(const struct json *body)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str name = json_get_text(&a, body, STR("node"));

    for (size_t i = 0; i < NODES; i++)
        if (str_eq(name, str_from(nodes[i].name)))
            return i;
    fail_msg("%s: an unknown node %.*s", p.id, STR_ARG(name));
    return 0;
}

static int apply(void *arg, const struct tide_event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct seen *s = arg;
    struct json *body = NULL;
    size_t i = 0;
    int64_t visit;

    OK(json_parse(&a, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, &err));
    s->last_seq = ev->seq;
    s->runs += strcmp(ev->kind, "run.started") == 0;
    s->ends += strcmp(ev->kind, "run.completed") == 0 || strcmp(ev->kind, "run.failed") == 0 ||
               strcmp(ev->kind, "run.interrupted") == 0 || strcmp(ev->kind, "run.cancelled") == 0;
    if (strncmp(ev->kind, "node.", 5) != 0)
        return 0;
    i = node_of(body);
    visit = json_get_int(body, STR("visit"), 1);
    if (strcmp(ev->kind, "node.started") == 0) {
        s->started[i]++;
        s->after[i] += s->complete_visit[i] >= visit;
        s->open[i] = true;
    } else {
        s->completed[i] += strcmp(ev->kind, "node.completed") == 0;
        if (strcmp(ev->kind, "node.completed") == 0)
            s->complete_visit[i] = visit;
        s->open[i] = false;
    }
    return 0;
}

static int take_status(void *arg, const struct tide_session_info *i)
{
    struct seen *s = arg;

    s->status = i->status;
    s->outcome = i->outcome;
    return 0;
}

/* False while there is no such session. */
static bool look(struct seen *ret)
{
    struct tide_err why = {0};
    tide_session *s = NULL;

    memset(ret, 0, sizeof *ret);
    if (tide_session_open(p.store, p.id, TIDE_SESSION_READ, &s, &why))
        return false;
    OK(tide_session_read(s, 0, 1, 0, apply, ret, &err));
    OK(session_shown(s, take_status, ret, &err));
    tide_session_close(s);
    return true;
}

static int64_t last_seq(void)
{
    struct tide_err why = {0};
    tide_session *s = NULL;
    int64_t seq;

    if (tide_session_open(p.store, p.id, TIDE_SESSION_READ, &s, &why))
        return 0;
    seq = tide_session_last_seq(s);
    tide_session_close(s);
    return seq;
}

/* ---- the world ---- */

static int64_t count_lines(const char *beginning)
{
    char line[300];
    int64_t n = 0;
    FILE *f = fopen(p.world, "r");

    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, beginning, strlen(beginning)) == 0;
    if (f)
        fclose(f);
    return n;
}

static int64_t count(const char *node, const char *what)
{
    char beginning[80];

    snprintf(beginning, sizeof beginning, "%s %s ", node, what);
    return count_lines(beginning);
}

/* By its key the outside can tell that it is the same again. */
static void check_keys(const char *node)
{
    char line[300], key[100] = "", name[100], what[20], now[100];
    FILE *f = fopen(p.world, "r");

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%99s %19s %99s", name, what, now) != 3 || strcmp(name, node) != 0)
            continue;
        if (key[0] && strcmp(key, now) != 0)
            fail_msg("%s: %s ran with key %s, then with %s", p.id, node, key, now);
        snprintf(key, sizeof key, "%s", now);
    }
    if (f)
        fclose(f);
}

/* ---- killing ---- */

static void quiet(void)
{
    pid_t pid = outlives(p.mark);

    if (pid)
        fail_msg("%s: process %d lives on", p.id, (int)pid);
}

static bool is_time(const struct trigger *t)
{
    return t->what == AT_EVENT ? last_seq() >= t->n : count_lines("") >= t->n;
}

/* True when it was killed before it had ended. */
static bool run_until(pid_t pid, const struct trigger *t, int *ret_status)
{
    int64_t end = mono_ms() + PATIENCE_MS;
    tide_watch *watch = NULL;
    int changed;
    bool killed;

    OK(tide_watch_open(p.store, &watch, &err));
    while (!has_ended(pid) && !is_time(t)) {
        if (mono_ms() > end)
            fail_msg("%s: neither its end nor %s %lld came", p.id, t->what == AT_EVENT ? "event" : "line",
                     (long long)t->n);
        if (t->what == AT_EVENT)
            OK(tide_watch_wait(watch, 5, &changed, &err));
    }
    tide_watch_close(watch);
    spin_ns(t->delay_ns);
    kill(pid, SIGKILL);
    waitpid(pid, ret_status, 0);
    killed = WIFSIGNALED(*ret_status);
    p.kills += killed;
    quiet();
    return killed;
}

static int run_to_end(const char *const *words)
{
    int status = command_wait(command_start(words, p.out, p.err));

    quiet();
    if (!WIFEXITED(status))
        fail_msg("%s: %s %s: status %x", p.id, words[1], words[2] ? words[2] : "", (unsigned)status);
    return WEXITSTATUS(status);
}

static void expect_status(const char *const *words, int status, bool open)
{
    char text[600] = "";
    FILE *f;

    if (status == 0 || status == tide_code_exit(TIDE_WAITING) || (open && status == tide_code_exit(TIDE_UNSETTLED)))
        return;
    f = fopen(p.err, "r");
    if (f && fread(text, 1, sizeof text - 1, f) == 0)
        snprintf(text, sizeof text, "nothing");
    fail_msg("%s: %s %s ended with %d and said: %s", p.id, words[1], words[2] ? words[2] : "", status, text);
}

/* ---- driving it on ---- */

/* A person who looks into the world: the effect happened, or it is not. */
static int put_settled(const struct seen *s, const char **words, int n, bool *ret_open)
{
    for (size_t i = 0; i < NODES; i++) {
        bool happened = count(nodes[i].name, "done") > 0;

        if (!nodes[i].once || !s->open[i])
            continue;
        *ret_open = true;
        words[n++] = happened ? "--happened" : "--retry";
        words[n++] = nodes[i].name;
        if (happened && nodes[i].output) {
            words[n++] = "--set";
            words[n++] = nodes[i].output;
        }
    }
    return n;
}

/* The command that moves it; false when it is over. *ret_open: it may be refused, as a once is open. */
static bool next_command(struct seen *s, const char *words[ARGV_MAX], bool *ret_open)
{
    int n = 0, said;

    *ret_open = false;
    words[n++] = "tidemark";
    if (!look(s) || s->runs == 0) {
        const char *const run[] = {"run", p.graph, "--session", p.id, "--quiet"};

        memcpy(words + n, run, sizeof run);
        n += 5;
    } else {
        words[n++] = "sessions";
        words[n++] = "resume";
        words[n++] = p.id;
        words[n++] = "--quiet";
        if (s->status == TIDE_STATUS_WAITING) {
            words[n++] = "--input";
            words[n++] = "yes";
        }
        said = put_settled(s, words, n, ret_open);
        n = rng_below(&p.rng, 4) > 0 ? said : n; /* who says nothing is refused, and nothing happens */
    }
    words[n] = NULL;
    return !(s->status == TIDE_STATUS_IDLE && s->outcome == TIDE_OUTCOME_COMPLETED);
}

static void recover(void)
{
    const char *const words[] = {"tidemark", "recover", NULL};

    if (rng_below(&p.rng, 2) == 0) /* resume alone must do as well */
        assert_int_equal(run_to_end(words), 0);
}

/* One command, with a kill at the trigger when there is one; true when that came before its end. */
static bool move(const char *const *words, const struct trigger *t, bool open)
{
    int status;

    if (!t) {
        expect_status(words, run_to_end(words), open);
        return false;
    }
    if (run_until(command_start(words, p.out, p.err), t, &status)) {
        recover();
        return true;
    }
    expect_status(words, WEXITSTATUS(status), open);
    return false;
}

/* From nothing to its completion, killed at the trigger and a few times more. */
static void drive(const struct trigger *first)
{
    const char *words[ARGV_MAX + 8];
    struct seen s;
    int kills_left = (int)rng_below(&p.rng, KILLS_MORE + 1);
    bool was_first = false, open;

    for (int i = 0; next_command(&s, words, &open); i++) {
        struct trigger t = {AT_EVENT, s.last_seq + rng_between(&p.rng, 1, 9), rng_below(&p.rng, 2000000)};

        if (i == ROUNDS_MAX)
            fail_msg("%s: not completed after %d commands", p.id, i);
        if (!was_first)
            was_first = move(words, first, open);
        else
            move(words, kills_left-- > 0 ? &t : NULL, open);
    }
}

/* ---- what must be true at the end ---- */

static void check_node(const struct seen *s, size_t i)
{
    int64_t begun = count(nodes[i].name, "begin"), done = count(nodes[i].name, "done");

    if (s->completed[i] != nodes[i].visits)
        fail_msg("%s: %s is complete %d times", p.id, nodes[i].name, s->completed[i]);
    if (s->after[i])
        fail_msg("%s: %s was begun again though it was complete", p.id, nodes[i].name);
    if (!nodes[i].works)
        return;
    if (begun < 1 || begun > s->started[i])
        fail_msg("%s: %s began %d times in the log and %lld times in the world", p.id, nodes[i].name, s->started[i],
                 (long long)begun);
    if (done < 1 || (nodes[i].once && done != 1))
        fail_msg("%s: %s happened %lld times", p.id, nodes[i].name, (long long)done);
    check_keys(nodes[i].name);
}

static void check_memory(const tide_session *s)
{
    const struct map *m = &s->state->content.memory;
    struct map_entry *e;

    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        const char *value = map_get(m, str_from(memory[i].key));

        if (!value || (memory[i].value && strcmp(value, memory[i].value) != 0))
            fail_msg("%s: %s is %s", p.id, memory[i].key, value ? value : "not there");
    }
    for (e = map_next(m, NULL); e; e = map_next(m, e)) {
        size_t i = 0;

        while (i < sizeof memory / sizeof memory[0] && strcmp(memory[i].key, e->key) != 0)
            i++;
        if (i == sizeof memory / sizeof memory[0])
            fail_msg("%s: nobody sets %s", p.id, e->key);
    }
}

static void check_end(void)
{
    tide_session *s = NULL;
    struct seen seen;

    assert_true(look(&seen));
    for (size_t i = 0; i < NODES; i++)
        check_node(&seen, i);
    if (seen.runs != seen.ends)
        fail_msg("%s: %d runs and %d ends", p.id, seen.runs, seen.ends);
    OK(tide_session_open(p.store, p.id, TIDE_SESSION_READ, &s, &err));
    check_memory(s);
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
}

/* ---- scenarios ---- */

/* True: there is as much as the trigger asks for. */
static bool scenario(const struct trigger *t, uint64_t seed)
{
    static int n;

    p.rng = (struct rng){seed};
    snprintf(p.id, sizeof p.id, "g%d-%s%lld", n++, t->what == AT_EVENT ? "event" : "line", (long long)t->n);
    snprintf(p.mark, sizeof p.mark, "%s-%d", p.id, (int)getpid());
    setenv(MARK, p.mark, 1);
    unlink(p.world);
    drive(t);
    check_end();
    return is_time(t);
}

/* Behind every event and every line of the world, until there are no more. */
static int everywhere(uint64_t seed)
{
    int n = 0, step = SLOW_BUILD ? 5 : 1;

    for (int what = AT_EVENT; what <= AT_LINE; what++) {
        bool more = true;

        for (int64_t k = 1 + (int64_t)(seed % (uint64_t)step); more && k < 300; k += step) {
            struct rng r = {seed * 1000 + (uint64_t)k};
            struct trigger t = {what, k, rng_below(&r, 2) ? rng_below(&r, 3000000) : 0};

            more = scenario(&t, rng_next(&r));
            n++;
        }
    }
    return n;
}

static void put_file(const char *name, const char *text)
{
    char path[400];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", p.dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(path, 0700);
}

static void place_make(void)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    char config[300];

    dir_make(p.dir);
    store_url_in(p.store_path, sizeof p.store_path, p.dir, "s");
    snprintf(p.graph, sizeof p.graph, "%s/graph.json", p.dir);
    snprintf(p.world, sizeof p.world, "%s/world", p.dir);
    snprintf(p.out, sizeof p.out, "%s/out", p.dir);
    snprintf(p.err, sizeof p.err, "%s/err", p.dir);
    snprintf(config, sizeof config, "%s/config.json", p.dir);
    put_file("work", work_text);
    put_file("graph.json", graph_text);
    put_file("config.json", "{\"retry_base_delay_ms\": 1}");
    setenv("TIDEMARK_STORE", p.store_path, 1);
    setenv("TIDEMARK_CONFIG", config, 1);
    setenv("TEST_WORLD", p.world, 1);
    assert_int_equal(chdir(p.dir), 0);
    OK(tide_store_open(p.store_path, &opt, &p.store, &err));
    tide_store_close(p.store);
    opt.flags = TIDE_OPEN_READ_ONLY;
    OK(tide_store_open(p.store_path, &opt, &p.store, &err));
}

static void a_graph_killed_anywhere_keeps_its_promises(void **unused)
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
    place_make();
    do {
        print_message("TIDE_SEED=%llu\n", (unsigned long long)seed);
        n += everywhere(seed++);
    } while (mono_ms() < end);
    print_message("%d graphs, %lld kills\n", n, (long long)p.kills);
    tide_store_close(p.store);
}

static int tear_down(void **unused)
{
    (void)unused;
    if (p.dir[0] && chdir("/") == 0)
        dir_remove(p.dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_killed_anywhere_keeps_its_promises),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
