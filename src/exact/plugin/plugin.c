/* SPDX-License-Identifier: MIT */
/* What QEMU calls first: in its user mode a program is counted (user.c), in a machine the command
 * that assay's process there marks (machine.c). */
#include "machine.h"
#include "qemu.h"
#include "user.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

int qemu_plugin_version = PLUGIN_VERSION;

static const char *value_of(int argc, char **argv, const char *key)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], key, strlen(key)) == 0)
            return argv[i] + strlen(key);
    return NULL;
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
    const char *folder = value_of(argc, argv, "dir="), *counts = value_of(argc, argv, "counts=");
    const char *symbols = value_of(argc, argv, "symbols=");
    bool is_x86 = strcmp(info->target_name, "x86_64") == 0;
    bool is_arm64 = strcmp(info->target_name, "aarch64") == 0;
    bool is_machine = info->system_emulation;
    if (is_machine ? !is_x86 || !counts || !symbols : !(is_x86 || is_arm64) || !folder) {
        fprintf(stderr,
                "assay's plugin counts in qemu-x86_64 and qemu-aarch64, with dir=DIRECTORY, and in "
                "qemu-system-x86_64, with counts=FILE and symbols=FILE\n");
        return 1;
    }
    return is_machine ? !machine_open(id, counts, symbols)
                      : !user_open(id, folder, is_arm64 ? EM_AARCH64 : EM_X86_64);
}
