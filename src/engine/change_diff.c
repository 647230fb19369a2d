/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/change_diff.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/line_diff.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)16 << 20)
#define LINES_MAX ((size_t)400)

static bool is_text(struct str s)
{
    return str_is_utf8(s, NULL) && !memchr(s.ptr, '\0', s.len);
}

bool change_diff(const char *working_dir, const char *tool, const char *args, struct buf *out)
{
    AUTO(buf_done) struct buf before = BUF_INIT(FILE_MAX), after = BUF_INIT(2 * FILE_MAX);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct tool *t = tool_find(str_from(tool));
    struct tool_place place = {.cwd = working_dir, .dir = open(working_dir, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    struct tool_work w = {.tool = t, .place = &place, .key = ""};
    struct json *json = NULL;
    struct tide_err err;
    bool told = false;

    if (t && t->preview && place.dir >= 0 && !json_parse(&a, str_from(args), NULL, &json, NULL, NULL) &&
        json->type == JSON_OBJECT) {
        w.args = json;
        told = !t->preview(&w, &before, &after, &err) && is_text(buf_view(&before)) && is_text(buf_view(&after)) &&
               !str_eq(buf_view(&before), buf_view(&after));
    }
    if (told)
        line_diff(out, buf_view(&before), buf_view(&after), LINES_MAX);
    if (place.dir >= 0)
        close(place.dir);
    return told;
}
