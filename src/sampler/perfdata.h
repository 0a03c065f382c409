/* SPDX-License-Identifier: MIT */
/*
 * Reading perf.data as perf 4.x to 6.x and assay write it: files, pipes and folders (perf record
 * --threads), compressed or not.
 *
 * The reader streams: it holds a bounded window of the file, whatever its size, and gives one
 * record after another, ordered by time as far as the FINISHED_ROUND marks allow.  Nothing in the
 * file is trusted: each length is checked against the record, each record against the file.  What
 * is damaged is skipped and counted; a file that ends early gives what it holds, and
 * perfdata_trouble() says so.
 *
 *   struct perfdata *p;
 *   struct perfdata_record r;
 *   if (perfdata_open(&p, "perf.data", NULL, &err) < 0) …
 *   while ((got = perfdata_next(p, &r, &err)) > 0)
 *       if (r.type == PERF_RECORD_SAMPLE)
 *           use(r.event, r.pid, r.sample.ip, r.sample.period);
 *   if (got < 0) …
 *   perfdata_free(p);
 *
 * One thread at a time uses a reader.  No symbols here: addresses only.
 * The format: tools/perf/Documentation/perf.data-file-format.txt in Linux, and
 * <linux/perf_event.h>.
 */
#ifndef ASSAY_SAMPLER_PERFDATA_H
#define ASSAY_SAMPLER_PERFDATA_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFDATA_BUILD_ID_BYTES 20 /* what its records have room for */

struct perfdata;

/* Record types that are made by perf, not by the kernel.  Those that describe the recording
 * (64 to 67, 78, 80 to 83) are consumed by the reader and never returned. */
enum perfdata_user_type {
    PERFDATA_HEADER_ATTR = 64,
    PERFDATA_HEADER_EVENT_TYPE = 65,
    PERFDATA_HEADER_TRACING_DATA = 66,
    PERFDATA_HEADER_BUILD_ID = 67,
    PERFDATA_FINISHED_ROUND = 68,
    PERFDATA_ID_INDEX = 69,
    PERFDATA_AUXTRACE_INFO = 70,
    PERFDATA_AUXTRACE = 71,
    PERFDATA_AUXTRACE_ERROR = 72,
    PERFDATA_THREAD_MAP = 73,
    PERFDATA_CPU_MAP = 74,
    PERFDATA_STAT_CONFIG = 75,
    PERFDATA_STAT = 76,
    PERFDATA_STAT_ROUND = 77,
    PERFDATA_EVENT_UPDATE = 78,
    PERFDATA_TIME_CONV = 79,
    PERFDATA_HEADER_FEATURE = 80,
    PERFDATA_COMPRESSED = 81,
    PERFDATA_FINISHED_INIT = 82,
    PERFDATA_COMPRESSED2 = 83,
};

/* Newer than the kernel headers of Debian 12. */
#define PERFDATA_CALLCHAIN_DEFERRED 22
#define PERFDATA_CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* Feature bits of the file header. */
enum perfdata_feature {
    PERFDATA_FEATURE_TRACING_DATA = 1,
    PERFDATA_FEATURE_BUILD_ID = 2,
    PERFDATA_FEATURE_HOSTNAME = 3,
    PERFDATA_FEATURE_OSRELEASE = 4,
    PERFDATA_FEATURE_VERSION = 5,
    PERFDATA_FEATURE_ARCH = 6,
    PERFDATA_FEATURE_NRCPUS = 7,
    PERFDATA_FEATURE_CPUDESC = 8,
    PERFDATA_FEATURE_CPUID = 9,
    PERFDATA_FEATURE_TOTAL_MEM = 10,
    PERFDATA_FEATURE_CMDLINE = 11,
    PERFDATA_FEATURE_EVENT_DESC = 12,
    PERFDATA_FEATURE_CPU_TOPOLOGY = 13,
    PERFDATA_FEATURE_NUMA_TOPOLOGY = 14,
    PERFDATA_FEATURE_BRANCH_STACK = 15,
    PERFDATA_FEATURE_PMU_MAPPINGS = 16,
    PERFDATA_FEATURE_GROUP_DESC = 17,
    PERFDATA_FEATURE_AUXTRACE = 18,
    PERFDATA_FEATURE_STAT = 19,
    PERFDATA_FEATURE_CACHE = 20,
    PERFDATA_FEATURE_SAMPLE_TIME = 21,
    PERFDATA_FEATURE_MEM_TOPOLOGY = 22,
    PERFDATA_FEATURE_CLOCKID = 23,
    PERFDATA_FEATURE_DIR_FORMAT = 24,
    PERFDATA_FEATURE_BPF_PROG_INFO = 25,
    PERFDATA_FEATURE_BPF_BTF = 26,
    PERFDATA_FEATURE_COMPRESSED = 27,
    PERFDATA_FEATURE_CPU_PMU_CAPS = 28,
    PERFDATA_FEATURE_CLOCK_DATA = 29,
    PERFDATA_FEATURE_HYBRID_TOPOLOGY = 30,
    PERFDATA_FEATURE_PMU_CAPS = 31,
    /* assay's own: what the machine could measure when this was recorded, as JSON.  perf passes
     * over bits that it does not know, but only in files: a stream has none. */
    PERFDATA_FEATURE_ASSAY = 200,
    /* Names, source lines and inlined calls of all that was sampled: symbols/portable.h. */
    PERFDATA_FEATURE_NAMES = 201,
    PERFDATA_FEATURE_BITS = 256,
};

