/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged files. A store with a bit of everything is made, closed and kept in memory; then, seed after seed, it is written
 * out with one damage (bits flipped, runs of bytes zeroed or overwritten, files cut, pages and sectors swapped or doubled)
 * and asked everything. Each answer must be right, to the byte, or be an error that names the trouble. A wrong answer, a
 * session that is not found, a crash or a hang is a failure, printed with its seed.
 *
 * TIDEMARK_TEST_SEED=N replays one damage, TIDEMARK_TEST_ROUNDS=N tries so many.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kit.h"

#define DEFAULT_ROUNDS (SLOW_BUILD ? 100 : 1200)

enum { SESSIONS = 6, FILES = 3, ITEMS = 64 };
static const char *const suffixes[FILES] = {"", "-wal", "-mark"};

struct file {
    unsigned char *bytes;
    size_t len;
};

/* One question and its right answer. */
struct item {
    char label[60];
    char *text;
};

struct base {
    char dir[256], path[300];
    struct file files[FILES];
    struct item items[ITEMS];
    size_t n;
};

/* ---- Making it ------------------------------------------------------------------------------------------------- */

static char *filler(size_t n, int salt)
{
    static char text[200001];

    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + (i * 7 + (size_t)salt) % 26);
    text[n] = 0;
    return text;
}

static void fill_session(tide_store *store, int number, int events)
{
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE];

    snprintf(id, sizeof id, "sess%d", number);
    OK(tide_session_create(store, id, "{\"title\":\"a title\",\"agent\":\"tester\"}", &s, &err));
    for (int i = 0; i < events; i++) {
        if (i % 9 == 3)
            OK(tide_checkpoint_save(
                s,
                &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN},
                id, &err));
        else if (i % 7 == 2)
            put(s, "memory.set", "{\"values\":{\"k%d\":\"%s\"}}", i % 5, filler(60, i));
        else if (i % 31 == 30)
            OK(tide_session_rollback(s, i / 2 + 1, 0, "test", &err));
        else
            put(s, "message.user", "{\"turn\":%d,\"content\":\"%s\"}", i, filler(number == 1 ? 1500 : 100, i));
    }
    if (number == 2)
        put(s, "message.tool", "{\"tool_call_id\":\"c1\",\"content\":\"%s\"}", filler(90000, 1));
    if (number == 3)
        put(s, "run.started", "{\"run_id\":\"r\"}");
    if (number != 3) /* 3 is left open: its process is going to die */
        tide_session_close(s);
}

static void make_store(const char *path)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    char id[TIDE_ID_SIZE];

    OK(tide_store_open(path, &opt, &store, &err));
    for (int i = 0; i < 3; i++)
        fill_session(store, i, i == 0 ? 300 : 70); /* one past a block of positions, one with a snapshot */
    OK(tide_session_fork(store, "sess1", 33, "sess4", "{\"title\":\"fork\"}", id, &err));
    OK(tide_session_create(store, "doomed", NULL, &(tide_session *){NULL}, &err));
    OK(tide_store_compact(store, &err));
    fill_session(store, 3, 40); /* these are in the write-ahead log */
    OK(tide_session_fork(store, "sess4", 0, "sess5", NULL, id, &err));
    _exit(0);
}

static struct file read_whole(const char *path)
{
    struct file f = {NULL, 0};
    struct stat st;
    int fd = open(path, O_RDONLY);

    if (fd < 0 || fstat(fd, &st) != 0)
        fail_msg("open %s", path);
    f.len = (size_t)st.st_size;
    f.bytes = mem_alloc(f.len + 1);
    assert_int_equal(read(fd, f.bytes, f.len), (ssize_t)f.len);
    close(fd);
    return f;
}

static void write_whole(const char *path, const struct file *f)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, f->bytes, f->len) != (ssize_t)f->len)
        _exit(70);
    close(fd);
}

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

struct asking {
    struct base *base;
    bool recording;
    size_t at;
    int wrong;
    enum tide_code first_error;
    struct buf out;
};

static bool is_named(enum tide_code code)
{
    static const enum tide_code named[] = {TIDE_CORRUPT, TIDE_NOT_A_STORE, TIDE_WRONG_KEY, TIDE_TOO_NEW,
                                           TIDE_IO,      TIDE_FULL,        TIDE_READ_ONLY};

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (named[i] == code)
            return true;
    }
    return false;
}

static void complain(struct asking *a, const char *label, const char *what, const char *more)
{
    a->wrong++;
    print_error("  %s: %s %s\n", label, what, more);
}

