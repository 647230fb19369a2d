/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager such as systemd gives to a service: sockets that listen already, and a place to say how it is. Without one
 * there are no sockets, and what is said is heard by nobody.
 */
#ifndef ENV_SERVICE_MANAGER_H
#define ENV_SERVICE_MANAGER_H

#include <stdbool.h>

#include "base/err.h"

struct service_socket {
    int fd;
    const char *name; /* as the manager calls it; "": no name */
};

struct service_manager;

/*
 * Takes what the environment says, and takes it out of the environment, so that no program we start believes that it is meant: before
 * there are other threads. TIDE_INVALID: it says nonsense.
 */
enum tide_code service_manager_open(struct service_manager **ret, struct tide_err *err) MUST_CHECK;
void service_manager_close(struct service_manager *m); /* takes NULL; the sockets stay open */

/* Whether there is one: what is printed then is kept in its log. */
bool service_manager_is_there(const struct service_manager *m);

/* Those that it gives, in its order; they are the caller's from then on. */
size_t service_manager_sockets(const struct service_manager *m, const struct service_socket **ret);

/* "READY=1", "STOPPING=1", "WATCHDOG=1": lines. */
void service_manager_tell(const struct service_manager *m, const char *state);

/* The manager expects "WATCHDOG=1" at least this often, or restarts the service; 0: it does not. */
int64_t service_manager_watchdog_ms(const struct service_manager *m);

#endif
