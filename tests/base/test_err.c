/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one table, one line, outermost context first, never a raw control byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "base/str.h"

static void every_code_has_a_name_a_text_and_its_numbers(void **state)
{
    static const struct {
        enum tide_code code;
        const char *name, *text;
        int exit, http, retry;
    } rows[] = {
#define ROW(name, number, exit, http, retry, text) {TIDE_##name, #name, text, exit, http, retry},
        TIDE_CODES(ROW)
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(tide_code_name(rows[i].code), rows[i].name);
        assert_string_equal(tide_code_text(rows[i].code), rows[i].text);
        assert_int_equal(tide_code_exit(rows[i].code), rows[i].exit);
        assert_int_equal(tide_code_http(rows[i].code), rows[i].http);
        assert_int_equal(tide_code_retry(rows[i].code), rows[i].retry);
    }
    assert_int_equal(tide_code_exit(TIDE_OK), 0);
    assert_int_equal(tide_code_http(TIDE_NOT_FOUND), 404);
    assert_int_equal(tide_code_retry(TIDE_BUSY), 1);
}

/* Programs that were built before compare numbers: none may change. */
static void numbers_are_for_good(void **state)
{
    (void)state;
    assert_int_equal(TIDE_CONFLICT, 6);
    assert_int_equal(TIDE_UNTRUSTED, 32);
    assert_int_equal(TIDE_ACTION_SHOW_TIMELINE, 25);
    assert_int_equal(TIDE_ACTION_CHECK_SETTINGS, 29);
    assert_int_equal(TIDE_KIND_GRAPH, 4);
    assert_int_equal(TIDE_STATUS_DAMAGED, 6);
    assert_int_equal(TIDE_OUTCOME_UNKNOWN, 5);
    assert_int_equal(TIDE_EFFECT_PURE, 2);
    assert_int_equal(TIDE_WAIT_OTHER, 5);
    assert_int_equal(TIDE_CHECKPOINT_USER, 7);
    assert_int_equal(TIDE_RECOVERED_INTERRUPTED, 1);
    assert_int_equal(TIDE_RECOVERED_RESUMABLE, 6);
    assert_int_equal(TIDE_PERMISSION_ALLOW, 0);
    assert_int_equal(TIDE_PERMISSION_DENY, 2);
    assert_int_equal(TIDE_ROLE_USER, 1);
    assert_int_equal(TIDE_ROLE_TOOL, 3);
    assert_int_equal(TIDE_ENSURED_DONE, 3);
    assert_int_equal(TIDE_STEP_LATER, 3);
    assert_int_equal(TIDE_CANCEL_FORCED, 3);
    assert_int_equal(TIDE_AGENT_NOTICE, 8);
    assert_int_equal(TIDE_DECIDE_DENY, 3);
    assert_int_equal(TIDE_GRAPH_TICK, 7);
}

static void words_and_values_lead_to_each_other(void **state)
{
    (void)state;
    for (int i = TIDE_STATUS_RUNNING; i <= TIDE_STATUS_DAMAGED; i++)
        assert_int_equal(tide_status_from(tide_status_name((enum tide_status)i)), i);
    for (int i = TIDE_CHECKPOINT_OTHER; i <= TIDE_CHECKPOINT_USER; i++)
        assert_int_equal(tide_checkpoint_type_from(tide_checkpoint_type_name((enum tide_checkpoint_type)i)), i);
    for (int i = TIDE_RECOVERED_INTERRUPTED; i <= TIDE_RECOVERED_RESUMABLE; i++)
        assert_int_equal(tide_recovered_action_from(tide_recovered_action_name((enum tide_recovered_action)i)), i);
    assert_int_equal(tide_recovered_action_from("token_expired"), TIDE_RECOVERED_TOKEN_EXPIRED);
    assert_int_equal(tide_recovered_action_from("deleted"), -1);
    assert_int_equal(tide_permission_from("allow"), TIDE_PERMISSION_ALLOW);
    assert_string_equal(tide_permission_name(TIDE_PERMISSION_ASK), "ask");
    assert_int_equal(tide_permission_from("maybe"), -1);
    assert_string_equal(tide_role_name(TIDE_ROLE_ASSISTANT), "assistant");
    assert_int_equal(tide_role_from("tool"), TIDE_ROLE_TOOL);
    assert_int_equal(tide_effect_from("idempotent"), TIDE_EFFECT_IDEMPOTENT);
    assert_int_equal(tide_wait_kind_from("approval"), TIDE_WAIT_APPROVAL);
    assert_int_equal(tide_outcome_from("cancelled"), TIDE_OUTCOME_CANCELLED);
    assert_int_equal(tide_action_from("rotate_token"), TIDE_ACTION_ROTATE_TOKEN);
    assert_int_equal(tide_session_kind_from("chat"), TIDE_KIND_CHAT);
    assert_int_equal(tide_session_kind_from("nonsense"), -1);
    assert_int_equal(tide_session_kind_from(NULL), -1);
    assert_string_equal(tide_effect_name((enum tide_effect)77), "unknown");
}

