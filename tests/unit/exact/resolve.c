/* SPDX-License-Identifier: MIT */
#include "exact/resolve.h"
#include "elf/machine.h"
#include "test.h"

#include <elf.h>
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
    CHECK_INT(exact_resolve(&p, place("one"), image_own_machine()), EXACT_RUNS);
    CHECK_STR(p.path, "/bin/sh");
    CHECK_INT(p.word_count, 3);
    CHECK_STR(p.words[1], "-e x"); /* one argument, as the kernel has it */
    CHECK_STR(p.words[2], place("one"));
    exact_program_done(&p);
    snprintf(line, sizeof(line), "#!%s y\n", place("one"));
    put("two", line, strlen(line));
    CHECK_INT(exact_resolve(&p, place("two"), image_own_machine()), EXACT_RUNS);
    CHECK_INT(p.word_count, 5); /* sh, "-e x", one, y, two */
    CHECK_STR(p.words[3], "y");
    CHECK_STR(p.words[4], place("two"));
    exact_program_done(&p);
}

/* The beginning of an ELF file of 64 bits. */
static void put_elf(const char *name, unsigned char machine)
{
    char head[64] = "\177ELF\002\001\001";
    head[18] = (char)machine;
    put(name, head, sizeof(head));
}

TEST(each_processor_has_programs_of_its_own)
{
    struct exact_program p;
    put_elf("arm64", EM_AARCH64);
    put_elf("x86", EM_X86_64);
    CHECK_INT(exact_resolve(&p, place("arm64"), EM_AARCH64), EXACT_RUNS);
    CHECK_INT(exact_resolve(&p, place("arm64"), EM_X86_64), EXACT_FOREIGN);
    CHECK(p.is_arm64 && !p.is_x86);
    CHECK_INT(exact_resolve(&p, place("x86"), EM_AARCH64), EXACT_FOREIGN);
    CHECK(p.is_x86 && !p.is_arm64);
    unlink(place("arm64"));
    unlink(place("x86"));
}

TEST(what_cannot_run_is_told_apart)
{
    struct exact_program p;
    char line[256];
    snprintf(line, sizeof(line), "#!%s\n", place("loop"));
    put("loop", line, strlen(line));
    CHECK_INT(exact_resolve(&p, place("loop"), image_own_machine()), EXACT_FAILS);
    exact_program_done(&p);
    put("arm",
        "\177ELF\001\001\001\0\0\0\0\0\0\0\0\0\002\0\050\0"
        "0123456789012345678901234567890123456789012345678",
        64);
    CHECK_INT(exact_resolve(&p, place("arm"), image_own_machine()), EXACT_FOREIGN);
    exact_program_done(&p);
    put("empty", "", 0);
    CHECK_INT(exact_resolve(&p, place("empty"), image_own_machine()), EXACT_FOREIGN);
    exact_program_done(&p);
    CHECK_INT(exact_resolve(&p, "/nonexistent", image_own_machine()), EXACT_FAILS);
    exact_program_done(&p);
    CHECK_INT(exact_resolve(&p, "/tmp", image_own_machine()), EXACT_FAILS);
    exact_program_done(&p);
    static const char *const names[] = {"one", "two", "loop", "arm", "empty"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(place(names[i]));
    rmdir(folder);
}
