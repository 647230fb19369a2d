/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and glue: what they give, what they cannot reach, how they are stopped, and that translated ones say what Python says. */
#include "kit.h"

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>

#include "graph/expr.h"

#define MEMORY                                                                                                         \
    "{\"b\":1,\"a\":[1,null,3],\"n\":null,\"big\":9007199254740993,\"f\":1.0,\"t\":\"é\\u0041\",\"done\":false,\"e\":[],\"o\":{}}"

struct row {
    const char *source, *output, *want; /* want: JSON, or "CODE words of the message" */
};

static enum tide_code eval(const struct expr *e, const char *output, const struct expr_limits *limits, struct buf *out,
                           struct tide_err *err)
{
    struct expr_value values[] = {{"output", str_from(output ? output : "{}")}, {"memory", STR(MEMORY)}};

    return expr_eval(e, values, 2, limits, out, err);
}

typedef enum tide_code compile_fn(struct str source, struct expr **ret_expr, struct tide_err *err);

static enum tide_code compile_python(struct str source, struct expr **ret_expr, struct tide_err *err)
{
    struct buf lua = BUF_INIT(1 << 20);
    enum tide_code code = expr_from_python(source, false, &lua, err);

    if (!code)
        code = expr_compile(buf_view(&lua), ret_expr, err);
    buf_done(&lua);
    return code;
}

/* Its value or its error, as text. */
static void answer(compile_fn *compile, const struct row *row, char *got, size_t cap)
{
    struct buf out = BUF_INIT(1 << 26);
    struct tide_err err = {0};
    struct expr *e = NULL;
    enum tide_code code = compile(str_from(row->source), &e, &err);

    if (!code)
        code = eval(e, row->output, NULL, &out, &err);
    if (code)
        snprintf(got, cap, "%s %s", tide_code_name(code), err.msg);
    else
        snprintf(got, cap, "%s", buf_cstr(&out));
    assert_null(strchr(err.msg, '\n'));
    expr_free(e);
    buf_done(&out);
}

static bool agrees(const char *got, const char *want)
{
    const char *words = strchr(want, ' ');

    if (strcmp(got, want) == 0)
        return true;
    return want[0] >= 'A' && want[0] <= 'Z' && words && strncmp(got, want, (size_t)(words - want + 1)) == 0 &&
           strstr(got, words + 1);
}

static void check(compile_fn *compile, const struct row *rows, size_t n)
{
    char got[1000];
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        answer(compile, &rows[i], got, sizeof got);
        if (agrees(got, rows[i].want))
            continue;
        print_error("%s\n  want %s\n  got  %s\n", rows[i].source, rows[i].want, got);
        ok = false;
    }
    assert_true(ok);
}
#define CHECK(compile, rows) check(compile, rows, sizeof(rows) / sizeof((rows)[0]))

/* ---- values ---- */

static void values_come_and_go_as_json(void **state)
{
    static const struct row rows[] = {
        {"output.confidence > 0.8 and not memory.done", "{\"confidence\":0.9}", "true"},
        {"output['confidence']", "{\"confidence\":0.9}", "0.9"},
        {"memory", NULL,
         "{\"b\":1,\"a\":[1,null,3],\"n\":null,\"big\":9007199254740993,\"f\":1.0,\"t\":\"éA\",\"done\":false,\"e\":[],\"o\":{}}"},
        {"memory.big + 1", NULL, "9007199254740994"},
        {"-9223372036854775807 - 1", NULL, "-9223372036854775808"},
        {"memory.f", NULL, "1.0"},
        {"0.1 + 0.2", NULL, "0.30000000000000004"},
        {"1e300 * 10", NULL, "1e+301"},
        {"memory.e", NULL, "[]"},
        {"{}", NULL, "{}"},
        {"json.array({})", NULL, "[]"},
        {"{1, 2, {x = 'y'}}", NULL, "[1,2,{\"x\":\"y\"}]"},
        {"{c = 1, a = 2, b = 3}", NULL, "{\"a\":2,\"b\":3,\"c\":1}"},
        {"{x = json.null}", NULL, "{\"x\":null}"},
        {"nil", NULL, "null"},
        {"nothing_here", NULL, "null"},
        {"output", "null", "null"},
        {"output", "[[],{},[null]]", "[[],{},[null]]"},
        {"output == null", "null", "true"},
        {"memory.n == null and not memory.n", NULL, "true"},
        {"#memory.a", NULL, "3"},
        {"memory.a[2] == nil and memory.a[3] == 3", NULL, "true"},
        {"#memory.t", NULL, "3"},
        {"utf8.len(memory.t)", NULL, "2"},
        {"output.x", "{\"x\":\"a\\u0000b\"}", "\"a\\u0000b\""},
        {"output", "123456789012345678901234567890", "1.2345678901234568e+29"},
        {"1 / 0", NULL, "FAILED infinite"},
        {"0 / 0", NULL, "FAILED NaN"},
        {"output", "1e999", "FAILED infinite"},
        {"print", NULL, "null"},
        {"type", NULL, "FAILED function"},
        {"{1, x = 2}", NULL, "FAILED both list items and members ('x')"},
        {"{1, [4] = 2}", NULL, "FAILED gap"},
        {"{[1.5] = 2}", NULL, "FAILED 1.5"},
        {"{['\\xff'] = 1, ['\\xfe'] = 2}", NULL, "FAILED not UTF-8"},
        {"output.x", "{\"x\":", "FAILED the value of 'output' is not JSON: line 1"},
    };

    (void)state;
    CHECK(expr_compile, rows);
}

