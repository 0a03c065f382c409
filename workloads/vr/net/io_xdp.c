/* SPDX-License-Identifier: MIT */
#include "vr/net/io_xdp.h"
#include "config.h"
#include "vr/net/io.h"

#if HAVE_VR_XDP

#include "base/memory.h"
#include "vr/net/xdp_shared.h"

#include "xdp_ack.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

static_assert(VR_XDP_BURST <= VR_XDP_SLOTS, "one opening must not come round");

/* On veth a driver's XDP_TX is dropped unless the other end has a program, too; and lo has no
 * driver.  There the kernel's generic way is as good. */
static bool wants_generic(const char *name)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (char *)&info};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0;
    if (fd >= 0)
        close(fd);
    return !known || strcmp(info.driver, "veth") == 0;
}

static int attach(struct vr_xdp *x, unsigned device, const char *name, struct error *err)
{
    int program = vr_xdp_program_fd(x);
    x->generic = wants_generic(name);
    for (int generic = x->generic; generic < 2; generic++) {
        DECLARE_LIBBPF_OPTS(bpf_link_create_opts, options,
                            .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
        x->link_fd = bpf_link_create(program, (int)device, BPF_XDP, &options);
        x->generic = generic;
        if (x->link_fd >= 0)
            return 0;
    }
    if (x->link_fd == -EBUSY || x->link_fd == -EEXIST)
        return error_set(
            err, x->link_fd,
            "%s already has an XDP program (replicas that share a device cannot each have one)",
            name);
    return error_errno(err, x->link_fd, "attaching the program to %s", name);
}

static int be_silent(enum libbpf_print_level level, const char *format, va_list words)
{
    (void)level, (void)format, (void)words;
    return 0;
}

int vr_xdp_load(struct vr_xdp *x, struct error *err)
{
    *x = (struct vr_xdp){.link_fd = -1};
    libbpf_set_print(be_silent);
    libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
    x->program = xdp_ack__open();
    int result = x->program ? xdp_ack__load(x->program) : -errno;
    if (result) {
        error_errno(err, result, "loading the program (it needs root and Linux 5.18)");
        vr_xdp_close(x);
    }
    return result;
}

int vr_xdp_program_fd(const struct vr_xdp *x)
{
    return bpf_program__fd(x->program->progs.vr_ack);
}

int vr_xdp_open(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                struct error *err)
{
    char name[IF_NAMESIZE] = "?";
    *x = (struct vr_xdp){.link_fd = -1};
    if (!cluster->config.in_memory)
        return error_set(err, -EOPNOTSUPP,
                         "a durable replica acknowledges only what is on its disk");
    if (cluster->encrypt)
        return error_set(err, -EOPNOTSUPP, "the program cannot read packets that are encrypted");
    unsigned device = vr_device_of(&cluster->addresses[index], name);
    if (!device)
        return error_set(err, -ENODEV, "no device has this replica's address");
    int result = vr_xdp_load(x, err);
    if (result)
        return result;
    result = attach(x, device, name, err);
    if (result)
        vr_xdp_close(x);
    return result;
}

void vr_xdp_close(struct vr_xdp *x)
{
    if (x->program && x->link_fd >= 0)
        close(x->link_fd);
    if (x->program)
        xdp_ack__destroy(x->program);
    *x = (struct vr_xdp){.link_fd = -1};
}

/* Closed now, so that nobody else writes; the word opens it, behind everything. */
void vr_xdp_open_gate(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                      const struct vr_expected *e)
{
    if (!x->program || e->last_op > VR_XDP_OP_MASK)
        return;
    struct vr_xdp_gate *g = &x->program->bss->area.gate;
    const struct sockaddr_in *own = &cluster->addresses[index].v4;
    const struct sockaddr_in *primary = &cluster->addresses[e->primary].v4;
    /* Backups take turns at waking, so that some of them answer early at any time. */
    uint64_t burst_end =
        (e->op + index * 5u + VR_XDP_BURST) / VR_XDP_BURST * VR_XDP_BURST - index * 5u - 1;
    g->view = e->view;
    g->commit = e->commit;
    g->parent = e->parent;
    g->last_op = e->last_op < burst_end ? e->last_op : burst_end;
    g->epoch = (uint16_t)vr_epoch_of(e->view);
    g->cluster = cluster->config.cluster;
    g->body_max = cluster->config.batch_bytes;
    const struct vr_key *key = &cluster->key.keys.replica;
    g->key[0] = key->word[0];
    g->key[1] = key->word[1];
    g->body_key = vr_key_of_bodies(key).word[0];
    g->two_rounds = key->rounds == 2;
    g->own = index;
    g->primary = e->primary;
    g->own_address = own->sin_addr.s_addr;
    g->own_port = own->sin_port;
    g->primary_address = primary->sin_addr.s_addr;
    g->primary_port = primary->sin_port;
    x->first_op = e->op;
    uint64_t word = (uint64_t)++x->opened << VR_XDP_OP_BITS | e->op;
    __atomic_store_n(&g->word, word, __ATOMIC_SEQ_CST);
}

uint64_t vr_xdp_close_gate(struct vr_xdp *x, vr_xdp_deliver deliver, void *context)
{
    struct vr_xdp_area *area = &x->program->bss->area;
    uint64_t word = __atomic_exchange_n(&area->gate.word, 0, __ATOMIC_SEQ_CST);
    uint64_t first = x->first_op, end = word & VR_XDP_OP_MASK;
    assert(word >> VR_XDP_OP_BITS == x->opened && end >= first && end - first <= VR_XDP_SLOTS);
    x->first_op = 0;
    for (uint64_t op = first; op < end; op++) {
        struct vr_xdp_slot *slot = &area->slots[op % VR_XDP_SLOTS];
        uint64_t taken = (uint64_t)x->opened << VR_XDP_OP_BITS | op;
        /* Promised a moment ago on another CPU, which is about to finish. */
        while (__atomic_load_n(&slot->ready, __ATOMIC_SEQ_CST) != taken)
            sched_yield();
        if (slot->size == 0 || slot->size > VR_XDP_BYTES)
            return op - 1 >= first ? op - 1 : 0;
        slot->ready = 0;
        deliver(context, slot->bytes, slot->size);
    }
    return end > first ? end - 1 : 0;
}

uint64_t vr_xdp_acknowledged(const struct vr_xdp *x)
{
    return x->program ? x->program->bss->area.gate.acknowledged : 0;
}

#else

#include <errno.h>
#include <stdlib.h>

int vr_xdp_load(struct vr_xdp *x, struct error *err)
{
    *x = (struct vr_xdp){.link_fd = -1};
    return error_set(err, -EOPNOTSUPP, "built without clang, bpftool or libbpf");
}
int vr_xdp_program_fd(const struct vr_xdp *x)
{
    (void)x;
    return -1;
}
int vr_xdp_open(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                struct error *err)
{
    (void)cluster, (void)index;
    return vr_xdp_load(x, err);
}
void vr_xdp_close(struct vr_xdp *x)
{
    (void)x;
}
void vr_xdp_open_gate(struct vr_xdp *x, const struct vr_cluster *cluster, uint8_t index,
                      const struct vr_expected *expected)
{
    (void)x, (void)cluster, (void)index, (void)expected;
}
uint64_t vr_xdp_close_gate(struct vr_xdp *x, vr_xdp_deliver deliver, void *context)
{
    (void)x, (void)deliver, (void)context;
    abort();
}
uint64_t vr_xdp_acknowledged(const struct vr_xdp *x)
{
    (void)x;
    return 0;
}

#endif
