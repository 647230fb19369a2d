/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a graph needs and that are stored nowhere, asked for at the terminal; and keys that nobody reads. */
#include <stdio.h>
#include <unistd.h>

#include "cli/graph/graph_view.h"
#include "cli/line_reader.h"
#include "terminal/line_tty.h"

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

static enum tide_code ask_secret(struct buf *memory, const char *key, const char *node, struct tide_err *err)
{
    struct tide_err ignored;
    struct line_reader in;
    struct str line;
    enum line_got got;

    if (!str_is_utf8(str_from(key), NULL))
        return TIDE_OK;
    line_reader_init(&in, STDIN_FILENO, SECRET_MAX);
    tty_quiet(STDIN_FILENO); /* first: the person who types at once is not shown either */
    fprintf(stderr, "%s of node %s, which is never stored: ", key, node);
    got = line_reader_next(&in, true, &line, &ignored);
    tty_restore();
    fputc('\n', stderr);
    if (got == LINE_HERE && line.len)
        add_text(memory, key, line);
    if (in.buf.ptr)
        explicit_bzero(in.buf.ptr, in.buf.len);
    line_reader_done(&in);
    return got == LINE_STOPPED ? tide_fail(err, TIDE_CANCELLED, "stopped; nothing was done") : TIDE_OK;
}

enum tide_code graph_ask_missing(const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                 struct tide_err *err)
{
    for (const struct graph_missing *m = list; m && m->key; m++) {
        const struct graph_missing *first = list;

        while (strcmp(first->key, m->key) != 0) /* once for every key, no matter who needs it */
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
    say("no node reads '%.60s'%s%.60s%s", key, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}
