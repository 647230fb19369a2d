/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark doctor: is everything in order, and if not, what is to be done? Each check is one row and answers by itself; the
 * first ones need no store, so that it has something to say on a full disk and before a store that cannot be opened.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/commands/doctor.h"
#include "cli/next_command.h"
#include "engine/forgotten.h"
#include "engine/settings.h"
#include "engine/shapes.h"
#include "engine/store_url.h"

#define SPACE_FAIL ((uint64_t)1 << 20)

static const char *const verdicts[] = {"ok", "warn", "fail"};

static void __attribute__((format(printf, 5, 0)))
add_finding(struct doctor *d, struct doctor_subject of, enum verdict verdict, const char *todo, const char *fmt,
            va_list args)
{
    char detail[1024];
    struct finding *f;

    vsnprintf(detail, sizeof(detail), fmt, args);
    assert(todo || verdict != VERDICT_FAIL);
    d->report.ok = d->report.ok && verdict != VERDICT_FAIL;
    f = findings_add(&d->report.found, d->name, verdicts[verdict], detail, todo);
    f->kind = of.kind;
    f->about = findings_keep(&d->report.found, of.about);
    f->state = findings_keep(&d->report.found, of.state);
}

void doctor_say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_finding(d, (struct doctor_subject){0}, verdict, todo, fmt, args);
    va_end(args);
}

void doctor_say_of(struct doctor *d, struct doctor_subject of, enum verdict verdict, const char *todo, const char *fmt,
                   ...)
{
    va_list args;

    va_start(args, fmt);
    add_finding(d, of, verdict, todo, fmt, args);
    va_end(args);
}

void doctor_say_error(struct doctor *d)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *todo = err_advice(&a, &d->err, true);

    doctor_say(d, VERDICT_FAIL, todo ? todo : "name another store with --store", "%s", d->err.msg);
}

static void check_version(struct doctor *d)
{
    doctor_say(d, VERDICT_OK, NULL, "tidemark %s", tide_version());
}

/* Nobody has named it: its directory is Tidemark's own. */
static bool is_default(const struct cli *cli)
{
    AUTO(mem_freep) char *set = NULL;
    struct tide_err ignored;

    return !args_on(&cli->args, "store") && !getenv("TIDEMARK_STORE") &&
           !settings_one(args_text(&cli->args, "config"), "store", &set, &ignored) && !set;
}

/* The nearest directory above that exists: where the store would be made. */
static bool existing_dir(struct doctor *d)
{
    struct stat st;

    while (d->dir[0] && stat(d->dir, &st) != 0) {
        char *slash = strrchr(d->dir, '/');

        if (!slash) {
            snprintf(d->dir, sizeof(d->dir), ".");
            return stat(d->dir, &st) == 0;
        }
        slash[slash == d->dir] = '\0';
        if (slash == d->dir && stat(d->dir, &st) != 0)
            return false;
    }
    return d->dir[0] != '\0';
}

static void check_path(struct doctor *d)
{
    struct stat st;

    if (cli_store_url(d->cli, &d->url, &d->err)) {
        doctor_say_error(d);
        return;
    }
    d->path = store_url_path(buf_cstr(&d->url));
    d->is_default = is_default(d->cli);
    d->is_files = store_url_is_files(buf_cstr(&d->url));
    snprintf(d->dir, sizeof(d->dir), "%s", d->path);
    if (d->is_files)
        existing_dir(d); /* the store is a directory: that one, or where it would be made */
    else if (strrchr(d->dir, '/'))
        strrchr(d->dir, '/')[strrchr(d->dir, '/') == d->dir] = '\0';
    else
        snprintf(d->dir, sizeof(d->dir), ".");
    if (lstat(d->path, &st) == 0)
        doctor_say(d, VERDICT_OK, NULL, "%s", d->path);
    else if (errno == ENOENT || errno == ENOTDIR)
        doctor_say(d, VERDICT_WARN, arena_printf(&d->arena, "`%s store init` makes one", own_command(&d->arena)),
                   "no store at %s", d->path);
    else
        doctor_say(d, VERDICT_FAIL, "give yourself permission to read it, or name another store with --store", "%s: %s",
                   d->path, strerrordesc_np(errno));
}

