/* SPDX-License-Identifier: Apache-2.0 */
/* The screen as a value: what keys do, what is asked and carried out, what is seen, at every size. */
#include "tui_kit.h"

#include "base/timefmt.h"
#include "seeded.h"

#define LIST(rows) "{\"sessions\":[" rows "],\"next_cursor\":null}"
#define INBOX(items, total) "{\"items\":[" items "],\"total\":" total "}"
#define ITEM(id, title, question)                                                                                      \
    "{\"session\":" WAITS(id, title) ",\"since\":\"2026-11-19T19:00:00.000Z\",\"question\":" question "}"
#define APPROVAL "{\"text\":\"Release it?\",\"kind\":\"approval\",\"name\":\"release\",\"approval\":true}"
#define EDIT                                                                                                           \
    "{\"text\":\"allow edit?\",\"kind\":\"approval\",\"approval\":true,\"tool\":\"edit\",\"args\":{\"path\":\"a\"},"   \
    "\"diff\":\"@@ -1 +1 @@\\n-low\\n+high\\n\"}"
#define INPUT "{\"text\":\"Which branch?\",\"kind\":\"input\",\"name\":\"branch\",\"approval\":false}"

struct fixture {
    struct app app;
    struct canvas c;
};

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    app_init(&f->app, "tides.db", false);
    app_tick(&f->app, NOW_MS);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    app_done(&f->app);
    canvas_done(&f->c);
    free(f);
    return 0;
}

static void draw(struct fixture *f)
{
    draw_at(&f->app, &f->c, 24, 100);
}

/* ---- the list ---- */

static void the_list_shows_sessions_with_what_moves_them(void **state)
{
    struct fixture *f = *state;

    draw(f);
    SHOWS(&f->c, "reading…");
    give(&f->app, ASK_SESSIONS, LIST(WAITS("deploy", "Release 2.4") "," DONE("report", "Weekly report")));
    draw(f);
    SHOWS(&f->c, "◆ waiting     Release 2.4");
    SHOWS(&f->c, "▸ answer");
    SHOWS(&f->c, "✓ completed   Weekly report");
    SHOWS(&f->c, "5m");
    SHOWS(&f->c, "it waits for approval");
}

static void an_empty_list_teaches(void **state)
{
    static const char *const starts[] = {"tidemark chat", NULL};
    struct fixture *f = *state;

    f->app.starts = starts;
    give(&f->app, ASK_SESSIONS, LIST(""));
    draw(f);
    SHOWS(&f->c, "There are no sessions yet.");
    SHOWS(&f->c, "tidemark chat");
    type(&f->app, "f");
    give(&f->app, ASK_SESSIONS, LIST(""));
    draw(f);
    SHOWS(&f->c, "No session is like that.");
}

static void what_is_chosen_stays_chosen_while_rows_move(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(DONE("a", "A") "," DONE("b", "B") "," DONE("c", "C")));
    draw(f);
    press(&f->app, KEY_IS_DOWN);
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    give(&f->app, ASK_SESSIONS, LIST(DONE("new", "New") "," DONE("a", "A") "," DONE("b", "B")));
    press(&f->app, KEY_IS_ENTER);
    ask = next_ask(&f->app, ASK_PAGE);
    assert_string_equal(ask.id, "b");
}

static void filters_and_words_are_asked_for(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(DONE("a", "A")));
    type(&f->app, "ff");
    ask = next_ask(&f->app, ASK_SESSIONS);
    assert_string_equal(ask.status, "waiting");
    answer_with(&f->app, &ask, LIST(""));
    type(&f->app, "F");
    type(&f->app, "/low tide q");
    ask = next_ask(&f->app, ASK_SESSIONS);
    assert_string_equal(ask.status, "running");
    assert_string_equal(ask.text, "low tide q"); /* a q that is typed does not quit */
    assert_false(f->app.quit);
    answer_with(&f->app, &ask, LIST(""));
    press(&f->app, KEY_IS_ESCAPE);
    ask = next_ask(&f->app, ASK_SESSIONS);
    assert_string_equal(ask.text, "");
    type(&f->app, "q");
    assert_true(f->app.quit);
}

static void one_thing_of_a_kind_is_asked_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct ask first = next_ask(&f->app, ASK_SESSIONS), again;

    for (int i = 0; i < 100; i++)
        app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    assert_false(app_next_ask(&f->app, &again) && again.what == ASK_SESSIONS);
    answer_with(&f->app, &first, LIST(DONE("a", "A")));
    again = next_ask(&f->app, ASK_SESSIONS);
    assert_true(again.number > first.number);
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    answer_with(&f->app, &again, LIST(DONE("a", "A")));
    assert_false(app_next_ask(&f->app, &again) && again.what == ASK_SESSIONS); /* not at once: nobody could see it */
}

