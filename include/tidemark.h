/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtidemark: sessions that cannot be lost.
 *
 * A session is an append-only log of events. A checkpoint is a position in it. Everything else (state, status,
 * messages, usage) is computed from the log.
 *
 * Rules that hold for every call:
 *  - A call that can fail returns enum tide_code (TIDE_OK is 0) and takes `struct tide_err *err` last; on failure
 *    *err says what failed, outermost first. `err` may be NULL. Out parameters (`ret_…`) are set only on success.
 *  - When an append returns TIDE_OK, its events are on disk: they survive kill -9, an OS crash and a power cut.
 *  - A `tide_store` may be used from many threads. A `tide_session` belongs to one thread at a time.
 *  - Text is UTF-8. JSON is strict RFC 8259; key order and the text of numbers are kept exactly.
 *  - Pointers handed to a callback are valid until it returns.
 *  - Memory returned in a `struct tide_text` is the caller's: release it with tide_text_done().
 *  - A struct that the caller fills and that may grow begins with its size: struct tide_run_options o = {.size = sizeof o}.
 *    What a caller of an earlier version does not have is zero, which is the default of every member. Size 0 is refused.
 *  - Enums are numbered for good and may get more values; each has its word beside it: tide_status_name(), …
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIDE_API __attribute__((visibility("default")))
#define TIDE_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TIDE_API
#define TIDE_MUST_CHECK
#endif

#define TIDE_VERSION "0.1.0"

/*
 * Every way a call can end, in one table: name, number, exit status of the command line, HTTP status, whether the same call
 * may succeed later without a change, and what it means.
 */
#define TIDE_CODES(X)                                                                                                  \
    X(OK, 0, 0, 200, 0, "ok")                                                                                          \
    X(FAILED, 1, 1, 500, 0, "failed")                                                                                  \
    X(INVALID, 2, 2, 400, 0, "invalid input")                                                                          \
    X(NOT_FOUND, 3, 3, 404, 0, "not found")                                                                            \
    X(EXISTS, 4, 4, 409, 0, "exists already")                                                                          \
    X(AMBIGUOUS, 5, 3, 409, 0, "more than one match")                                                                  \
    X(CONFLICT, 6, 4, 409, 1, "the log has changed")                                                                   \
    X(FENCED, 7, 4, 409, 0, "the lease was taken over")                                                                \
    X(HELD, 8, 4, 409, 1, "held by another process")                                                                   \
    X(HAS_FORKS, 9, 4, 409, 0, "has forks")                                                                            \
    X(EFFECTS, 10, 4, 409, 0, "would undo an effect that must happen once")                                            \
    X(CORRUPT, 11, 5, 500, 0, "damaged")                                                                               \
    X(WRONG_KEY, 12, 5, 403, 0, "wrong or missing key")                                                                \
    X(NOT_A_STORE, 13, 5, 500, 0, "not a Tidemark store")                                                              \
    X(TOO_NEW, 14, 5, 500, 0, "written by a newer version")                                                            \
    X(TOO_BIG, 15, 2, 413, 0, "too big")                                                                               \
    X(FULL, 16, 6, 507, 1, "no space left")                                                                            \
    X(IO, 17, 6, 500, 0, "input or output error")                                                                      \
    X(UNKNOWN, 18, 6, 500, 1, "outcome unknown")                                                                       \
    X(BUSY, 19, 6, 503, 1, "busy")                                                                                     \
    X(READ_ONLY, 20, 6, 403, 0, "read-only")                                                                           \
    X(DENIED, 21, 6, 403, 0, "permission denied")                                                                      \
    X(CANCELLED, 22, 1, 499, 0, "stopped by the caller")                                                               \
    X(WAITING, 23, 7, 202, 0, "waiting")                                                                               \
    X(TOKEN_MALFORMED, 24, 8, 400, 0, "not a resume token")                                                            \
    X(TOKEN_FOREIGN, 25, 8, 403, 0, "a resume token of another wait")                                                  \
    X(TOKEN_EXPIRED, 26, 8, 410, 0, "the resume token has expired")                                                    \
    X(TOKEN_REVOKED, 27, 8, 410, 0, "the resume token was revoked")                                                    \
    X(TOKEN_CONSUMED, 28, 8, 410, 0, "the resume token was used")                                                      \
    X(CHANGED, 29, 9, 409, 0, "called with other arguments than before")                                               \
    X(UNSETTLED, 30, 10, 409, 0, "the outcome of an effect is unknown")                                                \
    X(ALIVE, 31, 4, 409, 1, "a process of the last run is still alive")                                                \
    X(UNTRUSTED, 32, 11, 403, 0, "it came from elsewhere and is not trusted")                                          \
    X(UNFINISHED, 33, 4, 409, 0, "the last run is unfinished")                                                         \
    X(WRONG_STATE, 34, 2, 409, 0, "not possible in this state")

enum tide_code {
#define TIDE_CODE_ENUM(name, number, exit, http, retry, text) TIDE_##name = (number),
    TIDE_CODES(TIDE_CODE_ENUM)
#undef TIDE_CODE_ENUM
};

/* Room for any id and its NUL: ids have 1 to 64 characters of [A-Za-z0-9_-], not starting with '-'. */
#define TIDE_ID_SIZE 65

/* What a session is: what its latest run ran. LOG: events alone, or runs of an embedder's own. TASK: what a person set of a task. */
#define TIDE_SESSION_KINDS(X)                                                                                          \
    X(LOG, 1, "log") X(PROGRAM, 2, "program") X(CHAT, 3, "chat") X(GRAPH, 4, "graph") X(TASK, 5, "task")
/* What a session is doing, and how its latest run ended. */
#define TIDE_STATUSES(X)                                                                                               \
    X(RUNNING, 1, "running")                                                                                           \
    X(WAITING, 2, "waiting")                         /* for a person, or until a time */                               \
    X(IDLE, 3, "idle")                               /* nothing runs; see its outcome */                               \
    X(INTERRUPTED_STARTUP, 4, "interrupted_startup") /* the process that ran it is gone */                             \
    X(INTERRUPTED_WAITING, 5, "interrupted_waiting") /* its wait can no longer be answered */                          \
    X(DAMAGED, 6, "damaged")                         /* its log cannot be read */
#define TIDE_OUTCOMES(X)                                                                                               \
    X(NONE, 0, "none")                                                                                                 \
    X(COMPLETED, 1, "completed")                                                                                       \
    X(FAILED, 2, "failed")                                                                                             \
    X(CANCELLED, 3, "cancelled")                                                                                       \
    X(INTERRUPTED, 4, "interrupted")                                                                                   \
    X(UNKNOWN, 5, "unknown") /* of a step: unknown whether it happened */
/* What may be done with a step, a tool or a node that was interrupted. */
#define TIDE_EFFECT_KINDS(X)                                                                                           \
    X(ONCE, 0, "once")             /* nothing, until a person decides whether it happened */                           \
    X(IDEMPOTENT, 1, "idempotent") /* it is done again, under the same key */                                          \
    X(PURE, 2, "pure")             /* it is done again */
#define TIDE_WAIT_KINDS(X)                                                                                             \
    X(NONE, 0, "none")                                                                                                 \
    X(INPUT, 1, "input")                                                                                               \
    X(APPROVAL, 2, "approval")                                                                                         \
    X(TOOL_RESULT, 3, "tool_result")                                                                                   \
    X(TIMER, 4, "timer")         /* a sleep */                                                                         \
    X(OTHER, 5, "other")         /* of a log that another program wrote */
#define TIDE_ON_DEADLINES(X)     /* what happens to a wait without an answer in time */                                \
    X(UNSET, 0, "unset")         /* default where there is one, else interrupt */                                      \
    X(INTERRUPT, 1, "interrupt") /* it is over: a person opens it again, or resumes */                                 \
    X(DEFAULT, 2, "default")     /* the default answers, and its run is due */                                         \
    X(FAIL, 3, "fail")           /* its run fails */
#define TIDE_CHECKPOINT_TYPES(X)                                                                                       \
    X(OTHER, 0, "other") /* of a log that another program wrote */                                                     \
    X(TURN, 1, "turn")                                                                                                 \
    X(NODE_START, 2, "node_start")                                                                                     \
    X(NODE_COMPLETE, 3, "node_complete")                                                                               \
    X(EDGE_TRANSITION, 4, "edge_transition")                                                                           \
    X(LOOP_ITERATION, 5, "loop_iteration")                                                                             \
    X(SAFE_POINT, 6, "safe_point")                                                                                     \
    X(USER, 7, "user_checkpoint")
/* What recovery did about a session, or what can be done. */
#define TIDE_RECOVERED_ACTIONS(X)                                                                                      \
    X(INTERRUPTED, 1, "interrupted")     /* its process is gone */                                                     \
    X(TIMED_OUT, 2, "timed_out")         /* the deadline of its wait has passed */                                     \
    X(TOKEN_EXPIRED, 3, "token_expired") /* the token of its wait has */                                               \
    X(ANSWERED, 4, "answered")           /* its wait was, by its default: it can continue */                           \
    X(DUE, 5, "due")                     /* its sleep is over: it can continue */                                      \
    X(RESUMABLE, 6, "resumable")         /* it was interrupted before */
/* What becomes of a call of a tool. */
#define TIDE_PERMISSIONS(X)                                                                                            \
    X(ALLOW, 0, "allow")                                                                                               \
    X(ASK, 1, "ask") /* a person decides */                                                                            \
    X(DENY, 2, "deny")
