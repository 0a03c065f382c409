/* SPDX-License-Identifier: MIT */
/* perf maps and jitdump files, alone and through the address space of a process. */
#include "base/fd.h"
#include "base/memory.h"
#include "symbols/addrspace.h"
#include "symbols/names/jitdump.h"
#include "symbols/names/perfmap.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *name_at(const struct symtab *table, uint64_t address)
{
    size_t length;
    uint32_t symbol = symtab_find(table, address);
    return symbol == SYMTAB_NONE ? "" : symtab_name(table, symbol, &length);
}

TEST(perf_maps)
{
    static const char text[] = "1000 20 first method\n"
                               "0x2000 0x10 with_prefix\r\n"
                               "\n"
                               "not a line\n"
                               "3000 0 empty\n"
                               "1010 8 replaced\n"
                               "ffffffffffffff00 200 wraps\n"
                               "4000 10 last";
    struct symtab_builder b = {.latest_wins = true};
    struct symtab t;
    CHECK_INT(perfmap_parse(text, sizeof(text) - 1, &b), 3);
    symtab_build(&b, &t);
    CHECK_STR(name_at(&t, 0x1000), "first method");
    CHECK_STR(name_at(&t, 0x1014), "replaced");
    CHECK_STR(name_at(&t, 0x1018), "first method");
    CHECK_STR(name_at(&t, 0x200f), "with_prefix");
    CHECK_STR(name_at(&t, 0x400f), "last");
    symtab_done(&t);
}

static void put(struct strbuf *b, const void *bytes, size_t size)
{
    strbuf_append(b, bytes, size);
}

static void put_u32(struct strbuf *b, uint32_t value)
{
    put(b, &value, sizeof(value));
}

static void put_u64(struct strbuf *b, uint64_t value)
{
    put(b, &value, sizeof(value));
}

static void put_header(struct strbuf *b)
{
    put_u32(b, 0x4a695444);
    put_u32(b, 1);
    put_u32(b, 40);
    put_u32(b, 62);
    put_u32(b, 0);
    put_u32(b, 1);
    put_u64(b, 0);
    put_u64(b, 0);
}

static void put_load(struct strbuf *b, uint64_t time, uint64_t address, uint64_t index,
                     const char *name)
{
    static const char code[16] = "\x90\x90\xc3";
    put_u32(b, 0);
    put_u32(b, (uint32_t)(16 + 40 + strlen(name) + 1 + sizeof(code)));
    put_u64(b, time);
    put_u32(b, 1);
    put_u32(b, 1);
    put_u64(b, address);
    put_u64(b, address);
    put_u64(b, sizeof(code));
    put_u64(b, index);
    put(b, name, strlen(name) + 1);
    put(b, code, sizeof(code));
}

static void put_move(struct strbuf *b, uint64_t time, uint64_t from, uint64_t to, uint64_t index)
{
    put_u32(b, 1);
    put_u32(b, 16 + 48);
    put_u64(b, time);
    put_u32(b, 1);
    put_u32(b, 1);
    put_u64(b, to);
    put_u64(b, from);
    put_u64(b, to);
    put_u64(b, 16);
    put_u64(b, index);
}

static void put_lines(struct strbuf *b, uint64_t time, uint64_t address)
{
    put_u32(b, 2);
    put_u32(b, 16 + 16 + 2 * 16 + 6 + 2);
    put_u64(b, time);
    put_u64(b, address);
    put_u64(b, 2);
    put_u64(b, address);
    put_u32(b, 10);
    put_u32(b, 0);
    put(b, "a.js\0", 5);
    put_u64(b, address + 8);
    put_u32(b, 11);
    put_u32(b, 0);
    put(b, "\xff", 2);
    put(b, "", 1);
}

static void make_dump(struct strbuf *b)
{
    put_header(b);
    put_lines(b, 90, 0x7000);
    put_load(b, 100, 0x7000, 1, "first");
    put_load(b, 200, 0x7000, 2, "second");
    put_move(b, 300, 0x7000, 0x9000, 2);
}

