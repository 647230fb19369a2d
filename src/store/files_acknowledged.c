/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions/<id>.mark: up to which event the log of a session was acknowledged. Two lines, less than a sector:
 *
 *   acknowledged 00000000000000000042 <digest of that event> <boot of the kernel> <check>
 *   now <word>
 *
 * The word has eight letters, six bits each: the last 20 bits of the event's number as it is now, the first 28 of its digest. It is
 * what is written after a commit, in one store to memory or one system call: nobody finds half of it, whenever a process is killed.
 * The line is written again, along with the word, where the word alone cannot say it (a new boot, a million events), and when the
 * session is given back. What the word says is proved by the log: that has an event of this digest there, or it is refused.
 *
 * All of it is made and synced together with the log, then written in its place after every sync of the log, before it
 * is acknowledged, and not synced: a kill leaves it as it is, a power cut may leave an older one, and none is ever
 * ahead of the disk. So:
 *
 *   - a log that ends before its mark, or has another event there, has lost what was acknowledged: it is refused;
 *   - what stands behind a mark of this boot was acknowledged to nobody: it is a write under way, or what was left of one. Who gets
 *     the lock of the log writes it again and syncs it, then it counts; who does not, does not see it;
 *   - behind a mark of an earlier boot there may be more that was acknowledged: all that is whole counts;
 *   - a mark that does not prove itself is refused. One that is missing is taken for what it was when something else says that the
 *     log was given back at its last event (the snapshot beside it, the cache), or when nothing here knows the session: it came
 *     from elsewhere. A clone and a store of an older version get theirs when they are first opened for writing.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/files_store.h"

#define LINE_HEAD ((size_t)13 + 20 + 1 + 2 * DIGEST_SIZE + 1 + 39 + 1)
#define CHECK_BYTES 16
#define LINE_LEN (LINE_HEAD + 2 * CHECK_BYTES + 1)
#define NOW_AT (LINE_LEN + 4) /* a multiple of eight */
#define NOW_LEN ((size_t)8)
#define MARK_LEN (NOW_AT + NOW_LEN + 1)
#define SEQ_BITS ((uint64_t)0xfffff)
#define BEHIND_MAX ((int64_t)SEQ_BITS / 2) /* how far the word may be behind the line: half of its range */
#define DIGEST_BITS 28
#define LOOKS 100 /* at one that cannot be read, a millisecond apart: somebody may be writing it */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

_Static_assert(NOW_AT % NOW_LEN == 0, "the word can be stored at once");

static uint32_t bits_of(const unsigned char digest[DIGEST_SIZE])
{
    return ((uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3]) >>
           (32 - DIGEST_BITS);
}

static void now_text(int64_t seq, const unsigned char digest[DIGEST_SIZE], char out[NOW_LEN])
{
    uint64_t word = ((uint64_t)seq & SEQ_BITS) << DIGEST_BITS | bits_of(digest);

    for (size_t i = NOW_LEN; i-- > 0; word >>= 6)
        out[i] = letters[word & 63];
}

/* `dated`: as version 2 wrote it. No line of ours is one of its own. */
static void line_of(const struct files_store *s, const char *id, int64_t seq, const unsigned char digest[DIGEST_SIZE],
                    const char *boot, bool dated, char out[LINE_LEN])
{
    static const char word[] = "acknowledged ";
    unsigned char check[DIGEST_SIZE];
    struct digest_state d;
    char *at = out + sizeof word - 1;

    /* Often: by hand, as snprintf("%020d %s %-39.39s ") would. */
    memset(out, ' ', LINE_LEN);
    memcpy(out, word, sizeof word - 1);
    for (int i = 19; i >= 0; i--, seq /= 10)
        at[i] = (char)('0' + seq % 10);
    hex_encode(at + 21, digest, DIGEST_SIZE);
    at[21 + 2 * DIGEST_SIZE] = ' ';
    memcpy(at + 22 + 2 * DIGEST_SIZE, boot, strnlen(boot, 39));
    digest_begin(&d, &s->base.key);
    digest_add_str(&d, dated ? STR("tidemark files mark") : STR("tidemark files mark with a word"));
    digest_add_str(&d, str_from(id));
    digest_add_str(&d, (struct str){out, LINE_HEAD});
    digest_end(&d, check);
    hex_encode(out + LINE_HEAD, check, CHECK_BYTES);
    out[LINE_LEN - 1] = '\n';
}

static void text_of(const struct files_store *s, const char *id, int64_t seq, const unsigned char digest[DIGEST_SIZE],
                    char out[MARK_LEN])
{
    line_of(s, id, seq, digest, s->holders.self.kernel_boot, false, out);
    memcpy(out + LINE_LEN, "now ", NOW_AT - LINE_LEN);
    now_text(seq, digest, out + NOW_AT);
    out[MARK_LEN - 1] = '\n';
}