/* Who said a message of a conversation. */
#define TIDE_ROLES(X) X(USER, 1, "user") X(ASSISTANT, 2, "assistant") X(TOOL, 3, "tool")

/* enum tide_status, TIDE_STATUS_RUNNING, …; the word of a value; the value of a word, or -1. */
#define TIDE_KIND_VALUE(name, number, word) TIDE_KIND_##name = (number),
enum tide_session_kind { TIDE_SESSION_KINDS(TIDE_KIND_VALUE) };
TIDE_API const char *tide_session_kind_name(enum tide_session_kind kind);
TIDE_API int tide_session_kind_from(const char *word);
#define TIDE_STATUS_VALUE(name, number, word) TIDE_STATUS_##name = (number),
enum tide_status { TIDE_STATUSES(TIDE_STATUS_VALUE) };
TIDE_API const char *tide_status_name(enum tide_status status);
TIDE_API int tide_status_from(const char *word);
#define TIDE_OUTCOME_VALUE(name, number, word) TIDE_OUTCOME_##name = (number),
enum tide_outcome { TIDE_OUTCOMES(TIDE_OUTCOME_VALUE) };
TIDE_API const char *tide_outcome_name(enum tide_outcome outcome);
TIDE_API int tide_outcome_from(const char *word);
#define TIDE_EFFECT_VALUE(name, number, word) TIDE_EFFECT_##name = (number),
enum tide_effect { TIDE_EFFECT_KINDS(TIDE_EFFECT_VALUE) };
TIDE_API const char *tide_effect_name(enum tide_effect effect);
TIDE_API int tide_effect_from(const char *word);
#define TIDE_WAIT_KIND_VALUE(name, number, word) TIDE_WAIT_##name = (number),
enum tide_wait_kind { TIDE_WAIT_KINDS(TIDE_WAIT_KIND_VALUE) };
TIDE_API const char *tide_wait_kind_name(enum tide_wait_kind kind);
TIDE_API int tide_wait_kind_from(const char *word);
#define TIDE_ON_DEADLINE_VALUE(name, number, word) TIDE_ON_DEADLINE_##name = (number),
enum tide_on_deadline { TIDE_ON_DEADLINES(TIDE_ON_DEADLINE_VALUE) };
TIDE_API const char *tide_on_deadline_name(enum tide_on_deadline what);
TIDE_API int tide_on_deadline_from(const char *word);
#define TIDE_CHECKPOINT_VALUE(name, number, word) TIDE_CHECKPOINT_##name = (number),
enum tide_checkpoint_type { TIDE_CHECKPOINT_TYPES(TIDE_CHECKPOINT_VALUE) };
TIDE_API const char *tide_checkpoint_type_name(enum tide_checkpoint_type type);
TIDE_API int tide_checkpoint_type_from(const char *word);
#define TIDE_RECOVERED_VALUE(name, number, word) TIDE_RECOVERED_##name = (number),
enum tide_recovered_action { TIDE_RECOVERED_ACTIONS(TIDE_RECOVERED_VALUE) };
TIDE_API const char *tide_recovered_action_name(enum tide_recovered_action action);
TIDE_API int tide_recovered_action_from(const char *word);
#define TIDE_PERMISSION_VALUE(name, number, word) TIDE_PERMISSION_##name = (number),
enum tide_permission { TIDE_PERMISSIONS(TIDE_PERMISSION_VALUE) };
TIDE_API const char *tide_permission_name(enum tide_permission permission);
TIDE_API int tide_permission_from(const char *word);
#define TIDE_ROLE_VALUE(name, number, word) TIDE_ROLE_##name = (number),
enum tide_role { TIDE_ROLES(TIDE_ROLE_VALUE) };
TIDE_API const char *tide_role_name(enum tide_role role);
TIDE_API int tide_role_from(const char *word);

/* What can be done about a session. Numbered for good; more may come. Arguments are members of a JSON object. */
#define TIDE_ACTIONS(X)                                                                                                \
    X(RESUME, 1, "resume")             /* continue: now, retry, happened, checkpoint, graph, set, ask_again */         \
    X(ANSWER, 2, "answer")             /* answer what it waits for: kind, input */                                     \
    X(PROMPT, 3, "prompt")             /* say something to a chat */                                                   \
    X(START, 4, "start")               /* begin a run: ensure, new_run */                                              \
    X(CANCEL, 5, "cancel")             /* end its run */                                                               \
    X(ROTATE_TOKEN, 6, "rotate_token") /* a new token for its wait */                                                  \
    X(TRUST, 7, "trust")               /* look at what would run, and let it */                                        \
    X(VERIFY, 8, "verify")             /* find the damage */                                                           \
    X(RECOVER, 9, "recover")           /* resume what is due: run_due; of the store */                                 \
    X(END_PROCESS, 10, "end_process")  /* end a process that blocks it: pid, continue, kill */                         \
    X(WHY, 11, "why")                  /* explain its status */                                                        \
    X(SHOW_LOG, 12, "show_log")        /* read its events: to, kind */                                                 \
    X(DELETE, 13, "delete")            /* remove it, or what is left of it */                                          \
    X(FORK, 14, "fork")                /* look at a fork of it: at */                                                  \
    X(ROLLBACK, 15, "rollback")        /* go back, or undo that: to */                                                 \
    X(LIST_SESSIONS, 16, "list_sessions")                                                                              \
    X(LIST_CHECKPOINTS, 17, "list_checkpoints")                                                                        \
    X(INIT_STORE, 18, "init_store")   /* make the store, or bring it to this version: upgrade */                       \
    X(CHECK_STORE, 19, "check_store") /* rebuild, accept_loss */                                                       \
    X(TRUST_STORE, 20, "trust_store")                                                                                  \
    X(SET_SETTING, 21, "set_setting") /* key, value */                                                                 \
    X(GET_SETTING, 22, "get_setting") /* key */                                                                        \
    X(LIST_SETTINGS, 23, "list_settings")                                                                              \
    X(IMPORT_GRAPH, 24, "import_graph")                                                                                \
    X(SHOW_TIMELINE, 25, "show_timeline")                                                                              \
    X(REPLACE_FILE, 26, "replace_file") /* put a regular file in the place of what is there; the detail names it */    \
    X(REPEAT, 27, "repeat")             /* the same call, with these arguments as well; false: without it */           \
    X(STORE_SECRET, 28, "store_secret") /* put a secret into the keychain: service, account */                         \
    X(CHECK_SETTINGS, 29, "check_settings")

#define TIDE_ACTION_VALUE(name, number, word) TIDE_ACTION_##name = (number),
enum tide_action { TIDE_ACTIONS(TIDE_ACTION_VALUE) };
TIDE_API const char *tide_action_name(enum tide_action action);
TIDE_API int tide_action_from(const char *word);

/* An argument that is null is for a person to fill in. */
struct tide_next {
    enum tide_action action; /* 0 ends a list */
    enum tide_session_kind kind;
    const char *session_id;
    const char *arguments; /* JSON object */
};

/* What can be done about an error. */
struct tide_hint {
    enum tide_action action;     /* 0: nothing */
    enum tide_session_kind kind; /* 0: not known */
    char session_id[TIDE_ID_SIZE];
    char arguments[200]; /* JSON object */
};

/* What an error is about. Numbered for good; more may come. */
#define TIDE_SUBJECTS(X)                                                                                               \
    X(SESSION, 1, "session") /* the session itself */                                                                  \
    X(EVENT, 2, "event")     /* `position` is its seq */                                                               \
    X(STEP, 3, "step")                                                                                                 \
    X(NODE, 4, "node")                                                                                                 \
    X(KEY, 5, "key")   /* of a graph's memory, of the values of a program, of the settings */                          \
    X(FILE, 6, "file") /* `name` "": what was read, not from a file; `position` is the line */                         \
    X(CHECKPOINT, 7, "checkpoint")                                                                                     \
    X(ARGUMENT, 8, "argument") /* of the call: named as in the arguments of actions */                                 \
    X(FIELD, 9, "field")       /* of an event that was to be appended */

enum tide_subject {
#define TIDE_SUBJECT_ENUM(name, number, text) TIDE_SUBJECT_##name = (number),
    TIDE_SUBJECTS(TIDE_SUBJECT_ENUM)
#undef TIDE_SUBJECT_ENUM
};
TIDE_API const char *tide_subject_name(enum tide_subject subject); /* "step" */

/* What is known of it where the error was made. */
struct tide_detail {
    enum tide_subject subject;     /* 0: not known */
    char session_id[TIDE_ID_SIZE]; /* "": of none */
    char name[256];                /* of the subject; "": it has none, or it is too long */
    int64_t position;              /* seq or line, from 1; 0: not known */
};

/* An error: a code to branch on, one line to read (outermost context first), what it is about, and what helps. */
struct tide_err {
    enum tide_code code;
    char msg[512];
    struct tide_detail detail;
    struct tide_hint hints[2]; /* the likelier one first */
};

TIDE_API const char *tide_code_name(enum tide_code code); /* "CONFLICT" */
TIDE_API const char *tide_code_text(enum tide_code code); /* "the log has changed" */
TIDE_API int tide_code_exit(enum tide_code code);         /* exit status of the command line */
TIDE_API int tide_code_http(enum tide_code code);         /* HTTP status */
TIDE_API int tide_code_retry(enum tide_code code);        /* 1 when trying again later can help */
TIDE_API const char *tide_version(void);                  /* version of the library that is running */

