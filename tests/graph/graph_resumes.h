/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of going on with a graph share: a session in a store of its own, run and resumed, and what it is told. */
#ifndef TESTS_GRAPH_RESUMES_H
#define TESTS_GRAPH_RESUMES_H

#include "graph/resume.h"
#include "lives.h"

#define GRAPH(rest) "{\"tidemark_graph\":1,\"id\":\"g\"," rest "}"
#define WORK(id, more)                                                                                                 \
    "{\"id\":\"" id "\",\"type\":\"function\",\"callback\":\"work\",\"retries\":0,\"outputs\":[\"" id "\"]" more "}"
#define EDGE(from, to) "{\"from\":\"" from "\",\"to\":\"" to "\"}"
#define CHAIN(a, b, c, more_b, rest)                                                                                   \
    GRAPH("\"entry\":\"" a "\",\"nodes\":[" WORK(a, "") "," WORK(b, more_b) "," WORK(c, "") "],\"edges\":[" EDGE(      \
        a, b) "," EDGE(b, c) "]" rest)
#define ABC CHAIN("a", "b", "c", "", "")

UNUSED static int64_t last_seq(struct life *l)
{
    tide_session *s = open_session(l);
    int64_t seq = tide_session_last_seq(s);

    tide_session_close(s);
    return seq;
}

/* What would be done; nothing is written by asking. */
UNUSED static const char *plan(struct life *l, const struct tide_graph_options *opt)
{
    int64_t before = last_seq(l);
    tide_session *s = open_session(l);
    struct tide_text text = {NULL, 0};

    OK(tide_graph_make_plan(s, l->g, opt, &text, &err));
    assert_int_equal(tide_session_last_seq(s), before);
    tide_session_close(s);
    assert_int_equal(last_seq(l), before);
    free(l->plan);
    l->plan = text.ptr;
    return l->plan;
}

#define HOLDS(text, words)                                                                                             \
    do {                                                                                                               \
        const char *text_ = text;                                                                                      \
        if (!strstr(text_, words))                                                                                     \
            fail_msg("'%s' is not in: %s", words, text_);                                                              \
    } while (0)
#define LACKS(text, words)                                                                                             \
    do {                                                                                                               \
        const char *text_ = text;                                                                                      \
        if (strstr(text_, words))                                                                                      \
            fail_msg("'%s' is in: %s", words, text_);                                                                  \
    } while (0)

/* What helps against the last refusal. */
UNUSED static void helps(const struct life *l, size_t i, enum tide_action action, const char *arguments)
{
    assert_string_equal(tide_action_name(l->err.hints[i].action), tide_action_name(action));
    assert_string_equal(l->err.hints[i].arguments, arguments);
}

/* Nothing was written or run by it. `action` is the first that helps, 0: none; `name` the node or checkpoint that it is about, "": it is about the session. */
UNUSED static void refused(struct life *l, const struct tide_graph_options *opt, enum tide_code code,
                           enum tide_action action, const char *name)
{
    int64_t before = last_seq(l);
    size_t calls = l->w.n;
    enum tide_code got = go(l, opt);

    if (got != code)
        fail_msg("want %s, got %s: %s", tide_code_name(code), tide_code_name(got), l->err.msg);
    assert_int_equal(l->err.hints[0].action, action);
    assert_string_equal(l->err.detail.name, name);
    assert_int_equal(last_seq(l), before);
    assert_int_equal(l->w.n, calls);
}

UNUSED static void expect_calls(struct life *l, const char *want)
{
    AUTO(buf_done) struct buf calls = BUF_INIT(1 << 20);

    if (strcmp(world_calls(&l->w, &calls), want) != 0)
        fail_msg("calls %s, want %s", buf_cstr(&calls), want);
}

UNUSED static void fails_at(struct life *l, const char *node)
{
    snprintf(l->w.fail, sizeof l->w.fail, "%s", node);
    l->w.fail_times = 1;
    assert_int_equal(go(l, NULL), TIDE_FAILED);
}

struct wanted {
    const char *type, *node;
    char id[TIDE_ID_SIZE];
    int64_t seq;
};

UNUSED static int take_wanted(void *arg, const struct tide_checkpoint *c)
{
    struct wanted *w = arg;

    if (strcmp(c->type_word, w->type) != 0 || !c->node || strcmp(c->node, w->node) != 0)
        return 0;
    snprintf(w->id, sizeof w->id, "%s", c->id);
    w->seq = c->seq;
    return 0;
}

/* The newest of this type at this node. */
UNUSED static struct wanted checkpoint(struct life *l, const char *type, const char *node)
{
    struct wanted w = {type, node, "", 0};
    tide_session *s = open_session(l);

    OK(tide_checkpoint_list(s, NULL, take_wanted, &w, &err));
    tide_session_close(s);
    assert_true(w.id[0] != 0);
    return w;
}

#endif
