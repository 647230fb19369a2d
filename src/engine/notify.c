/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending goes by the log alone: what is to be sent, and what became of it. A process that is killed before it has recorded that
 * is followed by another that sends it again, under the same id.
 *
 * Two bytes of one file in the state directory are locked: the first by the process that sends, the second by one that waits for
 * it. Who finds both taken leaves: the one that waits has not looked at the store yet, and will find what there is. So there are
 * two of them at most for a store, however many runs end at once.
 */
#include "engine/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/hook_program.h"
#include "base/timefmt.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/config_value.h"
#include "engine/session_next.h"
#include "engine/settings.h"
#include "engine/store_url.h"
#include "env/user_key.h"
#include "session/notify.h"

#define ENDING_MS 2000
#define LOOK_MS 20
#define ATTEMPTS 8       /* of one; then it is given up */
#define MAX_AT_ONCE 1000 /* that one process sends; recovery starts the next one */
#define OUTPUT_MAX 65536 /* of the program, which nobody reads */

/* ---- settings ---- */

static enum tide_code read_setting(const char *config, const char *name, struct arena *a, struct json **ret,
                                   struct tide_err *err)
{
    const struct config_key *key = config_key_find(name);
    AUTO(mem_freep) char *text = NULL;
    char from[SETTINGS_FROM_SIZE];

    if (settings_word(config, name, &text, from, err))
        return err->code;
    if (config_value_parse(a, key, text ? text : key->fallback, ret, err))
        return tide_wrap(err, "%s", from);
    return TIDE_OK;
}

/* A path is beside the settings, or below the home: where a command happens to be started decides nothing. */
static char *program_path(const char *config, struct str name)
{
    AUTO(settings_done) struct settings s = {0};
    AUTO(mem_freep) char *text = mem_dup(name);
    struct tide_err ignored;

    if (!strchr(text, '/') || settings_find(config, &s, &ignored))
        return TAKE(text);
    return settings_path(&s, text);
}

static void take_argv(struct notify_settings *s, const char *config, const struct json *list)
{
    size_t n = 0;

    if (!list->count)
        return;
    s->argv = mem_array(list->count + 1, sizeof *s->argv);
    for (const struct json *m = list->first; m; m = m->next, n++)
        s->argv[n] = n ? mem_dup(json_text(&s->arena, m)) : program_path(config, json_text(&s->arena, m));
    s->argv[n] = NULL;
}

enum tide_code notify_settings_read(const char *config, struct notify_settings *ret, struct tide_err *err)
{
    struct notify_settings s = {.arena = ARENA_INIT};
    struct json *program, *on, *timeout, *retry;

    if (read_setting(config, "notify", &s.arena, &program, err) ||
        read_setting(config, "notify_on", &s.arena, &on, err) ||
        read_setting(config, "notify_timeout_ms", &s.arena, &timeout, err) ||
        read_setting(config, "notify_retry_ms", &s.arena, &retry, err)) {
        notify_settings_done(&s);
        return err->code;
    }
    take_argv(&s, config, program);
    for (const struct json *m = on->first; m && s.argv; m = m->next)
        s.on |= notify_transition_of(json_text(&s.arena, m));
    (void)!json_int(timeout, &s.timeout_ms);
    (void)!json_int(retry, &s.retry_ms);
    *ret = s;
    return TIDE_OK;
}

void notify_settings_done(struct notify_settings *s)
{
    for (char **p = s->argv; p && *p; p++)
        free(*p);
    free(TAKE(s->argv));
    arena_done(&s->arena);
}

/* ---- the process that writes a transition ---- */

#define ARGUMENTS 8

struct notifier {
    char *argv[ARGUMENTS + 1]; /* malloc */
    bool held;
};

/* Only async-signal-safe calls: other threads continue. Its parent ends at once, so that nobody has to wait for it. */
static void become_sender(struct notifier *n)
{
    int null;
    pid_t pid;

    setsid();
    pid = fork();
    if (pid != 0)
        _exit(0);
    null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
        dup2(null, fd); /* the process that reads what the run prints must not wait for this one */
    execv("/proc/self/exe", n->argv);
    _exit(127);
}