/* Text returned by the library: NUL-terminated, may contain any UTF-8. */
struct tide_text {
    char *ptr;
    size_t len;
};
TIDE_API void tide_text_done(struct tide_text *text); /* releases and clears it; takes NULL */

typedef struct tide_store tide_store;
typedef struct tide_session tide_session;

#define TIDE_DIGEST_SIZE 32
#define TIDE_MAX_RECORD_BYTES (64 * 1024 * 1024) /* default limit of one event's JSON */

/* ---- Store ------------------------------------------------------------------------------------------------- */

enum tide_open_flags {
    TIDE_OPEN_CREATE = 1,      /* make the store when there is none */
    TIDE_OPEN_READ_ONLY = 2,   /* never write, not even caches; works on a full disk */
    TIDE_OPEN_ACCEPT_LOSS = 4, /* open although acknowledged events are missing (write-ahead log damaged or gone) */
    TIDE_OPEN_ADOPT = 8, /* a store of a version without proofs of origin is this user's own: its sessions get them */
};

struct tide_store_options {
    size_t size;
    unsigned flags;          /* enum tide_open_flags */
    size_t max_record_bytes; /* 0: TIDE_MAX_RECORD_BYTES */
    const void *key;         /* secret that keys the digests, 16 to 64 bytes; NULL: none */
    size_t key_len;
    unsigned lease_ms;  /* how long other machines believe a silent holder; 0: 30000 */
    unsigned queue_max; /* appends that may wait for the disk before callers block; 0: 4096 */
    /* The key of proofs of origin, 16 to 64 bytes; NULL: the user's own, found or made as tidemark(1) says of TIDEMARK_ORIGIN_KEY. */
    const void *origin_key;
    size_t origin_key_len;
};

/* Opens a store: "sqlite:PATH", "files:DIR" (a directory of plain files), or the path of a database. `opt` may be NULL (no flags). */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_open(const char *url, const struct tide_store_options *opt,
                                                        tide_store **ret_store, struct tide_err *err);

/* Closes a store; every session of it must be closed before. Queued appends are finished. Takes NULL. */
TIDE_API void tide_store_close(tide_store *store);

/* JSON object about the store: url, version, bytes, sessions, events, live sessions, sync mode, keyed, … */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_get_info(tide_store *store, struct tide_text *ret_json,
                                                            struct tide_err *err);

#define TIDE_COMMIT_SIZES 13
/* What this handle did since it was opened: appends, and the commits that stored them, many of them together. */
struct tide_store_counts {
    uint64_t commits, appends, refused, events;
    uint64_t commits_of[TIDE_COMMIT_SIZES]; /* commits of at most 1, 2, 4, … 2048 appends; the last: of more */
    uint64_t queued, watchers;              /* appends that wait for the disk, and watchers, now */
};
/* Costs nothing but a lock. `size`: of the caller's struct. */
TIDE_API void tide_store_get_counts(tide_store *store, struct tide_store_counts *ret_counts, size_t size);

/* Called now and then with work done and work in all (0: not known yet). Non-zero stops: TIDE_CANCELLED. */
typedef int tide_progress_fn(void *arg, uint64_t done, uint64_t total);

/* One thing that is wrong: where ("session sess_x, seq 17", "page 12 of the file") and what. */
typedef void tide_problem_fn(void *arg, const char *where, const char *what);

enum tide_check_flags {
    TIDE_CHECK_REBUILD = 1, /* drop every cache (snapshots, marks, summaries, indexes), compute it again from the log */
};

/*
 * Checks the whole store: file structure, every chain, every reference. TIDE_CORRUPT when anything is wrong;
 * `problem` is called for each. Both callbacks may be NULL.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_check(tide_store *store, unsigned flags, tide_progress_fn *progress,
                                                         tide_problem_fn *problem, void *arg, struct tide_err *err);

/* How far a copy is. Events: of the sessions that are done with, whether stored or there already. */
struct tide_copy_progress {
    uint64_t sessions, sessions_total, events, events_total, bytes;
};
typedef int tide_copy_progress_fn(void *arg, const struct tide_copy_progress *at); /* non-zero stops: TIDE_CANCELLED */

struct tide_copy_options {
    size_t size;
    const char *const *ids;          /* sessions by id or unique prefix, ended by NULL; NULL: all */
    tide_copy_progress_fn *progress; /* NULL: none, as the others */
    tide_problem_fn *problem;        /* a session that was not copied, and why */
    tide_problem_fn *notice; /* what happens besides: a parent that comes along, one that has continued there, … */
    void *arg;
};

struct tide_copy_result {
    uint64_t sessions; /* asked for, parents included */
    uint64_t copied, continued, same,
        refused;            /* new there; a beginning was there; nothing to do; reported as problems */
    uint64_t events, bytes; /* stored: bytes of kinds and bodies */
};

/*
 * Copies sessions into another store of any kind: seq, time, epoch, kind and body of every event, so that with the same
 * key the digests are the same; each session is read back and verified. A session that is there already with the same events
 * is skipped, a beginning of it is continued, one with other events is a problem. Parents are copied before their forks, also
 * when they were not named. A new session is visible when it is complete. After a kill or an error the same call copies the rest.
 * Fails with the code of the first problem when the others were copied; *ret_result (may be NULL) is always set.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_copy(tide_store *src, tide_store *dst,
                                                        const struct tide_copy_options *opt,
                                                        struct tide_copy_result *ret_result, struct tide_err *err);

/*
 * What the store has repaired since the last call, one line each: an incomplete write that was removed from a log and kept
 * in a file. Each line is returned once, to any thread; returns how many. `fn` may call the library.
 */
typedef void tide_notice_fn(void *arg, const char *line);
TIDE_API size_t tide_store_read_notices(tide_store *store, tide_notice_fn *fn, void *arg);

/* A value that is neither stored nor shown through this handle: "[redacted:NAME]" replaces it (docs/SECRETS.md). TIDE_INVALID:
 * less than 8 or more than 65536 bytes, or part of a word of the log itself. TIDE_TOO_BIG: more than 4096 of them. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_add_secret(tide_store *store, const char *name, const void *value,
                                                              size_t len, struct tide_err *err);

/* Moves what the write-ahead log holds into the main file and gives the log's space back. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_compact(tide_store *store, struct tide_err *err);

/* ---- Log --------------------------------------------------------------------------------------------------- */

/* Numbered for good. */
enum tide_log_level {
    TIDE_LOG_OFF = 0,
    TIDE_LOG_ERROR = 1, /* a run that ended by failure, a session that could not be recovered */
    TIDE_LOG_WARN = 2,  /* retries, a store in trouble, failed checkpoints, what was dropped or denied, failed hooks */
    TIDE_LOG_INFO = 3,  /* runs that start, wait and end, and what they cost; what was recovered and resumed */
    TIDE_LOG_DEBUG = 4, /* turns, calls of tools, steps, nodes, checkpoints */
};
TIDE_API const char *tide_log_level_name(enum tide_log_level level); /* "warn" */

struct tide_log_field {
    const char *key, *value; /* "session", "sess_x" */
    int is_number;           /* value is the text of a number: "ms", "1200" */
};
struct tide_log_record {
    enum tide_log_level level;
    const char *message;
    const struct tide_log_field *fields;
    size_t fields_len;
};
typedef void tide_log_fn(void *arg, const struct tide_log_record *record);

/*
 * The sink of all records of at least this level: one for the process and all its stores; fields name store and session. NULL, or
 * TIDE_LOG_OFF: none, as at first. Records contain no text of a conversation and no secret of a store. `fn` is called on any
 * thread, on several at once, from inside other calls: it should be quick and must not call the library. tide_log_set() may be
 * called at any time; when it returns, the earlier sink is no longer used.
 */
TIDE_API void tide_log_set(enum tide_log_level level, tide_log_fn *fn, void *arg);

/* ---- Sessions ---------------------------------------------------------------------------------------------- */

/*
 * Creates a session and opens it for appending. `fields` is the JSON object of its session.created event (agent,
 * title, task_id, working_dir, provider, metadata, …), NULL for none. `id` NULL or "": one is made. Durable on return.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_create(tide_store *store, const char *id, const char *fields,
                                                            tide_session **ret_session, struct tide_err *err);

enum tide_session_flags {
    TIDE_SESSION_READ = 0,   /* reads only */
    TIDE_SESSION_APPEND = 1, /* may append: the first append takes the lease in its own commit */
    TIDE_SESSION_CLAIM = 2,  /* with APPEND: take the lease now; TIDE_HELD names the holder */
    TIDE_SESSION_LOG = 4,    /* without APPEND, for tide_session_read() alone: also the intact events before damage */
    TIDE_SESSION_WHOLE = 8,  /* by its whole id: no prefix */
};

/* Opens a session by id or unique id prefix. TIDE_NOT_FOUND, TIDE_AMBIGUOUS. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_open(tide_store *store, const char *id, unsigned flags,
                                                          tide_session **ret_session, struct tide_err *err);

/* Waits for queued appends, releases the lease, closes. An error that flush would have returned is lost: flush first. */
TIDE_API void tide_session_close(tide_session *session);

TIDE_API const char *tide_session_id(const tide_session *session);
TIDE_API int64_t tide_session_last_seq(const tide_session *session);  /* last event it knows of, queued or not */
TIDE_API int64_t tide_session_first_seq(const tide_session *session); /* 1; for a fork, one past the fork point */

