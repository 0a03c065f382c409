/* SPDX-License-Identifier: MIT */
/*
 * The plugin for an emulated machine: counts how often each block of code is executed for the
 * command that is measured, in user mode and in the kernel, into the file that
 * exact/machine_format.h describes.
 *
 * What is the command's: the process that marks the beginning is, and every task that ran in user
 * mode afterwards and was not there before.  The task that runs is known from the kernel's switch
 * to it, by the address that its stack pointer is loaded from.  Interrupts are told apart by their
 * entry and return; they come when the host has read a file or when a timer is due, so they are
 * counted, but not as the command's.
 */
#ifndef ASSAY_EXACT_PLUGIN_MACHINE_H
#define ASSAY_EXACT_PLUGIN_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Counts in the file, with the symbols of the guest's kernel (/proc/kallsyms); false, with words on
 * standard error, when it cannot. */
bool machine_open(uint64_t id, const char *counts, const char *symbols);

#endif