static void a_source_that_is_lost_is_said_and_asked_again(void **state)
{
    struct fixture *f = *state;
    struct tide_err err = {.code = TIDE_IO, .msg = "no server answers there"};
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(DONE("a", "Weekly report")));
    app_news(&f->app, &(struct news){.what = NEWS_LOST, .err = &err});
    app_want(&f->app, ASK_SESSIONS);
    ask = next_ask(&f->app, ASK_SESSIONS);
    answer_fails(&f->app, &ask, TIDE_IO, "no server answers there", true);
    draw(f);
    SHOWS(&f->c, "○ lost");
    SHOWS(&f->c, "trying again: no server answers there");
    SHOWS(&f->c, "Weekly report"); /* what was known stays */
    assert_true(asks(&f->app, ASK_SESSIONS));
    app_news(&f->app, &(struct news){.what = NEWS_BACK});
    draw(f);
    SHOWS(&f->c, "● live");
    SHOWS(&f->c, "connected again");
}

/* ---- the inbox, and answering ---- */

static void open_inbox(struct fixture *f, const char *json)
{
    give(&f->app, ASK_SESSIONS, LIST(""));
    press(&f->app, KEY_IS_TAB);
    give(&f->app, ASK_INBOX, json);
    draw(f);
}

static void the_inbox_shows_the_exact_action(void **state)
{
    struct fixture *f = *state;

    open_inbox(f, INBOX(ITEM("chat", "Fix the tide", EDIT) "," ITEM("deploy", "Release", APPROVAL), "2"));
    SHOWS(&f->c, "Inbox 2");
    SHOWS(&f->c, "◆  30m  Fix the tide");
    SHOWS(&f->c, "-low");
    SHOWS(&f->c, "+high");
    press(&f->app, KEY_IS_DOWN);
    draw(f);
    SHOWS_NOT(&f->c, "+high");
    SHOWS(&f->c, "Release it?");
}

static void an_approval_is_given_by_its_letter_alone(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_ENTER);
    draw(f);
    SHOWS(&f->c, "Answer deploy");
    press(&f->app, KEY_IS_ENTER); /* stands on "later" */
    assert_false(app_next_act(&f->app, &act));
    assert_int_equal(f->app.dialog.what, 0);
    press(&f->app, KEY_IS_ENTER);
    type(&f->app, "y");
    assert_true(app_next_act(&f->app, &act));
    assert_int_equal(act.what, ACT_ANSWER);
    assert_string_equal(act.id, "deploy");
    assert_string_equal(act.input, "\"yes\"");
    assert_null(act.reason);
    act_done(&act);
}

static void letters_in_a_field_press_nothing(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_ENTER);
    press(&f->app, KEY_IS_TAB); /* to the field: "later" is the last */
    type(&f->app, "not yet, ny");
    assert_false(app_next_act(&f->app, &act));
    press(&f->app, KEY_IS_TAB);
    type(&f->app, "n");
    assert_true(app_next_act(&f->app, &act));
    assert_string_equal(act.input, "\"no\"");
    assert_string_equal(act.reason, "not yet, ny");
    act_done(&act);
}

static void what_is_pasted_decides_nothing(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_PASTE_BEGIN);
    press(&f->app, KEY_IS_ENTER);
    type(&f->app, "yq");
    press(&f->app, KEY_IS_PASTE_END);
    assert_int_equal(f->app.dialog.what, 0);
    assert_false(f->app.quit);
    press(&f->app, KEY_IS_ENTER);
    press(&f->app, KEY_IS_PASTE_BEGIN);
    type(&f->app, "y");
    press(&f->app, KEY_IS_PASTE_END);
    assert_false(app_next_act(&f->app, &act));
}

static void a_text_is_answered_as_json(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("branch", "Name it", INPUT), "1"));
    press(&f->app, KEY_IS_ENTER);
    press(&f->app, KEY_IS_ENTER); /* from the field to the button */
    press(&f->app, KEY_IS_ENTER);
    draw(f);
    SHOWS(&f->c, "type an answer first");
    assert_false(app_next_act(&f->app, &act));
    press(&f->app, KEY_IS_BACK_TAB);
    type(&f->app, "say \"hi\"");
    press(&f->app, KEY_IS_ENTER);
    press(&f->app, KEY_IS_ENTER);
    assert_true(app_next_act(&f->app, &act));
    assert_string_equal(act.input, "\"say \\\"hi\\\"\"");
    act_done(&act);
}

static void a_dialog_closes_when_its_session_goes_on(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_ENTER);
    type(&f->app, "y");
    assert_true(app_next_act(&f->app, &act));
    act_done(&act);
    draw(f);
    SHOWS(&f->c, "one moment…");
    type(&f->app, "y"); /* once is enough */
    assert_false(app_next_act(&f->app, &act));
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    give(&f->app, ASK_SESSIONS, LIST(ROW("deploy", "Release", "running", "none", "it runs", "9", "", "")));
    draw(f);
    SHOWS_NOT(&f->c, "one moment…");
    SHOWS(&f->c, "deploy continues");
}

