/* SPDX-License-Identifier: Apache-2.0 */
/* What a session looks like to people and programs that read the files of a store: its session file, and the index of its tokens. */
#ifndef SESSION_SESSION_FILE_H
#define SESSION_SESSION_FILE_H

#include "base/shape.h"
#include "session/state.h"
#include "store/store.h"

extern const struct shape shape_session_file, shape_tokens_file;

/* Members of a struct tide_session_info, for every shape that has them: SHAPE_MEMBERS. */
extern const struct shape shape_session_times, shape_session_run, shape_session_wait, shape_session_recovery;

/* When it was made: as its description says, of another program's session, else by its first event. */
int64_t session_created_ms(const struct state *s, const struct head *h);

/*
 * {"id", "title", "working_dir", "provider", "created_at", "updated_at", "last_seq", "run":{"run_id", "boot_id", "started_at",
 * "ended_at", "wait":{"kind", "since_seq", "resume_token_id", "deadline_at"}}, "recovery":{"last_boot_seen", "interruption"}}
 * as of s->seq, indented; null where nothing is known. Of the head only created_ms counts. `sessions show --json` has the
 * same members.
 */
void session_file_write(struct buf *out, const struct state *s, const struct head *h);

/* {"tokens":[{"token_id", "run_id", "wait_kind", "status", "expires_at", "secret_hash"}]}: the token of the latest wait, if any. A session
 * waits for one thing at a time: no other can be active. */
void session_file_tokens(struct buf *out, const struct state *s);

/* Puts both into a batch that ends with s->seq; nothing where the store keeps none. */
void session_file_attach(struct batch *b, const struct store *store, const struct state *s, const struct head *h);

/*
 * Both anew from the log, where the store keeps them: for who has written to a session without holding it. The process that holds it
 * leaves them behind when it is given back; lines of another program get none before they are ours.
 */
void session_file_renew(struct store *store, const char *id);
enum tide_code session_file_renew_all(struct store *store, struct tide_err *err) MUST_CHECK;

/* Whether an event of this kind changes what they say, beside when and where the log ends. */
bool session_file_changes(const struct event *ev);

#endif
