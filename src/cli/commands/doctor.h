/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's report, and the checks that look into an open store (the others are in doctor.c). */
#ifndef CLI_COMMANDS_DOCTOR_H
#define CLI_COMMANDS_DOCTOR_H

#include "cli/cli.h"

#define DOCTOR_SPACE_WARN ((uint64_t)64 << 20) /* less free space than this is said */

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct doctor {
    struct cli *cli;
    struct check_report report;
    struct buf url;
    const char *path; /* of the store's file or directory; "" when it cannot be told */
    char dir[1024];   /* that is written to */
    bool is_default, is_files, has_mark;
    const char *name; /* of the check that is being made */
    uint64_t free_bytes;
    struct arena arena;      /* of `info` */
    const struct json *info; /* the store's figures; NULL when they cannot be had */
    struct tide_err err;
};

/* One line of the report. `todo` NULL: nothing to do; what fails has always something. */
void doctor_say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same of one of many: members as in struct finding. */
struct doctor_subject {
    const struct finding_kind *kind;
    const char *about, *state;
};
void doctor_say_of(struct doctor *d, struct doctor_subject of, enum verdict verdict, const char *todo, const char *fmt,
                   ...) __attribute__((format(printf, 5, 6)));

/* What failed with d->err: what to do is taken from its message, else from its code. */
void doctor_say_error(struct doctor *d);

/* The report for people; `all`: every finding of a kind. */
void doctor_print(struct out *out, struct check_report *r, bool all); /* doctor_print.c */

void doctor_provider(struct doctor *d); /* doctor_provider.c */
void doctor_figures(struct doctor *d);
void doctor_torn(struct doctor *d);
void doctor_live(struct doctor *d);
void doctor_reserve(struct doctor *d);
void doctor_sessions(struct doctor *d);
void doctor_recovery(struct doctor *d);
void doctor_events(struct doctor *d);

#endif
