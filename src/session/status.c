/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status, by precedence: interrupted_startup, interrupted_waiting, waiting, running, idle. Nothing is stored: ask twice at
 * different times and the answer may differ, because owners die and deadlines pass.
 *
 * In order: which of the five it is; then what it says about itself (reason, sentence); then the commands that move it;
 * then the same in the words of graphs and of task sessions. Sentences name points in time, never spans up to now: two
 * answers about the same state are the same text.
 */
#include "session/status.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/timefmt.h"

/* What the sentences and commands are made of. */
struct subject {
    struct status *st;
    const struct state *state;
    const struct run *run;
    bool has_program; /* `tidemark resume` can run it */
    int64_t now_ms;
    bool chat;  /* that is the agent's loop: a prompt begins its next run */
    bool graph; /* it is a graph: what it stands at are nodes */
};

/* ---- The sentence -------------------------------------------------------------------------------------------------- */

#define QUOTE_MAX 200 /* bytes of a question or message that are quoted */
#define WHEN_SIZE 32

static __attribute__((format(printf, 2, 3))) void say(struct status *s, const char *fmt, ...)
{
    size_t len = strlen(s->why);
    va_list args;

    va_start(args, fmt);
    vsnprintf(s->why + len, sizeof s->why - len, fmt, args);
    va_end(args);
}

/* Text of somebody else, cut at a character. */
static void say_quoted(struct status *s, const char *before, const char *text)
{
    size_t len = strlen(text), shown = len;

    if (len > QUOTE_MAX) {
        shown = QUOTE_MAX;
        while (shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
            shown--;
    }
    say(s, "%s%.*s%s", before, (int)shown, text, shown < len ? "…" : "");
}

/* "2026-02-21 10:01:10 UTC": exact to the second, which is what a person needs. */
static const char *when(char out[WHEN_SIZE], int64_t unix_ms)
{
    char iso[TIME_TEXT_SIZE];

    time_format(iso, unix_ms);
    iso[10] = ' ';
    snprintf(out, WHEN_SIZE, "%.19s UTC", iso);
    return out;
}

static void say_when(struct status *s, const char *before, int64_t unix_ms)
{
    char text[WHEN_SIZE];

    if (unix_ms > 0)
        say(s, "%s%s", before, when(text, unix_ms));
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

static void say_steps(const struct subject *o)
{
    const struct ledger *l = &o->state->ledger;
    const struct map_entry *e = map_next(&l->effects, NULL);

    if (o->graph) {
        say_position(o, o->state->content.position.active.live > 1 ? "were under way" : "was under way");
        return;
    }
    while (e && ((const struct effect *)e->value)->past)
        e = map_next(&l->effects, (struct map_entry *)(uintptr_t)e);
    if (l->effects_completed > 0)
        say(o->st, "; %" PRId64 " step%s had been finished", l->effects_completed,
            l->effects_completed == 1 ? "" : "s");
    if (e && ((const struct effect *)e->value)->tool)
        say_quoted(o->st, "; it was in the middle of ", ((const struct effect *)e->value)->tool);
}

/* A node that must happen once and was cut. */
static const char *cut_node(const struct subject *o)
{
    const struct map *effects = &o->state->ledger.effects;

    for (struct map_entry *e = map_next(effects, NULL); e; e = map_next(effects, e)) {
        const struct effect *f = e->value;

        if (!f->past && f->tool && f->effect && strcmp(f->effect, "once") == 0 && strncmp(e->key, "node:", 5) == 0)
            return f->tool;
    }
    return NULL;
}

/* What must happen once, failed or was cut, and is still to be gone on with. A rollback leaves a node behind; an edge may
 * have taken care of it. */
static const char *stuck_at(const struct subject *o)
{
    const char *cut = o->graph ? cut_node(o) : NULL, *stuck = o->state->ledger.stuck;
    const struct task *t = o->graph && stuck ? map_get(&o->state->content.position.active, str_from(stuck)) : NULL;

    if (o->chat || cut || !o->graph)
        return o->chat ? NULL : cut ? cut : stuck;
    return t && (t->state == TASK_RUNNING || t->state == TASK_FAILED) ? stuck : NULL;
}

static void say_stuck(const struct subject *o)
{
    const char *name = stuck_at(o);

    if (!name || !o->st->is_resumable)
        return;
    say_quoted(o->st, o->graph ? "; node " : "; step ", name);
    say(o->st, " must happen once and failed or was cut: find out whether it happened");
}

/* What a node that failed with this code needs before it can go on. */
enum mending {
    MEND_NOTHING, /* it may well go on as it is */
    MEND_GRAPH,   /* another graph alone helps */
    MEND_EITHER,  /* another graph, or another value: with the same of both it ends there again */
    MEND_HERE,    /* something of this machine, or another graph */
    MEND_VALUE
};

static enum mending mending(const struct subject *o)
{
    static const struct {
        const char *code;
        enum mending mend;
    } known[] = {
        {"max_steps", MEND_GRAPH}, {"conflict", MEND_GRAPH}, {"secret", MEND_GRAPH},        {"too_big", MEND_EITHER},
        {"template", MEND_EITHER}, {"lua", MEND_EITHER},     {"choice", MEND_EITHER},       {"limit", MEND_EITHER},
        {"not_found", MEND_HERE},  {"denied", MEND_HERE},    {"missing_input", MEND_VALUE},
    };
    const struct run *r = o->run;
    const char *code = o->graph && r->end == RUN_FAILED && o->st->is_resumable ? r->error_code : NULL;

    for (size_t i = 0; code && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].code, code) == 0)
            return known[i].mend;
    return MEND_NOTHING;
}

