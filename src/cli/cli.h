/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the command line: its arguments, its output, its store. Handed to every command. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/args.h"
#include "terminal/output.h"
#include "engine/user_store.h"

struct settings;
struct notifier;
struct remote;

struct cli {
    struct args args;
    struct out out;
    bool logs;                 /* the log is set up */
    tide_store *store;         /* open when the command's row asks for it */
    bool no_store;             /* it could not be opened */
    struct remote *remote;     /* the server that is asked instead */
    struct notifier *notifier; /* starts what sends notifications; NULL: nothing is sent */
    int exit_status;           /* of a command that succeeded in saying that something is wrong (doctor); else 0 */
};

/* Opens the store that --store, the environment or the XDG directory name. `extra`: further enum tide_open_flags. */
enum tide_code cli_store_open(struct cli *cli, enum need need, unsigned extra, struct tide_err *err) MUST_CHECK;
enum tide_code cli_store_open_held(struct cli *cli, enum need need, struct tide_err *err)
    MUST_CHECK; /* for a run: cli_hold */
void cli_store_close(struct cli *cli);

/* Its URL and its key, from the same places; a key has at most STORE_KEY_MAX bytes. */
enum tide_code cli_store_url(const struct cli *cli, struct buf *ret_url, struct tide_err *err) MUST_CHECK;
enum tide_code cli_store_key(const struct cli *cli, unsigned char *ret_key, size_t *ret_len, struct tide_err *err)
    MUST_CHECK;

/* The settings, with warnings on standard error. */
enum tide_code cli_settings_open(const struct cli *cli, struct settings *ret_settings, struct tide_err *err) MUST_CHECK;

/* Both, for agents of the open store; their notices go to standard error. */
struct agent_setup;
enum tide_code cli_setup_open(struct cli *cli, struct agent_setup *ret_setup, struct tide_err *err) MUST_CHECK;

/* The session of operand `i`, by id or unique prefix; `flags` as in tide_session_open(). */
enum tide_code cli_session_open(struct cli *cli, size_t i, unsigned flags, tide_session **ret_session,
                                struct tide_err *err) MUST_CHECK;

/* For tide_trouble_fn: says that a run is held, and that it continues; gives up when a signal has come. */
int cli_held(void *arg, const struct tide_err *why, int64_t waited_ms);

/* The same, for the store and the sessions that a run begins in: until a signal comes. */
extern const struct held cli_hold;

static inline void watch_closep(tide_watch **watch)
{
    tide_watch_close(*watch);
}

static inline void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

/* Help for what the arguments name, into cli->out. */
void help_print(struct cli *cli);

#endif
