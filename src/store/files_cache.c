/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What opening a long session would cost without them: where the log ends, the index of offsets, states. Each file proves
 * itself by a check under the store's key and is then held against the log; what does not fit is as good as not there.
 * Nothing here is synced: a cut may take it.
 *
 *   cache/<id>.head         check, JSON          where the log ended, the index block that was begun, what lists show
 *   cache/<id>/index        72 bytes a block     of 256 events each
 *   cache/<id>/state-<seq>  check, JSON, state   as of that event
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "store/files_store.h"
#include "store/origin.h"

#define HEAD_MAX ((size_t)64 << 20)
#define STATES_MAX 24 /* kept; the older, the further apart */

static void folder_of(char out[TIDE_ID_SIZE + 16], const char *id)
{
    snprintf(out, TIDE_ID_SIZE + 16, "cache/%s", id);
}

/* ---- proving ---- */

static void check_of(const struct files_store *s, const char *id, struct str bytes, char out[2 * DIGEST_SIZE + 1])
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;

    digest_begin(&d, &s->base.key);
    digest_add_str(&d, STR("tidemark files cache"));
    origin_mix(&d, &s->base);
    digest_add_str(&d, str_from(id));
    digest_add_str(&d, bytes);
    digest_end(&d, digest);
    hex_encode(out, digest, DIGEST_SIZE);
}

/* Every session has a head: it needs no folder of its own for that. */
static void place_of(char folder[TIDE_ID_SIZE + 16], char file[TIDE_ID_SIZE + 40], const char *id, const char *name)
{
    bool head = strcmp(name, "head") == 0;

    if (head)
        snprintf(folder, TIDE_ID_SIZE + 16, "cache");
    else
        folder_of(folder, id);
    snprintf(file, TIDE_ID_SIZE + 40, "%s%s%s", head ? id : "", head ? "." : "", name);
}

/*
 * In its place, where it is written again and again: a file system need not make and free a file each time. Who reads half of it, or
 * finds it after a cut, has no head: that costs reading the log.
 */
static enum tide_code put_head(struct files_store *s, const char *path, struct str bytes)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *file = NULL;
    struct env_stat st;
    enum tide_code code = ops->open(s->base.env, path, ENV_WRITE | ENV_CREATE, &file, NULL);

    if (code)
        return code;
    code = ops->pwrite(file, bytes.ptr, bytes.len, 0, NULL);
    code = code ? code : ops->fstat(file, &st, NULL);
    if (!code && st.size > (int64_t)bytes.len)
        code = ops->truncate(file, (int64_t)bytes.len, NULL);
    ops->close(file);
    return code;
}

static enum tide_code put_proved(struct files_store *s, const char *id, const char *name, const struct buf *bytes)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    char folder[TIDE_ID_SIZE + 16], file[TIDE_ID_SIZE + 40], path[FILES_PATH], check[2 * DIGEST_SIZE + 1];

    place_of(folder, file, id, name);
    check_of(s, id, buf_view(bytes), check);
    buf_addf(&text, "%s\n", check);
    buf_add_str(&text, buf_view(bytes));
    files_path(s, path, folder, file, "");
    if (strcmp(name, "head") == 0)
        return put_head(s, path, buf_view(&text));
    if (!files_put(s, folder, file, buf_view(&text), false, NULL))
        return TIDE_OK;
    files_path(s, path, folder, "", "");
    if (s->base.env->ops->mkdirs(s->base.env, path, NULL))
        return TIDE_IO;
    return files_put(s, folder, file, buf_view(&text), false, NULL);
}

/* What stands behind the check; empty: not there, or not right. */
static struct str get_proved(struct files_store *s, const char *id, const char *name, struct buf *file)
{
    char folder[TIDE_ID_SIZE + 16], name_there[TIDE_ID_SIZE + 40], path[FILES_PATH], check[2 * DIGEST_SIZE + 1];
    struct str bytes;

    place_of(folder, name_there, id, name);
    files_path(s, path, folder, name_there, "");
    if (files_get(s, path, HEAD_MAX, file, NULL) || file->len < sizeof check)
        return STR("");
    bytes = (struct str){file->ptr + sizeof check, file->len - sizeof check};
    check_of(s, id, bytes, check);
    return memcmp(check, file->ptr, sizeof check - 1) == 0 ? bytes : STR("");
}

