/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat at a terminal. The loop reads a prompt, lets the agent work on it and draws what happens. Ctrl-C while it works
 * stops the turn, and the session can continue; a second one leaves. A question is asked when it is on disk: the person who kills the
 * chat then finds it asked again, here or anywhere.
 *
 * What is typed while the agent works is the next prompt, and never the answer to a question that was not there yet.
 */
#include "cli/error_hints.h"
#include "cli/chat/chat_screen.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/signals.h"
#include "cli/next_command.h"
#include "terminal/line_tty.h"
#include "terminal/progress.h"
#include "engine/resume.h"

static struct screen *current; /* for the handler */

static void on_signal(int number)
{
    struct screen *s = current;

    if (!s)
        return;
    if (number != SIGINT || ++s->presses > 1)
        s->leave = 1;
    if (s->chat.core.agent && number == SIGINT)
        tide_agent_stop(s->chat.core.agent);
    else if (s->chat.core.agent)
        tide_agent_shutdown(s->chat.core.agent);
}

static void set_signals(struct screen *s)
{
    current = s;
    signals_catch(on_signal, 0, true);
}

/* ---- what happens ---- */

static const char *summary_of(struct screen *s, const char *tool, const char *args)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    agent_call_text(&out, tool, args);
    return arena_dup(&s->scratch, buf_view(&out)).ptr;
}

/* By the words that the tools end with. */
static enum view_outcome outcome_of(bool failed, struct str text)
{
    static const char ended[] = "stopped before it ended: how far it got is unknown";

    if (!failed)
        return VIEW_DONE;
    if (text.len >= strlen(ended) && memcmp(text.ptr + text.len - strlen(ended), ended, strlen(ended)) == 0)
        return VIEW_STOPPED;
    return str_starts(text, STR("outcome unknown"))  ? VIEW_UNKNOWN
           : str_starts(text, STR("denied"))         ? VIEW_REFUSED
           : str_starts(text, STR("stopped before")) ? VIEW_STOPPED
           : str_starts(text, STR("not run:"))       ? VIEW_STOPPED
                                                     : VIEW_FAILED;
}

static void show_retry(struct screen *s, const struct tide_agent_event *e)
{
    char line[400];

    snprintf(line, sizeof(line), "attempt %d of %d in %.1f s: %.*s", e->attempt, e->attempts,
             (double)e->delay_ms / 1000, (int)e->text_len, e->text);
    view_retry(s->view, line);
    view_busy(s->view, "waiting");
}

static void add_usage(struct screen *s, const struct tide_agent_event *e)
{
    s->usage.input_tokens += e->input_tokens;
    s->usage.output_tokens += e->output_tokens;
    s->usage.cached_tokens += e->cached_tokens;
    s->usage.cost = s->chat.core.setup.opt.prices && strcmp(s->chat.core.setup.opt.prices, "{}") != 0
                        ? s->usage.cost + e->cost
                        : -1;
    s->usage.context = e->input_tokens + e->output_tokens;
    s->usage.context_max = s->chat.core.setup.opt.max_context_tokens;
    view_busy(s->view, "thinking");
}

/* Also a signal that came before the agent was at work, or was there at all. */
static void stop_if_told(struct screen *s)
{
    if (s->presses) {
        view_busy(s->view, "stopping…");
        tide_agent_stop(s->chat.core.agent);
    } else if (s->leave) {
        tide_agent_shutdown(s->chat.core.agent);
    }
}

static void show_warning(struct screen *s, const struct tide_agent_event *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    view_warning(s->view, trouble_text(&a, e->text, e->why));
}

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct screen *s = arg;
    struct str text = {e->text ? e->text : "", e->text ? e->text_len : 0};

    if (s->chat.core.agent)
        stop_if_told(s);
    switch (e->what) {
    case TIDE_AGENT_TEXT:
        view_text(s->view, text);
        break;
    case TIDE_AGENT_TEXT_END:
        if (!s->chat.cli->out.tty) /* byte for byte: the reader sees where an answer ends */
            view_text(s->view, STR("\n"));
        view_text_end(s->view);
        break;
    case TIDE_AGENT_DISCARD:
        view_text_discard(s->view);
        break;
    case TIDE_AGENT_WAIT:
        if (s->line)
            line_edit_gather(s->line);
        view_tick(s->view);
        break;
    case TIDE_AGENT_RETRY:
        show_retry(s, e);
        break;
    case TIDE_AGENT_TOOL:
        view_tool_start(s->view, summary_of(s, e->tool, e->args));
        break;
    case TIDE_AGENT_TOOL_END:
        view_tool_end(s->view, summary_of(s, e->tool, e->args), outcome_of(e->failed, text), e->ms, text);
        view_busy(s->view, "thinking");
        break;
    case TIDE_AGENT_USAGE:
        add_usage(s, e);
        break;
    case TIDE_AGENT_NOTICE:
        show_warning(s, e);
        break;
    }
}

