/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark-damage: a store whose contents are known is damaged, in one place or in two, and read through the public calls. Each
 * answer must be the truth or a named error: never fewer events with success, never another session's, no crash, no hang.
 *
 *   tidemark-damage [--store sqlite|files] [--damages N] [--seed X] [--only K] [--verbose]
 *
 * The store has long and short sessions, forks of forks, one that was killed while it was held; it is damaged as it was closed, or
 * as its killed writer left it. Every damage runs in a process of its own. What fails is printed with what shows it again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../store_kind.h"
#include "damage.h"

#define EVENTS_MAX 1200
#define HANG_S 30

/* ---- the truth ---- */

static struct truth {
    const char *id;
    int64_t first, last;     /* its own */
    char *lines[EVENTS_MAX]; /* by seq; with what it shares with its parents */
    char *state;
    int messages;
} truth[] = {{.id = "long"}, {.id = "fork"}, {.id = "deep"}, {.id = "short"}, {.id = "big"}, {.id = "held"}};

#define N_TRUTH (sizeof truth / sizeof truth[0])

static struct tide_err err;
static bool wrong;

static void must(enum tide_code code, const char *what)
{
    if (!code)
        return;
    printf("# %s: %s\n", what, err.msg);
    exit(2);
}

/* ---- making it ---- */

static void put(tide_session *s, int n, int each, size_t bytes)
{
    struct tide_new_event evs[16];
    char *bodies[16];

    for (int i = 0; i < n; i += each) {
        int k = 0;

        for (; k < each && i + k < n; k++) {
            bodies[k] = malloc(bytes + 200);
            memset(bodies[k], 0, bytes + 200);
            snprintf(bodies[k], 120, "{\"turn\":%d,\"content\":\"word %d of %s\",\"pad\":\"", i + k + 1, i + k,
                     tide_session_id(s));
            memset(bodies[k] + strlen(bodies[k]), 'a' + (i + k) % 26, bytes);
            memcpy(bodies[k] + strlen(bodies[k]), "\"}", 2);
            evs[k] = (struct tide_new_event){(i + k) % 7 == 3 ? "memory.set" : "message.user", bodies[k], 0};
            if ((i + k) % 7 == 3)
                snprintf(bodies[k], 120, "{\"values\":{\"k%d\":%d}}", (i + k) % 5, i + k);
        }
        must(tide_session_append(s, 0, evs, (size_t)k, NULL, &err), "append");
        while (k > 0)
            free(bodies[--k]);
    }
}

static tide_session *make(tide_store *store, const char *id)
{
    tide_session *s;

    must(tide_session_create(store, id, "{\"title\":\"a title\"}", &s, &err), "create");
    return s;
}

static void fork_off(tide_store *store, const char *of, int64_t at, const char *id)
{
    char made[TIDE_ID_SIZE];
    tide_session *s;

    must(tide_session_fork(store, of, at, id, NULL, made, &err), "fork");
    must(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err), "open the fork");
    put(s, 20, 3, 10);
    tide_session_close(s);
}

/* In a process of its own, which is killed while it holds the last session: nothing is given back. */
static void make_all(const char *url)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct tide_new_checkpoint mark = {.size = sizeof mark, .type = TIDE_CHECKPOINT_USER};
        char id[TIDE_ID_SIZE];
        tide_store *store;
        tide_session *s;

        must(tide_store_open(url, &opt, &store, &err), "make the store");
        s = make(store, "long");
        put(s, 200, 1, 20);
        must(tide_checkpoint_save(s, &mark, id, &err), "checkpoint");
        put(s, 400, 8, 20);
        tide_session_close(s);
        fork_off(store, "long", 300, "fork");
        fork_off(store, "fork", 310, "deep");
        s = make(store, "short");
        tide_session_close(s);
        s = make(store, "big");
        put(s, 4, 1, 70000);
        tide_session_close(s);
        s = make(store, "held");
        put(s, 9, 2, 10);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) {
        printf("# the store could not be made\n");
        exit(2);
    }
}

/* ---- reading it ---- */

struct reading {
    struct truth *t;
    bool learn; /* it is the truth */
    int64_t next, n;
};

static char *line_of(const struct tide_event *ev)
{
    struct tide_text text = {NULL, 0};
    char *line;

    must(tide_event_write_json(ev, &text, &err), "as JSON");
    line = strndup(text.ptr, text.len);
    tide_text_done(&text);
    return line;
}

