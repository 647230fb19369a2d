/* SPDX-License-Identifier: Apache-2.0 */
/* The tools on files: what they do, what they refuse, that nothing leads out of the working directory. */
#include "agent/tool_kit.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/confined.h"
#include "agent/tool_text.h"
#include "agent/walk.h"
#include "base/utf8.h"

/* ---- arguments ---- */

static void arguments_are_checked_by_name_and_type(void **state)
{
    static const struct {
        const char *tool, *args, *words;
    } rows[] = {
        {"read", "{}", "read: the argument 'path' is missing: it must be a string"},
        {"read", "{'path':null}", "'path' is missing"},
        {"read", "{'path':5}", "read: 'path' must be a string, not a number"},
        {"read", "{'path':'a','offset':'3'}", "'offset' must be a whole number, not a string"},
        {"read", "{'path':'a','offset':1.5}", "'offset' must be a whole number, not a number"},
        {"read", "{'path':'a','offset':-1}", "'offset' must be at least 0"},
        {"read", "{'file':'a'}", "read has no argument 'file'; it has: path, offset, limit"},
        {"edit", "{'path':'a','old':'x','new':'y','replace_all':'yes'}", "'replace_all' must be true or false"},
        {"edit", "{'path':'a','old':'','new':'y'}", "the old text is empty"},
        {"edit", "{'path':'a','old':'y','new':'y'}", "are the same"},
        {"bash", "{'command':''}", "the command is empty"},
        {"bash", "{'command':'a\\u0000b'}", "NUL"},
        {"bash", "{'command':'true','timeout_ms':0}", "'timeout_ms' must be at least 1"},
        {"write", "{'path':'a'}", "the argument 'content' is missing"},
        {"write", "{'_malformed':'{{'}", "no valid JSON object: send them again"},
        {"glob", "[]", "the arguments must be an object, not an array"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call c;

        call_prepare(&c, *state, rows[i].tool, rows[i].args);
        assert_int_equal(c.code, TIDE_INVALID);
        HAS(c.err.msg, rows[i].words);
        call_done(&c);
    }
}

static void null_is_an_argument_that_is_not_given(void **state)
{
    put_file(((struct world *)*state)->cwd, "a", STR("x\n"));
    WORKS(*state, "read", "{'path':'a','offset':null,'limit':null}", "     1\tx\n");
}

static bool only_grep(void *arg, const struct tool *t)
{
    (void)arg;
    return strcmp(t->name, "grep") == 0;
}

static void the_list_for_providers_is_valid_and_the_same_every_time(void **state)
{
    struct buf one = BUF_INIT(100000), two = BUF_INIT(100000);
    struct arena a = ARENA_INIT;
    struct json *v = NULL;

    (void)state;
    tools_render(&one, NULL, NULL);
    tools_render(&two, NULL, NULL);
    assert_true(str_eq(buf_view(&one), buf_view(&two)));
    OK(json_parse(&a, buf_view(&one), NULL, &v, NULL, &err));
    assert_int_equal(v->count, 6);
    for (const struct json *t = v->first; t; t = t->next)
        assert_non_null(json_get(json_get(json_get(t, STR("input_schema")), STR("properties")),
                                 str_from(tool_find(json_get(t, STR("name"))->raw)->subject)));
    buf_clear(&two);
    tools_render(&two, only_grep, NULL);
    OK(json_parse(&a, buf_view(&two), NULL, &v, NULL, &err));
    assert_int_equal(v->count, 1);
    arena_done(&a);
    buf_done(&one);
    buf_done(&two);
}

static void a_summary_is_one_safe_line(void **state)
{
    static const struct {
        const char *name, *args, *want;
    } rows[] = {
        {"bash", "{\"command\":\"ls -l\"}", "bash ls -l"},
        {"bash", "{\"command\":\"ls\\nrm x\"}", "bash ls…"},
        {"edit", "{\"path\":\"src/a.c\"}", "edit src/a.c"},
        {"bash", "{\"command\":\"a\\u001b[31mb\\tc\\u202ed\"}", "bash a?[31mb c?d"},
        {"nothing", "{\"x\":1}", "nothing"},
        {"read", "{\"path\":7}", "read"},
    };
    struct buf out = BUF_INIT(1000);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a = ARENA_INIT;
        struct json *v = NULL;

        OK(json_parse(&a, str_from(rows[i].args), NULL, &v, NULL, &err));
        buf_clear(&out);
        tool_summary(&out, str_from(rows[i].name), v);
        assert_string_equal(buf_cstr(&out), rows[i].want);
        arena_done(&a);
    }
    buf_done(&out);
}

