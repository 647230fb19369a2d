/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each action that a client can do here: its route. Arguments are the body, if that route knows all of them. */
#include "server/links.h"

#include "base/buf.h"
#include "base/json.h"
#include "server/route.h"

static const struct {
    enum tide_action action;
    const char *route;
} rows[] = {
    {TIDE_ACTION_RESUME, "session.resume"},      {TIDE_ACTION_ANSWER, "session.answer"},
    {TIDE_ACTION_PROMPT, "message.send"},        {TIDE_ACTION_CANCEL, "session.cancel"},
    {TIDE_ACTION_ROTATE_TOKEN, "wait.rotate"},   {TIDE_ACTION_TRUST, "trust.show"},
    {TIDE_ACTION_VERIFY, "session.verify"},      {TIDE_ACTION_WHY, "session.why"},
    {TIDE_ACTION_SHOW_LOG, "session.log"},       {TIDE_ACTION_SHOW_TIMELINE, "session.timeline"},
    {TIDE_ACTION_DELETE, "session.delete"},      {TIDE_ACTION_FORK, "session.fork"},
    {TIDE_ACTION_ROLLBACK, "session.rollback"},  {TIDE_ACTION_RECOVER, "store.recover"},
    {TIDE_ACTION_LIST_SESSIONS, "session.list"}, {TIDE_ACTION_LIST_CHECKPOINTS, "checkpoint.list"},
};

static const struct route *route_of(enum tide_action action)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].action == action)
            return route_named(str_from(rows[i].route));
    return NULL;
}

/* Of what is read, arguments are for people: the address alone is the link. */
static bool route_takes(struct arena *a, const struct route *r, struct str arguments)
{
    struct json *v;

    if (r->method == HTTP_GET || !arguments.len)
        return true;
    if (json_parse(a, arguments, NULL, &v, NULL, NULL))
        return false;
    for (const struct json *m = v->first; m; m = m->next)
        if (!field_find(r->body, json_key_text(a, m)))
            return false;
    return true;
}

const char *link_of(struct arena *a, const struct tide_next *next)
{
    static const char *const methods[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_DELETE] = "DELETE", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH"};
    const struct route *r = route_of(next->action);
    struct str arguments = str_from(next->arguments ? next->arguments : "");
    const char *id = r ? strstr(r->path, "{id}") : NULL;
    size_t before = id ? (size_t)(id - r->path) : r ? strlen(r->path) : 0;

    if (!r || !route_takes(a, r, arguments))
        return NULL;
    if (r->method == HTTP_GET || str_eq(arguments, STR("{}")))
        arguments = STR("");
    return arena_printf(a, "%s " API_ROOT "%.*s%s%s%s%.*s", methods[r->method], (int)before, r->path,
                        id && next->session_id ? next->session_id : "", id ? id + 4 : "", arguments.len ? " " : "",
                        STR_ARG(arguments));
}
