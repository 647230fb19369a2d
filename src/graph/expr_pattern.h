/* SPDX-License-Identifier: Apache-2.0 */
/* Lua's patterns, with every step paid for: find, match, gmatch and gsub of the sandbox. */
#ifndef GRAPH_EXPR_PATTERN_H
#define GRAPH_EXPR_PATTERN_H

#include <lua.h>

int expr_pattern_find(lua_State *l);
int expr_pattern_match(lua_State *l);
int expr_pattern_gmatch(lua_State *l);
int expr_pattern_gsub(lua_State *l);

#endif
