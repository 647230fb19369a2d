/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and what they mean to the model. Bodies are compact JSON, so they come back byte for byte; each carries a number
 * that no other event of the run has. Big ones share their text, so that equal big values occur.
 */
#include "world.h"

enum { BIG = 66 * 1024, BIG_TEXTS = 3 };
static char big[BIG_TEXTS][BIG + 1];

void gen_init(void)
{
    for (int i = 0; i < BIG_TEXTS; i++) {
        memset(big[i], 'a' + i, BIG);
        for (int j = 0; j < BIG; j += 97)
            big[i][j] = (char)('0' + (i + j) % 10);
    }
}

static const char *text(struct world *w)
{
    static const char words[] =
        "the quick brown fox jumps over the lazy dog and then some more of it until the line is full";
    static const char filler[1800] = {0};
    uint64_t r = rnd(w, 200);

    if (r < 3)
        return big[rnd(w, BIG_TEXTS)];
    if (r < 16) {
        char *t = arena_alloc(&w->arena, sizeof filler);

        memset(t, 'f', sizeof filler - 1);
        t[sizeof filler - 1] = 0;
        return t;
    }
    return words + rnd(w, sizeof words - 1);
}

static void set_body(struct o_event *e, const char *body)
{
    e->body = str_from(body);
}

static void gen_message(struct world *w, struct o_event *e)
{
    static const char *const kinds[] = {"message.user", "message.assistant", "message.tool"};

    e->kind = kinds[rnd(w, 3)];
    e->meaning = M_MESSAGE;
    set_body(e, arena_printf(&w->arena, "{\"turn\":%d,\"content\":\"%s\",\"tool_call_id\":\"c\",\"u\":%llu}",
                             (int)rnd(w, 9) + 1, text(w), (unsigned long long)w->unique++));
}

static void gen_memory(struct world *w, struct o_event *e)
{
    const char *value = arena_printf(&w->arena, chance(w, 50) ? "\"%s#%llu\"" : "{\"v\":\"%s\",\"u\":%llu}", text(w),
                                     (unsigned long long)w->unique++);

    e->key = (int)rnd(w, KEYS);
    e->kind = chance(w, 25) ? "memory.deleted" : "memory.set";
    if (e->kind[7] == 'd') {
        e->meaning = M_DEL;
        set_body(e,
                 arena_printf(&w->arena, "{\"keys\":[\"k%d\"],\"u\":%llu}", e->key, (unsigned long long)w->unique++));
        return;
    }
    e->meaning = M_SET;
    e->value = str_from(value);
    set_body(e, arena_printf(&w->arena, "{\"values\":{\"k%d\":%s}}", e->key, value));
}

static void gen_usage(struct world *w, struct o_event *e)
{
    e->kind = "llm.usage";
    e->meaning = M_USAGE;
    e->number = (int64_t)rnd(w, 5000);
    set_body(e, arena_printf(&w->arena,
                             "{\"turn\":%d,\"input_tokens\":%lld,\"output_tokens\":7,\"cost\":0.0012,\"u\":%llu}",
                             (int)rnd(w, 9) + 1, (long long)e->number, (unsigned long long)w->unique++));
}

static void gen_other(struct world *w, struct o_event *e)
{
    static const struct {
        const char *kind, *body;
    } others[] = {
        {"tool.started", "{\"call_id\":\"c%d\",\"tool\":\"grep\",\"effect\":\"pure\",\"u\":%llu}"},
        {"tool.completed", "{\"call_id\":\"c%d\",\"result\":\"ok\",\"u\":%llu}"},
        {"tool.failed", "{\"call_id\":\"c%d\",\"error\":\"no\",\"u\":%llu}"},
        {"node.started", "{\"node\":\"n%d\",\"u\":%llu}"},
        {"edge.taken", "{\"to\":\"n%d\",\"u\":%llu}"},
        {"output.set", "{\"node\":\"n%d\",\"values\":{\"x\":%llu}}"},
        {"run.started", "{\"run_id\":\"run_%d\",\"u\":%llu}"},
        {"run.completed", "{\"run_id\":\"run_%d\",\"u\":%llu}"},
        {"queue.taken", "{\"queue_id\":\"q%d\",\"u\":%llu}"},
        {"weather.changed", "{\"deg\":%d,\"u\":%llu}"},
        {"x.from_the_future", "{\"a\":[1,2,{\"b\":%d}],\"u\":%llu}"},
        {"x.empty", NULL},
    };
    size_t i = rnd(w, sizeof others / sizeof others[0]);

    e->kind = others[i].kind;
    if (!others[i].body) {
        set_body(e, "{}");
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    set_body(e, arena_printf(&w->arena, others[i].body, (int)rnd(w, 4), (unsigned long long)w->unique++));
#pragma GCC diagnostic pop
}

static void gen_input(struct world *w, struct o_event *e)
{
    e->kind = chance(w, 70) ? "queue.added" : "approval.given";
    e->input = true;
    set_body(e, arena_printf(&w->arena,
                             e->kind[0] == 'q' ? "{\"queue_id\":\"q%d\",\"u\":%llu}"
                                               : "{\"approval_id\":\"a%d\",\"u\":%llu}",
                             (int)rnd(w, 4), (unsigned long long)w->unique++));
}

void gen_batch(struct world *w, struct o_batch *b, size_t n, bool input)
{
    b->n = n;
    b->events = arena_zero(&w->arena, n * sizeof *b->events);
    for (size_t i = 0; i < n; i++) {
        struct o_event *e = &b->events[i];
        uint64_t r = rnd(w, 100);

        e->owner = -1;
        e->floor = w->max_pos;
        if (input)
            gen_input(w, e);
        else if (r < 40)
            gen_message(w, e);
        else if (r < 65)
            gen_memory(w, e);
        else if (r < 75)
            gen_usage(w, e);
        else
            gen_other(w, e);
    }
}

void gen_big(struct world *w, struct o_batch *b, size_t n)
{
    gen_batch(w, b, n, false);
    for (size_t i = 0; i < n; i++) {
        b->events[i] = (struct o_event){.kind = "message.user", .meaning = M_MESSAGE, .owner = -1, .floor = w->max_pos};
        set_body(&b->events[i], arena_printf(&w->arena, "{\"content\":\"%s\",\"u\":%llu}", big[i % BIG_TEXTS],
                                             (unsigned long long)w->unique++));
    }
}

struct tide_new_event *gen_public(struct world *w, const struct o_batch *b)
{
    struct tide_new_event *out = arena_zero(&w->arena, (b->n ? b->n : 1) * sizeof *out);

    for (size_t i = 0; i < b->n; i++)
        out[i] = (struct tide_new_event){b->events[i].kind, b->events[i].body.ptr, b->events[i].body.len};
    return out;
}

struct o_batch batch_one(struct world *w, const char *kind, struct str body, bool prefix, enum meaning m,
                         int64_t number)
{
    struct o_event *e = arena_zero(&w->arena, sizeof *e);

    e->kind = kind;
    e->body = arena_dup(&w->arena, body);
    e->prefix = prefix;
    e->meaning = m;
    e->number = number;
    e->owner = -1;
    e->floor = w->max_pos;
    return (struct o_batch){e, 1};
}
