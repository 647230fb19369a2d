/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"
#include "engine/timeline.h"

/* ---- what lies in a lane ---- */

static const char *const types[] = {
    [TL_STEP] = "step", [TL_WAIT] = "wait", [TL_SLEEP] = "sleep", [TL_NODE] = "node", NULL};

static int type_of(const void *data)
{
    return (int)((const struct tl_item *)data)->type;
}

static void put_outcome(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tl_outcome_word(data)));
}

static bool has_length(const void *data)
{
    const struct tl_item *item = data;

    return item->start_ms && item->end_ms >= item->start_ms;
}

static bool has_end_seq(const void *data)
{
    return ((const struct tl_item *)data)->end_seq > 0;
}

static void put_length(struct json_out *o, const void *data)
{
    const struct tl_item *item = data;

    json_out_int(o, item->end_ms - item->start_ms);
}

#define AT(member) SHAPE_AT(struct tl_item, member)

#define BIT(type) (1u << (type))

static const struct shape shape_item = {
    .variants = types,
    .variant = type_of,
    .members =
        (const struct shape_member[]){
            {"type", SHAPE_VARIANT, AT(type), 0, "what it is"},
            {"name", SHAPE_CHARS, AT(name), 0, "its name"},
            {"effect", SHAPE_CHARS, AT(word), SHAPE_NULLABLE, "pure, idempotent or once", .only = BIT(TL_STEP)},
            {"kind", SHAPE_CHARS, AT(word), SHAPE_NULLABLE, "what it waits for", .only = BIT(TL_WAIT) | BIT(TL_SLEEP)},
            {"outcome", SHAPE_TEXT, AT(outcome), 0, "what became of it", .put = put_outcome},
            {"started_at", SHAPE_TIME, AT(start_ms), SHAPE_NULLABLE,
             "when it began; null: before a part, and not known"},
            {"ended_at", SHAPE_TIME, AT(end_ms), SHAPE_NULLABLE, "when it ended; null: it has not"},
            {"seq", SHAPE_INT, AT(seq), 0, "the event with which it began"},
            {"end_seq", SHAPE_INT, AT(end_seq), SHAPE_NULLABLE, "the event with which it ended; null: it has not",
             .has = has_end_seq},
            {"ms", SHAPE_INT, AT(end_ms), SHAPE_NULLABLE, "how long it took", .has = has_length, .put = put_length},
            {"attempts", SHAPE_INT, AT(tries), 0, "how often it was tried", .only = BIT(TL_STEP) | BIT(TL_NODE)},
            {"begun_before", SHAPE_BOOL, AT(again), 0, "an earlier run had begun it", .only = BIT(TL_STEP)},
            {"note", SHAPE_CHARS, AT(note), SHAPE_NULLABLE, "a question, an answer or an error"},
            {"found", SHAPE_CHARS, AT(found), SHAPE_NULLABLE,
             "interrupted in an earlier run: what a probe or a person found out about it", .only = BIT(TL_STEP)},
            {.name = NULL},
        },
};
#undef AT

/* ---- a lane ---- */

static bool is_run(const void *data)
{
    return ((const struct tl_run *)data)->number > 0;
}

static void put_end(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(tl_end_word(((const struct tl_run *)data)->end)));
}

static void put_kept_names(struct json_out *o, const void *data)
{
    const struct tl_kept *k = &((const struct tl_run *)data)->kept;
    const char *name = k->names;

    json_out_begin(o, '[');
    for (size_t i = 0; i < k->n_names; i++, name += strlen(name) + 1)
        json_out_str(o, str_from(name));
    json_out_end(o, ']');
}

static void put_items(struct json_out *o, const void *data)
{
    const struct tl_run *run = data;

    json_out_begin(o, '[');
    for (size_t i = 0; i < run->n_items; i++)
        shape_put(o, &shape_item, &run->items[i]);
    json_out_end(o, ']');
}

