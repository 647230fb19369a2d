/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark recover: writes down what has happened to sessions while nobody was there (tide_recover), and with --run-due lets
 * those go on that are due, or, when asked, were interrupted. What a person stopped is never resumed here. Once, or with
 * --watch for as long as it is let: then trouble with the store is said, and waited for.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/error_hints.h"
#include "cli/cli.h"
#include "cli/terminal/progress.h"
#include "cli/recover_jobs.h"
#include "engine/settings.h"
#include "engine/store_url.h"
#include "program/proc.h"

#define LOOK_MS 200       /* how soon a signal and the end of a child are noticed */
#define CHANGE_MS 1000    /* a changing store is looked at so often at most */
#define INTERVAL_MS 30000 /* and a silent one so often at least */
#define MAX_RESUMES 3
#define MAX_JOBS 2

static const struct opt options[] = {
    {.name = "dry-run", .help = "say what would be done, and why; write nothing"},
    {.name = "run-due", .help = "then let go on what is due, and what --auto-resume names"},
    {.name = "watch", .help = "stay, and do it again whenever there is something to do"},
    {.name = "auto-resume",
     .type = VALUE_WORD,
     .value = "WHAT",
     .words = "off live all",
     .help = "with --run-due, of interrupted sessions: off (none), live (what ran when its process died) or all "
             "(default: $TIDEMARK_AUTO_RESUME, else off); never what a person stopped"},
    {.name = "max-resumes",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "let a session go on at most N times without getting further (default: 3)"},
    {.name = "jobs",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "run at most N at once (default: 2)"},
    {.name = "interval",
     .type = VALUE_DURATION,
     .value = "D",
     .help = "with --watch: look at least so often (default: 30s)"},
    {.name = NULL},
};

enum auto_resume { AUTO_OFF, AUTO_LIVE, AUTO_ALL };

struct recovering {
    struct cli *cli;
    struct jobs jobs;
    bool dry, run_due;
    enum auto_resume automatic;
    int max_resumes;
    struct tide_recovery found;
    int64_t would_resume;
    char (*candidates)[TIDE_ID_SIZE];
    size_t n_candidates, cap;
    char trouble[512]; /* of a watch: the same trouble is said once */
    struct map told;   /* id -> uint64_t * hash of what was said: a watch says it once */
};

/* ---- what goes on -------------------------------------------------------------------------------------------------- */

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

/* One that was parked when it was interrupted has to be asked again by a person. */
static bool goes_on(const struct recovering *r, const struct tide_recovered *what)
{
    if (!r->run_due || !what->has_program || what->by_person || !what->trusted)
        return false;
    if (is(what->action, "due"))
        return true;
    if (!is(what->status, "interrupted_startup"))
        return false;
    if (what->resumes >= r->max_resumes)
        return false;
    return r->automatic == AUTO_ALL || (r->automatic == AUTO_LIVE && is(what->reason, "process_restart"));
}

static void add_candidate(struct recovering *r, const char *id)
{
    for (size_t i = 0; i < r->n_candidates; i++)
        if (strcmp(r->candidates[i], id) == 0)
            return;
    if (r->n_candidates == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 16;
        r->candidates = mem_grow(r->candidates, r->cap * sizeof(*r->candidates));
    }
    snprintf(r->candidates[r->n_candidates++], TIDE_ID_SIZE, "%s", id);
}

/* ---- saying -------------------------------------------------------------------------------------------------------- */

static void say_json(struct recovering *r, const struct tide_recovered *what, bool resumes)
{
    struct json_out o = out_json(&r->cli->out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("action"), str_from(what->action));
    json_out_kstr(&o, STR("session_id"), str_from(what->session_id));
    json_kopt(&o, "reason", what->reason);
    json_kopt(&o, "why", what->why);
    json_out_kint(&o, STR("resumes"), what->resumes);
    json_out_kbool(&o, STR("has_program"), what->has_program);
    json_out_kbool(&o, STR("by_person"), what->by_person);
    json_out_kbool(&o, STR("trusted"), what->trusted);
    json_out_kbool(&o, STR("goes_on"), resumes);
    json_out_kbool(&o, STR("dry_run"), r->dry);
    json_out_end(&o, '}');
    out_json_end(&r->cli->out);
}

