/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web console: files that are part of this program (tools/console makes them, tools/console-embed puts them into the build), served
 * beside the API. They hold no data: a page of it asks the API as any other client does, with a token.
 */
#ifndef SERVER_CONSOLE_H
#define SERVER_CONSOLE_H

#include "net/http_server.h"

struct console_file {
    const char *path;   /* as it is asked for: "/" for the page itself, "/assets/index-4f2a.js"; NULL ends the table */
    const char *type;   /* Content-Type */
    const char *digest; /* of its bytes, in hex */
    struct str plain;
    struct str gzip; /* without a pointer: it would not be smaller */
};

/* None at all: this build has no console. */
extern const struct console_file console_files[];

bool console_is_there(void);

/* Whether it is one of the console, which may not be there. `path` as it came. */
bool console_is_address(struct str path);
/* Answers a request for such an address. */
void console_answer(struct http_request *q);

#endif
