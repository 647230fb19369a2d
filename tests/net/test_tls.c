/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of our own, and those that do not fit; the server speaks TLS with them (tests/cli has a client that is not ours). */
#include "kit.h"
#include "net/tls.h"

static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};

static void certificate_fits_its_key_and_no_other(void **state)
{
    AUTO(buf_done)
    struct buf crt = BUF_INIT(1 << 16), key = BUF_INIT(1 << 16), other = BUF_INIT(1 << 16),
               other_key = BUF_INIT(1 << 16);
    char print[TLS_FINGERPRINT_SIZE] = "", again[TLS_FINGERPRINT_SIZE] = "";
    struct tide_err err;

    (void)state;
    assert_int_equal(tls_make_certificate(names, &crt, &key, &err), TIDE_OK);
    assert_int_equal(tls_make_certificate(names, &other, &other_key, &err), TIDE_OK);
    assert_int_equal(tls_check_certificate(buf_cstr(&crt), buf_cstr(&key), print, &err), TIDE_OK);
    assert_int_equal(strlen(print), 64);
    assert_int_equal(tls_check_certificate(buf_cstr(&other), buf_cstr(&other_key), again, &err), TIDE_OK);
    assert_string_not_equal(print, again);
    assert_int_equal(tls_check_certificate(buf_cstr(&crt), buf_cstr(&other_key), again, &err), TIDE_INVALID);
    assert_int_equal(tls_check_certificate("no PEM", buf_cstr(&key), again, &err), TIDE_INVALID);
    assert_int_equal(tls_check_certificate(buf_cstr(&crt), "", again, &err), TIDE_INVALID);
    assert_int_equal(tls_check_certificate(buf_cstr(&crt), buf_cstr(&crt), again, &err), TIDE_INVALID);
}

static void digest_is_that_of_the_standard(void **state)
{
    unsigned char digest[20];
    char hex[41];
    struct tide_err err;

    (void)state;
    assert_int_equal(tls_sha1(STR("abc"), digest, &err), TIDE_OK);
    hex_encode(hex, digest, sizeof digest);
    assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_fits_its_key_and_no_other),
        cmocka_unit_test(digest_is_that_of_the_standard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
