/* SPDX-License-Identifier: Apache-2.0 */
#include "server/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/thread.h"
#include "engine/shapes.h"
#include "engine/verification.h"
#include "server/server.h"

#define AT_ONCE 8
#define PENDING_MAX ((size_t)1 << 20)
#define ROOM ((size_t)256 << 10)
#define PIECE ((size_t)64 << 10)
#define STALL_MS 30000 /* a reader that takes nothing for so long is cut off */
#define LOOK_MS 5
#define UPLOAD_MAX ((uint64_t)1 << 40)

struct transfers {
    pthread_mutex_t mu;
    pthread_cond_t less;
    size_t n;
    atomic_bool stopping;
};

struct transfers *transfers_new(void)
{
    struct transfers *t = mem_zero(sizeof *t);

    pthread_mutex_init(&t->mu, NULL);
    pthread_cond_init(&t->less, NULL);
    return t;
}

void transfers_free(struct transfers *t)
{
    if (!t)
        return;
    t->stopping = true;
    pthread_mutex_lock(&t->mu);
    while (t->n)
        pthread_cond_wait(&t->less, &t->mu);
    pthread_mutex_unlock(&t->mu);
    pthread_cond_destroy(&t->less);
    pthread_mutex_destroy(&t->mu);
    free(t);
}

static void end_one(struct transfers *t)
{
    pthread_detach(pthread_self());
    pthread_mutex_lock(&t->mu);
    t->n--;
    pthread_cond_broadcast(&t->less);
    pthread_mutex_unlock(&t->mu);
}

static enum tide_code begin_one(struct transfers *t, void *(*run)(void *arg), void *arg, struct tide_err *err)
{
    pthread_t thread;
    bool begun;

    pthread_mutex_lock(&t->mu);
    begun = t->n < AT_ONCE && !t->stopping && thread_start(&thread, run, arg);
    t->n += begun;
    pthread_mutex_unlock(&t->mu);
    return begun ? TIDE_OK
                 : tide_fail(err, TIDE_BUSY,
                             "%d exports, imports and verifications are under way, as many as may: try again later",
                             AT_ONCE);
}

/* ---- out ---- */

struct exporting {
    struct transfers *all;
    struct call *call;
    tide_session *session;
    struct http_stream *stream;
    struct buf gathered;
};

/* Waits for the reader. False: it is gone, or takes nothing, or this server stops. */
static bool wait_for_room(const struct exporting *e)
{
    size_t before = http_stream_pending(e->stream), now;
    int64_t waited_ms = 0;

    for (; (now = http_stream_pending(e->stream)) >= ROOM; before = now) {
        waited_ms = now < before ? 0 : waited_ms + LOOK_MS;
        if (waited_ms > STALL_MS || e->all->stopping || http_stream_is_gone(e->stream))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
    return true;
}

/* What was gathered, in pieces that fit: one event may be bigger than what may wait. */
static bool send_gathered(struct exporting *e)
{
    bool sent = true;

    for (size_t at = 0; at < e->gathered.len && sent; at += PIECE) {
        size_t left = e->gathered.len - at;

        sent = wait_for_room(e) &&
               http_stream_write(e->stream, (struct str){e->gathered.ptr + at, left < PIECE ? left : PIECE});
    }
    buf_clear(&e->gathered);
    return sent;
}

static int on_write(void *arg, const char *bytes, size_t len)
{
    struct exporting *e = arg;

    buf_add(&e->gathered, bytes, len);
    return e->gathered.len >= PIECE ? !send_gathered(e) : 0;
}

static void *run_export(void *arg)
{
    struct exporting *e = arg;
    struct tide_err ignored;
    bool whole;

    e->stream = http_stream_start(e->call->http, 200, "application/x-ndjson",
                                  (const char *const[]){"Cache-Control", "no-store", NULL}, PENDING_MAX);
    whole = !tide_session_export(e->session, on_write, NULL, e, &ignored) && send_gathered(e);
    http_stream_close(e->stream, !whole); /* cut off: no reader takes it for all of it */
    tide_session_close(e->session);
    buf_done(&e->gathered);
    end_one(e->all);
    free(e);
    return NULL;
}

enum tide_code transfer_export(struct call *c, struct tide_err *err)
{
    struct exporting *e;
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code;
    e = mem_zero(sizeof *e);
    *e = (struct exporting){c->server->transfers, c, TAKE(c->session), NULL, BUF_INIT(SIZE_MAX / 4)};
    if (begin_one(e->all, run_export, e, err)) { /* else the call may be gone */
        c->session = e->session;
        free(e);
        return err->code;
    }
    return TIDE_OK;
}

/* ---- in ---- */

struct upload {
    int fd;
    uint64_t bytes;
    int failed; /* errno */
    struct digest_state digest;
};

/* On the thread of the listener: to the page cache, as a rule. */
static bool take_bytes(void *arg, struct str bytes)
{
    struct upload *u = arg;

    u->bytes += bytes.len;
    if (!u->failed)
        u->failed = u->bytes > UPLOAD_MAX ? EFBIG : fd_write(u->fd, bytes);
    digest_add(&u->digest, bytes.ptr, bytes.len);
    return u->failed != EFBIG;
}

static void upload_free(void *arg)
{
    struct upload *u = arg;

    close(u->fd);
    free(u);
}

bool upload_begin(struct http_request *q)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct upload *u;

    if (fd < 0)
        return false;
    u = mem_zero(sizeof *u);
    u->fd = fd;
    digest_begin(&u->digest, NULL);
    q->sink = (struct http_sink){u, take_bytes, upload_free};
    return true;
}

