/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a torture: for people what was tried, the four things that must not be, and each case of them; as JSON all of it. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/terminal/glyph.h"
#include "cli/torture/torture.h"
#include "cli/terminal/wrap.h"

#define LABEL 27       /* columns of what stands in front */
#define SHOWN 20       /* faults of a kind that people see */
#define VALUE_SHOWN 60 /* columns of a value */

static const struct {
    const char *label, *json;
} kinds[FAULT_KINDS] = {
    [FAULT_COMPLETE_AGAIN] = {"complete nodes run again", "complete_run_again"},
    [FAULT_ONCE_AGAIN] = {"`once` effects repeated", "once_repeated"},
    [FAULT_DIFFERS] = {"outputs that differ", "differences"},
    [FAULT_NOT_ENDED] = {"sessions that did not end", "not_ended"},
    [FAULT_UNJUDGED] = {"not judged", "not_judged"},
};

static const char *s_of(int64_t n)
{
    return n == 1 ? "" : "s";
}

static size_t count_points(const struct torture *t, enum point_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < t->wanted; i++)
        n += t->points[i].kind == kind;
    return n;
}

/* ---- for people ---- */

/* On a terminal the value is broken at words, each line below the first. */
__attribute__((format(printf, 3, 4))) static void row(struct out *out, const char *label, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    wrap_text(&text, str_from(line), out->tty ? terminal_columns(STDOUT_FILENO) - LABEL - 4 : INT_MAX);
    for (char *at = text.len ? (char *)(uintptr_t)buf_cstr(&text) : line, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        end += *end ? 1 : 0;
        if (end[-1] == '\n')
            end[-1] = '\0';
        outf(out, "  %-*s ", LABEL, label);
        out_value(out, at);
        outf(out, "\n");
        label = "";
    }
}

static void put_clipped(struct out *out, const char *json)
{
    if (json)
        glyph_fit(&out->text, str_from(json), VALUE_SHOWN);
    else
        outf(out, "(nothing)");
}

static void put_fault(struct out *out, const struct fault *f)
{
    outf(out, "      ");
    out_value(out, f->what);
    if (f->kind == FAULT_COMPLETE_AGAIN && f->want)
        outf(out, ": completed %s times instead of %s", f->got, f->want);
    if (f->kind == FAULT_DIFFERS) {
        outf(out, ": ");
        put_clipped(out, f->want);
        outf(out, " became ");
        put_clipped(out, f->got);
    }
    outf(out, "\n        %s%s, killed ", color_code(out, COLOR_DIM), f->session_id);
    glyph_fit(&out->text, str_from(f->point), 100);
    outf(out, "%s\n", color_code(out, COLOR_NONE));
}

static void put_faults(struct out *out, const struct torture *t, enum fault_kind kind)
{
    size_t n = t->by_kind[kind], shown = 0;

    outf(out, "  %-*s ", LABEL, kinds[kind].label);
    out_colored(out, n ? COLOR_RED : COLOR_GREEN, n ? "" : "0  ✓");
    if (n)
        outf(out, "%s%zu  ✗%s", color_code(out, COLOR_RED), n, color_code(out, COLOR_NONE));
    outf(out, "\n");
    for (size_t i = 0; i < t->n_faults && shown < SHOWN; i++)
        if (t->faults[i].kind == kind) {
            put_fault(out, &t->faults[i]);
            shown++;
        }
    if (n > shown)
        outf(out, "      and %zu more: --json has them all\n", n - shown);
}

static void put_tried(struct out *out, const struct torture *t)
{
    char random[80] = "";

    if (t->kills > 1 || t->wanted < t->n_points)
        snprintf(random, sizeof(random), "; what was random: --seed %" PRIu64, t->seed);
    row(out, "crash points", "%zu of %zu: %zu before an append, %zu after one, %zu inside a node%s", t->tried,
        t->n_points, count_points(t, POINT_BEFORE), count_points(t, POINT_AFTER), count_points(t, POINT_INSIDE),
        t->tried < t->n_points ? "; --crash-points all tries them all" : "");
    if (t->reached < t->tried)
        row(out, "", "%zu of them did not come up again: what runs at once is recorded in another order each time",
            t->tried - t->reached);
    row(out, "killed and resumed", "%" PRId64 " time%s, %" PRId64 " time%s%s", t->all_kills, s_of(t->all_kills),
        t->all_resumes, s_of(t->all_resumes), random);
}

static const char *first_of(const struct torture *t, enum fault_kind kind)
{
    for (size_t i = 0; i < t->n_faults; i++)
        if (t->faults[i].kind == kind)
            return t->faults[i].what;
    return "";
}

static void put_fine(struct out *out, const struct torture *t)
{
    row(out, "cut and run again", "%" PRId64 "%s", t->ran_again,
        t->ran_again ? "  (not declared `once`, and not complete: that is what may happen)" : "");
    if (t->happened + t->retried)
        row(out, "asked a person",
            "%" PRId64 "  (a `once` node was cut: %" PRId64 " had ended and %s said to have happened, %" PRId64
            " had begun and %s let run again)",
            t->happened + t->retried, t->happened, t->happened == 1 ? "was" : "were", t->retried,
            t->retried == 1 ? "was" : "were");
    if (t->left)
        row(out, "outlived their graph", "%" PRId64 " process%s of a killed one that still ran when it had gone on",
            t->left, t->left == 1 ? "" : "es");
    if (t->by_kind[FAULT_UNJUDGED])
        row(out, kinds[FAULT_UNJUDGED].label,
            "%zu  (it went another way after the word that `once` node %s had happened: what that gave was lost with it)",
            t->by_kind[FAULT_UNJUDGED], first_of(t, FAULT_UNJUDGED));
    for (struct map_entry *e = map_next(&t->unsteady, NULL); e; e = map_next(&t->unsteady, e))
        row(out, e == map_next(&t->unsteady, NULL) ? "not deterministic" : "", "%s  (%s: not compared)", e->key,
            (const char *)e->value);
}

