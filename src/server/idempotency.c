/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal is a file of JSON lines in the state directory; the last line of a request counts:
 *
 *   {"id":…,"digest":…,"at":MS}                              begun
 *   {"id":…,"digest":…,"at":MS,"status":N,"type":…,"location":…,"etag":…,"body":…}   answered
 *   {"id":…,"at":0}                                          forgotten: it was refused
 *
 * A line that was cut by a crash is left out: it was not acknowledged. Of a line only its place is kept in memory.
 * Lines are synced by the request that waits first, for all that wait. The file is written anew when it is opened, when
 * most of it is old, and when a sync has failed: what was written since the last good one may be lost, whatever a read
 * shows. Until that is done no key is taken.
 */
#include "server/idempotency.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/replace_file.h"
#include "env/user_key.h"

#define KEPT_MS ((int64_t)24 * 3600 * 1000)
#define REQUESTS_MAX 200000
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define REWRITE_BYTES ((off_t)4 << 20) /* smaller than that it may be mostly old */
#define MEND_MS 1000                   /* between two tries to write it anew after a failed sync */

enum stage { STAGE_BEGUN, STAGE_RUNS, STAGE_ANSWERED };

struct entry {
    enum stage stage;
    char digest[CAUSE_ID_SIZE];
    int64_t at_ms;
    off_t line; /* where its last line is, and how long */
    size_t len;
    off_t new_line; /* the same in the file that is written anew */
    size_t new_len;
    bool new_begun;       /* its answer cannot be read again */
    struct call *waiting; /* that repeat it while it runs */
};

struct idempotency {
    char path[PATH_MAX];
    int fd;
    pthread_mutex_t mu;
    pthread_cond_t synced_more;
    struct map entries; /* by id, the oldest first as a rule */
    off_t end;
    off_t live;               /* bytes of lines that count */
    uint64_t written, synced; /* lines */
    bool syncing;
    int failed; /* errno of a sync: nothing is promised until the file was written anew */
    int64_t tried_ms;
};

/* ---- lines ---- */

struct answer {
    int status;
    const char *type, *location, *etag;
    struct str body;
};

static void put_line(struct buf *out, const char *id, const char *digest, int64_t at_ms, const struct answer *answer)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("id"), str_from(id));
    json_out_kstr_opt(&o, STR("digest"), str_from(digest));
    json_out_kint(&o, STR("at"), at_ms);
    if (answer) {
        json_out_kint(&o, STR("status"), answer->status);
        json_out_kstr_opt(&o, STR("type"), str_from(answer->type));
        json_out_kstr_opt(&o, STR("location"), str_from(answer->location));
        json_out_kstr_opt(&o, STR("etag"), str_from(answer->etag));
        json_out_kstr_opt(&o, STR("body"), answer->body);
    }
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}

/* With mu held. What does not reach the file is not there. */
static enum tide_code write_line(struct idempotency *i, struct str line, off_t *ret_at, struct tide_err *err)
{
    ssize_t n = pwrite(i->fd, line.ptr, line.len, i->end);

    if (n != (ssize_t)line.len) {
        int why = n < 0 ? errno : ENOSPC;

        (void)!ftruncate(i->fd, i->end);
        return tide_fail_errno(err, why, "note the request");
    }
    *ret_at = i->end;
    i->end += n;
    i->written++;
    return TIDE_OK;
}

/* What is written now. With mu held, which is released meanwhile. */
static enum tide_code sync_lines(struct idempotency *i, struct tide_err *err)
{
    uint64_t want = i->written;

    while (!i->failed && i->synced < want) {
        uint64_t now = i->written;
        int failed;

        if (i->syncing) {
            pthread_cond_wait(&i->synced_more, &i->mu);
            continue;
        }
        i->syncing = true;
        pthread_mutex_unlock(&i->mu);
        failed = fdatasync(i->fd) ? errno : 0;
        pthread_mutex_lock(&i->mu);
        i->syncing = false;
        i->failed = failed;
        i->synced = failed ? i->synced : now;
        pthread_cond_broadcast(&i->synced_more);
    }
    return i->failed ? tide_fail_errno(err, i->failed, "note the request") : TIDE_OK;
}

static void set_line(struct idempotency *i, struct entry *e, off_t at, size_t len)
{
    i->live += (off_t)len - (off_t)e->len;
    e->line = at;
    e->len = len;
}

/* ---- what is old ---- */

static void forget_request(struct idempotency *i, struct map_entry *m)
{
    struct entry *e = m->value;

    i->live -= (off_t)e->len;
    free(map_remove(&i->entries, map_key(m)));
}

