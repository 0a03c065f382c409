/* SPDX-License-Identifier: MIT */
/* assay-vr replica: one member of a cluster. */
#include "base/memory.h"
#include "vr/cmd/cmd.h"
#include "vr/host/host.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

struct settings {
    const char *config, *transport, *data;
    uint64_t index, socket, pin;
    bool format, in_memory, durable, open, insecure, quiet;
};

#define NONE UINT64_MAX

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration", "file"},
    {'i', "index", OPTION_U64, offsetof(struct settings, index), "N",
     "the number of this replica, from 0", NULL},
    {0, "format", OPTION_FLAG, offsetof(struct settings, format), NULL,
     "first start: create the replica's file; fails if it exists. It has no vote until the whole "
     "first group is up, or a reconfiguration has added it",
     NULL},
    {'t', "transport", OPTION_STRING, offsetof(struct settings, transport), "T",
     "epoll, spin, uring, uring+tc, uring+xdp, uring-spin, uring-eventfd, uring-eventfd-unread "
     "(default: from the configuration)",
     "epoll spin uring uring+tc uring+xdp uring-spin uring-eventfd uring-eventfd-unread"},
    {0, "durable", OPTION_FLAG, offsetof(struct settings, durable), NULL,
     "write the log to disk before anything is acknowledged (default)", NULL},
    {0, "in-memory", OPTION_FLAG, offsetof(struct settings, in_memory), NULL,
     "keep the log in memory: it is lost when a majority stops at once", NULL},
    {0, "data", OPTION_STRING, offsetof(struct settings, data), "DIR",
     "directory of the replica's file (default: from the configuration)", "file"},
    {0, "pin", OPTION_U64, offsetof(struct settings, pin), "CPU", "run on this CPU", NULL},
    {0, "open", OPTION_FLAG, offsetof(struct settings, open), NULL,
     "no key, as 'open yes' in the configuration: whoever can send a packet is obeyed", NULL},
    {0, "insecure", OPTION_FLAG, offsetof(struct settings, insecure), NULL,
     "with --open: serve also on addresses other than loopback", NULL},
    {0, "socket", OPTION_U64, offsetof(struct settings, socket), "FD",
     "use this bound UDP socket, and exit when the process that passed it does", NULL},
    {'q', "quiet", OPTION_FLAG, offsetof(struct settings, quiet), NULL,
     "print only what differs from what was requested", NULL},
    {0},
};

static volatile sig_atomic_t stop;

static void on_stop(int signal)
{
    (void)signal;
    stop = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    /* A limit on files is a full disk: an error of the write, not the end. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

static int check(const struct settings *o, const struct vr_cluster *c, struct error *err)
{
    char text[VR_ADDRESS_TEXT_MAX];
    if (o->index == NONE || o->index >= c->node_count)
        return error_set(err, -EINVAL, "--index must be between 0 and %u", c->node_count - 1);
    const union vr_address *own = &c->addresses[o->index];
    if (c->open && !o->insecure && !vr_address_is_loopback(own))
        return error_set(err, -EPERM,
                         "%s is not a loopback address and the cluster is open: anyone who can "
                         "send a packet could change what is stored; use a key or --insecure",
                         vr_address_format(own, text));
    if (!c->open && !c->key.complete)
        return error_set(err, -EACCES, "%s is a client's key; a replica needs the cluster's own",
                         c->key_path);
    if (o->durable && o->in_memory)
        return error_set(err, -EINVAL, "--durable and --in-memory cannot be used together");
    return 0;
}

/* The first replica that is formatted makes the key; where it runs elsewhere, it was copied. */
static int find_keys(const struct settings *o, struct vr_cluster *c, struct error *err)
{
    bool made = false;
    c->open = c->open || o->open;
    if (!c->open && o->format) {
        int result = vr_key_file_make(c->key_path, &made, err);
        if (result)
            return result;
    }
    if (made && !o->quiet)
        printf(
            "created the cluster's key, %s: copy it to the other replicas and to clients, before "
            "they start\n",
            c->key_path);
    return vr_cluster_read_keys(c, err);
}

static int pin(uint64_t cpu, struct error *err)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        return error_errno(err, -errno, "--pin %lu", cpu);
    return 0;
}

