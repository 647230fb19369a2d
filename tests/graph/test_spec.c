/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as data: what is read, what is refused and how it is said, what stays the same when it is written again. */
#include <sys/stat.h>

#include "graph/spec_fields.h"
#include "hive/hive.h"
#include "kit.h"

#define NODE_A "{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {}\"}"
#define NODE_B "{\"id\":\"b\",\"type\":\"lua\",\"code\":\"return {}\"}"
#define NODE_C "{\"id\":\"c\",\"type\":\"lua\",\"code\":\"return {}\"}"
#define GRAPH(nodes, rest) "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[" nodes "]" rest "}"
#define EDGE(from, to, rest) "{\"from\":\"" from "\",\"to\":\"" to "\"" rest "}"

/* ---- what is said ---- */

static void note(void *arg, const struct problem *p)
{
    buf_addf(arg, "%s%s: %s%s%s\n", p->warning ? "warning " : "", p->path, p->what, p->hint[0] ? " | " : "", p->hint);
}

/* Everything that is said of it, a line each. */
static const char *said(struct buf *b, const char *json, enum tide_code want)
{
    struct spec_options opt = {.problem = note, .arg = b};
    struct spec *s = NULL;

    buf_clear(b);
    GIVES(want, spec_parse(str_from(json), &opt, &s, &err));
    assert_true((s == NULL) == (want != TIDE_OK));
    spec_free(s);
    return buf_cstr(b);
}

static struct spec *parsed(const char *json)
{
    struct spec *s = NULL;

    OK(spec_parse(str_from(json), NULL, &s, &err));
    return s;
}

static void a_broken_graph_gets_everything_told_at_once(void **state)
{
    static const char graph[] =
        "{\"tidemark_graph\":1,\"id\":\"broken\",\"entry\":\"strt\",\"max_retrys\":2,\"nodes\":["
        "{\"id\":\"start\",\"type\":\"event_loop\",\"prompt\":\"go\",\"program\":[\"x\"]},"
        "{\"id\":\"left\",\"type\":\"function\",\"outputs\":[\"r\"]},"
        "{\"id\":\"right\",\"type\":\"function\",\"callback\":\"y\",\"outputs\":[\"r\"],\"inputs\":[\"zz\"]},"
        "{\"id\":\"left\",\"type\":\"lua\",\"code\":\"return {}\"},"
        "{\"id\":\"join\",\"type\":\"ruter\"},"
        "{\"id\":\"ask\",\"type\":\"human_input\",\"question\":\"?\",\"deadline\":\"soon\"},"
        "{\"id\":\"pick\",\"type\":\"router\",\"routes\":[{\"when\":\"output.x ==\",\"to\":\"nowhere\"}]},"
        "{\"id\":\"again\",\"type\":\"lua\",\"code\":\"return {}\"}],\"edges\":["
        "{\"from\":\"start\",\"to\":\"left\"},{\"from\":\"start\",\"to\":\"right\"},{\"from\":\"left\",\"to\":\"join\"},"
        "{\"from\":\"right\",\"to\":\"join\"},{\"from\":\"join\",\"to\":\"pick\",\"on\":\"condition\"},"
        "{\"from\":\"join\",\"to\":\"again\",\"on\":\"sucess\"},{\"from\":\"again\",\"to\":\"join\"},"
        "{\"from\":\"right\",\"to\":\"ask\",\"on\":\"failure\"},{\"from\":\"right\",\"to\":\"again\",\"on\":\"failure\"}]}";
    static const char want[] =
        "$.max_retrys: a graph has no key 'max_retrys' | did you mean 'max_retries'?\n"
        "$.nodes[0].program: 'program' does not apply to a node of this type | only nodes of this type have it: function\n"
        "$.nodes[1]: a node of type function must have program or callback\n"
        "$.nodes[4].type: 'ruter' is not known here | did you mean 'router'?\n"
        "$.nodes[5].deadline: 'soon' is not a length of time | 500ms, 90s, 15m, 3h or 2d\n"
        "$.nodes[6].routes[0].when: line 1: unexpected symbol near <eof>\n"
        "$.edges[5].on: edge 'join' → 'again': 'sucess' is not known here | did you mean 'success'?\n"
        "$.nodes[3].id: 'left' is the id of $.nodes[1] already | each id may be used only once\n"
        "$.entry: there is no node 'strt' | did you mean 'start'?\n"
        "$.nodes[6].routes[0].to: there is no node 'nowhere' | one of: start left right join ask pick again\n"
        "$.edges[4]: edge 'join' → 'pick': a condition without an expression | give it a 'when', or another 'on'\n"
        "$.edges[8]: edge 'right' → 'again': only one edge can be taken on failure, and 'right' → 'ask' ($.edges[7]) is | remove one of them\n"
        "$.nodes[4]: a loop that nothing limits: join → again → join | give one of its nodes max_visits, or the graph "
        "max_steps\n"
        "$.nodes[2].outputs[0]: 'r' is set by 'left' as well, in a branch that runs at the same time (from 'start') | "
        "\"conflict\": {\"r\": \"last\"}, or another name\n"
        "warning $.nodes[2].inputs[0]: no node sets 'zz' | name it in some node's outputs or in memory, or give it when the "
        "graph is run\n";
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 16);
    struct spec *s = NULL;

    (void)state;
    assert_string_equal(said(&b, graph, TIDE_INVALID), want);
    SAYS(TIDE_INVALID, "(and 13 more)", spec_parse(str_from(graph), NULL, &s, &err));
}

#define INNER                                                                                                          \
    GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"outputs\":[\"x\"],\"code\":\"return {x = 1}\"}", ",\"memory\":{\"m\":1}")

#define HIVE "{\"agent\":{},\"graph\":{\"entry_node\":\"a\",\"nodes\":[]}}"

