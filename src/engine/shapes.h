/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes in which sessions and what belongs to them are shown to programs: the same in every command and every other
 * face. Each names the struct that it is written from with shape_put().
 */
#ifndef ENGINE_SHAPES_H
#define ENGINE_SHAPES_H

#include "base/shape.h"
#include "engine/housekeeping.h"
#include "tidemark.h"

/* As tide_session_kind_name() has them. */
#define SHAPE_KINDS "log program chat graph task"

/* How a face says what can be done, as a command; in the arena, NULL when it cannot. */
typedef const char *next_command_fn(struct arena *a, const struct tide_next *next);

struct rollback_preview;

struct next_shown {
    struct tide_next next;
    const char *command;
};

/* A command that failed. */
struct error_shown {
    struct tide_err err;
    next_command_fn *command;
};

struct session_row {
    struct tide_session_info info;
    next_command_fn *command; /* NULL: actions alone */
};

/* A notification of a change of a run. */
struct notification_shown {
    const char *id, *transition, *session_id, *run_id, *reason, *error, *wait_kind, *question;
    int64_t seq, at_ms, attempt;
    struct session_row session;
};

struct session_detail {
    struct session_row row;
    struct str working_dir, provider, metadata; /* JSON; empty: none */
    bool checkpoints_enabled;
    int64_t total_checkpoints;
};

struct session_why {
    struct session_row row;
    int64_t since_ms;
};

struct sessions_listed {
    struct shape_stream sessions;
};

struct graphs_listed {
    struct shape_stream graphs;
};

struct tasks_listed {
    struct shape_stream tasks;
};

struct ids_listed {
    struct shape_stream ids;
};

struct transcript_shown {
    const char *session_id, *title;
    struct shape_stream entries;
    int64_t entries_before, entries_after; /* of a page: as of struct transcript_page */
};

struct checkpoints_listed {
    const char *session_id;
    struct shape_stream checkpoints;
    const char *latest_checkpoint_id;
    int64_t total;
};

struct wait_shown {
    const char *name, *kind, *question; /* "": none */
    int64_t deadline_ms, due_ms;
};

/* A program that waits. */
struct parked_report {
    const char *session_id, *run_id, *status;
    struct wait_shown wait;
    const char *token; /* NULL: not shown */
};

/* How a chat ended that was not at a terminal. */
struct chat_report {
    const char *type; /* "result" at the end of a stream; else NULL */
    const char *session_id, *status, *durability;
    struct str answer; /* without a pointer: none */
    const char *question, *message, *resume_token;
    int64_t turns;
    bool has_usage;
    struct tide_usage usage;
};

/* How a graph ended. */
struct graph_report {
    const char *type; /* as above */
    const char *session_id, *run_id, *status, *durability;
    bool has_wait, has_failed_node, has_usage;
    struct wait_shown wait;
    const char *token, *message, *failed_node;
    struct str memory; /* JSON */
    int64_t nodes, retries, edges_not_judged, checkpoints, ms;
    const char *const *failed_nodes;
    struct tide_usage usage;
};

/* What a command did; each shape of shape_results.c has a few of these. */
struct command_result {
    const char *session_id, *parent_id, *checkpoint_id, *queue_id, *run_id, *token, *word;
    int64_t seq, to_seq, n, before;
    bool yes;
    const struct rollback_preview *undone; /* NULL: it was done, and not only looked at */
};

/* A token for the API of the server. */
struct access_shown {
    const char *name;
    const char *const *scopes; /* words, ended by NULL */
    int64_t created_ms, expires_ms;
    bool expired, signed_in;
    const char *token; /* NULL: not shown */
};

/* What the caller that asks is to the server. */
struct me_shown {
    const char *name;
    const char *const *scopes;
    int64_t expires_ms;
    bool is_local, revocable;
    const char *version;
    struct {
        const char *url, *kind;
    } store;
};

/* A code to sign in with, once. */
struct signin_code_shown {
    const char *url;  /* NULL: there is none that a browser could open */
    const char *code; /* both NULL: not shown */
    int64_t expires_ms;
};

struct accesses_listed {
    struct shape_stream tokens;
};

struct trust_report {
    bool trusted_now;
    struct str would_run; /* JSON */
};

enum torture_fault_kind {
    FAULT_COMPLETE_AGAIN,
    FAULT_ONCE_AGAIN,
    FAULT_DIFFERS,
    FAULT_NOT_ENDED,
    FAULT_UNJUDGED, /* no fault: it went another way after a person's word */
    FAULT_KINDS
};

struct torture_fault {
    const char *session_id, *killed;
    const char *node, *key, *why; /* one of them */
    const char *want, *got;       /* of a key, JSON; of a node how often it was complete, NULL: not counted */
};

struct torture_unsteady {
    const char *what, *why;
};

