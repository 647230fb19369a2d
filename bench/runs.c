/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What durable steps cost beyond what they need: through the C call two syncs each, of steps that must happen once (steps.c has
 * the others); through the command two processes and two syncs; and how soon a program runs again after its supervisor was killed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 7
#define STEPS 60 /* through the command, a round */
#define RESUMES 21

static pid_t spawn(const char *const *argv, bool quiet)
{
    pid_t pid = fork();

    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (quiet) {
            dup2(null, 1);
            dup2(null, 2);
        }
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    return pid;
}

static int reap(pid_t pid)
{
    int status = 0;

    must_sys(waitpid(pid, &status, 0) == pid, "wait");
    return status;
}

/* ---- C calls ----------------------------------------------------------------------------------------------------- */

static double c_steps(tide_run *run, int n)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "step", .args = "args", .args_len = 4};
    struct tide_err err;
    double start = now_s();

    for (int i = 0; i < n; i++)
        must(tide_run_step(run, &spec, step_nothing, NULL, NULL, &err), &err, "step");
    return now_s() - start;
}

static void bench_c_steps(const struct bench *b)
{
    int n = b->quick ? 100 : 1000;
    double ours[ROUNDS], raw[ROUNDS], ratio[ROUNDS];
    tide_store *store = store_new(b, "steps");
    char measured[64], beside[64];
    struct tide_err err;
    tide_session *s;
    tide_run *run;

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    must(tide_run_start(s, NULL, &run, &err), &err, "start");
    c_steps(run, n);
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = 2 * n / raw_sync_rate(b, false, b->quick ? 0.1 : 0.5);
        ours[i] = c_steps(run, n);
        ratio[i] = ours[i] / raw[i];
    }
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.3f s", median(ours, ROUNDS));
    snprintf(beside, sizeof beside, "%d raw syncs: %.3f s", 2 * n, median(raw, ROUNDS));
    row(b->quick ? "100 steps through the C call" : "1,000 steps through the C call, one by one", measured, beside,
        median(ratio, ROUNDS), "<=", 1.3);
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static double spawn_all(const char *const *argv, int n)
{
    double start = now_s();

    for (int i = 0; i < n; i++)
        must_sys(reap(spawn(argv, false)) == 0, argv[0]);
    return (now_s() - start) / n;
}

/* Both are measured from here: a fork costs by what the process has mapped, and the benchmark has much. */
int child_steps(const char *tidemark, int n, const char *file)
{
    const char *step[] = {tidemark, "step", "bench", "--", "true", NULL}, *bare[] = {"true", NULL};
    FILE *out = fopen(file, "w");

    must_sys(out != NULL, file);
    fprintf(out, "%.9f %.9f\n", spawn_all(step, n), 2 * spawn_all(bare, 2 * n));
    return fclose(out) == 0 ? 0 : 1;
}

static double read_numbers(const char *file, double *ret_second)
{
    FILE *in = fopen(file, "r");
    double v = 0;

    *ret_second = 0;
    if (in && fscanf(in, "%lf %lf", &v, ret_second) < 1)
        v = 0;
    if (in)
        fclose(in);
    return v;
}

/* Seconds of a step; *ret_bare of two bare processes. */
static double command_steps(const struct bench *b, const char *self, const char *store, double *ret_bare)
{
    char file[300], n[16];
    const char *argv[] = {b->tidemark,     "--store",   store, "exec", "--", self,
                          "--child-steps", b->tidemark, n,     file,   NULL};

    snprintf(file, sizeof file, "%s/took", b->dir);
    snprintf(n, sizeof n, "%d", b->quick ? 5 : STEPS);
    must_sys(reap(spawn(argv, true)) == 0, "tidemark exec");
    return read_numbers(file, ret_bare);
}

static void bench_command_steps(const struct bench *b, const char *self)
{
    double ours[ROUNDS], bare[ROUNDS], ratio[ROUNDS];
    char measured[64], beside[96], store[300];

    snprintf(store, sizeof store, "%s/command.db", b->dir);
    command_steps(b, self, store, &bare[0]);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = command_steps(b, self, store, &bare[i]);
        bare[i] += 2 / raw_sync_rate(b, false, b->quick ? 0.1 : 0.3);
        ratio[i] = ours[i] / bare[i];
    }
    snprintf(measured, sizeof measured, "%.2f ms", median(ours, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "two bare fork+exec and two raw syncs: %.2f ms", median(bare, ROUNDS) * 1e3);
    row("`tidemark step` around `true`", measured, beside, median(ratio, ROUNDS), "<=", 2);
}

/* ---- resuming -------------------------------------------------------------------------------------------------------- */

int child_stamp(const char *file)
{
    char tmp[512];
    FILE *out;

    snprintf(tmp, sizeof tmp, "%s.new", file);
    out = fopen(tmp, "w");
    must_sys(out != NULL, tmp);
    fprintf(out, "%.9f\n", now_s());
    must_sys(fclose(out) == 0 && rename(tmp, file) == 0, file);
    for (;;)
        pause();
}

static double wait_for_stamp(const char *file)
{
    double ignored;

    for (int i = 0; i < 100000 && access(file, F_OK) != 0; i++)
        usleep(200);
    must_sys(access(file, F_OK) == 0, "the program did not begin");
    return read_numbers(file, &ignored);
}

static double resume_once(const struct bench *b, const char *store, const char *file, pid_t *supervisor)
{
    const char *argv[] = {b->tidemark, "--store", store, "resume", "r", NULL};
    double asked;

    kill(*supervisor, SIGKILL);
    reap(*supervisor);
    unlink(file);
    asked = now_s();
    *supervisor = spawn(argv, true);
    return wait_for_stamp(file) - asked;
}

static void bench_resume(const struct bench *b, const char *self)
{
    char store[300], file[300], measured[64], beside[64];
    const char *create[] = {b->tidemark, "--store", store, "sessions", "new", "--id", "r", NULL};
    const char *exec[] = {b->tidemark, "--store", store,           "exec", "--session", "r",
                          "--",        self,      "--child-stamp", file,   NULL};
    double took[RESUMES], sync = 1 / raw_sync_rate(b, false, 0.2), limit = 0.030 + 3 * sync;
    int n = b->quick ? 3 : RESUMES;
    pid_t supervisor;

    snprintf(store, sizeof store, "%s/resume.db", b->dir);
    snprintf(file, sizeof file, "%s/stamp", b->dir);
    must_sys(reap(spawn(create, true)) == 0, "tidemark sessions new");
    supervisor = spawn(exec, true);
    wait_for_stamp(file);
    for (int i = 0; i < n; i++)
        took[i] = resume_once(b, store, file, &supervisor);
    kill(supervisor, SIGKILL);
    reap(supervisor);
    snprintf(measured, sizeof measured, "%.1f ms", median(took, (size_t)n) * 1e3);
    snprintf(beside, sizeof beside, "30 ms and three syncs: %.1f ms", limit * 1e3);
    row("resume after SIGKILL, command to program running", measured, beside, median(took, (size_t)n) / limit, "<=", 1);
}

void bench_runs(const struct bench *b)
{
    char self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    must_sys(n > 0, "/proc/self/exe");
    self[n] = 0;
    bench_c_steps(b);
    bench_command_steps(b, self);
    bench_resume(b, self);
}
