/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark-sim: the store and the session layer on a simulated machine, against an oracle.
 *
 *   tidemark-sim --seeds A..B [--seconds N]   seeds in order, until the time is up
 *   tidemark-sim --seed X [--verbose]         one seed, step by step
 *   tidemark-sim --exhaustive [--only NAME]   fixed workloads with a fault at every single operation
 *   … --store files                           on the files store; upgrades are of SQLite
 *
 * A seed that fails is printed with what to do to see it again; the exit status is then 1.
 */
#include "sim_seeds.h"
#include "world.h"

int main(int argc, char **argv)
{
    struct sim_options o = {.program = "tidemark-sim", .can_exhaust = true};
    int status = sim_begin(argc, argv, &o);

    if (status)
        return status;
    gen_init();
    if (o.exhaustive)
        return run_exhaustive(o.verbose, o.only) |
               (on_files() ? 0 : run_upgrade(o.verbose, o.only) | run_lost(o.verbose, o.only));
    return sim_run_seeds(&o, prepared_image(), run_seed, (const char *const[]){"seeds", "keep every promise"});
}
