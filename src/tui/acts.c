/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person does about a session: each act has a dialog that says what it is about before anything happens. What can be done is taken
 * from `next` of the session, as every face has it; nothing is decided here.
 */
#include <stdio.h>

#include "base/timefmt.h"
#include "base/yes_no.h"
#include "tui/app.h"
#include "tui/look.h"

enum dialog_what {
    DIALOG_NONE,
    DIALOG_ANSWER,
    DIALOG_RESUME,
    DIALOG_SEND,
    DIALOG_CANCEL,
    DIALOG_FORK,
    DIALOG_ROLL_BACK
};

static const struct line plain = {.entry = -1}, dim = {.entry = -1, .ink = INK_DIM},
                         bold = {.entry = -1, .ink = INK_BOLD};

bool app_asks_person(const struct tide_session_info *info)
{
    return info->status == TIDE_STATUS_WAITING && info->wait_kind != TIDE_WAIT_TIMER;
}

static void open_dialog(struct app *app, enum dialog_what what, const char *id, const char *title)
{
    app->dialog_last_seq = INT64_MAX;
    dialog_open(&app->dialog, (int)what, title);
    app->dialog.body_columns = dialog_columns(app->cols);
    snprintf(app->dialog_id, sizeof app->dialog_id, "%s", id);
}

static void add_text(struct app *app, const struct line *like, const char *text)
{
    lines_add(&app->dialog.body, str_from(text), app->dialog.body_columns, 0, like);
}

/* ---- answering ---- */

static void add_when(struct lines *l, const struct question_view *q, int columns, int64_t now_ms)
{
    char until[TIME_PEOPLE_SIZE], age[AGE_SIZE];
    struct buf text = BUF_INIT(1024);

    if (q->since_ms)
        buf_addf(&text, "asked %s ago", look_age(age, q->since_ms, now_ms));
    if (q->deadline_ms)
        buf_addf(&text, "%suntil %s", text.len ? ", " : "", time_people(until, q->deadline_ms));
    if (q->deadline_ms && q->otherwise.len)
        buf_addf(&text, ", then the answer is %.200s", q->otherwise.ptr);
    else if (q->deadline_ms && q->on_deadline)
        buf_addf(&text, ", then: %s", q->on_deadline);
    if (text.len)
        lines_add(l, buf_view(&text), columns, 0, &dim);
    buf_done(&text);
}

void app_question_lines(struct lines *l, const struct question_view *q, int columns, int64_t now_ms)
{
    lines_add(l, str_from(q->text[0] ? q->text : q->name), columns, 0, &bold);
    if (q->tool) {
        lines_add(l, str_from(q->tool), columns, 0, &(struct line){.entry = -1, .ink = INK_ACCENT});
        if (q->diff)
            lines_add_diff(l, str_from(q->diff), columns, &(struct line){.entry = -1, .indent = 2});
        else
            lines_add_json(l, q->args, columns, &(struct line){.entry = -1, .indent = 2});
        if (q->working_dir)
            lines_add(l, str_from(arena_printf(&l->arena, "in %s", q->working_dir)), columns, 0, &dim);
    }
    add_when(l, q, columns, now_ms);
}

/* Nothing is answered that was not shown. */
void app_answer(struct app *app, const struct tide_session_info *info, const struct question_view *q)
{
    char title[120];

    q = q ? q : inbox_question(app, info->id);
    if (!q) { /* a list does not say what is asked: its page does */
        session_open(app, info->id);
        return;
    }
    snprintf(title, sizeof title, "Answer %s", info->id);
    open_dialog(app, DIALOG_ANSWER, info->id, title);
    app->dialog_last_seq = info->last_seq;
    app_question_lines(&app->dialog.body, q, app->dialog.body_columns, app->now_ms);
    app->dialog_approval = q->approval;
    if (q->approval) {
        dialog_field(&app->dialog, "reason", "optional; stored with the answer");
        dialog_button(&app->dialog, "yes", 'y');
        dialog_button(&app->dialog, "no", 'n');
        app->dialog.focus = app->dialog.n_fields + 2; /* on neither: nothing is decided by Enter alone */
    } else {
        dialog_field(&app->dialog, "answer", "a text");
        dialog_button(&app->dialog, "send", 's');
    }
    dialog_button(&app->dialog, "later", 'l');
}