static void dropping_what_was_never_made_ready_closes_nothing(void **state)
{
    struct arena a = ARENA_INIT;
    struct json *v = NULL;

    OK(json_parse(&a, STR("{\"path\":\"a\"}"), NULL, &v, NULL, &err));
    for (size_t i = 0; tools[i]; i++) {
        struct tool_work w = {.tool = tools[i], .place = &((struct world *)*state)->place, .args = v, .key = "k"};

        tool_drop(&w);
    }
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    arena_done(&a);
}

/* ---- cutting ---- */

static void text_is_cut_between_characters(void **state)
{
    static const struct {
        const char *text;
        size_t max;
        const char *want;
    } rows[] = {
        {"abcdef", 6, "abcdef"},
        {"abcdef", 0, "abcdef"},
        {"abcdef", 5, "abcde\n[… 1 more character]"},
        {"äöüß", 2, "äö\n[… 2 more characters]"},
        {"ae\xcc\x81xy", 2, "a\n[… 4 more characters]"},                                 /* e and its accent */
        {"a\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd!", 2, "a\n[… 3 more characters]"},           /* a thumb and its skin */
        {"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7z", 2, "\n[… 4 more characters]"}, /* a family, joined */
        {"\xe2\x82\xac\xe2\x82\xac", 1, "\xe2\x82\xac\n[… 1 more character]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf text = BUF_INIT(1000);

        buf_add_str(&text, str_from(rows[i].text));
        tool_cut(&text, rows[i].max);
        assert_string_equal(buf_cstr(&text), rows[i].want);
        buf_done(&text);
    }
}

static void a_cut_says_how_much_is_missing(void **state)
{
    struct buf text = BUF_INIT(100000);

    (void)state;
    for (int i = 0; i < 12445; i++)
        buf_add_char(&text, 'x');
    tool_cut(&text, 100);
    assert_string_equal(buf_cstr(&text) + 100, "\n[… 12,345 more characters]");
    buf_done(&text);
}

/* Nothing but marks: cut anywhere, but between characters, and not for ever. */
static void text_of_nothing_but_marks_is_cut_all_the_same(void **state)
{
    struct buf text = BUF_INIT(100000);

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_add_str(&text, STR("\xcc\x81"));
    tool_cut(&text, 1000);
    assert_true(str_is_utf8(buf_view(&text), NULL));
    HAS(buf_cstr(&text), "[… 4,000 more characters]");
    buf_done(&text);
}

static void every_byte_string_becomes_valid_text(void **state)
{
    struct rng r = {42};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct buf text = BUF_INIT(200);
        size_t n = (size_t)rng_below(&r, 40);

        for (size_t i = 0; i < n; i++)
            buf_add_char(&text, (char)(rng_below(&r, 2) ? rng_below(&r, 256) : 'a'));
        bool was = str_is_utf8(buf_view(&text), NULL) && (!n || !memchr(text.ptr, '\0', n));

        assert_int_equal(text_clean(&text), !was);
        assert_true(str_is_utf8(buf_view(&text), NULL));
        for (size_t max = 1; max < 10; max++) {
            struct str all = buf_view(&text), head = {all.ptr, text_head(all, max)};
            size_t tail = text_tail(all, max);

            assert_true(str_is_utf8(head, NULL) && utf8_chars(head) <= max);
            assert_true(str_is_utf8((struct str){all.ptr + all.len - tail, tail}, NULL));
        }
        buf_done(&text);
    }
}

/* ---- read ---- */

static void lines_come_with_their_numbers(void **state)
{
    struct world *w = *state;
    struct call c;

    put_file(w->cwd, "a.txt", STR("one\ntwo\nthree\n"));
    assert_string_equal(call_run(&c, w, "read", "{'path':'a.txt'}"), "     1\tone\n     2\ttwo\n     3\tthree\n");
    call_done(&c);
    assert_string_equal(call_run(&c, w, "read", "{'path':'a.txt','offset':2,'limit':1}"),
                        "     2\ttwo\n[lines 2 to 2 of a file of 14 bytes; for more: offset 3]\n");
    call_done(&c);
    REFUSES(w, "read", "{'path':'a.txt','offset':9}", "the file has only 3 lines: there is none at offset 9");
    put_file(w->cwd, "b", STR("no end"));
    WORKS(w, "read", "{'path':'b'}", "     1\tno end\n[the last line does not end with a newline]\n");
    put_file(w->cwd, "empty", STR(""));
    WORKS(w, "read", "{'path':'empty'}", "[the file is empty]");
}

static void what_is_no_text_is_refused_or_mended(void **state)
{
    struct world *w = *state;
    struct call c;

    put_file(w->cwd, "bin",
             STR("\x7f"
                 "ELF\0\0\0"));
    REFUSES(w, "read", "{'path':'bin'}", "'bin' is a binary file of 7 bytes");
    put_file(w->cwd, "latin",
             STR("gr\xfc\xdf"
                 "e\n"));
    assert_string_equal(call_run(&c, w, "read", "{'path':'latin'}"), "     1\tgr\xef\xbf\xbd\xef\xbf\xbd"
                                                                     "e\n");
    assert_true(c.result.replaced);
    call_done(&c);
    REFUSES(w, "read", "{'path':'nothing'}", "'nothing' does not exist");
    REFUSES(w, "read", "{'path':'.'}", "'.' is a directory, not a file");
    REFUSES(w, "read", "{'path':''}", "the path is empty");
    REFUSES(w, "read", "{'path':'a\\u0000b'}", "NUL");
}

