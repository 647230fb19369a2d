/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts count, as Prometheus reads it. Counters begin with the process. Nothing here reads the store: a scrape costs some
 * locks, however many sessions there are.
 */
#include "server/metrics.h"

#include <inttypes.h>

#include "server/feed.h"
#include "server/server.h"
#include "server/workers.h"

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP tidemark_%s %s\n# TYPE tidemark_%s %s\n", name, help, name, type);
}

static void put_one(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    put_head(out, name, type, help);
    buf_addf(out, "tidemark_%s %llu\n", name, (unsigned long long)value);
}

static void put_store(struct buf *out, const struct tide_store_counts *c)
{
    uint64_t below = 0;

    put_one(out, "commits_total", "counter", "Commits of this process that were synced to disk.", c->commits);
    put_one(out, "appends_total", "counter", "Appends that were stored.", c->appends);
    put_one(out, "appends_refused_total", "counter", "Appends that were refused or failed.", c->refused);
    put_one(out, "events_total", "counter", "Events that were stored.", c->events);
    put_one(out, "append_queue", "gauge", "Appends that wait for the disk.", c->queued);
    put_one(out, "watchers", "gauge", "Watchers of the store in this process.", c->watchers);
    put_head(out, "commit_appends", "histogram", "Appends in one commit.");
    for (size_t i = 0; i < TIDE_COMMIT_SIZES; i++) {
        below += c->commits_of[i];
        if (i + 1 < TIDE_COMMIT_SIZES)
            buf_addf(out, "tidemark_commit_appends_bucket{le=\"%u\"} %" PRIu64 "\n", 1u << i, below);
        else
            buf_addf(out, "tidemark_commit_appends_bucket{le=\"+Inf\"} %" PRIu64 "\n", below);
    }
    buf_addf(out, "tidemark_commit_appends_sum %" PRIu64 "\ntidemark_commit_appends_count %" PRIu64 "\n",
             c->appends + c->refused, below);
}

static void put_runs(struct buf *out, const struct runner_counts *c)
{
    static const char *const reasons[] = {INTERRUPTION_REASONS};

    put_one(out, "runs_active", "gauge", "Sessions that this server runs.", c->active);
    put_one(out, "runs_due", "gauge", "Sessions that are due and wait for a place to run.", c->due);
    put_one(out, "runs_asked", "gauge", "Requests that wait for a place to run.", c->asked);
    put_one(out, "runs_started_total", "counter", "Runs that were started or resumed here.", c->started);
    put_one(out, "runs_failed_total", "counter", "Runs that failed or could not start.", c->failed);
    put_one(out, "runs_degraded_total", "counter",
            "Runs of which something waited in memory while the store could not be written (durability: degraded).",
            c->degraded);
    put_head(out, "interruptions_total", "counter", "Interruptions that recovery recorded, by reason.");
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        buf_addf(out, "tidemark_interruptions_total{reason=\"%s\"} %llu\n", reasons[i],
                 (unsigned long long)c->interrupted[i]);
}

void metrics_write(struct server *s, struct buf *out)
{
    struct tide_store_counts store;
    struct runner_counts runs;
    struct http_counts http;
    struct feed_counts feed;

    tide_store_get_counts(s->store, &store, sizeof store);
    runner_count(s->runner, &runs);
    http_server_count(s->http, &http);
    feed_count(s->feed, &feed);
    put_store(out, &store);
    put_runs(out, &runs);
    put_one(out, "http_requests_total", "counter", "Requests that were answered.", http.requests);
    put_one(out, "http_refused_total", "counter", "Connections and requests that broke a limit.", http.refused);
    put_one(out, "http_timeouts_total", "counter", "Connections that were too slow.", http.timed_out);
    put_one(out, "http_connections", "gauge", "Open connections.", http.connections);
    put_one(out, "request_queue", "gauge", "Requests that wait for a worker.", workers_queued(s->workers));
    put_one(out, "followers", "gauge", "Streams of events that are followed.", feed.followers);
    put_one(out, "followers_behind", "gauge", "Followers that have not seen all events yet.", feed.catching_up);
    put_head(out, "follower_lag_seconds", "gauge", "How long the follower that is longest behind has been so.");
    buf_addf(out, "tidemark_follower_lag_seconds %.3f\n", (double)feed.lag_ms / 1000);
    put_one(out, "followers_dropped_total", "counter", "Followers that were too slow, or lost their token.",
            feed.dropped);
    put_one(out, "follower_items_total", "counter", "Events and other items that followers got.", feed.sent);
}
