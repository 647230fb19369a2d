/* SPDX-License-Identifier: Apache-2.0 */
/* More of what processes do: checkpoints, rollback, fork, inputs, deleting, moving a session out and in. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "world.h"

void do_checkpoint(struct world *w, struct proc *p, struct o_session *s)
{
    struct tide_new_checkpoint in = {.size = sizeof in,
                                     .type = chance(w, 50) ? TIDE_CHECKPOINT_TURN : TIDE_CHECKPOINT_SAFE_POINT,
                                     .description = "by the simulator"};
    struct handle *h = get_handle(w, p, s);
    struct tide_err err = {0};
    char id[TIDE_ID_SIZE] = "", begins[120];
    struct o_batch b;
    enum tide_code code;

    if (!h || w->failed || h->queue_n)
        return;
    h->knows = false; /* it may look again by itself */
    call_begin(w);
    code = tide_checkpoint_save(h->h, &in, id, &err);
    drain(w, p);
    snprintf(begins, sizeof begins, "{\"checkpoint_id\":\"%s%s%s", code ? "ckpt_" : id, code ? "" : "\",\"type\":\"",
             code ? "" : tide_checkpoint_type_name(in.type));
    b = batch_one(w, "checkpoint", str_from(begins), true, M_MARK, 0);
    if (!judge(w, p, s, &b, code, &err, 0) || w->failed)
        return;
    snprintf(s->marks[s->marks_n < 4 ? s->marks_n++ : rnd(w, 4)], TIDE_ID_SIZE, "%s", id);
    if (chance(w, 70) && proc_alive(p))
        check_state(w, h->h, s, o_last(s), true);
}

void do_marks_gone(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = get_handle(w, p, s);
    struct tide_err err = {0};
    const char *id = s->marks_n ? s->marks[rnd(w, s->marks_n)] : "ckpt_none";
    bool prune = chance(w, 50);
    int64_t deleted = -1;
    struct o_batch b;
    enum tide_code code;

    if (!h || w->failed || h->queue_n)
        return;
    h->knows = false; /* both look again by themselves */
    call_begin(w);
    code = prune ? tide_checkpoint_prune(h->h, 1, 0, &deleted, &err) : tide_checkpoint_delete(h->h, &id, 1, &err);
    drain(w, p);
    if ((!prune && code == TIDE_NOT_FOUND) || (prune && !code && deleted == 0))
        return;
    b = prune ? batch_one(w, "checkpoint.deleted", STR("{\"checkpoint_ids\":[\"ckpt_"), true, M_MARKS_GONE, 0)
              : batch_one(w, "checkpoint.deleted",
                          str_from(arena_printf(&w->arena, "{\"checkpoint_ids\":[\"%s\"],\"reason\":\"deleted\"}", id)),
                          false, M_MARKS_GONE, 0);
    judge(w, p, s, &b, code, &err, 0);
}

void do_rollback(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = get_handle(w, p, s);
    struct tide_err err = {0};
    int64_t to = 1 + (int64_t)rnd(w, (uint64_t)o_last(s));
    bool redo = chance(w, 50);
    struct o_batch b;
    enum tide_code code;

    if (!h || w->failed || h->queue_n || s->alt_count)
        return;
    if (to < s->first_seq && chance(w, 70))
        to = s->first_seq;
    h->knows = false; /* it looks again by itself */
    b = batch_one(w, "session.rolled_back",
                  str_from(arena_printf(&w->arena, "{\"to_seq\":%" PRId64 ",\"reason\":\"sim\"%s}", to,
                                        redo ? ",\"effects\":\"redo\"" : "")),
                  false, M_ROLLBACK, to);
    call_begin(w);
    code = tide_session_rollback(h->h, to, redo ? TIDE_ROLLBACK_REDO_EFFECTS : 0, "sim", &err);
    drain(w, p);
    say(w, "roll %s back to %" PRId64, s->id, to);
    if (judge(w, p, s, &b, code, &err, 0) && chance(w, 70) && proc_alive(p) && !w->failed)
        check_state(w, h->h, s, 0, false);
}

static void outcome_of_new(struct world *w, struct proc *p, struct o_session *s, const struct o_batch *b,
                           enum tide_code code, const struct tide_err *err, const char *what)
{
    say(w, "process %d: %s %s: %s %.100s", p->number, what, s->id, tide_code_name(code), code ? err->msg : "");
    if (!code) {
        o_acked(w, s, b, p);
        s->presence = PRESENT;
        note_commit(w, p);
    } else if (!proc_alive(p) || code == TIDE_UNKNOWN) {
        o_doubt(w, s, b, 1, proc_alive(p) ? p : NULL);
        s->presence = MAYBE_MADE;
    }
    if (code && proc_alive(p) && !call_excused(w))
        wrong(w, "%s %s: %s without a reason: %s", what, s->id, tide_code_name(code), err->msg);
}

