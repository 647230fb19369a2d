/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rich conversation, its log, and any beginning of that log in a store of its own, as a process that died there would
 * have left it. What the tools really did is counted in a file outside the store.
 */
#ifndef TESTS_AGENT_CUTS_H
#define TESTS_AGENT_CUTS_H

#include "agent/agents.h"
#include "base/map.h"
#include "base/timefmt.h"
#include "session/session.h"

enum { EVENTS_MAX = 400, MESSAGES_MAX = 100 };

#define GIVEN "given.txt"
#define LEDGER "ledger"

/* ---- the log of a session, line by line ---------------------------------------------------------------------------- */

struct line {
    struct str text; /* as exported */
    const struct json *json;
    struct str kind, call_id;
};

struct log {
    struct arena arena;
    struct buf text;
    struct line lines[EVENTS_MAX]; /* 0: seq 1 */
    size_t n;
    bool is_end[EVENTS_MAX + 1]; /* by seq: an append ended there, so that a crash can leave exactly this */
};

static _Atomic(bool *) batch_ends; /* where the ends of appends are noted; NULL: nowhere */
static const struct store_ops *plain_ops;

static void noting_commit(struct store *store, struct batch *list)
{
    bool *ends = batch_ends;

    plain_ops->commit(store, list);
    for (const struct batch *b = list; b && ends; b = b->next)
        if (b->code == TIDE_OK && b->n && b->last_seq <= EVENTS_MAX)
            ends[b->last_seq] = true;
}

/* From now on the appends of this store are noted in the log. */
UNUSED static void note_appends(tide_store *store, struct log *log)
{
    static struct store_ops ops;

    plain_ops = store_of(store)->ops;
    ops = *plain_ops;
    ops.commit = noting_commit;
    batch_ends = log->is_end;
    store_of(store)->ops = &ops;
}

static int take_bytes(void *arg, const char *bytes, size_t n)
{
    buf_add(arg, bytes, n);
    return 0;
}

static const char *call_of(const struct json *json)
{
    return json_get(json, STR("tool_call_id")) ? "tool_call_id" : "call_id";
}

UNUSED static void log_read(struct log *log, tide_session *s)
{
    char *at, *end;

    batch_ends = NULL;
    log->text = (struct buf)BUF_INIT(1 << 26);
    OK(tide_session_refresh(s, &err));
    OK(tide_session_export(s, take_bytes, NULL, &log->text, &err));
    at = strchr(buf_cstr(&log->text), '\n') + 1; /* the head line is made anew for each cut */
    for (; (end = strchr(at, '\n')) && log->n < EVENTS_MAX; at = end + 1) {
        struct line *l = &log->lines[log->n++];
        struct json *json = NULL;

        l->text = (struct str){at, (size_t)(end - at) + 1};
        OK(json_parse(&log->arena, (struct str){at, (size_t)(end - at)}, NULL, &json, NULL, &err));
        l->json = json;
        l->kind = json_get_text(&log->arena, json, STR("kind"));
        l->call_id = json_get_text(&log->arena, json, str_from(call_of(json)));
    }
    assert_true(log->n < EVENTS_MAX);
}

UNUSED static void log_done(struct log *log)
{
    arena_done(&log->arena);
    buf_done(&log->text);
    free(log);
}

/* How many of the lines [from, to) are of this kind, and of this call when it is not NULL. */
UNUSED static int log_count(const struct log *log, size_t from, size_t to, const char *kind, const char *call_id)
{
    int n = 0;

    for (size_t i = from; i < to && i < log->n; i++)
        n += str_eq(log->lines[i].kind, str_from(kind)) &&
             (!call_id || str_eq(log->lines[i].call_id, str_from(call_id)));
    return n;
}

/* The members of a line that are the event's own. */
static struct str own_members(struct arena *a, const struct json *line)
{
    struct buf out = BUF_INIT(1 << 26);
    struct json_out o = json_out_to(&out);
    struct str body;

