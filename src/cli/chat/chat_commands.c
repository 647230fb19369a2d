/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is typed behind a slash, and what Tab makes of it. Lists are drawn as the chat draws, for windows of any width.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/chat/chat_screen.h"
#include "terminal/glyph.h"
#include "terminal/line_complete.h"
#include "cli/session_view.h"
#include "cli/next_command.h"
#include "engine/rollback.h"

#define SESSIONS_SHOWN 15
#define CHECKPOINTS_SHOWN 30
#define IDS_MAX 200 /* sessions that Tab looks through */

struct slash {
    const char *name, *args, *help;
    void (*run)(struct screen *s, const char *rest);
    bool needs_session;
};

/* ---- commands of the command line ---- */

/* Runs a command as it would be typed in a shell; ends with NULL. */
static void run_inner(struct screen *s, const char *const *words)
{
    struct cli inner = {.store = s->chat.cli->store};
    struct tide_err err = {0};
    char *argv[12] = {(char *)(uintptr_t) "tidemark"};
    enum tide_code code;
    int argc = 1;

    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    out_init(&inner.out);
    inner.out.tty = s->chat.cli->out.tty;
    inner.out.color = s->chat.cli->out.color;
    code = args_parse(argc, argv, &inner.args, &err);
    code = code ? code : inner.args.command->run(&inner, &err);
    code = code ? code : out_flush(&inner.out, &err);
    if (code)
        screen_error(s, &err);
    args_done(&inner.args);
    out_done(&inner.out);
}

static int show_session(void *arg, const struct tide_session_info *info)
{
    struct screen *s = arg;
    AUTO(buf_done) struct buf text = BUF_INIT(4096);
    char head[TIDE_ID_SIZE + 4], ago[AGO_SIZE], status[STATUS_SIZE];

    buf_addf(&text, "%s · ", session_status(status, info));
    if (info->title && *info->title) {
        glyph_fit(&text, str_from(info->title), 60);
        buf_add_str(&text, STR(" · "));
    }
    buf_addf(&text, "%s", time_ago(ago, info->updated_ms));
    snprintf(head, sizeof(head), "%s  ", info->id);
    view_item(s->view, head, buf_cstr(&text));
    return 0;
}

static void run_sessions(struct screen *s, const char *rest)
{
    const struct tide_list_filter latest = {.size = sizeof latest, .limit = SESSIONS_SHOWN};
    struct tide_err err = {0};

    (void)rest;
    if (tide_session_list(s->chat.cli->store, &latest, show_session, s, &err))
        screen_error(s, &err);
}

static void run_why(struct screen *s, const char *rest)
{
    (void)rest;
    run_inner(s, (const char *const[]){"why", tide_session_id(s->chat.core.session), NULL});
}

/* ---- of this chat ---- */

static void run_resume(struct screen *s, const char *rest)
{
    struct tide_err err = {0};
    char id[TIDE_ID_SIZE];

    if (!*rest && s->chat.core.session && chat_can_go_on(&s->chat.core)) {
        screen_go_on(s);
        return;
    }
    if (!*rest && !screen_can_pick(s)) {
        view_error(s->view, "/resume ID: which one? /sessions lists them");
        return;
    }
    if (!*rest && screen_pick(s, id, &err)) {
        screen_error(s, &err);
        return;
    }
    rest = *rest ? rest : id;
    if (*rest && screen_switch(s, rest, &err))
        screen_error(s, &err);
}

/* "WHERE", "WHERE --reuse-effects", "WHERE --redo-effects"; false: it is none of them. */
static bool read_where(const char *rest, char where[80], unsigned *ret_flags)
{
    static const struct {
        const char *word;
        unsigned flags;
    } rows[] = {
        {"", 0}, {"--reuse-effects", TIDE_ROLLBACK_REUSE_EFFECTS}, {"--redo-effects", TIDE_ROLLBACK_REDO_EFFECTS}};
    size_t len = strcspn(rest, " \t"), seq = strncmp(rest, "seq:", 4) == 0 ? 4 : 0;
    const char *behind = rest + len + strspn(rest + len, " \t");

    snprintf(where, 80, "%.*s", (int)(len - seq < 79 ? len - seq : 79), rest + seq);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && len > seq; i++)
        if (strcmp(rows[i].word, behind) == 0) {
            *ret_flags = rows[i].flags;
            return true;
        }
    return false;
}

