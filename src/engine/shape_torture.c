/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct torture_fault, member)

static bool is_value(const void *fault)
{
    return ((const struct torture_fault *)fault)->key != NULL;
}

static void put_json(struct json_out *o, const char *json)
{
    json_out_raw(o, str_from(json ? json : "null"));
}

static void put_want(struct json_out *o, const void *fault)
{
    put_json(o, ((const struct torture_fault *)fault)->want);
}

static void put_got(struct json_out *o, const void *fault)
{
    put_json(o, ((const struct torture_fault *)fault)->got);
}

static SHAPE(torture_fault, "", {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
             {"killed", SHAPE_TEXT, AT(killed), 0, "where it was killed"},
             {"why", SHAPE_TEXT, AT(why), SHAPE_OPTIONAL, "why it did not end"},
             {"key", SHAPE_TEXT, AT(key), SHAPE_OPTIONAL, "what differs"},
             {"node", SHAPE_TEXT, AT(node), SHAPE_OPTIONAL, "the node"},
             {"want", SHAPE_ANY, AT(want), SHAPE_OPTIONAL, "its value in the run without a kill", .has = is_value,
              .put = put_want},
             {"got", SHAPE_ANY, AT(got), SHAPE_OPTIONAL, "its value in this one", .has = is_value, .put = put_got});
#undef AT

#define AT(member) SHAPE_AT(struct torture_report, member)
#define FAULTS(KIND) SHAPE_ROWS_AT(struct torture_report, faults[KIND].at, faults[KIND].n), .of = &shape_torture_fault

static SHAPE(crash_points, "", {"found", SHAPE_INT, AT(found), 0, "in the run without a kill"},
             {"tried", SHAPE_INT, AT(tried), 0, "of these"}, {"reached", SHAPE_INT, AT(reached), 0, "of these"},
             {"before_append", SHAPE_INT, AT(before_append), 0, "tried before something was recorded"},
             {"after_append", SHAPE_INT, AT(after_append), 0, "tried after it"},
             {"inside_node", SHAPE_INT, AT(inside_node), 0, "tried while a node worked"});

static void put_unsteady(struct json_out *o, const void *report)
{
    const struct torture_report *r = report;

    json_out_begin(o, '[');
    for (size_t i = 0; i < r->n_unsteady; i++)
        json_out_str(o, str_from(r->unsteady[i].what));
    json_out_end(o, ']');
}

static void put_uninterrupted(struct json_out *o, const void *report)
{
    json_out_int(o, ((const struct torture_report *)report)->uninterrupted_us / 1000);
}

SHAPE(torture, "A graph that was killed everywhere and resumed.",
      {"right", SHAPE_BOOL, AT(right), 0, "all checks passed"}, {"file", SHAPE_TEXT, AT(file), 0, "the graph"},
      {"store_kind", SHAPE_TEXT, AT(store_kind), 0, "in which kind of store", .words = "sqlite files"},
      {"ms", SHAPE_INT, AT(ms), 0, "how long all of it took"},
      {"uninterrupted_ms", SHAPE_INT, AT(uninterrupted_us), 0, "how long the run without a kill took",
       .put = put_uninterrupted},
      {"appends", SHAPE_INT, AT(appends), 0, "how often that recorded something"},
      {"crash_points", SHAPE_OBJECT, .help = "where it was killed", .of = &shape_crash_points},
      {"kills", SHAPE_INT, AT(kills), 0, "how often"},
      {"resumes", SHAPE_INT, AT(resumes), 0, "how often it was resumed"},
      {"seed", SHAPE_INT, AT(seed), 0, "of what was random"},
      {"cut_and_run_again", SHAPE_INT, AT(ran_again), 0, "nodes that may run again, and did"},
      {"said_to_have_happened", SHAPE_INT, AT(happened), 0, "answers about a node that must happen once: it had ended"},
      {"let_run_again", SHAPE_INT, AT(retried), 0, "the same: it had only begun"},
      {"outlived", SHAPE_INT, AT(left), 0, "processes of a killed run that still ran after the resume"},
      {"not_deterministic", SHAPE_LIST, AT(unsteady), 0, "what differs without a kill, and was not compared",
       .put = put_unsteady},
      {"complete_run_again", SHAPE_ROWS, FAULTS(FAULT_COMPLETE_AGAIN), .help = "complete nodes that ran again"},
      {"once_repeated", SHAPE_ROWS, FAULTS(FAULT_ONCE_AGAIN),
       .help = "effects that must happen once and were repeated"},
      {"differences", SHAPE_ROWS, FAULTS(FAULT_DIFFERS), .help = "values that differ"},
      {"not_ended", SHAPE_ROWS, FAULTS(FAULT_NOT_ENDED), .help = "sessions that did not end"},
      {"not_judged", SHAPE_ROWS, FAULTS(FAULT_UNJUDGED), .help = "sessions that took another path after a decision"},
      {"store", SHAPE_TEXT, AT(store), SHAPE_NULLABLE, "where the sessions are, when they are kept"});