/* A file of 4 TiB, nearly all of it a hole: reading it whole would never end. */
static void a_huge_file_is_read_only_as_far_as_it_is_shown(void **state)
{
    struct world *w = *state;
    struct buf lines = BUF_INIT((size_t)1 << 20);
    struct call c;
    int fd;

    for (int i = 1; i <= 20000; i++)
        buf_addf(&lines, "line %d\n", i);
    put_file(w->cwd, "huge", buf_view(&lines));
    buf_done(&lines);
    fd = openat(w->place.dir, "huge", O_WRONLY);
    if (ftruncate(fd, (off_t)1 << 42) != 0)
        print_message("no sparse files here\n");
    close(fd);
    w->place.max_result_chars = 10000;
    HAS(call_run(&c, w, "read", "{'path':'huge','offset':10000}"), " 10000\tline 10000\n");
    HAS(buf_cstr(&c.result.text), "; for more: offset ");
    assert_true(utf8_chars(buf_view(&c.result.text)) <= 10000);
    call_done(&c);
}

static void a_long_line_is_cut_in_bounded_memory(void **state)
{
    struct world *w = *state;
    struct buf text = BUF_INIT((size_t)8 << 20);
    struct call c;

    for (int i = 0; i < 5 << 20; i++)
        buf_add_char(&text, 'x');
    buf_add_str(&text, STR("\nshort\n"));
    put_file(w->cwd, "long", buf_view(&text));
    HAS(call_run(&c, w, "read", "{'path':'long'}"), "x [… 5,240,880 more bytes in this line]\n     2\tshort\n");
    call_done(&c);
    HAS(call_run(&c, w, "grep", "{'pattern':'short|^x+','path':'long'}"), "…\nlong:2:short\n");
    call_done(&c);
    buf_done(&text);
}

/* ---- nothing leads out ---- */

static void no_path_leads_out_of_the_working_directory(void **state)
{
    static const char *const paths[] = {
        "../secret", "sub/../../secret", "./.././secret",        "out",  "outdir/secret", "absolute",
        "sub/deep",  "/etc/passwd",      "self/root/etc/passwd", "chain"};
    static const char *const files[] = {"read", "write", "edit", "grep"};
    struct world *w = *state;
    char path[300], args[600];

    assert_int_equal(mkdirat(w->place.dir, "sub", 0755), 0);
    link_in(w, "../secret", "out");
    link_in(w, "..", "outdir");
    link_in(w, "/etc/passwd", "absolute");
    link_in(w, "../../secret", "sub/deep");
    link_in(w, "/proc/self", "self");
    link_in(w, "out", "chain");
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++)
        for (size_t t = 0; t < sizeof files / sizeof files[0]; t++) {
            static const char *const rest[] = {"", ",'content':'x'", ",'old':'the','new':'a'", ",'pattern':'.'"};

            snprintf(args, sizeof args, "{'path':'%s'%s}", paths[p], rest[t]);
            REFUSES(w, files[t], args, paths[p][0] == '/' ? "is outside of the working directory" : "leads out of");
        }
    snprintf(path, sizeof path, "%s/secret", w->top);
    snprintf(args, sizeof args, "{'path':'%s'}", path);
    REFUSES(w, "read", args, "is outside of the working directory");
    snprintf(args, sizeof args, "{'path':'%s-not'}", w->cwd); /* the name only begins the same */
    REFUSES(w, "read", args, "is outside of the working directory");
    REFUSES(w, "glob", "{'pattern':'*','path':'..'}", "leads out of");
    REFUSES(w, "glob", "{'pattern':'*','path':'outdir'}", "leads out of");
    REFUSES(w, "glob", "{'pattern':'/etc/*'}", "is outside of the working directory");
    char *secret = get_file(w->top, "secret");

    assert_string_equal(secret, "the secret\n");
    free(secret);
}