TEST(jitdump_records)
{
    CLEANUP(strbuf_done) struct strbuf b = {0};
    CLEANUP(jitdump_done) struct jitdump dump;
    struct error err;
    make_dump(&b);
    CHECK_INT(jitdump_parse(b.data, b.length, &dump, &err), 0);
    CHECK_INT(dump.count, 3);
    CHECK(!dump.truncated);
    if (dump.count == 3) {
        CHECK_STR(dump.codes[0].name, "first");
        CHECK_INT(dump.codes[0].line_count, 2);
        CHECK_STR(dump.codes[0].lines[1].file, "a.js");
        CHECK_INT(dump.codes[0].lines[1].line, 11);
        CHECK_INT(dump.codes[1].line_count, 0);
        CHECK(dump.codes[2].moved);
        CHECK_INT(dump.codes[2].address, 0x9000);
    }
}

TEST(a_jitdump_cut_anywhere_gives_what_it_holds)
{
    CLEANUP(strbuf_done) struct strbuf b = {0};
    make_dump(&b);
    size_t last = 0;
    for (size_t length = 0; length <= b.length; length++) {
        struct jitdump dump;
        CLEANUP(memory_freep) char *part = memory_strndup(b.data, length); /* for ASan's sake */
        int r = jitdump_parse(part, length, &dump, NULL);
        CHECK_INT(r, length < 40 ? -EBADMSG : 0);
        CHECK(dump.count >= last);
        last = dump.count;
        jitdump_done(&dump);
    }
    CHECK_INT(last, 3);
}

TEST(what_is_no_jitdump_is_said)
{
    struct jitdump dump;
    struct error err;
    char bytes[40] = "\x4a\x69\x54\x44\x01";
    CHECK_INT(jitdump_parse(bytes, sizeof(bytes), &dump, &err), -EBADMSG);
    CHECK_CONTAINS(err.message, "byte order");
    jitdump_done(&dump);
    CHECK_INT(jitdump_parse("hello", 5, &dump, &err), -EBADMSG);
    jitdump_done(&dump);
}

static const char *name_of(struct symbols *symbols, struct processes *p, pid_t pid,
                           uint64_t address, uint64_t time_ns)
{
    struct symbols_request r = {0};
    if (!processes_find(p, pid, false, address, time_ns, &r.location))
        return "(no map)";
    symbols_resolve(symbols, &r, 1, SYMBOLS_LINES);
    return r.frames[0].function ? r.frames[0].function->name : "(no name)";
}

TEST(code_of_a_jit_compiler_changes_with_time)
{
    char folder[] = "/tmp/assay-jit-XXXXXX";
    struct error err;
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *path = memory_printf("%s/jit-4711.dump", folder);
    CLEANUP(strbuf_done) struct strbuf b = {0};
    make_dump(&b);
    CHECK_INT(file_write(path, b.data, b.length, &err), 0);
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = processes_new(symbols);
    struct process_map map = {.start = 0x5000, .length = 0x1000, .path = path, .time_ns = 50};
    processes_map(p, 4711, &map);
    struct process_map code = {.start = 0x7000, .length = 0x3000, .path = "//anon", .time_ns = 60};
    processes_map(p, 4711, &code);
    CHECK_STR(name_of(symbols, p, 4711, 0x7004, 150), "first");
    CHECK_STR(name_of(symbols, p, 4711, 0x7004, 250), "second");
    CHECK_STR(name_of(symbols, p, 4711, 0x9004, 350), "second");
    CHECK_STR(name_of(symbols, p, 4711, 0x9f00, 350), "(no name)");
    struct symbols_request r = {0};
    processes_find(p, 4711, false, 0x9001, 350, &r.location);
    unsigned char bytes[4] = {0};
    CHECK_INT(module_read(r.location.module, r.location.address, bytes, 2), 2);
    CHECK_INT(bytes[0], 0x90);
    CHECK_INT(bytes[1], 0xc3);
    processes_free(p);
    symbols_free(symbols);
    unlink(path);
    rmdir(folder);
}

