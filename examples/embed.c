/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session from a program of your own: what an agent loop does with libtidemark, in one page.
 *
 *   cc embed.c $(pkg-config --cflags --libs tidemark) -o embed && ./embed /tmp/example.db
 *
 * Kill it wherever you like and run it again: it continues where it stopped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>

#define SESSION "example"

static struct tide_err err;

/* Every call says what went wrong in one line; a real program would branch on the code. */
static void must(enum tide_code code)
{
    if (code == TIDE_OK)
        return;
    fprintf(stderr, "embed: %s\n", err.msg);
    exit(tide_code_exit(code));
}

static int print_message(void *arg, const struct tide_event *event)
{
    (void)arg;
    printf("  %lld %s %s\n", (long long)event->seq, event->kind, event->body);
    return 0;
}

/* One turn: the prompt is durable before anything is done with it, the answer and its cost in one batch. */
static void turn(tide_session *session, int n)
{
    const struct tide_new_checkpoint mark = {.size = sizeof mark, .type = TIDE_CHECKPOINT_TURN};
    char prompt[80], answer[80], usage[80], memory[80], id[TIDE_ID_SIZE];
    const struct tide_new_event question = {"message.user", prompt, 0};
    const struct tide_new_event done[] = {
        {"message.assistant", answer, 0},
        {"llm.usage", usage, 0},
        {"memory.set", memory, 0},
    };

    snprintf(prompt, sizeof prompt, "{\"turn\":%d,\"content\":\"what is %d squared?\"}", n, n);
    snprintf(answer, sizeof answer, "{\"turn\":%d,\"content\":\"%d\"}", n, n * n);
    snprintf(usage, sizeof usage, "{\"turn\":%d,\"input_tokens\":12,\"output_tokens\":3,\"cost\":0.0001}", n);
    snprintf(memory, sizeof memory, "{\"values\":{\"last\":%d}}", n * n);
    must(tide_session_append(session, 0, &question, 1, NULL, &err));
    must(tide_session_append(session, 0, done, 3, NULL, &err));
    must(tide_checkpoint_save(session, &mark, id, &err));
}

/* The session, made or found again. */
static tide_session *open_session(tide_store *store)
{
    tide_session *session;
    enum tide_code code = tide_session_open(store, SESSION, TIDE_SESSION_APPEND, &session, &err);

    if (code == TIDE_NOT_FOUND)
        code = tide_session_create(store, SESSION, "{\"agent\":\"embed\",\"title\":\"squares\"}", &session, &err);
    must(code);
    return session;
}

int main(int argc, char **argv)
{
    const struct tide_store_options options = {.size = sizeof options, .flags = TIDE_OPEN_CREATE};
    tide_store *store;
    tide_session *session;
    struct tide_usage usage;
    struct tide_text state;
    char fork[TIDE_ID_SIZE];
    const struct tide_checkpoint *mark;
    int64_t mark_seq;

    if (argc != 2)
        return fprintf(stderr, "usage: embed STORE\n"), 2;
    must(tide_store_open(argv[1], &options, &store, &err));
    session = open_session(store);

    must(tide_session_get_usage(session, 0, &usage, &err)); /* one call per turn: how far an earlier run came */
    for (int n = (int)usage.calls + 1; n <= 3; n++)
        turn(session, n);

    printf("messages:\n");
    must(tide_session_read_messages(session, 0, print_message, NULL, &err));
    must(tide_checkpoint_load_latest(session, &mark, &err));
    mark_seq = mark->seq;
    printf("checkpoint at %lld: %s%s\n", (long long)mark_seq, tide_checkpoint_type_name(mark->type),
           mark->is_clean ? ", clean" : "");

    /* Another future: from the first turn on, somebody else may try something else. */
    must(tide_session_fork(store, SESSION, 6, NULL, "{\"title\":\"cubes\"}", fork, &err));

    /* Back to the first turn: the content is what it was, the money stays spent. */
    must(tide_session_rollback(session, 6, 0, "the user said so", &err));
    printf("after rolling back to 6:\n");
    must(tide_session_read_messages(session, 0, print_message, NULL, &err));
    must(tide_session_get_usage(session, 0, &usage, &err));
    printf("spent: %lld tokens in %lld calls\n", (long long)(usage.input_tokens + usage.output_tokens),
           (long long)usage.calls);

    /* And forward again: rolling "back" to the newest mark undoes it. */
    must(tide_session_rollback(session, mark_seq, 0, "on second thought", &err));
    must(tide_session_get_state(session, 0, &state, &err));
    printf("memory is back: %s\n", strstr(state.ptr, "\"memory\":{\"last\":9}") ? "last is 9" : state.ptr);
    tide_text_done(&state);

    tide_session_close(session);
    tide_store_close(store);
    return 0;
}
