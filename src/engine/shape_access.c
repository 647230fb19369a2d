/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct access_shown, member)
SHAPE(access, "A token for the API of the server.",
      {"name", SHAPE_TEXT, AT(name), .help = "what the log calls whoever uses it"},
      {"scopes", SHAPE_LIST, AT(scopes), .help = "what it may do: read, answer, write, run, admin",
       .items = SHAPE_TEXT},
      {"created_at", SHAPE_TIME, AT(created_ms), .help = "when it was made, or made anew"},
      {"expires_at", SHAPE_TIME, AT(expires_ms), SHAPE_NULLABLE, "when it ends; null: never"},
      {"expired", SHAPE_BOOL, AT(expired), .help = "it has ended"},
      {"token", SHAPE_TEXT, AT(token), SHAPE_OPTIONAL, "the token itself, shown only where it is made"});
#undef AT

const struct shape shape_accesses = {
    .name = "accesses",
    .help = "The tokens for the API of the server, without their secrets.",
    .members =
        (const struct shape_member[]){
            {"tokens", SHAPE_STREAM, SHAPE_AT(struct accesses_listed, tokens), 0, "all that there are",
             .of = &shape_access},
            {.name = NULL},
        },
};
