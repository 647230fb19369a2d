/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slices need beyond comparing. The hash is SipHash under a key that differs from process to process, so that
 * nobody can choose keys that collide; it must therefore never be stored or decide an order that anyone sees.
 */
#include "base/str.h"

#include <pthread.h>
#include <sodium.h>
#include <sys/auxv.h>

#include "base/scan.h"

static unsigned char hash_key[crypto_shorthash_KEYBYTES];

/* The kernel hands every process 16 random bytes: no system call, nothing that can fail. */
static void make_hash_key(void)
{
    memcpy(hash_key, (const void *)getauxval(AT_RANDOM), sizeof(hash_key));
}

uint64_t str_hash(struct str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t hash;

    pthread_once(&once, make_hash_key);
    crypto_shorthash((unsigned char *)&hash, (const unsigned char *)s.ptr, s.len, hash_key);
    return hash;
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
