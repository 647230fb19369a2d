/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry is one line of the file; a line end inside is written \n and a backslash \\. An entry is appended with one
 * write, so that chats side by side do not tear each other's; a file that has grown past its bound is replaced whole when
 * it is next opened.
 */
#include "terminal/line_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define ENTRY_MAX ((size_t)64 << 10)
#define FILE_MAX ((off_t)16 << 20) /* of a longer file its end is read */

static void keep_entry(struct line_history *h, char *entry)
{
    if (h->n == HISTORY_MAX) {
        free(h->entries[0]);
        memmove(h->entries, h->entries + 1, (HISTORY_MAX - 1) * sizeof(h->entries[0]));
        h->n--;
    }
    h->entries[h->n++] = entry;
}

static void write_entry(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\n' || text.ptr[i] == '\\')
            buf_add_str(out, text.ptr[i] == '\n' ? STR("\\n") : STR("\\\\"));
        else if (text.ptr[i] != '\0')
            buf_add_char(out, text.ptr[i]);
    }
    buf_add_char(out, '\n');
}

static char *read_entry(struct str line)
{
    struct buf text = BUF_INIT(ENTRY_MAX + 1);

    for (size_t i = 0; i < line.len; i++) {
        bool escaped = line.ptr[i] == '\\' && i + 1 < line.len;

        i += escaped;
        if (line.ptr[i] != '\0')
            buf_add_char(&text, escaped && line.ptr[i] == 'n' ? '\n' : line.ptr[i]);
    }
    if (!text.failed && text.len > 0)
        return buf_take(&text);
    buf_done(&text);
    return NULL;
}

/* How many lines the file has. */
static size_t load_entries(struct line_history *h, int fd)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)FILE_MAX);
    off_t size = lseek(fd, 0, SEEK_END), from = size > FILE_MAX ? size - FILE_MAX : 0;
    size_t lines = 0;
    ssize_t n = 1;

    for (off_t at = from; n > 0 && buf_reserve(&text, 1 << 16); at += n) {
        n = pread(fd, text.ptr + text.len, 1 << 16, at);
        text.len += n > 0 ? (size_t)n : 0;
    }
    for (struct str s = buf_view(&text); s.len > 0; lines++) {
        const char *end = memchr(s.ptr, '\n', s.len);
        size_t len = end ? (size_t)(end - s.ptr) : s.len;
        char *entry = read_entry((struct str){s.ptr, len});

        if (entry)
            keep_entry(h, entry);
        len += end != NULL;
        s = (struct str){s.ptr + len, s.len - len};
    }
    return lines;
}

/* A chat beside this one may append in between, and lose that one entry: better than a lock that can hang. */
static void replace_file(const struct line_history *h)
{
    AUTO(buf_done) struct buf text = BUF_INIT(HISTORY_MAX * (2 * ENTRY_MAX + 1)), name = BUF_INIT(8192);
    bool written;
    int fd;

    for (size_t i = 0; i < h->n; i++)
        write_entry(&text, str_from(h->entries[i]));
    buf_addf(&name, "%s.XXXXXX", h->path);
    buf_cstr(&name);
    if (name.failed || (fd = mkostemp(name.ptr, O_CLOEXEC)) < 0)
        return;
    written = !fd_write(fd, buf_view(&text));
    if (close(fd) != 0 || !written || rename(name.ptr, h->path) != 0)
        unlink(name.ptr);
}

void line_history_open(struct line_history *h, const char *path)
{
    struct stat st;
    size_t lines;
    int fd;

    *h = (struct line_history){.entries = mem_array(HISTORY_MAX, sizeof(char *))};
    fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600) : -1;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && fchmod(fd, 0600) == 0) {
        h->path = mem_dup(str_from(path));
        lines = load_entries(h, fd);
        if (lines > HISTORY_MAX || st.st_size > FILE_MAX)
            replace_file(h);
    }
    close(fd);
}

void line_history_close(struct line_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->entries[i]);
    free(h->entries);
    free(h->path);
    *h = (struct line_history){.path = NULL};
}

static bool is_worth(const struct line_history *h, struct str text)
{
    bool blank = true;

    for (size_t i = 0; i < text.len && blank; i++)
        blank = text.ptr[i] == ' ' || text.ptr[i] == '\n' || text.ptr[i] == '\t';
    return !blank && text.ptr[0] != ' ' && text.len <= ENTRY_MAX &&
           !(h->n > 0 && str_eq(str_from(h->entries[h->n - 1]), text));
}

void line_history_add(struct line_history *h, struct str text)
{
    AUTO(buf_done) struct buf line = BUF_INIT(2 * ENTRY_MAX + 1);
    int fd;

    if (!is_worth(h, text))
        return;
    keep_entry(h, mem_dup(text));
    fd = h->path ? open(h->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600) : -1;
    if (fd < 0)
        return;
    write_entry(&line, text);
    fd_write(fd, buf_view(&line));
    close(fd);
}

long line_history_find(const struct line_history *h, size_t from, struct str words)
{
    for (size_t i = from < h->n ? from : h->n; i > 0; i--) {
        struct str entry = str_from(h->entries[i - 1]);

        if (words.len == 0 || memmem(entry.ptr, entry.len, words.ptr, words.len))
            return (long)i - 1;
    }
    return -1;
}
