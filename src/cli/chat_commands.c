/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is typed behind a slash. Most are the commands of the same name, run on the chat's own store and session, so that
 * they say the same here as there.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/chat_screen.h"

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
    struct tide_err err = {TIDE_OK, ""};
    char *argv[12] = {(char *)(uintptr_t) "tidemark"};
    int argc = 1;

    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    out_init(&inner.out);
    inner.out.tty = s->chat.cli->out.tty;
    inner.out.color = s->chat.cli->out.color;
    if (!args_parse(argc, argv, &inner.args, &err))
        (void)!inner.args.command->run(&inner, &err);
    if (!err.code)
        (void)!out_flush(&inner.out, &err);
    if (err.code)
        view_error(s->view, err.msg);
    args_done(&inner.args);
    out_done(&inner.out);
}

static void run_sessions(struct screen *s, const char *rest)
{
    (void)rest;
    run_inner(s, (const char *const[]){"sessions", "list", "--limit", "15", NULL});
}

static void run_checkpoints(struct screen *s, const char *rest)
{
    (void)rest;
    run_inner(s, (const char *const[]){"sessions", "checkpoints", tide_session_id(s->chat.session), NULL});
}

static void run_why(struct screen *s, const char *rest)
{
    (void)rest;
    run_inner(s, (const char *const[]){"why", tide_session_id(s->chat.session), NULL});
}

/* ---- of this chat ---- */

static void run_resume(struct screen *s, const char *rest)
{
    struct tide_err err = {TIDE_OK, ""};

    if (!*rest && !s->chat.session)
        view_error(s->view, "/resume ID: which one? /sessions lists them");
    else if (!*rest)
        screen_go_on(s);
    else if (screen_switch(s, rest, &err))
        view_error(s->view, err.msg);
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
    struct tide_err err = {TIDE_OK, ""};
    unsigned flags = 0;
    int64_t seq = 0;
    char where[80], line[120];

    if (!read_where(rest, where, &flags)) {
        view_error(s->view, "/rollback WHERE [--reuse-effects | --redo-effects]: a checkpoint's id (/checkpoints lists "
                            "them) or seq:N");
        return;
    }
    if (cli_position(s->chat.session, where, &seq, &err) ||
        tide_rollback(s->chat.session, seq, flags, "chat /rollback", &err)) {
        view_error(s->view, err.msg);
        return;
    }
    view_clear(s->view);
    screen_redraw(s);
    snprintf(line, sizeof(line), "rolled back to seq %" PRId64 "; nothing is deleted", seq);
    view_notice(s->view, line);
}

static void run_fork(struct screen *s, const char *rest)
{
    struct tide_err err = {TIDE_OK, ""};
    char id[TIDE_ID_SIZE], line[200];

    (void)rest;
    if (tide_fork(s->chat.cli->store, tide_session_id(s->chat.session), 0, NULL, NULL, id, &err) ||
        screen_switch(s, id, &err)) {
        view_error(s->view, err.msg);
        return;
    }
    snprintf(line, sizeof(line), "this is a fork now: %s", id);
    view_notice(s->view, line);
}

static void run_model(struct screen *s, const char *rest)
{
    const char *before = s->chat.model;
    struct tide_err err = {TIDE_OK, ""};

    if (!*rest) {
        view_error(s->view, "/model NAME: as the provider calls it");
        return;
    }
    s->chat.model = arena_dup(&s->chat.arena, str_from(rest)).ptr;
    if (s->chat.session && chat_agent(&s->chat, &err)) {
        view_error(s->view, err.msg);
        s->chat.model = before;
        if (chat_agent(&s->chat, &err)) /* nor with the one before: then there is nobody to speak to */
            chat_leave(&s->chat);
    } else
        view_notice(s->view, "from the next prompt on");
}

/* One object of the agent's own description. */
static const struct json *info_of(struct screen *s, struct arena *a)
{
    struct tide_text text = {NULL, 0};
    struct tide_err err = {TIDE_OK, ""};
    struct json *json = NULL;

    if (tide_agent_info(s->chat.agent, &text, &err) ||
        json_parse(a, arena_dup(a, (struct str){text.ptr, text.len}), NULL, &json, NULL, &err))
        view_error(s->view, err.msg);
    tide_text_done(&text);
    return json;
}

