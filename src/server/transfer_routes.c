/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in and out, and the store looked after: what recovery records, what the doctor finds. */
#include "server/transfer.h"

#include <pthread.h>

#include "engine/doctor.h"
#include "engine/forgotten.h"
#include "engine/shapes.h"
#include "server/links.h"
#include "server/server.h"

/* ---- recovery ---- */

struct recovering {
    struct call *c;
    unsigned flags;
    struct json_out *json;
    struct recovery_report report;
    enum tide_code code;
    struct tide_err *err;
};

static int put_found(void *arg, const struct tide_recovered *what)
{
    const struct recovering *r = arg;

    shape_put(r->json, &shape_recovery,
              &(struct recovery_line){
                  .type = RECOVERY_FOUND, .found = *what, .dry_run = (r->flags & TIDE_RECOVER_DRY_RUN) != 0});
    return 0;
}

static void recover_into(struct json_out *o, void *arg)
{
    struct recovering *r = arg;

    r->json = o;
    r->code = tide_store_recover(r->c->server->store, r->flags, put_found, r, &r->report.summary.recovery, r->err);
}

static enum tide_code recover_store(struct call *c, unsigned flags, struct tide_err *err)
{
    struct recovering r = {.c = c, .flags = flags, .err = err};
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&body);

    r.report.found = (struct shape_stream){recover_into, &r};
    r.report.summary = (struct recovery_line){.type = RECOVERY_SUMMARY, .dry_run = (flags & TIDE_RECOVER_DRY_RUN) != 0};
    shape_put(&o, &shape_recovery_report, &r.report);
    if (r.code && r.code != TIDE_CORRUPT) { /* one damaged is in nobody's way */
        buf_done(&body);
        return r.code;
    }
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

static enum tide_code show_recovery(struct call *c, struct tide_err *err)
{
    return recover_store(c, TIDE_RECOVER_DRY_RUN | TIDE_RECOVER_ALL, err);
}

static enum tide_code sweep_store(struct call *c, struct tide_err *err)
{
    return recover_store(c, 0, err);
}

/* ---- the doctor ---- */

static enum tide_code give_store(void *call, tide_store **ret_store, struct tide_err *err)
{
    (void)err;
    *ret_store = ((struct call *)call)->server->store;
    return TIDE_OK;
}

static enum tide_code examine_store(struct call *c, struct tide_err *err)
{
    const struct runner_options *runs = &c->server->opt.runs;
    const struct doctor_options opt = {.store = runs->url,
                                       .config = runs->config,
                                       .key_file = runs->key_file,
                                       .key_fd = -1,
                                       .open = give_store,
                                       .arg = c,
                                       .command = link_of};
    static pthread_mutex_t one_doctor = PTHREAD_MUTEX_INITIALIZER;
    AUTO(check_report_done) struct check_report report = {.ok = true};

    if (pthread_mutex_trylock(&one_doctor)) /* it reads a lot: nobody needs two */
        return tide_fail(err, TIDE_BUSY, "the doctor is at work already: try again in a moment");
    doctor_examine(&opt, &report);
    pthread_mutex_unlock(&one_doctor);
    doctor_mark_forgotten(&report);
    forgotten_hide(&report);
    call_reply(c, &shape_doctor, &report);
    return TIDE_OK;
}

const struct route transfer_routes[] = {
    {HTTP_GET, "/sessions/{id}/export", "session.export", SCOPE_READ, transfer_export,
     "export a session: a line for each event, for an import", .flags = ROUTE_STREAMS, .type = "application/x-ndjson"},
    {HTTP_POST, "/import", "session.import", SCOPE_ADMIN, transfer_import,
     "create a session from an export, all or nothing; it does not run before it is trusted", .answer = &shape_created,
     .status = 201, .flags = ROUTE_BYTES_IN},
    {HTTP_GET, "/recovery", "store.recovery", SCOPE_READ, show_recovery,
     "show what recovery would record now, and what could be resumed", .answer = &shape_recovery_report},
    {HTTP_POST, "/recovery", "store.recover", SCOPE_WRITE, sweep_store,
     "record what happened to sessions whose process died", .answer = &shape_recovery_report},
    {HTTP_GET, "/doctor", "store.doctor", SCOPE_ADMIN, examine_store, "check that everything works",
     .answer = &shape_doctor},
    {.method = 0},
};