/* ---- the history ---- */

struct redraw {
    struct screen *s;
    struct arena arena;
    size_t n, known;          /* messages: so far, and drawn before */
    const struct json *calls; /* of the latest answer */
};

static int draw_message(void *arg, const struct tide_message *m)
{
    struct redraw *r = arg;
    struct str text = {m->text, m->text_len};
    struct json *calls = NULL;
    bool is_new = r->n++ >= r->known;

    if (m->is_summary) {
        if (is_new)
            view_summary(r->s->view, text);
    } else if (m->role == TIDE_ROLE_USER) {
        if (!m->from_hook && is_new)
            view_user(r->s->view, text);
    } else if (m->role == TIDE_ROLE_ASSISTANT) {
        if (text.len && is_new) {
            view_text(r->s->view, text);
            if (!r->s->chat.cli->out.tty)
                view_text(r->s->view, STR("\n"));
            view_text_end(r->s->view);
        }
        if (m->calls && !json_parse(&r->arena, arena_dup(&r->arena, str_from(m->calls)), NULL, &calls, NULL, NULL))
            r->calls = calls;
    } else {
        for (const struct json *c = is_new && r->calls ? r->calls->first : NULL; c; c = c->next)
            if (str_eq(json_get_text(&r->arena, c, STR("id")), str_from(m->call_id)))
                view_tool_end(r->s->view,
                              summary_of(r->s, arena_dup(&r->arena, json_get_text(&r->arena, c, STR("name"))).ptr,
                                         arena_dup(&r->arena, json_source(json_get(c, STR("args")))).ptr),
                              outcome_of(m->failed, text), -1, text);
    }
    return 0;
}

/* What stands behind the first `known` messages; how many there are. */
static size_t draw_history(struct screen *s, size_t known)
{
    struct redraw r = {.s = s, .arena = ARENA_INIT, .known = known};
    struct tide_err err = {0};

    if (tide_agent_read_history(s->chat.core.agent, draw_message, &r, &err))
        screen_error(s, &err);
    arena_done(&r.arena);
    return r.n;
}

void screen_redraw(struct screen *s)
{
    draw_history(s, 0);
}

/* ---- working ---- */

static void begin_work(struct screen *s)
{
    arena_reset(&s->scratch);
    s->usage = (struct view_usage){.ms = -1};
    s->began_ms = monotonic_ms();
    if (s->line)
        line_edit_hush(s->line);
    view_busy(s->view, "thinking");
}

void screen_error(struct screen *s, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    if (s->chat.want->no_store)
        chat_drop_hints(err);
    view_error(s->view, err_text(&a, err));
}

static void end_work(struct screen *s, enum tide_code code, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    view_busy(s->view, NULL);
    view_text_end(s->view);
    s->usage.ms = monotonic_ms() - s->began_ms;
    if (s->presses && s->line)
        line_edit_hold(s->line);
    if (code == TIDE_WAITING && s->chat.want->no_store) {
        view_notice(s->view, arena_printf(&a, "%s: /resume asks again", err->msg));
    } else if (code == TIDE_WAITING) {
        view_notice(s->view, arena_printf(&a, "%s: /resume asks again; elsewhere `%s resume %s --input allow`",
                                          err->msg, own_command(&a), tide_session_id(s->chat.core.session)));
    } else if (code == TIDE_CANCELLED) {
        view_notice(s->view, err->msg);
    } else if (code == TIDE_FENCED || code == TIDE_HELD) {
        view_error(s->view, arena_printf(&a, "%s (another process runs this session)", err->msg));
    } else if (code && code != TIDE_NOT_FOUND) {
        screen_error(s, err);
    }
    if (s->usage.input_tokens + s->usage.output_tokens > 0)
        view_usage(s->view, &s->usage);
}

