/* SPDX-License-Identifier: MIT */
/*
 * The first and only process of the emulated machine: mounts what measuring needs, loads the
 * virtio modules that the initramfs holds, and serves requests that come over a virtio port.
 *
 * Both directions carry frames: a line "KIND LENGTH [WORD…]\n" followed by LENGTH bytes.
 *
 *   from the host          payload                        answer
 *   run LENGTH UID         argv, each ended by NUL        out…, err…, then exit ("exit 3", "signal
 * 9") put LENGTH 0MODE       path, NUL, the file's bytes    exit get LENGTH             path out…,
 * exit off 0                                                 none: the machine powers off
 *
 * The guest greets with "ready".  A request that cannot be served is answered with err (why) and
 * exit 127, as a shell would.  Whatever a command leaves running is killed before its exit frame
 * is sent, so that no command can disturb the next.  When the host goes away, power goes off.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_SIZE_MAX = 128, REQUEST_SIZE_MAX = 64 << 20, ARGUMENT_COUNT_MAX = 256 };

struct request {
    char kind[8];
    unsigned long length;
    long word;     /* a user's number or a file's mode */
    char *payload; /* length bytes and a NUL */
};

static _Noreturn void power_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

/* Standard error is the console, which the host shows when the machine does not answer. */
static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
    power_off();
}

static void write_all(int port, const void *bytes, size_t length)
{
    for (const char *at = bytes; length > 0;) {
        ssize_t count = write(port, at, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            give_up("writing to the port");
        at += count;
        length -= (size_t)count;
    }
}

static void send_frame(int port, const char *kind, const void *bytes, size_t length)
{
    char header[HEADER_SIZE_MAX];
    int size = snprintf(header, sizeof header, "%s %zu\n", kind, length);
    write_all(port, header, (size_t)size);
    write_all(port, bytes, length);
}

__attribute__((format(printf, 3, 4))) static void send_text(int port, const char *kind,
                                                            const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    send_frame(port, kind, text, strlen(text));
}

static void refuse(int port, const char *what)
{
    send_text(port, "err", "init: %s: %s\n", what, strerror(errno));
    send_text(port, "exit", "exit 127");
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

static bool read_request(int port, struct request *request)
{
    char header[HEADER_SIZE_MAX];
    size_t size = 0;
    do {
        if (size + 1 == sizeof header || !read_all(port, header + size, 1))
            return false;
    } while (header[size++] != '\n');
    header[size] = '\0';
    *request = (struct request){0};
    errno = EPROTO;
    if (sscanf(header, "%7s %lu %li", request->kind, &request->length, &request->word) < 2 ||
        request->length > REQUEST_SIZE_MAX)
        give_up("a request that makes no sense");
    request->payload = calloc(1, request->length + 1);
    if (!request->payload)
        give_up("memory for a request");
    return read_all(port, request->payload, request->length);
}

/* The child's side of a command; what goes wrong is said on its own standard error. */
static _Noreturn void execute(char **argv, unsigned uid, const int out[2], const int err[2])
{
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0))
        _exit(126);
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "init: %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Sends what is there to read; false at the end of the stream. */
static bool forward(int port, const char *kind, int fd)
{
    char bytes[16384];
    ssize_t count = read(fd, bytes, sizeof bytes);
    if (count > 0)
        send_frame(port, kind, bytes, (size_t)count);
    return count > 0 || (count < 0 && errno == EINTR);
}

/* Reaps whatever has ended; true and the status when the command is among them. */
static bool reap(pid_t command, int *ret_status)
{
    bool found = false;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == command) {
            *ret_status = status;
            found = true;
        }
    }
    return found;
}

