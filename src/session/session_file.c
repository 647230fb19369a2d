/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session in the few members that people look for in a directory of sessions. Pure: the same state gives the
 * same bytes, whether it was folded as events came or loaded, so that a card that is written again does not differ. Times
 * passed are not looked at: a token that nobody has declared expired is active, with the time at which it ends beside it.
 */
#include "session/session_file.h"

#include "base/timefmt.h"
#include "session/load.h"

static void put_text(struct json_out *o, const char *key, struct str text)
{
    json_out_key(o, str_from(key));
    if (text.len)
        json_out_str(o, text);
    else
        json_out_null(o);
}

static void put_time(struct json_out *o, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE] = "";

    if (unix_ms > 0)
        time_format(text, unix_ms);
    put_text(o, key, str_from(text));
}

/* Whatever JSON the session has there. */
static void put_field(struct json_out *o, const char *key, const struct info *info)
{
    const char *raw = map_get(&info->fields, str_from(key));

    json_out_kraw(o, str_from(key), raw ? str_from(raw) : STR("null"));
}

static void put_wait(struct json_out *o, const struct run *r)
{
    json_out_key(o, STR("wait"));
    if (!r->waiting || (r->end != RUN_OPEN && r->end != RUN_INTERRUPTED)) { /* else there is something to answer */
        json_out_null(o);
        return;
    }
    json_out_begin(o, '{');
    put_text(o, "kind", str_from(r->wait_kind));
    json_out_kint(o, STR("since_seq"), r->since_seq);
    put_text(o, "resume_token_id", str_from(r->token_id));
    put_time(o, "deadline_at", r->deadline_ms);
    json_out_end(o, '}');
}

static void put_run(struct json_out *o, const struct run *r)
{
    json_out_key(o, STR("run"));
    if (r->end == RUN_NONE) {
        json_out_null(o);
        return;
    }
    json_out_begin(o, '{');
    put_text(o, "run_id", str_from(r->run_id));
    put_text(o, "boot_id", str_from(r->boot_id));
    put_time(o, "started_at", r->started_ms);
    put_time(o, "ended_at", r->end == RUN_OPEN ? 0 : r->ended_ms);
    put_wait(o, r);
    json_out_end(o, '}');
}

static void put_recovery(struct json_out *o, const struct run *r)
{
    struct str why = STR("");

    if (r->end == RUN_INTERRUPTED)
        why = r->reason ? str_from(r->reason) : STR("interrupted");
    json_out_key(o, STR("recovery"));
    json_out_begin(o, '{');
    put_text(o, "last_boot_seen", str_from(r->boot_id));
    put_text(o, "interruption", why);
    json_out_end(o, '}');
}

/* Indented, and a line. What cannot be read back is left out: better no card than one that is not JSON. */
static void write_for_people(struct buf *out, const struct buf *compact)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    if (compact->failed || json_parse(&a, buf_view(compact), NULL, &v, NULL, NULL))
        return;
    json_write_pretty(out, v);
    buf_add_char(out, '\n');
}

void session_file_write(struct buf *out, const struct state *s, const struct head *h)
{
    AUTO(buf_done) struct buf compact = BUF_INIT(SIZE_MAX / 4);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out o = json_out_to(&compact);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("id"), str_from(s->session));
    put_text(&o, "title", info_text(&a, &s->info, STR("title")));
    put_text(&o, "working_dir", info_text(&a, &s->info, STR("working_dir")));
    put_field(&o, "provider", &s->info);
    put_time(&o, "created_at", h->created_ms);
    put_time(&o, "updated_at", s->ts_ms);
    json_out_kint(&o, STR("last_seq"), s->seq);
    put_run(&o, &s->ledger.run);
    put_recovery(&o, &s->ledger.run);
    json_out_end(&o, '}');
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
    struct json_out o = json_out_to(&compact);
    const struct run *r = &s->ledger.run;

    json_out_begin(&o, '{');
    json_out_key(&o, STR("tokens"));
    json_out_begin(&o, '[');
    if (r->end != RUN_NONE && r->token != TOKEN_NONE) { /* without a run a loaded state does not know of it */
        json_out_begin(&o, '{');
        put_text(&o, "token_id", str_from(r->token_id));
        put_text(&o, "run_id", str_from(r->run_id));
        put_text(&o, "wait_kind", str_from(r->wait_kind));
        put_text(&o, "status", str_from(token_words[r->token]));
        put_time(&o, "expires_at", r->token_expires_ms);
        put_text(&o, "secret_hash", str_from(r->token_hash));
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    write_for_people(out, &compact);
}

void session_file_attach(struct batch *b, const struct store *store, const struct state *s, const struct head *h)
{
    AUTO(buf_done) struct buf card = BUF_INIT(SIZE_MAX / 4);
    AUTO(buf_done) struct buf tokens = BUF_INIT(SIZE_MAX / 4);

    if (!store_can(store, STORE_CARDS))
        return;
    session_file_write(&card, s, h);
    session_file_tokens(&tokens, s);
    batch_set_cards(b, buf_view(&card), buf_view(&tokens));
}

/* A commit without an event, under nobody's lease: it changes nothing else, and comes to nothing if the log has gone on. */
void session_file_renew(struct store *store, const char *id)
{
    AUTO(state_freep) struct state *s = NULL;
    struct tide_err err; /* whoever reads the log is told */
    struct batch *b;
    struct head h;

    if (!store_can(store, STORE_CARDS) || store_head(store, str_from(id), &h, &err) || h.unverified ||
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
    enum tide_code code = store_can(store, STORE_CARDS) ? store_list(store, NULL, renew_entry, store, err) : TIDE_OK;

    return code == TIDE_CORRUPT ? TIDE_OK
                                : code; /* one that cannot be listed has none, and is named by who looks for it */
}

bool session_file_changes(const struct event *ev)
{
    return str_starts(ev->kind, STR("run.")) || str_starts(ev->kind, STR("token.")) ||
           str_eq(ev->kind, STR("session.created")) || str_eq(ev->kind, STR("session.updated"));
}
