/* SPDX-License-Identifier: MIT */
/* A command under many kernels, as text for people and JSON for programs. */
#ifndef ASSAY_REPORT_EXACT_SWEEP_H
#define ASSAY_REPORT_EXACT_SWEEP_H

#include "base/strings.h"
#include "exact/sweep.h"

struct sweep_view {
    const struct sweep *sweep;
    char *const *argv;
    double threshold; /* a share */
};

void report_sweep_text(struct strbuf *out, const struct sweep_view *v);
void report_sweep_json(struct strbuf *out, const struct sweep_view *v);

#endif
