/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the provider's key comes from. It is never in the config itself, never in an argument, never in a message; what
 * was copied on the way is wiped. White space at its ends is not part of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/config_value.h"
#include "agent/hook_program.h"
#include "program/guard.h"

#define KEY_MAX ((size_t)64 << 10)
#define KEYCHAIN_MS 60000 /* somebody may have to unlock it */

static void wipe_key(struct buf *b)
{
    if (b->ptr)
        explicit_bzero(b->ptr, b->cap);
    buf_done(b);
}

/* It will stand in a header: one word of plain characters. */
static enum tide_code give_key(struct str key, const char *from, struct buf *ret_key, struct tide_err *err)
{
    key = str_trim(key);
    if (key.len == 0)
        return tide_fail(err, TIDE_NOT_FOUND, "%.150s is empty: put the key there", from);
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] <= ' ' || (unsigned char)key.ptr[i] >= 0x7f)
            return tide_fail(err, TIDE_INVALID,
                             "%.150s holds something else than one key: spaces, control characters or letters "
                             "that no key has",
                             from);
    buf_clear(ret_key);
    buf_add_str(ret_key, key);
    return ret_key->failed ? tide_fail(err, TIDE_TOO_BIG, "%.150s: the key is too long", from) : TIDE_OK;
}

/* ---- a file ---- */

static enum tide_code check_file(int fd, const char *path, struct tide_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return tide_fail_errno(err, errno, "%.150s", path);
    if (!S_ISREG(st.st_mode))
        return tide_fail(err, TIDE_INVALID, "%.150s: not a file", path);
    if (st.st_mode & S_IRWXO)
        return tide_fail(err, TIDE_DENIED, "%.100s: every user of this machine may read or change it: chmod 600 %.100s",
                         path, path);
    return TIDE_OK;
}

static enum tide_code from_file(const char *dir, const char *name, struct buf *ret_key, struct tide_err *err)
{
    AUTO(buf_done) struct buf path = BUF_INIT(8192);
    AUTO(wipe_key) struct buf text = BUF_INIT(KEY_MAX);
    const char *home = strncmp(name, "~/", 2) == 0 ? getenv("HOME") : NULL;
    enum tide_code code;
    int fd, bad = 0;

    buf_addf(&path, "%s%s", home ? home : name[0] == '/' ? "" : dir, home ? name + 1 : name);
    fd = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hold us */
    if (fd < 0)
        return tide_fail_errno(err, errno, "%.150s", buf_cstr(&path));
    code = check_file(fd, buf_cstr(&path), err);
    if (!code && (bad = buf_read_fd(&text, fd)) != 0)
        code = tide_fail_errno(err, bad, "%.150s", buf_cstr(&path));
    if (!code && text.failed)
        code = tide_fail(err, TIDE_TOO_BIG, "%.150s: too big for a key", buf_cstr(&path));
    close(fd);
    return code ? code : give_key(buf_view(&text), buf_cstr(&path), ret_key, err);
}

/* ---- the keychain ---- */

static enum tide_code from_keychain(const char *name, struct buf *ret_key, struct tide_err *err)
{
    char *argv[] = {"secret-tool", "lookup", "service", "tidemark", "account", (char *)(uintptr_t)name, NULL};
    struct guard guard =
        GUARD_INIT; /* there is no run yet whose it could be: a process that is killed here leaves nothing either */
    struct hook_program p = {.argv = argv, .input = STR(""), .timeout_ms = KEYCHAIN_MS, .guard = &guard};
    AUTO(wipe_key) struct buf text = BUF_INIT(KEY_MAX);
    AUTO(buf_done) struct buf account = BUF_INIT((size_t)1 << 20);
    enum tide_code code;

    if (name[0] == '-')
        return tide_fail(err, TIDE_INVALID, "keychain:%.60s: a name does not begin with '-'", name);
    code = hook_program_run(&p, &text, err);
    guard_end(&guard);
    if (code == TIDE_NOT_FOUND)
        return tide_fail(err, code,
                         "the keychain is asked with secret-tool, which is not installed: install "
                         "libsecret-tools, or use env:NAME or file:PATH");
    if (code == TIDE_FAILED || (!code && text.len == 0)) {
        tide_fail(err, TIDE_NOT_FOUND, "the keychain has no '%.40s'%s%.60s", name, code ? ": " : "",
                  code ? err->msg : "");
        json_quote(&account, str_from(name));
        return tide_hint_with(err, TIDE_ACTION_STORE_SECRET, "", "\"service\":\"tidemark\",\"account\":%s",
                              buf_cstr(&account));
    }
    return code ? tide_wrap(err, "secret-tool") : give_key(buf_view(&text), "the keychain", ret_key, err);
}

/* ---- whichever it is ---- */

/* The provider's usual variable, then ours. A server that asks for no key gets none. */
static enum tide_code from_usual(const char *provider, struct buf *ret_key, struct tide_err *err)
{
    static const struct {
        const char *provider, *names[3];
    } usual[] = {
        {"anthropic", {"ANTHROPIC_API_KEY", "TIDEMARK_API_KEY"}},
        {"openai", {"OPENAI_API_KEY", "TIDEMARK_API_KEY"}},
    };

    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        for (size_t k = 0; strcmp(usual[i].provider, provider) == 0 && usual[i].names[k]; k++) {
            const char *value = getenv(usual[i].names[k]);

            if (value && *value)
                return give_key(str_from(value), usual[i].names[k], ret_key, err);
        }
    }
    return TIDE_OK;
}

static enum tide_code read_key(const char *ref, const char *dir, struct buf *ret_key, struct tide_err *err)
{
    const char *variable = strncmp(ref, "env:", 4) == 0 ? ref + 4 : NULL, *value = variable ? getenv(variable) : NULL;

    if (variable && !value)
        return tide_fail(err, TIDE_NOT_FOUND, "the variable %.100s is not set: export it", variable);
    if (variable)
        return give_key(str_from(value), variable, ret_key, err);
    if (strncmp(ref, "file:", 5) == 0)
        return from_file(dir, ref + 5, ret_key, err);
    return from_keychain(ref + strlen("keychain:"), ret_key, err);
}

static enum tide_code name_setting(enum tide_code code, struct tide_err *err)
{
    if (!code)
        return TIDE_OK;
    tide_wrap(err, "api_key");
    return tide_about(err, TIDE_SUBJECT_KEY, "api_key");
}

enum tide_code config_key_read(const char *ref, const char *dir, struct buf *ret_key, struct tide_err *err)
{
    ERR_LOCAL(err);
    return name_setting(read_key(ref, dir, ret_key, err), err);
}

enum tide_code config_api_key(const struct config *c, const char *provider, struct buf *ret_key, struct tide_err *err)
{
    const char *ref = config_text(c, "api_key");

    ERR_LOCAL(err);
    buf_clear(ret_key);
    if (strcmp(provider, "script") == 0)
        return TIDE_OK;
    return name_setting(ref ? read_key(ref, config_dir(c), ret_key, err) : from_usual(provider, ret_key, err), err);
}
