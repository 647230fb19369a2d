/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that follow from a seed, the same everywhere: what a test prints can be seen again. */
#ifndef TESTS_SEEDED_H
#define TESTS_SEEDED_H

#include <stdint.h>

static inline uint64_t seeded_next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
