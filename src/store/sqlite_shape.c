/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the tables, indexes and views of a store are those that we made. Anybody can open the file and run SQL in it. A
 * trigger would act in our transactions from then on, an index could refuse our rows, a table with other rules could change them: such a
 * store is refused when it is opened, by the name of what is there. Missing indexes and views hold nothing: the check names them and
 * makes them anew. What is expected is the text of the statements that make them, as SQLite keeps it.
 */
#include "store/sqlite_db.h"

#define OBJECTS_MAX 40

static const struct object_kind {
    const char *create, *type;
} kinds[] = {{"CREATE TABLE ", "table"},
             {"CREATE INDEX ", "index"},
             {"CREATE UNIQUE INDEX ", "index"},
             {"CREATE VIEW ", "view"}};

struct object {
    const struct object_kind *kind;
    struct str name, sql; /* sql: from the name on */
};

/* What is wrong with one of them. */
enum {
    REFUSED = 1,     /* it is not to be opened like this */
    IS_TRIGGER = 2,  /* which was never ours */
    CAN_REBUILD = 4, /* a check that rebuilds makes it anew */
};

struct finding {
    unsigned flags;
    char text[400];
};

typedef void finding_fn(void *arg, const struct finding *f);

static bool take_word(struct str *at, struct str word)
{
    bool found = str_starts(*at, word);

    if (found)
        *at = (struct str){at->ptr + word.len, at->len - word.len};
    return found;
}

/* "CREATE TABLE IF NOT EXISTS name(…)", as written here and, without the words in the middle, in the file. */
static bool object_of(struct str at, struct object *ret)
{
    size_t len = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!take_word(&at, str_from(kinds[i].create)))
            continue;
        take_word(&at, STR("IF NOT EXISTS "));
        while (len < at.len && at.ptr[len] != '(' && at.ptr[len] != ' ')
            len++;
        *ret = (struct object){&kinds[i], {at.ptr, len}, at};
        return true;
    }
    return false;
}

static size_t expect_from(const char *statements, struct object *ret)
{
    size_t n = 0;

    for (const char *at = statements, *end; (end = strchr(at, ';')); at = end + 1)
        n += object_of((struct str){at, (size_t)(end - at)}, &ret[n]);
    return n;
}

static bool is_word(struct str s, const char *word)
{
    return str_eq(s, str_from(word));
}

static void find_differences(finding_fn *fn, void *arg, unsigned flags, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void find_differences(finding_fn *fn, void *arg, unsigned flags, const char *fmt, ...)
{
    struct finding f = {.flags = flags};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f.text, sizeof f.text, fmt, ap);
    va_end(ap);
    for (char *p = f.text; *p; p++)
        *p = (unsigned char)*p < ' ' || *p == 127 ? '?' : *p;
    fn(arg, &f);
}

/* SQLite's own: of AUTOINCREMENT, of UNIQUE, of ANALYZE. */
static bool is_sqlites(struct str type, struct str name)
{
    return str_starts(name, STR("sqlite_")) && (is_word(type, "table") || is_word(type, "index"));
}

static void judge_known(const struct object *o, struct str type, struct str sql, finding_fn *fn, void *arg)
{
    struct object there;

    if (object_of(sql, &there) && there.kind == o->kind && str_eq(there.sql, o->sql))
        return;
    if (is_word(type, "table") && is_word(type, o->kind->type))
        find_differences(fn, arg, REFUSED,
                         "table '%.*s' is not as Tidemark made it: restore the store from a copy or from exports",
                         STR_ARG(o->name));
    else /* a view that says something else is in nobody's way */
        find_differences(
            fn, arg, CAN_REBUILD | (is_word(type, "view") && is_word(type, o->kind->type) ? 0 : REFUSED),
            "%.*s '%.*s' is not as Tidemark made it: remove it (`DROP %.*s \"%.*s\"` in sqlite3), then rebuild it",
            STR_ARG(type), STR_ARG(o->name), STR_ARG(type), STR_ARG(o->name));
}

