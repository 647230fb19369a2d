/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any words into the command line's parser, and the same bytes into the reader of lines: no crash, one line of error, and
 * every line handed out once.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/args.h"
#include "cli/line_reader.h"
#include "fuzz.h"

#define WORDS 32

static void parse_words(const uint8_t *data, size_t size)
{
    char *text = mem_dup((struct str){(const char *)data, size}), *argv[WORDS + 2] = {"tidemark"};
    struct tide_err err = {0};
    struct args args;
    int argc = 1;

    for (char *at = text; at < text + size && argc <= WORDS; at += strlen(at) + 1) { /* words end with NUL or newline */
        argv[argc++] = at;
        at[strcspn(at, "\n")] = 0;
    }
    if (args_parse(argc, argv, &args, &err))
        MUST(err.msg[0] && !strchr(err.msg, '\n'));
    args_done(&args); /* what was understood before a fault is there, for the hint */
    free(text);
}

static void read_lines(const uint8_t *data, size_t size)
{
    int fd = memfd_create("lines", MFD_CLOEXEC);
    struct tide_err err;
    struct line_reader lines;
    struct str line;
    size_t seen = 0;
    enum line_got got;

    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    line_reader_init(&lines, fd, 1000);
    while ((got = line_reader_next(&lines, true, &line, &err)) == LINE_HERE) {
        MUST(line.len <= 1000 && memcmp(line.ptr, data + seen, line.len) == 0);
        seen += line.len + 1;
    }
    MUST(got == LINE_FAILED || seen == size || seen == size + 1);
    line_reader_done(&lines);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse_words(data, size);
    read_lines(data, size);
    return 0;
}
