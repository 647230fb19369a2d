/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new token for a wait. The old one is revoked in the same append; where its run has ended, a new run that continues it waits
 * at the same place.
 */
#include "session/run.h"
#include "session/settle.h"
#include "session/status.h"
#include "session/token.h"
#include "session/trust.h"

static enum tide_code refuse_unasked(const struct tide_session *s, const char *why, struct tide_err *err)
{
    tide_fail_session(err, TIDE_WRONG_STATE, s->head.id, "does not wait for anyone: %s", why);
    return tide_hint(err, TIDE_ACTION_WHY, s->head.id);
}

static enum tide_code rotate_once(struct tide_session *s, int64_t deadline_ms, int64_t expires_ms,
                                  const struct token *token, struct tide_err *err)
{
    const struct run *r;
    struct draft d = DRAFT_INIT;
    char run_id[TIDE_ID_SIZE];
    struct status st;
    int64_t now = env_now_ms(s->store->env);
    enum tide_code code = session_sync(s, err);
    enum tide_on_deadline past;
    bool open;

    code = code ? code : trust_check(s->store, &s->head, err);
    code = code ? code : session_refuse_held(s, err);
    if (code)
        return code;
    r = &s->state->ledger.run;
    open = r->end == RUN_OPEN;
    status_derive(&st, s->state, false, now);
    past = settle_deadline(r, now);
    if (r->due_ms || !r->waiting || (!open && r->end != RUN_INTERRUPTED) || past == TIDE_ON_DEADLINE_DEFAULT ||
        past == TIDE_ON_DEADLINE_FAIL)
        return refuse_unasked(s, st.why, err);
    if (!deadline_ms && r->deadline_ms > now) /* the wait's own stands while it lasts */
        deadline_ms = r->deadline_ms;
    snprintf(run_id, sizeof run_id, "%s", r->run_id ? r->run_id : "");
    token_moved(&d, "token.revoked", r, "rotated", NULL);
    if (!open) { /* ended: the wait is opened again, by a run that continues it */
        session_make_id(s->store, "run", run_id);
        code = run_draft_started(&d, s, run_id, r, &(struct tide_run_options){.size = sizeof(struct tide_run_options)},
                                 err);
    }
    token_minted(&d, token, run_id, r->wait_kind, expires_ms ? expires_ms : deadline_ms);
    draft_open(&d, "run.waiting");
    draft_text(&d, "run_id", run_id);
    draft_text(&d, "wait_name", r->wait_name);
    draft_text(&d, "wait_kind", r->wait_kind);
    draft_text(&d, "wait_key", r->wait_key);
    json_out_kint(&d.out, STR("since_seq"), r->since_seq);
    draft_text(&d, "resume_token_id", token->id);
    draft_time(&d, "deadline_at", deadline_ms);
    draft_text(&d, "question", r->question);
    if (deadline_ms)
        wait_draft_deadline(&d, r->on_deadline, r->default_answer);
    draft_close(&d);
    code = code ? code : session_append(s, TIDE_APPEND_RELEASE, d.events, d.n, NULL, err);
    draft_done(&d);
    return code;
}

enum tide_code tide_token_rotate(tide_session *s, int64_t deadline_ms, int64_t expires_ms,
                                 char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err)
{
    int64_t now = env_now_ms(s->store->env);
    struct token token;
    enum tide_code code;

    ERR_LOCAL(err);
    if ((deadline_ms && deadline_ms <= now) || (expires_ms && expires_ms <= now))
        return tide_fail(err, TIDE_INVALID, "the new deadline has passed: give one in the future");
    token_make(s->store, &token);
    do
        code = rotate_once(s, deadline_ms, expires_ms, &token, err);
    while (code == TIDE_CONFLICT);
    if (!code)
        memcpy(ret_token, token.text, sizeof token.text);
    token_forget(&token);
    return code;
}
