/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each action: the words of its command. Arguments become options, in the order in which they stand. Every
 * command of ours begins with own_command(): what names the store here names it again there.
 */
#include "cli/next_command.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/remote.h"

struct rendering {
    struct arena *arena;
    struct buf text;
    const struct tide_next *next;
    const struct json *args;
    bool failed;
};

const char *argument_option(struct arena *a, const char *argument)
{
    struct buf option = BUF_INIT(300);
    const char *name;

    buf_add_str(&option, STR("--"));
    for (; *argument; argument++)
        buf_add_char(&option, *argument == '_' ? '-' : *argument);
    name = arena_dup(a, buf_view(&option)).ptr;
    buf_done(&option);
    return name;
}

/* As a shell takes it. */
static void quote_word(struct buf *out, const char *word)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+=,";

    if (word[0] && !word[strspn(word, safe)]) {
        buf_add_str(out, str_from(word));
        return;
    }
    buf_add_char(out, '\'');
    for (; *word; word++)
        buf_add_str(out, *word == '\'' ? STR("'\\''") : (struct str){word, 1});
    buf_add_char(out, '\'');
}

static void put_word(struct rendering *r, const char *option, struct str word, const char *after)
{
    const char *whole = arena_printf(r->arena, "%.*s%s", STR_ARG(word), after);

    for (const char *c = whole; *c; c++)
        r->failed |= (unsigned char)*c < ' ' || *c == 0x7f;
    buf_addf(&r->text, "%s%s ", *option ? " " : "", option);
    quote_word(&r->text, whole);
}

/* ---- what is given again ---- */

#define REPEATED "TIDEMARK_REPEATED" /* for the commands inside a run, whose messages a person reads out here */

static char *own;                     /* NULL: nothing was given */
static const struct opt *own_options; /* of the command that runs; NULL: none was found */
static bool to_server;                /* only what works through it is offered */

void own_command_init(const struct args *args)
{
    static const char *const names[] = {"store", "server", "pin", "key-file", "config"};
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 20);
    const char *outer = getenv("TIDEMARK_RUN") ? getenv(REPEATED) : NULL;

    to_server = remote_named(args) != NULL;
    own_options = args->command ? args->command->options : NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = args_text(args, names[i]);

        if (!value)
            continue;
        buf_addf(&text, " --%s ", names[i]);
        quote_word(&text, value);
    }
    if (!text.len && outer)
        buf_add_str(&text, str_from(outer));
    free(own);
    own = NULL;
    if (text.len) {
        own = mem_dup(buf_view(&text));
        setenv(REPEATED, own, true);
    }
}

void own_command_here(const struct args *args)
{
    if (args_text(args, "store"))
        return;
    unsetenv(REPEATED);
    own_command_init(args);
}

const char *own_command(struct arena *a)
{
    return own ? arena_printf(a, "tidemark%s", own) : "tidemark";
}

static struct str text_of(struct rendering *r, const struct json *v)
{
    return v->type == JSON_STRING ? json_text(r->arena, v) : STR("");
}

static void put_retry(struct rendering *r, const struct json *v)
{
    for (const struct json *name = v->first; name; name = name->next)
        put_word(r, "--retry", text_of(r, name), "");
}

/* "": it is not asked for; "=JSON", or '={"key": …}' where its keys are known. */
static const char *output_text(struct rendering *r, const struct json *output)
{
    const char *text = "={";

    if (!output || !output->first)
        return output ? "=JSON" : "";
    for (const struct json *m = output->first; m; m = m->next)
        text = arena_printf(r->arena, "%s%s\"%.*s\": …", text, m == output->first ? "" : ", ", STR_ARG(m->key));
    return arena_printf(r->arena, "%s}", text);
}

static void put_happened(struct rendering *r, const struct json *v)
{
    for (const struct json *one = v->first; one; one = one->next)
        put_word(r, "--happened", json_get_text(r->arena, one, STR("name")),
                 output_text(r, json_get(one, STR("output"))));
}