static bool is_spent(const struct recovering *r, const struct tide_recovered *what)
{
    return r->run_due && what->resumes >= r->max_resumes;
}

static void say_text(struct recovering *r, const struct tide_recovered *what, bool resumes)
{
    struct out *out = &r->cli->out;
    bool due = is(what->action, "due");

    out_colored(out, due ? COLOR_CYAN : COLOR_YELLOW, what->action);
    outf(out, "%*s %s: ", (int)(13 - strlen(what->action)), "", what->session_id);
    out_value(out, what->why);
    if (resumes && r->dry)
        outf(out, "; it would go on");
    else if (!what->trusted)
        outf(out, ": `tidemark sessions trust %s` shows what would run", what->session_id);
    else if (r->run_due && !what->has_program)
        outf(out, "; it has no program that could be run here");
    else if (is_spent(r, what) && !due)
        outf(out, "; it was resumed %d times without getting further: it needs a person", what->resumes);
    else if (is(what->action, "interrupted") && what->has_program && !resumes)
        outf(out, "; `tidemark resume %s` lets it go on, or %s--auto-resume live", what->session_id,
             r->run_due ? "" : "--run-due ");
    outf(out, "\n");
}

static void say_summary(struct recovering *r)
{
    struct out *out = &r->cli->out;
    struct json_out o = out_json(out);
    const struct tide_recovery *f = &r->found;
    const struct {
        const char *name, *words;
        int64_t n;
    } counts[] = {{"looked_at", "looked at", f->looked_at},
                  {"interrupted", "interrupted", f->interrupted},
                  {"timed_out", "timed out", f->timed_out},
                  {"tokens_expired", "with an expired token", f->tokens_expired},
                  {"due", "due", f->due}};
    char when[TIME_TEXT_SIZE];

    if (out->json) {
        json_out_begin(&o, '{');
        json_out_key(&o, STR("summary"));
        json_out_begin(&o, '{');
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            json_out_kint(&o, str_from(counts[i].name), counts[i].n);
        json_out_kint(&o, STR("resumed"), r->jobs.started);
        json_out_kint(&o, STR("failed"), r->jobs.ended_badly);
        json_out_kbool(&o, STR("dry_run"), r->dry);
        if (f->next_ms > 0 && f->next_ms < INT64_MAX)
            json_ktime(&o, "next_at", f->next_ms);
        else
            json_kopt(&o, "next_at", NULL);
        json_out_end(&o, '}');
        json_out_end(&o, '}');
        out_json_end(out);
        return;
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        outf(out, "%s%" PRId64 " %s", i ? ", " : "", counts[i].n, counts[i].words);
    if (r->run_due)
        outf(out, ", %" PRId64 " %s", r->dry ? r->would_resume : r->jobs.started, r->dry ? "would go on" : "resumed");
    if (r->jobs.ended_badly)
        outf(out, ", %" PRId64 " of them failed", r->jobs.ended_badly);
    if (f->due == 0 && f->next_ms > 0 && f->next_ms < INT64_MAX) {
        time_format(when, f->next_ms);
        when[10] = ' ';
        outf(out, "; the next is due at %.19s UTC", when);
    }
    outf(out, "\n");
}

/* ---- one pass ------------------------------------------------------------------------------------------------------ */

static bool was_told(struct recovering *r, const struct tide_recovered *what)
{
    uint64_t *told = map_get(&r->told, str_from(what->session_id)), now = str_hash(str_from(what->why));

    if (told && *told == now)
        return true;
    if (!told) {
        told = mem_zero(sizeof(*told));
        map_put(&r->told, str_from(what->session_id), told);
    }
    *told = now;
    return false;
}

static int on_recovered(void *arg, const struct tide_recovered *what)
{
    struct recovering *r = arg;
    bool resumes = goes_on(r, what), news = !is(what->action, "resumable");

    if (resumes)
        add_candidate(r, what->session_id);
    if ((news || resumes) && !was_told(r, what))
        (r->cli->out.json ? say_json : say_text)(r, what, resumes);
    return stop_signal != 0;
}

/* Those that were interrupted before; the others have been told by the pass before this one. */
static int on_resumable(void *arg, const struct tide_recovered *what)
{
    return is(what->action, "resumable") ? on_recovered(arg, what) : 0;
}

static enum tide_code pass(struct recovering *r, struct tide_err *err)
{
    unsigned flags = r->dry ? TIDE_RECOVER_DRY_RUN : 0u;
    enum tide_code code = tide_recover(r->cli->store, flags, on_recovered, r, &r->found, err), more;
    struct tide_err later;

    if (r->run_due && r->automatic != AUTO_OFF &&
        (!code || code == TIDE_CORRUPT)) { /* one damaged is in nobody's way */
        more = tide_recover(r->cli->store, flags | TIDE_RECOVER_ALL, on_resumable, r, NULL, code ? &later : err);
        code = code ? code : more;
    }
    if (!code || code == TIDE_CORRUPT)
        jobs_keep_failed(&r->jobs, r->candidates, r->n_candidates);
    for (size_t i = 0; i < r->n_candidates && !stop_signal; i++) {
        r->would_resume++;
        if (!r->dry)
            jobs_add(&r->jobs, r->candidates[i]);
    }
    r->n_candidates = 0;
    return code;
}

/* ---- once, and for ever -------------------------------------------------------------------------------------------- */

static enum tide_code once(struct recovering *r, struct tide_err *err)
{
    struct tide_err later;
    enum tide_code code = pass(r, err), flushed = out_flush(&r->cli->out, code ? &later : err);

    if (flushed)
        return code ? code : flushed;
    jobs_finish(&r->jobs);
    if (!code && stop_signal)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    if (code && code != TIDE_CORRUPT) /* one damaged is told last: the others were looked at */
        return code;
    say_summary(r);
    flushed = out_flush(&r->cli->out, code ? &later : err);
    return code ? code : flushed;
}

/* Trouble passes: it is said when it begins and when it changes, and the watch goes on. */
static void say_trouble(struct recovering *r, enum tide_code code, struct tide_err *err)
{
    if (code && strcmp(r->trouble, err->msg) != 0)
        say_clean(err_text(err));
    if (!code && r->trouble[0])
        fprintf(stderr, "tidemark: recover: goes on\n");
    snprintf(r->trouble, sizeof(r->trouble), "%s", code ? err->msg : "");
}

/* How long there is nothing to do: until the interval is over, or the next is due. That one goes by the clock, which may be set. */
static int64_t time_left(const struct recovering *r, int64_t began_ms, int64_t interval_ms)
{
    int64_t left = began_ms + interval_ms - proc_clock_ms(), due = r->found.next_ms - now_ms();

    return r->found.next_ms > 0 && due < left ? due : left;
}

/* Waits until the next pass: by the clock, or because the store has changed and the last pass was a second ago. */
static void wait_for_work(struct recovering *r, tide_watch *watch, int64_t began_ms, int64_t interval_ms)
{
    int64_t left, badly = r->jobs.ended_badly;
    int now = 0;
    bool changed = false;

    while (!stop_signal && (left = time_left(r, began_ms, interval_ms)) > 0 &&
           !(changed && proc_clock_ms() >= began_ms + CHANGE_MS)) {
        if (tide_watch_wait(watch, left < LOOK_MS ? (int)left : LOOK_MS, &now, NULL) || now)
            changed = true;
        if (changed && proc_clock_ms() < began_ms + CHANGE_MS) /* it may be changing all the time */
            poll(NULL, 0, LOOK_MS);
        jobs_step(&r->jobs);
        changed |= r->jobs.ended_badly != badly; /* is it still to go on, or was somebody else faster? */
    }
}

static enum tide_code watch(struct recovering *r, int64_t interval_ms, struct tide_err *err)
{
    AUTO(watch_closep) tide_watch *changes = NULL;
    enum tide_code code = tide_watch_open(r->cli->store, &changes, err);

    if (!code && isatty(STDERR_FILENO))
        fprintf(stderr, "tidemark: watching %s; Ctrl-C ends it\n", store_url_path(buf_cstr(&r->jobs.url)));
    while (!stop_signal && !code) {
        struct tide_err trouble;
        int64_t began_ms = proc_clock_ms();
        enum tide_code passed;
        int seen;

        (void)!tide_watch_wait(changes, 0, &seen, NULL); /* what changes from here on wakes the wait */
        passed = pass(r, &trouble);
        if (!(passed == TIDE_CANCELLED && stop_signal))
            say_trouble(r, passed, &trouble);
        code = out_flush(&r->cli->out, err);
        jobs_step(&r->jobs);
        if (!code)
            wait_for_work(r, changes, began_ms, interval_ms);
    }
    jobs_finish(&r->jobs);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static enum tide_code check_options(const struct args *args, struct tide_err *err)
{
    static const char *const of_run_due[] = {"auto-resume", "max-resumes", "jobs"};

    for (size_t i = 0; i < sizeof(of_run_due) / sizeof(of_run_due[0]); i++)
        if (args_on(args, of_run_due[i]) && !args_on(args, "run-due"))
            return tide_fail(err, TIDE_INVALID, "recover: --%s goes with --run-due", of_run_due[i]);
    if (args_on(args, "interval") && !args_on(args, "watch"))
        return tide_fail(err, TIDE_INVALID, "recover: --interval goes with --watch");
    if (args_on(args, "watch") && args_on(args, "dry-run"))
        return tide_fail(err, TIDE_INVALID, "recover: --watch and --dry-run: give one of them");
    if (args_on(args, "run-due") && args_on(args, "key-fd"))
        return tide_fail(err, TIDE_INVALID,
                         "recover: --run-due starts further processes, which cannot read --key-fd "
                         "again: give --key-file");
    return TIDE_OK;
}

static enum tide_code choose_automatic(const struct cli *cli, enum auto_resume *ret, struct tide_err *err)
{
    static const char *const words[] = {[AUTO_OFF] = "off", [AUTO_LIVE] = "live", [AUTO_ALL] = "all"};
    const char *given = args_text(&cli->args, "auto-resume"), *env = getenv("TIDEMARK_AUTO_RESUME");
    AUTO(mem_freep) char *set = NULL;

    given = given ? given : env && *env ? env : NULL;
    if (!given && args_on(&cli->args, "run-due") &&
        settings_one(args_text(&cli->args, "config"), "auto_resume", &set, err))
        return err->code;
    given = given ? given : set ? set : "off";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], given) == 0) {
            *ret = (enum auto_resume)i;
            return TIDE_OK;
        }
    }
    return tide_fail(err, TIDE_INVALID, "$TIDEMARK_AUTO_RESUME: '%.60s' is none of: off live all", given);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const struct args *args = &cli->args;
    struct recovering r = {.cli = cli, .dry = args_on(args, "dry-run"), .run_due = args_on(args, "run-due")};
    int64_t interval = args_int(args, "interval", INTERVAL_MS);
    enum tide_code code = check_options(args, err);

    r.max_resumes = (int)args_int(args, "max-resumes", MAX_RESUMES);
    code = code ? code : choose_automatic(cli, &r.automatic, err);
    code = code ? code : cli_store_open(cli, r.dry ? NEED_READ : NEED_WRITE, 0, err);
    code = code ? code : jobs_init(&r.jobs, cli, (int)args_int(args, "jobs", MAX_JOBS), r.max_resumes, err);
    if (!code)
        code = args_on(args, "watch") ? watch(&r, interval < CHANGE_MS ? CHANGE_MS : interval, err) : once(&r, err);
    jobs_done(&r.jobs);
    map_done(&r.told, free);
    free(r.candidates);
    return code;
}

const struct command cmd_recover = {
    .name = "recover",
    .run = run,
    .options = options,
    .help = "write down what has happened to sessions while nobody was there, and let go on what is due",
    .more =
        "Runs whose process is gone are interrupted, waits past their deadline are over, tokens past their time have\n"
        "expired: each is written down once, however many processes do this at once. Only sessions that run or wait\n"
        "are looked at. With --run-due a session goes on in a process of its own, as with `tidemark resume ID`; what\n"
        "it prints goes to standard error. What did not begin here and nobody has trusted is not run: its line names\n"
        "`tidemark sessions trust ID`. A service needs your key of origin: see TRUST in tidemark-recover(1).",
};