    json_out_begin(&o, '{');
    for (const struct json *m = line->first; m; m = m->next) {
        if (!str_eq(m->key, STR("seq")) && !str_eq(m->key, STR("ts")) && !str_eq(m->key, STR("kind")) &&
            !str_eq(m->key, STR("tidemark")))
            json_out_kraw(&o, m->key, json_source(m));
    }
    json_out_end(&o, '}');
    body = arena_dup(a, buf_view(&out));
    buf_done(&out);
    return body;
}

/* The first n events, as a session that was begun here: whoever ran it is gone. */
UNUSED static void keep_prefix(tide_store *store, const struct log *log, size_t n)
{
    struct arena a = ARENA_INIT;
    struct event *events = arena_zero(&a, n * sizeof *events);
    struct batch *b;

    for (size_t i = 0; i < n; i++) {
        const struct json *line = log->lines[i].json;

        events[i].kind = json_get_text(&a, line, STR("kind"));
        events[i].body = own_members(&a, line);
        events[i].epoch = json_get_int(json_get(line, STR("tidemark")), STR("epoch"), 0);
        assert_true(time_parse(json_get_text(&a, line, STR("ts")), &events[i].ts_ms));
    }
    b = batch_new(STR("s"), BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE | BATCH_KEEP | BATCH_VOUCH,
                  events, n, STR(""), STR(""));
    b->expect_seq = STORE_ANY_SEQ;
    OK(store_write(store_of(store), b, NULL, &err));
    arena_done(&a);
}

/* ---- the conversation ---------------------------------------------------------------------------------------------- */

static const char *const prompts[] = {"hello", "do several things", "ask me first", "goodbye"};
enum { PROMPTS = 4, TURNS = 7 };

#define CALL(id, name, args) "{\"id\":\"" id "\",\"name\":\"" name "\",\"args\":" args "}"
#define BASH(id, command) CALL(id, "bash", "{\"command\":\"" command "\"}")
#define USAGE(in, out) "\"usage\":{\"input_tokens\":" in ",\"output_tokens\":" out "}"

/* All classes of effects, a rate limit, arguments that a hook changes, one call that is allowed and one that is denied. */
static const char script_text[] =
    "{\"turns\":["
    "{\"text\":\"Hello.\"," USAGE(
        "11",
        "1") "},"
             "{\"text\":\"Several.\",\"calls\":[" BASH("c_bash", "echo b1 >> " LEDGER "; echo done") "," CALL("c_write", "write", "{\"path\":\"out.txt\",\"content\":\"plain\"}") "," CALL(
                 "c_read", "read",
                 "{\"path\":\"" GIVEN
                 "\"}") "," CALL("c_note", "note",
                                 "{\"line\":\"n1\",\"by\":[0.5,null]}") "]," USAGE("22",
                                                                                   "2") "},"
                                                                                        "{\"text\":\"More.\",\"fail\":[{\"status\":429}],\"calls\":[" CALL("c_changed", "note", "{\"line\":\"n2\"}") "," CALL("c_write2", "write", "{\"path\":\"out2.txt\",\"content\":\"change me\"}") "]," USAGE(
                                                                                            "33",
                                                                                            "3") "},"
                                                                                                 "{\"text\":\"Done.\"," USAGE(
                                                                                                     "44",
                                                                                                     "4") "},"
                                                                                                          "{\"calls\":[" BASH("c_yes", "echo yes >> " LEDGER) "," BASH("c_no", "echo no >> " LEDGER) "]," USAGE(
                                                                                                              "55",
                                                                                                              "5") "},"
                                                                                                                   "{\"text\":\"As you wish.\"," USAGE(
                                                                                                                       "66",
                                                                                                                       "6") "},"
                                                                                                                            "{\"text\":\"Goodbye.\"," USAGE(
                                                                                                                                "77",
                                                                                                                                "7") "}]}";

