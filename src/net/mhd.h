/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd, loaded when a server starts. Its functions by the names that they have there, without MHD_. */
#ifndef NET_MHD_H
#define NET_MHD_H

#include <microhttpd.h>

#include "base/err.h"

struct mhd {
    __typeof__(&MHD_start_daemon) start_daemon;
    __typeof__(&MHD_stop_daemon) stop_daemon;
    __typeof__(&MHD_quiesce_daemon) quiesce_daemon;
    __typeof__(&MHD_get_daemon_info) get_daemon_info;
    __typeof__(&MHD_get_timeout) get_timeout;
    __typeof__(&MHD_run) run;
    __typeof__(&MHD_get_connection_info) get_connection_info;
    __typeof__(&MHD_get_connection_values_n) get_connection_values_n;
    __typeof__(&MHD_suspend_connection) suspend_connection;
    __typeof__(&MHD_resume_connection) resume_connection;
    __typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
    __typeof__(&MHD_create_response_from_callback) create_response_from_callback;
    __typeof__(&MHD_create_response_for_upgrade) create_response_for_upgrade;
    __typeof__(&MHD_add_response_header) add_response_header;
    __typeof__(&MHD_queue_response) queue_response;
    __typeof__(&MHD_destroy_response) destroy_response;
    __typeof__(&MHD_upgrade_action) upgrade_action;
};
extern struct mhd mhd;

enum tide_code mhd_load(struct tide_err *err) MUST_CHECK;

#endif
