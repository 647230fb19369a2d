/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as problem+json (RFC 9457): type, title and status from the one table of codes, `detail` for people; and, for programs, the
 * members of the error shape. What could help is a link: the same action as a request.
 */
#include "engine/shapes.h"
#include "server/call.h"
#include "server/links.h"

/* A token that is of another wait is the wrong credential, and so is none: both are 401 here. */
int problem_status(const struct tide_err *err)
{
    return err->code == TIDE_TOKEN_FOREIGN ? 401 : tide_code_http(err->code);
}

struct problem_shown {
    const char *type, *title;
    int status;
    struct error_shown error;
};

#define AT(member) SHAPE_AT(struct problem_shown, member)
SHAPE(problem, "What failed, and what helps (RFC 9457).", {"type", SHAPE_TEXT, AT(type), .help = "about:blank"},
      {"title", SHAPE_TEXT, AT(title), .help = "what the code means"},
      {"status", SHAPE_INT, AT(status), .help = "of the answer"},
      {"detail", SHAPE_CHARS, AT(error.err.msg), .help = "for people: what, why, what to do"},
      {"error", SHAPE_OBJECT, AT(error), .help = "for programs", .of = &shape_error});
#undef AT

void problem_write(struct buf *out, const struct tide_err *err, int status)
{
    struct json_out o = json_out_to(out);

    shape_put(
        &o, &shape_problem,
        &(struct problem_shown){"about:blank", tide_code_text(err->code), status, {.err = *err, .command = link_of}});
    buf_add_char(out, '\n');
}