static void bodies_change_and_give_back(void **state)
{
    static const struct row rows[] = {
        {"memory.z = 1; memory.a[#memory.a + 1] = 4; return {memory.a, memory.z}", NULL, "[[1,null,3,4],1]"},
        {"output.b = nil output.n = 5 output.aa = 1 return output", "{\"z\":1,\"b\":2,\"n\":null,\"a\":3}",
         "{\"z\":1,\"n\":5,\"a\":3,\"aa\":1}"},
        {"table.remove(output) return output", "[1,2,3]", "[1,2]"},
        {"local s = '' for k, v in pairs(output) do s = s .. k end return s", "{\"z\":1,\"b\":2,\"a\":3}", "\"zba\""},
        {"local s = '' for k in pairs({z = 1, b = 2, [1] = 0, a = 3, [10] = 1, [2] = 1}) do s = s .. k end return s",
         NULL, "\"1210abz\""},
        {"local k = next(output) return {k, next({}) == nil, next(output, k)}", "{\"z\":1,\"b\":2}",
         "[\"z\",true,\"b\",2]"},
        {"local t = {} for w in ('a b  c'):gmatch('%S+') do t[#t + 1] = w:upper() end return table.concat(t, ',')",
         NULL, "\"A,B,C\""},
        {"return (('  trim '):match('^%s*(.-)%s*$'))", NULL, "\"trim\""},
        {"return {('k=v; x=y'):gsub('(%w)=(%w)', '%2=%1')}", NULL, "[\"v=k; y=x\",2]"},
        {"return {('abc'):gsub('', '-')}", NULL, "[\"-a-b-c-\",4]"},
        {"return {('hello'):gsub('l', {l = 'L'})}", NULL, "[\"heLLo\",2]"},
        {"return {('f(a(b)c)d'):match('%b()'), ('THE (quick) fox'):find('%((%a+)%)')}", NULL,
         "[\"(a(b)c)\",5,11,\"quick\"]"},
        {"return ('THE (quick) fox'):gsub('%f[%a]%a+', string.len)", NULL, "\"3 (5) 3\""},
        {"return {('aXb'):find('X', 1, true), ('a.b'):find('.', 2, true), ('x'):find('x', 5)}", NULL, "[2,2]"},
        {"return {('abab'):match('(a)(b)%1'), ('key = 5'):match('^(%w+)%s*=%s*(%d+)$')}", NULL,
         "[\"a\",\"key\",\"5\"]"},
        {"return {('x]y'):match('[]]'), ('a-z'):match('[a%-]+'), ('q'):match('[^a-p]'), ('()'):match('()%)')}", NULL,
         "[\"]\",\"a-\",\"q\",2]"},
        {"return tostring({})", NULL, "\"table\""},
        {"x = 5 return x", NULL, "5"},
        {"local x = 1", NULL, "null"},
        {"return math.max(1, 2), 3", NULL, "2"},
    };

    (void)state;
    CHECK(expr_compile_body, rows);
}

/* ---- errors ---- */

