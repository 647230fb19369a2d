/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "base/buf.h"

struct server;

/* Figures of this server since it started, in the text format of Prometheus. */
void metrics_write(struct server *s, struct buf *out);

#endif