/* Reads what others have appended since. Opening does that; a long-lived reader calls it again. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_refresh(tide_session *session, struct tide_err *err);

/* Finds the one session whose id begins with `prefix`. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_resolve(tide_store *store, const char *prefix,
                                                             char ret_id[TIDE_ID_SIZE], struct tide_err *err);

struct tide_usage {
    int64_t input_tokens, output_tokens, cached_tokens, calls;
    int64_t cost_nano; /* cost in billionths */
};

struct tide_session_info {
    const char *id, *title, *agent, *agent_id, *task_id; /* NULL when not set */
    const char *parent_id;                               /* NULL unless a fork */
    int64_t parent_seq;
    /* 0: not known, of one that is damaged. */
    int64_t created_ms, updated_ms, first_seq, last_seq;
    enum tide_status status;
    enum tide_outcome outcome;
    const char *reason, *why;     /* a code; one sentence */
    const struct tide_next *next; /* what moves it, the likeliest first; action 0 ends it */
    enum tide_session_kind kind;
    const char *graph_status, *task_state; /* the same in the words of graphs and of task sessions */
    const char *holder;                    /* the process that may append now, in words; NULL: none */
    int is_resumable, needs_resume;
    int trusted;                  /* it began here, or was trusted: 0, nothing of it runs (tide_session_trust) */
    const char *run_id, *boot_id; /* of the latest run; NULL when there was none */
    int64_t run_started_ms, run_ended_ms;
    enum tide_wait_kind wait_kind; /* while it waits, or when it ended waiting, with what follows */
    const char *wait_word, *wait_name, *question, *resume_token_id; /* wait_word: the kind as the log has it */
    int64_t wait_since_seq, deadline_ms, due_ms;                    /* 0: none */
    const char *error_message, *failed_at_node;                     /* of the latest run; NULL when none */
    const char *resume_from_checkpoint_id; /* latest checkpoint that can be resumed from; NULL when none */
    int64_t degraded_events;        /* of the latest run: done while the store could not be written, stored later */
    const char *provider;           /* of its agent, JSON: type, model, base_url, …; NULL when none */
    const char *working_dir;        /* where its programs and tools work; NULL: not set */
    char cursor[TIDE_ID_SIZE + 24]; /* for tide_list_filter.after; "" where it is not of a list */
    /* of a wait with a deadline: what happens then, and the answer that it gives itself (JSON; NULL: none) */
    enum tide_on_deadline on_deadline;
    const char *default_answer;
    int64_t queued_messages; /* that no run has taken yet */
    struct tide_usage usage; /* over its whole log, as tide_session_get_usage() has it; zero: of one that is damaged */
    int64_t wait_since_ms;   /* when it began to wait, or its token was made anew; 0: none */
};
typedef int tide_session_info_fn(void *arg, const struct tide_session_info *info);

enum tide_list_order {
    TIDE_LIST_BY_CREATION = 0, /* newest first */
    TIDE_LIST_BY_CHANGE = 1,   /* the one that changed last first */
};

struct tide_list_filter {
    size_t size;
    const char *status;  /* a status or an outcome, or active, paused, completed, failed, cancelled; NULL: any */
    const char *agent;   /* agent or agent_id; NULL: any */
    const char *task_id; /* NULL: any */
    int64_t limit;       /* the first ones; 0: all */
    enum tide_session_kind kind; /* 0: any */
    const char *after;           /* continue after the session with this cursor; NULL: from the newest on */
    int64_t since_ms, until_ms;  /* changed at or after, changed before: Unix time; 0: whenever */
    enum tide_list_order order;  /* a cursor is of the order that it was listed in */
    const char *
        text; /* each of its words is part of the id, title, agent, task_id or why, in upper or lower case; NULL: any */
};

/*
 * Lists sessions, in the order that the filter says. The callback returns non-zero to stop. `filter` may be NULL. One whose log is damaged is
 * listed with status "damaged".
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_list(tide_store *store, const struct tide_list_filter *filter,
                                                          tide_session_info_fn *fn, void *arg, struct tide_err *err);

/* This session, as far as the handle has read it. Valid until this is called again or the handle is closed. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_info(tide_session *session,
                                                              const struct tide_session_info **ret_info,
                                                              struct tide_err *err);

/* Deletes a whole session for good, by its whole id: no prefix. TIDE_HAS_FORKS names its forks, TIDE_HELD its holder. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_delete(tide_store *store, const char *id, struct tide_err *err);

/* ---- Trust -------------------------------------------------------------------------------------------------- */

/*
 * A session whose log does not end with this user's proof of origin (imported, cloned, edited, written by another program)
 * is data: it is read, forked and cancelled, and TIDE_UNTRUSTED refuses to run anything of it until a person trusts it.
 * This call says the same before anything is tried.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_check_trust(tide_session *session, struct tide_err *err);

/* A JSON object: what would run, where, with which server and which tools. To be shown; texts in it came from elsewhere. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_show_trust(tide_session *session, struct tide_text *ret_json,
                                                                struct tide_err *err);

/*
 * Trusts the session as it is: `shown` is what tide_session_show_trust() gave (NULL: whatever it would). TIDE_CONFLICT: it is
 * another by now. Tokens and approvals from before are void. Nothing is written where it is trusted already. `by` (NULL:
 * "local") is who did.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_trust(tide_session *session, const char *shown, const char *by,
                                                           struct tide_err *err);

/* ---- Events ------------------------------------------------------------------------------------------------ */

/* What is appended: a kind and the JSON object of its fields ("{}" for none), without seq, ts and kind. */
struct tide_new_event {
    const char *kind;
    const char *body;
    size_t body_len; /* 0: strlen(body) */
};

/* What is read. `body` is a JSON object, NUL-terminated. */
struct tide_event {
    int64_t seq;   /* position in its session: 1, 2, 3, … */
    int64_t pos;   /* position among all events of the store: rises, may have gaps */
    int64_t ts_ms; /* Unix time; order is seq, never ts */
    int64_t epoch; /* of the lease it was appended under */
    const char *session_id;
    const char *kind;
    const char *body;
    size_t body_len;
    unsigned char digest[TIDE_DIGEST_SIZE];
};
typedef int tide_event_fn(void *arg, const struct tide_event *event);

/* The event as one flat JSON object: {"seq":…,"ts":"…","kind":"…",fields…}. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_event_write_json(const struct tide_event *event,
                                                              struct tide_text *ret_json, struct tide_err *err);

enum tide_append_flags {
    TIDE_APPEND_ANY = 1,     /* append at the head even if inputs of others have arrived since this handle looked */
    TIDE_APPEND_RELEASE = 2, /* give the lease back in the same commit */
    /*
     * For data of others: only kinds that Tidemark does not know and, in a log in which nothing ever ran, messages, usage, memory
     * and outputs. TIDE_DENIED: another kind, which would start, answer or change something. TIDE_APPEND_ANY means nothing beside it.
     */
    TIDE_APPEND_DATA = 4,
};

/*
 * Appends a batch: whole or not at all, durable on return. *ret_seq (may be NULL) is the seq of the last event.
 * TIDE_CONFLICT: inputs of others came in between: refresh, decide again. TIDE_FENCED: this handle's lease was taken
 * over, it will never append again. TIDE_HELD: another process holds the lease. TIDE_UNKNOWN: the disk failed in the
 * middle; tide_session_refresh() tells whether the batch is there.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_append(tide_session *session, unsigned flags,
                                                            const struct tide_new_event *events, size_t n,
                                                            int64_t *ret_seq, struct tide_err *err);

/*
 * Queues a batch and returns; it is durable after tide_session_flush() or its completion. If one fails, those queued after it in
 * the same session fail with it. `user` not NULL: tide_store_reap() returns its completion.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_append_async(tide_session *session, unsigned flags,
                                                                  const struct tide_new_event *events, size_t n,
                                                                  void *user, struct tide_err *err);

/* Waits until everything queued by this session is on disk; returns the first failure since the last flush. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_flush(tide_session *session, struct tide_err *err);

struct tide_completion {
    void *user;
    tide_session *session;
    enum tide_code code;
    int64_t seq; /* last seq of the batch when code is TIDE_OK */
};

/* Takes up to `max` completions; waits up to timeout_ms for the first (-1: for ever). Returns how many. */
TIDE_API size_t tide_store_reap(tide_store *store, struct tide_completion *ret_done, size_t max, int timeout_ms);

/*
 * Appends inputs (queue.added, approval.given, cancel.requested, token.*) without the lease, guarded by the expected
 * last seq; -1: whatever it is.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_input(tide_store *store, const char *id, int64_t expect_seq,
                                                           const struct tide_new_event *events, size_t n,
                                                           int64_t *ret_seq, struct tide_err *err);

enum tide_read_flags {
    TIDE_READ_INHERITED = 1, /* of a fork: also what it shares with its parents, from seq 1 on */
};

/* Calls `fn` for the events from..to (0: the end) in order, each checked against the chain. Non-zero from `fn` stops. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_read(tide_session *session, unsigned flags, int64_t from,
                                                          int64_t to, tide_event_fn *fn, void *arg,
                                                          struct tide_err *err);

/*
 * One event; of a fork also in the past it shares. TIDE_NOT_FOUND: there is none yet. Valid until this is called again or the
 * handle is closed.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_event(tide_session *session, int64_t seq,
                                                               const struct tide_event **ret_event,
                                                               struct tide_err *err);

/* Calls `fn` for the events of all sessions with pos > after, in order of pos, at most `max` (0: all). */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_read(tide_store *store, int64_t after, uint64_t max,
                                                        tide_event_fn *fn, void *arg, struct tide_err *err);

