/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor looks at in a store that opens: its figures, what runs, and the newest events. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/number.h"
#include "engine/doctor_internal.h"
#include "engine/session_next.h"
#include "engine/session_words.h"

#define LOOK_SESSIONS 8  /* the newest ones, whose */
#define LOOK_EVENTS 1000 /* last events are read and so proved */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void say_figures(struct doctor *d)
{
    int64_t sessions = json_get_int(d->info, STR("sessions"), 0), events = json_get_int(d->info, STR("events"), 0);
    char file[32], wal[32];

    if (d->is_files)
        doctor_say(d, VERDICT_OK, NULL, "version %" PRId64 ", %" PRId64 " session%s, %" PRId64 " event%s, %s of logs",
                   json_get_int(d->info, STR("version"), 0), sessions, plural(sessions), events, plural(events),
                   bytes_text(file, json_get_int(d->info, STR("log_bytes"), 0)));
    else
        doctor_say(d, VERDICT_OK, NULL,
                   "version %" PRId64 ", %" PRId64 " session%s, %" PRId64
                   " event%s, %s and %s of write-ahead log, SQLite %.*s",
                   json_get_int(d->info, STR("schema_version"), 0), sessions, plural(sessions), events, plural(events),
                   bytes_text(file, json_get_int(d->info, STR("file_bytes"), 0)),
                   bytes_text(wal, json_get_int(d->info, STR("wal_bytes"), 0)),
                   STR_ARG(json_get_text(&d->arena, d->info, STR("sqlite"))));
}

void doctor_figures(struct doctor *d)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *info = NULL;

    if (!d->store)
        return;
    if (tide_store_get_info(d->store, &text, &d->err) ||
        json_parse(&d->arena, arena_dup(&d->arena, (struct str){text.ptr, text.len}), NULL, &info, NULL, &d->err)) {
        doctor_say_error(d);
        return;
    }
    d->info = info;
    say_figures(d);
}

void doctor_torn(struct doctor *d)
{
    int64_t torn = d->info ? json_get_int(d->info, STR("torn_tails"), 0) : 0;

    if (torn > 0)
        doctor_say(d, VERDICT_WARN, "nothing to do: the next write removes it and keeps it in a file",
                   "%" PRId64 " log%s in an incomplete write", torn, torn == 1 ? " ends" : "s end");
}

void doctor_live(struct doctor *d)
{
    int64_t live = d->info ? json_get_int(d->info, STR("live_sessions"), 0) : 0;

    if (live > 0)
        doctor_say(d, VERDICT_OK, NULL, "%" PRId64 " session%s held by a process, or waiting", live, plural(live));
}

/* It goes when the disk is full, and comes back with the next writing command once there is room. */
void doctor_reserve(struct doctor *d)
{
    if (!d->info || d->is_files)
        return;
    if (json_get_int(d->info, STR("reserve_bytes"), 0) > 0)
        doctor_say(d, VERDICT_OK, NULL, "space is reserved for a full disk");
    else if (d->free_bytes >= DOCTOR_SPACE_WARN)
        doctor_say(d, VERDICT_WARN, "nothing to do: the next command that writes creates it again",
                   "no space is reserved for a full disk");
    else
        doctor_say(d, VERDICT_WARN, "free some space: the next command that writes creates it again",
                   "the space reserved for a full disk is used");
}

static int on_running(void *arg, const struct tide_session_info *info)
{
    static const struct finding_kind running = {"running", "sessions are running", 0, NULL, NULL};

    doctor_say_of(arg, (struct doctor_about){.kind = &running, .about = info->id}, VERDICT_OK, NULL,
                  "%s is running: %s", info->id, info->why ? info->why : "");
    return 0;
}

/* Why it needs a resume. */
static const struct finding_kind *kind_of(const struct tide_session_info *info)
{
#define CONTINUES TIDE_ACTION_RESUME, "{}", "continues one"
    static const struct finding_kind failed = {"failed", "sessions whose last run failed", CONTINUES},
                                     interrupted = {"interrupted", "sessions that were interrupted", CONTINUES},
                                     unanswered = {"unanswered", "sessions that were not answered in time", CONTINUES},
                                     other = {"stopped", "sessions that need a resume", CONTINUES};
#undef CONTINUES

    switch (info->status) {
    case TIDE_STATUS_INTERRUPTED_STARTUP:
        return &interrupted;
    case TIDE_STATUS_INTERRUPTED_WAITING:
        return &unanswered;
    default:
        return info->outcome == TIDE_OUTCOME_FAILED ? &failed : &other;
    }
}

static int on_needs_resume(void *arg, const struct tide_session_info *info)
{
    char state[24];
    const struct doctor_about of = {kind_of(info), info->id, state, .next = info->next};

    snprintf(state, sizeof(state), "%" PRId64, info->last_seq);
    if (info->needs_resume && info->run_ended_ms) /* the others are what recovery would write down */
        doctor_say_of(arg, of, VERDICT_WARN, NULL, "%s: %s", info->id,
                      info->why ? info->why : status_word(info->status));
    return 0;
}

void doctor_sessions(struct doctor *d)
{
    const struct tide_list_filter running = {.size = sizeof running, .status = "running"};

    if (!d->store)
        return;
    if (tide_session_list(d->store, &running, on_running, d, &d->err) ||
        session_list_next(d->store, NULL, on_needs_resume, d, &d->err))
        doctor_say_error(d);
}

