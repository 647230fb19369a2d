/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sodium.h>
#include <time.h>

#include "net/library.h"

#define YEARS_10 ((time_t)(10 * 365 * 24) * 3600)

static struct {
    __typeof__(&gnutls_hash_fast) hash_fast;
    __typeof__(&gnutls_rnd) rnd;
    __typeof__(&gnutls_free) free_slot; /* a variable, not a function */
    __typeof__(&gnutls_strerror) strerror;
    __typeof__(&gnutls_x509_privkey_init) x509_privkey_init;
    __typeof__(&gnutls_x509_privkey_deinit) x509_privkey_deinit;
    __typeof__(&gnutls_x509_privkey_generate) x509_privkey_generate;
    __typeof__(&gnutls_x509_privkey_import) x509_privkey_import;
    __typeof__(&gnutls_x509_privkey_export2_pkcs8) x509_privkey_export2_pkcs8;
    __typeof__(&gnutls_x509_privkey_get_key_id) x509_privkey_get_key_id;
    __typeof__(&gnutls_x509_crt_init) x509_crt_init;
    __typeof__(&gnutls_x509_crt_deinit) x509_crt_deinit;
    __typeof__(&gnutls_x509_crt_import) x509_crt_import;
    __typeof__(&gnutls_x509_crt_export2) x509_crt_export2;
    __typeof__(&gnutls_x509_crt_set_version) x509_crt_set_version;
    __typeof__(&gnutls_x509_crt_set_key) x509_crt_set_key;
    __typeof__(&gnutls_x509_crt_set_serial) x509_crt_set_serial;
    __typeof__(&gnutls_x509_crt_set_activation_time) x509_crt_set_activation_time;
    __typeof__(&gnutls_x509_crt_set_expiration_time) x509_crt_set_expiration_time;
    __typeof__(&gnutls_x509_crt_set_dn) x509_crt_set_dn;
    __typeof__(&gnutls_x509_crt_set_subject_alt_name) x509_crt_set_subject_alt_name;
    __typeof__(&gnutls_x509_crt_set_basic_constraints) x509_crt_set_basic_constraints;
    __typeof__(&gnutls_x509_crt_set_key_usage) x509_crt_set_key_usage;
    __typeof__(&gnutls_x509_crt_sign2) x509_crt_sign2;
    __typeof__(&gnutls_x509_crt_get_key_id) x509_crt_get_key_id;
    __typeof__(&gnutls_x509_crt_get_fingerprint) x509_crt_get_fingerprint;
    __typeof__(&gnutls_x509_crt_get_activation_time) x509_crt_get_activation_time;
    __typeof__(&gnutls_x509_crt_get_expiration_time) x509_crt_get_expiration_time;
} tls;

static const struct library_symbol symbols[] = {
    {"gnutls_free", (void **)&tls.free_slot},
#define SYMBOL(name) LIBRARY_SYMBOL(tls, "gnutls_", name)
    SYMBOL(hash_fast),
    SYMBOL(rnd),
    SYMBOL(strerror),
    SYMBOL(x509_privkey_init),
    SYMBOL(x509_privkey_deinit),
    SYMBOL(x509_privkey_generate),
    SYMBOL(x509_privkey_import),
    SYMBOL(x509_privkey_export2_pkcs8),
    SYMBOL(x509_privkey_get_key_id),
    SYMBOL(x509_crt_init),
    SYMBOL(x509_crt_deinit),
    SYMBOL(x509_crt_import),
    SYMBOL(x509_crt_export2),
    SYMBOL(x509_crt_set_version),
    SYMBOL(x509_crt_set_key),
    SYMBOL(x509_crt_set_serial),
    SYMBOL(x509_crt_set_activation_time),
    SYMBOL(x509_crt_set_expiration_time),
    SYMBOL(x509_crt_set_dn),
    SYMBOL(x509_crt_set_subject_alt_name),
    SYMBOL(x509_crt_set_basic_constraints),
    SYMBOL(x509_crt_set_key_usage),
    SYMBOL(x509_crt_sign2),
    SYMBOL(x509_crt_get_key_id),
    SYMBOL(x509_crt_get_fingerprint),
    SYMBOL(x509_crt_get_activation_time),
    SYMBOL(x509_crt_get_expiration_time),
#undef SYMBOL
};

static struct library library = {
    .name = "libgnutls.so.30",
    .package = "libgnutls30",
    .what = "there are neither WebSockets nor TLS",
    .symbols = symbols,
    .n = sizeof symbols / sizeof symbols[0],
    .mu = PTHREAD_MUTEX_INITIALIZER,
};

enum tide_code tls_sha1(struct str bytes, unsigned char ret[20], struct tide_err *err)
{
    if (library_load(&library, err))
        return err->code;
    if (tls.hash_fast(GNUTLS_DIG_SHA1, bytes.ptr, bytes.len, ret))
        return tide_fail(err, TIDE_FAILED, "GnuTLS computes no SHA-1 here");
    return TIDE_OK;
}

static void add_name(gnutls_x509_crt_t crt, const char *name)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, name, address) == 1)
        tls.x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND);
    else if (inet_pton(AF_INET6, name, address) == 1)
        tls.x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address, 16, GNUTLS_FSAN_APPEND);
    else
        tls.x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
}