/* A graph inside that is over without what it promised: nothing in it is left to run. */
static bool is_hollow(const struct subject *o)
{
    const struct run *r = o->run;
    const struct position *p = &o->state->content.position;
    const struct task *t = o->graph && r->failed_at_node ? map_get(&p->active, str_from(r->failed_at_node)) : NULL;
    char frame[256];

    if (!t || !r->error_code || strcmp(r->error_code, "missing_output") != 0)
        return false;
    snprintf(frame, sizeof frame, "%s#%" PRId64, r->failed_at_node, t->visit);
    return map_get(&p->scopes, str_from(frame)) != NULL;
}

static void say_mending(const struct subject *o)
{
    static const char *const words[] = {[MEND_NOTHING] = NULL,
                                        [MEND_GRAPH] = "go on with a graph that is mended",
                                        [MEND_EITHER] = "go on with a graph that is mended, or with another value",
                                        [MEND_HERE] = "put it there, or go on with a graph that is mended",
                                        [MEND_VALUE] = "set what is missing"};
    enum mending m = is_hollow(o) ? MEND_GRAPH : mending(o);

    if (words[m])
        say(o->st, "; as it is it would end there again: %s", words[m]);
}

static void say_maker(const struct subject *o)
{
    if (!o->has_program && o->st->is_resumable)
        say(o->st, "; resume it with the program that made it");
}

static const char *reason_sentence(const char *reason)
{
    static const struct {
        const char *reason, *sentence;
    } known[] = {
        {"process_restart", "its process ended without a word (killed, or the machine went down)"},
        {"process_exit", "its process ended before it did"},
        {"shutdown", "its process was stopped in order"},
        {"store_trouble", "the store could not be written"},
        {"wait_timeout", "nobody answered before the deadline"},
        {"token_revoked", "the token that answers it was revoked"},
        {"token_expired", "the token that answers it has expired"},
        {"token_consumed", "the token that answers it was used, and nothing went on"},
        {"token_missing", "there is no token that answers it"},
        {"superseded", "a newer run took its place"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].reason, reason) == 0)
            return known[i].sentence;
    }
    return NULL;
}