static void errors_are_one_line_and_name_what_is_missing(void **state)
{
    static const struct row rows[] = {
        {"output.a.b", NULL, "FAILED line 1: attempt to index a nil value (field 'a')"},
        {"nowhere.b", NULL, "FAILED line 1: attempt to index a nil value (global 'nowhere')"},
        {"output.confidence > 0.8", NULL,
         "FAILED line 1: attempt to compare number with nil ('confidence' is not set)"},
        {"output.n + 1", NULL, "FAILED line 1: attempt to perform arithmetic on a nil value (field 'n')"},
        {"\n\noutput.x()", NULL, "FAILED line 3: attempt to call a nil value (field 'x')"},
        {"x +", NULL, "INVALID line 1: unexpected symbol near <eof>"},
        {"", NULL, "INVALID an empty expression"},
        {" \n", NULL, "INVALID an empty expression"},
        {"1, 2", NULL, "INVALID expected one expression"},
        {"1;", NULL, "INVALID expected one expression"},
        {"1) + (2", NULL, "INVALID line 1"},
        {"x = 1", NULL, "INVALID line 1"},
        {"\x1bLua", NULL, "INVALID line 1"},
        {"error('a\xff', 0)", NULL, "FAILED a?"},
        {"error({})", NULL, "FAILED the code raised an error that has no text"},
        {"error('mine', 0)", NULL, "FAILED mine"},
        {"error('two\\nlines')", NULL, "FAILED line 1: two lines"},
    };

    (void)state;
    CHECK(expr_compile, rows);
}

static void nothing_dangerous_is_there(void **state)
{
    static const char *const names[] = {
        "os",           "io",           "debug",       "package",     "require",         "load",
        "loadstring",   "loadfile",     "dofile",      "coroutine",   "collectgarbage",  "print",
        "setmetatable", "getmetatable", "rawset",      "rawget",      "pcall",           "xpcall",
        "_G",           "warn",         "string.dump", "math.random", "math.randomseed", "_VERSION",
    };
    char source[100], got[300];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(source, sizeof source, "%s == nil", names[i]);
        answer(expr_compile, &(struct row){source, NULL, NULL}, got, sizeof got);
        if (strcmp(got, "true") != 0)
            print_error("%s: %s\n", source, got);
        assert_string_equal(got, "true");
    }
}

static void limits_stop_everything(void **state)
{
    static const struct row rows[] = {
        {"while true do end", NULL, "TOO_BIG runs for too long"},
        {"local function f() return 1 + f() end return f()", NULL, "TOO_BIG stopped"},
        {"local function f() return f() end return f()", NULL, "TOO_BIG runs for too long"},
        {"return ('x'):rep(1 << 40)", NULL, "TOO_BIG memory"},
        {"return (''):rep(1 << 60)", NULL, "TOO_BIG runs for too long"},
        {"return ('x'):rep(1 << 62, 'yyyy')", NULL, "TOO_BIG memory"},
        {"local s = 'x' while true do s = s .. s end", NULL, "TOO_BIG memory"},
        {"local t = {} for i = 1, 1e9 do t[i] = {i} end", NULL, "TOO_BIG memory"},
        {"return ('a'):rep(300):find(('a*'):rep(30) .. 'b')", NULL, "TOO_BIG runs for too long"},
        {"return ('a'):rep(3000):gsub('.-.-.-.-b', '')", NULL, "TOO_BIG runs for too long"},
        {"local s = ('a'):rep(1 << 22) while true do s:reverse() end", NULL, "TOO_BIG runs for too long"},
        {"local s = ('a'):rep(1 << 21) local t = s .. '' while true do local x = s == t end", NULL,
         "TOO_BIG runs for too long"},
        {"local s = ('a'):rep(1 << 22) while true do utf8.len(s) end", NULL, "TOO_BIG runs for too long"},
        {"local t = {} for i = 1, 50000 do t[i] = -i end while true do table.sort(t) end", NULL,
         "TOO_BIG runs for too long"},
        {"local t = {} for i = 1, 1e6 do table.insert(t, 1, i) end", NULL, "TOO_BIG runs for too long"},
        {"local t = {} for i = 1, 50000 do table.insert(t, i) end while t[1] do table.remove(t) end return #t", NULL,
         "0"},
        {"table.move({}, 1, math.maxinteger - 1, 2)", NULL, "TOO_BIG runs for too long"},
        {"return table.unpack({}, 1, 1e8)", NULL, "FAILED too many results to unpack"},
        {"local t = {} t.t = t return t", NULL, "FAILED contains itself"},
        {"local t = {} for i = 1, 127 do t = {t} end return t ~= nil", NULL, "true"},
        {"local t = 'xxxxxxxx' for i = 1, 100 do t = {t, t} end return t", NULL, "TOO_BIG result"},
        {"return string.format('%p', {})", NULL, "FAILED %p"},
        {"return string.format('%s', {})", NULL, "FAILED table"},
        {"local t = {} t[t] = 1 for k in pairs(t) do end", NULL, "FAILED key"},
        {"return ('x'):rep(1000):find(('('):rep(40))", NULL, "FAILED captures"},
        {"return ('x'):find('[a')", NULL, "FAILED malformed pattern"},
        {"return ('x'):find('%')", NULL, "FAILED malformed pattern"},
        {"return ('x'):gsub('x', '%9')", NULL, "FAILED capture index"},
        {"local x <close> = 5", NULL, "FAILED non-closable"},
    };

    (void)state;
    CHECK(expr_compile_body, rows);
}

