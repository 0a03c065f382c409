/* SPDX-License-Identifier: MIT */
/* Fuzzes what programs may write to ASSAY_METRICS_FD. */
#include "run/metrics.h"
#include "base/memory.h"
#include "base/strings.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    metrics_parse(&list, (const char *)data, size);
    assert(list.count <= METRICS_MAX);
    for (size_t i = 0; i < list.count; i++) {
        const struct metric *m = &list.items[i];
        assert(isfinite(m->value));
        /* What is kept can be printed as it is. */
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, m->unit, strlen(m->unit), SIZE_MAX);
        assert(str_eq(strbuf_text(&safe), m->unit));
        assert(metrics_find(&list, m->name) == m);
    }
    return 0;
}
