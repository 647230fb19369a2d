/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat --from: back to an earlier point, to do a turn again. The prompt of a turn that was cut is never rolled back: it was
 * accepted, and is answered.
 */
#include <stdio.h>

#include "cli/chat/chat.h"

static int take_seq(void *arg, const struct tide_checkpoint *checkpoint)
{
    *(int64_t *)arg = checkpoint->seq;
    return 1;
}

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

/* The latest checkpoint, or the prompt behind it. TIDE_NOT_FOUND: there is none. */
static enum tide_code latest_turn(struct chat *c, int64_t *ret_seq, struct tide_err *err)
{
    struct prompt_search f = {0};
    enum tide_code code = tide_checkpoint_latest(c->session, take_seq, &f.after, err);

    code = code ? code : tide_messages(c->session, 0, find_prompt, &f, err);
    if (!code)
        *ret_seq = f.seq ? f.seq : f.after;
    return code;
}

/* A run whose process is gone is still open: it is ended first, or it would look as if it were ours. */
static enum tide_code write_down(struct chat *c, struct tide_err *err)
{
    struct tide_err ignored; /* what is wrong with another session is not this one's matter */

    (void)!tide_recover(c->cli->store, 0, NULL, NULL, NULL, &ignored);
    return tide_session_refresh(c->session, err);
}

static int take_question(void *arg, const struct tide_session_info *info)
{
    char **question = arg;

    if (info->status && strcmp(info->status, "waiting") == 0)
        *question = mem_dup(str_from(info->question ? info->question : "what it waited for"));
    return 0;
}

/* The session is closed meanwhile: as long as we hold it, nobody else ends its run, and we are who would be asked to. */
static enum tide_code withdraw(struct chat *c, const char *reason, struct tide_err *err)
{
    enum tide_cancelled how;
    char id[TIDE_ID_SIZE];

    snprintf(id, sizeof(id), "%s", tide_session_id(c->session));
    chat_leave(c);
    if (tide_session_cancel(c->cli->store, id, "local", reason, 0, &how, err) ||
        tide_session_open(c->cli->store, id, TIDE_SESSION_APPEND, &c->session, err))
        return err->code;
    return chat_agent(c, err);
}

/* A question that was rolled back is not to be answered: it is withdrawn, or the run would wait for it for ever. */
enum tide_code chat_roll_back_to(struct chat *c, int64_t seq, unsigned flags, const char *reason, char **ret_withdrawn,
                                 struct tide_err *err)
{
    AUTO(mem_freep) char *question = NULL;

    if (tide_rollback(c->session, seq, flags, reason, err) ||
        tide_session_show(c->session, take_question, &question, err) || (question && withdraw(c, reason, err)))
        return err->code;
    *ret_withdrawn = TAKE(question);
    return TIDE_OK;
}

static bool is_seq(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n > 0 && n < 19 && !text[n];
}

/* --from checkpoint: the latest; seq:N; or a checkpoint's id. Nothing is deleted. */
enum tide_code chat_roll_back(struct chat *c, const char *from, struct tide_err *err)
{
    unsigned flags = c->want->reuse_effects  ? TIDE_ROLLBACK_REUSE_EFFECTS
                     : c->want->redo_effects ? TIDE_ROLLBACK_REDO_EFFECTS
                                             : 0;
    AUTO(mem_freep) char *withdrawn = NULL;
    int64_t seq = 0;
    enum tide_code code;

    if (write_down(c, err))
        return err->code;
    if (strcmp(from, "checkpoint") == 0) {
        code = latest_turn(c, &seq, err);
        if (code == TIDE_NOT_FOUND) {
            chat_tell(c, "session %s has no checkpoint yet: everything is kept", tide_session_id(c->session));
            return TIDE_OK;
        }
    } else if (strncmp(from, "seq:", 4) == 0 && !is_seq(from + 4)) {
        code = tide_fail(err, TIDE_INVALID, "behind seq: stands the number of an event");
    } else {
        code = cli_position(c->session, strncmp(from, "seq:", 4) == 0 ? from + 4 : from, &seq, err);
    }
    if (code)
        return tide_wrap(err, "--from %s", from);
    if (seq == tide_session_last_seq(c->session))
        return TIDE_OK;
    code = chat_roll_back_to(c, seq, flags, "chat --from", &withdrawn, err);
    if (!code && withdrawn)
        chat_tell(c, CHAT_WITHDRAWN, withdrawn);
    return code;
}