/*
 * Watching a store: a commit by any thread or process wakes every watcher, once. A watcher has no transaction and no queue: the
 * caller remembers how far it has read, and continues from there. Open it before the first read, close it before the store. One
 * thread at a time.
 */
typedef struct tide_watch tide_watch;
TIDE_API TIDE_MUST_CHECK enum tide_code tide_watch_open(tide_store *store, tide_watch **ret_watch,
                                                        struct tide_err *err);
TIDE_API void tide_watch_close(tide_watch *watch); /* takes NULL */
/* For the caller's own loop: readable when something was committed, until tide_watch_wait() is called. */
TIDE_API int tide_watch_fd(const tide_watch *watch);
/* Waits until something was committed since the last call, at most timeout_ms (-1: no limit); *ret_changed is 0 after a timeout or
 * when a signal handler ran. TIDE_IO: the store was deleted or cannot be read; it may come back. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_watch_wait(tide_watch *watch, int timeout_ms, int *ret_changed,
                                                        struct tide_err *err);
/* Why the store is checked 20 times a second; NULL: the kernel reports changes. */
TIDE_API const char *tide_watch_polls(const tide_watch *watch);

/* The messages that are part of the content as of `seq` (0: now): without rolled-back ones, with inherited ones. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_read_messages(tide_session *session, int64_t seq,
                                                                   tide_event_fn *fn, void *arg, struct tide_err *err);

/* The failures in the log (llm.error, tool.failed, node.failed, run.failed), in order, including those rolled back. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_read_errors(tide_session *session, tide_event_fn *fn, void *arg,
                                                                 struct tide_err *err);

/* Sums over the whole log as of `seq` (0: now): rolling back does not undo spending. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_usage(tide_session *session, int64_t seq,
                                                               struct tide_usage *ret_usage, struct tide_err *err);

/* ---- State, checkpoints, rollback, fork -------------------------------------------------------------------- */

/* The state as of `seq` (0: now) as one JSON object: session, content (memory, outputs, position, …), ledger, status. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_state(tide_session *session, int64_t seq,
                                                               struct tide_text *ret_json, struct tide_err *err);

struct tide_checkpoint {
    enum tide_checkpoint_type type;
    const char *type_word;                           /* as the log has it */
    const char *id, *node, *next_node, *description; /* NULL when not set */
    int64_t seq, ts_ms, turn;
    int is_clean, can_resume_from;
    int rolled_back; /* cut off by a rollback */
};
typedef int tide_checkpoint_fn(void *arg, const struct tide_checkpoint *checkpoint);

struct tide_new_checkpoint {
    size_t size;
    enum tide_checkpoint_type type;
    const char *node, *next_node, *description; /* NULL: not set */
    unsigned append_flags;                      /* enum tide_append_flags */
};

/* Marks the state as of here. is_clean and can_resume_from are computed from the log. Durable on return. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_save(tide_session *session,
                                                             const struct tide_new_checkpoint *checkpoint,
                                                             char ret_id[TIDE_ID_SIZE], struct tide_err *err);

/*
 * The newest checkpoint that is neither deleted nor rolled back; and one by id or unique id prefix, of a fork also in the past it
 * shares. TIDE_NOT_FOUND. Its state: tide_session_get_state(session, its seq). Valid until one is loaded again or the handle is
 * closed.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_load_latest(tide_session *session,
                                                                    const struct tide_checkpoint **ret_checkpoint,
                                                                    struct tide_err *err);
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_load(tide_session *session, const char *id,
                                                             const struct tide_checkpoint **ret_checkpoint,
                                                             struct tide_err *err);

struct tide_checkpoint_filter {
    size_t size;
    enum tide_checkpoint_type type; /* 0: any */
    int clean_only;
    int rolled_back;    /* list those cut by a rollback as well */
    int64_t limit;      /* newest N; 0: all */
    int64_t before_seq; /* only those before this event: a page ends where the one after it began; 0: all */
};
/* Lists checkpoints that are not deleted, oldest first. `filter` may be NULL. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_list(tide_session *session,
                                                             const struct tide_checkpoint_filter *filter,
                                                             tide_checkpoint_fn *fn, void *arg, struct tide_err *err);

/* Deletes checkpoints by id: appends checkpoint.deleted. TIDE_NOT_FOUND names the first that is not there. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_delete(tide_session *session, const char *const *ids, size_t n,
                                                               struct tide_err *err);

enum tide_prune_flags {
    TIDE_PRUNE_KEEP_CLEAN_ONLY = 1, /* those that are not clean go as well */
};
/* Keeps the newest `keep` checkpoints and deletes the rest; *ret_deleted says how many (may be NULL). */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_checkpoint_prune(tide_session *session, int64_t keep, unsigned flags,
                                                              int64_t *ret_deleted, struct tide_err *err);

enum tide_rollback_flags {
    TIDE_ROLLBACK_REUSE_EFFECTS = 1, /* finished `once` effects answer from the log when they are asked for again */
    TIDE_ROLLBACK_REDO_EFFECTS = 2,  /* they may run again */
};
/*
 * Makes the content what it was at `to_seq`. Nothing is deleted: an event says so, the ledger stays, no seq is used
 * again, and rolling "back" to a later seq undoes it. TIDE_EFFECTS names a finished `once` effect in between.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_rollback(tide_session *session, int64_t to_seq, unsigned flags,
                                                              const char *reason, struct tide_err *err);

/*
 * Begins a new session whose past is `id` up to `seq` (0: its end). It costs a few hundred bytes. `fields` as in
 * tide_session_create(); `fork_id` NULL or "": one is made.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_fork(tide_store *store, const char *id, int64_t seq,
                                                          const char *fork_id, const char *fields,
                                                          char ret_id[TIDE_ID_SIZE], struct tide_err *err);

/* ---- Runs -------------------------------------------------------------------------------------------------- */

/*
 * A run is one activation of a session. While it is open its process holds the session's lease; a run that waits holds
 * nothing. A run that was interrupted or failed is resumed by a new run that continues it; together they are a chain.
 * Steps, waits and sleeps are recorded under (first run of the chain, name, n-th use of the name), so that a program that
 * is executed again from its start gets what has happened from the log and does only what has not.
 *
 * A tide_run belongs to one thread at a time, and so does its session, which must be open for appending and stay open.
 */
typedef struct tide_run tide_run;

enum tide_run_flags {
    TIDE_RUN_CONTINUE =
        1, /* store failure: pure work continues in a bounded buffer, flagged degraded (default: it waits) */
    TIDE_RUN_ACCEPT_CHANGE = 2, /* recorded steps answer although they are called with other arguments */
    TIDE_RUN_NOW = 4,           /* resume: end a sleep before it is due */
    TIDE_RUN_IF_OVER = 8,       /* start: TIDE_UNFINISHED unless the last run completed or was cancelled */
    TIDE_RUN_DELIVER = 16,      /* ensure: start a new run after a completed one when a message is queued for it */
};

/* Called before each further try while the store cannot be written, and with why NULL when it can again. Non-zero gives up. */
typedef int tide_trouble_fn(void *arg, const struct tide_err *why, int64_t waited_ms);

struct tide_run_options {
    size_t size;
    unsigned flags;     /* enum tide_run_flags */
    const char *fields; /* JSON object: further fields of run.started (argv, cwd, env, pid, pid_start, …); NULL: none */
    const char *message;         /* JSON: a user's message, queued in the same append as the run begins; NULL: none */
    const char *token;           /* resume: the right to answer the wait; NULL: the right of the store's owner */
    const char *request_id;      /* resume: the same id again gets the first answer again; NULL: none */
    const char *input;           /* resume: the answer to the wait, JSON; NULL: none, then a token is needed (null) */
    const char *by;              /* who asks; NULL: "token" with a token, else "local" */
    const char *const *retry;    /* names of steps that may run again although they must happen once; ended by NULL */
    const char *const *happened; /* names of such steps that did happen; ended by NULL */
    tide_trouble_fn *trouble;    /* NULL: the start is refused; the rest waits until the store can be written */
    void *trouble_arg;
};

/*
 * Begins a run: takes the lease, run.started is on disk on return. TIDE_HELD when another process runs it. A run that
 * waits is superseded: its token is revoked, it ends as cancelled. `opt` may be NULL.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_start(tide_session *session, const struct tide_run_options *opt,
                                                       tide_run **ret_run, struct tide_err *err);

struct tide_resumed {
    char run_id[TIDE_ID_SIZE];
    int64_t seq;  /* of run.resumed or run.started */
    int repeated; /* this request id was answered before: nothing was done, there is no run */
};

/*
 * Answers the wait, or continues what was interrupted, failed or cancelled by a new run. Everything that can be
 * refused is looked at first (TIDE_HELD, TIDE_ALIVE, TIDE_INVALID with what to do, TIDE_TOKEN_…); then the token is
 * consumed and the run resumed in one append: among parallel calls one wins. *ret_resumed may be NULL.
 *
 * With a message and no answer a wait is not answered: its token is revoked, and a new run continues the chain. No finished
 * step is repeated, and the message answers the next wait of kind input.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_resume(tide_session *session, const struct tide_run_options *opt,
                                                        struct tide_resumed *ret_resumed, tide_run **ret_run,
                                                        struct tide_err *err);

enum tide_ensured {
    TIDE_ENSURED_STARTED = 1,
    TIDE_ENSURED_RESUMED = 2,
    TIDE_ENSURED_DONE = 3, /* it has completed: there is no run; tide_session_get_result() has what came of it */
};