static char *quoted(struct str text)
{
    struct buf out = BUF_INIT((size_t)8 << 20);

    json_quote(&out, text);
    return buf_take(&out);
}

static void do_answer(struct app *app, int button)
{
    struct str said = dialog_said(&app->dialog, 0);
    struct act *act = &app->act;

    if (!app->dialog_approval && !said.len) {
        snprintf(app->dialog.error, sizeof app->dialog.error, "type an answer first");
        return;
    }
    *act = (struct act){.what = ACT_ANSWER};
    if (!app->dialog_approval) {
        act->input = quoted(said);
        return;
    }
    act->input = quoted(button == 0 ? STR("yes") : STR("no"));
    act->reason = said.len ? mem_dup(said) : NULL;
}

/* ---- resuming ---- */

static const struct json *first_name(const struct json *list)
{
    return list && list->type == JSON_ARRAY ? list->first : NULL;
}

/* What this way of resuming does, in a word or two and in a sentence; false: it cannot be done from here. */
static bool choice_words(struct arena *a, const struct tide_next *n, const char **ret_label, const char **ret_says)
{
    struct json *v = NULL;
    const struct json *happened, *retry, *ask, *checkpoint;

    if (n->action != TIDE_ACTION_RESUME || json_parse(a, str_from(n->arguments), NULL, &v, NULL, NULL))
        return false;
    happened = first_name(json_get(v, STR("happened")));
    retry = first_name(json_get(v, STR("retry")));
    ask = json_get(v, STR("ask_again"));
    checkpoint = json_get(v, STR("checkpoint"));
    *ret_label = "resume";
    *ret_says = "it continues where it stopped; what is finished does not run again";
    if (json_get(v, STR("graph")))
        return false;
    if (happened) {
        *ret_label = "it happened";
        *ret_says = arena_printf(a, "'%.*s' is recorded as done", STR_ARG(json_get_text(a, happened, STR("name"))));
    } else if (retry) {
        *ret_label = "run it again";
        *ret_says = arena_printf(a, "'%.*s' runs once more", STR_ARG(json_text(a, retry)));
    } else if (ask) {
        *ret_label = "ask again";
        *ret_says = arena_printf(a, "'%.*s' is asked once more", STR_ARG(json_text(a, ask)));
    } else if (checkpoint) {
        *ret_label = "from checkpoint";
        *ret_says = "choose one in the checkpoints of the session";
    } else if (json_get_bool(v, STR("now"), false)) {
        *ret_label = "now";
        *ret_says = "its sleep ends now";
    } else if (json_get_bool(v, STR("accept_change"), false)) {
        *ret_label = "accept change";
        *ret_says = "recorded results answer although the arguments changed";
    } else if (json_get(v, STR("set"))) {
        *ret_label = "with values";
        *ret_says = "give the values below";
    }
    return true;
}

static bool is_json(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v;

    return !json_parse(&a, text, NULL, &v, NULL, NULL);
}

/* KEY=VALUE, separated by "; ": a text, or JSON behind := . *ret_wrong: the first key whose value is no JSON. */
static char *set_from(struct str text, struct str *ret_wrong)
{
    struct buf out = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&out);

    json_out_begin(&o, '{');
    while (text.len) {
        const char *end = memchr(text.ptr, ';', text.len);
        struct str one = str_trim((struct str){text.ptr, end ? (size_t)(end - text.ptr) : text.len});
        const char *eq = one.len ? memchr(one.ptr, '=', one.len) : NULL;

        if (eq && eq > one.ptr) {
            bool json = eq[-1] == ':';
            struct str key = {one.ptr, (size_t)(eq - one.ptr) - json},
                       value = {eq + 1, one.len - (size_t)(eq - one.ptr) - 1};

            json_out_key(&o, str_trim(key));
            if (json && !is_json(value) && !ret_wrong->len)
                *ret_wrong = str_trim(key);
            if (json)
                json_out_raw(&o, str_trim(value));
            else
                json_out_str(&o, value);
        }
        text = end ? (struct str){end + 1, (size_t)(text.ptr + text.len - end - 1)} : STR("");
    }
    json_out_end(&o, '}');
    return buf_take(&out);
}