static void a_code_from_nowhere_counts_as_failed(void **state)
{
    (void)state;
    assert_string_equal(tide_code_name((enum tide_code)9999), "FAILED");
    assert_int_equal(tide_code_exit((enum tide_code) - 1), 1);
}

static void wrapping_puts_context_before_and_keeps_the_code(void **state)
{
    struct tide_err err;

    (void)state;
    assert_int_equal(tide_fail(&err, TIDE_FULL, "disk %d full", 3), TIDE_FULL);
    assert_int_equal(tide_wrap(&err, "read %s", "events"), TIDE_FULL);
    assert_int_equal(tide_wrap(&err, "open '%s'", "s1"), TIDE_FULL);
    assert_string_equal(err.msg, "open 's1': read events: disk 3 full");
    assert_int_equal(err.code, TIDE_FULL);
}

static void what_stands_behind_is_kept_whole_and_changes_no_type(void **state)
{
    struct tide_err err;
    char first[sizeof err.msg];

    (void)state;
    tide_fail_step(&err, TIDE_DENIED, "pay", "was refused");
    tide_hint(&err, TIDE_ACTION_WHY, "s1");
    assert_int_equal(tide_wrap_after(&err, "%s", ""), TIDE_DENIED);
    assert_string_equal(err.msg, "step 'pay' was refused");
    assert_int_equal(tide_wrap_after(&err, "check the %s", "key"), TIDE_DENIED);
    assert_string_equal(err.msg, "step 'pay' was refused: check the key");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_STEP);
    assert_string_equal(err.detail.name, "pay");
    assert_int_equal(err.hints[0].action, TIDE_ACTION_WHY);

    memset(first, 'x', sizeof first - 1);
    first[sizeof first - 1] = '\0';
    tide_fail(&err, TIDE_DENIED, "%s", first);
    tide_wrap_after(&err, "the end");
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_string_equal(err.msg + sizeof err.msg - sizeof "x: the end", "x: the end");
}

static void arguments_may_point_into_the_error(void **state)
{
    struct tide_err err;

    (void)state;
    tide_fail(&err, TIDE_IO, "inner");
    tide_fail(&err, TIDE_CORRUPT, "outer (%s)", err.msg);
    assert_string_equal(err.msg, "outer (inner)");
    tide_wrap(&err, "again %s", err.msg);
    assert_string_equal(err.msg, "again outer (inner): outer (inner)");
}

static void null_is_allowed_where_nobody_listens(void **state)
{
    (void)state;
    assert_int_equal(tide_fail(NULL, TIDE_BUSY, "x"), TIDE_BUSY);
    assert_int_equal(tide_fail_errno(NULL, ENOSPC, "x"), TIDE_FULL);
    assert_int_equal(tide_fail(NULL, TIDE_HELD, "x"), TIDE_HELD);
    assert_int_equal(tide_hint(NULL, TIDE_ACTION_CANCEL, "s"), TIDE_HELD); /* it still failed */
    assert_int_equal(tide_err_copy(NULL, &(struct tide_err){.code = TIDE_HELD}), TIDE_HELD);
}

static void messages_are_one_clean_line(void **state)
{
    static const struct {
        const char *input, *want;
    } rows[] = {
        {"two\nlines\r\n", "two?lines??"},
        {"\x1b[31mred", "?[31mred"},
        {"del \x7f", "del ?"},
        {"c1 \xc2\x9b"
         "31m",
         "c1 ??31m"},
        {"caf\xc3\xa9 \xc2\xa0 \xe2\x82\xac", "caf\xc3\xa9 \xc2\xa0 \xe2\x82\xac"},
    };
    struct tide_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tide_fail(&err, TIDE_INVALID, "%s", rows[i].input);
        assert_string_equal(err.msg, rows[i].want);
    }
}

static void a_long_message_is_cut_between_characters(void **state)
{
    struct tide_err err;
    char text[700];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 5);
        tide_fail(&err, TIDE_INVALID, "%s", text);
        assert_in_range(strlen(err.msg), sizeof(err.msg) - 4, sizeof(err.msg) - 1);
        assert_true(str_is_utf8(str_from(err.msg), NULL));
        tide_wrap(&err, "a");
        assert_in_range(strlen(err.msg), sizeof(err.msg) - 4, sizeof(err.msg) - 1);
        assert_true(str_is_utf8(str_from(err.msg), NULL));
    }
}

