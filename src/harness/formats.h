/* SPDX-License-Identifier: MIT */
/* What each format gives to the table in harness.c. */
#ifndef ASSAY_HARNESS_FORMATS_H
#define ASSAY_HARNESS_FORMATS_H

#include "harness/harness.h"

#define HARNESS_JSON(format)                         \
    bool format##_is(const struct json_t *document); \
    int format##_read(struct harness_results *r, const struct json_t *document, struct error *err)
#define HARNESS_TEXT(format)            \
    bool format##_is(const char *text); \
    int format##_read(struct harness_results *r, const char *text, struct error *err)
#define HARNESS_DIRECTORY(format)       \
    bool format##_is(const char *path); \
    int format##_read(struct harness_results *r, const char *path, struct error *err)

HARNESS_JSON(fio);
HARNESS_JSON(google_benchmark);
HARNESS_JSON(hyperfine);
HARNESS_JSON(iperf3);
HARNESS_JSON(jmh);
HARNESS_JSON(lkp_json);
HARNESS_JSON(nanobench);
HARNESS_JSON(pyperf);
HARNESS_JSON(pytest);
HARNESS_TEXT(catch2);
HARNESS_TEXT(criterion_text);
HARNESS_TEXT(divan);
HARNESS_TEXT(fio_text);
HARNESS_TEXT(go_bench);
HARNESS_TEXT(perf_csv);
HARNESS_TEXT(perf_json);
HARNESS_TEXT(pgbench);
HARNESS_TEXT(redis);
HARNESS_TEXT(stress_ng);
HARNESS_TEXT(sysbench);
HARNESS_DIRECTORY(criterion);
HARNESS_DIRECTORY(lkp);

#endif
