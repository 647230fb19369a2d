/* SPDX-License-Identifier: Apache-2.0 */
/* What one node does: programs that do everything wrong, callbacks, Lua, outputs, placeholders, secrets. */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "graph/node_work.h"
#include "kit.h"
#include "program/proc.h"

#define MEGA ((size_t)1 << 20)

/* ---- a node ---- */

struct fixture {
    struct spec_node node;
    struct node_work body;
    struct node_work_result result;
    struct str program[8], outputs[8], nullable[8];
    char dir[256];
    struct expr *expr;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.node = {.type = SPEC_FUNCTION}, .result = NODE_WORK_RESULT_INIT};
    f->node.program.at = f->program;
    f->node.outputs.at = f->outputs;
    f->node.nullable_outputs.at = f->nullable;
    f->body = (struct node_work){.node = &f->node,
                                 .name = "pages#1[3]",
                                 .inputs = STR("{\"n\":1}"),
                                 .memory = STR("{\"m\":2}"),
                                 .session_id = "s-1",
                                 .run_id = "run-1",
                                 .key = "0123456789abcdef",
                                 .dir = dir_make(f->dir),
                                 .visit = 4,
                                 .attempt = 2};
}

static void end(struct fixture *f)
{
    node_work_result_done(&f->result);
    expr_free(f->expr);
    dir_remove(f->dir);
}

static void add(struct spec_texts *texts, const char *text)
{
    ((struct str *)(uintptr_t)texts->at)[texts->n++] = str_from(text);
}

static void use_shell(struct fixture *f, const char *script)
{
    f->node.program.n = 0;
    add(&f->node.program, "sh");
    add(&f->node.program, "-c");
    add(&f->node.program, script);
}

static void gives(struct fixture *f, const char *want)
{
    if (!node_work_run(&f->body, &f->result))
        fail_msg("want %s, got %s: %s", want, f->result.code, f->result.message);
    assert_string_equal(buf_cstr(&f->result.output), want);
    assert_string_equal(f->result.code, "");
    assert_false(f->result.unknown);
}

static void fails(struct fixture *f, const char *code, const char *words)
{
    if (node_work_run(&f->body, &f->result))
        fail_msg("want %s, got %s", code, buf_cstr(&f->result.output));
    assert_string_equal(f->result.code, code);
    if (!strstr(f->result.message, words))
        fail_msg("'%s' is not in '%s'", words, f->result.message);
    assert_int_equal(f->result.output.len, 0);
    assert_true(strlen(f->result.message) <= NODE_WORK_MESSAGE_MAX);
    assert_true(str_is_utf8(str_from(f->result.message), NULL));
    for (const char *p = f->result.message; *p; p++)
        assert_true((unsigned char)*p >= 0x20);
}

/* ---- programs ---- */

static const struct {
    const char *name, *script, *gives; /* without outputs declared */
} good[] = {
    {"its output", "echo '{\"a\": [1, 2.50]}'", "{\"a\":[1,2.50]}"},
    {"nothing at all", ":", "{}"},
    {"nothing but blanks", "echo; echo ' '", "{}"},
    {"its inputs", "cat", "{\"n\":1}"},
    {"inputs end with a line", "read line && echo \"$line\"", "{\"n\":1}"},
    {"inputs end", "cat >/dev/null; echo 7", "{\"result\":7}"},
    {"a list", "echo '[1, 2]'", "{\"result\":[1,2]}"},
    {"null is nothing", "echo null", "{}"},
    {"its complaints are not its output", "echo noise >&2; echo '{\"a\":1}'; echo noise >&2", "{\"a\":1}"},
    {"an error that is none", "echo '{\"error\":{\"code\":\"x\"}}'", "{\"error\":{\"code\":\"x\"}}"},
    {"who it is",
     "printf '[\"%s\",\"%s\",\"%s\",%s,%s,\"%s\"]' $TIDEMARK_SESSION_ID $TIDEMARK_RUN_ID $TIDEMARK_NODE "
     "$TIDEMARK_VISIT $TIDEMARK_ATTEMPT $TIDEMARK_IDEMPOTENCY_KEY",
     "{\"result\":[\"s-1\",\"run-1\",\"pages#1[3]\",4,2,\"0123456789abcdef\"]}"},
    {"what it inherits", "echo \"\\\"$BODY_TEST\\\"\"", "{\"result\":\"inherited\"}"},
    {"the run around it is not its own", "echo \"\\\"$TIDEMARK_RUN$TIDEMARK_STEP\\\"\"", "{\"result\":\"\"}"},
};

