/* SPDX-License-Identifier: MIT */
/*
 * Where the time goes while a variant runs: `assay record` samples both processes, and the shares
 * of the kernel's copying functions are read from `assay report --csv`.  The processes are called
 * move-send and move-receive, so that each copy is counted for the side that made it.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "prove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAMPLES_MIN = 50 };

/* Copies between user and kernel; the last are what the x86 code calls for it. */
static const char *const user_copies[] = {"_copy_from_iter",       "_copy_to_iter",
                                          "copy_page_from_iter",   "copy_page_to_iter",
                                          "rep_movs_alternative",  "copy_user_generic_string",
                                          "__arch_copy_from_user", "__arch_copy_to_user"};
/* Copies within the kernel: zero-copy that was refused. */
static const char *const kernel_copies[] = {"__pi_memcpy",   "__memcpy",    "memcpy",
                                            "memcpy_orig",   "memcpy_erms", "copy_page",
                                            "skb_copy_ubufs"};

/* What the C library calls its copies, by processor: __memmove_avx_unaligned_erms, __memcpy_... */
static const char *const own_copies[] = {"__memmove_", "__memcpy_"};

struct shares {
    double user, kernel, own, all; /* samples */
};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(name, list[i]))
            return true;
    return false;
}

static bool is_own_copy(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(own_copies); i++)
        if (str_has_prefix(name, own_copies[i]))
            return true;
    return false;
}

/* Beside this program, where the build has it, or in PATH; the caller frees it. */
static char *find_assay(void)
{
    char self[4096];
    const char *named = getenv("ASSAY");
    if (named && access(named, X_OK) == 0)
        return memory_strdup(named);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = 0;
        static const char *const places[] = {"assay", "../../src/cmd/assay"};
        for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
            char *path = memory_printf("%s/%s", self, places[i]);
            if (access(path, X_OK) == 0)
                return path;
            free(path);
        }
    }
    char *path = NULL;
    return process_find("assay", &path, NULL) == 0 ? path : NULL;
}

/* Runs a command with its output in fd; its exit code, or negative. */
static int run(char *const *argv, int output_fd)
{
    struct error err;
    struct process_result result;
    pid_t pid;
    CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = null,
                                .stdout_fd = output_fd < 0 ? null : output_fd,
                                .stderr_fd = null};
    int r = process_spawn(&spec, &pid, &err);
    r = r ? r : process_wait(pid, &result, &err);
    return r ? r : process_exit_code(result.status);
}

/* A line of event,overhead_percent,samples,weight,comm,symbol. */
static void add_line(char *line, const char *comm, struct shares *s)
{
    char *fields[8] = {0};
    size_t count = 0;
    for (char *at = line, *comma; at && count < ARRAY_COUNT(fields); at = comma) {
        comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        fields[count++] = at;
    }
    if (count < 6 || !str_eq(fields[4], comm))
        return;
    double share = strtod(fields[2], NULL);
    s->all += share;
    if (is_one_of(fields[5], user_copies, ARRAY_COUNT(user_copies)))
        s->user += share;
    if (is_one_of(fields[5], kernel_copies, ARRAY_COUNT(kernel_copies)))
        s->kernel += share;
    if (is_own_copy(fields[5]))
        s->own += share;
}

static int read_shares(char *assay, char *data, const char *comm, struct shares *ret)
{
    char path[] = "/tmp/assay-move-XXXXXX";
    CLEANUP(fd_closep) int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    char *argv[] = {assay, "report", "-i", data, "--csv", "-s", "comm,symbol", NULL};
    int r = run(argv, fd);
    FILE *file = r == 0 ? fdopen(dup(fd), "r") : NULL;
    if (!file)
        return -EIO;
    rewind(file);
    char line[1024];
    *ret = (struct shares){0};
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\r\n")] = 0;
        add_line(line, comm, ret);
    }
    fclose(file);
    return 0;
}

static int record(const struct settings *s, const struct proof *p, char *assay, char *data)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0)
        return -errno;
    self[length] = 0;
    char batch[32];
    snprintf(batch, sizeof(batch), "%llu", (unsigned long long)s->batch);
    char *argv[] = {assay,
                    "record",
                    "-q",
                    "-F",
                    "1999",
                    "-o",
                    data,
                    "--",
                    self,
                    "--variant",
                    (char *)p->variant->name,
                    "--transport",
                    (char *)transport_text(p->transport),
                    "--size",
                    "65000",
                    "--batch",
                    batch,
                    "--seconds",
                    "0.4",
                    "--warmup",
                    "0.1",
                    "--no-trace",
                    NULL};
    return run(argv, -1);
}

static void judge(struct proof *p, const struct shares *shares)
{
    struct evidence *e = &p->ways[WAY_PROFILE];
    const struct variant *v = p->variant;
    const enum copies claim = v->role == ROLE_RECEIVE ? v->claim.receive : v->claim.send;
    double user = 100 * shares->user / shares->all, kernel = 100 * shares->kernel / shares->all;
    double own = 100 * shares->own / shares->all;
    bool in_shared = p->transport == TRANSPORT_SHM || p->transport == TRANSPORT_NONE;
    double within = claim == COPIES_IF_REFUSED || claim == COPIES_NONE ? kernel
                    : in_shared                                        ? own
                                                                       : 0;
    bool copies = user >= 2 || within >= 2;
    /* A late copy may be made by another thread of the kernel, which was not sampled, and a C
     * library without symbols does not name its copies. */
    bool none = user < 0.5 && kernel < 0.5 && own < 0.5 && claim != COPIES_IF_REFUSED && !in_shared;
    e->finding = copies ? FOUND_COPY : none ? FOUND_NO_COPY : FOUND_NOTHING;
    if (copies || none)
        snprintf(e->cell, sizeof(e->cell), "%.1f %%", within > user ? within : user);
    snprintf(
        e->words, sizeof(e->words),
        "%.1f %% in copies between user and kernel, %.1f %% in the kernel's memcpy, %.1f %% in "
        "the program's",
        user, kernel, own);
}

void prove_profile(const struct settings *s, struct proof *p)
{
    struct evidence *e = &p->ways[WAY_PROFILE];
    CLEANUP(memory_freep) char *assay = find_assay();
    if (!assay) {
        snprintf(e->words, sizeof(e->words),
                 "assay was not found (beside this program, or in PATH)");
        return;
    }
    char folder[] = "/tmp/assay-move-XXXXXX";
    if (!mkdtemp(folder)) {
        snprintf(e->words, sizeof(e->words), "no directory for a recording: %s", strerror(errno));
        return;
    }
    CLEANUP(memory_freep) char *data = memory_printf("%s/perf.data", folder);
    struct shares shares = {0};
    const char *comm = p->variant->role == ROLE_RECEIVE ? "move-receive" : "move-send";
    int r = record(s, p, assay, data);
    r = r ? r : read_shares(assay, data, comm, &shares);
    unlink(data);
    rmdir(folder);
    if (r || shares.all <= 0)
        snprintf(e->words, sizeof(e->words), "no recording: assay record failed (%d)", r);
    else if (shares.all < SAMPLES_MIN)
        snprintf(e->words, sizeof(e->words), "only %.0f samples: too few to tell", shares.all);
    else
        judge(p, &shares);
}