static void put_omitted(struct json_out *o, const void *data)
{
    int64_t omitted = 0;

    for (int i = 0; i < TL_OUTCOMES; i++)
        omitted += ((const struct tl_run *)data)->omitted[i];
    json_out_int(o, omitted);
}

static void put_marks(struct json_out *o, const void *data)
{
    const struct tl_run *run = data;

    json_out_begin(o, '{');
    for (int k = 0; k < TL_MARK_KINDS; k++)
        if (run->marks[k].n > 0)
            json_out_kint(o, str_from(tl_mark_words[k]), run->marks[k].n);
    json_out_end(o, '}');
}

struct point {
    const char *kind;
    int64_t seq, at_ms;
};

static const struct shape shape_point = {
    .members =
        (const struct shape_member[]){
            {"kind", SHAPE_TEXT, SHAPE_AT(struct point, kind), 0, "as in `marks`"},
            {"seq", SHAPE_INT, SHAPE_AT(struct point, seq), 0, "its event"},
            {"at", SHAPE_TIME, SHAPE_AT(struct point, at_ms), SHAPE_NULLABLE, "when, on the axis"},
            {.name = NULL},
        },
};

static void put_points(struct json_out *o, const void *data)
{
    const struct tl_run *run = data;

    json_out_begin(o, '[');
    for (int k = 0; k < TL_MARK_KINDS; k++)
        for (size_t i = 0; i < run->marks[k].n_at; i++)
            shape_put(o, &shape_point, &(struct point){tl_mark_words[k], run->marks[k].seq[i], run->marks[k].at[i]});
    json_out_end(o, ']');
}

#define AT(member) SHAPE_AT(struct tl_run, member)

static const struct shape shape_lane = {
    .members =
        (const struct shape_member[]){
            {"number", SHAPE_INT, AT(number), 0, "from 1; 0: what happened before the first run"},
            {"run_id", SHAPE_CHARS, AT(run_id), SHAPE_NULLABLE, "of the run"},
            {"continues", SHAPE_CHARS, AT(from_id), SHAPE_NULLABLE, "the run that it continues"},
            {"program", SHAPE_CHARS, AT(program), SHAPE_NULLABLE, "what runs"},
            {"started_at", SHAPE_TIME, AT(started_ms), SHAPE_NULLABLE, "when it began"},
            {"ended_at", SHAPE_TIME, AT(ended_ms), SHAPE_NULLABLE, "when it ended; null: it has not"},
            {"first_seq", SHAPE_INT, AT(first_seq), 0, "its first event"},
            {"last_seq", SHAPE_INT, AT(last_seq), 0, "its last event, of those that were read"},
            {"outcome", SHAPE_TEXT, AT(end), SHAPE_NULLABLE, "what became of it",
             .words = "running gone waiting completed failed cancelled interrupted", .has = is_run, .put = put_end},
            {"reason", SHAPE_CHARS, AT(reason), SHAPE_NULLABLE, "of its end"},
            {"error", SHAPE_CHARS, AT(error), SHAPE_NULLABLE, "of its end"},
            {"kept", SHAPE_INT, AT(kept.n), 0, "steps and nodes that earlier runs had finished: not run again"},
            {"kept_names", SHAPE_LIST, AT(kept), 0, "the names of those, as many as were noted", .put = put_kept_names},
            {"items", SHAPE_LIST, AT(items), 0, "steps, waits, sleeps and nodes, in order", .of = &shape_item,
             .put = put_items},
            {"omitted_items", SHAPE_INT, AT(omitted), 0, "items that are only counted", .put = put_omitted},
            {"marks", SHAPE_MAP, AT(marks), 0, "how many there were of what has no length", .items = SHAPE_INT,
             .put = put_marks},
            {"points", SHAPE_LIST, AT(marks), 0, "where these are; of too many of a kind, some", .of = &shape_point,
             .put = put_points},
            {.name = NULL},
        },
};
#undef AT

/* ---- all of it ---- */

#define AT(member) SHAPE_AT(struct tl_summary, member)