static void check_space(struct doctor *d)
{
    struct statvfs fs;
    uint64_t bytes;
    char text[32];

    if (!d->path[0] || !existing_dir(d) || statvfs(d->dir, &fs) != 0)
        return;
    bytes = (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
    d->free_bytes = bytes;
    bytes_text(text, (int64_t)bytes);
    if (bytes < SPACE_FAIL)
        doctor_say(d, VERDICT_FAIL, "free some space: reading works, appending is refused until there is space",
                   "%s free in %s", text, d->dir);
    else if (bytes < DOCTOR_SPACE_WARN)
        doctor_say_of(d, (struct doctor_subject){.state = "low"}, VERDICT_WARN, "free some space soon", "%s free in %s",
                      text, d->dir);
    else
        doctor_say(d, VERDICT_OK, NULL, "%s free in %s", text, d->dir);
}

static void check_inodes(struct doctor *d)
{
    struct statvfs fs;

    if (d->path[0] && statvfs(d->dir, &fs) == 0 && fs.f_files > 0 && fs.f_ffree == 0)
        doctor_say(d, VERDICT_FAIL, "remove files: none can be created", "no free inodes in %s", d->dir);
}

static void check_access(struct doctor *d)
{
    if (!d->path[0])
        return;
    if (access(d->dir, W_OK) == 0)
        doctor_say(d, VERDICT_OK, NULL, "%s can be written", d->dir);
    else
        doctor_say(d, VERDICT_FAIL, "give yourself permission to write there", "%s cannot be written: %s", d->dir,
                   strerrordesc_np(errno));
}

/* True when others may look into it, which is then said. */
static bool is_open(struct doctor *d, const char *path)
{
    static const struct finding_kind open_to_others = {"open", "files that others can read", NULL, NULL};
    struct stat st;
    char todo[1200];

    if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode) || !(st.st_mode & 077))
        return false;
    snprintf(todo, sizeof(todo), "chmod %d '%s'", S_ISDIR(st.st_mode) ? 700 : 600, path);
    doctor_say_of(d, (struct doctor_subject){.kind = &open_to_others, .about = path}, VERDICT_WARN, todo,
                  "%s is open to others (mode %03o)", path, (unsigned)st.st_mode & 0777u);
    return true;
}

/* Nobody else should read or write a store. A directory that is not ours alone is a matter of where the person put it. */
static void check_modes(struct doctor *d)
{
    static const char *const beside[] = {"", "-wal", "-shm", "-mark", "-reserve", "-queue"};
    static const char *const below[] = {"/sessions", "/live", "/boots", "/cache", "/store.json", "/changes"};
    const char *const *names = d->is_files ? below : beside;
    struct stat st;
    bool fine = true, any = false;
    char path[1100];

    for (size_t i = 0; d->path[0] && i < sizeof(beside) / sizeof(beside[0]); i++) {
        snprintf(path, sizeof(path), "%.1000s%s", d->path, names[i]);
        any |= lstat(path, &st) == 0;
        fine &= !is_open(d, path);
    }
    if (d->is_default && any)
        fine &= !is_open(d, d->dir);
    if (any && fine)
        doctor_say(d, VERDICT_OK, NULL, "only you can read the store");
}

