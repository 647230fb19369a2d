/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What really happened, and the verdict on it. The ledger stands outside the store, so it can be held against the log: a
 * node that begins when the append that made it complete was on disk has run for nothing; one that must happen once may
 * begin again only when the attempt before said that it failed, or when somebody decided so.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "torture/torture_internal.h"

#define LEDGER_MAX ((size_t)1 << 30)

/* ---- the file ---- */

enum tide_code ledger_add(int fd, const struct buf *line, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);

    buf_add_str(&text, buf_view(line));
    buf_add_char(&text, '\n');
    if (write(fd, text.ptr, text.len) != (ssize_t)text.len)
        return tide_fail_errno(err, errno ? errno : EIO, "write the ledger of what happened");
    return TIDE_OK;
}

static const struct {
    const char *at;
    enum record_kind kind;
} kinds[] = {{"append", RECORD_APPEND},
             {"begin", RECORD_BEGIN},
             {"end", RECORD_END},
             {"retry", RECORD_RETRY},
             {"happened", RECORD_HAPPENED}};

static const char *text_of(struct arena *a, const struct json *v, const char *key)
{
    return arena_dup(a, json_get_text(a, v, str_from(key))).ptr;
}

static void take_line(struct arena *a, struct str line, struct effects_seen *f)
{
    const struct json *output;
    struct json *v = NULL;
    struct effect_seen *at;

    if (json_parse(a, line, NULL, &v, NULL, NULL))
        return;
    MEM_ROOM(f->at, f->n, f->cap);
    at = &f->at[f->n++];
    output = json_get(v, STR("output"));
    *at = (struct effect_seen){.node = text_of(a, v, "node"),
                               .visit = json_get_int(v, STR("visit"), 0),
                               .attempt = json_get_int(v, STR("attempt"), 0),
                               .us = json_get_int(v, STR("us"), 0),
                               .seq = json_get_int(v, STR("seq"), 0),
                               .about = text_of(a, v, "about"),
                               .once = json_get_bool(v, STR("once"), false),
                               .ok = json_get_bool(v, STR("ok"), false),
                               .output = output ? json_source(output) : STR("")};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_eq(json_get_text(a, v, STR("at")), str_from(kinds[i].at)))
            at->kind = kinds[i].kind;
    f->appends += at->kind == RECORD_APPEND;
}

enum tide_code effects_read(struct arena *a, const char *path, struct effects_seen *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(LEDGER_MAX);
    int bad = buf_read_file(&text, path);
    struct str all;
    const char *end;

    *ret = (struct effects_seen){.at = NULL};
    if (bad == ENOENT)
        return TIDE_OK;
    if (bad || text.failed)
        return tide_fail_errno(err, bad ? bad : EFBIG, "read '%s'", path);
    all = arena_dup(a, buf_view(&text));
    while ((end = memchr(all.ptr, '\n', all.len)) != NULL) {
        take_line(a, (struct str){all.ptr, (size_t)(end - all.ptr)}, ret);
        all = (struct str){end + 1, all.len - (size_t)(end + 1 - all.ptr)};
    }
    return TIDE_OK;
}

void effects_done(struct effects_seen *f)
{
    free(f->at);
    *f = (struct effects_seen){.at = NULL};
}

const struct effect_seen *effects_last(const struct effects_seen *f, const char *node)
{
    for (size_t i = f->n; i-- > 0;)
        if ((f->at[i].kind == RECORD_BEGIN || f->at[i].kind == RECORD_END) && strcmp(f->at[i].node, node) == 0)
            return &f->at[i];
    return NULL;
}

const char *point_text(struct arena *a, const struct point *p)
{
    const char *about = p->about && p->about[0] ? p->about : NULL;

    switch (p->kind) {
    case POINT_BEFORE:
    case POINT_AFTER:
        return arena_printf(a, "%s append %" PRId64 "%s%s%s", p->kind == POINT_BEFORE ? "before" : "after", p->append,
                            about ? " (" : "", about ? about : "", about ? ")" : "");
    case POINT_INSIDE:
        if (!p->node)
            return arena_printf(a, "inside the %" PRId64 ". node", p->nth);
        return arena_printf(a, "inside %s%s", p->node,
                            p->visit > 1 || p->attempt
                                ? arena_printf(a, ", visit %" PRId64 ", attempt %" PRId64, p->visit, p->attempt + 1)
                                : "");
    default:
        return "never";
    }
}

/* ---- who ran again ---- */

static const char *key_of(struct arena *a, const char *node, int64_t visit)
{
    return arena_printf(a, "%s\x1f%" PRId64, node, visit);
}

/* node and visit -> seq at which it was complete: int64_t * in the arena */
static void index_completed(struct arena *a, const struct json *list, struct map *ret)
{
    for (const struct json *row = list ? list->first : NULL; row; row = row->next) {
        const struct json *node = row->first, *visit = node ? node->next : NULL, *seq = visit ? visit->next : NULL;
        int64_t *at = arena_alloc(a, sizeof(*at)), v;

        if (seq && json_int(visit, &v) && json_int(seq, at))
            map_put(ret, str_from(key_of(a, arena_dup(a, json_text(a, node)).ptr, v)), at);
    }
}

struct judging {
    struct torture *t;
    struct trial *trial;
    struct arena *a;
    struct map completed;
    struct map last; /* node and visit -> the latest const struct effect_seen * of it */
    int64_t durable; /* the last seq that was on disk, for certain */
};

