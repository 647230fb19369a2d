/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark serve: the store over HTTP, until a signal comes. The first one stops it as a person wants it: nothing new begins, what runs
 * parks; the second one ends it at once.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/signals.h"
#include "engine/settings.h"
#include "engine/store_url.h"
#include "env/service_manager.h"
#include "server/console.h"
#include "server/local_socket.h"
#include "server/server.h"
#include "server/store_lock.h"
#include "terminal/progress.h"

#define LISTEN "127.0.0.1:7007"
#define JOBS 64
#define INTERVAL_MS 30000
#define SPARE_DESCRIPTORS 1024 /* beside those of connections */
#define OFF "off"

static const struct opt options[] = {
    {.name = "listen",
     .type = VALUE_TEXT,
     .value = "ADDRESS:PORT",
     .help = "listen there (default: " LISTEN "); port 0: any that is free; off: not by TCP"},
    {.name = "unix",
     .type = VALUE_FILE,
     .value = "PATH",
     .help = "the unix socket for commands of this user (default: in the runtime directory); off: none"},
    {.name = "tls", .help = "TLS with a certificate of its own, which is made once and kept in the state directory"},
    {.name = "tls-certificate", .type = VALUE_FILE, .value = "FILE", .help = "TLS with this certificate (PEM)"},
    {.name = "tls-key",
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "and its key (PEM), which only its owner can read"},
    {.name = "host",
     .type = VALUE_TEXT,
     .value = "NAME",
     .many = true,
     .help = "also answer requests for this host, as NAME or NAME:PORT"},
    {.name = "origin",
     .type = VALUE_TEXT,
     .value = "URL",
     .many = true,
     .help = "also accept this Origin, such as https://console.example.org: WebSockets of its pages, and requests "
             "through a proxy"},
    {.name = "auto-resume",
     .type = VALUE_WORD,
     .value = "WHAT",
     .words = "off live all",
     .help = "which interrupted sessions to resume: off (none), live (those that ran when their process died) or all "
             "(default: $TIDEMARK_AUTO_RESUME, else live); never those that a person stopped"},
    {.name = "jobs",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "run at most N sessions at once (default: 64)"},
    {.name = "stop-within",
     .type = VALUE_DURATION,
     .value = "DURATION",
     .help = "when it is stopped, give runs this long to park (default: server_stop_timeout_ms, 10s)"},
    {.name = NULL},
};

struct serving {
    struct cli *cli;
    struct buf url;
    struct settings settings;
    struct service_manager *manager;
    struct store_lock *lock;
    struct server_options opt;
    char *where; /* of --listen, in two */
    char unix_path[4096], token_path[4096];
    const char **hosts, **origins;
};

/* ---- what is asked ---- */

/* "[::1]:80", "127.0.0.1:7007" */
static enum tide_code split_address(char *text, const char **ret_address, const char **ret_port, struct tide_err *err)
{
    char *colon = strrchr(text, ':'), *end;

    if (!colon || colon == text || !colon[1])
        return args_refuse(err, "listen", "'%s' is not an ADDRESS:PORT", text);
    *colon = '\0';
    *ret_port = colon + 1;
    *ret_address = text;
    if (text[0] == '[') {
        end = strchr(text, ']');
        if (!end || end[1])
            return args_refuse(err, "listen", "'%s' is not an address", text);
        *end = '\0';
        *ret_address = text + 1;
    }
    return TIDE_OK;
}

/* Sockets of the service manager take the place of the default address. */
static enum tide_code take_address(struct serving *s, struct tide_err *err)
{
    struct listen_options *listen = &s->opt.listen;
    const char *given = args_text(&s->cli->args, "listen");

    listen->n_given = service_manager_sockets(s->manager, &listen->given);
    if ((!given && listen->n_given) || (given && strcmp(given, OFF) == 0))
        return TIDE_OK;
    s->where = mem_dup(str_from(given ? given : LISTEN));
    return split_address(s->where, &listen->address, &listen->port, err);
}

static enum tide_code take_socket(struct serving *s, struct tide_err *err)
{
    struct listen_options *listen = &s->opt.listen;
    const char *given = args_text(&s->cli->args, "unix");

    if ((given && strcmp(given, OFF) == 0) || (!given && listen->n_given))
        return TIDE_OK;
    if (given)
        listen->unix_path = given;
    else if (local_socket_path(buf_cstr(&s->url), s->unix_path, sizeof s->unix_path, err))
        return err->code;
    else if (strlen(s->unix_path) <= listen_unix_path_max())
        listen->unix_path = s->unix_path;
    else
        say("no unix socket: the path '%s' is too long; name another with --unix PATH", s->unix_path);
    return TIDE_OK;
}

static enum tide_code take_tls(struct serving *s, struct tide_err *err)
{
    const struct args *args = &s->cli->args;
    struct listen_options *listen = &s->opt.listen;