static bool read_line(const struct files_store *s, const char *id, const char line[LINE_LEN], struct files_mark *ret)
{
    char again[LINE_LEN], boot[40];
    const char *at = line + 13 + 20 + 1;
    size_t len = 39;

    if (!str_to_int64((struct str){line + 13, 20}, &ret->line_seq) ||
        !hex_decode(ret->digest, DIGEST_SIZE, (struct str){at, (size_t)2 * DIGEST_SIZE}))
        return false;
    memcpy(boot, at + 2 * DIGEST_SIZE + 1, 39);
    while (len > 0 && boot[len - 1] == ' ')
        len--;
    boot[len] = 0;
    line_of(s, id, ret->line_seq, ret->digest, boot, ret->dated, again);
    ret->here = strcmp(boot, s->holders.self.kernel_boot) == 0;
    return memcmp(line, again, LINE_LEN) == 0;
}

/* The event that it speaks of is that of the line, or one behind it; one before it: they are just being written. */
static bool read_now(const char *at, struct files_mark *ret)
{
    uint64_t word = 0;

    for (size_t i = 0; i < NOW_LEN; i++) {
        const char *letter = at[i] ? strchr(letters, at[i]) : NULL;

        if (!letter)
            return false;
        word = word << 6 | (uint64_t)(letter - letters);
    }
    ret->seq = ret->line_seq + (int64_t)(((word >> DIGEST_BITS) - (uint64_t)ret->line_seq) & SEQ_BITS);
    ret->bits = (uint32_t)(word & ((1u << DIGEST_BITS) - 1));
    return ret->seq == ret->line_seq ? ret->bits == bits_of(ret->digest) : ret->seq - ret->line_seq <= BEHIND_MAX;
}

static void read_mark(const struct files_store *s, const char *id, const char *text, size_t len, struct files_mark *ret)
{
    bool fits;

    *ret = (struct files_mark){.state = MARK_BAD, .dated = len == LINE_LEN};
    fits = (ret->dated || len == MARK_LEN) && read_line(s, id, text, ret);
    if (fits && ret->dated) {
        ret->seq = ret->line_seq;
        ret->bits = bits_of(ret->digest);
    } else if (fits) {
        fits = memcmp(text + LINE_LEN, "now ", NOW_AT - LINE_LEN) == 0 && text[MARK_LEN - 1] == '\n' &&
               read_now(text + NOW_AT, ret);
    }
    ret->state = fits ? MARK_OK : MARK_BAD;
}

static enum tide_code open_mark(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_stat st;
    char path[FILES_PATH];
    enum tide_code code;

    if (l->mark_file && (ops->fstat(l->mark_file, &st, NULL) || !st.links))
        ops->close(TAKE(l->mark_file)); /* another took its place, or none */
    if (l->mark_file)
        return TIDE_OK;
    l->mark_reserved = false;
    files_path(s, path, "sessions", l->id, ".mark");
    code = ops->open(s->base.env, path, s->base.read_only ? ENV_READ : ENV_WRITE, &l->mark_file, err);
    return code;
}

/* Reading need not be at once, where writing is: half of one word and half of the next are not read twice. */
static bool is_steady(struct files_store *s, const struct files_log *l, const char text[MARK_LEN])
{
    char again[NOW_LEN];
    size_t got = 0;

    return l->mark.dated || (!s->base.env->ops->pread(l->mark_file, again, NOW_LEN, NOW_AT, &got, NULL) &&
                             got == NOW_LEN && memcmp(again, text + NOW_AT, NOW_LEN) == 0);
}

/* Who writes a mark has the lock of its log. One who is kept from continuing in the middle of that may be so for long. */
static bool nobody_writes(struct files_store *s, struct files_log *l, bool locked)
{
    const struct env_ops *ops = s->base.env->ops;

    if (locked || !l->file)
        return locked;
    if (ops->lock(l->file, 0, NULL))
        return false;
    ops->unlock(l->file);
    return true;
}

/* What stays the same although nobody was writing when it was looked at again is damage. */
enum tide_code mark_look(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char text[MARK_LEN + 1] = "", before[MARK_LEN + 1];
    enum tide_code code = open_mark(s, l, err);
    bool moves = true; /* somebody may be writing it */
    size_t got = 0;

    l->mark = (struct files_mark){.state = MARK_NONE};
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK;
    for (int i = 0; !code && i < LOOKS && l->mark.state != MARK_OK && moves; i++) {
        bool alone = i > 0 && nobody_writes(s, l, locked);

        memcpy(before, text, sizeof text);
        if (i > 0 && !alone)
            ops->sleep_ms(s->base.env, 1);
        code = ops->pread(l->mark_file, text, sizeof text, 0, &got, err);
        read_mark(s, l->id, text, code ? 0 : got, &l->mark);
        moves = !alone || memcmp(before, text, sizeof text) != 0;
        if (l->mark.state == MARK_OK && !is_steady(s, l, text)) {
            l->mark.state = MARK_BAD;
            moves = true;
        }
    }
    if (l->mark.state == MARK_OK && l->mark.seq > l->acked && !s->accept_loss)
        l->acked = l->mark.seq;
    return code;
}