static void check_key(struct doctor *d)
{
    unsigned char key[STORE_KEY_MAX];
    const char *file = args_text(&d->cli->args, "key-file"), *env_file = getenv("TIDEMARK_KEY_FILE");
    size_t len = 0;
    struct stat st;

    if (args_on(&d->cli->args, "key-fd"))
        return; /* can be read only once, and opening needs it */
    if (cli_store_key(d->cli, key, &len, &d->err)) {
        doctor_say_error(d);
        return;
    }
    explicit_bzero(key, sizeof(key));
    file = file ? file : env_file;
    if (len && file && *file && stat(file, &st) == 0 && (st.st_mode & 077))
        doctor_say(d, VERDICT_WARN, "chmod 600 it", "the key file %s is open to others (mode %03o)", file,
                   (unsigned)st.st_mode & 0777u);
    else if (len)
        doctor_say(d, VERDICT_OK, NULL, "digests are keyed");
}

static bool has_mark(const struct doctor *d)
{
    char path[1100];
    struct stat st;

    snprintf(path, sizeof(path), "%.1000s-mark", d->path);
    return lstat(path, &st) == 0 && st.st_size > 0;
}

static void check_open(struct doctor *d)
{
    struct stat st;

    if (!d->path[0] || lstat(d->path, &st) != 0)
        return;
    d->has_mark = has_mark(d);
    if (cli_store_open(d->cli, NEED_READ, 0, &d->err))
        doctor_say_error(d);
    else
        doctor_say(d, VERDICT_OK, NULL, "the store opens");
}

/* Without the mark a log that is lost looks like one that was never written; a store that opens without one says that it was
 * closed. */
static void check_mark(struct doctor *d)
{
    if (!d->cli->store || d->is_files)
        return;
    if (d->has_mark)
        doctor_say(d, VERDICT_OK, NULL, "a lost write-ahead log would be detected");
    else
        doctor_say(d, VERDICT_OK, NULL, "the store was closed, and is one file; the next append creates %s-mark again",
                   d->path);
}

/* Who follows a store is told of changes by the kernel, or it is looked at again and again. */
static void check_watch(struct doctor *d)
{
    AUTO(watch_closep) tide_watch *watch = NULL;
    const char *why;

    if (!d->cli->store)
        return;
    if (tide_watch_open(d->cli->store, &watch, &d->err)) {
        doctor_say_error(d);
        return;
    }
    why = tide_watch_polls(watch);
    if (why)
        doctor_say(d, VERDICT_WARN,
                   "`log show --follow` and `recover --watch` work, and cost a little; if a limit is named, raise it",
                   "the store is polled: %s", why);
    else
        doctor_say(d, VERDICT_OK, NULL, "the kernel reports changes");
}

static void check_settings(struct doctor *d)
{
    static const struct finding_kind problem = {"problem", "problems in the settings", "config check",
                                                "checks again when they are corrected"};
    const struct args *a = &d->cli->args;
    AUTO(check_report_done) struct check_report r = {.ok = false};
    AUTO(settings_done) struct settings s = {0};

    if (settings_check(args_text(a, "config"), args_on(a, "verbose"), args_text(a, "log-format"), &s, &r, &d->err)) {
        doctor_say_error(d);
        return;
    }
    for (size_t i = 0; i < r.found.n; i++)
        doctor_say_of(d, (struct doctor_subject){.kind = &problem}, VERDICT_WARN,
                      arena_printf(&d->arena, "correct it in the settings; `%s config check` checks again",
                                   own_command(&d->arena)),
                      "%s", r.found.at[i].what);
    if (r.ok)
        doctor_say(d, VERDICT_OK, NULL, "the settings are valid");
}

static const struct check {
    const char *name;
    void (*run)(struct doctor *d);
} checks[] = {
    {"program", check_version},  {"settings", check_settings},  {"provider", doctor_provider},
    {"store", check_path},       {"space", check_space},        {"inodes", check_inodes},
    {"access", check_access},    {"modes", check_modes},        {"key", check_key},
    {"open", check_open},        {"mark", check_mark},          {"watch", check_watch},
    {"figures", doctor_figures}, {"torn", doctor_torn},         {"live", doctor_live},
    {"reserve", doctor_reserve}, {"sessions", doctor_sessions}, {"recovery", doctor_recovery},
    {"events", doctor_events},
};

