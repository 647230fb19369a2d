/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that match a regular expression, as file:line:text. Everything is bounded: the lines, their length, what one line
 * may cost (match.h) and, because a costly pattern is costly on every line, how often it may be too costly.
 */
#include "agent/tool_list.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/file_lines.h"
#include "agent/match.h"
#include "agent/tool_text.h"
#include "agent/walk.h"
#include "base/mem.h"
#include "base/utf8.h"

#define MATCHES_USUAL 200
#define MATCHES_MAX 10000
#define LINE_CHARS 400
#define LEAD_BYTES 120 /* shown before a match that is far inside of a long line */
#define HARD_MAX 20
#define STOP_EVERY 4096

struct search {
    const struct tool_work *work;
    struct match *match, *glob; /* glob: NULL for all files */
    bool glob_paths;            /* it is matched with whole paths, not with names */
    struct file_lines lines;
    struct tool_result *ret;
    int64_t max, found;
    size_t room; /* bytes, after which nothing more is shown */
    size_t hard, unread;
    char hard_at[200]; /* the first of them */
    bool more, stopped;
};

static void show_line(struct search *s, struct str path, int64_t number, struct str line, size_t at)
{
    struct buf text = BUF_INIT(3 * FILE_LINE_MAX);
    size_t from = line.len > LINE_CHARS && at > LINE_CHARS / 2 ? at - LEAD_BYTES : 0, keep;

    while (from > 0 && from < line.len && utf8_is_tail(line.ptr[from]))
        from++;
    buf_add(&text, line.ptr + from, line.len - from);
    s->ret->replaced |= text_clean(&text);
    if (text.len && text.ptr[text.len - 1] == '\r')
        text.len--;
    keep = text_head(buf_view(&text), LINE_CHARS);
    buf_add_str(&s->ret->text, path);
    buf_addf(&s->ret->text, ":%lld:%s", (long long)number, from ? "…" : "");
    buf_add(&s->ret->text, text.ptr ? text.ptr : "", keep);
    buf_add_str(&s->ret->text, keep < text.len ? STR("…\n") : STR("\n"));
    buf_done(&text);
}

/* Whether to continue. */
static bool look_at_lines(struct search *s, struct str path, const struct file_lines *l, struct str line)
{
    size_t at = 0;
    enum match_answer answer = match_find(s->match, line, &at);

    if (answer == MATCH_HARD && s->hard++ == 0)
        snprintf(s->hard_at, sizeof(s->hard_at), "%.*s:%lld", (int)(path.len < 150 ? path.len : 150), path.ptr,
                 (long long)l->number);
    if (answer == MATCH_YES && (s->found == s->max || (s->found > 0 && s->ret->text.len >= s->room)))
        s->more = true;
    else if (answer == MATCH_YES) {
        show_line(s, path, l->number, line, at);
        s->found++;
    }
    if (l->number % STOP_EVERY == 0 || answer == MATCH_HARD)
        s->stopped = tool_stopped(s->work);
    return !s->more && !s->stopped && s->hard < HARD_MAX;
}

static bool search_file(struct search *s, int fd, struct str path)
{
    struct file_lines *l = &s->lines;
    struct str line;
    bool on = true;

    file_lines_next_file(l, fd);
    if (!file_lines_binary(l))
        while (on && file_lines_next(l, &line) && !memchr(line.ptr, '\0', line.len))
            on = look_at_lines(s, path, l, line);
    s->unread += l->errnum != 0;
    return on;
}

static enum walk_answer take_file(void *arg, struct str path, int dir, const char *name, bool regular)
{
    struct search *s = arg;
    struct stat st;
    bool on = true;
    int fd;

    if (!regular || (s->glob && match_find(s->glob, s->glob_paths ? path : str_from(name), NULL) != MATCH_YES))
        return WALK_ON;
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        s->unread++;
        return WALK_ON;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) /* it may have become something else */
        on = search_file(s, fd, path);
    close(fd);
    return on ? WALK_ON : WALK_STOP;
}

