/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation of a session, folded from its log: what the next request is made of, and what is still owed (calls
 * without a result, a prompt without an answer). Pure but for loading: the same events give the same conversation, so that the
 * request rebuilt after a crash has the same bytes.
 */
#ifndef AGENT_CONVERSATION_H
#define AGENT_CONVERSATION_H

#include "agent/model.h"
#include "base/json.h"
#include "base/map.h"
#include "session/session.h"

/* One message, in one piece of memory. */
struct message_kept {
    struct model_message m;
    int64_t turn;
    const char *id;
    bool from_hook, quiet; /* quiet: it does not want an answer by itself */
    bool summary;          /* of what was said before, and is left out */
};

/* Which conversation. A chat has no node, and sees only what has none. The texts are the owner's. */
struct conversation_owner {
    const char *node; /* NULL: a chat */
    int64_t visit;
    const char *branch;  /* only written down; NULL: none */
    const char *decides; /* digest of a question that is asked and answered apart; NULL: none */
};

struct conversation {
    struct conversation_owner whose; /* set before it is loaded, and kept */
    struct message_kept **said;      /* malloc each */
    size_t n, cap;
    struct map ids;         /* call ids that were used -> itself: a provider may repeat them */
    struct map decisions;   /* approval_id -> JSON text of approval.given */
    struct map asked;       /* approval_id -> itself: approval.requested was written */
    struct map changed;     /* call id -> arguments that a hook put in place of the model's, until it has its result */
    struct map redacted;    /* ids of calls whose arguments are not stored as they were -> itself */
    struct map inherited;   /* ids of calls that must happen once and were begun where a fork branches off -> itself */
    struct map outputs;     /* key -> JSON text of what was set */
    bool of_parent;         /* what is folded is another session's */
    char *system, *tools;   /* as they were rendered once; NULL: not yet */
    size_t instructions_at; /* where the project's begin in the system prompt; 0: it has none */
    int64_t seen_turn;      /* latest turn that was begun */
    int64_t answered_turn;
    int answers;          /* how many; what was left out counts */
    int answers_left_out; /* by trimming */
    bool requested;       /* the latest that was said is in a request that has no answer yet */
    struct {              /* latest failed attempt at a model call */
        int64_t turn, retry_at_ms;
        int attempt;
    } error;
    int64_t context_tokens; /* of the latest request and its answer, as the provider counted them */
    size_t context_bytes;   /* of the texts at that time */
    int64_t budgets;        /* how often more was allowed */
    int64_t budget_answers; /* and how often that was asked and answered */
    size_t bytes;           /* of all texts */
    size_t settled;         /* messages that the latest request began with, and that nothing has changed since */
    struct arena scratch;
};

void conversation_done(struct conversation *t);

/* Reads it from the content of the session: what rollbacks cut is not in it, what a fork inherited is. */
enum tide_code conversation_load(struct conversation *t, struct tide_session *s, struct tide_err *err) MUST_CHECK;

/* Folds one event; those that do not matter here are passed over. */
void conversation_apply(struct conversation *t, struct str kind, struct str body);

/* The assistant message whose calls are not all answered; NULL: none. */
const struct message_kept *conversation_open(const struct conversation *t);
bool conversation_has_result(const struct conversation *t, const struct message_kept *open, struct str call_id);

/* The arguments that the call is made with: a hook may have changed them. */
struct str conversation_args(const struct conversation *t, const struct model_call *call);

/* Whether the model is to speak next: something was said to it that it has not answered. */
bool conversation_is_owed(const struct conversation *t);

/* The system prompt without the project's instructions, and those; both empty when it has not been rendered. */
struct str conversation_system(const struct conversation *t, struct str *ret_instructions);

/* Whether a hook has spoken last, and wants an answer. */
bool conversation_is_urged(const struct conversation *t);

/*
 * The messages as a request has them, behind the settled ones, and behind all what is asked for besides (`wish`; empty: nothing).
 * The array is in the arena, the texts are the conversation's. The first *ret_settled of these keep their place,
 * unless something is left out: the latest turn may still grow.
 */
const struct model_message *conversation_messages(const struct conversation *t, struct arena *a, struct str wish,
                                                  size_t *ret_n, size_t *ret_settled);

/* The text of the latest answer; empty when there is none. */
struct str conversation_answer(const struct conversation *t);

size_t conversation_bytes(const struct conversation *t);

/*
 * Which messages to leave out so that about `keep` of their bytes stay: whole turns, the oldest first, never the first
 * prompt, never the latest turn. From and to are indexes; false: there is nothing to leave out.
 */
bool conversation_trim(const struct conversation *t, size_t keep, size_t *ret_from, size_t *ret_to);

/*
 * An id that this conversation has not used: the provider's own when it is good. Where there are several conversations it is
 * made of the turn, whose number no other has: effects are known by it in the whole session. In the arena.
 */
struct str conversation_fresh_id(struct conversation *t, struct arena *a, struct str given, int64_t turn, size_t index);

#endif
