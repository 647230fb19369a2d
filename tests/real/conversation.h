/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation in a directory of its own, held by a process that can be killed anywhere: what it tells, what must hold after
 * any death, and what must hold at the end. Its bash commands append their call's id to a ledger outside of the store.
 */
#ifndef TESTS_REAL_CONVERSATION_H
#define TESTS_REAL_CONVERSATION_H

#include "command.h"

#define BASH(id, command) "{\"id\":\"" id "\",\"name\":\"bash\",\"args\":{\"command\":\"" command "\"}}"

enum { PROMPTS_MAX = 4, WORDS_MAX = 8 };

/* What is said: both lists end with NULL. */
struct words {
    const char *prompts[PROMPTS_MAX + 1];
    const char *calls[WORDS_MAX + 1]; /* ids of the calls of bash, each of which writes its own into the ledger */
};

struct driver;

struct place {
    const struct words *words;
    char dir[256], store[300], work[300], script[300], ledger[330], mark[40];
    void (*on_event)(struct driver *, const struct tide_agent_event *); /* in the process that works; NULL: nothing */
    int kill_at;                                                        /* for it */
    int said; /* prompts of whose answers something was shown */
};

/* ---- the process that works ---- */

struct driver {
    struct self *me;
    const struct place *p;
    int prompt, callbacks;
};

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct driver *d = arg;

    if (e->what == TIDE_AGENT_TEXT)
        tell_char(d->me->out, (char)('0' + d->prompt));
    if (d->p->on_event)
        d->p->on_event(d, e);
}

static int count_prompt(void *arg, const struct tide_message *m)
{
    *(int *)arg += m->role == TIDE_ROLE_USER;
    return 0;
}

static tide_session *open_session(tide_store *store)
{
    tide_session *s = NULL;

    if (tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, NULL) != TIDE_OK)
        CHILD_MUST(tide_session_create(store, "s", NULL, &s, &err));
    return s;
}

static void converse(tide_agent *a, struct driver *d)
{
    int said = 0;
    enum tide_code code;
    struct tide_err why = {0};

    CHILD_MUST(tide_agent_read_history(a, count_prompt, &said, &err));
    d->prompt = said ? said - 1 : 0;
    code = tide_agent_resume(a, NULL, NULL, NULL, &why);
    if (code && code != TIDE_NOT_FOUND) {
        fprintf(stderr, "resume: %s\n", why.msg);
        _exit(CHILD_FAILED);
    }
    for (d->prompt = said; d->p->words->prompts[d->prompt]; d->prompt++)
        CHILD_MUST(tide_agent_run(a, d->p->words->prompts[d->prompt], NULL, &err));
}

static void drive(struct self *me)
{
    const struct tide_store_options how = {.size = sizeof how, .flags = TIDE_OPEN_CREATE};
    const struct place *p = me->arg;
    struct driver d = {me, p, 0, 0};
    const struct tide_agent_options opt = {.size = sizeof opt,
                                           .provider = "script",
                                           .script = p->script,
                                           .working_dir = p->work,
                                           .permissions = "[{\"tool\":\"*\",\"permission\":\"allow\"}]",
                                           .retry_base_delay_ms = 1,
                                           .event = on_event,
                                           .arg = &d};
    tide_store *store = NULL;
    tide_session *s;
    tide_agent *a = NULL;

    setenv(MARK, p->mark, 1);
    CHILD_MUST(tide_store_open(p->store, &how, &store, &err));
    s = open_session(store);
    CHILD_MUST(tide_agent_new(s, &opt, &a, &err));
    converse(a, &d);
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(store);
}

