/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions resume: going on with a graph, from where it stands or from a checkpoint, with other values or another
 * version of the graph. Everything that can be refused is said before anything is written. Chats and programs go on as
 * with `tidemark resume`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/graph_set.h"
#include "cli/graph_view.h"
#include "cli/launch.h"
#include "cli/line_tty.h"
#include "cli/lines.h"
#include "cli/resume.h"
#include "graph/resume.h"

#define MEMORY_MAX ((size_t)64 << 20)
#define SECRET_MAX 65536

static const struct opt options[] = {
    {.name = "checkpoint",
     .type = VALUE_CHECKPOINT,
     .value = "CHECKPOINT",
     .help = "go back to it first; of a completed session: in a fork that begins there"},
    {.name = "set",
     .type = VALUE_TEXT,
     .value = "KEY=VALUE",
     .many = true,
     .help = "set a key of the memory first: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard input), KEY=$VARIABLE, "
             "KEY==text as it is; may be given more than once"},
    {.name = "graph", .type = VALUE_FILE, .value = "FILE", .help = "another version of the graph"},
    {.name = "map",
     .type = VALUE_TEXT,
     .value = "OLD=NEW",
     .many = true,
     .help = "this node is called otherwise in that graph; may be given more than once"},
    {.name = "fallback", .help = "where it cannot go on from there: take the newest checkpoint from which it can"},
    {.name = "dry-run", .help = "only say what would be done, and everything that stands in the way"},
    {.name = "retry",
     .type = VALUE_TEXT,
     .value = "NODE",
     .many = true,
     .help = "this node may run again although it must happen once; may be given more than once"},
    {.name = "happened",
     .type = VALUE_TEXT,
     .value = "NODE",
     .many = true,
     .help = "this node, which must happen once, did happen; may be given more than once"},
    {.name = "reuse-effects", .help = "with --checkpoint: what must happen once and did answers from the log"},
    {.name = "redo-effects", .help = "with --checkpoint: it may happen again"},
    {.name = "input", .type = VALUE_TEXT, .value = "TEXT", .help = "the answer to what it waits for"},
    {.name = "input-json", .type = VALUE_TEXT, .value = "JSON", .help = "the answer, as JSON"},
    {.name = "token",
     .type = VALUE_TEXT,
     .value = "TOKEN|-|@FILE",
     .help = "the token of the wait; others can see it in `ps`: better - (standard input) or @ and a file"},
    {.name = "token-fd",
     .type = VALUE_INT,
     .value = "FD",
     .min = 1,
     .max = 1 << 20,
     .help = "write the token of the next wait into this descriptor instead of showing it"},
    {.name = "on-store-error",
     .type = VALUE_WORD,
     .words = "stop continue",
     .value = "HOW",
     .help = "when the store cannot be written: stop (the default) or continue, as of `tidemark run`"},
    {.name = "parallel", .type = VALUE_INT, .value = "N", .min = 1, .max = 1024, .help = "nodes at once"},
    {.name = "provider",
     .type = VALUE_WORD,
     .words = "anthropic openai script",
     .value = "TYPE",
     .help = "who answers in all nodes (default: as the graph says, else as set)"},
    {.name = "model", .type = VALUE_TEXT, .value = "NAME", .help = "the model of all nodes (default: the same)"},
    {.name = "script", .type = VALUE_FILE, .value = "FILE", .help = "answer from this file: no account, no network"},
    {.name = "yes", .help = "allow every tool that the settings do not refuse"},
    {.name = "output",
     .type = VALUE_WORD,
     .words = "text json stream-json",
     .value = "HOW",
     .help = "what its last nodes gave (text, the default), one object, or one object a line as it happens"},
    {.name = "quiet", .letter = 'q', .help = "show nothing of what happens, only what comes of it"},
    {.name = NULL},
};

struct again {
    struct cli *cli;
    struct resume r; /* of what a chat or a program takes as well */
    struct graph_want want;
    struct buf memory, token, input;
    const char **sets, **maps, **retry, **happened, **renames;
    struct arena arena;
    tide_session *session;
    tide_graph *graph;
};