static const struct {
    const char *name, *json, *says; /* "": nothing at all is said */
    bool fine;                      /* warnings alone */
} cases[] = {
    {"the smallest", GRAPH(NODE_A, ""), "", true},
    {"not JSON", "{", "$: not JSON:", false},
    {"empty", "", "$: not JSON:", false},
    {"a list", "[]", "$: this is not a Tidemark graph", false},
    {"another format", "{\"tidemark_graph\":2,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[" NODE_A "]}",
     "$.tidemark_graph: this version reads only format 1", false},
    {"no entry", "{\"tidemark_graph\":1,\"id\":\"g\",\"nodes\":[" NODE_A "]}", "$: a graph must have 'entry'", false},
    {"no nodes", GRAPH("", ""), "$.nodes: there is no node", false},
    {"nodes that are none", GRAPH("7,null,[]", ""), "$.nodes[2]: must be an object: a node", false},
    {"a bad id", "{\"tidemark_graph\":1,\"id\":\"../x\",\"entry\":\"a\",\"nodes\":[" NODE_A "]}",
     "$.id: '../x' is not an id", false},
    {"unreachable", GRAPH(NODE_A "," NODE_B, ""), "$.nodes[1]: 'b' cannot be reached from the entry 'a'", false},
    {"edge to nowhere", GRAPH(NODE_A, ",\"edges\":[" EDGE("a", "x", "") "]"),
     "$.edges[0].to: edge 'a' → 'x': there is no node 'x'", false},
    {"loop without limit",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", ",\"when\":\"output.x\"") "]"),
     "a loop that nothing limits: a → b → a", false},
    {"loop of one", GRAPH(NODE_A, ",\"edges\":[" EDGE("a", "a", ",\"on\":\"failure\"") "]"),
     "a loop that nothing limits: a → a", false},
    {"loop limited by the graph",
     GRAPH(NODE_A "," NODE_B,
           ",\"max_steps\":9,\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", ",\"on\":\"failure\"") "]"),
     "", true},
    {"steps without limit are no limit",
     GRAPH(NODE_A "," NODE_B,
           ",\"max_steps\":0,\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", ",\"on\":\"failure\"") "]"),
     "a loop that nothing limits", false},
    {"loop limited by a node",
     GRAPH(NODE_A ",{\"id\":\"b\",\"type\":\"lua\",\"code\":\"return {}\",\"max_visits\":3}",
           ",\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", ",\"on\":\"failure\"") "]"),
     "", true},
    {"loop without a way out",
     GRAPH(NODE_A "," NODE_B, ",\"max_steps\":9,\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", "") "]"),
     "warning $.nodes[0]: no end can be reached from: a, b", true},
    {"conditions without an else",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"when\":\"output.x\"") "]"),
     "warning $.nodes[0]: when no condition of 'a' is true the graph ends there", true},
    {"conditions with an else",
     GRAPH(NODE_A "," NODE_B "," NODE_C, ",\"edges\":[" EDGE("a", "b", ",\"when\":\"output.x\"") "," EDGE(
                                             "a", "c", ",\"when\":\"true\",\"priority\":-1") "]"),
     "", true},
    {"a loop whose else leads back",
     GRAPH(NODE_A "," NODE_B,
           ",\"max_steps\":9,\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "a", ",\"when\":\"true\"") "]"),
     "warning $.nodes[0]: no end can be reached from: a, b", true},
    {"a condition behind the else",
     GRAPH(NODE_A "," NODE_B "," NODE_C,
           ",\"edges\":[" EDGE("a", "b", ",\"when\":\"true\"") "," EDGE("a", "c", ",\"when\":\"output.x\"") "]"),
     "warning $.edges[1]: edge 'a' → 'c': never taken: 'a' → 'b' ($.edges[0]) is always true before it", true},
    {"a condition on success",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"on\":\"success\",\"when\":\"true\"") "]"),
     "$.edges[0].when: edge 'a' → 'b': an edge that is taken on success has no condition", false},
    {"a question for nobody", GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"on\":\"llm\"") "]"),
     "$.edges[0]: edge 'a' → 'b': the model decides, but is asked nothing", false},
    {"the same edge twice", GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", "") "," EDGE("a", "b", "") "]"),
     "$.edges[1]: edge 'a' → 'b': the same as 'a' → 'b' ($.edges[0])", false},
    {"the same condition twice",
     GRAPH(NODE_A "," NODE_B "," NODE_C,
           ",\"edges\":[" EDGE("a", "b", ",\"when\":\"output.x\"") "," EDGE("a", "c", ",\"when\":\"output.x\"") "]"),
     "$.edges[1]: edge 'a' → 'c': 'a' → 'b' ($.edges[0]) has the same condition and is evaluated before", false},
    {"an edge beside routes",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"otherwise\":\"b\"}," NODE_B, ",\"edges\":[" EDGE("a", "b", "") "]"),
     "$.edges[0]: edge 'a' → 'b': a router uses its routes", false},
    {"clash with a rule",
     GRAPH(
         NODE_A
         ",{\"id\":\"b\",\"type\":\"lua\",\"code\":\"return {}\",\"outputs\":[\"k\"]},{\"id\":\"c\",\"type\":\"lua\",\"code\":"
         "\"return {}\",\"outputs\":[\"k\"]}",
         ",\"conflict\":{\"k\":\"merge\"},\"edges\":[" EDGE("a", "b", "") "," EDGE("a", "c", "") "]"),
     "", true},
    {"no clash one after the other",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {}\",\"outputs\":[\"k\"]},{\"id\":\"c\",\"type\":\"lua\",\"code\":"
         "\"return {}\",\"outputs\":[\"k\"]}",
         ",\"edges\":[" EDGE("a", "c", "") "]"),
     "", true},
    {"a rule nobody needs", GRAPH(NODE_A, ",\"conflict\":{\"k\":\"last\"}"),
     "warning $.conflict: a rule for 'k', which no node sets", true},
    {"an output twice", GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {}\",\"outputs\":[\"k\",\"k\"]}", ""),
     "$.nodes[0].outputs[1]: 'k' is listed twice", false},
    {"nullable, but no output",
     GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {}\",\"nullable_outputs\":[\"k\"]}", ""),
     "$.nodes[0].nullable_outputs[0]: 'k' is not an output", false},
    {"statements that are none", GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return return\"}", ""),
     "$.nodes[0].code: line 1", false},
    {"a condition in Python",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"when\":\"output['x'] != 1\"") "]"),
     "$.edges[0].when: edge 'a' → 'b': line 1", false},
    {"a map of a map of a map",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"map\",\"over\":\"l\",\"node\":{\"type\":\"map\",\"over\":\"l\",\"node\":{\"type\":\"map\",\"over\":\"l\","
         "\"node\":{\"type\":\"lua\",\"code\":\"return 1\"}}}}",
         ""),
     "$.nodes[0].node.node.node: more than 2 maps inside each other", false},
    {"a name inside a map",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"map\",\"over\":\"l\",\"node\":{\"id\":\"x\",\"type\":\"lua\",\"code\":\"return 1\"}}",
         ""),
     "$.nodes[0].node.id: a node inside a map has no id", false},
    {"files where none are read", GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"file\":\"x.json\"}", ""),
     "$.nodes[0].file: files of subgraphs are not read here", false},
    {"inside a subgraph",
     GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"graph\":{\"id\":\"i\",\"entry\":\"x\",\"nodes\":[" NODE_A "]}}", ""),
     "$.nodes[0].graph.entry: there is no node 'x'", false},
    {"a placeholder that somebody fills",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"{m} {o.x} {q} {{none}} {\\\"j\\\":{\\\"k\\\":1}}\",\"outputs\":["
         "\"o\"],\"inputs\":[\"q\"]}",
         ",\"memory\":{\"m\":1,\"q\":2}"),
     "", true},
    {"an item and what an edge brings",
     GRAPH(
         NODE_A
         ",{\"id\":\"b\",\"type\":\"map\",\"over\":\"{1}\",\"as\":\"page\",\"node\":{\"type\":\"event_loop\",\"prompt\":"
         "\"{page} {brought}\"}}",
         ",\"edges\":[" EDGE("a", "b", ",\"map\":{\"brought\":\"1\"}") "]"),
     "", true},
    {"an unknown placeholder",
     GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"Write of {topc}\"}", ",\"memory\":{\"topic\":1}"),
     "$.nodes[0].prompt: an unknown placeholder: {topc} | did you mean 'topic'? (or name it in the node's inputs; "
     "{{topc}} where braces are meant)",
     false},
    {"an unknown placeholder of a question",
     GRAPH("{\"id\":\"a\",\"type\":\"human_input\",\"question\":\"Ship {what.now}?\"}", ""),
     "$.nodes[0].question: an unknown placeholder: {what.now}", false},
    {"an unknown placeholder inside a map",
     GRAPH("{\"id\":\"a\",\"type\":\"map\",\"over\":\"{1}\",\"node\":{\"type\":\"event_loop\",\"prompt\":\"{other}\"}}",
           ""),
     "$.nodes[0].node.prompt: an unknown placeholder: {other}", false},
    {"a placeholder that a graph around it may fill",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"subgraph\",\"graph\":{\"id\":\"i\",\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":"
         "\"event_loop\",\"prompt\":\"{topic}\"}]}}",
         ""),
     "", true},
    {"a secret in a prompt",
     GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"Use {api_key}\",\"inputs\":[\"api_key\"]}", ""),
     "$.nodes[0].prompt: 'api_key' is never stored, so it cannot be part of a prompt | give it to a function as an input",
     false},
    {"part of a secret in a question",
     GRAPH("{\"id\":\"a\",\"type\":\"human_input\",\"question\":\"{pin.code}\"}",
           ",\"checkpoints\":{\"exclude_memory_keys\":[\"pin\"]}"),
     "$.nodes[0].question: 'pin.code' is never stored", false},
    {"a key that is stored",
     GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"{api_key}\"}",
           ",\"memory\":{\"api_key\":1},\"checkpoints\":{\"exclude_memory_keys\":[]}"),
     "", true},
    {"a secret in a condition",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"when\":\"memory.api_key == 'x'\"") "]"),
     "warning $.edges[0].when: edge 'a' → 'b': 'api_key' is never stored: expressions see nil", true},
    {"a secret in what an edge brings",
     GRAPH(NODE_A "," NODE_B, ",\"edges\":[" EDGE("a", "b", ",\"map\":{\"k\":\"memory['api_key']\"}") "]"),
     "warning $.edges[0].map.k: edge 'a' → 'b': 'api_key' is never stored", true},
    {"a secret in Lua", GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {memory[\\\"access_token\\\"]}\"}", ""),
     "warning $.nodes[0].code: 'access_token' is never stored", true},
    {"a secret in a route",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"memory.credentials\",\"to\":\"b\"}],\"otherwise\":\"b\"}," NODE_B,
         ""),
     "warning $.nodes[0].routes[0].when: 'credentials' is never stored", true},
    {"a secret as a list",
     GRAPH("{\"id\":\"a\",\"type\":\"map\",\"over\":\"credentials\",\"node\":{\"type\":\"lua\",\"code\":\"return 1\"}}",
           ""),
     "warning $.nodes[0].over: 'credentials' is never stored", true},
    {"names that only begin like a secret",
     GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"local my_memory = {} return {memory.api_keys, my_memory.api_key, "
           "memory['api_key_x'], memory}\"}",
           ""),
     "", true},
    {"a secret as an input of Lua",
     GRAPH("{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {}\",\"inputs\":[\"x\",\"api_key\"]}",
           ",\"memory\":{\"x\":1}"),
     "$.nodes[0].inputs[1]: 'api_key' is never stored: a node of type lua gets nil | give it to a function\n", false},
    {"a secret as an input of an agent in a map",
     GRAPH("{\"id\":\"a\",\"type\":\"map\",\"over\":\"memory.l\",\"node\":{\"type\":\"event_loop\",\"prompt\":\"p\","
           "\"inputs\":[\"access_token\"]}}",
           ""),
     "$.nodes[0].node.inputs[0]: 'access_token' is never stored: a node of type event_loop gets nil", false},
    {"a secret as an input of a router",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"inputs\":[\"api_key\"],\"otherwise\":\"b\"}," NODE_B, ""),
     "$.nodes[0].inputs[0]: 'api_key' is never stored: a node of type router gets nil", false},
    {"a secret as an input of a function",
     GRAPH("{\"id\":\"a\",\"type\":\"function\",\"program\":[\"x\"],\"inputs\":[\"api_key\"]}", ""), "", true},
    {"a tool that is misspelt",
     GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"p\",\"tools\":[\"read\",\"bsah\"]}", ""),
     "$.nodes[0].tools[1]: there is no tool 'bsah' | did you mean 'bash'?\n", false},
    {"a tool of another system",
     GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"p\",\"tools\":[\"web_search\"]}", ""),
     "warning $.nodes[0].tools[0]: there is no tool 'web_search': the agent does without it | one of: bash read write edit "
     "glob grep\n",
     true},
    {"all tools by their names",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"p\",\"tools\":[\"bash\",\"read\",\"write\",\"edit\",\"glob\",\"grep\"]}",
         ""),
     "", true},
    {"a router without an else",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"memory.x\",\"to\":\"b\"}]}," NODE_B, ""),
     "warning $.nodes[0]: when no route of 'a' is true it fails | give it an 'otherwise'\n", true},
    {"an output that the inner graph does not set",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"subgraph\",\"inputs\":[\"in\"],\"outputs\":[\"in\",\"x\",\"m\",\"verdct\"],\"graph\":" INNER
         "}",
         ",\"memory\":{\"in\":1,\"verdct\":1}"),
     "warning $.nodes[0].outputs[3]: the inner graph never sets 'verdct' | name it in the outputs of one of its nodes\n",
     true},
    {"an output that goes through the inner graph",
     GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"outputs\":[\"x\",\"in\"],\"graph\":" INNER "}",
           ",\"memory\":{\"in\":1}"),
     "", true},
    {"an output that nobody sets, of a graph that gets all",
     GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"outputs\":[\"x\",\"in\"],\"graph\":" INNER "}", ""),
     "warning $.nodes[0].outputs[1]: the inner graph never sets 'in'", true},
    {"a graph inside whose nodes name no outputs",
     GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"outputs\":[\"x\"],\"graph\":" GRAPH(NODE_A, "") "}", ""), "", true},
    {"retries of a graph inside", GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"retries\":2,\"graph\":" INNER "}", ""),
     "warning $.nodes[0].retries: 'retries' of a subgraph has no effect", true},
    {"an entry point that is no node", GRAPH(NODE_A, ",\"entry_points\":{\"late\":\"x\"}"),
     "$.entry_points.late: there is no node 'x'", false},
    {"reached from an entry point alone", GRAPH(NODE_A "," NODE_B, ",\"entry_points\":{\"late\":\"b\"}"), "", true},
    {"the goal in a prompt", GRAPH("{\"id\":\"a\",\"type\":\"event_loop\",\"prompt\":\"For {goal}\"}", ""), "", true},
    {"an odd key", GRAPH(NODE_A, ",\"me\\u001bmory x\":1"), "$[\"me?mory x\"]: a graph has no key 'me?mory x'", false},
    {"a NUL in text", GRAPH(NODE_A, ",\"name\":\"a\\u0000b\""), "$.name: must not contain", false},
    {"from Hive", HIVE, "not a Tidemark graph", false},
};

