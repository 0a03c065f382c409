/* SPDX-License-Identifier: MIT */
/* Fuzzes a spool's content: records behind their checksums, and one whose checksum would be right.
 */
#include "store/spool.h"
#include "base/memory.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the record in the order that its own bytes choose. */
static void read_record(const char *bytes, size_t size)
{
    struct record_reader r = {.at = bytes, .end = bytes + size};
    while (!r.bad && r.at < r.end) {
        const char *before = r.at;
        size_t length = 0;
        switch (*r.at & 3) {
        case 0:
            record_i64(&r);
            break;
        case 1: {
            const char *text = record_text(&r);
            assert(!text || text + strlen(text) < r.end);
            break;
        }
        case 2: {
            const char *got = record_bytes(&r, &length);
            assert(!got || got + length == r.at);
            break;
        }
        default:
            length = record_count(&r, 8);
            assert(length <= size / 8);
        }
        assert(r.bad || (r.at > before && r.at <= r.end));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(strbuf_done) struct strbuf content = {0}, record = {0};
    strbuf_append(&content, (const char *)data, size);
    size_t position = 0, before = 0;
    struct error err;
    while (spool_next(&content, &position, &record, &err) > 0) {
        assert(position > before && position <= size);
        before = position;
        read_record(record.data ? record.data : "", record.length);
    }
    read_record((const char *)data, size);
    return 0;
}
