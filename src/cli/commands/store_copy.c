/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark store copy: sessions from one store into another of any kind. The source is opened first and for reading only: a
 * wrong name makes no store. What could not be copied is on standard output, one line a session; how it ended is the exit
 * status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/error_hints.h"
#include "cli/cli.h"
#include "terminal/progress.h"
#include "engine/shapes.h"
#include "engine/store_url.h"

#define URL_MAX 4096

static const struct opt options[] = {
    {.name = "session",
     .type = VALUE_TEXT,
     .value = "ID",
     .many = true,
     .help = "copy this session of SRC, by id or unique prefix, and its parents; may be given more than once "
             "(default: all)"},
    {.name = "dst-key-file",
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "read the key of DST from FILE (default: the same key as SRC)"},
    {.name = "dst-no-key", .help = "DST has no key, although SRC has one"},
    {.name = NULL},
};

struct copying {
    struct cli *cli;
    tide_store *src, *dst;
    unsigned char key[2][STORE_KEY_MAX]; /* of SRC, of DST */
    size_t key_len[2];
    struct progress progress;
    char unit[80]; /* of the progress line: "events, 3 of 12 sessions, 1.5 MiB" */
    struct copy_report report;
};

/* ---- opening --------------------------------------------------------------------------------------------------------- */

/* One key for both unless DST has its own. Read once: a descriptor gives it no second time. */
static enum tide_code read_keys(struct copying *c, struct tide_err *err)
{
    const struct args *args = &c->cli->args;
    const char *file = args_text(args, "dst-key-file");

    if (file && args_on(args, "dst-no-key"))
        return args_refuse(err, "dst-key-file", "copy: give --dst-key-file or --dst-no-key, not both");
    if (cli_store_key(c->cli, c->key[0], &c->key_len[0], err))
        return tide_wrap(err, "copy");
    if (file)
        return advise(store_key_file(file, c->key[1], &c->key_len[1], err)
                          ? tide_about(err, TIDE_SUBJECT_ARGUMENT, "dst_key_file")
                          : TIDE_OK,
                      "give a file that holds the key", err)
                   ? tide_wrap(err, "copy")
                   : TIDE_OK;
    c->key_len[1] = args_on(args, "dst-no-key") ? 0 : c->key_len[0];
    memcpy(c->key[1], c->key[0], c->key_len[1]);
    return TIDE_OK;
}

static enum tide_code open_one(const struct copying *c, const char *url, bool is_dst, tide_store **ret_store,
                               struct tide_err *err)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = is_dst ? TIDE_OPEN_CREATE : TIDE_OPEN_READ_ONLY};
    enum tide_code code = store_max_record(&opt.max_record_bytes, err);

    if (code)
        return code;
    opt.key_len = c->key_len[is_dst];
    opt.key = opt.key_len ? c->key[is_dst] : NULL;
    code = tide_store_open(url, &opt, ret_store, err);
    if (code == TIDE_WRONG_KEY && is_dst)
        tide_fail(err, code, "its key differs or is missing: give --dst-key-file FILE, or --dst-no-key");
    else if (code == TIDE_NOT_FOUND && !is_dst) {
        tide_fail(err, code, "no store at '%.200s': name one that is there", store_url_path(url));
        tide_about(err, TIDE_SUBJECT_FILE, store_url_path(url));
    }
    c->cli->no_store = code == TIDE_WRONG_KEY && !is_dst;
    return code ? tide_wrap(err, "copy: %s", is_dst ? "DST" : "SRC") : TIDE_OK;
}

/* Cuts the last part off; false when there is none. */
static bool cut_part(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || !slash[slash == path])
        return false;
    slash[slash == path] = '\0';
    return true;
}

/* A store of files is a directory: what is made in it would be among what is read. */
static bool is_inside(const char *src, const char *dst)
{
    AUTO(mem_freep) char *path = mem_dup(str_from(store_url_path(dst)));
    AUTO(mem_freep) char *real = NULL;
    struct stat dir, st;
    bool found = false;

    if (!store_url_is_files(src) || stat(store_url_path(src), &dir) != 0)
        return false;
    while (!(real = realpath(path, NULL)) && cut_part(path))
        continue;
    real = real ? real : realpath(".", NULL);
    while (real && !found && stat(real, &st) == 0) {
        found = st.st_dev == dir.st_dev && st.st_ino == dir.st_ino;
        if (!cut_part(real))
            break;
    }
    return found;
}

static enum tide_code open_both(struct copying *c, struct tide_err *err)
{
    const struct args *args = &c->cli->args;
    AUTO(buf_done) struct buf src = BUF_INIT(URL_MAX);
    AUTO(buf_done) struct buf dst = BUF_INIT(URL_MAX);
    struct stat x, y;