static void what_is_a_graph_of_hive_can_be_imported(void **state)
{
    struct spec *s = NULL;

    (void)state;
    HINTS(TIDE_INVALID, TIDE_ACTION_IMPORT_GRAPH, spec_parse(STR(HIVE), NULL, &s, &err));
}

static void each_fault_is_told_with_its_place(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 16);
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = said(&b, cases[i].json, cases[i].fine ? TIDE_OK : TIDE_INVALID);

        if (cases[i].says[0] ? strstr(got, cases[i].says) != NULL : got[0] == 0)
            continue;
        print_error("%s: want '%s', got '%s'\n", cases[i].name, cases[i].says, got);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* ---- what is read ---- */

/* ---- conditions ---- */

static const struct {
    const char *when, *says; /* "": nothing at all */
} conditions[] = {
    {"output.x != 1", "| in Lua: output.x ~= 1\n"},
    {"output.x!=1&&!output.y", "| in Lua: output.x~=1 and not output.y\n"},
    {"output.x || memory.y", "| in Lua: output.x or memory.y\n"},
    {"!(output.x === null)", "| in Lua: not(output.x == nil)\n"},
    {"output.x = '!= && ='", "| in Lua: output.x == '!= && ='\n"},
    {"output.x is not None", "| in Lua: output.x ~= nil\n"},
    {"output.x in [1, 2]", "| this is Python; conditions are Lua: and, or, not, ==, ~=, nil, #list\n"},
    {"output.x ? 1 : 2", ""},
    {"x == 1",
     "warning $.edges[0].when: edge 'a' → 'b': 'x' is not known here: always nil | one of: output memory result"},
    {"score > 0.5", "'score' is not known here: always nil | output.score\n"},
    {"ouput.x == 1", "'ouput' is not known here: always nil | did you mean 'output'?\n"},
    {"output.x == True", "'True' is not known here: always nil | did you mean 'true'?\n"},
    {"'a' ..x", "'x' is not known here"},
    {"output.x == 'y z' and memory.list[1] ~= nil -- and w", NULL},
    {"#output.x > 0x1F or result.error.code == [[a b]] or output.x == null", NULL},
    {"string.len(output.x) > 1e3 and output.x:upper() == ({a = 'B'}).a", NULL},
    {"(function(x) return x end)(output.x)", NULL},
};

