/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs are looked for by name and by what a graph has in its first bytes, a few directories deep. Symbolic links are not followed, and names
 * that begin with a dot are passed over. All of it is bounded: roots can be large.
 */
#include "engine/startable.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/settings.h"

#define DEPTH_MAX 4
#define LOOKED_AT_MAX 5000 /* names */
#define HEAD_BYTES 65536   /* of a file, in which nodes must be named */

struct looking {
    struct startable *s;
    int left; /* names that are still looked at */
    char head[HEAD_BYTES];
};

static bool ends_in_json(const char *name)
{
    size_t len = strlen(name);

    return len > 5 && strcmp(name + len - 5, ".json") == 0;
}

static bool is_graph(struct looking *l, int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t n = 0;

    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode))
        n = read(fd, l->head, sizeof l->head);
    close(fd);
    return n > 0 && memmem(l->head, (size_t)n, "\"nodes\"", 7) && str_is_utf8(str_from(name), NULL);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_listed(const struct startable *s, const char *path)
{
    for (size_t i = 0; i < s->n_graphs; i++)
        if (strcmp(s->graphs[i], path) == 0)
            return true;
    return false;
}

/* `fd` is taken. */
static void look_into(struct looking *l, int fd, const char *path, int depth)
{
    struct arena *a = &l->s->settings.arena;
    DIR *dir = fdopendir(fd);

    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *e = readdir(dir); e && l->left > 0 && l->s->n_graphs < STARTABLE_GRAPHS; e = readdir(dir)) {
        const char *name = e->d_name, *whole;
        int inside = -1;

        if (name[0] == '.')
            continue;
        l->left--;
        whole = *path ? arena_printf(a, "%s/%s", path, name) : arena_printf(a, "%s", name);
        if (ends_in_json(name) && is_graph(l, dirfd(dir), name)) {
            if (!is_listed(l->s, whole))
                l->s->graphs[l->s->n_graphs++] = whole;
        } else if (depth < DEPTH_MAX) {
            inside = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (inside >= 0)
            look_into(l, inside, whole, depth + 1);
    }
    closedir(dir);
}

static void find_graphs(struct startable *s)
{
    struct looking *l = mem_zero(sizeof *l);

    s->graphs = arena_zero(&s->settings.arena, (STARTABLE_GRAPHS + 1) * sizeof *s->graphs);
    l->s = s;
    l->left = LOOKED_AT_MAX;
    for (const char *const *root = s->settings.graph_roots; *root; root++) {
        int fd = open(*root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
            look_into(l, fd, "", 0);
    }
    qsort(s->graphs, s->n_graphs, sizeof *s->graphs, by_name);
    free(l);
}

/* A word of the settings, in the arena; NULL: they say nothing. */
static enum tide_code read_word(struct startable *s, const char *config, const char *key, const char **ret,
                                struct tide_err *err)
{
    AUTO(mem_freep) char *text = NULL;
    char from[SETTINGS_FROM_SIZE];

    if (settings_word(config, key, &text, from, err))
        return err->code;
    *ret = arena_text(&s->settings.arena, text);
    return TIDE_OK;
}

enum tide_code startable_read(const char *config, struct startable *ret, struct tide_err *err)
{
    struct startable s = {.graphs = NULL};

    if (server_settings_read(config, &s.settings, err))
        return err->code;
    if (read_word(&s, config, "provider", &s.provider, err) || read_word(&s, config, "model", &s.model, err)) {
        startable_done(&s);
        return err->code;
    }
    s.provider = s.provider ? s.provider : "anthropic";
    find_graphs(&s);
    *ret = s;
    return TIDE_OK;
}

void startable_done(struct startable *s)
{
    server_settings_done(&s->settings);
}

/* ---- as JSON ---- */

static void put_argv0(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(((const struct program_profile *)data)->argv[0]));
}

static const struct shape shape_profile = {
    .members =
        (const struct shape_member[]){
            {"name", SHAPE_TEXT, SHAPE_AT(struct program_profile, name), 0, "its name"},
            {"argv0", SHAPE_TEXT, SHAPE_AT(struct program_profile, argv), 0, "what is run", .put = put_argv0},
            {"cwd", SHAPE_TEXT, SHAPE_AT(struct program_profile, cwd), 0, "where it runs"},
            {.name = NULL},
        },
};

static const struct shape shape_chat_offer = {
    .members =
        (const struct shape_member[]){
            {"provider", SHAPE_TEXT, SHAPE_AT(struct startable, provider), 0, "who answers"},
            {"model", SHAPE_TEXT, SHAPE_AT(struct startable, model), SHAPE_NULLABLE,
             "the model; null: none is configured"},
            {.name = NULL},
        },
};

static bool has_chat(const void *data)
{
    return ((const struct startable *)data)->settings.working_roots[0] != NULL;
}

static void put_chat(struct json_out *o, const void *data)
{
    shape_put(o, &shape_chat_offer, data);
}

static void put_programs(struct json_out *o, const void *data)
{
    const struct startable *s = data;

    json_out_begin(o, '[');
    for (size_t i = 0; i < s->settings.n_programs; i++)
        shape_put(o, &shape_profile, &s->settings.programs[i]);
    json_out_end(o, ']');
}

#define AT(member) SHAPE_AT(struct startable, member)

SHAPE(startable, "What requests may start, as the settings have it.",
      {"programs", SHAPE_LIST, AT(settings), 0, "named programs", .of = &shape_profile, .put = put_programs},
      {"graph_roots", SHAPE_LIST, AT(settings.graph_roots), 0, "directories of graphs"},
      {"graphs", SHAPE_LIST, AT(graphs), 0, "graphs in them, as `graph` names them; at most 200"},
      {"working_roots", SHAPE_LIST, AT(settings.working_roots), 0, "directories in which chats and graphs work"},
      {"chat", SHAPE_OBJECT, AT(provider), SHAPE_NULLABLE, "what chats begin with; null: none can be started",
       .of = &shape_chat_offer, .has = has_chat, .put = put_chat});
