/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which event the values of the memory stand that are not small. A snapshot names that event instead of repeating the value:
 * so what a snapshot takes depends on what changed, not on what is remembered.
 *
 * The process that loads the snapshot reads those events. An event of which most was overwritten since would be read for little: the rest
 * of it is written into the snapshot after all, so that no more than twice the bytes of the values are read.
 */
#include "session/value_places.h"

#define PLACE_MIN 1024 /* bytes of a value that is looked for in the log */

static struct str name_of(struct buf *out, struct str frame, struct str key)
{
    buf_clear(out);
    buf_add_str(out, frame);
    buf_add_char(out, PLACE_SEPARATOR);
    buf_add_str(out, key);
    return buf_view(out);
}

void place_note(struct content *c, const struct fact *f, struct str frame, struct str key, size_t bytes)
{
    AUTO(buf_done) struct buf name = BUF_INIT(SIZE_MAX / 4);
    struct value_place *p;

    if (bytes < PLACE_MIN) {
        place_drop(c, frame, key);
        return;
    }
    p = mem_alloc(sizeof *p);
    *p = (struct value_place){f->ev->seq, (int64_t)bytes, (int64_t)f->ev->body.len, false};
    free(map_put(&c->places, name_of(&name, frame, key), p));
}

void place_drop(struct content *c, struct str frame, struct str key)
{
    AUTO(buf_done) struct buf name = BUF_INIT(SIZE_MAX / 4);

    if (c->places.live)
        map_drop(&c->places, name_of(&name, frame, key));
}

void place_drop_frame(struct content *c, struct str frame)
{
    for (struct map_entry *e = map_next(&c->places, NULL); e; e = map_next(&c->places, e))
        if (str_starts(map_key(e), frame) && e->key[frame.len] == PLACE_SEPARATOR)
            map_drop(&c->places, map_key(e));
}

static const struct value_place *find_place(const struct content *c, struct str frame, struct str key)
{
    AUTO(buf_done) struct buf name = BUF_INIT(SIZE_MAX / 4);

    return c->places.live ? map_get(&c->places, name_of(&name, frame, key)) : NULL;
}

void place_copy(struct content *c, struct str from, struct str to, struct str key)
{
    AUTO(buf_done) struct buf name = BUF_INIT(SIZE_MAX / 4);
    const struct value_place *p = find_place(c, from, key);
    struct value_place *copy;

    if (!p)
        return;
    copy = mem_alloc(sizeof *copy);
    *copy = *p;
    free(map_put(&c->places, name_of(&name, to, key), copy));
}

/* ---- in snapshots ---- */

static struct str seq_key(const int64_t *seq)
{
    return (struct str){(const char *)seq, sizeof *seq};
}

void places_weigh(const struct content *c, struct map *ret_weights)
{
    for (struct map_entry *e = map_next(&c->places, NULL); e; e = map_next(&c->places, e)) {
        const struct value_place *p = e->value;
        const int64_t *before = map_get(ret_weights, seq_key(&p->seq));

        map_set_int(ret_weights, seq_key(&p->seq), (before ? *before : 0) + p->bytes);
    }
}

static bool is_worth(const struct value_place *p, const struct map *weights)
{
    const int64_t *weight = map_get(weights, seq_key(&p->seq));

    return weight && *weight >= p->event_bytes / 2;
}

void place_put_values(struct json_out *o, const struct content *c, struct str frame, const struct map *values,
                      const struct map *weights)
{
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(values, NULL); e; e = map_next(values, e)) {
        const struct value_place *p = weights ? find_place(c, frame, map_key(e)) : NULL;

        json_out_kraw(o, map_key(e), p && is_worth(p, weights) ? STR("null") : str_from(e->value));
    }
    json_out_end(o, '}');
}

void places_encode(struct json_out *o, const struct content *c, const struct map *weights)
{
    json_out_key(o, STR("places"));
    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(&c->places, NULL); e; e = map_next(&c->places, e)) {
        const struct value_place *p = e->value;

        json_out_key(o, map_key(e));
        json_out_begin(o, '[');
        json_out_int(o, p->seq);
        json_out_int(o, p->bytes);
        json_out_int(o, p->event_bytes);
        json_out_bool(o, is_worth(p, weights));
        json_out_end(o, ']');
    }
    json_out_end(o, '}');
}

static int64_t number_at(const struct json **item)
{
    int64_t n = 0;

    if (*item) {
        (void)json_int(*item, &n);
        *item = (*item)->next;
    }
    return n;
}

void places_decode(struct arena *a, struct content *c, const struct json *v)
{
    for (const struct json *m = v ? v->first : NULL; m; m = m->next) {
        struct value_place *p = mem_alloc(sizeof *p);
        const struct json *item = m->first;

        p->seq = number_at(&item);
        p->bytes = number_at(&item);
        p->event_bytes = number_at(&item);
        p->absent = item && item->type == JSON_TRUE;
        free(map_put(&c->places, json_key_text(a, m), p));
    }
}

/* ---- looking them up ---- */

int64_t places_next_absent(const struct content *c)
{
    for (struct map_entry *e = map_next(&c->places, NULL); e; e = map_next(&c->places, e)) {
        const struct value_place *p = e->value;

        if (p->absent)
            return p->seq;
    }
    return 0;
}

/* The frame is what stands before the first separator: no name of a node holds one. */
static bool fill_one(struct content *c, struct str name, struct value_place *p, const struct json *values)
{
    const char *end = memchr(name.ptr, PLACE_SEPARATOR, name.len);
    struct str frame = {name.ptr, end ? (size_t)(end - name.ptr) : name.len};
    struct str key = {name.ptr + frame.len + (end != NULL), name.len - frame.len - (end != NULL)};
    struct map *scope = position_scope(c, frame, false);
    const struct json *value = json_get(values, key);

    if (!end || !scope || !value || !map_get(scope, key) || (int64_t)json_source(value).len != p->bytes)
        return false;
    map_set_text(scope, key, json_source(value));
    p->absent = false;
    return true;
}

bool places_fill(struct content *c, const struct event *ev, struct arena *a)
{
    struct json *body;
    bool whole = true;

    arena_reset(a);
    if (json_parse(a, ev->body, NULL, &body, NULL, NULL))
        return false;
    for (struct map_entry *e = map_next(&c->places, NULL); e && whole; e = map_next(&c->places, e)) {
        struct value_place *p = e->value;

        if (p->absent && p->seq == ev->seq)
            whole = fill_one(c, map_key(e), p, json_get(body, STR("values")));
    }
    return whole;
}
