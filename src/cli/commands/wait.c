/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark wait and tidemark sleep, inside `tidemark exec`. They come back only when the answer is in the log: until then
 * the run is parked and the program, with this process, has been ended.
 */
#include "base/utf8.h"
#include "cli/args_check.h"
#include "cli/report.h"
#include "cli/signal_pipe.h"
#include "program/run_client.h"
#include "base/yes_no.h"

#define ANSWER_SHOWN 100 /* characters of an answer that is no approval */

static const struct opt wait_options[] = {
    {.name = "kind",
     .type = VALUE_WORD,
     .words = "input approval tool_result",
     .value = "KIND",
     .help = "what is waited for",
     .required = true},
    {.name = "question", .type = VALUE_TEXT, .value = "TEXT", .help = "what the person is asked"},
    {.name = "deadline",
     .type = VALUE_WHEN,
     .value = "D",
     .help = "when the wait is over without an answer: 3h, 2d, or a time as 2026-02-21T10:00:00Z"},
    {.name = "expires",
     .type = VALUE_WHEN,
     .value = "D",
     .help = "when the token stops working (default: with the deadline)"},
    {.name = NULL},
};

static void linkp(struct run_client *l)
{
    run_client_close(l);
}

static void put_common(struct cli *cli, struct run_client *l)
{
    json_out_kstr(&l->o, STR("name"), str_from(args_operand(&cli->args, 0)));
    json_out_kbool(&l->o, STR("nested"), run_client_is_nested());
}

/* Whoever typed "sure" must not have to guess why nothing happened. */
static void say_not_approved(struct arena *a, const struct json *v)
{
    struct str s = v->type == JSON_STRING ? json_text(a, v) : json_source(v);
    struct str begin = utf8_first(s, ANSWER_SHOWN);
    struct out shown;

    out_init(&shown);
    out_value(&shown, arena_printf(a, "%.*s%s", STR_ARG(begin), begin.len < s.len ? "…" : ""));
    say("not approved: the answer was '%s'", buf_cstr(&shown.text));
    out_done(&shown);
}

/* A text as text, anything else as JSON; with --json always as JSON. */
static enum tide_code print_value(struct cli *cli, struct run_client *l, struct str value,
                                  const struct json **ret_value, struct tide_err *err)
{
    struct json *v = NULL;

    if (json_parse(&l->arena, value, NULL, &v, NULL, err))
        return err->code;
    buf_add_str(&cli->out.text, v->type == JSON_STRING && !cli->out.json ? json_text(&l->arena, v) : value);
    buf_add_char(&cli->out.text, '\n');
    *ret_value = v;
    return TIDE_OK;
}

static enum tide_code run_wait(struct cli *cli, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    const char *kind = args_text(&cli->args, "kind"), *question = args_text(&cli->args, "question");
    const struct json *answer = NULL;
    struct reply reply;

    signals_end_us();
    if (run_client_open(&l, "wait", err))
        return err->code;
    run_client_begin(&l, "wait");
    put_common(cli, &l);
    json_out_kstr(&l.o, STR("kind"), str_from(kind));
    if (question)
        json_out_kstr(&l.o, STR("question"), str_from(question));
    json_out_kint(&l.o, STR("deadline_ms"), args_int(&cli->args, "deadline", 0));
    json_out_kint(&l.o, STR("expires_ms"), args_int(&cli->args, "expires", 0));
    if (run_client_call(&l, STR(""), &reply, err))
        return tide_wrap(err, "wait");
    if (print_value(cli, &l, reply.blob, &answer, err))
        return err->code;
    if (strcmp(kind, "approval") == 0 && yes_no_read(&l.arena, answer) != YES_NO_YES) {
        say_not_approved(&l.arena, answer);
        cli->exit_status = 1;
    }
    return TIDE_OK;
}

const struct command cmd_wait = {
    .name = "wait",
    .run = run_wait,
    .operands = {{"NAME", VALUE_TEXT, 0}},
    .options = wait_options,
    .help = "inside exec: wait for a person, an approval or a tool's result; nothing runs meanwhile",
    .more = "The wait is recorded, then the program is ended and `exec` ends with exit status 7. After\n"
            "`tidemark resume ID --input TEXT` the program runs again from its start and this prints the answer.\n"
            "Exit status of an approval: 0 when the answer is yes, y, ok, true, approve or approved; else 1.",
};

static enum tide_code run_sleep(struct cli *cli, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct arg_value due;
    struct reply reply;

    signals_end_us();
    if (run_client_open(&l, "sleep", err) ||
        args_check("DURATION", VALUE_WHEN, NULL, args_operand(&cli->args, 1), &due, err))
        return err->code;
    run_client_begin(&l, "sleep");
    put_common(cli, &l);
    json_out_kint(&l.o, STR("due_ms"), due.number);
    return run_client_call(&l, STR(""), &reply, err) ? tide_wrap(err, "sleep") : TIDE_OK;
}

const struct command cmd_sleep = {
    .name = "sleep",
    .run = run_sleep,
    .operands = {{"NAME", VALUE_TEXT, 0}, {"DURATION", VALUE_WHEN, 0}},
    .help = "inside exec: sleep until a time, through reboots; nothing runs meanwhile",
    .more =
        "DURATION: 90s, 15m, 3h, 2d, or a time as 2026-02-21T10:00:00Z. The sleep is recorded, then the program is ended\n"
        "and `exec` ends with exit status 7; `tidemark recover --run-due` (or `tidemark resume ID`) goes on when it is due.",
};
