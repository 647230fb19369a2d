/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any log into a store: each line of the input is a kind, a space and a body, and becomes an event with a right digest, as
 * anyone can make one for a store without a key. What import takes must be harmless: every state can be computed, with and
 * without what is cached, and is the same; everything can be asked; the session can be appended to, rolled back and forked.
 */
#include "base/json.h"
#include "fuzz_store.h"

enum { MAX_EVENTS = 40 };

/* ---- From lines to an export ----------------------------------------------------------------------------------- */

/* The body as an export would give it back: compact, and without the names that are Tidemark's. */
static bool compact(struct arena *a, struct str body, struct str *ret)
{
    static const char *const reserved[] = {"seq", "ts", "kind", "tidemark"};
    struct buf out = BUF_INIT(body.len + 1);
    struct json *v;

    if (json_parse(a, body, NULL, &v, NULL, NULL) || v->type != JSON_OBJECT)
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (json_get(v, str_from(reserved[i])))
            return false;
    }
    json_write(&out, v);
    *ret = arena_dup(a, buf_view(&out));
    buf_done(&out);
    return true;
}

static size_t read_events(struct arena *a, struct str text, struct event *ret)
{
    size_t n = 0;

    ret[n++] = (struct event){.kind = STR("session.created"), .body = STR("{}")};
    while (text.len && n < MAX_EVENTS) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        const char *space = memchr(line.ptr, ' ', line.len);
        size_t kind = space ? (size_t)(space - line.ptr) : 0;

        if (kind && compact(a, (struct str){space + 1, line.len - kind - 1}, &ret[n].body))
            ret[n++].kind = (struct str){line.ptr, kind};
        text.ptr += line.len + (end != NULL);
        text.len -= line.len + (end != NULL);
    }
    return n;
}

static void write_export(struct buf *out, struct event *events, size_t n)
{
    struct buf lines = BUF_INIT(SIZE_MAX / 4);
    const struct digest_key none = {.len = 0};
    unsigned char before[DIGEST_SIZE] = {0};
    char hex[2 * DIGEST_SIZE + 1], extra[200];

    for (size_t i = 0; i < n; i++) {
        events[i].seq = (int64_t)i + 1;
        events[i].ts_ms = 1700000000000;
        events[i].epoch = 1;
        event_digest(events[i].digest, &none, before, STR("log"), &events[i]);
        memcpy(before, events[i].digest, DIGEST_SIZE);
        hex_encode(hex, before, DIGEST_SIZE);
        snprintf(extra, sizeof extra, "\"tidemark\":{\"epoch\":1,\"digest\":\"%s\"}", hex);
        event_write_json(&lines, &events[i], str_from(extra));
        buf_add_char(&lines, '\n');
    }
    buf_addf(
        out,
        "{\"tidemark\":\"export\",\"version\":1,\"session_id\":\"log\",\"first_seq\":1,\"last_seq\":%zu,\"keyed\":false,"
        "\"head_digest\":\"%s\"}\n",
        n, hex);
    buf_add_str(out, buf_view(&lines));
    buf_done(&lines);
}

/* ---- A store ----------------------------------------------------------------------------------------------------- */

/* ---- Asking ------------------------------------------------------------------------------------------------------- */

static int on_event(void *arg, const struct tide_event *ev)
{
    (void)arg;
    return ev->body[0] != '{';
}

static int on_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    (void)arg;
    return c->id == NULL;
}

static int on_info(void *arg, const struct tide_session_info *info)
{
    (void)arg;
    MUST(info->status && info->reason && info->why);
    return 0;
}

/* A past state never changes: the same bytes before and after whatever else was done. */
static void check_states(tide_session *s, int64_t n, char **texts)
{
    for (int64_t seq = 1; seq <= n; seq++) {
        struct tide_text text = {NULL, 0};
        char *status;

        MUST(tide_session_get_state(s, seq, &text, NULL) == TIDE_OK);
        status = strstr(text.ptr, ",\"status\":{\"status\"");
        if (status && seq == tide_session_last_seq(s))
            memcpy(status, "}", 2); /* a status is of now */
        MUST(!texts[seq] || strcmp(texts[seq], text.ptr) == 0);
        free(texts[seq]);
        texts[seq] = text.ptr;
    }
}

static void ask(tide_store *store, tide_session *s)
{
    const struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
    const struct tide_session_info *info;
    struct tide_usage usage;

    MUST(tide_session_verify(s, NULL, NULL, NULL, NULL) == TIDE_OK);
    MUST(tide_session_read_messages(s, 0, on_event, NULL, NULL) == TIDE_OK);
    MUST(tide_session_read_errors(s, on_event, NULL, NULL) == TIDE_OK);
    MUST(tide_session_get_usage(s, 0, &usage, NULL) == TIDE_OK);
    MUST(tide_checkpoint_list(s, &all, on_checkpoint, NULL, NULL) == TIDE_OK);
    MUST(tide_session_get_info(s, &info, NULL) == TIDE_OK);
    MUST(tide_session_list(store, NULL, on_info, NULL, NULL) == TIDE_OK);
}

static void check_taken(tide_store *store, int64_t n)
{
    const struct tide_new_event more = {"message.user", "{\"turn\":1,\"content\":\"hi\"}", 0};
    char *texts[MAX_EVENTS + 1] = {NULL}, id[TIDE_ID_SIZE];
    tide_session *s = NULL;
    enum tide_code code;

    MUST(tide_session_open(store, "log", TIDE_SESSION_APPEND, &s, NULL) == TIDE_OK);
    check_states(s, n, texts);
    ask(store, s);
    MUST(tide_session_append(s, 0, &more, 1, NULL, NULL) == TIDE_OK);
    code = tide_session_rollback(s, (n + 1) / 2, 0, NULL, NULL);
    MUST(code == TIDE_OK || code == TIDE_EFFECTS);
    check_states(s, n, texts);
    ask(store, s);
    tide_session_close(s);
    MUST(tide_session_fork(store, "log", (n + 2) / 3, "fork", NULL, id, NULL) == TIDE_OK);
    MUST(tide_store_check(store, TIDE_CHECK_REBUILD, NULL, NULL, NULL, NULL) == TIDE_OK);
    MUST(tide_session_open(store, "log", TIDE_SESSION_READ, &s, NULL) == TIDE_OK);
    check_states(s, n, texts);
    tide_session_close(s);
    MUST(tide_session_open(store, "fork", TIDE_SESSION_READ, &s, NULL) == TIDE_OK);
    ask(store, s);
    tide_session_close(s);
    for (int64_t i = 0; i <= n; i++)
        free(texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim *sim = sim_new_from(1, empty_store());
    tide_store *store = open_store(sim);
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct arena a = ARENA_INIT;
    struct event events[MAX_EVENTS];
    size_t n = read_events(&a, (struct str){(const char *)data, size}, events);
    char id[TIDE_ID_SIZE];
    struct str rest;

    write_export(&out, events, n);
    rest = buf_view(&out);
    if (tide_session_import(store, give, NULL, &rest, id, NULL) == TIDE_OK)
        check_taken(store, (int64_t)n);
    tide_store_close(store);
    sim_free(sim);
    buf_done(&out);
    arena_done(&a);
    return 0;
}
