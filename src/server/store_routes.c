/* SPDX-License-Identifier: Apache-2.0 */
/* The store and the server themselves. */
#include "engine/shapes.h"
#include "server/call.h"
#include "server/server.h"

static enum tide_code health(struct call *c, struct tide_err *err)
{
    struct buf body = BUF_INIT(16);

    (void)err;
    buf_add_str(&body, STR("ok\n"));
    call_reply_text(c, 200, "text/plain; charset=utf-8", &body);
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
    {HTTP_GET, "/healthz", "server.health", SCOPE_NONE, health, "whether the server answers", .flags = ROUTE_OPEN,
     .type = "text/plain"},
    {HTTP_GET, "/store", "store.info", SCOPE_READ, store_info, "the store: where it is, its size, its version",
     .answer = &shape_store_info},
    {.method = 0},
};