static void errno_becomes_the_code_that_fits(void **state)
{
    static const struct {
        int errnum;
        enum tide_code code;
        const char *text;
    } rows[] = {
        {ENOSPC, TIDE_FULL, "open 'f': No space left on device"},
        {EDQUOT, TIDE_FULL, "open 'f': Disk quota exceeded"},
        {EACCES, TIDE_DENIED, "open 'f': Permission denied"},
        {EPERM, TIDE_DENIED, "open 'f': Operation not permitted"},
        {EROFS, TIDE_READ_ONLY, "open 'f': Read-only file system"},
        {ENOENT, TIDE_NOT_FOUND, "open 'f': No such file or directory"},
        {EEXIST, TIDE_EXISTS, "open 'f': File exists"},
        {EAGAIN, TIDE_BUSY, "open 'f': Resource temporarily unavailable"},
        {EMFILE, TIDE_BUSY, "open 'f': Too many open files"},
        {ENAMETOOLONG, TIDE_INVALID, "open 'f': File name too long"},
        {EIO, TIDE_IO, "open 'f': Input/output error"},
        {99999, TIDE_IO, "open 'f': unknown system error"},
    };
    struct tide_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(tide_fail_errno(&err, rows[i].errnum, "open '%s'", "f"), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.msg, rows[i].text);
    }
}

static void a_kept_error_is_copied_whole(void **state)
{
    struct tide_err kept, err = {0};

    (void)state;
    tide_fail(&kept, TIDE_FENCED, "gone");
    assert_int_equal(tide_err_copy(&err, &kept), TIDE_FENCED);
    assert_int_equal(tide_err_copy(&err, &err), TIDE_FENCED);
    assert_string_equal(err.msg, "gone");
}

static void an_error_says_what_it_is_about(void **state)
{
    struct tide_err err;
    char long_name[300];

    (void)state;
    assert_int_equal(tide_fail_step(&err, TIDE_CHANGED, "pay", "is recorded with %s", "other arguments"), TIDE_CHANGED);
    assert_string_equal(err.msg, "step 'pay' is recorded with other arguments");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_STEP);
    assert_string_equal(err.detail.name, "pay");
    assert_string_equal(err.detail.session_id, "");
    assert_int_equal(tide_hint(&err, TIDE_ACTION_WHY, "s1"), TIDE_CHANGED); /* it knows the session, and not more */
    tide_wrap(&err, "run it");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_STEP);
    assert_string_equal(err.detail.session_id, "s1");

    tide_about_session(&err, "s2"); /* what was said nearer to it stays */
    tide_about(&err, TIDE_SUBJECT_NODE, "n");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_STEP);
    assert_string_equal(err.detail.session_id, "s1");
    assert_string_equal(err.detail.name, "pay");

    tide_fail_session(&err, TIDE_CORRUPT, "s3", ": event %d is damaged", 7);
    assert_string_equal(err.msg, "session 's3': event 7 is damaged");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_SESSION);
    assert_int_equal(tide_about_position(&err, TIDE_SUBJECT_EVENT, 7), TIDE_CORRUPT);
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_EVENT);
    assert_int_equal(err.detail.position, 7);
    assert_string_equal(err.detail.name, "");

    assert_int_equal(tide_fail_file(&err, ENOENT, "open", "/a/b"), TIDE_NOT_FOUND);
    assert_string_equal(err.msg, "open '/a/b': No such file or directory");
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_FILE);
    assert_string_equal(err.detail.name, "/a/b");
    assert_int_equal(err.detail.position, 0); /* nothing is left of the error before it */
    assert_string_equal(err.detail.session_id, "");

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    tide_fail_node(&err, TIDE_FAILED, long_name, "failed"); /* half a name is another thing's */
    assert_int_equal(err.detail.subject, TIDE_SUBJECT_NODE);
    assert_string_equal(err.detail.name, "");
    tide_fail(&err, TIDE_FAILED, "plain");
    assert_int_equal(err.detail.subject, 0);
    assert_int_equal(tide_fail_step(NULL, TIDE_HELD, "x", "y"), TIDE_HELD);
    assert_int_equal(tide_fail_file(NULL, ENOSPC, "x", "y"), TIDE_FULL);
}

static void text_is_released_and_cleared(void **state)
{
    struct tide_text text = {calloc(1, 4), 3};

    (void)state;
    tide_text_done(&text);
    assert_null(text.ptr);
    assert_int_equal(text.len, 0);
    tide_text_done(&text);
    tide_text_done(NULL);
    assert_string_equal(tide_version(), TIDE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_a_text_and_its_numbers),
        cmocka_unit_test(a_code_from_nowhere_counts_as_failed),
        cmocka_unit_test(numbers_are_for_good),
        cmocka_unit_test(words_and_values_lead_to_each_other),
        cmocka_unit_test(wrapping_puts_context_before_and_keeps_the_code),
        cmocka_unit_test(what_stands_behind_is_kept_whole_and_changes_no_type),
        cmocka_unit_test(arguments_may_point_into_the_error),
        cmocka_unit_test(null_is_allowed_where_nobody_listens),
        cmocka_unit_test(messages_are_one_clean_line),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(errno_becomes_the_code_that_fits),
        cmocka_unit_test(a_kept_error_is_copied_whole),
        cmocka_unit_test(an_error_says_what_it_is_about),
        cmocka_unit_test(text_is_released_and_cleared),
    };

    return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
