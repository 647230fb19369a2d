/* SPDX-License-Identifier: Apache-2.0 */
/* The fold functions that the table of kinds names. Each is pure; mistyped fields count as absent. */
#ifndef SESSION_FOLD_H
#define SESSION_FOLD_H

#include "session/state.h"

static inline struct str text_of(const struct fact *f, const char *key)
{
    return json_get_text(f->arena, f->body, str_from(key));
}

void ledger_rolled_back(struct ledger *l, const struct fact *f);
void ledger_run_started(struct ledger *l, const struct fact *f);
void ledger_run_ended(struct ledger *l, const struct fact *f);
void ledger_run_waiting(struct ledger *l, const struct fact *f);
void ledger_run_resumed(struct ledger *l, const struct fact *f);
void ledger_trusted(struct ledger *l, const struct fact *f);
void ledger_cancel(struct ledger *l, const struct fact *f);
void ledger_queue_added(struct ledger *l, const struct fact *f);
void ledger_queue_taken(struct ledger *l, const struct fact *f);
void ledger_usage(struct ledger *l, const struct fact *f);
void ledger_error(struct ledger *l, const struct fact *f);
void ledger_turn(struct ledger *l, const struct fact *f);
void ledger_memory(struct ledger *l, const struct fact *f);
void ledger_node_started(struct ledger *l, const struct fact *f);
void ledger_tool_started(struct ledger *l, const struct fact *f);
void ledger_tool_ended(struct ledger *l, const struct fact *f);
void ledger_tool_withdrawn(struct ledger *l, const struct fact *f);
void ledger_approval_requested(struct ledger *l, const struct fact *f);
void ledger_approval_given(struct ledger *l, const struct fact *f);
void ledger_checkpoint(struct ledger *l, const struct fact *f);
void ledger_checkpoint_deleted(struct ledger *l, const struct fact *f);
void ledger_token(struct ledger *l, const struct fact *f);
struct token_past *ledger_add_token(struct ledger *l, struct str id);
void ledger_notified(struct ledger *l, const struct fact *f);

void content_message(struct content *c, const struct fact *f);
void content_failure(struct content *c, const struct fact *f);
void position_set_beneath(struct position *p, struct str frame, struct str beneath);
void position_part(struct content *c, struct str frame); /* it gets what it reads in frames below as its own */
void content_memory_set(struct content *c, const struct fact *f);
void content_memory_deleted(struct content *c, const struct fact *f);
void content_output_set(struct content *c, const struct fact *f);
void content_run_started(struct content *c, const struct fact *f);
void content_node_started(struct content *c, const struct fact *f);
void content_node_decided(struct content *c, const struct fact *f);
void content_node_renamed(struct content *c, const struct fact *f);
void content_node_completed(struct content *c, const struct fact *f);
void content_tool_withdrawn(struct content *c, const struct fact *f);
void content_node_failed(struct content *c, const struct fact *f);
void content_edge_taken(struct content *c, const struct fact *f);
void content_checkpoint(struct content *c, const struct fact *f);
void content_checkpoint_deleted(struct content *c, const struct fact *f);
void content_turn(struct content *c, const struct fact *f);

void info_apply(struct info *info, const struct fact *f);

#endif
