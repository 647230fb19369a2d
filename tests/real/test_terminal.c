/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidemark exec` at a terminal, which is a pseudo-terminal of the test: the program sees a terminal and can read from it,
 * Ctrl-C ends it as a shutdown that can be resumed, Ctrl-Z stops it and fg lets it go on, whether it is in the middle of a
 * step or not. Needs $TIDE_BIN.
 */
#include <sys/ioctl.h>

#include "command.h"

static struct place {
    char dir[256], path[300], mark[80];
} place;

/* ---- a terminal ---- */

struct terminal {
    int fd;
    pid_t pid;
    char seen[8192]; /* behind what was expected last */
    size_t len;
};

static void be_child(const char *name, const char *const *argv)
{
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    fd = open(name, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL); /* what runs in the background ignores them */
    signal(SIGQUIT, SIG_DFL);
    if (chdir(place.dir) == 0)
        execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(CHILD_FAILED);
}

static void terminal_start(struct terminal *t, const char *const *argv)
{
    *t = (struct terminal){.fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    if (t->fd < 0 || grantpt(t->fd) != 0 || unlockpt(t->fd) != 0)
        fail_msg("no pseudo-terminal");
    t->pid = fork();
    if (t->pid == 0)
        be_child(ptsname(t->fd), argv);
}

static void type(struct terminal *t, const char *keys)
{
    if (write(t->fd, keys, strlen(keys)) != (ssize_t)strlen(keys))
        fail_msg("type");
}

/* What comes within a moment; false at its end. */
static bool hear_some(struct terminal *t, int timeout_ms)
{
    struct pollfd p = {t->fd, POLLIN, 0};
    ssize_t n;

    if (poll(&p, 1, timeout_ms) <= 0)
        return true;
    if (t->len > sizeof t->seen / 2)
        t->len = 0;
    n = read(t->fd, t->seen + t->len, sizeof t->seen - 1 - t->len);
    t->len += n > 0 ? (size_t)n : 0;
    t->seen[t->len] = '\0';
    return n > 0;
}

/* Until the words are on the screen, behind those that were expected before. */
static void expect(struct terminal *t, const char *words)
{
    int64_t end = mono_ms() + PATIENCE_MS;
    const char *at;

    while (!(at = strstr(t->seen, words))) {
        if (!hear_some(t, 100) || mono_ms() > end)
            fail_msg("'%s' is not on the screen, but: %s", words, t->seen);
    }
    at += strlen(words);
    t->len -= (size_t)(at - t->seen);
    memmove(t->seen, at, t->len + 1);
}

/* Its exit status, when it and everything below it has ended. */
static int terminal_end(struct terminal *t)
{
    int64_t end = mono_ms() + PATIENCE_MS;
    int status = -1;
    pid_t left;

    while (!has_ended(t->pid) && mono_ms() < end)
        hear_some(t, 5);
    if (!has_ended(t->pid)) {
        kill(t->pid, SIGKILL);
        fail_msg("it does not end; on the screen: %s", t->seen);
    }
    waitpid(t->pid, &status, 0);
    close(t->fd);
    left = outlives(place.mark);
    if (left)
        fail_msg("process %d lives on", (int)left);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- programs and sessions ---- */

static void program(const char *name, const char *text)
{
    char path[400];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", place.dir, name);
    f = fopen(path, "w");
    if (!f || fprintf(f, "#!/bin/sh\n%s", text) < 0)
        fail_msg("%s", path);
    fclose(f);
    chmod(path, 0700);
}

static int see(void *arg, const struct tide_session_info *i)
{
    snprintf(arg, 100, "%s/%s/%s", tide_status_name(i->status), tide_outcome_name(i->outcome),
             i->reason ? i->reason : "");
    return 0;
}

static void expect_state(const char *id, const char *want)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_READ_ONLY};
    tide_store *store = NULL;
    tide_session *s = NULL;
    char got[100];

    OK(tide_store_open(place.path, &opt, &store, &err));
    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(session_shown(s, see, got, &err));
    tide_session_close(s);
    tide_store_close(store);
    if (strncmp(got, want, strlen(want)) != 0)
        fail_msg("%s: want %s, got %s", id, want, got);
}

/* A process below the test that is stopped. */
static bool is_stopped(const char *name)
{
    DIR *d = opendir("/proc");
    bool found = false;

    for (struct dirent *e; !found && (e = readdir(d));) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;
        char path[40], line[300] = "";
        FILE *f;

        if (!pid || !is_marked(pid, place.mark))
            continue;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f) && strstr(line, name) && strstr(line, ") T "))
            found = true;
        if (f)
            fclose(f);
    }
    closedir(d);
    return found;
}

/* ---- tests ---- */

static void a_program_at_a_terminal_sees_and_reads_it(void **unused)
{
    const char *const argv[] = {"tidemark", "exec", "--session", "reads", "--", "./reads", NULL};
    struct terminal t;

    (void)unused;
    program("reads", "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all\n"
                     "read line && echo \"program read $line\"\n"
                     "tidemark step ask -- sh -c '[ -t 0 ] && echo asks; read line; echo \"step read $line\"'\n");
    terminal_start(&t, argv);
    expect(&t, "all");
    type(&t, "one\n");
    expect(&t, "program read one");
    expect(&t, "asks");
    type(&t, "two\n");
    expect(&t, "step read two");
    assert_int_equal(terminal_end(&t), 0);
    expect_state("reads", "idle/completed");
}

static void ctrl_c_is_a_shutdown(void **unused)
{
    static const struct {
        const char *id, *text;
    } rows[] = {
        {"c-plain", "echo ready; exec sleep 1000\n"},
        {"c-child", "sh -c 'echo ready; exec sleep 1000'\nexit 1\n"},
        {"c-step", "tidemark step hold --effect pure -- sh -c 'echo ready; exec sleep 1000'\nexit 1\n"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[60];
        const char *const argv[] = {"tidemark", "exec", "--session", rows[i].id, "--", path, NULL};
        const char *const resume[] = {"tidemark", "resume", rows[i].id, NULL};
        struct terminal t;

        snprintf(path, sizeof path, "./%s", rows[i].id);
        program(rows[i].id, rows[i].text);
        terminal_start(&t, argv);
        expect(&t, "ready");
        type(&t, "\003");
        assert_int_equal(terminal_end(&t), 130);
        expect_state(rows[i].id, "interrupted_startup/interrupted/shutdown");
        program(rows[i].id, "echo again\n");
        terminal_start(&t, resume);
        expect(&t, "again");
        assert_int_equal(terminal_end(&t), 0);
        expect_state(rows[i].id, "idle/completed");
    }
}

static void ctrl_z_stops_and_fg_continues(void **unused)
{
    static const char *const rows[][2] = {
        {"z-plain", "echo ready; read line; echo \"got $line\"\n"},
        {"z-step", "tidemark step ask -- sh -c 'echo ready; read line; echo \"got $line\"'\n"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const argv[] = {"bash", "--norc", "--noprofile", "-i", NULL};
        char line[200];
        struct terminal t;
        int64_t end = mono_ms() + PATIENCE_MS;

        program(rows[i][0], rows[i][1]);
        snprintf(line, sizeof line, "tidemark exec --session %s -- ./%s; echo \"status $?\"\n", rows[i][0], rows[i][0]);
        terminal_start(&t, argv);
        type(&t, "PS1='prompt$ '; set +o history\n");
        expect(&t, "\nprompt$ ");
        type(&t, line);
        expect(&t, "\nready");
        type(&t, "\032");
        expect(&t, "Stopped");
        expect(&t, "prompt$ ");
        while (!is_stopped("(sh)") && !is_stopped("(z-") && mono_ms() < end)
            short_pause();
        assert_true(is_stopped("(sh)") || is_stopped("(z-"));
        type(&t, "fg\n");
        expect(&t, "tidemark exec");
        type(&t, "word\n");
        expect(&t, "got word");
        expect(&t, "prompt$ ");
        type(&t, "exit 0\n");
        assert_int_equal(terminal_end(&t), 0);
        expect_state(rows[i][0], "idle/completed");
    }
}

static int set_up(void **unused)
{
    (void)unused;
    if (!command_init())
        return 0;
    dir_make(place.dir);
    store_url_in(place.path, sizeof place.path, place.dir, "s");
    snprintf(place.mark, sizeof place.mark, "terminal-%d", (int)getpid());
    setenv("TIDEMARK_STORE", place.path, 1);
    setenv(MARK, place.mark, 1);
    setenv("TERM", "dumb", 1);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    if (place.dir[0])
        dir_remove(place.dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_at_a_terminal_sees_and_reads_it),
        cmocka_unit_test(ctrl_c_is_a_shutdown),
        cmocka_unit_test(ctrl_z_stops_and_fg_continues),
    };

    if (!getenv("TIDE_BIN")) {
        printf("TIDE_BIN is not set: skipped\n");
        return 77;
    }
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
