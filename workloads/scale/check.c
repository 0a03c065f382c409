/* SPDX-License-Identifier: MIT */
/* What a test needs against what the machine has, before anything is started. */
#include "base/fd.h"
#include "base/memory.h"
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { FILES_SPARE = 64, FILES_FEW = 6, CALLS_FILES = CALLS_MAX };

static int check_memory(const struct measure_spec *spec, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    uint64_t needed = spec->test->memory_bytes * spec->task_count;
    if (!needed || file_read("/proc/meminfo", &text, NULL) < 0)
        return 0;
    const char *line = strstr(strbuf_text(&text), "MemAvailable:");
    uint64_t available = line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
    if (!line || needed < available)
        return 0;
    char want[32], have[32];
    return error_set(err, -ENOMEM,
                     "%s with %u %s uses %s of memory, but %s is available; use fewer tasks (-t)",
                     spec->test->name, spec->task_count, plural(spec->task_count, "task", "tasks"),
                     format_bytes((double)needed, want, sizeof(want)),
                     format_bytes((double)available, have, sizeof(have)));
}

static int check_disk(const struct measure_spec *spec, struct error *err)
{
    struct statvfs fs;
    uint64_t needed = spec->test->disk_bytes * spec->task_count;
    if (!needed || statvfs(spec->folder, &fs) < 0 || fs.f_blocks == 0)
        return 0;
    uint64_t available = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (needed < available)
        return 0;
    char want[32], have[32];
    return error_set(err, -ENOSPC,
                     "%s with %u %s writes %s of files, but %s is free in %s; choose another "
                     "directory with --folder",
                     spec->test->name, spec->task_count, plural(spec->task_count, "task", "tasks"),
                     format_bytes((double)needed, want, sizeof(want)),
                     format_bytes((double)available, have, sizeof(have)), spec->folder);
}

static int check_files(const struct measure_spec *spec, struct error *err)
{
    struct rlimit limit;
    uint64_t each = spec->test->file_count ? spec->test->file_count : FILES_FEW;
    each += spec->count_calls ? CALLS_FILES : 0;
    uint64_t needed = each * (spec->threads ? spec->task_count : 1) + FILES_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        needed <= limit.rlim_cur)
        return 0;
    return error_set(err, -EMFILE,
                     "%s with %u %s needs up to %llu open files, but the limit is %llu (ulimit -n)",
                     spec->test->name, spec->task_count,
                     plural(spec->task_count, "thread", "threads"), (unsigned long long)needed,
                     (unsigned long long)limit.rlim_cur);
}

int measure_check(const struct measure_spec *spec, struct error *err)
{
    int code = check_memory(spec, err);
    if (code == 0)
        code = check_disk(spec, err);
    return code == 0 ? check_files(spec, err) : code;
}
