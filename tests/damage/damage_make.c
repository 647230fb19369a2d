/* SPDX-License-Identifier: Apache-2.0 */
/* Damages: of bits, bytes, lines, fields and whole files; which one, and where, follows from the seed. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../seeded.h"
#include "../store_kind.h"
#include "damage.h"

#define FILES_MAX 200

bool verbose;
static uint64_t rng;
static char report[1000];

void damage_seed(uint64_t seed, uint64_t number)
{
    rng = seed * 0x9e3779b97f4a7c15u + number * 0xbf58476d1ce4e5b9u;
    report[0] = 0;
}

uint64_t damage_next(uint64_t below)
{
    return seeded_next(&rng) % below;
}

const char *damage_report(void)
{
    return report;
}

/* ---- files ---- */

struct file {
    char path[600];
    char *bytes;
    size_t len;
};

static char names[FILES_MAX][600];
static size_t n_names;

static void find(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;

    while (d && (e = readdir(d)) && n_names < FILES_MAX) {
        char path[600];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%.200s", dir, e->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            find(path);
        else
            memcpy(names[n_names++], path, sizeof path);
    }
    if (d)
        closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool load(const char *path, struct file *f)
{
    FILE *in = fopen(path, "rb");
    struct stat st;

    if (!in || fstat(fileno(in), &st)) {
        if (in)
            fclose(in);
        return false;
    }
    snprintf(f->path, sizeof f->path, "%s", path);
    f->bytes = calloc(1, 2 * (size_t)st.st_size + 600);
    f->len = fread(f->bytes, 1, (size_t)st.st_size, in);
    fclose(in);
    return true;
}

static void save(const struct file *f)
{
    FILE *out = fopen(f->path, "wb");

    if (!out || fwrite(f->bytes, 1, f->len, out) != f->len)
        exit(2);
    fclose(out);
}

static void copy_file(const char *from, const char *to)
{
    struct file f;

    if (!load(from, &f))
        exit(2);
    snprintf(f.path, sizeof f.path, "%s", to);
    save(&f);
    chmod(to, 0600);
    free(f.bytes);
}

static void copy_tree(const char *from, const char *to)
{
    DIR *d = opendir(from);
    struct dirent *e;
    struct stat st;

    mkdir(to, 0700);
    while (d && (e = readdir(d))) {
        char a[600], b[600];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(a, sizeof a, "%s/%.200s", from, e->d_name);
        snprintf(b, sizeof b, "%s/%.200s", to, e->d_name);
        if (lstat(a, &st) == 0 && S_ISDIR(st.st_mode))
            copy_tree(a, b);
        else
            copy_file(a, b);
    }
    if (d)
        closedir(d);
}

static void remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char path[600];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%.200s", dir, e->d_name);
        if (unlink(path) != 0)
            remove_tree(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void dir_reset(const char *dir, const char *from)
{
    remove_tree(dir);
    copy_tree(from, dir);
}

void dirs_remove(const char *dir)
{
    static const char *const tails[] = {"", "-left", "-closed"};

    for (int i = 0; i < 3; i++) {
        char path[300];

        snprintf(path, sizeof path, "%s%s", dir, tails[i]);
        remove_tree(path);
    }
}

/* ---- bytes ---- */

static void flip_bit(struct file *f)
{
    f->bytes[damage_next(f->len)] ^= (char)(1 << damage_next(8));
}

static void change_byte(struct file *f)
{
    f->bytes[damage_next(f->len)] = (char)damage_next(256);
}

static size_t place(const struct file *f, size_t *ret_len)
{
    size_t at = damage_next(f->len), len = 1 + damage_next(damage_next(2) ? 40 : 5000);

    *ret_len = len < f->len - at ? len : f->len - at;
    return at;
}

static void zeros(struct file *f)
{
    size_t len, at = place(f, &len);

    memset(f->bytes + at, 0, len);
}

static void noise(struct file *f)
{
    size_t len, at = place(f, &len);

    for (size_t i = 0; i < len; i++)
        f->bytes[at + i] = (char)damage_next(256);
}

static void page_over_another(struct file *f)
{
    size_t pages = f->len / 4096;

    if (pages > 1)
        memcpy(f->bytes + 4096 * damage_next(pages), f->bytes + 4096 * damage_next(pages), 4096);
}

static void cut(struct file *f)
{
    f->len = damage_next(f->len);
}

static void cut_little(struct file *f)
{
    f->len -= 1 + damage_next(f->len < 300 ? f->len : 300);
}

static void add_garbage(struct file *f)
{
    size_t n = 1 + damage_next(500);

    for (size_t i = 0; i < n; i++)
        f->bytes[f->len++] = damage_next(3) ? (char)damage_next(256) : '\n';
}

static void drop_bytes(struct file *f)
{
    size_t len, at = place(f, &len);

    memmove(f->bytes + at, f->bytes + at + len, f->len - at - len);
    f->len -= len;
}

/* ---- lines ---- */

/* A line with its newline; the last half of the time. */
static size_t line(const struct file *f, size_t *ret_len)
{
    size_t at = damage_next(2) ? f->len - 1 : damage_next(f->len), end;

    while (at > 0 && f->bytes[at - 1] != '\n')
        at--;
    for (end = at; end < f->len && f->bytes[end] != '\n'; end++)
        ;
    *ret_len = end < f->len ? end + 1 - at : end - at;
    return at;
}

static void cut_at_line(struct file *f)
{
    size_t len;

    f->len = line(f, &len);
}

static void drop_line(struct file *f)
{
    size_t len, at = line(f, &len);

    memmove(f->bytes + at, f->bytes + at + len, f->len - at - len);
    f->len -= len;
}

static void repeat_line(struct file *f)
{
    size_t len, at = line(f, &len);

    if (len > 100000)
        return;
    memmove(f->bytes + at + len, f->bytes + at, f->len - at);
    f->len += len;
}

static void line_to_end(struct file *f)
{
    size_t len, at = line(f, &len);

    memcpy(f->bytes + f->len, f->bytes + at, len);
    f->len += len;
}

static void swap_lines(struct file *f)
{
    size_t a_len, a = line(f, &a_len), b_len, b = line(f, &b_len), next = a + a_len;
    char *first;

    (void)b;
    if (next >= f->len)
        return;
    for (b_len = 0; next + b_len < f->len && f->bytes[next + b_len] != '\n'; b_len++)
        ;
    b_len += next + b_len < f->len;
    first = malloc(a_len);
    memcpy(first, f->bytes + a, a_len);
    memmove(f->bytes + a, f->bytes + next, b_len);
    memcpy(f->bytes + a + b_len, first, a_len);
    free(first);
}

/* ---- fields ---- */

static void replace(struct file *f, size_t at, size_t len, const char *with)
{
    size_t n = strlen(with);

    memmove(f->bytes + at + n, f->bytes + at + len, f->len - at - len);
    memcpy(f->bytes + at, with, n);
    f->len = f->len - len + n;
}

/* The value of a member that is a number or a text, replaced by another. */
static void change_field(struct file *f)
{
    static const char *const keys[] = {"\"seq\":",    "\"parent\":\"", "\"parent_seq\":", "\"more\":",     "\"at\":",
                                       "\"epoch\":",  "\"kind\":\"",   "\"before\":\"",   "\"digest\":\"", "\"ts\":\"",
                                       "last_seq\":", "\"id\":\"",     "acknowledged ",   "\"version\":",  "position "};
    static const char *const values[] = {"0",    "1",    "2",    "7",     "99", "-1",
                                         "fork", "long", "deep", "short", "",   "9999999999"};
    const char *key = keys[damage_next(sizeof keys / sizeof keys[0])];
    size_t n = strlen(key), found[400], k = 0, at, len = 0;

    for (size_t i = 0; i + n < f->len && k < 400; i++)
        if (memcmp(f->bytes + i, key, n) == 0)
            found[k++] = i + n;
    if (!k) {
        flip_bit(f);
        return;
    }
    at = found[damage_next(2) ? damage_next(k) : damage_next(2) ? 0 : k - 1];
    while (at + len < f->len && !strchr("\",} \n", f->bytes[at + len]))
        len++;
    replace(f, at, len, values[damage_next(sizeof values / sizeof values[0])]);
}

/* ---- one of them ---- */

static const struct {
    const char *name;
    void (*fn)(struct file *);
    bool lines; /* of files of text */
} ways[] = {
    {"flip a bit", flip_bit, false},
    {"change a byte", change_byte, false},
    {"zeros", zeros, false},
    {"noise", noise, false},
    {"cut", cut, false},
    {"cut a little", cut_little, false},
    {"append", add_garbage, false},
    {"drop bytes", drop_bytes, false},
    {"a page over another", page_over_another, false},
    {"cut at a line", cut_at_line, true},
    {"drop a line", drop_line, true},
    {"repeat a line", repeat_line, true},
    {"a line to the end", line_to_end, true},
    {"swap lines", swap_lines, true},
    {"change a field", change_field, true},
    {"change a field", change_field, true},
};

static bool is_text(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcmp(dot, ".jsonl") == 0 || strcmp(dot, ".json") == 0 || strcmp(dot, ".mark") == 0 ||
                   strcmp(dot, ".db-mark") == 0 || strcmp(dot, ".head") == 0);
}

static void note(const char *what, const char *path, const char *dir)
{
    size_t len = strlen(report);

    snprintf(report + len, sizeof report - len, " %s: %s;", path + strlen(dir) + 1, what);
}

/* Mostly of those that hold the truth. */
static const char *choose(void)
{
    for (int i = 0; i < 4; i++) {
        const char *path = names[damage_next(n_names)];

        if (strstr(path, ".messages.jsonl") || strstr(path, "mark") || strstr(path, ".db"))
            return path;
    }
    return names[damage_next(n_names)];
}

static void whole_file(const char *path, const char *dir)
{
    const char *other = names[damage_next(n_names)], *tail = strchr(strrchr(path, '/'), '.');

    switch (damage_next(3)) {
    case 0:
        note("gone", path, dir);
        unlink(path);
        return;
    case 1:
        note("empty", path, dir);
        (void)!truncate(path, 0); /* the damage before may have taken it away */
        return;
    default:
        for (int i = 0; i < 50 && !(tail && strchr(strrchr(other, '/'), '.') && other != path &&
                                    strcmp(strchr(strrchr(other, '/'), '.'), tail) == 0);
             i++)
            other = names[damage_next(n_names)];
        note("is that of another", path, dir);
        if (other != path && access(other, R_OK) == 0)
            copy_file(other, path);
    }
}

static void damage_one(const char *dir)
{
    const char *path = choose();
    struct file f;
    size_t way;

    if (damage_next(8) == 0) {
        whole_file(path, dir);
        return;
    }
    if (!load(path, &f))
        return;
    do {
        way = damage_next(sizeof ways / sizeof ways[0]);
    } while (ways[way].lines && !is_text(path));
    note(ways[way].name, path, dir);
    if (f.len > 1)
        ways[way].fn(&f);
    save(&f);
    free(f.bytes);
}

void damage_some(const char *dir, int n)
{
    n_names = 0;
    find(dir);
    qsort(names, n_names, sizeof names[0], by_name);
    while (n-- > 0)
        damage_one(dir);
}

/* ---- options ---- */

bool damage_options(int argc, char **argv, struct damage_job *j)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--store") == 0 && ++i < argc)
            setenv("TIDEMARK_TEST_STORE", value, 1);
        else if (strcmp(argv[i], "--damages") == 0 && ++i < argc)
            j->n = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && ++i < argc)
            j->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && ++i < argc)
            j->only = strtoull(value, NULL, 10);
        else
            return fprintf(stderr, "usage: tidemark-damage [--store sqlite|files] [--damages N] [--seed X] [--only K] "
                                   "[--verbose]\n"),
                   false;
    }
    return true;
}
