/* SPDX-License-Identifier: MIT */
/* See guest.h: starting up, and the requests that are about files. */
#include "vm/guest.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vm/guest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#define PORT "/dev/vport0p1"

_Noreturn void guest_power_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

_Noreturn void guest_give_up(const char *what)
{
    fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
    guest_power_off();
}

void guest_send(const struct guest *g, const char *kind, const void *bytes, size_t length)
{
    char header[VM_HEADER_MAX];
    int size = snprintf(header, sizeof(header), "%s %zu\n", kind, length);
    if (fd_write_all(g->port, header, (size_t)size) < 0 || fd_write_all(g->port, bytes, length) < 0)
        guest_give_up("writing to the port");
}

void guest_send_status(const struct guest *g, int status)
{
    char text[32];
    int size = WIFSIGNALED(status) ? snprintf(text, sizeof(text), "signal %d", WTERMSIG(status))
                                   : snprintf(text, sizeof(text), "exit %d", WEXITSTATUS(status));
    guest_send(g, "exit", text, (size_t)size);
}

void guest_refuse(const struct guest *g, const char *what)
{
    CLEANUP(memory_freep) char *text = memory_printf("init: %s: %s\n", what, strerror(errno));
    guest_send(g, "err", text, strlen(text));
    guest_send_status(g, 127 << 8);
}

bool guest_forward(const struct guest *g, const char *kind, int fd)
{
    char bytes[65536];
    ssize_t count = read(fd, bytes, sizeof(bytes));
    if (count > 0)
        guest_send(g, kind, bytes, (size_t)count);
    return count > 0 || (count < 0 && errno == EINTR);
}

/* False when the host has closed its side. */
static bool read_all(int port, char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = read(port, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

/* payload gets the bytes and a zero behind them; it is the caller's. */
static bool read_request(const struct guest *g, struct vm_frame *request, char **payload)
{
    char header[VM_HEADER_MAX];
    size_t size = 0;
    do {
        if (size + 1 == sizeof(header) || !read_all(g->port, header + size, 1))
            return false;
    } while (header[size++] != '\n');
    header[size] = '\0';
    errno = EPROTO;
    if (!vm_frame_parse(header, request))
        guest_give_up("an invalid request");
    *payload = memory_zalloc(request->length + 1, 1);
    request->payload = *payload;
    return read_all(g->port, *payload, request->length);
}

static void serve_put(const struct guest *g, const struct vm_frame *request)
{
    size_t name_size = strlen(request->payload) + 1;
    CLEANUP(fd_closep)
    int fd = open(request->payload, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, request->word);
    if (fd < 0 || name_size > request->length) {
        guest_refuse(g, request->payload);
        return;
    }
    size_t length = request->length - name_size;
    errno = EIO;
    if (write(fd, request->payload + name_size, length) != (ssize_t)length)
        guest_refuse(g, request->payload);
    else
        guest_send_status(g, 0);
}

static void serve_get(const struct guest *g, const struct vm_frame *request)
{
    CLEANUP(fd_closep) int fd = open(request->payload, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        guest_refuse(g, request->payload);
        return;
    }
    errno = 0;
    while (guest_forward(g, "out", fd))
        continue;
    if (errno)
        guest_refuse(g, request->payload);
    else
        guest_send_status(g, 0);
}

static void mount_at(const char *type, const char *path)
{
    mkdir(path, 0755);
    if (mount(type, path, type, 0, NULL) != 0)
        fprintf(stderr, "init: mounting %s: %s\n", path, strerror(errno));
}

/* Loads the modules named in /modules/order, one a line, each after what it depends on.  There is
 * no such file where all is built in. */
static void load_modules(void)
{
    FILE *order = fopen("/modules/order", "re");
    char path[256];
    while (order && fgets(path, sizeof(path), order)) {
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
            guest_give_up(path);
        close(fd);
    }
    if (order)
        fclose(order);
}

/*
 * The driver makes the port's device by and by, with the emulator's help.  Sleeping may take the
 * machine no time at all outside (-icount), so each attempt also works a little.
 */
static int open_port(void)
{
    for (int attempt = 0; attempt < 6000; attempt++) {
        int port = open(PORT, O_RDWR | O_CLOEXEC);
        if (port >= 0)
            return port;
        for (volatile int work = 0; work < 200000; work++)
            continue;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    guest_give_up(PORT " (the kernel needs virtio_console, and virtio_mmio or virtio_pci)");
}

/* A descriptor that becomes readable when a child ends. */
static int watch_children(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        guest_give_up("signalfd");
    return fd;
}

static struct guest start(void)
{
    umask(0);
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("devtmpfs", "/dev");
    mount_at("tmpfs", "/tmp");
    mount_at("tracefs", "/sys/kernel/tracing");
    mount_at("debugfs", "/sys/kernel/debug");
    mount_at("cgroup2", "/sys/fs/cgroup");
    mkdir("/dev/shm", 0755);
    mount_at("tmpfs", "/dev/shm");
    chmod("/tmp", 01777);
    chmod("/dev/shm", 01777);
    load_modules();
    clearenv(); /* the kernel's own: HOME, TERM and what its command line held */
    setenv("PATH", "/bin", 1);
    setenv("HOME", "/tmp", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    return (struct guest){.port = open_port(), .child_ended = watch_children()};
}

bool vm_guest_is(char *const *argv)
{
    return getpid() == 1 && argv[0] && strcmp(argv[0], "/init") == 0;
}

static void greet(const struct guest *g, uint64_t booted_ns)
{
    struct utsname system;
    uname(&system);
    CLEANUP(memory_freep) char *words = memory_printf("%s\n%" PRIu64, system.release, booted_ns);
    guest_send(g, "ready", words, strlen(words));
}

_Noreturn void vm_guest_serve(void)
{
    struct timespec booted;
    clock_gettime(CLOCK_BOOTTIME, &booted);
    struct guest g = start();
    greet(&g, timespec_ns(booted));
    for (;;) {
        struct vm_frame request;
        CLEANUP(memory_freep) char *payload = NULL;
        if (!read_request(&g, &request, &payload) || str_eq(request.kind, "off"))
            guest_power_off();
        errno = ENOSYS;
        if (str_eq(request.kind, "run"))
            guest_serve_run(&g, &request);
        else if (str_eq(request.kind, "measure"))
            guest_serve_measure(&g, &request);
        else if (str_eq(request.kind, "put"))
            serve_put(&g, &request);
        else if (str_eq(request.kind, "get"))
            serve_get(&g, &request);
        else if (str_eq(request.kind, "hold"))
            guest_serve_hold(&g);
        else
            guest_refuse(&g, request.kind);
    }
}
