/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of origin against values computed elsewhere (Python), and what makes them fail: anything else than what was proved. */
#include "kit.h"

#include "store/origin.h"

static struct origin_key key_of(const char *text)
{
    struct origin_key key = {0};

    origin_key_set(&key, text, strlen(text));
    return key;
}

static struct event seventh(void)
{
    struct event ev = {.seq = 7};

    for (size_t i = 0; i < DIGEST_SIZE; i++)
        ev.digest[i] = (unsigned char)i;
    return ev;
}

static struct origin_proof from_hex(const char *hex)
{
    struct origin_proof proof = {.set = true};

    assert_int_equal(sodium_hex2bin(proof.mac, sizeof proof.mac, hex, strlen(hex), NULL, NULL, NULL), 0);
    return proof;
}

static void a_proof_is_what_the_format_says(void **state)
{
    struct origin_key key = key_of("0123456789abcdef");
    struct origin_proof proof, want = from_hex("a0c59bb2ca8a8aa6cc9096b0ba0e407e");
    struct event ev = seventh();

    (void)state;
    origin_prove(&proof, &key, STR("s1"), &ev);
    assert_true(proof.set);
    assert_memory_equal(proof.mac, want.mac, sizeof want.mac);
    assert_true(origin_holds(&proof, &key, STR("s1"), 7, ev.digest));
}

static void a_proof_of_the_first_form_is_believed(void **state)
{
    struct origin_key key = key_of("0123456789abcdef"), other = key_of("0123456789abcdeF");
    struct origin_proof first = from_hex("17f8f5aa07b8ca0b2be7729a2dd81de6");
    struct event ev = seventh();

    (void)state;
    assert_true(origin_holds(&first, &key, STR("s1"), 7, ev.digest));
    assert_false(origin_holds(&first, &key, STR("s2"), 7, ev.digest));
    assert_false(origin_holds(&first, &other, STR("s1"), 7, ev.digest));
}

static void nothing_else_is_proved(void **state)
{
    struct origin_key key = key_of("0123456789abcdef"), other = key_of("0123456789abcdeF"), none = {0};
    struct event ev = seventh();
    struct origin_proof proof, missing = {.set = false};

    (void)state;
    origin_prove(&proof, &key, STR("s1"), &ev);
    memcpy(missing.mac, proof.mac, sizeof missing.mac);
    assert_false(origin_holds(&proof, &other, STR("s1"), 7, ev.digest));
    assert_false(origin_holds(&proof, &key, STR("s2"), 7, ev.digest));
    assert_false(origin_holds(&proof, &key, STR("s"), 7, ev.digest));
    assert_false(origin_holds(&proof, &key, STR("s1"), 8, ev.digest));
    assert_false(origin_holds(&missing, &key, STR("s1"), 7, ev.digest));
    assert_false(origin_holds(&proof, &none, STR("s1"), 7, ev.digest));
    for (size_t bit = 0; bit < 8 * sizeof proof.mac; bit++) {
        struct origin_proof bad = proof;

        bad.mac[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(origin_holds(&bad, &key, STR("s1"), 7, ev.digest));
    }
    ev.digest[31] ^= 1;
    assert_false(origin_holds(&proof, &key, STR("s1"), 7, ev.digest));
    origin_prove(&proof, &none, STR("s1"), &ev);
    assert_false(proof.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proof_is_what_the_format_says),
        cmocka_unit_test(a_proof_of_the_first_form_is_believed),
        cmocka_unit_test(nothing_else_is_proved),
    };

    return cmocka_run_group_tests_name("store/origin", tests, NULL, NULL);
}
