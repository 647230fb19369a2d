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
#include "graph.h"
#include "sim_seeds.h"

enum { TRIES = 200 };

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

static int run_exhaustive(const struct sim_options *o)
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

int main(int argc, char **argv)
{
    struct sim_options o = {.program = "tidemark-sim-graph", .can_exhaust = true};
    int status = sim_begin(argc, argv, &o);

    if (status)
        return status;
    return o.exhaustive
               ? run_exhaustive(&o)
               : sim_run_seeds(&o, world_image(), run_seed, (const char *const[]){"graphs", "end as they should"});
}
