/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slices need beyond comparing. The hash is SipHash under a key that differs from process to process, so that
 * nobody can choose keys that collide; it must therefore never be stored or decide an order that anyone sees. One round a
 * word and three at the end are what hash tables need; most keys are a word or two.
 */
#include "base/str.h"

#include <pthread.h>
#include <sys/auxv.h>

#include "base/scan.h"

static uint64_t hash_key[2];

/* The kernel hands every process 16 random bytes: no system call, nothing that can fail. */
static void make_hash_key(void)
{
    memcpy(hash_key, (const void *)getauxval(AT_RANDOM), sizeof(hash_key));
}

static inline uint64_t rotate_left(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static inline void sip_add(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t str_hash(struct str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t v[4], word, last = 0;
    size_t at = 0;

    pthread_once(&once, make_hash_key);
    v[0] = hash_key[0] ^ UINT64_C(0x736f6d6570736575);
    v[1] = hash_key[1] ^ UINT64_C(0x646f72616e646f6d);
    v[2] = hash_key[0] ^ UINT64_C(0x6c7967656e657261);
    v[3] = hash_key[1] ^ UINT64_C(0x7465646279746573);
    for (; s.len - at >= 8; at += 8) {
        memcpy(&word, s.ptr + at, 8);
        sip_add(v, word);
    }
    for (size_t i = at; i < s.len; i++)
        last |= (uint64_t)(unsigned char)s.ptr[i] << 8 * (i - at);
    sip_add(v, last | (uint64_t)s.len << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_blank_char(s.ptr[s.len - 1]))
        s.len--;
    while (s.len > 0 && is_blank_char(s.ptr[0]))
        s = (struct str){s.ptr + 1, s.len - 1};
    return s;
}

bool str_to_int64(struct str s, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    int64_t value = 0;

    if (s.len == (size_t)negative)
        return false;
    for (size_t i = negative; i < s.len; i++) {
        int digit = s.ptr[i] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool str_is_utf8(struct str s, size_t *ret_at)
{
    for (size_t i = 0, n; i < s.len; i += n) {
        n = utf8_len(s.ptr + i, s.len - i);
        if (n == 0) {
            if (ret_at)
                *ret_at = i;
            return false;
        }
    }
    return true;
}

bool str_is_id(struct str s)
{
    if (s.len < 1 || s.len > 64 || s.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return true;
}

void hex_encode(char *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_decode(unsigned char *out, size_t n, struct str hex)
{
    if (hex.len / 2 != n || hex.len % 2 != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex_value(hex.ptr[2 * i]), low = hex_value(hex.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}
