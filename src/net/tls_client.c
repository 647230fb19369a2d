/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_client.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sodium.h>
#include <stdio.h>

#include "base/mem.h"
#include "net/library.h"
#include "net/tls.h"

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static struct {
    __typeof__(&gnutls_free) free_slot; /* a variable, not a function */
    __typeof__(&gnutls_strerror) strerror;
    __typeof__(&gnutls_init) init;
    __typeof__(&gnutls_deinit) deinit;
    __typeof__(&gnutls_priority_set_direct) priority_set_direct;
    __typeof__(&gnutls_server_name_set) server_name_set;
    __typeof__(&gnutls_certificate_allocate_credentials) certificate_allocate_credentials;
    __typeof__(&gnutls_certificate_free_credentials) certificate_free_credentials;
    __typeof__(&gnutls_certificate_set_x509_system_trust) certificate_set_x509_system_trust;
    __typeof__(&gnutls_credentials_set) credentials_set;
    __typeof__(&gnutls_transport_set_int2) transport_set_int2;
    __typeof__(&gnutls_handshake) handshake;
    __typeof__(&gnutls_record_get_direction) record_get_direction;
    __typeof__(&gnutls_certificate_get_peers) certificate_get_peers;
    __typeof__(&gnutls_certificate_verify_peers3) certificate_verify_peers3;
    __typeof__(&gnutls_certificate_verification_status_print) certificate_verification_status_print;
    __typeof__(&gnutls_x509_crt_init) x509_crt_init;
    __typeof__(&gnutls_x509_crt_deinit) x509_crt_deinit;
    __typeof__(&gnutls_x509_crt_import) x509_crt_import;
    __typeof__(&gnutls_x509_crt_get_key_id) x509_crt_get_key_id;
    __typeof__(&gnutls_record_send) record_send;
    __typeof__(&gnutls_record_recv) record_recv;
} tls;

static const struct library_symbol symbols[] = {
    {"gnutls_free", (void **)&tls.free_slot},
#define SYMBOL(name) LIBRARY_SYMBOL(tls, "gnutls_", name)
    SYMBOL(strerror),
    SYMBOL(init),
    SYMBOL(deinit),
    SYMBOL(priority_set_direct),
    SYMBOL(server_name_set),
    SYMBOL(certificate_allocate_credentials),
    SYMBOL(certificate_free_credentials),
    SYMBOL(certificate_set_x509_system_trust),
    SYMBOL(credentials_set),
    SYMBOL(transport_set_int2),
    SYMBOL(handshake),
    SYMBOL(record_get_direction),
    SYMBOL(certificate_get_peers),
    SYMBOL(certificate_verify_peers3),
    SYMBOL(certificate_verification_status_print),
    SYMBOL(x509_crt_init),
    SYMBOL(x509_crt_deinit),
    SYMBOL(x509_crt_import),
    SYMBOL(x509_crt_get_key_id),
    SYMBOL(record_send),
    SYMBOL(record_recv),
#undef SYMBOL
};

static struct library library = {
    .name = "libgnutls.so.30",
    .package = "libgnutls30",
    .what = "no server can be reached by TLS",
    .symbols = symbols,
    .n = sizeof symbols / sizeof symbols[0],
    .mu = PTHREAD_MUTEX_INITIALIZER,
};

struct tls_client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    char *host, *pin;
};

