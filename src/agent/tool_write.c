/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file written whole or not at all. Idempotent: the same content under the same name, however often; a second try takes
 * the place of what a first one left beside the file.
 */
#include "agent/tool_list.h"

#include "agent/tool_text.h"
#include "base/mem.h"

static void run(struct tool_work *w, struct tool_result *ret)
{
    struct arena a = ARENA_INIT;
    struct str path = json_get_text(&a, w->args, STR("path"));
    struct str content = json_get_text(&a, w->args, STR("content"));
    struct confined b = tool_beneath(w);
    struct tide_err err;

    if (confined_replace(&b, path, CONFINED_MAKE, w->key, content, &err)) {
        confined_unmark(&b, path, w->key);
        tool_fail(ret, "%s", err.msg);
    } else {
        text_number(&ret->text, content.len);
        buf_addf(&ret->text, " byte%s written to '%.*s'", content.len == 1 ? "" : "s", STR_ARG(path));
    }
    arena_done(&a);
}

const struct tool tool_write = {
    .name = "write",
    .description =
        "Write a file in the working directory, whole: what was in it before is replaced. Directories that are "
        "missing are made.",
    .schema = "{\"type\":\"object\",\"properties\":{"
              "\"path\":{\"type\":\"string\",\"description\":\"the file\"},"
              "\"content\":{\"type\":\"string\",\"description\":\"all that shall be in it\"}},"
              "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
    .effect = TIDE_EFFECT_IDEMPOTENT,
    .subject = "path",
    .permission = "ask",
    .run = run,
};
