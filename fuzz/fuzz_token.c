/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anybody may come with anything that he says is a resume token. Four lines: the token (beginning with '=': the real one,
 * then pairs of bytes that change it: where, into what), a request id, an answer and the fields of the run.
 *
 * Only the token itself opens the wait, once; anything else is refused by its own name and leaves the log as it was; no
 * error gives a secret away. What was let through is a log that verifies.
 */
#include "fuzz_store.h"

#define LINES 4

static char real[TIDE_TOKEN_SIZE];

static void make_wait(tide_store *store)
{
    const struct tide_wait_options wait = {.size = sizeof wait, .name = "go", .kind = TIDE_WAIT_APPROVAL};
    struct tide_text answer = {NULL, 0};
    tide_session *s = NULL;
    tide_run *run = NULL;

    MUST(tide_session_create(store, "waits", NULL, &s, NULL) == TIDE_OK);
    MUST(tide_run_start(s, NULL, &run, NULL) == TIDE_OK);
    MUST(tide_run_wait(run, &wait, &answer, real, NULL) == TIDE_WAITING);
    tide_run_close(run);
    tide_session_close(s);
}

/* A disk with a session that waits and its token in `real`, made once. */
static const struct sim_image *waiting_store(void)
{
    static struct sim_image *image;

    if (!image) {
        struct sim *sim = sim_new_from(1, empty_store());
        tide_store *store = open_store(sim);

        make_wait(store);
        tide_store_close(store);
        image = sim_image_take(sim);
        sim_free(sim);
    }
    return image;
}

/* ---- the input ----------------------------------------------------------------------------------------------------- */

/* Cuts the text into lines, in place; one that is missing or empty is NULL. */
static void cut(char *text, char *lines[LINES])
{
    for (size_t i = 0; i < LINES; i++) {
        char *end = text ? strchr(text, '\n') : NULL;

        lines[i] = text && *text != '\n' && *text ? text : NULL;
        if (end)
            *end = '\0';
        text = end ? end + 1 : NULL;
    }
}

/* The token that is tried: as given, or the real one with changes. */
static void choose(char out[TIDE_TOKEN_SIZE * 2], const char *line)
{
    snprintf(out, TIDE_TOKEN_SIZE * 2, "%s", *line == '=' ? real : line);
    for (line += *line == '=' ? 1 : strlen(line); line[0] && line[1]; line += 2)
        out[(unsigned char)line[0] % strlen(real)] = line[1];
}

/* ---- what must hold -------------------------------------------------------------------------------------------------- */

static bool is_refusal(enum tide_code code)
{
    return code == TIDE_TOKEN_MALFORMED || code == TIDE_TOKEN_FOREIGN;
}

static bool is_bad_input(enum tide_code code)
{
    return code == TIDE_INVALID || code == TIDE_TOO_BIG;
}

static void check_again(tide_session *s, const struct tide_run_options *opt, const struct tide_resumed *first)
{
    struct tide_resumed again;
    struct tide_err err;
    tide_run *run = NULL;
    enum tide_code code = tide_run_resume(s, opt, &again, &run, &err);

    MUST(run == NULL);
    if (opt->request_id)
        MUST(code == TIDE_OK && again.repeated && again.seq == first->seq && strcmp(again.run_id, first->run_id) == 0);
    else
        MUST(code == TIDE_TOKEN_CONSUMED);
}

static void try_token(tide_store *store, const char *token, char *const lines[LINES])
{
    const struct tide_run_options opt = {
        .size = sizeof opt, .token = token, .request_id = lines[1], .input = lines[2], .fields = lines[3]};
    const struct tide_run_result done = {.size = sizeof done, .outcome = TIDE_OUTCOME_COMPLETED};
    bool is_real = strcmp(token, real) == 0;
    struct tide_resumed resumed;
    struct tide_err err = {0};
    tide_session *s = NULL;
    tide_run *run = NULL;
    enum tide_code code;
    int64_t before;

    MUST(tide_session_open(store, "waits", TIDE_SESSION_APPEND, &s, NULL) == TIDE_OK);
    before = tide_session_last_seq(s);
    code = tide_run_resume(s, &opt, &resumed, &run, &err);
    if (code) {
        MUST(is_bad_input(code) || (!is_real && is_refusal(code)));
        MUST(tide_session_refresh(s, NULL) == TIDE_OK && tide_session_last_seq(s) == before);
        MUST(err.msg[0] && !strstr(err.msg, strchr(real, '.') + 1));
    } else {
        MUST(is_real && !resumed.repeated && run);
        check_again(s, &opt, &resumed);
        MUST(tide_run_end(run, &done, NULL) == TIDE_OK);
    }
    tide_run_close(run);
    MUST(tide_session_verify(s, NULL, NULL, NULL, NULL) == TIDE_OK);
    tide_session_close(s);
}

/* The same fields and answer, as a run of its own begins with them. */
static void try_start(tide_store *store, char *const lines[LINES])
{
    const struct tide_run_options opt = {.size = sizeof opt, .message = lines[2], .fields = lines[3]};
    struct tide_text json = {NULL, 0};
    tide_session *s = NULL;
    tide_run *run = NULL;
    enum tide_code code;

    MUST(tide_session_create(store, "starts", NULL, &s, NULL) == TIDE_OK);
    code = tide_run_start(s, &opt, &run, NULL);
    MUST(!code || is_bad_input(code));
    if (!code && tide_session_get_program(s, &json, NULL) == TIDE_OK)
        tide_text_done(&json);
    tide_run_close(run);
    MUST(tide_session_verify(s, NULL, NULL, NULL, NULL) == TIDE_OK);
    tide_session_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim *sim = sim_new_from(2, waiting_store());
    tide_store *store = open_store(sim);
    char *text = mem_dup((struct str){(const char *)data, size}), *lines[LINES], token[TIDE_TOKEN_SIZE * 2];

    cut(text, lines);
    choose(token, lines[0] ? lines[0] : "");
    try_token(store, token, lines);
    try_start(store, lines);
    tide_store_close(store);
    sim_free(sim);
    free(text);
    return 0;
}
