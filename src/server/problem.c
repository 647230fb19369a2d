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

void problem_write(struct buf *out, const struct tide_err *err, int status)
{
    struct json_out o = json_out_to(out);
    const struct error_shown shown = {.err = *err, .command = link_of};

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), str_from("about:blank"));
    json_out_kstr(&o, STR("title"), str_from(tide_code_text(err->code)));
    json_out_kint(&o, STR("status"), status);
    json_out_kstr(&o, STR("detail"), str_from(err->msg));
    json_out_key(&o, STR("error"));
    shape_put(&o, &shape_error, &shown);
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}