static void a_condition_that_means_nothing_is_told(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 16);
    char graph[1000];

    (void)state;
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        bool lua = !conditions[i].says || strstr(conditions[i].says, "known here");

        snprintf(
            graph, sizeof(graph),
            GRAPH(NODE_A "," NODE_B, ",\"memory\":{\"score\":1},\"edges\":[" EDGE("a", "b", ",\"when\":\"%s\"") "]"),
            conditions[i].when);
        said(&b, graph, lua ? TIDE_OK : TIDE_INVALID);
        if (conditions[i].says ? !strstr(buf_cstr(&b), conditions[i].says) : strstr(buf_cstr(&b), "known here") != NULL)
            fail_msg("%s: %s", conditions[i].when, buf_cstr(&b));
    }
}

static void what_is_not_said_has_its_default(void **state)
{
    AUTO(spec_freep)
    struct spec *s = parsed(GRAPH("{\"id\":\"a\",\"type\":\"function\",\"callback\":\"f\"}", ",\"max_retries\":5"));
    const struct spec_graph *g = s->graph;
    const struct spec_checkpoints *c = &g->checkpoints;

    (void)state;
    assert_int_equal(g->max_steps, 1000);
    assert_int_equal(g->parallel, 4);
    assert_int_equal(g->branch_failure, SPEC_FAIL_ALL);
    assert_int_equal(g->nodes.at[0].retries, 5);
    assert_int_equal(g->nodes.at[0].effect, SPEC_IDEMPOTENT);
    assert_true(c->on_node_start && c->on_node_complete && c->async && c->include_full_memory &&
                c->include_conversations);
    assert_false(c->on_edge || c->on_loop_iteration || c->keep_clean_only);
    assert_int_equal(c->max_per_session, 100);
    assert_int_equal(c->prune_after_node_count, 10);
    assert_int_equal(c->slow_node_ms, 30000);
    assert_int_equal(c->memory_delta_keys, 10);
    assert_int_equal(c->exclude_memory_keys.n, 3);
    assert_string_equal(c->exclude_memory_keys.at[2].ptr, "access_token");
    assert_int_equal(c->risky_nodes.n, 2);
}

