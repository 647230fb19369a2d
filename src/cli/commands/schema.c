/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark schema: the shapes of what commands print with --json, as JSON Schemas for programs. */
#include "base/nearest.h"
#include "cli/cli.h"
#include "terminal/table.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "names", .help = "print only the names, one per line"},
    {.name = NULL},
};

static const struct table_column columns[] = {{.head = "NAME"}, {.head = "WHAT IT IS", .gives = true}};

static const char *next_name(void *arg)
{
    const struct shape *const **at = arg;

    return **at ? (*(*at)++)->name : NULL;
}

static enum tide_code print_schema(struct out *out, const struct shape *shape, struct tide_err *err)
{
    AUTO(buf_done) struct buf flat = BUF_INIT((size_t)1 << 20);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out o = json_out_to(&flat);
    struct json *v = NULL;

    shape_schema(&o, shape);
    if (json_parse(&a, buf_view(&flat), NULL, &v, NULL, err))
        return tide_wrap(err, "schema");
    json_write_pretty(&out->text, v);
    outf(out, "\n");
    return TIDE_OK;
}

static void write_names(struct json_out *o, void *arg)
{
    (void)arg;
    for (const struct shape *const *s = shapes; *s; s++)
        json_out_str(o, str_from((*s)->name));
}

static void print_table(struct out *out)
{
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (const struct shape *const *s = shapes; *s; s++) {
        table_cell(&table, (*s)->name, COLOR_BOLD);
        table_cell(&table, (*s)->help, COLOR_NONE);
    }
    table_print(&table, out);
    table_done(&table);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const char *name = args_operand(&cli->args, 0), *near;
    const struct shape *shape = name ? shape_find(name) : NULL;
    const struct shape *const *at = shapes;

    if (shape)
        return print_schema(&cli->out, shape, err);
    if (name) {
        near = nearest(name, next_name, &at);
        return args_refuse(err, "name", "no schema '%.100s'%s%s%s: `tidemark schema` lists them", name,
                           near ? ", but there is '" : "", near ? near : "", near ? "'" : "");
    }
    if (cli->out.json)
        out_shape(&cli->out, &shape_ids, &(struct ids_listed){{write_names, NULL}});
    else if (!args_on(&cli->args, "names"))
        print_table(&cli->out);
    else
        for (; *at; at++)
            outf(&cli->out, "%s\n", (*at)->name);
    return TIDE_OK;
}

const struct command cmd_schema = {
    .name = "schema",
    .run = run,
    .operands = {{"NAME", VALUE_SCHEMA, OPERAND_OPTIONAL}},
    .options = options,
    .help = "print the JSON Schema of what commands print with --json; without NAME, list the schemas",
};
