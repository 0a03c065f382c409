/* SPDX-License-Identifier: MIT */
/* Prologues, our own file, and damaged copies of it. */
#include "machine/frames.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>

#define X86(...)                                                 \
    code_sets_frame_x86_64((const unsigned char[]){__VA_ARGS__}, \
                           sizeof((const unsigned char[]){__VA_ARGS__}))

TEST(frames_of_x86_64)
{
    CHECK(X86(0x55, 0x48, 0x89, 0xe5, 0xc3));
    CHECK(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5));
    CHECK(X86(0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5));
    CHECK(X86(0x55, 0x48, 0x8b, 0xec));
    /* A test before the frame is set up. */
    CHECK(X86(0x85, 0xff, 0x74, 0x10, 0x55, 0x48, 0x89, 0xe5));
    /* push %rbp to free the register only; mov %rsp,%rbp without the push */
    CHECK(!X86(0x55, 0x53, 0x48, 0x83, 0xec, 0x08, 0xc3));
    CHECK(!X86(0x31, 0xc0, 0x48, 0x89, 0xe5, 0xc3));
    CHECK(!X86(0x55));
    CHECK(!code_sets_frame_x86_64((const unsigned char *)"", 0));
}

#define ARM64(...)                                                                  \
    code_sets_frame_aarch64((const unsigned char *)(const uint32_t[]){__VA_ARGS__}, \
                            sizeof((const uint32_t[]){__VA_ARGS__}))

TEST(frames_of_aarch64)
{
    CHECK(ARM64(0xa9bf7bfd, 0x910003fd));             /* stp x29,x30,[sp,#-16]!; mov x29,sp */
    CHECK(ARM64(0xd503233f, 0xa9be7bfd, 0x910003fd)); /* paciasp first */
    CHECK(ARM64(0xd10103ff, 0xa9037bfd, 0x9100c3fd)); /* sub sp; stp [sp,#48]; add x29,sp,#48 */
    CHECK(!ARM64(0xf81f0ffe, 0x94000000));            /* str x30,[sp,#-16]!; bl */
    CHECK(!ARM64(0x910003fd, 0xa9bf7bfd));            /* in the wrong order */
    CHECK(!ARM64(0xd65f03c0));                        /* ret */
    CHECK(!code_sets_frame_aarch64((const unsigned char *)"\xfd", 1));
}

TEST(our_own_file)
{
    struct image e;
    CHECK_INT(image_open(&e, "/proc/self/exe", NULL), 0);
    struct frames frames = {0};
    /* What a compiler puts in by default differs; the call must only not read outside. */
    if (frames_count(&e, &frames))
        CHECK(frames.framed <= frames.functions);
    image_close(&e);
    CHECK_INT(image_open(&e, "/nonexistent", NULL), -ENOENT);
    CHECK_INT(image_open(&e, "/etc/passwd", NULL), -EBADMSG);
    CHECK_INT(image_open(&e, "/", NULL), -EBADMSG);
}

/* Each byte of the headers and a sample of the rest becomes something else; the sanitizers see
 * whether that is ever followed out of the file. */
TEST(damaged_files_are_survived)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *path = "/lib/x86_64-linux-gnu/libm.so.6";
    if (file_read(path, &text, NULL) < 0 && file_read("/proc/self/exe", &text, NULL) < 0) {
        test_skip("no file to damage");
        return;
    }
    struct frames frames;
    struct image e;
    /* The section headers are at the end. */
    size_t tail = text.length > 2048 ? text.length - 2048 : 0;
    for (size_t at = 0; at < text.length; at += at < 64 || at >= tail ? 1 : tail / 64 + 1) {
        char before = text.data[at];
        text.data[at] = (char)(before ^ 0xff);
        if (image_open_memory(&e, "damaged", text.data, text.length, NULL) == 0) {
            frames_count(&e, &frames);
            image_close(&e);
        }
        text.data[at] = before;
    }
    /* And cut short. */
    for (size_t length = 0; length < text.length; length += text.length / 64 + 1) {
        CLEANUP(memory_freep) char *copy = memory_alloc(length + 1);
        memcpy(copy, text.data, length);
        if (image_open_memory(&e, "cut", copy, length, NULL) == 0) {
            frames_count(&e, &frames);
            image_close(&e);
        }
    }
    CHECK_INT(image_open_memory(&e, "short", "\177ELF", 4, NULL), -EBADMSG);
}
