/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came from elsewhere is data. A session runs only when the proof of origin at the end of its log holds: then this
 * user's Tidemark wrote all of it (store/origin.h). Any other (imported, cloned, edited, written by another program) can be
 * read, forked and cancelled, and nothing of it runs before a person has seen what would, and said so: session.trusted, an
 * event with a proof of its own, behind which the session is this user's like any other.
 *
 * What is shown is made of the events that decide what runs, and the trust names its digest: when anything was appended
 * between looking and trusting, the trust is refused. Whatever was granted elsewhere is void then: a token is revoked in the
 * same append, approvals that nobody used are asked for again (run_replay.c, agent/conversation.c).
 */
#include "session/trust.h"

#include <inttypes.h>

#include "session/session_file.h"
#include "session/token.h"
#include "store/origin.h"

#define SHOWN_MAX ((size_t)64 << 20)

/* ---- whose it is ------------------------------------------------------------------------------------------------------- */

enum tide_code trust_check(struct store *store, const struct head *h, struct tide_err *err)
{
    if (origin_is_ours(store, h))
        return TIDE_OK;
    tide_fail_session(err, TIDE_UNTRUSTED, h->id,
                      "did not begin here, or something other than your Tidemark wrote to it: nothing of it runs "
                      "until you trust it");
    return tide_hint(err, TIDE_ACTION_TRUST, h->id);
}

struct look {
    const struct store *store;
    const struct head *h;
    bool ours;
    int64_t from;
};

static int look_for_proof(void *arg, const struct event *ev)
{
    struct look *l = arg;

    if (ev->seq > l->from && str_eq(ev->kind, STR("session.trusted")))
        return 1; /* what was shown was the session as it stood there, not as it was before */
    l->ours = origin_holds(&ev->proof, &l->store->origin, str_from(l->h->id), ev->seq, ev->digest);
    return l->ours;
}

enum tide_code trust_reaches(struct store *store, const struct head *h, int64_t seq, bool *ret_ours,
                             struct tide_err *err)
{
    struct look l = {store, h, false, seq};
    enum tide_code code = store_read(store, h, seq, 0, look_for_proof, &l, err);

    *ret_ours = l.ours;
    return code == TIDE_CORRUPT ? TIDE_OK : code; /* what is behind the damage proves nothing of what is before it */
}

static enum tide_code try_check(void *session, struct tide_err *err)
{
    struct tide_session *s = session;
    struct head h;
    enum tide_code code = store_head(s->store, str_from(s->head.id), &h, err);

    return code ? code : trust_check(s->store, &h, err);
}

enum tide_code tide_session_check_trust(tide_session *s, struct tide_err *err)
{
    ERR_LOCAL(err);
    return s->patience.told ? session_hold(s, try_check, s, err) : try_check(s, err);
}

/* ---- whether what runs is what was written ---------------------------------------------------------------------------- */

/*
 * The proof at the end covers every event before it, by the chain of digests, and what was read up to the end is proved with
 * it. An event that is read by itself is not: somebody may have changed it together with its own digest. So those that decide
 * what runs are followed to the next proof behind them; of a short log, which is most of them, all are read.
 */
#define READ_WHOLE 1024

static int pass_over(void *arg, const struct event *ev)
{
    (void)arg;
    (void)ev;
    return 0;
}

/* An event of this session, or of one that it is a fork of. */
static enum tide_code prove_at(struct tide_session *s, const char *session, int64_t seq, struct tide_err *err)
{
    bool own = strcmp(session, s->head.id) == 0;
    struct head h = s->head;
    struct look l = {s->store, &h, false, INT64_MAX};
    enum tide_code code = own || !seq ? TIDE_OK : store_head(s->store, str_from(session), &h, err);

    if (code || !seq)
        return code;
    code = store_read(s->store, &h, seq, 0, look_for_proof, &l, err);
    if (code || own || l.ours)
        return code;
    return tide_session_verify(s, NULL, NULL, NULL,
                               err); /* a parent that came from elsewhere: its fork was trusted with all of it */
}

static enum tide_code prove_content(struct tide_session *s, struct tide_err *err)
{
    const struct content *c = &s->state->content;
    enum tide_code code = prove_at(s, c->position.graph_session, c->position.graph_seq, err);

    for (size_t i = 0; i < c->span_count && !code; i++) {
        const struct span *p = &c->spans[i];

        if (strcmp(p->session, s->head.id) != 0 || p->to < s->head.last_seq)
            code = prove_at(s, p->session, p->to, err);
    }
    return code;
}