/* Forwards both streams until the command and everything it started are gone. */
static int attend(int port, pid_t command, int out, int err, int child_ended)
{
    struct pollfd watched[] = {{.fd = out, .events = POLLIN},
                               {.fd = err, .events = POLLIN},
                               {.fd = child_ended, .events = POLLIN},
                               {.fd = port, .events = 0}};
    int status = 0;
    while (watched[0].fd >= 0 || watched[1].fd >= 0 || watched[2].fd >= 0) {
        if (poll(watched, 4, -1) < 0)
            continue;
        if (watched[0].revents && !forward(port, "out", out))
            watched[0].fd = -1;
        if (watched[1].revents && !forward(port, "err", err))
            watched[1].fd = -1;
        if (watched[3].revents & POLLHUP)
            power_off();
        if (watched[2].revents) {
            struct signalfd_siginfo ignored;
            while (read(child_ended, &ignored, sizeof ignored) > 0)
                continue;
            if (reap(command, &status)) {
                kill(-1, SIGKILL);
                watched[2].fd = -1;
            }
        }
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    return status;
}

static void serve_run(int port, const struct request *request, int child_ended)
{
    char *argv[ARGUMENT_COUNT_MAX + 1] = {NULL};
    size_t count = 0;
    const char *end = request->payload + request->length;
    for (char *at = request->payload; at < end; at += strlen(at) + 1) {
        if (count == ARGUMENT_COUNT_MAX) {
            errno = E2BIG;
            refuse(port, "the command");
            return;
        }
        argv[count++] = at;
    }
    int out[2], err[2];
    errno = EINVAL;
    if (count == 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        refuse(port, "the command");
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        execute(argv, (unsigned)request->word, out, err);
    close(out[1]);
    close(err[1]);
    if (pid < 0) {
        refuse(port, "fork");
    } else {
        int status = attend(port, pid, out[0], err[0], child_ended);
        if (WIFSIGNALED(status))
            send_text(port, "exit", "signal %d", WTERMSIG(status));
        else
            send_text(port, "exit", "exit %d", WEXITSTATUS(status));
    }
    close(out[0]);
    close(err[0]);
}

static void serve_put(int port, const struct request *request)
{
    size_t name_size = strlen(request->payload) + 1;
    int fd = open(request->payload, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, request->word);
    if (fd < 0 || name_size > request->length) {
        refuse(port, request->payload);
        return;
    }
    size_t length = request->length - name_size;
    if (write(fd, request->payload + name_size, length) != (ssize_t)length)
        refuse(port, request->payload);
    else
        send_text(port, "exit", "exit 0");
    close(fd);
}

static void serve_get(int port, const struct request *request)
{
    int fd = open(request->payload, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        refuse(port, request->payload);
        return;
    }
    errno = 0;
    while (forward(port, "out", fd))
        continue;
    if (errno)
        refuse(port, request->payload);
    else
        send_text(port, "exit", "exit 0");
    close(fd);
}

static void mount_at(const char *type, const char *path)
{
    mkdir(path, 0755);
    if (mount(type, path, type, 0, NULL) != 0)
        fprintf(stderr, "init: mounting %s: %s\n", path, strerror(errno));
}

/* Loads the modules named in /modules/order, one a line, each after what it depends on. */
static void load_modules(void)
{
    FILE *order = fopen("/modules/order", "re");
    if (!order)
        give_up("/modules/order");
    char path[256];
    while (fgets(path, sizeof path, order)) {
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
            give_up(path);
        close(fd);
    }
    fclose(order);
}

/* The driver makes the port's device by and by. */
static int open_port(void)
{
    for (int attempt = 0; attempt < 200; attempt++) {
        int port = open("/dev/vport0p1", O_RDWR | O_CLOEXEC);
        if (port >= 0)
            return port;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    give_up("/dev/vport0p1");
}

/* A descriptor that becomes readable when a child ends. */
static int watch_children(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        give_up("signalfd");
    return fd;
}

int main(void)
{
    umask(0);
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("devtmpfs", "/dev");
    mount_at("tmpfs", "/tmp");
    mount_at("tracefs", "/sys/kernel/tracing");
    mount_at("debugfs", "/sys/kernel/debug");
    mount_at("cgroup2", "/sys/fs/cgroup");
    chmod("/tmp", 01777);
    load_modules();
    setenv("PATH", "/bin", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    int port = open_port();
    int child_ended = watch_children();
    struct utsname system;
    uname(&system);
    send_text(port, "ready", "%s", system.release);

    for (;;) {
        struct request request;
        if (!read_request(port, &request) || strcmp(request.kind, "off") == 0)
            power_off();
        errno = ENOSYS;
        if (strcmp(request.kind, "run") == 0)
            serve_run(port, &request, child_ended);
        else if (strcmp(request.kind, "put") == 0)
            serve_put(port, &request);
        else if (strcmp(request.kind, "get") == 0)
            serve_get(port, &request);
        else
            refuse(port, request.kind);
        free(request.payload);
    }
}
