/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three threads read: one for lists, one for what a session's page begins with, one for what can take long. Each has one wish of a kind at
 * most, because the screen has no more. One thread follows. Each act has a thread of its own, and there are few of them.
 */
#include "tui/crew.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

#define ACTS_MAX 8

struct lane {
    struct crew *crew;
    int number;
    pthread_t thread;
    bool started;
    bool has[ASK_KINDS];
    struct ask asks[ASK_KINDS];
};

struct doing {
    struct crew *crew;
    struct act act;
};

/* Looks at the session that is on the screen. */
struct viewer {
    pthread_t thread;
    bool started;
    char id[TIDE_ID_SIZE]; /* that is to be looked at; "": none */
    struct halt halt;      /* of the one that is */
};

struct crew {
    struct source *source;
    pthread_mutex_t mu;
    pthread_cond_t wake;
    struct lane lanes[LANES];
    pthread_t follower;
    struct viewer viewer;
    bool follows, stopped;
    int acts;
    int fd;
    struct mail *first, **last;
};

int ask_lane(enum ask_what what)
{
    return what <= ASK_INBOX ? 0 : what <= ASK_TALK || what == ASK_STATE ? 1 : 2;
}

/* ---- mail ---- */

static void post_mail(struct crew *c, struct mail *m)
{
    const uint64_t one = 1;

    pthread_mutex_lock(&c->mu);
    m->next = NULL;
    *c->last = m;
    c->last = &m->next;
    pthread_mutex_unlock(&c->mu);
    (void)!write(c->fd, &one, sizeof one);
}

struct mail *crew_mail(struct crew *c)
{
    uint64_t n;
    struct mail *m;

    (void)!read(c->fd, &n, sizeof n);
    pthread_mutex_lock(&c->mu);
    m = c->first;
    if (m)
        c->first = m->next;
    if (!c->first)
        c->last = &c->first;
    pthread_mutex_unlock(&c->mu);
    return m;
}

void mail_free(struct mail *m)
{
    if (!m)
        return;
    free(m->text);
    free(m);
}

int crew_fd(const struct crew *c)
{
    return c->fd;
}

/* ---- reading ---- */

static bool next_ask(struct lane *l, struct ask *ret)
{
    for (int i = 0; i < ASK_KINDS; i++)
        if (l->has[i]) {
            l->has[i] = false;
            *ret = l->asks[i];
            return true;
        }
    return false;
}

static void read_one(struct crew *c, const struct ask *ask)
{
    struct mail *m = mem_zero(sizeof *m);
    struct answer *answer = mem_zero(sizeof *answer);

    answer->ask = *ask;
    (void)!c->source->ops->get(c->source, answer, &answer->err);
    m->what = MAIL_ANSWER;
    m->answer = answer;
    post_mail(c, m);
}

