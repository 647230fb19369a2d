/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark wait and tidemark sleep, inside `tidemark exec`. They come back only when the answer is in the log: until then
 * the run is parked and the program, with this process, has been ended.
 */
#include "base/utf8.h"
#include "cli/args_check.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "engine/run_inside.h"
#include "base/yes_no.h"

#define ANSWER_SHOWN 100 /* characters of an answer that is no approval */

static const struct opt wait_options[] = {
    {.name = "kind",
     .type = VALUE_WORD,
     .words = "input approval tool_result",
     .value = "KIND",
     .help = "the kind of answer",
     .required = true},
    {.name = "question", .type = VALUE_TEXT, .value = "TEXT", .help = "the question for the person"},
    {OPT_DEADLINE},
    {OPT_EXPIRES},
    {.name = "default", .type = VALUE_TEXT, .value = "TEXT", .help = "the answer to use at the deadline"},
    {.name = "default-json", .type = VALUE_TEXT, .value = "JSON", .help = "the same, as JSON"},
    {.name = "on-deadline",
     .type = VALUE_WORD,
     .words = "interrupt default fail",
     .value = "WHAT",
     .help = "what happens at the deadline: interrupt (the default), default (use --default; the default with it), "
             "or fail the run"},
    {.name = NULL},
};

/* The reason that was given, else what was said. */
static void say_decision(struct arena *a, const struct json *v, bool yes)
{
    struct str reason = v->type == JSON_OBJECT ? json_get_text(a, v, STR("reason")) : STR("");
    struct str s = reason.len ? reason : v->type == JSON_STRING ? json_text(a, v) : json_source(v);
    struct str begin = utf8_first(s, ANSWER_SHOWN);
    struct out shown;

    out_init(&shown);
    out_value(&shown, arena_printf(a, "%.*s%s", STR_ARG(begin), begin.len < s.len ? "…" : ""));
    if (reason.len)
        say("%s: %s", yes ? "approved" : "not approved", buf_cstr(&shown.text));
    else if (!yes)
        say("not approved: the answer was '%s'", buf_cstr(&shown.text));
    out_done(&shown);
}

static enum tide_code run_wait(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf value = BUF_INIT(SIZE_MAX / 4);
    struct inside_wait w = {.name = args_operand(&cli->args, 0),
                            .kind = args_text(&cli->args, "kind"),
                            .question = args_text(&cli->args, "question"),
                            .deadline_ms = args_int(&cli->args, "deadline", 0),
                            .expires_ms = args_int(&cli->args, "expires", 0),
                            .on_deadline = args_text(&cli->args, "on-deadline")};
    struct json *answer = NULL;
    bool yes;

    signals_end_us();
    if (text_or_json(&cli->args, "default", &value, &w.default_answer, err))
        return err->code;
    if (inside_wait(&w, &text, err) || json_parse(&a, buf_view(&text), NULL, &answer, NULL, err))
        return err->code;
    out_json_value(&cli->out, buf_view(&text));
    if (strcmp(w.kind, "approval") == 0) {
        yes = yes_no_read(&a, answer) == YES_NO_YES;
        say_decision(&a, answer, yes);
        cli->exit_status = yes ? 0 : 1;
    }
    return TIDE_OK;
}

const struct command cmd_wait = {
    .name = "wait",
    .run = run_wait,
    .operands = {{"NAME", VALUE_TEXT, 0}},
    .options = wait_options,
    .help = "inside exec: wait for a person, an approval or a tool's result; no process runs meanwhile",
    .more =
        "Records the wait and ends the program; `exec` exits with status 7. After `tidemark resume ID --input TEXT`\n"
        "the program runs again from its start, and this command prints the answer. At the deadline the run is\n"
        "interrupted, continues with --default, or fails, as --on-deadline says.\n"
        "Exit status of an approval: 0 if the answer is yes, 1 if it is no.",
};

static enum tide_code run_sleep(struct cli *cli, struct tide_err *err)
{
    struct arg_value due;

    signals_end_us();
    if (args_check("DURATION", VALUE_WHEN, NULL, args_operand(&cli->args, 1), &due, err))
        return err->code;
    return inside_sleep(args_operand(&cli->args, 0), due.number, err);
}

const struct command cmd_sleep = {
    .name = "sleep",
    .run = run_sleep,
    .operands = {{"NAME", VALUE_TEXT, 0}, {"DURATION", VALUE_WHEN, 0}},
    .help = "inside exec: sleep until a time, even across reboots; no process runs meanwhile",
    .more = "DURATION is 90s, 15m, 3h, 2d, or a time such as 2026-02-21T10:00:00Z. Records the sleep and ends the "
            "program;\n"
            "`exec` exits with status 7. When the sleep is over, `tidemark recover --run-due` or `tidemark resume "
            "ID`\n"
            "resumes the session.",
};
