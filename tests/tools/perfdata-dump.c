/* SPDX-License-Identifier: MIT */
/*
 * Prints what the perf.data reader finds, one line for each record, for tests to compare with
 * what perf prints of the same file.  Not installed.
 *
 *   perfdata-dump [--unordered] [--summary] [--off-cpu] FILE
 */
#include "base/memory.h"
#include "base/strings.h"
#include "sampler/offcpu.h"
#include "sampler/perfdata.h"

#include <inttypes.h>
#include <stdio.h>

static void print_sample(const struct perfdata_record *r)
{
    const struct perfdata_sample *s = &r->sample;
    printf(" event=%s ip=%" PRIx64 " period=%" PRIu64 " cpumode=%u", r->event->name, s->ip,
           s->period, r->misc & PERF_RECORD_MISC_CPUMODE_MASK);
    if (s->sample_type & PERF_SAMPLE_ADDR)
        printf(" addr=%" PRIx64, s->addr);
    if (s->raw)
        printf(" raw=%u", s->raw_size);
    if (s->user_regs)
        printf(" regs=%d", __builtin_popcountll(s->user_regs_mask));
    if (s->user_stack)
        printf(" stack=%" PRIu64, s->user_stack_size);
    if (s->branches)
        printf(" branches=%" PRIu64, s->branch_count);
    if (s->sample_type & PERF_SAMPLE_READ)
        for (uint64_t i = 0; i < s->read.count; i++)
            printf(" read=%" PRIu64, perfdata_read_value(&s->read, i).value);
    if (s->callchain) {
        printf(" chain=");
        for (uint64_t i = 0; i < s->callchain_count; i++)
            printf("%s%" PRIx64, i ? "," : "", s->callchain[i]);
    }
}

static void print_build_id(const uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%02x", id[i]);
}

static void print_mmap(const struct perfdata_mmap *m)
{
    printf(" map pid=%d tid=%d start=%" PRIx64 " size=%" PRIx64 " pgoff=%" PRIx64 " prot=%u",
           (int)m->pid, (int)m->tid, m->start, m->size, m->page_offset, m->prot);
    if (m->build_id_size) {
        printf(" build_id=");
        print_build_id(m->build_id, m->build_id_size);
    }
    printf(" file=%s", m->filename);
}

static void print_record(const struct perfdata_record *r)
{
    const char *name = perfdata_type_name(r->type);
    printf("%s time=%" PRIu64 " pid=%d tid=%d cpu=%d", name ? name : "?", r->time_ns, (int)r->pid,
           (int)r->tid, (int)r->cpu);
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        print_sample(r);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        print_mmap(&r->mmap);
        break;
    case PERF_RECORD_COMM:
        printf(" comm %d/%d%s %s", (int)r->comm.pid, (int)r->comm.tid,
               r->comm.is_exec ? " exec" : "", r->comm.comm);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        printf(" %d/%d from %d/%d", (int)r->task.pid, (int)r->task.tid, (int)r->task.ppid,
               (int)r->task.ptid);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        printf(" lost=%" PRIu64, r->lost.count);
        break;
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        printf(" %s%s other=%d", r->context_switch.is_out ? "OUT" : "IN",
               r->context_switch.is_preempted ? " preempt" : "", (int)r->context_switch.other_tid);
        break;
    case PERF_RECORD_NAMESPACES:
        printf(" namespaces=%" PRIu64, r->namespaces.count);
        break;
    case PERF_RECORD_KSYMBOL:
        printf(" %" PRIx64 " %s", r->ksymbol.addr, r->ksymbol.name);
        break;
    case PERF_RECORD_CGROUP:
        printf(" %" PRIu64 " %s", r->cgroup.id, r->cgroup.path);
        break;
    default:
        break;
    }
    putchar('\n');
}