static void start_sender(void *arg)
{
    struct notifier *n = arg;
    sigset_t all, none, before;
    pid_t pid;
    int status;

    if (n->held)
        return;
    sigfillset(&all);
    sigemptyset(&none);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* one that comes between fork and exec is not for our handlers */
    pid = fork();
    if (pid == 0) {
        struct sigaction usual = {.sa_handler = SIG_DFL};

        for (int number = 1; number < NSIG; number++)
            sigaction(number, &usual, NULL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        become_sender(n);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        log_write(TIDE_LOG_WARN, "notifications are left to recovery: no process could be started",
                  log_text("why", strerror(errno)));
        return;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
}

enum tide_code notifier_new(tide_store *store, const struct notify_start *start, struct notifier **ret,
                            struct tide_err *err)
{
    struct notify_settings s;
    struct notifier *n;
    size_t at = 0;

    *ret = NULL;
    if (notify_settings_read(start->config, &s, err))
        return err->code;
    if (s.on) {
        const char *const words[] = {"tidemark",      "--store",
                                     start->url,      start->config ? "--config" : NULL,
                                     start->config,   start->key_file ? "--key-file" : NULL,
                                     start->key_file, "notify"};

        n = mem_zero(sizeof *n);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (words[i])
                n->argv[at++] = mem_dup(str_from(words[i]));
        store_of(store)->notify = (struct store_notify){.on = s.on, .due = start_sender, .arg = n};
        *ret = n;
    }
    notify_settings_done(&s);
    return TIDE_OK;
}

void notifier_free(struct notifier *n)
{
    if (!n)
        return;
    for (char **p = n->argv; *p; p++)
        free(*p);
    free(n);
}

void notifier_hold(struct notifier *n)
{
    if (n)
        n->held = true;
}

/* ---- one sends at a time ---- */

enum { LOCK_SENDS, LOCK_WAITS };

static bool lock_byte(int fd, int byte, short type, bool wait)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    while (fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l) != 0)
        if (errno != EINTR || !wait)
            return false;
    return true;
}

