/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions verify: reads every event and checks the chain. All sessions asked for are looked at, also after one
 * was found damaged: the report is on standard output, the one line that says how it ended on standard error.
 */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/terminal/progress.h"
#include "session/session.h"

static const struct opt options[] = {
    {.name = "all", .help = "every session of the store"},
    {.name = NULL},
};

struct verification {
    struct cli *cli;
    struct json_out json;
    struct progress progress;
    const char **ids; /* ours */
    size_t n, cap, bad;
    uint64_t events, events_before, total; /* total: 0 when not known */
    struct tide_err first;                 /* of the first bad one */
    struct tide_err unlisted;              /* why not all could be listed */
};

static void add_id(struct verification *v, const char *id)
{
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 64;
        v->ids = mem_grow(v->ids, v->cap * sizeof(*v->ids));
    }
    v->ids[v->n++] = mem_dup(str_from(id));
}

static int on_session(void *arg, const struct tide_session_info *info)
{
    struct verification *v = arg;

    add_id(v, info->id);
    v->total += (uint64_t)(info->last_seq - info->first_seq + 1);
    return 0;
}

static int on_progress(void *arg, uint64_t done, uint64_t total)
{
    struct verification *v = arg;

    return progress_step(&v->progress, v->events_before + done, v->total ? v->total : total);
}

static void report(struct verification *v, const char *id, uint64_t events, bool unverified, const struct tide_err *bad)
{
    struct out *out = &v->cli->out;

    if (out->json) {
        json_out_begin(&v->json, '{');
        json_out_kstr(&v->json, STR("session_id"), str_from(id));
        json_out_kbool(&v->json, STR("ok"), !bad);
        if (!bad)
            json_out_kint(&v->json, STR("events"), (int64_t)events);
        if (unverified)
            json_out_kbool(&v->json, STR("unverified"), true);
        json_kopt(&v->json, "error", bad ? bad->msg : NULL);
        json_out_end(&v->json, '}');
        return;
    }
    if (bad) {
        out_colored(out, COLOR_RED, "damaged");
        outf(out, "  %s  ", id);
        out_value(out, bad->msg);
    } else {
        out_colored(out, COLOR_GREEN, "ok");
        outf(out, "       %s  %" PRIu64 " event%s%s", id, events, events == 1 ? "" : "s",
             unverified ? ", unverified: another program's lines, without digests" : "");
    }
    outf(out, "\n");
}

static bool is_damage(enum tide_code code)
{
    return code == TIDE_CORRUPT || code == TIDE_WRONG_KEY;
}

/* Other errors than damage (not found, stopped, no access) end the whole. */
static enum tide_code verify_one(struct verification *v, const char *id, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    uint64_t events = 0;
    enum tide_code code =
        cli_advise_session(tide_session_open(v->cli->store, id, TIDE_SESSION_READ, &session, err), err);

    v->events_before = v->events;
    if (!code)
        code = args_on(&v->cli->args, "all") ? session_verify_own(session, on_progress, v, &events, err)
                                             : tide_session_verify(session, on_progress, v, &events, err);
    if (code && !is_damage(code))
        return code;
    report(v, session ? tide_session_id(session) : id, events, session && session->head.unverified, code ? err : NULL);
    if (code && v->bad++ == 0)
        v->first = *err;
    v->events += events;
    return TIDE_OK;
}

static enum tide_code verify_each(struct verification *v, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    progress_init(&v->progress, "verify", "events");
    for (size_t i = 0; i < v->n && !code; i++)
        code = verify_one(v, v->ids[i], err);
    progress_done(&v->progress);
    return code;
}

/* The report stays although the command fails: it says which are whole. */
static enum tide_code conclude(struct verification *v, struct tide_err *err)
{
    struct out *out = &v->cli->out;

    if (out->json) {
        json_out_end(&v->json, ']');
        json_out_kbool(&v->json, STR("ok"), v->bad == 0 && !v->unlisted.code);
        json_out_kint(&v->json, STR("events"), (int64_t)v->events);
        json_out_end(&v->json, '}');
        out_json_end(out);
    }
    if (v->bad == 0 && !v->unlisted.code)
        return TIDE_OK;
    if (out_flush(out, err))
        return err->code;
    if (v->bad == 0) {
        tide_err_copy(err, &v->unlisted);
        return tide_wrap(err, "verify: not all sessions can be listed");
    }
    tide_err_copy(err, &v->first);
    return tide_wrap(err, "verify: %zu of %zu session%s damaged", v->bad, v->n, v->n == 1 ? "" : "s");
}

static enum tide_code gather(struct verification *v, struct tide_err *err)
{
    const struct args *args = &v->cli->args;

    if (args_on(args, "all") == (args->n_operands > 0))
        return tide_fail(err, TIDE_INVALID, "sessions verify: give ids, or --all for every session");
    if (args_on(args, "all")) {
        enum tide_code code = tide_session_list(v->cli->store, NULL, on_session, v, &v->unlisted);

        if (!code)
            v->unlisted.code = TIDE_OK; /* what is in it then says nothing */
        return is_damage(code) ? TIDE_OK : code ? tide_err_copy(err, &v->unlisted) : TIDE_OK;
    }
    for (size_t i = 0; i < args->n_operands; i++)
        add_id(v, args_operand(args, i));
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct verification v = {.cli = cli, .json = out_json(&cli->out)};
    enum tide_code code = gather(&v, err);

    if (!code && cli->out.json) {
        json_out_begin(&v.json, '{');
        json_out_key(&v.json, STR("sessions"));
        json_out_begin(&v.json, '[');
    }
    if (!code)
        code = verify_each(&v, err);
    if (!code)
        code = conclude(&v, err);
    for (size_t i = 0; i < v.n; i++)
        free((void *)(uintptr_t)v.ids[i]);
    free(v.ids);
    return code;
}

const struct command cmd_sessions_verify = {
    .group = "sessions",
    .name = "verify",
    .run = run,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = options,
    .help = "read every event of sessions and check that nothing is damaged",
};
