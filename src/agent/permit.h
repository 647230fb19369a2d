/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions: which calls run, which are asked about, which are refused. Rules in order, the last that matches wins;
 * without one the tool's own default holds.
 *
 *   {"tool": "bash", "match": "git *", "permission": "allow"}      match: a glob over the call's subject; absent: any
 */
#ifndef AGENT_PERMIT_H
#define AGENT_PERMIT_H

#include "agent/tool.h"

struct permits;

/* From the JSON array of the config; TIDE_INVALID says which rule and what is wrong with it. */
enum tide_code permits_parse(struct str json, struct permits **ret_permits, struct tide_err *err) MUST_CHECK;
void permits_free(struct permits *p);

/* `p` may be NULL. */
enum tide_permission permits_ask(const struct permits *p, const struct tool *tool, const struct json *args);

/* The rule that decides this, as it was written; empty: none does, it is the tool's own default. */
struct str permits_rule(const struct permits *p, const struct tool *tool, const struct json *args);

/* TIDE_INVALID when a rule is about no tool of ours: it was mistyped, or is for one that an embedder adds. */
enum tide_code permits_check_tools(const struct permits *p, struct tide_err *err) MUST_CHECK;

/* Whether any call of this tool could be allowed or asked about: else it is not in the list for the model. */
bool permits_some(const struct permits *p, const struct tool *tool);

#endif