    listen->certificate_file = args_text(args, "tls-certificate");
    listen->key_file = args_text(args, "tls-key");
    listen->tls = args_on(args, "tls") || listen->certificate_file;
    if (!listen->certificate_file != !listen->key_file)
        return args_refuse(err, listen->key_file ? "tls-key" : "tls-certificate",
                           "--tls-certificate and --tls-key go together: give both, or --tls alone");
    return TIDE_OK;
}

/* Names are compared as they are: what a browser would never send is a mistake. */
static enum tide_code take_names(struct serving *s, struct tide_err *err)
{
    s->hosts = args_all(&s->cli->args, "host");
    s->origins = args_all(&s->cli->args, "origin");
    s->opt.listen.hosts = s->hosts;
    s->opt.listen.origins = s->origins;
    for (size_t i = 0; s->hosts[i]; i++)
        if (!s->hosts[i][0] || strpbrk(s->hosts[i], "/ @*"))
            return args_refuse(err, "host", "'%s' is not a name of a host, such as box.example.org", s->hosts[i]);
    for (size_t i = 0; s->origins[i]; i++) {
        const char *name = strstr(s->origins[i], "://");

        if (!name || !name[3] || strpbrk(name + 3, "/ @*"))
            return args_refuse(err, "origin", "'%s' is not an origin, such as https://console.example.org",
                               s->origins[i]);
    }
    return TIDE_OK;
}

static enum tide_code take_limits(struct serving *s, struct tide_err *err)
{
    struct server_options *opt = &s->opt;
    const struct config *c;

    if (settings_open(opt->config, NULL, NULL, &s->settings, err))
        return err->code;
    c = s->settings.config;
    opt->limits = (struct http_limits){
        .head_bytes = (size_t)config_int(c, "server_max_head_bytes"),
        .body_bytes = (size_t)config_int(c, "server_max_body_bytes"),
        .connections = (unsigned)config_int(c, "server_max_connections"),
        .per_address = (unsigned)config_int(c, "server_max_connections_per_address"),
        .head_ms = config_int(c, "server_head_timeout_ms"),
        .body_ms = config_int(c, "server_body_timeout_ms"),
        .idle_ms = config_int(c, "server_idle_timeout_ms"),
    };
    opt->max_depth = config_int(c, "server_max_depth");
    opt->max_per_second = config_int(c, "server_max_requests_per_second");
    opt->stop_ms = args_int(&s->cli->args, "stop-within", config_int(c, "server_stop_timeout_ms"));
    return TIDE_OK;
}

static enum tide_code take_options(struct serving *s, struct tide_err *err)
{
    const struct args *args = &s->cli->args;
    const char *config = args_text(args, "config");

    s->opt.config = config;
    s->opt.runs = (struct runner_options){.config = config,
                                          .key_file = args_text(args, "key-file"),
                                          .max_active = (int)args_int(args, "jobs", JOBS),
                                          .interval_ms = INTERVAL_MS};
    if (take_limits(s, err) || take_tls(s, err) || take_names(s, err) || take_address(s, err) ||
        cli_store_url(s->cli, &s->url, err))
        return err->code;
    s->opt.runs.url = buf_cstr(&s->url);
    return scheduler_automatic(args_text(args, "auto-resume"), config, true, AUTO_LIVE, &s->opt.runs.automatic, err);
}

/* ---- while it serves ---- */

/* Connections are descriptors; what is started from here gets the same limit. */
static void make_room(const struct http_limits *limits)
{
    struct rlimit now;
    rlim_t want = (rlim_t)limits->connections + SPARE_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur >= want)
        return;
    now.rlim_cur = want < now.rlim_max ? want : now.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &now);
}

static void say_where(const struct serving *s, const struct server *server)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct listeners *l = &server->listeners;

    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].place.is_unix)
            say("%s; commands of this user need no token there", listener_url(l, i, &a));
        else
            say("%s; the token is in %s", listener_url(l, i, &a), s->token_path);
    if (l->tls)
        say("clients pin the certificate's key: --pin %s%s%s", l->certificate.pin,
            l->certificate.path[0] ? "; it is kept in " : "", l->certificate.path);
    store_lock_note(s->lock, l->n ? listener_url(l, 0, &a) : "");
}

/* A code is for a person at a terminal, not for a file or a journal. */
static bool is_kept(const struct serving *s)
{
    struct stat st;

    return service_manager_is_there(s->manager) || fstat(STDERR_FILENO, &st) || S_ISREG(st.st_mode);
}

