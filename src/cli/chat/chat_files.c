/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "@path" in a prompt: the file's text is added below what was typed; an image goes with it as one. What became of such
 * a word is shown in a line: nothing leaves the machine unseen, and a name that is mistyped is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/image_type.h"
#include "base/utf8.h"
#include "cli/chat/chat.h"

#define FILE_MAX_BYTES ((size_t)256 << 10)
#define PROMPT_MAX_BYTES ((size_t)16 << 20)

static size_t count_lines(struct str s)
{
    size_t n = s.len && s.ptr[s.len - 1] != '\n';

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    return n;
}

/* As much as is taken of a file; NULL: why it is none that could be. */
static const char *read_text(const char *path, struct buf *text, bool *ret_cut)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), bad = errno;
    struct stat st = {0};

    if (fd < 0)
        return bad == ENOENT ? "no such file" : strerror(bad);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return S_ISDIR(st.st_mode) ? "a directory" : "no file of text";
    }
    bad = buf_read_fd(text, fd);
    close(fd);
    if (!bad && image_type(buf_view(text)))
        return text->len > TIDE_IMAGE_MAX_BYTES ? "an image of more than 3.75 MiB" : NULL;
    *ret_cut = text->len > FILE_MAX_BYTES;
    if (*ret_cut) /* not within a character */
        text->len = utf8_clip(buf_view(text), FILE_MAX_BYTES).len;
    if (bad)
        return strerror(bad);
    return str_is_utf8(buf_view(text), NULL) && !memchr(text->ptr ? text->ptr : "", 0, text->len) ? NULL : "no text";
}

static void add_image(struct chat_session *c, const char *name, struct str bytes)
{
    for (size_t i = 0; i < c->n_images; i++)
        if (strcmp(c->images[i].name, name) == 0) /* named twice */
            return;
    if (!str_is_utf8(str_from(name), NULL))
        return; /* nor is the prompt, which is refused for it */
    if (c->n_images == TIDE_IMAGES_MAX) {
        agent_setup_tell(&c->setup, "@%.200s: a prompt takes %d images; it is sent as it is", name, TIDE_IMAGES_MAX);
        return;
    }
    agent_setup_tell(&c->setup, "+ %.200s, %s, %zu KiB", name, image_type(bytes), (bytes.len + 1023) / 1024);
    c->images[c->n_images++] = (struct chat_image){name, arena_dup(&c->prompt, bytes)};
}

static void add_file(struct chat_session *c, struct buf *out, struct str path)
{
    AUTO(buf_done) struct buf text = BUF_INIT(TIDE_IMAGE_MAX_BYTES + 65536);
    const char *name = arena_dup(&c->prompt, path).ptr, *why;
    bool cut = false;
    size_t lines;

    why = read_text(name, &text, &cut);
    if (why) {
        agent_setup_tell(&c->setup, "@%.200s: %s; it is sent as it is", name, why);
        return;
    }
    if (image_type(buf_view(&text))) {
        add_image(c, name, buf_view(&text));
        return;
    }
    lines = count_lines(buf_view(&text));
    agent_setup_tell(&c->setup, "+ %.200s, %zu line%s%s", name, lines, lines == 1 ? "" : "s",
                     cut ? ": the first 256 KiB of it" : "");
    buf_addf(out, "\n\n<file path=\"%s\">\n", name);
    buf_add_str(out, buf_view(&text));
    buf_add_str(out, cut ? STR("\n[truncated: the file is longer]\n</file>") : STR("\n</file>"));
}

enum tide_code chat_expand(struct chat_session *c, const char *prompt, const char **ret_prompt, struct tide_err *err)
{
    AUTO(buf_done) struct buf out = BUF_INIT(PROMPT_MAX_BYTES);

    arena_reset(&c->prompt);
    c->n_images = 0;
    buf_add_str(&out, str_from(prompt));
    for (const char *at = strchr(prompt, '@'); at; at = strchr(at + 1, '@')) {
        size_t len = strcspn(at + 1, " \t\r\n,;:!?\"'()<>");

        while (len > 0 && at[len] == '.') /* the end of a sentence */
            len--;
        if (len > 0 && (at == prompt || strchr(" \t\r\n\"'(", at[-1])))
            add_file(c, &out, (struct str){at + 1, len});
    }
    if (out.failed)
        return tide_fail(err, TIDE_TOO_BIG, "the prompt with its files is larger than 16 MiB: name fewer");
    *ret_prompt = arena_dup(&c->prompt, buf_view(&out)).ptr;
    return TIDE_OK;
}
