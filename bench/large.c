/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What large values cost: a graph whose nodes all change 1 MiB of state, one whose nodes change nothing of it, and a tool's
 * result of 1 MiB. Beside them what writing or reading these bytes costs alone.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define MIB ((size_t)1 << 20)
#define NODES 10
#define ROUNDS 7
#define RESULTS 20 /* of a tool, in one session */

/* What the nodes of one graph do, and when. */
struct work {
    char *output; /* what each gives, a little different every time; NULL: nothing */
    size_t len;
    unsigned seed;
    double own;         /* the time that making it took */
    double first, last; /* when the first and the last of them began */
};

static char *text_json(const char *before, size_t bytes, unsigned *seed, size_t *ret_len)
{
    size_t used = strlen(before);
    char *json = malloc(used + bytes + 3);

    must_sys(json != NULL, "memory");
    memcpy(json, before, used);
    random_text(json + used, bytes, seed);
    memcpy(json + used + bytes, "\"}", 3);
    *ret_len = used + bytes + 2;
    return json;
}

static enum tide_code work_on(void *arg, const struct tide_node_call *call, struct tide_text *ret, struct tide_err *err)
{
    struct work *w = arg;

    (void)err;
    w->last = now_s();
    if (strcmp(call->node, "n0") == 0)
        w->first = w->last;
    if (!w->output)
        return TIDE_OK;
    for (size_t i = 4096; i < w->len - 2; i += 4096)
        w->output[i] = (char)('a' + rand_r(&w->seed) % 26);
    ret->ptr = strdup(w->output);
    ret->len = w->len;
    w->own += now_s() - w->last;
    return TIDE_OK;
}

static tide_graph *chain_of(struct work *w)
{
    char json[4096];
    size_t len = 0;
    struct tide_err err;
    tide_graph *g;

#define PUT(...) (len += (size_t)snprintf(json + len, sizeof json - len, __VA_ARGS__))
    PUT("{\"tidemark_graph\":1,\"id\":\"large\",\"entry\":\"n0\",\"max_retries\":0,\"nodes\":[");
    for (int i = 0; i < NODES; i++)
        PUT("%s{\"id\":\"n%d\",\"type\":\"function\",\"callback\":\"work\",\"effect\":\"idempotent\","
            "\"nullable_outputs\":[\"k\"],\"outputs\":[\"k\"]}",
            i ? "," : "", i);
    PUT("],\"edges\":[");
    for (int i = 1; i < NODES; i++)
        PUT("%s{\"from\":\"n%d\",\"to\":\"n%d\"}", i > 1 ? "," : "", i - 1, i);
    PUT("]}");
#undef PUT
    must(tide_graph_parse(json, len, NULL, NULL, NULL, &g, &err), &err, "graph");
    must(tide_graph_add_callback(g, "work", work_on, w, &err), &err, "callback");
    return g;
}

/* The seconds of the whole run, without what the nodes themselves did. */
static double run_chain(tide_store *store, struct work *w, const char *memory)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .memory = memory};
    tide_graph *g = chain_of(w);
    struct tide_err err;
    tide_session *s;
    double start;

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    w->own = 0;
    start = now_s();
    must(tide_graph_run(s, g, &opt, NULL, &err), &err, "run");
    start = now_s() - start - w->own;
    tide_session_close(s);
    tide_graph_free(g);
    return start;
}

static double raw_mib_rate(const struct bench *b)
{
    return raw_group_rate(b, 1, MIB, b->quick ? 0.05 : 0.2);
}

static void bench_changed(const struct bench *b)
{
    struct work w = {.seed = b->seed};
    double took[ROUNDS], raw[ROUNDS], ratio[ROUNDS], growth;
    tide_store *store = store_new(b, "changed");
    char measured[80], beside[80];

    w.output = text_json("{\"k\":\"", MIB, &w.seed, &w.len);
    tide_store_close(store);
    growth = -(double)store_bytes(b, "changed");
    store = store_again(b, "changed");
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_mib_rate(b);
        took[i] = run_chain(store, &w, NULL) / NODES;
        ratio[i] = 1 / took[i] / raw[i];
    }
    tide_store_close(store);
    growth += (double)store_bytes(b, "changed");
    growth /= ROUNDS * NODES;
    free(w.output);
    snprintf(measured, sizeof measured, "%.2f ms a node", median(took, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "raw write+fdatasync of 1 MiB, growing: %.2f ms", 1e3 / median(raw, ROUNDS));
    row("ten nodes, 1 MiB of state, all of it changed by each", measured, beside, median(ratio, ROUNDS), ">=", 0.3);
    snprintf(measured, sizeof measured, "%.2f MiB on disk a node", growth / (double)MIB);
    row("the same, bytes on disk per byte changed", measured, "1 MiB changed", growth / (double)MIB, "<=", 1.15);
}

