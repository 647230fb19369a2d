/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk in the byte order of whole paths: a directory sorts as its name with a slash. So the first N of a walk are the
 * first N of all, and the same tree always gives the same answer. Each directory is opened from its parent's descriptor
 * without following links: a swap meanwhile cannot lead out.
 */
#include "agent/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define DEPTH_MAX 100 /* each level holds a descriptor */
#define ENTRIES_MAX ((size_t)2000000)
#define STOP_EVERY 64

struct entry {
    char *name; /* a directory's ends with a slash */
    bool dir, regular;
};

struct listing {
    struct entry *entries;
    size_t n, cap;
};

static void listing_done(struct listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->entries[i].name);
    free(l->entries);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void add_entry(struct listing *l, int dir, const struct dirent *d)
{
    struct entry e = {.dir = d->d_type == DT_DIR, .regular = d->d_type == DT_REG};
    size_t len = strlen(d->d_name);
    struct stat st;

    if (d->d_type == DT_UNKNOWN && fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        e.dir = S_ISDIR(st.st_mode);
        e.regular = S_ISREG(st.st_mode);
    }
    MEM_ROOM(l->entries, l->n, l->cap);
    e.name = mem_alloc(len + 2);
    memcpy(e.name, d->d_name, len);
    memcpy(e.name + len, e.dir ? "/" : "", e.dir ? 2 : 1);
    l->entries[l->n++] = e;
}

static bool asked_to_stop(struct walk *w)
{
    if (++w->entries > ENTRIES_MAX)
        w->too_much = true;
    if (w->stop && w->entries % STOP_EVERY == 1 && w->stop(w->stop_arg))
        w->stopped = true;
    return w->stopped || w->too_much;
}

/* The entries of a directory, sorted; takes `fd`. */
static void list_dir(struct walk *w, int fd, struct listing *l)
{
    DIR *d = fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        close(fd);
        w->unread++;
        return;
    }
    while ((e = readdir(d)) && !asked_to_stop(w)) {
        bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;

        if (!dots && (w->hidden || e->d_name[0] != '.'))
            add_entry(l, fd, e);
    }
    closedir(d);
    if (l->n)
        qsort(l->entries, l->n, sizeof(*l->entries), by_name);
}

static enum walk_answer level(struct walk *w, int dir, struct buf *path, int depth);

static enum walk_answer descend_into(struct walk *w, int dir, struct entry *e, struct buf *path, int depth)
{
    enum walk_answer answer;
    int fd;

    if (w->enter && !w->enter(w->arg, buf_view(path)))
        return WALK_ON;
    e->name[strlen(e->name) - 1] = '\0';
    fd = openat(dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || depth >= DEPTH_MAX) {
        w->too_much |= fd >= 0;
        w->unread += fd < 0;
        if (fd >= 0)
            close(fd);
        return WALK_ON;
    }
    answer = level(w, fd, path, depth + 1);
    close(fd);
    return answer;
}

static enum walk_answer level(struct walk *w, int dir, struct buf *path, int depth)
{
    AUTO(listing_done) struct listing l = {0};
    enum walk_answer answer = WALK_ON;
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t len = path->len;

    if (again < 0)
        w->unread++;
    else
        list_dir(w, again, &l);
    for (size_t i = 0; i < l.n && answer == WALK_ON && !w->stopped; i++) {
        struct entry *e = &l.entries[i];

        buf_add_str(path, str_from(e->name));
        if (e->dir)
            answer = descend_into(w, dir, e, path, depth);
        else if (!asked_to_stop(w))
            answer = w->file(w->arg, buf_view(path), dir, e->name, e->regular);
        path->len = len;
    }
    return answer;
}

void walk_run(struct walk *w, int dir, struct str path)
{
    struct buf at = BUF_INIT((size_t)1 << 20);

    buf_add_str(&at, path);
    if (path.len && path.ptr[path.len - 1] != '/')
        buf_add_char(&at, '/');
    (void)level(w, dir, &at, 0);
    buf_done(&at);
}