static void run_rollback(struct screen *s, const char *rest)
{
    struct tide_err err = {0};
    AUTO(mem_freep) char *withdrawn = NULL;
    unsigned flags = 0;
    int64_t seq = 0;
    char where[80], line[120];

    if (!read_where(rest, where, &flags)) {
        view_error(s->view, "/rollback WHERE [--reuse-effects | --redo-effects]: a checkpoint's id (/checkpoints lists "
                            "them) or seq:N");
        return;
    }
    if (session_position(s->chat.core.session, where, &seq, &err) ||
        chat_roll_back_to(&s->chat.core, seq, flags, "chat /rollback", &withdrawn, &err)) {
        screen_error(s, &err);
        return;
    }
    view_clear(s->view);
    screen_redraw(s);
    snprintf(line, sizeof(line), "rolled back to seq %" PRId64 "; nothing is deleted", seq);
    view_notice(s->view, line);
    if (withdrawn)
        chat_tell(&s->chat, CHAT_WITHDRAWN, withdrawn);
}

static void run_fork(struct screen *s, const char *rest)
{
    struct tide_err err = {0};
    char id[TIDE_ID_SIZE], line[200];

    (void)rest;
    if (tide_session_fork(s->chat.cli->store, tide_session_id(s->chat.core.session), 0, NULL, NULL, id, &err) ||
        screen_switch(s, id, &err)) {
        screen_error(s, &err);
        return;
    }
    snprintf(line, sizeof(line), "this is now the fork %s", id);
    view_notice(s->view, line);
}

static const struct json *info_of(struct screen *s, struct arena *a);

static void run_model(struct screen *s, const char *rest)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *before = s->chat.core.setup.want.model;
    struct tide_err err = {0};

    if (!*rest) {
        struct str now = s->chat.core.session
                             ? json_get_text(&a, info_of(s, &a), STR("model"))
                             : str_from(s->chat.core.setup.opt.model ? s->chat.core.setup.opt.model : "script");

        view_notice(s->view, arena_printf(&a, "model %.*s; /model NAME selects another", STR_ARG(now)));
        return;
    }
    s->chat.core.setup.want.model = arena_dup(&s->chat.core.setup.arena, str_from(rest)).ptr;
    if (s->chat.core.session ? chat_agent(&s->chat.core, &err) : agent_setup_check(&s->chat.core.setup, NULL, &err)) {
        screen_error(s, &err);
        s->chat.core.setup.want.model = before;
        if (s->chat.core.session &&
            chat_agent(&s->chat.core, &err)) /* nor with the one before: nobody is there to speak to */
            chat_leave(&s->chat.core);
    } else
        view_notice(s->view, arena_printf(&a, "model %s from the next prompt on", rest));
}

static void run_compact(struct screen *s, const char *rest)
{
    screen_compact(s, *rest ? rest : NULL);
}

/* One object of the agent's own description. */
static const struct json *info_of(struct screen *s, struct arena *a)
{
    struct tide_text text = {NULL, 0};
    struct tide_err err = {0};
    struct json *json = NULL;

    if (tide_agent_get_info(s->chat.core.agent, &text, &err) ||
        json_parse(a, arena_dup(a, (struct str){text.ptr, text.len}), NULL, &json, NULL, &err))
        screen_error(s, &err);
    tide_text_done(&text);
    return json;
}

static void show_tool(void *arg, const char *tool, const char *permission, const char *description)
{
    struct screen *s = arg;
    char head[64];

    snprintf(head, sizeof(head), "%-6s %-6s ", tool, permission);
    view_item(s->view, head, description);
}

/* From the settings, which the agent has them from: they can be looked at before there is one. */
static void run_tools(struct screen *s, const char *rest)
{
    struct tide_err err = {0};

    (void)rest;
    if (s->chat.core.setup.opt.no_tools)
        view_notice(s->view, "no tools: --no-tools was given");
    else if (agent_setup_tools(&s->chat.core.setup, show_tool, s, &err))
        screen_error(s, &err);
}

static void show_hook(void *arg, const char *name, const char *event, const char *matcher, const char *what)
{
    struct screen *s = arg;
    char head[80];

    snprintf(head, sizeof(head), "%-12.30s %-22s ", name, event);
    view_item(s->view, head, *matcher ? arena_printf(&s->scratch, "%s (tools: %s)", what, matcher) : what);
    s->listed = true;
}

static void run_hooks(struct screen *s, const char *rest)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_err err = {0};

    (void)rest;
    s->listed = false;
    if (agent_setup_hooks(&s->chat.core.setup, show_hook, s, &err))
        screen_error(s, &err);
    else if (!s->listed)
        view_notice(s->view,
                    arena_printf(&a, "no hooks: `%s config set hooks` or hooks_file names some", own_command(&a)));
}

/* ---- checkpoints, by the prompts that they stand behind ---- */

