/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what. A process has one row in `boots` and one heartbeat for all its leases; the lease itself is the row in
 * `live` that names the boot and the epoch. Whether such a process lives: holder.c.
 */
#include "store/group.h"
#include "store/sqlite_db.h"

static int64_t clock_ms(struct sqlite_store *s)
{
    return s->base.env->ops->mono_ns(s->base.env) / 1000000;
}

static int lease_register(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_INSERT);
    struct holder us;
    int rc;

    holder_beats(&s->holders, &s->base, s->base.boot_id, &us);
    sqlite3_bind_text(st, 1, us.boot_id, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, us.proc.kernel_boot, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, (int64_t)us.proc.pid_ns);
    sqlite3_bind_int64(st, 4, us.proc.pid);
    sqlite3_bind_int64(st, 5, (int64_t)us.proc.start_time);
    sqlite3_bind_int64(st, 6, us.expires_ms);
    sqlite3_bind_int64(st, 7, us.lease_ms);
    sqlite3_bind_int64(st, 8, us.beat_ms);
    rc = db_run(&s->w, ST_BOOT_INSERT);
    if (rc)
        return rc;
    s->boot = sqlite3_last_insert_rowid(s->w.db);
    s->beat_due_ms = us.beat_ms + s->base.lease_ms / 3;
    group_keep_alive(s->base.group);
    sqlite3_bind_int64(db_stmt(&s->w, ST_BOOT_SWEEP), 1, env_now_ms(s->base.env));
    return db_run(&s->w, ST_BOOT_SWEEP);
}

static int beat_row(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_BEAT);
    struct holder us;

    holder_beats(&s->holders, &s->base, s->base.boot_id, &us);
    sqlite3_bind_int64(st, 1, s->boot);
    sqlite3_bind_int64(st, 2, us.expires_ms);
    sqlite3_bind_int64(st, 3, us.lease_ms);
    sqlite3_bind_int64(st, 4, us.beat_ms);
    return db_run(&s->w, ST_BOOT_BEAT);
}

bool lease_beat_due(struct sqlite_store *s)
{
    return s->boot && clock_ms(s) >= s->beat_due_ms;
}

static bool row_exists(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_GET);
    int rc;

    sqlite3_bind_int64(st, 1, s->boot);
    rc = db_step(&s->w, st);
    sqlite3_reset(st);
    return rc != SQLITE_DONE;
}

/* A process that was silent for long and held nothing may find its row swept by another. */
int lease_ready(struct sqlite_store *s)
{
    int rc;

    if (!s->boot || !row_exists(s))
        return lease_register(s);
    if (!lease_beat_due(s))
        return SQLITE_OK;
    rc = beat_row(s);
    s->beat_due_ms = clock_ms(s) + s->base.lease_ms / 3;
    return rc;
}

int lease_refind(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_FIND);
    int rc;

    sqlite3_bind_text(st, 1, s->base.boot_id, -1, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    s->boot = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int lease_beat(struct sqlite_store *s)
{
    int64_t pos = 0;
    struct tide_err err;
    bool swept;
    int rc = db_run(&s->w, ST_BEGIN_WRITE);

    if (rc)
        return rc == SQLITE_BUSY || (rc & 0xff) == SQLITE_FULL ? SQLITE_OK : rc; /* the next one may get through */
    rc = beat_row(s);
    swept = !rc && sqlite3_changes(s->w.db) == 0;
    rc = rc ? rc : mark_begin_still(s, false, &pos, &err) ? SQLITE_FULL : db_run(&s->w, ST_COMMIT);
    if (rc) {
        db_run(&s->w, ST_ROLLBACK);
        return (rc & 0xff) == SQLITE_FULL ? SQLITE_OK : rc;
    }
    mark_end(s, pos);
    if (swept)
        s->boot = 0; /* swept meanwhile: the next lease needs a new one */
    s->beat_due_ms = clock_ms(s) + s->base.lease_ms / 3;
    return SQLITE_OK;
}

int lease_holder(struct sqlite_store *s, struct conn *c, int64_t boot, bool *ret_alive, char ret_who[160])
{
    sqlite3_stmt *st = db_stmt(c, ST_BOOT_GET);
    struct holder who = {.lease_ms = 0};
    int rc;

    *ret_alive = false;
    snprintf(ret_who, 160, "a process that is gone");
    sqlite3_bind_int64(st, 1, boot);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        snprintf(who.boot_id, sizeof who.boot_id, "%.*s", STR_ARG(db_text(st, 0)));
        snprintf(who.proc.kernel_boot, sizeof who.proc.kernel_boot, "%.*s", STR_ARG(db_text(st, 1)));
        who.proc.pid_ns = (uint64_t)sqlite3_column_int64(st, 2);
        who.proc.pid = sqlite3_column_int64(st, 3);
        who.proc.start_time = (uint64_t)sqlite3_column_int64(st, 4);
        who.expires_ms = sqlite3_column_int64(st, 5);
        who.lease_ms = sqlite3_column_int64(st, 6);
        who.beat_ms = sqlite3_column_int64(st, 7);
        *ret_alive = holder_alive(&s->holders, &s->base, &who, ret_who);
    }
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
