/* SPDX-License-Identifier: MIT */
#include "vr/sim/jobs.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/term.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 256
#define SAVE_EVERY_NS (5 * NS_PER_S)

struct worker {
    pid_t pid;
    int fd;
};

/* An assertion of the core failed, or worse: what led there, when somebody kept it. */
static void on_abort(int number)
{
    sim_dump();
    _exit(128 + number);
}

static bool write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, (const char *)bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool read_all(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = read(fd, (char *)bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static void work(const struct sim_jobs *jobs, unsigned index, int fd)
{
    signal(SIGABRT, on_abort);
    for (uint64_t seed = jobs->sum.next + index; seed < jobs->end; seed += jobs->jobs) {
        CLEANUP(strbuf_done) struct strbuf trace = {0};
        struct sim_options one = jobs->one;
        struct sim_result result;
        one.seed = seed;
        if (jobs->until_ns && clock_now_ns() > jobs->until_ns)
            break;
        sim_run(&one, &result, &trace);
        if (result.failed && !one.trace)
            fputs(strbuf_text(&trace), stderr);
        if (!write_all(fd, &result, sizeof(result)) || result.failed)
            break;
    }
}

static int start(struct sim_jobs *jobs, struct worker *workers, struct error *err)
{
    for (unsigned i = 0; i < jobs->jobs; i++) {
        int ends[2];
        fflush(NULL);
        if (pipe(ends))
            return error_set(err, -errno, "no pipe for job %u: %s", i, strerror(errno));
        workers[i].pid = fork();
        if (workers[i].pid < 0)
            return error_set(err, -errno, "no process for job %u: %s", i, strerror(errno));
        if (workers[i].pid == 0) {
            close(ends[0]);
            for (unsigned j = 0; j < i; j++)
                close(workers[j].fd);
            work(jobs, i, ends[1]);
            fflush(NULL);
            _exit(0);
        }
        close(ends[1]);
        workers[i].fd = ends[0];
    }
    return 0;
}

/* Which build made the counts: seeds of another one prove nothing about this one. */
static uint64_t build_hash(void)
{
    static unsigned char bytes[1 << 16];
    uint64_t hash = 0;
    FILE *self = fopen("/proc/self/exe", "rb");
    if (!self)
        return 0;
    for (size_t size; (size = fread(bytes, 1, sizeof(bytes), self)) > 0;)
        hash = hash * 31 + vr_hash(bytes, size);
    fclose(self);
    return hash;
}

static int load(struct sim_jobs *jobs, uint64_t build, struct error *err)
{
    struct sim_sum *sum = &jobs->sum;
    FILE *file = jobs->resume ? fopen(jobs->resume, "r") : NULL;
    if (!file)
        return 0;
    uint64_t stated[3], next, digest, first;
    int got = fscanf(file,
                     "build %" SCNx64 " operations %" SCNu64 " views %" SCNu64 "\nfirst %" SCNu64
                     " next %" SCNu64 " digest %" SCNx64 "\n",
                     &stated[0], &stated[1], &stated[2], &first, &next, &digest);
    bool whole = got == 6;
    uint64_t counts[SIM_COUNTS] = {0};
    for (unsigned i = 0; i < SIM_COUNTS && whole; i++)
        whole = fscanf(file, "%*s %" SCNu64 "\n", &counts[i]) == 1;
    fclose(file);
    if (!whole)
        return error_set(err, -EINVAL, "%s is not a count of seeds", jobs->resume);
    if (stated[0] != build || stated[1] != jobs->one.operations ||
        stated[2] != jobs->one.view_changes || first != sum->first)
        return error_set(err, -EINVAL,
                         "%s was written by another build or with other settings, whose seeds do "
                         "not count here; use another file or remove it",
                         jobs->resume);
    sum->next = next;
    sum->digest = digest;
    memcpy(sum->count, counts, sizeof(counts));
    return 0;
}

static int save(const struct sim_jobs *jobs, uint64_t build, struct error *err)
{
    const struct sim_sum *sum = &jobs->sum;
    if (!jobs->resume)
        return 0;
    char path[4096];
    snprintf(path, sizeof(path), "%s.new", jobs->resume);
    FILE *file = fopen(path, "w");
    if (!file)
        return error_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
    fprintf(file,
            "build %" PRIx64 " operations %" PRIu64 " views %u\nfirst %" PRIu64 " next %" PRIu64
            " digest %" PRIx64 "\n",
            build, jobs->one.operations, jobs->one.view_changes, sum->first, sum->next,
            sum->digest);
    for (unsigned i = 0; i < SIM_COUNTS; i++)
        fprintf(file, "%s %" PRIu64 "\n", sim_count_names[i], sum->count[i]);
    if (fclose(file) || rename(path, jobs->resume))
        return error_set(err, -errno, "cannot write %s: %s", jobs->resume, strerror(errno));
    return 0;
}

/* The process is gone without a word: an assertion or worse.  Once more, with the lines kept. */
static void aborted(struct sim_jobs *jobs, uint64_t seed, int status)
{
    struct sim_sum *sum = &jobs->sum;
    sum->failed = true;
    sum->failed_seed = seed;
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT)
        snprintf(sum->reason, sizeof(sum->reason), "aborted: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(sum->reason, sizeof(sum->reason), "aborted: an assertion failed");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        CLEANUP(strbuf_done) struct strbuf trace = {0};
        struct sim_options one = jobs->one;
        struct sim_result result;
        one.seed = seed;
        one.keep_lines = true;
        static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < ARRAY_COUNT(fatal); i++)
            signal(fatal[i], on_abort);
        sim_run(&one, &result, &trace);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void add(struct sim_sum *sum, uint64_t seed, const struct sim_result *one)
{
    for (unsigned i = 0; i < SIM_COUNTS; i++)
        sum->count[i] += one->count[i];
    sum->digest = sum->digest * 31 + one->digest;
    sum->next = seed + 1;
    if (!one->failed)
        return;
    sum->failed = true;
    sum->failed_seed = seed;
    memcpy(sum->reason, one->reason, sizeof(sum->reason));
}

static int gather(struct sim_jobs *jobs, struct worker *workers, uint64_t build, struct error *err)
{
    struct sim_sum *sum = &jobs->sum;
    struct progress progress;
    progress_start(&progress);
    uint64_t begin = sum->next, begun_ns = clock_now_ns(), save_ns = begun_ns + SAVE_EVERY_NS;
    int result = 0;
    while (sum->next < jobs->end && !sum->failed && !result) {
        struct worker *w = &workers[(sum->next - begin) % jobs->jobs];
        struct sim_result one;
        if (!read_all(w->fd, &one, sizeof(one))) {
            int status = 0;
            while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
                continue;
            w->pid = 0;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                aborted(jobs, sum->next, status);
            break; /* else the time is over */
        }
        add(sum, sum->next, &one);
        uint64_t now_ns = clock_now_ns(), done = sum->next - begin;
        progress_show(&progress, "seed %" PRIu64 " of %" PRIu64 ", %.0f per second", sum->next - 1,
                      jobs->end - 1, (double)done * 1e9 / (double)(now_ns - begun_ns + 1));
        if (now_ns > save_ns) {
            result = save(jobs, build, err);
            save_ns = now_ns + SAVE_EVERY_NS;
        }
    }
    progress_end(&progress);
    return result;
}

int sim_jobs_run(struct sim_jobs *jobs, struct error *err)
{
    struct worker workers[JOBS_MAX];
    struct sim_sum *sum = &jobs->sum;
    uint64_t build = jobs->resume ? build_hash() : 0;
    sum->next = sum->first;
    if (load(jobs, build, err))
        return -EINVAL;
    uint64_t left = jobs->end > sum->next ? jobs->end - sum->next : 0;
    if (jobs->jobs > left)
        jobs->jobs = (unsigned)left;
    if (jobs->jobs > JOBS_MAX)
        jobs->jobs = JOBS_MAX;
    if (left == 0)
        return 0;
    int result = start(jobs, workers, err);
    if (!result)
        result = gather(jobs, workers, build, err);
    for (unsigned i = 0; i < jobs->jobs && !result; i++) {
        close(workers[i].fd); /* who still writes ends by SIGPIPE */
        if (workers[i].pid)
            kill(workers[i].pid, SIGTERM);
        while (workers[i].pid && waitpid(workers[i].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (sum->failed)
        fprintf(stderr, "assay-vr sim: seed %" PRIu64 ": %s\n", sum->failed_seed, sum->reason);
    /* A seed that failed is to be run again by who goes on. */
    if (!result && !sum->failed)
        result = save(jobs, build, err);
    return result;
}
