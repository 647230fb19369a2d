/* SPDX-License-Identifier: Apache-2.0 */
/* What most commands begin with: the store, a session of it, a position in that session. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/cli.h"
#include "cli/next_command.h"
#include "terminal/progress.h"
#include "engine/agent_setup.h"
#include "engine/notify.h"
#include "engine/settings.h"
#include "engine/user_store.h"
#include "engine/store_url.h"
#include "base/yes_no.h"

#define URL_MAX 4096

static bool ask_own(void *arg, const char *path)
{
    char line[64];

    (void)arg;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr,
            "'%s' was made by an earlier version, which did not prove where sessions began.\nAre all its sessions "
            "your own, and may they run? [y/N] ",
            path);
    return fgets(line, sizeof(line), stdin) && yes_no_word(str_from(line)) == YES_NO_YES;
}

static void warn_line(void *arg, const char *line)
{
    (void)arg;
    say_clean(line);
}

enum tide_code cli_settings_open(const struct cli *cli, struct settings *ret_settings, struct tide_err *err)
{
    return settings_open(args_text(&cli->args, "config"), warn_line, NULL, ret_settings, err);
}

/* The log as the settings (NULL: as the file) and the options want it, once. */
static enum tide_code open_log(struct cli *cli, const struct settings *s, struct tide_err *err)
{
    bool verbose = args_on(&cli->args, "verbose");
    const char *format = args_text(&cli->args, "log-format");
    enum tide_code code = cli->logs ? TIDE_OK
                          : s       ? settings_log(s, verbose, format, wall_ms, err)
                              : settings_log_alone(args_text(&cli->args, "config"), verbose, format, wall_ms, err);

    cli->logs |= !code;
    return code;
}

static void tell_line(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

static void offer_change(void *arg, const char *line, const char *change)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)arg;
    say("%s", offer_text(&a, line, change));
}

static void warn_of_trouble(void *arg, const char *line, const struct tide_err *why)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)arg;
    say("%s", trouble_text(&a, line, why));
}

enum tide_code cli_setup_open(struct cli *cli, struct agent_setup *ret_setup, struct tide_err *err)
{
    ret_setup->tell = offer_change;
    ret_setup->tell_trouble = warn_of_trouble;
    ret_setup->store = cli->store;
    return cli_settings_open(cli, &ret_setup->settings, err) ? err->code : open_log(cli, &ret_setup->settings, err);
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

static enum tide_code open_store(struct cli *cli, enum need need, unsigned extra, const struct held *held,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(URL_MAX);
    unsigned char key[STORE_KEY_MAX];
    struct tide_store_options opt = {.size = sizeof opt, .flags = extra};
    enum tide_code code;

    own_command_here(&cli->args);
    if (need != NEED_READ && open_log(cli, NULL, err))
        return err->code;
    opt.flags |= need == NEED_READ ? TIDE_OPEN_READ_ONLY : need == NEED_CREATE ? TIDE_OPEN_CREATE : 0u;
    if (cli_store_url(cli, &url, err) || store_max_record(&opt.max_record_bytes, err) ||
        cli_store_key(cli, key, &opt.key_len, err))
        return err->code;
    if (url.failed)
        return args_refuse(err, "store", "the path of the store is too long: name a shorter one with --store");
    opt.key = opt.key_len ? key : NULL;
    code =
        user_store_open(buf_cstr(&url), &opt, args_text(&cli->args, "config"), ask_own, NULL, held, &cli->store, err);
    explicit_bzero(key, sizeof(key));
    cli->no_store = code != TIDE_OK;
    if (!code && need != NEED_READ)
        code = notifier_new(cli->store,
                            &(struct notify_start){.url = buf_cstr(&url),
                                                   .config = args_text(&cli->args, "config"),
                                                   .key_file = args_text(&cli->args, "key-file")},
                            &cli->notifier, err);
    return code;
}

enum tide_code cli_store_open(struct cli *cli, enum need need, unsigned extra, struct tide_err *err)
{
    return open_store(cli, need, extra, NULL, err);
}

enum tide_code cli_store_open_held(struct cli *cli, enum need need, struct tide_err *err)
{
    return open_store(cli, need, 0, &cli_hold, err);
}

void cli_store_close(struct cli *cli)
{
    if (cli->store)
        tide_store_read_notices(cli->store, tell_line, NULL);
    tide_store_close(TAKE(cli->store));
    notifier_free(TAKE(cli->notifier));
}

enum tide_code cli_session_open(struct cli *cli, size_t i, unsigned flags, tide_session **ret_session,
                                struct tide_err *err)
{
    return tide_session_open(cli->store, args_operand(&cli->args, i), flags, ret_session, err);
}

int cli_held(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    if (!why)
        say("the store can be written again: the run continues");
    else if (!waited_ms)
        say_store_trouble(why, "the run pauses and continues by itself when the store can be written");
    return stop_signal != 0;
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

const struct held cli_hold = {.told = cli_held, .stopped = is_stopped};