/* The list with some sessions shown as damaged: all others, and the order, must be right. */
static bool is_list_with_damage(const char *got, const char *want)
{
    for (; *got && *want; got += strcspn(got, "\n") + 1, want += strcspn(want, "\n") + 1) {
        size_t id = strcspn(want, " ") + 1, n = strcspn(got, "\n") + 1;
        const char *mark = strstr(got, " damaged ");

        if (strncmp(got, want, id) != 0 || (!(mark && mark < got + n) && strncmp(got, want, n) != 0))
            return false;
    }
    return !*got && !*want;
}

/* Every line of `part` is one of `whole`, in order. */
static bool is_part_of(const char *part, const char *whole)
{
    while (*part) {
        size_t n = strcspn(part, "\n") + 1;

        while (*whole && strncmp(part, whole, n) != 0)
            whole += strcspn(whole, "\n") + 1;
        if (!*whole)
            return false;
        part += n;
        whole += n;
    }
    return true;
}

/*
 * The answer to the next question is in a->out; with an error it may be a part of the right one: the beginning, or, over
 * all sessions, what is whole.
 */
static void answer(struct asking *a, const char *label, enum tide_code code, const struct tide_err *err)
{
    struct item *item = &a->base->items[a->at++];

    if (a->recording) {
        if (code)
            fail_msg("%s: %s", label, err->msg);
        snprintf(item->label, sizeof item->label, "%s", label);
        item->text = mem_dup(buf_view(&a->out));
        a->base->n = a->at;
    } else if (code && !is_named(code)) {
        complain(a, label, tide_code_name(code), err->msg);
    } else if (!code && strcmp(label, "list") == 0) {
        if (!is_list_with_damage(buf_cstr(&a->out), item->text))
            complain(a, label, "another list", buf_cstr(&a->out));
        else if (strcmp(buf_cstr(&a->out), item->text) != 0)
            a->first_error = TIDE_CORRUPT;
    } else if (code && strcmp(label, "all events") == 0 ? !is_part_of(buf_cstr(&a->out), item->text)
               : code                                   ? strncmp(item->text, buf_cstr(&a->out), a->out.len) != 0
                                                        : strcmp(item->text, buf_cstr(&a->out)) != 0) {
        complain(a, label, "another answer", a->out.len < 600 ? buf_cstr(&a->out) : "");
    }
    if (code && !a->first_error)
        a->first_error = code;
    buf_clear(&a->out);
}

static int add_event(void *arg, const struct tide_event *ev)
{
    struct buf *out = arg;

    buf_addf(out, "%s %lld %lld %lld %lld %s ", ev->session_id, (long long)ev->seq, (long long)ev->pos,
             (long long)ev->ts_ms, (long long)ev->epoch, ev->kind);
    buf_add(out, ev->body, ev->body_len);
    buf_add_char(out, '\n');
    return 0;
}

static int add_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    buf_addf(arg, "%s %s %lld %d %d\n", c->id, c->type_word, (long long)c->seq, c->is_clean, c->rolled_back);
    return 0;
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static int add_info(void *arg, const struct tide_session_info *i)
{
    buf_addf(arg, "%s %s %s %s %lld %lld %lld %lld %lld %s %s %s %s\n", i->id, or_dash(i->title), or_dash(i->agent),
             or_dash(i->parent_id), (long long)i->parent_seq, (long long)i->created_ms, (long long)i->updated_ms,
             (long long)i->first_seq, (long long)i->last_seq, tide_status_name(i->status),
             tide_outcome_name(i->outcome), i->reason, or_dash(i->resume_from_checkpoint_id));
    return 0;
}

static void ask_state(struct asking *a, tide_session *s, int64_t seq, const char *label)
{
    struct tide_err err = {0};
    struct tide_text text = {NULL, 0};
    enum tide_code code = tide_session_get_state(s, seq, &text, &err);

    if (!code)
        buf_add(&a->out, text.ptr, text.len);
    tide_text_done(&text);
    answer(a, label, code, &err);
}

static void ask_session(struct asking *a, tide_store *store, const char *id)
{
    struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
    struct tide_err err = {0};
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, id, TIDE_SESSION_READ, &s, &err);

    answer(a, id, code, &err);
    if (code) {
        a->at += 7; /* its questions are not asked */
        return;
    }
    answer(a, "show", session_shown(s, add_info, &a->out, &err), &err);
    answer(a, "read", tide_session_read(s, TIDE_READ_INHERITED, 0, 0, add_event, &a->out, &err), &err);
    answer(a, "messages", tide_session_read_messages(s, 0, add_event, &a->out, &err), &err);
    answer(a, "checkpoints", tide_checkpoint_list(s, &all, add_checkpoint, &a->out, &err), &err);
    ask_state(a, s, 0, "state");
    ask_state(a, s, 30, "state at 30");
    answer(a, "verify", tide_session_verify(s, NULL, NULL, NULL, &err), &err);
    tide_session_close(s);
}