/* Seconds from one node to the next, where none of them changes anything. */
static double run_unchanged(const struct bench *b, tide_store *store, size_t bytes)
{
    struct work w = {.seed = b->seed};
    size_t len;
    char *memory = text_json("{\"big\":\"", bytes, &w.seed, &len);

    run_chain(store, &w, memory);
    free(memory);
    return (w.last - w.first) / (NODES - 1);
}

static void bench_unchanged(const struct bench *b)
{
    double big[ROUNDS], small[ROUNDS], ratio[ROUNDS];
    tide_store *store = store_new(b, "unchanged");
    char measured[80], beside[80];

    for (int i = 0; i < ROUNDS; i++) {
        small[i] = run_unchanged(b, store, 10 << 10);
        big[i] = run_unchanged(b, store, MIB);
        ratio[i] = small[i] / big[i];
    }
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.3f ms a node", median(big, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "10 KiB of state: %.3f ms", median(small, ROUNDS) * 1e3);
    row("ten nodes, 1 MiB of state, nothing of it changed", measured, beside, median(ratio, ROUNDS), ">=", 0.6);
}

/* ---- a tool's result ------------------------------------------------------------------------------------------------ */

static void append_result(tide_session *s, char *body, size_t len, unsigned *seed)
{
    struct tide_new_event ev = {"message.tool", body, len};
    struct tide_err err;

    for (size_t i = 4096; i < len - 2; i += 4096)
        body[i] = (char)('a' + rand_r(seed) % 26);
    must(tide_session_append(s, 0, &ev, 1, NULL, &err), &err, "append");
}

static int count_bytes(void *arg, const struct tide_event *ev)
{
    *(size_t *)arg += ev->body_len;
    return 0;
}

/* Seconds to read one of them, of a store that was just opened: through us. */
static double read_results(const struct bench *b, int64_t from)
{
    tide_store *store = store_again(b, "results");
    struct tide_err err;
    tide_session *s;
    size_t bytes = 0;
    double start;

    must(tide_session_open(store, "r", 0, &s, &err), &err, "open");
    start = now_s();
    must(tide_session_read(s, 0, from, from + RESULTS - 1, count_bytes, &bytes, &err), &err, "read");
    start = now_s() - start;
    must_sys(bytes > RESULTS * MIB, "all of them");
    tide_session_close(s);
    tide_store_close(store);
    return start / RESULTS;
}

/* … and through SQLite alone. */
static double read_plain(const struct bench *b)
{
    char path[512];
    sqlite3_stmt *st = NULL;
    sqlite3 *db = NULL;
    size_t bytes = 0;
    int n = 0;
    double start;

    snprintf(path, sizeof path, "%s/plain.db", b->dir);
    must_sys(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, path);
    must_sys(sqlite3_prepare_v2(db, "SELECT value FROM plain", -1, &st, NULL) == SQLITE_OK, "prepare");
    start = now_s();
    while (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_blob(st, 0)) {
        bytes += (size_t)sqlite3_column_bytes(st, 0);
        n++;
    }
    start = now_s() - start;
    must_sys(n == RESULTS && bytes == (size_t)n * MIB, "all of them");
    sqlite3_finalize(st);
    sqlite3_close(db);
    return start / n;
}

/* ---- SQLite alone, written --------------------------------------------------------------------------------------------- */

/* A value, by a name, and the row that names it: as a store has them, with its settings, and nothing else. */
struct alone {
    sqlite3 *db;
    sqlite3_stmt *begin, *value, *event, *commit;
    int64_t n;
    int log_pages;
};

static sqlite3_stmt *alone_prepare(struct alone *p, const char *text)
{
    sqlite3_stmt *st = NULL;

    must_sys(sqlite3_prepare_v2(p->db, text, -1, &st, NULL) == SQLITE_OK, text);
    return st;
}

static int note_log(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct alone *)arg)->log_pages = pages;
    return SQLITE_OK;
}