static void say_prompt(struct screen *s, const char *typed)
{
    struct tide_err err = {0};
    const char *prompt = typed;
    enum tide_code code = chat_expand(&s->chat.core, typed, &prompt, &err);

    if (!code && !s->chat.core.session)
        code = chat_new(&s->chat.core, typed, &err);
    if (code) {
        screen_error(s, &err);
        line_edit_prefill(s->line, str_from(typed)); /* nothing that was typed is lost */
        return;
    }
    begin_work(s);
    code = chat_say(&s->chat.core, prompt, NULL, &err);
    end_work(s, code, &err);
}

void screen_go_on(struct screen *s)
{
    struct tide_err err = {0};
    enum tide_code code;

    begin_work(s);
    code = tide_agent_resume(s->chat.core.agent, NULL, NULL, NULL, &err);
    end_work(s, code, &err);
}

void screen_compact(struct screen *s, const char *focus)
{
    struct tide_err err = {0};
    enum tide_code code;

    begin_work(s);
    code = tide_agent_compact(s->chat.core.agent, focus, &err);
    if (code == TIDE_NOT_FOUND || code == TIDE_CONFLICT) { /* nothing was begun */
        view_busy(s->view, NULL);
        screen_error(s, &err);
        return;
    }
    end_work(s, code, &err);
    if (!code)
        view_notice(s->view,
                    "from now on the model gets this summary; the log keeps everything, and /rollback restores it");
}

static bool has_status(struct screen *s, enum tide_status status)
{
    const struct tide_session_info *info;

    return !tide_session_get_info(s->chat.core.session, &info, NULL) && info->status == status;
}

static void take_up(struct screen *s)
{
    bool waiting;

    screen_redraw(s);
    waiting = has_status(s, TIDE_STATUS_WAITING);
    if (waiting || chat_needs_resume(&s->chat.core)) {
        view_notice(s->view, waiting ? "it waits for your answer" : "it was interrupted: continuing where it stopped");
        screen_go_on(s);
    } else if (chat_was_stopped(&s->chat.core)) {
        view_notice(s->view, "you stopped it here: /resume continues, or send another prompt");
    }
}

enum tide_code screen_switch(struct screen *s, const char *id, struct tide_err *err)
{
    struct tide_err ignored = {0};
    char before[TIDE_ID_SIZE] = "";
    tide_session *session = NULL;

    if (tide_session_open(s->chat.cli->store, id, TIDE_SESSION_APPEND, &session, err))
        return err->code;
    if (tide_session_check_trust(session, err)) { /* before its directory is looked at */
        tide_session_close(session);
        return err->code;
    }
    if (session_kind_of(session) != TIDE_KIND_CHAT) {
        tide_fail_session(err, TIDE_INVALID, tide_session_id(session), "was not made by a chat");
        tide_session_close(session);
        return err->code;
    }
    if (s->chat.core.session)
        snprintf(before, sizeof(before), "%s", tide_session_id(s->chat.core.session));
    s->chat.core.setup.want.model = NULL;
    if (chat_take(&s->chat.core, session, err)) {
        if (before[0] && chat_open(&s->chat.core, before, NULL, 0, &ignored)) /* back to where we were */
            screen_error(s, &ignored);
        return err->code;
    }
    view_clear(s->view);
    take_up(s);
    return TIDE_OK;
}

/* ---- reading ---- */

/* Where typed prompts are kept: beside the settings, unless they say where. */
static const char *history_path(struct screen *s)
{
    const char *set = config_text(s->chat.core.setup.settings.config, "history_file");
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME"), *dir;
    char *path = set ? settings_path(&s->chat.core.setup.settings, set) : NULL;
    const char *kept;

    if (path) {
        kept = arena_dup(&s->chat.core.setup.arena, str_from(path)).ptr;
        free(path);
        return kept;
    }
    state = state && state[0] == '/' ? state : NULL; /* the specification: a relative one is to be ignored */
    if (!state && !home)
        return NULL;
    dir = state ? arena_printf(&s->chat.core.setup.arena, "%s/tidemark", state)
                : arena_printf(&s->chat.core.setup.arena, "%s/.local/state/tidemark", home);
    for (char *slash = strchr((char *)(uintptr_t)dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(dir, 0700);
        *slash = '/';
    }
    mkdir(dir, 0700);
    return arena_printf(&s->chat.core.setup.arena, "%s/chat-history", dir);
}

/* "~/src" where that is what people call it. */
static const char *short_path(struct arena *a, const char *path)
{
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;

    if (len < 2 || strncmp(path, home, len) != 0 || (path[len] && path[len] != '/'))
        return path;
    return arena_printf(a, "~%s", path + len);
}

static void greet_person(struct screen *s)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct agent_want *w = &s->chat.want->who;
    const char *id = s->chat.core.session ? tide_session_id(s->chat.core.session) : NULL;
    const char *parts[6] = {"tidemark chat"};
    size_t n = 1;
    struct chat_about about;
    bool twice;

    chat_about(&s->chat.core, &a, &about);
    twice = !*about.model || strcmp(about.provider, about.model) == 0; /* a script is both */
    if (id)
        parts[n++] = id;
    parts[n++] = arena_printf(&a, "%s%s%s%s", about.provider, twice ? "" : " ", twice ? "" : about.model,
                              !id || w->provider || w->model || w->script ? "" : ", as stored");
    parts[n++] = short_path(&a, about.working_dir);
    parts[n++] = "/help";
    view_heading(s->view, parts);
    if (about.instructions)
        view_notice(s->view, arena_printf(&a, "instructions of the project: %s", about.instructions));
    for (size_t i = 0; i < s->chat.core.project.n; i++)
        if (s->chat.core.project.files[i].refused)
            view_warning(s->view, arena_printf(&a, CHAT_FILE_REFUSED, s->chat.core.project.files[i].name,
                                               s->chat.core.project.files[i].refused));
}

