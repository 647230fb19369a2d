/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sessions are read page by page, by cursor, while sessions come, change and go. */
#include "kit.h"

#include "store_kind.h"

struct fixture {
    char dir[256], url[300];
    tide_store *store;
};

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->url, sizeof f->url, f->dir, "s");
    OK(tide_store_open(
        f->url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &f->store, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static tide_session *make(struct fixture *f, const char *id)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, id, NULL, &s, &err));
    return s;
}

struct page {
    char ids[64], cursor[TIDE_ID_SIZE + 24];
};

static int add_to_page(void *arg, const struct tide_session_info *info)
{
    struct page *p = arg;

    snprintf(p->ids + strlen(p->ids), sizeof p->ids - strlen(p->ids), "%s", info->id);
    memcpy(p->cursor, info->cursor, sizeof p->cursor);
    return 0;
}

static struct page page_of(tide_store *store, enum tide_list_order order, const char *cursor)
{
    const struct tide_list_filter two = {.size = sizeof two, .limit = 2, .after = cursor, .order = order};
    struct page p = {"", ""};

    OK(tide_session_list(store, &two, add_to_page, &p, &err));
    return p;
}

static struct page page_after(tide_store *store, const char *cursor)
{
    return page_of(store, TIDE_LIST_BY_CREATION, cursor);
}

static int keep_changed_ms(void *arg, const struct tide_session_info *info)
{
    *(int64_t *)arg = info->updated_ms;
    return 1;
}

/* Changes this session, later than any other was changed. */
static void change_last(struct fixture *f, const char *id)
{
    const struct tide_list_filter newest = {.size = sizeof newest, .order = TIDE_LIST_BY_CHANGE};
    int64_t before = 0, now = 0;
    tide_session *s;

    OK(tide_session_list(f->store, &newest, keep_changed_ms, &before, &err));
    OK(tide_session_open(f->store, id, TIDE_SESSION_APPEND, &s, &err));
    do {
        put(s, "memory.set", "{\"values\":{\"k\":1}}");
        OK(tide_session_list(f->store, &newest, keep_changed_ms, &now, &err));
    } while (now <= before);
    tide_session_close(s);
}

/* What changes between two pages is at the beginning then; of the others none is left out. */
static void lists_by_change_are_read_page_by_page(void **state)
{
    struct fixture *f = *state;
    char of_creation[TIDE_ID_SIZE + 24];
    struct page p;

    for (const char *id = "abcdef"; *id; id++)
        tide_session_close(make(f, (char[]){*id, 0}));
    for (const char *id = "dafbec"; *id; id++)
        change_last(f, (char[]){*id, 0});
    p = page_of(f->store, TIDE_LIST_BY_CHANGE, NULL);
    assert_string_equal(p.ids, "ce");
    change_last(f, "a");
    p = page_of(f->store, TIDE_LIST_BY_CHANGE, p.cursor);
    assert_string_equal(p.ids, "bf");
    change_last(f, "f"); /* the one that the page ended with */
    p = page_of(f->store, TIDE_LIST_BY_CHANGE, p.cursor);
    assert_string_equal(p.ids, "d");
    OK(tide_session_delete(f->store, "d", &err));
    p = page_of(f->store, TIDE_LIST_BY_CHANGE, p.cursor);
    assert_string_equal(p.ids, "");
    p = page_of(f->store, TIDE_LIST_BY_CHANGE, NULL);
    assert_string_equal(p.ids, "fa");

    memcpy(of_creation, page_after(f->store, NULL).cursor, sizeof of_creation);
    for (int i = 0; i < 2; i++)
        ABOUT(TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "after",
              tide_session_list(f->store,
                                &(struct tide_list_filter){.size = sizeof(struct tide_list_filter),
                                                           .order = i ? TIDE_LIST_BY_CREATION : TIDE_LIST_BY_CHANGE,
                                                           .after = i ? p.cursor : of_creation},
                                add_to_page, &p, &err));
}

/* Sessions come and go between two pages: none that stays is left out or comes twice. */
static void lists_are_read_page_by_page(void **state)
{
    struct fixture *f = *state;
    struct page p;

    for (const char *id = "abcdef"; *id; id++)
        tide_session_close(make(f, (char[]){*id, 0}));
    p = page_after(f->store, NULL);
    assert_string_equal(p.ids, "fe");
    tide_session_close(make(f, "g"));
    p = page_after(f->store, p.cursor);
    assert_string_equal(p.ids, "dc");
    OK(tide_session_delete(f->store, "d", &err));
    p = page_after(f->store, p.cursor);
    assert_string_equal(p.ids, "ba");
    p = page_after(f->store, p.cursor);
    assert_string_equal(p.ids, "");
    GIVES(TIDE_INVALID,
          tide_session_list(f->store,
                            &(struct tide_list_filter){.size = sizeof(struct tide_list_filter), .after = "nonsense"},
                            add_to_page, &p, &err));
}

/* The session that a page ended with was deleted: what is older than it was comes next. */
static void a_page_continues_behind_a_session_that_is_gone(void **state)
{
    struct fixture *f = *state;
    struct page p;
    int64_t created = 0;

    for (const char *id = "abcdef"; *id; id++) {
        const struct tide_session_info *info;
        tide_session *s = make(f, (char[]){*id, 0});

        do { /* none in the same millisecond */
            OK(tide_session_get_info(s, &info, &err));
            if (info->created_ms > created)
                break;
            tide_session_close(s);
            OK(tide_session_delete(f->store, (char[]){*id, 0}, &err));
            s = make(f, (char[]){*id, 0});
        } while (1);
        created = info->created_ms;
        tide_session_close(s);
    }
    p = page_after(f->store, NULL);
    OK(tide_session_delete(f->store, "e", &err));
    p = page_after(f->store, p.cursor);
    assert_string_equal(p.ids, "dc");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lists_are_read_page_by_page),
        CASE(lists_by_change_are_read_page_by_page),
        CASE(a_page_continues_behind_a_session_that_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
