/* SPDX-License-Identifier: MIT */
/* See machine.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "vm/machine_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define TICK_NS (100 * NS_PER_MS)
#define BOOT_TIMEOUT_NS (120 * NS_PER_S)
#define KVM_TIMEOUT_NS (15 * NS_PER_S)
#define ANSWER_TIMEOUT_NS (60 * NS_PER_S)
enum { LAST_WORDS_BYTES = 700, OUTPUT_BYTES_MAX = 64 << 20, CONSOLE_BYTES_MAX = 1 << 20 };

int vm_machine_check(const struct vm_arch *arch, struct error *err)
{
    CLEANUP(memory_freep) char *path = NULL;
    if (process_find(arch->qemu, &path, NULL) == 0)
        return 0;
    error_set(err, -ENOENT, "%s is not installed (Debian's package: %s)", arch->qemu,
              arch->package);
    return error_end_with(err, VM_EXIT_NO_QEMU, -ENOENT);
}

/* QEMU's side: the descriptors that it needs are inherited, and it does not outlive assay. */
static _Noreturn void execute(char *const *argv, const int *fds, size_t fd_count, int errors,
                              pid_t parent)
{
    setpgid(0, 0); /* the terminal's Ctrl-C is for assay */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int null_fd = open("/dev/null", O_RDWR);
    dup2(null_fd, STDIN_FILENO);
    dup2(null_fd, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (size_t i = 0; i < fd_count; i++)
        if (fds[i] >= 0)
            fcntl(fds[i], F_SETFD, 0);
    const int back_to_default[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < ARRAY_COUNT(back_to_default); i++)
        signal(back_to_default[i], SIG_DFL);
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static int memory_file(const char *name, int *ret_fd, struct error *err)
{
    *ret_fd = memfd_create(name, MFD_CLOEXEC);
    return *ret_fd < 0 ? error_errno(err, -errno, "a file in memory") : 0;
}

static int write_initramfs(const struct vm_settings *s, int fd, struct error *err)
{
    CLEANUP(cpio_done) struct cpio archive = {0};
    int r = vm_initramfs_build(&archive, s->kernel, s->guest, s->files, err);
    if (r == 0)
        r = fd_write_all(fd, archive.bytes.data, archive.bytes.length);
    return r < 0 && r != -EINVAL && !err->code ? error_errno(err, r, "the initramfs") : r;
}

static int make_pair(int *ret_ours, int *ret_theirs, struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, -errno, "socketpair");
    *ret_ours = ends[0];
    *ret_theirs = ends[1];
    return 0;
}

static int spawn(struct vm_machine *m, int initramfs, int state, struct error *err)
{
    CLEANUP(fd_closep) int port = -1;
    CLEANUP(fd_closep) int monitor = -1;
    const struct vm_settings *s = m->settings;
    int r = make_pair(&m->port, &port, err);
    if (r == 0 && (s->keeps || s->state_file))
        r = make_pair(&m->monitor, &monitor, err);
    if (r < 0)
        return r;
    struct vm_qemu_fds given = {initramfs, m->console, port, monitor, state};
    char **words = vm_qemu_words(m, &given);
    const int fds[] = {initramfs, m->console, port, monitor, state};
    pid_t parent = getpid();
    m->pid = fork();
    if (m->pid == 0)
        execute(words, fds, ARRAY_COUNT(fds), m->errors, parent);
    vm_qemu_words_free(words);
    return m->pid < 0 ? error_errno(err, -errno, "fork") : 0;
}

/* Goes on where the machine was that was kept. */
static int go_on(struct vm_machine *m, int state, struct error *err)
{
    CLEANUP(memory_freep)
    char *command = memory_printf("{\"execute\":\"migrate-incoming\",\"arguments\":{"
                                  "\"uri\":\"fd:%d\"}}",
                                  state);
    int r = vm_monitor_open(m, err);
    if (r == 0)
        r = vm_monitor_ask(m, command, NULL, err);
    m->is_ready = r == 0;
    return r;
}

static int choose_accel(struct vm_machine *m, struct error *err)
{
    const char *why = NULL;
    bool has_kvm = vm_arch_has_kvm(m->settings->arch, &why);
    if (m->settings->accel == VM_ACCEL_KVM && !has_kvm)
        return error_set(err, -ENOTSUP, "no KVM: %s", why);
    m->is_kvm = m->settings->accel != VM_ACCEL_TCG && has_kvm;
    return 0;
}

/* Ends QEMU at once. */
static void end(struct vm_machine *m)
{
    if (m->pid > 0) {
        kill(m->pid, SIGKILL);
        while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    m->pid = -1;
    m->is_ready = false;
}

static void put_end_of(struct strbuf *out, int fd)
{
    char bytes[LAST_WORDS_BYTES];
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(bytes) ? size - (off_t)sizeof(bytes) : 0;
    ssize_t got = size > 0 ? pread(fd, bytes, sizeof(bytes), from) : 0;
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] != '\r')
            strbuf_putc(out, bytes[i]);
}

