/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite alone costs: a store's tables, and rows as a group of appends has them, in the same transactions. Nothing is
 * checked, folded or digested, and nobody is told. Many rows a statement: the fastest way that was found.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROWS 64 /* a statement */
#define MOVE_PAGES 1024

struct bare {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *events, *live;
    int log_pages;
    int64_t pos, groups;
    char body[257];
};

static sqlite3_stmt *prepare(sqlite3 *db, const char *text)
{
    sqlite3_stmt *st = NULL;

    must_sys(sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) == SQLITE_OK, text);
    return st;
}

/* INSERT … VALUES with so many rows of so many parameters. */
static sqlite3_stmt *prepare_rows(sqlite3 *db, const char *insert, int columns)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    sqlite3_stmt *st;

    must_sys(f != NULL, "memory");
    fprintf(f, "%s VALUES", insert);
    for (int i = 0; i < ROWS * columns; i++)
        fprintf(f, "%s?%d%s", i % columns ? "," : i ? ",(" : "(", i + 1, i % columns == columns - 1 ? ")" : "");
    must_sys(fclose(f) == 0, "memory");
    st = prepare(db, text);
    free(text);
    return st;
}

static void run(sqlite3_stmt *st)
{
    must_sys(sqlite3_step(st) == SQLITE_DONE, sqlite3_sql(st));
    sqlite3_reset(st);
}

static int note_log(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct bare *)arg)->log_pages = pages;
    return SQLITE_OK;
}

static struct bare *bare_open(const struct bench *b)
{
    struct bare *d = calloc(1, sizeof *d);
    char path[512];

    must_sys(d != NULL, "memory");
    tide_store_close(store_new(b, "bare"));
    snprintf(path, sizeof path, "%s/bare.db", b->dir);
    must_sys(sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK, path);
    must_sys(sqlite3_exec(d->db, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-8000", NULL,
                          NULL, NULL) == SQLITE_OK,
             "pragmas");
    sqlite3_wal_hook(d->db, note_log, d);
    d->begin = prepare(d->db, "BEGIN IMMEDIATE");
    d->commit = prepare(d->db, "COMMIT");
    d->events = prepare_rows(
        d->db, "INSERT OR FAIL INTO events(pos,sid,seq,prev,epoch,ts,kind,body,refs,digest,tag,proof)", 12);
    d->live = prepare_rows(
        d->db, "INSERT OR REPLACE INTO live(sid,boot,epoch,last_seq,last_pos,digest,updated,row_check,wake)", 9);
    body_of(d->body, 256, 1);
    return d;
}

static void bare_close(struct bare *d)
{
    sqlite3_finalize(d->begin);
    sqlite3_finalize(d->commit);
    sqlite3_finalize(d->events);
    sqlite3_finalize(d->live);
    sqlite3_close(d->db);
    free(d);
}

static void bind_numbers(sqlite3_stmt *st, int at, const int64_t *numbers, int n)
{
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(st, at + i, numbers[i]);
}

/* Event and head of a session, as row `at` of their statements. */
static void bind_append(struct bare *d, int at, int64_t sid, int64_t sessions)
{
    static const unsigned char digest[32] = {1}, proof[16] = {2};
    int64_t seq = ++d->pos / sessions + 1, ms = 1763500000000 + d->groups;
    int event = at * 12 + 1, head = at * 9 + 1;

    bind_numbers(d->events, event, (int64_t[]){d->pos, sid, seq, seq > 1 ? d->pos - sessions : 0, 1, ms}, 6);
    sqlite3_bind_text(d->events, event + 6, "message.user", 12, SQLITE_STATIC);
    sqlite3_bind_text(d->events, event + 7, d->body, 256, SQLITE_STATIC);
    sqlite3_bind_blob(d->events, event + 9, digest, sizeof digest, SQLITE_STATIC);
    sqlite3_bind_blob(d->events, event + 11, proof, sizeof proof, SQLITE_STATIC);
    bind_numbers(d->live, head, (int64_t[]){sid, 1, 1, seq, d->pos}, 5);
    sqlite3_bind_blob(d->live, head + 5, digest, sizeof digest, SQLITE_STATIC);
    bind_numbers(d->live, head + 6, (int64_t[]){ms, d->pos << 40 | ms, 0}, 3);
}

static void add_group(struct bare *d, int sessions)
{
    run(d->begin);
    for (int i = 0; i < sessions; i += ROWS) {
        for (int k = 0; k < ROWS; k++)
            bind_append(d, k, i + k + 1, sessions);
        run(d->events);
        run(d->live);
    }
    run(d->commit);
    d->groups++;
    if (d->log_pages > MOVE_PAGES)
        sqlite3_wal_checkpoint_v2(d->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
}

double bare_group_rate(const struct bench *b, int sessions, double seconds)
{
    struct bare *d = bare_open(b);
    double start = now_s(), took;

    do {
        add_group(d, sessions);
        took = now_s() - start;
    } while (took < seconds);
    took = (double)d->pos / took;
    bare_close(d);
    return took;
}
