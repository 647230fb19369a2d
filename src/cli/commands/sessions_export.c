/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions export and import: a session as JSON lines and back, byte for byte.
 *
 * Export to a file: temporary file beside it, sync, rename, sync of the directory; so the name always stands for a whole
 * export, and a full disk or a kill leaves what was there before. A symbolic link stays: the file it leads to is the one
 * that is replaced. What is no regular file (a pipe, a device) is never replaced: it is opened and written into.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/cli.h"
#include "terminal/progress.h"
#include "engine/temporary.h"
#include "engine/store_url.h"
#include "engine/shapes.h"

#define PIECE ((size_t)256 << 10)

/* ---- export ---- */

static const struct opt export_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "write to FILE, replaced atomically; links are followed, pipes and devices are written to (default: "
             "standard output)"},
    {.name = NULL},
};

struct exporting {
    struct cli *cli;
    struct progress progress;
    int fd; /* of the file; -1: standard output */
    int write_errno;
    struct buf buf;
    struct tide_err out_err;
};

static int flush_piece(struct exporting *e)
{
    if (e->fd < 0)
        return out_flush(&e->cli->out, &e->out_err) ? -1 : 0;
    e->write_errno = fd_write(e->fd, buf_view(&e->buf));
    if (e->write_errno)
        return -1;
    buf_clear(&e->buf);
    return 0;
}

static int on_write(void *arg, const char *bytes, size_t len)
{
    struct exporting *e = arg;
    struct buf *to = e->fd >= 0 ? &e->buf : &e->cli->out.text;

    buf_add(to, bytes, len);
    return to->len >= PIECE ? flush_piece(e) : 0;
}

static int on_export_progress(void *arg, uint64_t done, uint64_t total)
{
    return progress_step(&((struct exporting *)arg)->progress, done, total);
}

static enum tide_code export_all(struct exporting *e, tide_session *session, struct tide_err *err)
{
    enum tide_code code;

    progress_init(&e->progress, "export", "events");
    code = tide_session_export(session, on_write, on_export_progress, e, err);
    if (!code && flush_piece(e))
        code = tide_fail(err, TIDE_IO, "export");
    progress_done(&e->progress);
    if (code && e->out_err.code)
        return tide_err_copy(err, &e->out_err);
    if (code && e->write_errno)
        return tide_fail_errno(err, e->write_errno, "export: write");
    return code;
}

/* Makes the renamed entry durable. */
static void sync_directory_of(const char *path)
{
    AUTO(mem_freep) char *dir = mem_dup(str_from(path));
    char *slash = strrchr(dir, '/');
    int fd;

    if (slash)
        slash[slash == dir] = '\0';
    fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
}

/* Replaces the regular file `path`, or makes it. */
static enum tide_code export_to_file(struct exporting *e, tide_session *session, const char *path, struct tide_err *err)
{
    AUTO(buf_done) struct buf temp = BUF_INIT(8192);
    enum tide_code code;

    buf_addf(&temp, "%s.XXXXXX", path);
    if (temp.failed)
        return args_refuse(err, "output", "export: the path is too long");
    buf_cstr(&temp);
    e->fd = mkostemp(temp.ptr, O_CLOEXEC);
    if (e->fd < 0)
        return tide_fail_file(err, errno, "export: make a file beside", path);
    code = export_all(e, session, err);
    if (!code && fsync(e->fd) != 0)
        code = tide_fail_errno(err, errno, "export: sync '%.200s'", path);
    if (close(e->fd) != 0 && !code)
        code = tide_fail_file(err, errno, "export: close", path);
    if (!code && rename(temp.ptr, path) != 0)
        code = tide_fail_errno(err, errno, "export: rename to '%.200s'", path);
    if (code)
        unlink(temp.ptr);
    else
        sync_directory_of(path);
    return code;
}

/* Writes into what stands at `path`: there is nothing to sync or to take back. */
static enum tide_code export_into(struct exporting *e, tide_session *session, const char *path, struct tide_err *err)
{
    enum tide_code code;

    e->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (e->fd < 0 && stop_signal) /* while it waited for the reader of a pipe */
        return tide_fail(err, TIDE_CANCELLED, "export: stopped");
    if (e->fd < 0)
        return tide_fail_file(err, errno, "export: open", path);
    code = export_all(e, session, err);
    if (close(e->fd) != 0 && !code)
        code = tide_fail_errno(err, errno, "export: close '%.200s'", path);
    return code;
}

static enum tide_code export_to(struct exporting *e, tide_session *session, const char *path, struct tide_err *err)
{
    AUTO(mem_freep) char *target = NULL;
    struct stat st, out;

    if (stat(path, &st) != 0) {
        if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
            tide_fail(err, TIDE_NOT_FOUND, "export: '%.200s' is a broken symbolic link: name the file itself", path);
            return tide_about(err, TIDE_SUBJECT_FILE, path);
        }
        return export_to_file(e, session, path, err);
    }
    if (fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st.st_dev && out.st_ino == st.st_ino)
        return export_all(e, session, err);
    if (!S_ISREG(st.st_mode))
        return export_into(e, session, path, err);
    target = realpath(path, NULL);
    if (!target)
        return tide_fail_errno(err, errno, "export: follow '%.200s'", path);
    return export_to_file(e, session, target, err);
}

static enum tide_code run_export(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct exporting e = {.cli = cli, .fd = -1, .buf = BUF_INIT(SIZE_MAX / 2)};
    const char *path = args_text(&cli->args, "output");
    enum tide_code code = cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err);

    if (!code && path && strcmp(path, "-") != 0)
        code = export_to(&e, session, path, err);
    else if (!code)
        code = export_all(&e, session, err);
    buf_done(&e.buf);
    return code;
}

