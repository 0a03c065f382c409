/* SPDX-License-Identifier: MIT */
#include "symbols/tables/symtab.h"
#include "base/fd.h"
#include "base/memory.h"
#include "symbols/tables/cache.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static void add(struct symtab_builder *b, uint64_t start, uint64_t size, enum symtab_binding bind,
                const char *name)
{
    symtab_add(b, start, size, UINT64_MAX, bind, name, strlen(name));
}

static const char *name_at(const struct symtab *table, uint64_t address)
{
    size_t length;
    uint32_t symbol = symtab_find(table, address);
    return symbol == SYMTAB_NONE ? "" : symtab_name(table, symbol, &length);
}

TEST(the_best_of_several_names_is_taken)
{
    struct symtab_builder b = {0};
    struct symtab t;
    add(&b, 100, 10, SYMTAB_WEAK, "weak");
    add(&b, 100, 10, SYMTAB_LOCAL, "local");
    add(&b, 100, 10, SYMTAB_GLOBAL, "__global");
    add(&b, 100, 10, SYMTAB_GLOBAL, "global");
    add(&b, 100, 0, SYMTAB_GLOBAL, "no_size_but_long");
    add(&b, 200, 10, SYMTAB_GLOBAL, "short");
    add(&b, 200, 10, SYMTAB_GLOBAL, "longer_name");
    symtab_build(&b, &t);
    CHECK_STR(name_at(&t, 100), "global");
    CHECK_STR(name_at(&t, 109), "global");
    CHECK_STR(name_at(&t, 110), "");
    CHECK_STR(name_at(&t, 205), "longer_name");
    CHECK_INT(t.symbol_count, 2);
    symtab_done(&t);
}

TEST(a_symbol_without_size_reaches_to_the_next_or_to_the_limit)
{
    struct symtab_builder b = {0};
    struct symtab t;
    add(&b, 100, 0, SYMTAB_GLOBAL, "first");
    add(&b, 150, 5, SYMTAB_GLOBAL, "second");
    symtab_add(&b, 200, 0, 220, SYMTAB_GLOBAL, "third", 5);
    add(&b, 300, 1, SYMTAB_GLOBAL, "fourth");
    symtab_build(&b, &t);
    CHECK_STR(name_at(&t, 149), "first");
    CHECK_STR(name_at(&t, 154), "second");
    CHECK_STR(name_at(&t, 155), "");
    CHECK_STR(name_at(&t, 219), "third");
    CHECK_STR(name_at(&t, 220), "");
    symtab_done(&t);
}

TEST(a_label_within_a_function_gives_way)
{
    struct symtab_builder b = {0};
    struct symtab t;
    add(&b, 100, 50, SYMTAB_GLOBAL, "function");
    add(&b, 110, 0, SYMTAB_GLOBAL, "label");
    add(&b, 145, 0, SYMTAB_GLOBAL, "last_label");
    add(&b, 160, 10, SYMTAB_GLOBAL, "next");
    symtab_build(&b, &t);
    CHECK_STR(name_at(&t, 112), "function");
    CHECK_STR(name_at(&t, 149), "function");
    CHECK_STR(name_at(&t, 150), "last_label");
    CHECK_STR(name_at(&t, 160), "next");
    symtab_done(&t);
}

TEST(code_that_replaced_other_code_wins)
{
    struct symtab_builder b = {.latest_wins = true};
    struct symtab t;
    add(&b, 100, 50, SYMTAB_GLOBAL, "old");
    add(&b, 80, 40, SYMTAB_GLOBAL, "new");
    add(&b, 110, 5, SYMTAB_GLOBAL, "newest");
    symtab_build(&b, &t);
    CHECK_STR(name_at(&t, 79), "");
    CHECK_STR(name_at(&t, 100), "new");
    CHECK_STR(name_at(&t, 112), "newest");
    CHECK_STR(name_at(&t, 115), "new");
    CHECK_STR(name_at(&t, 120), "old");
    CHECK_STR(name_at(&t, 150), "");
    symtab_done(&t);
}

TEST(offsets_and_addresses)
{
    struct symtab_builder b = {0};
    struct symtab t;
    symtab_add_segment(&b, 0x1000, 0x401000, 0x500);
    symtab_add_segment(&b, 0, 0x400000, 0x200);
    symtab_build(&b, &t);
    CHECK_INT(symtab_to_address(&t, 0x1010), 0x401010);
    CHECK_INT(symtab_to_address(&t, 0x10), 0x400010);
    CHECK_INT(symtab_to_address(&t, 0x9999), 0x9999);
    CHECK_INT(symtab_to_offset(&t, 0x4014ff), 0x14ff);
    CHECK_INT(symtab_to_offset(&t, 0x401500), 0x401500);
    symtab_done(&t);
}

