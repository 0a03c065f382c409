/* SPDX-License-Identifier: MIT */
/* Figures of a load: as a table, as JSON, and as metrics for the experiment that asked. */
#ifndef ASSAY_VR_REPORT_H
#define ASSAY_VR_REPORT_H

#include "base/error.h"
#include "vr/load/load.h"

#define VR_FIGURES_MAX 64

struct vr_figure {
    char name[40];
    const char *unit, *words; /* words NULL: not in the table */
    double value;
};

struct vr_figures {
    struct vr_figure items[VR_FIGURES_MAX];
    size_t count;
};

void vr_figures_add(struct vr_figures *f, const char *name, const char *unit, const char *words,
                    double value);
/* Throughput and latencies. */
void vr_figures_load(struct vr_figures *f, const struct vr_load_settings *s,
                     const struct vr_load_result *r);
/* head is one line above the table.  Metrics go to ASSAY_METRICS_FD. */
int vr_figures_print(const struct vr_figures *f, const char *head, bool json, struct error *err);

#endif
