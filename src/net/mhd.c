/* SPDX-License-Identifier: Apache-2.0 */
#include "net/mhd.h"

#include "net/library.h"

struct mhd mhd;

static const struct library_symbol symbols[] = {
#define SYMBOL(name) LIBRARY_SYMBOL(mhd, "MHD_", name)
    SYMBOL(start_daemon),
    SYMBOL(stop_daemon),
    SYMBOL(quiesce_daemon),
    SYMBOL(get_daemon_info),
    SYMBOL(get_timeout),
    SYMBOL(run),
    SYMBOL(get_connection_info),
    SYMBOL(get_connection_values_n),
    SYMBOL(suspend_connection),
    SYMBOL(resume_connection),
    SYMBOL(create_response_from_buffer),
    SYMBOL(create_response_from_callback),
    SYMBOL(create_response_for_upgrade),
    SYMBOL(add_response_header),
    SYMBOL(queue_response),
    SYMBOL(destroy_response),
    SYMBOL(upgrade_action),
#undef SYMBOL
};

static struct library library = {
    .name = "libmicrohttpd.so.12",
    .package = "libmicrohttpd12",
    .what = "nothing can be served",
    .symbols = symbols,
    .n = sizeof symbols / sizeof symbols[0],
    .mu = PTHREAD_MUTEX_INITIALIZER,
};

enum tide_code mhd_load(struct tide_err *err)
{
    return library_load(&library, err);
}
