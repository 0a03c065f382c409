/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of cached source lines, with a checksum that is right. */
#include "symbols/tables/linetab.h"
#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct linetab *t, uint64_t address)
{
    const struct linetab_span *span = linetab_find(t, address);
    uint32_t file, line;
    if (!span)
        return;
    linetab_place(t, span, address, &file, &line);
    linetab_file(t, file);
    const struct linetab_node *node = linetab_node(t, linetab_node_at(t, span, address));
    while (node) {
        const struct linetab_origin *o = linetab_origin(t, node->origin);
        if (o)
            linetab_string(t, o->name);
        node = linetab_node(t, node->parent);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sealed_block block = {.bytes = memory_alloc(size), .size = size};
    struct build_id id = build_id_from_bytes("fuzz", 4);
    struct linetab t;
    memcpy(block.bytes, data, size);
    if (size >= sizeof(struct sealed_header))
        sealed_close(&block, SEALED_LINES, LINETAB_VERSION, &id, "fuzz");
    if (linetab_unseal(&t, block, &id, NULL, NULL) < 0)
        return 0;
    const struct linetab_span *spans = t.spans.items;
    for (size_t i = 0; i < t.spans.count && i < 1000; i++) {
        look_up(&t, spans[i].start);
        look_up(&t, spans[i].end - 1);
    }
    uint32_t node = linetab_add_node(&t, (struct linetab_node){.parent = LINETAB_NONE});
    linetab_add_origin(&t, "name", NULL, "file.c", 1);
    linetab_add_row(&t, 0, node);
    linetab_add_span(&t, 1, 10);
    linetab_sort(&t);
    look_up(&t, 5);
    linetab_done(&t);
    return 0;
}
