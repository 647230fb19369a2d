/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of a store: finding by prefix, listing with filters, showing one, deleting. */
#include <inttypes.h>

#include "base/word_search.h"
#include "session/session.h"
#include "session/session_file.h"
#include "session/status.h"
#include "session/usage_json.h"
#include "store/origin.h"

enum tide_code session_take_id(struct str id, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    if (!str_is_id(id))
        return tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-'");
    snprintf(ret_id, TIDE_ID_SIZE, "%.*s", STR_ARG(id));
    return TIDE_OK;
}

enum tide_code session_resolve(struct store *store, struct str prefix, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    char ids[3][TIDE_ID_SIZE];
    size_t n = 0;
    enum tide_code code;

    if (!str_is_id(prefix))
        return tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-'");
    code = store_resolve(store, prefix, ids, 3, &n, err);
    if (code)
        return code;
    if (n > 1 && !str_eq(str_from(ids[0]), prefix)) /* the whole id of one may begin another's */
        return tide_fail(err, TIDE_AMBIGUOUS, "'%.*s' fits %s sessions: %s, %s%s", STR_ARG(prefix),
                         n > 2 ? "more than two" : "two", ids[0], ids[1], n > 2 ? ", …" : "");
    if (n == 0) /* head() makes sure that it is not just the index that is damaged */
        snprintf(ret_id, TIDE_ID_SIZE, "%.*s", STR_ARG(prefix));
    else
        memcpy(ret_id, ids[0], TIDE_ID_SIZE);
    if (n == 0) {
        struct head h;

        return store_head(store, prefix, &h, err);
    }
    return TIDE_OK;
}

enum tide_code tide_session_resolve(tide_store *store, const char *prefix, char ret_id[TIDE_ID_SIZE],
                                    struct tide_err *err)
{
    ERR_LOCAL(err);
    return session_resolve(store_of(store), str_from(prefix), ret_id, err);
}

static const char *text_or_null(struct str s)
{
    return s.len ? s.ptr : NULL;
}

static const char *info_or_null(struct arena *a, const struct state *s, const char *key)
{
    struct str text = info_text(a, &s->info, str_from(key));

    return text.len ? arena_dup(a, text).ptr : NULL;
}

/* What the directory alone knows, and the status. */
static struct tide_session_info info_of(struct arena *a, const struct head *h, const struct status *st)
{
    return (struct tide_session_info){
        .id = h->id,
        .parent_id = text_or_null(str_from(h->parent_id)),
        .parent_seq = h->parent_seq,
        .created_ms = h->created_ms,
        .updated_ms = h->updated_ms,
        .first_seq = h->first_seq,
        .last_seq = h->last_seq,
        .status = st->status,
        .outcome = st->outcome,
        .reason = st->reason,
        .why = st->why,
        .next = actions_publish(a, h->id, st->next, st->next_count),
        .kind = st->kind,
        .graph_status = st->graph_status,
        .task_state = st->task_state,
        .holder = h->held && h->holder_alive ? h->holder : NULL,
        .is_resumable = st->is_resumable,
        .needs_resume = st->needs_resume,
        .trusted = !st->untrusted,
    };
}

static void fill_run(struct tide_session_info *ret, const struct run *r)
{
    int wait_kind;

    ret->run_id = r->run_id;
    ret->boot_id = r->boot_id;
    ret->run_started_ms = r->started_ms;
    ret->run_ended_ms = r->ended_ms;
    ret->error_message = r->error_message;
    ret->failed_at_node = r->failed_at_node;
    ret->degraded_events = r->degraded;
    if (!r->waiting)
        return;
    wait_kind = tide_wait_kind_from(r->wait_kind);
    ret->wait_kind = wait_kind > 0 ? (enum tide_wait_kind)wait_kind : TIDE_WAIT_OTHER;
    ret->wait_word = r->wait_kind;
    ret->wait_name = r->wait_name;
    ret->question = r->question;
    ret->resume_token_id = r->token_id;
    ret->wait_since_seq = r->since_seq;
    ret->wait_since_ms = r->since_ms;
    ret->deadline_ms = r->deadline_ms;
    ret->on_deadline = r->on_deadline ? r->on_deadline : r->deadline_ms ? TIDE_ON_DEADLINE_INTERRUPT : 0;
    ret->default_answer = r->default_answer;
    ret->due_ms = r->due_ms;
}