/* A graph that was killed everywhere. */
struct torture_report {
    bool right;
    const char *file, *store_kind, *dir;
    const char *store; /* that is kept; NULL: it is not */
    int64_t ms, uninterrupted_us, nodes, appends;
    int64_t found, tried, reached, before_append, after_append, inside_node; /* places */
    int64_t kills, resumes, seed, ran_again, happened, retried, left;
    struct torture_unsteady *unsteady; /* what differs by itself */
    size_t n_unsteady;
    struct {
        struct torture_fault *at;
        size_t n, cap;
    } faults[FAULT_KINDS];
};

struct deletion_report {
    bool dry_run;
    size_t deleted;
    const struct housekeeping_found *found;
    size_t n;
};

struct recovery_line {
    enum { RECOVERY_FOUND, RECOVERY_JOB, RECOVERY_SUMMARY } type;
    struct tide_recovered found;
    bool goes_on, dry_run;
    const char *action, *session_id, *how; /* of a job */
    int64_t pid;
    int exit_status; /* -1: it runs */
    struct tide_recovery recovery;
    int64_t resumed, failed, expired;
};

/* All that recovery found at once, and the summary. */
struct recovery_report {
    struct shape_stream found;
    struct recovery_line summary;
};

struct notice_shown {
    const char *text;
};

/* Each with the struct that it is written from. */
extern const struct shape shape_next;            /* struct next_shown; has no name */
extern const struct shape shape_error;           /* struct error_shown */
extern const struct shape shape_notice;          /* struct notice_shown */
extern const struct shape shape_session;         /* struct session_row */
extern const struct shape shape_session_detail;  /* struct session_detail */
extern const struct shape shape_why;             /* struct session_why */
extern const struct shape shape_session_status;  /* struct session_row; what task.session.status answers */
extern const struct shape shape_sessions;        /* struct sessions_listed */
extern const struct shape shape_ids;             /* struct ids_listed */
extern const struct shape shape_usage;           /* struct tide_usage */
extern const struct shape shape_checkpoint;      /* struct tide_checkpoint */
extern const struct shape shape_checkpoints;     /* struct checkpoints_listed */
extern const struct shape shape_inspection;      /* struct inspection */
extern const struct shape shape_timeline;        /* struct timeline */
extern const struct shape shape_deletion;        /* struct deletion_report */
extern const struct shape shape_transcript;      /* struct transcript_shown */
extern const struct shape shape_event;           /* struct streamed_event */
extern const struct shape shape_chat;            /* struct chat_report */
extern const struct shape shape_run;             /* struct graph_report */
extern const struct shape shape_parked;          /* struct parked_report */
extern const struct shape shape_torture;         /* struct torture_report */
extern const struct shape shape_recovery;        /* struct recovery_line */
extern const struct shape shape_recovery_report; /* struct recovery_report */
extern const struct shape shape_notification;    /* struct notification_shown */
extern const struct shape shape_notified;        /* struct notify_outcome of notify.h */
extern const struct shape shape_verification;    /* struct verification */
extern const struct shape shape_settings;        /* struct settings */
extern const struct shape shape_store_copy;      /* struct copy_report */
extern const struct shape shape_graph_diff;      /* struct graph_diff */
extern const struct shape shape_access;          /* struct access_shown */
extern const struct shape shape_accesses;        /* struct accesses_listed */
extern const struct shape shape_me;              /* struct me_shown */
extern const struct shape shape_signin_code;     /* struct signin_code_shown */
extern const struct shape shape_trust;           /* struct trust_report */
extern const struct shape shape_store_check, shape_doctor, shape_graph_check,
    shape_settings_check;                                         /* struct check_report */
extern const struct shape shape_stored_graph, shape_graph_stored; /* struct stored_graph */
extern const struct shape shape_stored_graphs;                    /* struct graphs_listed */
extern const struct shape shape_task;                             /* struct task_row */
extern const struct shape shape_tasks;                            /* struct tasks_listed */
extern const struct shape shape_runs;                             /* struct run_list */
extern const struct shape shape_run_row;                          /* struct run_row */
extern const struct shape shape_created, shape_resolved, shape_started, shape_forked, shape_rolled_back, shape_deleted,
    shape_saved, shape_marked, shape_pruned, shape_appended, shape_queued, shape_queued_message, shape_cancelled,
    shape_token, shape_resumed, shape_accepted, shape_access_revoked, shape_version, shape_store, shape_compacted,
    shape_store_trusted;                                                              /* struct command_result */
extern const struct shape shape_log_event, shape_state, shape_store_info, shape_plan; /* texts of the library */

/* The error that shape_error wrote; TIDE_OK: it is none. */
enum tide_code error_from_json(struct str json, struct tide_err *err) MUST_CHECK;

/* All that have a name, ended by NULL. */
extern const struct shape *const shapes[];
const struct shape *shape_find(const char *name); /* NULL: there is none */

#endif