/* ---- what is given ---- */

static const char **all_of(const struct cli *cli, const char *option)
{
    const char **list = mem_array(cli->args.n_more + 2, sizeof(*list));

    for (size_t i = 0; (list[i] = args_nth(&cli->args, option, i)); i++)
        ;
    return list;
}

static enum tide_code take_maps(struct again *a, struct tide_err *err)
{
    size_t n = 0;

    a->renames = mem_array(2 * a->cli->args.n_more + 3, sizeof(char *));
    for (size_t i = 0; a->maps[i]; i++) {
        const char *eq = strchr(a->maps[i], '=');

        if (!eq || eq == a->maps[i] || !eq[1])
            return tide_fail(err, TIDE_INVALID, "--map %.60s: give OLD=NEW", a->maps[i]);
        a->renames[n++] = arena_dup(&a->arena, (struct str){a->maps[i], (size_t)(eq - a->maps[i])}).ptr;
        a->renames[n++] = eq + 1;
    }
    a->renames[n] = NULL;
    return TIDE_OK;
}

static bool reads_input(const struct again *a)
{
    for (size_t i = 0; a->sets[i]; i++) {
        const char *eq = strchr(a->sets[i], '=');

        if (eq && strcmp(eq + 1, "-") == 0)
            return true;
    }
    return false;
}

static enum tide_code check_together(const struct again *a, struct tide_err *err)
{
    const struct args *args = &a->cli->args;
    bool reuse = args_on(args, "reuse-effects"), redo = args_on(args, "redo-effects");
    const char *token = args_text(args, "token");

    if (reuse && redo)
        return tide_fail(err, TIDE_INVALID, "--reuse-effects and --redo-effects: give one of them");
    if ((reuse || redo) && !args_text(args, "checkpoint") && !args_on(args, "fallback"))
        return tide_fail(err, TIDE_INVALID, "--%s-effects: only with --checkpoint does anything happen again",
                         reuse ? "reuse" : "redo");
    if (token && strcmp(token, "-") == 0 && reads_input(a))
        return tide_fail(err, TIDE_INVALID, "--token and --set: only one of them can be standard input");
    return TIDE_OK;
}

static enum tide_code take_all(struct again *a, struct tide_err *err)
{
    const struct args *args = &a->cli->args;
    struct tide_graph_options *o = &a->want.opt;