/* A graph that was cut has failed, in the words of graphs: where, and of what. The same before recovery has seen it and after. */
static void fill_cut(struct arena *a, const struct state *s, const struct status *st, struct tide_session_info *ret)
{
    const char *why = status_reason_sentence(strcmp(st->reason, "owner_gone") == 0 ? "process_restart" : st->reason);

    if (!ret->failed_at_node)
        ret->failed_at_node = position_under_way(&s->content.position);
    if (!ret->error_message)
        ret->error_message = arena_printf(a, "interrupted: %s", why ? why : st->reason);
}

static void fill_info(struct arena *a, const struct head *h, const struct state *s, const struct status *st,
                      const char *resume_from, struct tide_session_info *ret)
{
    const struct run *r = &s->ledger.run;

    *ret = info_of(a, h, st);
    ret->created_ms = session_created_ms(s, h);
    fill_run(ret, r);
    ret->queued_messages = s->ledger.queued;
    ret->usage = usage_of(&s->ledger);
    ret->title = info_or_null(a, s, "title");
    ret->agent = info_or_null(a, s, "agent");
    ret->agent_id = info_or_null(a, s, "agent_id");
    ret->task_id = info_or_null(a, s, "task_id");
    ret->working_dir = info_or_null(a, s, "working_dir");
    ret->provider = map_get(&s->info.fields, STR("provider"));
    ret->resume_from_checkpoint_id =
        r->resume_from_checkpoint_id ? r->resume_from_checkpoint_id : text_or_null(str_from(resume_from));
    if (st->kind == TIDE_KIND_GRAPH && st->status == TIDE_STATUS_INTERRUPTED_STARTUP && !r->by_person)
        fill_cut(a, s, st, ret);
}

