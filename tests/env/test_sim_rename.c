/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a power cut leaves of renames on the simulated machine: the model of env/sim_disk.c. What may happen is counted
 * over many seeds, and each way must be seen; and whatever a random trace of creations, removals, renames and syncs
 * leaves must be one of the states that an oracle finds by trying every set of changes that a journal may keep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "env/sim.h"

enum { SEEDS = 1000 };

struct box {
    struct sim *sim;
    struct env *env;
};

static struct box box_new(uint64_t seed)
{
    struct sim *sim = sim_new(seed);
    struct env *env = sim_proc_env(sim_proc_start(sim));

    assert_int_equal(env->ops->mkdirs(env, "/d", NULL), TIDE_OK);
    assert_int_equal(env->ops->mkdirs(env, "/e", NULL), TIDE_OK);
    return (struct box){sim, env};
}

/* The file's number. */
static uint64_t make(struct box *b, const char *path, char fill, bool synced)
{
    struct env_file *f = NULL;
    struct env_stat st;
    char bytes[4096];

    memset(bytes, fill, sizeof bytes);
    assert_int_equal(b->env->ops->open(b->env, path, ENV_WRITE | ENV_CREATE, &f, NULL), TIDE_OK);
    assert_int_equal(b->env->ops->pwrite(f, bytes, sizeof bytes, 0, NULL), TIDE_OK);
    if (synced)
        assert_int_equal(b->env->ops->sync(f, NULL), TIDE_OK);
    assert_int_equal(b->env->ops->fstat(f, &st, NULL), TIDE_OK);
    b->env->ops->close(f);
    return st.ino;
}

static void move(struct box *b, const char *from, const char *to)
{
    assert_int_equal(b->env->ops->rename(b->env, from, to, NULL), TIDE_OK);
}

static void sync_dir(struct box *b, const char *path)
{
    assert_int_equal(b->env->ops->sync_dir(b->env, path, NULL), TIDE_OK);
}

static void drop(struct box *b, const char *path)
{
    assert_int_equal(b->env->ops->unlink(b->env, path, NULL), TIDE_OK);
}

static void power_cut(struct box *b)
{
    sim_power_cut(b->sim);
    b->env = sim_proc_env(sim_proc_start(b->sim));
}

/* The number of the file under that name; 0: none. */
static uint64_t at(struct box *b, const char *path)
{
    struct env_stat st;

    assert_int_equal(b->env->ops->stat(b->env, path, &st, NULL), TIDE_OK);
    return st.kind == ENV_FILE ? st.ino : 0;
}

/* Whole: all of its 4096 bytes are `fill`. */
static bool is_whole(struct box *b, const char *path, char fill)
{
    unsigned char *bytes;
    size_t len;

    assert_true(sim_file_bytes(b->sim, path, &bytes, &len));
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (unsigned char)fill)
            return false;
    return len == 4096;
}

/* ---- One rename --------------------------------------------------------------------------------------------- */

static void an_unsynced_rename_is_done_or_not_done(void **state)
{
    int done = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        uint64_t old = make(&b, "/d/to", 'o', true), new = make(&b, "/d/from", 'n', true);
        sync_dir(&b, "/d");
        move(&b, "/d/from", "/d/to");
        sync_dir(&b, "/"); /* another directory */
        power_cut(&b);
        if (at(&b, "/d/to") == new) {
            done++;
            assert_int_equal(at(&b, "/d/from"), 0);
            assert_true(is_whole(&b, "/d/to", 'n'));
        } else {
            assert_int_equal(at(&b, "/d/to"), old);
            assert_int_equal(at(&b, "/d/from"), new);
            assert_true(is_whole(&b, "/d/to", 'o') && is_whole(&b, "/d/from", 'n'));
        }
        sim_free(b.sim);
    }
    assert_true(done > SEEDS / 10 && done < SEEDS - SEEDS / 10);
}

static void a_rename_is_durable_with_its_directory(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        make(&b, "/d/to", 'o', true);
        sync_dir(&b, "/d");
        uint64_t new = make(&b, "/d/from", 'n', true);
        move(&b, "/d/from", "/d/to");
        sync_dir(&b, "/d");
        make(&b, "/d/from", 'x', false); /* what comes later does not undo it */
        power_cut(&b);
        assert_int_equal(at(&b, "/d/to"), new);
        assert_true(is_whole(&b, "/d/to", 'n'));
        sim_free(b.sim);
    }
}

static void the_new_file_holds_only_what_was_synced(void **state)
{
    int torn = 0, whole = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        uint64_t old = make(&b, "/d/to", 'o', true);
        sync_dir(&b, "/d");
        uint64_t new = make(&b, "/d/from", 'n', false);
        move(&b, "/d/from", "/d/to");
        power_cut(&b);
        if (at(&b, "/d/to") == old) {
            assert_true(is_whole(&b, "/d/to", 'o'));
        } else {
            assert_int_equal(at(&b, "/d/to"), new);
            whole += is_whole(&b, "/d/to", 'n');
            torn += !is_whole(&b, "/d/to", 'n');
        }
        sim_free(b.sim);
    }
    assert_true(torn > 0 && whole > 0);
}

