/* SPDX-License-Identifier: MIT */
/* What the guest's files share. */
#ifndef ASSAY_VM_GUEST_INTERNAL_H
#define ASSAY_VM_GUEST_INTERNAL_H

#include "vm/frames.h"

struct guest {
    int port;
    int child_ended; /* a signalfd */
};

/* Standard error is the console, which the host shows when the machine does not answer. */
_Noreturn void guest_give_up(const char *what);
_Noreturn void guest_power_off(void);

void guest_send(const struct guest *g, const char *kind, const void *bytes, size_t length);
void guest_send_status(const struct guest *g, int status);
/* err with the words of errno, and exit 127. */
void guest_refuse(const struct guest *g, const char *what);
/* Sends what is there to read; false at the end of the stream. */
bool guest_forward(const struct guest *g, const char *kind, int fd);

void guest_serve_run(const struct guest *g, const struct vm_frame *request);
void guest_serve_measure(const struct guest *g, const struct vm_frame *request);

#endif