/* One event that was opened: its attributes, its name, and the ids of its instances. */
struct perfdata_event {
    size_t index;
    struct perf_event_attr attr; /* zero where the file's is shorter than ours */
    const char *name;            /* from the file, or made from the attributes; never NULL */
    const uint64_t *ids;
    size_t id_count;
};

struct perfdata_read_value {
    uint64_t value;
    uint64_t id;   /* 0 unless PERF_FORMAT_ID */
    uint64_t lost; /* 0 unless PERF_FORMAT_LOST */
};

/* The counts of a READ record or of PERF_SAMPLE_READ; perfdata_read_value() takes them apart. */
struct perfdata_read {
    uint64_t time_enabled_ns, time_running_ns; /* 0 when not in the format */
    uint64_t count;                            /* of values: 1 unless PERF_FORMAT_GROUP */
    const uint64_t *values;
    uint64_t format;
};

/* Fields that the event's sample_type lacks are 0 or NULL.  Pointers into the record. */
struct perfdata_sample {
    uint64_t sample_type; /* PERF_SAMPLE_*: which fields are there */
    uint64_t ip;
    uint64_t addr;
    uint64_t period; /* the event's fixed period when the samples do not carry it */
    uint64_t weight; /* as PERF_SAMPLE_WEIGHT or the three parts of _WEIGHT_STRUCT */
    uint64_t data_src, transaction, phys_addr, cgroup_id;
    uint64_t data_page_size, code_page_size;

    const uint64_t *callchain; /* leaf first, PERF_CONTEXT_* markers among the addresses */
    uint64_t callchain_count;

    const struct perf_branch_entry *branches; /* newest first */
    uint64_t branch_count;
    uint64_t branch_hw_index; /* -1 when not recorded */

    uint64_t user_regs_abi; /* PERF_SAMPLE_REGS_ABI_* */
    uint64_t user_regs_mask;
    const uint64_t *user_regs; /* one for each bit of the mask, lowest first; NULL for abi none */
    uint64_t intr_regs_abi, intr_regs_mask;
    const uint64_t *intr_regs;

    const void *user_stack;   /* from the user's stack pointer upwards */
    uint64_t user_stack_size; /* bytes that were really copied (dyn_size) */

    const void *raw;
    uint32_t raw_size;
    const void *aux;
    uint64_t aux_size;

    struct perfdata_read read;
};

struct perfdata_mmap {
    uint32_t pid, tid;
    uint64_t start, size, page_offset;
    uint32_t major, minor; /* MMAP2 without a build-id, else 0 */
    uint64_t inode, inode_generation;
    uint32_t prot, flags;  /* MMAP2; MMAP without PERF_RECORD_MISC_MMAP_DATA counts as PROT_EXEC */
    uint8_t build_id_size; /* 0 when the record has none */
    uint8_t build_id[PERFDATA_BUILD_ID_BYTES];
    const char *filename;
};

struct perfdata_comm {
    uint32_t pid, tid;
    bool is_exec;
    const char *comm;
};

struct perfdata_task { /* FORK and EXIT */
    uint32_t pid, ppid, tid, ptid;
    uint64_t time_ns;
};

