/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation of two thousand turns: the process does not grow with it, and whoever takes it up later is soon there. */
#include <malloc.h>
#include <time.h>

#include "agent/agents.h"

enum {
    TURNS = SLOW_BUILD ? 300 : 2000,
    WARM = SLOW_BUILD ? 100 : 500, /* from here on it must not grow */
    GROWTH_MAX = 256 * 1024,       /* a name for each call, so that none is used twice, and the heap's own ways */
    RESUME_MAX_MS = 500,           /* 50 are wanted; this one must hold on any machine, at any load */
    MESSAGE_BYTES = 400
};

#define TURN_WITH_CALL "{\"text\":\"I count.\",\"calls\":[{\"name\":\"count\",\"args\":{\"by\":1}}]}"
#define TURN_OF_TEXT "{\"text\":\"Counted. The next, please.\"}"

static int64_t clock_us(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What this process holds; 0 where that cannot be told. */
static int64_t held_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return SLOW_BUILD ? 0 : (int64_t)(m.uordblks + m.hblkhd);
}

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long total = 0, resident = 0;

    if (!f || fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static enum tide_code count_up(void *arg, const char *args, const char *key, struct tide_text *ret,
                               struct tide_err *err)
{
    (void)args;
    (void)key;
    (void)err;
    ret->len = (size_t)asprintf(&ret->ptr, "%0*d", MESSAGE_BYTES, ++*(int *)arg);
    return TIDE_OK;
}

struct marks {
    int64_t held, resident, cpu_us;
    int turns;
};

struct long_talk {
    struct fixture *f;
    int turns, trimmed, counted;
    int64_t first_us;       /* when something was first told */
    struct marks warm, end; /* both while the agent lives: what it gathers is its own */
};

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct long_talk *l = arg;

    if (!l->first_us)
        l->first_us = clock_us(CLOCK_MONOTONIC);
    l->turns += e->what == TIDE_AGENT_USAGE;
    l->trimmed += e->what == TIDE_AGENT_NOTICE && strstr(e->text, "dropped");
}

static struct marks marks_now(const struct long_talk *l)
{
    int64_t cache = sqlite3_memory_used(); /* the store's, which has a bound of its own */

    return (struct marks){held_bytes() - cache, resident_bytes() - cache, clock_us(CLOCK_PROCESS_CPUTIME_ID), l->turns};
}

static tide_agent *count_agent(struct long_talk *l, tide_session *s)
{
    const struct tide_tool tool = {
        .size = sizeof tool, .name = "count", .description = "counts", .fn = count_up, .arg = &l->counted};
    struct tide_agent_options opt = options(l->f);
    tide_agent *a = NULL;

    opt.event = on_event;
    opt.arg = l;
    opt.max_context_tokens = 8000;
    OK(tide_agent_new(s, &opt, &a, &err));
    OK(tide_agent_add_tool(a, &tool, &err));
    return a;
}

static void conversation_on(struct long_talk *l)
{
    tide_session *s = NULL;
    tide_agent *a;

    OK(tide_session_create(l->f->store, "s", NULL, &s, &err));
    a = count_agent(l, s);
    while (l->turns < TURNS) {
        OK(tide_agent_run(a, "count one further, and say when you have done so", NULL, &err));
        if (!l->warm.turns && l->turns >= WARM)
            l->warm = marks_now(l);
    }
    l->end = marks_now(l);
    tide_agent_free(a);
    tide_session_close(s);
}

static void the_process_stays_as_it_is_over_two_thousand_turns(void **state)
{
    struct fixture *f = *state;
    struct long_talk l = {.f = f};

    write_file(f->script, "{\"turns\":[" TURN_WITH_CALL "," TURN_OF_TEXT "],\"repeat\":true}");
    conversation_on(&l);
    print_message("turns %d to %d, %d trimmings: %lld bytes more held, %lld resident; %lld us of CPU a turn\n",
                  l.warm.turns, l.end.turns, l.trimmed, (long long)(l.end.held - l.warm.held),
                  (long long)(l.end.resident - l.warm.resident),
                  (long long)((l.end.cpu_us - l.warm.cpu_us) / (l.end.turns - l.warm.turns)));
    assert_true(l.trimmed > 5);
    if (!SLOW_BUILD)
        assert_true(l.end.held - l.warm.held < GROWTH_MAX);
    if (!SLOW_BUILD)
        assert_true(l.end.resident - l.warm.resident < 4 * GROWTH_MAX);
}

static void one_who_takes_it_up_is_soon_at_the_provider(void **state)
{
    struct fixture *f = *state;
    struct long_talk l = {.f = f}, later = {.f = f};
    tide_session *s = NULL;
    tide_agent *a;
    int64_t began;

    write_file(f->script, "{\"turns\":[" TURN_WITH_CALL "," TURN_OF_TEXT "],\"repeat\":true}");
    conversation_on(&l);
    write_file(f->script, "{\"turns\":[{\"fail\":[{\"status\":401}]}],\"repeat\":true}");
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
    a = count_agent(&l, s);
    GIVES(TIDE_FAILED, tide_agent_run(a, "one more", NULL, &err)); /* something is left to be done */
    tide_agent_free(a);
    tide_session_close(s);
    tide_store_close(f->store);
    write_file(f->script, "{\"turns\":[" TURN_OF_TEXT "],\"repeat\":true}");

    began = clock_us(CLOCK_MONOTONIC);
    OK(tide_store_open(f->path, NULL, &f->store, &err));
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
    a = count_agent(&later, s);
    OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
    print_message("from opening the store to the provider: %.1f ms, after %d turns and %lld events\n",
                  (double)(later.first_us - began) / 1000, l.turns, (long long)tide_session_last_seq(s));
    assert_true(later.first_us - began < (SLOW_BUILD ? 10 : 1) * RESUME_MAX_MS * 1000);
    tide_agent_free(a);
    tide_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_process_stays_as_it_is_over_two_thousand_turns),
        T(one_who_takes_it_up_is_soon_at_the_provider),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
