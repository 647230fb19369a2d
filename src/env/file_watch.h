/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for what other processes do to files, and descriptors that wake a waiting thread. On the real machine only: where
 * env->threads is false nobody waits: a caller that wants to know checks.
 */
#ifndef ENV_FILE_WATCH_H
#define ENV_FILE_WATCH_H

#include "base/err.h"
#include "base/str.h"

/* ---- An eventfd: signals are counted, not queued, so that one who never reads costs nothing. */
enum tide_code wake_fd_open(int *ret_fd, struct tide_err *err) MUST_CHECK;
void wake_fd_signal(int fd); /* never blocks */
/* True: it was signalled since the last call. False: the time is over (-1: never), or a signal handler ran. */
bool wake_fd_wait(int fd, int timeout_ms);

/* Of a path that stands for a file of this directory now, also when the process goes to another one. */
void path_from_root(char *path, size_t size);

/* ---- A few files and one such descriptor, for one thread that waits for news of them or for a poke. */
struct file_watch;

/* *why gets the reason when the kernel does not report changes of files (for example, no instances are left); then only pokes end a wait. */
enum tide_code file_watch_open(struct file_watch **ret, char *why, size_t why_size, struct tide_err *err) MUST_CHECK;
void file_watch_close(struct file_watch *w);

enum file_watch_what {
    FILE_WATCH_WRITES, /* writes to the file, and the closing by a process that could write: also by the death of its process */
    FILE_WATCH_NAME, /* it is removed, or gets another name */
    FILE_WATCH_DIR,  /* something is made in this directory */
};
/* TIDE_NOT_FOUND: there is no such file. The same file may be added again. */
enum tide_code file_watch_add(struct file_watch *w, const char *path, enum file_watch_what what, struct tide_err *err)
    MUST_CHECK;

void file_watch_poke(struct file_watch *w); /* by any thread */

enum file_news {
    FILE_NEWS_NONE = 0, /* the time is over */
    FILE_NEWS_SOME = 1, /* something was written, removed or made, or a poke came */
    FILE_NEWS_LEFT = 2, /* somebody who could write has closed the file, or died */
};
enum file_news file_watch_wait(struct file_watch *w, int timeout_ms);

#endif
