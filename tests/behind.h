/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests do behind a store's back, for each kind of store: lose its caches, change one event, make a process that holds
 * leases look dead, count what is there. The store is not asked.
 */
#ifndef TESTS_BEHIND_H
#define TESTS_BEHIND_H

#include "kit.h"

#define LOG_NAME ".messages.jsonl"

/* ---- Files of a store --------------------------------------------------------------------------------------- */

typedef void behind_fn(void *arg, const char *path);

struct behind_walk {
    struct env *env;
    const char *dir, *ending;
    behind_fn *fn;
    void *arg;
    int64_t n;
};

static enum tide_code behind_entry(void *arg, const char *name, enum env_kind kind)
{
    struct behind_walk *w = arg, below = *w;
    char path[600];
    size_t len = strlen(name), end = strlen(w->ending);

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    if (kind == ENV_DIR) {
        below.dir = path;
        OK(w->env->ops->list(w->env, path, behind_entry, &below, &err));
        w->n = below.n;
    } else if (len >= end && strcmp(name + len - end, w->ending) == 0) {
        w->n++;
        if (w->fn)
            w->fn(w->arg, path);
    }
    return TIDE_OK;
}

/* Every file below `part` of a files store whose name ends so; how many. None when there is no such directory. */
UNUSED static int64_t behind_files(const char *url, struct env *env, const char *part, const char *ending,
                                   behind_fn *fn, void *arg)
{
    char dir[500];
    struct behind_walk w = {env, dir, ending, fn, arg, 0};
    struct env_stat st;

    snprintf(dir, sizeof dir, "%.400s/%s", store_path(url), part);
    OK(env->ops->stat(env, dir, &st, &err));
    if (st.kind == ENV_DIR)
        OK(env->ops->list(env, dir, behind_entry, &w, &err));
    return w.n;
}

static void behind_unlink(void *arg, const char *path)
{
    struct env *env = arg;

    OK(env->ops->unlink(env, path, &err));
}

/* ---- Caches -------------------------------------------------------------------------------------------------- */

UNUSED static void drop_caches_of(const char *url, struct env *env)
{
    if (on_files()) {
        behind_files(url, env, "cache", "", behind_unlink, env);
        behind_files(url, env, "sessions", ".json", behind_unlink,
                     env); /* snapshots for people and indexes of tokens */
    } else {
        sql_run(store_path(url), env->sqlite_vfs, DROP_CACHES);
    }
}

/* ---- Text of a file, changed --------------------------------------------------------------------------------- */

static char *behind_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text;
    long n = -1;

    if (!f || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
        fail_msg("read %s", path);
    text = mem_zero((size_t)n + 1);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

static void behind_write(const char *path, const char *head, size_t head_len, const char *middle, const char *tail)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)head_len, head, middle, tail);
    assert_int_equal(fclose(f), 0);
}

/* ---- Damage -------------------------------------------------------------------------------------------------- */

struct behind_event {
    int64_t seq;
    int found;
};

static void behind_damage(void *arg, const char *path)
{
    struct behind_event *e = arg;
    char line[40], *text = behind_text(path), *at;

    snprintf(line, sizeof line, "{\"seq\":%lld,", (long long)e->seq);
    at = strstr(text, line);
    at = at ? strstr(at, "\"ts\":\"") : NULL;
    at = at ? strstr(at, "Z\"") : NULL;
    if (at) {
        char other[2] = {at[-1] == '0' ? '1' : '0', 0};

        behind_write(path, text, (size_t)(at - 1 - text), other, at);
        e->found++;
    }
    free(text);
}

/* The time of the event with this seq, in every session, is another one. Nobody has the store open. */
UNUSED static void damage_event(const char *url, int64_t seq)
{
    struct behind_event e = {seq, 0};
    char sql[100];

    snprintf(sql, sizeof sql, "UPDATE events SET ts = ts + 1 WHERE seq = %lld", (long long)seq);
    if (!on_files()) {
        sql_run(store_path(url), NULL, sql);
        return;
    }
    behind_files(url, env_real(), "sessions", LOG_NAME, behind_damage, &e);
    assert_true(e.found > 0);
}

/* ---- Who holds leases ---------------------------------------------------------------------------------------- */

struct behind_member {
    const char *name;
    int64_t value;
};

static void behind_set(void *arg, const char *path)
{
    const struct behind_member *m = arg;
    char key[40], value[30], *text = behind_text(path), *at;

    snprintf(key, sizeof key, "\"%s\":", m->name);
    snprintf(value, sizeof value, "%lld", (long long)m->value);
    at = strstr(text, key);
    assert_non_null(at);
    at += strlen(key);
    behind_write(path, text, (size_t)(at - text), value, at + strspn(at, " -0123456789"));
    free(text);
}

/* A number in the records of all processes that have leases: "pid", or "expires". */
UNUSED static void boots_set(const char *url, const char *name, int64_t value)
{
    struct behind_member m = {strcmp(name, "expires") == 0 ? "expires_ms" : name, value};
    char sql[100];

    snprintf(sql, sizeof sql, "UPDATE boots SET %s = %lld", name, (long long)value);
    if (on_files())
        assert_true(behind_files(url, env_real(), "boots", ".json", behind_set, &m) > 0);
    else
        sql_run(store_path(url), NULL, sql);
}

/* ---- Counting ------------------------------------------------------------------------------------------------ */

static void behind_lines(void *arg, const char *path)
{
    char *text = behind_text(path);

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        ++*(int64_t *)arg;
    free(text);
}

/* All that are stored, also those of sessions that nobody is shown. */
UNUSED static int64_t stored_events(const char *url)
{
    int64_t n = 0;

    if (!on_files())
        return sql_int(store_path(url), "SELECT count(*) FROM events");
    behind_files(url, env_real(), "sessions", LOG_NAME, behind_lines, &n);
    return n;
}

/* Sessions, events, leases, big values: none of them is there. */
UNUSED static void assert_nothing_stored(const char *url)
{
    if (on_files()) {
        assert_int_equal(behind_files(url, env_real(), "sessions", "", NULL, NULL), 0);
        assert_int_equal(behind_files(url, env_real(), "live", "", NULL, NULL), 0);
    } else {
        assert_int_equal(sql_int(store_path(url),
                                 "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM sessions) +"
                                 " (SELECT count(*) FROM live) + (SELECT count(*) FROM blobs)"),
                         0);
    }
}

#endif
