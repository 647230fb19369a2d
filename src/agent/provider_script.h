/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script, the file that the script provider answers from:
 *
 *   {"turns": [
 *      {"text": "I will look.",                                      what it says; may be absent
 *       "calls": [{"name": "bash", "args": {"command": "ls"}, "id": "c1"}],    args: an object, {} when absent; a string is
 *                                                                    taken as what a model wrote: no JSON is malformed.
 *                                                                    id: "call_TURN_NUMBER" when absent
 *       "usage": {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 0},    estimated from lengths when absent
 *       "stop": "end",                                               end, tools, length, refused; absent: by the calls
 *       "delay_ms": 0,                                               before the first character
 *       "chunk_ms": 0,                                               between words; 0: all at once
 *       "fail": [{"status": 429, "retry_after": 1, "message": "…"},    what becomes of attempt 0, 1, …; null: it works
 *                {"code": "connection", "after_text": "I wi"}],      after_text: is shown before it fails
 *       "comment": "for readers"}],
 *    "repeat": false,                                                true: past the last turn, from the first again
 *    "nodes": {"write": [turns], "write#2": [turns],                 of a graph: what the agent of a node answers, in every
 *              "write>post?": [turns], "write?": [turns]}}           visit, in its second, when it is asked whether post comes
 *                                                                    next, when it is asked that of any other; "turns" is for
 *                                                                    the others, and may be absent then
 */
#ifndef AGENT_PROVIDER_SCRIPT_H
#define AGENT_PROVIDER_SCRIPT_H

#include "agent/provider_internal.h"

/* The answers of one conversation after the other. */
struct part {
    struct str name;
    const struct json **turns;
    int64_t n_turns;
};

struct script {
    char *path;
    struct buf text;
    struct arena arena;
    struct part *parts; /* the first: of a chat, and of nodes that are not named */
    size_t n_parts;
    bool repeat;
};

/* "end", "tools", … of a turn; false: no such word. */
bool script_stop(struct str name, enum model_stop *ret);

/*
 * Of "write#2" that visit's, else those of "write"; of "write>post#2?", a decision, those of "write>post?", else those of
 * "write?".
 */
const struct part *script_part(const struct script *s, struct str name);

#endif
