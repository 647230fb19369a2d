/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continuing with a graph. Everything that can be refused is looked at in an outlook, which writes nothing: a plan is an
 * outlook as JSON, a resume is an outlook without refusals that is then done.
 *
 *   resume.c        the public calls; doing it                  resume_check.c  whether it can continue from there
 *   resume_from.c   from where; a damaged log                   resume_check_nodes.c  whether its nodes fit
 *   resume_reuse.c  effects that a rollback cut off             resume_plan.c   the plan as JSON
 *                                                               resume_names.c  names that nodes had before
 */
#ifndef GRAPH_RESUME_H
#define GRAPH_RESUME_H

#include "graph/exec.h"
#include "session/past_effects.h"

/* ---- graph.c: the parts of an execution around its run */

/* The graph that a session with this state runs. */
enum tide_code graph_read(struct store *store, const struct state *state, tide_graph **ret_graph, struct tide_err *err)
    MUST_CHECK;

/* What the caller gave, as this version knows it. Its own address: opt.agent points into it. */
struct graph_options {
    struct tide_graph_options opt;
    struct tide_agent_options agent;
};
enum tide_code graph_options_read(struct graph_options *ret, const struct tide_graph_options *given,
                                  struct tide_err *err) MUST_CHECK;

enum tide_code exec_begin(struct exec *x, tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                          struct tide_err *err) MUST_CHECK;
/* What an earlier run said of checkpoints holds until another says something: above all which keys are stored nowhere. */
enum tide_code exec_inherit(struct exec *x, struct tide_err *err) MUST_CHECK;
enum tide_code exec_open_view(struct exec *x, struct tide_err *err) MUST_CHECK;
struct tide_run_options exec_run_options(struct exec *x, const char *fields);
void exec_run_fields(const struct exec *x, struct buf *out);
void exec_put_memory(struct exec *x, const char *by, const char *frame, struct str values);
enum tide_code exec_go(struct exec *x, struct tide_err *err) MUST_CHECK;
void exec_finish(struct exec *x, struct tide_graph_result *ret);

/* ---- an outlook */

enum refusal_kind {
    REFUSED_FOR_GOOD, /* whatever it starts from */
    REFUSED_HERE,     /* it cannot continue from here: with `fallback` another checkpoint is looked for */
};

struct refusal {
    enum refusal_kind kind;
    enum tide_code code;
    const char *node, *checkpoint; /* NULL: not about one */
    const char *what;              /* with what to do, where no action does it */
    struct tide_hint hints[2];     /* what helps, the likelier one first; action 0: nothing */
};

struct missing {
    const char *node, *key;
    bool secret; /* excluded: it was never stored */
    bool later;  /* of a node that may come later: a warning only */
};

struct kept_effect;

struct outlook {
    struct exec *x; /* never runs: its view is the state as it would be, renames and overrides in it */
    struct tide_session *s;
    const struct tide_graph_options *given, *opt; /* opt: given, with the names that the nodes have now */
    struct tide_graph_options named;
    struct map gave;    /* node -> JSON object of what it gave, of --happened NODE=JSON */
    struct kept *kept;  /* NULL: nothing was or will be rolled back */
    bool unreadable;    /* the log is damaged: kept is what could be read of it */
    tide_graph *before; /* the one that is stored, when it is another; else NULL */
    char checkpoint[TIDE_ID_SIZE], wanted[TIDE_ID_SIZE]; /* "": where it stands; wanted: another took its place */
    int64_t seq;
    bool rollback, fork; /* what has to be done first */
    bool anew;           /* the run is the first of a chain: nothing that could be continued ran here */
    bool fell_back;
    struct state *own;        /* of a checkpoint */
    const struct state *then; /* what it starts from */
    struct refusal *refused;
    size_t n_refused, cap_refused;
    struct missing *missing;
    size_t n_missing, cap_missing;
    const char **warnings;
    size_t n_warnings, cap_warnings;
    struct arena arena; /* of all texts */
};

/* TIDE_OK also when something is refused; fails only when it could not be looked at. */
enum tide_code outlook_take(struct outlook *o, tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                            struct tide_err *err) MUST_CHECK;
void outlook_done(struct outlook *o);

void outlook_refuse(struct outlook *o, enum refusal_kind kind, enum tide_code code, const char *node, const char *what);
/* Of the refusal that was added last: what helps, at most twice. `members` as of tide_hint_with(). */
void outlook_hint(struct outlook *o, enum tide_action action, const char *members);
/* The same: resume it with these arguments besides those that were given. */
#define outlook_repeat(o, members) outlook_hint(o, TIDE_ACTION_REPEAT, members)
void outlook_about_checkpoint(struct outlook *o, const char *id); /* the same: what it is about */
const char *outlook_quote(struct outlook *o, const char *name);   /* as JSON */
void outlook_warn(struct outlook *o, const char *what);
#define WORDS(o, ...) arena_printf(&(o)->arena, __VA_ARGS__) /* for what these take */

