/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a status is what it is, in one sentence for people. Sentences name points in time, never spans up to now: two answers
 * about the same state are the same text.
 */
#include "base/utf8.h"
#include "session/status_internal.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/timefmt.h"
#include "session/settle.h"

#define QUOTE_MAX 200 /* bytes of a question or message that are quoted */

static __attribute__((format(printf, 2, 3))) void say(struct status *s, const char *fmt, ...)
{
    size_t len = strlen(s->why);
    va_list args;

    va_start(args, fmt);
    vsnprintf(s->why + len, sizeof s->why - len, fmt, args);
    va_end(args);
}

/* Text of somebody else, cut at a character; its lines become one. */
static void say_quoted(struct status *s, const char *before, const char *text)
{
    struct str shown = utf8_clip(str_from(text), QUOTE_MAX);
    size_t begin = strlen(s->why);

    say(s, "%s%.*s%s", before, STR_ARG(shown), text[shown.len] ? "…" : "");
    for (char *c = s->why + begin; *c; c++)
        *c = is_blank_char(*c) ? ' ' : *c;
}

static void say_when(struct status *s, const char *before, int64_t unix_ms)
{
    char text[TIME_PEOPLE_SIZE];

    if (unix_ms > 0)
        say(s, "%s%s", before, time_people(text, unix_ms));
}

#define NODES_SAID 3

/* "; node a and 2 more <word>" */
static void say_nodes(const struct subject *o, const struct map *tasks, const char *word)
{
    size_t said = 0;

    for (struct map_entry *e = map_next(tasks, NULL); e && said < NODES_SAID; e = map_next(tasks, e), said++)
        say_quoted(o->st, said ? ", " : tasks->live > 1 ? "; nodes " : "; node ", e->key);
    if (tasks->live > said)
        say(o->st, " and %zu more", tasks->live - said);
    if (said)
        say(o->st, " %s", word);
}

/* Where a graph is: what was under way, else what comes next. */
static void say_position(const struct subject *o, const char *word)
{
    const struct position *p = &o->state->content.position;
    int64_t complete = p->steps - (int64_t)p->active.live;

    if (complete > 0)
        say(o->st, "; %" PRId64 " node%s complete", complete, complete == 1 ? " is" : "s are");
    if (p->active.live)
        say_nodes(o, &p->active, word);
    else
        say_nodes(o, &p->ready, p->ready.live > 1 ? "are next" : "is next");
}

static void say_stuck(const struct subject *o, const char *stuck)
{
    const char *cut[NODES_SAID] = {stuck};
    size_t n = o->graph ? status_cut(o, cut, NODES_SAID) : 1;

    n = n ? n : 1; /* it failed */
    for (size_t i = 0; i < n && i < NODES_SAID; i++)
        say_quoted(o->st, i ? ", " : n > 1 ? "; nodes " : o->graph ? "; node " : "; step ", cut[i]);
    if (n > NODES_SAID)
        say(o->st, " and %zu more", n - NODES_SAID);
    say(o->st, n > 1 ? " must happen once and failed or were interrupted: find out whether they happened"
                     : " must happen once and failed or was interrupted: find out whether it happened");
}

static void say_steps(const struct subject *o)
{
    const struct ledger *l = &o->state->ledger;
    const struct map_entry *e = map_next(&l->effects, NULL);
    int64_t finished = l->effects_completed - l->chain_before;
    const char *cut;

    if (o->graph) {
        say_position(o, o->state->content.position.active.live > 1 ? "were running" : "was running");
        if (status_cut(o, &cut, 1))
            say_stuck(o, cut);
        return;
    }
    while (e && ((const struct effect *)e->value)->past)
        e = map_next(&l->effects, (struct map_entry *)(uintptr_t)e);
    if (finished > 0)
        say(o->st, "; %" PRId64 " step%s had been finished", finished, finished == 1 ? "" : "s");
    if (e && ((const struct effect *)e->value)->tool)
        say_quoted(o->st, "; it was in the middle of ", ((const struct effect *)e->value)->tool);
    if (e && !o->chat && ((const struct effect *)e->value)->effect &&
        strcmp(((const struct effect *)e->value)->effect, "once") == 0)
        say(o->st, ", which must happen once: find out whether it happened");
}

static void say_mending(const struct subject *o)
{
    static const char *const words[] = {[MEND_NOTHING] = NULL,
                                        [MEND_GRAPH] = "continue with a corrected graph",
                                        [MEND_EITHER] = "continue with a corrected graph, or with another value",
                                        [MEND_HERE] = "put it there, or continue with a corrected graph",
                                        [MEND_VALUE] = "set what is missing"};
    enum mending m = status_hollow(o) ? MEND_GRAPH : status_mending(o);

    if (words[m])
        say(o->st, "; a resume would fail there again: %s", words[m]);
}

static void say_maker(const struct subject *o)
{
    if (o->has_program || !o->st->is_resumable)
        return;
    if (o->state->ledger.program_seq)
        say(o->st, "; its command line contained a secret, which is not stored: it is not run again from the log");
    else
        say(o->st, "; resume it with the program that created it");
}

