/* SPDX-License-Identifier: MIT */
/* Kernels and their packages, without any network. */
#include "vm/kernels.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"
#include "vm/describe.h"
#include "vm/fetch.h"
#include "vm/initramfs.h"
#include "vm/unpack.h"

#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/assay-kernels-XXXXXX";

__attribute__((constructor)) static void make_folder(void)
{
    if (mkdtemp(folder))
        setenv("XDG_CACHE_HOME", folder, 1);
}

__attribute__((destructor)) static void remove_folder(void)
{
    file_remove_tree(folder);
}

static void put_file(const char *below, const char *text)
{
    struct error err = {0};
    CLEANUP(memory_freep) char *path = memory_printf("%s/assay/vm/kernels/%s", folder, below);
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0755);
            *at = '/';
        }
    CHECK_INT(file_write(path, text, strlen(text), &err), 0);
}

static const char newest[] = "Package: linux-image-arm64\nVersion: 6.1.190-1\n"
                             "Depends: linux-image-6.1.0-54-arm64 (= 6.1.190-1)\n";
static const char itself[] = "Package: linux-image-6.1.0-47-arm64\nVersion: 6.1.176-1\n"
                             "Depends: kmod, linux-base (>= 4.3~), initramfs-tools\n";

TEST(a_package_may_stand_for_another)
{
    CLEANUP(memory_freep) char *a = vm_fetch_concrete("linux-image-arm64", newest);
    CLEANUP(memory_freep) char *b = vm_fetch_concrete("linux-image-6.1.0-47-arm64", itself);
    CHECK(a && b);
    CHECK_STR(a, "linux-image-6.1.0-54-arm64=6.1.190-1");
    CHECK_STR(b, "linux-image-6.1.0-47-arm64=6.1.176-1");
    CHECK(vm_fetch_concrete("linux-image-x", "E: No packages found\n") == NULL);
    CHECK(vm_fetch_concrete("linux-image-x", "") == NULL);
}

TEST(names_that_are_none_are_refused_without_asking_apt)
{
    static const char *const bad[] = {"-o=x", "a b", "linux;reboot-arm64", ""};
    struct vm_fetch how = {0};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct error err = {0};
        char *name = NULL;
        CHECK(vm_fetch(&how, bad[i], &name, &err) < 0);
        CHECK(name == NULL);
    }
    struct error err = {0};
    char *name = NULL;
    CHECK(vm_fetch(&how, "linux-image-6.1.0-54", &name, &err) < 0);
    CHECK(strstr(err.message, "--arch") != NULL);
}

TEST(dependencies_of_a_module_are_found)
{
    static const char module[] = "\177ELF…\0license=GPL\0depends=virtio,virtio_ring\0name=x";
    CLEANUP(memory_freep) char *some = vm_module_depends(module, sizeof(module));
    CLEANUP(memory_freep) char *none = vm_module_depends("\0depends=\0x", 11);
    CLEANUP(memory_freep) char *cut = vm_module_depends("\0depends=abc", 12);
    CLEANUP(memory_freep) char *nothing = vm_module_depends("", 0);
    CHECK_STR(some, "virtio,virtio_ring");
    CHECK_STR(none, "");
    CHECK_STR(cut, "abc");
    CHECK_STR(nothing, "");
}

TEST(the_machine_is_known_by_package_and_image)
{
    const struct vm_arch *arm = vm_arch_find("aarch64"), *x86 = vm_arch_find("x86_64");
    CHECK(arm && x86 && arm == vm_arch_find("arm64") && x86 == vm_arch_find("amd64"));
    CHECK(vm_arch_of_package("linux-image-6.12-arm64") == arm);
    CHECK(vm_arch_of_package("linux-image-cloud-amd64=6.1.190-1") == x86);
    CHECK(vm_arch_of_package("linux-image-6.1.0-54-arm64_6.1.190-1") == arm);
    CHECK(vm_arch_of_package("linux-image-6.1.0-54") == NULL);
    CHECK(vm_arch_of_package("arm64") == NULL);
    char image[0x300] = "MZ";
    CHECK(vm_arch_of_image(image, sizeof(image)) == NULL);
    memcpy(image + 56, "ARMd", 4);
    CHECK(vm_arch_of_image(image, sizeof(image)) == arm);
    memcpy(image + 0x202, "HdrS", 4);
    CHECK(vm_arch_of_image(image, sizeof(image)) == x86);
    CHECK(vm_arch_of_image(image, 10) == NULL);
}

