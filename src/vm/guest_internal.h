/* SPDX-License-Identifier: MIT */
/* What the guest's files share. */
#ifndef ASSAY_VM_GUEST_INTERNAL_H
#define ASSAY_VM_GUEST_INTERNAL_H

#include "vm/frames.h"

#define GUEST_ROOT "/root" /* the host's files below an own layer */

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

/* Makes the host's files, which a command may change without changing them there, those below
 * GUEST_ROOT.  False with errno and what failed. */
bool guest_host_mount(const char **ret_failed);
/* Makes a directory of theirs seen in the place of another one.  False with errno. */
bool guest_host_bind(const char *tree, const char *seen_as);
/* The same date for each command. */
void guest_set_date(void);
/* Returns just after the clock has ticked. */
void guest_await_tick(void);
/* Answers when the machine is to be kept as it is, and then waits for the next request without
 * sleeping. */
void guest_serve_hold(const struct guest *g);

/* The files that the processes this one starts from now on map as code. */
struct guest_maps {
    int fd;
    void *ring; /* NULL where the kernel does not tell */
};
void guest_maps_open(struct guest_maps *m);
/* Lines of "START END OFFSET PATH", the numbers hexadecimal; each once. */
void guest_maps_put(const struct guest_maps *m, struct strbuf *out);
void guest_maps_close(struct guest_maps *m);

/* The layout of a command's memory: it asks for it before its exec, and gets so many mappings more
 * than it has by itself before its first instruction.  False with errno. */
bool guest_layout_ask(void);
bool guest_layout_give(pid_t pid, size_t mapping_count);

/* Why a program of this name did not start: strerror's words where they do not mislead. */
const char *guest_exec_words(const char *name, int code);
/* Sends a word on a command that the kernel killed for want of memory. */
void guest_tell_death(const struct guest *g, int status);

void guest_serve_run(const struct guest *g, const struct vm_frame *request);
void guest_serve_measure(const struct guest *g, const struct vm_frame *request);

#endif