enum tide_code trust_prove(struct tide_session *s, struct tide_err *err)
{
    const struct head *h = &s->head;
    enum tide_code code = trust_check(s->store, h, err);

    if (code)
        return code;
    if (h->last_seq - h->first_seq < READ_WHOLE) {
        code = store_read(s->store, h, 0, 0, pass_over, NULL, err);
        if (code != TIDE_CORRUPT || !s->state->content.position.graph_digest)
            return code ? code : prove_content(s, err);
        /* What a graph is to run next stands in its state: damage in its past stops it only where that is needed. */
    }
    code = prove_at(s, h->id, s->state->ledger.program_seq, err);
    return code ? code : prove_content(s, err);
}

/* ---- what would run ---------------------------------------------------------------------------------------------------- */

/* A call that a model asked for, by where it stands: node, visit and id. Who runs it may look at these in another way. */
struct wanted {
    struct str place, json;
};

/* What the log says of calls, and of the tools that were offered. */
struct found {
    struct arena keep, scratch;
    struct wanted *calls; /* malloc */
    size_t n_calls, cap_calls;
    struct map asked, answered; /* place -> int64_t * how often */
    struct str tools;           /* JSON array as the latest request had it */
    struct str graph;           /* JSON */
    struct str stored_graph;    /* one that was given to the store: the first counts */
    int64_t graph_seq;
};

static struct str place_of(struct found *f, const struct json *body, struct str id)
{
    return arena_dup(&f->keep,
                     str_from(arena_printf(&f->scratch, "%.*s\x1f%" PRId64 "\x1f%.*s\x1f%.*s",
                                           STR_ARG(json_get_text(&f->scratch, body, STR("node"))),
                                           json_get_int(body, STR("visit"), 0),
                                           STR_ARG(json_get_text(&f->scratch, body, STR("decides"))), STR_ARG(id))));
}

static void count_place(struct map *m, struct str place)
{
    const int64_t *n = map_get(m, place);

    map_set_int(m, place, n ? *n + 1 : 1);
}

static void find_calls(struct found *f, const struct json *body)
{
    const struct json *calls = json_get(body, STR("tool_calls"));

    for (const struct json *c = calls ? calls->first : NULL; c; c = c->next) {
        struct wanted w = {place_of(f, body, json_get_text(&f->scratch, c, STR("id"))),
                           arena_dup(&f->keep, json_source(c))};

        MEM_ROOM(f->calls, f->n_calls, f->cap_calls);
        f->calls[f->n_calls++] = w;
        count_place(&f->asked, w.place);
    }
}

static int find_in(void *arg, const struct event *ev)
{
    struct found *f = arg;
    const struct json *v;
    struct json *body;

    arena_reset(&f->scratch);
    if (json_parse(&f->scratch, ev->body, NULL, &body, NULL, NULL))
        return 0;
    if (str_eq(ev->kind, STR("message.assistant")))
        find_calls(f, body);
    else if (str_eq(ev->kind, STR("message.tool")))
        count_place(&f->answered, place_of(f, body, json_get_text(&f->scratch, body, STR("tool_call_id"))));
    else if (str_eq(ev->kind, STR("llm.request")) && (v = json_get(body, STR("tools"))))
        f->tools = arena_dup(&f->keep, json_source(v));
    else if (!f->stored_graph.len && str_eq(ev->kind, STR("graph.stored")) && (v = json_get(body, STR("graph"))))
        f->stored_graph = arena_dup(&f->keep, json_source(v));
    if (ev->seq == f->graph_seq && (v = json_get(body, STR("graph"))))
        f->graph = arena_dup(&f->keep, json_source(v));
    return 0;
}

/* In all that the content is made of, its parents' part included. */
static enum tide_code find_all(struct tide_session *s, struct found *f, struct tide_err *err)
{
    const struct content *c = &s->state->content;
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; i < c->span_count && !code; i++) {
        const struct span *p = &c->spans[i];
        struct head h;

        f->graph_seq = strcmp(p->session, c->position.graph_session) == 0 ? c->position.graph_seq : 0;
        code = store_head(s->store, str_from(p->session), &h, err);
        code = code ? code : store_read(s->store, &h, p->from, p->to, find_in, f, err);
    }
    return code;
}

/* ---- saying it --------------------------------------------------------------------------------------------------------- */

static void put_raw(struct json_out *o, const char *key, struct str json)
{
    if (json.len)
        json_out_kraw(o, str_from(key), json);
}

