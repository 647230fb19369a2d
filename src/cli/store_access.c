/* SPDX-License-Identifier: Apache-2.0 */
/* What most commands begin with: the store, a session of it, a position in that session. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/cli.h"
#include "cli/terminal/progress.h"
#include "engine/settings.h"
#include "engine/store_url.h"
#include "env/user_key.h"
#include "base/yes_no.h"
#include "session/redact.h"
#include "session/session.h"

#define URL_MAX 4096
#define FIRST_WITH_ORIGINS 5 /* version of the schema */

/* One kind of store was named where the other is. */
static enum tide_code name_other_kind(enum tide_code code, const char *url, struct tide_err *err)
{
    const char *path = store_url_path(url);
    struct stat st;

    if (stat(path, &st) != 0)
        return code;
    if (store_url_is_files(url) && S_ISREG(st.st_mode))
        return tide_fail(err, code, "open store: '%.400s' is a file: name a directory, or give sqlite:PATH", path);
    if (!store_url_is_files(url) && S_ISDIR(st.st_mode))
        return tide_fail(
            err, code, "open store: '%.400s' is a directory: give files:DIR if it is a store, else the path of a file",
            path);
    return code;
}

/* The same advice for every kind. */
static enum tide_code name_maker(enum tide_code code, const char *url, struct tide_err *err)
{
    if (err->hints[0].action != TIDE_ACTION_INIT_STORE)
        return code;
    tide_fail(err, code, "open store: no store at '%.300s'", store_url_path(url));
    return tide_hint(err, TIDE_ACTION_INIT_STORE, "");
}

/* A database that is older than proofs of origin: by its header, as docs/FORMAT.md has it. */
static bool is_older(const char *url)
{
    FILE *f = store_url_is_files(url) ? NULL : fopen(store_url_path(url), "rb");
    unsigned char head[100] = {0};
    size_t n = f ? fread(head, 1, sizeof(head), f) : 0;

    if (f)
        fclose(f);
    return n == sizeof(head) && memcmp(head + 68, "TIDE", 4) == 0 && head[63] < FIRST_WITH_ORIGINS;
}

/*
 * The one that is found in the default place by the first command of a version that proves origins is the user's own. One
 * that comes later, or is elsewhere: somebody has to say so.
 */
static bool is_own(const char *url)
{
    char line[64];

    if (store_url_is_default(url) && !user_place_is_known(url))
        return true;
    if (!is_older(url) || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr,
            "'%s' was made by an earlier version, which did not prove where sessions began.\nAre all its sessions "
            "your own, and may go on? [y/N] ",
            store_url_path(url));
    return fgets(line, sizeof(line), stdin) && yes_no_word(str_from(line)) == YES_NO_YES;
}

/* Whoever answers, and whatever is run: the configured key is a secret. */
static void hide_key(struct cli *cli)
{
    AUTO(buf_done) struct buf key = BUF_INIT(SECRET_MAX);

    settings_key(args_text(&cli->args, "config"), &key);
    if (key.len)
        (void)!tide_store_add_secret(cli->store, "api_key", key.ptr, key.len, NULL);
    if (key.ptr)
        explicit_bzero(key.ptr, key.cap);
}

static void warn(void *arg, const char *line)
{
    (void)arg;
    say_clean(line);
}

enum tide_code cli_settings_open(const struct cli *cli, struct settings *ret_settings, struct tide_err *err)
{
    return settings_open(args_text(&cli->args, "config"), warn, NULL, ret_settings, err);
}

enum tide_code cli_settings_log(const struct cli *cli, const struct settings *s, struct tide_err *err)
{
    return settings_log(s, args_on(&cli->args, "verbose"), args_text(&cli->args, "log-format"), wall_ms, err);
}

enum tide_code cli_store_url(const struct cli *cli, struct buf *ret_url, struct tide_err *err)
{
    return store_url(args_text(&cli->args, "store"), args_text(&cli->args, "config"), ret_url, err);
}

