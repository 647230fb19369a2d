/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of config.json. `tidemark config list`, the manual page's test and the checks all read this table: a key that is
 * not here does not exist.
 */
#include <ctype.h>
#include <stdio.h>

#include "engine/config.h"
#include "base/nearest.h"

#define DAY_MS 86400000

const struct config_key config_keys[] = {
    {"provider", CONFIG_WORD, "\"anthropic\"", "anthropic openai script", 0, 0, "the provider of the model"},
    {"model", CONFIG_TEXT, NULL, NULL, 0, 0, "the model's name, as its provider calls it"},
    {"base_url", CONFIG_TEXT, NULL, NULL, 0, 0, "the URL of another server with the provider's protocol"},
    {"api_key", CONFIG_TEXT, NULL, NULL, 0, 0, "where the provider's key is: env:NAME, file:PATH or keychain:NAME"},
    {"script", CONFIG_TEXT, NULL, NULL, 0, 0, "the file with the answers of the script provider"},
    {"system_prompt", CONFIG_TEXT, NULL, NULL, 0, 0, "the system prompt, in place of the built-in one"},
    {"project_instructions", CONFIG_BOOL, "true", NULL, 0, 0,
     "whether a chat gives the model the contents of AGENTS.md and CLAUDE.md"},
    {"max_turns", CONFIG_INT, "50", NULL, 1, 1000000, "the maximum number of turns for one prompt"},
    {"max_answer_tokens", CONFIG_INT, "8192", NULL, 1, 10000000, "the maximum number of tokens in one answer"},
    {"max_context_tokens", CONFIG_INT, "128000", NULL, 1000, 100000000,
     "the maximum number of tokens in the model's context"},
    {"context_trim_percent", CONFIG_INT, "80", NULL, 10, 100, "trim the context when it is this full"},
    {"max_retries", CONFIG_INT, "3", NULL, 0, 100, "the number of retries after a failed model call"},
    {"retry_base_delay_ms", CONFIG_INT, "500", NULL, 1, 60000,
     "the pause before the first retry; it doubles with each further retry"},
    {"max_retry_after_ms", CONFIG_INT, "900000", NULL, 1, DAY_MS,
     "the longest pause that a provider may request (Retry-After)"},
    {"max_tool_result_chars", CONFIG_INT, "8000", NULL, 0, 16777216,
     "the number of characters of a tool's result that the model sees; 0: all"},
    {"tool_timeout_ms", CONFIG_INT, "120000", NULL, 1, DAY_MS, "the maximum run time of a tool's program"},
    {"permissions", CONFIG_JSON, "[]", "array", 0, 0,
     "rules by tool and argument: allow, ask, deny; the last match wins"},
    {"auto_approve_tools", CONFIG_JSON, "[]", "array true false", 0, 0,
     "tools that need no approval; true: all of them"},
    {"hooks", CONFIG_JSON, "[]", "array", 0, 0,
     "programs and fixed actions that run at seven points of the agent's loop"},
    {"hooks_file", CONFIG_TEXT, NULL, NULL, 0, 0, "a file with more hooks: {\"hooks\": [...]}"},
    {"hook_timeout_ms", CONFIG_INT, "10000", NULL, 1, 3600000,
     "the maximum run time of a hook without its own timeout_ms"},
    {"prices", CONFIG_JSON, "{}", "object", 0, 0, "per model: input, output and cached, each per million tokens"},
    {"max_cost", CONFIG_NUMBER, "0", NULL, 0, 0,
     "the maximum cost of a session, in the currency of prices; 0: no limit"},
    {"max_tokens", CONFIG_INT, "0", NULL, 0, 0, "the maximum number of tokens of a session; 0: no limit"},
    {"checkpoints", CONFIG_JSON, "{}", "object", 0, 0,
     "when graphs make checkpoints: keys of `checkpoints`, which override those of each graph"},
    {"on_store_error", CONFIG_WORD, "\"stop\"", "stop continue", 0, 0, "what a run does when the store fails"},
    {"auto_resume", CONFIG_WORD, "\"off\"", "off live all", 0, 0,
     "which sessions resume automatically after a crash; where it is not set, serve uses live"},
    {"sweep_interval", CONFIG_TEXT, "\"30s\"", NULL, 0, 0,
     "how often a running session checks for others to recover; 0s: never"},
    {"notify", CONFIG_JSON, "[]", "array", 0, 0,
     "a program and its arguments, run when a run waits, is interrupted, fails or completes"},
    {"notify_on", CONFIG_JSON, "[\"waiting\",\"interrupted\",\"failed\",\"completed\"]", "array", 0, 0,
     "the changes for which it runs"},
    {"notify_timeout_ms", CONFIG_INT, "10000", NULL, 1, 600000, "the maximum run time of the notify program"},
    {"notify_retry_ms", CONFIG_INT, "30000", NULL, 1, DAY_MS,
     "the pause before the first retry of a failed notification; it doubles with each further retry"},
    {"retention", CONFIG_TEXT, "\"0s\"", NULL, 0, 0,
     "how long recovery keeps finished sessions after their last change; 0s: for ever"},
    {"server_programs", CONFIG_JSON, "{}", "object", 0, 0,
     "programs that requests to the server may start: for each name argv, cwd and env"},
    {"server_graph_roots", CONFIG_JSON, "[]", "array", 0, 0, "directories of graphs that requests may run"},
    {"server_working_roots", CONFIG_JSON, "[]", "array", 0, 0,
     "directories in which chats and graphs of requests work"},
    {"store", CONFIG_TEXT, NULL, NULL, 0, 0,
     "the store: sqlite:PATH, files:DIR or the path of a database (also db_path)"},
    {"connect_timeout_ms", CONFIG_INT, "10000", NULL, 1, DAY_MS, "the maximum time to connect to the provider"},
    {"first_byte_timeout_ms", CONFIG_INT, "120000", NULL, 1, DAY_MS,
     "the maximum time until the provider's answer begins"},
    {"silence_timeout_ms", CONFIG_INT, "60000", NULL, 1, DAY_MS, "the longest silence within the provider's answer"},
    {"stall_timeout_ms", CONFIG_INT, "300000", NULL, 1, DAY_MS,
     "the longest time in which the provider sends only pings"},
    {"call_timeout_ms", CONFIG_INT, "1800000", NULL, 1, DAY_MS, "the maximum time of one model call"},
    {"log_level", CONFIG_WORD, "\"warn\"", "error warn info debug", 0, 0, "the lowest level that is logged"},
    {"log_format", CONFIG_WORD, "\"text\"", "text json", 0, 0, "text lines, or one JSON object per line"},
    {"log_file", CONFIG_TEXT, NULL, NULL, 0, 0, "the file of the log, in place of standard error"},
    {"history_file", CONFIG_TEXT, NULL, NULL, 0, 0, "the file with the history of lines typed in chats"},
    {"server_max_head_bytes", CONFIG_INT, "8192", NULL, 4096, 1048576,
     "the maximum size of a request's line and fields; the server keeps so much for each connection"},
    {"server_max_body_bytes", CONFIG_INT, "1048576", NULL, 1024, 1073741824, "the maximum size of a request's body"},
    {"server_max_depth", CONFIG_INT, "64", NULL, 4, 128, "the maximum depth of a request's JSON"},
    {"server_max_connections", CONFIG_INT, "10000", NULL, 1, 1000000, "the maximum number of open connections"},
    {"server_max_connections_per_address", CONFIG_INT, "0", NULL, 0, 1000000,
     "the maximum number of open connections from one address; 0: no other limit"},
    {"server_max_requests_per_second", CONFIG_INT, "0", NULL, 0, 1000000,
     "the maximum number of requests per second of one token; 0: no limit"},
    {"server_head_timeout_ms", CONFIG_INT, "10000", NULL, 100, DAY_MS,
     "the maximum time in which a client sends a request's line and fields"},
    {"server_body_timeout_ms", CONFIG_INT, "30000", NULL, 100, DAY_MS,
     "the maximum time in which a client sends a request's body"},
    {"server_idle_timeout_ms", CONFIG_INT, "60000", NULL, 1000, DAY_MS,
     "how long a connection stays open between two requests"},
    {"server_stop_timeout_ms", CONFIG_INT, "10000", NULL, 0, DAY_MS,
     "how long runs have to park when the server is stopped"},
    {NULL, CONFIG_TEXT, NULL, NULL, 0, 0, NULL},
};

static const struct {
    const char *name, *means;
} aliases[] = {{"db_path", "store"}};

const struct config_key *config_key_find(const char *name)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (strcmp(aliases[i].name, name) == 0)
            name = aliases[i].means;
    for (const struct config_key *k = config_keys; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

static const char *next_key(void *arg)
{
    const struct config_key **at = arg;

    return (*at)->name ? (*at)++->name : NULL;
}

enum tide_code config_key_unknown(const char *name, struct tide_err *err)
{
    const struct config_key *at = config_keys;
    const char *near = nearest(name, next_key, &at);
    enum tide_code code;

    tide_fail(err, TIDE_INVALID, near ? "unknown key '%.60s': did you mean '%s'?" : "unknown key '%.60s'", name, near);
    code = tide_about(err, TIDE_SUBJECT_KEY, name);
    return near ? code : tide_hint(err, TIDE_ACTION_LIST_SETTINGS, "");
}

const char *config_variable(const struct config_key *key, char out[CONFIG_VARIABLE_SIZE])
{
    if (strcmp(key->name, "api_key") == 0)
        return NULL;
    snprintf(out, CONFIG_VARIABLE_SIZE, "TIDEMARK_%s", key->name);
    for (char *p = out; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return out;
}
