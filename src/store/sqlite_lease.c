/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what. A process has one row in `boots` and one heartbeat for all its leases; the lease itself is the row in
 * `live` that names the boot and the epoch. A holder that died here is recognised at once (a zombie is dead, a reused pid
 * has another start time); one elsewhere when its heartbeat has been silent past its expiry.
 */
#include <inttypes.h>

#include "base/timefmt.h"
#include "store/group.h"
#include "store/sqlite_db.h"

static int lease_register(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_INSERT);
    int64_t now = env_now_ms(s->base.env);
    int rc;

    sqlite3_bind_text(st, 1, s->base.boot_id, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, s->self.kernel_boot, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, (int64_t)s->self.pid_ns);
    sqlite3_bind_int64(st, 4, s->self.pid);
    sqlite3_bind_int64(st, 5, (int64_t)s->self.start_time);
    sqlite3_bind_int64(st, 6, now + s->base.lease_ms);
    rc = db_run(&s->w, ST_BOOT_INSERT);
    if (rc)
        return rc;
    s->boot = sqlite3_last_insert_rowid(s->w.db);
    s->beat_due_ms = now + s->base.lease_ms / 3;
    group_keep_alive(s->base.group);
    sqlite3_bind_int64(db_stmt(&s->w, ST_BOOT_SWEEP), 1, now);
    return db_run(&s->w, ST_BOOT_SWEEP);
}

static int beat_row(struct sqlite_store *s, int64_t now)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_BEAT);

    sqlite3_bind_int64(st, 1, s->boot);
    sqlite3_bind_int64(st, 2, now + s->base.lease_ms);
    return db_run(&s->w, ST_BOOT_BEAT);
}

bool lease_beat_due(struct sqlite_store *s)
{
    int64_t now = env_now_ms(s->base.env);

    return s->boot && (now >= s->beat_due_ms || now < s->beat_due_ms - s->base.lease_ms / 3); /* clocks go back */
}

static bool row_exists(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_GET);
    int rc;

    sqlite3_bind_int64(st, 1, s->boot);
    rc = db_step(&s->w, st);
    if (st)
        sqlite3_reset(st);
    return rc != SQLITE_DONE;
}

/* A process that was silent for long and held nothing may find its row swept by another. */
int lease_ready(struct sqlite_store *s)
{
    int64_t now = env_now_ms(s->base.env);
    int rc;

    if (!s->boot || !row_exists(s))
        return lease_register(s);
    if (!lease_beat_due(s))
        return SQLITE_OK;
    rc = beat_row(s, now);
    s->beat_due_ms = now + s->base.lease_ms / 3;
    return rc;
}

int lease_refind(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BOOT_FIND);
    int rc;

    sqlite3_bind_text(st, 1, s->base.boot_id, -1, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    s->boot = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    if (st)
        sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int lease_beat(struct sqlite_store *s)
{
    int64_t now = env_now_ms(s->base.env), pos = 0;
    struct tide_err err;
    bool swept;
    int rc = db_run(&s->w, ST_BEGIN_WRITE);

    if (rc)
        return rc == SQLITE_BUSY || (rc & 0xff) == SQLITE_FULL ? SQLITE_OK : rc; /* the next one may get through */
    rc = beat_row(s, now);
    swept = !rc && sqlite3_changes(s->w.db) == 0;
    rc = rc ? rc : mark_begin_still(s, false, &pos, &err) ? SQLITE_FULL : db_run(&s->w, ST_COMMIT);
    if (rc) {
        db_run(&s->w, ST_ROLLBACK);
        return (rc & 0xff) == SQLITE_FULL ? SQLITE_OK : rc;
    }
    mark_end(s, pos);
    if (swept)
        s->boot = 0; /* swept meanwhile: the next lease needs a new one */
    s->beat_due_ms = now + s->base.lease_ms / 3;
    return SQLITE_OK;
}

int lease_holder(struct sqlite_store *s, struct conn *c, int64_t boot, bool *ret_alive, char ret_who[160])
{
    sqlite3_stmt *st = db_stmt(c, ST_BOOT_GET);
    struct env_proc p = {0};
    char until[TIME_TEXT_SIZE];
    enum env_life life;
    int64_t expires;
    int rc;

    *ret_alive = false;
    snprintf(ret_who, 160, "a process that is gone");
    sqlite3_bind_int64(st, 1, boot);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        snprintf(p.kernel_boot, sizeof p.kernel_boot, "%.*s", STR_ARG(db_text(st, 1)));
        p.pid_ns = (uint64_t)sqlite3_column_int64(st, 2);
        p.pid = sqlite3_column_int64(st, 3);
        p.start_time = (uint64_t)sqlite3_column_int64(st, 4);
        expires = sqlite3_column_int64(st, 5);
        life = s->base.env->ops->life(s->base.env, &p);
        /* One that runs here is not silent because it is dead: the clock jumped, the machine slept, the disk is full. */
        *ret_alive = life == ENV_ALIVE || (life != ENV_DEAD && expires > env_now_ms(s->base.env));
        time_format(until, expires);
        snprintf(ret_who, 160, "process %" PRId64 "%s (%.*s, lease until %s)", p.pid,
                 life == ENV_ELSEWHERE ? " of another machine or container" : "", STR_ARG(db_text(st, 0)), until);
    }
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
