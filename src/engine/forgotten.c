/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding is forgotten when its line, as it would be written now, is on the list. So one that changes comes back by itself,
 * and its old line goes when the list is written next.
 */
#include "engine/forgotten.h"

#include <errno.h>
#include <linux/limits.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/map.h"
#include "engine/replace_file.h"
#include "env/user_key.h"

#define LIST_NAME "doctor-forgotten.jsonl"
#define LIST_MAX ((size_t)64 << 20)

/* ---- names ---- */

static bool fits_name(const struct finding *f, const char *name)
{
    size_t n = strlen(f->where);

    if (strncmp(f->where, name, n) != 0)
        return false;
    return !name[n] || (name[n] == ':' && f->about && strcmp(f->about, name + n + 1) == 0);
}

static bool can_forget(const struct finding *f)
{
    return strcmp(f->severity, "warn") == 0 || (strcmp(f->severity, "fail") == 0 && f->about);
}

size_t forgotten_count(const struct findings *f, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += can_forget(&f->at[i]) && fits_name(&f->at[i], name);
    return n;
}

static enum tide_code refuse_name(const struct findings *f, const char *name, bool forget, struct tide_err *err)
{
    const char *argument = forget ? "forget" : "remember";
    bool fails = false;

    for (size_t i = 0; i < f->n && forget; i++)
        fails |= fits_name(&f->at[i], name) && strcmp(f->at[i].severity, "fail") == 0;
    if (fails)
        tide_fail(err, TIDE_INVALID, "'%.100s' is a failure of the whole store, which cannot be forgotten", name);
    else
        tide_fail(err, TIDE_NOT_FOUND,
                  forget ? "there is no finding named '%.100s'" : "no forgotten finding is named '%.100s'", name);
    tide_about(err, TIDE_SUBJECT_ARGUMENT, argument);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"%s\":false", argument);
}

static enum tide_code check_names(const struct forgotten_change *c, const struct findings *f, struct tide_err *err)
{
    for (size_t i = 0; c->names[i]; i++) {
        bool any = false;

        for (size_t k = 0; k < f->n && !any; k++)
            any = fits_name(&f->at[k], c->names[i]) && (c->forget ? can_forget(&f->at[k]) : f->at[k].forgotten);
        if (!any)
            return refuse_name(f, c->names[i], c->forget, err);
    }
    return TIDE_OK;
}

/* ---- the list ---- */

static void put_line(struct buf *out, const char *store, const struct finding *f)
{
    AUTO(buf_done) struct buf state = BUF_INIT(1 << 20);
    struct json_out o = json_out_to(out);
    char digest[DIGEST_NAME_SIZE];

    buf_addf(&state, "%s\n%s\n%s", f->severity, f->kind ? f->kind->name : "", f->state ? f->state : f->what);
    digest_name(digest, buf_view(&state));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("store"), str_from(store));
    json_out_kstr(&o, STR("check"), str_from(f->where));
    json_out_kstr_opt(&o, STR("about"), str_from(f->about ? f->about : ""));
    json_out_kstr(&o, STR("state"), str_from(digest));
    json_out_end(&o, '}');
}

static char ours, others; /* what a line of the list maps to: whose it is */

static void lines_done(struct map *lines)
{
    map_done(lines, NULL);
}

static enum tide_code read_list(const char *path, const char *store, struct map *ret_lines, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(LIST_MAX);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    int bad = buf_read_file(&text, path);
    struct str rest = buf_view(&text);

    if (bad == ENOENT)
        return TIDE_OK;
    if (bad)
        return tide_fail_file(err, bad, "read what is forgotten:", path);
    for (int64_t line = 1; rest.len; line++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        struct str one = {rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len};
        struct json *v = NULL;

        if (!end || text.failed || json_parse_line(&a, one, &v, NULL) || !json_get(v, STR("store"))) {
            tide_fail(err, TIDE_INVALID, "%.200s is not a list of what is forgotten", path);
            return tide_about(err, TIDE_SUBJECT_FILE, path);
        }
        map_put(ret_lines, one, str_eq(json_get_text(&a, v, STR("store")), str_from(store)) ? &ours : &others);
        rest = (struct str){end + 1, rest.len - one.len - 1};
        arena_reset(&a);
    }
    return TIDE_OK;
}

