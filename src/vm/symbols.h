/* SPDX-License-Identifier: MIT */
/*
 * Names for recordings that were made in an emulated machine: its kernel's /proc/kallsyms and the
 * programs that were taken along, kept by their build-ids in the layout of perf's own cache, below
 * ${XDG_CACHE_HOME:-~/.cache}/assay/vm/symbols, where src/symbols looks for them, too.
 */
#ifndef ASSAY_VM_SYMBOLS_H
#define ASSAY_VM_SYMBOLS_H

#include "vm/machine.h"

/* What is there already is not brought again. */
int vm_symbols_keep(struct vm_machine *m, struct error *err);

#endif