const char *status_reason_sentence(const char *reason)
{
    static const struct {
        const char *reason, *sentence;
    } known[] = {
        {"process_restart", "its process ended unexpectedly (killed, or the machine went down)"},
        {"process_exit", "its process ended before it did"},
        {"shutdown", "its process was stopped"},
        {"store_trouble", "the store could not be written"},
        {"wait_timeout", "there was no answer before the deadline"},
        {"token_revoked", "the token that answers it was revoked"},
        {"token_expired", "the token that answers it has expired"},
        {"token_consumed", "the token that answers it was used, but the run did not continue"},
        {"token_missing", "there is no token that answers it"},
        {"superseded", "a newer run replaced it"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].reason, reason) == 0)
            return known[i].sentence;
    }
    return NULL;
}

const char *status_in_short(const struct status *status)
{
    static const char *const ends[] = {
        [TIDE_OUTCOME_NONE] = "nothing has run in it yet",
        [TIDE_OUTCOME_COMPLETED] = "its last run was completed",
        [TIDE_OUTCOME_FAILED] = "its last run failed",
        [TIDE_OUTCOME_CANCELLED] = "its last run was cancelled",
        [TIDE_OUTCOME_INTERRUPTED] = "its last run was interrupted",
    };
    const char *sentence = status_reason_sentence(status->reason);

    if (status->status == TIDE_STATUS_WAITING)
        return strcmp(status->reason, "due") == 0 ? "its deadline has passed" : "it waits";
    if (status->status == TIDE_STATUS_RUNNING)
        return "it runs";
    return sentence ? sentence : ends[status->outcome];
}

static void say_reason(struct status *s, const char *before)
{
    const char *sentence = status_reason_sentence(s->reason);

    if (sentence)
        say(s, "%s%s", before, sentence);
    else
        say_quoted(s, before, s->reason);
}

static void say_interrupted_startup(const struct subject *o)
{
    const struct run *r = o->run;

    if (r->end == RUN_OPEN) {
        say(o->st, "the process that ran it");
        if (r->pid > 0 && !is_leftover(o))
            say(o->st, " (pid %" PRId64 ")", r->pid);
        say(o->st, is_leftover(o) ? " does not respond (it may be stopped)" : " is gone");
        say_when(o->st, "; its last event was at ", o->state->ts_ms);
    } else {
        if (r->by_person) {
            say(o->st, "a person stopped it");
            say_when(o->st, " at ", r->ended_ms);
            say(o->st, ", so it is not resumed automatically");
        } else {
            say_reason(o->st, "it was interrupted: ");
            say_when(o->st, strcmp(o->st->reason, "process_restart") == 0 ? ", detected at " : ", at ", r->ended_ms);
        }
        if (r->error_message)
            say_quoted(o->st, ": ", r->error_message);
    }
    say_steps(o);
    say_maker(o);
}

static void say_wait(const struct subject *o, const char *verb)
{
    const struct run *r = o->run;

    say_quoted(o->st, verb, wait_word(r));
    if (r->question)
        say_quoted(o->st, ": \"", r->question);
    if (r->question)
        say(o->st, "\"");
    say_when(o->st, ", since ", r->since_ms);
}

static void say_interrupted_waiting(const struct subject *o)
{
    const struct run *r = o->run;

    say_wait(o, "it waited for ");
    if (r->due_ms)
        say_when(o->st, ", until ", r->due_ms);
    say_reason(o->st, ", and that wait has ended: ");
    if (strcmp(o->st->reason, "wait_timeout") == 0)
        say_when(o->st, ", which was ", r->deadline_ms);
    else if (r->end == RUN_INTERRUPTED)
        say_when(o->st, ", at ", r->ended_ms);
    else if (strcmp(o->st->reason, "token_expired") == 0)
        say_when(o->st, ", at ", r->token_expires_ms);
    say_maker(o);
}

/* What will happen then. */
static void say_deadline(const struct subject *o)
{
    const struct run *r = o->run;

    if (!r->deadline_ms)
        return;
    if (r->on_deadline == TIDE_ON_DEADLINE_DEFAULT && (!r->default_answer || strcmp(r->default_answer, "null") == 0))
        say(o->st, "; then it continues without an answer");
    else if (r->on_deadline == TIDE_ON_DEADLINE_DEFAULT)
        say_quoted(o->st, "; then it is answered with ", r->default_answer);
    else
        say(o->st, r->on_deadline == TIDE_ON_DEADLINE_FAIL ? "; then its run fails" : "; then it is interrupted");
}

static void say_waiting(const struct subject *o)
{
    const struct run *r = o->run;

    if (status_due_ms(o)) {
        bool due = status_due_ms(o) <= o->now_ms;

        say_when(o->st,
                 !r->due_ms || !r->wait_key ? "it had no answer before its deadline, "
                 : due                      ? "it was due at "
                                            : "it sleeps until ",
                 status_due_ms(o));
        if (r->wait_name)
            say_quoted(o->st, " (", r->wait_name);
        if (r->wait_name)
            say(o->st, ")");
        if (due)
            say(o->st, "%s continues as soon as it is resumed", !r->due_ms || !r->wait_key ? ", and" : " and");
    } else {
        say_wait(o, "it waits for ");
        say_when(o->st, ", until ", r->deadline_ms);
        say_deadline(o);
        if (r->token_expires_ms != r->deadline_ms)
            say_when(o->st, "; the token is valid until ", r->token_expires_ms);
    }
    say_maker(o);
}

