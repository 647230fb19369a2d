/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions in this layout that somebody else wrote: lines without digests, or a snapshot without a log. They are read as they
 * are, as unverified. The first write makes them ours: the log is written anew with a chain of digests, whole, and takes the
 * place of the old one, which is kept aside. What only the snapshot says (title, working directory, provider, when it was made, a
 * run that is open) becomes lines of that log in the same write: ours will take the snapshot's place.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/timefmt.h"
#include "store/files_store.h"

#define SNAPSHOT_MAX ((size_t)16 << 20)

/* ---- what a snapshot says ---- */

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

/* Ours has every time to the millisecond; others with the same members have not. */
static bool is_ours(const struct json *snapshot)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    static const char *const times[] = {"created_at", "updated_at"};
    bool ours = json_get(snapshot, STR("recovery")) != NULL;
    int64_t ms;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const struct json *at = json_get(snapshot, str_from(times[i]));

        ours &= !at || at->type != JSON_STRING || time_parse(json_text(&a, at), &ms);
    }
    return ours;
}

/* Not any file of JSON is a session. */
static bool is_of(struct arena *a, const struct json *snapshot, const char *id)
{
    return str_eq(json_get_text(a, snapshot, STR("id")), str_from(id)) ||
           str_eq(json_get_text(a, snapshot, STR("session_id")), str_from(id));
}

int64_t session_file_last_seq(struct files_store *s, const char *id)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX);
    struct json *v;

    if (get_snapshot(s, id, &a, &text, &v, NULL) || !is_ours(v))
        return 0;
    return json_get_int(v, STR("last_seq"), 0);
}

/* ---- it as lines ---- */

static const struct {
    const char *name;
    enum json_type type;
} descriptions[] = {
    {"title", JSON_STRING}, {"working_dir", JSON_STRING}, {"agent", JSON_STRING}, {"provider", JSON_OBJECT}};

#define DESCRIPTIONS (sizeof descriptions / sizeof descriptions[0])

/* What the log of a session says itself. */
struct told {
    bool description[DESCRIPTIONS], created, run;
    int64_t last_seq;
    unsigned char digest[DIGEST_SIZE]; /* of that event */
};

static void note_told(struct told *t, struct arena *a, const struct event *ev)
{
    struct json *body;
    bool created = str_eq(ev->kind, STR("session.created"));

    t->created |= created;
    t->run |= str_starts(ev->kind, STR("run."));
    if ((!created && !str_eq(ev->kind, STR("session.updated"))) || json_parse(a, ev->body, NULL, &body, NULL, NULL))
        return;
    for (size_t i = 0; i < DESCRIPTIONS; i++)
        t->description[i] |= json_get(body, str_from(descriptions[i].name)) != NULL;
}

/* Begins a line of what the snapshot says; `ts` may be missing. */
static struct json_out begin_line(struct buf *out, int64_t seq, const struct json *ts, const char *kind)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("seq"), seq);
    if (ts && ts->type == JSON_STRING)
        json_out_kraw(&o, STR("ts"), json_source(ts));
    json_out_kstr(&o, STR("kind"), str_from(kind));
    return o;
}

/* The line from there on, if it can be read as one; else it is taken back. */
static bool end_line(struct buf *out, size_t from, struct json_out *o)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_fields m;
    struct event ev;

    json_out_end(o, '}');
    if (out->failed || line_read(&a, (struct str){out->ptr + from, out->len - from}, &ev, &m) != LINE_EVENT) {
        out->len = from;
        return false;
    }
    buf_add_char(out, '\n');
    return true;
}

static void put_member(struct json_out *o, const char *as, const struct json *v, const char *name, enum json_type type)
{
    const struct json *m = json_get(v, str_from(name));

    if (m && m->type == type)
        json_out_kraw(o, str_from(as), json_source(m));
}