static void judge_row(const struct object *objects, size_t n, bool *seen, sqlite3_stmt *st, finding_fn *fn, void *arg)
{
    struct str type = db_text(st, 0), name = db_text(st, 1);

    if (is_sqlites(type, name))
        return;
    for (size_t i = 0; i < n; i++)
        if (str_eq(objects[i].name, name) && !is_word(type, "trigger")) {
            seen[i] = true;
            judge_known(&objects[i], type, db_text(st, 2), fn, arg);
            return;
        }
    find_differences(fn, arg, REFUSED | (is_word(type, "trigger") ? IS_TRIGGER : 0),
                     "%.*s '%.*s' is not Tidemark's%s: remove it (`DROP %.*s \"%.*s\"` in sqlite3)", STR_ARG(type),
                     STR_ARG(name), is_word(type, "trigger") ? ", and would act in its transactions" : "",
                     STR_ARG(type), STR_ARG(name));
}

static void judge_missing(const struct object *o, finding_fn *fn, void *arg)
{
    bool holds = o->kind == &kinds[0];

    find_differences(fn, arg, holds ? REFUSED : CAN_REBUILD, "%s '%.*s' is missing%s", o->kind->type, STR_ARG(o->name),
                     holds ? ": restore the store from a copy or from exports" : "");
}

/* An SQLite code. */
static int judge_schema(struct conn *c, finding_fn *fn, void *arg)
{
    struct object objects[OBJECTS_MAX];
    bool seen[OBJECTS_MAX] = {false};
    size_t tables = expect_from(schema_tables, objects), n = tables + expect_from(schema_views, objects + tables);
    sqlite3_stmt *st = db_stmt(c, ST_SCHEMA);
    int rc;

    while ((rc = db_step(c, st)) == SQLITE_ROW)
        judge_row(objects, n, seen, st, fn, arg);
    sqlite3_reset(st);
    for (size_t i = 0; i < n && rc == SQLITE_DONE; i++)
        if (!seen[i])
            judge_missing(&objects[i], fn, arg);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

struct refusal {
    bool older; /* its tables are others, and will be changed; triggers were never ours */
    struct finding first;
    int n;
};

static void note_refusal(void *arg, const struct finding *f)
{
    struct refusal *r = arg;

    if (f->flags & REFUSED && (!r->older || f->flags & IS_TRIGGER) && r->n++ == 0)
        r->first = *f;
}

enum tide_code shape_check(struct sqlite_store *s, bool older, struct tide_err *err)
{
    struct refusal r = {.older = older};
    int rc = judge_schema(&s->w, note_refusal, &r);
    char more[40] = "";

    if (rc)
        return db_fail(s, &s->w, rc, err, "read what tables there are");
    if (r.n > 1)
        snprintf(more, sizeof more, " (and %d more)", r.n - 1);
    if (!r.n)
        return TIDE_OK;
    tide_fail(err, TIDE_CORRUPT, "'%s' was changed by SQL: %s%s", s->path, r.first.text, more);
    if (r.first.flags & CAN_REBUILD)
        tide_hint_with(err, TIDE_ACTION_CHECK_STORE, "", "\"rebuild\":true");
    return tide_about(err, TIDE_SUBJECT_FILE, s->path);
}

static void add_finding(void *arg, const struct finding *f)
{
    buf_add(arg, f->text, strlen(f->text) + 1);
}

int shape_problems(struct sqlite_store *s, struct conn *c, struct buf *out)
{
    (void)s;
    return judge_schema(c, add_finding, out);
}

int shape_rebuild(struct sqlite_store *s)
{
    int rc = sqlite3_exec(s->w.db, schema_tables, NULL, NULL, NULL);

    return rc ? rc : sqlite3_exec(s->w.db, schema_views, NULL, NULL, NULL);
}