static void ask_all(struct asking *a)
{
    struct tide_err err = {0};
    tide_store *store = NULL;
    char id[TIDE_ID_SIZE];

    a->at = 0;
    answer(a, "open", tide_store_open(a->base->path, NULL, &store, &err), &err);
    if (!store)
        return;
    answer(a, "list", tide_session_list(store, NULL, add_info, &a->out, &err), &err);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "sess%d", i);
        ask_session(a, store, id);
    }
    id[0] = 0;
    err.code = tide_session_resolve(store, "doo", id, &err); /* by a prefix */
    buf_add_str(&a->out, str_from(id));
    answer(a, "resolve", err.code, &err);
    answer(a, "all events", tide_store_read(store, 0, 0, add_event, &a->out, &err), &err);
    tide_store_close(store);
}

/* ---- Damage ----------------------------------------------------------------------------------------------------- */

static size_t page_size(const struct file *db)
{
    size_t n = (size_t)db->bytes[16] << 8 | db->bytes[17];

    return n == 1 ? 65536 : n;
}

/* A place in the file; often where a page begins, since its header decides how all of it is read. */
static size_t place(struct rng *r, const struct file *f, size_t page)
{
    size_t at = (size_t)rng_below(r, (int64_t)f->len);

    switch (rng_below(r, 6)) {
    case 0:
        return at / page * page + (size_t)rng_below(r, 16) < f->len ? at / page * page + (size_t)rng_below(r, 12) : at;
    case 1:
        return (size_t)rng_below(r,
                                 f->len < 200 ? (int64_t)f->len : 200); /* the header of the file, the schema's page */
    case 2:                                                             /* the pointers to the cells */
        at = at / page * page + (size_t)rng_below(r, 120);
        return at < f->len ? at : 0;
    default:
        return at;
    }
}

static void swap(struct rng *r, struct file *f, size_t unit, bool copy)
{
    size_t units = f->len / unit, a, b;

    if (units < 2)
        return;
    a = (size_t)rng_below(r, (int64_t)units) * unit;
    b = (size_t)rng_below(r, (int64_t)units) * unit;
    for (size_t i = 0; i < unit; i++) {
        unsigned char t = f->bytes[a + i];

        f->bytes[a + i] = f->bytes[b + i];
        if (!copy)
            f->bytes[b + i] = t;
    }
}