static void forget_old(struct idempotency *i, int64_t now_ms)
{
    struct map_entry *m = map_next(&i->entries, NULL);

    for (int n = 0; m && n < 64; n++) { /* a few each time, from the oldest on */
        const struct entry *e = m->value;

        if (e->stage == STAGE_RUNS || e->at_ms + KEPT_MS > now_ms)
            return;
        forget_request(i, m);
        m = map_next(&i->entries, NULL);
    }
}

/* As it was written; what cannot be read again is a request that was begun. */
static void copy_line(struct idempotency *i, struct str id, struct entry *e, struct buf *out)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    size_t at = out->len;
    char *room = buf_reserve(out, e->len);
    struct json *v = NULL;

    e->new_begun = !room || pread(i->fd, room, e->len, e->line) != (ssize_t)e->len ||
                   json_parse(&a, (struct str){room, e->len}, NULL, &v, NULL, NULL) ||
                   !str_eq(json_get_text(&a, v, STR("id")), id);
    if (e->new_begun)
        put_line(out, arena_dup(&a, id).ptr, e->digest, e->at_ms, NULL);
    else
        out->len += e->len;
    e->new_line = (off_t)at;
    e->new_len = out->len - at;
}

static void use_new_lines(struct idempotency *i, off_t end)
{
    for (struct map_entry *m = map_next(&i->entries, NULL); m; m = map_next(&i->entries, m)) {
        struct entry *e = m->value;

        e->line = e->new_line;
        e->len = e->new_len;
        if (e->new_begun && e->stage == STAGE_ANSWERED)
            e->stage = STAGE_BEGUN;
    }
    i->end = i->live = end;
    i->synced = i->written;
    i->failed = 0;
}

/* Only what counts, in a file that takes the place of the other. */
static enum tide_code rewrite_journal(struct idempotency *i, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code;
    int fd, dir = -1;

    for (struct map_entry *m = map_next(&i->entries, NULL); m; m = map_next(&i->entries, m))
        copy_line(i, map_key(m), m->value, &text);
    code = file_lock_dir(i->path, &dir, err);
    code = code ? code : file_replace(i->path, dir, buf_view(&text), err);
    if (dir >= 0)
        close(dir);
    if (code)
        return code;
    fd = open(i->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
        code = tide_fail_file(err, errno, "open", i->path);
        if (fd >= 0)
            close(fd);
        i->failed = EIO; /* the file that is open has no name any more */
        return code;
    }
    if (i->fd >= 0)
        close(i->fd);
    i->fd = fd;
    use_new_lines(i, (off_t)text.len);
    return TIDE_OK;
}

/* After a failed sync; with mu held. */
static enum tide_code mend_journal(struct idempotency *i, struct tide_err *err)
{
    int64_t now = monotonic_ms();

    if (!i->failed)
        return TIDE_OK;
    if (i->syncing || now < i->tried_ms + MEND_MS)
        return tide_fail_errno(err, i->failed, "note the request");
    i->tried_ms = now;
    return rewrite_journal(i, err);
}

/* ---- opening ---- */

static void read_line(struct idempotency *i, struct arena *a, struct str line, off_t at, int64_t now_ms)
{
    struct json *v = NULL;
    struct map_entry *m;
    struct entry *e;
    struct str id;
    int64_t at_ms;

    arena_reset(a);
    if (json_parse(a, line, NULL, &v, NULL, NULL) || !(id = json_get_text(a, v, STR("id"))).len)
        return;
    at_ms = json_get_int(v, STR("at"), 0);
    m = map_find(&i->entries, id);
    if (at_ms + KEPT_MS <= now_ms) {
        if (m)
            forget_request(i, m);
        return;
    }
    e = m ? m->value : mem_zero(sizeof *e);
    if (!m)
        map_put(&i->entries, id, e);
    e->stage = json_get(v, STR("status")) ? STAGE_ANSWERED : STAGE_BEGUN;
    e->at_ms = at_ms;
    snprintf(e->digest, sizeof e->digest, "%.*s", STR_ARG(json_get_text(a, v, STR("digest"))));
    set_line(i, e, at, line.len + 1);
}

static enum tide_code read_journal(struct idempotency *i, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    int64_t now_ms = wall_ms();
    int failed = buf_read_fd(&text, i->fd);

    if (failed)
        return tide_fail_file(err, failed, "read", i->path);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : 0;

        if (!end)
            break; /* cut by a crash */
        read_line(i, &a, (struct str){text.ptr + at, len}, (off_t)at, now_ms);
        at += len + 1;
    }
    return TIDE_OK;
}

