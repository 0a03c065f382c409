/* SPDX-License-Identifier: MIT */
/* Fuzzes the formats of tracepoints and the records that are printed by them: the text up to a zero
 * byte is a format, the rest a record.  */
#include "base/memory.h"
#include "tracepoints/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_format f;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const uint8_t *zero = memchr(data, 0, size);
    size_t length = zero ? (size_t)(zero - data) : size;
    if (tp_format_parse(&f, "fuzz", (const char *)data, length, NULL) == 0) {
        struct tp_record record = {data + length, size - length};
        struct json j = {.out = &out, .compact = true};
        tp_put(&f, record, &out);
        json_object(&j, NULL);
        tp_put_json(&f, record, &j);
        json_end(&j);
        tp_format_done(&f);
    }
    return 0;
}