static void a_program_gives_what_it_prints(void **state)
{
    struct fixture f;

    (void)state;
    setenv("BODY_TEST", "inherited", 1);
    setenv("TIDEMARK_RUN", "/another", 1);
    setenv("TIDEMARK_STEP", "another", 1);
    begin(&f);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        use_shell(&f, good[i].script);
        gives(&f, good[i].gives);
    }
    end(&f);
    unsetenv("TIDEMARK_RUN");
    unsetenv("TIDEMARK_STEP");
}

static const struct {
    const char *name, *script, *code, *words;
} bad[] = {
    {"exit", "echo first >&2; echo last >&2; echo >&2; exit 3", "exit", "exit status 3: last"},
    {"exit without words", "exit 4", "exit", "exit status 4"},
    {"exit with output", "echo '{\"a\":1}'; exit 5", "exit", "exit status 5"},
    {"signal", "kill -SEGV $$", "signal", "killed by signal 11"},
    {"its own error", "echo '{\"error\":{\"code\":\"rate_limit\",\"message\":\"come back\"}}'; exit 1", "rate_limit",
     "come back"},
    {"its own code alone", "echo '{\"error\":{\"code\":\"busy\"}}'; echo why >&2; exit 9", "busy",
     "exit status 9: why"},
    {"its own words alone", "echo '{\"error\":\"no luck\"}'; exit 1", "exit", "no luck"},
    {"a code that is none", "echo '{\"error\":{\"code\":\"Bad Code\",\"message\":\"m\"}}'; exit 1", "exit", "m"},
    {"a code that is too long",
     "echo '{\"error\":{\"code\":\"a23456789012345678901234567890123\",\"message\":\"m\"}}'; exit 1", "exit", "m"},
    {"an error of another type", "echo '{\"error\":7}'; exit 1", "exit", "exit status 1"},
    {"half a value", "printf '{\"a\": [1, 2'", "bad_output", "it begins: {\"a\": [1, 2"},
    {"half a value says where", "printf '{\"a\": [1, 2'", "bad_output", "line 1"},
    {"rubbish behind", "echo '{} {}'", "bad_output", "it begins: {} {}"},
    {"plain text", "echo hello", "bad_output", "it begins: hello"},
    {"invalid UTF-8", "printf '{\"a\":\"\\377\"}'", "bad_output", "not one JSON value"},
    {"controls are no longer any", "printf '\\033[31mred\\nline'", "bad_output", "?[31mred?line"},
    {"a key twice", "echo '{\"a\":1,\"a\":2}'", "bad_output", "not one JSON value"},
};

static void each_failure_of_a_program_has_a_code_and_a_line(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        use_shell(&f, bad[i].script);
        fails(&f, bad[i].code, bad[i].words);
        assert_false(f.result.unknown);
    }
    end(&f);
}

static void put_program(const struct fixture *f, const char *name, const char *text, mode_t mode)
{
    char path[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fchmod(fileno(file), mode), 0);
    assert_int_equal(fclose(file), 0);
}

static void a_program_is_found_by_path_or_beside_the_graph(void **state)
{
    struct fixture f;
    char want[400], *before = getcwd(NULL, 0);

    (void)state;
    begin(&f);
    put_program(&f, "here", "#!/bin/sh\necho \"\\\"$(pwd -P)\\\"\"\n", 0755);
    put_program(&f, "flat", "{}\n", 0644);
    put_program(&f, "lost", "#!/no/such/interpreter\n", 0755);
    add(&f.node.program, "./here");
    snprintf(want, sizeof(want), "{\"result\":\"%s\"}", f.dir);
    gives(&f, want);
    assert_int_equal(chdir(f.dir), 0);
    f.body.dir = ".";
    gives(&f, want);
    assert_int_equal(chdir(before), 0);
    f.body.dir = f.dir;
    f.program[0] = STR("here");
    snprintf(want, sizeof(want), "here: no such program in $PATH; the one in %s is ./here", f.dir);
    fails(&f, "not_found", want);
    f.program[0] = STR("./none");
    snprintf(want, sizeof(want), "./none: no such program in %s", f.dir);
    fails(&f, "not_found", want);
    f.program[0] = STR("./lost");
    fails(&f, "not_found", "./lost");
    if (geteuid() != 0) {
        f.program[0] = STR("./flat");
        fails(&f, "denied", "chmod +x");
    }
    f.program[0] = STR(".//");
    fails(&f, "denied", "is a directory");
    f.body.dir = "/no/such/place";
    f.program[0] = STR("sh");
    fails(&f, "not_found", "/no/such/place");
    assert_false(f.result.unknown);
    free(before);
    end(&f);
}