/* ---- writing ---- */

enum tide_code mark_put(struct files_store *s, struct env_file *file, const char *id, const struct head *h,
                        struct tide_err *err)
{
    char text[MARK_LEN];

    text_of(s, id, h->last_seq, h->digest, text);
    return s->base.env->ops->pwrite(file, text, MARK_LEN, 0, err);
}

static void note_moved(struct files_log *l)
{
    l->mark.seq = l->acked = l->h.last_seq;
    l->mark.bits = bits_of(l->h.digest);
    l->acked_end = l->end;
}

static void note_written(struct files_log *l)
{
    l->mark = (struct files_mark){.state = MARK_OK, .line_seq = l->h.last_seq, .here = true};
    memcpy(l->mark.digest, l->h.digest, DIGEST_SIZE);
    note_moved(l);
}

enum tide_code mark_make(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    char text[MARK_LEN], name[TIDE_ID_SIZE + 8];
    enum tide_code code;

    text_of(s, l->id, l->h.last_seq, l->h.digest, text);
    snprintf(name, sizeof name, "%s.mark", l->id);
    code = files_put(s, "sessions", name, (struct str){text, MARK_LEN}, true, err);
    if (l->mark_file)
        s->base.env->ops->close(TAKE(l->mark_file));
    code = code ? code : open_mark(s, l, err);
    if (code)
        return tide_wrap(err, "mark where the log of session '%s' ends", l->id);
    note_written(l);
    return TIDE_OK;
}

/* A file system that writes elsewhere what is written in place must not run out of room in the middle of it. */
enum tide_code mark_reserve(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    enum tide_code code = l->mark_reserved ? TIDE_OK : s->base.env->ops->allocate(l->mark_file, MARK_LEN, err);

    l->mark_reserved |= !code;
    return code;
}

/* What other machines write to is written by system calls alone. */
static bool now_will_do(const struct files_store *s, const struct files_log *l)
{
    int64_t behind = l->h.last_seq - l->mark.line_seq;

    return l->mark.here && s->holders.local && behind >= 0 && behind <= BEHIND_MAX;
}

void mark_write(struct files_store *s, struct files_log *l, bool rests)
{
    char word[NOW_LEN];
    struct tide_err err;

    if (l->mark.state != MARK_OK || !l->mark_file || mark_reserve(s, l, NULL))
        return; /* an old mark is a right mark */
    if (l->mark.dated) {
        (void)!mark_make(s, l, &err); /* one of an older version may still be writing to that file */
    } else if (rests || !now_will_do(s, l)) {
        if (!mark_put(s, l->mark_file, l->id, &l->h, NULL))
            note_written(l);
    } else {
        now_text(l->h.last_seq, l->h.digest, word);
        if (!s->base.env->ops->put_word(l->mark_file, word, NOW_AT, NULL))
            note_moved(l);
    }
}

static enum tide_code clear_synced(struct files_store *s, void *arg, bool again, struct tide_err *err)
{
    const struct head nothing = {.last_seq = 0};
    const struct files_log *l = arg;
    enum tide_code code = mark_put(s, l->mark_file, l->id, &nothing, err);

    (void)again;
    return code ? code : s->base.env->ops->sync(l->mark_file, err);
}

enum tide_code mark_clear(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    enum tide_code code = open_mark(s, l, err);

    if (code)
        return code == TIDE_NOT_FOUND ? TIDE_OK : code;
    code = mark_reserve(s, l, err);
    return code ? code : word_guard(s, clear_synced, l, err);
}

/* ---- one without a log ---- */

/*
 * The process that makes a session, or deletes it, leaves a mark that says "nothing" when it is cut, or one of which not all is on disk: one
 * that says more had a log.
 */
enum tide_code mark_without_log(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    enum tide_code code = mark_look(s, l, false, err);

    if (l->mark_file)
        s->base.env->ops->close(TAKE(l->mark_file));
    l->acked = 0;
    if (!code && l->mark.state == MARK_NONE && lease_misses_log(s, l->id)) {
        tide_fail(err, TIDE_CORRUPT,
                  "the log of session '%s' is gone, and its mark; live/%s.json shows that a process held it: restore "
                  "sessions/%s.*",
                  l->id, l->id, l->id);
        return tide_hint(err, TIDE_ACTION_DELETE, l->id);
    }
    if (code || !((l->mark.state == MARK_OK && l->mark.seq) || session_file_last_seq(s, l->id) > 0))
        return code;
    return fail_log_gone(l->id, err);
}

