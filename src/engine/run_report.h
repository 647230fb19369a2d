/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a run of a chat or a graph, filled in for its shape: how it ended, what it cost, what it waits for. */
#ifndef ENGINE_RUN_REPORT_H
#define ENGINE_RUN_REPORT_H

#include "engine/graph_progress.h"
#include "engine/shapes.h"

/* `message`: why it did not complete, or what it waits for. Left to the caller: type, answer, token, turns. */
void chat_report_fill(struct chat_report *ret, tide_session *session, enum tide_code code, const char *message);

/* `info` is of the session as it is now; `message`: why it did not complete. Left to the caller: type, token. */
void graph_report_fill(struct graph_report *ret, struct arena *a, tide_session *session,
                       const struct tide_session_info *info, const struct graph_progress *p,
                       const struct tide_graph_result *result, enum tide_code code, const char *message);

#endif
