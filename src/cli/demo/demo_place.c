/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the demo plays: a temporary directory with the program (deploy.sh), what its steps do (do: takes a while, and in the
 * middle leaves one line in world.log, so that a kill can come before, in between and after), and a way to ask the world
 * (did: has it happened?).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/demo.h"

static const char *const names[] = {"deploy.sh", "do", "did"};

static void write_program(struct buf *text, const struct demo_step *steps)
{
    buf_add_str(text, STR("#!/bin/sh\nset -e\n"));
    for (int i = 0; i < DEMO_STEPS; i++) {
        if (i == 2)
            buf_add_str(text, STR("tidemark wait approve --kind approval --question 'Release it to everyone?'\n"));
        buf_addf(text, "tidemark step %-8s --effect %s", steps[i].name, steps[i].effect);
        if (strcmp(steps[i].effect, "once") == 0)
            buf_addf(text, " --probe './did %s'", steps[i].name);
        buf_addf(text, " -- ./do %s\n", steps[i].name);
    }
}

static void write_do(struct buf *text, const struct demo_step *steps, int step_ms)
{
    buf_addf(text, "#!/bin/sh\nsleep %d.%03d\necho \"$1\" >>world.log\nsleep %d.%03d\ncase $1 in\n", step_ms / 2000,
             step_ms / 2 % 1000, step_ms / 2000, step_ms / 2 % 1000);
    for (int i = 0; i < DEMO_STEPS; i++)
        buf_addf(text, "%s) echo '%-9s %s' ;;\n", steps[i].name, steps[i].name, steps[i].says);
    buf_add_str(text, STR("esac\n"));
}

static enum tide_code put_file(const struct demo_place *place, const char *name, struct buf *text, struct tide_err *err)
{
    char path[600];
    bool right = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", place->dir, name);
    f = fopen(path, "we");
    if (f) {
        right = fwrite(text->ptr, 1, text->len, f) == text->len;
        right = (fclose(f) == 0) && right && chmod(path, 0700) == 0;
    }
    buf_clear(text);
    return right ? TIDE_OK : tide_fail_errno(err, errno, "demo: write '%s'", path);
}

static enum tide_code put_files(const struct demo_place *place, const struct demo_step *steps, int step_ms,
                                struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    enum tide_code code;

    write_program(&text, steps);
    code = put_file(place, names[0], &text, err);
    write_do(&text, steps, step_ms);
    code = code ? code : put_file(place, names[1], &text, err);
    buf_add_str(&text, STR("#!/bin/sh\ngrep -qx \"$1\" world.log\n"));
    return code ? code : put_file(place, names[2], &text, err);
}

/* The program says `tidemark`: that is this very one. */
static enum tide_code put_tidemark(struct demo_place *place, struct tide_err *err)
{
    char self[512], link[600];
    const char *path = getenv("PATH");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return tide_fail_errno(err, errno, "demo: find this program");
    self[n] = '\0';
    snprintf(link, sizeof(link), "%s/tidemark", place->dir);
    if (symlink(self, link) != 0)
        return tide_fail_errno(err, errno, "demo: make '%s'", link);
    snprintf(place->path, sizeof(place->path), "%s:%s", place->dir, path ? path : "/usr/bin:/bin");
    return TIDE_OK;
}

enum tide_code demo_place_make(struct demo_place *place, const struct demo_step *steps, int step_ms,
                               struct tide_err *err)
{
    const char *tmp = getenv("TMPDIR");
    enum tide_code code;

    snprintf(place->dir, sizeof(place->dir), "%.400s/tidemark-demo.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(place->dir)) {
        place->dir[0] = '\0';
        return tide_fail_errno(err, errno, "demo: make a directory in '%s'", tmp && *tmp ? tmp : "/tmp");
    }
    snprintf(place->store, sizeof(place->store), "%s/demo.db", place->dir);
    code = steps ? put_files(place, steps, step_ms, err) : TIDE_OK;
    return code ? code : put_tidemark(place, err);
}

void demo_place_remove(struct demo_place *place)
{
    DIR *dir = place->dir[0] ? opendir(place->dir) : NULL;
    struct dirent *e;

    while (dir && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    if (place->dir[0])
        rmdir(place->dir);
    place->dir[0] = '\0';
}

void demo_show_program(struct out *out, const struct demo_step *steps)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    const char *end;

    write_program(&text, steps);
    buf_cstr(&text);
    for (const char *line = text.ptr; *line; line = end + 1) {
        end = strchr(line, '\n');
        outf(out, "    %s%.*s%s\n", color_code(out, COLOR_DIM), (int)(end - line), line, color_code(out, COLOR_NONE));
    }
}

void demo_read_world(const struct demo_place *place, struct demo_step *steps)
{
    char path[600], line[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/world.log", place->dir);
    f = fopen(path, "re");
    for (int i = 0; i < DEMO_STEPS; i++)
        steps[i].ran = 0;
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < DEMO_STEPS; i++)
            steps[i].ran += strcmp(steps[i].name, line) == 0;
    }
    if (f)
        fclose(f);
}
