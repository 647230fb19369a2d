/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas hand out aligned, separate memory and let go of it; out of memory is one line and exit 70. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static void allocations_are_aligned_and_do_not_overlap(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 9, 100, 4000, 4096, 5000, 70000, 1 << 20, (1 << 20) + 1, 3, 5 << 20, 24};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    AUTO(arena_done) struct arena a = ARENA_INIT;
    unsigned char *p[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        p[i] = arena_alloc(&a, sizes[i]);
        assert_int_equal((uintptr_t)p[i] % 8, 0);
        memset(p[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            if (p[i][k] != i + 1)
                fail_msg("allocation %zu was overwritten at %zu", i, k);
}

static void used_counts_what_was_handed_out_since_the_reset(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    arena_alloc(&a, 5);
    arena_alloc(&a, 8);
    assert_int_equal(a.used, 16);
    arena_alloc(&a, 2 << 20);
    assert_int_equal(a.used, 16 + (2 << 20));
    arena_reset(&a);
    assert_int_equal(a.used, 0);
}

static void a_reset_arena_reuses_its_block(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    void *first, *again;

    (void)state;
    arena_reset(&a);
    for (int i = 0; i < 1000; i++)
        arena_alloc(&a, 100);
    arena_reset(&a);
    first = arena_alloc(&a, 100);
    arena_reset(&a);
    again = arena_alloc(&a, 100);
    assert_ptr_equal(first, again);
}

static void a_giant_does_not_waste_the_block_being_filled(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char *before, *after;

    (void)state;
    before = arena_alloc(&a, 16);
    arena_alloc(&a, 8 << 20);
    after = arena_alloc(&a, 16);
    assert_ptr_equal(after, before + 16);
}

static void a_giant_is_not_kept_by_a_reset(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    arena_alloc(&a, 8 << 20);
    arena_reset(&a);
    assert_true((size_t)(a.end - a.next) <= 1 << 20);
    assert_true(a.end > a.next);
}

static void copies_are_terminated_and_zeroed_memory_is_zero(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(mem_freep) char *dup = mem_dup(STR("a\0b"));
    AUTO(mem_freep) char *empty = mem_dup((struct str){NULL, 0});
    struct str s = arena_dup(&a, STR("slice"));
    const unsigned char *zero = arena_zero(&a, 500);

    (void)state;
    assert_memory_equal(dup, "a\0b", 4);
    assert_string_equal(empty, "");
    assert_int_equal(s.len, 5);
    assert_string_equal(s.ptr, "slice");
    assert_string_equal(arena_dup(&a, (struct str){NULL, 0}).ptr, "");
    assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
    assert_string_equal(arena_printf(&a, "%s", ""), "");
    for (int i = 0; i < 500; i++)
        assert_int_equal(zero[i], 0);
}

static void nothing_is_still_something(void **state)
{
    AUTO(mem_freep) void *a = mem_alloc(0);
    AUTO(mem_freep) void *b = mem_zero(0);
    AUTO(mem_freep) void *c = mem_grow(NULL, 0);
    AUTO(mem_freep) void *d = mem_array(0, 8);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_non_null(d);
    arena_done(NULL);
}

static void taking_leaves_null_behind(void **state)
{
    char *p = mem_dup(STR("x")), *q = TAKE(p);

    (void)state;
    assert_null(p);
    assert_string_equal(q, "x");
    free(q);
}

static void out_of_memory_is_one_line_and_exit_70(void **state)
{
    char line[200] = "";
    int pipe_fds[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    child = fork();
    if (child == 0) {
        dup2(pipe_fds[1], STDERR_FILENO);
        free(mem_array(SIZE_MAX / 2, 3));
        _exit(0);
    }
    close(pipe_fds[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(pipe_fds[0], line, sizeof(line) - 1) > 0);
    close(pipe_fds[0]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 70);
    assert_string_equal(line, "tidemark: out of memory\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(used_counts_what_was_handed_out_since_the_reset),
        cmocka_unit_test(a_reset_arena_reuses_its_block),
        cmocka_unit_test(a_giant_does_not_waste_the_block_being_filled),
        cmocka_unit_test(a_giant_is_not_kept_by_a_reset),
        cmocka_unit_test(copies_are_terminated_and_zeroed_memory_is_zero),
        cmocka_unit_test(nothing_is_still_something),
        cmocka_unit_test(taking_leaves_null_behind),
        cmocka_unit_test(out_of_memory_is_one_line_and_exit_70),
    };

    return cmocka_run_group_tests_name("base/mem", tests, NULL, NULL);
}
