/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the import share. */
#ifndef HIVE_HIVE_INTERNAL_H
#define HIVE_HIVE_INTERNAL_H

#include "base/json.h"
#include "hive/hive.h"

struct hive {
    struct arena arena;
    struct json_out out;
    const struct json *agent, *graph; /* graph is never NULL */
    problem_fn *warn;
    void *arg;
};

void hive_warn(struct hive *h, const char *path, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Of members: text ("" by default), the first item of a list or object, whether a list has a word. */
struct str hive_text(struct hive *h, const struct json *v, const char *key);
const struct json *hive_items(const struct json *v, const char *key);
bool hive_lists(struct hive *h, const struct json *v, const char *key, struct str word);

/* Ids there may have any characters. */
struct str hive_id(struct hive *h, struct str s);

/* Members of ours from members of theirs; nothing where there is none. */
void hive_put_id(struct hive *h, const char *key, struct str s, const char *path);
void hive_put_list(struct hive *h, const char *key, const struct json *v, const char *from);
void hive_put_int(struct hive *h, const char *key, const struct json *v, const char *from, int64_t otherwise);

/* Keys that have no counterpart, and what to do about it. */
struct left_out {
    const char *key, *why;
};
void hive_name_left_out(struct hive *h, const struct json *v, const char *path, const struct left_out *rows);

/* A condition in Lua; one that cannot be translated is reported, and returned unchanged. */
const char *hive_lua(struct hive *h, struct str python, const char *path);

struct str hive_said(struct hive *h, const struct json *node); /* what is written about it */
void hive_put_node(struct hive *h, const struct json *node, const char *path);

#endif
