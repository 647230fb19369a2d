/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of a run: an abstract unix socket, so that a killed `exec` leaves nothing behind. Its name holds 128 random
 * bits, but names of abstract sockets can be listed by anyone on the machine: each side therefore asks the kernel who the
 * other is, and talks only to its own user or root.
 */
#ifndef PROGRAM_RUN_SOCKET_H
#define PROGRAM_RUN_SOCKET_H

#include "base/err.h"

#define RUN_SOCKET_ENV "TIDEMARK_RUN"
#define STEP_ENV "TIDEMARK_STEP" /* name of the step that a program is inside of; empty or unset: none */
#define RUN_SOCKET_NAME_SIZE 48

/* A listening socket and its name, for the environment of what runs inside. */
enum tide_code run_socket_open(int *ret_fd, char ret_name[RUN_SOCKET_NAME_SIZE], struct tide_err *err) MUST_CHECK;

/* The next connection that may come in, or -1 when there is none. Non-blocking; others are turned away. */
int run_socket_accept(int fd);

/* From the other side. TIDE_NOT_FOUND: nobody is there. */
enum tide_code run_socket_connect(const char *name, int *ret_fd, struct tide_err *err) MUST_CHECK;

#endif
