/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: waits for a key, for mail or for a moment that the screen wants, hands it to the screen's model, and draws. It does nothing that
 * could take long. What comes at once is drawn once.
 */
#include "tui/tui.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "tui/app.h"
#include "tui/crew.h"
#include "tui/screen.h"

#define DRAW_MS 16 /* between two drawings that nobody asked for by a key */

struct tui {
    struct app app;
    struct canvas canvas;
    struct screen *screen;
    struct crew *crew;
    const atomic_int *stop;
    char viewed[TIDE_ID_SIZE]; /* the session that is on the screen */
};

static void take_mail(struct tui *t)
{
    struct mail *m;

    while ((m = crew_mail(t->crew))) {
        if (m->what == MAIL_ANSWER)
            app_take(&t->app, m->answer);
        else if (m->what == MAIL_ACTED)
            app_acted(&t->app, &m->acted);
        else
            app_news(&t->app, &m->news);
        mail_free(m);
    }
}

static void send_wishes(struct tui *t)
{
    struct ask ask;
    struct act act;

    while (app_next_ask(&t->app, &ask))
        crew_ask(t->crew, &ask);
    while (app_next_act(&t->app, &act))
        crew_act(t->crew, &act);
    if (strcmp(t->viewed, app_viewed(&t->app)) != 0) {
        snprintf(t->viewed, sizeof t->viewed, "%s", app_viewed(&t->app));
        crew_view(t->crew, t->viewed);
    }
}

static void take_keys(struct tui *t)
{
    struct key k;

    while (!t->app.quit && screen_key(t->screen, &k)) {
        if (key_is_control(&k, 'z'))
            screen_suspend(t->screen);
        else if (!key_is_control(&k, 'l'))
            app_key(&t->app, &k);
    }
}

static void take_size(struct tui *t)
{
    int rows, cols;

    screen_size(t->screen, &rows, &cols);
    canvas_size(&t->canvas, rows, cols);
    app_size(&t->app, rows, cols);
}

static void draw_screen(struct tui *t)
{
    app_draw(&t->app, &t->canvas);
    screen_show(t->screen, &t->canvas);
}

static void run_loop(struct tui *t)
{
    struct pollfd p[2] = {{.fd = screen_fd(t->screen), .events = POLLIN}, {.fd = crew_fd(t->crew), .events = POLLIN}};

    take_size(t);
    while (!t->app.quit && !*t->stop) {
        int64_t left;

        app_tick(&t->app, wall_ms());
        send_wishes(t);
        draw_screen(t);
        left = app_wakes_ms(&t->app) - wall_ms();
        (void)poll(p, 2, left < DRAW_MS ? DRAW_MS : left < 1000 ? (int)left : 1000);
        if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            return;
        app_tick(&t->app, wall_ms());
        if (screen_resized(t->screen))
            take_size(t);
        take_mail(t);
        take_keys(t);
    }
}

enum tide_code tui_run(struct source *source, const struct tui_options *opt, struct tide_err *err)
{
    struct tui t = {.stop = opt->stop};
    bool utf8 = !opt->ascii && screen_has_utf8();
    enum tide_code code = screen_open(&(struct screen_options){.color = opt->color, .utf8 = utf8}, &t.screen, err);

    if (code)
        return code;
    app_init(&t.app, source->name, source->is_server);
    t.app.ascii = !utf8;
    t.app.starts = opt->starts;
    app_tick(&t.app, wall_ms());
    if (opt->inbox)
        t.app.place = PLACE_INBOX;
    if (opt->session)
        app_open_session(&t.app, opt->session);
    t.crew = crew_open(source, err);
    code = t.crew ? TIDE_OK : err->code;
    if (!code)
        run_loop(&t);
    screen_close(t.screen);
    crew_close(t.crew);
    app_done(&t.app);
    canvas_done(&t.canvas);
    return code;
}