static bool is_held_back(const struct tide_recovered *what)
{
    return what->action == TIDE_RECOVERED_DUE && !what->trusted;
}

/* What `tidemark recover` would do, and to which sessions. */
static const struct finding_kind *kind_of_recovery(const struct tide_recovered *what)
{
#define RECORDS TIDE_ACTION_RECOVER, "{}", "records it"
    static const struct finding_kind held_back = {"due_untrusted", "sessions that are due and not trusted",
                                                  TIDE_ACTION_TRUST, "{}", "shows what one would run"};
    static const struct finding_kind kinds[] = {
        [TIDE_RECOVERED_INTERRUPTED] = {"interrupted", "sessions that were interrupted", RECORDS},
        [TIDE_RECOVERED_TIMED_OUT] = {"timed_out", "sessions whose deadline has passed", RECORDS},
        [TIDE_RECOVERED_TOKEN_EXPIRED] = {"token_expired", "sessions whose token has expired", RECORDS},
        [TIDE_RECOVERED_ANSWERED] = {"answered", "sessions whose default answers", RECORDS},
        [TIDE_RECOVERED_DUE] = {"due", "sessions that are due", TIDE_ACTION_RECOVER, "{\"run_due\":true}",
                                "continues them"},
        [TIDE_RECOVERED_RESUMABLE] = {"resumable", "sessions that can be resumed", 0, NULL, NULL},
    };
#undef RECORDS

    return is_held_back(what) ? &held_back : &kinds[what->action];
}

static int on_lapsed(void *arg, const struct tide_recovered *what)
{
    const struct finding_kind *kind = kind_of_recovery(what);
    const struct tide_next next[] = {{kind->action, 0, is_held_back(what) ? what->session_id : "", kind->arguments},
                                     {.action = 0}};
    char state[24];

    snprintf(state, sizeof(state), "%" PRId64, what->seq);
    doctor_say_of(arg, (struct doctor_about){kind, what->session_id, state, .next = next}, VERDICT_WARN,
                  is_held_back(what)                   ? "shows what would run"
                  : what->action == TIDE_RECOVERED_DUE ? "continues it"
                                                       : "records it",
                  "%s, %s: %s", what->session_id, reason_words(tide_recovered_action_name(what->action)), what->why);
    return 0;
}

void doctor_recovery(struct doctor *d)
{
    size_t before = d->report->found.n;
    struct tide_recovery r = {0};

    if (!d->store)
        return;
    if (tide_store_recover(d->store, TIDE_RECOVER_DRY_RUN, on_lapsed, d, &r, &d->err)) {
        doctor_say_error(d);
        return;
    }
    if (d->report->found.n == before) {
        doctor_say(d, VERDICT_OK, NULL, "recovery would find nothing to do");
        return;
    }
    doctor_say(d, VERDICT_WARN, NULL,
               "recovery would find %" PRId64 " interrupted, %" PRId64 " past the deadline, %" PRId64
               " with an expired token, %" PRId64 " due",
               r.interrupted, r.timed_out, r.tokens_expired, r.due);
}

struct sample {
    char ids[LOOK_SESSIONS][TIDE_ID_SIZE];
    size_t n;
    int64_t events;
};

static int take_id(void *arg, const struct tide_session_info *info)
{
    struct sample *s = arg;

    snprintf(s->ids[s->n++], TIDE_ID_SIZE, "%s", info->id);
    return s->n == LOOK_SESSIONS;
}

static int count_event(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ((struct sample *)arg)->events++;
    return 0;
}

static enum tide_code read_tail(struct doctor *d, struct sample *s, const char *id)
{
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(d->store, id, TIDE_SESSION_READ, &session, &d->err);
    int64_t from = code ? 0 : tide_session_last_seq(session) - LOOK_EVENTS + 1;

    code = code ? code : tide_session_read(session, 0, from > 1 ? from : 1, 0, count_event, s, &d->err);
    tide_session_close(session);
    return code;
}

void doctor_events(struct doctor *d)
{
    static const struct finding_kind damaged = {"damaged", "sessions are damaged", TIDE_ACTION_VERIFY, "{}",
                                                "reads all of one"};
    const struct tide_list_filter newest = {.size = sizeof newest, .limit = LOOK_SESSIONS};
    struct sample s = {.n = 0};
    bool fine = true;
    char few[8];

    if (!d->store || tide_session_list(d->store, &newest, take_id, &s, &d->err))
        return;
    for (size_t i = 0; i < s.n; i++) {
        if (read_tail(d, &s, s.ids[i])) {
            const struct tide_next *next = DOCTOR_NEXT(TIDE_ACTION_VERIFY, s.ids[i], "{}");

            doctor_say_of(d, (struct doctor_about){.kind = &damaged, .about = s.ids[i], .next = next}, VERDICT_FAIL,
                          "reads all of it", "%s: %s", s.ids[i], d->err.msg);
            fine = false;
        }
    }
    snprintf(few, sizeof(few), "%zu ", s.n);
    if (fine && s.n > 0)
        doctor_say(d, VERDICT_OK, NULL, "the last %" PRId64 " event%s of the newest %ssession%s: whole", s.events,
                   s.events == 1 ? "" : "s", s.n == 1 ? "" : few, s.n == 1 ? "" : "s");
}
