/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark doctor: is everything in order, and if not, what is to be done? Each check is one row and answers by itself; the
 * first ones need no store, so that it has something to say on a full disk and before a store that cannot be opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/store_url.h"

#define LOOK_SESSIONS 8  /* the newest ones, whose */
#define LOOK_EVENTS 1000 /* last events are read and so proved */
#define SPACE_FAIL ((uint64_t)1 << 20)
#define SPACE_WARN ((uint64_t)64 << 20)

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct doctor {
    struct cli *cli;
    struct json_out json;
    struct buf url;
    const char *path; /* of the store's file; "" when it cannot be told */
    char dir[1024];
    bool is_default;
    enum verdict worst;
    const char *name; /* of the check that is being made */
    struct tide_err err;
};

/* One line of the report. `todo` NULL: nothing to do. */
static void say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
{
    static const char *const words[] = {"ok", "warn", "fail"};
    static const enum color colors[] = {COLOR_GREEN, COLOR_YELLOW, COLOR_RED};
    struct out *out = &d->cli->out;
    char detail[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(detail, sizeof(detail), fmt, args);
    va_end(args);
    d->worst = verdict > d->worst ? verdict : d->worst;
    if (out->json) {
        json_out_begin(&d->json, '{');
        json_out_kstr(&d->json, STR("name"), str_from(d->name));
        json_out_kstr(&d->json, STR("status"), str_from(words[verdict]));
        json_out_kstr(&d->json, STR("detail"), str_from(detail));
        json_kopt(&d->json, "todo", todo);
        json_out_end(&d->json, '}');
        return;
    }
    out_colored(out, colors[verdict], words[verdict]);
    outf(out, "%*s%-10s ", (int)(6 - strlen(words[verdict])), "", d->name);
    out_value(out, detail);
    if (todo) {
        outf(out, ": ");
        out_value(out, todo);
    }
    outf(out, "\n");
}

/* What could not be read. The library's own message often says already what to do. */
static void say_damage(struct doctor *d)
{
    say(d, VERDICT_FAIL, strstr(d->err.msg, "store check") ? NULL : "`tidemark store check` says more", "%s",
        d->err.msg);
}

static void check_version(struct doctor *d)
{
    say(d, VERDICT_OK, NULL, "tidemark %s", tide_version());
}

static void check_path(struct doctor *d)
{
    struct stat st;

    if (store_url(&d->cli->args, &d->url, &d->err)) {
        say(d, VERDICT_FAIL, NULL, "%s", d->err.msg);
        return;
    }
    d->path = store_url_path(buf_cstr(&d->url));
    d->is_default = !args_on(&d->cli->args, "store") && !getenv("TIDEMARK_STORE");
    snprintf(d->dir, sizeof(d->dir), "%s", d->path);
    if (strrchr(d->dir, '/'))
        strrchr(d->dir, '/')[strrchr(d->dir, '/') == d->dir] = '\0';
    else
        snprintf(d->dir, sizeof(d->dir), ".");
    if (lstat(d->path, &st) == 0)
        say(d, VERDICT_OK, NULL, "%s", d->path);
    else if (errno == ENOENT || errno == ENOTDIR)
        say(d, VERDICT_WARN, "`tidemark sessions new` makes one", "no store at %s", d->path);
    else
        say(d, VERDICT_FAIL, NULL, "%s: %s", d->path, strerrordesc_np(errno));
}

/* The nearest directory above that exists: where the store would be made. */
static bool existing_dir(struct doctor *d)
{
    struct stat st;

    while (d->dir[0] && stat(d->dir, &st) != 0) {
        char *slash = strrchr(d->dir, '/');

        if (!slash)
            return false;
        slash[slash == d->dir] = '\0';
        if (slash == d->dir && stat(d->dir, &st) != 0)
            return false;
    }
    return d->dir[0] != '\0';
}

static void check_space(struct doctor *d)
{
    struct statvfs fs;
    uint64_t bytes;
    char text[32];

    if (!d->path[0] || !existing_dir(d) || statvfs(d->dir, &fs) != 0)
        return;
    bytes = (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
    bytes_text(text, (int64_t)bytes);
    if (bytes < SPACE_FAIL)
        say(d, VERDICT_FAIL, "free some: reading works, appending is refused until there is room", "%s free in %s",
            text, d->dir);
    else if (bytes < SPACE_WARN)
        say(d, VERDICT_WARN, "free some soon", "%s free in %s", text, d->dir);
    else
        say(d, VERDICT_OK, NULL, "%s free in %s", text, d->dir);
    if (fs.f_files > 0 && fs.f_ffree == 0)
        say(d, VERDICT_FAIL, "remove files: none can be made", "no free inodes in %s", d->dir);
}

static void check_access(struct doctor *d)
{
    if (!d->path[0])
        return;
    if (access(d->dir, W_OK) == 0)
        say(d, VERDICT_OK, NULL, "%s can be written", d->dir);
    else
        say(d, VERDICT_FAIL, "give yourself the right to write there", "%s cannot be written: %s", d->dir,
            strerrordesc_np(errno));
}

/* Nobody else should read or write a store. A directory that is not ours alone is a matter of where the person put it. */
static void check_modes(struct doctor *d)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-mark", "-reserve"};
    struct stat st;
    bool fine = true, any = false;
    char path[1100], todo[1200];

    for (size_t i = 0; d->path[0] && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(path, sizeof(path), "%.1000s%s", d->path, suffixes[i]);
        if (lstat(path, &st) != 0)
            continue;
        any = true;
        snprintf(todo, sizeof(todo), "chmod 600 '%s'", path);
        if (st.st_mode & 077) {
            say(d, VERDICT_WARN, todo, "%s is open to others (mode %03o)", path, (unsigned)st.st_mode & 0777u);
            fine = false;
        }
    }
    if (d->is_default && any && stat(d->dir, &st) == 0 && (st.st_mode & 077)) {
        snprintf(todo, sizeof(todo), "chmod 700 '%s'", d->dir);
        say(d, VERDICT_WARN, todo, "%s is open to others (mode %03o)", d->dir, (unsigned)st.st_mode & 0777u);
        fine = false;
    }
    if (any && fine)
        say(d, VERDICT_OK, NULL, "only you can read the store");
}

static void check_key(struct doctor *d)
{
    unsigned char key[STORE_KEY_MAX];
    const char *file = args_text(&d->cli->args, "key-file"), *env_file = getenv("TIDEMARK_KEY_FILE");
    size_t len = 0;
    struct stat st;

    if (args_on(&d->cli->args, "key-fd"))
        return; /* can be read only once, and opening needs it */
    if (store_key(&d->cli->args, key, &len, &d->err)) {
        say(d, VERDICT_FAIL, NULL, "%s", d->err.msg);
        return;
    }
    explicit_bzero(key, sizeof(key));
    file = file ? file : env_file;
    if (len && file && *file && stat(file, &st) == 0 && (st.st_mode & 077))
        say(d, VERDICT_WARN, "chmod 600 it", "the key file %s is open to others (mode %03o)", file,
            (unsigned)st.st_mode & 0777u);
    else if (len)
        say(d, VERDICT_OK, NULL, "digests are keyed");
}

static void check_open(struct doctor *d)
{
    struct stat st;

    if (!d->path[0] || lstat(d->path, &st) != 0)
        return;
    if (cli_store_open(d->cli, NEED_READ, 0, &d->err))
        say(d, VERDICT_FAIL, NULL, "%s", d->err.msg);
    else
        say(d, VERDICT_OK, NULL, "the store opens");
}

static void check_figures(struct doctor *d)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *info = NULL;
    char file[32], wal[32];

    if (!d->cli->store)
        return;
    if (tide_store_info(d->cli->store, &text, &d->err) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &info, NULL, &d->err)) {
        say_damage(d);
        return;
    }
    say(d, VERDICT_OK, NULL,
        "version %" PRId64 ", %" PRId64 " sessions, %" PRId64 " events, %s and %s of write-ahead log, SQLite %.*s",
        json_get_int(info, STR("schema_version"), 0), json_get_int(info, STR("sessions"), 0),
        json_get_int(info, STR("events"), 0), bytes_text(file, json_get_int(info, STR("file_bytes"), 0)),
        bytes_text(wal, json_get_int(info, STR("wal_bytes"), 0)), STR_ARG(json_get_text(&a, info, STR("sqlite"))));
    if (json_get_int(info, STR("live_sessions"), 0) > 0)
        say(d, VERDICT_OK, NULL, "%" PRId64 " live: held by a process, or waiting",
            json_get_int(info, STR("live_sessions"), 0));
    if (json_get_int(info, STR("reserve_bytes"), 0) > 0)
        say(d, VERDICT_OK, NULL, "a reserve is kept for a full disk");
    else
        say(d, VERDICT_WARN, "free some space: the next append makes it again", "the reserve for a full disk is gone");
}