static void what_is_refused_is_said_in_the_dialog(void **state)
{
    struct fixture *f = *state;
    struct acted acted = {
        .what = ACT_ANSWER, .id = "deploy", .err = {.code = TIDE_HELD, .msg = "another process runs it"}};
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_ENTER);
    type(&f->app, "y");
    assert_true(app_next_act(&f->app, &act));
    acted.number = act.number;
    act_done(&act);
    app_acted(&f->app, &(struct acted){.what = ACT_RESUME,
                                       .id = "deploy",
                                       .number = 1,
                                       .err = {.code = TIDE_FAILED, .msg = "of an act before"}});
    assert_true(f->app.dialog.busy);
    app_acted(&f->app, &acted);
    draw(f);
    SHOWS(&f->c, "another process runs it");
    SHOWS(&f->c, "[ yes ]");
}

/* ---- resuming ---- */

#define STUCK                                                                                                          \
    ROW("cut", "Import", "interrupted_startup", "interrupted", "its process ended in publish", "9",                    \
        RESUME_NEXT("cut", "{\"happened\":[{\"name\":\"publish\"}]}") "," RESUME_NEXT("cut",                           \
                                                                                      "{\"retry\":[\"publish\"]}"),    \
        ",\"needs_resume\":true")

static void ways_to_resume_are_those_of_the_session(void **state)
{
    struct fixture *f = *state;
    struct act act;
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(STUCK));
    draw(f);
    type(&f->app, "r");
    ask = next_ask(&f->app, ASK_PLAN);
    assert_string_equal(ask.id, "cut");
    answer_with(&f->app, &ask,
                "{\"from\":{\"checkpoint\":null,\"seq\":9},\"nodes_to_run\":[{\"node\":\"publish\"}],"
                "\"complete\":[\"build\"],\"refused\":[{\"reason\":\"it is not known whether it happened\"}]}");
    draw(f);
    SHOWS(&f->c, "from where it stands, event 9");
    SHOWS(&f->c, "runs: publish");
    SHOWS(&f->c, "does not run again: build");
    SHOWS(&f->c, "✗ it is not known whether it happened");
    SHOWS(&f->c, "it happened ]");
    press(&f->app, KEY_IS_RIGHT);
    press(&f->app, KEY_IS_ENTER); /* run it again */
    assert_true(app_next_act(&f->app, &act));
    assert_int_equal(act.what, ACT_RESUME);
    assert_string_equal(act.retry, "publish");
    assert_null(act.happened);
    act_done(&act);
}

#define GRAPH                                                                                                          \
    "{\"session_id\":\"tides\",\"kind\":\"graph\",\"title\":\"Tides\",\"status\":\"idle\",\"outcome\":\"failed\","     \
    "\"why\":\"node b failed\",\"next\":[" RESUME_NEXT(                                                                \
        "tides",                                                                                                       \
        "{\"set\":{\"key\":null}}") "],\"is_resumable\":true,"                                                         \
                                    "\"trusted\":true,\"updated_at\":\"2026-11-19T19:25:00.000Z\",\"first_seq\":1,\"last_seq\":7}"

static void values_of_a_graph_are_checked_first_and_given_as_json(void **state)
{
    struct fixture *f = *state;
    struct act act;
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(GRAPH));
    draw(f);
    type(&f->app, "r");
    ask = next_ask(&f->app, ASK_PLAN);
    answer_with(&f->app, &ask, "{\"missing_inputs\":[{\"node\":\"b\",\"key\":\"api_key\",\"never_stored\":true}]}");
    draw(f);
    SHOWS(&f->c, "'b' needs 'api_key', which is stored nowhere: give it again");
    press(&f->app, KEY_IS_BACK_TAB); /* from the first button to the last field */
    press(&f->app, KEY_IS_BACK_TAB);
    type(&f->app, "api_key=k=1; n:=[1,2]");
    press(&f->app, KEY_IS_TAB);
    press(&f->app, KEY_IS_TAB);
    type(&f->app, "c");
    ask = next_ask(&f->app, ASK_PLAN);
    assert_string_equal(ask.how.set, "{\"api_key\":\"k=1\",\"n\":[1,2]}");
    answer_with(&f->app, &ask, "{\"from\":{\"seq\":7},\"refused\":[]}");
    draw(f);
    SHOWS_NOT(&f->c, "stored nowhere"); /* the new verdict replaces the one before */
    type(&f->app, "r");
    assert_true(app_next_act(&f->app, &act));
    assert_string_equal(act.set, "{\"api_key\":\"k=1\",\"n\":[1,2]}");
    act_done(&act);
}

static void values_that_are_no_json_are_said(void **state)
{
    struct fixture *f = *state;
    struct act act;

    give(&f->app, ASK_SESSIONS, LIST(GRAPH));
    draw(f);
    type(&f->app, "r");
    press(&f->app, KEY_IS_BACK_TAB);
    press(&f->app, KEY_IS_BACK_TAB);
    type(&f->app, "n:=[1");
    press(&f->app, KEY_IS_TAB);
    press(&f->app, KEY_IS_TAB);
    type(&f->app, "r");
    assert_false(app_next_act(&f->app, &act));
    draw(f);
    SHOWS(&f->c, "'n' has a value that is no JSON");
}