/* What is filled in beside the way of resuming. */
static bool take_changes(struct dialog *d, struct act *act)
{
    struct str set = dialog_said(d, 0), from = dialog_said(d, 1), wrong = STR("");

    act->set = set.len ? set_from(set, &wrong) : NULL;
    act->checkpoint = from.len ? mem_dup(from) : NULL;
    d->error[0] = '\0';
    if (!wrong.len)
        return true;
    snprintf(d->error, sizeof d->error, "'%.*s' has a value that is no JSON", (int)(wrong.len < 60 ? wrong.len : 60),
             wrong.ptr);
    act_done(act);
    *act = (struct act){.what = ACT_NOTHING};
    return false;
}

static void add_choices(struct app *app, const struct tide_session_info *info)
{
    struct dialog *d = &app->dialog;

    for (const struct tide_next *n = info->next; n && n->action && d->n_buttons < DIALOG_BUTTONS - 2; n++) {
        const char *label, *says;

        if (!choice_words(&d->body.arena, n, &label, &says))
            continue;
        app->choices[d->n_buttons] = *n;
        app->choices[d->n_buttons].arguments = arena_text(&d->body.arena, n->arguments);
        add_text(app, &plain, arena_printf(&d->body.arena, "%s: %s", label, says));
        dialog_button(d, label, d->n_buttons ? 0 : 'r');
    }
}

void app_resume(struct app *app, const struct tide_session_info *info, const char *checkpoint)
{
    struct dialog *d = &app->dialog;
    char title[120];

    snprintf(title, sizeof title, "Resume %s", info->id);
    open_dialog(app, DIALOG_RESUME, info->id, title);
    app->dialog_last_seq = info->last_seq;
    add_text(app, &bold, info->why ? info->why : "");
    if (checkpoint) {
        app->choices[0] = (struct tide_next){.action = TIDE_ACTION_RESUME, .arguments = "{}"};
        dialog_button(d, "resume", 'r');
    } else {
        add_choices(app, info);
    }
    if (!d->n_buttons) {
        dialog_close(d);
        app_say(app, INK_WARN, "%s", info->why ? info->why : "it cannot be resumed from here");
        return;
    }
    app->dialog_check = -1;
    if (info->kind == TIDE_KIND_GRAPH) {
        dialog_field(d, "set", "KEY=TEXT or KEY:=JSON; more behind a ;");
        field_set(dialog_field(d, "from", "a checkpoint; empty: where it stands"), checkpoint ? checkpoint : "");
        app->dialog_check = d->n_buttons;
        dialog_button(d, "check", 'c');
    }
    dialog_button(d, "close", 0);
    d->focus = d->n_fields;
    add_text(app, &plain, "");
    app->dialog_base = d->body.n;
    app_want(app, ASK_PLAN);
}

void app_plan_ask(struct app *app, struct ask *ask)
{
    snprintf(ask->id, sizeof ask->id, "%s", app->dialog_id);
    ask->seq = app->dialog_seq;
    ask->how = (struct act){.what = ACT_RESUME};
    if (app->dialog.what != DIALOG_RESUME || app->dialog.n_fields != 2)
        return;
    (void)take_changes(&app->dialog, &ask->how);
}

