/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a request for the next one changes no byte: random conversations, with results that come late, prompts in a
 * row, messages that a provider leaves out, turns that are dropped and prompts that are rendered anew, are rendered on from
 * request to request; each must be what a process renders that has only just read the conversation.
 */
#include "agent/agent.h"
#include "agent/agents.h"

#define SEEDS 300
#define STEPS 60

struct talk {
    const char *type;
    struct provider *p;
    struct conversation t;
    struct rendering k;
    struct buf log; /* kind, NUL, body, NUL: of each event */
    const char *system;
    uint64_t random;
    int ids, open[4], n_open;
};

static unsigned pick(struct talk *w, unsigned n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % n;
}

__attribute__((format(printf, 3, 4))) static void happen(struct talk *w, const char *kind, const char *fmt, ...)
{
    char body[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(body, sizeof body, fmt, ap);
    va_end(ap);
    conversation_apply(&w->t, str_from(kind), str_from(body));
    buf_add(&w->log, kind, strlen(kind) + 1);
    buf_add(&w->log, body, strlen(body) + 1);
}

static const char *words(struct talk *w)
{
    static const char *const texts[] = {
        "", " ", "yes", "no \\\"quotes\\\"", "\\n", "a longer text that says a little more"};

    return texts[pick(w, sizeof texts / sizeof texts[0])];
}

static void answer(struct talk *w)
{
    char calls[200] = "";
    size_t len = 0;

    w->n_open = (int)pick(w, 3);
    for (int i = 0; i < w->n_open; i++) {
        w->open[i] = ++w->ids;
        len += (size_t)snprintf(calls + len, sizeof calls - len,
                                "%s{\"id\":\"c%d\",\"name\":\"work\",\"args\":{\"a\":%u}}", i ? "," : "", w->open[i],
                                pick(w, 9));
    }
    happen(w, "message.assistant", "{\"turn\":1,\"message_id\":\"m%d\",\"content\":\"%s\",\"tool_calls\":[%s]}",
           ++w->ids, words(w), calls);
}

static void drop(struct talk *w)
{
    size_t from = 1 + pick(w, (unsigned)w->t.n - 2), to = from + pick(w, (unsigned)(w->t.n - 1 - from));

    happen(w, "context.trimmed", "{\"dropped\":[{\"from\":\"%s\",\"to\":\"%s\"}]}", w->t.said[from]->id,
           w->t.said[to]->id);
}

static void something_happens(struct talk *w)
{
    switch (pick(w, 8)) {
    case 0:
    case 1:
        happen(w, "message.user", "{\"turn\":1,\"message_id\":\"m%d\",\"content\":\"%s\"}", ++w->ids, words(w));
        break;
    case 2:
    case 3:
        if (w->n_open)
            happen(w, "message.tool", "{\"turn\":1,\"message_id\":\"m%d\",\"tool_call_id\":\"c%d\",\"content\":\"%s\"}",
                   ++w->ids, w->open[--w->n_open], words(w));
        break;
    case 4:
        if (!pick(w, 4) && w->t.n > 3)
            drop(w);
        break;
    case 5:
        if (!pick(w, 8))
            happen(w, "context.trimmed", "{\"summary\":\"in short\",\"turn\":1,\"message_id\":\"m%d\"}", ++w->ids);
        break;
    default:
        answer(w);
    }
}

static struct model_request request_of(const struct talk *w, const struct conversation *t)
{
    return (struct model_request){.model = STR("m"),
                                  .system = str_from(w->system),
                                  .tools = STR("[]"),
                                  .max_tokens = 9,
                                  .answers_left_out = t->answers_left_out};
}

/* As a process does that has read the log. */
static void render_anew(const struct talk *w, struct str wish, struct buf *out, size_t *ret_n)
{
    struct conversation t = {.system = NULL};
    struct model_request req;
    struct arena a = ARENA_INIT;
    size_t settled;

    for (const char *at = w->log.ptr; at < w->log.ptr + w->log.len;) {
        const char *kind = at, *body = kind + strlen(kind) + 1;

        conversation_apply(&t, str_from(kind), str_from(body));
        at = body + strlen(body) + 1;
    }
    req = request_of(w, &t);
    req.messages = conversation_messages(&t, &a, wish, &req.n_messages, &settled);
    *ret_n = req.n_messages;
    provider_render(w->p, &req, out);
    arena_done(&a);
    conversation_done(&t);
}

static void ask(struct talk *w, uint64_t seed)
{
    struct str wish = pick(w, 6) ? STR("") : STR("sum it up");
    struct model_request req = request_of(w, &w->t);
    struct buf anew = BUF_INIT(1 << 20);
    char digest[DIGEST_NAME_SIZE], want[DIGEST_NAME_SIZE];
    struct arena a = ARENA_INIT;
    size_t n, n_anew;

    render_anew(w, wish, &anew, &n_anew);
    n = conversation_render(&w->t, w->p, &req, wish, &a, &w->k, digest);
    digest_name(want, buf_view(&anew));
    if (n != n_anew || !str_eq(buf_view(&w->k.body), buf_view(&anew)) || strcmp(digest, want) != 0)
        fail_msg("seed %llu, %s:\n%s\n%s", (unsigned long long)seed, w->type, buf_cstr(&w->k.body), buf_cstr(&anew));
    buf_done(&anew);
    arena_done(&a);
}

static void play(const char *type, const char *script, uint64_t seed)
{
    const struct provider_config config = {.type = type, .script = script};
    struct talk w = {.type = type, .log = BUF_INIT(1 << 20), .random = seed, .system = "Be brief."};

    w.k.body = (struct buf)BUF_INIT(1 << 20);
    OK(provider_open(&config, &w.p, &err));
    for (int i = 0; i < STEPS; i++) {
        something_happens(&w);
        if (!pick(&w, 20))
            w.system = pick(&w, 2) ? "Be brief." : "Be long.";
        if (!pick(&w, 2))
            ask(&w, seed);
    }
    provider_close(w.p);
    conversation_done(&w.t);
    buf_done(&w.k.body);
    buf_done(&w.log);
}

static void what_is_kept_of_a_request_changes_no_byte(void **state)
{
    static const char *const types[] = {"anthropic", "openai", "script"};
    char dir[256], script[300];

    (void)state;
    dir_make(dir);
    snprintf(script, sizeof script, "%s/s.json", dir);
    write_file(script, "{\"turns\":[{}]}");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            play(types[i], script, seed);
    dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_of_a_request_changes_no_byte)};

    return cmocka_run_group_tests_name("rendering", tests, NULL, NULL);
}