/* ---- a session ---- */

#define SAID(seq, type, text) "{\"type\":\"" type "\",\"seq\":" seq ",\"turn\":1,\"text\":\"" text "\"}"
#define PAGE_OF(session, entries, before)                                                                              \
    "{\"position\":1,\"session\":" session ",\"question\":null,\"queue\":[],\"entries\":[" entries                     \
    "],\"entries_before\":" before "}"
#define PAGE(last, entries, before)                                                                                    \
    PAGE_OF(ROW("notes", "Notes", "idle", "completed", "it was completed", last, "", ",\"id\":\"notes\""), entries,    \
            before)

static void open_notes(struct fixture *f, const char *page)
{
    app_open_session(&f->app, "notes");
    give(&f->app, ASK_PAGE, page);
    draw(f);
}

static void a_session_shows_what_was_said(void **state)
{
    struct fixture *f = *state;

    open_notes(
        f,
        PAGE(
            "9",
            SAID("2", "user", "Look at the moon.") "," SAID(
                "4", "assistant",
                "It is full.") ","
                               "{\"type\":\"tool\",\"seq\":5,\"turn\":1,\"outcome\":\"ok\",\"name\":\"read\",\"args\":{\"path\":\"moon.md\"},\"text\":\"the moon is full\"}",
            "null"));
    SHOWS(&f->c, "› Look at the moon.");
    SHOWS(&f->c, "● It is full.");
    SHOWS(&f->c, "✓ ▸ read  moon.md");
    SHOWS_NOT(&f->c, "the moon is full");
    press(&f->app, KEY_IS_ENTER); /* the cursor stands at the end */
    draw(f);
    SHOWS(&f->c, "▾ read");
    SHOWS(&f->c, "the moon is full");
}

static void earlier_parts_are_read_and_nothing_moves(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    open_notes(f, PAGE("30", SAID("20", "user", "twenty") "," SAID("22", "assistant", "twenty-two"), "20"));
    SHOWS(&f->c, "↑ earlier");
    press(&f->app, KEY_IS_HOME);
    ask = next_ask(&f->app, ASK_TALK);
    assert_int_equal(ask.seq, 20);
    answer_with(
        &f->app, &ask,
        "{\"entries\":[" SAID("10", "user", "ten") "," SAID("12", "assistant", "twelve") "],\"entries_before\":null}");
    draw(f);
    SHOWS(&f->c, "ten");
    SHOWS(&f->c, "twenty-two");
    SHOWS_NOT(&f->c, "↑ earlier");
    /* The page comes again, with what is new: everything is there, once. */
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    give(&f->app, ASK_PAGE,
         PAGE("40", SAID("22", "assistant", "twenty-two") "," SAID("32", "user", "thirty-two"), "22"));
    draw(f);
    SHOWS(&f->c, "twelve");
    SHOWS(&f->c, "› twenty");
    SHOWS(&f->c, "thirty-two");
    /* More than a page was missed: what has a hole is not shown as one. */
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    give(&f->app, ASK_PAGE, PAGE("90", SAID("80", "user", "eighty"), "80"));
    draw(f);
    SHOWS_NOT(&f->c, "twelve");
    SHOWS(&f->c, "↑ earlier");
}

static void streamed_text_gives_way_to_the_message(void **state)
{
    struct fixture *f = *state;

    open_notes(f, PAGE("2", SAID("2", "user", "go on"), "null"));
    app_news(&f->app, &(struct news){.what = NEWS_TEXT, .id = "other", .text = STR("not here")});
    app_news(&f->app, &(struct news){.what = NEWS_TEXT, .id = "notes", .text = STR("The tide ")});
    app_news(&f->app, &(struct news){.what = NEWS_TEXT, .id = "notes", .text = STR("comes in")});
    draw(f);
    SHOWS(&f->c, "● The tide comes in");
    SHOWS_NOT(&f->c, "not here");
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    give(&f->app, ASK_PAGE,
         PAGE("4", SAID("2", "user", "go on") "," SAID("4", "assistant", "The tide comes in."), "null"));
    draw(f);
    SHOWS(&f->c, "● The tide comes in.");
    SHOWS_NOT(&f->c, "● The tide comes in\n");
}

static void a_session_that_was_deleted_says_so(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    open_notes(f, PAGE("2", SAID("2", "user", "go on"), "null"));
    app_news(&f->app, &(struct news){.what = NEWS_CHANGED});
    ask = next_ask(&f->app, ASK_PAGE);
    answer_fails(&f->app, &ask, TIDE_NOT_FOUND, "no session 'notes'", false);
    draw(f);
    SHOWS(&f->c, "It was deleted");
    SHOWS(&f->c, "› go on");
    press(&f->app, KEY_IS_ESCAPE);
    assert_int_equal(f->app.place, PLACE_SESSIONS);
}

