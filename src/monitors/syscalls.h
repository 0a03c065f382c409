/* SPDX-License-Identifier: MIT */
/* Names of system calls. */
#ifndef ASSAY_MONITORS_SYSCALLS_H
#define ASSAY_MONITORS_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* This machine's: "openat", or "number-1000" put into the buffer where the number has no name. */
const char *syscall_name(uint64_t number, char *buffer, size_t size);
/* Those of arm64, anywhere. */
const char *syscall_name_arm64(uint64_t number, char *buffer, size_t size);

#endif
