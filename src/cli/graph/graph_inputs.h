/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph needs from whoever runs it, before there is a session. */
#ifndef CLI_GRAPH_GRAPH_INPUTS_H
#define CLI_GRAPH_GRAPH_INPUTS_H

#include "cli/graph/graph_view.h"

/*
 * Refuses a run that would fail half-way for an input that nobody sets. One that is never stored is asked for at the
 * terminal and put into `memory` (a JSON object or nothing); want->opt.memory is set to it. `session`: whose memory counts as
 * well; NULL: none. Notes which keys of it nobody reads.
 */
enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *session, struct graph_want *want,
                           struct buf *memory, struct tide_err *err) MUST_CHECK;

/* Says which keys of `memory` (a JSON object) nobody reads, and what was meant. */
void graph_note_unread(const tide_graph *graph, struct str memory);

#endif
