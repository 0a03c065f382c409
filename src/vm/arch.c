/* SPDX-License-Identifier: MIT */
/* See arch.h. */
#include "vm/arch.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

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
     .modules = (const char *const[]){"virtio_mmio", "virtio_console", NULL},
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
     .modules = (const char *const[]){"virtio_pci", "virtio_console", NULL}},
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
        return error_set(err, -EINVAL,
                         "'%s' is no machine that is emulated here; aarch64 and "
                         "x86_64 are",
                         name);
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

const struct vm_arch *vm_arch_of_image(const void *bytes, size_t length)
{
    const unsigned char *b = bytes;
    if (length >= 20 && memcmp(b, ELFMAG, SELFMAG) == 0) {
        unsigned machine = b[18] | (unsigned)b[19] << 8;
        for (size_t i = 0; i < ARRAY_COUNT(archs); i++)
            if (archs[i].elf_machine == machine)
                return &archs[i];
    }
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
        *ret_why = "this machine has another processor";
        return false;
    }
    CLEANUP(fd_closep) int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    *ret_why = fd >= 0           ? NULL
               : errno == EACCES ? "/dev/kvm is closed to this user (group kvm?)"
                                 : "there is no /dev/kvm here";
    return fd >= 0;
}

static bool has_interpreter(const char *bytes, size_t length)
{
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof(head));
    for (size_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        size_t at = head.e_phoff + i * sizeof(part);
        if (head.e_phentsize != sizeof(part) || at > length || length - at < sizeof(part))
            return false;
        memcpy(&part, bytes + at, sizeof(part));
        if (part.p_type == PT_INTERP)
            return true;
    }
    return false;
}

int vm_arch_check_program(const struct vm_arch *arch, const char *path, struct error *err)
{
    char bytes[8192];
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), 0);
    if (got < 0)
        return error_errno(err, -errno, "%s", path);
    if ((size_t)got < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return error_set(err, -ENOEXEC,
                         "%s is no program (ELF): the machine has no shell and no interpreters",
                         path);
    const struct vm_arch *made_for = vm_arch_of_image(bytes, (size_t)got);
    if (made_for != arch)
        return error_set(err, -ENOEXEC, "%s is for %s, the machine is %s; cross-compile it", path,
                         made_for ? made_for->name : "another processor", arch->name);
    if (has_interpreter(bytes, (size_t)got))
        return error_set(err, -ENOEXEC,
                         "%s is linked dynamically, and the machine has no libraries; link it "
                         "with -static",
                         path);
    return 0;
}