static void big_inputs_reach_who_reads_and_do_not_hang_who_does_not(void **state)
{
    AUTO(buf_done) struct buf inputs = BUF_INIT(4 * MEGA);
    struct fixture f;

    (void)state;
    begin(&f);
    buf_add_str(&inputs, STR("{\"text\":\""));
    while (inputs.len < MEGA)
        buf_add_str(&inputs, STR("abcdefgh"));
    buf_add_str(&inputs, STR("\"}"));
    f.body.inputs = buf_view(&inputs);
    use_shell(&f, "echo '{\"a\":1}'");
    gives(&f, "{\"a\":1}");
    use_shell(&f, "exec <&-; echo '{\"a\":2}'");
    gives(&f, "{\"a\":2}");
    use_shell(&f, "head -c 10 >/dev/null; echo '{\"a\":3}'");
    gives(&f, "{\"a\":3}");
    use_shell(&f, "cat");
    gives(&f, buf_cstr(&inputs));
    use_shell(&f, "wc -c");
    assert_true(node_work_run(&f.body, &f.result));
    assert_int_equal(strtol(strchr(buf_cstr(&f.result.output), ':') + 1, NULL, 10), inputs.len + 1);
    end(&f);
}

/* Gone, or a zombie that nobody reaps here. */
static bool is_dead(pid_t pid)
{
    char path[40], text[256] = "";
    const char *at;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return true;
    at = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
    fclose(file);
    return !at || at[2] == 'Z';
}