static void read_and_work(struct screen *s)
{
    AUTO(buf_done) struct buf line = BUF_INIT((size_t)16 << 20);

    while (!s->leave) {
        enum line_result got = line_edit_read(s->line, "› ", &line);
        const char *text = buf_cstr(&line);

        if (got == LINE_END)
            break;
        if (got == LINE_CANCELLED) {
            if (s->presses) /* the first one may have stopped a turn */
                break;
            view_notice(s->view, "Ctrl-C again, or /quit, leaves");
        }
        s->presses = got == LINE_CANCELLED;
        if (got != LINE_OK || str_is_blank(str_from(text)))
            continue;
        view_typed(s->view);
        if (text[0] == '/')
            screen_command(s, text);
        else
            say_prompt(s, text);
    }
    if (s->chat.core.session && !s->chat.want->no_store) {
        AUTO(arena_done) struct arena a = ARENA_INIT;

        view_command(s->view,
                     arena_printf(&a, "%s chat --resume %s", own_command(&a), tide_session_id(s->chat.core.session)),
                     "continues here");
    }
}

static void tell_line(void *arg, const char *line, const char *change)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct screen *s = arg;

    view_notice(s->view, offer_text(&a, line, change));
}

static void tell_trouble(void *arg, const char *line, const struct tide_err *why)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct screen *s = arg;

    view_notice(s->view, trouble_text(&a, line, why));
}

static bool is_stopped(void *arg)
{
    const struct screen *s = arg;

    return s->presses || s->leave;
}

static enum tide_code begin_screen(struct screen *s, struct cli *cli, const struct chat_want *want,
                                   tide_approve_fn *approve, struct tide_err *err)
{
    const struct view_config look = {.out = STDOUT_FILENO,
                                     .err = STDERR_FILENO,
                                     .tty = cli->out.tty,
                                     .color = cli->out.color,
                                     .dumb = !terminal_is_capable()};

    s->view = view_new(&look);
    if (chat_init(&s->chat, cli, want, err))
        return err->code;
    s->chat.core.setup.opt.event = on_event;
    s->chat.core.setup.opt.approve = approve;
    s->chat.core.setup.opt.arg = s;
    if (!config_text(s->chat.core.setup.settings.config, "log_file")) /* it would be drawn into the conversation */
        tide_log_set(TIDE_LOG_OFF, NULL, NULL);
    s->chat.core.setup.tell = tell_line;
    s->chat.core.setup.tell_trouble = tell_trouble;
    s->chat.core.stopped = is_stopped;
    if (chat_store(&s->chat, err) || ((want->resume || want->latest) && chat_resume(&s->chat, err)))
        return err->code;
    set_signals(s);
    return TIDE_OK;
}

/* The chat that --resume without an id is about. */
static enum tide_code pick_first(struct screen *s, struct tide_err *err)
{
    char id[TIDE_ID_SIZE];

    if (!screen_can_pick(s))
        return args_refuse(err, "resume",
                           "--resume without an ID needs a terminal that can move its cursor (TERM): "
                           "give --resume ID, or --continue");
    if (screen_pick(s, id, err))
        return err->code;
    s->leave = !id[0];
    return id[0] ? chat_open(&s->chat.core, id, NULL, 0, err) : TIDE_OK;
}