static void edges_stand_by_source_then_priority_then_order(void **state)
{
    AUTO(spec_freep)
    struct spec *s =
        parsed(GRAPH(NODE_A "," NODE_B "," NODE_C,
                     ",\"edges\":[" EDGE("b", "c", "") "," EDGE("a", "b", ",\"priority\":-1,\"when\":\"1\"") "," EDGE(
                         "a", "c", ",\"when\":\"output.x\"") "," EDGE("a", "b", ",\"priority\":7") "]"));
    const struct spec_graph *g = s->graph;

    (void)state;
    assert_int_equal(g->nodes.at[0].n_edges, 3);
    assert_int_equal(g->nodes.at[0].first_edge, 0);
    assert_int_equal(g->edges.at[0].order, 3);
    assert_int_equal(g->edges.at[1].order, 2);
    assert_int_equal(g->edges.at[1].on, SPEC_CONDITION);
    assert_non_null(g->edges.at[1].when.expr);
    assert_int_equal(g->edges.at[2].order, 1);
    assert_int_equal(g->nodes.at[1].first_edge, 3);
    assert_int_equal(g->edges.at[3].to_index, 2);
    assert_int_equal(g->nodes.at[2].n_edges, 0);
    assert_int_equal(g->nodes.at[2].arcs_in, 2);
}

static void values_of_all_types_are_taken(void **state)
{
    AUTO(spec_freep)
    struct spec *s = parsed(GRAPH(
        "{\"id\":\"a\",\"type\":\"human_input\",\"question\":\"W\\u00e4hle\",\"kind\":\"approval\",\"deadline\":\"3h\"},"
        "{\"id\":\"r\",\"type\":\"router\",\"routes\":[{\"when\":\"memory.n > 2\",\"to\":\"m\"}],\"otherwise\":\"e\"},"
        "{\"id\":\"m\",\"type\":\"map\",\"over\":\"files\",\"node\":{\"type\":\"function\",\"program\":[\"wc\",\"-l\"],\"retries\":1},\"parallel\":9},"
        "{\"id\":\"e\",\"type\":\"event_loop\",\"prompt\":\"p\",\"tools\":[\"bash\"],\"effect\":\"pure\",\"retry_on\":[\"BUSY\"]}",
        ",\"model\":\"big\",\"budget\":{\"max_cost\":1.5,\"max_tokens\":7},\"memory\":{\"files\":[1.50]},\"edges\":[" EDGE(
            "a", "r", ",\"map\":{\"n\":\"output.n + 1\"}") "]"));
    const struct spec_node *n = s->graph->nodes.at;

    (void)state;
    assert_string_equal(n[0].question.ptr, "Wähle");
    assert_int_equal(n[0].kind, SPEC_APPROVAL);
    assert_int_equal(n[0].deadline_ms, 3 * 3600 * 1000);
    assert_int_equal(n[1].routes.at[0].to_index, 2);
    assert_int_equal(n[1].otherwise_index, 3);
    assert_int_equal(n[1].n_arcs, 2);
    assert_string_equal(n[2].over_key.ptr, "files");
    assert_string_equal(n[2].as.ptr, "item");
    assert_string_equal(n[2].node->program.at[1].ptr, "-l");
    assert_int_equal(n[2].node->retries, 1);
    assert_int_equal(n[3].tools.mode, SPEC_TOOLS_NAMED);
    assert_string_equal(n[3].model.ptr, "big");
    assert_true(s->graph->budget.max_cost == 1.5);
    assert_string_equal(s->graph->edges.at[0].map.at[0].key.ptr, "n");
    assert_non_null(strstr(s->json.ptr, "[1.50]"));
}

/* ---- written again ---- */

/* A graph by chance: always one that is right. */
static void put_random(struct buf *b, struct rng *r)
{
    int64_t n = rng_between(r, 1, 30);

    buf_addf(b, "{ \"tidemark_graph\" : 1,\n\"id\":\"r\",\"entry\":\"n0\",\"max_steps\":%d,\"nodes\":[",
             (int)rng_between(r, 1, 99));
    for (int64_t i = 0; i < n; i++)
        buf_addf(b, "%s{\"type\":\"lua\" ,\"id\":\"n%d\",\"code\":\"return {\\\"x\\u0041\\\"}\",\"max_visits\":%d}",
                 i ? "," : "", (int)i, (int)rng_below(r, 4));
    buf_add_str(b, STR("],\"edges\":["));
    for (int64_t i = 1; i < n; i++)
        buf_addf(b, "%s{\"from\":\"n%d\",\"to\":\"n%d\",\"priority\":%d}", i > 1 ? "," : "", (int)rng_below(r, i),
                 (int)i, (int)rng_between(r, -3, 3));
    buf_add_str(b, STR("],\"memory\":{\"k\":1e2,\"a b\":[1.0,-0]}}"));
}