static void print_text(struct torture *t, int64_t ms)
{
    struct out *out = &t->cli->out;
    size_t from;

    row(out, "graph", "%s, %" PRId64 " node%s run in %.2f s, %" PRId64 " appends", t->file,
        (int64_t)(t->base.completed ? t->base.completed->count : 0),
        s_of(t->base.completed ? t->base.completed->count : 0), (double)t->base.us / 1e6, t->deeds.appends);
    row(out, "store", "%s, a new one in a directory of its own", t->files ? "files" : "sqlite");
    put_tried(out, t);
    put_fine(out, t);
    outf(out, "\n");
    from = out->text.len;
    for (int kind = 0; kind < FAULT_UNJUDGED; kind++)
        put_faults(out, t, (enum fault_kind)kind);
    outf(out, "\n  ");
    if (torture_is_wrong(t))
        out_colored(out, COLOR_RED, "This is wrong: what was promised was not kept.");
    else
        out_colored(
            out, COLOR_GREEN,
            t->by_kind[FAULT_UNJUDGED]
                ? "Nothing was lost, nothing that was complete ran again, and where it was judged the end was the same."
                : "Nothing was lost, nothing that was complete ran again, and it always came to the same end.");
    outf(out, "  (%.1f s)\n", (double)ms / 1000);
    out_wrap(out, from);
    if (t->keep)
        row(out, "kept", "%s: `tidemark --store %s sessions timeline ID` shows one", t->dir, t->store);
}

/* ---- for programs ---- */

static void put_fault_json(struct json_out *o, const struct fault *f)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("session_id"), str_from(f->session_id));
    json_out_kstr(o, STR("killed"), str_from(f->point));
    if (f->kind == FAULT_NOT_ENDED) {
        json_out_kstr(o, STR("why"), str_from(f->what));
    } else {
        json_out_kstr(o, f->kind == FAULT_DIFFERS ? STR("key") : STR("node"), str_from(f->what));
    }
    if (f->kind == FAULT_DIFFERS) {
        json_out_kraw(o, STR("want"), str_from(f->want ? f->want : "null"));
        json_out_kraw(o, STR("got"), str_from(f->got ? f->got : "null"));
    }
    json_out_end(o, '}');
}

static void put_points_json(struct json_out *o, const struct torture *t)
{
    json_out_key(o, STR("crash_points"));
    json_out_begin(o, '{');
    json_out_kint(o, STR("found"), (int64_t)t->n_points);
    json_out_kint(o, STR("tried"), (int64_t)t->tried);
    json_out_kint(o, STR("reached"), (int64_t)t->reached);
    json_out_kint(o, STR("before_append"), (int64_t)count_points(t, POINT_BEFORE));
    json_out_kint(o, STR("after_append"), (int64_t)count_points(t, POINT_AFTER));
    json_out_kint(o, STR("inside_node"), (int64_t)count_points(t, POINT_INSIDE));
    json_out_end(o, '}');
}

static void put_unsteady_json(struct json_out *o, const struct torture *t)
{
    json_out_key(o, STR("not_deterministic"));
    json_out_begin(o, '[');
    for (struct map_entry *e = map_next(&t->unsteady, NULL); e; e = map_next(&t->unsteady, e))
        json_out_str(o, map_key(e));
    json_out_end(o, ']');
}

static void print_json(struct torture *t, int64_t ms)
{
    struct json_out o = out_json(&t->cli->out);

    json_out_begin(&o, '{');
    json_out_kbool(&o, STR("right"), !torture_is_wrong(t));
    json_out_kstr(&o, STR("file"), str_from(t->file));
    json_out_kstr(&o, STR("store_kind"), t->files ? STR("files") : STR("sqlite"));
    json_out_kint(&o, STR("ms"), ms);
    json_out_kint(&o, STR("uninterrupted_ms"), t->base.us / 1000);
    json_out_kint(&o, STR("appends"), t->deeds.appends);
    put_points_json(&o, t);
    json_out_kint(&o, STR("kills"), t->all_kills);
    json_out_kint(&o, STR("resumes"), t->all_resumes);
    json_out_kint(&o, STR("seed"), (int64_t)t->seed);
    json_out_kint(&o, STR("cut_and_run_again"), t->ran_again);
    json_out_kint(&o, STR("said_to_have_happened"), t->happened);
    json_out_kint(&o, STR("let_run_again"), t->retried);
    json_out_kint(&o, STR("outlived"), t->left);
    put_unsteady_json(&o, t);
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        json_out_key(&o, str_from(kinds[kind].json));
        json_out_begin(&o, '[');
        for (size_t i = 0; i < t->n_faults; i++)
            if (t->faults[i].kind == (enum fault_kind)kind)
                put_fault_json(&o, &t->faults[i]);
        json_out_end(&o, ']');
    }
    json_kopt(&o, "store", t->keep ? t->store : NULL);
    json_out_end(&o, '}');
    out_json_end(&t->cli->out);
}

void torture_report(struct torture *t, int64_t ms)
{
    (t->cli->out.json ? print_json : print_text)(t, ms);
}
