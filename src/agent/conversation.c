/* SPDX-License-Identifier: Apache-2.0 */
/* Folding messages. A message is kept in one piece: a long conversation is many of them, and trimming frees them. */
#include "agent/conversation.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/invariant.h"
#include "base/timefmt.h"
#include "session/redact.h"

void conversation_done(struct conversation *t)
{
    struct conversation_owner whose = t->whose;

    for (size_t i = 0; i < t->n; i++)
        free(t->said[i]);
    free(t->said);
    map_done(&t->ids, NULL);
    map_done(&t->decisions, free);
    map_done(&t->asked, NULL);
    map_done(&t->changed, free);
    map_done(&t->redacted, NULL);
    map_done(&t->inherited, NULL);
    map_done(&t->outputs, free);
    free(t->system);
    free(t->tools);
    arena_done(&t->scratch);
    memset(t, 0, sizeof(*t));
    t->whose = whose;
}

/* ---- messages ---- */

#define IMAGE_BYTES 6400 /* that an image counts for, as text does: providers count pixels, not bytes */

static size_t bytes_of(const struct message_kept *s)
{
    size_t n = s->m.text.len + s->m.n_images * IMAGE_BYTES;

    for (size_t i = 0; i < s->m.n_calls; i++)
        n += s->m.calls[i].name.len + s->m.calls[i].args.len;
    return n;
}

static size_t sum_of(const struct conversation *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += bytes_of(t->said[i]);
    return n;
}

static size_t room_of(const struct model_message *m, struct str id)
{
    size_t n = sizeof(struct message_kept) + m->n_calls * sizeof(struct model_call) + m->text.len + m->call_id.len +
               m->n_images * sizeof(struct model_image) + id.len + 3;

    for (size_t i = 0; i < m->n_calls; i++)
        n += m->calls[i].id.len + m->calls[i].name.len + m->calls[i].args.len + 3;
    for (size_t i = 0; i < m->n_images; i++)
        n += m->images[i].type.len + m->images[i].data.len + 2;
    return n;
}

static struct str lay_text(char **at, struct str s)
{
    struct str copy = {*at, s.len};

    if (s.len)
        memcpy(*at, s.ptr, s.len);
    (*at)[s.len] = '\0';
    *at += s.len + 1;
    return copy;
}

static void add_message(struct conversation *t, const struct model_message *m, int64_t turn, struct str id)
{
    struct message_kept *s = mem_alloc(room_of(m, id));
    struct model_call *calls = (struct model_call *)(s + 1);
    struct model_image *images = (struct model_image *)(calls + m->n_calls);
    char *at = (char *)(images + m->n_images);

    *s = (struct message_kept){.m = *m, .turn = turn};
    for (size_t i = 0; i < m->n_calls; i++) {
        calls[i] = (struct model_call){lay_text(&at, m->calls[i].id), lay_text(&at, m->calls[i].name),
                                       lay_text(&at, m->calls[i].args)};
        map_put(&t->ids, calls[i].id, (void *)(uintptr_t) "");
    }
    for (size_t i = 0; i < m->n_images; i++)
        images[i] = (struct model_image){lay_text(&at, m->images[i].type), lay_text(&at, m->images[i].data)};
    s->m.calls = calls;
    s->m.images = images;
    s->m.text = lay_text(&at, m->text);
    s->m.call_id = lay_text(&at, m->call_id);
    s->id = lay_text(&at, id).ptr;
    INVARIANT(at == (char *)s + room_of(m, id));
    MEM_ROOM(t->said, t->n, t->cap);
    t->said[t->n++] = s;
    t->bytes += bytes_of(s);
    INVARIANT_COSTLY(t->bytes == sum_of(t));
}

/* Content is text, or whatever an importer or another face stored: then the model gets its JSON. */
static struct str content_text(struct arena *a, const struct json *body)
{
    const struct json *content = json_get(body, STR("content"));

    if (!content || content->type == JSON_NULL)
        return STR("");
    return content->type == JSON_STRING ? json_text(a, content) : json_source(content);
}

static void read_calls(struct arena *a, const struct json *body, struct model_message *m)
{
    const struct json *list = json_get(body, STR("tool_calls"));
    struct model_call *calls;

    if (!list || list->type != JSON_ARRAY || !list->count)
        return;
    calls = arena_alloc(a, list->count * sizeof(*calls));
    for (const struct json *c = list->first; c; c = c->next) {
        const struct json *args = json_get(c, STR("args"));

        calls[m->n_calls++] = (struct model_call){json_get_text(a, c, STR("id")), json_get_text(a, c, STR("name")),
                                                  args && args->type == JSON_OBJECT ? json_source(args) : STR("{}")};
    }
    m->calls = calls;
}

