/* SPDX-License-Identifier: Apache-2.0 */
/* What things cost on disk, of closed stores with the log truncated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { KEYS = 100, VALUE = 10486 }; /* 1 MiB of memory; one key is 1 % */

static void set_key(tide_session *s, int key, unsigned *seed)
{
    static char value[VALUE + 1], body[VALUE + 100];
    struct tide_new_event ev = {"memory.set", body, 0};
    struct tide_err err;

    random_text(value, VALUE, seed);
    ev.body_len = (size_t)snprintf(body, sizeof body, "{\"values\":{\"key%03d\":\"%s\"}}", key, value);
    must(tide_session_append(s, 0, &ev, 1, NULL, &err), &err, "memory.set");
}

static void memory_checkpoints(const struct bench *b)
{
    int steps = b->quick ? 100 : 1000;
    struct tide_new_checkpoint mark = {.size = sizeof mark, .type = TIDE_CHECKPOINT_TURN};
    tide_store *store = store_new(b, "memory");
    char id[TIDE_ID_SIZE], measured[64];
    unsigned seed = b->seed;
    struct tide_err err;
    tide_session *s;
    int64_t before;

    must(tide_session_create(store, "m", NULL, &s, &err), &err, "create");
    for (int i = 0; i < KEYS; i++)
        set_key(s, i, &seed);
    tide_session_close(s);
    tide_store_close(store);
    before = store_bytes(b, "memory");
    store = store_again(b, "memory");
    must(tide_session_open(store, "m", TIDE_SESSION_APPEND, &s, &err), &err, "open");
    for (int i = 0; i < steps; i++) {
        set_key(s, (int)((unsigned)rand_r(&seed) % KEYS), &seed);
        must(tide_checkpoint_save(s, &mark, id, &err), &err, "checkpoint");
    }
    tide_session_close(s);
    tide_store_close(store);
    before = store_bytes(b, "memory") - before;
    snprintf(measured, sizeof measured, "%.0f B a checkpoint", (double)before / steps);
    row("checkpoint of 1 MiB memory, 1 % changed, growth", measured, "10,486 B changed", (double)before / steps / VALUE,
        "<=", 3);
}

static void turn(tide_session *s, int i, unsigned *seed)
{
    static char text[4001], bodies[6][5000];
    struct tide_new_event events[6];
    struct tide_new_checkpoint mark = {.size = sizeof mark, .type = TIDE_CHECKPOINT_TURN};
    struct tide_err err;
    char id[TIDE_ID_SIZE];
    int n = i + 1;

    random_text(text, 150 + (unsigned)rand_r(seed) % 300, seed);
    snprintf(bodies[0], sizeof bodies[0], "{\"message_id\":\"msg_%06d_u\",\"turn\":%d,\"content\":\"%s\"}", n, n, text);
    random_text(text, 300 + (unsigned)rand_r(seed) % 700, seed);
    snprintf(
        bodies[1], sizeof bodies[1],
        "{\"message_id\":\"msg_%06d_a\",\"turn\":%d,\"content\":\"%s\",\"tool_calls\":[{\"id\":\"call_%06d\",\"name\":\"read\","
        "\"arguments\":{\"path\":\"src/main.c\"}}]}",
        n, n, text, n);
    snprintf(bodies[2], sizeof bodies[2],
             "{\"turn\":%d,\"call_id\":\"call_%06d\",\"tool\":\"read\",\"effect\":\"pure\"}", n, n);
    random_text(text, 500 + (unsigned)rand_r(seed) % 2500, seed);
    snprintf(bodies[3], sizeof bodies[3], "{\"turn\":%d,\"call_id\":\"call_%06d\",\"tool\":\"read\"}", n, n);
    snprintf(
        bodies[4], sizeof bodies[4],
        "{\"message_id\":\"msg_%06d_t\",\"turn\":%d,\"tool_call_id\":\"call_%06d\",\"tool_name\":\"read\",\"content\":\"%s\"}",
        n, n, n, text);
    snprintf(bodies[5], sizeof bodies[5],
             "{\"turn\":%d,\"input_tokens\":%d,\"output_tokens\":200,\"cached_tokens\":900,\"cost\":0.0031}", n,
             1000 + i * 10);
    for (int k = 0; k < 6; k++) {
        static const char *const kinds[] = {"message.user",   "message.assistant", "tool.started",
                                            "tool.completed", "message.tool",      "llm.usage"};

        events[k] = (struct tide_new_event){kinds[k], bodies[k], 0};
    }
    must(tide_session_append(s, 0, events, 6, NULL, &err), &err, "append");
    must(tide_checkpoint_save(s, &mark, id, &err), &err, "checkpoint");
}

static int add_json(void *arg, const struct tide_event *ev)
{
    struct tide_text json;

    if (tide_event_write_json(ev, &json, NULL))
        return 1;
    *(int64_t *)arg += (int64_t)json.len + 1;
    tide_text_done(&json);
    return 0;
}

static void conversation(const struct bench *b)
{
    tide_store *store = store_new(b, "talk");
    unsigned seed = b->seed;
    struct tide_err err;
    tide_session *s;
    int64_t json = 0, disk;
    char measured[64], beside[64];

    must(tide_session_create(store, "talk", "{\"agent\":\"bench\",\"title\":\"five hundred turns\"}", &s, &err), &err,
         "create");
    for (int i = 0; i < 500; i++)
        turn(s, i, &seed);
    must(tide_session_read(s, 0, 0, 0, add_json, &json, &err), &err, "read");
    tide_session_close(s);
    tide_store_close(store);
    disk = store_bytes(b, "talk");
    snprintf(measured, sizeof measured, "%.2f MiB on disk", (double)disk / (1 << 20));
    snprintf(beside, sizeof beside, "%.2f MiB of event JSON", (double)json / (1 << 20));
    row("500-turn conversation, bytes on disk per byte of JSON", measured, beside, (double)disk / (double)json,
        "<=", 1.3);
}

void bench_sizes(const struct bench *b)
{
    memory_checkpoints(b);
    conversation(b);
}
