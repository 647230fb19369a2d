/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes into import, on a simulated disk. What is taken must verify and come out of export again; what is refused must
 * leave no session behind.
 */
#include "fuzz_store.h"

static int keep(void *arg, const char *bytes, size_t len)
{
    buf_add(arg, bytes, len);
    return 0;
}

static int count(void *arg, const struct tide_session_info *info)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static void check_taken(tide_store *store, const char *id)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    tide_session *s = NULL;

    MUST(tide_session_open(store, id, TIDE_SESSION_READ, &s, NULL) == TIDE_OK);
    MUST(tide_session_verify(s, NULL, NULL, NULL, NULL) == TIDE_OK);
    MUST(tide_session_export(s, keep, NULL, &out, NULL) == TIDE_OK);
    tide_session_close(s);
    MUST(tide_session_delete(store, id, NULL) == TIDE_OK);
    MUST(tide_session_import(store, give, NULL, &(struct str){out.ptr, out.len}, (char[TIDE_ID_SIZE]){0}, NULL) ==
         TIDE_OK);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim *sim = sim_new_from(1, empty_store());
    tide_store *store = open_store(sim);
    struct str source = {(const char *)data, size};
    char id[TIDE_ID_SIZE];
    int sessions = 0;

    if (tide_session_import(store, give, NULL, &source, id, NULL) == TIDE_OK)
        check_taken(store, id);
    else {
        MUST(tide_session_list(store, NULL, count, &sessions, NULL) == TIDE_OK);
        MUST(sessions == 0);
    }
    tide_store_close(store);
    sim_free(sim);
    return 0;
}