static void say_reason(struct status *s, const char *before)
{
    const char *sentence = reason_sentence(s->reason);

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
        if (r->pid > 0)
            say(o->st, " (pid %" PRId64 ")", r->pid);
        say(o->st, " is gone");
        say_when(o->st, "; it was last heard of at ", o->state->ts_ms);
    } else {
        say_reason(o->st, "it was running and was cut off: ");
        say_when(o->st, strcmp(o->st->reason, "process_restart") == 0 ? ", noticed at " : ", at ", r->ended_ms);
        if (r->error_message)
            say_quoted(o->st, ": ", r->error_message);
        if (r->by_person)
            say(o->st, "; a person stopped it, so it is not resumed by itself");
    }
    say_steps(o);
    say_maker(o);
}

static const char *wait_word(const struct run *r)
{
    return r->wait_kind ? r->wait_kind : "input";
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
    say_reason(o->st, ", and that wait is over: ");
    if (strcmp(o->st->reason, "wait_timeout") == 0)
        say_when(o->st, ", which was ", r->deadline_ms);
    else if (r->end == RUN_INTERRUPTED)
        say_when(o->st, ", at ", r->ended_ms);
    else if (strcmp(o->st->reason, "token_expired") == 0)
        say_when(o->st, ", at ", r->token_expires_ms);
    say_maker(o);
}

static void say_waiting(const struct subject *o)
{
    const struct run *r = o->run;

    if (r->due_ms) {
        bool due = r->due_ms <= o->now_ms;

        say_when(o->st, due ? "it was due at " : "it sleeps until ", r->due_ms);
        if (r->wait_name)
            say_quoted(o->st, " (", r->wait_name);
        if (r->wait_name)
            say(o->st, ")");
        if (due)
            say(o->st, " and goes on as soon as something runs it");
    } else {
        say_wait(o, "it waits for ");
        say_when(o->st, ", until ", r->deadline_ms);
        if (r->token_expires_ms != r->deadline_ms)
            say_when(o->st, "; the token is good until ", r->token_expires_ms);
    }
    say_maker(o);
}

static void say_running(const struct subject *o)
{
    const struct run *r = o->run;
    const struct ledger *l = &o->state->ledger;

    say(o->st, "a run is under way");
    say_when(o->st, " since ", r->started_ms);
    if (r->pid > 0)
        say(o->st, " (pid %" PRId64 ")", r->pid);
    if (o->graph)
        say_position(o, o->state->content.position.active.live > 1 ? "are under way" : "is under way");
    if (l->cancel_seq > r->started_seq && l->cancel_seq > r->active_seq)
        say(o->st, "; it was asked to stop");
}

/* Some branch ended early, and that was to be so: never hidden. */
static void say_dropped(const struct subject *o)
{
    const struct map *dropped = &o->state->content.position.dropped;
    size_t said = 0;

    if (!o->graph || !dropped->live)
        return;
    say(o->st, "; %zu node%s failed, the others went on", dropped->live, dropped->live == 1 ? "" : "s");
    for (struct map_entry *e = map_next(dropped, NULL); e && said < NODES_SAID; e = map_next(dropped, e), said++)
        say_quoted(o->st, said ? ", " : ": ", e->key);
    if (dropped->live > said)
        say(o->st, " and %zu more", dropped->live - said);
}

