/* SPDX-License-Identifier: MIT */
/*
 * The parts of QEMU's plugin interface that assay uses, declared here from its documentation
 * (docs/devel/tcg-plugins): no distribution packages its header.  Version 1 is that of QEMU 4.2 to
 * 8.2; QEMU 9.0 and later take version 2 and above.  The functions used here have the same form in
 * all of them; those that some versions lack are weak.
 */
#ifndef ASSAY_EXACT_PLUGIN_QEMU_H
#define ASSAY_EXACT_PLUGIN_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
};

typedef void qemu_translate_fn(uint64_t id, struct qemu_plugin_tb *tb);
typedef void qemu_vcpu_fn(unsigned vcpu, void *context);
typedef void qemu_call_fn(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                          uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                          uint64_t a8);
typedef void qemu_memory_fn(unsigned vcpu, uint32_t info, uint64_t address, void *context);
typedef void qemu_return_fn(uint64_t id, unsigned vcpu, int64_t number, int64_t result);

/* What QEMU looks for. */
__attribute__((visibility("default"))) extern int qemu_plugin_version;
__attribute__((visibility("default"))) int
qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

/* What it offers. */
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, qemu_translate_fn *fn);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_vcpu_fn *fn, int flags,
                                          void *context);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_fn *fn,
                                            int flags, void *context);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation,
                                              void *target, uint64_t added)
    __attribute__((weak)); /* gone in QEMU 9 */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
enum { QEMU_MEM_ALL = 3 }; /* reads and writes */
bool qemu_plugin_mem_is_store(uint32_t info);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_memory_fn *fn, int flags,
                                      int access, void *context);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, qemu_call_fn *fn);
void qemu_plugin_register_vcpu_syscall_ret_cb(uint64_t id, qemu_return_fn *fn);

#endif