static void what_is_written_and_read_again_is_the_same(void **state)
{
    struct rng r = {7};

    (void)state;
    for (int i = 0; i < 200; i++) {
        AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
        AUTO(spec_freep) struct spec *first = NULL, *second = NULL;

        put_random(&b, &r);
        first = parsed(buf_cstr(&b));
        second = parsed(first->json.ptr);
        assert_string_equal(first->json.ptr, second->json.ptr);
        assert_memory_equal(first->digest, second->digest, DIGEST_SIZE);
        assert_int_equal(first->graph->n_arcs, second->graph->n_arcs);
        for (size_t k = 0; k < first->graph->n_arcs; k++)
            assert_true(first->graph->arcs[k].to == second->graph->arcs[k].to);
    }
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[400];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static enum tide_code load(const char *path, struct spec **ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);

    return spec_read(path, &text, err) ? err->code : spec_parse_from(path, buf_view(&text), NULL, ret, err);
}

static void files_of_subgraphs_become_part_of_it(void **state)
{
    AUTO(spec_freep) struct spec *s = NULL, *again = NULL;
    char dir[256], path[400];

    (void)state;
    dir_make(dir);
    put_file(dir, "inner.json", GRAPH(NODE_A, ",\"memory\":{\"deep\":true}"));
    put_file(dir, "outer.json",
             GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"file\":\"inner.json\",\"safe_point\":true}", ""));
    snprintf(path, sizeof(path), "%s/outer.json", dir);
    OK(load(path, &s, &err));
    dir_remove(dir);
    assert_non_null(strstr(s->json.ptr, "\"graph\":{\"tidemark_graph\":1"));
    assert_null(strstr(s->json.ptr, "\"file\""));
    again = parsed(s->json.ptr);
    assert_memory_equal(s->digest, again->digest, DIGEST_SIZE);
    assert_int_equal(again->graph->nodes.at[0].graph->nodes.n, 1);
}

static void a_file_that_contains_itself_is_refused(void **state)
{
    char dir[256], path[400];
    struct spec *s = NULL;

    (void)state;
    dir_make(dir);
    put_file(dir, "one.json", GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"file\":\"two.json\"}", ""));
    put_file(dir, "two.json", GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"file\":\"./one.json\"}", ""));
    put_file(dir, "gone.json", GRAPH("{\"id\":\"a\",\"type\":\"subgraph\",\"file\":\"none.json\"}", ""));
    snprintf(path, sizeof(path), "%s/one.json", dir);
    SAYS(TIDE_INVALID, "contains itself", load(path, &s, &err));
    snprintf(path, sizeof(path), "%s/gone.json", dir);
    SAYS(TIDE_INVALID, "none.json: No such file", load(path, &s, &err));
    snprintf(path, sizeof(path), "%s/none.json", dir);
    GIVES(TIDE_NOT_FOUND, load(path, &s, &err));
    dir_remove(dir);
}

/* ---- bounds ---- */

static void put_chain(struct buf *b, int n)
{
    buf_add_str(b, STR("{\"tidemark_graph\":1,\"id\":\"c\",\"entry\":\"n0\",\"nodes\":["));
    for (int i = 0; i < n; i++)
        buf_addf(b, "%s{\"id\":\"n%d\",\"type\":\"function\",\"callback\":\"f\"}", i ? "," : "", i);
    buf_add_str(b, STR("],\"edges\":["));
    for (int i = 1; i < n; i++)
        buf_addf(b, "%s{\"from\":\"n%d\",\"to\":\"n%d\"}", i > 1 ? "," : "", i - 1, i);
    buf_add_str(b, STR("]}"));
}

static void a_graph_has_bounds(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(16 << 20);
    struct spec *s = NULL;

    (void)state;
    put_chain(&b, SPEC_MAX_NODES);
    OK(spec_parse(buf_view(&b), NULL, &s, &err));
    assert_int_equal(s->graph->nodes.n, SPEC_MAX_NODES);
    spec_free(s);
    buf_clear(&b);
    put_chain(&b, 10000);
    SAYS(TIDE_INVALID, "$.nodes: 10000 are too many: at most 4096", spec_parse(buf_view(&b), NULL, &s, &err));
    buf_clear(&b);
    for (int i = 0; i < 200; i++)
        buf_add_char(&b, '[');
    SAYS(TIDE_INVALID, "not JSON", spec_parse(buf_view(&b), NULL, &s, &err));
    buf_clear(&b);
    while (b.len <= SPEC_MAX_BYTES)
        buf_add_char(&b, ' ');
    SAYS(TIDE_INVALID, "not JSON", spec_parse(buf_view(&b), NULL, &s, &err));
}

/* ---- the published schema ---- */

static void the_published_schema_is_that_of_the_table(void **state)
{
    AUTO(buf_done) struct buf flat = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *source = getenv("TIDE_SOURCE");
    struct json *v = NULL;
    char path[512];

    (void)state;
    snprintf(path, sizeof(path), "%s/docs/graph.schema.json", source ? source : ".");
    OK(spec_read(path, &got, &err));
    spec_schema(&flat);
    OK(json_parse(&a, buf_view(&flat), NULL, &v, NULL, &err));
    json_write_pretty(&want, v);
    buf_add_char(&want, '\n');
    if (!str_eq(buf_view(&want), buf_view(&got)))
        fail_msg("docs/graph.schema.json is behind: tidemark graph schema >docs/graph.schema.json");
}