/* The line at this very offset is this event, with this digest; with an end, it is the last of a unit and ends there. */
static bool fits_log(struct files_store *s, struct files_log *l, int64_t seq, int64_t at, int64_t end,
                     const unsigned char digest[DIGEST_SIZE], struct origin_proof *ret_proof)
{
    struct line_walk w = {.s = s, .file = l->file, .next = at, .limit = end ? end : l->end};
    struct line_fields m;
    struct tide_err err;
    struct str line;
    int64_t got;
    bool fits = walk_next(&w, &line, &err) && w.at == at && !w.unended && line_peek(line, &got, &m) && got == seq &&
                (!end || (w.next == end && !m.more)) && memcmp(m.digest, digest, DIGEST_SIZE) == 0;

    if (fits && ret_proof)
        *ret_proof = m.proof;
    walk_done(&w);
    return fits;
}

/* ---- where the log ends ---- */

static void put_hex(struct json_out *o, const char *key, const unsigned char *bytes, size_t n)
{
    char text[2 * 64 + 1];

    hex_encode(text, bytes, n);
    json_out_kstr(o, str_from(key), str_from(text));
}

/* Nobody need prove it again, as long as the file has this time. */
static bool is_clean(const struct files_log *l)
{
    return l->clean_end == l->end && l->proved_seq >= l->h.last_seq;
}

static void write_head(struct files_log *l, struct str summary, struct buf *out)
{
    const struct files_block *b = l->n_blocks ? &l->blocks[l->n_blocks - 1] : NULL;
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("end"), l->end);
    json_out_kint(&o, STR("last_line"), l->last_line);
    if (l->clean_end == l->end)
        json_out_kint(&o, STR("clean"), (int64_t)l->ino); /* of this very file: a copy may be older */
    if (is_clean(l))
        json_out_kint(&o, STR("mtime"), l->mtime_ns);
    json_out_kint(&o, STR("first_seq"), l->h.first_seq);
    json_out_kint(&o, STR("last_seq"), l->h.last_seq);
    json_out_kint(&o, STR("epoch"), l->line_epoch);
    json_out_kint(&o, STR("created_ms"), l->h.created_ms);
    json_out_kint(&o, STR("updated_ms"), l->h.updated_ms);
    put_hex(&o, "digest", l->h.digest, DIGEST_SIZE);
    put_hex(&o, "before", l->h.first_before, DIGEST_SIZE);
    json_out_kstr(&o, STR("parent"), str_from(l->h.parent_id));
    json_out_kint(&o, STR("parent_seq"), l->h.parent_seq);
    if (b) {
        json_out_kint(&o, STR("block"), l->first_block + (int64_t)l->n_blocks - 1);
        json_out_kint(&o, STR("block_offset"), b->offset);
        put_hex(&o, "block_checkpoint_bits", b->marks, sizeof b->marks);
    }
    json_out_kint(&o, STR("state"), l->state_seq);
    json_out_kstr(&o, STR("summary"), summary);
    json_out_end(&o, '}');
}

/* Blocks that are whole, at their places. */
static void save_index(struct files_store *s, struct files_log *l)
{
    const struct env_ops *ops = s->base.env->ops;
    int64_t base = (l->h.first_seq - 1) / BLOCK_EVENTS, from = l->first_block > l->saved ? l->first_block : l->saved;
    int64_t to = l->first_block + (int64_t)l->n_blocks - 1;
    char folder[TIDE_ID_SIZE + 16], path[FILES_PATH];
    struct env_file *file = NULL;

    folder_of(folder, l->id);
    files_path(s, path, folder, "", "");
    if (to <= from || ops->mkdirs(s->base.env, path, NULL))
        return;
    files_path(s, path, folder, "index", "");
    if (ops->open(s->base.env, path, ENV_WRITE | ENV_CREATE, &file, NULL))
        return;
    if (!ops->pwrite(file, &l->blocks[from - l->first_block], (size_t)(to - from) * sizeof *l->blocks,
                     (from - base) * (int64_t)sizeof *l->blocks, NULL))
        l->saved = to;
    ops->close(file);
}