static bool is_address(const char *host)
{
    unsigned char address[16];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int set_up(struct tls_client *t, int fd)
{
    int failed = tls.init(&t->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

    failed = failed ? failed : tls.priority_set_direct(t->session, PRIORITIES, NULL);
    failed = failed ? failed : tls.certificate_allocate_credentials(&t->credentials);
    if (!failed && !t->pin && tls.certificate_set_x509_system_trust(t->credentials) < 0)
        failed = GNUTLS_E_NO_CERTIFICATE_FOUND;
    failed = failed ? failed : tls.credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials);
    if (!failed && !is_address(t->host))
        failed = tls.server_name_set(t->session, GNUTLS_NAME_DNS, t->host, strlen(t->host));
    if (!failed)
        tls.transport_set_int2(t->session, fd, fd);
    return failed;
}

enum tide_code tls_client_new(int fd, const char *host, const char *pin, struct tls_client **ret, struct tide_err *err)
{
    struct tls_client *t;
    int failed;

    if (library_load(&library, err))
        return err->code;
    t = mem_zero(sizeof *t);
    t->host = mem_dup(str_from(host));
    t->pin = pin ? mem_dup(str_from(pin)) : NULL;
    failed = set_up(t, fd);
    if (failed) {
        tls_client_free(t);
        return tide_fail(err, TIDE_FAILED, "begin TLS: %s", tls.strerror(failed));
    }
    *ret = t;
    return TIDE_OK;
}

void tls_client_free(struct tls_client *t)
{
    if (!t)
        return;
    if (t->session)
        tls.deinit(t->session);
    if (t->credentials)
        tls.certificate_free_credentials(t->credentials);
    free(t->host);
    free(t->pin);
    free(t);
}

/* ---- who it is ---- */

static bool read_pin(const struct tls_client *t, char ret[TLS_PIN_SIZE])
{
    unsigned n = 0;
    const gnutls_datum_t *list = tls.certificate_get_peers(t->session, &n);
    gnutls_x509_crt_t crt = NULL;
    unsigned char digest[32];
    size_t len = sizeof digest;
    bool ok = list && n && !tls.x509_crt_init(&crt) && !tls.x509_crt_import(crt, &list[0], GNUTLS_X509_FMT_DER) &&
              !tls.x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, digest, &len) && len == sizeof digest;

    if (crt)
        tls.x509_crt_deinit(crt);
    if (!ok)
        return false;
    memcpy(ret, "sha256//", 8);
    sodium_bin2base64(ret + 8, TLS_PIN_SIZE - 8, digest, len, sodium_base64_VARIANT_ORIGINAL);
    return true;
}

static enum tide_code check_pin(const struct tls_client *t, struct tide_err *err)
{
    char pin[TLS_PIN_SIZE];

    if (!read_pin(t, pin))
        return tide_fail(err, TIDE_DENIED, "the server shows no certificate");
    if (strcmp(pin, t->pin) == 0)
        return TIDE_OK;
    return tide_fail(err, TIDE_DENIED,
                     "the server has another key than the one that is pinned, so it may be another server: its own "
                     "pin is %s",
                     pin);
}

static enum tide_code check_authority(const struct tls_client *t, struct tide_err *err)
{
    gnutls_datum_t text = {0};
    unsigned status = 0;

    if (tls.certificate_verify_peers3(t->session, t->host, &status))
        return tide_fail(err, TIDE_DENIED, "the server shows no certificate");
    if (!status)
        return TIDE_OK;
    if (tls.certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0))
        text.data = NULL;
    tide_fail(err, TIDE_DENIED, "the server's certificate is not to be trusted (%.80s): pin its key, as it printed it",
              text.data ? str_trim(str_from((const char *)text.data)).ptr : "");
    if (text.data)
        (*tls.free_slot)(text.data);
    return err->code;
}

/* ---- steps ---- */

static enum tls_step step_of(struct tls_client *t, ssize_t result, const char *what, struct tide_err *err)
{
    if (result == GNUTLS_E_AGAIN || result == GNUTLS_E_INTERRUPTED)
        return tls.record_get_direction(t->session) ? TLS_WANTS_WRITE : TLS_WANTS_READ;
    tide_fail(err, TIDE_IO, "%s: %s", what, tls.strerror((int)result));
    return TLS_FAILED;
}

enum tls_step tls_client_shake(struct tls_client *t, struct tide_err *err)
{
    int result = tls.handshake(t->session);

    if (result)
        return step_of(t, result, "TLS", err);
    return (t->pin ? check_pin(t, err) : check_authority(t, err)) ? TLS_FAILED : TLS_DONE;
}

enum tls_step tls_client_write(struct tls_client *t, struct str bytes, size_t *ret_n, struct tide_err *err)
{
    ssize_t n = tls.record_send(t->session, bytes.ptr, bytes.len);

    if (n < 0)
        return step_of(t, n, "send by TLS", err);
    *ret_n = (size_t)n;
    return TLS_DONE;
}

enum tls_step tls_client_read(struct tls_client *t, char *room, size_t size, size_t *ret_n, struct tide_err *err)
{
    ssize_t n = tls.record_recv(t->session, room, size);

    if (n < 0)
        return step_of(t, n, "receive by TLS", err);
    *ret_n = (size_t)n;
    return n ? TLS_DONE : TLS_CLOSED;
}