    if (check_together(a, err) || take_maps(a, err) ||
        take_token(args_text(args, "token"), &a->token, &a->r.token, err) ||
        take_input(a->cli, &a->input, &a->r.input, err) || (a->sets[0] && graph_set_read(a->sets, &a->memory, err)))
        return err->code;
    a->want = (struct graph_want){.resume = true,
                                  .provider = args_text(args, "provider"),
                                  .model = args_text(args, "model"),
                                  .script = args_text(args, "script"),
                                  .yes = args_on(args, "yes"),
                                  .output = args_text(args, "output"),
                                  .quiet = args_on(args, "quiet"),
                                  .token_fd = (int)args_int(args, "token-fd", 0)};
    *o = (struct tide_graph_options){.memory = a->memory.len ? buf_cstr(&a->memory) : NULL,
                                     .threads = (int)args_int(args, "parallel", 0),
                                     .on_store_error_continue = is_continue(args),
                                     .token = a->r.token,
                                     .input = a->r.input,
                                     .checkpoint = args_text(args, "checkpoint"),
                                     .renames = a->renames,
                                     .retry = a->retry,
                                     .happened = a->happened,
                                     .rollback = (args_on(args, "reuse-effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                                 (args_on(args, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u),
                                     .fallback = args_on(args, "fallback")};
    return a->want.token_fd ? check_fd(a->want.token_fd, "--token-fd", err) : TIDE_OK;
}

/* ---- the graph ---- */

static bool is_hive(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    return !json_parse(&a, text, NULL, &v, NULL, NULL) && v->type == JSON_OBJECT &&
           !json_get(v, STR("tidemark_graph")) && spec_is_hive(v);
}

static enum tide_code read_graph(struct again *a, const char *file, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(4 * SPEC_MAX_BYTES), json = BUF_INIT(4 * SPEC_MAX_BYTES);
    const char *slash = strrchr(file, '/');
    const char *dir = slash ? arena_dup(&a->arena, (struct str){file, (size_t)(slash - file) + 1}).ptr : ".";
    struct str view;

    if (strcmp(file, "-") == 0 && reads_input(a))
        return tide_fail(err, TIDE_INVALID, "--graph and --set: only one of them can be standard input");
    if (spec_read(file, &text, err))
        return err->code;
    view = buf_view(&text);
    if (is_hive(view)) {
        if (spec_from_hive(view, NULL, NULL, &json, err))
            return tide_wrap(err, "%.150s", file);
        view = buf_view(&json);
    }
    if (tide_graph_parse(view.ptr, view.len, dir, NULL, NULL, &a->graph, err))
        return tide_fail(err, err->code, "%.100s: %.300s: `tidemark graph check` tells all", file,
                         arena_dup(&a->arena, str_from(err->msg)).ptr);
    return TIDE_OK;
}

static enum tide_code open_graph(struct again *a, struct tide_err *err)
{
    const char *file = args_text(&a->cli->args, "graph");

    return file ? read_graph(a, file, err) : tide_graph_stored(a->session, &a->graph, err);
}

/* ---- what it would do, for people ---- */

static void show_tasks(struct out *out, struct arena *arena, const struct map *tasks)
{
    static const char *const words[] = {"ready", "was cut", "is to be tried again", "failed", "asks where to go on"};

    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct task *t = e->value;

        out_field(out, "runs", arena_printf(arena, "%s (%s)", e->key, words[t->state]));
    }
}

/* Which keys: what they are set to may be a secret. */
static void show_sets(struct out *out, struct arena *arena, const struct outlook *o)
{
    struct json *v = NULL;

    if (!o->opt->memory || json_parse(arena, str_from(o->opt->memory), NULL, &v, NULL, NULL))
        return;
    for (const struct json *m = v->first; m; m = m->next) {
        struct str key = json_key_text(arena, m);

        out_field(out, "sets",
                  arena_printf(arena, "%.*s%s", STR_ARG(key), exec_is_excluded(o->x, key) ? " (never stored)" : ""));
    }
}

static void show_reasons(struct out *out, struct arena *arena, const struct outlook *o)
{
    for (size_t i = 0; i < o->n_warnings; i++)
        out_field(out, "note", o->warnings[i]);
    for (size_t i = 0; i < o->n_refused; i++) {
        const struct refusal *r = &o->refused[i];

        out_field(out, "refused", r->remedy[0] ? arena_printf(arena, "%s: %s", r->what, r->remedy) : r->what);
    }
}

static void show_outlook(struct again *a, const struct outlook *o)
{
    struct out *out = &a->cli->out;
    const struct state *view = o->x->view ? o->x->view : o->s->state;
    const struct content *c = &view->content;

    out_field(out, "session", o->s->head.id);
    out_field(out, "from",
              o->checkpoint[0] ? arena_printf(&a->arena, "checkpoint %s, seq %" PRId64, o->checkpoint, o->seq)
                               : arena_printf(&a->arena, "where it stands, seq %" PRId64, o->s->state->seq));
    out_field(out, "does", o->fork ? "begins a fork there" : o->rollback ? "goes back there" : "goes on");
    for (struct map_entry *e = map_next(&c->visits, NULL); e; e = map_next(&c->visits, e))
        if (!map_get(&c->position.active, map_key(e)) && !map_get(&c->position.ready, map_key(e)))
            out_field(out, "complete", e->key);
    show_tasks(out, &a->arena, &c->position.active);
    show_tasks(out, &a->arena, &c->position.ready);
    show_sets(out, &a->arena, o);
    show_reasons(out, &a->arena, o);
}

static enum tide_code dry_run(struct again *a, const struct outlook *o)
{
    if (a->cli->out.json) {
        outlook_json(o, &a->cli->out.text);
        out_json_end(&a->cli->out);
    } else {
        show_outlook(a, o);
    }
    a->cli->exit_status = o->n_refused ? tide_code_exit(o->refused[0].code) : 0;
    return TIDE_OK;
}

/* ---- what is stored nowhere is asked for ---- */

static void add_text(struct buf *memory, const char *key, struct str value)
{
    if (!memory->len)
        buf_add_str(memory, STR("{}"));
    memory->len--; /* before the closing brace: one more member */
    if (memory->len > 1)
        buf_add_char(memory, ',');
    json_quote(memory, str_from(key));
    buf_add_char(memory, ':');
    json_quote(memory, value);
    buf_add_char(memory, '}');
}

static enum tide_code ask_for(struct again *a, const struct missing *m, struct tide_err *err)
{
    struct tide_err ignored;
    struct lines in;
    struct str line;
    enum line_got got;