struct perfdata_lost { /* LOST and LOST_SAMPLES */
    uint64_t id;       /* 0 for LOST_SAMPLES */
    uint64_t count;
};

struct perfdata_throttle { /* THROTTLE and UNTHROTTLE */
    uint64_t time_ns, id, stream_id;
};

struct perfdata_switch { /* SWITCH and SWITCH_CPU_WIDE; the thread itself is record.pid, .tid */
    bool is_out;
    bool is_preempted;             /* out, but still runnable */
    uint32_t other_pid, other_tid; /* next or previous; CPU_WIDE only, else -1 */
};

struct perfdata_namespaces {
    uint32_t pid, tid;
    uint64_t count;
    const struct perfdata_namespace {
        uint64_t dev, inode;
    } * items; /* in the order net, uts, ipc, pid, user, mnt, cgroup */
};

struct perfdata_ksymbol {
    uint64_t addr;
    uint32_t size;
    uint16_t type, flags; /* PERF_RECORD_KSYMBOL_* */
    const char *name;
};

struct perfdata_bpf {
    uint16_t type, flags;
    uint32_t id;
    uint8_t tag[8];
};

struct perfdata_cgroup {
    uint64_t id;
    const char *path;
};

struct perfdata_text_poke {
    uint64_t addr;
    uint16_t old_size, new_size;
    const uint8_t *bytes; /* the old ones, then the new ones */
};

struct perfdata_deferred { /* user call chain of an earlier sample of this thread */
    uint64_t cookie;
    const uint64_t *callchain;
    uint64_t callchain_count;
};

struct perfdata_time_conv {
    uint64_t shift, mult, zero;
};

struct perfdata_thread_map {
    uint64_t count;
    const struct perfdata_thread_map_entry {
        uint64_t pid;
        char comm[16]; /* perhaps not terminated */
    } * items;
};

/* One record.  Everything that it points to stays valid until the next call with this reader. */
struct perfdata_record {
    uint32_t type; /* PERF_RECORD_* or perfdata_user_type */
    uint16_t misc; /* PERF_RECORD_MISC_*; the cpumode for samples and maps */
    uint32_t size_bytes;
    const void *bytes; /* the record as it lies, header first; all other pointers point into it */
    uint64_t offset;   /* of the record, or of the block it was compressed in */
    const struct perfdata_event *event; /* NULL when the record names none */

    /* Where and when, from the sample or the sample_id at the record's end. */
    uint64_t time_ns;       /* 0 when there is none */
    uint32_t pid, tid, cpu; /* -1 when there is none */
    uint64_t id, stream_id; /* 0 when there is none */

    union {
        struct perfdata_sample sample;         /* SAMPLE */
        struct perfdata_mmap mmap;             /* MMAP, MMAP2 */
        struct perfdata_comm comm;             /* COMM */
        struct perfdata_task task;             /* FORK, EXIT */
        struct perfdata_lost lost;             /* LOST, LOST_SAMPLES */
        struct perfdata_throttle throttle;     /* THROTTLE, UNTHROTTLE */
        struct perfdata_switch context_switch; /* SWITCH, SWITCH_CPU_WIDE */
        struct perfdata_read read;             /* READ */
        struct perfdata_namespaces namespaces; /* NAMESPACES */
        struct perfdata_ksymbol ksymbol;       /* KSYMBOL */
        struct perfdata_bpf bpf;               /* BPF_EVENT */
        struct perfdata_cgroup cgroup;         /* CGROUP */
        struct perfdata_text_poke text_poke;   /* TEXT_POKE */
        struct perfdata_deferred deferred;     /* PERFDATA_CALLCHAIN_DEFERRED */
        struct perfdata_time_conv time_conv;   /* PERFDATA_TIME_CONV */
        struct perfdata_thread_map thread_map; /* PERFDATA_THREAD_MAP */
    };
};

/* What the file says about the recording.  Strings are NULL and numbers 0 where it is silent.
 * In a pipe these arrive within the stream: complete only when perfdata_next returned 0. */