void do_fork(struct world *w, struct proc *p, struct o_session *s)
{
    struct o_session *writer = s, *fork;
    int64_t seq = 1 + (int64_t)rnd(w, (uint64_t)o_last(s));
    char id[TIDE_ID_SIZE], made[TIDE_ID_SIZE];
    struct tide_err err = {0};
    struct o_batch b;
    enum tide_code code;

    if (s->alt_count || (seq < s->first_seq && !s->parent))
        return;
    while (seq < writer->first_seq)
        writer = writer->parent;
    if (writer->alt_count)
        return;
    snprintf(id, sizeof id, "f%d", (int)rnd(w, 6));
    for (size_t i = 0; i < w->session_count; i++) {
        if (strcmp(w->sessions[i].id, id) == 0 && (w->sessions[i].presence != ABSENT))
            return;
    }
    fork = o_add(w, id);
    if (!fork)
        return;
    fork->parent = writer;
    fork->parent_seq = seq;
    fork->first_seq = seq + 1;
    fork->foreign = writer->foreign;
    b = batch_one(
        w, "session.created",
        str_from(arena_printf(&w->arena, "{\"title\":\"f\",\"parent\":{\"session_id\":\"%s\",\"seq\":%" PRId64 "}}",
                              writer->id, seq)),
        false, M_NONE, 0);
    call_begin(w);
    code = tide_session_fork(p->store, s->id, seq, id, "{\"title\":\"f\"}", made, &err);
    drain(w, p);
    outcome_of_new(w, p, fork, &b, code, &err, "fork");
    fork->holder_sure = !code;
}

void do_input(struct world *w, struct proc *p, struct o_session *s)
{
    struct tide_err err = {0};
    int64_t expect = chance(w, 50) ? -1 : chance(w, 70) ? o_last(s) : o_last(s) - 1, seq = 0;
    bool sure = s->holder_sure;
    struct o_batch b;
    enum tide_code code;

    if (s->alt_count || handle_of(w, p, s)->queue_n) /* what is queued would go into the same commit */
        return;
    gen_batch(w, &b, 1 + rnd(w, 2), true);
    call_begin(w);
    code = tide_session_input(p->store, s->id, expect, gen_public(w, &b), b.n, &seq, &err);
    drain(w, p);
    say(w, "process %d: input to %s at %" PRId64 ": %s", p->number, s->id, o_last(s), tide_code_name(code));
    if (!code) {
        if (s->foreign)
            wrong(w, "%s was imported, and an input that moves it went through", s->id);
        if (expect != -1 && expect != o_last(s))
            wrong(w, "an input to %s went through with the wrong seq", s->id);
        o_acked(w, s, &b, p);
        note_commit(w, p);
        if (seq != o_last(s))
            wrong(w, "%s: an input was told seq %" PRId64 ", it is %" PRId64, s->id, seq, o_last(s));
    } else if (!proc_alive(p)) {
        o_doubt(w, s, &b, 1, NULL);
        s->holder_sure = sure; /* an input moves no lease */
    } else if (code == TIDE_UNKNOWN && call_excused(w)) {
        o_doubt(w, s, &b, 1, p);
        s->holder_sure = sure;
    } else if (!call_excused(w) && !(code == TIDE_CONFLICT && expect != o_last(s)) &&
               !(code == TIDE_UNTRUSTED && s->foreign)) {
        wrong(w, "input to %s: %s without a reason: %s", s->id, tide_code_name(code), err.msg);
    }
}