TEST(a_name_of_100_kB_is_cut_and_odd_bytes_stay)
{
    struct symtab_builder b = {0};
    struct symtab t;
    CLEANUP(strbuf_done) struct strbuf name = {0};
    strbuf_pad(&name, 'x', 100000);
    symtab_add(&b, 100, 10, UINT64_MAX, SYMTAB_GLOBAL, name.data, name.length);
    add(&b, 200, 10, SYMTAB_GLOBAL, "\033[31m\xff\xfe\n");
    symtab_build(&b, &t);
    size_t length;
    symtab_name(&t, symtab_find(&t, 105), &length);
    CHECK_INT(length, SYMBOLS_NAME_MAX);
    CHECK_STR(name_at(&t, 205), "\033[31m\xff\xfe\n");
    symtab_done(&t);
}

static char folder[] = "/tmp/assay-symtab-XXXXXX";

static void build_small(struct symtab *t)
{
    struct symtab_builder b = {0};
    add(&b, 100, 10, SYMTAB_GLOBAL, "alpha");
    add(&b, 200, 10, SYMTAB_GLOBAL, "beta");
    symtab_add_segment(&b, 0, 0x1000, 0x100);
    symtab_build(&b, t);
}

TEST(a_cached_table_comes_back)
{
    struct error err = {0};
    struct symtab t, back;
    struct build_id id = build_id_from_bytes("\x12\x34\x56", 3);
    struct build_id other = build_id_from_bytes("\x12\x34\x57", 3);
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *below = memory_printf("%s/a/b", folder);
    build_small(&t);
    CHECK_INT(cache_load(below, &id, NULL, &back, &err), -ENOENT);
    CHECK_INT(cache_store(below, &id, "made from this", &t, &err), 0);
    CHECK_INT(cache_load(below, &id, "made from this", &back, &err), 0);
    CHECK(back.block.mapped);
    CHECK_STR(name_at(&back, 105), "alpha");
    CHECK_STR(name_at(&back, 209), "beta");
    CHECK_INT(symtab_to_address(&back, 5), 0x1005);
    symtab_done(&back);
    CHECK_INT(cache_load(below, &id, NULL, &back, &err), 0);
    symtab_done(&back);
    CHECK_INT(cache_load(below, &id, "made from that", &back, &err), -ESTALE);
    CHECK_INT(cache_load(below, &other, NULL, &back, &err), -ENOENT);
    symtab_done(&t);
}

/* Without the wait for the disk that file_write has. */
static void overwrite(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

/* Whatever is done to the file, it is refused or it is the same. */
TEST(a_damaged_cache_is_refused)
{
    struct error err = {0};
    struct symtab t, back;
    struct build_id id = build_id_from_bytes("\xab\xcd", 2);
    build_small(&t);
    CHECK_INT(cache_store(folder, &id, "source", &t, &err), 0);
    CLEANUP(memory_freep) char *path = memory_printf("%s/abcd.symtab", folder);
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    CHECK_INT(file_read(path, &bytes, &err), 0);
    for (size_t i = 0; i < bytes.length; i += i < 128 || i > 4200 ? 1 : 97) {
        bytes.data[i] ^= 0x20;
        overwrite(path, bytes.data, bytes.length);
        int r = cache_load(folder, &id, "source", &back, &err);
        if (r != -ESTALE)
            test_fail(__FILE__, __LINE__, "byte %zu changed: %d", i, r);
        bytes.data[i] ^= 0x20;
    }
    for (size_t length = 1; length < bytes.length; length += 131) {
        overwrite(path, bytes.data, length);
        CHECK_INT(cache_load(folder, &id, "source", &back, &err), -ESTALE);
    }
    overwrite(path, bytes.data, bytes.length);
    CHECK_INT(cache_load(folder, &id, "source", &back, &err), 0);
    symtab_done(&back);
    symtab_done(&t);
}

TEST(the_environment_switches_the_cache_off)
{
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    unsetenv("ASSAY_NO_CACHE");
    CLEANUP(memory_freep) char *path = cache_folder(NULL);
    CHECK_STR(path, "/nowhere/assay/symbols");
    setenv("ASSAY_NO_CACHE", "1", 1);
    CHECK(cache_folder(NULL) == NULL);
    CHECK(cache_folder("/given") == NULL);
    setenv("ASSAY_NO_CACHE", "0", 1);
    CLEANUP(memory_freep) char *given = cache_folder("/given");
    CHECK_STR(given, "/given");
}
