/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions in this layout that somebody else wrote: lines without digests, or a snapshot without a log. They are read as they
 * are, as unverified. The first write makes them ours: the log is written anew with a chain of digests, whole, and takes the
 * place of the old one, which is kept aside.
 */
#include <stdio.h>

#include "base/json.h"
#include "store/files_store.h"

#define SNAPSHOT_MAX ((size_t)16 << 20)

/* ---- a log without digests ---- */

/* Every line of its own: what was written at once nobody knows. */
static enum tide_code chain(struct files_store *s, struct files_log *l, struct buf *out, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w = {.s = s, .file = l->file, .limit = l->end};
    unsigned char before[DIGEST_SIZE] = {0};
    const struct line_mark plain = {.verified = true};
    struct line_mark m;
    struct event ev;
    struct str line;

    while (walk_next(&w, &line, err)) {
        arena_reset(&a);
        if (line_read(&a, line, &ev, &m) != LINE_EVENT) {
            tide_fail(err, TIDE_CORRUPT, "session '%s': a line of its log cannot be read", l->id);
            break;
        }
        ev.epoch = 0;
        event_digest(ev.digest, &s->base.key, before, str_from(l->id), &ev);
        memcpy(before, ev.digest, DIGEST_SIZE);
        line_write(out, &ev, &plain);
    }
    walk_done(&w);
    return err->code;
}

static enum tide_code keep_original(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(buf_done) struct buf bytes = BUF_INIT(SIZE_MAX / 4);
    char name[TIDE_ID_SIZE + 16];
    char *room = buf_reserve(&bytes, (size_t)l->end);
    enum tide_code code;

    code = room ? s->base.env->ops->pread(l->file, room, (size_t)l->end, 0, &bytes.len, err)
                : tide_fail(err, TIDE_TOO_BIG, "the log of session '%s' is too big", l->id);
    snprintf(name, sizeof name, "%s.original", l->id);
    return code ? code : files_put(s, "sessions", name, buf_view(&bytes), true, err);
}

enum tide_code foreign_upgrade(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    char name[FILES_PATH];
    enum tide_code code = chain(s, l, &lines, err);

    code = code ? code : keep_original(s, l, err);
    log_name(name, l->id, false);
    code = code ? code : files_put(s, "sessions", name, buf_view(&lines), true, err);
    if (!code)
        files_notice(s,
                     "session %s was written by another program: its log has digests now, the old one is kept as "
                     "sessions/%s.original",
                     l->id, l->id);
    return code ? tide_wrap(err, "bring the log of session '%s' up to date", l->id) : TIDE_OK;
}

/* ---- a snapshot without a log ---- */

/* The line that such a session begins with: what the snapshot says of it. */
static bool first_line(struct arena *a, struct str snapshot, struct buf *out)
{
    static const char *const names[] = {"title", "working_dir", "agent", "provider"};
    struct json_out o = json_out_to(out);
    const struct json *created;
    struct json *v = NULL;

    if (json_parse(a, snapshot, NULL, &v, NULL, NULL) || v->type != JSON_OBJECT || json_get(v, STR("recovery")))
        return false; /* one of ours had a log, which is gone: that is no beginning */
    created = json_get(v, STR("created_at"));
    json_out_begin(&o, '{');
    json_out_kint(&o, STR("seq"), 1);
    if (created && created->type == JSON_STRING)
        json_out_kraw(&o, STR("ts"), json_source(created));
    json_out_kstr(&o, STR("kind"), STR("session.created"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct json *m = json_get(v, str_from(names[i]));

        if (m && m->type == (i == 3 ? JSON_OBJECT : JSON_STRING))
            json_out_kraw(&o, str_from(names[i]), json_source(m));
    }
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
    return true;
}

/* Whoever may not write reads it from here. */
static enum tide_code show(struct files_log *l, struct buf *line)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_mark m;
    struct event ev;

    if (line_read(&a, (struct str){line->ptr, line->len - 1}, &ev, &m) != LINE_EVENT)
        return TIDE_NOT_FOUND;
    l->text_len = line->len;
    l->text = buf_take(line);
    l->exists = l->unverified = true;
    l->end = l->looked = (int64_t)l->text_len;
    l->h.first_seq = l->h.last_seq = l->h.last_pos = 1;
    l->h.created_ms = l->h.updated_ms = ev.ts_ms;
    log_note_line(l, 1, 0, ev.kind);
    return TIDE_OK;
}

enum tide_code foreign_begin(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf snapshot = BUF_INIT(SNAPSHOT_MAX), line = BUF_INIT(2 * SNAPSHOT_MAX);
    char path[FILES_PATH], name[FILES_PATH];
    enum tide_code code;

    files_path(s, path, "sessions", l->id, ".json");
    code = files_get(s, path, SNAPSHOT_MAX, &snapshot, err);
    if (code)
        return code;
    if (!first_line(&a, buf_view(&snapshot), &line))
        return TIDE_NOT_FOUND;
    if (s->base.read_only)
        return show(l, &line);
    log_name(name, l->id, false);
    return files_put(s, "sessions", name, buf_view(&line), true, err);
}
