/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session in the few members that people look for in a directory of sessions. Pure: the same state gives the
 * same bytes, whether it was folded as events came or loaded, so that a session file that is written again does not differ. Times
 * passed are not looked at: a token that nobody has declared expired is active, with the time at which it ends beside it.
 */
#include "session/session_file.h"

#include "base/shape.h"
#include "session/load.h"

/* ---- the session ---- */

/* What faces show of a session and what its file has alike. */

#define AT(member) SHAPE_AT(struct tide_session_info, member)

static bool is_interrupted(const void *info)
{
    return ((const struct tide_session_info *)info)->outcome == TIDE_OUTCOME_INTERRUPTED;
}

SHAPE(session_times, "", {"created_at", SHAPE_TIME, AT(created_ms), SHAPE_NULLABLE, "when it was made"},
      {"updated_at", SHAPE_TIME, AT(updated_ms), SHAPE_NULLABLE, "when its last event was appended"});

SHAPE(session_run, "", {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_NULLABLE, "its id"},
      {"boot_id", SHAPE_TEXT, AT(boot_id), SHAPE_NULLABLE, "the process that ran it"},
      {"started_at", SHAPE_TIME, AT(run_started_ms), SHAPE_NULLABLE, "when it began"},
      {"ended_at", SHAPE_TIME, AT(run_ended_ms), SHAPE_NULLABLE, "when it ended; null: it has not"});

SHAPE(session_wait, "", {"since_seq", SHAPE_INT, AT(wait_since_seq), 0, "the event at which the wait began"},
      {"resume_token_id", SHAPE_TEXT, AT(resume_token_id), SHAPE_NULLABLE, "the token that answers it"},
      {"deadline_at", SHAPE_TIME, AT(deadline_ms), SHAPE_NULLABLE, "when the wait is over without an answer"});

SHAPE(session_recovery, "",
      {"last_boot_seen", SHAPE_TEXT, AT(boot_id), SHAPE_NULLABLE, "the process that last ran something"},
      {"interruption", SHAPE_TEXT, AT(reason), SHAPE_NULLABLE, "why its latest run was interrupted",
       .has = is_interrupted});
#undef AT

struct session_file {
    struct tide_session_info info;    /* first: the shapes above take either */
    struct str working_dir, provider; /* provider: JSON */
    bool has_run, has_wait;
};

static bool has_wait(const void *file)
{
    return ((const struct session_file *)file)->has_wait;
}

static bool has_run(const void *file)
{
    return ((const struct session_file *)file)->has_run;
}

#define AT(member) SHAPE_AT(struct session_file, member)
#define ALIKE(shape)                                                                                                   \
    {                                                                                                                  \
        "", SHAPE_MEMBERS, AT(info), 0, "", .of = &(shape)                                                             \
    }

static SHAPE(file_wait, "", {"kind", SHAPE_TEXT, AT(info.wait_word), SHAPE_NULLABLE, "what is waited for"},
             ALIKE(shape_session_wait));

static SHAPE(file_run, "", ALIKE(shape_session_run),
             {"wait", SHAPE_OBJECT, .flags = SHAPE_NULLABLE, .help = "what it waits for", .of = &shape_file_wait,
              .has = has_wait});

SHAPE(session_file, "A session as the file beside its log in a file store (sessions/ID.json).",
      {"id", SHAPE_TEXT, AT(info.id), 0, "its id"}, {"title", SHAPE_TEXT, AT(info.title), SHAPE_NULLABLE, "its title"},
      {"working_dir", SHAPE_STR, AT(working_dir), SHAPE_NULLABLE, "where its programs and tools work"},
      {"provider", SHAPE_ANY, AT(provider), SHAPE_NULLABLE, "the provider and model of its agent"},
      ALIKE(shape_session_times), {"last_seq", SHAPE_INT, AT(info.last_seq), 0, "its last event"},
      {"run", SHAPE_OBJECT, .flags = SHAPE_NULLABLE, .help = "its latest run", .of = &shape_file_run, .has = has_run},
      {"recovery", SHAPE_OBJECT, .help = "what recovery knows of it", .of = &shape_session_recovery});
#undef ALIKE
#undef AT

/* ---- its tokens ---- */

struct token_file {
    const char *token_id, *run_id, *wait_kind, *status, *secret_hash;
    int64_t expires_ms;
};

struct tokens_file {
    struct token_file *tokens;
    size_t n;
};

#define AT(member) SHAPE_AT(struct token_file, member)

static SHAPE(file_token, "", {"token_id", SHAPE_TEXT, AT(token_id), SHAPE_NULLABLE, "its id"},
             {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_NULLABLE, "the run that waits"},
             {"wait_kind", SHAPE_TEXT, AT(wait_kind), SHAPE_NULLABLE, "what is waited for"},
             {"status", SHAPE_TEXT, AT(status), 0, "what became of it", .words = "active consumed revoked expired"},
             {"expires_at", SHAPE_TIME, AT(expires_ms), SHAPE_NULLABLE, "when it stops working"},
             {"secret_hash", SHAPE_TEXT, AT(secret_hash), SHAPE_NULLABLE, "by which it is known; never the token"});
#undef AT

SHAPE(tokens_file, "The tokens of a session, beside its log in a file store (sessions/ID.tokens.json).",
      {"tokens", SHAPE_ROWS, SHAPE_ROWS_AT(struct tokens_file, tokens, n), 0, "every token there was, oldest first",
       .of = &shape_file_token});

/* ---- writing ---- */

/* Indented, and a line. What cannot be read back is left out: better no session file than one that is not JSON. */
static void write_for_people(struct buf *out, const struct buf *compact)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (compact->failed || json_parse(&a, buf_view(compact), NULL, &v, NULL, NULL))
        return;
    json_write_pretty(out, v);
    buf_add_char(out, '\n');
}

