/* SPDX-License-Identifier: Apache-2.0 */
/* Known secrets are in nothing that a store holds, whichever call brings them; what the log is made of stays whole. */
#include <dirent.h>

#include "kit.h"
#include "session/runs.h"

#define KEY "pa\"ss/w\xc3\xb6rd 1234"
#define KEY_JSON "pa\\\"ss/w\xc3\xb6rd 1234"
#define KEY_ESCAPED "pa\\u0022ss\\/w\\u00f6rd\\u00201234"
#define KEY_URL "pa%22ss%2Fw%C3%B6rd%201234"
#define KEY_BASE64 "cGEic3Mvd8O2cmQgMTIzNA"
#define MARK "[redacted:PW]"

static int set_up_known(void **state)
{
    struct fixture *f;

    set_up(state);
    f = *state;
    OK(tide_store_add_secret(f->store, "PW", KEY, strlen(KEY), &err));
    return 0;
}

/* ---- every byte on disk ---- */

static void file_lacks(const char *path)
{
    static const char *const forms[] = {KEY, KEY_JSON, KEY_ESCAPED, KEY_URL, KEY_BASE64};
    struct buf all = BUF_INIT(1 << 28);
    FILE *file = fopen(path, "r");
    char piece[65536];
    size_t n;

    assert_non_null(file);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        buf_add(&all, piece, n);
    fclose(file);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (memmem(all.ptr ? all.ptr : "", all.len, forms[i], strlen(forms[i])))
            fail_msg("%s holds %s", path, forms[i]);
    buf_done(&all);
}

static void disk_lacks(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[1200];

        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            disk_lacks(path);
        else if (e->d_type == DT_REG)
            file_lacks(path);
    }
    closedir(d);
}

/* ---- the log ---- */

struct finding {
    const char *kind;
    char *body;
};

static int take(void *arg, const struct tide_event *ev)
{
    struct finding *f = arg;

    if (strcmp(ev->kind, f->kind) == 0) {
        free(f->body);
        f->body = mem_dup(str_from(ev->body));
    }
    return 0;
}

/* The last event of a kind is this. */
static void last_is(tide_session *s, const char *kind, const char *want)
{
    struct finding f = {kind, NULL};

    OK(tide_session_refresh(s, &err));
    OK(tide_session_read(s, 0, 1, 0, take, &f, &err));
    assert_non_null(f.body);
    assert_string_equal(f.body, want);
    free(f.body);
}

/* ---- tests ---- */

static void every_form_in_a_body_is_replaced(void **state)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{\"a\":\"" KEY_JSON "\"}", "{\"a\":\"" MARK "\",\"redacted\":true}"},
        {"{\"a\":\"x" KEY_ESCAPED "y\"}", "{\"a\":\"x" MARK "y\",\"redacted\":true}"},
        {"{\"a\":[1,{\"b\":\"?p=" KEY_URL "&q\"}],\"c\":1.50}",
         "{\"a\":[1,{\"b\":\"?p=" MARK "&q\"}],\"c\":1.50,\"redacted\":true}"},
        {"{\"a\":\"Basic " KEY_BASE64 "==\"}", "{\"a\":\"Basic " MARK "==\",\"redacted\":true}"},
        {"{\"a\":\"{\\\"p\\\":\\\"pa\\\\\\\"ss\\\\/w\xc3\xb6rd 1234\\\"}\"}",
         "{\"a\":\"{\\\"p\\\":\\\"" MARK "\\\"}\",\"redacted\":true}"},
        {"{\"" KEY_JSON "\":1,\"x" KEY_ESCAPED "\":2}", "{\"" MARK "\":1,\"x" MARK " 2\":2,\"redacted\":true}"},
        {"{\"redacted\":\"mine\",\"a\":\"" KEY_JSON "\"}", "{\"a\":\"" MARK "\",\"redacted\":true}"},
        {"{ \"a\" : \"" KEY_JSON "\" }", "{\"a\":\"" MARK "\",\"redacted\":true}"},
        {"{\"a\":\"nothing of it\",\"b\":\"%22 \\u0022\"}", "{\"a\":\"nothing of it\",\"b\":\"%22 \\u0022\"}"},
    };
    struct fixture *f = *state;
    tide_session *s = create(f);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct tide_new_event ev = {"note", rows[i].body, 0};

        OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
        last_is(s, "note", rows[i].want);
    }
    tide_session_close(s);
    disk_lacks(f->dir);
}