/* In the order in which they are called; `word`: what it leaves in the ledger. */
static const struct call_case {
    const char *id, *effect, *word;
    bool denied;
} call_cases[] = {
    {"c_bash", "once", "b1", false}, {"c_write", "idempotent", NULL, false}, {"c_read", "pure", NULL, false},
    {"c_note", "once", "n1", false}, {"c_changed", "once", "n2+", false},    {"c_write2", "idempotent", NULL, false},
    {"c_yes", "once", "yes", false}, {"c_no", "once", "no", true},
};
enum { CALL_CASES = sizeof call_cases / sizeof call_cases[0] };

#define RULES                                                                                                          \
    "[{\"tool\":\"*\",\"permission\":\"allow\"},{\"tool\":\"bash\",\"match\":\"echo yes*\",\"permission\":\"ask\"},"   \
    "{\"tool\":\"bash\",\"match\":\"echo no*\",\"permission\":\"ask\"}]"

struct world {
    char dir[256], work[300], script[300], ledger[320];
    struct tide_agent_options opt;
    int answers, retries, asked; /* what the callbacks were told */
};

static void count_events(void *arg, const struct tide_agent_event *e)
{
    struct world *w = arg;

    w->answers += e->what == TIDE_AGENT_USAGE;
    w->retries += e->what == TIDE_AGENT_RETRY;
}

static enum tide_decision allow_yes(void *arg, const struct tide_approval *ask)
{
    struct world *w = arg;

    w->asked++;
    return strstr(ask->args, "yes") ? TIDE_DECIDE_ALLOW : TIDE_DECIDE_DENY;
}

static enum tide_code note_in_ledger(void *arg, const char *args, const char *key, struct tide_text *ret,
                                     struct tide_err *err)
{
    const struct world *w = arg;
    const char *line = strstr(args, "\"line\":\"");
    FILE *f = fopen(w->ledger, "a");

    (void)key;
    (void)err;
    assert_non_null(line);
    assert_non_null(f);
    line += 8;
    fprintf(f, "%.*s\n", (int)strcspn(line, "\""), line);
    fclose(f);
    ret->ptr = mem_dup(STR("noted"));
    ret->len = 5;
    return TIDE_OK;
}

static enum tide_code answer_with(struct tide_text *ret, const char *json)
{
    ret->ptr = mem_dup(str_from(json));
    ret->len = strlen(json);
    return TIDE_OK;
}

static enum tide_code change_args(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)err;
    if (strstr(input, "\"n2\""))
        return answer_with(ret, "{\"action\":\"modify_args\",\"args\":{\"line\":\"n2+\"}}");
    if (strstr(input, "change me"))
        return answer_with(ret,
                           "{\"action\":\"modify_args\",\"args\":{\"path\":\"out2.txt\",\"content\":\"changed\"}}");
    return TIDE_OK;
}

UNUSED static tide_agent *world_agent(struct world *w, tide_session *s)
{
    const struct tide_tool note = {.size = sizeof note,
                                   .name = "note",
                                   .description = "notes a line",
                                   .schema = "{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"string\"},"
                                             "\"by\":{\"type\":\"array\"}},\"required\":[\"line\"]}",
                                   .fn = note_in_ledger,
                                   .arg = w};
    tide_agent *a = NULL;

    OK(tide_agent_new(s, &w->opt, &a, &err));
    OK(tide_agent_add_tool(a, &note, &err));
    OK(tide_agent_add_hook(a, "changes", "pre_tool_use", NULL, change_args, w, &err));
    return a;
}

static void path_in(const struct world *w, const char *name, char out[400])
{
    snprintf(out, 400, "%s/%s", w->work, name);
}

/* As before the first prompt. */
UNUSED static void world_reset(struct world *w)
{
    char path[400];

    w->answers = w->retries = w->asked = 0;
    write_file(w->ledger, "");
    path_in(w, "out.txt", path);
    unlink(path);
    path_in(w, "out2.txt", path);
    unlink(path);
}