/* Those that are whole; one whose data are not text is left out, as it is in every request of it. */
static void read_images(struct arena *a, const struct json *body, struct model_message *m)
{
    const struct json *list = json_get(body, STR("images")), *data = json_get(body, STR("image_data"));
    struct model_image *images;
    char key[24];
    size_t i = 0;

    if (!list || list->type != JSON_ARRAY || !list->count)
        return;
    images = arena_alloc(a, list->count * sizeof(*images));
    for (const struct json *v = list->first; v; v = v->next, i++) {
        struct model_image image = {.type = json_get_text(a, v, STR("media_type"))};

        snprintf(key, sizeof(key), "%zu", i);
        image.data = json_get_text(a, data, str_from(key));
        if (image.type.len && image.data.len)
            images[m->n_images++] = image;
    }
    m->images = images;
}

static void apply_message(struct conversation *t, const struct json *body, enum tide_role role)
{
    struct model_message m = {.role = role, .text = content_text(&t->scratch, body)};
    int64_t turn = json_get_int(body, STR("turn"), 0);

    t->requested = false;
    if (role == TIDE_ROLE_ASSISTANT) {
        read_calls(&t->scratch, body, &m);
        t->answered_turn = turn;
    } else if (role == TIDE_ROLE_USER) {
        read_images(&t->scratch, body, &m);
    } else if (role == TIDE_ROLE_TOOL) {
        m.call_id = json_get_text(&t->scratch, body, STR("tool_call_id"));
        m.failed = json_get_bool(body, STR("is_error"), false);
    }
    if (turn > t->seen_turn)
        t->seen_turn = turn;
    add_message(t, &m, turn, json_get_text(&t->scratch, body, STR("message_id")));
    t->said[t->n - 1]->from_hook = role == TIDE_ROLE_USER && json_get(body, STR("hook"));
    t->said[t->n - 1]->quiet = t->said[t->n - 1]->from_hook && !json_get_bool(body, STR("wants_answer"), false);
}

static void note_redacted(struct conversation *t, const struct json *body, struct str call_id, struct str args)
{
    if (redact_is_marked(body, args))
        map_put(&t->redacted, call_id, (void *)(uintptr_t) "");
}

static void apply_user(struct conversation *t, const struct json *body)
{
    apply_message(t, body, TIDE_ROLE_USER);
}

static void apply_assistant(struct conversation *t, const struct json *body)
{
    const struct message_kept *said;

    apply_message(t, body, TIDE_ROLE_ASSISTANT);
    said = t->said[t->n - 1];
    for (size_t i = 0; i < said->m.n_calls; i++)
        note_redacted(t, body, said->m.calls[i].id, said->m.calls[i].args);
    t->error.turn = 0;
    t->answers++;
}

static void apply_tool(struct conversation *t, const struct json *body)
{
    apply_message(t, body, TIDE_ROLE_TOOL);
    free(map_remove(&t->changed, t->said[t->n - 1]->m.call_id));
    map_remove(&t->inherited, t->said[t->n - 1]->m.call_id);
    map_remove(&t->redacted, t->said[t->n - 1]->m.call_id);
}

/* ---- the rest ---- */

static void take_segment(struct conversation *t, const struct json *body, const char *key, char **slot)
{
    const struct json *v = json_get(body, str_from(key));

    if (!v)
        return;
    free(*slot);
    *slot = mem_dup(v->type == JSON_STRING ? json_text(&t->scratch, v) : json_source(v));
}

static void apply_request(struct conversation *t, const struct json *body)
{
    int64_t turn = json_get_int(body, STR("turn"), 0);

    take_segment(t, body, "system", &t->system);
    if (json_get(body, STR("system")))
        t->instructions_at = (size_t)json_get_int(body, STR("instructions_at"), 0);
    take_segment(t, body, "tools", &t->tools);
    t->requested = !json_get(body, STR("purpose")); /* one for a summary is asked anew, or not at all */
    if (turn > t->seen_turn)
        t->seen_turn = turn;
}

static void apply_usage(struct conversation *t, const struct json *body)
{
    t->context_tokens = json_get_int(body, STR("input_tokens"), 0) + json_get_int(body, STR("output_tokens"), 0);
    t->context_bytes = conversation_bytes(t);
}