static void absolute_paths_and_links_that_stay_inside_are_followed(void **state)
{
    struct world *w = *state;
    char args[600], *text;

    assert_int_equal(mkdirat(w->place.dir, "sub", 0755), 0);
    put_file(w->cwd, "sub/a", STR("inside\n"));
    link_in(w, "sub/a", "link");
    link_in(w, "../link", "sub/back");
    snprintf(args, sizeof args, "{'path':'%s/sub/a'}", w->cwd);
    WORKS(w, "read", args, "inside");
    snprintf(args, sizeof args, "{'path':'%s//sub/../link'}", w->cwd);
    WORKS(w, "read", args, "inside");
    WORKS(w, "read", "{'path':'sub/back'}", "inside");
    WORKS(w, "write", "{'path':'sub/back','content':'through'}", "7 bytes written");
    text = get_file(w->cwd, "sub/a");
    assert_string_equal(text, "through"); /* the link is still one, and its target has it */
    free(text);
    WORKS(w, "edit", "{'path':'link','old':'through','new':'twice'}", "twice");
    text = get_file(w->cwd, "sub/a");
    assert_string_equal(text, "twice");
    free(text);
}

static void a_directory_known_by_another_name_is_the_same(void **state)
{
    struct world *w = *state;
    char link[600], args[700];

    put_file(w->cwd, "a", STR("here\n"));
    snprintf(link, sizeof link, "%s/alias", w->top);
    assert_int_equal(symlink("work", link), 0);
    snprintf(args, sizeof args, "{'path':'%s/a'}", w->cwd);
    w->place.cwd = link;
    WORKS(w, "read", args, "here");
    snprintf(args, sizeof args, "{'path':'%s/a'}", link);
    WORKS(w, "read", args, "here");
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    struct world *w = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(mkfifoat(w->place.dir, "fifo", 0644), 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%.90s/sock", w->cwd);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    alarm(30); /* a tool that waits ends the test */
    REFUSES(w, "read", "{'path':'fifo'}", "'fifo' is a FIFO, not a file");
    REFUSES(w, "read", "{'path':'sock'}", "'sock' is a socket, not a file");
    REFUSES(w, "grep", "{'pattern':'x','path':'fifo'}", "'fifo' is a FIFO, not a file or directory");
    REFUSES(w, "write", "{'path':'fifo','content':'x'}", "not a file");
    REFUSES(w, "edit", "{'path':'fifo','old':'x','new':'y'}", "not a file");
    WORKS(w, "grep", "{'pattern':'x'}", "no matches");
    WORKS(w, "glob", "{'pattern':'*'}", "fifo\nsock\n");
    alarm(0);
    close(s);
}

static void wait_until_asleep(pid_t pid)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    for (int i = 0; i < 5000; i++) {
        char *text = get_file(path, "stat");
        const char *at = text ? strrchr(text, ')') : NULL;
        bool asleep = at && at[2] == 'S';

        free(text);
        if (asleep)
            return;
        poll(NULL, 0, 1);
    }
    fail_msg("process %d does not wait", (int)pid);
}

/* Whoever waits at a FIFO must not be woken by a look at it. */
static void a_fifo_is_not_even_opened(void **state)
{
    struct world *w = *state;
    char path[400];
    pid_t pid;

    assert_int_equal(mkfifoat(w->place.dir, "fifo", 0644), 0);
    snprintf(path, sizeof path, "%s/fifo", w->cwd);
    pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY); /* returns when somebody reads */

        _exit(fd >= 0 ? 3 : 4);
    }
    wait_until_asleep(pid);
    for (int i = 0; i < 20; i++)
        REFUSES(w, "read", "{'path':'fifo'}", "is a FIFO");
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* ---- a link that is swapped all the time ---- */

struct swapper {
    int dir;
    atomic_bool end;
};

static void *swap(void *arg)
{
    struct swapper *s = arg;

    while (!atomic_load(&s->end)) {
        (void)!renameat(s->dir, "door", s->dir, "kept");
        (void)!symlinkat("..", s->dir, "door");
        (void)!unlinkat(s->dir, "door", 0);
        (void)!renameat(s->dir, "kept", s->dir, "door");
    }
    return NULL;
}

static void a_directory_swapped_for_a_link_never_leads_out(void **state)
{
    struct world *w = *state;
    struct swapper s = {.dir = w->place.dir};
    pthread_t thread;
    size_t good = 0;

    assert_int_equal(mkdirat(w->place.dir, "door", 0755), 0);
    put_file(w->cwd, "door/secret", STR("harmless\n"));
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    for (int i = 0; i < 3000 / (SLOW_BUILD ? 4 : 1); i++) {
        static const char *const tool[] = {"read", "grep", "write", "grep"};
        static const char *const args[] = {"{'path':'door/secret'}", "{'pattern':'secret|harm'}",
                                           "{'path':'door/secret','content':'harmless\\n'}",
                                           "{'pattern':'e','path':'door'}"};
        struct call c;

        (void)call_run(&c, w, tool[i % 4], args[i % 4]);
        assert_null(strstr(buf_cstr(&c.result.text), "the secret"));
        good += !c.result.failed;
        call_done(&c);
    }
    atomic_store(&s.end, true);
    pthread_join(thread, NULL);
    assert_true(good > 0);
    char *secret = get_file(w->top, "secret");

    assert_string_equal(secret, "the secret\n");
    free(secret);
}