static void judge_begin(struct judging *j, const struct effect_seen *f, const char *key)
{
    const int64_t *complete = map_get(&j->completed, str_from(key));
    const struct effect_seen *before = map_get(&j->last, str_from(key));

    if (complete && *complete <= j->durable) {
        torture_fault(j->t, j->trial, FAULT_COMPLETE_AGAIN, f->node, NULL, NULL);
        return;
    }
    if (!before || before->kind == RECORD_RETRY ||
        (before->kind == RECORD_END && !before->ok && before->attempt != f->attempt))
        return;
    if (f->once)
        torture_fault(j->t, j->trial, FAULT_ONCE_AGAIN, f->node, NULL, NULL);
    else
        j->trial->ran_again++;
}

void torture_judge(struct torture *t, struct trial *trial, const struct effects_seen *effects_seen)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct judging j = {.t = t, .trial = trial, .a = &a};

    index_completed(&a, trial->completed, &j.completed);
    for (size_t i = 0; i < effects_seen->n; i++) {
        const struct effect_seen *f = &effects_seen->at[i];
        const char *key = key_of(&a, f->node, f->visit);

        if (f->kind == RECORD_APPEND) {
            j.durable = f->seq > j.durable ? f->seq : j.durable;
            continue;
        }
        if (f->kind == RECORD_BEGIN)
            judge_begin(&j, f, key);
        map_put(&j.last, str_from(key), (void *)(uintptr_t)f);
    }
    map_done(&j.completed, NULL);
    map_done(&j.last, NULL);
}

/* ---- what it came to ---- */

/* Branches set it at the same time, and the graph has a rule for that: which of them is first is left to chance. */
static bool is_chance(const struct torture *t, const char *key)
{
    const struct spec_rule *rule = t->spec ? spec_conflict_rule(t->spec, str_from(key)) : NULL;

    return rule && rule->rule != SPEC_CONFLICT_ERROR;
}

static void tell_difference(struct torture *t, const struct trial *trial, bool unsteady, const char *what,
                            struct str want, struct str got)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    if (map_get(&t->unsteady, str_from(what)))
        return;
    if (unsteady || is_chance(t, what))
        map_put(
            &t->unsteady, str_from(what),
            (void *)(uintptr_t)(is_chance(t, what) ? "the order of branches decides" : "differs even without a kill"));
    else
        torture_fault(t, trial, FAULT_DIFFERS, what, want.ptr ? arena_dup(&a, want).ptr : NULL,
                      got.ptr ? arena_dup(&a, got).ptr : NULL);
}

static struct str member(const struct json *object, const struct json *like)
{
    for (const struct json *m = object ? object->first : NULL; m; m = m->next)
        if (str_eq(m->key, like->key))
            return json_source(m);
    return (struct str){NULL, 0};
}

static void compare_memory(struct torture *t, const struct trial *trial, bool unsteady)
{
    const struct json *want = t->base.memory, *got = trial->memory;

    for (const struct json *m = want ? want->first : NULL; m; m = m->next) {
        struct str theirs = member(got, m);

        if (!theirs.ptr || !str_eq(theirs, json_source(m)))
            tell_difference(t, trial, unsteady, arena_dup(&t->arena, json_key_text(&t->arena, m)).ptr, json_source(m),
                            theirs);
    }
    for (const struct json *m = got ? got->first : NULL; m; m = m->next)
        if (!member(want, m).ptr)
            tell_difference(t, trial, unsteady, arena_dup(&t->arena, json_key_text(&t->arena, m)).ptr,
                            (struct str){NULL, 0}, json_source(m));
}

/* How often each node was completed. */
static void count_visits(struct arena *a, const struct json *list, struct map *ret)
{
    for (const struct json *row = list ? list->first : NULL; row; row = row->next) {
        struct str node = row->first ? json_text(a, row->first) : STR("");
        int64_t *n = map_get(ret, node);

        if (!n)
            map_put(ret, node, n = arena_zero(a, sizeof(*n)));
        (*n)++;
    }
}

static void compare_count(struct torture *t, const struct trial *trial, bool unsteady, const char *node, int64_t want,
                          int64_t got)
{
    const char *what = arena_printf(&t->arena, "node %s: times completed", node);
    const char *before = arena_printf(&t->arena, "%" PRId64, want), *now = arena_printf(&t->arena, "%" PRId64, got);

    if (got > want && !unsteady && !trial->told && !map_get(&t->unsteady, str_from(what)))
        torture_fault(t, trial, FAULT_COMPLETE_AGAIN, node, before, now); /* as one more visit */
    else if (want != got)
        tell_difference(t, trial, unsteady, what, str_from(before), str_from(now));
}

static void compare_visits(struct torture *t, const struct trial *trial, bool unsteady)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct map want = {0}, got = {0};
    const int64_t *n;

    count_visits(&a, t->base.completed, &want);
    count_visits(&a, trial->completed, &got);
    for (struct map_entry *e = map_next(&want, NULL); e; e = map_next(&want, e)) {
        n = map_get(&got, map_key(e));
        compare_count(t, trial, unsteady, e->key, *(const int64_t *)e->value, n ? *n : 0);
    }
    for (struct map_entry *e = map_next(&got, NULL); e; e = map_next(&got, e))
        if (!map_get(&want, map_key(e)))
            compare_count(t, trial, unsteady, e->key, 0, *(const int64_t *)e->value);
    map_done(&want, NULL);
    map_done(&got, NULL);
}

void torture_compare(struct torture *t, const struct trial *trial, bool unsteady)
{
    compare_memory(t, trial, unsteady);
    compare_visits(t, trial, unsteady);
}
