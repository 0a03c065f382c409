/* SPDX-License-Identifier: MIT */
/* The names of the transports (io.h), without the transports: a configuration names one, and who
 * reads it need not be able to use it. */
#ifndef ASSAY_VR_TRANSPORT_H
#define ASSAY_VR_TRANSPORT_H

#include "base/error.h"

int vr_transport_check(const char *name, struct error *err);

#endif
