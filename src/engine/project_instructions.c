/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that somebody else may have written must not speak to the model in the user's name. So each is opened below the
 * root of the repository by the kernel (agent/confined.h) and judged by what was opened, not by its path.
 *
 * Near files come first when the room is given out, and last in the text: what is said last counts most.
 */
#include "engine/project_instructions.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/confined.h"
#include "base/utf8.h"

#define DEPTH_MAX 64 /* directories between the working directory and the root of the repository */

static const char *const names[] = {"AGENTS.md", "CLAUDE.md"};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

struct reading {
    struct arena *a;
    struct project_instructions *ret;
    struct confined root;
    const char *dir; /* the working directory, relative to the root; "": it is the root */
    size_t left;     /* bytes that may still be taken */
    struct found {
        const char *name;
        struct str text;
        dev_t device;
        ino_t inode;
    } found[DEPTH_MAX * N_NAMES];
    size_t n;
};

static bool is_repository(const char *dir)
{
    char path[CONFINED_PATH_MAX + 8];
    struct stat st;

    snprintf(path, sizeof(path), "%s/.git", strcmp(dir, "/") == 0 ? "" : dir);
    return lstat(path, &st) == 0;
}

/* How many bytes of the path are the root of its repository; all of them when it is in none. */
static size_t root_len(const char *path)
{
    AUTO(mem_freep) char *dir = mem_dup(str_from(path));

    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        char *slash = strrchr(dir, '/');

        if (is_repository(dir))
            return strlen(dir);
        if (!slash || strcmp(dir, "/") == 0)
            break;
        slash[slash == dir] = '\0';
    }
    return strlen(path);
}

/* NULL: it may be used. */
static const char *why_not(const struct stat *st)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return "it belongs to another user";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "others may write to it (chmod go-w)";
    return NULL;
}

static const char *read_whole(int fd, size_t left, struct buf *text)
{
    if (buf_read_fd(text, fd))
        return "it cannot be read";
    if (text->failed || text->len > left)
        return "more than 64 KiB in total";
    if (!str_is_utf8(buf_view(text), NULL) || memchr(buf_view(text).ptr, '\0', text->len))
        return "it is not text";
    return NULL;
}

static bool is_known(const struct reading *r, const struct stat *st, struct str text)
{
    for (size_t i = 0; i < r->n; i++)
        if ((r->found[i].device == st->st_dev && r->found[i].inode == st->st_ino) || str_eq(r->found[i].text, text))
            return true;
    return false;
}

static void note_file(struct reading *r, const char *name, const char *refused)
{
    r->ret->files[r->ret->n++] = (struct project_file){name, refused};
}

/* `up`: how many directories above the working directory; `dir`: relative to the root. */
static void read_file(struct reading *r, const char *dir, int up, const char *base)
{
    AUTO(buf_done) struct buf text = BUF_INIT(PROJECT_TEXT_MAX + 65536), name = BUF_INIT(4096);
    const char *path = arena_printf(r->a, "%s%s%s", dir, *dir ? "/" : "", base), *refused;
    struct tide_err err = {0};
    struct stat st;
    int fd;

    for (int i = 0; i < up; i++)
        buf_add_str(&name, STR("../"));
    buf_add_str(&name, str_from(base));
    if (confined_open(&r->root, str_from(path), CONFINED_FILE, &fd, &st, &err)) {
        if (err.code != TIDE_NOT_FOUND)
            note_file(r, arena_dup(r->a, buf_view(&name)).ptr,
                      err.code == TIDE_DENIED ? "it leads out of the repository, or may not be opened"
                                              : "it is not a regular file");
        return;
    }
    refused = why_not(&st);
    refused = refused ? refused : read_whole(fd, r->left, &text);
    close(fd);
    if (!refused && (str_is_blank(buf_view(&text)) || is_known(r, &st, buf_view(&text))))
        return; /* CLAUDE.md is often a link to AGENTS.md, or a copy of it */
    note_file(r, arena_dup(r->a, buf_view(&name)).ptr, refused);
    if (refused)
        return;
    r->left -= text.len;
    r->found[r->n++] =
        (struct found){r->ret->files[r->ret->n - 1].name, arena_dup(r->a, buf_view(&text)), st.st_dev, st.st_ino};
}

static void read_all(struct reading *r)
{
    AUTO(mem_freep) char *dir = mem_dup(str_from(r->dir));

    for (int up = 0; up < DEPTH_MAX; up++) {
        char *slash = strrchr(dir, '/');

        for (size_t i = 0; i < N_NAMES; i++)
            read_file(r, dir, up, names[i]);
        if (!*dir)
            break;
        *(slash ? slash : dir) = '\0';
    }
}

static const char *join_files(struct reading *r)
{
    AUTO(buf_done) struct buf out = BUF_INIT(2 * PROJECT_TEXT_MAX);

    buf_add_str(&out, STR("The project gives these instructions; what comes later is of a directory nearer to yours."));
    for (size_t i = r->n; i > 0; i--) {
        struct str text = r->found[i - 1].text;

        buf_addf(&out, "\n\n<instructions path=\"%s\">\n", r->found[i - 1].name);
        buf_add_str(&out, text);
        buf_add_str(&out, text.ptr[text.len - 1] == '\n' ? STR("</instructions>") : STR("\n</instructions>"));
    }
    return arena_dup(r->a, buf_view(&out)).ptr;
}

void project_instructions_read(struct arena *a, const char *working_dir, struct project_instructions *ret)
{
    AUTO(mem_freep) char *real = realpath(working_dir, NULL);
    AUTO(mem_freep) struct reading *r = mem_zero(sizeof(*r));
    size_t len;

    *ret = (struct project_instructions){.text = NULL};
    if (!real || strlen(real) >= CONFINED_PATH_MAX)
        return;
    ret->files = arena_zero(a, sizeof(r->found) / sizeof(r->found[0]) * sizeof(*ret->files));
    *r = (struct reading){.a = a, .ret = ret, .left = PROJECT_TEXT_MAX};
    len = root_len(real);
    r->dir = real[len] ? arena_printf(a, "%s", real + len + (real[len] == '/')) : "";
    r->root.cwd = arena_dup(a, (struct str){real, len}).ptr;
    r->root.dir = open(r->root.cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->root.dir < 0)
        return;
    read_all(r);
    close(r->root.dir);
    if (r->n)
        ret->text = join_files(r);
}