/*
 * Starts or resumes, whichever is due: for programs that are simply started again. A session that never ran is started, one
 * that was interrupted or failed is resumed, a wait is answered with opt's answer, and what has completed is left alone
 * (*ret_run is NULL). With a message a wait is continued as by tide_run_resume(), and what has completed begins a new run.
 * TIDE_WAITING: it waits, and `opt` has no answer. TIDE_CANCELLED: it was cancelled, and only tide_run_resume() or
 * tide_run_start() continue. Else as the two above. Among parallel calls, and whatever is killed when, one run does the work.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_ensure(tide_session *session, const struct tide_run_options *opt,
                                                        enum tide_ensured *ret_how, tide_run **ret_run,
                                                        struct tide_err *err);

/*
 * The fields of the event that ended the latest run, JSON: of a program's run exit_status, and output with the end of what it
 * printed. TIDE_NOT_FOUND: no run has ended.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_result(tide_session *session, struct tide_text *ret_json,
                                                                struct tide_err *err);

TIDE_API const char *tide_run_id(const tide_run *run);
TIDE_API int tide_run_is_degraded(const tide_run *run); /* what it did last is in memory only */

enum tide_signs {
    TIDE_SIGN_CANCEL = 1,  /* a cancel was requested: end the run */
    TIDE_SIGN_MESSAGE = 2, /* a user's message waits in the queue */
};
/*
 * Checks for what others have requested: cheap, call it often. TIDE_FENCED: the lease is lost, stop at once. TIDE_IO, TIDE_FULL,
 * TIDE_BUSY: the check failed; do nothing that must happen once until it succeeds.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_look(tide_run *run, unsigned *ret_signs, struct tide_err *err);

struct tide_run_result {
    size_t size;
    enum tide_outcome outcome;              /* COMPLETED, FAILED, CANCELLED, INTERRUPTED */
    const char *reason;                     /* a code: shutdown, process_exit, …; NULL: none */
    const char *error_code, *error_message; /* NULL: none */
    int not_resumable;                      /* of a failure: resuming is pointless */
    const char *fields;                     /* JSON object: further fields of the event; NULL: none */
};
/* Ends the run and gives the lease back, in one append. The handle can only be closed after that. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_end(tide_run *run, const struct tide_run_result *result,
                                                     struct tide_err *err);

/* Frees the handle; a run that has not ended is interrupted (shutdown). Takes NULL. */
TIDE_API void tide_run_close(tide_run *run);

/* The fields of the latest run.started that says what runs: a program (argv, cwd, env, …) or an agent (loop), JSON. TIDE_NOT_FOUND: none does. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_get_program(tide_session *session, struct tide_text *ret_json,
                                                                 struct tide_err *err);

/* TIDE_OK when a step of this name that must happen once has failed or was interrupted; TIDE_NOT_FOUND when none has. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_step_find_unsettled(tide_session *session, const char *name,
                                                                 struct tide_err *err);

/* ---- Steps: what a run does, at most once as its effect says ------------------------------------------------------ */

struct tide_step_spec {
    size_t size;
    const char *name; /* 1 to 128 bytes of UTF-8 without control characters */
    enum tide_effect effect;
    const void *args; /* what its result depends on: a recorded step called with others is refused */
    size_t args_len;
    int retries;        /* further attempts after a failed one, with growing pauses; not for once */
    int has_probe;      /* the caller can find out whether a cut one happened */
    const char *within; /* idempotency key of the step that it is part of: its uses count apart; NULL: none */
};

enum tide_step_state {
    TIDE_STEP_RUN = 0,    /* it is to be done: tide_step_begin(), do it, tide_step_end() */
    TIDE_STEP_STORED = 1, /* it was done: the result is in the answer */
    TIDE_STEP_PROBE = 2,  /* it was interrupted: find out whether it happened, tide_step_settle() */
    TIDE_STEP_LATER = 3,  /* it failed: ask again at retry_at_ms */
};

struct tide_step_answer {
    enum tide_step_state state;
    char key[33];            /* idempotency key: the same in every attempt */
    int attempt;             /* of the one to be done, from 0 */
    int64_t retry_at_ms;     /* LATER */
    int failed;              /* STORED: it ended by failure */
    struct tide_text result; /* STORED: JSON, as it was given to tide_step_end(); tide_text_done() it */
    int64_t run; /* STORED: kept from this run of the session, counted from 1; 0: of this call, or not known */
};

/*
 * What is to be done about this step? TIDE_CHANGED: recorded with other arguments. TIDE_UNSETTLED: it must happen once,
 * was interrupted, and it is unknown whether it happened. TIDE_INVALID: the same name is running already.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_step_ask(tide_run *run, const struct tide_step_spec *spec,
                                                      struct tide_step_answer *ret_answer, struct tide_err *err);

/* Its tool.started is on disk on return: only then may it be done. pid 0: no process of its own. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_step_begin(tide_run *run, const char *name, int64_t pid,
                                                        uint64_t pid_start, struct tide_err *err);

struct tide_step_result {
    size_t size;
    enum tide_outcome outcome;              /* COMPLETED, FAILED, UNKNOWN */
    const char *result;                     /* JSON; NULL: null */
    const char *error_code, *error_message; /* of a failure */
    int no_retry;                           /* of a failure: trying again is pointless */
};
/*
 * Of a step that must happen once, on disk on return. That of another is on disk before anything later of the session is: the
 * next append takes it along, in one sync; without one it is written some milliseconds later, and tide_session_flush() waits for
 * it. A crash before that has the step done again. Of one that was asked for and not begun nothing is written. The answer (may
 * be NULL) is LATER when it is to be tried again, else STORED without the result.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_step_end(tide_run *run, const char *name,
                                                      const struct tide_step_result *result,
                                                      struct tide_step_answer *ret_answer, struct tide_err *err);

/* After TIDE_STEP_PROBE. happened: 1 yes (`result` is its result), 0 no, -1 cannot be told (TIDE_UNSETTLED). */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_step_settle(tide_run *run, const char *name, int happened,
                                                         const char *result, struct tide_step_answer *ret_answer,
                                                         struct tide_err *err);

/* Does the step. Fills *ret_result (JSON; may be left empty) and returns TIDE_OK, or fails with *err. */
typedef enum tide_code tide_step_fn(void *arg, const char *key, struct tide_text *ret_result, struct tide_err *err);

/* All of the above in one call, retries with their pauses included. TIDE_FAILED with the stored message when it failed. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_step(tide_run *run, const struct tide_step_spec *spec,
                                                      tide_step_fn *fn, void *arg, struct tide_text *ret_result,
                                                      struct tide_err *err);

/* ---- Waits, sleeps, memory -------------------------------------------------------------------------------------- */

#define TIDE_TOKEN_SIZE 96 /* "rt_<id>.<secret>" and NUL */

struct tide_wait_options {
    size_t size;
    const char *name;
    enum tide_wait_kind kind; /* INPUT, APPROVAL, TOOL_RESULT */
    const char *question;     /* NULL: none */
    int64_t deadline_ms;      /* Unix time after which the wait is over; 0: none */
    int64_t expires_ms;       /* Unix time after which the token is; 0: with the deadline */
    /* what happens at the deadline, and the answer that it gives itself (JSON, at most 4096 bytes; NULL: none) */
    enum tide_on_deadline on_deadline;
    const char *default_answer;
};
/*
 * TIDE_OK: it was answered, *ret_answer is the answer (JSON). TIDE_WAITING: the run waits, on disk, and the lease is
 * released; ret_token is the token, shown only here: end everything and close the run. Kind input takes a queued message first.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_wait(tide_run *run, const struct tide_wait_options *opt,
                                                      struct tide_text *ret_answer, char ret_token[TIDE_TOKEN_SIZE],
                                                      struct tide_err *err);

/* TIDE_OK: that sleep is over. TIDE_WAITING: it waits until due_ms (of the first call; *ret_due_ms, may be NULL), as above. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_sleep(tide_run *run, const char *name, int64_t due_ms,
                                                       int64_t *ret_due_ms, struct tide_err *err);

/* Memory of the session. A value is JSON. Setting what it is already writes nothing. TIDE_NOT_FOUND. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_set(tide_run *run, const char *key, const char *value,
                                                     struct tide_err *err);
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_get(tide_run *run, const char *key, struct tide_text *ret_value,
                                                     struct tide_err *err);

/* A checkpoint (type 0: SAFE_POINT); of a program that is executed again, the one it made here before. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_run_checkpoint(tide_run *run, enum tide_checkpoint_type type,
                                                            const char *description, char ret_id[TIDE_ID_SIZE],
                                                            struct tide_err *err);

/* Mints a new token for the wait and revokes the old one; a wait that has ended is opened again, by a new run. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_token_rotate(tide_session *session, int64_t deadline_ms,
                                                          int64_t expires_ms, char ret_token[TIDE_TOKEN_SIZE],
                                                          struct tide_err *err);

/*
 * Opens a question again that was answered with no, the latest answer of its chain that was: nothing is run, and its new token,
 * or the store's owner, answers it. TIDE_NOT_FOUND: it has no answer. TIDE_INVALID: it was not a no, or something that came after
 * it may depend on it: a step, another answer, memory, a node, an answer of the model.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_ask_again(tide_session *session, const char *name,
                                                               char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err);

/* ---- Cancel, recovery ------------------------------------------------------------------------------------------- */