/* The first line where there is no log; else what that does not say. */
static bool put_description(struct files_store *s, const struct json *v, const struct told *t, struct buf *out)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char now[TIME_TEXT_SIZE];
    int64_t created;
    const struct json *at = json_get(v, STR("created_at"));
    size_t from = out->len;
    struct json *ts = NULL;
    bool any = !t->last_seq;
    struct json_out o;

    time_format(now, env_now_ms(s->base.env));
    if (t->last_seq && json_parse(&a, str_from(arena_printf(&a, "\"%s\"", now)), NULL, &ts, NULL, NULL))
        return false;
    o = begin_line(out, t->last_seq + 1, t->last_seq ? ts : at, t->last_seq ? "session.updated" : "session.created");
    for (size_t i = 0; i < DESCRIPTIONS; i++) {
        const struct json *m = json_get(v, str_from(descriptions[i].name));

        if (t->description[i] || !m || m->type != descriptions[i].type)
            continue;
        json_out_kraw(&o, str_from(descriptions[i].name), json_source(m));
        any = true;
    }
    if (t->last_seq && !t->created && time_parse_any(json_get_text(&a, v, STR("created_at")), &created)) {
        put_member(&o, "created_at", v, "created_at", JSON_STRING);
        any = true;
    }
    if (!end_line(out, from, &o))
        return false;
    out->len = any ? out->len : from;
    return any;
}

/* A run that the snapshot knows to be open, and the log knows nothing of: recovery ends it. */
static void put_run(const struct json *v, int64_t seq, struct buf *out)
{
    const struct json *run = json_get(v, STR("run")), *ended = json_get(run, STR("ended_at")),
                      *wait = json_get(run, STR("wait"));
    size_t from = out->len;
    struct json_out o;

    if (!run || run->type != JSON_OBJECT || (ended && ended->type != JSON_NULL) || !json_get(run, STR("run_id")))
        return;
    o = begin_line(out, seq, json_get(run, STR("started_at")), "run.started");
    put_member(&o, "run_id", run, "run_id", JSON_STRING);
    put_member(&o, "boot_id", run, "boot_id", JSON_STRING);
    if (!end_line(out, from, &o) || !wait || wait->type != JSON_OBJECT)
        return;
    from = out->len;
    o = begin_line(out, seq + 1, json_get(v, STR("updated_at")), "run.waiting");
    put_member(&o, "run_id", run, "run_id", JSON_STRING);
    put_member(&o, "wait_kind", wait, "kind", JSON_STRING);
    put_member(&o, "resume_token_id", wait, "resume_token_id", JSON_STRING);
    put_member(&o, "deadline_at", wait, "deadline_at", JSON_STRING);
    (void)end_line(out, from, &o);
}

/* False: the session is not known. */
static bool put_snapshot(struct files_store *s, const struct json *v, const struct told *t, struct buf *out)
{
    bool described = put_description(s, v, t, out);

    if (!described && !t->last_seq)
        return false;
    if (!t->run)
        put_run(v, t->last_seq + 1 + described, out);
    return true;
}

/* ---- a log without digests ---- */

/* Every line of its own: what was written at once nobody knows. Continues from *t. */
static enum tide_code chain_lines(struct files_store *s, const char *id, struct line_walk *w, struct told *t,
                                  struct buf *out, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct line_fields plain = {.verified = true};
    unsigned char before[DIGEST_SIZE];
    struct line_fields m;
    struct event ev;
    struct str line;

    while (walk_next(w, &line, err)) {
        arena_reset(&a);
        if (line_read(&a, line, &ev, &m) != LINE_EVENT) {
            tide_fail_session(err, TIDE_CORRUPT, id, ": a line of its log cannot be read");
            break;
        }
        ev.epoch = 0;
        memcpy(before, t->digest, DIGEST_SIZE);
        event_digest(ev.digest, &s->base.key, before, str_from(id), &ev);
        memcpy(t->digest, ev.digest, DIGEST_SIZE);
        t->last_seq = ev.seq;
        note_told(t, &a, &ev);
        line_write(out, &ev, &plain);
    }
    walk_done(w);
    return err->code;
}

static enum tide_code chain_text(struct files_store *s, const char *id, struct str text, struct told *t,
                                 struct buf *out, struct tide_err *err)
{
    struct line_walk w = {.s = s, .text = text, .limit = (int64_t)text.len};

    return text.len ? chain_lines(s, id, &w, t, out, err) : TIDE_OK;
}

/* Under a name that is free, or has it already. */
static enum tide_code keep_aside(struct files_store *s, const char *id, struct str bytes, char name[TIDE_ID_SIZE + 24],
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
    return code ? code : keep_aside(s, l->id, buf_view(&bytes), name, err);
}

