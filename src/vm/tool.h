/* SPDX-License-Identifier: MIT */
/* Running a tool of the system (apt-get, dpkg-deb, …) and reading what it says, line by line. */
#ifndef ASSAY_VM_TOOL_H
#define ASSAY_VM_TOOL_H

#include "base/error.h"
#include "base/strings.h"

struct vm_tool {
    const char *const *argv;        /* ends with NULL; argv[0] is looked up in PATH */
    const char *const *environment; /* NAME=VALUE beside assay's own; ends with NULL; or NULL */
    const char *folder;             /* to run it in; NULL for assay's own */
    /* Called with each line of its output, the end cut off; may be NULL. */
    void (*on_line)(void *context, const char *line);
    void *context;
    struct strbuf *output; /* gets both streams; may be NULL */
};

/* The tool's exit code, 128 + signal; negative when it could not be run or assay got a signal
 * (-EINTR: then the tool was ended). */
int vm_tool_run(const struct vm_tool *tool, struct error *err);

#endif