static void put_set(struct rendering *r, const struct json *v)
{
    if (v->type == JSON_NULL)
        buf_add_str(&r->text, STR(" --set KEY=VALUE"));
    for (const struct json *key = v->first; key; key = key->next)
        put_word(r, "--set", json_key_text(r->arena, key), "=…");
}

/* {"old":"new"}; a name that is null is not known. */
static void put_map(struct rendering *r, const struct json *v)
{
    if (v->type == JSON_NULL)
        buf_add_str(&r->text, STR(" --map OLD=NEW"));
    for (const struct json *m = v->first; m; m = m->next) {
        struct str to = m->type == JSON_STRING ? text_of(r, m) : STR("NEW");

        put_word(r, "--map", json_key_text(r->arena, m), arena_printf(r->arena, "=%.*s", STR_ARG(to)));
    }
}

/* A name of ours; another one could be anything to a shell. */
static const char *option_of(struct rendering *r, struct str key)
{
    for (size_t i = 0; i < key.len; i++)
        r->failed |= !strchr("abcdefghijklmnopqrstuvwxyz_", key.ptr[i]) || !key.ptr[i];
    return argument_option(r->arena, arena_dup(r->arena, key).ptr);
}

static void put_flag(struct rendering *r, const struct json *v)
{
    if (v->type == JSON_TRUE)
        buf_addf(&r->text, " %s", option_of(r, v->key));
}

/* Before the process that gets it. */
static void put_signal(struct rendering *r, const struct json *v)
{
    buf_add_str(&r->text, str_eq(v->key, STR("kill")) ? STR(" -KILL") : STR(" -CONT"));
}

static void put_given(struct rendering *r, const char *option, const struct json *v, const char *unknown)
{
    if (v->type == JSON_STRING)
        put_word(r, option, text_of(r, v), "");
    else
        buf_addf(&r->text, " %s %s", option, unknown);
}

static void put_graph(struct rendering *r, const struct json *v)
{
    put_given(r, "--graph", v, "NEW.json");
}

static void put_checkpoint(struct rendering *r, const struct json *v)
{
    put_given(r, "--checkpoint", v, "CHECKPOINT");
}

static void put_text(struct rendering *r, const struct json *v)
{
    if (!to_server) {
        put_given(r, "-p", v, "TEXT");
        return;
    }
    buf_add_char(&r->text, ' ');
    quote_word(&r->text, v->type == JSON_STRING ? arena_dup(r->arena, text_of(r, v)).ptr : "TEXT");
}

static void put_input(struct rendering *r, const struct json *v)
{
    bool approval = str_eq(json_get_text(r->arena, r->args, STR("kind")), STR("approval"));

    put_given(r, "--input", v, approval ? "yes" : "TEXT");
}

static void put_ask_again(struct rendering *r, const struct json *v)
{
    put_given(r, "--ask-again", v, "NAME");
}

static void put_operand(struct rendering *r, const struct json *v)
{
    put_word(r, "", v->type == JSON_STRING ? text_of(r, v) : v->type == JSON_NULL ? STR("VALUE") : json_source(v), "");
}

/* "--to 4" */
static void put_argument(struct rendering *r, const struct json *v)
{
    static const struct {
        const char *name, *value;
    } unknown[] = {{"store", "PATH"},    {"config", "FILE"},     {"key_file", "FILE"}, {"script", "FILE"},
                   {"provider", "NAME"}, {"model", "MODEL"},     {"base_url", "URL"},  {"kind", "KIND"},
                   {"effect", "EFFECT"}, {"max_output", "SIZE"}, {"session", "ID"}};
    const char *option = option_of(r, v->key), *value = "VALUE";

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        if (str_eq(v->key, str_from(unknown[i].name)))
            value = unknown[i].value;
    if (v->type == JSON_STRING)
        put_word(r, option, text_of(r, v), "");
    else if (v->type == JSON_NULL)
        buf_addf(&r->text, " %s %s", option, value);
    else if (v->type == JSON_TRUE || v->type == JSON_FALSE)
        buf_addf(&r->text, " %s", option);
    else
        put_word(r, option, json_source(v), "");
}