/* ---- judging ---- */

bool mark_fits(const struct files_log *l, int64_t first, int64_t last, const unsigned char digest[DIGEST_SIZE])
{
    if (l->mark.state != MARK_OK || !l->mark.seq || l->mark.seq < first || l->mark.seq > last)
        return true; /* it speaks of another */
    return l->mark.seq == last && l->mark.bits == bits_of(digest) &&
           (l->mark.seq > l->mark.line_seq || memcmp(l->mark.digest, digest, DIGEST_SIZE) == 0);
}

/* Whether something else says that it was given back where it ends, or it came from elsewhere. */
static bool is_clean_without(struct files_store *s, const struct files_log *l, const char **ret_why)
{
    int64_t session_file = session_file_last_seq(s, l->id),
            known = session_file > l->head_seq ? session_file : l->head_seq;
    struct files_lease lease;
    struct tide_err err;

    *ret_why = "nothing else proves that it is complete";
    if (s->adopting || l->unverified || l->hidden)
        return true;
    if (lease_read(s, l->id, &lease, &err) || lease.boot[0]) {
        *ret_why = "a process held it";
        return false;
    }
    return known == l->h.last_seq || (!known && !lease.there);
}

enum tide_code mark_lost(struct files_log *l, struct tide_err *err)
{
    tide_fail_session(&l->damage, TIDE_CORRUPT, l->id,
                      "ends at event %" PRId64 "%s, but event %" PRId64 " was acknowledged: restore "
                      "sessions/%s.messages.jsonl",
                      l->h.last_seq, l->torn ? ", after which it is damaged" : "", l->acked, l->id);
    hint_accept_loss(&l->damage);
    return tide_err_copy(err, &l->damage);
}

static enum tide_code judge_end(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const char *why;

    if (l->h.last_seq < l->acked) {
        struct tide_err lost;

        return mark_lost(l, &lost);
    }
    if (l->mark.state == MARK_NONE && !log_is_empty(l) && !is_clean_without(s, l, &why)) {
        tide_fail_session(err, TIDE_CORRUPT, l->id,
                          ": sessions/%s.mark, which records how much of its log was acknowledged, is missing, and "
                          "%s: restore it",
                          l->id, why);
        return hint_accept_loss(err);
    }
    return TIDE_OK;
}

enum tide_code mark_judge(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    if (l->mark.state == MARK_BAD) {
        tide_fail_session(&l->damage, TIDE_CORRUPT, l->id,
                          ": sessions/%s.mark, which records how much of its log was acknowledged, is damaged: "
                          "restore it",
                          l->id);
        hint_accept_loss(&l->damage);
    } else if (judge_end(s, l, &l->damage) == TIDE_OK)
        return TIDE_OK;
    return tide_err_copy(err, &l->damage);
}

/* ---- adopting ---- */

struct adopting {
    struct files_store *s;
    int64_t n;
    struct tide_err *err;
};

static enum tide_code adopt_one(void *arg, const char *id, bool hidden)
{
    struct adopting *a = arg;
    struct files_store *s = a->s;
    struct files_log *l = log_of(s, str_from(id));
    enum tide_code code;

    if (hidden || log_refresh(s, l, false, a->err) || !l->file || l->hidden || l->unverified || log_is_empty(l))
        return TIDE_OK; /* the caller that reads it gets the error */
    if (l->mark.state != MARK_NONE || session_file_last_seq(s, id) == l->h.last_seq)
        return TIDE_OK;
    if (s->base.env->ops->lock(l->file, 0, NULL))
        return TIDE_OK; /* somebody is at work in it, and makes one */
    code = mark_make(s, l, a->err);
    s->base.env->ops->unlock(l->file);
    a->n += !code;
    return code;
}

enum tide_code marks_adopt(struct files_store *s, struct tide_err *err)
{
    struct adopting a = {.s = s, .err = err};
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = files_each_log(s, adopt_one, &a, err);
    if (!code && a.n)
        store_notice(&s->base, "'%s' %s: %" PRId64 " log%s without a mark of what was acknowledged %s accepted as %s",
                     s->dir, s->older ? "is of an older version" : "is a clone, or another program's", a.n,
                     a.n == 1 ? "" : "s", a.n == 1 ? "is" : "are", a.n == 1 ? "it is" : "they are");
    pthread_mutex_unlock(&s->mu);
    return code;
}
