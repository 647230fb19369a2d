/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's tools: clocks, medians, stores to throw away, the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static int failed;

void must(enum tide_code code, const struct tide_err *err, const char *what)
{
    if (code == TIDE_OK)
        return;
    fprintf(stderr, "bench: %s: %s: %s\n", what, tide_code_name(code), err->msg);
    exit(1);
}

void must_sys(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double peak_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

static void path_of(const struct bench *b, const char *name, const char *suffix, char out[512])
{
    snprintf(out, 512, "%s/%s.db%s", b->dir, name, suffix);
}

static tide_store *open_store(const struct bench *b, const char *name, unsigned flags)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = flags};
    struct tide_err err;
    tide_store *store = NULL;
    char path[512];

    path_of(b, name, "", path);
    must(tide_store_open(path, &opt, &store, &err), &err, "open a store");
    return store;
}

tide_store *store_new(const struct bench *b, const char *name)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-mark", "-reserve"};
    char path[512];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        path_of(b, name, suffixes[i], path);
        unlink(path);
    }
    return open_store(b, name, TIDE_OPEN_CREATE);
}

tide_store *store_again(const struct bench *b, const char *name)
{
    return open_store(b, name, 0);
}

int64_t store_bytes(const struct bench *b, const char *name)
{
    tide_store *store = store_again(b, name);
    struct tide_err err;
    struct stat st;
    char path[512];
    int64_t sum = 0;

    must(tide_store_compact(store, &err), &err, "compact");
    tide_store_close(store);
    path_of(b, name, "", path);
    must_sys(stat(path, &st) == 0, path);
    sum += st.st_size;
    path_of(b, name, "-wal", path);
    if (stat(path, &st) == 0)
        sum += st.st_size;
    return sum;
}

void body_of(char *out, size_t n, int64_t i)
{
    int used = snprintf(out, n, "{\"turn\":%lld,\"content\":\"", (long long)i % 1000000 + 1);

    memset(out + used, 'x', n - (size_t)used - 2);
    memcpy(out + n - 2, "\"}", 3);
}

void random_text(char *out, size_t n, unsigned *seed)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t i = 0; i < n; i++)
        out[i] = letters[(unsigned)rand_r(seed) % 64];
    out[n] = 0;
}

void make_session(tide_store *store, const char *id, int64_t n, int64_t every)
{
    struct tide_new_checkpoint mark = {.size = sizeof mark, .type = TIDE_CHECKPOINT_TURN};
    struct tide_new_event events[64];
    char bodies[64][257], ckpt[TIDE_ID_SIZE];
    struct tide_err err;
    tide_session *s;
    int64_t made = 1;

    must(tide_session_create(store, id, "{\"title\":\"bench\"}", &s, &err), &err, "create");
    while (made < n) {
        size_t k = 0;

        for (; k < 64 && made < n && (k == 0 || !every || made % every != every - 1); k++, made++) {
            body_of(bodies[k], 256, made);
            events[k] = (struct tide_new_event){"message.user", bodies[k], 256};
        }
        must(tide_session_append_async(s, 0, events, k, NULL, &err), &err, "append");
        if (every && made % every == every - 1 && made < n) {
            must(tide_checkpoint_save(s, &mark, ckpt, &err), &err, "checkpoint");
            made++;
        }
    }
    must(tide_session_flush(s, &err), &err, "flush");
    tide_session_close(s);
}

void row(const char *what, const char *measured, const char *beside, double ratio, const char *relation, double bound)
{
    bool ok = relation[0] == '>' ? ratio >= bound : ratio <= bound;

    failed += !ok;
    printf("| %s | %s | %s | %.3g | %s %.3g | %s |\n", what, measured, beside, ratio,
           relation[0] == '>' ? "at least" : "at most", bound, ok ? "yes" : "NO");
    fflush(stdout);
}

int rows_failed(void)
{
    return failed;
}

enum tide_code step_nothing(void *arg, const char *key, struct tide_text *ret_result, struct tide_err *err)
{
    (void)arg;
    (void)key;
    (void)ret_result;
    (void)err;
    return TIDE_OK;
}