static void limits_are_the_callers(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct expr *e = NULL;

    (void)state;
    OK(expr_compile_body(STR("for i = 1, 10000 do end return #('x'):rep(100000)"), &e, &err));
    OK(eval(e, NULL, NULL, &out, &err));
    GIVES(TIDE_TOO_BIG, eval(e, NULL, &(struct expr_limits){500, 0}, &out, &err));
    GIVES(TIDE_TOO_BIG, eval(e, NULL, &(struct expr_limits){0, 50000}, &out, &err));
    assert_int_equal(out.len, strlen("100000")); /* what failed left nothing */
    expr_free(e);
    buf_done(&out);
}

static void a_result_that_does_not_fit_is_refused(void **state)
{
    struct buf out = BUF_INIT(100);
    struct expr *e = NULL;

    (void)state;
    OK(expr_compile(STR("('x'):rep(200)"), &e, &err));
    GIVES(TIDE_TOO_BIG, eval(e, NULL, NULL, &out, &err));
    assert_int_equal(out.len, 0);
    assert_false(out.failed);
    expr_free(e);
    buf_done(&out);
}

static void nothing_is_kept_between_calls(void **state)
{
    static const struct row rows[] = {
        {"string.x = 1", NULL, "FAILED 'string' is read-only"},
        {"string.upper = nil", NULL, "FAILED read-only"},
        {"table.insert(math, 1)", NULL, "FAILED read-only"},
        {"json.null = 1", NULL, "FAILED read-only"},
        {"left = (left or 0) + 1 type = nil memory.a = left return left", NULL, "1"},
        {"left = (left or 0) + 1 return {left, type(memory.a)}", NULL, "[1,\"table\"]"},
        {"_ENV = {} return x", NULL, "null"},
        {"output = nil return output", "1", "null"},
        {"return output", "2", "2"},
    };

    (void)state;
    for (int i = 0; i < 3; i++)
        CHECK(expr_compile_body, rows);
}

static void only_nil_null_and_false_are_false(void **state)
{
    static const struct {
        const char *source;
        bool want;
    } rows[] = {{"nil", false}, {"false", false}, {"output.x", false}, {"json.null", false},
                {"0", true},    {"''", true},     {"{}", true}};
    struct expr_value output = {"output", STR("{\"x\":null}")};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct expr *e = NULL;
        bool got = !rows[i].want;

        OK(expr_compile(str_from(rows[i].source), &e, &err));
        OK(expr_test(e, &output, 1, &got, &err));
        assert_int_equal(got, rows[i].want);
        expr_free(e);
    }
}

/* ---- threads ---- */

static void *evaluate_often(void *arg)
{
    const struct expr *e = arg;
    struct buf out = BUF_INIT(1000);

    for (int i = 0; i < (SLOW_BUILD ? 200 : 2000); i++) {
        buf_clear(&out);
        if (eval(e, "{\"n\":2}", NULL, &out, NULL) || !str_eq(buf_view(&out), STR("5")))
            return arg;
    }
    buf_done(&out);
    return NULL;
}

static void threads_may_share_an_expression(void **state)
{
    pthread_t threads[12];
    struct expr *e = NULL;
    void *failed;

    (void)state;
    OK(expr_compile(STR("output.n + #memory.a"), &e, &err));
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_often, e), 0);
    for (size_t i = 0; i < 12; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    expr_free(e);
}

static void many_expressions_share_the_interpreters(void **state)
{
    enum { MANY = 1000 };
    struct expr *e[MANY] = {NULL};
    struct buf out = BUF_INIT(100);
    char source[32];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(source, sizeof source, "%d", i);
        OK(expr_compile(str_from(source), &e[i], &err));
    }
    for (int i = 0; i < 3 * MANY; i++) {
        buf_clear(&out);
        OK(eval(e[i % MANY], NULL, NULL, &out, &err));
        assert_int_equal(strtol(buf_cstr(&out), NULL, 10), i % MANY);
    }
    for (int i = 0; i < MANY; i++)
        expr_free(e[i]);
    buf_done(&out);
}

/* ---- patterns, against Lua's own ---- */

