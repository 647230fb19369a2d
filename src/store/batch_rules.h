/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a batch may be taken, and its error if not: the rules that every backend keeps, in one place. */
#ifndef STORE_BATCH_RULES_H
#define STORE_BATCH_RULES_H

#include "store/group.h"
#include "store/orphan_leases.h"

/* The holder of the session, as far as the backend knows. */
struct holding {
    bool held;     /* by anyone */
    bool ours;     /* by this process */
    int64_t epoch; /* of that lease; else of the latest */
};

void batch_refuse_as(struct batch *b, const struct tide_err *err); /* with what it is about and what helps */
void batch_refuse(struct batch *b, enum tide_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Behind one of its owner's that failed: it fails with it. */
bool batch_is_behind(struct batch *b);

/*
 * Whether nobody has the session; and the rules of the lease, with that among them. True: another process has it, and it is to
 * be found out whether that one lives.
 */
bool batch_check_free(struct batch *b, const struct holding *h, struct orphans *o) MUST_CHECK;
bool batch_check_lease(struct batch *b, const struct holding *h, struct orphans *o) MUST_CHECK;
void batch_refuse_held(struct batch *b, const char *who); /* that one lives */
void batch_check_seq(struct batch *b, int64_t last_seq);

/* It was accepted, and came to nothing. A lease that may be ours without anyone knowing is remembered as such. */
void batch_fail(struct batch *b, const struct tide_err *err, struct orphans *o, const struct store *store);

/* TIDE_CORRUPT, with what can still be read. */
enum tide_code refuse_damaged(const struct head *h, int64_t seq, struct tide_err *err);

void batch_refuse_record(struct batch *b, const char *session); /* the store's row of it is damaged */

enum tide_code fail_no_session(struct str id, const char *where, bool hidden, struct tide_err *err);
enum tide_code fail_no_store(const char *path, struct tide_err *err);

enum tide_code fail_log_gone(const char *session, struct tide_err *err);
enum tide_code hint_accept_loss(struct tide_err *err);

#endif
