/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a parked graph waits for, asked at the terminal. The question stays in the store while a person thinks: whoever
 * answers nothing, or goes away, leaves it parked, and it can be answered from anywhere.
 */
#include <stdio.h>
#include <strings.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/chat/chat_detail.h"
#include "cli/terminal/glyph.h"
#include "cli/graph/graph_view.h"
#include "cli/terminal/line_tty.h"
#include "cli/line_reader.h"

#define ANSWER_MAX 65536
#define LOOKED_AT 10000 /* events behind which the call that is asked about is not looked for */

struct question {
    struct arena arena;
    const char *text;
    const char *tool, *args; /* of the call that it is about, JSON; NULL: of none */
    bool approval;
};

static int take_call(void *arg, const struct tide_event *ev)
{
    struct question *q = arg;
    const struct json *args;
    struct json *body = NULL;

    if (strcmp(ev->kind, "approval.requested") != 0 ||
        json_parse(&q->arena, arena_dup(&q->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL) ||
        !str_eq(json_get_text(&q->arena, body, STR("question")), str_from(q->text)))
        return 0;
    args = json_get(body, STR("args"));
    q->args = args ? arena_dup(&q->arena, json_source(args)).ptr : NULL;
    q->tool = args ? arena_dup(&q->arena, json_get_text(&q->arena, body, STR("tool"))).ptr : "";
    return 0;
}

static bool find_question(tide_session *session, struct question *q)
{
    const struct tide_session_info *info;
    struct tide_err ignored;
    int64_t last, first;

    if (tide_session_refresh(session, &ignored) || tide_session_get_info(session, &info, &ignored) ||
        (info->deadline_ms && info->deadline_ms <= (int64_t)time(NULL) * 1000)) /* too late for an answer */
        return false;
    q->text = arena_dup(&q->arena, str_from(info->question ? info->question : info->wait_name)).ptr;
    q->approval = info->wait_kind == TIDE_WAIT_APPROVAL;
    last = tide_session_last_seq(session);
    first = last > LOOKED_AT ? last - LOOKED_AT : tide_session_first_seq(session);
    if (q->approval && tide_session_read(session, 0, first, last, take_call, q, &ignored))
        q->args = NULL; /* the question says what it is about */
    return true;
}

/* ---- showing it ---- */

/* Whatever the text holds, it cannot move the terminal. */
static void put_lines(struct buf *out, const char *before, struct str text)
{
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len;

        buf_add_str(out, str_from(before));
        glyph_clean(out, (struct str){text.ptr, n});
        buf_add_char(out, '\n');
        n += end != NULL;
        text = (struct str){text.ptr + n, text.len - n};
    }
}

/* ---- the answer ---- */

enum said { SAID_NOTHING, SAID_IT, SAID_SOMETHING_ELSE };

static bool is_word(struct str line, const char *word)
{
    return (line.len == 1 || line.len == strlen(word)) && strncasecmp(line.ptr, word, line.len) == 0;
}

static enum said read_line(const struct question *q, struct str line, struct buf *ret)
{
    line = str_trim(line);
    if (!line.len)
        return SAID_NOTHING;
    if (q->approval && !is_word(line, "yes") && !is_word(line, "no"))
        return SAID_SOMETHING_ELSE;
    if (!str_is_utf8(line, NULL))
        return SAID_SOMETHING_ELSE;
    json_quote(ret, !q->approval ? line : is_word(line, "yes") ? STR("yes") : STR("no"));
    return SAID_IT;
}

static enum said ask_once(const struct question *q, struct line_reader *in, struct buf *ret)
{
    struct tide_err ignored;
    struct str line;

    fputs(q->approval ? "[y]es or [n]o (an empty line leaves it parked): "
                      : "answer (an empty line leaves it parked): ",
          stderr);
    if (line_reader_next(in, true, &line, &ignored) == LINE_HERE)
        return read_line(q, line, ret);
    fputc('\n', stderr);
    return SAID_NOTHING;
}

bool graph_ask(tide_session *session, struct buf *ret_answer)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)64 << 20), detail = BUF_INIT((size_t)64 << 20);
    struct question q = {.arena = ARENA_INIT};
    enum said said = SAID_NOTHING;
    struct line_reader in;

    line_reader_init(&in, STDIN_FILENO, ANSWER_MAX);
    if (find_question(session, &q)) {
        tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed before the question stood there is no answer to it */
        if (q.args && q.tool[0]) {       /* "allow bash make clean?" is cut to a line; here is room for all of it */
            chat_detail(&detail, q.tool, q.args, STR(""));
            buf_add_str(&out, STR("allow "));
            glyph_clean(&out, str_from(q.tool));
            buf_add_str(&out, STR("?\n"));
            put_lines(&out, "  ", buf_view(&detail));
        } else {
            put_lines(&out, "", str_from(q.text));
        }
        fwrite(out.ptr ? out.ptr : "", 1, out.len, stderr);
        do {
            said = ask_once(&q, &in, ret_answer);
        } while (said == SAID_SOMETHING_ELSE);
    }
    line_reader_done(&in);
    arena_done(&q.arena);
    return said == SAID_IT;
}

/* ---- what is stored nowhere ---- */

#define SECRET_MAX 65536

static void add_text(struct buf *memory, const char *key, struct str value)
{
    if (!memory->len)
        buf_add_str(memory, STR("{}"));
    memory->len--; /* before the closing brace: one more member */
    if (memory->len > 1)
        buf_add_char(memory, ',');
    json_quote(memory, str_from(key));
    buf_add_char(memory, ':');
    json_quote(memory, value);
    buf_add_char(memory, '}');
}

bool graph_may_ask(const struct graph_face *f)
{
    return !f->no_input && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static enum tide_code ask_secret(struct buf *memory, const char *key, const char *node, struct tide_err *err)
{
    struct tide_err ignored;
    struct line_reader in;
    struct str line;
    enum line_got got;

    if (!str_is_utf8(str_from(key), NULL))
        return TIDE_OK;
    line_reader_init(&in, STDIN_FILENO, SECRET_MAX);
    tty_quiet(STDIN_FILENO); /* first: whoever types at once is not shown either */
    fprintf(stderr, "%s of node %s, which is never stored: ", key, node);
    got = line_reader_next(&in, true, &line, &ignored);
    tty_restore();
    fputc('\n', stderr);
    if (got == LINE_HERE && line.len)
        add_text(memory, key, line);
    if (in.buf.ptr)
        explicit_bzero(in.buf.ptr, in.buf.len);
    line_reader_done(&in);
    return got == LINE_STOPPED ? tide_fail(err, TIDE_CANCELLED, "stopped, and nothing was done") : TIDE_OK;
}

enum tide_code graph_ask_missing(const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                 struct tide_err *err)
{
    for (const struct graph_missing *m = list; m && m->key; m++) {
        const struct graph_missing *first = list;

        while (strcmp(first->key, m->key) != 0) /* once for every key, whoever needs it */
            first++;
        if (!m->secret || first != m)
            continue;
        if (ask_secret(memory, m->key, m->node, err))
            return err->code;
        *ret_asked = true;
    }
    return TIDE_OK;
}

void graph_say_unread(void *arg, const char *key, const char *near)
{
    (void)arg;
    say("nobody reads '%.60s'%s%.60s%s", key, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}
