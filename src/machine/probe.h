/* SPDX-License-Identifier: MIT */
/* Inside src/machine: how probes report, and the probes themselves in the order of the report. */
#ifndef ASSAY_MACHINE_PROBE_H
#define ASSAY_MACHINE_PROBE_H

#include "machine/machine.h"

/* Adds a finding; the pointer is good until the next one is added. */
struct finding *finding_add(struct machine *m, const char *id, const char *what,
                            enum finding_state state, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void finding_remedy(struct machine *m, struct finding *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_value(struct finding *f, int64_t value, const char *unit);
/* A formatted text that lives as long as the machine. */
const char *machine_text(struct machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether this process has the capability (CAP_SYS_ADMIN, …). */
bool machine_may(const struct machine *m, unsigned capability);

/* The numbers of the processors that are online, in order; the caller frees them. */
int *machine_online_cpus(size_t *ret_count);

typedef void machine_probe_fn(struct machine *m, enum machine_depth depth);

machine_probe_fn probe_identity, probe_pmu, probe_software, probe_tracing, probe_bpf, probe_cpu,
    probe_kernel, probe_host, probe_uring, probe_symbols, probe_tools;

#endif
