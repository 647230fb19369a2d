/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests do behind a store's back, for each kind of store: lose its caches, change one event, make a process that holds
 * leases look dead, count what is there. The store is not asked.
 */
#ifndef TESTS_STORE_TAMPER_H
#define TESTS_STORE_TAMPER_H

#include "kit.h"

#define LOG_NAME ".messages.jsonl"

/* ---- Files of a store --------------------------------------------------------------------------------------- */

typedef void tamper_fn(void *arg, const char *path);

struct tamper_walk {
    struct env *env;
    const char *dir, *ending;
    tamper_fn *fn;
    void *arg;
    int64_t n;
};

static enum tide_code tamper_entry(void *arg, const char *name, enum env_kind kind)
{
    struct tamper_walk *w = arg, below = *w;
    char path[600];
    size_t len = strlen(name), end = strlen(w->ending);

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    if (kind == ENV_DIR) {
        below.dir = path;
        OK(w->env->ops->list(w->env, path, tamper_entry, &below, &err));
        w->n = below.n;
    } else if (len >= end && strcmp(name + len - end, w->ending) == 0) {
        w->n++;
        if (w->fn)
            w->fn(w->arg, path);
    }
    return TIDE_OK;
}

/* Every file below `part` of a files store whose name ends so; how many. None when there is no such directory. */
UNUSED static int64_t tamper_files(const char *url, struct env *env, const char *part, const char *ending,
                                   tamper_fn *fn, void *arg)
{
    char dir[500];
    struct tamper_walk w = {env, dir, ending, fn, arg, 0};
    struct env_stat st;

    snprintf(dir, sizeof dir, "%.400s/%s", store_path(url), part);
    OK(env->ops->stat(env, dir, &st, &err));
    if (st.kind == ENV_DIR)
        OK(env->ops->list(env, dir, tamper_entry, &w, &err));
    return w.n;
}

static void tamper_unlink(void *arg, const char *path)
{
    struct env *env = arg;

    OK(env->ops->unlink(env, path, &err));
}

/* ---- Caches -------------------------------------------------------------------------------------------------- */

UNUSED static void drop_caches_of(const char *url, struct env *env)
{
    if (on_files()) {
        tamper_files(url, env, "cache", "", tamper_unlink, env);
        tamper_files(url, env, "sessions", ".json", tamper_unlink,
                     env); /* snapshots for people and indexes of tokens */
    } else {
        sql_run(store_path(url), env->sqlite_vfs, DROP_CACHES);
    }
}

/* ---- Text of a file, changed --------------------------------------------------------------------------------- */

static char *tamper_text(const char *path)
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

static void tamper_write(const char *path, const char *head, size_t head_len, const char *middle, const char *tail)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)head_len, head, middle, tail);
    assert_int_equal(fclose(f), 0);
}

/* ---- Damage -------------------------------------------------------------------------------------------------- */

struct tamper_event {
    int64_t seq;
    int found;
};

static void tamper_damage(void *arg, const char *path)
{
    struct tamper_event *e = arg;
    char line[40], *text = tamper_text(path), *at;

    snprintf(line, sizeof line, "{\"seq\":%lld,", (long long)e->seq);
    at = strstr(text, line);
    at = at ? strstr(at, "\"ts\":\"") : NULL;
    at = at ? strstr(at, "Z\"") : NULL;
    if (at) {
        char other[2] = {at[-1] == '0' ? '1' : '0', 0};

        tamper_write(path, text, (size_t)(at - 1 - text), other, at);
        e->found++;
    }
    free(text);
}

/* The time of the event with this seq, in every session, is another one. Nobody has the store open. */
UNUSED static void damage_event(const char *url, int64_t seq)
{
    struct tamper_event e = {seq, 0};
    char sql[100];

    snprintf(sql, sizeof sql, "UPDATE events SET ts = ts + 1 WHERE seq = %lld", (long long)seq);
    if (!on_files()) {
        sql_run(store_path(url), NULL, sql);
        return;
    }
    tamper_files(url, env_real(), "sessions", LOG_NAME, tamper_damage, &e);
    assert_true(e.found > 0);
}

/* ---- Who holds leases ---------------------------------------------------------------------------------------- */

struct tamper_member {
    const char *name;
    int64_t value;
};

static void tamper_set(void *arg, const char *path)
{
    const struct tamper_member *m = arg;
    char key[40], value[30], *text = tamper_text(path), *at;

    snprintf(key, sizeof key, "\"%s\":", m->name);
    snprintf(value, sizeof value, "%lld", (long long)m->value);
    at = strstr(text, key);
    assert_non_null(at);
    at += strlen(key);
    tamper_write(path, text, (size_t)(at - text), value, at + strspn(at, " -0123456789"));
    free(text);
}

/* A number in the records of all processes that have leases: "pid", or "expires". */
UNUSED static void boots_set(const char *url, const char *name, int64_t value)
{
    struct tamper_member m = {strcmp(name, "expires") == 0 ? "expires_ms" : name, value};
    char sql[100];

    snprintf(sql, sizeof sql, "UPDATE boots SET %s = %lld", name, (long long)value);
    if (on_files())
        assert_true(tamper_files(url, env_real(), "boots", ".json", tamper_set, &m) > 0);
    else
        sql_run(store_path(url), NULL, sql);
}

/* ---- Counting ------------------------------------------------------------------------------------------------ */

static void tamper_lines(void *arg, const char *path)
{
    char *text = tamper_text(path);

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
    tamper_files(url, env_real(), "sessions", LOG_NAME, tamper_lines, &n);
    return n;
}

/* Sessions, events, leases, big values: none of them is there. */
UNUSED static void assert_nothing_stored(const char *url)
{
    if (on_files()) {
        assert_int_equal(tamper_files(url, env_real(), "sessions", "", NULL, NULL), 0);
        assert_int_equal(tamper_files(url, env_real(), "live", ".json", NULL, NULL), 0);
    } else {
        assert_int_equal(sql_int(store_path(url),
                                 "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM sessions) +"
                                 " (SELECT count(*) FROM live) + (SELECT count(*) FROM blobs)"),
                         0);
    }
}

#endif
