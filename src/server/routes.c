/* SPDX-License-Identifier: Apache-2.0 */
/* All routes, by file. */
#include "server/route.h"

extern const struct route store_routes[], session_routes[], change_routes[], stream_routes[], run_routes[];
extern const struct route create_routes[], graph_routes[], task_routes[];

const struct route *const route_tables[] = {store_routes,  session_routes, change_routes, stream_routes, run_routes,
                                            create_routes, graph_routes,   task_routes,   NULL};
extern const struct route store_routes[], session_routes[], change_routes[], stream_routes[], run_routes[],
    websocket_routes[];

const struct route *const route_tables[] = {store_routes, session_routes,   change_routes, stream_routes,
                                            run_routes,   websocket_routes, NULL};