static void mark_findings(const char *store, const struct map *lines, struct check_report *r)
{
    AUTO(buf_done) struct buf line = BUF_INIT(1 << 20);

    r->ok = true;
    r->forgotten = 0;
    for (size_t i = 0; i < r->found.n; i++) {
        struct finding *f = &r->found.at[i];

        buf_clear(&line);
        put_line(&line, store, f);
        f->forgotten = can_forget(f) && map_get(lines, buf_view(&line));
        r->forgotten += f->forgotten;
        r->ok = r->ok && (f->forgotten || strcmp(f->severity, "fail") != 0);
    }
}

enum tide_code forgotten_mark(const char *store, struct check_report *r, struct tide_err *err)
{
    AUTO(lines_done) struct map lines = {0};
    char path[PATH_MAX];

    if (!user_state_path(LIST_NAME, false, path, sizeof(path)))
        return TIDE_OK;
    if (read_list(path, store, &lines, err))
        return err->code;
    mark_findings(store, &lines, r);
    return TIDE_OK;
}

/* ---- changes ---- */

static void change_lines(const char *store, const struct forgotten_change *c, const struct findings *f,
                         struct map *lines)
{
    AUTO(buf_done) struct buf line = BUF_INIT(1 << 20);

    for (struct map_entry *e = map_next(lines, NULL); e && c->whole; e = map_next(lines, e))
        if (e->value == &ours)
            map_remove(lines, map_key(e));
    for (size_t i = 0; i < f->n; i++) {
        bool forgotten = f->at[i].forgotten;

        for (size_t k = 0; c->names[k] && can_forget(&f->at[i]); k++)
            if (fits_name(&f->at[i], c->names[k]))
                forgotten = c->forget;
        buf_clear(&line);
        put_line(&line, store, &f->at[i]);
        if (forgotten)
            map_put(lines, buf_view(&line), &ours);
        else
            map_remove(lines, buf_view(&line));
    }
}

static enum tide_code write_list(const char *path, int dir, const struct map *lines, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(LIST_MAX);

    for (struct map_entry *e = map_next(lines, NULL); e; e = map_next(lines, e)) {
        buf_add_str(&text, map_key(e));
        buf_add_char(&text, '\n');
    }
    return text.failed ? tide_fail(err, TIDE_TOO_BIG, "%.150s: would have more than %zu bytes", path, text.max)
                       : file_replace(path, dir, buf_view(&text), err);
}

enum tide_code forgotten_change(const char *store, const struct forgotten_change *change, struct check_report *r,
                                struct tide_err *err)
{
    AUTO(lines_done) struct map lines = {0};
    char path[PATH_MAX];
    int dir = -1;
    enum tide_code code;

    if (!user_state_path(LIST_NAME, true, path, sizeof(path)))
        return tide_fail(err, TIDE_DENIED,
                         "there is no state directory to write to ($XDG_STATE_HOME/tidemark, ~/.local/state/tidemark)");
    code = file_lock_dir(path, &dir, err);
    code = code ? code : read_list(path, store, &lines, err);
    if (!code) {
        mark_findings(store, &lines, r); /* again: another process may have changed it */
        code = check_names(change, &r->found, err);
    }
    if (!code) {
        change_lines(store, change, &r->found, &lines);
        code = write_list(path, dir, &lines, err);
    }
    if (!code)
        mark_findings(store, &lines, r);
    if (dir >= 0)
        close(dir);
    return code;
}

void forgotten_hide(struct check_report *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->found.n; i++)
        if (!r->found.at[i].forgotten)
            r->found.at[kept++] = r->found.at[i];
    r->found.n = kept;
}