TEST(a_kernel_tells_what_it_is)
{
    struct vm_kernel_facts facts;
    CHECK(
        vm_banner_parse("Linux version 6.1.0-54-arm64 (debian-kernel@lists.debian.org) (gcc-12 "
                        "(Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP "
                        "Debian 6.1.190-1 (2026-10-02)\n",
                        &facts));
    CHECK_STR(facts.release, "6.1.0-54-arm64");
    CHECK_STR(facts.compiler, "gcc-12");
    CHECK_STR(facts.version, "6.1.190-1");
    CHECK(vm_banner_parse("Linux version 6.18.0", &facts));
    CHECK_STR(facts.compiler, "");
    CHECK(!vm_banner_parse("Linux version %s (%s)", &facts));
}

TEST(what_is_no_kernel_is_told_at_once)
{
    struct error err = {0};
    struct vm_kernel k;
    CHECK(vm_kernel_find(&k, "/proc/self/status", &err) < 0);
    CHECK(strstr(err.message, "is not a kernel") != NULL);
}

TEST(the_cache_is_found_and_listed)
{
    struct error err = {0};
    struct vm_kernel k;
    CHECK(vm_kernel_find(&k, "linux-image-arm64", &err) < 0);
    CHECK(strstr(err.message, "assay vm fetch linux-image-arm64") != NULL);
    put_file("linux-image-9.9-arm64_9.9-1/vmlinuz", "an image");
    put_file("linux-image-9.9-arm64_9.9-1/modules/order", "a.ko\nb.ko\n");
    put_file("fetching-x/half", "");
    CLEANUP(memory_freep)
    char *link = memory_printf("%s/assay/vm/kernels/linux-image-arm64", folder);
    CHECK_INT(symlink("linux-image-9.9-arm64_9.9-1", link), 0);
    CHECK_INT(vm_kernel_find(&k, "linux-image-arm64", &err), 0);
    CHECK_STR(k.name, "linux-image-9.9-arm64_9.9-1");
    CHECK_INT(k.module_count, 2);
    CHECK(str_has_suffix(k.modules[1], "/modules/b.ko"));
    CHECK(k.arch == vm_arch_find("aarch64"));
    vm_kernel_done(&k);
    struct vm_kernel_list list;
    CHECK_INT(vm_kernels_list(&list, &err), 0);
    CHECK_INT(list.count, 1);
    CHECK_STR(list.items[0].names, "linux-image-arm64");
    CHECK_INT(list.items[0].size_bytes, 8 + 10);
    vm_kernel_list_done(&list);
}

TEST(what_cannot_run_in_a_machine_is_refused)
{
    struct error err = {0};
    CLEANUP(vm_files_done) struct vm_files files = {0};
    const struct vm_arch *host = vm_arch_host();
    CHECK(vm_arch_check_program(vm_arch_find("aarch64"), "/proc/self/status", &err) < 0);
    CHECK(strstr(err.message, "no shell") != NULL);
    if (!host)
        return;
    const struct vm_arch *other = vm_arch_find(str_eq(host->name, "x86_64") ? "aarch64" : "x86_64");
    CHECK(vm_files_add_program(&files, other, "/proc/self/exe", NULL, &err) < 0);
    CHECK(strstr(err.message, "cross-compile") != NULL);
    CHECK(vm_files_add_program(&files, host, "/proc/self/exe", NULL, &err) < 0);
    CHECK(strstr(err.message, "-static") != NULL);
}

TEST(files_go_where_they_are_told)
{
    struct error err = {0};
    CLEANUP(vm_files_done) struct vm_files files = {0};
    CHECK_INT(vm_files_add(&files, "status:/etc/status", "/proc/self", &err), 0);
    CHECK_INT(vm_files_add(&files, "/proc/self/status", "elsewhere", &err), 0);
    CHECK_STR(files.items[0].host, "/proc/self/status");
    CHECK(vm_files_have(&files, "/etc/status"));
    CHECK(vm_files_have(&files, "/bin/status"));
    CHECK(vm_files_add(&files, "/tmp", NULL, &err) < 0);
    CHECK(vm_files_add(&files, "/nowhere/at/all:/x", NULL, &err) < 0);
}