static void every_key_has_its_help(void **state)
{
    static const struct spec_object *const objects[] = {&spec_graph_object,  &spec_node_object,
                                                        &spec_edge_object,   &spec_route_object,
                                                        &spec_budget_object, &spec_checkpoints_object};
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
        for (const struct spec_field *f = objects[i]->fields; f->name; f++, n++)
            assert_true(f->help && f->help[0] && f->offset < objects[i]->size);
    assert_true(n > 60);
}

/* ---- two versions ---- */

static const struct spec_diff_node *diff_of(const struct spec_diff *d, const char *id)
{
    for (size_t i = 0; i < d->n; i++)
        if (str_eq((d->nodes[i].before ? d->nodes[i].before : d->nodes[i].after)->id, str_from(id)))
            return &d->nodes[i];
    fail_msg("no node %s", id);
    return NULL;
}

#define FUNCTION(id, rest) "{\"id\":\"" id "\",\"type\":\"function\",\"callback\":\"" id "\"" rest "}"

static void two_versions_are_compared_node_by_node(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(spec_freep)
    struct spec *old = parsed(GRAPH(
        FUNCTION("a", "") "," FUNCTION("b", ",\"retries\":1") "," FUNCTION("c", ",\"outputs\":[\"k\"]") "," FUNCTION(
            "d", ",\"outputs\":[\"x\"],\"name\":\"Same\"") "," FUNCTION("e", ",\"inputs\":[\"i\"]") "," FUNCTION("f",
                                                                                                                 ""),
        ",\"memory\":{\"i\":1,\"j\":1},\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "c", "") "," EDGE(
            "c", "d", "") "," EDGE("d", "e", "") "," EDGE("e", "f", "") "]"));
    AUTO(spec_freep)
    struct spec *new = parsed(GRAPH(
        FUNCTION("a", "") "," FUNCTION("b", ",\"retries\":2") "," FUNCTION("c", "") "," FUNCTION(
            "dd",
            ",\"outputs\":[\"x\"],\"name\":\"Same\"") "," FUNCTION("e",
                                                                   ",\"inputs\":[\"i\",\"j\"]") "," FUNCTION("f",
                                                                                                             "") "," FUNCTION("g",
                                                                                                                              ""),
        ",\"memory\":{\"i\":1,\"j\":1},\"edges\":[" EDGE("a", "b", "") "," EDGE("b", "c", "") "," EDGE(
            "c", "dd", "") "," EDGE("dd", "e", "") "," EDGE("e", "f", "") "," EDGE("f", "g", "") "]"));
    struct spec_diff d;

    (void)state;
    spec_compare(&a, old->graph, new->graph, &d);
    assert_false(d.same);
    assert_int_equal(diff_of(&d, "a")->change, SPEC_SAME);
    assert_int_equal(diff_of(&d, "b")->change, SPEC_COMPATIBLE);
    assert_int_equal(diff_of(&d, "c")->change, SPEC_BROKEN);
    assert_string_equal(diff_of(&d, "c")->why, "no longer sets 'k'");
    assert_int_equal(diff_of(&d, "d")->change, SPEC_REMOVED);
    assert_string_equal(new->graph->nodes.at[diff_of(&d, "d")->rename].id.ptr, "dd");
    assert_int_equal(diff_of(&d, "e")->change, SPEC_BROKEN);
    assert_string_equal(diff_of(&d, "e")->needs.at[0].ptr, "j");
    assert_int_equal(diff_of(&d, "f")->change, SPEC_COMPATIBLE);
    assert_int_equal(diff_of(&d, "g")->change, SPEC_ADDED);
    spec_compare(&a, old->graph, old->graph, &d);
    assert_true(d.same);
    for (size_t i = 0; i < d.n; i++)
        assert_int_equal(d.nodes[i].change, SPEC_SAME);
}

/* ---- Hive ---- */

static const char hive[] =
    "{\"agent\":{\"id\":\"my agent\",\"name\":\"N\",\"version\":\"1.0\"},\"goal\":{\"id\":\"x\",\"description\":\"Sell it.\",\"success_criteria\":[{\"description\":\"sold\"}],\"constraints\":[{\"description\":\"no lies\"}]},\"graph\":{\"entry_node\":\"in\","
    "\"entry_points\":{\"start\":\"in\",\"chat_resume\":\"work\",\"route_resume\":\"route\",\"other\":\"work\"},\"terminal_nodes\":[\"out\"],\"pause_nodes\":[\"chat\"],"
    "\"max_steps\":50,\"identity_prompt\":\"I am.\",\"loop_config\":{\"max_iterations\":9,\"stall\":1},\"conversation_mode\":\"continuous\","
    "\"nodes\":[{\"id\":\"in\",\"node_type\":\"llm_generate\",\"system_prompt\":\"Ask.\",\"output_keys\":[\"q\"],\"tools\":[\"t\"]},"
    "{\"id\":\"chat\",\"node_type\":\"event_loop\",\"description\":\"Talk\",\"tool_access_policy\":\"all\",\"client_facing\":true},"
    "{\"id\":\"work\",\"node_type\":\"function\",\"function\":\"do_it\",\"max_retries\":2,\"max_node_visits\":4,\"input_keys\":[\"q\"]},"
    "{\"id\":\"route\",\"node_type\":\"router\",\"routes\":{\"output['n'] > 3\":\"out\",\"retry\":\"work\",\"default\":\"in\"}},"
    "{\"id\":\"out\",\"node_type\":\"event_loop\",\"name\":\"End\"}],"
    "\"edges\":[{\"id\":\"e1\",\"source\":\"in\",\"target\":\"chat\",\"condition\":\"on_success\"},"
    "{\"id\":\"e2\",\"source\":\"work\",\"target\":\"route\",\"condition\":\"conditional\",\"condition_expr\":\"output['c'] != None and 'x' in "
    "output['l']\",\"priority\":-2,\"input_mapping\":{\"to\":\"q\"}},"
    "{\"id\":\"e3\",\"source\":\"work\",\"target\":\"out\",\"condition\":\"llm_decide\",\"description\":\"Done?\"},"
    "{\"id\":\"e4\",\"source\":\"work\",\"target\":\"in\",\"condition\":\"on_failure\"},"
    "{\"id\":\"e5\",\"source\":\"out\",\"target\":\"in\",\"condition\":\"always\"}]}}";