/* ---- what a person accepts ---- */

/* The store as the list of what is forgotten names it: the same by whatever path. */
static char *name_store(const struct doctor *d)
{
    char *real = d->path[0] ? realpath(d->path, NULL) : NULL;

    return real ? real : mem_dup(str_from(d->path));
}

static void list_report(struct cli *cli, struct doctor *d)
{
    bool all = args_on(&cli->args, "all");

    if (!all)
        forgotten_hide(&d->report);
    if (cli->out.json)
        out_shape(&cli->out, &shape_doctor, &d->report);
    else
        doctor_print(&cli->out, &d->report, all);
    cli->exit_status = d->report.ok ? 0 : 1;
}

static enum tide_code change_report(struct cli *cli, struct doctor *d, const char *store, bool forget,
                                    struct tide_err *err)
{
    AUTO(mem_freep) const char **names = args_all(&cli->args, forget ? "forget" : "remember");
    const struct forgotten_change change = {.names = names, .forget = forget, .whole = cli->store};

    if (forgotten_change(store, &change, &d->report, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_doctor, &d->report);
    for (size_t i = 0; names[i] && !cli->out.json; i++) {
        size_t n = forgotten_count(&d->report.found, names[i]);

        outf(&cli->out, forget ? "forgot " : "");
        if (n > 1)
            outf(&cli->out, "%zu findings of ", n);
        out_value(&cli->out, names[i]);
        outf(&cli->out, forget && n > 1 ? ", until they change\n"
                        : forget        ? ", until it changes\n"
                        : n == 1        ? " is shown again\n"
                                        : " are shown again\n");
    }
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct doctor d = {.cli = cli, .report = {.ok = true}, .url = BUF_INIT(4096), .path = "", .arena = ARENA_INIT};
    bool forget = args_on(&cli->args, "forget"), remember = args_on(&cli->args, "remember");
    AUTO(mem_freep) char *store = NULL;
    enum tide_code code = TIDE_OK;

    if (forget && remember)
        return args_refuse(err, "forget", "--forget and --remember exclude each other: give one of them");
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        d.name = checks[i].name;
        checks[i].run(&d);
    }
    store = name_store(&d);
    if (forget || remember) {
        code = change_report(cli, &d, store, forget, err);
    } else {
        d.name = "forgotten";
        if (forgotten_mark(store, &d.report, &d.err))
            doctor_say(&d, VERDICT_WARN, "remove it: what is forgotten is forgotten again with --forget", "%s",
                       d.err.msg);
        list_report(cli, &d);
    }
    check_report_done(&d.report);
    arena_done(&d.arena);
    buf_done(&d.url);
    return code;
}

/* Checks that warn, or fail about one session. */
#define CAN_FORGET "settings provider store space modes key watch torn reserve sessions recovery events"

const struct command cmd_doctor = {
    .name = "doctor",
    .run = run,
    .options = (const struct opt[]){{.name = "online", .help = "also send the provider one short request"},
                                    {.name = "all", .help = "list every finding, also those that are forgotten"},
                                    {.name = "forget",
                                     .type = VALUE_TEXT,
                                     .value = "WHAT",
                                     .words = CAN_FORGET,
                                     .many = true,
                                     .help = "accept what a check finds now, or of one session: sessions, sessions:ID"},
                                    {.name = "remember",
                                     .type = VALUE_TEXT,
                                     .value = "WHAT",
                                     .words = CAN_FORGET,
                                     .many = true,
                                     .help = "show again what is forgotten"},
                                    {.name = NULL}},
    .help = "check that everything works, and report how to fix what does not",
    .more =
        "What is forgotten comes back when it changes. Exit status: 1 if a check fails; 0 if there are only warnings.",
};
