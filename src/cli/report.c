/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last word of exec and resume. Standard output is the program's, so people are spoken to on standard error; the
 * one exception is the JSON about a wait, which the caller asked for.
 */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/launch.h"

enum tide_code check_fd(int fd, const char *option, struct tide_err *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return tide_fail(err, TIDE_INVALID, "%s %d: not an open descriptor", option, fd);
    if (fd > STDERR_FILENO)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return TIDE_OK;
}

enum tide_code write_fd(int fd, const char *option, const char *text, struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    size_t at = 0;

    buf_addf(&line, "%s\n", text);
    while (at < line.len) {
        ssize_t n = write(fd, line.ptr + at, line.len - at);

        if (n < 0 && errno != EINTR)
            return tide_fail_errno(err, errno, "%s %d: write the token", option, fd);
        at += n > 0 ? (size_t)n : 0;
    }
    return TIDE_OK;
}

/* ---- a run that waits ---- */

static void put_time(struct json_out *o, const char *key, int64_t ms)
{
    if (ms)
        json_ktime(o, key, ms);
}

static void print_json(struct out *out, const struct report *r, bool show_token)
{
    struct json_out o = out_json(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(r->session_id));
    json_out_kstr(&o, STR("run_id"), str_from(r->run_id));
    json_out_kstr(&o, STR("status"), STR("waiting"));
    json_out_key(&o, STR("wait"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("name"), str_from(r->park.name));
    json_out_kstr(&o, STR("kind"), r->park.is_sleep ? STR("timer") : str_from(r->park.kind));
    json_out_kstr_opt(&o, STR("question"), str_from(r->park.question));
    put_time(&o, "deadline_at", r->park.deadline_ms);
    put_time(&o, "due_at", r->park.due_ms);
    json_out_end(&o, '}');
    if (show_token)
        json_out_kstr(&o, STR("token"), str_from(r->park.token));
    json_out_end(&o, '}');
    out_json_end(out);
}

static void print_hidden(struct out *out, const struct report *r)
{
    outf(out,
         "  its command line held a secret, which is not stored: `tidemark resume` cannot run it;\n"
         "  `tidemark exec --session %s -- PROGRAM` runs it anew; hand secrets over in the environment\n",
         r->session_id);
}

/* Values that came from the program must not move the terminal: they go through out_value. */
static void print_wait(struct out *out, const struct report *r, bool show_token)
{
    char when[TIME_TEXT_SIZE];

    outf(out, "session %s waits for %s: ", r->session_id, r->park.kind);
    out_value(out, r->park.name);
    outf(out, "\n");
    if (r->park.question[0]) {
        outf(out, "  question  ");
        out_value(out, r->park.question);
        outf(out, "\n");
    }
    if (r->park.deadline_ms) {
        time_format(when, r->park.deadline_ms);
        outf(out, "  deadline  %s\n", when);
    }
    if (r->hidden)
        print_hidden(out, r);
    else
        outf(out, "  answer    tidemark resume %s%s%s --input %s\n", r->session_id, show_token ? " --token " : "",
             show_token ? r->park.token : "", strcmp(r->park.kind, "approval") == 0 ? "yes" : "TEXT");
}

static void print_sleep(struct out *out, const struct report *r)
{
    char when[TIME_TEXT_SIZE];

    time_format(when, r->park.due_ms);
    outf(out, "session %s sleeps until %s: ", r->session_id, when);
    out_value(out, r->park.name);
    outf(out, "\n");
    if (r->hidden)
        print_hidden(out, r);
    else
        outf(out, "  `tidemark recover --run-due` or `tidemark resume %s` continues it then\n", r->session_id);
}

static enum tide_code report_park(struct cli *cli, const struct report *r, struct tide_err *err)
{
    bool has_token = !r->park.is_sleep && r->park.token[0], show = has_token && r->token_fd < 0;
    enum tide_code code = TIDE_OK;
    struct out people;

    cli->exit_status = tide_code_exit(TIDE_WAITING);
    if (has_token && r->token_fd >= 0 && write_fd(r->token_fd, "--token-fd", r->park.token, err))
        code = tide_fail(err, err->code, "%s: `tidemark token rotate %s` makes another", err->msg, r->session_id);
    if (cli->out.json) {
        print_json(&cli->out, r, show);
        return code;
    }
    out_init(&people);
    if (r->park.is_sleep)
        print_sleep(&people, r);
    else
        print_wait(&people, r, show);
    fwrite(people.text.ptr, 1, people.text.len, stderr);
    out_done(&people);
    return code;
}

/* ---- one that has ended ---- */

void report_durability(int64_t degraded_events)
{
    if (degraded_events)
        say("durability: degraded: %" PRId64 " event%s waited in memory while the store could not be written, and %s "
            "stored later",
            degraded_events, degraded_events == 1 ? "" : "s", degraded_events == 1 ? "was" : "were");
}

enum tide_code report_end(struct cli *cli, const struct report *r, struct tide_err *err)
{
    const struct ending *e = &r->ending;

    if (r->left_behind)
        say("%s left %zu process%s behind: ended %s", r->program, r->left_behind, r->left_behind == 1 ? "" : "es",
            r->left_behind == 1 ? "it" : "them");
    if (r->park.parked)
        return report_park(cli, r, err);
    cli->exit_status = e->exit_status;
    if (e->stop == STOP_CANCEL)
        say("session %s was cancelled", r->session_id);
    else if (e->message[0] && e->exit_status == tide_code_exit(TIDE_UNSETTLED))
        say("%s: find out whether the step happened: `tidemark why %s` says how to go on", e->message, r->session_id);
    else if (e->message[0] && r->hidden)
        say("%s: its command line held a secret, which is not stored: `tidemark exec --session %s -- PROGRAM` runs it "
            "anew; hand secrets over in the environment",
            e->message, r->session_id);
    else if (e->message[0])
        say("%s: `tidemark resume %s` runs it again from where it was", e->message, r->session_id);
    return TIDE_OK;
}
