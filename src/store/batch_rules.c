/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which a batch is taken or refused are those of store.h, not of a backend: both ask here. A refusal is decided
 * before anything is written, and fails what its owner has queued behind it.
 */
#include "store/batch_rules.h"

#include "base/invariant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void batch_refuse_as(struct batch *b, const struct tide_err *err)
{
    INVARIANT(err->code && !b->code && !b->finished); /* refused once, before anything of it is written */
    b->err = *err;
    b->code = tide_about_session(&b->err, b->session);
    if (b->code == TIDE_NOT_FOUND)
        tide_hint(&b->err, TIDE_ACTION_LIST_SESSIONS, "");
    if (b->owner && !b->owner->failed.code)
        b->owner->failed = b->err;
}

void batch_refuse(struct batch *b, enum tide_code code, const char *fmt, ...)
{
    struct tide_err err;
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tide_fail(&err, code, "%s", text);
    batch_refuse_as(b, &err);
}

bool batch_is_behind(struct batch *b)
{
    if (!b->owner || !b->owner->failed.code)
        return false;
    b->err = b->owner->failed;
    b->code = b->err.code;
    return true;
}

bool batch_check_free(struct batch *b, const struct holding *h, struct orphans *o)
{
    if (h->ours && !orphan_is(o, b->session, h->epoch))
        batch_refuse(b, TIDE_HELD, "session '%s' is open for appending in this process already", b->session);
    return h->held && !h->ours;
}

bool batch_check_lease(struct batch *b, const struct holding *h, struct orphans *o)
{
    if (b->owner)
        b->epoch = b->owner->epoch;
    if (b->flags & BATCH_INPUT)
        return false;
    if (!(b->flags & BATCH_ACQUIRE)) {
        if (!h->ours || h->epoch != b->epoch)
            batch_refuse(b, TIDE_FENCED,
                         "session '%s': the lease of epoch %" PRId64 " was taken over (epoch %" PRId64 " now)",
                         b->session, b->epoch, h->epoch);
        return false;
    }
    return !(b->flags & BATCH_FORCE) && batch_check_free(b, h, o);
}

void batch_refuse_held(struct batch *b, const char *who)
{
    batch_refuse(b, TIDE_HELD, "session '%s' is held by %s: wait for it to end, or stop it", b->session, who);
}

void batch_check_seq(struct batch *b, int64_t last_seq)
{
    if (!b->code && b->expect_seq != STORE_ANY_SEQ && b->expect_seq != last_seq)
        batch_refuse(b, TIDE_CONFLICT,
                     "session '%s' is at seq %" PRId64 ", not at %" PRId64 ": read the new events and decide again",
                     b->session, last_seq, b->expect_seq);
}

void batch_fail(struct batch *b, const struct tide_err *err, struct orphans *o, const struct store *store)
{
    bool asked = b->owner && b->flags & BATCH_ACQUIRE; /* its owner looks for it in the log, now */
    int64_t from_ms = asked ? env_now_ms(store->env) + store->lease_ms / 3 : 0;
    int64_t epoch = b->epoch || !b->owner ? b->epoch : b->owner->epoch;

    b->code = err->code;
    b->err = *err;
    if (b->flags & (BATCH_INPUT | BATCH_DELETE))
        return;
    if (b->flags & BATCH_ACQUIRE ? err->code == TIDE_UNKNOWN : b->flags & BATCH_RELEASE && !b->owner)
        orphan_note(o, b->session, epoch, from_ms);
    if (!b->owner)
        return;
    if (b->flags & BATCH_ACQUIRE)
        b->owner->epoch = 0; /* not taken after all */
    else if (b->flags & BATCH_RELEASE && b->epoch)
        b->owner->epoch = b->epoch; /* not given back after all */
}

enum tide_code refuse_damaged(const struct head *h, int64_t seq, struct tide_err *err)
{
    bool first = seq <= h->first_seq;

    tide_fail_session(err, TIDE_CORRUPT, h->id, ": event %" PRId64 "%s is damaged", seq, first ? ", its first," : "");
    tide_about_position(err, TIDE_SUBJECT_EVENT, seq);
    return first ? TIDE_CORRUPT : tide_hint_with(err, TIDE_ACTION_SHOW_LOG, h->id, "\"to\":%" PRId64, seq - 1);
}

enum tide_code fail_no_session(struct str id, const char *where, bool hidden, struct tide_err *err)
{
    char name[TIDE_ID_SIZE];

    snprintf(name, sizeof name, "%.*s", STR_ARG(id));
    tide_fail(err, TIDE_NOT_FOUND, "no session '%s' in '%s'%s", name, where,
              hidden ? ": its import was not finished" : "");
    tide_about_session(err, name);
    return tide_hint(err, TIDE_ACTION_LIST_SESSIONS, "");
}

enum tide_code fail_no_store(const char *path, struct tide_err *err)
{
    tide_fail(err, TIDE_NOT_FOUND, "no store at '%s'", path);
    tide_about(err, TIDE_SUBJECT_FILE, path);
    return tide_hint(err, TIDE_ACTION_INIT_STORE, "");
}

void batch_refuse_record(struct batch *b, const char *session)
{
    batch_refuse(b, TIDE_CORRUPT, "the record of session '%s' is damaged", session);
    tide_hint(&b->err, TIDE_ACTION_CHECK_STORE, session);
    if (b->owner && b->owner->failed.code == b->code)
        b->owner->failed = b->err;
}

enum tide_code fail_log_gone(const char *session, struct tide_err *err)
{
    tide_fail(err, TIDE_CORRUPT, "the log of session '%s' is gone: restore sessions/%s.messages.jsonl", session,
              session);
    return tide_hint(err, TIDE_ACTION_DELETE, session);
}

enum tide_code hint_accept_loss(struct tide_err *err)
{
    return tide_hint_with(err, TIDE_ACTION_CHECK_STORE, "", "\"accept_loss\":true");
}