/* What stands behind these words in a file, up to the line's end; false when they do not. */
static bool find_words(int fd, const char *words, char *line, size_t size)
{
    off_t length = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    CLEANUP(memory_freep) char *text = memory_zalloc(CONSOLE_BYTES_MAX + 1, 1);
    off_t from = length > CONSOLE_BYTES_MAX ? length - CONSOLE_BYTES_MAX : 0;
    const char *at =
        length > 0 && pread(fd, text, CONSOLE_BYTES_MAX, from) > 0 ? strstr(text, words) : NULL;
    const char *rest = at ? at + strlen(words) : "";
    snprintf(line, size, "%.*s", (int)strcspn(rest, "\r\n"), rest);
    return at != NULL;
}

bool vm_machine_ran_out(const struct vm_machine *m)
{
    char line[200];
    return find_words(m->console, "Out of memory: Killed process ", line, sizeof(line));
}

/* How QEMU ended, where it did so by itself: "" when it has not. */
static void say_end(struct vm_machine *m, char *text, size_t size)
{
    int status;
    text[0] = '\0';
    if (m->pid <= 0 || waitpid(m->pid, &status, WNOHANG) != m->pid)
        return;
    m->pid = -1;
    if (WIFSIGNALED(status))
        snprintf(text, size, " (QEMU was killed by signal %d%s)", WTERMSIG(status),
                 WTERMSIG(status) == SIGKILL ? "; is this machine out of memory?" : "");
    else if (WEXITSTATUS(status))
        snprintf(text, size, " (QEMU's exit code was %d)", WEXITSTATUS(status));
}

static int panicked(struct vm_machine *m, int code, const char *why, struct error *err)
{
    bool no_memory = strstr(why, "on memory") || strstr(why, "Out of memory");
    end(m);
    error_set(err, code, "the emulated machine (%s) %s, its kernel panicked: %s",
              m->settings->kernel->name, no_memory ? "ran out of memory" : "stopped", why);
    return error_end_with(err, no_memory ? VM_EXIT_NO_MEMORY : VM_EXIT_PANICKED, code);
}

/* 0: none of its own. */
static int exit_code_for(const struct vm_machine *m, int code)
{
    char line[200];
    return find_words(m->errors, "annot allocate memory", line, sizeof(line)) ? VM_EXIT_NO_MEMORY
           : code == -ETIMEDOUT                                               ? VM_EXIT_HANGS
           : code == -EPIPE                                                   ? VM_EXIT_ENDED
                                                                              : 0;
}

/* The machine is of no use any more: what it said last tells why. */
int vm_machine_broken(struct vm_machine *m, int code, const char *what, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf words = {0};
    char panic[200], ended[120];
    if (find_words(m->console, "Kernel panic - not syncing: ", panic, sizeof(panic)))
        return panicked(m, code, panic, err);
    if (code == -EPIPE)
        usleep(100 * 1000); /* QEMU closes before it ends */
    say_end(m, ended, sizeof(ended));
    end(m);
    put_end_of(&words, m->errors);
    put_end_of(&words, m->console);
    while (words.length && words.data[words.length - 1] == '\n')
        words.data[--words.length] = '\0';
    error_set(err, code, "the emulated machine (%s) %s%s%s%s", m->settings->kernel->name, what,
              ended, words.length ? "; its last output:\n" : "; it printed nothing",
              strbuf_text(&words));
    return error_end_with(err, exit_code_for(m, code), code);
}

