/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_detail.h"

#include "engine/session_next.h"
#include "session/session.h"

struct showing {
    const tide_session *session;
    next_command_fn *command;
    session_detail_fn *fn;
    void *arg;
};

/* A field of the session as it stands in its state: JSON. */
static struct str field_of(const tide_session *session, const char *name)
{
    return str_from(map_get(&session->state->info.fields, str_from(name)));
}

static int show_row(void *arg, const struct tide_session_info *info)
{
    const struct showing *s = arg;

    s->fn(s->arg, &(struct session_detail){
                      .row = {*info, s->command},
                      .working_dir = field_of(s->session, "working_dir"),
                      .provider = field_of(s->session, "provider"),
                      .metadata = field_of(s->session, "metadata"),
                      .checkpoints_enabled = true,
                      .total_checkpoints = s->session->state->ledger.checkpoints,
                  });
    return 0;
}

enum tide_code session_show_detail(tide_session *session, next_command_fn *command, session_detail_fn *fn, void *arg,
                                   struct tide_err *err)
{
    return session_show_next(session, show_row,
                             &(struct showing){.session = session, .command = command, .fn = fn, .arg = arg}, err);
}