static const struct shape shape_summary = {
    .members =
        (const struct shape_member[]){
            {"events", SHAPE_INT, AT(events), 0, "events of the log"},
            {"other_events", SHAPE_INT, AT(other), 0, "events of kinds that are not known"},
            {"runs", SHAPE_INT, AT(runs), 0, "runs"},
            {"nodes", SHAPE_INT, AT(nodes), 0, "nodes of a graph that are complete"},
            {"steps", SHAPE_INT, AT(steps), 0, "steps"},
            {"ran_once", SHAPE_INT, AT(once), 0, "steps that were done once"},
            {"repeated", SHAPE_INT, AT(repeated), 0, "steps that were done more than once"},
            {"not_compared", SHAPE_INT, AT(not_compared), 0, "steps that were too many to compare"},
            {"begun_again", SHAPE_INT, AT(begun_again), 0, "steps that were interrupted and run again later"},
            {"settled", SHAPE_INT, AT(settled), 0, "steps that were interrupted and found to have happened"},
            {"failed", SHAPE_INT, AT(failed), 0, "steps that failed"},
            {"unknown", SHAPE_INT, AT(unknown), 0, "steps whose outcome is unknown"},
            {"cut", SHAPE_INT, AT(cut), 0, "steps that were interrupted"},
            {"under_way", SHAPE_INT, AT(open), 0, "steps that run now"},
            {"waits", SHAPE_INT, AT(waits), 0, "waits"},
            {"sleeps", SHAPE_INT, AT(sleeps), 0, "sleeps"},
            {"interruptions", SHAPE_INT, AT(interruptions), 0, "runs that were interrupted"},
            {"checkpoints", SHAPE_INT, AT(checkpoints), 0, "checkpoints"},
            {.name = NULL},
        },
};
#undef AT

static void put_lanes(struct json_out *o, const void *data)
{
    const struct timeline *t = data;

    json_out_begin(o, '[');
    for (size_t i = 0; i < t->n_runs; i++)
        shape_put(o, &shape_lane, &t->runs[i]);
    json_out_end(o, ']');
}

static void put_axis(struct json_out *o, const void *data)
{
    const struct timeline *t = data;

    json_out_begin(o, '[');
    for (size_t i = 0; i < t->n_axis; i++) {
        json_out_begin(o, '[');
        json_out_int(o, t->axis[i].seq);
        json_out_int(o, t->axis[i].ms);
        json_out_end(o, ']');
    }
    json_out_end(o, ']');
}

#define AT(member) SHAPE_AT(struct timeline, member)

const struct shape shape_timeline = {
    .name = "timeline",
    .help = "The life of a session: its runs, what each did, and what it kept of the runs before it.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_CHARS, AT(id), SHAPE_ID, "the session"},
            {"title", SHAPE_CHARS, AT(title), SHAPE_NULLABLE, "its title"},
            {"status", SHAPE_CHARS, AT(codes), 0, "its status, and its outcome when it is idle"},
            {"why", SHAPE_CHARS, AT(why), 0, "why, in a sentence"},
            {"runs", SHAPE_LIST, AT(runs), 0, "one lane each", .of = &shape_lane, .put = put_lanes},
            {"omitted_runs", SHAPE_INT, AT(omitted_runs), 0, "runs that are only counted"},
            {"partial", SHAPE_BOOL, AT(partial), 0, "it is a part: there are other events before or after it"},
            {"first_seq", SHAPE_INT, AT(first_seq), 0, "the first event that was read; 0: none"},
            {"last_seq", SHAPE_INT, AT(last_seq), 0, "the last event that was read"},
            {"axis", SHAPE_LIST, AT(axis), 0,
             "when events happened, for those between as well: [seq, Unix time in milliseconds], at most 256, none "
             "before the one to its left",
             .items = SHAPE_ANY, .put = put_axis},
            {"summary", SHAPE_OBJECT, AT(sum), 0, "figures of what was read", .of = &shape_summary},
            {.name = NULL},
        },
};
