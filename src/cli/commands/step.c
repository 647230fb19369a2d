/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark step: a program whose result is recorded, inside `tidemark exec`. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/error_hints.h"
#include "cli/signals.h"
#include "engine/run_inside.h"

static const struct opt options[] = {
    {.name = "effect",
     .type = VALUE_WORD,
     .words = "pure idempotent once",
     .value = "CLASS",
     .help = "what happens after an interruption: pure and idempotent steps run again, once (the default) does not"},
    {.name = "retries",
     .type = VALUE_INT,
     .value = "N",
     .max = 1000,
     .help = "retry a failed step up to N times, with growing pauses; not for once"},
    {.name = "timeout", .type = VALUE_DURATION, .value = "D", .help = "end it after this time: 500ms, 90s, 15m, 3h"},
    {.name = "probe",
     .type = VALUE_TEXT,
     .value = "CMD",
     .help = "shell command that tests whether an interrupted step has happened: exit status 0 yes (its output is "
             "the result), 1 no"},
    {.name = "max-output",
     .type = VALUE_SIZE,
     .value = "SIZE",
     .min = 0,
     .max = STEP_OUTPUT_MAX,
     .help = "record at most this much output, such as 48M (default: 16M)"},
    {.name = NULL},
};

struct step_face {
    struct cli *cli;
    int signals;
};

static int open_signals(void *arg)
{
    return ((struct step_face *)arg)->signals = signal_pipe_open();
}

static void tell_line(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

/* The name is the person's own, and yet it may hold anything. */
static void kept(void *arg, int64_t run)
{
    struct step_face *f = arg;
    struct out line;

    if (!isatty(STDERR_FILENO))
        return;
    out_init(&line);
    line.tty = true;
    out_set_color(&line, args_text(&f->cli->args, "color"));
    outf(&line, "%s", color_code(&line, COLOR_DIM));
    out_value(&line, args_operand(&f->cli->args, 0));
    outf(&line, ": kept from run %" PRId64 "%s\n", run, color_code(&line, COLOR_NONE));
    fwrite(line.text.ptr, 1, line.text.len, stderr);
    out_done(&line);
}

static void print_output(void *arg, struct str s)
{
    (void)arg;
    fd_write(STDOUT_FILENO, s); /* nobody may be reading it: it is recorded all the same */
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    const struct args *a = &cli->args;
    const char *effect = args_text(a, "effect"), *id = getenv("TIDEMARK_SESSION_ID");
    struct step_face face = {cli, -1};
    struct inside_step s = {
        .name = args_operand(a, 0),
        .effect = effect ? effect : "once",
        .probe = args_text(a, "probe"),
        .argv = (char **)(uintptr_t)(a->operands + 1),
        .retries = args_int(a, "retries", 0),
        .timeout_ms = args_int(a, "timeout", 0),
        .timeout = args_text(a, "timeout"),
        .max_output = (size_t)args_int(a, "max-output", STEP_OUTPUT_DEFAULT),
        .echo = isatty(STDOUT_FILENO) ? STDOUT_FILENO : -1,
        .signals = open_signals,
        .tell = tell_line,
        .print = print_output,
        .kept = kept,
        .arg = &face,
    };
    enum tide_code code;

    signals_end_us();
    code = inside_step(&s, err);
    signal_pipe_close(face.signals);
    if (s.interrupted) { /* Ctrl-C went to the program, which had the terminal: the caller must get it as well */
        signal(SIGINT, SIG_DFL);
        kill(0, SIGINT);
    }
    if (s.failed_before) {
        AUTO(buf_done) struct buf name = BUF_INIT(1 << 16);
        struct tide_err e = {.code = TIDE_UNSETTLED};

        json_quote(&name, str_from(s.name));
        tide_hint_with(&e, TIDE_ACTION_RESUME, id ? id : "ID", "\"happened\":[{\"name\":%s}]", buf_cstr(&name));
        tide_hint_with(&e, TIDE_ACTION_RESUME, id ? id : "ID", "\"retry\":[%s]", buf_cstr(&name));
        say("step '%s' failed before and must happen once, so it is not run again: %s", s.name,
            hints_text(&arena, e.hints, 2));
    }
    cli->exit_status = s.exit_status;
    return code;
}

const struct command cmd_step = {
    .name = "step",
    .run = run,
    .operands = {{"NAME", VALUE_TEXT, 0},
                 {"PROGRAM", VALUE_PROGRAM, 0},
                 {"ARGS", VALUE_PROGRAM, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = options,
    .help = "inside exec: run a program once and record its output and exit status",
    .more = "When the session is resumed, a finished step is not run again; it prints its recorded output. The "
            "program gets\n"
            "$TIDEMARK_IDEMPOTENCY_KEY, the same in every attempt, and $TIDEMARK_ATTEMPT.\n"
            "Exit status: that of the program; 124 after --timeout; 126 and 127 if it cannot be run; 10 if it is "
            "unknown\n"
            "whether a step that must happen once has happened.",
};