/* What the snapshot says besides the log, as lines, and the snapshot itself: empty where there is nothing to write. */
static enum tide_code read_rest(struct files_store *s, const char *id, const struct told *t, struct buf *ret_snapshot,
                                struct buf *ret_lines, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;
    enum tide_code code = get_snapshot(s, id, &a, ret_snapshot, &v, err);

    if (code == TIDE_NOT_FOUND || code == TIDE_TOO_BIG || code == TIDE_DENIED || (!code && !is_of(&a, v, id))) {
        buf_clear(ret_snapshot);
        return TIDE_OK;
    }
    if (!code)
        put_snapshot(s, v, t, ret_lines);
    return code;
}

/* Behind the log; it is kept as well. */
static enum tide_code add_snapshot(struct files_store *s, struct files_log *l, struct told *t, struct buf *out,
                                   struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX), more = BUF_INIT(2 * SNAPSHOT_MAX);
    char kept[TIDE_ID_SIZE + 24];
    enum tide_code code = read_rest(s, l->id, t, &text, &more, err);

    if (code || !text.len)
        return code;
    code = chain_text(s, l->id, buf_view(&more), t, out, err);
    return code ? code : keep_aside(s, l->id, buf_view(&text), kept, err);
}

enum tide_code foreign_upgrade(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    struct line_walk w = {.s = s, .file = l->file, .limit = l->end};
    struct told t = {0};
    char name[FILES_PATH], kept[TIDE_ID_SIZE + 24];
    enum tide_code code = chain_lines(s, l->id, &w, &t, &lines, err);

    code = code ? code : keep_original(s, l, kept, err);
    code = code ? code : add_snapshot(s, l, &t, &lines, err);
    log_name(name, l->id, false);
    code = code ? code : files_put(s, "sessions", name, buf_view(&lines), true, err);
    if (!code)
        store_notice(&s->base,
                     "session %s was written by another program: its log has digests now, the old one is kept as "
                     "sessions/%s",
                     l->id, kept);
    return code ? tide_wrap(err, "upgrade the log of session '%s'", l->id) : TIDE_OK;
}

/* As lines. With s->mu. Of a snapshot alone all that it says is the log. */
static enum tide_code rest_lines(struct files_store *s, struct files_log *l, struct buf *ret_lines,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf chained = BUF_INIT(SIZE_MAX / 4), text = BUF_INIT(SNAPSHOT_MAX);
    struct line_walk w;
    struct told t = {0};
    enum tide_code code = log_refresh(s, l, false, err);

    if (code || !l->exists || !l->unverified || l->text)
        return code;
    w = (struct line_walk){.s = s, .file = l->file, .limit = l->end};
    err->code = TIDE_OK;
    code = chain_lines(s, l->id, &w, &t, &chained, err);
    return code ? code : read_rest(s, l->id, &t, &text, ret_lines, err);
}

enum tide_code files_foreign_rest(struct store *store, const struct head *h, store_event_fn *fn, void *arg,
                                  struct tide_err *err)
{
    struct files_store *s = files_of(store);
    AUTO(buf_done) struct buf lines = BUF_INIT(2 * SNAPSHOT_MAX);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w;
    struct line_fields m;
    struct event ev;
    struct str line;
    enum tide_code code;

    ERR_LOCAL(err);
    pthread_mutex_lock(&s->mu);
    code = rest_lines(s, log_of(s, str_from(h->id)), &lines, err);
    pthread_mutex_unlock(&s->mu);
    if (code)
        return code;
    err->code = TIDE_OK; /* also of what was looked for and is not there */
    w = (struct line_walk){.s = s, .text = buf_view(&lines), .limit = (int64_t)lines.len};
    while (lines.len && walk_next(&w, &line, err) && line_read(&a, line, &ev, &m) == LINE_EVENT && !fn(arg, &ev))
        ;
    walk_done(&w);
    return err->code;
}

/* ---- whether its run is open ---- */

