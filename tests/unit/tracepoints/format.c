/* SPDX-License-Identifier: MIT */
/* Formats of tracepoints, and records printed by them. */
#include "tracepoints/format.h"
#include "base/memory.h"
#include "test.h"

#include <stdio.h>

static const char text[] = "name: example\nID: 317\nformat:\n"
                           "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                           "\n"
                           "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
                           "\tfield:pid_t pid;\toffset:16;\tsize:4;\tsigned:1;\n"
                           "\tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n"
                           "\tfield:unsigned long args[2];\toffset:24;\tsize:16;\tsigned:0;\n"
                           "\tfield:const char * path;\toffset:40;\tsize:8;\tsigned:0;\n";

static struct tp_record make_record(void)
{
    static unsigned char bytes[64];
    int32_t pid = -7;
    uint32_t place = 48 | 6 << 16;
    uint64_t args[2] = {5, 0x10}, path = 0x1234;
    memcpy(bytes + 8, "bash\0\0\0", 8);
    memcpy(bytes + 16, &pid, 4);
    memcpy(bytes + 20, &place, 4);
    memcpy(bytes + 24, args, 16);
    memcpy(bytes + 40, &path, 8);
    memcpy(bytes + 48, "hello", 6);
    return (struct tp_record){bytes, sizeof(bytes)};
}

/* The record as the print fmt says, in a buffer that the next call uses again. */
static const char *printed(const char *print)
{
    static char room[512];
    struct tp_format f;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CLEANUP(memory_freep) char *whole = memory_printf("%s\nprint fmt: %s", text, print);
    CHECK_INT(tp_format_parse(&f, "test", whole, strlen(whole), NULL), 0);
    if (!f.print) {
        tp_format_done(&f);
        return "(not understood)";
    }
    tp_put(&f, make_record(), &out);
    snprintf(room, sizeof(room), "%s", strbuf_text(&out));
    tp_format_done(&f);
    return room;
}

TEST(fields_have_their_places)
{
    struct tp_format f;
    size_t size;
    CHECK_INT(tp_format_parse(&f, "test", text, sizeof(text) - 1, NULL), 0);
    CHECK_INT(f.id, 317);
    CHECK_STR(f.name, "example");
    CHECK_INT(f.field_count, 6);
    CHECK_INT(tp_number(tp_format_field(&f, "pid"), make_record()), -7);
    const unsigned char *name = tp_bytes(tp_format_field(&f, "name"), make_record(), &size);
    CHECK_INT(size, 5);
    CHECK(memcmp(name, "hello", 5) == 0);
    CHECK(tp_format_field(&f, "nothing") == NULL);
    /* A record that is too short, and a text that would lie behind its end. */
    struct tp_record cut = make_record();
    cut.size = 20;
    CHECK_INT(tp_number(tp_format_field(&f, "path"), cut), 0);
    cut.size = 50;
    CHECK(tp_bytes(tp_format_field(&f, "name"), cut, &size) == NULL);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    tp_put(&f, make_record(), &out); /* without a print fmt */
    CHECK_STR(strbuf_text(&out), "comm=bash pid=-7 name=hello args={0x5, 0x10} path=0x1234");
    tp_format_done(&f);
}

TEST(print_formats)
{
    CHECK_STR(printed("\"comm=%s pid=%d\", REC->comm, REC->pid"), "comm=bash pid=-7");
    CHECK_STR(printed("\"%s|%5d|%-4u|%08lx|%#x%%\", __get_str(name), 7, 3, REC->path, 255"),
              "hello|    7|3   |00001234|0xff%");
    CHECK_STR(printed("\"%llx %u\", (unsigned long long)REC->args[1], (u8)REC->pid"), "10 249");
    CHECK_STR(printed("\"%s\", REC->pid ? __print_flags(5, \"|\", { 1, \"A\" }, { 4, \"C\" }) : "
                      "\"none\""),
              "A|C");
    CHECK_STR(printed("\"%s\", __print_flags(0x15, \"|\", { 1, \"A\" }, { 4, \"C\" })"),
              "A|C|0x10");
    CHECK_STR(printed("\"%s %s\", __print_symbolic(REC->pid, { -7, \"seven\" }), "
                      "__print_symbolic(9, { 1 << 3, \"x\" })"),
              "seven 0x9");
    CHECK_STR(printed("\"%d\", (1 + 2 * 3 == 7 && !(4 & 2)) ? REC->pid * -2 : 0"), "14");
    CHECK_STR(printed("\"%*d|%.2s\", 4, 7, REC->comm"), "   7|ba");
}

TEST(what_is_not_understood_is_said)
{
    CHECK_STR(printed("\"%d\", some_function(REC->pid)"), "(not understood)");
    CHECK_STR(printed("\"%d\", REC->nothing"), "(not understood)");
    CHECK_STR(printed("\"%d\", (REC->pid"), "(not understood)");
    CHECK_STR(printed("%d"), "(not understood)");
    /* Depth is bounded. */
    CLEANUP(strbuf_done) struct strbuf deep = {0};
    strbuf_puts(&deep, "\"%d\", ");
    strbuf_pad(&deep, '(', 5000);
    CHECK_STR(printed(strbuf_text(&deep)), "(not understood)");
    CHECK_STR(printed("\"%d %d\", 1 / 0, 5"), "0 5");
}