enum tide_cancelled {
    TIDE_CANCEL_NOTHING = 0,  /* nothing was open: it stays as it is */
    TIDE_CANCEL_DONE = 1,     /* no process ran it: cancelled here */
    TIDE_CANCEL_ANSWERED = 2, /* its process ended it */
    TIDE_CANCEL_FORCED = 3,   /* its process did not answer: the lease was taken from it */
};
/* Always succeeds while the store can be written: asks the process that runs it to stop, after wait_ms (0: 2000) takes the lease. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_cancel(tide_store *store, const char *id, const char *by,
                                                            const char *reason, int wait_ms,
                                                            enum tide_cancelled *ret_how, struct tide_err *err);

enum tide_recover_flags {
    TIDE_RECOVER_DRY_RUN = 1, /* report what would be done */
    TIDE_RECOVER_ALL = 2,     /* also report what is interrupted already */
};

struct tide_recovered {
    const char *session_id;
    enum tide_recovered_action action;
    const char *reason; /* process_restart, wait_timeout, … */
    enum tide_status
        status;      /* what it is after that: INTERRUPTED_STARTUP, INTERRUPTED_WAITING, WAITING, IDLE (failed) */
    const char *why; /* one sentence */
    int resumes;     /* how often its chain was resumed without getting further */
    int has_program; /* `tidemark resume` can run it */
    int by_person;   /* stopped on purpose: never resumed automatically */
    int trusted;     /* as in struct tide_session_info */
    int64_t seq;     /* of the event that made it so: its run ended, or began to wait */
};
typedef int tide_recovered_fn(void *arg, const struct tide_recovered *what);

struct tide_recovery {
    int64_t looked_at, interrupted, timed_out, tokens_expired, due; /* timed_out: also answered by their default */
    int64_t next_ms; /* Unix time at which there is something to do next; 0: none known */
};

/*
 * Checks the live sessions (never finished ones) and records what has happened to them meanwhile: runs whose process is gone are
 * interrupted; waits past their deadline end as they were configured (interrupted, answered by their default, or failed); tokens
 * past their time expire. Each exactly once, even with several processes at once. `fn` (may be NULL) is called for each when it is
 * on disk; non-zero stops.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_store_recover(tide_store *store, unsigned flags, tide_recovered_fn *fn,
                                                           void *arg, struct tide_recovery *ret_recovery,
                                                           struct tide_err *err);

/* ---- Agents: a model, its tools, and a session that cannot be lost ---------------------------------------------- */

typedef struct tide_agent tide_agent;

enum tide_agent_what {
    TIDE_AGENT_TEXT = 0,     /* a piece of the model's text: a preview, it is stored when the answer is whole */
    TIDE_AGENT_TEXT_END = 1, /* that answer is whole */
    TIDE_AGENT_DISCARD = 2,  /* the attempt failed: what was shown of its text is void */
    TIDE_AGENT_WAIT = 3,     /* nothing new: ten times a second while a model or a tool works */
    TIDE_AGENT_RETRY = 4,    /* text says why; attempt (from 1) of attempts comes in delay_ms */
    TIDE_AGENT_TOOL = 5,     /* a tool begins: its start is on disk */
    TIDE_AGENT_TOOL_END = 6, /* text is its result, as the model gets it; on disk only when the model has answered */
    TIDE_AGENT_USAGE = 7,    /* tokens and cost of one call */
    TIDE_AGENT_NOTICE = 8,   /* one line for people: a hook that failed, messages that were dropped, … */
};

/* What happens while an agent works. Pointers are valid until the callback returns; NULL and 0 where they say nothing. */
struct tide_agent_event {
    enum tide_agent_what what;
    int64_t turn;
    const char *text;
    size_t text_len;
    const char *tool, *call_id, *args; /* args: JSON */
    int failed;
    int64_t ms; /* how long the tool took */
    int attempt, attempts;
    int64_t delay_ms; /* of a notice: -1: the store cannot be written, and the run waits until it can */
    int64_t input_tokens, output_tokens, cached_tokens;
    double cost;
    const struct tide_err *why; /* of a notice: trouble of the store, with what helps; else NULL */
};
typedef void tide_agent_event_fn(void *arg, const struct tide_agent_event *event);

enum tide_decision {
    TIDE_DECIDE_LATER = 0,  /* it keeps waiting, on disk: answered by tide_agent_resume() or `tidemark resume` */
    TIDE_DECIDE_ALLOW = 1,  /* this call */
    TIDE_DECIDE_ALWAYS = 2, /* this call, and this tool as long as the agent lives */
    TIDE_DECIDE_DENY = 3,
};
/* A call that needs an approval. It is on disk and the run waits when this is called. `tool` NULL: the budget. */
struct tide_approval {
    const char *tool, *args, *question, *token;
    struct tide_text *
        reason; /* what goes with the answer, for the callback to set (malloc); it is recorded, and said to the model */
};
typedef enum tide_decision tide_approve_fn(void *arg, const struct tide_approval *ask);

/* A hook: `input` is the JSON that a hook program gets; the answer is what one prints (empty: continue). */
typedef enum tide_code tide_hook_fn(void *arg, const char *input, struct tide_text *ret_answer, struct tide_err *err);

/* A tool of the caller's. Fills *ret_result; on failure the model gets err's message. */
typedef enum tide_code tide_tool_fn(void *arg, const char *args, const char *key, struct tide_text *ret_result,
                                    struct tide_err *err);
/* Whether an interrupted call with this key happened: 1 yes, 0 no, -1 unknown. */
typedef int tide_probe_fn(void *arg, const char *args, const char *key);
struct tide_tool {
    size_t size;
    const char *name, *description, *schema; /* schema: JSON Schema of its arguments, an object */
    enum tide_effect effect;
    enum tide_permission permission;
    tide_tool_fn *fn;
    tide_probe_fn *probe; /* NULL: it cannot be found out */
    void *arg;
};

/* Zero and NULL mean the default, which is in brackets. */
struct tide_agent_options {
    size_t size;
    const char *provider, *model; /* anthropic, openai or script; [of the session, else anthropic] */
    const char *base_url, *api_key, *script;
    const char *system_prompt, *working_dir; /* [a short one]; where tools work [of the session, else here] */
    int max_turns, context_percent; /* model calls for one prompt [50]; older turns are dropped above so much [80] of */
    int64_t max_context_tokens;     /* [128000] */
    int max_retries, retry_now;     /* [3], negative: none; resuming does not wait for a pause between attempts */
    int64_t retry_base_delay_ms, max_retry_after_ms;  /* [500]; of what a provider asks for (Retry-After) [900000] */
    int64_t max_tool_result_chars, max_answer_tokens; /* [8000], negative: no limit; [8192] */
    int64_t tool_timeout_ms, hook_timeout_ms, connect_timeout_ms, first_byte_timeout_ms, silence_timeout_ms;
    int64_t stall_timeout_ms, call_timeout_ms; /* a model call without progress [300000], and in all [1800000] */
    double max_cost;                           /* budget of the session, in the unit of the prices [none] */
    int64_t max_tokens;                        /* the same in tokens [none] */
    const char *permissions, *hooks, *prices;  /* JSON, as config.json has them */
    int no_tools,
        refresh_prompt;          /* none of the built-in ones; render system prompt and tool list again, and log that */
    int on_store_error_continue; /* as TIDE_RUN_CONTINUE */
    tide_agent_event_fn *event;
    tide_approve_fn
        *approve; /* NULL: a call that needs an approval waits on disk, and the function returns TIDE_WAITING */
    void *arg;
    const char *instructions; /* of the project: follow the system prompt when that is rendered [none] */
};

/* An agent over a session that was opened for appending. Nothing is sent or written yet. `opt` is copied. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_new(tide_session *session, const struct tide_agent_options *opt,
                                                       tide_agent **ret_agent, struct tide_err *err);
TIDE_API void tide_agent_free(tide_agent *agent);

/* Before the first run. `event` as in a hooks file: "pre_tool_use"; matcher NULL: any tool. The tool is copied. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_add_hook(tide_agent *agent, const char *name, const char *event,
                                                            const char *matcher, tide_hook_fn *fn, void *arg,
                                                            struct tide_err *err);
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_add_tool(tide_agent *agent, const struct tide_tool *tool,
                                                            struct tide_err *err);

/*
 * Sends a prompt to the model and returns when its answer is complete, tools included; *ret_answer (may be NULL) is
 * its last text. The prompt is on disk before anything of the answer is shown. TIDE_WAITING: it waits, err says for what.
 * TIDE_CANCELLED: stopped. TIDE_FAILED and others: the run failed and can be resumed; err says why and what to do.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_run(tide_agent *agent, const char *prompt,
                                                       struct tide_text *ret_answer, struct tide_err *err);

#define TIDE_IMAGE_MAX_BYTES 3932160 /* 5 MiB on the wire, as base64 */
#define TIDE_IMAGES_MAX 8
/*
 * An image for the next prompt: PNG, JPEG, GIF or WebP, by its bytes, which are copied. `name`: what the log calls it. It is stored
 * with the prompt, and goes away with tide_agent_run(), whatever becomes of that. TIDE_INVALID: it is no image; TIDE_TOO_BIG.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_attach(tide_agent *agent, const char *name, const void *bytes,
                                                          size_t len, struct tide_err *err);

/*
 * Continues what was interrupted, failed, stopped or waits, exactly where it was. What was answered is not asked again, what
 * was done is not done again. TIDE_NOT_FOUND: nothing is left to do. `input` answers a wait (JSON), else NULL.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_resume(tide_agent *agent, const char *input, const char *token,
                                                          struct tide_text *ret_answer, struct tide_err *err);

/*
 * Asks the model for a summary, which replaces all earlier messages: later requests carry it in place of the
 * messages, and the log keeps everything. `focus`: what matters most; NULL: nothing in particular. TIDE_CONFLICT: a prompt has no
 * answer yet. TIDE_NOT_FOUND: nothing was said. Killed or failed, everything is as it was.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_compact(tide_agent *agent, const char *focus, struct tide_err *err);

/* Stops what it does, soon and in order. May be called from a signal handler or another thread. */
TIDE_API void tide_agent_stop(tide_agent *agent);