enum tide_code chat_screen(struct cli *cli, const struct chat_want *want, struct tide_err *err)
{
    struct screen s = {.leave = 0};
    struct line_config edit = {
        .in = STDIN_FILENO, .out = STDOUT_FILENO, .color = cli->out.color, .wake_fd = -1, .stop = &s.leave};
    enum tide_code code = begin_screen(&s, cli, want, screen_approve, err);

    if (!code && !s.chat.core.session && !want->pick)
        code = agent_setup_check(&s.chat.core.setup, NULL, err); /* now, and not when the first prompt is typed */
    if (!code) {
        s.answers = line_edit_new(&edit);
        edit.history = history_path(&s);
        edit.arg = &s;
        edit.complete = screen_complete;
        s.line = line_edit_new(&edit);
        code = want->pick ? pick_first(&s, err) : TIDE_OK;
        if (!code && !s.leave) {
            greet_person(&s);
            if (s.chat.core.session)
                take_up(&s);
            read_and_work(&s);
        }
        line_edit_free(s.line);
        line_edit_free(s.answers);
    }
    current = NULL;
    view_free(s.view);
    arena_done(&s.scratch);
    chat_done(&s.chat);
    return code;
}

static enum tide_decision approve_yes(void *arg, const struct tide_approval *a)
{
    const struct screen *s = arg;

    return agent_setup_yes(&s->chat.core.setup, a);
}

/* Another process works on it: what that commits is shown until it has ended. TIDE_OK: it was cut, and we may continue. */
static enum tide_code watch_other(struct screen *s, tide_watch *watch, size_t *known, struct tide_err *err)
{
    int changed = 0;

    if (!has_status(s, TIDE_STATUS_RUNNING))
        return TIDE_HELD; /* it is held for something else: as the error says */
    signals_note(0);      /* we only look on */
    view_notice(s->view, "another process runs this session: its output is shown");
    while (has_status(s, TIDE_STATUS_RUNNING)) {
        if (!await_change(watch))
            return tide_fail(err, TIDE_CANCELLED, "stopped watching");
        if (tide_watch_wait(watch, 0, &changed, err) || tide_session_refresh(s->chat.core.session, err))
            return err->code;
        *known = draw_history(s, *known);
    }
    set_signals(s);
    if (has_status(s, TIDE_STATUS_WAITING))
        return tide_fail(err, TIDE_WAITING, "it waits for an answer");
    return chat_needs_resume(&s->chat.core) ? TIDE_OK : tide_fail(err, TIDE_NOT_FOUND, "nothing is left to do");
}

enum tide_code chat_watch(struct cli *cli, const struct chat_want *want, struct tide_err *err)
{
    tide_watch *watch = NULL;
    struct screen s = {.leave = 0};
    const char *prompt = NULL;
    enum tide_code code = begin_screen(&s, cli, want, want->who.yes ? approve_yes : NULL, err);
    size_t known;

    if (!code && want->prompt)
        code = chat_expand(&s.chat.core, want->prompt, &prompt, err);
    if (!code && !s.chat.core.session)
        code = chat_new(&s.chat.core, want->prompt, err);
    if (!code && !prompt)
        code = tide_watch_open(cli->store, &watch, err);
    if (!code) {
        known = draw_history(&s, 0);
        if (prompt)
            view_user(s.view, str_from(want->prompt));
        if (cli->out.tty && isatty(STDIN_FILENO))
            tty_quiet(STDIN_FILENO); /* what is typed would stand in the line that shows that it works */
        begin_work(&s);
        while ((code = prompt ? chat_say(&s.chat.core, prompt, NULL, err)
                              : tide_agent_resume(s.chat.core.agent, NULL, NULL, NULL, err)) == TIDE_HELD &&
               watch && (code = watch_other(&s, watch, &known, err)) == TIDE_OK)
            continue;
        end_work(&s, code, err);
        /* What it waits for, or was stopped at, is said as chat_print() says it. */
        cli->exit_status = code == TIDE_NOT_FOUND ? 0 : code == TIDE_CANCELLED ? 130 : tide_code_exit(code);
        code =
            view_unwritten(s.view) ? tide_fail_errno(err, view_unwritten(s.view), "write to standard output") : TIDE_OK;
        tty_restore();
    }
    tide_watch_close(watch);
    current = NULL;
    view_free(s.view);
    arena_done(&s.scratch);
    chat_done(&s.chat);
    return code;
}
