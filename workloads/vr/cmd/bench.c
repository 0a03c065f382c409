/* SPDX-License-Identifier: MIT */
/* assay-vr bench: starts a cluster on this machine, puts load on it, and says what it cost. */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"
#include "vr/cmd/load_options.h"
#include "vr/load/local.h"
#include "vr/load/report.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

struct settings {
    struct vr_load_options load;
    uint64_t replicas, kill_after_ns, idle_ns, every;
    const char *transport, *pin, *folder;
    struct option_list set;
    bool durable, in_memory;
};

static const struct option options[] = {
    {'r', "replicas", OPTION_U64, offsetof(struct settings, replicas), "N", "1, 3, 5 or 7 (3)",
     NULL},
    {'t', "transport", OPTION_STRING, offsetof(struct settings, transport), "T",
     "transport of the replicas: epoll (default), spin, uring, uring+tc, uring+xdp, uring-spin, "
     "uring-eventfd, uring-eventfd-unread",
     "epoll spin uring uring+tc uring+xdp uring-spin uring-eventfd uring-eventfd-unread"},
    {0, "durable", OPTION_FLAG, offsetof(struct settings, durable), NULL,
     "replicas write their log to disk before they acknowledge (default)", NULL},
    {0, "in-memory", OPTION_FLAG, offsetof(struct settings, in_memory), NULL,
     "replicas keep their log in memory", NULL},
    {0, "pin", OPTION_STRING, offsetof(struct settings, pin), "CPUS",
     "CPUs of the replicas in order, then of the clients, e.g. 0,1,1,0; or one for all", NULL},
    {0, "dir", OPTION_STRING, offsetof(struct settings, folder), "DIR",
     "directory for the replicas' files while it runs ($TMPDIR or /tmp)", "file"},
    {0, "set", OPTION_LIST, offsetof(struct settings, set), "NAME=VALUE",
     "a setting of the configuration, e.g. timeout=50ms; may be repeated", NULL},
    {0, "kill-leader", OPTION_MS, offsetof(struct settings, kill_after_ns), "T",
     "kill the leader this long after the start of the measurement", NULL},
    {0, "idle", OPTION_SECONDS, offsetof(struct settings, idle_ns), "T",
     "no load: measure the replicas while they are idle", NULL},
    {0, "every", OPTION_U64, offsetof(struct settings, every), "N",
     "print a line to standard error after every N operations: speed, memory and CPU time of the "
     "replicas",
     NULL},
    VR_LOAD_OPTIONS(struct settings, load),
    {0},
};

struct bench {
    struct vr_local local;
    uint64_t cpu_ns[VR_REPLICAS_MAX], kill_after_ns;
    struct vr_status before[VR_NODES_MAX], after[VR_NODES_MAX];
    bool there_before[VR_NODES_MAX], there_after[VR_NODES_MAX];
    uint64_t rss_bytes, begun_ns, elapsed_ns;
    bool killed;
    const struct vr_load_result *result;
    uint64_t every, told, told_ns, told_cpu_ns; /* --every: what the last line was about */
};

static volatile sig_atomic_t stop;

static void on_stop(int signal)
{
    stop = signal;
}

static void ask_status(struct bench *b, struct vr_status *statuses, bool *there)
{
    struct vr_client *c;
    memset(there, 0, VR_NODES_MAX * sizeof(*there));
    if (vr_client_open_cluster(&c, &b->local.cluster, NULL))
        return;
    vr_client_status(c, NS_PER_S / 2, statuses, there, NULL);
    vr_client_close(c);
}

static void begins(void *context)
{
    struct bench *b = context;
    ask_status(b, b->before, b->there_before);
    for (uint32_t i = 0; i < b->local.count; i++)
        b->cpu_ns[i] = vr_local_cpu_ns(&b->local, i);
    b->begun_ns = clock_now_ns();
    for (uint32_t i = 0; i < b->local.count; i++)
        b->told_cpu_ns += b->cpu_ns[i];
}

