/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a line of a log. What is taken for an event is one that can be written again, and comes back the same;
 * where the line is JSON, both ways of reading it agree.
 */
#include "base/json.h"
#include "fuzz.h"
#include "store/files_line.h"

static bool same(const struct event *a, const struct event *b)
{
    return a->seq == b->seq && a->ts_ms == b->ts_ms && a->epoch == b->epoch && str_eq(a->kind, b->kind) &&
           str_eq(a->body, b->body) && memcmp(a->digest, b->digest, DIGEST_SIZE) == 0;
}

static void check_again(struct arena *a, const struct event *ev, const struct line_fields *mark)
{
    AUTO(buf_done) struct buf out = BUF_INIT(ev->body.len + 1000);
    struct event again;
    struct line_fields again_mark;
    struct str line;
    int64_t seq;

    line_write(&out, ev, mark);
    MUST(!out.failed);
    line = (struct str){out.ptr, out.len - 1};
    MUST(line_read(a, line, &again, &again_mark) == LINE_EVENT && same(&again, ev));
    MUST(again_mark.more == mark->more && strcmp(again_mark.parent, mark->parent) == 0);
    MUST(memcmp(again_mark.before, mark->before, DIGEST_SIZE) == 0 && again_mark.parent_seq == mark->parent_seq);
    MUST(line_peek(line, &seq, &again_mark) && seq == ev->seq);
    MUST(str_eq(line_kind(line), ev->kind));
}

/* A space in front takes the line to the parser. */
static void check_parsed(struct arena *a, struct str line, const struct event *ev)
{
    AUTO(buf_done) struct buf spaced = BUF_INIT(line.len + 1);
    enum line_read result;
    struct event parsed;
    struct line_fields mark;
    struct json *v;
    bool compact;

    buf_add_char(&spaced, ' ');
    buf_add_str(&spaced, line);
    result = line_read(a, buf_view(&spaced), &parsed, &mark);
    if (!ev)
        MUST(result == LINE_NOT);
    else if (json_parse(a, line, NULL, &v, &compact, NULL) == TIDE_OK && compact)
        MUST(result == LINE_EVENT && same(&parsed, ev));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str line = {(const char *)data, size};
    struct event ev;
    struct line_fields mark;
    int64_t seq;
    bool is_event = line_read(&a, line, &ev, &mark) == LINE_EVENT;

    check_parsed(&a, line, is_event ? &ev : NULL);
    if (is_event) {
        MUST(ev.seq >= 1 && ev.kind.len && ev.body.len >= 2 && ev.body.ptr[ev.body.len] == 0);
        check_again(&a, &ev, &mark);
    }
    if (line_peek(line, &seq, &mark))
        MUST(seq >= 1 && mark.verified);
    MUST(line_kind(line).len <= 64);
    return 0;
}
