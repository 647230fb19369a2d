/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold and does not ends the process with one line that says where; what holds costs nothing and says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"

/* How a process ends in which that does or does not hold, and what it says. */
static int status_of(int holds, char *said, size_t size)
{
    int ends[2], status = 0;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL); /* the test library catches it */
        dup2(ends[1], STDERR_FILENO);
        INVARIANT(holds == 1);
        INVARIANT_COSTLY(holds == 1);
        _exit(3);
    }
    close(ends[1]);
    n = read(ends[0], said, size - 1);
    said[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void what_does_not_hold_ends_the_process(void **state)
{
    char said[300];
    int status = status_of(0, said, sizeof(said));

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "test_invariant.c:"));
    assert_non_null(strstr(said, "holds == 1\n"));
}

static void what_holds_is_silent(void **state)
{
    char said[300];
    int status = status_of(1, said, sizeof(said));

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_hold_ends_the_process),
        cmocka_unit_test(what_holds_is_silent),
    };

    return cmocka_run_group_tests_name("base/invariant", tests, NULL, NULL);
}
