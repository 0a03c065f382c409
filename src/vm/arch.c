/* SPDX-License-Identifier: MIT */
/* See arch.h. */
#include "vm/arch.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "elf/image.h"
#include "vm/exits.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>

static const struct vm_arch archs[] = {
    {.name = "aarch64",
     .debian = "arm64",
     .elf_machine = EM_AARCH64,
     .qemu = "qemu-system-aarch64",
     .package = "qemu-system-arm",
     .build = "build-arm64",
     .args = (const char *const[]){"-M", "virt", NULL},
     .cpu = "cortex-a57",
     .kvm_cpu = "host",
     .console = "ttyAMA0",
     .serial_device = "virtio-serial-device",
     .share_device = "virtio-9p-device",
     .modules = (const char *const[]){"virtio_mmio", "virtio_console", "9pnet_virtio", "9p",
                                      "overlay", NULL},
     .counts_instructions = true},
    {.name = "x86_64",
     .debian = "amd64",
     .elf_machine = EM_X86_64,
     .qemu = "qemu-system-x86_64",
     .package = "qemu-system-x86",
     .build = "build-amd64",
     .args = (const char *const[]){"-M", "q35", NULL},
     .cpu = "max",
     .kvm_cpu = "host,-arch-capabilities", /* hosts that are virtual themselves refuse them */
     .console = "ttyS0",
     .serial_device = "virtio-serial-pci",
     .share_device = "virtio-9p-pci",
     .modules = (const char *const[]){"virtio_pci", "virtio_console", "9pnet_virtio", "9p",
                                      "overlay", NULL}},
};

const struct vm_arch *vm_arch_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(archs); i++)
        if (str_eq(name, archs[i].name) || str_eq(name, archs[i].debian))
            return &archs[i];
    return NULL;
}

int vm_arch_named(const char *name, const struct vm_arch **ret, struct error *err)
{
    const struct vm_arch *found = vm_arch_find(name);
    if (!found)
        return error_set(
            err, -EINVAL,
            "'%s' is not an architecture that can be emulated here; use aarch64 or x86_64", name);
    *ret = found;
    return 0;
}

const struct vm_arch *vm_arch_of_package(const char *package)
{
    size_t length = strcspn(package, "=_");
    for (size_t i = 0; i < ARRAY_COUNT(archs); i++) {
        size_t size = strlen(archs[i].debian);
        if (length > size && package[length - size - 1] == '-' &&
            strncmp(package + length - size, archs[i].debian, size) == 0)
            return &archs[i];
    }
    return NULL;
}

static const struct vm_arch *of_elf_machine(unsigned machine)
{
    for (size_t i = 0; i < ARRAY_COUNT(archs); i++)
        if (archs[i].elf_machine == machine)
            return &archs[i];
    return NULL;
}

const struct vm_arch *vm_arch_of_image(const void *bytes, size_t length)
{
    const unsigned char *b = bytes;
    uint16_t machine;
    const struct vm_arch *arch =
        image_machine(b, length, &machine) ? of_elf_machine(machine) : NULL;
    if (arch)
        return arch;
    /* Linux: Documentation/arch/x86/boot.rst, Documentation/arch/arm64/booting.rst */
    if (length >= 0x206 && memcmp(b + 0x202, "HdrS", 4) == 0)
        return vm_arch_find("x86_64");
    if (length >= 60 && memcmp(b + 56, "ARMd", 4) == 0)
        return vm_arch_find("aarch64");
    return NULL;
}

const struct vm_arch *vm_arch_host(void)
{
    struct utsname system;
    return uname(&system) == 0 ? vm_arch_find(system.machine) : NULL;
}

bool vm_arch_has_kvm(const struct vm_arch *arch, const char **ret_why)
{
    if (arch != vm_arch_host()) {
        *ret_why = "this machine has a different processor";
        return false;
    }
    CLEANUP(fd_closep) int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    *ret_why = fd >= 0           ? NULL
               : errno == EACCES ? "no permission to open /dev/kvm (join group kvm?)"
                                 : "there is no /dev/kvm";
    return fd >= 0;
}

int vm_arch_check_program(const struct vm_arch *arch, const char *path, struct error *err)
{
    struct image image;
    int r = image_open(&image, path, err);
    if (r == -EBADMSG)
        return error_set(err, -ENOEXEC,
                         "%s is not an ELF program, and the machine has no shell or interpreters",
                         path);
    if (r < 0)
        return r;
    const struct vm_arch *made_for = of_elf_machine(image.machine);
    bool is_dynamic = image.interpreter.size > 0;
    image_close(&image);
    if (made_for != arch) {
        error_set(err, -ENOEXEC, "%s is for %s, but the machine is %s; cross-compile it", path,
                  made_for ? made_for->name : "a different processor", arch->name);
        return error_end_with(err, VM_EXIT_OTHER_ARCH, -ENOEXEC);
    }
    if (is_dynamic)
        return error_set(
            err, -ENOEXEC,
            "%s is dynamically linked, but the machine has no libraries; link it with -static",
            path);
    return 0;
}