#define TRY_PATTERN                                                                                                     \
    "local out = {} local function add(...) for i = 1, select('#', ...) do out[#out + 1] = tostring((select(i, ...))) " \
    "end end add(s:find(p)) add(s:match(p, 2)) add(s:gsub(p, '<%0>')) for a, b in s:gmatch(p) do add(a, b) end "        \
    "add(s:gsub(p, function(x) return #out end, 3)) return table.concat(out, '|')"

static void pick_text(struct rng *r, struct buf *out, const char *name, const char *const *pieces, int64_t n,
                      int64_t most)
{
    buf_addf(out, "local %s = \"", name);
    for (int64_t i = rng_below(r, most); i > 0; i--)
        buf_add_str(out, str_from(pieces[rng_below(r, n)]));
    buf_add_str(out, STR("\" "));
}

/* What Lua's own library says: the text, or NULL when it is an error. */
static const char *lua_says(lua_State *l, struct buf *source)
{
    lua_settop(l, 0);
    return luaL_dostring(l, buf_cstr(source)) ? NULL : lua_tostring(l, -1);
}

static void patterns_match_as_in_lua(void **state)
{
    static const char *const texts[] = {"a", "b", "A", "1", " ", "(", ")", "]", "-", "ab", "."};
    static const char *const patterns[] = {
        "a", "b", ".",  "%a", "%d",   "%s",     "%W", "[ab]", "[^a]", "[%a-]", "[]a]", "[a-b1]", "*", "+",  "-", "?",
        "(", ")", "()", "%1", "%b()", "%f[%a]", "^",  "$",    "%%",   "%-",    "(a)",  "(.-)",   "[", "%f", "%b"};
    lua_State *l = luaL_newstate();
    struct rng r = {11};
    size_t errors = 0, n = SLOW_BUILD ? 3000 : 30000;

    (void)state;
    luaL_openlibs(l);
    for (size_t i = 0; i < n; i++) {
        struct buf source = BUF_INIT(4096);
        char got[1000], want[1000];
        const char *text;

        pick_text(&r, &source, "s", texts, sizeof texts / sizeof texts[0], 8);
        pick_text(&r, &source, "p", patterns, sizeof patterns / sizeof patterns[0], 6);
        buf_add_str(&source, STR(TRY_PATTERN));
        text = lua_says(l, &source);
        answer(expr_compile_body, &(struct row){buf_cstr(&source), NULL, NULL}, got, sizeof got);
        snprintf(want, sizeof want, "\"%s\"", text ? text : "");
        if (text ? strcmp(got, want) != 0 : strncmp(got, "FAILED ", 7) != 0)
            fail_msg("%s\n  Lua: %s\n  ours: %s", buf_cstr(&source), text ? want : lua_tostring(l, -1), got);
        errors += text ? 0 : 1;
        buf_done(&source);
    }
    assert_true(errors > n / 50 && errors < n - n / 4);
    lua_close(l);
}

/* ---- Python ---- */

#define ROW(source, want)                                                                                                                 \
    {                                                                                                                                     \
        source,                                                                                                                           \
            "{\"n\":3,\"s\":\"Some Text\",\"l\":[1,2,3],\"e\":[],\"d\":{\"k\":null,\"v\":1},\"z\":0,\"t\":true,\"u\":\"née\",\"end\":4}", \
            want                                                                                                                          \
    }

