/* SPDX-License-Identifier: Apache-2.0 */
/* What a resume would do, of whatever the session runs, for people: `--dry-run`. */
#include <inttypes.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_view.h"
#include "engine/resume.h"

static const char *state_text(struct str state)
{
    static const char *const words[][2] = {{"running", "was interrupted"},
                                           {"retry", "is to be retried"},
                                           {"deciding", "asks for the next node"},
                                           {"withdrawn", "never began"},
                                           {"failed", "failed"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_eq(state, str_from(words[i][0])))
            return words[i][1];
    return "ready";
}

static void show_texts(struct out *out, struct arena *a, const struct json *plan, const char *member, const char *name,
                       const char *more)
{
    const struct json *list = json_get(plan, str_from(member));

    for (const struct json *m = list ? list->first : NULL; m; m = m->next)
        out_field(out, name, arena_printf(a, "%.*s%s", STR_ARG(json_text(a, m)), more));
}

static void show_nodes(struct out *out, struct arena *a, const struct json *plan)
{
    const struct json *list = json_get(plan, STR("nodes_to_run"));

    show_texts(out, a, plan, "complete", "complete", "");
    show_texts(out, a, plan, "failed", "failed", " (the others continued)");
    for (const struct json *m = list ? list->first : NULL; m; m = m->next) {
        struct str node = json_get_text(a, m, STR("node")), state = json_get_text(a, m, STR("state"));

        if (json_get_bool(m, STR("from_log"), false))
            out_field(out, "answers", arena_printf(a, "%.*s (from the log)", STR_ARG(node)));
        else
            out_field(out, "runs", arena_printf(a, "%.*s (%s)", STR_ARG(node), state_text(state)));
    }
    show_texts(out, a, plan, "happened", "happened", " (as you say)");
}

/* What is refused, or worth knowing, and what helps; ended by what NULL. */
static void show_refusals(struct out *out, struct arena *a, const char *name, const struct graph_refusal *r)
{
    for (; r && r->what; r++) {
        const char *help = hints_text(a, r->hints, sizeof(r->hints) / sizeof(r->hints[0]));

        out_field(out, name, arena_printf(a, "%s%s%s", r->what, help ? ": " : "", help ? help : ""));
    }
}

static void show_plan(struct out *out, struct arena *a, const struct json *plan, const struct resume *r)
{
    const struct json *from = json_get(plan, STR("from")), *sets = json_get(plan, STR("overrides"));
    struct str checkpoint = json_get_text(a, from, STR("checkpoint")), action = json_get_text(a, plan, STR("action"));
    int64_t seq = json_get_int(from, STR("seq"), 0);

    out_field(out, "session", arena_dup(a, json_get_text(a, plan, STR("session_id"))).ptr);
    out_field(out, "from",
              checkpoint.len ? arena_printf(a, "checkpoint %.*s, seq %" PRId64, STR_ARG(checkpoint), seq)
                             : arena_printf(a, "the current position, seq %" PRId64, seq));
    out_field(out, "does",
              str_eq(action, STR("fork"))       ? "starts a fork there"
              : str_eq(action, STR("rollback")) ? "goes back there"
                                                : "continues");
    show_nodes(out, a, plan);
    for (const struct json *m = sets ? sets->first : NULL; m; m = m->next) /* what they are set to may be a secret */
        out_field(out, "sets",
                  arena_printf(a, "%.*s%s", STR_ARG(json_get_text(a, m, STR("key"))),
                               json_get_bool(m, STR("never_stored"), false) ? " (never stored)" : ""));
    if (!r->notes)
        show_texts(out, a, plan, "warnings", "note", "");
    show_refusals(out, a, "note", r->notes);
    show_refusals(out, a, "refused", r->refused);
}

enum tide_code plan_print(struct cli *cli, const struct resume *r, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *plan = NULL;

    if (json_parse(&a, r->plan, NULL, &plan, NULL, err))
        return err->code;
    cli->exit_status = r->refused_code ? tide_code_exit(r->refused_code) : 0;
    if (!cli->out.json) {
        show_plan(&cli->out, &a, plan, r);
        return TIDE_OK;
    }
    buf_add_str(&cli->out.text, r->plan);
    out_json_end(&cli->out);
    return TIDE_OK;
}
