/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program that does not die with its parent: what `tidemark exec` and `step` ask the kernel for is taken back. */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || prctl(PR_SET_PDEATHSIG, 0) != 0)
        return 2;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
