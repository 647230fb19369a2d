/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what is asked for, what a session has stored and what is set to the options of an agent: who answers, with which key,
 * under which rules. Of chats and of the agents of graphs.
 */
#ifndef ENGINE_AGENT_SETUP_H
#define ENGINE_AGENT_SETUP_H

#include "base/mem.h"
#include "engine/settings.h"

/* What was asked for; all zero: nothing. */
struct agent_want {
    const char *provider, *model, *base_url, *script;
    bool yes, no_tools, refresh_prompt;
    int64_t max_turns;
    bool degrade;      /* as on_store_error: continue */
    bool degrade_said; /* what is set does not count */
    bool keep_pause;   /* nobody is there who would rather not wait: a pause between attempts is waited for */
};

struct agent_setup {
    struct settings settings; /* opened by the caller */
    struct agent_want want;   /* as it is now: a person may ask for another model */
    tide_store *store;        /* NULL: none yet */
    struct arena arena;       /* of what the options point to */
    struct buf key;           /* the provider's: never shown */
    struct tide_agent_options opt;
    /* What is to be known besides, with opt.arg. `change`: the arguments of TIDE_ACTION_REPEAT that change it; NULL: none */
    void (*tell)(void *arg, const char *line, const char *change);
    void (*tell_trouble)(void *arg, const char *line, const struct tide_err *why); /* of the store; NULL: tell() */
};

/* The settings must be open. Callbacks are set in `opt` by the caller. */
enum tide_code agent_setup_begin(struct agent_setup *s, const struct agent_want *want, struct tide_err *err) MUST_CHECK;
void agent_setup_done(struct agent_setup *s);

__attribute__((format(printf, 3, 4))) void agent_setup_offer(const struct agent_setup *s, const char *change,
                                                             const char *fmt, ...);
#define agent_setup_tell(s, ...) agent_setup_offer(s, NULL, __VA_ARGS__)

/* Who answers in this session (NULL: a new one), and with which key; all that is missing is said at once. */
enum tide_code agent_setup_choose(struct agent_setup *s, tide_session *session, struct tide_err *err) MUST_CHECK;

/* The same, and that the provider can be opened so. */
enum tide_code agent_setup_check(struct agent_setup *s, tide_session *session, struct tide_err *err) MUST_CHECK;

/* Whether a key is configured for the provider, or is there for the other one; a keychain counts, and is not asked. */
bool agent_setup_has_key(const struct agent_setup *s);
bool agent_setup_asks_keychain(const struct agent_setup *s);

/* After agent_setup_check(): one short answer of the provider, which costs some tokens. */
enum tide_code agent_setup_ask(const struct agent_setup *s, struct tide_err *err) MUST_CHECK;

/* One call each: the tools, and what the rules say of them; the hooks, at which event, for which tools (""), and what they do. */
typedef void agent_tool_fn(void *arg, const char *tool, const char *permission, const char *description);
typedef void agent_hook_fn(void *arg, const char *name, const char *event, const char *matcher, const char *what);
enum tide_code agent_setup_tools(const struct agent_setup *s, agent_tool_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;
enum tide_code agent_setup_hooks(const struct agent_setup *s, agent_hook_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;

/* A tool call in a line, as people read it; `args`: JSON, as far as it is. */
void agent_call_text(struct buf *out, const char *tool, const char *args);

/* What `yes` says to a question of before: as if it had been there then. */
enum tide_decision agent_setup_yes(const struct agent_setup *s, const struct tide_approval *ask);

/* A member of an object of the session (NULL: of the session); in the arena. NULL: it has none. */
const char *session_stored(struct arena *a, tide_session *session, const char *object, const char *member);

#endif
