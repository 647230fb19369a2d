/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark torture: runs a graph to its end without harm, twice, to learn where it can be killed and what it comes to; then
 * kills it in each of these places, with SIGKILL, in a session of its own, and lets it go on. What the world saw of it is
 * held against what was promised: what is complete never runs again, what must happen once never happens twice, and the end
 * is the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_inputs.h"
#include "cli/graph/graph_set.h"
#include "cli/graph/graph_view.h"
#include "cli/options.h"
#include "cli/terminal/progress.h"
#include "cli/temporary.h"
#include "cli/torture/torture.h"
#include "engine/store_url.h"
#include "graph/exec.h"
#include "program/proc.h"

#define POINTS_DEFAULT 100

static const struct opt options[] = {
    {.name = "crash-points",
     .type = VALUE_TEXT,
     .value = "all|N",
     .words = "all",
     .help = "in how many places it is killed: all, or N spread over them, one in each of N equal parts "
             "(default: all, at most 100)"},
    {OPT_MANY("set", "KEY=VALUE", "set a key of the memory before anything runs, as of `tidemark run`")},
    {.name = "answer",
     .type = VALUE_TEXT,
     .value = "TEXT",
     .many = true,
     .help = "what is answered when it asks a person, in the order of the questions; the last one counts for all that "
             "follow (default: yes)"},
    {.name = "kills",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 20,
     .help = "kill every session up to N times: after the first, in places taken at random (default: 1)"},
    {.name = "seed", .type = VALUE_INT, .value = "N", .help = "of what is random (default: another one each time)"},
    {.name = "script", .type = VALUE_FILE, .value = "FILE", .help = "agents answer from this file: no account needed"},
    {.name = "yes", .help = "allow every tool of agents that the settings do not refuse"},
    {.name = "keep", .help = "keep the store with all sessions, also when nothing is wrong"},
    {.name = NULL},
};

/* xorshift64*: the same seed, the same places. */
uint64_t torture_random(struct torture *t)
{
    t->random ^= t->random >> 12;
    t->random ^= t->random << 25;
    t->random ^= t->random >> 27;
    return (t->random * UINT64_C(2685821657736338717)) >> 16;
}

static const char *kept(struct torture *t, const char *text)
{
    return text ? arena_dup(&t->arena, str_from(text)).ptr : NULL;
}

void torture_fault(struct torture *t, const struct trial *trial, enum fault_kind kind, const char *what,
                   const char *want, const char *got)
{
    struct fault *f;

    if (trial->told && (kind == FAULT_DIFFERS || kind == FAULT_NOT_ENDED)) {
        kind = FAULT_UNJUDGED;
        what = trial->told;
    }
    if (t->n_faults == t->cap_faults) {
        t->cap_faults = t->cap_faults ? t->cap_faults * 2 : 64;
        t->faults = mem_grow(t->faults, t->cap_faults * sizeof(*t->faults));
    }
    f = &t->faults[t->n_faults++];
    *f = (struct fault){.kind = kind,
                        .point = point_text(&t->arena, &trial->point),
                        .what = kept(t, what),
                        .want = kept(t, want),
                        .got = kept(t, got)};
    snprintf(f->session_id, sizeof(f->session_id), "%s", trial->session_id);
    t->by_kind[kind]++;
}

bool torture_is_wrong(const struct torture *t)
{
    return t->n_faults > t->by_kind[FAULT_UNJUDGED];
}

/* ---- what is asked for ---- */

static enum tide_code take_count(struct torture *t, struct tide_err *err)
{
    const char *text = args_text(&t->cli->args, "crash-points");
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : POINTS_DEFAULT;

    if (text && strcmp(text, "all") == 0)
        n = INT64_MAX;
    else if (text && (!*text || *end || n < 1 || n > 1000000))
        return tide_fail(err, TIDE_INVALID, "--crash-points %.40s: give all, or a number from 1 to 1000000", text);
    t->wanted = (size_t)n;
    return TIDE_OK;
}