static void apply_error(struct conversation *t, const struct json *body)
{
    int64_t at = 0;

    time_parse(json_get_text(&t->scratch, body, STR("retry_at")), &at);
    t->error.turn = json_get_int(body, STR("turn"), 0);
    t->error.attempt = (int)json_get_int(body, STR("attempt"), 0);
    t->error.retry_at_ms = at;
    if (t->error.turn > t->seen_turn)
        t->seen_turn = t->error.turn;
}

static size_t find_call(const struct conversation *t, struct str id)
{
    size_t i = 0;

    while (i < t->n && !str_eq(str_from(t->said[i]->id), id))
        i++;
    return i;
}

static void drop_messages(struct conversation *t, size_t from, size_t to)
{
    INVARIANT(from <= to && to < t->n);
    t->settled = 0;
    for (size_t i = from; i <= to; i++) {
        INVARIANT(t->bytes >= bytes_of(t->said[i]));
        t->bytes -= bytes_of(t->said[i]);
        t->answers_left_out += t->said[i]->m.role == TIDE_ROLE_ASSISTANT;
        free(t->said[i]);
    }
    memmove(t->said + from, t->said + to + 1, (t->n - to - 1) * sizeof(*t->said));
    t->n -= to - from + 1;
}

/* Stands for what was left out. The model was asked for it, in a turn of its own. */
static void put_summary(struct conversation *t, const struct json *body, struct str text)
{
    const struct model_message m = {.role = TIDE_ROLE_USER, .text = text};
    int64_t turn = json_get_int(body, STR("turn"), 0);

    INVARIANT(!t->n);
    add_message(t, &m, turn, json_get_text(&t->scratch, body, STR("message_id")));
    t->said[0]->quiet = t->said[0]->summary = true;
    t->answers++;
    t->answers_left_out++;
    t->answered_turn = turn;
    t->seen_turn = turn > t->seen_turn ? turn : t->seen_turn;
    t->error.turn = 0;
}

static void apply_trimmed(struct conversation *t, const struct json *body)
{
    const struct json *dropped = json_get(body, STR("dropped"));
    struct str summary = json_get_text(&t->scratch, body, STR("summary"));

    for (const struct json *r = dropped ? dropped->first : NULL; r; r = r->next) {
        size_t from = find_call(t, json_get_text(&t->scratch, r, STR("from"))),
               to = find_call(t, json_get_text(&t->scratch, r, STR("to")));

        if (from <= to && to < t->n)
            drop_messages(t, from, to);
    }
    if (summary.len) {
        if (t->n) /* it stands for all of it, also where messages have no ids */
            drop_messages(t, 0, t->n - 1);
        put_summary(t, body, summary);
    }
    t->context_tokens = 0;
}

static void apply_asked(struct conversation *t, const struct json *body)
{
    map_put(&t->asked, json_get_text(&t->scratch, body, STR("approval_id")), (void *)(uintptr_t) "");
}

static void apply_given(struct conversation *t, const struct json *body)
{
    struct str id = json_get_text(&t->scratch, body, STR("approval_id"));

    map_set_text(&t->decisions, id, json_source(body));
    if (!str_starts(id, STR("budget-")) || memchr(id.ptr, '.', id.len)) /* a call's id ends with its digest */
        return;
    t->budget_answers++;
    t->budgets += str_eq(json_get_text(&t->scratch, body, STR("decision")), STR("allow"));
}

/* What was allowed elsewhere is asked here again, and what a hook made of a call there does not count. */
static void apply_trusted(struct conversation *t, const struct json *body)
{
    (void)body;
    map_done(&t->decisions, free);
    map_done(&t->changed, free);
    t->decisions = t->changed = (struct map){0};
    t->budgets = 0;
}

static void apply_started(struct conversation *t, const struct json *body)
{
    if (t->of_parent && str_eq(json_get_text(&t->scratch, body, STR("effect")), STR("once")))
        map_put(&t->inherited, json_get_text(&t->scratch, body, STR("call_id")), (void *)(uintptr_t) "");
}

static void apply_fired(struct conversation *t, const struct json *body)
{
    const struct json *args = json_get(body, STR("args"));

    if (!args)
        return;
    map_set_text(&t->changed, json_get_text(&t->scratch, body, STR("call_id")), json_source(args));
    note_redacted(t, body, json_get_text(&t->scratch, body, STR("call_id")), json_source(args));
}

static void apply_output(struct conversation *t, const struct json *body)
{
    const struct json *values = json_get(body, STR("values"));

    for (const struct json *v = values ? values->first : NULL; v; v = v->next)
        map_set_text(&t->outputs, json_key_text(&t->scratch, v), json_source(v));
}

