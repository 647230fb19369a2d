/* SPDX-License-Identifier: Apache-2.0 */
/* Codes to sign in with: once, within their minute, by the clock that is given. */
#include "kit.h"
#include "server/signin.h"

static const struct caller reader = {.name = "reader", .id = "0000000000000001", .scopes = SCOPE_READ};
static const struct caller owner = {.name = "local", .scopes = SCOPE_ALL};

static struct signin *start(void **state)
{
    (void)state;
    return signin_new();
}

static const char *make(struct signin *s, const struct caller *by, unsigned scopes, int64_t now_ms)
{
    static char code[SIGNIN_CODE_SIZE];
    struct tide_err err;

    assert_int_equal(signin_make(s, by, scopes, now_ms, code, &err), TIDE_OK);
    return code;
}

static enum signin_verdict try(struct signin *s, const char *code, int64_t now_ms)
{
    struct caller by;
    unsigned scopes;

    return signin_use(s, str_from(code), now_ms, &by, &scopes);
}

static void a_code_is_good_once(void **state)
{
    struct signin *s = start(state);
    struct caller by = {.id = "x"};
    unsigned scopes = 0;
    char code[SIGNIN_CODE_SIZE];

    snprintf(code, sizeof code, "%s", make(s, &reader, SCOPE_ALL, 1000));
    assert_int_equal(signin_use(s, str_from(code), 1000, &by, &scopes), SIGNIN_OK);
    assert_string_equal(by.id, reader.id);
    assert_int_equal(scopes, SCOPE_READ); /* never more than who made it */
    assert_int_equal(try(s, code, 1000), SIGNIN_OVER);
    signin_give_back(s, str_from(code));
    assert_int_equal(try(s, code, 1000), SIGNIN_OK);
    assert_int_equal(try(s, "", 1000), SIGNIN_UNKNOWN);
    code[0] = code[0] == 'A' ? 'B' : 'A';
    assert_int_equal(try(s, code, 1000), SIGNIN_UNKNOWN);
    signin_free(s);
}

static void a_code_is_good_for_a_minute(void **state)
{
    struct signin *s = start(state);
    char code[SIGNIN_CODE_SIZE];

    snprintf(code, sizeof code, "%s", make(s, &owner, SCOPE_ALL, 5));
    assert_int_equal(try(s, code, 5 + SIGNIN_CODE_MS), SIGNIN_OVER);
    signin_give_back(s, str_from(code)); /* that does not make it younger */
    assert_int_equal(try(s, code, 5 + SIGNIN_CODE_MS), SIGNIN_OVER);
    assert_int_equal(try(s, code, 4 + SIGNIN_CODE_MS), SIGNIN_OK);
    signin_free(s);
}

static void there_are_so_many_at_once(void **state)
{
    struct signin *s = start(state);
    char codes[SIGNIN_CODES_MAX][SIGNIN_CODE_SIZE], more[SIGNIN_CODE_SIZE];
    struct caller by = reader;
    struct tide_err err;

    for (int i = 0; i < SIGNIN_CODES_MAX; i++) {
        snprintf(by.id, sizeof by.id, "%d", i / SIGNIN_CODES_EACH);
        snprintf(codes[i], sizeof codes[i], "%s", make(s, &by, SCOPE_READ, 100 + i));
    }
    snprintf(by.id, sizeof by.id, "another");
    assert_int_equal(signin_make(s, &by, SCOPE_READ, 200, more, &err), TIDE_BUSY);
    snprintf(by.id, sizeof by.id, "1");
    assert_int_equal(signin_make(s, &by, SCOPE_READ, 200, more, &err), TIDE_OK);
    assert_int_equal(try(s, codes[SIGNIN_CODES_EACH], 200), SIGNIN_OVER); /* its own oldest one made room */
    assert_int_equal(signin_make(s, &owner, SCOPE_READ, 200, more, &err), TIDE_OK);
    assert_int_equal(try(s, codes[0], 200), SIGNIN_OVER);
    assert_int_equal(try(s, codes[1], 200), SIGNIN_OK);
    for (int i = 0; i < 1000; i++) /* what is over is forgotten in the end, what is not never */
        assert_int_equal(try(s, make(s, &reader, SCOPE_READ, 300), 300), SIGNIN_OK);
    assert_int_equal(try(s, codes[2], 300), SIGNIN_OK);
    assert_int_equal(try(s, codes[0], 300), SIGNIN_UNKNOWN);
    signin_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_is_good_once),
        cmocka_unit_test(a_code_is_good_for_a_minute),
        cmocka_unit_test(there_are_so_many_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