static void the_state_as_of_any_line_is_one_key_away(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    open_notes(f, PAGE("9", SAID("2", "user", "first") "," SAID("4", "assistant", "second"), "null"));
    press(&f->app, KEY_IS_HOME);
    type(&f->app, "i");
    ask = next_ask(&f->app, ASK_STATE);
    assert_int_equal(ask.seq, 2);
    answer_with(&f->app, &ask, "{\"content\":{\"memory\":{\"moon\":\"full\"}}}");
    draw(f);
    SHOWS(&f->c, "as of event 2 of 9");
    SHOWS(&f->c, "\"moon\": \"full\"");
    press(&f->app, KEY_IS_RIGHT);
    ask = next_ask(&f->app, ASK_STATE);
    assert_int_equal(ask.seq, 3);
    answer_with(&f->app, &ask, "{}");
    press(&f->app, KEY_IS_LEFT);
    press(&f->app, KEY_IS_LEFT);
    press(&f->app, KEY_IS_LEFT);
    ask = next_ask(&f->app, ASK_STATE);
    assert_int_equal(ask.seq, 1);
}

static void the_log_is_read_window_by_window(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    open_notes(f, PAGE("900", SAID("2", "user", "first"), "null"));
    type(&f->app, "3");
    ask = next_ask(&f->app, ASK_LOG);
    assert_int_equal(ask.seq, 0);
    assert_int_equal(ask.after, -1);
    answer_with(
        &f->app, &ask,
        "{\"events\":[{\"seq\":899,\"ts\":\"2026-11-19T19:00:00.000Z\",\"kind\":\"memory.set\",\"values\":{\"a\":1}},"
        "{\"seq\":900,\"ts\":\"2026-11-19T19:00:00.000Z\",\"kind\":\"run.completed\"}],\"first_seq\":899,\"last_seq\":900}");
    draw(f);
    SHOWS(&f->c, "899  ");
    SHOWS(&f->c, "run.completed");
    press(&f->app, KEY_IS_UP);
    press(&f->app, KEY_IS_ENTER);
    draw(f);
    SHOWS(&f->c, "899  memory.set");
    SHOWS(&f->c, "\"a\": 1");
    press(&f->app, KEY_IS_ESCAPE);
    press(&f->app, KEY_IS_UP);
    ask = next_ask(&f->app, ASK_LOG);
    assert_int_equal(ask.seq, 899);
    answer_with(
        &f->app, &ask,
        "{\"events\":[{\"seq\":1,\"ts\":\"2026-11-19T19:00:00.000Z\",\"kind\":\"session.created\"}],\"first_seq\":null,\"last_seq\":898}");
    draw(f);
    press(&f->app, KEY_IS_DOWN);
    ask = next_ask(&f->app, ASK_LOG);
    assert_int_equal(ask.after, 898);
    answer_with(&f->app, &ask, "{\"events\":[],\"last_seq\":900}");
    type(&f->app, "/run.");
    press(&f->app, KEY_IS_ENTER);
    ask = next_ask(&f->app, ASK_LOG);
    assert_string_equal(ask.text, "run.");
}

static void an_answer_for_another_session_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct ask old;

    app_open_session(&f->app, "notes");
    old = next_ask(&f->app, ASK_PAGE);
    app_open_session(&f->app, "other");
    answer_with(&f->app, &old, PAGE("2", SAID("2", "user", "of the first"), "null"));
    draw(f);
    SHOWS_NOT(&f->c, "of the first");
}

/* The row of the screen on which this text stands. */
static int row_of(const struct canvas *c, const char *text)
{
    for (int row = 0; row < c->rows; row++) {
        struct buf line = BUF_INIT(65536);
        bool is;

        canvas_line(c, row, &line);
        is = strstr(buf_cstr(&line), text) != NULL;
        buf_done(&line);
        if (is)
            return row;
    }
    return -1;
}

static void the_mouse_chooses_and_opens(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    give(&f->app, ASK_SESSIONS, LIST(DONE("a", "Alpha") "," DONE("b", "Beta") "," WAITS("c", "Gamma")));
    draw(f);
    app_key(&f->app, &(struct key){.what = KEY_IS_CLICK, .row = row_of(&f->c, "Beta"), .col = 20});
    assert_string_equal(f->app.list.chosen, "b");
    assert_int_equal(f->app.place, PLACE_SESSIONS);
    app_key(&f->app, &(struct key){.what = KEY_IS_WHEEL_DOWN});
    assert_string_equal(f->app.list.chosen, "c");
    app_key(&f->app, &(struct key){.what = KEY_IS_DOUBLE_CLICK, .row = row_of(&f->c, "Alpha"), .col = 20});
    ask = next_ask(&f->app, ASK_PAGE);
    assert_string_equal(ask.id, "a");
    press(&f->app, KEY_IS_ESCAPE);
    app_key(&f->app, &(struct key){.what = KEY_IS_CLICK, .row = 1, .col = 6}); /* the second filter */
    ask = next_ask(&f->app, ASK_SESSIONS);
    assert_string_equal(ask.status, "running");
    app_key(&f->app, &(struct key){.what = KEY_IS_CLICK, .row = 0, .col = 30});
    assert_int_equal(f->app.place, PLACE_INBOX);
}