/* An answer of a person may come without its place: the id of the question gives it. */
static bool is_ours(struct conversation *t, struct str kind, const struct json *body)
{
    struct str node = json_get_text(&t->scratch, body, STR("node"));

    if (!node.len || !t->whose.node)
        return !node.len &&
               (!t->whose.node || str_eq(kind, STR("approval.given")) || str_eq(kind, STR("session.trusted")));
    return str_eq(node, str_from(t->whose.node)) && json_get_int(body, STR("visit"), 0) == t->whose.visit &&
           str_eq(json_get_text(&t->scratch, body, STR("decides")), str_from(t->whose.decides));
}

void conversation_apply(struct conversation *t, struct str kind, struct str body)
{
    static const struct {
        const char *kind;
        void (*apply)(struct conversation *, const struct json *);
    } rows[] = {
        {"message.user", apply_user},       {"message.assistant", apply_assistant},
        {"message.tool", apply_tool},       {"llm.request", apply_request},
        {"llm.usage", apply_usage},         {"llm.error", apply_error},
        {"context.trimmed", apply_trimmed}, {"approval.requested", apply_asked},
        {"approval.given", apply_given},    {"hook.fired", apply_fired},
        {"tool.started", apply_started},    {"output.set", apply_output},
        {"session.trusted", apply_trusted},
    };
    struct json *json;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!str_eq(kind, str_from(rows[i].kind)))
            continue;
        arena_reset(&t->scratch);
        if (!json_parse(&t->scratch, body, NULL, &json, NULL, NULL) && is_ours(t, kind, json))
            rows[i].apply(t, json);
        return;
    }
}

/* ---- loading ---- */

static int on_event(void *arg, const struct event *ev)
{
    conversation_apply(arg, ev->kind, ev->body);
    return 0;
}

/* Where it begins: with its first message. INT64_MAX: nothing of it is there; 0: not known, all is read. */
static int64_t first_seq(const struct conversation *t, const struct content *c)
{
    const struct message_range *latest = t->whose.node ? map_get(&c->conversations, str_from(t->whose.node)) : NULL;

    if (!t->whose.node)
        return 0;
    if (!latest || latest->visit < t->whose.visit)
        return INT64_MAX;
    return latest->visit == t->whose.visit ? latest->first_seq : 0;
}

struct loading {
    struct conversation *t;
    struct tide_session *s;
};

/* From the beginning each time: a read that fails half-way leaves nothing that counts. */
static enum tide_code try_load(void *arg, struct tide_err *err)
{
    struct tide_session *s = ((struct loading *)arg)->s;
    struct conversation *t = ((struct loading *)arg)->t;
    enum tide_code code = session_sync(s, err);
    int64_t first;

    conversation_done(t);
    if (code)
        return tide_wrap(err, "read the conversation");
    first = first_seq(t, &s->state->content);
    for (size_t i = 0; !code && i < s->state->content.span_count; i++) {
        const struct span *span = &s->state->content.spans[i];
        struct head head = s->head;

        if (span->to < first)
            continue;
        t->of_parent = strcmp(span->session, s->head.id) != 0;
        if (t->of_parent)
            code = history_writer(s->store, &s->head, span->session, &head, err);
        if (!code)
            code = store_read(s->store, &head, span->from > first ? span->from : first, span->to, on_event, t, err);
    }
    t->of_parent = false;
    return code ? tide_wrap(err, "read the conversation") : TIDE_OK;
}

enum tide_code conversation_load(struct conversation *t, struct tide_session *s, struct tide_err *err)
{
    struct loading l = {t, s};

    return s->patience.told ? session_hold(s, try_load, &l, err) : try_load(&l, err);
}

/* ---- what is owed ---- */

const struct message_kept *conversation_open(const struct conversation *t)
{
    size_t i = t->n;

    while (i > 0 && t->said[i - 1]->m.role != TIDE_ROLE_ASSISTANT)
        i--;
    if (i == 0)
        return NULL;
    for (size_t k = 0; k < t->said[i - 1]->m.n_calls; k++)
        if (!conversation_has_result(t, t->said[i - 1], t->said[i - 1]->m.calls[k].id))
            return t->said[i - 1];
    return NULL;
}

bool conversation_has_result(const struct conversation *t, const struct message_kept *open, struct str call_id)
{
    for (size_t i = t->n; i > 0 && t->said[i - 1] != open; i--)
        if (t->said[i - 1]->m.role == TIDE_ROLE_TOOL && str_eq(t->said[i - 1]->m.call_id, call_id))
            return true;
    return false;
}