static pid_t pid_in(const struct fixture *f, const char *name)
{
    char path[400], line[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    return (pid_t)strtol(line, NULL, 10);
}

static void is_ended(const struct fixture *f, const char *name)
{
    pid_t pid = pid_in(f, name);
    int i = 0;

    while (i < 20000 && !is_dead(pid)) {
        usleep(1000);
        i++;
    }
    assert_true(is_dead(pid));
}

static void what_a_program_leaves_behind_is_ended_and_not_waited_for(void **state)
{
    int64_t began = monotonic_ms();
    struct fixture f;

    (void)state;
    begin(&f);
    use_shell(&f, "sleep 1000 & echo $! >left; echo '{\"a\":1}'");
    gives(&f, "{\"a\":1}");
    is_ended(&f, "left");
    /* One that has left the group is nobody's any more, and holds the output open: we go on all the same. */
    use_shell(&f, "setsid sh -c 'echo $$ >away; exec sleep 1000' & until test -s away; do :; done; echo '{\"a\":2}'");
    gives(&f, "{\"a\":2}");
    kill(pid_in(&f, "away"), SIGKILL);
    assert_true(monotonic_ms() - began < 500000);
    end(&f);
}

static void an_output_that_is_too_big_ends_the_program(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    use_shell(&f, "head -c 20971520 /dev/zero | tr '\\0' ' '; echo '{}'");
    fails(&f, "too_big", "more than 16777216 bytes");
    use_shell(&f, "exec yes");
    fails(&f, "too_big", "it was ended");
    assert_true(f.result.unknown);
    use_shell(&f, "head -c 16777212 /dev/zero | tr '\\0' ' '; echo '{}'");
    gives(&f, "{}");
    end(&f);
}

static void complaints_of_any_length_do_not_hold_a_program_up(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    use_shell(&f, "head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2; exit 3");
    fails(&f, "exit", "exit status 3: last");
    use_shell(&f, "head -c 5000 /dev/zero | tr '\\0' 'x' >&2; exit 3");
    fails(&f, "exit", "exit status 3: xxxx");
    end(&f);
}

/* But not to the first question. */
static bool say_yes(void *arg)
{
    return (*(int *)arg)++ > 0;
}

struct asked {
    const struct fixture *f;
    int times;
};

/* The fifth time it lets the program go on. */
static bool count_to_five(void *arg)
{
    struct asked *a = arg;

    if (++a->times == 5)
        put_program(a->f, "go", "", 0644);
    return false;
}

static void a_program_that_takes_too_long_is_ended_whole(void **state)
{
    static const char *const words[] = {"not done within 200 ms", "not done within 2000 ms",
                                        "not done within 20000 ms"};
    int64_t began = monotonic_ms();
    struct fixture f;
    char left[300];

    (void)state;
    begin(&f);
    snprintf(left, sizeof left, "%s/left", f.dir);
    use_shell(&f, "echo '{}'; sleep 1000 & echo $! >pid; mv pid left; wait");
    f.node.timeout_ms = 200;
    for (int i = 0; i < 3 && access(left, F_OK) != 0; i++) { /* a busy machine may not get so far in a short time */
        fails(&f, "timeout", words[i]);
        assert_true(f.result.unknown);
        f.node.timeout_ms *= 10;
    }
    is_ended(&f, "left");
    f.node.timeout_ms = 200;
    use_shell(&f, "trap '' TERM; echo '{}'; while :; do sleep 1000; done");
    fails(&f, "timeout", "how far it got is unknown");
    assert_true(monotonic_ms() - began < 500000);
    f.node.timeout_ms = 60000;
    use_shell(&f, "echo '{}'");
    gives(&f, "{}");
    end(&f);
}

static void a_program_that_is_told_to_stop_is_ended(void **state)
{
    struct fixture f;
    int asked = 0;

    (void)state;
    begin(&f);
    f.body.stopped = say_yes;
    f.body.arg = &asked;
    use_shell(&f, "sleep 1000");
    fails(&f, "stopped", "it was stopped");
    assert_true(f.result.unknown);
    assert_false(f.result.unbegun);
    assert_true(asked > 1);
    end(&f);
}

static void a_program_that_is_told_to_stop_first_is_not_begun(void **state)
{
    char made[600];
    struct fixture f;
    int asked = 1;

    (void)state;
    begin(&f);
    f.body.stopped = say_yes;
    f.body.arg = &asked;
    use_shell(&f, "touch begun");
    fails(&f, "stopped", "not begun");
    assert_true(f.result.unbegun);
    assert_false(f.result.unknown);
    snprintf(made, sizeof made, "%s/begun", f.dir);
    assert_int_not_equal(access(made, F_OK), 0);
    end(&f);
}

static void whether_to_stop_is_asked_again_and_again(void **state)
{
    struct fixture f;
    struct asked asked = {&f, 0};

    (void)state;
    begin(&f);
    f.node.timeout_ms = 60000;
    f.body.stopped = count_to_five;
    f.body.arg = &asked;
    use_shell(&f, "until test -e go; do :; done; echo '{}'");
    gives(&f, "{}");
    assert_true(asked.times >= 5);
    end(&f);
}

static void *run_many(void *arg)
{
    for (int i = 0; i < 20; i++) {
        struct fixture f;

        begin(&f);
        f.body.visit = (intptr_t)arg * 100 + i;
        use_shell(&f, "cat >/dev/null; echo \"{\\\"v\\\":$TIDEMARK_VISIT}\"");
        assert_true(node_work_run(&f.body, &f.result));
        assert_int_equal(strtol(buf_cstr(&f.result.output) + 5, NULL, 10), f.body.visit);
        end(&f);
    }
    return NULL;
}

static void programs_run_beside_each_other(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (intptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* ---- callbacks ---- */

struct reply {
    enum tide_code code;
    const char *text, *error;
    struct tide_node_call seen;
    char inputs[64];
};

static enum tide_code answer(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                             struct tide_err *err)
{
    struct reply *r = arg;

    r->seen = *call;
    snprintf(r->inputs, sizeof(r->inputs), "%s", call->inputs);
    if (r->text)
        *ret_output = (struct tide_text){mem_dup(str_from(r->text)), strlen(r->text)};
    return r->code ? tide_fail(err, r->code, "%s", r->error) : TIDE_OK;
}

static void a_callback_gets_its_inputs_and_gives_its_outputs(void **state)
{
    struct reply r = {.text = "{\"a\": 1}"};
    struct fixture f;

    (void)state;
    begin(&f);
    f.node.callback = STR("fetch");
    fails(&f, "not_found", "'fetch' is registered: call tide_graph_add_callback()");
    f.body.fn = answer;
    f.body.fn_arg = &r;
    gives(&f, "{\"a\":1}");
    assert_string_equal(r.inputs, "{\"n\":1}");
    assert_string_equal(r.seen.node, "pages#1[3]");
    assert_string_equal(r.seen.key, "0123456789abcdef");
    assert_int_equal(r.seen.visit, 4);
    assert_int_equal(r.seen.attempt, 2);
    r.text = NULL;
    gives(&f, "{}");
    r.text = "{";
    fails(&f, "bad_output", "it begins: {");
    r = (struct reply){.code = TIDE_BUSY, .error = "the service\nis away", .text = "{\"a\":1}"};
    fails(&f, "callback", "the service?is away");
    r.error = "";
    fails(&f, "callback", tide_code_text(TIDE_BUSY));
    end(&f);
}

/* ---- Lua ---- */

static void use_lua(struct fixture *f, const char *code)
{
    expr_free(f->expr);
    f->expr = NULL;
    f->node.type = SPEC_LUA;
    OK(expr_compile_body(str_from(code), &f->expr, &err));
    f->node.code = (struct spec_expr){str_from(code), f->expr};
}

static void lua_sees_inputs_and_memory(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    use_lua(&f, "return {sum = inputs.n + memory.m}");
    gives(&f, "{\"sum\":3}");
    use_lua(&f, "return 5");
    gives(&f, "{\"result\":5}");
    use_lua(&f, "local x = 1");
    gives(&f, "{}");
    use_lua(&f, "return inputs.gone.deeper");
    fails(&f, "lua", "gone");
    use_lua(&f, "error('no\\nway')");
    fails(&f, "lua", "no way");
    use_lua(&f, "while true do end");
    fails(&f, "limit", "stopped");
    use_lua(&f, "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end");
    fails(&f, "limit", "stopped");
    f.body.inputs = f.body.memory = (struct str){"", 0};
    use_lua(&f, "return {a = inputs.n == nil and memory.m == nil}");
    gives(&f, "{\"a\":true}");
    end(&f);
}

/* ---- outputs ---- */

static const struct {
    const char *name, *outputs, *nullable, *came, *gives, *code, *words;
} promises[] = {
    {"only what is declared", "a", "", "{\"b\":1,\"a\":2}", "{\"a\":2}", NULL, NULL},
    {"in the declared order", "a,b", "", "{\"b\":{\"x\":[ ]},\"c\":0,\"a\":{ }}", "{\"a\":{},\"b\":{\"x\":[]}}", NULL,
     NULL},
    {"a lone value", "a", "", "[1]", "{\"a\":[1]}", NULL, NULL},
    {"a lone text", "a", "", "\"x\"", "{\"a\":\"x\"}", NULL, NULL},
    {"one that may stay unset", "a,b", "b", "{\"a\":1}", "{\"a\":1}", NULL, NULL},
    {"one that may be null", "a,b", "b", "{\"a\":1,\"b\":null}", "{\"a\":1,\"b\":null}", NULL, NULL},
    {"all may stay unset", "a", "a", "", "{}", NULL, NULL},
    {"null for the only one", "a", "a", "null", "{}", NULL, NULL},
    {"one is missing", "a,b", "", "{\"a\":1,\"c\":2}", NULL, "missing_output", "no value for: b; it returned: a, c"},
    {"all are missing", "a,b", "", "", NULL, "missing_output", "no value for: a, b; it returned: nothing"},
    {"null is missing", "a", "", "{\"a\":null}", NULL, "missing_output", "no value for: a"},
    {"an object is no lone value", "a", "", "{\"b\":1}", NULL, "missing_output", "it returned: b"},
    {"an error instead", "a", "", "{\"error\":{\"code\":\"quota\",\"message\":\"none left\"}}", NULL, "missing_output",
     "no value for: a; it returned an error: none left"},
    {"an error in a word", "a", "", "{\"error\":\"none left\"}", NULL, "missing_output",
     "it returned an error: none left"},
    {"an error that says nothing", "a", "", "{\"error\":{\"code\":1}}", NULL, "missing_output", "it returned: error"},
    {"an error beside all outputs", "a", "", "{\"a\":1,\"error\":\"no\"}", "{\"a\":1}", NULL, NULL},
    {"a list for two", "a,b", "", "[1,2]", NULL, "bad_output",
     "returned a list: expected an object with its outputs: a, b"},
    {"no JSON", "a", "", "{\"a\":", NULL, "bad_output", "begins: {\"a\":"},
    {"an odd key", "a\"b", "", "7", "{\"a\\\"b\":7}", NULL, NULL},
};

static void declare(struct spec_texts *texts, char *list)
{
    char *save = NULL;

    texts->n = 0;
    for (char *at = strtok_r(list, ",", &save); at; at = strtok_r(NULL, ",", &save))
        add(texts, at);
}

static void a_node_gives_what_it_promised(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
        AUTO(mem_freep) char *outputs = mem_dup(str_from(promises[i].outputs));
        AUTO(mem_freep) char *nullable = mem_dup(str_from(promises[i].nullable));
        bool ok;

        declare(&f.node.outputs, outputs);
        declare(&f.node.nullable_outputs, nullable);
        ok = node_work_output(&f.body, str_from(promises[i].came), &f.result);
        if (ok != (promises[i].gives != NULL))
            fail_msg("%s: %s %s", promises[i].name, f.result.code, f.result.message);
        if (ok)
            assert_string_equal(buf_cstr(&f.result.output), promises[i].gives);
        else if (strcmp(f.result.code, promises[i].code) != 0 || !strstr(f.result.message, promises[i].words))
            fail_msg("%s: %s %s", promises[i].name, f.result.code, f.result.message);
    }
    end(&f);
}

/* ---- secrets ---- */

static const struct node_work_secret secrets[] = {
    {{"api_key", 7}, {"\"sk-very-secret\"", 16}},
    {{"credentials", 11}, {"{\"user\":\"bob\",\"password\":\"p\\u0061ss\\\"word\"}", 43}},
    {{"pin", 3}, {"123456", 6}},
    {{"access_token", 12}, {"", 0}},
    {{"pem", 3}, {"\"BEGINNING\\nmiddle-of-it\\nENDING\"", 33}},
};

static void use_secrets(struct fixture *f)
{
    f->body.secrets = secrets;
    f->body.n_secrets = sizeof(secrets) / sizeof(secrets[0]);
}

static const struct {
    const char *name, *came, *words; /* NULL: it is fine */
} leaks[] = {
    {"nothing", "{\"a\":\"sk-very-public\",\"b\":[\"bob\",12345]}", NULL},
    {"under its own key", "{\"api_key\":\"sk-very-secret\",\"a\":1}", NULL},
    {"in a text", "{\"a\":\"key=sk-very-secret!\"}", "'a' holds the value of 'api_key'"},
    {"deep", "{\"a\":[{\"b\":[\"sk-very-secret\"]}]}", "'a' holds the value of 'api_key'"},
    {"escaped", "{\"a\":\"sk-very\\u002dsecret\"}", "'a' holds the value of 'api_key'"},
    {"as a key", "{\"a\":{\"sk-very-secret\":1}}", "'a' holds the value of 'api_key'"},
    {"part of an object", "{\"a\":\"pass\\\"word\"}", "'a' holds the value of 'credentials'"},
    {"a number", "{\"a\":123456}", "'a' holds the value of 'pin'"},
    {"a number in a text", "{\"a\":\"pin 123456\"}", "'a' holds the value of 'pin'"},
    {"one that is new", "{\"access_token\":\"fresh-token\",\"a\":\"Bearer fresh-token\"}",
     "'a' holds the value of 'access_token'"},
    {"one that is new and alone", "{\"access_token\":\"fresh-token\",\"a\":\"Bearer\"}", NULL},
    {"one secret in another", "{\"access_token\":\"sk-very-secret\"}", NULL},
};

static void a_secret_in_another_output_is_a_failure(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    use_secrets(&f);
    for (size_t i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++) {
        bool ok = node_work_output(&f.body, str_from(leaks[i].came), &f.result);

        if (ok != (leaks[i].words == NULL))
            fail_msg("%s: %s %s", leaks[i].name, f.result.code, f.result.message);
        if (ok)
            continue;
        assert_string_equal(f.result.code, "secret");
        if (!strstr(f.result.message, leaks[i].words))
            fail_msg("%s: %s", leaks[i].name, f.result.message);
        assert_null(strstr(f.result.message, "sk-very"));
    }
    add(&f.node.outputs, "a");
    assert_true(node_work_output(&f.body, STR("{\"a\":1,\"dropped\":\"sk-very-secret\"}"), &f.result));
    assert_string_equal(buf_cstr(&f.result.output), "{\"a\":1}");
    assert_false(node_work_output(&f.body, STR("{\"error\":\"bad sk-very-secret\"}"), &f.result));
    assert_non_null(strstr(f.result.message, "it returned an error: bad **************"));
    add(&f.node.outputs, "access_token");
    assert_false(node_work_output(&f.body, STR("{\"error\":\"bad new-token\"}"), &f.result));
    assert_null(strstr(f.result.message, "new-token"));
    end(&f);
}

static const struct {
    const char *name, *text, *want;
} masks[] = {
    {"plain", "x sk-very-secret y sk-very-secret", "x ************** y **************"},
    {"nothing", "sk-very-public", "sk-very-public"},
    {"part of an object", "u bob pass\"word", "u bob *********"},
    {"as JSON", "{\"p\":\"pass\\\"word\"}", "{\"p\":\"**********\"}"},
    {"one line of it", "middle-of-it", "************"},
    {"short", "bo", "bo"},
    {"a number", "pin=123456.", "pin=******."},
};

static void secrets_are_masked_in_texts(void **state)
{
    const struct node_work_secret overlap[] = {
        {{"a", 1}, {"\"abcd\"", 6}}, {{"b", 1}, {"\"xxabcdyy\"", 10}}, {{"c", 1}, {"\"yyzz\"", 6}}};
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        snprintf(text, sizeof(text), "%s", masks[i].text);
        node_work_mask(text, strlen(text), secrets, sizeof(secrets) / sizeof(secrets[0]));
        assert_string_equal(text, masks[i].want);
    }
    snprintf(text, sizeof(text), "%s", ".xxabcdyyzz.");
    node_work_mask(text, strlen(text), overlap, 3);
    assert_string_equal(text, ".**********.");
}

static const struct {
    const char *name, *script;
} telling[] = {
    {"standard error", "echo 'denied: sk-very-secret' >&2; exit 1"},
    {"its own words", "echo '{\"error\":{\"code\":\"x\",\"message\":\"sk-very-secret\"}}'; exit 1"},
    {"no JSON", "echo 'sk-very-secret'"},
    {"cut in two by what is shown", "printf '%053d' 0; echo 'sk-very-secret and more of it and more of it'"},
    {"a line whose beginning is gone",
     "printf 'sk-very-secret' >&2; head -c 2041 /dev/zero | tr '\\0' 'x' >&2; exit 1"},
    {"a line of a text that has lines", "printf 'BEGINNING\\nmiddle-of-it\\n' >&2; exit 1"},
};

static void no_failure_tells_a_secret(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    use_secrets(&f);
    for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
        use_shell(&f, telling[i].script);
        assert_false(node_work_run(&f.body, &f.result));
        if (strstr(f.result.message, "very") || strstr(f.result.message, "-secret") ||
            strstr(f.result.message, "middle"))
            fail_msg("%s: %s", telling[i].name, f.result.message);
        assert_non_null(strstr(f.result.message, "****"));
    }
    use_lua(&f, "error('x sk-very-secret')");
    fails(&f, "lua", "x **************");
    end(&f);
}