static enum tide_code open_journal(struct idempotency *i, struct tide_err *err)
{
    struct stat st;

    i->fd = open(i->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (i->fd < 0 || fstat(i->fd, &st))
        return tide_fail_file(err, errno, "open", i->path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return tide_fail(err, TIDE_DENIED, "'%s' can be read or written by others: remove it", i->path);
    if (flock(i->fd, LOCK_EX | LOCK_NB))
        return tide_fail(err, TIDE_HELD, "another server serves this store: end it first");
    return read_journal(i, err) ? err->code : rewrite_journal(i, err);
}

enum tide_code idempotency_open(const char *store_url, struct idempotency **ret, struct tide_err *err)
{
    struct idempotency *i = mem_zero(sizeof *i);
    char name[DIGEST_NAME_SIZE + 32], of[DIGEST_NAME_SIZE];
    enum tide_code code = TIDE_OK;

    i->fd = -1;
    pthread_mutex_init(&i->mu, NULL);
    pthread_cond_init(&i->synced_more, NULL);
    digest_name(of, str_from(store_url));
    snprintf(name, sizeof name, "requests-%s.jsonl", of);
    if (!user_state_path(name, true, i->path, sizeof i->path))
        code = tide_fail(err, TIDE_DENIED, "the state directory cannot be written: set XDG_STATE_HOME to one of yours");
    code = code ? code : open_journal(i, err);
    if (code)
        idempotency_close(i);
    else
        *ret = i;
    return code;
}

void idempotency_close(struct idempotency *i)
{
    if (!i)
        return;
    if (i->fd >= 0)
        close(i->fd);
    map_done(&i->entries, free);
    pthread_cond_destroy(&i->synced_more);
    pthread_mutex_destroy(&i->mu);
    free(i);
}

/* ---- claiming ---- */

static void put_again(struct call *c, const char *name, struct str value)
{
    if (value.len)
        call_field(c, name, arena_dup(c->arena, value).ptr);
}

/* The first answer once more. With mu held; the call may be gone. */
static enum tide_code answer_again(struct idempotency *i, struct call *c, const struct entry *e, struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES * 2);
    struct buf body = BUF_INIT(LINE_MAX_BYTES * 2);
    char *room = buf_reserve(&line, e->len);
    struct str text;
    struct json *v = NULL;

    if (!room || pread(i->fd, room, e->len, e->line) != (ssize_t)e->len)
        return tide_fail(err, TIDE_IO, "read '%s' again", i->path);
    line.len = e->len;
    if (json_parse(c->arena, arena_dup(c->arena, buf_view(&line)), NULL, &v, NULL, err))
        return err->code;
    text = json_get_text(c->arena, v, STR("type"));
    put_again(c, "Location", json_get_text(c->arena, v, STR("location")));
    put_again(c, "ETag", json_get_text(c->arena, v, STR("etag")));
    buf_add_str(&body, json_get_text(c->arena, v, STR("body")));
    c->request.id[0] = '\0'; /* this answer is no news */
    call_reply_text(c, (int)json_get_int(v, STR("status"), 200), text.len ? arena_dup(c->arena, text).ptr : NULL,
                    body.len ? &body : NULL);
    buf_done(&body);
    return TIDE_OK;
}

static enum tide_code begin_entry(struct idempotency *i, struct call *c, enum claimed *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    struct entry *e;
    int64_t now_ms = wall_ms();
    off_t at;

    if (mend_journal(i, err))
        return err->code;
    forget_old(i, now_ms);
    if (i->entries.live >= REQUESTS_MAX)
        return tide_fail(err, TIDE_BUSY, "too many Idempotency-Keys are kept, each for a day: omit it, or try later");
    put_line(&line, c->request.id, c->request.digest, now_ms, NULL);
    if (write_line(i, buf_view(&line), &at, err))
        return err->code;
    e = mem_zero(sizeof *e);
    e->stage = STAGE_RUNS;
    e->at_ms = now_ms;
    memcpy(e->digest, c->request.digest, sizeof e->digest);
    set_line(i, e, at, line.len);
    map_put(&i->entries, str_from(c->request.id), e);
    *ret = CLAIM_NEW;
    return sync_lines(i, err);
}

static enum tide_code claim_key(struct idempotency *i, struct call *c, enum claimed *ret, struct tide_err *err)
{
    struct map_entry *m = map_find(&i->entries, str_from(c->request.id));
    struct entry *e = m ? m->value : NULL;