static void a_file_made_and_renamed_is_old_halfway_or_new(void **state)
{
    int seen[3] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        uint64_t old = make(&b, "/d/to", 'o', true);
        sync_dir(&b, "/d");
        uint64_t new = make(&b, "/d/from", 'n', true);
        move(&b, "/d/from", "/d/to");
        power_cut(&b);
        uint64_t to = at(&b, "/d/to"), from = at(&b, "/d/from");
        assert_true((to == old && (from == 0 || from == new)) || (to == new &&from == 0));
        seen[to == new ? 2 : from == new]++;
        sim_free(b.sim);
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

/* ---- Several ------------------------------------------------------------------------------------------------ */

static void renames_of_other_names_survive_each_for_itself(void **state)
{
    int seen[2][2] = {{0}};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        uint64_t one = make(&b, "/d/a", 'a', true), two = make(&b, "/d/b", 'b', true);
        sync_dir(&b, "/d");
        move(&b, "/d/a", "/d/x");
        move(&b, "/d/b", "/d/y");
        power_cut(&b);
        assert_int_equal(at(&b, "/d/a") + at(&b, "/d/x"), one); /* under one of the two, and only one */
        assert_int_equal(at(&b, "/d/b") + at(&b, "/d/y"), two);
        seen[at(&b, "/d/x") != 0][at(&b, "/d/y") != 0]++;
        sim_free(b.sim);
    }
    assert_true(seen[0][0] > 0 && seen[0][1] > 0 && seen[1][0] > 0 && seen[1][1] > 0);
}

static void a_name_replaced_often_is_one_of_its_files(void **state)
{
    int seen[4] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        uint64_t files[4] = {make(&b, "/d/to", '0', true)};
        char from[32];
        sync_dir(&b, "/d");
        for (int i = 1; i < 4; i++) {
            snprintf(from, sizeof from, "/d/tmp%d", i);
            files[i] = make(&b, from, (char)('0' + i), true);
            move(&b, from, "/d/to");
        }
        power_cut(&b);
        int which = -1;
        for (int i = 0; i < 4; i++)
            if (at(&b, "/d/to") == files[i])
                which = i;
        assert_true(which >= 0 && is_whole(&b, "/d/to", (char)('0' + which)));
        seen[which]++;
        sim_free(b.sim);
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && seen[3] > 0);
}

static void between_directories_both_must_be_synced(void **state)
{
    (void)state;
    for (int synced = 0; synced < 4; synced++) {
        int done = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct box b = box_new(seed);
            uint64_t file = make(&b, "/d/a", 'a', true);
            sync_dir(&b, "/d");
            make(&b, "/e/other", 'o', true);
            move(&b, "/d/a", "/e/a");
            if (synced & 1)
                sync_dir(&b, "/d");
            if (synced & 2)
                sync_dir(&b, "/e");
            power_cut(&b);
            assert_int_equal(at(&b, "/d/a") + at(&b, "/e/a"), file);
            done += at(&b, "/e/a") != 0;
            sim_free(b.sim);
        }
        assert_true(synced == 3 ? done == SEEDS : done > 0 && done < SEEDS);
    }
}

static void a_copy_of_the_disk_loses_no_file_either(void **state)
{
    int done = 0;
    struct box b = box_new(1);

    (void)state;
    uint64_t old = make(&b, "/d/to", 'o', true), new = make(&b, "/d/from", 'n', true);
    sync_dir(&b, "/d");
    move(&b, "/d/from", "/d/to");
    struct sim_image *image = sim_image_take(b.sim);
    sim_free(b.sim);
    for (uint64_t seed = 0; seed < 100; seed++) {
        b.sim = sim_new_from(seed, image);
        b.env = sim_proc_env(sim_proc_start(b.sim));
        assert_int_equal(at(&b, "/d/to"), new);
        assert_true(make(&b, "/d/third", 't', true) > new);
        assert_int_equal(make(&b, "/d/to", 'N', true), new); /* the same file under both its names */
        power_cut(&b);
        done += at(&b, "/d/to") == new;
        assert_int_equal(at(&b, "/d/to") + at(&b, "/d/from"), at(&b, "/d/to") == new ? new : old + new);
        assert_true(is_whole(&b, at(&b, "/d/to") == new ? "/d/to" : "/d/from", 'N'));
        sim_free(b.sim);
    }
    assert_true(done > 0 && done < 100);
    sim_image_free(image);
}

static void no_number_is_given_to_a_second_file(void **state)
{
    struct box b = box_new(1);
    uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        uint64_t number = make(&b, "/d/f", 'x', false);
        assert_true(number > last);
        last = number;
        if (i % 2)
            drop(&b, "/d/f");
        else
            move(&b, "/d/f", "/d/g");
        if (i % 5 == 0)
            power_cut(&b);
        if (at(&b, "/d/f"))
            drop(&b, "/d/f");
    }
    sim_free(b.sim);
}