static void alone_open(const struct bench *b, struct alone *p)
{
    char path[512];

    *p = (struct alone){0};
    snprintf(path, sizeof path, "%s/alone.db", b->dir);
    must_sys(sqlite3_open(path, &p->db) == SQLITE_OK, path);
    must_sys(
        sqlite3_exec(p->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                     "PRAGMA cache_size=-8000;"
                     "CREATE TABLE blobs(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, refs INTEGER NOT NULL,"
                     " value BLOB NOT NULL);"
                     "CREATE TABLE events(pos INTEGER PRIMARY KEY, refs BLOB, digest BLOB NOT NULL)",
                     NULL, NULL, NULL) == SQLITE_OK,
        "tables");
    p->begin = alone_prepare(p, "BEGIN IMMEDIATE");
    p->value = alone_prepare(p, "INSERT INTO blobs(digest, refs, value) VALUES(?1, 1, ?2)");
    p->event = alone_prepare(p, "INSERT INTO events(refs, digest) VALUES(?1, ?1)");
    p->commit = alone_prepare(p, "COMMIT");
    sqlite3_wal_hook(p->db, note_log, p);
}

static void alone_run(sqlite3_stmt *st)
{
    must_sys(sqlite3_step(st) == SQLITE_DONE, sqlite3_sql(st));
    sqlite3_reset(st);
}

static void alone_append(struct alone *p, const char *value, size_t len)
{
    char name[32] = {0};

    memcpy(name, &p->n, sizeof p->n);
    p->n++;
    alone_run(p->begin);
    sqlite3_bind_blob(p->value, 1, name, sizeof name, SQLITE_STATIC);
    sqlite3_bind_blob64(p->value, 2, value, len, SQLITE_STATIC);
    alone_run(p->value);
    sqlite3_bind_blob(p->event, 1, name, sizeof name, SQLITE_STATIC);
    alone_run(p->event);
    alone_run(p->commit);
    if (p->log_pages > 1024) {
        must_sys(sqlite3_wal_checkpoint_v2(p->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) == SQLITE_OK, "move");
        p->log_pages = 0;
    }
}

static void alone_close(struct alone *p)
{
    sqlite3_stmt *const all[] = {p->begin, p->value, p->event, p->commit};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(p->db);
}

/* Seconds a value. */
static double append_alone(struct alone *p, const char *value, size_t len)
{
    double start = now_s();

    for (int i = 0; i < RESULTS; i++)
        alone_append(p, value, len);
    return (now_s() - start) / RESULTS;
}

/* A table of its own with as many values of 1 MiB. */
static void make_plain(const struct bench *b)
{
    char path[512];
    sqlite3 *db = NULL;

    snprintf(path, sizeof path, "%s/plain.db", b->dir);
    must_sys(sqlite3_open(path, &db) == SQLITE_OK, path);
    must_sys(sqlite3_exec(db, "CREATE TABLE plain(value)", NULL, NULL, NULL) == SQLITE_OK, "table");
    for (int i = 0; i < RESULTS; i++)
        must_sys(sqlite3_exec(db, "INSERT INTO plain VALUES(randomblob(1048576))", NULL, NULL, NULL) == SQLITE_OK,
                 "insert");
    sqlite3_close(db);
}

