/* SPDX-License-Identifier: MIT */
/* Source files, read once and taken apart into lines. */
#ifndef ASSAY_REPORT_PROFILE_SOURCE_H
#define ASSAY_REPORT_PROFILE_SOURCE_H

#include "base/strings.h"

#include <time.h>

struct source_file {
    char *path;
    bool is_there;
    time_t changed; /* when it was last written */
    struct strbuf text;
    size_t *starts; /* of lines, in text */
    size_t line_count, line_capacity;
};

struct sources {
    struct source_file **files;
    size_t count, capacity;
};

void sources_done(struct sources *sources);
/* The file, opened or found missing the first time. */
const struct source_file *sources_get(struct sources *sources, const char *path);
/* Line 1 is the first.  False when there is no such line. */
bool source_line(const struct source_file *file, uint32_t line, const char **ret_text,
                 size_t *ret_length);

#endif
