/* SPDX-License-Identifier: Apache-2.0 */
/* The store and the server themselves. */
#include "engine/shapes.h"
#include "server/call.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/server.h"

static enum tide_code health(struct call *c, struct tide_err *err)
{
    struct buf body = BUF_INIT(16);

    (void)err;
    buf_add_str(&body, STR("ok\n"));
    call_reply_text(c, 200, "text/plain; charset=utf-8", &body);
    return TIDE_OK;
}

/* The first route is asked when the port is open, which is after the sweep: what is left is whether the store can be read. */
static enum tide_code ready(struct call *c, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    return tide_store_get_info(c->server->store, &text, err) ? err->code : health(c, err);
}

static enum tide_code openapi(struct call *c, struct tide_err *err)
{
    struct buf body = BUF_INIT(ANSWER_MAX);

    (void)err;
    openapi_write(&body);
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

static enum tide_code metrics(struct call *c, struct tide_err *err)
{
    struct buf body = BUF_INIT(ANSWER_MAX);

    (void)err;
    metrics_write(c->server, &body);
    call_reply_text(c, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    return TIDE_OK;
}

static enum tide_code store_info(struct call *c, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct buf body = BUF_INIT(ANSWER_MAX);

    if (tide_store_get_info(c->server->store, &text, err))
        return err->code;
    buf_add(&body, text.ptr, text.len);
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

const struct route store_routes[] = {
    {HTTP_GET, "/healthz", "server.health", SCOPE_NONE, health, "check that the server answers",
     .flags = ROUTE_OPEN | ROUTE_AT_ROOT, .type = "text/plain"},
    {HTTP_GET, "/readyz", "server.ready", SCOPE_READ, ready, "check that the server can read its store",
     .flags = ROUTE_AT_ROOT, .type = "text/plain"},
    {HTTP_GET, "/metrics", "server.metrics", SCOPE_READ, metrics, "show metrics for Prometheus", .flags = ROUTE_AT_ROOT,
     .type = "text/plain"},
    {HTTP_GET, "/openapi.json", "server.openapi", SCOPE_READ, openapi, "show this API as an OpenAPI document",
     .flags = ROUTE_AT_ROOT, .type = "application/json"},
    {HTTP_GET, "/store", "store.info", SCOPE_READ, store_info, "show the path, size and version of the store",
     .answer = &shape_store_info},
    {.method = 0},
};
