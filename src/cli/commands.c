/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands. Parsing, help, completion and the test of the manual pages all read it. */
#include "cli/command.h"

#include <string.h>

extern const struct command cmd_sessions_new, cmd_sessions_list, cmd_sessions_show, cmd_sessions_checkpoints,
    cmd_sessions_inspect, cmd_sessions_checkpoint, cmd_sessions_fork, cmd_sessions_rollback, cmd_sessions_delete,
    cmd_sessions_prune, cmd_sessions_checkpoint_delete, cmd_sessions_verify, cmd_sessions_export, cmd_sessions_import,
    cmd_log_append, cmd_log_show, cmd_state, cmd_store_init, cmd_store_info, cmd_store_check, cmd_store_compact,
    cmd_store_copy, cmd_doctor, cmd_completion, cmd_help, cmd_version, cmd_why, cmd_sessions_timeline, cmd_recover,
    cmd_exec, cmd_step, cmd_wait, cmd_sleep, cmd_set, cmd_get, cmd_checkpoint, cmd_chat, cmd_resume, cmd_cancel,
    cmd_sessions_send, cmd_sessions_queue, cmd_token_rotate, cmd_config_list, cmd_config_get, cmd_config_set,
    cmd_config_check, cmd_graph_check, cmd_graph_show, cmd_graph_import, cmd_graph_schema, cmd_sessions_resume,
    cmd_torture, cmd_run, cmd_graph_diff, cmd_sessions_trust, cmd_store_trust, cmd_schema, cmd_notify;

extern const struct command cmd_sessions_transcript, cmd_serve, cmd_tasks_list, cmd_tasks_show, cmd_tasks_set,
    cmd_access_create, cmd_access_list, cmd_access_revoke, cmd_access_rotate, cmd_console, cmd_tui;

const struct command *const commands[] = {
    &cmd_chat,
    &cmd_run,
    &cmd_exec,
    &cmd_step,
    &cmd_wait,
    &cmd_sleep,
    &cmd_set,
    &cmd_get,
    &cmd_checkpoint,
    &cmd_resume,
    &cmd_cancel,
    &cmd_why,
    &cmd_recover,
    &cmd_notify,
    &cmd_serve,
    &cmd_console,
    &cmd_tui,
    &cmd_sessions_new,
    &cmd_sessions_list,
    &cmd_sessions_show,
    &cmd_sessions_timeline,
    &cmd_sessions_transcript,
    &cmd_sessions_send,
    &cmd_sessions_queue,
    &cmd_sessions_resume,
    &cmd_sessions_checkpoints,
    &cmd_sessions_inspect,
    &cmd_sessions_checkpoint,
    &cmd_sessions_fork,
    &cmd_sessions_rollback,
    &cmd_sessions_delete,
    &cmd_sessions_checkpoint_delete,
    &cmd_sessions_prune,
    &cmd_sessions_verify,
    &cmd_sessions_export,
    &cmd_sessions_import,
    &cmd_sessions_trust,
    &cmd_tasks_list,
    &cmd_tasks_show,
    &cmd_tasks_set,
    &cmd_log_append,
    &cmd_log_show,
    &cmd_token_rotate,
    &cmd_access_create,
    &cmd_access_list,
    &cmd_access_revoke,
    &cmd_access_rotate,
    &cmd_store_init,
    &cmd_store_info,
    &cmd_store_check,
    &cmd_store_compact,
    &cmd_store_copy,
    &cmd_store_trust,
    &cmd_config_list,
    &cmd_config_get,
    &cmd_config_set,
    &cmd_config_check,
    &cmd_graph_check,
    &cmd_graph_show,
    &cmd_graph_diff,
    &cmd_graph_import,
    &cmd_graph_schema,
    &cmd_state,
    &cmd_schema,
    &cmd_doctor,
    &cmd_torture,
    &cmd_completion,
    &cmd_help,
    &cmd_version,
    NULL,
};

const struct command_group command_groups[] = {
    {"sessions", "create, show, checkpoint, fork, roll back, verify, export and import sessions"},
    {"tasks", "list and show tasks, and set what a person says of them"},
    {"log", "append events to a session's log and read them"},
    {"token", "resume tokens"},
    {"access", "tokens for the API of the server"},
    {"store", "create, show, check, copy and compact a store"},
    {"graph", "check, draw, compare and import graphs"},
    {"config", "show, change and check the configuration"},
    {NULL, NULL},
};

const struct opt global_options[] = {
    {.name = "store",
     .type = VALUE_FILE,
     .value = "URL",
     .help = "the store: sqlite:PATH, files:DIR or the path of a database (default: $TIDEMARK_STORE, else as "
             "configured, else tidemark/tidemark.db in the XDG data directory)"},
    {.name = "server",
     .type = VALUE_TEXT,
     .value = "URL",
     .help = "work through this server, not on a store: unix:PATH, http://127.0.0.1:PORT or https://HOST:PORT "
             "(default: $TIDEMARK_SERVER; its token: $TIDEMARK_TOKEN)"},
    {.name = "pin",
     .type = VALUE_TEXT,
     .value = "PIN",
     .help = "with https: the digest of the server's key, as it printed it (default: $TIDEMARK_SERVER_PIN)"},
    {.name = "key-file",
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "read the key of the digests from FILE, 16 to 64 bytes (also $TIDEMARK_KEY_FILE, $TIDEMARK_KEY)"},
    {.name = "key-fd",
     .type = VALUE_INT,
     .value = "FD",
     .max = 1 << 20,
     .help = "read the key of the digests from an open file descriptor"},
    {.name = "config",
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "the configuration file (default: $TIDEMARK_CONFIG, else tidemark/config.json in the XDG config "
             "directory)"},
    {.name = "verbose", .help = "log everything, as log_level debug does"},
    {.name = "log-format",
     .type = VALUE_WORD,
     .value = "FORMAT",
     .words = "text json",
     .help = "the format of the log"},
    {.name = "json", .help = "print JSON, for programs"},
    {.name = "utc", .help = "show times in UTC, not in the local time zone; JSON always has UTC"},
    {.name = "color",
     .type = VALUE_WORD,
     .value = "WHEN",
     .words = "auto always never",
     .help = "colours: auto (on a terminal, unless $NO_COLOR is set), always, never"},
    {.name = "help", .letter = 'h', .help = "show help for the command"},
    {.name = "version", .help = "show the version"},
    {.name = NULL},
};

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const struct command *command_find(const char *group, const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if (same((*c)->group, group) && same((*c)->name, name))
            return *c;
    return NULL;
}

const struct command_group *command_group_find(const char *name)
{
    for (const struct command_group *g = command_groups; g->name; g++)
        if (same(g->name, name))
            return g;
    return NULL;
}

bool options_have(const struct opt *table, const char *name)
{
    while (table && table->name && !same(table->name, name))
        table++;
    return table && table->name;
}
