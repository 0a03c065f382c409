/* SPDX-License-Identifier: MIT */
#include "exact/resolve.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/assay-unit-XXXXXX";

static const char *place(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text, size_t length)
{
    FILE *file = fopen(place(name), "w");
    CHECK(file != NULL);
    CHECK(fwrite(text, 1, length, file) == length);
    fclose(file);
    CHECK(chmod(place(name), 0755) == 0);
}

TEST(scripts_name_their_interpreters)
{
    struct exact_program p;
    char line[256];
    CHECK(mkdtemp(folder) != NULL);
    put("one", "#! /bin/sh -e x \n", 17);
    CHECK_INT(exact_resolve(&p, place("one")), EXACT_RUNS);
    CHECK_STR(p.path, "/bin/sh");
    CHECK_INT(p.word_count, 3);
    CHECK_STR(p.words[1], "-e x"); /* one argument, as the kernel has it */
    CHECK_STR(p.words[2], place("one"));
    exact_program_done(&p);
    snprintf(line, sizeof(line), "#!%s y\n", place("one"));
    put("two", line, strlen(line));
    CHECK_INT(exact_resolve(&p, place("two")), EXACT_RUNS);
    CHECK_INT(p.word_count, 5); /* sh, "-e x", one, y, two */
    CHECK_STR(p.words[3], "y");
    CHECK_STR(p.words[4], place("two"));
    exact_program_done(&p);
}

TEST(what_cannot_run_is_told_apart)
{
    struct exact_program p;
    char line[256];
    snprintf(line, sizeof(line), "#!%s\n", place("loop"));
    put("loop", line, strlen(line));
    CHECK_INT(exact_resolve(&p, place("loop")), EXACT_FAILS);
    exact_program_done(&p);
    put("arm",
        "\177ELF\001\001\001\0\0\0\0\0\0\0\0\0\002\0\050\0"
        "0123456789012345678901234567890123456789012345678",
        64);
    CHECK_INT(exact_resolve(&p, place("arm")), EXACT_FOREIGN);
    exact_program_done(&p);
    put("empty", "", 0);
    CHECK_INT(exact_resolve(&p, place("empty")), EXACT_FOREIGN);
    exact_program_done(&p);
    CHECK_INT(exact_resolve(&p, "/nonexistent"), EXACT_FAILS);
    exact_program_done(&p);
    CHECK_INT(exact_resolve(&p, "/tmp"), EXACT_FAILS);
    exact_program_done(&p);
    static const char *const names[] = {"one", "two", "loop", "arm", "empty"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(place(names[i]));
    rmdir(folder);
}