/* The first reason, and how many more there are. */
enum tide_code outlook_error(const struct outlook *o, struct tide_err *err) MUST_CHECK;

/* ---- resume_from.c */

/* From where it starts, and what has to be done first. */
enum tide_code outlook_from(struct outlook *o, struct tide_err *err) MUST_CHECK;
/* The newest checkpoint without a refusal, below the one that was refused; changes nothing when there is none. */
enum tide_code outlook_fall_back(struct outlook *o, struct tide_err *err) MUST_CHECK;

/* What a fork is called and where it works: as its parent. JSON object. */
void resume_fork_fields(const struct state *then, struct buf *out);

/* ---- resume_check.c */
enum tide_code outlook_state(struct outlook *o, struct tide_err *err) MUST_CHECK; /* of the session itself */
enum tide_code outlook_judge(struct outlook *o, struct tide_err *err) MUST_CHECK; /* of where it starts from */
void outlook_nodes(struct outlook *o); /* resume_check_nodes.c: of its nodes */
/* The same: refused unless somebody says what became of this node, which must happen once. */
bool outlook_is_named(const char *const *names, const char *name); /* names: NULL-ended, or NULL */
void outlook_ask(struct outlook *o, const char *name, const char *how);
bool outlook_is_unsettled(const struct outlook *o, const struct kept_effect *f); /* cut off, and nobody knows */
/* Renames and overrides, into the draft and the view. */
enum tide_code resume_changes(struct exec *x, struct tide_err *err) MUST_CHECK;

/* ---- resume_plan.c */
void outlook_json(const struct outlook *o, struct buf *out);
struct rescue;
void rescue_json(const struct rescue *r, struct buf *out); /* the same members, of one that cannot be opened */
const char *rescue_refusal(struct arena *a, const struct rescue *r); /* NULL: it is not refused */
struct tide_hint rescue_hint(const struct rescue *r);                /* what lets it */

/* ---- resume_names.c */

/* o->opt: beside what is given the names that the log knows to have changed; old names in --retry and --happened. */
void outlook_names(struct outlook *o);
/* The node that a name was meant for: near in letters, or what --map's old name looks like now. NULL: none is. */
const char *outlook_likely(struct outlook *o, const char *from, const char *to);

/* ---- resume_reuse.c */

struct kept_effect {
    struct past_effect past;
    const char *name, *now; /* then, and in the graph that is to run; now NULL: it is not in it */
    int64_t visit;
    struct kept_effect *other; /* an older one of the same name now */
};

struct kept_rename {
    const char *from, *to;
    int64_t seq;
};

struct kept {
    struct past_effects past; /* of struct kept_effect */
    struct map named;         /* name now -> the newest of them */
    struct kept_rename *renamed;
    size_t n_renamed, cap_renamed;
    int64_t set; /* while it is read: seq of the last memory.set */
};

/* Reads the whole log. TIDE_CORRUPT: *ret is what could be read. */
enum tide_code kept_load(struct store *store, const struct head *head, struct kept **ret, struct tide_err *err)
    MUST_CHECK;
void kept_free(struct kept *k);
/* What each is called in this graph; `renames` come after those of the log. */
void kept_resolve(struct kept *k, const struct spec_graph *g, const char *const *renames);
/* What a node that had this name at `since` is called in this graph; NULL: it is not there. */
const char *kept_name_now(struct kept *k, const struct spec_graph *g, const char *const *renames, const char *name,
                          int64_t since);
bool kept_done(const struct kept *k, const char *name, int64_t visit); /* it answers from the log; k may be NULL */
bool kept_has(const struct kept *k, const char *name,
              int64_t visit); /* it began as one that must happen once; the same */

/* What must happen once and is in the log: completes the node with what it gave then. `when`: before what, for the notice. */
bool reuse_result(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *when);
/* One that a rollback cut off: answers from the log, or is left to a person. False: it may be done. */
bool reuse_effect(struct exec *x, const struct place *p, const char *name, int64_t visit);

/* ---- a log that cannot be read to its end */

struct rescue {
    char session[TIDE_ID_SIZE], checkpoint[TIDE_ID_SIZE], fork[TIDE_ID_SIZE]; /* fork "": none was made */
    int64_t seq;
    struct tide_err damage; /* what cannot be read */
    struct state *then;     /* what the fork begins with; rescue_done() */
    char again[200];        /* nodes that must happen once, and are known to have begun behind it; "": none */
};

void rescue_done(struct rescue *r);

/*
 * Forks a session that cannot be opened at the newest checkpoint whose state can be read, or at the one that is named. That
 * one is damaged: TIDE_CORRUPT, unless `fallback`. None can be read: "no valid checkpoints found for session X". `look`:
 * only looks, and writes nothing.
 * TIDE_EFFECTS: what must happen once is known to have begun behind it, and would happen again (`redo`: it may).
 */
enum tide_code graph_rescue(tide_store *store, const char *id, const char *checkpoint, bool fallback, bool redo,
                            bool look, struct rescue *ret, struct tide_err *err) MUST_CHECK;

#endif