/* ---- texts ---- */

static const struct {
    const char *name, *text, *want, *words; /* words: TIDE_INVALID */
} texts[] = {
    {"none", "plain", "plain", NULL},
    {"empty", "", "", NULL},
    {"a text", "Hello {name}!", "Hello Ann \"A\"!", NULL},
    {"others as JSON", "{n} {list} {yes} {no}", "1.50 [1,2] true null", NULL},
    {"a member", "{who.name} {who.deep.er}", "Bob 7", NULL},
    {"a key with a dot", "{a.b}", "dotted", NULL},
    {"an object", "{who}", "{\"name\":\"Bob\",\"deep\":{\"er\":7}}", NULL},
    {"braces", "{{name}} {{", "{name} {", NULL},
    {"braces around one", "{{{name}}}", "{Ann \"A\"}", NULL},
    {"JSON", "{\"a\":{\"b\":1}} {} { name } {1}", "{\"a\":{\"b\":1}} {} { name } {1}", NULL},
    {"JSON with one", "{{\"a\": {n}}}", "{\"a\": 1.50}", NULL},
    {"not closed", "{name", "{name", NULL},
    {"letters of all kinds", "{größe}", "XL", NULL},
    {"unknown", "Hi {nam}", NULL, "{nam} has no value: there is name, n, list"},
    {"an unknown member", "{who.age}", NULL, "{who.age} has no value"},
    {"a member of a text", "{name.x}", NULL, "{name.x} has no value"},
};