TEST(lines_of_jit_code)
{
    char folder[] = "/tmp/assay-jit-XXXXXX";
    struct error err;
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *path = memory_printf("%s/jit-12.dump", folder);
    CLEANUP(strbuf_done) struct strbuf b = {0};
    make_dump(&b);
    CHECK_INT(file_write(path, b.data, b.length, &err), 0);
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = processes_new(symbols);
    processes_map(p, 12, &(struct process_map){.start = 1, .length = 1, .path = path});
    struct symbols_request r = {0};
    CHECK(processes_find(p, 12, false, 0x700a, 100, &r.location));
    symbols_resolve(symbols, &r, 1, SYMBOLS_LINES);
    CHECK_STR(r.frames[0].file, "a.js");
    CHECK_INT(r.frames[0].line, 11);
    /* A sample whose clock is not the dump's still finds the code. */
    struct processes *other = processes_new(symbols);
    processes_map(other, 12, &(struct process_map){.start = 1, .length = 1, .path = path});
    CHECK_STR(name_of(symbols, other, 12, 0x9003, 5), "second");
    processes_free(other);
    processes_free(p);
    symbols_free(symbols);
    unlink(path);
    rmdir(folder);
}

TEST(anonymous_memory_is_named_by_the_perf_map)
{
    char folder[] = "/tmp/assay-jit-XXXXXX";
    struct error err;
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *path = memory_printf("%s/perf-321.map", folder);
    CHECK_INT(file_write(path, "7f0010 10 jitted\n", 17, &err), 0);
    struct symbols_options options = {.no_cache = true, .perfmap_folder = folder};
    struct symbols *symbols = symbols_new(&options);
    struct processes *p = processes_new(symbols);
    struct process_map map = {.start = 0x7f0000, .length = 0x1000, .offset = 77, .path = "//anon"};
    processes_map(p, 321, &map);
    processes_fork(p, 321, 322);
    CHECK_STR(name_of(symbols, p, 321, 0x7f0018, 0), "jitted");
    CHECK_STR(name_of(symbols, p, 322, 0x7f0018, 0), "jitted");
    CHECK_STR(name_of(symbols, p, 321, 0x7f0028, 0), "(no name)");
    processes_free(p);
    symbols_free(symbols);
    unlink(path);
    rmdir(folder);
}

/* As perf does, for root, too: anybody may write to /tmp. */
TEST(perf_maps_and_dumps_of_others_are_refused)
{
    char folder[] = "/tmp/assay-jit-XXXXXX";
    struct error err;
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *path = memory_printf("%s/perf-321.map", folder);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CHECK_INT(perfmap_read_file(path, &text), PERFMAP_MISSING);
    CHECK_INT(file_write(path, "7f0010 10 jitted\n", 17, &err), 0);
    CHECK_INT(perfmap_read_file(path, &text), PERFMAP_READ);
    if (chown(path, 12345, 12345) == 0) { /* as root only */
        CHECK_INT(perfmap_read_file(path, &text), PERFMAP_FOREIGN);
        struct symbols_options options = {.no_cache = true, .perfmap_folder = folder};
        struct symbols *symbols = symbols_new(&options);
        struct processes *p = processes_new(symbols);
        struct process_map map = {.start = 0x7f0000, .length = 0x1000, .path = "//anon"};
        processes_map(p, 321, &map);
        CHECK_STR(name_of(symbols, p, 321, 0x7f0018, 0), "(no name)");
        processes_free(p);
        symbols_free(symbols);
    }
    unlink(path);
    rmdir(folder);
}

TEST(bpf_programs_come_and_go)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = processes_new(symbols);
    struct symbols_request r[2] = {0};
    processes_kernel_code(p, 0xffffffffc0100000, 0x100, "bpf_prog_a", false);
    CHECK(processes_find(p, 1, true, 0xffffffffc0100010, 0, &r[0].location));
    processes_kernel_code(p, 0xffffffffc0100000, 0x100, "bpf_prog_a", true);
    processes_kernel_code(p, 0xffffffffc0100000, 0x80, "bpf_prog_b", false);
    CHECK(processes_find(p, 1, true, 0xffffffffc0100010, 0, &r[1].location));
    CHECK(r[0].location.address != r[1].location.address);
    symbols_resolve(symbols, r, 2, SYMBOLS_INLINES);
    CHECK_STR(r[0].frames[0].function->name, "bpf_prog_a");
    CHECK_STR(r[1].frames[0].function->name, "bpf_prog_b");
    CHECK_STR(module_name(r[1].frames[0].function->module), "[bpf]");
    CHECK(processes_find(p, 1, true, 0xffffffffc0100090, 0, &r[0].location));
    CHECK(r[0].location.module == symbols_kernel(symbols));
    processes_free(p);
    symbols_free(symbols);
}