static void a_button_is_pressed_by_the_mouse(void **state)
{
    struct fixture *f = *state;
    struct act act;

    open_inbox(f, INBOX(ITEM("deploy", "Release", APPROVAL), "1"));
    press(&f->app, KEY_IS_ENTER);
    draw(f);
    app_key(&f->app, &(struct key){.what = KEY_IS_CLICK, .row = row_of(&f->c, "[ yes ]") - 2, .col = 8});
    assert_false(app_next_act(&f->app, &act));
    app_key(
        &f->app,
        &(struct key){.what = KEY_IS_CLICK, .row = row_of(&f->c, "[ yes ]"), .col = f->app.dialog.buttons_at[1] + 2});
    assert_true(app_next_act(&f->app, &act));
    assert_string_equal(act.input, "\"no\"");
    act_done(&act);
}

static void a_rollback_shows_first_what_it_undoes(void **state)
{
    struct fixture *f = *state;
    struct ask ask;
    struct act act;

    open_notes(f, PAGE("9", SAID("2", "user", "first") "," SAID("4", "assistant", "second"), "null"));
    press(&f->app, KEY_IS_HOME);
    type(&f->app, "B");
    ask = next_ask(&f->app, ASK_UNDONE);
    assert_int_equal(ask.seq, 2);
    answer_with(
        &f->app, &ask,
        "{\"to_seq\":2,\"undone\":{\"messages\":1,\"tools\":2,\"nodes\":0,\"checkpoints\":1,\"once_effects\":[\"publish\"]}}");
    draw(f);
    SHOWS(&f->c, "undone: 1 message, 2 calls and steps, 1 checkpoint");
    SHOWS(&f->c, "these happened, and stay so: publish");
    press(&f->app, KEY_IS_ENTER); /* stands on "close" */
    assert_false(app_next_act(&f->app, &act));
    type(&f->app, "Bb");
    assert_true(app_next_act(&f->app, &act));
    assert_int_equal(act.what, ACT_ROLLBACK);
    assert_int_equal(act.seq, 2);
    act_done(&act);
}

static void a_fork_is_opened_when_it_is_made(void **state)
{
    struct fixture *f = *state;
    struct acted acted = {.what = ACT_FORK, .id = "notes", .new_id = "fork-1", .said = "forked"};
    struct act act;
    struct ask ask;

    open_notes(f, PAGE("9", SAID("2", "user", "first"), "null"));
    type(&f->app, "Ff");
    assert_true(app_next_act(&f->app, &act));
    assert_int_equal(act.what, ACT_FORK);
    assert_int_equal(act.seq, 2);
    acted.number = act.number;
    act_done(&act);
    app_acted(&f->app, &acted);
    ask = next_ask(&f->app, ASK_PAGE);
    assert_string_equal(ask.id, "fork-1");
}

static void a_timeline_cuts_short_what_only_waited(void **state)
{
    struct fixture *f = *state;

    open_notes(f, PAGE("9", SAID("2", "user", "first"), "null"));
    type(&f->app, "2");
    give(
        &f->app, ASK_TIMELINE,
        "{\"runs\":[{\"number\":1,\"outcome\":\"completed\",\"started_at\":\"2026-11-19T10:00:00.000Z\",\"ended_at\":\"2026-11-19T19:00:20.000Z\",\"items\":["
        "{\"type\":\"step\",\"name\":\"build\",\"outcome\":\"ran\",\"seq\":3,\"started_at\":\"2026-11-19T10:00:00.000Z\",\"ended_at\":\"2026-11-19T10:00:10.000Z\"},"
        "{\"type\":\"wait\",\"name\":\"release\",\"outcome\":\"answered\",\"seq\":5,\"started_at\":\"2026-11-19T10:00:10.000Z\",\"ended_at\":\"2026-11-19T19:00:10.000Z\"},"
        "{\"type\":\"step\",\"name\":\"publish\",\"outcome\":\"failed\",\"seq\":7,\"started_at\":\"2026-11-19T19:00:10.000Z\",\"ended_at\":\"2026-11-19T19:00:20.000Z\"}]}]}");
    draw(f);
    SHOWS(&f->c, "✓ build");
    SHOWS(&f->c, "✗ publish");
    SHOWS(&f->c, "██████████"); /* ten seconds of work are to be seen beside nine hours of waiting */
    SHOWS(&f->c, "╍");
    type(&f->app, "ji");
    assert_int_equal(next_ask(&f->app, ASK_STATE).seq, 3);
}