/* A number, a time and a word of the log that happen to be the value of a variable do not break what is read by. */
static void what_the_log_is_made_of_stays(void **state)
{
    struct fixture *f = *state;
    const struct tide_new_event usage = {"llm.usage", "{\"input_tokens\":123456789,\"note\":123456789}", 0};
    const struct tide_new_event error = {
        "llm.error", "{\"retry_at\":\"2026-02-21T10:01:10.123Z\",\"message\":\"on 2026-02-21T10\"}", 0};
    tide_session *s = create(f);

    OK(tide_store_add_secret(f->store, "N", "12345678", 8, &err));
    OK(tide_store_add_secret(f->store, "DATE", "2026-02-21T10", 13, &err));
    OK(tide_session_append(s, 0, &usage, 1, NULL, &err));
    last_is(s, "llm.usage", "{\"input_tokens\":123456789,\"note\":\"[redacted:N]9\",\"redacted\":true}");
    OK(tide_session_append(s, 0, &error, 1, NULL, &err));
    last_is(s, "llm.error",
            "{\"retry_at\":\"2026-02-21T10:01:10.123Z\",\"message\":\"on [redacted:DATE]\",\"redacted\":true}");
    SAYS(TIDE_INVALID, "word of the log format", tide_store_add_secret(f->store, "W", "completed", 9, &err));
    SAYS(TIDE_INVALID, "word of the log format", tide_store_add_secret(f->store, "W", "message.", 8, &err));
    SAYS(TIDE_INVALID, "word of the log format", tide_store_add_secret(f->store, "W", "tool_calls", 10, &err));
    SAYS(TIDE_INVALID, "8 to 65536 bytes", tide_store_add_secret(f->store, "W", "seven77", 7, &err));
    tide_session_close(s);
}

static void names_that_hold_it_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "send-hunter2hunter2"};
    const struct tide_wait_options wait = {.size = sizeof wait, .name = "hunter2hunter2", .kind = TIDE_WAIT_APPROVAL};
    const struct tide_new_event ev = {"hunter2hunter2", "{}", 0};
    struct tide_step_answer answer;
    struct tide_text text;
    tide_session *s = create(f), *none = NULL;
    tide_run *r = start(s);

    OK(tide_store_add_secret(f->store, "PW2", "hunter2hunter2", 14, &err));
    SAYS(TIDE_INVALID, "'send-[redacted:PW2]'", tide_step_ask(r, &spec, &answer, &err));
    SAYS(TIDE_INVALID, "'[redacted:PW2]'", tide_run_wait(r, &wait, &text, NULL, &err));
    ABOUT_SESSION(TIDE_INVALID, "s", tide_session_append(s, 0, &ev, 1, NULL, &err));
    SAYS(TIDE_INVALID, "'[redacted:PW2]-1'", tide_session_create(f->store, "hunter2hunter2-1", NULL, &none, &err));
    finish(r);
    tide_session_close(s);
}

/* Else whoever has the log could try values until the digest is right. */
static void the_digest_of_arguments_tells_nothing_of_it(void **state)
{
    struct fixture *f = *state;
    static const char *const given[] = {"--token\0first-of-them\0x", "--token\0second-of-them\0x",
                                        "--token\0third-of-them\0x"};
    struct tide_step_spec spec = {.size = sizeof spec, .name = "pay"};
    struct tide_step_answer answer;
    tide_session *s = create(f);
    tide_run *r = start(s);

    for (int i = 0; i < 3; i++) {
        const char *value = given[i] + strlen("--token") + 1;

        spec.args = given[i];
        spec.args_len = strlen("--token") + strlen(value) + 4;
        if (i == 2) { /* as a process records it that does not know it, and versions before this did */
            spec.name = "other";
            OK(tide_step_ask(r, &spec, &answer, &err));
            OK(tide_step_begin(r, "other", 0, 0, &err));
            OK(tide_step_end(
                r, "other",
                &(struct tide_step_result){.size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_COMPLETED},
                &answer, &err));
            tide_run_close(r);
            r = resume(s, NULL);
        }
        OK(tide_store_add_secret(f->store, "TOKEN", value, strlen(value), &err));
        OK(tide_step_ask(r, &spec, &answer, &err));
        assert_int_equal(answer.state, i == 0 ? TIDE_STEP_RUN : TIDE_STEP_STORED);
        tide_text_done(&answer.result);
        if (i > 0)
            continue;
        OK(tide_step_begin(r, "pay", 0, 0, &err));
        OK(tide_step_end(
            r, "pay",
            &(struct tide_step_result){.size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_COMPLETED},
            &answer, &err));
        tide_run_close(r);
        r = resume(s, NULL);
    }
    spec.args = "--token\0another\0x";
    spec.args_len = 17;
    tide_run_close(r);
    r = resume(s, NULL);
    ABOUT(TIDE_CHANGED, TIDE_SUBJECT_STEP, "other", tide_step_ask(r, &spec, &answer, &err));
    finish(r);
    tide_session_close(s);
}

