/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the doctor share: doctor.c looks at the machine and the files, doctor_store.c into a store that opens. */
#ifndef ENGINE_DOCTOR_INTERNAL_H
#define ENGINE_DOCTOR_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "engine/doctor.h"

#define DOCTOR_SPACE_WARN ((uint64_t)64 << 20) /* less free space than this is said */

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct doctor {
    const struct doctor_options *opt;
    struct check_report *report;
    tide_store *store; /* NULL: it does not open */
    struct buf url;
    const char *path; /* of the store's file or directory; "" when it is not known */
    char dir[1024];   /* that is written to */
    bool is_default, is_files, has_mark;
    const char *name; /* of the check that is being made */
    uint64_t free_bytes;
    struct arena arena;      /* of `info` */
    const struct json *info; /* the store's figures; NULL when they cannot be had */
    struct tide_err err;
};

/* What is known of a finding besides its text: members as in struct finding. */
struct doctor_about {
    const struct finding_kind *kind;
    const char *about, *state;
    const struct tide_next *next;
    const struct tide_err *error;
    bool of_store;
};
/* A list of one action. */
#define DOCTOR_NEXT(what, id, with) ((const struct tide_next[]){{(what), 0, (id), (with)}, {.action = 0}})

/* One line of the report. `todo` NULL: nothing to do; what fails has always something. */
void doctor_say(struct doctor *d, enum verdict verdict, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void doctor_say_of(struct doctor *d, struct doctor_about of, enum verdict verdict, const char *todo, const char *fmt,
                   ...) __attribute__((format(printf, 5, 6)));

/* What failed with d->err, of the store. */
void doctor_say_error(struct doctor *d);

void doctor_provider(struct doctor *d); /* doctor_provider.c */
void doctor_figures(struct doctor *d);
void doctor_torn(struct doctor *d);
void doctor_live(struct doctor *d);
void doctor_reserve(struct doctor *d);
void doctor_sessions(struct doctor *d);
void doctor_recovery(struct doctor *d);
void doctor_events(struct doctor *d);

#endif
