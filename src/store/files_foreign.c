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
            tide_fail_session(err, TIDE_CORRUPT, l->id, ": a line of its log cannot be read");
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

/* Under a name that is free, or has it already. */
static enum tide_code keep(struct files_store *s, const char *id, struct str bytes, char name[TIDE_ID_SIZE + 24],
                           struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    for (int n = 1; !code; n++) {
        AUTO(buf_done) struct buf there = BUF_INIT(bytes.len + 1);
        char path[FILES_PATH];

        snprintf(name, TIDE_ID_SIZE + 24, n > 1 ? "%s.original-%d" : "%s.original", id, n);
        files_path(s, path, "sessions", name, "");
        code = files_get(s, path, bytes.len, &there, err);
        if (!code && str_eq(buf_view(&there), bytes))
            return TIDE_OK;
        if (code == TIDE_CORRUPT || code == TIDE_TOO_BIG || code == TIDE_DENIED)
            code = TIDE_OK; /* something else has this name */
    }
    return code == TIDE_NOT_FOUND ? files_put(s, "sessions", name, bytes, true, err) : code;
}

static enum tide_code keep_original(struct files_store *s, struct files_log *l, char name[TIDE_ID_SIZE + 24],
                                    struct tide_err *err)
{
    AUTO(buf_done) struct buf bytes = BUF_INIT(SIZE_MAX / 4);
    struct env_stat st;
    enum tide_code code = s->base.env->ops->fstat(l->file, &st, err);
    char *room = code ? NULL : buf_reserve(&bytes, (size_t)st.size); /* also what is behind its last whole line */

    if (!code)
        code = room ? s->base.env->ops->pread(l->file, room, (size_t)st.size, 0, &bytes.len, err)
                    : tide_fail(err, TIDE_TOO_BIG, "the log of session '%s' is too big", l->id);
    return code ? code : keep(s, l->id, buf_view(&bytes), name, err);
}

enum tide_code foreign_upgrade(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    char name[FILES_PATH], kept[TIDE_ID_SIZE + 24];
    enum tide_code code = chain(s, l, &lines, err);

    code = code ? code : keep_original(s, l, kept, err);
    log_name(name, l->id, false);
    code = code ? code : files_put(s, "sessions", name, buf_view(&lines), true, err);
    if (!code)
        store_notice(&s->base,
                     "session %s was written by another program: its log has digests now, the old one is kept as "
                     "sessions/%s",
                     l->id, kept);
    return code ? tide_wrap(err, "bring the log of session '%s' up to date", l->id) : TIDE_OK;
}

/* ---- snapshots ---- */

static enum tide_code get_snapshot(struct files_store *s, const char *id, struct arena *a, struct buf *text,
                                   struct json **ret, struct tide_err *err)
{
    char path[FILES_PATH];
    enum tide_code code;

    files_path(s, path, "sessions", id, ".json");
    code = files_get(s, path, SNAPSHOT_MAX, text, err);
    if (code)
        return code;
    return json_parse(a, buf_view(text), NULL, ret, NULL, NULL) || (*ret)->type != JSON_OBJECT ? TIDE_NOT_FOUND
                                                                                               : TIDE_OK;
}

static bool is_ours(const struct json *snapshot)
{
    return json_get(snapshot, STR("recovery")) != NULL;
}

int64_t card_last_seq(struct files_store *s, const char *id)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX);
    struct json *v;

    if (get_snapshot(s, id, &a, &text, &v, NULL) || !is_ours(v))
        return 0;
    return json_get_int(v, STR("last_seq"), 0);
}

/* ---- one without a log ---- */

/* The line that such a session begins with: what the snapshot says of it. */
static void first_line(const struct json *v, struct buf *out)
{
    static const char *const names[] = {"title", "working_dir", "agent", "provider"};
    const struct json *created = json_get(v, STR("created_at"));
    struct json_out o = json_out_to(out);

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
}

