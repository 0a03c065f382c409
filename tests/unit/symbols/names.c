/* SPDX-License-Identifier: MIT */
#include "symbols/tables/names.h"
#include "base/memory.h"
#include "config.h"
#include "symbols/tables/source_path.h"
#include "test.h"

#include <stdio.h>

static struct strbuf text; /* of the last name; freed at the end */

__attribute__((destructor)) static void done(void)
{
    strbuf_done(&text);
}

static const char *demangled(const char *name, enum demangle_style style)
{
    strbuf_clear(&text);
    return name_demangle(name, style, &text) ? strbuf_text(&text) : "(not mangled)";
}

TEST(cxx_names_are_demangled)
{
#if HAVE_LIBIBERTY
    const char *push = "_ZNSt6vectorIiSaIiEE9push_backERKi";
    CHECK_STR(demangled(push, DEMANGLE_FULL),
              "std::vector<int, std::allocator<int> >::push_back(int const&)");
    CHECK_STR(demangled(push, DEMANGLE_SHORT), "std::vector<int, std::allocator<int> >::push_back");
    CHECK_STR(demangled(push, DEMANGLE_NONE), "(not mangled)");
    CHECK_STR(demangled("_Z1fv@plt", DEMANGLE_FULL), "f()@plt");
    CHECK_STR(demangled("_Z1fv.isra.0.cold", DEMANGLE_FULL), "f() [clone .isra.0.cold]");
    CHECK_STR(demangled("_Z1fv.isra.0.cold", DEMANGLE_SHORT), "f [clone .isra.0.cold]");
#else
    test_skip("built without libiberty");
#endif
}

TEST(rust_names_are_demangled_both_ways)
{
#if HAVE_LIBIBERTY
    CHECK_STR(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", DEMANGLE_SHORT),
              "core::fmt::Write::write_fmt");
    CHECK_STR(demangled("_RNvNtCs1234_7mycrate3foo3bar", DEMANGLE_SHORT), "mycrate::foo::bar");
    CHECK_STR(demangled("_RNvNtCs1234_7mycrate3foo3bar.llvm.8909", DEMANGLE_SHORT),
              "mycrate::foo::bar");
#else
    test_skip("built without libiberty");
#endif
}

TEST(other_names_stay)
{
    CHECK_STR(demangled("main", DEMANGLE_FULL), "(not mangled)");
    CHECK_STR(demangled("", DEMANGLE_FULL), "(not mangled)");
    CHECK_STR(demangled("_", DEMANGLE_FULL), "(not mangled)");
    CHECK_STR(demangled("_Zork", DEMANGLE_FULL), "(not mangled)");
    CHECK_STR(demangled("_Z", DEMANGLE_SHORT), "(not mangled)");
}

/* Each substitution stands for a pair of the one before: 60 of them would be 2^60 names. */
TEST(a_name_that_would_fill_the_memory_is_left_alone)
{
    CLEANUP(strbuf_done) struct strbuf name = {0}, out = {0};
    strbuf_puts(&name, "_Z1f1PIiiE");
    for (int i = 0; i < 40; i++) {
        if (i == 0)
            strbuf_puts(&name, "S_IS0_S0_E");
        else if (i < 9)
            strbuf_printf(&name, "S_IS%d_S%d_E", i, i);
        else
            strbuf_printf(&name, "S_IS%c_S%c_E", 'A' + i - 9 > 'Z' ? 'Z' : 'A' + i - 9,
                          'A' + i - 9 > 'Z' ? 'Z' : 'A' + i - 9);
    }
    name_demangle(strbuf_text(&name), DEMANGLE_FULL, &out);
    CHECK(out.length <= SYMBOLS_NAME_MAX);

    CLEANUP(strbuf_done) struct strbuf longest = {0};
    strbuf_puts(&longest, "_Z");
    strbuf_pad(&longest, '9', 2 * SYMBOLS_NAME_MAX);
    strbuf_clear(&out);
    CHECK(!name_demangle(strbuf_text(&longest), DEMANGLE_FULL, &out));
    CHECK_INT(out.length, 0);
}

TEST(what_stands_before_stays)
{
#if HAVE_LIBIBERTY
    CLEANUP(strbuf_done) struct strbuf out = {0};
    strbuf_puts(&out, "name: ");
    CHECK(name_demangle("_Z1fv", DEMANGLE_FULL, &out));
    CHECK(!name_demangle("g", DEMANGLE_FULL, &out));
    CHECK_STR(strbuf_text(&out), "name: f()");
#endif
}

static const char *folded(const char *name)
{
    static char folded_name[128];
    snprintf(folded_name, sizeof(folded_name), "%.*s", (int)name_fold(name, strlen(name)), name);
    return folded_name;
}

TEST(variants_of_compilers_fold)
{
    CHECK_STR(folded("f"), "f");
    CHECK_STR(folded("f.cold"), "f");
    CHECK_STR(folded("f.cold.12"), "f");
    CHECK_STR(folded("f.isra.0"), "f");
    CHECK_STR(folded("f.constprop.0.isra.3.part.1.cold"), "f");
    CHECK_STR(folded("f.lto_priv.0.llvm.1234567"), "f");
    CHECK_STR(folded("_Z1fv.part.0"), "_Z1fv");
    CHECK_STR(folded("f() [clone .cold]"), "f()");
    CHECK_STR(folded("f() [clone .isra.0.cold]"), "f()");
    CHECK_STR(folded("f() [clone .isra.0] [clone .cold]"), "f()");
    CHECK_STR(folded("f() [clone .avx2.0]"), "f() [clone .avx2.0]");
    CHECK_STR(folded("f.avx2"), "f.avx2");
    CHECK_STR(folded("f.12"), "f.12");
    CHECK_STR(folded("f.colder"), "f.colder");
    CHECK_STR(folded(".cold"), ".cold");
    CHECK_STR(folded(""), "");
    CHECK_STR(folded("]"), "]");
    CHECK_STR(folded(" [clone .cold]"), " [clone .cold]");
    CHECK_STR(folded("f [clone ]"), "f [clone ]");
}

static const char *path_of(const char *folder, const char *file)
{
    source_path(&text, folder, file);
    return strbuf_text(&text);
}

TEST(source_paths_are_made_readable)
{
    CHECK_STR(path_of("/build", "../src/./a.c"), "/src/a.c");
    CHECK_STR(path_of("/build", "/usr//include/x/../y.h"), "/usr/include/y.h");
    CHECK_STR(path_of(NULL, "a.c"), "a.c");
    CHECK_STR(path_of(NULL, "../a.c"), "../a.c");
    CHECK_STR(path_of(NULL, "../../a/../b.c"), "../../b.c");
    CHECK_STR(path_of("out", "../../a.c"), "../a.c");
    CHECK_STR(path_of("/", "../a.c"), "/a.c");
    CHECK_STR(path_of("/x/", ""), "/x");
    CHECK_STR(path_of("", ""), "");
}