/* Of the keychain. */
static void put_account(struct rendering *r, const struct json *v)
{
    put_word(r, "service", json_get_text(r->arena, r->args, STR("service")), "");
    put_word(r, "account", text_of(r, v), "");
}

/* What kind of answer it waits for goes into no option. */
static bool is_of_answer(const struct rendering *r, const struct json *v)
{
    return r->next->action == TIDE_ACTION_ANSWER && str_eq(v->key, STR("kind"));
}

static void put_options(struct rendering *r)
{
    static const struct {
        const char *name;
        void (*put)(struct rendering *r, const struct json *v);
    } options[] = {{"now", put_flag},
                   {"run_due", put_flag},
                   {"watch", put_flag},
                   {"accept_change", put_flag},
                   {"accept_loss", put_flag},
                   {"rebuild", put_flag},
                   {"input", put_input},
                   {"text", put_text},
                   {"ask_again", put_ask_again},
                   {"happened", put_happened},
                   {"retry", put_retry},
                   {"set", put_set},
                   {"checkpoint", put_checkpoint},
                   {"graph", put_graph},
                   {"to", put_argument},
                   {"at", put_argument},
                   {"kind", put_argument},
                   {"continue", put_signal},
                   {"kill", put_signal},
                   {"account", put_account},
                   {"pid", put_operand},
                   {"key", put_operand},
                   {"value", put_operand},
                   {"map", put_map}};

    for (const struct json *v = r->args->first; v; v = v->next) {
        bool known = false;

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && !known; i++)
            if (str_eq(v->key, str_from(options[i].name)) && !is_of_answer(r, v) && v->type != JSON_FALSE) {
                options[i].put(r, v);
                known = true;
            }
        if (!known && r->next->action == TIDE_ACTION_REPEAT)
            put_argument(r, v);
    }
}

/* The words after "tidemark". */
static const char *start_words(struct rendering *r)
{
    const char *id = r->next->session_id, *how = json_get(r->args, STR("ensure"))    ? "--ensure "
                                                 : json_get(r->args, STR("new_run")) ? "--new-run "
                                                                                     : "";

    if (!id[0])
        return r->next->kind == TIDE_KIND_CHAT ? "chat" : "exec -- PROGRAM";
    if (r->next->kind == TIDE_KIND_GRAPH)
        return arena_printf(r->arena, "run GRAPH.json --session %s", id);
    return arena_printf(r->arena, "exec %s--session %s -- PROGRAM", how, id);
}

/* Whether the command that begins with these words works through a server. */
static bool works_through_server(struct arena *a, const char *words)
{
    size_t n = strcspn(words, " ");
    const char *first = arena_dup(a, (struct str){words, n}).ptr, *rest = words + n + (words[n] == ' ');
    bool grouped = command_group_find(first) != NULL;
    const char *second = arena_dup(a, (struct str){rest, strcspn(rest, " ")}).ptr;
    const struct command *c = command_find(grouped ? first : NULL, grouped ? second : first);

    return c && c->remote;
}

