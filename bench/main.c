/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `make bench`: one run, one table, every row beside its limit measured in that same run. Appends are durable
 * (WAL, synchronous=FULL: one fdatasync before each acknowledgement); what is beside them syncs with fdatasync too.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static const struct {
    const char *name;
    void (*run)(const struct bench *);
} parts[] = {
    {"append", bench_append}, {"group", bench_group},       {"secrets", bench_secrets}, {"start", bench_start},
    {"range", bench_range},   {"history", bench_history},   {"sizes", bench_sizes},     {"runs", bench_runs},
    {"steps", bench_steps},   {"recovery", bench_recovery}, {"agent", bench_agent},     {"graph", bench_graph},
    {"large", bench_large},   {"files", bench_files},       {"lives", bench_lives},     {"origin", bench_origin},
    {"watch", bench_watch},   {"resumes", bench_resumes},   {"server", bench_server},   {"views", bench_views},
};

int main(int argc, char **argv)
{
    struct bench b = {.tidemark = getenv("TIDEMARK"), .seed = 20260221};
    const char *only = NULL, *where = getenv("BENCH_DIR");
    bool started = false;

    if (argc == 4 && strcmp(argv[1], "--child-open-tail") == 0)
        return child_open_tail(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "--child-steps") == 0)
        return child_steps(argv[2], (int)strtol(argv[3], NULL, 10), argv[4]);
    if (argc == 4 && strcmp(argv[1], "--child-run-starts") == 0)
        return child_run_starts(argv[2], (int)strtol(argv[3], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "--child-pure-steps") == 0)
        return child_pure_steps(argv[2], strtod(argv[3], NULL));
    if (argc == 3 && strcmp(argv[1], "--child-stamp") == 0)
        return child_stamp(argv[2]);
    if (argc == 5 && strcmp(argv[1], "--fill") == 0)
        return fill_views(argv[2], (int)strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            b.quick = true;
        else if (strncmp(argv[i], "--only=", 7) == 0)
            only = argv[i] + 7;
        else
            return fprintf(stderr,
                           "usage: tidemark-bench [--quick] [--only=append|group|secrets|start|range|history|sizes|"
                           "runs|resumes|steps|recovery|agent|graph|large|files|lives|origin|watch|server|views]\n"),
                   2;
    }
    if (!b.tidemark)
        b.tidemark = "build/tidemark";
    snprintf(b.dir, sizeof b.dir, "%s/tidemark-bench-XXXXXX", where ? where : ".");
    must_sys(mkdtemp(b.dir) != NULL, b.dir);
    printf("sync: WAL, synchronous=FULL, fdatasync before every acknowledgement; raw rows: write + fdatasync\n\n"
           "| what | measured | beside | ratio | wanted | reached |\n|---|---|---|---|---|---|\n");
    fflush(stdout);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (only && strcmp(only, parts[i].name) != 0 &&
            !(strcmp(only, "start") == 0 && strcmp(parts[i].name, "group") == 0))
            continue;
        parts[i].run(&b);
        started = true;
    }
    nftw(b.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (!started)
        return fprintf(stderr, "bench: no part '%s'\n", only), 2;
    printf("\n%s\n", rows_failed() ? "not every figure is reached" : "every figure is reached");
    return rows_failed() ? 1 : 0;
}