static bool is_secret(const struct torture *t, struct str key)
{
    const struct spec_texts *keys = &t->spec->checkpoints.exclude_memory_keys;

    for (size_t i = 0; i < keys->n; i++)
        if (str_eq(keys->at[i], key))
            return true;
    return false;
}

/* What is stored nowhere has to be said again whenever it goes on. */
static void take_secrets(struct torture *t)
{
    AUTO(buf_done) struct buf text = BUF_INIT(GRAPH_SETS_MAX);
    struct json_out o = json_out_to(&text);
    struct json *v = NULL;

    if (json_parse(&t->arena, str_from(t->memory), NULL, &v, NULL, NULL))
        return;
    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next)
        if (is_secret(t, json_key_text(&t->arena, m)))
            json_out_kraw(&o, json_key_text(&t->arena, m), json_source(m));
    json_out_end(&o, '}');
    t->secrets = text.len > 2 ? arena_dup(&t->arena, buf_view(&text)).ptr : NULL;
}

static enum tide_code take_memory(struct torture *t, struct tide_err *err)
{
    AUTO(buf_done) struct buf json = BUF_INIT(GRAPH_SETS_MAX);
    AUTO(mem_freep) const char **sets = args_all(&t->cli->args, "set");
    struct graph_want want = {.no_input = true};

    if ((sets[0] && graph_set_read(sets, &json, err)) ||
        graph_given(t->cli, t->graph, NULL, &want, &json, err)) /* before any program has run */
        return err->code;
    if (!json.len)
        return TIDE_OK;
    t->memory = arena_dup(&t->arena, buf_view(&json)).ptr;
    take_secrets(t);
    return TIDE_OK;
}

static void take_answers(struct torture *t)
{
    AUTO(mem_freep) const char **texts = args_all(&t->cli->args, "answer");
    size_t n = 0;

    while (texts[n])
        n++;
    t->n_answers = n ? n : 1;
    t->answers = arena_alloc(&t->arena, t->n_answers * sizeof(*t->answers));
    for (size_t i = 0; i < t->n_answers; i++) {
        AUTO(buf_done) struct buf json = BUF_INIT(GRAPH_SETS_MAX);

        json_quote(&json, str_from(n ? texts[i] : "yes"));
        t->answers[i] = arena_dup(&t->arena, buf_view(&json)).ptr;
    }
}

static const char *dir_of(struct arena *a, const char *file)
{
    const char *slash = strrchr(file, '/');

    return !slash ? "." : slash == file ? "/" : arena_dup(a, (struct str){file, (size_t)(slash - file)}).ptr;
}

static enum tide_code take_graph(struct torture *t, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(4 * SPEC_MAX_BYTES);
    const struct graph_want want = {.script = t->script, .yes = args_on(&t->cli->args, "yes")};

    if (spec_read(t->file, &text, err))
        return err->code;
    if (tide_graph_parse(text.ptr ? text.ptr : "", text.len, dir_of(&t->arena, t->file), NULL, NULL, &t->graph, err))
        return tide_wrap(err, "%.150s", t->file);
    t->spec = t->graph->spec->graph;
    return graph_check_here(t->cli, t->graph, &want, err);
}

static void take_seed(struct torture *t)
{
    uint32_t random = 1;

    (void)!getrandom(&random, sizeof(random), 0);
    t->seed = (uint64_t)args_int(&t->cli->args, "seed", (int64_t)(random % 1000000));
    t->random = t->seed * UINT64_C(0x9E3779B97F4A7C15) + 1; /* never zero for a seed that fits */
}

/* ---- a place of its own ---- */

/* Never the store that is named: one of its kind. */
static enum tide_code take_kind(struct torture *t, struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(1 << 16);

    if (cli_store_url(t->cli, &url, err))
        return err->code;
    t->files = store_url_is_files(buf_cstr(&url));
    return TIDE_OK;
}