void cache_save_head(struct files_store *s, struct files_log *l, struct str summary)
{
    AUTO(buf_done) struct buf text = BUF_INIT(HEAD_MAX);

    if (s->base.read_only || l->unverified)
        return;
    write_head(l, summary, &text);
    if (text.failed || put_proved(s, l->id, "head", &text))
        return;
    l->kept_ns = is_clean(l) ? l->mtime_ns : 0;
    save_index(s, l);
}

static void take_block(struct files_log *l, struct arena *a, const struct json *v)
{
    int64_t number = json_get_int(v, STR("block"), -1);
    struct files_block *b;

    if (number < 0)
        return;
    free(l->blocks);
    l->blocks = b = mem_zero(sizeof *b);
    l->n_blocks = l->cap_blocks = 1;
    l->first_block = number;
    b->offset = json_get_int(v, STR("block_offset"), -1);
    if (!hex_decode(b->marks, sizeof b->marks, json_get_text(a, v, STR("block_checkpoint_bits"))) || b->offset < 0)
        l->n_blocks = 0;
}

static struct json *read_head(struct files_store *s, const char *id, struct arena *a, struct buf *file)
{
    struct str text = get_proved(s, id, "head", file);
    struct json *v = NULL;

    return text.len && !json_parse(a, text, NULL, &v, NULL, NULL) && v->type == JSON_OBJECT ? v : NULL;
}

/* The time of a file shows whether anyone but its writers changed it since it was released: a hint, against editors,
 * not enemies. */
bool cache_load_head(struct files_store *s, struct files_log *l, const struct env_stat *st)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf file = BUF_INIT(HEAD_MAX);
    const struct json *v = read_head(s, l->id, &a, &file);
    struct head h = l->h;
    int64_t end, last_line;

    if (!v)
        return false;
    end = json_get_int(v, STR("end"), 0);
    last_line = json_get_int(v, STR("last_line"), 0);
    h.first_seq = json_get_int(v, STR("first_seq"), 0);
    h.last_seq = json_get_int(v, STR("last_seq"), 0);
    h.epoch = json_get_int(v, STR("epoch"), 0);
    h.created_ms = json_get_int(v, STR("created_ms"), 0);
    h.updated_ms = json_get_int(v, STR("updated_ms"), 0);
    h.parent_seq = json_get_int(v, STR("parent_seq"), 0);
    snprintf(h.parent_id, sizeof h.parent_id, "%.*s", STR_ARG(json_get_text(&a, v, STR("parent"))));
    if (!hex_decode(h.digest, DIGEST_SIZE, json_get_text(&a, v, STR("digest"))) ||
        !hex_decode(h.first_before, DIGEST_SIZE, json_get_text(&a, v, STR("before"))))
        return false;
    l->head_seq = h.last_seq;
    if (json_get_int(v, STR("clean"), 0) == (int64_t)l->ino)
        l->clean_end = end;
    if (end <= 0 || !fits_log(s, l, h.last_seq, last_line, end, h.digest, &h.proof))
        return false;
    l->h = h;
    l->end = end;
    l->last_line = last_line;
    l->line_epoch = h.epoch;
    if (l->clean_end == end && st->size == end && json_get_int(v, STR("mtime"), -1) == st->mtime_ns) {
        l->proved_seq = h.last_seq;
        l->kept_ns = st->mtime_ns;
    }
    l->state_seq = json_get_int(v, STR("state"), 0);
    take_block(l, &a, v);
    l->saved = l->first_block;
    return true;
}

bool cache_fits_end(struct files_store *s, struct files_log *l)
{
    return fits_log(s, l, l->h.last_seq, l->last_line, l->end, l->h.digest, NULL);
}

bool cache_is_clean(struct files_store *s, const struct files_log *l, const struct env_stat *st)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf file = BUF_INIT(HEAD_MAX);
    const struct json *v = read_head(s, l->id, &a, &file);

    return v && json_get_int(v, STR("clean"), 0) == (int64_t)st->ino && json_get_int(v, STR("end"), 0) == st->size &&
           json_get_int(v, STR("mtime"), -1) == st->mtime_ns;
}

struct str cache_summary(struct files_store *s, const struct files_log *l, struct arena *a)
{
    AUTO(buf_done) struct buf file = BUF_INIT(HEAD_MAX);
    const struct json *v = read_head(s, l->id, a, &file);

