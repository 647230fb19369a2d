/* SPDX-License-Identifier: Apache-2.0 */
/* All routes, by file. */
#include "server/route.h"

extern const struct route change_routes[], create_routes[], graph_routes[], run_routes[], session_routes[],
    signin_routes[], store_routes[], stream_routes[], task_routes[], token_routes[], transfer_routes[], wait_routes[],
    websocket_routes[];

const struct route *const route_tables[] = {
    store_routes, session_routes, create_routes, change_routes,   run_routes,    wait_routes,      graph_routes,
    task_routes,  token_routes,   signin_routes, transfer_routes, stream_routes, websocket_routes, NULL,
};