enum tide_code cli_store_key(const struct cli *cli, unsigned char *ret_key, size_t *ret_len, struct tide_err *err)
{
    return advise(
        store_key(args_text(&cli->args, "key-file"), (int)args_int(&cli->args, "key-fd", -1), ret_key, ret_len, err),
        "give a file that holds the key: --key-file FILE", err);
}

enum tide_code cli_store_open(struct cli *cli, enum need need, unsigned extra, struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(URL_MAX);
    unsigned char key[STORE_KEY_MAX];
    struct tide_store_options opt = {.flags = extra};
    struct user_key own;
    enum tide_code code;

    opt.flags |= need == NEED_READ ? TIDE_OPEN_READ_ONLY : need == NEED_CREATE ? TIDE_OPEN_CREATE : 0u;
    if (cli_store_url(cli, &url, err) || store_max_record(&opt.max_record_bytes, err) ||
        cli_store_key(cli, key, &opt.key_len, err))
        return err->code;
    if (url.failed)
        return tide_fail(err, TIDE_INVALID, "the path of the store is too long: name a shorter one with --store");
    opt.key = opt.key_len ? key : NULL;
    if (user_key(need != NEED_READ, &own, err)) /* here, because what is wrong with it is not wrong with the store */
        return err->code;
    explicit_bzero(&own, sizeof(own));
    opt.flags |= need != NEED_READ && is_own(buf_cstr(&url)) ? TIDE_OPEN_ADOPT : 0u;
    code = tide_store_open(buf_cstr(&url), &opt, &cli->store, err);
    explicit_bzero(key, sizeof(key));
    if (!code && need != NEED_READ && store_url_is_default(buf_cstr(&url)))
        user_place_note(buf_cstr(&url));
    if (!code && need != NEED_READ)
        hide_key(cli);
    if (!code)
        redact_log(cli->store);
    if (code == TIDE_NOT_A_STORE || code == TIDE_INVALID)
        code = name_other_kind(code, buf_cstr(&url), err);
    if (code == TIDE_NOT_FOUND)
        code = name_maker(code, buf_cstr(&url), err);
    return advise(code, hint_for_store(code), err);
}

static void tell(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

void cli_store_close(struct cli *cli)
{
    if (cli->store)
        tide_store_read_notices(cli->store, tell, NULL);
    redact_log(NULL);
    tide_store_close(cli->store);
    cli->store = NULL;
}

enum tide_code cli_advise_session(enum tide_code code, struct tide_err *err)
{
    return advise(code, code == TIDE_NOT_FOUND ? "`tidemark sessions list` shows what there is" : NULL, err);
}

enum tide_code cli_session_open(struct cli *cli, size_t i, unsigned flags, tide_session **ret_session,
                                struct tide_err *err)
{
    return cli_advise_session(tide_session_open(cli->store, args_operand(&cli->args, i), flags, ret_session, err), err);
}

int cli_held(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    if (!why)
        say("the store can be written again: the run goes on");
    else if (!waited_ms)
        say("%s: the run is held and goes on by itself when the store can be written", why->msg);
    return stop_signal != 0;
}

static enum tide_code unless_stopped(enum tide_code code, struct tide_err *err)
{
    if (session_is_trouble(code) && stop_signal)
        return tide_fail(err, TIDE_CANCELLED, "stopped before the run began");
    return code;
}

enum tide_code cli_session_create(struct cli *cli, const char *id, const char *fields, tide_session **ret_session,
                                  struct tide_err *err)
{
    return unless_stopped(session_create_held(cli->store, id, fields, cli_held, NULL, ret_session, err), err);
}

enum tide_code cli_session_take(struct cli *cli, const char *id, tide_session **ret_session, struct tide_err *err)
{
    return unless_stopped(session_open_held(cli->store, id, cli_held, NULL, ret_session, err), err);
}

enum tide_code cli_session_put(tide_session *session, const struct tide_new_event *event, struct tide_err *err)
{
    return unless_stopped(session_append_held(session, event, cli_held, NULL, err), err);
}