static int open_lock(const char *url)
{
    char name[64], path[PATH_MAX];
    struct stat st;

    if (stat(store_url_path(url), &st) != 0)
        return -1;
    snprintf(name, sizeof name, "notify-%jx-%jx.lock", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return user_state_path(name, true, path, sizeof path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
                                                          : -1;
}

/* False: another process will send what there is. Without a file to lock, as well: repeats are better than silence. */
static bool take_turn(int fd)
{
    if (fd < 0 || lock_byte(fd, LOCK_SENDS, F_WRLCK, false))
        return true;
    if (!lock_byte(fd, LOCK_WAITS, F_WRLCK, false))
        return false;
    if (!lock_byte(fd, LOCK_SENDS, F_WRLCK, true))
        return true;
    return lock_byte(fd, LOCK_WAITS, F_UNLCK, false); /* before the store is looked at: the next may wait now */
}

/* ---- sending ---- */

struct sending {
    tide_store *store;
    const struct notify_settings *settings;
    const struct notify_faces *faces;
    int64_t sent; /* and failed */
};

struct drawn {
    const struct notification *n;
    const struct notify_faces *faces;
    struct buf text;
    bool ending; /* processes of the run still end */
};

static int render_notification(void *arg, const struct tide_session_info *info)
{
    struct drawn *d = arg;
    const struct notification *n = d->n;
    struct json_out o = json_out_to(&d->text);

    d->ending = info->next && info->next->action == TIDE_ACTION_END_PROCESS;
    shape_put(&o, &shape_notification,
              &(struct notification_shown){.id = n->id,
                                           .transition = n->transition,
                                           .session_id = n->session,
                                           .run_id = n->run_id,
                                           .reason = n->reason,
                                           .error = n->error,
                                           .wait_kind = n->wait_kind,
                                           .question = n->question,
                                           .seq = n->seq,
                                           .at_ms = n->at_ms,
                                           .attempt = n->attempt,
                                           .session = {*info, d->faces->command}});
    buf_add_char(&d->text, '\n');
    return 0;
}

/* A run that parks ends its processes once the wait is on disk: the notification is sent when they are gone. */
static enum tide_code draw_session(struct sending *s, struct drawn *d, struct tide_err *err)
{
    int64_t until_ms = monotonic_ms() + ENDING_MS;
    bool local = time_people_local(false); /* in JSON times are UTC, in sentences too */
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(s->store, d->n->session, TIDE_SESSION_READ, &session, err);

    code = code ? code : session_show_next(session, render_notification, d, err);
    while (!code && d->ending && monotonic_ms() < until_ms) {
        poll(NULL, 0, LOOK_MS);
        buf_clear(&d->text);
        code = tide_session_refresh(session, err);
        code = code ? code : session_show_next(session, render_notification, d, err);
    }
    tide_session_close(session);
    time_people_local(local);
    return code;
}

static enum tide_code call_program(struct sending *s, const struct notification *n, struct tide_err *err)
{
    struct drawn d = {.n = n, .faces = s->faces, .text = BUF_INIT((size_t)64 << 20)};
    AUTO(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    enum tide_code code = draw_session(s, &d, err);

    if (!code) {
        struct hook_program p = {.argv = s->settings->argv,
                                 .input = buf_view(&d.text),
                                 .timeout_ms = s->settings->timeout_ms,
                                 .stop = s->faces->stopped,
                                 .arg = s->faces->arg};

        code = hook_program_run(&p, &output, err);
    }
    buf_done(&d.text);
    return code;
}

static int64_t pause_ms(const struct sending *s, int64_t attempt)
{
    return s->settings->retry_ms << (attempt < ATTEMPTS ? attempt - 1 : ATTEMPTS - 1);
}

/* TIDE_CANCELLED: it was asked to stop, and nothing is recorded. */
static enum tide_code send_one(struct sending *s, const struct notification *n, struct tide_err *err)
{
    struct notify_outcome out = {
        .id = n->id, .session_id = n->session, .transition = n->transition, .seq = n->seq, .attempt = n->attempt};
    int64_t began_ms = monotonic_ms();
    struct tide_err why;
    enum tide_code code = call_program(s, n, &why);

    if (code == TIDE_CANCELLED)
        return tide_err_copy(err, &why);
    if (code) {
        out.why = why.msg;
        out.retry_ms = n->attempt < ATTEMPTS ? wall_ms() + pause_ms(s, n->attempt) : 0;
    }
    code = notify_record(store_of(s->store), n, monotonic_ms() - began_ms, out.why, out.retry_ms, err);
    if (code)
        return code;
    s->sent++;
    if (out.why)
        log_write(TIDE_LOG_WARN, out.retry_ms ? "notification failed: tried again" : "notification failed: given up",
                  log_text("session", n->session), log_text("id", n->id), log_text("why", out.why));
    s->faces->told(s->faces->arg, &out);
    return TIDE_OK;
}

/* All of a session that are due, in their order: one that fails stands before the others until it is given up. */
static enum tide_code send_session(struct sending *s, const char *id, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    while (!code && s->sent < MAX_AT_ONCE) {
        struct notification n;

        code = notify_next(store_of(s->store), id, &n, err);
        if (code == TIDE_CORRUPT)
            log_write(TIDE_LOG_ERROR, "a session cannot be notified of", log_text("session", id),
                      log_text("why", err->msg));
        if (code == TIDE_NOT_FOUND || code == TIDE_CORRUPT) /* none is due; a damaged one is in nobody else's way */
            return TIDE_OK;
        if (code)
            return code;
        code = send_one(s, &n, err);
        notification_done(&n);
    }
    return code;
}

static enum tide_code send_all(struct sending *s, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int64_t before;

    do { /* again while there was something: meanwhile others may have come */
        struct notify_list list = {NULL, 0, 0};

        before = s->sent;
        code = notify_find(store_of(s->store), &list, err);
        for (size_t i = 0; i < list.n && !code && s->sent < MAX_AT_ONCE; i++)
            code = send_session(s, list.ids[i], err);
        free(list.ids);
    } while (!code && s->sent > before && s->sent < MAX_AT_ONCE);
    return code;
}

enum tide_code notify_send(tide_store *store, const char *url, const char *config, const struct notify_faces *faces,
                           struct tide_err *err)
{
    struct notify_settings settings;
    struct sending s = {.store = store, .settings = &settings, .faces = faces};
    enum tide_code code = notify_settings_read(config, &settings, err);
    int lock;

    if (code)
        return code;
    lock = settings.argv ? open_lock(url) : -1;
    if (settings.argv && take_turn(lock))
        code = send_all(&s, err);
    if (lock >= 0)
        close(lock);
    notify_settings_done(&settings);
    return code;
}
