/* SPDX-License-Identifier: Apache-2.0 */
/* Each check is one row. */
#include "engine/doctor_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/number.h"
#include "engine/forgotten.h"
#include "engine/settings.h"
#include "engine/store_url.h"

#define SPACE_FAIL ((uint64_t)1 << 20)

static const char *const verdicts[] = {"ok", "warn", "fail"};

/* What it points to is kept as long as the findings are. */
static const struct tide_next *keep_next(struct arena *a, const struct tide_next *next)
{
    struct tide_next *copy;
    size_t n = 0;

    while (next && next[n].action)
        n++;
    copy = arena_zero(a, (n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = (struct tide_next){next[i].action, next[i].kind, arena_text(a, next[i].session_id),
                                     arena_text(a, next[i].arguments)};
    return copy;
}

static const struct tide_err *keep_error(struct arena *a, const struct tide_err *err)
{
    struct tide_err *copy = err ? arena_alloc(a, sizeof *copy) : NULL;

    if (copy)
        *copy = *err;
    return copy;
}

static void __attribute__((format(printf, 5, 0)))
add_finding(struct doctor *d, struct doctor_about of, enum verdict verdict, const char *todo, const char *fmt,
            va_list args)
{
    struct arena *a = &d->report->found.arena;
    char detail[1024];
    struct finding *f;

    vsnprintf(detail, sizeof(detail), fmt, args);
    INVARIANT(todo || of.next || verdict != VERDICT_FAIL);
    d->report->ok = d->report->ok && verdict != VERDICT_FAIL;
    f = findings_add(&d->report->found, d->name, verdicts[verdict], detail, todo);
    f->kind = of.kind;
    f->about = arena_text(a, of.about);
    f->state = arena_text(a, of.state);
    f->next = keep_next(a, of.next);
    f->error = keep_error(a, of.error);
    f->of_store = of.of_store;
    f->command = d->opt ? d->opt->command : NULL;
}

void doctor_say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_finding(d, (struct doctor_about){0}, verdict, todo, fmt, args);
    va_end(args);
}

void doctor_say_of(struct doctor *d, struct doctor_about of, enum verdict verdict, const char *todo, const char *fmt,
                   ...)
{
    va_list args;

    va_start(args, fmt);
    add_finding(d, of, verdict, todo, fmt, args);
    va_end(args);
}

void doctor_say_error(struct doctor *d)
{
    doctor_say_of(d, (struct doctor_about){.error = &d->err, .of_store = true}, VERDICT_FAIL, "name another store",
                  "%s", d->err.msg);
}

static void check_version(struct doctor *d)
{
    doctor_say(d, VERDICT_OK, NULL, "tidemark %s", tide_version());
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

    if (store_url(d->opt->store, d->opt->config, &d->url, &d->err)) {
        doctor_say_error(d);
        return;
    }
    d->path = store_url_path(buf_cstr(&d->url));
    d->is_default = store_url_is_default(buf_cstr(&d->url));
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
        doctor_say_of(d, (struct doctor_about){.next = DOCTOR_NEXT(TIDE_ACTION_INIT_STORE, "", "{}")}, VERDICT_WARN,
                      "makes one", "no store at %s", d->path);
    else
        doctor_say(d, VERDICT_FAIL, "give yourself permission to read it, or name another store", "%s: %s", d->path,
                   strerrordesc_np(errno));
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
        doctor_say_of(d, (struct doctor_about){.state = "low"}, VERDICT_WARN, "free some space soon", "%s free in %s",
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
    static const struct finding_kind open_to_others = {"open", "files that others can read", 0, NULL, NULL};
    struct stat st;
    char todo[1200];

    if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode) || !(st.st_mode & 077))
        return false;
    snprintf(todo, sizeof(todo), "chmod %d '%s'", S_ISDIR(st.st_mode) ? 700 : 600, path);
    doctor_say_of(d, (struct doctor_about){.kind = &open_to_others, .about = path}, VERDICT_WARN, todo,
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
    const char *file = d->opt->key_file, *env_file = getenv("TIDEMARK_KEY_FILE");
    unsigned char key[STORE_KEY_MAX];
    size_t len = 0;
    struct stat st;

    if (d->opt->key_fd >= 0)
        return; /* can be read only once, and opening needs it */
    if (store_key(file, -1, key, &len, &d->err)) {
        doctor_say_of(d, (struct doctor_about){.error = &d->err}, VERDICT_FAIL, "give a file that holds the key", "%s",
                      d->err.msg);
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
    if (d->opt->open(d->opt->arg, &d->store, &d->err))
        doctor_say_error(d);
    else
        doctor_say(d, VERDICT_OK, NULL, "the store opens");
}

/* Without the mark a log that is lost looks like one that was never written; a store that opens without one says that it was
 * closed. */
static void check_mark(struct doctor *d)
{
    if (!d->store || d->is_files)
        return;
    if (d->has_mark)
        doctor_say(d, VERDICT_OK, NULL, "a lost write-ahead log would be detected");
    else
        doctor_say(d, VERDICT_OK, NULL, "the store was closed, and is one file; the next append creates %s-mark again",
                   d->path);
}

/* A follower of a store gets changes from the kernel, or polls. */
static void check_watch(struct doctor *d)
{
    tide_watch *watch = NULL;
    const char *why;

    if (!d->store)
        return;
    if (tide_watch_open(d->store, &watch, &d->err)) {
        doctor_say_error(d);
        return;
    }
    why = tide_watch_polls(watch);
    if (why)
        doctor_say(d, VERDICT_WARN,
                   "following a log and watching recovery work, and cost a little; if a limit is named, raise it",
                   "the store is polled: %s", why);
    else
        doctor_say(d, VERDICT_OK, NULL, "the kernel reports changes");
    tide_watch_close(watch);
}

static void check_settings(struct doctor *d)
{
    static const struct finding_kind problem = {"problem", "problems in the settings", TIDE_ACTION_CHECK_SETTINGS, "{}",
                                                "checks again when they are corrected"};
    const struct doctor_about of = {.kind = &problem, .next = DOCTOR_NEXT(TIDE_ACTION_CHECK_SETTINGS, "", "{}")};
    AUTO(check_report_done) struct check_report r = {.ok = false};
    AUTO(settings_done) struct settings s = {0};

    if (settings_check(d->opt->config, d->opt->verbose, d->opt->log_format, &s, &r, &d->err)) {
        doctor_say_error(d);
        return;
    }
    for (size_t i = 0; i < r.found.n; i++)
        doctor_say_of(d, of, VERDICT_WARN, "checks again when it is corrected", "%s", r.found.at[i].what);
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

/* The store as the list of what is forgotten names it: the same by whatever path. */
static const char *name_store(struct doctor *d)
{
    AUTO(mem_freep) char *real = d->path[0] ? realpath(d->path, NULL) : NULL;

    return arena_text(&d->report->found.arena, real ? real : d->path);
}

void doctor_examine(const struct doctor_options *opt, struct check_report *ret)
{
    struct doctor d = {.opt = opt, .report = ret, .url = BUF_INIT(4096), .path = "", .arena = ARENA_INIT};

    ret->ok = true;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        d.name = checks[i].name;
        checks[i].run(&d);
    }
    ret->store = name_store(&d);
    ret->whole = d.store != NULL;
    arena_done(&d.arena);
    buf_done(&d.url);
}

void doctor_mark_forgotten(struct check_report *r)
{
    struct doctor d = {.report = r, .name = "forgotten"};

    if (forgotten_mark(r->store, r, &d.err))
        doctor_say(&d, VERDICT_WARN, "remove it: what was forgotten can be forgotten again", "%s", d.err.msg);
}