static void say_idle(const struct subject *o)
{
    const struct run *r = o->run;
    struct status *s = o->st;

    if (r->end == RUN_NONE) {
        say(s, "nothing has run in it yet");
        if (o->graph)
            say_position(o, "was under way where it was forked");
        return;
    }
    say(s, "its last run %s",
        r->end == RUN_COMPLETED ? "was completed"
        : r->end == RUN_FAILED  ? "failed"
                                : "was cancelled");
    say_when(s, " at ", r->ended_ms);
    if (r->failed_at_node && !(o->graph && r->error_message)) /* there the message names it */
        say_quoted(s, ", at node ", r->failed_at_node);
    if (r->reason && strcmp(r->reason, s->outcome) != 0 && !(o->graph && r->error_message))
        say_reason(s, ": ");
    if (r->error_message)
        say_quoted(s, ": ", r->error_message);
    if (r->end == RUN_FAILED && !s->is_resumable)
        say(s, "; it cannot be resumed");
    say_dropped(o);
    say_stuck(o);
    if (!stuck_at(o))
        say_mending(o);
    say_maker(o);
}

/* ---- The commands -------------------------------------------------------------------------------------------------- */

static void offer(const struct subject *o, const char *before, const char *after)
{
    struct status *s = o->st;

    if (s->next_count < STATUS_NEXT)
        snprintf(s->next[s->next_count++], STATUS_COMMAND, "tidemark %s %s%s", before, o->state->session, after);
}

/* `tidemark resume` runs programs that `tidemark exec` began; others are resumed by whatever made them. */
static void offer_resume(const struct subject *o, const char *options)
{
    if (o->has_program && o->st->is_resumable)
        offer(o, o->graph ? "sessions resume" : "resume", options);
}

static void offer_new_run(const struct subject *o)
{
    const struct position *p = &o->state->content.position;

    if (o->graph)
        offer(o, "sessions resume", p->ready.live || p->active.live ? "" : " --checkpoint CHECKPOINT");
    else if (o->chat)
        offer(o, "chat --resume", "");
    else
        offer(o, "exec --session", " -- PROGRAM");
}

#define NAME_MAX_OFFERED 100

