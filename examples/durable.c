/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A durable program through the C calls: three steps and an approval. Kill it wherever you like and run it again.
 *
 *   cc durable.c $(pkg-config --cflags --libs tidemark) -o durable
 *   ./durable /tmp/example.db              runs until it waits, and prints the token
 *   ./durable /tmp/example.db TOKEN yes    answers, and runs on to its end
 *   ./durable /tmp/example.db              continues after a kill
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>

#define SESSION "order"

static struct tide_err err;

static void must(enum tide_code code)
{
    if (code == TIDE_OK)
        return;
    fprintf(stderr, "durable: %s\n", err.msg);
    exit(tide_code_exit(code));
}

/* What a step does. `key` is the same in every attempt: hand it to a service that knows idempotency keys. */
static enum tide_code say(void *arg, const char *key, struct tide_text *ret_result, struct tide_err *why)
{
    (void)key;
    (void)why;
    printf("  doing: %s\n", (const char *)arg);
    ret_result->ptr = strdup("\"done\""); /* JSON; the library frees it */
    ret_result->len = strlen(ret_result->ptr);
    return TIDE_OK;
}

static void step(tide_run *run, const char *name, enum tide_effect effect)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = name, .effect = effect};
    struct tide_text result = {NULL, 0};

    must(tide_run_step(run, &spec, say, (void *)name, &result, &err));
    printf("%s: %s\n", name, result.ptr);
    tide_text_done(&result);
}

/* Executed from its start each time: what has happened answers from the log. */
static enum tide_code program(tide_run *run)
{
    const struct tide_wait_options ask = {
        .size = sizeof ask, .name = "approve", .kind = TIDE_WAIT_APPROVAL, .question = "ship it?"};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    enum tide_code code;

    step(run, "reserve", TIDE_EFFECT_IDEMPOTENT);
    step(run, "charge", TIDE_EFFECT_ONCE);
    code = tide_run_wait(run, &ask, &answer, token, &err);
    if (code == TIDE_WAITING)
        printf("waiting for approval: %s\n", token);
    if (code)
        return code;
    printf("approval: %s\n", answer.ptr);
    tide_text_done(&answer);
    step(run, "ship", TIDE_EFFECT_ONCE);
    return TIDE_OK;
}

int main(int argc, char **argv)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    const struct tide_run_result done = {.size = sizeof done, .outcome = TIDE_OUTCOME_COMPLETED};
    struct tide_run_options go_on = {.size = sizeof go_on};
    enum tide_ensured how;
    char answer[256] = "null";
    tide_session *session;
    tide_store *store;
    tide_run *run;
    enum tide_code code;

    if (argc != 2 && argc != 4)
        return fprintf(stderr, "usage: durable STORE [TOKEN ANSWER]\n"), 2;
    if (argc == 4)
        snprintf(answer, sizeof answer, "\"%s\"", argv[3]); /* JSON: a real program would escape it */
    must(tide_store_open(argv[1], &opt, &store, &err));
    if (tide_session_open(store, SESSION, TIDE_SESSION_APPEND, &session, &err))
        must(tide_session_create(store, SESSION, NULL, &session, &err));
    if (argc == 4) {
        go_on.token = argv[2];
        go_on.input = answer;
    }
    must(tide_run_ensure(session, &go_on, &how, &run, &err)); /* starts, or continues the last run */
    code = how == TIDE_ENSURED_DONE ? TIDE_OK : program(run);
    if (run && code == TIDE_OK)
        must(tide_run_end(run, &done, &err));
    tide_run_close(run);
    tide_session_close(session);
    tide_store_close(store);
    return tide_code_exit(code);
}
