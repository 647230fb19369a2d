/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle behind tide_agent, for the files of this folder:
 *
 *   agent.c    options, opening, what is known of it       loop.c     prompt, turns, the end
 *   model_call.c      one model call with its retries, a summary             tool_call.c     one tool call: hooks, permission, effect, result
 *   budget.c   prices, budgets, leaving out old turns      conversation.c     the conversation, folded from the log
 *   undone_effects.c     effects that a rollback cut off             callbacks.c tools and hooks that are C functions of an embedder
 *   nested.c     the loop as one part of a graph's run       nested_work.c what of it is different there: lock, outputs, waits
 *
 * What is recorded is gathered in one draft and appended where something depends on it: with the start of a tool, with the
 * end of the run; else it is queued and goes to disk while the model answers.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdatomic.h>

#include "agent/hook.h"
#include "agent/permit.h"
#include "agent/provider.h"
#include "agent/conversation.h"
#include "program/guard.h"
#include "session/past_effects.h"
#include "session/run.h"

struct own_tool;
struct nested_agent;
struct nested_wait;

/* Of an effect that a rollback cut off, and that answers from the log. */
struct undone_result {
    struct str call_id, text;
    bool failed, known; /* known: its end was seen */
};

enum { STOP_NOT, STOP_BY_PERSON, STOP_BY_SHUTDOWN, STOP_BY_CANCEL, STOP_BY_HOOK };

struct agent_image {
    char *name, *data; /* data: base64 */
    const char *type;
    size_t bytes;
};

struct tide_agent {
    struct tide_session *s;
    const char *id;       /* of the session: its handle may be refreshed by others while a hook or tool reads this */
    struct tide_run *run; /* NULL: none is under way */
    const struct nested_agent *nested; /* the run is somebody else's, and shared; NULL: a chat, with a run of its own */
    struct tide_agent_options opt;
    struct arena arena; /* of what the options point to */
    struct provider *provider;
    const char *type, *model;
    struct hooks *hooks;
    struct permits *permits;
    struct guard guard; /* of a run of its own */
    struct tool_place place;
    struct own_tool *own_tools;
    struct map always; /* tools that were allowed for as long as the agent lives -> itself */
    struct conversation conversation;
    struct map real; /* id of a call -> its arguments, when they held a secret: here alone, for this process */
    struct secret_stream stream; /* of the answer that is shown while it comes */
    struct past_effects past;
    struct draft draft;         /* to be appended next */
    struct rendering rendering; /* of the latest request; what the next one begins with is kept */
    struct arena scratch;       /* of one turn */
    int turns;                  /* model calls since the prompt, or since it was resumed */
    bool fresh;                 /* the run continues where it was cut: a pause between attempts is not begun anew */
    bool begun;                 /* something was appended since it was called */
    atomic_int stop;            /* STOP_… */
    atomic_bool in_trouble;     /* the store cannot be written; said once */
    int64_t looked_ns;          /* when others' wishes were last looked at */
    const char *stop_text;      /* of a hook that stopped it: its name and reason; in the scratch arena */
    struct tide_err broken;     /* what went wrong inside a callback of the provider */
    struct model_fault fault;   /* of the latest attempt */
    char token[TIDE_TOKEN_SIZE];
    bool text_shown;                            /* something of this attempt */
    bool drift_looked;                          /* whether what is rendered now differs from what is stored */
    int64_t known_seq;                          /* the conversation is as of this event; -1: it must be read */
    int64_t known_messages, known_run;          /* how many there were then, and where the latest run began */
    bool locked;                                /* of a nested agent: its lock is held now */
    int64_t given_turn;                         /* the same: number of the turn that is under way or comes next */
    struct agent_image images[TIDE_IMAGES_MAX]; /* for the next prompt */
    size_t n_images;
    struct nested_wait *wait; /* the same: where it says what it waits for */
};

/* ---- agent_log.c: what it does, for the log; never what was said */

void agent_log_begin(const struct tide_agent *a);
void agent_log_event(const struct tide_agent *a, const struct tide_agent_event *event);