static struct str none_if_empty(struct str s)
{
    return s.len ? s : (struct str){NULL, 0};
}

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static int64_t time_or_none(int64_t unix_ms)
{
    return unix_ms > 0 ? unix_ms : 0;
}

int64_t session_created_ms(const struct state *s, const struct head *h)
{
    int64_t said = h->parent_id[0] ? 0 : info_created_ms(&s->info); /* a fork was made when it was forked */

    return said ? said : h->created_ms;
}

void session_file_write(struct buf *out, const struct state *s, const struct head *h)
{
    AUTO(buf_done) struct buf compact = BUF_INIT(SIZE_MAX / 4);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out o = json_out_to(&compact);
    const struct run *r = &s->ledger.run;
    struct str title = info_text(&a, &s->info, STR("title"));
    const struct session_file file = {
        .info = {.id = s->session,
                 .title = title.len ? arena_dup(&a, title).ptr : NULL,
                 .created_ms = time_or_none(session_created_ms(s, h)),
                 .updated_ms = time_or_none(s->ts_ms),
                 .last_seq = s->seq,
                 .run_id = text_or_null(r->run_id),
                 .boot_id = text_or_null(r->boot_id),
                 .run_started_ms = time_or_none(r->started_ms),
                 .run_ended_ms = r->end == RUN_OPEN ? 0 : time_or_none(r->ended_ms),
                 .wait_word = text_or_null(r->wait_kind),
                 .wait_since_seq = r->since_seq,
                 .resume_token_id = text_or_null(r->token_id),
                 .deadline_ms = time_or_none(r->deadline_ms),
                 .outcome = r->end == RUN_INTERRUPTED ? TIDE_OUTCOME_INTERRUPTED : TIDE_OUTCOME_NONE,
                 .reason = r->reason ? text_or_null(r->reason) : "interrupted"},
        .working_dir = none_if_empty(info_text(&a, &s->info, STR("working_dir"))),
        .provider = str_from(map_get(&s->info.fields, STR("provider"))),
        .has_run = r->end != RUN_NONE,
        .has_wait = r->waiting && (r->end == RUN_OPEN || r->end == RUN_INTERRUPTED), /* there is something to answer */
    };

    shape_put(&o, &shape_session_file, &file);
    write_for_people(out, &compact);
}

static const char *const token_words[] = {
    [TOKEN_ACTIVE] = "active",
    [TOKEN_CONSUMED] = "consumed",
    [TOKEN_REVOKED] = "revoked",
    [TOKEN_EXPIRED] = "expired",
};

void session_file_tokens(struct buf *out, const struct state *s)
{
    AUTO(buf_done) struct buf compact = BUF_INIT(SIZE_MAX / 4);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct map *tokens = &s->ledger.tokens;
    struct json_out o = json_out_to(&compact);
    struct tokens_file file = {arena_zero(&a, (tokens->live + 1) * sizeof *file.tokens), 0};

    for (struct map_entry *e = map_next(tokens, NULL); e; e = map_next(tokens, e)) {
        const struct token_past *t = e->value;

        file.tokens[file.n++] = (struct token_file){.token_id = e->key,
                                                    .run_id = text_or_null(t->run_id),
                                                    .wait_kind = text_or_null(t->wait_kind),
                                                    .status = token_words[t->state],
                                                    .secret_hash = text_or_null(t->hash),
                                                    .expires_ms = time_or_none(t->expires_ms)};
    }
    shape_put(&o, &shape_tokens_file, &file);
    write_for_people(out, &compact);
}

void session_file_attach(struct batch *b, const struct store *store, const struct state *s, const struct head *h)
{
    AUTO(buf_done) struct buf session_file = BUF_INIT(SIZE_MAX / 4);
    AUTO(buf_done) struct buf tokens = BUF_INIT(SIZE_MAX / 4);

    if (!store_can(store, STORE_SESSION_FILES))
        return;
    session_file_write(&session_file, s, h);
    session_file_tokens(&tokens, s);
    batch_set_session_files(b, buf_view(&session_file), buf_view(&tokens));
}

/* A commit without an event, under nobody's lease: it changes nothing else, and comes to nothing if the log has continued. */
void session_file_renew(struct store *store, const char *id)
{
    AUTO(state_freep) struct state *s = NULL;
    struct tide_err err; /* the caller that reads the log gets the error */
    struct batch *b;
    struct head h;

    if (!store_can(store, STORE_SESSION_FILES) || store_head(store, str_from(id), &h, &err) || h.unverified ||
        (h.held && h.holder_alive) || state_load(store, &h, h.last_seq, &s, NULL, &err))
        return;
    b = batch_new(str_from(id), BATCH_INPUT, NULL, 0, STR(""), STR(""));
    b->expect_seq = b->caches_seq = h.last_seq;
    session_file_attach(b, store, s, &h);
    (void)!store_write(store, b, NULL, &err);
}

static int renew_entry(void *arg, const struct store_entry *entry)
{
    session_file_renew(arg, entry->head->id);
    return 0;
}

enum tide_code session_file_renew_all(struct store *store, struct tide_err *err)
{
    enum tide_code code =
        store_can(store, STORE_SESSION_FILES) ? store_list(store, NULL, renew_entry, store, err) : TIDE_OK;

    return code == TIDE_CORRUPT ? TIDE_OK : code; /* one that cannot be listed has none, and its reader reports it */
}

bool session_file_changes(const struct event *ev)
{
    return str_starts(ev->kind, STR("run.")) || str_starts(ev->kind, STR("token.")) ||
           str_eq(ev->kind, STR("session.created")) || str_eq(ev->kind, STR("session.updated"));
}