struct trap {
    int dir;
    size_t seen, secrets;
};

/* Between the look at a directory and its opening it becomes a link. */
static bool swap_on_entry(void *arg, struct str path)
{
    struct trap *t = arg;

    (void)path;
    assert_int_equal(renameat(t->dir, "door", t->dir, "kept"), 0);
    assert_int_equal(symlinkat("..", t->dir, "door"), 0);
    return true;
}

static enum walk_answer count_secrets(void *arg, struct str path, int dir, const char *name, bool regular)
{
    struct trap *t = arg;

    (void)dir;
    (void)path;
    (void)regular;
    t->seen++;
    t->secrets += strcmp(name, "secret") == 0;
    return WALK_ON;
}

static void a_walk_does_not_follow_what_becomes_a_link_on_its_way(void **state)
{
    struct world *w = *state;
    struct trap t = {.dir = w->place.dir};
    struct walk walk = {.arg = &t, .enter = swap_on_entry, .file = count_secrets};

    assert_int_equal(mkdirat(w->place.dir, "door", 0755), 0);
    put_file(w->cwd, "z", STR("after it\n"));
    walk_run(&walk, w->place.dir, STR(""));
    assert_int_equal(t.secrets, 0);
    assert_int_equal(t.seen, 1);
    assert_int_equal(walk.unread, 1); /* and it is told */
}

/* ---- write ---- */

static size_t names_in(const struct world *w, const char *dir)
{
    char command[700];
    size_t n = 0;
    FILE *f;

    snprintf(command, sizeof command, "ls -A '%s/%s'", w->cwd, dir);
    f = popen(command, "r"); /* NOLINT(cert-env33-c): our own names */
    for (int ch; (ch = fgetc(f)) != EOF;)
        n += ch == '\n';
    pclose(f);
    return n;
}

static void a_file_is_written_with_its_directories(void **state)
{
    struct world *w = *state;
    struct stat st;
    char *text;

    WORKS(w, "write", "{'path':'new/deep/a.txt','content':'h\\u00e4llo\\n'}", "7 bytes written to 'new/deep/a.txt'");
    text = get_file(w->cwd, "new/deep/a.txt");
    assert_string_equal(text, "hällo\n");
    free(text);
    assert_int_equal(fstatat(w->place.dir, "new/deep/a.txt", &st, 0), 0);
    mode_t mask = umask(0);

    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
    assert_int_equal(names_in(w, "new/deep"), 1); /* nothing beside it */
    REFUSES(w, "write", "{'path':'new/deep','content':''}", "'new/deep' is a directory, not a file");
    REFUSES(w, "write", "{'path':'new/','content':''}", "is a directory, not a file");
    REFUSES(w, "write", "{'path':'new/deep/a.txt/b','content':''}", "goes through a file that is not a directory");
    REFUSES(w, "write", "{'path':'..','content':''}", "is a directory");
    REFUSES(w, "write", "{'path':'../new/a','content':''}", "leads out of");
    assert_int_equal(names_in(w, ".."), 2);
}