static enum tide_code give_key(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)key;
    (void)err;
    ret->ptr = mem_dup(STR("{\"got\":\"" KEY_JSON "\"}"));
    ret->len = strlen(ret->ptr);
    return TIDE_OK;
}

/* Titles, queued appends, inputs, steps, failures, big values, checkpoints, snapshots. */
static void every_way_into_the_store_is_covered(void **state)
{
    struct fixture *f = *state;
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "fetch"};
    const struct tide_run_result failed = {.size = sizeof failed,
                                           .outcome = TIDE_OUTCOME_FAILED,
                                           .error_code = "e",
                                           .error_message = "bad password " KEY,
                                           .fields = "{\"f\":\"" KEY_URL "\"}"};
    struct tide_new_event ev = {"note", "{\"a\":\"" KEY_ESCAPED "\"}", 0};
    const struct tide_new_event queued = {"queue.added", "{\"queue_id\":\"q\",\"content\":\"" KEY_JSON "\"}", 0};
    const struct tide_new_checkpoint mark = {
        .size = sizeof mark, .type = TIDE_CHECKPOINT_USER, .description = "with " KEY};
    struct buf big = BUF_INIT(1 << 22);
    struct tide_text text = {NULL, 0};
    char id[TIDE_ID_SIZE];
    tide_session *s = NULL;
    tide_run *r;

    OK(tide_session_create(f->store, "s", "{\"title\":\"about " KEY_JSON "\",\"metadata\":{\"k\":\"" KEY_BASE64 "\"}}",
                           &s, &err));
    OK(tide_session_append_async(s, 0, &ev, 1, NULL, &err));
    OK(tide_session_flush(s, &err));
    r = start(s);
    OK(tide_session_input(f->store, "s", -1, &queued, 1, NULL, &err));
    OK(tide_session_refresh(s, &err));
    OK(tide_run_step(r, &spec, give_key, NULL, &text, &err));
    assert_string_equal(text.ptr, "{\"got\":\"" MARK "\"}"); /* as it will come from the log */
    tide_text_done(&text);
    last_is(s, "queue.added", "{\"queue_id\":\"q\",\"content\":\"" MARK "\",\"redacted\":true}");
    buf_add_str(&big, STR("{\"content\":\""));
    for (int i = 0; i < 20000; i++)
        buf_addf(&big, "%d " KEY_JSON " ", i);
    buf_add_str(&big, STR("\"}"));
    ev = (struct tide_new_event){"message.user", buf_cstr(&big), big.len};
    OK(tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err));
    ev = (struct tide_new_event){"memory.set", "{\"values\":{\"k\":\"" KEY_ESCAPED "\"}}", 0};
    OK(tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err));
    OK(tide_checkpoint_save(s, &mark, id, &err));
    OK(tide_run_end(r, &failed, &err));
    tide_run_close(r);
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
    buf_done(&big);
    disk_lacks(f->dir);
    tide_store_close(TAKE(f->other));
    tide_store_close(TAKE(f->store));
    disk_lacks(f->dir);
}

static void marks_do_not_make_a_record_too_big(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    struct buf big = BUF_INIT(1 << 28);
    struct tide_new_event ev = {"note", NULL, 0};
    size_t max = store_of(f->store)->max_record_bytes;

    OK(tide_store_add_secret(f->store, "LONG_NAME_OF_A_SHORT_SECRET", "abcdefg1", 8, &err));
    store_of(f->store)->max_record_bytes = 1 << 16;
    buf_add_str(&big, STR("{\"a\":\""));
    while (big.len < (1 << 16) - 100)
        buf_add_str(&big, STR("abcdefg1"));
    buf_add_str(&big, STR("\"}"));
    ev.body = buf_cstr(&big);
    OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
    store_of(f->store)->max_record_bytes = max;
    buf_done(&big);
    tide_session_close(s);
}