static int fill_certificate(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, const char *const *names)
{
    unsigned char serial[16];
    int failed = tls.rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

    serial[0] &= 0x7f; /* positive */
    failed = failed ? failed : tls.x509_crt_set_version(crt, 3);
    failed = failed ? failed : tls.x509_crt_set_key(crt, key);
    failed = failed ? failed : tls.x509_crt_set_serial(crt, serial, sizeof serial);
    failed = failed ? failed : tls.x509_crt_set_activation_time(crt, time(NULL) - 3600);
    failed = failed ? failed : tls.x509_crt_set_expiration_time(crt, time(NULL) + YEARS_10);
    failed = failed ? failed : tls.x509_crt_set_dn(crt, "CN=tidemark", NULL);
    failed = failed ? failed : tls.x509_crt_set_basic_constraints(crt, 0, -1);
    failed = failed ? failed : tls.x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
    for (; !failed && *names; names++)
        add_name(crt, *names);
    return failed ? failed : tls.x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0);
}

static void take_datum(gnutls_datum_t *from, struct buf *to)
{
    buf_add(to, from->data, from->size);
    if (from->data) {
        sodium_memzero(from->data, from->size);
        (*tls.free_slot)(from->data);
    }
}

enum tide_code tls_make_certificate(const char *const *names, struct buf *ret_certificate, struct buf *ret_key,
                                    struct tide_err *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t crt = NULL;
    gnutls_datum_t pem = {0}, key_pem = {0};
    int failed;

    if (library_load(&library, err))
        return err->code;
    failed = tls.x509_privkey_init(&key);
    failed = failed ? failed : tls.x509_crt_init(&crt);
    failed = failed
                 ? failed
                 : tls.x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    failed = failed ? failed : fill_certificate(crt, key, names);
    failed = failed ? failed : tls.x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);
    failed =
        failed ? failed : tls.x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &key_pem);
    take_datum(&pem, ret_certificate);
    take_datum(&key_pem, ret_key);
    if (crt)
        tls.x509_crt_deinit(crt);
    if (key)
        tls.x509_privkey_deinit(key);
    return failed ? tide_fail(err, TIDE_FAILED, "make a certificate: %s", tls.strerror(failed)) : TIDE_OK;
}

/* The key's digest, by which a certificate and its key are known to fit. */
static enum tide_code check_pair(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, struct tide_err *err)
{
    unsigned char of_crt[32], of_key[32];
    size_t n = sizeof of_crt, m = sizeof of_key;
    time_t now = time(NULL);

    if (tls.x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, of_crt, &n) ||
        tls.x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &m) || n != m ||
        memcmp(of_crt, of_key, n) != 0)
        return tide_fail(err, TIDE_INVALID, "the certificate is of another key: give the key that it was made with");
    if (tls.x509_crt_get_expiration_time(crt) <= now)
        return tide_fail(err, TIDE_INVALID, "the certificate has expired: give one that is valid");
    if (tls.x509_crt_get_activation_time(crt) > now)
        return tide_fail(err, TIDE_INVALID, "the certificate is not valid yet: look at the clock, or give another");
    return TIDE_OK;
}

enum tide_code tls_pin(const char *certificate, char ret[TLS_PIN_SIZE], struct tide_err *err)
{
    gnutls_datum_t pem = {(unsigned char *)certificate, (unsigned)strlen(certificate)};
    gnutls_x509_crt_t crt = NULL;
    unsigned char digest[32];
    size_t n = sizeof digest;
    bool ok;

    if (library_load(&library, err))
        return err->code;
    ok = !tls.x509_crt_init(&crt) && !tls.x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM) &&
         !tls.x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, digest, &n) && n == sizeof digest;
    if (crt)
        tls.x509_crt_deinit(crt);
    if (!ok)
        return tide_fail(err, TIDE_INVALID, "the certificate is not a PEM certificate");
    memcpy(ret, "sha256//", 8);
    sodium_bin2base64(ret + 8, TLS_PIN_SIZE - 8, digest, n, sodium_base64_VARIANT_ORIGINAL);
    return TIDE_OK;
}

enum tide_code tls_check_certificate(const char *certificate, const char *key,
                                     char ret_fingerprint[TLS_FINGERPRINT_SIZE], struct tide_err *err)
{
    gnutls_datum_t crt_pem = {(unsigned char *)certificate, (unsigned)strlen(certificate)};
    gnutls_datum_t key_pem = {(unsigned char *)key, (unsigned)strlen(key)};
    gnutls_x509_privkey_t k = NULL;
    gnutls_x509_crt_t crt = NULL;
    unsigned char digest[32];
    size_t n = sizeof digest;
    enum tide_code code;

    if (library_load(&library, err))
        return err->code;
    if (tls.x509_crt_init(&crt) || tls.x509_crt_import(crt, &crt_pem, GNUTLS_X509_FMT_PEM))
        code = tide_fail(err, TIDE_INVALID, "the certificate is not a PEM certificate");
    else if (tls.x509_privkey_init(&k) || tls.x509_privkey_import(k, &key_pem, GNUTLS_X509_FMT_PEM))
        code = tide_fail(err, TIDE_INVALID, "the key is not a PEM key, or it has a password: give one without");
    else
        code = check_pair(crt, k, err);
    if (!code && !tls.x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256, digest, &n))
        hex_encode(ret_fingerprint, digest, n);
    if (crt)
        tls.x509_crt_deinit(crt);
    if (k)
        tls.x509_privkey_deinit(k);
    return code;
}
