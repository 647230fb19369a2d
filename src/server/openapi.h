/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_OPENAPI_H
#define SERVER_OPENAPI_H

#include "base/buf.h"
#include "base/shape.h"

void openapi_write(struct buf *out);

#endif
