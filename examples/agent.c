/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent with a tool and a hook of its own, through the C calls. Kill it wherever you like and run it again without a
 * prompt: it continues, and no seat is booked twice. The answers come from a file, so that it needs no account.
 *
 *   cc agent.c $(pkg-config --cflags --libs tidemark) -o agent
 *   ./agent /tmp/example.db agent.json "book me a seat"
 *   ./agent /tmp/example.db agent.json          continues after a kill
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>

#define SESSION "travel"

static struct tide_err err;
static tide_agent *agent;

static void must(enum tide_code code)
{
    if (code == TIDE_OK)
        return;
    fprintf(stderr, "agent: %s\n", err.msg);
    exit(tide_code_exit(code));
}

static void give(struct tide_text *ret, const char *text)
{
    ret->ptr = strdup(text); /* the library frees it */
    ret->len = strlen(text);
}

/*
 * The tool. That it begins is on disk before this is called; what it returns is on disk before the model hears of it. `key`
 * is the same in every attempt: hand it to a service that knows idempotency keys.
 */
static enum tide_code book(void *arg, const char *args, const char *key, struct tide_text *ret_result,
                           struct tide_err *why)
{
    FILE *f = fopen(arg, "a");

    (void)key;
    if (!f) {
        snprintf(why->msg, sizeof why->msg, "the booking office is closed"); /* the model is told so */
        return TIDE_FAILED;
    }
    fprintf(f, "%s\n", args);
    fclose(f);
    give(ret_result, "booked");
    return TIDE_OK;
}

/* The hook: nobody travels in row 1. An empty answer lets the call go on. */
static enum tide_code guard(void *arg, const char *input, struct tide_text *ret_answer, struct tide_err *why)
{
    (void)arg;
    (void)why;
    if (strstr(input, "\"seat\":\"1A\"")) /* a real program would parse it */
        give(ret_answer, "{\"action\":\"deny\",\"reason\":\"row 1 is too expensive\"}");
    return TIDE_OK;
}

static void on_event(void *arg, const struct tide_agent_event *e)
{
    (void)arg;
    if (e->what == TIDE_AGENT_TEXT)
        printf("%.*s\n", (int)e->text_len, e->text);
    else if (e->what == TIDE_AGENT_TOOL_END)
        printf("  %s %s: %.*s\n", e->tool, e->args, (int)e->text_len, e->text);
    else if (e->what == TIDE_AGENT_RETRY || e->what == TIDE_AGENT_NOTICE)
        fprintf(stderr, "  %.*s\n", (int)e->text_len, e->text);
    fflush(stdout);
}

static void on_signal(int number)
{
    (void)number;
    tide_agent_stop(agent); /* soon and in order; it can be resumed */
}

static void equip(const char *bookings)
{
    const struct tide_tool tool = {
        .size = sizeof tool,
        .name = "book",
        .description = "Book a seat.",
        .schema = "{\"type\":\"object\",\"properties\":{\"seat\":{\"type\":\"string\"}},\"required\":[\"seat\"]}",
        .effect = TIDE_EFFECT_ONCE,
        .fn = book,
        .arg = (void *)bookings};

    must(tide_agent_add_tool(agent, &tool, &err));
    must(tide_agent_add_hook(agent, "guard", "pre_tool_use", "^book$", guard, NULL, &err));
}

int main(int argc, char **argv)
{
    const struct tide_store_options create = {.size = sizeof create, .flags = TIDE_OPEN_CREATE};
    struct tide_agent_options opt = {.size = sizeof opt, .provider = "script", .no_tools = 1, .event = on_event};
    tide_session *session;
    tide_store *store;
    char bookings[4096];
    enum tide_code code;

    if (argc != 3 && argc != 4)
        return fprintf(stderr, "usage: agent STORE SCRIPT [PROMPT]\n"), 2;
    opt.script = argv[2];
    snprintf(bookings, sizeof bookings, "%s.bookings", argv[1]);
    must(tide_store_open(argv[1], &create, &store, &err));
    if (tide_session_open(store, SESSION, TIDE_SESSION_APPEND, &session, &err))
        must(tide_session_create(store, SESSION, NULL, &session, &err));
    must(tide_agent_new(session, &opt, &agent, &err));
    equip(bookings);
    signal(SIGINT, on_signal);
    code = argc == 4 ? tide_agent_run(agent, argv[3], NULL, &err) : tide_agent_resume(agent, NULL, NULL, NULL, &err);
    if (code)
        fprintf(stderr, "agent: %s\n", err.msg);
    tide_agent_free(agent);
    tide_session_close(session);
    tide_store_close(store);
    return tide_code_exit(code);
}