void app_plan(struct app *app, struct answer *answer)
{
    struct dialog *d = &app->dialog;

    int wants = answer->ask.what == ASK_PLAN ? DIALOG_RESUME : DIALOG_ROLL_BACK;

    if (d->what == wants && strcmp(app->dialog_id, answer->ask.id) == 0) {
        d->body.n = app->dialog_base;
        if (answer->err.code)
            lines_add(&d->body, str_from(answer->err.msg), d->body_columns, 0,
                      &(struct line){.ink = INK_WARN, .lead = "▲", .lead_ink = INK_WARN, .indent = 2, .entry = -1});
        else if (wants == DIALOG_RESUME)
            plan_lines(&d->body, answer->json, d->body_columns);
        else
            undone_lines(&d->body, answer->json, d->body_columns);
    }
    answer_free(answer);
}

static char *names_from(struct arena *a, const struct json *list, bool objects)
{
    struct buf out = BUF_INIT(65536);

    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct str name = objects ? json_get_text(a, one, STR("name")) : json_text(a, one);

        buf_addf(&out, "%s%.*s", out.len ? "," : "", STR_ARG(name));
    }
    return out.len ? buf_take(&out) : (buf_done(&out), NULL);
}

static void fill_resume(struct app *app, int button, struct act *act)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct dialog *d = &app->dialog;
    const struct tide_next *n = &app->choices[button];
    struct json *v = NULL;

    *act = (struct act){.what = ACT_RESUME};
    if (!json_parse(&a, str_from(n->arguments), NULL, &v, NULL, NULL)) {
        act->happened = names_from(&a, json_get(v, STR("happened")), true);
        act->retry = names_from(&a, json_get(v, STR("retry")), false);
        act->ask_again = json_get(v, STR("ask_again")) ? mem_dup(json_get_text(&a, v, STR("ask_again"))) : NULL;
        act->now = json_get_bool(v, STR("now"), false);
        act->accept_change = json_get_bool(v, STR("accept_change"), false);
    }
    if (d->n_fields == 2)
        (void)take_changes(d, act);
}

/* ---- the others ---- */

void app_send(struct app *app, const struct tide_session_info *info)
{
    char title[120];

    snprintf(title, sizeof title, "Send to %s", info->id);
    open_dialog(app, DIALOG_SEND, info->id, title);
    app->dialog_last_seq = info->last_seq;
    add_text(app, &dim,
             info->holder ? "It runs: the message is queued, and delivered once."
             : info->status == TIDE_STATUS_WAITING
                 ? "It waits: its run continues with the message, and the token of the wait is revoked."
             : info->kind == TIDE_KIND_CHAT ? "The chat answers."
                                            : "A run begins with it, or it is queued for the next one.");
    dialog_field(&app->dialog, "message", NULL);
    dialog_button(&app->dialog, "send", 's');
    dialog_button(&app->dialog, "close", 0);
}

void app_cancel(struct app *app, const struct tide_session_info *info)
{
    char title[120];

    snprintf(title, sizeof title, "Cancel %s", info->id);
    open_dialog(app, DIALOG_CANCEL, info->id, title);
    add_text(app, &bold, "Its run ends now, wherever it runs.");
    add_text(app, &plain, "What is finished stays finished. It can be resumed later.");
    dialog_field(&app->dialog, "reason", "optional, for the log");
    dialog_button(&app->dialog, "cancel the run", 'x');
    dialog_button(&app->dialog, "leave it", 'l');
    app->dialog.focus = app->dialog.n_fields + 1;
}

void app_fork(struct app *app, const char *id, int64_t seq)
{
    char title[120], text[200];

    snprintf(title, sizeof title, "Fork %s", id);
    open_dialog(app, DIALOG_FORK, id, title);
    snprintf(text, sizeof text, "A new session begins with the past of this one, up to event %lld.", (long long)seq);
    add_text(app, &plain, text);
    app->dialog_seq = seq;
    dialog_button(&app->dialog, "fork", 'f');
    dialog_button(&app->dialog, "close", 0);
}

