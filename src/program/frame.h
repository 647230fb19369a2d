/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes over the socket between `tidemark exec` and the commands inside it, both ways:
 *
 *   bytes 0-3   length of the JSON, little-endian, 2 to 1 MiB
 *   bytes 4-7   length of the blob, little-endian
 *   then        the JSON object, then the blob: raw bytes such as a step's output
 */
#ifndef PROGRAM_FRAME_H
#define PROGRAM_FRAME_H

#include "base/buf.h"

#define FRAME_HEAD 8
#define FRAME_JSON_MAX ((size_t)1 << 20)
#define FRAME_BLOB_MAX ((size_t)49 << 20) /* the largest output that a step may have, and some */

struct frame {
    struct str json, blob; /* point into the reader until frame_drop() */
};

/* Gathers a frame from pieces. */
struct frame_reader {
    struct buf bytes;
};

#define FRAME_READER_INIT                                                                                              \
    {                                                                                                                  \
        BUF_INIT(FRAME_HEAD + FRAME_JSON_MAX + FRAME_BLOB_MAX)                                                         \
    }

enum frame_got {
    FRAME_HERE,
    FRAME_LATER, /* more bytes are needed */
    FRAME_END,   /* the other side has closed */
    FRAME_BAD,   /* lengths that cannot be: the other side is not one of ours */
};

/* Reads what is there, once; never past the frame that is being gathered. FRAME_HERE stays until frame_drop(). */
enum frame_got frame_read(struct frame_reader *r, int fd);

/* Whether a whole frame has been gathered, without reading. */
enum frame_got frame_look(const struct frame_reader *r, struct frame *ret_frame);
void frame_drop(struct frame_reader *r);
void frame_reader_done(struct frame_reader *r);

/* Puts a frame behind what `out` holds. */
void frame_put(struct buf *out, struct str json, struct str blob);

/* The head alone, for those who send the parts without copying them. */
void frame_head(unsigned char out[FRAME_HEAD], size_t json_len, size_t blob_len);

#endif
