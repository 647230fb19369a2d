/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions timeline: the life of a session, drawn for people or as data for programs. */
#include <inttypes.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/timeline/timeline.h"

static const struct opt options[] = {
    {.name = "width",
     .type = VALUE_INT,
     .value = "N",
     .min = 80,
     .max = 132,
     .help = "draw in N columns, 80 to 132 (default: those of the terminal, else 80)"},
    {.name = NULL},
};

static void put_ms(struct json_out *o, const char *key, int64_t ms)
{
    if (ms > 0)
        json_ktime(o, key, ms);
    else
        json_kopt(o, key, NULL);
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static void put_item(struct json_out *o, const struct tl_item *item)
{
    static const char *const types[] = {
        [TL_STEP] = "step", [TL_WAIT] = "wait", [TL_SLEEP] = "sleep", [TL_NODE] = "node"};

    json_out_begin(o, '{');
    json_kopt(o, "type", types[item->type]);
    json_kopt(o, "name", item->name);
    if (item->type != TL_NODE)
        json_kopt(o, item->type == TL_STEP ? "effect" : "kind", or_null(item->word));
    json_kopt(o, "outcome", tl_outcome_word(item));
    put_ms(o, "started_at", item->start_ms);
    put_ms(o, "ended_at", item->end_ms);
    json_out_key(o, STR("ms"));
    if (item->end_ms >= item->start_ms && item->end_ms)
        json_out_int(o, item->end_ms - item->start_ms);
    else
        json_out_null(o);
    if (item->type == TL_NODE)
        json_out_kint(o, STR("attempts"), item->tries);
    if (item->type == TL_STEP) {
        json_out_kint(o, STR("attempts"), item->tries);
        json_out_kbool(o, STR("begun_before"), item->again);
    }
    json_kopt(o, "note", or_null(item->note));
    json_out_end(o, '}');
}

static void put_marks(struct json_out *o, const struct tl_run *run)
{
    json_out_key(o, STR("marks"));
    json_out_begin(o, '{');
    for (int k = 0; k < TL_MARK_KINDS; k++)
        if (run->marks[k].n > 0)
            json_out_kint(o, str_from(tl_mark_words[k]), run->marks[k].n);
    json_out_end(o, '}');
}

/* How many it kept, and the names of those that were noted. */
static void put_kept(struct json_out *o, const struct tl_kept *k)
{
    const char *name = k->names;

    json_out_kint(o, STR("kept"), k->n);
    json_out_key(o, STR("kept_names"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < k->n_names; i++, name += strlen(name) + 1)
        json_out_str(o, str_from(name));
    json_out_end(o, ']');
}

static void put_run(struct json_out *o, const struct tl_run *run)
{
    int64_t omitted = 0;

    for (int i = 0; i < TL_OUTCOMES; i++)
        omitted += run->omitted[i];
    json_out_begin(o, '{');
    json_out_kint(o, STR("number"), run->number);
    json_kopt(o, "run_id", or_null(run->run_id));
    json_kopt(o, "continues", or_null(run->from_id));
    json_kopt(o, "program", or_null(run->program));
    put_ms(o, "started_at", run->started_ms);
    put_ms(o, "ended_at", run->ended_ms);
    json_kopt(o, "outcome", run->number ? tl_end_word(run->end) : NULL);
    json_kopt(o, "reason", or_null(run->reason));
    json_kopt(o, "error", or_null(run->error));
    put_kept(o, &run->kept);
    json_out_key(o, STR("items"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < run->n_items; i++)
        put_item(o, &run->items[i]);
    json_out_end(o, ']');
    json_out_kint(o, STR("omitted_items"), omitted);
    put_marks(o, run);
    json_out_end(o, '}');
}

static void put_summary(struct json_out *o, const struct tl_summary *s)
{
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {
        {"events", s->events},
        {"other_events", s->other},
        {"runs", s->runs},
        {"nodes", s->nodes},
        {"steps", s->steps},
        {"ran_once", s->once},
        {"repeated", s->repeated},
        {"not_compared", s->not_compared},
        {"begun_again", s->begun_again},
        {"settled", s->settled},
        {"failed", s->failed},
        {"unknown", s->unknown},
        {"cut", s->cut},
        {"under_way", s->open},
        {"waits", s->waits},
        {"sleeps", s->sleeps},
        {"interruptions", s->interruptions},
        {"checkpoints", s->checkpoints},
    };

    json_out_key(o, STR("summary"));
    json_out_begin(o, '{');
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        json_out_kint(o, str_from(counts[i].name), counts[i].n);
    json_out_end(o, '}');
}

void timeline_json(const struct timeline *t, struct out *out)
{
    struct json_out o = out_json(out);

    json_out_begin(&o, '{');
    json_kopt(&o, "session_id", t->id);
    json_kopt(&o, "title", or_null(t->title));
    json_kopt(&o, "status", t->status);
    json_kopt(&o, "why", t->why);
    json_out_key(&o, STR("runs"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < t->n_runs; i++)
        put_run(&o, &t->runs[i]);
    json_out_end(&o, ']');
    json_out_kint(&o, STR("omitted_runs"), t->omitted_runs);
    put_summary(&o, &t->sum);
    json_out_end(&o, '}');
    out_json_end(out);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(timeline_done) struct timeline t = {.n_runs = 0};
    int64_t width = args_int(&cli->args, "width", cli->out.tty ? terminal_columns(STDOUT_FILENO) : 80);

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) || timeline_read(session, &t, err))
        return err->code;
    if (cli->out.json)
        timeline_json(&t, &cli->out);
    else
        timeline_draw(&t, &cli->out, (int)width);
    return TIDE_OK;
}

const struct command cmd_sessions_timeline = {
    .group = "sessions",
    .name = "timeline",
    .run = run,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "draw the life of a session: its runs, what each did, and what it kept instead of doing it again",
    .more =
        "One lane per run. █ ran, ▓ failed or ✗ cut, ▒ outcome unknown, ▚ found to have happened, ╍ waits for someone,\n"
        "┈ sleeps, ░ kept from an earlier run: finished there, not run again.",
};
