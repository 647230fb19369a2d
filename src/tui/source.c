/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/source.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tui/source_store.h"

void halt_init(struct halt *h)
{
    h->is = 0;
    h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void halt_done(struct halt *h)
{
    if (h->fd > 0)
        close(h->fd);
    h->fd = 0;
}

void halt_now(struct halt *h)
{
    const uint64_t one = 1;

    h->is = 1;
    (void)!write(h->fd, &one, sizeof one);
}

bool halt_within(const struct halt *h, int ms)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};

    return poll(&p, 1, ms) > 0 || h->is;
}

void source_free(struct source *s)
{
    if (!s)
        return;
    halt_done(&s->halt);
    s->ops->close(s);
}

void answer_free(struct answer *a)
{
    if (!a)
        return;
    act_done(&a->ask.how);
    arena_done(&a->arena);
    free(a);
}

static void wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(TAKE(*text));
}

void act_done(struct act *a)
{
    wipe_text(&a->input);
    wipe_text(&a->set);
    wipe_text(&a->message);
    wipe_text(&a->reason);
    wipe_text(&a->checkpoint);
    wipe_text(&a->retry);
    wipe_text(&a->happened);
    wipe_text(&a->ask_again);
}
