/* SPDX-License-Identifier: Apache-2.0 */
#include "program/session_program.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "session/redact.h"
#include "session/session.h"

void session_program_done(struct session_program *p)
{
    arena_done(&p->arena);
}

/* ---- where it comes from ---- */

static enum tide_code take_cwd(struct session_program *p, struct tide_err *err)
{
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);

    if (!cwd)
        return tide_fail_errno(err, errno, "find the current directory");
    p->cwd = arena_dup(&p->arena, str_from(cwd)).ptr;
    return TIDE_OK;
}

enum tide_code session_program_from_argv(struct session_program *p, const char *const *argv, size_t n, const char *env,
                                         struct tide_err *err)
{
    if (take_cwd(p, err))
        return err->code;
    p->env = env;
    p->path = str_is_utf8(str_from(program_path()), NULL) ? arena_dup(&p->arena, str_from(program_path())).ptr : NULL;
    p->argv = arena_zero(&p->arena, (n + 1) * sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        p->argv[i] = (char *)(uintptr_t)argv[i];
        if (!str_is_utf8(str_from(p->argv[i]), NULL))
            return tide_fail(
                err, TIDE_INVALID,
                "argument %zu of the program is not valid UTF-8: it could not be recorded exactly: give it in a file",
                i);
    }
    if (!str_is_utf8(str_from(p->cwd), NULL))
        return tide_fail(err, TIDE_INVALID, "the name of the current directory is not valid UTF-8");
    return TIDE_OK;
}

static const char *text_of(struct session_program *p, const struct json *fields, const char *key)
{
    struct str s = json_get_text(&p->arena, fields, str_from(key));

    return s.len > 0 ? arena_dup(&p->arena, s).ptr : NULL;
}

static char **texts_of(struct session_program *p, const struct json *array)
{
    char **texts = arena_zero(&p->arena, ((array ? array->count : 0) + 1) * sizeof(char *));
    size_t n = 0;

    for (const struct json *v = array ? array->first : NULL; v; v = v->next)
        if (v->type == JSON_STRING)
            texts[n++] = (char *)(uintptr_t)arena_dup(&p->arena, json_text(&p->arena, v)).ptr;
    return texts;
}

/* *ret_hidden: its command line held a secret, so that what is recorded is not what ran. */
static enum tide_code read_log(struct session_program *p, tide_session *session, bool *ret_hidden, struct tide_err *err)
{
    struct tide_text text = {NULL, 0};
    struct json *fields = NULL;
    struct str kept;
    enum tide_code code = tide_session_check_trust(session, err);

    code = code ? code : tide_session_get_program(session, &text, err);

    if (code == TIDE_NOT_FOUND) /* the program, not the session */
        err->code = TIDE_WRONG_STATE;
    if (code)
        return err->code;
    kept = arena_dup(&p->arena, (struct str){text.ptr, text.len});
    tide_text_done(&text);
    if (json_parse(&p->arena, kept, NULL, &fields, NULL, err))
        return err->code;
    *ret_hidden = redact_is_marked(fields, kept);
    p->argv = texts_of(p, json_get(fields, STR("argv")));
    p->cwd = text_of(p, fields, "cwd");
    p->program = text_of(p, fields, "program");
    p->path = text_of(p, fields, "path");
    p->digest = text_of(p, fields, "program_digest");
    p->stat = text_of(p, fields, "program_stat");
    p->env = NULL; /* "A,B" again: in the one form in which names are looked at */
    for (char *const *name = texts_of(p, json_get(fields, STR("env"))); *name; name++)
        p->env = p->env ? arena_printf(&p->arena, "%s,%s", p->env, *name) : *name;
    if (p->argv[0] && !p->cwd && take_cwd(p, err)) /* of a log that another program wrote: where it is resumed */
        return err->code;
    if (!p->argv[0])
        return tide_fail_session(err, TIDE_WRONG_STATE, tide_session_id(session),
                                 "has no recorded program: resume it with the program that created it");
    return TIDE_OK;
}

enum tide_code session_program_from_log(struct session_program *p, tide_session *session, struct tide_err *err)
{
    bool hidden = false;

    if (read_log(p, session, &hidden, err))
        return err->code;
    if (hidden) {
        tide_fail(
            err, TIDE_WRONG_STATE,
            "the command line of session '%s' contained a secret, which is not stored: it is not run from the log: "
            "pass secrets in the environment",
            tide_session_id(session));
        return tide_hint_with(err, TIDE_ACTION_START, tide_session_id(session), "\"ensure\":true");
    }
    return TIDE_OK;
}

/* As the log would have it: without secrets. */
static char **recorded_argv(struct session_program *p, const tide_session *session)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    struct json *array = NULL;
    struct str shown;

    json_out_begin(&o, '[');
    for (char *const *arg = p->argv; *arg; arg++)
        json_out_str(&o, str_from(*arg));
    json_out_end(&o, ']');
    shown = arena_dup(&p->arena, buf_view(&text));
    redact_json(session->store, &p->arena, &shown);
    return json_parse(&p->arena, shown, NULL, &array, NULL, NULL) ? p->argv : texts_of(p, array);
}

static bool is_same(struct session_program *given, const struct session_program *logged, const tide_session *session)
{
    char *const *a = recorded_argv(given, session), *const *b = logged->argv;
    bool relative = strchr(given->argv[0], '/') && given->argv[0][0] != '/';

    for (; *a && *b && strcmp(*a, *b) == 0; a++)
        b++;
    return !*a && !*b && (!relative || strcmp(given->cwd, logged->cwd) == 0);
}

