/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking again what was answered with no. The content goes back to before the answer, and a run that continues the chain
 * waits at the same question, with a new token: nothing is run, and a plain answer continues from there. It can be done while
 * nothing that came after the answer may depend on it; the ledger knows (struct denied).
 *
 * Two appends. The run that is open, if any, ends with the rollback; the question is opened behind it. Who is killed between
 * them leaves a session in which the question can still be asked again.
 */
#include <inttypes.h>

#include "base/yes_no.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/token.h"
#include "session/trust.h"

/* Whether the latest wait of this name was answered, and with no; *ret_answered false: there is no answer. */
static enum tide_code read_answer(struct tide_session *s, const char *name, bool *ret_answered, bool *ret_no,
                                  struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_text answer = {NULL, 0};
    const char *chain = s->state->ledger.chain_id;
    struct chain c = {0};
    struct json *v = NULL;
    const struct recorded *m, *last = NULL;
    enum tide_code code = chain_load(s, &c, err);

    for (int n = 1; !code; n++, last = m) {
        m = map_get(&c.waits, str_from(arena_printf(&a, "%s/%s/%d", chain ? chain : "", name, n)));
        if (!m)
            break;
    }
    *ret_answered = last && last->state == RECORDED_ANSWERED;
    if (!code && *ret_answered)
        code = run_read_member(s, last->seq, "input", &answer, err);
    *ret_no = !code && *ret_answered && !json_parse(&a, (struct str){answer.ptr, answer.len}, NULL, &v, NULL, NULL) &&
              yes_no_read(&a, v) == YES_NO_NO;
    tide_text_done(&answer);
    chain_done(&c);
    return code;
}

/* It is not the latest no: why. */
static enum tide_code refuse_other(struct tide_session *s, const char *name, struct tide_err *err)
{
    const char *last = s->state->ledger.denied.name;
    bool answered = false, no = false;

    if (read_answer(s, name, &answered, &no, err))
        return err->code;
    if (!answered)
        tide_fail(err, TIDE_NOT_FOUND, "no question '%.100s' of this run has an answer", name);
    else if (!no)
        tide_fail(err, TIDE_INVALID, "question '%.100s' was not answered with no: it is not asked again", name);
    else
        tide_fail(err, TIDE_INVALID, "question '%.100s' cannot be asked again: question '%.100s' was answered after it",
                  name, last ? last : "");
    return tide_hint(err, TIDE_ACTION_SHOW_TIMELINE, s->head.id);
}

/* By its name; a question of a graph has the number of the node's visit behind it, which need not be given. */
static bool is_denied(const struct denied *d, const char *name)
{
    size_t n = strlen(name);

    return d->name && n && strncmp(d->name, name, n) == 0 &&
           (!d->name[n] || (d->name[n] == '#' && !strchr(d->name + n + 1, '#')));
}

/* Everything that can be refused, before anything is written. */
static enum tide_code check_question(struct tide_session *s, const char *name, struct tide_err *err)
{
    const struct denied *d;
    enum tide_code code = session_sync(s, err);

    code = code ? code : trust_prove(s, err);
    code = code ? code : session_refuse_held(s, err);
    code = code ? code : session_refuse_living(s, err);
    if (code)
        return code;
    d = &s->state->ledger.denied;
    if (!is_denied(d, name ? name : ""))
        return refuse_other(s, name ? name : "", err);
    if (d->then) {
        tide_fail(err, TIDE_INVALID, "question '%.100s' cannot be asked again: %s after its answer", name, d->then);
        tide_about_session(err, s->head.id);
        return tide_hint_with(err, TIDE_ACTION_FORK, s->head.id, "\"at\":%" PRId64, d->seq - 1);
    }
    return rollback_check(s, d->seq - 1, 0, NULL, err);
}

static enum tide_code go_back(struct tide_session *s, const char *name, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code = check_question(s, name, err);

    if (!code) {
        settle_for_resume(&d, s->state, "superseded", env_now_ms(s->store->env));
        draft_open(&d, "session.rolled_back");
        json_out_kint(&d.out, STR("to_seq"), s->state->ledger.denied.seq - 1);
        draft_text(&d, "reason", "ask_again");
        draft_close(&d);
        code = session_append(s, TIDE_APPEND_RELEASE, d.events, d.n, NULL, err);
    }
    draft_done(&d);
    return code;
}

static enum tide_code open_question(struct tide_session *s, const char *name, const struct token *token,
                                    struct tide_err *err)
{
    const struct tide_run_options none = {.size = sizeof none};
    const struct denied *denied;
    struct draft d = DRAFT_INIT;
    char run_id[TIDE_ID_SIZE];
    enum tide_code code = check_question(s, name, err); /* another may have been faster, or has continued */

    if (code)
        return code;
    denied = &s->state->ledger.denied;
    session_make_id(s->store, "run", run_id);
    code = run_draft_started(&d, s, run_id, &s->state->ledger.run, &none, err);
    token_minted(&d, token, run_id, tide_wait_kind_name(TIDE_WAIT_APPROVAL), 0);
    draft_open(&d, "run.waiting");
    draft_text(&d, "run_id", run_id);
    draft_text(&d, "wait_name", denied->name);
    draft_text(&d, "wait_kind", tide_wait_kind_name(TIDE_WAIT_APPROVAL));
    draft_text(&d, "wait_key", denied->key);
    draft_text(&d, "resume_token_id", token->id);
    draft_text(&d, "question", denied->question);
    draft_close(&d);
    code = code ? code : session_append(s, TIDE_APPEND_RELEASE, d.events, d.n, NULL, err);
    draft_done(&d);
    return code;
}

enum tide_code tide_session_ask_again(tide_session *s, const char *name, char ret_token[TIDE_TOKEN_SIZE],
                                      struct tide_err *err)
{
    struct token token;
    enum tide_code code;

    ERR_LOCAL(err);
    do
        code = go_back(s, name, err);
    while (code == TIDE_CONFLICT);
    token_make(s->store, &token);
    while (!code && (code = open_question(s, name, &token, err)) == TIDE_CONFLICT)
        code = TIDE_OK;
    if (!code)
        memcpy(ret_token, token.text, sizeof token.text);
    token_forget(&token);
    return code ? tide_wrap(err, "ask again") : TIDE_OK;
}
