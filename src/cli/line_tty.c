/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal left raw is unusable for whoever gets it next. So signals that end the process are caught while its modes
 * are changed: the handler puts them back, gives the signal its former handler again and raises it anew. Everything the
 * handler touches is set before it is installed; tcsetattr and write may be called from one.
 *
 * Bracketed paste is switched on with raw mode and off with it: else the marks of a paste would reach the next program.
 */
#include "cli/line_tty.h"

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

static struct {
    struct termios saved, modes;
    int in, out;
    volatile sig_atomic_t active, raw, ended, stopped;
    struct sigaction was_ending[N_ENDING], was_changing[N_CHANGING];
} tty;

static void put_back(void)
{
    tcsetattr(tty.in, TCSADRAIN, &tty.saved);
    if (tty.raw)
        (void)!write(tty.out, PASTE_OFF, sizeof(PASTE_OFF) - 1);
    tty.active = tty.raw = 0;
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
        sigaction(ending[i], NULL, &tty.was_ending[i]);
        if (tty.was_ending[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &end, NULL);
    }
    for (size_t i = 0; raw && i < N_CHANGING; i++)
        sigaction(changing[i], &change, &tty.was_changing[i]);
}

static void release(const int *signals, const struct sigaction *was, size_t n, void (*ours)(int))
{
    for (size_t i = 0; i < n; i++) {
        struct sigaction now;

        sigaction(signals[i], NULL, &now);
        if (now.sa_handler == ours)
            sigaction(signals[i], &was[i], NULL);
    }
}

static bool change_modes(int in, int out, bool raw)
{
    struct termios modes;

    tty_restore();
    if (tcgetattr(in, &modes) != 0)
        return false;
    tty.saved = tty.modes = modes;
    tty.in = in;
    tty.out = out;
    tty.ended = tty.stopped = 0;
    tty.modes.c_lflag &= (tcflag_t) ~(raw ? ECHO | ICANON | ISIG | IEXTEN : ECHO);
    if (raw) {
        tty.modes.c_iflag &= (tcflag_t) ~(ICRNL | INLCR | IXON | ISTRIP);
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
    return true;
}

static void paste_on(void)
{
    (void)!write(tty.out, PASTE_ON, sizeof(PASTE_ON) - 1);
}

bool tty_raw(int in, int out)
{
    if (!change_modes(in, out, true))
        return false;
    paste_on();
    return true;
}

/* Ctrl-C is the caller's business here: it stops a turn. */
bool tty_hush(int in)
{
    if (!change_modes(in, in, false))
        return false;
    sigaction(SIGINT, &tty.was_ending[0], NULL);
    return true;
}

/* Modes first: a signal between the two still finds its handler, which then has nothing left to do. */
void tty_restore(void)
{
    if (tty.active)
        put_back();
    release(ending, tty.was_ending, N_ENDING, on_ending);
    release(changing, tty.was_changing, N_CHANGING, on_changing);
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