static void put_command(struct rendering *r)
{
    static const struct {
        enum tide_action action;
        const char *words; /* after "tidemark", before the id */
        bool session;
    } rows[] = {
        {TIDE_ACTION_PROMPT, "chat --resume", true},
        {TIDE_ACTION_CANCEL, "cancel", true},
        {TIDE_ACTION_ROTATE_TOKEN, "token rotate", true},
        {TIDE_ACTION_TRUST, "sessions trust", true},
        {TIDE_ACTION_VERIFY, "sessions verify", true},
        {TIDE_ACTION_RECOVER, "recover", false},
        {TIDE_ACTION_WHY, "why", true},
        {TIDE_ACTION_SHOW_LOG, "log show", true},
        {TIDE_ACTION_SHOW_TIMELINE, "sessions timeline", true},
        {TIDE_ACTION_DELETE, "sessions delete", true},
        {TIDE_ACTION_FORK, "sessions fork", true},
        {TIDE_ACTION_ROLLBACK, "sessions rollback", true},
        {TIDE_ACTION_LIST_SESSIONS, "sessions list", false},
        {TIDE_ACTION_LIST_CHECKPOINTS, "sessions checkpoints", true},
        {TIDE_ACTION_INIT_STORE, "store init", false},
        {TIDE_ACTION_CHECK_STORE, "store check", false},
        {TIDE_ACTION_TRUST_STORE, "store trust", false},
        {TIDE_ACTION_SET_SETTING, "config set", false},
        {TIDE_ACTION_GET_SETTING, "config get", false},
        {TIDE_ACTION_LIST_SETTINGS, "config list", false},
        {TIDE_ACTION_CHECK_SETTINGS, "config check", false},
        {TIDE_ACTION_IMPORT_GRAPH, "graph import FILE", false},
    };
    static const struct {
        enum tide_action action;
        const char *words;
    } foreign[] = {{TIDE_ACTION_END_PROCESS, "kill"}, {TIDE_ACTION_STORE_SECRET, "secret-tool store --label=tidemark"}};
    enum tide_action action = r->next->action;
    const char *words = NULL;

    if (action == TIDE_ACTION_RESUME || action == TIDE_ACTION_ANSWER)
        words = arena_printf(r->arena, "%s %s", r->next->kind == TIDE_KIND_GRAPH ? "sessions resume" : "resume",
                             r->next->session_id);
    else if (action == TIDE_ACTION_START)
        words = start_words(r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].action == action)
            words = arena_printf(r->arena, rows[i].session ? "%s %s" : "%s", rows[i].words, r->next->session_id);
    if (to_server && action == TIDE_ACTION_PROMPT)
        words = arena_printf(r->arena, "sessions send %s", r->next->session_id);
    r->failed |= to_server && (!words || !works_through_server(r->arena, words)) && action != TIDE_ACTION_REPEAT;
    if (words)
        buf_addf(&r->text, "%s %s", own_command(r->arena), words);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (foreign[i].action == action)
            buf_add_str(&r->text, str_from(foreign[i].words));
}

static const char *render_command(struct arena *a, const struct tide_next *next)
{
    struct rendering r = {.arena = a, .text = BUF_INIT(1 << 20), .next = next};
    struct json *args = NULL;
    const char *text = NULL;

    if (json_parse(a, str_from(next->arguments), NULL, &args, NULL, NULL) ||
        (next->session_id[0] && !str_is_id(str_from(next->session_id)))) /* a server may say anything */
        return NULL;
    r.args = args;
    put_command(&r);
    put_options(&r);
    if (r.text.len > 0 && !r.failed)
        text = arena_dup(a, buf_view(&r.text)).ptr;
    buf_done(&r.text);
    return text;
}

const char *next_command(struct arena *a, const struct tide_next *next)
{
    return next->action == TIDE_ACTION_REPEAT ? NULL : render_command(a, next);
}

const char *next_options(struct arena *a, const struct tide_next *next)
{
    const char *text = next->action == TIDE_ACTION_REPEAT ? render_command(a, next) : NULL;

    return text ? text + 1 : NULL;
}

bool next_options_fit(struct arena *a, const struct tide_next *next)
{
    struct json *args = NULL;

    if (!own_options || json_parse(a, str_from(next->arguments), NULL, &args, NULL, NULL))
        return true;
    for (const struct json *v = args->first; v; v = v->next) {
        const char *name = argument_option(a, arena_dup(a, v->key).ptr) + strlen("--");

        if (!options_have(own_options, name) && !options_have(global_options, name))
            return false;
    }
    return true;
}

const char *const *next_commands(struct arena *a, const struct tide_next *next)
{
    size_t n = 0, count = 0;
    const char **list;

    while (next && next[count].action)
        count++;
    list = arena_zero(a, (count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        if ((list[n] = next_command(a, &next[i])))
            n++;
    return list;
}

const char *how_on(struct arena *a, const char *id, const struct tide_next *next)
{
    const char *first = *next_commands(a, next);

    if (!first)
        return NULL;
    if (next[0].action == TIDE_ACTION_RESUME && next[1].action != TIDE_ACTION_RESUME)
        return arena_printf(a, "`%s` resumes it", first);
    return arena_printf(a, "`%s why %s` shows how to continue", own_command(a), id);
}