static int on_running(void *arg, const struct tide_session_info *info)
{
    struct doctor *d = arg;

    say(d, VERDICT_OK, NULL, "%s is running: %s", info->id, info->why ? info->why : "");
    return 0;
}

static int on_needs_resume(void *arg, const struct tide_session_info *info)
{
    struct doctor *d = arg;

    if (info->needs_resume)
        say(d, VERDICT_WARN, info->next, "%s: %s", info->id, info->why ? info->why : info->status);
    return 0;
}

static void check_running(struct doctor *d)
{
    const struct tide_list_filter running = {.status = "running", .limit = LOOK_SESSIONS};
    const struct tide_list_filter newest = {.limit = 10 * LOOK_SESSIONS};

    if (!d->cli->store)
        return;
    if (tide_session_list(d->cli->store, &running, on_running, d, &d->err) ||
        tide_session_list(d->cli->store, &newest, on_needs_resume, d, &d->err))
        say_damage(d);
}

struct sample {
    char ids[LOOK_SESSIONS][TIDE_ID_SIZE];
    size_t n;
    int64_t events;
};

static int take_id(void *arg, const struct tide_session_info *info)
{
    struct sample *s = arg;

    snprintf(s->ids[s->n++], TIDE_ID_SIZE, "%s", info->id);
    return s->n == LOOK_SESSIONS;
}