    if (!str_is_utf8(str_from(m->key), NULL))
        return TIDE_OK;
    lines_init(&in, STDIN_FILENO, SECRET_MAX);
    fprintf(stderr, "%s of node %s, which is never stored: ", m->key, m->node);
    tty_quiet(STDIN_FILENO);
    got = lines_next(&in, true, &line, &ignored);
    tty_restore();
    fputc('\n', stderr);
    if (got == LINE_HERE && line.len)
        add_text(&a->memory, m->key, line);
    if (in.buf.ptr)
        explicit_bzero(in.buf.ptr, in.buf.len);
    lines_done(&in);
    return got == LINE_STOPPED ? tide_fail(err, TIDE_CANCELLED, "stopped, and nothing was done") : TIDE_OK;
}

/* Once for every key, whoever needs it. */
static enum tide_code ask_for_all(struct again *a, const struct outlook *o, bool *ret_asked, struct tide_err *err)
{
    *ret_asked = false;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return TIDE_OK;
    for (size_t i = 0; i < o->n_missing; i++) {
        const struct missing *m = &o->missing[i];
        bool before = false;

        for (size_t k = 0; k < i; k++)
            before |= strcmp(o->missing[k].key, m->key) == 0;
        if (!m->secret || before)
            continue;
        if (ask_for(a, m, err))
            return err->code;
        *ret_asked = true;
    }
    a->want.opt.memory = a->memory.len ? buf_cstr(&a->memory) : NULL;
    return TIDE_OK;
}

/* ---- all of it ---- */

static enum tide_code look(struct again *a, bool *ret_again, struct tide_err *err)
{
    struct outlook o;
    enum tide_code code = outlook_take(&o, a->session, a->graph, &a->want.opt, err);
    bool ask = !*ret_again; /* only once: who gives nothing then is told what is missing */

    *ret_again = false;
    if (!code && args_on(&a->cli->args, "dry-run"))
        code = dry_run(a, &o);
    else if (!code && ask)
        code = ask_for_all(a, &o, ret_again, err);
    if (!code && !*ret_again && !args_on(&a->cli->args, "dry-run"))
        code = outlook_error(&o, err);
    outlook_done(&o);
    return code;
}

static enum tide_code resume_this(struct again *a, struct tide_err *err)
{
    bool again = false;

    if (open_graph(a, err) || look(a, &again, err) || (again && look(a, &again, err)))
        return err->code;
    if (args_on(&a->cli->args, "dry-run"))
        return TIDE_OK;
    if (graph_check_here(a->cli, a->graph, &a->want, err))
        return err->code;
    return graph_drive(a->cli, a->session, a->graph, &a->want, err);
}

/* The log cannot be read to its end: on from the newest checkpoint that can be, in a fork, said aloud. */
static enum tide_code resume_damaged(struct again *a, struct tide_err *err)
{
    struct tide_graph_options *o = &a->want.opt;
    bool dry = args_on(&a->cli->args, "dry-run");
    struct rescue r;

