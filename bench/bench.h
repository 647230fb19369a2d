/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of the benchmark share: time, medians, throw-away stores, and where results go. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tidemark.h"

struct bench {
    char dir[256];        /* throw-away, on the disk that is measured */
    const char *tidemark; /* the binary, for process rows */
    bool quick;           /* smaller sizes: to see that it runs, not for figures */
    unsigned seed;
};

/* Ends the program with a line when a call fails. */
void must(enum tide_code code, const struct tide_err *err, const char *what);
void must_sys(bool ok, const char *what);

tide_step_fn step_nothing; /* the work of a step that has none */

double now_s(void);
double median(double *values, size_t n); /* sorts them */
double peak_bytes(void);                 /* the most memory that this process ever held */

tide_store *store_new(const struct bench *b, const char *name); /* fresh */
tide_store *store_again(const struct bench *b, const char *name);
int64_t store_bytes(const struct bench *b, const char *name); /* of the closed, truncated store: file and log */

/* A JSON body of exactly n bytes: {"turn":i,"content":"…"}. out has n + 1 bytes. */
void body_of(char *out, size_t n, int64_t i);
void random_text(char *out, size_t n, unsigned *seed); /* n characters and a NUL, does not compress */

/* A session of n events, 256 B bodies, a checkpoint every `every` (0: none). */
void make_session(tide_store *store, const char *id, int64_t n, int64_t every);

/* So many finished sessions of two events, s000000 and on, by threads that share commits. */
void fill_store(tide_store *store, int sessions);

/* A process that begins n runs and is killed. `round`: another one each time. */
void interrupt_runs(const struct bench *b, const char *name, int round, int n);

/* One line of the table: what, measured, beside what limit, the ratio, what it must be, whether it is. */
void row(const char *what, const char *measured, const char *beside, double ratio, const char *relation, double bound);
int rows_failed(void);

/* Raw disk: 256 B written and synced one by one, on a growing or a preallocated file; and grouped. Per second. */
double raw_sync_rate(const struct bench *b, bool preallocated, double seconds);
double raw_group_rate(const struct bench *b, size_t events, size_t bytes, double seconds);

/* Rows of so many appends a commit, written by SQLite alone into the tables of a store. Appends a second. */
double bare_group_rate(const struct bench *b, int sessions, double seconds);

/* How often this process has called fdatasync. */
long syncs_so_far(void);

void bench_append(const struct bench *b);
void bench_secrets(const struct bench *b);
void bench_group(const struct bench *b);
void bench_range(const struct bench *b);
void bench_history(const struct bench *b); /* random checkpoint, opening, forks */
void bench_sizes(const struct bench *b);
void bench_start(const struct bench *b);
void bench_runs(const struct bench *b);     /* steps, resuming */
void bench_resumes(const struct bench *b);  /* of long chains */
void bench_steps(const struct bench *b);    /* steps that may be done again: threads, processes */
void bench_recovery(const struct bench *b); /* interrupted runs among very many sessions */
void bench_agent(const struct bench *b);    /* turns of the agent */
void bench_graph(const struct bench *b);    /* nodes of graphs */
void bench_large(const struct bench *b);    /* values of 1 MiB */
void bench_files(const struct bench *b);    /* the store of plain files */
void bench_lives(const struct bench *b);    /* sessions of files that start and end */

void bench_origin(const struct bench *b); /* proofs of origin */
void bench_watch(const struct bench *b);  /* waking those who watch */

void bench_server(const struct bench *b); /* HTTP */
void bench_views(const struct bench *b);  /* what a page of sessions is drawn from */

/* What tests/console/figures.mjs looks at: a store with so many sessions, and one, `talk`, of so many events. */
int fill_views(const char *url, int sessions, int64_t events);

/* A server of its own process, on a store of this name. */
struct serving {
    pid_t pid;
    int port;
    double ready_ms; /* from its start */
    char token[100], state[PATH_MAX + 10];
};
void serving_start(const struct bench *b, const char *name, struct serving *ret);
void serving_stop(struct serving *s);

/* So many sessions, live00000 and on, that wait for an approval. */
void make_waiting(tide_store *store, int n);

/* What both programs of bench_origin do: start and end n runs, print the seconds. */
int child_run_starts(const char *path, int n);

/* What a child process does for bench_history: open, fold, print the last 20. */
int child_open_tail(const char *store, const char *id);

/* What the programs of bench_runs do: n steps around `true`, the seconds each took into a file; say when they began. */
int child_steps(const char *tidemark, int n, const char *file);
int child_stamp(const char *file);

/* What a process of bench_steps does. */
int child_pure_steps(const char *url, double seconds);

#endif