static void tell_rest(const struct search *s, const struct walk *w)
{
    struct buf *out = &s->ret->text;

    if (s->stopped || w->stopped)
        tool_fail(s->ret, "[stopped before everything was searched]\n");
    else if (s->hard >= HARD_MAX)
        tool_fail(s->ret, "the pattern is too costly (first at %s): make it simpler\n", s->hard_at);
    else if (s->more)
        buf_addf(out, "[the first %lld; there are more: %s]\n", (long long)s->found,
                 s->found == s->max ? "narrow it, or raise max_matches" : "narrow it");
    else if (s->found == 0)
        buf_add_str(out, STR("no matches\n"));
    if (s->hard && s->hard < HARD_MAX)
        buf_addf(out, "[%zu lines were too costly for the pattern and skipped, the first: %s]\n", s->hard, s->hard_at);
    if (w->too_much)
        buf_add_str(out, STR("[not everything was searched: too many files, or nested too deep]\n"));
    if (s->unread + w->unread)
        buf_addf(out, "[%zu files or directories could not be read]\n", s->unread + w->unread);
}

static void search_open_file(struct search *s, int fd, const struct stat *st, struct str path)
{
    bool below = st && S_ISDIR(st->st_mode);
    struct walk walk = {.arg = s, .file = take_file, .stop = s->work->place->stop, .stop_arg = s->work->place->arg};

    walk.hidden = json_get_bool(s->work->args, STR("hidden"), false);
    if (below)
        walk_run(&walk, fd, str_eq(path, STR(".")) ? STR("") : path);
    else
        (void)search_file(s, fd, path);
    tell_rest(s, &walk);
}

static enum tide_code compile_pattern(struct search *s, struct arena *a, struct tide_err *err)
{
    const struct json *args = s->work->args;
    struct str glob = json_get_text(a, args, STR("glob"));
    int flags = json_get_bool(args, STR("ignore_case"), false) ? MATCH_IGNORE_CASE : 0;

    s->max = json_get_int(args, STR("max_matches"), MATCHES_USUAL);
    s->max = s->max > MATCHES_MAX ? MATCHES_MAX : s->max;
    if (match_regex(json_get_text(a, args, STR("pattern")), flags, &s->match, err))
        return err->code;
    s->glob_paths = glob.len && memchr(glob.ptr, '/', glob.len);
    if (str_starts(glob, STR("./")))
        glob = (struct str){glob.ptr + 2, glob.len - 2};
    return glob.len ? match_glob(glob, &s->glob, err) : TIDE_OK;
}

static void run_grep(struct tool_work *w, struct tool_result *ret)
{
    struct arena a = ARENA_INIT;
    struct buf path = BUF_INIT(CONFINED_PATH_MAX + 1);
    struct search s = {.work = w, .ret = ret, .room = tool_room_for_names(w)};
    struct str given = json_get_text(&a, w->args, STR("path"));
    struct confined b = tool_beneath(w);
    struct tide_err err;
    struct stat st;
    int fd = -1;

    if (compile_pattern(&s, &a, &err) || confined_relative(&b, given.len ? given : STR("."), &path, &err) ||
        confined_open(&b, buf_view(&path), CONFINED_FILE | CONFINED_DIR, &fd, &st, &err))
        tool_fail(ret, "%s", err.msg);
    else
        search_open_file(&s, fd, &st, buf_view(&path));
    if (fd >= 0)
        close(fd);
    file_lines_done(&s.lines);
    match_free(s.match);
    match_free(s.glob);
    buf_done(&path);
    arena_done(&a);
}

const struct tool tool_grep = {
    .name = "grep",
    .description = "Search the files of the working directory for a regular expression (PCRE2), line by line. Gives "
                   "file:line:text; binary files are passed over, symbolic links not followed.",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"pattern\":{\"type\":\"string\",\"description\":\"the regular expression\"},"
              "\"path\":{\"type\":\"string\",\"description\":\"file or directory to search\"},"
              "\"glob\":{\"type\":\"string\",\"description\":\"only these files: *.c, or with a slash src/**/*.c\"},"
              "\"ignore_case\":{\"type\":\"boolean\",\"description\":\"capitals do not matter\"},"
              "\"hidden\":{\"type\":\"boolean\",\"description\":\"also names that begin with a dot\"},"
              "\"max_matches\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"200 unless said\"}},"
              "\"required\":[\"pattern\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_PURE,
    .subject = "pattern",
    .permission = TIDE_PERMISSION_ALLOW,
    .run = run_grep,
};