enum tide_code session_program_match(struct session_program *p, tide_session *session, struct tide_err *err)
{
    struct session_program logged = SESSION_PROGRAM_INIT;
    bool hidden = false;
    enum tide_code code = read_log(&logged, session, &hidden, err);

    if (!code && !is_same(p, &logged, session)) {
        tide_fail_session(err, TIDE_INVALID, tide_session_id(session), "runs another program: '%.80s' in '%.80s'",
                          logged.argv[0], logged.cwd);
        code = tide_hint_with(err, TIDE_ACTION_START, tide_session_id(session), "\"new_run\":true");
    }
    if (!code && hidden) {
        p->cwd = arena_dup(&p->arena, str_from(logged.cwd)).ptr;
        p->path = logged.path ? arena_dup(&p->arena, str_from(logged.path)).ptr : p->path;
        p->env = arena_text(&p->arena, logged.env);
        p->program = NULL;
    }
    if (code || hidden) {
        session_program_done(&logged);
        return code;
    }
    session_program_done(p);
    *p = logged;
    return TIDE_OK;
}

/* ---- whether it can run ---- */

static enum tide_code check_name(const char *name, size_t len, struct tide_err *err)
{
    AUTO(mem_freep) char *text = mem_dup((struct str){name, len});

    if (len == 0 || strchr(text, '='))
        tide_fail(err, TIDE_INVALID, "'%.60s' is not the name of a variable: give NAME,NAME", text);
    else if (!getenv(text))
        tide_fail(err, TIDE_INVALID, "$%.60s is not set: set it, then try again", text);
    else
        return TIDE_OK;
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "env");
}

static enum tide_code check_env(const char *names, struct tide_err *err)
{
    for (; names; names++) {
        size_t n = strcspn(names, ",");

        if (check_name(names, n, err))
            return err->code;
        names += n;
        if (!*names)
            break;
    }
    return TIDE_OK;
}

static enum tide_code check_cwd(const char *cwd, struct tide_err *err)
{
    struct stat st;

    if (stat(cwd, &st) == 0 && S_ISDIR(st.st_mode) && access(cwd, X_OK) == 0)
        return TIDE_OK;
    tide_fail(err, TIDE_NOT_FOUND, "the directory '%.200s' of the program is gone: create it again", cwd);
    return tide_about(err, TIDE_SUBJECT_FILE, cwd);
}

static void check_digest(struct session_program *p)
{
    struct program_file f = {.digest = ""};
    struct tide_err ignored = {0};

    snprintf(f.digest, sizeof(f.digest), "%s", p->digest ? p->digest : "");
    snprintf(f.stat, sizeof(f.stat), "%s", p->stat ? p->stat : "");
    if (program_digest(p->program, &f, &ignored)) /* executable, but not readable: it is not known then */
        return;
    p->changed = p->digest && strcmp(p->digest, f.digest) != 0;
    p->digest = arena_dup(&p->arena, str_from(f.digest)).ptr;
    p->stat = arena_dup(&p->arena, str_from(f.stat)).ptr;
}

enum tide_code session_program_check(struct session_program *p, int *ret_status, struct tide_err *err)
{
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);
    enum tide_code code;

    *ret_status = 0;
    if (check_cwd(p->cwd, err) || check_env(p->env, err))
        return err->code;
    code =
        program_find_in(p->path ? p->path : program_path(), p->program ? p->program : p->argv[0], p->cwd, &path, err);
    if (code) {
        *ret_status = program_find_exit(code);
        return code;
    }
    p->program = arena_dup(&p->arena, buf_view(&path)).ptr;
    check_digest(p);
    return TIDE_OK;
}

/* ---- the record ---- */

static void put_env(struct json_out *o, const char *names)
{
    json_out_key(o, STR("env"));
    json_out_begin(o, '[');
    while (names && *names) {
        size_t n = strcspn(names, ",");

        json_out_str(o, (struct str){names, n});
        names += n + (names[n] == ',');
    }
    json_out_end(o, ']');
}

enum tide_code session_program_fields(const struct session_program *p, const struct proc *child, struct buf *out,
                                      struct tide_err *err)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_key(&o, STR("argv"));
    json_out_begin(&o, '[');
    for (char *const *arg = p->argv; *arg; arg++)
        json_out_str(&o, str_from(*arg));
    json_out_end(&o, ']');
    json_out_kstr(&o, STR("cwd"), str_from(p->cwd));
    put_env(&o, p->env);
    json_out_kstr(&o, STR("program"), str_from(p->program));
    json_out_kstr_opt(&o, STR("path"), str_from(p->path));
    if (p->digest)
        json_out_kstr(&o, STR("program_digest"), str_from(p->digest));
    json_out_kstr_opt(&o, STR("program_stat"), str_from(p->stat));
    if (p->changed)
        json_out_kbool(&o, STR("program_changed"), true);
    json_out_kint(&o, STR("pid"), child->pid);
    json_out_kint(&o, STR("pid_start"), (int64_t)child->start);
    json_out_end(&o, '}');
    return out->failed ? tide_fail(err, TIDE_TOO_BIG, "the arguments of the program are longer than 16 MiB") : TIDE_OK;
}
