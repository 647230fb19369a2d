/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an item of a map costs does not grow with the map, however many items fail: counted in walks over and looks into
 * maps of the library (map_next, map_get), and in bytes of the log, not in time.
 */
#include <stdatomic.h>

#include "graph_resumes.h"

#define FEW 100
#define MANY 1600
#define MOST 3 /* times as many for an item of many */

static _Atomic size_t counted;

struct map_entry *__real_map_next(const struct map *m, struct map_entry *after);
struct map_entry *__wrap_map_next(const struct map *m, struct map_entry *after);
void *__real_map_get(const struct map *m, struct str key);
void *__wrap_map_get(const struct map *m, struct str key);

/* A walk over holes counts as one over entries. */
struct map_entry *__wrap_map_next(const struct map *m, struct map_entry *after)
{
    struct map_entry *next = __real_map_next(m, after);

    counted += (next ? (size_t)(next - m->entries) : m->len) - (after ? (size_t)(after - m->entries) : 0) + 1;
    return next;
}

void *__wrap_map_get(const struct map *m, struct str key)
{
    counted++;
    return __real_map_get(m, key);
}

#define FAILS "\"type\":\"lua\",\"retries\":0,\"code\":\"error('no')\",\"outputs\":[\"k\"]"
#define WORKS "\"type\":\"lua\",\"code\":\"return {k = 1}\",\"outputs\":[\"k\"]"
#define HALF                                                                                                           \
    "\"type\":\"lua\",\"retries\":0,\"code\":\"if inputs.item % 2 == 0 then error('no') end return {k = 1}\","         \
    "\"outputs\":[\"k\"]"
#define INSIDE(inputs, last)                                                                                           \
    "\"type\":\"subgraph\"," inputs                                                                                    \
    "\"outputs\":[\"k\"],\"graph\":{\"tidemark_graph\":1,\"id\":\"i\",\"entry\":\"a\","                                \
    "\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {a = 1}\",\"outputs\":[\"a\"]},"                      \
    "{\"id\":\"b\"," last "}],\"edges\":[{\"from\":\"a\",\"to\":\"b\",\"on\":\"conditional\","                         \
    "\"when\":\"memory.a == 1\"}]}"
#define INPUTS "\"inputs\":[\"item\"],"
#define GRAPH_OF(node)                                                                                                 \
    "\"type\":\"subgraph\",\"outputs\":[\"k\"],\"graph\":{\"tidemark_graph\":1,\"id\":\"o\",\"entry\":\"c\","          \
    "\"memory\":{\"two\":[1,2]},\"nodes\":[{\"id\":\"c\"," node "}]}"
#define MAP_OF(node) "\"type\":\"map\",\"over\":\"two\",\"outputs\":[\"k\"],\"node\":{" node "}"

static const struct {
    const char *name, *mode, *node;
    enum tide_code want;
} rows[] = {
    {"all complete", "wait_all", WORKS, TIDE_OK},
    {"all fail, and all are waited for", "wait_all", FAILS, TIDE_FAILED},
    {"half of them fail", "wait_all", HALF, TIDE_FAILED},
    {"all fail, and it continues", "continue", FAILS, TIDE_OK},
    {"graphs", "wait_all", INSIDE(INPUTS, WORKS), TIDE_OK},
    {"graphs that fail", "wait_all", INSIDE(INPUTS, FAILS), TIDE_FAILED},
    {"half of the graphs fail", "wait_all", INSIDE(INPUTS, HALF), TIDE_FAILED},
    {"graphs with all of the memory", "wait_all", INSIDE("", WORKS), TIDE_OK},
    {"graphs with all of the memory, half of them fail", "wait_all", INSIDE("", HALF), TIDE_FAILED},
    {"graphs in graphs", "wait_all", GRAPH_OF(INSIDE("", WORKS)), TIDE_OK},
    {"maps of graphs in graphs", "wait_all", GRAPH_OF(MAP_OF(INSIDE("", WORKS))), TIDE_OK},
    {"maps of graphs", "wait_all", MAP_OF(INSIDE("", WORKS)), TIDE_OK},
};

enum { RUN, RESUME, BYTES, COSTS };
static const char *const costs[COSTS] = {"", ", resumed", ", bytes of the log"};

static int add_bytes(void *bytes, const struct tide_event *ev)
{
    *(size_t *)bytes += ev->body_len;
    return 0;
}

/* An item of so many: what it costs to run them, and to resume those that failed. */
static void cost(size_t row, int items, size_t ret[COSTS])
{
    const struct tide_graph_options opt = {.size = sizeof opt, .threads = 1};
    AUTO(buf_done) struct buf json = BUF_INIT(1 << 20);
    tide_session *s;
    struct life l;

    buf_addf(&json, "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"m\",\"max_steps\":0,\"branch_failure\":\"%s\",",
             rows[row].mode);
    buf_add_str(&json, STR("\"memory\":{\"two\":[1,2],\"list\":["));
    for (int i = 0; i < items; i++)
        buf_addf(&json, i ? ",%d" : "%d", i);
    buf_addf(&json,
             "]},\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"outputs\":[\"k\"],\"node\":{%s}}]}",
             rows[row].node);
    begin(&l, buf_cstr(&json));
    for (int again = 0; again < (rows[row].want ? 2 : 1); again++) {
        counted = 0;
        assert_int_equal(go(&l, &opt), rows[row].want);
        ret[again] = counted / (size_t)items;
    }
    s = open_session(&l);
    OK(tide_session_read(s, 0, 1, 0, add_bytes, &ret[BYTES], &err));
    ret[BYTES] /= (size_t)items;
    tide_session_close(s);
    end(&l);
}

static void an_item_costs_the_same_however_many_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t few[COSTS] = {0}, many[COSTS] = {0};

        cost(i, FEW, few);
        cost(i, MANY, many);
        assert_true(few[0] > 0);
        for (int c = 0; c < COSTS; c++)
            if (many[c] > MOST * few[c])
                fail_msg("%s%s: %zu for an item of %d, %zu for one of %d", rows[i].name, costs[c], few[c], FEW, many[c],
                         MANY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_item_costs_the_same_however_many_there_are)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
