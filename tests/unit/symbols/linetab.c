/* SPDX-License-Identifier: MIT */
#include "symbols/tables/linetab.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>

/* Two functions: the first has a call that was inlined, within another one. */
static void fill(struct linetab *t)
{
    uint32_t a = linetab_add_file(t, "/src/a.c"), b = linetab_add_file(t, "/src/b.h");
    uint32_t outer = linetab_add_origin(t, "outer", NULL, "/src/a.c", 1);
    uint32_t inner = linetab_add_origin(t, "inner", "_Z5innerv", "/src/b.h", 2);
    uint32_t root =
        linetab_add_node(t, (struct linetab_node){LINETAB_NONE, outer, LINETAB_NONE, 0});
    uint32_t call = linetab_add_node(t, (struct linetab_node){root, inner, a, 12});
    linetab_add_line(t, 0, a, 11);
    linetab_add_line(t, 16, b, 3);
    linetab_add_line(t, 32, a, 13);
    linetab_add_row(t, 0, root);
    linetab_add_row(t, 16, call);
    linetab_add_row(t, 32, root);
    linetab_add_span(t, 0x2000, 0x2040);
    linetab_add_line(t, 0, a, 40);
    linetab_add_line(t, 8, LINETAB_NONE, 0);
    linetab_add_span(t, 0x1000, 0x1010);
    linetab_add_span(t, 0x5000, 0x6000); /* nothing is known here */
    linetab_sort(t);
}

static const char *file_at(const struct linetab *t, uint64_t address, uint32_t *ret_line)
{
    const struct linetab_span *span = linetab_find(t, address);
    uint32_t file = LINETAB_NONE;
    *ret_line = 0;
    if (span)
        linetab_place(t, span, address, &file, ret_line);
    const char *path = linetab_file(t, file);
    return path ? path : "";
}

static void check(const struct linetab *t)
{
    uint32_t line;
    CHECK_STR(file_at(t, 0x2005, &line), "/src/a.c");
    CHECK_INT(line, 11);
    CHECK_STR(file_at(t, 0x201f, &line), "/src/b.h");
    CHECK_INT(line, 3);
    CHECK_STR(file_at(t, 0x203f, &line), "/src/a.c");
    CHECK_INT(line, 13);
    CHECK_STR(file_at(t, 0x1004, &line), "/src/a.c");
    CHECK_STR(file_at(t, 0x1008, &line), "");
    CHECK(linetab_find(t, 0x2040) == NULL);
    CHECK(linetab_find(t, 0xfff) == NULL);
    const struct linetab_span *unknown = linetab_find(t, 0x5fff);
    CHECK(unknown && linetab_node_at(t, unknown, 0x5fff) == LINETAB_NONE);

    const struct linetab_span *span = linetab_find(t, 0x2010);
    const struct linetab_node *call = linetab_node(t, linetab_node_at(t, span, 0x2010));
    CHECK(call && call->call_line == 12);
    if (!call)
        return;
    const struct linetab_origin *inner = linetab_origin(t, call->origin);
    CHECK_STR(linetab_string(t, inner->linkage_name), "_Z5innerv");
    const struct linetab_node *root = linetab_node(t, call->parent);
    CHECK(root && root->parent == LINETAB_NONE);
    CHECK_STR(linetab_string(t, linetab_origin(t, root->origin)->name), "outer");
    CHECK(linetab_string(t, linetab_origin(t, root->origin)->linkage_name) == NULL);
}

TEST(what_was_added_is_found)
{
    CLEANUP(linetab_done) struct linetab t = {0};
    CHECK(linetab_find(&t, 0) == NULL);
    fill(&t);
    check(&t);
    CHECK_INT(linetab_add_file(&t, "/src/b.h"), 1);
    CHECK_INT(linetab_add_file(&t, NULL), LINETAB_NONE);
    CHECK_INT(linetab_add_origin(&t, "inner", "_Z5innerv", "/src/b.h", 2), 1);
    CHECK_INT(linetab_add_origin(&t, "inner", NULL, "/src/b.h", 2), 2);
}

TEST(a_table_comes_back_from_its_bytes_and_grows_on)
{
    CLEANUP(linetab_done) struct linetab t = {0}, back = {0};
    struct build_id id = build_id_from_bytes("\1\2\3\4", 4);
    fill(&t);
    struct sealed_block block = linetab_seal(&t, &id, "source");
    CHECK_INT(linetab_unseal(&back, block, &id, "source", NULL), 0);
    check(&back);
    CHECK(!back.changed);
    CHECK_INT(linetab_add_file(&back, "/src/b.h"), 1);
    CHECK_INT(linetab_add_file(&back, "/src/new.c"), 2);
    CHECK(back.changed);
    linetab_add_line(&back, 0, 2, 99);
    linetab_add_span(&back, 0x3000, 0x3010);
    linetab_sort(&back);
    check(&back);
    uint32_t line;
    CHECK_STR(file_at(&back, 0x3001, &line), "/src/new.c");
    CHECK_INT(line, 99);
}

TEST(another_build_other_files_and_damage_are_refused)
{
    CLEANUP(linetab_done) struct linetab t = {0}, back = {0};
    struct build_id id = build_id_from_bytes("\1\2\3\4", 4);
    struct build_id other = build_id_from_bytes("\1\2\3\5", 4);
    fill(&t);
    struct sealed_block block = linetab_seal(&t, &id, "source");
    CHECK_INT(linetab_unseal(&back, block, &other, "source", NULL), -ESTALE);
    block = linetab_seal(&t, &id, "source");
    CHECK_INT(linetab_unseal(&back, block, &id, "other source", NULL), -ESTALE);
    for (size_t i = 0; i < block.size; i += i < 64 || i > 4200 ? 1 : 61) {
        block = linetab_seal(&t, &id, "source");
        ((uint8_t *)block.bytes)[i] ^= 1;
        CHECK_INT(linetab_unseal(&back, block, &id, "source", NULL), -ESTALE);
    }
}

/* Numbers that point anywhere, under a checksum that is right. */
TEST(a_table_that_lies_does_no_harm)
{
    uint32_t seed = 5, line;
    struct build_id id = build_id_from_bytes("\1\2\3\4", 4);
    for (int round = 0; round < 3000; round++) {
        CLEANUP(linetab_done) struct linetab t = {0}, back = {0};
        fill(&t);
        struct sealed_block block = linetab_seal(&t, &id, "source");
        for (int i = 0; i < 8; i++) {
            seed = seed * 1103515245u + 12345u;
            size_t place = sizeof(struct sealed_header) +
                           (seed >> 8) % (block.size - sizeof(struct sealed_header));
            ((uint8_t *)block.bytes)[place] = (uint8_t)(seed >> 3);
        }
        sealed_close(&block, SEALED_LINES, LINETAB_VERSION, &id, "source");
        if (linetab_unseal(&back, block, &id, NULL, NULL) < 0)
            continue;
        for (uint64_t address = 0x1000; address < 0x6000; address += 0x11) {
            file_at(&back, address, &line);
            const struct linetab_span *span = linetab_find(&back, address);
            const struct linetab_node *node =
                span ? linetab_node(&back, linetab_node_at(&back, span, address)) : NULL;
            int depth = 0;
            for (; node; depth++)
                node = linetab_node(&back, node->parent);
            CHECK(depth <= 2);
        }
    }
}