    if (graph_rescue(a->cli->store, a->r.id, o->checkpoint, o->fallback, dry, &r, err))
        return err->code;
    say("session %s is damaged: %s", r.session, r.damage.msg);
    say("%s a fork from checkpoint %s, seq %" PRId64 ", the newest that can be read%s%s",
        dry ? "it would go on in" : "going on in", r.checkpoint, r.seq, r.fork[0] ? ": " : "", r.fork);
    if (dry)
        return TIDE_OK;
    o->checkpoint = NULL;
    if (tide_session_open(a->cli->store, r.fork, TIDE_SESSION_APPEND, &a->session, err))
        return err->code;
    return resume_this(a, err);
}

/* What only means something to a graph. */
static enum tide_code refuse_for_others(const struct again *a, struct tide_err *err)
{
    static const char *const only[] = {"checkpoint", "graph",    "fallback", "dry-run", "reuse-effects", "redo-effects",
                                       "parallel",   "provider", "model",    "script",  "output"};
    const struct args *args = &a->cli->args;
    const char *given = a->sets[0] ? "set" : a->maps[0] ? "map" : NULL;

    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]) && !given; i++)
        given = args_on(args, only[i]) || args_text(args, only[i]) ? only[i] : NULL;
    if (given)
        return tide_fail(err, TIDE_INVALID, "session '%s' runs no graph: --%s is for graphs", a->r.id, given);
    return TIDE_OK;
}

/* A fork that nobody has run yet goes on with its parent's. */
static bool is_graph(tide_session *session)
{
    const struct state *state = session->state;

    return graph_made(session) || (!state->ledger.program_seq && state->content.position.graph_seq);
}

static enum tide_code resume(struct again *a, struct tide_err *err)
{
    bool dry = args_on(&a->cli->args, "dry-run");
    enum tide_code code;

    if (take_all(a, err) || cli_store_open(a->cli, dry ? NEED_READ : NEED_WRITE, 0, err))
        return err->code;
    code = tide_session_open(a->cli->store, a->r.id, dry ? TIDE_SESSION_READ : TIDE_SESSION_APPEND, &a->session, err);
    if (code == TIDE_CORRUPT)
        return resume_damaged(a, err);
    if (code)
        return cli_advise_session(code, err);
    if (is_graph(a->session))
        return resume_this(a, err);
    if (refuse_for_others(a, err))
        return err->code;
    tide_session_close(TAKE(a->session));
    cli_store_close(a->cli);
    return resume_session(a->cli, &a->r, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct again a = {.cli = cli,
                      .memory = BUF_INIT(MEMORY_MAX),
                      .token = BUF_INIT(TOKEN_MAX),
                      .input = BUF_INIT(INPUT_MAX),
                      .sets = all_of(cli, "set"),
                      .maps = all_of(cli, "map"),
                      .retry = all_of(cli, "retry"),
                      .happened = all_of(cli, "happened"),
                      .arena = ARENA_INIT};
    enum tide_code code;

    a.r = (struct resume){.id = args_operand(&cli->args, 0),
                          .retry = a.retry,
                          .happened = a.happened,
                          .degrade = is_continue(&cli->args),
                          .token_out_fd = (int)args_int(&cli->args, "token-fd", -1)};
    code = resume(&a, err);
    if (a.memory.ptr)
        explicit_bzero(a.memory.ptr, a.memory.len);
    tide_graph_free(a.graph);
    tide_session_close(a.session);
    buf_done(&a.memory);
    buf_done(&a.token);
    buf_done(&a.input);
    free(a.sets);
    free(a.maps);
    free(a.retry);
    free(a.happened);
    free(a.renames);
    arena_done(&a.arena);
    return code;
}

const struct command cmd_sessions_resume = {
    .group = "sessions",
    .name = "resume",
    .run = run,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "go on with a graph, from where it stands or from a checkpoint",
    .more =
        "Nodes that are complete are not run again. What stands in the way is said before anything is written: --dry-run\n"
        "lists all of it. Values that are never stored are asked for again. Chats and programs go on as with\n"
        "`tidemark resume`. Exit status: as of `tidemark run`; 2 refused, 3 not found, 4 held or an effect in the way,\n"
        "5 damaged, 8 the token is refused.",
};