static void say_running(const struct subject *o)
{
    const struct run *r = o->run;
    const struct ledger *l = &o->state->ledger;

    say(o->st, "a run is in progress");
    say_when(o->st, " since ", r->started_ms);
    if (r->pid > 0)
        say(o->st, " (pid %" PRId64 ")", r->pid);
    if (o->graph)
        say_position(o, o->state->content.position.active.live > 1 ? "are running" : "is running");
    if (r->retry_ms > o->now_ms) { /* a pause between attempts; afterwards the next one is under way */
        say_when(o->st, "; a model call failed and is retried at ", r->retry_ms);
        say_quoted(o->st, ": ", r->retry_error ? r->retry_error : "");
    }
    if (l->cancel_seq > r->started_seq && l->cancel_seq > r->active_seq)
        say(o->st, "; it was told to stop");
}

/* Some branch ended early, and that was to be so: never hidden. */
static void say_dropped(const struct subject *o)
{
    const struct map *dropped = &o->state->content.position.dropped;
    size_t said = 0;

    if (!o->graph || !dropped->live)
        return;
    say(o->st, "; %zu node%s failed, the others continued", dropped->live, dropped->live == 1 ? "" : "s");
    for (struct map_entry *e = map_next(dropped, NULL); e && said < NODES_SAID; e = map_next(dropped, e), said++)
        say_quoted(o->st, said ? ", " : ": ", e->key);
    if (dropped->live > said)
        say(o->st, " and %zu more", dropped->live - said);
}

static void say_idle(const struct subject *o)
{
    const char *stuck = status_stuck(o);
    const struct run *r = o->run;
    struct status *s = o->st;

    if (r->end == RUN_NONE) {
        say(s, "nothing has run in it yet");
        if (o->graph)
            say_position(o, "was running where it was forked");
        return;
    }
    say(s, "its last run %s",
        r->end == RUN_COMPLETED                      ? "was completed"
        : r->end == RUN_FAILED || r->end == RUN_OPEN ? "failed" /* open: nobody has written it down yet */
                                                     : "was cancelled");
    say_when(s, " at ", r->end == RUN_OPEN ? r->deadline_ms : r->ended_ms);
    if (r->failed_at_node && !(o->graph && r->error_message)) /* there the message names it */
        say_quoted(s, ", at node ", r->failed_at_node);
    if ((r->reason || r->end == RUN_OPEN) && strcmp(s->reason, tide_outcome_name(s->outcome)) != 0 &&
        !(r->error_message && (o->graph || strcmp(s->reason, "wait_timeout") == 0)))
        say_reason(s, ": ");
    if (r->error_message)
        say_quoted(s, ": ", r->error_message);
    if (r->end == RUN_FAILED && !s->is_resumable)
        say(s, "; it cannot be resumed");
    say_dropped(o);
    if (!stuck) {
        say_mending(o);
    } else if (s->is_resumable) {
        say_stuck(o, stuck);
    }
    say_maker(o);
}

/* The person who resumes it is refused for the same reason. */
static void say_leftover(const struct subject *o)
{
    if (!is_leftover(o))
        return;
    if (o->alive->step)
        say_quoted(o->st, "; the program of step ", o->alive->step);
    else
        say(o->st, "; its program");
    say(o->st, " is still alive (process %" PRId64 "): it can be resumed when that has ended", o->alive->pid);
}

void status_say(const struct subject *o)
{
    switch (o->st->status) {
    case TIDE_STATUS_INTERRUPTED_STARTUP:
        say_interrupted_startup(o);
        break;
    case TIDE_STATUS_INTERRUPTED_WAITING:
        say_interrupted_waiting(o);
        break;
    case TIDE_STATUS_WAITING:
        say_waiting(o);
        break;
    case TIDE_STATUS_RUNNING:
        say_running(o);
        break;
    case TIDE_STATUS_IDLE:
        say_idle(o);
        break;
    case TIDE_STATUS_DAMAGED:
        break;
    }
    if (status_denied(o)) {
        say_quoted(o->st, "; question ", status_denied(o));
        say(o->st, " was answered with no, and can be asked again");
    }
    say_leftover(o);
    if (o->state->ledger.queued)
        say(o->st, "; %" PRId64 " message%s queued%s", o->state->ledger.queued,
            o->state->ledger.queued == 1 ? " is" : "s are",
            settle_delivers(o->state) ? ", and delivered when it runs" : ": the next run can take it");
    if (o->run->degraded)
        say(o->st,
            " (durability: degraded: %" PRId64 " event%s of it waited in memory while the store could not be written)",
            o->run->degraded, o->run->degraded == 1 ? "" : "s");
}