static int receive(struct vm_machine *m, struct error *err)
{
    char bytes[65536];
    ssize_t got = read(m->port, bytes, sizeof(bytes));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0)
        return vm_machine_broken(m, -EPIPE, "exited on its own", err);
    vm_frames_add(&m->frames, bytes, (size_t)got);
    return 0;
}

/* The next frame, or an error when it does not come in time. */
static int next_frame(struct vm_machine *m, uint64_t deadline_ns, const char *what,
                      struct vm_frame *ret, struct error *err)
{
    for (;;) {
        int r = vm_frames_next(&m->frames, ret, err);
        if (r < 0)
            end(m);
        if (r != 0)
            return r < 0 ? r : 0;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return vm_machine_broken(m, -ETIMEDOUT, "did not answer in time", err);
        uint64_t wake_ns = now_ns + TICK_NS < deadline_ns ? now_ns + TICK_NS : deadline_ns;
        struct pollfd watched = {.fd = m->port, .events = POLLIN};
        int ready = process_poll_fds(&watched, 1, wake_ns, true);
        if (process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        if (m->settings->on_tick)
            m->settings->on_tick(m->settings->context, what);
        r = ready > 0 ? receive(m, err) : 0;
        if (r < 0)
            return r;
    }
}

/* With everything that it needs. */
static int launch(struct vm_machine *m, struct error *err)
{
    CLEANUP(fd_closep) int initramfs = -1;
    CLEANUP(fd_closep) int state = -1;
    const char *file = m->settings->state_file;
    int r = memory_file("assay-vm-console", &m->console, err);
    if (r == 0)
        r = memory_file("assay-vm-errors", &m->errors, err);
    if (r == 0 && file && (state = open(file, O_RDONLY | O_CLOEXEC)) < 0)
        r = error_errno(err, -errno, "%s", file);
    if (r == 0 && !file)
        r = memory_file("assay-vm-initramfs", &initramfs, err);
    if (r == 0 && !file)
        r = write_initramfs(m->settings, initramfs, err);
    if (r == 0)
        r = spawn(m, initramfs, state, err);
    return r == 0 && file ? go_on(m, state, err) : r;
}

int vm_machine_start(struct vm_machine *m, const struct vm_settings *s, struct error *err)
{
    *m = (struct vm_machine){
        .settings = s, .pid = -1, .port = -1, .monitor = -1, .console = -1, .errors = -1};
    if (s->kernel->arch && s->kernel->arch != s->arch) {
        error_set(err, -EINVAL, "the kernel %s is for %s, but the machine is %s", s->kernel->name,
                  s->kernel->arch->name, s->arch->name);
        return error_end_with(err, VM_EXIT_OTHER_ARCH, -EINVAL);
    }
    int r = vm_machine_check(s->arch, err);
    if (r == 0)
        r = choose_accel(m, err);
    if (r == 0)
        r = launch(m, err);
    if (r < 0)
        vm_machine_stop(m);
    return r;
}

/* "RELEASE\nNANOSECONDS"; the second line may be missing. */
static void take_greeting(struct vm_machine *m, const struct vm_frame *f)
{
    char text[sizeof(m->release) + 32];
    snprintf(text, sizeof(text), "%.*s", (int)(f->length < sizeof(text) ? f->length : sizeof(text)),
             f->payload);
    size_t end = strcspn(text, "\n");
    snprintf(m->release, sizeof(m->release), "%.*s", (int)end, text);
    uint64_t booted_ns = text[end] ? strtoull(text + end + 1, NULL, 10) : 0;
    bool counts = !m->is_kvm && !m->settings->is_exact && m->settings->cpu_count <= 1;
    m->boot_instructions = counts ? booted_ns >> VM_CLOCK_SHIFT : 0;
}

static int await_ready(struct vm_machine *m, uint64_t limit_ns, struct error *err)
{
    uint64_t start_ns = clock_now_ns();
    struct vm_frame frame;
    int r = next_frame(m, start_ns + limit_ns, "booting", &frame, err);
    if (r < 0)
        return r;
    if (!str_eq(frame.kind, "ready"))
        return vm_machine_broken(m, -EPROTO, "sent an unexpected greeting", err);
    take_greeting(m, &frame);
    m->boot_ns = clock_now_ns() - start_ns;
    m->is_ready = true;
    return 0;
}

/* KVM may be there and not work, as in some virtual machines. */
int vm_machine_await(struct vm_machine *m, struct error *err)
{
    const struct vm_settings *s = m->settings;
    if (m->is_ready)
        return 0;
    uint64_t limit_ns = s->boot_timeout_ns ? s->boot_timeout_ns : BOOT_TIMEOUT_NS;
    bool may_fall_back = m->is_kvm && s->accel == VM_ACCEL_AUTO;
    int r = await_ready(m, may_fall_back ? KVM_TIMEOUT_NS : limit_ns, err);
    if (r == 0 || r == -EINTR || !may_fall_back)
        return r;
    vm_machine_stop(m);
    m->kvm_failed = true;
    m->is_kvm = false;
    r = launch(m, err);
    return r < 0 ? r : await_ready(m, limit_ns, err);
}

static int send_request(struct vm_machine *m, const char *kind, const char *word,
                        const struct strbuf *payload, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf frame = {0};
    vm_frame_put(&frame, kind, word, payload->data, payload->length);
    for (size_t at = 0; at < frame.length;) {
        ssize_t sent = send(m->port, frame.data + at, frame.length - at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return vm_machine_broken(m, -EPIPE, "accepts no requests", err);
        at += (size_t)sent;
    }
    return 0;
}

static void keep(struct strbuf *out, const struct vm_frame *frame)
{
    size_t room =
        OUTPUT_BYTES_MAX - (out->length < OUTPUT_BYTES_MAX ? out->length : OUTPUT_BYTES_MAX);
    strbuf_append(out, frame->payload, frame->length < room ? frame->length : room);
}

/* 1 when the answer is complete. */
static int take(struct vm_machine *m, const struct vm_run *run, const struct vm_frame *f,
                struct vm_result *result, struct error *err)
{
    bool is_error = str_eq(f->kind, "err"), good = true;
    if (is_error || str_eq(f->kind, "out")) {
        if (run && run->on_output)
            run->on_output(run->context, is_error, f->payload, f->length);
        else
            keep(is_error ? &result->err : &result->out, f);
    } else if (str_eq(f->kind, "metrics")) {
        keep(&result->metrics, f);
    } else if (str_eq(f->kind, "maps")) {
        keep(&result->maps, f);
    } else if (str_eq(f->kind, "usage")) {
        good = vm_usage_parse(f->payload, f->length, &result->usage);
    } else if (str_eq(f->kind, "counts")) {
        good = vm_counts_parse(f->payload, f->length, &result->counts);
    } else if (str_eq(f->kind, "exit")) {
        good = vm_exit_parse(f->payload, f->length, &result->status);
        if (good)
            return 1;
    } else {
        good = false;
    }
    return good ? 0 : vm_machine_broken(m, -EPROTO, "gave an invalid answer", err);
}

/* Reads the answer to its end. */
static int await_answer(struct vm_machine *m, const struct vm_run *run, uint64_t deadline_ns,
                        struct vm_result *result, struct error *err)
{
    for (;;) {
        struct vm_frame frame;
        int r = next_frame(m, deadline_ns, "running", &frame, err);
        if (r == 0)
            r = take(m, run, &frame, result, err);
        if (r != 0)
            return r < 0 ? r : 0;
    }
}

static void put_field(struct strbuf *out, char letter, const char *text)
{
    if (!text)
        return;
    if (letter)
        strbuf_putc(out, letter);
    strbuf_append(out, text, strlen(text) + 1);
}

int vm_machine_run(struct vm_machine *m, const struct vm_run *run, struct vm_result *result,
                   struct error *err)
{
    bool live = run->on_output && !run->program;
    CLEANUP(strbuf_done) struct strbuf payload = {0};
    char uid[16], layout[16];
    vm_result_done(result);
    snprintf(uid, sizeof(uid), "%u", run->uid);
    snprintf(layout, sizeof(layout), "%u", run->mapping_count);
    for (size_t i = 0; run->argv[i]; i++)
        put_field(&payload, live ? '\0' : 'a', run->argv[i]);
    for (size_t i = 0; !live && run->variables && run->variables[i]; i++)
        put_field(&payload, 'v', run->variables[i]);
    if (!live) {
        if (run->has_layout)
            put_field(&payload, 'l', layout);
        put_field(&payload, 'e', run->events);
        put_field(&payload, 'd', run->folder);
        put_field(&payload, 'i', run->input);
        put_field(&payload, 'p', run->program);
        put_field(&payload, 'g', run->groups);
        put_field(&payload, 'f', run->tree);
        put_field(&payload, 't', run->tree ? run->seen_as : NULL);
        put_field(&payload, 'n', run->drops_output ? "" : NULL);
    }
    uint64_t start_ns = clock_now_ns();
    int r = send_request(m, live ? "run" : "measure", uid, &payload, err);
    if (r == 0)
        r = await_answer(m, run, run->timeout_ns ? start_ns + run->timeout_ns : UINT64_MAX, result,
                         err);
    result->timed_out = r == -ETIMEDOUT;
    result->wall_ns = clock_now_ns() - start_ns;
    return r;
}

/* An answer that is not "exit 0" is an error with the machine's words. */
static int simple_request(struct vm_machine *m, const char *kind, const char *word,
                          const struct strbuf *payload, struct strbuf *out, uint64_t timeout_ns,
                          struct error *err)
{
    struct vm_result result = {0};
    int r = send_request(m, kind, word, payload, err);
    if (r == 0)
        r = await_answer(m, NULL, clock_now_ns() + timeout_ns, &result, err);
    if (r == 0 && result.status != 0)
        r = error_set(err, -EIO, "in the machine: %.200s", strbuf_text(&result.err));
    if (r == 0 && out)
        strbuf_append(out, strbuf_text(&result.out), result.out.length);
    vm_result_done(&result);
    return r;
}

int vm_machine_get(struct vm_machine *m, const char *path, struct strbuf *out, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf payload = {0};
    strbuf_puts(&payload, path);
    return simple_request(m, "get", "", &payload, out, ANSWER_TIMEOUT_NS, err);
}

int vm_machine_ask(struct vm_machine *m, const char *kind, uint64_t timeout_ns, struct error *err)
{
    return simple_request(m, kind, "", &(struct strbuf){0}, NULL, timeout_ns, err);
}

int vm_machine_put(struct vm_machine *m, const char *path, const void *bytes, size_t length,
                   struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf payload = {0};
    strbuf_append(&payload, path, strlen(path) + 1);
    strbuf_append(&payload, bytes, length);
    return simple_request(m, "put", "0644", &payload, NULL, ANSWER_TIMEOUT_NS, err);
}

const char *vm_machine_words(const struct vm_machine *m)
{
    return m->is_kvm ? NULL : vm_settings_words(m->settings);
}

const char *vm_settings_words(const struct vm_settings *s)
{
    return !s->arch->counts_instructions ? VM_UNCOUNTED_WORDS
           : s->cpu_count > 1            ? VM_TURNS_WORDS
                                         : VM_EMULATED_WORDS;
}

bool vm_machine_alive(const struct vm_machine *m)
{
    return m->pid > 0 && m->is_ready;
}

void vm_machine_stop(struct vm_machine *m)
{
    end(m); /* it has no disk that would have to be in order */
    fd_closep(&m->port);
    fd_closep(&m->monitor);
    fd_closep(&m->console);
    fd_closep(&m->errors);
    vm_frames_done(&m->frames);
}

void vm_result_done(struct vm_result *result)
{
    strbuf_done(&result->out);
    strbuf_done(&result->err);
    strbuf_done(&result->metrics);
    strbuf_done(&result->maps);
    vm_counts_done(&result->counts);
    *result = (struct vm_result){0};
}
