/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b-256 against values computed elsewhere (Python's hashlib), and framing that keeps fields apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest.h"

#define ABC_KEY_64 "dff38c978666dff5631db35ca15535520d134f5c8060ea569c6a178ad393719f"

static const char *hex_of(struct digest_state *d)
{
    static char text[2 * DIGEST_SIZE + 1];
    unsigned char out[DIGEST_SIZE];

    digest_end(d, out);
    hex_encode(text, out, sizeof(out));
    return text;
}

static void digests_are_blake2b_256(void **state)
{
    static const struct {
        struct str input;
        const char *want;
    } rows[] = {
        {{NULL, 0}, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
        {STR("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned char out[DIGEST_SIZE];
        char text[2 * DIGEST_SIZE + 1];

        digest_of(out, rows[i].input);
        hex_encode(text, out, sizeof(out));
        assert_string_equal(text, rows[i].want);
    }
}

static void a_key_changes_the_digest_and_none_does_not(void **state)
{
    struct digest_key none = {.len = 0}, k16 = {.bytes = "0123456789abcdef", .len = 16}, k64 = {.len = 64};
    const struct {
        const struct digest_key *key;
        const char *want;
    } rows[] = {
        {NULL, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
        {&none, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
        {&k16, "66b4857d42c644c61fca8c0bcea243e0e75088582c7964bbac6b92c02381d9c7"},
        {&k64, ABC_KEY_64},
    };

    (void)state;
    for (int i = 0; i < 64; i++)
        k64.bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct digest_state d;

        digest_begin(&d, rows[i].key);
        digest_add(&d, "a", 1);
        digest_add(&d, "bc", 2);
        assert_string_equal(hex_of(&d), rows[i].want);
    }
}

static void integers_and_strings_are_framed_little_endian(void **state)
{
    struct digest_state d;

    (void)state;
    digest_begin(&d, NULL);
    digest_add_int(&d, 0x0102030405060708);
    digest_add_str(&d, STR("ab"));
    digest_add_str(&d, STR("c"));
    digest_add_str(&d, (struct str){NULL, 0});
    assert_string_equal(hex_of(&d), "ccf6ea3f58725825aef923191388a0948e4a93fb67dab9a9cdc7fd4cfaaf8767");
}

static void fields_cannot_run_together(void **state)
{
    struct digest_state one, other;
    char text[2 * DIGEST_SIZE + 1];

    (void)state;
    digest_begin(&one, NULL);
    digest_add_str(&one, STR("ab"));
    digest_add_str(&one, STR("c"));
    digest_begin(&other, NULL);
    digest_add_str(&other, STR("a"));
    digest_add_str(&other, STR("bc"));
    memcpy(text, hex_of(&one), sizeof(text));
    assert_string_not_equal(text, hex_of(&other));
}

/* However the bytes come: small ones are gathered, and the pieces around that limit are the ones to get wrong. */
static void pieces_are_the_whole(void **state)
{
    static char text[2000];
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31);
    digest_of(want, (struct str){text, sizeof text});
    for (size_t piece = 1; piece <= 600; piece++) {
        struct digest_state d;

        digest_begin(&d, NULL);
        for (size_t at = 0; at < sizeof text; at += piece)
            digest_add(&d, text + at, piece < sizeof text - at ? piece : sizeof text - at);
        digest_end(&d, got);
        assert_memory_equal(got, want, sizeof want);
    }
}

static void a_mac_is_siphash_2_4_128(void **state)
{
    /* The first and the eighth of the vectors that SipHash was published with. */
    static const char *const wants[] = {"a3817f04ba25a8e66df67214c7550293", "a1f1ebbed8dbc153c0b84aa61ff08239"};
    unsigned char key[SHORT_KEY_SIZE], out[MAC_SIZE];
    char text[2 * MAC_SIZE + 1];

    (void)state;
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    for (size_t i = 0; i < 2; i++) {
        digest_mac(out, key, key, i * 7);
        assert_string_equal(sodium_bin2hex(text, sizeof text, out, sizeof out), wants[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_blake2b_256),
        cmocka_unit_test(a_key_changes_the_digest_and_none_does_not),
        cmocka_unit_test(integers_and_strings_are_framed_little_endian),
        cmocka_unit_test(fields_cannot_run_together),
        cmocka_unit_test(pieces_are_the_whole),
        cmocka_unit_test(a_mac_is_siphash_2_4_128),
    };

    return cmocka_run_group_tests_name("base/digest", tests, NULL, NULL);
}