static void *run_lane(void *arg)
{
    struct lane *l = arg;
    struct crew *c = l->crew;
    struct ask ask;

    pthread_mutex_lock(&c->mu);
    while (!c->stopped) {
        if (!next_ask(l, &ask)) {
            pthread_cond_wait(&c->wake, &c->mu);
            continue;
        }
        pthread_mutex_unlock(&c->mu);
        read_one(c, &ask);
        pthread_mutex_lock(&c->mu);
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

void crew_ask(struct crew *c, const struct ask *ask)
{
    struct lane *l = &c->lanes[ask_lane(ask->what)];

    pthread_mutex_lock(&c->mu);
    if (l->has[ask->what])
        act_done(&l->asks[ask->what].how);
    l->asks[ask->what] = *ask;
    l->has[ask->what] = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->mu);
}

/* ---- following ---- */

static void take_news(void *arg, const struct news *news)
{
    struct mail *m = mem_zero(sizeof *m);

    m->what = MAIL_NEWS;
    m->news = (struct news){.what = news->what, .id = m->id};
    snprintf(m->id, sizeof m->id, "%s", news->id ? news->id : "");
    if (news->err) {
        m->err = *news->err;
        m->news.err = &m->err;
    }
    if (news->text.len) {
        m->text = mem_dup(news->text);
        m->news.text = (struct str){m->text, news->text.len};
    }
    post_mail(arg, m);
}

static void *run_follower(void *arg)
{
    struct crew *c = arg;

    c->source->ops->follow(c->source, take_news, c);
    return NULL;
}

static void *run_viewer(void *arg)
{
    struct crew *c = arg;
    struct viewer *v = &c->viewer;
    char id[TIDE_ID_SIZE];
    uint64_t n;

    pthread_mutex_lock(&c->mu);
    while (!c->stopped) {
        if (!v->halt.is && !v->id[0]) {
            pthread_cond_wait(&c->wake, &c->mu);
            continue;
        }
        (void)!read(v->halt.fd, &n, sizeof n);
        v->halt.is = 0;
        memcpy(id, v->id, sizeof id);
        pthread_mutex_unlock(&c->mu);
        if (id[0])
            c->source->ops->look_at(c->source, id, &v->halt, take_news, c);
        pthread_mutex_lock(&c->mu);
        if (strcmp(id, v->id) == 0 && !v->halt.is) /* it is gone */
            v->id[0] = '\0';
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

void crew_view(struct crew *c, const char *id)
{
    struct viewer *v = &c->viewer;

    if (!v->started)
        return;
    pthread_mutex_lock(&c->mu);
    snprintf(v->id, sizeof v->id, "%s", id);
    halt_now(&v->halt);
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->mu);
}

/* ---- acting ---- */

static void *run_act(void *arg)
{
    struct doing *d = arg;
    struct crew *c = d->crew;
    struct mail *m = mem_zero(sizeof *m);

    m->what = MAIL_ACTED;
    m->acted.what = d->act.what;
    m->acted.number = d->act.number;
    memcpy(m->acted.id, d->act.id, sizeof m->acted.id);
    (void)!c->source->ops->act(c->source, &d->act, &m->acted, &m->acted.err);
    act_done(&d->act);
    free(d);
    post_mail(c, m);
    pthread_mutex_lock(&c->mu);
    c->acts--;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

static void refuse_act(struct crew *c, struct act *act, const char *why)
{
    struct mail *m = mem_zero(sizeof *m);

    m->what = MAIL_ACTED;
    m->acted.what = act->what;
    m->acted.number = act->number;
    memcpy(m->acted.id, act->id, sizeof m->acted.id);
    (void)!tide_fail(&m->acted.err, TIDE_BUSY, "%s", why);
    act_done(act);
    post_mail(c, m);
}

void crew_act(struct crew *c, struct act *act)
{
    struct doing *d;
    pthread_t thread;
    bool room;

    pthread_mutex_lock(&c->mu);
    room = c->acts < ACTS_MAX && !c->stopped;
    c->acts += room;
    pthread_mutex_unlock(&c->mu);
    if (!room) {
        refuse_act(c, act, "too much is being done already: try again in a moment");
        return;
    }
    d = mem_zero(sizeof *d);
    *d = (struct doing){.crew = c, .act = *act};
    if (thread_start(&thread, run_act, d)) {
        pthread_detach(thread);
        return;
    }
    free(d);
    pthread_mutex_lock(&c->mu);
    c->acts--;
    pthread_mutex_unlock(&c->mu);
    refuse_act(c, act, "no thread could be started: try again later");
}

/* ---- all of them ---- */

struct crew *crew_open(struct source *source, struct tide_err *err)
{
    struct crew *c = mem_zero(sizeof *c);
    bool ok = true;

    c->source = source;
    c->last = &c->first;
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->wake, NULL);
    for (int i = 0; i < LANES; i++) {
        c->lanes[i] = (struct lane){.crew = c, .number = i};
        c->lanes[i].started = thread_start(&c->lanes[i].thread, run_lane, &c->lanes[i]);
        ok = ok && c->lanes[i].started;
    }
    halt_init(&c->viewer.halt);
    c->viewer.started = source->ops->look_at && thread_start(&c->viewer.thread, run_viewer, c);
    c->follows = thread_start(&c->follower, run_follower, c);
    if (ok && c->follows && c->fd >= 0)
        return c;
    (void)!tide_fail(err, TIDE_FAILED, "no threads could be started");
    crew_close(c);
    return NULL;
}

void crew_close(struct crew *c)
{
    struct mail *m;

    if (!c)
        return;
    pthread_mutex_lock(&c->mu);
    c->stopped = true; /* first: who is halted looks at it */
    pthread_cond_broadcast(&c->wake);
    halt_now(&c->source->halt);
    halt_now(&c->viewer.halt);
    while (c->acts)
        pthread_cond_wait(&c->wake, &c->mu);
    pthread_mutex_unlock(&c->mu);
    for (int i = 0; i < LANES; i++)
        if (c->lanes[i].started)
            pthread_join(c->lanes[i].thread, NULL);
    if (c->follows)
        pthread_join(c->follower, NULL);
    if (c->viewer.started)
        pthread_join(c->viewer.thread, NULL);
    halt_done(&c->viewer.halt);
    while ((m = crew_mail(c))) {
        answer_free(m->answer);
        mail_free(m);
    }
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < ASK_KINDS; k++)
            if (c->lanes[i].has[k])
                act_done(&c->lanes[i].asks[k].how);
    close(c->fd);
    pthread_mutex_destroy(&c->mu);
    pthread_cond_destroy(&c->wake);
    free(c);
}