/* ---- what must hold ---- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

UNUSED static void place_init(struct place *p, const struct words *words, const char *script)
{
    static int number;

    *p = (struct place){.words = words};
    dir_make(p->dir);
    store_url_in(p->store, sizeof p->store, p->dir, "s");
    snprintf(p->work, sizeof p->work, "%s/work", p->dir);
    snprintf(p->ledger, sizeof p->ledger, "%s/ledger", p->work);
    snprintf(p->script, sizeof p->script, "%s/script.json", p->dir);
    snprintf(p->mark, sizeof p->mark, "kills-%d-%d", (int)getpid(), ++number);
    assert_int_equal(mkdir(p->work, 0700), 0);
    write_text(p->script, script);
}

static int in_ledger(const struct place *p, const char *word)
{
    FILE *f = fopen(p->ledger, "r");
    char line[100];
    int n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == '\n';
    if (f)
        fclose(f);
    return n;
}

struct findings {
    const struct words *words;
    int prompts[PROMPTS_MAX], started[WORDS_MAX], results[WORDS_MAX], unknown[WORDS_MAX], completed;
};

static int look_at(void *arg, const struct tide_event *ev)
{
    struct findings *f = arg;
    char want[60];

    for (int i = 0; f->words->prompts[i]; i++)
        f->prompts[i] += strcmp(ev->kind, "message.user") == 0 && strstr(ev->body, f->words->prompts[i]);
    for (int i = 0; f->words->calls[i]; i++) {
        snprintf(want, sizeof want, "call_id\":\"%s\"", f->words->calls[i]);
        if (!strstr(ev->body, want))
            continue;
        f->started[i] += strcmp(ev->kind, "tool.started") == 0;
        f->results[i] += strcmp(ev->kind, "message.tool") == 0;
        f->unknown[i] |= strcmp(ev->kind, "message.tool") == 0 && strstr(ev->body, "outcome unknown");
    }
    f->completed += strcmp(ev->kind, "run.completed") == 0;
    return 0;
}

/* All that is in the log, which must verify. */
static void each_event(const struct place *p, tide_event_fn *fn, void *arg)
{
    const struct tide_store_options how = {.size = sizeof how, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    tide_session *s = NULL;

    OK(tide_store_open(p->store, &how, &store, &err));
    if (tide_session_open(store, "s", 0, &s, NULL) == TIDE_OK) {
        OK(tide_session_verify(s, NULL, NULL, NULL, &err));
        OK(tide_session_read(s, 0, 1, 0, fn, arg, &err));
    }
    tide_session_close(s);
    tide_store_close(store);
}

static struct findings look(const struct place *p)
{
    struct findings f = {.words = p->words};

    each_event(p, look_at, &f);
    return f;
}

/* After any death: what was shown is there. */
static void check_shown(const struct place *p)
{
    struct findings f = look(p);

    for (int i = 0; i < p->said; i++)
        if (f.prompts[i] != 1)
            fail_msg("prompt %d was answered and is in the log %d times", i + 1, f.prompts[i]);
}

UNUSED static void check_end(const struct place *p)
{
    struct findings f = look(p);

    for (int i = 0; p->words->prompts[i]; i++)
        assert_int_equal(f.prompts[i], 1);
    for (int i = 0; p->words->calls[i]; i++) {
        int done = in_ledger(p, p->words->calls[i]);

        if (f.started[i] > 1 || f.results[i] != 1 || done > 1 || done < !f.unknown[i])
            fail_msg("%s: %d starts, %d results%s, done %d times", p->words->calls[i], f.started[i], f.results[i],
                     f.unknown[i] ? ", unknown" : "", done);
    }
    assert_true(f.completed >= 1);
    assert_int_equal(in_ledger(p, "late"), 0);
    assert_int_equal(outlives(p->mark), 0);
}

/* What the process tells until it ends. */
static int finish_child(struct place *p, struct child *c)
{
    char what;

    while (hear(c->out, &what, 1, PATIENCE_MS))
        if (what - '0' >= p->said)
            p->said = what - '0' + 1;
    return child_wait(c);
}

static bool was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* One process; true when it was killed, false when it came to the end. */
UNUSED static bool one_process(struct place *p)
{
    struct child c = child_start(drive, p, 1);
    int status = finish_child(p, &c);

    if (!was_killed(status) && status != 0)
        fail_msg("a process ended with status %d", status);
    if (was_killed(status))
        check_shown(p);
    return was_killed(status);
}

#endif
