/* SPDX-License-Identifier: MIT */
/* Batches of addresses of this very program and of its libraries. */
#include "base/memory.h"
#include "config.h"
#include "elf/table.h"
#include "symbols/addrspace.h"
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

/* Builds the address space of this process from what the kernel says of it. */
static struct processes *own_space(struct symbols *symbols)
{
    struct processes *processes = processes_new(symbols);
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    while (file && fgets(line, sizeof(line), file)) {
        unsigned long long start, end, offset, inode;
        char flags[5], path[4096] = "";
        if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %4095[^\n]", &start, &end, flags, &offset,
                   &inode, path) < 5 ||
            flags[2] != 'x')
            continue;
        struct process_map map = {
            .start = start, .length = end - start, .offset = offset, .path = path, .inode = inode};
        processes_map(processes, getpid(), &map);
    }
    if (file)
        fclose(file);
    return processes;
}

static __attribute__((noinline)) int plain_function(int value)
{
    __asm__ volatile("" : "+r"(value));
    return value * 3 + 1;
}

static inline __attribute__((always_inline)) int inlined_function(int value)
{
    __asm__ volatile("inlined_place: nop" : "+r"(value));
    return value + 1;
}

static __attribute__((noinline)) int outer_function(int value)
{
    return inlined_function(value) * 2;
}

extern const char inlined_place[];
__asm__(".globl inlined_place");

static struct location locate(struct processes *p, const void *address)
{
    struct location l;
    processes_find(p, getpid(), false, (uint64_t)(uintptr_t)address, 0, &l);
    return l;
}

TEST(functions_of_this_program_and_its_libraries)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = own_space(symbols);
    void *real_puts = dlsym(RTLD_DEFAULT, "puts");
    struct symbols_request r[] = {
        {.location = locate(p, (const char *)&plain_function + 2)},
        {.location = locate(p, real_puts)},
        {.location = locate(p, (void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR))},
        {.location = locate(p, (void *)16)},
    };
    CHECK_INT(plain_function(1), 4);
    symbols_resolve(symbols, r, ARRAY_COUNT(r), SYMBOLS_NAMES);
    CHECK(r[0].frames[0].function != NULL);
    if (r[0].frames[0].function) {
        CHECK_CONTAINS(r[0].frames[0].function->name, "plain_function");
        CHECK_INT(r[0].location.address - r[0].frames[0].function->start, 2);
        CHECK(r[0].frames[0].function->size > 2);
        CHECK_STR(module_name(r[0].frames[0].function->module), "unit-symbols-resolve");
    }
    CHECK(r[1].frames[0].function != NULL);
    CHECK(r[2].location.module == NULL || module_kind(r[2].location.module) == MODULE_VDSO);
    CHECK(r[3].frames[0].function == NULL && r[3].frame_count == 1);
    CHECK_INT(r[0].frame_count, 1);
    CHECK(r[0].frames[0].file == NULL);
    processes_free(p);
    symbols_free(symbols);
}

/* Where the vdso's own table has a function whose name ends so; 0 for none. */
static uint64_t vdso_offset_of(const char *ending)
{
    struct image image;
    uint64_t offset = 0;
    size_t left;
    if (image_open_own_vdso(&image, NULL) < 0)
        return 0;
    const struct image_section *section = image_find_type(&image, SHT_DYNSYM);
    struct elf_table table = {0};
    bool has_table = section && elf_table_read(&table, &image, section);
    for (size_t i = 0; has_table && i < table.count && !offset; i++) {
        Elf64_Sym symbol = elf_table_symbol(&table, i);
        size_t length;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
            str_has_suffix(elf_table_name(&table, symbol.st_name, SIZE_MAX, &length), ending))
            image_address_to_offset(&image, symbol.st_value, &offset, &left);
    }
    elf_table_done(&table);
    image_close(&image);
    return offset;
}

