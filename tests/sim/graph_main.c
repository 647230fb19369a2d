/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark-sim-graph: graphs on a simulated machine, against an interpreter that knows nothing of logs.
 *
 *   tidemark-sim-graph --seeds A..B [--seconds N]   random graphs, cut at random, until the time is up
 *   tidemark-sim-graph --seed X [--verbose]         one seed, step by step, with the graph
 *   tidemark-sim-graph --exhaustive [--only NAME]   fixed graphs, cut at every single operation
 *
 * TIDE_SEED=X in the environment is --seed X. A seed that fails is printed with what to do to see it again; the exit status
 * is then 1.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "graph.h"

enum { SEED_SECONDS = 30, TRIES = 200 };

struct options {
    uint64_t from, to;
    double seconds;
    bool verbose, exhaustive;
    const char *only;
};

/* ---- one ---- */

static bool run_plan(struct plan *p, const struct spec *spec, uint64_t seed, const struct sim_image *image,
                     const struct crash *crash, bool verbose, uint64_t *ret_ops)
{
    struct end want = {0};
    bool ok;

    p->verbose = verbose;
    behaviours_bind(p, spec->graph);
    oracle_run(p, spec->graph, &want);
    ok = world_run(p, spec, seed, image, crash, verbose, &want, ret_ops);
    end_done(&want);
    return ok;
}

/* The first random graph that the format allows. */
static struct spec *find_graph(struct plan *p, uint64_t seed, bool verbose)
{
    struct rnd r = {seed * 0x9e3779b97f4a7c15 + 3};
    struct spec *spec = NULL;
    struct tide_err err;

    for (int i = 0; i < TRIES; i++) {
        plan_random(p, &r);
        if (!spec_parse(buf_view(&p->json), NULL, &spec, &err))
            return spec;
        if (verbose)
            printf("# refused: %s\n", err.msg);
        plan_done(p);
    }
    printf("# WRONG: no graph was allowed; the last: %s\n", err.msg);
    return NULL;
}

static bool run_seed(uint64_t seed, const struct sim_image *image, bool verbose)
{
    static const struct crash random = {.how = CRASH_RANDOM};
    struct plan p;
    struct spec *spec = find_graph(&p, seed, verbose);
    bool ok;

    if (!spec)
        return false;
    if (verbose)
        printf("# %s\n", buf_cstr(&p.json));
    ok = run_plan(&p, spec, seed, image, &random, verbose, NULL);
    spec_free(spec);
    plan_done(&p);
    return ok;
}

/* ---- a cut at every operation ---- */

static const struct {
    enum sim_fault fault;
    const char *name;
} cuts[] = {{SIM_KILL, "killed"}, {SIM_POWER_CUT, "power_cut"}};

static bool cut_everywhere(size_t which, size_t cut, const struct sim_image *image, bool verbose)
{
    struct crash crash = {.how = CRASH_NONE, .fault = cuts[cut].fault};
    struct tide_err err;
    struct spec *spec = NULL;
    struct plan p;
    const char *name = plan_fixed(&p, which);
    uint64_t ops = 0;
    bool ok;

    if (spec_parse(buf_view(&p.json), NULL, &spec, &err)) {
        printf("# WRONG: %s: %s\n", name, err.msg);
        plan_done(&p);
        return false;
    }
    ok = run_plan(&p, spec, 1, image, &crash, verbose, &ops);
    crash.how = CRASH_AT;
    for (crash.at = 1; ok && crash.at <= ops; crash.at++)
        ok = run_plan(&p, spec, crash.at, image, &crash, verbose, NULL);
    if (!ok)
        printf("# it failed with %s at operation %llu of %s\n", cuts[cut].name, (unsigned long long)crash.at - 1, name);
    printf("%sok - %s_%s_at_every_operation (%llu)\n", ok ? "" : "not ", name, cuts[cut].name, (unsigned long long)ops);
    spec_free(spec);
    plan_done(&p);
    return ok;
}

static int run_exhaustive(const struct options *o)
{
    struct sim_image *image = world_image();
    struct plan p;
    const char *name;
    bool ok = true;

    for (size_t i = 0; (name = plan_fixed(&p, i)) != NULL; i++) {
        plan_done(&p);
        for (size_t c = 0; c < 2 && (!o->only || strstr(name, o->only)); c++)
            ok &= cut_everywhere(i, c, image, o->verbose);
    }
    sim_image_free(image);
    return !ok;
}

/* ---- many ---- */

static volatile uint64_t seed_now;

/* No call may wait for ever. */
static void too_long(int number)
{
    static char text[160];
    int n = snprintf(text, sizeof text,
                     "# WRONG: it takes too long\n# again with: tidemark-sim-graph --seed %llu --verbose%s\n",
                     (unsigned long long)seed_now, sim_store_words());

    (void)number;
    if (write(STDOUT_FILENO, text, (size_t)n) < 0)
        _exit(2);
    _exit(1);
}

static double clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_seeds(const struct options *o)
{
    struct sim_image *image = world_image();
    double start = clock_s(), took;
    uint64_t seed = o->from, done = 0;
    bool ok = true;

    for (; seed <= o->to && ok; seed++, done++) {
        seed_now = seed;
        alarm(SEED_SECONDS);
        ok = run_seed(seed, image, o->verbose);
        if (o->seconds > 0 && clock_s() - start > o->seconds)
            break;
    }
    alarm(0);
    sim_image_free(image);
    took = clock_s() - start;
    if (!ok)
        printf("# again with: tidemark-sim-graph --seed %llu --verbose%s\n", (unsigned long long)(seed - 1),
               sim_store_words());
    printf("# %llu seeds in %.1f s: %.0f seeds/s\n", (unsigned long long)done, took,
           took > 0 ? (double)done / took : 0);
    printf("%sok - graphs %llu to %llu end as they should\n", ok ? "" : "not ", (unsigned long long)o->from,
           (unsigned long long)(o->from + done - 1));
    return !ok;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;

        if (strcmp(argv[i], "--verbose") == 0 || strcmp(argv[i], "--exhaustive") == 0) {
            *(argv[i][2] == 'v' ? &o->verbose : &o->exhaustive) = true;
            continue;
        }
        if (!value)
            return false;
        if (strcmp(argv[i], "--seeds") == 0) {
            o->from = strtoull(value, &end, 10);
            if (strncmp(end, "..", 2) != 0)
                return false;
            o->to = strtoull(end + 2, &end, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->from = o->to = strtoull(value, &end, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o->seconds = strtod(value, &end);
        } else if (strcmp(argv[i], "--store") == 0 && sim_store_choose(value)) {
            end = NULL;
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = value;
        } else {
            return false;
        }
        if (end && *end)
            return false;
        i++;
    }
    return o->from <= o->to;
}

int main(int argc, char **argv)
{
    struct options o = {.from = 1, .to = 1000};
    const char *seed = getenv("TIDE_SEED");

    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: tidemark-sim-graph [--seeds A..B | --seed X] [--seconds N] [--exhaustive [--only NAME]] "
                "[--verbose] [--store sqlite|files]\n");
        return 2;
    }
    if (seed && seed[0])
        o.from = o.to = strtoull(seed, NULL, 10);
    if (sodium_init() < 0)
        return 1;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* one thread drives everything */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 300);
    signal(SIGALRM, too_long);
    setvbuf(stdout, NULL, _IOLBF, 0);
    return o.exhaustive ? run_exhaustive(&o) : run_seeds(&o);
}