static void python_conditions_say_what_python_says(void **state)
{
    static const struct row rows[] = {
        ROW("output.n > 2 and not output.e", "true"),
        ROW("output['n'] == 3", "true"),
        ROW("output.e", "false"),
        ROW("output.z or output.e", "false"),
        ROW("output.d", "true"),
        ROW("not {}", "true"),
        ROW("(output.z or 7) == 7", "true"),
        ROW("(output.n and 'x') == 'x'", "true"),
        ROW("1 < output.n <= 3 < 10", "true"),
        ROW("1 < output.n < 3", "false"),
        ROW("'Text' in output.s", "true"),
        ROW("2 in output.l and 5 not in output.l", "true"),
        ROW("'k' in output.d and 'x' not in output.d", "true"),
        ROW("output.n in (1, 2, 3)", "true"),
        ROW("output.d['k'] is None", "true"),
        ROW("output.x is None", "true"),
        ROW("output.n is not None", "true"),
        ROW("output.t is True", "true"),
        ROW("output.t == 1 and 0 == False", "true"),
        ROW("'yes' if output.n > 5 else ''", "false"),
        ROW("output.l[0] == 1 and output.l[-1] == 3", "true"),
        ROW("output.u[1] == 'é' and len(output.u) == 3", "true"),
        ROW("output.u == 'n\\xe9e' == 'n\\u00e9e'", "true"),
        ROW("7 // 2 == 3 and -7 // 2 == -4 and -7 % 3 == 2 and 7 / 2 == 3.5", "true"),
        ROW("2 ** 10 == 1024 and 2 ** -1 == 0.5 and -2 ** 2 == -4 and 2 ** 3 ** 2 == 512", "true"),
        ROW("len(output.l) + len('ab') + len({'a': 1}) == 6", "true"),
        ROW("int('12') + int(3.9) + int(True) == 16 and float('1.5') == 1.5", "true"),
        ROW("str(1.0) == '1.0' and str(None) == 'None' and str(True) == 'True'", "true"),
        ROW("str([1, 'a', None, {'b': 2.5}]) == \"[1, 'a', None, {'b': 2.5}]\"", "true"),
        ROW("bool('') == False and bool('x')", "true"),
        ROW("min(3, 1, 2) == 1 and max([3, 1, 2]) == 3 and sum([1, 2, 3]) == 6", "true"),
        ROW("abs(-3) == 3 and round(2.5) == 2 and round(3.14159, 2) == 3.14", "true"),
        ROW("all([1, 'x', True]) and not any([0, '', None])", "true"),
        ROW("output.get('n') == 3 and output.get('nope', 5) == 5 and output.d.get('k', 5) is None", "true"),
        ROW("output.d.keys() == ['k', 'v'] and output.d.values() == [None, 1]", "true"),
        ROW("output.d.items() == [['k', None], ['v', 1]]", "true"),
        ROW("output.s.lower() == 'some text' and output.s.upper() == 'SOME TEXT'", "true"),
        ROW("'  x '.strip() == 'x' and 'xxaxx'.strip('x') == 'a'", "true"),
        ROW("output.s.split() == ['Some', 'Text'] and 'a,b,c'.split(',', 1) == ['a', 'b,c']", "true"),
        ROW("[1, [2]] == [1, [2]] and {'a': 1} == {'a': 1.0} and [1] != [2] and [1, 2] < [1, 3]", "true"),
        ROW("'a' 'b' == 'ab' and r'\\n' != '\\n' and '''x''' == \"x\"", "true"),
        ROW("0x10 == 16 and 0o17 == 15 and 0b101 == 5 and 1_000 == 1000 and .5 == 5e-1", "true"),
        ROW("output.end == 4 and true and not false", "true"),
        ROW("(1 <\n  2)  # why", "true"),
        ROW("table is None and end is None", "true"),
        ROW("[1] + [2] == [1, 2] and 'a' + 'b' == 'ab'", "true"),
        ROW("not output.n == 3", "false"),
        ROW("output.n == 3 or nothing['x']", "true"),
        ROW("(lambda: 1)", "INVALID line 1, column 2: 'lambda'"),
        ROW("[x for x in output.l]", "INVALID column 4: comprehensions"),
        ROW("output.l[1:2]", "INVALID column 11: slices"),
        ROW("output.s.startswith('S')", "INVALID column 10: the method 'startswith'"),
        ROW("isinstance(1, int)", "INVALID column 1: the function 'isinstance'"),
        ROW("f'{x}'", "INVALID f-strings"),
        ROW("b'x' == 1", "INVALID bytes"),
        ROW("{1, 2}", "INVALID sets"),
        ROW("1 & 2", "INVALID '&'"),
        ROW("~1", "INVALID '~'"),
        ROW("x = 1", "INVALID column 3: '='"),
        ROW("(x := 1)", "INVALID ':='"),
        ROW("max(1, key=2)", "INVALID by name"),
        ROW("[*output.l]", "INVALID '*' before a value"),
        ROW("1j", "INVALID complex"),
        ROW("x is 5", "INVALID column 3: 'is'"),
        ROW("output.__class__", "INVALID column 8: names that begin with __"),
        ROW("len(1, 2)", "INVALID len() takes 1 to 1"),
        ROW("1 +", "INVALID column 4: a value expected, not the end"),
        ROW("1 2", "INVALID column 3: the end expected, not '2'"),
        ROW("(1", "INVALID ')' expected"),
        ROW("", "INVALID empty condition"),
        ROW("1\n2", "INVALID line 2, column 1: a second line"),
        ROW("'abc", "INVALID a text that does not end"),
        ROW("99999999999999999999", "INVALID 64 bits"),
        ROW("x $ y", "INVALID '$'"),
        ROW("output['nope'] == 1", "FAILED there is no key 'nope'"),
        ROW("output.l[7]", "FAILED index 7"),
        ROW("1 / output.z", "FAILED division by zero"),
        ROW("output.nope > 1", "FAILED 'nope' is not set"),
        ROW("output.nope.deeper", "FAILED attempt to index a nil value (field 'nope')"),
        ROW("1 + 'a'", "FAILED '+' is not supported between int and str"),
        ROW("len(5)", "FAILED int has no len()"),
        ROW("output.nope.lower()", "FAILED None has no method lower() ('nope' is not set)"),
        ROW("9223372036854775807 + 1", "FAILED 64 bits"),
        ROW("int('x')", "FAILED int() cannot read 'x'"),
    };

    (void)state;
    CHECK(compile_python, rows);
}