static void nodes_of_a_graph_show_where_they_stand(void **state)
{
    struct fixture *f = *state;
    struct ask ask;

    app_open_session(&f->app, "tides");
    give(
        &f->app, ASK_PAGE,
        PAGE_OF(
            "{\"id\":\"tides\",\"session_id\":\"tides\",\"kind\":\"graph\",\"status\":\"idle\",\"outcome\":\"failed\",\"first_seq\":1,\"last_seq\":9}",
            "", "null"));
    type(&f->app, "6");
    ask = next_ask(&f->app, ASK_GRAPH);
    answer_with(
        &f->app, &ask,
        "{\"nodes\":[{\"id\":\"a\",\"state\":\"completed\",\"visits\":2,\"ms\":1500,\"seq\":4},{\"id\":\"b\",\"state\":\"failed\",\"error\":\"too short\"}],"
        "\"edges\":[{\"from\":\"a\",\"to\":\"b\",\"taken\":1},{\"from\":\"a\",\"to\":\"c\",\"taken\":0}],\"path\":[{\"node\":\"a\"},{\"node\":\"b\"}]}");
    draw(f);
    SHOWS(&f->c, "✓ a");
    SHOWS(&f->c, "2 visits");
    SHOWS(&f->c, "→ b, c?");
    SHOWS(&f->c, "✗ b");
    SHOWS(&f->c, "too short");
    SHOWS(&f->c, "a → b");
}

/* ---- whatever comes, at every size ---- */

static const char hostile[] = LIST(ROW("x", "\\u001b[2J\\u202egnp \\u0007 潮汐 e\\u0301", "running", "none",
                                       "\\u001b]0;t\\u0007", "9", "", "") "," DONE("y", ""));

static void every_page_can_be_drawn_at_every_size(void **state)
{
    static const int sizes[][2] = {{1, 1}, {2, 5}, {5, 20}, {12, 40}, {24, 80}, {24, 100}, {60, 300}, {200, 20}};
    struct fixture *f = *state;

    give(&f->app, ASK_SESSIONS, hostile);
    give(&f->app, ASK_INBOX, INBOX(ITEM("chat", "\\u001b[31mFix", EDIT), "1"));
    for (int page = 0; page < 6; page++) {
        if (page == 1)
            press(&f->app, KEY_IS_TAB);
        if (page == 2)
            press(&f->app, KEY_IS_ENTER); /* the dialog */
        if (page == 3) {
            press(&f->app, KEY_IS_ESCAPE);
            type(&f->app, "?");
        }
        if (page == 4) {
            press(&f->app, KEY_IS_ESCAPE);
            open_notes(f,
                       PAGE("9", SAID("2", "user", "\\u001b[2J") "," SAID("4", "assistant", "潮汐潮汐潮汐潮汐"), "2"));
        }
        if (page == 5) {
            type(&f->app, "2");
            give(
                &f->app, ASK_TIMELINE,
                "{\"runs\":[{\"number\":1,\"outcome\":\"completed\",\"started_at\":\"2026-11-19T19:00:00.000Z\",\"ended_at\":\"2026-11-19T19:01:00.000Z\","
                "\"items\":[{\"type\":\"step\",\"name\":\"\\u001bbuild\",\"outcome\":\"ran\",\"seq\":3,\"started_at\":\"2026-11-19T19:00:00.000Z\",\"ended_at\":\"2026-11-19T19:00:10.000Z\"}]}]}");
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int ascii = 0; ascii < 2; ascii++) {
                f->app.ascii = ascii;
                draw_at(&f->app, &f->c, sizes[i][0], sizes[i][1]);
                for (int j = 0; j < f->c.rows * f->c.cols; j++)
                    for (int b = 0; b < f->c.cells[j].len; b++) {
                        assert_true((unsigned char)f->c.cells[j].text[b] >= ' ');
                        assert_true(!ascii || (unsigned char)f->c.cells[j].text[b] < 0x80);
                    }
            }
        f->app.ascii = false;
    }
}

static void answers_that_are_no_such_thing_are_said(void **state)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "null",
                                      "{\"sessions\":7}",
                                      "{\"sessions\":[{}]}",
                                      "{\"sessions\":[null]}",
                                      "{\"session\":{},\"entries\":[7]}",
                                      "{\"events\":[[]]}",
                                      "{\"runs\":[{\"items\":[{}]}]}",
                                      "{\"nodes\":[1],\"edges\":{}}",
                                      "{\"items\":[{\"session\":null}]}",
                                      "{\"checkpoints\":[{\"seq\":\"x\"}]}"};
    struct fixture *f = *state;

    app_open_session(&f->app, "notes");
    for (int what = 0; what < ASK_KINDS; what++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            app_want(&f->app, (enum ask_what)what);
            give(&f->app, (enum ask_what)what, bad[i]);
            draw(f);
        }
}

