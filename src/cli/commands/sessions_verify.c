/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions verify: reads every event and checks the chain. The report is on standard output, the one line that says
 * how it ended on standard error.
 */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "terminal/progress.h"
#include "engine/shapes.h"
#include "engine/verification.h"

#define PAGE 1000 /* that a server gives at once */

static int on_progress(void *progress, uint64_t done, uint64_t total)
{
    return progress_step(progress, done, total);
}

static void print_session(struct out *out, const struct verified_session *s)
{
    out_colored(out, s->ok ? COLOR_GREEN : COLOR_RED, s->ok ? "ok" : "damaged");
    outf(out, "%s  %s  ", s->ok ? "     " : "", s->session_id);
    if (s->ok)
        outf(out, "%" PRId64 " event%s%s", s->events, s->events == 1 ? "" : "s",
             s->unverified ? ", unverified: another program's lines, without digests" : "");
    out_value(out, s->error);
    outf(out, "\n");
}

static enum tide_code check_operands(const struct args *args, struct tide_err *err)
{
    if (args_on(args, "all") == (args->n_operands > 0))
        return args_refuse(err, "id", "sessions verify: give the ID of each session, or --all for every session");
    return TIDE_OK;
}

static enum tide_code report_result(struct cli *cli, const struct verification *v, struct tide_err *err)
{
    if (cli->out.json)
        out_shape(&cli->out, &shape_verification, v);
    else
        for (size_t i = 0; i < v->n; i++)
            print_session(&cli->out, &v->sessions[i]);
    if (v->ok)
        return TIDE_OK;
    if (out_flush(&cli->out, err)) /* the report stays although the command fails: it says which are whole */
        return err->code;
    tide_err_copy(err, &v->first);
    if (!v->bad)
        return tide_wrap(err, "verify: not all sessions can be listed");
    return tide_wrap(err, "verify: %zu of %zu session%s damaged", v->bad, v->n, v->n == 1 ? "" : "s");
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(verification_done) struct verification v = {.n = 0};
    bool all = args_on(&cli->args, "all");
    struct progress progress;
    enum tide_code code;

    if (check_operands(&cli->args, err))
        return err->code;
    progress_init(&progress, "verify", "events");
    code = verification_run(cli->store, all ? NULL : cli->args.operands, on_progress, &progress, &v, err);
    progress_done(&progress);
    return code ? code : report_result(cli, &v, err);
}

/* ---- of a server ---- */

static enum tide_code verify_one(struct cli *cli, const char *id, struct verification *all, struct tide_err *err)
{
    struct verification v = {.n = 0};

    remote_begin(cli->remote, "GET", "sessions", id, "verify");
    if (remote_read(cli->remote, REMOTE_WHENEVER, &shape_verification, &v, err))
        return err->code;
    if (v.n != 1)
        return tide_fail(err, TIDE_IO, "the server does not say how session '%.64s' is", id);
    all->sessions[all->n++] = v.sessions[0];
    all->events += v.events;
    if (v.ok)
        return TIDE_OK;
    all->ok = false;
    if (all->bad++ == 0)
        (void)!tide_fail(&all->first, TIDE_CORRUPT, "%s", v.sessions[0].error ? v.sessions[0].error : "damaged");
    return TIDE_OK;
}

/* As lists have them, newest first. */
static enum tide_code list_ids(struct cli *cli, const char ***ret, size_t *ret_n, struct tide_err *err)
{
    struct arena *a = remote_arena(cli->remote);
    const struct json *page, *list, *after = NULL;
    size_t cap = 0;

    do {
        remote_begin(cli->remote, "GET", "sessions");
        remote_param(cli->remote, "after", after ? arena_dup(a, json_text(a, after)).ptr : NULL);
        remote_param_int(cli->remote, "limit", PAGE);
        if (remote_ask(cli->remote, REMOTE_SOON, &page, err))
            return err->code;
        list = json_get(page, STR("sessions"));
        for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
            MEM_ROOM(*ret, *ret_n, cap);
            (*ret)[(*ret_n)++] = arena_dup(a, json_get_text(a, one, STR("session_id"))).ptr;
        }
        after = json_get(page, STR("next_cursor"));
    } while (after && after->type == JSON_STRING);
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    AUTO(verification_done) struct verification v = {.ok = true, .arena = ARENA_INIT};
    AUTO(mem_freep) const char **listed = NULL;
    size_t n = cli->args.n_operands;

    if (check_operands(&cli->args, err) || (!n && list_ids(cli, &listed, &n, err)))
        return err->code;
    v.sessions = mem_array(n + 1, sizeof *v.sessions);
    for (size_t i = 0; i < n; i++)
        if (verify_one(cli, listed ? listed[i] : args_operand(&cli->args, i), &v, err))
            return err->code;
    return report_result(cli, &v, err);
}

const struct command cmd_sessions_verify = {
    .group = "sessions",
    .name = "verify",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = (const struct opt[]){{.name = "all", .help = "every session of the store"}, {.name = NULL}},
    .help = "read every event of the given sessions and check for damage",
};