void app_roll_back(struct app *app, const char *id, int64_t seq)
{
    char title[120], text[200];

    snprintf(title, sizeof title, "Roll back %s", id);
    open_dialog(app, DIALOG_ROLL_BACK, id, title);
    snprintf(text, sizeof text, "Its content becomes what it was at event %lld.", (long long)seq);
    add_text(app, &bold, text);
    add_text(app, &plain,
             "Nothing is deleted: the log keeps all of it, and rolling back to a later event undoes this.");
    add_text(app, &plain, "");
    app->dialog_base = app->dialog.body.n;
    app_want(app, ASK_UNDONE);
    app->dialog_seq = seq;
    dialog_field(&app->dialog, "reason", "optional, for the log");
    dialog_button(&app->dialog, "roll back", 'b');
    dialog_button(&app->dialog, "close", 0);
    app->dialog.focus = app->dialog.n_fields + 1;
}

/* ---- keys ---- */

static void act_now(struct app *app)
{
    app->act.number = app->dialog_act = ++app->numbers;
    snprintf(app->act.id, sizeof app->act.id, "%s", app->dialog_id);
    app->dialog.busy = true;
    app->dialog.error[0] = '\0';
}

static void fill_act(struct app *app, int button)
{
    struct dialog *d = &app->dialog;
    struct str said = d->n_fields ? dialog_said(d, 0) : STR("");
    struct act *act = &app->act;

    switch ((enum dialog_what)d->what) {
    case DIALOG_ANSWER:
        do_answer(app, button);
        break;
    case DIALOG_RESUME:
        fill_resume(app, button, act);
        break;
    case DIALOG_SEND:
        if (said.len)
            *act = (struct act){.what = ACT_SEND, .message = mem_dup(said)};
        else
            snprintf(d->error, sizeof d->error, "type a message first");
        break;
    case DIALOG_CANCEL:
        *act = (struct act){.what = ACT_CANCEL, .reason = said.len ? mem_dup(said) : NULL};
        break;
    case DIALOG_FORK:
        *act = (struct act){.what = ACT_FORK, .seq = app->dialog_seq};
        break;
    case DIALOG_ROLL_BACK:
        *act = (struct act){.what = ACT_ROLLBACK, .seq = app->dialog_seq, .reason = said.len ? mem_dup(said) : NULL};
        break;
    case DIALOG_NONE:
        break;
    }
}

void app_dialog_key(struct app *app, const struct key *k)
{
    struct dialog *d = &app->dialog;
    int pressed = dialog_key(d, k);

    if (pressed == DIALOG_STAYS)
        return;
    if (pressed == DIALOG_CLOSED || pressed == d->n_buttons - 1) {
        if (d->busy)
            app_say(app, INK_DIM, "it continues in the background");
        dialog_close(d);
        return;
    }
    if (app->act.what != ACT_NOTHING)
        return;
    if (d->what == DIALOG_RESUME && pressed == app->dialog_check) {
        app_want(app, ASK_PLAN);
        return;
    }
    fill_act(app, pressed);
    if (app->act.what != ACT_NOTHING)
        act_now(app);
}

bool app_act_key(struct app *app, const struct key *k, const struct tide_session_info *info,
                 const struct question_view *q)
{
    if (key_is(k, 'a') && app_asks_person(info))
        app_answer(app, info, q);
    else if (key_is(k, 'a'))
        app_say(app, INK_WARN, "it has no question: %s", info->why ? info->why : "");
    else if (key_is(k, 'r') && app_asks_person(info))
        app_answer(app, info, q);
    else if (key_is(k, 'r'))
        app_resume(app, info, NULL);
    else if (key_is(k, 's'))
        app_send(app, info);
    else if (key_is(k, 'x') && (info->status != TIDE_STATUS_IDLE))
        app_cancel(app, info);
    else if (key_is(k, 'x'))
        app_say(app, INK_WARN, "there is nothing to cancel: it does not run");
    else
        return false;
    return true;
}