    if (args_text(args, "store"))
        return args_refuse(err, "store", "copy: --store is not used here: give SRC and DST");
    if (store_url_given(args_operand(args, 0), "SRC", &src, err) ||
        store_url_given(args_operand(args, 1), "DST", &dst, err))
        return tide_wrap(err, "copy");
    if (src.failed || dst.failed)
        return args_refuse(err, "dst", "copy: the path of a store is too long");
    /* By what is there, not by name: a link, another spelling. */
    if (stat(store_url_path(buf_cstr(&src)), &x) == 0 && stat(store_url_path(buf_cstr(&dst)), &y) == 0 &&
        x.st_dev == y.st_dev && x.st_ino == y.st_ino)
        return args_refuse(err, "dst", "copy: SRC and DST are the same store: name another one to copy into");
    if (is_inside(buf_cstr(&src), buf_cstr(&dst)))
        return args_refuse(err, "dst", "copy: DST is inside of SRC: name a place outside of it");
    if (read_keys(c, err) || open_one(c, buf_cstr(&src), false, &c->src, err))
        return err->code;
    return open_one(c, buf_cstr(&dst), true, &c->dst, err);
}

/* ---- what happens ---------------------------------------------------------------------------------------------------- */

static int on_progress(void *arg, const struct tide_copy_progress *at)
{
    struct copying *c = arg;
    char bytes[32];

    snprintf(c->unit, sizeof(c->unit), "events, %" PRIu64 " of %" PRIu64 " sessions, %s", at->sessions,
             at->sessions_total, bytes_text(bytes, (int64_t)at->bytes));
    return progress_step(&c->progress, at->events, at->events_total);
}

static void on_problem(void *arg, const char *where, const char *what)
{
    findings_problem(&((struct copying *)arg)->report.problems, where, what);
}

static void on_notice(void *arg, const char *where, const char *what)
{
    findings_problem(&((struct copying *)arg)->report.notices, where, what);
}

/* What a store repaired by itself, reported as other commands do. */
static void tell_line(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

/* ---- what came of it ------------------------------------------------------------------------------------------------- */

static void print_text(struct out *out, const struct tide_copy_result *r)
{
    char bytes[32];

    outf(out, "copied %" PRIu64 " session%s", r->copied, r->copied == 1 ? "" : "s");
    if (r->continued)
        outf(out, ", continued %" PRIu64, r->continued);
    outf(out, " (%" PRIu64 " event%s, %s)", r->events, r->events == 1 ? "" : "s", bytes_text(bytes, (int64_t)r->bytes));
    if (r->same)
        outf(out, "; %" PRIu64 " %s there already", r->same, r->same == 1 ? "was" : "were");
    outf(out, "\n");
}

/* The report stays although the command fails: what was copied is there. */
static enum tide_code conclude_copy(struct copying *c, enum tide_code code, struct tide_err *err)
{
    const struct tide_copy_result *r = &c->report.result;
    struct tide_err write_err;
    bool whole = !code || r->refused;

    c->report.ok = !code;
    if (c->cli->out.json) {
        out_shape(&c->cli->out, &shape_store_copy, &c->report);
    } else {
        out_findings(&c->cli->out, &c->report.notices, COLOR_DIM);
        out_findings(&c->cli->out, &c->report.problems, COLOR_RED);
        if (whole || r->copied + r->continued)
            print_text(&c->cli->out, r);
    }
    if (!code)
        return TIDE_OK;
    if (r->sessions && out_flush(&c->cli->out, &write_err))
        return tide_err_copy(err, &write_err);
    if (code == TIDE_CANCELLED && stop_signal) /* whose default action ends a command silently */
        fputs("tidemark: copy: stopped: run the same command again to copy the rest\n", stderr);
    if (code == TIDE_FULL || code == TIDE_UNKNOWN || code == TIDE_BUSY)
        return tide_wrap(err, "run the same command again to copy the rest");
    return code;
}

static enum tide_code copy_sessions(struct copying *c, struct tide_err *err)
{
    AUTO(mem_freep) const char **ids = args_all(&c->cli->args, "session");
    struct tide_copy_options opt = {
        .size = sizeof opt, ids && ids[0] ? ids : NULL, on_progress, on_problem, on_notice, c};
    enum tide_code code;

    progress_init(&c->progress, "copy", c->unit);
    code = tide_store_copy(c->src, c->dst, &opt, &c->report.result, err);
    if (code == TIDE_NOT_FOUND)
        memset(err->hints, 0, sizeof err->hints); /* they are for the default store of commands, not for these */
    progress_done(&c->progress);
    tide_store_read_notices(c->src, tell_line, NULL);
    tide_store_read_notices(c->dst, tell_line, NULL);
    return conclude_copy(c, code, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct copying c = {.cli = cli};
    enum tide_code code = open_both(&c, err);

    explicit_bzero(c.key, sizeof(c.key));
    code = code ? code : copy_sessions(&c, err);
    tide_store_close(c.dst);
    tide_store_close(c.src);
    findings_done(&c.report.problems);
    findings_done(&c.report.notices);
    return code;
}

const struct command cmd_store_copy = {
    .group = "store",
    .name = "copy",
    .run = run,
    .operands = {{"SRC", VALUE_FILE, 0}, {"DST", VALUE_FILE, 0}},
    .options = options,
    .help = "copy sessions to another store and verify the copy; run it again after an interruption to copy the rest",
};