static void bench_result(const struct bench *b)
{
    double took[ROUNDS], raw[ROUNDS], written[ROUNDS], ours[ROUNDS], plain[ROUNDS], read[ROUNDS], alone[ROUNDS],
        of_alone[ROUNDS], alone_of_raw[ROUNDS];
    tide_store *store = store_new(b, "results");
    struct alone sqlite;
    unsigned seed = b->seed;
    size_t len;
    char *body =
        text_json("{\"turn\":1,\"tool_call_id\":\"call\",\"tool_name\":\"read\",\"content\":\"", MIB, &seed, &len);
    char measured[80], beside[80];
    struct tide_err err;
    tide_session *s;

    must(tide_session_create(store, "r", NULL, &s, &err), &err, "create");
    alone_open(b, &sqlite);
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_mib_rate(b);
        took[i] = -now_s();
        for (int k = 0; k < RESULTS; k++)
            append_result(s, body, len, &seed);
        took[i] = (took[i] + now_s()) / RESULTS;
        written[i] = 1 / took[i] / raw[i];
        alone[i] = append_alone(&sqlite, body, len);
        of_alone[i] = alone[i] / took[i];
        alone_of_raw[i] = 1 / alone[i] / raw[i];
    }
    alone_close(&sqlite);
    tide_session_close(s);
    tide_store_close(store);
    free(body);
    make_plain(b);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = read_plain(b);
        ours[i] = read_results(b, 2 + i * RESULTS);
        read[i] = ours[i] / plain[i];
    }
    snprintf(measured, sizeof measured, "%.2f ms", median(took, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "raw write+fdatasync of 1 MiB, growing: %.2f ms", 1e3 / median(raw, ROUNDS));
    row("a tool's result of 1 MiB, appended", measured, beside, median(written, ROUNDS), ">=", 0.3);
    snprintf(beside, sizeof beside, "its value through SQLite alone: %.2f ms, %.3f of raw", median(alone, ROUNDS) * 1e3,
             median(alone_of_raw, ROUNDS));
    row("the same", measured, beside, median(of_alone, ROUNDS), ">=", 0.6);
    snprintf(measured, sizeof measured, "%.2f ms", median(ours, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "through SQLite alone: %.2f ms", median(plain, ROUNDS) * 1e3);
    row("the same, read back", measured, beside, median(read, ROUNDS), "<=", 3);
}

/* ---- of other sizes, in both stores --------------------------------------------------------------------------------- */

#define SIZED_ROUNDS 5

struct sized {
    double append, read; /* seconds a MiB */
};

/* Some results of this size, and what a MiB of them takes: to append, and to read in a store that was just opened. */
static struct sized measure_size(const char *url, size_t bytes, int round, unsigned *seed)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    int n = bytes > MIB ? 1 : (int)(2 * MIB / bytes);
    double mib = (double)n * (double)bytes / (double)MIB;
    struct sized took;
    struct tide_err err;
    tide_store *store;
    tide_session *s;
    char id[32];
    size_t len, got = 0;
    char *body =
        text_json("{\"turn\":1,\"tool_call_id\":\"call\",\"tool_name\":\"read\",\"content\":\"", bytes, seed, &len);

    snprintf(id, sizeof id, "r%d-%zu", round, bytes);
    must(tide_store_open(url, &opt, &store, &err), &err, url);
    must(tide_session_create(store, id, NULL, &s, &err), &err, "create");
    took.append = -now_s();
    for (int i = 0; i < n; i++)
        append_result(s, body, len, seed);
    took.append = (took.append + now_s()) / mib;
    tide_session_close(s);
    tide_store_close(store);
    must(tide_store_open(url, &opt, &store, &err), &err, url);
    must(tide_session_open(store, id, 0, &s, &err), &err, "open");
    took.read = -now_s();
    must(tide_session_read(s, 0, 2, 0, count_bytes, &got, &err), &err, "read");
    took.read = (took.read + now_s()) / mib;
    must_sys(got > (size_t)n * bytes, "all of them");
    tide_session_close(s);
    tide_store_close(store);
    free(body);
    return took;
}

static void size_row(const char *kind, const char *what, double took[2][SIZED_ROUNDS], const char *size, double at_most)
{
    double ratio[SIZED_ROUNDS];
    char name[96], measured[64], beside[64];

    for (int i = 0; i < SIZED_ROUNDS; i++)
        ratio[i] = took[0][i] / took[1][i];
    snprintf(name, sizeof name, "%s: tools' results of %s, a MiB of them %s", kind, size, what);
    snprintf(measured, sizeof measured, "%.2f ms", median(took[0], SIZED_ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "of 1 MiB: %.2f ms", median(took[1], SIZED_ROUNDS) * 1e3);
    row(name, measured, beside, median(ratio, SIZED_ROUNDS), "<=", at_most);
}

/* Small ones have a sync each: of 64 KiB sixteen a MiB. Each copy of a large one is made in memory that is fresh: the kernel clears it first. */
static void bench_sizes_of_results(const struct bench *b, const char *kind, const char *suffix)
{
    static const struct {
        size_t bytes;
        const char *size;
        double append, read;
    } sizes[] = {{MIB / 16, "64 KiB", 4, 2}, {16 * MIB, "16 MiB", 3, 3}};
    unsigned seed = b->seed;
    char url[600];

    snprintf(url, sizeof url, "%s:%s/sized%s", kind, b->dir, suffix);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        double append[2][SIZED_ROUNDS], read[2][SIZED_ROUNDS];

        for (int i = 0; i < SIZED_ROUNDS; i++) {
            struct sized one = measure_size(url, MIB, (int)k * SIZED_ROUNDS + i, &seed);
            struct sized other = measure_size(url, sizes[k].bytes, i, &seed);

            append[0][i] = other.append;
            append[1][i] = one.append;
            read[0][i] = other.read;
            read[1][i] = one.read;
        }
        size_row(kind, "appended", append, sizes[k].size, sizes[k].append);
        size_row(kind, "read", read, sizes[k].size, sizes[k].read);
    }
}

void bench_large(const struct bench *b)
{
    bench_changed(b);
    bench_unchanged(b);
    bench_result(b);
    bench_sizes_of_results(b, "sqlite", ".db");
    bench_sizes_of_results(b, "files", "");
}
