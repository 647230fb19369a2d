/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark access: the tokens of the server's API, in a file of the state directory. A running server sees a change at the next
 * request. A token is printed once, where it is made.
 */
#include "base/timefmt.h"
#include "cli/cli.h"
#include "server/access_view.h"

static void print_token(struct cli *cli, const struct caller *token, const char *secret)
{
    struct access_view view;

    access_view_of(&view, token, secret);
    if (cli->out.json)
        out_shape(&cli->out, &shape_access, &view.shown);
    else
        outf(&cli->out, "%s\n", secret);
}

/* ---- create ---- */

static const struct opt create_options[] = {
    {.name = "scopes",
     .type = VALUE_TEXT,
     .value = "SCOPE,…",
     .words = SCOPE_WORDS,
     .help =
         "what the token may do: read, answer (waits and approvals), write (send, resume, cancel, fork), run (start "
         "what is configured) or admin (everything)",
     .required = true},
    {.name = "expires",
     .type = VALUE_WHEN,
     .value = "D",
     .help = "the time at which it ends: 3h, 30d, or a time such as 2026-02-21T10:00:00Z (default: never)"},
    {.name = NULL},
};

static enum tide_code run_create(struct cli *cli, struct tide_err *err)
{
    unsigned scopes = scopes_from(str_from(args_text(&cli->args, "scopes")));
    char secret[ACCESS_SECRET_SIZE];
    struct caller made;

    if (!scopes)
        return args_refuse(err, "scopes", "--scopes takes some of: " SCOPE_WORDS);
    if (access_create(args_operand(&cli->args, 0), scopes, args_int(&cli->args, "expires", 0), secret, &made, err))
        return err->code;
    print_token(cli, &made, secret);
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

const struct command cmd_access_create = {
    .group = "access",
    .name = "create",
    .run = run_create,
    .operands = {{"NAME", VALUE_TEXT, 0}},
    .options = create_options,
    .help = "create a token for the API of the server, and print it; it is not shown again",
};

/* ---- list ---- */

static void print_row(struct out *out, const struct caller *token)
{
    AUTO(buf_done) struct buf scopes = BUF_INIT(256);
    char when[TIME_PEOPLE_SIZE];

    scopes_write(token->scopes, &scopes);
    outf(out, "%-24s %-30s ", token->name, buf_cstr(&scopes));
    if (!token->expires_ms)
        outf(out, "never expires\n");
    else
        outf(out, "%s %s\n", caller_is_valid(token) ? "expires" : "expired", time_people(when, token->expires_ms));
}

static enum tide_code run_list(struct cli *cli, struct tide_err *err)
{
    struct access_views views;
    enum tide_code code = access_views_read(&views, err);

    if (!code && cli->out.json)
        out_shape(&cli->out, &shape_accesses, &(struct accesses_listed){{access_views_write, &views}});
    for (size_t i = 0; !code && !cli->out.json && i < views.n; i++)
        print_row(&cli->out, &views.list[i]);
    access_views_done(&views);
    return code;
}

const struct command cmd_access_list = {
    .group = "access",
    .name = "list",
    .run = run_list,
    .help = "list the tokens by name, with scopes and expiry",
};

/* ---- revoke, rotate ---- */

static enum tide_code run_revoke(struct cli *cli, struct tide_err *err)
{
    const char *name = args_operand(&cli->args, 0);

    if (access_revoke(name, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_access_revoked, &(struct command_result){.word = name});
    else
        outf(&cli->out, "revoked: %s\n", name);
    return TIDE_OK;
}

const struct command cmd_access_revoke = {
    .group = "access",
    .name = "revoke",
    .run = run_revoke,
    .operands = {{"NAME", VALUE_TEXT, 0}},
    .help = "revoke a token at once; streams that it opened end within a second",
};

static enum tide_code run_rotate(struct cli *cli, struct tide_err *err)
{
    char secret[ACCESS_SECRET_SIZE];
    struct caller made;

    if (access_rotate(args_operand(&cli->args, 0), secret, &made, err))
        return err->code;
    print_token(cli, &made, secret);
    explicit_bzero(secret, sizeof secret);
    return TIDE_OK;
}

const struct command cmd_access_rotate = {
    .group = "access",
    .name = "rotate",
    .run = run_rotate,
    .operands = {{"NAME", VALUE_TEXT, 0}},
    .help = "replace a token by a new one with the same name, scopes and expiry, and print it",
};
