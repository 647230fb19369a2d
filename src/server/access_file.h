/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of tokens in the state directory, for access.c and access_change.c. access.json is
 *
 *   {"version":1,"tokens":[{"name":…,"id":…,"hash":…,"scopes":[…],"created_ms":…,"expires_ms":…}]}
 *
 * The hash is BLAKE2b-256 of the secret, which has 256 random bits: nothing slower is needed, and nothing that was stored gives it back. A
 * token of a sign-in has "signed_in":true, and "parent", the id of the token that allowed it: where that is gone, it is none either.
 */
#ifndef SERVER_ACCESS_FILE_H
#define SERVER_ACCESS_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "server/access.h"

#define ACCESS_FILE_NAME "access.json"
#define ACCESS_FILE_MAX ((size_t)1 << 20)

struct token {
    struct caller caller;
    unsigned char hash[DIGEST_SIZE];
};

struct token_list {
    struct token *at;
    size_t n, cap;
};

/* A file of the state directory, which is made. */
enum tide_code access_path(const char *name, char path[PATH_MAX], struct tide_err *err) MUST_CHECK;
/* Nothing where there is none. One that others can read or write is refused. */
enum tide_code access_read_file(const char *path, struct buf *ret_text, struct stat *ret_seen, struct tide_err *err)
    MUST_CHECK;

enum tide_code token_list_read(const char *path, struct token_list *ret, struct stat *ret_seen, struct tide_err *err)
    MUST_CHECK;
void token_list_write(const struct token_list *list, struct buf *out);
void token_list_done(struct token_list *list);

/* NULL: there is none. */
struct token *token_with_name(const struct token_list *list, const char *name);
struct token *token_with_id(const struct token_list *list, const char *id);
void token_remove(struct token_list *list, struct token *t); /* others move */
/* Whatever ended a token ended what was signed in by it, and by that. */
void token_list_drop_orphans(struct token_list *list);

#endif