static void ends(void *context)
{
    struct bench *b = context;
    b->elapsed_ns = clock_now_ns() - b->begun_ns;
    for (uint32_t i = 0; i < b->local.count; i++) {
        uint64_t cpu_ns = vr_local_cpu_ns(&b->local, i), rss = vr_local_rss_bytes(&b->local, i);
        b->cpu_ns[i] = cpu_ns > b->cpu_ns[i] ? cpu_ns - b->cpu_ns[i] : 0;
        if (rss > b->rss_bytes)
            b->rss_bytes = rss;
    }
    ask_status(b, b->after, b->there_after);
}

static int check_replicas(void *context, struct error *err)
{
    struct bench *b = context;
    return vr_local_check(&b->local, err);
}

/* "20,000,000 ops: 190,211 ops/s, 8.1 us CPU/op, 7.02 7.01 7.01 MiB" */
static void tell(struct bench *b, uint64_t elapsed_ns)
{
    uint64_t done = b->result->done, cpu_ns = 0;
    if (!b->every || done / b->every == b->told / b->every)
        return;
    for (uint32_t i = 0; i < b->local.count; i++)
        cpu_ns += vr_local_cpu_ns(&b->local, i);
    double ops = (double)(done - b->told);
    fprintf(stderr, "%lu ops: %.0f ops/s, %.2f us CPU/op,", done,
            ops * 1e9 / (double)(elapsed_ns - b->told_ns),
            (double)(cpu_ns - b->told_cpu_ns) / 1e3 / ops);
    for (uint32_t i = 0; i < b->local.count; i++)
        fprintf(stderr, " %.2f", (double)vr_local_rss_bytes(&b->local, i) / 1048576.0);
    fprintf(stderr, " MiB\n");
    b->told = done;
    b->told_ns = elapsed_ns;
    b->told_cpu_ns = cpu_ns;
}

static void tick(void *context, uint64_t elapsed_ns)
{
    struct bench *b = context;
    tell(b, elapsed_ns);
    if (!b->kill_after_ns || b->killed || elapsed_ns < b->kill_after_ns)
        return;
    for (uint32_t i = 0; i < b->local.count && !b->killed; i++)
        if (b->there_before[i] && vr_status_primary(&b->before[i]) == i) {
            vr_local_kill(&b->local, i);
            b->killed = true;
        }
}

static int parse_pin(const char *text, int *cpus, size_t *ret_count, struct error *err)
{
    size_t count = 0;
    for (const char *at = text; *at;) {
        char *end;
        long cpu = strtol(at, &end, 10);
        if (end == at || cpu < 0 || cpu >= CPU_SETSIZE || (*end && *end != ',') ||
            count == VR_REPLICAS_MAX + 1)
            return error_set(err, -EINVAL, "--pin '%s': write CPUs, e.g. 0,1,1,0", text);
        cpus[count++] = (int)cpu;
        at = *end ? end + 1 : end;
    }
    *ret_count = count;
    return count ? 0 : error_set(err, -EINVAL, "--pin names no CPU");
}

static int pin_clients(const int *cpus, size_t count, uint32_t replicas, struct error *err)
{
    cpu_set_t set;
    int cpu = cpus[replicas < count ? replicas : count - 1];
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        return error_errno(err, -errno, "pinning the clients to CPU %d", cpu);
    return 0;
}