struct prompts {
    struct screen *s;
    struct arena arena;
    size_t n; /* checkpoints shown */
    struct message_kept {
        int64_t seq;
        const char *text;
        struct message_kept *before;
    } * last;
};

static int take_prompt(void *arg, const struct tide_event *ev)
{
    struct prompts *p = arg;
    struct json *body = NULL;
    struct message_kept *said;

    if (strcmp(ev->kind, "message.user") != 0 ||
        json_parse(&p->arena, arena_dup(&p->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL) ||
        json_get(body, STR("hook")))
        return 0;
    said = arena_zero(&p->arena, sizeof(*said));
    *said = (struct message_kept){ev->seq, arena_dup(&p->arena, json_get_text(&p->arena, body, STR("content"))).ptr,
                                  p->last};
    p->last = said;
    return 0;
}

static int show_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    struct prompts *p = arg;
    const struct message_kept *said = p->last;
    AUTO(buf_done) struct buf text = BUF_INIT(4096);
    char head[96], ago[AGO_SIZE];
    const char *prompt;

    while (said && said->seq > c->seq)
        said = said->before;
    prompt = said ? said->text : "";
    if (c->description && *c->description)
        buf_addf(&text, "%.200s ", c->description);
    buf_add_str(&text, STR("› "));
    glyph_fit(&text, (struct str){prompt, strcspn(prompt, "\n")}, 60);
    buf_addf(&text, " · %s", time_ago(ago, c->ts_ms));
    snprintf(head, sizeof(head), "%s  turn %-3" PRId64 " ", c->id, c->turn);
    view_item(p->s->view, head, buf_cstr(&text));
    p->n++;
    return 0;
}

static void run_checkpoints(struct screen *s, const char *rest)
{
    const struct tide_checkpoint_filter latest = {.size = sizeof latest, .limit = CHECKPOINTS_SHOWN};
    struct prompts p = {.s = s, .arena = ARENA_INIT};
    struct tide_err err = {0};

    (void)rest;
    if (tide_session_read_messages(s->chat.core.session, 0, take_prompt, &p, &err) ||
        tide_checkpoint_list(s->chat.core.session, &latest, show_checkpoint, &p, &err))
        screen_error(s, &err);
    if (p.n == CHECKPOINTS_SHOWN)
        view_notice(s->view, arena_printf(&p.arena, "the latest; `%s sessions checkpoints %s` lists all",
                                          own_command(&p.arena), tide_session_id(s->chat.core.session)));
    arena_done(&p.arena);
}

static void run_usage(struct screen *s, const char *rest)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *info = info_of(s, &a);
    struct str cost;
    const char *priced;
    int64_t turns;

    (void)rest;
    if (!info)
        return;
    turns = json_get_int(info, STR("turns"), 0);
    cost = json_source(json_get(info, STR("cost")));
    priced = str_eq(cost, STR("0.000000000")) ? "" : arena_printf(&a, " · cost %.*s", STR_ARG(cost));
    view_notice(s->view,
                arena_printf(&a,
                             "%" PRId64 " turn%s · %" PRId64 " tokens in (%" PRId64 " cached) · %" PRId64
                             " out%s · context %" PRId64 " of %" PRId64,
                             turns, turns == 1 ? "" : "s", json_get_int(info, STR("input_tokens"), 0),
                             json_get_int(info, STR("cached_tokens"), 0), json_get_int(info, STR("output_tokens"), 0),
                             priced, json_get_int(info, STR("context_tokens"), 0),
                             json_get_int(info, STR("max_context_tokens"), 0)));
}

static void run_clear(struct screen *s, const char *rest)
{
    (void)rest;
    chat_leave(&s->chat.core);
    view_clear(s->view);
    view_notice(s->view, "a new session begins with the next prompt");
}

static void run_quit(struct screen *s, const char *rest)
{
    (void)rest;
    s->leave = 1;
}

static void run_help(struct screen *s, const char *rest);

static const struct slash slashes[] = {
    {"resume", "[ID]", "resume what was stopped, or choose a chat; with an ID, resume that session here", run_resume,
     false},
    {"sessions", "", "list the latest sessions", run_sessions, false},
    {"checkpoints", "", "list the checkpoints of this session, and the prompt before each", run_checkpoints, true},
    {"rollback", "WHERE", "return to a checkpoint (Tab completes its id) or to seq:N; nothing is deleted", run_rollback,
     true},
    {"compact", "[FOCUS]", "let the model summarise the conversation, and continue with the summary", run_compact,
     true},
    {"fork", "", "continue in a fork; the original does not change", run_fork, true},
    {"model", "[NAME]", "show the model; with NAME, use that one from the next prompt on", run_model, false},
    {"tools", "", "list the tools and their permissions", run_tools, false},
    {"hooks", "", "list the hooks", run_hooks, false},
    {"usage", "", "show the tokens and the cost so far", run_usage, true},
    {"why", "", "explain why this session is in its state", run_why, true},
    {"clear", "", "start a new session", run_clear, false},
    {"help", "", "show this list", run_help, false},
    {"quit", "", "exit; the session can be resumed", run_quit, false},
};
#define N_SLASHES (sizeof(slashes) / sizeof(slashes[0]))