static const char values[] =
    "{\"name\":\"Ann \\\"A\\\"\",\"n\":1.50,\"list\":[1, 2],\"yes\":true,\"no\":null,\"a.b\":\"dotted\","
    "\"who\":{\"name\":\"Bob\",\"deep\":{\"er\":7}},\"gr\\u00f6\\u00dfe\":\"XL\"}";

static void placeholders_become_values(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    AUTO(buf_done) struct buf small = BUF_INIT(8);
    struct json *v = NULL;

    (void)state;
    OK(json_parse(&a, str_from(values), NULL, &v, NULL, &err));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        buf_clear(&out);
        if (texts[i].words) {
            SAYS(TIDE_INVALID, texts[i].words, placeholders_fill(str_from(texts[i].text), v, &out, &err));
            continue;
        }
        OK(placeholders_fill(str_from(texts[i].text), v, &out, &err));
        if (strcmp(buf_cstr(&out), texts[i].want) != 0)
            fail_msg("%s: want '%s', got '%s'", texts[i].name, texts[i].want, buf_cstr(&out));
    }
    GIVES(TIDE_TOO_BIG, placeholders_fill(STR("{name} {name}"), v, &small, &err));
    OK(json_parse(&a, STR("{}"), NULL, &v, NULL, &err));
    SAYS(TIDE_INVALID, "there is nothing", placeholders_fill(STR("{name}"), v, &out, &err));
}

