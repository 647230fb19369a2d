/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records on their way to the one sink of the process. It is one for all stores because much of what is logged has no store at
 * hand, or not yet (opening one, threads that serve several); fields name store and session.
 *
 * - A record that nobody wants costs one relaxed load.
 * - The sink is called with no lock but a shared one, which tide_log_set() alone takes whole: it returns when nobody is in the
 *   old sink any more, so its `arg` may go. What the sink itself makes the library log is dropped.
 * - The text is copied and cleaned of secrets before, under a lock of its own: a sink may open and close stores.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/utf8.h"

#define VALUE_MAX 2048 /* bytes of one message or value; the rest is cut off */

atomic_int log_level = TIDE_LOG_OFF;

static pthread_rwlock_t sink_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static tide_log_fn *sink;
static void *sink_arg;
static _Thread_local bool in_sink;

static pthread_rwlock_t hidden_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static struct secrets **hidden;
static size_t hidden_len;

void tide_log_set(enum tide_log_level level, tide_log_fn *fn, void *arg)
{
    if (in_sink) /* it would wait for itself */
        return;
    pthread_rwlock_wrlock(&sink_lock);
    sink = fn;
    sink_arg = arg;
    atomic_store_explicit(&log_level, fn ? (int)level : TIDE_LOG_OFF, memory_order_relaxed);
    pthread_rwlock_unlock(&sink_lock);
}

const char *tide_log_level_name(enum tide_log_level level)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug"};

    return (unsigned)level < sizeof names / sizeof names[0] ? names[level] : "?";
}

/* ---- secrets ---- */

void log_hide(struct secrets *secrets)
{
    pthread_rwlock_wrlock(&hidden_lock);
    hidden = mem_grow(hidden, (hidden_len + 1) * sizeof(struct secrets *));
    hidden[hidden_len++] = secrets;
    pthread_rwlock_unlock(&hidden_lock);
}

void log_unhide(const struct secrets *secrets)
{
    size_t i = 0;

    pthread_rwlock_wrlock(&hidden_lock);
    while (i < hidden_len && hidden[i] != secrets)
        i++;
    if (i < hidden_len)
        hidden[i] = hidden[--hidden_len];
    if (hidden_len == 0) {
        free(hidden);
        hidden = NULL;
    }
    pthread_rwlock_unlock(&hidden_lock);
}

void log_clean(char *line, size_t size)
{
    pthread_rwlock_rdlock(&hidden_lock);
    for (size_t i = 0; i < hidden_len; i++)
        secrets_clean_line(hidden[i], line, size);
    pthread_rwlock_unlock(&hidden_lock);
}

/* As it may be shown. Under hidden_lock. */
static const char *clean_text(struct arena *a, const char *text)
{
    struct str shown = str_from(text);

    for (size_t i = 0; i < hidden_len; i++) {
        AUTO(buf_done) struct buf without = BUF_INIT(SIZE_MAX / 4);

        if (secrets_clean(hidden[i], shown, &without))
            shown = arena_dup(a, buf_view(&without));
    }
    return arena_dup(a, utf8_clip(shown, VALUE_MAX)).ptr;
}

/* ---- records ---- */

void log_record(enum tide_log_level level, const char *message, const struct log_field *given, size_t len)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_log_field fields[LOG_FIELDS_MAX];
    struct tide_log_record record = {.level = level, .fields = fields};
    int errno_before = errno;

    if (in_sink)
        return;
    pthread_rwlock_rdlock(&hidden_lock);
    record.message = clean_text(&a, message);
    for (const struct log_field *f = given; f < given + len; f++)
        if (f->key)
            fields[record.fields_len++] = (struct tide_log_field){
                f->key, f->text ? clean_text(&a, f->text) : arena_printf(&a, "%" PRId64, f->number), !f->text};
    pthread_rwlock_unlock(&hidden_lock);

    pthread_rwlock_rdlock(&sink_lock);
    in_sink = true;
    if (sink && log_enabled(level)) /* another may have been set since */
        sink(sink_arg, &record);
    in_sink = false;
    pthread_rwlock_unlock(&sink_lock);
    errno = errno_before;
}