    if (!v || json_get_int(v, STR("end"), 0) != l->end || json_get_int(v, STR("last_seq"), 0) != l->h.last_seq)
        return STR("");
    return arena_dup(a, json_get_text(a, v, STR("summary")));
}

/* ---- states ---- */

struct states {
    int64_t at[256];
    size_t n;
};

static enum tide_code take_state(void *arg, const char *name, enum env_kind kind)
{
    struct states *all = arg;
    int64_t seq;

    if (kind == ENV_FILE && strncmp(name, "state-", 6) == 0 && str_to_int64(str_from(name + 6), &seq) &&
        all->n < sizeof all->at / sizeof all->at[0])
        all->at[all->n++] = seq;
    return TIDE_OK;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void find_states(struct files_store *s, const char *id, struct states *all)
{
    char folder[TIDE_ID_SIZE + 16], path[FILES_PATH];

    all->n = 0;
    folder_of(folder, id);
    files_path(s, path, folder, "", "");
    (void)!s->base.env->ops->list(s->base.env, path, take_state, all, NULL);
    qsort(all->at, all->n, sizeof all->at[0], newest_first);
}

static void drop_state(struct files_store *s, const char *id, int64_t seq)
{
    char folder[TIDE_ID_SIZE + 16], path[FILES_PATH], name[40];

    folder_of(folder, id);
    snprintf(name, sizeof name, "state-%" PRId64, seq);
    files_path(s, path, folder, name, "");
    (void)!s->base.env->ops->unlink(s->base.env, path, NULL);
}

/* The one that is missed least: whose neighbours are closest for its age. */
static void thin_out(struct files_store *s, const char *id)
{
    struct states all;
    size_t least = 0;
    double best = 0;

    find_states(s, id, &all);
    if (all.n <= STATES_MAX)
        return;
    for (size_t i = 4; i + 1 < all.n; i++) {
        double gap = (double)(all.at[i - 1] - all.at[i + 1]) / (double)(all.at[0] - all.at[i] + 1);

        if (!least || gap < best) {
            least = i;
            best = gap;
        }
    }
    drop_state(s, id, all.at[least]);
}

void cache_save_state(struct files_store *s, struct files_log *l, const struct event *at, int64_t line,
                      struct str state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    char name[40];

    if (l->unverified)
        return;
    json_out_begin(&o, '{');
    json_out_kint(&o, STR("line"), line);
    put_hex(&o, "digest", at->digest, DIGEST_SIZE);
    json_out_end(&o, '}');
    buf_add_char(&text, '\n');
    buf_add_str(&text, state);
    snprintf(name, sizeof name, "state-%" PRId64, at->seq);
    if (put_proved(s, l->id, name, &text))
        return;
    l->state_seq = at->seq;
    thin_out(s, l->id);
}

static bool load_state(struct files_store *s, struct files_log *l, int64_t seq, struct buf *ret)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf file = BUF_INIT(HEAD_MAX);
    unsigned char digest[DIGEST_SIZE];
    struct json *v = NULL;
    struct str bytes, head;
    const char *end;
    char name[40];

    snprintf(name, sizeof name, "state-%" PRId64, seq);
    bytes = get_proved(s, l->id, name, &file);
    end = bytes.len ? memchr(bytes.ptr, '\n', bytes.len) : NULL;
    head = (struct str){bytes.ptr, end ? (size_t)(end - bytes.ptr) : 0};
    if (!end || json_parse(&a, head, NULL, &v, NULL, NULL) ||
        !hex_decode(digest, DIGEST_SIZE, json_get_text(&a, v, STR("digest"))) ||
        !fits_log(s, l, seq, json_get_int(v, STR("line"), 0), 0, digest, NULL)) /* else it is of another event */
        return false;
    buf_add(ret, end + 1, bytes.len - head.len - 1);
    return true;
}

enum tide_code cache_state(struct files_store *s, struct files_log *l, int64_t to, struct buf *ret, int64_t *ret_seq,
                           struct tide_err *err)
{
    struct states all;

    (void)err;
    *ret_seq = 0;
    if (l->state_seq == l->h.last_seq && l->state_seq <= to && load_state(s, l, l->state_seq, ret))
        *ret_seq = l->state_seq; /* there can be no newer one */
    if (*ret_seq)
        return TIDE_OK;
    find_states(s, l->id, &all);
    for (size_t i = 0; i < all.n && !*ret_seq; i++)
        if (all.at[i] <= to && all.at[i] <= l->h.last_seq && load_state(s, l, all.at[i], ret))
            *ret_seq = all.at[i];
    return TIDE_OK;
}

