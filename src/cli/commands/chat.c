/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark chat: an agent that can be killed anywhere and continues. On a terminal a conversation, else one prompt. */
#include <errno.h>
#include <unistd.h>

#include "cli/chat/chat.h"
#include "cli/options.h"

#define PROMPT_MAX ((size_t)16 << 20)

static const struct opt options[] = {
    {.name = "prompt",
     .letter = 'p',
     .type = VALUE_TEXT,
     .value = "TEXT",
     .help = "send this prompt, print the answer and exit"},
    {.name = "resume",
     .type = VALUE_SESSION,
     .value = "[ID]",
     .optional = true,
     .help = "resume this session exactly where it stopped; without ID, choose one at the terminal"},
    {.name = "continue", .help = "resume the latest chat of this directory"},
    {.name = "from",
     .type = VALUE_TEXT,
     .value = "WHERE",
     .help = "with --resume: roll back first, to `checkpoint` (the latest), a checkpoint's id, or seq:N"},
    {.name = "reuse-effects", .help = "with --from: reuse the recorded results of effects that must happen once"},
    {.name = "redo-effects", .help = "with --from: such effects may run again"},
    {OPT_PROVIDER("the provider (default: as stored in the session, else as configured)")},
    {OPT_MODEL("the model (default: as stored in the session, else as configured)")},
    {OPT_BASE_URL},
    {OPT_SCRIPT},
    {OPT_OUTPUT("without a terminal, print the answer")},
    {.name = "watch", .help = "with -p, or when resuming: show everything as it happens, then exit"},
    {.name = "yes", .help = "allow every tool that the configuration does not deny or ask about"},
    {.name = "no-tools", .help = "use no tools"},
    {.name = "max-turns",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "model calls for one prompt"},
    {.name = "agent", .type = VALUE_TEXT, .value = "NAME", .help = "name of the agent in lists (default: chat)"},
    {.name = "title",
     .type = VALUE_TEXT,
     .value = "TEXT",
     .help = "title of a new session (default: its first prompt)"},
    {.name = "refresh-prompt",
     .help = "render the system prompt and the tool list again; this invalidates the provider's cache"},
    {.name = "no-store", .help = "store nothing: the session ends with the chat"},
    {.name = NULL},
};

/* What is piped in is the prompt, or what the prompt is about. Not by buf_read_fd(): a signal ends the reading. */
static enum tide_code read_piped(struct buf *out, struct tide_err *err)
{
    ssize_t n = 1;

    while (n > 0) {
        char *room = buf_reserve(out, 65536);

        if (!room)
            return tide_fail(err, TIDE_TOO_BIG, "standard input is larger than 16 MiB");
        n = read(STDIN_FILENO, room, 65536);
        if (n < 0 && errno != EISDIR && errno != EBADF)
            return tide_fail_errno(err, errno, "read standard input");
        out->len += n > 0 ? (size_t)n : 0;
    }
    while (out->len && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '\r'))
        out->len--;
    if (!str_is_utf8(buf_view(out), NULL) || memchr(buf_view(out).ptr, '\0', out->len))
        return args_refuse(err, "prompt", "standard input is %s: pipe in text",
                           str_is_utf8(buf_view(out), NULL) ? "no text: it holds a NUL byte" : "not valid UTF-8");
    return TIDE_OK;
}

/* What would have no effect is refused, rather than passed over. */
static enum tide_code check_pairs(const struct cli *cli, const struct chat_want *w, struct tide_err *err)
{
    bool watch = args_on(&cli->args, "watch");
    const char *provider = w->who.provider;

    if (w->who.script && provider && strcmp(provider, "script") != 0)
        return args_refuse(err, "script", "--script and --provider %s: give one of them", provider);
    if (watch && (w->output || cli->out.json))
        return args_refuse(err, "watch", "--watch shows everything: omit %s", w->output ? "--output" : "--json");
    if (cli->out.json && w->output && strcmp(w->output, "json") != 0)
        return args_refuse(err, "output", "--json and --output %s: give one of them", w->output);
    if (watch && str_is_blank(str_from(w->prompt)) && !w->resume && !w->latest)
        return args_refuse(err, "watch", "--watch needs -p TEXT, --resume ID or --continue");
    return TIDE_OK;
}