/* The status, and whether it may move at all. */
static void derive_status(struct status *st, struct store *store, const struct head *h, const struct state *s,
                          bool owner_alive)
{
    status_of_session(st, store, s, owner_alive);
    if (!origin_is_ours(store, h))
        status_untrusted(st);
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

struct listing {
    struct store *store;
    const struct tide_list_filter *filter;
    tide_session_info_fn *fn;
    void *arg;
    int64_t n;
    enum tide_code code;
    struct tide_err *err;
    struct arena arena;
    struct word_search words; /* of filter.text */
    /* With filter.after: whether it was met. One that was deleted since is not: the page continues with what is older than it was. */
    char after_id[TIDE_ID_SIZE];
    int64_t after_ms;
    bool behind, met;
    int64_t look; /* how many are still looked at; 0: all */
    char *looked; /* where that ended */
};

/* A cursor is "MS.ID": when the session was created, or "cMS.ID": when it changed. It is one of the order that it was made in. */
static bool is_by_change(const struct tide_list_filter *f)
{
    return f->order == TIDE_LIST_BY_CHANGE;
}

static bool read_cursor(struct listing *l)
{
    const char *ms = l->filter->after, *dot = strchr(ms, '.');
    bool changed = *ms == 'c';

    if (!dot || changed != is_by_change(l->filter))
        return false;
    ms += changed;
    snprintf(l->after_id, sizeof l->after_id, "%s", dot + 1);
    return str_is_id(str_from(dot + 1)) && str_to_int64((struct str){ms, (size_t)(dot - ms)}, &l->after_ms);
}

/* Whether it comes before what is asked for. */
static bool is_passed(struct listing *l, const struct head *h)
{
    if (is_by_change(l->filter)) /* it begins at the right one */
        return false;
    if (!l->behind && l->filter->after) {
        l->behind = l->met = strcmp(h->id, l->after_id) == 0;
        return true;
    }
    return l->filter->after && !l->met && h->created_ms > l->after_ms;
}

/* Of one that is damaged nobody knows when it changed: only a list that asks for no time has it. */
static bool in_time(const struct tide_list_filter *f, const struct tide_session_info *info)
{
    return (!f->since_ms || info->updated_ms >= f->since_ms) &&
           (!f->until_ms || (info->updated_ms && info->updated_ms < f->until_ms));
}

static bool has_words(struct listing *l, const struct tide_session_info *info)
{
    const struct str texts[] = {str_from(info->id), str_from(info->title), str_from(info->agent),
                                str_from(info->task_id), str_from(info->why)};

    return word_search_finds(&l->words, texts, sizeof texts / sizeof texts[0]);
}

/* Hands it out. Non-zero: that was the last. */
static int list_one(struct listing *l, const struct head *h, struct tide_session_info *info, const struct status *st)
{
    const struct tide_list_filter *f = l->filter;

    if ((f->status && !status_matches(st, f->status)) ||
        (f->agent && !same(info->agent, f->agent) && !same(info->agent_id, f->agent)) ||
        (f->task_id && !same(info->task_id, f->task_id)) || (f->kind && info->kind != f->kind) || !in_time(f, info) ||
        !has_words(l, info))
        return 0;
    if (is_by_change(f))
        snprintf(info->cursor, sizeof info->cursor, "c%" PRId64 ".%s", h->updated_ms, info->id);
    else
        snprintf(info->cursor, sizeof info->cursor, "%" PRId64 ".%s", h->created_ms, info->id);
    l->n++;
    return l->fn(l->arg, info) != 0 || (l->filter->limit > 0 && l->n >= l->filter->limit);
}

/* The summary that the last writer left, or, when it is behind, the log. */
static enum tide_code entry_state(struct listing *l, const struct store_entry *entry, struct state **ret)
{
    if (entry->damage)
        return tide_err_copy(l->err, entry->damage);
    if (entry->summary.len && !state_decode(entry->summary, ret, NULL)) {
        if (checkpoint_is_known(*ret))
            return TIDE_OK;
        state_free(*ret);
    }
    return state_load(l->store, entry->head, entry->head->last_seq, ret, NULL, l->err);
}

/* Of this one session, not of the store. */
static bool is_damage(enum tide_code code)
{
    return code == TIDE_CORRUPT || code == TIDE_DENIED;
}

/* A session whose log is damaged is listed as such: it must not hide the others, nor be hidden. */
static int list_damaged(struct listing *l, const struct store_entry *entry)
{
    const struct head *h = entry->head;
    struct tide_session_info info;
    struct status st;

    arena_reset(&l->arena);
    status_damaged(&st, l->err->msg);
    info = info_of(&l->arena, h, &st);
    if (entry->damage)
        info.first_seq = info.last_seq = info.updated_ms = 0; /* nobody knows */
    return list_one(l, h, &info, &st);
}

/* Texts stand in a summary as they are, unless something in it is escaped: where one is not, the rest need not be read. */
static bool lacks(struct str summary, const char *text)
{
    return text && summary.len && !memmem(summary.ptr, summary.len, text, strlen(text)) &&
           !memchr(summary.ptr, '\\', summary.len);
}

static int look_at_entry(struct listing *l, const struct store_entry *entry)
{
    AUTO(state_freep) struct state *s = NULL;
    struct tide_session_info info;
    struct status st;
    char resume_from[TIDE_ID_SIZE];

    if (lacks(entry->summary, l->filter->task_id) || lacks(entry->summary, l->filter->agent))
        return 0;
    l->code = entry_state(l, entry, &s);
    if (!l->code)
        l->code = checkpoint_to_resume(l->store, entry->head, s, resume_from, l->err);
    if (is_damage(l->code)) {
        l->code = TIDE_OK;
        return list_damaged(l, entry);
    }
    if (l->code == TIDE_NOT_FOUND) { /* deleted meanwhile */
        l->code = TIDE_OK;
        return 0;
    }
    if (l->code)
        return 1;
    arena_reset(&l->arena);
    derive_status(&st, l->store, entry->head, s, entry->head->holder_alive);
    fill_info(&l->arena, entry->head, s, &st, resume_from, &info);
    return list_one(l, entry->head, &info, &st);
}

static int list_entry(void *arg, const struct store_entry *entry)
{
    struct listing *l = arg;

    if (is_passed(l, entry->head))
        return 0;
    if (look_at_entry(l, entry))
        return 1;
    if (!l->look || --l->look > 0)
        return 0;
    snprintf(l->looked, LIST_CURSOR_SIZE, "%" PRId64 ".%s", entry->head->created_ms, entry->head->id);
    return 1;
}

/* ---- by when they changed ---- */

#define KEEP_BYTES ((size_t)64 << 20) /* of summaries, so that most sessions need not be read once more */

struct kept_entry {
    struct head head;
    struct str summary;      /* empty: it is read again */
    struct tide_err *damage; /* NULL: none */
};

struct sorting {
    struct kept_entry *at;
    size_t n, cap, bytes;
    struct arena arena;
};

static int keep_entry(void *arg, const struct store_entry *entry)
{
    struct sorting *s = arg;
    struct kept_entry *k;

    MEM_ROOM(s->at, s->n, s->cap);
    k = &s->at[s->n++];
    *k = (struct kept_entry){.head = *entry->head};
    if (entry->damage) {
        k->damage = arena_zero(&s->arena, sizeof *k->damage);
        *k->damage = *entry->damage;
        k->head.updated_ms = 0;
    }
    if (s->bytes + entry->summary.len < KEEP_BYTES) {
        k->summary = arena_dup(&s->arena, entry->summary);
        s->bytes += entry->summary.len;
    }
    return 0;
}

/* What is damaged comes last; of the same moment the one that sorts behind, which was made later. */
static int by_change(const void *a, const void *b)
{
    const struct head *x = &((const struct kept_entry *)a)->head, *y = &((const struct kept_entry *)b)->head;

    return x->updated_ms != y->updated_ms   ? (x->updated_ms < y->updated_ms) - (x->updated_ms > y->updated_ms)
           : x->created_ms != y->created_ms ? (x->created_ms < y->created_ms) - (x->created_ms > y->created_ms)
                                            : strcmp(y->id, x->id);
}

/*
 * Where a page begins. If the session of the cursor was changed or deleted since, nobody knows which of that very millisecond came
 * before it: they come again, and none is left out. What has changed since is before it, and not in later pages.
 */
static size_t find_page(const struct listing *l, const struct sorting *s)
{
    size_t first = s->n;

    if (!l->filter->after)
        return 0;
    for (size_t i = s->n; i-- > 0 && s->at[i].head.updated_ms <= l->after_ms;) {
        first = i;
        if (s->at[i].head.updated_ms == l->after_ms && strcmp(s->at[i].head.id, l->after_id) == 0)
            return i + 1;
    }
    return first;
}

static enum tide_code list_by_change(struct listing *l, struct tide_err *err)
{
    struct sorting s = {.arena = ARENA_INIT};
    enum tide_code code = store_list(l->store, NULL, keep_entry, &s, err);

    if (s.n > 1)
        qsort(s.at, s.n, sizeof *s.at, by_change);
    for (size_t i = find_page(l, &s); i < s.n && !code; i++) {
        const struct store_entry entry = {.head = &s.at[i].head, .summary = s.at[i].summary, .damage = s.at[i].damage};

        if (list_entry(l, &entry))
            break;
    }
    free(s.at);
    arena_done(&s.arena);
    return code;
}

enum tide_code session_list_part(tide_store *store, const struct tide_list_filter *filter, int64_t look,
                                 tide_session_info_fn *fn, void *arg, char ret_looked[LIST_CURSOR_SIZE],
                                 struct tide_err *err)
{
    struct tide_list_filter own;
    struct listing l = {.store = store_of(store),
                        .filter = &own,
                        .fn = fn,
                        .arg = arg,
                        .arena = ARENA_INIT,
                        .look = look,
                        .looked = ret_looked,
                        .err = err};
    enum tide_code code;

    ret_looked[0] = '\0';
    if (SIZED_READ(&own, tide_list_filter, filter, err))
        return err->code;
    if (l.filter->status && !status_word_known(l.filter->status)) {
        tide_fail(err, TIDE_INVALID,
                  "'%s' is not a status: use running (active), waiting (paused), idle, completed, failed, cancelled, "
                  "interrupted, interrupted_startup, interrupted_waiting or damaged",
                  l.filter->status);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, "status");
    }
    if (own.after && !read_cursor(&l)) {
        (void)!tide_fail(err, TIDE_INVALID, "'%.100s' is not a cursor of this list", own.after);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, "after");
    }
    word_search_init(&l.words, own.text);
    code = is_by_change(&own) ? list_by_change(&l, err)
                              : store_list_from(l.store, str_from(l.after_id), list_entry, &l, err);
    if (!code && !l.code && own.after && !l.behind && !is_by_change(&own)) {
        l.behind = true;
        code = store_list(l.store, NULL, list_entry, &l, err);
    }
    arena_done(&l.arena);
    word_search_done(&l.words);
    return code ? code : l.code;
}

