/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked for is compared with a table, as it came: nothing is unescaped, joined or opened, so there is no way out of it. Each
 * place of the page has an address of its own, and gets the page. A file below /assets/ has a digest in its name: its bytes never change,
 * and one that a newer version no longer has is not found. The page itself is asked for each time, by its digest.
 */
#include "server/console.h"

#include <stdio.h>

#include "net/http_accept.h"

#define ASSETS "/assets/"
#define PAGE "/"
#define TEXT "text/plain; charset=utf-8"
#define FIELDS_MAX 32
#define ETAG_SIZE 48

/* It may load what is in its files, talk to its own server, and nothing else. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char *const safe_fields[] = {
    "Content-Security-Policy",
    policy,
    "X-Content-Type-Options",
    "nosniff",
    "Referrer-Policy",
    "no-referrer",
    "Cross-Origin-Opener-Policy",
    "same-origin",
    "Cross-Origin-Resource-Policy",
    "same-origin",
    "Permissions-Policy",
    "camera=(), microphone=(), geolocation=()",
};
#define SAFE (sizeof safe_fields / sizeof safe_fields[0])

/* The places of the page; with `below` also what is below them. */
static const struct {
    const char *path;
    bool below;
} places[] = {
    {PAGE, false},       {"/inbox", false}, {"/sessions", true}, {"/tasks", true},    {"/graphs", true},
    {"/compare", false}, {"/start", false}, {"/access", false},  {"/torture", false},
};

bool console_is_there(void)
{
    return console_files[0].path != NULL;
}

/* "/a/b": no segment is empty or leads elsewhere. */
static bool stays_below(struct str path)
{
    for (size_t i = 0; i < path.len;) {
        const char *slash = memchr(path.ptr + i + 1, '/', path.len - i - 1);
        size_t end = slash ? (size_t)(slash - path.ptr) : path.len;
        struct str segment = {path.ptr + i + 1, end - i - 1};

        if (!segment.len || str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
            return false;
        i = end;
    }
    return true;
}

static bool is_place(struct str path)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t n = strlen(places[i].path);

        if (str_eq(path, str_from(places[i].path)))
            return true;
        if (places[i].below && path.len > n && path.ptr[n] == '/' && str_starts(path, str_from(places[i].path)))
            return stays_below((struct str){path.ptr + n, path.len - n});
    }
    return false;
}

static const struct console_file *file_at(struct str path)
{
    for (const struct console_file *f = console_files; f->path; f++)
        if (str_eq(path, str_from(f->path)))
            return f;
    return NULL;
}

/* ---- the answer ---- */

struct fields {
    const char *at[FIELDS_MAX];
    size_t n;
};

static void add_field(struct fields *f, const char *name, const char *value)
{
    f->at[f->n++] = name;
    f->at[f->n++] = value;
    f->at[f->n] = NULL;
}

static void add_safe_fields(struct fields *f)
{
    for (size_t i = 0; i < SAFE; i += 2)
        add_field(f, safe_fields[i], safe_fields[i + 1]);
}

static void answer_text(struct http_request *q, int status, struct str text)
{
    struct fields f = {.n = 0};

    add_safe_fields(&f);
    add_field(&f, "Cache-Control", "no-store");
    if (status == 405)
        add_field(&f, "Allow", "GET, HEAD");
    http_answer_const(q, status, TEXT, text, f.at);
}

static void answer_file(struct http_request *q, const struct console_file *file)
{
    struct fields f = {.n = 0};
    bool zipped = file->gzip.ptr && http_takes_gzip(http_field(q, "Accept-Encoding"));
    char etag[ETAG_SIZE];

    snprintf(etag, sizeof etag, "\"%.32s%s\"", file->digest, zipped ? "-gzip" : "");
    add_safe_fields(&f);
    add_field(&f, "ETag", etag);
    add_field(&f, "Cache-Control",
              str_starts(str_from(file->path), STR(ASSETS)) ? "public, max-age=31536000, immutable" : "no-cache");
    if (file->gzip.ptr)
        add_field(&f, "Vary", "Accept-Encoding");
    if (http_tag_is_known(http_field(q, "If-None-Match"), etag)) {
        http_answer_const(q, 304, NULL, STR(""), f.at);
        return;
    }
    if (zipped)
        add_field(&f, "Content-Encoding", "gzip");
    http_answer_const(q, 200, file->type, zipped ? file->gzip : file->plain, f.at);
}

bool console_is_address(struct str path)
{
    return is_place(path) || str_starts(path, STR(ASSETS)) || str_eq(path, STR("/favicon.svg")) || file_at(path);
}

void console_answer(struct http_request *q)
{
    const struct console_file *file = file_at(is_place(q->path) ? STR(PAGE) : q->path);

    if (q->method != HTTP_GET && q->method != HTTP_HEAD)
        answer_text(q, 405, STR("this address takes only: GET, HEAD\n"));
    else if (!console_is_there())
        answer_text(q, 404,
                    STR("This build has no console: it was made without Node. Install Node 18 or later and "
                        "npm, and build it again with: make build\n"));
    else if (!file)
        answer_text(q, 404,
                    STR("There is no such file: it belongs to another version of the console. Load the page again.\n"));
    else
        answer_file(q, file);
}
