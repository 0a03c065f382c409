/* SPDX-License-Identifier: MIT */
/* How well stacks can be read here: does the C library keep frame pointers, and are the debug
 * files of it and of the kernel at hand? */
#include "base/memory.h"
#include "machine/frames.h"
#include "machine/probe.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static void report_frames(struct machine *m, const struct image *libc, const char *path)
{
    struct frames frames;
    if (!frames_count(libc, &frames)) {
        finding_add(m, "libc-frames", "frame pointers in libc", FINDING_UNKNOWN,
                    "%s has no symbols for its functions", path);
        return;
    }
    double share = (double)frames.framed / (double)frames.functions;
    enum finding_state state = frames_suffice(&frames) ? FINDING_YES
                               : share >= 0.1          ? FINDING_LIMITED
                                                       : FINDING_NO;
    struct finding *f = finding_add(m, "libc-frames", "frame pointers in libc", state,
                                    "%.0f %% of %zu functions set one up (%s)", 100 * share,
                                    frames.functions, path);
    finding_value(f, (int64_t)(100 * share + 0.5), "%");
    if (state != FINDING_YES)
        finding_remedy(m, f, "unwind with DWARF (stack copies), not with frame pointers");
}

/* Whether the debug file of this build-id lies where debuggers look. */
static bool has_debug_file(const struct build_id *id, char *path, size_t size)
{
    char hex[BUILD_ID_TEXT];
    build_id_format(id, hex);
    snprintf(path, size, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
    return access(path, R_OK) == 0;
}

static const char *debuginfod_urls(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    return urls && *urls ? urls : NULL;
}

static const char *libc_debug_command(const struct machine *m)
{
    if (str_eq(m->distribution_id, "fedora") || str_eq(m->distribution_id, "rhel") ||
        str_eq(m->distribution_id, "centos"))
        return "sudo dnf debuginfo-install glibc";
    if (str_has_prefix(m->distribution_id, "opensuse"))
        return "sudo zypper install glibc-debuginfo";
    if (str_eq(m->distribution_id, "arch"))
        return "export DEBUGINFOD_URLS=https://debuginfod.archlinux.org";
    if (str_eq(m->distribution_id, "alpine"))
        return "apk add musl-dbg";
    return "sudo apt install libc6-dbg";
}

static void report_libc_debug(struct machine *m, const struct image *libc)
{
    char hex[BUILD_ID_TEXT], path[256];
    if (!libc->build_id.size) {
        finding_add(m, "libc-debuginfo", "debuginfo of libc", FINDING_UNKNOWN,
                    "the library has no build-id");
        return;
    }
    if (has_debug_file(&libc->build_id, path, sizeof(path))) {
        finding_add(m, "libc-debuginfo", "debuginfo of libc", FINDING_YES,
                    "installed (build-id %.8s…)", build_id_format(&libc->build_id, hex));
        return;
    }
    bool by_server = debuginfod_urls() != NULL;
    struct finding *f = finding_add(
        m, "libc-debuginfo", "debuginfo of libc", by_server ? FINDING_LIMITED : FINDING_NO, "%s",
        by_server ? "not installed; DEBUGINFOD_URLS names servers to ask" : "not installed");
    f->is_assumed = by_server;
    if (!by_server)
        finding_remedy(m, f, "%s", libc_debug_command(m));
}

static void probe_libc(struct machine *m)
{
    char path[PATH_MAX] = "";
    struct image libc;
    int r = frames_find_libc(path, sizeof(path)) ? image_open(&libc, path, NULL) : -ENOENT;
    if (r < 0) {
        const char *why = r == -ENOENT ? "no C library was found" : "its file cannot be read";
        finding_add(m, "libc-frames", "frame pointers in libc", FINDING_UNKNOWN, "%s", why);
        finding_add(m, "libc-debuginfo", "debuginfo of libc", FINDING_UNKNOWN, "%s", why);
        return;
    }
    report_frames(m, &libc, path);
    report_libc_debug(m, &libc);
    image_close(&libc);
}

/* Where distributions put the kernel's debug file. */
static bool find_kernel_debug(const struct machine *m, char *path, size_t size)
{
    static const char *const places[] = {"/usr/lib/debug/boot/vmlinux-%s",
                                         "/usr/lib/debug/lib/modules/%s/vmlinux",
                                         "/usr/lib/debug/usr/lib/modules/%s/vmlinux",
                                         "/usr/lib/debug/boot/vmlinux-%s.debug",
                                         "/lib/modules/%s/build/vmlinux",
                                         "/boot/vmlinux-%s"};
    struct build_id id;
    if (build_id_of_notes("/sys/kernel/notes", &id) && has_debug_file(&id, path, size))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        const char *name = strstr(places[i], "%s");
        snprintf(path, size, "%.*s%s%s", (int)(name - places[i]), places[i], m->kernel_release,
                 name + 2);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

static void probe_kernel_debug(struct machine *m)
{
    char path[512];
    if (find_kernel_debug(m, path, sizeof(path))) {
        finding_add(m, "kernel-debuginfo", "debuginfo of the kernel", FINDING_YES, "%s", path);
        return;
    }
    bool by_server = debuginfod_urls() != NULL;
    struct finding *f = finding_add(
        m, "kernel-debuginfo", "debuginfo of the kernel", by_server ? FINDING_LIMITED : FINDING_NO,
        "%s", by_server ? "not installed; DEBUGINFOD_URLS names servers to ask" : "not installed");
    f->is_assumed = by_server;
    if (by_server)
        return;
    if (str_eq(m->distribution_id, "debian") && strstr(m->kernel_release, "deb"))
        finding_remedy(m, f, "sudo apt install linux-image-%s-dbg", m->kernel_release);
    else if (str_eq(m->distribution_id, "fedora"))
        finding_remedy(m, f, "sudo dnf debuginfo-install kernel-core");
    else
        finding_remedy(m, f,
                       "install the debug package of exactly this kernel, or run: export "
                       "DEBUGINFOD_URLS=https://debuginfod.elfutils.org/");
}

void probe_symbols(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    probe_libc(m);
    probe_kernel_debug(m);
}
