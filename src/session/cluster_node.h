/* SPDX-License-Identifier: MIT */
/*
 * The node that a task runs on: its name, what it is, which type of node that makes it (builds are
 * shared within a type), and whether it can measure what a cell needs.
 *
 * What a spec needs, under `needs:` or as the attribute `needs` of a factor's value, are findings
 * of `assay doctor` by their ids: pmu, io-uring, …
 */
#ifndef ASSAY_SESSION_CLUSTER_NODE_H
#define ASSAY_SESSION_CLUSTER_NODE_H

#include "machine/machine.h"
#include "spec/matrix.h"

/* SLURMD_NODENAME, else the host's name.  The caller frees it. */
char *node_name(void);
/* Nodes of the same type run the same programs: architecture, processor and distribution. */
char *node_type(const struct machine *m);
/* The document `node:NAME` of an experiment: one JSON object whose first members are texts. */
char *node_json(const struct machine *m, const char *name);

/* ASSAY_LACKS in this node's environment names the finding or event: it is not to be used for it.
 */
bool node_lacks(const char *name);

enum { NEEDS_MAX = 31 };

/* The different needs of a spec. */
struct needs {
    const char *names[NEEDS_MAX];
    size_t lengths[NEEDS_MAX];
    size_t count;
};

/* The machine is only asked which findings there are; any will do. */
int needs_read(struct needs *n, const struct matrix *m, const struct machine *machine,
               struct error *err);
/* A bit for each. */
uint32_t needs_of_cell(const struct needs *n, const struct matrix *m, size_t cell);
/* The first that the machine has not, with its reason; false when it has them all. */
bool needs_lack(const struct needs *n, uint32_t needs, const struct machine *m, struct strbuf *why);

#endif
