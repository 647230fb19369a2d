/* SPDX-License-Identifier: Apache-2.0 */
#include "net/library.h"

#include <dlfcn.h>

static enum tide_code find_symbols(const struct library *l, void *handle, struct tide_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        *l->symbols[i].slot = dlsym(handle, l->symbols[i].name);
        if (!*l->symbols[i].slot)
            return tide_fail(err, TIDE_FAILED, "%s has no %s: it is too old; install a newer Debian package %s",
                             l->name, l->symbols[i].name, l->package);
    }
    return TIDE_OK;
}

enum tide_code library_load(struct library *l, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    void *handle;

    pthread_mutex_lock(&l->mu);
    if (!l->loaded) {
        handle = dlopen(l->name, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            code = find_symbols(l, handle, err);
        else
            code = tide_fail(err, TIDE_FAILED, "%s cannot be loaded, so %s; install the Debian package %s", l->name,
                             l->what, l->package);
        l->loaded = !code;
    }
    pthread_mutex_unlock(&l->mu);
    return code;
}
