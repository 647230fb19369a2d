/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of runs and of steps share: a store seen by two processes, runs, what a session says of itself. */
#ifndef TESTS_SESSION_RUNS_H
#define TESTS_SESSION_RUNS_H

#include <stdatomic.h>

#include "kit.h"

struct fixture {
    char dir[256], path[300];
    tide_store *store, *other; /* two processes, as far as leases go */
    struct env_ops ops;
    struct env env;
};

/* The clock stands until it is set: what is over soon is not over too soon, however busy the machine is. */
static _Atomic int64_t clock_ms;

UNUSED static int64_t now(void)
{
    return clock_ms;
}

UNUSED static void until(int64_t ms)
{
    clock_ms = ms;
}

static int64_t standing_ms(struct env *env)
{
    (void)env;
    return now();
}

static tide_store *open_standing(struct fixture *f)
{
    const struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .origin_key = TEST_KEY, .origin_key_len = sizeof TEST_KEY};
    struct store *store = NULL;

    OK(store_open(f->path, &opt, &f->env, &store, &err));
    return (tide_store *)(void *)store;
}

UNUSED static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->path, sizeof f->path, f->dir, "s");
    clock_ms = env_now_ms(env_real());
    f->ops = *env_real()->ops;
    f->ops.now_ms = standing_ms;
    f->env = *env_real();
    f->env.ops = &f->ops;
    f->store = open_standing(f);
    f->other = open_standing(f);
    *state = f;
    return 0;
}

UNUSED static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->other);
    tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

UNUSED static tide_session *create(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "s", NULL, &s, &err));
    return s;
}

UNUSED static tide_session *open_for(tide_store *store)
{
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    return s;
}

UNUSED static tide_run *start(tide_session *s)
{
    tide_run *r = NULL;

    OK(tide_run_start(s, NULL, &r, &err));
    return r;
}

UNUSED static tide_run *resume(tide_session *s, const struct tide_run_options *opt)
{
    tide_run *r = NULL;

    OK(tide_run_resume(s, opt, NULL, &r, &err));
    return r;
}

UNUSED static void finish(tide_run *r)
{
    const struct tide_run_result done = {.size = sizeof done, .outcome = TIDE_OUTCOME_COMPLETED};

    OK(tide_run_end(r, &done, &err));
    tide_run_close(r);
}

struct seen {
    char status[32], outcome[16], reason[32], why[256], next[128];
    int resumable, needs;
};

UNUSED static int take_info(void *arg, const struct tide_session_info *info)
{
    struct seen *seen = arg;

    snprintf(seen->status, sizeof seen->status, "%s", tide_status_name(info->status));
    snprintf(seen->outcome, sizeof seen->outcome, "%s", tide_outcome_name(info->outcome));
    snprintf(seen->reason, sizeof seen->reason, "%s", info->reason);
    snprintf(seen->why, sizeof seen->why, "%s", info->why);
    seen->resumable = info->is_resumable;
    seen->needs = info->needs_resume;
    return 0;
}

UNUSED static struct seen look(tide_store *store)
{
    struct seen seen = {{0}, {0}, {0}, {0}, {0}, 0, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(session_shown(s, take_info, &seen, &err));
    tide_session_close(s);
    return seen;
}

#define STATUS(store, want, want_reason)                                                                               \
    do {                                                                                                               \
        struct seen seen_ = look(store);                                                                               \
        assert_string_equal(seen_.status, want);                                                                       \
        assert_string_equal(seen_.reason, want_reason);                                                                \
    } while (0)

struct counting {
    const char *kind;
    int n;
};

UNUSED static int count_kind(void *arg, const struct tide_event *ev)
{
    struct counting *c = arg;

    c->n += strcmp(ev->kind, c->kind) == 0;
    return 0;
}

UNUSED static int events(tide_store *store, const char *kind)
{
    struct counting c = {kind, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, count_kind, &c, &err));
    tide_session_close(s);
    return c.n;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

struct doing {
    int times, fail_first;
    char key[40];
};

UNUSED static enum tide_code do_it(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    struct doing *d = arg;

    snprintf(d->key, sizeof d->key, "%s", key);
    if (d->times++ < d->fail_first) {
        err->code = TIDE_FAILED;
        snprintf(err->msg, sizeof err->msg, "not yet");
        return TIDE_FAILED;
    }
    ret->ptr = strdup("{\"answer\":42}");
    ret->len = strlen(ret->ptr);
    return TIDE_OK;
}

UNUSED static void step(tide_run *r, const char *name, enum tide_effect effect, struct doing *d)
{
    const struct tide_step_spec spec = {
        .size = sizeof spec, .name = name, .effect = effect, .args = "a", .args_len = 1};
    struct tide_text result = {NULL, 0};

    OK(tide_run_step(r, &spec, do_it, d, &result, &err));
    assert_string_equal(result.ptr, "{\"answer\":42}");
    tide_text_done(&result);
}

UNUSED static void ask(tide_run *r, const char *name, enum tide_effect effect, int probe, enum tide_step_state want,
                       struct tide_step_answer *ret)
{
    const struct tide_step_spec spec = {
        .size = sizeof spec, .name = name, .effect = effect, .args = "a", .args_len = 1, .has_probe = probe};

    OK(tide_step_ask(r, &spec, ret, &err));
    assert_int_equal(ret->state, want);
}

#endif
