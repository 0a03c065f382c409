/* SPDX-License-Identifier: MIT */
/* What a host may acknowledge for a replica that sleeps. */
#include "vr/core/core_internal.h"

bool vr_expects(const struct vr_replica *r, struct vr_expected *ret_expected)
{
    bool settled = r->state == VR_NORMAL && r->durable.log_view == r->view && !r->durable.fresh &&
                   r->durable.view == r->view && !r->uncertain && !vr_asks(r) && !vr_joining(r);
    if (!r->config.in_memory || !settled || vr_leads(r) || !vr_in_group(r) || r->holes ||
        r->durable_op != r->op || r->op + 1 > vr_log_limit(r))
        return false;
    *ret_expected = (struct vr_expected){.view = r->view,
                                         .op = r->op + 1,
                                         .last_op = vr_log_limit(r),
                                         .parent = vr_checksum_at(r, r->op),
                                         .commit = r->commit,
                                         .primary = vr_primary_of(r, r->view)};
    return true;
}

uint64_t vr_op(const struct vr_replica *r)
{
    return r->op;
}