static enum tide_code make_place(struct torture *t, struct tide_err *err)
{
    const char *tmp = getenv("TMPDIR");

    if (take_kind(t, err))
        return err->code;
    tmp = tmp && *tmp ? tmp : "/tmp";
    snprintf(t->dir, sizeof(t->dir), "%.400s/tidemark-torture.XXXXXX", tmp);
    if (!mkdtemp(t->dir)) {
        t->dir[0] = '\0';
        return tide_fail_errno(err, errno, "make a directory in '%.200s'", tmp);
    }
    snprintf(t->store, sizeof(t->store), t->files ? "files:%s/store" : "sqlite:%s/torture.db", t->dir);
    return TIDE_OK;
}

static void remove_place(struct torture *t)
{
    if (t->dir[0])
        temporary_remove(t->dir);
    t->dir[0] = '\0';
}

/* Programs are told the session's id: no two tortures may use the same. */
static void name_trial(struct torture *t, struct trial *trial, const char *prefix, size_t n)
{
    snprintf(trial->session_id, sizeof(trial->session_id), "%s-%zu-%s", prefix, n, strrchr(t->dir, '.') + 1);
    snprintf(t->ledger, sizeof(t->ledger), "%s/%s.ledger", t->dir, trial->session_id);
}

/* ---- without harm ---- */

static void add_point(struct torture *t, struct point p)
{
    t->points = mem_grow(t->points, (t->n_points + 1) * sizeof(*t->points));
    t->points[t->n_points++] = p;
}

static int64_t end_of(const struct deeds *f, size_t begin)
{
    const struct deed *b = &f->at[begin];

    for (size_t i = begin + 1; i < f->n; i++)
        if (f->at[i].kind == DEED_END && strcmp(f->at[i].node, b->node) == 0 && f->at[i].visit == b->visit &&
            f->at[i].attempt == b->attempt)
            return f->at[i].us;
    return b->us;
}

/* In the order in which it comes to them. */
static void find_points(struct torture *t)
{
    int64_t append = 0;

    for (size_t i = 0; i < t->deeds.n; i++) {
        const struct deed *f = &t->deeds.at[i];

        if (f->kind == DEED_APPEND) {
            append++;
            add_point(t, (struct point){.kind = POINT_BEFORE, .append = append, .about = f->about});
            add_point(t, (struct point){.kind = POINT_AFTER, .append = append, .about = f->about});
        } else if (f->kind == DEED_BEGIN) {
            add_point(t, (struct point){.kind = POINT_INSIDE,
                                        .node = f->node,
                                        .visit = f->visit,
                                        .attempt = f->attempt,
                                        .after_us = (end_of(&t->deeds, i) - f->us) / 2});
        }
    }
}

/* A graph that fails by itself proves nothing. */
static enum tide_code check_unharmed(struct torture *t, struct tide_err *err)
{
    const char *what, *advice;

    if (!t->n_faults)
        return TIDE_OK;
    what = t->faults[0].what;
    advice = hint_in(what); /* names a session of a store that is removed */
    if (!advice || !strstr(advice, "`tidemark "))
        advice = what + strlen(what) + 2;
    return tide_fail(err, TIDE_FAILED,
                     "%.100s does not come to its end though nobody kills it: %.*s: `tidemark run %.100s` shows it",
                     t->file, (int)(advice - 2 - what), what, t->file);
}

static enum tide_code run_unharmed(struct torture *t, struct tide_err *err)
{
    const struct point never = {.kind = POINT_NONE};
    struct trial second = {.kills = 0};

    name_trial(t, &t->base, "unharmed", 1);
    if (trial_run(t, &t->arena, &never, &t->base, err) || check_unharmed(t, err) ||
        deeds_read(&t->arena, t->ledger, &t->deeds, err))
        return err->code;
    name_trial(t, &second, "unharmed", 2);
    if (trial_run(t, &t->arena, &never, &second, err) || check_unharmed(t, err))
        return err->code;
    torture_compare(t, &second, true);
    find_points(t);
    return TIDE_OK;
}