static void list_members(struct screen *s, const char *member, const char *const keys[3], const char *none)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *list = json_get(info_of(s, &a), str_from(member));
    char line[400];

    if (!list || !list->count)
        view_notice(s->view, none);
    for (const struct json *t = list ? list->first : NULL; t; t = t->next) {
        struct str one = json_get_text(&a, t, str_from(keys[0])), two = json_get_text(&a, t, str_from(keys[1])),
                   three = json_get_text(&a, t, str_from(keys[2]));

        snprintf(line, sizeof(line), "%-14.*s %-12.*s %.*s", STR_ARG(one), STR_ARG(two), STR_ARG(three));
        view_notice(s->view, line);
    }
}

static void run_tools(struct screen *s, const char *rest)
{
    (void)rest;
    list_members(s, "tools", (const char *const[]){"name", "permission", "description"}, "no tools");
}

static void run_hooks(struct screen *s, const char *rest)
{
    (void)rest;
    list_members(s, "hooks", (const char *const[]){"name", "event", "what"}, "no hooks");
}

static void run_usage(struct screen *s, const char *rest)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *info = info_of(s, &a);
    struct str cost;
    const char *priced;

    (void)rest;
    if (!info)
        return;
    cost = json_source(json_get(info, STR("cost")));
    priced = str_eq(cost, STR("0.000000000")) ? "" : arena_printf(&a, " · cost %.*s", STR_ARG(cost));
    view_notice(s->view,
                arena_printf(&a,
                             "%" PRId64 " turns · %" PRId64 " tokens in (%" PRId64 " cached) · %" PRId64
                             " out%s · context %" PRId64 " of %" PRId64,
                             json_get_int(info, STR("turns"), 0), json_get_int(info, STR("input_tokens"), 0),
                             json_get_int(info, STR("cached_tokens"), 0), json_get_int(info, STR("output_tokens"), 0),
                             priced, json_get_int(info, STR("context_tokens"), 0),
                             json_get_int(info, STR("max_context_tokens"), 0)));
}

static void run_clear(struct screen *s, const char *rest)
{
    (void)rest;
    chat_leave(&s->chat);
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
    {"resume", "[ID]", "go on with what was stopped; with an ID: with that session, here", run_resume, false},
    {"sessions", "", "the latest sessions", run_sessions, false},
    {"checkpoints", "", "the checkpoints of this session", run_checkpoints, true},
    {"rollback", "WHERE", "back to a checkpoint or seq:N; nothing is deleted", run_rollback, true},
    {"fork", "", "go on in a copy; the original stays as it is", run_fork, true},
    {"model", "NAME", "another model from the next prompt on", run_model, false},
    {"tools", "", "what the agent can do, and what it asks about", run_tools, true},
    {"hooks", "", "the hooks that are asked", run_hooks, true},
    {"usage", "", "tokens and cost so far", run_usage, true},
    {"why", "", "why this session is where it is", run_why, true},
    {"clear", "", "leave this session, begin another", run_clear, false},
    {"help", "", "this list", run_help, false},
    {"quit", "", "leave; the session can be resumed", run_quit, false},
};
#define N_SLASHES (sizeof(slashes) / sizeof(slashes[0]))

static void run_help(struct screen *s, const char *rest)
{
    char line[200];

    (void)rest;
    for (size_t i = 0; i < N_SLASHES; i++) {
        snprintf(line, sizeof(line), "/%-12s %-6s %s", slashes[i].name, slashes[i].args, slashes[i].help);
        view_notice(s->view, line);
    }
    view_notice(s->view, "@path        adds a file; Alt-Enter begins a new line; Ctrl-C stops the turn, twice leaves");
}

void screen_command(struct screen *s, const char *line)
{
    size_t len = strcspn(line + 1, " \t\n");
    const char *rest = line + 1 + len + strspn(line + 1 + len, " \t\n");
    AUTO(mem_freep) char *words = mem_dup(str_from(rest));
    char wrong[120];

    for (size_t end = strlen(words); end > 0 && strchr(" \t\n", words[end - 1]); end--)
        words[end - 1] = '\0';
    for (size_t i = 0; i < N_SLASHES; i++) {
        if (strlen(slashes[i].name) != len || strncmp(slashes[i].name, line + 1, len) != 0)
            continue;
        if (slashes[i].needs_session && !s->chat.session)
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

void screen_complete(void *arg, struct str before, struct str word, struct line_matches *m)
{
    char whole[40];

    (void)arg;
    if (word.len && word.ptr[0] == '@')
        complete_files(word, m);
    for (size_t i = 0; before.len == word.len && word.len && word.ptr[0] == '/' && i < N_SLASHES; i++) {
        snprintf(whole, sizeof(whole), "/%s", slashes[i].name);
        if (strncmp(whole, word.ptr, word.len) == 0)
            line_match_add(m, str_from(whole));
    }
}
