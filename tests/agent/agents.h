/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the agent share: a store, a directory to work in, a script to answer from, and the log as one line. */
#ifndef TESTS_AGENT_AGENTS_H
#define TESTS_AGENT_AGENTS_H

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kit.h"

struct fixture {
    char dir[256], path[300], work[300], script[300];
    tide_store *store;
    struct buf heard; /* what the event callback was told, a word each */
    enum tide_decision decision;
    const char *reason; /* … and why; NULL: nothing is said */
    int asked;
};

UNUSED static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

UNUSED static int set_up(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->path, sizeof f->path, f->dir, "s");
    snprintf(f->work, sizeof f->work, "%s/work", f->dir);
    snprintf(f->script, sizeof f->script, "%s/script.json", f->dir);
    assert_int_equal(mkdir(f->work, 0700), 0);
    OK(tide_store_open(f->path, &opt, &f->store, &err));
    f->heard = (struct buf)BUF_INIT(1 << 20);
    *state = f;
    return 0;
}

UNUSED static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->store);
    buf_done(&f->heard);
    dir_remove(f->dir);
    free(f);
    return 0;
}

UNUSED static void hear(void *arg, const struct tide_agent_event *e)
{
    static const char *const words[] = {"text", "text_end", "discard", "", "retry", "tool", "tool_end", "", "notice"};
    struct fixture *f = arg;

    if (words[e->what][0])
        buf_addf(&f->heard, "%s%s", f->heard.len ? " " : "", words[e->what]);
}

UNUSED static enum tide_decision decide(void *arg, const struct tide_approval *ask)
{
    struct fixture *f = arg;

    if (f->reason)
        *ask->reason = (struct tide_text){strdup(f->reason), strlen(f->reason)};
    f->asked++;
    return f->decision;
}

#define ALLOW_ALL "[{\"tool\":\"*\",\"permission\":\"allow\"}]"

UNUSED static struct tide_agent_options options(struct fixture *f)
{
    return (struct tide_agent_options){.size = sizeof(struct tide_agent_options),
                                       .provider = "script",
                                       .script = f->script,
                                       .working_dir = f->work,
                                       .permissions = ALLOW_ALL,
                                       .retry_base_delay_ms = 10,
                                       .event = hear,
                                       .arg = f};
}

UNUSED static tide_session *new_session(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "s", "{\"title\":\"t\"}", &s, &err));
    return s;
}

UNUSED static tide_agent *new_agent(tide_session *s, const struct tide_agent_options *opt)
{
    tide_agent *a = NULL;

    OK(tide_agent_new(s, opt, &a, &err));
    return a;
}

/* Lets an agent begin a session in a process of its own, which is to die by SIGKILL: `ready` adds what it needs for that. */
UNUSED static void die_in_a_run(struct fixture *f, const struct tide_agent_options *opt,
                                enum tide_code (*ready)(tide_agent *, void *), void *arg)
{
    pid_t pid;
    int status = 0;

    tide_store_close(TAKE(f->store)); /* a child would have the locks that its threads hold, and not the threads */
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide_store *store = NULL;
        tide_session *s = NULL;
        tide_agent *a = NULL;

        if (!tide_store_open(f->path, NULL, &store, NULL) && !tide_session_create(store, "s", NULL, &s, NULL) &&
            !tide_agent_new(s, opt, &a, NULL) && !ready(a, arg))
            (void)!tide_agent_run(a, "go", NULL, NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    OK(tide_store_open(f->path, NULL, &f->store, &err));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- the log ---- */

struct line_reader {
    struct buf out;
};

UNUSED static int put_kind(void *arg, const struct tide_event *ev)
{
    struct line_reader *l = arg;

    buf_addf(&l->out, "%s%s", l->out.len ? " " : "", ev->kind);
    return 0;
}

/* The kinds of the events from `from` on, with spaces between; the caller frees it. */
UNUSED static char *kinds_of(tide_session *s, int64_t from)
{
    struct line_reader l = {BUF_INIT(1 << 20)};

    OK(tide_session_refresh(s, &err));
    OK(tide_session_read(s, 0, from, 0, put_kind, &l, &err));
    return buf_take(&l.out);
}

struct finding {
    const char *kind;
    int nth;
    struct buf out;
};

UNUSED static int find_event(void *arg, const struct tide_event *ev)
{
    struct finding *f = arg;

    if (strcmp(ev->kind, f->kind) != 0 || f->nth-- > 0)
        return 0;
    buf_add_str(&f->out, str_from(ev->body));
    return 1;
}

/* The body of the n-th event (from 0) of a kind; "" when there is none. The caller frees it. */
UNUSED static char *body_of(tide_session *s, const char *kind, int nth)
{
    struct finding f = {kind, nth, BUF_INIT(1 << 26)};

    OK(tide_session_refresh(s, &err));
    OK(tide_session_read(s, 0, 1, 0, find_event, &f, &err));
    buf_add_char(&f.out, '\0');
    return buf_take(&f.out);
}

UNUSED static int count_kind(tide_session *s, const char *kind)
{
    char *all = kinds_of(s, 1);
    int n = 0;

    for (char *word = all, *space; word; word = space ? space + 1 : NULL) {
        space = strchr(word, ' ');
        n += (size_t)(space ? space - word : (long)strlen(word)) == strlen(kind) &&
             strncmp(word, kind, strlen(kind)) == 0;
    }
    free(all);
    return n;
}

#define LOG_IS(s, from, want)                                                                                          \
    do {                                                                                                               \
        char *got_ = kinds_of(s, from);                                                                                \
        assert_string_equal(got_, want);                                                                               \
        free(got_);                                                                                                    \
    } while (0)
#define BODY_HAS(s, kind, nth, words)                                                                                  \
    do {                                                                                                               \
        char *got_ = body_of(s, kind, nth);                                                                            \
        if (!strstr(got_, words))                                                                                      \
            fail_msg("%s %d has not '%s': %s", kind, nth, words, got_);                                                \
        free(got_);                                                                                                    \
    } while (0)
#define BODY_LACKS(s, kind, nth, words)                                                                                \
    do {                                                                                                               \
        char *got_ = body_of(s, kind, nth);                                                                            \
        if (strstr(got_, words))                                                                                       \
            fail_msg("%s %d has '%s': %s", kind, nth, words, got_);                                                    \
        free(got_);                                                                                                    \
    } while (0)

#endif