static void what_both_say_alike_stays_as_it_is(void **state)
{
    static const char *const rows[][2] = {
        {"output.confidence > 0.8", "output.confidence > 0.8"},
        {"output.status == 'done' and memory.n < 5", "output.status == \"done\" and memory.n < 5"},
        {"output.status != 'done' or not True", "output.status ~= \"done\" or not true"},
        {"output.x is None", "output.x == nil"},
        {"brief == 'a' and buffer.n > 1 and result.visit < 3",
         "memory.brief == \"a\" and memory.n > 1 and result.visit < 3"}, /* keys of the memory are names there */
        {"end > 1", "memory[\"end\"] > 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf lua = BUF_INIT(1000);

        OK(expr_from_python(str_from(rows[i][0]), true, &lua, &err));
        assert_string_equal(buf_cstr(&lua), rows[i][1]);
        buf_done(&lua);
    }
}

/* The deepest that is taken must be taken by Lua as well; deeper is refused, not crashed upon. */
static void nesting_is_bounded(void **state)
{
    static const char *const forms[][3] = {
        {"(", "1", ")"},         {"[", "1", "]"},
        {"not ", "1", ""},       {"-", "1", ""},
        {"abs(", "1", ")"},      {"1 if (", "1", ") else 2"},
        {"1 < (", "1", ") < 3"}, {"x and (", "1", ") or y"},
        {"2 ** ", "1", ""},      {"1 + ", "1", ""},
        {"", "x", ".y"},         {"", "x", "[0]"},
    };

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (unsigned depth = 1; depth < 3000; depth = depth < 70 ? depth + 1 : depth * 7) {
            struct buf text = BUF_INIT(1 << 20);
            struct tide_err err = {0};
            struct expr *e = NULL;
            enum tide_code code;

            for (unsigned i = 0; i < depth; i++)
                buf_add_str(&text, str_from(forms[f][0]));
            buf_add_str(&text, str_from(forms[f][1]));
            for (unsigned i = 0; i < depth; i++)
                buf_add_str(&text, str_from(forms[f][2]));
            code = compile_python(buf_view(&text), &e, &err);
            if (code && (code != TIDE_INVALID || !strstr(err.msg, "nested too deeply")))
                fail_msg("%s x %u: %s", forms[f][0], depth, err.msg);
            assert_true(depth > 10 || !code);
            expr_free(e);
            buf_done(&text);
        }
}

/* ---- Python itself as the judge ---- */

#define PEER_SEED 20261115
#define PEER_COUNT (SLOW_BUILD ? 1500 : 8000)

struct peer {
    struct arena arena;
    struct expr_value values[32];
    size_t n_values, same, errors, excused, wrong;
};

static void peer_values(struct peer *p, char *line)
{
    struct json *v = NULL;

    OK(json_parse(&p->arena, arena_dup(&p->arena, str_from(line)), NULL, &v, NULL, &err));
    for (const struct json *item = v->first; item && p->n_values < 32; item = item->next)
        p->values[p->n_values++] = (struct expr_value){arena_dup(&p->arena, item->key).ptr, json_source(item)};
}

/* Where ours says no on purpose although Python has an answer. */
static bool is_excused(const char *message)
{
    static const char *const excuses[] = {
        "does not fit in 64 bits",
        "cannot be multiplied here",
        "not a real number",
        "attempt to compare boolean with number",
        "attempt to compare number with boolean",
        "cannot fill in text",
        "nested too deeply",
    };

    for (size_t i = 0; i < sizeof excuses / sizeof excuses[0]; i++)
        if (strstr(message, excuses[i]))
            return true;
    return false;
}

static void peer_line(struct peer *p, const char *line)
{
    struct arena a = ARENA_INIT;
    struct buf out = BUF_INIT(1 << 20);
    struct tide_err err = {0};
    struct expr *e = NULL;
    struct json *v = NULL;
    struct str source, want;
    enum tide_code code;

    assert_int_equal(json_parse(&a, str_from(line), NULL, &v, NULL, &err), TIDE_OK);
    source = json_text(&a, v->first);
    want = json_text(&a, v->first->next);
    code = compile_python(source, &e, &err);
    if (!code)
        code = expr_eval(e, p->values, p->n_values, NULL, &out, &err);
    if ((code == TIDE_FAILED && str_eq(want, STR("error"))) || (code == TIDE_INVALID && str_eq(want, STR("invalid")))) {
        p->errors++;
    } else if (code && is_excused(err.msg)) {
        p->excused++;
    } else if (!code && str_eq(want, buf_view(&out))) {
        p->same++;
    } else if (p->wrong++ < 20) {
        print_error("%.*s\n  Python: %.*s\n  ours: %s%s\n", STR_ARG(source), STR_ARG(want), code ? err.msg : "",
                    buf_cstr(&out));
    }
    expr_free(e);
    buf_done(&out);
    arena_done(&a);
}

static void python_itself_agrees(void **state)
{
    struct peer p = {.arena = ARENA_INIT};
    const char *root = getenv("TIDE_SOURCE");
    char command[600], *line = NULL;
    size_t cap = 0;
    FILE *python;

    (void)state;
    snprintf(command, sizeof command, "python3 '%s/tests/graph/expr_peer.py' %d %d", root ? root : ".", PEER_SEED,
             PEER_COUNT);
    python = popen(command, "r"); /* NOLINT(cert-env33-c): our own script */
    assert_non_null(python);
    assert_true(getline(&line, &cap, python) > 0);
    peer_values(&p, line);
    while (getline(&line, &cap, python) > 0)
        peer_line(&p, line);
    free(line);
    assert_int_equal(pclose(python), 0);
    arena_done(&p.arena);
    print_message("python3: %zu the same, %zu errors in both, %zu excused, %zu wrong (seed %d)\n", p.same, p.errors,
                  p.excused, p.wrong, PEER_SEED);
    assert_int_equal(p.wrong, 0);
    assert_true(p.same > (size_t)PEER_COUNT / 2 && p.errors > (size_t)PEER_COUNT / 50 && p.excused < p.same / 10);
}

/* What is not used may be left out; all that cannot be told counts as used. */
static void what_code_looks_at_is_known_by_its_text(void **state)
{
    static const struct {
        const char *code, *name, *member;
        bool uses;
    } rows[] = {
        {"return inputs.item * 2", "inputs", "item", true},
        {"return inputs.item * 2", "inputs", "list", false},
        {"return inputs.item * 2", "memory", "item", false},
        {"return inputs.items", "inputs", "item", false},
        {"return inputs.item.list", "inputs", "list", false},
        {"return inputs .. ''", "inputs", "x", true},
        {"return inputs . x", "inputs", "x", true},
        {"return inputs['x']", "inputs", "y", true},
        {"return #inputs", "inputs", "y", true},
        {"local m = memory return m.x", "memory", "y", true},
        {"local m = memory return m.x", "inputs", "y", false},
        {"return my_inputs, inputs2", "inputs", "y", false},
        {"return _ENV.memory", "inputs", "y", true},
        {"return 1 -- inputs", "inputs", "y", true},
        {"memory.x = 1 return memory.x", "memory", "x", true},
        {"memory.x = 1 return memory.x", "memory", "y", false},
        {"return inputs", "inputs", "y", true},
        {"return {x=memory.a+inputs.b}", "memory", "b", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct expr *e = NULL;

        OK(expr_compile_body(str_from(rows[i].code), &e, &err));
        if (expr_uses(e, rows[i].name, str_from(rows[i].member)) != rows[i].uses)
            fail_msg("%s: %s.%s", rows[i].code, rows[i].name, rows[i].member);
        expr_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_and_go_as_json),
        cmocka_unit_test(bodies_change_and_give_back),
        cmocka_unit_test(errors_are_one_line_and_name_what_is_missing),
        cmocka_unit_test(nothing_dangerous_is_there),
        cmocka_unit_test(limits_stop_everything),
        cmocka_unit_test(limits_are_the_callers),
        cmocka_unit_test(a_result_that_does_not_fit_is_refused),
        cmocka_unit_test(nothing_is_kept_between_calls),
        cmocka_unit_test(only_nil_null_and_false_are_false),
        cmocka_unit_test(threads_may_share_an_expression),
        cmocka_unit_test(many_expressions_share_the_interpreters),
        cmocka_unit_test(patterns_match_as_in_lua),
        cmocka_unit_test(python_conditions_say_what_python_says),
        cmocka_unit_test(what_both_say_alike_stays_as_it_is),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(what_code_looks_at_is_known_by_its_text),
        cmocka_unit_test(python_itself_agrees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