    if (e && e->stage != STAGE_RUNS && e->at_ms + KEPT_MS <= wall_ms()) {
        forget_request(i, m);
        e = NULL;
    }
    *ret = CLAIM_TAKEN;
    if (!e)
        return begin_entry(i, c, ret, err);
    if (strcmp(e->digest, c->request.digest) != 0)
        return tide_fail_of(err, TIDE_EXISTS, TIDE_SUBJECT_ARGUMENT, "Idempotency-Key",
                            ": this key was used for another request: give each request its own");
    if (e->stage == STAGE_ANSWERED)
        return answer_again(i, c, e, err);
    if (e->stage == STAGE_BEGUN) {
        if (mend_journal(i, err)) /* that it was begun has to be on disk */
            return err->code;
        e->stage = STAGE_RUNS;
        *ret = CLAIM_AGAIN;
        return TIDE_OK;
    }
    c->waiting = e->waiting;
    e->waiting = c;
    return TIDE_OK;
}

enum tide_code idempotency_claim(struct idempotency *i, struct call *c, enum claimed *ret, struct tide_err *err)
{
    enum tide_code code;

    pthread_mutex_lock(&i->mu);
    code = claim_key(i, c, ret, err);
    pthread_mutex_unlock(&i->mu);
    return code;
}

/* ---- the answer ---- */

static const char *field_of(const struct call *c, const char *name)
{
    for (size_t i = 0; i + 1 < c->n_extra; i += 2)
        if (strcmp(c->extra[i], name) == 0)
            return c->extra[i + 1];
    return NULL;
}

/* With mu held. */
static enum tide_code keep_answer(struct idempotency *i, struct call *c, struct entry *e, const struct answer *answer,
                                  struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
    off_t at;

    put_line(&line, c->request.id, c->request.digest, e->at_ms, answer);
    if (line.failed)
        return tide_fail(err, TIDE_TOO_BIG, "the answer is too long to be kept");
    if (write_line(i, buf_view(&line), &at, err))
        return err->code;
    set_line(i, e, at, line.len);
    e->stage = STAGE_ANSWERED;
    return sync_lines(i, err);
}

static void forget_entry(struct idempotency *i, struct call *c)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    struct map_entry *m = map_find(&i->entries, str_from(c->request.id));
    struct tide_err ignored;
    off_t at;

    put_line(&line, c->request.id, "", 0, NULL);
    (void)!write_line(i, buf_view(&line), &at, &ignored); /* if it is not there, the log is asked next time */
    if (m)
        forget_request(i, m);
}

static void answer_waiting(struct call *list, const struct answer *answer)
{
    while (list) {
        struct call *c = list;
        struct buf copy = BUF_INIT(answer->body.len + 1);

        list = c->waiting;
        buf_add_str(&copy, answer->body);
        c->request.id[0] = '\0';
        put_again(c, "Location", str_from(answer->location));
        put_again(c, "ETag", str_from(answer->etag));
        call_reply_text(c, answer->status, answer->type, copy.len ? &copy : NULL);
        buf_done(&copy);
    }
}

void idempotency_end(struct idempotency *i, struct call *c, int status, const char *type, struct str kept)
{
    const struct answer answer = {status, type, field_of(c, "Location"), field_of(c, "ETag"), kept};
    struct call *waiting = NULL;
    struct tide_err err;
    struct map_entry *m;
    struct entry *e;

    pthread_mutex_lock(&i->mu);
    m = map_find(&i->entries, str_from(c->request.id));
    e = m ? m->value : NULL;
    if (e) {
        waiting = e->waiting;
        e->waiting = NULL;
    }
    if (e && status >= 500)
        e->stage = STAGE_BEGUN; /* nobody knows what became of it: the log is asked when it is repeated */
    else if (e && status >= 400)
        forget_entry(i, c);
    else if (e && keep_answer(i, c, e, &answer, &err)) { /* then the event of the request has it */
        e->stage = STAGE_BEGUN;
        log_write(TIDE_LOG_WARN, "an answer could not be kept", log_text("error", err.msg));
    }
    if (i->end > REWRITE_BYTES && i->live < i->end / 4 && !i->syncing && rewrite_journal(i, &err))
        log_write(TIDE_LOG_WARN, "the journal of requests stays long", log_text("error", err.msg));
    pthread_mutex_unlock(&i->mu);
    answer_waiting(waiting, &answer);
}
