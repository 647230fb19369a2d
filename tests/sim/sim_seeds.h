/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of every simulator: seeds in order, until one fails or the time is up. A seed that fails, or hangs, is
 * printed with what to do to see it again.
 */
#ifndef SIM_SEEDS_H
#define SIM_SEEDS_H

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "sim_store.h"

#define SEED_SECONDS 30 /* no call may wait for ever: a seed that takes longer hangs */

struct sim_options {
    const char *program; /* "tidemark-sim" */
    bool can_exhaust;    /* it has --exhaustive */
    uint64_t from, to;
    double seconds;
    bool verbose, exhaustive;
    const char *only;
};

static struct {
    const char *program;
    volatile uint64_t seed;
} sim_now;

static inline void sim_hangs(int number)
{
    static char text[160];
    int n = snprintf(text, sizeof text, "# WRONG: it hangs\n# again with: %s --seed %llu --verbose%s\n",
                     sim_now.program, (unsigned long long)sim_now.seed, sim_store_words());

    (void)number;
    _exit(write(STDOUT_FILENO, text, (size_t)n) < 0 ? 2 : 1);
}

static inline bool sim_parse(int argc, char **argv, struct sim_options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;

        if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--exhaustive") == 0 && o->can_exhaust) {
            o->exhaustive = true;
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
        } else if (strcmp(argv[i], "--only") == 0 && o->can_exhaust) {
            o->only = value;
        } else if (strcmp(argv[i], "--store") != 0 || !sim_store_choose(value)) {
            return false;
        }
        if (end && *end)
            return false;
        i++;
    }
    return o->from <= o->to;
}

/* Reads the command line and makes ready; 0, or the exit status. TIDE_SEED=X in the environment is --seed X. */
static inline int sim_begin(int argc, char **argv, struct sim_options *o)
{
    const char *seed = getenv("TIDE_SEED");

    o->from = 1;
    o->to = 1000;
    sim_now.program = o->program;
    if (!sim_parse(argc, argv, o)) {
        fprintf(stderr, "usage: %s [--seeds A..B | --seed X] [--seconds N]%s [--verbose] [--store sqlite|files]\n",
                o->program, o->can_exhaust ? " [--exhaustive [--only NAME]]" : "");
        return 2;
    }
    if (seed && seed[0])
        o->from = o->to = strtoull(seed, NULL, 10);
    if (sodium_init() < 0)
        return 1;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* one thread drives everything */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 300);
    signal(SIGALRM, sim_hangs);
    setvbuf(stdout, NULL, _IOLBF, 0);
    return 0;
}

static inline double sim_clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef bool sim_seed_fn(uint64_t seed, const struct sim_image *image, bool verbose);

/* `words`: what they are, and what they do. The image is freed. The exit status. */
static inline int sim_run_seeds(const struct sim_options *o, struct sim_image *image, sim_seed_fn *run,
                                const char *const words[2])
{
    double start = sim_clock_s(), took;
    uint64_t seed = o->from, done = 0;
    bool ok = true;

    for (; seed <= o->to && ok; seed++, done++) {
        sim_now.seed = seed;
        alarm(SEED_SECONDS);
        ok = run(seed, image, o->verbose);
        if (o->seconds > 0 && sim_clock_s() - start > o->seconds)
            break;
    }
    alarm(0);
    sim_image_free(image);
    took = sim_clock_s() - start;
    if (!ok)
        printf("# again with: %s --seed %llu --verbose%s\n", o->program, (unsigned long long)(seed - 1),
               sim_store_words());
    printf("# %llu seeds in %.1f s: %.0f seeds/s\n", (unsigned long long)done, took,
           took > 0 ? (double)done / took : 0);
    printf("%sok - %s %llu to %llu %s\n", ok ? "" : "not ", words[0], (unsigned long long)o->from,
           (unsigned long long)(o->from + done - 1), words[1]);
    return !ok;
}

#endif