static void a_graph_of_hive_becomes_one_of_ours(void **state)
{
    AUTO(buf_done) struct buf json = BUF_INIT(1 << 20), warnings = BUF_INIT(1 << 16);
    AUTO(spec_freep) struct spec *s = NULL;
    const struct spec_node *n;

    (void)state;
    OK(hive_to_graph(str_from(hive), note, &warnings, &json, &err));
    s = parsed(buf_cstr(&json));
    assert_string_equal(s->graph->id.ptr, "my_agent");
    assert_int_equal(s->graph->max_steps, 50);
    n = spec_find(s->graph, STR("in"));
    assert_int_equal(n->type, SPEC_EVENT_LOOP);
    assert_int_equal(n->tools.mode, SPEC_TOOLS_NONE);
    assert_string_equal(n->system_prompt.ptr, "I am.\n\nAsk.");
    assert_int_equal(n->max_turns, 9);
    n = spec_find(s->graph, STR("chat_pause"));
    assert_int_equal(n->type, SPEC_HUMAN_INPUT);
    assert_string_equal(s->graph->nodes.at[s->graph->arcs[n->first_arc].to].id.ptr, "work");
    n = spec_find(s->graph, STR("work"));
    assert_string_equal(n->callback.ptr, "do_it");
    assert_int_equal(n->retries, 2);
    assert_int_equal(n->max_visits, 4);
    assert_int_equal(n->n_edges, 3);
    assert_int_equal(s->graph->edges.at[n->first_edge + 2].priority, -2);
    assert_string_equal(s->graph->edges.at[n->first_edge + 2].map.at[0].value.source.ptr,
                        "output.q == nil and memory.q or output.q");
    n = spec_find(s->graph, STR("route"));
    assert_int_equal(n->routes.n, 2);
    assert_string_equal(n->routes.at[1].when.source.ptr, "result == \"retry\"");
    assert_string_equal(n->otherwise.ptr, "in");
    for (size_t i = 0; i < s->graph->edges.n; i++) /* of one that does not pause, "_resume" makes no loop */
        assert_false(str_eq(s->graph->edges.at[i].from, STR("route")) &&
                     str_eq(s->graph->edges.at[i].to, STR("route")));
    assert_int_equal(spec_find(s->graph, STR("out"))->n_arcs, 0);
    assert_string_equal(s->graph->goal.ptr, "Sell it.\nSuccess criteria:\n- sold\nConstraints:\n- no lies");
    assert_int_equal(s->graph->entry_points.n, 2); /* chat_resume is an edge */
    assert_string_equal(spec_entry_point(s->graph, STR("other"))->to.ptr, "work");
    assert_null(spec_entry_point(s->graph, STR("chat_resume")));
}

static void what_hive_has_and_we_have_not_is_named(void **state)
{
    static const char *const words[] = {"'my agent' becomes 'my_agent'",
                                        "without tools",
                                        "client_facing",
                                        "'chat_pause' comes after it",
                                        "conversation of its own",
                                        "'stall' is not converted",
                                        "terminal node 'out'"};
    AUTO(buf_done) struct buf json = BUF_INIT(1 << 20), warnings = BUF_INIT(1 << 16);

    (void)state;
    OK(hive_to_graph(str_from(hive), note, &warnings, &json, &err));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strstr(buf_cstr(&warnings), words[i]))
            fail_msg("'%s' is not in:\n%s", words[i], buf_cstr(&warnings));
    assert_null(strstr(buf_cstr(&warnings), "'start'"));
    SAYS(TIDE_INVALID, "not an agent.json", hive_to_graph(STR("{}"), NULL, NULL, &json, &err));
    SAYS(TIDE_INVALID, "not JSON", hive_to_graph(STR("{"), NULL, NULL, &json, &err));
}

/* ---- pictures ---- */

static void names_and_conditions_are_quoted_for_pictures(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 16);
    AUTO(spec_freep)
    struct spec *s = parsed(GRAPH(NODE_A "," NODE_B, ",\"name\":\"\\\"];x\\n\",\"edges\":[" EDGE(
                                                         "a", "b", ",\"when\":\"output.x == '|\\\\\\\"'\"") "]"));

    (void)state;
    spec_dot(&b, s->graph);
    assert_non_null(strstr(buf_cstr(&b), "label=\"\\\"];x \""));
    assert_non_null(strstr(buf_cstr(&b), "\"a\" -> \"b\" [label=\"output.x == '|\\\\\\\"'\""));
    buf_clear(&b);
    spec_mermaid(&b, s->graph);
    assert_non_null(strstr(buf_cstr(&b), "n0 -.->|\"output.x == '#124;\\#34;'\"| n1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_graph_gets_everything_told_at_once),
        cmocka_unit_test(what_is_a_graph_of_hive_can_be_imported),
        cmocka_unit_test(each_fault_is_told_with_its_place),
        cmocka_unit_test(a_condition_that_means_nothing_is_told),
        cmocka_unit_test(what_is_not_said_has_its_default),
        cmocka_unit_test(edges_stand_by_source_then_priority_then_order),
        cmocka_unit_test(values_of_all_types_are_taken),
        cmocka_unit_test(what_is_written_and_read_again_is_the_same),
        cmocka_unit_test(files_of_subgraphs_become_part_of_it),
        cmocka_unit_test(a_file_that_contains_itself_is_refused),
        cmocka_unit_test(a_graph_has_bounds),
        cmocka_unit_test(the_published_schema_is_that_of_the_table),
        cmocka_unit_test(every_key_has_its_help),
        cmocka_unit_test(two_versions_are_compared_node_by_node),
        cmocka_unit_test(a_graph_of_hive_becomes_one_of_ours),
        cmocka_unit_test(what_hive_has_and_we_have_not_is_named),
        cmocka_unit_test(names_and_conditions_are_quoted_for_pictures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