enum tide_code tide_session_list(tide_store *store, const struct tide_list_filter *filter, tide_session_info_fn *fn,
                                 void *arg, struct tide_err *err)
{
    char looked[LIST_CURSOR_SIZE];

    ERR_LOCAL(err);
    return session_list_part(store, filter, 0, fn, arg, looked, err);
}

/* ---- for callers that look at many ---- */

static int list_live(void *arg, const struct store_entry *entry, int64_t wake_ms)
{
    (void)wake_ms;
    return list_entry(arg, entry);
}

enum tide_code session_list_live(struct store *store, tide_session_info_fn *fn, void *arg, struct tide_err *err)
{
    static const struct tide_list_filter all = {.size = sizeof all};
    struct listing l = {.store = store, .filter = &all, .fn = fn, .arg = arg, .err = err, .arena = ARENA_INIT};
    int64_t next_ms;
    enum tide_code code = store_live(store, INT64_MAX, list_live, &l, &next_ms, err);

    arena_done(&l.arena);
    if (code == TIDE_CORRUPT) /* one that is damaged is in nobody else's way */
        code = TIDE_OK;
    return code ? code : l.code;
}

struct each {
    struct listing listing;
    session_state_fn *fn;
    void *arg;
};

static int each_entry(void *arg, const struct store_entry *entry)
{
    struct each *e = arg;
    AUTO(state_freep) struct state *s = NULL;
    enum tide_code code = entry_state(&e->listing, entry, &s);

    if (code == TIDE_NOT_FOUND)
        return 0; /* deleted meanwhile */
    if (code && !is_damage(code)) {
        e->listing.code = code;
        return 1;
    }
    return e->fn(e->arg, entry->head, s);
}

