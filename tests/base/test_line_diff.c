/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of texts: hunks as people know them, right whatever the texts are, and bounded. */
#include "base/line_diff.h"

#include "base/mem.h"
#include "kit.h"

static void hunks_look_as_people_know_them(void **state)
{
    static const struct {
        const char *name, *before, *after, *want;
    } rows[] = {
        {"equal", "a\nb\n", "a\nb\n", ""},
        {"one line", "a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
        {"a new file", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
        {"emptied", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
        {"three lines around", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
         "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
        {"two hunks", "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "x\n1\n2\n3\n4\n5\n6\n7\ny\n",
         "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n"},
        {"near ones are one", "a\n1\n2\n3\n4\n5\n6\nb\n", "x\n1\n2\n3\n4\n5\n6\ny\n",
         "@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n"},
        {"what stays in the middle", "a\nk\nb\n", "c\nk\nd\n", "@@ -1,3 +1,3 @@\n-a\n+c\n k\n-b\n+d\n"},
        {"no line end", "a\n", "a", "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(buf_done) struct buf out = BUF_INIT(1 << 16);

        line_diff(&out, str_from(rows[i].before), str_from(rows[i].after), 100);
        if (strcmp(buf_cstr(&out), rows[i].want) != 0)
            fail_msg("%s:\n%s\nwant\n%s", rows[i].name, buf_cstr(&out), rows[i].want);
    }
}

static void what_is_too_long_is_cut_and_counted(void **state)
{
    AUTO(buf_done) struct buf after = BUF_INIT(1 << 16), out = BUF_INIT(1 << 16);

    (void)state;
    for (int i = 0; i < 10; i++)
        buf_addf(&after, "%d\n", i);
    line_diff(&out, STR(""), buf_view(&after), 4);
    assert_string_equal(buf_cstr(&out), "@@ -0,0 +1,10 @@\n+0\n+1\n+2\n… 7 more lines are not shown\n");
}

/* Applies the hunks: whatever the texts are, the diff leads from the one to the other. */
static void apply(struct str before, struct str diff, struct buf *out)
{
    size_t line = 0;

    while (diff.len > 0) {
        const char *end = memchr(diff.ptr, '\n', diff.len);
        struct str d = {diff.ptr, (size_t)(end - diff.ptr) + 1};
        size_t from = 0;

        diff = (struct str){diff.ptr + d.len, diff.len - d.len};
        if (d.ptr[0] == '@') {
            assert_int_equal(sscanf(d.ptr, "@@ -%zu", &from), 1);
            from = from ? from - 1 : 0;
        }
        for (; before.len > 0 && ((d.ptr[0] == '@' && line < from) || d.ptr[0] == ' ' || d.ptr[0] == '-'); line++) {
            size_t n = (size_t)((const char *)memchr(before.ptr, '\n', before.len) - before.ptr) + 1;

            if (d.ptr[0] == '@')
                buf_add(out, before.ptr, n);
            else
                assert_memory_equal(d.ptr + 1, before.ptr, n);
            before = (struct str){before.ptr + n, before.len - n};
            if (d.ptr[0] != '@') {
                line++;
                break;
            }
        }
        if (d.ptr[0] == ' ' || d.ptr[0] == '+')
            buf_add(out, d.ptr + 1, d.len - 1);
    }
    buf_add_str(out, before);
}

static void any_two_texts_differ_by_their_diff(void **state)
{
    struct rng rng = {7};

    (void)state;
    for (int round = 0; round < 3000; round++) {
        AUTO(buf_done) struct buf first = BUF_INIT(1 << 16), second = BUF_INIT(1 << 16);
        AUTO(buf_done) struct buf diff = BUF_INIT(1 << 16), made = BUF_INIT(1 << 16);

        for (int t = 0; t < 2; t++)
            for (int64_t i = rng_below(&rng, 30); i > 0; i--)
                buf_addf(t ? &second : &first, "%c\n", (int)('a' + rng_below(&rng, 4)));
        line_diff(&diff, buf_view(&first), buf_view(&second), 1000);
        apply(buf_view(&first), buf_view(&diff), &made);
        if (strcmp(buf_cstr(&made), buf_cstr(&second)) != 0)
            fail_msg("round %d:\n%s\nto\n%s\nby\n%s\ngave\n%s", round, buf_cstr(&first), buf_cstr(&second),
                     buf_cstr(&diff), buf_cstr(&made));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hunks_look_as_people_know_them),
        cmocka_unit_test(what_is_too_long_is_cut_and_counted),
        cmocka_unit_test(any_two_texts_differ_by_their_diff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