static int take(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;
    char *line = line_of(ev);

    if (r->learn && ev->seq < EVENTS_MAX) {
        r->t->lines[ev->seq] = strdup(line);
    } else if (ev->seq != r->next || ev->seq >= EVENTS_MAX || !r->t->lines[ev->seq] ||
               strcmp(line, r->t->lines[ev->seq]) != 0) {
        printf("# WRONG: %s: event %lld where %lld was to come, or not what was stored: %.120s\n", r->t->id,
               (long long)ev->seq, (long long)r->next, line);
        wrong = true;
    }
    free(line);
    r->next++;
    r->n++;
    return wrong;
}

static void say(const char *id, const char *what, long long got, long long want)
{
    printf("# WRONG: %s: %s: %lld with success, not %lld\n", id, what, got, want);
    wrong = true;
}

/* A refusal has a name and a text. */
static bool refused(const char *id, const char *what, enum tide_code code)
{
    if (code && (!err.msg[0] || code == TIDE_NOT_FOUND || code == TIDE_INVALID)) {
        printf("# WRONG: %s: %s is refused as %s: %s\n", id, what, tide_code_name(code), err.msg);
        wrong = true;
    }
    if (code && verbose)
        printf("#   %s: %s: %s %s\n", id, what, tide_code_name(code), err.msg);
    return code != TIDE_OK;
}

static void read_range(tide_session *s, struct truth *t, unsigned flags, int64_t from, int64_t to)
{
    int64_t first = flags & TIDE_READ_INHERITED ? 1 : t->first;
    int64_t low = from > first ? from : first, high = !to || to > t->last ? t->last : to;
    struct reading r = {.t = t, .next = low};

    if (refused(t->id, "reading", tide_session_read(s, flags, from, to, take, &r, &err)) || wrong)
        return;
    if (r.n != (high >= low ? high - low + 1 : 0))
        say(t->id, "events", r.n, high - low + 1);
}

static int count(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ++*(int *)arg;
    return 0;
}

/* What is computed, without what says when: it is compared as text. */
static char *state_of(tide_session *s, const char *id)
{
    struct tide_text text = {NULL, 0};
    char *copy, *end;

    if (refused(id, "the state", tide_session_get_state(s, 0, &text, &err)))
        return NULL;
    copy = strndup(text.ptr, text.len);
    end = strstr(copy, ",\"status\""); /* who holds it, and since when, is no part of the truth */
    if (end)
        *end = 0;
    tide_text_done(&text);
    return copy;
}

static void look_at(tide_store *store, struct truth *t)
{
    tide_session *s;
    int messages = 0;
    uint64_t events;
    char *state;

    if (refused(t->id, "opening", tide_session_open(store, t->id, TIDE_SESSION_READ, &s, &err)))
        return;
    read_range(s, t, 0, 0, 0);
    read_range(s, t, TIDE_READ_INHERITED, 0, 0);
    read_range(s, t, TIDE_READ_INHERITED, t->last / 2, t->last / 2 + 5);
    read_range(s, t, 0, t->last, t->last);
    if (!refused(t->id, "messages", tide_session_read_messages(s, 0, count, &messages, &err)) &&
        messages != t->messages)
        say(t->id, "messages", messages, t->messages);
    if (!refused(t->id, "verifying", tide_session_verify(s, NULL, NULL, &events, &err)) &&
        (int64_t)events != t->last - t->first + 1)
        say(t->id, "events verified", (long long)events, t->last - t->first + 1);
    state = state_of(s, t->id);
    if (state && strcmp(state, t->state) != 0) {
        printf("# WRONG: %s: the state is another\n# %.300s\n# %.300s\n", t->id, state, t->state);
        wrong = true;
    }
    free(state);
    tide_session_close(s);
}

static void learn(tide_store *store, struct truth *t)
{
    struct reading r = {.t = t, .learn = true};
    tide_session *s;

    must(tide_session_open(store, t->id, TIDE_SESSION_READ, &s, &err), "open");
    t->first = tide_session_first_seq(s);
    t->last = tide_session_last_seq(s);
    must(tide_session_read(s, TIDE_READ_INHERITED, 0, 0, take, &r, &err), "read");
    must(tide_session_read_messages(s, 0, count, &t->messages, &err), "messages");
    t->state = state_of(s, t->id);
    tide_session_close(s);
}

/* ---- one damage ---- */

static int take_listed(void *arg, const struct tide_session_info *info)
{
    unsigned *seen = arg;

    for (size_t i = 0; i < N_TRUTH; i++)
        if (strcmp(info->id, truth[i].id) == 0)
            *seen |= 1u << i;
    return 0;
}