static int count_event(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ((struct sample *)arg)->events++;
    return 0;
}

static enum tide_code read_tail(struct doctor *d, struct sample *s, const char *id)
{
    AUTO(session_closep) tide_session *session = NULL;
    int64_t from;

    if (tide_session_open(d->cli->store, id, TIDE_SESSION_READ, &session, &d->err))
        return d->err.code;
    from = tide_session_last_seq(session) - LOOK_EVENTS + 1;
    return tide_read(session, 0, from > 1 ? from : 1, 0, count_event, s, &d->err);
}

static void check_events(struct doctor *d)
{
    const struct tide_list_filter newest = {.limit = LOOK_SESSIONS};
    struct sample s = {.n = 0};
    bool fine = true;
    char few[8];

    if (!d->cli->store || tide_session_list(d->cli->store, &newest, take_id, &s, &d->err))
        return;
    for (size_t i = 0; i < s.n; i++) {
        if (read_tail(d, &s, s.ids[i])) {
            say(d, VERDICT_FAIL, "`tidemark sessions verify` reads all of it", "%s: %s", s.ids[i], d->err.msg);
            fine = false;
        }
    }
    snprintf(few, sizeof(few), "%zu ", s.n);
    if (fine && s.n > 0)
        say(d, VERDICT_OK, NULL, "the last %" PRId64 " event%s of the newest %ssession%s: whole", s.events,
            s.events == 1 ? "" : "s", s.n == 1 ? "" : few, s.n == 1 ? "" : "s");
}

static const struct check {
    const char *name;
    void (*run)(struct doctor *d);
} checks[] = {
    {"program", check_version},  {"store", check_path},    {"space", check_space}, {"access", check_access},
    {"modes", check_modes},      {"key", check_key},       {"open", check_open},   {"figures", check_figures},
    {"sessions", check_running}, {"events", check_events},
};

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct doctor d = {.cli = cli, .json = out_json(&cli->out), .url = BUF_INIT(4096), .path = ""};

    (void)err;
    if (cli->out.json) {
        json_out_begin(&d.json, '{');
        json_out_key(&d.json, STR("checks"));
        json_out_begin(&d.json, '[');
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        d.name = checks[i].name;
        checks[i].run(&d);
    }
    if (cli->out.json) {
        json_out_end(&d.json, ']');
        json_out_kbool(&d.json, STR("ok"), d.worst != VERDICT_FAIL);
        json_out_end(&d.json, '}');
        out_json_end(&cli->out);
    }
    cli->exit_status = d.worst == VERDICT_FAIL ? 1 : 0;
    buf_done(&d.url);
    return TIDE_OK;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .run = run,
    .help = "look whether everything is in order, and say what to do where it is not",
    .more = "Exit status 1 when a check fails; warnings alone give 0.",
};
