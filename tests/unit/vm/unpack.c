/* SPDX-License-Identifier: MIT */
/* A kernel's package as Debian makes it, with modules as one release and another compress them. */
#include "vm/unpack.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/assay-unpack-XXXXXX";

/* A package's control directory may not be closed to others, whatever the umask. */
static int shell(const char *script)
{
    CLEANUP(memory_freep) char *line = memory_printf("umask 022 && cd '%s' && %s", folder, script);
    return system(line);
}

/* kernel.deb, whose modules are compressed by a command; false where it cannot be made. */
static bool make_package(const char *compress)
{
    CLEANUP(memory_freep)
    char *script = memory_printf(
        "rm -rf root out kernel.deb && mkdir -p root/DEBIAN root/boot root/lib/modules/6 out &&"
        " printf 'Package: k\\nVersion: 1\\nArchitecture: all\\nMaintainer: k\\nDescription: k\\n'"
        " >root/DEBIAN/control && echo kernel >root/boot/vmlinuz-6 && echo c >root/boot/config-6 &&"
        " echo module >root/lib/modules/6/virtio_pci.ko &&"
        " echo other >root/lib/modules/6/virtio_console.ko &&"
        " %s root/lib/modules/6/*.ko && dpkg-deb -b root kernel.deb >/dev/null",
        compress);
    return shell(script) == 0;
}

static int unpack(struct error *err)
{
    CLEANUP(memory_freep) char *deb = memory_printf("%s/kernel.deb", folder);
    CLEANUP(memory_freep) char *out = memory_printf("%s/out", folder);
    return vm_unpack(vm_arch_find("x86_64"), deb, out, err);
}

static void make_folder(void)
{
    memcpy(folder, "/tmp/assay-unpack-XXXXXX", sizeof(folder));
    CHECK(mkdtemp(folder) != NULL);
}

TEST(modules_are_expanded)
{
    static const char *const ways[] = {":", "gzip", "xz", "zstd -q --rm"};
    struct error err;
    make_folder();
    CHECK(shell("command -v dpkg-deb >/dev/null") != 0 || make_package(":"));
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        if (!make_package(ways[i]))
            continue; /* this machine does not have it */
        CHECK_INT(unpack(&err), 0);
        CHECK_INT(shell("grep -q kernel out/vmlinuz && grep -qx virtio_pci.ko out/modules/order"),
                  0);
        CHECK_INT(shell("grep -q module out/modules/virtio_pci.ko"), 0);
    }
    file_remove_tree(folder);
}

TEST(what_cannot_be_expanded_is_told)
{
    struct error err;
    make_folder();
    /* What calls itself xz is none. */
    if (make_package(":") &&
        shell("mv root/lib/modules/6/virtio_pci.ko root/lib/modules/6/virtio_pci.ko.xz &&"
              " dpkg-deb -b root kernel.deb >/dev/null") == 0) {
        CHECK(unpack(&err) < 0);
        CHECK(strstr(err.message, "'xz' cannot expand virtio_pci.ko.xz") != NULL);
        CHECK(strstr(err.message, "xz-utils") != NULL);
    }
    file_remove_tree(folder);
}