/* As far as the log says, and where that says nothing of runs, the snapshot. With s->mu. */
enum tide_code foreign_has_open_run(struct files_store *s, struct files_log *l, bool *ret, struct tide_err *err)
{
    static const char *const ends[] = {"run.completed", "run.failed", "run.cancelled", "run.interrupted"};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w = {.s = s, .file = l->file, .text = {l->text, l->text_len}, .limit = l->end};
    AUTO(buf_done) struct buf more = BUF_INIT(2 * SNAPSHOT_MAX), text = BUF_INIT(SNAPSHOT_MAX);
    bool open = false, any = l->text != NULL; /* of a snapshot alone all that it says stands in the text */
    struct line_fields m;
    struct event ev;
    struct str line;
    struct json *v;

    if (l->runs_looked == l->end) {
        *ret = l->run_open;
        return TIDE_OK;
    }
    while (walk_next(&w, &line, err)) {
        arena_reset(&a);
        if (line_read(&a, line, &ev, &m) != LINE_EVENT || !str_starts(ev.kind, STR("run.")))
            continue;
        any = open = true;
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            open &= !str_eq(ev.kind, str_from(ends[i]));
    }
    walk_done(&w);
    if (!err->code && !any && !get_snapshot(s, l->id, &a, &text, &v, NULL) && is_of(&a, v, l->id)) {
        put_run(v, 1, &more);
        open = more.len > 0;
    }
    if (err->code)
        return err->code;
    l->runs_looked = l->end;
    *ret = l->run_open = open;
    return TIDE_OK;
}

/* ---- one without a log ---- */

/* Its lines are as known as those of a file. */
static void take_text(struct files_store *s, struct files_log *l, struct buf *text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w = {.s = s, .text = buf_view(text), .limit = (int64_t)text->len};
    struct tide_err err;
    struct line_fields m;
    struct event ev;
    struct str line;

    l->h.first_seq = 1;
    while (walk_next(&w, &line, &err) && line_read(&a, line, &ev, &m) == LINE_EVENT) {
        if (!l->h.last_seq++)
            l->h.created_ms = ev.ts_ms;
        l->h.updated_ms = ev.ts_ms;
        log_note_line(l, l->h.last_seq, w.at, ev.kind);
    }
    walk_done(&w);
    l->exists = l->unverified = true;
    l->end = l->looked = (int64_t)text->len;
    l->text_len = text->len;
    l->text = buf_take(text);
}

enum tide_code foreign_begin(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX), lines = BUF_INIT(2 * SNAPSHOT_MAX);
    struct json *v;
    enum tide_code code = get_snapshot(s, l->id, &a, &text, &v, err);

    if (code)
        return code;
    if (is_ours(v) && files_is(s, "sessions", l->id, ".tokens.json", ENV_FILE)) /* of one of ours there is always one */
        return fail_log_gone(l->id, err);
    if (!is_of(&a, v, l->id) || !put_snapshot(s, v, &(struct told){.created = false}, &lines))
        return TIDE_NOT_FOUND;
    take_text(s, l, &lines);
    return TIDE_OK;
}

/* With digests at once; the snapshot will be ours, so that of the other is kept aside. */
static enum tide_code write_begun(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SNAPSHOT_MAX), lines = BUF_INIT(SIZE_MAX / 4);
    char name[FILES_PATH], path[FILES_PATH], kept[TIDE_ID_SIZE + 24];
    struct told t = {0};
    enum tide_code code = chain_text(s, l->id, (struct str){l->text, l->text_len}, &t, &lines, err);

    files_path(s, path, "sessions", l->id, ".json");
    code = code ? code : files_get(s, path, SNAPSHOT_MAX, &text, err);
    code = code ? code : keep_aside(s, l->id, buf_view(&text), kept, err);
    log_name(name, l->id, false);
    code = code ? code : files_put(s, "sessions", name, buf_view(&lines), true, err);
    if (code)
        return tide_wrap(err, "begin the log of session '%s'", l->id);
    store_notice(&s->base,
                 "session %s had a snapshot of another program and no log: it has one now, the snapshot is kept as "
                 "sessions/%s",
                 l->id, kept);
    return TIDE_OK;
}

/*
 * Two processes may find the same snapshot. There is no log yet whose lock would order them, so the snapshot's does;
 * who comes second must see the log of the first, because its own would take that one's place, with all that was
 * appended.
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
        log_forget(s, l); /* the caller that asked looks again */
    return code == TIDE_NOT_FOUND ? TIDE_OK : code;
}