static void say_console(const struct serving *s, struct server *server)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *page = server_console_url(server, &a), *own = own_command(&a);
    const struct caller local = {.name = "local", .scopes = SCOPE_ALL};
    char code[SIGNIN_CODE_SIZE];
    struct tide_err ignored;

    if (!console_is_there())
        say("no console: this build has none (built with Node 18 or later and npm it has one)");
    if (!page)
        return;
    if (is_kept(s) || signin_make(server->signin, &local, SCOPE_ALL, monotonic_ms(), code, &ignored))
        say("console: %s (`%s console` prints a URL that signs in)", page, own);
    else
        say("console: %s#code=%s (once, within one minute; `%s console` makes another)", page, code, own);
    explicit_bzero(code, sizeof code);
}

static bool is_end(unsigned char which)
{
    return which == SIGTERM || which == SIGINT || which == SIGHUP || which == SIGQUIT;
}

/* Notifies a service manager twice per watchdog interval, as long as requests are processed. */
static void wait_for_end(const struct serving *s, struct server *server, int signals)
{
    struct pollfd p = {.fd = signals, .events = POLLIN};
    int64_t watch_ms = service_manager_watchdog_ms(s->manager);
    int timeout = watch_ms ? (int)(watch_ms / 2 + 1) : -1;
    unsigned char which = 0;

    while (!is_end(which)) {
        if (poll(&p, 1, timeout) > 0 && read(signals, &which, 1) != 1)
            which = 0;
        if (watch_ms && server_beat(server))
            service_manager_tell(s->manager, "WATCHDOG=1");
    }
}

/* ---- and stops ---- */

static int64_t end_ms; /* by the monotonic clock; written before the thread that reads it begins */

static void *end_late(void *arg)
{
    (void)arg;
    for (int64_t left; (left = end_ms - monotonic_ms()) > 0;)
        (void)!poll(NULL, 0, (int)(left < 1000000 ? left : 1000000));
    log_write(TIDE_LOG_WARN, "the server did not stop in time, and exits now");
    _exit(0);
}

/* What does not park in time is found by the next start as what was cut: the process ends, and the store stays open until it does. */
static void stop_server(struct serving *s, struct server *server)
{
    AUTO(buf_done) struct buf state = BUF_INIT(100);
    pthread_t guard;

    buf_addf(&state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld", (long long)(s->opt.stop_ms + 1000) * 1000);
    service_manager_tell(s->manager, buf_cstr(&state));
    end_ms = monotonic_ms() + s->opt.stop_ms;
    if (thread_start(&guard, end_late, NULL))
        pthread_detach(guard);
    if (server_stop(server) == SERVER_STOPPED)
        return;
    say("not everything could be parked in %lld ms: the next start records it as interrupted",
        (long long)s->opt.stop_ms);
    _exit(0);
}

static enum tide_code take_lock(struct serving *s, struct tide_err *err)
{
    return s->lock ? TIDE_OK : store_lock_take(buf_cstr(&s->url), &s->lock, err);
}

/* What can refuse comes before what makes something: no store and no token is left behind by a server that did not start. */
static enum tide_code prepare_server(struct serving *s, struct server **ret, struct tide_err *err)
{
    char secret[ACCESS_SECRET_SIZE];
    bool is_there = access(store_url_path(buf_cstr(&s->url)), F_OK) == 0;

    if ((is_there && take_lock(s, err)) || take_socket(s, err) || server_new(&s->opt, ret, err) ||
        cli_store_open(s->cli, NEED_CREATE, 0, err) || take_lock(s, err) ||
        access_own(secret, s->token_path, sizeof s->token_path, err))
        return err->code;
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

static enum tide_code serve_until_stopped(struct serving *s, struct tide_err *err)
{
    struct server *server = NULL;
    int signals = signal_pipe_open();
    enum tide_code code;

    make_room(&s->opt.limits);
    code = prepare_server(s, &server, err);
    code = code ? code : server_start(server, s->cli->store, err);
    if (!code) {
        say_where(s, server);
        say_console(s, server);
        service_manager_tell(s->manager, "READY=1");
        wait_for_end(s, server, signals);
    }
    signal_pipe_close(signals);
    signals_end_us();
    if (server)
        stop_server(s, server);
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct serving s = {.cli = cli, .url = BUF_INIT(4096)};
    enum tide_code code = service_manager_open(&s.manager, err); /* first: it changes the environment */

    code = code ? code : take_options(&s, err);
    code = code ? code : serve_until_stopped(&s, err);
    store_lock_free(s.lock);
    service_manager_close(s.manager);
    settings_done(&s.settings);
    free(s.where);
    free(s.hosts);
    free(s.origins);
    buf_done(&s.url);
    return code;
}

const struct command cmd_serve = {
    .name = "serve",
    .run = run,
    .options = options,
    .help = "serve the store over HTTP, to this user and to those with a token",
    .more =
        "It listens on this machine only, unless it has TLS. The first signal stops it: nothing new starts, runs are\n"
        "parked, and programs continue without it. The second signal ends it at once. "
        "See tidemark-serve(1).",
};