static bool read_text(struct files_log *l, struct event *ret, struct arena *a)
{
    struct line_mark m;

    return line_read(a, (struct str){l->text, l->text_len}, ret, &m) == LINE_EVENT;
}

enum tide_code foreign_begin(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX), line = BUF_INIT(2 * SNAPSHOT_MAX);
    struct json *v;
    struct event ev;
    enum tide_code code = get_snapshot(s, l->id, &a, &text, &v, err);

    if (code)
        return code;
    if (is_ours(v) && files_is(s, "sessions", l->id, ".tokens.json", ENV_FILE)) /* of one of ours there is always one */
        return fail_log_gone(l->id, err);
    if (!str_eq(json_get_text(&a, v, STR("id")), str_from(l->id)) &&
        !str_eq(json_get_text(&a, v, STR("session_id")), str_from(l->id)))
        return TIDE_NOT_FOUND; /* not any file of JSON is a session */
    first_line(v, &line);
    l->text_len = line.len;
    l->text = buf_take(&line);
    if (!read_text(l, &ev, &a)) {
        free(TAKE(l->text));
        return TIDE_NOT_FOUND;
    }
    l->exists = l->unverified = true;
    l->end = l->looked = (int64_t)l->text_len;
    l->h.first_seq = l->h.last_seq = 1;
    l->h.created_ms = l->h.updated_ms = ev.ts_ms;
    log_note_line(l, 1, 0, ev.kind);
    return TIDE_OK;
}

/* With digests at once; the snapshot will be ours, so that of the other is kept aside. */
static enum tide_code write_begun(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX), line = BUF_INIT(2 * SNAPSHOT_MAX);
    const unsigned char nothing[DIGEST_SIZE] = {0};
    char name[FILES_PATH], path[FILES_PATH], kept[TIDE_ID_SIZE + 24];
    struct event ev = {0};
    enum tide_code code;

    if (!read_text(l, &ev, &a))
        return tide_fail(err, TIDE_CORRUPT, "the snapshot of session '%s' cannot be read", l->id);
    files_path(s, path, "sessions", l->id, ".json");
    code = files_get(s, path, SNAPSHOT_MAX, &text, err);
    code = code ? code : keep(s, l->id, buf_view(&text), kept, err);
    event_digest(ev.digest, &s->base.key, nothing, str_from(l->id), &ev);
    line_write(&line, &ev, &(struct line_mark){.verified = true});
    log_name(name, l->id, false);
    code = code ? code : files_put(s, "sessions", name, buf_view(&line), true, err);
    if (code)
        return tide_wrap(err, "begin the log of session '%s'", l->id);
    store_notice(&s->base,
                 "session %s had a snapshot of another program and no log: it has one now, the snapshot is kept as "
                 "sessions/%s",
                 l->id, kept);
    return TIDE_OK;
}

/*
 * Two processes may find the same snapshot. There is no log yet whose lock would tell them apart, so the snapshot's does; who
 * comes second must see the log of the first, because its own would take that one's place, with all that was appended.
 */
enum tide_code foreign_write(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    struct env_file *snapshot = NULL;
    struct env_stat st;
    enum tide_code code;

    files_path(s, path, "sessions", l->id, ".json");
    code = ops->open(s->base.env, path, ENV_READ, &snapshot, err);
    if (!code) {
        l->busy = true;
        pthread_mutex_unlock(&s->mu);
        code = ops->lock(snapshot, STORE_LOCK_MS, err);
        pthread_mutex_lock(&s->mu);
        l->busy = false;
    }
    log_path(s, path, l->id, false);
    code = code ? code : ops->stat(s->base.env, path, &st, err);
    if (!code && st.kind == ENV_ABSENT)
        code = write_begun(s, l, err);
    if (snapshot)
        ops->close(snapshot);
    if (!code || code == TIDE_NOT_FOUND)
        log_forget(s, l); /* whoever asked looks again */
    return code == TIDE_NOT_FOUND ? TIDE_OK : code;
}
