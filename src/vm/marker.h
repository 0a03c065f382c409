/* SPDX-License-Identifier: MIT */
/*
 * How assay's process in an emulated machine tells the emulator's plugin (exact/plugin) that a
 * command begins or has ended: an instruction that does nothing, with an operand that no compiler
 * would write.  The plugin sees it when it is translated.
 */
#ifndef ASSAY_VM_MARKER_H
#define ASSAY_VM_MARKER_H

enum { MARKER_BYTES = 8, MARKER_BEGIN = 'B', MARKER_END = 'E' };

/* nopl 0x00WHYSA(%rax,%rax,1) */
#define MARKER_CODE(what)                              \
    {                                                  \
        0x0f, 0x1f, 0x84, 0x00, 'a', 's', 0x59, (what) \
    }

#if defined(__x86_64__)
/* Aligned, so that it is in one page. */
#define MARK(what)                                                                   \
    __asm__ volatile(".p2align 4\n.byte 0x0f, 0x1f, 0x84, 0x00, 'a', 's', 0x59, %c0" \
                     :                                                               \
                     : "i"(what)                                                     \
                     : "memory")
#else
#define MARK(what) ((void)(what))
#endif

#endif
