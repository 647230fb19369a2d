/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file stays when the server goes: to remove it would let two servers lock two files of one name. It says who has the lock, and
 * only the lock says that somebody has it.
 */
#include "server/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/timefmt.h"
#include "engine/store_url.h"

#define NOTE_MAX 4096

struct store_lock {
    int fd;
    int64_t since_ms;
};

/* Of the file itself, by whatever name it is opened; in a store of plain files beside what is in it. */
static enum tide_code lock_path(const char *url, char *ret, size_t size, struct tide_err *err)
{
    const char *path = store_url_path(url);
    char real[PATH_MAX];

    if (!realpath(path, real))
        return tide_fail_file(err, errno, "look at", path);
    if ((size_t)snprintf(ret, size, "%s%s", real, store_url_is_files(url) ? "/server.lock" : "-server") >= size)
        return tide_fail(err, TIDE_INVALID, "the path of the store is too long");
    return TIDE_OK;
}

static enum tide_code refuse_second(int fd, const char *url, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(NOTE_MAX);
    char since[TIME_PEOPLE_SIZE];
    struct json *v = NULL;
    const char *address;

    if (buf_read_fd(&text, fd) || json_parse(&a, buf_view(&text), NULL, &v, NULL, NULL))
        return tide_fail(err, TIDE_HELD, "another server serves '%s' already: stop that one first",
                         store_url_path(url));
    address = arena_dup(&a, json_get_text(&a, v, STR("address"))).ptr;
    return tide_fail(err, TIDE_HELD,
                     "process %lld serves '%s' already (since %s%s%s): commands work beside it; or stop it first",
                     (long long)json_get_int(v, STR("pid"), 0), store_url_path(url),
                     time_people(since, json_get_int(v, STR("since_ms"), 0)), address[0] ? ", " : "", address);
}

enum tide_code store_lock_take(const char *url, struct store_lock **ret, struct tide_err *err)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_MAX];
    int fd, failed;

    if (lock_path(url, path, sizeof path, err))
        return err->code;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0)
        return tide_fail_file(err, errno, "open", path);
    failed = fcntl(fd, F_OFD_SETLK, &all) ? errno : 0;
    if (failed == EAGAIN || failed == EACCES)
        (void)!refuse_second(fd, url, err);
    else if (failed)
        tide_fail_file(err, failed, "lock", path);
    if (failed) {
        close(fd);
        return err->code;
    }
    *ret = mem_zero(sizeof **ret);
    **ret = (struct store_lock){fd, wall_ms()};
    store_lock_note(*ret, "");
    return TIDE_OK;
}

void store_lock_note(struct store_lock *lock, const char *address)
{
    AUTO(buf_done) struct buf text = BUF_INIT(NOTE_MAX);
    struct json_out o = json_out_to(&text);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("pid"), getpid());
    json_out_kint(&o, STR("since_ms"), lock->since_ms);
    json_out_kstr(&o, STR("address"), str_from(address));
    json_out_end(&o, '}');
    buf_add_char(&text, '\n');
    /* One write, for the process that reads it now; on a full disk nobody is named, and the lock holds. */
    if (pwrite(lock->fd, text.ptr, text.len, 0) == (ssize_t)text.len)
        (void)!ftruncate(lock->fd, (off_t)text.len);
}

void store_lock_free(struct store_lock *lock)
{
    if (!lock)
        return;
    (void)!ftruncate(lock->fd, 0);
    close(lock->fd);
    free(lock);
}