/* ---- the index ---- */

static bool block_fits(struct files_store *s, struct files_log *l, int64_t number, const struct files_block *b)
{
    struct line_walk w = {.s = s, .file = l->file, .text = {l->text, l->text_len}, .next = b->offset, .limit = l->end};
    int64_t first = number * BLOCK_EVENTS + 1, seq = 0;
    struct line_fields m;
    struct tide_err err;
    struct str line;
    bool fits;

    first = first < l->h.first_seq ? l->h.first_seq : first;
    fits =
        b->offset >= 0 && b->offset < l->end && walk_next(&w, &line, &err) && line_peek(line, &seq, &m) && seq == first;
    walk_done(&w);
    return fits;
}

static bool load_block(struct files_store *s, struct files_log *l, int64_t number, struct files_block *ret)
{
    const struct env_ops *ops = s->base.env->ops;
    int64_t base = (l->h.first_seq - 1) / BLOCK_EVENTS;
    char folder[TIDE_ID_SIZE + 16], path[FILES_PATH];
    struct env_file *file = NULL;
    size_t got = 0;

    folder_of(folder, l->id);
    files_path(s, path, folder, "index", "");
    if (ops->open(s->base.env, path, ENV_READ, &file, NULL))
        return false;
    if (ops->pread(file, ret, sizeof *ret, (number - base) * (int64_t)sizeof *ret, &got, NULL))
        got = 0;
    ops->close(file);
    return got == sizeof *ret && block_fits(s, l, number, ret);
}

/* All of it, from the log. */
static enum tide_code make_index(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w = {.s = s, .file = l->file, .text = {l->text, l->text_len}, .limit = l->end};
    struct line_fields m;
    struct event ev;
    struct str line;
    int64_t seq;

    l->n_blocks = 0;
    l->saved = 0;
    while (walk_next(&w, &line, err)) {
        struct str kind = line_kind(line);

        arena_reset(&a);
        if (!kind.len || !line_peek(line, &seq, &m)) {
            if (line_read(&a, line, &ev, &m) != LINE_EVENT)
                break;
            kind = ev.kind;
            seq = ev.seq;
        }
        log_note_line(l, seq, w.at, kind);
    }
    walk_done(&w);
    return err->code;
}

enum tide_code log_block(struct files_store *s, struct files_log *l, int64_t number, struct files_block *ret,
                         struct tide_err *err)
{
    int64_t at = number - l->first_block;
    enum tide_code code;

    if (l->n_blocks && at >= 0 && at < (int64_t)l->n_blocks) {
        *ret = l->blocks[at];
        return TIDE_OK;
    }
    if (load_block(s, l, number, ret))
        return TIDE_OK;
    code = make_index(s, l, err);
    at = number - l->first_block;
    if (!code && (at < 0 || at >= (int64_t)l->n_blocks))
        code = tide_fail_session(err, TIDE_CORRUPT, l->id, ": its log ends before event %" PRId64,
                                 number * BLOCK_EVENTS + 1);
    if (!code)
        *ret = l->blocks[at];
    return code;
}

/* ---- away with it ---- */

struct dropping {
    struct files_store *s;
    const char *folder;
};

static enum tide_code drop_one(void *arg, const char *name, enum env_kind kind)
{
    struct dropping *d = arg;
    char path[FILES_PATH];

    files_path(d->s, path, d->folder, name, "");
    if (kind == ENV_FILE)
        (void)!d->s->base.env->ops->unlink(d->s->base.env, path, NULL);
    return TIDE_OK;
}

void cache_drop(struct files_store *s, const char *id)
{
    char folder[TIDE_ID_SIZE + 16], path[FILES_PATH];
    struct dropping d = {s, folder};

    folder_of(folder, id);
    files_path(s, path, folder, "", "");
    (void)!s->base.env->ops->list(s->base.env, path, drop_one, &d, NULL);
    (void)!s->base.env->ops->unlink(s->base.env, path, NULL); /* the folder: a hollow one does no harm */
    files_path(s, path, "cache", id, ".head");
    (void)!s->base.env->ops->unlink(s->base.env, path, NULL);
}