const struct command cmd_sessions_export = {
    .group = "sessions",
    .name = "export",
    .run = run_export,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = export_options,
    .help = "write a session as JSON lines, for import into another store",
};

/* ---- import ---- */

#define ADVICE "give a file that was written by tidemark sessions export"

struct importing {
    int fd;
    int read_errno;
    struct progress progress;
};

static long on_read(void *arg, char *ret_bytes, size_t max)
{
    struct importing *in = arg;
    ssize_t n;

    do
        n = read(in->fd, ret_bytes, max);
    while (n < 0 && errno == EINTR && !stop_signal);
    if (n < 0)
        in->read_errno = errno;
    return (long)n;
}

static int on_import_progress(void *arg, uint64_t done, uint64_t total)
{
    return progress_step(&((struct importing *)arg)->progress, done, total);
}

/* What comes through a pipe is read twice, too. */
static enum tide_code spool_input(struct importing *in, const char *dir, struct tide_err *err)
{
    int fd = lseek(in->fd, 0, SEEK_CUR) < 0 ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : in->fd;
    char bytes[65536];
    long n = 0;

    if (fd < 0)
        return tide_fail_errno(err, errno, "import: store the input in TMPDIR");
    while (fd != in->fd && (n = on_read(in, bytes, sizeof(bytes))) > 0)
        if (write(fd, bytes, (size_t)n) != n) {
            tide_fail_errno(err, errno, "import: store the input in TMPDIR");
            close(fd);
            return err->code;
        }
    in->fd = fd;
    return lseek(fd, 0, SEEK_SET) < 0 ? tide_fail_errno(err, errno, "import: read it again") : TIDE_OK;
}

/* Where there is no store, an import that is refused makes none: it is tried in one that nobody keeps. */
static enum tide_code try_apart(struct cli *cli, struct importing *in, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    unsigned char key[STORE_KEY_MAX];
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    const char *dir = NULL;
    char id[TIDE_ID_SIZE];
    enum tide_code code = temporary_make(&a, "import", &dir, err);

    code = code ? code : store_max_record(&opt.max_record_bytes, err);
    code = code ? code : cli_store_key(cli, key, &opt.key_len, err);
    opt.key = opt.key_len ? key : NULL;
    code = code ? code : spool_input(in, dir, err);
    code = code ? code : tide_store_open(arena_printf(&a, "%s/import.db", dir), &opt, &store, err);
    code = code ? code : tide_session_import(store, on_read, on_import_progress, in, id, err);
    if (code == TIDE_NOT_FOUND)
        memset(err->hints, 0, sizeof err->hints); /* of the store that there is not */
    explicit_bzero(key, sizeof(key));
    tide_store_close(store);
    temporary_remove(dir);
    if (!code && lseek(in->fd, 0, SEEK_SET) < 0)
        code = tide_fail_errno(err, errno, "import: read it again");
    return code;
}

static bool is_absent(struct cli *cli)
{
    struct tide_err err;
    enum tide_code code = cli_store_open(cli, NEED_READ, 0, &err);

    tide_store_close(TAKE(cli->store));
    return code == TIDE_NOT_FOUND;
}

static enum tide_code import_from(struct cli *cli, struct importing *in, char ret_id[TIDE_ID_SIZE],
                                  struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    progress_init(&in->progress, "import", "events");
    if (!args_on(&cli->args, "key-fd") && is_absent(cli)) /* a descriptor gives its key once */
        code = try_apart(cli, in, err);
    code = code ? code : cli_store_open(cli, NEED_CREATE, 0, err);
    if (!code)
        code = tide_session_import(cli->store, on_read, on_import_progress, in, ret_id, err);
    progress_done(&in->progress);
    if (code && stop_signal)
        return tide_fail(err, TIDE_CANCELLED, "import: stopped");
    if (code && in->read_errno)
        return tide_fail_errno(err, in->read_errno, "import: read");
    return code;
}

static enum tide_code open_export(const char *path, int *ret_fd, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return tide_fail_file(err, errno, "import: open", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        tide_fail(err, TIDE_INVALID, "import: '%.200s' is a directory", path);
        return tide_about(err, TIDE_SUBJECT_FILE, path);
    }
    *ret_fd = fd;
    return TIDE_OK;
}

static enum tide_code run_import(struct cli *cli, struct tide_err *err)
{
    const char *path = args_operand(&cli->args, 0);
    bool from_stdin = !path || strcmp(path, "-") == 0;
    struct importing in = {.fd = STDIN_FILENO};
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    /* The file is opened before the store: a wrong name makes no store. */
    if (!from_stdin && open_export(path, &in.fd, err))
        return err->code == TIDE_DENIED ? err->code : advise(err->code, ADVICE, err);
    code = import_from(cli, &in, id, err);
    if (in.fd != STDIN_FILENO)
        close(in.fd);
    if (!code && cli->out.json)
        out_shape(&cli->out, &shape_created, &(struct command_result){.session_id = id});
    else if (!code)
        outf(&cli->out, "%s\n", id);
    return code;
}

const struct command cmd_sessions_import = {
    .group = "sessions",
    .name = "import",
    .run = run_import,
    .opens_store = true,
    .operands = {{"FILE", VALUE_FILE, OPERAND_OPTIONAL}},
    .help = "import an exported session, all or nothing, and print its id; FILE may be - (the default)",
};