TEST(the_vdso_has_names)
{
    const char *vdso = (const char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct module *m = symbols_module(symbols, &(struct module_key){.path = "[vdso]"});
    uint64_t start = vdso ? vdso_offset_of("clock_gettime") : 0;
    if (!vdso) {
        test_skip("there is no vdso");
    } else {
        struct symbols_request r = {.location = {m, start}};
        symbols_resolve(symbols, &r, 1, SYMBOLS_NAMES);
        CHECK(start && r.frames[0].function);
        if (r.frames[0].function)
            CHECK(strstr(r.frames[0].function->name, "clock_gettime") != NULL);
        unsigned char code[16];
        CHECK_INT(module_read(m, start, code, sizeof(code)), sizeof(code));
        CHECK(memcmp(code, vdso + start, sizeof(code)) == 0);
    }
    symbols_free(symbols);
}

static void check_inlined(const struct symbols_request *r)
{
    CHECK_INT(r->frame_count, 2);
    if (r->frame_count != 2)
        return;
    CHECK_STR(r->frames[0].function->name, "inlined_function");
    CHECK(r->frames[0].inlined && !r->frames[1].inlined);
    CHECK_CONTAINS(r->frames[0].file, "tests/unit/symbols/resolve.c");
    CHECK(r->frames[0].line + 3 < r->frames[1].line);
    CHECK_CONTAINS(r->frames[0].function->declared_file, "resolve.c");
    CHECK(r->frames[0].function->declared_line + 1 < r->frames[0].line + 1);
    CHECK_CONTAINS(r->frames[1].function->name, "outer_function");
    CHECK_CONTAINS(r->frames[1].function->declared_file, "resolve.c");
    CHECK_INT(r->frames[1].function->declared_line, r->frames[1].line - 2);
}

TEST(inlined_functions_of_this_program)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = own_space(symbols);
    CHECK_INT(outer_function(1), 4);
    struct symbols_request r = {.location = locate(p, inlined_place)};
    symbols_resolve(symbols, &r, 1, SYMBOLS_INLINES);
    check_inlined(&r);
    symbols_resolve(symbols, &r, 1, SYMBOLS_LINES);
    CHECK_INT(r.frame_count, 1);
    CHECK_CONTAINS(r.frames[0].file, "resolve.c");
    symbols_resolve(symbols, &r, 1, SYMBOLS_INLINES); /* from the table this time */
    check_inlined(&r);
    processes_free(p);
    symbols_free(symbols);
}

/* Many addresses in many threads give what one address at a time gives. */
TEST(threads_agree_with_one)
{
    enum { COUNT = 20000 };
    struct symbols *many =
        symbols_new(&(struct symbols_options){.no_cache = true, .thread_count = 8});
    struct symbols *one =
        symbols_new(&(struct symbols_options){.no_cache = true, .thread_count = 1});
    struct symbols_request *a = memory_zalloc(COUNT, sizeof(*a));
    struct symbols_request *b = memory_zalloc(COUNT, sizeof(*b));
    struct processes *p = own_space(many), *q = own_space(one);
    const char *places[] = {(const char *)&plain_function,
                            (const char *)dlsym(RTLD_DEFAULT, "puts"),
                            (const char *)&symbols_resolve};
    for (size_t i = 0; i < COUNT; i++) {
        const char *at = places[i % 3] + i * 7 % 60000;
        a[i].location = locate(p, at);
        b[i].location = locate(q, at);
    }
    symbols_resolve(many, a, COUNT, SYMBOLS_INLINES);
    symbols_resolve(one, b, COUNT, SYMBOLS_INLINES);
    size_t named = 0, different = 0;
    for (size_t i = 0; i < COUNT; i++) {
        bool same = a[i].frame_count == b[i].frame_count;
        for (uint32_t f = 0; same && f < a[i].frame_count; f++) {
            const struct symbols_frame *x = &a[i].frames[f], *y = &b[i].frames[f];
            same = !x->function == !y->function && x->line == y->line && x->inlined == y->inlined &&
                   (!x->function || str_eq(x->function->linkage_name, y->function->linkage_name));
            named += x->function != NULL;
        }
        different += !same;
    }
    CHECK_INT(different, 0);
    CHECK(named > COUNT / 4);
    free(a);
    free(b);
    processes_free(p);
    processes_free(q);
    symbols_free(many);
    symbols_free(one);
}

TEST(build_ids)
{
    char text[BUILD_ID_TEXT];
    struct build_id a = build_id_from_bytes("\x01\xab\xff", 3), padded = {0}, none = {0};
    padded.size = 20; /* as older files of perf have it */
    memcpy(padded.bytes, a.bytes, 3);
    CHECK_STR(build_id_format(&a, text), "01abff");
    CHECK(build_id_equal(&a, &padded));
    CHECK(!build_id_equal(&a, &none));
    CHECK(!build_id_equal(&none, &none));
    CHECK_STR(build_id_format(&none, text), "");
    uint8_t many[64] = {1};
    CHECK_INT(build_id_from_bytes(many, sizeof(many)).size, BUILD_ID_MAX);
}