void upload_add_digest(const struct http_request *q, struct digest_state *d)
{
    const struct upload *u = q->sink.arg;
    unsigned char digest[DIGEST_SIZE];
    struct digest_state copy;

    if (!u)
        return;
    copy = u->digest;
    digest_end(&copy, digest);
    digest_add(d, digest, sizeof digest);
}

static long read_bytes(void *arg, char *ret_bytes, size_t max)
{
    const struct call *c = arg;
    const struct upload *u = c->http->sink.arg;
    ssize_t n;

    do
        n = c->server->transfers->stopping ? -1 : read(u->fd, ret_bytes, max);
    while (n < 0 && errno == EINTR);
    return (long)n;
}

static void *run_import(void *arg)
{
    struct call *c = arg;
    struct transfers *all = c->server->transfers;
    char id[TIDE_ID_SIZE];
    struct tide_err err = {0};

    if (tide_session_import(c->server->store, read_bytes, NULL, c, id, &err)) {
        call_fail(c, &err);
    } else {
        call_field(c, "Location", arena_printf(c->arena, API_ROOT "/sessions/%s", id));
        call_reply(c, &shape_created, &(struct command_result){.session_id = id});
    }
    end_one(all); /* the call may be gone */
    return NULL;
}

enum tide_code transfer_import(struct call *c, struct tide_err *err)
{
    const struct upload *u = c->http->sink.arg;

    if (!u)
        return tide_fail(err, TIDE_FULL, "there is no room for the upload: set TMPDIR to a directory that has some");
    if (u->failed)
        return tide_fail_errno(err, u->failed, "store the upload in TMPDIR");
    if (lseek(u->fd, 0, SEEK_SET) < 0)
        return tide_fail_errno(err, errno, "read the upload");
    return begin_one(c->server->transfers, run_import, c, err);
}

/* ---- all of it read ---- */

static int is_stopped(void *arg, uint64_t done, uint64_t total)
{
    const struct call *c = arg;

    (void)done;
    (void)total;
    return c->server->transfers->stopping;
}

static void *run_verify(void *arg)
{
    struct call *c = arg;
    struct transfers *all = c->server->transfers;
    const char *ids[] = {c->params[0].ptr, NULL};
    struct verification v;
    struct tide_err err = {0};
    enum tide_code code = verification_run(c->server->store, ids, is_stopped, c, &v, &err);

    if (code == TIDE_CANCELLED)
        (void)!tide_fail(&err, TIDE_BUSY, "the server stops: ask again when it is back");
    if (code)
        call_fail(c, &err);
    else
        call_reply(c, &shape_verification, &v);
    verification_done(&v);
    end_one(all); /* the call may be gone */
    return NULL;
}

enum tide_code transfer_verify(struct call *c, struct tide_err *err)
{
    return call_check_id(c, err) ? err->code : begin_one(c->server->transfers, run_verify, c, err);
}