static void add_costs(struct vr_figures *f, const struct bench *b, uint64_t done)
{
    double ops = done ? (double)done : 1;
    static const char *const each[VR_REPLICAS_MAX] = {
        "CPU per op, replica 0", "CPU per op, replica 1", "CPU per op, replica 2",
        "CPU per op, replica 3", "CPU per op, replica 4", "CPU per op, replica 5",
        "CPU per op, replica 6"};
    uint64_t cpu_ns = 0, most_ns = 0, sent = 0, received = 0, cycles = 0, fell_back = 0;
    bool all = true;
    for (uint32_t i = 0; i < b->local.count; i++) {
        char name[40];
        cpu_ns += b->cpu_ns[i];
        most_ns = b->cpu_ns[i] > most_ns ? b->cpu_ns[i] : most_ns;
        fell_back += b->there_before[i] && b->before[i].fell_back;
        all = all && b->there_before[i] && b->there_after[i];
        snprintf(name, sizeof(name), "cpu_per_op_%u", i);
        if (done)
            vr_figures_add(f, name, "us", each[i], (double)b->cpu_ns[i] / 1e3 / ops);
    }
    if (done)
        vr_figures_add(f, "cpu_per_op", "us", "replicas' CPU per op", (double)cpu_ns / 1e3 / ops);
    vr_figures_add(f, "cpu_share", "%", "replicas' CPU each",
                   100.0 * (double)cpu_ns / (double)b->elapsed_ns / b->local.count);
    vr_figures_add(f, "cpu_share_max", "%", done ? NULL : "of the busiest",
                   100.0 * (double)most_ns / (double)b->elapsed_ns);
    vr_figures_add(f, "fell_back", "replicas", fell_back ? "not with this transport" : NULL,
                   (double)fell_back);
    for (uint32_t i = 0; i < b->local.count && all; i++) {
        sent += b->after[i].packets_sent - b->before[i].packets_sent;
        received += b->after[i].packets_received - b->before[i].packets_received;
        cycles += b->after[i].disk_cycles - b->before[i].disk_cycles;
    }
    if (all && done) {
        vr_figures_add(f, "packets_sent_per_op", "packets", "sent by replicas per op",
                       (double)sent / ops);
        vr_figures_add(f, "packets_received_per_op", "packets", "received per op",
                       (double)received / ops);
        vr_figures_add(f, "disk_cycles", "cycles", cycles ? "disk commits" : NULL, (double)cycles);
    }
    vr_figures_add(f, "replica_rss", "MiB", "largest replica", (double)b->rss_bytes / 1048576.0);
}

static int idle(struct bench *b, uint64_t idle_ns, struct vr_load_settings *s,
                struct vr_load_result *r, struct error *err)
{
    s->requests = 1;
    int result = vr_load_run(&b->local.cluster, s, r, err);
    if (result)
        return result;
    begins(b);
    uint64_t end_ns = clock_now_ns() + idle_ns;
    for (uint64_t now_ns; (now_ns = clock_now_ns()) < end_ns && !stop;) {
        struct timespec rest = timespec_from_ns(end_ns - now_ns);
        nanosleep(&rest, NULL);
    }
    ends(b);
    return 0;
}

static int measure(const struct settings *o, struct vr_load_settings *s,
                   const struct vr_local_settings *local, struct error *err)
{
    struct bench *b = memory_zalloc(1, sizeof(*b));
    struct vr_load_result *r = memory_zalloc(1, sizeof(*r));
    struct vr_figures figures = {0};
    b->kill_after_ns = o->kill_after_ns;
    b->every = o->every;
    b->result = r;
    int result = vr_local_start(&b->local, local, err);
    if (!result) {
        s->begins = o->idle_ns ? NULL : begins;
        s->ends = o->idle_ns ? NULL : ends;
        s->tick = tick;
        s->check = check_replicas;
        s->context = b;
        s->stop = &stop;
        result =
            o->idle_ns ? idle(b, o->idle_ns, s, r, err) : vr_load_run(&b->local.cluster, s, r, err);
    }
    if (!result && o->kill_after_ns && !b->killed && !stop)
        result = error_set(err, -ESRCH, "no leader was found to kill during the measurement");
    if (!result) {
        if (!o->idle_ns)
            vr_figures_load(&figures, s, r);
        add_costs(&figures, b, o->idle_ns ? 0 : r->done);
        CLEANUP(memory_freep)
        char *head = memory_printf("%u %s, %s, %s; %lu %s, %s%s%s", b->local.count,
                                   plural(b->local.count, "replica", "replicas"), local->transport,
                                   local->in_memory ? "in memory" : "durable", s->clients,
                                   plural(s->clients, "client", "clients"), s->way->name,
                                   o->pin ? "; on CPUs " : "", o->pin ? o->pin : "");
        result = vr_figures_print(&figures, head, o->load.json, err);
    }
    vr_local_stop(&b->local);
    free(b);
    free(r);
    return result;
}

