/* SPDX-License-Identifier: Apache-2.0 */
/* The map keeps what it is given, in the order it was given, through growth and removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

/* "a b c": the keys as they are walked. */
static const char *keys_of(const struct map *m, struct buf *out)
{
    buf_clear(out);
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) {
        if (out->len)
            buf_add_char(out, ' ');
        buf_add_str(out, map_key(e));
    }
    return buf_cstr(out);
}

static void an_empty_map_has_nothing(void **state)
{
    struct map m = {0};

    (void)state;
    assert_null(map_get(&m, STR("a")));
    assert_null(map_remove(&m, STR("a")));
    assert_null(map_next(&m, NULL));
    map_done(&m, NULL);
    map_done(NULL, NULL);
}

static void putting_again_replaces_the_value_and_keeps_the_place(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(100);
    struct map m = {0};
    int one, two, three;

    (void)state;
    assert_null(map_put(&m, STR("b"), &one));
    assert_null(map_put(&m, STR("a"), &two));
    assert_ptr_equal(map_put(&m, STR("b"), &three), &one);
    assert_ptr_equal(map_get(&m, STR("b")), &three);
    assert_string_equal(keys_of(&m, &out), "b a");
    assert_int_equal(m.live, 2);
    map_done(&m, NULL);
}

static void removing_leaves_the_others_in_order(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(100);
    struct map m = {0};
    int x;

    (void)state;
    map_put(&m, STR("a"), &x);
    map_put(&m, STR("b"), &x);
    map_put(&m, STR("c"), &x);
    assert_ptr_equal(map_remove(&m, STR("b")), &x);
    assert_null(map_remove(&m, STR("b")));
    assert_null(map_get(&m, STR("b")));
    assert_string_equal(keys_of(&m, &out), "a c");
    map_put(&m, STR("b"), &x);
    assert_string_equal(keys_of(&m, &out), "a c b");
    map_done(&m, NULL);
}

static void keys_are_bytes_and_are_copied(void **state)
{
    char key[] = "key";
    struct map m = {0};
    int x, y, z;

    (void)state;
    map_put(&m, str_from(key), &x);
    key[0] = 'K';
    assert_ptr_equal(map_get(&m, STR("key")), &x);
    map_put(&m, STR("a\0b"), &y);
    map_put(&m, STR(""), &z);
    assert_ptr_equal(map_get(&m, STR("a\0b")), &y);
    assert_null(map_get(&m, STR("a\0c")));
    assert_ptr_equal(map_get(&m, STR("")), &z);
    map_done(&m, NULL);
}

static void removing_while_walking_is_allowed(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct map m = {0};
    int x;

    (void)state;
    for (int i = 0; i < 100; i++)
        map_put(&m, str_from(arena_printf(&a, "%d", i)), &x);
    for (struct map_entry *e = map_next(&m, NULL); e; e = map_next(&m, e))
        map_remove(&m, map_key(e));
    assert_int_equal(m.live, 0);
    assert_null(map_next(&m, NULL));
    map_done(&m, NULL);
}

static void churn_does_not_grow_the_map(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct map m = {0};
    int x;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct str key = str_from(arena_printf(&a, "%d", i));

        assert_null(map_put(&m, key, &x));
        assert_ptr_equal(map_remove(&m, key), &x);
    }
    assert_true(m.slot_count <= 16);
    assert_true(m.cap <= 16);
    map_done(&m, NULL);
}

/* The model: an array of values by number, and the order numbers were put in. */
static void it_agrees_with_a_plain_array_under_random_use(void **state)
{
    enum { KEYS = 500, STEPS = 200000 };
    static int values[KEYS], in[KEYS], put_at[KEYS];
    uint32_t random = 12345;
    struct map m = {0};
    size_t live = 0;
    int last = -1;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        char key[8];
        unsigned k = (random = random * 1664525 + 1013904223) >> 8;
        unsigned what = k / KEYS % 3;

        k %= KEYS;
        snprintf(key, sizeof(key), "k%u", k);
        if (what == 0) {
            assert_ptr_equal(map_get(&m, str_from(key)), in[k] ? &values[k] : NULL);
        } else if (what == 1) {
            assert_ptr_equal(map_put(&m, str_from(key), &values[k]), in[k] ? &values[k] : NULL);
            put_at[k] = in[k] ? put_at[k] : step;
            live += !in[k];
            in[k] = 1;
        } else {
            assert_ptr_equal(map_remove(&m, str_from(key)), in[k] ? &values[k] : NULL);
            live -= (size_t)in[k];
            in[k] = 0;
        }
        assert_int_equal(m.live, live);
    }
    for (struct map_entry *e = map_next(&m, NULL); e; e = map_next(&m, e)) {
        int at = put_at[(int *)e->value - values];

        assert_true(at > last);
        last = at;
        live--;
    }
    assert_int_equal(live, 0);
    map_done(&m, NULL);
}

static int freed;
static void count_free(void *value)
{
    (void)value;
    freed++;
}

static void done_frees_each_live_value_once(void **state)
{
    struct map m = {0};
    int x;

    (void)state;
    map_put(&m, STR("a"), &x);
    map_put(&m, STR("b"), &x);
    map_put(&m, STR("c"), &x);
    map_remove(&m, STR("a"));
    map_done(&m, count_free);
    assert_int_equal(freed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(putting_again_replaces_the_value_and_keeps_the_place),
        cmocka_unit_test(removing_leaves_the_others_in_order),
        cmocka_unit_test(keys_are_bytes_and_are_copied),
        cmocka_unit_test(removing_while_walking_is_allowed),
        cmocka_unit_test(churn_does_not_grow_the_map),
        cmocka_unit_test(it_agrees_with_a_plain_array_under_random_use),
        cmocka_unit_test(done_frees_each_live_value_once),
    };

    return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
