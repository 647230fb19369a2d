/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal left raw is unusable for the next program. So signals that end the process are caught while its modes
 * are changed: the handler puts them back, gives the signal its former handler again and raises it anew. Everything the
 * handler touches is set before it is installed; tcsetattr and write may be called from one.
 *
 * Bracketed paste is switched on while keys are kept for an editor and off behind it: else its marks would reach the next
 * program.
 */
#include "terminal/line_tty.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static const int changing[] = {SIGWINCH, SIGCONT};
#define N_ENDING (sizeof(ending) / sizeof(ending[0]))
#define N_CHANGING (sizeof(changing) / sizeof(changing[0]))

enum mode { MODE_QUIET, MODE_HUSHED, MODE_RAW };

static struct {
    struct termios saved, modes;
    int in, out;
    volatile sig_atomic_t active, raw, pastes, ended, stopped;
    struct sigaction was_ending[N_ENDING], was_changing[N_CHANGING];
} tty;

static void put_back(void)
{
    tcsetattr(tty.in, TCSADRAIN, &tty.saved);
    if (tty.pastes)
        (void)!write(tty.out, PASTE_OFF, sizeof(PASTE_OFF) - 1);
    tty.active = tty.raw = tty.pastes = 0;
}

static void on_ending(int sig)
{
    int error = errno;

    tty.ended = 1;
    if (tty.active)
        put_back();
    for (size_t i = 0; i < N_ENDING; i++)
        if (ending[i] == sig)
            sigaction(sig, &tty.was_ending[i], NULL);
    raise(sig); /* pending until we return */
    errno = error;
}

static void on_changing(int sig)
{
    int error = errno;

    tty.stopped |= sig == SIGCONT;
    for (size_t i = 0; i < N_CHANGING; i++)
        if (changing[i] == sig && tty.was_changing[i].sa_handler != SIG_DFL &&
            tty.was_changing[i].sa_handler != SIG_IGN && !(tty.was_changing[i].sa_flags & SA_SIGINFO))
            tty.was_changing[i].sa_handler(sig);
    errno = error;
}

/* What is ignored stays ignored. Without SA_RESTART: a wait for keys must end; others wait only for those that end. */
static void catch_signals(bool raw)
{
    struct sigaction end = {.sa_handler = on_ending}, change = {.sa_handler = on_changing};

    for (size_t i = 0; i < N_ENDING; i++) {
        struct sigaction now;

        sigaction(ending[i], NULL, &now);
        if (now.sa_handler == on_ending) /* caught since the modes of before */
            continue;
        tty.was_ending[i] = now;
        if (now.sa_handler != SIG_IGN)
            sigaction(ending[i], &end, NULL);
    }
    for (size_t i = 0; raw && i < N_CHANGING; i++)
        sigaction(changing[i], &change, &tty.was_changing[i]);
}

static void release_signals(const int *signals, const struct sigaction *was, size_t n, void (*ours)(int))
{
    for (size_t i = 0; i < n; i++) {
        struct sigaction now;

        sigaction(signals[i], NULL, &now);
        if (now.sa_handler == ours)
            sigaction(signals[i], &was[i], NULL);
    }
}

static void paste_on(void)
{
    (void)!write(tty.out, PASTE_ON, sizeof(PASTE_ON) - 1);
}

/* Bits of c_lflag and c_iflag that are taken away. Hushed, keys are kept as they are pressed, whatever signal comes. */
static const struct {
    tcflag_t local, input;
} modes_of[] = {
    [MODE_QUIET] = {ECHO, 0},
    [MODE_HUSHED] = {ECHO | ICANON | IEXTEN, ICRNL | INLCR},
    [MODE_RAW] = {ECHO | ICANON | ISIG | IEXTEN, ICRNL | INLCR | IXON | ISTRIP},
};

static bool change_modes(int in, int out, enum mode mode)
{
    bool raw = mode == MODE_RAW, again = tty.active && tty.in == in && mode != MODE_QUIET;
    struct termios modes;

    if (again) /* not by way of the modes of before: a key pressed meanwhile would be shown, an Enter be a line end */
        release_signals(changing, tty.was_changing, N_CHANGING, on_changing);
    else
        tty_restore();
    if (!again && tcgetattr(in, &modes) != 0)
        return false;
    tty.saved = again ? tty.saved : modes;
    tty.modes = tty.saved;
    tty.in = in;
    tty.out = out;
    tty.ended = tty.stopped = 0;
    tty.modes.c_lflag &= ~modes_of[mode].local;
    tty.modes.c_lflag |= NOFLSH; /* else Ctrl-C throws away what was typed before it */
    tty.modes.c_iflag &= ~modes_of[mode].input;
    if (mode != MODE_QUIET) {
        tty.modes.c_oflag |= OPOST | ONLCR; /* notices are written with plain line ends */
        tty.modes.c_cc[VMIN] = 1;
        tty.modes.c_cc[VTIME] = 0;
    }
    catch_signals(raw);
    tty.raw = raw;
    tty.active = 1;
    if (tcsetattr(in, TCSADRAIN, &tty.modes) != 0) {
        tty_restore();
        return false;
    }
    tty.pastes = mode != MODE_QUIET;
    if (tty.pastes)
        paste_on();
    return true;
}

bool tty_raw(int in, int out)
{
    return change_modes(in, out, MODE_RAW);
}

/* Ctrl-C is the caller's business here: it stops a turn. */
static bool hush_tty(int in, int out, enum mode mode)
{
    if (!change_modes(in, out, mode))
        return false;
    sigaction(SIGINT, &tty.was_ending[0], NULL);
    return true;
}

bool tty_hush(int in, int out)
{
    return hush_tty(in, out, MODE_HUSHED);
}

bool tty_quiet(int in)
{
    return hush_tty(in, in, MODE_QUIET);
}

/* Modes first: a signal between the two still finds its handler, which then has nothing left to do. */
void tty_restore(void)
{
    if (tty.active)
        put_back();
    release_signals(ending, tty.was_ending, N_ENDING, on_ending);
    release_signals(changing, tty.was_changing, N_CHANGING, on_changing);
}

bool tty_ended(void)
{
    return tty.ended;
}

bool tty_again(void)
{
    if (!tty.stopped || !tty.active || !tty.raw)
        return false;
    tty.stopped = 0;
    tcsetattr(tty.in, TCSADRAIN, &tty.modes);
    paste_on();
    return true;
}

void tty_suspend(int in, int out)
{
    tty_restore();
    raise(SIGTSTP);
    tty_raw(in, out);
}
