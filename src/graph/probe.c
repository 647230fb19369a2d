/* SPDX-License-Identifier: Apache-2.0 */
/* Informing an observer. The calls stand around a node's work in exec_job.c, and nowhere else. */
#include "graph/probe.h"

#include "graph/exec.h"

void graph_watch(tide_graph *graph, const struct probe *probe)
{
    graph->probe = probe;
}

static struct probe_node shown(const struct job *j)
{
    return (struct probe_node){.name = j->name, .visit = j->visit, .attempt = j->attempt, .node = j->place.node};
}

void probe_begin(const struct job *j)
{
    const struct probe *p = j->x->g->probe;
    const struct probe_node n = shown(j);

    if (p && !j->deciding)
        p->begin(p->arg, &n);
}

void probe_end(const struct job *j)
{
    const struct probe *p = j->x->g->probe;
    struct probe_node n = shown(j);

    n.ok = !j->code && j->ok;
    n.output = n.ok ? buf_view(&j->result.output) : STR("");
    if (p && !j->deciding)
        p->end(p->arg, &n);
}