/* What is not as it was asked for; said also to who wants to hear nothing else. */
static void tell_missing(const struct vr_host *h, FILE *out)
{
    if (h->tc_error.code)
        fprintf(out, "replica %u: no broadcast in the kernel: %s; sending packets one by one\n",
                h->index, h->tc_error.message);
    if (h->xdp_error.code)
        fprintf(
            out,
            "replica %u: no acknowledgements at the device: %s; the replica sends them itself\n",
            h->index, h->xdp_error.message);
    if (h->damaged)
        fprintf(
            out,
            "replica %u: %u damaged places in its file; repairing them from the other replicas\n",
            h->index, h->damaged);
    fflush(out);
}

static void announce(const struct vr_host *h, const struct vr_cluster *c)
{
    char text[VR_ADDRESS_TEXT_MAX];
    printf("replica %u%s on %s: %s, %s%s\n", h->index,
           h->index >= c->config.replica_count ? " (spare)" : "",
           vr_address_format(&c->addresses[h->index], text), h->io.way->name,
           c->config.in_memory ? "in memory: data is lost if a majority stops at once"
           : h->disk.direct    ? "durable, O_DIRECT"
                               : "durable, through the page cache",
           c->open ? ", open: no key" : ", with a key");
    if (h->tc.count)
        printf("replica %u: prepares are copied at the egress of %s\n", h->index, h->tc.device);
    if (h->xdp.program)
        printf("replica %u: acknowledges at the device (XDP, %s)\n", h->index,
               h->xdp.generic ? "the kernel's generic way" : "in its driver");
}

/* Said also to who wants to hear nothing else. */
static void tell_old_copy(const struct vr_host *h)
{
    fprintf(
        stderr,
        "replica %u: its file is an old copy: the others remember a later start, or promises that "
        "it does not know. It has no vote; 'assay-vr reconfigure --replace %u' adds it again\n",
        h->index, h->index);
}

static int serve(const struct settings *o, struct vr_cluster *c, struct error *err)
{
    uint8_t index = (uint8_t)o->index;
    if (o->in_memory || o->durable)
        c->config.in_memory = o->in_memory;
    if (o->data) {
        free(c->data);
        c->data = memory_strdup(o->data);
    }
    const struct vr_io_way *way = vr_io_find(o->transport ? o->transport : c->transport, err);
    if (!way)
        return -EINVAL;
    int result = o->pin == NONE ? 0 : pin(o->pin, err);
    if (!result && o->format) {
        CLEANUP(memory_freep) char *path = vr_cluster_file(c, index);
        struct vr_config config = c->config;
        config.index = index;
        config.joins = index >= config.replica_count;
        result = vr_disk_format(path, &config, err);
    }
    if (result)
        return result;
    struct vr_host *h = memory_zalloc(1, sizeof(*h));
    result = vr_host_open(h, c, index, way, o->socket == NONE ? -1 : (int)o->socket, err);
    if (!result) {
        if (!o->quiet)
            announce(h, c);
        tell_missing(h, o->quiet ? stderr : stdout);
        h->old_copy = tell_old_copy;
        result = vr_host_run(h, &stop, err);
        vr_host_close(h);
    }
    free(h);
    return result;
}

static int run(int argc, char **argv)
{
    struct settings o = {.index = NONE, .socket = NONE, .pin = NONE};
    struct vr_cluster cluster;
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_replica, &o, argc, argv, NULL, &code))
        return code;
    if (!o.config) {
        error_set(&err, -EINVAL, "--config FILE is missing");
        return vr_fail(&vr_verb_replica, &err, 2);
    }
    int result = vr_cluster_read_settings(&cluster, o.config, &err);
    if (result)
        return vr_fail(&vr_verb_replica, &err, 2);
    result = find_keys(&o, &cluster, &err);
    if (!result)
        result = check(&o, &cluster, &err);
    if (result) {
        vr_cluster_done(&cluster);
        return vr_fail(&vr_verb_replica, &err, 2);
    }
    catch_signals();
    /* Who was handed a socket belongs to who handed it over. */
    if (o.socket != NONE)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    result = serve(&o, &cluster, &err);
    vr_cluster_done(&cluster);
    return result ? vr_fail(&vr_verb_replica, &err, 1) : 0;
}

const struct verb vr_verb_replica = {
    "replica",
    "run one replica of a cluster",
    "--config FILE --index N [--format]",
    "  assay-vr replica --config cluster.conf --index 0 --format   the first start\n"
    "  assay-vr replica --config cluster.conf --index 0            every later one\n",
    options,
    run,
    NULL};
