/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded when they are needed: found, absent, broken, too old. */
#include "base/library.h"
#include "test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MATH_FUNCTIONS(X) X(floor) X(signgam)
LIBRARY_TABLE(math, MATH_FUNCTIONS, "libm.so.6", "libc6", "roots");

TEST(functions_and_variables_are_found)
{
    struct error err;
    CHECK(library_load(&math_library, &err) == 0);
    CHECK(math.floor(2.5) == 2);
    CHECK(*math.signgam == signgam);
    void *before = (void *)(uintptr_t)math.floor;
    CHECK(library_load(&math_library, &err) == 0); /* the second time is nothing */
    CHECK((void *)(uintptr_t)math.floor == before);
}

TEST(an_absent_library_names_its_package)
{
    struct error err;
    struct library absent = {
        .soname = "libassay-absent.so.7", .package = "libabsent7", .purpose = "'assay serve'"};
    CHECK(library_load(&absent, &err) == -ENOPKG);
    CHECK(strcmp(err.message,
                 "'assay serve' needs libassay-absent.so.7, which is not installed here; on "
                 "Debian: apt install libabsent7") == 0);
    CHECK(!absent.ready);
}

TEST(an_old_library_says_what_it_lacks)
{
    struct error err;
    static const char *const names[] = {"cbrt", "assay_has_no_such_function"};
    void *addresses[2] = {NULL};
    struct library old = {.soname = "libm.so.6",
                          .package = "libc6",
                          .purpose = "roots",
                          .names = names,
                          .addresses = addresses,
                          .count = 2};
    CHECK(library_load(&old, &err) == -ENOPKG);
    CHECK(strstr(err.message, "is too old: it has no assay_has_no_such_function"));
    CHECK(!old.ready);
}

TEST(a_file_that_is_no_library_is_told_apart)
{
    struct error err;
    struct library broken = {.soname = "/proc/self/maps", .package = "x", .purpose = "this"};
    CHECK(library_load(&broken, &err) == -ENOPKG);
    CHECK(strstr(err.message, "cannot be loaded: ") && !strstr(err.message, "apt install"));
}