static void list(tide_store *store)
{
    unsigned seen = 0;

    if (!refused("the store", "listing", tide_session_list(store, NULL, take_listed, &seen, &err)) &&
        seen != (1u << N_TRUTH) - 1) {
        printf("# WRONG: sessions are missing in the list: %x\n", seen);
        wrong = true;
    }
}

/* What goes on goes on behind everything that was acknowledged. */
static void go_on(tide_store *store, struct truth *t)
{
    const struct tide_new_event ev = {"note.made", "{\"text\":\"behind\"}", 0};
    tide_session *s;
    enum tide_code code = tide_session_open(store, t->id, TIDE_SESSION_APPEND, &s, &err);

    if (refused(t->id, "opening to append", code))
        return;
    code = tide_session_append(s, 0, &ev, 1, NULL, &err);
    if (!refused(t->id, "appending", code) && tide_session_last_seq(s) != t->last + 1)
        say(t->id, "it goes on at", tide_session_last_seq(s), t->last + 1);
    if (!code && !wrong)
        read_range(s, t, TIDE_READ_INHERITED, 1, t->last);
    tide_session_close(s);
}

static void look_at_all(const char *url, bool writes)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = writes ? 0 : TIDE_OPEN_READ_ONLY};
    tide_store *store;

    if (refused("the store", "opening", tide_store_open(url, &opt, &store, &err)) || wrong)
        return;
    list(store);
    for (size_t i = 0; i < N_TRUTH && !wrong; i++)
        look_at(store, &truth[i]);
    for (size_t i = 0; writes && i < N_TRUTH && !wrong; i++)
        go_on(store, &truth[i]);
    tide_store_close(store);
}

static int in_child(const struct damage_job *j)
{
    pid_t child;
    int status;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(HANG_S);
        look_at_all(j->url, j->writes);
        fflush(stdout);
        _exit(wrong ? 1 : 0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("# WRONG: %s\n", WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A store that nobody has open, made and closed, or as its killed writer left it. */
static void prepare(struct damage_job *j)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = 0};
    char command[1400];
    tide_store *store;

    store_url_in(j->url, sizeof j->url, j->dir, "t");
    make_all(j->url);
    snprintf(command, sizeof command, "mkdir '%s-left' && cp -a '%s/.' '%s-left/'", j->dir, j->dir, j->dir);
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own mkdtemp name */
        exit(2);
    must(tide_store_open(j->url, &opt, &store, &err), "open");
    for (size_t i = 0; i < N_TRUTH; i++)
        learn(store, &truth[i]);
    tide_store_close(store);
    snprintf(command, sizeof command, "mkdir '%s-closed' && cp -a '%s/.' '%s-closed/'", j->dir, j->dir, j->dir);
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own mkdtemp name */
        exit(2);
}

static bool one(struct damage_job *j, uint64_t number)
{
    char from[300];
    int bad;

    damage_seed(j->seed, number);
    snprintf(from, sizeof from, "%s-%s", j->dir, damage_next(2) ? "left" : "closed");
    dir_reset(j->dir, from);
    j->writes = damage_next(2);
    damage_some(j->dir, damage_next(2) ? 1 : 2);
    bad = in_child(j);
    if (bad || verbose)
        printf("# damage %llu of %s, %s%s:%s\n", (unsigned long long)number, strrchr(from, '-') + 1,
               j->writes ? "to write" : "to read", bad ? "" : ", is noticed or does no harm", damage_report());
    if (bad)
        printf("# again with: tidemark-damage --store %s --seed %llu --only %llu --verbose\n", store_kind()->name,
               (unsigned long long)j->seed, (unsigned long long)number);
    return !bad;
}

int main(int argc, char **argv)
{
    struct damage_job j = {.seed = 1, .n = 300};
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    uint64_t failed = 0;

    if (!damage_options(argc, argv, &j))
        return 2;
    setenv("TIDEMARK_STATE_DIR", tmp, 0);
    snprintf(j.dir, sizeof j.dir, "%s/tidemark-damage-XXXXXX", tmp);
    if (!mkdtemp(j.dir))
        return 2;
    prepare(&j);
    for (uint64_t i = j.only ? j.only : 1; i <= (j.only ? j.only : j.n) && failed < 20; i++)
        failed += !one(&j, i);
    printf("%sok - every answer of %llu damaged stores is the truth or a named error\n", failed ? "not " : "",
           (unsigned long long)(j.only ? 1 : j.n));
    dirs_remove(j.dir);
    return failed != 0;
}