static enum tide_code check_empty(const struct args *a, struct tide_err *err)
{
    static const char *const names[] = {"model", "base-url", "script", "agent", "title", "from"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (args_on(a, names[i]) && str_is_blank(str_from(args_text(a, names[i]))))
            return args_refuse(err, names[i], "--%s is empty: give a text, or omit it", names[i]);
    return TIDE_OK;
}

static enum tide_code check_options(const struct chat_want *w, bool screen, struct tide_err *err)
{
    if (w->pick && !screen)
        return args_refuse(err, "resume",
                           "--resume without an ID needs a terminal to choose at: give --resume ID, or "
                           "--continue for the latest chat of this directory");
    if ((w->resume || w->pick) && w->latest)
        return args_refuse(err, "resume", "--resume and --continue: give one of them");
    if (w->from && !w->resume)
        return args_refuse(err, "from", "--from needs --resume ID");
    if ((w->reuse_effects || w->redo_effects) && !w->from)
        return args_refuse(err, w->reuse_effects ? "reuse-effects" : "redo-effects", "--%s-effects needs --from WHERE",
                           w->reuse_effects ? "reuse" : "redo");
    if (w->reuse_effects && w->redo_effects)
        return args_refuse(err, "reuse-effects", "--reuse-effects and --redo-effects: give one of them");
    if (w->no_store && (w->resume || w->latest || w->pick))
        return args_refuse(err, "no-store", "--no-store keeps nothing, so there is nothing to resume");
    return TIDE_OK;
}

static enum tide_code run_piped(struct cli *cli, struct chat_want *w, struct tide_err *err)
{
    AUTO(buf_done) struct buf piped = BUF_INIT(PROMPT_MAX);
    const char *prompt = str_is_blank(str_from(w->prompt)) ? NULL : w->prompt;

    if (!isatty(STDIN_FILENO) && read_piped(&piped, err))
        return err->code;
    w->prompt = prompt ? prompt : str_is_blank(buf_view(&piped)) ? NULL : buf_cstr(&piped);
    w->piped = prompt && piped.len ? buf_cstr(&piped) : NULL;
    if (!w->prompt && !w->resume && !w->latest)
        return args_refuse(err, "prompt", "no prompt: give -p TEXT, pipe one in, or use a terminal");
    return chat_print(cli, w, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const struct args *a = &cli->args;
    struct chat_want w = {.who = agent_want_from(a),
                          .agent = args_text(a, "agent"),
                          .title = args_text(a, "title"),
                          .prompt = args_text(a, "prompt"),
                          .output = args_text(a, "output"),
                          .resume = args_text(a, "resume"),
                          .pick = args_on(a, "resume") && !args_text(a, "resume"),
                          .from = args_text(a, "from"),
                          .latest = args_on(a, "continue"),
                          .no_store = args_on(a, "no-store"),
                          .reuse_effects = args_on(a, "reuse-effects"),
                          .redo_effects = args_on(a, "redo-effects")};
    bool screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !w.prompt && !w.output && !cli->out.json;

    w.who.no_tools = args_on(a, "no-tools");
    w.who.refresh_prompt = args_on(a, "refresh-prompt");
    w.who.max_turns = args_int(a, "max-turns", 0);
    if (check_options(&w, screen && !args_on(a, "watch"), err) || check_empty(a, err) || check_pairs(cli, &w, err))
        return err->code;
    if (args_on(a, "watch"))
        return chat_watch(cli, &w, err);
    return screen ? chat_screen(cli, &w, err) : run_piped(cli, &w, err);
}

const struct command cmd_chat = {
    .name = "chat",
    .run = run,
    .opens_store = true,
    .options = options,
    .help = "chat with a model that uses tools; a killed chat resumes where it stopped",
    .more = "On a terminal this is a conversation; /help lists the commands. Without a terminal the prompt is -p "
            "TEXT or\n"
            "standard input, and the answer is printed once it is on disk.\n"
            "Exit status: 0 answered; 1 failed, can be resumed; 7 waits for a person (`tidemark resume ID --input "
            "allow`);\n"
            "11 the session is not trusted (`tidemark sessions trust ID`).",
};
