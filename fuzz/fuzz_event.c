/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any event into the fold: the first line is its kind, the rest its body. What the check lets through must fold without
 * harm, alone and twice, and the state must come out the same after being stored as a snapshot and read again.
 */
#include "session/state.h"
#include "fuzz.h"

static void check_round_trip(const struct state *s)
{
    struct buf first = BUF_INIT(SIZE_MAX / 4), again = BUF_INIT(SIZE_MAX / 4);
    struct state *back = NULL;

    state_encode(&first, s, STATE_ALL);
    MUST(state_decode(buf_view(&first), &back, NULL) == TIDE_OK);
    state_encode(&again, back, STATE_ALL);
    MUST(str_eq(buf_view(&first), buf_view(&again)));
    state_free(back);
    buf_clear(&first);
    state_encode(&first, s, STATE_SUMMARY);
    MUST(state_decode(buf_view(&first), &back, NULL) == TIDE_OK);
    state_free(back);
    buf_done(&first);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *end = size ? memchr(data, '\n', size) : NULL;
    struct str kind, body;
    struct arena parse = ARENA_INIT, scratch = ARENA_INIT;
    struct state *s = state_new(STR("sess_fuzz"));
    struct json *json;

    kind = (struct str){(const char *)data, end ? (size_t)(end - (const char *)data) : size};
    body = end ? (struct str){end + 1, size - kind.len - 1} : STR("{}");
    if (kind_is_valid(kind) && json_parse(&parse, body, NULL, &json, NULL, NULL) == TIDE_OK &&
        kind_check(kind_find(kind), kind, json, NULL) == TIDE_OK) {
        for (int64_t seq = 1; seq <= 2; seq++) {
            const struct event ev = {.seq = seq, .ts_ms = 1, .kind = kind, .body = body};

            state_apply(s, &ev, &scratch);
            check_round_trip(s);
        }
        MUST(s->seq == 2 && s->ledger.events == 2);
    }
    state_free(s);
    arena_done(&parse);
    arena_done(&scratch);
    return 0;
}