UNUSED static void world_init(struct world *w)
{
    char path[400];

    dir_make(w->dir);
    snprintf(w->work, sizeof w->work, "%s/work", w->dir);
    snprintf(w->ledger, sizeof w->ledger, "%s/" LEDGER, w->work);
    snprintf(w->script, sizeof w->script, "%s/script.json", w->dir);
    assert_int_equal(mkdir(w->work, 0700), 0);
    path_in(w, GIVEN, path);
    write_file(path, "what was given\n");
    write_file(w->script, script_text);
    w->opt = (struct tide_agent_options){.size = sizeof(struct tide_agent_options),
                                         .provider = "script",
                                         .script = w->script,
                                         .working_dir = w->work,
                                         .system_prompt = "Be brief.",
                                         .permissions = RULES,
                                         .retry_base_delay_ms = 1,
                                         .event = count_events,
                                         .approve = allow_yes,
                                         .arg = w};
    world_reset(w);
}

UNUSED static char *file_text(const char *path)
{
    struct buf out = BUF_INIT(1 << 20);
    FILE *f = fopen(path, "r");
    int c;

    while (f && (c = fgetc(f)) != EOF)
        buf_add_char(&out, (char)c);
    if (f)
        fclose(f);
    buf_cstr(&out);
    return buf_take(&out);
}

/* How often the word is a line of the ledger. */
UNUSED static int ledger_count(const struct world *w, const char *word)
{
    char *text = file_text(w->ledger);
    int n = 0;

    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
        n += strlen(word) == (size_t)(end - at) && strncmp(at, word, strlen(word)) == 0;
    free(text);
    return n;
}

UNUSED static tide_store *store_at(const struct world *w, const char *name)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    char url[400];

    OK(tide_store_open(store_url_in(url, sizeof url, w->dir, name), &opt, &store, &err));
    return store;
}

UNUSED static tide_store *fresh_store(const struct world *w)
{
    static int number;
    char name[40];

    snprintf(name, sizeof name, "cut-%d", ++number);
    return store_at(w, name);
}

/* The whole conversation without a cut; its log. */
UNUSED static struct log *uninterrupted(struct world *w, void (*extra)(tide_agent *))
{
    struct log *log = mem_zero(sizeof *log);
    tide_store *store = store_at(w, "golden");
    tide_session *s = NULL;
    tide_agent *a;

    note_appends(store, log);
    OK(tide_session_create(store, "s", "{\"title\":\"t\"}", &s, &err));
    a = world_agent(w, s);
    if (extra)
        extra(a);
    for (int i = 0; i < PROMPTS; i++)
        OK(tide_agent_run(a, prompts[i], NULL, &err));
    log_read(log, s);
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(store);
    return log;
}

/* Prompts of a person among the first n lines. */
UNUSED static int prompts_in(const struct log *log, size_t n)
{
    int count = 0;

    for (size_t i = 0; i < n; i++)
        count += str_eq(log->lines[i].kind, STR("message.user")) && !json_get(log->lines[i].json, STR("hook"));
    return count;
}

/* Goes on from there to the end of the conversation, as another process would. */
UNUSED static void go_on(struct world *w, tide_session *s, const struct log *log, size_t n, void (*extra)(tide_agent *))
{
    struct tide_err why = {0};
    tide_agent *a = world_agent(w, s);
    enum tide_code code;

    if (extra)
        extra(a);
    code = tide_agent_resume(a, NULL, NULL, NULL, &why);
    if (code && code != TIDE_NOT_FOUND)
        fail_msg("after %zu events (%.*s): resume: %s", n, STR_ARG(log->lines[n - 1].kind), why.msg);
    for (int i = prompts_in(log, n); i < PROMPTS; i++)
        OK(tide_agent_run(a, prompts[i], NULL, &err));
    GIVES(TIDE_NOT_FOUND, tide_agent_resume(a, NULL, NULL, NULL, &err));
    tide_agent_free(a);
}

#endif