static const char *damage(struct rng *r, struct file *f, size_t page)
{
    size_t at, run;

    if (f->len == 0)
        return "nothing";
    at = place(r, f, page);
    run = (size_t)rng_between(r, 1, 700);
    run = run > f->len - at ? f->len - at : run;
    switch (rng_below(r, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        for (int64_t i = rng_between(r, 1, 3); i > 0; i--, at = place(r, f, page))
            f->bytes[at] ^= (unsigned char)(1u << rng_below(r, 8));
        return "bits flipped";
    case 4:
        f->bytes[at] = (unsigned char)rng_next(r);
        return "a byte changed";
    case 5:
        memset(f->bytes + at, 0, run);
        return "a run zeroed";
    case 6:
        for (size_t i = 0; i < run; i++)
            f->bytes[at + i] = (unsigned char)rng_next(r);
        return "a run overwritten";
    case 7:
        f->len = at;
        return "cut";
    case 8:
        f->len = f->len / page * page > page ? (size_t)rng_between(r, 1, (int64_t)(f->len / page)) * page : at;
        return "cut between pages";
    case 9:
        swap(r, f, page, false);
        return "pages swapped";
    case 10:
        swap(r, f, 512, false);
        return "sectors swapped";
    default:
        swap(r, f, rng_below(r, 2) ? page : 512, true);
        return "a page or sector in the place of another";
    }
}

static const char *spoil(struct base *base, uint64_t seed, struct file files[FILES], int *ret_which)
{
    struct rng r = {seed * 1000003};
    int64_t dice = rng_below(&r, 100);
    int which = dice < 70 ? 0 : dice < 94 ? 1 : 2;
    char path[320];

    for (int i = 0; i < FILES; i++) {
        files[i].len = base->files[i].len;
        memcpy(files[i].bytes, base->files[i].bytes, files[i].len);
    }
    snprintf(path, sizeof path, "%s-shm", base->path);
    unlink(path);
    if (rng_below(&r, 20) == 0) { /* garbage where shared memory should be */
        struct file junk = {files[0].bytes + 5000, 32768};

        write_whole(path, &junk);
    }
    *ret_which = which;
    return damage(&r, &files[which], page_size(&base->files[0]));
}

/* ---- The rounds --------------------------------------------------------------------------------------------------- */

struct progress {
    uint64_t seed; /* being tried */
    int wrong, right, refused;
};

static bool try_one(struct base *base, uint64_t seed, struct file files[FILES], struct progress *p)
{
    struct asking a = {.base = base, .out = BUF_INIT(SIZE_MAX / 4)};
    int which;
    const char *how;

    alarm(30);
    how = spoil(base, seed, files, &which);
    for (int i = 0; i < FILES; i++) {
        char path[320];

        snprintf(path, sizeof path, "%s%s", base->path, suffixes[i]);
        write_whole(path, &files[i]);
    }
    ask_all(&a);
    if (a.wrong)
        print_error("seed %llu: %s in '%s': wrong (see above)\n", (unsigned long long)seed, how, suffixes[which]);
    p->wrong += a.wrong > 0;
    p->right += !a.wrong && !a.first_error;
    p->refused += !a.wrong && a.first_error;
    buf_done(&a.out);
    alarm(0);
    return a.wrong == 0;
}

static void worker(struct base *base, uint64_t from, uint64_t to, struct progress *p)
{
    struct file files[FILES];

    for (int i = 0; i < FILES; i++)
        files[i].bytes = mem_alloc(base->files[i].len + 1);
    for (p->seed = from; p->seed <= to; p->seed++)
        try_one(base, p->seed, files, p);
    _exit(0);
}

/* Runs the seeds in children, so that a crash or a hang costs one seed and is named. */
static int run_rounds(struct base *base, uint64_t from, uint64_t to)
{
    struct progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int died = 0, status, failures;

    assert_true(p != MAP_FAILED);
    while (from <= to) {
        pid_t pid = fork();

        if (pid == 0)
            worker(base, from, to, p);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        from = p->seed + 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            break;
        died++;
        print_error("seed %llu: %s\n", (unsigned long long)p->seed,
                    WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "crashes");
    }
    print_message("%d right, %d refused, %d wrong, %d crashed or hung\n", p->right, p->refused, p->wrong, died);
    assert_true(SLOW_BUILD || p->right + p->refused < 100 || (p->right > 20 && p->refused > 20));
    failures = p->wrong + died;
    munmap(p, sizeof *p);
    return failures;
}

static void prepare(struct base *base)
{
    struct asking a = {.base = base, .recording = true, .out = BUF_INIT(SIZE_MAX / 4)};
    int status;
    pid_t pid;

    dir_make(base->dir);
    snprintf(base->path, sizeof base->path, "%s/c.db", base->dir);
    pid = fork();
    if (pid == 0)
        make_store(base->path);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < FILES; i++) {
        char path[320];

        snprintf(path, sizeof path, "%s%s", base->path, suffixes[i]);
        base->files[i] = read_whole(path);
    }
    pid = fork(); /* asked elsewhere, so that this process stays free of SQLite */
    if (pid == 0) {
        for (int round = 0; round < 2; round++) {
            a.at = 0;
            ask_all(&a); /* once to record, once to see that asking changes nothing */
            a.recording = false;
        }
        _exit(a.wrong ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    a.recording = true;
    a.at = 0;
    ask_all(&a);
    assert_true(base->n > 50);
    buf_done(&a.out);
}

static void damaged_files_give_right_answers_or_named_errors(void **unused)
{
    static struct base base;
    const char *one = getenv("TIDEMARK_TEST_SEED"), *rounds = getenv("TIDEMARK_TEST_ROUNDS");
    uint64_t from = one ? strtoull(one, NULL, 10) : 1;
    uint64_t to = one ? from : rounds ? strtoull(rounds, NULL, 10) : DEFAULT_ROUNDS;
    int failures;

    (void)unused;
    prepare(&base);
    failures = run_rounds(&base, from, to);
    dir_remove(base.dir);
    for (size_t i = 0; i < base.n; i++)
        free(base.items[i].text);
    for (int i = 0; i < FILES; i++)
        free(base.files[i].bytes);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_give_right_answers_or_named_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