/* ---- agent.c */

void agent_tell(struct tide_agent *a, const struct tide_agent_event *event);
void agent_show(struct tide_agent *a, const struct tide_agent_event *event); /* the same, of what is logged elsewhere */
void agent_tell_text(struct tide_agent *a, struct str piece, bool last);     /* of an answer, while it comes */
void agent_notice(struct tide_agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Somebody wants it to stop: a signal, a cancel request, a lost lease (in a->broken). Cheap. */
bool agent_stopped(void *agent);
enum tide_code agent_fail_stopped(struct tide_agent *a, struct tide_err *err); /* why it did, as an error; loop.c */

/* A copy that lives as long as the agent; NULL gives `otherwise` itself. */
const char *agent_keep(struct tide_agent *a, const char *text, const char *otherwise);

/* What the draft holds: queued, or on disk on return. The first of a run begins it. */
enum tide_code agent_put(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
enum tide_code agent_append(struct tide_agent *a, bool pure, struct tide_err *err) MUST_CHECK;

/* For struct tide_run_options: says when trouble of the store begins and is over; gives up when the agent is stopped. */
int agent_trouble(void *agent, const struct tide_err *why, int64_t waited_ms);

/* Begins an event in the draft; agent_close() ends it, and the conversation has it at once. */
struct json_out *agent_open(struct tide_agent *a, const char *kind, int64_t turn);
struct json_out *agent_message(struct tide_agent *a, const char *kind, int64_t turn);
void agent_close(struct tide_agent *a);

/* A text for the model from a hook, said as the user's: the system prompt is never edited. */
void agent_note(struct tide_agent *a, const struct hook_verdict *v, int64_t turn); /* negative: it wants an answer */

/* session.updated into the draft when provider or model are others than those of the session. */
void agent_put_provider(struct tide_agent *a);

/* Ends the run because a hook decided so. */
void agent_stop_by_hook(struct tide_agent *a, const struct hook_verdict *v);

/* Fires hooks and records what they decided. */
void agent_hook(struct tide_agent *a, const struct hook_input *in, struct hook_verdict *ret);

/* The number of the turn that is under way or comes next. */
int64_t agent_turn(struct tide_agent *a);

/* ---- callbacks.c: tools, an embedder's own and the built-in ones */
const struct tool *agent_tool(const struct tide_agent *a, struct str name);
void agent_render_tools(struct tide_agent *a, struct buf *out);
void agent_tool_names(const struct tide_agent *a, struct buf *out);
void agent_each_tool(const struct tide_agent *a, void (*fn)(void *arg, const struct tool *t), void *arg);

/* ---- attach.c: images of the next prompt, into its event; then they are dropped */
void agent_images_put(struct tide_agent *a, struct json_out *o);
void agent_images_drop(struct tide_agent *a);

/* ---- loop.c: the run begins, with what the draft holds; queued, or on disk on return */
enum tide_code agent_start(struct tide_agent *a, bool queued, struct tide_err *err) MUST_CHECK;
/* The conversation is what the store has. */
enum tide_code agent_read(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
/* Turns, until it has answered (of a nested agent: until its outputs are set). */
enum tide_code agent_work(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
/* Says something to the model, as a prompt; asks the hooks of a start. */
void agent_say(struct tide_agent *a, struct str text);
void agent_started(struct tide_agent *a, const char *task);
/* The run continues, with the answer to its wait (JSON) when it waits */
enum tide_code agent_go_on(struct tide_agent *a, const char *input, const char *token, struct tide_err *err) MUST_CHECK;

/* ---- model_call.c: the draft holds what comes of it */

/*
 * Renders a request for this conversation, and behind it what is asked for besides (`wish`; empty: nothing). Only what is new
 * since the latest one is rendered and digested. Returns how many messages it has.
 */
size_t conversation_render(struct conversation *t, const struct provider *p, struct model_request *request,
                           struct str wish, struct arena *scratch, struct rendering *k, char digest[DIGEST_NAME_SIZE]);
enum tide_code agent_ask(struct tide_agent *a, struct tide_err *err) MUST_CHECK;

/* A summary in place of all that was said: into the draft when the model has given one, and nothing else is when not. */
enum tide_code agent_summarise(struct tide_agent *a, const char *focus, struct tide_err *err) MUST_CHECK;

/* ---- tool_call.c: every call that the latest answer asks for and that has no result yet */
enum tide_code agent_calls(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
/* The same when another prompt comes first: nothing is run, each gets an honest result. */
enum tide_code agent_close_calls(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
/* Parks for a person's word. TIDE_OK: *ret_allowed, *ret_reason (in the scratch arena). */
enum tide_code agent_approval(struct tide_agent *a, const char *name, const char *approval_id, const char *question,
                              const struct model_call *call, bool *ret_allowed, struct str *ret_reason,
                              struct tide_err *err) MUST_CHECK;

/* The answer to a wait that a decision and its reason (taken) are, JSON; in the scratch arena. */
const char *agent_answer(struct tide_agent *a, enum tide_decision decision, struct tide_text *reason);

/* Reads a person's answer (JSON) to such a question, and records that it was given. */
void agent_decision(struct tide_agent *a, struct str answer, bool *ret_allowed, struct str *ret_reason);
void agent_put_given(struct tide_agent *a, const char *approval_id, bool allowed, struct str reason);

/* ---- nested.c: a nested agent, its conversation read; *ret may be set on failure too */
enum tide_code nested_enter(const struct nested_agent *nested, const struct tide_agent_options *opt,
                            const char *decides, struct tide_agent **ret, struct tide_err *err) MUST_CHECK;
void nested_leave(struct tide_agent *a);

/* ---- nested_work.c. Not nested, the first four do nothing. */

/* Others may work on the session and the run between these two: around all that takes long and touches neither. */
void agent_unlock(struct tide_agent *a);
void agent_lock(struct tide_agent *a);
/* For what is called in both situations: locks if need be; then back to what it gave. */
bool agent_hold(struct tide_agent *a);
void agent_restore(struct tide_agent *a, bool was_locked);

#define SET_OUTPUT "set_output"

bool nested_stopped(struct tide_agent *a);
bool nested_offers(const struct tide_agent *a, const char *tool); /* true unless nested */
int64_t nested_turn(struct tide_agent *a);    /* a new number, unless it has one that is not used up */
struct str nested_part(struct tide_agent *a); /* of the script provider; in the scratch arena */
/* Records the output that these arguments set; *text is the result for the model. False: they are no good. */
bool nested_output(struct tide_agent *a, const struct json *args, struct buf *text);
bool nested_is_over(const struct tide_agent *a); /* nothing more is to be asked of the model */
void nested_ask_on(struct tide_agent *a);        /* it has ended, and outputs are missing: the model gets their names */
/* TIDE_WAITING, and what it waits for is said, unless the wait was answered. */
enum tide_code nested_answer(struct tide_agent *a, const struct tide_wait_options *wait, struct tide_text *ret_answer,
                             struct tide_err *err) MUST_CHECK;
/* What was answered about budgets, by all nested agents together. *ret_refused: no, to a question of this one that has not got it yet. */
enum tide_code nested_budgets(struct tide_agent *a, bool *ret_refused, struct tide_err *err) MUST_CHECK;

/* ---- undone_effects.c: read with the conversation; what is taken is not given again */
enum tide_code undone_load(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
bool undone_take(struct tide_agent *a, const struct model_call *call, const char *digest, struct undone_result *ret);

/* ---- budget.c */
double budget_cost(const struct tide_agent *a, const struct model_usage *u); /* negative: no price is known */
enum tide_code budget_check(struct tide_agent *a, struct tide_err *err) MUST_CHECK;
void budget_trim(struct tide_agent *a);
enum tide_code prices_check(struct str json, struct tide_err *err) MUST_CHECK;

#endif
