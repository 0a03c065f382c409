/* SPDX-License-Identifier: MIT */
/*
 * The CPUs sampled for `assay top`: cpu-clock into rings, with the kernel's part of call chains,
 * which tells the system call.  Records are put in the order of time, followed (maps, names, forks)
 * and named; what was read is kept for a while, so that it can be saved as a recording.
 *
 * The maps of a process are read when it is first met, not at the start: most processes of a
 * machine sleep.
 */
#ifndef ASSAY_TOP_SAMPLES_H
#define ASSAY_TOP_SAMPLES_H

#include "sampler/sampling.h"
#include "symbols/addrspace.h"
#include "top/window.h"

#include <poll.h>

#define SAMPLES_PARTS_MAX 16

/* Whom to sample. */
enum samples_whom { SAMPLES_MACHINE, SAMPLES_CGROUP, SAMPLES_PROCESSES };

struct samples_spec {
    enum samples_whom whom;
    int cgroup_fd;
    uint64_t frequency_hz;
};

/* Records of one reading of the rings. */
struct samples_chunk {
    struct strbuf tracking, samples;
};

/* A process whose maps are known, or were looked for in vain. */
struct samples_process {
    uint32_t pid;
    bool is_known;
};

struct samples {
    struct samples_spec spec;
    struct recent *window;
    struct sampling parts[SAMPLES_PARTS_MAX]; /* of processes: those found later have their own */
    size_t part_count;
    int *cpus;
    size_t cpu_count;
    struct symbols *symbols;
    struct processes *processes;
    struct samples_process *known;
    size_t known_count, known_capacity;
    struct idtable known_table, address_table;
    struct samples_address {
        struct module *module;
        uint64_t address;
        uint32_t symbol;
    } * addresses; /* that have a name */
    size_t address_count, address_capacity;
    struct samples_function {
        const struct function *function; /* NULL: all of the module that has no name */
        const struct module *module;
        bool is_kernel;
        uint32_t symbol;
    } * functions;
    size_t function_count, function_capacity;
    struct idtable function_table;

    struct strbuf records; /* of this reading */
    struct samples_record {
        uint64_t time_ns;
        size_t offset;
    } * order;
    size_t order_count, order_capacity;

    struct mapped_files files;
    struct strbuf past; /* maps of processes that were there before */
    struct samples_chunk *chunks;
    size_t chunk_count, chunk_capacity, kept_bytes;
    uint64_t begin_ns; /* what was sampled before is kept, but not for the window */
    bool has_dropped;  /* the oldest samples are no longer kept */
    uint64_t first_ns, last_ns, wall_clock_ns, record_clock_ns;
    uint64_t lost;
    struct strbuf notes;
    /* Called for a process that a sampled one started; may be NULL. */
    void (*forked)(void *context, uint32_t parent, uint32_t child);
    void *forked_context;
};

/* With SAMPLES_PROCESSES nothing is sampled until samples_add_tasks. */
int samples_open(struct samples *s, const struct samples_spec *spec, struct recent *window,
                 struct error *err);
void samples_done(struct samples *s);
/* These threads as well, and what they start. */
int samples_add_tasks(struct samples *s, const pid_t *tasks, size_t count, struct error *err);
/* Closes all that was opened; what was kept of it goes, too. */
void samples_close(struct samples *s);
/* Reads what the rings have into the window's current interval. */
void samples_read(struct samples *s);
/* The rings' descriptors; room for samples_poll_count. */
size_t samples_poll_count(const struct samples *s);
void samples_poll(const struct samples *s, struct pollfd *polls);
/* Writes what is kept as a perf.data file. */
int samples_save(struct samples *s, const char *path, char *const *command_line,
                 uint64_t *ret_count, struct error *err);

#endif
