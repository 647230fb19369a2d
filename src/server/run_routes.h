/* SPDX-License-Identifier: Apache-2.0 */
/* How a request that makes a session continue is answered, for the routes that do so. */
#ifndef SERVER_RUN_ROUTES_H
#define SERVER_RUN_ROUTES_H

#include "server/call.h"
#include "server/runner.h"

#define MESSAGES_MAX 10 /* that wait in the queue of a session */
#define WAIT_HELP "answer when it waits or has ended; with the scope answer, include the token of its wait"

/* A begun_fn with the call: its first parameter is the session. */
void answer_begun(void *arg, const struct begun *begun, const struct tide_err *err);

#endif