static void put_program(struct json_out *o, struct arena *a, struct str body)
{
    static const char *const names[] = {"argv", "program", "program_digest", "cwd", "path", "env"};
    struct json *v;

    if (json_parse(a, body, NULL, &v, NULL, NULL) || !json_get(v, STR("argv")))
        return;
    json_out_key(o, STR("program"));
    json_out_begin(o, '{');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct json *m = json_get(v, str_from(names[i]));

        if (m && m->type != JSON_NULL)
            json_out_kraw(o, str_from(names[i]), json_source(m));
    }
    json_out_end(o, '}');
}

static void put_tools(struct json_out *o, struct arena *a, struct str tools)
{
    struct json *v;

    if (!tools.len || json_parse(a, tools, NULL, &v, NULL, NULL))
        return;
    json_out_key(o, STR("tools"));
    json_out_begin(o, '[');
    for (const struct json *t = v->first; t; t = t->next)
        json_out_str(o, json_get_text(a, t, STR("name")));
    json_out_end(o, ']');
}

/* What templates and conditions are filled with. */
static void put_memory(struct json_out *o, const struct map *memory)
{
    if (!memory->live)
        return;
    json_out_key(o, STR("memory"));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(memory, NULL); e; e = map_next(memory, e))
        json_out_kraw(o, map_key(e), str_from(e->value));
    json_out_end(o, '}');
}

/* Those without a result; of an id that is used twice in one place, all: which one counts is not ours to say. */
static void put_calls(struct json_out *o, const struct found *f)
{
    bool any = false;

    for (size_t i = 0; i < f->n_calls; i++) {
        const int64_t *asked = map_get(&f->asked, f->calls[i].place), *got = map_get(&f->answered, f->calls[i].place);

        if (*asked == 1 && got && *got == 1)
            continue;
        if (!any) {
            json_out_key(o, STR("calls"));
            json_out_begin(o, '[');
        }
        any = true;
        json_out_raw(o, f->calls[i].json);
    }
    if (any)
        json_out_end(o, ']');
}

static int put_queued(void *arg, const struct event *ev)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *content;
    struct json *body;

    if (!json_parse(&a, ev->body, NULL, &body, NULL, NULL) && (content = json_get(body, STR("content"))))
        json_out_raw(arg, json_source(content));
    return 1;
}

/* Messages that the next run would take. */
static enum tide_code put_queue(struct json_out *o, struct tide_session *s, struct tide_err *err)
{
    const struct map *queue = &s->state->ledger.queue;
    enum tide_code code = TIDE_OK;

    if (!queue->live)
        return TIDE_OK;
    json_out_key(o, STR("queued"));
    json_out_begin(o, '[');
    for (struct map_entry *e = map_next(queue, NULL); e && !code; e = map_next(queue, e)) {
        int64_t seq = *(const int64_t *)e->value;

        code = store_read(s->store, &s->head, seq, seq, put_queued, o, err);
    }
    json_out_end(o, ']');
    return code;
}

static int take_body(void *arg, const struct event *ev)
{
    buf_add_str(arg, ev->body);
    return 1;
}

static enum tide_code describe_runs(struct tide_session *s, struct buf *out, struct tide_err *err)
{
    static const char *const names[] = {"title", "agent", "working_dir", "provider"};
    AUTO(buf_done) struct buf program = BUF_INIT(SHOWN_MAX);
    struct found f = {.keep = ARENA_INIT, .scratch = ARENA_INIT};
    struct json_out o = json_out_to(out);
    int64_t seq = s->state->ledger.program_seq;
    enum tide_code code;

    code = find_all(s, &f, err);
    if (!code && seq)
        code = store_read(s->store, &s->head, seq, seq, take_body, &program, err);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(s->head.id));
    json_out_kint(&o, STR("seq"), s->state->seq);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        put_raw(&o, names[i], str_from(map_get(&s->state->info.fields, str_from(names[i]))));
    put_program(&o, &f.keep, buf_view(&program));
    put_raw(&o, "graph", f.graph);
    put_raw(&o, "stored_graph", f.stored_graph);
    put_memory(&o, &s->state->content.memory);
    if (f.graph.len)
        position_encode(&o, &s->state->content, STATE_ALL, NULL); /* what nodes that are ready were given, and frames */
    put_tools(&o, &f.keep, f.tools);
    put_calls(&o, &f);
    code = code ? code : put_queue(&o, s, err);
    json_out_kbool(&o, STR("trusted"), origin_is_ours(s->store, &s->head));
    json_out_end(&o, '}');
    if (!code && (out->failed || program.failed))
        code = tide_fail(err, TIDE_TOO_BIG, "what would run is too much to be shown");
    map_done(&f.asked, free);
    map_done(&f.answered, free);
    free(f.calls);
    arena_done(&f.keep);
    arena_done(&f.scratch);
    return code;
}

