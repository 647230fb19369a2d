/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rollback.h"

#include <inttypes.h>

#include "base/json.h"

/* The prompt of a turn that was not finished: it stays, whatever becomes of its turn. */
struct prompt_search {
    int64_t after, seq; /* behind the checkpoint; what was found */
    bool answered;
};

static int find_prompt(void *arg, const struct tide_event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct prompt_search *f = arg;
    struct json *body = NULL;

    if (ev->seq <= f->after || f->answered)
        return 0;
    f->answered = strcmp(ev->kind, "message.assistant") == 0;
    if (strcmp(ev->kind, "message.user") == 0 &&
        !json_parse(&a, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL) && !json_get(body, STR("hook")))
        f->seq = ev->seq;
    return 0;
}

enum tide_code session_position(tide_session *session, const char *text, int64_t *ret_seq, struct tide_err *err)
{
    const struct tide_checkpoint *c;
    int64_t seq = 0;

    if (!str_to_int64(str_from(text), &seq)) {
        if (tide_checkpoint_load(session, text, &c, err))
            return err->code;
        seq = c->seq;
    }
    if (seq > tide_session_last_seq(session)) {
        tide_fail(err, TIDE_NOT_FOUND, "seq %" PRId64 " of session '%s': its last event is %" PRId64, seq,
                  tide_session_id(session), tide_session_last_seq(session));
        tide_about_position(err, TIDE_SUBJECT_EVENT, seq);
        return tide_hint(err, TIDE_ACTION_SHOW_LOG, tide_session_id(session));
    }
    *ret_seq = seq;
    return TIDE_OK;
}

/* The latest checkpoint, or the prompt behind it. TIDE_NOT_FOUND: there is none. */
static enum tide_code latest_turn(tide_session *session, int64_t *ret_seq, struct tide_err *err)
{
    struct prompt_search f = {0};
    const struct tide_checkpoint *c;
    enum tide_code code = tide_checkpoint_load_latest(session, &c, err);

    f.after = code ? 0 : c->seq;
    code = code ? code : tide_session_read_messages(session, 0, find_prompt, &f, err);
    if (!code)
        *ret_seq = f.seq ? f.seq : f.after;
    return code;
}

enum tide_code rollback_point(tide_store *store, tide_session *session, const char *from, int64_t *ret_seq,
                              struct tide_err *err)
{
    struct tide_err ignored; /* what is wrong with another session is not this one's matter */
    bool is_number = strncmp(from, "seq:", 4) == 0;
    size_t digits = is_number ? strspn(from + 4, "0123456789") : 0;
    enum tide_code code;

    (void)!tide_store_recover(store, 0, NULL, NULL, NULL, &ignored);
    if (tide_session_refresh(session, err))
        return err->code;
    if (strcmp(from, "checkpoint") == 0) {
        code = latest_turn(session, ret_seq, err);
        if (code == TIDE_NOT_FOUND) {
            *ret_seq = -1;
            return TIDE_OK;
        }
    } else if (is_number && (digits == 0 || digits > 18 || from[4 + digits])) {
        tide_fail(err, TIDE_INVALID, "seq: must be followed by the number of an event");
        code = tide_about(err, TIDE_SUBJECT_ARGUMENT, "from");
    } else {
        code = session_position(session, is_number ? from + 4 : from, ret_seq, err);
    }
    return code ? tide_wrap(err, "go back to '%s'", from) : TIDE_OK;
}

enum tide_code rollback_to(tide_session *session, int64_t seq, unsigned flags, const char *reason, char **ret_question,
                           struct tide_err *err)
{
    const struct tide_session_info *info;

    *ret_question = NULL;
    if (tide_session_rollback(session, seq, flags, reason, err) || tide_session_get_info(session, &info, err))
        return err->code;
    if (info->status == TIDE_STATUS_WAITING)
        *ret_question = mem_dup(str_from(info->question ? info->question : "what it waited for"));
    return TIDE_OK;
}
