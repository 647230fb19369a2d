/* SPDX-License-Identifier: Apache-2.0 */
/* Where a connection becomes a WebSocket. Who asks, from which page, was checked before: as of any request. */
#include "server/peer.h"
#include "server/server.h"

#define PROTOCOL "tidemark.v1"

static void answer_refused(struct call *c, int status, const char *why)
{
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct tide_err err = {0};

    (void)!tide_fail(&err, TIDE_INVALID, "%s", why);
    problem_write(&body, &err, status);
    if (status == 426)
        call_field(c, "Upgrade", "websocket");
    call_reply_text(c, status, "application/problem+json", &body);
}

static enum tide_code open_websocket(struct call *c, struct tide_err *err)
{
    bool offers = websocket_offers(c->http, PROTOCOL);
    const char *why;
    struct peer *p;
    int status;

    why = websocket_refuses(c->http, &status);
    if (!why && !offers && http_field(c->http, "Sec-WebSocket-Protocol").ptr) {
        why = "no subprotocol that was offered is known: offer " PROTOCOL;
        status = 400;
    }
    if (why) {
        answer_refused(c, status, why);
        return TIDE_OK;
    }
    p = peer_new(c->server, &c->caller);
    if (websocket_accept(c->server->sockets, c->http, offers ? PROTOCOL : NULL, p, err)) {
        peer_free(p);
        return err->code;
    }
    return TIDE_OK;
}

const struct route websocket_routes[] = {
    {HTTP_GET, "/ws", "websocket.open", SCOPE_READ, open_websocket,
     "open a WebSocket for all actions and for notifications; the token may be a subprotocol: tidemark.v1, bearer.TOKEN",
     .status = 101, .flags = ROUTE_STREAMS},
    {.method = 0},
};
