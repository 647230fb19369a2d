/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/store_position.h"

#include "store/store.h"

enum tide_code store_position(tide_store *store, int64_t *ret_position, struct tide_err *err)
{
    struct store *s = store_of(store);

    *ret_position = -1;
    return store_can(s, STORE_POSITIONS) ? store_last_position(s, ret_position, err) : TIDE_OK;
}