/* The same when the process must end, not because a person wants it: it may be resumed automatically. */
TIDE_API void tide_agent_shutdown(tide_agent *agent);

/* The token of the wait after TIDE_WAITING, shown only here; "" when there is none. */
TIDE_API const char *tide_agent_token(const tide_agent *agent);

/* One message of the conversation, as the next request would have it. */
struct tide_message {
    enum tide_role role;
    const char *text;
    size_t text_len;
    int64_t turn;
    int from_hook;       /* of the user: a hook said it */
    const char *call_id; /* of a tool: whose result it is */
    int failed;
    const char *calls; /* of the assistant: JSON array of {"id","name","args"}; NULL: it asked for nothing */
    int is_summary;    /* of the user: replaces earlier messages (tide_agent_compact) */
};
typedef int tide_message_fn(void *arg, const struct tide_message *message);

/* The conversation so far; without what was dropped or rolled back. The callback returns non-zero to stop. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_read_history(tide_agent *agent, tide_message_fn *fn, void *arg,
                                                                struct tide_err *err);

/* What it works with now, JSON: provider, model, tools, hooks, turns, tokens, cost, context. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_agent_get_info(tide_agent *agent, struct tide_text *ret_json,
                                                            struct tide_err *err);

/* ---- Graphs: nodes that finished are never lost and never run again ---------------------------------------------- */

typedef struct tide_graph tide_graph;

/*
 * A graph from its JSON (docs/GRAPHS.md). TIDE_INVALID: the first problem, and how many more there are; `problem` (may be
 * NULL) is called for each. `dir`: where files of subgraphs are looked for; NULL: they are refused. A handle runs one session at a time.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_parse(const char *json, size_t len, const char *dir,
                                                         tide_problem_fn *problem, void *arg, tide_graph **ret_graph,
                                                         struct tide_err *err);
TIDE_API void tide_graph_free(tide_graph *graph); /* takes NULL */
TIDE_API const char *tide_graph_id(const tide_graph *graph);
TIDE_API const char *tide_graph_digest(const tide_graph *graph); /* hex: what the run that uses it records */

/* What a function node gets. Pointers are valid until it returns. */
struct tide_node_call {
    const char *node;       /* as the log names it */
    const char *inputs;     /* JSON object */
    const char *key;        /* the same in every attempt, different for every visit and session */
    int64_t visit, attempt; /* from 1; from 0 */
};
/* Fills *ret_output (JSON object with the outputs; may be left empty) and returns TIDE_OK, or fails with *err. Called on any thread. */
typedef enum tide_code tide_node_fn(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                                    struct tide_err *err);

/* What nodes with "callback": name do. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_add_callback(tide_graph *graph, const char *name, tide_node_fn *fn,
                                                                void *arg, struct tide_err *err);

enum tide_graph_what {
    TIDE_GRAPH_NODE_START = 0,  /* its start is on disk, or it is pure */
    TIDE_GRAPH_NODE_END = 1,    /* it is complete, on disk: ms */
    TIDE_GRAPH_NODE_FAILED = 2, /* text says why; attempt of attempts; delay_ms until the next, -1: there is none */
    TIDE_GRAPH_EDGE = 3,        /* node leads to `to` */
    TIDE_GRAPH_CHECKPOINT = 4,  /* checkpoint_type, checkpoint_id */
    TIDE_GRAPH_NOTICE =
        5, /* one line for people: the condition of the edge to `to` erred, …; delay_ms -1: the store holds the run */
    TIDE_GRAPH_AGENT = 6, /* what an event_loop node's agent does: `agent` */
    TIDE_GRAPH_TICK = 7,  /* nothing new: ten times a second */
};
struct tide_graph_event {
    enum tide_graph_what what;
    const char *node, *type, *to; /* type: of the node: function, map, … */
    int64_t visit, ms, delay_ms;
    int64_t items; /* an item of a map starts: how many there are */
    int attempt, attempts;
    enum tide_checkpoint_type checkpoint_type;
    const char *text, *checkpoint_id;
    const struct tide_agent_event *agent;
    const struct tide_err *why; /* of a notice: trouble of the store, with what helps; else NULL */
};
/* Called on any thread, never twice at the same time. */
typedef void tide_graph_event_fn(void *arg, const struct tide_graph_event *event);

/* Zero and NULL mean the default. */
struct tide_graph_options {
    size_t size;
    const struct tide_agent_options *agent; /* how event_loop nodes work: provider, key, tools, prices, … */
    const char *memory;          /* JSON object: keys that are set before anything runs; on resume: overrides */
    const char *checkpoints;     /* JSON object: over the graph's `checkpoints` [on resume: over those before] */
    const char *working_dir;     /* where programs run and tools work [of the session, else here] */
    int threads;                 /* nodes at once [the graph's `parallel`] */
    int on_store_error_continue; /* as TIDE_RUN_CONTINUE */
    /* of a resume */
    const char *token, *input, *by; /* as in struct tide_run_options */
    const char *checkpoint; /* go back to this one first; of a completed session: a fork, whose id is in ret_session */
    const char *const *renames; /* old, new, old, new, …, NULL: nodes that have another name in the graph given */
    const char *const *retry, *const *happened; /* nodes, as in struct tide_run_options; happened: also NODE=JSON */
    unsigned rollback;                          /* enum tide_rollback_flags */
    int fallback;                               /* an unusable checkpoint: take the newest that is usable, and say so */
    tide_graph_event_fn *event;
    void *arg;
    const char *message; /* of a resume: as in struct tide_run_options */
    const char *entry;   /* of a run: a name of the graph's `entry_points`: where it begins [its `entry`] */
    const char *goal;    /* {goal} in prompts and questions [the graph's `goal`; on resume: as before] */
};

struct tide_graph_result {
    struct tide_text memory;       /* JSON object: what the graph's memory holds at the end; tide_text_done() it */
    char token[TIDE_TOKEN_SIZE];   /* TIDE_WAITING: of the wait, shown only here */
    char session_id[TIDE_ID_SIZE]; /* the one that ran: another than the one given when it was forked */
};

/*
 * Runs a graph in a session that was opened for appending, to its end. TIDE_WAITING: it waits for a person, on disk.
 * TIDE_CANCELLED: stopped. TIDE_UNSETTLED: a node that must happen once was interrupted. TIDE_FAILED: err names the node; all of
 * them can be resumed. `ret` (may be NULL) is filled in every case.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_run(tide_session *session, tide_graph *graph,
                                                       const struct tide_graph_options *opt,
                                                       struct tide_graph_result *ret, struct tide_err *err);

/* The graph that the session ran last, as it is stored. TIDE_NOT_FOUND: it never ran one. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_load(tide_session *session, tide_graph **ret_graph,
                                                        struct tide_err *err);

/*
 * Continues where it was interrupted, failed, stopped or waits: what is complete is not run again. `graph`: tide_graph_load(), or
 * another version of it. Everything that can be refused is, with every reason, before anything is written.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_resume(tide_session *session, tide_graph *graph,
                                                          const struct tide_graph_options *opt,
                                                          struct tide_graph_result *ret, struct tide_err *err);

/* What tide_graph_resume() would do, JSON: from where, which nodes, what is missing, what would be refused and why. Writes nothing. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_graph_make_plan(tide_session *session, tide_graph *graph,
                                                             const struct tide_graph_options *opt,
                                                             struct tide_text *ret_json, struct tide_err *err);

/* Parks it, soon and in order: running nodes are ended. May be called from a signal handler or another thread. */
TIDE_API void tide_graph_stop(tide_graph *graph);     /* a person wants it: it is not resumed automatically */
TIDE_API void tide_graph_shutdown(tide_graph *graph); /* the process must end: it may be resumed automatically */

/* ---- Verify, export, import -------------------------------------------------------------------------------- */

/* Reads every event of a session and checks the chain, up to the head; of a fork also what it shares with its parents. Counts its own. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_verify(tide_session *session, tide_progress_fn *progress,
                                                            void *arg, uint64_t *ret_events, struct tide_err *err);

/* Takes a piece of the export; non-zero stops with TIDE_IO. */
typedef int tide_write_fn(void *arg, const char *bytes, size_t len);

/* Writes a session as JSON lines: a head line, then one line per event. */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_export(tide_session *session, tide_write_fn *write,
                                                            tide_progress_fn *progress, void *arg,
                                                            struct tide_err *err);

/* Gives the next bytes (0: the end, negative: error). */
typedef long tide_source_fn(void *arg, char *ret_bytes, size_t max);

/*
 * Reads an export and stores it as a session with the same id, seqs, times and digests, checked line by line. All or
 * nothing: an import that fails or is killed leaves no session. TIDE_EXISTS when the id is taken.
 */
TIDE_API TIDE_MUST_CHECK enum tide_code tide_session_import(tide_store *store, tide_source_fn *source,
                                                            tide_progress_fn *progress, void *arg,
                                                            char ret_id[TIDE_ID_SIZE], struct tide_err *err);

#ifdef __cplusplus
}
#endif
#endif