enum tide_code session_each(struct store *store, session_state_fn *fn, void *arg, struct tide_err *err)
{
    struct each e = {{.store = store, .err = err}, fn, arg};
    enum tide_code code = store_list(store, NULL, each_entry, &e, err);

    return code ? code : e.listing.code;
}

enum tide_code session_derive_status(struct tide_session *s, struct status *ret, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    if (group_owes(&s->owner) || s->stale || s->head.last_seq != s->state->seq)
        code = session_sync(s, err);
    if (!code)
        derive_status(ret, s->store, &s->head, s->state, s->owner.epoch || s->head.holder_alive);
    return code;
}

/* What the state or the head may change is copied. */
enum tide_code tide_session_get_info(tide_session *s, const struct tide_session_info **ret_info, struct tide_err *err)
{
    struct tide_session_info *info;
    struct status st;
    char resume_from[TIDE_ID_SIZE];
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_derive_status(s, &st, err);
    code = code ? code : checkpoint_to_resume(s->store, &s->head, s->state, resume_from, err);
    if (code)
        return code;
    arena_reset(&s->info_texts);
    s->info = info = s->info ? s->info : mem_zero(sizeof *info);
    fill_info(&s->info_texts, &s->head, s->state, &st, resume_from, info);

    const char **const texts[] = {
        &info->reason,          &info->why,           &info->holder,         &info->run_id,
        &info->boot_id,         &info->wait_word,     &info->wait_name,      &info->question,
        &info->resume_token_id, &info->error_message, &info->failed_at_node, &info->resume_from_checkpoint_id,
        &info->provider,        &info->default_answer};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(&s->info_texts, *texts[i]);
    *ret_info = info;
    return TIDE_OK;
}

enum tide_code session_delete_at(struct store *store, const char *id, int64_t seq, struct tide_err *err)
{
    struct batch *b = batch_new(str_from(id), BATCH_DELETE, NULL, 0, STR(""), STR(""));

    b->expect_seq = seq;
    return store_write(store, b, NULL, err);
}

enum tide_code tide_session_delete(tide_store *store, const char *id, struct tide_err *err)
{
    struct store *s = store_of(store);
    struct str whole = str_from(id);

    ERR_LOCAL(err);
    if (!str_is_id(whole))
        return tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-'");
    return store_write(s, batch_new(whole, BATCH_DELETE, NULL, 0, STR(""), STR("")), NULL, err);
}