/* As a shell takes it. False: it does not go into a command as it is. */
static bool put_word(char *out, size_t size, const char *option, const char *name)
{
    bool plain = str_is_id(str_from(name));

    for (const char *c = name; *c; c++)
        if (*c == '\'' || (unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    if (strlen(name) > NAME_MAX_OFFERED)
        return false;
    snprintf(out, size, plain ? " %s %s" : " %s '%s'", option, name);
    return true;
}

/*
 * A step that must happen once has failed, or nobody knows: going on as before would end at it again. False when there is
 * none, or its name does not go into a command as it is.
 */
static bool offer_settling(const struct subject *o)
{
    const char *name = stuck_at(o);
    char option[NAME_MAX_OFFERED + 32];

    if (!name || !put_word(option, sizeof option, "--happened", name))
        return false;
    if (!o->graph || !strchr(name, '#')) /* inside of something nobody can say what it gave */
        offer_resume(o, option);
    if (put_word(option, sizeof option, "--retry", name))
        offer_resume(o, option);
    return true;
}

/* The same graph with the same memory would fail again. */
static bool offer_mending(const struct subject *o)
{
    enum mending m = mending(o);

    if (is_hollow(o)) { /* what is inside is complete: it runs again only from before it */
        offer_resume(o, " --checkpoint CHECKPOINT --graph NEW.json");
        return true;
    }
    if (m == MEND_HERE)
        offer_resume(o, "");
    if (m == MEND_EITHER || m == MEND_VALUE)
        offer_resume(o, " --set KEY=VALUE");
    if (m == MEND_GRAPH || m == MEND_EITHER || m == MEND_HERE)
        offer_resume(o, " --graph NEW.json");
    return m != MEND_NOTHING;
}

static void next_interrupted(const struct subject *o)
{
    if (o->run->waiting && !o->run->due_ms && o->st->is_resumable)
        offer(o, "token rotate", "");
    if (!offer_settling(o))
        offer_resume(o, "");
    offer(o, "cancel", "");
    if (!o->graph && (!o->has_program || !o->st->is_resumable))
        offer(o, "exec --session", " -- PROGRAM");
}

static void next_waiting(const struct subject *o)
{
    bool due = o->run->due_ms && o->run->due_ms <= o->now_ms, approval = strcmp(wait_word(o->run), "approval") == 0;

    if (o->run->due_ms)
        offer_resume(o, due ? "" : " --now");
    else
        offer_resume(o, approval ? " --input yes" : " --input TEXT");
    if (due && o->has_program) {
        snprintf(o->st->next[o->st->next_count++], STATUS_COMMAND, "tidemark recover --run-due");
        return;
    }
    if (!o->run->due_ms)
        offer(o, "token rotate", "");
    offer(o, "cancel", "");
    if (!o->has_program)
        offer(o, "exec --session", " -- PROGRAM");
}

static void next_running(const struct subject *o)
{
    offer(o, "cancel", "");
}

static void next_idle(const struct subject *o)
{
    if (o->run->end == RUN_COMPLETED || (!offer_settling(o) && !offer_mending(o)))
        offer_resume(o, "");
    if (o->st->next_count == 0)
        offer_new_run(o);
}

/* ---- Which it is --------------------------------------------------------------------------------------------------- */

/* Why a wait for someone cannot be answered any more; NULL when it can, or when it waits for the clock. */
static const char *wait_trouble(const struct run *r, int64_t now_ms)
{
    static const char *const reasons[] = {[TOKEN_NONE] = "token_missing",
                                          [TOKEN_ACTIVE] = NULL,
                                          [TOKEN_CONSUMED] = "token_consumed",
                                          [TOKEN_REVOKED] = "token_revoked",
                                          [TOKEN_EXPIRED] = "token_expired"};

    if (r->due_ms)
        return NULL;
    if (r->deadline_ms && r->deadline_ms <= now_ms)
        return "wait_timeout";
    if (r->token == TOKEN_ACTIVE && r->token_expires_ms && r->token_expires_ms <= now_ms)
        return "token_expired";
    return reasons[r->token];
}

static void set(struct status *s, const char *status, const char *reason, bool resumable, bool needs)
{
    s->status = status;
    s->reason = reason;
    s->is_resumable = resumable;
    s->needs_resume = resumable && needs;
}

static void set_interrupted(struct status *s, const char *status, const char *reason, const struct run *r)
{
    set(s, status, reason, r->resumable != 0, true);
    s->outcome = "interrupted";
}

static bool idle_resumable(const struct run *r, bool has_program)
{
    switch (r->end) {
    case RUN_FAILED: /* our own runs always say; of others' logs it is not promised */
        return r->resumable == 1 || (r->resumable < 0 && has_program);
    case RUN_CANCELLED:
        return r->resumable != 0 && !(r->reason && strcmp(r->reason, "superseded") == 0);
    default:
        return false;
    }
}

static void set_waiting(struct status *s, const struct run *r, int64_t now_ms)
{
    const char *reason = r->due_ms ? r->due_ms <= now_ms ? "due" : "timer" : wait_word(r);

    set(s, "waiting", reason, true, false);
}

static const char *outcome_of(const struct run *r)
{
    static const char *const words[] = {"none", "none", "completed", "failed", "cancelled", "interrupted"};

    return words[r->end];
}

static void derive(const struct subject *o, bool owner_alive)
{
    const struct run *r = o->run;
    struct status *s = o->st;
    bool open = r->end == RUN_OPEN, cut = r->end == RUN_INTERRUPTED;
    const char *trouble = open && r->waiting ? wait_trouble(r, o->now_ms) : NULL;

    s->outcome = outcome_of(r);
    if (!r->waiting && (cut || (open && !owner_alive)))
        set_interrupted(s, "interrupted_startup", open ? "owner_gone" : r->reason ? r->reason : "interrupted", r);
    else if (trouble || (cut && r->waiting))
        set_interrupted(s, "interrupted_waiting", trouble ? trouble : r->reason ? r->reason : "interrupted", r);
    else if (open && r->waiting)
        set_waiting(s, r, o->now_ms);
    else if (open)
        set(s, "running", "running", false, false);
    else
        set(s, "idle", r->reason ? r->reason : s->outcome, idle_resumable(r, o->has_program), r->end == RUN_FAILED);
}

/* ---- Both vocabularies --------------------------------------------------------------------------------------------- */

enum { ANY = -1 };

/* The words that graphs and task sessions have for it. The first row that fits counts. */
static const struct words {
    const char *status, *outcome; /* outcome NULL: any */
    int resumable;
    const char *graph, *task;
} vocabulary[] = {
    {"running", NULL, ANY, "active", "RUNNING"},
    {"waiting", NULL, ANY, "paused", "WAITING_FOR_INPUT"},
    {"idle", "completed", ANY, "completed", "COMPLETED"},
    {"idle", "failed", ANY, "failed", "FAILED"},
    {"idle", "cancelled", ANY, "cancelled", "CANCELLED"},
    {"idle", "none", ANY, "idle", "IDLE"},
    {"interrupted_startup", NULL, true, "failed", "WAITING_FOR_INPUT"},
    {"interrupted_startup", NULL, false, "failed", "ERROR"},
    {"interrupted_waiting", NULL, true, "paused", "WAITING_FOR_INPUT"},
    {"interrupted_waiting", NULL, false, "paused", "ERROR"},
    {"damaged", NULL, ANY, "damaged", "ERROR"},
};

#define N_WORDS (sizeof vocabulary / sizeof vocabulary[0])

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void translate(struct status *s)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        const struct words *w = &vocabulary[i];

        if (same(w->status, s->status) && (!w->outcome || same(w->outcome, s->outcome)) &&
            (w->resumable == ANY || w->resumable == (int)s->is_resumable)) {
            s->graph_status = w->graph;
            s->task_state = w->task;
            return;
        }
    }
}

