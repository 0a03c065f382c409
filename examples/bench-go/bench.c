/* SPDX-License-Identifier: MIT */
#include "_cgo_export.h"
#include <assay.h>

ASSAY_BENCH(split_fields, ASSAY_LIST(words, 10, 1000))
{
    int64_t found = words;
    for (uint64_t count; (count = assay->next(assay)) != 0;)
        found = splitFields(count, words);
    ASSAY_CHECK(found == words);
    ASSAY_ITEMS(words);
}