/* ---- with harm ---- */

static enum tide_code judge(struct torture *t, struct trial *trial, struct arena *a, struct tide_err *err)
{
    size_t faults = t->n_faults;
    struct deeds deeds;

    if (deeds_read(a, t->ledger, &deeds, err))
        return err->code;
    torture_judge(t, trial, &deeds);
    deeds_done(&deeds);
    if (trial->completed) /* it came to its end */
        torture_compare(t, trial, false);
    t->tried++;
    t->reached += trial->reached;
    t->all_kills += trial->kills;
    t->all_resumes += trial->resumes;
    t->ran_again += trial->ran_again;
    t->happened += trial->happened;
    t->retried += trial->retried;
    if (t->n_faults == faults && !t->keep)
        unlink(t->ledger);
    return TIDE_OK;
}

static enum tide_code harm_once(struct torture *t, const struct point *point, size_t n, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct trial trial = {.kills = 0};

    name_trial(t, &trial, "killed", n);
    return trial_run(t, &a, point, &trial, err) ? err->code : judge(t, &trial, &a, err);
}

/* As many as are wanted, to the front: of as many equal parts one each, whichever. */
static void choose_points(struct torture *t)
{
    size_t n = t->n_points;

    t->wanted = t->wanted < n ? t->wanted : n;
    for (size_t i = 0; i < t->wanted; i++) {
        size_t from = i * n / t->wanted, to = (i + 1) * n / t->wanted;

        t->points[i] = t->points[from + torture_random(t) % (to - from)];
    }
}

static enum tide_code harm_all(struct torture *t, struct tide_err *err)
{
    struct progress p;
    enum tide_code code = TIDE_OK;

    choose_points(t);
    progress_init(&p, "torture", "crash points");
    for (size_t i = 0; i < t->wanted && !code; i++) {
        code = harm_once(t, &t->points[i], i + 1, err);
        progress_step(&p, i + 1, t->wanted);
    }
    progress_done(&p);
    return code;
}

/* ---- the command ---- */

static enum tide_code torture(struct torture *t, struct tide_err *err)
{
    int64_t began = proc_clock_ms();

    if (take_count(t, err) || take_graph(t, err) || take_memory(t, err) || make_place(t, err))
        return err->code;
    take_answers(t);
    take_seed(t);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what killed children leave behind becomes ours, and is found */
    if (run_unharmed(t, err) || harm_all(t, err))
        return err->code;
    t->keep = t->keep || torture_is_wrong(t);
    torture_report(t, proc_clock_ms() - began);
    t->cli->exit_status = torture_is_wrong(t) ? 1 : 0;
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct torture t = {.cli = cli,
                        .file = args_operand(&cli->args, 0),
                        .script = args_text(&cli->args, "script"),
                        .kills = (int)args_int(&cli->args, "kills", 1),
                        .keep = args_on(&cli->args, "keep"),
                        .arena = ARENA_INIT};
    enum tide_code code = torture(&t, err);

    if (code || !t.keep)
        remove_place(&t);
    tide_graph_free(t.graph);
    deeds_done(&t.deeds);
    map_done(&t.asked, NULL);
    map_done(&t.unsteady, NULL);
    free(t.points);
    free(t.faults);
    arena_done(&t.arena);
    return code;
}

const struct command cmd_torture = {
    .name = "torture",
    .run = run,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .options = options,
    .help = "kill a graph everywhere and resume it: nothing lost, nothing done twice, the same end?",
    .more =
        "The programs of the graph REALLY RUN, many times over, here and now: give it a harmless copy.\n"
        "It is killed with SIGKILL before and after everything that it records and inside every node, each time in a\n"
        "session of its own in a temporary store, of the kind that --store names, and resumed to its end. Exit status 0\n"
        "when all is as promised, 1 when a complete node ran again, an effect that must happen once was repeated, an\n"
        "output differs or a session did not end: then the store is kept.",
};
