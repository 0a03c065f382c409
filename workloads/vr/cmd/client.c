/* SPDX-License-Identifier: MIT */
/* assay-vr client: load on a cluster that runs. */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/client/caller.h"
#include "vr/cmd/cmd.h"
#include "vr/cmd/load_options.h"
#include "vr/load/report.h"

#include <errno.h>
#include <unistd.h>

struct settings {
    const char *config;
    struct vr_load_options load;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    VR_LOAD_OPTIONS(struct settings, load),
    {0},
};

static volatile sig_atomic_t stop;

static void on_stop(int signal)
{
    stop = signal;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .load = VR_LOAD_DEFAULTS};
    struct vr_cluster cluster;
    struct vr_load_settings s;
    struct error err = {0};
    int code;
    if (!vr_options(&vr_verb_client, &o, argc, argv, NULL, &code))
        return code;
    if (vr_load_options_check(&o.load, &s, &err) || vr_cluster_read(&cluster, o.config, &err))
        return vr_fail(&vr_verb_client, &err, 2);
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    s.stop = &stop;
    struct vr_load_result *r = memory_zalloc(1, sizeof(*r));
    int result = vr_load_run(&cluster, &s, r, &err);
    if (!result) {
        struct vr_figures figures = {0};
        CLEANUP(memory_freep)
        char *head = memory_printf("%lu clients, %s", s.clients, s.way->name);
        vr_figures_load(&figures, &s, r);
        result = vr_figures_print(&figures, head, o.load.json, &err);
    }
    free(r);
    vr_cluster_done(&cluster);
    return vr_load_end(&vr_verb_client, &o.load, &s, result, stop, &err);
}

const struct verb vr_verb_client = {
    "client",
    "put load on a running cluster and time its answers",
    "[--config FILE] [--clients N] [--requests N]",
    "  assay-vr client -c cluster.conf --clients 32 --requests 100000\n"
    "  assay-vr client -c cluster.conf --clients 32 --rate 20000 --time 10 --op put\n",
    options,
    run,
    NULL};