static void an_existing_file_keeps_its_mode(void **state)
{
    struct world *w = *state;
    struct stat st;

    put_file(w->cwd, "tool.sh", STR("#!/bin/sh\n"));
    assert_int_equal(fchmodat(w->place.dir, "tool.sh", 0750, 0), 0);
    WORKS(w, "write", "{'path':'tool.sh','content':'x'}", "1 byte written");
    assert_int_equal(fstatat(w->place.dir, "tool.sh", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    WORKS(w, "edit", "{'path':'tool.sh','old':'x','new':'y'}", "changed in 1 place");
    assert_int_equal(fstatat(w->place.dir, "tool.sh", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    if (geteuid() != 0) {
        assert_int_equal(fchmodat(w->place.dir, "tool.sh", 0444, 0), 0);
        REFUSES(w, "write", "{'path':'tool.sh','content':'x'}", "'tool.sh' is read-only");
    }
}

struct reader {
    const struct world *w;
    atomic_bool end;
    size_t torn, seen;
};

static void *read_on(void *arg)
{
    struct reader *r = arg;

    while (!atomic_load(&r->end)) {
        char *text = get_file(r->w->cwd, "f");
        size_t n = text ? strlen(text) : 0;

        r->torn += n != 50000 || (text && text[0] != text[n - 1]);
        r->seen++;
        free(text);
    }
    return NULL;
}

static void readers_see_the_old_file_or_the_new_never_half(void **state)
{
    struct world *w = *state;
    struct buf args[2] = {BUF_INIT(100000), BUF_INIT(100000)};
    struct reader r = {.w = w};
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        buf_add_str(&args[i], STR("{'path':'f','content':'"));
        for (int n = 0; n < 50000; n++)
            buf_add_char(&args[i], (char)('a' + i));
        buf_add_str(&args[i], STR("'}"));
    }
    WORKS(w, "write", buf_cstr(&args[0]), "50,000 bytes");
    assert_int_equal(pthread_create(&thread, NULL, read_on, &r), 0);
    for (int i = 0; i < 200; i++)
        WORKS(w, "write", buf_cstr(&args[i % 2]), "50,000 bytes");
    atomic_store(&r.end, true);
    pthread_join(thread, NULL);
    assert_true(r.seen > 0);
    assert_int_equal(r.torn, 0);
    buf_done(&args[0]);
    buf_done(&args[1]);
}

/* ---- edit ---- */

static void an_edit_changes_one_place_and_shows_it(void **state)
{
    struct world *w = *state;
    struct call c;
    char *text;

    put_file(w->cwd, "a", STR("1\n2\n3\nfoo bar\n5\n6\n7\n"));
    assert_string_equal(call_run(&c, w, "edit", "{'path':'a','old':'foo','new':'one\\ntwo'}"),
                        "'a' changed in 1 place:\n     2\t2\n     3\t3\n     4\tone\n     5\ttwo bar\n     6\t5\n"
                        "     7\t6\n");
    call_done(&c);
    text = get_file(w->cwd, "a");
    assert_string_equal(text, "1\n2\n3\none\ntwo bar\n5\n6\n7\n");
    free(text);
    assert_int_equal(names_in(w, "."), 1);
}

static void an_edit_that_is_not_exact_changes_nothing(void **state)
{
    struct world *w = *state;
    char *text;

    put_file(w->cwd, "a", STR("x y x z x\n"));
    REFUSES(w, "edit", "{'path':'a','old':'nothing','new':'q'}", "the old text is not in 'a'");
    REFUSES(w, "edit", "{'path':'a','old':'x','new':'q'}", "the old text is in 'a' 3 times");
    REFUSES(w, "edit", "{'path':'b','old':'x','new':'q'}", "'b' does not exist");
    text = get_file(w->cwd, "a");
    assert_string_equal(text, "x y x z x\n");
    free(text);
    WORKS(w, "edit", "{'path':'a','old':'x','new':'xx','replace_all':true}", "changed in 3 places, the first:");
    text = get_file(w->cwd, "a");
    assert_string_equal(text, "xx y xx z xx\n");
    free(text);
    put_file(w->cwd, "dos", STR("one\r\ntwo\r\n"));
    REFUSES(w, "edit", "{'path':'dos','old':'one\\ntwo','new':'q'}", "its lines end with \\r\\n");
    assert_int_equal(names_in(w, "."), 2);
}

/* Cut anywhere: after prepare, and after the rename; the probe tells which, also when the new text holds the old. */
static void the_fate_of_a_cut_edit_is_known(void **state)
{
    static const char args[] = "{'path':'a','old':'x','new':'xx'}";
    struct world *w = *state;
    struct call c;

    put_file(w->cwd, "a", STR("1 x 2\n"));
    call_prepare(&c, w, "edit", args);
    assert_int_equal(c.code, TIDE_OK);
    assert_int_equal(tool_fate(&c.work), FATE_DID_NOT);
    tool_run(&c.work, &c.result);
    assert_false(c.result.failed);
    assert_int_equal(tool_fate(&c.work), FATE_HAPPENED);
    call_done(&c);
    assert_int_equal(names_in(w, "."), 1);

    put_file(w->cwd, "a", STR("somebody else's\n"));
    call_prepare(&c, w, "edit", "{'path':'a','old':'x','new':'xx'}");
    tool_run(&c.work, &c.result); /* not found: until it is dropped, it is known that nothing happened */
    assert_true(c.result.failed);
    assert_int_equal(tool_fate(&c.work), FATE_DID_NOT);
    tool_drop(&c.work);
    assert_int_equal(tool_fate(&c.work), FATE_UNKNOWN);
    call_done(&c);
    assert_int_equal(names_in(w, "."), 1);
    call_prepare(&c, w, "bash", "{'command':'true'}");
    assert_int_equal(tool_fate(&c.work), FATE_UNKNOWN);
    call_done(&c);
}

/* ---- glob ---- */

static void make_tree(const struct world *w)
{
    static const char *const dirs[] = {"src", "src/base", ".git", "src.d", "docs"};
    static const char *const files[] = {"README.md", "src/a.c",    "src/a.h",     "src/base/b.c",  ".git/config",
                                        "src.d/x.c", "docs/é.txt", "src/.hidden", "src/base/c.ts", "src/base/d.tsx"};

    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
        assert_int_equal(mkdirat(w->place.dir, dirs[i], 0755), 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        put_file(w->cwd, files[i], STR("int main;\n"));
    link_in(w, "..", "src/up");
}

static void globs_find_files_in_order(void **state)
{
    static const struct {
        const char *args, *want;
    } rows[] = {
        {"{'pattern':'**/*.c'}", "src.d/x.c\nsrc/a.c\nsrc/base/b.c\n"},
        {"{'pattern':'*.md'}", "README.md\n"},
        {"{'pattern':'./*.md'}", "README.md\n"},
        {"{'pattern':'src/*.[ch]'}", "src/a.c\nsrc/a.h\n"},
        {"{'pattern':'src/*.[!c]'}", "src/a.h\n"},
        {"{'pattern':'*.c','path':'src'}", "src/a.c\n"},
        {"{'pattern':'**/*.{ts,tsx}'}", "src/base/c.ts\nsrc/base/d.tsx\n"},
        {"{'pattern':'src/**/?.c'}", "src/a.c\nsrc/base/b.c\n"},
        {"{'pattern':'docs/?.txt'}", "docs/é.txt\n"},
        {"{'pattern':'.git/*'}", ".git/config\n"},
        {"{'pattern':'src/.h*'}", "src/.hidden\n"},
        {"{'pattern':'src/*','path':'./'}", "src/a.c\nsrc/a.h\nsrc/up\n"},
        {"{'pattern':'**/config','hidden':true}", ".git/config\n"},
        {"{'pattern':'**/config'}", "no files match (hidden files were not searched)\n"},
        {"{'pattern':'**/secret'}", "no files match (hidden files were not searched)\n"},
        {"{'pattern':'src/up/*'}", "no files match (hidden files were not searched)\n"},
        {"{'pattern':'../*'}", "no files match (hidden files were not searched)\n"},
    };
    struct world *w = *state;

    make_tree(w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call c;

        assert_string_equal(call_run(&c, w, "glob", rows[i].args), rows[i].want);
        call_done(&c);
    }
    REFUSES(w, "glob", "{'pattern':'{a,b'}", "'{' without its '}'");
    REFUSES(w, "glob", "{'pattern':'*','path':'README.md'}", "is a file, not a directory");
    REFUSES(w, "glob", "{'pattern':'*','path':'nowhere'}", "does not exist");
}

static void a_glob_gives_the_first_thousand_and_says_so(void **state)
{
    struct world *w = *state;
    char name[20];
    struct call c;

    for (int i = 1999; i >= 0; i--) {
        snprintf(name, sizeof name, "f%04d", i);
        put_file(w->cwd, name, STR(""));
    }
    HAS(call_run(&c, w, "glob", "{'pattern':'f*'}"), "f0999\n[the first 1000; there are more");
    assert_int_equal(strncmp(c.result.text.ptr, "f0000\nf0001\n", 12), 0);
    call_done(&c);
    w->place.max_result_chars = 3000; /* what does not fit is told as well, not cut off */
    HAS(call_run(&c, w, "glob", "{'pattern':'f*'}"), "\n[the first 333; there are more: use a narrower pattern]\n");
    call_done(&c);
    HAS(call_run(&c, w, "grep", "{'pattern':'.','glob':'f*'}"), "no matches");
    call_done(&c);
}

/* ---- grep ---- */

static void grep_gives_file_line_and_text(void **state)
{
    static const struct {
        const char *args, *want;
    } rows[] = {
        {"{'pattern':'h(el|al)lo'}", "a.txt:1:hello world\nsub/b.c:2:hallo;\n"},
        {"{'pattern':'HELLO','ignore_case':true}", "a.txt:1:hello world\n"},
        {"{'pattern':'HELLO'}", "no matches\n"},
        {"{'pattern':'h','glob':'*.c'}", "sub/b.c:2:hallo;\n"},
        {"{'pattern':'h','glob':'sub/*'}", "sub/b.c:2:hallo;\n"},
        {"{'pattern':'hallo','path':'sub'}", "sub/b.c:2:hallo;\n"},
        {"{'pattern':'o','path':'a.txt'}", "a.txt:1:hello world\n"},
        {"{'pattern':'.','max_matches':1}",
         "a.txt:1:hello world\n[the first 1; there are more: narrow it, or raise max_matches]\n"},
        {"{'pattern':'secret'}", "no matches\n"},
        {"{'pattern':'^\\\\p{L}+$','path':'u'}", "u:1:größe\n"},
        {"{'pattern':'binary'}", "no matches\n"},
    };
    struct world *w = *state;

    assert_int_equal(mkdirat(w->place.dir, "sub", 0755), 0);
    put_file(w->cwd, "a.txt", STR("hello world\n"));
    put_file(w->cwd, "sub/b.c", STR("\nhallo;\r\n"));
    put_file(w->cwd, "u", STR("größe\n\xff\xfe\n"));
    put_file(w->cwd, "bin", STR("binary\0\n"));
    link_in(w, "..", "up");
    link_in(w, "../secret", "leak");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call c;

        assert_string_equal(call_run(&c, w, "grep", rows[i].args), rows[i].want);
        call_done(&c);
    }
}

static void bad_patterns_say_where(void **state)
{
    struct world *w = *state;

    REFUSES(w, "grep", "{'pattern':'ab(c'}", "bad pattern at character 5: missing closing parenthesis");
    REFUSES(w, "grep", "{'pattern':'ä(?<ä'}", "bad pattern at character 6");
    REFUSES(w, "grep", "{'pattern':'[z-a]'}", "bad pattern at character");
    REFUSES(w, "grep", "{'pattern':'x','glob':'{'}", "'{' without its '}'");
}

static void a_costly_pattern_gives_up(void **state)
{
    struct world *w = *state;
    struct buf text = BUF_INIT(100000);

    for (int i = 0; i < 100; i++)
        buf_add_str(&text, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n"));
    put_file(w->cwd, "evil", buf_view(&text));
    alarm(60);
    REFUSES(w, "grep", "{'pattern':'^(a+)+$'}", "the pattern is too costly (first at evil:1)");
    REFUSES(w, "grep", "{'pattern':'^(\\\\w+a*)+$'}", "too costly");
    alarm(0);
    buf_done(&text);
}

static void the_middle_of_a_long_line_is_shown_where_it_matches(void **state)
{
    struct world *w = *state;
    struct buf text = BUF_INIT(100000);
    struct call c;

    for (int i = 0; i < 3000; i++)
        buf_add_str(&text, STR("ä"));
    buf_add_str(&text, STR("needle"));
    for (int i = 0; i < 3000; i++)
        buf_add_str(&text, STR("ö"));
    put_file(w->cwd, "f", buf_view(&text));
    HAS(call_run(&c, w, "grep", "{'pattern':'needle'}"), "f:1:…ä");
    HAS(buf_cstr(&c.result.text), "äneedleö");
    assert_false(c.result.replaced); /* no character was cut in two */
    assert_true(utf8_chars(buf_view(&c.result.text)) < 450);
    call_done(&c);
    for (int i = 0; i < 20; i++)
        buf_add_str(&text, STR("\nneedle and thread and needle and thread and needle and thread and needle"));
    put_file(w->cwd, "f", buf_view(&text));
    w->place.max_result_chars = 1000;
    HAS(call_run(&c, w, "grep", "{'pattern':'needle'}"), "[the first 1; there are more: narrow it]\n");
    call_done(&c);
    buf_done(&text);
}

static bool at_once(void *arg)
{
    (*(int *)arg)++;
    return true;
}

static void searching_stops_when_it_is_told_to(void **state)
{
    struct world *w = *state;
    int asked = 0;

    make_tree(w);
    w->place.stop = at_once;
    w->place.arg = &asked;
    REFUSES(w, "grep", "{'pattern':'main'}", "stopped before everything was searched");
    REFUSES(w, "glob", "{'pattern':'**'}", "stopped before everything was searched");
    assert_true(asked >= 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(arguments_are_checked_by_name_and_type),
        T(null_is_an_argument_that_is_not_given),
        T(the_list_for_providers_is_valid_and_the_same_every_time),
        T(a_summary_is_one_safe_line),
        T(dropping_what_was_never_made_ready_closes_nothing),
        T(text_is_cut_between_characters),
        T(a_cut_says_how_much_is_missing),
        T(text_of_nothing_but_marks_is_cut_all_the_same),
        T(every_byte_string_becomes_valid_text),
        T(lines_come_with_their_numbers),
        T(what_is_no_text_is_refused_or_mended),
        T(a_huge_file_is_read_only_as_far_as_it_is_shown),
        T(a_long_line_is_cut_in_bounded_memory),
        T(no_path_leads_out_of_the_working_directory),
        T(absolute_paths_and_links_that_stay_inside_are_followed),
        T(a_directory_known_by_another_name_is_the_same),
        T(what_is_no_file_is_refused_without_waiting),
        T(a_fifo_is_not_even_opened),
        T(a_directory_swapped_for_a_link_never_leads_out),
        T(a_walk_does_not_follow_what_becomes_a_link_on_its_way),
        T(a_file_is_written_with_its_directories),
        T(an_existing_file_keeps_its_mode),
        T(readers_see_the_old_file_or_the_new_never_half),
        T(an_edit_changes_one_place_and_shows_it),
        T(an_edit_that_is_not_exact_changes_nothing),
        T(the_fate_of_a_cut_edit_is_known),
        T(globs_find_files_in_order),
        T(a_glob_gives_the_first_thousand_and_says_so),
        T(grep_gives_file_line_and_text),
        T(bad_patterns_say_where),
        T(a_costly_pattern_gives_up),
        T(the_middle_of_a_long_line_is_shown_where_it_matches),
        T(searching_stops_when_it_is_told_to),
    };

    return cmocka_run_group_tests_name("tools", tests, NULL, NULL);
}
