/* SPDX-License-Identifier: Apache-2.0 */
/* A working directory with something outside of it, and a call of a tool in one line. */
#ifndef TESTS_AGENT_TOOL_KIT_H
#define TESTS_AGENT_TOOL_KIT_H

#include <fcntl.h>
#include <sys/stat.h>

#include "kit.h"
#include "agent/tool.h"

struct world {
    char top[256], cwd[300]; /* top/work is the working directory; top/secret is not in it */
    struct tool_place place;
};

UNUSED static void put_file(const char *dir, const char *name, struct str content)
{
    char path[700];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(content.ptr, 1, content.len, f), content.len);
    assert_int_equal(fclose(f), 0);
}

/* The caller's to free. */
UNUSED static char *get_file(const char *dir, const char *name)
{
    struct buf text = BUF_INIT((size_t)1 << 26);
    char path[700], piece[4096];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    if (!f)
        return NULL;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_add(&text, piece, n);
    fclose(f);
    return buf_take(&text);
}

UNUSED static int world_make(void **state)
{
    struct world *w = mem_zero(sizeof *w);

    dir_make(w->top);
    snprintf(w->cwd, sizeof w->cwd, "%s/work", w->top);
    assert_int_equal(mkdir(w->cwd, 0755), 0);
    put_file(w->top, "secret", STR("the secret\n"));
    w->place = (struct tool_place){.cwd = w->cwd, .session_id = "s1", .run_id = "run_1"};
    w->place.dir = open(w->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(w->place.dir >= 0);
    *state = w;
    return 0;
}

UNUSED static int world_remove(void **state)
{
    struct world *w = *state;

    close(w->place.dir);
    dir_remove(w->top);
    free(w);
    return 0;
}

UNUSED static void link_in(const struct world *w, const char *target, const char *name)
{
    assert_int_equal(symlinkat(target, w->place.dir, name), 0);
}

/* ---- a call ---- */

struct call {
    struct arena arena;
    struct tool_work work;
    struct tool_result result;
    enum tide_code code; /* of prepare */
    struct tide_err err;
};

/* Made ready. The arguments are written with ' for ", to be readable. */
UNUSED static void call_prepare(struct call *c, const struct world *w, const char *tool, const char *args)
{
    char *text;
    struct json *json = NULL;

    *c = (struct call){.arena = ARENA_INIT};
    text = (char *)(uintptr_t)arena_dup(&c->arena, str_from(args)).ptr;
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    OK(json_parse(&c->arena, str_from(text), NULL, &json, NULL, &err));
    c->work = (struct tool_work){.tool = tool_find(str_from(tool)), .place = &w->place, .args = json, .key = "key_1"};
    assert_non_null(c->work.tool);
    c->code = tool_prepare(&c->work, &c->err);
}

UNUSED static void call_done(struct call *c)
{
    tool_drop(&c->work);
    tool_result_done(&c->result);
    arena_done(&c->arena);
}

UNUSED static const char *call_run(struct call *c, const struct world *w, const char *tool, const char *args)
{
    call_prepare(c, w, tool, args);
    expect_code(TIDE_OK, c->code, &c->err, args, __FILE__, __LINE__);
    tool_run(&c->work, &c->result);
    assert_true(str_is_utf8(buf_view(&c->result.text), NULL));
    return buf_cstr(&c->result.text);
}

UNUSED static void has(const char *text, const char *words, const char *file, int line)
{
    if (strstr(text, words))
        return;
    print_error("'%s' is not in:\n%.2000s\n", words, text);
    _fail(file, line);
}
#define HAS(text, words) has(text, words, __FILE__, __LINE__)

/* The tool works, and says these words. */
#define WORKS(w, tool, args, words)                                                                                    \
    do {                                                                                                               \
        struct call c_;                                                                                                \
        const char *text_ = call_run(&c_, w, tool, args);                                                              \
        if (c_.result.failed)                                                                                          \
            print_error("%s\n", text_);                                                                                \
        assert_false(c_.result.failed);                                                                                \
        HAS(text_, words);                                                                                             \
        call_done(&c_);                                                                                                \
    } while (0)

/* It refuses, before or while it runs, in one line with these words. */
#define REFUSES(w, tool, args, words)                                                                                  \
    do {                                                                                                               \
        struct call c_;                                                                                                \
        const char *text_ = c_.err.msg;                                                                                \
        call_prepare(&c_, w, tool, args);                                                                              \
        if (!c_.code) {                                                                                                \
            tool_run(&c_.work, &c_.result);                                                                            \
            assert_true(c_.result.failed);                                                                             \
            text_ = buf_cstr(&c_.result.text);                                                                         \
        }                                                                                                              \
        HAS(text_, words);                                                                                             \
        assert_null(strchr(text_, '\n') && strchr(text_, '\n')[1] ? text_ : NULL);                                     \
        call_done(&c_);                                                                                                \
    } while (0)

#endif
