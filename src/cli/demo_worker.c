/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker of the demo: an ordinary user of the library. It knows nothing of earlier runs but what the log says: its last
 * event is the mark, and the next step is the one behind it. Each line it prints was durable before:
 *
 *     mark STEPS               found in the log
 *     done STEP KIND BODY      appended and on disk
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cli/demo.h"

const char *demo_event(int64_t step, struct buf *body)
{
    static const char *const kinds[] = {"message.user", "message.assistant", "memory.set"};
    const char *kind = kinds[(step - 1) % 3];
    struct json_out o = json_out_to(body);
    char text[96];

    buf_clear(body);
    snprintf(text, sizeof(text), "step %" PRId64 ": all that was promised is kept \xe2\x9c\x94", step);
    json_out_begin(&o, '{');
    if (kind == kinds[2]) {
        json_out_key(&o, STR("values"));
        json_out_begin(&o, '{');
        json_out_kint(&o, STR("last_step"), step);
        json_out_end(&o, '}');
    } else {
        json_out_kint(&o, STR("turn"), (step + 2) / 3);
        json_out_kstr(&o, STR("content"), str_from(text));
    }
    json_out_end(&o, '}');
    return kind;
}

static void pause_ms(int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    if (ms > 0)
        nanosleep(&ts, NULL);
}

static enum tide_code work_step(struct cli *cli, tide_session *session, int64_t step, struct buf *body,
                                struct tide_err *err)
{
    struct tide_new_event event = {.kind = demo_event(step, body)};

    event.body = buf_cstr(body);
    event.body_len = body->len;
    if (tide_append(session, 0, &event, 1, NULL, err))
        return err->code;
    outf(&cli->out, "done %" PRId64 " %s ", step, event.kind);
    buf_add_str(&cli->out.text, buf_view(body));
    outf(&cli->out, "\n");
    return out_flush(&cli->out, err);
}

enum tide_code demo_work(struct cli *cli, const char *id, int64_t until, int64_t pace_ms, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(buf_done) struct buf body = BUF_INIT(4096);
    enum tide_code code = tide_session_open(cli->store, id, TIDE_SESSION_APPEND, &session, err);
    int64_t mark;

    if (code)
        return code;
    mark = tide_session_last_seq(session) - (DEMO_FIRST_SEQ - 1);
    outf(&cli->out, "mark %" PRId64 "\n", mark);
    code = out_flush(&cli->out, err);
    for (int64_t step = mark + 1; step <= until && !code; step++) {
        code = work_step(cli, session, step, &body, err);
        pause_ms(pace_ms);
    }
    return code;
}
