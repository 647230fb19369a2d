/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct access_shown, member)
SHAPE(access, "A token for the API of the server.",
      {"name", SHAPE_TEXT, AT(name), .help = "the name in the log of events that it caused"},
      {"scopes", SHAPE_LIST, AT(scopes), .help = "what it may do: read, answer, write, run, admin",
       .items = SHAPE_TEXT},
      {"created_at", SHAPE_TIME, AT(created_ms), .help = "when it was created or rotated"},
      {"expires_at", SHAPE_TIME, AT(expires_ms), SHAPE_NULLABLE, "when it ends; null: never"},
      {"expired", SHAPE_BOOL, AT(expired), .help = "it has ended"},
      {"signed_in", SHAPE_BOOL, AT(signed_in), .help = "it was made by signing in with a code"},
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

#define AT(member) SHAPE_AT(struct me_shown, member)
static SHAPE(me_store, "The store of the server.", {"url", SHAPE_TEXT, AT(store.url), .help = "its URL"},
             {"kind", SHAPE_TEXT, AT(store.kind), .help = "sqlite or files", .words = "sqlite files"});

SHAPE(me, "The token in use, and the server.",
      {"name", SHAPE_TEXT, AT(name), .help = "of the token; local: the server's own user on its unix socket"},
      {"scopes", SHAPE_LIST, AT(scopes), .help = "what it may do", .items = SHAPE_TEXT},
      {"expires_at", SHAPE_TIME, AT(expires_ms), SHAPE_NULLABLE, "when the token expires; null: never"},
      {"is_local", SHAPE_BOOL, AT(is_local), .help = "the request needed no token"},
      {"revocable", SHAPE_BOOL, AT(revocable), .help = "DELETE /me can revoke it"},
      {"version", SHAPE_TEXT, AT(version), .help = "of the server"},
      {"store", SHAPE_OBJECT, .help = "the store of the server", .of = &shape_me_store});
#undef AT

#define AT(member) SHAPE_AT(struct signin_code_shown, member)
SHAPE(signin_code, "A code to sign in with, once and soon.",
      {"url", SHAPE_TEXT, AT(url), SHAPE_NULLABLE,
       "opens the console and signs in; null: no browser can reach the server"},
      {"code", SHAPE_TEXT, AT(code), SHAPE_OPTIONAL, "the code, shown only where it is made"},
      {"expires_at", SHAPE_TIME, AT(expires_ms), .help = "until when it can be used"});
#undef AT