static void the_environment_is_looked_through(void **state)
{
    static const char *const vars[][2] = {
        {"TEST_API_KEY", "first-secret-1"},
        {"test_token_x", "second-secret-2"},
        {"MY_PASSWORD", "third-secret-3"},
        {"SECRET_OF_MINE", "fourth-secret-4"},
        {"TEST_ORDINARY", "fifth-is-none-5"},
        {"TEST_KEY_FILE", "/dev/null"},
        {"TEST_SHORT_KEY", "seven77"},
        {"TIDEMARK_IDEMPOTENCY_KEY", "sixth-is-none-6"},
        {"TEST_KEY_EXCEPTED", "seventh-is-none-7"},
        {"TIDEMARK_NOT_SECRET", "OTHER,TEST_KEY_EXCEPTED"},
    };
    const size_t n = sizeof vars / sizeof vars[0];
    struct fixture *f = *state;
    const struct tide_new_event ev = {
        "note",
        "{\"a\":\"first-secret-1 second-secret-2 third-secret-3 fourth-secret-4 fifth-is-none-5 "
        "/dev/null seven77 sixth-is-none-6 seventh-is-none-7\"}",
        0};
    tide_store *store = NULL;
    tide_session *s = NULL;

    for (size_t i = 0; i < n; i++)
        setenv(vars[i][0], vars[i][1], 1);
    OK(tide_store_open(f->path, NULL, &store, &err));
    for (size_t i = 0; i < n; i++)
        unsetenv(vars[i][0]);
    OK(tide_session_create(store, "s", NULL, &s, &err));
    OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
    last_is(s, "note",
            "{\"a\":\"[redacted:TEST_API_KEY] [redacted:test_token_x] [redacted:MY_PASSWORD] [redacted:SECRET_OF_MINE] "
            "fifth-is-none-5 /dev/null seven77 sixth-is-none-6 seventh-is-none-7\",\"redacted\":true}");
    tide_session_close(s);
    tide_store_close(store);
}

/* The store fails when the event is committed, and cannot be settled at once: whether it is there is found out by what is stored, not by what was given. */
static int commits, settles;
static const struct store_ops *plain_ops;

static void failing_commit(struct store *store, struct batch *list)
{
    plain_ops->commit(store, list);
    if (++commits != 2) /* the first is the start of the step, the second its result */
        return;
    for (struct batch *b = list; b; b = b->next)
        b->code = tide_fail(&b->err, TIDE_UNKNOWN, "the disk failed");
}

static enum tide_code failing_settle(struct store *store, struct tide_err *err)
{
    return settles++ ? plain_ops->settle(store, err) : tide_fail(err, TIDE_IO, "the disk fails still");
}

static void an_append_of_unknown_outcome_is_found_and_not_doubled(void **state)
{
    struct fixture *f = *state;
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "fetch"};
    const struct tide_step_result result = {
        .size = sizeof result, .outcome = TIDE_OUTCOME_COMPLETED, .result = "{\"got\":\"" KEY_JSON "\"}"};
    static struct store_ops ops;
    struct tide_step_answer answer;
    tide_session *s = create(f);
    tide_run *r = start(s);
    int64_t before = tide_session_last_seq(s);

    plain_ops = store_of(f->store)->ops;
    ops = *plain_ops;
    ops.commit = failing_commit;
    ops.settle = failing_settle;
    store_of(f->store)->ops = &ops;
    commits = settles = 0;
    OK(tide_step_ask(r, &spec, &answer, &err));
    OK(tide_step_begin(r, "fetch", 0, 0, &err));
    OK(tide_step_end(r, "fetch", &result, &answer, &err));
    store_of(f->store)->ops = plain_ops;
    finish(r);
    assert_int_equal(tide_session_last_seq(s), before + 3); /* started, completed, and the end of the run */
    tide_session_close(s);
    disk_lacks(f->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_form_in_a_body_is_replaced, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(what_the_log_is_made_of_stays, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(the_digest_of_arguments_tells_nothing_of_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_that_hold_it_are_refused, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(every_way_into_the_store_is_covered, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(marks_do_not_make_a_record_too_big, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(the_environment_is_looked_through, set_up_known, tear_down),
        cmocka_unit_test_setup_teardown(an_append_of_unknown_outcome_is_found_and_not_doubled, set_up_known, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