bool status_word_known(const char *word)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        const struct words *w = &vocabulary[i];

        if (same(w->status, word) || same(w->outcome, word) || same(w->graph, word) || same(w->task, word))
            return true;
    }
    return strcmp(word, "interrupted") == 0;
}

/* An outcome selects finished sessions; only "interrupted" is one of sessions that are not idle. */
bool status_matches(const struct status *s, const char *word)
{
    bool ended = same(s->status, "idle") || same(s->outcome, "interrupted");

    return same(s->status, word) || (ended && same(s->outcome, word)) || same(s->graph_status, word) ||
           same(s->task_state, word);
}

/* ---- All of it ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *status;
    void (*say)(const struct subject *o);
    void (*next)(const struct subject *o);
} statuses[] = {
    {"interrupted_startup", say_interrupted_startup, next_interrupted},
    {"interrupted_waiting", say_interrupted_waiting, next_interrupted},
    {"waiting", say_waiting, next_waiting},
    {"running", say_running, next_running},
    {"idle", say_idle, next_idle},
};

void status_derive(struct status *s, const struct state *state, bool owner_alive, int64_t now_ms)
{
    const struct subject o = {s,
                              state,
                              &state->ledger.run,
                              state->ledger.program_seq > 0,
                              now_ms,
                              state->ledger.loop_seq && state->ledger.loop_seq == state->ledger.program_seq,
                              state->content.position.graph_digest && !state->ledger.loop_seq};

    memset(s, 0, sizeof *s);
    derive(&o, owner_alive);
    translate(s);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (strcmp(statuses[i].status, s->status) == 0) {
            statuses[i].say(&o);
            statuses[i].next(&o);
        }
    }
}

void status_damaged(struct status *s, const char *id, const char *why)
{
    memset(s, 0, sizeof *s);
    set(s, "damaged", "damaged", false, false);
    s->outcome = "none";
    translate(s);
    snprintf(s->why, sizeof s->why, "%s", why);
    snprintf(s->next[s->next_count++], STATUS_COMMAND, "tidemark sessions verify %s", id);
}