static void run_help(struct screen *s, const char *rest)
{
    char head[40];

    (void)rest;
    for (size_t i = 0; i < N_SLASHES; i++) {
        snprintf(head, sizeof(head), "/%-11s %-7s ", slashes[i].name, slashes[i].args);
        view_item(s->view, head, slashes[i].help);
    }
    snprintf(head, sizeof(head), "%-12s %-7s ", "@path", "");
    view_item(s->view, head, "adds a file to the prompt: its text, or an image");
    snprintf(head, sizeof(head), "%-12s %-7s ", "Alt-Enter", "");
    view_item(s->view, head, "begins a new line");
    snprintf(head, sizeof(head), "%-12s %-7s ", "Ctrl-C", "");
    view_item(s->view, head, "stops the turn; twice exits");
}

void screen_command(struct screen *s, const char *line)
{
    size_t len = strcspn(line + 1, " \t\n");
    AUTO(mem_freep) char *words = mem_dup(str_trim(str_from(line + 1 + len)));
    char wrong[120];

    for (size_t i = 0; i < N_SLASHES; i++) {
        if (strlen(slashes[i].name) != len || strncmp(slashes[i].name, line + 1, len) != 0)
            continue;
        if (*words && !*slashes[i].args) /* rather than pass over what was meant */
            view_error(s->view, "it takes no argument: /help lists the commands");
        else if (slashes[i].needs_session && !s->chat.core.session)
            view_notice(s->view, "there is no session yet: it begins with the first prompt");
        else
            slashes[i].run(s, words);
        return;
    }
    snprintf(wrong, sizeof(wrong), "/%.*s is not known: /help shows what is", (int)(len > 40 ? 40 : len), line + 1);
    view_error(s->view, wrong);
}

/* ---- completion ---- */

static void complete_files(struct str word, struct line_matches *m)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *path = arena_dup(&a, (struct str){word.ptr + 1, word.len - 1}).ptr, *slash = strrchr(path, '/');
    const char *dir = slash ? arena_dup(&a, (struct str){path, (size_t)(slash - path) + 1}).ptr : "";
    const char *begin = slash ? slash + 1 : path;
    DIR *d = opendir(*dir ? dir : ".");

    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, begin, strlen(begin)) == 0 && (e->d_name[0] != '.' || *begin == '.'))
            line_match_add(m, str_from(arena_printf(&a, "@%s%s%s", dir, e->d_name, e->d_type == DT_DIR ? "/" : "")));
    if (d)
        closedir(d);
}

static int match_session(void *arg, const struct tide_session_info *info)
{
    line_match_add(arg, str_from(info->id));
    return 0;
}

static int match_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    line_match_add(arg, str_from(c->id));
    return 0;
}

/* All ids, of which those stay that begin as what is typed does. */
static void complete_ids(struct screen *s, struct str before, struct str word, struct line_matches *m)
{
    const struct tide_list_filter latest = {.size = sizeof latest, .limit = IDS_MAX};
    struct line_matches *all = mem_zero(sizeof(*all));
    enum tide_code code = TIDE_OK;

    if (str_starts(before, STR("/resume ")))
        code = tide_session_list(s->chat.cli->store, &latest, match_session, all, NULL);
    else if (str_starts(before, STR("/rollback ")) && s->chat.core.session)
        code = tide_checkpoint_list(s->chat.core.session, NULL, match_checkpoint, all, NULL);
    for (size_t i = 0; i < all->n && !code; i++)
        if (str_starts(str_from(all->words[i]), word))
            line_match_add(m, str_from(all->words[i]));
    line_matches_free(all);
}

void screen_complete(void *arg, struct str before, struct str word, struct line_matches *m)
{
    char whole[40];

    if (word.len && word.ptr[0] == '@')
        complete_files(word, m);
    complete_ids(arg, before, word, m);
    for (size_t i = 0; before.len == word.len && word.len && word.ptr[0] == '/' && i < N_SLASHES; i++) {
        snprintf(whole, sizeof(whole), "/%s", slashes[i].name);
        if (strncmp(whole, word.ptr, word.len) == 0)
            line_match_add(m, str_from(whole));
    }
}
