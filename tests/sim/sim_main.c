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
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/digest.h"
#include "world.h"

struct options {
    uint64_t from, to;
    double seconds;
    bool verbose, exhaustive;
    const char *only;
};

static double clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: tidemark-sim [--seeds A..B | --seed X] [--seconds N] [--exhaustive [--only NAME]] [--verbose] "
            "[--store sqlite|files]\n");
    return 2;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;

        if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(argv[i], "--exhaustive") == 0) {
            o->exhaustive = true;
        } else if (!value) {
            return false;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            o->from = strtoull(value, &end, 10);
            if (strncmp(end, "..", 2) != 0)
                return false;
            o->to = strtoull(end + 2, &end, 10);
            i++;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->from = o->to = strtoull(value, &end, 10);
            i++;
        } else if (strcmp(argv[i], "--store") == 0 && sim_store_choose(value)) {
            i++;
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = value;
            i++;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o->seconds = strtod(value, &end);
            i++;
        } else {
            return false;
        }
        if (end && *end)
            return false;
    }
    return o->from <= o->to;
}

static int run_seeds(const struct options *o)
{
    struct sim_image *image = prepared_image();
    double start = clock_s(), took;
    uint64_t seed = o->from, done = 0;
    bool ok = true;

    for (; seed <= o->to && ok; seed++, done++) {
        ok = run_seed(seed, image, o->verbose);
        if (o->seconds > 0 && clock_s() - start > o->seconds)
            break;
    }
    sim_image_free(image);
    took = clock_s() - start;
    if (!ok)
        printf("# again with: tidemark-sim --seed %llu --verbose%s\n", (unsigned long long)(seed - 1),
               sim_store_words());
    printf("# %llu seeds in %.1f s: %.0f seeds/s\n", (unsigned long long)done, took,
           took > 0 ? (double)done / took : 0);
    printf("%sok - seeds %llu to %llu keep every promise\n", ok ? "" : "not ", (unsigned long long)o->from,
           (unsigned long long)(o->from + done - 1));
    return !ok;
}

int main(int argc, char **argv)
{
    struct options o = {.from = 1, .to = 1000};

    if (!parse(argc, argv, &o))
        return usage();
    if (sodium_init() < 0)
        return 1;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* one thread drives everything */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 300);
    setvbuf(stdout, NULL, _IOLBF, 0);
    gen_init();
    if (o.exhaustive)
        return run_exhaustive(o.verbose, o.only) |
               (on_files() ? 0 : run_upgrade(o.verbose, o.only) | run_lost(o.verbose, o.only));
    return run_seeds(&o);
}
