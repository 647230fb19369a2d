/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listeners.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static enum tide_code add_listener(struct listeners *l, int fd, bool shared, struct tide_err *err)
{
    struct listener *one = &l->at[l->n];

    if (l->n == LISTENERS_MAX)
        return tide_fail(err, TIDE_INVALID, "a server has at most %d sockets", LISTENERS_MAX);
    *one = (struct listener){.fd = fd, .shared = shared};
    l->n++;
    return listen_place_of(fd, &one->place, err);
}

static enum tide_code add_own(struct listeners *l, const struct listen_options *opt, struct tide_err *err)
{
    int fd;

    if (opt->address && (listen_bind_tcp(opt->address, opt->port, &fd, err) || add_listener(l, fd, false, err)))
        return err->code;
    if (opt->unix_path && (listen_bind_unix(opt->unix_path, &fd, err) || add_listener(l, fd, false, err)))
        return err->code;
    return TIDE_OK;
}

static enum tide_code add_given(struct listeners *l, const struct listen_options *opt, struct tide_err *err)
{
    for (size_t i = 0; i < opt->n_given; i++) {
        const struct service_socket *s = &opt->given[i];
        int listens = 0;
        socklen_t len = sizeof listens;

        if (getsockopt(s->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens)
            return tide_fail(
                err, TIDE_INVALID,
                "socket %zu%s%s of the service manager does not listen: it needs ListenStream= and Accept=no", i + 1,
                s->name[0] ? ", " : "", s->name);
        if (add_listener(l, s->fd, true, err))
            return tide_wrap(err, "socket %zu of the service manager", i + 1);
    }
    return TIDE_OK;
}

/* The person who sits on the way would read every token. */
static enum tide_code check_places(const struct listeners *l, struct tide_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->at[i].place.is_unix || l->at[i].place.is_loopback || l->tls)
            continue;
        (void)!tide_fail(err, TIDE_DENIED,
                         "other machines can reach %s, so it needs TLS, with a certificate that you name or with one "
                         "of its own; or listen on 127.0.0.1",
                         l->at[i].place.address);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, "tls");
    }
    return TIDE_OK;
}

/* ---- what clients call it ---- */

static const char *bare(struct listeners *l, const char *address)
{
    size_t n = strlen(address);

    return address[0] == '[' ? arena_dup(&l->arena, (struct str){address + 1, n - 2}).ptr : address;
}

static enum tide_code read_certificate(struct listeners *l, const struct listen_options *opt, struct tide_err *err)
{
    const char *names[LISTENERS_MAX + 70] = {"localhost", "127.0.0.1", "::1"};
    static char host[256];
    size_t n = 3;

    if (!l->tls)
        return TIDE_OK;
    if (gethostname(host, sizeof host - 1) == 0 && host[0])
        names[n++] = host;
    for (size_t i = 0; i < l->n; i++)
        if (!l->at[i].place.is_unix && !l->at[i].place.is_loopback && !l->at[i].place.is_any)
            names[n++] = bare(l, l->at[i].place.address);
    for (size_t i = 0; opt->hosts && opt->hosts[i] && i < 64; i++)
        names[n++] = arena_dup(&l->arena, (struct str){opt->hosts[i], strcspn(opt->hosts[i], ":")}).ptr;
    return certificate_read(opt->certificate_file, opt->key_file, names, &l->certificate, err);
}

/* The port is left out where it is the usual one. */
static const char *with_port(const struct listeners *l, struct arena *a, const char *before, const char *name, int port)
{
    bool usual = port == (l->tls ? 443 : 80);

    return usual ? arena_printf(a, "%s%s", before, name) : arena_printf(a, "%s%s:%d", before, name, port);
}

static size_t count_names(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* What a client that means this server puts into Host, and a page of it into Origin. A further host is one with its port, too. */
static void make_lists(struct listeners *l, const struct listen_options *opt)
{
    static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *scheme = l->tls ? "https://" : "http://";
    size_t hosts = count_names(opt->hosts), n = 0, m = 0, max = (l->n + 1) * (4 + hosts) + hosts + 1;

    l->hosts = arena_zero(&l->arena, max * sizeof *l->hosts);
    l->origins = arena_zero(&l->arena, (max + count_names(opt->origins)) * sizeof *l->origins);
    for (size_t i = 0; i < l->n; i++) {
        const struct listen_place *at = &l->at[i].place;

        for (size_t k = 0; !at->is_unix && k < 4 + hosts; k++) {
            const char *name = k < 3 ? local[k] : k == 3 ? at->address : opt->hosts[k - 4];

            if (k >= 4 && strchr(name, ':'))
                continue;
            l->hosts[n++] = with_port(l, &l->arena, "", name, at->port);
            l->origins[m++] = with_port(l, &l->arena, scheme, name, at->port);
        }
    }
    l->first_host = hosts ? arena_dup(&l->arena, str_from(opt->hosts[0])).ptr : NULL;
    for (size_t i = 0; i < hosts; i++) {
        l->hosts[n++] = opt->hosts[i];
        l->origins[m++] = arena_printf(&l->arena, "%s%s", scheme, opt->hosts[i]);
    }
    for (size_t i = 0; i < count_names(opt->origins); i++)
        l->origins[m++] = opt->origins[i];
}

/* ---- all of it ---- */

enum tide_code listeners_bind(struct listeners *l, const struct listen_options *opt, struct tide_err *err)
{
    l->tls = opt->tls;
    if (add_given(l, opt, err) || add_own(l, opt, err) || check_places(l, err) || read_certificate(l, opt, err))
        return err->code;
    make_lists(l, opt);
    return TIDE_OK;
}

enum tide_code listeners_open(struct listeners *l, struct http_server *http, struct tide_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        bool tls = l->tls && !l->at[i].place.is_unix;
        struct http_listen on = {.fd = l->at[i].fd,
                                 .shared = l->at[i].shared,
                                 .certificate = tls ? buf_cstr(&l->certificate.pem) : NULL,
                                 .key = tls ? buf_cstr(&l->certificate.key) : NULL};

        l->at[i].fd = -1;
        if (http_server_listen(http, &on, NULL, err))
            return err->code;
    }
    return TIDE_OK;
}

void listeners_hide(struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].place.is_unix && !l->at[i].shared)
            unlink(l->at[i].place.address);
}

void listeners_done(struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].fd >= 0)
            close(l->at[i].fd);
    certificate_done(&l->certificate);
    arena_done(&l->arena);
    *l = (struct listeners){0};
}

const char *listener_url(const struct listeners *l, size_t i, struct arena *a)
{
    const struct listen_place *at = &l->at[i].place;

    if (at->is_unix)
        return arena_printf(a, "unix:%s", at->address);
    return arena_printf(a, "%s://%s:%d", l->tls ? "https" : "http", at->address, at->port);
}

const char *listeners_page_url(const struct listeners *l, struct arena *a)
{
    const char *scheme = l->tls ? "https://" : "http://", *name;

    for (size_t i = 0; i < l->n; i++) {
        const struct listen_place *at = &l->at[i].place;

        if (at->is_unix)
            continue;
        name = !at->is_any             ? at->address
               : l->first_host         ? l->first_host
               : at->address[0] == '[' ? "[::1]"
                                       : "127.0.0.1";
        if (at->is_any && l->first_host && strchr(name, ':')) /* it has a port of its own */
            return arena_printf(a, "%s%s/", scheme, name);
        return arena_printf(a, "%s/", with_port(l, a, scheme, name, at->port));
    }
    return NULL;
}