/* ---- Any trace ----------------------------------------------------------------------------------------------- */

enum { NAMES = 5, CHANGES = 9 };
static const char *const names[NAMES] = {"/d/a", "/d/b", "/d/c", "/e/a", "/e/b"};

struct change {
    int from, to; /* names; from -1: `to` was made or removed */
    uint64_t file;
    bool from_synced, to_synced;
};

struct trace {
    struct change changes[CHANGES];
    int len;
    char text[512]; /* to show */
};

static void note(struct trace *t, int from, int to, uint64_t file)
{
    size_t used = strlen(t->text);

    t->changes[t->len++] = (struct change){from, to, file, from < 0, false};
    snprintf(t->text + used, sizeof t->text - used, "%s -> %s = %d; ", from < 0 ? "" : names[from], names[to],
             (int)file);
}

static void note_sync(struct trace *t, char dir)
{
    size_t used = strlen(t->text);

    for (int i = 0; i < t->len; i++) {
        struct change *c = &t->changes[i];
        c->from_synced |= c->from >= 0 && names[c->from][1] == dir;
        c->to_synced |= names[c->to][1] == dir;
    }
    snprintf(t->text + used, sizeof t->text - used, "sync %c; ", dir);
}

static void add_more(struct box *b, struct trace *t)
{
    int from = (int)(sim_random(b->sim) % NAMES), to = (int)(sim_random(b->sim) % NAMES);
    uint64_t file = at(b, names[from]);
    bool moves = sim_random(b->sim) % 4 != 0;

    if (sim_random(b->sim) % 6 == 0) {
        const char *dir = to % 2 ? "/d" : "/e";
        sync_dir(b, dir);
        note_sync(t, dir[1]);
    } else if (!file) {
        note(t, -1, from, make(b, names[from], 'x', false));
    } else if (moves && from != to) {
        move(b, names[from], names[to]);
        note(t, from, to, file);
    } else if (!moves) {
        drop(b, names[from]);
        note(t, -1, from, 0);
    }
}

static bool share_a_name(const struct change *a, const struct change *b)
{
    return a->to == b->to || a->to == b->from || (a->from >= 0 && (a->from == b->to || a->from == b->from));
}

/* What is synced is in it, and with each change the earlier ones of its names. */
static bool may_be_kept(const struct trace *t, unsigned set)
{
    for (int i = 0; i < t->len; i++) {
        const struct change *c = &t->changes[i];
        if (!(set >> i & 1) && c->from_synced && c->to_synced)
            return false;
        for (int k = 0; k < i && set >> i & 1; k++)
            if (!(set >> k & 1) && share_a_name(c, &t->changes[k]))
                return false;
    }
    return true;
}

static void play(const struct trace *t, unsigned set, uint64_t out[NAMES])
{
    memset(out, 0, NAMES * sizeof *out);
    for (int i = 0; i < t->len; i++) {
        if (!(set >> i & 1))
            continue;
        if (t->changes[i].from >= 0)
            out[t->changes[i].from] = 0;
        out[t->changes[i].to] = t->changes[i].file;
    }
}

static bool is_allowed(const struct trace *t, const uint64_t left[NAMES])
{
    uint64_t state[NAMES];

    for (unsigned set = 0; set < 1u << t->len; set++) {
        play(t, set, state);
        if (may_be_kept(t, set) && memcmp(state, left, sizeof state) == 0)
            return true;
    }
    return false;
}

static void no_power_cut_leaves_what_no_journal_could(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5 * SEEDS; seed++) {
        struct box b = box_new(seed);
        struct trace t = {0};
        uint64_t left[NAMES];
        for (int i = 0; i < 3 * CHANGES && t.len < CHANGES; i++)
            add_more(&b, &t);
        power_cut(&b);
        for (int i = 0; i < NAMES; i++)
            left[i] = at(&b, names[i]);
        if (!is_allowed(&t, left))
            fail_msg("seed %d: %s left %d %d %d %d %d", (int)seed, t.text, (int)left[0], (int)left[1], (int)left[2],
                     (int)left[3], (int)left[4]);
        sim_free(b.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unsynced_rename_is_done_or_not_done),
        cmocka_unit_test(a_rename_is_durable_with_its_directory),
        cmocka_unit_test(the_new_file_holds_only_what_was_synced),
        cmocka_unit_test(a_file_made_and_renamed_is_old_halfway_or_new),
        cmocka_unit_test(renames_of_other_names_survive_each_for_itself),
        cmocka_unit_test(a_name_replaced_often_is_one_of_its_files),
        cmocka_unit_test(between_directories_both_must_be_synced),
        cmocka_unit_test(a_copy_of_the_disk_loses_no_file_either),
        cmocka_unit_test(no_number_is_given_to_a_second_file),
        cmocka_unit_test(no_power_cut_leaves_what_no_journal_could),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