struct perfdata_info {
    bool is_pipe;
    bool is_complete; /* the header says where the data ends: the recording was finished */
    bool is_compressed;
    const char *hostname, *os_release, *version, *arch, *cpu_description, *cpu_id;
    uint32_t cpus_online, cpus_available;
    uint64_t memory_kib;
    const char *const *command_line; /* ends with NULL */
    size_t command_line_count;
    uint64_t first_sample_ns, last_sample_ns;
    uint64_t clock_resolution_ns; /* of -k CLOCKID */
    bool has_clock_data;          /* then: */
    uint32_t clock_id;
    uint64_t clock_wall_ns, clock_ns; /* the same moment on the wall's and the record's clock */
    const char *assay_json;           /* the capability record of PERFDATA_FEATURE_ASSAY */
};

struct perfdata_build_id {
    int32_t pid;   /* -1 for the host */
    uint16_t misc; /* the cpumode: PERF_RECORD_MISC_KERNEL or _USER */
    uint8_t size;
    uint8_t id[PERFDATA_BUILD_ID_BYTES];
    const char *filename;
};

/* Counts so far; complete when perfdata_next returned 0. */
struct perfdata_losses {
    uint64_t samples;        /* read */
    uint64_t lost_records;   /* that the kernel had no room for (LOST): samples and others */
    uint64_t lost_counted;   /* the same, as perf counts them at the end of a recording */
    uint64_t lost_samples;   /* that the processor lost (LOST_SAMPLES of the kernel) */
    uint64_t throttled;      /* THROTTLE records */
    uint64_t malformed;      /* records whose contents contradict their size, passed over */
    uint64_t unknown;        /* records of types that this reader does not know */
    uint64_t aux;            /* records of hardware traces, passed over */
    uint64_t unmatched;      /* records with an id that no event has, passed over */
    uint64_t out_of_order;   /* given late because the ordering queue was full */
    uint64_t undecompressed; /* compressed blocks that could not be unpacked */
    uint64_t bytes_missing;  /* that the file should have, but has not */
};

/* All that was lost, each once. */
uint64_t perfdata_lost(const struct perfdata_losses *losses);

struct perfdata_options {
    bool unordered;         /* give the records in the order of the file */
    size_t queue_bytes_max; /* for ordering; 0 for 256 MiB */
};

/* Opens a file, a folder made by perf record --threads, a pipe, or "-" for standard input.
 * options may be NULL. */
int perfdata_open(struct perfdata **ret_reader, const char *path,
                  const struct perfdata_options *options, struct error *err);
/* The same from a descriptor, which stays the caller's; name is for messages. */
int perfdata_open_fd(struct perfdata **ret_reader, int fd, const char *name,
                     const struct perfdata_options *options, struct error *err);
void perfdata_free(struct perfdata *reader);

/* Fills the record and returns 1; 0 at the end; a negative errno when reading failed, after
 * everything before was given. */
int perfdata_next(struct perfdata *reader, struct perfdata_record *ret_record, struct error *err);

/* Words for what is wrong with the file as a whole (cut short, damaged at byte N), NULL when
 * nothing is.  Complete after the last perfdata_next. */
const char *perfdata_trouble(const struct perfdata *reader);
const struct perfdata_losses *perfdata_losses(const struct perfdata *reader);
const struct perfdata_info *perfdata_info(const struct perfdata *reader);
const struct perfdata_build_id *perfdata_build_ids(const struct perfdata *reader,
                                                   size_t *ret_count);

/* The events known so far: all of them at once in a file, as the stream names them in a pipe.
 * A pointer to an event stays valid as long as the reader. */
size_t perfdata_event_count(const struct perfdata *reader);
const struct perfdata_event *perfdata_event(const struct perfdata *reader, size_t index);

/* The bytes of a feature as the file has them; NULL when it is not there. */
const void *perfdata_feature(const struct perfdata *reader, enum perfdata_feature feature,
                             size_t *ret_size);

/* How far reading is, for progress: bytes read and, 0 for a pipe, bytes in all. */
void perfdata_position(const struct perfdata *reader, uint64_t *ret_done, uint64_t *ret_total);

/* The value at index < read->count. */
struct perfdata_read_value perfdata_read_value(const struct perfdata_read *read, uint64_t index);

/* "cycles:u", "sched:… by number", …: a name for attributes whose file has none. */
void perfdata_attr_name(const struct perf_event_attr *attr, char *name, size_t size);
/* "SAMPLE", "MMAP2", …, or NULL. */
const char *perfdata_type_name(uint32_t type);

#endif
