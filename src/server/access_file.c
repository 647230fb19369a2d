/* SPDX-License-Identifier: Apache-2.0 */
/* The caller that can read or write these files has every right: what others could is refused, and nothing follows a link. */
#include "server/access_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "env/user_key.h"

enum tide_code access_path(const char *name, char path[PATH_MAX], struct tide_err *err)
{
    return user_state_path(name, true, path, PATH_MAX)
               ? TIDE_OK
               : tide_fail(
                     err, TIDE_DENIED,
                     "the state directory cannot be written, and '%s' belongs there: set XDG_STATE_HOME to a directory of yours",
                     name);
}

/* What others could read or write is no secret and no list. */
static enum tide_code check_file(int fd, const char *path, struct stat *ret, struct tide_err *err)
{
    if (fstat(fd, ret))
        return tide_fail_file(err, errno, "look at", path);
    if (!S_ISREG(ret->st_mode) || ret->st_uid != geteuid())
        return tide_fail(err, TIDE_DENIED,
                         "'%s' is not a regular file of this user: remove it, and create tokens again", path);
    if (ret->st_mode & 077)
        return tide_fail(err, TIDE_DENIED,
                         "'%s' can be read or written by others: `chmod 600` it, and revoke what they may have read",
                         path);
    return TIDE_OK;
}

enum tide_code access_read_file(const char *path, struct buf *ret_text, struct stat *ret_seen, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
    enum tide_code code;
    int failed;

    memset(ret_seen, 0, sizeof *ret_seen);
    if (fd < 0 && errno == ENOENT)
        return TIDE_OK;
    if (fd < 0)
        return tide_fail_file(err, errno, "open", path);
    code = check_file(fd, path, ret_seen, err);
    failed = code ? 0 : buf_read_fd(ret_text, fd);
    close(fd);
    return code               ? code
           : failed           ? tide_fail_file(err, failed, "read", path)
           : ret_text->failed ? tide_fail(err, TIDE_TOO_BIG, "'%s' has more than a MiB", path)
                              : TIDE_OK;
}

static bool read_token(struct arena *a, const struct json *v, struct token *ret)
{
    struct str name = json_get_text(a, v, STR("name")), id = json_get_text(a, v, STR("id"));
    const struct json *scopes = json_get(v, STR("scopes"));

    *ret = (struct token){.caller = {.created_ms = json_get_int(v, STR("created_ms"), 0),
                                     .expires_ms = json_get_int(v, STR("expires_ms"), 0)}};
    snprintf(ret->caller.name, sizeof ret->caller.name, "%.*s", STR_ARG(name));
    snprintf(ret->caller.id, sizeof ret->caller.id, "%.*s", STR_ARG(id));
    snprintf(ret->caller.parent, sizeof ret->caller.parent, "%.*s", STR_ARG(json_get_text(a, v, STR("parent"))));
    ret->caller.signed_in = json_get_bool(v, STR("signed_in"), false);
    for (const struct json *s = scopes ? scopes->first : NULL; s; s = s->next)
        ret->caller.scopes |= scopes_from(json_text(a, s));
    return name.len && id.len && ret->caller.scopes &&
           hex_decode(ret->hash, DIGEST_SIZE, json_get_text(a, v, STR("hash")));
}

static enum tide_code parse_list(struct str text, const char *path, struct token_list *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    const struct json *list;

    if (!text.len)
        return TIDE_OK;
    if (json_parse(&a, text, NULL, &v, NULL, err))
        return tide_wrap(err, "read the tokens of '%s'", path);
    list = json_get(v, STR("tokens"));
    for (const struct json *t = list ? list->first : NULL; t; t = t->next) {
        MEM_ROOM(ret->at, ret->n, ret->cap);
        if (!read_token(&a, t, &ret->at[ret->n]))
            return tide_fail(err, TIDE_INVALID, "'%s' does not hold a token: remove the file, and create tokens again",
                             path);
        ret->n++;
    }
    return TIDE_OK;
}

void token_list_done(struct token_list *list)
{
    if (list->at)
        sodium_memzero(list->at, list->cap * sizeof *list->at);
    free(list->at);
    *list = (struct token_list){NULL, 0, 0};
}

struct token *token_with_name(const struct token_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].caller.name, name) == 0)
            return &list->at[i];
    return NULL;
}

struct token *token_with_id(const struct token_list *list, const char *id)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].caller.id, id) == 0)
            return &list->at[i];
    return NULL;
}

void token_remove(struct token_list *list, struct token *t)
{
    *t = list->at[--list->n];
}

void token_list_drop_orphans(struct token_list *list)
{
    for (size_t i = 0; i < list->n;) {
        const char *parent = list->at[i].caller.parent;

        if (!parent[0] || token_with_id(list, parent)) {
            i++;
            continue;
        }
        token_remove(list, &list->at[i]);
        i = 0; /* it may have been a parent */
    }
}

enum tide_code token_list_read(const char *path, struct token_list *ret, struct stat *ret_seen, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(ACCESS_FILE_MAX);
    struct token_list list = {NULL, 0, 0};
    enum tide_code code = access_read_file(path, &text, ret_seen, err);

    code = code ? code : parse_list(buf_view(&text), path, &list, err);
    token_list_drop_orphans(&list);
    if (code)
        token_list_done(&list);
    else
        *ret = list;
    return code;
}

void token_list_write(const struct token_list *list, struct buf *out)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("version"), 1);
    json_out_key(&o, STR("tokens"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < list->n; i++) {
        const struct token *t = &list->at[i];
        char hash[2 * DIGEST_SIZE + 1];
        const char *words[6];

        hex_encode(hash, t->hash, DIGEST_SIZE);
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("name"), str_from(t->caller.name));
        json_out_kstr(&o, STR("id"), str_from(t->caller.id));
        json_out_kstr(&o, STR("hash"), str_from(hash));
        json_out_key(&o, STR("scopes"));
        json_out_begin(&o, '[');
        scopes_list(t->caller.scopes, words);
        for (size_t k = 0; words[k]; k++)
            json_out_str(&o, str_from(words[k]));
        json_out_end(&o, ']');
        json_out_kint(&o, STR("created_ms"), t->caller.created_ms);
        json_out_kint(&o, STR("expires_ms"), t->caller.expires_ms);
        if (t->caller.signed_in)
            json_out_kbool(&o, STR("signed_in"), true);
        if (t->caller.parent[0])
            json_out_kstr(&o, STR("parent"), str_from(t->caller.parent));
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}
