/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file written whole or not at all. Idempotent: the same content under the same name, however often; a second try takes
 * the place of what a first one left beside the file.
 */
#include "agent/tool_list.h"

#include <unistd.h>

#include "agent/tool_text.h"
#include "base/mem.h"

static void run_write(struct tool_work *w, struct tool_result *ret)
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

/* A file that is not there yet is an empty one. */
static enum tide_code preview(struct tool_work *w, struct buf *ret_before, struct buf *ret_after, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct confined b = tool_beneath(w);
    enum tide_code code;
    int fd = -1;

    code = confined_open(&b, json_get_text(&a, w->args, STR("path")), CONFINED_FILE, &fd, NULL, err);
    if (code && code != TIDE_NOT_FOUND)
        return code;
    if (!code) {
        int bad = buf_read_fd(ret_before, fd);

        close(fd);
        if (bad)
            return tide_fail_errno(err, bad, "read the file");
    }
    buf_add_str(ret_after, json_get_text(&a, w->args, STR("content")));
    return ret_before->failed || ret_after->failed ? tide_fail(err, TIDE_TOO_BIG, "the file is too big") : TIDE_OK;
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
    .permission = TIDE_PERMISSION_ASK,
    .run = run_write,
    .preview = preview,
};