struct str conversation_args(const struct conversation *t, const struct model_call *call)
{
    const char *changed = map_get(&t->changed, call->id);

    return changed ? str_from(changed) : call->args;
}

bool conversation_is_owed(const struct conversation *t)
{
    size_t i = t->n;

    while (i > 0 && t->said[i - 1]->quiet)
        i--;
    return i > 0 && t->said[i - 1]->m.role != TIDE_ROLE_ASSISTANT;
}

struct str conversation_system(const struct conversation *t, struct str *ret_instructions)
{
    struct str all = str_from(t->system);

    if (t->instructions_at < 2 || t->instructions_at > all.len) {
        *ret_instructions = STR("");
        return all;
    }
    *ret_instructions = (struct str){all.ptr + t->instructions_at, all.len - t->instructions_at};
    return (struct str){all.ptr, t->instructions_at - 2};
}

bool conversation_is_urged(const struct conversation *t)
{
    return t->n && t->said[t->n - 1]->from_hook && !t->said[t->n - 1]->quiet;
}

/* One answer and what follows it up to the next: results first, because providers want them right behind their calls. */
static size_t take_turn(const struct conversation *t, size_t from, struct model_message *out)
{
    size_t end = from + 1, n = 0;

    while (end < t->n && t->said[end]->m.role != TIDE_ROLE_ASSISTANT)
        end++;
    out[n++] = t->said[from]->m;
    for (size_t i = from + 1; i < end; i++)
        if (t->said[i]->m.role == TIDE_ROLE_TOOL)
            out[n++] = t->said[i]->m;
    for (size_t i = from + 1; i < end; i++)
        if (t->said[i]->m.role != TIDE_ROLE_TOOL)
            out[n++] = t->said[i]->m;
    return end;
}

const struct model_message *conversation_messages(const struct conversation *t, struct arena *a, struct str wish,
                                                  size_t *ret_n, size_t *ret_settled)
{
    struct model_message *m = arena_alloc(a, (t->n - t->settled + 1) * sizeof(*m));

    INVARIANT(t->settled <= t->n);
    *ret_settled = 0;
    for (size_t i = t->settled; i < t->n;) {
        *ret_settled = i - t->settled;
        i = take_turn(t, i, m + *ret_settled);
    }
    *ret_n = t->n - t->settled;
    if (wish.len)
        m[(*ret_n)++] = (struct model_message){.role = TIDE_ROLE_USER, .text = wish};
    return m;
}

struct str conversation_answer(const struct conversation *t)
{
    for (size_t i = t->n; i > 0; i--)
        if (t->said[i - 1]->m.role == TIDE_ROLE_ASSISTANT)
            return t->said[i - 1]->m.text;
    return STR("");
}

size_t conversation_bytes(const struct conversation *t)
{
    return t->bytes;
}

/* Whether a request may continue with this message when all before it are left out: no result in it is of a call before. */
static bool is_border(const struct conversation *t, size_t at, size_t end)
{
    while (at < end && t->said[at]->m.role == TIDE_ROLE_USER)
        at++;
    return at >= end || t->said[at]->m.role != TIDE_ROLE_TOOL;
}

bool conversation_trim(const struct conversation *t, size_t keep, size_t *ret_from, size_t *ret_to)
{
    size_t bytes = conversation_bytes(t), end = t->n, to = 0;

    while (end > 0 && t->said[end - 1]->m.role != TIDE_ROLE_ASSISTANT) /* what the model is to answer now stays … */
        end--;
    end = end > 0 ? end - 1 : 0; /* … and the latest answer with it: results belong to their calls */
    for (size_t i = 1; i < end && bytes > keep; i++) {
        bytes -= bytes_of(t->said[i]);
        if (is_border(t, i + 1, end)) /* a result goes with its call, also when a hook spoke before it */
            to = i;
    }
    *ret_from = 1;
    *ret_to = to;
    return to >= 1;
}

struct str conversation_fresh_id(struct conversation *t, struct arena *a, struct str given, int64_t turn, size_t index)
{
    bool good = !t->whose.node && given.len > 0 && given.len <= 100 && !map_get(&t->ids, given);
    struct str id = given;

    if (!good)
        id = str_from(arena_printf(a, "call_%s%" PRId64 "_%zu", t->whose.node ? "t" : "", turn, index + 1));
    for (int i = 2; map_get(&t->ids, id); i++)
        id = str_from(arena_printf(a, "call_%" PRId64 "_%zu_%d", turn, index + 1, i));
    map_put(&t->ids, id, (void *)(uintptr_t) "");
    return id;
}