static void put_name(void *arg, struct str key)
{
    buf_addf(arg, "%.*s ", STR_ARG(key));
}

static void the_keys_of_a_text_are_told_once(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    (void)state;
    placeholders_keys(STR("{b} {a.x} {{c}} {b} {\"d\":{e}} {a.x}"), put_name, &out);
    assert_string_equal(buf_cstr(&out), "b a.x e ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_gives_what_it_prints),
        cmocka_unit_test(each_failure_of_a_program_has_a_code_and_a_line),
        cmocka_unit_test(a_program_is_found_by_path_or_beside_the_graph),
        cmocka_unit_test(big_inputs_reach_who_reads_and_do_not_hang_who_does_not),
        cmocka_unit_test(what_a_program_leaves_behind_is_ended_and_not_waited_for),
        cmocka_unit_test(an_output_that_is_too_big_ends_the_program),
        cmocka_unit_test(complaints_of_any_length_do_not_hold_a_program_up),
        cmocka_unit_test(a_program_that_takes_too_long_is_ended_whole),
        cmocka_unit_test(a_program_that_is_told_to_stop_is_ended),
        cmocka_unit_test(a_program_that_is_told_to_stop_first_is_not_begun),
        cmocka_unit_test(whether_to_stop_is_asked_again_and_again),
        cmocka_unit_test(programs_run_beside_each_other),
        cmocka_unit_test(a_callback_gets_its_inputs_and_gives_its_outputs),
        cmocka_unit_test(lua_sees_inputs_and_memory),
        cmocka_unit_test(a_node_gives_what_it_promised),
        cmocka_unit_test(a_secret_in_another_output_is_a_failure),
        cmocka_unit_test(secrets_are_masked_in_texts),
        cmocka_unit_test(no_failure_tells_a_secret),
        cmocka_unit_test(placeholders_become_values),
        cmocka_unit_test(the_keys_of_a_text_are_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
