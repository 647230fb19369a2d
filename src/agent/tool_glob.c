/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files by a pattern. Only directories in which something can match are looked into. */
#include "agent/tool_list.h"

#include <unistd.h>

#include "agent/match.h"
#include "agent/tool_text.h"
#include "agent/walk.h"
#include "base/mem.h"

#define NAMES_MAX 1000

struct search {
    struct match *match;
    struct str prefix; /* of the paths that the walk gives, not part of what is matched */
    struct buf *out;
    size_t found, room;
    bool more, hard;
};

static struct str behind(const struct search *s, struct str path)
{
    return (struct str){path.ptr + s->prefix.len, path.len - s->prefix.len};
}

static bool enter_dir(void *arg, struct str path)
{
    struct search *s = arg;

    return match_could(s->match, behind(s, path)) != MATCH_NO;
}

static enum walk_answer take_file(void *arg, struct str path, int dir, const char *name, bool regular)
{
    struct search *s = arg;
    enum match_answer answer = match_find(s->match, behind(s, path), NULL);

    (void)dir;
    (void)name;
    (void)regular;
    s->hard |= answer == MATCH_HARD;
    if (answer != MATCH_YES)
        return WALK_ON;
    if (s->found == NAMES_MAX || (s->found > 0 && s->out->len + path.len >= s->room)) {
        s->more = true;
        return WALK_STOP;
    }
    buf_add_str(s->out, path);
    buf_add_char(s->out, '\n');
    s->found++;
    return WALK_ON;
}

static void tell_rest(const struct search *s, const struct walk *w, struct tool_result *ret)
{
    if (w->stopped)
        tool_fail(ret, "[stopped before everything was searched]\n");
    else if (s->more)
        buf_addf(&ret->text, "[the first %zu; there are more: use a narrower pattern]\n", s->found);
    else if (s->found == 0)
        buf_addf(&ret->text, "no files match%s\n", w->hidden ? "" : " (hidden files were not searched)");
    if (w->too_much)
        buf_add_str(&ret->text, STR("[not everything was searched: too many files, or nested too deep]\n"));
    if (w->unread)
        buf_addf(&ret->text, "[%zu %s could not be read]\n", w->unread, w->unread == 1 ? "directory" : "directories");
    if (s->hard)
        buf_add_str(&ret->text, STR("[the pattern was too costly for some names]\n"));
}

/* Asked for by name: a part of the pattern begins with a dot. */
static bool names_hidden(struct str pattern)
{
    for (size_t i = 0; i + 1 < pattern.len; i++)
        if (pattern.ptr[i] == '.' && (i == 0 || strchr("/{,", pattern.ptr[i - 1])) && pattern.ptr[i + 1] != '.' &&
            pattern.ptr[i + 1] != '/')
            return true;
    return false;
}

static void search_files(const struct tool_work *w, struct str pattern, int dir, struct str path,
                         struct tool_result *ret)
{
    struct buf prefix = BUF_INIT(2 * CONFINED_PATH_MAX);
    struct search s = {.out = &ret->text, .room = tool_room_for_names(w)};
    struct walk walk = {
        .arg = &s, .enter = enter_dir, .file = take_file, .stop = w->place->stop, .stop_arg = w->place->arg};
    struct tide_err err;

    if (match_glob(pattern, &s.match, &err)) {
        tool_fail(ret, "%s", err.msg);
        return;
    }
    if (!str_eq(path, STR("."))) {
        buf_add_str(&prefix, path);
        if (path.ptr[path.len - 1] != '/')
            buf_add_char(&prefix, '/');
    }
    s.prefix = buf_view(&prefix);
    walk.hidden = json_get_bool(w->args, STR("hidden"), false) || names_hidden(pattern);
    walk_run(&walk, dir, s.prefix);
    tell_rest(&s, &walk, ret);
    match_free(s.match);
    buf_done(&prefix);
}

/* A pattern may be given as an absolute path inside, or begin with "./". */
static enum tide_code trim_pattern(const struct confined *b, struct buf *pattern, struct str given,
                                   struct tide_err *err)
{
    enum tide_code code = confined_relative(b, given, pattern, err);

    while (!code && str_starts(buf_view(pattern), STR("./"))) {
        memmove(pattern->ptr, pattern->ptr + 2, pattern->len - 2);
        pattern->len -= 2;
    }
    if (!code && pattern->len == 0)
        buf_add_char(pattern, '.');
    return code;
}

static void run_glob(struct tool_work *w, struct tool_result *ret)
{
    struct arena a = ARENA_INIT;
    struct buf pattern = BUF_INIT(CONFINED_PATH_MAX + 1), path = BUF_INIT(CONFINED_PATH_MAX + 1);
    struct str given = json_get_text(&a, w->args, STR("path"));
    struct confined b = tool_beneath(w);
    struct tide_err err;
    int dir = -1;

    if (trim_pattern(&b, &pattern, json_get_text(&a, w->args, STR("pattern")), &err) ||
        trim_pattern(&b, &path, given.len ? given : STR("."), &err) ||
        confined_open(&b, buf_view(&path), CONFINED_DIR, &dir, NULL, &err))
        tool_fail(ret, "%s", err.msg);
    else
        search_files(w, buf_view(&pattern), dir, buf_view(&path), ret);
    if (dir >= 0)
        close(dir);
    buf_done(&pattern);
    buf_done(&path);
    arena_done(&a);
}

const struct tool tool_glob = {
    .name = "glob",
    .description = "Find files by name in the working directory: *, ?, [a-z], {a,b}, and ** for any directories, as in "
                   "src/**/*.c. Sorted by name, at most 1000; symbolic links are not followed.",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"pattern\":{\"type\":\"string\",\"description\":\"the pattern, relative to path\"},"
              "\"path\":{\"type\":\"string\",\"description\":\"directory to look in\"},"
              "\"hidden\":{\"type\":\"boolean\",\"description\":\"also names that begin with a dot\"}},"
              "\"required\":[\"pattern\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_PURE,
    .subject = "pattern",
    .permission = TIDE_PERMISSION_ALLOW,
    .run = run_glob,
};
