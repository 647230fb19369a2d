/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a killed program from the outside: its log, read through the library, and the file it writes to. */
#ifndef TESTS_REAL_PROGRAM_LOG_H
#define TESTS_REAL_PROGRAM_LOG_H

#include "command.h"

enum { CALLS_MAX = 64, RUNS_MAX = 64 };

struct place {
    char dir[256], store_path[300], program[300], world[300], got[300], out[300], err[300];
    tide_store *store;
    /* of the scenario */
    char id[40], mark[80], token[160];
    bool probe;
    struct rng rng;
    int64_t kills;
};

/* A step as the log has it. */
struct call {
    char id[120], name[20], key[40], output[200];
    bool once, completed;
    int started, completions;
    bool unsettled; /* the last thing known is that it began, or that nobody knows */
};

struct run {
    char id[40];
    int ends, interrupted;
    bool waits;
};

struct log {
    struct call calls[CALLS_MAX];
    struct run runs[RUNS_MAX];
    int n_calls, n_runs, naps;
    int64_t last_seq;
};

/* ---- the log ---- */

static void text_into(char *out, size_t size, const struct json *body, const char *key)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str s = json_get_text(&a, body, str_from(key));

    snprintf(out, size, "%.*s", STR_ARG(s));
}

static struct call *call_of(struct log *l, const struct json *body)
{
    char id[120];

    text_into(id, sizeof id, body, "call_id");
    for (int i = 0; i < l->n_calls; i++)
        if (strcmp(l->calls[i].id, id) == 0)
            return &l->calls[i];
    if (l->n_calls == CALLS_MAX)
        fail_msg("more than %d steps", CALLS_MAX);
    snprintf(l->calls[l->n_calls].id, sizeof id, "%s", id);
    return &l->calls[l->n_calls++];
}

static struct run *run_of(struct log *l, const struct json *body)
{
    char id[40];

    text_into(id, sizeof id, body, "run_id");
    for (int i = 0; i < l->n_runs; i++)
        if (strcmp(l->runs[i].id, id) == 0)
            return &l->runs[i];
    if (l->n_runs == RUNS_MAX)
        fail_msg("more than %d runs", RUNS_MAX);
    snprintf(l->runs[l->n_runs].id, sizeof id, "%s", id);
    return &l->runs[l->n_runs++];
}

static void apply_tool(struct log *l, const char *kind, const struct json *body)
{
    struct call *c = call_of(l, body);
    char effect[20], key[40];

    if (strcmp(kind, "tool.started") == 0) {
        text_into(key, sizeof key, body, "key");
        if (c->started && strcmp(key, c->key) != 0)
            fail_msg("%s began with key %s, then with %s", c->id, c->key, key);
        snprintf(c->key, sizeof c->key, "%s", key);
        text_into(c->name, sizeof c->name, body, "tool");
        text_into(effect, sizeof effect, body, "effect");
        c->once = strcmp(effect, "once") == 0;
        c->started++;
    } else if (strcmp(kind, "tool.completed") == 0) {
        text_into(c->output, sizeof c->output, json_get(body, STR("result")), "output");
        c->completions++;
    }
    c->completed = c->completions > 0;
    c->unsettled = c->once && (strcmp(kind, "tool.started") == 0 || strcmp(kind, "tool.unknown") == 0);
}

static void apply_run(struct log *l, const char *kind, const struct json *body)
{
    struct run *r = run_of(l, body);
    char wait_kind[20];

    if (strcmp(kind, "run.waiting") == 0) {
        text_into(wait_kind, sizeof wait_kind, body, "wait_kind");
        l->naps += strcmp(wait_kind, "timer") == 0;
        r->waits = true;
    } else if (strcmp(kind, "run.resumed") == 0) {
        r->waits = false;
    } else if (strcmp(kind, "run.started") != 0) {
        r->ends++;
        r->interrupted += strcmp(kind, "run.interrupted") == 0;
    }
}

static int apply(void *arg, const struct tide_event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct log *l = arg;
    struct json *body = NULL;

    OK(json_parse(&a, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, &err));
    if (strncmp(ev->kind, "tool.", 5) == 0)
        apply_tool(l, ev->kind, body);
    else if (strncmp(ev->kind, "run.", 4) == 0)
        apply_run(l, ev->kind, body);
    l->last_seq = ev->seq;
    return 0;
}

/* False while there is no such session. */
static bool read_log(struct place *p, struct log *ret)
{
    struct tide_err why = {0};
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(p->store, p->id, TIDE_SESSION_READ, &s, &why);

    *ret = (struct log){.n_calls = 0};
    if (code == TIDE_NOT_FOUND)
        return false;
    if (code)
        fail_msg("%s: %s", p->id, why.msg);
    OK(tide_session_read(s, 0, 1, 0, apply, ret, &err));
    tide_session_close(s);
    return true;
}

static int64_t last_seq(struct place *p)
{
    struct tide_err why = {0};
    tide_session *s = NULL;
    int64_t seq;

    if (tide_session_open(p->store, p->id, TIDE_SESSION_READ, &s, &why))
        return 0;
    seq = tide_session_last_seq(s);
    tide_session_close(s);
    return seq;
}

/* ---- the world ---- */

static int64_t count_lines(const char *path, const char *beginning)
{
    char line[300];
    int64_t n = 0;
    FILE *f = fopen(path, "r");

    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, beginning, strlen(beginning)) == 0;
    if (f)
        fclose(f);
    return n;
}

static int64_t count_key(struct place *p, const char *key)
{
    char beginning[50];

    snprintf(beginning, sizeof beginning, "%s ", key);
    return count_lines(p->world, beginning);
}

/* What a person does who finds that it happened and cannot say so: takes it back, so that it may happen again. */
static void undo(struct place *p, const char *key)
{
    char other[320], line[300];
    FILE *from = fopen(p->world, "r"), *to;

    snprintf(other, sizeof other, "%s.new", p->world);
    to = fopen(other, "w");
    while (from && to && fgets(line, sizeof line, from))
        if (strncmp(line, key, strlen(key)) != 0)
            fputs(line, to);
    if (from)
        fclose(from);
    if (to)
        fclose(to);
    if (from && rename(other, p->world) != 0)
        fail_msg("rename %s", other);
}

#endif
