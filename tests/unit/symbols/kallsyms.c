/* SPDX-License-Identifier: MIT */
#include "symbols/names/kallsyms.h"
#include "base/fd.h"
#include "base/memory.h"
#include "symbols/symbols.h"
#include "test.h"

#include <stdio.h>

static const char text[] = "ffffffff81000000 T _stext\n"
                           "ffffffff81000000 T _text\n"
                           "ffffffff81000010 t early_code\n"
                           "ffffffff81000100 W maybe_weak\n"
                           "ffffffff81000100 T strong_name\n"
                           "ffffffff81000200 D some_data\n"
                           "ffffffff81000300 T last_of_kernel\n"
                           "ffffffffc0001000 t mod_init\t[ext4]\n"
                           "ffffffffc0001100 T mod_work\t[ext4]\n"
                           "ffffffffc0400000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

static const char *name_at(const struct kallsyms *k, uint64_t address)
{
    size_t length;
    uint32_t symbol = symtab_find(&k->table, address);
    return symbol == SYMTAB_NONE ? "" : symtab_name(&k->table, symbol, &length);
}

static const char *part_at(const struct kallsyms *k, uint64_t address)
{
    uint32_t symbol = symtab_find(&k->table, address);
    return symbol == SYMTAB_NONE ? "" : symtab_part(&k->table, symbol);
}

TEST(kernel_and_modules)
{
    struct kallsyms k;
    kallsyms_parse(text, sizeof(text) - 1, 0, &k);
    CHECK(!k.restricted);
    CHECK_INT(k.bad_lines, 0);
    CHECK_STR(name_at(&k, 0xffffffff81000020), "early_code");
    CHECK_STR(part_at(&k, 0xffffffff81000020), "");
    CHECK_STR(name_at(&k, 0xffffffff81000150), "strong_name");
    CHECK_STR(name_at(&k, 0xffffffff81000250), "strong_name"); /* data is not looked at */
    CHECK_STR(name_at(&k, 0xffffffff81000fff), "last_of_kernel");
    CHECK_STR(name_at(&k, 0xffffffff82000000), "");
    CHECK_STR(name_at(&k, 0xffffffffc0001123), "mod_work");
    CHECK_STR(part_at(&k, 0xffffffffc0001123), "[ext4]");
    CHECK_STR(part_at(&k, 0xffffffffc0400010), "[bpf]");
    kallsyms_done(&k);
}

TEST(another_boot_is_shifted_and_has_no_modules)
{
    struct kallsyms k;
    CHECK(kallsyms_address_of(text, sizeof(text) - 1, "_text") == 0xffffffff81000000);
    CHECK(kallsyms_address_of(text, sizeof(text) - 1, "text") == 0);
    kallsyms_parse(text, sizeof(text) - 1, 0x2000000, &k);
    CHECK_STR(name_at(&k, 0xffffffff83000020), "early_code");
    CHECK_STR(name_at(&k, 0xffffffff81000020), "");
    CHECK_STR(name_at(&k, 0xffffffffc2001123), "");
    kallsyms_done(&k);
}

TEST(zeros_are_noticed)
{
    static const char zeros[] = "0000000000000000 T _text\n0000000000000000 t f\t[m]\n";
    struct kallsyms k;
    kallsyms_parse(zeros, sizeof(zeros) - 1, 0, &k);
    CHECK(k.restricted);
    CHECK_INT(k.table.symbol_count, 0);
    kallsyms_done(&k);
    kallsyms_parse("", 0, 0, &k);
    CHECK(!k.restricted);
    kallsyms_done(&k);
}

TEST(lines_that_make_no_sense_are_counted)
{
    static const char odd[] = "xyz T f\nffffffff81000000\nffffffff81000000 T \n"
                              "fffffffff81000000 T too_long\n\nffffffff81000000 T good";
    struct kallsyms k;
    kallsyms_parse(odd, sizeof(odd) - 1, 0, &k);
    CHECK_INT(k.bad_lines, 4);
    CHECK_STR(name_at(&k, 0xffffffff81000000), "good");
    kallsyms_done(&k);
}

static struct symbols *with_kallsyms(const char *content, char *path)
{
    struct error err = {0};
    CHECK_INT(file_write(path, content, strlen(content), &err), 0);
    return symbols_new(&(struct symbols_options){.kallsyms_path = path, .no_cache = true});
}

TEST(addresses_of_the_kernel_have_names_and_modules)
{
    char path[] = "/tmp/assay-kallsyms-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    struct symbols *symbols = with_kallsyms(text, path);
    struct module *kernel = symbols_kernel(symbols);
    struct symbols_request r[] = {{.location = {kernel, 0xffffffff81000020}},
                                  {.location = {kernel, 0xffffffffc0001123}},
                                  {.location = {kernel, 0xffffffffd0000000}}};
    symbols_resolve(symbols, r, ARRAY_COUNT(r), SYMBOLS_INLINES);
    CHECK_STR(r[0].frames[0].function->name, "early_code");
    CHECK(r[0].frames[0].function->module == kernel);
    CHECK_STR(r[1].frames[0].function->name, "mod_work");
    CHECK_STR(module_name(r[1].frames[0].function->module), "[ext4]");
    CHECK_INT(r[1].location.address - r[1].frames[0].function->start, 0x23);
    CHECK(r[2].frames[0].function == NULL);
    CHECK_INT(r[2].frame_count, 1);
    symbols_free(symbols);
    unlink(path);
}

TEST(a_recording_of_an_earlier_boot_is_shifted)
{
    char path[] = "/tmp/assay-kallsyms-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    struct symbols *symbols = with_kallsyms(text, path);
    symbols_set_kernel(symbols, NULL, "_text", 0xffffffff9f000000);
    struct symbols_request r = {.location = {symbols_kernel(symbols), 0xffffffff9f000018}};
    symbols_resolve(symbols, &r, 1, SYMBOLS_NAMES);
    CHECK_STR(r.frames[0].function->name, "early_code");
    symbols_free(symbols);
    unlink(path);
}

TEST(a_restricted_kernel_is_explained)
{
    char path[] = "/tmp/assay-kallsyms-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    struct symbols *symbols = with_kallsyms("0000000000000000 T _text\n", path);
    struct symbols_request r = {.location = {symbols_kernel(symbols), 0xffffffff81000000}};
    symbols_resolve(symbols, &r, 1, SYMBOLS_NAMES);
    CHECK(r.frames[0].function == NULL);
    size_t count;
    const struct diagnostic *d = symbols_diagnostics(symbols, &count);
    CHECK_INT(count, 1);
    if (count) {
        CHECK_INT(d[0].kind, DIAGNOSTIC_KERNEL_RESTRICTED);
        CHECK_CONTAINS(d[0].text, "kptr_restrict");
    }
    symbols_free(symbols);
    unlink(path);
}

TEST(the_running_kernel)
{
    CLEANUP(strbuf_done) struct strbuf real = {0};
    struct kallsyms k;
    if (file_read("/proc/kallsyms", &real, NULL) < 0) {
        test_skip("/proc/kallsyms cannot be read");
        return;
    }
    kallsyms_parse(strbuf_text(&real), real.length, 0, &k);
    CHECK_INT(k.bad_lines, 0);
    CHECK(k.restricted || k.table.symbol_count > 1000);
    kallsyms_done(&k);
}