static void print_summary(const struct perfdata *p)
{
    const struct perfdata_losses *l = perfdata_losses(p);
    const struct perfdata_info *info = perfdata_info(p);
    size_t count;
    const struct perfdata_build_id *ids = perfdata_build_ids(p, &count);
    for (size_t i = 0; i < count; i++) {
        printf("build-id %d ", ids[i].pid);
        print_build_id(ids[i].id, ids[i].size);
        printf(" %s\n", ids[i].filename);
    }
    for (size_t i = 0; i < perfdata_event_count(p); i++)
        printf("event %zu %s ids=%zu\n", i, perfdata_event(p, i)->name,
               perfdata_event(p, i)->id_count);
    printf(
        "info pipe=%d complete=%d compressed=%d host=%s release=%s version=%s arch=%s cpus=%u/%u "
        "cpu=%s time=%" PRIu64 "..%" PRIu64 "\n",
        info->is_pipe, info->is_complete, info->is_compressed,
        info->hostname ? info->hostname : "-", info->os_release ? info->os_release : "-",
        info->version ? info->version : "-", info->arch ? info->arch : "-", info->cpus_online,
        info->cpus_available, info->cpu_description ? info->cpu_description : "-",
        info->first_sample_ns, info->last_sample_ns);
    printf("command");
    for (size_t i = 0; i < info->command_line_count; i++)
        printf(" %s", info->command_line[i]);
    printf("\nassay %s\n", info->assay_json ? info->assay_json : "-");
    printf(
        "losses samples=%" PRIu64 " lost=%" PRIu64 " lost_counted=%" PRIu64 " lost_samples=%" PRIu64
        " throttled=%" PRIu64 " malformed=%" PRIu64 " unknown=%" PRIu64 " aux=%" PRIu64
        " unmatched=%" PRIu64 " late=%" PRIu64 " undecompressed=%" PRIu64 " missing=%" PRIu64 "\n",
        l->samples, l->lost_records, l->lost_counted, l->lost_samples, l->throttled, l->malformed,
        l->unknown, l->aux, l->unmatched, l->out_of_order, l->undecompressed, l->bytes_missing);
    printf("trouble %s\n", perfdata_trouble(p) ? perfdata_trouble(p) : "-");
}

static void print_wait(const struct perfdata_record *w)
{
    printf("WAIT %s ", w->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? "preempted" : "blocked");
    print_record(w);
}

/* Gives the record to the off-CPU clock too. */
static void watch(struct offcpu *o, const struct perfdata_record *r)
{
    struct perfdata_record wait;
    if (o && offcpu_feed(o, r, &wait) == OFFCPU_WAIT)
        print_wait(&wait);
}

static void print_waiting(struct offcpu *o)
{
    struct perfdata_record wait;
    while (offcpu_flush(o, &wait))
        print_wait(&wait);
    const struct offcpu_losses *l = offcpu_losses(o);
    printf("waits %" PRIu64 " unended=%" PRIu64 " without_start=%" PRIu64 "\n", l->waits,
           l->unended, l->without_start);
}

int main(int argc, char **argv)
{
    struct perfdata_options options = {0};
    bool quiet = false, off_cpu = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--unordered"))
            options.unordered = true;
        else if (str_eq(argv[i], "--summary"))
            quiet = true;
        else if (str_eq(argv[i], "--off-cpu"))
            off_cpu = true;
        else
            path = argv[i];
    }
    if (!path) {
        fputs("usage: perfdata-dump [--unordered] [--summary] [--off-cpu] FILE\n", stderr);
        return 2;
    }
    struct error err;
    struct perfdata *p;
    if (perfdata_open(&p, path, &options, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    struct perfdata_record r;
    int got;
    struct offcpu *o = off_cpu ? offcpu_new() : NULL;
    while ((got = perfdata_next(p, &r, &err)) > 0) {
        if (!quiet)
            print_record(&r);
        watch(o, &r);
    }
    if (o)
        print_waiting(o);
    offcpu_free(o);
    if (got < 0)
        fprintf(stderr, "%s\n", err.message);
    print_summary(p);
    perfdata_free(p);
    return got < 0;
}