static int check(const struct settings *o, struct vr_local_settings *local, struct strbuf *lines,
                 struct error *err)
{
    if (o->replicas % 2 == 0 || o->replicas > VR_REPLICAS_MAX)
        return error_set(err, -EINVAL, "--replicas must be 1, 3, 5 or 7");
    if (o->durable && o->in_memory)
        return error_set(err, -EINVAL, "--durable and --in-memory cannot be used together");
    if (!vr_io_find(o->transport, err))
        return -EINVAL;
    if (str_eq(o->load.op, "null"))
        strbuf_puts(lines, "keys 0\n");
    if (o->load.clients > 1024)
        strbuf_printf(lines, "sessions %lu\n", o->load.clients * 2);
    for (size_t i = 0; i < o->set.count; i++) {
        const char *equals = strchr(o->set.items[i], '=');
        static const char *const own[] = {"data",      "replica",   "spare",
                                          "transport", "in-memory", "cluster"};
        if (!equals)
            return error_set(err, -EINVAL, "--set '%s': write NAME=VALUE", o->set.items[i]);
        for (size_t k = 0; k < ARRAY_COUNT(own); k++)
            if (strlen(own[k]) == (size_t)(equals - o->set.items[i]) &&
                str_has_prefix(o->set.items[i], own[k]))
                return error_set(err, -EINVAL,
                                 "--set %s: bench creates its own cluster; use --dir, --replicas, "
                                 "--transport and --in-memory",
                                 own[k]);
        strbuf_printf(lines, "%.*s %s\n", (int)(equals - o->set.items[i]), o->set.items[i],
                      equals + 1);
    }
    *local = (struct vr_local_settings){.replicas = o->replicas,
                                        .transport = o->transport,
                                        .in_memory = o->in_memory,
                                        .folder = o->folder,
                                        .settings = strbuf_text(lines)};
    return 0;
}

static int run(int argc, char **argv)
{
    struct settings o = {.replicas = 3, .transport = "epoll", .load = VR_LOAD_DEFAULTS};
    CLEANUP(strbuf_done) struct strbuf lines = {0};
    struct vr_local_settings local;
    struct vr_load_settings s;
    struct error err = {0};
    int cpus[VR_REPLICAS_MAX + 1], code;
    if (!vr_options(&vr_verb_bench, &o, argc, argv, NULL, &code))
        return code;
    int result = check(&o, &local, &lines, &err);
    if (!result)
        result = vr_load_options_check(&o.load, &s, &err);
    if (!result && o.pin) {
        result = parse_pin(o.pin, cpus, &local.cpu_count, &err);
        local.cpus = cpus;
        if (!result)
            result = pin_clients(cpus, local.cpu_count, (uint32_t)o.replicas, &err);
    }
    if (result)
        return vr_fail(&vr_verb_bench, &err, 2);
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    result = measure(&o, &s, &local, &err);
    free(o.set.items);
    return vr_load_end(&vr_verb_bench, &o.load, &s, result, stop, &err);
}

const struct verb vr_verb_bench = {
    "bench",
    "start a cluster on this machine, put load on it, and measure what it costs",
    "[--replicas 3] [--clients N] [--requests N] [--transport T] [--in-memory]",
    "  assay-vr bench --replicas 3 --requests 10000 --clients 32 --transport uring --in-memory\n"
    "  assay-vr bench --clients 128 --requests 200000                durable\n"
    "  assay-vr bench --in-memory --clients 4 --time 2 --kill-leader 500ms\n"
    "  assay-vr bench --idle 5 --in-memory\n",
    options,
    run,
    NULL};
