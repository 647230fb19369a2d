/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the way of a run: a process that holds the session, a program of the last run that lives on. */
#include <inttypes.h>

#include "session/run.h"
#include "session/status.h"

#define DYING_MS 1500 /* on a busy machine the end of a killed tree takes its time */

bool session_held_alive(const struct tide_session *s)
{
    return s->head.held && s->head.holder_alive && s->head.epoch != s->owner.epoch;
}

static bool process_lives(struct store *store, const struct run *r, int64_t pid, int64_t start)
{
    struct env_proc p = {.pid_ns = (uint64_t)r->pid_ns, .pid = pid, .start_time = (uint64_t)start};
    enum env_life life;

    snprintf(p.kernel_boot, sizeof p.kernel_boot, "%s", r->kernel_boot ? r->kernel_boot : "");
    life = pid > 0 ? store->env->ops->life(store->env, &p) : ENV_DEAD;
    return life == ENV_ALIVE || life == ENV_STOPPED;
}

/* A program of the last run that lives on would do the same things beside the new one. */
static struct status_alive find_living(struct store *store, const struct state *state)
{
    const struct ledger *l = &state->ledger;

    if (process_lives(store, &l->run, l->run.pid, l->run.pid_start))
        return (struct status_alive){.pid = l->run.pid};
    for (struct map_entry *e = map_next(&l->effects, NULL); e; e = map_next(&l->effects, e)) {
        const struct effect *f = e->value;

        if (process_lives(store, &l->run, f->pid, f->pid_start))
            return (struct status_alive){.pid = f->pid, .step = f->tool ? f->tool : ""};
    }
    return (struct status_alive){.pid = 0};
}

void status_of_session(struct status *ret, struct store *store, const struct state *state, bool owner_alive)
{
    struct status_alive alive = {.owner = owner_alive};

    if (!owner_alive && state->ledger.run.end != RUN_NONE && state->ledger.run.end != RUN_COMPLETED)
        alive = find_living(store, state);
    status_derive_alive(ret, state, &alive, env_now_ms(store->env));
}

/* One whose supervisor was killed just now is dying: that takes a moment. */
enum tide_code session_refuse_living(struct tide_session *s, struct tide_err *err)
{
    struct env *env = s->store->env;
    struct status_alive alive = find_living(s->store, s->state);

    for (int waited = 0; alive.pid && waited < DYING_MS; waited += 5) {
        env->ops->sleep_ms(env, 5);
        alive = find_living(s->store, s->state);
    }
    if (alive.step)
        return tide_fail(err, TIDE_ALIVE,
                         "the program of step '%s' is still alive (process %" PRId64 "): wait for it to end, or end "
                         "it",
                         alive.step, alive.pid);
    if (alive.pid)
        return tide_fail(err, TIDE_ALIVE,
                         "the program of the last run is still alive (process %" PRId64 "): wait for it to end, or "
                         "end it",
                         alive.pid);
    return TIDE_OK;
}

enum tide_code session_refuse_held(struct tide_session *s, struct tide_err *err)
{
    if (s->owner.epoch && s->state->ledger.run.end == RUN_OPEN && !s->state->ledger.run.waiting)
        return tide_fail(err, TIDE_HELD, "a run of session '%s' is in progress in this process: end it first",
                         s->head.id);
    if (!session_held_alive(s))
        return TIDE_OK;
    tide_fail_session(err, TIDE_HELD, s->head.id, "is held by %s: wait for it to end", s->head.holder);
    return tide_hint(err, TIDE_ACTION_CANCEL, s->head.id);
}