enum tide_code tide_session_show_trust(tide_session *s, struct tide_text *ret_json, struct tide_err *err)
{
    struct buf out = BUF_INIT(SHOWN_MAX);
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_sync(s, err);
    code = code ? code : describe_runs(s, &out, err);
    if (code) {
        buf_done(&out);
        return tide_wrap(err, "show what session '%s' would run", s->head.id);
    }
    ret_json->len = out.len;
    ret_json->ptr = buf_take(&out);
    return TIDE_OK;
}

/* ---- trusting ---------------------------------------------------------------------------------------------------------- */

static void draft_trust(struct draft *d, const struct state *state, struct str shown, const char *by)
{
    const struct run *r = &state->ledger.run;
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];

    digest_of(digest, shown);
    hex_encode(hex, digest, DIGEST_SIZE);
    if (r->token == TOKEN_ACTIVE)
        token_moved(d, "token.revoked", r, "trusted", NULL);
    draft_open(d, "session.trusted");
    json_out_kint(&d->out, STR("up_to"), state->seq);
    draft_text(d, "by", by);
    draft_text(d, "shown_digest", hex);
    draft_close(d);
}

static enum tide_code append_trust(struct store *store, const struct head *h, const struct draft *d, unsigned flags,
                                   struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct event *list = arena_zero(&a, (d->n + 1) * sizeof *list);
    struct batch *b;
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; i < d->n && !code; i++)
        code = event_check(store, &a, &d->events[i], true, &list[i], NULL, err);
    if (code)
        return code;
    b = batch_new(str_from(h->id), BATCH_INPUT | flags, list, d->n, STR(""), STR(""));
    b->expect_seq = h->last_seq;
    code = store_write(store, b, NULL, err);
    if (!code)
        session_file_renew(store, h->id);
    return code;
}

/* It came back from a person, by way of who knows which program: it may be written in another way. */
static bool is_as_shown(struct str now, const char *shown)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *x = NULL, *y = NULL;

    return str_eq(now, str_from(shown)) ||
           (!json_parse(&a, now, NULL, &x, NULL, NULL) && !json_parse(&a, str_from(shown), NULL, &y, NULL, NULL) &&
            json_same(&a, x, y));
}

enum tide_code tide_session_trust(tide_session *s, const char *shown, const char *by, struct tide_err *err)
{
    AUTO(buf_done) struct buf now = BUF_INIT(SHOWN_MAX);
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    ERR_LOCAL(err);
    if (!s->store->origin.user.len)
        return tide_fail(err, TIDE_READ_ONLY, "trust: there is no key of origin: open the store for writing");
    code = session_sync(s, err);
    if (!code && s->head.unverified)
        code = session_take_over(s->store, s->head.id, err) ? err->code : session_sync(s, err);
    code = code ? code : history_prove(s->store, &s->head, s->head.last_seq, err);
    code = code ? code : describe_runs(s, &now, err);
    if (!code && origin_is_ours(s->store, &s->head))
        return TIDE_OK;
    if (!code && shown && !is_as_shown(buf_view(&now), shown))
        code = tide_fail_session(err, TIDE_CONFLICT, s->head.id, "has changed since it was shown: look again");
    if (!code) {
        draft_trust(&d, s->state, buf_view(&now), by ? by : "local");
        code = append_trust(s->store, &s->head, &d, BATCH_VOUCH, err);
    }
    draft_done(&d);
    s->stale = true;
    return code ? tide_wrap(err, "trust") : TIDE_OK;
}

/* ---- what an import leaves --------------------------------------------------------------------------------------------- */

enum tide_code trust_revoke_imported(struct store *store, const char *id, const struct state *runs,
                                     struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct head h;
    enum tide_code code = TIDE_OK;

    if (runs->ledger.run.token != TOKEN_ACTIVE)
        return TIDE_OK;
    token_moved(&d, "token.revoked", &runs->ledger.run, "imported", NULL);
    code = store_head(store, str_from(id), &h, err);
    code = code ? code : append_trust(store, &h, &d, 0, err);
    draft_done(&d);
    return code;
}
