/* SPDX-License-Identifier: Apache-2.0 */
/* What a client takes, and what it has already: fields of its request. */
#ifndef NET_HTTP_ACCEPT_H
#define NET_HTTP_ACCEPT_H

#include "base/str.h"

/* Accept-Encoding: "gzip, deflate;q=0.5". */
bool http_takes_gzip(struct str accept);

/* If-None-Match: a list of tags, weak or not; `etag` is in quotes. */
bool http_tag_is_known(struct str tags, const char *etag);

#endif
