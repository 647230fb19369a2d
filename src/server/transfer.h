/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on their way in and out, of any size: an export is written as fast as its reader takes it, an upload goes to a file
 * without a name and is imported from there. Each has a thread of its own, so that no worker waits for a slow client, or for every
 * event of a long log; a few at once.
 */
#ifndef SERVER_TRANSFER_H
#define SERVER_TRANSFER_H

#include "server/call.h"

struct transfers;
struct transfers *transfers_new(void);
void transfers_free(struct transfers *t); /* ends them, and waits until they have; takes NULL */

/* TIDE_BUSY: as many are under way as may. */
enum tide_code transfer_export(struct call *c, struct tide_err *err) MUST_CHECK;
enum tide_code transfer_import(struct call *c, struct tide_err *err) MUST_CHECK;
enum tide_code transfer_verify(struct call *c, struct tide_err *err) MUST_CHECK;

/* Takes the body of a request to a file. False: there can be none. */
bool upload_begin(struct http_request *q);
/* What was uploaded, by its digest. */
struct digest_state;
void upload_add_digest(const struct http_request *q, struct digest_state *d);

#endif
