/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions trust, store trust: a person looks at what came from elsewhere and says that it may run. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/trust_view.h"
#include "cli/next_command.h"
#include "cli/remote.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "yes", .letter = 'y', .help = "trust without asking"},
    {.name = "show", .help = "only show what would run; trust nothing"},
    {.name = NULL},
};

static enum tide_code check_together(const struct cli *cli, struct tide_err *err)
{
    if (args_on(&cli->args, "show") && args_on(&cli->args, "yes"))
        return args_refuse(err, "show", "--show and --yes: give one of them");
    return TIDE_OK;
}

/* ---- one ---- */

typedef enum tide_code trust_fn(void *arg, struct str shown, struct tide_err *err);

/* Shows it, asks, and has it trusted by `fn`. */
static enum tide_code show_and_trust(struct cli *cli, const char *id, struct str shown, trust_fn *fn, void *arg,
                                     struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    bool trust = !args_on(&cli->args, "show");
    AUTO(buf_done) struct buf safe = BUF_INIT(SIZE_MAX / 4);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (!json_parse(&a, shown, NULL, &v, NULL, NULL) && json_get_bool(v, STR("trusted"), false))
        trust = false; /* it is already */
    if (!cli->out.json)
        trust_print(&cli->out, shown);
    if (trust)
        code = trust_ask(cli, "trust it as it is?", err);
    if (trust && !code)
        code = fn(arg, shown, err);
    if (cli->out.json && (!code || code == TIDE_UNTRUSTED)) {
        trust_escape(&safe, shown);
        out_shape(&cli->out, &shape_trust, &(struct trust_report){trust && !code, buf_view(&safe)});
    }
    if (trust && !code && !cli->out.json)
        outf(&cli->out, "trusted; `%s why %s` shows how to continue\n", own_command(&a), id);
    return code;
}

static enum tide_code trust_here(void *session, struct str shown, struct tide_err *err)
{
    return tide_session_trust(session, shown.ptr, NULL, err);
}

static enum tide_code run_one(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    if (check_together(cli, err) || cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_session_show_trust(session, &text, err))
        return err->code;
    return show_and_trust(cli, tide_session_id(session), (struct str){text.ptr, text.len}, trust_here, session, err);
}

struct of_server {
    struct remote *remote;
    const char *id;
};

static enum tide_code trust_there(void *arg, struct str shown, struct tide_err *err)
{
    const struct of_server *s = arg;
    struct trust_report r = {false};

    remote_begin(s->remote, "POST", "sessions", s->id, "trust");
    json_out_kraw(remote_body(s->remote), STR("would_run"), shown);
    return remote_read(s->remote, REMOTE_SOON, &shape_trust, &r, err);
}

static enum tide_code run_one_remote(struct cli *cli, struct tide_err *err)
{
    struct trust_report r = {false};
    struct session_why why;
    struct of_server s;

    if (check_together(cli, err) || remote_why(cli, &why, err))
        return err->code;
    s = (struct of_server){cli->remote, why.row.info.id};
    remote_begin(cli->remote, "GET", "sessions", s.id, "trust");
    if (remote_read(cli->remote, REMOTE_SOON, &shape_trust, &r, err))
        return err->code;
    return show_and_trust(cli, s.id, r.would_run, trust_there, &s, err);
}

const struct command cmd_sessions_trust = {
    .group = "sessions",
    .name = "trust",
    .run = run_one,
    .remote = run_one_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "show what a session from elsewhere would run, and trust it",
    .more = "A session that was imported, cloned, edited or written by another program runs nothing until it is "
            "trusted.\n"
            "Earlier tokens and approvals are no longer valid. Without --yes the command asks first. Exit status 11 "
            "when the\n"
            "answer is no, or when there is no terminal to ask at.",
};

/* ---- all ---- */

struct untrusted {
    char (*ids)[TIDE_ID_SIZE];
    size_t n, cap;
};

static int take_untrusted(void *arg, const struct tide_session_info *info)
{
    struct untrusted *u = arg;

    if (info->trusted || info->status == TIDE_STATUS_DAMAGED)
        return 0;
    MEM_ROOM(u->ids, u->n, u->cap);
    snprintf(u->ids[u->n++], TIDE_ID_SIZE, "%s", info->id);
    return 0;
}

/* Shows or trusts one of them. What was shown is kept: whatever changes before the answer is not trusted with it. */
static enum tide_code trust_each(struct cli *cli, const char *id, struct tide_text *text, bool trust,
                                 struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    enum tide_code code = tide_session_open(cli->store, id, TIDE_SESSION_APPEND, &session, err);

    if (!code && trust)
        code = tide_session_trust(session, text->ptr, NULL, err);
    else if (!code)
        code = tide_session_show_trust(session, text, err);
    if (!code && !trust && !cli->out.json)
        trust_print(&cli->out, (struct str){text->ptr, text->len});
    return code;
}

static enum tide_code run_all(struct cli *cli, struct tide_err *err)
{
    struct untrusted u = {NULL, 0, 0};
    struct tide_text *texts = NULL;
    bool show = args_on(&cli->args, "show");
    char question[80];
    enum tide_code code = check_together(cli, err);
    size_t trusted = 0;

    code = code ? code : tide_session_list(cli->store, NULL, take_untrusted, &u, err);
    texts = mem_array(u.n + 1, sizeof(*texts));
    for (size_t i = 0; i < u.n && !code; i++)
        code = trust_each(cli, u.ids[i], &texts[i], false, err);
    snprintf(question, sizeof(question), "trust %s %zu session%s as they are?", u.n == 1 ? "this" : "these", u.n,
             u.n == 1 ? "" : "s");
    if (!code && u.n && !show)
        code = trust_ask(cli, question, err);
    for (size_t i = 0; i < u.n && !code && !show; i++, trusted++)
        code = trust_each(cli, u.ids[i], &texts[i], true, err);
    if (!code && !cli->out.json) {
        outf(&cli->out, show ? "%zu not trusted\n" : "%zu trusted\n", show ? u.n : trusted);
    } else if (!code) {
        out_shape(&cli->out, &shape_store_trusted,
                  &(struct command_result){.n = (int64_t)(u.n - trusted), .before = (int64_t)trusted});
    }
    for (size_t i = 0; i < u.n; i++)
        tide_text_done(&texts[i]);
    free(texts);
    free(u.ids);
    return code;
}

const struct command cmd_store_trust = {
    .group = "store",
    .name = "trust",
    .run = run_all,
    .need = NEED_WRITE,
    .options = options,
    .help = "trust all sessions of a store as they are: a copy of your own store, or one from before a key was lost",
    .more = "First shows what each session would run, as `tidemark sessions trust ID` does. Exit status 11 when the "
            "answer is\n"
            "no, or when there is no terminal to ask at and --yes is not given.",
};