/* True when it is gone for sure. */
static bool delete_it(struct world *w, struct proc *p, struct o_session *s)
{
    bool held = false;
    struct tide_err err = {0};
    enum tide_code code;

    for (int i = 0; i < w->proc_count && !w->failed; i++) {
        struct handle *h = handle_of(w, &w->procs[i], s);

        if (h->h && proc_alive(&w->procs[i]) && chance(w, 90))
            do_close(w, &w->procs[i], s);
        bury_the_dead(w);
        held |= h->h && h->holds && !h->lost;
    }
    if (w->failed || !proc_alive(p) || s->alt_count || s->presence != PRESENT)
        return false;
    call_begin(w);
    code = tide_session_delete(p->store, s->id, &err);
    drain(w, p);
    say(w, "process %d deletes %s: %s", p->number, s->id, tide_code_name(code));
    if (!code) {
        if (o_has_forks(w, s, true))
            wrong(w, "%s was deleted under its forks", s->id);
        if (held && s->holder_sure && s->holder == p->number)
            wrong(w, "%s was deleted while it was held", s->id);
        note_commit(w, p);
        for (size_t i = 0; i < w->session_count; i++) {
            if (w->sessions[i].parent == s && w->sessions[i].presence != ABSENT)
                o_gone(w, &w->sessions[i]); /* that doubt is over */
        }
        o_gone(w, s);
        return true;
    }
    if (!proc_alive(p) || (code == TIDE_UNKNOWN && call_excused(w))) {
        s->presence = MAYBE_GONE;
        s->doubt_at = w->commits;
        s->doubt_by = proc_alive(p) ? p->number : -1;
    } else if (code == TIDE_HAS_FORKS ? !o_has_forks(w, s, false)
               : code == TIDE_HELD    ? s->holder_sure && s->holder < 0
                                      : !call_excused(w)) {
        wrong(w, "delete %s: %s without a reason: %s", s->id, tide_code_name(code), err.msg);
    }
    return false;
}

void do_delete(struct world *w, struct proc *p, struct o_session *s)
{
    if (!s->alt_count)
        delete_it(w, p, s);
}

/* ---- Out and in again ----------------------------------------------------------------------------------------- */

static int to_buf(void *arg, const char *bytes, size_t len)
{
    buf_add(arg, bytes, len);
    return 0;
}

struct source {
    struct str left;
};

static long from_buf(void *arg, char *out, size_t max)
{
    struct source *s = arg;
    size_t n = s->left.len < max ? s->left.len : max;

    memcpy(out, s->left.ptr, n);
    s->left.ptr += n;
    s->left.len -= n;
    return (long)n;
}

static bool export_it(struct world *w, struct proc *p, struct o_session *s, struct buf *out)
{
    struct tide_err err = {0};
    tide_session *h;
    enum tide_code code;

    call_begin(w);
    code = tide_session_open(p->store, s->id, TIDE_SESSION_READ, &h, &err);
    if (!code) {
        code = tide_session_export(h, to_buf, NULL, out, &err);
        tide_session_close(h);
    }
    if (code && proc_alive(p) && !call_excused(w))
        wrong(w, "export %s: %s: %s", s->id, tide_code_name(code), err.msg);
    return !code;
}

/* All its events as one batch: that is what an import is. */
static struct o_batch whole(struct world *w, const struct o_session *s)
{
    struct o_batch b = {arena_zero(&w->arena, s->n * sizeof *b.events), s->n};

    for (size_t i = 0; i < s->n; i++) {
        b.events[i] = *s->events[i];
        b.events[i].pos = 0;
        b.events[i].floor = w->max_pos;
    }
    return b;
}

static void import_it(struct world *w, struct proc *p, struct o_session *s, const struct o_batch *b,
                      const struct buf *from)
{
    struct source src = {buf_view(from)};
    struct tide_err err = {0};
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    call_begin(w);
    code = tide_session_import(p->store, from_buf, NULL, &src, id, &err);
    drain(w, p);
    for (size_t i = 0; i < b->n; i++)
        b->events[i].input = true; /* whoever imports did not append them */
    outcome_of_new(w, p, s, b, code, &err, "import");
}

void do_move(struct world *w, struct proc *p, struct o_session *s)
{
    struct buf out = BUF_INIT((size_t)64 << 20);
    struct o_session *parent = s->parent;
    int64_t parent_seq = s->parent_seq, first = s->first_seq;
    struct o_batch b;
    char id[TIDE_ID_SIZE];

    if (s->alt_count || o_has_forks(w, s, false))
        return;
    if (chance(w, 5)) /* so much that it comes in more than one piece */
        do_append_big(w, p, s, 17, 0);
    for (size_t i = 0; i < w->session_count; i++)
        if (w->procs[0].handles[i].queue_n + w->procs[1].handles[i].queue_n + w->procs[2].handles[i].queue_n)
            return;
    if (w->failed || !proc_alive(p) || s->alt_count || !look(w, p->store, s, false) || w->failed ||
        !export_it(w, p, s, &out)) {
        buf_done(&out);
        return;
    }
    b = whole(w, s);
    memcpy(id, s->id, sizeof id);
    if (delete_it(w, p, s) && !w->failed) {
        s = o_add(w, id);
        s->parent = parent;
        s->parent_seq = parent_seq;
        s->first_seq = first;
        s->foreign = true;
        import_it(w, p, s, &b, &out);
    }
    buf_done(&out);
}