/* No key at any moment breaks anything, whatever has come so far. */
static void any_keys_in_any_order_leave_a_screen(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 4713;
    static const char letters[] = "asrxfFKtihjkgGBR123456/?yncl =;q";

    for (int i = 0; i < 4000; i++) {
        struct key k = {.what = (enum key_what)(seeded_next(&seed) % (KEY_IS_PASTE_END + 1)),
                        .row = (int)(seeded_next(&seed) % 24),
                        .col = (int)(seeded_next(&seed) % 100)};
        struct ask ask;
        struct act act;

        if (k.what == KEY_IS_TEXT || k.what == KEY_IS_CONTROL || seeded_next(&seed) % 2) {
            k.what = k.what == KEY_IS_CONTROL ? k.what : KEY_IS_TEXT;
            k.text[0] = letters[seeded_next(&seed) % (sizeof letters - 1)];
        }
        app_key(&f->app, &k);
        f->app.quit = false;
        app_tick(&f->app, f->app.now_ms + 100);
        while (app_next_ask(&f->app, &ask)) {
            static const char *const answers[ASK_KINDS] = {
                [ASK_SESSIONS] = LIST(STUCK "," GRAPH "," WAITS("a", "A") "," DONE("b", "B")),
                [ASK_INBOX] = INBOX(ITEM("a", "A", EDIT) "," ITEM("c", "C", INPUT), "2"),
                [ASK_PAGE] = PAGE("30", SAID("20", "user", "twenty") "," SAID("22", "assistant", "x"), "20"),
                [ASK_TALK] = "{\"entries\":[" SAID("10", "user", "ten") "],\"entries_before\":5}",
                [ASK_TIMELINE] = "{\"runs\":[{\"number\":1,\"items\":[{\"type\":\"wait\",\"name\":\"w\",\"seq\":3}]}]}",
                [ASK_LOG] = "{\"events\":[{\"seq\":9,\"kind\":\"run.started\"}],\"first_seq\":9,\"last_seq\":9}",
                [ASK_CHECKPOINTS] =
                    "{\"checkpoints\":[{\"checkpoint_id\":\"c1\",\"seq\":4,\"type\":\"turn\",\"can_resume_from\":true}]}",
                [ASK_STATE] = "{\"seq\":3}",
                [ASK_GRAPH] = "{\"nodes\":[{\"id\":\"a\",\"state\":\"completed\",\"seq\":3}],\"edges\":[],\"path\":[]}",
                [ASK_PLAN] = "{\"from\":{\"seq\":3}}",
            };

            if (seeded_next(&seed) % 8)
                answer_with(&f->app, &ask, answers[ask.what]);
            else
                answer_fails(&f->app, &ask, seeded_next(&seed) % 2 ? TIDE_NOT_FOUND : TIDE_IO, "gone",
                             seeded_next(&seed) % 2);
        }
        while (app_next_act(&f->app, &act)) {
            struct acted acted = {.what = act.what, .said = "done"};

            memcpy(acted.id, act.id, sizeof acted.id);
            acted.number = act.number;
            act_done(&act);
            app_acted(&f->app, &acted);
        }
        if (i % 16 == 0)
            draw(f);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_list_shows_sessions_with_what_moves_them),
        TEST(an_empty_list_teaches),
        TEST(what_is_chosen_stays_chosen_while_rows_move),
        TEST(filters_and_words_are_asked_for),
        TEST(one_thing_of_a_kind_is_asked_at_a_time),
        TEST(a_source_that_is_lost_is_said_and_asked_again),
        TEST(the_inbox_shows_the_exact_action),
        TEST(an_approval_is_given_by_its_letter_alone),
        TEST(letters_in_a_field_press_nothing),
        TEST(what_is_pasted_decides_nothing),
        TEST(a_text_is_answered_as_json),
        TEST(a_dialog_closes_when_its_session_goes_on),
        TEST(what_is_refused_is_said_in_the_dialog),
        TEST(ways_to_resume_are_those_of_the_session),
        TEST(values_of_a_graph_are_checked_first_and_given_as_json),
        TEST(values_that_are_no_json_are_said),
        TEST(a_session_shows_what_was_said),
        TEST(earlier_parts_are_read_and_nothing_moves),
        TEST(streamed_text_gives_way_to_the_message),
        TEST(a_session_that_was_deleted_says_so),
        TEST(the_state_as_of_any_line_is_one_key_away),
        TEST(the_log_is_read_window_by_window),
        TEST(an_answer_for_another_session_is_dropped),
        TEST(the_mouse_chooses_and_opens),
        TEST(a_button_is_pressed_by_the_mouse),
        TEST(a_rollback_shows_first_what_it_undoes),
        TEST(a_fork_is_opened_when_it_is_made),
        TEST(a_timeline_cuts_short_what_only_waited),
        TEST(nodes_of_a_graph_show_where_they_stand),
        TEST(every_page_can_be_drawn_at_every_size),
        TEST(answers_that_are_no_such_thing_are_said),
        TEST(any_keys_in_any_order_leave_a_screen),
    };

    time_people_local(false);
    return cmocka_run_group_tests_name("tui", tests, NULL, NULL);
}
